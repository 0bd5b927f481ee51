//! Java's recordings and profiles of the Firefox profiler in `tests/corpus/inputs`, against what `tests/traces/judge.py` says of
//! them: `jfr print` of the JDK, and a plain reading. The JDK at hand is asked too, of a recording that it makes then.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::rows;
use crate::profile::{LoadOptions, Profile};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// A profile has the types and the sums by stack and labels that the judge wrote down.
fn assert_is_expected(profile: &Path, expected: &Path) {
    let name = profile.display();
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
    let p = Profile::open(profile, &LoadOptions::default()).unwrap();
    assert_eq!(serde_json::json!(p.sample_types()), expected["types"], "{name}");
    let (mut found, mut wanted) = (BTreeMap::new(), BTreeMap::new());
    for row in rows(&p) {
        let (key, values) = row.rsplit_once(": ").unwrap();
        let sums: &mut Vec<i64> = found.entry(key.to_owned()).or_insert_with(|| vec![0; p.sample_types().len()]);
        sums.iter_mut().zip(values.split(' ')).for_each(|(sum, value)| *sum += value.parse::<i64>().unwrap());
    }
    for row in expected["samples"].as_array().unwrap() {
        let texts = |i: usize| serde_json::from_value::<Vec<String>>(row[i].clone()).unwrap();
        // As `rows` shows frames without a line, and labels.
        let stack: Vec<String> = texts(0).iter().map(|f| f.strip_suffix(" :0").unwrap_or(f).to_owned()).collect();
        let labels: String = texts(1).iter().map(|label| format!(" {label}")).collect();
        let values: Vec<i64> = serde_json::from_value(row[2].clone()).unwrap();
        wanted.insert(format!("{}{labels}", stack.join("|")), values);
    }
    // Columns are not in what is expected.
    let found: BTreeMap<String, Vec<i64>> =
        found.into_iter().filter(|(_, sums)| sums.iter().any(|&v| v != 0)).collect();
    assert!(wanted.len() > 4, "{name}");
    assert_eq!(found, wanted, "{name}");
}

#[test]
fn recorded_profiles_are_what_their_judges_said() {
    let inputs = tests().join("corpus/inputs");
    for name in ["press.SIDE.jfr", "sampled.SIDE.jfr", "press.SIDE.firefox.json"] {
        for side in ["base", "new"] {
            let name = name.replace("SIDE", side);
            assert_is_expected(&inputs.join(format!("{name}.gz")), &inputs.join(format!("{name}.expected.json")));
        }
    }
}

/// The JDK of this machine records a program, and its own reader says what is in the recording.
#[test]
fn a_recording_made_here_is_what_the_jdk_prints() {
    if !["java", "javac", "jfr", "python3"].into_iter().all(has) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("pprofdiff-recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let programs = tests().join("producers/traces");
    let run = |command: &mut Command| {
        let output = command.current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(Command::new("javac").args(["-g", "-d", "."]).arg(programs.join("Press.java")));
    for settings in ["press", "sampled"] {
        let settings = programs.join(format!("{settings}.jfc"));
        let start = format!("-XX:StartFlightRecording=filename=made.jfr,settings={}", settings.display());
        run(Command::new("java").args(["-Xmx128m", &start, "-cp", ".", "Press", "4"]));
        run(Command::new("python3").arg(tests().join("traces/judge.py")).arg("made.jfr"));
        assert_is_expected(&folder.join("made.jfr"), &folder.join("made.jfr.expected.json"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// False without a program: then a test is skipped, which is said where `tests/run` counts; in CI it fails.
pub(super) fn has(program: &str) -> bool {
    use std::io::Write;
    if Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {program}");
    let line = format!("format::judged: {program} is missing (apt-get install default-jdk-headless)\n");
    std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os("PPROFDIFF_SKIPPED") {
        std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
    }
    false
}
