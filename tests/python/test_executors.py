"""Tests of batch() on executors: the same results everywhere, and no pair is lost if a worker dies."""

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
    """An exception that can be pickled but not unpickled, which breaks process pools."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


class MuteFileSystem(fsspec.AbstractFileSystem):
    protocol = "mute"

    def cat_file(self, path, start=None, end=None, **kwargs):
        raise Mute("not", " today")


fsspec.register_implementation("mute", MuteFileSystem)


class SignalFileSystem(fsspec.AbstractFileSystem):
    """A file system that raises the current handler of Ctrl-C in the reading process."""

    protocol = "sigint"

    def cat_file(self, path, start=None, end=None, **kwargs):
        raise ValueError(str(signal.getsignal(signal.SIGINT)))


fsspec.register_implementation("sigint", SignalFileSystem)


def many() -> list:
    """Returns pairs of every kind, including bad ones, more than fit into one task."""
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
    """Returns the name of each pair with its table as bytes, or with the type and text of its error."""
    results = pprofdiff.batch(many(), executor=executor, **options).tables(granularity="lines", sort="cum")
    named_answers = []
    for given, result in itertools.zip_longest(many(), results):
        assert type(result.pair) is type(given)
        if result.error is None:
            named_answers.append((result.name, result.table.to_json().encode()))
        else:
            kind = "Mute" if "not today" in str(result.error) else type(result.error).__name__
            named_answers.append((result.name, (kind, str(result.error).removeprefix("Mute: "))))
    return named_answers


@pytest.fixture(scope="module")
def expected() -> list:
    """Returns the results of this process's threads."""
    results = answers(None)
    errors = [answer for _, answer in results if isinstance(answer, tuple)]
    assert len(results) == len(many())
    assert [kind for kind, _ in errors] == [
        *("FileNotFoundError", "PprofError", "TypeError", "TypeError", "PprofError", "ValueError", "Mute", "ValueError")
    ]
    return results


def mute_here() -> None:
    """Registers the file system above in newly started workers."""
    fsspec.register_implementation("mute", MuteFileSystem, clobber=True)


def pool(method: str, workers: int) -> Executor:
    context = multiprocessing.get_context(method)
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, initializer=mute_here)


@pytest.fixture
def no_fork_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        # Since 3.12, Python warns that a forked child lacks the threads of its parent.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.usefixtures("no_fork_warning")
@pytest.mark.parametrize(("method", "workers"), [("fork", 1), ("fork", 3), ("spawn", 2)])
def test_process_pools_give_the_same_results(method: str, workers: int, expected: list):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"the system has no {method}")
    with pool(method, workers) as executor:
        assert answers(executor) == expected


def test_thread_pools_give_the_same_results(expected: list):
    with concurrent.futures.ThreadPoolExecutor(5) as executor:
        assert answers(executor) == expected


class OneByOne(Executor):
    """A minimal executor: it has no attributes that reveal its size, and runs each task immediately."""

    def submit(self, fn: Callable, /, *args, **kwargs) -> concurrent.futures.Future:
        future: concurrent.futures.Future = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_gives_the_same_results(expected: list):
    assert answers(OneByOne()) == expected
    assert answers(OneByOne(), workers=1) == expected
    with pytest.raises(pprofdiff.PprofError, match="at least 1"):
        pprofdiff.batch([], executor=OneByOne(), workers=0)
    with pytest.raises(pprofdiff.PprofError, match=r"executor must be a .*, not int"):
        pprofdiff.batch([], executor=8)


class SlowFileSystem(fsspec.AbstractFileSystem):
    """A file system that records the number of concurrent reads."""

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


def test_all_threads_of_a_pool_are_used():
    """The initial window has three tasks per core."""
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
        # Messages of killed workers are expected here.
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


def test_dask_gives_the_same_results(client, expected: list):
    assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
    assert answers(client) == expected
    assert answers(client.get_executor(), workers=2) == expected


def test_an_asynchronous_dask_client_is_refused():
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


def test_killed_dask_worker_loses_no_pair(client):
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


def test_dask_reports_missing_pairs_if_its_cluster_ends():
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
        with cluster, distributed.Client(cluster, timeout=5) as client:  # A lost connection ends after 5 s.
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
def test_a_pool_reports_missing_pairs_if_a_worker_is_killed():
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
    # Finished results are kept, and every missing pair has an error.
    assert 0 < len(missing) <= len(pairs) - 50
    assert all((r.table is None) == (r.error is not None) for r in results)


@pytest.mark.usefixtures("no_fork_warning")
def test_a_worker_starts_no_threads():
    with pool("spawn", 1) as executor:
        results = pprofdiff.batch([pair("story-cpu")] * 20, executor=executor).tables()
        assert all(r.error is None for r in results)
        results = pprofdiff.batch([pair("story-cpu")] * 3, executor=executor)
        assert all(r.diff is not None for r in results)
        # Threads of a pool have numbered names. The thread of the last task may still be ending.
        assert [name for name in executor.submit(threads).result(TIMEOUT) if name.startswith("pprofdiff-")] == []
        executor.submit(pprofdiff.load, pair("story-cpu")[0]).result(TIMEOUT)
        # Checks that the line above can fail.
        assert any(name.startswith("pprofdiff-") for name in executor.submit(threads).result(TIMEOUT))


def threads() -> list[str]:
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("the system does not tell its threads")
    names = []
    for task in tasks.iterdir():
        # A thread may end between being listed and being read.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text())
    return names


@pytest.mark.usefixtures("no_fork_warning")
def test_workers_return_complete_diffs(story: pprofdiff.Diff):
    with pool("fork", 2) as executor:
        results = pprofdiff.batch([pair("story-cpu"), ("none", "none")] * 3, executor=executor).collect()
    assert [type(r.error) for r in results] == [type(None), FileNotFoundError] * 3
    for result in results[::2]:
        assert result.table is None
        assert result.diff.top().to_json() == story.top().to_json()
        assert [p.name for p in result.diff.new] == [str(pair("story-cpu")[1])]


class Counting(OneByOne):
    """Counts pairs and tasks, and records the largest pickled size per pair."""

    def __init__(self) -> None:
        self.pairs, self.tasks, self.largest = 0, 0, 0

    def submit(self, fn: Callable, /, *args, **kwargs) -> concurrent.futures.Future:
        import pickle

        self.tasks += 1
        self.pairs += len(args[0])
        self.largest = max(self.largest, len(pickle.dumps((fn, args, kwargs))) // len(args[0]))
        return super().submit(fn, *args, **kwargs)


def test_tasks_are_small_and_few_and_only_a_window_is_submitted():
    executor = Counting()
    ahead = 0
    results = pprofdiff.batch(itertools.repeat(pair("go-mutex")), executor=executor, workers=2).tables(1)
    for i, _ in enumerate(itertools.islice(results, 2000), 1):
        ahead = max(ahead, executor.pairs - i)
    assert executor.largest < 1000  # Bytes per pair, for the paths and the options.
    assert executor.tasks < 600
    assert ahead <= 3 * 2 * 64


def test_memory_urls_work_in_process():
    base, new = pair("go-heap")
    memory = fsspec.filesystem("memory")
    memory.pipe("/many/base", base.read_bytes())
    memory.pipe("/many/new", new.read_bytes())
    urls = ("memory://many/base", "memory://many/new")
    expected = pprofdiff.diff(base, new).top().to_dicts()
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        for options in ({}, {"executor": executor}):
            (result,) = pprofdiff.batch([urls], **options).tables()
            assert result.table.to_dicts() == expected
            assert result.name == urls[1]


@pytest.mark.usefixtures("no_fork_warning")
def test_an_open_file_is_sent_to_workers_as_bytes():
    base, new = pair("go-heap")
    with pool("fork", 1) as executor, base.open("rb") as file:
        (result,) = pprofdiff.batch([(file, new)], executor=executor).tables()
    assert result.table.to_dicts() == pprofdiff.diff(base, new).top().to_dicts()


def test_on_error_raise_stops_at_the_first_bad_pair():
    good = pair("go-mutex")
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        results = pprofdiff.batch([good, good, ("none", good[1]), good], executor=executor, on_error="raise")
        assert next(results).diff is not None
        assert next(results).diff is not None
        with pytest.raises(FileNotFoundError):
            next(results)
        assert list(results) == []


def test_an_exception_of_the_iterable_is_raised_in_order():
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


def test_an_executor_that_was_shut_down_is_an_error():
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
def test_profiles_merged_by_workers_can_be_merged():
    """merge() is associative to the byte, so workers may compute partial sums."""
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
def test_the_interpreter_can_exit_during_a_batch(executor: str, work: str):
    command = program(executor, work + "[next(results) for _ in range(30)]; print('done', flush=True)")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def interrupted() -> None:
    raise KeyboardInterrupt


def test_an_interrupted_worker_is_an_error_of_its_pairs():
    """An interrupt in a worker must not interrupt the caller. A handled Ctrl-C is not raised again."""

    class Interrupted(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *_args: object, **_kwargs: object) -> concurrent.futures.Future[None]:  # type: ignore[override]
            return super().submit(interrupted)

    with Interrupted(1) as executor:
        results = list(pprofdiff.batch([pair("story-cpu")] * 3, executor=executor).tables(1))
    assert [type(result.error) for result in results] == [InterruptedError] * 3


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize("executor", ENDS)
def test_ctrl_c_interrupts_a_batch_on_an_executor(executor: str):
    """Sends the signal to the whole process group like a terminal, so workers get it as well."""
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
        assert out.startswith("interrupted")  # The next result follows, if one arrived in the meantime.
        assert time.monotonic() - sent < 20
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


@pytest.mark.usefixtures("no_fork_warning")
@pytest.mark.parametrize("ignored", [False, True])
def test_workers_keep_their_ctrl_c_handler_in_tasks_and_ignore_it_between(ignored: bool):
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
def test_a_worker_that_dies_after_cancelled_tasks_blocks_nobody(executor: str, given_up: str):
    """CPython's pool may lose its manager thread in this case. Nothing may wait forever."""
    work = """
    import contextlib, os, signal
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
    # A worker that was stopped while it sent an answer is dead now: see the next test.
    with contextlib.suppress(ProcessLookupError):
        os.kill(workers[1], signal.SIGKILL if GIVEN_UP == "by others" else signal.SIGCONT)
    if GIVEN_UP == "by others":
        os._exit(0)  # nobody else ends the second worker
"""
    command = program(executor, work.strip().replace("GIVEN_UP", repr(given_up)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (0, f"True\n{['BrokenProcessPool'] * 3}\n"), done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("executor", ["fork", "spawn"])
def test_a_worker_that_dies_while_it_sends_an_answer_blocks_nobody(executor: str):
    """The pool's manager thread then waits for the rest of the answer, and sees no death."""
    victim = """
import gc, os, signal, struct
from multiprocessing.queues import SimpleQueue
def die():
    results = next(queue for queue in gc.get_objects() if isinstance(queue, SimpleQueue))
    os.write(results._writer.fileno(), struct.pack("!i", 1 << 20) + b"the beginning of an answer")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    work = """
    results = results.tables(1)
    next(results)
    executor.submit(exec, VICTIM + "die()", {})
    errors = {type(result.error).__name__ for result in itertools.islice(results, 1000) if result.error}
    print(errors, flush=True)
"""
    command = program(executor, work.strip().replace("VICTIM", repr(victim)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (0, "{'BrokenProcessPool'}\n"), done.stderr
