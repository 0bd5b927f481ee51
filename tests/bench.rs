//! Tests of `pprofdiff bench` and `--git` as users run them. Most benchmark a shell script whose profile is folded
//! text; a few benchmark real Go, Node and C programs. The tests check the decision between two commits, the one-line
//! errors, and that no worktree, process or temporary file is left behind.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "oracle/tools.rs"]
mod tools;

pub(crate) use tools::have;

/// A temporary folder with a Git repository. It is removed on drop.
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

    /// Creates a repository with a shell script that writes folded stacks; the cost comes from the file `cost`.
    fn shop(name: &str, old: &str, new: &str) -> Repository {
        let repository = Repository::new(name);
        let script = "c=${COST:-$(cat cost)}; echo run >> \"$PPROFDIFF_PROFILE.log\"\n\
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
        // No worktree may remain, whether or not the run succeeded.
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1, "{stderr}");
        (output, stdout, stderr)
    }

    /// Runs a command that must fail, and returns its one line of stderr.
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
    // An uncommitted change is not part of a commit range.
    std::fs::write(shop.0.join("cost"), "1").unwrap();
    let bench = ["bench", "HEAD~2..HEAD", "--", "sh", "run.sh"];
    let (output, stdout, stderr) = shop.run(&bench);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("a change of the total: +35.7 %"), "{stderr}");
    assert!(stdout.contains("shop.validate") && stdout.contains("+5000"), "{stdout}");
    let short = shop.git(&["rev-parse", "--short", "HEAD"]);
    let line = format!("   {} validate emails, shop/email.go:5: changes the function itself", short.trim());
    assert!(stdout.lines().any(|l| l == line), "{stdout}");
    assert!(stdout.contains("pprofdiff peek '^shop\\.validate$' ") && !stdout.contains("--base"), "{stdout}");
    // `explain` reads the result again from the folder, which also records the commands.
    let (output, again, stderr) = shop.run(&["explain", "pprofdiff-runs", "--git", "HEAD~2..HEAD", "--format", "json"]);
    assert!(output.status.success(), "{stderr}");
    let json: Value = serde_json::from_str(&again).unwrap();
    let commits = &json["causes"][0]["commits"];
    assert_eq!((&commits["of"], &commits["ranked"][0]["reach"]), (&2.into(), &"own_lines".into()), "{commits}");
    assert_eq!(commits["ranked"][0]["lines"], serde_json::json!([5, 5]));
    let (_, stdout, _) = shop.run(&["explain", "pprofdiff-runs", "--git", "HEAD~2..HEAD~1"]);
    // The innocent commit is not named.
    assert!(
        stdout.contains(
            "no change of shop.validate was found in the commit; its definition was not located in the sources\n"
        ),
        "{stdout}"
    );
    let runs = std::fs::read_to_string(shop.0.join("pprofdiff-runs/runs.toml")).unwrap();
    assert!(runs.contains("schema = \"pprofdiff-runs/1\"") && runs.contains("side = \"new\""), "{runs}");
    // A second benchmark gets a folder of its own, and git ignores both.
    let (output, _, stderr) = shop.run(&bench);
    assert!(output.status.success() && stderr.contains("pprofdiff-runs-2"), "{stderr}");
    assert!(!shop.git(&["status", "--porcelain"]).contains("pprofdiff-runs"));
    // A second run into a named folder is refused. `--more` continues it; here the decision has already been made.
    let error = shop.failure(&["bench", "--into", "pprofdiff-runs", "HEAD~2..HEAD", "--", "sh", "run.sh"]);
    assert!(error.contains("pprofdiff-runs already has runs; add to them with --more pprofdiff-runs"), "{error}");
    let (output, _, stderr) = shop.run(&["bench", "--more", "pprofdiff-runs", "--yes"]);
    assert!(output.status.success() && stderr.contains("a change of the total"), "{stderr}");
}

#[test]
fn bench_of_one_commit_compares_it_with_the_working_tree() {
    let shop = Repository::shop("equal", "4000", "4000");
    let (output, _, stderr) = shop.run(&["bench", "HEAD", "--effect", "1%", "--", "sh", "run.sh"]);
    assert!(output.status.success() && stderr.contains("no change of the total larger than 1.0 %"), "{stderr}");
    std::fs::write(shop.0.join("cost"), "7000").unwrap();
    let args = ["bench", "HEAD", "--into", "again", "--build", "test -f run.sh", "--runs", "3", "--", "sh", "run.sh"];
    let (output, stdout, stderr) = shop.run(&args);
    // Three pairs are too few for a decision.
    assert!(output.status.success() && stderr.contains("undecided: +21.4 %"), "{stderr}");
    assert!(stdout.contains("14.0k") || stdout.contains("14000"), "{stdout}");
    let (_, _, stderr) = shop.run(&["bench", "--more", "again", "--yes", "--runs", "20"]);
    // The earlier pairs still count.
    assert!(stderr.contains("a change of the total: +21.4 %") && !stderr.contains("1 + 1 runs"), "{stderr}");
}

#[test]
fn each_failure_prints_one_line_that_names_the_problem() {
    let shop = Repository::shop("wrong", "4000", "4000");
    let into = |name: &'static str| ["bench", "HEAD~1..HEAD", "--into", name];
    let expect_failure = |args: &[&str], expected: &str| {
        let line = shop.failure(args);
        assert!(line.contains(expected), "{args:?}: {line}");
    };
    expect_failure(&["bench", "nothing..HEAD", "--", "sh", "run.sh"], "git: unknown commit \"nothing\"");
    let build =
        [&into("r1")[..], &["--build", "echo so it is >&2; test $(cat cost) = 1", "--", "sh", "run.sh"]].concat();
    expect_failure(&build, "the build of the base side failed (exit status: 1): so it is");
    expect_failure(&[&into("r2")[..], &["--", "true"]].concat(), "true wrote no profile to");
    expect_failure(&[&into("r2")[..], &["--", "true"]].concat(), "record it with perf (-- perf record -g true)");
    let missing = "./gone does not exist in the checkout of the base side, which has only committed files; add --build";
    expect_failure(&[&into("r2")[..], &["--", "./gone", "1"]].concat(), missing);
    let built = [&into("r2")[..], &["--build", "true", "--", "./gone"]].concat();
    expect_failure(&built, "./gone does not exist on the base side after the build (true)");
    expect_failure(&[&into("r3")[..], &["--", "no-such-program"]].concat(), "no-such-program can't be started");
    let failing = [&into("r4")[..], &["--", "sh", "-c", "echo Error: oh no; echo '  0: start'; exit 3"]].concat();
    expect_failure(&failing, "(exit status: 3): Error: oh no; the full output is in ");
    // The output file of the failed run exists, and does not block the next run.
    let line = shop.failure(&failing);
    let kept = line.trim().rsplit(" is in ").next().unwrap();
    assert!(std::fs::read_to_string(kept).unwrap().ends_with("  0: start\n"), "{line}");
    let (output, _, stderr) = shop.run(&[&into("r4")[..], &["--runs", "2", "--", "sh", "run.sh"]].concat());
    assert!(output.status.success(), "{stderr}");
    expect_failure(&into("r5"), "no command is given");
    expect_failure(&["bench", "--into", "r6", "--", "true"], "name what to compare");
    expect_failure(&[&into("r7")[..], &["--effect", "0%", "--", "true"]].concat(), "greater than 0%");
    expect_failure(&["bench", "--more", "none"], "none/runs.toml");
    expect_failure(&[&into("r8")[..], &["--format", "svg", "--", "true"]].concat(), "svg needs a file");
    expect_failure(&["explain", "a.pb.gz", "b.pb.gz", "--git", "x..y"], "git: unknown commit \"x\"");
    expect_failure(&["explain", "--git", "run.sh", "b.pb.gz"], "--git needs a range of commits, but run.sh is a file");
    // Simulates a full disk: files may not grow beyond a few blocks.
    let program = env!("CARGO_BIN_EXE_pprofdiff");
    for (prepare, into) in [("trap '' XFSZ; ulimit -f 2", "r9"), ("ulimit -f 2", "r10")] {
        let full = format!("{prepare}; {program} bench HEAD~1..HEAD --into {into} -- sh run.sh");
        let output = Command::new("sh").args(["-c", &full]).current_dir(&shop.0).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2), "{prepare}: {stderr}");
        assert!(
            stderr.lines().last().is_some_and(|line| line.contains("runs.toml") && line.contains("File too large")),
            "{prepare}: {stderr}"
        );
        assert_eq!(shop.git(&["worktree", "list"]).lines().count(), 1);
    }
    // Outside a repository.
    let outside = std::env::temp_dir().join(format!("pprofdiff-bench-none-{}", std::process::id()));
    std::fs::create_dir_all(&outside).unwrap();
    let output = shop.command(&["bench", "a..b", "--", "true"]).current_dir(&outside).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("not a git repository"), "{stderr}");
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_failing_run_does_not_stop_the_others() {
    let shop = Repository::shop("dies", "4000", "9000");
    // The new side of the third pair fails.
    let dying = "case \"$PPROFDIFF_PROFILE\" in */new-3/*) echo gone; exit 1;; esac; sh run.sh";
    let (output, stdout, stderr) = shop.run(&["bench", "HEAD~2..HEAD", "--", "sh", "-c", dying]);
    assert!(output.status.success() && stdout.contains("shop.validate"), "{stderr}");
    assert!(
        stderr.contains("pair 3 does not count: command failed on the new side (exit status: 1): gone"),
        "{stderr}"
    );
    assert!(stderr.contains("a change of the total"), "{stderr}");
}

/// Starts a benchmark whose third pair hangs, ends it with a signal, and returns its output.
#[cfg(unix)]
fn interrupt_bench(signal: &str) -> (Repository, Output) {
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
    // Init reaps killed orphans, possibly after a delay.
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
fn ctrl_c_and_kill_keep_finished_runs_and_leave_no_process() {
    for signal in ["INT", "TERM"] {
        let (_shop, output) = interrupt_bench(signal);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{signal}: {stderr}");
        assert!(stderr.contains("interrupted") && stdout.contains("shop.validate"), "{signal}: {stderr} {stdout}");
    }
}

/// Git sets these variables for a hook. If the benchmark inherited them, its checkout would overwrite the user's index.
/// Settings in `GIT_CONFIG_*` stay, because CI images use them.
#[test]
fn a_benchmark_in_a_hook_keeps_the_users_index() {
    let shop = Repository::shop("hook", "4000", "9000");
    std::fs::write(shop.0.join("mine.txt"), "a\n").unwrap();
    shop.git(&["add", "mine.txt"]);
    let unset =
        "test -z \"$GIT_DIR$GIT_INDEX_FILE$GIT_WORK_TREE$GIT_PREFIX\" && test \"$GIT_CONFIG_COUNT\" = 0 && sh run.sh";
    let mut command = shop.command(&["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "-c", unset]);
    command.env("GIT_DIR", shop.0.join(".git")).env("GIT_INDEX_FILE", shop.0.join(".git/index"));
    command.env("GIT_WORK_TREE", &shop.0).env("GIT_PREFIX", "x/").env("GIT_CONFIG_COUNT", "0");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("does not count"), "{stderr}");
    assert_eq!(shop.git(&["status", "--short", "--untracked-files=no"]), "A  mine.txt\n");
    assert_eq!(shop.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn user_worktrees_on_an_unmounted_disk_are_kept() {
    let shop = Repository::shop("prune", "4000", "9000");
    let (disk, unplugged) = (shop.0.join("disk"), shop.0.join("unplugged"));
    shop.git(&["worktree", "add", "-q", "--detach", disk.to_str().unwrap()]);
    std::fs::rename(&disk, &unplugged).unwrap();
    let output = shop.command(&["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "run.sh"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&unplugged, &disk).unwrap();
    shop.git(&["-C", "disk", "status"]);
    assert_eq!(shop.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_folder_with_user_files_is_refused_and_kept() {
    let shop = Repository::shop("into", "4000", "9000");
    let bench = ["bench", "HEAD~2..HEAD", "--runs", "2", "--into", "mine", "--", "sh", "run.sh"];
    for mine in ["mine/base-1/cpu.pb.gz", "mine/sources/thesis.txt", "mine/runs.toml"] {
        let file = shop.0.join(mine);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "x").unwrap();
        let line = shop.failure(&bench);
        assert!(line.contains("mine has files that bench did not write; choose an empty or new folder"), "{line}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
        std::fs::remove_dir_all(shop.0.join("mine")).unwrap();
    }
    // In a folder of runs, bench skips a name that is taken.
    let (output, ..) = shop.run(&bench);
    assert!(output.status.success());
    std::fs::create_dir(shop.0.join("mine/base-3")).unwrap();
    std::fs::write(shop.0.join("mine/base-3/thesis.txt"), "x").unwrap();
    let (output, _, stderr) = shop.run(&["bench", "--more", "mine", "--yes", "--runs", "3"]);
    assert!(output.status.success() && stderr.contains("(3 + 3 runs)"), "{stderr}");
    assert!(shop.0.join("mine/base-3/thesis.txt").exists() && shop.0.join("mine/base-3-2/profile").exists());
}

/// An attacker who can guess the name of a folder in /tmp could place files there for us to run or remove.
#[cfg(unix)]
#[test]
fn worktrees_are_created_in_a_new_private_folder() {
    let shop = Repository::shop("private", "4000", "9000");
    let script = "mkdir -p tmp/pprofdiff-bench-$$/base; touch tmp/pprofdiff-bench-$$/base/thesis.txt; TMPDIR=tmp exec \"$0\" \"$@\"";
    let run = "ls -ld .. >> \"$OLD/modes\"; pwd >> \"$OLD/places\"; sh run.sh";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_pprofdiff")]).current_dir(&shop.0).env("OLD", &shop.0);
    command.args(["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "-c", run]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(shop.0.join(name)).unwrap();
    assert!(read("modes").lines().all(|line| line.starts_with("drwx------")), "{}", read("modes"));
    let places = read("places");
    let parents: std::collections::HashSet<&str> =
        places.lines().map(|place| place.rsplit('/').nth(1).unwrap()).collect();
    assert!(parents.len() == 2 && parents.iter().all(|name| name.len() > 30), "{parents:?}");
    // Only the attacker's folder remains.
    let left: Vec<_> = std::fs::read_dir(shop.0.join("tmp")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.len() == 1 && left[0].join("base/thesis.txt").exists(), "{left:?}");
}

#[test]
fn commit_names_are_never_git_options() {
    let shop = Repository::shop("option", "4000", "9000");
    shop.git(&["update-ref", "refs/heads/--output=x", "HEAD~2"]);
    let (output, ..) = shop.run(&["bench", "HEAD~2..HEAD", "--runs", "2", "--into", "runs", "--", "sh", "run.sh"]);
    assert!(output.status.success());
    let (output, stdout, stderr) = shop.run(&["explain", "runs", "--git=--output=x..HEAD"]);
    assert!(output.status.success() && stdout.contains("validate emails"), "{stdout}{stderr}");
    let file = shop.0.join("runs/runs.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("HEAD~2..HEAD", "--output=x..HEAD");
    std::fs::write(&file, text).unwrap();
    let (output, _, stderr) = shop.run(&["bench", "--more", "runs", "--yes", "--runs", "3", "--bisect"]);
    assert!(output.status.success(), "{stderr}");
    // The folder of runs ignores itself, and no file x exists.
    assert_eq!(shop.git(&["status", "--short"]), "");
}

#[test]
fn options_that_cannot_work_are_refused_before_the_first_run() {
    let shop = Repository::shop("refused", "4000", "9000");
    std::fs::write(shop.0.join("bad.toml"), "[check]\nrules = ['total']\n").unwrap();
    for (options, reason) in [
        (&["--granularity", "lines"][..], "explain names functions"),
        (&["--normalize", "total"], "if it is known, give --ops"),
        (&["--format", "csv", "--fail-on", "total>+5%"], "check can't be written as csv"),
        (&["--config", "absent.toml"], "absent.toml"),
        (&["--config", "bad.toml"], "it lacks a limit"),
        (&["-o", "absent/page.html"], "the folder absent does not exist"),
        (&["--report", "absent/page.html"], "the folder absent does not exist"),
    ] {
        let message = shop.failure(&[&["bench", "HEAD~2..HEAD"], options, &["--", "sh", "run.sh"]].concat());
        assert!(message.contains(reason), "{options:?}: {message}");
        assert!(!shop.0.join("pprofdiff-runs").exists(), "{options:?}");
    }
}

#[test]
fn commands_of_a_folder_need_the_users_consent() {
    let shop = Repository::shop("consent", "4000", "9000");
    let bench = ["bench", "HEAD~2..HEAD", "--build", "touch built", "--runs", "2", "--", "sh", "run.sh"];
    assert!(shop.run(&bench).0.status.success());
    let line = shop.failure(&["bench", "--more", "pprofdiff-runs", "--runs", "3"]);
    assert!(
        line.contains(
            "pprofdiff-runs/runs.toml wants to run the build `touch built` in checkouts of 'HEAD~2..HEAD', and"
        ) && line.contains("`sh run.sh` in checkouts of 'HEAD~2..HEAD'; add --yes to --more"),
        "{line}"
    );
    let (output, _, stderr) = shop.run(&["bench", "--more", "pprofdiff-runs", "--yes", "--runs", "3"]);
    assert!(output.status.success() && stderr.contains("runs.toml would run `sh run.sh` in checkouts"), "{stderr}");
    assert!(shop.failure(&["bench", "HEAD", "--yes", "--", "true"]).contains("--more"));
}

#[test]
fn submodules_are_checked_out_from_the_users_clones_or_reported() {
    let shop = Repository::shop("super", "4000", "4000");
    let (inner, lib) = (Repository::new("inner"), Repository::new("lib"));
    inner.commit("four", &[("cost", "4000")]);
    lib.commit("begin", &[("README", "")]);
    let add = |to: &Repository, from: &Repository, path: &str| {
        to.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from.0.to_str().unwrap(), path]);
    };
    add(&lib, &inner, "deep");
    lib.commit("deep", &[]);
    add(&shop, &lib, "lib");
    let update = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive"];
    shop.git(&update);
    let script = std::fs::read_to_string(shop.0.join("run.sh")).unwrap().replace("cat cost", "cat lib/deep/cost");
    shop.commit("a submodule", &[("run.sh", &script)]);
    // A commit of the nested submodule that exists only in the user's checkout.
    std::fs::write(shop.0.join("lib/deep/cost"), "9000").unwrap();
    for (dir, path) in [("lib/deep", "cost"), ("lib", "deep")] {
        shop.git(&["-C", dir, "add", path]);
        shop.git(&["-C", dir, "commit", "-q", "-m", "nine"]);
    }
    shop.commit("nine", &[]);
    let bench = |into: &'static str| ["bench", "HEAD~1..HEAD", "--into", into, "--", "sh", "run.sh"];
    let (output, _, stderr) = shop.run(&bench("r1"));
    assert!(output.status.success() && stderr.contains("a change of the total: +35.7 %"), "{stderr}");
    for dir in ["lib", "lib/deep"] {
        assert_eq!(shop.git(&["-C", dir, "worktree", "list"]).lines().count(), 1, "{dir}");
    }
    // A submodule that is not checked out now is used, too.
    shop.git(&["submodule", "--quiet", "deinit", "-f", "lib"]);
    let (output, _, stderr) = shop.run(&bench("r2"));
    assert!(output.status.success() && stderr.contains("a change of the total: +35.7 %"), "{stderr}");
    // One clone has no submodules, and another lacks the commit.
    let clone = Repository(shop.0.with_extension("clone"));
    let _ = std::fs::remove_dir_all(&clone.0);
    shop.git(&["clone", "-q", shop.0.to_str().unwrap(), clone.0.to_str().unwrap()]);
    let (_, _, stderr) = clone.run(&bench("r1"));
    assert!(stderr.contains("note: submodule lib is empty on this side"), "{stderr}");
    clone.git(&["submodule", "--quiet", "init"]);
    let line = clone.failure(&bench("r3"));
    assert!(line.contains("submodule lib is not cloned; run: git submodule update --init --recursive"), "{line}");
    let _ = Command::new("git").args(update).current_dir(&clone.0).output().unwrap();
    let (output, _, stderr) = clone.run(&bench("r4"));
    assert!(output.status.code() == Some(2) && stderr.contains("submodule lib lacks commit "), "{stderr}");
}

#[test]
fn three_dots_start_at_the_merge_base() {
    let shop = Repository::shop("dots", "4000", "4000");
    shop.git(&["branch", "branch", "HEAD"]);
    // The main branch became faster meanwhile, which must not count against the branch.
    shop.commit("faster", &[("cost", "1000")]);
    shop.git(&["checkout", "-q", "branch"]);
    for (round, cost) in [(1, "4000"), (2, "9000"), (3, "9000")] {
        let body = go_source(&format!("return x + {round}"));
        shop.commit(&format!("round {round}"), &[("cost", cost), ("shop/email.go", &body)]);
    }
    let bench = ["bench", "main...branch", "--bisect", "--runs", "8", "--", "sh", "run.sh"];
    let (output, _, stderr) = shop.run(&bench);
    assert!(output.status.success() && stderr.contains("a change of the total: +35.7 %"), "{stderr}");
    assert!(stderr.lines().last().unwrap().ends_with("round 2 made the change"), "{stderr}");
    shop.git(&["checkout", "-q", "--orphan", "other"]);
    shop.git(&["commit", "-q", "-m", "apart"]);
    let line = shop.failure(&["bench", "main...other", "--into", "apart", "--", "true"]);
    assert!(line.contains("the sides of main...other have no commit in common"), "{line}");
}

/// Ends its own server with `kill`, as benchmarks do.
#[cfg(unix)]
#[test]
fn any_signal_can_end_child_processes() {
    let shop = Repository::shop("signals", "4000", "9000");
    let run = "for s in TERM HUP; do sleep 600 & kill -$s $!; wait $!; echo $?; done | tr '\\n' ' ' | grep -qx '143 129 ' && sh run.sh";
    let (output, _, stderr) =
        shop.run(&["bench", "HEAD~2..HEAD", "--runs", "2", "--max-time", "60s", "--", "sh", "-c", run]);
    assert!(output.status.success() && !stderr.contains("does not count"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_hanging_run_is_ended_after_max_time() {
    let shop = Repository::shop("hangs", "4000", "9000");
    let hanging = |pair: u32| format!("case \"$PPROFDIFF_PROFILE\" in */new-{pair}/*) sleep 600;; esac; sh run.sh");
    let bench = |into: &'static str, pair: u32| {
        let run = hanging(pair);
        shop.run(&["bench", "HEAD~2..HEAD", "--into", into, "--max-time", "5s", "--", "sh", "-c", &run])
    };
    let (output, stdout, stderr) = bench("r1", 2);
    assert!(output.status.success() && stdout.contains("shop.validate"), "{stderr}");
    assert!(
        stderr.contains("pair 2 does not count: the new side: sh was stopped because --max-time (5 s) is over"),
        "{stderr}"
    );
    let (output, _, stderr) = bench("r2", 1);
    assert!(output.status.code() == Some(2) && stderr.contains("--max-time (5 s) is over"), "{stderr}");
    let build = ["bench", "HEAD~2..HEAD", "--into", "r3", "--max-time", "1s", "--build", "sleep 600", "--", "true"];
    let line = shop.failure(&build);
    assert!(line.contains("the build of the base side: sh was stopped"), "{line}");
}

/// Checkouts run hooks and filters of the user, such as downloads of Git LFS.
#[cfg(unix)]
#[test]
fn a_hanging_checkout_is_ended_after_max_time() {
    let shop = Repository::shop("checkout", "4000", "9000");
    let pid = shop.0.join(".git/filter.pid");
    shop.git(&["config", "filter.slow.smudge", &format!("echo $$ > '{}'; sleep 600; cat", pid.display())]);
    std::fs::write(shop.0.join(".git/info/attributes"), "cost filter=slow\n").unwrap();
    let begun = Instant::now();
    let line = shop.failure(&["bench", "HEAD~2..HEAD", "--max-time", "2s", "--", "sh", "run.sh"]);
    assert!(line.contains("git was stopped because --max-time (2 s) is over"), "{line}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(std::fs::read_dir(shop.0.join(".git/worktrees")).map_or(0, Iterator::count), 0);
    let id = std::fs::read_to_string(&pid).unwrap();
    let status = Command::new("kill").args(["-0", id.trim()]).stderr(Stdio::null()).status().unwrap();
    assert!(!status.success(), "process {id} is left");
}

/// Daemons leave the process group of the command, and ignore all signals that they can.
#[cfg(target_os = "linux")]
#[test]
fn daemons_end_with_their_run() {
    let shop = Repository::shop("daemons", "4000", "9000");
    let daemon = "trap '' TERM HUP; echo $$ >> \"$PPROFDIFF_PROFILE.pid\"; while :; do sleep 1; done";
    let run =
        "(setsid sh -c \"$0\" > /dev/null 2>&1 &); while [ ! -s \"$PPROFDIFF_PROFILE.pid\" ]; do :; done; sh run.sh";
    let (output, _, stderr) = shop.run(&["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "-c", run, daemon]);
    assert!(output.status.success(), "{stderr}");
    for side in ["base-1", "new-2"] {
        let id = std::fs::read_to_string(shop.0.join(format!("pprofdiff-runs/{side}/profile.pid"))).unwrap();
        let status = Command::new("kill").args(["-0", id.trim()]).stderr(Stdio::null()).status().unwrap();
        assert!(!status.success(), "process {id} is left");
    }
}

#[cfg(unix)]
#[test]
fn output_of_a_run_is_cut_before_it_fills_the_disk() {
    let shop = Repository::shop("prints", "4000", "9000");
    let run = "case \"$PPROFDIFF_PROFILE\" in */base-1/*) head -c 100000000 /dev/zero; sleep 0.1; echo the end;; esac; sh run.sh";
    let (output, _, stderr) = shop.run(&["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "-c", run]);
    assert!(output.status.success(), "{stderr}");
    let output = std::fs::read(shop.0.join("pprofdiff-runs/base-1/output.txt")).unwrap();
    assert!(output.len() < 80_000_000 && output.ends_with(b"the end\n"), "{}", output.len());
}

#[test]
fn two_equal_commands_are_measured() {
    let shop = Repository::shop("same", "4000", "4000");
    let (output, _, stderr) = shop.run(&["bench", "--base-cmd", "sh run.sh", "--new-cmd", "sh run.sh"]);
    assert!(output.status.success() && stderr.contains("no change of the total larger than 2.0 %"), "{stderr}");
}

/// `explain` by itself offers two readings of such runs. After an inconclusive test, neither is justified.
#[test]
fn an_undecided_total_reports_neither_more_work_nor_a_cause() {
    let program = Repository::new("either");
    let script = "printf 'main;work %s\\nmain;other 1000\\n' $(cat cost) > \"$PPROFDIFF_PROFILE\"\n";
    program.commit("begin", &[("run.sh", script), ("cost", "900000")]);
    program.commit("slower", &[("cost", "1300000")]);
    let (output, stdout, stderr) = program.run(&["bench", "HEAD~1..HEAD", "--runs", "3", "--", "sh", "run.sh"]);
    assert!(output.status.success() && stderr.contains("undecided: +"), "{stderr}");
    assert!(!stdout.contains("Either"), "{stdout}");
    let (_, stdout, _) = program.run(&["explain", "pprofdiff-runs"]);
    assert!(stdout.contains("Either 1.44 times as much work"), "{stdout}");
    assert!(!stderr.contains("too short"), "{stderr}");
}

#[test]
fn undecided_runs_with_few_samples_are_called_too_short() {
    let program = Repository::new("short");
    let script = "printf 'main;work %s\nmain;other 2\n' $(cat cost) > \"$PPROFDIFF_PROFILE\"\n";
    program.commit("begin", &[("run.sh", script), ("cost", "9")]);
    program.commit("slower", &[("cost", "13")]);
    let (output, _, stderr) = program.run(&["bench", "HEAD~1..HEAD", "--runs", "3", "--", "sh", "run.sh"]);
    let advice = "the runs are too short: a run has about 13 samples, and a change of 2 % in 3 runs per side needs about \
                  3750; let the command do at least 288 times as much work";
    assert!(output.status.success() && stderr.contains(advice), "{stderr}");
}

#[test]
fn two_commands_are_compared_in_the_working_directory() {
    let shop = Repository::shop("commands", "4000", "4000");
    let bench = ["bench", "--base-cmd", "sh run.sh", "--new-cmd", "env COST=9000 sh 'run.sh'", "--runs", "3"];
    let (output, _, stderr) = shop.run(&bench);
    assert!(output.status.success() && stderr.contains("undecided: +35.7 %"), "{stderr}");
    assert!(stderr.contains("note: the base has $COST none, the new side 9000"), "{stderr}");
    let (_, stdout, stderr) = shop.run(&["bench", "--more", "pprofdiff-runs", "--yes", "--runs", "9"]);
    assert!(stderr.contains("a change of the total: +35.7 %") && stdout.contains("shop.validate"), "{stderr}");
    assert!(shop.failure(&["bench", "--base-cmd", "sh run.sh"]).contains("only one side has a command"));
    assert!(shop.failure(&["bench", "--base-cmd", "a 'b", "--new-cmd", "c"]).contains("a quote is not closed"));
}

/// The noise of the total hides the change of one function, but a test of that function alone detects it.
#[test]
fn a_function_is_decided_although_the_total_is_too_noisy() {
    let shop = Repository::new("function");
    // The cost of `shop.load` depends only on the number of the run.
    let script = "run=$(basename \"$(dirname \"$PPROFDIFF_PROFILE\")\"); n=$(echo $run | cksum | cut -d' ' -f1)\n\
                  printf 'main;shop.validate %s\nmain;shop.render 5000\nmain;shop.load %s\n' \
                  $(cat cost) $((20000 + n % 20000)) > \"$PPROFDIFF_PROFILE\"\n";
    shop.commit("begin", &[("run.sh", script), ("cost", "4000")]);
    shop.commit("slower", &[("cost", "6000")]);
    let (output, stdout, stderr) = shop.run(&["bench", "HEAD~1..HEAD", "--", "sh", "run.sh"]);
    assert!(output.status.success() && stderr.contains("a change of a function; the total is undecided"), "{stderr}");
    assert!(stderr.contains("changed: shop.validate itself +") && !stderr.contains("changed: shop.load"), "{stderr}");
    assert!(stdout.contains("shop.validate"), "{stdout}");
}

#[test]
fn bench_applies_limits_like_check_and_writes_reports() {
    let shop = Repository::shop("limits", "4000", "9000");
    let bench = ["bench", "HEAD~2..HEAD", "--fail-on", "total>+5%", "--report", "page.html", "--report", "a.sarif"];
    let (output, stdout, stderr) = shop.run(&[&bench[..], &["--format", "github", "--", "sh", "run.sh"]].concat());
    assert!(output.status.code() == Some(1) && stdout.contains("::error"), "{stdout}{stderr}");
    // Annotations for pull requests and for code scanning point to the changed lines of the commit.
    assert!(stdout.contains("::notice file=shop/email.go,line=5,endLine=5,title="), "{stdout}");
    assert!(std::fs::read_to_string(shop.0.join("page.html")).unwrap().contains("shop.validate"));
    let sarif: Value = serde_json::from_slice(&std::fs::read(shop.0.join("a.sarif")).unwrap()).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "shop/email.go", "{sarif}");
    assert_eq!(place["region"], serde_json::json!({"startLine": 5, "endLine": 5}));
    // With `--baseline`, the store replaces the base side. `--store` adds the new side of a folder of runs, and a later
    // check compares against it.
    let check = |rule: &str, more: &[&str]| {
        shop.run(&[&["check", "pprofdiff-runs", "--baseline", "store", "--fail-on", rule], more].concat())
            .0
            .status
            .code()
    };
    assert_eq!(check("total>+5%", &["--store"]), Some(0));
    assert_eq!(check("total>+5%", &[]), Some(0));
    assert_eq!(check("total>1", &[]), Some(1));
    let into = ["bench", "HEAD~2..HEAD", "--into", "r2", "--runs", "2", "-o", "r.html", "--", "sh", "run.sh"];
    let (output, stdout, stderr) = shop.run(&into);
    assert!(output.status.success() && stdout.contains("shop.validate") && shop.0.join("r.html").exists(), "{stderr}");
    assert!(shop.failure(&["bench", "HEAD", "--fail-on", "total", "--", "true"]).contains("total"));
}

#[test]
fn commands_with_two_sides_accept_a_folder_of_runs() {
    let shop = Repository::shop("verbs", "4000", "9000");
    shop.run(&["bench", "HEAD~2..HEAD", "--runs", "2", "--", "sh", "run.sh"]);
    for verb in ["diff", "top", "tree", "stacks", "labels", "explain"] {
        let (output, stdout, stderr) = shop.run(&[verb, "pprofdiff-runs"]);
        assert!(output.status.success() && !stdout.is_empty(), "{verb}: {stderr}");
    }
    let (output, stdout, stderr) = shop.run(&["check", "pprofdiff-runs", "--strict", "--fail-on", "total>+5%"]);
    assert!(output.status.code() == Some(1) && stdout.contains("+35.7"), "{stdout}{stderr}");
    let (_, stdout, stderr) = shop.run(&["batch", "pprofdiff-runs", "--format", "csv"]);
    assert!(stdout.contains("shop.validate,") && stdout.contains("pprofdiff-runs"), "{stdout}{stderr}");
}

/// Each of `RUNS/base` and `RUNS/new` can replace a profile. Alone it is the sum of its runs; in a comparison of two
/// sides it is the list of its runs.
#[test]
fn one_side_of_a_folder_of_runs_can_replace_a_profile() {
    let shop = Repository::shop("side", "4000", "9000");
    shop.run(&["bench", "HEAD~2..HEAD", "--runs", "3", "--into", "runs", "--", "sh", "run.sh"]);
    let json = |args: &[&str]| -> Value {
        let (output, stdout, stderr) = shop.run(&[args, &["--format", "json"]].concat());
        assert!(output.status.success(), "{args:?}: {stderr}");
        serde_json::from_str(&stdout).unwrap()
    };
    let value = |answer: &Value, side: &str| {
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == "shop.validate").unwrap();
        row["flat"].as_f64().or_else(|| row[format!("flat_{side}")].as_f64()).unwrap()
    };
    assert_eq!(value(&json(&["top", "runs/new"]), "new"), 27000.0);
    let both = json(&["top", "runs"]);
    assert_eq!((value(&both, "base"), value(&both, "new")), (4000.0, 9000.0));
    assert_eq!(json(&["top", "runs/base", "runs/new"])["rows"], both["rows"]);
    // The sides can also be swapped, or combined with other files.
    assert_eq!(value(&json(&["top", "--base", "runs/new", "--new", "runs/base", "runs/base"]), "new"), 4000.0);
    for args in [
        &["merge", "runs/base", "runs/new", "-o", "all.pb.gz"][..],
        &["convert", "runs/base", "-o", "base.folded"],
        &["comments", "runs/base"],
        &["series", "runs/new"],
        &["series", "runs/base", "runs/new"],
        &["batch", "runs/base", "runs/new"],
        &["explain", "runs/base", "runs/new", "--noise", "runs/base"],
    ] {
        let (output, _, stderr) = shop.run(args);
        assert!(output.status.success(), "{args:?}: {stderr}");
    }
    assert_eq!(value(&json(&["top", "all.pb.gz"]), "new"), 39000.0);
    assert!(std::fs::read_to_string(shop.0.join("base.folded")).unwrap().contains("main;shop.validate 12000\n"));
    // The whole folder has two sides, so commands that read one profile refuse it.
    for args in
        [&["convert", "runs", "-o", "x.folded"][..], &["merge", "runs", "-o", "x.pb.gz"], &["top", "runs", "all.pb.gz"]]
    {
        let line = shop.failure(args);
        assert!(line.contains("these are runs of two sides; for one side name runs/base or runs/new"), "{line}");
    }
    assert!(shop.failure(&["top", "other/base"]).contains("other/base"));
}

#[test]
fn bisect_measures_the_remaining_commits_until_one_is_left() {
    let shop = Repository::shop("bisect", "4000", "4000");
    for (round, cost) in [(1, "4000"), (2, "9000"), (3, "9000"), (4, "9000")] {
        let body = go_source(&format!("return x + {round}"));
        shop.commit(&format!("round {round}"), &[("cost", cost), ("shop/email.go", &body)]);
    }
    let bench = ["bench", "HEAD~4..HEAD", "--bisect", "--runs", "8", "--", "sh", "run.sh"];
    let (output, _, stderr) = shop.run(&bench);
    assert!(output.status.success(), "{stderr}");
    let measured = stderr.matches("commits are left; measuring").count();
    assert!(measured == 2 && stderr.lines().last().unwrap().ends_with("round 2 made the change"), "{stderr}");
}

/// Returns true if the program is missing or the kernel denies access to it. The test then prints SKIPPED. CI does not
/// fail because of this, since the user can't change its kernel.
fn is_denied(program: &str, args: &[&str]) -> bool {
    match Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => false,
        _ => {
            let line = format!("bench: {program} is missing, or the kernel does not let it\n");
            std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
            if let (Some(list), None) = (std::env::var_os("PPROFDIFF_SKIPPED"), std::env::var_os("CI")) {
                std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
            }
            true
        }
    }
}

#[test]
fn a_c_program_is_recorded_by_perf_and_listed_after_its_worktree_is_gone() {
    let data = std::env::temp_dir().join(format!("pprofdiff-perf-{}", std::process::id()));
    let denied = is_denied("perf", &["record", "-o", data.to_str().unwrap(), "true"]);
    let _ = std::fs::remove_file(data);
    if denied {
        return;
    }
    let repository = Repository::new("perf");
    let source = |rounds: u32| {
        format!(
            "#include <stdio.h>\n\nstatic volatile unsigned kept;\n\nvoid work(void) {{\n  for (unsigned i = 0; i < {rounds}; i++)\n    kept = kept * 31 + i;\n}}\n\nint main(void) {{\n  work();\n  return kept == 7;\n}}\n"
        )
    };
    repository
        .commit("begin", &[("app.c", &source(20_000_000)), ("Makefile", "app: app.c\n\tcc -g -O1 -o app app.c\n")]);
    repository.commit("more rounds", &[("app.c", &source(60_000_000))]);
    let bench = ["bench", "HEAD~1..HEAD", "--runs", "3", "--build", "make", "--", "perf", "record", "-g", "./app"];
    let (output, stdout, stderr) = repository.run(&bench);
    assert!(output.status.success() && stdout.contains("work"), "{stderr} {stdout}");
    let runs = std::fs::read_to_string(repository.0.join("pprofdiff-runs/runs.toml")).unwrap();
    assert!(runs.contains("[\"cc\", \""), "{runs}");
    assert!(repository.0.join("pprofdiff-runs/binaries/new/app").exists());
    let (_, stdout, stderr) = repository.run(&["list", "^work$", "pprofdiff-runs"]);
    assert!(stdout.contains("i < 60000000") && stdout.contains("kept * 31"), "{stdout} {stderr}");
    // The instructions are those of perf.data, because the compared text has no addresses.
    let (_, stdout, stderr) = repository.run(&["disasm", "^work$", "pprofdiff-runs"]);
    assert!(
        stdout.contains("binary pprofdiff-runs/binaries/base/app -> pprofdiff-runs/binaries/new/app"),
        "{stdout} {stderr}"
    );
    let (_, _, stderr) = repository.run(&["disasm", "^work$", "pprofdiff-runs/new-1/perf.txt"]);
    assert!(stderr.contains("work is in the profiles, but no address") && !stderr.contains("did you mean"), "{stderr}");
}

#[test]
fn a_benchmark_of_go_does_the_same_operations_on_both_sides() {
    if !have("go", "version", "golang", "bench") {
        return;
    }
    let repository = Repository::new("go");
    // Prevents inlining. On some processors, a fifth of the function's samples would otherwise be at lines of its
    // caller.
    let source = |rounds: u32| {
        format!(
            "package shop\n//go:noinline\nfunc Work(n int) int {{\n\ts := n\n\tfor i := 0; i < {rounds}; i++ {{\n\t\ts = s*31 + i%7\n\t}}\n\treturn s\n}}\n"
        )
    };
    let test = "package shop\n\nimport \"testing\"\n\nvar kept int\n\nfunc BenchmarkWork(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tkept += Work(i)\n\t}\n}\n";
    repository.commit(
        "begin",
        &[("go.mod", "module acme/shop\n\ngo 1.20\n"), ("work.go", &source(10_000)), ("work_test.go", test)],
    );
    repository.commit("more rounds", &[("work.go", &source(50_000))]);
    let go = ["--", "go", "test", "-bench", "Work", "-benchtime", "200ms", "."];
    let (output, stdout, stderr) = repository.run(&[&["bench", "HEAD~1..HEAD", "--runs", "8"][..], &go].concat());
    assert!(output.status.success() && stderr.contains("a change of the total: +"), "{stderr}");
    assert!(
        stdout.contains("acme/shop.") && stdout.contains("more rounds, work.go:5: changes the function itself"),
        "{stdout}"
    );
    let runs = std::fs::read_to_string(repository.0.join("pprofdiff-runs/runs.toml")).unwrap();
    let operations: Vec<&str> = runs.lines().filter(|line| line.starts_with("operations = ")).collect();
    assert!(operations.len() >= 10 && operations.iter().all(|line| *line == operations[0]), "{runs}");
    assert!(
        runs.contains("mem.pb.gz") && repository.0.join("pprofdiff-runs/binaries/base/bench.bin").exists(),
        "{runs}"
    );
    assert!(runs.contains("[\"go\", \"go version "), "{runs}");
    // The worktrees are gone, but their source and instructions can still be listed.
    let (_, stdout, stderr) = repository.run(&["list", "shop.Work", "pprofdiff-runs"]);
    assert!(stdout.contains("i < 10000;") && stdout.contains("i < 50000;"), "{stdout} {stderr}");
    let (output, stdout, stderr) = repository.run(&["disasm", "shop.BenchmarkWork", "pprofdiff-runs"]);
    assert!(output.status.success() && stdout.lines().count() > 10, "{stdout} {stderr}");
}

/// The cost of `work` depends only on its address, so both sides differ in most pairs, but not on average. The benchmark
/// of one layout would report a change.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_difference_of_layouts_is_no_change() {
    if !have("cc", "--version", "build-essential", "bench") {
        return;
    }
    let repository = Repository::new("layouts");
    let functions: String = (0..9)
        .map(|i| format!("__attribute__((noinline)) int f{i}(int x) {{ return x * {} / (x + {i}); }}\n", i * 3 + 5))
        .collect();
    let source = |cost: u32| {
        format!(
            "#include <stdio.h>\n#include <stdlib.h>\n{functions}\
             __attribute__((noinline)) int work(int x) {{ return x * 7 + 1; }}\n\
             int main(int n, char **v) {{\n  FILE *f = fopen(getenv(\"PPROFDIFF_PROFILE\"), \"w\");\n\
             fprintf(f, \"main;work %d\\nmain;rest 5000\\n\", {cost} + 100 * (int)((unsigned long)work / 16 % 8));\n\
             return fclose(f) + work(n) - work(n) + 0 * (f0(n) + f1(n) + f2(n) + f3(n) + f4(n) + f5(n) + f6(n) + f7(n) + f8(n));\n}}\n"
        )
    };
    repository.commit("begin", &[("app.c", &source(5000)), ("Makefile", "app: app.c\n\tcc -O1 -g -o app app.c\n")]);
    repository.commit("unrelated", &[("README", "text\n")]);
    repository.commit("slower", &[("app.c", &source(6000))]);
    let bench = |range: &str, into: &str| {
        let words = ["bench", range, "--into", into, "--layouts", "12", "--build", "make", "--", "./app"];
        let (output, _, stderr) = repository.run(&words);
        assert!(output.status.success(), "{stderr}");
        stderr
    };
    let equal = bench("HEAD~2..HEAD~1", "equal");
    assert!(!equal.contains("a change of") && equal.contains("layout alone moves the base by ±"), "{equal}");
    let runs = std::fs::read_to_string(repository.0.join("equal/runs.toml")).unwrap();
    let lines = |start: &str| runs.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    let (seeds, totals) = (lines("layout = "), lines("total = "));
    assert!(seeds.iter().enumerate().all(|(i, seed)| !seeds[..i].contains(seed)) && seeds.len() >= 10, "{runs}");
    assert!(totals.iter().any(|total| *total != totals[0]), "{runs}");
    // Runs of one program do not differ.
    let pairs = runs.split("[[run]]").skip(1);
    let repeated: Vec<_> = pairs.filter(|run| run.contains("repeated = ")).collect();
    let value = |run: &str, name: &str| run.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    assert_eq!(repeated.len(), 10, "{runs}");
    assert!(repeated.iter().all(|run| value(run, "repeated = ") == value(run, "total = ")), "{runs}");

    let slower = bench("HEAD~1..HEAD", "slower");
    assert!(slower.contains("a change of the total: +") && slower.contains("the new side is slower in"), "{slower}");

    // A build that ignores the order is refused before the first run, and so is a command without a linker.
    let fixed = ["bench", "HEAD~1..HEAD", "--layouts", "9", "--build", "/usr/bin/cc -o app app.c", "--", "./app"];
    let refused = repository.failure(&fixed);
    assert!(refused.contains("ignores the order of functions"), "{refused}");
    let none = repository.failure(&["bench", "HEAD~1..HEAD", "--layouts", "9", "--", "./app"]);
    assert!(none.contains("set the command that links it with --build"), "{none}");
}

#[test]
fn a_benchmark_of_go_is_linked_anew_for_each_pair() {
    if !have("go", "version", "golang", "bench") {
        return;
    }
    let repository = Repository::new("go-layouts");
    let work = "package shop\n//go:noinline\nfunc Work(n int) int {\n\ts := n\n\tfor i := 0; i < 10000; i++ {\n\t\ts = s*31 + i%7\n\t}\n\treturn s\n}\n";
    let test = "package shop\n\nimport \"testing\"\n\nvar kept int\n\nfunc BenchmarkWork(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tkept += Work(i)\n\t}\n}\n";
    let module = ("go.mod", "module acme/shop\n\ngo 1.20\n");
    repository.commit("begin", &[module, ("work.go", work), ("work_test.go", test)]);
    repository.commit("unrelated", &[("README", "text\n")]);
    let go = ["--", "go", "test", "-ldflags", "-s=0", "-bench", "Work", "-benchtime", "50ms", "."];
    let (output, _, stderr) = repository.run(&[&["bench", "HEAD~1..HEAD", "--layouts", "5"][..], &go].concat());
    assert!(output.status.success() && stderr.contains("layout alone moves"), "{stderr}");
    let mut orders = Vec::new();
    for side in ["base", "new"] {
        for file in std::fs::read_dir(repository.0.join("pprofdiff-runs/binaries").join(side)).unwrap() {
            let path = file.unwrap().path();
            let output = Command::new("go").args(["tool", "nm", "-n"]).arg(&path).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let names: Vec<String> =
                text.lines().filter_map(|line| line.split(" T ").nth(1).map(str::to_owned)).collect();
            assert!(names.len() > 100 && !orders.contains(&names), "{}", path.display());
            orders.push(names);
        }
    }
    assert_eq!(orders.len(), 10);
    let refused = repository.failure(&["bench", "HEAD~1..HEAD", "--layouts", "9", "--", "node", "a.js"]);
    assert!(refused.contains("node runs none"), "{refused}");
}

#[test]
fn a_node_script_is_profiled_by_node() {
    if !have("node", "--version", "nodejs", "bench") {
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

/// An agent can load a folder of runs, or one side of it.
#[cfg(feature = "mcp")]
#[test]
fn mcp_loads_a_folder_of_runs_and_its_sides() {
    let shop = Repository::shop("mcp", "4000", "9000");
    shop.run(&["bench", "HEAD~2..HEAD", "--runs", "3", "--into", "runs", "--", "sh", "run.sh"]);
    let mut child =
        shop.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut send = |text: String| stdin.write_all((text + "\n").as_bytes()).unwrap();
    let about = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    send(format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{about}}}"#));
    send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    let calls = [
        r#""load","arguments":{"new":["runs"]}"#,
        r#""explain","arguments":{"diff":"d1"}"#,
        r#""load","arguments":{"base":["runs/base"],"new":["runs/new"]}"#,
        r#""load","arguments":{"new":["runs/new"]}"#,
        r#""list","arguments":{"diff":"d1","regex":"validate"}"#,
    ];
    let mut answers = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut answer = || serde_json::from_str::<Value>(&answers.next().unwrap().unwrap()).unwrap();
    answer();
    let mut answers = Vec::new();
    for (id, call) in calls.iter().enumerate() {
        send(format!(r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":{call}}}}}"#, id + 1));
        answers.push(answer()["result"]["content"][0]["text"].as_str().unwrap().to_owned());
    }
    drop(stdin);
    child.wait().unwrap();
    // The suggested command contains the folder, too.
    assert!(answers[0].contains("diff d1") && answers[0].contains("pprofdiff explain runs"), "{}", answers[0]);
    assert!(
        answers[1].contains("+5000") && answers[1].contains(r"pprofdiff peek '^shop\.validate$' runs "),
        "{}",
        answers[1]
    );
    assert!(answers[2].contains("pprofdiff explain runs/base runs/new"), "{}", answers[2]);
    assert!(answers[3].contains("pprofdiff top runs/new"), "{}", answers[3]);
    assert!(answers[4].contains("cum 4000 -> 9000"), "{}", answers[4]);
}

/// A program whose function `tenth` has a tenth of the instructions.
fn counted_program(rounds: u32) -> String {
    format!(
        "#include <stdio.h>\nstatic volatile unsigned kept;\n\
         __attribute__((noinline)) void tenth(unsigned n) {{ for (unsigned i = 0; i < n; i++) kept += i; }}\n\
         __attribute__((noinline)) void rest(unsigned n) {{ for (unsigned i = 0; i < n; i++) kept += i; }}\n\
         int main(void) {{ for (int i = 0; i < 100; i++) {{ tenth({rounds}); rest(9000); }} printf(\"%u\\n\", kept); }}\n"
    )
}

/// One run per side shows half a percent more in a function with a tenth of the instructions. Without `--runs`, bench counts
/// equal builds once, and a change three times.
#[test]
fn counting_needs_one_run_per_side() {
    if !have("valgrind", "--version", "valgrind", "counts of a C program") || !have("cc", "--version", "gcc", "counts")
    {
        return;
    }
    let repository = Repository::new("counts");
    repository.commit("begin", &[("app.c", &counted_program(1000))]);
    repository.commit("tidy", &[("README", "counts\n")]);
    repository.commit("more rounds", &[("app.c", &counted_program(1005))]);
    let bench = |range: &str, more: &[&str]| {
        let build = "cc -O1 -g app.c -o app";
        let words = [&["bench", range, "--build", build, "--counts", "--into", range][..], more, &["--", "./app"]];
        repository.run(&words.concat())
    };
    let (output, stdout, stderr) = bench("HEAD~2..HEAD~1", &[]);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("no change larger than 0.020 %") && stderr.contains("(counted once per side)"), "{stderr}");
    let equal = "o function changed by more than 0.02% of the total.";
    assert!(stdout.contains(equal) && !stdout.contains("\n1. "), "{stdout}");
    let runs = std::fs::read_to_string(repository.0.join("HEAD~2..HEAD~1/runs.toml")).unwrap();
    assert!(runs.contains("counter = \"callgrind\"") && runs.matches("[[run]]").count() == 2, "{runs}");
    let (_, _, stderr) = bench("HEAD~2..HEAD^", &["--runs", "2"]);
    assert!(
        stderr.contains("no change larger than 0.020 %") && stderr.contains("(counted 2 times per side)"),
        "{stderr}"
    );
    let (_, stdout, stderr) = bench("HEAD~1..HEAD", &["--runs", "1"]);
    assert!(stderr.contains("changed: tenth itself +0.5") && stderr.contains("(counted once per side)"), "{stderr}");
    assert!(stdout.contains("Called as often (100 times), each 0.5% more expensive"), "{stdout}");
    let runs = std::fs::read_to_string(repository.0.join("HEAD~1..HEAD/runs.toml")).unwrap();
    assert_eq!(runs.matches("[[run]]").count(), 2, "{runs}");
    let (output, stdout, stderr) = bench("HEAD~2..HEAD", &["--bisect"]);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("changed: tenth itself +0.5") && stderr.contains("(counted 3 times per side)"), "{stderr}");
    assert!(stderr.contains("more rounds"), "{stderr}");
    assert!(
        stdout.contains("tenth") && stdout.contains("Called as often (100 times), each 0.5% more expensive"),
        "{stdout}"
    );
    assert!(!stdout.contains("p =") && stdout.contains("more rounds"), "{stdout}");
    // Other verbs read the folder, and `check` fails without a statement about chance.
    let (_, again, _) = repository.run(&["explain", "HEAD~2..HEAD"]);
    assert!(again.contains("each 0.5% more expensive"), "{again}");
    let (output, checked, _) = repository.run(&["check", "HEAD~2..HEAD", "--fail-on", "flat:regex=^tenth$>+0.4%"]);
    assert!(output.status.code() == Some(1) && !checked.contains("p ="), "{checked}");
    let (output, checked, _) = repository.run(&["check", "HEAD~2..HEAD", "--fail-on", "flat:regex=^tenth$>+0.6%"]);
    assert_eq!(output.status.code(), Some(0), "{checked}");
}

#[test]
fn a_command_that_cannot_be_counted_is_refused_with_the_reason() {
    let shop = Repository::shop("uncounted", "4000", "9000");
    let bench = ["bench", "HEAD~1..HEAD", "--counts", "--", "node", "app.js"];
    let error = shop.failure(&bench);
    assert!(error.contains("--counts can't count node: it compiles the code while it runs"), "{error}");
    // Valgrind is not in an empty folder, and git is found by its path.
    let bin = shop.0.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let git =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|dir| dir.join("git")).find(|git| git.exists());
    #[cfg(unix)]
    std::os::unix::fs::symlink(git.unwrap(), bin.join("git")).unwrap();
    let output =
        shop.command(&["bench", "HEAD~1..HEAD", "--counts", "--", "sh", "run.sh"]).env("PATH", &bin).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--counts needs valgrind") && error.contains("apt install valgrind"), "{error}");
    let error = shop.failure(&["bench", "HEAD~1..HEAD", "--runs", "1", "--", "sh", "run.sh"]);
    assert!(error.contains("--runs must be at least 2"), "{error}");
}

#[test]
fn calibration_measures_equal_sides_and_advises_a_command() {
    let shop = Repository::shop("calibrate", "4000", "9000");
    let (output, stdout, stderr) = shop.run(&["bench", "--calibrate", "--runs", "4", "--", "sh", "run.sh"]);
    assert!(output.status.success(), "{stderr}");
    for text in [
        "Timing: 4 pairs of equal runs",
        "chance alone moves one run against another by up to 0 % of the total",
        "change   of the total",
        "\nCounting",
        "\nFor CI:\n  pprofdiff bench origin/main...HEAD --",
    ] {
        assert!(stdout.contains(text), "{text:?}: {stdout}");
    }
    assert!(stdout.trim_end().ends_with("-- sh run.sh"), "{stdout}");
    let counting = match Command::new("valgrind").arg("--version").output().is_ok() {
        true => "\nCounting instructions with callgrind: possible; a run takes ",
        false => "\nCounting: not possible: --counts needs valgrind",
    };
    assert!(stdout.contains(counting), "{stdout}");
    // The runs of both parts are in one folder.
    let [timed, counted] = ["pprofdiff-runs", "pprofdiff-runs/counts"].map(|dir| shop.0.join(dir).join("runs.toml"));
    assert!(timed.exists() && counted.exists() == counting.contains("callgrind"));
    assert!(shop.failure(&["bench", "--calibrate"]).contains("no command is given"));
}

#[test]
fn calibration_rejects_options_without_effect_before_any_run() {
    let shop = Repository::shop("calibrate-options", "4000", "9000");
    for options in [
        &["--base-cmd", "sh run.sh", "--new-cmd", "sh run.sh"][..],
        &["--base-cmd", "sh run.sh"],
        &["--report", "page.html"],
        &["--config", "pprofdiff.toml"],
        &["--effect", "1%"],
        &["--format", "json"],
        &["-o", "noise.json"],
        &["HEAD~1..HEAD"],
        &["--bisect"],
    ] {
        let words = [&["bench", "--calibrate"][..], options, &["--", "sh", "run.sh"]].concat();
        let (output, stdout, stderr) = shop.run(&words);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{options:?}: {stderr}");
        assert!(stderr.contains("--calibrate"), "{options:?}: {stderr}");
        assert!(!shop.0.join("pprofdiff-runs").exists(), "{options:?}");
    }
    let words = ["bench", "--calibrate", "--runs", "3", "-o", "noise.txt", "--format", "text", "--", "sh", "run.sh"];
    let (output, _, stderr) = shop.run(&words);
    assert!(output.status.success(), "{stderr}");
    assert!(std::fs::read_to_string(shop.0.join("noise.txt")).unwrap().starts_with("Timing: 3 pairs"));
}

/// The new function is in neither profile before the commit that adds it. The total does not change.
#[test]
fn bisect_finds_the_commit_of_a_new_function_by_counts() {
    if !have("python3", "--version", "python3", "counts of a Python program") {
        return;
    }
    let repository = Repository::new("counts-bisect");
    let source = "def f(): pass\ndef g(): pass\ndef h(): pass\n\
                  for function, n in zip((f, g, h), open('counts').read().split()):\n    for _ in range(int(n)): function()\n";
    repository.commit("begin", &[("run.py", source), ("counts", "900 0 900")]);
    for (subject, counts) in [("first", "900 0 900"), ("second", "800 200 800"), ("third", "800 200 800")] {
        repository.commit(subject, &[("counts", counts), ("README", subject)]);
    }
    let bench = ["bench", "HEAD~3..HEAD", "--counts", "--bisect", "--", "python3", "run.py"];
    let (output, _, stderr) = repository.run(&bench);
    assert!(output.status.success() && stderr.contains("changed: g itself is new"), "{stderr}");
    assert!(stderr.lines().last().unwrap().ends_with("second made the change"), "{stderr}");
    // Other verbs answer in calls, too, and a check states no p-value.
    for args in [&["explain", "pprofdiff-runs"][..], &["top", "pprofdiff-runs"], &["top", "pprofdiff-runs/new"]] {
        let (_, stdout, stderr) = repository.run(args);
        assert!(stdout.contains("calls") && !stdout.contains("time"), "{args:?}: {stdout} {stderr}");
    }
    let (output, stdout, _) = repository.run(&["check", "pprofdiff-runs", "--fail-on", "total>+1%"]);
    assert!(
        output.status.code() == Some(0) && stdout.contains("total>+1%  calls, ") && !stdout.contains("p ="),
        "{stdout}"
    );
}

/// Writes a folder of one counted run per side.
fn counted_folder(dir: &std::path::Path, costs: [u32; 2]) {
    std::fs::create_dir_all(dir).unwrap();
    let mut runs =
        "schema = \"pprofdiff-runs/1\"\ncommand = [\"a\"]\nseed = 1\neffect = 0.0002\ncounter = \"callgrind\"\n"
            .to_owned();
    for (side, cost) in ["base", "new"].iter().zip(costs) {
        std::fs::write(dir.join(side), format!("events: Ir\nfn=main\n1 900000\nfn=f\n2 {cost}\n")).unwrap();
        runs += &format!(
            "[[run]]\nside = \"{side}\"\npair = 1\nprofiles = [\"{side}\"]\ntotal = 1.0\nbegan = 0\nseconds = 1.0\n"
        );
    }
    std::fs::write(dir.join("runs.toml"), runs).unwrap();
}

#[test]
fn counted_runs_have_the_effect_of_their_folder_unless_min_effect_is_given() {
    let folder = std::env::temp_dir().join(format!("pprofdiff-min-effect-{}", std::process::id()));
    counted_folder(&folder, [100_000, 101_000]);
    let explain = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let output = command.args(["explain", folder.to_str().unwrap()]).args(options).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for (options, floor, has_cause) in [
        (&[][..], "0.02%", true),
        (&["--min-effect", "0.05%"], "0.05%", true),
        // The value is the default for timed runs.
        (&["--min-effect", "0.2%"], "0.2%", false),
    ] {
        let text = explain(options);
        assert_eq!(text.contains("1. f itself costs more: +1000"), has_cause, "{options:?}: {text}");
        assert!(
            text.contains(&format!("more than {floor} of the total")) || text.contains(&format!("above {floor}")),
            "{text}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}
