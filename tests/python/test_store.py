"""Tests that polars and DuckDB read the files of `pprofdiff store` directly, with the programs of docs/store.md, and
get the same values as our own views."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import polars
import pytest

import pprofdiff

CORPUS = Path(__file__).parents[1] / "corpus"
PAGE = Path(__file__).parents[2] / "docs/store.md"
SERVICES = {"labels": "go-labels-cpu", "rust": "rust-cpu"}


def store(folder: Path, *args: object) -> str:
    run = [sys.executable, "-m", "pprofdiff", "store", *map(str, args)]
    return subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=[False, True], ids=["added", "compacted"])
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a store with two services of two builds each. The new builds have two profiles."""
    folder = tmp_path_factory.mktemp("store")
    for service, name in SERVICES.items():
        for build, sides in {9: ["base"], 10: ["new", "base"]}.items():
            files = [CORPUS / f"{name}.{side}.pb.gz" for side in sides]
            store(folder, "add", "fleet", *files, "--key", f"service={service}", "--key", f"build={build}")
    if request.param:
        assert store(folder, "compact", "fleet").startswith("18 files")
    return folder


def programs() -> dict[str, str]:
    return dict(
        re.findall(r"^\*\*(\w+)\*\*\n\n(?:<!-- .* -->\n\n)?```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    )


def grown(folder: Path) -> list[tuple[str, int, str, int]]:
    """Returns the expected result of the programs, from our own tables."""
    rows = []
    for service in SERVICES:
        flat: list[dict[str, int]] = []
        for build in (9, 10):
            of_build = pprofdiff.load(folder / f"fleet/service={service}/build={build}")
            flat.append({r["name"]: r["flat"] for r in of_build.top(sample_type="cpu").to_dicts()})
        both = flat[0].keys() & flat[1].keys()
        rows += [(service, 10, name, flat[1][name] - flat[0][name]) for name in both]
    return sorted((r for r in rows if r[2]), key=lambda r: -r[3])[:10]


@pytest.mark.parametrize("engine", ["polars", "DuckDB"])
def test_programs_of_the_documentation(fleet: Path, engine: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(fleet)
    names: dict = {}
    exec(programs()[engine], names)
    answer = names["answer"]
    rows = answer.select("service", "build", "function", "grown").rows() if engine == "polars" else answer.fetchall()
    assert [row[3] for row in rows] == [row[3] for row in grown(fleet)]
    assert len(rows) == 10
    assert set(rows[:3]) == set(grown(fleet)[:3])


def test_samples_and_locations_equal_those_of_profiles(fleet: Path):
    profile = pprofdiff.load(fleet / "fleet/service=labels/build=9")
    read = {
        name: polars.read_parquet(f"{fleet}/fleet/{name}/**/*.parquet", hive_partitioning=True)
        for name in ("samples", "locations")
    }
    samples = read["samples"].filter(service="labels", build=9, sample_type="cpu")
    assert samples["value"].sum() == profile.total[0]
    leaf = samples.with_columns(name=polars.col("functions").list.get(0, null_on_oob=True))
    flat = dict(leaf.group_by("name").agg(polars.col("value").sum()).rows())
    assert {r["name"]: r["flat"] for r in profile.top(sample_type="cpu").to_dicts() if r["flat"]} == flat
    # Labels are JSON, and a stack has the same hash in all builds.
    endpoints = samples.group_by(samples["labels"].str.json_path_match("$.endpoint")).agg(polars.col("value").sum())
    expected = {r["value"]: r["weight"] for r in profile.labels(sample_type="cpu").to_dicts() if r["key"] == "endpoint"}
    assert {name: value for name, value in endpoints.rows() if name} == expected
    assert len(expected) > 2
    hashes = {build: set(read["samples"].filter(service="labels", build=build)["stack"]) for build in (9, 10)}
    assert len(hashes[9] & hashes[10]) == len(hashes[9])
    # Function names joined from the locations equal those stored with the sample.
    named = read["locations"].filter(service="labels", build=9).sort("location", "inline_depth")
    by_location = named.group_by("location", maintain_order=True).agg("function")
    names = dict(by_location.rows())
    for row in samples.head(50).iter_rows(named=True):
        assert [name for location in row["locations"] for name in names[location]] == row["functions"]


def test_duckdb_reads_all_tables(fleet: Path):
    count = "SELECT count(*), count(DISTINCT profile) FROM read_parquet('{}/fleet/{}/**/*.parquet')"
    for table in ("samples", "locations", "functions"):
        [(rows, profiles)] = duckdb.sql(count.format(fleet, table)).fetchall()
        assert rows > 100
        assert profiles == 6


def test_a_partition_of_a_store_can_be_a_series(fleet: Path):
    part = fleet / "fleet/service=labels"
    of_builds = [pprofdiff.load(part / f"build={build}").top(sample_type="cpu").to_dicts() for build in (9, 10)]
    expected = [[(row["name"], row["flat"], row["cum"]) for row in rows] for rows in of_builds]
    for profiles in (part, str(part)):
        series = pprofdiff.series(profiles, sample_type="cpu")
        assert [build["key"] for build in series.builds] == ["9", "10"]
        rows = series.values().to_dicts()
        for build, of_build in zip(("9", "10"), expected, strict=True):
            assert [(row["name"], row["flat"], row["cum"]) for row in rows if row["build"] == build] == of_build
    with_base = pprofdiff.series(part, base=CORPUS / "go-labels-cpu.base.pb.gz", sample_type="cpu")
    assert [build["key"] for build in with_base.builds] == ["base", "9", "10"]
    with pytest.raises(pprofdiff.PprofError, match="key= is not supported"):
        pprofdiff.series(part, key=str)
    with pytest.raises(pprofdiff.PprofError, match="give all but one"):
        pprofdiff.series(fleet / "fleet")


def test_values_read_from_a_store_are_cached(tmp_path: Path):
    for build in range(6):
        shutil.copy(CORPUS / "go-mutex.new.pb.gz", tmp_path / f"{build}.pb.gz")
    store(tmp_path, "add", "fleet", "*.pb.gz", "--key", "build={1}")
    read, kept = (pprofdiff.series(tmp_path / "fleet") for _ in range(2))
    assert any((tmp_path / "fleet/_series").iterdir())
    assert kept.values().to_dicts() == read.values().to_dicts()
    assert len(kept.builds) == 6


def kill_when(process: subprocess.Popen, folder: Path, name: str) -> None:
    """Kills a process as soon as the folder has a Parquet file whose name begins with `name`."""
    while process.poll() is None and not any(folder.glob(f"{name}*.parquet")):
        pass
    process.kill()
    process.wait()


def test_engines_and_pprofdiff_agree_after_killed_writers_and_compactions(tmp_path: Path):
    """Engines read each table separately, so a profile must be in all tables or in none."""
    rounds = 4
    run = [sys.executable, "-m", "pprofdiff", "store"]

    def add(build: int, value: int) -> list[str]:
        (tmp_path / f"{build}-{value}.folded").write_text(f"main;a {value}\nmain;b {build}\n")
        return ["add", "fleet", f"{build}-{value}.folded", "--key", "service=api", "--key", f"build={build}"]

    def totals(table: str, column: str) -> dict[int, int]:
        query = f"SELECT build, sum({column})::BIGINT FROM read_parquet('{tmp_path}/fleet/{table}/**/*.parquet', "
        return dict(duckdb.sql(query + "hive_partitioning = true) GROUP BY build").fetchall())

    def check() -> None:
        folders = {build: tmp_path / f"fleet/service=api/build={build}" for build in totals("functions", "flat")}
        ours = {build: pprofdiff.load(folder).total[0] for build, folder in folders.items()}
        assert totals("functions", "flat") == totals("samples", "value") == ours
        assert len(ours) > rounds

    functions = tmp_path / "fleet/functions/service=api"
    store(tmp_path, *add(0, 1))
    for build in range(1, rounds + 1):
        kill_when(subprocess.Popen([*run, *add(build, 1)], cwd=tmp_path), functions / f"build={build}", "")
    # The next writer completes the unfinished commit.
    store(tmp_path, *add(0, 2))
    check()
    for build in range(rounds + 1, 2 * rounds + 1):
        store(tmp_path, *add(build, 1))
        store(tmp_path, *add(build, 2))
        kill_when(subprocess.Popen([*run, "compact", "fleet"], cwd=tmp_path), functions / f"build={build}", "compact")
    store(tmp_path, *add(0, 3))
    check()
    store(tmp_path, "compact", "fleet")
    check()
