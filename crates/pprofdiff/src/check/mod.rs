//! The check: is what changed between two sides within limits?
//!
//! ```text
//! Rules (limits, allow-list, floor) + Diff -> Check (what each rule found, one verdict)
//! ```
//!
//! Here the profiles of a side do not add up: they are replicates, runs of the same program. What is compared with
//! a limit is the median of each side, exactly (`exact`); normalized sums are rounded to whole units before. A rule
//! fails if its limit is exceeded and two equal builds would hardly ever seem to differ so much (`statistics::growth`):
//! once in a hundred checks, of which each rule has its part, and each of its frames a part of that. What is exceeded
//! within chance is inconclusive. A limit on the new side alone (a value, a part of the total) compares no sides: it
//! fails if its runs are above it by more than chance. Strict rules leave chance out.

mod exact;
mod rule;

use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use crate::diff::top::ProfileSums;
use crate::diff::{Diff, Frames, Measure, Normalize, Query, Scale, Walk};
use crate::explain::{self, ExplainOptions, Explanation};
use crate::statistics::growth::{Events, Spread};
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
    /// How limits are applied.
    pub how: How,
    /// How the causes of what fails are looked for.
    pub explain: ExplainOptions,
}

/// How limits are applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct How {
    /// Limits alone decide: what exceeds one fails, whatever chance does.
    pub strict: bool,
    /// Run i of the new side belongs to run i of the base, as when both were measured in one minute: what both have in
    /// common is no difference.
    pub paired: bool,
    /// What passes is inconclusive if a growth as large as the limit would have been missed.
    pub require_power: bool,
}

impl How {
    /// Limits alone decide, or not.
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Run i belongs to run i, or not.
    #[must_use]
    pub fn with_paired(mut self, paired: bool) -> Self {
        self.paired = paired;
        self
    }

    /// Whether what would have been missed does not pass.
    #[must_use]
    pub fn with_require_power(mut self, require_power: bool) -> Self {
        self.require_power = require_power;
        self
    }
}

/// How often a check fails, or seems to, though nothing changed.
const ALPHA: f64 = 0.01;
/// The most events of a run.
const MOST_EVENTS: f64 = 1e9;
/// Where each frame is compared by itself, one with fewer events on both sides, in all runs of it together, never fails:
/// what is rare comes in bursts, which the model does not know.
const FEWEST_EVENTS: f64 = 30.0;
/// The costliest frames show how much runs differ.
const MOST_TELLING: usize = 1_000;
/// Where each frame is compared by itself, chance makes some of a hundred exceed any limit that is not so many standard
/// deviations from no change. What exceeds it there, and no more, is no finding.
const CLEAR: f64 = 3.0;

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
    /// Within the limit, or beyond it where each frame is compared by itself and chance alone exceeds it now and then.
    Pass,
    /// The limit is exceeded, and the allow-list allows it.
    Allowed,
    /// The limit is exceeded, but by no more than chance explains; or, if power is required, too little was measured to
    /// notice a growth as large as the limit.
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
    /// How probable it is that equal builds seem to differ so much in this direction; of a limit on the new side alone,
    /// that a build at the limit seems to be so far above it. `None` if nothing was measured.
    pub p: Option<f64>,
    /// The same for any of all that the check compares (Bonferroni). The finding fails from 0.01 down.
    pub p_adjusted: Option<f64>,
    /// Of what is exceeded within chance: how many runs a side would tell such a growth, with a probability of nine in
    /// ten. `None` if more than fifty would not.
    pub runs_needed: Option<usize>,
}

/// What became of one rule.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RuleCheck {
    /// As it was written.
    pub rule: String,
    /// The worst of its findings; inconclusive if it would pass, power is required, and there is too little.
    pub outcome: Outcome,
    /// The sample type of the values.
    pub sample_type: String,
    /// The unit of the values.
    pub unit: String,
    /// True if frames are compared one by one.
    pub is_of_each: bool,
    /// How many things were compared.
    pub compared: usize,
    /// How many frames were ignored, being below the floor.
    pub below_floor: usize,
    /// The floor in percent of the total.
    pub floor: f64,
    /// Of the frames that were compared one by one: how many have so few events, or differ so much between runs, that
    /// chance alone would now and then exceed the limit. They fail if they exceed it by more than that.
    pub too_small: usize,
    /// Frames that are there by chance, which no rule on any frame compares.
    pub left_out: usize,
    /// How much runs of one build differ: the standard deviation of the log of a frame's cost.
    pub tau: f64,
    /// The least growth, in percent, that would have failed with a probability of nine in ten; not less than the limit:
    /// of what the rule is about, or of a frame with a tenth of the total where each is compared by itself. `None` of
    /// limits on the new side alone and of those below 0, of strict rules, and where nothing is compared.
    pub detectable: Option<f64>,
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
        if self.how.paired && diff.base().count() != diff.new_side().count() {
            let (base, new) = (diff.base().count(), diff.new_side().count());
            return Err(Error::query(format!("paired runs are as many on both sides, not {base} and {new}")));
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
                    let measure = selection.measure_type(number, Normalize::None)?;
                    let of_type = Measured::new(measure, explain::sampling(&selection, number)?, query.normalize)?;
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
                rules[at].why = diff.explain(&query, &[], &self.explain).ok().map(Arc::new);
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
        // Whoever names them wants them.
        let (by_chance, flickers) = match rule.subject {
            Subject::Each(None) if !self.how.strict => explain::by_chance(measured.frames())?,
            _ => (Vec::new(), false),
        };
        let cum = (flickers && rule.cost == Cost::Flat).then(|| measured.spread(Cost::Cum, self.how.paired));
        let mut left_out = 0;
        measured.each_subject(rule, |frame, values| {
            let is_leaf_by_chance = |f: u32| cum.as_ref().is_some_and(|cum| measured.is_leaf_by_chance(f, cum));
            if frame.is_some_and(|f| by_chance.get(f as usize) == Some(&true) || is_leaf_by_chance(f)) {
                left_out += 1;
                return;
            }
            n += 1;
            let sides = measured.sides(&values);
            if rule.cost == Cost::Total || measured.reaches(floor, &sides) {
                kept.push((frame, sides));
            }
        });
        if n == 0 && !matches!(rule.subject, Subject::Each(None)) {
            warnings.push(format!("the rule {:?} matches no frame", rule.text));
        }
        let compared = kept.len();
        // Each rule has its part of the errors that a check may make, and each of its frames a part of that.
        let tests = (compared.max(1) * self.rules.len()) as f64;
        // A limit on the new side alone compares no pairs.
        let of_sides = matches!(rule.limit, Limit::Growth(_) | Limit::Increase(..));
        let spread = measured.spread(rule.cost, self.how.paired && of_sides);
        let only = kept.first().filter(|_| !each).map(|(_, sides)| measured.events(sides));
        let (mut findings, mut too_small) = (Vec::new(), 0);
        for (frame, sides) in kept {
            let events = measured.events(&sides);
            let [base, new] = sides;
            let is_exceeded = measured.is_exceeded(&rule.limit, factors, &base, &new);
            let p = measured.p_value(&rule.limit, factors, &spread, &base, &events, !each);
            let p_adjusted = p.map(|p| (p * tests).min(1.0));
            let is_certain = p_adjusted.is_none_or(|p| p <= ALPHA);
            let is_one_of_many = each && !self.how.strict;
            let few = || events.iter().all(|side| side.iter().sum::<f64>() < FEWEST_EVENTS);
            let is_too_small = is_one_of_many && measured.is_too_small(&rule.limit, factors, &spread, &base, &events);
            too_small += usize::from(is_too_small);
            let mut outcome = match is_exceeded {
                false => Outcome::Pass,
                true if self.how.strict => Outcome::Fail,
                true if is_certain && is_one_of_many && few() => Outcome::Inconclusive,
                true if is_certain => Outcome::Fail,
                true if is_too_small => Outcome::Pass,
                true => Outcome::Inconclusive,
            };
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
            let ratio = measured.ratio(&rule.limit, factors, &base).clamp(1e-9, 1.0) * measured.per_event();
            let needed = || spread.runs_needed(&events, ratio, ALPHA / tests, !each);
            let runs_needed = (outcome == Outcome::Inconclusive && of_sides).then(needed).flatten();
            findings.push(Finding {
                frame,
                outcome,
                reason,
                base,
                new,
                delta,
                percent,
                share,
                p,
                p_adjusted,
                runs_needed,
            });
        }
        findings.sort_by(|a, b| {
            let by_size = b.delta.twice().abs().cmp(&a.delta.twice().abs());
            b.outcome.cmp(&a.outcome).then(by_size).then_with(|| a.frame.cmp(&b.frame))
        });
        let looks = compared > 0 && !self.how.strict;
        let power = looks.then(|| measured.detectable(&rule.limit, factors, &spread, only, ALPHA / tests)).flatten();
        let mut outcome = findings.iter().map(|f| f.outcome).max().unwrap_or(Outcome::Pass);
        if outcome == Outcome::Pass && self.how.require_power && power.is_some_and(|(least, limit)| least > limit) {
            outcome = Outcome::Inconclusive;
        }
        // What is within the limit passes, whether it would have been noticed or not.
        let detectable = power.map(|(least, limit)| least.max(limit));
        Ok(RuleCheck {
            rule: rule.text.clone(),
            outcome,
            sample_type: summary.sample_type.clone(),
            unit: summary.unit.clone(),
            is_of_each: each,
            compared,
            below_floor: n - compared,
            too_small,
            left_out,
            floor: floor.to_f64(),
            tau: spread.tau(),
            detectable,
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
    /// The value of one event on the base and on the new side, as scaled.
    event: [f64; 2],
    /// The variance between runs that other programs have.
    known: f64,
}

impl Measured {
    fn new(measure: Measure, (events, known): (Vec<f64>, f64), normalize: Normalize) -> Result<Measured> {
        let profiles = measure.profile_sums();
        let scales = scales(&measure, normalize)?;
        let of_run = |(p, scale): (&ProfileSums, &Scale)| (p.is_base, scale.apply(p.total));
        let (is_base, totals): (Vec<bool>, Vec<i64>) = profiles.iter().zip(&scales).map(of_run).unzip();
        let [base_total, new_total] = sides(&is_base, &totals);
        let event = [true, false].map(|side| {
            let runs =
                is_base.iter().zip(events.iter().zip(&scales)).filter(|(base, (e, _))| **base == side && **e > 0.0);
            let values: Vec<f64> = runs.map(|(_, (event, scale))| event * scale.factor()).collect();
            values.iter().sum::<f64>() / values.len() as f64
        });
        // Of a side without events, the other's; of two, any.
        let or = |own: f64, other: f64| [own, other].into_iter().find(|event| *event > 0.0).unwrap_or(1.0);
        // Where counting makes no noise to speak of, more events would only be rounded away.
        let least = base_total.max.max(new_total.max) as f64 / MOST_EVENTS;
        let event = [or(event[0], event[1]), or(event[1], event[0])].map(|event| event.max(least));
        Ok(Measured { measure, is_base, totals, profiles, scales, base_total, new_total, event, known })
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

    /// True if a frame costs something itself on one side alone, and no more with what it calls than chance explains: what
    /// is inlined into it is shown on the other.
    fn is_leaf_by_chance(&self, frame: u32, cum: &Spread) -> bool {
        let values = |of: fn((i64, i64)) -> i64| -> [Runs; 2] {
            let runs = self.profiles.iter().zip(&self.scales);
            self.sides(&runs.map(|(run, scale)| scale.apply(of(run.of(frame)))).collect::<Vec<i64>>())
        };
        let is_one_sided = values(|v| v.0).iter().any(|side| side.max <= 0);
        let events = self.events(&values(|v| v.1));
        let p = || cum.p_of_growth(&events, self.per_event()) * self.frames().len() as f64;
        is_one_sided && events.iter().all(|side| side.iter().sum::<f64>() > 0.0) && p() > ALPHA
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

    fn is_exceeded(&self, limit: &Limit, factors: (i128, i128), base: &Runs, new: &Runs) -> bool {
        let delta = new.median.minus(base.median);
        match limit {
            Limit::Growth(percent) => percent.is_exceeded_percentage(delta, base.median),
            Limit::Increase(most, _) => most.is_exceeded(delta, factors),
            Limit::Value(most, _) => most.is_exceeded(new.median, factors),
            Limit::Share(percent) => {
                let runs = new.values.iter().zip(&self.new_total.values);
                let over = |&(&v, &total): &(&i64, &i64)| percent.is_exceeded_percentage(v.into(), total.into());
                2 * runs.filter(over).count() > new.values.len()
            }
        }
    }

    /// The value of one event on the base by that on the new side: what equal costs are in events.
    fn per_event(&self) -> f64 {
        self.event[0] / self.event[1]
    }

    /// The events that stand behind values of the runs.
    fn events(&self, sides: &[Runs; 2]) -> Events {
        [0, 1].map(|side| sides[side].values.iter().map(|&v| v.max(0) as f64 / self.event[side]).collect())
    }

    /// How much runs differ, by all frames; or pairs of them.
    fn spread(&self, cost: Cost, paired: bool) -> Spread {
        let of = |run: &ProfileSums, frame| if cost == Cost::Flat { run.of(frame).0 } else { run.of(frame).1 };
        let sum = |frame: &u32| self.profiles.iter().map(|run| of(run, *frame) as f64).sum::<f64>();
        let mut costliest: Vec<(f64, u32)> = (0..self.frames().len() as u32).map(|f| (sum(&f), f)).collect();
        costliest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        costliest.truncate(MOST_TELLING);
        let events = |&(_, frame): &(f64, u32)| {
            let values = self.profiles.iter().zip(&self.scales);
            let values: Vec<i64> = values.map(|(run, scale)| scale.apply(of(run, frame))).collect();
            self.events(&self.sides(&values))
        };
        Spread::of_frames(costliest.iter().map(events), self.known, paired)
    }

    /// The growth that a limit allows, as a factor; 1 of limits on the new side alone, and where there was nothing.
    fn ratio(&self, limit: &Limit, factors: (i128, i128), base: &Runs) -> f64 {
        let before = base.median.to_f64();
        let ratio = match limit {
            Limit::Growth(percent) => 1.0 + percent.to_f64() / 100.0,
            Limit::Increase(..) => limit_in_unit(limit, factors).map_or(1.0, |most| (before + most) / before),
            Limit::Value(..) | Limit::Share(_) => 1.0,
        };
        if ratio.is_finite() { ratio } else { 1.0 }
    }

    /// True if chance alone would now and then exceed a limit on growth.
    fn is_too_small(
        &self,
        limit: &Limit,
        factors: (i128, i128),
        spread: &Spread,
        base: &Runs,
        events: &Events,
    ) -> bool {
        match limit {
            Limit::Growth(percent) => {
                let ratio = 1.0 + percent.to_f64() / 100.0;
                ratio >= 1.0 && ratio.ln() < CLEAR * spread.deviation(events)
            }
            Limit::Increase(..) => {
                let most = limit_in_unit(limit, factors).unwrap_or(0.0) / self.event[1];
                // If nothing changed: of nothing, at most about one event.
                let events = (base.median.to_f64() / self.event[0]).max(1.0);
                let counting: f64 = events.sqrt() * between_runs(&self.is_base);
                let whole = events * spread.tau() * between_runs(&self.is_base);
                most >= 0.0 && most < CLEAR * counting.hypot(whole)
            }
            Limit::Value(..) | Limit::Share(_) => false,
        }
    }

    /// How probable it is that chance does this or more. Against no growth at all, or the limit where that is less.
    fn p_value(
        &self,
        limit: &Limit,
        factors: (i128, i128),
        spread: &Spread,
        base: &Runs,
        events: &Events,
        is_alone: bool,
    ) -> Option<f64> {
        if events.iter().flatten().all(|&e| e <= 0.0) {
            return None;
        }
        let above = |most: f64| Some(spread.p_above(&events[1], most / self.event[1]));
        let ratio = match limit {
            Limit::Value(..) => return above(limit_in_unit(limit, factors).unwrap_or(0.0)),
            Limit::Share(percent) => return above(percent.to_f64() / 100.0 * mean(&self.new_total)),
            _ => self.ratio(limit, factors, base),
        };
        let ratio = ratio.clamp(1e-9, 1.0) * self.per_event();
        // Of many frames few runs could never show by themselves that one grew.
        let alone = spread.p_alone(events, ratio).filter(|_| is_alone);
        Some(spread.p_of_growth(events, ratio).max(alone.unwrap_or(0.0)))
    }

    /// The least growth in percent that is found, and the limit, where that is one of growth. `only` has the events of the
    /// one thing that is compared, if it is one.
    fn detectable(
        &self,
        limit: &Limit,
        factors: (i128, i128),
        spread: &Spread,
        only: Option<Events>,
        chance: f64,
    ) -> Option<(f64, f64)> {
        let m = [&self.base_total, &self.new_total].map(|side| side.values.len());
        let is_alone = only.is_some();
        let tenth = mean(&self.base_total) / self.event[0] / 10.0;
        let events = only.map_or(tenth, |events| events[0].iter().sum::<f64>() / events[0].len() as f64);
        let percent = match limit {
            Limit::Growth(percent) => percent.to_f64(),
            Limit::Increase(..) => 100.0 * limit_in_unit(limit, factors).unwrap_or(0.0) / (events * self.event[0]),
            Limit::Value(..) | Limit::Share(_) => return None,
        };
        let least = 100.0 * spread.detectable(events, m, chance, is_alone);
        // What is to become less is not a question of growth.
        (least.is_finite() && percent.is_finite() && percent >= 0.0).then_some((least, percent))
    }
}

/// The root of the sum of both sides' parts in the variance of a difference of means.
fn between_runs(is_base: &[bool]) -> f64 {
    let base = is_base.iter().filter(|base| **base).count();
    (1.0 / base as f64 + 1.0 / (is_base.len() - base) as f64).sqrt()
}

/// A limit in the values' own unit.
fn limit_in_unit(limit: &Limit, (unit, own): (i128, i128)) -> Option<f64> {
    match limit {
        Limit::Increase(most, _) | Limit::Value(most, _) => Some(most.to_f64() * own as f64 / unit as f64),
        _ => None,
    }
}

fn mean(runs: &Runs) -> f64 {
    runs.values.iter().map(|&v| v as f64).sum::<f64>() / runs.values.len() as f64
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
