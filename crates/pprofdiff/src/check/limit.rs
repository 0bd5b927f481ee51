//! One rule against the runs: is its limit exceeded, and could that be chance?
//!
//! Whether it is exceeded is exact. Chance is asked about growth: two equal builds, or one that grew by a limit below
//! 0; of a limit on the new side alone, about a build that is at the limit.
//!
//! The limit decides, and chance may veto: the test is against no change, not against the limit. So a limit of
//! 20 % finds a growth of 30 % as soon as the runs show that it is a growth. A veto makes an exceeded limit inconclusive
//! and never a pass, so a stricter limit cannot pass where a looser limit does not.

use super::exact::Decimal;
use super::rule::{Cost, Limit, Rule, Subject};
use super::{ALPHA, How, Outcome};
use crate::runs::{MeasuredRuns, Runs, Sides};
use crate::sampling::Model;
use crate::statistics::growth::Spread;
use crate::{Result, Sort};

/// The minimum distance in standard deviations between a limit on each of many frames and no change. Below it, chance
/// alone may exceed the limit, and the result counts such frames.
const CLEAR: f64 = 3.0;

/// How improbable the growth must be of what a frame may have been part of that is not always shown. Without it one of ten
/// comparisons of equal builds fails, so this holds what a check may err by.
const ALPHA_OF_HOST: f64 = 0.02;

impl Cost {
    /// Which of a frame's two sums it is; a total is what calls all else.
    pub(super) fn sum(self) -> Sort {
        if self == Cost::Flat { Sort::Flat } else { Sort::Cum }
    }
}

/// What is wanted of a rule: the limit in the unit of the values, how much runs differ, and how seldom it may err.
pub(super) struct Test<'a> {
    runs: &'a MeasuredRuns,
    limit: &'a Limit,
    cost: Sort,
    /// As [`Rule::factors`].
    factors: (i128, i128),
    pub spread: Spread,
    how: How,
    /// How many things the check compares, as far as errors of this rule are concerned.
    tests: f64,
    /// Each frame is compared by itself.
    is_of_each: bool,
    /// Frames are compared, and not the total.
    is_of_frames: bool,
}

impl<'a> Test<'a> {
    /// Of a rule that compares so many things. Each rule of a check has its part of the errors that a check may make,
    /// and each of a rule's frames a part of that.
    ///
    /// # Errors
    /// A limit in a unit that does not convert, or without one where the values have one.
    pub(super) fn new(
        rule: &'a Rule,
        runs: &'a MeasuredRuns,
        how: How,
        rules: usize,
        compared: usize,
    ) -> Result<Test<'a>> {
        let factors = rule.factors(&runs.measure().summary().unit)?;
        // A limit on the new side alone compares no pairs.
        let spread = runs.spread(rule.cost.sum(), how.paired && rule.limit.is_of_sides());
        let tests = (compared.max(1) * rules) as f64;
        let is_of_each = matches!(rule.subject, Subject::Each(_));
        let is_of_frames = !matches!(rule.subject, Subject::Whole);
        Ok(Test {
            runs,
            limit: &rule.limit,
            cost: rule.cost.sum(),
            factors,
            spread,
            how,
            tests,
            is_of_each,
            is_of_frames,
        })
    }

    /// What becomes of one thing, before the allow-list; `p` is [`Test::p`] of it, adjusted.
    pub(super) fn outcome(&self, sides: &Sides, p: Option<f64>) -> Outcome {
        let is_certain = p.is_none_or(|p| p <= ALPHA);
        match self.is_exceeded(sides) {
            false => Outcome::Pass,
            true if self.how.strict => Outcome::Fail,
            // Nothing was sampled, so runs alone differ: even the nearest two of the sides must.
            true if self.runs.model == Model::Exact && self.is_exceeded(&nearest(sides)) => Outcome::Fail,
            true if self.runs.model == Model::Exact => Outcome::Inconclusive,
            true if self.is_of_frames && self.runs.model == Model::Unknown => Outcome::Inconclusive,
            true if is_certain && self.is_of_each && self.runs.is_rare(sides) => Outcome::Inconclusive,
            true if is_certain => Outcome::Fail,
            true => Outcome::Inconclusive,
        }
    }

    /// Returns true if the probability of chance can be reported. Without a known number of samples, only the runs of a total
    /// show it; a complete count of one run has none.
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
    /// appear to have grown so little.
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
        // The test's two tails add up to 1, except if a single subject's own runs also contribute.
        let swapped = [events[1].clone(), events[0].clone()];
        let p = p_of_more(&self.spread, &swapped, 1.0 / (ratio * self.runs.per_event()));
        self.adjusted(p) <= ALPHA
    }

    fn is_exceeded(&self, [base, new]: &Sides) -> bool {
        let delta = new.median.minus(base.median);
        match self.limit {
            Limit::Growth(percent) => percent.is_exceeded_percentage(delta, base.median),
            Limit::Increase(most, _) => most.is_exceeded(delta, self.factors),
            Limit::Value(most, _) => most.is_exceeded(new.median, self.factors),
            Limit::Share(percent) => {
                let runs = new.values.iter().zip(&self.runs.total[1].values);
                let mut above: Vec<f64> = runs.map(|(&v, &total)| percent.excess(v.into(), total.into())).collect();
                above.sort_by(f64::total_cmp);
                // The median of shares; of an even number of runs the mean of the two in the middle.
                above[(above.len() - 1) / 2] + above[above.len() / 2] > 0.0
            }
        }
    }

    /// Returns true for one of many frames if chance alone would occasionally exceed a limit on growth.
    pub(super) fn is_too_small(&self, sides: &Sides) -> bool {
        if !self.is_of_each || self.how.strict || !self.reports_chance() {
            return false;
        }
        let runs = self.runs;
        match self.limit {
            Limit::Growth(percent) => {
                let ratio = growth(percent);
                ratio >= 1.0 && ratio.ln() < CLEAR * self.spread.deviation(&runs.events(sides))
            }
            Limit::Increase(..) => {
                let most = self.in_unit() / runs.event[1];
                // If nothing changed: of nothing, at most about one event.
                let events = (sides[0].median.to_f64() / runs.event[0]).max(1.0);
                let deviation = events.sqrt().hypot(events * self.spread.tau()) * runs.between();
                most >= 0.0 && most < CLEAR * deviation
            }
            Limit::Value(..) | Limit::Share(_) => false,
        }
    }

    /// How probable it is that chance does this or more. Against no growth at all, or the limit where that is less.
    pub(super) fn p(&self, sides: &Sides) -> Option<f64> {
        let events = self.runs.events(sides);
        if events.iter().flatten().all(|&e| e <= 0.0) {
            return None;
        }
        let above = |most: f64| Some(self.spread.p_above(&events[1], most / self.runs.event[1]));
        match self.limit {
            Limit::Value(..) => return above(self.in_unit()),
            Limit::Share(percent) => return above(percent.to_f64() / 100.0 * self.runs.total[1].mean()),
            Limit::Growth(_) | Limit::Increase(..) => {}
        }
        let ratio = self.ratio(sides);
        // Of many frames few runs could never show by themselves that one grew.
        let p = if self.is_of_each { Spread::p_of_growth } else { Spread::p_of_one };
        Some(p(&self.spread, &events, ratio))
    }

    /// Where it is chance which inlined functions a run shows: of each thing that would fail, how probable it is that chance
    /// makes seem to grow what it may have been part of. What only came to be shown did not make that grow; what costs more
    /// did. `None` where it was part of nothing, or that grew by more than chance.
    pub(super) fn p_of_hosts(&self, kept: &[(Option<u32>, Sides)], p: &[Option<f64>]) -> Vec<Option<f64>> {
        let grew = |[base, new]: &Sides| new.median.minus(base.median).to_f64();
        let would_fail = |i: &usize| p[*i].is_some_and(|p| self.adjusted(p) <= ALPHA) && grew(&kept[*i].1) > 0.0;
        let failing: Vec<usize> = (0..kept.len()).filter(would_fail).collect();
        let grown: Vec<(u32, f64)> = failing.iter().filter_map(|&i| Some((kept[i].0?, grew(&kept[i].1)))).collect();
        let mut found = vec![None; kept.len()];
        if grown.len() < failing.len() || grown.is_empty() || !self.limit.is_of_sides() {
            return found;
        }
        for (i, host) in failing.into_iter().zip(self.runs.hosts(&grown, self.cost)) {
            let sides = host.and_then(|host| self.runs.of_frame(host, Sort::Cum));
            let p = sides.map(|sides| self.spread.p_of_growth(&self.runs.events(&sides), self.runs.per_event()));
            found[i] = p.filter(|p| *p > ALPHA_OF_HOST);
        }
        found
    }

    /// The same for any of all that the check compares (Bonferroni).
    pub(super) fn adjusted(&self, p: f64) -> f64 {
        (p * self.tests).min(1.0)
    }

    /// How many runs a side would tell it from chance; `None` of a limit on the new side alone.
    pub(super) fn runs_needed(&self, sides: &Sides) -> Option<usize> {
        let (events, chance) = (self.runs.events(sides), ALPHA / self.tests);
        let needed = || self.spread.runs_needed(&events, self.ratio(sides), chance, !self.is_of_each);
        (self.limit.is_of_sides() && self.reports_chance()).then(needed).flatten()
    }

    /// Returns the smallest growth that this rule detects and the limit, both in percent, for limits on growth. The
    /// growth is that of the single compared subject, or of a typical frame with a tenth of the total.
    pub(super) fn detectable(&self, only: Option<&Sides>) -> Option<(f64, f64)> {
        if !self.reports_chance() {
            return None;
        }
        let runs = self.runs;
        let m = runs.total.each_ref().map(|side| side.values.len());
        let tenth = runs.total[0].mean() / 10.0;
        let value =
            only.map_or(tenth, |[base, _]| base.values.iter().map(|&v| v.max(0) as f64).sum::<f64>() / m[0] as f64);
        let chance = ALPHA / self.tests;
        let percent = match self.limit {
            Limit::Growth(percent) => percent.to_f64(),
            Limit::Increase(..) => 100.0 * self.in_unit() / value,
            Limit::Value(..) | Limit::Share(_) => return None,
        };
        let least = match only {
            Some(sides) => self.spread.detectable_alone(&runs.events(sides), runs.per_event(), chance),
            None => self.spread.detectable(value / runs.event[0], runs.per_event(), m, chance),
        };
        let least = 100.0 * least;
        // What is to become less is not a question of growth.
        (least.is_finite() && percent.is_finite() && percent >= 0.0).then_some((least, percent))
    }

    /// The growth that counts as none: that of a limit below 0, else 1; in events.
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

    /// The limit in the values' own unit.
    fn in_unit(&self) -> f64 {
        let (unit, own) = self.factors;
        match self.limit {
            Limit::Increase(most, _) | Limit::Value(most, _) => most.to_f64() * own as f64 / unit as f64,
            Limit::Growth(_) | Limit::Share(_) => 0.0,
        }
    }
}

impl Limit {
    /// True if it compares the sides; else it is one on the new side alone.
    fn is_of_sides(&self) -> bool {
        matches!(self, Limit::Growth(_) | Limit::Increase(..))
    }
}

/// Returns the largest run of the base and the least of the new side, as sides of one run.
fn nearest([base, new]: &Sides) -> Sides {
    [Runs::of_one(base.max), Runs::of_one(new.min)]
}

fn growth(percent: &Decimal) -> f64 {
    1.0 + percent.to_f64() / 100.0
}

/// True if it is large enough, on one of the sides, to be looked at.
pub(super) fn reaches(floor: Decimal, sides: &Sides, total: &Sides) -> bool {
    let large = |(v, total): (&Runs, &Runs)| floor.is_reached_by(v.median, total.median);
    sides.iter().zip(total).any(large)
}
