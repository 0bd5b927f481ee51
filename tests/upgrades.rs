//! Tests of `explain` on real upgrades of libraries, on a program in four steps, and on changes of locks
//! (tests/producers/upgrades, recorded in tests/corpus/upgrades). Each row of truth.json gives the true cause,
//! determined from tables and sources, and thus the expected answer for all runs of both sides. Rows with a wrong
//! answer say so and describe the error. The test also fails if such an answer improves, so that its row can be
//! corrected.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::{Diff, LoadOptions, Profile, Query};
use pprofdiff_explain::{ExplainOptions, Explanation};
use pprofdiff_report::{Registry, Report};
use serde::Deserialize;

/// The truth about a pair, as far as one kind of its profiles shows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Files `PAIR.a1` to `PAIR.b3`. For a program in steps, the first of two.
    pair: String,
    kind: String,
    #[serde(default = "change")]
    verdict: String,
    /// Accepted functions of the first cause. Includes callers and callees if the change is visible there as well.
    #[serde(default)]
    functions: Vec<String>,
    /// The change of the first function as a fraction of the base's total.
    share: Option<f64>,
    /// The sign of the change, for callees that each have only a part of it.
    sign: Option<f64>,
    /// The amount of work of the new side, relative to the base.
    #[serde(default = "one")]
    scale: f64,
    lock: Option<Lock>,
    /// For counted waits: the minimum and maximum factor of their number, and of their duration.
    split: Option<[(f64, f64); 2]>,
    /// Texts that the answer must contain.
    #[serde(default)]
    says: Vec<String>,
    /// A description of the error in the answer.
    wrong: Option<String>,
}

/// The kind of change of a lock.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Lock {
    Held,
    Often,
    Two,
}

impl Lock {
    /// Returns the texts for the other kinds of changes.
    fn others(&self) -> [&str; 2] {
        match self {
            Lock::Held => ["waits are more frequent.", "the lock is held for less time"],
            Lock::Often => ["the lock is held longer", "waits are less frequent."],
            Lock::Two => ["waits are less frequent.", "the lock is held for less time."],
        }
    }
}

fn change() -> String {
    "change".to_owned()
}

fn one() -> f64 {
    1.0
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/upgrades")
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&std::fs::read(folder().join("truth.json")).unwrap()).unwrap()
}

/// Returns the names of the recordings.
fn recordings() -> BTreeSet<String> {
    let names = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "truth.json").collect()
}

impl Case {
    fn name(&self) -> String {
        format!("{} {}", self.pair, self.kind)
    }

    /// Returns the files of each side.
    fn files(&self, all: &BTreeSet<String>) -> [Vec<String>; 2] {
        let begins = match self.pair.strip_prefix("loops").map(|step| step.parse::<u32>().unwrap()) {
            Some(step) => [format!("loops{step}."), format!("loops{}.", step + 1)],
            None => ["a", "b"].map(|side| format!("{}.{side}", self.pair)),
        };
        let is = |name: &str, begin: &str| {
            let run = name.strip_prefix(begin).and_then(|rest| rest.split_once('.'));
            run.is_some_and(|(_, rest)| rest.split('.').next() == Some(&self.kind))
        };
        begins.map(|begin| all.iter().filter(|name| is(name, &begin)).cloned().collect())
    }

    fn explain(&self, all: &BTreeSet<String>) -> Explanation {
        let open = |names: Vec<String>| -> Vec<Arc<Profile>> {
            let files = names.iter().map(|name| folder().join(name));
            files.map(|f| Arc::new(pprofdiff::open(f, &LoadOptions::default()).unwrap())).collect()
        };
        let [base, new] = self.files(all).map(open);
        let query = Query::default();
        let query = if self.kind == "heap" { query.with_sample_type("alloc_space") } else { query };
        pprofdiff_explain::explain(&Diff::new(&base, &new).unwrap(), &query, &[], &ExplainOptions::default()).unwrap()
    }

    /// Returns the errors of an answer.
    fn faults_of(&self, e: &Explanation) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |right: bool, message: String| wrong.extend((!right).then_some(message));
        check(e.verdict.name() == self.verdict, e.verdict.name().to_owned());
        check((e.scale.factor / self.scale - 1.0).abs() < 0.1, format!("scale {:.2}", e.scale.factor));
        let text = without_places(&words(e));
        for phrase in &self.says {
            check(text.contains(&format!("{phrase}:")), format!("{phrase:?} is not in {text}"));
        }
        for phrase in self.lock.iter().flat_map(Lock::others) {
            check(!text.contains(phrase), format!("it says: {phrase}"));
        }
        let Some(cause) = e.causes.first().filter(|_| self.verdict == "change") else { return wrong };
        let is_known = cause.function.as_ref().is_some_and(|f| self.functions.contains(f));
        check(is_known, format!("{} {:?} of {:?}", cause.kind.name(), cause.function, cause.caller));
        let sign = self.sign.or(self.share).unwrap();
        check(cause.delta * sign > 0.0, format!("{:+e}", cause.delta));
        // The share of callers and callees may be larger or smaller.
        let near = self.share.is_none_or(|share| (0.5..2.0).contains(&(cause.share / share)));
        check(near, format!("share {:+.3}", cause.share));
        if let Some([count, unit]) = self.split {
            let within = |(least, greatest): (f64, f64), factor: f64| (least..=greatest).contains(&factor);
            let is_near = cause.split.is_some_and(|s| within(count, s.count_factor) && within(unit, s.unit_factor));
            check(is_near, format!("split {:?}", cause.split));
        }
        wrong
    }
}

/// Returns a text without source lines such as ` (loops.go:212)`: they are not a part of the recorded truth.
fn without_places(text: &str) -> String {
    regex::Regex::new(r" \([^() ]+:\d+\)").unwrap().replace_all(text, "").into_owned()
}

/// Returns the answer as text.
fn words(e: &Explanation) -> String {
    let (report, mut text) = (Report::Explain(Box::new(e.clone())), Vec::new());
    Registry::standard().format("text").unwrap().write(&report, &mut text, Default::default()).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn causes_of_upgrades_are_named() {
    let (all, mut surprises, mut right) = (recordings(), Vec::new(), 0);
    let cases = cases();
    for case in &cases {
        let faults = case.faults_of(&case.explain(&all));
        right += usize::from(faults.is_empty());
        if faults.is_empty() != case.wrong.is_none() {
            let previous = case.wrong.as_deref().unwrap_or("which is right");
            surprises.push(format!("{}: {}, was: {previous}", case.name(), faults.join(", ")));
        }
    }
    println!("{right} of {} are right", cases.len());
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

/// The right lock and the right kind of change, in three languages.
#[test]
fn most_lock_changes_are_explained_correctly() {
    let all = recordings();
    let locks: Vec<Case> = cases().into_iter().filter(|case| case.lock.is_some()).collect();
    let languages: BTreeSet<&str> = locks.iter().map(|case| case.pair.split('-').next().unwrap()).collect();
    assert_eq!(languages, BTreeSet::from(["cpp", "go", "java"]));
    let wrong: Vec<String> = locks
        .iter()
        .map(|case| (case, case.faults_of(&case.explain(&all))))
        .filter(|(_, faults)| !faults.is_empty())
        .map(|(case, faults)| format!("{}: {}", case.name(), faults.join(", ")))
        .collect();
    println!("{} of {} locks are right", locks.len() - wrong.len(), locks.len());
    assert!(wrong.len() * 5 <= locks.len(), "{} of {}:\n{}", wrong.len(), locks.len(), wrong.join("\n"));
}

/// Each recording belongs to a row, and each row has all runs of both sides.
#[test]
fn every_upgrade_recording_has_a_row_in_truth_json() {
    let (all, mut used) = (recordings(), BTreeSet::new());
    for case in cases() {
        let runs = if case.pair.starts_with("loops") { 2 } else { 3 };
        for files in case.files(&all) {
            assert_eq!(files.len(), runs, "{}: {files:?}", case.name());
            used.extend(files);
        }
        assert_eq!(case.functions.is_empty(), case.verdict == "none", "{}", case.name());
        let is_pair = case.lock.is_some() == case.pair.contains('-');
        let is_counted = case.split.is_some() == (case.lock.is_some() && case.kind != "wait");
        assert!(is_pair && is_counted, "{}", case.name());
    }
    let unused: Vec<&String> = all.difference(&used).collect();
    assert!(unused.is_empty(), "{unused:?} are in no row");
}
