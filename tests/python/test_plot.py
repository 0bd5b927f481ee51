"""Tests of charts: their data equal the rows in one readable unit, Vega-Lite accepts and draws them, and names stay
text."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import altair
import pytest
import vl_convert

import pprofdiff
from conftest import CORPUS, pair, profile

SNAPSHOTS = sorted((CORPUS / "series").glob("heap-*.pb.gz"))
FREIGHT = CORPUS / "faults" / "freight"
DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</script><img src=x onerror=alert(1)>"


def drawn(chart: Any) -> list[ET.Element]:
    """Returns the marks of the picture. Their aria-labels are the descriptions for screen readers."""
    root = ET.fromstring(vl_convert.vegalite_to_svg(chart.to_json()))
    assert {e.tag for e in root.iter()} <= {
        SVG + t for t in ("svg", "g", "path", "text", "rect", "line", "tspan", "defs", "clipPath")
    }
    return [e for e in root.iter() if e.get("role") == "graphics-symbol"]


def marks(chart: Any, kind: str) -> list[ET.Element]:
    return [e for e in drawn(chart) if e.get("aria-roledescription") == kind]


def values(chart: Any, *place: str | int) -> list[dict[str, Any]]:
    """Returns the data of a chart or of a part of it. altair moves some data to the end of the specification."""
    spec = chart.to_dict()
    part = spec
    for step in place:
        part = part[step]
    return part["data"]["values"] if "values" in part["data"] else spec["datasets"][part["data"]["name"]]


def x_title(chart: Any) -> str:
    return chart.to_dict()["layer"][0]["encoding"]["x"]["title"]


def test_two_sides_are_drawn_as_deltas(story: pprofdiff.Diff):
    table = story.filter(focus="logmill/", show="logmill/").top(9, sort="cum")
    chart = table.plot()
    assert isinstance(chart, altair.LayerChart)
    rows = values(chart)
    assert [row["name"] for row in rows] == table["name"]
    assert rows[0]["label"] == "names.compare"
    for side in ("base", "new", "delta"):
        assert [row[side] for row in rows] == pytest.approx([v / 1e9 for v in table[f"cum_{side}"]])
    assert x_title(chart) == "cum: change (s)"
    assert rows[0]["growth"] == "x8.4"
    assert rows[0]["cum"] == "0.20s → 1.68s  +1.48s  x8.4  +77.89% of total"
    assert rows[0]["flat"].startswith("0.17s → 0.25s")
    assert {row["change"]: row["delta"] < 0 for row in rows} == {"more": False, "less": True}
    bars = marks(chart, "bar")
    assert len(bars) == 9
    # Blue bars to the left for less, red bars to the right for more, with matching lengths.
    colours = {"less": "#2f6fc4", "more": "#cf4237"}
    assert [bar.get("fill") for bar in bars] == [colours[row["change"]] for row in rows]
    lengths = [abs(float(re.findall(r"[hH](-?[\d.]+)", bar.get("d") or "")[0])) for bar in bars]
    assert [n / lengths[0] for n in lengths] == pytest.approx(
        [abs(r["delta"]) / rows[0]["delta"] for r in rows], rel=1e-2
    )
    words = {e.text for e in ET.fromstring(vl_convert.vegalite_to_svg(chart.to_json())).iter()}
    assert {"cpu: 1.90s → 2.93s  +1.03s  +54.2%", "9 of 29 rows", "names.compare", "x8.4"} <= words
    assert len(values(table.plot(3))) == 3
    # In the order of the table.
    assert [row["name"] for row in values(table.sort("name", descending=False).plot())] == sorted(table["name"])
    assert "normalized by total" in str(story.normalize("total").top().plot().to_dict()["title"])


def test_one_side_is_drawn_as_values(story: pprofdiff.Diff):
    table = story.new[0].top(5)
    chart = table.plot()
    assert [row["value"] for row in values(chart)] == pytest.approx([v / 1e9 for v in table["flat"]])
    assert x_title(chart) == "flat (s)"
    assert len(marks(chart, "bar")) == 5
    counted = story.new[0].top(5, sample_type="samples").plot()
    assert x_title(counted) == "flat (count)"
    assert [row["value"] for row in values(counted)] == story.new[0].top(5, sample_type="samples")["flat"]


def test_runs_have_whiskers_and_values_within_chance_are_grey():
    sides = ([FREIGHT / f"{build}-{i}.cpu.pb.gz" for i in (1, 2, 3)] for build in ("base", "calls"))
    table = pprofdiff.diff(*sides).top(20, sort="cum")
    chart = table.plot()
    rows = values(chart)
    for row, table_row in zip(rows, table, strict=True):
        half = math.hypot(table_row["base_sd"], table_row["new_sd"]) / table_row["cum_delta"] * row["delta"]
        assert (row["high"] - row["low"]) / 2 == pytest.approx(abs(half))
        assert (row["change"] == "no more than chance") == (table_row["q"] is None or table_row["q"] > 0.05)
    assert {row["change"] for row in rows} >= {"more", "no more than chance"}
    assert len(marks(chart, "rule mark")) == 20
    assert "standard deviation" in str(chart.to_dict()["title"])


def test_all_kinds_of_tables_can_be_drawn(story: pprofdiff.Diff, labelled: pprofdiff.Diff):
    series = pprofdiff.series(SNAPSHOTS, sample_type="alloc_space")
    tables = [story.peek("names"), story.tree(), story.stacks(), labelled.labels(), story.explain().causes]
    tables += [story.new[0].stacks(labels=True), story.top(granularity="lines")]
    tables += [series.shifts(), series.movers(), series.steps()]
    for table in tables:
        chart = table.plot(7)
        shown = min(7, len(table))
        labels = [row["label"] for row in values(chart)]
        assert len(set(labels)) == len(marks(chart, "bar")) == shown > 0, table.kind
        assert all(0 < len(label) < 70 for label in labels)
    assert values(story.peek("tableInsensitive").plot())[0]["label"] == "headers.Classify → headers.tableInsensitive"
    assert len(marks(series.shifts(3).plot(), "rule mark")) == 3
    assert values(story.top(0).plot()) == []
    with pytest.raises(pprofdiff.PprofError, match=r"plot\(\) of the series"):
        series.values().plot()


def test_several_sample_types_are_drawn_side_by_side():
    d = pprofdiff.diff(*pair("go-heap"))
    table = d.top(6, sample_type=["alloc_objects", "alloc_space"])
    panels = table.plot().to_dict()["hconcat"]
    assert [p["layer"][0]["encoding"]["x"]["title"] for p in panels] == [
        "alloc_objects flat: change (count)",
        "alloc_space flat: change (MB)",
    ]
    space = values(table.plot(), "hconcat", 1)
    assert [r["delta"] for r in space] == pytest.approx([v / 2**20 for v in table["alloc_space_flat_delta"]])
    assert len(marks(table.plot(), "bar")) == 12


def test_a_series_is_drawn_as_timelines():
    series = pprofdiff.series(SNAPSHOTS, sample_type="alloc_space")
    chart = series.plot(3)
    changes, courses = values(chart, "layer", 0), values(chart, "layer", 1)
    shifts = series.shifts(3)
    assert [(r["name"], r["build"]) for r in changes] == [(s["name"], s["since"]) for s in shifts]
    expected = {(r["build"], r["name"]): r["flat"] / 2**20 for r in series.values(dense=True)}
    assert len(courses) == 12 * len(set(shifts["name"]))
    for point in courses:
        assert point["value"] == pytest.approx(expected[point["build"], point["name"]])
    assert chart.to_dict()["layer"][1]["encoding"]["y"]["title"] == "flat (MB)"
    assert len(marks(chart, "rule mark")) == 3
    assert len(marks(chart, "line mark")) == len(set(shifts["name"]))
    # Too few builds for lasting changes: the frames with the largest changes.
    few = pprofdiff.series(SNAPSHOTS[:4], sample_type="alloc_space")
    assert few.plot(2).to_dict()["title"]["text"] == "the frames that moved most, by flat"
    assert {point["name"] for point in values(few.plot(2), "layer", 1)} == set(few.movers(2)["name"])


def test_without_altair_plots_are_still_drawn_by_notebooks(story: pprofdiff.Diff):
    code = "import sys, json; sys.modules['altair'] = None; import pprofdiff; "
    code += "p = pprofdiff.diff(*sys.argv[1:]).top(3).plot(); "
    code += "print(json.dumps([repr(p), p.to_dict(), json.loads(p.to_json()), p._repr_mimebundle_()]))"
    done = subprocess.run([sys.executable, "-c", code, *pair("story-cpu")], capture_output=True, text=True, check=True)
    text, spec, same, bundle = json.loads(done.stdout)
    assert text.startswith("<Plot of cpu: 1.90s → 2.93s")
    assert spec == same == bundle["application/vnd.vegalite.v6+json"]
    older = bundle["application/vnd.vegalite.v5+json"]
    assert (older["$schema"][-7:], older | {"$schema": spec["$schema"]}) == ("v5.json", spec)
    ours, theirs = spec["data"]["values"], values(story.top(3).plot())
    assert ours == theirs
    altair.Chart.from_dict(spec)


def test_hostile_names_stay_text():
    equal = profile([(["a" * 100 + str(i), EVIL, "datum.x', alert(1), '"], 10 + i, {}) for i in range(2)])
    table = pprofdiff.diff(profile([([EVIL, "\x1b[31m"], 10, {EVIL: EVIL})]), equal).top()
    chart = table.plot()
    assert {row["name"] for row in values(chart)} >= {EVIL, "\ufffd[31m"}
    assert len(marks(chart, "bar")) == len(table)
    without_data = json.dumps({k: v for k, v in chart.to_dict().items() if k != "datasets"})
    assert "alert" not in without_data
    # Names that are truncated to the same text are still distinguished.
    labels = [row["label"] for row in values(chart)]
    assert len(set(labels)) == len(labels)
    stack = profile([([EVIL] * 3000, 1, {})])
    assert len(pprofdiff.load(stack).stacks().plot().to_json()) < 10_000


def test_the_documents_show_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """To update the picture: UPDATE_GOLDENS=1 pytest tests/python/test_plot.py -k documents."""
    picture = DOCS / "plot.png"
    if os.environ.get("UPDATE_GOLDENS"):
        for source, name in zip(pair("story-cpu"), ("main.pb.gz", "branch.pb.gz"), strict=True):
            shutil.copy(source, tmp_path / name)
        monkeypatch.chdir(tmp_path)
        d = pprofdiff.diff("main.pb.gz", "branch.pb.gz").filter(focus="logmill/", show="logmill/")
        picture.write_bytes(vl_convert.vegalite_to_png(d.top(9, sort="cum").plot().to_json(), scale=1.5))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 150_000
    assert "](plot.png)" in (DOCS / "notebooks.md").read_text()
