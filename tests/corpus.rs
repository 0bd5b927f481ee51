//! Checks that the corpus of real profiles has the features that other tests rely on.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::oracle;
use oracle::{decode, pairs, raw_pair, string};
use pprofdiff::{Diff, LoadOptions, Query, Sort, Status};

#[test]
fn every_feature_occurs_in_a_real_profile() {
    let mut features: BTreeSet<&str> = BTreeSet::new();
    for name in pairs() {
        let raw = raw_pair(&name);
        for bytes in &raw {
            let p = decode(bytes);
            let mut see = |feature, seen: bool| {
                if seen {
                    features.insert(feature);
                }
            };
            see("inlining", p.location.iter().any(|l| l.line.len() > 1));
            let recurs = |ids: &[u64]| ids.iter().collect::<BTreeSet<_>>().len() < ids.len();
            see("recursion", p.sample.iter().any(|s| recurs(&s.location_id)));
            see("string labels", p.sample.iter().any(|s| s.label.iter().any(|l| l.str != 0)));
            see("numeric labels", p.sample.iter().any(|s| s.label.iter().any(|l| l.num != 0)));
            see("several sample types", p.sample_type.len() > 1);
            see("four sample types", p.sample_type.len() == 4);
            see("no symbols", p.location.iter().all(|l| l.line.is_empty()));
            see("no addresses", p.location.iter().all(|l| l.address == 0));
            see("drop_frames", p.drop_frames != 0);
            see("a default sample type", p.default_sample_type != 0);
            see("duration", p.duration_nanos != 0);
            see("columns", p.location.iter().any(|l| l.line.iter().any(|l| l.column != 0)));
            see("a unit that pprof does not know", p.sample_type.iter().any(|t| string(&p, t.unit) == "count"));
        }
        let load = |b: &[u8]| Arc::new(pprofdiff::from_bytes(&name, b, &LoadOptions::default()).unwrap());
        let diff = Diff::new(&[load(&raw[0])], &[load(&raw[1])]).unwrap();
        for (kind, _) in diff.sample_types() {
            let top = diff.measure(&Query::default().with_sample_type(kind)).unwrap().top(Sort::Cum);
            for row in &top.rows {
                match (row.status, row.cum.delta()) {
                    (Status::Added, _) => features.insert("added frames"),
                    (Status::Removed, _) => features.insert("removed frames"),
                    (_, delta) if delta > 0 => features.insert("growth"),
                    (_, delta) if delta < 0 => features.insert("shrinkage"),
                    _ => features.insert("frames that stay the same"),
                };
            }
        }
    }
    let expected_features = [
        "inlining",
        "recursion",
        "string labels",
        "numeric labels",
        "several sample types",
        "four sample types",
        "no symbols",
        "no addresses",
        "drop_frames",
        "a default sample type",
        "duration",
        "columns",
        "a unit that pprof does not know",
        "added frames",
        "removed frames",
        "growth",
        "shrinkage",
        "frames that stay the same",
    ];
    let missing: Vec<_> = expected_features.iter().filter(|w| !features.contains(*w)).collect();
    assert!(missing.is_empty(), "no profile of the corpus has {missing:?}");
}

#[test]
fn the_story_has_a_slow_function_that_was_not_edited() {
    let [base, new] =
        raw_pair("story-cpu").map(|b| Arc::new(pprofdiff::from_bytes("story", &b, &LoadOptions::default()).unwrap()));
    let top = Diff::new(&[base], &[new]).unwrap().measure(&Query::default()).unwrap().top(Sort::Cum);
    let row = |name: &str| *top.rows.iter().find(|r| top.frames.name(r.frame) == name).unwrap();
    let slow = row("logmill/headers.tableInsensitive");
    assert!(slow.cum.new > 3 * slow.cum.base, "the function that was not edited became slow");
    assert!(slow.flat.delta() <= 0, "but not by what it does itself");
    assert_eq!(row("logmill/names.canonical").status, Status::Added);
    assert_eq!(row("logmill/accesslog.cleanName").status, Status::Removed);
}

#[test]
fn the_readme_describes_every_profile() {
    let readme = std::fs::read_to_string(oracle::corpus().join("README.md")).unwrap();
    for name in pairs() {
        assert!(readme.contains(&name), "tests/corpus/README.md does not speak of {name}");
    }
}

/// The upgrades are recorded as runs of two sides, or of a step, which views can read. The README of their programs
/// explains each pair.
#[test]
fn every_upgrade_is_recorded_in_runs_and_explained() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(crate_folder.join("../../tests/producers/upgrades/README.md")).unwrap();
    let mut runs: BTreeMap<(String, String), usize> = BTreeMap::new();
    for file in std::fs::read_dir(oracle::corpus().join("upgrades")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "truth.json" {
            continue;
        }
        let [pair, run, kind] = name.splitn(3, '.').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let side = run.trim_end_matches(|c: char| c.is_ascii_digit());
        *runs.entry((format!("{pair} {side}"), kind.to_owned())).or_default() += 1;
        let family = pair.split_once('-').map_or(format!("`{pair}`"), |(language, _)| format!("`{language}-*`"));
        assert!(readme.contains(&family) || pair.starts_with("loops"), "{name} is not explained");
        let profile = Arc::new(pprofdiff::open(&path, &LoadOptions::default()).unwrap());
        let diff = Diff::of_profile(&profile).unwrap();
        // Uses allocations for heaps, because the memory in use may be zero at the end of a run.
        let query = Query::default();
        let query = if kind.starts_with("heap") { query.with_sample_type("alloc_space") } else { query };
        let top = diff.measure(&query).unwrap().top(Sort::Cum);
        let frames = top.rows.iter().filter(|row| row.cum.new > 0).count();
        assert!(frames > 10, "{name} holds {frames} functions");
    }
    assert!(runs.len() > 40, "{runs:?}");
    for ((side, kind), n) in runs {
        assert_eq!(n, if side.starts_with("loops") { 2 } else { 3 }, "{side} {kind}");
    }
}
