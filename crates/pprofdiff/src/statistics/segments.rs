//! Where the level of a sequence changes, and the scale on which counts of a program have one variance.
//!
//! Optimal partitioning with pruning: R. Killick, P. Fearnhead, I. A. Eckley, J. Am. Stat. Assoc. 107 (2012) 1590. The
//! scale: F. J. Anscombe, Biometrika 35 (1948) 246, for counts with the variance c + (tau c)^2.

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
