//! Findings about functions whose instructions are the same in both builds. Such a function may cost more only because
//! the linker placed it elsewhere, which the author of a change can't influence. It may also cost more because it is
//! called more often. Three conditions keep such regressions: the instructions of all direct callers must be the same, the
//! growth must be in the range of layout effects ([`MAX_GROWTH_BY_LAYOUT`]), and rules on cum and on the total never use
//! this exception.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::rule::{CheckRule, Limit, RuleCost, Subject};
use super::{Finding, Outcome, RuleCheck, Rules};
use crate::Result;
use crate::diff::edges::Relation;
use crate::diff::list::CodeChange;
use crate::diff::{Diff, Query, Sort};
use pprofdiff_profile::short_lists::sort_by_key;

/// The outcome of a limit on the growth of a function's flat cost that fails although the function's instructions are
/// the same in both builds. Applies only if the user named binaries for both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SameCode {
    /// The finding does not fail, and is a warning.
    #[default]
    Warn,
    /// The finding fails.
    Fail,
    /// The finding does not fail. Only JSON contains it.
    Ignore,
}

impl SameCode {
    /// All values, with the default first.
    pub const ALL: [SameCode; 3] = [SameCode::Warn, SameCode::Fail, SameCode::Ignore];

    /// Returns the name in options.
    pub fn name(self) -> &'static str {
        match self {
            SameCode::Warn => "warn",
            SameCode::Fail => "fail",
            SameCode::Ignore => "ignore",
        }
    }

    /// Returns the value with this name.
    pub fn named(name: &str) -> Option<SameCode> {
        SameCode::ALL.into_iter().find(|same_code| same_code.name() == name)
    }
}

/// The reason of findings that do not fail because the instructions are the same.
const REASON: &str = "its instructions are the same in both builds";

/// The largest growth in percent that layout alone may explain. Reports of layout effects are between 7 and 50 %.
const MAX_GROWTH_BY_LAYOUT: f64 = 50.0;

/// The maximum number of functions to name in warnings of a rule.
const MAX_WARNINGS: usize = 5;

impl Finding {
    /// Returns true if the finding does not fail because the function's instructions are the same.
    pub(super) fn is_same_code(&self) -> bool {
        self.outcome == Outcome::Allowed && self.code.as_ref().is_some_and(CodeChange::is_same)
    }

    /// Returns true if text does not show the finding, because of [`SameCode::Ignore`].
    pub fn is_ignored(&self) -> bool {
        self.is_same_code() && self.reason.is_none()
    }
}

impl CheckRule {
    /// Returns true if the rule limits the growth of each function's flat cost.
    fn can_ignore_same_code(&self) -> bool {
        let grows = matches!(self.limit, Limit::Growth(_) | Limit::Increase(..));
        self.cost == RuleCost::Flat && grows && matches!(self.subject, Subject::Each(_))
    }
}

impl Rules {
    fn same_code_outcome(&self) -> SameCode {
        self.policy.same_code.or(self.same_code).unwrap_or_default()
    }

    /// Compares the instructions of functions that fail a limit on the growth of their flat cost. According to
    /// [`SameCode`], functions with the same instructions do not fail. [`CheckPolicy::require_power`](super::CheckPolicy::require_power) turns this off,
    /// because it tests only rules that pass. Returns warnings for the user.
    pub(super) fn allow_same_code(&self, diff: &Diff, query: &Query, results: &mut [RuleCheck]) -> Result<Vec<String>> {
        if self.same_code_outcome() == SameCode::Fail || self.policy.require_power || !diff.has_named_binaries() {
            return Ok(Vec::new());
        }
        let mut warnings: Vec<String> = Vec::new();
        for (rule, result) in self.rules.iter().zip(results) {
            if rule.can_ignore_same_code() && result.outcome == Outcome::Fail {
                let new = self.allow_in_rule(diff, query, result)?;
                warnings.extend(new.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>());
            }
        }
        Ok(warnings)
    }

    /// Does the work of [`Rules::allow_same_code`] for one failed rule.
    fn allow_in_rule(&self, diff: &Diff, query: &Query, rule: &mut RuleCheck) -> Result<Vec<String>> {
        let is_failed = |finding: &&mut Finding| finding.outcome == Outcome::Fail;
        let mut failed: Vec<&mut Finding> = rule.findings.iter_mut().filter(is_failed).collect();
        let names: Vec<String> = failed.iter().filter_map(|finding| finding.frame.clone()).collect();
        let query = query.clone().with_sample_type(&rule.sample_type);
        let callers = callers(diff, &query, &names)?;
        let all_names: Vec<String> = names.iter().chain(callers.values().flatten()).cloned().collect();
        let Some(changes) = diff.named_code_changes(&query, &all_names)? else { return Ok(Vec::new()) };
        // A caller that only one build has is unknown, and may be a new caller.
        let is_doubtful = |name: &&String| !changes.by_name.get(*name).is_some_and(CodeChange::is_same);
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        for finding in &mut failed {
            let Some(frame) = &finding.frame else { continue };
            finding.code = changes.by_name.get(frame).cloned();
            if !finding.code.as_ref().is_some_and(CodeChange::is_same) {
                continue;
            }
            let doubtful = callers.get(frame).and_then(|callers| callers.iter().find(is_doubtful));
            let reason = match doubtful {
                Some(caller) => format!("but not those of its caller {caller}, so it may be called more often"),
                None if finding.percent.is_none_or(|percent| percent > MAX_GROWTH_BY_LAYOUT) => {
                    format!("but layout rarely explains more than +{MAX_GROWTH_BY_LAYOUT}%")
                }
                None => {
                    finding.outcome = Outcome::Allowed;
                    if self.same_code_outcome() == SameCode::Warn {
                        finding.reason = Some(REASON.to_owned());
                        allowed.push(describe(finding, &rule.rule));
                    }
                    continue;
                }
            };
            refused.push(format!("{frame} fails {}: {REASON}, {reason}", rule.rule));
        }
        // Findings are sorted by outcome first. The sort is stable, so the rest of the order remains.
        sort_by_key(&mut rule.findings, |finding| Reverse(finding.outcome));
        rule.outcome = rule.findings.iter().map(|finding| finding.outcome).max().unwrap_or(rule.outcome);
        let more = allowed.len().saturating_sub(MAX_WARNINGS);
        allowed.truncate(MAX_WARNINGS);
        allowed.extend((more > 0).then(|| format!("{more} more functions do not fail {}: {REASON}", rule.rule)));
        refused.truncate(MAX_WARNINGS);
        Ok(changes.warning.into_iter().chain(allowed).chain(refused).collect())
    }
}

/// Returns the direct callers of functions in the samples, by function.
fn callers(diff: &Diff, query: &Query, names: &[String]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let measure = diff.measure(query)?;
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut top = measure.top(Sort::Flat);
    top.rows.retain(|row| names.contains(&*measure.frames().label(row.frame)));
    let edges = measure.edges_of(top);
    let mut callers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for edge in edges.edges.iter().filter(|edge| edge.relation == Relation::Caller) {
        let [node, caller] = [edge.node, edge.other].map(|frame| edges.frames.label(frame).to_owned());
        callers.entry(node).or_default().insert(caller);
    }
    Ok(callers)
}

/// Describes a finding that does not fail, as in `main.hash: +12% flat exceeds flat:any>+5%, but ...`.
fn describe(finding: &Finding, rule: &str) -> String {
    let frame = finding.frame.as_deref().unwrap_or_default();
    let growth = finding.percent.unwrap_or_default();
    format!(
        "{frame}: {growth:+.0}% flat exceeds {rule}, but {REASON}, so it does not fail; to let it fail, pass --same-code \
         fail"
    )
}
