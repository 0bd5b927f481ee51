"""Measures the rate and the peak memory of every way to compare many pairs with the Python package.

`bulk.py [--alone] [RUNS]` compares the 200 pairs of size S (`target/bench-data`, see README.md; `BENCH_DATA` names
another folder) and 10,000 tiny pairs of the corpus, including 1 % bad pairs. Each way runs in its own process, in
turns, and the script prints a table: medians, and the peak memory of the calling process without workers (maximum of
the runs). The pairs of size S are also read from a local server that emulates S3 in another process. "GET only" is the
rate at which the server answers the same number of threads without comparisons.

The script needs the package, psutil, and the groups dev and nightly of pyproject.toml. Pools and clusters are started
before the measurement. With --alone, all measured processes and the server get real-time priority (as root).
"""

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BENCH_DATA", ROOT / "target/bench-data"))
BUCKET = "bulk"
THREADS = 16  # Threads that wait for the network.
WAYS = {
    "S": ("threads", "fork", "spawn", "dask", "ray", "threads, stream"),
    "S, 10 rows": ("threads", "fork", "spawn", "dask", "ray", "threads, stream"),
    "tiny": ("threads", "fork", "spawn", "dask", "ray", "threads, stream"),
    "S, 10 rows, from S3": ("threads", "dask", "ray", "GET only"),
}


def pairs(kind: str) -> list[tuple[str, str]]:
    """Returns the pairs of a job."""
    if kind.startswith("S"):
        where = f"s3://{BUCKET}" if kind.endswith("S3") else str(DATA)
        names = sorted(path.name for path in DATA.glob("S-*.base.pb.gz"))
        return [(f"{where}/{name}", f"{where}/{name.replace('.base.', '.new.')}") for name in names]
    tiny = (str(ROOT / "tests/corpus/go-mutex.base.pb.gz"), str(ROOT / "tests/corpus/go-mutex.new.pb.gz"))
    return [("none", f"bad {i}") if i % 100 == 7 else tiny for i in range(10_000)]


@contextlib.contextmanager
def executor_of(way: str, kind: str) -> Iterator[object]:
    """Yields the executor of a way, with its workers started and their imports done.

    There are two workers, or many threads that wait for the network. None stands for the package's own threads.
    """
    import pprofdiff

    first = pairs(kind if kind.endswith("S3") else "tiny")[:50]
    if way in ("fork", "spawn"):
        context = multiprocessing.get_context(way)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            list(pprofdiff.batch(first, executor=pool).tables(1))
            yield pool
    elif kind.endswith("S3") and way == "threads":
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            list(pprofdiff.batch(first, executor=pool).tables(1))
            yield pool
    elif way == "ray":
        import ray
        import ray.cluster_utils

        cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1)
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        list(pprofdiff.batch(first, executor=ray).tables(1))
        yield ray
        ray.shutdown()
        cluster.shutdown()
    elif way == "dask":
        import distributed

        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            client.wait_for_workers(2)
            list(pprofdiff.batch(first, executor=client).tables(1))
            yield client
    else:
        yield None


def processes() -> list[psutil.Process]:
    """Returns this process and its workers."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def cpu() -> float:
    """Returns the CPU seconds of this process and its workers."""
    return sum(sum(p.cpu_times()[:2]) for p in processes())


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """With --alone, gives this process, its workers and the server priority over other work of the machine."""
    if "BENCH_ALONE" not in os.environ:
        yield
        return
    server = [psutil.Process(int(os.environ["BENCH_SERVER"]))]

    def become(policy: int, priority: int) -> None:
        for thread in itertools.chain(*(process.threads() for process in processes() + server)):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(thread.id, policy, os.sched_param(priority))

    become(os.SCHED_RR, 1)
    try:
        yield
    finally:
        become(os.SCHED_OTHER, 0)


def measure(way: str, kind: str) -> None:
    """Runs one job, and reports its cost, the numbers of results and failures, and a digest of the results.

    A stream is not digested.
    """
    import pyarrow

    import pprofdiff

    job = [pprofdiff.Pair(*pair, str(i)) for i, pair in enumerate(pairs(kind))]
    digest, done, failed = hashlib.sha256(), 0, 0
    with executor_of(way, kind) as executor, alone():
        tables = []
        start, before = time.perf_counter(), cpu()
        many = pprofdiff.batch(job, executor=executor).tables(10 if "10 rows" in kind else None)
        if way.endswith("stream"):
            names: set[str] = set()
            errors = 0
            for batch in pyarrow.RecordBatchReader.from_stream(many):
                names.update(batch.column("pair").unique().to_pylist())
                errors += len(batch) - batch.column("error").null_count
            done, failed = len(names), errors
        else:
            for result in many:
                done += 1
                failed += result.error is not None
                tables.append((result.name, str(result.error), len(result.table or ()), result.summary["total_delta"]))
        seconds, spent = time.perf_counter() - start, cpu() - before
    digest.update(repr(tables).encode())
    say(seconds, spent, done, failed, digest.hexdigest())


def measure_gets(kind: str) -> None:
    """Measures the rate of the server for threads that compare nothing."""
    import fsspec

    def get(url: str) -> int:
        filesystem, path = fsspec.core.url_to_fs(url)
        return len(filesystem.cat_file(path))

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(get, itertools.chain(*pairs(kind)[:50])))
        with alone():
            start, before = time.perf_counter(), cpu()
            sizes = list(pool.map(get, itertools.chain(*pairs(kind))))
            say(time.perf_counter() - start, cpu() - before, len(sizes) // 2, sizes.count(0), None)


def say(seconds: float, spent: float, done: int, failed: int, digest: str | None) -> None:
    """Prints the figures of one job for main()."""
    peak = int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
    found = {"seconds": seconds, "cpu": spent, "peak": peak, "done": done, "failed": failed, "digest": digest}
    print(json.dumps(found))


@contextlib.contextmanager
def s3() -> Iterator[None]:
    """Starts a server that emulates S3 and holds the pairs. Child processes find it through their environment."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.environ["BENCH_SERVER"] = str(server.pid)
        try:
            client = boto3.client("s3")
            while True:
                try:
                    client.create_bucket(Bucket=BUCKET)
                    break
                except Exception:  # The server is still starting.
                    if server.poll() is not None:
                        raise
                    time.sleep(0.2)
            for path in DATA.glob("S-*.pb.gz"):
                client.upload_file(str(path), BUCKET, path.name)
            yield
        finally:
            server.terminate()


def main() -> None:
    """Runs all ways in turns, and prints the table."""
    arguments = sys.argv[1:]
    if "--alone" in arguments:
        arguments.remove("--alone")
        os.environ["BENCH_ALONE"] = "1"
    runs = int(arguments[0]) if arguments else 3
    found: dict[tuple[str, str], list[dict]] = {}
    with s3():
        for _, kind in itertools.product(range(runs), WAYS):
            for way in WAYS[kind]:
                command = [sys.executable, __file__, "--one", way, kind]
                out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                found.setdefault((kind, way), []).append(json.loads(out.splitlines()[-1]))
    columns = ("pairs", "way", "pairs/s", "of threads", "CPU ms a pair", "peak MB", "results", "failed")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for (kind, way), all_of in found.items():
        rate = len(pairs(kind)) / statistics.median(one["seconds"] for one in all_of)
        threads = len(pairs(kind)) / statistics.median(one["seconds"] for one in found[kind, "threads"])
        peak = max(one["peak"] for one in all_of) / 1024
        last = all_of[-1]
        spent = statistics.median(one["cpu"] for one in all_of) / len(pairs(kind)) * 1000
        counts = f"{last['done']} | {last['failed']}"
        print(f"| {kind} | {way} | {rate:,.0f} | {rate / threads:.0%} | {spent:.2f} | {peak:.0f} | {counts} |")
        assert last["done"] == len(pairs(kind))
        if way not in ("threads, stream", "GET only"):
            assert last["digest"] == found[kind, "threads"][0]["digest"], "another answer"


if __name__ == "__main__":
    if sys.argv[1:3] == ["--one", "GET only"]:
        measure_gets(sys.argv[3])
    elif sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:])
    else:
        main()
