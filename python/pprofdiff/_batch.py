"""Compares many pairs. One iterator returns the results, whether threads of this process or an executor's workers
compute them.

pairs -> tasks of a few pairs, in a bounded window -> workers -> results in the order of the pairs

A task names the profiles to load and the question to answer; only the answers come back. A worker runs a task on one
thread, so a pool of processes uses as many cores as it has processes. The result of a pair does not depend on the
worker or on the other pairs of its task, so every executor gives the same results.
"""

# Imports are inside functions, because every import here would slow down importing the package. Types are in
# _batch.pyi.
from . import _native

# The intended duration of a task, in seconds. It is long compared with the cost of submitting a task (about 1 ms with
# Dask) and short compared with the whole job, so that all workers finish at about the same time.
_TASK_SECONDS = 0.1
# The maximum number of pairs in a task. Their answers are sent together.
_TASK_PAIRS = 64
# The maximum number of tasks per worker that are submitted and not yet consumed. No worker waits while the oldest task
# is slow.
_TASKS_AHEAD = 3


def batch(
    pairs,
    *,
    sum=False,
    executor=None,
    workers=None,
    on_error="collect",
    progress=False,
    **options,
):
    """Compares many pairs on all cores. Returns an iterator of Result, in the order of the pairs.

    `pairs` is an iterable of (base, new), with sides as for diff(), or of Pair, as pairs() returns. It is read a few
    pairs ahead, so memory stays bounded for any number of pairs. Several profiles of a side are runs, and values are
    their means; with `sum` they add up. With `on_error="collect"` a failed pair is a Result with an `error`, and the
    other pairs continue; with "raise" its error is raised at its position, and the iterator ends.

    Each Result has a Diff with its profiles. Use tables() to get tables, which are also computed on all cores; the
    iterator is also an Arrow stream of them.

    `executor` is Dask's Client, the module ray (after ray.init()), or any concurrent.futures.Executor: a
    ProcessPoolExecutor, or a ThreadPoolExecutor for files that come over a network. Tasks contain the paths or URLs of
    the pairs and the question. Workers send back tables, or whole profiles if you need Diffs, which is slow. The
    results are the same. If a worker dies, the pairs of its task are Results with the executor's error; Dask and Ray
    retry them first. `workers` is the number of tasks that an executor runs at a time. It is needed only for executors
    other than Dask, Ray and the standard library's (default: the number of cores of this machine).

    `progress` shows a progress bar if tqdm is installed. Ctrl-C ends the iterator after all results that it has already
    returned.

    The other keywords are those of load().

    The iterator belongs to the process that created it, and to one thread at a time. It returns its results once: a
    second loop over it is an error. It can be pickled before it starts, if `pairs` can be.
    """
    if on_error not in ("collect", "raise"):
        raise _native.PprofError(f"on_error must be 'collect' or 'raise', not {on_error!r}")
    if workers is not None and workers < 1:
        raise _native.PprofError(f"workers must be at least 1, not {workers}")
    _native._check_loading(options)
    if executor is not None:
        from ._executors import executor_of

        executor = executor_of(executor)
    job = _Job(pairs, sum, executor, workers, on_error == "raise", progress, options)
    return Batch(job, None)


class Batch:
    """An iterator over the results of many pairs. Created by batch()."""

    def __init__(self, job, question):
        self._job = job
        self._question = question
        self._results = None
        self._done = False

    def __iter__(self):
        if self._done:
            raise RuntimeError("this batch is done; keep its results with collect(), or create another with batch()")
        return self

    def __next__(self):
        if self._results is None:
            self._results = self._job.run(self._question)
        try:
            return next(self._results)
        except (StopIteration, KeyboardInterrupt):
            self._done = True
            raise

    def collect(self):
        """Returns all remaining results as a list. All their profiles or tables are in memory at once."""
        return [] if self._done else list(self)

    def tables(self, n=None, *, view="top", sort="flat", **options):
        """Returns a batch of the same pairs in which each Result has a Table (and no Diff). The workers compute the
        tables.

        `view` is "top", "tree", "stacks", "traces", "labels", "explain" (the causes), "peek=REGEX" or "roots=REGEX".
        `n` and `sort` have the same meaning as in Views.top(), and the other keywords are those of all views.
        Result.summary describes the pair in one row; `n=1` is enough for it. Call this method before the first result.
        """
        if self._results is not None:
            raise RuntimeError("this batch has started; call tables() before the first result")
        return Batch(self._job, _native._Question(view, n, sort, options))

    def ranking(self, *, fdr=0.05, **options):
        """Compares the pairs and ranks them by their changes. Returns a Ranking, which also has the causes that
        several pairs share.

        `fdr` is the false discovery rate: the expected share of false positives among the pairs reported as changed
        (Benjamini and Hochberg). The other keywords are those of all views. Without `sample_type`, the ranking has the
        default sample type of most pairs. Pairs with another default are compared a second time if they have that type
        and name files or URLs; all others are listed in Ranking.failed. Call this method before the first result. With
        on_error="raise" a failed pair ends it.
        """
        if self._results is not None:
            raise RuntimeError("this batch has started; call ranking() before the first result")
        fleet, pairs = _native._Fleet(), []
        for pair, outcome in self._job.outcomes(_native._Question.causes(options)):
            fleet.push(_native.Result(pair, None, None).name, outcome)
            pairs.append(pair if _names_files(pair) else None)
        if options.get("sample_type") is None and (again := fleet.again()) is not None:
            sample_type, positions = again
            positions = [position for position in positions if pairs[position] is not None]
            job = self._job.again([pairs[position] for position in positions])
            outcomes = job.outcomes(_native._Question.causes({**options, "sample_type": sample_type}))
            for position, (_, outcome) in zip(positions, outcomes, strict=True):
                fleet.replace(position, outcome)
        return fleet.ranking(fdr)

    def __arrow_c_stream__(self, requested_schema=None):
        """The tables of all pairs as one Arrow stream, computed while it is read.

        Columns: pair (its name), one for each of Pair.keys (if `pairs` is a list), error, sample_type, unit, then the
        columns of Views.top(). A failed pair is one row with its error as text and no other values. A record batch has
        at most 65,536 rows. After Ctrl-C the stream ends with the results so far, followed by KeyboardInterrupt. With
        on_error="raise" the reader raises its own error.
        """
        if self._question is None:
            return self.tables().__arrow_c_stream__(requested_schema)
        if not self._question.streams:
            raise TypeError('an Arrow stream of many pairs needs frames of one sample type: call tables(view="top")')
        return _native._arrow_stream(self, self._job.key_names)

    @classmethod
    def __class_getitem__(cls, item):
        """Supports annotations such as `Batch[tuple[str, str]]`."""
        from types import GenericAlias

        return GenericAlias(cls, item)


class _Job:
    """The arguments of batch(). run() executes them once."""

    def __init__(self, pairs, sum, executor, workers, raises, progress, load):
        self.count = len(pairs) if hasattr(pairs, "__len__") else None
        self.pairs = iter(pairs)
        self.sum = sum
        self.executor = executor
        self.workers = workers
        self.raises = raises
        self.progress = progress
        self.load = load
        self.started = False
        # The names of the keys of all pairs. An iterator is not read for them.
        listed = pairs if isinstance(pairs, list | tuple) else []
        self.key_names = list(dict.fromkeys(name for pair in listed for name in _key_names(pair)))

    def again(self, pairs):
        """Returns a job for other pairs with the same arguments."""
        return _Job(pairs, self.sum, self.executor, self.workers, self.raises, False, self.load)

    def __getstate__(self):
        if self.started:
            raise TypeError("a batch that has started can't be pickled or copied; collect() returns its other results")
        return self.__dict__

    def run(self, question):
        """Yields the results."""
        for pair, outcome in self.outcomes(question):
            if isinstance(outcome, BaseException):
                yield _native.Result(pair, None, outcome)
            elif question is None:
                yield _native.Result(pair, outcome, None)
            else:
                yield _native.Result(pair, None, None, outcome)

    def outcomes(self, question):
        """Yields each pair with its outcome: a Diff, a Table, causes or an exception."""
        import os

        if self.started:
            raise RuntimeError("the pairs of this batch were compared already; make another with batch()")
        self.started = True
        process = os.getpid()
        if self.executor is None:
            outcomes = _native._OnThreads(self.pairs, question, self.load, self.sum)
        else:
            outcomes = self.on_executor(question)
        bar = _bar(self.count) if self.progress else None
        try:
            while True:
                if os.getpid() != process:
                    raise RuntimeError("batch was started in another process; start it again in this one")
                try:
                    pair, outcome = next(outcomes)
                except StopIteration:
                    return
                if bar is not None:
                    bar.update()
                if self.raises and isinstance(outcome, BaseException):
                    raise outcome
                yield pair, outcome
        finally:
            if bar is not None:
                bar.close()

    def on_executor(self, question):
        """Yields each pair with its outcome: a Diff, a Table, causes or an exception."""
        from collections import deque

        # The submitted tasks, oldest first. Each has its pairs, the index of each pair's answer (or its error), the
        # task's future, and a lock that is released when the task is done.
        window = deque()
        more, pairs_error, size = True, None, 1
        try:
            while True:
                slots = self.workers or self.executor.slots(future for _, _, future, _ in window)
                while more and len(window) < _TASKS_AHEAD * slots:
                    pairs = []
                    try:
                        while len(pairs) < size:
                            pairs.append(next(self.pairs))
                    except StopIteration:
                        more = False
                    except Exception as e:  # raised after the pairs before it
                        more, pairs_error = False, e
                    if pairs:
                        window.append(self.submit(pairs, question))
                if not window:
                    break
                # The task stays in the window until its end, so that all tasks are cancelled together.
                pairs, indices, future, done = window[0]
                try:
                    seconds, answers = self.wait(future, done)
                    target_size = int(_TASK_SECONDS * len(answers) / max(seconds, 1e-6))
                    size = max(1, min(target_size, 2 * size, _TASK_PAIRS))  # a worker's first loads are slow
                except Exception as e:  # a worker has died, or the executor has shut down
                    answers = [e] * len(pairs)
                window.popleft()
                for pair, index in zip(pairs, indices, strict=True):
                    yield pair, index if isinstance(index, Exception) else answers[index]
            if pairs_error is not None:
                raise pairs_error
        finally:
            if self.executor.cancels:
                for _, _, future, _ in window:
                    future.cancel()

    def submit(self, pairs, question):
        """Submits pairs to the executor. An invalid pair becomes an error and is not submitted."""
        from threading import Lock

        task, indices = [], []
        for pair in pairs:
            try:
                base, new = _native._sides(pair)
                task.append((_portable(base), _portable(new)))
                indices.append(len(task) - 1)
            except Exception as e:
                indices.append(e)
        done = Lock()
        done.acquire()
        with _defer_sigint():
            try:
                future = self.executor.submit(_work, task, question, self.load, self.sum)
            except Exception as e:  # the executor is shut down or broken
                from concurrent.futures import Future

                future = Future()
                future.set_exception(e)
            future.add_done_callback(lambda _: done.release())
        return pairs, indices, future, done

    def wait(self, future, done):
        """Returns the task's result. Raises its exception, or the reason why neither will arrive."""
        while not done.acquire(timeout=1):
            with _defer_sigint():
                lost = self.executor.lost()
                if future.done():
                    break
            if lost is not None:
                raise lost
        with _defer_sigint():
            try:
                return future.result()
            except KeyboardInterrupt as e:
                # This is the worker's KeyboardInterrupt. One Ctrl-C raises one exception, and Python raises it in this
                # process.
                raise InterruptedError("the worker was interrupted") from e


def _key_names(pair):
    """Returns the names of a pair's keys. A tuple has none."""
    return list(pair.keys) if isinstance(pair, _native.Pair) else []


def _names_files(pair):
    """Returns true if both sides are paths or URLs, so that a reference to the pair keeps no profile in memory."""
    from os import PathLike

    try:
        sides = _native._sides(pair)
    except Exception:  # a pair with an error
        return False
    files = [file for side in sides for file in (side if isinstance(side, list | tuple) else [side])]
    return all(isinstance(file, str | PathLike) for file in files)


def _portable(side):
    """Returns a side of a pair in a form that can be sent to a worker: open files are read here."""
    if isinstance(side, list | tuple):
        return [_portable(source) for source in side]
    if hasattr(side, "read"):
        return side.read()
    return side


class _defer_sigint:
    """Delays Ctrl-C until after the block.

    KeyboardInterrupt can be raised between any two steps of an executor's code, even between acquiring a lock and
    entering the block that releases it. Then all threads that need the lock would wait forever. Executors and futures
    are therefore called inside this block. Do not wait in it.
    """

    def __enter__(self):
        from signal import SIGINT, getsignal, signal

        self.pending = self.handler = None
        handler = getsignal(SIGINT)
        if callable(handler):
            try:
                signal(SIGINT, self.remember)
                self.handler = handler
            except ValueError:  # not the main thread, the only thread that Ctrl-C interrupts
                pass

    def remember(self, *signal_and_frame):
        self.pending = signal_and_frame

    def __exit__(self, *_):
        if self.handler is not None:
            from signal import SIGINT, signal

            signal(SIGINT, self.handler)
            if self.pending is not None:
                self.handler(*self.pending)


# The SIGINT handler that a process pool's worker had before its first task, and has during each task.
_task_sigint_handler = None


def _work(task, question, load, sum):
    """Runs a task in a worker. Returns its duration in seconds, and a list with the outcome of each pair: a Diff, a
    Table, causes or an exception.

    A process pool's worker reacts to Ctrl-C in a task but not between tasks, because an interrupt there would leave the
    pool's queues locked or half written, as in _defer_sigint. The owner of the pool ends the job.
    """
    global _task_sigint_handler
    from multiprocessing import parent_process
    from signal import SIG_IGN, SIGINT, getsignal, signal
    from threading import current_thread, main_thread
    from time import perf_counter

    start = perf_counter()
    answers = []
    if _task_sigint_handler is None and parent_process() is not None and current_thread() is main_thread():
        handler = getsignal(SIGINT)
        deferral = getattr(handler, "__self__", None)  # set by submit() while the worker was forked
        _task_sigint_handler = deferral.handler if isinstance(deferral, _defer_sigint) else handler
    try:
        if _task_sigint_handler is not None:
            signal(SIGINT, _task_sigint_handler)
        for base, new in task:
            try:
                answers.append(_native._compare(base, new, question, load, sum))
            except Exception as e:
                answers.append(_sendable(e))
    finally:
        if _task_sigint_handler is not None:
            signal(SIGINT, SIG_IGN)
    return perf_counter() - start, answers


def _sendable(error):
    """Returns the exception, or its text if pickling it fails: an unpickling error breaks the pool."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _bar(count):
    """Returns a progress bar, or None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        import warnings

        warnings.warn("batch shows no progress because tqdm is not installed", stacklevel=3)
        return None
    return tqdm(total=count, unit="pair")
