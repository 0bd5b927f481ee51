//! Detection of level changes in a sequence that chance does not explain, and the variance-stabilizing scale for event
//! counts of a program.
//!
//! Sources: optimal partitioning by B. Jackson et al., IEEE Signal Process. Lett. 12 (2005) 105, extended by pruning of
//! start positions in blocks. Scale by F. J. Anscombe, Biometrika 35 (1948) 246, for counts with the variance
//! `c + (tau c)^2`.

use super::lines::{LineFit, LinePoints};
use pprofdiff::shared::statistics::distributions::student_tail;

/// The minimum number of values per level.
pub(crate) const LEAST: usize = 3;
/// The distance in standard deviations from both neighbours that makes a value a spike.
const SPIKE: f64 = 4.0;
/// The maximum distance in standard deviations from the median of five neighbouring values. Values beyond it are
/// clamped.
const FAR: f64 = 3.0;
/// The maximum number of lines that are compared with the steps.
const MAX_LINES: usize = 16;
/// The maximum ratio of the first or last step to the step beside it. Up to this ratio, the end value continues a trend
/// and is no spike.
const STEEPER: f64 = 3.0;
/// The weight, in degrees of freedom, of a variance that was learned from many sequences.
pub(crate) const DEGREES: f64 = 20.0;
/// The maximum p-value of a significant level change.
const SIGNIFICANT: f64 = 0.05;

/// Transforms a count to a scale with variance 1. The scale is twice the square root for counting noise alone, and the
/// log divided by tau for counts that vary by tau between builds.
pub(crate) fn leveled(count: f64, tau: f64) -> f64 {
    let x = tau * (count.max(0.0) + 0.375).sqrt();
    // The inverse hyperbolic sine. The standard function is also exact near 0, but takes three times as long.
    2.0 / tau * (x + (x * x + 1.0).sqrt()).ln()
}

/// Returns the count with this level, the inverse of [`leveled`]; at least 0.
pub(crate) fn unleveled(level: f64, tau: f64) -> f64 {
    let root = (tau * level / 2.0).sinh() / tau;
    (root.max(0.0) * root.max(0.0) - 0.375).max(0.0)
}

/// Returns the slope of [`leveled`] at a count.
pub(crate) fn leveled_slope(count: f64, tau: f64) -> f64 {
    let count = count.max(0.0) + 0.375;
    1.0 / (count * (1.0 + tau * tau * count)).sqrt()
}

/// Prefix sums of values and of their squares. They give the sum of squares about the mean of any range in constant
/// time.
pub(crate) struct Sums(Vec<(f64, f64)>);

impl Sums {
    pub(crate) fn new(values: &[f64]) -> Sums {
        // Values are taken relative to the first value, so that squares do not cancel.
        let center = values.first().copied().unwrap_or(0.0);
        let mut sums = vec![(0.0, 0.0)];
        for value in values {
            let (x, &(sum, squares)) = (value - center, &sums[sums.len() - 1]);
            sums.push((sum + x, squares + x * x));
        }
        Sums(sums)
    }

    /// Returns the sum of squares about the mean of `values[from..to]`.
    pub(crate) fn squares(&self, from: usize, to: usize) -> f64 {
        let (a, b) = (self.0[from], self.0[to]);
        let sum = b.0 - a.0;
        (b.1 - a.1 - sum * sum / (to - from).max(1) as f64).max(0.0)
    }

    /// Returns the mean of the range `after` minus the mean of the range `before`.
    pub(crate) fn difference(&self, after: (usize, usize), before: (usize, usize)) -> f64 {
        let mean = |(from, to): (usize, usize)| (self.0[to].0 - self.0[from].0) / (to - from) as f64;
        mean(after) - mean(before)
    }

    /// Returns the mean of the squared differences between the means of all neighbouring ranges of `length` values.
    pub(crate) fn mean_squared_difference(&self, length: usize) -> f64 {
        let ends = self.0.iter().zip(&self.0[length..]).zip(&self.0[2 * length..]);
        let square = |((from, middle), to): ((&(f64, f64), &(f64, f64)), &(f64, f64))| {
            let difference = (to.0 - middle.0) - (middle.0 - from.0);
            difference * difference
        };
        let n = (self.0.len() - 2 * length) as f64;
        ends.map(square).sum::<f64>() / (n * (length * length) as f64)
    }
}

/// A possible start of the last segment, with the data that every end needs.
#[derive(Clone, Copy)]
struct Start {
    index: usize,
    /// The minimum cost of all values before the start. For a block: up to the end of the block.
    cost: f64,
    sums: (f64, f64),
}

/// The number of starts per block, and of blocks per wide block.
const BLOCK: usize = 16;
/// The number of consecutive ends that share one list of candidate starts.
const ENDS: usize = 8;
/// The maximum relative rounding error of sums of squares.
pub(crate) const ROUNDING: f64 = 1e-9;

/// Returns the starts of segments with at least `least` values, without the start of the first segment. The segments
/// minimize the sum of squares about their means plus a `price` per segment.
///
/// The sum of squares about the mean of a range is at least the sum over its parts. The cost of a start therefore grows
/// with the end, which allows two kinds of pruning:
/// - A start can be skipped for several consecutive ends if its cost at the first end exceeds the cost of another start
///   at the last end.
/// - Every start of a block costs at least the minimum cost up to the block's end plus the squares from there on, so a
///   whole block can be skipped at once.
///
/// The time grows with the number of values times the number of wide blocks, and at worst with the square of the number
/// of values.
pub(crate) fn changes(sums: &Sums, price: f64, least: usize) -> Vec<usize> {
    let n = sums.0.len() - 1;
    let parts: Vec<f64> = (0..=n).map(|length| 1.0 / length.max(1) as f64).collect();
    let cost = |start: &Start, end: usize| {
        let (to, sum) = (sums.0[end], sums.0[end].0 - start.sums.0);
        start.cost + to.1 - start.sums.1 - sum * sum * parts[end - start.index]
    };
    let block = |starts: &[Start], index: usize| {
        let cost = starts.iter().map(|start| cost(start, index)).fold(f64::INFINITY, f64::min);
        Start { index, cost, sums: sums.0[index] }
    };
    // `last` holds the start of the last segment by end. `costs` holds the minimum cost up to the end, including the
    // price of the next segment.
    let (mut last, mut costs) = (vec![0; n + 1], vec![0.0; n + 1]);
    let mut starts: Vec<Start> = Vec::with_capacity(n);
    let (mut blocks, mut wide): (Vec<Start>, Vec<Start>) = (Vec::new(), Vec::new());
    let mut near = Start { index: 0, cost: 0.0, sums: sums.0[0] };
    let mut live: Vec<Start> = Vec::new();
    for first in (least..=n).step_by(ENDS) {
        let until = n.min(first + ENDS - 1);
        let limit = cost(&near, until);
        let limit = limit + ROUNDING * (sums.0[until].1 + limit.abs());
        let is_worse = |start: &Start| cost(start, first) > limit;
        live.clear();
        let mut look = |starts: &[Start]| live.extend(starts.iter().filter(|start| !is_worse(start)));
        let of_blocks = |blocks: &[Start], from: usize, look: &mut dyn FnMut(&[Start])| {
            for (i, _) in blocks.iter().enumerate().filter(|(_, block)| !is_worse(block)) {
                look(&starts[(from + i) * BLOCK..][..BLOCK]);
            }
        };
        for (i, _) in wide.iter().enumerate().filter(|(_, block)| !is_worse(block)) {
            of_blocks(&blocks[i * BLOCK..][..BLOCK], i * BLOCK, &mut look);
        }
        of_blocks(&blocks[wide.len() * BLOCK..], wide.len() * BLOCK, &mut look);
        look(&starts[blocks.len() * BLOCK..]);
        for end in first..=until {
            let index = end - least;
            if index == 0 || index >= least {
                let start = Start { index, cost: costs[index], sums: sums.0[index] };
                starts.push(start);
                if start.cost <= limit {
                    live.push(start);
                }
                if starts.len().is_multiple_of(BLOCK) {
                    blocks.push(block(&starts[starts.len() - BLOCK..], index));
                    if blocks.len().is_multiple_of(BLOCK) {
                        wide.push(block(&blocks[blocks.len() - BLOCK..], index));
                    }
                }
            }
            // Ties go to the first start.
            let mut best = (cost(&near, end), near);
            for start in &live {
                let start_cost = cost(start, end);
                if start_cost.total_cmp(&best.0).then(start.index.cmp(&best.1.index)).is_lt() {
                    best = (start_cost, *start);
                }
            }
            near = best.1;
            last[end] = near.index;
            costs[end] = best.0 + price;
        }
    }
    let mut changes = Vec::new();
    let mut index = last[n];
    while index > 0 {
        changes.push(index);
        index = last[index];
    }
    changes.reverse();
    changes
}

/// Removes spikes from values of variance 1, and clamps values that are far from their neighbours. Also returns the
/// flags of the removed spikes.
pub(crate) fn cut_spikes(values: &[f64]) -> (Vec<f64>, Vec<bool>) {
    let mut levels = values.to_vec();
    let mut is_spike = vec![false; levels.len()];
    for i in 0..levels.len() {
        let (value, around) = (values[i], [i.wrapping_sub(2), i.wrapping_sub(1), i + 1, i + 2]);
        let around = || around.iter().filter_map(|&j| values.get(j).copied());
        let (low, high) = around().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let is_far = value > high + SPIKE || value < low - SPIKE;
        if !is_far {
            continue;
        }
        // A spike needs two neighbours on one side that agree, while it differs from all neighbours. A value between
        // two levels, or on a rising trend, does not fit that description.
        let pair =
            |a: usize, b: usize| Some((*values.get(a)?, *values.get(b)?)).filter(|(a, b)| (a - b).abs() <= SPIKE);
        let sides = [pair(i.wrapping_sub(1), i.wrapping_sub(2)), pair(i + 1, i + 2)];
        let level = sides.into_iter().flatten().next().map(|(a, b)| (a + b) / 2.0);
        // Two levels meet at a value that is closer to one side than the sides are to each other, such as the first
        // value after a sawtooth fell. The value then belongs to the closer side.
        let mean = |a: usize, b: usize| Some((values.get(a)? + values.get(b)?) / 2.0);
        let meets = match [mean(i.wrapping_sub(1), i.wrapping_sub(2)), mean(i + 1, i + 2)] {
            [Some(before), Some(after)] => (value - before).abs().min((value - after).abs()) < (before - after).abs(),
            _ => false,
        };
        // A value at an end may continue the trend of the two values beside it.
        let goes_on = |near: Option<&f64>, far: Option<&f64>| match (near, far) {
            (Some(near), Some(far)) => {
                let (step, before) = (value - near, near - far);
                step * before > 0.0 && step.abs() <= STEEPER * before.abs()
            }
            _ => false,
        };
        let is_trend = i == 0 && goes_on(values.get(1), values.get(2))
            || i + 1 == values.len() && i >= 2 && goes_on(values.get(i - 1), values.get(i - 2));
        if let Some(level) = level.filter(|_| !is_trend && !meets) {
            levels[i] = level;
            is_spike[i] = true;
        }
    }
    // A value far from its neighbours only shows that it is an outlier, so its distance is limited.
    let cut = levels.clone();
    // The two values at each end are not clamped: a trend may continue there, and three values cannot rule that out.
    let ordered: Vec<i64> = cut.iter().map(|&value| to_ordered(value)).collect();
    for (five, level) in ordered.windows(5).zip(levels.iter_mut().skip(2)) {
        let median = of_ordered(median_of_five(five));
        *level = level.clamp(median - FAR, median + FAR);
    }
    (levels, is_spike)
}

/// Returns an integer whose order equals [`f64::total_cmp`].
fn to_ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Converts a result of [`to_ordered`] back to the number.
fn of_ordered(value: i64) -> f64 {
    f64::from_bits((value ^ (((value >> 63) as u64) >> 1) as i64) as u64)
}

/// Returns the median of the first five values. It is the median of three: the lower bound and the upper bound that two
/// pairs give, and the fifth value.
fn median_of_five(five: &[i64]) -> i64 {
    let &[a, b, c, d, e] = five else { return 0 };
    let low = a.min(b).max(c.min(d));
    let high = a.max(b).min(c.max(d));
    low.min(high).max(low.max(high).min(e))
}

/// Returns the segments before and after a change: the start of the first, the change, and the end of the second.
pub(crate) fn around(starts: &[usize], i: usize, n: usize) -> (usize, usize, usize) {
    let from = i.checked_sub(1).map_or(0, |before| starts[before]);
    (from, starts[i], starts.get(i + 1).copied().unwrap_or(n))
}

/// Returns the price of a level among `n` values of variance 1.
pub(crate) fn price(n: usize) -> f64 {
    3.0 * (n as f64).ln()
}

/// Returns the residuals about the means of segments.
fn about_levels(levels: &[f64], starts: &[usize]) -> Vec<f64> {
    let mut residuals = levels.to_vec();
    let mut from = 0;
    for to in starts.iter().copied().chain([levels.len()]) {
        let mean = levels[from..to].iter().sum::<f64>() / (to - from).max(1) as f64;
        residuals[from..to].iter_mut().for_each(|value| *value -= mean);
        from = to;
    }
    residuals
}

/// Returns the residuals about a line.
fn about_line(levels: &[f64], mean: f64, line: &LineFit) -> Vec<f64> {
    let x = |i: usize| i.saturating_sub(line.from) as f64;
    levels.iter().enumerate().map(|(i, y)| y - mean - line.slope * (x(i) - line.mean_x)).collect()
}

/// The number of correlations to try: 0, 0.05 and so on.
const CORRELATIONS: usize = 20;

/// Returns the minimum over all correlations of a first-order autoregression's squared error times the determinant of
/// its transformation.
fn autoregressive(residuals: &[f64]) -> f64 {
    let [first, .., last] = *residuals else { return f64::INFINITY };
    // The squared error is a polynomial of the correlation, and three sums are its coefficients.
    let (mut squares, mut products) = (last * last, 0.0);
    for two in residuals.windows(2) {
        squares += two[0] * two[0];
        products += two[0] * two[1];
    }
    let (before, after) = (squares - last * last, squares - first * first);
    let scaled = |k: usize| {
        let r = k as f64 / CORRELATIONS as f64;
        let rest = 1.0 - r * r;
        let error = after - 2.0 * r * products + r * r * before + rest * first * first;
        error.max(1e-9) / rest.powf(1.0 / residuals.len() as f64)
    };
    (0..CORRELATIONS).map(scaled).fold(f64::INFINITY, f64::min)
}

/// Keeps the steps that explain the values better than an autoregression without steps, at the significance `level`. A
/// sequence that wanders keeps none. If a line explains the values better than the steps, all steps stay.
fn beyond_wandering(levels: &[f64], starts: &mut Vec<usize>, level: f64) {
    if starts.is_empty() {
        return;
    }
    let n = levels.len();
    let degrees = |used: usize| n.saturating_sub(used + 2).max(1) as f64;
    let p = |with: f64, without: f64, degrees: f64| {
        student_tail((degrees * (without / with - 1.0)).max(0.0).sqrt(), degrees as u32)
    };
    let with = autoregressive(&about_levels(levels, starts));
    let all = n.saturating_sub(2 * LEAST - 1);
    let froms: Vec<usize> = (0..all).step_by(all.div_ceil(MAX_LINES).max(1)).collect();
    let points = LinePoints::new(levels.iter().copied().enumerate().collect());
    let lines = points.lines(&froms);
    let lines = lines.iter().map(|line| autoregressive(&about_line(levels, points.mean, line)));
    let line = lines.fold(f64::INFINITY, f64::min);
    if line < with && p(line, autoregressive(&about_levels(levels, &[])), degrees(2)) <= level {
        return;
    }
    while !starts.is_empty() {
        let with = autoregressive(&about_levels(levels, starts));
        let without = |i: usize| {
            let mut others = starts.clone();
            others.remove(i);
            p(with, autoregressive(&about_levels(levels, &others)), degrees(starts.len()))
        };
        let p: Vec<f64> = (0..starts.len()).map(without).collect();
        match (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).filter(|&i| p[i] > level) {
            Some(weakest) => _ = starts.remove(weakest),
            None => return,
        }
    }
}

/// Returns the variances of the mean levels before and after a change, in the unit of [`leveled`]. Values that vary by
/// more than the noise of other frames have their own variance. `memory` is as in [`steps`].
pub(crate) fn variances_of_means(
    sums: &Sums,
    (from, change, to): (usize, usize, usize),
    memory: impl Fn(usize) -> f64,
) -> [f64; 2] {
    let squares = sums.squares(from, change) + sums.squares(change, to);
    let shrunk = (DEGREES + squares) / (DEGREES + (to - from) as f64 - 2.0);
    [change - from, to - change].map(|length| memory(length).max(shrunk) / length as f64)
}

/// Returns the degrees of freedom of [`variances_of_means`] in a sequence of `n` values.
pub(crate) fn degrees_of_means(n: usize) -> u32 {
    (n as f64 + DEGREES) as u32
}

/// Returns the starts of levels that differ by more than chance explains, each with its p-value. `memory(m)` is the
/// ratio of the variance of a mean of m values to its variance under independence. A step must explain the values
/// better than an autoregression at the level `wandering`, which is `None` for sequences that are too short for that
/// comparison.
pub(crate) fn steps(
    levels: &[f64],
    sums: &Sums,
    memory: impl Fn(usize) -> f64,
    wandering: Option<f64>,
) -> Vec<(usize, f64)> {
    let n = levels.len();
    let mut starts = changes(sums, price(n) * memory(n), LEAST);
    if let Some(level) = wandering {
        beyond_wandering(levels, &mut starts, level);
    }
    // Removes the least significant change first, and tests the remaining changes again.
    loop {
        let p: Vec<f64> = (0..starts.len())
            .map(|i| {
                let (from, change, to) = around(&starts, i, n);
                let [before, after] = variances_of_means(sums, (from, change, to), &memory);
                let t = sums.difference((change, to), (from, change)).abs() / (before + after).sqrt();
                // The two-sided probability, times the number of pairs of builds that could have bounded a level.
                let levels = (n * n) as f64 / 2.0;
                (2.0 * student_tail(t, degrees_of_means(n)) * levels).min(1.0)
            })
            .collect();
        match (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).filter(|&i| p[i] > SIGNIFICANT) {
            Some(weakest) => _ = starts.remove(weakest),
            None => return starts.into_iter().zip(p).collect(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_the_minimum_cost() {
        let values = [0.1, -0.2, 0.3, 0.0, 5.1, 4.8, 5.2, 5.0, 4.9, 0.2, -0.1, 0.1];
        let sums = Sums::new(&values);
        assert_eq!(changes(&sums, 3.0, 2), [4, 9]);
        assert_eq!(changes(&sums, 1e6, 2), [] as [usize; 0]);
        assert!((sums.difference((4, 9), (0, 4)) - 4.95).abs() < 1e-9);
        // The result is compared with all partitions.
        let mut state = 1_u64;
        for _ in 0..200 {
            let values: Vec<f64> = (0..9)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as f64 / 1e7 * 3.0 + if i > 4 { 2.0 } else { 0.0 }
                })
                .collect();
            let sums = Sums::new(&values);
            let cost = |changes: &[usize]| -> Option<f64> {
                let ends = changes.iter().copied().chain([9]);
                let mut start = 0;
                let mut cost = 0.0;
                for end in ends {
                    if end < start + 2 {
                        return None;
                    }
                    cost += sums.squares(start, end) + 1.5;
                    start = end;
                }
                Some(cost)
            };
            let all =
                (0..1_u32 << 8).filter_map(|set| cost(&(1..9).filter(|i| set >> (i - 1) & 1 == 1).collect::<Vec<_>>()));
            let least = all.fold(f64::INFINITY, f64::min);
            let cost_found = cost(&changes(&sums, 1.5, 2)).unwrap_or(f64::INFINITY);
            assert!((cost_found - least).abs() < 1e-9, "{values:?}");
        }
    }

    /// Finds changes without blocks and limits: tries every start for every end.
    fn plain_changes(sums: &Sums, price: f64, least: usize) -> Vec<usize> {
        let n = sums.0.len() - 1;
        let (mut last, mut costs) = (vec![0; n + 1], vec![0.0; n + 1]);
        for end in least..=n {
            let is_start = |&index: &usize| index == 0 || index >= least;
            let cost = |index: usize| {
                let (from, to) = (sums.0[index], sums.0[end]);
                let sum = to.0 - from.0;
                costs[index] + to.1 - from.1 - sum * sum * (1.0 / (end - index) as f64)
            };
            let best = (0..=end - least).filter(is_start).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap();
            (last[end], costs[end]) = (best, cost(best) + price);
        }
        let mut changes: Vec<usize> =
            std::iter::successors(Some(last[n]), |&index| Some(last[index])).take_while(|&index| index > 0).collect();
        changes.reverse();
        changes
    }

    #[test]
    fn skipped_starts_do_not_change_the_result() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut walk, mut n_found) = (0.0, 0);
        for round in 0..700 {
            let n = [0, 1, 3, 6, 40, 97, 600][round % 7];
            let index = (uniform() * n as f64) as usize;
            let noise = |u: f64, v: f64| (-2.0 * (u + 1e-12).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            let mut value = |i: usize| {
                let white = noise(uniform(), uniform());
                walk += white;
                match round / 7 % 7 {
                    0 => white,
                    1 => white + if i >= index { 1.5 } else { 0.0 },
                    2 => white + 0.02 * i as f64,
                    3 => walk,
                    // Many costs are equal.
                    4 => (white + if i >= index { 3.0 } else { 0.0 }).round(),
                    5 => f64::from(u8::from(i >= index)) + (i % 40) as f64,
                    _ => 1e6 + white * 1e-3,
                }
            };
            let values: Vec<f64> = (0..n).map(&mut value).collect();
            let sums = Sums::new(&values);
            for (price, least) in [(0.5, 3), (6.0, 3), (20.0, 1), (1e-9, 3)] {
                let plain = plain_changes(&sums, price, least);
                assert_eq!(changes(&sums, price, least), plain, "{round} {price} {least}");
                n_found += plain.len();
            }
        }
        assert!(n_found > 10_000, "{n_found}");
    }

    #[test]
    fn the_mean_squared_difference_equals_that_of_each_pair_of_ranges() {
        let values: Vec<f64> = (0..100).map(|i| 1e6 + (f64::from(i) * 1.7).sin()).collect();
        let sums = Sums::new(&values);
        for m in [1, 2, 3, 7, 50] {
            let all = values.len() + 1 - 2 * m;
            let square = |i: usize| sums.difference((i + m, i + 2 * m), (i, i + m)).powi(2);
            let plain = (0..all).map(square).sum::<f64>() / all as f64;
            assert!((sums.mean_squared_difference(m) / plain - 1.0).abs() < 1e-9, "{m}");
        }
    }

    #[test]
    fn sums_give_the_error_of_each_correlation() {
        let plain = |left: &[f64]| {
            let squares_at = |r: f64| {
                let first = 1.0 - r * r;
                let squares = left.windows(2).map(|two| (two[1] - r * two[0]).powi(2)).sum::<f64>();
                (squares + first * left[0] * left[0]).max(1e-9) / first.powf(1.0 / left.len() as f64)
            };
            (0..20).map(|k| squares_at(f64::from(k) / 20.0)).fold(f64::INFINITY, f64::min)
        };
        let mut left = vec![0.3];
        for i in 0..500 {
            left.push(0.8 * left[i] + (i as f64 * 1.7).sin());
            let (sums, plain) = (autoregressive(&left), plain(&left));
            assert!((sums / plain - 1.0).abs() < 1e-9, "{i}: {sums} {plain}");
        }
        assert_eq!(autoregressive(&[0.0; 9]).to_bits(), plain(&[0.0; 9]).to_bits());
    }

    #[test]
    fn residuals_about_lines_equal_those_of_a_plain_fit() {
        let plain = |levels: &[f64], from: usize| {
            let n = levels.len() as f64;
            let x = |i: usize| i.saturating_sub(from) as f64;
            let (mean_x, mean_y) = ((0..levels.len()).map(x).sum::<f64>() / n, levels.iter().sum::<f64>() / n);
            let squares: f64 = (0..levels.len()).map(|i| (x(i) - mean_x).powi(2)).sum();
            let slope = levels.iter().enumerate().map(|(i, y)| (x(i) - mean_x) * (y - mean_y)).sum::<f64>() / squares;
            levels.iter().enumerate().map(|(i, y)| y - mean_y - slope * (x(i) - mean_x)).collect::<Vec<f64>>()
        };
        for n in 12..200 {
            let levels: Vec<f64> = (0..n).map(|i| 30.0 + (i as f64 * 1.7).sin() + 0.02 * i as f64).collect();
            let points = LinePoints::new(levels.iter().copied().enumerate().collect());
            let froms: Vec<usize> = (0..n - 5).step_by(1 + n / 17).collect();
            let lines = points.lines(&froms);
            assert_eq!(lines.len(), froms.len());
            for line in &lines {
                let left = about_line(&levels, points.mean, line);
                assert!(left.iter().zip(plain(&levels, line.from)).all(|(a, b)| (a - b).abs() < 1e-9), "{n}");
            }
        }
    }

    #[test]
    fn the_median_of_five_is_correct_for_every_order() {
        let values = [-2.5, -0.0, 0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY];
        for i in 0..6_usize.pow(5) {
            let five: Vec<f64> = (0..5).map(|k| values[i / 6_usize.pow(k) % 6]).collect();
            let ordered: Vec<i64> = five.iter().map(|&value| to_ordered(value)).collect();
            let mut sorted = five.clone();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(of_ordered(median_of_five(&ordered)).to_bits(), sorted[2].to_bits(), "{five:?}");
        }
    }

    #[test]
    fn unleveled_is_the_inverse_of_leveled() {
        for (count, tau) in [(0.0, 0.05), (3.0, 0.01), (1000.0, 0.05), (50.0, 2.0), (1e6, 0.1)] {
            assert!((unleveled(leveled(count, tau), tau) - count).abs() < 1e-6 * (1.0 + count), "{count} {tau}");
        }
        assert_eq!(unleveled(-3.0, 0.1), 0.0);
    }

    #[test]
    fn leveled_counts_have_variance_one() {
        for (count, tau) in [(50.0, 0.001), (1000.0, 0.05), (1e6, 0.1)] {
            let deviation = f64::sqrt(count + tau * tau * count * count);
            let step = leveled(count + deviation / 2.0, tau) - leveled(count - deviation / 2.0, tau);
            assert!((step - 1.0).abs() < 0.01, "{count} {tau}: {step}");
        }
    }
}
