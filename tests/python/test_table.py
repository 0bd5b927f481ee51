"""A Table as a sequence of dicts, and as text."""

import csv
import io
import json

import pytest

import pprofdiff
from conftest import profile


@pytest.fixture
def table(story: pprofdiff.Diff) -> pprofdiff.Table:
    return story.top()


def test_it_is_a_sequence_of_dicts(table: pprofdiff.Table):
    rows = table.to_dicts()
    assert len(table) == len(rows) == table.rows_total
    assert list(table) == rows
    assert [table[i] for i in range(len(table))] == rows
    assert [table[-1], table[-len(rows)]] == [rows[-1], rows[0]]
    assert list(rows[0]) == table.columns
    for bad in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError):
            table[bad]
    with pytest.raises(TypeError, match=r"column\(\)"):
        table["name"]
    with pytest.raises(TypeError):
        table[1.5]


@pytest.mark.parametrize(
    "cut", [slice(5), slice(-3, None), slice(1, 9, 3), slice(None, None, -1), slice(7, 2, -2), slice(3, 3)]
)
def test_slices_are_tables(table: pprofdiff.Table, cut: slice):
    part = table[cut]
    assert isinstance(part, pprofdiff.Table)
    assert part.to_dicts() == table.to_dicts()[cut]
    assert part.rows_total == table.rows_total
    assert part.summary == table.summary


def test_sort(table: pprofdiff.Table):
    for column in table.columns:
        down, up = table.sort(column).column(column), table.sort(column, descending=False).column(column)
        key = (lambda v: (v is not None, v)) if None not in down else (lambda v: v is not None)
        assert down == sorted(down, key=key, reverse=True)
        assert up == sorted(up, key=key)
    assert [r["name"] for r in table.sort("name", False)] == sorted(table.column("name"))
    # Rows that are equal keep their order.
    statuses = table.sort("status", False)
    for status in ("added", "changed"):
        rows = [r for r in statuses if r["status"] == status]
        assert rows == [r for r in table if r["status"] == status]


def test_head_counts_nodes_where_rows_are_edges(story: pprofdiff.Diff, table: pprofdiff.Table):
    assert len(table.head()) == 20
    assert len(table.head(3)) == 3
    assert len(table.head(10**9)) == len(table)
    tree = story.tree()
    assert len(set(tree.head(3).column("node"))) == 3
    assert tree.head(3).to_dicts() == story.tree(3).to_dicts()


def test_column(story: pprofdiff.Diff):
    assert story.stacks().column("frames")[0][0] == "runtime.main"
    assert set(story.top().column("line")) == {None}


def test_summary(table: pprofdiff.Table):
    s = table.summary
    assert list(s)[:3] == ["base", "new", "sample_type"]
    assert s["base"]["samples"] == 156
    assert s["total_delta"] == s["total_new"] - s["total_base"]


def test_json(table: pprofdiff.Table):
    parsed = json.loads(table.to_json())
    assert parsed["schema"] == "pprofdiff/1"
    assert parsed["rows"] == table.to_dicts()
    assert {k: parsed[k] for k in table.summary} == table.summary


def test_csv(table: pprofdiff.Table):
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [r["name"] for r in rows] == table.column("name")
    assert [int(r["flat_delta"]) for r in rows] == table.column("flat_delta")


def test_csv_for_spreadsheets():
    table = pprofdiff.load(profile([(["=1+1", "main"], 5, {})])).stacks()
    assert table.to_csv().splitlines()[1] == "=1+1;main,5"
    assert table.to_csv(quote_formulas=True) == table.to_csv().replace("=1+1", "'=1+1")


def test_markdown(table: pprofdiff.Table):
    text = table[:2].to_markdown()
    assert "indexbytebody" in text
    assert "|" in text


def test_an_empty_table(story: pprofdiff.Diff):
    empty = story.top(0)
    assert (len(empty), list(empty), empty.to_dicts()) == (0, [], [])
    assert json.loads(empty.to_json())["rows"] == []
    for text in (repr(empty), empty._repr_html_(), empty.to_markdown(), empty.to_csv()):
        assert text


def test_text_is_cut_after_twenty_rows(table: pprofdiff.Table):
    assert f"20 of {len(table)} frames" in repr(table)
    assert table._repr_html_().count("<tr>") == 21
