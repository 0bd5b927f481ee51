"""Tests of Table as a sequence of dicts and as text."""

import csv
import io
import json
import pickle
from collections.abc import Callable

import polars
import pytest

import pprofdiff
from conftest import pair, profile


@pytest.fixture
def table(story: pprofdiff.Diff) -> pprofdiff.Table:
    return story.top()


def test_a_table_is_a_sequence_of_dicts(table: pprofdiff.Table):
    rows = table.to_dicts()
    assert len(table) == len(rows) == table.rows_total
    assert list(table) == rows
    assert [table[i] for i in range(len(table))] == rows
    assert [table[-1], table[-len(rows)]] == [rows[-1], rows[0]]
    assert list(rows[0]) == table.columns
    for bad in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError):
            table[bad]
    for name in table.columns:
        assert table[name] == [row[name] for row in rows]
    with pytest.raises(KeyError, match=r"unknown column .names.; the columns are name, file"):
        table["names"]
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


def test_rows_can_be_sorted_by_each_column(table: pprofdiff.Table):
    for column in table.columns:
        down, up = table.sort(column)[column], table.sort(column, descending=False)[column]
        key = (lambda v: (v is not None, v)) if None not in down else (lambda v: v is not None)
        assert down == sorted(down, key=key, reverse=True)
        assert up == sorted(up, key=key)
    assert [r["name"] for r in table.sort("name", False)] == sorted(table["name"])
    # Equal rows keep their order.
    statuses = table.sort("status", False)
    for status in ("added", "changed"):
        rows = [r for r in statuses if r["status"] == status]
        assert rows == [r for r in table if r["status"] == status]


def test_head_counts_nodes_where_rows_are_edges(story: pprofdiff.Diff, table: pprofdiff.Table):
    assert len(table.head()) == 20
    assert len(table.head(3)) == 3
    assert len(table.head(10**9)) == len(table)
    tree = story.tree()
    assert len(set(tree.head(3)["node"])) == 3
    assert tree.head(3).to_dicts() == story.tree(3).to_dicts()


def test_columns_can_be_read_by_name(story: pprofdiff.Diff):
    assert story.stacks()["frames"][0][0] == "runtime.main"
    assert set(story.top()["line"]) == {None}


def test_the_summary_has_sides_and_totals(table: pprofdiff.Table):
    s = table.summary
    assert list(s)[:3] == ["base", "new", "sample_type"]
    assert s["base"]["stacks"] == 156
    assert s["total_delta"] == s["total_new"] - s["total_base"]


def test_json_has_the_rows_and_the_summary(table: pprofdiff.Table):
    parsed = json.loads(table.to_json())
    assert parsed["schema"] == "pprofdiff/1"
    assert parsed["rows"] == table.to_dicts()
    assert {k: parsed[k] for k in table.summary} == table.summary


def test_csv_has_the_rows(table: pprofdiff.Table):
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [r["name"] for r in rows] == table["name"]
    assert [int(r["flat_delta"]) for r in rows] == table["flat_delta"]


def test_csv_can_quote_formulas_for_spreadsheets():
    table = pprofdiff.load(profile([(["=1+1", "main"], 5, {})])).stacks()
    assert table.to_csv().splitlines()[1] == "=1+1;main,5"
    assert table.to_csv(quote_formulas=True) == table.to_csv().replace("=1+1", "'=1+1")


def test_markdown_is_a_table(table: pprofdiff.Table):
    text = table[:2].to_markdown()
    assert "indexbytebody" in text
    assert "|" in text


def test_an_empty_table_can_be_written_in_each_format(story: pprofdiff.Diff):
    empty = story.top(0)
    assert (len(empty), list(empty), empty.to_dicts()) == (0, [], [])
    assert json.loads(empty.to_json())["rows"] == []
    for text in (repr(empty), empty._repr_html_(), empty.to_markdown(), empty.to_csv()):
        assert text


def test_text_is_truncated_after_twenty_rows(table: pprofdiff.Table):
    assert f"20 of {len(table)} frames" in repr(table)
    assert table._repr_html_().count("<tr>") == 21


def test_several_sample_types_are_one_table():
    heap, types = pprofdiff.diff(*pair("go-heap")), ["alloc_objects", "alloc_space"]
    views: dict[str, tuple[Callable[..., pprofdiff.Table], list[str]]] = {
        "top": (heap.top, ["name", "mapping"]),
        "tree": (heap.tree, ["node", "other", "relation"]),
        "peek": (lambda **options: heap.peek("alloc", **options), ["node", "other", "relation"]),
        "stacks": (heap.stacks, ["frames"]),
        "labels": (pprofdiff.diff(*pair("go-labels-cpu")).labels, ["key", "value"]),
    }
    for name, (view, keys) in views.items():
        kinds = ["samples", "cpu"] if name == "labels" else types
        both = view(sample_type=kinds)
        alone = [view(sample_type=sample_type) for sample_type in kinds]
        # A plain join of the tables for each type alone.
        expected: dict[object, dict[str, object]] = {}
        for sample_type, table in zip(kinds, alone, strict=True):
            for row in table:
                costs = [c for c in row if c.endswith(("base", "new", "delta"))]
                joined = expected.setdefault(str([row[k] for k in keys]), {})
                joined |= {f"{sample_type}_{c}": row[c] for c in costs}
        costs = [c for c in both.columns if c.endswith(("base", "new", "delta")) and "ratio" not in c]
        assert len(costs) == 2 * len([c for c in alone[0].columns if c.endswith(("base", "new", "delta"))])
        assert len(both) == len(expected), name
        for row in both:
            joined = expected[str([row[k] for k in keys])]
            assert {c: row[c] for c in costs} == {c: joined.get(c, 0) for c in costs}, name
            for side in ("base", "new"):
                prefix = "flat_" if name == "top" else ""
                count, cost = row[f"{kinds[0]}_{prefix}{side}"], row[f"{kinds[1]}_{prefix}{side}"]
                assert row[f"{prefix}ratio_{side}"] == (cost / count if count else None), name
        first = [str([row[k] for k in keys]) for row in alone[0]]
        if name in ("top", "stacks"):
            assert [str([row[k] for k in keys]) for row in both][: len(first)] == first
        assert both.summary["sample_type"] == kinds[0]
        assert [t["sample_type"] for t in both.summary["sample_types"]] == kinds
        assert polars.DataFrame(both).to_dicts() == both.to_dicts()
        assert len(both.to_pandas()) == len(both) == both.to_csv().count("\n") - 1
        assert json.loads(both.to_json())["rows"] == both.to_dicts()
        assert f"{kinds[1]}/{kinds[0]}" in repr(both)
        assert f"{kinds[1]}/{kinds[0]}" in both.to_markdown().replace("\\_", "_")
        assert pickle.loads(pickle.dumps(both)).to_dicts() == both.to_dicts()


def test_views_of_one_sample_type_refuse_several():
    heap, types = pprofdiff.diff(*pair("go-heap")), ["alloc_objects", "alloc_space"]
    for refused in (
        lambda: heap.folded(sample_type=types),
        lambda: heap.callgraph(sample_type=types),
        lambda: heap.list("main", sample_type=types),
        lambda: pprofdiff.series([pair("go-heap")[0]], sample_type=types),
    ):
        with pytest.raises(pprofdiff.PprofError, match=r"one sample type|several sample types"):
            refused()
    with pytest.raises(pprofdiff.PprofError, match='"alloc_space" is given twice'):
        heap.top(sample_type=["alloc_space", "alloc_space"])
    with pytest.raises(TypeError, match='unknown option "foucs"; the options are sample_type'):
        heap.top(foucs="x")  # type: ignore[call-arg]


def test_a_view_accepts_filters_and_normalization(story: pprofdiff.Diff):
    expected = story.filter(focus="tableInsensitive").normalize("total").top()
    assert story.top(focus="tableInsensitive", normalize="total").to_dicts() == expected.to_dicts()
    # An empty filter removes that filter for this view.
    assert story.filter(focus="tableInsensitive").top(focus="").to_dicts() == story.top().to_dicts()
