"""Many pairs through Python: the rate and the peak memory of each way to compare them.

`bulk.py [RUNS]` takes the 200 pairs of size S (`target/bench-data`, see README.md; `BENCH_DATA` is another place) and
10,000 tiny ones of the corpus, one in a hundred of them bad, each way in a process of its own, in turns, and prints a
table of medians. Needs the package, pyarrow, psutil and distributed. Pools and clusters are up before the time
begins.
"""

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BENCH_DATA", ROOT / "target/bench-data"))
WAYS = ("threads", "fork", "spawn", "dask", "threads, stream")


def pairs(kind: str) -> list[tuple[str, str]]:
    """The pairs of a job."""
    if kind.startswith("S"):
        bases = sorted(DATA.glob("S-*.base.pb.gz"))
        return [(str(base), str(base).replace(".base.", ".new.")) for base in bases]
    tiny = (str(ROOT / "tests/corpus/go-mutex.base.pb.gz"), str(ROOT / "tests/corpus/go-mutex.new.pb.gz"))
    return [("none", f"bad {i}") if i % 100 == 7 else tiny for i in range(10_000)]


@contextlib.contextmanager
def executor_of(way: str) -> Iterator[concurrent.futures.Executor | None]:
    """The executor of a way, with its workers running and the package imported in them; two of them."""
    import pprofdiff

    if way in ("fork", "spawn"):
        context = multiprocessing.get_context(way)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            list(pprofdiff.batch(pairs("tiny")[:50], executor=pool).tables(1))
            yield pool
    elif way == "dask":
        import distributed

        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            client.wait_for_workers(2)
            executor = client.get_executor()
            list(pprofdiff.batch(pairs("tiny")[:50], executor=executor).tables(1))
            yield executor
    else:
        yield None


def cpu() -> float:
    """Seconds of processor time of this process and of its workers."""
    this = psutil.Process()
    return sum(sum(p.cpu_times()[:2]) for p in [this, *this.children(recursive=True)])


def measure(way: str, kind: str) -> None:
    """One job: what it took, what it found, and a digest of all of that."""
    import pyarrow

    import pprofdiff

    job = [pprofdiff.Pair(*pair, str(i)) for i, pair in enumerate(pairs(kind))]
    digest, done, failed = hashlib.sha256(), 0, 0
    with executor_of(way) as executor:
        tables = []
        start, before = time.perf_counter(), cpu()
        many = pprofdiff.batch(job, executor=executor).tables(10 if kind == "S, 10 rows" else None)
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
    peak = int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
    found = {
        "seconds": seconds,
        "cpu": spent,
        "peak": peak,
        "done": done,
        "failed": failed,
        "digest": digest.hexdigest(),
    }
    print(json.dumps(found))


def main() -> None:
    """All ways in turns, then the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found: dict[tuple[str, str], list[dict]] = {}
    for _, kind, way in itertools.product(range(runs), ("S", "S, 10 rows", "tiny"), WAYS):
        command = [sys.executable, __file__, "--one", way, kind]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.setdefault((kind, way), []).append(json.loads(out))
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
        if not way.endswith("stream"):
            assert last["done"] == len(pairs(kind))
            assert last["digest"] == found[kind, "threads"][0]["digest"], "another answer"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:])
    else:
        main()
