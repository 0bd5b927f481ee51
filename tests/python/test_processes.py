"""Tests with threads, forked and spawned processes, and Ctrl-C."""

import concurrent.futures
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import pprofdiff
from conftest import lets_others_run, pair

TIMEOUT = 60


def question(d: pprofdiff.Diff) -> str:
    return d.top(granularity="lines").to_json()


def ask_files(name: str) -> str:
    return question(pprofdiff.diff(*pair(name)))


def ask(d: pprofdiff.Diff) -> tuple[str, pprofdiff.Table]:
    return question(d), d.stacks()


# Each name occurs in the story's profiles.
NAMES = ["main", "runtime", "logmill", "names", "headers", "strings", "Classify", "compare"]


def test_threads_read_the_same_profiles(story: pprofdiff.Diff):
    expected = question(story)
    start = threading.Barrier(8)

    def work(i: int) -> set[str]:
        start.wait()
        answers = {question(story) for _ in range(5)}
        story.filter(focus=NAMES[i]).stacks()
        return answers | {question(pprofdiff.diff(story.base, story.new))}

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert [*threads.map(work, range(8))] == [{expected}] * 8


def test_other_threads_run_during_engine_calls():
    """Python code of another thread runs while one thread is in the engine."""
    profiles = [pair("story-cpu")[0]] * 400
    assert lets_others_run(lambda: pprofdiff.merge(profiles))


def in_a_fork(work) -> None:
    """Runs work in a forked child. Fails if the child fails or hangs."""
    with warnings.catch_warnings():
        # Since 3.12, Python warns that the child lacks the parent's threads, which is the case under test.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the forked child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
class TestFork:
    def test_the_engine_works_before_and_after_a_fork(self, story: pprofdiff.Diff):
        expected = question(story)

        def work() -> None:
            assert question(story) == expected
            assert ask_files("story-cpu") == expected
            assert all(r.error is None for r in pprofdiff.batch([pair("story-cpu")] * 20))
            in_a_fork(lambda: ask_files("story-cpu"))

        in_a_fork(work)
        assert question(story) == expected
        in_a_fork(work)

    def test_fork_while_threads_are_in_the_engine(self, story: pprofdiff.Diff):
        expected = question(story)
        done = threading.Event()

        def busy() -> None:
            while not done.is_set():
                ask_files("story-cpu")

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:

            def work() -> None:
                assert question(story) == expected

            for _ in range(30):
                in_a_fork(work)
        finally:
            done.set()
            for thread in threads:
                thread.join()

    def test_an_iterator_stays_with_its_process(self):
        results = pprofdiff.batch(itertools.repeat(pair("story-cpu")))
        next(results)

        def work() -> None:
            with pytest.raises(RuntimeError, match="another process"):
                next(results)
            assert ask_files("story-cpu")

        in_a_fork(work)
        assert next(results).error is None


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_objects_can_be_sent_to_multiprocessing_workers(method: str, story: pprofdiff.Diff):
    expected = question(story)
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with context.Pool(2) as pool:
            # Names in, JSON out; then objects in and out.
            assert pool.map_async(ask_files, ["story-cpu"] * 3).get(TIMEOUT) == [expected] * 3
            answers = pool.map_async(ask, [story] * 3).get(TIMEOUT)
    assert [json for json, _ in answers] == [expected] * 3
    assert answers[0][1].to_dicts() == story.stacks().to_dicts()


LONG_CALLS = {
    "merge": "pprofdiff.merge([BASE] * 100_000)",
    "diff": "pprofdiff.diff([BASE] * 100_000, NEW)",
    "batch": "[0 for r in pprofdiff.batch(itertools.repeat((BASE, NEW)))]",
    "one pair of many": "next(pprofdiff.batch([([BASE] * 100_000, NEW)]))",
    "a profile that does not come": "pprofdiff.load(PIPE)",
    "a manifest that does not come": "list(pprofdiff.pairs(PIPE))",
}


INTERRUPTED = {
    "explain": "diff.explain()",
    "save_html": "diff.save_html(OUT)",
    "merge": "pprofdiff.merge([LARGE] * 50)",
    "load": "[pprofdiff.load(LARGE) for _ in range(100)]",
    "batch": "pprofdiff.batch([(LARGE, LARGE)] * 100).collect()",
}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell what threads there are")
@pytest.mark.parametrize("call", INTERRUPTED)
def test_interrupted_calls_leave_no_thread_and_no_file(call: str, tmp_path: Path):
    """No thread continues after an interrupted call, and no file remains."""
    large = [tmp_path / side for side in ("base.folded", "new.folded")]
    with large[0].open("w") as base, large[1].open("w") as new:
        for i in range(100_000):
            stack = ";".join(f"f{(i * 7919 + d * d * 31 + i // 50) % (10 + d * 100)}" for d in range(20))
            print(stack, 1 + i % 50, file=base)
            print(stack, 1 + i % 49 + i % 3, file=new)
    out = tmp_path / "out" / "page.html"
    out.parent.mkdir()
    code = f"""
import os, signal, sys, threading, time, pprofdiff
LARGE, NEW, OUT = sys.argv[1:]
threads = lambda: len(os.listdir("/proc/self/task"))
diff = pprofdiff.diff(LARGE, NEW)
diff.top()
before = threads()
for _ in range(3):
    try:
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        {INTERRUPTED[call]}
        timer.join()
        time.sleep(10)
        print("too late", flush=True)
    except KeyboardInterrupt:
        timer.join()
        print("interrupted", flush=True)
diff.top()
deadline = time.monotonic() + 60
while threads() > before and time.monotonic() < deadline:
    time.sleep(0.05)
print(threads() - before, flush=True)
"""
    command = [sys.executable, "-c", code, *map(str, large), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split("\n")[:4] == ["interrupted"] * 3 + ["0"], (done.stdout, done.stderr)
    assert list(out.parent.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_interrupts_long_calls(call: str, tmp_path: Path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    code = f"""
import itertools, sys, pprofdiff
BASE, NEW, PIPE = sys.argv[1:]
print("ready", flush=True)
try:
    {LONG_CALLS[call]}
except KeyboardInterrupt:
    assert len(pprofdiff.load(BASE).top()) > 10, "usable afterwards"
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", code, *map(str, pair("story-cpu")), str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        patience = threading.Timer(10, child.kill)
        patience.start()
        assert child.stdout.readline() == "interrupted\n"
        patience.cancel()
        child.kill()
