//! The runs of both sides, one by one: what each has of a frame or of all, and how much runs of one build differ.
//!
//! ```text
//! Measure -> MeasuredRuns (values of each run, scaled; what one event is worth) -> Spread (statistics)
//! ```
//!
//! Runs of a side are replicates of one program and do not add up. What decides is exact: whole numbers, and medians that
//! are whole numbers of halves. Only chance is reckoned in floating point.
//!
//! Several profiles of a side are runs, since that is what is compared mostly, and sums of unlike numbers of runs
//! differ by their number. Parts of one run are the caller's to add up (`Diff::summed`).

use std::fmt;

use serde::{Serialize, Serializer};

use crate::diff::top::{Chance, LeftOut, ProfileSums, SIGNIFICANT, Top, TotalChance};
use crate::diff::{Frames, Measure, Normalize, Scale, Sort, Walk};
use crate::sampling::Model;
use crate::statistics::growth::{Events, Spread};
use crate::statistics::rank::{false_discoveries, rank_test};
use crate::{Error, Result, explain};
#[cfg(feature = "check")]
use pprofdiff_profile::random::HashMap;

/// The most events of a run.
const MAX_EVENTS: f64 = 1e9;
/// The costliest frames show how much runs differ.
const MAX_TELLING: usize = 1_000;

/// A whole number of halves, exact: a median of an even number of runs may lie between two values.
///
/// As JSON a whole number where it is one; else a floating-point number, which beyond 2^52 is the nearest whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Halves(i128);

impl Halves {
    /// The median of at least one value, sorted.
    pub(crate) fn median(sorted: &[i64]) -> Halves {
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Halves(i128::from(low) + i128::from(high))
    }

    /// The number over another, as a quotient of whole numbers: exact, unless the other is so large that twice it is
    /// no int64.
    pub(crate) fn over(self, other: i64) -> (i64, i64) {
        match (self.whole(), i64::try_from(self.0).ok().zip(other.checked_mul(2))) {
            (None, Some(doubled)) => doubled,
            _ => (self.round(), other),
        }
    }

    /// The number, if it is whole and an int64.
    pub fn whole(self) -> Option<i64> {
        if self.0 % 2 == 0 { i64::try_from(self.0 / 2).ok() } else { None }
    }

    /// The nearest whole number, halves away from zero; at the ends of int64 the end.
    pub fn round(self) -> i64 {
        let away = (self.0.abs() + 1) / 2 * self.0.signum();
        away.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 2.0
    }
}

/// What limits are compared with.
#[cfg(feature = "check")]
impl Halves {
    /// Twice the number.
    pub fn twice(self) -> i128 {
        self.0
    }

    pub(crate) fn minus(self, other: Halves) -> Halves {
        Halves(self.0 - other.0)
    }

    pub(crate) fn abs(self) -> Halves {
        Halves(self.0.abs())
    }
}

impl From<i64> for Halves {
    fn from(value: i64) -> Halves {
        Halves(2 * i128::from(value))
    }
}

impl fmt::Display for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let half = if self.0 % 2 == 0 { "" } else { ".5" };
        write!(f, "{sign}{}{half}", self.0.abs() / 2)
    }
}

impl Serialize for Halves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole() {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.to_f64()),
        }
    }
}

/// One side's values of one thing, over its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Runs {
    /// Of an even number of runs, the mean of the two in the middle.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub median: Halves,
    /// The least.
    pub min: i64,
    /// The largest.
    pub max: i64,
    /// In the order of the profiles.
    pub values: Vec<i64>,
}

impl Runs {
    /// Of at least one value.
    fn new(values: Vec<i64>) -> Runs {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let median = Halves::median(&sorted);
        Runs { median, min: sorted[0], max: sorted[sorted.len() - 1], values }
    }

    /// Returns a single run.
    #[cfg(feature = "check")]
    pub(crate) fn of_one(value: i64) -> Runs {
        Runs::new(vec![value])
    }

    /// The standard deviation; `None` of one run.
    fn deviation(&self) -> Option<f64> {
        let (mean, n) = (self.mean(), self.values.len() as f64);
        let squares: f64 = self.values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
        (n > 1.0).then(|| (squares / (n - 1.0)).sqrt())
    }

    pub(crate) fn mean(&self) -> f64 {
        self.values.iter().map(|&v| v as f64).sum::<f64>() / self.values.len() as f64
    }
}

/// Where each of many frames is compared, one with fewer events on both sides, in all runs of it together, says nothing:
/// what is rare comes in bursts, which the model does not know.
const FEWEST_EVENTS: f64 = 30.0;

/// So many callers may have a function inlined, one into the other.
#[cfg(feature = "check")]
const MAX_INLINED: usize = 64;

/// One thing's runs: the base's, the new side's.
pub(crate) type Sides = [Runs; 2];

/// One sample type of a selection, run by run. Lists over the runs are in the order of [`Measure::profile_sums`].
pub(crate) struct MeasuredRuns {
    measure: Measure,
    is_base: Vec<bool>,
    profiles: Vec<ProfileSums>,
    scales: Vec<Scale>,
    /// The totals, by sides.
    pub total: Sides,
    /// The value of one event on the base and on the new side, as scaled.
    pub event: [f64; 2],
    /// The variance between runs that other programs have.
    known: f64,
    /// What is known of the number of samples: the less certain of both sides.
    pub model: Model,
}

impl MeasuredRuns {
    /// Each run of the new side is scaled by itself, to the median of the base's totals or durations, or by the factor.
    ///
    /// # Errors
    /// A normalization by zero, or to values that no longer fit.
    pub(crate) fn new(measure: Measure, normalize: Normalize) -> Result<MeasuredRuns> {
        let (events, known) = explain::sampling(&measure)?;
        let profiles = measure.profile_sums();
        let scales = scales(&measure, normalize)?;
        let of_run = |(p, scale): (&ProfileSums, &Scale)| (p.is_base, scale.apply(p.total));
        let (is_base, totals): (Vec<bool>, Vec<i64>) = profiles.iter().zip(&scales).map(of_run).unzip();
        let total = sides(&is_base, &totals);
        let event = [true, false].map(|side| {
            let runs =
                is_base.iter().zip(events.iter().zip(&scales)).filter(|(base, (e, _))| **base == side && **e > 0.0);
            let values: Vec<f64> = runs.map(|(_, (event, scale))| event * scale.factor()).collect();
            values.iter().sum::<f64>() / values.len() as f64
        });
        // Of a side without events, the other's; of two, any.
        let or = |own: f64, other: f64| [own, other].into_iter().find(|event| *event > 0.0).unwrap_or(1.0);
        // Where counting makes no noise to speak of, more events would only be rounded away.
        let least = total[0].max.max(total[1].max) as f64 / MAX_EVENTS;
        let event = [or(event[0], event[1]), or(event[1], event[0])].map(|event| event.max(least));
        let model = measure.sampling_model();
        Ok(MeasuredRuns { measure, is_base, profiles, scales, total, event, known, model })
    }

    #[cfg(feature = "check")]
    pub(crate) fn measure(&self) -> &Measure {
        &self.measure
    }

    pub(crate) fn frames(&self) -> &Frames {
        self.measure.frames()
    }

    /// What one frame costs; `None` if it is 0 in all runs.
    pub(crate) fn of_frame(&self, frame: u32, cost: Sort) -> Option<Sides> {
        let sums = self.profiles.iter().map(|run| pick(run.sums(frame), cost));
        let values: Vec<i64> = sums.zip(&self.scales).map(|(value, scale)| scale.apply(value)).collect();
        values.iter().any(|&v| v != 0).then(|| sides(&self.is_base, &values))
    }

    /// The totals of what filters leave.
    #[cfg(feature = "check")]
    pub(crate) fn kept_total(&self) -> Sides {
        if self.measure.summary().query.filters.set().is_empty() {
            return self.total.clone();
        }
        let kept = self.measure.profile_totals_kept();
        let values: Vec<i64> = kept.into_iter().zip(&self.scales).map(|(value, scale)| scale.apply(value)).collect();
        sides(&self.is_base, &values)
    }

    /// What several frames cost that are taken as one. `chosen` has a place for each frame.
    #[cfg(feature = "check")]
    pub(crate) fn of_any(&self, chosen: &[bool], cost: Sort) -> Sides {
        let sums = self.measure.profile_sums_of_any(chosen);
        let values: Vec<i64> =
            sums.into_iter().zip(&self.scales).map(|(v, scale)| scale.apply(pick(v, cost))).collect();
        sides(&self.is_base, &values)
    }

    /// What frames may have been part of on the base, where they are not always shown: of each, with what it grew by, the
    /// nearest caller of most of it on the new side that cost as much on the base; of its own cost that may be itself. One
    /// pass over the samples, whatever the number of frames.
    #[cfg(feature = "check")]
    pub(crate) fn hosts(&self, grown: &[(u32, f64)], cost: Sort) -> Vec<Option<u32>> {
        let base = |f: u32| self.profiles.iter().filter(|run| run.is_base).map(|run| run.sums(f).1 as f64).sum::<f64>();
        let of_base: Vec<f64> = (0..self.frames().len() as u32).map(base).collect();
        let number: HashMap<u32, usize> = grown.iter().zip(0..).map(|((frame, _), i)| (*frame, i)).collect();
        let mut held: Vec<HashMap<Option<u32>, f64>> = vec![HashMap::default(); grown.len()];
        self.measure.for_each_stack(false, |value, stack| {
            let first = if cost == Sort::Flat { stack.len().saturating_sub(1) } else { 0 };
            for at in first..stack.len() {
                let Some(&i) = number.get(&stack[at]) else { continue };
                let callers = &stack[..at + usize::from(cost == Sort::Flat)];
                let host = callers.iter().rev().take(MAX_INLINED).find(|&&f| of_base[f as usize] >= grown[i].1);
                *held[i].entry(host.copied()).or_default() += value as f64;
            }
        });
        let most = |held: HashMap<Option<u32>, f64>| {
            held.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).and_then(|(host, _)| host)
        };
        held.into_iter().map(most).collect()
    }

    /// The value of one event on the base by that on the new side: what equal costs are in events.
    pub(crate) fn per_event(&self) -> f64 {
        self.event[0] / self.event[1]
    }

    /// The events that stand behind values of the runs.
    pub(crate) fn events(&self, sides: &Sides) -> Events {
        [0, 1].map(|side| sides[side].values.iter().map(|&v| v.max(0) as f64 / self.event[side]).collect())
    }

    /// Returns true if each side has one run, so that nothing shows how much runs differ.
    pub(crate) fn is_single(&self) -> bool {
        self.total.iter().all(|side| side.values.len() == 1)
    }

    /// True if so few events stand behind it that it says nothing among many.
    pub(crate) fn is_rare(&self, sides: &Sides) -> bool {
        self.events(sides).iter().all(|side| side.iter().sum::<f64>() < FEWEST_EVENTS)
    }

    /// The root of the sum of both sides' parts in the variance of a difference of means.
    #[cfg(feature = "check")]
    pub(crate) fn between(&self) -> f64 {
        self.total.iter().map(|side| 1.0 / side.values.len() as f64).sum::<f64>().sqrt()
    }

    /// How much runs differ, by all frames; or pairs of them.
    pub(crate) fn spread(&self, cost: Sort, paired: bool) -> Spread {
        let sum = |frame: &u32| self.profiles.iter().map(|run| pick(run.sums(*frame), cost) as f64).sum::<f64>();
        let mut costliest: Vec<(f64, u32)> = (0..self.frames().len() as u32).map(|f| (sum(&f), f)).collect();
        costliest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        costliest.truncate(MAX_TELLING);
        let runs = costliest.iter().filter_map(|&(_, frame)| self.of_frame(frame, cost));
        Spread::of_frames(runs.map(|sides| self.events(&sides)), self.known, paired)
    }
}

/// The frames that are there by chance, of which nothing is asked that is asked of each frame.
pub(crate) struct ByChance {
    frames: Vec<Option<LeftOut>>,
    /// Where it is chance which inlined library functions a profile shows: how much cum differs between runs.
    cum: Option<Spread>,
}

impl ByChance {
    pub(crate) fn new(runs: &MeasuredRuns, paired: bool) -> Result<ByChance> {
        let (frames, flickers) = explain::by_chance(runs.frames())?;
        Ok(ByChance { frames, cum: flickers.then(|| runs.spread(Sort::Cum, paired)) })
    }

    /// Why a frame is left out, if it is: profiling itself is, and what costs something itself on one side alone, and no
    /// more with what it calls than chance explains at this level: what is inlined into it is shown on the other.
    pub(crate) fn reason(&self, frame: u32, cost: Sort, runs: &MeasuredRuns, alpha: f64) -> Option<LeftOut> {
        if let Some(known) = self.frames[frame as usize] {
            return Some(known);
        }
        let cum = self.cum.as_ref().filter(|_| cost == Sort::Flat)?;
        let flat = runs.of_frame(frame, Sort::Flat)?;
        let all = runs.of_frame(frame, Sort::Cum)?;
        let events = runs.events(&all);
        let p = || cum.p_of_growth(&events, runs.per_event()) * runs.frames().len() as f64;
        let is_one_sided = flat.iter().any(|side| side.max <= 0);
        let is_inlining = is_one_sided && events.iter().all(|side| side.iter().sum::<f64>() > 0.0) && p() > alpha;
        is_inlining.then_some(LeftOut::Inlining)
    }
}

impl Measure {
    /// The table of frames with what the runs say of each ([`Chance`], of the cost that rows are ordered by) and of the
    /// total. Values are the means of [`Measure::top`]; for chance, runs are normalized one by one. Costs a second pass
    /// over the samples.
    ///
    /// # Errors
    /// A single profile; profiles that add up, which are no runs; a normalization by zero, of one run.
    pub fn top_of_runs(&self, sort: Sort) -> Result<Top> {
        let summary = self.summary();
        if summary.base.is_none() {
            return Err(Error::query("chance is asked of two sides; there is only one profile"));
        }
        if summary.sum {
            return Err(Error::query("profiles that add up are no runs, of which chance could be asked"));
        }
        let mut top = self.top(sort);
        let runs = MeasuredRuns::new(self.clone(), summary.query.normalize)?;
        let spread = runs.spread(sort, false);
        let by_chance = ByChance::new(&runs, false)?;
        let p = |sides: &Sides| spread.p_of_change(&runs.events(sides), runs.per_event());
        let of_frame = |frame: u32| {
            let sides = runs.of_frame(frame, sort)?;
            let left_out = by_chance.reason(frame, sort, &runs, SIGNIFICANT);
            let is_asked = left_out.is_none() && runs.model != Model::Unknown && !runs.is_rare(&sides);
            let p = is_asked.then(|| p(&sides));
            Some(Chance { base_sd: sides[0].deviation(), new_sd: sides[1].deviation(), p, q: None, left_out })
        };
        let mut chances: Vec<Chance> =
            (0..self.frames().len() as u32).map(|f| of_frame(f).unwrap_or_default()).collect();
        let tested: Vec<(usize, f64)> = chances.iter().enumerate().filter_map(|(i, c)| Some((i, c.p?))).collect();
        let q = false_discoveries(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        tested.iter().zip(q).for_each(|(&(i, _), q)| chances[i].q = Some(q));
        top.chances = Some(chances.into());
        let [base, new] = &runs.total;
        // The total's own runs must say that it grew: what whole runs differ by shows in all frames alike.
        let mut summary = (**summary).clone();
        let ranks = (base.values.len() > 1 && new.values.len() > 1).then(|| rank_test(&base.values, &new.values));
        // Runs show by themselves how much totals differ; one run of an unknown number of samples shows nothing.
        let is_asked = runs.model != Model::Unknown || !runs.is_single();
        let p = || spread.p_of_change_of_one(&runs.events(&runs.total), runs.per_event());
        summary.sampling = Some(runs.measure.sampling());
        summary.warnings.extend(runs.measure.sampling_warnings());
        summary.chance = Some(TotalChance {
            base_sd: base.deviation(),
            new_sd: new.deviation(),
            p: is_asked.then(p),
            rank_p: ranks,
        });
        top.summary = summary.into();
        Ok(top)
    }
}

fn pick((flat, cum): (i64, i64), cost: Sort) -> i64 {
    if cost == Sort::Flat { flat } else { cum }
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
        let scale = Scale::new(normalize, quotient, quotient, [1, 1])?;
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

#[cfg(test)]
mod tests {
    use super::Halves;

    #[test]
    fn halves_print_and_round() {
        for (twice, text, round) in [(0, "0", 0), (3, "1.5", 2), (-3, "-1.5", -2), (-1, "-0.5", -1), (8, "4", 4)] {
            assert_eq!((Halves(twice).to_string().as_str(), Halves(twice).round()), (text, round));
        }
        assert_eq!(Halves::median(&[i64::MAX, i64::MAX]).round(), i64::MAX);
        assert_eq!(Halves::median(&[1, 2, 4, 9]).twice(), 6);
    }
}
