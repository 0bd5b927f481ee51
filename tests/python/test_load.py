"""Tests of loading: the sources of profiles, their metadata, and the errors for bad profiles."""

import array
import datetime
import errno
import gzip
import io
import mmap
import os
import pickle
import re
import shutil
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pprofdiff
from conftest import CORPUS, pair, profile

HEAP = CORPUS / "go-heap.base.pb.gz"


class Mine(os.PathLike):
    def __fspath__(self) -> str:
        return str(HEAP)


def test_every_kind_of_source_gives_the_same_profile():
    content = HEAP.read_bytes()
    expected = pprofdiff.load(HEAP).top().to_dicts()
    assert len(expected) > 10
    with HEAP.open("rb") as file, HEAP.open("rb") as mapped, gzip.open(HEAP) as inflated:
        sources = [
            str(HEAP),
            Mine(),
            content,
            bytearray(content),
            memoryview(content),
            memoryview(b"".join(bytes([b, 0]) for b in content))[::2],
            array.array("B", content),
            mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_READ),
            io.BytesIO(content),
            file,
            inflated,
            pprofdiff.load(HEAP),
        ]
        for source in sources:
            assert pprofdiff.load(source).top().to_dicts() == expected, source


def test_profiles_are_named_by_their_source():
    assert pprofdiff.load(HEAP).name == str(HEAP)
    assert pprofdiff.load(HEAP.read_bytes()).name == "<bytes>"
    assert pprofdiff.load(io.BytesIO(HEAP.read_bytes())).name == "<stream>"
    with HEAP.open("rb") as file:
        assert pprofdiff.load(file).name == str(HEAP)
    with tempfile.TemporaryFile() as file:
        file.write(HEAP.read_bytes())
        file.seek(0)
        assert pprofdiff.load(file).name == "<stream>"  # The name of this file is a number.


def test_a_loaded_profile_is_returned_unchanged():
    p = pprofdiff.load(HEAP)
    assert pprofdiff.load(p) is p


def test_metadata_of_a_profile():
    p = pprofdiff.load(CORPUS / "story-cpu.base.pb.gz")
    assert p.sample_types == [("samples", "count"), ("cpu", "nanoseconds")]
    assert p.default_sample_type == "cpu"
    assert p.n_samples == 156
    assert p.totals == [190, 1_900_000_000]
    assert isinstance(p.duration, datetime.timedelta)
    assert 1.8 < p.duration.total_seconds() < 1.9
    assert isinstance(p.time, datetime.datetime)
    assert p.time.tzinfo is datetime.UTC
    assert p.time.year >= 2025
    assert p.period == 10_000_000
    assert p.period_type == ("cpu", "nanoseconds")
    assert p.mappings
    assert (p.comments, p.doc_url, p.warnings, p.is_diff) == ([], "", [], False)


def test_metadata_of_an_empty_profile():
    p = pprofdiff.load(profile([(["main"], 1, {})]))
    assert (p.duration, p.time, p.period_type, p.mappings) == (None, None, None, [])


@pytest.mark.parametrize("nanos", [-1, 1, -(2**63), 2**63 - 1])
def test_extreme_times_are_exact_or_none(nanos: int):
    number = (nanos & (1 << 64) - 1).to_bytes(10, "little")
    varint = bytearray()
    value = int.from_bytes(number, "little")
    while value > 0x7F:
        varint.append(value & 0x7F | 0x80)
        value >>= 7
    varint.append(value)
    p = pprofdiff.load(profile([(["main"], 1, {})], last=b"\x48" + varint + b"\x50" + varint))
    assert p.duration == datetime.timedelta(microseconds=nanos // 1000)
    assert p.time == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + p.duration


def test_errors_of_the_operating_system_are_oserrors(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        pprofdiff.load(tmp_path / "none")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path / "none"))
    with pytest.raises(IsADirectoryError) as caught_dir:
        pprofdiff.diff(HEAP, tmp_path)
    assert (caught_dir.value.errno, caught_dir.value.filename) == (errno.EISDIR, str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught_write:
        pprofdiff.load(HEAP).write(tmp_path / "none" / "out.pb.gz")
    assert caught_write.value.filename == str(tmp_path / "none" / "out.pb.gz")
    with pytest.raises(pprofdiff.PprofError, match="NUL byte"):
        pprofdiff.load("a\0b")


def test_exceptions_of_a_file_object_are_raised_unchanged():
    class Broken:
        def read(self) -> bytes:
            raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        pprofdiff.load(Broken())


def test_malformed_bytes_are_errors_with_a_position():
    good = profile([(["main", "leaf"], 7, {})])
    with pytest.raises(pprofdiff.PprofError) as caught:
        pprofdiff.load(good + b"\x12\x02\x08\x63")
    e = caught.value
    assert isinstance(e, ValueError)
    assert e.input == "<bytes>"
    assert e.record == "sample 1"
    assert isinstance(e.offset, int)
    assert len(good) <= e.offset <= len(good) + 4
    assert e.detail
    assert str(e) == f"<bytes>: sample 1: {e.detail} (at byte {e.offset} of the inflated data)"


def test_messages_are_escaped_and_attributes_are_exact(tmp_path: Path):
    path = tmp_path / "a\n::error::b\x1b[31m\u202e.pb"
    path.write_bytes(b"none")
    with pytest.raises(pprofdiff.PprofError) as caught:
        pprofdiff.load(path)
    assert caught.value.input == str(path)
    assert str(caught.value).startswith(f"{tmp_path}/a\ufffd::error::b\ufffd[31m\ufffd.pb: ")
    with pytest.raises(FileNotFoundError) as missing:
        pprofdiff.load(f"{path}b")
    assert missing.value.filename == f"{path}b"
    assert str(missing.value).isprintable()
    word = "flat\x1b\u2066"
    with pytest.raises(KeyError) as unknown:
        pprofdiff.load(HEAP).top()[word]
    assert str(unknown.value).isprintable()


def test_errors_created_in_python_have_the_attributes():
    e = pprofdiff.PprofError("mine")
    assert (e.input, e.record, e.offset, e.detail, e.advice) == (None, None, None, None, None)


def test_advice_is_a_note_of_the_exception(tmp_path: Path):
    recording = tmp_path / "it's $(old).data"
    recording.write_bytes(b"2ELIFREP")
    with pytest.raises(pprofdiff.PprofError, match="have perf write it as text") as caught:
        pprofdiff.load(recording)
    e = pickle.loads(pickle.dumps(caught.value))
    quoted = str(recording).replace("'", "'\\''")
    assert e.advice == f"perf script -i '{quoted}' > profile.txt"
    assert "perf script" not in str(e)
    assert e.advice in "".join(traceback.format_exception(e))
    assert pprofdiff.load(HEAP).advice is None


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", HEAP.read_bytes()[:-9], HEAP.read_bytes() + b"x"])
def test_incomplete_and_foreign_input_is_an_error(content: bytes):
    with pytest.raises(pprofdiff.PprofError, match=r"^<bytes>: "):
        pprofdiff.load(content)


def test_the_inflated_limit_is_an_error():
    with pytest.raises(pprofdiff.PprofError, match="inflate"):
        pprofdiff.load(HEAP, inflated_limit=100)
    with pytest.raises(pprofdiff.PprofError, match="inflate"):
        pprofdiff.diff(*pair("go-heap"), inflated_limit=100)
    with pytest.raises(OverflowError):
        pprofdiff.load(HEAP, inflated_limit=-1)


@pytest.mark.parametrize("source", [None, 3, ["a"], object()])
def test_objects_that_are_not_sources_are_type_errors(source: object):
    with pytest.raises(TypeError, match="a profile must be a path, a URL, bytes, a file object or a Profile"):
        pprofdiff.load(source)


def test_a_file_in_text_mode_is_an_error():
    with pytest.raises(TypeError, match="mode 'rb'"):
        pprofdiff.load(io.StringIO("text"))


def test_merge_sums_profiles():
    a, b = (pprofdiff.load(path) for path in pair("go-heap"))
    merged = pprofdiff.merge([a, pair("go-heap")[1]])
    assert merged.name == "merged"
    assert merged.totals == [x + y for x, y in zip(a.totals, b.totals, strict=True)]
    assert pprofdiff.merge(p for p in (a, b)).top().to_dicts() == merged.top().to_dicts()
    with pytest.raises(pprofdiff.PprofError, match="no profile"):
        pprofdiff.merge([])
    with pytest.raises(TypeError, match="list"):
        pprofdiff.merge(str(HEAP))


@pytest.mark.parametrize(
    ("name", "magic"), [("p.pb.gz", b"\x1f\x8b"), ("p.zst", b"\x28\xb5\x2f\xfd"), ("p.pb", b"\x5a")]
)
def test_write_compresses_by_extension(tmp_path: Path, name: str, magic: bytes):
    p = pprofdiff.load(HEAP)
    p.write(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert pprofdiff.load(tmp_path / name).top().to_dicts() == p.top().to_dicts()


def test_merge_multiplies_by_weights():
    twice, once = pprofdiff.merge([HEAP, HEAP]), pprofdiff.merge([HEAP], weights=[2])
    assert once.totals == twice.totals
    assert once.stacks().to_dicts() == twice.stacks().to_dicts()
    halves = pprofdiff.merge([HEAP, HEAP], weights=[0.5, 0.5])
    assert halves.totals == pprofdiff.load(HEAP).totals
    with pytest.raises(pprofdiff.PprofError, match="2 profiles, but 1 weights"):
        pprofdiff.merge([HEAP, HEAP], weights=[2])
    with pytest.raises(pprofdiff.PprofError, match=r"from 0\.000001"):
        pprofdiff.merge([HEAP], weights=[0])


def test_write_accepts_compression_and_level(tmp_path: Path):
    p = pprofdiff.load(HEAP)
    inflated = gzip.decompress(HEAP.read_bytes())
    assert p.to_bytes("none") == inflated
    out = io.BytesIO()
    p.write(out, compression="none")
    assert out.getvalue() == inflated
    p.write(tmp_path / "p.zst", compression="gzip", level=9)
    assert gzip.decompress((tmp_path / "p.zst").read_bytes()) == inflated
    assert len(p.to_bytes(level=9)) < len(p.to_bytes(level=0))
    with pytest.raises(pprofdiff.PprofError, match="levels 0 to 9"):
        p.to_bytes(level=10)
    with pytest.raises(pprofdiff.PprofError, match="'gzip', 'zstd' or 'none'"):
        p.to_bytes("lzma")
    with pytest.raises(TypeError):
        p.write(3)


def test_the_docstring_contains_the_compression_level_in_use():
    p, doc = pprofdiff.load(HEAP), " ".join((pprofdiff.Profile.write.__doc__ or "").split())
    for packing in ("gzip", "zstd"):
        match = re.search(rf"{packing} \d+ to \d+ \((\d+) unless given\)", doc)
        assert match, doc
        assert p.to_bytes(packing) == p.to_bytes(packing, int(match[1])) != p.to_bytes(packing, 9)


FOLDED = b"main;parse 31 33\nmain 8 0\n"


def test_folded_stacks_are_a_profile_or_a_diff(tmp_path: Path):
    one = pprofdiff.load(FOLDED, input_type="space/bytes")
    assert one.sample_types == [("space", "bytes")]
    assert {row["name"]: row["cum"] for row in one.top().to_dicts()} == {"main": 33, "parse 31": 33}
    two = pprofdiff.load(FOLDED, input_format="folded2")
    rows = {row["name"]: (row["flat_base"], row["flat_new"]) for row in two.top().to_dicts()}
    assert rows == {"main": (8, 0), "parse": (31, 33)}
    # A written file is read back unchanged. Pickles do not depend on the way of loading.
    written = tmp_path / "diff.folded"
    diff = pprofdiff.diff(*pair("go-mutex"))
    written.write_text(diff.folded())
    again = pprofdiff.load(written)
    for loaded in (again, pickle.loads(pickle.dumps(again))):
        assert loaded.sample_types == [("delay", "nanoseconds")]
        assert loaded.top().summary["total_delta"] == diff.top().summary["total_delta"]


def test_every_function_that_loads_accepts_the_format():
    a, b = b"a;b 5\n", b"a;b 8\n"
    how = {"input_format": "folded", "input_type": "alloc_space/bytes"}
    assert pprofdiff.diff(a, b, **how).sample_types == [("alloc_space", "bytes")]
    assert pprofdiff.merge([a, b], **how).top()[0]["flat"] == 13
    assert pprofdiff.delta(a, b, **how).top()[0]["flat"] == 3
    assert pprofdiff.check(a, b, ["total>+100%"], **how).verdict == "pass"
    assert len(list(pprofdiff.deltas([a, b, b], **how))) == 2
    computer = pprofdiff.DeltaComputer(**how)
    assert computer.update(a).sample_types == [("alloc_space", "bytes")]
    for many in (pprofdiff.series([a, b], **how), pprofdiff.series([b], base=a, **how)):
        assert many.values().summary["sample_type"] == "alloc_space"
        assert not many.errors
    with ThreadPoolExecutor(1) as executor:
        for where in (None, executor):
            (result,) = pprofdiff.batch([(a, b)], executor=where, **how).tables()
            assert result.error is None
            assert result.table.summary["unit"] == "bytes"
    with pytest.raises(pprofdiff.PprofError, match='unknown input format "x"'):
        pprofdiff.load(a, input_format="x")
    with pytest.raises(pprofdiff.PprofError, match=r"line 1: .* does not end in a number") as caught:
        pprofdiff.load(b"a;b\n", input_format="folded")
    assert (caught.value.record, caught.value.offset) == ("line 1", 0)


def names_of(table: pprofdiff.Table) -> set[str]:
    return {row["name"] for row in table.to_dicts()}


def test_names_are_read_from_binaries(program: tuple[Path, bytes], monkeypatch: pytest.MonkeyPatch):
    app, heap = program
    bare = pprofdiff.load(heap)
    assert "/opt/app" in bare.warnings[0]
    assert bare.top()[0]["name"] != "work"
    for binary in (app, str(app), [app], [app.parent], app.parent):
        named = pprofdiff.load(heap, binary=binary)
        assert not named.warnings
        rows = {(row["name"], row["line"]) for row in named.top(granularity="lines").to_dicts()}
        assert rows == {("work", 1), ("main", 2)}, binary
    how = {"binary": [app]}
    for profile_or_diff in (
        pickle.loads(pickle.dumps(named)),
        pprofdiff.diff(heap, heap, **how),
        pprofdiff.merge([heap, heap], **how),
    ):
        assert names_of(profile_or_diff.top()) == {"work", "main"}
    assert names_of(pprofdiff.series([heap, heap], **how).values()) == {"work", "main"}
    # Noise runs with the same content as the base count as copies. No other warning remains.
    (warning,) = pprofdiff.diff(heap, heap, **how).explain(noise=[heap, heap], **how).to_dict()["warnings"]
    assert "the same content as 2 other runs of the base" in warning
    with ThreadPoolExecutor(1) as executor:
        for where in (None, executor):
            (result,) = pprofdiff.batch([(heap, heap)], executor=where, **how).tables()
            assert names_of(result.table) == {"work", "main"}
    with pytest.raises(FileNotFoundError):
        pprofdiff.load(heap, binary=app.with_name("nothing"))
    monkeypatch.setenv("PPROF_BINARY_PATH", str(app.parent))
    assert names_of(pprofdiff.load(heap).top()) == {"work", "main"}


def test_instructions_are_read_from_binaries(program: tuple[Path, bytes], tmp_path: Path):
    app, heap = program
    with pytest.raises(pprofdiff.PprofError, match="binaries that are missing: /opt/app; name them with binary="):
        pprofdiff.load(heap).disasm("work")
    one = pprofdiff.load(heap, binary=app)
    (work,) = one.disasm("^work$", unit="B").routines
    assert (work["name"], work["binary"], work["cum"], work["lines"]) == ("work", str(app), 5, [])
    costly = [i for i in work["instructions"] if i["flat"]]
    assert [(i["flat"], i["function"], i["line"]) for i in costly] == [(5, "work", 1)]
    assert work["instructions"][-1]["text"] == "ret"
    two = pprofdiff.diff(heap, heap, binary=[app]).disasm("main")
    (main,) = two.routines
    assert (main["status"], main["base_binary"], main["new_binary"]) == ("same", str(app), str(app))
    assert {i["change"] for i in main["instructions"]} == {"same"}
    assert any(i["text"].startswith("call ") and i["text"].endswith("<work>") for i in main["instructions"])
    assert "call " in two._repr_html_()
    assert pickle.loads(pickle.dumps(two)).routines == two.routines
    two.save(tmp_path / "main.txt")
    assert "address: base" in (tmp_path / "main.txt").read_text()
    (line,) = one.list("work").routines[0]["lines"]
    assert sum(i["flat"] for i in line["instructions"]) == line["flat"] == 5
    with pytest.raises(TypeError, match="disasm"):
        one.disasm("work", granularity="lines")


def test_each_side_has_its_binary(program: tuple[Path, bytes]):
    app, heap = program
    d = pprofdiff.diff(heap, heap, base_binary=app, new_binary=[app], any_build=True)
    (main,) = d.disasm("main").routines
    assert (main["base_binary"], main["new_binary"]) == (str(app), str(app))
    with pytest.raises(pprofdiff.PprofError, match="two sides"):
        pprofdiff.load(heap, base_binary=app)
    with pytest.raises(TypeError, match='unknown option "binry"; the options are input_format'):
        pprofdiff.batch([(heap, heap)], binry=app)


def test_two_time_ranges_of_one_recording_can_be_compared():
    run = CORPUS / "inputs" / "press.base.jfr.gz"
    d = pprofdiff.diff(run, run, base_time="0..3s", new_time="3s..6s")
    sides = d.top().summary
    assert (sides["base"]["time"], sides["new"]["time"]) == ("0..3s", "3s..6s")
    split = pprofdiff.diff(run, run, split_at="ExecutionSample").top(sample_type="alloc_space").summary
    assert (split["base"]["time"], split["new"]["time"]) == ("..ExecutionSample", "ExecutionSample..")
    assert split["total_base"] > 0
    message = "split_at= is for a comparison of two sides; for a part of one profile use time=$"
    with pytest.raises(pprofdiff.PprofError, match=message):
        pprofdiff.load(run, split_at="3s")
    for end in ["6000ms", "0.1m", "PT6S", "00:00:06"]:
        assert pprofdiff.load(run, time=f"3s..{end}").top().summary["total"] == sides["total_new"]
    with pytest.raises(pprofdiff.PprofError, match="is a leap second"):
        pprofdiff.load(run, time="2016-12-31T23:59:60Z..")
    part = pprofdiff.load(run, time="3s..6s")
    assert (sides["total_new"], sides["new"]["duration_nanos"]) == (part.top().summary["total"], 3_000_000_000)
    assert part.duration == datetime.timedelta(seconds=3)
    assert repr(pickle.loads(pickle.dumps(part))) == repr(part)
    assert repr(pickle.loads(pickle.dumps(d)).top()) == repr(d.top())
    with pytest.raises(pprofdiff.PprofError, match="the profile is already loaded"):
        pprofdiff.diff(part, run, base_time="0..3s")
    with pytest.raises(pprofdiff.PprofError, match="pprof does not record when each sample was taken"):
        pprofdiff.load(CORPUS / "go-heap.new.pb.gz", time="3s..6s")
    message = "base_time= is for a comparison of two sides; for one profile use time=$"
    with pytest.raises(pprofdiff.PprofError, match=message):
        pprofdiff.load(run, base_time="3s..6s")


def runs_of(folder: Path, **profiles: bytes) -> Path:
    """Creates a folder of runs like `bench`: two runs per side, with a second profile that is not compared."""
    text = 'schema = "pprofdiff-runs/1"\ncommand = ["app"]\nseed = 1\neffect = 0.02\n'
    for side, content in profiles.items():
        for run in ("1", "2"):
            (folder / f"{side}-{run}").mkdir(parents=True)
            for name in ("first", "second"):
                (folder / f"{side}-{run}" / name).write_bytes(content if name == "first" else b"main;no 1\n")
            files = [f"{side}-{run}/{name}" for name in ("first", "second")]
            text += f"[[run]]\nside = '{side}'\npair = {run}\nprofiles = {files}\n"
            text += "total = 1.0\nbegan = 1\nseconds = 1.0\n"
    (folder / "runs.toml").write_text(text)
    return folder


def test_a_folder_of_runs_has_two_sides_that_are_profiles(tmp_path: Path):
    runs = runs_of(tmp_path / "runs", base=b"main;work 40\n", new=b"main;work 90\n")
    d = pprofdiff.load_runs(runs)
    assert [p.name for p in (*d.base, *d.new)] == [
        str(runs / f"{s}-{i}" / "first") for s in ("base", "new") for i in (1, 2)
    ]
    [row] = [row for row in d.top() if row["name"] == "work"]
    assert (row["flat_base"], row["flat_new"]) == (40, 90)
    # A side is the sum of its runs, or in a comparison the list of its runs.
    side = pprofdiff.load(runs / "new")
    assert (side.name, side.top()[0]["flat"]) == (str(runs / "new"), 180)
    assert pprofdiff.diff(str(runs / "base"), runs / "new").top().to_dicts() == d.top().to_dicts()
    assert len(pprofdiff.diff([runs / "new"], runs / "base").base) == 2
    with pytest.raises(pprofdiff.PprofError, match=r"name .*/runs/base or .*/runs/new$"):
        pprofdiff.load(runs)
    # Options for loading apply to the runs.
    with pytest.raises(pprofdiff.PprofError, match="first: "):
        pprofdiff.load_runs(runs, input_format="pprof")
    with pytest.raises(TypeError):
        pprofdiff.load_runs(runs, no_such_option=1)
    with pytest.raises(pprofdiff.PprofError, match="needs at least one run per side"):
        pprofdiff.load_runs(runs_of(tmp_path / "half", base=b"main 1\n"))


def test_binaries_of_a_folder_of_runs_are_used(program: tuple[Path, bytes], tmp_path: Path):
    app, heap = program
    runs = runs_of(tmp_path / "runs", base=heap, new=heap)
    for side in ("base", "new"):
        (runs / "binaries" / side).mkdir(parents=True)
        shutil.copy(app, runs / "binaries" / side)
    assert names_of(pprofdiff.load_runs(runs).top()) == {"work", "main"}
