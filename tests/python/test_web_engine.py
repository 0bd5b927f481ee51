"""Tests of the page's engine in Node: every input gives the same result or the same error as the command."""

import base64
import gzip
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from conftest import CORPUS, PAIRS, pair
from web_page import BUILDS, COMMAND, FOLDER, ROOT, command

QUESTIONS: list[dict[str, Any]] = [
    {},
    {"granularity": "lines", "noinlines": True, "filters": {"focus": "main|run", "hide": "^runtime"}},
    {"match": "moved", "normalize": "total", "trim_path": "/build:/usr"},
]


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., bytes | str]]:
    """Returns a function that sends a request to the module. It returns bytes for an answer, and text for an error."""
    if not FOLDER.exists():
        pytest.skip("the page is missing (crates/pprofdiff-web/make)")
    if not shutil.which("node"):
        pytest.skip("Node is missing (apt-get install nodejs)")
    node = subprocess.Popen(
        ["node", ROOT / "tests" / "web.mjs", FOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert node.stdin
    assert node.stdout

    def asked(
        files: list[tuple[str, bytes]], sides: dict[str, Any], question: dict[str, Any], format: str
    ) -> bytes | str:
        assert node.stdin
        assert node.stdout
        packed = [(name, base64.b64encode(content).decode()) for name, content in files]
        line = json.dumps({"files": packed, "sides": sides, "question": question, "format": format})
        node.stdin.write(line + "\n")
        node.stdin.flush()
        reply = node.stdout.readline()
        assert reply, "the module has broken"
        reply = json.loads(reply)
        return base64.b64decode(reply["answer"]) if "answer" in reply else cast(str, reply["error"])

    with node:
        yield asked
        node.stdin.close()
    assert node.returncode == 0


DIFF = {"diff": {"base": [0], "new": [1]}}


def agree(answer: bytes | str, code: int, out: bytes, err: str) -> None:
    """Checks that both give the same answer, or the same error."""
    if isinstance(answer, str):
        assert (code, err) == (2, f"pprofdiff: {answer}\n")
    else:
        assert code == 0, err
        assert answer == out


def options(question: dict[str, Any]) -> list[str]:
    """Converts a request to options of the command."""
    words = []
    for key, value in {**question, **question.get("filters", {})}.items():
        if key != "filters":
            words.append(f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}"))
    return words


@pytest.mark.parametrize("name", PAIRS)
def test_the_module_gives_the_same_answers_as_the_command(
    name: str, ask: Callable[..., bytes | str], tmp_path: Path
) -> None:
    files = [(path.name, path.read_bytes()) for path in pair(name)]
    names = [path.name for path in pair(name)]
    for question in QUESTIONS:
        for format in ["json", "csv", "html", "folded"]:
            answer = ask(files, DIFF, question, format)
            words = ["--quote-formulas"] if format == "csv" else []
            code, out, err = command("diff", *names, "--format", format, *options(question), *words, cwd=CORPUS)
            agree(answer, code, out, err)


INPUTS = sorted([*(CORPUS / "inputs").iterdir(), *(CORPUS / "legacy").iterdir(), *(CORPUS / "malformed").iterdir()])


def test_the_module_reads_the_same_formats_as_the_command(ask: Callable[..., bytes | str]) -> None:
    read = 0
    for path in INPUTS:
        answer = ask([(path.name, path.read_bytes())], {"diff": {"base": [], "new": [0]}}, {}, "json")
        code, out, err = command("top", path.name, "--format", "json", cwd=path.parent)
        agree(answer, code, out, err)
        read += code == 0
    assert read > 30


def test_zstd_files_are_read(ask: Callable[..., bytes | str], tmp_path: Path) -> None:
    _, path = pair("go-heap")
    packed = tmp_path / "heap.pb.zst"
    subprocess.run([COMMAND, "convert", path, "-o", packed], check=True)
    assert packed.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    answer = ask([(packed.name, packed.read_bytes())], {"diff": {"base": [], "new": [0]}}, {}, "json")
    assert answer == command("top", "heap.pb.zst", "--format", "json", cwd=tmp_path)[1]


def test_damaged_files_give_the_same_errors_as_the_command(ask: Callable[..., bytes | str], tmp_path: Path) -> None:
    chance = random.Random(7)
    for name in ["go-heap", "rust-cpu", "node-heap"]:
        whole = bytearray(gzip.decompress(pair(name)[1].read_bytes()))
        # Nightly runs damage each file three times as often.
        for _ in range(60 if "PPROFDIFF_CASES" in os.environ else 20):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            if chance.random() < 0.3:
                del damaged[chance.randrange(len(damaged)) :]
            content = bytes(damaged)
            answer = ask([("damaged.pb", content)], {"diff": {"base": [], "new": [0]}}, {}, "json")
            (tmp_path / "damaged.pb").write_bytes(content)
            agree(answer, *command("top", "damaged.pb", "--format", "json", cwd=tmp_path))


def test_a_series_is_ordered_by_its_names(ask: Callable[..., bytes | str]) -> None:
    files = [(path.name, path.read_bytes()) for path in reversed(BUILDS)]
    for format in ["csv", "html"]:
        answer = ask(files, {"series": list(range(len(files)))}, {}, format)
        words = ["--quote-formulas"] if format == "csv" else []
        code, out, err = command(
            "series", "--order=key", "--format", format, *words, *(p.name for p in BUILDS), cwd=CORPUS / "series"
        )
        agree(answer, code, out, err)


# The messages arrive before and after the module fails to load.
WORKER = """
globalThis.onmessage = null;
globalThis.postMessage = ({ id, error, broken }) => console.log(JSON.stringify([id, error, broken]));
await import("./worker.js");
onmessage({ data: { id: 1, operation: "choices", values: [] } });
setTimeout(() => onmessage({ data: { id: 2, operation: "choices", values: [] } }), 200);
"""
FAILING_MODULE = """
export default () => new Promise((_, reject) => setTimeout(() => reject(new Error("no module")), 100));
export const Engine = null, choices = null;
"""


def test_worker_answers_all_messages_if_the_module_fails_to_load(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("Node is missing (apt-get install nodejs)")
    shutil.copy(ROOT / "crates/pprofdiff-web/src/page/worker.js", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "pprofdiff_web.js").write_text(FAILING_MODULE)
    (tmp_path / "run.js").write_text(WORKER)
    ran = subprocess.run(["node", "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert answers == [[id, "the engine stopped: no module", True] for id in (1, 2)]
