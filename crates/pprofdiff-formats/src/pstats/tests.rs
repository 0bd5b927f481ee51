//! Tests of the reader of cProfile: recorded programs with the numbers of `pstats`, and damaged files.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::is_marshalled;
use crate::LoadOptions;
use crate::kit::mutations::mutate;
use crate::kit::tree::rows;
use pprofdiff_profile::{Profile, Result};
use serde_json::Value;

fn load(bytes: &[u8]) -> Result<Profile> {
    crate::from_bytes("in", bytes, &LoadOptions::default())
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// File, line and name.
type Function = (String, i64, String);

fn function(value: &Value) -> Function {
    let text = |i: usize| value[i].as_str().unwrap().to_owned();
    (text(0).replace('~', ""), value[1].as_i64().unwrap(), text(2))
}

#[derive(Default)]
struct Facts {
    /// Calls, primitive calls and own time of functions.
    own: BTreeMap<Function, [i64; 3]>,
    /// Inclusive time of functions.
    inclusive: BTreeMap<Function, i64>,
    /// Calls, own time and inclusive time of pairs of caller and function.
    calls: BTreeMap<(Function, Function), [i64; 3]>,
}

fn found(p: &Profile) -> Facts {
    let mut facts = Facts::default();
    let (functions, locations) = (p.functions(), p.locations());
    for sample in p.samples() {
        let mut frames: Vec<Function> = Vec::new();
        sample.for_each_location(|l| {
            let line = locations.first_line[l as usize] as usize;
            let function = locations.line_function[line] as usize;
            let text = |id| p.text(id);
            frames.push((text(functions.file[function]), locations.line_number[line], text(functions.name[function])));
        });
        let [time, calls, primitive] = [0, 1, 2].map(|i| sample.value(i));
        let own = facts.own.entry(frames[0].clone()).or_default();
        [calls, primitive, time].iter().zip(own).for_each(|(value, sum)| *sum += value);
        for frame in frames.iter().collect::<BTreeSet<_>>() {
            *facts.inclusive.entry(frame.clone()).or_default() += time;
        }
        for (i, pair) in frames.windows(2).enumerate() {
            let first = frames.windows(2).position(|other| other == pair) == Some(i);
            let sums = facts.calls.entry((pair[1].clone(), pair[0].clone())).or_default();
            sums[0] += if i == 0 { calls } else { 0 };
            sums[1] += if i == 0 { time } else { 0 };
            sums[2] += if first { time } else { 0 };
        }
    }
    facts
}

/// Returns the functions that reach themselves through other functions, and the functions that only call themselves.
fn recursive(functions: &[Value]) -> [BTreeSet<Function>; 2] {
    let mut callees: BTreeMap<Function, Vec<Function>> = BTreeMap::new();
    for record in functions {
        for caller in record[5].as_array().unwrap() {
            callees.entry(function(&caller[0])).or_default().push(function(&record[0]));
        }
    }
    let reaches = |start: &Function, end: &Function| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(function) = next.pop() {
            if function == *end {
                return true;
            }
            if seen.insert(function.clone()) {
                next.extend(callees.get(&function).into_iter().flatten().cloned());
            }
        }
        false
    };
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    for (caller, callees) in &callees {
        let through = callees.iter().any(|callee| callee != caller && reaches(callee, caller));
        let cycles = usize::from(!through);
        if through || callees.contains(caller) {
            found[cycles].insert(caller.clone());
        }
    }
    found
}

/// Compares a profile with the numbers of `pstats.Stats`. Inclusive times in mutual recursion are not comparable.
fn assert_judged(path: &Path) {
    let p = crate::open(path, &LoadOptions::default()).unwrap();
    let name = path.display();
    let text = std::fs::read_to_string(format!("{name}.expected.json")).unwrap();
    let judged: Vec<Value> = serde_json::from_str(&text).unwrap();
    let facts = found(&p);
    let [mutual, itself] = recursive(&judged);
    let has_times = !judged
        .iter()
        .flat_map(|record| record[5].as_array().unwrap())
        .any(|caller| caller.as_array().unwrap().len() == 2);
    // `profile` lists itself, without calls and time.
    let is_used = |record: &&Value| (1..=4).any(|i| record[i].as_i64() != Some(0));
    assert_eq!(facts.own.len(), judged.iter().filter(is_used).count(), "{name}");
    for record in judged.iter().filter(is_used) {
        let key = function(&record[0]);
        let [calls, primitive, own, time] = [1, 2, 3, 4].map(|i| record[i].as_i64().unwrap());
        assert_eq!(facts.own[&key], [calls, primitive, own], "{name}: {key:?}");
        if !mutual.contains(&key) && has_times {
            assert_eq!(facts.inclusive[&key], time, "{name}: {key:?}, {}", itself.contains(&key));
        }
        for caller in record[5].as_array().unwrap() {
            let pair = (function(&caller[0]), key.clone());
            let is_outside = !mutual.contains(&pair.0) && !mutual.contains(&pair.1) && pair.0 != pair.1;
            let numbers = facts.calls[&pair];
            assert_eq!(numbers[0], caller[1].as_i64().unwrap(), "{name}: {pair:?}");
            if has_times {
                assert_eq!(numbers[1], caller[3].as_i64().unwrap(), "{name}: own time of {pair:?}");
            }
            if has_times && is_outside {
                assert_eq!(numbers[2], caller[4].as_i64().unwrap(), "{name}: time of {pair:?}");
            }
        }
    }
}

fn assert_folder(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let profiles: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "prof")).collect();
    profiles.iter().for_each(|path| assert_judged(path));
    profiles.len()
}

#[test]
fn recorded_profiles_match_pstats() {
    assert_eq!(assert_folder(&tests().join("corpus/inputs")), 4);
}

#[test]
#[ignore = "records with Python"]
fn ten_recorded_programs_match_pstats() {
    let folder = std::env::temp_dir().join(format!("pprofdiff-pstats-{}", std::process::id()));
    let status = Command::new("python3").arg(tests().join("producers/pstats/record")).arg(&folder).status();
    assert!(status.unwrap().success());
    assert_eq!(assert_folder(&folder), 12);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ten_thousand_mutations_are_read_or_refused_with_a_position() {
    let [mut read, mut refused] = [0, 0];
    let inputs = tests().join("corpus/inputs");
    for name in ["callers.base.prof", "mutual.prof", "counts.prof"] {
        let file = std::fs::read(inputs.join(name)).unwrap();
        for seed in 0..10_000 / 3 + 1 {
            let bytes = mutate(&file, seed);
            if bytes.is_empty() {
                continue;
            }
            let options = LoadOptions::default().with_input_format("pstats").unwrap();
            match crate::from_bytes("in", &bytes, &options) {
                Ok(p) => read += usize::from(p.samples().all(|s| s.value(1) >= 0)),
                Err(e) => {
                    assert!(
                        e.offset().is_some_and(|at| at <= bytes.len() as u64) || e.detail().contains("int64"),
                        "{name} {seed}: {e}"
                    );
                    assert!(!e.to_string().contains('\n'), "{name} {seed}: {e}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 100 && refused > 1000, "{read} {refused}");
}

/// Writes values as `marshal` does, for small files.
fn text(text: &str) -> Vec<u8> {
    [&[b'z', text.len() as u8][..], text.as_bytes()].concat()
}

fn int(n: i32) -> Vec<u8> {
    [&b"i"[..], &n.to_le_bytes()].concat()
}

fn float(n: f64) -> Vec<u8> {
    [&b"g"[..], &n.to_le_bytes()].concat()
}

fn tuple(parts: &[Vec<u8>]) -> Vec<u8> {
    [&[b')', parts.len() as u8][..], &parts.concat()].concat()
}

fn dict(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"{", &*parts.concat(), b"0"].concat()
}

fn name(function: &str, line: i32) -> Vec<u8> {
    tuple(&[text("t.py"), int(line), text(function)])
}

fn record(numbers: [i32; 2], times: [f64; 2], callers: &[Vec<u8>]) -> Vec<u8> {
    let [[primitive, calls], [own, time]] = [numbers.map(int), times.map(float)];
    tuple(&[primitive, calls, own, time, dict(callers)])
}

#[test]
fn calls_and_times_are_read_with_their_callers() {
    let caller = |calls, times: [f64; 2]| tuple(&[int(calls), int(calls), float(times[0]), float(times[1])]);
    let file = dict(&[
        name("main", 1),
        record([1, 1], [0.1, 1.0], &[]),
        name("f", 5),
        record([3, 3], [0.3, 0.9], &[name("main", 1), caller(3, [0.3, 0.9])]),
        tuple(&[text("~"), int(0), text("<built-in method len>")]),
        record([9, 9], [0.6, 0.6], &[name("f", 5), caller(8, [0.6, 0.6])]),
    ]);
    let p = load(&file).unwrap();
    let types: Vec<String> = p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
    assert_eq!(types, ["time/nanoseconds", "calls/count", "primitive calls/count"]);
    let expected = [
        "<built-in method len>: 0 1 1",
        "main t.py:1: 100000000 1 1",
        "main t.py:1|f t.py:5: 300000000 3 3",
        "main t.py:1|f t.py:5|<built-in method len>: 600000000 8 8",
    ];
    assert_eq!(rows(&p), expected);
    assert!(p.warnings().is_empty(), "{:?}", p.warnings());
}

#[test]
fn references_and_types_of_other_versions_are_read() {
    // Version 4 numbers values with the highest bit, and Python 2 its interned texts (`t`, `R`).
    let one = b"{\xa9\x03\xda\x01a\xe9\x07\0\0\0r\x01\0\0\0)\x05r\x02\0\0\0r\x02\0\0\0f\x031.5l\x01\0\0\0\x02\0{00";
    assert_eq!(rows(&load(one).unwrap()), ["a a:7: 1500000000 7 7"]);
    let two = b"{(\x03\0\0\0t\x01\0\0\0ai\x07\0\0\0R\0\0\0\0(\x05\0\0\0i\x01\0\0\0i\x01\0\0\0f\x011f\x011{00";
    assert_eq!(rows(&load(two).unwrap()), ["a a:7: 1000000000 1 1"]);
}

#[test]
fn errors_have_a_position_and_say_what_is_wrong() {
    let function = || record([1, 1], [0.0, 0.0], &[]);
    let repeated = dict(&[name("f", 1), function(), name("f", 1), function()]);
    let nested = [&name("f", 1)[..], &[b')', 1].repeat(40)].concat();
    for (file, at, words) in [
        (dict(&[name("f", 1), int(3)]), 17, "the record of a function is not a tuple of 5"),
        (dict(&[name("f", 1), record([-1, -1], [0.0, 0.0], &[])]), 24, "a number of calls is not a positive integer"),
        (dict(&[name("f", 1), record([1, 1], [f64::NAN, 0.0], &[])]), 29, "a time is not a number of seconds"),
        (dict(&[tuple(&[int(1), int(1), int(1)]), function()]), 3, "a function or its file is not a text"),
        (repeated, 49, "a function occurs twice"),
        (b"{)\x03z\x7f".to_vec(), 5, "the data ends inside a value; is the file cut off?"),
        (b"{)\x03(\xff\xff\xff\x7f".to_vec(), 4, "a length is negative or goes beyond the end"),
        (b"{)\x03c".to_vec(), 3, "a value of type \"c\" is not part of a profile"),
        (b"{)\x03r\0\0\0\0".to_vec(), 3, "reference 0 does not exist"),
        (b"{\xa9\x03r\0\0\0\0".to_vec(), 3, "reference 0 does not exist"),
        ([b"{", &*nested].concat(), 47, "nested too deeply"),
        ([&dict(&[name("f", 1), function()])[..], b"0"].concat(), 50, "bytes follow the profile"),
    ] {
        let error = load(&file).unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!(error.offset(), Some(at), "{words}: {error}");
    }
    assert!(!is_marshalled(b"{s\0\0\0"));
}

#[test]
fn repeated_callers_are_limited() {
    // All functions have the same dictionary of callers, by a reference of five bytes. It names one caller many times, so its
    // calls need no memory. There may be 2^20 callers, and one for each byte of about 400,000.
    let file = |functions: i32, callers: i32| {
        let names = (0..callers).flat_map(|_| [name("c", 0), int(1)]).collect::<Vec<_>>();
        let callers = [b"\xfb", &dict(&names)[1..]].concat();
        let record = |i: i32| {
            let callers = if i == 0 { callers.clone() } else { b"r\0\0\0\0".to_vec() };
            tuple(&[int(1), int(1), float(0.0), float(0.0), callers])
        };
        dict(&(0..functions).flat_map(|i| [name("f", i), record(i)]).collect::<Vec<_>>())
    };
    assert!(load(&file(50, 20_000)).is_ok());
    let error = load(&file(100, 20_000)).unwrap_err();
    assert_eq!(error.kind(), pprofdiff_profile::ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("its functions have too many callers altogether"), "{error}");
    assert!(error.offset().is_some(), "{error}");
}

#[test]
fn negative_times_count_as_zero_with_a_note() {
    // Without its calibration, `profile` writes no such times.
    let caller = |time: f64| tuple(&[int(3), int(3), float(time), float(time)]);
    let file = |own: f64| {
        dict(&[
            name("main", 1),
            record([1, 1], [0.1, 0.1 + own.max(0.0)], &[]),
            name("f", 5),
            record([3, 3], [own, own], &[name("main", 1), caller(own)]),
        ])
    };
    let p = load(&file(-2e-6)).unwrap();
    assert_eq!(rows(&p), ["main t.py:1: 100000000 1 1", "main t.py:1|f t.py:5: 0 3 3"]);
    assert_eq!(p.warnings(), ["in: 4 times are negative, and count as 0; is the calibration of `profile` too high?"]);
    // A rounded zero is not negative.
    assert!(load(&file(-1e-10)).unwrap().warnings().is_empty());
}
