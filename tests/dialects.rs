//! Tests of folded stacks of profilers that write more than names. Real files are compared with the output of the
//! profilers' own converters, and with a plain parser.

use std::collections::BTreeMap;

use pprofdiff::samples::{Label, LabelValue};
use pprofdiff::{LoadOptions, Profile};
use regex::Regex;

use crate::oracle;

fn open(file: &str) -> Profile {
    pprofdiff::open(oracle::corpus().join("inputs").join(file), &LoadOptions::default()).unwrap()
}

fn text(file: &str) -> String {
    let bytes = std::fs::read(oracle::corpus().join("inputs").join(file)).unwrap();
    String::from_utf8(if file.ends_with(".gz") { oracle::gunzip(&bytes) } else { bytes }).unwrap()
}

type Stacks = BTreeMap<(Vec<(String, String, i64)>, Vec<String>), Vec<i64>>;

/// Sums all types by name, file and line of the frames from the root, and by label texts.
fn stacks(p: &Profile) -> Stacks {
    let frame = |l: u32| {
        let i = p.locations().first_line[l as usize] as usize;
        let f = p.locations().line_function[i] as usize;
        (p.text(p.functions().name[f]), p.text(p.functions().file[f]), p.locations().line_number[i])
    };
    let label = |l: Label| match l.value {
        // Austin's converter writes the interpreter's number before the thread's.
        LabelValue::Text(v) => p.text(v).trim_start_matches("0:").to_owned(),
        LabelValue::Number(v, _) => v.to_string(),
    };
    let mut stacks = Stacks::new();
    for sample in p.samples() {
        let mut frames = Vec::new();
        sample.for_each_location(|l| frames.push(frame(l)));
        frames.reverse();
        let mut labels: Vec<String> = sample.labels().map(label).collect();
        labels.sort();
        let sums = stacks.entry((frames, labels)).or_default();
        sums.resize(p.sample_types().len(), 0);
        sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += sample.value(i));
    }
    stacks.retain(|_, sums| sums.iter().any(|&v| v != 0));
    stacks
}

#[test]
fn austin_equals_the_output_of_its_own_converter() {
    for side in ["base", "new"] {
        let (ours, theirs) =
            (open(&format!("notes.{side}.austin.txt.gz")), open(&format!("notes.{side}.austin2pprof.pb.gz")));
        let kinds: Vec<String> = theirs.sample_types().into_iter().map(|t| t.0).collect();
        assert_eq!(kinds, ["CPU time", "Wall time", "Allocated memory", "Deallocated memory"]);
        let (mut ours, theirs) = (stacks(&ours), stacks(&theirs));
        // The converter omits invalid samples, and thus their time.
        ours.retain(|(frames, _), _| frames.first().is_none_or(|f| f.0 != ":INVALID:"));
        assert!(ours.len() > 20, "{}", ours.len());
        oracle::assert_same(&ours, &theirs, side);
    }
}

#[test]
fn py_spy_equals_a_plain_parser() {
    let frame = Regex::new(r"^(.+) \((.+):(\d+)\)$").unwrap();
    let thread = Regex::new(r"^thread \((\d+)\)(?:: (.*))?$").unwrap();
    for side in ["base", "new"] {
        let file = format!("notes.{side}.py-spy.txt");
        let mut expected = Stacks::new();
        for line in text(&file).lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            let (mut frames, mut labels) = (Vec::new(), Vec::new());
            for part in stack.split(';') {
                if let Some(captures) = thread.captures(part) {
                    labels = [captures.get(1), captures.get(2)]
                        .into_iter()
                        .flatten()
                        .map(|m| m.as_str().to_owned())
                        .collect();
                } else {
                    let captures = frame.captures(part).unwrap();
                    frames.push((captures[1].to_owned(), captures[2].to_owned(), captures[3].parse().unwrap()));
                }
            }
            labels.sort();
            assert_eq!(labels.len(), 2, "{line}");
            expected.entry((frames, labels)).or_insert_with(|| vec![0])[0] += count.parse::<i64>().unwrap();
        }
        oracle::assert_same(&stacks(&open(&file)), &expected, &file);
    }
}

#[test]
fn collapsed_stacks_of_perf_equal_a_plain_parser() {
    let process = Regex::new(r"^(.+)-(\d+)/(\d+)$").unwrap();
    for side in ["base", "new"] {
        let file = format!("frames.{side}.perf-folded.txt");
        let mut expected = Stacks::new();
        for line in text(&file).lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            let (root, frames) = stack.split_once(';').unwrap();
            let captures = process.captures(root).unwrap();
            let mut labels: Vec<String> = (1..4).map(|i| captures[i].to_owned()).collect();
            labels.sort();
            let frames = frames.split(';').map(|f| (f.trim_end_matches("_[k]").to_owned(), String::new(), 0)).collect();
            expected.entry((frames, labels)).or_insert_with(|| vec![0])[0] += count.parse::<i64>().unwrap();
        }
        assert!(expected.len() > 5);
        oracle::assert_same(&stacks(&open(&file)), &expected, &file);
    }
}

#[test]
fn lines_without_a_stack_count_and_are_reported() {
    let read = |format: &str, text: &str| {
        let options = LoadOptions::default().with_input_format(format).unwrap();
        pprofdiff::from_bytes("in", text.as_bytes(), &options)
    };
    // py-spy writes such lines if it finds no frames.
    let text = "<module> (t.py:10);work (t.py:8) 6\n 1\n<module> (t.py:10) 2\n 4\n";
    assert!(pprofdiff::from_bytes("in", text.as_bytes(), &LoadOptions::default()).is_ok());
    for format in ["py-spy", "austin", "cpython", "perf-folded", "folded"] {
        let p = read(format, text).unwrap();
        assert_eq!((p.total(0), p.n_samples()), (Some(13), 4), "{format}");
        assert_eq!(stacks(&p)[&(vec![], vec![])], [5], "{format}");
        assert_eq!(
            p.warnings(),
            ["in: 2 lines have no stack, first at line 2; their values count only in the total"],
            "{format}"
        );
        let none = read(format, "<module> (t.py:10);work (t.py:8) 6\n").unwrap();
        assert_eq!(none.warnings(), [""; 0], "{format}");
        // A line with only a number and no space before it is an error.
        let error = read(format, "a (t.py:8) 6\n12\n").unwrap_err();
        assert!(error.to_string().contains("line 2: \"12\" does not end in a number"), "{format}: {error}");
    }
    let two = read("folded2", "a 1 2\n 3 4\n").unwrap();
    assert_eq!(two.warnings(), ["in: line 2 has no stack; its value counts only in the total"]);
}
