//! Tests one rule against the runs: is its limit exceeded, and could chance explain it?
//!
//! The comparison with the limit is exact, except the rounded median of an even number of shares ([`Limit::Share`]).
//! The test of chance depends on the limit:
//! - A limit on growth is tested against two equal builds. A limit below 0 is tested against a build that grew by
//!   exactly the limit.
//! - A limit on the new side alone is tested against a build whose cost is exactly at the limit.
//!
//! The limit decides, and chance has a veto: the null hypothesis is "no change", and not "a change as large as the
//! limit". A limit of 20 % therefore reports a growth of 30 % once the runs show that it is a growth. A veto makes an
//! exceeded limit inconclusive and never a pass, so a stricter limit cannot pass where a looser limit does not.

use super::exact::Decimal;
use super::rule::{CheckRule, Limit, RuleCost, Subject};
use super::{ALPHA, CheckPolicy, Outcome};
use crate::runs::{MeasuredRuns, Runs, Sides};
use crate::sampling::Model;
use crate::statistics::growth::Spread;
use crate::{Result, Sort};

/// The minimum distance in standard deviations between no change and a limit on each of many frames. A frame with a
/// smaller distance may exceed the limit by chance alone, and counts as too small ([`Test::is_too_small`]).
const CLEAR: f64 = 3.0;

/// The p-value above which chance explains the growth of a host. A host is a caller that may have contained an
/// inlined frame in the base ([`Test::p_of_hosts`]). Without this test, one in ten comparisons of equal builds fails,
/// so this threshold determines the error rate of the check.
const ALPHA_OF_HOST: f64 = 0.02;

impl RuleCost {
    /// Returns the frame sum that the rule compares. The total is the cum of the root, which contains all other frames.
    pub(super) fn sum(self) -> Sort {
        if self == RuleCost::Flat { Sort::Flat } else { Sort::Cum }
    }
}

/// The test of one rule: its limit in the unit of the values, the variation between runs, and the accepted error rate.
pub(super) struct Test<'a> {
    runs: &'a MeasuredRuns,
    limit: &'a Limit,
    cost: Sort,
    /// The factors of [`CheckRule::factors`].
    factors: (i128, i128),
    pub spread: Spread,
    policy: CheckPolicy,
    /// The number of comparisons of this rule, at least 1: the factor of the Bonferroni correction.
    comparisons: f64,
    /// The largest corrected p-value that fails: [`ALPHA`], or less if the rules of the check share it (`levels`).
    pub level: f64,
    /// True if each frame is compared separately.
    is_of_each: bool,
    /// True if frames are compared, separately or as a group. False if the total is compared.
    is_of_frames: bool,
}

impl<'a> Test<'a> {
    /// Prepares the test of a rule that makes `compared` comparisons and divides its error rate among them. The error
    /// rate is [`ALPHA`] until the caller sets [`Test::level`].
    ///
    /// # Errors
    /// Returns an error if the unit of the limit does not convert, or if the limit lacks a unit and the values have
    /// one.
    pub(super) fn new(
        rule: &'a CheckRule,
        runs: &'a MeasuredRuns,
        policy: CheckPolicy,
        compared: usize,
    ) -> Result<Test<'a>> {
        let factors = rule.factors(&runs.measure().summary().unit)?;
        let spread = match (&rule.subject, rule.limit.is_of_sides()) {
            (Subject::Whole, true) => runs.spread_of_total(policy.paired),
            // A limit on the new side alone compares no pairs.
            (_, is_of_sides) => runs.spread(rule.cost.sum(), policy.paired && is_of_sides),
        };
        let comparisons = compared.max(1) as f64;
        let is_of_each = matches!(rule.subject, Subject::Each(_));
        let is_of_frames = !matches!(rule.subject, Subject::Whole);
        Ok(Test {
            runs,
            limit: &rule.limit,
            cost: rule.cost.sum(),
            factors,
            spread,
            policy,
            comparisons,
            level: ALPHA,
            is_of_each,
            is_of_frames,
        })
    }

    /// Returns the outcome for one subject, before the allow-list. `p` is the adjusted result of [`Test::p`]; `None`
    /// does not excuse an exceeded limit.
    pub(super) fn outcome(&self, sides: &Sides, p: Option<f64>) -> Outcome {
        let is_certain = p.is_none_or(|p| p <= self.level);
        match self.is_exceeded(sides) {
            false => Outcome::Pass,
            true if self.policy.strict => Outcome::Fail,
            // Complete counts have no sampling noise, so only runs differ. Even the closest runs of both sides must
            // exceed the limit.
            true if self.runs.model == Model::Exact && self.is_exceeded(&nearest(sides)) => Outcome::Fail,
            true if self.runs.model == Model::Exact => Outcome::Inconclusive,
            true if self.is_of_frames && self.runs.model == Model::Unknown => Outcome::Inconclusive,
            true if is_certain && self.is_of_each && self.runs.is_rare(sides) => Outcome::Inconclusive,
            true if is_certain => Outcome::Fail,
            true => Outcome::Inconclusive,
        }
    }

    /// Returns true if results contain p-values. Complete counts have none, because they are not tested for chance. If
    /// the number of samples is unknown, only the total of several runs has one, because those runs show its variation.
    pub(super) fn reports_chance(&self) -> bool {
        match self.runs.model {
            Model::Counted => true,
            Model::Exact => false,
            Model::Unknown => !self.is_of_frames && !self.runs.is_single(),
        }
    }

    /// Returns how far the new side's median exceeds the largest value that the limit allows, in the unit of the
    /// values. The result is negative within the limit, and serves ordering and display: [`Test::is_exceeded`] decides
    /// exactly.
    pub(super) fn excess(&self, [base, new]: &Sides) -> f64 {
        let (before, after) = (base.median.to_f64(), new.median.to_f64());
        let allowed = match self.limit {
            Limit::Growth(percent) => before + percent.to_f64() / 100.0 * before.abs(),
            Limit::Increase(..) => before + self.in_unit(),
            Limit::Value(..) => self.in_unit(),
            Limit::Share(percent) => percent.to_f64() / 100.0 * self.runs.total[1].median.to_f64(),
        };
        after - allowed
    }

    /// Returns true if these runs rule out a growth as large as the limit: a build with that growth would hardly ever
    /// appear to have grown so little. Returns true for complete counts, which always show it, and for limits on the
    /// new side alone. Returns false if the number of samples does not permit a p-value, if no run has a positive
    /// value, and for a limit that is no positive finite factor of the base's median.
    pub(super) fn rules_out_limit(&self, sides: &Sides) -> bool {
        if !self.reports_chance() {
            return self.runs.model == Model::Exact;
        }
        let [base, _] = sides;
        let before = base.median.to_f64();
        let ratio = match self.limit {
            Limit::Growth(percent) => growth(percent),
            Limit::Increase(..) => (before + self.in_unit()) / before,
            Limit::Value(..) | Limit::Share(_) => return true,
        };
        let events = self.runs.events(sides);
        if !ratio.is_finite() || ratio <= 0.0 || events.iter().flatten().all(|&e| e <= 0.0) {
            return false;
        }
        let p_of_more = if self.is_of_each { Spread::p_of_growth } else { Spread::p_of_one };
        // The probability of growing so little is the upper tail with the sides exchanged. It is not one minus the
        // other tail: for a single subject, the larger of two p-values counts in each direction.
        let swapped = [events[1].clone(), events[0].clone()];
        let p = p_of_more(&self.spread, &swapped, 1.0 / (ratio * self.runs.per_event()));
        self.adjusted(p) <= self.level
    }

    /// Returns the standard deviation between runs of the log of a typical frame's cost, or of the total.
    pub(super) fn tau(&self) -> f64 {
        self.spread.tau_of_one(&self.runs.events(&self.runs.total))
    }

    fn is_exceeded(&self, [base, new]: &Sides) -> bool {
        let delta = new.median.minus(base.median);
        match self.limit {
            Limit::Growth(percent) => percent.is_exceeded_percentage(delta, base.median),
            Limit::Increase(limit, _) => limit.is_exceeded(delta, self.factors),
            Limit::Value(limit, _) => limit.is_exceeded(new.median, self.factors),
            Limit::Share(percent) => {
                let runs = new.values.iter().zip(&self.runs.total[1].values);
                let mut above: Vec<f64> = runs.map(|(&v, &total)| percent.excess(v.into(), total.into())).collect();
                above.sort_by(f64::total_cmp);
                // The median of the shares. An even number of runs has two middle values, and the sign of their sum
                // decides.
                above[(above.len() - 1) / 2] + above[above.len() / 2] > 0.0
            }
        }
    }

    /// Returns true for one of many frames if chance alone would occasionally exceed a limit on growth of 0 or more.
    /// Returns false if chance is not tested ([`CheckPolicy::strict`], or see [`Test::reports_chance`]).
    pub(super) fn is_too_small(&self, sides: &Sides) -> bool {
        if !self.is_of_each || self.policy.strict || !self.reports_chance() {
            return false;
        }
        let runs = self.runs;
        match self.limit {
            Limit::Growth(percent) => {
                let ratio = growth(percent);
                ratio >= 1.0 && ratio.ln() < CLEAR * self.spread.deviation(&runs.events(sides))
            }
            Limit::Increase(..) => {
                let increase = self.in_unit() / runs.event[1];
                // The noise if the base did not change. A frame without samples in the base may still vary by about one
                // event.
                let events = (sides[0].median.to_f64() / runs.event[0]).max(1.0);
                let deviation = events.sqrt().hypot(events * self.spread.tau()) * runs.between();
                increase >= 0.0 && increase < CLEAR * deviation
            }
            Limit::Value(..) | Limit::Share(_) => false,
        }
    }

    /// Returns the probability that chance alone produces this growth or more. The null hypothesis is no growth, or a
    /// growth equal to the limit if that is below zero. For a limit on the new side alone, it is a cost equal to the
    /// limit. Returns `None` if no run has a positive value.
    pub(super) fn p(&self, sides: &Sides) -> Option<f64> {
        let events = self.runs.events(sides);
        if events.iter().flatten().all(|&e| e <= 0.0) {
            return None;
        }
        let above = |value: f64| Some(self.spread.p_above(&events[1], value / self.runs.event[1]));
        match self.limit {
            Limit::Value(..) => return above(self.in_unit()),
            Limit::Share(percent) => return above(percent.to_f64() / 100.0 * self.runs.total[1].mean()),
            Limit::Growth(_) | Limit::Increase(..) => {}
        }
        let ratio = self.ratio(sides);
        // In a rule on many frames, a few runs of one frame could never show its growth by themselves.
        let p = if self.is_of_each { Spread::p_of_growth } else { Spread::p_of_one };
        Some(p(&self.spread, &events, ratio))
    }

    /// Returns, for each subject that would fail, the probability that chance explains the growth of its host. The host
    /// is the caller that may have contained the frame in the base. It matters if inlined functions are visible in some
    /// runs only: a frame that merely became visible did not make its host grow, while a frame that became more
    /// expensive did. The entry is `None` if the subject would not fail or did not grow, if there is no host, or if the
    /// host grew by more than chance explains. All entries are `None` for rules on a single subject, and for limits on
    /// the new side alone.
    pub(super) fn p_of_hosts(&self, kept: &[(Option<u32>, Sides)], p: &[Option<f64>]) -> Vec<Option<f64>> {
        let grew = |[base, new]: &Sides| new.median.minus(base.median).to_f64();
        // The level of the rule depends on these results. It is never above `ALPHA`.
        let would_fail = |i: &usize| p[*i].is_some_and(|p| self.adjusted(p) <= ALPHA) && grew(&kept[*i].1) > 0.0;
        let failing: Vec<usize> = (0..kept.len()).filter(would_fail).collect();
        let grown: Vec<(u32, f64)> = failing.iter().filter_map(|&i| Some((kept[i].0?, grew(&kept[i].1)))).collect();
        let mut p_values = vec![None; kept.len()];
        if grown.len() < failing.len() || grown.is_empty() || !self.limit.is_of_sides() {
            return p_values;
        }
        for (i, host) in failing.into_iter().zip(self.runs.hosts(&grown, self.cost)) {
            let sides = host.and_then(|host| self.runs.of_frame(host, Sort::Cum));
            let p = sides.map(|sides| self.spread.p_of_growth(&self.runs.events(&sides), self.runs.per_event()));
            p_values[i] = p.filter(|p| *p > ALPHA_OF_HOST);
        }
        p_values
    }

    /// Returns the p-value times the number of comparisons of the rule (Bonferroni), and at most 1.
    pub(super) fn adjusted(&self, p: f64) -> f64 {
        (p * self.comparisons).min(1.0)
    }

    /// Returns the smallest corrected p-value of the subjects, at most 1. Ignores the subjects that cannot fail because
    /// they have too few samples. `p` has the results of [`Test::p`].
    pub(super) fn smallest(&self, kept: &[(Option<u32>, Sides)], p: &[Option<f64>]) -> f64 {
        let can_fail = |sides: &Sides| !(self.is_of_each && self.runs.is_rare(sides));
        let p_values = kept.iter().zip(p).filter(|((_, sides), _)| can_fail(sides)).filter_map(|(_, p)| *p);
        p_values.map(|p| self.adjusted(p)).fold(1.0, f64::min)
    }

    /// Returns a name of the tested hypothesis. Rules with the same name have the same p-values: a positive limit on
    /// growth does not influence the p-value of an unchanged build.
    pub(super) fn hypothesis(&self, rule: &CheckRule) -> String {
        let subject = match &rule.subject {
            Subject::Whole => "total".to_owned(),
            Subject::Each(None) => "any".to_owned(),
            Subject::Each(Some(re)) => format!("each={re}"),
            Subject::Together(re) => format!("regex={re}"),
        };
        let limit = match &rule.limit {
            Limit::Growth(limit) | Limit::Increase(limit, _) if limit.to_f64() >= 0.0 => "growth".to_owned(),
            limit => format!("{limit:?}"),
        };
        format!("{:?} {subject} {} {limit}", self.cost, self.comparisons)
    }

    /// Returns the number of runs per side that would distinguish this growth from chance. Returns `None` for a limit
    /// on the new side alone, without p-values ([`Test::reports_chance`]), for a value that did not grow, and if more
    /// runs than the maximum are necessary.
    pub(super) fn runs_needed(&self, sides: &Sides) -> Option<usize> {
        let (events, chance) = (self.runs.events(sides), self.level / self.comparisons);
        let needed = || self.spread.runs_needed(&events, self.ratio(sides), chance, !self.is_of_each);
        (self.limit.is_of_sides() && self.reports_chance()).then(needed).flatten()
    }

    /// Returns the growth that this rule detects. The growth is that of the single compared subject, or of a typical
    /// frame with a tenth of the total. Returns `None` for limits on the new side alone, for limits below 0, without
    /// p-values ([`Test::reports_chance`]), and if a result is not finite.
    pub(super) fn detectable(&self, only: Option<&Sides>) -> Option<Detectable> {
        if !self.reports_chance() {
            return None;
        }
        let runs = self.runs;
        let m = runs.total.each_ref().map(|side| side.values.len());
        let tenth = runs.total[0].mean() / 10.0;
        let value =
            only.map_or(tenth, |[base, _]| base.values.iter().map(|&v| v.max(0) as f64).sum::<f64>() / m[0] as f64);
        let chance = self.level / self.comparisons;
        let percent = match self.limit {
            Limit::Growth(percent) => percent.to_f64(),
            Limit::Increase(..) => 100.0 * self.in_unit() / value,
            Limit::Value(..) | Limit::Share(_) => return None,
        };
        // The growth beyond `factor` that is distinguished from it nine times in ten.
        let beyond = |factor: f64, chance: f64| match only {
            Some(sides) => self.spread.detectable_alone(&runs.events(sides), factor * runs.per_event(), chance),
            None => self.spread.detectable(value / runs.event[0], factor * runs.per_event(), m, chance),
        };
        let beyond_chance = 100.0 * beyond(1.0, chance);
        // A limit below zero demands a reduction, so a detectable growth has no meaning for it.
        if !(beyond_chance.is_finite() && percent.is_finite() && percent >= 0.0) {
            return None;
        }
        // Half of the builds at the limit exceed it, so a growth as large as the limit fails only half of the time.
        let factor = 1.0 + percent / 100.0;
        let beyond_limit = 100.0 * (factor * (1.0 + beyond(factor, 0.5)) - 1.0);
        Some(Detectable { beyond_chance, beyond_limit, limit: percent })
    }

    /// Returns the growth under the null hypothesis: the limit if it is below 0, else 1. It is 1 for a base of 0 too,
    /// where an increase is no factor. The result is a ratio of events, so it includes the ratio of the event values.
    fn ratio(&self, [base, _]: &Sides) -> f64 {
        let before = base.median.to_f64();
        let ratio = match self.limit {
            Limit::Growth(percent) => growth(percent),
            Limit::Increase(..) => (before + self.in_unit()) / before,
            Limit::Value(..) | Limit::Share(_) => 1.0,
        };
        let ratio = if ratio.is_finite() { ratio } else { 1.0 };
        ratio.clamp(1e-9, 1.0) * self.runs.per_event()
    }

    /// Returns the limit in the unit of the values; 0 for limits in percent.
    fn in_unit(&self) -> f64 {
        let (unit, limit_unit) = self.factors;
        match self.limit {
            Limit::Increase(limit, _) | Limit::Value(limit, _) => limit.to_f64() * limit_unit as f64 / unit as f64,
            Limit::Growth(_) | Limit::Share(_) => 0.0,
        }
    }
}

/// The growths, in percent of the base, that a rule detects nine times in ten.
pub(super) struct Detectable {
    /// The smallest growth that chance does not explain.
    pub beyond_chance: f64,
    /// The smallest growth that exceeds the limit.
    pub beyond_limit: f64,
    /// The limit.
    pub limit: f64,
}

impl Limit {
    /// Returns true if the limit compares the sides, false if it concerns the new side alone.
    fn is_of_sides(&self) -> bool {
        matches!(self, Limit::Growth(_) | Limit::Increase(..))
    }
}

/// Returns the largest run of the base and the smallest run of the new side, as two sides with one run each.
fn nearest([base, new]: &Sides) -> Sides {
    [Runs::of_one(base.max), Runs::of_one(new.min)]
}

fn growth(percent: &Decimal) -> f64 {
    1.0 + percent.to_f64() / 100.0
}

/// Returns true if the magnitude of the median reaches the floor, in percent of its side's total, on at least one side.
pub(super) fn reaches(floor: Decimal, sides: &Sides, total: &Sides) -> bool {
    let large = |(v, total): (&Runs, &Runs)| floor.is_reached_by(v.median, total.median);
    sides.iter().zip(total).any(large)
}
