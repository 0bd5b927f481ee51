//! `pprofdiff check` as CI uses it: a table of cases with their exit codes, its outputs, and proof that it can fail: real
//! profiles of which one function is made dearer, checked by sums over prost's messages.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;
use serde_json::Value;

pub(crate) fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file)
}

/// A directory of its own for each test.
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

    /// With limits that alone decide.
    fn run(&self, args: &[&str]) -> Output {
        self.run_with_chance(&[args, &["--strict"]].concat())
    }

    pub fn run_with_chance(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&self.0).stdin(Stdio::null()).arg("check").args(args).output().unwrap()
    }

    /// Exit code, and the findings as JSON.
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

/// A profile of stacks (names root first, separated by `;`) with values of the types.
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
            let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                let (name, id) = (string(&mut p, name), p.function.len() as u64 + 1);
                p.function.push(Function { id, name, ..Function::default() });
                let line = vec![Line { function_id: id, ..Line::default() }];
                p.location.push(Location { id, line, ..Location::default() });
                names.len()
            });
            if at == names.len() {
                names.push(name);
            }
            ids.insert(0, at as u64 + 1);
        }
        p.sample.push(Sample { location_id: ids, value: values.to_vec(), ..Sample::default() });
    }
    p.encode_to_vec()
}

const CPU: &[(&str, &str)] = &[("cpu", "nanoseconds")];

/// One second in all, of which `a` has so many milliseconds and its caller `main` the rest.
fn second(a: i64) -> Vec<u8> {
    profile(CPU, &[("main", &[(1000 - a) * 1_000_000]), ("main;enc/a", &[a * 1_000_000])])
}

/// So many milliseconds in all.
fn total(ms: i64) -> Vec<u8> {
    profile(CPU, &[("main", &[ms * 1_000_000])])
}

#[test]
fn the_table_of_cases() {
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
        d.write(&format!("b{i}"), total(ms));
        d.write(&format!("apart{i}"), total(ms + 100));
    }
    // Dearer in the median, but one run is as cheap as the base's.
    for (i, ms) in [1000, 1100, 1110, 1090, 1105].into_iter().enumerate() {
        d.write(&format!("overlap{i}"), total(ms));
    }
    let b = ["--base", "b0", "b1", "b2", "b3", "b4"];
    let apart = [&b[..], &["--new", "apart0", "apart1", "apart2", "apart3", "apart4"]].concat();
    let overlap = [&b[..], &["--new", "overlap0", "overlap1", "overlap2", "overlap3", "overlap4"]].concat();
    let with = |files: &[&'static str], rules: &[&'static str]| -> Vec<&'static str> {
        let rules = rules.iter().flat_map(|r| if r.starts_with("--") { vec![*r] } else { vec!["--fail-on", *r] });
        files.iter().copied().chain(rules).collect()
    };
    let (same, more) = (["base", "same"], ["base", "more"]);
    let (pass, fail, error) = (0, 1, 2);
    let cases: Vec<(Vec<&str>, i32)> = vec![
        // Limits alone decide.
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
        (with(&more, &["flat:regex=nothing>+1%"]), pass),
        // Growth from nothing is beyond any percentage.
        (with(&["empty", "base"], &["total>+1000%"]), fail),
        // Of nothing there is nothing to check.
        (with(&["base", "empty"], &["total>+1%"]), error),
        (with(&["base", "zero"], &["total>+1%"]), error),
        (with(&["empty", "empty"], &["total>+1%", "flat:any>+1%", "flat:any>10%"]), error),
        (with(&["--base", "base", "--new", "base", "zero"], &["total>+1%"]), error),
        (with(&["--base", "base", "--new", "base", "zero", "base"], &["total>+1%"]), pass),
        // The floor: 0.2 % and 0.8 % of the total are ignored unless it is lowered.
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
        // Input and usage.
        (with(&["base", "missing"], &["total>+5%"]), error),
        (with(&["base", "broken"], &["total>+5%"]), error),
        (with(&["base"], &["total>+5%"]), error),
        (with(&[], &["total>+5%"]), error),
        (with(&same, &[]), error),
        (with(&same, &["total"]), error),
        // A time needs a unit.
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

/// A second of which `a` has a share, over again: all of it so many times, in so many seconds.
fn longer(a: i64, times: i64, seconds: i64) -> Vec<u8> {
    let mut p = Profile::decode(second(a).as_slice()).unwrap();
    p.sample.iter_mut().for_each(|s| s.value[0] *= times);
    p.duration_nanos = seconds * 1_000_000_000;
    p.encode_to_vec()
}

/// The median of an even number of runs lies between the two in the middle, for shares as for all that is limited.
#[test]
fn a_limit_on_a_share_is_compared_with_the_median() {
    let d = Dir::new("shares");
    for share in [290, 310, 900] {
        d.write(&share.to_string(), second(share));
    }
    d.write("base", second(290));
    let strict = |new: &[&'static str], rule: &'static str| {
        let args = [&["--base", "base", "--new"], new, &["--fail-on", rule]].concat();
        d.run(&args).status.code()
    };
    let rule = "flat:regex=^enc/>30%";
    assert_eq!(strict(&["900", "290", "900", "290"], rule), Some(1), "two of four");
    assert_eq!(strict(&["310", "290"], rule), Some(0), "at the limit");
    assert_eq!(strict(&["310", "290"], "flat:regex=^enc/>29.999999999%"), Some(1));
    assert_eq!(strict(&["900", "290", "290"], rule), Some(0), "one of three");
    assert_eq!(strict(&["900", "310", "290"], rule), Some(1), "two of three");
}

#[test]
fn runs_of_the_new_side_are_normalized_each_by_itself() {
    let d = Dir::new("normalize");
    d.write("base", longer(100, 1, 10));
    // As dear as the base, half as dear again, and that at three lengths.
    d.write("same2", longer(100, 2, 20));
    d.write("more2", longer(150, 2, 20));
    [2, 3, 5].iter().for_each(|&n| d.write(&format!("more{n}-runs"), longer(150, n, n * 10)));
    d.write("zero", profile(CPU, &[("main", &[0])]));
    d.write("timeless", second(100));
    let enc = "flat:regex=^enc/>+40%";
    let runs = ["--base", "base", "base", "base", "--new", "more2-runs", "more3-runs", "more5-runs"];
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
    // Runs of several lengths: one factor for all of them would leave them apart.
    for how in ["total", "duration"] {
        let (code, json) = d.json(&with(&runs, &["--fail-on", enc, "--normalize", how]));
        let found = &json["rules"][0]["findings"][0];
        assert_eq!((code, &json["normalize"]["mode"]), (1, &how.into()));
        assert_eq!(found["new"]["values"], serde_json::json!([150_000_000, 150_000_000, 150_000_000]));
        assert_eq!(found["base"]["values"], serde_json::json!([100_000_000, 100_000_000, 100_000_000]));
    }
    // A median between two runs: 2003 * 1001.5 / 2003 is rounded once, away from zero.
    let total = |v: i64| profile(CPU, &[("main", &[v - 7]), ("main;a", &[7])]);
    [("r1", 1001), ("r2", 1002), ("r3", 2003)].iter().for_each(|(name, v)| d.write(name, total(*v)));
    let halves = ["--base", "r1", "r2", "--new", "r3", "--normalize=total"];
    let (_, json) = d.json(&with(&halves, &["--fail-on", "total>+1000%", "--fail-on", "flat:regex=^a$>+1000%"]));
    let values = |rule: usize| json["rules"][rule]["findings"][0]["new"]["values"].clone();
    assert_eq!((values(0), values(1)), (serde_json::json!([1002]), serde_json::json!([4])));
    // An empty run among others stays empty and is warned of.
    let one_empty = ["--base", "base", "--new", "same2", "zero", "same2"];
    let (code, json) = d.json(&with(&one_empty, &["--fail-on", "total>+0%", "--normalize=total"]));
    assert_eq!(code, 0);
    assert!(json["warnings"][0].as_str().unwrap().contains("nothing of cpu was measured in 1 of the 3"));
    // What can't be scaled by.
    for (files, how, said) in [
        (["zero", "base"], "total", "base: can't normalize by total: that of the base is zero"),
        (["timeless", "base"], "duration", "base: can't normalize by duration: that of the base is zero"),
        (["base", "timeless"], "duration", "timeless: can't normalize by duration: that of the new side is zero"),
        (["base", "base"], "0", "the normalization factor must be a positive number"),
        (["base", "base"], "1e18", "no longer fits an int64"),
        (["base", "base"], "half", "normalize is total, duration"),
    ] {
        let out = d.run(&with(&files, &["--fail-on", "total>+0%", "--normalize", how]));
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), stderr.lines().count()), (Some(2), 1), "{how}: {stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    // All that people read says so.
    for format in ["text", "markdown", "github"] {
        let out = d.run(&["base", "same2", "--fail-on", "total>+0%", "--normalize=total", "--format", format]);
        assert!(String::from_utf8_lossy(&out.stdout).contains("normalized by total"), "{format}");
    }
}

/// With one run a side the check sees what the table of frames shows.
#[test]
fn normalized_values_are_those_of_the_table() {
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

/// Numbers at which floating point fails: percentages that are no binary fractions, values beyond 2^53, halves.
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
    // The median of an even number of runs lies half a nanosecond above the base's.
    let kind = ("delay", "nanoseconds");
    d.write("a", build(kind, two53));
    d.write("b", build(kind, two53 + 1));
    let runs = ["--base", "a", "a", "--new", "a", "b"];
    for (rule, code) in [("total>+0%", fail), ("total>+0.4ns", fail), ("total>+0.5ns", pass)] {
        let (found, json) = d.json(&[&runs[..], &["--fail-on", rule]].concat());
        assert_eq!(found, code, "{rule}");
        assert_eq!(json["rules"][0]["findings"][0]["delta"], 0.5, "{rule}");
    }
    let (_, json) = d.json(&["b", "b", "--fail-on", "total>+1%"]);
    assert_eq!(json["rules"][0]["findings"][0]["new"]["median"], two53 + 1);
}

#[test]
fn a_limit_without_a_unit_says_how_to_write_it() {
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
fn an_empty_new_side_is_said() {
    let d = Dir::new("empty");
    d.write("base", second(100));
    d.write("none", profile(CPU, &[]));
    let out = d.run(&["base", "none", "--fail-on", "total>+1%"]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(stderr, "pprofdiff: none: nothing of cpu was measured: its total is 0; there is nothing to check\n");
    let out = d.run(&["--base", "base", "--new", "base", "none", "none", "base", "--fail-on", "total>+1%"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("as in 2 of the 4 new profiles"), "{out:?}");
    let out = d.run(&["--base", "base", "--new", "base", "none", "base", "--fail-on", "total>+1%"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("warning: nothing of cpu was measured in 1 of the 3 new profiles: none"), "{said}");
}

#[test]
fn the_configuration() {
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
    // It allows only what it names, and warns if there was nothing to allow.
    d.write("pprofdiff.toml", format!("{rules}[[check.allow]]\nframe = '^dec/'\nreason = 'decodes'\n"));
    let out = d.run(&more);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("allowed nothing"), "{}", text(&out));
    let allow = "[[check.allow]]\nrule = 'flat:any>+10%'\nreason = 'known'\n";
    d.write("pprofdiff.toml", format!("{rules}{allow}"));
    assert_eq!(d.run(&more).status.code(), Some(0));
    assert_eq!(d.run(&[&more[..], &["--fail-on", "cum:any>+10%"]].concat()).status.code(), Some(1));
    // Tables of others are theirs.
    d.write("other.toml", format!("[other]\nx = 1\n{rules}"));
    assert_eq!(d.run(&["base", "more", "--config", "other.toml"]).status.code(), Some(1));
    for (bad, says) in [
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
fn a_group_counts_a_sample_once() {
    let d = Dir::new("group");
    // Recursion, and two matching frames in one stack.
    let stacks = |v: i64| profile(CPU, &[("main;enc/a;enc/b;enc/a", &[v]), ("main;enc/b;dec", &[3]), ("main", &[90])]);
    d.write("base", stacks(7));
    d.write("new", stacks(17));
    let args = ["base", "new", "--fail-on", "cum:regex=^enc/>+1%", "--fail-on", "flat:regex=^enc/>+1%"];
    let (_, found) = d.json(&args);
    let finding = |i: usize| &found["rules"][i]["findings"][0];
    assert_eq!((&finding(0)["base"]["values"][0], &finding(0)["new"]["values"][0]), (&10.into(), &20.into()));
    assert_eq!((&finding(1)["base"]["values"][0], &finding(1)["new"]["values"][0]), (&7.into(), &17.into()));
}

/// Flat of each function, by its name.
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

/// The check can fail: a real profile passes against itself; with any of its larger functions made dearer by a
/// quarter it fails, naming that function alone.
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
            let (code, found) = d.json(&[&["base", "mutant"][..], &rule].concat());
            assert_eq!(code, 1, "{name}: {}", String::from_utf8_lossy(function));
            assert_eq!(found["verdict"], "fail");
            let findings = found["rules"][0]["findings"].as_array().unwrap();
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

#[test]
fn outputs_say_the_same() {
    let d = Dir::new("outputs");
    d.write("base", second(100));
    d.write("more", second(150));
    let args = ["base", "more", "--fail-on", "flat:any>+10%", "--fail-on", "total>+5%"];
    let with = |format: &str| {
        let out = d.run(&[&args[..], &["--format", format]].concat());
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8(out.stdout).unwrap()
    };
    let (text, markdown, github) = (with("text"), with("markdown"), with("github"));
    for (format, said) in [("text", &text), ("markdown", &markdown), ("github", &github)] {
        for word in ["enc/a", "100ms", "150ms", "+50ms"] {
            assert!(said.contains(word), "{format} lacks {word}: {said}");
        }
    }
    assert!(
        github.starts_with("::error title=fail flat%3Aany>+10%25::enc/a: 100ms -> 150ms  +50ms  +50%25  +"),
        "{github}"
    );
    let (_, json) = d.json(&args);
    assert_eq!((&json["schema"], &json["kind"]), (&"pprofdiff/1".into(), &"check".into()));
    assert_eq!((&json["verdict"], &json["exit_code"]), (&"fail".into(), &1.into()));
    assert_eq!((&json["rules"][0]["compared"], &json["rules"][0]["below_floor"]), (&2.into(), &0.into()));
    let out = d.run(&[&args[..], &["--report", "r.json", "--report", "r.md", "--report", "r.txt"]].concat());
    assert_eq!((out.status.code(), String::from_utf8(out.stdout).unwrap()), (Some(1), text.clone()));
    let read = |name: &str| std::fs::read_to_string(d.0.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("r.json")).unwrap(), json);
    assert_eq!((read("r.md"), read("r.txt")), (markdown, text));
    // Who stops reading still gets the verdict.
    let mut child = Command::new(env!("CARGO_BIN_EXE_pprofdiff"))
        .current_dir(&d.0)
        .args(["check", "--strict"])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn markdown_fits_into_a_comment_and_names_stay_text() {
    let d = Dir::new("long");
    let names: Vec<String> =
        (0..3000).map(|i| format!("main;pkg{i}.{}|`<b>\n::error::", "x".repeat(i % 400))).collect();
    let build = |v: i64| {
        let value = [v];
        profile(CPU, &names.iter().map(|n| (n.as_str(), &value[..])).collect::<Vec<_>>())
    };
    d.write("base", build(10));
    d.write("new", build(20));
    let rules: Vec<String> = (0..100).map(|i| format!("flat:any>+{i}%")).collect();
    let mut args = vec!["base", "new", "--floor", "0"];
    rules.iter().for_each(|r| args.extend(["--fail-on", r]));
    let run = |format: &str| {
        let out = d.run(&[&args[..], &["--format", format]].concat());
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8(out.stdout).unwrap()
    };
    let markdown = run("markdown");
    assert!(markdown.chars().count() < 65_000, "{}", markdown.chars().count());
    assert!(markdown.contains("2995 more fail") && markdown.contains(" of 100 rules shown"), "a cut is not said");
    assert!(!markdown.contains("<b>"));
    let github = run("github");
    assert!(github.lines().all(|l| l.starts_with("::error title=") || l.starts_with("fail")), "a name breaks a line");
    assert_eq!(github.lines().filter(|l| l.starts_with("::error")).count(), 10);
    assert!(run("text").lines().all(|l| !l.starts_with("::")));
}

#[test]
fn a_check_is_of_what_is_selected() {
    let d = Dir::new("selected");
    d.write("base", second(100));
    d.write("more", second(150));
    let rule = ["base", "more", "--fail-on", "cum:any>+10%"];
    let (code, all) = d.json(&rule);
    assert_eq!(code, 1, "{all}");
    let (code, without) = d.json(&[&rule[..], &["--ignore", "enc/a"]].concat());
    assert_eq!((code, &without["verdict"]), (0, &"pass".into()), "{without}");
}

/// A page, a picture or a profile of the sides as the check saw them.
#[test]
fn reports_in_formats_without_findings_are_of_what_was_compared() {
    let d = Dir::new("compared");
    d.write("base", second(100));
    d.write("more", second(150));
    let reports = ["--report", "r.html", "--report", "r.svg", "--report", "r.pb.gz", "--report", "r.csv"];
    let args = ["base", "more", "--fail-on", "total>+5%", "--normalize", "2", "--ignore", "enc/a"];
    let (code, json) = d.json(&[&args[..], &reports].concat());
    assert_eq!((code, json["kind"].as_str()), (1, Some("check")));
    let read = |name: &str| std::fs::read_to_string(d.0.join(name)).unwrap();
    assert!(read("r.html").starts_with("<!doctype html>") && read("r.svg").starts_with("<svg"));
    // The table is of the same sums, filtered and scaled.
    let command = || Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let of = |args: &[&str]| command().current_dir(&d.0).args(args).output().unwrap().stdout;
    let asked = of(&["base", "more", "--normalize", "2", "--ignore", "enc/a", "--format", "csv"]);
    assert_eq!(read("r.csv").into_bytes(), asked);
    let written = of(&["r.pb.gz", "--format", "csv", "--sort", "flat"]);
    let names = |csv: &[u8]| String::from_utf8(csv.to_vec()).unwrap().lines().count();
    assert_eq!(names(&written), names(&asked));
    assert!(!String::from_utf8(asked).unwrap().contains("enc/a"));
}

#[test]
fn causes_are_told_whatever_the_verdict() {
    let d = Dir::new("explain");
    let (base, new) = (corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz"));
    let sides = [base.to_str().unwrap(), new.to_str().unwrap()];
    let rules =
        ["--fail-on", "total>+500%", "--fail-on", "flat:regex=canonical>+500%", "--fail-on", "samples:total>+500%"];
    let (code, json) = d.json(&[&sides[..], &rules[..2], &["--explain"]].concat());
    assert_eq!(code, 0);
    assert_eq!(json["rules"][0]["why"]["verdict"], "change", "{json}");
    assert!(d.json(&[&sides[..], &rules[..2]].concat()).1["rules"][0].get("why").is_none());
    // Of rules that fail, else of the first of its sample type.
    let (_, json) = d.json(&[&sides[..], &rules, &["--explain"]].concat());
    let told: Vec<bool> = json["rules"].as_array().unwrap().iter().map(|rule| rule.get("why").is_some()).collect();
    assert_eq!(told, [false, true, true]);
    let out = d.run(&[&sides[..], &rules[..2], &["--explain", "--format", "markdown"]].concat());
    let markdown = String::from_utf8(out.stdout).unwrap();
    assert!(markdown.contains("Why:\n- `logmill/names.compare` now calls"), "{markdown}");
}

/// What costs less, or lies elsewhere, is not why something costs more.
#[test]
fn causes_are_those_of_what_a_rule_found() {
    let d = Dir::new("why");
    let write = |name: &str, a: i64, b: i64, c: i64| {
        let others: String = (0..20).map(|i| format!("main;other{i} 100\n")).collect();
        d.write(name, format!("{others}main;x;a {a}\nmain;y;b {b}\nmain;z;c {c}\n"));
    };
    write("base", 200, 900, 200);
    write("new", 2_000, 100, 1_200);
    let rules = ["total>+1%", "flat:each=^[ab]$>-95%", "cum:regex=^z$>+5%", "cum:regex=^y$>-95%", "flat:any>+10%"];
    let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect();
    let (code, json) = d.json(&[&["base", "new"], &rules[..]].concat());
    assert_eq!(code, 1);
    let whys = json["rules"].as_array().unwrap().iter().map(|rule| {
        let causes = rule["why"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = causes.iter().map(|cause| cause["function"].as_str().unwrap()).collect();
        names.join(" ")
    });
    assert_eq!(whys.collect::<Vec<_>>(), ["a c", "a", "c", "", "a c"], "{json}");
    // For people each is said once.
    let out = d.run(&[&["base", "new"], &rules[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("  why: ")).count(), 2, "{text}");
}

/// A rule on any frame finds all frames on the way to what grew, and all below it.
#[test]
fn people_are_told_what_lies_in_nothing_else() {
    let d = Dir::new("within");
    let write = |name: &str, grown: i64| {
        // Twelve handlers below one, seven by themselves, and what stays as it is; a frame above that is in nothing else.
        let below = (0..12).map(|i| format!("main;serve;handle;h{i} {}\n", grown * (i + 1)));
        let alone = (0..7).map(|i| format!("main;only{i} {}\n", grown * (100 + i)));
        let all = below.chain(alone).chain(["main;still 100000\n".to_owned()]).collect::<String>();
        d.write(name, all);
    };
    write("base", 10);
    write("new", 20);
    let rule = ["base", "new", "--fail-on", "cum:any>+50%", "--floor", "0"];
    let (_, json) = d.json(&rule);
    let findings = json["rules"][0]["findings"].as_array().unwrap();
    let failed = |within: Value| findings.iter().filter(|f| f["within"] == within).count();
    // serve costs what handle costs: the inner one stands for both.
    assert_eq!((findings.len(), failed(Value::Null), failed("handle".into())), (21, 8, 13), "{json}");
    let text = String::from_utf8(d.run(&rule).stdout).unwrap();
    let names: Vec<&str> =
        text.lines().filter(|l| l.starts_with("  fail")).map(|l| l.rsplit("  ").next().unwrap()).collect();
    assert_eq!(names, ["only6", "only5", "only4", "only3", "only2"], "{text}");
    assert!(text.contains("\n  16 more fail\n"), "{text}");
    let text = String::from_utf8(d.run(&[&rule[..], &["--ignore", "only"]].concat()).stdout).unwrap();
    assert!(text.contains("  handle\n  13 more fail, all in stacks of handle\n"), "{text}");
    let out = d.run(&[&rule[..], &["--format", "markdown"]].concat());
    assert!(String::from_utf8(out.stdout).unwrap().contains("\n16 more fail\n"));
}

/// GitHub shows an annotation beside the line that it names.
#[test]
fn annotations_say_where_and_why() {
    let d = Dir::new("annotated");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let out = d.run(&[&sides[..], &["--fail-on", "cum:each=compare>+5%", "--format", "github"]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.starts_with("::error file=logmill/names/names.go,line="), "{text}");
    assert!(line.contains("%0Awhy: logmill/names.compare now calls logmill/names.canonical: "), "{text}");
}

/// GitHub looks for all of these after Markdown is read, so no backslash helps.
#[test]
fn markdown_mentions_nobody_and_links_nowhere() {
    let d = Dir::new("mentions");
    let strange = |v: i64| profile(&[("@octocat www.x.org http://x", "#1")], &[("main;@octocat #2", &[v])]);
    d.write("base", strange(10));
    d.write("@octocat #3", strange(90));
    let out = d.run(&["base", "@octocat #3", "--fail-on", "flat:any>+10%", "--format", "markdown"]);
    let markdown = String::from_utf8(out.stdout).unwrap();
    let text: String = markdown.split('`').step_by(2).collect();
    assert!(text.contains("(@&#8203;octocat www&#8203;.x.org http:&#8203;//x, "), "{markdown}");
    let text = text.replace("&#8203;", "\u{200b}");
    let is_plain = |mark: char| text.split(mark).skip(1).any(|rest| rest.starts_with(char::is_alphanumeric));
    assert!(!is_plain('@') && !is_plain('#'), "{markdown}");
}

#[test]
fn reports_that_cannot_be_written_are_errors() {
    let d = Dir::new("formats");
    d.write("base", second(100));
    for (option, said) in [
        (["--report", "f.docx"], "f.docx: no format is known by this ending"),
        (["--format", "csv"], "check can't be written as csv; it can as text, json, markdown, github, junit, sarif"),
        (["--sample-type", "cpu,wall"], "check shows one sample type at a time"),
    ] {
        let out = d.run(&[&["base", "base", "--fail-on", "total>+5%"], &option[..]].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!d.0.join(option[1]).exists());
    }
}

/// A profile that took a sample each millisecond: so many in each of these functions, which `main` calls.
pub(crate) fn sampled(functions: &[(&str, i64)]) -> Vec<u8> {
    let stacks: Vec<(String, [i64; 2])> =
        functions.iter().map(|(name, ms)| (format!("main;{name}"), [*ms, ms * 1_000_000])).collect();
    let stacks: Vec<(&str, &[i64])> = stacks.iter().map(|(stack, values)| (stack.as_str(), &values[..])).collect();
    profile(&[("samples", "count"), ("cpu", "nanoseconds")], &stacks)
}

/// What exceeds a limit fails if chance does not explain it.
#[test]
fn a_limit_is_exceeded_by_more_than_chance_or_not() {
    let d = Dir::new("chance");
    let write = |name: &str, runs: &[i64]| {
        for (i, ms) in runs.iter().enumerate() {
            d.write(&format!("{name}{i}"), sampled(&[("work", *ms)]));
        }
    };
    write("b", &[1000, 1010, 990, 1005, 995]);
    write("more", &[1100, 1110, 1090, 1105, 1095]);
    write("overlap", &[1000, 1100, 1110, 1090, 1105]);
    write("some", &[1150]);
    write("twice", &[2000]);
    write("base", &[1000, 1500, 700]);
    write("new", &[1250, 1875, 875]);
    let five = |name: &str| -> Vec<String> {
        let of = |name: &str| (0..5).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        [vec!["--base".to_owned()], of("b"), vec!["--new".to_owned()], of(name)].concat()
    };
    let (more, overlap) = (five("more"), five("overlap"));
    let strings = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<String>>();
    let three = strings(&["--base", "base0", "base1", "base2", "--new", "new0", "new1", "new2"]);
    let (pass, fail, error, inconclusive) = (0, 1, 2, 3);
    for (files, rule, more, code) in [
        // One run a side: as much as other programs differ by between runs.
        (strings(&["b0", "some0"]), "total>+10%", None, inconclusive),
        (strings(&["b0", "some0"]), "total>+10%", Some("--strict"), fail),
        (strings(&["b0", "some0"]), "total>+20%", None, pass),
        (strings(&["b0", "twice0"]), "total>+10%", None, fail),
        (strings(&["b0", "some0"]), "total>1.1s", None, inconclusive),
        (strings(&["b0", "twice0"]), "total>1.1s", None, fail),
        (strings(&["b0", "b0"]), "flat:regex=work>99%", None, inconclusive),
        // Several runs show how much these differ.
        (more.clone(), "total>+5%", None, fail),
        (more.clone(), "total>+50ms", None, fail),
        (more.clone(), "total>+15%", None, pass),
        (overlap.clone(), "total>900ms", None, fail),
        (overlap, "total>1050ms", None, inconclusive),
        // What is to become cheaper, and did not.
        (more.clone(), "total>-20%", None, fail),
        // Pairs take out what their runs have in common.
        (three.clone(), "total>+10%", None, inconclusive),
        (three, "total>+10%", Some("--paired"), fail),
        (strings(&["--base", "b0", "--new", "b0", "b1"]), "total>+10%", Some("--paired"), error),
        // One run can't show that nothing grew by 5 %.
        (strings(&["b0", "b1"]), "total>+5%", None, pass),
        (strings(&["b0", "b1"]), "total>+5%", Some("--require-power"), inconclusive),
        (strings(&["b0", "b1"]), "total>+100%", Some("--require-power"), pass),
    ] {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let args = [&files[..], &["--fail-on", rule], more.as_slice()].concat();
        let out = d.run_with_chance(&args);
        assert_eq!(out.status.code(), Some(code), "{args:?} {}", String::from_utf8_lossy(&out.stdout));
    }
    let (_, json) = d.json_with_chance(&["b0", "some0", "--fail-on", "total>+10%"]);
    let (rule, found) = (&json["rules"][0], &json["rules"][0]["findings"][0]);
    let needed = found["runs_needed"].as_u64().unwrap();
    assert!((3..20).contains(&needed), "{found}");
    assert!(found["p_adjusted"].as_f64().unwrap() > 0.01 && rule["detectable"].as_f64().unwrap() > 15.0, "{rule}");
    let out = d.run_with_chance(&["b0", "some0", "--fail-on", "total>+10%"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("within chance (p 0."), "{text}");
    assert!(text.contains(&format!("about {needed} runs a side would tell")), "{text}");
    assert!(text.contains(" would have failed"), "{text}");
    // A second rule leaves half of what may go wrong for each.
    let rules = ["b0", "some0", "--fail-on", "total>+10%", "--fail-on", "flat:regex=work>+10%"];
    let (_, both) = d.json_with_chance(&rules);
    let p = |json: &Value| json["rules"][0]["findings"][0]["p_adjusted"].as_f64().unwrap();
    assert!((p(&both) / p(&json) - 2.0).abs() < 1e-9);
}

/// A CI system reads the rules as tests.
#[test]
fn rules_are_test_cases() {
    let d = Dir::new("junit");
    d.write("base", sampled(&[("a<b>&\"", 1000), ("c", 1000)]));
    d.write("new", sampled(&[("a<b>&\"", 3000), ("c", 1150)]));
    let rules = ["--fail-on", "flat:any>+20%", "--fail-on", "flat:regex=c>+10%", "--fail-on", "total>+500%"];
    let out = d.run_with_chance(&[&["base", "new", "--format", "junit"][..], &rules].concat());
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8(out.stdout).unwrap();
    let tree = roxmltree::Document::parse(&text).unwrap();
    let suite = tree.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
    assert_eq!(["tests", "failures", "skipped"].map(|name| suite.attribute(name).unwrap()), ["3", "1", "1"]);
    let cases: Vec<_> = suite.children().filter(|n| n.has_tag_name("testcase")).collect();
    let of = |i: usize| cases[i].children().find(roxmltree::Node::is_element);
    assert_eq!(cases[0].attribute("name"), Some("flat:any>+20%"));
    assert!(of(0).unwrap().has_tag_name("failure") && of(0).unwrap().text().unwrap().starts_with("a<b>&\": 1s -> 3s"));
    assert!(of(1).unwrap().has_tag_name("skipped") && of(2).is_none(), "{text}");
    let report = d.run_with_chance(&[&["base", "new", "--report", "r.xml"][..], &rules].concat());
    assert_eq!(report.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(d.0.join("r.xml")).unwrap(), text);
}

/// Code scanning reads findings as SARIF: types that are made of the standard's schema take what is written, and what is
/// said there is what was found.
#[test]
fn findings_are_results_of_code_scanning() {
    let d = Dir::new("sarif");
    d.write("base", sampled(&[("a\u{1b}[2J", 1000), ("b", 1000), ("c", 1000)]));
    d.write("new", sampled(&[("a\u{1b}[2J", 3000), ("b", 3000), ("c", 1150)]));
    d.write("pprofdiff.toml", "[[check.allow]]\nframe = \"^b$\"\nreason = \"on purpose\"\n");
    let rule = |rule: &'static str| ["--fail-on", rule];
    let rules = [rule("flat:any>+20%"), rule("flat:regex=c>+10%"), rule("total>+500%"), rule("total>+500%")].concat();
    let out = d.run_with_chance(&[&["base", "new", "--report", "r.sarif", "--format", "sarif"][..], &rules].concat());
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(std::fs::read(d.0.join("r.sarif")).unwrap(), out.stdout);
    let log: serde_sarif::sarif::Sarif = serde_json::from_slice(&out.stdout).unwrap();
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    // Nothing of it is lost on the schema's types: there are no other fields than those of the standard.
    assert_eq!(serde_json::to_value(&log).unwrap(), value);
    let run = &value["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 3);
    assert_eq!(run["tool"]["driver"]["rules"][1]["id"], "flat:regex=c>+10%");
    let results: Vec<&Value> = run["results"].as_array().unwrap().iter().collect();
    let said: Vec<[&str; 3]> = results
        .iter()
        .map(|r| {
            let subject = &r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"];
            [&r["ruleId"], &r["kind"], subject].map(|v| v.as_str().unwrap())
        })
        .collect();
    // What is allowed, inconclusive or passes would be an alert as well, so it is not there.
    assert_eq!(said, [["flat:any>+20%", "fail", "a\u{fffd}[2J"]]);
    assert_eq!(results[0]["level"], "error");
    // A message is for people.
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert!(message.contains("1s -> 3s") && !message.contains('\u{1b}'), "{message}");
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "new");
}

/// Of many frames those that are small are compared as well as they can be.
#[test]
fn frames_that_are_small_fail_only_if_they_grow_much() {
    let d = Dir::new("frames");
    let names: Vec<String> = (0..40).map(|i| format!("f{i}")).collect();
    // f0 has a second, the others 25 samples each, of which chance makes 15 to 35.
    let side = |changed: &[(usize, i64)], noise: i64| {
        let cost = |i: usize| match changed.iter().find(|(at, _)| *at == i) {
            Some((_, ms)) => *ms,
            None if i == 0 => 1000,
            None => 25 + noise * (i as i64 * 7 % 11 - 5),
        };
        sampled(&names.iter().enumerate().map(|(i, name)| (name.as_str(), cost(i))).collect::<Vec<_>>())
    };
    d.write("base", side(&[], 0));
    d.write("equal", side(&[], 2));
    d.write("small", side(&[(3, 250)], 2));
    d.write("large", side(&[(0, 2500)], 2));
    let rule = ["--fail-on", "flat:any>+20%"];
    let check = |new: &str| d.json_with_chance(&[&["base", new][..], &rule].concat());
    let failed = |json: &Value| -> Vec<String> {
        let found = json["rules"][0]["findings"].as_array().unwrap();
        found.iter().filter(|f| f["outcome"] == "fail").map(|f| f["frame"].as_str().unwrap().to_owned()).collect()
    };
    let (code, json) = check("equal");
    assert_eq!((code, json["rules"][0]["too_small"].as_u64()), (0, Some(40)), "{json}");
    assert_eq!(d.run(&[&["base", "equal"][..], &rule].concat()).status.code(), Some(1), "limits alone");
    for (new, frame) in [("small", "f3"), ("large", "f0")] {
        let (code, json) = check(new);
        assert_eq!((code, failed(&json)), (1, vec![frame.to_owned()]), "{json}");
    }
}

/// What is recorded without exception, or in a way that the profile does not tell, is as sure as its runs are alike.
#[test]
fn sums_without_a_period_are_judged_by_their_runs() {
    let d = Dir::new("sums");
    let write = |name: &str, runs: &[i64]| {
        let space = |kb: i64| profile(&[("space", "bytes")], &[("main", &[kb * 1000])]);
        runs.iter().enumerate().for_each(|(i, kb)| d.write(&format!("{name}{i}"), space(*kb)));
    };
    write("base", &[1000, 1002, 999, 1001, 1000]);
    write("new", &[1100, 1101, 1099, 1102, 1100]);
    let runs = ["--base", "base0", "base1", "base2", "base3", "base4", "--new", "new0", "new1", "new2", "new3", "new4"];
    let (code, json) = d.json_with_chance(&[&runs[..], &["--fail-on", "total>+5%"]].concat());
    assert_eq!(code, 1, "{json}");
    let (code, json) = d.json_with_chance(&["base0", "new0", "--fail-on", "total>+5%"]);
    assert_eq!(code, 3, "one run a side shows nothing of how much they differ: {json}");
}

#[test]
fn limits_of_every_kind_know_chance() {
    let d = Dir::new("kinds");
    for (name, ms) in [("a", 1000), ("b", 1500), ("c", 700)] {
        d.write(name, sampled(&[("work", ms)]));
    }
    let code = |args: &[&str]| d.run_with_chance(args).status.code();
    // A limit on the new side alone compares no pairs: what these have in common is noise there.
    let pairs = ["--base", "a", "b", "c", "--new", "a", "b", "c", "--fail-on", "total>900ms"];
    assert_eq!(code(&[&pairs[..], &["--paired"]].concat()), Some(3));
    // Something new, of 6 events: more than the limit, but who knows.
    d.write("without", sampled(&[("work", 1000)]));
    d.write("with", sampled(&[("work", 1000), ("other", 6)]));
    d.write("much", sampled(&[("work", 1000), ("other", 400)]));
    assert_eq!(code(&["without", "with", "--fail-on", "flat:any>+5ms", "--floor=0"]), Some(3));
    assert_eq!(
        code(&["without", "with", "--fail-on", "flat:any>+1ms", "--floor=0"]),
        Some(0),
        "less than chance makes"
    );
    assert_eq!(code(&["without", "much", "--fail-on", "flat:any>+20ms"]), Some(1));
    // What is rare may come in bursts, however improbable its number is.
    d.write("rare", sampled(&[("work", 1000), ("other", 25)]));
    let text = String::from_utf8(d.run_with_chance(&["without", "rare", "--fail-on", "flat:any>+5ms"]).stdout).unwrap();
    assert!(text.contains("  inconclusive  0 -> 25ms") && text.contains("too few events to be sure (p "), "{text}");
    // What is to become less: how many runs would tell is counted from there.
    d.write("less", sampled(&[("work", 900)]));
    let (code_of, json) = d.json_with_chance(&["a", "less", "--fail-on", "total>-20%", "--require-power"]);
    let rule = &json["rules"][0];
    assert_eq!((code_of, &rule["detectable"]), (3, &Value::Null), "{json}");
    assert!(rule["findings"][0]["runs_needed"].as_u64().is_some(), "{json}");
    d.write("gone", sampled(&[("other", 900)]));
    assert_eq!(code(&["a", "gone", "--fail-on", "cum:regex=work>-50%", "--require-power"]), Some(0));
    // Nothing is said to be noticed where nothing was looked at.
    for args in
        [&["a", "a", "--fail-on", "cum:regex=absent>+5%"][..], &["a", "a", "--fail-on", "total>+5%", "--strict"]]
    {
        let text = String::from_utf8(d.run_with_chance(args).stdout).unwrap();
        assert!(!text.contains("would have"), "{text}");
    }
    // Within the limit is within the limit.
    let text = String::from_utf8(d.run_with_chance(&["a", "a", "--fail-on", "total>+500%"]).stdout).unwrap();
    assert!(text.contains("+500% would have failed"), "{text}");
}

/// In some languages it is chance which inlined frame is shown at the leaf; a function that costs more is seen all the
/// same.
#[test]
fn a_leaf_that_is_shown_by_chance_is_no_growth() {
    let d = Dir::new("leaf");
    let side = |leaf: &str, ms: i64| {
        let stack = format!("app::work{leaf}");
        let others = ["app::a", "app::b", "core::c", "alloc::d", "core::e"];
        let mut all: Vec<(&str, i64)> = others.into_iter().map(|name| (name, 1000)).collect();
        all.push((&stack, ms));
        sampled(&all)
    };
    d.write("base", side(";core::num::abs", 500));
    d.write("flicker", side("", 500));
    d.write("dearer", side("", 5000));
    let check = |new: &str| d.json_with_chance(&["base", new, "--fail-on", "flat:any>+20%"]);
    let (code, json) = check("flicker");
    assert_eq!(code, 0, "{json}");
    assert!(json["rules"][0]["left_out"].as_u64().unwrap() >= 2, "{json}");
    let (code, json) = check("dearer");
    assert_eq!((code, &json["rules"][0]["findings"][0]["frame"]), (1, &"app::work".into()), "{json}");
}

/// A check and `explain` say of the same runs how much a frame with a tenth of the total has to grow to be seen, by one
/// function, each by its own threshold; of a check with fewer rules it is less.
#[test]
fn one_size_of_power() {
    let d = Dir::new("power");
    let files = |build: &str, runs: usize| -> Vec<String> {
        let path = |run: usize| corpus(&format!("faults/freight/{build}-{run}.cpu.pb.gz")).to_str().unwrap().to_owned();
        (1..=runs).map(path).collect()
    };
    for runs in [1, 3] {
        let (base, new) = (files("base", runs), files("equal", runs));
        let sides = [&["--base".to_owned()], &base[..], &["--new".to_owned()], &new].concat();
        let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
        let check = |rules: &[&str]| d.json_with_chance(&[&sides[..], rules].concat()).1;
        let of_each = check(&["--fail-on", "cum:any>+5%", "--explain"]);
        let detectable = |json: &Value| json["rules"][0]["detectable"].as_f64().unwrap();
        let noise = &of_each["rules"][0]["why"]["noise"];
        let noticed = 100.0 * noise["noticed"].as_f64().unwrap();
        assert!((noticed / detectable(&of_each)).ln().abs() < 2f64.ln(), "{runs}: {noticed} {of_each}");
        assert!((noticed / 1000.0 - noise["mde"].as_f64().unwrap()).abs() < 1e-6 || noticed > 1000.0, "{noise}");
        // What is noticed is some standard deviations from what chance does.
        let far = (1.0 + noticed / 100.0).ln() / noise["deviation"].as_f64().unwrap();
        assert!((4.0..7.0).contains(&far), "{runs}: {far} {noise}");
        let two = check(&["--fail-on", "cum:any>+5%", "--fail-on", "cum:any>+5%"]);
        assert!(detectable(&two) > detectable(&of_each), "{two}");
        let rules = sides.iter().copied().chain(["--fail-on", "cum:any>+5%", "--explain"]).collect::<Vec<_>>();
        let text = String::from_utf8(d.run_with_chance(&rules).stdout).unwrap();
        assert!(text.contains("of a frame with 10% of the total would have failed"), "{text}");
    }
}

/// Where inlining differs by chance, checks of equal builds with one run a side do not fail, whatever is shown; a function
/// that costs more is found.
#[test]
fn one_run_a_side_does_not_fail_where_inlining_flickers() {
    let d = Dir::new("flicker");
    let path = |build: &str, run: usize| corpus(&format!("faults/maptiles/{build}-{run}.cpu.pb.gz"));
    let runs = |builds: &[&str]| -> Vec<PathBuf> {
        builds.iter().flat_map(|build| (1..4).map(move |run| path(build, run))).collect()
    };
    let check = |base: &Path, new: &Path| {
        let rules = ["--fail-on", "cum:any>+20%", "--fail-on", "flat:any>+20%"];
        d.json_with_chance(&[&[base.to_str().unwrap(), new.to_str().unwrap()], &rules[..]].concat())
    };
    for runs in [runs(&["base", "equal"]), runs(&["moved"]), runs(&["self"])] {
        for (base, new) in runs.iter().flat_map(|base| runs.iter().map(move |new| (base, new))) {
            let (code, json) = check(base, new);
            assert_ne!(code, 1, "{base:?} {new:?} {json}");
        }
    }
    // What is matched is said, as `--match moved` says it.
    let (_, json) = check(&path("base", 1), &path("equal", 1));
    assert!(json["warnings"].to_string().contains("matched inlined on one side"), "{json}");
    // A function that came to be shown within one that costs as much as before, and one that costs more.
    let side = |stacks: &[(&str, i64)]| {
        let others = [("app::a", 1000), ("core::c", 1000), ("alloc::d", 1000), ("core::e", 1000)];
        sampled(&[&others[..], stacks].concat())
    };
    d.write(
        "base",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 10), ("app::outer", 290)]),
    );
    d.write(
        "shown",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 290), ("app::outer", 10)]),
    );
    d.write(
        "dearer",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 2000), ("app::outer", 290)]),
    );
    assert_ne!(check(Path::new("base"), Path::new("shown")).0, 1);
    let (code, json) = check(Path::new("base"), Path::new("dearer"));
    let failed = |rule: usize| -> Vec<&str> {
        let all = json["rules"][rule]["findings"].as_array().unwrap();
        all.iter().filter(|f| f["outcome"] == "fail").filter_map(|f| f["frame"].as_str()).collect()
    };
    assert_eq!((code, failed(1)), (1, vec!["app::leaf"]), "{json}");
    assert!(failed(0).contains(&"app::inner"), "{json}");
}

/// Frames that a profiler puts there are compared only by name.
#[test]
fn artefacts_of_profiling_are_no_frames_of_the_program() {
    let d = Dir::new("artefacts");
    let side = |preempted: i64| {
        let program = ["main.run", "main.work", "runtime.mallocgc", "runtime.memmove", "strings.Index"];
        let mut all: Vec<(&str, i64)> = program.into_iter().map(|name| (name, 1000)).collect();
        all.push(("main.work;runtime.asyncPreempt", preempted));
        sampled(&all)
    };
    d.write("base", side(100));
    d.write("new", side(1000));
    let code = |rule: &str| d.run_with_chance(&["base", "new", "--fail-on", rule]).status.code();
    assert_eq!(code("flat:any>+20%"), Some(0));
    d.write("base2", side(120));
    d.write("new2", side(1100));
    assert_eq!(code("flat:each=^runtime.asyncPreempt$>+20%"), Some(1));
    // The table says why nothing is said of it, and which the words are; in JSON, too.
    let table = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let output = command
            .current_dir(&d.0)
            .args(["--base", "base", "base2", "--new", "new", "new2"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = table(&[]);
    let row = text.lines().find(|line| line.ends_with(" runtime.asyncPreempt")).unwrap();
    assert!(row.contains(" profiling ") && !row.contains('~'), "{text}");
    assert!(text.contains("profiling or inlining where"), "{text}");
    let rows: Value = serde_json::from_str(&table(&["--format", "json"])).unwrap();
    let of = |name: &str| rows["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(of("runtime.asyncPreempt")["left_out"], "profiling");
    assert_eq!(of("runtime.memmove")["left_out"], Value::Null);
}

/// Under filters the total is that of what they leave, as in every other rule; and nothing is no pass.
#[test]
fn totals_are_of_what_filters_leave() {
    let d = Dir::new("focused");
    // `enc/a` grows by half, and the rest falls by as much.
    d.write("a.pb", second(200));
    d.write("b.pb", second(300));
    for (limit, focus, code) in [
        ("total>+5%", None, 0),
        ("total>+5%", Some("enc/a"), 1),
        ("total>+51%", Some("enc/a"), 0),
        // Shares stay those of the whole, as in tables.
        ("cum:regex=enc/a>29%", Some("enc/a"), 1),
        ("cum:regex=enc/a>31%", Some("enc/a"), 0),
        ("total>+99ms", Some("enc/a"), 1),
        ("total>+100ms", Some("enc/a"), 0),
    ] {
        let focus = focus.map_or(vec![], |focus| vec!["--focus", focus]);
        let (found, json) = d.json(&[&["a.pb", "b.pb", "--fail-on", limit], &focus[..]].concat());
        assert_eq!(found, code, "{limit} {focus:?}: {json}");
    }
    let (_, json) = d.json(&["a.pb", "b.pb", "--fail-on", "total>+5%", "--ignore", "enc/a"]);
    let of = |side: &str| json["rules"][0]["findings"][0][side]["median"].as_i64();
    assert_eq!((of("base"), of("new")), (Some(800_000_000), Some(700_000_000)), "{json}");
    // With and without chance.
    for rule in ["total>+5%", "flat:any>+5%", "cum:regex=a>+5%", "total>2s", "flat:each=b>30%"] {
        for strict in [&["--strict"][..], &[]] {
            let args = ["a.pb", "b.pb", "--fail-on", rule, "--focus", "nothing like it"];
            let (code, json) = d.json_with_chance(&[&args[..], strict].concat());
            assert_eq!((code, json["verdict"].as_str()), (3, Some("inconclusive")), "{rule}: {json}");
            assert!(json["warnings"].to_string().contains("the filters leave nothing of cpu to check"), "{json}");
        }
    }
    // What is on one side alone is there: it is gone, or new.
    d.write("none.pb", profile(CPU, &[("main", &[1_000_000_000])]));
    let of = |base: &str, new: &str| d.json(&[base, new, "--fail-on", "total>+5%", "--focus", "enc/a"]).0;
    assert_eq!((of("a.pb", "none.pb"), of("none.pb", "a.pb")), (0, 1));
}
