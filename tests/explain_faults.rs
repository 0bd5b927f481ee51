//! `explain` on programs with known faults (tests/producers/faults, recorded in tests/corpus/faults): each row of
//! truth.json says what is the matter, and so what the answer to one pair of runs must be, and to three runs a side.
//! Where the answer is wrong, the row says so, and how; the test fails as well when such an answer gets better, for its
//! row to be corrected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::explain::{ExplainOptions, Explanation, Verdict};
use pprofdiff::{Diff, LoadOptions, Profile, Query};
use serde::Deserialize;

/// What is known of a fault, and of what samples of it can show.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    program: String,
    /// Which runs are the new side.
    fault: String,
    /// Which profile of theirs.
    profile: String,
    family: String,
    /// The function that is to blame first, then those that have nearly the same stacks.
    #[serde(default)]
    functions: Vec<String>,
    caller: Option<String>,
    kind: Option<String>,
    label: Option<(String, String)>,
    /// The change as a part of the base's total.
    share: Option<f64>,
    /// The parts of count and cost.
    split: Option<(f64, f64)>,
    /// Whose cost it was, and whose it is now.
    moved: Option<(String, String)>,
    /// How much work the new side did.
    #[serde(default = "one")]
    scale: f64,
    /// Readings that need not show it: less than five standard deviations of sampling and of the noise between runs.
    #[serde(default)]
    inconclusive: Vec<String>,
    /// Readings whose answer is wrong, and how.
    #[serde(default)]
    wrong: BTreeMap<String, String>,
    /// Readings that have other causes besides the right one, and which.
    #[serde(default)]
    beside: BTreeMap<String, String>,
}

fn one() -> f64 {
    1.0
}

/// Run 1 of one build against run 1 of another, and so on; and three runs against three.
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

    fn explained(&self, runs: &[usize]) -> Explanation {
        let open = |build: &str| -> Vec<Arc<Profile>> {
            let files = runs.iter().map(|&run| folder().join(self.file(build, run)));
            files.map(|f| Arc::new(Profile::open(f, &LoadOptions::default()).unwrap())).collect()
        };
        let diff = Diff::new(&open("base"), &open(&self.fault)).unwrap();
        let mut query = Query::default();
        query.sample_type = diff.sample_types().iter().map(|(name, _)| name.clone()).find(|name| name == "alloc_space");
        diff.explain(&query, &[], &ExplainOptions::default()).unwrap()
    }

    /// What is wrong with an answer.
    fn faults_of(&self, reading: &str, e: &Explanation) -> Vec<String> {
        if e.verdict == Verdict::Inconclusive && self.inconclusive.iter().any(|r| r == reading) {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        let mut check = |right: bool, what: String| wrong.extend((!right).then_some(what));
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
        // Of 300 to 1,000 samples, a change of a tenth is known to a quarter of it or so.
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
            let e = case.explained(runs);
            let mut compare = |found: String, known: Option<&String>, of: &str| {
                if found.is_empty() != known.is_none() {
                    let known = known.map_or("which is right", |k| k);
                    surprises.push(format!("{} {reading}: {of} {found:?}, was: {known}", case.name()));
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

/// Each kind of fault is there, each profile is used, and there is no more of them than a repository should have.
#[test]
fn the_set_is_whole() {
    let cases = cases();
    let families: BTreeSet<&str> = cases.iter().map(|c| c.family.as_str()).collect();
    let wanted = ["added", "calls", "equal", "label", "lock", "moved", "removed", "scale", "self", "split"];
    assert_eq!(families, BTreeSet::from(wanted));
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
