//! Compares deltas with the Go library (google/pprof's profile package), through tests/delta/main.go.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::golibrary;
use pprofdiff::{WriteOptions, delta};

use super::{load, policy};

/// Compression levels at which sizes are compared.
const LEVELS: [u32; 2] = [1, 6];

/// Compares the deltas of pairs of snapshots (name, snapshots, cumulative columns) with the Go library. Fails if ours
/// differ or, for real snapshots, are larger. Returns the bytes written by us and by the library for all real snapshots
/// at each level, and the number of compared samples.
pub fn compare_with_go(questions: &[(String, Vec<Vec<u8>>, &[usize])]) -> (Vec<(u64, u64)>, usize) {
    let folder = golibrary::build("delta");
    let mut input = String::new();
    for (name, pair, cumulative) in questions {
        let file = |suffix: &str, bytes: &[u8]| {
            let path = folder.join(format!("{name}.{suffix}"));
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let (prev, cur) = (load(&pair[0]), load(&pair[1]));
        let ours = delta(&prev, &cur, &policy(cumulative)).unwrap();
        let comment = ours.to_profile("delta").unwrap().comments().pop().unwrap();
        let names: Vec<String> = cumulative.iter().map(|&c| cur.sample_types()[c].0.clone()).collect();
        let (prev, cur) = (file("prev", &pair[0]), file("cur", &pair[1]));
        for level in LEVELS {
            let bytes = ours.to_bytes(&WriteOptions::default().with_level(level)).unwrap();
            let ours = file(&format!("ours-{level}"), &bytes);
            let out = file("out", &[]);
            input += &format!("{prev}\t{cur}\t{ours}\t{out}\t{level}\t{comment}\t{}\n", names.join(","));
        }
    }
    let mut oracle = Command::new(folder.join("oracle")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = oracle.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = oracle.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), questions.len() * LEVELS.len());

    let (mut sizes, mut samples, mut larger) = (vec![(0, 0); LEVELS.len()], 0, Vec::new());
    for (i, answer) in answers.lines().enumerate() {
        let (name, level) = (&questions[i / LEVELS.len()].0, i % LEVELS.len());
        let words: Vec<&str> = answer.split(' ').collect();
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        assert_eq!(words[0], "0", "{name}: samples are left");
        assert!(["1", "-"].contains(&words[1]), "{name}: a planted 1 leaves {} samples", words[1]);
        assert!(number(2) > 0, "{name}: nothing was expected");
        let (ours, theirs, rewritten) = (number(3), number(4), number(5));
        samples += number(2) as usize;
        // Synthetic snapshots contain duplicate table entries. Only the Go library removes them, so sizes are not
        // compared.
        if name.starts_with("made-up") {
            continue;
        }
        sizes[level].0 += ours;
        sizes[level].1 += theirs;
        if ours > theirs.min(rewritten) {
            larger.push(format!("{name} level {}: {ours}, Go {theirs} or {rewritten}", LEVELS[level]));
        }
    }
    assert!(larger.is_empty(), "{} deltas are larger than Go's:\n{}", larger.len(), larger.join("\n"));
    std::fs::remove_dir_all(folder).unwrap();
    (sizes, samples)
}
