"""Tests of to_text(max_tokens=...), which shortens answers for language models."""

import pickle
import re

import pytest

import pprofdiff
from conftest import pair

BUDGETS = [50, 80, 130, 200, 300, 500, 800, 1300, 5000]


def tokens(text: str) -> int:
    """Counts tokens as docs/agents.md defines them."""
    count = 0
    for run in re.findall(rb"[a-z]+|[ \t\n]+|.", text.encode(), re.DOTALL):
        if run[:1].islower():
            count += -(-len(run) // 2)
        elif run[:1] in b" \t\n":
            count += -(-len(run) // 32) + (len(run) > 1)
        else:
            count += 1
    return count


@pytest.fixture
def answers(story: pprofdiff.Diff) -> dict[str, object]:
    batch = pprofdiff.batch([pprofdiff.Pair(*pair("story-cpu"), name=f"pair {i}") for i in range(3)])
    return {
        "top": story.top(),
        "peek": story.peek("compare"),
        "stacks": story.stacks(),
        "labels": story.labels(),
        "list": story.list("tableInsensitive"),
        "explain": story.explain(),
        "check": pprofdiff.check(*pair("story-cpu"), fail_on=["cum:any>+1%"]),
        "ranking": batch.ranking(),
    }


def test_answers_fit_their_budgets(answers: dict[str, object]):
    shortened = set()
    for name, answer in answers.items():
        lines = 0
        for budget in BUDGETS:
            text = answer.to_text(max_tokens=budget)
            assert tokens(text) <= budget, (name, budget, text)
            assert len(text.splitlines()) >= lines, (name, budget, text)
            lines = len(text.splitlines())
            if "more: set a larger max_tokens" in text:
                shortened.add(name)
        assert answer.to_text(max_tokens=10**6).split() == answer.to_text().split(), name
    assert shortened >= {"top", "peek", "stacks", "explain", "check", "ranking"}


def test_a_table_has_all_rows_or_counts_the_others(answers: dict[str, object]):
    table = answers["top"]
    assert table.to_text().count("\n") == len(table) + repr(table).count("\n") + 1 - 20
    short = table.to_text(max_tokens=500)
    left = re.search(r"^(\d+) frames more: set a larger max_tokens$", short, re.MULTILINE)
    assert left
    rows = short[: left.start()].partition("  frame\n")[2]
    assert rows.count("\n") == len(table) - int(left[1]) > 1


def test_an_explanation_keeps_its_first_cause_and_calls_of_python(answers: dict[str, object]):
    explained = answers["explain"]
    assert explained.to_text() == f"{explained!r}\n"
    assert "\n1. logmill/names.compare (names.go:19) now calls" in explained.to_text(max_tokens=120)
    assert "\n   d.peek(" in explained.to_text(max_tokens=1300)
    assert "pprofdiff peek" not in explained.to_text(max_tokens=1300)


def test_copies_that_were_pickled_keep_the_first_lines(answers: dict[str, object]):
    for name in ("list", "explain", "check", "ranking", "top"):
        copied = pickle.loads(pickle.dumps(answers[name]))
        assert copied.to_text() == answers[name].to_text(), name
        for budget in BUDGETS:
            text = copied.to_text(max_tokens=budget)
            assert tokens(text) <= budget
            if name in {"list", "explain", "check"}:
                first, *_ = text.splitlines()
                assert answers[name].to_text().startswith(first.removesuffix("...")), (name, text)


def test_a_budget_must_have_room_for_a_line(answers: dict[str, object]):
    for answer in answers.values():
        with pytest.raises(pprofdiff.PprofError, match="max_tokens must be at least 50, not 49"):
            answer.to_text(max_tokens=49)
