"""Tests of deltas of cumulative profiles, and of snapshots from files, bytes and URLs."""

import datetime
import functools
import http.server
import io
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import pprofdiff
from conftest import CORPUS, profile

RESTARTED = 9


def snapshot(kind: str, number: int) -> Path:
    return CORPUS / "series" / f"{kind}-{number:02}.pb.gz"


def samples(profile: pprofdiff.Profile, sample_type: str) -> dict[tuple[str, ...], int]:
    """Returns the value of each stack with its labels."""
    rows = profile.stacks(labels=True, sample_type=sample_type, granularity="addresses")
    return {(*row["frames"], *row["labels"]): row["weight"] for row in rows}


def test_counters_are_subtracted_and_gauges_are_not():
    prev, cur = pprofdiff.load(snapshot("heap", 3)), pprofdiff.load(snapshot("heap", 4))
    d = pprofdiff.delta(prev, cur)
    assert isinstance(d, pprofdiff.Profile)
    assert d.name == "delta"
    assert d.sample_types == cur.sample_types
    for name in ("alloc_objects", "alloc_space"):
        before, now = samples(prev, name), samples(cur, name)
        expected = {stack: v - before.get(stack, 0) for stack, v in now.items() if v != before.get(stack, 0)}
        assert samples(d, name) == expected
        assert len(expected) > 20
    for name in ("inuse_objects", "inuse_space"):
        assert samples(d, name) == samples(cur, name)
    assert prev.time is not None
    assert cur.time is not None
    assert abs(d.duration - (cur.time - prev.time)) <= datetime.timedelta(microseconds=1)
    assert (d.time, d.period, d.period_type) == (cur.time, cur.period, cur.period_type)
    assert d.comments == ["pprofdiff delta: cumulative alloc_objects alloc_space; gauges inuse_objects inuse_space"]
    assert d.n_samples < cur.n_samples
    named = pprofdiff.delta(prev, cur, ["alloc_space"])
    assert samples(named, "alloc_objects") == samples(cur, "alloc_objects")


def test_every_kind_of_source_gives_the_same_delta():
    expected = pprofdiff.delta(snapshot("mutex", 3), snapshot("mutex", 4)).to_bytes("none")
    contents = [snapshot("mutex", i).read_bytes() for i in (3, 4)]
    assert pprofdiff.delta(*contents).to_bytes("none") == expected
    assert pprofdiff.delta(io.BytesIO(contents[0]), pprofdiff.load(contents[1])).to_bytes("none") == expected


def test_a_stream_gives_the_deltas_of_consecutive_snapshots():
    computer = pprofdiff.DeltaComputer()
    first = computer.update(snapshot("heap", 0))
    assert samples(first, "alloc_space") == samples(pprofdiff.load(snapshot("heap", 0)), "alloc_space")
    paths = [snapshot("heap", i) for i in range(RESTARTED)]
    stream = [computer.update(path) for path in paths[1:]]
    assert [d.to_bytes() for d in stream] == [d.to_bytes() for d in pprofdiff.deltas(paths)]
    assert stream[3].to_bytes() == pprofdiff.delta(paths[3], paths[4]).to_bytes()
    assert (computer.cumulative, computer.gauges) == (
        ["alloc_objects", "alloc_space"],
        ["inuse_objects", "inuse_space"],
    )
    assert (computer.reset, computer.vanished) == (None, 0)
    total = [pprofdiff.load(path).totals[1] for path in paths]
    assert pprofdiff.merge(stream).totals[1] == total[-1] - total[0]
    assert repr(computer) == (
        '<pprofdiff.DeltaComputer cumulative=["alloc_objects", "alloc_space"] gauges=["inuse_objects", "inuse_space"]>'
    )


def test_deltas_reads_snapshots_lazily():
    read = []

    def snapshots() -> Iterator[Path]:
        for i in range(3):
            read.append(i)
            yield snapshot("block", i)

    stream = pprofdiff.deltas(snapshots())
    next(stream)
    assert read == [0, 1]
    assert len(list(stream)) == 1
    assert list(pprofdiff.deltas([])) == list(pprofdiff.deltas([snapshot("heap", 0)])) == []


def test_a_restart_is_always_reported():
    before, after = snapshot("heap", RESTARTED - 1), snapshot("heap", RESTARTED)
    with pytest.raises(pprofdiff.PprofError, match="counters went down in") as caught:
        pprofdiff.delta(before, after)
    assert caught.value.input == str(after)
    # The message names the keyword, not the option of the command.
    advice = 'the process was restarted; to continue after a restart, set on_reset="pass" or on_reset="clamp"'
    assert str(caught.value).endswith(advice)
    assert caught.value.detail.endswith(advice)
    assert "on-reset" not in str(caught.value)
    with pytest.raises(pprofdiff.PprofError, match="set on_reset="):
        list(pprofdiff.deltas([before, after]))
    with pytest.warns(UserWarning, match="counters went down in"):
        passed = pprofdiff.delta(before, after, on_reset="pass")
    assert samples(passed, "alloc_space") == samples(pprofdiff.load(after), "alloc_space")
    assert passed.comments[-1].endswith("the snapshot is passed as it is")

    computer = pprofdiff.DeltaComputer(on_reset="clamp")
    computer.start(before)
    with pytest.raises(pprofdiff.PprofError, match="counters went down"):
        computer.update(after, on_reset="error")
    with pytest.warns(UserWarning, match="the process was restarted"):
        clamped = computer.update(after)
    assert computer.reset is not None
    assert "counters went down" in computer.reset
    assert all(v > 0 for v in samples(clamped, "alloc_space").values())
    computer.update(snapshot("heap", RESTARTED + 1))
    assert computer.reset is None


def test_errors_do_not_change_the_state_of_a_stream():
    computer = pprofdiff.DeltaComputer()
    computer.start(snapshot("heap", 2))
    for wrong in (snapshot("heap", 1), snapshot("mutex", 3), b"nothing"):
        with pytest.raises(pprofdiff.PprofError):
            computer.update(wrong)
    after = computer.update(snapshot("heap", 3))
    assert after.to_bytes() == pprofdiff.delta(snapshot("heap", 2), snapshot("heap", 3)).to_bytes()


def test_vanished_samples_are_reported():
    before = profile([(["a"], 3, {}), (["b"], 7, {}), (["c"], 5, {})])
    after = [profile([([name], value, {}) for name, value in left]) for left in ([("b", 8), ("c", 5)], [("c", 6)])]
    message = "1 sample that had counted something is gone"
    with pytest.warns(UserWarning, match=message):
        d = pprofdiff.delta(before, after[0], ["space"])
    assert d.comments[-1].endswith(f"; {message}")
    assert samples(d, "space") == {("b",): 1}
    computer = pprofdiff.DeltaComputer(["space"])
    computer.start(before)
    with pytest.warns(UserWarning, match=message):
        computer.update(after[0])
    assert (computer.vanished, computer.reset) == (1, None)
    # More than half of the counts vanished.
    message = "2 of the 3 samples that had counted something are gone, with 10 of 15 of space"
    with pytest.raises(pprofdiff.PprofError, match=message):
        pprofdiff.delta(before, after[1], ["space"])
    with pytest.warns(UserWarning, match=f"{message}: the process was restarted"):
        d = pprofdiff.delta(before, after[1], ["space"], on_reset="pass")
    assert samples(d, "space") == {("c",): 6}


def test_profiles_without_cumulative_types_are_refused():
    goroutines = [snapshot("goroutine", i) for i in (1, 2)]
    with pytest.raises(pprofdiff.PprofError, match=r"\(goroutine\) is known to count from the start"):
        pprofdiff.delta(*goroutines)
    with pytest.raises(pprofdiff.PprofError, match="name the cumulative types explicitly"):
        pprofdiff.DeltaComputer().start(goroutines[0])
    assert pprofdiff.delta(*goroutines, cumulative=[]).n_samples > 0


def test_a_written_diff_is_neither_a_snapshot_nor_a_side():
    before, after = snapshot("heap", 3), snapshot("heap", 4)
    written = pprofdiff.load(pprofdiff.diff(before, after).to_bytes())
    for call in (pprofdiff.delta, pprofdiff.diff, lambda a, b: pprofdiff.check(a, b, ["total>+1%"])):
        for sides in ((written, after), (before, written)):
            with pytest.raises(pprofdiff.PprofError, match="this is a written diff: "):
                call(*sides)


def test_invalid_arguments_of_deltas_are_errors():
    a, b = snapshot("heap", 1), snapshot("heap", 2)
    with pytest.raises(pprofdiff.PprofError, match="give the older snapshot first"):
        pprofdiff.delta(b, a)
    with pytest.raises(pprofdiff.PprofError, match='no sample type "heap"'):
        pprofdiff.delta(a, b, cumulative=["heap"])
    with pytest.raises(pprofdiff.PprofError, match="'error', 'pass' or 'clamp'"):
        pprofdiff.delta(a, b, on_reset="ignore")
    with pytest.raises(FileNotFoundError):
        pprofdiff.delta(a, "none.pb.gz")
    with pytest.raises(TypeError):
        pprofdiff.delta(a, b, cumulative="alloc_space")
    with pytest.raises(pprofdiff.PprofError, match="limit of 100 bytes"):
        next(pprofdiff.deltas([a, b], inflated_limit=100))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """Serves the corpus, and yields the server's address."""
    handler = functools.partial(Quiet, directory=CORPUS)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_snapshots_can_be_urls(server: str):
    content = snapshot("heap", 3).read_bytes()
    fsspec.filesystem("memory").pipe_file("/snapshots/heap.pb.gz", content)
    expected = pprofdiff.load(content).top().to_dicts()
    for url in ("memory://snapshots/heap.pb.gz", f"{server}/series/heap-03.pb.gz", snapshot("heap", 3).as_uri()):
        p = pprofdiff.load(url)
        assert p.name == url
        assert p.top().to_dicts() == expected
    d = pprofdiff.delta(f"{server}/series/heap-03.pb.gz", f"{server}/series/heap-04.pb.gz")
    assert d.to_bytes() == pprofdiff.delta(snapshot("heap", 3), snapshot("heap", 4)).to_bytes()
    with pytest.raises(FileNotFoundError):
        pprofdiff.load(f"{server}/none")
    with pytest.raises(ValueError, match="Protocol not known"):
        pprofdiff.load("none://x")
    with pytest.raises(pprofdiff.PprofError, match=r"README\.md: "):
        pprofdiff.load(f"{server}/README.md")


def test_passwords_of_urls_are_not_shown(server: str):
    secret = server.replace("//", "//user:secret@")
    shown = server.replace("//", "//***@")
    url = f"{secret}/series/heap-03.pb.gz"
    p = pprofdiff.load(url)
    assert p.name == f"{shown}/series/heap-03.pb.gz"
    d = pprofdiff.diff(url, f"{secret}/series/heap-04.pb.gz")
    for text in (repr(d), d.to_html(), d.top().to_json(), str(d.top().summary)):
        assert "***@" in text
        assert "secret" not in text
    one = pprofdiff.Pair(url, url)
    assert one.name == p.name
    assert "secret" not in repr(one)
    keys = [build["key"] for build in pprofdiff.series([url]).builds]
    assert keys == [p.name]
    # Errors have the same type and text as for files.
    for wrong, kind in (("none", FileNotFoundError), ("README.md", pprofdiff.PprofError)):
        with pytest.raises(kind) as caught:
            pprofdiff.load(f"{secret}/{wrong}")
        trace = "".join(traceback.format_exception(caught.value))
        assert f"{shown}/{wrong}" in trace
        assert "user:secret" not in trace.replace(f'f"{{secret}}/{wrong}"', "")


def test_urls_without_fsspec_name_the_missing_package(tmp_path: Path):
    code = """
import sys
sys.modules["fsspec"] = sys.modules["fsspec.core"] = None
import pprofdiff
try:
    pprofdiff.load("s3://bucket/heap.pb.gz")
except ModuleNotFoundError as e:
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "s3://bucket/heap.pb.gz: loading from a URL needs fsspec: pip install fsspec\n"
