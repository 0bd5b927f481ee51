"""Tests of evals/: the grader on crafted answers, the calls of the skill, scripted agents, and the published tables."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import CORPUS

ROOT = CORPUS.parents[1]
EVALS = ROOT / "evals"
SKILL = ROOT / "skills/pprofdiff/SKILL.md"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMMAND = TARGET / "debug/pprofdiff"
COMMITS = TARGET / "tmp/evals-commits"

sys.path.insert(0, str(EVALS))
import grade  # noqa: E402

needs_command = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built (cargo build)")
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")


def run(*arguments: str) -> str:
    """Returns the output of evals/run."""
    command = [sys.executable, str(EVALS / "run"), "--pprofdiff", str(COMMAND), *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "text",
    [
        "main.read",
        "1. main.plan spends more in main.read (called more, or slower): +1.09s",
        "main.read: +1s.",
        "The cause is **main.read**, or `main.read()`.",
        "     0.96s 25.13% 25.13%         1s 26.18%  main.read (inline)",
        "waits at main.read.",
        "'main.read'",
    ],
)
def test_a_whole_name_is_found(text: str):
    assert grade.names(text, "main.read")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main.write",
        "main.readAll",
        "domain.read",
        "example.com/main.read",
        "x.main.read",
        "main.read.func1",
        "main.read.(*File).Close",
        "main.read::next",
        "main.read$1",
        "main.read-2",
        "main<main.read>",
        "main read",
    ],
)
def test_another_name_or_a_part_of_one_is_not_found(text: str):
    assert not grade.names(text, "main.read")


def test_names_with_signs_are_found_whole():
    assert grade.names("1. board.(*Board).Post costs more", "board.(*Board).Post")
    assert not grade.names("1. board.(*Board).Posted costs more", "board.(*Board).Post")
    assert grade.names("calls HashMap<K,V,S,A>::entry, x2", "HashMap<K,V,S,A>::entry")
    assert not grade.names("Locks$Halfway", "Locks$Half")


def test_labels_places_and_commits():
    tags = (
        " depot: Total 16.7s\n         9.5s (57%): harbour\n         1.2s ( 7%): hill\n\n kind: Total 1s\n   1s: gull\n"
    )
    assert grade.names_label("1. depot=harbour: +1.02s", "depot", "harbour")
    assert grade.names_label(tags, "depot", "harbour")
    assert not grade.names_label(tags, "kind", "harbour")
    assert not grade.names_label(tags, "depot", "harb")
    assert not grade.names_label("harbour", "depot", "harbour")
    places = [("shop/cart.go", 10, 12)]
    assert grade.names_place("a1b2c3d change 1, shop/cart.go:11: its own lines", places)
    assert grade.names_place("/build/shop/cart.go:12", places)
    assert grade.names_place("shop/cart.go:8-10", places)
    for wrong in ("shop/cart.go", "shop/cart.go:13", "shop/cart.go:1", "workshop/cart.go:11", "shop/cart.go:110"):
        assert not grade.names_place(wrong, places)
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert grade.names_commit("   0123456 change 3", commit)
    assert grade.names_commit(f"COMMIT: {commit}", commit)
    assert not grade.names_commit("012345 1234567 01234567x", commit)


def test_tokens_are_counted_as_the_product_counts_them():
    # Two letters, a digit, a capital, a sign, 32 blanks; a run of several blanks costs one more.
    assert [grade.tokens(text) for text in ("", "abc", "A1+", "a b", "a  b", "\n", " " * 33, "é")] == [
        0, 2, 3, 3, 4, 1, 3, 2,
    ]  # fmt: skip
    # docs/agents.md shows answers that the product cut at these budgets.
    page = (ROOT / "docs/agents.md").read_text()
    answers = re.findall(r'^> \w+ \{[^\n]*"budget": (\d+)\}\n(.*?)```', page, re.MULTILINE | re.DOTALL)
    assert len(answers) == 2
    for budget, answer in answers:
        assert int(budget) / 2 < grade.tokens(answer) <= int(budget)


def test_an_answer_is_cut_at_a_budget():
    text = "one two three"
    parts = {0: "", 2: "one", 3: "one ", 5: "one two", 6: "one two ", 100: text}
    assert {budget: grade.cut(text, budget) for budget in parts} == parts
    assert grade.cut("é", 1) == ""
    assert grade.cut("abcdé", 1, bytes_per_token=4) == "abcd"


def test_the_first_claim_is_the_first_cause_or_row():
    answer = "main.a is mentioned\n1. main.b itself costs more: +1s.\n   pprofdiff peek main.c x y\n2. main.d\n"
    assert grade.first_claim("pprofdiff", answer) == "1. main.b itself costs more: +1s."
    assert grade.claims("pprofdiff", answer) == 2
    head = "File: x\nShowing nodes\n      flat  flat%   sum%        cum   cum%\n"
    rows = "     0.96s 25.13% 25.13%         1s 26.18%  main.b\n         0     0% 25.13%         1s 26.18%  main.c\n"
    assert grade.first_claim("pprof", head + rows).endswith("main.b")
    assert grade.claims("pprof", head + rows) == 2
    assert grade.first_claim("pprof", "") == grade.first_claim("pprofdiff", "These samples are inconclusive.") == ""


def agent(tmp_path: Path, answer: str, task: str) -> dict[str, object]:
    """Returns the grades of an agent that always gives this answer."""
    (tmp_path / "answer").write_text(answer)
    arguments = ("--no-skill", "--tasks", f"^{task}$", "--json", str(tmp_path / "grades.json"))
    run("--agent", f"cat >/dev/null; cat '{tmp_path / 'answer'}'", *arguments)
    (graded,) = json.loads((tmp_path / "grades.json").read_text())["no skill"]
    return graded


@needs_command
def test_agents_answers_are_graded(tmp_path: Path):
    task = "faults/bakery-added-cpu-runs"  # the guilty function is Bakery$Receipts.audit
    right = agent(tmp_path, 'I see.\nCAUSE: Bakery$Receipts.audit\n{"tool_calls": 3, "tokens": 900}\n', task)
    assert right["right"]
    assert right["first"]
    assert right["told"] == {"tool_calls": 3, "tokens": 900}
    second = agent(tmp_path, "CAUSE: Bakery.day\nCAUSE: `Bakery$Receipts.audit`\n", task)
    assert second["right"]
    assert not second["first"]
    assert "told" not in second
    for wrong in (
        "CAUSE: Bakery.day\n",
        "CAUSE: Bakery$Receipts.audits\n",
        "CAUSE: none\n",
        "Bakery$Receipts.audit\n",
        "CAUSE: a\nCAUSE: b\nCAUSE: c\nCAUSE: Bakery$Receipts.audit\n",
        "",
    ):
        graded = agent(tmp_path, wrong, task)
        assert not graded["right"], wrong
        assert graded["answered"] == ("CAUSE" in wrong)
    equal = "faults/bakery-equal-cpu-runs"
    assert agent(tmp_path, "CAUSE: none\n", equal)["right"]
    alarm = agent(tmp_path, "CAUSE: Bakery.day\n", equal)
    assert alarm["false_alarm"]
    assert not alarm["right"]
    silent = agent(tmp_path, "", equal)
    assert not silent["right"]
    assert not silent["false_alarm"]


@needs_command
def test_an_agent_that_takes_too_long_is_ended_with_its_processes(tmp_path: Path):
    grades = tmp_path / "grades.json"
    run("--agent", "sleep 1000; true", "--timeout", "0.5", "--no-skill", "--tasks", "^story$", "--json", str(grades))
    (graded,) = json.loads(grades.read_text())["no skill"]
    assert not graded["answered"]
    assert not graded["right"]


@needs_command
@needs_go
@pytest.mark.parametrize("name", ["skill", "pprof"])
def test_the_page_shows_what_the_scripted_agents_get(name: str):
    page = (EVALS / "README.md").read_text()
    command = f"evals/run --agent evals/agents/{name} --no-skill --tasks '^(story|faults/freight)'"
    shown = page.split(f"$ {command}\n")[1].split("```")[0]
    got = run("--agent", f"evals/agents/{name}", "--no-skill", "--tasks", "^(story|faults/freight)")

    def without_seconds(table: str) -> list[str]:
        return [line.rsplit("|", 2)[0] for line in table.splitlines()]

    assert without_seconds(got) == without_seconds(shown)


@pytest.mark.skipif(not SKILL.exists(), reason=f"{SKILL} does not exist")
def test_the_graded_calls_are_those_of_the_skill():
    calls = tomllib.loads((EVALS / "calls.toml").read_text())["pprofdiff"]
    assert [row["call"] for row in calls] == re.findall(r"^\$ (pprofdiff .*)$", SKILL.read_text(), re.MULTILINE)


@needs_command
@needs_go
@pytest.mark.skipif(not COMMITS.exists(), reason="no repositories (the ignored Rust tests write them)")
def test_the_published_tables_are_current():
    run("--check")
