//! Runs our command, and converts its JSON to the rows that pprof would print.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::pprof::Subject;
use crate::question::Question;
use crate::reports::edge;
use crate::rows::Row;
use crate::units;

/// One row of our JSON, with the printed names, and each number under the name of its column.
pub struct Entry {
    json: Value,
}

/// A report of ours: its header fields and its rows.
pub struct Answer {
    pub json: Value,
    pub entries: Vec<Entry>,
}

pub fn ask(view: &[&str], subject: Subject, question: &Question) -> Answer {
    let words = &question.to_our_args();
    let text = run(view, subject, words);
    let mut json: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{}: not JSON: {error}", command_line(view, subject, words)));
    let Value::Array(rows) = json["rows"].take() else {
        panic!("{}: no rows", command_line(view, subject, words));
    };
    // The command was run without a row limit, so a different count means that rows were lost.
    assert_eq!(json["rows_total"].as_u64(), Some(rows.len() as u64), "{}", command_line(view, subject, words));
    let entries = rows.into_iter().map(|json| Entry { json }).collect();
    Answer { json, entries }
}

/// Runs the command to write a diff to a file.
pub fn write_diff(base: &Path, new: &Path, out: &Path) {
    let status = Command::new(env!("CARGO_BIN_EXE_pprofdiff"))
        .arg("diff")
        .args([base, new])
        .args(["--format", "pprof", "-o"])
        .arg(out)
        .status();
    assert!(status.unwrap().success());
}

pub fn command_line(view: &[&str], subject: Subject, words: &[String]) -> String {
    format!("pprofdiff {}", arguments(view, subject, words).join(" "))
}

impl Entry {
    /// Returns a number column, such as `flat_base`.
    pub fn number(&self, column: &str) -> i64 {
        self.json[column].as_i64().unwrap_or_else(|| panic!("no number {column:?} in {}", self.json))
    }

    pub fn text(&self, column: &str) -> String {
        self.json[column].as_str().unwrap_or_else(|| panic!("no text {column:?} in {}", self.json)).into()
    }

    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Converts a row of `top`, with two of its columns.
    pub fn sums(&self, flat: &str, cum: &str) -> Row {
        Row { subject: self.node(), numbers: vec![self.number(flat), self.number(cum)] }
    }

    pub fn node(&self) -> String {
        printed_name(&self.json)
    }

    /// Converts a row of `peek`: the edge, with the two frames named as in pprof, and one column.
    pub fn edge(&self, column: &str) -> Row {
        let subject = edge(&self.text("node"), &(self.text("relation") + " "), &self.text("other"));
        Row { subject, numbers: vec![self.number(column)] }
    }

    /// Converts a row of `labels`: the label, with its value scaled to `unit`, because pprof scales all numbers of a
    /// report.
    pub fn label(&self, column: &str, unit: &str) -> Row {
        let value = match self.json["unit"].as_str() {
            None => self.text("value"),
            Some(reported_unit) => units::scaled(self.text("value").parse().unwrap(), reported_unit, unit),
        };
        Row { subject: format!("{}={value}", self.text("key")), numbers: vec![self.number(column)] }
    }

    /// Converts a row of `traces` of one profile: its labels and frames.
    pub fn trace(&self) -> Row {
        let Row { subject, numbers } = self.stack("weight");
        let labels =
            self.json["labels"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().split_once('=').unwrap());
        Row { subject: labelled(&subject, labels), numbers }
    }

    /// Converts a row of `stacks`: the frames, root first.
    pub fn stack(&self, column: &str) -> Row {
        let frames = self.json["frames"].as_array().unwrap();
        let frames: Vec<&str> = frames.iter().map(|frame| frame.as_str().unwrap()).collect();
        Row { subject: frames.join("; "), numbers: vec![self.number(column)] }
    }
}

/// Returns a stack with its labels. pprof prints several values of a key with spaces in between, and scales numbers, so
/// only the presence of numbers is compared.
pub fn labelled<'l>(stack: &str, labels: impl Iterator<Item = (&'l str, &'l str)>) -> String {
    let shown = |word: &'l str| if word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) { "0" } else { word };
    let words = labels.flat_map(|(key, values)| values.split(' ').map(move |word| format!("{key}={}", shown(word))));
    let mut words: Vec<String> = words.collect();
    words.sort();
    format!("{}: {stack}", words.join(", "))
}

/// Returns the name that pprof prints for a frame: address, function and place, or only the place at granularity
/// `files`.
fn printed_name(frame: &Value) -> String {
    let name = frame["name"].as_str().unwrap_or("");
    let file = frame["file"].as_str().unwrap_or("");
    let line = frame["line"].as_i64().unwrap_or(0);
    let mut parts = Vec::new();
    match frame["address"].as_u64() {
        None | Some(0) => {}
        Some(address) => parts.push(format!("{address:016x}")),
    }
    // A frame without a name is named by its file, as is every frame at `files`. pprof prints the file once.
    if !name.is_empty() && name != file {
        parts.push(name.into());
    }
    match (line, file) {
        (0, "") => {}
        (0, file) => parts.push(file.into()),
        (line, file) => parts.push(format!("{file}:{line}")),
    }
    parts.join(" ")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn arguments(view: &[&str], subject: Subject, words: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> = view.iter().map(|word| word.to_string()).collect();
    match subject {
        Subject::One(profile) => arguments.push(shown(profile)),
        Subject::Two { base, new } => arguments.extend([shown(base), shown(new)]),
        Subject::Several { base, new } => {
            arguments.push(format!("--base={}", shown(base)));
            arguments.extend(new.iter().map(|path| format!("--new={}", shown(path))));
            arguments.push("--sum".to_owned());
        }
    }
    arguments.extend(["--format".into(), "json".into()]);
    arguments.extend_from_slice(words);
    arguments
}

/// Runs the command in this process, which saves most of the time for starting one. The output goes to a pipe, because
/// waiting for the disk would take longer than everything else.
pub fn run(view: &[&str], subject: Subject, words: &[String]) -> String {
    run_arguments(arguments(view, subject, words))
}

fn run_arguments(arguments: Vec<String>) -> String {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let pipe = format!("/dev/fd/{}", writer.as_raw_fd());
    let command = format!("pprofdiff {}", arguments.join(" "));
    let all = ["pprofdiff".to_owned()].into_iter().chain(arguments).chain(["-o".to_owned(), pipe]);
    std::thread::scope(|scope| {
        let answer = scope.spawn(move || {
            let mut answer = String::new();
            reader.read_to_string(&mut answer).map(|_| answer).unwrap()
        });
        let code = pprofdiff_cli::run(all.map(OsString::from));
        drop(writer);
        assert_eq!(code, 0, "{command}");
        answer.join().unwrap()
    })
}

/// Returns the text that a view prints for humans.
pub fn printed(view: &[&str], subject: Subject, words: &[String]) -> String {
    let mut arguments = arguments(view, subject, words);
    let format = arguments.iter().position(|word| word == "--format").unwrap();
    arguments.drain(format..format + 2);
    run_arguments(arguments)
}

/// Runs the command in its own process, as a user does, and returns its standard output.
pub fn run_binary(view: &[&str], subject: Subject, words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args(arguments(view, subject, words)).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{stderr}", command_line(view, subject, words), output.status);
    String::from_utf8(output.stdout).unwrap()
}
