//! Noise: the variation between equal runs. It is known from other programs, measured between runs, or estimated from
//! one pair.

use crate::thresholds::{
    DEVIATION_OF_FLICKERING_FRAMES, MIN_DEVIATIONS_OF_NOISY_PAIR, MIN_EVENTS_FOR_COMMON_VARIANCE,
    MIN_FRAMES_FOR_TAU_OF_PAIR, MIN_RELATIVE_LENGTH_OF_RUN, MIN_SETS_FOR_COMMON_VARIANCE, MIN_TAU_OF_LOCK,
    MIN_TELLING_EVENTS, MIN_TESTED_COUNTS, MIN_TESTED_LOCKS, PRIOR_OF_DELAYS, PRIOR_OF_HEAP, PRIOR_OF_SAMPLES, Prior,
    STRATA_OF_EVENTS, WEIGHT_OF_PRIOR_TAU,
};
use std::ops::Range;

use super::model::ScaleModel;
use crate::evidence::rows::StackRows;
use crate::evidence::sets::{SetKey, Sets, Telling};
use pprofdiff::shared::statistics::counts::{
    MeasuredNoise, between_run_variance, deviance, median, threshold, variance_of_ratios,
};
use pprofdiff::shared::{ValueKind, known_deviation, known_variance};
use pprofdiff_profile::cancellation::checkpointed;

/// Returns the variance, between the sides, of the logarithm of a set's ratio, given the variance `tau2` between runs.
/// A set that one side lacks is at most as noisy as other programs, because it did not vary on that side. The exception
/// is a runtime whose inlining differs between builds: there, frames come and go, and such a set is at least as noisy
/// as [`DEVIATION_OF_FLICKERING_FRAMES`].
///
/// The exception once applied to all runtimes whose library leaves are trimmed, and thus to Python. Without Python, 93
/// instead of 87 of 124 comparisons of real upgrades name the right cause first, and 12 instead of 11 of 100 comparisons
/// without a cause name one. Without C++ and V8, 5 instead of 4 of 144 equal pairs have a cause.
pub(crate) fn variance_of(rows: &StackRows, tau2: f64, [b, n]: [f64; 2]) -> f64 {
    let tau2 = match (b <= 0.0 || n <= 0.0, rows.runtime.inlining_differs) {
        (false, _) => tau2,
        // Nothing is known about counts of other programs, and a rare path may occur in runs of one side only.
        _ if rows.kind == ValueKind::Counted => tau2,
        (true, false) => tau2.min(known_variance(rows.kind)),
        (true, true) => tau2.max(DEVIATION_OF_FLICKERING_FRAMES * DEVIATION_OF_FLICKERING_FRAMES),
    };
    between_run_variance(tau2, rows.runs)
}

/// The variance of each set between equal runs.
#[derive(Debug, Clone)]
pub(crate) enum Variances {
    OfSets(Vec<f64>),
    /// One variance per class of sets ([`SetKey::class`]).
    OfClasses([f64; 3]),
}

impl Variances {
    pub(crate) fn variance(&self, sets: &Sets, set: usize) -> f64 {
        match self {
            Variances::OfSets(variances) => variances[set],
            Variances::OfClasses(variances) => variances[sets.sets[set].key.class()],
        }
    }
}

/// Returns the known noise of a kind of values. `None` for counts of all calls or instructions: one pair shows no noise of
/// counts, because all of its differences are real, and several runs show the noise of each function.
fn prior(kind: ValueKind) -> Option<Prior> {
    match kind {
        ValueKind::Sampled => Some(PRIOR_OF_SAMPLES),
        ValueKind::Heap => Some(PRIOR_OF_HEAP),
        ValueKind::Delay => Some(PRIOR_OF_DELAYS),
        ValueKind::Counted => None,
    }
}

/// Maximum number of sets whose ratios estimate a pair's noise.
const MAX_RATIOS: usize = 2_000;

/// Returns how the noise between runs is measured.
pub(super) fn measured(rows: &StackRows) -> MeasuredNoise {
    let degrees = degrees_of_runs(rows);
    match rows.kind {
        ValueKind::Delay => MeasuredNoise { degrees, prior: 0, fewest: MIN_TESTED_LOCKS },
        // Most functions repeat their counts, so they say nothing about a function that does not.
        ValueKind::Counted => MeasuredNoise { degrees, prior: 0, fewest: MIN_TESTED_COUNTS },
        ValueKind::Sampled | ValueKind::Heap => MeasuredNoise::drawn(degrees),
    }
}

/// Returns the degrees of freedom of variances within the sides and the A/A runs: for each of them, the number of runs
/// minus 1.
fn degrees_of_runs(rows: &StackRows) -> usize {
    [rows.runs[0], rows.runs[1], rows.learned].iter().map(|runs| runs.saturating_sub(1)).sum()
}

/// Returns the variance between runs of each set, including the variation of the runs' lengths. All functions share it,
/// so no set varies less than the lengths do.
pub(super) fn variance_with_lengths(rows: &StackRows, sets: &Sets) -> Variances {
    let lengths = variance_of_lengths(rows);
    match variance_of_runs(rows, sets, true) {
        Variances::OfSets(variances) if !matches!(rows.kind, ValueKind::Delay | ValueKind::Counted) => {
            Variances::OfSets(variances.into_iter().map(|variance| variance.max(lengths)).collect())
        }
        variances => variances,
    }
}

/// Returns the squared relative deviation of the runs' totals, pooled within sides; 0 without several runs of a side.
pub(super) fn variance_of_lengths(rows: &StackRows) -> f64 {
    let totals = rows.run_totals();
    let squares = |runs: &[f64]| {
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        runs.iter().map(|x| (x / mean - 1.0).powi(2)).sum::<f64>()
    };
    let (base, rest) = totals.split_at(rows.runs[0]);
    let (new, learned) = rest.split_at(rows.runs[1]);
    let all: f64 = [base, new, learned].into_iter().filter(|runs| runs.len() > 1).map(squares).sum();
    all / degrees_of_runs(rows).max(1) as f64
}

/// Returns the variance between runs of each set. Variances are pooled within sides, reduced by the sampling error, and
/// shrunk towards the median of sets of similar size. If the amount of work was given, the length of runs is noise,
/// too.
pub(super) fn variance_of_runs(rows: &StackRows, sets: &Sets, is_given: bool) -> Variances {
    let ends = [0, rows.runs[0], rows.runs[0] + rows.runs[1], rows.runs_of_row()];
    let sides: Vec<_> = ends.windows(2).map(|w| w[0]..w[1]).filter(|side| !side.is_empty()).collect();
    let length = lengths_of_runs(rows, &sides, is_given);
    let set_excess = excess_of_sets(rows, sets, &sides, &length);
    if rows.kind == ValueKind::Delay {
        // The variation of locks between equal runs ranges from 1% to a factor of 30, so other locks do not help.
        let set_excess = set_excess.into_iter().map(|excess| excess.max(MIN_TAU_OF_LOCK * MIN_TAU_OF_LOCK));
        return Variances::OfSets(set_excess.collect());
    }
    match prior(rows.kind) {
        Some(prior) => Variances::OfSets(shrunk_variances(rows, sets, &set_excess, prior.shrink)),
        None => Variances::OfSets(set_excess.into_iter().map(|excess| excess.max(0.0)).collect()),
    }
}

/// Returns the number by which the values of each run are divided.
///
/// Normalizes each run by its length, which includes the machine's speed: a cause cannot differ within a side, and the
/// search estimates the amount of work from all functions. If the amount of work was given, a faster machine looks like
/// less cost, so lengths remain. For delays, waiting itself is the variation. Counts do not depend on the machine's speed.
fn lengths_of_runs(rows: &StackRows, sides: &[Range<usize>], is_given: bool) -> Vec<f64> {
    let mut length = vec![0.0; rows.runs_of_row()];
    for (i, _) in rows.rows.iter().enumerate().filter(|(_, row)| !row.background) {
        rows.run_values.cells_of(i).iter().for_each(|cell| length[cell.column as usize] += cell.value);
    }
    for side in sides {
        let mean = length[side.clone()].iter().sum::<f64>() / side.len() as f64;
        length[side.clone()]
            .iter_mut()
            .for_each(|x| *x = if mean > 0.0 { (*x / mean).max(MIN_RELATIVE_LENGTH_OF_RUN) } else { 1.0 });
        if is_given || matches!(rows.kind, ValueKind::Delay | ValueKind::Counted) {
            length[side.clone()].fill(1.0);
        }
    }
    length
}

/// Returns the variance of each set within the sides, reduced by the sampling error. May be negative.
fn excess_of_sets(rows: &StackRows, sets: &Sets, sides: &[Range<usize>], length: &[f64]) -> Vec<f64> {
    let degrees = degrees_of_runs(rows) as f64;
    let mut run_columns: Vec<Vec<(u32, f64)>> = vec![Vec::new(); rows.runs_of_row()];
    for row in checkpointed(0..rows.rows.len()) {
        rows.run_values
            .cells_of(row)
            .iter()
            .for_each(|cell| run_columns[cell.column as usize].push((row as u32, cell.value)));
    }
    let mut excess = vec![0.0; sets.len()];
    for side in sides {
        // By set: the sum over the side's runs, and the sum of squares.
        let mut sums = vec![[0.0; 2]; sets.len()];
        let mut row_values = vec![0.0; rows.rows.len()];
        for (cells, length) in run_columns[side.clone()].iter().zip(&length[side.clone()]) {
            cells.iter().for_each(|&(row, value)| row_values[row as usize] = value);
            let before = sets.prefix_sums(|row| row_values[row as usize]);
            for (j, [sum, squares]) in checkpointed(sums.iter_mut().enumerate()) {
                let x = sets.sum(j, &before) / length;
                (*sum, *squares) = (*sum + x, *squares + x * x);
            }
            cells.iter().for_each(|&(row, _)| row_values[row as usize] = 0.0);
        }
        let n = side.len() as f64;
        for (j, [sum, squares]) in sums.into_iter().enumerate() {
            let mean = sum / n;
            if mean > 0.0 {
                excess[j] += (squares - sum * mean) / (mean * mean) - (n - 1.0) * sets.sets[j].event / mean;
            }
        }
    }
    excess.into_iter().map(|excess| excess / degrees).collect()
}

/// Shrinks the variance of each set towards the median of sets of similar size. `shrink` is [`Prior::shrink`].
fn shrunk_variances(rows: &StackRows, sets: &Sets, set_excess: &[f64], shrink: f64) -> Vec<f64> {
    let degrees = degrees_of_runs(rows) as f64;
    let tau = known_deviation(rows.kind);
    let prior = tau * tau;
    let events = |j: usize| (sets.sets[j].values[0] + sets.sets[j].values[1]) / sets.sets[j].event.max(1e-300);
    let mut tau2 = vec![prior; sets.len()];
    for class in 0..3 {
        let group: Vec<usize> = (0..sets.len()).filter(|&j| sets.sets[j].key.class() == class).collect();
        let large = group.iter().filter(|&&j| events(j) > MIN_EVENTS_FOR_COMMON_VARIANCE).count() as f64;
        // Large sets are quieter than small sets, because more functions average out.
        let [small, medium] = STRATA_OF_EVENTS;
        let strata = if class == 1 { vec![0.0, small, medium, f64::INFINITY] } else { vec![0.0, f64::INFINITY] };
        let mut common = None;
        for bounds in strata.windows(2) {
            let within: Vec<usize> =
                group.iter().copied().filter(|&j| (bounds[0]..bounds[1]).contains(&events(j))).collect();
            let telling = within.iter().filter(|&&j| events(j) > MIN_EVENTS_FOR_COMMON_VARIANCE && !sets.sets[j].whole);
            let mut telling: Vec<f64> = telling.map(|&j| set_excess[j]).collect();
            let previous = common;
            let typical = if telling.len() >= MIN_SETS_FOR_COMMON_VARIANCE {
                median(&mut telling).max(0.0)
            } else {
                previous.unwrap_or(prior)
            };
            let typical = typical.max(prior * (1.0 - large / shrink).max(0.0));
            common = Some(typical);
            for j in within {
                let d0 = f64::from(MeasuredNoise::drawn(0).degrees());
                tau2[j] = (d0 * typical + degrees * set_excess[j].max(0.0)) / (d0 + degrees);
            }
        }
    }
    tau2
}

impl ScaleModel<'_> {
    /// Returns the variance between runs for one pair: the variance that makes the ratios of untouched sets consistent
    /// with chance, shrunk towards the prior.
    pub(super) fn variance_of_pair(&self) -> Variances {
        let Some(Prior { floor, trust, shrink }) = prior(self.rows.kind) else {
            return Variances::OfClasses([0.0; 3]);
        };
        let tau = known_deviation(self.rows.kind);
        let prior = tau * tau;
        let Telling { by_class, n_own } = &self.sets.telling;
        // Touched sets may have fewer events than before.
        let telling_touched =
            |set: u32| self.is_touched(set as usize) && self.events(set as usize) > MIN_TELLING_EVENTS;
        let is_untouched = |set: u32| !self.is_touched(set as usize);
        let own_sets = (0..*n_own).filter(|&set| self.sets.sets[set as usize].tells());
        let frames = own_sets.filter(|&set| is_untouched(set) || telling_touched(set)).count() as f64;
        let floor = floor * floor * (1.0 - frames / trust).max(0.0);
        // With unstable inlining, all pairs are noisy.
        let deviations = if self.rows.runtime.unstable_inlining { 0.0 } else { MIN_DEVIATIONS_OF_NOISY_PAIR };
        Variances::OfClasses([0, 1, 2].map(|class| {
            let class_sets = || checkpointed(by_class[class].iter().copied());
            let mut used: Vec<u32> = class_sets().filter(|&set| is_untouched(set)).collect();
            if used.len() < MIN_FRAMES_FOR_TAU_OF_PAIR {
                used = class_sets().filter(|&set| is_untouched(set) || telling_touched(set)).collect();
            }
            let count = used.len() as f64;
            let mut estimate = 0.0;
            if used.len() >= MIN_FRAMES_FOR_TAU_OF_PAIR {
                let step = used.len().div_ceil(MAX_RATIOS);
                let ratio = |&j: &u32| {
                    let sums = self.sums(j as usize);
                    (sums.b, sums.n, sums.r)
                };
                let ratios: Vec<_> = used.iter().step_by(step).map(ratio).collect();
                let measured = variance_of_ratios(&ratios, deviations)
                    / (1.0 / self.rows.runs[0] as f64 + 1.0 / self.rows.runs[1] as f64);
                estimate =
                    (WEIGHT_OF_PRIOR_TAU * measured.min(prior) + count * measured) / (WEIGHT_OF_PRIOR_TAU + count);
            }
            estimate.max(prior * (1.0 - count / shrink).max(0.0)).max(floor)
        }))
    }
}

/// Returns true if noise between runs is measured, instead of estimated from one pair: if both sides have several runs,
/// or if there are several A/A runs.
pub(crate) fn is_replicated(rows: &StackRows) -> bool {
    rows.runs.iter().all(|&m| m > 1) || rows.learned > 1
}

/// Returns Bonferroni's threshold over the functions' own costs and the calls. It counts only sets with enough events
/// to exceed it: a change that cannot be detected is not tested (Tarone 1990).
pub(super) fn threshold_of(rows: &StackRows, sets: &Sets) -> f64 {
    let tested = sets.sets.iter().filter(|s| matches!(s.key, SetKey::Own(_) | SetKey::Edge(..)));
    // Maximum deviance of a set: all of its events on one side, although both sides should have the same number.
    let max_deviance = deviance(0.0, 1.0, 1.0);
    let max_deviances: Vec<f64> =
        tested.map(|s| (s.values[0] + s.values[1]) / s.event.max(1e-300) * max_deviance).collect();
    let n_reachable = |limit: f64| max_deviances.iter().filter(|&&max| max > limit).count();
    let measured = is_replicated(rows).then(|| measured(rows));
    let threshold_for = |candidates: usize| threshold(candidates, measured);
    // Finds the smallest number of candidates that covers all sets that can exceed its threshold.
    let (mut low, mut high) = (0, max_deviances.len());
    while low < high {
        let middle = (low + high) / 2;
        if n_reachable(threshold_for(middle)) <= middle {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    threshold_for(low)
}
