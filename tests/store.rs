//! Tests of stores with the command: views of stored profiles equal those of the original files, byte for byte except
//! for names.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::cli::{corpus, failure, run, stdout, temp};

/// Returns the names of the corpus pairs.
fn pairs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pairs: Vec<String> = names.filter_map(|name| name.strip_suffix(".base.pb.gz").map(str::to_owned)).collect();
    pairs.sort();
    assert!(pairs.len() > 10);
    pairs
}

/// Returns the output of a command, with the names of its inputs replaced.
fn answer(args: &[&str], inputs: [&str; 2]) -> String {
    let output = run(&[args, &inputs].concat());
    let text = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A stored profile is also named by its id.
    let ids = regex::Regex::new("(BASE|NEW)/[0-9a-f]{32}").unwrap();
    let text = text.replace(inputs[0], "BASE").replace(inputs[1], "NEW");
    ids.replace_all(&text, "$1").into_owned()
}

#[test]
fn views_of_stored_profiles_equal_those_of_their_files() {
    let store = temp("equal-store").display().to_string();
    for pair in pairs() {
        let files = ["base", "new"].map(|side| corpus(&format!("{pair}.{side}.pb.gz")));
        let service = format!("service={pair}");
        let stored = ["base", "new"].map(|side| format!("{store}/{service}/build={side}"));
        for (file, build) in files.iter().zip(["build=base", "build=new"]) {
            let output = stdout(&["store", "add", &store, file, "--key", &service, "--key", build]);
            assert!(output.starts_with("1 profile added"), "{output}");
        }
        for args in [
            &["top", "--format", "json"][..],
            &["top", "--granularity", "addresses", "--format", "json"],
            &["stacks", "--granularity", "lines", "--format", "json"],
            &["labels", "--format", "json"],
            &["explain", "--format", "json"],
            &["explain"],
            &["diff"],
        ] {
            let [of_files, of_store] =
                [&files, &stored].map(|inputs| answer(args, [inputs[0].as_str(), inputs[1].as_str()]));
            assert!(of_files.len() > 100, "{pair} {args:?}: {of_files}");
            assert!(of_files == of_store, "{pair} {args:?}:\n{of_files}\n---\n{of_store}");
        }
    }
    // All pairs in one batch, matched by the key that both sides leave open.
    let sides = ["base", "new"].map(|side| format!("{store}/build={side}"));
    let lines = stdout(&["batch", &sides[0], &sides[1], "--format", "jsonl", "-n", "1"]);
    assert_eq!(lines.lines().count(), pairs().len());
}

#[test]
fn series_of_a_store_equal_those_of_its_files() {
    let store = temp("series-store").display().to_string();
    let pattern = corpus("go-*.*.pb.gz").replace("go-*", "go-labels-cpu");
    let output = stdout(&["store", "add", &store, &pattern, "--key", "service=api", "--key", "build={1}"]);
    assert!(output.starts_with("2 profiles added"), "{output}");
    assert!(
        stdout(&["store", "add", &store, &pattern, "--key", "service=api", "--key", "build={1}"])
            .contains("2 already stored")
    );
    let stored = format!("{store}/service=api");
    let paths = regex::Regex::new("[^,]*/(build=[a-z]*/[0-9a-f]{32}|go-labels-cpu[^,]*)").unwrap();
    for args in [&["--rows", "values"][..], &["--rows", "values", "--granularity", "lines"], &["--rows", "steps"]] {
        let csv = |builds: &str| stdout(&[&["series", builds, "--format", "csv"], args].concat());
        let plain = |text: String| paths.replace_all(&text, "PATH").into_owned();
        let (of_files, of_store) = (plain(csv(&pattern)), plain(csv(&stored)));
        assert!(of_files.lines().count() > 20, "{of_files}");
        assert!(of_files == of_store, "{args:?}:\n{of_files}\n---\n{of_store}");
    }
    assert!(stdout(&["store", "list", &stored]).contains("service=api/build=base  1  "));
    assert!(stdout(&["store", "compact", &store]).contains("6 files"));
    assert!(failure(&["top", &format!("{store}/host=a")]).contains("service, build"));
    for (wrong, error) in [("host=a", "service, build"), ("service=web", "the store has no profile with these keys")] {
        let message = failure(&["series", &format!("{store}/{wrong}")]);
        assert!(message.contains(error), "{message}");
    }
    assert!(failure(&["store", "list", &corpus("series")]).contains("not a profile store"));
}

/// Creates a store with two builds of a service.
fn small_store(name: &str) -> String {
    let store = temp(name).display().to_string();
    for (build, side) in [("1", "base"), ("2", "new")] {
        let file = corpus(&format!("go-mutex.{side}.pb.gz"));
        stdout(&["store", "add", &store, &file, "--key", "service=a b", "--key", &format!("build={build}")]);
    }
    store
}

#[test]
fn a_partition_with_a_wrong_name_is_a_one_line_error() {
    let store = small_store("misnamed-store");
    for table in ["samples", "locations", "functions"] {
        std::fs::rename(format!("{store}/{table}/service=a%20b"), format!("{store}/{table}/service=a b")).unwrap();
    }
    let selected = format!("{store}/service=a b/build=1");
    for args in [&["store", "list", &store][..], &["top", &selected], &["store", "compact", &store]] {
        let error = failure(args);
        assert!(error.contains("service=a b") && error.contains("service=a%20b; rename it"), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn links_pipes_and_limits_of_stores_give_one_line_messages() {
    use std::os::unix::fs::symlink;
    let store = small_store("hostile-store");
    let build = format!("{store}/service=a b/build=1");
    let error = failure(&["top", &build, "--inflated-limit", "10"]);
    assert!(error.contains("more than 10 bytes (--inflated-limit)"), "{error}");
    // A partition behind a link is read and left unchanged.
    let partition = format!("{store}/functions/service=a%20b/build=2");
    let elsewhere = temp("hostile-store-elsewhere");
    std::fs::rename(&partition, &elsewhere).unwrap();
    symlink(&elsewhere, &partition).unwrap();
    let output = run(&["store", "compact", &store]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.lines().count() == 1, "{warning}");
    assert!(warning.contains("build=2 is a link"), "{warning}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    // Reading a pipe would block until a writer opens it.
    let folder = format!("{store}/samples/service=a%20b/build=1");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    for args in [&["top", &build][..], &["check", &build, &build]] {
        assert!(failure(args).contains("a pipe or a device"));
    }
    std::fs::remove_file(format!("{store}/pprofdiff-store.json")).unwrap();
    symlink("/dev/zero", format!("{store}/pprofdiff-store.json")).unwrap();
    assert!(failure(&["store", "list", &store]).contains("a pipe or a device"));
}
