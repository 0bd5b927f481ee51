//! The check: is what changed between two sides within limits?
//!
//! ```text
//! Rules (limits, allow-list, floor) + Diff -> Check (what each rule found, one verdict)
//! ```
//!
//! Here the profiles of a side do not add up: they are replicates, runs of the same program. What is compared with
//! a limit is the median of each side. A rule fails if the limit is exceeded and the two sides' ranges are apart;
//! exceeded by sides that overlap is inconclusive. A limit on the new side alone (a value, a part of the total)
//! compares no sides: it fails if all runs exceed it, and is inconclusive if only most do. With one run a side, limits
//! alone decide. P-values are reported and decide nothing (`rank`). No verdict depends on a rounded number (`exact`),
//! except that normalized sums are rounded to whole units before anything is compared.

mod exact;
mod rank;
mod rule;

use std::sync::Arc;

use regex::bytes::Regex;
use serde::Serialize;

use crate::diff::top::ProfileSums;
use crate::diff::{Diff, Frames, Measure, Normalize, Query, Scale, Walk};
use crate::explain::{ExplainOptions, Explanation};
use crate::{Error, ErrorKind, Result};
use exact::Decimal;
pub use exact::Halves;
pub(crate) use rule::toml;
use rule::{Cost, Limit, Rule, Subject};

/// Rules, and what is allowed to break them.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    allow: Vec<Allow>,
    /// In percent.
    floor: Option<Decimal>,
    sample_type: Option<String>,
}

/// Something that may exceed its limit.
#[derive(Debug, Clone)]
struct Allow {
    /// Which frames, with the expression as it was written.
    frame: Option<(Regex, String)>,
    /// Which rule, as it is written; any if not given.
    rule: Option<String>,
    reason: String,
}

/// What became of a rule, or of one frame under it. The larger outranks the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Within the limit.
    Pass,
    /// The limit is exceeded, and the allow-list allows it.
    Allowed,
    /// The limit is exceeded, but the runs of the two sides overlap.
    Inconclusive,
    /// The limit is exceeded.
    Fail,
}

impl Outcome {
    /// As results spell it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Allowed => "allowed",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Fail => "fail",
        }
    }
}

/// One side's values of one thing, over its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Runs {
    /// Of an even number of runs, the mean of the two in the middle.
    pub median: Halves,
    /// The least.
    pub min: i64,
    /// The largest.
    pub max: i64,
    /// In the order of the profiles.
    pub values: Vec<i64>,
}

/// What was found of one thing that a rule limits.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The frame; `None` for the total, and for frames that are taken as one.
    pub frame: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it is allowed.
    pub reason: Option<String>,
    /// The base's runs.
    pub base: Runs,
    /// The new side's.
    pub new: Runs,
    /// The new side's median less the base's.
    pub delta: Halves,
    /// The delta in percent of the base's median; `None` if that is 0.
    pub percent: Option<f64>,
    /// Of frames, for people: the delta in percent of the median of the base's totals; `None` if that is 0.
    #[serde(skip)]
    pub share: Option<f64>,
    /// Of the rank test, two-sided; `None` unless both sides have several runs.
    pub p: Option<f64>,
    /// Corrected for all that the rule compared (Benjamini-Hochberg).
    pub p_adjusted: Option<f64>,
}

/// What became of one rule.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RuleCheck {
    /// As it was written.
    pub rule: String,
    /// The worst of its findings.
    pub outcome: Outcome,
    /// The sample type of the values.
    pub sample_type: String,
    /// The unit of the values.
    pub unit: String,
    /// How many things were compared.
    pub compared: usize,
    /// How many frames were ignored, being below the floor.
    pub below_floor: usize,
    /// The floor in percent of the total.
    pub floor: f64,
    /// What exceeds the limit, the worst first; of a rule on one thing that thing, in any case.
    pub findings: Vec<Finding>,
    /// Why the sides differ, of the first rule of each sample type that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<Explanation>>,
}

/// What became of all rules.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// The worst of the rules; `Pass` if all that is exceeded is allowed.
    pub verdict: Outcome,
    /// The base's profiles.
    pub base: Vec<String>,
    /// The new side's profiles.
    pub new: Vec<String>,
    /// How the runs of the new side were scaled.
    #[serde(skip)]
    pub normalize: Normalize,
    /// In the order in which they were added.
    pub rules: Vec<RuleCheck>,
    /// What a user should know before trusting the verdict.
    pub warnings: Vec<String>,
}

impl Rules {
    /// Reads the table `check` of a `pprofdiff.toml`.
    ///
    /// # Errors
    /// Invalid TOML, unknown keys, or an invalid rule.
    pub fn from_toml(text: &str) -> Result<Rules> {
        rule::from_toml(text)
    }

    /// Adds a rule: `[TYPE:]total|flat|cum[:any|:each=RE|:regex=RE]>LIMIT`.
    ///
    /// # Errors
    /// An invalid rule.
    pub fn fail_on(&mut self, rule: &str) -> Result<()> {
        self.rules.push(rule.parse()?);
        Ok(())
    }

    /// Ignores frames below this part of the total (`0.5%`) on both sides, for rules without a floor of their own.
    ///
    /// # Errors
    /// Not a percentage.
    pub fn set_floor(&mut self, floor: &str) -> Result<()> {
        self.floor = Some(rule::percent(floor)?);
        Ok(())
    }

    /// Applies all rules to what a query selects of a diff, of which each profile is a run.
    ///
    /// The query's sample type is that of rules that name none, before that of the configuration. Its normalization scales
    /// each run of the new side by itself, to the median of the base's totals or durations, or all by one factor: sums
    /// are exact before, and rounded once to whole units; rules are applied to what that gives.
    ///
    /// # Errors
    /// No rules; one profile alone; a sample type that not all profiles have, or whose total is 0 in half of the new
    /// profiles or more; a limit in a unit that does not convert, or without one where the values have one; a
    /// normalization by zero or to values that no longer fit.
    pub fn check(&self, diff: &Diff, query: &Query) -> Result<Check> {
        if self.rules.is_empty() {
            return Err(Error::query("there are no rules to check; write one such as total>+5%"));
        }
        if !diff.is_two_sided() {
            return Err(Error::query("a check compares two sides; there is only one profile"));
        }
        let selection = diff.select(query)?;
        let mut measured: Vec<(usize, Measured)> = Vec::new();
        let mut used = vec![false; self.allow.len()];
        let mut warnings = Vec::new();
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let of_all = query.sample_type.as_deref().or(self.sample_type.as_deref());
            let wanted = rule.sample_type.as_deref().or(of_all);
            let number = diff.find_sample_type(wanted)?;
            let at = match measured.iter().position(|(known, _)| *known == number) {
                Some(at) => at,
                None => {
                    let of_type = Measured::new(selection.measure_type(number, Normalize::None)?, query.normalize)?;
                    warnings.extend(of_type.empty_runs(diff)?);
                    measured.push((number, of_type));
                    measured.len() - 1
                }
            };
            rules.push(self.apply(rule, &measured[at].1, &mut used, &mut warnings)?);
        }
        for at in 0..rules.len() {
            let is_told = |other: &RuleCheck| other.why.is_some() && other.sample_type == rules[at].sample_type;
            if rules[at].outcome == Outcome::Fail && !rules[..at].iter().any(is_told) {
                let query = query.clone().with_normalize(Normalize::None).with_sample_type(&rules[at].sample_type);
                // Of other granularities nothing can be said, which is no error of the check.
                rules[at].why = diff.explain(&query, &[], &ExplainOptions::default()).ok().map(Arc::new);
            }
        }
        // Warnings about profiles do not depend on the sample type.
        warnings.splice(0..0, measured[0].1.measure.summary().warnings.iter().cloned());
        for allow in self.allow.iter().zip(&used).filter(|(_, used)| !**used).map(|(allow, _)| allow) {
            warnings.push(format!("the allow-list's {} allowed nothing", allow.name()));
        }
        let verdict = rules.iter().map(|r| r.outcome).max().filter(|&o| o != Outcome::Allowed);
        Ok(Check {
            verdict: verdict.unwrap_or(Outcome::Pass),
            base: diff.base().map(|p| p.name().to_owned()).collect(),
            new: diff.new_side().map(|p| p.name().to_owned()).collect(),
            normalize: query.normalize,
            rules,
            warnings,
        })
    }

    fn apply(
        &self,
        rule: &Rule,
        measured: &Measured,
        used: &mut [bool],
        warnings: &mut Vec<String>,
    ) -> Result<RuleCheck> {
        let summary = measured.measure.summary();
        let factors = rule.factors(&summary.unit)?;
        let each = matches!(rule.subject, Subject::Each(_));
        let floor = rule.floor.or(self.floor).unwrap_or(if each { rule::FLOOR } else { Decimal::whole(0) });
        let mut n = 0;
        let mut kept: Vec<(Option<u32>, [Runs; 2])> = Vec::new();
        measured.each_subject(rule, |frame, values| {
            n += 1;
            let sides = measured.sides(&values);
            if rule.cost == Cost::Total || measured.reaches(floor, &sides) {
                kept.push((frame, sides));
            }
        });
        if n == 0 && !matches!(rule.subject, Subject::Each(None)) {
            warnings.push(format!("the rule {:?} matches no frame", rule.text));
        }
        let several = kept.first().is_some_and(|(_, [b, n])| b.values.len() > 1 && n.values.len() > 1);
        let p: Vec<f64> = match several {
            true => kept.iter().map(|(_, [b, n])| rank::p_value(&b.values, &n.values)).collect(),
            false => Vec::new(),
        };
        let p_adjusted = rank::adjusted(&p);
        let compared = kept.len();
        let mut findings = Vec::new();
        for (i, (frame, [base, new])) in kept.into_iter().enumerate() {
            let mut outcome = measured.outcome(&rule.limit, factors, &base, &new);
            if outcome == Outcome::Pass && each {
                continue;
            }
            let frame = frame.map(|f| measured.frames().label(f));
            let mut reason = None;
            if outcome != Outcome::Pass {
                let allow = self.allow.iter().position(|a| a.covers(rule, frame.as_deref()));
                if let Some(allow) = allow {
                    used[allow] = true;
                    outcome = Outcome::Allowed;
                    reason = Some(self.allow[allow].reason.clone());
                }
            }
            let delta = new.median.minus(base.median);
            let whole = base.median.to_f64().abs();
            let percent = (whole != 0.0).then(|| 100.0 * delta.to_f64() / whole);
            let total = measured.base_total.median.to_f64();
            let of_frames = !matches!(rule.subject, Subject::Whole);
            let share = (of_frames && total != 0.0).then(|| 100.0 * delta.to_f64() / total);
            let (p, p_adjusted) = (p.get(i).copied(), p_adjusted.get(i).copied());
            findings.push(Finding { frame, outcome, reason, base, new, delta, percent, share, p, p_adjusted });
        }
        findings.sort_by(|a, b| {
            let by_size = b.delta.twice().abs().cmp(&a.delta.twice().abs());
            b.outcome.cmp(&a.outcome).then(by_size).then_with(|| a.frame.cmp(&b.frame))
        });
        Ok(RuleCheck {
            rule: rule.text.clone(),
            outcome: findings.iter().map(|f| f.outcome).max().unwrap_or(Outcome::Pass),
            sample_type: summary.sample_type.clone(),
            unit: summary.unit.clone(),
            compared,
            below_floor: n - compared,
            floor: floor.to_f64(),
            findings,
            why: None,
        })
    }
}

impl Allow {
    fn covers(&self, rule: &Rule, frame: Option<&str>) -> bool {
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

/// One sample type of a diff, run by run. Lists over the runs are in the order of [`Measure::profile_sums`].
struct Measured {
    measure: Measure,
    is_base: Vec<bool>,
    totals: Vec<i64>,
    profiles: Vec<ProfileSums>,
    scales: Vec<Scale>,
    base_total: Runs,
    new_total: Runs,
}

impl Measured {
    fn new(measure: Measure, normalize: Normalize) -> Result<Measured> {
        let profiles = measure.profile_sums();
        let scales = scales(&measure, normalize)?;
        let of_run = |(p, scale): (&ProfileSums, &Scale)| (p.is_base, scale.apply(p.total));
        let (is_base, totals): (Vec<bool>, Vec<i64>) = profiles.iter().zip(&scales).map(of_run).unzip();
        let [base_total, new_total] = sides(&is_base, &totals);
        Ok(Measured { measure, is_base, totals, profiles, scales, base_total, new_total })
    }

    fn frames(&self) -> &Frames {
        self.measure.frames()
    }

    fn sides(&self, values: &[i64]) -> [Runs; 2] {
        sides(&self.is_base, values)
    }

    /// Calls `f` with what a rule is about, each with its values: frames that are 0 in all runs are not there.
    fn each_subject(&self, rule: &Rule, mut f: impl FnMut(Option<u32>, Vec<i64>)) {
        let frames = self.frames();
        let is_match = |re: &Regex, f: u32| re.is_match(frames.label(f).as_bytes());
        let cost =
            |((flat, cum), scale): ((i64, i64), &Scale)| scale.apply(if rule.cost == Cost::Flat { flat } else { cum });
        match &rule.subject {
            Subject::Whole => f(None, self.totals.clone()),
            Subject::Together(re) => {
                let chosen: Vec<bool> = (0..frames.len() as u32).map(|f| is_match(re, f)).collect();
                if chosen.contains(&true) {
                    let sums = self.measure.profile_sums_of_any(&chosen);
                    f(None, sums.into_iter().zip(&self.scales).map(cost).collect());
                }
            }
            Subject::Each(re) => {
                for frame in (0..frames.len() as u32).filter(|&f| re.as_ref().is_none_or(|re| is_match(re, f))) {
                    let sums = self.profiles.iter().map(|run| run.of(frame));
                    let values: Vec<i64> = sums.zip(&self.scales).map(cost).collect();
                    if values.iter().any(|&v| v != 0) {
                        f(Some(frame), values);
                    }
                }
            }
        }
    }

    /// True if it is large enough, on one of the sides, to be looked at.
    fn reaches(&self, floor: Decimal, [base, new]: &[Runs; 2]) -> bool {
        let large = |v: &Runs, total: &Runs| floor.is_reached_by(v.median, total.median);
        large(base, &self.base_total) || large(new, &self.new_total)
    }

    /// An error if half of the new profiles or more are empty: their median would be that of the empty ones. A
    /// warning if fewer are.
    fn empty_runs(&self, diff: &Diff) -> Result<Option<String>> {
        let totals = &self.new_total.values;
        let empty: Vec<&str> =
            diff.new_side().zip(totals).filter(|(_, total)| **total == 0).map(|(p, _)| p.name()).collect();
        let (Some(first), of) = (empty.first(), totals.len()) else { return Ok(None) };
        let kind = &self.measure.summary().sample_type;
        if 2 * empty.len() < of {
            let (n, names) = (empty.len(), empty.join(", "));
            return Ok(Some(format!("nothing of {kind} was measured in {n} of the {of} new profiles: {names}")));
        }
        let which = if of == 1 { String::new() } else { format!(", as in {} of the {of} new profiles", empty.len()) };
        let detail = format!("nothing of {kind} was measured: its total is 0{which}; there is nothing to check");
        Err(Error::new(ErrorKind::Incompatible, detail).in_input(first))
    }

    fn outcome(&self, limit: &Limit, factors: (i128, i128), base: &Runs, new: &Runs) -> Outcome {
        let delta = new.median.minus(base.median);
        let (exceeded, certain) = match limit {
            Limit::Growth(percent) => (percent.is_exceeded_percentage(delta, base.median), apart(base, new)),
            Limit::Increase(most, _) => (most.is_exceeded(delta, factors), apart(base, new)),
            Limit::Value(most, _) => (most.is_exceeded(new.median, factors), most.is_exceeded(new.min.into(), factors)),
            Limit::Share(percent) => {
                let runs = new.values.iter().zip(&self.new_total.values);
                let over = |&(&v, &total): &(&i64, &i64)| percent.is_exceeded_percentage(v.into(), total.into());
                let n_over = runs.filter(over).count();
                (2 * n_over > new.values.len(), n_over == new.values.len())
            }
        };
        match (exceeded, certain) {
            (false, _) => Outcome::Pass,
            (true, true) => Outcome::Fail,
            (true, false) => Outcome::Inconclusive,
        }
    }
}

/// True if the two sides' ranges do not overlap. One run a side is not a range.
fn apart(base: &Runs, new: &Runs) -> bool {
    base.values.len() == 1 && new.values.len() == 1 || base.max < new.min || new.max < base.min
}

/// What each profile's sums are scaled by: runs are replicates, so each one of the new side is brought to the base's
/// median by itself. A run of which nothing was measured stays empty, and is warned of.
fn scales(measure: &Measure, normalize: Normalize) -> Result<Vec<Scale>> {
    let amount = |walk: &Walk<'_>| match normalize {
        Normalize::Duration => walk.input.profile.duration_nanos(),
        _ => walk.sum(),
    };
    let base = Runs::new(measure.walks_of(true).map(|walk| amount(&walk)).collect()).median;
    let scale = |walk: Walk<'_>| {
        if walk.input.base || walk.total() == 0 {
            return Ok(Scale::One);
        }
        let quotient = base.over(amount(&walk));
        let scale = Scale::new(normalize, quotient, quotient)?;
        scale.check(0, walk.total())?;
        Ok(scale)
    };
    measure.walks().map(|walk| scale(walk.clone()).map_err(|e: Error| e.in_input(walk.input.profile.name()))).collect()
}

fn sides(is_base: &[bool], values: &[i64]) -> [Runs; 2] {
    [true, false].map(|side| {
        let of_side = is_base.iter().zip(values).filter(|(base, _)| **base == side);
        Runs::new(of_side.map(|(_, &value)| value).collect())
    })
}

impl Runs {
    /// Of at least one value.
    fn new(values: Vec<i64>) -> Runs {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let median = Halves::median(&sorted);
        Runs { median, min: sorted[0], max: sorted[sorted.len() - 1], values }
    }
}
