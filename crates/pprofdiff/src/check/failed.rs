//! The growth of a failed rule's subjects, which decides whether a change elsewhere concerns the rule.

use pprofdiff_profile::random::{HashMap, HashSet};

use super::rule::{CheckRule, Subject};
use super::{Outcome, RuleCheck};
use crate::diff::top::{COMMON_GROUP, MAX_GROUPS};
use crate::runs::MeasuredRuns;

/// The minimum part of a subject's growth that the stacks of a cause must contribute. A cause below it barely concerns
/// the subject.
const MIN_PART: f64 = 0.05;

/// The subjects of a failed rule, with their growth.
#[doc(hidden)]
#[derive(Debug)]
pub struct FailedRule<'r> {
    runs: &'r MeasuredRuns,
    /// The largest growth of a failed subject; 0 if none grew.
    growth: f64,
    /// By frame: true if it is a subject of the rule that failed.
    in_rule: Vec<bool>,
}

impl<'r> FailedRule<'r> {
    pub(super) fn new<C>(rule: &CheckRule, result: &RuleCheck<C>, runs: &'r MeasuredRuns) -> FailedRule<'r> {
        let failed = result.findings.iter().filter(|f| f.outcome == Outcome::Fail);
        let growth = failed.clone().map(|f| f.delta.to_f64()).fold(0.0, f64::max);
        let names: HashSet<&str> = failed.filter_map(|f| f.frame.as_deref()).collect();
        let label = |f| runs.frames().label(f);
        let is_in_rule = |f| match &rule.subject {
            Subject::Whole => true,
            Subject::Together(re) => re.is_match(label(f).as_bytes()),
            Subject::Each(_) => names.contains(label(f).as_str()),
        };
        FailedRule { runs, growth, in_rule: (0..runs.frames().len() as u32).map(is_in_rule).collect() }
    }

    /// Returns true if a failed subject grew. A limit below 0 also fails for a subject that fell too little.
    pub fn has_grown(&self) -> bool {
        self.growth != 0.0
    }

    /// Returns, for each list of functions, true if the stacks that contain both the rule's subjects and one of these
    /// functions contribute to the growth. Reads the samples once for up to [`MAX_GROUPS`] lists.
    pub fn grew_with(&self, lists: &[Vec<&str>]) -> Vec<bool> {
        let frames = self.runs.frames();
        let mut shared = Vec::with_capacity(lists.len());
        for lists in lists.chunks(MAX_GROUPS) {
            let mut lists_of: HashMap<&str, u64> = HashMap::default();
            for (functions, list) in lists.iter().zip(0..) {
                functions.iter().for_each(|function| *lists_of.entry(function).or_default() |= 1 << list);
            }
            let bits_of = |(f, is_in_rule): (u32, &bool)| {
                let lists = lists_of.get(frames.label(f).as_str()).copied().unwrap_or(0);
                lists | if *is_in_rule { COMMON_GROUP } else { 0 }
            };
            let bits: Vec<u64> = (0..).zip(&self.in_rule).map(bits_of).collect();
            shared.extend(self.runs.shared_growth(&bits, lists.len()));
        }
        shared.into_iter().map(|shared| shared > MIN_PART * self.growth).collect()
    }
}
