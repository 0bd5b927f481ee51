"""Tests of batch(): results in order, bounded memory, and bad pairs that do not stop the others."""

import copy
import csv
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pprofdiff
from conftest import CORPUS, PAIRS, pair, profile


def test_results_come_in_order():
    pairs = [pair(name) for name in PAIRS] * 4
    results = list(pprofdiff.batch(pairs))
    assert [r.pair for r in results] == pairs
    for result, (base, new) in zip(results, pairs, strict=True):
        assert result.error is None
        assert [p.name for p in (*result.diff.base, *result.diff.new)] == [str(base), str(new)]
    assert results[0].diff.top().to_dicts() == pprofdiff.diff(*pairs[0]).top().to_dicts()


def test_a_bad_pair_is_a_result_with_an_error():
    good = pair("go-mutex")
    pairs = [good, ("none", good[1]), good, (b"\xff", good[1]), 3, (good[0], None), ([], good[1]), good]
    results = list(pprofdiff.batch(pairs))
    kinds = [type(r.error) for r in results]
    error = pprofdiff.PprofError
    none = type(None)
    assert kinds == [none, FileNotFoundError, none, error, TypeError, TypeError, error, none]
    for result, given in zip(results, pairs, strict=True):
        assert result.pair is given
        assert (result.diff is None) == (result.error is not None)
    assert "FileNotFoundError" in repr(results[1])


def test_collect_returns_the_remaining_results():
    pairs = [pair("go-mutex"), (b"\xff", pair("go-mutex")[1]), pair("story-cpu")]
    results = pprofdiff.batch(pairs)
    assert next(results).error is None
    left = results.collect()
    assert [r.pair for r in left] == pairs[1:]
    assert [r.error is None for r in left] == [False, True]
    assert results.collect() == []
    with pytest.raises(pprofdiff.PprofError):
        pprofdiff.batch(pairs, on_error="raise").collect()


def test_on_error_raise_stops_at_the_first_bad_pair():
    good = pair("go-mutex")
    results = pprofdiff.batch([good, good, (b"\xff", good[1]), good], on_error="raise")
    assert next(results).diff is not None
    assert next(results).diff is not None
    with pytest.raises(pprofdiff.PprofError):
        next(results)
    assert list(results) == []
    with pytest.raises(pprofdiff.PprofError, match="'collect' or 'raise'"):
        pprofdiff.batch([], on_error="ignore")


def test_only_a_few_pairs_are_read_ahead():
    read = 0

    def pairs() -> Iterator[tuple]:
        nonlocal read
        while True:
            read += 1
            yield pair("go-mutex")

    ahead = 0
    for i, result in enumerate(itertools.islice(pprofdiff.batch(pairs()), 200)):
        assert result.error is None
        ahead = max(ahead, read - i)
    assert ahead < 2 * 256  # Two for each core.
    assert read < 200 + 2 * 256


def test_an_exception_of_the_iterable_is_raised_in_order():
    def pairs() -> Iterator[tuple]:
        yield pair("go-mutex")
        yield pair("go-mutex")
        raise LookupError("no more")

    results = pprofdiff.batch(pairs())
    assert next(results).error is None
    assert next(results).error is None
    with pytest.raises(LookupError):
        next(results)
    assert list(results) == []


def test_an_interrupt_of_the_iterable_is_raised_immediately():
    def pairs() -> Iterator[tuple]:
        yield pair("go-mutex")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(pprofdiff.batch(pairs()))


def test_pairs_may_have_sources_of_all_kinds():
    base, new = pair("go-heap")
    loaded = pprofdiff.load(base)
    expected = pprofdiff.diff(base, new).top().to_dicts()
    with new.open("rb") as file:
        pairs = [(loaded, new), (base.read_bytes(), file), ([base], (new,))]
        results = list(pprofdiff.batch(pairs))
    assert [r.diff.top().to_dicts() for r in results] == [expected] * 3
    assert results[0].diff.base[0] is loaded


def test_a_batch_can_be_abandoned():
    results = pprofdiff.batch(itertools.repeat(pair("story-cpu")))
    next(results)
    del results
    assert pprofdiff.load(CORPUS / "story-cpu.base.pb.gz").n_samples == 156


def test_no_pairs_give_no_results_and_a_number_is_a_type_error():
    assert list(pprofdiff.batch([])) == []
    with pytest.raises(TypeError):
        pprofdiff.batch(3)


def test_results_support_pattern_matching():
    match next(pprofdiff.batch([pair("go-mutex")])):
        case pprofdiff.Result(_, pprofdiff.Diff() as d, None):
            assert len(d.top()) > 0
        case other:
            pytest.fail(repr(other))
    assert pprofdiff.Result[tuple[str, str]]


def test_the_inflated_limit_is_an_error_of_the_pair():
    (result,) = pprofdiff.batch([pair("go-heap")], inflated_limit=10)
    assert isinstance(result.error, pprofdiff.PprofError)


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two directory trees with two good pairs, one broken pair, and one file without a partner on each side."""
    monkeypatch.chdir(tmp_path)
    for side, branch in (("base", "main"), ("new", "branch")):
        for service, name in (("api", "story-cpu"), ("db", "go-mutex"), ("bad", None), (side, None)):
            file = tmp_path / branch / service / "cpu.pb.gz"
            file.parent.mkdir(parents=True)
            if name is None:
                file.write_bytes(b"\x1f\x8b broken")
            else:
                shutil.copy(CORPUS / f"{name}.{side}.pb.gz", file)
    lines = ["name,base,new", "api,main/api/cpu.pb.gz,branch/api/cpu.pb.gz", "short,x", "far,file:///x,file:///y"]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "m.jsonl").write_text(
        '{"name": "two", "base": ["main/db/cpu.pb.gz", "main/db/cpu.pb.gz"], "new": "branch/db/cpu.pb.gz"}\n'
    )
    return tmp_path


SERVICES = ["api", "bad", "base", "db", "new"]


def test_pairs_of_directories_and_patterns(trees: Path):
    for pairs in (pprofdiff.pairs("main", Path("branch")), pprofdiff.pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz")):
        assert [p.name.removesuffix("/cpu.pb.gz") for p in pairs] == SERVICES
        assert [p.error is not None for p in pairs] == [False, False, True, False, True]
        assert isinstance(pairs[0], pprofdiff.Pair)
        assert (pairs[0].base, pairs[0].new) == ("main/api/cpu.pb.gz", "branch/api/cpu.pb.gz")
        assert "no such file on the new side" in str(pairs[2].error)
        results = list(pprofdiff.batch(pairs))
        assert [r.name for r in results] == [p.name for p in pairs]
        assert [type(r.error).__name__ for r in results] == ["NoneType", *["PprofError"] * 2, "NoneType", "PprofError"]
    for wrong in (("main", "nowhere"), ("x*", "y*"), ("main/*", "branch/?")):
        with pytest.raises(pprofdiff.PprofError):
            pprofdiff.pairs(*wrong)


def test_pairs_of_a_manifest(trees: Path):
    pairs = pprofdiff.pairs("m.csv")
    assert next(pairs).name == "api"
    results = list(pprofdiff.batch(pairs))
    assert [r.name for r in results] == ["line 3", "far"]
    # The second pair reached the file system of its URL.
    assert [type(r.error) for r in results] == [pprofdiff.PprofError, FileNotFoundError]
    (two,) = pprofdiff.batch(pprofdiff.pairs("m.jsonl"))
    assert (two.name, len(two.diff.base)) == ("two", 2)
    with pytest.raises(FileNotFoundError):
        pprofdiff.pairs("none.csv")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_an_interrupt_loses_no_line_of_a_slow_manifest(tmp_path: Path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    # Opened for reading and writing, so that it does not wait for a reader.
    with os.fdopen(os.open(pipe, os.O_RDWR), "w") as writer:
        lines = [f'{{"base": "a", "new": "b", "name": "{i}"}}\n' for i in range(5)]
        print(*lines[:3], sep="", end="", file=writer, flush=True)
        pairs = pprofdiff.pairs(pipe)
        assert [next(pairs).name for _ in range(3)] == ["0", "1", "2"]
        interrupt = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            next(pairs)
        print(*lines[3:], sep="", end="", file=writer, flush=True)
        assert [next(pairs).name for _ in range(2)] == ["3", "4"]


def test_a_pair_has_a_name_and_pickles():
    base, new = pair("go-mutex")
    assert pprofdiff.Pair(base, new).name == str(new)
    assert pprofdiff.Pair(base, [str(new), base]).name == str(new)
    assert pprofdiff.Pair(base, pprofdiff.load(new)).name == str(new)
    assert pprofdiff.Pair(b"", b"").name == "<bytes>"
    named_pair = pickle.loads(pickle.dumps(pprofdiff.Pair(base, new, "own")))
    assert (named_pair.name, named_pair.base, named_pair.new, named_pair.error) == ("own", base, new, None)
    alone = pickle.loads(pickle.dumps(pprofdiff.Pair(None, None, "x", error=pprofdiff.PprofError("alone"))))
    assert str(alone.error) == "alone"
    assert "alone" in repr(alone)
    (result,) = pprofdiff.batch([(base, [new])])
    assert result.name == str(new)


def test_tables_equal_top():
    d = pprofdiff.diff(*pair("go-heap"))
    for question, expected in [
        ({}, d.top()),
        ({"n": 3}, d.top(3)),
        ({"sort": "cum", "granularity": "lines"}, d.top(sort="cum", granularity="lines")),
        ({"sample_type": "alloc_space", "noinlines": True}, d.top(sample_type="alloc_space", noinlines=True)),
        ({"normalize": 0.5}, d.normalize(0.5).top()),
        ({"normalize": "total"}, d.normalize("total").top()),
        ({"focus": "main", "hide": "runtime", "ignore": None}, d.filter(focus="main", hide="runtime").top()),
    ]:
        (result,) = pprofdiff.batch([pair("go-heap")]).tables(**question)
        assert result.diff is None
        assert result.table.to_json() == expected.to_json(), question
    for wrong in ({"sort": "name"}, {"granularity": "x"}, {"focus": "("}, {"normalize": "x"}):
        with pytest.raises(pprofdiff.PprofError):
            pprofdiff.batch([]).tables(**wrong)
    with pytest.raises(TypeError, match='unknown option "tagfokus"'):
        pprofdiff.batch([]).tables(tagfokus="x")


def test_profiles_of_a_side_are_runs_or_are_summed():
    (a, b), (c, d) = pair("go-mutex"), pair("go-mutex")[::-1]
    sides = [a, c, a], [b, d]
    added = pprofdiff.diff(*sides, sum=True).top().to_dicts()
    assert added != pprofdiff.diff(*sides).top().to_dicts()
    with ThreadPoolExecutor(2) as executor:
        for where in (None, executor):
            [result] = pprofdiff.batch([sides], executor=where, sum=True).tables()
            assert result.table.to_dicts() == added
            [result] = pprofdiff.batch([sides], executor=where, sum=True)
            assert result.diff.top().to_dicts() == added
            [result] = pprofdiff.batch([sides], executor=where).tables()
            assert result.table.to_dicts() == pprofdiff.diff(*sides).top().to_dicts()


def test_an_impossible_view_is_an_error_of_its_pair():
    results = pprofdiff.batch([pair("go-heap"), pair("go-mutex")]).tables(sample_type="alloc_space").collect()
    assert [r.error is None for r in results] == [True, False]
    assert results[1].table is None


def test_every_view_of_rows_works_for_many_pairs():
    d = pprofdiff.diff(*pair("story-cpu"))
    options = {"granularity": "lines", "noinlines": True}
    views = {
        "tree": d.tree(5, sort="cum", **options),
        "peek=headers": d.peek("headers", 5, sort="cum", **options),
        "stacks": d.stacks(5, **options),
        "labels": d.labels(5, **options),
    }
    for view, alone in views.items():
        (result,) = pprofdiff.batch([pair("story-cpu")]).tables(5, view=view, sort="cum", **options)
        assert result.table.to_json() == alone.to_json(), view
    with pytest.raises(pprofdiff.PprofError, match="peek=RE"):
        pprofdiff.batch([]).tables(view="flame")
    with pytest.raises(TypeError, match='view="top"'):
        pa.RecordBatchReader.from_stream(pprofdiff.batch([]).tables(view="tree"))


def test_tables_must_be_requested_before_the_first_result():
    results = pprofdiff.batch([pair("go-mutex")] * 2)
    next(results)
    with pytest.raises(RuntimeError, match="has started"):
        results.tables()


def test_pairs_are_ranked_and_share_causes(tmp_path: Path):
    story, other = pair("story-cpu"), pair("cpp-cpu")
    pairs = [pprofdiff.Pair(*story, "a"), pprofdiff.Pair(*other, "b"), pprofdiff.Pair(*story, "c"), ("none", story[1])]
    ranking = pprofdiff.batch(pairs).ranking()
    assert (ranking.changed, [name for name, _ in ranking.failed]) == (3, [str(story[1])])
    rows = ranking.pairs.to_dicts()
    assert [row["pair"] for row in rows] == ["a", "c", "b"]
    assert all(row["q"] < 0.05 for row in rows)
    cause = pprofdiff.diff(*story).explain().causes.to_dicts()[0]
    (first, *_) = ranking.clusters.to_dicts()
    assert (first["function"], first["pairs"], first["delta"]) == (cause["function"], 2, 2 * cause["delta"])
    # The command, workers and pickled results give the same ranking.
    manifest = tmp_path / "pairs.csv"
    manifest.write_text("base,new,name\n" + "".join(f"{p.base},{p.new},{p.name}\n" for p in pairs[:3]))
    command = [sys.executable, "-m", "pprofdiff", "batch", str(manifest), "--rank", "--format", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    again = pprofdiff.batch(pairs[:3]).ranking()
    assert again.to_dict() == report == json.loads(again.to_json())
    with ThreadPoolExecutor(2) as threads:
        assert pprofdiff.batch(pairs[:3], executor=threads).ranking().to_dict() == report
    copied = pickle.loads(pickle.dumps(ranking))
    assert (copied.to_json(), repr(copied), copied.failed) == (ranking.to_json(), repr(ranking), ranking.failed)
    assert repr(ranking).startswith("3 of 3 pairs changed")
    # The pairs have no common inputs, so the tables begin with the total.
    for table in (ranking.pairs, ranking.clusters, ranking.common):
        assert repr(table).startswith(f"{ranking.to_dict()['sample_type']} (")
        assert "runs" not in repr(table) + table._repr_html_()
    assert "Causes that several pairs share" in ranking.to_markdown()


def test_files_are_paired_by_keys(trees: Path):
    keys = "service={2},branch={1}"
    asked = {"base": "branch=main", "new": "branch=branch"}
    grouped_pairs = pprofdiff.group_pairs("*/*/*.pb.gz", keys, **asked)
    assert [(pair.name, pair.error is None) for pair in grouped_pairs] == list(
        zip(SERVICES, [True, True, False, True, False], strict=True)
    )
    files = sorted(Path().glob("*/*/*.pb.gz"))
    rows = [{"profile": str(path), "service": path.parts[1], "branch": path.parts[0]} for path in files]
    listed = pprofdiff.group_pairs(rows, "service,branch", **asked)
    with Path("files.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, ["profile", "service", "branch"])
        out.writeheader()
        out.writerows(rows)
    for other in (listed, pprofdiff.group_pairs("files.csv", "service,branch", **asked)):
        assert [(p.name, p.base, p.new, str(p.error)) for p in other] == [
            (p.name, p.base, p.new, str(p.error)) for p in grouped_pairs
        ]
    with pytest.raises(KeyError, match="profile"):
        pprofdiff.group_pairs([{"service": "a"}], "service", **asked)
    with pytest.raises(pprofdiff.PprofError, match="has no"):
        pprofdiff.group_pairs(rows, "service,host", base="host=a", new="host=b")


def test_invalid_rankings_are_errors():
    good = pair("story-cpu")
    with pytest.raises(pprofdiff.PprofError, match="between 0 and 1"):
        pprofdiff.batch([good]).ranking(fdr=1.0)
    with pytest.raises(pprofdiff.PprofError, match="no pair could be compared"):
        pprofdiff.batch([("none", "none")]).ranking()
    with pytest.raises(pprofdiff.PprofError, match="one sample type at a time"):
        pprofdiff.batch([good]).ranking(sample_type=["cpu", "samples"])
    with pytest.raises(FileNotFoundError):
        pprofdiff.batch([good, ("none", "none")], on_error="raise").ranking()
    begun = pprofdiff.batch([good])
    next(begun)
    with pytest.raises(RuntimeError, match="has started"):
        begun.ranking()


def test_the_summary_is_the_pair_in_one_row(story: pprofdiff.Diff):
    results = pprofdiff.batch([pair("story-cpu"), ("none", "gone")]).tables(1, sort="cum")
    good, bad = (r.summary for r in results)
    top = story.top(sort="cum")
    assert good == {
        "name": str(pair("story-cpu")[1]),
        "error": None,
        "sample_type": "cpu",
        "unit": "nanoseconds",
        "total_base": top.summary["total_base"],
        "total_new": top.summary["total_new"],
        "total_delta": top.summary["total_delta"],
        "frames": len(top),
        "frame": top[0]["name"],
        "flat_delta": top[0]["flat_delta"],
        "cum_delta": top[0]["cum_delta"],
    }
    assert list(bad) == list(good)
    assert (bad["name"], bad["frames"], bad["total_base"]) == ("gone", None, None)
    assert "No such file" in bad["error"]
    assert pl.DataFrame([good, bad]).height == 2


def results_of(pairs: list, n: int | None) -> list[dict]:
    """Returns the expected rows of the stream, built from the tables."""
    rows = []
    for result in pprofdiff.batch(pairs).tables(n):
        if result.error is not None:
            rows.append({"pair": result.name, "error": result.summary["error"]})
            continue
        shared = {"pair": result.name, "error": None}
        shared |= {key: result.table.summary[key] for key in ("sample_type", "unit")}
        rows += [shared | row for row in result.table]
    return rows


def small_pairs(pairs: int) -> list:
    """Returns small pairs of several kinds; one in ten is bad."""
    kinds = [pair("go-mutex"), pair("story-cpu"), pair("go-heap"), ([], []), pair("go-block")]
    return [kinds[i % 5] if i % 10 else ("no such file", f"bad {i}") for i in range(pairs)]


def test_consumers_of_the_arrow_stream():
    pairs = small_pairs(30)
    expected = results_of(pairs, 40)
    full = [{column: row.get(column) for column in expected[1]} for row in expected]
    assert sum(row["error"] is not None for row in expected) > 5
    many = lambda: pprofdiff.batch(pairs).tables(40)  # noqa: E731
    assert pl.DataFrame(many()).to_dicts() == full
    table = pa.table(many())
    table.validate(full=True)
    assert table.to_pylist() == full
    # Without tables(), the stream contains all rows.
    assert pl.DataFrame(pprofdiff.batch(pairs)).to_dicts() == [
        {column: row.get(column) for column in expected[1]} for row in results_of(pairs, None)
    ]


def test_the_stream_is_read_batch_by_batch(tmp_path: Path):
    read = 0

    def pairs() -> Iterator[tuple]:
        nonlocal read
        for read in range(1, 2001):  # noqa: B007
            yield pair("story-cpu")

    ahead, rows, batches = 0, 0, 0
    frames = len(pprofdiff.diff(*pair("story-cpu")).top(granularity="lines"))
    with pa.RecordBatchReader.from_stream(pprofdiff.batch(pairs()).tables(granularity="lines")) as reader:
        assert read == 0
        with pq.ParquetWriter(tmp_path / "out.parquet", reader.schema) as out:
            for batch in reader:
                assert batch.num_rows <= 1 << 16
                rows += batch.num_rows
                batches += 1
                ahead = max(ahead, read - rows // frames)
                out.write_batch(batch)
    assert (read, rows) == (2000, 2000 * frames)
    assert batches == -(-rows // (1 << 16))
    assert ahead < 2 * 256 + 1
    total = pl.scan_parquet(tmp_path / "out.parquet").select(pl.col("flat_delta").sum()).collect().item()
    assert total == 2000 * sum(pprofdiff.diff(*pair("story-cpu")).top(granularity="lines")["flat_delta"])


def test_long_tables_are_split_into_batches():
    stacks = [([f"function {i}"], i + 1, {}) for i in range(70_000)]
    base = profile(stacks[:1])
    # Built in parts, because profile() is slow for many names.
    new = pprofdiff.merge([profile(stacks[i : i + 500]) for i in range(0, len(stacks), 500)])
    batches = list(pa.RecordBatchReader.from_stream(pprofdiff.batch([(base, new), (base, base)])))
    assert [batch.num_rows for batch in batches] == [1 << 16, 70_001 - (1 << 16)]
    names = pa.Table.from_batches(batches).column("name").to_pylist()
    assert names[:-1] == pprofdiff.diff(base, new).top()["name"]


def test_the_stream_raises_with_on_error_raise():
    results = pprofdiff.batch([pair("go-mutex"), ("none", "none")], on_error="raise")
    reader = pa.RecordBatchReader.from_stream(results)
    assert reader.read_next_batch().num_rows > 1
    with pytest.raises((pa.ArrowException, OSError), match="No such file"):
        reader.read_next_batch()


def test_an_unread_stream_frees_its_pairs():
    for _ in range(20):
        pprofdiff.batch([pair("go-mutex")]).__arrow_c_stream__()
    reader = pa.RecordBatchReader.from_stream(pprofdiff.batch(itertools.repeat(pair("story-cpu"))))
    reader.read_next_batch()
    del reader


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_keeps_the_finished_rows_of_a_stream(tmp_path: Path):
    code = """
import itertools, sys, pprofdiff, pyarrow, pyarrow.parquet
pairs = itertools.repeat(tuple(sys.argv[2:]))
reader = pyarrow.RecordBatchReader.from_stream(pprofdiff.batch(pairs).tables(3))
rows = 0
try:
    with pyarrow.parquet.ParquetWriter(sys.argv[1], reader.schema) as out:
        for batch in reader:
            out.write_batch(batch)
            rows += batch.num_rows
            if rows > 100:
                print("ready", flush=True)
except KeyboardInterrupt:
    print("interrupted", rows, flush=True)
"""
    file = tmp_path / "out.parquet"
    command = [sys.executable, "-c", code, str(file), *map(str, pair("go-mutex"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)  # Now it is inside the next batch.
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        rest, _ = child.communicate(timeout=60)
    assert time.monotonic() - sent < 10
    interrupted, rows = rest.removeprefix("ready\n" * rest.count("ready")).split()
    assert interrupted == "interrupted"
    assert pq.read_table(file).num_rows == int(rows)
    assert int(rows) % (1 << 16) != 0, "the batch that was begun is there"


def test_progress_is_shown_in_terminals(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    pairs = [pair("go-mutex")] * 7
    assert len(pprofdiff.batch(pairs).collect()) == 7
    assert capfd.readouterr().err == ""
    assert len(pprofdiff.batch(pairs, progress=True).collect()) == 7
    assert "7/7" in capfd.readouterr().err
    assert len(pprofdiff.batch(iter(pairs), progress=True).tables(1).collect()) == 7
    assert "7pair" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.warns(UserWarning, match="tqdm is not installed"):
        assert len(pprofdiff.batch(pairs, progress=True).collect()) == 7


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")
def test_ten_thousand_pairs_in_bounded_memory():
    """Peak memory for 10,000 pairs equals that for 1,000 pairs. Every bad pair is reported, and none is lost."""
    code = r"""
import itertools, re, sys
from pathlib import Path
import pprofdiff
count, (base, new) = int(sys.argv[1]), sys.argv[2:]
pairs = (("bad", f"bad {i}") if i % 100 == 7 else (base, new) for i in range(count))
total = bad = 0
for i, result in enumerate(pprofdiff.batch(pairs).tables()):
    total += 1
    if result.error is not None:
        assert i % 100 == 7 and result.name == f"bad {i}", (i, result)
        bad += 1
assert (total, bad) == (count, count // 100), (total, bad)
print(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
"""

    def peak(count: int) -> int:
        command = [sys.executable, "-c", code, str(count), *map(str, pair("go-mutex"))]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    few, many = peak(1000), peak(10_000)
    assert many < few + 4096, f"{few} kB, {many} kB"


def test_the_pairs_of_a_batch_are_compared_once():
    pairs = [pair("story-cpu"), pair("go-mutex")]
    done = pprofdiff.batch(pairs)
    assert len(done.collect()) == 2
    with pytest.raises(RuntimeError, match="this batch is done; keep its results with collect"):
        list(done)
    # An exhausted iterator stays exhausted.
    assert next(done, None) is None
    assert done.collect() == []
    # collect() returns the remaining results of an iterator in use.
    begun = pprofdiff.batch(pairs)
    next(iter(begun))
    assert len(begun.collect()) == 1
    # tables() compares the same pairs.
    both = pprofdiff.batch(pairs)
    assert len(both.tables(1).collect()) == 2
    for again in (both.collect, both.tables(1).collect):
        with pytest.raises(RuntimeError, match="the pairs of this batch were compared already"):
            again()


def test_a_batch_pickles_until_it_begins():
    pairs = [pair("story-cpu"), pair("go-mutex")]
    for made in (pprofdiff.batch(pairs), pprofdiff.batch(pairs).tables(1)):
        assert len(pickle.loads(pickle.dumps(made)).collect()) == 2
        next(made)
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="a batch that has started can't be pickled or copied; collect"):
                copied(made)
        assert len(made.collect()) == 1
    unread = pprofdiff.batch(p for p in pairs)
    with pytest.raises(TypeError, match="generator"):
        pickle.dumps(unread)
    assert len(unread.collect()) == 2


def test_keys_of_pairs_are_columns(tmp_path: Path):
    for build in ["v1", "v2"]:
        for service in ["api", "db"]:
            path = tmp_path / service / f"{build}.folded"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"main;work {100 if build == 'v1' else 300}\n")
    pairs = pprofdiff.group_pairs(f"{tmp_path}/*/*.folded", "name={1},build={2}", "build=@previous", "build=@latest")
    keys = {"name": "api", "build_base": "v1", "build_new": "v2"}
    assert [pairs[0].keys, pickle.loads(pickle.dumps(pairs[0])).keys] == [keys, keys]
    frame = pl.DataFrame(pprofdiff.batch(pairs).tables())
    # A key with the name of another column has a prefix.
    assert frame.columns[:5] == ["pair", "key_name", "build_base", "build_new", "error"]
    assert set(frame.select("pair", "key_name", "build_new").iter_rows()) == {("api", "api", "v2"), ("db", "db", "v2")}
    assert frame["flat_delta"].drop_nulls().max() == 200
    # The rest of a stream has them as well, and so do summaries and pairs with an error.
    started = pprofdiff.batch([*pairs, pprofdiff.Pair("none", "none", keys={**keys, "name": "x"})]).tables()
    assert next(started).summary["build_new"] == "v2"
    assert pl.DataFrame(started)["key_name"].unique().sort().to_list() == ["db", "x"]
    (both,) = pprofdiff.pairs(f"{tmp_path}/a*/v1.folded", f"{tmp_path}/a*/v2.folded")
    assert both.keys == {"key_1": "pi"}
    assert pprofdiff.Pair("a", "b").keys == {}
    # Keys are matched by name, also if pairs have them in another order, or lack some.
    files = (f"{tmp_path}/api/v1.folded", f"{tmp_path}/api/v2.folded")
    keys = [{"zone": "eu", "host": "h1"}, {"host": "h2", "zone": "us"}, {"host": "h3", "disk": "d"}, {}]
    others = [pprofdiff.Pair(*files, f"p{i}", keys=keys) for i, keys in enumerate(keys)]
    frame = pl.DataFrame(pprofdiff.batch(others).tables(1))
    assert frame.columns[:5] == ["pair", "zone", "host", "disk", "error"]
    assert list(frame.select("zone", "host", "disk").iter_rows()) == [
        ("eu", "h1", None),
        ("us", "h2", None),
        (None, "h3", "d"),
        (None, None, None),
    ]


def test_a_ranking_has_the_default_type_of_most_pairs(tmp_path: Path):
    pairs = []
    for name, sample_type in {"a": "lock", "b": "inuse", "c": "inuse"}.items():
        files = [tmp_path / f"{name}.{side}.pb" for side in ("base", "new")]
        for file, cost in zip(files, [100, 107], strict=True):
            file.write_bytes(profile([(["main", "work"], cost, {})], sample_type=(sample_type, "count")))
        pairs.append(pprofdiff.Pair(*files, name))
    ranking = pprofdiff.batch(pairs).ranking()
    assert ranking.failed == [("a", "a: it lacks the sample type inuse; it has lock")]
    assert "the sample type is inuse, the default of 2 of 3 pairs; 1 pair lacks it" in ranking.to_text()


def test_options_of_views_name_the_call_that_takes_them():
    with pytest.raises(TypeError, match=r"\.ranking\(sample_type=\.\.\.\) or \.tables\(sample_type=\.\.\.\)"):
        pprofdiff.batch([], sample_type="cpu")
    with pytest.raises(TypeError, match='unknown option "sample_typ"'):
        pprofdiff.batch([], sample_typ="cpu")
