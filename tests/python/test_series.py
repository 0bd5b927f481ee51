"""Tests of series(): keys, order, tables, bad builds, notebooks and data frames."""

import io
import pickle
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pprofdiff
from conftest import CORPUS, profile

SNAPSHOTS = sorted((CORPUS / "series").glob("heap-*.pb.gz"))


def build(**costs: int) -> bytes:
    """Builds a profile in which main calls functions with these names and costs."""
    return profile([(["main", name], value, {}) for name, value in costs.items()])


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """Creates build-9, build-10 and build-11. b appears in the second, a grows in the third."""
    for number, costs in [(9, {"a": 10}), (10, {"a": 10, "b": 5}), (11, {"a": 30, "b": 5})]:
        (tmp_path / f"build-{number}").mkdir()
        (tmp_path / f"build-{number}" / "heap.pb").write_bytes(build(**costs))
    return tmp_path


@pytest.fixture(scope="module")
def heap() -> pprofdiff.Series:
    return pprofdiff.series(SNAPSHOTS, sample_type="alloc_space")


def rows(table: pprofdiff.Table, *columns: str) -> list[tuple]:
    return [tuple(row[c] for c in columns) for row in table]


def keys(series: pprofdiff.Series) -> list[str]:
    return [b["key"] for b in series.builds]


def test_a_pattern_is_ordered_by_key(builds: Path):
    s = pprofdiff.series(str(builds / "build-*" / "heap.pb"))
    assert keys(s) == ["9", "10", "11"]
    assert [b["total"] for b in s.builds] == [10, 15, 35]
    assert rows(s.steps(), "name", "from", "to", "status", "flat_from", "flat_to", "flat_delta", "total_from") == [
        ("a", "10", "11", "changed", 10, 30, 20, 15),
        ("b", "9", "10", "added", 0, 5, 5, 10),
        # Rows with equal flat are sorted by cum.
        ("main", "10", "11", "changed", 0, 0, 0, 15),
        ("main", "9", "10", "changed", 0, 0, 0, 10),
    ]
    assert rows(s.movers(2), "name", "first_seen", "last_seen", "builds", "from", "to", "flat_delta") == [
        ("a", "9", "11", 3, "10", "11", 20),
        ("b", "10", "11", 2, "9", "10", 5),
    ]
    assert s.movers(sort="cum")[0]["cum_delta"] == 20
    assert s.movers(1).rows_total == 3
    assert rows(s.values(), "build", "name", "flat", "cum")[:2] == [("9", "a", 10, 10), ("9", "main", 0, 10)]
    assert s.values().summary["order"] == "key"


def test_keys_and_their_order():
    two = [build(a=1), build(a=2)]
    assert keys(pprofdiff.series(two)) == ["0", "1"]
    assert keys(pprofdiff.series(iter(two), key=lambda b: f"{len(b)}-{hash(b)}"))[0].startswith(f"{len(two[0])}-")
    assert keys(pprofdiff.series(SNAPSHOTS[:2])) == ["heap-00.pb.gz", "heap-01.pb.gz"]
    assert keys(pprofdiff.series(iter(SNAPSHOTS[:2]))) == [str(p) for p in SNAPSHOTS[:2]]
    assert keys(pprofdiff.series([pprofdiff.load(p) for p in SNAPSHOTS[:2]])) == [str(p) for p in SNAPSHOTS[:2]]
    assert keys(pprofdiff.series(SNAPSHOTS[:2], lambda p: p.stem[5:7])) == ["00", "01"]
    # An iterable keeps its order, and a pattern is sorted by key.
    assert keys(pprofdiff.series(SNAPSHOTS[1::-1])) == ["heap-01.pb.gz", "heap-00.pb.gz"]
    pattern = str(CORPUS / "series" / "heap-0?.pb.gz")
    assert keys(pprofdiff.series(pattern, lambda p: 20 - int(p.name[5:7])))[0] == "11"


def test_values_and_steps_equal_those_of_profiles_and_diffs(heap: pprofdiff.Series):
    expected = []
    for path, b in zip(SNAPSHOTS, heap.builds, strict=True):
        top = pprofdiff.load(path).top(sample_type="alloc_space")
        expected += [(b["key"], *row) for row in rows(top, "name", "flat", "cum")]
    assert rows(heap.values(), "build", "name", "flat", "cum") == expected
    # A step equals the row of a diff.
    step = heap.steps(1)[0]
    by_key = dict(zip(keys(heap), SNAPSHOTS, strict=True))
    diff = pprofdiff.diff(by_key[step["from"]], by_key[step["to"]])
    row = next(r for r in diff.top(sample_type="alloc_space") if r["name"] == step["name"])
    assert [row[c] for c in ("flat_base", "flat_new", "flat_delta", "cum_delta", "status")] == [
        step[c] for c in ("flat_from", "flat_to", "flat_delta", "cum_delta", "status")
    ]


def test_polars_pandas_and_pyarrow_read_a_series(heap: pprofdiff.Series):
    table = heap.values()
    expected = table.to_dicts()
    frame = pl.DataFrame(heap)
    assert frame.to_dicts() == heap.to_polars().to_dicts() == expected
    assert frame.schema == {
        "build": pl.String,
        "build_number": pl.Int64,
        "name": pl.String,
        "file": pl.String,
        "line": pl.Int64,
        "mapping": pl.String,
        "flat": pl.Int64,
        "cum": pl.Int64,
    }
    assert pa.table(heap).to_pylist() == expected
    pandas = heap.to_pandas()
    assert isinstance(pandas, pd.DataFrame)
    assert pandas["flat"].tolist() == [r["flat"] for r in expected]
    for other in (heap.movers(), heap.steps()):
        assert pl.DataFrame(other).to_dicts() == other.to_dicts()


def test_builds_against_one_base():
    branches = [build(a=12, b=4), build(c=1)]
    m = pprofdiff.series(branches, base=build(a=10, b=4), key=lambda b: "left" if b is branches[0] else "right")
    assert keys(m) == ["base", "left", "right"]
    assert rows(m.steps(), "name", "from", "to", "status", "flat_delta")[:4] == [
        ("a", "base", "right", "removed", -10),
        ("b", "base", "right", "removed", -4),
        ("a", "base", "left", "changed", 2),
        ("c", "base", "right", "added", 1),
    ]
    with pytest.raises(pprofdiff.PprofError):
        pprofdiff.series(branches, base=b"\xff")
    with pytest.raises(FileNotFoundError):
        pprofdiff.series([SNAPSHOTS[0]], base="none")


def test_bad_builds_are_reported_and_skipped():
    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError("the wire was cut")

    given = [build(a=1), b"\xff", Broken(), "no/such/file", build(a=4)]
    s = pprofdiff.series(given)
    assert list(s.errors) == ["1", "2", "no/such/file"]
    assert "the wire was cut" in s.errors["2"]
    assert "No such file" in s.errors["no/such/file"]
    assert [b.get("error") for b in s.builds] == [None, *s.errors.values(), None]
    assert rows(s.steps(1), "from", "to", "flat_delta") == [("0", "4", 3)]
    assert "wire was cut" in repr(s)
    assert "wire was cut" in s._repr_html_()
    with pytest.raises(pprofdiff.PprofError):
        pprofdiff.series(given, on_error="raise")
    with pytest.raises(pprofdiff.PprofError):
        pprofdiff.series([b"\xff"])
    with pytest.raises(pprofdiff.PprofError, match="at least one build"):
        pprofdiff.series([])
    # The second build with the same key has no values.
    assert list(pprofdiff.series([build(a=1), build(a=2)], key=lambda _: "x").errors) == ["x"]


def test_invalid_arguments_are_errors():
    one = [build(a=1)]
    for wrong in (SNAPSHOTS[0], build(a=1), 3, [3], pprofdiff.load(SNAPSHOTS[0])):
        with pytest.raises(TypeError):
            pprofdiff.series(wrong)
    s = pprofdiff.series(one)
    for method in (s.shifts, s.movers, s.steps):
        message = r"has no sample_type=, which applies to all builds; pass it to series\(..., sample_type=...\)"
        with pytest.raises(TypeError, match=message):
            method(sample_type="cpu")
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'sorted'"):
            method(sorted="cum")
    with pytest.raises(TypeError, match="focsu"):
        pprofdiff.series(one, focsu="a")
    questions = [
        {"granularity": "addresses"},
        {"normalize": "2"},
        {"focus": "("},
        {"on_error": "ignore"},
        {"sample_type": "cpu"},
    ]
    for question in questions:
        with pytest.raises(pprofdiff.PprofError):
            pprofdiff.series(one, **question)
    with pytest.raises(pprofdiff.PprofError, match="no file matches"):
        pprofdiff.series("none-*.pb")


def test_filters_and_options_apply_to_all_builds():
    two = [build(a=10, b=10), build(a=30, b=10)]
    s = pprofdiff.series(two, normalize="total", focus="^a$")
    assert [b["factor"] for b in s.builds] == [1.0, 0.5]
    assert rows(s.steps(1), "name", "flat_from", "flat_to") == [("a", 10, 15)]
    assert {row["name"] for row in s.values()} == {"a", "main"}
    assert s.values().summary["filters"] == {"focus": "^a$"}
    with pytest.raises(LookupError, match="mine"):
        pprofdiff.series(two, key=lambda _: (_ for _ in ()).throw(LookupError("mine")))


def test_an_iterable_is_read_lazily_and_profiles_are_freed():
    alive = 0
    peak = 0

    class Counted(io.BytesIO):
        def __init__(self) -> None:
            nonlocal alive, peak
            alive += 1
            peak = max(peak, alive)
            super().__init__(build(a=1))

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def files() -> Iterator[io.BytesIO]:
        for _ in range(2000):
            yield Counted()

    s = pprofdiff.series(files())
    assert len(s.builds) == 2000
    assert not s.errors
    assert peak < 1000


def test_a_series_can_be_pickled(heap: pprofdiff.Series):
    copy = pickle.loads(pickle.dumps(heap))
    assert copy.values().to_json() == heap.values().to_json()
    assert copy.steps().to_json() == heap.steps().to_json()
    assert copy._repr_html_() == heap._repr_html_()
    again = pickle.loads(pickle.dumps(heap.movers(3)))
    assert again.to_markdown() == heap.movers(3).to_markdown()
    odd = pprofdiff.series([profile([(["\udcff"], 1, {})]), build(a=1)])
    assert pickle.loads(pickle.dumps(odd)).steps().to_json() == odd.steps().to_json()


def test_a_notebook_shows_what_changed(heap: pprofdiff.Series):
    class Tags(HTMLParser):
        rows = pictures = 0

        def __init__(self) -> None:
            super().__init__()
            self.open_tags: list[str] = []

        def handle_starttag(self, tag: str, attrs: list) -> None:
            self.rows += tag == "tr"
            self.pictures += tag == "svg"
            if tag not in ("circle", "polyline"):
                self.open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("circle", "polyline"):
                assert self.open_tags.pop() == tag

    tags = Tags()
    html = heap._repr_html_()
    tags.feed(html)
    assert not tags.open_tags
    first = heap.shifts(1)[0]
    assert tags.rows == tags.pictures + 1 == len(heap.shifts()) + 1
    assert first["name"] in html
    assert first["since"] in html
    moved = pprofdiff.series(SNAPSHOTS[:5], sample_type="alloc_space")
    tags = Tags()
    tags.feed(moved._repr_html_())
    assert not tags.open_tags
    assert (tags.rows, tags.pictures) == (21, 20)
    first = moved.movers(1)[0]
    assert first["name"] in moved._repr_html_()
    assert f"{first['from']} → {first['to']}" in moved._repr_html_()
    assert "12 builds in the order given, heap-00.pb.gz to heap-11.pb.gz" in html
    assert "<script>" not in pprofdiff.series([build(**{"<script>": 1})], key=lambda _: "<script>")._repr_html_()
    assert repr(heap).startswith("12 builds in the order given")


def test_builds_can_be_urls(tmp_path: Path):
    pytest.importorskip("fsspec")
    for name, source in [("a", SNAPSHOTS[0]), ("b", SNAPSHOTS[1])]:
        shutil.copy(source, tmp_path / name)
    s = pprofdiff.series([f"file://{tmp_path}/a", f"file://{tmp_path}/none", f"file://{tmp_path}/b"])
    assert keys(s) == ["a", "none", "b"]
    assert list(s.errors) == ["none"]


def test_a_build_is_explained_by_its_neighbours(tmp_path: Path):
    for i in range(6):
        costs = {"work": 900_000 + i, "parse": 400_000 if i < 3 else 900_000}
        # The appended field is the period: one event per 1000 bytes.
        period = b"\x60\xe8\x07"
        stacks = [(["main", name], value, {}) for name, value in costs.items()]
        (tmp_path / f"{i}.pb").write_bytes(profile(stacks, last=period))
    series = pprofdiff.series(str(tmp_path / "*.pb"))
    why = series.explain()
    assert [c["function"] for c in why.to_dict()["causes"]] == ["parse"]
    assert why.to_json() == series.explain("3").to_json()
    assert series.explain("2", runs=1).verdict != "change"
    for wrong, message in [("9", "unknown build"), ("0", "nothing comes before")]:
        with pytest.raises(pprofdiff.PprofError, match=message):
            series.explain(wrong)


def test_shifts_are_lasting_changes():
    def build(i: int) -> bytes:
        # Functions whose costs vary slightly between builds, and one that costs twice as much from build 10 on.
        costs = {f"main;f{j}": 1000 + (i * 37 + j * 101) % 23 for j in range(30)}
        costs["main;f3"] *= 2 if i >= 10 else 1
        return "".join(f"{stack} {cost}\n" for stack, cost in costs.items()).encode()

    s = pprofdiff.series([build(i) for i in range(20)])
    (row,) = s.shifts()
    assert (row["name"], row["kind"], row["since"], row["until"]) == ("f3", "step", "10", None)
    assert row["before"] * 1.8 < row["after"] < row["before"] * 2.2
    assert row["delta_low"] < row["delta"] < row["delta_high"]
    assert row["q"] <= 0.05
    assert s.shifts().kind == "shifts"
    assert len(s.shifts(0)) == 0
    assert pickle.loads(pickle.dumps(s)).shifts().to_json() == s.shifts().to_json()


def test_a_dense_frame_has_every_build_with_every_frame(builds: Path):
    s = pprofdiff.series(str(builds / "build-*" / "heap.pb"))
    wide = s.to_polars(dense=True).pivot("build", index="name", values="flat")
    assert dict(zip(wide["name"], wide.select("9", "10", "11").rows(), strict=True)) == {
        "a": (10, 10, 30),
        "b": (0, 5, 5),
        "main": (0, 0, 0),
    }
    assert s.to_pandas(dense=True)["build_number"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert len(s.values()) == 8


@pytest.fixture
def history(tmp_path: Path) -> pprofdiff.Series:
    """Twenty builds: work costs twice as much from 08 on, and parse half as much from 12 to 15."""
    for i in range(20):
        costs = {f"f{k}": 300 + (i * 7 + k * 11) % 23 for k in range(20)}
        costs["work"] = (1000 if i >= 8 else 500) + (i * 5) % 17
        costs["parse"] = (200 if 12 <= i < 16 else 400) + (i * 3) % 13
        stacks = [(["main", name], 1000 * cost, {}) for name, cost in costs.items()]
        # The appended field is the period: one event per 1000 bytes.
        (tmp_path / f"{i:02}.pb").write_bytes(profile(stacks, last=b"\x60\xe8\x07"))
    return pprofdiff.series(str(tmp_path / "*.pb"))


def test_lasting_changes_have_causes(history: pprofdiff.Series):
    shifts = history.shifts(explain=True)
    # Requested causes come first: the second column, and the first lines of the changes.
    assert list(shifts[0])[:2] == ["name", "cause"]
    assert list(pickle.loads(pickle.dumps(shifts))[0]) == list(shifts[0])
    lines = repr(shifts).splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("2 lasting changes; "))
    compared = [line.split(": ")[1] for line in lines[:heading] if line.startswith("explain: ")]
    assert compared == ["03..07 -> 08..11", "08..11 -> 12..15"]
    assert lines[heading - 1] == ""
    # The lines are those of explain() of the same builds.
    answer = str(history.explain()).splitlines()
    assert {"explain: 03..07 -> 08..11: " + answer[0], *answer[1:2]} <= set(lines[:heading])
    rows_by_name = {row["name"]: row for row in shifts}
    assert set(rows_by_name) == {"work", "parse"}
    assert [(r["kind"], r["since"], r["since_number"]) for r in rows_by_name.values()] == [
        ("step", "08", 8),
        ("passed", "12", 12),
    ]
    for name, row in rows_by_name.items():
        assert name in row["cause"]
    assert [row["cause"] for row in history.shifts()] == [None, None]
    assert history.explain().causes[0]["function"] == "work"
    assert "lasting change" in repr(history)


def test_a_series_can_be_written_as_a_page(history: pprofdiff.Series, tmp_path: Path):
    history.save_html(tmp_path / "history.html", n=1)
    html = (tmp_path / "history.html").read_text()
    assert '"type":"08 #8"' in html
    assert '"type":"12 #12"' not in html
    assert html == history.to_html(n=1)
    with pytest.raises(pprofdiff.PprofError, match="can't be read again"):
        pprofdiff.series([build(a=1)] * 7).to_html()


def test_builds_are_reloaded_with_the_same_options(tmp_path: Path):
    for i in range(8):
        cost = 900 if i >= 4 else 400
        (tmp_path / f"{i}.folded").write_text(f"main;work {cost + i}\nmain;rest {2000 + (i * 7) % 11}\n")
    s = pprofdiff.series(str(tmp_path / "*.folded"), input_type="cpu/nanoseconds")
    assert s.shifts(explain=True)[0]["cause"]
    assert "work" in s.to_html()
    assert s.explain().to_dict()["sample_type"] == "cpu"


def test_histories_of_groups_are_ranked(tmp_path: Path):
    for service, changed in [("api", 5), ("db", 9), ("web", 99)]:
        for number in range(1, 15):
            work = 1000 if number < changed else 4000 if service == "db" else 1500
            path = tmp_path / service / f"{number}.folded"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"main;work {work + number % 3}\nmain;rest {5000 + number % 2}\n")
    pattern = f"{tmp_path}/*/*.folded"
    histories = pprofdiff.series(pattern, group="service={1},build={2}")
    assert (list(histories), len(histories)) == (["db", "api", "web"], 3)
    first, second, third = histories.ranking
    assert (first["service"], first["since"], first["name"], first["kind"]) == ("db", "9", "work", "step")
    assert (second["service"], second["since"], third["since"], third["changes"]) == ("api", "5", None, 0)
    assert histories["api"].shifts().to_dicts()[0]["since"] == "5"
    assert repr(histories) == histories.to_text().rstrip()
    assert "2 of 3 histories by service changed lastingly" in histories.to_markdown()
    assert '"kind": "histories"' in histories.to_json()
    with pytest.raises(KeyError):
        histories["nope"]
    with pytest.raises(pprofdiff.PprofError, match=r"several parts of .* vary, and one of them is the build"):
        pprofdiff.series(pattern)
    # A function decides itself which part is the build.
    assert len(pprofdiff.series(pattern, key=lambda path: f"{path.stem}x{path.parent.name}").builds) == 42
    for wrong in [{"base": "x"}, {"key": str}]:
        with pytest.raises(pprofdiff.PprofError, match=r"group"):
            pprofdiff.series(pattern, group="service={1},build={2}", **wrong)
    # One key cannot tell apart builds that share it.
    with pytest.raises(pprofdiff.PprofError, match=r"service is the only key .* such as service=.1.,build=.2."):
        pprofdiff.series(pattern, group="service={1}")
    # A history that fails completely is an error, as a build that fails.
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "1.folded").write_text("nonsense")
    assert pprofdiff.series(pattern, group="service={1},build={2}").failed
    with pytest.raises(pprofdiff.PprofError, match="bad/1"):
        pprofdiff.series(pattern, group="service={1},build={2}", on_error="raise")


def test_builds_named_by_commits_are_ordered_by_history(tmp_path: Path):
    import subprocess

    def git(*args: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *args]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", ".")
    commits = []
    for number in range(8):
        git("commit", "-q", "--allow-empty", "-m", f"Change {number}")
        commits.append(git("rev-parse", "--short=10", "HEAD"))
        (tmp_path / f"{commits[-1]}.folded").write_text(f"main;work {1000 + number}\n")
    history = pprofdiff.series(f"{tmp_path}/*.folded", git=tmp_path)
    assert [build["key"] for build in history.builds] == commits
    assert history.builds[3]["subject"] == "Change 3"
    (tmp_path / "0123456789.folded").write_text("main;work 1\n")
    with pytest.raises(pprofdiff.PprofError, match="lacks the commits of these builds: 0123456789"):
        pprofdiff.series(f"{tmp_path}/*.folded", git=tmp_path)
    with pytest.raises(pprofdiff.PprofError, match="git needs a pattern"):
        pprofdiff.series([tmp_path / f"{commits[0]}.folded"], git=tmp_path)
