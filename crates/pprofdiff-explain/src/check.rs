//! Adds causes to a check: the changes that made the subjects of failed rules grow.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Cause, ExplainOptions, Explanation, MoveKind, Moved, ScaleRule, explain, moves};
use pprofdiff::check::{Check, FailedRule, Finding, Outcome, RuleCheck, Rules, RunsOfCheck};
use pprofdiff::shared::{ALLOCATED, is_level};
use pprofdiff::{Diff, Matching, Normalize, Query, Result};

/// A check whose failed rules have their causes.
pub type ExplainedCheck = Check<Explanation>;

/// A rule of an [`ExplainedCheck`].
pub type ExplainedRule = RuleCheck<Explanation>;

/// Applies all rules to the selection that a query makes of a diff, and explains the failed rules. Each profile of the
/// diff is one run. With [`CheckPolicy::explain`](pprofdiff::check::CheckPolicy::explain), a sample type without a failed
/// rule explains the difference between the sides at its first rule.
///
/// The query's sample type applies to rules without one, and takes precedence over the sample type of the
/// configuration. The query's normalization scales each run of the new side: separately to the median of the base's
/// totals or durations, or all of them by the given factor. Sums are exact until then, and are rounded once to whole
/// units. The rules apply to the rounded values.
///
/// # Errors
/// Returns an error for:
/// - an empty list of rules, a diff of a single profile, or an invalid query;
/// - paired runs with different numbers of runs per side, or with one profile several times on a side;
/// - a sample type that does not exist, or whose total is 0 in at least half of the new profiles, unless its values are
///   complete counts;
/// - numbers of samples (unit `count`) that were taken at different rates on the two sides, without a normalization by
///   totals or by a factor;
/// - a limit whose unit does not convert to the unit of the values, or a limit without a unit if the values have one;
/// - a normalization by zero, or to values that no longer fit.
pub fn check(rules: &Rules, options: &ExplainOptions, diff: &Diff, query: &Query) -> Result<ExplainedCheck> {
    let RunsOfCheck { mut check, types } = rules.check_runs(diff, query, &moves)?;
    let mut causes: Vec<Option<Arc<Explanation>>> = vec![None; check.rules.len()];
    for checked in types {
        if !checked.has_failed && !rules.policy.explain {
            continue;
        }
        let of_type = query.clone().with_normalize(Normalize::None).with_sample_type(&checked.sample_type);
        // Explanations support only some granularities. For the others, the check skips the explanation and does not
        // fail.
        let Ok(all) = explain(diff, &of_type, &[], options) else { continue };
        let (sample_type, has_failed) = (checked.sample_type.clone(), checked.has_failed);
        if query.matching != Matching::Moved
            && let Some(hint) = renamed_hint(&check, &all, &sample_type)
        {
            Arc::make_mut(&mut check.summary).warnings.push(hint);
        }
        let runs = checked.runs(diff, query, &moves)?;
        if has_failed {
            let mut allocations = None;
            for (number, failed) in rules.failed_rules(&check, &runs) {
                causes[number] = concerning(&all, &failed);
                // Memory in use is compared without noise of its own, so its causes may be unknown. Functions that now
                // allocate more, and whose memory in use grew, explain it.
                if causes[number].is_none() && is_level(&sample_type) {
                    let explained = || explained_allocations(diff, query, options);
                    let allocations = allocations.get_or_insert_with(explained).as_ref();
                    causes[number] = allocations.and_then(|allocations| concerning(allocations, &failed));
                }
                // More work explains growth, but not a larger part of a total.
                let is_scaled = !matches!(query.normalize, Normalize::None);
                if causes[number].is_none() && !is_scaled && shows_only_more_work(&all) && failed.has_grown() {
                    causes[number] = Some(all.clone().into());
                }
            }
        } else if let Some(first) = check.rules.iter().position(|rule| rule.sample_type == sample_type) {
            causes[first] = Some(all.into());
        }
    }
    Ok(check.with_causes(causes))
}

/// Returns true if the new side did more work, and nothing else changed.
fn shows_only_more_work(all: &Explanation) -> bool {
    all.causes.is_empty() && all.scale.rule == ScaleRule::Agree && all.scale.factor > 1.0
}

/// Explains the allocations, if the profiles record them.
fn explained_allocations(diff: &Diff, query: &Query, options: &ExplainOptions) -> Option<Explanation> {
    diff.sample_types().iter().find(|(kind, _)| kind == ALLOCATED)?;
    let of_type = query.clone().with_normalize(Normalize::None).with_sample_type(ALLOCATED);
    let explained = explain(diff, &of_type, &[], options).ok()?;
    Some(Explanation { sample_type: Some(ALLOCATED.to_owned()), ..explained })
}

/// Returns a hint if functions fail because the new side has them under another name, or because their cost was a part of
/// another function. They cannot be compared under their own names.
fn renamed_hint(check: &Check, all: &Explanation, sample_type: &str) -> Option<String> {
    let rules = check.rules.iter().filter(|rule| rule.sample_type == sample_type);
    let is_new = |finding: &&Finding| finding.outcome == Outcome::Fail && finding.base.max == 0;
    let failed: BTreeSet<&str> = rules
        .flat_map(|rule| rule.findings.iter().filter(is_new).filter_map(|finding| finding.frame.as_deref()))
        .collect();
    let is_failed = |moved: &&Moved| {
        matches!(moved.how, MoveKind::Renamed | MoveKind::Outlined) && failed.contains(moved.function.as_str())
    };
    let mut renamed = all.moved.iter().filter(is_failed);
    let first = renamed.next()?;
    let more = match renamed.count() {
        0 => String::new(),
        1 => " (and 1 more function)".to_owned(),
        n => format!(" (and {n} more functions)"),
    };
    let what = match first.how {
        MoveKind::Outlined => format!("its cost probably was a part of {} in the base", first.from),
        _ => format!("it probably is {} of the base under another name", first.from),
    };
    Some(format!(
        "{} fails as a new function, but {what}{more}; pass --match moved to compare such functions",
        first.function
    ))
}

/// Returns the explanation, reduced to the causes that concern the rule, or `None` without such a cause. Only growth
/// can exceed a limit, so a cause that reduces cost is dropped. No cause concerns a subject that fell, even if it fell
/// by less than a limit below 0 demands.
fn concerning(all: &Explanation, failed: &FailedRule<'_>) -> Option<Arc<Explanation>> {
    let grown: Vec<&Cause> = all.causes.iter().filter(|cause| cause.delta > 0.0 && failed.has_grown()).collect();
    let functions: Vec<Vec<&str>> =
        grown.iter().map(|cause| cause.evidence.functions.iter().map(String::as_str).collect()).collect();
    // Reads the samples once for all causes.
    let grew_with = failed.grew_with(&functions);
    // A cause without a function concerns all samples with a label.
    let concerns = |(cause, grew_with): &(&Cause, bool)| *grew_with || cause.function.is_none();
    let causes: Vec<Cause> =
        grown.into_iter().zip(grew_with).filter(concerns).map(|(cause, _)| cause.clone()).collect();
    (!causes.is_empty()).then(|| Explanation { causes, ..all.clone() }.into())
}
