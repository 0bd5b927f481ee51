"""batch on executors: the same answers wherever a pair is compared, and no pair lost when a worker dies."""

import asyncio
import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import pprofdiff
from conftest import PAIRS, pair

TIMEOUT = 60


class Mute(Exception):
    """Can be pickled, but not unpickled: such exceptions break pools."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


class MuteFileSystem(fsspec.AbstractFileSystem):
    protocol = "mute"

    def cat_file(self, path, start=None, end=None, **kwargs):
        raise Mute("not", " today")


fsspec.register_implementation("mute", MuteFileSystem)


class SignalFileSystem(fsspec.AbstractFileSystem):
    """Says what the process that reads would do at Ctrl-C."""

    protocol = "sigint"

    def cat_file(self, path, start=None, end=None, **kwargs):
        raise ValueError(str(signal.getsignal(signal.SIGINT)))


fsspec.register_implementation("sigint", SignalFileSystem)


def many() -> list:
    """Pairs of every kind, bad ones among them; more than a task's worth."""
    base, new = pair("go-mutex")
    bad = [
        ("none", new),
        (b"\xff", new),
        3,
        (base, None),
        ([], new),
        (base, "nowhere://x"),
        ("mute://a", new),
        pprofdiff.Pair(None, None, "alone", error=ValueError("no partner")),
    ]
    good = [pair(name) for name in PAIRS]
    good += [
        (f"file://{base}", [f"file://{new}", str(new)]),
        (base.read_bytes(), new),
        pprofdiff.Pair(base, new, "own"),
    ]
    return [*good, *bad, *good * 3]


def answers(executor: Executor | None, **options) -> list[tuple[str, bytes | tuple[str, str]]]:
    """Name and table of each pair, to the byte, or what kind of error it is."""
    results = pprofdiff.batch(many(), executor=executor, **options).tables(granularity="lines", sort="cum")
    found = []
    for given, result in itertools.zip_longest(many(), results):
        assert type(result.pair) is type(given)
        if result.error is None:
            found.append((result.name, result.table.to_json().encode()))
        else:
            kind = "Mute" if "not today" in str(result.error) else type(result.error).__name__
            found.append((result.name, (kind, str(result.error).removeprefix("Mute: "))))
    return found


@pytest.fixture(scope="module")
def wanted() -> list:
    """What the threads of this process say."""
    found = answers(None)
    errors = [answer for _, answer in found if isinstance(answer, tuple)]
    assert len(found) == len(many())
    assert [kind for kind, _ in errors] == [
        *("FileNotFoundError", "PprofError", "TypeError", "TypeError", "PprofError", "ValueError", "Mute", "ValueError")
    ]
    return found


def mute_here() -> None:
    """For workers that are started anew: the file system above."""
    fsspec.register_implementation("mute", MuteFileSystem, clobber=True)


def pool(method: str, workers: int) -> Executor:
    context = multiprocessing.get_context(method)
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, initializer=mute_here)


@pytest.fixture
def no_fork_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        # From 3.12 on Python warns of threads that a forked child will not have.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.usefixtures("no_fork_warning")
@pytest.mark.parametrize(("method", "workers"), [("fork", 1), ("fork", 3), ("spawn", 2)])
def test_process_pools(method: str, workers: int, wanted: list):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"the system has no {method}")
    with pool(method, workers) as executor:
        assert answers(executor) == wanted


def test_threads(wanted: list):
    with concurrent.futures.ThreadPoolExecutor(5) as executor:
        assert answers(executor) == wanted


class OneByOne(Executor):
    """Another's executor: it says nothing of itself, and works when it is asked."""

    def submit(self, fn: Callable, /, *args, **kwargs) -> concurrent.futures.Future:
        future: concurrent.futures.Future = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor(wanted: list):
    assert answers(OneByOne()) == wanted
    assert answers(OneByOne(), workers=1) == wanted
    with pytest.raises(pprofdiff.PprofError, match="at least 1"):
        pprofdiff.batch([], executor=OneByOne(), workers=0)
    with pytest.raises(pprofdiff.PprofError, match=r"executor must be a .*, not int"):
        pprofdiff.batch([], executor=8)


class SlowFileSystem(fsspec.AbstractFileSystem):
    """Says how many threads read at the same time."""

    protocol = "slow"
    lock = threading.Lock()
    reading = most = 0

    def cat_file(self, path, start=None, end=None, **kwargs):
        kind = type(self)
        with self.lock:
            kind.reading += 1
            kind.most = max(kind.most, kind.reading)
        time.sleep(0.02)
        with self.lock:
            kind.reading -= 1
        return pair("go-mutex")[0].read_bytes()


fsspec.register_implementation("slow", SlowFileSystem)


def test_all_threads_of_a_pool_are_found():
    """The window begins with three tasks a core."""
    workers = 4 * (os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        results = pprofdiff.batch([("slow://a", "slow://b")] * 40 * workers, executor=executor).tables(1)
        assert all(r.error is None for r in results)
    assert SlowFileSystem.most == workers


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Quiet: what a killed worker says is no failure here.
        with distributed.LocalCluster(**options, silence_logs="CRITICAL") as cluster:
            yield cluster


@pytest.fixture
def client(cluster) -> Iterator:
    import distributed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=TIMEOUT)
            client.run(mute_here)
            yield client


def test_dask(client, wanted: list):
    assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
    assert answers(client) == wanted
    assert answers(client.get_executor(), workers=2) == wanted


def test_dask_that_is_asynchronous_is_refused():
    distributed = pytest.importorskip("distributed")

    async def batch() -> None:
        options = {"n_workers": 0, "processes": False, "dashboard_address": None, "asynchronous": True}
        async with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            pprofdiff.batch([], executor=client)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(pprofdiff.PprofError, match="asynchronous"):
            asyncio.run(batch())


def test_dask_goes_on_when_a_worker_is_killed(client):
    pids = list(client.run(os.getpid).values())
    pairs = [pair("story-cpu")] * 3000
    done = []
    for result in pprofdiff.batch(pairs, executor=client).tables(1):
        assert result.error is None, result.error
        done.append(result.table.to_json())
        if len(done) == 100:
            os.kill(pids[0], signal.SIGKILL)
    assert len(done) == len(pairs)
    assert len(set(done)) == 1
    client.wait_for_workers(2, timeout=TIMEOUT)
    assert set(client.run(os.getpid).values()) != set(pids)


def test_dask_whose_cluster_ends_says_what_is_missing():
    dask_ends(lambda client: client)


def dask_ends(executor_of: Callable) -> None:
    """Ends a cluster in the middle of a batch."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    pairs = [pair("story-cpu")] * 1500
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(**options, silence_logs="CRITICAL")
        with cluster, distributed.Client(cluster, timeout=5) as client:  # after which it has lost the connection
            for result in pprofdiff.batch(pairs, executor=executor_of(client)).tables(1):
                results.append(result)
                if len(results) == 50:
                    cluster.close()
    assert len(results) == len(pairs)
    kinds = {type(r.error).__name__ for r in results if r.error is not None}
    assert kinds
    assert kinds <= {"CancelledError", "FutureCancelledError", "ClosedClientError"}
    assert all((r.table is None) == (r.error is not None) for r in results)


@pytest.mark.usefixtures("no_fork_warning")
def test_a_pool_whose_worker_is_killed_says_what_is_missing():
    pairs = [(path, path) for path in map(str, itertools.islice(itertools.cycle(pair("story-cpu")), 2000))]
    with pool("fork", 2) as executor:
        executor.submit(os.getpid).result(TIMEOUT)
        victim = next(iter(executor._processes))
        results = []
        for result in pprofdiff.batch(pairs, executor=executor).tables(1):
            results.append(result)
            if len(results) == 50:
                os.kill(victim, signal.SIGKILL)
    assert [r.pair for r in results] == pairs
    missing = [r for r in results if r.error is not None]
    assert all(isinstance(r.error, BrokenProcessPool) for r in missing)
    assert all(r.table is None for r in missing)
    # What was done before stays done, and all that is missing is named.
    assert 0 < len(missing) <= len(pairs) - 50
    assert all((r.table is None) == (r.error is not None) for r in results)


@pytest.mark.usefixtures("no_fork_warning")
def test_a_worker_starts_no_threads():
    with pool("spawn", 1) as executor:
        results = pprofdiff.batch([pair("story-cpu")] * 20, executor=executor).tables()
        assert all(r.error is None for r in results)
        results = pprofdiff.batch([pair("story-cpu")] * 3, executor=executor)
        assert all(r.diff is not None for r in results)
        # Those of a pool have numbers; that of the last work may still be ending.
        assert [name for name in executor.submit(threads).result(TIMEOUT) if name.startswith("pprofdiff-")] == []
        executor.submit(pprofdiff.load, pair("story-cpu")[0]).result(TIMEOUT)
        # So that the line above can fail.
        assert any(name.startswith("pprofdiff-") for name in executor.submit(threads).result(TIMEOUT))


def threads() -> list[str]:
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("the system does not tell its threads")
    names = []
    for task in tasks.iterdir():
        # One that ends between being listed and being read is none any more.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text())
    return names


@pytest.mark.usefixtures("no_fork_warning")
def test_diffs_come_back_whole(story: pprofdiff.Diff):
    with pool("fork", 2) as executor:
        results = pprofdiff.batch([pair("story-cpu"), ("none", "none")] * 3, executor=executor).collect()
    assert [type(r.error) for r in results] == [type(None), FileNotFoundError] * 3
    for result in results[::2]:
        assert result.table is None
        assert result.diff.top().to_json() == story.top().to_json()
        assert [p.name for p in result.diff.new] == [str(pair("story-cpu")[1])]


class Counting(OneByOne):
    """How many pairs were handed over and how many tasks, and how large those are as pickles."""

    def __init__(self) -> None:
        self.pairs, self.tasks, self.largest = 0, 0, 0

    def submit(self, fn: Callable, /, *args, **kwargs) -> concurrent.futures.Future:
        import pickle

        self.tasks += 1
        self.pairs += len(args[0])
        self.largest = max(self.largest, len(pickle.dumps((fn, args, kwargs))) // len(args[0]))
        return super().submit(fn, *args, **kwargs)


def test_tasks_are_small_few_and_within_a_window():
    executor = Counting()
    ahead = 0
    results = pprofdiff.batch(itertools.repeat(pair("go-mutex")), executor=executor, workers=2).tables(1)
    for i, _ in enumerate(itertools.islice(results, 2000), 1):
        ahead = max(ahead, executor.pairs - i)
    assert executor.largest < 1000  # bytes a pair: paths and a question
    assert executor.tasks < 600
    assert ahead <= 3 * 2 * 64


def test_memory_urls_in_process():
    base, new = pair("go-heap")
    memory = fsspec.filesystem("memory")
    memory.pipe("/many/base", base.read_bytes())
    memory.pipe("/many/new", new.read_bytes())
    urls = ("memory://many/base", "memory://many/new")
    wanted = pprofdiff.diff(base, new).top().to_dicts()
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        for options in ({}, {"executor": executor}):
            (result,) = pprofdiff.batch([urls], **options).tables()
            assert result.table.to_dicts() == wanted
            assert result.name == urls[1]


@pytest.mark.usefixtures("no_fork_warning")
def test_an_open_file_is_sent_as_bytes():
    base, new = pair("go-heap")
    with pool("fork", 1) as executor, base.open("rb") as file:
        (result,) = pprofdiff.batch([(file, new)], executor=executor).tables()
    assert result.table.to_dicts() == pprofdiff.diff(base, new).top().to_dicts()


def test_on_error_raise():
    good = pair("go-mutex")
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        results = pprofdiff.batch([good, good, ("none", good[1]), good], executor=executor, on_error="raise")
        assert next(results).diff is not None
        assert next(results).diff is not None
        with pytest.raises(FileNotFoundError):
            next(results)
        assert list(results) == []


def test_what_the_pairs_raise_comes_in_its_turn():
    def pairs() -> Iterator[tuple]:
        yield pair("go-mutex")
        yield pair("go-mutex")
        raise LookupError("no more")

    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        results = pprofdiff.batch(pairs(), executor=executor)
        assert next(results).error is None
        assert next(results).error is None
        with pytest.raises(LookupError):
            next(results)


def test_an_executor_that_was_shut_down():
    executor = concurrent.futures.ThreadPoolExecutor(1)
    executor.shutdown()
    results = pprofdiff.batch([pair("go-mutex")] * 3, executor=executor).collect()
    assert [type(r.error) for r in results] == [RuntimeError] * 3


@pytest.mark.usefixtures("no_fork_warning")
def test_the_arrow_stream_is_the_same():
    def stream(executor: Executor | None) -> pa.Table:
        return pa.table(pprofdiff.batch(many(), executor=executor).tables(50))

    with pool("fork", 2) as executor:
        assert stream(executor).equals(stream(None))


@pytest.mark.usefixtures("no_fork_warning")
def test_merging_what_workers_merged():
    """merge() is associative to the byte, so sums may be made in parts, wherever."""
    files = [str(pair("story-cpu")[i % 2]) for i in range(12)]
    whole = pprofdiff.merge(files).to_bytes("none")
    for parts in (2, 3, 5):
        cut = [files[i * 12 // parts : (i + 1) * 12 // parts] for i in range(parts)]
        with pool("fork", 2) as executor:
            assert pprofdiff.merge(executor.map(pprofdiff.merge, cut)).to_bytes("none") == whole


ENDS = {
    "threads": "executor = None",
    "fork": "executor = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork'))",
    "spawn": "executor = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn'))",
    "thread pool": "executor = concurrent.futures.ThreadPoolExecutor(2)",
}


def program(executor: str, work: str) -> list[str]:
    code = f"""
import concurrent.futures, itertools, multiprocessing, sys
import pprofdiff
PAIR = tuple(sys.argv[1:])
if __name__ == "__main__":
    {ENDS[executor]}
    results = pprofdiff.batch(itertools.repeat(PAIR), executor=executor)
    {work}
"""
    return [sys.executable, "-W", "ignore", "-c", code, *map(str, pair("story-cpu"))]


@pytest.mark.parametrize("executor", ENDS)
@pytest.mark.parametrize("work", ["results = results.tables(1); ", ""], ids=["tables", "diffs"])
def test_the_interpreter_may_end_in_the_middle(executor: str, work: str):
    command = program(executor, work + "[next(results) for _ in range(30)]; print('done', flush=True)")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_worker_that_is_interrupted_is_an_error_of_its_pairs():
    """The caller is interrupted by itself, or not at all: Ctrl-C that was handled is not raised again."""

    class Interrupted(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *_args: object, **_kwargs: object) -> concurrent.futures.Future[None]:  # type: ignore[override]
            return super().submit(interrupted)

    with Interrupted(1) as executor:
        results = list(pprofdiff.batch([pair("story-cpu")] * 3, executor=executor).tables(1))
    assert [type(result.error) for result in results] == [InterruptedError] * 3


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize("executor", ENDS)
def test_ctrl_c(executor: str):
    """As a terminal sends it: to the workers as well."""
    work = """
    done = 0
    results = results.tables(1)
    try:
        for result in results:
            done += result.error is None
            if done == 30:
                print("ready", flush=True)
    except KeyboardInterrupt:
        print("interrupted", next(results, None), flush=True)
"""
    command = program(executor, work.strip())
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.killpg(child.pid, signal.SIGINT)
        sent = time.monotonic()
        out, _ = child.communicate(timeout=TIMEOUT)
        assert out.startswith("interrupted")  # and the next result, if it came while none was waited for
        assert time.monotonic() - sent < 20
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


@pytest.mark.usefixtures("no_fork_warning")
@pytest.mark.parametrize("ignored", [False, True])
def test_workers_heed_ctrl_c_in_tasks_as_they_did_and_not_between(ignored: bool):
    before = (signal.signal, (signal.SIGINT, signal.SIG_IGN)) if ignored else (None, ())
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, fork, *before) as executor:
        results = pprofdiff.batch([("sigint://x", "sigint://x")] * 3, executor=executor).collect()
        between = executor.submit(signal.getsignal, signal.SIGINT).result()
    inside = str(signal.SIG_IGN if ignored else signal.getsignal(signal.SIGINT))
    assert [str(result.error) for result in results] == [inside] * 3
    assert between is signal.SIG_IGN


@pytest.mark.skipif(os.name == "nt", reason="Windows stops no process for a while")
@pytest.mark.parametrize("executor", ["fork", "spawn"])
@pytest.mark.parametrize("given_up", ["by us", "by others"])
def test_a_worker_dies_when_tasks_were_given_up(executor: str, given_up: str):
    """CPython's pool may lose its manager then; in neither case does anybody wait for what will never come."""
    work = """
    import os, signal
    results = results.tables(1)
    [next(results) for _ in range(30)]
    workers = list(executor._processes)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
        os.waitid(os.P_PID, worker, os.WSTOPPED | os.WNOWAIT)  # or a SIGTERM that follows comes first
    if GIVEN_UP == "by others":
        tasks = [executor.submit(abs, 1) for _ in range(30)]
        print(sum(task.cancel() for task in tasks) > 0)
    else:
        del results
        print(True)
    os.kill(workers[0], signal.SIGKILL)
    again = pprofdiff.batch([PAIR] * 3, executor=executor).tables(1)
    print([type(result.error).__name__ for result in again], flush=True)
    if GIVEN_UP == "by others":
        os.kill(workers[1], signal.SIGKILL)  # nobody else does it
        os._exit(0)
    os.kill(workers[1], signal.SIGCONT)
"""
    command = program(executor, work.strip().replace("GIVEN_UP", repr(given_up)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (0, f"True\n{['BrokenProcessPool'] * 3}\n"), done.stderr
