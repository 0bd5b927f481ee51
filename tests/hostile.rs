//! Tests of hostile input texts. A profile with hostile texts in every field, in a file with a hostile name, goes
//! through every verb and format. The output must not contain anything that a terminal or a CI log would interpret.
//! JSON and CSV must keep the texts exactly.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;
use serde_json::Value;

/// Returns a text with GitHub commands at the beginning, on its own line and in the middle, an escape sequence, C1
/// controls, line ends of all kinds, and characters that change the direction of text.
fn evil(field: &str) -> String {
    format!(
        "::error file=x::{field}\n::warning::1\r##[error]2\x1b[31m\u{9b}2J\u{85}\u{2028}\u{202e}\u{2066}\u{200f}\
         \u{feff}\u{7f}\t\x07"
    )
}

/// Returns a hostile file name that ends in `.pb`.
fn evil_name(stem: &str) -> String {
    evil(stem).replace('/', "_") + ".pb"
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("pprofdiff-hostile-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        command.current_dir(&self.0).stdin(Stdio::null()).args(args).output().unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Builds a profile in which every text is hostile, except the file name, which leads to hostile source lines.
fn profile(value: i64) -> Vec<u8> {
    let mut p = Profile { string_table: vec![Vec::new()], ..Profile::default() };
    let mut text = |text: &str| {
        p.string_table.push(text.as_bytes().to_vec());
        p.string_table.len() as i64 - 1
    };
    let (kind, unit) = (text(&evil("type")), text(&evil("unit")));
    let (period, period_unit) = (text(&evil("period")), text(&evil("period_unit")));
    let (function, file, mapping) = (text(&evil("function")), text(&evil("file")), text(&evil("mapping")));
    let (plain, source) = (text("plain"), text("src/plain.go"));
    let (key, word, number, number_unit) =
        (text(&evil("key")), text(&evil("label")), text(&evil("number")), text(&evil("label_unit")));
    let (comment, doc_url) = (text(&evil("comment")), text(&evil("doc_url")));
    p.sample_type = vec![ValueType { r#type: kind, unit }];
    p.period_type = Some(ValueType { r#type: period, unit: period_unit });
    p.period = 1;
    p.comment = vec![comment];
    p.doc_url = doc_url;
    p.mapping = vec![Mapping { id: 1, memory_start: 1, memory_limit: 100, filename: mapping, ..Mapping::default() }];
    p.function = vec![
        Function { id: 1, name: function, system_name: function, filename: file, ..Function::default() },
        Function { id: 2, name: plain, filename: source, start_line: 1, ..Function::default() },
    ];
    let line = |function_id, line| vec![Line { function_id, line, ..Line::default() }];
    p.location = vec![
        Location { id: 1, mapping_id: 1, address: 2, line: line(1, 7), ..Location::default() },
        Location { id: 2, mapping_id: 1, address: 3, line: line(2, 2), ..Location::default() },
        Location { id: 3, mapping_id: 1, address: 4, ..Location::default() },
    ];
    let label = vec![
        Label { key, str: word, ..Label::default() },
        Label { key: number, num: 5, num_unit: number_unit, ..Label::default() },
    ];
    p.sample = vec![
        Sample { location_id: vec![1, 2], value: vec![value], label },
        Sample { location_id: vec![2, 1, 3], value: vec![10], ..Sample::default() },
    ];
    p.encode_to_vec()
}

/// Like [`profile`], with a known unit.
fn counts(value: i64) -> Vec<u8> {
    let mut p = Profile::decode(&profile(value)[..]).unwrap();
    p.string_table.push(b"count".to_vec());
    p.sample_type[0].unit = p.string_table.len() as i64 - 1;
    p.encode_to_vec()
}

/// Checks text for humans: no control characters, and no line that starts with a command. Texts from the input contain
/// no line breaks, so they cannot start a line.
fn check(context: &str, shown: &[u8]) -> String {
    let shown = String::from_utf8(shown.to_vec()).unwrap_or_else(|e| panic!("{context}: {e}"));
    let raw = shown.chars().find(|&c| {
        c.is_control() && c != '\n'
            || "\u{61c}\u{200e}\u{200f}\u{feff}".contains(c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    });
    assert_eq!(raw, None, "{context}: {shown:?}");
    for line in shown.lines() {
        let line = line.trim_start();
        let is_command = ["::error file=x", "::error::", "::warning::"].iter().any(|c| line.starts_with(c));
        assert!(!is_command && !line.contains("##[error]"), "{context}: {line}");
    }
    shown
}

#[test]
fn text_for_humans_contains_nothing_hostile() {
    let d = Dir::new("verbs");
    let (base, new) = (&*evil_name("base"), &*evil_name("new"));
    d.write(base, profile(100));
    d.write(new, profile(150));
    // Counted profiles can have causes, which come with a command.
    let (few, many) = (&*evil_name("few"), &*evil_name("many"));
    d.write(few, counts(100));
    d.write(many, counts(1_000_000));
    d.write(&format!("many/1{new}"), profile(100));
    d.write(&format!("many/2{new}"), profile(150));
    d.write(&format!("a/{new}"), profile(100));
    d.write(&format!("b/{new}"), profile(150));
    d.write("sources/src/plain.go", format!("package a\n{}\n", evil("source").replace('\n', "")));
    let rows = ["text", "markdown"].as_slice();
    let all = ["text", "markdown", "folded", "html", "dot", "svg", "callgrind"].as_slice();
    let checks = ["text", "markdown", "github", "junit", "sarif"].as_slice();
    let reason: String = evil("reason").chars().map(|c| format!("\\u{:04X}", c as u32)).collect();
    d.write("allow.toml", format!("[[check.allow]]\nframe = 'plain'\nreason = \"{reason}\"\n"));
    let cases: &[(&[&str], &[&str])] = &[
        (&["diff", base, new], all),
        (&["top", new], all),
        (&["diff", base, new, "--granularity", "files"], rows),
        (&["diff", base, new, "--granularity", "addresses"], rows),
        (&["diff", base, new, "--focus", "plain|\x1b\u{202e}"], all),
        (&["top", new, "--tagroot", &evil("key")], all),
        (&["diff", base, new, "--format", "html", "--source-path", "sources"], &[]),
        (&["tree", base, new], &["text", "markdown", "dot", "svg"]),
        (&["peek", "error", base, new], rows),
        (&["list", "error|plain", base, new, "--source-path", "sources"], &["text"]),
        (&["stacks", base, new], &["text", "markdown", "folded"]),
        (&["stacks", "--labels", base, new], rows),
        (&["traces", base, new], rows),
        (&["traces", new], rows),
        (&["labels", base, new], rows),
        (&["info", base, new], &["text"]),
        (&["raw", base, new], &[]),
        (&["raw", new], &[]),
        (&["comments", base, new], &[]),
        (&["top", new, "--call-tree"], &["dot", "svg", "callgrind"]),
        (&["check", "--strict", base, new, "--fail-on", "cum>+1%", "--fail-on", "total>+1%"], checks),
        (
            &["check", "--strict", base, new, "--fail-on", "flat:each=(?s).*\u{202e}.*>+1%", "--config", "allow.toml"],
            checks,
        ),
        (&["check", "--strict", base, new, "--fail-on", "cum>+1%", "--config", "allow.toml"], checks),
        (&["explain", base, new, "--min-effect", "0%"], &["text", "markdown"]),
        (&["explain", few, many, "--ops", "1,1"], &["text", "markdown"]),
        (&["explain", "--base", few, few, "--new", many, many, "--ops", "1,1"], &["text", "markdown"]),
        (&["diff", few, many], &["html"]),
        (&["diff", base, new, "--explain"], &["text"]),
        (&["batch", "a", "b"], &["text"]),
        (&["batch", "a", "b", "--view", "explain"], &["text"]),
        (&["series", &format!("many/1{new}"), &format!("many/2{new}")], rows),
        (&["series", &format!("many/1{new}"), &format!("many/2{new}"), "--rows", "values"], rows),
    ];
    let mut everything = String::new();
    for (args, formats) in cases {
        let formats: Vec<&[&str]> =
            if formats.is_empty() { vec![&[]] } else { formats.iter().map(std::slice::from_ref).collect() };
        for format in formats {
            let format = format.iter().flat_map(|f| ["--format", f]);
            let args: Vec<&str> = args.iter().copied().chain(format).collect();
            let out = d.run(&args);
            let context = format!("{args:?}");
            let stderr = check(&context, &out.stderr);
            assert!(matches!(out.status.code(), Some(0 | 1)), "{context}: {stderr}");
            assert!(stderr.lines().all(|l| l.starts_with("pprofdiff: ")), "{context}: {stderr}");
            everything += &check(&context, &out.stdout);
        }
    }
    for field in [
        "type",
        "unit",
        "period",
        "period_unit",
        "function",
        "file",
        "mapping",
        "key",
        "label",
        "number",
        "label_unit",
        "comment",
        "doc_url",
        "source",
        "reason",
        "base",
        "new",
    ] {
        assert!(everything.contains(&format!("x::{field}")), "{field} was never shown");
    }
    assert!(everything.contains("pprofdiff peek '^"), "no cause was shown with its command");
}

#[test]
fn json_and_csv_are_exact() {
    let d = Dir::new("exact");
    let (base, new) = (&*evil_name("base"), &*evil_name("new"));
    d.write(base, profile(100));
    d.write(new, profile(150));
    let out = d.run(&["diff", base, new, "--format", "json"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&json["sample_type"], &json["unit"]), (&evil("type").into(), &evil("unit").into()));
    assert_eq!(json["new"]["paths"][0], new);
    let names: Vec<&Value> = json["rows"].as_array().unwrap().iter().map(|r| &r["name"]).collect();
    assert!(names.contains(&&evil("function").into()), "{names:?}");
    let csv = |args: &[&str]| String::from_utf8(d.run(&[args, &["--format", "csv"]].concat()).stdout).unwrap();
    assert!(csv(&["stacks", base, new]).contains(&evil("function")));
    // Spreadsheet formulas, in every table with texts.
    let mut p = Profile::decode(&profile(100)[..]).unwrap();
    p.string_table.iter_mut().filter(|s| s.starts_with(b"::")).for_each(|s| *s = [b"=1+", &s[..]].concat());
    d.write("=a", p.encode_to_vec());
    d.write("a/=a", p.encode_to_vec());
    let files: &[&[&str]] = &[
        &["=a", "=a"],
        &["stacks", "--labels", "=a"],
        &["labels", "=a"],
        &["batch", "a", "a"],
        &["series", "=a", "=a"],
    ];
    for args in files {
        let exact = csv(args);
        let args = [*args, &["--quote-formulas"]].concat();
        let quoted = csv(&args);
        assert!(exact.contains("=1+::error") && !exact.contains("'="), "{args:?}: {exact}");
        assert_eq!(quoted.replace("'=", "="), exact, "{args:?}");
        for before in [",", ",\"", ";", "\n", "\n\""] {
            assert!(!quoted.contains(&format!("{before}=")), "{args:?}: {quoted}");
        }
    }
    assert!(csv(&["batch", "a", "a", "--quote-formulas"]).lines().skip(1).any(|l| l.starts_with("'=a,")));
}

/// Errors, warnings, and messages of a server.
#[test]
fn standard_error_contains_only_harmless_lines() {
    let d = Dir::new("stderr");
    let (good, bad, missing) = (&*evil_name("good"), &*evil_name("bad"), &*evil_name("missing"));
    d.write(good, profile(100));
    d.write(bad, "no profile");
    d.write(&format!("a/{bad}"), "no profile");
    d.write(&format!("b/{bad}"), profile(1));
    d.write(&evil("config"), "[check");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let message = evil("server").replace('\n', "");
        write!(stream, "HTTP/1.1 500 x\r\nContent-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    });
    let cases: &[&[&str]] = &[
        &["diff", good, missing],
        &["diff", good, bad],
        &["top", bad],
        &["merge", good, bad, "-o", "out.pb"],
        &["merge", good, good, "-o", &format!("no/{}", evil("out"))],
        &["delta", good, bad, "-o", "out.pb"],
        &["delta", &url, good, "-o", "out.pb"],
        &["info", bad],
        &["diff", good, good, "--sample-type", &evil("unknown")],
        &["diff", good, good, "--sample-type", "unknown"],
        &["diff", good, good, "--granularity", &evil("granularity")],
        &["diff", good, good, "--focus", &format!("({}", evil("expression"))],
        &["diff", good, good, "--tagfocus", &format!("a=({}", evil("tag"))],
        &["peek", &format!("^{}", evil("nothing").replace(['[', '\\'], "")), good],
        &["check", good, good, "--fail-on", &evil("rule")],
        &["check", good, good, "--fail-on", "total>+1ms"],
        &["check", good, good, "--config", &evil("config")],
        &["batch", "a", "b"],
        &["batch", &evil("manifest")],
        &["series", good, bad],
        &[&evil("verb"), "--x"],
    ];
    for args in cases {
        let out = d.run(args);
        let context = format!("{args:?}");
        assert_eq!(out.status.code(), Some(2), "{context}: {out:?}");
        let stderr = check(&context, &out.stderr);
        assert!(stderr.lines().all(|l| l.starts_with("pprofdiff: ")) && !stderr.is_empty(), "{context}: {stderr}");
        check(&context, &out.stdout);
        if args.contains(&&*url) {
            assert!(stderr.contains("x::server"), "{stderr}");
        }
    }
    server.join().unwrap();
    // A restarted process gives a warning that names the output.
    d.write("less", profile(1));
    let output = format!("{}.pb", evil("delta"));
    let out = d.run(&["delta", good, "less", "--cumulative", &evil("type"), "--on-reset", "clamp", "-o", &output]);
    let stderr = check("delta", &out.stderr);
    assert!(out.status.success() && stderr.contains("x::delta") && stderr.lines().count() == 1, "{stderr}");
}
