//! Memory in proportion: crafted inputs that stand for much more than their size, each loaded and looked at in every
//! way by a child process, whose peak is measured. Linux tells the peak of a process, so it is tested there.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::proto::{Function, Label, Line, Location, Profile, Sample, ValueType};
use pprofdiff::report::{self, Kind};
use pprofdiff::{Diff, FlameOptions, Granularity, GraphOptions, LoadOptions, Query, Sort};
use prost::Message;

/// What every process may take beside the multiple of its input.
const MB: u64 = 1 << 20;
const FLOOR: u64 = 64 * MB;

/// A crafted profile: name, message, the bound as a multiple of the inflated size, the last step that is held to it,
/// what its error says (empty if it loads). Four is the aim; where it is more, the bound keeps it from growing.
type Case = (&'static str, fn() -> Vec<u8>, u64, &'static str, &'static str);

const LAST: &str = "stacks-by-labels";

const CASES: &[Case] = &[
    ("ten million empty strings", empty_strings, 4, LAST, ""),
    // Its one row as text is longer than the profile.
    ("a sample of ten million frames", deep_stack, 8, "labels", ""),
    ("recursion a million deep", recursion, 4, LAST, ""),
    // What is behind the table of frames shows name and file as one text, of which there are five thousand.
    ("five thousand functions that share a name of a megabyte", shared_name, 4, "top", ""),
    ("deep inlining within bounds", inlining_allowed, 4, LAST, ""),
    ("deep inlining, 20,000 samples through 20,000 lines", inlining_refused, 4, "error", "of very many lines"),
    ("ids near 2^64", huge_ids, 8, LAST, ""),
    // A label is a few bytes, and a row of a table.
    ("a million labels on one sample", labels, 48, LAST, ""),
];

fn base(functions: u64) -> Profile {
    Profile {
        string_table: vec![Vec::new(), b"cpu".to_vec(), b"count".to_vec(), b"f".to_vec()],
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=functions).map(|id| Function { id, name: 3, ..Default::default() }).collect(),
        location: (1..=functions).map(|id| location(id, &[id])).collect(),
        ..Default::default()
    }
}

fn location(id: u64, functions: &[u64]) -> Location {
    let line = functions.iter().map(|&function_id| Line { function_id, line: id as i64, column: 0 }).collect();
    Location { id, line, ..Default::default() }
}

fn sample(locations: Vec<u64>) -> Sample {
    Sample { location_id: locations, value: vec![1], label: vec![] }
}

fn empty_strings() -> Vec<u8> {
    let mut bytes = Profile { sample: vec![sample(vec![1])], ..base(1) }.encode_to_vec();
    // Field 6, no bytes.
    bytes.extend([6 << 3 | 2, 0].repeat(10_000_000));
    bytes
}

fn deep_stack() -> Vec<u8> {
    let frames = (0..10_000_000).map(|i| 1 + i % 100).collect();
    Profile { sample: vec![sample(frames)], ..base(100) }.encode_to_vec()
}

fn recursion() -> Vec<u8> {
    Profile { sample: vec![sample(vec![1; 1_000_000]), sample(vec![1; 999_999])], ..base(1) }.encode_to_vec()
}

fn shared_name() -> Vec<u8> {
    let mut p = base(5000);
    p.string_table[3] = vec![b'x'; 1 << 20];
    for (i, f) in p.function.iter_mut().enumerate() {
        p.string_table.push(format!("{i}.go").into_bytes());
        f.filename = 4 + i as i64;
    }
    p.sample = (1..=5000).map(|l| sample(vec![l])).collect();
    p.encode_to_vec()
}

fn inlining(samples: u64, lines: u64) -> Vec<u8> {
    let mut p = base(samples);
    p.location.push(location(samples + 1, &vec![1; lines as usize]));
    p.sample = (1..=samples).map(|l| sample(vec![l, samples + 1])).collect();
    p.encode_to_vec()
}

fn inlining_allowed() -> Vec<u8> {
    inlining(200, 20_000)
}

fn inlining_refused() -> Vec<u8> {
    inlining(20_000, 20_000)
}

fn huge_ids() -> Vec<u8> {
    let mut p = base(200_000);
    let huge = |id: u64| u64::MAX - id * 7919;
    p.function.iter_mut().for_each(|f| f.id = huge(f.id));
    for l in &mut p.location {
        (l.id, l.line[0].function_id, l.line[0].line) = (huge(l.id), huge(l.line[0].function_id), l.id as i64);
    }
    p.sample = (1..=200_000).map(|l| sample(vec![huge(l)])).collect();
    p.encode_to_vec()
}

fn labels() -> Vec<u8> {
    let label = (1..=1_000_000).map(|num| Label { key: 3, num, ..Default::default() }).collect();
    Profile { sample: vec![Sample { label, ..sample(vec![1]) }], ..base(1) }.encode_to_vec()
}

/// The peak of this process in bytes, so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The child: loads what it is told to and looks at it in every way.
#[test]
fn look_at_everything() {
    let Some(path) = std::env::var_os("PPROFDIFF_PROPORTION") else { return };
    let limit = std::env::var("PPROFDIFF_LIMIT").ok().and_then(|l| l.parse().ok());
    let options = limit.map_or_else(LoadOptions::default, |inflated_limit| LoadOptions { inflated_limit });
    let profile = match pprofdiff::Profile::open(path, &options) {
        Ok(profile) => profile,
        Err(e) => return println!("\npeak error {} {e}", peak()),
    };
    let diff = Diff::of_profile(&Arc::new(profile)).unwrap();
    let query = Query { granularity: Granularity::Lines, ..Query::default() };
    let sink = &mut std::io::sink();
    let through = std::env::var("PPROFDIFF_THROUGH").unwrap_or_default();
    let tell = |what: &str| {
        println!("\npeak {what} {}", peak());
        if what == through {
            std::process::exit(0);
        }
    };
    tell("load");
    let view = diff.view(&query).unwrap();
    view.top(Sort::Flat).table().write_csv(sink).unwrap();
    tell("top");
    view.edges(None, Sort::Cum).unwrap().table(Kind::Tree).write_csv(sink).unwrap();
    tell("tree");
    let stacks = view.stacks(false);
    tell("stacks");
    report::folded(&stacks, sink).unwrap();
    tell("folded");
    drop(stacks);
    view.flame(&FlameOptions::default());
    tell("flame");
    view.graph(&GraphOptions::default()).unwrap().write_dot(sink).unwrap();
    tell("graph");
    diff.to_bytes(&query, &pprofdiff::WriteOptions::default()).unwrap();
    tell("write");
    view.labels().table().write_csv(sink).unwrap();
    tell("labels");
    view.stacks(true).table_head(20).write_csv(sink).unwrap();
    tell("stacks-by-labels");
}

/// What a child said: steps with the peak after each.
fn child(input: &Path, limit: Option<u64>, through: &str) -> Vec<(String, u64, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "look_at_everything", "--nocapture"]).env("PPROFDIFF_PROPORTION", input);
    command.env("PPROFDIFF_THROUGH", through);
    if let Some(limit) = limit {
        command.env("PPROFDIFF_LIMIT", limit.to_string());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |l: &str| {
        let mut words = l.strip_prefix("peak ")?.splitn(3, ' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next().unwrap_or_default().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proportion-{}-{name}", std::process::id()))
}

#[test]
fn crafted_inputs_take_memory_in_proportion() {
    let mut beyond = Vec::new();
    for (i, (name, message, times, through, error)) in CASES.iter().enumerate() {
        let path = temporary(&format!("{i}.pb"));
        let bytes = message();
        let size = bytes.len() as u64;
        std::fs::write(&path, bytes).unwrap();
        let began = std::time::Instant::now();
        let steps = child(&path, None, through);
        std::fs::remove_file(&path).unwrap();
        let shown: Vec<String> = steps.iter().map(|(what, peak, _)| format!("{what} {}", peak / MB)).collect();
        println!(
            "{name}: {:.1} MB; peak in MB after {}; {:?}",
            size as f64 / MB as f64,
            shown.join(", "),
            began.elapsed()
        );
        let (last, peak, said) = steps.last().unwrap();
        assert!(last == through && said.contains(error), "{name}: {last} {said}");
        if *peak > times * size + FLOOR {
            beyond.push(format!("{name}: {} MB of {} MB and {} times that", peak / MB, size / MB, times));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 64 * MB as usize];
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(&zeros).unwrap();
    // 10 GB in 10 MB.
    let gzip = member.finish().unwrap().repeat(160);
    let zstd = zstd::encode_all(&zeros[..], 3).unwrap().repeat(160);
    for (name, bytes) in [("bomb.gz", gzip), ("bomb.zst", zstd)] {
        let path = temporary(name);
        std::fs::write(&path, &bytes).unwrap();
        let limit = 100 * MB;
        let steps = child(&path, Some(limit), LAST);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = steps.last().unwrap();
        assert!(what == "error" && said.contains("more than the limit"), "{name}: {what} {said}");
        println!("{name}: {} kB, limit 100 MB, peak {} MB", bytes.len() / 1024, peak / MB);
        assert!(*peak < 2 * limit + FLOOR, "{name}: {} MB", peak / MB);
    }
}
