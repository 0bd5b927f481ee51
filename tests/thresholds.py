#!/usr/bin/env python3
"""Measures which answers of `explain` each threshold decides.

    tests/thresholds.py pins                            updates tests/thresholds/pins.csv
    tests/thresholds.py measure QUESTIONS --folder DIR  the same for other pairs, as a table on stdout
    tests/thresholds.py try QUESTIONS NAME=VALUE...     the answers that these values change
    tests/thresholds.py answers QUESTIONS               the answers of this tree, as text and JSON

QUESTIONS is a file with lines like those in tests/corpus/explained.txt that begin with `$ explain`. Their files are
relative to --folder, by default tests/corpus.

The script copies the crates to --work, turns each constant of crates/pprofdiff-explain/src/thresholds.rs into a
variable, and compiles tests/thresholds/probe.rs with this copy. The probe explains every pair with every threshold
lower and higher (see `levels`), and compares text and JSON with the unchanged answer. A compilation from nothing takes
minutes, so no test runs this script. CARGO_TARGET_DIR shares dependencies with other builds.

pins.csv has the number of answers whose text changes. Its last column is written by hand: other tests that pin the
threshold, `guard` for rare inputs that no recording has, or `no test`.
"""
import argparse
import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PINS = ROOT / "tests/thresholds/pins.csv"
EXPLAIN = "crates/pprofdiff-explain/src"
CONSTANT = re.compile(r"((?:^///[^\n]*\n)+)?^pub\(super\) const (\w+): ([^=]+) = ([^;]+);", re.M)
Threshold = collections.namedtuple("Threshold", "name value unit whole")


def thresholds(text):
    """All numbers of thresholds.rs. Structs and arrays have one row for each number."""
    found = []
    for comment, name, kind, value in CONSTANT.findall(text):
        unit = re.search(r"Unit: ([^.]+)\.", comment.replace("\n/// ", " "))
        unit = unit.group(1) if unit else ""
        if kind == "Prior":
            for field, number in re.findall(r"(\w+): ([\d.e-]+)", value):
                found.append(Threshold(f"{name}.{field}", float(number), "natural logarithm" if field == "floor" else "frames", False))
        elif kind.startswith("["):
            for i, number in enumerate(re.findall(r"[\d.]+", value)):
                found.append(Threshold(f"{name}.{i}", float(number), unit, False))
        else:
            found.append(Threshold(name, float(value), unit, kind == "usize"))
    return found


def levels(t):
    """A lower and a higher value. Counts up to five change by one. The odds of fractions are halved and doubled, and
    so is the distance of a factor just above one. All other numbers are halved and doubled."""
    if t.whole and t.value <= 5:
        return t.value - 1, t.value + 1
    if t.whole:
        return t.value // 2, t.value * 2
    if 1e-3 <= t.value < 1 and re.match("fraction|probability|factor", t.unit):
        odds = t.value / (1 - t.value)
        return odds / 2 / (1 + odds / 2), odds * 2 / (1 + odds * 2)
    if 1 < t.value < 1.5 and t.unit == "factor":
        return 1 + (t.value - 1) / 2, 1 + (t.value - 1) * 2
    return t.value / 2, t.value * 2


def as_variables(text):
    """Turns thresholds.rs into a module whose constants are functions of the same names."""
    names, fixed = [t.name for t in thresholds(text)], []
    place = {name: i for i, name in enumerate(names)}

    def function(match):
        comment, name, kind, value = match.groups()
        fixed.append(f"pub const {name}: {kind} = {value};")
        if kind == "Prior":
            fields = re.findall(r"(\w+): ([\d.e-]+)", value)
            body = "Prior { %s }" % ", ".join(f"{f}: read({place[f'{name}.{f}']}, {v})" for f, v in fields)
        elif kind.startswith("["):
            numbers = re.findall(r"[\d.]+", value)
            body = "[%s]" % ", ".join(f"read({place[f'{name}.{i}']}, {v})" for i, v in enumerate(numbers))
        elif kind == "usize":
            body = f"read({place[name]}, {value} as f64) as usize"
        else:
            body = f"read({place[name]}, {value})"
        return f"pub(super) fn {name}() -> {kind} {{ {body} }}"

    text = CONSTANT.sub(function, text)
    return text + """
/// The constants.
pub(super) mod fixed {
    use super::Prior;
    %s
}
/// The names of all numbers.
pub static NAMES: [&str; %d] = [%s];
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
static VALUES: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(u64::MAX) }; NAMES.len()];
static READ: [AtomicBool; NAMES.len()] = [const { AtomicBool::new(false) }; NAMES.len()];
static FROM_ENVIRONMENT: std::sync::Once = std::sync::Once::new();

fn read(place: usize, unchanged: f64) -> f64 {
    FROM_ENVIRONMENT.call_once(|| {
        let text = std::env::var("PPROFDIFF_THRESHOLD").unwrap_or_default();
        for (name, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
            set(NAMES.iter().position(|n| *n == name).unwrap(), Some(value.parse().unwrap()));
        }
    });
    READ[place].store(true, Relaxed);
    match VALUES[place].load(Relaxed) {
        u64::MAX => unchanged,
        bits => f64::from_bits(bits),
    }
}
/// Changes or restores a number.
pub fn set(place: usize, value: Option<f64>) {
    VALUES[place].store(value.map_or(u64::MAX, f64::to_bits), Relaxed);
}
/// Forgets which numbers were read.
pub fn forget_reads() {
    READ.iter().for_each(|read| read.store(false, Relaxed));
}
/// Returns which numbers were read.
pub fn reads() -> Vec<bool> {
    READ.iter().map(|read| read.load(Relaxed)).collect()
}
""" % ("\n    ".join(fixed), len(names), ", ".join(f'"{n}"' for n in names))


def copy(work):
    """Copies the tree to `work`, with variables instead of constants."""
    def changed(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_bytes()
        if source.suffix == ".rs" and source.is_relative_to(ROOT / EXPLAIN):
            text = rewritten(source, text.decode()).encode()
        if source == ROOT / "Cargo.toml":
            text = text.decode().replace("members = [", 'members = [\n    "probe",', 1).encode()
        # Files that are equal keep their times, so Cargo compiles only the changes of a second run.
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)

    constants = (ROOT / EXPLAIN / "thresholds.rs").read_text()
    names = sorted({t.name.split(".")[0] for t in thresholds(constants)})
    name = re.compile(r"\b(%s)\b(?!\()" % "|".join(names))

    def rewritten(source, text):
        if source.name == "thresholds.rs":
            return as_variables(text)
        text = text.replace("\nmod thresholds;", "\n#[allow(missing_docs, non_snake_case, dead_code, unused)]\npub mod thresholds;")
        parts = re.split(r"((?:^|\n)\s*use [^;]*;)", text)
        for i in range(0, len(parts), 2):
            lines = parts[i].split("\n")
            for j, line in enumerate(lines):
                code, comment, rest = line.partition("//")
                is_constant = re.match(r"\s*(pub )?(const|static) ", code)
                code = name.sub(r"crate::thresholds::fixed::\1" if is_constant else r"\1()", code)
                lines[j] = code + comment + rest
            parts[i] = "\n".join(lines)
        return "".join(parts)

    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in listed.splitlines():
        source = ROOT / file
        if source.is_file() and not file.startswith("tests/corpus/"):
            changed(source, work / file)
    corpus = work / "tests/corpus"
    if not corpus.exists():
        corpus.symlink_to(ROOT / "tests/corpus")
    probe = work / "probe"
    (probe / "src").mkdir(parents=True, exist_ok=True)
    changed(ROOT / "tests/thresholds/probe.rs", probe / "src/main.rs")
    changed(ROOT / "tests/explained.rs", probe / "explained.rs")
    manifest = '[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n'
    manifest += "".join(f'{crate} = {{ workspace = true, features = ["default"] }}\n' for crate in ("pprofdiff", "pprofdiff-explain", "pprofdiff-report"))
    (probe / "Cargo.toml").write_text(manifest)


def compiled(work, *arguments):
    """Runs Cargo in the copy, and returns the paths of the programs."""
    command = ["cargo", *arguments, "--offline", "--quiet", "--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stderr}\nthe copy does not compile")
    return re.findall(r'"executable":"([^"]+)"', done.stdout)


def questions_of(file):
    return [line for line in pathlib.Path(file).read_text().splitlines() if line.startswith("$ explain ")]


def probe(program, folder, questions, settings, jobs):
    """Returns, for each question, the settings that change its answer (number -> text, json or panic), and the
    places of the thresholds that it reads."""
    answers = {}
    with tempfile.TemporaryDirectory() as temporary:
        # A copy, so that another run of this script may compile meanwhile.
        program = shutil.copy(program, temporary)
        lines = pathlib.Path(temporary, "settings")
        lines.write_text("".join(f"{s}\n" for s in settings))

        def part(number):
            # One question at a time, so that a slow pair does not delay the others.
            asked = pathlib.Path(temporary, f"questions{number}")
            asked.write_text(questions[number] + "\n")
            command = [program, folder, asked, lines]
            return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                                  env={**os.environ, "RAYON_NUM_THREADS": "1"}).stdout
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for question, output in zip(questions, pool.map(part, range(len(questions)))):
                rows = [line.split("\t") for line in output.splitlines()[1:]]
                changes = {int(r[1]): r[2] for r in rows if r[1] != "read"}
                places = next(({int(p) for p in r[2].split()} for r in rows if r[1] == "read"), set())
                answers[question] = changes, places
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["pins", "measure", "try", "answers"])
    parser.add_argument("questions", nargs="?", default=ROOT / "tests/corpus/explained.txt")
    parser.add_argument("values", nargs="*", help="NAME=VALUE")
    parser.add_argument("--folder", default=ROOT / "tests/corpus", type=pathlib.Path)
    parser.add_argument("--work", default=pathlib.Path(tempfile.gettempdir(), "pprofdiff-thresholds"), type=pathlib.Path)
    parser.add_argument("--only", default="", help="regular expression of thresholds")
    parser.add_argument("--jobs", default=os.cpu_count(), type=int)
    options = parser.parse_args()
    known = thresholds((ROOT / EXPLAIN / "thresholds.rs").read_text())
    options.work.mkdir(parents=True, exist_ok=True)
    copy(options.work)
    [program] = compiled(options.work, "build", "-p", "probe")
    questions = questions_of(options.questions)
    if options.action == "answers":
        with tempfile.NamedTemporaryFile("w") as asked:
            asked.write("\n".join(questions))
            asked.flush()
            subprocess.run([program, options.folder, asked.name, "-"], check=True)
        return
    if options.action == "try":
        changed = probe(program, options.folder, questions, [" ".join(options.values)], options.jobs)
        for question, (changes, _) in changed.items():
            if changes:
                print(changes[0], question)
        return
    measured = [t for t in known if re.search(options.only, t.name)]
    settings = [f"{t.name}={value!r}" for t in measured for value in levels(t)]
    answers = probe(program, options.folder, questions, settings, options.jobs)
    place = {t.name: i for i, t in enumerate(known)}
    rows = []
    for number, t in enumerate(measured):
        changed = [[q for q, (c, _) in answers.items() if c.get(2 * number + i) in ("text", "panic")] for i in (0, 1)]
        reads = sum(place[t.name] in places for _, places in answers.values())
        rows.append((t, levels(t), changed, reads))
    if options.action == "measure":
        out = csv.writer(sys.stdout)
        out.writerow(["threshold", "value", "lower", "higher", "read by", "changed by lower", "changed by higher", "examples"])
        for t, values, changed, reads in rows:
            examples = "; ".join((changed[0] + changed[1])[:3])
            out.writerow([t.name, t.value, *values, reads, *map(len, changed), examples])
        return
    # Tests that a person named stay in the rows.
    old = {}
    if PINS.exists():
        with PINS.open() as file:
            old = {row["threshold"]: row for row in csv.DictReader(file)}
    with PINS.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["threshold", "lower", "answers", "higher", "answers that change", "tests"])
        for t, values, changed, _ in rows:
            cells = [x for value, changes in zip(values, changed) for x in (f"{value:.4g}", len(changes))]
            out.writerow([t.name, *cells, old.get(t.name, {}).get("tests", "")])


if __name__ == "__main__":
    main()
