//! Programs that tests need and may lack: what is skipped is said, and in CI it fails.

use std::io::Write;
use std::process::{Command, Stdio};

/// False without a program (`version` is an option that it takes). Then the part of a test that needs it is skipped,
/// which is said also where tests/run counts.
pub fn have(program: &str, version: &str, package: &str, test: &str) -> bool {
    if Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {program}");
    let line = format!("{test}: {program} is missing (apt-get install {package})\n");
    // Not by eprint, whose output is dropped when a test passes.
    std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os("PPROFDIFF_SKIPPED") {
        std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
    }
    false
}
