"""Tests of the Arrow stream: every consumer reads every kind of table, including nulls and lists."""

import subprocess
import sys
from collections.abc import Callable

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pprofdiff
from conftest import pair, profile

TABLES: dict[str, Callable[[pprofdiff.Views], pprofdiff.Table]] = {
    "top": lambda v: v.top(),
    "lines": lambda v: v.top(granularity="lines"),
    "addresses": lambda v: v.top(granularity="addresses"),
    "peek": lambda v: v.peek("main"),
    "tree": lambda v: v.tree(),
    "stacks": lambda v: v.stacks(),
    "stacks with labels": lambda v: v.stacks(labels=True),
    "labels": lambda v: v.labels(),
    "empty": lambda v: v.top(0),
    "empty stacks": lambda v: v.stacks(0, labels=True),
    "a slice": lambda v: v.stacks(labels=True)[3:9:2],
}


@pytest.fixture(params=["diff", "profile"])
def views(request: pytest.FixtureRequest, labelled: pprofdiff.Diff) -> pprofdiff.Views:
    return labelled if request.param == "diff" else labelled.new[0]


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, views: pprofdiff.Views) -> pprofdiff.Table:
    table = TABLES[request.param](views)
    assert len(table) > 1 or request.param.startswith("empty")
    return table


def plain(value: object) -> object:
    """Converts a cell to the form of to_dicts(). pandas has its own null values, and arrays instead of lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if value is pd.NA else value


def test_polars_reads_every_table(table: pprofdiff.Table):
    for frame in (pl.DataFrame(table), table.to_polars()):
        assert frame.to_dicts() == table.to_dicts()
        for name, dtype in frame.schema.items():
            assert dtype == {
                "line": pl.Int64,
                "address": pl.UInt64,
                "frames": pl.List(pl.Categorical),
                "labels": pl.List(pl.Categorical),
            }.get(
                name,
                pl.Int64 if name.endswith(("base", "new", "delta", "flat", "cum", "weight")) else pl.String,
            )


def test_pyarrow_reads_every_table(table: pprofdiff.Table):
    for arrow in (pa.table(table), table.to_arrow(), pa.RecordBatchReader.from_stream(table).read_all()):
        arrow.validate(full=True)
        assert arrow.to_pylist() == table.to_dicts()
    types = {field.name: field.type for field in arrow.schema}
    assert types.get("line", pa.int64()) == pa.int64()
    assert types.get("address", pa.uint64()) == pa.uint64()
    assert types.get("frames", pa.list_(pa.dictionary(pa.int32(), pa.string()))) == pa.list_(
        pa.dictionary(pa.int32(), pa.string())
    )


def test_pandas_reads_every_table(table: pprofdiff.Table):
    frame = table.to_pandas()
    rows = [{k: plain(v) for k, v in row.items()} for row in frame.to_dict("records")]
    assert rows == table.to_dicts()
    for name in table.columns:
        dtype = {"line": "Int64", "address": "UInt64", "frames": "object", "labels": "object"}.get(name)
        number = name.endswith(("base", "new", "delta", "flat", "cum", "weight"))
        assert frame[name].dtype == (dtype or ("int64" if number else "string")), name
        if number:
            frame[name] += 1  # Fails if the column is read-only.


def test_pandas_reads_the_arrow_stream(table: pprofdiff.Table):
    frame = pd.DataFrame.from_arrow(table)
    assert list(frame.columns) == table.columns
    assert len(frame) == len(table)


def test_diffs_and_profiles_export_their_top_table(views: pprofdiff.Views):
    rows = views.top().to_dicts()
    assert pl.DataFrame(views).to_dicts() == views.to_polars().to_dicts() == rows
    assert pa.table(views).to_pylist() == rows
    assert list(views.to_pandas()["name"]) == [row["name"] for row in rows]


def test_a_requested_schema_is_ignored(labelled: pprofdiff.Diff):
    schema = pa.schema([("name", pa.string())])
    capsule = labelled.top().__arrow_c_stream__(schema.__arrow_c_schema__())
    assert type(capsule).__name__ == "PyCapsule"


def test_an_unread_stream_is_released(labelled: pprofdiff.Diff):
    for _ in range(100):
        labelled.top().__arrow_c_stream__()


def test_frames_outlive_their_table():
    frame = pl.DataFrame(pprofdiff.diff(*pair("go-heap")).stacks())
    assert frame["frames"].list.len().min() >= 0
    assert frame.filter(pl.col("frames").list.contains("runtime.main")).height > 0


def test_large_values_and_addresses_are_exact():
    big = 2**63 - 1
    p = pprofdiff.load(profile([(["main"], big, {})]))
    for frame in (p.to_polars(), p.to_pandas()):
        assert frame["flat"][0] == big
    high = pprofdiff.load(pair("go-heap")[0]).top(granularity="addresses")["address"]
    assert all(isinstance(a, int) for a in high)


def test_pandas_works_without_pyarrow():
    code = """
import sys
for name in ("pyarrow", "polars", "duckdb"):
    sys.modules[name] = None
import pprofdiff, pandas
d = pprofdiff.diff(*sys.argv[1:])
for table in (d.top(), d.top(granularity="addresses"), d.stacks(labels=True), d.labels(), d.tree(), d.top(0)):
    frame = table.to_pandas()
    assert len(frame) == len(table) and list(frame.columns) == table.columns
    for name in table.columns:
        mine = [None if v is pandas.NA else v for v in frame[name].tolist()]
        assert mine == table[name], name
assert "pyarrow.lib" not in sys.modules
try:
    d.to_polars()
except ImportError as e:
    assert "polars" in str(e)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code, *pair("go-labels-cpu")], check=True)
