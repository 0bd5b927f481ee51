"""Many pairs: one iterator of results, whether threads of this process make them or workers of an executor.

    pairs -> tasks of a few pairs, in a bounded window -> workers -> results in the order of the pairs

A task is what to load and what to ask; only the answers come back. A worker does a task on one thread, so a pool of
processes uses as many cores as it has processes. What a task finds does not depend on where it runs, nor on how the
pairs were cut into tasks, so the answer is the same for any executor.
"""

# Nothing is imported here: whoever imports the package pays for it.
from . import _native

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor
    from typing import Any

    from ._native import Result

# A task should take about as long (seconds): long beside the cost of handing it over, which is about a millisecond with
# Dask, and short beside the job, so that all workers end at the same time.
_TASK_SECONDS = 0.1
# The most pairs in a task, whose answers travel as one.
_TASK_PAIRS = 64
# Tasks underway or done and not yet taken, for each worker: enough that none waits while the oldest task is slow.
_TASKS_AHEAD = 3


def diff_many(
    pairs: "Iterable[Any]",
    *,
    executor: "Executor | None" = None,
    workers: int | None = None,
    on_error: str = "collect",
    progress: bool = False,
    inflated_limit: int | None = None,
) -> "DiffMany":
    """Compare many pairs over all cores: an iterator of Result, in the order of the pairs.

    `pairs` is an iterable of (base, new), each as for diff(), or of Pair, which pairs() finds. It is read a few pairs
    ahead, so memory stays bounded however many pairs there are. With `on_error="collect"` a pair that fails is a Result
    with an `error` and stops nothing else; with "raise" its error is raised, in its turn, and the iterator ends.

    Each Result has a Diff, with its profiles. For tables, made on all cores as well, ask for tables(); the iterator is
    also an Arrow stream of them.

    `executor` is any concurrent.futures.Executor: a ProcessPoolExecutor, Dask's Client.get_executor(), or a
    ThreadPoolExecutor for files that come over a network. Tasks carry what the pairs name (paths, URLs) and the
    question; what comes back are tables, or whole profiles where Diffs are wanted, which is slow. The results are the
    same. If a worker dies, the pairs that it takes with it are Results with the executor's error. `workers` is how many
    tasks the executor runs at a time, where it is neither of the standard library nor of Dask (and else the number of
    cores).

    `progress` shows a bar, if tqdm is installed. Ctrl-C ends the iterator, after all results that it gave until then.

    The iterator belongs to the process that made it, and to one thread at a time.
    """
    if on_error not in ("collect", "raise"):
        raise _native.PprofError(f"on_error is 'collect' or 'raise', not {on_error!r}")
    if workers is not None and workers < 1:
        raise _native.PprofError(f"workers is at least 1, not {workers}")
    job = _Job(pairs, executor, workers, on_error == "raise", progress, inflated_limit)
    return DiffMany(job, None)


class DiffMany:
    """The results of many pairs, one after the other. Made by diff_many()."""

    def __init__(self, job: "_Job", question: "Any") -> None:
        self._job = job
        self._question = question
        self._results: Iterator[Result[Any]] | None = None

    def __iter__(self) -> "DiffMany":
        return self

    def __next__(self) -> "Result[Any]":
        if self._results is None:
            self._results = self._job.run(self._question)
        return next(self._results)

    def collect(self) -> "list[Result[Any]]":
        """All results that are left, as a list, with all their profiles or tables in memory at once."""
        return list(self)

    def tables(
        self,
        n: int | None = None,
        *,
        sort: str = "flat",
        sample_type: str | None = None,
        granularity: str = "functions",
        noinlines: bool = False,
        normalize: str | float | None = None,
        **filters: str | None,
    ) -> "DiffMany":
        """The same pairs, but each Result has a Table (and no Diff), made where the pair is compared.

        The arguments are those of Views.top(), Views.normalize() and Views.filter(). Result.summary is the pair in one
        row, for which `n=1` is enough. To be called before the first result.
        """
        if self._results is not None:
            raise RuntimeError("this diff_many has begun; ask for tables before the first result")
        question = _native._Question(n, sort, sample_type, granularity, noinlines, normalize, filters)
        return DiffMany(self._job, question)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The tables of all pairs as one Arrow stream, made while it is read.

        Columns: pair (its name), error, sample_type, unit, then those of Views.top(). A pair that failed is one row
        with its error as text and nothing else. A batch has at most 65,536 rows. After Ctrl-C the stream ends with
        what is done, and KeyboardInterrupt follows; with on_error="raise" the reader raises an error of its own.
        """
        if self._question is None:
            return self.tables().__arrow_c_stream__(requested_schema)
        return _native._arrow_stream(self)

    @classmethod
    def __class_getitem__(cls, item: object) -> object:
        """For annotations: `DiffMany[tuple[str, str]]`."""
        from types import GenericAlias

        return GenericAlias(cls, item)


class _Job:
    """What diff_many() was asked for; run() does it, once."""

    def __init__(
        self,
        pairs: "Iterable[Any]",
        executor: "Executor | None",
        workers: int | None,
        on_error_raise: bool,
        progress: bool,
        inflated_limit: int | None,
    ) -> None:
        # An iterator is its own length's end, so the length is asked for first.
        self.count = len(pairs) if hasattr(pairs, "__len__") else None
        self.pairs = iter(pairs)
        self.executor = executor
        self.workers = workers
        self.on_error_raise = on_error_raise
        self.progress = progress
        self.inflated_limit = inflated_limit

    def run(self, question: "Any") -> "Iterator[Result[Any]]":
        import os

        process = os.getpid()
        if self.executor is None:
            outcomes = iter(_native._OnThreads(self.pairs, question, self.inflated_limit))
        else:
            outcomes = self.on_executor(self.executor, question)
        return self.results(outcomes, question, lambda: os.getpid() == process)

    def results(
        self, outcomes: "Iterator[tuple[Any, Any]]", question: "Any", at_home: "Callable[[], bool]"
    ) -> "Iterator[Result[Any]]":
        bar = _bar(self.count) if self.progress else None
        try:
            while True:
                if not at_home():
                    raise RuntimeError("diff_many was begun in another process; begin it again in this one")
                try:
                    pair, made = next(outcomes)
                except StopIteration:
                    return
                if bar is not None:
                    bar.update()
                if isinstance(made, BaseException):
                    if self.on_error_raise:
                        raise made
                    yield _native.Result(pair, None, made)
                elif question is None:
                    yield _native.Result(pair, made, None)
                else:
                    yield _native.Result(pair, None, None, made)
        finally:
            if bar is not None:
                bar.close()

    def on_executor(self, executor: "Executor", question: "Any") -> "Iterator[tuple[Any, Any]]":
        from collections import deque

        # The oldest task first: its pairs, and for each an error or its number in the task.
        window: deque[tuple[list[Any], list[Any], Any]] = deque()
        broken: Exception | None = None
        more, size = True, 1
        try:
            while True:
                while more and len(window) < _TASKS_AHEAD * self.slots(executor):
                    pairs: list[Any] = []
                    try:
                        while len(pairs) < size:
                            pairs.append(next(self.pairs))
                    except StopIteration:
                        more = False
                    except Exception as e:  # told when the pairs before it are done
                        more, broken = False, e
                    if pairs:
                        window.append(self.submit(executor, pairs, question))
                if not window:
                    break
                # It stays in the window until it is done, so that it is cancelled with the others.
                pairs, places, future = window[0]
                answers: list[Any] = []
                if isinstance(future, Exception):
                    answers = [future] * len(pairs)
                elif future is not None:
                    try:
                        seconds, answers = future.result()
                        aim = int(_TASK_SECONDS * len(answers) / max(seconds, 1e-6))
                        size = max(1, min(aim, 2 * size, _TASK_PAIRS))
                    except Exception as e:
                        answers = [e] * len(pairs)
                window.popleft()
                for pair, place in zip(pairs, places, strict=True):
                    yield pair, place if isinstance(place, Exception) else answers[place]
            if broken is not None:
                raise broken
        finally:
            for _, _, future in window:
                if hasattr(future, "cancel"):
                    future.cancel()

    def submit(self, executor: "Executor", pairs: "list[Any]", question: "Any") -> "tuple[list[Any], list[Any], Any]":
        """Hands pairs to the executor; those that are none it never sees."""
        task: list[Any] = []
        places: list[Any] = []
        for pair in pairs:
            try:
                base, new = _native._sides(pair)
                side = (_portable(base), _portable(new))
            except Exception as e:
                places.append(e)
            else:
                places.append(len(task))
                task.append(side)
        if not task:
            return pairs, places, None
        try:
            return pairs, places, executor.submit(_work, task, question, self.inflated_limit)
        except Exception as e:  # it was shut down, or is broken
            return pairs, places, e

    def slots(self, executor: "Executor") -> int:
        """How many tasks the executor runs at a time; a cluster may grow meanwhile."""
        if self.workers is not None:
            return self.workers
        of_pool = getattr(executor, "_max_workers", None)
        if isinstance(of_pool, int):
            return of_pool
        of_client = getattr(getattr(executor, "_client", None), "scheduler_info", None)
        if of_client is not None:
            return max(1, sum(worker["nthreads"] for worker in of_client(n_workers=-1)["workers"].values()))
        import os

        return os.cpu_count() or 1


def _portable(side: "Any") -> "Any":
    """A side of a pair, such that it can be sent: an open file is read here."""
    if isinstance(side, list | tuple):
        return [_portable(source) for source in side]
    if hasattr(side, "read"):
        return side.read()
    return side


def _work(task: "list[tuple[Any, Any]]", question: "Any", inflated_limit: int | None) -> "tuple[float, list[Any]]":
    """A worker's task: the seconds that it took, and for each pair its Diff or Table, or its exception."""
    from time import perf_counter

    start = perf_counter()
    answers: list[Any] = []
    for base, new in task:
        try:
            answers.append(_native._compare(base, new, question, inflated_limit))
        except Exception as e:
            answers.append(_sendable(e))
    return perf_counter() - start, answers


def _sendable(error: Exception) -> Exception:
    """The exception, or its words if it does not survive pickling: a pool breaks of what can't be unpickled."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _bar(count: int | None) -> "Any":
    """A progress bar; none if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        import warnings

        warnings.warn("diff_many shows no progress, since tqdm is not installed", stacklevel=4)
        return None
    return tqdm(total=count, unit="pair")
