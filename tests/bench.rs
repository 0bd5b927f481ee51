//! `pprofdiff bench` and `--git` as people use them: runs of two commits until it is decided, of a made-up command whose
//! profile is a text and of real Go and Node programs; what goes wrong, in one line; nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder with a repository, which goes with this.
struct Repository(PathBuf);

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Repository {
    fn new(name: &str) -> Repository {
        let dir = std::env::temp_dir().join(format!("pprofdiff-bench-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let repository = Repository(dir);
        repository.git(&["init", "-q", "-b", "main", "."]);
        repository
    }

    fn git(&self, args: &[&str]) -> String {
        let about = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let output = Command::new("git").args(about).args(args).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self, subject: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
    }

    /// A program that is a shell script: it writes folded stacks with the cost in a file.
    fn shop(name: &str, old: &str, new: &str) -> Repository {
        let repository = Repository::new(name);
        let script = "read c < cost; echo run >> \"$PPROFDIFF_PROFILE.log\"\n\
                      printf 'main;shop.validate %s\\nmain;shop.render 5000\\nmain;shop.load 3000\\nmain;shop.log 2000\\n' \
                      \"$c\" > \"$PPROFDIFF_PROFILE\"\n";
        repository.commit("begin", &[("run.sh", script), ("cost", old), ("shop/email.go", &go_source("return x"))]);
        repository.commit("tidy", &[("README", "a shop\n")]);
        repository.commit("validate emails", &[("cost", new), ("shop/email.go", &go_source("return slow(x)"))]);
        repository
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&self.0).args(args).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> (Output, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        // Whatever happened, no worktree is left.
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1, "{stderr}");
        (output, stdout, stderr)
    }

    /// The one line of what must fail.
    fn failure(&self, args: &[&str]) -> String {
        let (output, stdout, stderr) = self.run(args);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        stderr
    }
}

fn go_source(body: &str) -> String {
    format!(
        "package shop\n\n// validate looks.\nfunc validate(x int) int {{\n\t{body}\n}}\n\nfunc slow(x int) int {{\n\treturn x\n}}\n"
    )
}

#[test]
fn a_change_is_found_and_its_commit_named() {
    let shop = Repository::shop("change", "4000", "9000");
    let bench = ["bench", "HEAD~2..HEAD", "--", "sh", "run.sh"];
    let (output, stdout, stderr) = shop.run(&bench);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("a change of the total: +35.7 %"), "{stderr}");
    assert!(stdout.contains("shop.validate") && stdout.contains("+5000"), "{stdout}");
    let short = shop.git(&["rev-parse", "--short", "HEAD"]);
    let line = format!("   {} validate emails, shop/email.go:5: its own lines", short.trim());
    assert!(stdout.lines().any(|l| l == line), "{stdout}");
    // The folder says the same again, and knows what was run.
    let (output, again, stderr) = shop.run(&["explain", "pprofdiff-runs", "--git", "HEAD~2..HEAD", "--format", "json"]);
    assert!(output.status.success(), "{stderr}");
    let json: Value = serde_json::from_str(&again).unwrap();
    let commits = &json["causes"][0]["commits"];
    assert_eq!((&commits["of"], &commits["ranked"][0]["reach"]), (&2.into(), &"own_lines".into()), "{commits}");
    assert_eq!(commits["ranked"][0]["lines"], serde_json::json!([5, 5]));
    let (_, stdout, _) = shop.run(&["explain", "pprofdiff-runs", "--git", "HEAD~2..HEAD~1"]);
    assert!(stdout.contains("the commit does not touch it"), "{stdout}");
    let runs = std::fs::read_to_string(shop.0.join("pprofdiff-runs/runs.toml")).unwrap();
    assert!(runs.contains("schema = \"pprofdiff-runs/1\"") && runs.contains("side = \"new\""), "{runs}");
    // It is there now; and can be gone on with, where it is decided already.
    let said = shop.failure(&bench);
    assert!(said.contains("pprofdiff-runs is there, and not empty"), "{said}");
    let (output, _, stderr) = shop.run(&["bench", "--more", "pprofdiff-runs"]);
    assert!(output.status.success() && stderr.contains("a change of the total"), "{stderr}");
}

#[test]
fn equal_sides_end_with_no_larger_change_and_the_working_tree_is_a_side() {
    let shop = Repository::shop("equal", "4000", "4000");
    let (output, _, stderr) = shop.run(&["bench", "HEAD", "--effect", "1%", "--", "sh", "run.sh"]);
    assert!(output.status.success() && stderr.contains("no change of the total larger than 1.0 %"), "{stderr}");
    std::fs::write(shop.0.join("cost"), "7000").unwrap();
    let args = ["bench", "HEAD", "--into", "again", "--build", "test -f run.sh", "--runs", "3", "--", "sh", "run.sh"];
    let (output, stdout, stderr) = shop.run(&args);
    // Three are too few to be sure.
    assert!(output.status.success() && stderr.contains("undecided: +21.4 %"), "{stderr}");
    assert!(stdout.contains("14.0k") || stdout.contains("14000"), "{stdout}");
    let (_, _, stderr) = shop.run(&["bench", "--more", "again", "--runs", "20"]);
    assert!(stderr.contains("a change of the total: +21.4 %"), "{stderr}");
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let shop = Repository::shop("wrong", "4000", "4000");
    let into = |name: &'static str| ["bench", "HEAD~1..HEAD", "--into", name];
    let said = |args: &[&str], wanted: &str| {
        let line = shop.failure(args);
        assert!(line.contains(wanted), "{args:?}: {line}");
    };
    said(&["bench", "nothing..HEAD", "--", "sh", "run.sh"], "git knows no commit \"nothing\"");
    let build =
        [&into("r1")[..], &["--build", "echo so it is >&2; test $(cat cost) = 1", "--", "sh", "run.sh"]].concat();
    said(&build, "the build of the base side failed (exit status: 1): so it is");
    said(&[&into("r2")[..], &["--", "true"]].concat(), "true wrote no profile to");
    said(&[&into("r3")[..], &["--", "no-such-program"]].concat(), "no-such-program can't be started");
    said(&[&into("r4")[..], &["--", "sh", "-c", "echo oh no; exit 3"]].concat(), "(exit status: 3): oh no");
    said(&into("r5"), "no command is given");
    said(&["bench", "--into", "r6", "--", "true"], "name what to compare");
    said(&[&into("r7")[..], &["--effect", "0%", "--", "true"]].concat(), "more than 0%");
    said(&["bench", "--more", "none"], "none/runs.toml");
    said(&["explain", "a.pb.gz", "b.pb.gz", "--git", "x..y"], "git knows no commit \"x\"");
    said(&["explain", "--git", "run.sh", "b.pb.gz"], "--git takes a range of commits, and run.sh is a file");
    // Outside of a repository.
    let outside = std::env::temp_dir().join(format!("pprofdiff-bench-none-{}", std::process::id()));
    std::fs::create_dir_all(&outside).unwrap();
    let output = shop.command(&["bench", "a..b", "--", "true"]).current_dir(&outside).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("not a git repository"), "{stderr}");
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_run_that_dies_does_not_take_the_others() {
    let shop = Repository::shop("dies", "4000", "9000");
    // Of the third pair, the new side.
    let dying = "case \"$PPROFDIFF_PROFILE\" in */new-3/*) echo gone; exit 1;; esac; sh run.sh";
    let (output, stdout, stderr) = shop.run(&["bench", "HEAD~2..HEAD", "--", "sh", "-c", dying]);
    assert!(output.status.success() && stdout.contains("shop.validate"), "{stderr}");
    assert!(
        stderr.contains("pair 3 does not count: command failed on the new side (exit status: 1): gone"),
        "{stderr}"
    );
    assert!(stderr.contains("a change of the total"), "{stderr}");
}

/// Starts a bench whose third pair hangs, ends it by a signal, and returns what it said.
#[cfg(unix)]
fn ended_by(signal: &str) -> (Repository, Output) {
    let shop = Repository::shop(signal, "4000", "9000");
    let hanging = "case \"$PPROFDIFF_PROFILE\" in */new-3/*) echo $$ > \"$PPROFDIFF_PROFILE.pid\"; sleep 600 & wait;; esac; sh run.sh";
    let mut command = shop.command(&["bench", "HEAD~2..HEAD", "--", "sh", "-c", hanging]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hung = shop.0.join("pprofdiff-runs/new-3/profile.pid");
    let begun = Instant::now();
    while !hung.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let group = std::fs::read_to_string(&hung).unwrap_or_default();
    let id = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let group = format!("-{}", group.trim());
    let is_left = || Command::new("kill").args(["-0", "--", &group]).stderr(Stdio::null()).status().unwrap().success();
    // Orphans that were killed are init's, which takes them away in its own time.
    let ended = Instant::now();
    while is_left() && ended.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_left(), "processes of group {group} are left");
    assert_eq!(shop.git(&["worktree", "list"]).lines().count(), 1);
    (shop, output)
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_kill_keep_what_is_measured_and_leave_nothing() {
    for signal in ["INT", "TERM"] {
        let (_shop, output) = ended_by(signal);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{signal}: {stderr}");
        assert!(stderr.contains("interrupted") && stdout.contains("shop.validate"), "{signal}: {stderr} {stdout}");
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: there is no {program}");
    }
    found
}

#[test]
fn a_benchmark_of_go_does_the_same_operations_on_both_sides() {
    if !has("go") {
        return;
    }
    let repository = Repository::new("go");
    let source = |rounds: u32| {
        format!(
            "package shop\n\nfunc Work(n int) int {{\n\ts := n\n\tfor i := 0; i < {rounds}; i++ {{\n\t\ts = s*31 + i%7\n\t}}\n\treturn s\n}}\n"
        )
    };
    let test = "package shop\n\nimport \"testing\"\n\nvar kept int\n\nfunc BenchmarkWork(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tkept += Work(i)\n\t}\n}\n";
    repository.commit(
        "begin",
        &[("go.mod", "module acme/shop\n\ngo 1.20\n"), ("work.go", &source(20_000)), ("work_test.go", test)],
    );
    repository.commit("more rounds", &[("work.go", &source(40_000))]);
    let go = ["--", "go", "test", "-bench", "Work", "-benchtime", "200ms", "."];
    let (output, stdout, stderr) = repository.run(&[&["bench", "HEAD~1..HEAD", "--runs", "8"][..], &go].concat());
    assert!(output.status.success() && stderr.contains("a change of the total: +"), "{stderr}");
    assert!(stdout.contains("acme/shop.") && stdout.contains("more rounds, work.go:5: its own lines"), "{stdout}");
    let runs = std::fs::read_to_string(repository.0.join("pprofdiff-runs/runs.toml")).unwrap();
    let operations: Vec<&str> = runs.lines().filter(|line| line.starts_with("operations = ")).collect();
    assert!(operations.len() >= 10 && operations.iter().all(|line| *line == operations[0]), "{runs}");
    assert!(runs.contains("mem.pb.gz") && repository.0.join("pprofdiff-runs/base.bin").exists(), "{runs}");
}

#[test]
fn a_script_of_node_is_profiled_by_node() {
    if !has("node") {
        return;
    }
    let repository = Repository::new("node");
    let script = |rounds: u32| {
        format!(
            "function work(n) {{\n  let s = n;\n  for (let i = 0; i < {rounds}; i++) s = (s * 31 + i) % 1000003;\n  return s;\n}}\nlet sum = 0;\nfor (let k = 0; k < 20; k++) sum += work(k);\nconsole.log(sum);\n"
        )
    };
    repository.commit("begin", &[("bench.js", &script(300_000))]);
    repository.commit("more rounds", &[("bench.js", &script(6_000_000))]);
    let (output, stdout, stderr) = repository.run(&["bench", "HEAD~1..HEAD", "--runs", "3", "--", "node", "bench.js"]);
    assert!(output.status.success() && stdout.contains("work"), "{stderr} {stdout}");
    let runs = std::fs::read_to_string(repository.0.join("pprofdiff-runs/runs.toml")).unwrap();
    assert_eq!(runs.matches(".cpuprofile").count(), 6, "{runs}");
}
