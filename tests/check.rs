//! Tests of `pprofdiff check` as CI uses it: a table of cases with their exit codes, the outputs, and proof that the
//! check can fail. For that proof, one function of a real profile is made slower; expected sums are computed from
//! prost's messages.

#![allow(clippy::unwrap_used)]

mod chance;
mod outputs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;
use serde_json::Value;

pub(crate) fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file)
}

/// A temporary directory for one test. It is removed on drop.
pub(crate) struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("pprofdiff-check-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    /// Runs a check that only the limits decide (`--strict`).
    fn run(&self, args: &[&str]) -> Output {
        self.run_with_chance(&[args, &["--strict"]].concat())
    }

    pub fn run_with_chance(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&self.0).stdin(Stdio::null()).arg("check").args(args).output().unwrap()
    }

    /// Runs a strict check, and returns its exit code and its findings as JSON.
    fn json(&self, args: &[&str]) -> (i32, Value) {
        self.json_with_chance(&[args, &["--strict"]].concat())
    }

    pub fn json_with_chance(&self, args: &[&str]) -> (i32, Value) {
        let out = self.run_with_chance(&[args, &["--format", "json"]].concat());
        let value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&out.stderr)));
        (out.status.code().unwrap(), value)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Builds a profile from stacks (names root first, separated by `;`) with one value per sample type.
fn profile(types: &[(&str, &str)], stacks: &[(&str, &[i64])]) -> Vec<u8> {
    let mut p = Profile { string_table: vec![Vec::new()], ..Profile::default() };
    let string = |p: &mut Profile, text: &str| {
        p.string_table.push(text.as_bytes().to_vec());
        p.string_table.len() as i64 - 1
    };
    for (kind, unit) in types {
        let (kind, unit) = (string(&mut p, kind), string(&mut p, unit));
        p.sample_type.push(ValueType { r#type: kind, unit });
    }
    let mut names: Vec<&str> = Vec::new();
    for (stack, values) in stacks {
        let mut ids = Vec::new();
        for name in stack.split(';') {
            let index = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                let (name, id) = (string(&mut p, name), p.function.len() as u64 + 1);
                p.function.push(Function { id, name, ..Function::default() });
                let line = vec![Line { function_id: id, ..Line::default() }];
                p.location.push(Location { id, line, ..Location::default() });
                names.len()
            });
            if index == names.len() {
                names.push(name);
            }
            ids.insert(0, index as u64 + 1);
        }
        p.sample.push(Sample { location_id: ids, value: values.to_vec(), ..Sample::default() });
    }
    p.encode_to_vec()
}

/// Builds a profile with a sample each millisecond, from stacks (root first) of functions of `app.go` with the lines at
/// which they are executing, and their milliseconds.
pub(crate) fn with_lines(stacks: &[(&[(&str, i64)], i64)]) -> Vec<u8> {
    let names: Vec<String> =
        stacks.iter().map(|(stack, _)| stack.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")).collect();
    let values: Vec<[i64; 2]> = stacks.iter().map(|(_, ms)| [*ms, ms * 1_000_000]).collect();
    let named: Vec<(&str, &[i64])> = names.iter().zip(&values).map(|(name, v)| (name.as_str(), &v[..])).collect();
    let types = [("samples", "count"), ("cpu", "nanoseconds")];
    let mut p = Profile::decode(&profile(&types, &named)[..]).unwrap();
    p.string_table.push(b"app.go".to_vec());
    let file = p.string_table.len() as i64 - 1;
    p.function.iter_mut().for_each(|function| function.filename = file);
    // Each frame of each sample gets a location of its own, with its line.
    let functions: Vec<u64> = p.location.iter().map(|location| location.line[0].function_id).collect();
    p.location.clear();
    for (sample, (stack, _)) in p.sample.iter_mut().zip(stacks) {
        for (id, (_, line)) in sample.location_id.iter_mut().zip(stack.iter().rev()) {
            let line = vec![Line { function_id: functions[*id as usize - 1], line: *line, ..Line::default() }];
            *id = p.location.len() as u64 + 1;
            p.location.push(Location { id: *id, line, ..Location::default() });
        }
    }
    p.encode_to_vec()
}

const CPU: &[(&str, &str)] = &[("cpu", "nanoseconds")];

/// A profile of one second: `a` milliseconds in `enc/a`, the rest in its caller `main`.
fn second(a: i64) -> Vec<u8> {
    profile(CPU, &[("main", &[(1000 - a) * 1_000_000]), ("main;enc/a", &[a * 1_000_000])])
}

/// A profile of `ms` milliseconds.
fn profile_of_total(ms: i64) -> Vec<u8> {
    profile(CPU, &[("main", &[ms * 1_000_000])])
}

/// Builds a profile with a sample each millisecond, from the milliseconds of each function that `main` calls.
pub(crate) fn sampled(functions: &[(&str, i64)]) -> Vec<u8> {
    let stacks: Vec<(String, [i64; 2])> =
        functions.iter().map(|(name, ms)| (format!("main;{name}"), [*ms, ms * 1_000_000])).collect();
    let stacks: Vec<(&str, &[i64])> = stacks.iter().map(|(stack, values)| (stack.as_str(), &values[..])).collect();
    profile(&[("samples", "count"), ("cpu", "nanoseconds")], &stacks)
}

#[test]
fn exit_codes_of_the_table_of_cases() {
    let d = Dir::new("table");
    d.write("base", second(100));
    d.write("same", second(100));
    d.write("more", second(150));
    d.write("tiny-base", second(2));
    d.write("tiny-new", second(8));
    d.write("heap", profile(&[("space", "bytes")], &[("main", &[5 << 20])]));
    d.write("two", profile(&[("space", "bytes"), ("cpu", "nanoseconds")], &[("main", &[5 << 20, 1_000_000_000])]));
    d.write("broken", b"\x1f\x8b\x08 no profile");
    d.write("empty", profile(CPU, &[]));
    d.write("zero", profile(CPU, &[("main", &[0])]));
    for (i, ms) in [1000, 1010, 990, 1005, 995].into_iter().enumerate() {
        d.write(&format!("b{i}"), profile_of_total(ms));
        d.write(&format!("apart{i}"), profile_of_total(ms + 100));
    }
    // The median is higher, but one run is as fast as the base.
    for (i, ms) in [1000, 1100, 1110, 1090, 1105].into_iter().enumerate() {
        d.write(&format!("overlap{i}"), profile_of_total(ms));
    }
    let b = ["--base", "b0", "b1", "b2", "b3", "b4"];
    let apart = [&b[..], &["--new", "apart0", "apart1", "apart2", "apart3", "apart4"]].concat();
    let overlap = [&b[..], &["--new", "overlap0", "overlap1", "overlap2", "overlap3", "overlap4"]].concat();
    let with = |files: &[&'static str], rules: &[&'static str]| -> Vec<&'static str> {
        let rules = rules.iter().flat_map(|r| if r.starts_with("--") { vec![*r] } else { vec!["--fail-on", *r] });
        files.iter().copied().chain(rules).collect()
    };
    let (same, more) = (["base", "same"], ["base", "more"]);
    let (pass, fail, error, unmatched) = (0, 1, 2, 4);
    let cases: Vec<(Vec<&str>, i32)> = vec![
        // Only the limits decide.
        (with(&same, &["total>+5%"]), pass),
        (with(&same, &["total>+0%"]), pass),
        (with(&same, &["total>-5%"]), fail),
        (with(&more, &["total>+5%"]), pass),
        (with(&more, &["flat:any>+10%"]), fail),
        (with(&more, &["flat:any>+50%"]), pass),
        (with(&more, &["flat:any>+49%"]), fail),
        (with(&more, &["flat>+49%"]), fail),
        (with(&more, &["cum:each=^main$>+1%"]), pass),
        (with(&more, &["cum:each=^enc/>+1%"]), fail),
        (with(&more, &["flat:regex=^enc/>+10%"]), fail),
        (with(&more, &["flat:regex=^enc/|main>+1%"]), pass),
        (with(&more, &["cpu:flat:regex=^enc/>+10%"]), fail),
        (with(&more, &["flat:regex=^enc/>+50ms"]), pass),
        (with(&more, &["flat:regex=^enc/>+49ms"]), fail),
        (with(&more, &["flat:regex=^enc/>+49999999ns"]), fail),
        (with(&more, &["flat:regex=^enc/>150ms"]), pass),
        (with(&more, &["flat:regex=^enc/>0.149s"]), fail),
        (with(&more, &["flat:regex=^enc/>15%"]), pass),
        (with(&more, &["flat:regex=^enc/>14.9%"]), fail),
        (with(&more, &["flat:regex=nothing>+1%"]), unmatched),
        // Growth from zero exceeds any percentage.
        (with(&["empty", "base"], &["total>+1000%"]), fail),
        // Empty profiles cannot be checked.
        (with(&["base", "empty"], &["total>+1%"]), error),
        (with(&["base", "zero"], &["total>+1%"]), error),
        (with(&["empty", "empty"], &["total>+1%", "flat:any>+1%", "flat:any>10%"]), error),
        (with(&["--base", "base", "--new", "base", "zero"], &["total>+1%"]), error),
        (with(&["--base", "base", "--new", "base", "zero", "same"], &["total>+1%"]), pass),
        // The floor ignores 0.2% and 0.8% of the total unless it is lowered.
        (with(&["tiny-base", "tiny-new"], &["flat:any>+10%"]), pass),
        (with(&["tiny-base", "tiny-new"], &["flat:any>+10%", "--floor=0.5%"]), fail),
        (with(&["tiny-base", "tiny-new"], &["flat:any>+10%", "--floor=0.8"]), fail),
        (with(&["tiny-base", "tiny-new"], &["flat:any>+10%", "--floor=0.9"]), pass),
        (with(&["tiny-base", "tiny-new"], &["flat:regex=enc>+10%"]), fail),
        (with(&["tiny-base", "tiny-new"], &["flat:regex=enc>+10%", "--floor=1%"]), pass),
        // Sample types.
        (with(&["two", "two"], &["space:total>+1%", "cpu:total>+1%"]), pass),
        (with(&["two", "two"], &["space:total>4MB"]), fail),
        (with(&["two", "two"], &["space:total>5MB"]), pass),
        (with(&["two", "two"], &["total>4MB", "--sample-type=space"]), fail),
        (with(&["two", "two"], &["total>4MB"]), error),
        (with(&["two", "two"], &["objects:total>+1%"]), error),
        (with(&["base", "heap"], &["total>+5%"]), error),
        (with(&["two", "heap"], &["total>+5%"]), pass),
        (with(&["two", "heap"], &["cpu:total>+5%"]), error),
        // Replicates.
        (with(&apart, &["total>+5%"]), fail),
        (with(&apart, &["total>+15%"]), pass),
        (with(&overlap, &["total>+5%"]), fail),
        (with(&overlap, &["total>+10%"]), pass),
        (with(&overlap, &["total>+5%", "total>900ms"]), fail),
        (with(&overlap, &["total>1050ms"]), fail),
        (with(&["--base", "b0", "--new", "apart0", "apart1"], &["total>+5%"]), fail),
        (with(&["--base", "b1", "--new", "overlap0", "overlap1", "overlap2"], &["total>+5%"]), fail),
        // Input and usage errors.
        (with(&["base", "missing"], &["total>+5%"]), error),
        (with(&["base", "broken"], &["total>+5%"]), error),
        (with(&["base"], &["total>+5%"]), error),
        (with(&[], &["total>+5%"]), error),
        (with(&same, &[]), error),
        (with(&same, &["total"]), error),
        // A limit on time needs a unit.
        (with(&same, &["total>5"]), error),
        (with(&same, &["total>5ns"]), fail),
        (with(&same, &["total>+5parsec"]), error),
        (with(&same, &["total>+x%"]), error),
        (with(&same, &["total>30%"]), error),
        (with(&same, &["total:any>+3%"]), error),
        (with(&same, &["flat:regex=(>+3%"]), error),
        (with(&same, &["flat:some>+3%"]), error),
        (with(&same, &["flat:any>+3%", "--floor=many"]), error),
        (with(&same, &["total>+5%", "--config=missing.toml"]), error),
    ];
    for (args, code) in &cases {
        let out = d.run(args);
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.status.code(), Some(*code), "{args:?}\n{stdout}{stderr}");
        assert_eq!(stderr.lines().count(), usize::from(*code == 2), "{args:?}: {stderr}");
        assert_eq!(stdout.is_empty(), *code == 2, "{args:?}: {stdout}");
    }
}

/// Repeats the profile of [`second`] `times` times, with a duration of `seconds`.
fn longer(a: i64, times: i64, seconds: i64) -> Vec<u8> {
    let mut p = Profile::decode(second(a).as_slice()).unwrap();
    p.sample.iter_mut().for_each(|s| s.value[0] *= times);
    p.duration_nanos = seconds * 1_000_000_000;
    p.encode_to_vec()
}

/// With an even number of runs, the median is the mean of the two middle values, for shares as for all other limits.
#[test]
fn limits_on_shares_use_the_median() {
    let d = Dir::new("shares");
    for share in [290, 310, 900] {
        d.write(&share.to_string(), second(share));
    }
    d.write("base", second(290));
    // A file counts once, even if it is listed several times.
    d.write("900-again", second(900));
    d.write("290-again", second(290));
    let strict = |new: &[&'static str], rule: &'static str| {
        let args = [&["--base", "base", "--new"], new, &["--fail-on", rule]].concat();
        d.run(&args).status.code()
    };
    let rule = "flat:regex=^enc/>30%";
    assert_eq!(strict(&["900", "290", "900-again", "290-again"], rule), Some(1), "two of four");
    assert_eq!(strict(&["310", "290"], rule), Some(0), "at the limit");
    assert_eq!(strict(&["310", "290"], "flat:regex=^enc/>29.999999999%"), Some(1));
    assert_eq!(strict(&["900", "290", "290-again"], rule), Some(0), "one of three");
    assert_eq!(strict(&["900", "310", "290"], rule), Some(1), "two of three");
}

#[test]
fn each_run_of_the_new_side_is_normalized_separately() {
    let d = Dir::new("normalize");
    ["base", "base2", "base3"].iter().for_each(|name| d.write(name, longer(100, 1, 10)));
    // The cost per second equals the base in `same2`, and is half as large again in `more2`. The three `more` runs
    // differ only in their duration.
    d.write("same2", longer(100, 2, 20));
    d.write("more2", longer(150, 2, 20));
    [2, 3, 5].iter().for_each(|&n| d.write(&format!("more{n}-runs"), longer(150, n, n * 10)));
    d.write("zero", profile(CPU, &[("main", &[0])]));
    d.write("timeless", second(100));
    let enc = "flat:regex=^enc/>+40%";
    let runs = ["--base", "base", "base2", "base3", "--new", "more2-runs", "more3-runs", "more5-runs"];
    let with = |files: &[&'static str], more: &[&'static str]| [files, more].concat();
    for how in ["--normalize=total", "--normalize=duration", "--normalize=0.5", "--normalize=1000/2000"] {
        let fail_on = |rule| ["--fail-on", rule, how];
        for (files, rule, code) in [
            (["base", "same2"], "total>+0%", 0),
            (["base", "same2"], "flat:any>+0%", 0),
            (["base", "more2"], "total>+0%", 0),
            (["base", "more2"], enc, 1),
            (["base", "more2"], "flat:regex=^enc/>+50%", 0),
            (["base", "more2"], "flat:regex=^enc/>149ms", 1),
            (["base", "more2"], "flat:regex=^enc/>150ms", 0),
            (["base", "more2"], "flat:regex=^enc/>14.9%", 1),
            (["base", "more2"], "flat:regex=^enc/>15%", 0),
        ] {
            assert_eq!(d.run(&with(&files, &fail_on(rule))).status.code(), Some(code), "{files:?} {rule} {how}");
        }
        assert_eq!(d.run(&["base", "same2", "--fail-on", "total>+0%"]).status.code(), Some(1), "not normalized");
    }
    // The runs have different durations, so one common factor would not make them equal.
    for how in ["total", "duration"] {
        let (code, json) = d.json(&with(&runs, &["--fail-on", enc, "--normalize", how]));
        let finding = &json["rules"][0]["findings"][0];
        assert_eq!((code, &json["normalize"]["mode"]), (1, &how.into()));
        assert_eq!(finding["new"]["values"], serde_json::json!([150_000_000, 150_000_000, 150_000_000]));
        assert_eq!(finding["base"]["values"], serde_json::json!([100_000_000, 100_000_000, 100_000_000]));
    }
    // A median between two runs: 2003 * 1001.5 / 2003 is rounded once, away from zero.
    let split_profile = |v: i64| profile(CPU, &[("main", &[v - 7]), ("main;a", &[7])]);
    [("r1", 1001), ("r2", 1002), ("r3", 2003)].iter().for_each(|(name, v)| d.write(name, split_profile(*v)));
    let halves = ["--base", "r1", "r2", "--new", "r3", "--normalize=total"];
    let (_, json) = d.json(&with(&halves, &["--fail-on", "total>+1000%", "--fail-on", "flat:regex=^a$>+1000%"]));
    let values = |rule: usize| json["rules"][rule]["findings"][0]["new"]["values"].clone();
    assert_eq!((values(0), values(1)), (serde_json::json!([1002]), serde_json::json!([4])));
    // An empty run among others stays empty and causes a warning.
    d.write("same3", longer(100, 3, 30));
    let one_empty = ["--base", "base", "--new", "same2", "zero", "same3"];
    let (code, json) = d.json(&with(&one_empty, &["--fail-on", "total>+0%", "--normalize=total"]));
    assert_eq!(code, 0);
    assert!(json["warnings"][0].as_str().unwrap().contains("the total of cpu is 0 in 1 of the 3"));
    // Normalization by zero is an error.
    for (files, how, message) in [
        (["zero", "base"], "total", "base: can't normalize by total: the total of the base is zero"),
        (["timeless", "base"], "duration", "base: can't normalize by duration: the duration of the base is zero"),
        (
            ["base", "timeless"],
            "duration",
            "timeless: can't normalize by duration: the duration of the new side is zero",
        ),
        (["base", "base"], "0", "the normalization factor must be a positive number"),
        (["base", "base"], "1e18", "no longer fits an int64"),
        (["base", "base"], "half", "normalize must be total, duration"),
    ] {
        let out = d.run(&with(&files, &["--fail-on", "total>+0%", "--normalize", how]));
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), stderr.lines().count()), (Some(2), 1), "{how}: {stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
    // Every human-readable format mentions the normalization.
    for format in ["text", "markdown", "github"] {
        let out = d.run(&["base", "same2", "--fail-on", "total>+0%", "--normalize=total", "--format", format]);
        assert!(String::from_utf8_lossy(&out.stdout).contains("normalized by total"), "{format}");
    }
}

/// With one run per side, the check uses the same values as the table of frames.
#[test]
fn normalized_values_equal_the_table() {
    let d = Dir::new("normalized-table");
    let [base, new] = ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"].map(|f| corpus(f).display().to_string());
    for how in ["total", "duration", "1000/1234"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&d.0).args([&base, &new, "--format", "json", "--normalize", how]);
        let top: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let args = [&base, &new, "--fail-on", "flat:any>-100000%", "--floor", "0", "--normalize", how];
        let (_, json) = d.json(&args);
        let findings = json["rules"][0]["findings"].as_array().unwrap();
        assert!(findings.len() > 20);
        for f in findings {
            let row = top["rows"].as_array().unwrap().iter().find(|row| row["name"] == f["frame"]).unwrap();
            assert_eq!(f["new"]["values"][0], row["flat_new"], "{how} {f}");
            assert_eq!(f["base"]["values"][0], row["flat_base"], "{how} {f}");
        }
    }
}

/// Numbers that floating point cannot represent exactly (most percentages, values above 2^53), and halves.
#[test]
fn limits_are_compared_exactly() {
    let d = Dir::new("exact");
    let build = |kind: (&str, &str), v: i64| profile(&[kind], &[("main", &[v])]);
    let (two53, two60) = (1_i64 << 53, 1_i64 << 60);
    let (pass, fail) = (0, 1);
    for (base, new, rule, code) in [
        (110_000, 110_319, "total>+0.29%", pass),
        (110_000, 110_320, "total>+0.29%", fail),
        (two53, two53, "total>+0%", pass),
        (two53, two53 + 1, "total>+0%", fail),
        (two53, two53 + 1, "total>+0", fail),
        (two53, two53 + 1, "total>+1", pass),
        (two53, two53 + 1, "total>9007199254740992", fail),
        (two53, two53 + 1, "total>9007199254740993", pass),
        (two60, two60 + 100, "total>+50", fail),
        (two60, two60 + 100, "total>+99.9", fail),
        (two60, two60 + 100, "total>+100", pass),
        (two60, two60 + 1, "cum>100%", pass),
        (two60, two60 + 1, "cum>99.999999999999999%", fail),
        (1, i64::MAX - 1, "total>+999999999999999999%", fail),
        (1, 10_000_000_000_000_000, "total>+999999999999999999%", pass),
    ] {
        for (kind, unit) in [("objects", "count"), ("delay", "nanoseconds")] {
            d.write("base", build((kind, unit), base));
            d.write("new", build((kind, unit), new));
            let rule = if rule.ends_with('%') || unit == "count" { rule.to_owned() } else { format!("{rule}ns") };
            let out = d.run(&["base", "new", "--fail-on", &rule]);
            assert_eq!(out.status.code(), Some(code), "{base} -> {new}: {rule}: {out:?}");
        }
    }
    // The median of an even number of runs is half a nanosecond above the base.
    let kind = ("delay", "nanoseconds");
    d.write("a", build(kind, two53));
    d.write("b", build(kind, two53 + 1));
    let runs = ["--base", "a", "a", "--new", "a", "b"];
    for (rule, code) in [("total>+0%", fail), ("total>+0.4ns", fail), ("total>+0.5ns", pass)] {
        let (actual, json) = d.json(&[&runs[..], &["--fail-on", rule]].concat());
        assert_eq!(actual, code, "{rule}");
        assert_eq!(json["rules"][0]["findings"][0]["delta"], 0.5, "{rule}");
    }
    let (_, json) = d.json(&["b", "b", "--fail-on", "total>+1%"]);
    assert_eq!(json["rules"][0]["findings"][0]["new"]["median"], two53 + 1);
}

#[test]
fn a_limit_without_a_unit_suggests_valid_spellings() {
    let d = Dir::new("unit");
    d.write("cpu", second(100));
    d.write("heap", profile(&[("space", "bytes")], &[("main", &[5 << 20])]));
    d.write("objects", profile(&[("objects", "count")], &[("main", &[5])]));
    for (file, rule, says) in [
        ("cpu", "cum>20", "cum>20ms or cum>20%"),
        ("cpu", "flat:any>+20", "flat:any>+20ms or flat:any>+20%"),
        ("cpu", "total > 20", "total >20ms or total >+20%"),
        ("heap", "total>+20", "total>+20MB or total>+20%"),
    ] {
        let out = d.run(&[file, file, "--fail-on", rule]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{rule}");
        assert!(stderr.contains(says), "{rule}: {stderr}");
        for spelling in says.split(" or ") {
            let out = d.run(&[file, file, "--fail-on", spelling]);
            assert!(matches!(out.status.code(), Some(0 | 1)), "{spelling}: {out:?}");
        }
    }
    assert_eq!(d.run(&["objects", "objects", "--fail-on", "cum>20"]).status.code(), Some(0));
}

#[test]
fn an_empty_new_side_is_reported() {
    let d = Dir::new("empty");
    d.write("base", second(100));
    d.write("base2", second(100));
    ["none", "none2"].iter().for_each(|name| d.write(name, profile(CPU, &[])));
    let out = d.run(&["base", "none", "--fail-on", "total>+1%"]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(stderr, "pprofdiff: none: the total of cpu is 0; there is nothing to check\n");
    let out = d.run(&["--base", "base", "--new", "base", "none", "none2", "base2", "--fail-on", "total>+1%"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("as in 2 of the 4 new profiles"), "{out:?}");
    let out = d.run(&["--base", "base", "--new", "base", "none", "base2", "--fail-on", "total>+1%"]);
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(stdout.contains("warning: the total of cpu is 0 in 1 of the 3 new profiles: none"), "{stdout}");
}

#[test]
fn the_configuration_file_sets_rules_and_allowed_frames() {
    let d = Dir::new("config");
    d.write("base", second(100));
    d.write("more", second(150));
    let more = ["base", "more"];
    let text = |out: &Output| String::from_utf8(out.stdout.clone()).unwrap();
    let rules = "[check]\nrules = ['total>+5%', { fail_on = 'flat:any>+10%', sample_type = 'cpu' }]\n";
    d.write("pprofdiff.toml", rules);
    assert_eq!(d.run(&more).status.code(), Some(1));
    d.write("pprofdiff.toml", rules.replace("'cpu'", "'cpu', floor = '20%'"));
    assert_eq!(d.run(&more).status.code(), Some(0));
    d.write("pprofdiff.toml", format!("{rules}floor = '20%'"));
    assert_eq!(d.run(&more).status.code(), Some(0));
    d.write("pprofdiff.toml", format!("{rules}[[check.allow]]\nframe = '^enc/'\nreason = 'encodes twice as much'\n"));
    let out = d.run(&more);
    assert_eq!(out.status.code(), Some(0));
    assert!(text(&out).contains("allowed: encodes twice as much"), "{}", text(&out));
    // It allows only the matching frames, and warns if nothing had to be allowed.
    d.write("pprofdiff.toml", format!("{rules}[[check.allow]]\nframe = '^dec/'\nreason = 'decodes'\n"));
    let out = d.run(&more);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("allowed nothing"), "{}", text(&out));
    let allow = "[[check.allow]]\nrule = 'flat:any>+10%'\nreason = 'known'\n";
    d.write("pprofdiff.toml", format!("{rules}{allow}"));
    assert_eq!(d.run(&more).status.code(), Some(0));
    assert_eq!(d.run(&[&more[..], &["--fail-on", "cum:any>+10%"]].concat()).status.code(), Some(1));
    // A mistyped name must not turn the rules off.
    for (bad, says) in [
        ("rules = ['total>+5%']", "\"rules\" is outside of the tables [check] and [explain]"),
        ("[chek]\nrules = ['total>+5%']", "\"chek\" is outside"),
        ("[check]\nrules = [{ fail_on = 'total>+5%', opt = true }]", "floor and optional"),
        ("[check]\nrule = []", "line 2"),
        ("[check]\nrules = ['total']", "limit"),
        ("[check\n", "line 1"),
        ("[check]\nrules = [3]", "line 2"),
        ("[[check.allow]]\nframe = 'x'", "line 1"),
        ("[[check.allow]]\nframe = 'x'\nreason = ''", "reason"),
        ("", "no rules"),
    ] {
        d.write("pprofdiff.toml", bad);
        let out = d.run(&more);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{bad}");
        assert!(stderr.contains(says) && stderr.lines().count() == 1, "{bad}: {stderr}");
    }
}

#[test]
fn a_group_of_frames_counts_each_sample_once() {
    let d = Dir::new("group");
    // Recursion, and two matching frames in one stack.
    let stacks = |v: i64| profile(CPU, &[("main;enc/a;enc/b;enc/a", &[v]), ("main;enc/b;dec", &[3]), ("main", &[90])]);
    d.write("base", stacks(7));
    d.write("new", stacks(17));
    let args = ["base", "new", "--fail-on", "cum:regex=^enc/>+1%", "--fail-on", "flat:regex=^enc/>+1%"];
    let (_, report) = d.json(&args);
    let finding = |i: usize| &report["rules"][i]["findings"][0];
    assert_eq!((&finding(0)["base"]["values"][0], &finding(0)["new"]["values"][0]), (&10.into(), &20.into()));
    assert_eq!((&finding(1)["base"]["values"][0], &finding(1)["new"]["values"][0]), (&7.into(), &17.into()));
}

/// Returns the flat value of each function by name.
fn flats(p: &Profile, column: usize) -> std::collections::BTreeMap<Vec<u8>, i64> {
    let mut sums = std::collections::BTreeMap::new();
    for s in &p.sample {
        *sums.entry(leaf(p, s)).or_default() += s.value[column];
    }
    sums
}

fn leaf(p: &Profile, s: &Sample) -> Vec<u8> {
    let location = p.location.iter().find(|l| l.id == s.location_id[0]).unwrap();
    let function = location.line.first().map(|line| p.function.iter().find(|f| f.id == line.function_id).unwrap());
    function.map_or_else(Vec::new, |f| p.string_table[f.name as usize].clone())
}

/// A real profile passes when compared with itself. If one of its larger functions becomes a quarter slower, the check
/// fails and names only that function.
#[test]
fn a_mutated_profile_fails_and_an_unchanged_one_passes() {
    let d = Dir::new("mutation");
    let mut mutants = 0;
    for name in ["story-cpu", "go-heap", "node-time", "rust-cpu"] {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(corpus(&format!("{name}.base.pb.gz"))).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut bytes).unwrap();
        let whole = Profile::decode(&bytes[..]).unwrap();
        let column = whole.sample_type.len() - 1;
        let kind = String::from_utf8(whole.string_table[whole.sample_type[column].r#type as usize].clone()).unwrap();
        d.write("base", &bytes);
        let rule = ["--fail-on", &format!("{kind}:flat:any>+20%"), "--floor", "2%"];
        let (code, _) = d.json(&[&["base", "base"][..], &rule].concat());
        assert_eq!(code, 0, "{name} against itself");
        let sums = flats(&whole, column);
        let total: i64 = sums.values().sum();
        let large = sums.iter().filter(|(name, v)| **v * 20 > total && !name.is_empty());
        for (function, value) in large {
            let mut mutant = whole.clone();
            for i in 0..mutant.sample.len() {
                if &leaf(&whole, &whole.sample[i]) == function {
                    mutant.sample[i].value[column] += mutant.sample[i].value[column] / 4 + 1;
                }
            }
            d.write("mutant", mutant.encode_to_vec());
            let (code, report) = d.json(&[&["base", "mutant"][..], &rule].concat());
            assert_eq!(code, 1, "{name}: {}", String::from_utf8_lossy(function));
            assert_eq!(report["verdict"], "fail");
            let findings = report["rules"][0]["findings"].as_array().unwrap();
            assert_eq!(findings.len(), 1, "{name}: {findings:?}");
            assert_eq!(findings[0]["frame"], String::from_utf8_lossy(function).as_ref());
            assert_eq!(findings[0]["base"]["values"][0], *value);
            assert_eq!(findings[0]["new"]["values"][0], flats(&mutant, column)[function]);
            let (code, _) = d.json(&[&["mutant", "base"][..], &rule].concat());
            assert_eq!(code, 0, "{name}: cheaper is no regression");
            mutants += 1;
        }
    }
    assert!(mutants >= 8, "only {mutants} mutants");
}
