//! Tests of the reader of callgrind's files: small texts, and recordings that `callgrind_annotate` judges.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LoadOptions;
use crate::kit::mutations::mutate;
use crate::kit::tree::rows;
use crate::oracle::is_installed;
use pprofdiff_profile::{Profile, Result};

fn load(text: &str) -> Result<Profile> {
    crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
}

fn types(p: &Profile) -> Vec<String> {
    p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect()
}

/// A name of a function, and numbers.
type Sums<K> = BTreeMap<K, Vec<i64>>;

/// The numbers that must be equal in a profile and in its judge.
#[derive(Default)]
struct Facts {
    /// Own costs by file and function.
    flat: Sums<(String, String)>,
    /// Inclusive costs by function.
    inclusive: Sums<String>,
    /// The number of calls, then their inclusive costs, by caller and callee.
    calls: Sums<(String, String)>,
}

fn add<K: Ord>(sums: &mut Sums<K>, key: K, values: &[i64]) {
    let sums = sums.entry(key).or_default();
    sums.resize(values.len(), 0);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Returns a name without the callers and the numbers of recursive calls.
fn base(name: &str) -> String {
    name.split('\'').next().unwrap().to_owned()
}

/// A row of `callgrind_annotate`: costs, a mark (`*`, `<`, `>` or none), the file and the function, and calls.
fn annotated(line: &str, n_events: usize) -> Option<(Vec<i64>, char, String, String, i64)> {
    let mut rest = line.trim_start();
    let mut costs = Vec::new();
    for _ in 0..n_events {
        let (word, after) = rest.split_once(' ')?;
        costs.push(if word == "." { 0 } else { word.replace(',', "").parse().ok()? });
        rest = after.trim_start();
    }
    let mark = rest.chars().next().filter(|c| "*<>".contains(*c) && rest[1..].starts_with(' ')).unwrap_or(' ');
    let rest = if mark == ' ' { rest } else { rest[1..].trim_start() };
    let name = match rest.rfind(" [") {
        Some(i) if rest.ends_with(']') => &rest[..i],
        _ => rest,
    };
    let (name, calls) = match name.rsplit_once(" (").filter(|_| "<>".contains(mark)) {
        Some((name, calls)) => (name, calls.strip_suffix("x)")?.replace(',', "").parse().ok()?),
        None => (name, 0),
    };
    let (file, function) = name.split_once(':')?;
    let file = if file == "???" { "" } else { file };
    Some((costs, mark, file.to_owned(), function.to_owned(), calls))
}

/// Reads the output of `callgrind_annotate` for own costs, and of `--inclusive=yes --tree=both`.
fn judged(own: &str, tree: &str, n_events: usize) -> Facts {
    let mut facts = Facts::default();
    let table = |text: &str| -> Vec<String> {
        let start = text.find(" file:function\n").unwrap();
        let end = text[start..].find("Auto-annotated").map_or(text.len(), |end| start + end);
        text[start..end].lines().skip(2).map(str::to_owned).collect()
    };
    for (costs, _, file, function, _) in table(own).iter().filter_map(|line| annotated(line, n_events)) {
        if costs.iter().any(|&cost| cost != 0) {
            add(&mut facts.flat, (file, base(&function)), &costs);
        }
    }
    // A block of the tree has callers, the function, and called functions. Blocks without callers are roots, or the
    // inlined parts of functions.
    let (mut called, mut roots) = (Sums::new(), Sums::new());
    let (mut current, mut has_callers) = (String::new(), false);
    for line in table(tree) {
        let Some((costs, mark, _, function, calls)) = annotated(&line, n_events) else {
            has_callers = false;
            continue;
        };
        match mark {
            '<' => has_callers = true,
            '*' => {
                current = base(&function);
                add(if has_callers { &mut called } else { &mut roots }, current.clone(), &costs);
            }
            _ => {
                let numbers: Vec<i64> = std::iter::once(calls).chain(costs).collect();
                add(&mut facts.calls, (current.clone(), base(&function)), &numbers);
            }
        }
    }
    roots.retain(|name, _| !called.contains_key(name));
    called.append(&mut roots);
    // The judge ignores costs of a called function that no call has, for example of the first function of a thread.
    let mut costs: Sums<String> = Sums::new();
    facts.flat.iter().for_each(|((_, name), own)| add(&mut costs, name.clone(), own));
    facts.calls.iter().for_each(|((caller, _), numbers)| add(&mut costs, caller.clone(), &numbers[1..]));
    for (name, inclusive) in &mut called {
        let costs = costs.get(name).into_iter().flatten();
        inclusive.iter_mut().zip(costs).for_each(|(inclusive, &cost)| *inclusive = (*inclusive).max(cost));
    }
    facts.inclusive = called;
    facts
}

/// Computes the facts of a profile from its stacks.
fn found(p: &Profile, n_events: usize) -> Facts {
    let mut facts = Facts::default();
    let (functions, locations) = (p.functions(), p.locations());
    let calls_column = p.sample_types().len() - 1;
    for sample in p.samples() {
        let mut frames = Vec::new();
        sample.for_each_location(|l| {
            let function = locations.line_function[locations.first_line[l as usize] as usize] as usize;
            frames.push((p.text(functions.file[function]), p.text(functions.name[function])));
        });
        let costs: Vec<i64> = (0..n_events).map(|i| sample.value(i)).collect();
        if costs.iter().any(|&cost| cost != 0) {
            add(&mut facts.flat, frames[0].clone(), &costs);
        }
        for name in frames.iter().map(|frame| &frame.1).collect::<BTreeSet<_>>() {
            add(&mut facts.inclusive, name.clone(), &costs);
        }
        let pairs: BTreeSet<_> = frames.windows(2).map(|pair| (pair[1].1.clone(), pair[0].1.clone())).collect();
        for pair in pairs {
            let numbers: Vec<i64> = std::iter::once(0).chain(costs.iter().copied()).collect();
            add(&mut facts.calls, pair, &numbers);
        }
        if let [callee, caller, ..] = &frames[..] {
            let mut numbers = vec![0; n_events + 1];
            numbers[0] = sample.value(calls_column);
            add(&mut facts.calls, (caller.1.clone(), callee.1.clone()), &numbers);
        }
    }
    facts
}

/// Returns the functions that reach themselves.
fn recursive(calls: &Sums<(String, String)>) -> BTreeSet<String> {
    let mut callees: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    calls.keys().for_each(|(caller, callee)| callees.entry(caller).or_default().push(callee));
    let reaches_itself = |name: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![name]);
        while let Some(function) = next.pop() {
            for &callee in callees.get(function).into_iter().flatten() {
                if callee == name {
                    return true;
                }
                if seen.insert(callee) {
                    next.push(callee);
                }
            }
        }
        false
    };
    callees.keys().filter(|name| reaches_itself(name)).map(|&name| name.to_owned()).collect()
}

/// Asserts that `callgrind_annotate` has the same numbers: all own costs, the number of all calls, and
/// the inclusive costs of functions and calls that are not part of a cycle. Returns how many of each there are.
///
/// Callgrind counts a few instructions of a program's end in calls and in `summary`, but not in any function and not in
/// `totals`. Inclusive costs may differ by these, which `lost` has by event.
fn assert_judged(name: &str, p: &Profile, own: &str, tree: &str, lost: &[i64]) -> [usize; 4] {
    let n_events = lost.len();
    let (judged, found) = (judged(own, tree, n_events), found(p, n_events));
    assert!(judged.flat.len() > 5, "{name}: {}", judged.flat.len());
    let differ = |what: &str, differences: Vec<String>| {
        assert!(
            differences.is_empty(),
            "{name}: {} {what}: {:#?}",
            differences.len(),
            &differences[..differences.len().min(9)]
        );
    };
    fn compare<K: Ord + std::fmt::Debug>(
        judged: &Sums<K>,
        found: &Sums<K>,
        from: usize,
        lost: &[i64],
        of: impl Fn(&K) -> bool,
    ) -> Vec<String> {
        let keys: BTreeSet<&K> = judged.keys().chain(found.keys()).filter(|key| of(key)).collect();
        let numbers =
            |sums: &Sums<K>, key: &K| sums.get(key).map(|numbers| numbers[from.min(numbers.len())..].to_vec());
        let number = |numbers: &Option<Vec<i64>>, i: usize| numbers.as_ref().map_or(0, |numbers| numbers[i]);
        let is_equal = |judged: &Option<Vec<i64>>, found: &Option<Vec<i64>>| {
            let length = judged.as_ref().or(found.as_ref()).map_or(0, Vec::len);
            let gap = |i: usize| number(judged, i) - number(found, i);
            let is_within = |i: usize| {
                let lost = lost.get(i).copied().unwrap_or(0);
                (lost.min(0)..=lost.max(0)).contains(&gap(i))
            };
            (0..length).all(is_within)
        };
        let pairs = keys.into_iter().map(|key| (key, numbers(judged, key), numbers(found, key)));
        let differs = pairs.filter(|(_, judged, found)| !is_equal(judged, found));
        differs.map(|(key, judged, found)| format!("{key:?}: {judged:?}, found {found:?}")).collect()
    }
    let cycles = recursive(&judged.calls);
    differ("own costs", compare(&judged.flat, &found.flat, 0, &[], |_| true));
    let counts = |sums: &Sums<(String, String)>| -> Sums<(String, String)> {
        sums.iter().map(|(key, numbers)| (key.clone(), vec![numbers[0]])).collect()
    };
    differ("numbers of calls", compare(&counts(&judged.calls), &counts(&found.calls), 0, &[], |_| true));
    differ("inclusive costs", compare(&judged.inclusive, &found.inclusive, 0, lost, |name| !cycles.contains(name)));
    let is_outside = |pair: &(String, String)| !cycles.contains(&pair.0) && !cycles.contains(&pair.1);
    differ("costs of calls", compare(&judged.calls, &found.calls, 1, lost, is_outside));
    [judged.flat.len(), judged.calls.len(), judged.inclusive.len(), cycles.len()]
}

/// Returns the difference between `summary`, which includes the program's end, and `totals`.
fn lost(text: &str) -> Vec<i64> {
    let sums = |key: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix(key));
        let numbers = rows.map(|row| row.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<i64>>());
        // Zeros at the end of a row are omitted.
        let sum = |a: Vec<i64>, b: Vec<i64>| -> Vec<i64> {
            let at = |row: &[i64], i: usize| row.get(i).copied().unwrap_or(0);
            (0..a.len().max(b.len())).map(|i| at(&a, i) + at(&b, i)).collect()
        };
        numbers.reduce(sum).unwrap()
    };
    sums("summary:").into_iter().zip(sums("totals:")).map(|(summary, totals)| summary - totals).collect()
}

fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()), &mut text)
        .unwrap();
    text
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Compares the recordings of a folder with their judge.
fn assert_folder(folder: &Path) -> usize {
    let mut n = 0;
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|ending| ending == "callgrind")) {
        let p = crate::open(path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let [own, tree] =
            ["own.txt", "tree.txt"].map(|ending| std::fs::read_to_string(path.with_extension(ending)).unwrap());
        let lost = lost(&std::fs::read_to_string(path).unwrap());
        let counts = assert_judged(&path.display().to_string(), &p, &own, &tree, &lost);
        println!("{}: {counts:?}", path.display());
        n += 1;
    }
    n
}

#[test]
fn recordings_of_the_corpus_match_callgrind_annotate() {
    let inputs = tests().join("corpus/inputs");
    for name in ["calls.base", "calls.new", "calls-contexts", "calls-threads"] {
        let path = |ending: &str| inputs.join(format!("{name}.{ending}.gz"));
        let p = crate::open(path("callgrind"), &LoadOptions::default()).unwrap();
        let [own, tree, text] = ["own.txt", "tree.txt", "callgrind"].map(|ending| gunzip(&path(ending)));
        let [own_costs, calls, ..] = assert_judged(name, &p, &own, &tree, &lost(&text));
        assert!(own_costs > 300 && calls > 300, "{name}: {own_costs} {calls}");
    }
}

#[test]
#[ignore = "records with valgrind"]
fn twenty_recorded_programs_match_callgrind_annotate() {
    let folder = std::env::temp_dir().join(format!("pprofdiff-callgrind-{}", std::process::id()));
    let record = tests().join("producers/callgrind/record");
    let tools = [
        ("valgrind", "valgrind"),
        ("callgrind_annotate", "valgrind"),
        ("gcc", "gcc"),
        ("g++", "g++"),
        ("rustc", "rustc"),
    ];
    if !tools.into_iter().all(|(program, package)| is_installed(program, package)) {
        return;
    }
    assert!(Command::new(record).arg(&folder).status().unwrap().success());
    assert_eq!(assert_folder(&folder), 20);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn costs_calls_and_compressed_names_and_positions_are_read() {
    let text = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npositions: instr line\nevents: Ir Dr\n\n\
                ob=(1) /bin/a\nfl=(1) main.c\nfn=(1) main\n0x10 16 400 20\n+4 +2 7\ncob=(2) /lib/b.so\ncfi=(2) b.c\ncfn=(2) work\n\
                calls=3 0x20 50\n* * 400 10\njump=2 0x10 16\njcnd=1/2 0x10 16\nfi=(3) inline.h\n+0x2 5 3\nfe=(1)\n* 20 1\n\n\
                ob=(2)\nfl=(2)\nfn=(2)\n0x20 51 400 10\ntotals: 811 30\n";
    let p = load(text).unwrap();
    assert_eq!(types(&p), ["Ir/count", "Dr/count", "calls/count"]);
    assert_eq!(
        rows(&p),
        [
            "main inline.h:5: 3 0 0",
            "main main.c:16: 400 20 0",
            "main main.c:18: 7 0 0",
            "main main.c:18|work b.c:50: 0 0 3",
            "main main.c:18|work b.c:51: 400 10 0",
            "main main.c:20: 1 0 0",
        ]
    );
    assert!(p.warnings().is_empty(), "{:?}", p.warnings());
    let files: Vec<String> = p.mappings().iter().map(|m| p.text(m.file)).collect();
    assert_eq!(files, ["/bin/a", "/lib/b.so"]);
}

#[test]
fn derived_events_are_sums_of_others() {
    let text = "events: Ir I1mr D1mr\nevent: L1m = I1mr + D1mr : L1 misses\nevent: CEst = Ir + 10 L1m\nevent: Ir : Instructions\n\
                event: X = Y\nevent: Hex=0x10*Ir + 2Ir\nfn=f\n1 100 2 3\n";
    let p = load(text).unwrap();
    assert_eq!(types(&p), ["Ir/count", "I1mr/count", "D1mr/count", "L1m/count", "CEst/count", "Hex/count"]);
    assert_eq!(rows(&p), ["f :1: 100 2 3 5 150 1800"]);
}

#[test]
fn recursive_calls_and_separate_callers_become_frames_of_the_same_name() {
    // `a` and `b` call `f`, which calls itself.
    let text = "events: Ir\nfn=main\n1 1\ncfn=a\ncalls=1 0\n2 30\ncfn=b\ncalls=1 0\n3 60\nfn=a\n1 10\ncfn=f'a\ncalls=1 0\n2 20\nfn=b\n1 10\n\
                cfn=f'b\ncalls=1 0\n2 50\nfn=f'a\n1 20\nfn=f'b\n1 20\ncfn=f'2'b\ncalls=2 0\n2 30\nfn=f'2'b\n1 30\nfn=x'y\n1 5\n";
    let p = load(text).unwrap();
    let expected = [
        "main :1: 1 0",
        "main :2|a: 0 1",
        "main :2|a :1: 10 0",
        "main :2|a :2|f: 0 1",
        "main :2|a :2|f :1: 20 0",
        "main :3|b: 0 1",
        "main :3|b :1: 10 0",
        "main :3|b :2|f: 0 1",
        "main :3|b :2|f :1: 20 0",
        "main :3|b :2|f :2|f: 0 2",
        "main :3|b :2|f :2|f :1: 30 0",
        "x'y :1: 5 0",
    ];
    assert_eq!(rows(&p).iter().collect::<BTreeSet<_>>(), expected.map(str::to_owned).iter().collect());
    assert!(p.warnings().is_empty(), "{:?}", p.warnings());
}

#[test]
fn parts_and_threads_add_up_and_threads_are_labels() {
    let text = "part: 1\nthread: 1\nevents: Ir Dr\nfn=(1) f\n5 1 2\ntotals: 1 2\npart: 1\nthread: 2\nevents: Dr Ir\nfn=(1) f\n+5 3 4\n";
    assert_eq!(rows(&load(text).unwrap()), ["f :5 thread=1: 1 2", "f :5 thread=2: 4 3"]);
}

#[test]
fn relatives_of_callgrind_are_read() {
    let xdebug = "version: 1\ncreator: xdebug 3.2.1 (PHP 8.2.1)\ncmd: /x.php\npart: 1\npositions: line\n\n\
                  events: Time_(10ns) Memory_(bytes)\n\nfl=(1) php:internal\nfn=(1) php::strlen\n4 50 -32\n\nfl=(2) /x.php\n\
                  fn=(2) {main}\n1 1000 400\ncfl=(1)\ncfn=(1)\ncalls=1 0 0\n4 50 -32\n\nsummary: 1051 400\n";
    let p = load(xdebug).unwrap();
    assert_eq!(types(&p), ["time/nanoseconds", "memory/bytes", "calls/count"]);
    assert_eq!(
        rows(&p),
        [
            "{main} /x.php:1: 10000 400 0",
            "{main} /x.php:4|php::strlen php:internal:0: 0 0 1",
            "{main} /x.php:4|php::strlen php:internal:4: 500 -32 0"
        ]
    );
    // pprofdiff's own files have units and no numbers of calls.
    let written = "# callgrind format\npositions: instr line\nevents: cpu(nanoseconds)\n\nob=(1) /a\nfl=(2) a.go\nfn=(3) main.f\n\
                   0x5 7 10\ncfl=(2)\ncfn=(4) main.g\ncalls=0 0x6 8\n* * 30\n\nob=(1)\nfl=(2)\nfn=(4)\n0x6 8 30\n";
    let p = load(written).unwrap();
    assert_eq!(
        (types(&p), rows(&p)),
        (
            vec!["cpu/nanoseconds".to_owned()],
            vec!["main.f a.go:7: 10".to_owned(), "main.f a.go:7|main.g a.go:8: 30".to_owned()]
        )
    );
    let cachegrind = "desc: I1 cache: 1\ncmd: ./a\nevents: Ir I1mr\nfl=a.c\nfn=main\n3 12 1\n4 1\nsummary: 13 1\n";
    let p = load(cachegrind).unwrap();
    assert_eq!(
        (types(&p), rows(&p)),
        (
            vec!["Ir/count".to_owned(), "I1mr/count".to_owned()],
            vec!["main a.c:3: 12 1".to_owned(), "main a.c:4: 1 0".to_owned()]
        )
    );
    assert!(p.warnings().is_empty());
}

#[test]
fn errors_name_the_line_and_what_to_do() {
    for (text, words) in [
        ("events: Ir\nfn=f\nx\n", "line 3: \"x\" is neither a position with costs"),
        ("events: Ir\nfn=f\n1 2 3\n", "line 3: \"1 2 3\" has more costs than there are events (1)"),
        ("events: Ir\nfn=f\n1 9223372036854775808\n", "line 3: \"1 9223372036854775808\" is neither"),
        ("events: Ir\n1 2\nfn=f\n", "line 2: costs come after the name of a function (fn=)"),
        ("events: Ir\nfn=(7)\n", "the name of function (7) is missing; is the beginning of the file missing?"),
        ("events: Ir\nfn=f\ncfn=g\ncalls=1 2\n", "ends before the cost of its last call; is it cut off?"),
        ("events: Ir\nfn=f\ncalls=1 2\n3 4\n", "calls come after the name of the called function (cfn=)"),
        ("events: Ir\nfn=f\ncfn=g\ncalls=1 2\nfn=h\n", "the cost of a call is missing before \"fn=h\""),
        ("events: Ir\nfn=f\n1 9223372036854775807\n1 1\n", "line 4: its values add up to more than an int64 holds"),
        ("events: Ir\nevent: A = 3\nfn=f\n", "is not a formula of events"),
        ("events: Ir Ir\nfn=f\n", "event \"Ir\" occurs twice"),
        ("version: 2\nevents: Ir\nfn=f\n", "version \"2\" of the format is unknown"),
        ("events: Ir\nfn=f\nevents: Dr\nfn=f\n", "event \"Dr\" is missing in an earlier part"),
    ] {
        let error = load(text).map(|p| rows(&p)).unwrap_err();
        assert!(error.to_string().contains(words), "{text:?}: {error}");
        assert!(error.offset().is_some(), "{text:?}: {error}");
    }
    // Values of derived events are sums of several places.
    let error = load("events: Ir\nevent: A = 9223372036854775807 Ir\nfn=f\n1 2\n").map(|p| rows(&p)).unwrap_err();
    assert!(error.to_string().contains("event \"A\": its values add up to more than an int64 holds"), "{error}");
    let cut = load("events: Ir\nsummary: 10\nfn=f\n1 4\n").unwrap();
    assert!(cut.warnings()[0].contains("its costs add up to 4 Ir, but it states a total of 10; is it cut off?"));
}

/// A file with all kinds of lines.
const EVERYTHING: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./a\npart: 1\nthread: 1\n\
    desc: I1 cache: 1\npositions: instr line\nevent: L1m = I1mr + 2 D1mr : misses\nevents: Ir I1mr D1mr\nsummary: 2006 30 4\n\n\
    ob=(1) /bin/a\nfl=(1) main.c\nfn=(1) main\n0x10 16 400 20\n+4 +2 7 1 1\ncob=(2) /lib/b.so\ncfi=(2) b.c\ncfn=(2) work\n\
    calls=3 0x20 50\n* * 400 10\njfi=(2)\njump=2 0x10 16\njcnd=1/2 0x10 16\nfi=(3) inline.h\n+0x2 5 3\nfe=(1)\n* 20 1\n\
    cfn=(3) even\ncalls=1 0 0\n-2 -1 800\n\nfn=(3)\n0x40 60 100\ncfn=(4) odd\ncalls=9 0 0\n* * 900\nfn=(4)\n0x50 70 700\n\
    cfn=(3)\ncalls=8 0 0\n* * 850\nfn=(5) even'2\n0x40 60 1\nfn=(6) odd'main\n0x40 60 2\n\nob=(2)\nfl=(2)\nfn=(2)\n0x20 51 400 10\n\
    totals: 1614 31 1\npart: 2\nthread: 2\nevents: D1mr Ir\nfn=(1)\n1 2 3 4\n";

#[test]
fn ten_thousand_mutations_are_read_or_refused_with_a_position() {
    let [mut read, mut refused] = [0, 0];
    for seed in 0..10_000 {
        let bytes = mutate(EVERYTHING.as_bytes(), seed);
        if bytes.is_empty() {
            continue;
        }
        let options = LoadOptions::default().with_input_format("callgrind").unwrap();
        match crate::from_bytes("in", &bytes, &options) {
            Ok(p) => read += usize::from(p.total(0).is_some()),
            Err(e) => {
                assert!(
                    e.offset().is_some_and(|at| at <= bytes.len() as u64) || e.detail().contains("int64"),
                    "{seed}: {e}"
                );
                assert!(!e.to_string().contains('\n'), "{seed}: {e}");
                refused += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}
