"""Tests of objects that several Python threads share. On a free-threaded interpreter, these threads run in parallel."""

import contextlib
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pprofdiff
from conftest import pair

T = TypeVar("T")
THREADS = 8
BASE, NEW = pair("story-cpu")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def at_once(work: Callable[[int], T]) -> list[T]:
    """Returns the results of `work` for each thread. All threads start at the same moment."""
    start = threading.Barrier(THREADS)

    def wait_and_work(number: int) -> T:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_work, range(THREADS)))


def test_importing_the_package_leaves_the_gil_off_if_the_interpreter_can_do_without():
    is_gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)  # From Python 3.13 on.
    assert is_gil_enabled() != FREE_THREADED


def test_threads_that_share_a_diff_get_the_answers_of_one_thread():
    """Each thread asks in another order, so that the selection that a diff remembers changes all the time."""
    questions: list[Callable[[pprofdiff.Diff], object]] = [
        lambda d: d.top().to_dicts(),
        lambda d: d.top(sort="cum", focus="logmill").to_dicts(),
        lambda d: d.top(granularity="files").to_dicts(),
        lambda d: d.stacks(n=5).to_dicts(),
        lambda d: str(d.explain()),
        lambda d: repr(d),
    ]
    expected = [ask(pprofdiff.diff(BASE, NEW)) for ask in questions]
    shared = pprofdiff.diff(BASE, NEW)

    def ask_all(number: int) -> list[object]:
        order = [(number + i) % len(questions) for i in range(3 * len(questions))]
        answers = {i: questions[i](shared) for i in order}
        return [answers[i] for i in range(len(questions))]

    assert at_once(ask_all) == [expected] * THREADS


def test_threads_that_load_the_same_files_get_the_same_diff():
    expected = repr(pprofdiff.diff(BASE, NEW))
    assert at_once(lambda _: {repr(pprofdiff.diff(BASE, NEW)) for _ in range(5)}) == [{expected}] * THREADS


def test_threads_that_share_a_batch_get_each_pair_once():
    results = iter(pprofdiff.batch([(BASE, NEW)] * 100))
    lock = threading.Lock()

    def take(_: int) -> int:
        taken = 0
        while True:
            # A Python generator refuses a second thread while it runs.
            with lock:
                result = next(results, None)
            if result is None:
                return taken
            assert result.diff is not None
            assert len(result.diff.top(3)) == 3
            taken += 1

    assert sum(at_once(take)) == 100


def test_a_delta_computer_in_use_by_a_thread_refuses_others_and_stays_usable():
    base, _ = pair("go-mutex")
    computer = pprofdiff.DeltaComputer()
    computer.start(base)
    empty = repr(computer.update(base).top())

    def update(_: int) -> set[str]:
        seen = set()
        for _ in range(5):
            with contextlib.suppress(RuntimeError):
                seen.add(repr(computer.update(base).top()))
        return seen

    assert set().union(*at_once(update)) == {empty}
    assert repr(computer.update(base).top()) == empty
