"""Adapters for the executors that run a batch's tasks: concurrent.futures or a similar executor, Dask, or Ray.

A batch needs four things from each: submit a task (`submit`), the number of tasks that run at a time (`slots`), whether
submitted tasks can still finish (`lost`), and whether futures may be cancelled (`cancels`). Dask and Ray are recognized
by their attributes, because neither is imported here. Only public interfaces are used, except to end a process pool
that waits forever (`_Pool.unnoticed_death`).
"""

from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from os import cpu_count
from time import monotonic, monotonic_ns

from . import _native

# A process pool that has not noticed a dead worker after this number of sightings, a second apart, never will.
_SIGHTINGS_OF_DEATH = 5


def executor_of(executor):
    """Wraps the `executor` argument of batch() in an adapter."""
    if hasattr(executor, "get_executor"):
        return _Dask(executor)
    if hasattr(executor, "cluster_resources"):
        return _Ray(executor)
    if hasattr(executor, "submit"):
        return _Pool(executor)
    raise _native.PprofError(
        f"executor must be a concurrent.futures.Executor, a Dask Client or module ray, not {type(executor).__name__}"
    )


class _Pool:
    """An executor with the interface of concurrent.futures."""

    def __init__(self, executor):
        self.executor = executor
        self.max_running = cpu_count() or 1
        # If a process pool's worker dies (for example of the same Ctrl-C) while a future is cancelled, the thread that
        # manages the pool also dies. Then waiting for a future or for the interpreter's exit blocks forever (CPython
        # 3.11's terminate_broken). Not cancelling leaves only a few tasks per worker to finish.
        self.cancels = not isinstance(executor, ProcessPoolExecutor)
        # By process id: the number of times in a row that lost() saw this worker dead. A worker with exit code 0 has
        # done its tasks (max_tasks_per_child).
        self.seen_dead = {}

    def submit(self, fn, *args):
        return self.executor.submit(fn, *args)

    def slots(self, underway):
        """Returns the largest number of tasks seen running at once, but at least the number of cores.

        With threads, the number grows to the real one in a few rounds, each with a wider window. A process pool also
        counts queued tasks as running, one more than it has workers, so it gets about twice the tasks it needs. An
        executor that never reports running tasks is assumed to have one worker per core.
        """
        self.max_running = max(self.max_running, sum(future.running() for future in underway))
        return self.max_running

    def lost(self):
        """Returns the reason why no more results can arrive, or None if they can.

        Futures alone do not show that an executor is broken, because some of them may never finish (see `cancels` for
        process pools). This method therefore submits a task that does nothing: a broken executor refuses it. An
        executor that was shut down also refuses it (RuntimeError), but still finishes the submitted tasks.
        """
        try:
            # The argument differs each time: Dask's executor would return the previous future for an equal call.
            self.executor.submit(int, monotonic_ns())
        except Exception as e:
            if isinstance(e, BrokenExecutor) or not isinstance(e, RuntimeError):
                return e
        return self.unnoticed_death() if isinstance(self.executor, ProcessPoolExecutor) else None

    def unnoticed_death(self):
        """Returns an error if a worker is dead and the process pool has not noticed it, or None.

        A pool notices a death immediately, unless its manager thread waits for the rest of an answer: a worker that
        was killed while it wrote an answer never sends the rest, and the pool would wait forever. The reading ends when
        no process can write: this method kills the other workers and closes this process's end.
        """
        workers = dict(self.executor._processes or {})
        dead = [pid for pid, worker in workers.items() if worker.exitcode not in (None, 0)]
        self.seen_dead = {pid: self.seen_dead.get(pid, 0) + 1 for pid in dead}
        late = [pid for pid, times in self.seen_dead.items() if times >= _SIGHTINGS_OF_DEATH]
        if not late:
            return None
        for worker in workers.values():
            worker.kill()
        self.executor._result_queue._writer.close()
        return BrokenProcessPool(f"worker process {late[0]} died while it sent an answer")


class _Dask(_Pool):
    """A Dask Client."""

    def __init__(self, client):
        if client.asynchronous:
            raise _native.PprofError("executor is an asynchronous Client, but batch needs a synchronous one")
        # pure=False: the same paths may be different files the next time.
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
    """The module ray, connected to a cluster. A task uses one CPU of the cluster."""

    cancels = True

    def __init__(self, ray):
        if not ray.is_initialized():
            raise _native.PprofError("executor is ray, which is not connected: call ray.init() first")
        self.ray = ray
        self.call = ray.remote(_call)
        self.cpus = WorkerCount(lambda: ray.cluster_resources().get("CPU", 0))

    def submit(self, fn, *args):
        if lost := self.lost():  # otherwise Ray would start its own cluster
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
    """The number of workers in a cluster, queried at most once a second because workers come and go."""

    def __init__(self, query):
        self.query = query
        self.last_count, self.next_query = 1, 0

    def count(self):
        if monotonic() > self.next_query:
            try:
                self.last_count = max(1, int(self.query()))
            except Exception:  # the cluster has shut down; its tasks will report that
                self.last_count = 1
            self.next_query = monotonic() + 1
        return self.last_count
