"""Tests that DuckDB reads the Arrow stream of every table. DuckDB finds a variable of the caller by its name."""

import duckdb
import polars as pl
import pytest

import pprofdiff
from conftest import CORPUS
from test_arrow import TABLES
from test_batch import small_pairs


def rows_of(result: duckdb.DuckDBPyRelation) -> list[dict]:
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


@pytest.mark.parametrize("kind", TABLES)
def test_every_table(kind: str, labelled: pprofdiff.Diff):
    for views in (labelled, labelled.new[0]):
        table = TABLES[kind](views)
        result = duckdb.sql('select * from "table"')
        assert result.columns == table.columns
        assert rows_of(result) == table.to_dicts()


def test_a_diff_and_a_profile_are_their_top_tables(labelled: pprofdiff.Diff):
    for views in (labelled, labelled.new[0]):
        assert rows_of(duckdb.sql("select * from views")) == views.top().to_dicts()


def test_sums_equal_ours(labelled: pprofdiff.Diff):
    top = labelled.top()
    ((delta,),) = duckdb.sql("select sum(flat_delta)::bigint from top where status = 'added'").fetchall()
    assert delta == sum(row["flat_delta"] for row in top if row["status"] == "added") != 0


def test_a_batch():
    batch = lambda: pprofdiff.batch(small_pairs(30)).tables(40)  # noqa: E731
    stream = batch()  # noqa: F841
    rows = rows_of(duckdb.sql("select * from stream"))
    assert rows == pl.DataFrame(batch()).to_dicts()  # test_batch.py compares these with the results
    assert any(row["error"] for row in rows)
    assert any(row["flat_delta"] for row in rows)


def test_a_series():
    heap = pprofdiff.series(sorted(CORPUS.glob("series/heap-*.pb.gz")), sample_type="alloc_space")
    ((total,),) = duckdb.sql("select sum(flat) from heap where build = 'heap-03.pb.gz'").fetchall()
    assert total == sum(row["flat"] for row in heap.values() if row["build"] == "heap-03.pb.gz") > 0
