//! The command as scripts use it: verbs, exit codes, one line on standard error, pipes.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn corpus(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file).display().to_string()
}

fn story() -> [String; 2] {
    [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")]
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    command().args(args).output().unwrap()
}

/// Standard output of a run that must succeed and say nothing on standard error.
fn stdout(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

/// The one line that a run which must fail with code 2 leaves on standard error.
fn failure(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?} wrote to standard output");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: not one line: {stderr}");
    assert!(stderr.starts_with("pprofdiff: "), "{stderr}");
    stderr
}

fn temp(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pprofdiff-cli-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

#[test]
fn the_default_verb_is_diff_and_options_stand_anywhere() {
    let [base, new] = story();
    let plain = stdout(&[&base, &new, "-n", "5", "--sort", "cum"]);
    assert_eq!(plain, stdout(&["diff", &base, &new, "-n", "5", "--sort", "cum"]));
    assert_eq!(plain, stdout(&["-n", "5", "--sort", "cum", &base, &new]));
    assert_eq!(plain, stdout(&["--base", &base, "--new", &new, "-n5", "--sort=cum"]));
    assert!(plain.contains("cpu (nanoseconds): 1.90s -> 2.93s, +1.03s (+54.21%)"), "{plain}");
    assert!(plain.contains("logmill/headers.tableInsensitive"), "{plain}");
    assert_eq!(plain.lines().filter(|l| l.contains("logmill/")).count(), 5, "{plain}");
}

#[test]
fn every_verb_answers_for_one_profile_and_for_two() {
    let [base, new] = story();
    for verb in
        [&["top"][..], &["tree"], &["peek", "tableInsensitive"], &["stacks"], &["stacks", "--labels"], &["labels"]]
    {
        let one = json(&[verb, &[&base, "--format", "json"]].concat());
        let two = json(&[verb, &[&base, &new, "--format", "json"]].concat());
        let kind = if verb == ["top"] { "diff" } else { verb[0] };
        assert_eq!((&one["kind"], &two["kind"]), (&verb[0].into(), &kind.into()));
        assert_eq!(one["schema"], "pprofdiff/1");
        assert_eq!(two["rows_total"].as_u64().unwrap() as usize, two["rows"].as_array().unwrap().len());
        assert!(one["profile"]["paths"][0].as_str().unwrap().ends_with("story-cpu.base.pb.gz"));
        assert_eq!((&two["total_base"], &two["total_delta"]), (&1_900_000_000.into(), &1_030_000_000.into()));
        for format in ["text", "csv", "markdown"] {
            assert!(!stdout(&[verb, &[&base, &new, "--format", format]].concat()).is_empty());
        }
    }
    assert_eq!(json(&["info", &base, &new, "--format", "json"])["profiles"][1]["samples"], 184);
    assert!(stdout(&["info", &base]).contains("cpu (nanoseconds): 1.90s  (default)"));
}

#[test]
fn rows_are_limited_in_text_and_only_where_asked_in_json() {
    let [base, new] = story();
    let rows =
        |args: &[&str]| json(&[&[&base, &new, "--format", "json"], args].concat())["rows"].as_array().unwrap().len();
    assert_eq!(rows(&[]), 156);
    assert_eq!(rows(&["-n", "0"]), 156);
    assert_eq!(rows(&["-n", "3"]), 3);
    assert!(stdout(&[&base, &new]).contains("20 of 156 frames"));
    assert!(stdout(&[&base, &new, "-n", "0"]).contains("\n156 frames"));
    assert_eq!(stdout(&[&base, &new, "--format", "csv"]).lines().count(), 157);
}

#[test]
fn filters_and_normalization_are_in_the_result() {
    let [base, new] = story();
    let v = json(&[&base, &new, "--format", "json", "--focus", "tableInsensitive", "--normalize", "total"]);
    assert_eq!(v["filters"]["focus"], "tableInsensitive");
    assert_eq!(v["normalize"]["mode"], "total");
    assert!((v["normalize"]["factor"].as_f64().unwrap() - 190.0 / 293.0).abs() < 1e-12);
    assert_eq!(v["total_base"], v["total_new"]);
    let warned = json(&[&base, &new, "--format", "json", "--hide", "no such frame"]);
    assert_eq!(warned["warnings"][0], "hide \"no such frame\" matched nothing");
    let text = stdout(&[&base, &new, "--normalize", "0.5", "--granularity", "lines"]);
    assert!(text.contains("normalized by factor: new x 0.5") && text.contains("granularity=lines"), "{text}");
}

#[test]
fn a_page_goes_to_a_file_or_a_pipe_and_opens_where_that_is_wanted() {
    let [base, new] = story();
    let path = temp("page.html");
    let file = path.to_str().unwrap();
    assert_eq!(stdout(&[&base, &new, "--format", "html", "-o", file]), "");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("logmill/names.canonical"));
    assert_eq!(stdout(&[&base, &new, "--format", "html"]), page);
    assert!(stdout(&["top", &base, "--format", "html", "--min-width", "0.5"]).len() < page.len());
    for verb in [&["tree"][..], &["peek", "x"], &["stacks"], &["labels"]] {
        let reason = failure(&[verb, &[&base, &new, "--format", "html"]].concat());
        assert!(reason.contains("can't be written as a page"), "{reason}");
    }
    assert!(failure(&[&base, &new, "--format", "html", "-n", "3"]).contains("--max-frames"));
    assert!(failure(&[&base, &new, "--format", "html", "--min-width", "2"]).contains("0 to 1"));
    assert!(failure(&[&base, &new, "--open"]).contains("--format html"));
    assert!(failure(&[&base, &new, "--format", "html", "--open"]).contains("-o"));
}

/// A browser that only notes what it was asked to open.
#[test]
#[cfg(target_os = "linux")]
fn open_hands_the_page_to_the_browser() {
    use std::os::unix::fs::PermissionsExt;
    let [base, new] = story();
    let (bin, noted) = (temp("bin"), temp("opened"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("xdg-open"), format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", noted.display())).unwrap();
    std::fs::set_permissions(bin.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let page = temp("opened.html");
    let run = |path: &Path| {
        let args = [&base, &new, "--format", "html", "--open", "-o", page.to_str().unwrap()];
        command().args(args).env("PATH", path).output().unwrap()
    };
    let output = run(&bin);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&noted).unwrap(), page.to_str().unwrap());
    let output = run(&temp("nothing here"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("is written, but no browser would open it") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn csv_and_folded_say_warnings_on_standard_error() {
    let [base, new] = story();
    for format in ["csv", "folded", "pprof"] {
        let out = temp("warned").display().to_string();
        let output = run(&[&base, &new, "--format", format, "--focus", "no such frame", "-o", &out]);
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "pprofdiff: warning: focus \"no such frame\" matched nothing\n", "{format}");
    }
}

#[test]
fn an_empty_filter_is_none() {
    let [base, new] = story();
    let plain = stdout(&[&base, &new]);
    assert_eq!(plain, stdout(&[&base, &new, "--ignore", "", "--focus=", "--tagignore", "", "--tagfocus", ""]));
}

#[test]
fn callers_and_callees_of_nothing_are_an_empty_table() {
    let [base, new] = story();
    assert!(stdout(&["tree", &base, &new, "--focus", "no such frame"]).contains("0 edges"));
}

#[test]
fn a_reopened_diff_knows_what_it_does_not_know() {
    let [base, new] = story();
    let out = temp("reopened.pb.gz").display().to_string();
    stdout(&[&base, &new, "--format", "pprof", "-o", &out]);
    assert!(failure(&[&out, "--normalize", "duration"]).contains("duration"));
    let by_tag = json(&[&out, "--tagfocus", "true", "--format", "json"]);
    assert_eq!(by_tag["rows_total"], 0, "the label that marks the base is not to be seen");
    assert!(stdout(&["info", &out]).contains("a written diff"));
}

#[test]
fn mistakes_end_with_2_and_one_line() {
    let [base, new] = story();
    assert!(failure(&["nothing.pb.gz", &new]).contains("nothing.pb.gz: No such file"));
    assert!(failure(&[&corpus("README.md"), &new]).contains("README.md: "));
    assert!(failure(&[&corpus("legacy/gperftools-cpu.prof"), &new]).contains("go tool pprof -proto"));
    assert!(failure(&[&base]).contains("pprofdiff top"));
    assert!(failure(&[&base, &new, "--sample-type", "heap"]).contains("there are samples, cpu"));
    assert!(failure(&[&base, &new, "--focus", "("]).contains("focus"));
    assert!(failure(&[&base, &new, "--granularity", "words"]).contains("words"));
    assert!(failure(&[&base, &new, "--normalize", "zero"]).contains("normalize"));
    assert!(failure(&[&base, &new, "--normalize", "0"]).contains("positive"));
    assert!(failure(&[&base, &new, "third.pb.gz"]).contains("third.pb.gz"));
    assert!(failure(&["peek", "no such frame", &base]).contains("no frame matches"));
    assert!(failure(&["merge", &base]).contains("--output"));
    assert!(failure(&["peek", "x", &base, "--format", "folded"]).contains("folded"));
    assert!(failure(&[&base, &new, "--format", "pprof", "-n", "3"]).contains("-n"));
    assert!(failure(&["/etc/passwd", &new]).contains("not a profile"));
    assert!(failure(&["-", "-"]).contains("only once"));
    assert!(failure(&[]).contains("no profile is given"));
    assert!(failure(&["--no-such-option"]).contains("--help"));
    assert!(failure(&[&base, &new, "--inflated-limit", "100"]).contains("limit of 100 bytes"));
    assert!(failure(&[&corpus("go-heap.base.pb.gz"), &new]).contains("no sample type is common"));
    assert!(failure(&[&base, &new, "-o", "/no/such/directory/x"]).contains("/no/such/directory/x"));
    assert!(failure(&[&corpus("."), &new]).contains("directory"));
}

#[test]
fn help_and_version_are_no_errors() {
    assert!(stdout(&["--help"]).contains("Examples:"));
    assert!(stdout(&["peek", "--help"]).contains("--focus"));
    assert!(stdout(&["--version"]).starts_with("pprofdiff 0."));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&["completions", shell]).contains("pprofdiff"));
    }
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let [base, new] = story();
    let mut child = command().args([&base, "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(&new).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), stdout(&[&base, &new]).replace(&new, "-"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let [base, new] = story();
    for args in
        [&["tree", &base, &new, "-n", "0"][..], &["stacks", &base, &new, "--format", "json"], &["completions", "bash"]]
    {
        let mut child = command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn colour_is_for_terminals_only() {
    let [base, new] = story();
    assert!(!stdout(&[&base, &new]).contains('\x1b'));
}

#[test]
fn a_file_that_is_named_like_a_verb_is_written_with_its_directory() {
    let dir = temp("verbs");
    std::fs::create_dir_all(&dir).unwrap();
    let [base, new] = story();
    std::fs::copy(&base, dir.join("top")).unwrap();
    std::fs::copy(&new, dir.join("tree")).unwrap();
    let output = command().current_dir(&dir).args(["./top", "./tree", "-n1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("base  ./top"));
}

#[test]
fn a_written_diff_opens_again_and_merged_profiles_add_up() {
    let [base, new] = story();
    for name in ["diff.pb.gz", "diff.pb", "diff.zst"] {
        let out = temp(name).display().to_string();
        assert_eq!(stdout(&[&base, &new, "--format", "pprof", "-o", &out]), "");
        let rows =
            |args: &[&str]| json(&[args, &["--format", "json", "--granularity", "lines"]].concat())["rows"].clone();
        assert!(rows(&[&out]) == rows(&[&base, &new]), "{name}");
    }
    let sum = temp("sum.pb.gz").display().to_string();
    stdout(&["merge", &base, &new, &base, "-o", &sum]);
    assert_eq!(json(&["top", &sum, "--format", "json"])["total"], 1_900_000_000i64 * 2 + 2_930_000_000);
}

#[test]
fn folded_stacks_have_a_column_a_side() {
    let [base, new] = story();
    let folded = stdout(&[&base, &new, "--format", "folded"]);
    let sums = folded.lines().fold((0i64, 0i64), |(b, n), line| {
        let mut parts = line.rsplitn(3, ' ');
        let mut number = || parts.next().unwrap().parse::<i64>().unwrap();
        let (new, base) = (number(), number());
        assert!(parts.next().unwrap().contains(';'), "{line}");
        (b + base, n + new)
    });
    assert_eq!(sums, (1_900_000_000, 2_930_000_000));
}
