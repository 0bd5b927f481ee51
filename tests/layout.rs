//! Tests of answers about the code of functions in both builds, on Go programs that the test builds: twice from the same
//! source with another order of functions, and with a changed source. The profiles are synthetic, with addresses in
//! these programs, so the result does not depend on time.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use pprofdiff::WriteOptions;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::columns::Mapping;
use serde_json::Value;

use crate::bench::have;

const PROGRAM: &str = r#"package main

import "os"

//go:noinline
func hash(data []byte, seed uint64) uint64 {
	h := seed
	for _, b := range data {
		h ^= uint64(b)
		h *= 1099511628211
	}
	return h
}

func step(n int) int {
	return n*7 + 3
}

//go:noinline
func fold(data []byte) int {
	n := 0
	for range data {
		n = step(n)
	}
	return n
}

//go:noinline
func count(data []byte) (n int) {
	for _, b := range data {
		if b > 7 {
			n++
		}
	}
	return n
}

//go:noinline
func join(data []byte) (n int) {
	for i := range data {
		n ^= i
	}
	return n
}

func main() {
	data := make([]byte, 1<<20)
	os.Exit(int(hash(data, 5)) + fold(data) + count(data) + join(data))
}
"#;

/// The line of `PROGRAM` with the body of the function `step`.
const LINE_OF_STEP: &str = "main.go:16";

/// The programs, their profiles, and their folder.
struct Builds(PathBuf);

impl Builds {
    /// Builds the programs `base`, `moved` (another layout), `changed` (`hash` calls `twist`, which is inlined) and
    /// `around` (`fold` changed, which contains `step`), and `called` (`main` calls `hash` twice). Returns `None` without Go.
    fn new(test: &str) -> Option<Builds> {
        if !have("go", "version", "golang", test) {
            return None;
        }
        let folder = std::env::temp_dir().join(format!("pprofdiff-layout-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("go.mod"), "module layout\n").unwrap();
        let twist = "func twist(h uint64) uint64 {\n\treturn h>>7 | h<<57\n}\n\nfunc main";
        let changed = PROGRAM.replace("h *= 1099511628211", "h = twist(h) * 1099511628211").replace("func main", twist);
        let around = PROGRAM.replace("n = step(n)\n\t}\n", "n = step(n)\n\t}\n\tn ^= n >> 9 * len(data)\n");
        let called = PROGRAM.replace("hash(data, 5)", "hash(data, 5)+hash(data, 6)");
        let builds = Builds(folder);
        for (name, source, flags) in [
            ("base", PROGRAM, "-ldflags=-randlayout=1"),
            ("moved", PROGRAM, "-ldflags=-randlayout=5"),
            ("changed", &changed, "-ldflags=-randlayout=1"),
            ("around", &around, "-ldflags=-randlayout=1"),
            ("called", &called, "-ldflags=-randlayout=1"),
        ] {
            std::fs::write(builds.0.join("main.go"), source).unwrap();
            builds.go(&["build", flags, "-o", name, "main.go"]);
        }
        Some(builds)
    }

    fn go(&self, args: &[&str]) -> String {
        let output = Command::new("go").args(args).current_dir(&self.0).env("CGO_ENABLED", "0").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the address of an instruction of a function. For `step`, it is inlined in `fold`.
    fn address(&self, program: &str, function: &str) -> u64 {
        let symbol = if function == "main.step" { "main.fold" } else { function };
        let listing = self.go(&["tool", "objdump", "-s", &format!("^{symbol}$"), program]);
        let line = if function == "main.step" { LINE_OF_STEP } else { "main.go:" };
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut found = listing.lines().filter(|text| text.contains(line)).map(words);
        let found = found.nth(usize::from(function != "main.step")).unwrap_or_else(|| panic!("{function}: {listing}"));
        u64::from_str_radix(found[1].trim_start_matches("0x"), 16).unwrap()
    }

    /// Writes a profile of a program with these numbers of samples.
    fn profile(&self, program: &str, samples: &[(&str, i64)]) {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("samples", "count");
        builder.sample_type("cpu", "nanoseconds");
        builder.period("cpu", "nanoseconds", 10_000_000);
        let line = |builder: &mut ProfileBuilder, function: &str| {
            let function = builder.function(function, "main.go", 1);
            builder.line(function, 1)
        };
        let main = line(&mut builder, "main.main");
        let (file, build_id) = (builder.string(format!("/builds/{program}")), builder.string(""));
        let mapping = builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id, flags: 15 });
        let root = builder.location(Some(mapping), self.address(program, "main.main"), &[main]).unwrap();
        for &(function, count) in samples {
            let mut lines = vec![line(&mut builder, function)];
            if function == "main.step" {
                lines.push(line(&mut builder, "main.fold"));
            }
            let leaf = builder.location(Some(mapping), self.address(program, function), &lines).unwrap();
            builder.sample(&[leaf, root], &[count, count * 10_000_000], &[]).unwrap();
        }
        let profile = builder.build(program).unwrap().to_bytes(&WriteOptions::default()).unwrap();
        std::fs::write(self.0.join(format!("{program}.pb.gz")), profile).unwrap();
    }

    /// Compares the base with another build. `hash` has 1200 samples instead of 400.
    fn compare(&self, verb: &str, program: &str, args: &[&str]) -> Output {
        self.compare_samples(verb, program, 1200, args)
    }

    /// Compares the base with another build. `hash` has this number of samples instead of 400.
    fn compare_samples(&self, verb: &str, program: &str, samples: i64, args: &[&str]) -> Output {
        self.profile("base", &[("main.hash", 400), ("main.count", 900), ("main.join", 800), ("main.step", 700)]);
        self.profile(program, &[("main.hash", samples), ("main.count", 900), ("main.join", 800), ("main.step", 700)]);
        self.run(verb, program, args)
    }

    fn run(&self, verb: &str, program: &str, args: &[&str]) -> Output {
        let new = format!("{program}.pb.gz");
        let named = ["--base-binary", "base", "--new-binary", program];
        let args = [&[verb, "base.pb.gz", &new], args, &named[..]].concat();
        self.command(&args)
    }

    fn command(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args(args).current_dir(&self.0).output().unwrap()
    }
}

impl Drop for Builds {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(output)))
}

#[test]
fn a_cause_says_whether_the_instructions_of_the_function_changed() {
    let Some(builds) = Builds::new("explain") else { return };
    let same = "its instructions are the same in both builds, so it may run more often, on other data, at another address, or \
         on a busier machine";
    let moved = text(&builds.compare("explain", "moved", &[]));
    assert!(moved.contains("main.hash (main.go:1) itself costs more") && moved.contains(same), "{moved}");
    let json_of = |program: &str| json(&builds.compare("explain", program, &["--format", "json"]));
    let cause = &json_of("moved")["causes"][0];
    assert_eq!((cause["function"].as_str(), cause["code"]["change"].as_str()), (Some("main.hash"), Some("identical")));
    assert!(cause["sentence"].to_string().contains(same), "{cause}");

    let changed = text(&builds.compare("explain", "changed", &[]));
    let json = json_of("changed");
    let code = &json["causes"][0]["code"];
    let (differing, all) = (code["differing"].as_u64().unwrap(), code["instructions"].as_u64().unwrap());
    assert!(0 < differing && differing < all, "{code}");
    let words = format!("; its instructions changed ({differing} of {all}); now inlines main.twist");
    assert!(changed.contains(&words) && !changed.contains("are the same"), "{words}: {changed}");
    let page = String::from_utf8(builds.compare("explain", "changed", &["--format", "markdown"]).stdout).unwrap();
    assert!(page.contains("its instructions changed"), "{page}");
}

#[test]
fn an_inlined_function_is_not_said_to_have_changed_itself() {
    let Some(builds) = Builds::new("inlined") else { return };
    builds.profile("base", &[("main.hash", 900), ("main.count", 900), ("main.join", 800), ("main.step", 400)]);
    for (program, words) in
        [("moved", "its instructions are the same"), ("around", "it is inlined into main.fold, whose")]
    {
        builds.profile(program, &[("main.hash", 900), ("main.count", 900), ("main.join", 800), ("main.step", 700)]);
        let explained = text(&builds.run("explain", program, &[]));
        assert!(
            explained.contains("main.step (main.go:1) itself costs more") && explained.contains(words),
            "{explained}"
        );
    }
}

#[test]
fn code_is_not_compared_unless_binaries_of_both_sides_are_named() {
    let Some(builds) = Builds::new("unnamed") else { return };
    builds.compare("explain", "moved", &[]);
    for binaries in [&[][..], &["--base-binary", "base"], &["--new-binary", "moved"]] {
        let explained = builds.command(&[&["explain", "base.pb.gz", "moved.pb.gz"], binaries].concat());
        assert!(!text(&explained).contains("instructions"), "{}", text(&explained));
        let table = builds.command(&[&["top", "base.pb.gz", "moved.pb.gz", "--format", "csv"], binaries].concat());
        assert!(!text(&table).lines().next().unwrap().contains("code"), "{}", text(&table));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.args(["explain", "base.pb.gz", "moved.pb.gz"]).env("PPROF_BINARY_PATH", &builds.0).current_dir(&builds.0);
    let explained = command.output().unwrap();
    assert!(!text(&explained).contains("instructions"), "{}", text(&explained));
}

#[test]
fn binaries_that_cannot_be_compared_are_a_warning() {
    let Some(builds) = Builds::new("unreadable") else { return };
    builds.compare("explain", "moved", &[]);
    std::fs::write(builds.0.join("moved"), "no binary").unwrap();
    for verb in ["explain", "top"] {
        let output = builds.run(verb, "moved", &[]);
        let text = text(&output);
        assert!(output.status.success() && text.contains("main.hash"), "{text}");
        assert!(text.contains("warning: the instructions of both builds are not compared: "), "{text}");
    }
}

#[test]
fn a_table_of_functions_has_a_column_with_the_difference_of_the_code() {
    let Some(builds) = Builds::new("top") else { return };
    let rows = |program: &str, args: &[&str]| {
        let csv = text(&builds.compare("top", program, &[&["--format", "csv"], args].concat()));
        let mut lines = csv.lines();
        let head: Vec<&str> = lines.next().unwrap().split(',').collect();
        let column = |name: &str| head.iter().position(|head| *head == name);
        let (name, code) = (column("name").unwrap(), column("code"));
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[name].to_owned(), code.map(|code| cells[code].to_owned()))
        };
        lines.map(row).collect::<Vec<_>>()
    };
    let code_of = |rows: &[(String, Option<String>)], name: &str| {
        rows.iter().find(|(other, _)| other == name).and_then(|(_, code)| code.clone()).unwrap_or_default()
    };
    let moved = rows("moved", &[]);
    assert!(
        ["main.hash", "main.count", "main.step"].iter().all(|name| code_of(&moved, name) == "identical"),
        "{moved:?}"
    );
    let changed = rows("changed", &[]);
    assert_eq!(code_of(&changed, "main.hash"), "inlined differently", "{changed:?}");
    assert!(["identical", "relocated"].contains(&&*code_of(&changed, "main.count")), "{changed:?}");
    assert_eq!(code_of(&moved, "main.main"), "relocated", "its calls have other distances");
    assert!(rows("moved", &["-n", "1"]).len() == 1);
    assert!(rows("moved", &["--granularity", "lines"]).iter().all(|(_, code)| code.is_none()));
    let shown = text(&builds.compare("top", "changed", &[]));
    assert!(shown.contains("inlined differently  main.hash"), "{shown}");
    let table = json(&builds.compare("top", "moved", &["--format", "json"]));
    assert!(table["rows"].as_array().unwrap().iter().any(|row| row["code"] == "identical"), "{table}");
}

#[test]
fn the_page_shows_the_code_of_functions_that_changed() {
    let Some(builds) = Builds::new("page") else { return };
    let page = text(&builds.compare("top", "moved", &["--format", "html"]));
    assert!(page.contains("identical: the same bytes in both builds"), "no code");
    assert!(page.contains("its instructions are the same in both builds"), "no sentence");
}

#[test]
fn a_check_does_not_fail_because_of_functions_with_the_same_code() {
    let Some(builds) = Builds::new("check") else { return };
    let check = |program: &str, rule: &str, args: &[&str]| {
        builds.compare_samples("check", program, 580, &[&["--strict", "--fail-on", rule], args].concat())
    };
    let code = |output: &Output| output.status.code().unwrap();
    let flat = "flat:any>+5%";
    let warned = check("moved", flat, &[]);
    let words = "main.hash: +45% flat exceeds flat:any>+5%, but its instructions are the same in both builds, so it does \
                 not fail; to let it fail, pass --same-code fail";
    assert_eq!(code(&warned), 0, "{}", text(&warned));
    assert!(text(&warned).contains(words) && text(&warned).contains("allowed"), "{}", text(&warned));
    let failed = check("moved", flat, &["--same-code", "fail"]);
    assert_eq!(code(&failed), 1);
    assert!(!text(&failed).contains("but its instructions"), "{}", text(&failed));

    // Layout does not triple the cost of a function, and a changed caller may call it more often.
    let tripled = builds.compare("check", "moved", &["--fail-on", flat]);
    assert_eq!(code(&tripled), 1);
    assert!(text(&tripled).contains("main.hash fails flat:any>+5%: its instructions are the same in both builds, but layout rarely explains more than +50%"));
    let called = check("called", flat, &[]);
    assert_eq!(code(&called), 1, "{}", text(&called));
    let words = "main.hash fails flat:any>+5%: its instructions are the same in both builds, but not those of its caller main.main";
    assert!(text(&called).contains(words), "{}", text(&called));

    // Changed code, groups, cum, totals, and limits on the new side alone fail in any case.
    assert_eq!(code(&check("changed", flat, &[])), 1);
    for rule in ["cum:any>+5%", "total>+5%", "flat:regex=hash>+5%", "flat:any>2s"] {
        assert_eq!(code(&check("moved", rule, &[])), 1, "{rule}");
    }
    let unnamed = builds.command(&["check", "base.pb.gz", "moved.pb.gz", "--strict", "--fail-on", flat]);
    assert_eq!(code(&unnamed), 1, "{}", text(&unnamed));

    let ignored = check("moved", flat, &["--same-code", "ignore"]);
    assert_eq!(code(&ignored), 0);
    assert!(!text(&ignored).contains("main.hash"), "{}", text(&ignored));
    // The configuration sets the default of the option.
    std::fs::write(builds.0.join("pprofdiff.toml"), "[check]\nsame_code = \"fail\"\n").unwrap();
    assert_eq!(code(&check("moved", flat, &[])), 1);
    assert_eq!(code(&check("moved", flat, &["--same-code", "warn"])), 0);
    std::fs::write(builds.0.join("pprofdiff.toml"), "[check]\nsame_code = \"never\"\n").unwrap();
    let wrong = check("moved", flat, &[]);
    assert!(code(&wrong) == 2 && text(&wrong).contains("pprofdiff.toml"), "{}", text(&wrong));
    std::fs::remove_file(builds.0.join("pprofdiff.toml")).unwrap();
    let ignored = json(&check("moved", flat, &["--same-code", "ignore", "--format", "json"]));
    let finding = &ignored["rules"][0]["findings"][0];
    assert_eq!((finding["frame"].as_str(), finding["code"]["change"].as_str()), (Some("main.hash"), Some("identical")));
    assert_eq!((finding["outcome"].as_str(), finding["reason"].as_str()), (Some("allowed"), None));

    for format in ["github", "sarif", "junit", "markdown"] {
        let output = text(&check("moved", flat, &["--format", format]));
        assert!(output.contains("but its instructions are the same in both builds"), "{format}: {output}");
    }
}

/// The folder of runs has the binaries of both sides.
#[cfg(feature = "mcp")]
#[test]
fn an_agent_decides_about_functions_with_the_same_code() {
    use std::io::{BufRead, BufReader, Write};
    let Some(builds) = Builds::new("agent") else { return };
    builds.compare_samples("info", "moved", 580, &[]);
    let mut runs = "schema = \"pprofdiff-runs/1\"\ncommand = []\nseed = 1\neffect = 0.01\n".to_owned();
    for (side, program) in [("base", "base"), ("new", "moved")] {
        let binaries = builds.0.join("runs/binaries").join(side);
        std::fs::create_dir_all(&binaries).unwrap();
        std::fs::copy(builds.0.join(program), binaries.join(program)).unwrap();
        std::fs::copy(builds.0.join(format!("{program}.pb.gz")), builds.0.join(format!("runs/{side}.pb.gz"))).unwrap();
        let run = "total = 1.0\nbegan = 1\nseconds = 1.0\npair = 1";
        runs.push_str(&format!("[[run]]\nside = \"{side}\"\nprofiles = [\"{side}.pb.gz\"]\n{run}\n"));
    }
    std::fs::write(builds.0.join("runs/runs.toml"), runs).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.arg("mcp").current_dir(&builds.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stdin, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let about = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{about}}}"#).unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    answers.next().unwrap().unwrap();
    let mut call = |call: &str| {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{call}}}}}"#).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    call(r#""load","arguments":{"new":["runs"]}"#);
    let mut check = |more: &str| {
        call(&format!(r#""check","arguments":{{"diff":"d1","fail_on":["flat:any>+5%"],"strict":true{more}}}"#))
    };
    let (warned, failed) = (check(""), check(r#","same_code":"fail""#));
    assert!(warned.contains("but its instructions are the same in both builds"), "{warned}");
    assert!(failed.contains("fail") && !failed.contains("but its instructions"), "{failed}");
    let wrong = check(r#","same_code":"never""#);
    assert!(wrong.contains("never"), "{wrong}");
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn a_check_explains_whether_the_code_of_a_failed_function_changed() {
    let Some(builds) = Builds::new("why") else { return };
    let output = text(&builds.compare("check", "changed", &["--fail-on", "flat:any>+5%"]));
    assert!(
        output.contains("why: main.hash (main.go:1) itself costs more") && output.contains("its instructions changed"),
        "{output}"
    );
}

#[test]
fn the_code_is_unknown_if_a_binary_is_missing() {
    let Some(builds) = Builds::new("missing") else { return };
    builds.compare("explain", "moved", &[]);
    std::fs::create_dir(builds.0.join("empty")).unwrap();
    let run = |args: &[&str]| {
        let named = ["base.pb.gz", "moved.pb.gz", "--base-binary", "base", "--new-binary", "empty"];
        builds.command(&[args, &named[..]].concat())
    };
    let explained = text(&run(&["explain"]));
    let warning = "warning: it is unknown whether instructions changed: its binary is missing";
    assert!(explained.contains(warning) && !explained.contains("its instructions"), "{explained}");
    let checked = run(&["check", "--fail-on", "flat:any>+5%"]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
    assert!(text(&run(&["top"])).contains("unknown  main.hash"));
}
