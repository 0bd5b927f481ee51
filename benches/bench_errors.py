#!/usr/bin/env python3
"""Measures how often `pprofdiff bench` is wrong, and how soon it is right, on a machine with changing load.

It uses three small programs (Go, C with perf, Node), each in its own repository. In the "equal" runs both sides are
checkouts of one commit, so the answer "change" is wrong. For comparison, the naive method takes the medians of five
runs of one side, then of five runs of the other, with a threshold of 2 %. In the "planted" runs one function does more
work, so that the total grows by 5 % or 2 %. The script prints the figures under "Measured" in docs/bench.md.

    benches/bench_errors.py [--equal 200] [--planted 20] [--runs 12] [--planted-runs 30] [--first 0] path/to/pprofdiff

`--first` is the number of the first comparison and also its seed, so that 200 comparisons can be split into several
runs.
"""

import argparse
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# Each program has three functions that cost the same. `ROUNDS` is the placeholder for the iterations of `twist`.
GO = """package main

import ("os"; "runtime"; "runtime/pprof")

var kept int

//go:noinline
func twist(n int) { for i := 0; i < n; i++ { kept = kept*31 + i%7 } }

//go:noinline
func fold(n int) { for i := 0; i < n; i++ { kept = kept*17 + i%5 } }

//go:noinline
func spin(n int) { for i := 0; i < n; i++ { kept = kept*13 + i%3 } }

func main() {
	runtime.SetCPUProfileRate(1000)
	file, _ := os.Create(os.Getenv("PPROFDIFF_PROFILE"))
	pprof.StartCPUProfile(file)
	for i := 0; i < 15; i++ { twist(ROUNDS); fold(600000); spin(600000) }
	pprof.StopCPUProfile()
}
"""
C = """static volatile unsigned kept;
__attribute__((noinline)) void twist(unsigned n) { for (unsigned i = 0; i < n; i++) kept = kept * 31 + i % 7; }
__attribute__((noinline)) void fold(unsigned n) { for (unsigned i = 0; i < n; i++) kept = kept * 17 + i % 5; }
__attribute__((noinline)) void spin(unsigned n) { for (unsigned i = 0; i < n; i++) kept = kept * 13 + i % 3; }
int main(void) { for (int i = 0; i < 15; i++) { twist(ROUNDS); fold(500000); spin(500000); } return 0; }
"""
NODE = """let kept = 0;
function twist(n) { for (let i = 0; i < n; i++) kept = (kept * 31 + i) % 1000003; }
function fold(n) { for (let i = 0; i < n; i++) kept = (kept * 17 + i) % 1000003; }
function spin(n) { for (let i = 0; i < n; i++) kept = (kept * 13 + i) % 1000003; }
for (let i = 0; i < 15; i++) { twist(ROUNDS); fold(200000); spin(200000); }
"""
PROGRAMS = {
    "Go": ("app.go", GO, ["go", "build", "-o", "app", "app.go"], ["./app"], 600_000),
    "C": ("app.c", C, ["cc", "-g", "-O1", "-o", "app", "app.c"], ["perf", "record", "-F", "2000", "./app"], 500_000),
    "Node": ("app.js", NODE, ["true"], ["node", "app.js"], 200_000),
}
# The factors of the total: the base, and the planted changes. `twist` is a third of the total, so its iterations grow
# by three times the planted change.
PLANTED = (1.0, 1.05, 1.02)


def repository(home: Path, name: str) -> tuple[Path, list[str], list[str]]:
    """Creates a repository with a commit for each factor in PLANTED, which includes the built program.

    Returns the folder, the command that runs the program, and the commits.
    """
    file, text, build, command, rounds = PROGRAMS[name]
    home.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(home)]
    subprocess.run([*git, "init", "-q"], check=True)
    commits = []
    for factor in PLANTED:
        (home / file).write_text(text.replace("ROUNDS", str(round(rounds * (1 + 3 * (factor - 1))))))
        subprocess.run(build, cwd=home, check=True, env={**os.environ, "GO111MODULE": "off"})
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", f"x {factor}"], check=True)
        commits.append(
            subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        )
    return home, command, commits


def load(stop: threading.Event) -> None:
    """Generates load in another process: it works for some seconds, then pauses."""
    dice = random.Random(1)
    while not stop.is_set():
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        stop.wait(dice.expovariate(1 / 2))
        busy.kill()
        busy.wait()
        stop.wait(dice.expovariate(1 / 2))


def bench(program: str, home: Path, command: list[str], commits: str, runs: int, seed: int) -> tuple[str, int, float]:
    """Returns the decision, the number of runs per side, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as into:
        words = [program, "bench", commits, "--into", into, "--runs", str(runs), "--seed", str(seed), "--", *command]
        begun = time.monotonic()
        done = subprocess.run(words, cwd=home, capture_output=True, text=True)
        said = re.search(r"(a change of|no change of|undecided).*\((\d+) \+ ", done.stderr)
        if done.returncode or not said:
            raise SystemExit(done.stderr)
        return said[1], int(said[2]), time.monotonic() - begun


def naive(home: Path, command: list[str]) -> bool:
    """Returns true if the naive method detects a change."""
    environment = {**os.environ, "PPROFDIFF_PROFILE": os.devnull}
    plain = command[4:] if command[0] == "perf" else command

    def median() -> float:
        times = []
        for _ in range(5):
            begun = time.monotonic()
            subprocess.run(plain, cwd=home, env=environment, check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - begun)
        return statistics.median(times)

    return abs(math.log(median() / median())) > 0.02


def wilson(found: int, of: int) -> str:
    """Formats Wilson's 95 % interval in percent."""
    z, p = 1.96, found / of
    middle, half = p + z * z / 2 / of, z * math.sqrt(p * (1 - p) / of + z * z / 4 / of / of)
    low, high = (max(0.0, (middle + sign * half) / (1 + z * z / of)) for sign in (-1, 1))
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def main() -> None:
    """Measures, and prints each row as soon as it is complete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    for name, default in [("equal", 200), ("planted", 20), ("runs", 12), ("planted-runs", 30), ("first", 0)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    program = str(args.program.resolve())
    with tempfile.TemporaryDirectory() as folder:
        made = {name: repository(Path(folder) / name, name) for name in PROGRAMS}
        stop = threading.Event()
        loading = threading.Thread(target=load, args=(stop,))
        loading.start()
        try:
            alarms, ruled_out, naive_alarms, asked = 0, 0, 0, 0
            for number in range(args.equal):
                i = args.first + number
                home, command, commits = made[list(made)[i % len(made)]]
                said, _, _ = bench(program, home, command, f"{commits[0]}..{commits[0]}", args.runs, i)
                alarms, ruled_out, asked = (
                    alarms + (said == "a change of"),
                    ruled_out + (said == "no change of"),
                    number + 1,
                )
                naive_alarms += naive(home, command)
                print(
                    f"equal: change {alarms}, ruled out {ruled_out}, of {asked}; {wilson(alarms, asked)};"
                    f" naive {naive_alarms}; {wilson(naive_alarms, asked)}",
                    flush=True,
                )
            for planted, factor in enumerate(PLANTED[1:], 1):
                found = []
                for i in range(args.first, args.first + args.planted):
                    home, command, commits = made[list(made)[i % len(made)]]
                    of = f"{commits[0]}..{commits[planted]}"
                    found.append(bench(program, home, command, of, args.planted_runs, i))
                    right = [one for one in found if one[0] == "a change of"]
                    print(
                        f"x {factor}: found {len(right)} of {len(found)}, runs a side"
                        f" {statistics.mean(one[1] for one in found):.1f}, seconds"
                        f" {statistics.mean(one[2] for one in found):.0f}",
                        flush=True,
                    )
        finally:
            stop.set()
            loading.join()


if __name__ == "__main__":
    main()
