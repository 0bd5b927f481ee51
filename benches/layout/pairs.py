#!/usr/bin/env python3
"""Measures whether pprofdiff tells changed code from a changed layout: 40 pairs of equal sources whose functions are in
another order, and 40 pairs in which one function was edited too.

The programs are in programs/. The linkers place functions in a random order: Go's with -randlayout, and lld with
--shuffle-sections. lld comes from the Rust toolchain. Each profile is synthetic, with one sample at the start of every
function of the program, so nothing depends on time. The verdict is the column `code` of `pprofdiff top`.

GNU objdump, or `go tool objdump` for Go, judges whether the instructions of a function differ. An edit of data counts
as a difference if the program prints another result. An edit without any difference is an error of this script.

    benches/layout/pairs.py [--first N] [--keep DIR] [--verbose] path/to/pprofdiff

The script prints the tables in docs/layout.md. It exits with 1 if a function with other instructions is `identical` or
`relocated`, or if less than 95 % of the verdicts are right.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
PAIRS = 40
SAME = ("identical", "relocated")
DIFFERENT = ("changed", "inlined differently")


@dataclass(frozen=True)
class Edit:
    """A change of the source that changes one function."""

    kind: str
    function: str
    old: str
    new: str


def swapped(kind: str, function: str, source: str, one: str, two: str) -> Edit:
    """Return an edit that swaps two parts of `source`."""
    return Edit(kind, function, source, source.replace(one, "\0").replace(two, one).replace("\0", two))


# The nth pair in a language has the nth edit.
C_EDITS = [
    Edit("a constant", "hash", "0x100000001b3u", "0x100000001b5u"),
    Edit("a branch", "find", "values[middle] < wanted", "values[middle] <= wanted"),
    Edit("a table", "interpret", "{1, 2, 4, 8,", "{1, 2, 4, 9,"),
    Edit("a floating-point constant", "multiply", "* 1.5", "* 1.75"),
    Edit("a text", "report", "%s: %ld", "%s= %ld"),
    Edit("a text in a table", "day", '"tuesday"', '"tuesdey"'),
    Edit("another callee", "fold", "x = left(x) ^", "x = right(x) ^"),
    Edit("the table of a variable", "limit", "250, 500", "250, 501"),
    Edit("a table", "checksum", "0xa00ae278", "0xa00ae279"),
    Edit("swapped arguments", "compare", "(values[i], values[i - 1])", "(values[i - 1], values[i])"),
    Edit("a callee is not inlined", "score", "static inline int weigh", "KEEP static int weigh"),
    Edit("a constant", "words", "length >= 3", "length >= 4"),
    swapped("the order of a switch", "interpret", "case 'd': x = x / 3; break;\n        case 'e'", "'d'", "'e'"),
    Edit("a branch", "sort", "values[j - 1] > value", "values[j - 1] < value"),
    Edit("registers, by a new parameter", "parse", "int64_t parse(const char", "int64_t parse(int unused, const char"),
]
GO_EDITS = [
    Edit("a constant", "hash", "0x100000001b3", "0x100000001b5"),
    Edit("a text", "day", '"tuesday"', '"tuesdey"'),
    Edit("a branch", "find", "values[middle] < wanted", "values[middle] <= wanted"),
    Edit("a floating-point constant", "multiply", "* 1.7", "* 1.9"),
    Edit("a callee is not inlined", "score", "func weigh(", "//go:noinline\nfunc weigh("),
    Edit("another callee", "fold", "x = left(x) ^", "x = right(x) ^"),
    Edit("a table", "weight", "9, 7, 9, 3}", "9, 7, 9, 4}"),
    Edit("swapped arguments", "compare", "difference(values[i], values[i-1])", "difference(values[i-1], values[i])"),
    Edit("the table of a variable", "limit", "250, 500", "250, 501"),
    Edit("the order of a switch", "day", 'case 2:\n\t\treturn "wed', 'case 3:\n\t\treturn "wed'),
    Edit("a constant", "words", "length >= 3", "length >= 4"),
    Edit("a text", "report", "%s: %v", "%s= %v"),
    Edit("another type", "shapes", "append(all, square{float64(v)})", "append(all, circle{float64(v)})"),
    Edit("registers, by a new parameter", "parse", "func parse(text", "func parse(unused int, text"),
    Edit("a branch", "insertion", "values[j-1] > value", "values[j-1] < value"),
]
RUST_EDITS = [
    Edit("a table", "checksum", "0xa00a_e278", "0xa00a_e279"),
    Edit("a text", "day", '"tuesday"', '"tuesdey"'),
    Edit("a constant", "count", "+= 2", "+= 3"),
    Edit("a floating-point constant", "multiply", "* 1.7", "* 1.9"),
    Edit("another callee", "fold", "left(x) ^ v", "right(x) ^ v"),
    Edit("a callee is not inlined", "score", "#[inline(always)]\nfn weigh", "#[inline(never)]\nfn weigh"),
    Edit("another type", "shapes", "Box::new(Square(v", "Box::new(Circle(v"),
    swapped("the order of a switch", "interpret", "b'd' => x /= 3,\n            b'e'", "'d'", "'e'"),
    Edit("a text", "report", '"{name}: {value}"', '"{name}= {value}"'),
    Edit(
        "registers, by a new parameter",
        "parse",
        "fn parse(text: &str) -> i64 {\n    let (mut sum, mut value, mut sign) = (0,",
        "fn parse(unused: i64, text: &str) -> i64 {\n    let (mut sum, mut value, mut sign) = (unused,",
    ),
]
# Edits of the calls that belong to an edit of the callee's parameters.
CALLS = {"parse(text)": {"c": "parse(0, text)", "go": "parse(0, text)", "rs": "parse(black_box(0), text)"}}


@cache
def linker() -> list[str]:
    """Return the options of gcc that select lld, from the PATH or from the Rust toolchain."""
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    found = sorted(Path(root).glob("lib/rustlib/*/bin/gcc-ld/ld.lld"))
    return ["-fuse-ld=lld", *(f"-B{path.parent}" for path in found[:1])]


@dataclass(frozen=True)
class Build:
    """A way to build one of the programs."""

    language: str
    name: str
    options: tuple[str, ...]
    goarch: str = "amd64"

    @property
    def edits(self) -> list[Edit]:
        """The edits of the program in this language."""
        return {"c": C_EDITS, "go": GO_EDITS, "rs": RUST_EDITS}[self.language]

    def make(self, folder: Path, source: str, seed: int) -> Path:
        """Write the source and link it with functions in the order of a seed."""
        folder.mkdir(parents=True, exist_ok=True)
        file, program = folder / f"tool.{self.language}", folder / "tool"
        if program.exists():
            return program
        file.write_text(source)
        shuffle = f"--shuffle-sections=.text*={seed}"
        match self.language:
            case "c":
                sections = ["-g", "-ffunction-sections", *linker(), f"-Wl,{shuffle}"]
                words = ["gcc", *self.options, *sections, "-o", "tool", file.name]
            case "go":
                words = ["go", "build", f"-ldflags=-randlayout={seed}", *self.options, "-o", "tool", file.name]
            case _:
                link = [f"-Clink-arg={word}" for word in [*linker(), f"-Wl,{shuffle}"]]
                words = ["rustc", "--edition=2021", "-g", *self.options, *link, "-o", "tool", file.name]
        # Equal folders in debug information: only the layout differs between builds of one source.
        run(words, folder, {"GOARCH": self.goarch, "GOOS": "linux", "CGO_ENABLED": "0"})
        return program


BUILDS = [
    Build("c", "C, gcc -O2", ("-O2",)),
    Build("c", "C, gcc -O3 -fno-plt", ("-O3", "-fno-plt")),
    Build("c", "C, gcc -Os, fixed address", ("-Os", "-no-pie", "-fno-pie")),
    Build("go", "Go, amd64", ()),
    Build("go", "Go, arm64", (), "arm64"),
    Build("go", "Go, amd64, PIE", ("-buildmode=pie",)),
    Build("rs", "Rust, opt-level 3", ("-Copt-level=3",)),
    Build("rs", "Rust, opt-level 2, v0 names", ("-Copt-level=2", "-Csymbol-mangling-version=v0")),
]


def run(words: list[str], folder: Path, variables: dict[str, str] | None = None) -> str:
    """Run a command, and return its output."""
    done = subprocess.run(
        words, cwd=folder, env=os.environ | (variables or {}), capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} fails: {done.stderr}")
    return done.stdout


def functions(build: Build, program: Path) -> dict[str, int]:
    """Return the addresses of the program's own functions, by their names without a module."""
    source = (PROGRAMS / f"tool.{build.language}").read_text()
    pattern = {
        "c": r"^(?:KEEP )?(?:static )?(?:inline )?(?:const )?[a-z_0-9]+ \*?([a-z]+)\(",
        "go": r"^func ([a-z]+)\(",
        "rs": r"^fn ([a-z]+)\(",
    }
    names = set(re.findall(pattern[build.language], source, re.MULTILINE))
    found = {}
    for line in run(["nm", "--defined-only", str(program)], program.parent).splitlines():
        address, kind, symbol = line.split(" ", 2)
        if kind not in "tT":
            continue
        name = symbol
        if build.language == "go":
            name = symbol.removeprefix("main.")
        elif build.language == "rs":
            mangled = re.search(r"4tool(\d+)([a-z]+)", symbol)
            name = mangled[2][: int(mangled[1])] if mangled else ""
            # Only the function itself, not what it contains.
            if symbol.startswith("_ZN") and not re.fullmatch(r"_ZN4tool\d+[a-z]+17h[0-9a-f]{16}E", symbol):
                continue
            if symbol.startswith("_R") and not re.fullmatch(r"_RNvCs[0-9a-zA-Z_]*_4tool\d+[a-z]+", symbol):
                continue
        if name in names and name not in found:
            found[name] = int(address, 16)
    return found


def varint(number: int) -> bytes:
    """Encode a number for protobuf."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def field(number: int, value: int | bytes) -> bytes:
    """Encode a field for protobuf."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(program: Path, addresses: list[int]) -> Path:
    """Write a profile of one sample per address, which the program's symbols will name."""
    texts = ["", "samples", "count", str(program)]
    kind = field(1, 1) + field(2, 2)
    parts = [field(1, kind)]
    parts += [field(2, field(1, varint(i)) + field(2, varint(1))) for i in range(1, len(addresses) + 1)]
    # The mapping of the code, as Linux loads it.
    headers = run(["readelf", "-lhW", str(program)], program.parent)
    bias = 0 if "EXEC (" in headers else 0x555555554000
    load = next(line.split() for line in headers.splitlines() if re.match(r"\s+LOAD .* R E ", line))
    offset, start, size = (int(load[i], 16) for i in (1, 2, 5))
    page = start % 4096
    ends = field(2, bias + start - page) + field(3, bias + start + size)
    parts += [field(3, field(1, 1) + ends + field(4, offset - page) + field(5, 3))]
    parts += [field(4, field(1, i) + field(2, 1) + field(3, bias + at)) for i, at in enumerate(addresses, 1)]
    parts += [field(6, text.encode()) for text in texts]
    file = program.with_suffix(".pb.gz")
    file.write_bytes(gzip.compress(b"".join(parts)))
    return file


def listing(build: Build, program: Path) -> dict[str, list[str]]:
    """Return the instructions of each function as a disassembler shows them, without addresses of code and data."""
    texts: dict[str, list[str]] = {}
    if build.language == "go":
        function, pages = "", set()
        for line in run(["go", "tool", "objdump", "-s", r"^main\.", str(program)], program.parent).splitlines():
            if line.startswith("TEXT "):
                function = line.split()[1].split("(")[0].removeprefix("main.")
                texts[function], pages = [], set()
            elif line.strip():
                text = re.split(r"\t+", line.strip())[-1].strip()
                # Jumps name an address. The symbols of data are not always shown.
                text = re.sub(r"^(J\w+|B\w*|CBN?ZW?|TBN?Z)\b(.*?)\s*(0x[0-9a-f]+|-?\d+\(PC\))$", r"\1\2", text)
                if not text.startswith("CALL"):
                    text = re.sub(r"[^ ,]+\((IP|SB)\)", "(IP)", text)
                if build.goarch == "arm64":
                    text = re.sub(r"^ADRP \S+,", "ADRP ,", text)
                    if page := re.match(r"ADRP , (R\d+)", text):
                        pages.add(page[1])
                    # The offset in a page, of the first use of its address.
                    for register in re.findall(r"R\d+", text) if not page else ():
                        if register in pages:
                            text = re.sub(r"\$?-?\d+(, R\d+, |\(R\d+\))", r"\1", text)
                            pages.discard(register)
                if not re.match(r"(NOP|INT \$0x3|XCHG AX, AX|\?)", text):
                    texts[function].append(text)
        return texts
    function = ""
    words = ["objdump", "-d", "-w", "--no-show-raw-insn", "-j", ".text", str(program)]
    for line in run(words, program.parent).splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            function = head[1]
            if build.language == "rs":
                start, end = r"(?:_ZN4tool|_RNvCs[0-9a-zA-Z_]*_4tool)", r"(?:17h[0-9a-f]{16}E)?"
                own = re.fullmatch(rf"{start}(\d+)([a-z]+?){end}", function)
                # The function main of C calls that of Rust.
                function = own[2] if own else f"{function} of another crate"
        elif ":\t" in line:
            text = line.split(":\t", 1)[1].strip()
            text = re.sub(r"\b[0-9a-f]+ (<[^>]+>)", r"\1", text)
            # Parts of names that compilers derive from the build.
            text = re.sub(r"17h[0-9a-f]{16}E|\.llvm\.\d+", "", text)
            text = re.sub(r"-?0x[0-9a-f]+\(%rip\).*", "(%rip)", text)
            if "fixed" in build.name:
                text = re.sub(r"0x[23][0-9a-f]{5}\b", "ADDRESS", text)
            if not re.match(r"(nop|int3|xchg +%ax,%ax|data16|cs nop)", text):
                texts.setdefault(function, []).append(text)
    return texts


def verdicts(pprofdiff: str, programs: list[Path], addresses: list[dict[str, int]]) -> dict[str, str]:
    """Return the column `code` of pprofdiff for each of the program's functions."""
    base, new = (profile(program, [*at.values()]) for program, at in zip(programs, addresses, strict=True))
    binaries = ["--base-binary", str(programs[0]), "--new-binary", str(programs[1])]
    words = [pprofdiff, "top", str(base), str(new), *binaries, "--format", "json", "-n", "0"]
    table = json.loads(run(words, base.parent))
    found = {}
    for row in table["rows"]:
        name = re.split(r"\.|::", row["name"])[-1].removesuffix("()")
        if name in addresses[0] or name in addresses[1]:
            found[name] = row.get("code") or "not compared"
    return found


def edited(build: Build, edit: Edit) -> str:
    """Return the source with an edit."""
    source = (PROGRAMS / f"tool.{build.language}").read_text()
    assert edit.old in source, f"{build.name}: {edit.old} is not in the source"
    if edit.old == 'case 2:\n\t\treturn "wed':
        source = source.replace('case 3:\n\t\treturn "thu', 'case 2:\n\t\treturn "thu')
    source = source.replace(edit.old, edit.new)
    if "unused" in edit.new:
        for call, texts in CALLS.items():
            source = source.replace(call, texts[build.language])
    return source


def main() -> int:
    """Build and compare all pairs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keep", type=Path, help="folder for the programs; programs in it are used again")
    parser.add_argument("--verbose", action="store_true", help="print each pair")
    parser.add_argument("--first", type=int, default=0, help="combine the edits with other builds and other orders")
    parser.add_argument("pprofdiff", type=Path)
    args = parser.parse_args()
    pprofdiff = str(args.pprofdiff.resolve())
    with tempfile.TemporaryDirectory(prefix="layout-") as temporary:
        return compare_all(pprofdiff, args.keep or Path(temporary), args.first, args.verbose)


def compare_all(pprofdiff: str, folder: Path, first: int, is_verbose: bool) -> int:
    """Print the tables, and return the exit code."""
    matrix: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    by_kind: dict[str, Counter[str]] = {}
    judged, wrong, unjudged = Counter(), [], []
    for is_edited in (False, True):
        for number in range(PAIRS):
            build = BUILDS[number % len(BUILDS)]
            earlier = sum(BUILDS[i % len(BUILDS)].language == build.language for i in range(number))
            edit = build.edits[(earlier + first) % len(build.edits)]
            source = (PROGRAMS / f"tool.{build.language}").read_text()
            sources = [source, edited(build, edit) if is_edited else source]
            # Debug information contains the folder, so both builds of a pair are made in folders of the same length.
            seeds = [100 + 2 * number + 1000 * first, 101 + 2 * number + 1000 * first]
            place = folder / f"{'edited' if is_edited else 'equal'}-{number}"
            sides = zip("bn", sources, seeds, strict=True)
            programs = [build.make(place / side, text, seed) for side, text, seed in sides]
            addresses = [functions(build, program) for program in programs]
            code = verdicts(pprofdiff, programs, addresses)
            texts = [listing(build, program) for program in programs]
            can_run = build.goarch == "amd64"
            outputs = [run([str(program)], program.parent) for program in programs] if can_run else ["", ""]
            for name, verdict in code.items():
                old, new = (text.get(name) for text in texts)
                if not old or not new:
                    unjudged.append(name)
                    continue
                is_same_text = old == new
                judged[(is_same_text, verdict)] += 1
                if not is_same_text and verdict in SAME:
                    wrong.append(f"{place.name} ({build.name}): {name} is {verdict}, but its instructions differ")
                if is_same_text and not is_edited and verdict in DIFFERENT:
                    wrong.append(f"{place.name} ({build.name}): {name} is {verdict}, but its instructions are the same")
            verdict = code.get(edit.function, "not found")
            if is_edited:
                by_kind.setdefault(edit.kind, Counter())[verdict] += 1
                differs = texts[0].get(edit.function) != texts[1].get(edit.function) or outputs[0] != outputs[1]
                is_data = edit.kind.startswith(("a text", "a table", "the table", "a floating"))
                if not differs and not (is_data and not can_run):
                    edited_function = f"{place.name}: {build.name}: {edit.function}"
                    raise SystemExit(f"{edited_function}: {edit.kind} changes nothing")
                if verdict in SAME:
                    wrong.append(f"{place.name} ({build.name}): {edit.function} ({edit.kind}) is {verdict}")
            matrix[is_edited][verdict] += 1
            if is_verbose:
                kind = edit.kind if is_edited else ""
                print(place.name, build.name, edit.function, kind, verdict, sep="\t", flush=True)
                print("\t", dict(Counter(code.values())), {n: v for n, v in code.items() if v not in SAME}, flush=True)
    right = sum(matrix[False][v] for v in SAME) + sum(matrix[True][v] for v in DIFFERENT)
    columns = [*SAME, *DIFFERENT, "unknown"]
    others = {v for counts in matrix.values() for v in counts} - set(columns)
    columns += sorted(others)
    print("| pairs | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for is_edited, title in ((False, "40 of equal sources"), (True, "40 with an edited function")):
        print(f"| {title} | " + " | ".join(str(matrix[is_edited][v]) for v in columns) + " |")
    print(f"\nright: {right} of {2 * PAIRS} ({100 * right / (2 * PAIRS):.1f} %)\n")
    print("| edit | pairs | " + " | ".join(columns) + " |\n|---|---:|" + "---:|" * len(columns))
    for kind, counts in sorted(by_kind.items()):
        print(f"| {kind} | {counts.total()} | " + " | ".join(str(counts[v]) for v in columns) + " |")
    print("\n| instructions, by the disassembler | functions | " + " | ".join(columns) + " |")
    print("|---|---:|" + "---:|" * len(columns))
    for is_same, title in ((True, "same"), (False, "different")):
        counts = [judged[(is_same, v)] for v in columns]
        print(f"| {title} | {sum(counts)} | " + " | ".join(str(n) for n in counts) + " |")
    print(f"\n{sum(judged.values())} functions were judged, {len(unjudged)} not: {dict(Counter(unjudged))}")
    for line in wrong:
        print("wrong:", line)
    return int(bool(wrong) or right < 0.95 * 2 * PAIRS)


if __name__ == "__main__":
    sys.exit(main())
