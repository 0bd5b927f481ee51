//! Lines through the history of a frame that may show a drift: a constant level until some build, then a line. Many
//! lines are tried, and a lower bound of their squared error rejects most lines without a comparison of every value.

use super::segments::{ROUNDING, leveled, leveled_slope};
use pprofdiff_profile::short_lists::sort_by;

/// The number of builds between two builds for which the bound computes a line's level.
const SOME: usize = 16;

/// A constant level until the build `from`, then a line.
pub(crate) struct LineFit {
    pub from: usize,
    pub level: f64,
    pub slope: f64,
    /// The mean of the builds, counted from `from` on, and the sum of their squared deviations.
    pub mean_x: f64,
    pub squares: f64,
}

impl LineFit {
    pub(crate) fn at(&self, i: usize) -> f64 {
        self.level + self.slope * i.saturating_sub(self.from) as f64
    }
}

/// The values to which lines are fitted.
pub(crate) struct LinePoints {
    /// The builds with their values, in ascending order of the builds.
    pub points: Vec<(usize, f64)>,
    /// The mean of the values.
    pub mean: f64,
}

impl LinePoints {
    pub(crate) fn new(points: Vec<(usize, f64)>) -> LinePoints {
        let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
        LinePoints { points, mean }
    }

    /// Returns the least-squares line for each starting build. Returns no lines for fewer than four points, and omits
    /// lines that start at or after the last build.
    pub(crate) fn lines(&self, froms: &[usize]) -> Vec<LineFit> {
        let m = self.points.len() as f64;
        // The sums over the points from each point on: their number, their builds, the squares of their builds, their
        // values, and builds times values. Each line needs only these. The first three are whole numbers, so they are
        // exact.
        let mut sums = vec![[0.0; 5]; self.points.len() + 1];
        for (place, &(i, value)) in self.points.iter().enumerate().rev() {
            let (i, value, [n, builds, squares, values, products]) = (i as f64, value - self.mean, sums[place + 1]);
            sums[place] = [n + 1.0, builds + i, squares + i * i, values + value, products + i * value];
        }
        let line = |&from: &usize| {
            let [n, builds, squares, values, products] = sums[self.points.partition_point(|point| point.0 <= from)];
            let start = from as f64;
            let sum_x = builds - n * start;
            let mean_x = sum_x / m;
            let squares = squares - 2.0 * start * builds + n * start * start - sum_x * mean_x;
            let slope = (products - start * values - mean_x * sums[0][3]) / squares;
            let is_defined = m >= 4.0 && squares > 0.0;
            is_defined.then_some(LineFit { from, level: self.mean - slope * mean_x, slope, mean_x, squares })
        };
        froms.iter().filter_map(line).collect()
    }
}

/// The levels that lines are compared with. Values are divided by the value of an event and transformed to the scale of
/// `tau`.
pub(crate) struct Fit<'a> {
    pub levels: &'a [f64],
    pub event: f64,
    pub tau: f64,
}

impl Fit<'_> {
    fn value(&self, line: &LineFit, i: usize) -> f64 {
        // All builds up to the start of the slope share one level.
        line.at(if i <= line.from { 0 } else { i }).max(0.0)
    }

    fn level(&self, line: &LineFit, i: usize) -> f64 {
        leveled(self.value(line, i) / self.event, self.tau)
    }

    /// Returns the squared error of a line plus its price; `None` if the result exceeds `limit`.
    pub(crate) fn squares(&self, line: &LineFit, price: f64, limit: f64) -> Option<f64> {
        let level = self.level(line, 0);
        let mut squares = 0.0;
        for (some, first) in self.levels.chunks(SOME).zip((0..).step_by(SOME)) {
            for (value, i) in some.iter().zip(first..) {
                let expected = if i <= line.from { level } else { self.level(line, i) };
                squares += (value - expected).powi(2);
            }
            // The rest of the sum is not negative.
            if squares + price > limit {
                return None;
            }
        }
        Some(squares + price)
    }

    /// Returns a lower bound of [`Fit::squares`]. A line is monotonic, so its level between two builds lies between
    /// their levels. Above zero, the level is also near the chord of the two: the distance is at most an eighth of the
    /// length times the difference of the slopes at both ends.
    fn bound(&self, line: &LineFit, price: f64) -> f64 {
        // Returns the build, its level, the slope of the level there, and whether the value is positive.
        let level_at = |i: usize| {
            let value = self.value(line, i);
            let rise = leveled_slope(value / self.event, self.tau) * line.slope / self.event;
            (i, leveled(value / self.event, self.tau), rise, value > 0.0)
        };
        let mut sums = [0.0; 4];
        let mut before = level_at(0);
        for (some, first) in self.levels.chunks(SOME).zip((0..).step_by(SOME)) {
            let end = first + some.len() - 1;
            let after = if end <= line.from { (end, before.1, before.2, before.3) } else { level_at(end) };
            let (low, high) = (before.1.min(after.1), before.1.max(after.1));
            let length = (end - before.0) as f64;
            // The center line of the possible levels, and half of their range.
            let (center, slope, half) = if before.0 >= line.from && before.3 && after.3 && length > 0.0 {
                let half = length * (before.2 - after.2).abs() / 8.0;
                let slope = (after.1 - before.1) / length;
                (before.1 + half + slope * (first - before.0) as f64, slope, half)
            } else {
                ((low + high) / 2.0, 0.0, (high - low) / 2.0)
            };
            let mut add = |k: usize, value: f64, expected: f64| {
                let far = ((value - expected).abs() - half).max(0.0);
                sums[k] += far * far;
            };
            // The compiler adds four values at once with vector instructions.
            let (fours, rest) = some.as_chunks::<4>();
            let steps = [0.0, slope, 2.0 * slope, 3.0 * slope];
            for (four, place) in fours.iter().zip(0_u8..) {
                let expected = center + slope * f64::from(4 * place);
                (0..4).for_each(|k| add(k, four[k], expected + steps[k]));
            }
            let expected = center + slope * (some.len() - rest.len()) as f64;
            rest.iter().enumerate().for_each(|(k, value)| add(k, *value, expected + steps[k]));
            before = after;
        }
        let sum = sums.iter().sum::<f64>() + price;
        sum - ROUNDING * sum
    }

    /// Returns the best lines with their squared errors: the best line, if it is better than the initial `best`, and
    /// the lines that may fit equally well. The latter exceed the smallest error by at most `worse`, if that error is
    /// below `limit`.
    pub(crate) fn best(
        &self,
        lines: Vec<LineFit>,
        price: impl Fn(usize) -> f64,
        (mut best, limit, worse): (f64, f64, f64),
    ) -> Vec<(LineFit, f64)> {
        let mut bounds: Vec<(f64, LineFit)> =
            lines.into_iter().map(|line| (self.bound(&line, price(line.from)), line)).collect();
        sort_by(&mut bounds, |a, b| a.0.total_cmp(&b.0));
        let mut kept = Vec::new();
        for (bound, line) in bounds {
            let max_squares = best.max(best.min(limit) + worse);
            if bound > max_squares {
                break;
            }
            if let Some(squares) = self.squares(&line, price(line.from), max_squares) {
                best = best.min(squares);
                kept.push((line, squares));
            }
        }
        kept
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns deterministic random numbers between 0 and 1.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fits one line at a time, with separate sums.
    fn plain_line(points: &[(usize, f64)], from: usize) -> Option<LineFit> {
        let x = |i: usize| i.saturating_sub(from) as f64;
        let m = points.len() as f64;
        let mean_x = points.iter().map(|p| x(p.0)).sum::<f64>() / m;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / m;
        let squares: f64 = points.iter().map(|p| (x(p.0) - mean_x).powi(2)).sum();
        if m < 4.0 || squares <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|p| (x(p.0) - mean_x) * (p.1 - mean_y)).sum::<f64>() / squares;
        Some(LineFit { from, level: mean_y - slope * mean_x, slope, mean_x, squares })
    }

    /// Returns the full squared error, without a limit.
    fn plain_squares(fit: &Fit, line: &LineFit, price: f64) -> f64 {
        let leveled = |value: f64| leveled(value / fit.event, fit.tau);
        let expected = |i: usize| leveled(line.at(if i <= line.from { 0 } else { i }).max(0.0));
        fit.levels.iter().enumerate().map(|(i, value)| (value - expected(i)).powi(2)).sum::<f64>() + price
    }

    /// Asserts that two lines are equal up to rounding. `scale` is the largest value.
    fn assert_equal(line: &LineFit, plain: &LineFit, scale: f64) {
        assert_eq!(line.from, plain.from);
        let slope = scale / plain.squares.sqrt();
        for (name, number, expected, scale) in [
            ("level", line.level, plain.level, scale),
            ("slope", line.slope, plain.slope, slope),
            ("mean", line.mean_x, plain.mean_x, plain.mean_x),
            ("squares", line.squares, plain.squares, plain.squares),
        ] {
            assert!((number - expected).abs() <= 1e-9 * scale, "{name} from {}: {number} {expected}", line.from);
        }
    }

    #[test]
    fn rejected_lines_do_not_change_the_result() {
        let mut state = 3;
        let (mut kept, mut all_lines) = (0, 0);
        for round in 0..400 {
            let n = [6, 9, 17, 40, 130, 333][round % 6];
            let (event, tau) = ([1.0, 1e7, 0.3][round % 3], [0.005, 0.05, 0.3][round / 3 % 3]);
            let start = (uniform(&mut state) * n as f64) as usize;
            let mean = 10f64.powf(1.0 + 4.0 * uniform(&mut state));
            let values: Vec<f64> = (0..n)
                .map(|i| {
                    let noise =
                        1.0 + tau * (uniform(&mut state) + uniform(&mut state) - 1.0) * f64::from(round % 5 != 0);
                    let course = match round / 6 % 5 {
                        0 => 1.0,
                        1 => {
                            if i >= start {
                                2.0
                            } else {
                                1.0
                            }
                        }
                        2 => 1.0 + i.saturating_sub(start) as f64 / n as f64,
                        // The line falls to zero before the last build.
                        3 => (1.0 - 1.5 * i.saturating_sub(start / 2) as f64 / n as f64).max(0.0),
                        _ => f64::from(i as u32) / n as f64,
                    };
                    mean * course * noise * event
                })
                .collect();
            let levels: Vec<f64> = values.iter().map(|value| leveled(value / event, tau)).collect();
            let points: Vec<(usize, f64)> =
                values.iter().copied().enumerate().filter(|(i, _)| n < 10 || i % 11 != 5).collect();
            let fit = Fit { levels: &levels, event, tau };
            let price = |from: usize| if from == 0 { 5.0 } else { 10.0 };
            let froms: Vec<usize> = (0..n - 3).collect();
            let lines = LinePoints::new(points.clone()).lines(&froms);
            let plain: Vec<LineFit> = froms.iter().filter_map(|&from| plain_line(&points, from)).collect();
            assert_eq!(lines.len(), plain.len(), "{round}");
            let scale = points.iter().map(|point| point.1.abs()).fold(0.0, f64::max);
            lines.iter().zip(&plain).for_each(|(line, plain)| assert_equal(line, plain, scale));
            let squares: Vec<f64> = lines.iter().map(|line| plain_squares(&fit, line, price(line.from))).collect();
            for (line, squares) in lines.iter().zip(&squares) {
                let bound = fit.bound(line, price(line.from));
                assert!(bound <= *squares, "{round} {}: {bound} {squares}", line.from);
            }
            let least = squares.iter().copied().fold(f64::INFINITY, f64::min);
            for (limit, worse) in [(f64::INFINITY, 6.0), (least * 1.2, 20.0), (least / 2.0, 6.0)] {
                let best_lines =
                    fit.best(LinePoints::new(points.clone()).lines(&froms), price, (f64::INFINITY, limit, worse));
                let by_from =
                    |from: usize| best_lines.iter().find(|(line, _)| line.from == from).map(|(_, sum)| sum.to_bits());
                for (line, squares) in lines.iter().zip(&squares) {
                    if *squares <= least.max(least.min(limit) + worse) {
                        assert_eq!(by_from(line.from), Some(squares.to_bits()), "{round} {}", line.from);
                    }
                }
                kept += best_lines.len();
                all_lines += plain.len();
            }
        }
        assert!(kept < all_lines / 2, "{kept} of {all_lines}");
    }
}
