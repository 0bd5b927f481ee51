//! Tests of `explain` on programs with known faults (tests/producers/faults, recorded in tests/corpus/faults). Each row
//! of truth.json gives the true cause, and thus the expected answer for single pairs of runs and for three runs per
//! side. Rows with a wrong answer say so and describe the error. The test also fails if such an answer improves, so
//! that its row can be corrected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::{Diff, LoadOptions, Profile, Query};
use pprofdiff_explain::{ExplainOptions, Explanation, Verdict};
use serde::Deserialize;

/// The truth about a fault, as far as samples can show it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    program: String,
    /// The name of the runs on the new side.
    fault: String,
    /// The kind of profile.
    profile: String,
    family: String,
    /// The function with the fault first, then functions with nearly the same stacks.
    #[serde(default)]
    functions: Vec<String>,
    caller: Option<String>,
    kind: Option<String>,
    label: Option<(String, String)>,
    /// The change as a fraction of the base's total.
    share: Option<f64>,
    /// The shares of count and cost.
    split: Option<(f64, f64)>,
    /// The function that had the cost before, and the function that has it now.
    moved: Option<(String, String)>,
    /// The amount of work of the new side, relative to the base.
    #[serde(default = "one")]
    scale: f64,
    /// Readings that may be inconclusive: the change is less than five standard deviations of sampling and of the noise
    /// between runs.
    #[serde(default)]
    inconclusive: Vec<String>,
    /// Readings with a wrong answer, each with a description of the error.
    #[serde(default)]
    wrong: BTreeMap<String, String>,
    /// Readings with more causes than the right one, each with these causes.
    #[serde(default)]
    beside: BTreeMap<String, String>,
}

fn one() -> f64 {
    1.0
}

/// Pairs of runs with the same number, and three runs against three.
const READINGS: [(&str, &[usize]); 4] = [("1", &[1]), ("2", &[2]), ("3", &[3]), ("runs", &[1, 2, 3])];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/faults")
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&std::fs::read(folder().join("truth.json")).unwrap()).unwrap()
}

impl Case {
    fn name(&self) -> String {
        format!("{} {} {}", self.program, self.fault, self.profile)
    }

    fn file(&self, build: &str, run: usize) -> String {
        format!("{}/{build}-{run}.{}.pb.gz", self.program, self.profile)
    }

    fn explain(&self, runs: &[usize]) -> Explanation {
        let open = |build: &str| -> Vec<Arc<Profile>> {
            let files = runs.iter().map(|&run| folder().join(self.file(build, run)));
            files.map(|f| Arc::new(pprofdiff::open(f, &LoadOptions::default()).unwrap())).collect()
        };
        let diff = Diff::new(&open("base"), &open(&self.fault)).unwrap();
        let mut query = Query::default();
        query.sample_type = diff.sample_types().iter().map(|(name, _)| name.clone()).find(|name| name == "alloc_space");
        pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap()
    }

    /// Returns the errors of an answer.
    fn faults_of(&self, reading: &str, e: &Explanation) -> Vec<String> {
        if e.verdict == Verdict::Inconclusive && self.inconclusive.iter().any(|r| r == reading) {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        let mut check = |right: bool, message: String| wrong.extend((!right).then_some(message));
        let is_change = !self.functions.is_empty() || self.label.is_some();
        let expected = if is_change { Verdict::Change } else { Verdict::None };
        check(e.verdict == expected, format!("{:?}", e.verdict));
        check((e.scale.factor / self.scale - 1.0).abs() < 0.1, format!("scale {:.2}", e.scale.factor));
        if let Some((from, to)) = &self.moved {
            check(e.moved.iter().any(|m| (&m.from, &m.function) == (from, to)), format!("moved: {:?}", e.moved));
        }
        let Some(cause) = e.causes.first().filter(|_| is_change) else { return wrong };
        let (function, kind) = (cause.function.as_deref(), serde_json::to_value(cause.kind).unwrap());
        let place = self.functions.iter().position(|f| Some(f.as_str()) == function);
        check(
            place.is_some() || self.functions.is_empty() && function.is_none(),
            format!("{kind} {} of {:?}", function.unwrap_or("everything"), cause.caller),
        );
        if place == Some(0) {
            check(self.kind.as_ref().is_none_or(|k| kind == k.as_str()), format!("{kind}"));
            check(self.caller.is_none() || self.caller == cause.caller, format!("called by {:?}", cause.caller));
        }
        let label = cause.label.as_ref().map(|l| (l.key.clone(), l.value.clone()));
        check(label == self.label, format!("label {label:?}"));
        // With 300 to 1,000 samples, a change of 10% can be measured to about a quarter of its size.
        let near = if reading == "runs" { 0.25 } else { 0.4 };
        check(
            self.share.is_none_or(|share| (cause.share / share - 1.0).abs() < near),
            format!("share {:+.3}", cause.share),
        );
        if let Some((count, unit)) = self.split {
            let close = cause.split.is_some_and(|s| (s.count - count).abs() < 0.1 && (s.unit - unit).abs() < 0.1);
            check(close, format!("split {:?}", cause.split));
        }
        wrong
    }
}

#[test]
fn known_faults_are_named_and_equal_builds_have_none() {
    let mut surprises = Vec::new();
    for case in cases() {
        for (reading, runs) in READINGS {
            let e = case.explain(runs);
            let mut compare = |faults: String, previous: Option<&String>, subject: &str| {
                if faults.is_empty() != previous.is_none() {
                    let previous = previous.map_or("which is right", |k| k);
                    surprises.push(format!("{} {reading}: {subject} {faults:?}, was: {previous}", case.name()));
                }
            };
            let wrong = case.faults_of(reading, &e);
            let others = e.causes.iter().skip(1).filter(|_| wrong.is_empty()).map(|c| format!("{:?}", c.function));
            compare(others.collect::<Vec<_>>().join(", "), case.beside.get(reading), "besides");
            compare(wrong.join(", "), case.wrong.get(reading), "wrong");
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

/// Every kind of fault occurs, every profile is used, and the files are small enough for a repository.
#[test]
fn the_set_of_faults_is_complete() {
    let cases = cases();
    let families: BTreeSet<&str> = cases.iter().map(|c| c.family.as_str()).collect();
    let expected_kinds = ["added", "calls", "equal", "label", "lock", "moved", "removed", "scale", "self", "split"];
    assert_eq!(families, BTreeSet::from(expected_kinds));
    let used: BTreeSet<PathBuf> = cases
        .iter()
        .flat_map(|c| ["base", &c.fault].into_iter().flat_map(move |b| [1, 2, 3].map(|run| c.file(b, run))))
        .map(|file| folder().join(file))
        .collect();
    let mut bytes = 0;
    for program in ["freight", "weather", "maptiles", "bakery"] {
        for entry in std::fs::read_dir(folder().join(program)).unwrap() {
            let path = entry.unwrap().path();
            assert!(used.contains(&path), "{} is in no case", path.display());
            bytes += path.metadata().unwrap().len();
        }
    }
    assert!(used.iter().all(|p| p.exists()) && bytes < 500_000, "{bytes} bytes");
}
