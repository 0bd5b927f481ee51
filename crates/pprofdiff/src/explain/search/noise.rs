//! Noise: what equal runs differ by, known before anything is measured, measured between runs, or estimated from a pair.

use super::model::Model;
use crate::explain::evidence::rows::{Kind, Rows};
use crate::explain::evidence::sets::{Key, Sets, TELLING, Telling};
use crate::statistics::counts::{Measured, between_run_variance, deviance, median, threshold, variance_of_ratios};
use pprofdiff_profile::work::paced;

/// The variance of the log of a set's ratio between runs, of which `tau2` is known. What one side does not have at all did
/// not wander there: a new function is no noisier than was known before. Where inlining makes frames come and go, it is
/// noisier.
pub(in crate::explain) fn variance_of(rows: &Rows, tau2: f64, [b, n]: [f64; 2]) -> f64 {
    let tau2 = match (b <= 0.0 || n <= 0.0, rows.runtime.trim_library_leaves) {
        (false, _) => tau2,
        (true, false) => tau2.min(known_variance(rows.kind)),
        (true, true) => tau2.max(FLICKER * FLICKER),
    };
    between_run_variance(tau2, rows.runs)
}

/// The variance of each set between equal runs.
#[derive(Debug, Clone)]
pub(in crate::explain) enum Variances {
    OfSets(Vec<f64>),
    /// The same for all sets of a class.
    OfClasses([f64; 3]),
}

impl Variances {
    pub(in crate::explain) fn of(&self, sets: &Sets, set: usize) -> f64 {
        match self {
            Variances::OfSets(variances) => variances[set],
            Variances::OfClasses(variances) => variances[sets.sets[set].key.class()],
        }
    }
}

/// What frames that compilers inline by chance differ by between builds, as a standard deviation of the log.
const FLICKER: f64 = 0.3;

/// What is known of noise before anything is measured: a frame's standard deviation between equal runs, as a part of
/// its value. From equal builds of the programs that this was written with (docs/explain.md).
struct Prior {
    tau: f64,
    /// The least that a pair of runs is taken for, and the number of frames that show that it was quieter.
    floor: f64,
    trust: f64,
    /// The number of frames that outweigh the prior.
    shrink: f64,
}

fn prior(kind: Kind) -> Prior {
    match kind {
        Kind::Sampled => Prior { tau: 0.07, floor: 0.06, trust: 60.0, shrink: 30.0 },
        Kind::Heap => Prior { tau: 0.02, floor: 0.01, trust: 40.0, shrink: 30.0 },
        Kind::Delay => Prior { tau: 0.95, floor: 0.5, trust: 12.0, shrink: 12.0 },
    }
}

/// The variance between equal runs that is known before anything is measured.
pub(in crate::explain) fn known_variance(kind: Kind) -> f64 {
    prior(kind).tau.powi(2)
}

/// What a wall clock shows differs more between equal runs than what a processor does: a frame waits for the others.
const OF_WALL: f64 = 0.15;

/// The variance between equal runs of a sample type, of which nothing but that is known.
pub(in crate::explain) fn known_variance_of(kind: Kind, is_wall: bool) -> f64 {
    if is_wall { OF_WALL * OF_WALL } else { known_variance(kind) }
}

/// What the estimate of a pair's noise is drawn towards the prior by, in frames.
const PULL: f64 = 10.0;

/// The number of standard deviations by which more frames must differ than chance explains, before a pair counts as noisy.
const QUIET: f64 = 2.0;

/// Ratios of so many sets show how much a pair differs by itself.
const MAX_RATIOS: usize = 2_000;

/// The least that a lock's delay is said to differ by between runs, as a standard deviation of the log; and the fewest locks
/// that a threshold is for: a program has few that matter.
const QUIETEST_LOCK: f64 = 0.1;

const MIN_LOCKS: usize = 10;

/// How noise between runs is measured.
pub(super) fn measured(rows: &Rows) -> Measured {
    let degrees = degrees_of_runs(rows);
    match rows.kind {
        Kind::Delay => Measured { degrees, prior: 0, fewest: MIN_LOCKS },
        Kind::Sampled | Kind::Heap => Measured::drawn(degrees),
    }
}

/// The degrees of freedom of the variances that runs of one build show, of a side or of equal builds.
fn degrees_of_runs(rows: &Rows) -> usize {
    [rows.runs[0], rows.runs[1], rows.learned].iter().map(|runs| runs.saturating_sub(1)).sum()
}

/// Variances between runs of each set, of replicates: pooled within sides, less what sampling makes, drawn towards the
/// median of sets of like size. Where it is given how much work runs did, how long they took is noise too.
pub(super) fn variance_of_runs(rows: &Rows, sets: &Sets, is_given: bool) -> Variances {
    let m = rows.runs_of_row();
    let degrees = degrees_of_runs(rows) as f64;
    // Each run by its length and the machine's speed: no cause is inside a side, and the amount of work is found by what all
    // functions agree on. Not if it is given: then a faster machine looks like less cost. Of delays, what a run waits for is
    // what differs.
    let mut length = vec![0.0; m];
    for (i, _) in rows.rows.iter().enumerate().filter(|(_, row)| !row.background) {
        rows.run_values.of(i).iter().for_each(|cell| length[cell.column as usize] += cell.value);
    }
    let ends = [0, rows.runs[0], rows.runs[0] + rows.runs[1], m];
    let sides: Vec<_> = ends.windows(2).map(|w| w[0]..w[1]).filter(|side| !side.is_empty()).collect();
    for side in &sides {
        let mean = length[side.clone()].iter().sum::<f64>() / side.len() as f64;
        length[side.clone()].iter_mut().for_each(|x| *x = if mean > 0.0 { (*x / mean).max(0.05) } else { 1.0 });
        if is_given || rows.kind == Kind::Delay {
            length[side.clone()].fill(1.0);
        }
    }
    let mut of_columns: Vec<Vec<(u32, f64)>> = vec![Vec::new(); m];
    for row in paced(0..rows.rows.len()) {
        rows.run_values.of(row).iter().for_each(|cell| of_columns[cell.column as usize].push((row as u32, cell.value)));
    }
    let mut excess = vec![0.0; sets.len()];
    for side in &sides {
        // Of each set the sum over the side's runs, and that of the squares.
        let mut sums = vec![[0.0; 2]; sets.len()];
        let mut of_rows = vec![0.0; rows.rows.len()];
        for (cells, length) in of_columns[side.clone()].iter().zip(&length[side.clone()]) {
            cells.iter().for_each(|&(row, value)| of_rows[row as usize] = value);
            let before = sets.before(|row| of_rows[row as usize]);
            for (j, [sum, squares]) in paced(sums.iter_mut().enumerate()) {
                let x = sets.sum(j, &before) / length;
                (*sum, *squares) = (*sum + x, *squares + x * x);
            }
            cells.iter().for_each(|&(row, _)| of_rows[row as usize] = 0.0);
        }
        let n = side.len() as f64;
        for (j, [sum, squares]) in sums.into_iter().enumerate() {
            let mean = sum / n;
            if mean > 0.0 {
                excess[j] += (squares - sum * mean) / (mean * mean) - (n - 1.0) * sets.sets[j].event / mean;
            }
        }
    }
    let each: Vec<f64> = excess.into_iter().map(|excess| excess / degrees).collect();
    if rows.kind == Kind::Delay {
        // Locks differ between equal runs by a hundredth or thirtyfold: what others do says nothing of one.
        let each = each.into_iter().map(|each| each.max(QUIETEST_LOCK * QUIETEST_LOCK));
        return Variances::OfSets(each.collect());
    }
    let Prior { tau, shrink, .. } = prior(rows.kind);
    let prior = tau * tau;
    let events = |j: usize| (sets.sets[j].values[0] + sets.sets[j].values[1]) / sets.sets[j].event.max(1e-300);
    let mut tau2 = vec![prior; sets.len()];
    for class in 0..3 {
        let group: Vec<usize> = (0..sets.len()).filter(|&j| sets.sets[j].key.class() == class).collect();
        let large = group.iter().filter(|&&j| events(j) > 30.0).count() as f64;
        // Large sets are quieter than small ones: more functions average out in them.
        let strata = if class == 1 { vec![0.0, 100.0, 400.0, f64::INFINITY] } else { vec![0.0, f64::INFINITY] };
        let mut common = None;
        for bounds in strata.windows(2) {
            let within: Vec<usize> =
                group.iter().copied().filter(|&j| (bounds[0]..bounds[1]).contains(&events(j))).collect();
            let telling = within.iter().filter(|&&j| events(j) > 30.0 && !sets.sets[j].whole);
            let mut telling: Vec<f64> = telling.map(|&j| each[j]).collect();
            let known = common;
            let here = if telling.len() >= 5 { median(&mut telling).max(0.0) } else { known.unwrap_or(prior) };
            let here = here.max(prior * (1.0 - large / shrink).max(0.0));
            common = Some(here);
            for j in within {
                let d0 = f64::from(Measured::drawn(0).degrees());
                tau2[j] = ((d0 * here + degrees * each[j].max(0.0)) / (d0 + degrees)).max(here / 4.0);
            }
        }
    }
    Variances::OfSets(tau2)
}

impl Model<'_> {
    /// Variances between runs, of one pair: what makes the ratios of the sets that no cause touches those of chance,
    /// drawn towards what is known.
    pub(super) fn variance_of_pair(&self) -> Variances {
        let Prior { tau, floor, trust, shrink } = prior(self.rows.kind);
        let prior = tau * tau;
        let Telling { of_classes, n_own } = &self.sets.telling;
        // Those that causes touch may have fewer events by now.
        let telling_touched = |set: u32| self.is_touched(set as usize) && self.events(set as usize) > TELLING;
        let is_untouched = |set: u32| !self.is_touched(set as usize);
        let own = (0..*n_own).filter(|&set| self.sets.sets[set as usize].tells());
        let frames = own.filter(|&set| is_untouched(set) || telling_touched(set)).count() as f64;
        let floor = floor * floor * (1.0 - frames / trust).max(0.0);
        // Where inlining makes frames come and go, all pairs are noisy.
        let deviations = if self.rows.runtime.unstable_inlining { 0.0 } else { QUIET };
        Variances::OfClasses([0, 1, 2].map(|class| {
            let of_class = || paced(of_classes[class].iter().copied());
            let mut used: Vec<u32> = of_class().filter(|&set| is_untouched(set)).collect();
            if used.len() <= 5 {
                used = of_class().filter(|&set| is_untouched(set) || telling_touched(set)).collect();
            }
            let count = used.len() as f64;
            let mut estimate = 0.0;
            if used.len() > 5 {
                let step = used.len().div_ceil(MAX_RATIOS);
                let ratio = |&j: &u32| {
                    let sums = self.sums(j as usize);
                    (sums.b, sums.n, sums.r)
                };
                let ratios: Vec<_> = used.iter().step_by(step).map(ratio).collect();
                let found = variance_of_ratios(&ratios, deviations)
                    / (1.0 / self.rows.runs[0] as f64 + 1.0 / self.rows.runs[1] as f64);
                estimate = (PULL * found.min(prior) + count * found) / (PULL + count);
            }
            estimate.max(prior * (1.0 - count / shrink).max(0.0)).max(floor)
        }))
    }
}

/// True if noise between runs is measured, and not only estimated from the pair itself.
pub(super) fn is_replicated(rows: &Rows) -> bool {
    rows.runs.iter().all(|&m| m > 1) || rows.learned > 1
}

/// Bonferroni's threshold over the functions' own costs and the calls, of those that have the events to exceed it: what
/// can't be found is not tested (Tarone 1990).
pub(super) fn threshold_of(rows: &Rows, sets: &Sets) -> f64 {
    let tested = sets.sets.iter().filter(|s| matches!(s.key, Key::Own(_) | Key::Edge(..)));
    // The most that a set can have: all of its events on one side, of which both were expected to have as much.
    let of_event = deviance(0.0, 1.0, 1.0);
    let most: Vec<f64> = tested.map(|s| (s.values[0] + s.values[1]) / s.event.max(1e-300) * of_event).collect();
    let can = |limit: f64| most.iter().filter(|&&most| most > limit).count();
    let measured = is_replicated(rows).then(|| measured(rows));
    let of = |candidates: usize| threshold(candidates, measured);
    // The fewest that are no fewer than can exceed the threshold of so many.
    let (mut low, mut high) = (0, most.len());
    while low < high {
        let middle = (low + high) / 2;
        if can(of(middle)) <= middle {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    of(low)
}
