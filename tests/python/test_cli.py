"""Tests of the command as pip installs it."""

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import pprofdiff
from conftest import CORPUS, pair

SCRIPT = shutil.which("pprofdiff", path=sysconfig.get_path("scripts"))
BASE, NEW = map(str, pair("story-cpu"))
# The command that cargo builds for the tests.
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", CORPUS.parents[1] / "target")) / "debug/pprofdiff"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(params=["script", "module"])
def command(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "module":
        return [sys.executable, "-m", "pprofdiff"]
    assert SCRIPT is not None
    return [SCRIPT]


def run(command: list[str], *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_the_command_prints_a_diff(command: list[str]):
    done = run(command, BASE, NEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip() == repr(pprofdiff.diff(BASE, NEW))


def test_version_and_help_are_printed(command: list[str]):
    assert run(command, "--version").stdout == f"pprofdiff {pprofdiff.__version__}\n"
    done = run(command, "--help")
    assert done.returncode == 0
    assert "pprofdiff BASE NEW" in done.stdout
    assert "__main__" not in done.stdout


def test_the_command_is_the_one_that_cargo_builds(command: list[str]):
    if not BUILT.exists():
        pytest.skip(f"{BUILT} is not built (cargo build)")

    def texts(command: list[str]) -> dict[str, str]:
        helps = {"": run(command, "--help").stdout}
        verbs = re.findall(r"^  ([a-z]+)  +[A-Z]", helps[""], re.M)
        return helps | {verb: run(command, verb, "--help").stdout for verb in verbs}

    shown = texts(command)
    assert {"explain", "disasm", "serve", "mcp", "store", "bench"} < shown.keys()
    assert shown == texts([str(BUILT)])


def test_agents_reach_the_server_of_the_package(command: list[str]):
    lines = [
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
        {"id": 2, "method": "tools/call", "params": {"name": "load", "arguments": {"base": [BASE], "new": [NEW]}}},
    ]
    with subprocess.Popen([*command, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        answers = {}
        for line in lines:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
            server.stdin.flush()
            if "id" in line:
                answers[line["id"]] = json.loads(server.stdout.readline())["result"]
        server.stdin.close()
        assert server.wait(timeout=60) == 0
    assert answers[0]["serverInfo"]["name"] == "pprofdiff"
    assert {"load", "explain", "top"} <= {tool["name"] for tool in answers[1]["tools"]}
    (content,) = answers[2]["content"]
    assert content["text"].startswith("diff d1\n"), content
    assert 'Next: explain {"diff":"d1"}' in content["text"]


@pytest.mark.parametrize(
    "arguments", [[], ["none", BASE], [BASE, NEW, "--sort", "name"], [str(CORPUS / "README.md"), NEW]]
)
def test_errors_are_one_line_and_exit_code_2(command: list[str], arguments: list[str]):
    done = run(command, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pprofdiff: ")
    assert done.stderr.count("\n") == 1


def test_stdin_is_an_input_and_output_goes_to_a_file(command: list[str], tmp_path: Path):
    with Path(BASE).open("rb") as file:
        done = run(command, "-", NEW, "--format", "json", "-o", str(tmp_path / "out.json"), stdin=file)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out.json").stat().st_size > 1000


@pytest.mark.skipif(os.name == "nt", reason="a shell's pipes")
def test_a_closed_pipe_is_not_an_error(command: list[str]):
    script = '"$@" | head -1; exit ${PIPESTATUS[0]}'
    arguments = [*command, "stacks", BASE, NEW, "-n", "0"]
    done = subprocess.run(["bash", "-c", script, "bash", *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_ends_the_command_silently(command: list[str]):
    with subprocess.Popen([*command, "top", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin
        child.stdin.write(bytes(1 << 17))  # More than a pipe holds, so it is reading now.
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        # stdin stays open like a terminal's. Otherwise the end of input could arrive before the signal.
        child.wait(timeout=60)
        errors = child.stderr.read()
    assert (child.returncode, errors) == (130, b"")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_leaves_nothing_half_written(command: list[str], tmp_path: Path):
    out = tmp_path / "out" / "merged.pb.gz"
    out.parent.mkdir()
    merge = [*command, "merge", *[BASE] * 5000, "-o", str(out)]
    for seconds in (0.2, 0.5, 1, 2, 3):
        out.write_bytes(b"old")
        with subprocess.Popen(merge, stderr=subprocess.PIPE) as child:
            time.sleep(seconds)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=60)
        # On a busy machine Python may still be starting or importing. The signal then gives another exit code or a
        # traceback.
        starting = b"init_import_site" in errors
        importing = re.search(rb"\n    (from \S+ )?import ", errors)
        # The command may have finished already.
        assert starting or child.returncode in (0, 130, -signal.SIGINT), errors
        assert starting or importing or errors == b""
        assert list(out.parent.iterdir()) == [out]
        assert child.returncode == 0 or out.read_bytes() == b"old"


@pytest.mark.skipif(os.name == "nt", reason="a name of bytes")
def test_file_names_may_be_invalid_utf_8(command: list[str], tmp_path: Path):
    name = os.fsencode(tmp_path) + b"/\xff.pb.gz"
    shutil.copy(os.fsencode(BASE), name)
    done = subprocess.run([*command, "top", name, "--format", "json"], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def manifest(path: Path, pairs: int) -> str:
    """Writes a manifest that repeats one pair."""
    path.write_text("name,base,new\n" + "".join(f"p{i},{BASE},{NEW}\n" for i in range(pairs)))
    return str(path)


def on_terminal(command: list[str], **options) -> tuple[int, str]:
    """Returns the exit code of a command, and its output to a terminal on standard error."""
    pty = pytest.importorskip("pty")
    terminal, end = pty.openpty()
    seen = b""
    with subprocess.Popen(command, stderr=end, env=os.environ | {"TERM": "xterm"}, **options) as child:
        os.close(end)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    read = os.read(terminal, 4096)
                except OSError:  # Linux signals the end of a terminal in this way.
                    read = b""
                if not read:
                    break
                seen += read
        os.close(terminal)
    return child.returncode, seen.decode()


def test_commands_to_copy_are_only_shown_in_terminals(command: list[str], tmp_path: Path):
    """In a terminal, each file name in the suggested command is a single shell word."""
    recording = tmp_path / "$(old) it's.data"
    recording.write_bytes(b"2ELIFREP")
    bare = tmp_path / "only addresses.pb"
    # A sample type, a location without lines, and the strings.
    bare.write_bytes(b"\x0a\x04\x08\x01\x10\x01\x22\x04\x08\x01\x18\x09\x32\x00\x32\x03cpu")
    for file, code, command_begin, rest in (
        (recording, 2, "perf script -i", [">", "profile.txt"]),
        (bare, 0, "pprofdiff convert", ["--binary", "BINARY", "-o", "named.pb.gz"]),
    ):
        done = run(command, "top", str(file))
        assert done.returncode == code
        assert command_begin not in done.stdout + done.stderr
        assert ("perf write" if code else "no function names") in done.stdout + done.stderr
        code_there, seen = on_terminal([*command, "top", str(file)], stdout=subprocess.DEVNULL)
        assert code_there == code
        advice = seen.strip().partition(command_begin)[2]
        assert shlex.split(advice) == [str(file), *rest], seen


def test_slow_steps_show_progress_in_a_terminal(command: list[str], tmp_path: Path):
    out = tmp_path / "merged.pb.gz"
    merge = [*command, "merge", *[BASE] * 20_000, "-o", str(out)]
    code, seen = on_terminal(merge, stdout=subprocess.PIPE)
    assert code == 0
    assert "reading (" in seen or "merging (" in seen, seen
    # The progress line is cleared at the end.
    assert seen.endswith(("\r\x1b[2K", "\x1b[K", "\x1b[2K\r", "\x1b[1B")) or not seen.split("\x1b[2K")[-1].strip(), seen
    assert run([*merge[:2000], "-o", str(out)]).stderr == ""
    # Fast commands print nothing.
    assert on_terminal([*command, "info", BASE], stdout=subprocess.DEVNULL) == (0, "")


def test_batch_shows_progress_only_in_a_terminal(command: list[str], tmp_path: Path):
    out = tmp_path / "out.jsonl"
    batch = [*command, "batch", manifest(tmp_path / "m.csv", 500), "-n1", "--format", "jsonl", "-o", str(out)]
    code, seen = on_terminal(batch, stdout=subprocess.PIPE)
    assert code == 0
    assert re.search(r"\d+ pairs, [\d.]+/s", seen), seen
    written = out.read_bytes()
    done = run(batch)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.read_bytes() == written
    # If the number of pairs is known, progress is a bar.
    for side, file in (("a", BASE), ("b", NEW)):
        (tmp_path / side).mkdir()
        for i in range(300):
            (tmp_path / side / str(i)).symlink_to(file)
    code, seen = on_terminal([*command, "batch", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(out)])
    assert (code, "/300 pairs" in seen) == (0, True), seen


@pytest.mark.parametrize("to_file", [True, False])
def test_an_interrupted_batch_writes_the_finished_pairs(command: list[str], tmp_path: Path, to_file: bool):
    out = tmp_path / "out.csv"
    batch = [*command, "batch", manifest(tmp_path / "m.csv", 200_000), "-n1", "--format", "csv"]
    batch += ["-o", str(out)] if to_file else []
    with (tmp_path / "stdout").open("wb") as stdout:
        child = subprocess.Popen(batch, stdout=stdout, stderr=subprocess.PIPE, text=True)
    with child:
        time.sleep(3)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    match = re.fullmatch(r"pprofdiff: interrupted; wrote (\d+) pairs, 0 of them failed\n", errors)
    assert match, errors
    lines = (out if to_file else tmp_path / "stdout").read_text().splitlines()
    assert lines[0].startswith("pair,error,name")
    names = [line.split(",")[0] for line in lines[1:]]
    assert names == [f"p{i}" for i in range(int(match[1]))]
    assert 0 < len(names) < 200_000
    assert list(tmp_path.glob(".pprofdiff-*")) == []
