#!/usr/bin/env python3
"""Compares the time of heap snapshot deltas with the Go library and fastdelta: `benches/peers/delta.py [RUNS]`.

It uses ten snapshots of size M of one process. A measurement starts with the bytes of a snapshot's gzip file and ends
with the gzip file of the delta (level 1 for all). Ours uses DeltaComputer on one thread, and on two as in the command.
The peers are DataDog's fastdelta and the Go library with Parse, ScaleN, Merge and Write (their garbage collector may
use both cores). The programs run in turns, and the medians are printed. The answers are compared before anything is
measured. Needs Rust and Go.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "target" / "bench-data"
OURS = str(ROOT / "target" / "release" / "deltas")


def output(*args: str, cwd: Path = ROOT) -> str:
    """Returns the output of a command."""
    return subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Checks the answers, measures, and prints the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    output("cargo", "build", "--release", "--locked", "-p", "pprofdiff-benches", "--bin", "deltas")
    scratch = Path(tempfile.mkdtemp())
    go, fastdelta = str(scratch / "godelta"), str(scratch / "fastdelta")
    output("go", "build", "-o", go, ".", cwd=ROOT / "benches" / "peers" / "godelta")
    output("go", "build", "-o", fastdelta, ".", cwd=ROOT / "benches" / "peers" / "fastdelta")

    snapshots = [str(DATA / f"M-heap.{i}.pb.gz") for i in range(10)]
    output(OURS, "1", str(scratch / "delta-{index}.pb.gz"))
    output(fastdelta, "write", str(scratch / "fastdelta-"), *snapshots)
    output(go, "check", *snapshots, "--", *(str(scratch / f"delta-{i}.pb.gz") for i in range(1, 10)))
    # fastdelta never forgets a stack, so a stack that is missing once and returns is counted from before. Only the
    # first delta can be compared.
    output(go, "check", *snapshots[:2], "--", str(scratch / "fastdelta-1.pb.gz"))

    names = ("load", "update", "pack", "milliseconds", "stream")
    times: dict[str, list[float]] = {name: [] for name in (*names, "fastdelta", "go")}
    ours, theirs, fast = {}, {}, {}
    for _ in range(runs):
        ours = json.loads(output(OURS, "1"))
        fast = json.loads(output(fastdelta, "1", *snapshots))
        theirs = json.loads(output(go, "1", *snapshots))
        for name in names:
            times[name] += ours[name]
        times["fastdelta"] += fast["milliseconds"]
        times["go"] += theirs["milliseconds"]
    medians = {name: statistics.median(all) for name, all in times.items()}
    count = len(snapshots) - 1
    print("| per snapshot (M) | ms |\n|---|---|")
    for name, row in [
        ("load", "inflate, parse, check"),
        ("update", "delta as a message"),
        ("pack", "gzip level 1"),
        ("milliseconds", "all, one thread"),
        ("stream", "all, two threads: the next snapshot is loaded meanwhile"),
        ("fastdelta", "fastdelta, a Go process's own"),
        ("go", "Go library: Parse, ScaleN, Merge, Write"),
    ]:
        print(f"| {row} | {medians[name]:.1f} |")
    print()
    for name, threads in [("milliseconds", "one thread"), ("stream", "two")]:
        ratio = medians["go"] / medians[name]
        print(f"{threads}: {ratio:.1f} times as fast (target: 12), {medians[name]:.1f} ms (target: 25)")
    print(
        f"bytes per snapshot {ours['snapshot_bytes'] // count:,}, per delta ours {ours['bytes'] // count:,}, "
        f"Go's {theirs['bytes'] // count:,}"
    )


main()
