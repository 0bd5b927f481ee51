"""Who runs the tasks of a batch: an executor of concurrent.futures or one like it, Dask, or Ray.

A batch asks the same of each: run a task (`submit`), how many run at a time (`slots`), whether what was submitted can
still come (`lost`), and whether futures may be cancelled (`cancels`). Dask and Ray are known by what they have, since
neither is imported here. All that is used of any of them is public.
"""

from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from os import cpu_count
from time import monotonic, monotonic_ns

from . import _native


def executor_of(given):
    """What a batch was given as `executor`, in the form above."""
    if hasattr(given, "get_executor"):
        return _Dask(given)
    if hasattr(given, "cluster_resources"):
        return _Ray(given)
    if hasattr(given, "submit"):
        return _Pool(given)
    raise _native.PprofError(
        f"executor is a concurrent.futures.Executor, Dask's Client or the module ray, not {type(given).__name__}"
    )


class _Pool:
    """An executor with the interface of concurrent.futures."""

    def __init__(self, executor):
        self.executor = executor
        self.most = cpu_count() or 1
        # If a worker of a process pool dies (of the same Ctrl-C, say) while a future is cancelled, the thread that
        # manages the pool dies too, and who waits for a future or for the interpreter's end waits forever (CPython
        # 3.11's terminate_broken). What is left there is a few tasks a worker.
        self.cancels = not isinstance(executor, ProcessPoolExecutor)

    def submit(self, fn, *args):
        return self.executor.submit(fn, *args)

    def slots(self, underway):
        """As many as were seen to run at once, and as there are cores before that.

        Threads show how many they are in a few rounds, each with a wider window. A process pool calls running what it
        has put into its queue, one more than it has workers, so it is given about twice what it needs. An executor
        that never says what runs is taken to have a worker for each core.
        """
        self.most = max(self.most, sum(future.running() for future in underway))
        return self.most

    def lost(self):
        """Why nothing will come any more; None if something may.

        What has ended refuses tasks, even where it left futures behind that will never be done (`cancels` says how a
        process pool comes to that). Only who was shut down (a RuntimeError) refuses new ones and does the old.
        """
        try:
            # Another each time: Dask's own executor would hand out again the future of the last one.
            self.executor.submit(int, monotonic_ns())
        except Exception as e:
            if isinstance(e, BrokenExecutor) or not isinstance(e, RuntimeError):
                return e
        return None


class _Dask(_Pool):
    """A Client of Dask."""

    def __init__(self, client):
        if client.asynchronous:
            raise _native.PprofError("executor is an asynchronous Client, but a batch waits: give one that is not")
        # Not pure: the same names may be other files the next time.
        super().__init__(client.get_executor(pure=False))
        self.client = client
        self.threads = WorkerCount(lambda: sum(client.nthreads().values()))

    def submit(self, fn, *args):
        """Submits to the Client itself, whose futures gather a result again if its worker dies.

        A future of the Client's executor reads its status after its result. If the worker that holds the result dies
        between the two, that future reports a ValueError instead of the result (distributed 2026.8.0).
        """
        return self.client.submit(fn, *args, pure=False)

    def slots(self, underway):
        return self.threads.count()


class _Ray:
    """The module ray, connected. A task takes one CPU of the cluster."""

    cancels = True

    def __init__(self, ray):
        if not ray.is_initialized():
            raise _native.PprofError("executor is ray, which is not connected: ray.init() first")
        self.ray = ray
        self.call = ray.remote(_call)
        self.cpus = WorkerCount(lambda: ray.cluster_resources().get("CPU", 0))

    def submit(self, fn, *args):
        if lost := self.lost():  # where Ray would start a cluster of its own
            raise lost
        ref = self.call.remote(fn, *args)
        future = ref.future()

        def cancel(future):
            if future.cancelled() and self.ray.is_initialized():
                self.ray.cancel(ref)

        future.add_done_callback(cancel)
        return future

    def slots(self, underway):
        return self.cpus.count()

    def lost(self):
        return None if self.ray.is_initialized() else ConnectionError("Ray was shut down")


def _call(fn, *args):
    return fn(*args)


class WorkerCount:
    """How many workers a cluster has, asked at most once a second, since they come and go."""

    def __init__(self, ask):
        self.ask = ask
        self.known, self.due = 1, 0

    def count(self):
        if monotonic() > self.due:
            try:
                self.known = max(1, int(self.ask()))
            except Exception:  # it has ended, as its tasks will say
                self.known = 1
            self.due = monotonic() + 1
        return self.known
