//! The check: decides whether the change between two sides is within limits.
//!
//! ```text
//! Rules (limits, allow-list, floor) + Diff -> Check (findings of each rule, one verdict)
//! ```
//!
//! `pprofdiff_explain::check` applies the rules and adds the causes of failed rules. It also finds the functions that
//! one side inlines, which some rules need.
//!
//! In a check, the profiles of a side are runs of the same program. They do not add up. A limit on growth applies to the
//! difference between the medians of both sides, a limit on a value to the median of the new side, and a limit on a share
//! to the median of the new runs' shares. These comparisons are exact (`exact`), except the median of an even number of
//! shares, which is rounded. Normalization rounds the sums of each run to whole units before the comparison.
//!
//! A limit on growth fails if two conditions hold: the limit is exceeded, and two equal builds would hardly ever differ
//! that far by chance (`statistics::growth`). With sampled values, equal builds fail at most one check in a hundred
//! ([`ALPHA`]). The rules of a check share that error probability (`levels`), and each rule divides its share among
//! the subjects that it compares. An exceeded limit is inconclusive if chance explains the excess. A verdict of `pass`
//! therefore means that every compared value is within its limit, or that the allow-list covers the excess.
//!
//! A limit on the new side alone (a value, or a part of the total) does not compare the sides. It fails if the new runs
//! exceed it by more than chance explains (`limit`). With [`CheckPolicy::strict`], every exceeded limit fails, even if
//! chance explains it.
//!
//! The check uses medians, while tables use means: a single bad run must not decide. A check without data must not
//! pass. It therefore returns an error for an empty list of rules, for an unknown sample type, and if the total is 0 in
//! at least half of the new profiles. Complete counts (`Model::Exact`) are an exception: a count of 0 is a measurement.

mod exact;
mod failed;
mod levels;
mod limit;
mod rule;
mod same_code;
mod within;

use std::cell::OnceCell;
use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

pub use crate::diff::call_lines::SourceLocation;
use crate::diff::list::CodeChange;
use crate::diff::top::LeftOut;
use crate::diff::{Diff, Granularity, Matching, Moves, Normalize, Query, Selection, Summary};
#[doc(hidden)]
pub use crate::runs::MeasuredRuns;
use crate::runs::{ByChance, Sides};
pub use crate::runs::{Halves, Runs};
use crate::sampling::{Model, Sampling};
use crate::{Error, ErrorKind, Result};
use exact::Decimal;
pub use failed::FailedRule;
use levels::RuleTest;
use limit::Test;
use pprofdiff_profile::short_lists::sort_by;
use rule::{CheckRule, RuleCost, Subject};
pub use same_code::SameCode;

/// Returns the warning about a rule with the outcome [`Outcome::Unmatched`].
#[doc(hidden)]
pub fn unmatched_rule(rule: &str) -> String {
    format!(
        "the rule {rule:?} matches no frame of either side; correct its expression, or set optional = true for the rule \
         in pprofdiff.toml"
    )
}

/// The rules of a check, and an allow-list of frames and rules that may exceed their limits.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<CheckRule>,
    allow: Vec<Allow>,
    /// The floor in percent of the total, for rules without a floor of their own.
    floor: Option<Decimal>,
    sample_type: Option<String>,
    /// The outcome in the configuration, unless the policy sets another.
    same_code: Option<SameCode>,
    /// The name of the checked program, such as a service. Reports of several programs differ in it.
    name: Option<String>,
    /// The options for applying limits.
    pub policy: CheckPolicy,
}

/// Options for applying limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckPolicy {
    /// Fails every exceeded limit that the allow-list does not cover, even if chance explains the excess. Rules on
    /// `any` frame then also test the frames whose presence in a profile is random.
    pub strict: bool,
    /// Pairs run i of the base with run i of the new side, for runs that were measured side by side. Variation that
    /// both runs of a pair share then cancels out. Limits on the new side alone ignore the pairs.
    pub paired: bool,
    /// Makes a rule inconclusive that would pass or be allowed, if the runs could have missed a growth as large as its
    /// limit. Subjects whose excess the allow-list covers do not count. Has no effect together with `strict`, or on a
    /// rule that compares nothing.
    pub require_power: bool,
    /// Explains the difference between the sides also for sample types without a failed rule.
    #[serde(default)]
    pub explain: bool,
    /// The outcome of functions whose flat cost grew beyond a limit, although their instructions are the same. Without
    /// it, the configuration applies, and [`SameCode::Warn`] by default.
    #[serde(default)]
    pub same_code: Option<SameCode>,
}

impl CheckPolicy {
    /// Sets [`CheckPolicy::strict`].
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets [`CheckPolicy::paired`].
    #[must_use]
    pub fn with_paired(mut self, paired: bool) -> Self {
        self.paired = paired;
        self
    }

    /// Sets [`CheckPolicy::require_power`].
    #[must_use]
    pub fn with_require_power(mut self, require_power: bool) -> Self {
        self.require_power = require_power;
        self
    }

    /// Sets [`CheckPolicy::explain`].
    #[must_use]
    pub fn with_explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }

    /// Sets [`CheckPolicy::same_code`].
    #[must_use]
    pub fn with_same_code(mut self, same_code: Option<SameCode>) -> Self {
        self.same_code = same_code;
        self
    }
}

/// The maximum probability that a check of two equal builds fails. It does not hold with [`CheckPolicy::strict`], or
/// for complete counts, which are compared without a test of chance.
pub const ALPHA: f64 = 0.01;

/// An entry of the allow-list. It covers a frame, a rule, or a frame under one rule.
#[derive(Debug, Clone)]
struct Allow {
    /// The regular expression that selects frames, with its source text; `None` covers every subject of the rule.
    frame: Option<(Regex, String)>,
    /// The text of the rule, as typed; `None` covers every rule.
    rule: Option<String>,
    /// The sample type of the rule; `None` covers every sample type.
    sample_type: Option<String>,
    /// The name of the check; `None` covers every check.
    name: Option<String>,
    reason: String,
}

/// The result of a rule, or of one subject of a rule. The variants are in ascending order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// No limit is exceeded.
    Pass,
    /// The limit is exceeded, and an entry of the allow-list covers the excess. Without the entry, the outcome would be
    /// `Inconclusive` or `Fail`. Also a function whose instructions are the same in both builds ([`SameCode`]).
    Allowed,
    /// The limit is exceeded, but the runs do not show that the excess is real. One of these holds:
    /// - Chance explains the excess.
    /// - The values are complete counts, and the closest runs of the two sides are within the limit.
    /// - The subject is a frame or a group of frames, and the number of samples is unknown.
    /// - The rule compares each frame, and this frame has too few samples for a test.
    /// - The frame's visibility depends on inlining, which differs between profiles of equal builds.
    ///
    /// A whole rule is also inconclusive if the filters remove every sample, or if [`CheckPolicy::require_power`]
    /// demands more runs.
    Inconclusive,
    /// The expression of a rule matches no frame of either side, so the rule compared nothing. The rule is not optional,
    /// and the values are sampled: complete counts without such a frame are a measurement of 0.
    Unmatched,
    /// The limit is exceeded by more than chance explains. With [`CheckPolicy::strict`], every exceeded limit that the
    /// allow-list does not cover.
    Fail,
}

impl Outcome {
    /// Returns the name that appears in results.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Allowed => "allowed",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Unmatched => "unmatched",
            Outcome::Fail => "fail",
        }
    }
}

/// The result for one subject of a rule: a frame, a group of frames, or the total.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// The frame; `None` for the total, and for frames that are compared as a group.
    pub frame: Option<String>,
    /// The outcome of this comparison.
    pub outcome: Outcome,
    /// The source location of the frame's function; `None` for the total and for groups, and if the profiles lack the
    /// file or the line.
    pub place: Option<SourceLocation>,
    /// For a limit on cum, the outermost frame on most of this frame's stacks that has the same outcome, weighted by
    /// value. If that frame calls a frame with equal values in all runs, the innermost such frame represents both.
    /// `None` if no other frame contains this frame, and for the outcome `Pass`.
    pub within: Option<String>,
    /// The reason in the entry of the allow-list, or that the instructions are the same; `None` unless the outcome is
    /// `Allowed`, and with [`SameCode::Ignore`].
    pub reason: Option<String>,
    /// The difference between the function's instructions in both builds, if it exceeds a limit on the growth of its
    /// flat cost. `None` for other findings, with [`SameCode::Fail`], and unless the user named binaries for both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeChange>,
    /// The values of the base's runs.
    pub base: Runs,
    /// The values of the new side's runs.
    pub new: Runs,
    /// The median of the new side minus the median of the base.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub delta: Halves,
    /// The distance of the new side's median above the largest value that the limit allows, in the unit of the values.
    /// Negative within the limit.
    pub excess: f64,
    /// The delta in percent of the magnitude of the base's median; `None` if that median is 0.
    pub percent: Option<f64>,
    /// The delta of a frame or group in percent of the median of the base's totals, for display. `None` for the total,
    /// and if that median is 0.
    #[serde(skip)]
    pub share: Option<f64>,
    /// The probability that two equal builds differ this far in this direction by chance. For a limit below 0, the
    /// probability that a new build which changed by exactly the limit appears to have grown this much more. For a limit
    /// on the new side alone, the probability that a build at the limit appears this far above it. If chance decides which inlined functions a profile shows, this can be the
    /// probability for the caller that contained the frame on the base.
    ///
    /// `None` if no run has a positive value, for complete counts, and for frames whose visibility depends on inlining.
    /// Also `None` if the number of samples is unknown, except for the total of several runs.
    pub p: Option<f64>,
    /// The p-value, multiplied by the number of comparisons of the rule (Bonferroni), and at most 1. `None` in the same
    /// cases as `p`. Without [`CheckPolicy::strict`], an exceeded limit with a p-value fails only if this value is
    /// [`RuleCheck::p_limit`] or less.
    pub p_adjusted: Option<f64>,
    /// The number of runs per side that would detect this growth with a probability of 90%, for a limit that is
    /// exceeded within chance. `None` if more than fifty runs are necessary, for limits on the new side alone, for
    /// frames whose visibility depends on inlining, and if the number of samples does not permit a p-value (see `p`).
    pub runs_needed: Option<usize>,
}

/// The result of one rule. Its causes have the type `C`: the engine knows none, and `pprofdiff_explain` adds them.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RuleCheck"))]
#[non_exhaustive]
pub struct RuleCheck<C = ()> {
    /// The text of the rule.
    pub rule: String,
    /// The worst outcome of the findings, or `Unmatched`. A rule that would otherwise pass or be allowed is inconclusive if the filters
    /// remove every sample, or if [`CheckPolicy::require_power`] is set and the runs could have missed a growth as
    /// large as the limit.
    pub outcome: Outcome,
    /// The sample type of the values.
    pub sample_type: String,
    /// The unit of the values.
    pub unit: String,
    /// How the values of the base and of the new side were sampled, which determines the number of samples behind a
    /// value. If that number is unknown, a rule on frames fails only with [`CheckPolicy::strict`].
    pub sampling: [Sampling; 2],
    /// True if the rule compares each frame separately.
    pub is_of_each: bool,
    /// The number of subjects that the rule tested: frames at or above the floor, or 1 for the total. For a group of
    /// frames 1, or 0 if the group is below the floor or matches no frame.
    pub compared: usize,
    /// The median of the totals of the base's runs.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_base: Halves,
    /// The median of the totals of the new side's runs.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_new: Halves,
    /// The new side's median total minus the base's.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_delta: Halves,
    /// The number of subjects that the rule ignored because they are below the floor on both sides. A group of frames
    /// counts as one subject, and has no finding if it is below the floor.
    pub below_floor: usize,
    /// The floor in percent of the total of the side. Rules on the total ignore it.
    pub floor: f64,
    /// The number of separately compared frames that do not fail, but have so few events or vary so much between runs
    /// that chance alone would occasionally exceed the limit. Always 0 with [`CheckPolicy::strict`], and for limits on
    /// the new side alone.
    pub too_small: usize,
    /// The number of frames that a rule on `any` frame does not test, because their presence in a profile is itself
    /// random. If such a frame is visible only because of inlining and exceeds the limit, it still has a finding, which
    /// never fails.
    pub left_out: usize,
    /// The variation between runs of one build: the standard deviation of the logarithm of a typical frame's cost. For a
    /// limit on the growth of the total, it is the standard deviation of the total.
    pub tau: f64,
    /// The smallest growth in percent that would have failed with a probability of 90%. It is above the limit, because a
    /// growth within the limit passes. For a rule that compares each frame, it concerns a frame with a tenth
    /// of the total. `None` for limits on the new side alone, limits below 0, rules that compare nothing, and if the
    /// result is not finite. Also `None` with [`CheckPolicy::strict`], for complete counts, if an unknown number of
    /// samples does not permit a p-value, and if the allow-list covers all subjects of the rule. With one run per side,
    /// it holds if runs differ as runs of other programs do.
    pub detectable: Option<f64>,
    /// The largest `p_adjusted` with which a finding fails: [`ALPHA`] divided by the number of rules that share it and
    /// are not certain without this rule (Holm). `None` for rules that are not tested for chance: rules that compare
    /// nothing, complete counts, an unknown number of samples, and [`CheckPolicy::strict`].
    pub p_limit: Option<f64>,
    /// The number of rules that share [`ALPHA`]. Rules that test the same values for growth count once.
    pub family: usize,
    /// The findings, worst outcome first, then by `excess`. A rule on the total or on a group always includes the
    /// finding of that subject, unless the group is below the floor or matches no frame. A rule that compares each
    /// frame lists only the frames above the limit.
    pub findings: Vec<Finding>,
    /// The causes of a failed rule: the changes that made its failed subjects grow. `None` if no cause was identified,
    /// or if explanations do not support the granularity. With [`CheckPolicy::explain`], a sample type without a failed
    /// rule explains the difference between the sides at its first rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<C>>,
}

/// The result of all rules. Causes have the type `C`, see [`RuleCheck`].
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Check"))]
#[non_exhaustive]
pub struct Check<C = ()> {
    /// The name of the checked program, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The worst outcome of the rules. `Pass` if that outcome is `Allowed`, because the allow-list covers every excess.
    pub verdict: Outcome,
    /// The summary of the compared sides, as in other views. It describes the sample type of the first rule, and
    /// contains all warnings of the check.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// The results of the rules, in the order of the rules.
    pub rules: Vec<RuleCheck<C>>,
    /// The relative paths of source files that the repository does not have, such as those of a standard library. Empty if
    /// the repository is unknown.
    #[serde(skip)]
    pub foreign_files: Vec<String>,
}

impl<C> Check<C> {
    /// Returns true if a compared value exceeds its limit and is not on the allow-list, even if chance explains the
    /// excess, or if the instructions are the same ([`SameCode`]). Returns false if the only reason for an inconclusive rule is missing power, or filters that remove every
    /// sample.
    pub fn exceeds_a_limit(&self) -> bool {
        let mut findings = self.rules.iter().flat_map(|rule| &rule.findings);
        findings
            .any(|finding| matches!(finding.outcome, Outcome::Inconclusive | Outcome::Fail) || finding.is_same_code())
    }
}

impl Check {
    /// Returns the check with the causes of each rule, in the order of the rules.
    #[must_use]
    pub fn with_causes<C>(self, causes: Vec<Option<Arc<C>>>) -> Check<C> {
        let Check { name, verdict, summary, rules, foreign_files } = self;
        let rules = rules.into_iter().zip(causes).map(|(rule, why)| rule.with_causes(why)).collect();
        Check { name, verdict, summary, rules, foreign_files }
    }
}

impl Rules {
    /// Reads the `check` table of a `pprofdiff.toml`.
    ///
    /// # Errors
    /// Returns an error for invalid TOML, unknown keys, an invalid rule, regular expression, floor or `same_code`, and for
    /// an entry of the allow-list without a reason, or without both a frame and a rule.
    pub fn from_toml(text: &str) -> Result<Rules> {
        rule::from_toml(text)
    }

    /// Adds a rule: `[TYPE:]total|flat|cum[:any|:each=RE|:regex=RE]>LIMIT`.
    ///
    /// # Errors
    /// Returns an error for an invalid rule.
    pub fn fail_on(&mut self, rule: &str) -> Result<()> {
        self.rules.push(rule.parse()?);
        Ok(())
    }

    /// Ignores frames and groups below this percentage of the total (`0.5%`) on both sides, for rules without a floor
    /// of their own.
    ///
    /// # Errors
    /// Returns an error if `floor` is not a percentage from 0 to 100.
    pub fn set_floor(&mut self, floor: &str) -> Result<()> {
        self.floor = Some(rule::percent(floor)?);
        Ok(())
    }

    /// Names the checked program, such as a service. The name replaces the name in the configuration.
    ///
    /// # Errors
    /// Returns an error if `name` is empty or longer than 100 bytes, or contains a slash or a control character.
    pub fn set_name(&mut self, name: &str) -> Result<()> {
        self.name = Some(rule::checked_name(name)?);
        Ok(())
    }

    /// Returns the name of the checked program.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Applies all rules, without looking for causes. `find_moves` returns the functions that were renamed or inlined
    /// between the sides. `pprofdiff_explain::check` documents the arguments and the errors.
    #[doc(hidden)]
    pub fn check_runs(&self, diff: &Diff, query: &Query, find_moves: FindMoves<'_>) -> Result<RunsOfCheck> {
        self.refuse_sides(diff)?;
        let selection = select_of_runs(diff, query, find_moves)?;
        let (mut measured, mut followed): (Vec<MeasuredType>, Vec<MeasuredType>) = (Vec::new(), Vec::new());
        let mut used = vec![false; self.allow.len()];
        let mut warnings = Vec::new();
        // The index of each rule's measured type, in `measured` or in `followed`.
        let mut types = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let default_type = query.sample_type.as_deref().or(self.sample_type.as_deref());
            let type_name = rule.sample_type.as_deref().or(default_type);
            let number = diff.find_sample_type(type_name)?;
            comparable_counts(diff, number, query.normalize)?;
            let index = match measured.iter().position(|cached| cached.number == number) {
                Some(index) => index,
                None => {
                    let cached = MeasuredType::new(&selection, number, query.normalize)?;
                    warnings.extend(self.type_warnings(diff, &cached)?);
                    measured.push(cached);
                    measured.len() - 1
                }
            };
            if !self.follows_moves(rule, &measured[index], query)? {
                types.push((index, false));
                continue;
            }
            let cached = followed.iter().position(|cached: &MeasuredType| cached.number == number);
            if cached.is_none() {
                let query = query.clone().with_matching(Matching::Moved);
                let moved = MeasuredType::new(&diff.select_with(&query, &find_moves(diff)?)?, number, query.normalize)?;
                followed.push(MeasuredType { flickers: true, ..moved });
            }
            types.push((cached.unwrap_or(followed.len() - 1), true));
        }
        let measured_rules = self.rules.iter().zip(types);
        let measured_rules = measured_rules
            .map(|(rule, (index, follows))| (rule, if follows { &followed[index] } else { &measured[index] }));
        let mut rules = self.apply_all(measured_rules.collect(), &mut used, &mut warnings)?;
        warnings.extend(self.allow_same_code(diff, query, &mut rules)?);
        let mut summary = Summary::clone(measured[0].runs.measure().summary());
        // Warnings about profiles do not depend on the sample type.
        warnings.splice(0..0, summary.warnings.drain(..));
        if let Some(first) = followed.first() {
            let is_new = |w: &&String| !warnings.contains(w);
            let added: Vec<String> = first.runs.measure().summary().warnings.iter().filter(is_new).cloned().collect();
            warnings.extend(added);
        }
        // The explanation selects its own frames, which take as much memory as this selection. Dropping the selection
        // first keeps the peak low.
        drop((selection, followed));
        let checked = |measured: MeasuredType| {
            let sample_type = measured.runs.measure().summary().sample_type.clone();
            let has_type = |rule: &&RuleCheck| rule.sample_type == sample_type;
            let has_failed = rules.iter().filter(has_type).any(|rule| rule.outcome == Outcome::Fail);
            // The causes of a failed rule are matched with its frames. A small number of frames stays in memory for
            // that; a large number is dropped during the explanation and measured again.
            let kept = Some(measured.runs).filter(|runs| has_failed && runs.frames().len() <= MANY_FRAMES);
            CheckedType { number: measured.number, sample_type, has_failed, kept }
        };
        let types = measured.into_iter().map(checked).collect();
        let checked_types: Vec<&str> = rules.iter().map(|rule| rule.sample_type.as_str()).collect();
        warnings.extend(self.allow_warnings(&used, &checked_types, &diff.sample_types()));
        (summary.warnings, summary.query.normalize) = (warnings, query.normalize);
        let verdict = rules.iter().map(|r| r.outcome).max().filter(|&o| o != Outcome::Allowed);
        let name = self.name.clone();
        let (verdict, summary) = (verdict.unwrap_or(Outcome::Pass), Arc::new(summary));
        let check = Check { name, verdict, summary, rules, foreign_files: Vec::new() };
        Ok(RunsOfCheck { check, types })
    }

    /// Returns warnings about entries of the allow-list that allowed nothing. Entries of another check, or of a sample type
    /// that no rule compared, get no warning. If the check has a name, entries without one get no warning either, because
    /// another check may need them. If it has no name, entries of a sample type that the profiles lack get a warning: the
    /// type may be misspelled. `compared` has the sample types of the rules, and `all` has the sample types of the profiles.
    fn allow_warnings(&self, used: &[bool], compared: &[&str], all: &[(String, String)]) -> Vec<String> {
        let unused = self.allow.iter().zip(used).filter(|(_, used)| !**used).map(|(allow, _)| allow);
        let is_of_this_check = |allow: &&Allow| {
            let has_type = allow.sample_type.as_deref().is_none_or(|name| compared.contains(&name));
            allow.name == self.name && has_type
        };
        let mut warnings: Vec<String> = unused
            .filter(is_of_this_check)
            .map(|allow| format!("{} in the allow-list allowed nothing; remove it or correct it", allow.name()))
            .collect();
        for entry in self.allow.iter().filter(|entry| self.name.is_none() && entry.name.is_none()) {
            if let Some(kind) = entry.sample_type.as_deref().filter(|kind| all.iter().all(|(known, _)| known != kind)) {
                warnings.push(format!(
                    "{} in the allow-list is for the sample type {kind}, which these profiles lack; correct it, or give this \
                     check and the entry a name",
                    entry.name()
                ));
            }
        }
        if self.name.is_none()
            && let Some(name) = self.allow.iter().find_map(|allow| allow.name.as_deref())
        {
            warnings.push(format!(
                "the allow-list has entries of named checks, and this check has no name; pass --name {}, or set `name` in the \
                 configuration",
                pprofdiff_profile::advice::word(name)
            ));
        }
        warnings
    }

    /// Returns the index of the first entry of the allow-list that covers a subject of a rule. The total and groups
    /// have no frame.
    fn allowed_by(&self, rule: &CheckRule, sample_type: &str, frame: Option<&str>) -> Option<usize> {
        self.allow.iter().position(|allow| {
            let is_here = allow.name.is_none() || allow.name == self.name;
            is_here && allow.sample_type.as_deref().is_none_or(|name| name == sample_type) && allow.covers(rule, frame)
        })
    }

    /// Returns an error if there is no rule, or if the rules cannot compare these sides.
    fn refuse_sides(&self, diff: &Diff) -> Result<()> {
        if self.rules.is_empty() {
            return Err(Error::query("there are no rules to check; write one such as total>+5%"));
        }
        if !diff.is_two_sided() {
            return Err(Error::query("a check compares two sides; there is only one profile"));
        }
        if self.policy.paired && diff.has_repeats() {
            return Err(Error::query(
                "paired runs must be different profiles, and a side contains one profile several times",
            ));
        }
        if self.policy.paired && diff.base().count() != diff.new_side().count() {
            let (base, new) = (diff.base().count(), diff.new_side().count());
            return Err(Error::query(format!(
                "paired runs need the same number of runs on both sides, not {base} and {new}"
            )));
        }
        Ok(())
    }

    /// Returns the warnings about a sample type that a rule compares.
    fn type_warnings(&self, diff: &Diff, measured: &MeasuredType) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        if measured.runs.model != Model::Exact {
            warnings.extend(empty_runs(&measured.runs, diff)?);
        }
        if !self.policy.strict {
            warnings.extend(diff.sampling_warnings(measured.number));
        }
        if measured.is_empty() {
            let kind = &measured.runs.measure().summary().sample_type;
            warnings.push(format!("the filters remove every sample of {kind}, so its rules are inconclusive"));
        }
        Ok(warnings)
    }

    /// Returns the failed rules of the sample type that `runs` measures, with their positions among the rules.
    #[doc(hidden)]
    pub fn failed_rules<'r>(&self, check: &Check, runs: &'r MeasuredRuns) -> Vec<(usize, FailedRule<'r>)> {
        let sample_type = &runs.measure().summary().sample_type;
        let results = check.rules.iter().zip(&self.rules).enumerate();
        let failed =
            results.filter(|(_, (result, _))| result.outcome == Outcome::Fail && result.sample_type == *sample_type);
        failed.map(|(number, (result, rule))| (number, FailedRule::new(rule, result, runs))).collect()
    }

    /// Returns true for a rule on any frame if chance decides which of several inlined functions a profile shows. In
    /// equal builds, one inlined function then disappears and another appears, and several runs of a side can agree on
    /// that: `cum:any>+20%` failed in seven of 135 comparisons of equal builds with two runs per side. For such a rule,
    /// a function that is inlined on one side counts as part of its caller on both sides, even if the query matches
    /// frames in another way. A rule that names its frames compares them unchanged.
    fn follows_moves(&self, rule: &CheckRule, measured: &MeasuredType, query: &Query) -> Result<bool> {
        let may = !self.policy.strict && matches!(rule.subject, Subject::Each(None));
        Ok(may && query.granularity == Granularity::Functions && measured.by_chance(self.policy)?.flickers)
    }

    /// Applies the rules to their measured types. The p-values of all rules come first, because the rules share the
    /// error rate.
    fn apply_all(
        &self,
        rules: Vec<(&CheckRule, &MeasuredType)>,
        used: &mut [bool],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<RuleCheck>> {
        let prepare = |(rule, measured)| self.prepare(rule, measured, warnings);
        let mut prepared = rules.into_iter().map(prepare).collect::<Result<Vec<PreparedRule<'_>>>>()?;
        let tests: Vec<Option<RuleTest>> = prepared.iter().map(|rule| rule.test_of_chance(self.policy)).collect();
        let (family, levels) = levels::levels(&tests);
        let mut results = Vec::with_capacity(prepared.len());
        for ((rule, test), level) in prepared.iter_mut().zip(&tests).zip(levels) {
            rule.test.level = level;
            let (p_limit, family) = (test.as_ref().map(|_| level), if test.is_some() { family } else { 0 });
            results.push(RuleCheck { p_limit, family, ..self.apply(rule, used) });
        }
        Ok(results)
    }

    /// Finds the subjects of a rule, and their p-values.
    fn prepare<'a>(
        &'a self,
        rule: &'a CheckRule,
        measured: &'a MeasuredType,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedRule<'a>> {
        let runs = &measured.runs;
        let is_of_each = matches!(rule.subject, Subject::Each(_));
        let floor = rule.floor.or(self.floor).unwrap_or(if is_of_each { rule::FLOOR } else { Decimal::whole(0) });
        let subjects = self.subjects(rule, measured, floor)?;
        // If the filters remove every sample, another warning says so.
        let is_unmatched = subjects.is_unmatched && !measured.is_empty();
        if is_unmatched {
            warnings.push(match rule.optional || runs.model == Model::Exact {
                true => format!("the rule {:?} matches no frame of either side", rule.text),
                false => unmatched_rule(&rule.text),
            });
        }
        // A rule on the total needs no warning about an unknown number of samples: the differences between runs show
        // its variation.
        if !self.policy.strict && !matches!(rule.subject, Subject::Whole) {
            let warning = runs.measure().uncounted_warning().filter(|warning| !warnings.contains(warning));
            warnings.extend(warning);
        }
        let test = Test::new(rule, runs, self.policy, subjects.kept.len())?;
        let mut p_values: Vec<Option<f64>> = subjects.kept.iter().map(|(_, sides)| test.p(sides)).collect();
        if measured.flickers {
            let host_p_values = test.p_of_hosts(&subjects.kept, &p_values);
            p_values.iter_mut().zip(host_p_values).for_each(|(p, host_p)| *p = host_p.or(*p));
        }
        let is_unmatched = is_unmatched && !rule.optional && runs.model != Model::Exact;
        Ok(PreparedRule { rule, measured, floor, subjects, test, p_values, is_unmatched })
    }

    fn apply(&self, prepared: &PreparedRule<'_>, used: &mut [bool]) -> RuleCheck {
        let PreparedRule { rule, measured, floor, subjects, test, is_unmatched, .. } = prepared;
        let runs = &measured.runs;
        let is_of_each = matches!(rule.subject, Subject::Each(_));
        let compared = subjects.kept.len();
        let (findings, too_small) = self.findings(prepared, used);
        let tests_chance = compared > 0 && !self.policy.strict;
        let only = subjects.kept.first().filter(|_| !is_of_each).map(|(_, sides)| sides);
        let summary = runs.measure().summary();
        let can_fail = tests_chance && self.allowed_by(rule, &summary.sample_type, None).is_none();
        let power = can_fail.then(|| test.detectable(only)).flatten();
        let mut outcome = findings.iter().map(|f| f.outcome).max().unwrap_or(Outcome::Pass);
        let would_be_missed = || match test.detectable(only) {
            Some(growth) if growth.beyond_chance <= growth.limit => false,
            _ => may_exceed_unnoticed(test, subjects, &findings, runs),
        };
        if outcome <= Outcome::Allowed && self.policy.require_power && tests_chance && would_be_missed() {
            outcome = Outcome::Inconclusive;
        }
        // If the filters remove every sample, the subject of the rule was not measured, and the rule does not pass.
        if outcome <= Outcome::Allowed && measured.is_empty() {
            outcome = Outcome::Inconclusive;
        }
        if *is_unmatched {
            outcome = Outcome::Unmatched;
        }
        let [base, new] = &runs.total;
        RuleCheck {
            rule: rule.text.clone(),
            outcome,
            sample_type: summary.sample_type.clone(),
            unit: summary.unit.clone(),
            sampling: runs.measure().sampling(),
            total_base: base.median,
            total_new: new.median,
            total_delta: new.median.minus(base.median),
            is_of_each,
            compared,
            below_floor: subjects.n - compared,
            too_small,
            left_out: subjects.left_out,
            floor: floor.to_f64(),
            tau: test.tau(),
            // A growth fails if it exceeds the limit, and if chance does not explain it.
            detectable: power.map(|growth| growth.beyond_chance.max(growth.beyond_limit)),
            p_limit: None,
            family: 0,
            findings,
            why: None,
        }
    }

    /// Tests the subjects of a rule. Returns the findings, worst first, and the number of tested subjects that are too
    /// small to fail. Marks the entries of the allow-list that a finding uses.
    fn findings(&self, prepared: &PreparedRule<'_>, used: &mut [bool]) -> (Vec<Finding>, usize) {
        let PreparedRule { rule, measured, test, p_values, subjects: Subjects { kept, inlined, .. }, .. } = prepared;
        let runs = &measured.runs;
        let (mut findings, mut too_small) = (Vec::new(), 0);
        for ((frame, sides), &p) in kept.iter().zip(p_values) {
            let outcome = test.outcome(sides, p.map(|p| test.adjusted(p)));
            too_small += usize::from(outcome != Outcome::Fail && test.is_too_small(sides));
            let finding = self.finding(rule, runs, test, (*frame, sides), (outcome, p), used);
            let runs_needed = (outcome == Outcome::Inconclusive).then(|| test.runs_needed(sides)).flatten();
            findings.extend(finding.map(|finding| Finding { runs_needed, ..finding }));
        }
        // Chance decides the side on which these frames are visible, so they cannot fail. If they exceed a limit, they
        // do not pass either: they are inconclusive.
        for (frame, sides) in inlined {
            let outcome = test.outcome(sides, None).min(Outcome::Inconclusive);
            findings.extend(self.finding(rule, runs, test, (*frame, sides), (outcome, None), used));
        }
        sort_by(&mut findings, |a, b| {
            let by_delta = b.delta.twice().abs().cmp(&a.delta.twice().abs());
            let by_size = b.excess.total_cmp(&a.excess).then(by_delta);
            b.outcome.cmp(&a.outcome).then(by_size).then_with(|| a.frame.cmp(&b.frame))
        });
        within::nest(&mut findings, rule.cost.sum(), runs);
        within::locate(&mut findings, &runs.measure().summary().query.trim_path, runs);
        (findings, too_small)
    }

    /// Describes a tested subject, unless it is one of many that pass. The allow-list may change the outcome.
    fn finding(
        &self,
        rule: &CheckRule,
        runs: &MeasuredRuns,
        test: &Test<'_>,
        (frame, sides): (Option<u32>, &Sides),
        (mut outcome, p): (Outcome, Option<f64>),
        used: &mut [bool],
    ) -> Option<Finding> {
        if outcome == Outcome::Pass && matches!(rule.subject, Subject::Each(_)) {
            return None;
        }
        let frame = frame.map(|f| runs.frames().label(f));
        let mut reason = None;
        if outcome != Outcome::Pass
            && let Some(allow) = self.allowed_by(rule, &runs.measure().summary().sample_type, frame.as_deref())
        {
            used[allow] = true;
            outcome = Outcome::Allowed;
            reason = Some(self.allow[allow].reason.clone());
        }
        let [base, new] = sides.clone();
        let delta = new.median.minus(base.median);
        let percent_of = |whole: f64| (whole != 0.0).then(|| 100.0 * delta.to_f64() / whole);
        let percent = percent_of(base.median.to_f64().abs());
        let p = p.filter(|_| test.reports_chance());
        let is_of_frames = !matches!(rule.subject, Subject::Whole);
        let share = percent_of(runs.total[0].median.to_f64()).filter(|_| is_of_frames);
        Some(Finding {
            frame,
            outcome,
            place: None,
            within: None,
            reason,
            code: None,
            base,
            new,
            delta,
            excess: test.excess(sides),
            percent,
            share,
            p,
            p_adjusted: p.map(|p| test.adjusted(p)),
            runs_needed: None,
        })
    }

    /// Returns the frames, the group or the total that a rule compares. Separately compared frames whose value is 0 in
    /// all runs do not count. A group that matches no frame is not a subject.
    fn subjects(&self, rule: &CheckRule, measured: &MeasuredType, floor: Decimal) -> Result<Subjects> {
        let MeasuredType { runs, total, .. } = measured;
        let cost = rule.cost.sum();
        let frames = 0..runs.frames().len() as u32;
        let is_match = |re: &Regex, f: u32| re.is_match(runs.frames().label(f).as_bytes());
        let mut subjects = Subjects { kept: Vec::new(), inlined: Vec::new(), n: 0, left_out: 0, is_unmatched: false };
        let mut add = |frame: Option<u32>, sides: Sides| {
            subjects.n += 1;
            if rule.cost == RuleCost::Total || limit::reaches(floor, &sides, &runs.total) {
                subjects.kept.push((frame, sides));
            }
        };
        match &rule.subject {
            Subject::Whole => add(None, total.clone()),
            Subject::Together(re) => {
                let chosen: Vec<bool> = frames.map(|f| is_match(re, f)).collect();
                match chosen.contains(&true) {
                    true => add(None, runs.of_any(&chosen, cost)),
                    false => subjects.is_unmatched = true,
                }
            }
            // A rule that names its frames compares all of them, even if their presence is random.
            Subject::Each(Some(re)) => {
                let matching: Vec<u32> = frames.filter(|&f| is_match(re, f)).collect();
                let sides_of = |f: &u32| Some((Some(*f), runs.of_frame(*f, cost)?));
                matching.iter().filter_map(sides_of).for_each(|(f, sides)| add(f, sides));
                subjects.is_unmatched = matching.is_empty();
            }
            Subject::Each(None) => {
                let by_chance = if self.policy.strict { None } else { Some(measured.by_chance(self.policy)?) };
                let (mut left_out, mut inlined) = (0, Vec::new());
                for f in frames {
                    let Some(sides) = runs.of_frame(f, cost) else { continue };
                    let Some(reason) =
                        by_chance.and_then(|frames_by_chance| frames_by_chance.reason(f, cost, runs, ALPHA))
                    else {
                        add(Some(f), sides);
                        continue;
                    };
                    left_out += 1;
                    if reason == LeftOut::Inlining && limit::reaches(floor, &sides, &runs.total) {
                        inlined.push((Some(f), sides));
                    }
                }
                (subjects.left_out, subjects.inlined) = (left_out, inlined);
            }
        }
        Ok(subjects)
    }
}

impl RuleCheck {
    fn with_causes<C>(self, why: Option<Arc<C>>) -> RuleCheck<C> {
        let RuleCheck {
            rule,
            outcome,
            sample_type,
            unit,
            sampling,
            is_of_each,
            compared,
            total_base,
            total_new,
            total_delta,
            below_floor,
            floor,
            too_small,
            left_out,
            tau,
            detectable,
            p_limit,
            family,
            findings,
            why: _,
        } = self;
        RuleCheck {
            rule,
            outcome,
            sample_type,
            unit,
            sampling,
            is_of_each,
            compared,
            total_base,
            total_new,
            total_delta,
            below_floor,
            floor,
            too_small,
            left_out,
            tau,
            detectable,
            p_limit,
            family,
            findings,
            why,
        }
    }
}

/// Returns the functions that were renamed or inlined between the sides of a diff.
pub(crate) type FindMoves<'f> = &'f dyn Fn(&Diff) -> Result<Moves>;

/// Selects the runs of both sides. Finds the moved code, if names follow it.
fn select_of_runs(diff: &Diff, query: &Query, find_moves: FindMoves<'_>) -> Result<Selection> {
    let moves = if query.matching == Matching::Moved { find_moves(diff)? } else { Moves::default() };
    diff.select_of_runs(query, &moves)
}

/// A check without causes, with the runs that its causes are matched with.
#[doc(hidden)]
#[derive(Debug)]
pub struct RunsOfCheck {
    /// The result of all rules.
    pub check: Check,
    /// The sample types of the rules.
    pub types: Vec<CheckedType>,
}

/// A sample type that rules compare.
#[doc(hidden)]
#[derive(Debug)]
pub struct CheckedType {
    /// The index of the sample type in the diff.
    number: usize,
    /// The name in the results of the rules.
    pub sample_type: String,
    /// True if a rule on the sample type failed.
    pub has_failed: bool,
    kept: Option<MeasuredRuns>,
}

impl CheckedType {
    /// Returns the measured runs. Measures them again if they have too many frames to keep them.
    ///
    /// # Errors
    /// Returns the errors of [`Rules::check_runs`].
    pub fn runs(self, diff: &Diff, query: &Query, find_moves: FindMoves<'_>) -> Result<MeasuredRuns> {
        match self.kept {
            Some(runs) => Ok(runs),
            None => {
                let selection = select_of_runs(diff, query, find_moves)?;
                Ok(MeasuredType::new(&selection, self.number, query.normalize)?.runs)
            }
        }
    }
}

/// The maximum number of frames to keep in memory while the explanation runs. More frames are measured again later.
const MANY_FRAMES: usize = 50_000;

/// The measured runs of one sample type. All rules on that type share them.
struct MeasuredType {
    /// The index of the sample type in the diff.
    number: usize,
    runs: MeasuredRuns,
    /// The totals of the samples that pass the filters. Percentages and floors refer to the unfiltered total, as in
    /// tables.
    total: Sides,
    /// True if chance decides which inlined functions a run shows. The runs were then measured with
    /// [`Matching::Moved`].
    flickers: bool,
    /// The frames whose presence is random. [`MeasuredType::by_chance`] fills it.
    by_chance: OnceCell<ByChance>,
}

impl MeasuredType {
    /// Returns true if the filters left no value to compare. Complete counts of 0 do not count as empty if the
    /// unfiltered total is 0 too, because 0 is then a measurement.
    fn is_empty(&self) -> bool {
        let is_nothing = |sides: &Sides| sides.iter().all(|side| side.max == 0);
        // A filter may remove every sample of a complete count by mistake, so that case counts as empty.
        is_nothing(&self.total) && (self.runs.model != Model::Exact || !is_nothing(&self.runs.total))
    }

    /// Returns the frames whose presence is random. The first call classifies all frames, which takes two thirds of the
    /// instructions of their sums.
    fn by_chance(&self, policy: CheckPolicy) -> Result<&ByChance> {
        if let Some(by_chance) = self.by_chance.get() {
            return Ok(by_chance);
        }
        let by_chance = ByChance::new(&self.runs, policy.paired)?;
        Ok(self.by_chance.get_or_init(|| by_chance))
    }

    fn new(selection: &Selection, number: usize, normalize: Normalize) -> Result<MeasuredType> {
        let runs = MeasuredRuns::new(selection.measure_type(number, Normalize::None)?, normalize)?;
        let total = runs.kept_total();
        Ok(MeasuredType { number, runs, total, flickers: false, by_chance: OnceCell::new() })
    }
}

/// The subjects that one rule compares.
struct Subjects {
    /// The subjects that the rule tests: they reach the floor, or are the total. A group and the total have no frame.
    kept: Vec<(Option<u32>, Sides)>,
    /// The frames that reach the floor, but are not tested because their visibility depends on inlining.
    inlined: Vec<(Option<u32>, Sides)>,
    /// The number of subjects, including subjects below the floor. Frames whose presence is random do not count.
    n: usize,
    /// The number of frames that the rule does not test because their presence is random, including `inlined`.
    left_out: usize,
    /// True if the expression of the rule matches no frame of either side.
    is_unmatched: bool,
}

/// A rule, with its subjects and their p-values.
struct PreparedRule<'a> {
    rule: &'a CheckRule,
    measured: &'a MeasuredType,
    floor: Decimal,
    subjects: Subjects,
    test: Test<'a>,
    /// The result of [`Test::p`] for each tested subject, or the p-value of its host.
    p_values: Vec<Option<f64>>,
    /// True if the outcome of the rule is [`Outcome::Unmatched`].
    is_unmatched: bool,
}

impl PreparedRule<'_> {
    /// Returns the test that takes part in the error rate of the check. Returns `None` if chance cannot make the rule
    /// fail: the rule compares nothing, or is not tested for chance.
    fn test_of_chance(&self, policy: CheckPolicy) -> Option<RuleTest> {
        let kept = &self.subjects.kept;
        let is_tested = !kept.is_empty() && !policy.strict && self.test.reports_chance();
        let MeasuredType { number, flickers, .. } = self.measured;
        is_tested.then(|| RuleTest {
            hypothesis: format!("{number} {flickers} {}", self.test.hypothesis(self.rule)),
            p: self.test.smallest(kept, &self.p_values),
        })
    }
}

/// Returns true if a tested subject may have grown beyond the limit, and the allow-list does not cover it.
fn may_exceed_unnoticed(test: &Test<'_>, subjects: &Subjects, findings: &[Finding], runs: &MeasuredRuns) -> bool {
    let is_allowed = |frame: &Option<u32>| {
        let name = frame.map(|f| runs.frames().label(f));
        findings.iter().any(|finding| finding.outcome == Outcome::Allowed && finding.frame == name)
    };
    subjects.kept.iter().any(|(frame, sides)| !test.rules_out_limit(sides) && !is_allowed(frame))
}

/// Returns an error if the values are numbers of samples, and the sides were sampled at different rates: ten times the
/// sampling rate does not mean ten times the work. Normalization by totals or by a factor makes the numbers comparable,
/// so the function then returns `Ok`.
fn comparable_counts(diff: &Diff, number: usize, normalize: Normalize) -> Result<()> {
    let unit = |(_, unit): &(String, String)| unit == "count";
    let types = diff.sample_types();
    let Some((kind, _)) = types.get(number).filter(|sample_type| unit(sample_type)) else { return Ok(()) };
    if !matches!(normalize, Normalize::None | Normalize::Duration) {
        return Ok(());
    }
    let Some([base, new]) = diff.rates_of_counts(number) else { return Ok(()) };
    let [base, new] = [base, new].map(|rate| crate::units::show_real(rate, "nanoseconds"));
    let others: Vec<&str> =
        types.iter().filter(|sample_type| !unit(sample_type)).map(|(kind, _)| kind.as_str()).collect();
    let advice = match others.first() {
        Some(other) => format!("compare {other}, or use --normalize total"),
        None => "use --normalize total".to_owned(),
    };
    let detail = format!(
        "{kind} were counted at different rates: a sample every {base} on the base and every {new} on the new side; {advice}"
    );
    Err(Error::new(ErrorKind::Incompatible, detail))
}

/// Returns an error if at least half of the new profiles are empty, because the median would then include the total of
/// an empty profile. Returns a warning if fewer are empty, and `None` if none is.
fn empty_runs(runs: &MeasuredRuns, diff: &Diff) -> Result<Option<String>> {
    let totals = &runs.total[1].values;
    let empty: Vec<&str> =
        diff.new_side().zip(totals).filter(|(_, total)| **total == 0).map(|(p, _)| p.name()).collect();
    let (Some(first), count) = (empty.first(), totals.len()) else { return Ok(None) };
    let kind = &runs.measure().summary().sample_type;
    if 2 * empty.len() < count {
        let (n, names) = (empty.len(), empty.join(", "));
        return Ok(Some(format!("the total of {kind} is 0 in {n} of the {count} new profiles: {names}")));
    }
    let frequency =
        if count == 1 { String::new() } else { format!(", as in {} of the {count} new profiles", empty.len()) };
    let detail = format!("the total of {kind} is 0{frequency}; there is nothing to check");
    Err(Error::new(ErrorKind::Incompatible, detail).in_input(first))
}

impl Allow {
    fn covers(&self, rule: &CheckRule, frame: Option<&str>) -> bool {
        let frame_fits = match (&self.frame, frame) {
            (Some((re, _)), Some(frame)) => re.is_match(frame.as_bytes()),
            (Some(_), None) => false,
            (None, _) => true,
        };
        frame_fits && self.rule.as_ref().is_none_or(|text| text.trim() == rule.text)
    }

    fn name(&self) -> String {
        match (&self.frame, &self.rule) {
            (Some((_, text)), _) => format!("frame {text:?}"),
            (None, rule) => format!("rule {:?}", rule.as_deref().unwrap_or_default()),
        }
    }
}
