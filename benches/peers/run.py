#!/usr/bin/env python3
"""Measures pprofdiff beside its peers and prints Markdown: `benches/peers/run.py [SIZE...]`.

Builds what it needs (Rust in release as shipped, the Go peers), checks every answer, then runs everything
in turns and reports medians, ratios and peak memory. It refuses to time a wrong answer. Needs Rust and Go.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "target" / "bench-data"
OURS = str(ROOT / "target" / "release" / "pprofdiff")
RUNS = {"S": 15, "M": 7, "L": 3}


def output(*args: str, cwd: Path = ROOT) -> str:
    return subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(args: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of one run of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"failed: {' '.join(args)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def check_top(pprof: str, base: str, new: str) -> None:
    """The ten frames that changed most must be pprof's, to the last digit."""
    ours = json.loads(output(OURS, base, new, "--format", "json", "-n", "10"))
    unit = ours["unit"]
    text = output(pprof, "-top", "-diff_base", base, f"-unit={unit}", "-nodecount=10", "-symbolize=none", new)
    theirs = {}
    for line in text.splitlines():
        if row := re.match(r"\s*(-?[\d.]+)\S*\s+\S+%\s+\S+%\s+(-?[\d.]+)\S*\s+\S+%\s+(.*)", line):
            theirs[row[3]] = (int(float(row[1])), int(float(row[2])))
    rows = {row["name"]: (row["flat_delta"], row["cum_delta"]) for row in ours["rows"]}
    if rows != theirs:
        sys.exit(f"pprof and pprofdiff disagree about {base} and {new}: {theirs} and {rows}")


def check_written(pprof: str, ours: str, theirs: str) -> None:
    """Both written diffs must read alike in pprof."""
    reports = [output(pprof, "-top", "-nodecount=30", path) for path in (ours, theirs)]
    # Rows only: the headers differ in the duration, which the Go library adds up.
    rows = [[line for line in report.splitlines() if re.match(r"\s*-?[\d.]+\S*\s+[\d.]+%", line)] for report in reports]
    if rows[0] != rows[1] or not rows[0]:
        sys.exit("the written diffs disagree")


def main() -> None:
    sizes = sys.argv[1:] or ["S", "M", "L"]
    output("cargo", "build", "--release", "--locked", "-p", "pprofdiff-cli", "-p", "pprofdiff-bench")
    output(str(ROOT / "target" / "release" / "generate"))
    scratch = Path(tempfile.mkdtemp())
    output("go", "build", "-o", str(scratch / "gomerge"), ".", cwd=ROOT / "benches" / "peers" / "gomerge")
    pprof = output("go", "tool", "-n", "pprof").strip()

    print("| size | in process, two threads | ms | x inflate |\n|---|---|---|---|")
    for size in sizes:
        inside = json.loads(output(str(ROOT / "target" / "release" / "inprocess"), size, str(RUNS[size])))
        for name, seconds in inside.items():
            print(f"| {size} | {name} | {seconds * 1000:.2f} | {seconds / inside['inflate']:.2f} |", flush=True)

    print("\n| size | whole process | wall s | CPU s | peak MiB | x wall | x CPU |\n|---|---|---|---|---|---|---|")
    for size in sizes:
        base, new = (str(DATA / f"{size}-1.{side}.pb.gz") for side in ("base", "new"))
        out = {name: str(scratch / f"{name}.pb.gz") for name in ("ours", "go", "pprof")}
        commands = {
            "pprofdiff A B": [OURS, base, new],
            "pprofdiff --format pprof": [OURS, base, new, "--format", "pprof", "-o", out["ours"]],
            "Go library: parse, merge, write": [str(scratch / "gomerge"), base, new, out["go"]],
        }
        if size != "L":  # six minutes and nine gigabytes there
            check_top(pprof, base, new)
            commands["go tool pprof -top -diff_base"] = [pprof, "-top", "-diff_base", base, new]
            commands["go tool pprof -proto -diff_base"] = [
                pprof, "-proto", f"-output={out['pprof']}", "-diff_base", base, new,
            ]  # fmt: skip
        for name in ("pprofdiff --format pprof", "Go library: parse, merge, write"):
            measure(commands[name])
        if size != "L":
            check_written(pprof, out["ours"], out["go"])
        times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for _ in range(RUNS[size] if size != "L" else 1):
            for name, command in commands.items():
                times[name].append(measure(command))
        medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in times.items()}
        for name, (wall, cpu, peak) in medians.items():
            reference = medians["pprofdiff A B" if "top" in name or name == "pprofdiff A B" else "pprofdiff --format pprof"]
            ratios = f"{wall / reference[0]:.1f} | {cpu / reference[1]:.1f}"
            print(f"| {size} | {name} | {wall:.4f} | {cpu:.4f} | {peak:.0f} | {ratios} |", flush=True)
        sizes_of = {name: os.path.getsize(path) for name, path in out.items() if os.path.exists(path)}
        print(f"| {size} | bytes written | {sizes_of} | | | | |", flush=True)


main()
