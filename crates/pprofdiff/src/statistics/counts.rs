//! Comparisons of event counts between two sides: how far two counts are from their expectation, how much of that
//! distance the variation between runs explains, and how large a change must be to be detected.
//!
//! Sources: the deviance of two Poisson counts is the likelihood ratio of the conditional binomial distribution
//! (Przyborowski and Wilenski 1940). Variances between runs are shrunk towards their common value as in limma (Smyth
//! 2004) and edgeR (Robinson, McCarthy and Smyth 2010). The threshold is Bonferroni's.

use super::distributions::{normal_quantile, normal_tail, student_quantile, student_tail};

/// The penalised deviance that an unchanged value exceeds one time in twenty: the 95 % quantile of the chi-squared
/// distribution with one degree of freedom.
pub const LEVEL: f64 = 3.84;

/// Returns the deviance, twice the log likelihood ratio, of `b` and `n` events if the new rate is `r` times the base's.
#[inline]
pub fn deviance(b: f64, n: f64, r: f64) -> f64 {
    let (t, p) = (b + n, r / (1.0 + r));
    let part = |x: f64, expected: f64| if x > 0.0 { x * (x / expected.max(1e-300)).ln() } else { 0.0 };
    2.0 * (part(n, t * p) + part(b, t * (1.0 - p)))
}

/// Returns the log of the observed ratio relative to the expected ratio. At this shift, the deviance is 0. The result
/// is bounded if one side has zero events.
fn log_ratio(b: f64, n: f64, r: f64) -> f64 {
    if b <= 0.0 {
        30.0
    } else if n <= 0.0 {
        -30.0
    } else {
        (n / (b * r)).ln().clamp(-30.0, 30.0)
    }
}

/// Returns the deviance that remains if the log of the ratio may shift by x at a cost of `x^2 / variance`: the minimum
/// over x of `deviance(b, n, r e^x) + x^2 / variance`. Without variance it equals the deviance. For many events it
/// approaches the square of the log ratio divided by the variance.
#[inline]
pub fn penalised(b: f64, n: f64, r: f64, variance: f64) -> f64 {
    let variance = variance.max(1e-12);
    let top = log_ratio(b, n, r);
    // The sum is convex. Newton's method finds the zero of its slope within a bracket that shrinks.
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

/// The accepted probability of a false cause over all candidates. It is smaller for a single pair, because its noise is
/// estimated from the same pair, while the noise of replicates is measured.
const ALPHA_OF_PAIR: f64 = 0.002;
const ALPHA_OF_REPLICATES: f64 = 0.05;

/// The weight of the shrunk variance between runs, in degrees of freedom, in addition to the degrees of freedom of the
/// runs.
pub(crate) const PRIOR_DEGREES: u32 = 20;

/// The precision of a measured variance between runs.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredNoise {
    /// The degrees of freedom of the runs.
    pub degrees: usize,
    /// The degrees of freedom that shrinking adds: `PRIOR_DEGREES`, or 0 for a variance that is not shrunk.
    pub prior: u32,
    /// The minimum number of candidates that the threshold assumes, even if fewer exist.
    pub fewest: usize,
}

impl MeasuredNoise {
    /// Returns the precision of variances that are shrunk towards the common variance.
    pub fn drawn(degrees: usize) -> MeasuredNoise {
        MeasuredNoise { degrees, prior: PRIOR_DEGREES, fewest: FEWEST_CANDIDATES }
    }

    /// Returns the degrees of freedom of the variance: those of the prior plus at most 1000 of the runs.
    pub fn degrees(self) -> u32 {
        self.prior + self.degrees.min(1000) as u32
    }
}

/// The minimum number of candidates that a threshold assumes, so that a small profile does not lower the threshold.
const FEWEST_CANDIDATES: usize = 100;

/// Returns the penalised deviance that a cause must exceed: the square of Bonferroni's two-sided quantile over the
/// candidates. Benjamini and Hochberg's procedure does not fit: candidates are nested, the report contains few of them,
/// and a false alarm weighs more than a miss.
pub fn threshold(candidates: usize, measured: Option<MeasuredNoise>) -> f64 {
    let tail_probability = |alpha: f64, fewest: usize| alpha / (2.0 * candidates.max(fewest) as f64);
    let quantile = match measured {
        Some(variance) => student_quantile(tail_probability(ALPHA_OF_REPLICATES, variance.fewest), variance.degrees()),
        None => normal_quantile(tail_probability(ALPHA_OF_PAIR, FEWEST_CANDIDATES)),
    };
    quantile * quantile
}

/// Returns the probability that any candidate of a threshold reaches this deviance by chance. It is scaled so that a
/// deviance at the threshold has the accepted probability of a false cause. `measured` holds the degrees of freedom of
/// a measured variance; `None` uses the normal distribution.
pub fn chance_of(score: f64, threshold: f64, measured: Option<u32>) -> f64 {
    let tail = |score: f64| match measured {
        Some(degrees) => student_tail(score.max(0.0).sqrt(), degrees),
        None => normal_tail(score.max(0.0).sqrt()),
    };
    let at_threshold = if measured.is_some() { ALPHA_OF_REPLICATES } else { ALPHA_OF_PAIR };
    (at_threshold * tail(score) / tail(threshold).max(f64::MIN_POSITIVE)).min(1.0)
}

/// Returns the variance of the log of the ratio between the means of both sides, for this number of runs per side and a
/// variance of `tau2` per run.
#[inline]
pub fn between_run_variance(tau2: f64, runs: [usize; 2]) -> f64 {
    tau2 * (1.0 / runs[0] as f64 + 1.0 / runs[1] as f64)
}

/// The probability of detecting a growth of the detectable size.
const POWER: f64 = 0.9;

/// Returns the distance from no change, in standard deviations, of a growth that is detected with the probability
/// `POWER`. `threshold` is the largest distance that counts as chance. `degrees` are the degrees of freedom of a
/// measured variance between runs; `None` uses the normal distribution.
pub fn with_power(threshold: f64, degrees: Option<u32>) -> f64 {
    threshold + degrees.map_or_else(|| normal_quantile(1.0 - POWER), |degrees| student_quantile(1.0 - POWER, degrees))
}

/// The maximum growth to search, as a log: a factor of about a million.
const MAX_GROWTH: f64 = 14.0;

/// Returns the smallest growth, as a factor minus one, at which `base` events are `far` standard deviations from their
/// expectation, `r` times `base`. The distance is the square root of the penalised deviance.
///
/// `explain`, the rules of `check` and the grey parts of the page all use this function for detectable changes, each
/// with its own `far` ([`with_power`] for a detection nine times in ten). The result is exact to about 0.1 %, and is
/// about a million if no growth suffices.
pub fn least_growth(base: f64, r: f64, variance: f64, far: f64) -> f64 {
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

/// Returns the variance of the log of a ratio at which the median penalised deviance of unchanged frames equals its
/// value under chance. `frames` are (base, new, expected ratio). A larger variance reduces the deviance, so the result
/// is the median of the variances that the single frames require.
///
/// Without noise, half of the frames deviate by more than the median under chance, plus or minus half of the square
/// root of their number. `deviations` is the number of such standard errors that still count as no noise. At 0, chance
/// in a few frames of a quiet pair often gives a positive median, and the resulting variance hides true changes.
pub fn variance_of_ratios(frames: &[(f64, f64, f64)], deviations: f64) -> f64 {
    // Frames that chance explains need no variance. If they are the majority, the other frames cannot change the
    // median.
    let wander = |&&(b, n, r): &&(f64, f64, f64)| deviance(b, n, r) > MEDIAN_OF_CHI2;
    let wandering: Vec<_> = frames.iter().filter(wander).collect();
    let n_still = frames.len() - wandering.len();
    let max_still = (frames.len() / 2) as f64 - deviations * (frames.len() as f64).sqrt() / 2.0;
    if n_still as f64 > max_still {
        return 0.0;
    }
    let mut variances = vec![0.0; n_still];
    variances.extend(wandering.into_iter().map(|&(b, n, r)| variance_at(b, n, r, MEDIAN_OF_CHI2)));
    median(&mut variances)
}

/// The maximum variance of the log of a ratio.
const MAX_VARIANCE: f64 = 8.0;

/// Returns the variance at which the penalised deviance equals `level`, and at most [`MAX_VARIANCE`]. Returns 0 if the
/// deviance without variance does not exceed `level`.
///
/// At the minimum of `deviance(x) + x^2 / variance` the slopes cancel: `variance = -2 x / deviance'(x)`. So x
/// determines the variance. It lies between 0, where the deviance is complete, and the log of the ratio, where the
/// deviance is 0.
fn variance_at(b: f64, n: f64, r: f64, level: f64) -> f64 {
    if deviance(b, n, r) <= level {
        return 0.0;
    }
    let top = log_ratio(b, n, r);
    let slope = |x: f64| {
        let odds = r * x.exp();
        2.0 * (b * odds - n) / (1.0 + odds)
    };
    // The deviance at x. The part that does not depend on x is computed once.
    let (t, log_r) = (b + n, r.ln());
    let part = |x: f64| if x > 0.0 { x * (x / t).ln() } else { 0.0 };
    let fixed = part(b) + part(n) - n * log_r;
    let excess = |fraction: f64| {
        let x = top * fraction;
        let odds = r * x.exp();
        let deviance = 2.0 * (fixed - n * x + t * odds.ln_1p());
        deviance - x * (b * odds - n) / (1.0 + odds) - level
    };
    // The search starts between 0, where the excess is positive, and 1, where it is negative. It uses regula falsi: an
    // end that stays has its excess halved for the next step (the Illinois method).
    let (mut inner, mut outer) = ((0.0, excess(0.0)), (1.0, excess(1.0)));
    let mut stays = 0;
    while outer.0 - inner.0 > 1e-7 {
        let secant = (inner.0 * outer.1 - outer.0 * inner.1) / (outer.1 - inner.1);
        let fraction: f64 = if secant > inner.0 && secant < outer.0 { secant } else { (inner.0 + outer.0) / 2.0 };
        let value = excess(fraction);
        if value > 0.0 {
            inner = (fraction, value);
            outer.1 /= if stays > 0 { 2.0 } else { 1.0 };
            stays = 1;
        } else {
            outer = (fraction, value);
            inner.1 /= if stays < 0 { 2.0 } else { 1.0 };
            stays = -1;
        }
        if value.abs() < 1e-9 {
            (inner.0, outer.0) = (fraction, fraction);
        }
    }
    let outer = outer.0;
    let x = top * outer;
    (-2.0 * x / slope(x)).clamp(0.0, MAX_VARIANCE)
}

/// Returns the median; 0 for an empty slice.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let (middle, is_even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| is_even).unwrap_or(upper);
    (lower + upper) / 2.0
}

/// Returns the weighted median: the smallest value at which the weights so far reach half of their sum. Returns 1 for
/// an empty list.
pub fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
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
        // All n events are on one of two equal sides: 2 n ln 2.
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
                // Every x gives at least this value.
                for i in -400..=400 {
                    let x = f64::from(i) / 50.0;
                    let penalty = deviance(b, n, r * x.exp()) + x * x / variance;
                    assert!(g <= penalty + 1e-6, "{b} {n} {r} {variance} at {x}: {g} > {penalty}");
                }
                near(penalised(n, b, 1.0 / r, variance), g, 1e-6);
                last = g;
            }
        }
        // For many events only the variance matters.
        near(penalised(1e9, 1.1e9, 1.0, 0.01), 1.1f64.ln().powi(2) / 0.01, 1e-3);
    }

    #[test]
    fn the_threshold_is_bonferronis() {
        near(threshold(360, None), normal_quantile(0.001 / 360.0).powi(2), 1e-9);
        // 0.002 over 1,000 candidates on two sides: 1e-6. The quantile is in the table of `distributions`.
        near(threshold(1000, None), 4.75342f64.powi(2), 1e-5);
        assert_eq!(threshold(3, None), threshold(100, None));
        assert!(threshold(100, Some(MeasuredNoise::drawn(4))) > threshold(100, Some(MeasuredNoise::drawn(40))));
    }

    #[test]
    fn the_estimated_variance_of_ratios_matches_the_simulated_variance() {
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
    fn at_variance_at_the_penalised_deviance_equals_the_level() {
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
    fn medians_split_the_weight_in_half() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(weighted_median(vec![(5.0, 1.0), (1.0, 1.0), (2.0, 3.0)]), 2.0);
    }

    #[test]
    fn more_runs_or_events_show_smaller_changes() {
        let least = |events, tau2, runs| least_growth(events, 1.0, between_run_variance(tau2, runs), 4.5);
        assert!(least(1e3, 0.0, [1, 1]) > least(1e4, 0.0, [1, 1]));
        assert!(least(1e4, 0.01, [1, 1]) > least(1e4, 0.01, [3, 3]));
        // Many events need 4.5 sigma of sqrt(2/1e6), or of the noise between runs. Few events need a deviance of 4.5
        // squared.
        near(least(1e6, 0.0, [1, 1]), 4.5 * (2.0 / 1e6f64).sqrt(), 2e-3);
        near(least(1e9, 0.01, [1, 1]), (4.5 * 0.02f64.sqrt()).exp_m1(), 2e-3);
        for (events, r, variance) in [(3.0, 1.0, 0.0), (40.0, 2.0, 0.01), (1e4, 0.5, 0.1)] {
            let grown = events * r * (1.0 + least_growth(events, r, variance, 4.5));
            near(penalised(events, grown, r, variance).sqrt(), 4.5, 5e-3);
        }
        // Student's distribution requires a larger change.
        assert!(with_power(4.5, Some(4)) > with_power(4.5, None) && with_power(4.5, None) > 4.5 + 1.28);
    }
}
