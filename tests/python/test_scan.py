"""Tests of scan(): many profiles as a lazy frame. A query opens only the files that it needs, and gives the rows of the
views."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import polars as pl
import pytest

import pprofdiff
from conftest import pair
from pprofdiff import _native
from pprofdiff._scan import _AHEAD, _Scan

CORPUS = Path(__file__).parents[1] / "corpus"
SERVICES = {"labels": "go-labels-cpu", "heap": "go-heap", "rust": "rust-cpu"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three services with two builds each."""
    for service, name in SERVICES.items():
        for build, side in (("9", "base"), ("10", "new")):
            (tmp_path / service / build).mkdir(parents=True)
            shutil.copy(CORPUS / f"{name}.{side}.pb.gz", tmp_path / service / build / "p.pb.gz")
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that records the opened files."""
    names: list[str] = []
    load = _native.load

    def noting(source, **options):
        if not isinstance(source, bytes):
            names.append("/".join(Path(source).parts[-3:-1]))
        return load(source, **options)

    monkeypatch.setattr(_native, "load", noting)
    return names


def scan(files: Path, **options) -> pl.LazyFrame:
    return pprofdiff.scan(f"{files}/*/*/p.pb.gz", "service={1},build={2}", **options)


@pytest.mark.parametrize("view", ["top", "stacks", "tree"])
@pytest.mark.parametrize("options", [{}, {"granularity": "lines", "focus": "alloc|runtime"}])
def test_rows_equal_those_of_the_views(files: Path, view: str, options: dict):
    frame = scan(files, view=view, **options)
    expected = []
    for service in sorted(SERVICES):
        for build in ("10", "9"):
            path = files / service / build / "p.pb.gz"
            profile = pprofdiff.load(path)
            for sample_type, unit in profile.sample_types:
                keys = {
                    "build": build,
                    "service": service,
                    "profile": str(path),
                    "sample_type": sample_type,
                    "unit": unit,
                }
                rows = getattr(profile, view)(sample_type=sample_type, **options).to_dicts()
                assert rows
                expected += [keys | row for row in rows]
    result = frame.collect()
    assert result.schema == frame.collect_schema()
    order = sorted(result.to_dicts(), key=lambda row: (row["service"], row["build"]))
    assert order == expected
    assert len(expected) > 10


def test_a_query_opens_only_the_files_that_it_needs(files: Path, opened: list[str]):
    frame = scan(files)
    assert not opened
    of_heap = frame.filter(pl.col("service") == "heap", pl.col("flat") > 0, pl.col("build").is_in(["9", "11"]))
    result = of_heap.select("name", "flat").collect()
    assert opened == ["heap/9"]
    assert len(result) > 10
    profile = pprofdiff.load(files / "heap/9/p.pb.gz")
    expected = [row for name, _ in profile.sample_types for row in profile.top(sample_type=name).to_dicts()]
    assert result.rows() == [(row["name"], row["flat"]) for row in expected if row["flat"] > 0]

    assert of_heap.select("service").collect()["service"].to_list() == ["heap"] * len(result)
    assert frame.filter(service="heap", build="9").select(pl.len()).collect().item() == len(expected)

    # A condition that also involves other columns excludes no file.
    opened.clear()
    either = frame.filter((pl.col("service") == "heap") | (pl.col("name") == "main.main"))
    assert set(either.collect()["service"]) == {"heap", "labels"}
    assert len(opened) == 6
    # A condition that no file meets opens none. The columns are known all the same.
    opened.clear()
    none = frame.filter(pl.col("service") == "no").collect()
    assert (len(none), none.schema, opened) == (0, frame.collect_schema(), [])
    # A condition that compares rows is evaluated after loading.
    newest = frame.filter(pl.col("build") == pl.col("build").max()).collect()
    assert set(newest["build"]) == {"9"}


def test_only_the_sample_types_of_a_condition_are_computed(files: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    question = _native._Question

    def noting(view, n, sort, options):
        asked.append(options["sample_type"])
        return question(view, n, sort, options)

    frame = scan(files)
    monkeypatch.setattr(_native, "_Question", noting)
    frame.filter(pl.col("sample_type") == "alloc_space", pl.col("service") != "rust").collect()
    assert asked == ["alloc_space"] * 2


def test_the_first_rows_open_the_first_profiles(tmp_path: Path, opened: list[str]):
    paths = [tmp_path / f"{i}/x/p.folded" for i in range(200)]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("main;run 1\n")
    head = pprofdiff.scan(paths).head(3).collect()
    assert head["profile"].to_list() == [str(paths[0])] * 2 + [str(paths[1])]
    assert len(opened) < 100
    assert pprofdiff.scan(paths).head(0).collect().is_empty()
    # A slow consumer keeps only a few tables in memory.
    opened.clear()
    frames = _Scan([(path, {}) for path in paths], "top", False, {})(None, None, None, None)
    for _ in range(10):
        next(frames)
    time.sleep(0.5)
    assert 10 <= len(opened) <= 10 + _AHEAD * (os.cpu_count() or 1)


def test_profiles_can_be_given_in_many_ways(files: Path):
    path = files / "heap/9/p.pb.gz"
    rows = pprofdiff.scan([path]).select("name", "flat").collect()
    for profiles in ([str(path)], [path.read_bytes()], [pprofdiff.load(path)], [{"profile": path, "a": 1}]):
        assert pprofdiff.scan(profiles).select("name", "flat").collect().equals(rows)
    listed = [{"profile": path, "build": 9, "host": "a"}, {"profile": path, "host": "b"}]
    keys = pprofdiff.scan(listed).select("build", "host").unique(maintain_order=True).collect()
    assert keys.rows() == [("9", "a"), (None, "b")]
    assert pprofdiff.scan(listed, "host").collect_schema().names()[:2] == ["host", "profile"]
    manifest = files / "all.csv"
    manifest.write_text(f"profile,host\n{path},a\n{path},b\n")
    assert set(pprofdiff.scan(manifest).collect()["host"]) == {"a", "b"}
    url = "http://user:secret@127.0.0.1:9/p"
    assert "secret" not in str(pprofdiff.scan([url], on_error="collect").collect().to_dicts())


def test_a_store_has_its_own_keys(files: Path, opened: list[str]):
    run = [sys.executable, "-m", "pprofdiff", "store", "add", "fleet", "*/*/p.pb.gz"]
    keys = ["--key", "service={1}", "--key", "build={2}"]
    subprocess.run([*run, *keys], cwd=files, check=True, capture_output=True)
    columns = ["build", "service", "sample_type", "unit", "name", "flat", "cum"]
    order = [pl.col(name) for name in columns]
    of_files = scan(files).select(columns).sort(order).collect()
    assert pprofdiff.scan(files / "fleet").select(columns).sort(order).collect().equals(of_files)
    opened.clear()
    part = pprofdiff.scan(f"{files}/fleet/service=heap").filter(build="9").select(columns).sort(order).collect()
    assert part.equals(of_files.filter(service="heap", build="9"))
    assert len(opened) == 1
    with pytest.raises(pprofdiff.PprofError, match="a store has its own keys"):
        pprofdiff.scan(files / "fleet", "service")


def test_a_bad_profile_is_an_error_or_a_row(files: Path):
    broken = files / "rust/9/p.pb.gz"
    broken.write_bytes(b"no profile")
    with pytest.raises(Exception, match=r"rust/9/p\.pb\.gz"):
        scan(files).collect()
    assert len(scan(files).filter(pl.col("service") == "heap").collect()) > 10
    result = scan(files, on_error="collect").collect()
    failed = result.filter(pl.col("error").is_not_null())
    [row] = failed.to_dicts()
    assert (row["service"], row["build"], row["name"], row["flat"]) == ("rust", "9", None, None)
    assert "rust/9/p.pb.gz" in row["error"]
    assert len(result) == 1 + len(scan(files).filter(pl.col("profile") != str(broken)).collect())
    assert len(scan(files, on_error="collect").filter(service="rust", build="9").collect()) == 1
    assert scan(files, on_error="collect").filter(pl.col("flat") > 0).collect()["error"].null_count() > 10
    # A required sample type that a profile lacks is an error, which lists the available types.
    of_type = scan(files, on_error="collect", sample_type="alloc_space")
    [row] = of_type.filter(service="labels", build="9").collect().to_dicts()
    assert "alloc_space" in row["error"]
    assert "cpu" in row["error"]


def test_invalid_queries_are_errors(files: Path):
    for options, why in [
        ({"view": "explain"}, "view must be"),
        ({"on_error": "pass"}, "on_error must be"),
        ({"focus": "("}, "unclosed group"),
    ]:
        with pytest.raises(pprofdiff.PprofError, match=why):
            scan(files, **options)
    with pytest.raises(TypeError, match='unknown option "focuss"'):
        scan(files, focuss="x")
    with pytest.raises(pprofdiff.PprofError, match="no file matches"):
        pprofdiff.scan(f"{files}/no/*")
    with pytest.raises(pprofdiff.PprofError, match="no sample type"):
        scan(files, sample_type="no").collect()
    for name in ("name", "unit", "error"):
        with pytest.raises(pprofdiff.PprofError, match=f"a key can't be called '{name}'"):
            pprofdiff.scan([{"profile": "x", name: "y"}], on_error="collect")
    with pytest.raises(KeyError, match="build"):
        pprofdiff.scan([{"profile": "x", "host": "y"}], "build")


def test_labels_can_be_used_as_keys(tmp_path: Path):
    source = pprofdiff.load(CORPUS / "go-labels-cpu.new.pb.gz")
    for endpoint in ("sum", "walk"):
        source.filter(tagfocus=f"endpoint=/{endpoint}").write(tmp_path / f"{endpoint}.pb.gz")
    pattern = tmp_path / "*.pb.gz"
    (group,) = pprofdiff.group_pairs(pattern, "endpoint={endpoint}", base="endpoint=/sum", new="endpoint=/walk")
    assert (Path(group.base).name, Path(group.new).name) == ("sum.pb.gz", "walk.pb.gz")
    rows = pprofdiff.scan(pattern, "of={endpoint}").filter(of="/walk").collect()
    assert set(rows["profile"]) == {str(tmp_path / "walk.pb.gz")}
    with pytest.raises(pprofdiff.PprofError, match="no sample has the label host"):
        pprofdiff.scan(pattern, "host={host}")


class ClosedFileSystem(fsspec.AbstractFileSystem):
    """A file system that denies access, and names the user in its error."""

    protocol = "closed"

    def find(self, path: str, **options: object) -> list[str]:
        raise PermissionError(f"no entry for closed://{path}")


fsspec.register_implementation("closed", ClosedFileSystem)


def test_errors_of_a_pattern_contain_no_password():
    for ask in (pprofdiff.scan, pprofdiff.series):
        with pytest.raises(PermissionError, match=r"no entry for closed://\*\*\*@host") as failed:
            ask("closed://user:secret@host/*.pb.gz")
        assert failed.value.__context__ is None


def test_patterns_match_urls(tmp_path: Path):
    memory = fsspec.filesystem("memory")
    for service in ("api", "db"):
        for build, path in zip(("v1", "v2"), pair("go-mutex"), strict=True):
            memory.pipe_file(f"/fleet/{service}/{build}/m.pb.gz", path.read_bytes())
    memory.pipe_file("/fleet/api/v2/notes.txt", b"")
    pattern, keys = "memory://fleet/*/*/m.pb.gz", "service={1},version={2}"
    grouped_pairs = pprofdiff.group_pairs(pattern, keys, base="version=@previous", new="version=@latest")
    assert [(p.name, p.base, p.new) for p in grouped_pairs] == [
        (name, f"memory://fleet/{name}/v1/m.pb.gz", f"memory://fleet/{name}/v2/m.pb.gz") for name in ("api", "db")
    ]
    one, two = pprofdiff.pairs("memory://fleet/*/v1/*.pb.gz", "memory://fleet/*/v2/*.pb.gz")
    assert (one.name, two.base, two.error) == ("api/m", grouped_pairs[1].base, None)
    assert [p.name for p in pprofdiff.pairs("memory://fleet/api/v1/", "memory://fleet/db/v2/")] == ["m.pb.gz"]
    rows = pprofdiff.scan(pattern, keys).filter(version="v1", sample_type="contentions").collect()
    assert set(rows["profile"]) == {p.base for p in grouped_pairs}
    (tmp_path / "fleet.csv").write_text("profile,service\n" + "".join(f"{p.base},{p.name}\n" for p in grouped_pairs))
    listed = pprofdiff.scan(tmp_path / "fleet.csv").filter(service="db").collect()
    assert set(listed["profile"]) == {grouped_pairs[1].base}
    series = pprofdiff.series("memory://fleet/api/*/m.pb.gz")
    assert [build["key"] for build in series.builds] == ["v1", "v2"]
    by_url = pprofdiff.series("memory://fleet/api/*/m.pb.gz", key=lambda url: url)
    urls = [f"memory://fleet/api/{build}/m.pb.gz" for build in ("v1", "v2")]
    assert [build["key"] for build in by_url.builds] == urls
    with pytest.raises(pprofdiff.PprofError, match="no file matches"):
        pprofdiff.scan("memory://fleet/*/none")
    with pytest.raises(pprofdiff.PprofError, match="labels of profiles at URLs can't be keys"):
        pprofdiff.scan(pattern, "host={host}")
