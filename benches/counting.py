#!/usr/bin/env python3
"""Measures how often `pprofdiff bench --counts` is wrong, and which changes it finds, on a machine that is busy.

Four small programs (two in C, two in Rust) run for a few million instructions. In the "equal" benches both sides are
builds of the same source in folders with different names, so the answer "change" is wrong. The Rust programs use hash
maps with random seeds, so their runs differ. In the "planted" benches a function with a tenth of the instructions does
0.5 % more. The same benches with timing (`perf record`, 10 runs per side) show the contrast. The script prints the
figures of docs/counting.md.

    benches/counting.py [--equal 200] [--planted 100] [--timed 3] [--busy 6] [--first 0] path/to/pprofdiff
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).with_name("counting")
# `tenth(TENTH)` has about a tenth of the instructions: TENTH is 2,000 on the base, and 2,010 after a planted change.
C_PARSE = (PROGRAMS / "parse.c").read_text()
C_SORT = (PROGRAMS / "sort.c").read_text()
RUST_MAP = (PROGRAMS / "map.rs").read_text()
RUST_TEXT = (PROGRAMS / "text.rs").read_text()
PROGRAMS = {
    "c-parse": ("c", C_PARSE, 50),
    "c-sort": ("c", C_SORT, 25),
    "rust-map": ("rs", RUST_MAP, 30),
    "rust-text": ("rs", RUST_TEXT, 40),
}


def build(folder, name, tenth, repeat, seed):
    """Compiles a program with these constants into `folder`/app."""
    kind, source, _ = PROGRAMS[name]
    folder.mkdir(parents=True)
    for constant, value in (("TENTH", tenth), ("REPEAT", repeat), ("SEED", seed)):
        source = source.replace(constant, str(value))
    (folder / f"app.{kind}").write_text(source)
    compiler = (
        ["gcc", "-O1", "-g", "app.c", "-o", "app"] if kind == "c" else ["rustc", "-O", "-g", "app.rs", "-o", "app"]
    )
    subprocess.run(compiler, cwd=folder, check=True)


def bench(pprofdiff, base, new, into, arguments, command):
    """Returns the verdict of `bench`, whether `explain` names `tenth`, and its verdict."""
    words = [pprofdiff, "bench", "--base-dir", base, "--new-dir", new, "--into", into, *arguments]
    result = subprocess.run([*words, "--format", "json", "--", *command], capture_output=True, text=True, timeout=900)
    if result.returncode != 0:
        sys.exit(f"{words}: {result.stderr}")
    verdict = (
        "change" if "pprofdiff: a change" in result.stderr else "undecided" if "undecided" in result.stderr else "none"
    )
    answer = json.loads(result.stdout)
    found = re.search(r"changed: (\S*tenth\S*) ", result.stderr) is not None
    causes = answer.get("causes") or answer.get("data", {}).get("causes") or []
    explained = any("tenth" in (cause.get("function") or "") for cause in causes)
    return verdict, found, answer.get("verdict"), explained, len(causes)


def compare(options, folder, number, planted, is_timed):
    """Builds both sides of one bench and returns its answer."""
    name = list(PROGRAMS)[number % len(PROGRAMS)]
    repeat = PROGRAMS[name][2] * (60 if is_timed else 1)
    # A tenth of the instructions of the other functions, found with callgrind (`tenths`).
    tenth = options.tenths[name]
    base, new = folder / "b" / "base", folder / "new-side"
    seed = 1 + number // len(PROGRAMS) % 5
    for side, rounds in ((base, tenth), (new, tenth + round(tenth * 0.005) if planted else tenth)):
        # Debug information contains the folder, but the code of a program does not depend on it.
        built = folder.parent / f"built-{name}-{rounds}-{repeat}-{seed}-{side.name}"
        if not built.exists():
            build(built, name, rounds, repeat, seed)
        shutil.copytree(built, side)
    arguments, command = ["--counts"], ["./app"]
    if is_timed:
        arguments, command = ["--runs", "10"], ["perf", "record", "-F", "2000", "-g", "./app"]
    begun = time.time()
    answer = bench(options.pprofdiff, base, new, folder / "runs", arguments, command)
    return name, answer, time.time() - begun


def tenths(folder):
    """Returns the rounds of `tenth` that are a tenth of the instructions of each program."""
    rounds = {}
    for name in PROGRAMS:
        build(folder / name, name, 1000, PROGRAMS[name][2], 1)
        out = folder / f"{name}.out"
        subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}", "./app"],
            cwd=folder / name,
            check=True,
            capture_output=True,
        )
        text = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", out],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        total = int(re.search(r"([\d,]+).*PROGRAM TOTALS", text)[1].replace(",", ""))
        own = sum(int(n.replace(",", "")) for n in re.findall(r"^\s*([\d,]+)\s+\S+:\S*tenth", text, re.M))
        rounds[name] = round(1000 * (total - own) / 9 / own)
        # A change of 0.5 % must be a whole number of rounds.
        rounds[name] = max(200, round(rounds[name] / 200) * 200)
    return rounds


def summary(answers):
    """Prints the figures so far."""
    for title, all_answers in answers.items():
        count = len(all_answers)
        if not count:
            continue
        changes = sum(answer[0] == "change" for answer in all_answers)
        found = sum(answer[0] == "change" and answer[1] for answer in all_answers)
        explained = sum(answer[3] for answer in all_answers)
        wrong = sum(answer[2] == "change" for answer in all_answers)
        seconds = sum(answer[5] for answer in all_answers) / count
        print(
            f"== {title}: {count} benches, {changes} say change, {found} name the function; "
            f"explain says change in {wrong}, and names it in {explained}; "
            f"mean {seconds:.1f} s a bench, load average {os.getloadavg()[1]:.1f}",
            flush=True,
        )


def main() -> None:
    """Runs the benches and prints their figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pprofdiff", type=Path)
    for name, default in (("equal", 200), ("planted", 100), ("timed", 3), ("busy", 6), ("first", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.pprofdiff = options.pprofdiff.resolve()
    # The loops must end with this script.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The loops are polite to other users of the machine, but they never sleep.
    loops = [
        subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)
    ]
    try:
        with tempfile.TemporaryDirectory() as temporary:
            options.tenths = tenths(Path(temporary) / "tenths")
            print("rounds of a tenth:", options.tenths, flush=True)
            kinds = {
                "counted, equal": (options.equal, False, False),
                "counted, +0.5 % in a tenth": (options.planted, True, False),
                "timed, equal": (options.timed, False, True),
                "timed, +0.5 % in a tenth": (options.timed, True, True),
            }
            # All kinds progress together, so that a run that is stopped early has some of each.
            jobs = [(i / count, title, i) for title, (count, _, _) in kinds.items() for i in range(count)]
            answers = {title: [] for title in kinds}
            for done, (_, title, i) in enumerate(sorted(jobs), 1):
                folder = Path(temporary) / "bench"
                shutil.rmtree(folder, ignore_errors=True)
                name, answer, took = compare(options, folder, options.first + i, *kinds[title][1:])
                answers[title].append((*answer, took))
                print(f"{title} {options.first + i} {name} {answer} {took:.1f} s", flush=True)
                if done % 30 == 0 or done == len(jobs):
                    summary(answers)
    finally:
        for loop in loops:
            loop.terminate()


if __name__ == "__main__":
    main()
