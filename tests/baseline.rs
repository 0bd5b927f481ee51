//! Tests of `check --baseline`: a folder with the last profiles of a branch, filled by CI jobs, and hostile files in
//! it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::check::{Dir, corpus, sampled};

const RULE: [&str; 2] = ["--fail-on", "total>+10%"];

/// Builds a run of a program of 40 functions. `more` is added to the first function.
fn program(seed: u64, more: i64) -> Vec<u8> {
    let names: Vec<String> = (0..40).map(|i| format!("f{i}")).collect();
    let noise = |i: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i * 7919) >> 7) % 41;
    let cost = |i: usize| 1000 + noise(i as u64) as i64 - 20 + if i == 0 { more } else { 0 };
    sampled(&names.iter().enumerate().map(|(i, name)| (name.as_str(), cost(i))).collect::<Vec<_>>())
}

fn files(dir: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Stores `runs` runs, each from its own commit.
fn store_with_runs(name: &str, runs: u64) -> Dir {
    let d = Dir::new(name);
    for seed in 0..runs {
        d.write("run.pb", program(seed, 0));
        let (commit, time) = (format!("c{seed}"), format!("2026-01-01T00:00:{:02}Z", seed % 60));
        let store = ["--baseline", "store", "run.pb", "--store", "--commit", &commit, "--commit-time", &time];
        let out = d.run_with_chance(&[&store[..], &RULE].concat());
        assert_eq!(out.status.code(), Some(0), "{seed}: {}", String::from_utf8_lossy(&out.stderr));
    }
    d
}

fn run_check(d: &Dir, args: &[&str]) -> (i32, Value) {
    d.json_with_chance(&[&["--baseline", "store"], args, &RULE].concat())
}

#[test]
fn new_runs_are_compared_with_the_last_runs_of_the_branch() {
    let d = store_with_runs("baseline-last", 6);
    assert_eq!(files(&d.0.join("store")).len(), 12);
    d.write("same.pb", program(77, 0));
    d.write("more.pb", program(78, 20_000));
    let (code, json) = run_check(&d, &["same.pb"]);
    assert_eq!((code, json["verdict"].as_str()), (0, Some("pass")));
    // The newest comes first, each is named by its commit, and their spread is known.
    let names: Vec<&str> =
        json["base"]["paths"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["main@c5", "main@c4", "main@c3", "main@c2", "main@c1", "main@c0"]);
    assert!(json["rules"][0]["tau"].as_f64().unwrap() < 0.05, "{json}");
    let (code, json) = run_check(&d, &["more.pb", "--keep", "3"]);
    assert_eq!((code, json["verdict"].as_str(), json["base"]["paths"].as_array().unwrap().len()), (1, Some("fail"), 3));
    // The page shows the compared profiles, although no file of the base was given.
    assert_eq!(run_check(&d, &["more.pb", "--report", "r.html"]).0, 1);
    assert!(std::fs::read_to_string(d.0.join("r.html")).unwrap().contains("main@c5"));
    // A failing run is not stored. A passing run is stored, and the oldest is removed.
    let before = files(&d.0.join("store"));
    assert_eq!(run_check(&d, &["more.pb", "--store"]).0, 1);
    assert_eq!(files(&d.0.join("store")), before);
    assert_eq!(run_check(&d, &["same.pb", "--store", "--keep", "6", "--commit", "c6"]).0, 0);
    let (_, json) = run_check(&d, &["same.pb"]);
    let names: Vec<&str> =
        json["base"]["paths"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["main@c6", "main@c5", "main@c4", "main@c3", "main@c2", "main@c1"]);
    // An accepted run replaces all others.
    assert_eq!(run_check(&d, &["more.pb", "--accept", "--commit", "c7"]).0, 1);
    let (code, json) = run_check(&d, &["more.pb"]);
    assert_eq!(
        (code, json["base"]["paths"].as_array().unwrap().len(), json["base"]["paths"][0].as_str()),
        (0, 1, Some("main@c7"))
    );
    // Entries contain neither the machine nor the user.
    for name in files(&d.0.join("store")).iter().filter(|name| name.ends_with(".json")) {
        let entry: Value = serde_json::from_slice(&std::fs::read(d.0.join("store").join(name)).unwrap()).unwrap();
        let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["schema", "branch", "commit", "time", "labels"]);
    }
}

/// Chance may explain one growth. Storing it would raise the base of the next check.
#[test]
fn an_exceeded_limit_is_not_stored_even_if_chance_explains_it() {
    let d = store_with_runs("baseline-exceeded", 1);
    d.write("some.pb", program(79, 6_000));
    let before = files(&d.0.join("store"));
    assert_eq!(run_check(&d, &["some.pb", "--store"]).0, 3);
    assert_eq!(files(&d.0.join("store")), before);
    let out = d.run_with_chance(&[&["--baseline", "store", "some.pb", "--store"][..], &RULE].concat());
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert!(stderr.contains("not stored, because they exceed a limit; --accept stores them"), "{stderr}");
    assert_eq!(run_check(&d, &["some.pb", "--accept"]).0, 3);
    assert_ne!(files(&d.0.join("store")), before);
}

#[test]
fn checks_with_different_names_are_compared_separately() {
    let d = store_with_runs("baseline-names", 3);
    d.write("new.pb", program(50, 0));
    let named = |name: &str, more: &[&str]| run_check(&d, &[&["new.pb", "--name", name], more].concat());
    let paths = |json: &Value| json["base"]["paths"].as_array().unwrap().len();
    // The stored runs have no name. The first run of a service starts its own baseline, and has no other.
    let code_of = |name: &str| {
        d.run_with_chance(&[&["--baseline", "store", "new.pb", "--name", name], &RULE[..]].concat()).status.code()
    };
    assert_eq!(code_of("orders"), Some(2));
    let (code, json) = named("orders", &["--store"]);
    assert_eq!(code, 0, "{json}");
    let warning = json["warnings"][0].as_str().unwrap();
    assert!(warning.contains("no profile of branch main of orders to compare with; 1 stored"), "{warning}");
    assert_eq!(paths(&named("orders", &[]).1), 1);
    assert_eq!(code_of("carts"), Some(2));
    assert_eq!(paths(&run_check(&d, &["new.pb"]).1), 3);
    // The name in the configuration counts as well. An accepted run replaces only runs with the same name.
    d.write("named.toml", "[check]\nname = \"orders\"\n");
    assert_eq!(paths(&run_check(&d, &["new.pb", "--config", "named.toml", "--accept"]).1), 1);
    assert_eq!((paths(&named("orders", &[]).1), paths(&run_check(&d, &["new.pb"]).1)), (1, 3));
}

#[test]
fn branches_and_labels_are_compared_separately() {
    let d = store_with_runs("baseline-labels", 3);
    d.write("new.pb", program(9, 0));
    let out = d.run_with_chance(&[&["--baseline", "store", "new.pb", "--branch", "release"], &RULE[..]].concat());
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(
        stderr.contains("store has no profile of branch release to compare with; store some with --store"),
        "{stderr}"
    );
    let arm = ["--baseline", "store", "new.pb", "--label", "arch=arm64", "--store"];
    let out = d.run_with_chance(&[&arm, &RULE[..]].concat());
    assert_eq!(out.status.code(), Some(0));
    let stdout = String::from_utf8(out.stdout).unwrap();
    assert!(
        stdout.contains("store has no profile of branch main with arch=arm64 to compare with; 1 stored"),
        "{stdout}"
    );
    let count = |args: &[&str]| run_check(&d, args).1["base"]["paths"].as_array().unwrap().len();
    assert_eq!((count(&["new.pb", "--label", "arch=arm64"]), count(&["new.pb"])), (1, 4));
    // An accepted run replaces only the entries with the same labels.
    assert_eq!(run_check(&d, &["new.pb", "--accept"]).0, 0);
    assert_eq!((count(&["new.pb", "--label", "arch=arm64"]), count(&["new.pb"])), (1, 2));
    // The options of a store need a store.
    for more in [
        &["--store"][..],
        &["--keep", "3"],
        &["--baseline", "store", "--keep", "51"],
        &["--baseline", "store", "--base", "new.pb"],
        &["--baseline", "store", "--label", "a=1", "--label", "a=2"],
    ] {
        let out = d.run_with_chance(&[&["new.pb", "new.pb"], more, &RULE].concat());
        assert_eq!(out.status.code(), Some(2), "{more:?}");
    }
}

#[test]
fn hostile_files_in_a_store_are_skipped_and_reported() {
    let d = store_with_runs("baseline-hostile", 3);
    let store = d.0.join("store");
    let id = |i: u8| format!("{:012}-{:016x}", 1_700_000_000_u64 + u64::from(i), i);
    let entry = r#"{"schema":"pprofdiff-baseline/1","branch":"main","commit":"x\u001b[2J","time":9,"labels":{}}"#;
    let put = |i: u8, json: &str, profile: &[u8]| {
        std::fs::write(store.join(format!("{}.json", id(i))), json).unwrap();
        std::fs::write(store.join(format!("{}.pb.gz", id(i))), profile).unwrap();
    };
    put(0, "not JSON", &program(1, 0));
    put(1, &entry.replace("baseline/1", "baseline/2"), &program(1, 0));
    put(2, entry, b"no profile");
    put(3, &format!("{entry}{}", " ".repeat(20_000)), &program(1, 0));
    put(4, entry, &program(1, 0)[..40]);
    put(5, entry, b"");
    // A profile of another kind, and a profile that is stored elsewhere.
    put(6, entry, &std::fs::read(corpus("go-heap.base.pb.gz")).unwrap());
    // Symbolic links to valid files.
    put(7, entry, b"");
    std::fs::remove_file(store.join(format!("{}.pb.gz", id(7)))).unwrap();
    symlink(d.0.join("run.pb"), store.join(format!("{}.pb.gz", id(7)))).unwrap();
    put(8, entry, &program(1, 0));
    std::fs::remove_file(store.join(format!("{}.json", id(8)))).unwrap();
    d.write("outside.json", entry);
    symlink(d.0.join("outside.json"), store.join(format!("{}.json", id(8)))).unwrap();
    // Files with other names are not entries of the store.
    std::fs::write(store.join("README.json"), "{").unwrap();
    std::fs::create_dir(store.join(format!("{}.json", id(9)))).unwrap();
    d.write("new.pb", program(9, 0));
    let (code, json) = run_check(&d, &["new.pb"]);
    assert_eq!(code, 0, "{json}");
    assert_eq!(json["base"]["paths"].as_array().unwrap().len(), 3);
    let warnings: Vec<&str> = json["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    for i in 0..=9 {
        let skips: Vec<_> = warnings.iter().filter(|w| w.contains(&id(i)) && w.contains(": skipped: ")).collect();
        assert_eq!(skips.len(), 1, "{i}: {warnings:#?}");
    }
    assert_eq!(warnings.len(), 10, "{warnings:#?}");
    // The number of warnings is limited, and entries with a time in the future are not used.
    for i in 20..40 {
        put(i, "{", b"");
    }
    put(50, entry, &program(1, 0));
    std::fs::rename(store.join(format!("{}.json", id(50))), store.join("999999999999-0000000000000001.json")).unwrap();
    let (_, json) = run_check(&d, &["new.pb"]);
    let warnings: Vec<&str> = json["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!((warnings.len(), json["base"]["paths"].as_array().unwrap().len()), (11, 3));
    assert!(warnings[0].contains("its time is in the future") && warnings[10].contains(": skipped "), "{warnings:#?}");
    let text = d.run_with_chance(&[&["--baseline", "store", "new.pb"], &RULE[..]].concat());
    assert!(!text.stdout.contains(&0x1b) && !text.stderr.contains(&0x1b));
    // New runs can still be stored.
    assert_eq!(run_check(&d, &["new.pb", "--store"]).0, 0);
    assert_eq!(run_check(&d, &["new.pb"]).1["base"]["paths"].as_array().unwrap().len(), 4);
}

#[test]
fn concurrent_writers_lose_no_run() {
    let d = store_with_runs("baseline-writers", 2);
    d.write("run.pb", program(5, 0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..6 {
                    let store = ["--baseline", "store", "run.pb", "--store", "--keep", "50"];
                    let out = d.run_with_chance(&[&store, &RULE[..]].concat());
                    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
                }
            });
        }
    });
    assert_eq!(files(&d.0.join("store")).len(), 2 * 26);
    assert_eq!(run_check(&d, &["run.pb", "--keep", "50"]).1["base"]["paths"].as_array().unwrap().len(), 26);
    // If a writer was killed between its two files, the orphan is removed when it is old.
    let orphan = d.0.join("store").join("000000000001-0123456789abcdef.pb.gz");
    std::fs::write(&orphan, b"half").unwrap();
    assert_eq!(run_check(&d, &["run.pb", "--store"]).0, 0);
    assert!(orphan.exists());
    let day = std::time::Duration::from_secs(25 * 60 * 60);
    let file = std::fs::File::options().write(true).open(&orphan).unwrap();
    file.set_modified(std::time::SystemTime::now() - day).unwrap();
    assert_eq!(run_check(&d, &["run.pb", "--store"]).0, 0);
    assert!(!orphan.exists());
}

/// A store without usable entries is not treated as empty. Otherwise a regression could become the new baseline.
#[test]
fn a_store_without_a_usable_entry_is_an_error() {
    // Four days in the future, as from a job with a wrong clock.
    let ahead = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 4 * 86_400;
    let broken: [(&str, &str, &dyn Fn(&Path)); 4] = [
        ("profiles", "skipped", &|path| {
            if path.extension().unwrap() == "gz" {
                std::fs::write(path, b"junk").unwrap();
            }
        }),
        ("entries", "skipped", &|path| {
            if path.extension().unwrap() == "json" {
                std::fs::write(path, b"junk").unwrap();
            }
        }),
        ("types", "sample type", &|path| {
            if path.extension().unwrap() == "gz" {
                std::fs::copy(corpus("go-heap.base.pb.gz"), path).unwrap();
            }
        }),
        ("clock", "its time is in the future", &|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            std::fs::rename(path, path.with_file_name(format!("{ahead:012}{}", &name[12..]))).unwrap();
        }),
    ];
    for (name, why, damage) in broken {
        let d = store_with_runs(&format!("baseline-broken-{name}"), 4);
        let store = d.0.join("store");
        files(&store).iter().for_each(|name| damage(&store.join(name)));
        let before = files(&store);
        d.write("slow.pb", program(5, 70_000));
        for more in [&[][..], &["--store"]] {
            let out = d.run_with_chance(&[&["--baseline", "store", "slow.pb"], more, &RULE].concat());
            let stderr = String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(2), "{name} {more:?}: {stderr}");
            let last = stderr.lines().last().unwrap();
            assert!(last.contains("none of the 4 entries of branch main is usable"), "{name}: {stderr}");
            assert!(last.contains("--accept") && !last.contains("--store"), "{name}: {stderr}");
            assert_eq!(stderr.lines().filter(|line| line.contains(": skipped: ") && line.contains(why)).count(), 4);
            assert_eq!(files(&store), before, "{name}");
        }
        // Readable entries belong to their own branch, so other branches are not affected.
        if name != "entries" {
            assert_eq!(run_check(&d, &["slow.pb", "--store", "--branch", "release"]).0, 0, "{name}");
        }
        // `--accept` starts again: it replaces the entries that are known to be of this branch.
        let (code, json) = run_check(&d, &["slow.pb", "--accept", "--commit", "new"]);
        assert_eq!(code, 0, "{name}: {json}");
        assert!(json["warnings"].to_string().contains("1 stored"), "{name}: {json}");
        let left = files(&store).iter().filter(|file| before.contains(*file)).count();
        assert_eq!(left, if name == "entries" { 8 } else { 0 }, "{name}");
        let (code, json) = run_check(&d, &["slow.pb"]);
        assert_eq!((code, json["base"]["paths"].to_string()), (0, r#"["main@new"]"#.to_owned()), "{name}");
    }
}

/// The first profile of a branch is checked and reported like all others.
#[test]
fn the_first_stored_profile_is_checked() {
    let d = Dir::new("baseline-first");
    d.write("new.pb", program(1, 0));
    d.write("empty.pb", sampled(&[]));
    let store = ["--baseline", "store", "--store", "--report", "r.json"];
    for (file, rule) in [("new.pb", "wall:total>+10%"), ("empty.pb", "total>+10%"), ("missing.pb", "total>+10%")] {
        let out = d.run_with_chance(&[&store[..], &[file, "--fail-on", rule]].concat());
        assert_eq!(out.status.code(), Some(2), "{file} {rule}");
        assert!(!d.0.join("store").exists() && !d.0.join("r.json").exists());
    }
    let out = d.run_with_chance(&[&store[..], &["new.pb"], &RULE].concat());
    assert_eq!(out.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&std::fs::read(d.0.join("r.json")).unwrap()).unwrap();
    assert_eq!(report["verdict"], "pass");
    assert!(report["warnings"][0].as_str().unwrap().contains("; 1 stored"), "{report}");
    assert_eq!(files(&d.0.join("store")).len(), 2);
}
