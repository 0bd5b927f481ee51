"""Tests of `pprofdiff mcp` with raw lines: invalid messages, endless files, and cancelled calls."""

import json
import os
import re
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from test_mcp import COMMAND, ROOT, STORY

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built (cargo build)")


class Lines:
    """A server with raw lines as input."""

    def __init__(self) -> None:
        self.server = subprocess.Popen([COMMAND, "mcp"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.stdin, self.stdout = self.server.stdin, self.server.stdout
        self.received = b""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert self.ask("initialize", hello)["id"] == 0
        self.send({"method": "notifications/initialized"})

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        self.server.wait()
        self.stdin.close()
        self.stdout.close()

    def send(self, message: dict[str, Any] | bytes) -> None:
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def answer(self, seconds: float = 20) -> dict[str, Any]:
        # Several answers may arrive at once. A buffered reader would hold the later ones, where select() sees nothing.
        while b"\n" not in self.received:
            ready, _, _ = select.select([self.stdout], [], [], seconds)
            assert ready, "no answer"
            received = os.read(self.stdout.fileno(), 1 << 16)
            assert received, "the server ended"
            self.received += received
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def ask(self, method: str, params: dict[str, Any] | None = None, number: int = 0) -> dict[str, Any]:
        self.send({"id": number, "method": method, "params": params or {}})
        return self.answer()


def test_invalid_messages_are_answered_and_the_server_continues():
    with Lines() as lines:
        call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call"'
        for line, code, number in [
            (b"{", -32700, None),
            (b"hello", -32700, None),
            (b"\xff\xfe", -32700, None),
            (b"[" * 200_000, -32700, None),
            (b"x" * (20 << 20), -32600, None),
            (b"[]", -32600, None),
            (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, None),
            (call + b"}", -32602, 7),
            (call + b',"params":{"name":"top","arguments":[]}}', -32602, 7),
            (call + b',"params":{"name":"top","arguments":{"diff":"d1","nope":1}}}', -32602, 7),
            (call + b',"params":{"name":"nope"}}', -32602, 7),
            (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":3}', -32602, 7),
            (b'{"jsonrpc":"2.0","id":7,"method":"nope"}', -32601, 7),
        ]:
            lines.send(line)
            answer = lines.answer()
            assert (answer["error"]["code"], answer["id"]) == (code, number), (line[:80], answer)
            assert lines.ask("ping", number=8)["id"] == 8
        # Messages without an answer.
        lines.send(b"")
        lines.send({"method": "notifications/elsewhere", "params": 3})
        assert lines.ask("ping", number=9) == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_pipes_and_devices_are_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/stdin")
    with Lines() as lines:
        for name in [
            "/dev/stdin",
            "/proc/self/fd/0",
            "/dev/zero",
            tmp_path / "fifo",
            tmp_path / "*fo",
            tmp_path / "link",
        ]:
            for arguments in [{"new": [str(name)]}, {"base": [str(name)], "new": STORY["new"]}]:
                answer = lines.ask("tools/call", {"name": "load", "arguments": arguments}, number=1)
                assert answer["result"]["isError"], (name, answer)
                (content,) = answer["result"]["content"]
                assert re.search("a pipe or (a )?device", content["text"]), (name, answer)
        assert "error" not in lines.ask("ping", number=2)


def test_a_cancelled_call_that_waits_does_no_work(tmp_path: Path):
    # Copies, because a file that is listed several times is loaded once.
    files = []
    for name in ("story-cpu.base", "story-cpu.new", "cpp-cpu.base", "cpp-cpu.new"):
        for number in range(60):
            files.append(str(shutil.copyfile(f"tests/corpus/{name}.pb.gz", tmp_path / f"{name}.{number}.pb.gz")))
    with Lines() as lines:
        load = {"name": "load", "arguments": {"base": files, "new": files}}
        lines.send({"id": 1, "method": "tools/call", "params": load})
        for number in range(2, 30):
            lines.send({"id": number, "method": "tools/call", "params": load})
        for number in range(1, 30):
            lines.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        assert lines.ask("ping", number=99)["id"] == 99
        story = {"name": "load", "arguments": STORY}
        answer = lines.ask("tools/call", story, number=100)
        # The waiting calls were never run: they used no diff names.
        assert answer["id"] == 100
        assert int(answer["result"]["content"][0]["text"].split()[1].removeprefix("d")) < 10


def test_a_cancelled_call_stops_while_it_runs():
    files = [f"tests/corpus/{name}.{side}.pb.gz" for name in ("story-cpu", "cpp-cpu") for side in ("base", "new")]
    with Lines() as lines:
        # Hours of work for all threads of the pool.
        load = {"name": "load", "arguments": {"base": files * 20_000, "new": files * 20_000}}
        for number in range(1, 5):
            lines.send({"id": number, "method": "tools/call", "params": load})
        for number in range(1, 5):
            lines.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        answer = lines.ask("tools/call", {"name": "load", "arguments": STORY}, number=100)
        assert answer["result"]["content"][0]["text"].startswith("diff d1\n")


def test_calls_that_do_not_wait_for_load_get_the_loaded_diffs():
    slow = {"new": ["tests/corpus/cpp-cpu.new.pb.gz"]}
    wrong = {"new": ["tests/corpus/none.pb.gz"]}
    fast = {"new": STORY["new"]}
    for _ in range(3):
        with Lines() as lines:
            # A failed load uses no name, and a load that is faster than an earlier one gets a later name.
            for number, arguments in enumerate([wrong, slow, fast], 1):
                lines.send({"id": number, "method": "tools/call", "params": {"name": "load", "arguments": arguments}})
            for number, diff in [(4, "d2"), (5, "d1"), (6, "d3")]:
                call = {"name": "top", "arguments": {"diff": diff, "budget": 500}}
                lines.send({"id": number, "method": "tools/call", "params": call})
            answers = {answer["id"]: answer["result"] for answer in (lines.answer() for _ in range(6))}
            texts = {number: result["content"][0]["text"] for number, result in answers.items()}
            assert sorted(number for number in answers if answers[number].get("isError")) == [1, 6], texts
            assert texts[2].startswith("diff d1\n")
            assert texts[3].startswith("diff d2\n")
            assert "logmill" in texts[4]
            assert "logmill" not in texts[5]
            # A name that no earlier load gives is an error after the loads.
            assert 'unknown diff "d3" (loaded: d' in texts[6]


@pytest.mark.parametrize("busy", [False, True])
def test_the_server_ends_with_its_client(busy: bool):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "load", "arguments": STORY}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": 2 + i, "method": "tools/call", "params": call} for i in range(20 if busy else 1)),
    ]
    server = subprocess.Popen(
        [COMMAND, "mcp"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)
        answers = [json.loads(server.stdout.readline()) for _ in range(1 if busy else 2)]
        assert [message["id"] for message in answers] == list(range(1, len(answers) + 1))
        # Closes the pipes, as if the client had been killed.
        server.stdin.close()
        server.stdout.close()
        assert server.wait(timeout=20) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""
