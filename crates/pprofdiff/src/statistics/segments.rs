//! Where the level of a sequence changes by more than chance, and the scale on which counts of a program have one
//! variance.
//!
//! Optimal partitioning: B. Jackson et al., IEEE Signal Process. Lett. 12 (2005) 105, with starts that are passed over in
//! blocks. The scale: F. J. Anscombe, Biometrika 35 (1948) 246, for counts with the variance c + (tau c)^2.

use super::distributions::student_tail;
use super::lines::{Line, LinePoints};

/// The fewest values at one level that make it one.
pub(crate) const LEAST: usize = 3;
/// A value this many standard deviations from both of its neighbours is a spike, and no level.
const SPIKE: f64 = 4.0;
/// Values are cut so many standard deviations from the median of the five around them.
const FAR: f64 = 3.0;
/// Values from which on a line is compared with steps.
const MAX_LINES: usize = 16;
/// The first or the last step of a course goes on as the one beside it if it is so many times as large at most.
const STEEPER: f64 = 3.0;
/// The degrees of freedom that a variance learned from many sequences counts for beside those of one.
pub(crate) const DEGREES: f64 = 20.0;
/// From this probability down a change of level is none of chance.
const SIGNIFICANT: f64 = 0.05;

/// The place of a count on a scale on which it has the variance 1: twice the square root of what is only counted, the
/// log by tau of what differs by that between builds.
pub(crate) fn leveled(count: f64, tau: f64) -> f64 {
    2.0 / tau * (tau * (count.max(0.0) + 0.375).sqrt()).asinh()
}

/// How the place of a count rises with it.
pub(crate) fn leveled_slope(count: f64, tau: f64) -> f64 {
    let count = count.max(0.0) + 0.375;
    1.0 / (count * (1.0 + tau * tau * count)).sqrt()
}

/// Sums by which the squares about the mean of any part are known at once.
pub(crate) struct Sums(Vec<(f64, f64)>);

impl Sums {
    pub(crate) fn new(values: &[f64]) -> Sums {
        // About the first, so that squares do not cancel.
        let center = values.first().copied().unwrap_or(0.0);
        let mut sums = vec![(0.0, 0.0)];
        for value in values {
            let (x, &(sum, squares)) = (value - center, &sums[sums.len() - 1]);
            sums.push((sum + x, squares + x * x));
        }
        Sums(sums)
    }

    /// The sum of the squares about the mean of `values[from..to]`.
    pub(crate) fn squares(&self, from: usize, to: usize) -> f64 {
        let (a, b) = (self.0[from], self.0[to]);
        let sum = b.0 - a.0;
        (b.1 - a.1 - sum * sum / (to - from).max(1) as f64).max(0.0)
    }

    /// The mean of one part less that of another.
    pub(crate) fn difference(&self, after: (usize, usize), before: (usize, usize)) -> f64 {
        let mean = |(from, to): (usize, usize)| (self.0[to].0 - self.0[from].0) / (to - from) as f64;
        mean(after) - mean(before)
    }
}

/// A place where the last segment may begin, with what is needed of it for each end.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    /// The least cost of all before it; of a block, of what is between as well.
    cost: f64,
    sums: (f64, f64),
}

/// Starts of a block, and blocks of a wide one.
const BLOCK: usize = 16;
/// Ends that the same starts are looked at for.
const ENDS: usize = 8;
/// What sums of squares may be wrong by, by their size.
pub(crate) const ROUNDING: f64 = 1e-9;

/// Where segments of at least `least` values begin, the first apart: those of the least squares about their means and a
/// `price` for each.
///
/// Squares about the mean of a part are at least those of its own parts. So a start costs more with each end, and what
/// costs more at the first of some ends than another start does at the last is the best of none of them. Of a block of
/// starts none costs less than the squares from the block's end on, and the least that one of them costs up to there. Takes
/// time with the number of values times the wide blocks of them, and with its square at most.
pub(crate) fn changes(sums: &Sums, price: f64, least: usize) -> Vec<usize> {
    let n = sums.0.len() - 1;
    let parts: Vec<f64> = (0..=n).map(|length| 1.0 / length.max(1) as f64).collect();
    let cost = |start: &Start, end: usize| {
        let (to, sum) = (sums.0[end], sums.0[end].0 - start.sums.0);
        start.cost + to.1 - start.sums.1 - sum * sum * parts[end - start.at]
    };
    let block = |of: &[Start], at: usize| {
        let cost = of.iter().map(|start| cost(start, at)).fold(f64::INFINITY, f64::min);
        Start { at, cost, sums: sums.0[at] }
    };
    // Where the last segment begins, by its end, and what all up to there costs with the price of the next.
    let (mut last, mut costs) = (vec![0; n + 1], vec![0.0; n + 1]);
    let mut starts: Vec<Start> = Vec::with_capacity(n);
    let (mut blocks, mut wide): (Vec<Start>, Vec<Start>) = (Vec::new(), Vec::new());
    let mut near = Start { at: 0, cost: 0.0, sums: sums.0[0] };
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
            let at = end - least;
            if at == 0 || at >= least {
                let start = Start { at, cost: costs[at], sums: sums.0[at] };
                starts.push(start);
                if start.cost <= limit {
                    live.push(start);
                }
                if starts.len().is_multiple_of(BLOCK) {
                    blocks.push(block(&starts[starts.len() - BLOCK..], at));
                    if blocks.len().is_multiple_of(BLOCK) {
                        wide.push(block(&blocks[blocks.len() - BLOCK..], at));
                    }
                }
            }
            // Of equal ones the first counts.
            let mut best = (cost(&near, end), near);
            for start in &live {
                let own = cost(start, end);
                if own.total_cmp(&best.0).then(start.at.cmp(&best.1.at)).is_lt() {
                    best = (own, *start);
                }
            }
            near = best.1;
            last[end] = near.at;
            costs[end] = best.0 + price;
        }
    }
    let mut changes = Vec::new();
    let mut at = last[n];
    while at > 0 {
        changes.push(at);
        at = last[at];
    }
    changes.reverse();
    changes
}

/// The values of variance 1 without spikes, and cut where they are far from those around them; which of them were spikes.
pub(crate) fn cut_spikes(of_all: &[f64]) -> (Vec<f64>, Vec<bool>) {
    let mut levels = of_all.to_vec();
    let mut is_spike = vec![false; levels.len()];
    for i in 0..levels.len() {
        let (own, around) = (of_all[i], [i.wrapping_sub(2), i.wrapping_sub(1), i + 1, i + 2]);
        let around = || around.iter().filter_map(|&j| of_all.get(j).copied());
        let (low, high) = around().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let is_far = own > high + SPIKE || own < low - SPIKE;
        if !is_far {
            continue;
        }
        // Two of its neighbours on one side agree, and all differ from it: not so between two levels, or where all
        // rise.
        let pair =
            |a: usize, b: usize| Some((*of_all.get(a)?, *of_all.get(b)?)).filter(|(a, b)| (a - b).abs() <= SPIKE);
        let sides = [pair(i.wrapping_sub(1), i.wrapping_sub(2)), pair(i + 1, i + 2)];
        let level = sides.into_iter().flatten().next().map(|(a, b)| (a + b) / 2.0);
        // At an end it may go on as the two beside it do.
        let goes_on = |near: Option<&f64>, far: Option<&f64>| match (near, far) {
            (Some(near), Some(far)) => {
                let (step, before) = (own - near, near - far);
                step * before > 0.0 && step.abs() <= STEEPER * before.abs()
            }
            _ => false,
        };
        let is_trend = i == 0 && goes_on(of_all.get(1), of_all.get(2))
            || i + 1 == of_all.len() && i >= 2 && goes_on(of_all.get(i - 1), of_all.get(i - 2));
        if let Some(level) = level.filter(|_| !is_trend) {
            levels[i] = level;
            is_spike[i] = true;
        }
    }
    // What is far from the values around it says no more than that.
    let cut = levels.clone();
    // At the ends a trend goes on, which three values can't tell.
    let ordered: Vec<i64> = cut.iter().map(|&value| to_ordered(value)).collect();
    for (five, level) in ordered.windows(5).zip(levels.iter_mut().skip(2)) {
        let near = of_ordered(median_of_five(five));
        *level = level.clamp(near - FAR, near + FAR);
    }
    (levels, is_spike)
}

/// A number as one that is compared as a whole one, in the order of [`f64::total_cmp`].
fn to_ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number that [`to_ordered`] made it of: the same again.
fn of_ordered(value: i64) -> f64 {
    f64::from_bits((value ^ (((value >> 63) as u64) >> 1) as i64) as u64)
}

/// The one in the middle of the first five: what is neither least of four nor largest of them, and then of three.
fn median_of_five(five: &[i64]) -> i64 {
    let &[a, b, c, d, e] = five else { return 0 };
    let low = a.min(b).max(c.min(d));
    let high = a.max(b).min(c.max(d));
    low.min(high).max(low.max(high).min(e))
}

/// The segment before a change and the one after it: where the first begins, the change, and the end.
pub(crate) fn around(starts: &[usize], i: usize, n: usize) -> (usize, usize, usize) {
    let from = i.checked_sub(1).map_or(0, |before| starts[before]);
    (from, starts[i], starts.get(i + 1).copied().unwrap_or(n))
}

/// The price of a level among so many values of variance 1.
pub(crate) fn price(n: usize) -> f64 {
    3.0 * (n as f64).ln()
}

/// What is left of values about the means of segments.
fn about_levels(levels: &[f64], starts: &[usize]) -> Vec<f64> {
    let mut left = levels.to_vec();
    let mut from = 0;
    for to in starts.iter().copied().chain([levels.len()]) {
        let mean = levels[from..to].iter().sum::<f64>() / (to - from).max(1) as f64;
        left[from..to].iter_mut().for_each(|value| *value -= mean);
        from = to;
    }
    left
}

/// What is left of values about a line.
fn about_line(levels: &[f64], mean: f64, line: &Line) -> Vec<f64> {
    let x = |i: usize| i.saturating_sub(line.from) as f64;
    levels.iter().enumerate().map(|(i, y)| y - mean - line.slope * (x(i) - line.mean_x)).collect()
}

/// Correlations that are tried: 0, 0.05 and so on.
const CORRELATIONS: usize = 20;

/// The least squares of a first-order autoregression, over its correlations, times the determinant of its
/// transformation.
fn autoregressive(left: &[f64]) -> f64 {
    let correlations: [f64; CORRELATIONS] = std::array::from_fn(|k| k as f64 / CORRELATIONS as f64);
    // All at once: each is a long sum, in which an addition waits for the one before it.
    let mut sums = [0.0; CORRELATIONS];
    for two in left.windows(2) {
        for (sum, r) in sums.iter_mut().zip(&correlations) {
            let rest = two[1] - r * two[0];
            *sum += rest * rest;
        }
    }
    let of = |(sum, r): (&f64, &f64)| {
        let first = 1.0 - r * r;
        let squares = sum + first * left[0] * left[0];
        squares.max(1e-9) / first.powf(1.0 / left.len() as f64)
    };
    sums.iter().zip(&correlations).map(of).fold(f64::INFINITY, f64::min)
}

/// Leaves the steps, or the line, that explain what an autoregression without them does not, at this level: what wanders by
/// itself has none.
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
            Some(least) => _ = starts.remove(least),
            None => return,
        }
    }
}

/// Where levels begin that differ by more than chance, each with its p-value. `memory` says how many times the variance
/// of independent values the mean of so many has. What a step does not explain better than an autoregression at the
/// level `wandering` is none; of a sequence too short to tell it is `None`.
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
    // The least clear change goes first, and what is left is compared again.
    loop {
        let p: Vec<f64> = (0..starts.len())
            .map(|i| {
                let (from, at, to) = around(&starts, i, n);
                let squares = sums.squares(from, at) + sums.squares(at, to);
                let drawn = (DEGREES + squares) / (DEGREES + (to - from) as f64 - 2.0);
                let part = |length: usize| memory(length).max(drawn) / length as f64;
                let t = sums.difference((at, to), (from, at)).abs() / (part(at - from) + part(to - at)).sqrt();
                // Twice the tail, of any two builds between which a level might have been found.
                let levels = (n * n) as f64 / 2.0;
                (2.0 * student_tail(t, (n as f64 + DEGREES) as u32) * levels).min(1.0)
            })
            .collect();
        match (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).filter(|&i| p[i] > SIGNIFICANT) {
            Some(least) => _ = starts.remove(least),
            None => return starts.into_iter().zip(p).collect(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_those_of_the_least_cost() {
        let values = [0.1, -0.2, 0.3, 0.0, 5.1, 4.8, 5.2, 5.0, 4.9, 0.2, -0.1, 0.1];
        let sums = Sums::new(&values);
        assert_eq!(changes(&sums, 3.0, 2), [4, 9]);
        assert_eq!(changes(&sums, 1e6, 2), [] as [usize; 0]);
        assert!((sums.difference((4, 9), (0, 4)) - 4.95).abs() < 1e-9);
        // Compared with all partitions.
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
            let found = cost(&changes(&sums, 1.5, 2)).unwrap_or(f64::INFINITY);
            assert!((found - least).abs() < 1e-9, "{values:?}");
        }
    }

    /// The same without blocks and limits: each start for each end.
    fn plain_changes(sums: &Sums, price: f64, least: usize) -> Vec<usize> {
        let n = sums.0.len() - 1;
        let (mut last, mut costs) = (vec![0; n + 1], vec![0.0; n + 1]);
        for end in least..=n {
            let is_start = |&at: &usize| at == 0 || at >= least;
            let cost = |at: usize| {
                let (from, to) = (sums.0[at], sums.0[end]);
                let sum = to.0 - from.0;
                costs[at] + to.1 - from.1 - sum * sum * (1.0 / (end - at) as f64)
            };
            let best = (0..=end - least).filter(is_start).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap();
            (last[end], costs[end]) = (best, cost(best) + price);
        }
        let mut changes: Vec<usize> =
            std::iter::successors(Some(last[n]), |&at| Some(last[at])).take_while(|&at| at > 0).collect();
        changes.reverse();
        changes
    }

    #[test]
    fn starts_that_are_passed_over_change_nothing() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut walk, mut found) = (0.0, 0);
        for round in 0..700 {
            let n = [0, 1, 3, 6, 40, 97, 600][round % 7];
            let at = (uniform() * n as f64) as usize;
            let noise = |u: f64, v: f64| (-2.0 * (u + 1e-12).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            let mut value = |i: usize| {
                let white = noise(uniform(), uniform());
                walk += white;
                match round / 7 % 7 {
                    0 => white,
                    1 => white + if i >= at { 1.5 } else { 0.0 },
                    2 => white + 0.02 * i as f64,
                    3 => walk,
                    // Many costs are the same.
                    4 => (white + if i >= at { 3.0 } else { 0.0 }).round(),
                    5 => f64::from(u8::from(i >= at)) + (i % 40) as f64,
                    _ => 1e6 + white * 1e-3,
                }
            };
            let values: Vec<f64> = (0..n).map(&mut value).collect();
            let sums = Sums::new(&values);
            for (price, least) in [(0.5, 3), (6.0, 3), (20.0, 1), (1e-9, 3)] {
                let plain = plain_changes(&sums, price, least);
                assert_eq!(changes(&sums, price, least), plain, "{round} {price} {least}");
                found += plain.len();
            }
        }
        assert!(found > 10_000, "{found}");
    }

    #[test]
    fn correlations_at_once_are_those_one_by_one() {
        let plain = |left: &[f64]| {
            let of = |r: f64| {
                let first = 1.0 - r * r;
                let squares = left.windows(2).map(|two| (two[1] - r * two[0]).powi(2)).sum::<f64>();
                (squares + first * left[0] * left[0]).max(1e-9) / first.powf(1.0 / left.len() as f64)
            };
            (0..20).map(|k| of(f64::from(k) / 20.0)).fold(f64::INFINITY, f64::min)
        };
        let mut left = vec![0.3];
        for i in 0..500 {
            left.push(0.8 * left[i] + (i as f64 * 1.7).sin());
            assert_eq!(autoregressive(&left).to_bits(), plain(&left).to_bits(), "{i}");
        }
        assert_eq!(autoregressive(&[0.0; 9]).to_bits(), plain(&[0.0; 9]).to_bits());
    }

    #[test]
    fn what_is_left_about_lines_is_that_of_each_alone() {
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
                assert!(left.iter().zip(plain(&levels, line.from)).all(|(a, b)| a.to_bits() == b.to_bits()), "{n}");
            }
        }
    }

    #[test]
    fn the_median_of_five_is_that_of_all_orders() {
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
    fn levels_have_one_variance() {
        for (count, tau) in [(50.0, 0.001), (1000.0, 0.05), (1e6, 0.1)] {
            let deviation = f64::sqrt(count + tau * tau * count * count);
            let step = leveled(count + deviation / 2.0, tau) - leveled(count - deviation / 2.0, tau);
            assert!((step - 1.0).abs() < 0.01, "{count} {tau}: {step}");
        }
    }
}
