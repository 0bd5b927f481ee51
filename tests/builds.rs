//! Tests of `pprofdiff series`: patterns and files, rows and formats, bad builds, and errors.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file)
}

/// A folder with the builds build-9, build-10 and build-11 of one service, copied from the corpus. build-10 may be
/// broken.
struct Builds(PathBuf);

impl Builds {
    fn new(test: &str, broken: bool) -> Builds {
        let dir = std::env::temp_dir().join(format!("pprofdiff-builds-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        for (i, snapshot) in [(9, "01"), (10, "06"), (11, "08")] {
            let build = dir.join(format!("build-{i}"));
            std::fs::create_dir_all(&build).unwrap();
            let from = corpus(&format!("series/heap-{snapshot}.pb.gz"));
            let mut content = std::fs::read(from).unwrap();
            if broken && i == 10 {
                content.truncate(100);
            }
            std::fs::write(build.join("heap.pb.gz"), content).unwrap();
        }
        Builds(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&self.0).stdin(Stdio::null()).arg("series").args(args).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its stdout.
    fn out(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[args, &["--format", "json"]].concat())).unwrap()
    }
}

impl Drop for Builds {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PATTERN: &str = "build-*/heap.pb.gz";

fn keys(json: &Value) -> Vec<&str> {
    json["builds"].as_array().unwrap().iter().map(|b| b["key"].as_str().unwrap()).collect()
}

#[test]
fn text_shows_each_change_with_its_build_and_size() {
    let d = Builds::new("text", false);
    let text = d.out(&[PATTERN, "-n", "2"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "3 builds by key, 9 to 11; each is compared with the previous build");
    assert!(lines[1].starts_with("inuse_space (bytes): 67.53kB -> 54.91kB  -12.62kB  -18.7%"), "{text}");
    assert!(lines[2].starts_with("2 of "), "{text}");
    let cells: Vec<&str> = lines[5].split_whitespace().collect();
    let json = d.json(&[PATTERN, "-n", "1"]);
    let row = &json["rows"][0];
    assert_eq!(cells[cells.len() - 7..], ["10", "#1", "11", "#2", "9", "11", row["name"].as_str().unwrap()]);
    let percent = 100.0 * row["flat_delta"].as_f64().unwrap() / json["builds"][1]["total"].as_f64().unwrap();
    assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>()[4..7], ["growth", "of", "total"], "{text}");
    assert_eq!(cells[4], format!("{percent:+.2}%"), "{text}");
}

#[test]
fn patterns_and_files_have_the_same_order() {
    let d = Builds::new("order", false);
    let files = ["build-10/heap.pb.gz", "build-11/heap.pb.gz", "build-9/heap.pb.gz"];
    let (by_pattern, by_key) = (d.json(&[PATTERN]), d.json(&files));
    assert_eq!(keys(&by_pattern), ["9", "10", "11"]);
    assert_eq!(keys(&by_key), ["build-9", "build-10", "build-11"]);
    assert_eq!((&by_pattern["order"], &by_pattern["against"]), (&"key".into(), &"previous".into()));
    for (a, b) in by_pattern["rows"].as_array().unwrap().iter().zip(by_key["rows"].as_array().unwrap()) {
        assert_eq!((&a["name"], &a["flat_delta"]), (&b["name"], &b["flat_delta"]));
    }
    let given = d.json(&[&files[..], &["--order", "given"]].concat());
    assert_eq!((keys(&given), &given["order"]), (vec!["build-10", "build-11", "build-9"], &"given".into()));
}

#[test]
fn rows_in_each_format() {
    let d = Builds::new("rows", false);
    let values = d.out(&[PATTERN, "--rows", "values", "--format", "csv"]);
    assert!(values.starts_with("build,build_number,name,file,line,mapping,flat,cum\n9,0,"), "{values}");
    let json = d.json(&[PATTERN, "--rows", "values"]);
    assert_eq!((&json["schema"], &json["kind"]), (&"pprofdiff/1".into(), &"values".into()));
    assert_eq!(json["rows"].as_array().unwrap().len(), values.lines().count() - 1);
    let steps = d.json(&[PATTERN, "--rows", "steps", "--sort", "cum"]);
    let sizes: Vec<u64> =
        steps["rows"].as_array().unwrap().iter().map(|r| r["cum_delta"].as_i64().unwrap().unsigned_abs()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.len() > 10);
    let markdown = d.out(&[PATTERN, "--format", "markdown", "-n", "3"]);
    assert!(markdown.contains("| first seen |") && markdown.contains("3 of "), "{markdown}");
    assert!(d.out(&[PATTERN, "-o", "out.txt"]).is_empty());
    assert_eq!(std::fs::read_to_string(d.0.join("out.txt")).unwrap(), d.out(&[PATTERN]));
    let lines = d.json(&[PATTERN, "--granularity", "lines", "--focus", "main", "--sample-type", "alloc_space"]);
    assert_eq!((&lines["sample_type"], &lines["filters"]["focus"]), (&"alloc_space".into(), &"main".into()));
    assert!(lines["rows"].as_array().unwrap().iter().any(|r| r["line"].is_i64()));
}

/// A history of six or more builds shows lasting changes by default.
#[test]
fn rows_depend_on_the_builds() {
    let d = Builds::new("default", false);
    let mut files: Vec<String> = (0..6).map(|i| format!("build-{i}.pb.gz")).collect();
    for (i, file) in files.iter().enumerate() {
        std::fs::copy(d.0.join(format!("build-{}/heap.pb.gz", 9 + i % 3)), d.0.join(file)).unwrap();
    }
    let kind = |args: &[&str]| d.json(args)["kind"].as_str().unwrap().to_owned();
    let kind_of = |files: &[String], more: &[&str]| {
        kind(&[&files.iter().map(String::as_str).collect::<Vec<_>>()[..], more].concat())
    };
    assert_eq!(kind_of(&files, &[]), "shifts");
    assert_eq!(kind_of(&files, &["--rows", "movers"]), "movers");
    assert_eq!(kind_of(&files, &["--base", "build-9/heap.pb.gz"]), "movers");
    assert_eq!(kind_of(&files[..5], &[]), "movers");
    let args: Vec<&str> = files.iter().map(String::as_str).collect();
    let dense = d.json(&[&args[..], &["--rows", "values", "--dense"]].concat());
    let sparse = d.json(&[&args[..], &["--rows", "values"]].concat());
    let rows = |json: &Value| json["rows"].as_array().unwrap().len();
    assert!(rows(&dense) > rows(&sparse) && rows(&dense) % 6 == 0, "{} {}", rows(&dense), rows(&sparse));
    // Lasting changes have causes in each format. Other rows have causes only in text for humans.
    let explained = d.json(&[&args[..], &["--explain"]].concat());
    assert!(explained["rows"].as_array().unwrap().iter().all(|row| row["cause"].is_string()));
    for refused in [&["--dense"][..], &["--explain", "--rows", "movers", "--format", "json"]] {
        assert_eq!(d.run(&[&args[..], refused].concat()).status.code(), Some(2), "{refused:?}");
    }
    // The page is written from the builds around each change, which are read again.
    assert!(d.out(&[&args[..], &["-o", "history.html"]].concat()).is_empty());
    let page = std::fs::read_to_string(d.0.join("history.html")).unwrap();
    assert!(page.contains("\"courses\":{"), "no courses");
    files.truncate(3);
    let three: Vec<&str> = files.iter().map(String::as_str).chain(["-o", "movers.html"]).collect();
    assert!(d.out(&three).is_empty());
    assert!(std::fs::read_to_string(d.0.join("movers.html")).unwrap().contains("\"lasting\":false"));
}

#[test]
fn each_build_is_compared_with_a_given_base() {
    let d = Builds::new("base", false);
    let args = ["build-9/heap.pb.gz", "build-10/heap.pb.gz", "--base", "build-11/heap.pb.gz"];
    let json = d.json(&[&args[..], &["--rows", "steps"]].concat());
    assert_eq!((keys(&json), &json["against"]), (vec!["base", "build-9", "build-10"], &"first".into()));
    assert!(json["rows"].as_array().unwrap().iter().all(|r| r["from"] == "base"));
    assert!(d.out(&args).starts_with("3 builds by key, base to build-10; each is compared with base\n"));
    let out = d.run(&[PATTERN, "--base", "none.pb"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&out.stderr).lines().count(), 1);
}

#[test]
fn a_bad_build_is_named_and_does_not_stop_the_run() {
    let d = Builds::new("bad", true);
    let out = d.run(&[PATTERN, "-n", "1"]);
    let (text, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(2));
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("pprofdiff: build-10/heap.pb.gz: "), "{stderr}");
    assert_eq!(lines[1], "pprofdiff: 1 of 3 builds failed");
    assert!(text.contains("failed: build-10/heap.pb.gz: "), "{text}");
    let cells: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(cells[cells.len() - 7..cells.len() - 1], ["9", "#0", "11", "#2", "9", "11"], "{text}");
}

#[test]
fn builds_of_another_kind_are_reported_once_with_a_pattern_for_the_others() {
    let d = Builds::new("kinds", false);
    let folder = corpus("faults/freight").display().to_string();
    let out = d.run(&[&format!("{folder}/base-*.pb.gz"), "-n", "1"]);
    let (text, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(2));
    let why = "there is no sample type \"cpu\"; there are alloc_objects, alloc_space, inuse_objects, inuse_space";
    let line = format!("3 builds, such as 1.heap: {why}; select the others with '{folder}/base-*.cpu.pb.gz'");
    assert_eq!(stderr, format!("pprofdiff: {line}\npprofdiff: 3 of 6 builds failed\n"));
    assert_eq!(text.lines().filter(|text_line| **text_line == format!("failed: {line}")).count(), 1, "{text}");
}

#[test]
fn invalid_arguments_are_one_line_errors() {
    let d = Builds::new("refused", false);
    for args in [
        &["none-*/x.pb"][..],
        &["a["],
        &[],
        &[PATTERN, "--granularity", "addresses"],
        &[PATTERN, "--normalize", "2"],
        &[PATTERN, "--focus", "("],
        &[PATTERN, "--order", "given"],
        &[PATTERN, "--sample-type", "none"],
        &["none-1.pb", "none-2.pb"],
    ] {
        let out = d.run(args);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}

/// Sorted by key, the builds of the branch would precede those of main, and a regression of the branch would look like
/// an improvement.
#[test]
fn builds_with_two_names_are_not_a_history() {
    let d = Builds::new("two-names", false);
    let mut names = Vec::new();
    for name in ["main", "branch"] {
        for i in 1..=3 {
            let file = format!("{name}-{i}.pb.gz");
            std::fs::copy(d.0.join("build-9/heap.pb.gz"), d.0.join(&file)).unwrap();
            names.push(file);
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let out = d.run(&names);
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(
        error.contains("branch-1.pb.gz to branch-3.pb.gz and main-1.pb.gz to main-3.pb.gz have no order"),
        "{error}"
    );
    // The suggestions in the error work.
    assert!(error.contains("--base") && error.contains("--order given"), "{error}");
    assert_eq!(keys(&d.json(&[&names[..], &["--order", "given"]].concat()))[0], "main-1.pb.gz");
    let sides = [&["--base"], &names[..3], &["--new"], &names[3..]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    assert!(command.current_dir(&d.0).args(&sides).output().unwrap().status.success());
}
