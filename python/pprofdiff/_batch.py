"""Many pairs: one iterator of results, whether threads of this process make them or workers of an executor.

    pairs -> tasks of a few pairs, in a bounded window -> workers -> results in the order of the pairs

A task is what to load and what to ask; only the answers come back. A worker does a task on one thread, so a pool of
processes uses as many cores as it has processes. What a task finds does not depend on where it runs, nor on how the
pairs were cut into tasks, so the answer is the same for any executor.
"""

# Nothing is imported here: whoever imports the package pays for it. Types stand in _batch.pyi.
from . import _native

# A task should take about as long (seconds): long beside the cost of handing it over, which is about a millisecond with
# Dask, and short beside the job, so that all workers end at the same time.
_TASK_SECONDS = 0.1
# The most pairs in a task, whose answers travel as one.
_TASK_PAIRS = 64
# Tasks underway or done and not yet taken, for each worker: enough that none waits while the oldest task is slow.
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
    """Compare many pairs over all cores: an iterator of Result, in the order of the pairs.

    `pairs` is an iterable of (base, new), each as for diff(), or of Pair, which pairs() finds. It is read a few pairs
    ahead, so memory stays bounded however many pairs there are. Several profiles of a side are runs, of which values
    are the means; with `sum` they add up. With `on_error="collect"` a pair that fails is a Result with an `error` and
    stops nothing else; with "raise" its error is raised, in its turn, and the iterator ends.

    Each Result has a Diff, with its profiles. For tables, made on all cores as well, ask for tables(); the iterator is
    also an Arrow stream of them.

    `executor` is Dask's Client, the module ray (after ray.init()), or any concurrent.futures.Executor: a
    ProcessPoolExecutor, or a ThreadPoolExecutor for files that come over a network. Tasks carry what the pairs name
    (paths, URLs) and the question; what comes back are tables, or whole profiles where Diffs are wanted, which is slow.
    The results are the same. If a worker dies, the pairs that it takes with it are Results with the executor's error;
    Dask and Ray run them again before that. `workers` is how many tasks an executor runs at a time, for one that is
    neither of these nor of the standard library (else as many as this machine has cores).

    `progress` shows a bar, if tqdm is installed. Ctrl-C ends the iterator, after all results that it gave until then.

    The other keywords are those of load().

    The iterator belongs to the process that made it, and to one thread at a time. It gives its results once: another
    loop over it is an error. Until it begins it can be pickled, if `pairs` can be.
    """
    if on_error not in ("collect", "raise"):
        raise _native.PprofError(f"on_error is 'collect' or 'raise', not {on_error!r}")
    if workers is not None and workers < 1:
        raise _native.PprofError(f"workers is at least 1, not {workers}")
    _native._check_loading(options)
    if executor is not None:
        from ._executors import executor_of

        executor = executor_of(executor)
    job = _Job(pairs, sum, executor, workers, on_error == "raise", progress, options)
    return Batch(job, None)


class Batch:
    """The results of many pairs, one after the other. Made by batch()."""

    def __init__(self, job, question):
        self._job = job
        self._question = question
        self._results = None
        self._done = False

    def __iter__(self):
        if self._done:
            raise RuntimeError("this batch is done; keep its results with collect(), or make another with batch()")
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
        """All results that are left, as a list, with all their profiles or tables in memory at once."""
        return [] if self._done else list(self)

    def tables(self, n=None, *, view="top", sort="flat", **options):
        """The same pairs, but each Result has a Table (and no Diff), made where the pair is compared.

        `view` is "top", "tree", "stacks", "traces", "labels", "explain" (the causes), "peek=REGEX" or "roots=REGEX".
        The other arguments are those of Views.top(). Result.summary is the pair in one row, for which `n=1` is enough.
        To be called before the first result.
        """
        if self._results is not None:
            raise RuntimeError("this batch has begun; ask for tables before the first result")
        return Batch(self._job, _native._Question(view, n, sort, options))

    def ranking(self, *, fdr=0.05, **options):
        """Compare the pairs, and rank them by what changed: a Ranking, which names the causes that several share.

        Of the pairs that are said to have changed at most the part `fdr` is so by chance (Benjamini and Hochberg). The
        other arguments are those of Views.top(). All pairs are of one sample type. To be called before the first
        result; with on_error="raise" a pair that fails ends it.
        """
        if self._results is not None:
            raise RuntimeError("this batch has begun; ask for its ranking before the first result")
        fleet = _native._Fleet()
        for pair, made in self._job.outcomes(_native._Question.causes(options)):
            fleet.push(_native.Result(pair, None, None).name, made)
        return fleet.ranking(fdr)

    def __arrow_c_stream__(self, requested_schema=None):
        """The tables of all pairs as one Arrow stream, made while it is read.

        Columns: pair (its name), error, sample_type, unit, then those of Views.top(). A pair that failed is one row
        with its error as text and nothing else. A batch has at most 65,536 rows. After Ctrl-C the stream ends with
        what is done, and KeyboardInterrupt follows; with on_error="raise" the reader raises an error of its own.
        """
        if self._question is None:
            return self.tables().__arrow_c_stream__(requested_schema)
        if not self._question.streams:
            raise TypeError('an Arrow stream of many pairs has frames, by one sample type: ask for tables(view="top")')
        return _native._arrow_stream(self)

    @classmethod
    def __class_getitem__(cls, item):
        """For annotations: `Batch[tuple[str, str]]`."""
        from types import GenericAlias

        return GenericAlias(cls, item)


class _Job:
    """What batch() was asked for; run() does it, once."""

    def __init__(self, pairs, sum, executor, workers, raises, progress, load):
        self.count = len(pairs) if hasattr(pairs, "__len__") else None
        self.pairs = iter(pairs)
        self.sum = sum
        self.executor = executor
        self.workers = workers
        self.raises = raises
        self.progress = progress
        self.load = load
        self.begun = False

    def __getstate__(self):
        if self.begun:
            raise TypeError("a batch that has begun can't be pickled or copied; collect() gives what is left of it")
        return self.__dict__

    def run(self, question):
        """The results, one by one."""
        for pair, made in self.outcomes(question):
            if isinstance(made, BaseException):
                yield _native.Result(pair, None, made)
            elif question is None:
                yield _native.Result(pair, made, None)
            else:
                yield _native.Result(pair, None, None, made)

    def outcomes(self, question):
        """Each pair with what became of it, one by one: Diff, Table, causes or exception."""
        import os

        if self.begun:
            raise RuntimeError("the pairs of this batch were compared already; make another with batch()")
        self.begun = True
        process = os.getpid()
        if self.executor is None:
            outcomes = _native._OnThreads(self.pairs, question, self.load, self.sum)
        else:
            outcomes = self.on_executor(question)
        bar = _bar(self.count) if self.progress else None
        try:
            while True:
                if os.getpid() != process:
                    raise RuntimeError("batch was begun in another process; begin it again in this one")
                try:
                    pair, made = next(outcomes)
                except StopIteration:
                    return
                if bar is not None:
                    bar.update()
                if self.raises and isinstance(made, BaseException):
                    raise made
                yield pair, made
        finally:
            if bar is not None:
                bar.close()

    def on_executor(self, question):
        """Each pair with what became of it: Diff, Table or exception."""
        from collections import deque

        # The oldest task first: its pairs, for each its place among the answers or its error, the task's future, and a
        # lock that is free when the task is done.
        window = deque()
        more, broken, size = True, None, 1
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
                    except Exception as e:  # told when the pairs before it are done
                        more, broken = False, e
                    if pairs:
                        window.append(self.submit(pairs, question))
                if not window:
                    break
                # It stays in the window until it is done, so that it is given up with the others.
                pairs, places, future, done = window[0]
                try:
                    seconds, answers = self.wait(future, done)
                    aim = int(_TASK_SECONDS * len(answers) / max(seconds, 1e-6))
                    size = max(1, min(aim, 2 * size, _TASK_PAIRS))  # its first loads are slower than the rest
                except Exception as e:  # a worker has died, or the executor has ended
                    answers = [e] * len(pairs)
                window.popleft()
                for pair, place in zip(pairs, places, strict=True):
                    yield pair, place if isinstance(place, Exception) else answers[place]
            if broken is not None:
                raise broken
        finally:
            if self.executor.cancels:
                for _, _, future, _ in window:
                    future.cancel()

    def submit(self, pairs, question):
        """Hands pairs to the executor; what is no pair it never sees."""
        from threading import Lock

        task, places = [], []
        for pair in pairs:
            try:
                base, new = _native._sides(pair)
                task.append((_portable(base), _portable(new)))
                places.append(len(task) - 1)
            except Exception as e:
                places.append(e)
        done = Lock()
        done.acquire()
        with _defer_sigint():
            try:
                future = self.executor.submit(_work, task, question, self.load, self.sum)
            except Exception as e:  # it was shut down, or has broken
                from concurrent.futures import Future

                future = Future()
                future.set_exception(e)
            future.add_done_callback(lambda _: done.release())
        return pairs, places, future, done

    def wait(self, future, done):
        """What the task returned or raised, or why it will do neither."""
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
                # The worker's: what is pressed once is raised once, and here by Python itself.
                raise InterruptedError("the worker was interrupted") from e


def _portable(side):
    """A side of a pair, such that it can be sent: an open file is read here."""
    if isinstance(side, list | tuple):
        return [_portable(source) for source in side]
    if hasattr(side, "read"):
        return side.read()
    return side


class _defer_sigint:
    """Ctrl-C comes after the block, not in it.

    KeyboardInterrupt may be raised between any two steps of the code of an executor, also between taking a lock and
    what gives it back; then all threads that need the lock wait forever. So executors and futures are called in here,
    and it is no place to wait in.
    """

    def __enter__(self):
        from signal import SIGINT, getsignal, signal

        self.came = self.handler = None
        handler = getsignal(SIGINT)
        if callable(handler):
            try:
                signal(SIGINT, self.note)
                self.handler = handler
            except ValueError:  # not the main thread, which is the one that is interrupted
                pass

    def note(self, *signal_and_frame):
        self.came = signal_and_frame

    def __exit__(self, *_):
        if self.handler is not None:
            from signal import SIGINT, signal

            signal(SIGINT, self.handler)
            if self.came is not None:
                self.handler(*self.came)


# What this process, if it is a process pool's worker, did at Ctrl-C before its first task, and does in each.
_at_ctrl_c = None


def _work(task, question, load, sum):
    """A worker's task: the seconds that it took, and for each pair its Diff or Table, or its exception.

    A process pool's worker heeds Ctrl-C in a task, but no more between tasks, where it would leave the pool's queues
    locked or half written, for the same reason as in _defer_sigint. Whoever owns the pool ends the job.
    """
    global _at_ctrl_c
    from multiprocessing import parent_process
    from signal import SIG_IGN, SIGINT, getsignal, signal
    from threading import current_thread, main_thread
    from time import perf_counter

    start = perf_counter()
    answers = []
    if _at_ctrl_c is None and parent_process() is not None and current_thread() is main_thread():
        handler = getsignal(SIGINT)
        put_off = getattr(handler, "__self__", None)  # by submit(), in which the worker was forked
        _at_ctrl_c = put_off.handler if isinstance(put_off, _defer_sigint) else handler
    try:
        if _at_ctrl_c is not None:
            signal(SIGINT, _at_ctrl_c)
        for base, new in task:
            try:
                answers.append(_native._compare(base, new, question, load, sum))
            except Exception as e:
                answers.append(_sendable(e))
    finally:
        if _at_ctrl_c is not None:
            signal(SIGINT, SIG_IGN)
    return perf_counter() - start, answers


def _sendable(error):
    """The exception, or its words if it does not survive pickling: a pool breaks of what can't be unpickled."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _bar(count):
    """A progress bar; none if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        import warnings

        warnings.warn("batch shows no progress, since tqdm is not installed", stacklevel=3)
        return None
    return tqdm(total=count, unit="pair")
