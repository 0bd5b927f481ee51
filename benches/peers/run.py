#!/usr/bin/env python3
"""Compares pprofdiff with its peers and prints Markdown: `benches/peers/run.py [--slow] [--write] [SIZE...]`.

It builds everything (Rust and the wheel in release mode, the Go peers), checks the answers, runs all programs in
turns, and reports medians, ratios and peak memory. A wrong answer stops the measurement. At size L only the totals are
checked. Needs Rust, Go and Linux. `--slow` adds the peers that take minutes and gigabytes at size L, except upb.
`--write` writes the result to benches/README.md.
"""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "benches" / "peers"
RELEASE = ROOT / "target" / "release"
DATA = ROOT / "target" / "bench-data"
VENV = ROOT / "target" / "bench-venv"
PYTHON = str(VENV / "bin" / "python")
OURS = str(RELEASE / "pprofdiff")
BUFFA_TARGET = ROOT / "target" / "buffa-peer"
BUFFA = str(BUFFA_TARGET / "release" / "buffa-peer")
README = ROOT / "benches" / "README.md"
# The packages for the Python measurements, besides the wheel.
PACKAGES = ["numpy==2.4.6", "polars==2.1.0", "protobuf==7.36.2", "pyarrow==26.0.1"]
# Number of runs of each task inside one process, and as a separate process.
RUNS_INSIDE = {"S": 51, "M": 15, "L": 3, "real": 101}
RUNS = {"S": 15, "M": 5, "L": 3}

Times = tuple[float, ...]
"""Wall seconds, CPU seconds and, for a process, peak MiB."""


def output(*args: str, cwd: Path = ROOT) -> str:
    """Returns the output of a command."""
    return subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def process(*args: str) -> Callable[[], Times]:
    """Returns a task that runs a command once."""

    def run() -> Times:
        start = time.perf_counter()
        child = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if status != 0:
            sys.exit(f"failed: {' '.join(args)}")
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

    return run


class Server:
    """A process that runs tasks on demand, and reports the time of each."""

    def __init__(self, *args: str) -> None:
        self.child = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def work(self, name: str) -> Callable[[], Times]:
        """Returns a task of this process."""

        def run() -> Times:
            print(name, file=self.child.stdin, flush=True)
            return tuple(float(word) for word in self.child.stdout.readline().split())

        return run

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.child.stdin.close()
        self.child.wait()


def take_turns(runs: int, works: dict[str, Callable[[], Times]], warm_up: bool = False) -> dict[str, Times]:
    """Runs tasks in turns, so that other load affects all of them, and returns their medians.

    With `warm_up` the first round does not count. The first large buffers of a process cause page faults that later
    ones do not; copying a column took seven times as long.
    """
    if warm_up:
        for work in works.values():
            work()
    times: dict[str, list[Times]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(work())
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rows, strict=True)) for name, rows in times.items()
    }
    # The whole measurement takes long and may be interrupted, so partial results are printed.
    print(json.dumps(medians), file=sys.stderr, flush=True)
    return medians


def pair(size: str, seed: int = 1) -> list[str]:
    """Returns the files of a pair."""
    if size == "real":
        return [str(ROOT / "tests" / "corpus" / f"rust-cpu.{side}.pb.gz") for side in ("base", "new")]
    return [str(DATA / f"{size}-{seed}.{side}.pb.gz") for side in ("base", "new")]


# Answers


def check_top(theirs: dict[str, tuple[int, int]], who: str, ours: dict) -> None:
    """Checks that the ten frames with the largest changes equal the peer's, exactly."""
    rows = {row["name"]: (row["flat_delta"], row["cum_delta"]) for row in ours["rows"]}
    if rows != theirs:
        sys.exit(f"{who} and pprofdiff disagree: {theirs} and {rows}")


def pprof_top(pprof: str, base: str, new: str, unit: str) -> dict[str, tuple[int, int]]:
    """Returns the ten largest changes according to pprof."""
    text = output(pprof, "-top", "-diff_base", base, f"-unit={unit}", "-nodecount=10", "-symbolize=none", new)
    row = re.compile(r"\s*(-?[\d.]+)\S*\s+\S+%\s+\S+%\s+(-?[\d.]+)\S*\s+\S+%\s+(.*?)(?: \((?:partial-)?inline\))?$")
    rows = [match for line in text.splitlines() if (match := row.match(line))]
    return {row[3]: (int(float(row[1])), int(float(row[2]))) for row in rows}


def check_written(pprof: str, ours: str, theirs: str) -> None:
    """Checks that pprof reads both written profiles alike."""
    reports = [output(pprof, "-top", "-nodecount=30", path) for path in (ours, theirs)]
    # Compares only the rows. The headers differ in the duration, which the Go library adds up.
    rows = [[line for line in report.splitlines() if re.match(r"\s*-?[\d.]+\S*\s+[\d.]+%", line)] for report in reports]
    if rows[0] != rows[1] or not rows[0]:
        sys.exit("the written profiles disagree")


# Measurements


def measure_inside(size: str) -> dict[str, Times]:
    """Measures tasks on one pair inside a process, with their lower bound. The process checks its answers first."""
    with Server(str(RELEASE / "inprocess"), size) as rust:
        names = ["inflate", "bare", "open", "top", "explain", "check", "page", "stacks", "written", "written_gzip"]
        return take_turns(RUNS_INSIDE[size], {name: rust.work(name) for name in names}, warm_up=True)


def measure_processes(size: str, slow: bool, gomerge: str, pprof: str, scratch: Path) -> tuple[dict[str, Times], dict]:
    """Measures ours and the peers as processes, and returns the sizes of the written files."""
    base, new = pair(size)
    out = {name: str(scratch / f"{name}.pb.gz") for name in ("ours", "go", "pprof", "our_sum", "go_sum")}
    # Removes the files of the previous size, so that they cannot count as answers.
    for path in out.values():
        Path(path).unlink(missing_ok=True)
    ours = json.loads(output(OURS, base, new, "--format", "json", "-n", "10"))
    obvious, upb = [str(RELEASE / "obvious"), base, new], [PYTHON, str(HERE / "upb.py"), base, new]
    buffa = [BUFFA, base, new]
    top, proto = (
        [pprof, "-top", "-diff_base", base, new],
        [pprof, "-proto", f"-output={out['pprof']}", "-diff_base", base, new],
    )
    commands = {
        "table": [OURS, base, new],
        "pprof_top": top,
        "obvious": obvious,
        "buffa": buffa,
        "upb": upb,
        "written": [OURS, base, new, "--format", "pprof", "-o", out["ours"]],
        "gomerge": [gomerge, base, new, out["go"]],
        "pprof_proto": proto,
        "merged": [OURS, "merge", base, new, "-o", out["our_sum"]],
        "gosum": [gomerge, "-sum", base, new, out["go_sum"]],
    }
    # At size L these take minutes and gigabytes, so they run only with --slow, once, and without a check. Even then,
    # upb does not run.
    slow_at_l = ("pprof_top", "obvious", "buffa", "upb", "pprof_proto")
    rare = {name: commands.pop(name) for name in slow_at_l} if size == "L" else {}
    if not rare:
        check_top(pprof_top(pprof, base, new, ours["unit"]), "pprof", ours)
        for who in (obvious, buffa, upb):
            check_top({name: (flat, cum) for name, flat, cum in json.loads(output(*who))}, who[0], ours)
        process(*commands["written"])()
        process(*commands["gomerge"])()
        check_written(pprof, out["ours"], out["go"])
        process(*commands["merged"])()
        process(*commands["gosum"])()
        check_written(pprof, out["our_sum"], out["go_sum"])
    medians = take_turns(RUNS[size], {name: process(*command) for name, command in commands.items()})
    if slow:
        medians |= take_turns(1, {name: process(*command) for name, command in rare.items() if name != "upb"})
    return medians, {name: Path(path).stat().st_size for name, path in out.items() if Path(path).exists()}


def measure_batch() -> dict[str, Times]:
    """Measures the 200 pairs of size S, in Rust and Python."""
    files = [path for seed in range(1, 201) for path in pair("S", seed)]
    with (
        Server(str(RELEASE / "inprocess"), "many") as rust,
        Server(PYTHON, str(HERE / "inprocess.py"), *files) as python,
    ):
        names = [f"{name}_{threads}" for threads in (1, 2) for name in ("inflate", "many", "tops")]
        works = {name: rust.work(name) for name in names}
        return take_turns(7, works | {f"python_{name}": python.work(name) for name in ("many", "tops")}, warm_up=True)


def measure_python(size: str) -> dict[str, Times]:
    """Measures diff(a, b).top(), and the same call in Rust."""
    base, new = pair(size)
    ours = json.loads(output(OURS, base, new, "--format", "json", "-n", "10"))
    script = "import pprofdiff, sys; print(pprofdiff.diff(*sys.argv[1:]).top(10).to_json())"
    if json.loads(output(PYTHON, "-c", script, base, new))["rows"] != ours["rows"]:
        sys.exit("the Python package and the command disagree")
    with (
        Server(str(RELEASE / "inprocess"), size) as rust,
        Server(PYTHON, str(HERE / "inprocess.py"), base, new) as python,
    ):
        return take_turns(RUNS_INSIDE[size], {"rust": rust.work("table"), "python": python.work("top")}, warm_up=True)


def measure_polars(size: str) -> dict[str, Times]:
    """Measures the conversion of all stacks to polars, and copying the columns once."""
    with Server(PYTHON, str(HERE / "inprocess.py"), *pair(size)) as python:
        return take_turns(9, {name: python.work(name) for name in ("copy", "polars")}, warm_up=True)


def measure_start() -> dict[str, Times]:
    """Measures the wheel's console script and the command on a tiny pair, and a Python process that does nothing."""
    tiny = [str(ROOT / "tests" / "corpus" / f"go-mutex.{side}.pb.gz") for side in ("base", "new")]
    works = {
        "python": process(PYTHON, "-c", "pass"),
        "script": process(str(VENV / "bin" / "pprofdiff"), *tiny),
        "binary": process(OURS, *tiny),
    }
    return take_turns(51, works)


# The report


def table(head: list[str], rows: list[list[str]]) -> str:
    """Formats a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def digits(value: float) -> str:
    """Formats a value with about three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


INSIDE = {
    "inflate": "lower bound: libdeflate inflates both files",
    "bare": "minimum: inflate, decode without checks, one addition per location",
    "open": "open both files (inflate, parse, check)",
    "top": "table of functions",
    "explain": "explain: causes and noise",
    "check": "check: one rule on every function",
    "page": "HTML page with all views",
    "stacks": "table of stacks, matched by name",
    "written": "diff as an uncompressed pprof file",
    "written_gzip": "diff as a gzip-compressed pprof file",
}
# The name of each process, and the reference among ours.
PROCESSES = {
    "table": ("`pprofdiff A B`", None),
    "pprof_top": ("`go tool pprof -top -diff_base`", "table"),
    "obvious": ("Rust: prost and a HashMap", "table"),
    "buffa": ("Rust: buffa (zero-copy views) and a HashMap", "table"),
    "upb": ("Python: protobuf (upb) and dictionaries", "table"),
    "written": ("`pprofdiff A B --format pprof`", None),
    "gomerge": ("Go library: Parse, Scale, Merge, Write", "written"),
    "pprof_proto": ("`go tool pprof -proto -diff_base`", "written"),
    "merged": ("`pprofdiff merge A B`", None),
    "gosum": ("Go library: Parse, Merge, Write", "merged"),
}


def inside_table(inside: dict[str, dict[str, Times]]) -> str:
    """Formats milliseconds and multiples of the lower bound."""

    def cell(size: str, name: str) -> str:
        wall, limit = inside[size][name][0], inside[size]["inflate"][0]
        return f"{digits(wall * 1000)} ms" + ("" if name == "inflate" else f" = {digits(wall / limit)}x")

    rows = [[text, *(cell(size, name) for size in inside)] for name, text in INSIDE.items()]
    return table(["in process, two threads", *inside], rows)


def process_table(processes: dict[str, dict[str, Times]]) -> str:
    """Formats wall time, CPU time, memory, and the ratio to ours."""

    def cell(medians: dict[str, Times], name: str, reference: str | None) -> str:
        if name not in medians:
            return "-"
        wall, cpu, peak = medians[name]
        text = f"{digits(wall)} / {digits(cpu)} / {peak:.0f}" if wall >= 1 else f"{wall:.4f} / {cpu:.4f} / {peak:.0f}"
        if reference:
            ours = medians[reference]
            text += f" ({digits(wall / ours[0])}x, {digits(cpu / ours[1])}x)"
        return text

    rows = [
        [text, *(cell(medians, name, reference) for medians in processes.values())]
        for name, (text, reference) in PROCESSES.items()
    ]
    return table(["wall s / CPU s / peak MiB (ratio to pprofdiff: wall, CPU)", *processes], rows)


def growth_table(shapes: dict, inside: dict, processes: dict) -> str:
    """Formats time per sample and per frame, and memory per sample, which should not grow with the profile."""
    rows = []
    for size in processes:
        samples = sum(shape["samples"] for shape in shapes[size])
        frames = sum(shape["samples"] * shape["depth"] for shape in shapes[size])
        megabytes = sum(shape["inflated"] + shape["gz"] for shape in shapes[size])
        row = [size, f"{samples:,}"]
        for name in ("top", "stacks", "written"):
            wall = inside[size][name][0]
            row += [f"{wall / samples * 1e9:.0f}", f"{wall / frames * 1e9:.1f}"]
        peak = processes[size]["table"][2] * 1.048576
        rows.append([*row, f"{peak * 1e6 / samples:.0f}", digits(peak / megabytes)])
    head = ["size", "samples on both sides"]
    head += [f"{name}: ns per {unit}" for name in ("table", "stacks", "written diff") for unit in ("sample", "frame")]
    return table([*head, "peak bytes per sample", "peak / (files + inflated data)"], rows)


def targets(
    shapes: dict, inside: dict, processes: dict, written: dict, many: dict, python: dict, polars: dict, start: dict
) -> str:
    """Formats the goals and the measured values."""
    rows = []

    def row(work: str, against: str, value: float, reach: float, aim: float, unit: str = "x", cpu: str = "") -> None:
        # Multiples of a lower bound should be small, and multiples of our own time large.
        met = [value >= goal if reach < aim else value <= goal for goal in (reach, aim)]
        word = "stretch goal" if met[1] else "goal" if met[0] else "**no**"
        rows.append([work, against, f"{digits(value)}{unit}", cpu, f"{reach:g}", f"{aim:g}", word])

    def ratio(work: str, against: str, times: Times, reference: Times, reach: float, aim: float) -> None:
        row(work, against, times[0] / reference[0], reach, aim, cpu=f"{digits(times[1] / reference[1])}x")

    for size in processes:
        works, limit = inside[size], inside[size]["inflate"]
        reach = 2.3 if size == "L" else 2.0
        ratio(f"table of functions, {size}", "inflating both files", works["top"], limit, reach, 1.6)
        ratio(f"table of stacks, {size}", "inflating both files", works["stacks"], limit, 3, 2.5)
        most = {"S": 50, "M": 300, "L": 1000}[size]
        beyond = (works["explain"][0] - works["top"][0]) * 1000
        row(f"explain, {size}", "on top of the table of functions", beyond, most, most, unit=" ms")
    for size, reach, aim in (("S", 20, 30), ("M", 100, 150), ("L", 300, 800)):
        if "pprof_top" in (works := processes.get(size, {})):
            ratio(f"`pprofdiff A B`, {size}", "`go tool pprof -top`", works["pprof_top"], works["table"], reach, aim)
    for size in (size for size in processes if size != "S"):
        works = processes[size]
        gzip = works["gomerge"][1] / works["written"][1]
        row(f"write the diff as gzip, {size}", "Go library, by CPU time", gzip, 8, 15)
        row(f"size of that file, {size}", "the Go library's file", written[size]["ours"] / written[size]["go"], 1, 1)
        cpu = works["gosum"][1] / works["merged"][1]
        row(f"write the sum as gzip, {size}", "Go library, by CPU time", cpu, 8, 15)
        sums = written[size]["our_sum"] / written[size]["go_sum"]
        row(f"size of that sum, {size}", "the Go library's file", sums, 1, 1)
    for name, text in (("many", "`batch`"), ("tops", "`batch` with tables")):
        ratio(f"{text}, one thread", "inflating all files", many[f"{name}_1"], many["inflate_1"], 1.8, 1.6)
        ratio(f"{text}, two threads", "inflating all files", many[f"{name}_2"], many["inflate_2"], 1.8, 1.6)
        row(f"{text}, two threads", "one thread", many[f"{name}_1"][0] / many[f"{name}_2"][0], 1.9, 2)
    for size, works in python.items():
        ratio(f"Python `diff(a, b).top()`, {size}", "the same call in Rust", works["python"], works["rust"], 1.05, 1.02)
    for size, works in polars.items():
        ratio(f"table of stacks to polars, {size}", "one copy of the columns", works["polars"], works["copy"], 1.5, 1.1)
    more = (start["script"][0] - start["python"][0]) * 1000
    row("console script, tiny pair", "`python -c pass`", more, 15, 10, " ms more")
    if "L" in processes:
        megabytes = sum(shape["inflated"] + shape["gz"] for shape in shapes["L"])
        row("peak memory, L", "files + inflated data", processes["L"]["table"][2] * 1.048576 / megabytes, 1.25, 1.1)
    return table(["operation", "compared with", "measured", "by CPU time", "goal", "stretch goal", "met"], rows)


def machine(load: float) -> str:
    """Describes the machine and the versions."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    versions = f"{output('rustc', '-V').split()[1]}, Go {output('go', 'version').split()[2].removeprefix('go')}"
    return (
        f"{datetime.date.today()}, {os.cpu_count()} cores ({cpu}), {platform.system()}, Rust {versions}, "
        f"Python {platform.python_version()}; medians. Load average {load:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after; above a few tenths, wall times on two threads are unreliable."
    )


def shapes_of(generated: str) -> dict[str, list[dict[str, float]]]:
    """Parses the content of each pair's files from the generator's table."""
    shapes: dict[str, list[dict[str, float]]] = {}
    for line in generated.splitlines()[2:]:
        name, samples, _, _, depth, inflated, gz = (cell.strip() for cell in line.strip("|").split("|"))
        shape = {"samples": int(samples), "depth": float(depth), "inflated": float(inflated), "gz": float(gz)}
        shapes.setdefault(name.split("-")[0], []).append(shape)
    return {size: both[:2] for size, both in shapes.items()}


def build(scratch: Path) -> tuple[str, str]:
    """Builds everything. Returns the paths of the programs gomerge and pprof."""
    output("cargo", "build", "--release", "--locked", "-p", "pprofdiff-cli", "-p", "pprofdiff-benches")
    # The peer has a workspace of its own, so that only this measurement compiles buffa.
    target = ["--target-dir", str(BUFFA_TARGET)]
    output("cargo", "build", "--release", "--locked", *target, cwd=HERE / "buffa")
    output("go", "build", "-o", str(scratch / "gomerge"), ".", cwd=HERE / "gomerge")
    if not VENV.exists():
        # Upgrades pip: the scripts of the version in Python 3.11 import `re`, which takes longer than our command.
        venv.create(VENV, with_pip=True, upgrade_deps=True)
    pip = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    output(*pip, *PACKAGES)
    output(*pip, "--no-deps", "--force-reinstall", str(ROOT))
    return str(scratch / "gomerge"), output("go", "tool", "-n", "pprof").strip()


def main() -> None:
    """Measures, prints the report, and writes it on request."""
    flags = {arg for arg in sys.argv[1:] if arg.startswith("-")}
    if flags - {"--slow", "--write"}:
        sys.exit(__doc__)
    sizes = [arg for arg in sys.argv[1:] if arg not in flags] or ["S", "M", "L"]

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        say("building")
        gomerge, pprof = build(scratch)
        shapes = shapes_of(output(str(RELEASE / "generate")))
        say("Python and many pairs")
        start, many = measure_start(), measure_batch()
        python = {size: measure_python(size) for size in sizes if size != "L"}
        polars = {size: measure_polars(size) for size in sizes if size == "L"}
        inside, processes, written = {}, {}, {}
        for size in sizes:
            say(f"size {size}")
            inside[size] = measure_inside(size)
            processes[size], written[size] = measure_processes(size, "--slow" in flags, gomerge, pprof, scratch)
        inside["real"] = measure_inside("real")
    ms = {name: f"{digits(times[0] * 1000)} ms" for name, times in (start | many).items()}
    report = "\n".join(
        [
            machine(load) + "\n",
            targets(shapes, inside, processes, written, many, python, polars, start),
            inside_table(inside),
            process_table(processes),
            f"Sizes of the written files in bytes: {json.dumps(written)}.\n",
            "Cost per sample and per frame, by size:\n",
            growth_table(shapes, inside, processes),
            table(
                ["200 pairs of size S", "one thread", "two threads", "Python, all cores"],
                [
                    ["lower bound: libdeflate inflates all files", ms["inflate_1"], ms["inflate_2"], ""],
                    ["`batch`", ms["many_1"], ms["many_2"], ms["python_many"]],
                    ["`batch` with tables of functions", ms["tops_1"], ms["tops_2"], ms["python_tops"]],
                ],
            ),
            f"Start-up, on a tiny pair: console script of the Python package {ms['script']}, Rust binary "
            f"{ms['binary']}, `python -c pass` {ms['python']}.",
        ]
    )
    print(report)
    if "--write" in flags:
        before, begin, rest = README.read_text().partition("<!-- measured -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        README.write_text(f"{before}{begin}\n{report}\n\n{end}{after}")


main()
