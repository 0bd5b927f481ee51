//! Selects the causes that explain a failed rule: the changes that made the failed subjects grow.

use std::sync::Arc;

use pprofdiff_profile::random::HashSet;

use super::rule::{CheckRule, Subject};
use super::{Outcome, RuleCheck};
use crate::diff::Sort;
use crate::explain::{Cause, Explanation};
use crate::runs::MeasuredRuns;

/// The minimum part of a subject's growth that the stacks of a cause must contribute. A cause below it barely concerns
/// the subject.
const MIN_PART: f64 = 0.05;

/// Returns the explanation, reduced to the causes that concern the rule, or `None` without such a cause. Only growth
/// can exceed a limit, so a cause that reduces cost is dropped. No cause concerns a subject that fell, even if it fell
/// by less than a limit below 0 demands.
pub(super) fn explain_rule(
    rule: &CheckRule,
    result: &RuleCheck,
    all: &Explanation,
    runs: &MeasuredRuns,
) -> Option<Arc<Explanation>> {
    let failed = result.findings.iter().filter(|f| f.outcome == Outcome::Fail);
    let growth = failed.clone().map(|f| f.delta.to_f64()).fold(0.0, f64::max);
    let names: HashSet<&str> = failed.filter_map(|f| f.frame.as_deref()).collect();
    let label = |f| runs.frames().label(f);
    let is_in_rule = |f| match &rule.subject {
        Subject::Whole => true,
        Subject::Together(re) => re.is_match(label(f).as_bytes()),
        Subject::Each(_) => names.contains(label(f).as_str()),
    };
    let frames = 0..runs.frames().len() as u32;
    let in_rule: Vec<bool> = frames.clone().map(is_in_rule).collect();
    let grew_by = |chosen: &[bool]| {
        let [base, new] = runs.of_any(chosen, Sort::Cum);
        new.mean() - base.mean()
    };
    let concerns = |cause: &Cause| {
        if cause.delta <= 0.0 || growth == 0.0 {
            return false;
        }
        // A cause without a function concerns all samples with a label.
        let Some(_) = cause.function else { return true };
        let functions: HashSet<&str> = cause.evidence.functions.iter().map(String::as_str).collect();
        let in_cause: Vec<bool> = frames.clone().map(|f| functions.contains(label(f).as_str())).collect();
        let either: Vec<bool> = in_cause.iter().zip(&in_rule).map(|(a, b)| *a || *b).collect();
        // The growth of the stacks that contain frames of both the cause and the rule.
        let shared = grew_by(&in_cause) + grew_by(&in_rule) - grew_by(&either);
        shared > MIN_PART * growth
    };
    let causes: Vec<Cause> = all.causes.iter().filter(|cause| concerns(cause)).cloned().collect();
    (!causes.is_empty()).then(|| Explanation { causes, ..all.clone() }.into())
}
