//! Tests of number formatting for humans: growth next to share, headings, one unit per column, and names of counts, in
//! each human-readable format.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;

const HOUR: i64 = 3_600_000_000_000;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

fn run(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let output = command.current_dir(corpus()).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the output of a verb (or of the default view) for both sides of a corpus pair.
fn view_of_pair(pair: &str, verb: &[&str], more: &[&str]) -> String {
    let files = ["base", "new"].map(|side| format!("{pair}.{side}.pb.gz"));
    run(&[verb, &[&*files[0], &*files[1]], more].concat())
}

/// Returns the cells of the line that ends in `last`. Columns are two spaces apart.
fn cells(text: &str, last: &str) -> Vec<String> {
    let line = text.lines().find(|l| l.ends_with(last)).unwrap_or_else(|| panic!("no {last} in {text}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

/// Writes a CPU profile with one function per value, and returns its path.
fn write_profile(name: &str, values: &[i64]) -> String {
    let n = values.len() as u64;
    let strings = ["", "cpu", "nanoseconds"].map(str::to_owned).into_iter();
    let profile = Profile {
        string_table: strings.chain((0..n).map(|i| format!("f{i}"))).map(String::into_bytes).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=n).map(|id| Function { id, name: 2 + id as i64, ..Default::default() }).collect(),
        location: (1..=n)
            .map(|id| Location { id, line: vec![Line { function_id: id, line: 1, column: 0 }], ..Default::default() })
            .collect(),
        sample: (1..=n)
            .zip(values)
            .map(|(id, &v)| Sample { location_id: vec![id], value: vec![v], label: vec![] })
            .collect(),
        ..Default::default()
    };
    let path = std::env::temp_dir().join(format!("pprofdiff-reading-{}-{name}.pb", std::process::id()));
    std::fs::write(&path, profile.encode_to_vec()).unwrap();
    path.display().to_string()
}

/// The cum of `names.compare` grows from 20 to 168 samples of 10 ms: x8.4, which is 148 of the base's 190 samples.
#[test]
fn growth_is_next_to_share_under_headings() {
    let text = view_of_pair("story-cpu", &[], &["--sort", "cum"]);
    let head = ["cum: base", "new", "delta", "growth", "of total", "flat: base", "new", "delta", "frame"];
    assert_eq!(cells(&text, "frame"), head);
    let row = ["0.20s", "1.68s", "+1.48s", "x8.4", "+77.89%", "0.17s", "0.25s", "+0.08s", "logmill/names.compare"];
    assert_eq!(cells(&text, "names.compare"), row);
    // Sorted by flat, the flat columns come first and have both: 17 to 25 of 190.
    let text = view_of_pair("story-cpu", &[], &["--sort", "flat"]);
    assert_eq!(cells(&text, "frame")[..6], ["flat: base", "new", "delta", "growth", "of total", "cum: base"]);
    assert_eq!(cells(&text, "names.compare")[3..5], ["+47.1%", "+4.21%"]);
    assert_eq!(cells(&text, "names.canonical")[3..5], ["new", "+10.53%"]);
    assert_eq!(cells(&text, "accesslog.cleanName")[3..5], ["gone", "-5.26%"]);

    let markdown = view_of_pair("story-cpu", &[], &["--sort", "cum", "--format", "markdown"]);
    assert!(markdown.contains("| cum delta | growth | of total |\n"), "{markdown}");
    assert!(markdown.contains("| 0.20s | 1.68s | +1.48s | x8.4 | +77.89% |\n"), "{markdown}");
    let callers = view_of_pair("story-cpu", &["peek", "names.compare"], &[]);
    assert_eq!(cells(&callers, "frame"), ["base", "new", "delta", "growth", "of total", "frame"]);
    assert!(callers.contains("0.20s  1.68s  +1.48s    x8.4   +77.89%    logmill/names.compare"), "{callers}");
    let listing = view_of_pair("story-cpu", &["list", "names.compare$"], &[]);
    assert!(listing.contains("\ncum 0.20s -> 1.68s  +1.48s  x8.4  +77.89% of total\n"), "{listing}");
    let stacks = view_of_pair("story-cpu", &["stacks"], &["-n", "1"]);
    assert!(stacks.contains("\n0 -> 590ms  +590ms  new  +31.05% of total  added\n"), "{stacks}");
    let checked =
        view_of_pair("story-cpu", &["check"], &["--fail-on", "cum:each=names.compare$>+5%", "--fail-on", "total>+5%"]);
    assert!(
        checked
            .contains("0.20s -> 1.68s  +1.48s  x8.4  +77.89% of total  p < 0.001, limit 0.01  logmill/names.compare\n"),
        "{checked}"
    );
    assert!(checked.contains("1.90s -> 2.93s  +1.03s  +54.2%  p = 0.0"), "{checked}");
    let dot = view_of_pair("story-cpu", &[], &["--format", "dot"]);
    assert!(dot.contains("cum 0.20s → 1.68s  x8.4\\n+77.89% of total"), "{dot}");
}

/// A difference of 54.31 s between values of 8 hours is shown in seconds. A small value among large ones is not shown
/// as 0.
#[test]
fn units_fit_the_values_of_a_column() {
    let base = write_profile("day-base", &[8 * HOUR, 3 * HOUR, 700]);
    let new = write_profile("day-new", &[8 * HOUR + 54_310_000_000, 3 * HOUR - 12_000_000, 900]);
    let text = run(&[&base, &new]);
    assert!(text.contains("11hrs -> 11.02hrs  +54.30s  +0.14%\n"), "{text}");
    assert_eq!(cells(&text, "f0")[..5], ["8hrs", "8.02hrs", "+54.31s", "+0.19%", "+0.14%"]);
    assert_eq!(cells(&text, "f1")[..5], ["3hrs", "3hrs", "-0.012s", "-<0.01%", "-<0.01%"]);
    assert_eq!(cells(&text, "f2")[..5], ["700ns", "900ns", "+200ns", "+28.6%", "+<0.01%"]);
    let alone = run(&["top", &base]);
    assert_eq!(cells(&alone, "f2")[..2], ["700ns", "<0.01%"]);
    for path in [base, new] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn records_are_called_stacks_and_one_is_singular() {
    let text = view_of_pair("story-cpu", &[], &[]);
    assert!(text.contains("story-cpu.base.pb.gz  156 stacks, 190 samples in 1.86s\n"), "{text}");
    // Without a sample type that counts samples, the word "samples" does not appear.
    assert!(view_of_pair("go-mutex", &[], &[]).lines().take(2).all(|l| l.contains(" stacks") && !l.contains("sample")));
    let one = write_profile("one", &[5]);
    let text = run(&["top", &one]);
    assert!(text.contains("  1 stack\n") && text.contains("\n1 frame\n"), "{text}");
    assert!(run(&["stacks", &one]).contains("\n1 stack\n"));
    std::fs::remove_file(one).unwrap();
}

/// In all real pairs, names begin before column 90, so that names of 30 letters fit into 120 columns.
#[test]
fn the_table_fits_a_terminal() {
    let names: BTreeSet<String> = std::fs::read_dir(corpus())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".base.pb.gz").map(str::to_owned))
        .collect();
    assert!(names.len() > 10);
    for (name, sort) in names.iter().flat_map(|name| [(name, "flat"), (name, "cum")]) {
        let text = view_of_pair(name, &[], &["--sort", sort]);
        let head = text.lines().find(|l| l.ends_with("  frame")).unwrap();
        assert!(head.len() - "frame".len() <= 90, "{name}: {head}");
    }
}
