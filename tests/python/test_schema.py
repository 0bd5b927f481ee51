"""Tests that the JSON output of the command matches the schema that it prints. Both come from cargo's build."""

import json
import subprocess
from typing import Any

import jsonschema
import pytest

from test_mcp import COMMAND, ROOT

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built (cargo build)")

CORPUS = "tests/corpus"
STORY = [f"{CORPUS}/story-cpu.base.pb.gz", f"{CORPUS}/story-cpu.new.pb.gz"]
LABELS = [f"{CORPUS}/go-labels-cpu.base.pb.gz", f"{CORPUS}/go-labels-cpu.new.pb.gz"]
HEAP = [
    f"{CORPUS}/go-heap-ops.base.pb.gz",
    f"{CORPUS}/go-heap-ops.new.pb.gz",
    "--sample-type",
    "alloc_space,alloc_objects",
]
RUNS = [
    word
    for side, build in [("--base", "base"), ("--new", "calls")]
    for word in [side, *(f"{CORPUS}/faults/freight/{build}-{i}.cpu.pb.gz" for i in (1, 2))]
]
# Pairs with a rewrite, a cost shift, a candidate, and an additional paragraph.
UPGRADES = [
    [f"{CORPUS}/upgrades/{name}.{build}1.{data}.pb.gz" for build in "ab"]
    for name, data in [("lanes", "cpu"), ("radar", "cpu"), ("letters", "heap")]
]
SERIES = ["series", f"{CORPUS}/series/heap-*.pb.gz"]
# Two histories of locks, and two histories that fail, because they lack the sample type.
HISTORIES = ["series", f"{CORPUS}/series/*-*.pb.gz", "--group", "data={1},build={2}"]

WRITTEN = [
    *([view, *sides] for view in ("top", "tree", "stacks", "labels") for sides in (STORY, STORY[1:], HEAP)),
    ["traces", *STORY],
    *([view, "mallocgc", *sides] for view in ("peek", "roots", "list") for sides in (STORY, STORY[1:])),
    ["diff", *RUNS],
    ["top", *STORY, "--focus", "names", "--granularity", "lines", "--normalize", "total", "--hide-below", "1%"],
    ["stacks", "--labels", *LABELS],
    ["peek", "runtime", *HEAP],
    ["info", *STORY],
    *(["explain", *sides] for sides in (STORY, RUNS, LABELS, *UPGRADES)),
    *(["check", *STORY, "--fail-on", limit] for limit in ("total>+900%", "cum>+1%")),
    ["batch", *STORY, "--rank"],
    *([*SERIES, "--rows", rows] for rows in ("shifts", "movers", "steps", "values")),
    HISTORIES,
]


def command(*arguments: str) -> str:
    ended = subprocess.run([COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1, 2, 3), (arguments, ended.stderr)
    return ended.stdout


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    schema = json.loads(command("formats", "--schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return {kind["title"]: kind | {"$defs": schema["$defs"]} for kind in schema["anyOf"]}


def schema_error(schemas: dict[str, Any], value: dict[str, Any]) -> str:
    kind = value["kind"]
    error = jsonschema.Draft202012Validator(schemas[kind]).iter_errors(value)
    return "; ".join(f"{list(e.absolute_path)}: {e.message[:200]}" for e in error)


def test_all_json_output_matches_the_schema(schemas: dict[str, Any]):
    # Kinds that are tested elsewhere: they need binaries, batches or data frames.
    kinds = {"disasm", "failed", "causes", "pairs", "shared_causes", "common_changes"}
    for words in WRITTEN:
        value = json.loads(command(*words, "--format", "json"))
        assert schema_error(schemas, value) == "", words
        kinds.add(value["kind"])
    assert kinds == set(schemas)


def test_each_line_of_a_batch_names_its_schema(schemas: dict[str, Any], tmp_path):
    manifest = tmp_path / "pairs.csv"
    manifest.write_text(f"base,new,name\n{','.join(STORY)},a\n{STORY[0]},nowhere.pb.gz,b\n")
    manifest.write_text(manifest.read_text().replace(CORPUS, str(ROOT / CORPUS)))
    for view in ("top", "tree", "labels", "stacks", "explain"):
        lines = [
            json.loads(line)
            for line in command("batch", str(manifest), "--format", "jsonl", "--view", view).splitlines()
        ]
        assert [line["pair"] for line in lines] == ["a", "b"]
        assert [schema_error(schemas, line) for line in lines] == ["", ""], view
        assert {line["schema"] for line in lines} == {"pprofdiff/1"}
    types = command("batch", str(manifest), "--format", "jsonl", "--sample-type", "cpu,samples").splitlines()
    assert schema_error(schemas, json.loads(types[0])) == ""


def test_the_schema_rejects_unknown_fields(schemas: dict[str, Any]):
    value = json.loads(command("top", *STORY, "--format", "json", "-n", "1"))
    row = value["rows"][0]
    for wrong in (row | {"more": 1}, row | {"flat_base": "1"}, {k: v for k, v in row.items() if k != "status"}):
        assert schema_error(schemas, value | {"rows": [wrong]}) != ""
    assert schema_error(schemas, value | {"more": 1}) != ""
    assert schema_error(schemas, value | {"schema": "pprofdiff/2"}) != ""
    value = json.loads(command(*HISTORIES, "--format", "json"))
    assert len(value["failed"]) == 2
    history = value["histories"][0]
    for wrong in (
        history | {"more": 1},
        history | {"series": history["series"] | {"more": 1}},
        history | {"largest": history["largest"] | {"delta": "1"}},
        {k: v for k, v in history.items() if k != "keys"},
    ):
        assert schema_error(schemas, value | {"histories": [wrong]}) != ""
    assert schema_error(schemas, value | {"failed": [{"keys": {}}]}) != ""
    value = json.loads(command("explain", *STORY, "--format", "json"))
    cause = value["causes"][0]
    for wrong in (cause | {"more": 1}, cause | {"delta": "1"}, {k: v for k, v in cause.items() if k != "evidence"}):
        assert schema_error(schemas, value | {"causes": [wrong]}) != ""
    assert schema_error(schemas, value | {"more": 1}) != ""
