//! Behaviour of google/pprof of November 2026 that older versions lack or handle differently.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use pprofdiff::proto::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;

use crate::command::{self, Entry};
use crate::examine::Log;
use crate::exceptions::without_zeros;
use crate::pairs::Pair;
use crate::pprof::{self, Subject, Version};
use crate::profile;
use crate::question::{Choice, Granularity, Question};
use crate::reports;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newest");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the command as a user does, and returns its output.
fn ours(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks the unit `μs`, the sample type of a written profile, the name of means, and the matching and output of
/// `-disasm`.
pub fn examine_differences() {
    let is_newest = pprof::version() == Version::Newest;
    microseconds(is_newest);
    written_default(is_newest);
    instructions(is_newest);
}

/// An old pprof strips the plural `s` from `μs`, and does not know the unit `μ`.
fn microseconds(is_newest: bool) {
    let (stacks, file) =
        (folder().join(format!("us-{is_newest}.folded")), folder().join(format!("us-{is_newest}.pb.gz")));
    std::fs::write(&stacks, "main;work 2500\nmain 500\n").unwrap();
    let [stacks, file] = [stacks, file].map(|path| path.display().to_string());
    ours(&["convert", &stacks, "--input-type", "delay/μs", "-o", &file]);
    let theirs = pprof::run(&["-top", "-symbolize=none", "-unit=ms", &file]);
    let stdout = ours(&["top", "--unit", "ms", &file]);
    let has_row = |text: &str| text.lines().any(|line| line.contains("2.50ms") && line.ends_with("work"));
    assert!(has_row(&stdout), "{stdout}");
    assert_eq!(has_row(&theirs), is_newest, "{theirs}");
}

/// `-proto` with a sample type writes a profile with that default. pprofdiff behaves like the newest pprof.
fn written_default(is_newest: bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let [base, new] = ["base", "new"].map(|side| root.join(format!("go-heap.{side}.pb.gz")).display().to_string());
    let [theirs, our_file] =
        ["theirs", "ours"].map(|tool| folder().join(format!("{tool}-{is_newest}.pb.gz")).display().to_string());
    let output = format!("-output={theirs}");
    let diff_base = format!("-diff_base={base}");
    pprof::run(&["-proto", "-symbolize=none", "-sample_index=alloc_objects", &output, &diff_base, &new]);
    ours(&["diff", &base, &new, "--sample-type", "alloc_objects", "-o", &our_file]);
    let shown = |file: &str| {
        let report = pprof::run(&["-top", "-symbolize=none", file]);
        report.lines().find_map(|line| line.strip_prefix("Type: ").map(str::to_owned)).unwrap()
    };
    assert_eq!(shown(&our_file), "alloc_objects");
    assert_eq!(shown(&theirs), if is_newest { "alloc_objects" } else { "inuse_space" });
}

/// A function with samples at its first and at its last instruction. An old pprof also matches the address before the
/// name, and treats the last byte of a symbol as the first byte after it.
fn instructions(is_newest: bool) {
    if !cfg!(target_arch = "x86_64") {
        return; // The last instruction is one byte long on x86_64 only.
    }
    let folder = folder().join(format!("instructions-{is_newest}"));
    std::fs::create_dir_all(&folder).unwrap();
    let [source, program, file] = ["app.c", "app", "app.pb"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&source, "int work(int n) { return n * 7; }\nint main(int n, char **v) { return work(n); }\n")
        .unwrap();
    let run = |tool: &str, arguments: &[&str]| {
        let output = Command::new(tool).args(arguments).output().unwrap();
        assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run("cc", &["-g", "-O0", "-no-pie", "-o", &program, &source]);
    let symbols = run("nm", &["-S", &program]);
    let symbol = symbols.lines().find(|line| line.ends_with(" T work")).unwrap();
    let number = |column: usize| u64::from_str_radix(symbol.split(' ').nth(column).unwrap(), 16).unwrap();
    let (first, last) = (number(0), number(0) + number(1) - 1);
    std::fs::write(&file, samples_at(&program, [first, last])).unwrap();

    let listed = |regex: &str| pprof::try_run(&[&format!("-disasm={regex}"), "-symbolize=none", &file]);
    let end = |text: &str| text.lines().find(|line| line.contains(&format!("{last:x}"))).map(str::to_owned);
    let stdout = ours(&["disasm", "^work$", &file, "--binary", &program]);
    assert!(end(&stdout).is_some_and(|line| line.contains("30ns")), "{stdout}");
    assert_eq!(listed("^work$").is_ok(), is_newest);
    let theirs = listed("work").unwrap();
    assert_eq!(end(&theirs).is_some_and(|line| line.contains("30ns")), is_newest, "{theirs}");
}

/// Builds a profile of 100 ns and 30 ns in `work`, at two addresses of a program.
fn samples_at(program: &str, addresses: [u64; 2]) -> Vec<u8> {
    let texts = ["", "cpu", "nanoseconds", program, "work", "app.c"];
    let line = Line { function_id: 1, line: 1, ..Line::default() };
    let location = |(i, address): (usize, u64)| Location {
        id: i as u64 + 1,
        mapping_id: 1,
        address,
        line: vec![line],
        ..Location::default()
    };
    let sample =
        |(i, value): (usize, i64)| Sample { location_id: vec![i as u64 + 1], value: vec![value], ..Sample::default() };
    let text = Mapping {
        id: 1,
        memory_start: 0x401000,
        memory_limit: 0x402000,
        file_offset: 0x1000,
        filename: 3,
        ..Mapping::default()
    };
    Profile {
        string_table: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        mapping: vec![Mapping { has_functions: true, ..text }],
        function: vec![Function { id: 1, name: 4, filename: 5, ..Function::default() }],
        location: addresses.into_iter().enumerate().map(location).collect(),
        sample: [100, 30].into_iter().enumerate().map(sample).collect(),
        ..Profile::default()
    }
    .encode_to_vec()
}

/// The number of tables of [`examine_all_frames`] whose rows change with the option.
pub static CHANGED: AtomicUsize = AtomicUsize::new(0);

/// Compares `-all_frames` for the sides with frames to drop.
pub fn examine_all_frames(pair: &Pair, log: &mut Log) {
    for input in [&pair.base, &pair.new] {
        if !profile::names_frames_to_drop(&profile::inflated(&input.path)) {
            continue;
        }
        for listed_type in &input.profile.sample_types {
            let choices = vec![Choice::switch("all_frames")];
            let (sample_type, unit, granularity) =
                (listed_type.name.clone(), listed_type.unit.clone(), Granularity::Functions);
            let question = Question { sample_type, unit, granularity, choices };
            let (subject, words) = (Subject::One(&input.path), question.to_pprof_args());
            let rows = |entries: Vec<Entry>| without_zeros(entries.iter().map(|entry| entry.sums("flat", "cum")));
            let whole = rows(command::ask(&["top"], subject, &question).entries);
            let dropped = Question { choices: Vec::new(), ..question };
            let is_other = whole != rows(command::ask(&["top"], subject, &dropped).entries);
            CHANGED.fetch_add(usize::from(is_other), Ordering::Relaxed);
            let theirs = reports::top(&pprof::report("top", subject, &words)).rows;
            log.compare(whole, without_zeros(theirs), || pprof::command_line("-top", subject, &words));
        }
    }
}
