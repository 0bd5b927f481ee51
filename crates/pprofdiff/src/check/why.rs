//! Why a rule fails: of the causes of a difference those that made grow what the rule found.

use std::sync::Arc;

use pprofdiff_profile::random::HashSet;

use super::rule::{Rule, Subject};
use super::{Outcome, RuleCheck};
use crate::diff::Sort;
use crate::explain::{Cause, Explanation};
use crate::runs::MeasuredRuns;

/// A cause concerns what was found if its stacks made this part of its growth: less, and another name would be a better one.
const LEAST_PART: f64 = 0.05;

/// The explanation with the causes that concern the rule; `None` without one. A limit is exceeded by what grew, so what costs
/// less is no cause; nor is anything where what was found fell, by less than it should have.
pub(super) fn explain_rule(
    rule: &Rule,
    found: &RuleCheck,
    all: &Explanation,
    runs: &MeasuredRuns,
) -> Option<Arc<Explanation>> {
    let failed = found.findings.iter().filter(|f| f.outcome == Outcome::Fail);
    let growth = failed.clone().map(|f| f.delta.to_f64()).fold(0.0, f64::max);
    let names: HashSet<&str> = failed.filter_map(|f| f.frame.as_deref()).collect();
    let label = |f| runs.frames().label(f);
    let of_rule = |f| match &rule.subject {
        Subject::Whole => true,
        Subject::Together(re) => re.is_match(label(f).as_bytes()),
        Subject::Each(_) => names.contains(label(f).as_str()),
    };
    let frames = 0..runs.frames().len() as u32;
    let of_rule: Vec<bool> = frames.clone().map(of_rule).collect();
    let grew_by = |chosen: &[bool]| {
        let [base, new] = runs.of_any(chosen, Sort::Cum);
        new.mean() - base.mean()
    };
    let concerns = |cause: &Cause| {
        if cause.delta <= 0.0 || growth == 0.0 {
            return false;
        }
        // Without a function it is of all that has a label.
        let Some(_) = cause.function else { return true };
        let functions: HashSet<&str> = cause.evidence.functions.iter().map(String::as_str).collect();
        let own: Vec<bool> = frames.clone().map(|f| functions.contains(label(f).as_str())).collect();
        let either: Vec<bool> = own.iter().zip(&of_rule).map(|(a, b)| *a || *b).collect();
        // The stacks that hold both.
        let shared = grew_by(&own) + grew_by(&of_rule) - grew_by(&either);
        shared > LEAST_PART * growth
    };
    let causes: Vec<Cause> = all.causes.iter().filter(|cause| concerns(cause)).cloned().collect();
    (!causes.is_empty()).then(|| Explanation { causes, ..all.clone() }.into())
}
