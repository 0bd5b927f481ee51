"""Tests that Spark reads the tables of a store as docs/store.md shows, with keys as columns.

They only run if PPROFDIFF_CLUSTERS is set, like test_clusters.py, and need Java."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pprofdiff
from test_store import SERVICES, fleet

__all__ = ["fleet"]
pytestmark = [pytest.mark.filterwarnings("ignore")]


def test_spark_reads_keys_as_columns(fleet: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(fleet)
    # Absolute paths: Java keeps the working directory of the first test with a session.
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        functions = spark.read.parquet(str(fleet / "fleet/functions")).filter("sample_type = 'cpu'")
        flat = {(r[0], r[1]): r[2] for r in functions.groupBy("service", "build").sum("flat").collect()}
        samples = spark.read.parquet(str(fleet / "fleet/samples")).filter("sample_type = 'cpu'")
        leaves = samples.selectExpr("service", "build", "value", "element_at(functions, 1) AS leaf").collect()
    finally:
        spark.stop()
    for service in SERVICES:
        for build in (9, 10):
            profile = pprofdiff.load(f"fleet/service={service}/build={build}")
            rows = profile.top(sample_type="cpu").to_dicts()
            assert flat[service, build] == sum(row["flat"] for row in rows)
            named = {row["name"]: row["flat"] for row in rows if row["flat"] and row["name"]}
            of_build = [row for row in leaves if (row[0], row[1]) == (service, build)]
            assert {name: sum(row[2] for row in of_build if row[3] == name) for name in named} == named
