//! Runs pprof: the version of the Go toolchain, or a newer one.
//!
//! A command line of pprof takes 7 ms of one core, mostly for startup and loading. So each profile is opened once in
//! pprof's interactive mode, and every question is typed there: options, then a command. `conformance.rs` checks that
//! the output equals that of the command line.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::question::Granularity;

/// The version of pprof. The toolchain's version is up to a year older than google/pprof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The version that `go tool pprof` runs.
    Toolchain,
    /// google/pprof at [`NEWEST`].
    Newest,
}

/// google/pprof of November 2026.
const NEWEST: &str = "v0.0.0-20261105003125-4bf881d7fb0b";

thread_local! {
    static VERSION: Cell<Version> = const { Cell::new(Version::Toolchain) };
}

/// Returns the version of pprof that this thread uses.
pub fn version() -> Version {
    VERSION.get()
}

/// Runs `work` with the given version of pprof on this thread.
pub fn with_version<T>(version: Version, work: impl FnOnce() -> T) -> T {
    let before = VERSION.replace(version);
    let done = work();
    VERSION.set(before);
    done
}

/// The subject of a report: one profile, two profiles (`base` is subtracted), or a new side that is the sum of several.
/// (`go tool pprof` only uses the last of several `-diff_base`.)
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    One(&'a Path),
    Two { base: &'a Path, new: &'a Path },
    Several { base: &'a Path, new: &'a [&'a Path] },
}

/// One side of a diff, with the addresses and units of the diff. pprof labels the samples of the base, so its tag
/// filters can select a side. The numbers of the base are negative.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Base,
    New,
}

impl Side {
    /// Returns the filter for this side. It replaces a tag filter, so it only works for questions without one.
    pub fn filter(self) -> &'static str {
        match self {
            Side::Base => "-tagfocus=pprof::base=true",
            Side::New => "-tagignore=pprof::base=true",
        }
    }
}

/// Returns the command line, for the message about a difference.
pub fn command_line(format: &str, subject: Subject, words: &[String]) -> String {
    let arguments = arguments(&[format.into()], subject, words);
    let quoted = |word: &String| match word.contains(|c: char| "()*|$\\ <>&;'".contains(c)) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.clone(),
    };
    format!("go tool pprof {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

fn arguments(format: &[String], subject: Subject, words: &[String]) -> Vec<String> {
    let mut arguments = format.to_vec();
    arguments.extend_from_slice(words);
    arguments.push("-symbolize=none".into());
    // Prints all rows, unless the question is about trimming.
    if !words.contains(&"-trim=true".to_string()) {
        arguments.push("-trim=false".into());
    }
    let shown = |path: &Path| path.display().to_string();
    match subject {
        Subject::One(profile) => arguments.push(shown(profile)),
        Subject::Two { base, new } => arguments.extend([format!("-diff_base={}", shown(base)), shown(new)]),
        Subject::Several { base, new } => {
            arguments.push(format!("-diff_base={}", shown(base)));
            arguments.extend(new.iter().map(|path| shown(path)));
        }
    }
    arguments
}

/// Returns a report from this thread's session for the subject. An empty report is requested again on the command line,
/// which distinguishes a failure from an empty result.
pub fn report(command: &str, subject: Subject, words: &[String]) -> String {
    thread_local! {
        static SESSIONS: RefCell<HashMap<(Version, Vec<String>), Session>> = RefCell::default();
    }
    // pprof normalizes and drops frames during loading, so these options need their own session.
    let (loading, typed): (Vec<String>, Vec<String>) =
        words.iter().cloned().partition(|word| ["-normalize", "-all_frames"].contains(&word.as_str()));
    let opened_with = arguments(&[], subject, &loading);
    let text = SESSIONS.with_borrow_mut(|sessions| {
        let session = sessions.entry((version(), opened_with)).or_insert_with_key(|(_, words)| Session::open(words));
        session.report(command, &typed)
    });
    match text.is_empty() {
        true => report_of_command_line(command, subject, words),
        false => text,
    }
}

/// Returns a report from a new pprof process. The only accepted failure is a peek without a matching node, because no
/// node is left.
pub fn report_of_command_line(command: &str, subject: Subject, words: &[String]) -> String {
    let format = format!("-{}", command.replace(' ', "="));
    let output = pprof(&arguments(std::slice::from_ref(&format), subject, words)).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(stderr.contains("no matches found"), "{}\n{stderr}", command_line(&format, subject, words));
        return String::new();
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the text of a report without options, in UTC.
pub fn printed(command: &str, subject: Subject) -> String {
    let output = pprof(&arguments(&[format!("-{command}")], subject, &[])).env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the help text.
pub fn help() -> String {
    let output = pprof(&["-h".to_owned()]).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// A pprof process in interactive mode.
struct Session {
    child: Child,
    /// The current values of options, which persist from one question to the next.
    set: HashMap<String, String>,
}

const PROMPT: &str = "(pprof) ";

impl Session {
    fn open(arguments: &[String]) -> Session {
        let mut command = pprof(arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut session = Session { child: child.unwrap(), set: HashMap::new() };
        session.read(1);
        session
    }

    fn report(&mut self, command: &str, words: &[String]) -> String {
        let assignments: HashMap<String, String> = words.iter().map(|word| assignment(word)).collect();
        let stale = self.set.keys().filter(|name| !assignments.contains_key(*name));
        let mut lines: Vec<String> = stale.map(|name| format!("{name}={}", default(name))).collect();
        let changed = assignments.iter().filter(|(name, value)| self.set.get(*name) != Some(value));
        lines.extend(changed.map(|(name, value)| format!("{name}={value}")));
        lines.push(command.into());
        self.set = assignments;

        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        let prompts = lines.len();
        let text = self.read(prompts);
        // Each option line prints only a prompt. The report is followed by one, too.
        text.strip_suffix(PROMPT).unwrap().replacen(PROMPT, "", prompts - 1)
    }

    /// Reads up to the last of `prompts` prompts.
    fn read(&mut self, prompts: usize) -> String {
        let stdout = self.child.stdout.as_mut().unwrap();
        let (mut bytes, mut buffer) = (Vec::new(), [0; 1 << 16]);
        loop {
            let count = stdout.read(&mut buffer).unwrap();
            assert!(count > 0, "pprof ended: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&buffer[..count]);
            if bytes.ends_with(PROMPT.as_bytes()) {
                let text = String::from_utf8_lossy(&bytes);
                if text.matches(PROMPT).count() == prompts {
                    return text.into_owned();
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Closing its input ends pprof.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Converts a command-line option to the assignment in interactive mode, where switches and choices are written like
/// other options.
fn assignment(word: &str) -> (String, String) {
    let option = word.trim_start_matches('-');
    match option.split_once('=') {
        Some((name, value)) => (name.into(), value.into()),
        None if Granularity::ALL.iter().any(|granularity| granularity.name() == option) => {
            ("granularity".into(), option.into())
        }
        None => (option.into(), "true".into()),
    }
}

/// Returns the value that resets an option.
fn default(option: &str) -> &'static str {
    if option == "noinlines" { "false" } else { "" }
}

/// Returns a pprof command that does not read or write files in the home directory.
fn pprof(arguments: &[String]) -> Command {
    let tool = tool();
    let mut command = Command::new(&tool.binary);
    command
        .args(arguments)
        // One process runs per core, and each is small. Collecting garbage less often saves a sixth of their time.
        .env("GOMAXPROCS", "1")
        .env("GOGC", "800")
        .env("HOME", &tool.home)
        .env("XDG_CONFIG_HOME", &tool.home)
        .env("PPROF_TMPDIR", &tool.home)
        .env("PPROF_BINARY_PATH", &tool.home);
    command
}

struct Tool {
    binary: PathBuf,
    /// An empty directory: pprof reads settings and searches binaries below the home directory.
    home: PathBuf,
}

fn tool() -> &'static Tool {
    static TOOLS: [OnceLock<Tool>; 2] = [OnceLock::new(), OnceLock::new()];
    TOOLS[version() as usize].get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let home = folder.join("pprof-home");
        std::fs::create_dir_all(&home).unwrap();
        let binary = match version() {
            // `go tool pprof` spends 100 ms finding (and possibly building) a binary that then runs for 5 ms.
            Version::Toolchain => go(&["tool", "-n", "pprof"]).trim().into(),
            Version::Newest => newest(&folder.join(format!("pprof-{NEWEST}"))),
        };
        Tool { binary, home }
    })
}

/// The source of google/pprof without its line editor, which requires a terminal.
const MAIN: &str = r#"package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/driver"
)

func main() {
	if err := driver.PProf(&driver.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
"#;

/// Builds google/pprof once for all test runs.
fn newest(folder: &Path) -> PathBuf {
    let binary = folder.join("pprof");
    if !binary.exists() {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("main.go"), MAIN).unwrap();
        std::fs::write(folder.join("go.mod"), "module newest\n\ngo 1.24\n").unwrap();
        let module = format!("github.com/google/pprof@{NEWEST}");
        for arguments in [&["get", &module][..], &["build", "-o", "unfinished", "."]] {
            let mut go = Command::new("go");
            let output = go.args(arguments).current_dir(folder).env("GOFLAGS", "-mod=mod").output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "go {arguments:?}, which needs the Go module proxy: {stderr}");
        }
        std::fs::rename(folder.join("unfinished"), &binary).unwrap();
    }
    binary
}

/// Runs pprof with exactly these arguments and returns its output, or its error.
pub fn try_run(arguments: &[&str]) -> Result<String, String> {
    let output = pprof(&arguments.iter().map(|word| word.to_string()).collect::<Vec<_>>()).output().unwrap();
    let [report, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() { Ok(report) } else { Err(format!("{:?}: {arguments:?}: {error}", version())) }
}

/// Like [`try_run`], but an error fails the test.
pub fn run(arguments: &[&str]) -> String {
    try_run(arguments).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `go` and returns its output. Without Go there is nothing to compare with, so the test fails: a skipped test
/// would prove nothing.
pub fn go(arguments: &[&str]) -> String {
    let output = Command::new("go").args(arguments).output().unwrap_or_else(|error| {
        panic!(
            "cannot run `go`: {error}. These tests compare with `go tool pprof`: install Go 1.24 or later \
             (https://go.dev/dl/) and put its bin folder on PATH."
        )
    });
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "go {}: {stderr}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
