//! Tests of the command as scripts use it: verbs, exit codes, one-line errors, pipes.

#![allow(clippy::unwrap_used)]

mod sources;
mod written;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub fn corpus(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file).display().to_string()
}

pub fn story() -> [String; 2] {
    [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")]
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

pub fn run(args: &[&str]) -> Output {
    command().args(args).output().unwrap()
}

/// Runs a command that must succeed with an empty stderr, and returns its stdout.
pub fn stdout(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

/// Runs a command that must fail with exit code 2, and returns its one line of stderr.
pub fn failure(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?} wrote to standard output");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: not one line: {stderr}");
    assert!(stderr.starts_with("pprofdiff: "), "{stderr}");
    stderr
}

pub fn temp(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pprofdiff-cli-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

#[test]
fn the_default_verb_is_diff_and_options_can_be_anywhere() {
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
fn every_verb_accepts_one_profile_or_two() {
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
        // Traces are a table of stacks with labels, displayed leaf first.
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
    assert_eq!(json(&["info", &base, &new, "--format", "json"])["profiles"][1]["stacks"], 184);
    assert!(stdout(&["info", &base]).contains("cpu (nanoseconds): 1.90s  (default)"));
}

#[test]
fn rows_are_limited_in_text_but_in_json_only_on_request() {
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
fn filters_and_normalization_are_reported() {
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
fn an_empty_filter_is_ignored() {
    let [base, new] = story();
    let plain = stdout(&[&base, &new]);
    assert_eq!(plain, stdout(&[&base, &new, "--ignore", "", "--focus=", "--tagignore", "", "--tagfocus", ""]));
}

#[test]
fn callers_and_callees_without_a_match_are_an_empty_table() {
    let [base, new] = story();
    assert!(stdout(&["tree", &base, &new, "--focus", "no such frame"]).contains("0 edges"));
}

#[test]
fn callers_and_callees_print_all_costs_in_one_unit() {
    let unit = |cost: &str| cost.trim_start_matches(|c: char| "+-.".contains(c) || c.is_ascii_digit()).to_owned();
    let is_cost = |word: &&str| word.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
    let [base, new] = story();
    for args in [&["tree", &base, &new][..], &["peek", ".", &base, &new], &["tree", &base], &["peek", ".", &base]] {
        let text = stdout(args);
        let rows = text.lines().skip_while(|line| !line.ends_with(" frame")).skip(1);
        // The first columns and the parentheses after a name have costs; the rest is growth, shares and names.
        let costs = rows.flat_map(|row| {
            let note = row.rsplit_once("(flat ").map_or("", |(_, note)| note.trim_end_matches(')'));
            row.split_whitespace().take(3).chain(note.split(' ')).filter(is_cost).map(unit)
        });
        let units: Vec<String> = costs.filter(|unit| !unit.is_empty() && unit != "%").collect();
        assert!(units.len() > 20 && units.iter().all(|unit| *unit == units[0]), "{args:?}: {units:?}\n{text}");
    }
}

#[test]
fn convert_writes_the_flame_graph_of_one_profile() {
    let heap = corpus("go-heap.new.pb.gz");
    let svg = |args: &[&str]| {
        let out = temp("converted.flame.svg");
        stdout(&[&["convert", &heap, "-o", out.to_str().unwrap()], args].concat());
        std::fs::read_to_string(out).unwrap()
    };
    let by_ending = svg(&[]);
    assert!(by_ending.starts_with("<svg ") && !by_ending.contains("<script"), "{by_ending}");
    assert!(by_ending.contains("main.heap") && by_ending.contains("inuse_space (bytes): "), "{by_ending}");
    assert_eq!(by_ending, svg(&["--format", "flamegraph"]));
    assert_eq!(by_ending, stdout(&["top", &heap, "--format", "flamegraph"]));
    assert!(svg(&["--sample-type", "alloc_space"]).contains("alloc_space (bytes): "));
    // A picture of the call graph shows only a part of a profile.
    let graph = temp("converted.svg").display().to_string();
    let error = failure(&["convert", &heap, "-o", &graph]);
    assert!(error.contains("a profile converts to pprof, folded, speedscope, flamegraph; svg is a view"), "{error}");
    let advice = error.trim_end().rsplit_once(": pprofdiff ").unwrap().1.to_owned();
    stdout(&advice.split(' ').collect::<Vec<_>>());
    assert!(std::fs::read_to_string(&graph).unwrap().starts_with("<svg"));
    for other in ["converted.xyz", "converted.sarif"] {
        let other = temp(other).display().to_string();
        assert!(failure(&["convert", &heap, "-o", &other]).ends_with("; set one with --format\n"));
    }
}

/// Creates a file of a known but unsupported format. The error for it gives advice.
fn recording() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recording.data");
    std::fs::write(&path, b"2ELIFREP\0").unwrap();
    path.display().to_string()
}

#[test]
fn mistakes_exit_with_2_and_one_line() {
    let [base, new] = story();
    assert!(failure(&["nothing.pb.gz", &new]).contains("nothing.pb.gz: No such file"));
    assert!(failure(&[&corpus("README.md"), &new]).contains("README.md: "));
    assert!(failure(&[&recording(), &new]).contains("the other byte order; have perf write it as text"));
    assert!(failure(&[&base]).contains("pprofdiff top"));
    let folded = failure(&["merge", &base, &new, "-o", "nothing.folded"]);
    assert!(
        folded.contains("nothing.folded: merge writes a profile.proto; use pprofdiff convert to convert it to folded"),
        "{folded}"
    );
    assert!(failure(&[&base, &new, "--sample-type", "heap"]).contains("there are samples, cpu"));
    assert!(failure(&[&base, &new, "--focus", "("]).contains("focus"));
    assert!(failure(&[&base, &new, "--granularity", "words"]).contains("words"));
    assert!(failure(&[&base, &new, "--normalize", "zero"]).contains("normalize"));
    assert!(failure(&[&base, &new, "--normalize", "0"]).contains("positive"));
    assert!(failure(&[&base, &new, "third.pb.gz"]).contains("third.pb.gz"));
    assert!(failure(&["peek", "no such frame", &base]).contains("no frame matches"));
    assert!(failure(&["peek", "tableinsensitve$", &base]).contains("; did you mean logmill/headers.tableInsensitive"));
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
    // A folder is the runs of a side, so each of its files must be a profile.
    assert!(failure(&[&corpus("."), &new]).contains("README.md: this is not a profile"));
    assert!(failure(&["explain", &base, &new, "--min-effect", "200%"]).contains("from 0% to below 100%"));
    for (mistake, answer) in [
        (&["--formt", "json"][..], "unexpected argument '--formt'; did you mean --format?\n"),
        (&["--formt=json"], "unexpected argument '--formt'; did you mean --format?\n"),
        (&["--sort", "flt"], "; did you mean flat?\n"),
        // clap parses `-sort` as `-s -o -r -t`.
        (&["-sort=cum"], "unexpected argument '-sort=cum'; long options have two hyphens: --sort=cum\n"),
        (&["-paired"], "unexpected argument '-paired'; long options have two hyphens: --paired\n"),
        (&["-o/tmp/x.txt", "-x"], "unexpected argument '-x'; see pprofdiff --help\n"),
        (&["-bogus"], "unexpected argument '-bogus'; see pprofdiff --help\n"),
        (&["-n", "few"], ": expected a whole number; see pprofdiff --help\n"),
    ] {
        let error = failure(&[&[&*base, &new], mistake].concat());
        assert!(error.ends_with(answer), "{error}");
    }
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
        let error = failure(&[without_base, &["--base-binary", "app"]].concat());
        assert!(
            error.contains("--base-binary is for a comparison of two sides; for one profile use --binary"),
            "{without_base:?}: {error}"
        );
        let error = failure(&[without_base, &["--base-time", "1s.."]].concat());
        assert!(
            error.contains("--base-time is for a comparison of two sides; for one profile use --time"),
            "{without_base:?}: {error}"
        );
        // These commands then compare two sides.
        if !["top", "info"].contains(&without_base[0]) {
            let error = failure(&[without_base, &["--split-at", "1s"]].concat());
            assert!(error.contains("--split-at is for a comparison of two sides"), "{without_base:?}: {error}");
        }
    }
}

#[test]
fn two_time_ranges_of_one_recording_can_be_compared() {
    let run = corpus("inputs/press.base.jfr.gz");
    let parts = ["--base-time", "0..3s", "--new-time", "3s..6s"];
    let sides = [&run as &str, &run];
    let by_two_names = json(&[&["top"], &sides[..], &parts, &["--format", "json"]].concat());
    let d = json(&[&["top", &run][..], &parts, &["--format", "json"]].concat());
    assert_eq!(d, by_two_names);
    assert_eq!((&d["base"]["time"], &d["new"]["time"]), (&"0..3s".into(), &"3s..6s".into()));
    let one = |window: &str| json(&["top", &run, "--time", window, "--format", "json"]);
    for (side, total, part) in [("base", "total_base", "0..3s"), ("new", "total_new", "3s..6s")] {
        let alone = one(part);
        assert_eq!((&d[total], &d[side]), (&alone["total"], &alone["profile"]));
        assert_eq!(alone["profile"]["duration_nanos"], 3_000_000_000i64);
    }
    assert!(d["base"]["time_nanos"].as_i64().unwrap() + 3_000_000_000 == d["new"]["time_nanos"].as_i64().unwrap());
    // Standard input, which is read once; also in each verb, report and suggested command.
    let mut piped = command();
    piped.args(["top", "-"]).args(parts).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(&run).unwrap()).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(text.contains("base  - (0..3s)  ") && text.contains("new   - (3s..6s)  "), "{text}");
    let cpu = corpus("inputs/press.base.cpuprofile.gz");
    let text = stdout(&["explain", &cpu, "--base-time", "0..200ms", "--new-time", "200ms.."]);
    let peek = text.lines().find_map(|line| line.trim().strip_prefix("pprofdiff ")).unwrap();
    let words: Vec<&str> = peek.split(' ').map(|word| word.trim_matches('\'')).collect();
    assert!(
        peek.contains(" --base-time 0..200ms --new-time 200ms.. ") && stdout(&words).contains("listOnTimeout"),
        "{peek}"
    );
    let info = stdout(&[&["info", &run][..], &parts].concat());
    assert!(info.contains("  part         0..3s\n") && info.contains("  part         3s..6s\n"), "{info}");
    let cut = temp("cut.pb.gz").display().to_string();
    stdout(&["convert", &run, "--time", "..3s", "-o", &cut]);
    assert_eq!(json(&["top", &cut, "--format", "json"])["total"], d["total_base"]);
    // Profiles without times, a range without samples, and invalid ranges.
    assert!(failure(&["top", &cut, "--time", "..3s"]).contains("pprof does not record when each sample was taken"));
    let error = failure(&["explain", &run, "--base-time", "0..3s", "--new-time", "20s.."]);
    assert!(
        error
            .contains("no sample is within 20s..; the samples of this recording are within 0.193s..10.399s, which is "),
        "{error}"
    );
    assert!(failure(&["top", &run, "--time", "3s"]).contains("invalid value '3s' for '--time': "));
}

#[test]
fn a_recording_is_split_at_a_time_or_an_event() {
    let run = corpus("inputs/press.base.jfr.gz");
    let top = |words: &[&str]| json(&[&["top", &run][..], words, &["--format", "json"]].concat());
    // `jfr print` shows 44 samples, the first at 1.456500783 s. Allocation events start earlier.
    for (split_point, end) in
        [("3s", "3s"), ("ExecutionSample", "1456500783ns"), ("jdk.ExecutionSample", "1456500783ns")]
    {
        let mut split = top(&["--sample-type", "alloc_space", "--split-at", split_point]);
        let (before, after) = (format!("..{end}"), format!("{end}.."));
        let windows = ["--base-time", &before, "--new-time", &after];
        let mut parts = top(&[&["--sample-type", "alloc_space"], &windows[..]].concat());
        assert_eq!(split["base"]["time"], format!("..{split_point}"));
        for d in [&mut split, &mut parts] {
            ["base", "new"].into_iter().for_each(|side| d[side]["time"] = "".into());
        }
        assert_eq!(split, parts, "{split_point}");
        assert!(split["total_base"].as_i64() > Some(0) && split["total_new"].as_i64() > Some(0));
    }
    let error = failure(&["explain", &run, "--split-at", "GarbageCollection"]);
    assert!(error.contains("it has no event \"GarbageCollection\", but these: jdk.ActiveSetting, "), "{error}");
    let error = failure(&["explain", &run, "--split-at", "3s", "--time", "..5s"]);
    assert!(
        error.contains("--split-at sets the times of both sides; remove --time, --base-time and --new-time"),
        "{error}"
    );
    assert!(failure(&["explain", &run, "--split-at", "1s..2s"]).contains("a recording is divided at a time"));
}

#[test]
fn the_environment_variable_limits_the_inflated_size() {
    let with = |limit: &str, more: &[&str]| {
        let output = command().env("PPROFDIFF_MAX_INFLATED", limit).args(story()).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, errors) = with("100", &[]);
    assert!(code == 2 && errors.contains("limit of 100 bytes"), "{errors}");
    // The option takes precedence over the variable. An empty variable is ignored.
    assert_eq!(with("100", &["--inflated-limit", "100000000"]).0, 0);
    assert_eq!(with("", &[]).0, 0);
    let (code, errors) = with("2G", &[]);
    assert!(
        code == 2
            && errors.lines().count() == 1
            && errors.contains("PPROFDIFF_MAX_INFLATED must be a whole number of bytes"),
        "{errors}"
    );
}

#[test]
fn help_and_version_exit_with_0() {
    assert!(stdout(&["--help"]).contains("Examples:"));
    assert!(stdout(&["peek", "--help"]).contains("--focus"));
    // Help names other options as they are typed.
    let help = stdout(&["diff", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("Short for --base-time ..AT and --new-time AT.. together"), "{help}");
    assert!(stdout(&["--version"]).starts_with("pprofdiff 0."));
    for shell in ["bash", "elvish", "fish", "nushell", "powershell", "zsh"] {
        assert!(stdout(&["completions", shell]).contains("pprofdiff"));
    }
}

#[test]
fn color_follows_the_option_then_the_environment() {
    let [base, new] = story();
    let is_colored = |args: &[&str], variables: &[(&str, &str)]| {
        let output = command().args(args).args([&base, &new]).envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().contains("\x1b[")
    };
    assert!(!is_colored(&["diff"], &[]));
    assert!(is_colored(&["diff", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(is_colored(&["explain", "--color=always"], &[]));
    assert!(is_colored(&["diff"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_colored(&["diff", "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_colored(&["diff"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_colored(&["diff", "--color", "always", "--format", "json"], &[]));
    // A file has no colors unless the option asks for them.
    let file = temp("color.txt").display().to_string();
    for (args, colored) in [(&["diff", "--color", "always", "-o", &file][..], true), (&["diff", "-o", &file], false)] {
        is_colored(args, &[("CLICOLOR_FORCE", "1")]);
        assert_eq!(std::fs::read_to_string(&file).unwrap().contains("\x1b["), colored, "{args:?}");
    }
    assert!(failure(&["diff", &base, &new, "--color", "sometimes"]).contains("[possible values: auto, always, never]"));
}

#[test]
fn tables_fit_the_columns_of_the_environment_but_files_keep_everything() {
    let [base, new] = story();
    let rows = |args: &[&str], columns: &str| {
        let output = command().args(args).args([&base, &new]).env("COLUMNS", columns).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().skip_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let width = |rows: &[String]| rows.iter().map(|row| row.chars().count()).max().unwrap();
    for verb in ["diff", "tree", "top"] {
        let (narrow, wide) = (rows(&[verb, "-n", "8"], "80"), rows(&[verb, "-n", "8"], "1000"));
        assert!(width(&narrow) <= 80 && width(&wide) > 80, "{verb}: {narrow:#?}");
    }
    assert_eq!(rows(&["diff"], "80").last().unwrap(), "left out to fit into 80 characters per line: cum");
    assert_eq!(rows(&["diff"], "0"), rows(&["diff"], "1000"));
    let file = temp("columns.txt").display().to_string();
    rows(&["diff", "-o", &file], "80");
    assert!(std::fs::read_to_string(&file).unwrap().contains("cum: base"));
}

/// The verbs that help lists under its headings, between the usage and the next empty line.
fn verbs(help: &str) -> Vec<&str> {
    let listed = help.split("\n\n").nth(2).unwrap();
    listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect()
}

#[test]
fn every_verb_has_a_manual_page() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual").join("pages");
    let _ = std::fs::remove_dir_all(&dir);
    stdout(&["man", &dir.display().to_string()]);
    let mut pages: Vec<_> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    let help = stdout(&["--help"]);
    let verbs = verbs(&help);
    let mut expected_pages: Vec<String> = verbs.iter().map(|verb| format!("pprofdiff-{verb}.1")).collect();
    // `store` is the only verb with subcommands.
    expected_pages.extend(["add", "list", "compact"].map(|verb| format!("pprofdiff-store-{verb}.1")));
    expected_pages.push("pprofdiff.1".to_owned());
    expected_pages.sort();
    assert!(expected_pages.len() > 15, "{expected_pages:?}");
    assert_eq!(pages, expected_pages);
    let peek = std::fs::read_to_string(dir.join("pprofdiff-peek.1")).unwrap();
    assert!(peek.contains("callers and callees") && peek.contains("focus"), "{peek}");
    let file = dir.join("pprofdiff.1").display().to_string();
    assert!(failure(&["man", &file]).contains(&file));
}

#[test]
fn standard_input_is_read_like_a_file() {
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
fn colour_is_only_used_in_terminals() {
    let [base, new] = story();
    assert!(!stdout(&[&base, &new]).contains('\x1b'));
}

#[test]
fn a_file_named_like_a_verb_needs_a_directory_prefix() {
    let dir = temp("verbs");
    std::fs::create_dir_all(&dir).unwrap();
    let [base, new] = story();
    std::fs::copy(&base, dir.join("top")).unwrap();
    std::fs::copy(&new, dir.join("tree")).unwrap();
    let output = command().current_dir(&dir).args(["./top", "./tree", "-n1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("base  ./top"));
}

#[test]
fn every_verb_reads_folded_stacks() {
    let [base, new] = story();
    let path = |name: &str| temp(name).display().to_string();
    let [folded_base, folded_new, diff, bare] = ["base.folded", "new.folded", "diff.folded", "bare.txt"].map(path);
    stdout(&["stacks", &base, "-o", &folded_base]);
    stdout(&["stacks", &new, "-o", &folded_new]);
    stdout(&[&base, &new, "-o", &diff]);
    std::fs::write(&bare, "main;f 3 5\nmain;g 4 4\n").unwrap();
    // The rows equal those of the profiles, except for files, which folded stacks lack.
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

    // Without a header, options specify the format and the type.
    let two = ["--input-format", "folded2", "--input-type", "space/bytes"];
    let text = stdout(&[&["top", &bare][..], &two].concat());
    assert!(text.contains("space (bytes): 7B -> 9B"), "{text}");
    let one = stdout(&["stacks", &bare, "--format", "folded", "--input-format", "folded"]);
    assert_eq!(one, "main;f_3 5\nmain;g_4 4\n");
    assert!(stdout(&["info", &bare, "--input-type", "space/bytes"]).contains("space"));

    let merged = path("merged.pb.gz");
    stdout(&["merge", &folded_base, &folded_new, "-o", &merged, "--input-format", "folded"]);
    assert!(stdout(&["info", &merged]).contains("cpu"));
    let delta = path("delta.pb.gz");
    let typed = ["--input-format", "folded", "--input-type", "alloc_space/bytes"];
    stdout(&[&["delta", &bare, &bare, "-o", &delta][..], &typed].concat());
    assert!(stdout(&["info", &delta]).contains("alloc_space"));
    stdout(
        &[&["check", &bare, &bare, "--fail-on", "space:total>+5%", "--input-format", "folded"][..], &two[2..]].concat(),
    );
    let manifest = path("folded.csv");
    std::fs::write(&manifest, format!("base,new\n{folded_base},{folded_new}\n")).unwrap();
    assert!(stdout(&["batch", &manifest, "--input-format", "folded"]).contains("cpu"));
    assert!(stdout(&["series", &folded_base, &folded_new, "--input-format", "folded"]).contains("cpu"));

    // `--input-format` allows only that format.
    let refused = failure(&[&base, &new, "--input-format", "folded"]);
    assert!(refused.contains("story-cpu") && refused.contains("line 1"), "{refused}");
    assert!(failure(&["top", &diff, "--input-format", "folded"]).contains("cpu/nanoseconds base new"));
    assert!(failure(&["top", &bare, "--input-type", "cpu"]).contains("cpu/nanoseconds"));
    let unknown = run(&["top", &bare, "--input-format", "heaps"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("folded2") && unknown.status.code() == Some(2));
}

#[test]
fn help_shows_the_compression_level_in_use() {
    let help = stdout(&["delta", "--help"]);
    for (packing, ending) in [("gzip", "pb.gz"), ("zstd", "zst")] {
        let (_, after) = help.split_once(&format!("{packing} ")).unwrap();
        let (_, after) = after.split_once("[default: ").unwrap();
        let level = after.split(']').next().unwrap();
        let [a, b] = [3, 4].map(|i| corpus(&format!("series/heap-{i:02}.pb.gz")));
        let written = |name: &str, level: &[&str]| {
            let out = temp(&format!("{name}.{ending}")).display().to_string();
            stdout(&[&["delta", &a, &b, "-o", &out], level].concat());
            std::fs::read(out).unwrap()
        };
        let default = written("default", &[]);
        assert!(default == written("told", &["--level", level]), "{packing}: {level}");
        assert!(default != written("other", &["--level", "6"]), "{packing}");
    }
}

#[test]
fn commands_to_copy_and_passwords_are_not_written_to_logs() {
    let [base, _] = story();
    // stderr is not a terminal here.
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
        let output_text = [output.stdout, output.stderr].map(|s| String::from_utf8(s).unwrap()).concat();
        assert!(!output.status.success() && output_text.contains("//***@127.0.0.1:1/"), "{args:?}: {output_text}");
        assert!(!output_text.contains("secret") && !output_text.contains("user"), "{args:?}: {output_text}");
    }
}

#[test]
fn heaps_of_the_same_runs_are_explained_together() {
    let [base, new] = story();
    let heaps = ["base", "new"].map(|side| corpus(&format!("go-heap.{side}.pb.gz")));
    let text = stdout(&["explain", &base, &new, "--with", &heaps[0], &heaps[1]]);
    let paragraphs: Vec<&str> = text.split("\n\n").map(|paragraph| paragraph.split(':').next().unwrap()).collect();
    assert_eq!(paragraphs, ["cpu", "inuse_space", "alloc_space"], "{text}");
    let also = &json(&["explain", &base, &new, "--format", "json", "--with", &heaps[0], &heaps[1]])["also"];
    assert!(also[1]["causes"][0]["evidence"]["command"].as_str().unwrap().ends_with("--sample-type alloc_space"));
    let refused = failure(&["explain", &base, &new, "--with", &base, &new]);
    assert!(refused.contains("story-cpu.base.pb.gz: no sample type alloc_space"), "{refused}");
}

#[test]
fn a_misspelt_verb_gets_a_suggestion() {
    let [base, new] = story();
    for (typed, meant) in
        [("explian", "explain"), ("tpo", "top"), ("sereis", "series"), ("Top", "top"), ("comment", "comments")]
    {
        let expected = format!("pprofdiff: unknown verb {typed}; did you mean {meant}?\n");
        assert_eq!(failure(&[typed, &base, &new]), expected);
        assert_eq!(failure(&[typed, &base]), expected);
        assert_eq!(failure(&[typed, "--noise", &base, &new]), expected);
    }
    // A word is treated as a file if no verb is similar, if it is the only argument, or if the file exists.
    assert!(failure(&["other.pb.gz", &base]).contains("other.pb.gz: No such file"));
    assert!(failure(&["explian"]).contains("explian: No such file"));
    let dir = temp("verbs");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(&base, dir.join("explian")).unwrap();
    let output = command().current_dir(&dir).args(["explian", &new]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_missing_regex_an_unknown_verb_and_three_files_suggest_a_command() {
    let [base, new] = story();
    let error_of = |args: &[&str]| failure(args).trim_end().to_owned();
    // The regular expression comes first. Here the first file is in its place.
    for verb in ["peek", "list", "roots"] {
        assert!(error_of(&[verb, &base, &new]).ends_with(&format!(": pprofdiff {verb} REGEX {base} {new}")));
        assert!(error_of(&[verb, &base]).ends_with(&format!(": pprofdiff {verb} REGEX {base}")));
        assert!(error_of(&[verb]).ends_with(&format!(": pprofdiff {verb} REGEX BASE NEW")));
        let sides = error_of(&[verb, "--base", &base, "--new", &new, "-n", "3"]);
        assert!(sides.ends_with(&format!(": pprofdiff {verb} REGEX --base {base} --new {new} -n 3")), "{sides}");
    }
    // A source file is also a valid expression.
    let source = temp("main.go").display().to_string();
    std::fs::write(&source, "package main").unwrap();
    assert!(error_of(&["peek", &source, &base, &new]).contains("no frame matches"));

    for (verb, given, command) in [
        ("compare", &[&*base, &*new][..], format!("pprofdiff {base} {new}")),
        ("compare", &["a", "b"], "pprofdiff a b".to_owned()),
        ("compare", &["a", "b", "--sort", "cum"], "pprofdiff a b --sort cum".to_owned()),
        ("flamegraph", &[&*new], format!("pprofdiff top {new}")),
        ("vs", &["x y.pb", "--focus=a b", "z.pb"], "pprofdiff 'x y.pb' z.pb --focus='a b'".to_owned()),
    ] {
        let error = error_of(&[&[verb], given].concat());
        assert!(error.starts_with(&format!("pprofdiff: unknown verb {verb}, ")), "{error}");
        assert!(error.contains(&format!(": {command}; ")), "{error}");
    }

    for (args, command) in [
        (&["a.pb", "b.pb", "c.pb"][..], "pprofdiff --base a.pb --new b.pb c.pb;"),
        (&["top", "-n", "5", "a.pb", "b.pb", "c.pb"], "pprofdiff top -n 5 --base a.pb --new b.pb c.pb;"),
        (&["peek", "f|g", "a.pb", "b.pb", "c.pb"], "pprofdiff peek 'f|g' --base a.pb --new b.pb c.pb;"),
        (&["explain", "a.pb", "b.pb", "c.pb"], "pprofdiff explain --base a.pb --new b.pb c.pb;"),
        (&["check", "a.pb", "b.pb", "c.pb"], "pprofdiff series a.pb b.pb c.pb"),
        (&["1", "2", "3", "4", "5", "6", "7", "8"], "pprofdiff --base 1 --new 2 ... 8;"),
    ] {
        let error = error_of(args);
        assert!(
            error.contains(command) && error.contains("profiles were given, but a comparison takes two"),
            "{error}"
        );
    }
    // A nonexistent option is a different mistake.
    assert!(error_of(&["top", "--nope", &base, &new]).contains("--nope"));
    // A baseline is the base, so there is no --base.
    for baseline in [&["--baseline", "dir"][..], &["--baseline=dir"]] {
        let args = [&["check"][..], baseline, &["--store", "1.pb", "2.pb", "3.pb", "--fail-on", "total>+5%"]].concat();
        let suggestion = format!("{} --store --fail-on 'total>+5%' --new 1.pb 2.pb 3.pb", baseline.join(" "));
        let error = error_of(&args);
        assert!(error.ends_with(&suggestion) && !error.contains("--base "), "{error}");
    }
    assert!(error_of(&["top", &base, &new, "-n", "3", &base]).contains("a comparison takes two profiles"));
}

/// The label of a line ends with its file and number, but an expression may end with the function's name.
#[test]
fn an_expression_matches_the_function_of_a_line() {
    let [base, new] = story();
    for verb in ["peek", "roots"] {
        for granularity in ["functions", "lines", "addresses"] {
            for regex in ["names.compare$", "^logmill/names.compare$"] {
                let args = [verb, regex, &base, &new, "--granularity", granularity];
                let output = command().args(args).output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success() && text.contains("names.compare"), "{args:?}: {text}");
            }
        }
        let args = [verb, "names.go:17$", &base, &new, "--granularity", "lines"];
        assert!(command().args(args).output().unwrap().status.success(), "{args:?}");
    }
}

/// `--with` takes one word per side, and a shell expands a pattern to several.
#[test]
fn several_heap_profiles_suggest_a_pattern_per_side() {
    let error_of = |args: &[&str]| failure(args).trim_end().to_owned();
    let with = ["--with", "h/base-1", "h/base-2", "h/new-1", "h/new-2"];
    let command = "not 4 files; for several heap profiles per side: pprofdiff explain --with 'h/base-*' 'h/new-*' ";
    for (before, after) in [
        (&["--base", "b1", "b2", "--new", "n1", "n2"][..], &[][..]),
        (&[], &["--base", "b1", "b2", "--new", "n1", "n2"]),
        (&["main.pb", "branch.pb"], &[]),
        (&[], &["main.pb", "branch.pb"]),
        (&["main.pb", "branch.pb"], &["--format", "json"]),
    ] {
        let error = error_of(&[&["explain"][..], before, &with, after].concat());
        let expected = format!("{command}{}", [before, after].concat().join(" "));
        assert!(error.ends_with(&expected), "{error}\n{expected}");
    }
    let unlike = error_of(&["explain", "main.pb", "branch.pb", "--with", "a1", "b1", "a2", "b2"]);
    assert!(unlike.contains(" explain --with BASE_HEAPS NEW_HEAPS main.pb branch.pb"), "{unlike}");
    // Two words are the two sides. Options such as --base-binary are no sides, and options may precede the sides.
    let heaps = ["explain", "--with", "a", "b", "main.pb", "branch.pb"];
    for more in [&[][..], &["--base-binary", "x"], &["--new-time=1s-2s"]] {
        let error = error_of(&[&heaps[..], more].concat());
        assert!(!error.contains("--with takes"), "{error}");
    }
    let error = error_of(&["explain", "--sample-type", "cpu", "main.pb", "branch.pb", "--with", "a", "b", "c", "d"]);
    assert!(error.contains("--with takes"), "{error}");
}

#[test]
fn a_pattern_that_mixes_cpu_and_heap_profiles_suggests_one_for_each() {
    let folder = corpus("faults/freight");
    let files = |start: &str, kinds: &[&str]| -> Vec<String> {
        let paths_of = |i: usize| kinds.iter().map(move |kind| format!("{start}-{i}.{kind}.pb.gz"));
        (1..=3).flat_map(paths_of).map(|name| format!("{folder}/{name}")).collect()
    };
    let ask = |base: Vec<String>, new: Vec<String>| {
        let words = ["top".to_owned(), "--base".to_owned()].into_iter().chain(base);
        let words: Vec<String> = words.chain(["--new".to_owned()]).chain(new).collect();
        failure(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let both = ["cpu", "heap"];
    let error = ask(files("base", &both), files("calls", &["cpu"]));
    let kind = |side: &str, kind: &str, types: &str| {
        format!("3 have {types}, such as {folder}/{side}-1.{kind}.pb.gz: name '{folder}/{side}-*.{kind}.pb.gz'")
    };
    let types = ["samples, cpu", "alloc_objects, alloc_space, inuse_objects, inuse_space"];
    let both_kinds = |side: &str| format!("{}; {}", kind(side, "cpu", types[0]), kind(side, "heap", types[1]));
    let no_type = "pprofdiff: no sample type is common to all profiles: ";
    assert_eq!(error, format!("{no_type}on the base side, {}\n", both_kinds("base")));
    let error = ask(files("base", &both), files("calls", &both));
    assert_eq!(
        error,
        format!("{no_type}on the base side, {}; on the new side, {}\n", both_kinds("base"), both_kinds("calls"))
    );
    // Each side has one kind, but the kinds differ.
    let error = ask(files("base", &["cpu"]), files("calls", &["heap"]));
    assert_eq!(error, format!("{no_type}{}; {}\n", kind("calls", "heap", types[1]), kind("base", "cpu", types[0])));
}

/// The inputs do not exist either, so a command that read them first would name them.
#[test]
fn an_output_in_a_missing_folder_is_refused_before_any_input_is_read() {
    let output = temp("no-such-folder/answer.pb.gz").display().to_string();
    let verbs = ["diff", "explain", "check", "top", "tree", "stacks", "labels", "traces", "info", "raw", "merge"];
    let others = ["convert", "delta", "batch", "series"];
    for verb in verbs.into_iter().chain(others) {
        let inputs: &[&str] = if verb == "convert" { &["absent.pb"] } else { &["absent.pb", "absent2.pb"] };
        let rule: &[&str] = if verb == "check" { &["--fail-on", "total>+5%"] } else { &[] };
        // An extension that the verb's format matches would hide the error of the folder.
        let named = match verb {
            "check" | "explain" | "labels" | "info" => output.replace(".pb.gz", ".json"),
            "top" | "tree" | "stacks" | "traces" | "diff" | "batch" | "series" => output.replace(".pb.gz", ".csv"),
            _ => output.clone(),
        };
        let message = failure(&[&[verb][..], inputs, rule, &["-o", &named]].concat());
        assert!(message.contains("no-such-folder does not exist; create it first"), "{verb}: {message}");
    }
    let report = ["--fail-on", "total>+5%", "--report", &output.replace(".pb.gz", ".md")];
    assert!(failure(&[&["check", "absent.pb", "absent2.pb"][..], &report].concat()).contains("no-such-folder"));
}

/// Values for the options that take one. Options that name further inputs get the name of a file that does not exist.
const OPTION_VALUES: &[(&str, &str)] = &[
    ("TEXT", "orders"),
    ("TIME", "1s"),
    ("AT", "5s"),
    ("BYTES", "100"),
    ("DIR", "absent"),
    ("DIR:...", "absent"),
    ("F", "0.1"),
    ("FILE=N", "absent.pb=2"),
    ("FROM..UNTIL", "0s..5s"),
    ("ID", "abc"),
    ("KEY,...", "key"),
    ("KEY=VALUE", "key=value"),
    ("KEYS", "key"),
    ("N", "3"),
    ("N0,N1", "1,2"),
    ("NAME", "main"),
    ("ON_RESET", "pass"),
    ("ORDER", "given"),
    ("OUTCOME", "warn"),
    ("PART", "0.1"),
    ("PATH", "absent"),
    ("PERCENT", "5%"),
    ("PREFIX:...", "/x"),
    ("RANGE", "HEAD"),
    ("RATE", "0.1"),
    ("RE", "main"),
    ("RULE", "total>+7%"),
    ("TOKENS", "1000"),
    ("TYPE", "cpu"),
    ("TYPE,...", "cpu"),
    ("TYPE/UNIT", "cpu/ns"),
    ("UNIT", "ms"),
    ("VIEW", "tree"),
    ("[KEY=]RE|RANGE", "key=value"),
    ("flat|cum", "flat"),
    // By option.
    ("--color", "never"),
    ("--commit-time", "2026-11-25T10:00:00Z"),
    ("--demangle", "full"),
    ("--granularity", "files"),
    ("--input-format", "folded"),
    ("--match", "exact"),
    ("--normalize", "total"),
    ("--rows", "steps"),
];

/// The inputs do not exist, so an error that names them would come from reading them.
#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn each_option_of_each_verb_is_checked_before_inputs_are_read_if_the_output_is_impossible() {
    let folder = temp("no-such-folder").display().to_string();
    let (mut n_refused, mut n_other) = (0, 0);
    for verb in verbs(&stdout(&["-h"])) {
        let help = stdout(&[verb, "--help"]);
        if !help.contains("-o, --output") || ["bench", "store"].contains(&verb) {
            continue; // `bench` and `store` have inputs and outputs of other kinds.
        }
        let inputs: &[&str] = match verb {
            "convert" => &["absent.pb"],
            "batch" => &["absent/*.pb", "absent2/*.pb"],
            "check" => &["absent.pb", "absent2.pb", "--fail-on", "total>+5%"],
            "peek" | "roots" | "list" | "disasm" => &["main", "absent.pb", "absent2.pb"],
            _ => &["absent.pb", "absent2.pb"],
        };
        let extension = match verb {
            "check" | "explain" | "labels" | "info" => "json",
            "raw" | "comments" | "list" | "disasm" => "txt",
            "merge" | "convert" | "delta" => "pb.gz",
            _ => "csv",
        };
        let output = format!("{folder}/x.{extension}");
        for line in help.lines().map(str::trim).filter(|line| line.starts_with("--")) {
            let (name, placeholder) = line.split_once(" <").unwrap_or((line, ""));
            let name = name.trim_end_matches("...").split(' ').next().unwrap();
            // These replace the inputs or the format, or open a browser.
            if ["--help", "--version", "--output", "--open", "--config", "--base", "--new", "--format"].contains(&name)
            {
                continue;
            }
            let placeholder = placeholder.rsplit_once('>').map_or("", |(inside, _)| inside);
            let values = || OPTION_VALUES.iter().rev().find(|(key, _)| *key == name || *key == placeholder);
            let option = match placeholder {
                "" => name.to_owned(),
                "FILE" | "FILE|URL" | "BASE> <NEW" => continue,
                _ => format!("{name}={}", values().unwrap_or_else(|| panic!("no value for {line}")).1),
            };
            let message = failure(&[&[verb][..], inputs, &[&option, "-o", &output]].concat());
            match message.contains("no-such-folder does not exist") {
                true => n_refused += 1,
                // The option needs another option or other inputs.
                false => n_other += 1,
            }
            let is_about_inputs = message.contains("absent") && !message.contains("no-such-folder");
            assert!(!is_about_inputs, "{verb} {option}: {message}");
        }
    }
    assert!(n_refused > 600 && n_other < 80, "{n_refused} outputs were refused, {n_other} options");
}

#[test]
fn a_profile_is_not_read_as_a_manifest_of_pairs() {
    let message = failure(&["batch", &corpus("story-cpu.base.pb.gz")]);
    assert!(message.contains("not a manifest but a binary file; to compare a pair"), "{message}");
}

#[test]
fn short_help_fits_a_screen() {
    let help = stdout(&["-h"]);
    let verbs = verbs(&help);
    assert!(verbs.len() > 20, "{verbs:?}");
    let distinct: std::collections::BTreeSet<_> = verbs.iter().collect();
    assert_eq!(distinct.len(), verbs.len(), "{verbs:?}");
    for verb in std::iter::once("").chain(verbs) {
        let words: Vec<&str> = [verb, "-h"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = stdout(&words);
        assert!(help.lines().count() <= 40, "{verb}: {} lines\n{help}", help.lines().count());
    }
    assert!(stdout(&["formats"]).contains("speedscope"));
}

#[test]
fn a_source_folder_that_does_not_exist_is_a_warning_with_its_path() {
    let sides = ["base", "new"].map(|side| corpus(&format!("story-cpu.{side}.pb.gz")));
    let out = Command::new(env!("CARGO_BIN_EXE_pprofdiff"))
        .args(["list", "names.compare$", &sides[0], &sides[1], "--source-path", "no-such-folder"])
        .output()
        .unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && error.contains("--source-path no-such-folder: no such folder"), "{error}");
}

/// The output of difffolded.pl is not one side of a comparison. Only the user knows whether names end in numbers.
#[test]
fn folded_stacks_that_look_like_a_diff_are_shown_with_the_option_that_reads_both_sides() {
    let path = temp("doubtful.folded").display().to_string();
    std::fs::write(&path, "app;parse 40 30\napp;render 10 60\n").unwrap();
    let out = temp("doubtful.pb.gz").display().to_string();
    for args in [&[&*path][..], &["merge", &path, &path, "-o", &out]] {
        let line = failure(args);
        assert!(line.contains("each line ends in two numbers") && line.contains("--input-format folded2"), "{line}");
    }
    let text = stdout(&[&path, "--input-format", "folded2"]);
    assert!(text.contains("50 -> 90"), "{text}");
    stdout(&["merge", &path, &path, "-o", &out, "--input-format", "folded"]);
    assert_eq!(json(&["top", &out, "--format", "json"])["total"], 180);
}
