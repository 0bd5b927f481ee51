//! The rules of the house (ARCHITECTURE.md) that a machine can keep.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a directory with one of the endings, with their text.
fn files(dir: &str, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "node_modules", "__pycache__"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "nothing in {dir}");
    found
}

#[test]
fn a_lower_floor_never_knows_a_higher_one() {
    let floors: &[(&str, &[&str])] = &[
        (
            "crates/pprofdiff/src/profile",
            &["crate::diff", "crate::report", "crate::batch", "crate::delta", "crate::gate", "crate::series"],
        ),
        (
            "crates/pprofdiff/src/diff",
            &[
                "crate::report",
                "crate::batch",
                "crate::delta",
                "crate::gate",
                "crate::series",
                "profile::wire",
                "serde_json",
            ],
        ),
        (
            "crates/pprofdiff/src/delta",
            &[
                "crate::diff",
                "crate::gate",
                "crate::report",
                "crate::batch",
                "crate::series",
                "profile::wire",
                "serde_json",
            ],
        ),
        (
            "crates/pprofdiff/src/gate",
            &["crate::report", "crate::batch", "crate::delta", "crate::series", "profile::wire", "serde_json"],
        ),
        (
            "crates/pprofdiff/src/series",
            &["crate::report", "crate::delta", "crate::gate", "profile::wire", "serde_json"],
        ),
        ("crates/pprofdiff/src/report", &["crate::batch", "crate::delta"]),
        ("crates/pprofdiff/src", &["pyo3", "clap", "arrow_array", "thread::spawn", "thread::scope"]),
        ("crates/pprofdiff-cli/src", &["pyo3", "std::collections"]),
        ("crates/pprofdiff-python/src", &["clap::"]),
    ];
    for (dir, forbidden) in floors {
        for (path, text) in files(dir, &[".rs"]) {
            for word in *forbidden {
                let found = text.lines().any(|l| !l.trim_start().starts_with("//") && l.contains(word));
                assert!(!found, "{} must not know {word}", path.display());
            }
        }
    }
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    for dir in ["crates", "tests", "python"] {
        for (path, text) in files(dir, &[".rs", ".py", ".pyi"]) {
            let first = text.lines().find(|l| !l.starts_with("#!")).unwrap_or_default();
            let opens = first.starts_with("//!")
                || first.starts_with("//")
                || first.starts_with("\"\"\"")
                || first.starts_with('#');
            assert!(opens, "{} does not say what it is for", path.display());
        }
    }
}

#[test]
fn unsafe_code_has_one_home() {
    for (path, text) in
        files("crates", &[".rs"]).into_iter().filter(|(path, _)| !path.ends_with("profile/libdeflate.rs"))
    {
        assert!(!text.contains("unsafe {") && !text.contains("unsafe fn"), "{}", path.display());
    }
}

/// Without a secret, what collides can be worked out at home (tests/flooding.rs). The names are of hashers without one.
#[test]
fn hashers_are_keyed() {
    for (path, text) in files("crates", &[".rs"]) {
        for word in ["FixedState", "BuildHasherDefault", "FxHash", "fnv::", "DefaultHasher::new"] {
            assert!(!text.contains(word), "{}: {word} has no key", path.display());
        }
    }
}
