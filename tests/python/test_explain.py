"""Tests of explain(): the same results as from the command, as a dict, a table, Markdown and HTML."""

import json
import pickle
import subprocess
import sys

import polars
import pytest

import pprofdiff
from conftest import CORPUS, pair


def _command(*args: str) -> str:
    command = [sys.executable, "-m", "pprofdiff", "explain", *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_explain_gives_the_same_results_as_the_command():
    base, new = pair("story-cpu")
    explained = pprofdiff.diff(base, new).explain()
    written = json.loads(_command(str(base), str(new), "--format", "json"))
    assert explained.to_dict() == written == json.loads(explained.to_json())
    # The suggested code for the stacks of a cause is Python.
    text = repr(explained).splitlines()
    (position,) = [i for i, line in enumerate(text) if line.startswith("   d.")]
    command = _command(str(base), str(new)).splitlines()
    assert command[position].startswith("   pprofdiff peek ")
    assert text[:position] + text[position + 1 :] == command[:position] + command[position + 1 :]
    assert explained.to_markdown() == _command(str(base), str(new), "--format", "markdown")
    assert (explained.verdict, explained.exit_code) == ("change", 1)
    assert explained.warnings == written["warnings"]
    assert isinstance(explained, pprofdiff.Rendered)


def test_suggested_code_is_python():
    d = pprofdiff.diff(*pair("story-cpu"))
    explained = d.explain()
    (call,) = [line.strip() for line in repr(explained).splitlines() if line.startswith("   d.")]
    peeked = eval(call, {"d": d})
    best = explained.best
    assert best == explained.to_dict()["causes"][0]
    assert {row["node"] for row in peeked} == {best["function"]}
    assert peeked.summary["sample_type"] == "cpu"
    # Stacks of other causes are excluded, and a label is filtered.
    both = pprofdiff.diff(*pair("go-heap-ops")).explain(sample_type="alloc_space")
    written = [line for line in repr(both).splitlines() if line.startswith("   d.")]
    ignore = both.to_dict()["causes"][0]["evidence"]["ignore"]
    assert len(written) == 1
    assert (".filter(ignore=" in written[0]) == (ignore is not None)
    # Each paragraph has the call for its own sample type.
    heap = pprofdiff.diff(*pair("go-heap"))
    calls = [line.strip() for line in repr(heap.explain()).splitlines() if line.startswith("   d.")]
    tables = [eval(call, {"d": heap}) for call in calls]
    assert [table.summary["sample_type"] for table in tables] == ["inuse_space", "alloc_space"]
    assert [{row["node"] for row in table} for table in tables] == [{"main.readChunk"}, {"main.renderPage"}]
    account = explained.account
    parts = account["work"] + account["causes"] + account["consequences"] + account["rest"]
    assert parts == pytest.approx(account["delta"])
    assert d.total == (1_900_000_000, 2_930_000_000)
    assert account["delta"] == d.total[1] - d.total[0]
    assert d.normalize(0.5).total == (1_900_000_000, 1_465_000_000)
    assert d.new[0].total == (2_930_000_000,)
    assert explained.noise["runs"] == [1, 1]
    assert explained.moved == explained.to_dict()["moved"]
    # Without a cause, the best candidate, if there is one.
    unsure = pprofdiff.diff(*pair("gperftools-cpu")).explain()
    assert (unsure.verdict, unsure.exit_code) == ("inconclusive", 3)
    assert unsure.best == unsure.to_dict()["candidate"]
    assert unsure.best
    assert pprofdiff.diff(d.base, d.base).explain().best is None


def test_causes_are_available_as_a_table():
    explained = pprofdiff.diff(*pair("story-cpu")).explain()
    causes = explained.causes.to_polars()
    assert causes["function"].to_list() == ["logmill/names.canonical", "logmill/accesslog.cleanName"]
    assert causes["kind"].to_list() == ["added", "removed"]
    assert causes["delta"].to_list() == [1_390_000_000, -290_000_000]
    assert causes["factor"].to_list() == [None, 0.0]
    assert causes.schema["score"] == polars.Float64
    assert [c["function"] for c in explained.to_dict()["causes"]] == causes["function"].to_list()


def test_a_notebook_shows_the_account_as_bars():
    explained = pprofdiff.diff(*pair("story-cpu")).explain()
    html = explained._repr_html_()
    assert "<code>logmill/names.canonical</code>" in html
    # The base, two causes, consequences, the remainder and the new side. The notebook has no script, so there are no
    # buttons.
    assert html.count("<rect") == 6
    assert "<button" not in html


def test_options_equal_those_of_the_command():
    base, new = pair("go-heap-ops")
    d = pprofdiff.diff(base, new)
    given = d.explain(ops=(1000, 3000)).to_dict()
    assert given["scale"] == {**given["scale"], "factor": 3.0, "rule": "ops given"}
    assert d.explain(sample_type="alloc_space", min_effect=0.5).causes.to_polars().is_empty()
    assert d.explain(sample_type="inuse_space").to_dict()["sample_type"] == "inuse_space"
    for bad in ({"ops": (0, 1)}, {"min_effect": 2.0}, {"granularity": "lines"}, {"normalize": "total"}):
        with pytest.raises(pprofdiff.PprofError):
            d.explain(**bad)
    with pytest.raises(pprofdiff.PprofError, match="two sides"):
        pprofdiff.load(base).explain()


def test_a_configuration_names_runtime_functions(tmp_path):
    config = tmp_path / "pprofdiff.toml"
    config.write_text("[explain]\nbackground = ['canonical$']\n")
    explained = pprofdiff.diff(*pair("story-cpu")).explain(config=config).to_dict()
    assert explained["background"] > 0.5
    assert "logmill/names.canonical" not in [c["function"] for c in explained["causes"]]
    with pytest.raises(FileNotFoundError):
        pprofdiff.diff(*pair("story-cpu")).explain(config=tmp_path / "none.toml")


def test_noise_is_estimated_from_runs_of_equal_builds():
    folder = CORPUS / "faults" / "freight"
    d = pprofdiff.diff(folder / "base-1.cpu.pb.gz", folder / "calls-1.cpu.pb.gz")
    equal = sorted(folder.glob("equal-*.cpu.pb.gz"))
    explained = d.explain(noise=equal).to_dict()
    assert explained["noise"]["learned"] == len(equal) == 3
    assert explained["base"]["paths"] == [str(folder / "base-1.cpu.pb.gz")]
    sides = (*explained["base"]["paths"], *explained["new"]["paths"])
    expected = _command(*sides, "--noise", *map(str, equal), "--format", "json")
    assert explained == json.loads(expected)


def test_runs_are_not_summed():
    folder = CORPUS / "faults" / "freight"
    runs = [[folder / f"{build}-{run}.cpu.pb.gz" for run in (1, 2, 3)] for build in ("base", "calls")]
    explained = pprofdiff.diff(*runs).explain().to_dict()
    assert explained["noise"]["runs"] == [3, 3]
    assert explained["causes"][0]["function"] == "freight/tariff.Make"


def test_explanations_can_be_pickled():
    explained = pprofdiff.diff(*pair("story-cpu")).explain()
    again = pickle.loads(pickle.dumps(explained))
    assert again.to_dict() == explained.to_dict()
    assert again.causes.to_polars().equals(explained.causes.to_polars())
    assert (repr(again), again.to_html(), again.verdict) == (repr(explained), explained.to_html(), explained.verdict)


def test_many_pairs_are_explained_in_a_batch():
    pairs = [pprofdiff.Pair(*pair(name), name=name) for name in ("story-cpu", "go-heap-ops")]
    tables = {r.name: r.table.to_polars() for r in pprofdiff.batch(pairs).tables(view="explain")}
    for name, table in tables.items():
        assert table.equals(pprofdiff.diff(*pair(name)).explain().causes.to_polars())
    # For a heap, memory in use is explained. All of it grew uniformly.
    assert tables["go-heap-ops"]["function"].to_list() == [None]


def test_advice_names_keywords_and_not_options_of_the_command():
    d = pprofdiff.diff(*pair("cpp-cpu"))
    explanation = d.explain()
    for text in (repr(explanation), explanation.to_markdown(), explanation.to_html(), d._repr_html_()):
        assert "Pass ops=(N0, N1) with the number of operations per side" in text
        assert "--ops" not in text
    with pytest.raises(pprofdiff.PprofError, match="if it is known, give ops="):
        d.normalize("total").explain()
    d = pprofdiff.diff(*pair("gperftools-heap"))
    explanation, top = d.explain(), d.top()
    texts = [repr(d), d._repr_html_(), repr(top), top.to_markdown(), top._repr_html_(), d.callgraph()._repr_html_()]
    texts += [repr(explanation), explanation.to_html(), *explanation.warnings]
    texts += pprofdiff.load(pair("gperftools-heap")[0]).warnings
    texts.append(repr(pprofdiff.check(*pair("gperftools-heap"), ["total>+5%"])))
    for text in texts:
        assert text is not None
        assert "the names are in that binary (binary=)" in text
        assert "--binary" not in text
