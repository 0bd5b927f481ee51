//! Where the level of a sequence changes by more than chance, and the scale on which counts of a program have one
//! variance.
//!
//! Optimal partitioning with pruning: R. Killick, P. Fearnhead, I. A. Eckley, J. Am. Stat. Assoc. 107 (2012) 1590. The
//! scale: F. J. Anscombe, Biometrika 35 (1948) 246, for counts with the variance c + (tau c)^2.

use super::counts::median;
use super::distributions::student_tail;

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
    /// The least cost of all before it.
    cost: f64,
    sums: (f64, f64),
    /// The end from which on another start is always better.
    until: usize,
}

/// Where segments of at least `least` values begin, the first apart: those of the least squares about their means and a
/// `price` for each. Takes time with the square of the number of values at most.
pub(crate) fn changes(sums: &Sums, price: f64, least: usize) -> Vec<usize> {
    let n = sums.0.len() - 1;
    let parts: Vec<f64> = (0..=n).map(|length| 1.0 / length.max(1) as f64).collect();
    // Where the last segment begins, by its end.
    let mut last = vec![0; n + 1];
    let mut starts = vec![Start { at: 0, cost: 0.0, sums: sums.0[0], until: usize::MAX }];
    let mut costs: Vec<f64> = Vec::new();
    for end in 1..=n {
        let to = sums.0[end];
        let cost = |start: &Start| {
            let sum = to.0 - start.sums.0;
            start.cost + to.1 - start.sums.1 - sum * sum * parts[end - start.at]
        };
        costs.clear();
        costs.extend(starts.iter().map(cost));
        // Starts are in order, so those that are far enough are the first.
        let far = starts.partition_point(|start| end >= start.at + least);
        let Some(found) = (0..far).min_by(|&a, &b| costs[a].total_cmp(&costs[b])) else { continue };
        last[end] = starts[found].at;
        let cost = costs[found] + price;
        // A segment may begin here, and be as long as it must, before a start is worse for good.
        for (start, _) in starts[..far].iter_mut().zip(&costs).filter(|(_, own)| **own > cost) {
            start.until = start.until.min(end + least);
        }
        starts.retain(|start| start.until > end + 1);
        starts.push(Start { at: end, cost, sums: to, until: usize::MAX });
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
        if let Some(level) = level.filter(|_| !is_trend && (own > high + SPIKE || own < low - SPIKE)) {
            levels[i] = level;
            is_spike[i] = true;
        }
    }
    // What is far from the values around it says no more than that.
    let cut = levels.clone();
    // At the ends a trend goes on, which three values can't tell.
    for (five, level) in cut.windows(5).zip(levels.iter_mut().skip(2)) {
        let near = median(&mut five.to_vec());
        *level = level.clamp(near - FAR, near + FAR);
    }
    (levels, is_spike)
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

/// What is left about a level until a value, and a line from there on.
fn about_line(levels: &[f64], from: usize) -> Vec<f64> {
    let n = levels.len() as f64;
    let x = |i: usize| i.saturating_sub(from) as f64;
    let (mean_x, mean_y) = ((0..levels.len()).map(x).sum::<f64>() / n, levels.iter().sum::<f64>() / n);
    let squares: f64 = (0..levels.len()).map(|i| (x(i) - mean_x).powi(2)).sum();
    let slope = levels.iter().enumerate().map(|(i, y)| (x(i) - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    levels.iter().enumerate().map(|(i, y)| y - mean_y - slope * (x(i) - mean_x)).collect()
}

/// The least squares of a first-order autoregression, over its correlations, times the determinant of its
/// transformation.
fn autoregressive(left: &[f64]) -> f64 {
    let of = |r: f64| {
        let first = 1.0 - r * r;
        let squares = left.windows(2).map(|two| (two[1] - r * two[0]).powi(2)).sum::<f64>() + first * left[0] * left[0];
        squares.max(1e-9) / first.powf(1.0 / left.len() as f64)
    };
    (0..20).map(|k| of(f64::from(k) / 20.0)).fold(f64::INFINITY, f64::min)
}

/// Leaves the steps, or the line, that explain what an autoregression without them does not, at this level: what wanders by
/// itself has none.
fn beyond_wandering(levels: &[f64], starts: &mut Vec<usize>, level: f64) {
    let n = levels.len();
    let degrees = |used: usize| n.saturating_sub(used + 2).max(1) as f64;
    let p = |with: f64, without: f64, degrees: f64| {
        student_tail((degrees * (without / with - 1.0)).max(0.0).sqrt(), degrees as u32)
    };
    let with = autoregressive(&about_levels(levels, starts));
    let all = n.saturating_sub(2 * LEAST - 1);
    let lines = (0..all).step_by(all.div_ceil(MAX_LINES).max(1)).map(|from| autoregressive(&about_line(levels, from)));
    let line = lines.fold(f64::INFINITY, f64::min);
    if starts.is_empty() || line < with && p(line, autoregressive(&about_levels(levels, &[])), degrees(2)) <= level {
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

    #[test]
    fn levels_have_one_variance() {
        for (count, tau) in [(50.0, 0.001), (1000.0, 0.05), (1e6, 0.1)] {
            let deviation = f64::sqrt(count + tau * tau * count * count);
            let step = leveled(count + deviation / 2.0, tau) - leveled(count - deviation / 2.0, tau);
            assert!((step - 1.0).abs() < 0.01, "{count} {tau}: {step}");
        }
    }
}
