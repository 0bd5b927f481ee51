//! Events of two sides: how far two counts are from what is expected, how much of that runs differ by anyway, and how
//! large a change must be to be noticed.
//!
//! Sources: the deviance of two Poisson counts is the likelihood ratio of the conditional binomial (Przyborowski and
//! Wilenski 1940). Variances between runs are drawn towards their common value as in limma (Smyth 2004) and edgeR
//! (Robinson, McCarthy and Smyth 2010). The threshold is Bonferroni's.

use super::distributions::{normal_quantile, normal_tail, student_quantile, student_tail};

/// What the penalised deviance of something that nothing touched exceeds one time in twenty: the quantile of chi-squared
/// with one degree of freedom.
pub(crate) const LEVEL: f64 = 3.84;

/// 2 x the log likelihood ratio of `b` and `n` events against rates of which the new one is `r` times the base's.
pub(crate) fn deviance(b: f64, n: f64, r: f64) -> f64 {
    let (t, p) = (b + n, r / (1.0 + r));
    let part = |x: f64, expected: f64| if x > 0.0 { x * (x / expected.max(1e-300)).ln() } else { 0.0 };
    2.0 * (part(n, t * p) + part(b, t * (1.0 - p)))
}

/// The log of a ratio by the one that is expected: where no deviance is left. Bounded, where one side has nothing.
fn log_ratio(b: f64, n: f64, r: f64) -> f64 {
    if b <= 0.0 {
        30.0
    } else if n <= 0.0 {
        -30.0
    } else {
        (n / (b * r)).ln().clamp(-30.0, 30.0)
    }
}

/// The deviance that is left if the log of the ratio may wander with a variance: the least of
/// `deviance(b, n, r e^x) + x^2 / variance` over x. It is the deviance without variance, and for many events the square
/// of the log ratio over the variance.
pub(crate) fn penalised(b: f64, n: f64, r: f64, variance: f64) -> f64 {
    let variance = variance.max(1e-12);
    let top = log_ratio(b, n, r);
    // Convex: Newton's method on its slope, kept within a bracket that shrinks.
    let (mut low, mut high) = (top.min(0.0), top.max(0.0));
    let mut x = top * variance / (variance + 1.0 / (b * n / (b + n)).max(0.5));
    for _ in 0..60 {
        let odds = r * x.exp();
        let p = odds / (1.0 + odds);
        let slope = b * p - n * (1.0 - p) + x / variance;
        if slope > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let step = slope / ((b + n) * p * (1.0 - p) + 1.0 / variance);
        let next = x - step;
        let next = if next > low && next < high { next } else { (low + high) / 2.0 };
        let moved = (next - x).abs();
        x = next;
        if moved < 1e-9 {
            break;
        }
    }
    deviance(b, n, r * x.exp()) + x * x / variance
}

/// The chance of a false cause that is taken, over all candidates: of one pair, whose noise is estimated from the pair
/// itself, less than of replicates, whose noise is measured.
const ALPHA_OF_PAIR: f64 = 0.002;
const ALPHA_OF_REPLICATES: f64 = 0.05;

/// What the shrunk variance between runs counts for, in degrees of freedom, beside those of the runs themselves.
pub(crate) const PRIOR_DEGREES: u32 = 20;

/// How a variance between runs is known that is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// The degrees of freedom of the runs.
    pub degrees: usize,
    /// What the shrunk variance counts for beside them: [`PRIOR_DEGREES`], or none.
    pub prior: u32,
    /// The fewest candidates that a threshold is for.
    pub fewest: usize,
}

impl Measured {
    /// Of variances that are drawn towards the shrunk one.
    pub(crate) fn drawn(degrees: usize) -> Measured {
        Measured { degrees, prior: PRIOR_DEGREES, fewest: FEWEST_CANDIDATES }
    }

    /// The degrees of freedom of such a variance.
    pub(crate) fn degrees(self) -> u32 {
        self.prior + self.degrees.min(1000) as u32
    }
}

/// The fewest candidates that a threshold is for.
const FEWEST_CANDIDATES: usize = 100;

/// The penalised deviance that a cause must exceed: the square of Bonferroni's two-sided quantile over the candidates.
/// Not Benjamini and Hochberg's: candidates are nested, few are reported, and a false alarm weighs more than a miss.
pub(crate) fn threshold(candidates: usize, measured: Option<Measured>) -> f64 {
    let over = |alpha: f64, fewest: usize| alpha / (2.0 * candidates.max(fewest) as f64);
    let quantile = match measured {
        Some(of) => student_quantile(over(ALPHA_OF_REPLICATES, of.fewest), of.degrees()),
        None => normal_quantile(over(ALPHA_OF_PAIR, FEWEST_CANDIDATES)),
    };
    quantile * quantile
}

/// How probable it is that any of the candidates of a threshold has such a deviance by chance, or a higher one; with the
/// degrees of freedom of what was measured.
pub(crate) fn chance_of(score: f64, threshold: f64, measured: Option<u32>) -> f64 {
    let tail = |score: f64| match measured {
        Some(degrees) => student_tail(score.max(0.0).sqrt(), degrees),
        None => normal_tail(score.max(0.0).sqrt()),
    };
    let at_threshold = if measured.is_some() { ALPHA_OF_REPLICATES } else { ALPHA_OF_PAIR };
    (at_threshold * tail(score) / tail(threshold).max(f64::MIN_POSITIVE)).min(1.0)
}

/// The variance of the log of a ratio between sides of so many runs that differ by `tau2` each.
pub(crate) fn between_run_variance(tau2: f64, runs: [usize; 2]) -> f64 {
    tau2 * (1.0 / runs[0] as f64 + 1.0 / runs[1] as f64)
}

/// The probability with which a growth is to be found that is said to be noticed.
const POWER: f64 = 0.9;

/// How many standard deviations a growth has to be from none to be found with `POWER`, where chance is said to be so far
/// at most. `degrees` are those of freedom of the variance between runs, if that is measured.
pub(crate) fn with_power(threshold: f64, degrees: Option<u32>) -> f64 {
    threshold + degrees.map_or_else(|| normal_quantile(1.0 - POWER), |degrees| student_quantile(1.0 - POWER, degrees))
}

/// The most that something is said to have to grow by, as a log.
const MAX_GROWTH: f64 = 14.0;

/// The least growth, as a factor less one, by which `base` events seem to be `far` standard deviations from what is
/// expected, `r` times as many: the root of the penalised deviance is that far from none. All that is said of what would
/// have been noticed is this: of `explain`, of a check's rule and of the page's grey, each with how far it asks for
/// ([`with_power`], where it is to be found nine times in ten). To about 0.1 %; a million where no growth is enough.
pub(crate) fn least_growth(base: f64, r: f64, variance: f64, far: f64) -> f64 {
    let (mut low, mut high) = (0.0, MAX_GROWTH);
    while high - low > 1e-3 {
        let middle: f64 = (low + high) / 2.0;
        if penalised(base, base * r * middle.exp(), r, variance) < far * far {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp_m1()
}

/// The median of a chi-squared variable with one degree of freedom.
const MEDIAN_OF_CHI2: f64 = 0.455;

/// The variance of the log of a ratio at which the median of the penalised deviances of frames that nothing touched is
/// that of chance. `frames` are (base, new, expected ratio). More variance leaves less deviance, so it is the median of
/// the frames' own such variances.
///
/// Without any noise, half of the frames deviate by more than the median of chance, give or take half of the root of their
/// number. `deviations` is how many of these are no noise: at 0 the median of a quiet pair is often the chance of a few
/// frames, which hides true changes.
pub(crate) fn variance_of_ratios(frames: &[(f64, f64, f64)], deviations: f64) -> f64 {
    // Those that chance is enough for have none; if that is most of them, the others are not asked.
    let wander = |&&(b, n, r): &&(f64, f64, f64)| deviance(b, n, r) > MEDIAN_OF_CHI2;
    let wandering: Vec<_> = frames.iter().filter(wander).collect();
    let n_still = frames.len() - wandering.len();
    let most = (frames.len() / 2) as f64 - deviations * (frames.len() as f64).sqrt() / 2.0;
    if n_still as f64 > most {
        return 0.0;
    }
    let mut variances = vec![0.0; n_still];
    variances.extend(wandering.into_iter().map(|&(b, n, r)| variance_at(b, n, r, MEDIAN_OF_CHI2)));
    median(&mut variances)
}

/// The most variance that a ratio is said to have.
const MAX_VARIANCE: f64 = 8.0;

/// The variance at which the penalised deviance is `level`; 0 if it is never more.
///
/// At the least of `deviance(x) + x^2 / variance` the slopes cancel, `variance = -2 x / deviance'(x)`, so all is told by
/// that x: it lies between 0, where the deviance is whole, and the log of the ratio, where none is left.
fn variance_at(b: f64, n: f64, r: f64, level: f64) -> f64 {
    if deviance(b, n, r) <= level {
        return 0.0;
    }
    let top = log_ratio(b, n, r);
    let slope = |x: f64| {
        let odds = r * x.exp();
        2.0 * (b * odds - n) / (1.0 + odds)
    };
    // The deviance at x, of which only what depends on x is worked out each time.
    let (t, log_r) = (b + n, r.ln());
    let part = |x: f64| if x > 0.0 { x * (x / t).ln() } else { 0.0 };
    let fixed = part(b) + part(n) - n * log_r;
    let excess = |at: f64| {
        let x = top * at;
        let odds = r * x.exp();
        let deviance = 2.0 * (fixed - n * x + t * odds.ln_1p());
        deviance - x * (b * odds - n) / (1.0 + odds) - level
    };
    // From 0, where the excess is more than none, to 1, where it is less. By regula falsi: of an end that stays, half of the
    // excess is taken next time (the Illinois method).
    let (mut inner, mut outer) = ((0.0, excess(0.0)), (1.0, excess(1.0)));
    let mut stays = 0;
    while outer.0 - inner.0 > 1e-7 {
        let secant = (inner.0 * outer.1 - outer.0 * inner.1) / (outer.1 - inner.1);
        let at: f64 = if secant > inner.0 && secant < outer.0 { secant } else { (inner.0 + outer.0) / 2.0 };
        let found = excess(at);
        if found > 0.0 {
            inner = (at, found);
            outer.1 /= if stays > 0 { 2.0 } else { 1.0 };
            stays = 1;
        } else {
            outer = (at, found);
            inner.1 /= if stays < 0 { 2.0 } else { 1.0 };
            stays = -1;
        }
        if found.abs() < 1e-9 {
            (inner.0, outer.0) = (at, at);
        }
    }
    let outer = outer.0;
    let x = top * outer;
    (-2.0 * x / slope(x)).clamp(0.0, MAX_VARIANCE)
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let (middle, is_even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| is_even).unwrap_or(upper);
    (lower + upper) / 2.0
}

/// The value with half of the weight on either side: the mean of the two in the middle, so that it does not depend on
/// the direction. 1 of nothing.
pub(crate) fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|v| v.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (value, weight) in values {
        below += weight;
        if below >= half {
            return value;
        }
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_deviance_is_twice_the_log_likelihood_ratio() {
        near(deviance(100.0, 100.0, 1.0), 0.0, 1e-12);
        // All of n events on one side of two equal ones: 2 n ln 2.
        near(deviance(0.0, 13.0, 1.0), 26.0 * 2f64.ln(), 1e-12);
        near(deviance(13.0, 0.0, 1.0), 26.0 * 2f64.ln(), 1e-12);
        // Exchanged sides.
        near(deviance(37.0, 91.0, 1.7), deviance(91.0, 37.0, 1.0 / 1.7), 1e-12);
        // For small effects the square of the difference over its variance.
        near(deviance(10_000.0, 10_200.0, 1.0), 200.0f64.powi(2) / 20_200.0, 1e-3);
    }

    #[test]
    fn the_penalised_deviance_lies_between_its_limits() {
        for (b, n, r) in [(100.0, 150.0, 1.0), (3.0, 90.0, 2.0), (1e6, 1.1e6, 1.0), (0.0, 40.0, 1.0), (40.0, 0.0, 0.5)]
        {
            near(penalised(b, n, r, 0.0), deviance(b, n, r), 1e-3);
            let mut last = deviance(b, n, r);
            for variance in [1e-4, 1e-2, 0.1, 1.0] {
                let g = penalised(b, n, r, variance);
                assert!(g <= last + 1e-9, "{b} {n} {r} {variance}");
                // No x does better.
                for i in -400..=400 {
                    let x = f64::from(i) / 50.0;
                    let at = deviance(b, n, r * x.exp()) + x * x / variance;
                    assert!(g <= at + 1e-6, "{b} {n} {r} {variance} at {x}: {g} > {at}");
                }
                near(penalised(n, b, 1.0 / r, variance), g, 1e-6);
                last = g;
            }
        }
        // Of many events only the variance is left.
        near(penalised(1e9, 1.1e9, 1.0, 0.01), 1.1f64.ln().powi(2) / 0.01, 1e-3);
    }

    #[test]
    fn the_threshold_is_bonferronis() {
        near(threshold(360, None), normal_quantile(0.001 / 360.0).powi(2), 1e-9);
        // 0.002 over 1,000 candidates on two sides: 1e-6, of which the table above has the quantile.
        near(threshold(1000, None), 4.75342f64.powi(2), 1e-5);
        assert_eq!(threshold(3, None), threshold(100, None));
        assert!(threshold(100, Some(Measured::drawn(4))) > threshold(100, Some(Measured::drawn(40))));
    }

    #[test]
    fn the_variance_of_ratios_is_found_again() {
        // Frames whose log ratios are normal quantiles times 0.1.
        let frames: Vec<_> = (1..200)
            .map(|i| {
                let p = f64::from(i) / 200.0;
                let z = if p < 0.5 { -normal_quantile(p) } else { normal_quantile((1.0 - p).clamp(1e-9, 0.4999)) };
                (1e6, 1e6 * (z * 0.1).exp(), 1.0)
            })
            .collect();
        near(variance_of_ratios(&frames, 0.0).sqrt(), 0.1, 0.02);
        // Noise of this size is far beyond what a quiet pair shows.
        near(variance_of_ratios(&frames, 2.0).sqrt(), 0.1, 0.02);
        assert_eq!(variance_of_ratios(&[(100.0, 100.0, 1.0); 9], 0.0), 0.0);
    }

    #[test]
    fn at_the_variance_of_a_level_the_penalised_deviance_is_that_level() {
        for (b, n, r) in [(100.0, 150.0, 1.0), (1e6, 1.2e6, 1.1), (3.0, 30.0, 2.0), (40.0, 1.0, 0.5), (0.0, 9.0, 1.0)] {
            for level in [0.1, MEDIAN_OF_CHI2, 2.0] {
                let variance = variance_at(b, n, r, level);
                if variance < MAX_VARIANCE {
                    near(penalised(b, n, r, variance), level, 1e-3);
                } else {
                    assert!(penalised(b, n, r, variance) > level, "{b} {n} {r} {level}");
                }
            }
        }
    }

    #[test]
    fn medians_have_half_on_either_side() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(weighted_median(vec![(5.0, 1.0), (1.0, 1.0), (2.0, 3.0)]), 2.0);
    }

    #[test]
    fn more_runs_or_events_show_smaller_changes() {
        let least = |events, tau2, runs| least_growth(events, 1.0, between_run_variance(tau2, runs), 4.5);
        assert!(least(1e3, 0.0, [1, 1]) > least(1e4, 0.0, [1, 1]));
        assert!(least(1e4, 0.01, [1, 1]) > least(1e4, 0.01, [3, 3]));
        // Of many events 4.5 sigma of sqrt(2/1e6), and of the noise between runs; of few what exceeds the deviance.
        near(least(1e6, 0.0, [1, 1]), 4.5 * (2.0 / 1e6f64).sqrt(), 2e-3);
        near(least(1e9, 0.01, [1, 1]), (4.5 * 0.02f64.sqrt()).exp_m1(), 2e-3);
        for (events, r, variance) in [(3.0, 1.0, 0.0), (40.0, 2.0, 0.01), (1e4, 0.5, 0.1)] {
            let grown = events * r * (1.0 + least_growth(events, r, variance, 4.5));
            near(penalised(events, grown, r, variance).sqrt(), 4.5, 5e-3);
        }
        // Student's distribution asks for more.
        assert!(with_power(4.5, Some(4)) > with_power(4.5, None) && with_power(4.5, None) > 4.5 + 1.28);
    }
}
