//! The runs of both sides, one by one: the cost of each frame and of the total per run, and the variation between runs.
//!
//! ```text
//! Measure -> MeasuredRuns (scaled values of each run, value of one event) -> Spread (statistics)
//! ```
//!
//! Runs of a side are replicates of one program and do not add up. Decisions use exact numbers: whole numbers, and
//! medians that are whole numbers of halves. Only p-values are computed in floating point.
//!
//! Several profiles of a side count as runs by default, because most comparisons are of runs. Adding them up would make
//! unequal numbers of runs look like a change. If the profiles are parts of a single run, the caller adds them up
//! (`Diff::summed`).

use std::cell::OnceCell;
use std::fmt;

use serde::{Serialize, Serializer};

#[cfg(feature = "check")]
use crate::diff::top::GroupSums;
use crate::diff::top::{Chance, LeftOut, ProfileSums, SIGNIFICANT, Top, TotalChance};
use crate::diff::{Frames, Measure, Normalize, Scale, Sort, Walk};
use crate::events::{self, NOMINAL_SAMPLES};
use crate::frame_classes::by_chance;
use crate::sampling::Model;
use crate::statistics::growth::{RunEvents, Spread};
use crate::statistics::rank::{false_discoveries, rank_test};
use crate::statistics::total::{TotalRuns, event_of_sides};
use crate::{Error, Result};
#[cfg(feature = "check")]
use pprofdiff_profile::random::HashMap;

/// The number of costliest frames from which the variation between runs is estimated.
const MAX_FRAMES: usize = 1_000;

/// An exact whole number of halves. The median of an even number of runs may lie between two integers.
///
/// Serializes to a JSON integer if it is whole. Other values serialize to a floating-point number, rounded to the
/// nearest integer beyond 2^52.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Halves(i128);

impl Halves {
    /// Returns the median of sorted values. `sorted` must not be empty.
    pub(crate) fn median(sorted: &[i64]) -> Halves {
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Halves(i128::from(low) + i128::from(high))
    }

    /// Returns the number divided by another, as a quotient of integers. The quotient is exact, unless the number or a
    /// doubled operand exceeds int64: the number is then rounded.
    pub(crate) fn over(self, other: i64) -> (i64, i64) {
        match (self.whole(), i64::try_from(self.0).ok().zip(other.checked_mul(2))) {
            (None, Some(doubled)) => doubled,
            _ => (self.round(), other),
        }
    }

    /// Returns the number if it is whole and fits an int64.
    pub fn whole(self) -> Option<i64> {
        if self.0 % 2 == 0 { i64::try_from(self.0 / 2).ok() } else { None }
    }

    /// Returns the nearest integer, with halves rounded away from zero, clamped to int64.
    pub fn round(self) -> i64 {
        let away = (self.0.abs() + 1) / 2 * self.0.signum();
        away.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns the nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 2.0
    }
}

/// Arithmetic for comparisons with limits.
#[cfg(feature = "check")]
impl Halves {
    /// Returns twice the number.
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

/// The values of one subject on one side, by run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Runs {
    /// The median. For an even number of runs, the mean of the two middle values.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub median: Halves,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The values in the order of the profiles.
    pub values: Vec<i64>,
}

impl Runs {
    /// Summarizes the values of runs. `values` must not be empty.
    fn new(values: Vec<i64>) -> Runs {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let median = Halves::median(&sorted);
        Runs { median, min: sorted[0], max: sorted[sorted.len() - 1], values }
    }

    /// Summarizes a single run.
    #[cfg(feature = "check")]
    pub(crate) fn of_one(value: i64) -> Runs {
        Runs::new(vec![value])
    }

    /// Returns the standard deviation of the runs, with n - 1 degrees of freedom; `None` for a single run.
    fn deviation(&self) -> Option<f64> {
        let (mean, n) = (self.mean(), self.values.len() as f64);
        let squares: f64 = self.values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
        (n > 1.0).then(|| (squares / (n - 1.0)).sqrt())
    }

    pub(crate) fn mean(&self) -> f64 {
        self.values.iter().map(|&v| v as f64).sum::<f64>() / self.values.len() as f64
    }
}

/// The minimum number of events of a frame, summed over the runs of a side. A frame below it on both sides is not
/// tested: samples of rare frames come in bursts, and the model does not describe bursts.
const FEWEST_EVENTS: f64 = 30.0;

/// The maximum number of callers to search for the host of an inlined function.
#[cfg(feature = "check")]
const MAX_INLINED: usize = 64;

/// The runs of the base and of the new side, for one subject.
pub(crate) type Sides = [Runs; 2];

/// One sample type of a selection, run by run. Lists over runs are in the order of [`Measure::profile_sums`].
#[derive(Debug)]
pub struct MeasuredRuns {
    measure: Measure,
    is_base: Vec<bool>,
    profiles: Vec<ProfileSums>,
    scales: Vec<Scale>,
    /// The totals of both sides.
    pub total: Sides,
    /// The value of one event on the base and on the new side, after scaling: the mean over the runs with events. A
    /// side without events has the value of the opposite side, and 1 if neither has events.
    pub event: [f64; 2],
    /// The value of one event in each run, before scaling; 0 if it is unknown.
    event_of_runs: Vec<f64>,
    /// The variance between runs that was measured with other programs.
    known_variance: f64,
    /// The less certain sampling model of both sides ([`Measure::sampling_model`]).
    pub model: Model,
}

impl MeasuredRuns {
    /// Measures the runs. Normalization scales each run of the new side separately, to the median of the base's totals
    /// or durations, or by the given factor. Runs with a total of 0 stay unscaled.
    ///
    /// # Errors
    /// Returns an error for a normalization by zero, or to values that no longer fit.
    pub(crate) fn new(measure: Measure, normalize: Normalize) -> Result<MeasuredRuns> {
        let (events, known_variance) = events::sampling(&measure)?;
        let profiles = measure.profile_sums();
        let scales = scales(&measure, normalize)?;
        let scaled_total = |(p, scale): (&ProfileSums, &Scale)| (p.is_base, scale.apply(p.total));
        let (is_base, totals): (Vec<bool>, Vec<i64>) = profiles.iter().zip(&scales).map(scaled_total).unzip();
        let total = sides(&is_base, &totals);
        let largest = total[0].max.max(total[1].max) as f64;
        let event = event_of_sides(scaled_events(&events, &is_base, &scales), largest);
        let event_of_runs = events;
        let model = measure.sampling_model();
        Ok(MeasuredRuns { measure, is_base, profiles, scales, total, event, event_of_runs, known_variance, model })
    }

    #[cfg(feature = "check")]
    pub(crate) fn measure(&self) -> &Measure {
        &self.measure
    }

    pub(crate) fn frames(&self) -> &Frames {
        self.measure.frames()
    }

    /// Returns the cost of one frame; `None` if it is 0 in all runs.
    pub(crate) fn of_frame(&self, frame: u32, cost: Sort) -> Option<Sides> {
        let sums = self.profiles.iter().map(|run| pick(run.sums(frame), cost));
        let values: Vec<i64> = sums.zip(&self.scales).map(|(value, scale)| scale.apply(value)).collect();
        values.iter().any(|&v| v != 0).then(|| sides(&self.is_base, &values))
    }

    /// Returns the totals of the samples that pass the filters, after scaling. Without filters, these are the totals.
    #[cfg(feature = "check")]
    pub(crate) fn kept_total(&self) -> Sides {
        if self.measure.summary().query.filters.set().is_empty() {
            return self.total.clone();
        }
        let kept = self.measure.profile_totals_kept();
        let values: Vec<i64> = kept.into_iter().zip(&self.scales).map(|(value, scale)| scale.apply(value)).collect();
        sides(&self.is_base, &values)
    }

    /// Returns the cost of several frames that count as one. `chosen` has an entry for each frame.
    #[cfg(feature = "check")]
    pub(crate) fn of_any(&self, chosen: &[bool], cost: Sort) -> Sides {
        let sums = self.measure.profile_sums_of_any(chosen);
        let values: Vec<i64> =
            sums.into_iter().zip(&self.scales).map(|(v, scale)| scale.apply(pick(v, cost))).collect();
        sides(&self.is_base, &values)
    }

    /// Returns, for each group of frames, the growth of the samples that contain both a frame of the group and a frame of
    /// [`COMMON_GROUP`](crate::diff::top::COMMON_GROUP). `bits` has the groups of each frame, as bits.
    #[cfg(feature = "check")]
    pub(crate) fn shared_growth(&self, bits: &[u64], n_groups: usize) -> Vec<f64> {
        let sums = self.measure.profile_sums_of_groups(bits, n_groups);
        let growth = |value: &dyn Fn(&GroupSums) -> i64| {
            let values: Vec<i64> =
                sums.iter().zip(&self.scales).map(|(sums, scale)| scale.apply(value(sums))).collect();
            let [base, new] = sides(&self.is_base, &values);
            new.mean() - base.mean()
        };
        let common = growth(&|sums| sums.common);
        // Scaled sums are rounded, so the samples with both come from the three sums that a table would show.
        let shared = |group: usize| {
            let either = growth(&|sums| sums.groups[group].0 - sums.groups[group].1 + sums.common);
            growth(&|sums| sums.groups[group].0) + common - either
        };
        (0..n_groups).map(shared).collect()
    }

    /// Returns the host of each frame in `grown`: a caller that may have contained the frame on the base, where the
    /// frame may be invisible because of inlining. The host is the nearest caller, on most of the frame's new stacks,
    /// whose cost on the base is at least the growth of the frame. For flat costs, the frame itself may be the host.
    /// The search takes one pass over the samples, whatever the number of frames.
    #[cfg(feature = "check")]
    pub(crate) fn hosts(&self, grown: &[(u32, f64)], cost: Sort) -> Vec<Option<u32>> {
        let base = |f: u32| self.profiles.iter().filter(|run| run.is_base).map(|run| run.sums(f).1 as f64).sum::<f64>();
        let base_cost: Vec<f64> = (0..self.frames().len() as u32).map(base).collect();
        let number: HashMap<u32, usize> = grown.iter().zip(0..).map(|((frame, _), i)| (*frame, i)).collect();
        let mut held: Vec<HashMap<Option<u32>, f64>> = vec![HashMap::default(); grown.len()];
        self.measure.for_each_stack(false, |value, stack| {
            let first = if cost == Sort::Flat { stack.len().saturating_sub(1) } else { 0 };
            for position in first..stack.len() {
                let Some(&i) = number.get(&stack[position]) else { continue };
                let callers = &stack[..position + usize::from(cost == Sort::Flat)];
                let host = callers.iter().rev().take(MAX_INLINED).find(|&&f| base_cost[f as usize] >= grown[i].1);
                *held[i].entry(host.copied()).or_default() += value as f64;
            }
        });
        let largest_host = |held: HashMap<Option<u32>, f64>| {
            held.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).and_then(|(host, _)| host)
        };
        held.into_iter().map(largest_host).collect()
    }

    /// Returns the value of one event on the base divided by the value on the new side. It is the ratio of events at
    /// equal costs.
    pub(crate) fn per_event(&self) -> f64 {
        self.event[0] / self.event[1]
    }

    /// Returns the number of events behind the values of the runs.
    pub(crate) fn events(&self, sides: &Sides) -> RunEvents {
        [0, 1].map(|side| sides[side].values.iter().map(|&v| v.max(0) as f64 / self.event[side]).collect())
    }

    /// Returns true if each side has only one run, so that nothing shows how much runs differ.
    pub(crate) fn is_single(&self) -> bool {
        self.total.iter().all(|side| side.values.len() == 1)
    }

    /// Returns true if a side has only one run, so that it does not show how much its runs differ.
    pub(crate) fn has_single(&self) -> bool {
        self.total.iter().any(|side| side.values.len() == 1)
    }

    /// Returns the number of events if the number of samples is unknown: as if the largest run had
    /// [`NOMINAL_SAMPLES`]. Small frames then vary too much by chance to be significant.
    fn nominal_events(&self, sides: &Sides) -> RunEvents {
        let largest = self.total.iter().flat_map(|side| &side.values).copied().max().unwrap_or(0) as f64;
        let event = (largest / NOMINAL_SAMPLES).max(1.0);
        [0, 1].map(|side| sides[side].values.iter().map(|&v| v.max(0) as f64 / event).collect())
    }

    /// Returns true if the subject has too few events on both sides for a test of one frame among many.
    pub(crate) fn is_rare(&self, sides: &Sides) -> bool {
        let events = if self.model == Model::Unknown { self.nominal_events(sides) } else { self.events(sides) };
        events.iter().all(|side| side.iter().sum::<f64>() < FEWEST_EVENTS)
    }

    /// Returns the square root of the summed inverse numbers of runs. It scales the deviation of a single run to the
    /// deviation of a difference of means.
    #[cfg(feature = "check")]
    pub(crate) fn between(&self) -> f64 {
        self.total.iter().map(|side| 1.0 / side.values.len() as f64).sum::<f64>().sqrt()
    }

    /// Returns the variation between runs for tests of the total and of its parts. It does not depend on the frames.
    pub(crate) fn spread_of_total(&self, paired: bool) -> Spread {
        Spread::of_total(self.known_variance, paired)
    }

    /// Returns the total of each run, for its test against chance. The filters do not change it.
    fn total_runs(&self) -> Result<TotalRuns> {
        let events = match self.measure.summary().query.filters.set().is_empty() {
            true => self.event_of_runs.clone(),
            false => events::sampling_before_filters(&self.measure)?.0,
        };
        let totals = self.total.each_ref().map(|side| side.values.iter().map(|&value| value as f64).collect());
        Ok(TotalRuns::new(totals, scaled_events(&events, &self.is_base, &self.scales), self.known_variance))
    }

    /// Returns the variation between runs, estimated from the costliest frames. With `paired`, run i of the base and
    /// run i of the new side are a pair, and the variation is that of the ratios within pairs.
    pub(crate) fn spread(&self, cost: Sort, paired: bool) -> Spread {
        let sum = |frame: &u32| self.profiles.iter().map(|run| pick(run.sums(*frame), cost) as f64).sum::<f64>();
        let mut costliest: Vec<(f64, u32)> = (0..self.frames().len() as u32).map(|f| (sum(&f), f)).collect();
        costliest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        costliest.truncate(MAX_FRAMES);
        let runs = costliest.iter().filter_map(|&(_, frame)| self.of_frame(frame, cost));
        Spread::of_frames(runs.map(|sides| self.events(&sides)), self.known_variance, paired)
    }
}

/// Frames that are excluded from tests of each frame, because their presence in a profile is itself random.
pub(crate) struct ByChance {
    frames: Vec<Option<LeftOut>>,
    /// True if chance decides which inlined library functions a profile shows.
    pub(crate) flickers: bool,
    paired: bool,
    /// The variation of cum between runs. The first test of flat costs computes it.
    cum: OnceCell<Spread>,
}

impl ByChance {
    pub(crate) fn new(runs: &MeasuredRuns, paired: bool) -> Result<ByChance> {
        let (frames, flickers) = by_chance(runs.frames())?;
        Ok(ByChance { frames, flickers, paired, cum: OnceCell::new() })
    }

    /// Returns the reason for excluding a frame, or `None`. Always excluded are the profiler's own frames, and library
    /// functions of languages in which it is random which inlined functions a profile shows. In such languages, a frame
    /// with flat cost on one side only is also excluded from tests of flat cost, if the change of its cum is within
    /// chance at the level `alpha`: the opposite side then shows the functions that are inlined into it.
    pub(crate) fn reason(&self, frame: u32, cost: Sort, runs: &MeasuredRuns, alpha: f64) -> Option<LeftOut> {
        if let Some(reason) = self.frames[frame as usize] {
            return Some(reason);
        }
        if !self.flickers || cost != Sort::Flat {
            return None;
        }
        let cum = self.cum.get_or_init(|| runs.spread(Sort::Cum, self.paired));
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
    /// Returns the table of frames with statistics over the runs: a [`Chance`] for each frame, by the cost that orders
    /// the rows, and one for the total. Values are the means of [`Measure::top`]. For p-values, each run is normalized
    /// separately. A frame has no p-value if its presence in a profile is random, if it has too few events, or if the
    /// number of samples is unknown. The function needs a second pass over the samples.
    ///
    /// # Errors
    /// Returns an error for a single profile, for profiles that add up, and for a normalization by zero or to values
    /// that no longer fit.
    pub fn top_of_runs(&self, sort: Sort) -> Result<Top> {
        let summary = self.summary();
        if summary.base.is_none() {
            return Err(Error::query("p-values need two sides; there is only one profile"));
        }
        if summary.sum {
            return Err(Error::query("profiles that add up are not runs, so p-values are not available"));
        }
        let mut top = self.top(sort);
        let runs = MeasuredRuns::new(self.clone(), summary.query.normalize)?;
        let spread = runs.spread(sort, false);
        let by_chance = ByChance::new(&runs, false)?;
        // If the number of samples is unknown, the events of frames are a guess, and no frame shows the variation of
        // another. Several runs of a frame still show its own variation.
        let of_one = (runs.model == Model::Unknown).then(|| runs.spread_of_total(false));
        let p = |sides: &Sides| match &of_one {
            Some(spread) => spread.p_of_change_of_one(&runs.nominal_events(sides), 1.0),
            None => spread.p_of_change(&runs.events(sides), runs.per_event()),
        };
        let chance_of = |frame: u32| {
            let sides = runs.of_frame(frame, sort)?;
            let left_out = by_chance.reason(frame, sort, &runs, SIGNIFICANT);
            let is_unknown = runs.model == Model::Unknown && runs.has_single();
            let is_tested = left_out.is_none() && !is_unknown && !runs.is_rare(&sides);
            let p = is_tested.then(|| p(&sides));
            Some(Chance { base_sd: sides[0].deviation(), new_sd: sides[1].deviation(), p, q: None, left_out })
        };
        let mut chances: Vec<Chance> =
            (0..self.frames().len() as u32).map(|f| chance_of(f).unwrap_or_default()).collect();
        let tested: Vec<(usize, f64)> = chances.iter().enumerate().filter_map(|(i, c)| Some((i, c.p?))).collect();
        let q = false_discoveries(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        tested.iter().zip(q).for_each(|(&(i, _), q)| chances[i].q = Some(q));
        top.chances = Some(chances.into());
        let [base, new] = &runs.total;
        // The total needs a test by its own runs, because a factor that changes whole runs appears in all frames alike.
        let mut summary = (**summary).clone();
        let ranks = (base.values.len() > 1 && new.values.len() > 1).then(|| rank_test(&base.values, &new.values));
        // Several runs reveal the variation of totals. A single run per side with an unknown number of samples reveals
        // none.
        let is_tested = runs.model != Model::Unknown || !runs.is_single();
        let p = if is_tested { Some(runs.total_runs()?.p_of_change(1.0)) } else { None };
        summary.sampling = Some(runs.measure.sampling());
        summary.warnings.extend(runs.measure.sampling_warnings());
        summary.chance = Some(TotalChance { base_sd: base.deviation(), new_sd: new.deviation(), p, rank_p: ranks });
        top.summary = summary.into();
        Ok(top)
    }
}

fn pick((flat, cum): (i64, i64), cost: Sort) -> i64 {
    if cost == Sort::Flat { flat } else { cum }
}

/// Returns the scale of each profile's sums. Runs are replicates, so each run of the new side is scaled separately to
/// the base's median total or duration, or by the given factor. The base and runs with a total of 0 stay unscaled. A
/// warning reports runs with a total of 0.
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

/// Returns the value of one event in each run of the base and of the new side, after scaling.
fn scaled_events(events: &[f64], is_base: &[bool], scales: &[Scale]) -> [Vec<f64>; 2] {
    [true, false].map(|side| {
        let runs = is_base.iter().zip(events.iter().zip(scales)).filter(|(base, _)| **base == side);
        runs.map(|(_, (event, scale))| event * scale.factor()).collect()
    })
}

fn sides(is_base: &[bool], values: &[i64]) -> [Runs; 2] {
    [true, false].map(|side| {
        let side_values = is_base.iter().zip(values).filter(|(base, _)| **base == side);
        Runs::new(side_values.map(|(_, &value)| value).collect())
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
