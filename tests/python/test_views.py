"""Tests of views, filters and normalization: Python gets the engine's results unchanged."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pprofdiff
from conftest import PAIRS, pair, profile
from pprofdiff.types import (
    Build,
    Explained,
    Filters,
    Finding,
    PairSummary,
    Routine,
    RuleCheck,
    Runs,
    SampleType,
    SourceLine,
    TableSummary,
    ViewOptions,
)

SIDES = ["base", "new", "delta"]
VIEWS = {
    "top": ["name", "file", "line", "address", "mapping", "status"]
    + [f"{value}_{side}" for value in ("flat", "cum") for side in SIDES],
    "tree": ["node", "other", "relation", *SIDES],
    "stacks": ["frames", *SIDES, "status"],
    "labels": ["key", "value", "unit", *SIDES, "status"],
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_of_the_corpus_equals_the_commands_output(name: str):
    base, new = pair(name)
    d = pprofdiff.diff(base, new)
    command = [sys.executable, "-m", "pprofdiff", base, new, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Each interface spells the options in warnings in its own way.
    assert json.loads(d.top().to_json()) == json.loads(done.stdout.replace("(--binary)", "(binary=)"))


@pytest.mark.parametrize("view", VIEWS)
def test_views_have_their_columns(labelled: pprofdiff.Diff, view: str):
    table = getattr(labelled, view)()
    assert table.columns == VIEWS[view]
    assert table.kind == {"top": "diff"}.get(view, view)
    assert len(table) > 1
    for row in table:
        for value in ("", "flat_", "cum_"):
            if f"{value}base" in row:
                assert row[f"{value}new"] - row[f"{value}base"] == row[f"{value}delta"]
    of_one = getattr(labelled.new[0], view)()
    assert "base" not in of_one.columns
    assert {"weight", "flat"} & set(of_one.columns)


def test_options_of_a_view_are_applied(story: pprofdiff.Diff):
    by_cum = story.top(5, sort="cum", sample_type="samples", granularity="lines", noinlines=True)
    assert len(by_cum) == 5
    deltas = [abs(d) for d in by_cum["cum_delta"]]
    assert deltas == sorted(deltas, reverse=True)
    assert by_cum[0]["line"] is not None
    assert by_cum.summary["sample_type"] == "samples"
    assert by_cum.summary["granularity"] == "lines"
    assert by_cum.summary["noinlines"] is True
    assert by_cum.rows_total > 5
    assert story.top(granularity="addresses")[0]["address"] > 0
    assert [r["file"] for r in story.top(3, granularity="files")] != [None] * 3


def test_peek_shows_callers_and_callees(story: pprofdiff.Diff):
    edges = story.peek("tableInsensitive")
    assert set(edges["node"]) == {"logmill/headers.tableInsensitive"}
    assert set(edges["relation"]) == {"caller", "callee"}
    with pytest.warns(UserWarning, match="no frame matches"):
        assert len(story.peek("no such function")) == 0


def test_stacks_can_have_labels(labelled: pprofdiff.Diff):
    table = labelled.stacks(labels=True)
    assert table.columns[:2] == ["frames", "labels"]
    assert any("=" in label for labels in table["labels"] for label in labels)
    assert len(table) >= len(labelled.stacks())


def test_folded_has_the_rows_of_stacks(story: pprofdiff.Diff):
    header, *lines = story.folded().splitlines()
    assert header == "# pprofdiff-folded cpu/nanoseconds base new"
    assert len(lines) == len(story.stacks())
    stack, base, new = lines[0].rsplit(" ", 2)
    row = story.stacks()[0]
    assert (stack, int(base), int(new)) == (";".join(row["frames"]), row["base"], row["new"])
    header, line, *_ = story.new[0].folded().splitlines()
    assert header == "# pprofdiff-folded cpu/nanoseconds value"
    assert len(line.rsplit(" ", 1)) == 2


@pytest.mark.parametrize(
    "question",
    [
        lambda d: d.top(sample_type="wall"),
        lambda d: d.top(granularity="classes"),
        lambda d: d.top(sort="name"),
        lambda d: d.peek("("),
        lambda d: d.filter(focus="("),
        lambda d: d.filter(tagfocus="a=("),
        lambda d: d.normalize("wall"),
        lambda d: d.normalize(float("nan")).top(),
        lambda d: d.normalize(-1).top(),
        lambda d: d.new[0].normalize(2).top(),
        lambda d: d.top().sort("name or so"),
        lambda d: pprofdiff.diff([], d.new),
        lambda d: pprofdiff.diff(d.new[0], profile([(["main"], 1, {})])),
    ],
)
def test_invalid_arguments_of_views_are_errors(story: pprofdiff.Diff, question):
    with pytest.raises(pprofdiff.PprofError) as caught:
        question(story)
    assert caught.value.detail
    assert "\n" not in str(caught.value)


def test_filters_are_combined_and_can_be_removed(story: pprofdiff.Diff):
    focused = story.filter(focus="tableInsensitive")
    both = focused.filter(ignore="canonical")
    assert both.top().summary["filters"] == {"focus": "tableInsensitive", "ignore": "canonical"}
    assert both.filter(ignore="").top().to_dicts() == focused.top().to_dicts()
    assert story.top().summary["filters"] == {}
    assert len(both.top()) < len(focused.top()) < len(story.top())
    assert [p.name for p in both.base] == [p.name for p in story.base]
    assert both.base[0] is story.base[0]
    with pytest.warns(UserWarning, match="matched nothing"):
        nothing = story.filter(hide="no such function").top().summary["warnings"]
    assert any("matched nothing" in w for w in nothing)


@pytest.mark.filterwarnings("ignore:.*matched nothing:UserWarning")
def test_every_filter_is_passed_to_the_engine(labelled: pprofdiff.Diff):
    # The keywords come from the engine. TypedDicts repeat them for editors, and help() describes each.
    names = Filters.__annotations__
    with pytest.raises(TypeError, match="unknown option"):
        labelled.filter(focuss="x")  # type: ignore[call-arg]
    assert len(names) >= 10
    for name in names:
        assert labelled.filter(**{name: "x"}).top().summary["filters"] == {name: "x"}
        assert labelled.top(**{name: "x"}).summary["filters"] == {name: "x"}
    with pytest.raises(TypeError) as caught:
        labelled.top(focuss="x")  # type: ignore[call-arg]
    assert set(re.findall(r"\w+", str(caught.value).split("the options are")[1])) == {*ViewOptions.__annotations__}


def test_rows_follow_the_options_of_pprof(story: pprofdiff.Diff):
    rose = story.top(drop_negative=True)
    assert 0 < len(rose) < len(story.top())
    assert rose.summary["drop_negative"]
    assert all((row["flat_delta"], row["cum_delta"]) >= (0, 0) for row in rose.to_dicts())
    whole, part = story.top().summary, story.top(focus="tableInsensitive", relative_percentages=True).summary
    assert part["relative_percentages"]
    assert 0 < part["total_base"] < whole["total_base"]
    assert re.search(r"\d+ms ", repr(story.top(unit="ms")))
    assert not re.search(r"\ds ", repr(story.top(unit="ms")))
    heap = pprofdiff.load(pair("go-heap")[1])
    mean = heap.top(sample_type="alloc_space", mean=True)
    sums, counts = (
        {row["name"]: row["cum"] for row in heap.top(sample_type=name).to_dicts()}
        for name in ("alloc_space", "alloc_objects")
    )
    assert len(mean) > 10
    assert mean.summary["sample_type"] == "mean_alloc_space"
    assert all(row["cum"] == sums[row["name"]] // counts[row["name"]] for row in mean.to_dicts())
    for refused in (
        lambda: story.top(mean=True),
        lambda: story.top(unit="parsec"),
        lambda: story.stacks(drop_negative=True),
        lambda: story.to_html(relative_percentages=True),
        lambda: pprofdiff.series([pair("go-heap")[1]], mean=True),
    ):
        with pytest.raises(pprofdiff.PprofError):
            refused()


def keys_are(value: object, typed_dict: type) -> None:
    """Checks that a dict has all required keys of a TypedDict, and no unknown keys."""
    assert isinstance(value, dict)
    assert typed_dict.__required_keys__ <= {*value} <= {*typed_dict.__annotations__}, typed_dict  # type: ignore[attr-defined]


def test_results_have_the_keys_of_their_types(story: pprofdiff.Diff):
    heap = pair("go-heap")
    keys_are(story.top().summary, TableSummary)
    keys_are(story.new[0].top().summary, TableSummary)
    both = pprofdiff.diff(*heap).top(sample_type=["alloc_objects", "alloc_space"]).summary
    keys_are(both, TableSummary)
    keys_are(pprofdiff.diff([heap[0], heap[0]], heap[1]).top().summary, TableSummary)
    for sample_type in both["sample_types"]:
        keys_are(sample_type, SampleType)
    for one in (story, story.new[0]):
        (routine, *_) = one.list("tableInsensitive").routines
        keys_are(routine, Routine)
        for line in routine["lines"]:
            keys_are(line, SourceLine)
    series = pprofdiff.series([heap[0], heap[1], "none"])
    for made in (*series.builds, *series.movers().summary["builds"]):
        keys_are(made, Build)
    keys_are(series.steps().summary, TableSummary)
    (rule,) = pprofdiff.check(*heap, ["cum:any>+1%"]).rules
    keys_are(rule, RuleCheck)
    keys_are(story.explain().to_dict(), Explained)
    (failed,) = pprofdiff.check(*pair("story-cpu"), ["total>+5%"]).rules
    keys_are(failed["why"], Explained)
    for finding in rule["findings"]:
        keys_are(finding, Finding)
        keys_are(finding["base"], Runs)
    for result in pprofdiff.batch([heap, (heap[0], "none")]).tables(1):
        keys_are(result.summary, PairSummary)


def test_normalize_accepts_modes_and_factors(story: pprofdiff.Diff):
    scaled = story.normalize("total").top().summary
    assert scaled["total_new"] == scaled["total_base"]
    assert scaled["normalize"]["mode"] == "total"
    assert story.normalize(0.5).top().summary["normalize"] == {"mode": "factor", "factor": 0.5}
    assert story.normalize(2).top().summary["normalize"]["factor"] == 2.0
    assert story.normalize("duration").normalize(None).top().to_dicts() == story.top().to_dicts()


def test_one_profile_can_be_filtered(story: pprofdiff.Diff):
    focused = story.new[0].filter(focus="tableInsensitive")
    assert isinstance(focused, pprofdiff.Diff)
    assert (focused.base, focused.new) == ([], [story.new[0]])
    assert focused.top().kind == "top"
    assert 0 < len(focused.top()) < len(story.new[0].top())
    assert len(pprofdiff.load(focused.to_bytes()).top()) == len(focused.top())


def test_files_of_a_side_are_summed_on_request():
    base, new = pair("go-heap")
    once, twice = pprofdiff.diff(base, new), pprofdiff.diff([base, base], (new, new), sum=True)
    assert [len(twice.base), len(twice.new)] == [2, 2]
    doubled = {r["name"]: 2 * r["flat_delta"] for r in once.top()}
    assert {r["name"]: r["flat_delta"] for r in twice.top()} == doubled


def test_given_profiles_are_not_copied():
    base, new = (pprofdiff.load(p) for p in pair("go-heap"))
    d = pprofdiff.diff([base, pair("go-heap")[0]], new)
    assert d.base[0] is base
    assert d.base[1] is not base
    assert d.new == [new]


def test_a_written_diff_opens_again(story: pprofdiff.Diff, tmp_path: Path):
    story.write(tmp_path / "diff.pb.gz")
    p = pprofdiff.load(tmp_path / "diff.pb.gz")
    assert p.is_diff
    assert p.top().kind == "diff"
    assert p.top().to_dicts() == story.top().to_dicts()
    again = p.filter(focus="canonical")
    assert again.top().to_dicts() == story.filter(focus="canonical").top().to_dicts()
    assert again.base == again.new == [p]
    assert p.normalize("total").top().to_dicts() == story.normalize("total").top().to_dicts()
    with pytest.raises(pprofdiff.PprofError, match="tagroot"):
        story.filter(tagroot="a").to_bytes()


def test_repr_is_what_the_command_prints(story: pprofdiff.Diff):
    base, new = pair("story-cpu")
    command = [sys.executable, "-m", "pprofdiff", base, new]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert repr(story) == done.stdout.rstrip()
    assert repr(story.top(20)) == repr(story)
    assert repr(story.new[0]).startswith(story.new[0].name)


def test_repr_never_fails():
    zero = pprofdiff.load(profile([(["main"], 0, {})]))
    d = pprofdiff.diff(zero, zero).normalize("total")
    assert repr(d).startswith("pprofdiff: ")
    assert "pprofdiff: " in d._repr_html_()


def test_numbers_beyond_2_to_the_53():
    big = 2**62 + 1
    p = pprofdiff.load(profile([(["main"], big, {})]))
    assert p.top()[0]["flat"] == big
    assert p.totals == [big]
    assert json.loads(p.top().to_json())["rows"][0]["flat"] == big
    assert p.top().summary["total"] == big


@pytest.mark.parametrize("prefix", ["logmill", ["elsewhere", "logmill/"]])
def test_path_prefixes_are_trimmed(story: pprofdiff.Diff, prefix: str | list[str]):
    files = story.top(granularity="files", trim_path=prefix)
    assert "headers/table.go" in {r["file"] for r in files}
    assert files.summary["trim_path"] == ([prefix] if isinstance(prefix, str) else prefix)
    assert "headers/table.go:64" in story.folded(granularity="lines", trim_path=prefix)
    assert "logmill/headers/table.go" in {r["file"] for r in story.top(granularity="files", trim_path="")}
    (many,) = pprofdiff.batch([(story.base[0], story.new[0])]).tables(granularity="files", trim_path=prefix)
    assert many.table is not None
    assert many.table.to_csv() == files.to_csv()
    history = pprofdiff.series([story.base[0], story.new[0]], granularity="files", trim_path=prefix)
    assert "headers/table.go" in {r["file"] for r in history.movers()}


def test_an_unmatched_name_gives_a_warning_with_the_nearest_name():
    diff = pprofdiff.diff(*pair("story-cpu"))
    like = r'matches "tableinsensitve"; did you mean logmill/headers.tableInsensitive\?$'
    with pytest.warns(UserWarning, match=f"^no frame {like}"):
        assert len(diff.peek("tableinsensitve")) == 0
    with pytest.warns(UserWarning, match=f"^no function {like}"):
        assert diff.list("tableinsensitve").routines == []
    with pytest.warns(UserWarning, match=r"^no frame matches \"no such frame\"$"):
        diff.new[0].peek("no such frame")
    with pytest.warns(UserWarning, match=r'^focus "tableinsensitve" matched nothing$'):
        diff.filter(focus="tableinsensitve").top()


def test_small_rows_are_hidden(story: pprofdiff.Diff):
    shown = story.top(sort="cum", hide_below=50)
    totals = {side: story.top().summary[f"total_{side}"] for side in ("base", "new")}
    assert 0 < len(shown) < len(story.top())
    assert all(max(row[f"cum_{side}"] / totals[side] for side in totals) >= 0.5 for row in shown)
    assert "hide_below=50" in shown._repr_html_()
    with pytest.raises(pprofdiff.PprofError, match="stacks does not support hide_below"):
        story.stacks(hide_below=50)


def test_roots_shows_the_chains_to_the_first_match(story: pprofdiff.Diff):
    roots = story.roots("mallocgc")
    assert len(roots) > 1
    assert all("mallocgc" in row["frames"][-1] for row in roots)
    assert len(story.roots("mallocgc", 1)) == 1
    with pytest.warns(UserWarning, match="no frame matches"):
        assert len(story.roots("no such")) == 0


def test_a_notebook_shows_the_options_of_a_view(story: pprofdiff.Diff):
    html = story.top(granularity="lines", match="canonical", noinlines=True)._repr_html_()
    assert all(text in html for text in ("granularity=lines", "match=canonical", "noinlines"))
