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
    assert!(plain.contains("cpu (nanoseconds): 1.90s -> 2.93s  +1.03s  +54.2%\n"), "{plain}");
    assert!(plain.contains("logmill/headers.tableInsensitive"), "{plain}");
    assert_eq!(plain.lines().filter(|l| l.contains("logmill/")).count(), 5, "{plain}");
}

#[test]
fn every_verb_answers_for_one_profile_and_for_two() {
    let [base, new] = story();
    for verb in [
        &["top"][..],
        &["tree"],
        &["peek", "tableInsensitive"],
        &["stacks"],
        &["stacks", "--labels"],
        &["traces"],
        &["labels"],
    ] {
        let one = json(&[verb, &[&base, "--format", "json"]].concat());
        let two = json(&[verb, &[&base, &new, "--format", "json"]].concat());
        // Traces are a table of stacks with labels, which people read from the leaf.
        let table = if verb == ["traces"] { "stacks" } else { verb[0] };
        let kind = if verb == ["top"] { "diff" } else { table };
        assert_eq!((&one["kind"], &two["kind"]), (&table.into(), &kind.into()));
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
        let told = format!("{} can't be written as html; it can as text, json", verb[0]);
        assert!(reason.contains(&told), "{reason}");
    }
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let sources = ["--base-source", story.to_str().unwrap(), "--new-source", story.to_str().unwrap()];
    let line = "names.Same(table[i].name, name)";
    for profiles in [&[&*base, &new][..], &["diff", &base, &new], &["top", &base]] {
        let listed = stdout(&[profiles, &["--format", "html"], &sources].concat());
        assert!(listed.contains(line) && listed.contains("table.go"));
        assert!(failure(&[profiles, &sources].concat()).contains("--format html"));
    }
    assert!(!page.contains(line));
    assert!(failure(&[&base, &new, "--format", "html", "-n", "3"]).contains("--max-frames"));
    assert!(failure(&[&base, &new, "--format", "html", "--min-width", "2"]).contains("0 to 1"));
    assert!(failure(&[&base, &new, "--open"]).contains("-o"));
    assert!(failure(&[&base, &new, "--format", "text", "--open"]).contains("--format html"));
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

/// A file that is known and not read, for which there is advice.
fn recording() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recording.data");
    std::fs::write(&path, b"PERFILE2\x68\0").unwrap();
    path.display().to_string()
}

#[test]
fn mistakes_end_with_2_and_one_line() {
    let [base, new] = story();
    assert!(failure(&["nothing.pb.gz", &new]).contains("nothing.pb.gz: No such file"));
    assert!(failure(&[&corpus("README.md"), &new]).contains("README.md: "));
    assert!(failure(&[&recording(), &new]).contains("this is perf's own file; have perf write it as text"));
    assert!(failure(&[&base]).contains("pprofdiff top"));
    let folded = failure(&["merge", &base, &new, "-o", "nothing.folded"]);
    assert!(
        folded.contains("nothing.folded: merge writes a profile.proto; pprofdiff convert makes folded"),
        "{folded}"
    );
    assert!(failure(&[&base, &new, "--sample-type", "heap"]).contains("there are samples, cpu"));
    assert!(failure(&[&base, &new, "--focus", "("]).contains("focus"));
    assert!(failure(&[&base, &new, "--granularity", "words"]).contains("words"));
    assert!(failure(&[&base, &new, "--normalize", "zero"]).contains("normalize"));
    assert!(failure(&[&base, &new, "--normalize", "0"]).contains("positive"));
    assert!(failure(&[&base, &new, "third.pb.gz"]).contains("third.pb.gz"));
    assert!(failure(&["peek", "no such frame", &base]).contains("no frame matches"));
    assert!(failure(&["peek", "tableinsensitve$", &base]).contains("; like it are logmill/headers.tableInsensitive"));
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
    let named = temp("named.pb.gz").display().to_string();
    for without_base in [
        &["top", &new][..],
        &["info", &new],
        &["merge", &new, &new, "-o", &named],
        &["convert", &new, "-o", &named],
        &["delta", &base, &new, "-o", &named],
        &["series", &base, &new],
        &["serve", &base, &new],
    ] {
        let said = failure(&[without_base, &["--base-binary", "app"]].concat());
        assert!(said.contains("base_binary is for a comparison of two sides"), "{without_base:?}: {said}");
    }
}

#[test]
fn the_environment_limits_what_is_read() {
    let with = |limit: &str, more: &[&str]| {
        let output = command().env("PPROFDIFF_MAX_INFLATED", limit).args(story()).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = with("100", &[]);
    assert!(code == 2 && said.contains("limit of 100 bytes"), "{said}");
    // What is said on the command line comes first; a variable that is empty says nothing.
    assert_eq!(with("100", &["--inflated-limit", "100000000"]).0, 0);
    assert_eq!(with("", &[]).0, 0);
    let (code, said) = with("2G", &[]);
    assert!(
        code == 2 && said.lines().count() == 1 && said.contains("PPROFDIFF_MAX_INFLATED is the most bytes"),
        "{said}"
    );
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

/// In a row of the table, whichever columns have it.
#[test]
fn what_is_equal_reads_the_same() {
    let mut equal = 0;
    for name in ["story-cpu", "go-heap", "rust-cpu", "node-time", "go-mutex"] {
        let [base, new] = ["base", "new"].map(|side| corpus(&format!("{name}.{side}.pb.gz")));
        let args = ["top", &base, &new, "--sort", "flat", "-n", "1000"];
        let json: Value = serde_json::from_str(&stdout(&[&args[..], &["--format", "json"]].concat())).unwrap();
        let columns = ["flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta"];
        let text = stdout(&args);
        let rows = text.lines().skip_while(|line| !line.starts_with("flat:")).skip(1);
        let mut n = 0;
        for (row, line) in json["rows"].as_array().unwrap().iter().zip(rows) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let mut seen = std::collections::HashMap::new();
            // Growth and share stand between.
            for (column, at) in columns.iter().zip([0, 1, 2, 5, 6, 7]) {
                let value = row[*column].as_i64().unwrap();
                let shown = cells[at].trim_start_matches(['+', '-']);
                equal += usize::from(seen.insert(value.abs(), shown).is_some_and(|before| {
                    assert_eq!(before, shown, "{name}: {line}");
                    true
                }));
            }
            n += 1;
        }
        assert!(n > 5, "{text}");
    }
    assert!(equal > 500, "{equal}");
}

#[test]
fn every_verb_has_a_page_of_the_manual() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual").join("pages");
    let _ = std::fs::remove_dir_all(&dir);
    stdout(&["man", &dir.display().to_string()]);
    let mut pages: Vec<_> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    let help = stdout(&["--help"]);
    let verbs = help.split("Verbs:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A verb stands behind two blanks, the lines that go on with what it does behind more.
    let verbs = verbs.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let verbs = verbs.map(|line| line.split(' ').next().unwrap()).filter(|&verb| verb != "help");
    let mut wanted: Vec<String> = verbs.map(|verb| format!("pprofdiff-{verb}.1")).collect();
    wanted.push("pprofdiff.1".to_owned());
    wanted.sort();
    assert!(wanted.len() > 15, "{wanted:?}");
    assert_eq!(pages, wanted);
    let peek = std::fs::read_to_string(dir.join("pprofdiff-peek.1")).unwrap();
    assert!(peek.contains("callers and callees") && peek.contains("focus"), "{peek}");
    let file = dir.join("pprofdiff.1").display().to_string();
    assert!(failure(&["man", &file]).contains(&file));
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
fn deltas_of_snapshots_are_written_one_for_each_two() {
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let out = temp("delta.pb.gz").display().to_string();
    assert_eq!(stdout(&["delta", &snapshot(3), &snapshot(4), "-o", &out]), "");
    let allocated =
        |file: &str| json(&["top", file, "--sample-type", "alloc_space", "--format", "json"])["total"].clone();
    let difference = allocated(&snapshot(4)).as_i64().unwrap() - allocated(&snapshot(3)).as_i64().unwrap();
    assert_eq!(allocated(&out), difference);
    assert!(stdout(&["info", &out]).contains("pprofdiff delta: cumulative alloc_objects alloc_space;"));

    let all: Vec<String> = (0..9).map(snapshot).collect();
    let template = temp("{index}.delta.pb").display().to_string();
    let files: Vec<&str> = all.iter().map(String::as_str).collect();
    stdout(&[&["delta"], &files[..], &["-o", &template]].concat());
    let sum: i64 = (1..9).map(|i| allocated(&template.replace("{index}", &i.to_string())).as_i64().unwrap()).sum();
    assert_eq!(sum, allocated(&all[8]).as_i64().unwrap() - allocated(&all[0]).as_i64().unwrap());

    // Packed as told.
    let size = |name: &str, level: &str| {
        let out = temp(name).display().to_string();
        stdout(&["delta", &all[3], &all[4], "-o", &out, "--level", level]);
        std::fs::metadata(out).unwrap().len()
    };
    assert!(size("1.pb.gz", "1") > size("9.pb.gz", "9") && size("1.zst", "1") > size("19.zst", "19"));
}

#[test]
fn a_restart_between_snapshots_is_always_said() {
    let snapshot = |i: usize| corpus(&format!("series/mutex-{i:02}.pb.gz"));
    let (before, after, out) = (snapshot(8), snapshot(9), temp("reset.pb.gz").display().to_string());
    let line = failure(&["delta", &before, &after, "-o", &out]);
    assert!(line.contains("mutex-09.pb.gz: counters went down in ") && line.contains("--on-reset pass"), "{line}");
    for (policy, words) in [("pass", "the snapshot is passed as it is"), ("clamp", "these count as unchanged")] {
        let output = run(&["delta", &before, &after, "-o", &out, "--on-reset", policy]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.starts_with("pprofdiff: warning: ") && stderr.lines().count() == 1);
        assert!(stdout(&["info", &out]).contains(words));
    }
}

#[test]
fn mistakes_about_snapshots_end_with_2_and_one_line() {
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let (a, b, c) = (snapshot(1), snapshot(2), snapshot(3));
    let out = temp("none.pb.gz").display().to_string();
    assert!(failure(&["delta", &a, "-o", &out]).contains("two snapshots"));
    assert!(failure(&["delta", &a, &b]).contains("--output"));
    assert!(failure(&["delta", &a, &b, &c, "-o", &out]).contains("{index}"));
    assert!(failure(&["delta", &b, &a, "-o", &out]).contains("give the older snapshot first"));
    assert!(failure(&["delta", &a, &corpus("series/mutex-02.pb.gz"), "-o", &out]).contains("cumulative sample types"));
    assert!(failure(&["delta", &a, &b, "-o", &out, "--cumulative", "heap"]).contains("\"heap\""));
    assert!(failure(&["delta", &a, &b, "-o", &out, "--level", "10"]).contains("levels 0 to 9"));
    assert!(failure(&["delta", "-", "-", "-o", &out]).contains("only once"));
    assert!(!Path::new(&out).exists());
    // Naming a gauge is the user's right.
    stdout(&["delta", &a, &b, "-o", &out, "--cumulative", "alloc_space,alloc_objects"]);
    assert!(stdout(&["delta", "--help"]).contains("mutex_duration"));
}

#[test]
fn folded_stacks_have_a_column_a_side() {
    let [base, new] = story();
    let folded = stdout(&[&base, &new, "--format", "folded"]);
    assert!(folded.starts_with("# pprofdiff-folded cpu/nanoseconds base new\n"), "{folded}");
    let sums = folded.lines().skip(1).fold((0i64, 0i64), |(b, n), line| {
        let mut parts = line.rsplitn(3, ' ');
        let mut number = || parts.next().unwrap().parse::<i64>().unwrap();
        let (new, base) = (number(), number());
        assert!(parts.next().unwrap().contains(';'), "{line}");
        (b + base, n + new)
    });
    assert_eq!(sums, (1_900_000_000, 2_930_000_000));
}

#[test]
fn folded_stacks_are_an_input_of_every_verb() {
    let [base, new] = story();
    let path = |name: &str| temp(name).display().to_string();
    let [folded_base, folded_new, diff, bare] = ["base.folded", "new.folded", "diff.folded", "bare.txt"].map(path);
    stdout(&["stacks", &base, "-o", &folded_base]);
    stdout(&["stacks", &new, "-o", &folded_new]);
    stdout(&[&base, &new, "-o", &diff]);
    std::fs::write(&bare, "main;f 3 5\nmain;g 4 4\n").unwrap();
    // Rows are those of the profiles, but for files, which folded stacks do not have.
    let rows = |args: &[&str]| {
        let json = json(&[args, &["--format", "json"]].concat());
        let row = |row: &Value| (row["name"].to_string(), row["flat_base"].clone(), row["cum_new"].clone());
        let mut rows: Vec<_> = json["rows"].as_array().unwrap().iter().map(row).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        (json["sample_type"].clone(), json["unit"].clone(), json["total_delta"].clone(), rows)
    };
    let expected = rows(&[&base, &new]);
    assert_eq!(rows(&[&folded_base, &folded_new]), expected);
    assert_eq!(rows(&["top", &diff]), expected);

    // Of what has no header, the user says what it is.
    let two = ["--input-format", "folded2", "--input-type", "space/bytes"];
    let text = stdout(&[&["top", &bare][..], &two].concat());
    assert!(text.contains("space (bytes): 7B -> 9B"), "{text}");
    let one = stdout(&["stacks", &bare, "--format", "folded"]);
    assert_eq!(one, "main;f_3 5\nmain;g_4 4\n");
    assert!(stdout(&["info", &bare, "--input-type", "space/bytes"]).contains("space"));

    let merged = path("merged.pb.gz");
    stdout(&["merge", &folded_base, &folded_new, "-o", &merged, "--input-format", "folded"]);
    assert!(stdout(&["info", &merged]).contains("cpu"));
    let delta = path("delta.pb.gz");
    let typed = ["--input-type", "alloc_space/bytes"];
    stdout(&[&["delta", &bare, &bare, "-o", &delta][..], &typed].concat());
    assert!(stdout(&["info", &delta]).contains("alloc_space"));
    stdout(&[&["check", &bare, &bare, "--fail-on", "space:total>+5%"][..], &two[2..]].concat());
    let manifest = path("folded.csv");
    std::fs::write(&manifest, format!("base,new\n{folded_base},{folded_new}\n")).unwrap();
    assert!(stdout(&["batch", &manifest, "--input-format", "folded"]).contains("cpu"));
    assert!(stdout(&["series", &folded_base, &folded_new, "--input-format", "folded"]).contains("cpu"));

    // What is insisted on is all that is read.
    let refused = failure(&[&base, &new, "--input-format", "folded"]);
    assert!(refused.contains("story-cpu") && refused.contains("line 1"), "{refused}");
    assert!(failure(&["top", &diff, "--input-format", "folded"]).contains("cpu/nanoseconds base new"));
    assert!(failure(&["top", &bare, "--input-type", "cpu"]).contains("cpu/nanoseconds"));
    let unknown = run(&["top", &bare, "--input-format", "heaps"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("folded2") && unknown.status.code() == Some(2));
}

#[test]
fn call_graphs_are_written_for_graphviz_and_as_pictures() {
    let [base, new] = story();
    for verb in [&["diff"][..], &["top"], &["tree"]] {
        let svg = stdout(&[verb, &[&base, &new, "--format", "svg", "-n", "10"]].concat());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("class=\"node\"").count(), 10);
        assert!(stdout(&[verb, &[&base, &new, "--format", "dot"]].concat()).starts_with("digraph"));
    }
    let ranked =
        |sort: &[&str]| stdout(&[&["top", &base, "--format", "dot", "-n", "3", "--node-fraction", "0"], sort].concat());
    assert!(ranked(&["--sort", "cum"]).contains("main.run") && ranked(&["--sort", "flat"]) != ranked(&[]));
    let all = stdout(&["top", &base, "--format", "dot", "-n0", "--node-fraction", "0", "--edge-fraction=0"]);
    let rows = json(&["top", &base, "--format", "json"])["rows_total"].as_u64().unwrap() as usize;
    assert_eq!(
        all.lines().filter(|l| l.starts_with('N') && l.contains(" [label") && !l.contains(" -> ")).count(),
        rows
    );
    for args in [&["stacks", &base][..], &["peek", "main", &base], &["labels", &base], &["stacks", "--labels", &base]] {
        assert!(failure(&[args, &["--format", "dot"]].concat()).contains("can't be written as dot"));
        let scope = [args, &["--format", "speedscope"]].concat();
        assert!(args[0] == "stacks" && args.len() == 2 || failure(&scope).contains("can't be written as speedscope"));
    }
    assert!(failure(&[&base, &new, "--format", "svg", "--node-fraction", "7"]).contains("from 0 to 1"));
}

#[test]
fn the_outputs_ending_chooses_the_format() {
    let [base, new] = story();
    for (name, begin) in [
        ("ending.json", "{\"schema\": \"pprofdiff/1\", \"kind\": \"diff\""),
        ("ending.csv", "name,file,line"),
        ("ending.md", "**cpu**"),
        ("ending.svg", "<svg "),
        ("ending.dot", "digraph"),
        ("ending.html", "<!doctype html>"),
        ("ending.speedscope.json", "{\"$schema\""),
        ("ending.folded", ""),
        ("ending", "base  "),
        ("ending.txt", "base  "),
    ] {
        let path = temp(name);
        stdout(&[&base, &new, "-o", path.to_str().unwrap()]);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.starts_with(begin) && !written.is_empty(), "{name}: {}", &written[..50]);
        // What is named counts, whatever the ending.
        stdout(&[&base, &new, "--format", "csv", "-o", path.to_str().unwrap()]);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("name,"), "{name}");
    }
    let written = temp("ending.pb.gz");
    stdout(&[&base, &new, "-o", written.to_str().unwrap()]);
    assert!(stdout(&["top", written.to_str().unwrap()]).contains("base  "));
    let reason = failure(&[&base, &new, "-o", temp("ending.xyz").to_str().unwrap()]);
    assert!(reason.contains("ending.xyz") && reason.contains(".svg (svg)"), "{reason}");
    let reason = failure(&["labels", &base, "-o", temp("labels.svg").to_str().unwrap()]);
    assert!(reason.contains("labels can't be written as svg; it can as text, json, csv, markdown"), "{reason}");
}

/// A profile of one function in a file, with one sample on a line.
fn profile_in(name: &str, file: &str, line: i64) -> String {
    use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
    let p = Profile {
        string_table: ["", "cpu", "nanoseconds", "y.f", file].iter().map(|s| s.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: vec![Function { id: 1, name: 3, filename: 4, start_line: line - 1, ..Default::default() }],
        location: vec![Location { id: 1, line: vec![Line { function_id: 1, line, column: 0 }], ..Default::default() }],
        sample: vec![Sample { location_id: vec![1], value: vec![1_000_000], label: vec![] }],
        ..Default::default()
    };
    let path = temp(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, p.load(name).unwrap().to_bytes(&Default::default()).unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn files_of_two_checkouts_compare_once_paths_are_trimmed() {
    let base = profile_in("trim/main/cpu.pb.gz", "/root/go/pkg/mod/github.com/x/y@v1.2.3/z.go", 7);
    let new = profile_in("trim/branch/cpu.pb.gz", "/home/ci/mod/github.com/x/y@v1.2.4/z.go", 7);
    let trim = "--trim-path=/root/go/pkg/mod:/home/ci/mod/";
    for granularity in ["files", "lines", "filefunctions"] {
        let granularity = format!("--granularity={granularity}");
        let plain = json(&[&base, &new, &granularity, "--format=json"]);
        assert_eq!((&plain["rows_total"], &plain["trim_path"]), (&2.into(), &Value::Array(vec![])), "{plain}");
        // An option without a value is none: scripts pass variables that are not set.
        assert_eq!(json(&[&base, &new, &granularity, "--format=json", "--trim-path="]), plain);
        let trimmed = json(&[&base, &new, &granularity, "--format=json", trim]);
        let row = &trimmed["rows"][0];
        assert_eq!((&trimmed["rows_total"], row["status"].as_str()), (&1.into(), Some("same")), "{trimmed}");
        assert_eq!(row["file"], "github.com/x/y/z.go");
        assert!(stdout(&[&base, &new, &granularity, trim]).contains("trim_path=/root/go/pkg/mod:/home/ci/mod/"));
        assert!(stdout(&["stacks", &base, &new, &granularity, trim]).contains("github.com/x/y/z.go"));
        let series = json(&["series", &base, &new, &granularity, trim, "--format=json", "--rows=values"]);
        assert!(series.to_string().contains("\"github.com/x/y/z.go\"") && !series.to_string().contains("@v1"));
    }
    let (main, branch) = (temp("trim/main").display().to_string(), temp("trim/branch").display().to_string());
    let batch = stdout(&["batch", &main, &branch, "--granularity=files", trim, "--format=jsonl"]);
    assert!(batch.contains("\"github.com/x/y/z.go\"") && !batch.contains("@v1"), "{batch}");

    // A listing needs no option to bring the sides together; sources are looked for with their versions.
    let sources = temp("trim/mod/github.com/x/y@v1.2.4/z.go");
    std::fs::create_dir_all(sources.parent().unwrap()).unwrap();
    std::fs::write(&sources, "line\n".repeat(9)).unwrap();
    let folder = temp("trim/mod").display().to_string();
    for trim in [&[][..], &[trim]] {
        let listed = json(&[&["list", "y.f", &base, &new, "--format=json", "--new-source", &folder], trim].concat());
        let [routine] = &listed["routines"].as_array().unwrap()[..] else { panic!("{listed}") };
        assert_eq!(routine["new_source"].as_str(), sources.to_str(), "{listed}");
        let expected = if trim.is_empty() { "/home/ci/mod/github.com/x/y@v1.2.4/z.go" } else { "github.com/x/y/z.go" };
        assert_eq!(routine["file"], expected);
    }
}

/// What a command writes to a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(dir: &Path, args: &[&str]) -> String {
    let words: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_pprofdiff"), words.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = script.output().unwrap_or_else(|e| panic!("cannot run `script` (util-linux): {e}"));
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_the_working_directory_has_the_new_sides_sources() {
    let [base, new] = story();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let list = ["list", "tableInsensitive", &base, &new];
    let shown = on_a_terminal(&sources, &list);
    assert!(shown.contains("source ./logmill/headers/table.go\n"), "{shown}");
    assert!(shown.contains("note: no source of the base: lines are paired by their numbers"), "{shown}");
    assert!(shown.contains("names.Same(table[i].name, name)"), "{shown}");
    assert!(shown.ends_with("name its folder with --base-source DIR\n"), "{shown}");
    // What is named counts alone.
    let named = on_a_terminal(&sources, &[&list[..], &["--base-source", "logmill"]].concat());
    assert!(named.ends_with("no source of the new side was found: name its folder with --new-source DIR\n"), "{named}");
    // Nobody looks at a pipe, a file or JSON.
    let there = |args: &[&str]| {
        let output = command().args(args).current_dir(&sources).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let hint = "no source was found: name the folders with --base-source DIR and --new-source DIR, \
                or one for both with --source-path DIR\n";
    assert!(there(&list).ends_with(hint), "{}", there(&list));
    let file = temp("listing.txt").display().to_string();
    on_a_terminal(&sources, &[&list[..], &["-o", &file]].concat());
    assert!(std::fs::read_to_string(&file).unwrap().ends_with(hint));
    let as_json = on_a_terminal(&sources, &[&list[..], &["--format", "json"]].concat());
    assert!(as_json.contains("\"new_source\":null") && !as_json.contains("--source-path"), "{as_json}");
    let one = there(&["list", "tableInsensitive", &base]);
    assert!(one.ends_with("no source was found: name its folder with --source-path DIR\n"), "{one}");
    let many = there(&["list", ".", &base, &new, "--source-path", "."]);
    assert!(regex::Regex::new(r"no source was found for \d+ of \d+ functions: name").unwrap().is_match(&many));
}

#[test]
fn list_shows_source_lines_of_functions() {
    let [base, new] = story();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let sources = sources.to_str().unwrap();
    let text = stdout(&["list", "tableInsensitive", &base, &new, "--source-path", sources]);
    let line = text.lines().find(|l| l.contains("names.Same(table[i].name, name)")).unwrap();
    assert!(line.contains("0.33s  1.78s  +1.45s"), "{line}");
    let one = json(&["list", "tableInsensitive", &base, "--format", "json", "--source-path", sources]);
    assert_eq!(one["kind"], "list");
    assert!(one["routines"][0]["source"].as_str().unwrap().ends_with("logmill/headers/table.go"));

    // Only one side has sources, and a prefix is cut off.
    let folder = format!("{sources}/logmill");
    let some = json(&[
        "list",
        "logmill/",
        &base,
        &new,
        "--format=json",
        "--new-source",
        &folder,
        "--trim-path=x:logmill",
        "-n1",
    ]);
    let routines = some["routines"].as_array().unwrap();
    assert_eq!((routines.len(), &routines[0]["base_source"]), (1, &Value::Null));
    assert!(routines[0]["notes"][0].as_str().unwrap().starts_with("no source of the base"), "{some}");
    assert!(!routines[0]["file"].as_str().unwrap().starts_with("logmill/"));

    assert!(failure(&["list", "no such function", &base]).contains("no function matches"));
    assert!(failure(&["list", "(", &base]).contains("regular expression of list"));
    assert!(failure(&["list", ".", &base, "--format", "csv"]).contains("it can as text, json"));
}

/// What rows are ordered by stands first, whatever the rows are: by both costs they have the same order here.
#[test]
fn the_cost_that_rows_are_ordered_by_stands_first() {
    let [base, new] = story();
    for (sort, first) in [("flat", "flat: base"), ("cum", "cum: base")] {
        for view in [&["-n", "1"][..], &["-n", "1", "--focus", "tableInsensitive$"]] {
            let text = stdout(&[&[&base, &new, "--sort", sort][..], view].concat());
            let head = text.lines().find(|line| line.ends_with("frame")).unwrap_or_default();
            assert!(head.trim_start().starts_with(first), "{text}");
        }
    }
}

#[test]
fn a_written_diff_is_no_input_beside_others() {
    let [base, new] = story();
    let out = temp("side.pb.gz").display().to_string();
    stdout(&[&base, &new, "--format", "pprof", "-o", &out]);
    let said = format!("{out}: this is a written diff: ");
    let sides: [&[&str]; 8] = [
        &[&out, &new],
        &[&base, &out],
        &["explain", &base, &out],
        &["list", "names", &out, &new],
        &["series", "--base", &out, &base, &new],
        &["--base", &base, "--base", &out, "--new", &new],
        &["check", &base, &out, "--fail-on", "total>+5%"],
        &["delta", &out, &new, "-o", "none.pb.gz", "--cumulative", "cpu"],
    ];
    for args in sides {
        let line = failure(args);
        assert!(line.contains(&said) && line.contains("the profiles that it was made of"), "{line}");
    }
    // Of many pairs, that one fails.
    let pairs = temp("pairs.csv");
    std::fs::write(&pairs, format!("base,new\n{base},{new}\n{out},{new}\n")).unwrap();
    let output = run(&["batch", &pairs.display().to_string(), "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&said));
    // Diffs add up to the diff of the sums; a profile beside them is of neither side.
    let twice = temp("twice.pb.gz").display().to_string();
    stdout(&["merge", &out, &out, "-o", &twice]);
    assert_eq!(
        json(&[&twice, "--format", "json"])["total"],
        json(&["--base", &base, "--base", &base, "--new", &new, "--new", &new, "--format", "json"])["total"]
    );
    assert!(
        failure(&["merge", &new, &out, "-o", &twice]).contains(&format!("{out}: this is a written diff, and other"))
    );
}

#[test]
fn help_tells_the_level_that_is_used() {
    let help = stdout(&["delta", "--help"]);
    for (packing, ending) in [("gzip", "pb.gz"), ("zstd", "zst")] {
        let (_, after) = help.split_once(&format!("{packing} ")).unwrap();
        let (_, after) = after.split_once("[default: ").unwrap();
        let told = after.split(']').next().unwrap();
        let [a, b] = [3, 4].map(|i| corpus(&format!("series/heap-{i:02}.pb.gz")));
        let written = |name: &str, level: &[&str]| {
            let out = temp(&format!("{name}.{ending}")).display().to_string();
            stdout(&[&["delta", &a, &b, "-o", &out], level].concat());
            std::fs::read(out).unwrap()
        };
        let default = written("default", &[]);
        assert!(default == written("told", &["--level", told]), "{packing}: {told}");
        assert!(default != written("other", &["--level", "6"]), "{packing}");
    }
}

#[test]
fn samples_that_are_gone_are_said() {
    // A snapshot that lost samples: what did not change from it to the next is not in their delta.
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let (grown, out) = (temp("grown.pb.gz").display().to_string(), temp("gone.pb.gz").display().to_string());
    stdout(&["delta", &snapshot(3), &snapshot(4), "-o", &grown]);
    let told = |policy: &[&str]| run(&[&["delta", &snapshot(4), &grown, "-o", &out], policy].concat());
    let line = String::from_utf8(told(&[]).stderr).unwrap();
    assert!(line.contains("--on-reset pass"), "{line}");

    let [a, b] = [
        "1 sample that had counted something is gone; what became of them is not in the delta",
        "1 sample that had counted something is gone",
    ];
    let (before, now) = (temp("three.pb").display().to_string(), temp("two.pb").display().to_string());
    std::fs::write(&before, mutex(&[("f", 3), ("g", 7), ("h", 5)])).unwrap();
    std::fs::write(&now, mutex(&[("g", 8), ("h", 5)])).unwrap();
    let output = run(&["delta", &before, &now, "-o", &out]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("pprofdiff: warning: {out}: {a}\n"));
    assert!(stdout(&["info", &out]).contains(b));
    // More than half of what had counted: a restart.
    std::fs::write(&now, mutex(&[("h", 6)])).unwrap();
    let line = failure(&["delta", &before, &now, "-o", &out]);
    assert!(line.contains("2 of the 3 samples that had counted something are gone, with 10 of 15 of delay"), "{line}");
    assert!(line.contains("--on-reset pass or --on-reset clamp"), "{line}");
    let output = run(&["delta", &before, &now, "-o", &out, "--on-reset", "pass"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("10 of 15 of delay: the process was started anew"));
    assert_eq!(json(&["top", &out, "--format", "json"])["total"], 6);
}

/// A profile of a counter, one function a sample.
fn mutex(samples: &[(&str, i64)]) -> Vec<u8> {
    use pprofdiff::proto;
    use prost::Message as _;

    let texts = ["", "delay", "nanoseconds"].into_iter().chain(samples.iter().map(|(name, _)| *name));
    let ids = 1..=samples.len() as u64;
    proto::Profile {
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        sample: (ids.clone().zip(samples))
            .map(|(id, (_, v))| proto::Sample { location_id: vec![id], value: vec![*v], ..Default::default() })
            .collect(),
        location: (ids.clone())
            .map(|id| proto::Location {
                id,
                line: vec![proto::Line { function_id: id, ..Default::default() }],
                ..Default::default()
            })
            .collect(),
        function: ids.map(|id| proto::Function { id, name: id as i64 + 2, ..Default::default() }).collect(),
        string_table: texts.map(|t| t.as_bytes().to_vec()).collect(),
        ..Default::default()
    }
    .encode_to_vec()
}

#[test]
fn advice_to_copy_and_passwords_are_in_no_log() {
    let [base, _] = story();
    // Nobody reads here at a terminal.
    let line = failure(&[&recording(), &base]);
    assert!(line.contains("have perf write it as text") && !line.contains("perf script"), "{line}");
    for args in [
        &["top", "http://user:secret@127.0.0.1:1/heap"][..],
        &["http://user:secret@127.0.0.1:1/heap", &base],
        &["delta", "http://user:secret@127.0.0.1:1/heap", &base, "-o", "none.pb.gz"],
        &["delta", "http://user:secret@127.0.0.1:1/debug/pprof/profile", "--seconds", "1", "-o", "none.pb.gz"],
        &["delta", "http://user:secret/1@127.0.0.1:1/heap", "--seconds", "1", "-o", "none.pb.gz"],
        &["series", "http://user:secret@127.0.0.1:1/heap"],
        &["top", "a", "b", "http://user:secret@127.0.0.1:1/heap"],
        &["top", &base, "-o", "http://user:secret@127.0.0.1:1/heap"],
    ] {
        let output = run(args);
        let said = [output.stdout, output.stderr].map(|s| String::from_utf8(s).unwrap()).concat();
        assert!(!output.status.success() && said.contains("//***@127.0.0.1:1/"), "{args:?}: {said}");
        assert!(!said.contains("secret") && !said.contains("user"), "{args:?}: {said}");
    }
}

#[test]
fn labels_are_hidden_by_key_in_tables_and_in_what_is_written() {
    let labelled = corpus("go-labels-cpu.new.pb.gz");
    let keys = |args: &[&str]| {
        let rows = json(&[&["labels", "--format", "json"], args].concat())["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let all = keys(&[&labelled]);
    assert!(all.len() > 1, "{all:?}");
    let one = all.first().unwrap().clone();
    let exactly = format!("^{one}$");
    let rest: std::collections::BTreeSet<_> = all.iter().filter(|key| **key != one).cloned().collect();
    assert_eq!(keys(&[&labelled, "--tagshow", &exactly]), [one.clone()].into());
    assert_eq!(keys(&[&labelled, "--taghide", &exactly]), rest);
    assert!(keys(&[&labelled, "--tagshow", &exactly, "--taghide", &exactly]).is_empty());
    // Stacks that only a hidden label tells apart are one.
    let stacks =
        |args: &[&str]| json(&[&["stacks", &labelled, "--format", "json"], args].concat())["rows_total"].clone();
    assert_eq!(stacks(&["--labels", "--taghide", "."]), stacks(&[]));
    assert_ne!(stacks(&["--labels"]), stacks(&[]));
    let out = temp("hidden.pb.gz").display().to_string();
    stdout(&["top", &labelled, "--taghide", &exactly, "--format", "pprof", "-o", &out]);
    assert_eq!(keys(&[&out]), rest);
    let warned = json(&["labels", &labelled, "--tagshow", "no such key", "--format", "json"]);
    assert_eq!(warned["warnings"][0], "tagshow \"no such key\" matched nothing");
    assert!(failure(&["labels", &labelled, "--taghide", "("]).contains("taghide"));
}

#[test]
fn a_diff_for_kcachegrind_has_both_sides_as_events() {
    let [base, new] = story();
    let out = temp("diff.callgrind").display().to_string();
    stdout(&[&base, &new, "-o", &out]);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.starts_with("# callgrind format\npositions: instr line\nevents: cpu_base(nanoseconds) cpu_new("),
        "{text}"
    );
    // What each address cost itself adds up to the totals; the line after a call is what the call cost.
    let lines: Vec<&str> = text.lines().collect();
    let costs = lines.windows(2).filter(|l| !l[0].starts_with("calls=") && l[1].starts_with("0x")).map(|l| {
        let words: Vec<i64> = l[1].split(' ').skip(2).map(|w| w.parse().unwrap()).collect();
        [words[0], words[1]]
    });
    assert_eq!(costs.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]), [1_900_000_000, 2_930_000_000]);
    let call = lines.iter().position(|l| l.starts_with("calls=")).unwrap();
    assert!(lines[call + 1].starts_with("* * ") && lines[call + 1].split(' ').count() == 4, "{}", lines[call + 1]);
    assert!(failure(&[&base, &new, "-n", "3", "--format", "callgrind"]).contains("written whole"));
    assert!(failure(&["labels", &base, "--format", "callgrind"]).contains("can't be written as callgrind"));
}

#[test]
fn traces_are_read_from_the_leaf() {
    let labelled = corpus("go-labels-cpu.new.pb.gz");
    let text = stdout(&["traces", &labelled, "-n", "1"]);
    let rows = json(&["traces", &labelled, "--format", "json", "-n", "1"])["rows"].clone();
    let texts = |column: &str| -> Vec<String> {
        rows[0][column].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect()
    };
    let (labels, mut frames) = (texts("labels"), texts("frames"));
    frames.reverse();
    assert!(!labels.is_empty() && frames.len() > 1);
    let ruler = "-----------+-------------------------------------------------------";
    let block: Vec<&str> = text.split(ruler).nth(1).unwrap().trim_matches('\n').lines().collect();
    let shown: Vec<String> = block[..labels.len()].iter().map(|l| l.trim().replace(":  ", "=")).collect();
    assert_eq!(shown, labels, "{text}");
    // The value stands before the leaf.
    assert!(block[labels.len()].trim_start().starts_with(|c: char| c.is_ascii_digit()), "{text}");
    let shown: Vec<&str> = block[labels.len()..].iter().map(|l| &l[13..]).collect();
    assert_eq!(shown, frames, "{text}");
    assert!(text.trim_end().ends_with(" stacks"), "{text}");
    let [base, new] = story();
    let two = stdout(&["traces", &base, &new, "-n", "1"]);
    let leaf = two.lines().skip_while(|l| !l.starts_with("---")).nth(1).unwrap();
    assert_eq!(leaf.split_whitespace().count(), 4, "{two}");
}

#[test]
fn several_files_on_a_side_are_runs_or_add_up() {
    let path = |build: &str, i: u8| corpus(&format!("faults/freight/{build}-{i}.cpu.pb.gz"));
    let side = |build: &str| [1, 2, 3].map(|i| path(build, i));
    let (base, new) = (side("base"), side("calls"));
    let args = |more: &[&str]| -> Vec<String> {
        let side = |option: &str, files: &[String]| [&[option.to_owned()], files].concat();
        let more: Vec<String> = more.iter().map(|&arg| arg.to_owned()).collect();
        [side("--base", &base), side("--new", &new), more].concat()
    };
    let said = |more: &[&str]| stdout(&args(more).iter().map(String::as_str).collect::<Vec<_>>());
    let means = said(&["--sort", "cum"]);
    assert!(means.contains("base  mean of 3 runs: ") && means.contains("together\n"), "{means}");
    assert!(means.contains("cpu (nanoseconds): 4.02s -> 4.76s  +0.737s  +18.3%  p 0.006 (Mann-Whitney 0.100;"));
    let sums = said(&["--sort", "cum", "--sum"]);
    assert!(
        sums.contains("base  sum of 3: ") && sums.contains("cpu (nanoseconds): 12.06s -> 14.27s  +2.21s  +18.3%\n")
    );
    // Every row that is left is no noise, and the rest is counted.
    let significant = said(&["--sort", "cum", "--significant"]);
    assert!(significant.contains(" of 222 frames;") && !significant.contains("  ~  "), "{significant}");
    assert!(means.contains("  ~  "), "{means}");
    // A view that knows no chance is refused, not shown without.
    for format in ["svg", "html", "folded", "pprof"] {
        let all = args(&["--significant", "--format", format, "-o", "/dev/null"]);
        let output = run(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{format}");
    }
    let alone = run(&[base[0].as_str(), new[0].as_str(), "--sum"]);
    assert_eq!(alone.status.code(), Some(2));
}

#[test]
fn speedscope_says_what_it_leaves_out() {
    let (one, two) = (temp("negative.folded"), temp("both.folded"));
    std::fs::write(&one, "a;b 5\na;c -3\n").unwrap();
    std::fs::write(&two, "# pprofdiff-folded cpu/nanoseconds base new\na;b 4000 -1000\na;c -1000 3000\nd -5000 0\n")
        .unwrap();
    let (one, two, out) =
        (one.display().to_string(), two.display().to_string(), temp("left-out").display().to_string());
    let said = |args: &[&str]| {
        let output = run(&[args, &["--format", "speedscope", "-o", &out]].concat());
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = "pprofdiff: warning: speedscope has no negative values: stacks of";
    let of_one = format!("{warning} -3 are left out, 37.50% of the profile by magnitude\n");
    assert_eq!(said(&["convert", &one]), of_one);
    assert_eq!(said(&["stacks", &one]), of_one);
    let of_two = format!(
        "{warning} -6us are left out, 60.00% of base by magnitude\n\
         {warning} -1us are left out, 25.00% of new by magnitude\n"
    );
    assert_eq!(said(&["stacks", &two]), of_two);
    assert_eq!(said(&["stacks", &one, "--ignore", "c"]), "");
    // Folded stacks have room for them.
    assert_eq!(stdout(&["stacks", &one, "--format", "folded"]), "a;b 5\na;c -3\n");
}

#[test]
fn a_misspelt_verb_is_no_file() {
    let [base, new] = story();
    for (typed, meant) in
        [("explian", "explain"), ("tpo", "top"), ("sereis", "series"), ("Top", "top"), ("comment", "comments")]
    {
        let said = format!("pprofdiff: unknown verb {typed}; did you mean {meant}?\n");
        assert_eq!(failure(&[typed, &base, &new]), said);
        assert_eq!(failure(&[typed, &base]), said);
        assert_eq!(failure(&[typed, "--noise", &base, &new]), said);
    }
    // What is far from all verbs, stands alone or is there is a file.
    assert!(failure(&["other.pb.gz", &base]).contains("other.pb.gz: No such file"));
    assert!(failure(&["explian"]).contains("explian: No such file"));
    let dir = temp("verbs");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(&base, dir.join("explian")).unwrap();
    let output = command().current_dir(&dir).args(["explian", &new]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Each side counts by its own total, and the cost by which rows are ordered.
#[test]
fn small_rows_are_hidden() {
    let [base, new] = story();
    let all = json(&[&base, &new, "--format", "json"]);
    for sort in ["flat", "cum"] {
        let shown = json(&[&base, &new, "--format", "json", "--sort", sort, "--hide-below", "5%"]);
        let share = |row: &Value, side: &str| {
            let total = all[format!("total_{side}")].as_f64().unwrap();
            100.0 * row[format!("{sort}_{side}")].as_f64().unwrap() / total
        };
        let wanted: Vec<&Value> = all["rows"].as_array().unwrap().iter().collect();
        let wanted: Vec<_> =
            wanted.into_iter().filter(|row| share(row, "base").max(share(row, "new")) >= 5.0).collect();
        let rows = shown["rows"].as_array().unwrap();
        assert!(rows.len() == wanted.len() && wanted.iter().all(|row| rows.contains(row)), "{sort}: {rows:?}");
        assert!(!rows.is_empty() && shown["rows_total"] == all["rows_total"] && shown["hide_below"] == 5.0);
    }
    assert!(stdout(&[&base, &new, "--hide-below", "5"]).contains("hide_below=5"));
    assert!(failure(&["stacks", &base, &new, "--hide-below", "5"]).contains("stacks knows no hide_below"));
    assert!(failure(&[&base, &new, "--hide-below", "500"]).contains("0 to 100 percent"));
}

#[test]
fn short_help_fits_a_screen() {
    let help = stdout(&["-h"]);
    let verbs = help.split("Verbs:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: Vec<&str> = verbs.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in std::iter::once("").chain(verbs).filter(|verb| *verb != "help") {
        let words: Vec<&str> = [verb, "-h"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = stdout(&words);
        assert!(help.lines().count() <= 40, "{verb}: {} lines\n{help}", help.lines().count());
    }
    assert!(stdout(&["formats"]).contains("speedscope"));
}

/// Each sample that has a matching frame is in one chain, which ends at the first of them.
#[test]
fn roots_are_chains_to_what_matches() {
    let [base, new] = story();
    let roots = json(&["roots", "mallocgc", &base, &new, "--format", "json"]);
    let stacks = json(&["stacks", &base, &new, "--format", "json"]);
    let frames = |row: &Value| -> Vec<String> {
        row["frames"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect()
    };
    let sum = |rows: &Value, side: &str, chain: &[String]| -> i64 {
        let rows = rows["rows"].as_array().unwrap().iter().filter(|row| frames(row).starts_with(chain));
        rows.map(|row| row[side].as_i64().unwrap()).sum()
    };
    let rows = roots["rows"].as_array().unwrap();
    assert!(rows.len() > 1, "{roots}");
    for row in rows {
        let chain = frames(row);
        let (last, callers) = chain.split_last().unwrap();
        assert!(last.contains("mallocgc") && !callers.iter().any(|f| f.contains("mallocgc")));
        for side in ["base", "new"] {
            assert_eq!(row[side].as_i64().unwrap(), sum(&stacks, side, &chain), "{chain:?}");
        }
    }
    assert!(stdout(&["roots", "mallocgc", &base, &new, "-n", "1"]).contains("stack"));
    assert!(failure(&["roots", "no such", &base, &new]).contains("no frame matches"));
}
