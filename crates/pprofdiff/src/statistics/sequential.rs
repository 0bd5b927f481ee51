//! Decides when enough runs were taken. The module keeps a confidence sequence for the mean of paired differences of
//! unknown variance. It holds over all looks together, so a caller may look after every pair and continue for any
//! length.
//!
//! The mixture of Student's t over a normal prior of the standardised mean with variance `1/c²` is a test martingale
//! under a scale-invariant filtration (Lai 1976; Wang and Ramdas 2023, *Anytime-valid t-tests and confidence sequences
//! for Gaussian means with unknown variance*, theorem 4.7). With `r = c²/(n + c²)` the martingale is
//! `sqrt(r) ((1 + t²/(n-1)) / (1 + r t²/(n-1)))^(n/2)`.
//! By Ville's inequality, at most a fraction `alpha` of sequences ever exceeds `1/alpha`, whatever their length.

use std::collections::{BTreeMap, BTreeSet};

use super::distributions::{student_quantile, student_tail};
use super::rank::signed_rank_test;
use pprofdiff_profile::short_lists::sort_by;

/// The value of `c²`. It minimizes the number of pairs for differences of about two standard deviations.
const PRIOR: f64 = 0.25;
/// The probability of a false change over all looks and all frames. It is split between the total and the frames. Each
/// share is split again, between all looks together and a single planned last look. A test that runs once detects
/// changes that a sequence, which must hold forever, does not detect yet.
pub const ALARMS: f64 = 0.01;
const TOTAL_ALARMS: f64 = 0.003;
const TOTAL_LAST_ALARMS: f64 = 0.003;
const FRAME_ALARMS: f64 = 0.002;
const FRAME_LAST_ALARMS: f64 = 0.002;
/// The part of the accepted alarms for counts. Their real changes exceed their noise by far.
const ALARMS_OF_COUNTS: f64 = 0.2;
/// The probability of ruling out a true change that is larger than the effect.
pub const MISSES: f64 = 0.05;
/// The minimum number of pairs for a rank test at the last look. Ranks are robust against load that comes and goes.
/// Fewer pairs use Student's test, because a few ranks cannot reach the required p-value. With fewer than
/// `MIN_LAST_LOOK` pairs, the last look decides nothing.
const RANKED: usize = 20;
const MIN_LAST_LOOK: usize = 5;
/// The minimum cost of a tested frame on at least one side, as a part of the mean total of the pairs. `check` has the
/// same default floor.
const FLOOR: f64 = 0.01;

/// The conclusion from the pairs so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// The sides differ: in total, or in a frame.
    Change,
    /// The sides differ by no more than the effect: in total, and in each frame relative to the total.
    NoLargerChange,
    /// More pairs are necessary.
    Open,
}

/// The cost of a run per operation.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunCost {
    /// The total cost.
    pub total: f64,
    /// The costs by function: flat and cum.
    pub frames: BTreeMap<String, [f64; 2]>,
}

impl RunCost {
    /// Returns the cost of a run without known frames.
    pub fn of_total(total: f64) -> RunCost {
        RunCost { total, frames: BTreeMap::new() }
    }
}

/// A frame with a statistically significant change.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FrameChange {
    /// The function.
    pub name: String,
    /// True if `cum` changed, false if `flat` changed.
    pub is_cum: bool,
    /// The change, as a part of the total.
    pub of_total: f64,
    /// The change as a part of the frame's own cost; infinite for a new frame.
    pub growth: f64,
}

/// A frame's difference in each pair, as a part of the pair's mean total. `base` and `new` are the sums of the frame's
/// costs over all pairs, as parts of the same totals.
#[derive(Debug, Clone, Default)]
struct FramePairs {
    differences: Vec<f64>,
    base: f64,
    new: f64,
}

/// Pairs of runs, one run per side, and the smallest change that matters.
#[derive(Debug, Clone)]
pub struct Pairs {
    logs: Vec<f64>,
    frames: BTreeMap<(String, bool), FramePairs>,
    /// The maximum number of tested frames with distinct values over all looks so far.
    tested: usize,
    effect: f64,
    /// The number of pairs at the last look, if it was taken.
    last_look: Option<usize>,
    /// True for counts of all calls or instructions, which have no noise but the differences between runs.
    is_counted: bool,
}

impl Pairs {
    /// Returns an empty sequence. `effect` is the smallest change that matters, as a part: 0.02.
    pub fn new(effect: f64) -> Pairs {
        Pairs { logs: Vec::new(), frames: BTreeMap::new(), tested: 0, effect, last_look: None, is_counted: false }
    }

    /// Returns an empty list of pairs of counted runs. One pair decides: a count that differs by more than `effect` of the
    /// total is a change. With several pairs, the change must also exceed the variation between them (Student's t). Their
    /// number must not depend on their results, except that one pair may be enough if it shows no change.
    pub fn of_counts(effect: f64) -> Pairs {
        Pairs { is_counted: true, ..Pairs::new(effect) }
    }

    /// Adds a pair. Ignores a pair whose ratio of totals is not a positive finite number, such as a pair with a total
    /// of 0.
    pub fn push(&mut self, base: &RunCost, new: &RunCost) {
        let log = (new.total / base.total).ln();
        if !log.is_finite() {
            return;
        }
        let (before, mean) = (self.logs.len(), (base.total + new.total) / 2.0);
        self.logs.push(log);
        let names: BTreeSet<&String> = base.frames.keys().chain(new.frames.keys()).collect();
        for name in names {
            let [base, new] = [base, new].map(|side| side.frames.get(name).copied().unwrap_or_default());
            for (i, is_cum) in [false, true].into_iter().enumerate() {
                let frame = self.frames.entry((name.clone(), is_cum)).or_default();
                // The frame had zero cost in all earlier pairs.
                frame.differences.resize(before, 0.0);
                frame.differences.push((new[i] - base[i]) / mean);
                (frame.base, frame.new) = (frame.base + base[i] / mean, frame.new + new[i] / mean);
            }
        }
        self.frames.values_mut().for_each(|frame| frame.differences.resize(before + 1, 0.0));
        self.tested = self.tested.max(self.tested_frames().len());
    }

    /// Takes the single planned last look, after all runs. The number of runs must not depend on their results, because
    /// the test of the last look is valid for one planned look only. Ignores a second call.
    pub fn look_last(&mut self) {
        self.last_look.get_or_insert(self.logs.len());
    }

    /// Restores the last look when stored pairs are read again: it was taken after `pairs` pairs.
    pub fn looked_last_after(&mut self, pairs: Option<usize>) {
        self.last_look = pairs;
    }

    /// Returns the number of pairs at the last look; `None` before it.
    pub fn last_look(&self) -> Option<usize> {
        self.last_look
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.logs.len()
    }

    /// Returns true if there are zero pairs.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// Returns the mean change of the total, as a part: 0.02 for 2 %. It is the geometric mean over the pairs. Returns
    /// `None` without pairs.
    pub fn change(&self) -> Option<f64> {
        (!self.logs.is_empty()).then(|| mean(&self.logs).exp_m1())
    }

    /// Returns the range of changes of the total that are not ruled out, with an error of `alpha` over all looks.
    /// Returns `None` while the pairs are too few to rule out any change.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        self.range(&self.logs, alpha).map(|(low, high)| (low.exp_m1(), high.exp_m1()))
    }

    /// Returns [`Pairs::interval`] for the change of a frame as a part of the total, or for the total without a frame.
    /// A frame that no pair has did not change.
    pub fn interval_of(&self, frame: Option<&FrameChange>, alpha: f64) -> Option<(f64, f64)> {
        let Some(frame) = frame else { return self.interval(alpha) };
        match self.frames.get(&(frame.name.clone(), frame.is_cum)) {
            Some(frame) => self.range(&frame.differences, alpha),
            None => self.range(&vec![0.0; self.logs.len()], alpha),
        }
    }

    /// Returns the range of means that are not ruled out.
    fn range(&self, values: &[f64], alpha: f64) -> Option<(f64, f64)> {
        if self.is_counted { interval_of_counts(values, alpha) } else { interval(values, alpha) }
    }

    /// Returns the change of the total and of each tested frame with the largest difference between two pairs, as a part
    /// of the total; 0 for a single pair.
    pub fn spread(&self) -> f64 {
        let range = |values: &[f64]| {
            let [low, high] = [f64::min as fn(f64, f64) -> f64, f64::max].map(|of| values.iter().copied().reduce(of));
            high.zip(low).map_or(0.0, |(high, low)| high - low)
        };
        let frames = self.tested_frames();
        frames.iter().map(|(_, frame)| range(&frame.differences)).fold(range(&self.logs), f64::max)
    }

    /// Returns true if the total changed by more than chance explains, with an error of `TOTAL_ALARMS` over all looks
    /// and of `TOTAL_LAST_ALARMS` at the last look.
    pub fn has_total_changed(&self) -> bool {
        self.has_changed(&self.logs, TOTAL_ALARMS, TOTAL_LAST_ALARMS)
    }

    /// Returns the frames that changed by more than chance explains, largest change first. All tested frames share the
    /// accepted error.
    pub fn changed_frames(&self) -> Vec<FrameChange> {
        let count = self.tested.max(1) as f64;
        let frames = self
            .tested_frames()
            .into_iter()
            .filter(|(_, frame)| self.has_changed(&frame.differences, FRAME_ALARMS / count, FRAME_LAST_ALARMS / count));
        let change = |((name, is_cum), frame): (&(String, bool), &FramePairs)| FrameChange {
            name: name.clone(),
            is_cum: *is_cum,
            of_total: mean(&frame.differences),
            growth: frame.new / frame.base - 1.0,
        };
        let mut changes: Vec<FrameChange> = frames.map(change).collect();
        sort_by(&mut changes, |a, b| b.of_total.abs().total_cmp(&a.of_total.abs()));
        changes
    }

    /// Returns the decision after the pairs so far. A change takes precedence.
    pub fn decision(&self) -> Decision {
        if self.has_total_changed() || !self.changed_frames().is_empty() {
            return Decision::Change;
        }
        // All tests must agree on "no larger change", so the error of one test bounds the error of all.
        let is_within = |(low, high): (f64, f64)| low >= -self.effect && high <= self.effect;
        let is_small = |frame: &FramePairs| self.range(&frame.differences, MISSES).is_some_and(is_within);
        let is_all = self.interval(MISSES).is_some_and(is_within)
            && self.tested_frames().into_iter().all(|(_, frame)| is_small(frame));
        if is_all { Decision::NoLargerChange } else { Decision::Open }
    }

    fn has_changed(&self, values: &[f64], alarms: f64, last_alarms: f64) -> bool {
        if self.is_counted {
            let is_clear = interval_of_counts(values, alarms * ALARMS_OF_COUNTS)
                .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            return is_clear && mean(values).abs() > self.effect;
        }
        let is_clear = interval(values, alarms).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        is_clear || self.last_look.and_then(|pairs| values.get(..pairs)).is_some_and(|v| last_p(v) <= last_alarms)
    }

    /// Returns the frames that are large enough to be tested. Frames with identical values count once, such as the flat
    /// and cum cost of a function without callees.
    fn tested_frames(&self) -> Vec<(&(String, bool), &FramePairs)> {
        let min_sum = FLOOR * self.logs.len() as f64;
        let mut tested: Vec<(&(String, bool), &FramePairs)> = Vec::new();
        let mut seen = BTreeSet::new();
        // A caller's count changes by exactly as much as its callee's, and callers of counted functions are estimated.
        let is_tested = |(_, is_cum): &(String, bool)| !(self.is_counted && *is_cum);
        let frames = self.frames.iter().filter(|(key, _)| is_tested(key));
        for (key, frame) in frames.filter(|(_, frame)| frame.base.max(frame.new) >= min_sum) {
            if seen.insert(frame.differences.iter().map(|value| value.to_bits()).collect::<Vec<_>>()) {
                tested.push((key, frame));
            }
        }
        tested
    }
}

/// Returns the range of means that are not ruled out, with an error of `alpha` over all looks. Returns `None` for fewer
/// than two values, and while no bound is finite.
fn interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = mean(values);
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let r = PRIOR / (n + PRIOR);
    // The bound at which the martingale equals 1/alpha, solved for t²/(n-1).
    let k = (1.0 / (alpha * r.sqrt())).powf(2.0 / n);
    if r * k >= 1.0 {
        return None;
    }
    let t = ((n - 1.0) * (k - 1.0) / (1.0 - r * k)).sqrt();
    let half = t * (variance / n).sqrt();
    Some((mean - half, mean + half))
}

/// The noise between pairs of equal runs, as standard deviations of the change of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairNoise {
    /// The change of the total.
    pub total: f64,
    /// The change of a function with a tenth of the total, as a part of its own cost. `None` without functions of about
    /// this size.
    pub tenth: Option<f64>,
}

/// The maximum number of runs per side that [`Pairs::runs_to_find`] returns.
pub const MAX_RUNS_TO_FIND: usize = 100;
/// The part of benchmarks that must find a change, and the number of simulated benchmarks.
const POWER_OF_RUNS: f64 = 0.9;
const SIMULATED: usize = 400;
/// The sizes of functions from which the noise of a function with a tenth of the total is estimated.
const ABOUT_A_TENTH: std::ops::RangeInclusive<f64> = 0.04..=0.25;

impl Pairs {
    /// Returns the noise that pairs of equal sides show.
    pub fn noise(&self) -> PairNoise {
        let n = self.logs.len() as f64;
        let relative = |frame: &FramePairs| {
            let share = (frame.base + frame.new) / 2.0 / n;
            (share, deviation(&frame.differences) / share)
        };
        let frames: Vec<(f64, f64)> = self.tested_frames().into_iter().map(|(_, frame)| relative(frame)).collect();
        let near: Vec<f64> =
            frames.iter().filter(|(share, _)| ABOUT_A_TENTH.contains(share)).map(|(_, d)| *d).collect();
        // Otherwise assumes sampling noise, whose variance is inversely proportional to the cost.
        let scaled = || frames.iter().map(|(share, deviation)| deviation * (share / 0.1).sqrt()).collect();
        let mut all: Vec<f64> = if near.is_empty() { scaled() } else { near };
        all.sort_by(f64::total_cmp);
        PairNoise { total: deviation(&self.logs), tenth: all.get(all.len() / 2).copied() }
    }

    /// Returns the larger change of the total and of a tested function, as a part of the total.
    pub fn largest_change(&self) -> f64 {
        let frames = self.tested_frames();
        frames.iter().map(|(_, frame)| mean(&frame.differences).abs()).fold(mean(&self.logs).abs(), f64::max)
    }

    /// Returns the number of runs per side with which nine of ten benchmarks find a change of the total of this size,
    /// given the noise of these pairs. `None` for more than [`MAX_RUNS_TO_FIND`].
    pub fn runs_to_find(&self, change: f64) -> Option<usize> {
        runs_to_find(change, self.noise().total, [TOTAL_ALARMS, TOTAL_LAST_ALARMS])
    }

    /// Like [`Pairs::runs_to_find`], for a change of a function with a tenth of the total, as a part of its own cost.
    pub fn runs_to_find_in_tenth(&self, change: f64) -> Option<usize> {
        let tested = self.tested.max(1) as f64;
        runs_to_find(change, self.noise().tenth?, [FRAME_ALARMS / tested, FRAME_LAST_ALARMS / tested])
    }
}

fn deviation(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, mean(values));
    if n < 2.0 { 0.0 } else { (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt() }
}

/// Simulates benchmarks whose pairs differ by `change` and vary by `deviation`. The simulation is the same each time.
fn runs_to_find(change: f64, deviation: f64, [alarms, last_alarms]: [f64; 2]) -> Option<usize> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    };
    // The sum of twelve uniform numbers is about normal.
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); SIMULATED];
    let mut is_found = vec![false; SIMULATED];
    for n in 1..=MAX_RUNS_TO_FIND {
        let mut found = 0;
        for (values, is_found) in runs.iter_mut().zip(&mut is_found) {
            values.push(change + deviation * normal());
            *is_found = *is_found || interval(values, alarms).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            found += usize::from(*is_found || last_p(values) <= last_alarms);
        }
        if found as f64 >= POWER_OF_RUNS * SIMULATED as f64 {
            return Some(n);
        }
    }
    None
}

/// Returns the range of means of counts that are not ruled out, with an error of `alpha` for a planned number of pairs.
/// Returns `None` without values. One value, and equal values, are the mean itself.
fn interval_of_counts(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = mean(values);
    let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    let half = match n {
        1 => 0.0,
        _ => student_quantile(alpha / 2.0, n as u32 - 1) * (squares / (n - 1) as f64 / n as f64).sqrt(),
    };
    Some((mean - half, mean + half))
}

/// Returns the p-value of the last look, for the hypothesis that the mean difference is 0. Returns 1 for fewer than
/// `MIN_LAST_LOOK` values.
fn last_p(values: &[f64]) -> f64 {
    let n = values.len();
    if n >= RANKED {
        return signed_rank_test(values);
    }
    let mean = mean(values);
    if n < MIN_LAST_LOOK || mean == 0.0 {
        return 1.0;
    }
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
    2.0 * student_tail(mean.abs() / (variance / n as f64).sqrt(), n as u32 - 1)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::{Decision, Pairs, RunCost};

    fn push(pairs: &mut Pairs, base: f64, new: f64) {
        pairs.push(&RunCost::of_total(base), &RunCost::of_total(new));
    }

    /// Returns a pseudorandom normal number: the sum of twelve uniform numbers from SplitMix64.
    fn normal(state: &mut u64) -> f64 {
        let mut dice = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as f64 / u64::MAX as f64
        };
        (0..12).map(|_| dice()).sum::<f64>() - 6.0
    }

    /// Returns how often a change is reported and ruled out, per thousand sequences, and the average number of pairs.
    /// Runs vary by `noise`. Under load, which comes and goes, consecutive runs take `load` longer.
    fn simulate(change: f64, noise: f64, load: f64, max_pairs: usize) -> (usize, usize, f64) {
        let (mut state, mut alarms, mut ruled_out, mut pairs_of_all) = (7u64, 0, 0, 0);
        let rounds = 2000;
        for round in 0..rounds {
            let (mut pairs, mut busy) = (Pairs::new(0.02), 0.0f64);
            while pairs.len() < max_pairs && pairs.decision() == Decision::Open {
                let mut sides = [0.0; 2];
                // The sides alternate in order: A B, B A.
                for side in if (pairs.len() + round) % 2 == 0 { [0, 1] } else { [1, 0] } {
                    busy = if normal(&mut state) > 1.0 { 1.0 - busy } else { busy };
                    let mean = (side as f64 * change).exp() * (1.0 + load * busy);
                    sides[side] = mean * (noise * normal(&mut state)).exp();
                }
                push(&mut pairs, sides[0], sides[1]);
            }
            if pairs.decision() == Decision::Open {
                pairs.look_last();
            }
            alarms += usize::from(pairs.decision() == Decision::Change);
            ruled_out += usize::from(pairs.decision() == Decision::NoLargerChange);
            pairs_of_all += pairs.len();
        }
        (alarms * 1000 / rounds, ruled_out * 1000 / rounds, pairs_of_all as f64 / rounds as f64)
    }

    /// The naive method for comparison: the medians of five runs of one side, then five of the second side, at 2 %.
    fn naive(noise: f64, load: f64) -> usize {
        let (mut state, mut alarms, mut busy) = (7u64, 0, 0.0f64);
        for _ in 0..2000 {
            let mut median = || {
                let mut runs: Vec<f64> = (0..5)
                    .map(|_| {
                        busy = if normal(&mut state) > 1.0 { 1.0 - busy } else { busy };
                        (1.0 + load * busy) * (noise * normal(&mut state)).exp()
                    })
                    .collect();
                runs.sort_by(f64::total_cmp);
                runs[2]
            };
            alarms += usize::from((median() / median()).ln().abs() > 0.02);
        }
        alarms * 1000 / 2000
    }

    /// The numbers in docs/bench.md come from this test.
    #[test]
    fn false_alarms_stay_below_one_percent_over_all_looks() {
        let mut lines = Vec::new();
        for (noise, load) in [(0.01, 0.0), (0.03, 0.0), (0.01, 0.1), (0.03, 0.3)] {
            let (alarms, ruled_out, pairs) = simulate(0.0, noise, load, 30);
            lines.push(format!(
                "noise {noise} load {load}: alarms {alarms} none {ruled_out} in 1000, {pairs:.1} pairs; naive {}",
                naive(noise, load)
            ));
            assert!(alarms <= 10, "{alarms} of 1000 with {noise} and {load}");
        }
        // A few runs, with the last look as a separate test.
        for (noise, load) in [(0.03, 0.0), (0.03, 0.3)] {
            let (alarms, ..) = simulate(0.0, noise, load, 8);
            lines.push(format!("8 pairs, noise {noise} load {load}: alarms {alarms} in 1000"));
            assert!(alarms <= 10, "{alarms} of 1000 with {noise} and {load}");
        }
        let (n_found, ..) = simulate(0.25, 0.1, 0.0, 8);
        lines.push(format!("8 pairs, change 0.25 noise 0.1: found {n_found} in 1000"));
        for (change, noise) in [(0.05, 0.01), (0.02, 0.01), (0.05, 0.03), (0.02, 0.03), (0.25, 0.2)] {
            let (n_found, _, pairs) = simulate(change, noise, 0.0, 30);
            lines.push(format!("change {change} noise {noise}: found {n_found} in 1000 after {pairs:.1} pairs"));
        }
        eprintln!("{}", lines.join("\n"));
        let (n_found, _, pairs) = simulate(0.05, 0.01, 0.0, 30);
        assert!(n_found >= 990 && pairs < 10.0, "{n_found} after {pairs}");
    }

    #[test]
    fn pairs_without_a_positive_total_are_ignored() {
        let mut pairs = Pairs::new(0.02);
        push(&mut pairs, 0.0, 1.0);
        push(&mut pairs, f64::NAN, 1.0);
        assert!(pairs.is_empty() && pairs.change().is_none() && pairs.interval(0.05).is_none());
        (0..9).for_each(|i| push(&mut pairs, 100.0, 100.0 + f64::from(i % 2) * 0.1));
        assert_eq!(pairs.decision(), Decision::NoLargerChange);
        (0..40).for_each(|i| push(&mut pairs, 100.0, 110.0 + f64::from(i % 2) * 0.1));
        assert_eq!(pairs.decision(), Decision::Change);
    }

    /// Returns the number of sequences with a reported change, and with `f0` as the first changed frame. Runs have 20
    /// frames, and the cost of `f0` grows by `change`. Each frame varies by 3 %, and each whole run by 3 %.
    fn simulate_frames(change: f64, rounds: usize) -> (usize, usize) {
        let (mut state, mut changed, mut first_is_f0) = (11u64, 0, 0);
        for round in 0..rounds {
            let mut pairs = Pairs::new(0.02);
            while pairs.len() < 20 && pairs.decision() == Decision::Open {
                let mut run = |is_new: bool| {
                    let machine = (0.03 * normal(&mut state)).exp();
                    let mut cost = RunCost::default();
                    for frame in 0..20 {
                        let grown = if frame == 0 && is_new { 1.0 + change } else { 1.0 };
                        let cost_of_frame = 5.0 * grown * machine * (0.03 * normal(&mut state)).exp();
                        cost.total += cost_of_frame;
                        cost.frames.insert(format!("f{frame}"), [cost_of_frame, cost_of_frame]);
                    }
                    cost
                };
                let (first, second) = (run(round % 2 == 1), run(round % 2 == 0));
                let (base, new) = if round % 2 == 1 { (second, first) } else { (first, second) };
                pairs.push(&base, &new);
            }
            if pairs.decision() == Decision::Open {
                pairs.look_last();
            }
            changed += usize::from(pairs.decision() == Decision::Change);
            first_is_f0 += usize::from(pairs.changed_frames().first().is_some_and(|frame| frame.name == "f0"));
        }
        (changed, first_is_f0)
    }

    /// A change of 1 % of the total in runs that vary by 3 %: the total alone cannot reveal it.
    #[test]
    fn a_changed_frame_is_reported_if_the_total_is_undecided_and_equal_frames_are_not() {
        let (alarms, _) = simulate_frames(0.0, 400);
        assert!(alarms <= 8, "{alarms} of 400");
        let (_, n_found) = simulate_frames(0.2, 100);
        assert!(n_found >= 95, "{n_found} of 100");
        eprintln!("frames: {alarms} alarms of 400, {n_found} found of 100");
    }

    /// Returns pairs of runs whose frames have these flat costs. Cum costs are one and a half times the flat costs.
    fn pairs_of(runs: usize, cost: impl Fn(usize, bool) -> Vec<(&'static str, f64)>) -> Pairs {
        let mut pairs = Pairs::new(0.02);
        for i in 0..runs {
            let [base, new] = [false, true].map(|is_new| {
                let mut run = RunCost::of_total(100.0);
                run.frames
                    .extend(cost(i, is_new).into_iter().map(|(name, flat)| (name.to_owned(), [flat, flat * 1.5])));
                run
            });
            pairs.push(&base, &new);
        }
        pairs
    }

    #[test]
    fn only_large_frames_are_tested_and_the_largest_change_comes_first() {
        let wobble = |i: usize| (i % 3) as f64 / 10.0;
        let pairs = pairs_of(20, |i, is_new| {
            let mut frames = match is_new {
                false => vec![("less", 40.0 + wobble(i)), ("more", 20.0), ("tiny", 0.2)],
                true => vec![("less", 34.0), ("more", 24.0 + wobble(i + 1)), ("tiny", 0.6)],
            };
            // A frame that occurs in some runs only.
            frames.extend((is_new && i > 2).then_some(("fresh", 2.0 + wobble(i))));
            frames
        });
        let changes = pairs.changed_frames();
        let names: Vec<(&str, bool)> = changes.iter().map(|frame| (frame.name.as_str(), frame.is_cum)).collect();
        let expected = ["less", "more", "fresh"].into_iter().flat_map(|name| [(name, true), (name, false)]);
        let mut expected: Vec<_> = expected.collect();
        expected.swap(1, 2);
        assert_eq!(names, expected);
        assert!(changes.windows(2).all(|two| two[0].of_total.abs() >= two[1].of_total.abs()), "{changes:?}");
        let [less, fresh] = [changes[2].clone(), changes[5].clone()];
        assert!((less.of_total + 0.061).abs() < 0.001 && (less.growth + 0.152).abs() < 0.001, "{less:?}");
        assert!((fresh.of_total - 0.0179).abs() < 0.0002 && fresh.growth.is_infinite(), "{fresh:?}");
        let fresh_differences = &pairs.frames[&("fresh".to_owned(), false)].differences;
        assert!(
            fresh_differences.len() == 20
                && fresh_differences[..3] == [0.0; 3]
                && fresh_differences[3..].iter().all(|d| *d > 0.0)
        );
        // Frames with equal values are tested once.
        let alike = pairs_of(4, |i, _| vec![("a", 30.0 + wobble(i)), ("b", 30.0 + wobble(i))]);
        assert_eq!((alike.frames.len(), alike.tested), (4, 1));
    }

    #[test]
    fn no_larger_change_also_requires_small_changes_of_all_frames() {
        let swap = |much: f64| {
            pairs_of(12, move |i, is_new| {
                let by = if is_new { much * [1.0, -1.0, 0.5, -0.5][i % 4] } else { 0.0 };
                vec![("a", 30.0 + by), ("b", 30.0 - by)]
            })
        };
        assert_eq!(swap(0.1).decision(), Decision::NoLargerChange);
        assert_eq!(swap(10.0).decision(), Decision::Open);
    }

    #[test]
    fn the_last_look_is_taken_once_and_covers_the_pairs_before_it() {
        let mut pairs = Pairs::new(0.02);
        // The growths vary too much for the sequence, but all are positive, which is rare by chance.
        let growth = |i: usize| if i.is_multiple_of(5) { 80.0 } else { 1.0 + i as f64 / 10.0 };
        (0..20).for_each(|i| push(&mut pairs, 100.0, 100.0 + growth(i)));
        assert_eq!(pairs.decision(), Decision::Open);
        pairs.look_last();
        assert_eq!((pairs.decision(), pairs.last_look()), (Decision::Change, Some(20)));
        let mut early = pairs.clone();
        early.looked_last_after(Some(3));
        early.look_last();
        assert_eq!((early.decision(), early.last_look()), (Decision::Open, Some(3)));
        // Identical differences need at least five pairs for a decision.
        let decided = |runs: usize| {
            let mut pairs = Pairs::new(0.02);
            (0..runs).for_each(|_| push(&mut pairs, 100.0, 110.0));
            pairs.look_last();
            pairs.decision()
        };
        assert_eq!([decided(4), decided(5)], [Decision::Open, Decision::Change]);
    }
}
