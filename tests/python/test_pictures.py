"""Tests of call graphs and listings: their display in notebooks, and saved files."""

import json
import pickle
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import pprofdiff
from conftest import pair, profile

SVG = "{http://www.w3.org/2000/svg}"
SOURCES = Path(__file__).parents[1] / "producers" / "story"
EVIL = "</script><img src=x onerror=alert(1)>"


def words(svg: str) -> set[str]:
    """Returns the texts in a picture."""
    return {text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")}


def test_callgraph_of_a_diff_and_of_one_profile(story: pprofdiff.Diff):
    graph = story.callgraph()
    assert repr(graph).startswith("<CallGraph of 80 frames and ")
    assert {"names.canonical", "cum 0 → 1.39s  new", "+73.16% of total"} <= words(graph.to_svg())
    assert graph.to_dot().startswith("digraph")
    assert graph._repr_svg_() == graph.to_svg()
    assert graph.to_svg() in (graph._repr_html_() or "")
    one = story.base[0].callgraph(5, sort="cum", node_fraction=0, edge_fraction=0)
    assert repr(one).startswith("<CallGraph of 5 frames")
    assert "0 of 1.85s (97.37%)" in words(one.to_svg())


def test_a_graph_that_is_too_large_for_a_picture_can_still_be_written(story: pprofdiff.Diff):
    tree = story.base[0].callgraph(0, node_fraction=0, edge_fraction=0, call_tree=True)
    plain = story.base[0].callgraph(0, node_fraction=0, edge_fraction=0)
    assert tree.to_dot().count("\nN") > plain.to_dot().count("\nN")
    graph = story.callgraph(0, node_fraction=0, granularity="addresses")
    assert graph._repr_svg_() is None
    assert graph._repr_html_() is None
    assert graph.to_dot().startswith("digraph")
    with pytest.raises(pprofdiff.PprofError, match="too many for a picture"):
        graph.to_svg()


def test_invalid_options_are_errors(story: pprofdiff.Diff):
    with pytest.raises(pprofdiff.PprofError, match="from 0 to 1"):
        story.callgraph(node_fraction=2)
    with pytest.raises(pprofdiff.PprofError, match="'flat' or 'cum'"):
        story.callgraph(sort="name")  # type: ignore[arg-type]
    with pytest.raises(pprofdiff.PprofError, match="regular expression of list"):
        story.list("(")


def test_list_of_a_diff_and_of_one_profile(story: pprofdiff.Diff):
    listing = story.list("tableInsensitive", source_path=SOURCES)
    (routine,) = listing.routines
    assert routine["file"] == "logmill/headers/table.go"
    assert routine["new_source"] == str(SOURCES / "logmill/headers/table.go")
    (call,) = [line for line in routine["lines"] if "names.Same" in line["text"]]
    assert (call["base_line"], call["cum_base"], call["cum_new"]) == (64, 330_000_000, 1_780_000_000)
    assert "names.Same(table[i].name, name)" in repr(listing)
    assert "names.Same(table[i].name, name)" in listing._repr_html_()

    assert "no source" not in repr(listing)
    without = story.list("tableInsensitive")
    hint = "set the folders with base_source= and new_source=, or one for both with source_path="
    assert repr(without).endswith(hint)
    assert hint in without._repr_html_()
    assert without.routines[0]["notes"] == ["no source of either side: lines are paired by their numbers"]

    (routine,) = story.new[0].list("tableInsensitive").routines
    assert {line["line"]: line["cum"] for line in routine["lines"]}[64] == 1_780_000_000
    with pytest.warns(UserWarning, match="no function matches"):
        assert story.list("no such function").routines == []


def test_each_side_has_its_sources(story: pprofdiff.Diff, tmp_path: Path):
    branch = tmp_path / "logmill"
    shutil.copytree(SOURCES / "logmill", branch)
    table = branch / "headers/table.go"
    table.write_text("// A line more.\n" + table.read_text())
    base = [tmp_path / "nowhere", SOURCES / "logmill"]
    listing = story.list("tableInsensitive", base_source=base, new_source=str(branch), trim_path="logmill")
    (routine,) = listing.routines
    assert routine["base_source"] == str(SOURCES / "logmill/headers/table.go")
    assert routine["new_source"] == str(table)
    assert all(line["new_line"] == line["base_line"] + 1 for line in routine["lines"] if line["text"])


def test_pictures_and_listings_can_be_saved(story: pprofdiff.Diff, tmp_path: Path):
    graph, listing = story.callgraph(10), story.list("names")
    graph.save(tmp_path / "a.svg")
    graph.save(str(tmp_path / "a.dot"))
    graph.save(tmp_path / "upper.SVG")
    for name in ("a.svg", "upper.SVG"):
        assert words((tmp_path / name).read_text()) == words(graph.to_svg())
    assert (tmp_path / "a.dot").read_text() == graph.to_dot()
    for name in ("a.html", "a.json", "a.txt"):
        listing.save(tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text())["routines"] == listing.routines
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "a.txt").read_text() == repr(listing) + "\n"
    for saved in (graph, listing):
        with pytest.raises(pprofdiff.PprofError, match="must end in"):
            saved.save(tmp_path / "a.png")
        with pytest.raises(FileNotFoundError):
            saved.save(tmp_path / "no folder" / ("a.svg" if saved is graph else "a.txt"))


def test_call_graphs_and_listings_can_be_pickled(story: pprofdiff.Diff):
    graph, listing = pickle.loads(pickle.dumps((story.callgraph(10), story.list("names"))))
    assert graph.to_svg() == story.callgraph(10).to_svg()
    assert (graph.to_dot(), repr(graph)) == (story.callgraph(10).to_dot(), repr(story.callgraph(10)))
    assert (listing.routines, repr(listing)) == (story.list("names").routines, repr(story.list("names")))
    assert listing._repr_html_() == story.list("names")._repr_html_()


def test_the_extension_decides_the_format_of_a_flame_graph(story: pprofdiff.Diff, tmp_path: Path):
    graph = story.filter(focus="logmill/").flamegraph(sample_type="cpu")
    graph.save(tmp_path / "a.html")
    graph.save(str(tmp_path / "a.flame.SVG"))
    assert (tmp_path / "a.html").read_text() == graph.to_html()
    svg = (tmp_path / "a.flame.SVG").read_text()
    assert svg == f"{graph.to_svg()}\n"
    assert "<script" not in svg
    assert any("names.canonical" in text for text in words(svg))
    command = [sys.executable, "-m", "pprofdiff", *map(str, pair("story-cpu")), "--focus", "logmill/", "-o"]
    subprocess.run([*command, "b.flame.svg", "--sample-type", "cpu"], cwd=tmp_path, check=True)
    assert (tmp_path / "b.flame.svg").read_text() == svg
    again = pickle.loads(pickle.dumps(story.filter(focus="logmill/").flamegraph(sample_type="cpu")))
    again.save(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == svg
    for name in ("a", "a.png", "a.json"):
        with pytest.raises(pprofdiff.PprofError, match=rf"{name}: the file name must end in \.html or \.svg"):
            graph.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_write_writes_what_the_extension_names(story: pprofdiff.Diff, tmp_path: Path):
    one = story.new[0]
    for views in (story, story.filter(focus="logmill/"), one):
        contents = {
            "x.html": views.to_html(),
            "x.flame.svg": f"{views.flamegraph().to_svg()}\n",
            "x.csv": views.top().to_csv(),
            "x.json": views.top().to_json(),
            "x.md": views.top().to_markdown(),
            "x.txt": views.to_text(),
            "x.folded": views.folded(),
        }
        for name, content in contents.items():
            views.write(tmp_path / name)
            assert (tmp_path / name).read_text() == content, name
        views.write(tmp_path / "x.svg")
        assert words((tmp_path / "x.svg").read_text()) == words(views.callgraph().to_svg())
        for name in ("x", "x.pb", "x.pb.gz", "x.prof"):
            views.write(tmp_path / name)
            assert pprofdiff.load(tmp_path / name).sample_types == views.sample_types
    assert story.to_text() == story.top().to_text()
    assert story.to_text(max_tokens=100) == story.top().to_text(max_tokens=100)
    for name in ("x.pdf", "x.xml", "x.jsonl"):
        with pytest.raises(pprofdiff.PprofError, match=rf"{name}: .*use one of .*\.pb\.gz \(pprof\).*\.html") as error:
            story.write(tmp_path / name)
        assert "junit" not in str(error.value)
        assert not (tmp_path / name).exists()
    story.write(tmp_path / "x.pdf", compression="none")
    assert (tmp_path / "x.pdf").read_bytes() == story.to_bytes("none")


def test_hostile_names_stay_text():
    evil = pprofdiff.diff(profile([([EVIL, "a & b"], 10, {})]), profile([([EVIL], 20, {})]))
    svg = evil.callgraph().to_svg()
    assert {element.tag for element in ET.fromstring(svg).iter()} <= {
        SVG + t for t in ("svg", "g", "rect", "path", "text", "title")
    }
    for html in (evil.callgraph()._repr_html_(), evil.list(".")._repr_html_()):
        assert html is not None
        assert "<img" not in html
        assert "</script" not in html
        assert "&lt;img" in html


def test_speedscope_has_a_profile_per_side(story: pprofdiff.Diff):
    scope = json.loads(story.to_speedscope())
    assert [(p["name"], p["endValue"], p["unit"]) for p in scope["profiles"]] == [
        ("base", 1_900_000_000, "nanoseconds"),
        ("new", 2_930_000_000, "nanoseconds"),
    ]
    one = json.loads(story.base[0].to_speedscope(sample_type="samples"))
    assert [(p["name"], sum(p["weights"]), p["unit"]) for p in one["profiles"]] == [("samples", 190, "none")]
    assert pprofdiff.load(pair("go-heap")[0]).to_speedscope()


def test_speedscope_warns_about_omitted_stacks():
    negative = pprofdiff.load(b"a;b 5\na;c -3\n")
    with pytest.warns(UserWarning, match="omitted stacks of -3, 37.50% of the profile by magnitude"):
        assert json.loads(negative.to_speedscope())["profiles"][0]["weights"] == [5]
