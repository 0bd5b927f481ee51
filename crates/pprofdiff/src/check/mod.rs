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
//! within chance is inconclusive: a pass means that nothing that was compared exceeds its limit. A limit on the new
//! side alone (a value, a part of the total) compares no sides. It fails if its runs exceed it by more than chance
//! (`limit`). Strict rules ignore chance.
//!
//! Medians and not means as in tables: one bad run must not decide. A check that can't look does not pass: no rules, an
//! unknown sample type, or a new side of which nothing was measured are errors.

mod exact;
mod limit;
mod rule;
mod why;
mod within;

use std::cell::OnceCell;
use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use crate::diff::top::LeftOut;
use crate::diff::{Diff, Granularity, Matching, Normalize, Query, Selection, Summary};
use crate::explain::{self, ExplainOptions, Explanation};
use crate::runs::{ByChance, MeasuredRuns, Sides};
pub use crate::runs::{Halves, Runs};
use crate::sampling::{Model, Sampling};
use crate::{Error, ErrorKind, Result};
use exact::Decimal;
use limit::Test;
pub(crate) use rule::toml;
use rule::{Cost, Rule, Subject};
pub use within::Place;

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
    /// How causes are looked for.
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
    /// Say why the sides differ also where no rule fails.
    #[serde(default)]
    pub explain: bool,
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

    /// Whether causes are looked for also where no rule fails.
    #[must_use]
    pub fn with_explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }
}

/// How often a check fails, or seems to, though nothing changed.
pub const ALPHA: f64 = 0.01;

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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The value is within the limit.
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

/// What was found of one thing that a rule limits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// The frame; `None` for the total, and for frames that are taken as one.
    pub frame: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Where its function stands, where the profiles say it.
    pub place: Option<Place>,
    /// The frame with the same outcome whose stacks contain this frame's, if many frames exceed a limit on cum. `None`
    /// for the containing frame itself.
    pub within: Option<String>,
    /// Why it is allowed.
    pub reason: Option<String>,
    /// The base's runs.
    pub base: Runs,
    /// The new side's.
    pub new: Runs,
    /// The new side's median less the base's.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub delta: Halves,
    /// How far the new side's median exceeds the largest value that the limit allows, in the values' unit. Negative
    /// within the limit.
    pub excess: f64,
    /// The delta in percent of the base's median; `None` if that is 0.
    pub percent: Option<f64>,
    /// Of frames, for people: the delta in percent of the median of the base's totals; `None` if that is 0.
    #[serde(skip)]
    pub share: Option<f64>,
    /// How probable it is that equal builds seem to differ so much in this direction; of a limit on the new side alone,
    /// that a build at the limit seems to be so far above it. `None` if nothing was measured.
    pub p: Option<f64>,
    /// The same for any of all that the check compares (Bonferroni). The finding fails from [`ALPHA`] down.
    pub p_adjusted: Option<f64>,
    /// Of what is exceeded within chance: how many runs a side would tell such a growth, with a probability of nine in
    /// ten. `None` if more than fifty would not.
    pub runs_needed: Option<usize>,
}

/// What became of one rule.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How many samples stand behind the values of the base and of the new side. Unless that is known, a rule on frames fails
    /// only if it is strict.
    pub sampling: [Sampling; 2],
    /// True if frames are compared one by one.
    pub is_of_each: bool,
    /// How many things were compared.
    pub compared: usize,
    /// The median of the totals of the base's runs.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_base: Halves,
    /// That of the new side's.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_new: Halves,
    /// The new side's less the base's.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total_delta: Halves,
    /// How many frames were ignored, being below the floor.
    pub below_floor: usize,
    /// The floor in percent of the total.
    pub floor: f64,
    /// The number of frames compared one by one that do not fail, but have so few events or vary so much between runs
    /// that chance alone would occasionally exceed the limit.
    pub too_small: usize,
    /// Frames that are there by chance, which no rule on any frame compares.
    pub left_out: usize,
    /// How much runs of one build differ: the standard deviation of the log of a frame's cost.
    pub tau: f64,
    /// The least growth, in percent, that would have failed with a probability of nine in ten; not less than the limit:
    /// of what the rule is about, or of a frame with a tenth of the total where each is compared by itself. `None` of
    /// limits on the new side alone and of those below 0, of strict rules, and where nothing is compared.
    pub detectable: Option<f64>,
    /// The findings above the limit: the worst outcome first, then by `excess`. A rule on one subject always has its
    /// finding.
    pub findings: Vec<Finding>,
    /// Of a rule that fails: why, with the causes that made grow what it found; `None` without one. With [`How::explain`]
    /// why the sides differ, of the first rule of each sample type of which none fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<Explanation>>,
}

/// What became of all rules.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Check {
    /// The worst of the rules; `Pass` if all that is exceeded is allowed.
    pub verdict: Outcome,
    /// What is compared, as in other views: of the first rule's sample type, with all warnings.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// In the order in which they were added.
    pub rules: Vec<RuleCheck>,
}

impl Check {
    /// Returns true if a compared value exceeds its limit and is not on the allow-list, even if chance explains it.
    pub fn exceeds_a_limit(&self) -> bool {
        let mut findings = self.rules.iter().flat_map(|rule| &rule.findings);
        findings.any(|found| matches!(found.outcome, Outcome::Inconclusive | Outcome::Fail))
    }
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
        if self.how.paired && diff.has_repeats() {
            return Err(Error::query("paired runs must be different, and a side names one run several times"));
        }
        if self.how.paired && diff.base().count() != diff.new_side().count() {
            let (base, new) = (diff.base().count(), diff.new_side().count());
            return Err(Error::query(format!("paired runs are as many on both sides, not {base} and {new}")));
        }
        let selection = diff.select_of_runs(query)?;
        let (mut measured, mut followed): (Vec<Measured>, Vec<Measured>) = (Vec::new(), Vec::new());
        let mut used = vec![false; self.allow.len()];
        let mut warnings = Vec::new();
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let of_all = query.sample_type.as_deref().or(self.sample_type.as_deref());
            let wanted = rule.sample_type.as_deref().or(of_all);
            let number = diff.find_sample_type(wanted)?;
            comparable_counts(diff, number, query.normalize)?;
            let at = match measured.iter().position(|known| known.number == number) {
                Some(at) => at,
                None => {
                    let known = Measured::new(&selection, number, query.normalize)?;
                    if known.runs.model != Model::Exact {
                        warnings.extend(empty_runs(&known.runs, diff)?);
                    }
                    if !self.how.strict {
                        warnings.extend(diff.sampling_warnings(number));
                    }
                    if known.is_empty() {
                        let kind = &known.runs.measure().summary().sample_type;
                        warnings.push(format!("the filters leave nothing of {kind} to check, so its rules can't tell"));
                    }
                    measured.push(known);
                    measured.len() - 1
                }
            };
            let mut of_rule = &measured[at];
            if self.follows_moves(rule, &of_rule.runs, query)? {
                let known = followed.iter().position(|known: &Measured| known.number == number);
                if known.is_none() {
                    let query = query.clone().with_matching(Matching::Moved);
                    let moved = Measured::new(&diff.select(&query)?, number, query.normalize)?;
                    followed.push(Measured { flickers: true, ..moved });
                }
                of_rule = &followed[known.unwrap_or(followed.len() - 1)];
            }
            rules.push(self.apply(rule, of_rule, &mut used, &mut warnings)?);
        }
        let mut summary = Summary::clone(measured[0].runs.measure().summary());
        // Warnings about profiles do not depend on the sample type.
        warnings.splice(0..0, summary.warnings.drain(..));
        if let Some(first) = followed.first() {
            let said = |w: &&String| !warnings.contains(w);
            let more: Vec<String> = first.runs.measure().summary().warnings.iter().filter(said).cloned().collect();
            warnings.extend(more);
        }
        // The explanation selects its own frames, which take as much memory as these.
        drop((selection, followed));
        for known in measured {
            let kind = known.runs.measure().summary().sample_type.clone();
            let of_type = |rule: &RuleCheck| kind == rule.sample_type;
            let has_failed = rules.iter().any(|rule| of_type(rule) && rule.outcome == Outcome::Fail);
            if !has_failed && !self.how.explain {
                continue;
            }
            // For failed rules, keeps a small number of frames in memory, and measures a large number again.
            let number = known.number;
            let known = Some(known).filter(|known| has_failed && known.runs.frames().len() <= MANY_FRAMES);
            let measure_again = || Measured::new(&diff.select_of_runs(query)?, number, query.normalize);
            let query = query.clone().with_normalize(Normalize::None).with_sample_type(&kind);
            // Of other granularities nothing can be said, which is no error of the check.
            let Ok(all) = diff.explain(&query, &[], &self.explain) else { continue };
            if has_failed {
                let known = known.map_or_else(measure_again, Ok)?;
                let failed = rules.iter_mut().zip(&self.rules).filter(|(found, _)| found.outcome == Outcome::Fail);
                failed
                    .filter(|(found, _)| of_type(found))
                    .for_each(|(found, rule)| found.why = why::explain_rule(rule, found, &all, &known.runs));
            } else if let Some(first) = rules.iter_mut().find(|rule| of_type(rule)) {
                first.why = Some(all.into());
            }
        }
        for allow in self.allow.iter().zip(&used).filter(|(_, used)| !**used).map(|(allow, _)| allow) {
            warnings.push(format!("the allow-list's {} allowed nothing", allow.name()));
        }
        (summary.warnings, summary.query.normalize) = (warnings, query.normalize);
        let verdict = rules.iter().map(|r| r.outcome).max().filter(|&o| o != Outcome::Allowed);
        Ok(Check { verdict: verdict.unwrap_or(Outcome::Pass), summary: Arc::new(summary), rules })
    }

    /// Returns true for a rule on any frame if chance decides which of several inlined functions a profile shows. In
    /// equal builds, one inlined function then disappears and another appears, and several runs of a side can agree on
    /// that: `cum:any>+20%` failed in seven of 135 comparisons of equal builds with two runs per side. So a function
    /// that is inlined on one side counts as part of its caller on both sides, whatever the query matches names by. A
    /// frame that the rule names is compared unchanged.
    fn follows_moves(&self, rule: &Rule, runs: &MeasuredRuns, query: &Query) -> Result<bool> {
        let may = !self.how.strict && matches!(rule.subject, Subject::Each(None));
        Ok(may && query.granularity == Granularity::Functions && explain::by_chance(runs.frames())?.1)
    }

    fn apply(
        &self,
        rule: &Rule,
        measured: &Measured,
        used: &mut [bool],
        warnings: &mut Vec<String>,
    ) -> Result<RuleCheck> {
        let runs = &measured.runs;
        let is_of_each = matches!(rule.subject, Subject::Each(_));
        let floor = rule.floor.or(self.floor).unwrap_or(if is_of_each { rule::FLOOR } else { Decimal::whole(0) });
        let Subjects { kept, inlined, n, left_out } = self.subjects(rule, measured, floor)?;
        if n == 0 && !matches!(rule.subject, Subject::Each(None)) {
            warnings.push(format!("the rule {:?} matches no frame", rule.text));
        }
        let compared = kept.len();
        // Totals are compared by the limit alone then, and by what runs differ by.
        if !self.how.strict && !matches!(rule.subject, Subject::Whole) {
            let warning = runs.measure().uncounted_warning().filter(|warning| !warnings.contains(warning));
            warnings.extend(warning);
        }
        let test = Test::new(rule, runs, self.how, self.rules.len(), compared)?;
        let (mut findings, mut too_small) = (Vec::new(), 0);
        let mut of_kept: Vec<Option<f64>> = kept.iter().map(|(_, sides)| test.p(sides)).collect();
        if measured.flickers {
            let of_hosts = test.p_of_hosts(&kept, &of_kept);
            of_kept.iter_mut().zip(of_hosts).for_each(|(p, of_host)| *p = of_host.or(*p));
        }
        let of_kept = kept.iter().zip(of_kept).map(|(subject, p)| (subject, p, false));
        // Chance decides on which side these frames are shown, so they cannot fail; but what exceeds a limit is no pass.
        let of_inlined = inlined.iter().map(|subject| (subject, None, true));
        for ((frame, sides), p, is_inlined) in of_kept.chain(of_inlined) {
            let p_adjusted = p.map(|p| test.adjusted(p));
            let mut outcome = test.outcome(sides, p_adjusted);
            if is_inlined {
                outcome = outcome.min(Outcome::Inconclusive);
            } else {
                too_small += usize::from(outcome != Outcome::Fail && test.is_too_small(sides));
            }
            if outcome == Outcome::Pass && is_of_each {
                continue;
            }
            let runs_needed =
                (outcome == Outcome::Inconclusive && !is_inlined).then(|| test.runs_needed(sides)).flatten();
            let frame = frame.map(|f| runs.frames().label(f));
            let mut reason = None;
            if outcome != Outcome::Pass {
                let allow = self.allow.iter().position(|a| a.covers(rule, frame.as_deref()));
                if let Some(allow) = allow {
                    used[allow] = true;
                    outcome = Outcome::Allowed;
                    reason = Some(self.allow[allow].reason.clone());
                }
            }
            let [base, new] = sides.clone();
            let delta = new.median.minus(base.median);
            let of = |whole: f64| (whole != 0.0).then(|| 100.0 * delta.to_f64() / whole);
            let percent = of(base.median.to_f64().abs());
            let (p, p_adjusted) = (p.filter(|_| test.reports_chance()), p_adjusted.filter(|_| test.reports_chance()));
            let is_of_frames = !matches!(rule.subject, Subject::Whole);
            let share = of(runs.total[0].median.to_f64()).filter(|_| is_of_frames);
            findings.push(Finding {
                frame,
                outcome,
                place: None,
                within: None,
                reason,
                base,
                new,
                delta,
                excess: test.excess(sides),
                percent,
                share,
                p,
                p_adjusted,
                runs_needed,
            });
        }
        findings.sort_by(|a, b| {
            let by_delta = b.delta.twice().abs().cmp(&a.delta.twice().abs());
            let by_size = b.excess.total_cmp(&a.excess).then(by_delta);
            b.outcome.cmp(&a.outcome).then(by_size).then_with(|| a.frame.cmp(&b.frame))
        });
        within::nest(&mut findings, rule.cost.sum(), runs);
        within::locate(&mut findings, &runs.measure().summary().query.trim_path, runs);
        let looks = compared > 0 && !self.how.strict;
        let only = kept.first().filter(|_| !is_of_each).map(|(_, sides)| sides);
        let power = looks.then(|| test.detectable(only)).flatten();
        let mut outcome = findings.iter().map(|f| f.outcome).max().unwrap_or(Outcome::Pass);
        let is_allowed = |frame: &Option<u32>| {
            let name = frame.map(|f| runs.frames().label(f));
            findings.iter().any(|found| found.outcome == Outcome::Allowed && found.frame == name)
        };
        let would_be_missed = || match test.detectable(only) {
            Some((least, limit)) if least <= limit => false,
            _ => kept.iter().any(|(frame, sides)| !test.rules_out_limit(sides) && !is_allowed(frame)),
        };
        if outcome <= Outcome::Allowed && self.how.require_power && looks && would_be_missed() {
            outcome = Outcome::Inconclusive;
        }
        // Where filters leave nothing, what is asked was not measured, which is no pass.
        if outcome <= Outcome::Allowed && measured.is_empty() {
            outcome = Outcome::Inconclusive;
        }
        let summary = runs.measure().summary();
        let [base, new] = &runs.total;
        Ok(RuleCheck {
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
            below_floor: n - compared,
            too_small,
            left_out,
            floor: floor.to_f64(),
            tau: test.spread.tau(),
            // What is within the limit passes, whether it would have been noticed or not.
            detectable: power.map(|(least, limit)| least.max(limit)),
            findings,
            why: None,
        })
    }

    /// What a rule compares: frames that are 0 in all runs are not there.
    fn subjects(
        &self,
        rule: &Rule,
        Measured { runs, total, by_chance, .. }: &Measured,
        floor: Decimal,
    ) -> Result<Subjects> {
        let cost = rule.cost.sum();
        let frames = 0..runs.frames().len() as u32;
        let is_match = |re: &Regex, f: u32| re.is_match(runs.frames().label(f).as_bytes());
        let mut found = Subjects { kept: Vec::new(), inlined: Vec::new(), n: 0, left_out: 0 };
        let mut add = |frame: Option<u32>, sides: Sides| {
            found.n += 1;
            if rule.cost == Cost::Total || limit::reaches(floor, &sides, &runs.total) {
                found.kept.push((frame, sides));
            }
        };
        match &rule.subject {
            Subject::Whole => add(None, total.clone()),
            Subject::Together(re) => {
                let chosen: Vec<bool> = frames.map(|f| is_match(re, f)).collect();
                if chosen.contains(&true) {
                    add(None, runs.of_any(&chosen, cost));
                }
            }
            // Whoever names them wants them.
            Subject::Each(Some(re)) => frames
                .filter(|&f| is_match(re, f))
                .for_each(|f| runs.of_frame(f, cost).into_iter().for_each(|sides| add(Some(f), sides))),
            Subject::Each(None) => {
                let by_chance = match by_chance.get() {
                    _ if self.how.strict => None,
                    Some(known) => Some(known),
                    None => {
                        let new = ByChance::new(runs, self.how.paired)?;
                        Some(by_chance.get_or_init(|| new))
                    }
                };
                let (mut left_out, mut inlined) = (0, Vec::new());
                for f in frames {
                    let Some(sides) = runs.of_frame(f, cost) else { continue };
                    let Some(reason) = by_chance.and_then(|known| known.reason(f, cost, runs, ALPHA)) else {
                        add(Some(f), sides);
                        continue;
                    };
                    left_out += 1;
                    if reason == LeftOut::Inlining && limit::reaches(floor, &sides, &runs.total) {
                        inlined.push((Some(f), sides));
                    }
                }
                (found.left_out, found.inlined) = (left_out, inlined);
            }
        }
        Ok(found)
    }
}

/// The maximum number of frames to keep while searching for a cause.
const MANY_FRAMES: usize = 50_000;

/// What rules on one sample type share.
struct Measured {
    /// The sample type's.
    number: usize,
    runs: MeasuredRuns,
    /// Of what filters leave. Percentages and floors are of the whole, as in tables.
    total: Sides,
    /// Chance decides which inlined functions a run shows, so functions that moved are matched.
    flickers: bool,
    /// Worked out where a rule wants it.
    by_chance: OnceCell<ByChance>,
}

impl Measured {
    /// Returns true if nothing that rules compare was measured. A complete count of 0 is measured.
    fn is_empty(&self) -> bool {
        let is_nothing = |sides: &Sides| sides.iter().all(|side| side.max == 0);
        // What filters leave of a complete count may be nothing by mistake.
        is_nothing(&self.total) && (self.runs.model != Model::Exact || !is_nothing(&self.runs.total))
    }

    fn new(selection: &Selection, number: usize, normalize: Normalize) -> Result<Measured> {
        let runs = MeasuredRuns::new(selection.measure_type(number, Normalize::None)?, normalize)?;
        let total = runs.kept_total();
        Ok(Measured { number, runs, total, flickers: false, by_chance: OnceCell::new() })
    }
}

/// What one rule compares.
struct Subjects {
    /// Frames that reach the floor, or `None` for what is one thing.
    kept: Vec<(Option<u32>, Sides)>,
    /// Frames that reach the floor, but are shown on one side alone because of inlining.
    inlined: Vec<(Option<u32>, Sides)>,
    /// With those that do not.
    n: usize,
    left_out: usize,
}

/// Returns an error for numbers of samples that were taken at different rates: ten times the rate is not ten times the work.
/// Normalization by totals or by a factor makes them comparable.
fn comparable_counts(diff: &Diff, number: usize, normalize: Normalize) -> Result<()> {
    let unit = |(_, unit): &(String, String)| unit == "count";
    let types = diff.sample_types();
    let Some((kind, _)) = types.get(number).filter(|of| unit(of)) else { return Ok(()) };
    if !matches!(normalize, Normalize::None | Normalize::Duration) {
        return Ok(());
    }
    let Some([base, new]) = diff.rates_of_counts(number) else { return Ok(()) };
    let [base, new] = [base, new].map(|rate| crate::units::show_real(rate, "nanoseconds"));
    let others: Vec<&str> = types.iter().filter(|of| !unit(of)).map(|(kind, _)| kind.as_str()).collect();
    let advice = match others.first() {
        Some(other) => format!("compare {other}, or give --normalize total"),
        None => "give --normalize total".to_owned(),
    };
    let detail = format!(
        "{kind} were counted at different rates: a sample every {base} on the base and every {new} on the new side; {advice}"
    );
    Err(Error::new(ErrorKind::Incompatible, detail))
}

/// An error if half of the new profiles or more are empty: their median would be that of the empty ones. A warning if
/// fewer are.
fn empty_runs(runs: &MeasuredRuns, diff: &Diff) -> Result<Option<String>> {
    let totals = &runs.total[1].values;
    let empty: Vec<&str> =
        diff.new_side().zip(totals).filter(|(_, total)| **total == 0).map(|(p, _)| p.name()).collect();
    let (Some(first), of) = (empty.first(), totals.len()) else { return Ok(None) };
    let kind = &runs.measure().summary().sample_type;
    if 2 * empty.len() < of {
        let (n, names) = (empty.len(), empty.join(", "));
        return Ok(Some(format!("nothing of {kind} was measured in {n} of the {of} new profiles: {names}")));
    }
    let which = if of == 1 { String::new() } else { format!(", as in {} of the {of} new profiles", empty.len()) };
    let detail = format!("nothing of {kind} was measured: its total is 0{which}; there is nothing to check");
    Err(Error::new(ErrorKind::Incompatible, detail).in_input(first))
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
