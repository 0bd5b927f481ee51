//! Checks for programs that tests need. A test whose program is missing is skipped with a message, and fails in CI.

use std::io::Write;
use std::process::{Command, Stdio};

/// Returns false if a program is missing (`version` is an option that it accepts). The test then skips this part. The
/// message is also counted by tests/run.
pub fn have(program: &str, version: &str, package: &str, test: &str) -> bool {
    if Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {program}");
    let line = format!("{test}: {program} is missing (apt-get install {package})\n");
    // Not eprintln, whose output is discarded if the test passes.
    std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os("PPROFDIFF_SKIPPED") {
        std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
    }
    false
}
