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

/// Writes a profile with this cost of `work`, and with `rest` of another function.
fn write_build(path: &Path, work: u64, rest: u64) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("main;work {work}\nmain;rest {rest}\n")).unwrap();
}

/// Runs a command in a folder. Returns the exit code, the output and the errors.
fn run_in(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let out = command.current_dir(dir).stdin(Stdio::null()).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// A folder with the histories of four services: `db` changes most since build 9, `api` since build 5, `web` does not
/// change, and `new` has two builds.
fn services(test: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pprofdiff-histories-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    for (service, changed, from) in [("api", 5, 1500), ("db", 9, 4000), ("web", 99, 0), ("new", 99, 0)] {
        let builds = if service == "new" { 1..=2 } else { 1..=14 };
        for build in builds {
            let work = if build < changed { 1000 } else { from };
            write_build(&dir.join(format!("runs/{service}/{build}.folded")), work + build % 3, 5000 + build % 2);
        }
    }
    dir
}

#[test]
fn histories_of_groups_are_ranked_by_their_largest_lasting_change() {
    let dir = services("ranked");
    let args = ["series", "--group", "service={1},build={2}", "runs/*/*.folded"];
    let run = |more: &[&str]| {
        let (code, out, errors) = run_in(&dir, &[&args[..], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""), "{out}");
        out
    };
    let text = run(&[]);
    assert!(text.starts_with("2 of 4 histories by service changed lastingly\n"), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |name: &str| rows.iter().position(|cells| cells.first() == Some(&name)).unwrap();
    assert!(row("db") < row("api") && rows[row("db")].contains(&"9") && rows[row("api")].contains(&"5"), "{text}");
    assert!(text.contains("no lasting change of own cost: web\n"), "{text}");
    assert!(text.contains("too short for a lasting change, which needs 6 builds: new\n"), "{text}");
    let json: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    let largest: Vec<_> = json["histories"].as_array().unwrap().iter().collect();
    assert_eq!((&json["kind"], &json["keys"][0], largest.len()), (&"histories".into(), &"service".into(), 4));
    assert_eq!((&largest[0]["keys"]["service"], &largest[0]["largest"]["since"]), (&"db".into(), &"9".into()));
    assert_eq!(largest[0]["series"]["builds"].as_array().unwrap().len(), 14);
    assert_eq!(largest[0]["series"]["rows"][0]["name"], "work");
    assert!(largest[2]["largest"].is_null());
    let csv = run(&["--format", "csv"]);
    assert!(csv.starts_with("service,name,file,") && csv.lines().nth(1).unwrap().starts_with("db,work,"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("api,work,")), "{csv}");
    let values = run(&["--format", "csv", "--rows", "values"]);
    assert!(values.lines().any(|line| line.starts_with("new,1,")), "{values}");
    assert!(run(&["--format", "markdown"]).contains("| db | "));
    let text = run(&["-n", "1"]);
    assert!(text.contains("db ") && !text.contains("api "), "{text}");
    // Each history's largest change is explained, and JSON explains all changes.
    let text = run(&["--explain"]);
    // The line names the builds that were compared: the builds before the change, and the builds from it on.
    assert!(text.contains("explain: db: 4..8 -> 9..13: ") && text.contains("explain: api: 1..4 -> 5..9: "), "{text}");
    assert!(run(&["--explain", "--format", "markdown"]).contains("explain: db: 4..8 -&gt; 9..13: "));
    let json: Value = serde_json::from_str(&run(&["--explain", "--format", "json"])).unwrap();
    let db = &json["histories"][0];
    assert!(db["largest"]["cause"].as_str().unwrap().contains("work"), "{db}");
    assert_eq!(db["largest"]["cause"], db["series"]["rows"][0]["cause"]);
    assert!(json["histories"][2]["largest"].is_null());
    let (code, _, errors) = run_in(&dir, &[&args[..], &["--explain", "--rows", "movers"]].concat());
    assert!(code == 2 && errors.contains("--rows"), "{errors}");
    // A name of the key before the build is the build, whatever its place.
    let swapped = run_in(&dir, &["series", "--group", "build={2},service={1}", "runs/*/*.folded"]);
    assert!(swapped.1.starts_with("2 of 4 histories by service"), "{swapped:?}");
    // One key is one history.
    let (code, one, _) = run_in(&dir, &["series", "--group", "build={1}{2}", "runs/web/[0-9]*.folded"]);
    assert!(code == 0 && one.starts_with("14 builds by key"), "{one}");
    let (code, _, errors) = run_in(&dir, &[&args[..], &["--format", "html", "-o", "x.html"]].concat());
    assert!(code == 2 && errors.contains("several histories are written as text, json, csv or markdown"), "{errors}");
    // A bad build and a bad history are reported.
    std::fs::write(dir.join("runs/web/7.folded"), "nonsense").unwrap();
    let (code, _, errors) = run_in(&dir, &args);
    assert!(code == 2 && errors.contains("web: ") && errors.contains("1 of 44 builds failed"), "{errors}");
    std::fs::create_dir_all(dir.join("runs/bad")).unwrap();
    std::fs::write(dir.join("runs/bad/7.folded"), "nonsense").unwrap();
    let (code, text, errors) = run_in(&dir, &args);
    assert!(code == 2 && text.contains("failed: bad: ") && errors.contains("1 of 5 histories failed"), "{errors}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_pattern_with_two_varying_parts_asks_which_is_the_build() {
    let dir = services("ask");
    let (code, out, errors) = run_in(&dir, &["series", "runs/*/*.folded"]);
    assert_eq!((code, out.as_str()), (2, ""));
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "  pprofdiff series --group 'service={1},build={2}' 'runs/*/*.folded'",
            "  pprofdiff series --group 'service={2},build={1}' 'runs/*/*.folded'",
        ],
        "{errors}"
    );
    assert!(lines[0].contains("several parts of \"runs/*/*.folded\" vary, and one of them is the build"), "{errors}");
    // Each command can be typed as it is.
    for line in &lines[1..] {
        let words: Vec<&str> = line.split_whitespace().skip(1).map(|word| word.trim_matches('\'')).collect();
        let (code, _, errors) = run_in(&dir, &words);
        assert_eq!(code, 0, "{line}: {errors}");
    }
    // A part that does not vary, adjacent wildcards, and parts that tell all files apart alone are no question.
    for pattern in ["runs/ap*/*.folded", "runs/web/[0-9]*.folded", "runs/w*/?*.folded"] {
        let (code, _, errors) = run_in(&dir, &["series", pattern]);
        assert_eq!(code, 0, "{pattern}: {errors}");
    }
    for build in 1..=6 {
        write_build(&dir.join(format!("days/{build}/cpu-{}.folded", 100 + build)), 1000, 10);
    }
    assert_eq!(run_in(&dir, &["series", "days/*/cpu-*.folded"]).0, 0);
    // With one base, the builds have no order.
    assert_eq!(run_in(&dir, &["series", "runs/*/*.folded", "--base", "runs/web/1.folded"]).0, 0);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Two frames may change with one build, while different commits may have changed them.
#[test]
fn lines_about_the_commits_of_one_build_name_their_frames() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-two-frames-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("builds")).unwrap();
    git(&dir, &["init", "-q", "-b", "main", "."]);
    let noise = [0, 6, -7, 5, -6, 7, -5, 3, 6, -6, 7, -7, 5, -5];
    let mut names = Vec::new();
    for (index, noise) in noise.into_iter().enumerate() {
        git(&dir, &["commit", "-m", &format!("Change {}", index + 1)]);
        names.push(git(&dir, &["rev-parse", "--short=9", "HEAD"]));
        let (work, small) = if index < 8 { (1000, 60) } else { (2000, 90) };
        let text = format!("main;work {}\nmain;small {}\nmain;rest 5000\n", work + index % 3, small + noise);
        std::fs::write(dir.join(format!("builds/{}.folded", names[index])), text).unwrap();
    }
    let (_, text, _) = run_in(&dir, &["series", "builds/*.folded", "--git"]);
    let first = format!("\nfirst bad commit: {} Change 9 (work)\n", names[8]);
    let second = format!("\nfirst bad build: {} Change 9; the change is from one of 2 commits", names[8]);
    assert!(text.contains(&first) && text.contains(&second) && text.ends_with(" (small)\n"), "{text}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn unordered_names_are_not_a_history() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-unordered-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    for service in ["api", "cart", "web"] {
        for build in 1..=4 {
            write_build(&dir.join(format!("mixed/{service}-{build}.folded")), 1000 + build, 10);
            write_build(&dir.join(format!("runs/{service}/{build}.folded")), 1000 + build, 10);
        }
        write_build(&dir.join(format!("once/{service}.folded")), 1000, 10);
    }
    let (code, _, errors) = run_in(&dir, &["series", "mixed/*.folded"]);
    let why = "api-1 to api-4, cart-1 to cart-4, web-1 to web-4 have no order between them; select one";
    assert!(code == 2 && errors.contains(why), "{errors}");
    let files: Vec<String> = (1..=4).map(|build| format!("mixed/web-{build}.folded")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(run_in(&dir, &[&["series"], &files[..], &["mixed/api-1.folded"]].concat()).0, 0);
    // Without numbers, the order is only alphabetical.
    let (code, text, _) = run_in(&dir, &["series", "once/*.folded"]);
    let warning = "warning: the builds are in alphabetical order, from api to web, because numbers are missing";
    assert!(code == 0 && text.contains(warning), "{text}");
    let given = ["series", "once/web.folded", "once/api.folded", "--order", "given"];
    assert!(!run_in(&dir, &given).1.contains("alphabetical"));
    // One key of a group cannot tell builds apart that share it.
    let (code, _, errors) = run_in(&dir, &["series", "runs/*/*.folded", "--group", "service={1}"]);
    let why = "several files have service=api, but service is the only key and would be their build; add a key for \
               several histories, such as service={1},build={2}";
    assert!(code == 2 && errors.contains(why), "{errors}");
    assert_eq!(run_in(&dir, &["series", "runs/web/*.folded", "--group", "version={1}"]).0, 0);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Runs git in a folder, with a fixed author.
fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
    command.args(if args[0] == "commit" { &["--allow-empty", "-q"][..] } else { &[] });
    let out = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn builds_named_by_commits_are_ordered_by_history_and_the_first_bad_commit_is_named() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-by-commits-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    git(&dir, &["init", "-q", "-b", "main", "."]);
    let mut ids = Vec::new();
    for number in 1..=14 {
        git(&dir, &["commit", "-m", &format!("Change {number}\n\nBody")]);
        ids.push(git(&dir, &["rev-parse", "HEAD"]));
    }
    // The length of abbreviations may differ.
    let name = |index: usize| ids[index][..if index.is_multiple_of(2) { 9 } else { 12 }].to_owned();
    for index in 0..14 {
        let work = if index < 8 { 1000 } else { 2000 };
        write_build(&dir.join(format!("builds/{}.folded", name(index))), work + index as u64 % 3, 5000);
    }
    let run = |args: &[&str]| run_in(&dir, &[&["series"], args].concat());
    let (code, json, errors) = run(&["builds/*.folded", "--git", "--format", "json"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(keys(&json), (0..14).map(name).collect::<Vec<_>>());
    assert_eq!((&json["order"], &json["builds"][8]["subject"]), (&"commits".into(), &"Change 9".into()));
    let (_, _, errors) = run(&["builds/*.folded"]);
    assert!(errors.contains("warning: the keys of the builds look like commits"), "{errors}");
    let text = run(&["builds/*.folded", "--git"]).1;
    assert!(text.contains(&format!("\nfirst bad commit: {} Change 9\n", name(8))), "{text}");
    // Without the builds of two commits, the change may be from any of three.
    for index in [6, 7] {
        std::fs::remove_file(dir.join(format!("builds/{}.folded", name(index)))).unwrap();
    }
    let text = run(&["builds/*.folded", "--git"]).1;
    let one_of =
        format!("\nfirst bad build: {} Change 9; the change is from one of 3 commits since {}\n", name(8), name(5));
    assert!(text.contains(&one_of), "{text}");
    // A bare repository elsewhere, and histories of groups.
    git(&dir, &["clone", "-q", "--bare", ".", "bare.git"]);
    let text = run(&["builds/*.folded", "--git=bare.git"]).1;
    assert!(text.contains(&one_of), "{text}");
    let text = run(&["builds/*.folded", "--git", "--group", "kind=all,build={1}"]).1;
    assert!(text.contains(&format!("all: {}: Change 9", name(8))), "{text}");
    // Unknown builds are listed.
    write_build(&dir.join("builds/0123456789.folded"), 1, 1);
    let (code, _, errors) = run(&["builds/*.folded", "--git"]);
    assert!(code == 2 && errors.contains("lacks the commits of these builds: 0123456789; "), "{errors}");
    write_build(&dir.join("builds/v1.folded"), 1, 1);
    let (code, _, errors) = run(&["builds/*.folded", "--git"]);
    assert!(code == 2 && errors.contains("these keys are not commits (7 to 40 hexadecimal digits): v1; "), "{errors}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Two versions of a program, six builds of each. The second version uses another library, has a function under another name,
/// and spends more in one call.
fn versions(test: &str) -> Builds {
    let builds = Builds::new(test, false);
    for build in 1..=12_u32 {
        let is_new = build > 6;
        let hash = |k: u32| build.wrapping_mul(2_654_435_761).wrapping_add(k.wrapping_mul(2_246_822_519));
        let noise = |k: u32| (hash(k).wrapping_mul(2_654_435_761) >> 16) % 9;
        let library = if is_new { "newlib.decode" } else { "oldlib.parse" };
        let mut text = String::new();
        (0..6).for_each(|k| text += &format!("main;load;{library}{k} {}\n", 20_000 + 120 * noise(k)));
        (0..80).for_each(|k| text += &format!("main;work;work.f{k} {}\n", 2000 + 30 * noise(k + 3)));
        let name = if is_new { "traverse" } else { "scan" };
        text += &format!("main;{name};walk;visit {}\n", 3000 + 30 * noise(1));
        text += &format!("main;send;encode {}\n", if is_new { 9000 } else { 3000 } + 30 * noise(2));
        std::fs::create_dir_all(builds.0.join(format!("v/app/{build:02}"))).unwrap();
        std::fs::write(builds.0.join(format!("v/app/{build:02}/cpu.folded")), text).unwrap();
    }
    builds
}

/// Returns the answer of `explain` about the builds around a change, without the details and the noise that a series leaves
/// out.
fn explained(builds: &Builds, first: &str, second: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.current_dir(&builds.0).stdin(Stdio::null()).arg("explain");
    for (option, side) in [("--base", first), ("--new", second)] {
        command.arg(option).args(side.split(' '));
    }
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let is_kept = |line: &&str| !line.is_empty() && !line.starts_with("   ") && !line.starts_with("Noise is ");
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

#[test]
fn a_series_explains_a_step_with_the_answer_of_explain() {
    let builds = versions("explained");
    let sides = [2..=6, 7..=11]
        .map(|side| side.map(|build| format!("v/app/{build:02}/cpu.folded")).collect::<Vec<_>>().join(" "));
    let expected = explained(&builds, &sides[0], &sides[1]);
    for line in ["Rewritten: oldlib is now newlib", "1. encode itself costs more", "Moved: scan is now called traverse"]
    {
        assert!(expected.iter().any(|other| other.starts_with(line)), "{line}: {expected:?}");
    }
    let answer = |text: &str, head: &str| {
        let lines = text.split_once(head).unwrap_or_else(|| panic!("{text}")).1.lines();
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let pattern = "v/app/*/cpu.folded";
    for rows in ["shifts", "movers"] {
        let text = builds.out(&["--explain", "--rows", rows, pattern]);
        assert_eq!(answer(&text, "\nexplain: 02..06 -> 07..11: "), expected, "{rows}");
    }
    // A small budget keeps the rewrite and the causes.
    let brief: Vec<&str> = expected.iter().map(String::as_str).filter(|line| line.starts_with(['R', '1'])).collect();
    for (rows, budget) in [("shifts", "400"), ("movers", "700")] {
        let text = builds.out(&["--explain", "--rows", rows, "--budget", budget, pattern]);
        assert_eq!(answer(&text, "\nexplain: 02..06 -> 07..11: ")[..brief.len()], brief, "{text}");
        assert!(!text.contains("Moved: "), "{text}");
    }
    let json = builds.json(&["--explain", pattern]);
    assert_eq!(json["explained"][0]["compared"], "02..06 -> 07..11");
    assert_eq!(json["explained"][0]["lines"], Value::from(expected.clone()));
    let of_row = |name: &str| {
        let rows = json["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["name"] == name).map(|row| row["cause"].as_str().unwrap().to_owned()).next().unwrap()
    };
    assert!(of_row("oldlib.parse3").starts_with("Rewritten: oldlib is now newlib"), "{}", of_row("oldlib.parse3"));
    assert!(builds.json(&[pattern])["explained"].is_null());
    let markdown = builds.out(&["--explain", "--format", "markdown", pattern]);
    assert!(markdown.contains("\nRewritten: `oldlib` is now `newlib`") && markdown.contains("\nMoved: "), "{markdown}");
    let groups = ["--explain", "--group", "name={1},build={2}", "v/*/*/cpu.folded"];
    let other = builds.0.join("v/other/01");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(builds.0.join("v/app/01/cpu.folded"), other.join("cpu.folded")).unwrap();
    assert_eq!(answer(&builds.out(&groups), "\nexplain: app: 02..06 -> 07..11: "), expected);
    let json = builds.json(&groups);
    assert_eq!(json["histories"][0]["series"]["explained"][0]["lines"], Value::from(expected));
    // A heap in use is explained with its allocations, unless the user chose the sample type.
    let heap = ["build-9/heap.pb.gz", "build-10/heap.pb.gz"];
    let expected = explained(&builds, heap[0], heap[1]);
    let text = builds.out(&[&["--explain", "--order", "given"], &heap[..]].concat());
    assert_eq!(answer(&text, "\nexplain: build-9 -> build-10: "), expected, "{text}");
    assert!(expected.iter().any(|line| line.starts_with("alloc_space: ")), "{expected:?}");
    let text = builds.out(&[&["--explain", "--order", "given", "--sample-type", "inuse_space"], &heap[..]].concat());
    assert!(!text.contains("alloc_space"), "{text}");
}

#[test]
fn several_histories_note_the_total_and_builds_that_are_the_same_profile() {
    let builds = Builds::new("notes", false);
    for (name, last) in [("copied", 6), ("other", 1)] {
        for build in 1..=last {
            let dir = builds.0.join(format!("runs/{name}/{build}"));
            std::fs::create_dir_all(&dir).unwrap();
            let snapshot = if build < 3 { "01".to_owned() } else { format!("{build:02}") };
            std::fs::copy(corpus(&format!("series/heap-{snapshot}.pb.gz")), dir.join("heap.pb.gz")).unwrap();
        }
    }
    let args = ["--group", "service={1},build={2}", "runs/*/*/heap.pb.gz"];
    let note = "1 build is the same profile as another build (2 as 1): it counts once in explanations, and does not show \
                that a level lasts";
    let text = builds.out(&args);
    assert!(text.contains(&format!("copied: {note}\n")), "{text}");
    let json = builds.json(&args);
    let notes = |name: &str| {
        let mut histories = json["histories"].as_array().unwrap().iter();
        histories.find(|history| history["keys"]["service"] == name).unwrap()["notes"].clone()
    };
    assert_eq!(notes("copied"), Value::from(vec![note]));
    let markdown = builds.out(&[&["--format", "markdown"], &args[..]].concat());
    assert!(markdown.contains("> copied: 1 build is the same profile"), "{markdown}");
}
