#!/usr/bin/env python3
"""Measures how often `pprofdiff bench --counts` is wrong, and which changes it finds, while other programs use all processors.

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

# `tenth(TENTH)` has about a tenth of the instructions: TENTH is 2,000 on the base, and 2,010 after a planted change.
C_PARSE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char text[8192];
static unsigned kept;
__attribute__((noinline)) unsigned hash(const char *p, int n) { unsigned h = 5381; for (int i = 0; i < n; i++) h = h * 33 + p[i]; return h; }
__attribute__((noinline)) void parse(void) { char *p = text; int words = 0; while (*p) { char *q = p; while (*q && *q != ' ') q++; kept += hash(p, q - p); words++; p = *q ? q + 1 : q; } kept += words; }
__attribute__((noinline)) unsigned tenth(unsigned n) { unsigned x = SEED; for (unsigned i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }
__attribute__((noinline)) void copy(void) { char *c = malloc(sizeof text); memcpy(c, text, sizeof text); kept += c[100]; free(c); }
int main(void) {
    for (int i = 0; i < 8000; i++) text[i] = i % 7 ? 'a' + i % 26 : ' ';
    for (int r = 0; r < REPEAT; r++) { parse(); copy(); for (int k = 0; k < 1; k++) kept += tenth(TENTH); }
    printf("%u\n", kept);
    return 0;
}
"""
C_SORT = r"""
#include <stdio.h>
#include <stdlib.h>
static int numbers[1000];
static unsigned kept;
__attribute__((noinline)) int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) void fill(void) { unsigned x = SEED; for (int i = 0; i < 1000; i++) { x = x * 1664525 + 1013904223; numbers[i] = x % 10007; } }
__attribute__((noinline)) int search(int n) { int low = 0, high = 1000; while (low < high) { int middle = (low + high) / 2; if (numbers[middle] < n) low = middle + 1; else high = middle; } return low; }
__attribute__((noinline)) unsigned tenth(unsigned n) { unsigned x = 1; for (unsigned i = 0; i < n; i++) x = x * 31 + i; return x; }
int main(void) {
    for (int r = 0; r < REPEAT; r++) { fill(); qsort(numbers, 1000, sizeof(int), compare); for (int i = 0; i < 500; i++) kept += search(i); for (int k = 0; k < 6; k++) kept += tenth(TENTH); }
    printf("%u\n", kept);
    return 0;
}
"""
RUST_MAP = r"""
use std::collections::HashMap;
#[inline(never)] fn words(text: &str) -> HashMap<&str, u32> { let mut map = HashMap::new(); for word in text.split(' ') { *map.entry(word).or_insert(0) += 1; } map }
#[inline(never)] fn tenth(n: u32) -> u32 { let mut x = SEEDu32; for i in 0..n { x = x.wrapping_mul(1664525).wrapping_add(std::hint::black_box(i)); } x }
#[inline(never)] fn sorted(map: &HashMap<&str, u32>) -> usize { let mut all: Vec<_> = map.iter().collect(); all.sort(); all.len() }
fn main() {
    let text: String = (0..400).map(|i| format!("word{} ", i * 7 % 97)).collect();
    let mut kept = 0;
    for _ in 0..REPEAT { let map = words(&text); kept += sorted(&map); for _ in 0..3 { kept += tenth(std::hint::black_box(TENTH)) as usize % 7; } }
    println!("{kept}");
}
"""
RUST_TEXT = r"""
#[inline(never)] fn escape(text: &str) -> String { let mut out = String::new(); for c in text.chars() { match c { '<' => out.push_str("&lt;"), '&' => out.push_str("&amp;"), c => out.push(c) } } out }
#[inline(never)] fn digits(text: &str) -> u64 { text.bytes().filter(u8::is_ascii_digit).map(u64::from).sum() }
#[inline(never)] fn tenth(n: u32) -> u32 { let mut x = SEEDu32; for i in 0..n { x = x.wrapping_mul(31).wrapping_add(std::hint::black_box(i)); } x }
fn main() {
    let text: String = (0..300).map(|i| format!("<a{i}&b>")).collect();
    let mut kept = 0u64;
    for _ in 0..REPEAT { let escaped = escape(&text); kept += digits(&escaped) + escaped.len() as u64; for _ in 0..2 { kept += u64::from(tenth(std::hint::black_box(TENTH))) % 7; } }
    println!("{kept}");
}
"""
PROGRAMS = {"c-parse": ("c", C_PARSE, 50), "c-sort": ("c", C_SORT, 25), "rust-map": ("rs", RUST_MAP, 30), "rust-text": ("rs", RUST_TEXT, 40)}


def build(folder, name, tenth, repeat, seed):
    """Compiles a program with these constants into `folder`/app."""
    kind, source, _ = PROGRAMS[name]
    folder.mkdir(parents=True)
    for constant, value in (("TENTH", tenth), ("REPEAT", repeat), ("SEED", seed)):
        source = source.replace(constant, str(value))
    (folder / f"app.{kind}").write_text(source)
    compiler = ["gcc", "-O1", "-g", "app.c", "-o", "app"] if kind == "c" else ["rustc", "-O", "-g", "app.rs", "-o", "app"]
    subprocess.run(compiler, cwd=folder, check=True)


def bench(pprofdiff, base, new, into, arguments, command):
    """Returns the verdict of `bench`, whether `explain` names `tenth`, and its verdict."""
    words = [pprofdiff, "bench", "--base-dir", base, "--new-dir", new, "--into", into, *arguments]
    result = subprocess.run([*words, "--format", "json", "--", *command], capture_output=True, text=True, timeout=900)
    if result.returncode != 0:
        sys.exit(f"{words}: {result.stderr}")
    verdict = "change" if "pprofdiff: a change" in result.stderr else "undecided" if "undecided" in result.stderr else "none"
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
        subprocess.run(["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}", "./app"], cwd=folder / name, check=True, capture_output=True)
        text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", out], capture_output=True, text=True, check=True).stdout
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
            f"== {title}: {count} benches, {changes} say change, {found} name the function; explain says change in {wrong}, "
            f"and names it in {explained}; mean {seconds:.1f} s a bench, load average {os.getloadavg()[1]:.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pprofdiff", type=Path)
    for name, default in (("equal", 200), ("planted", 100), ("timed", 3), ("busy", 6), ("first", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.pprofdiff = options.pprofdiff.resolve()
    # The loops must end with this script.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The loops are polite to other users of the machine, but they never sleep.
    loops = [subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
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
