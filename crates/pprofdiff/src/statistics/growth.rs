//! The test of growth between runs of two builds: did a value grow by more than chance explains? The value is the
//! total, or one frame among many.
//!
//! Model: a run counts events. Their number is Poisson distributed around the cost of the build, multiplied by a factor
//! for the run. The logarithm of that factor is normal with variance tau squared, which is similar for all frames of a
//! program.
//!
//! With one run per side, tau comes from measurements of other programs. With several runs, each frame's own variance
//! is shrunk towards the common variance of its program's frames (Smyth 2004). Both the common variance and its degrees
//! of freedom are fitted to the frames.
//!
//! Shrinking has one weakness: it trusts runs that agree. Code alignment, or a pool that hits or misses, puts a run on
//! one of two levels, and two or three runs then agree by coincidence. The variance of a frame therefore has a minimum:
//! a part of the average variance of frames, however well the frame's own few runs agree.
//!
//! The p-value of a growth follows from the square root of its penalised deviance (`counts`), by Student's
//! distribution. A factor that changes whole runs appears in all frames alike. A test of a group of frames therefore
//! also requires that the group's own runs show the growth without the other frames. The test of a total ([`super::total`])
//! uses only its own runs, because tables of the same runs with other frames must show the same p-value.

use super::counts::{between_run_variance, penalised};
#[cfg(feature = "check")]
use super::counts::{least_growth, with_power};
use super::distributions::student_tail;
#[cfg(feature = "check")]
use super::distributions::{bisect, student_quantile};
use super::gamma::{digamma, log_variance, trigamma_inverse};

/// The minimum number of events of a frame, on each side, for an estimate of the variation between runs.
const TELLING: f64 = 15.0;
/// The minimum number of such frames.
const FEWEST: usize = 8;
/// The maximum degrees of freedom of the prior from a program's own frames, because frames are not independent.
const MAX_DEGREES: f64 = 20.0;
/// The degrees of freedom of the prior from other programs.
const DEGREES_OF_KNOWN: f64 = 10.0;
/// The minimum degrees of freedom of a variance. The prior contributes what a few runs lack, because a second run adds
/// only one or two degrees of freedom. If these replaced the ten of the prior, the quantile of Student's distribution
/// would grow faster than the error shrinks, and two runs would need a larger change than one run. Eight is the
/// smallest number with which every added run lowers the required change, down to a probability of 1e-4.
const FEWEST_DEGREES: f64 = 8.0;
/// The weight of the average over the frames, in degrees of freedom, when it limits a frame's variance from below. It
/// is weighed against the degrees of freedom of the frame's own runs.
const DEGREES_OF_AVERAGE: f64 = 12.0;
/// The fraction of frames with the largest variances that the average caps, because outliers reveal little about the
/// other frames.
const OUTLIERS: f64 = 0.1;
/// The largest number of runs per side that a result proposes.
#[cfg(feature = "check")]
const MAX_RUNS: usize = 50;

/// The numbers of events of one subject: a list for each side, with an entry for each run.
pub(crate) type RunEvents = [Vec<f64>; 2];

/// The variation between runs of one build.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// The variance between runs of the log of a frame's cost.
    tau2: f64,
    /// The degrees of freedom of `tau2`. They add to the degrees of freedom of a frame's own runs.
    degrees: f64,
    /// The average variance of frames. It exceeds the typical variance if single runs of some frames stand out.
    average: f64,
    /// The variance between runs that was measured with other programs.
    known_variance: f64,
    /// True if run i of the base is paired with run i of the new side.
    paired: bool,
    /// True if no frames contribute, so that a single subject is tested by its own runs alone.
    is_of_total: bool,
}

/// Returns the minimum degrees of freedom that a prior contributes, given the runs of both sides. It falls as the runs
/// provide more information. It depends on the smaller side, because more runs on the larger side alone shrink the
/// error slowly.
fn least_prior(m: [usize; 2], paired: bool) -> f64 {
    let degrees = m[0].min(m[1]) as f64 - 1.0;
    (FEWEST_DEGREES - if paired { degrees } else { 2.0 * degrees }).max(0.0)
}

/// Returns the degrees of freedom that the prior contributes to the variance of a single subject's own runs. These must
/// show a growth by themselves, so the numbers are the smallest with which each added run lowers the required change,
/// down to a probability of 0.001.
fn prior_of_one(m: [usize; 2], paired: bool) -> f64 {
    let smaller = m[0].min(m[1]);
    let run_degrees = m[0] + m[1] - 2;
    let degrees = match (paired, smaller) {
        (false, 0 | 1) => 7,
        (false, 2) => 10_usize.saturating_sub(2 * run_degrees).max(3),
        (false, _) => 6_usize.saturating_sub(run_degrees),
        (true, 0..3) => 7,
        (true, 3) => 4,
        (true, pairs) => 6_usize.saturating_sub(pairs),
    };
    degrees as f64
}

/// Returns the average by which variances exceed the variance of counting; at least 0. The largest values
/// ([`OUTLIERS`]) are capped at the largest value below them, if there are at least [`FEWEST`] values.
fn average_excess(runs: &[(f64, f64, f64)]) -> f64 {
    let mut excess: Vec<f64> = runs.iter().map(|(variance, _, counted)| variance - counted).collect();
    excess.sort_unstable_by(f64::total_cmp);
    let outliers = if excess.len() < FEWEST { 0 } else { (excess.len() as f64 * OUTLIERS).ceil() as usize };
    let Some(&largest) = excess.get(excess.len().saturating_sub(outliers + 1)) else { return 0.0 };
    mean(&excess.iter().map(|x| x.min(largest)).collect::<Vec<_>>()).max(0.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the two-sided probability for a one-sided tail.
fn two_sided(tail: f64) -> f64 {
    (2.0 * tail.min(1.0 - tail)).min(1.0)
}

/// Returns the variance between runs relative to their squared mean, its degrees of freedom, and the part that counting
/// events contributes. For pairs it is half of the variance of the log ratios, which makes it the variance of one run.
fn variance_of_runs(runs: &RunEvents, paired: bool) -> (f64, f64, f64) {
    let counting = |side: &[f64]| 1.0 / mean(side).max(0.5);
    if paired {
        let ratios: Vec<f64> = runs[0].iter().zip(&runs[1]).map(|(b, n)| ((n + 0.5) / (b + 0.5)).ln()).collect();
        let (center, degrees) = (mean(&ratios), ratios.len() as f64 - 1.0);
        let squares: f64 = ratios.iter().map(|x| (x - center).powi(2)).sum();
        return (squares / degrees / 2.0, degrees, (counting(&runs[0]) + counting(&runs[1])) / 2.0);
    }
    let (mut squares, mut degrees, mut counted) = (0.0, 0.0, 0.0);
    for side in runs {
        let center = mean(side).max(0.5);
        let side_degrees = side.len() as f64 - 1.0;
        squares += side.iter().map(|x| (x / center - 1.0).powi(2)).sum::<f64>();
        (degrees, counted) = (degrees + side_degrees, counted + side_degrees * counting(side));
    }
    (squares / degrees, degrees, counted / degrees)
}

/// Returns the number of runs per side with the same error as these numbers of runs: their harmonic mean.
fn per_side(m: [usize; 2]) -> f64 {
    2.0 / (1.0 / m[0] as f64 + 1.0 / m[1] as f64)
}

impl Spread {
    /// Estimates the variation from the frames of several runs. `known_variance` is the variance between runs of other
    /// programs. It replaces the estimate with one run per side (with one pair, if runs are paired), and with fewer
    /// than [`FEWEST`] frames that have enough events.
    pub(crate) fn of_frames(frames: impl Iterator<Item = RunEvents>, known_variance: f64, paired: bool) -> Spread {
        let by_others = Spread { is_of_total: false, ..Spread::of_total(known_variance, paired) };
        let mut contributing: Vec<RunEvents> =
            frames.filter(|runs| runs.iter().all(|side| side.iter().sum::<f64>() > TELLING)).collect();
        // Frames that always occur together are one frame.
        contributing.sort_unstable_by(|a, b| {
            a.iter().flatten().partial_cmp(b.iter().flatten()).unwrap_or(std::cmp::Ordering::Equal)
        });
        contributing.dedup();
        // One run per side cannot distinguish noise from change.
        if !contributing.iter().all(|runs| by_others.is_replicated(runs)) {
            return by_others;
        }
        let runs: Vec<_> = contributing.iter().map(|runs| variance_of_runs(runs, paired)).collect();
        let average = average_excess(&runs);
        if contributing.len() < FEWEST {
            return Spread { average, ..by_others };
        }
        let degrees = runs[0].1;
        let fewest = least_prior(contributing[0].each_ref().map(Vec::len), paired).max(1.0);
        // The logarithm of a variance relative to its expectation has a known mean and variance (Smyth 2004).
        let fit = |tau2: f64| {
            let logs: Vec<f64> = runs.iter().map(|(v, _, counted)| (v / (tau2 + counted)).max(1e-4).ln()).collect();
            let center = mean(&logs);
            let spread = logs.iter().map(|x| (x - center).powi(2)).sum::<f64>() / (logs.len() as f64 - 1.0);
            let excess = spread - log_variance(degrees);
            let prior = if excess > 0.0 { 2.0 * trigamma_inverse(excess) } else { MAX_DEGREES };
            let prior = prior.clamp(fewest, MAX_DEGREES);
            let expected = |degrees: f64| digamma(degrees / 2.0) - (degrees / 2.0).ln();
            (center - expected(degrees) + expected(prior), prior)
        };
        let (mut low, mut high) = (0.0, 4.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if fit(middle).0 > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Spread { tau2: high, degrees: fit(high).1, average, known_variance, paired, is_of_total: false }
    }

    /// Returns the spread for tests of a total. It does not depend on frames: several runs show their own variation, and
    /// one run per side has the variance of other programs.
    pub(crate) fn of_total(known_variance: f64, paired: bool) -> Spread {
        let (tau2, degrees) = (known_variance, DEGREES_OF_KNOWN);
        Spread { tau2, degrees, average: 0.0, known_variance, paired, is_of_total: true }
    }

    /// Returns the variance of a subject's cost between runs, beyond counting, and its degrees of freedom.
    fn variance(&self, runs: &RunEvents) -> (f64, f64) {
        if !self.is_replicated(runs) {
            return (self.tau2, self.degrees);
        }
        let (variance, degrees, counted) = variance_of_runs(runs, self.paired);
        let shrunk = (self.degrees * (self.tau2 + counted) + degrees * variance) / (self.degrees + degrees);
        (
            (shrunk - counted).max(self.min_variance(degrees, per_side(runs.each_ref().map(Vec::len)))),
            self.degrees + degrees,
        )
    }

    /// Returns the minimum variance of a frame, given the degrees of freedom of its own runs and their number per side.
    /// Frames that come and go can make the average as large as the variance of a frame itself. So the average is
    /// capped where more runs would need a larger change than one run per side. A frame's own variance has no cap.
    fn min_variance(&self, own_degrees: f64, runs: f64) -> f64 {
        let average = self.average * DEGREES_OF_AVERAGE / (DEGREES_OF_AVERAGE + own_degrees);
        (self.tau2 / 4.0).max(average.min(self.known_variance * runs))
    }

    /// Returns the probability that a build that grew by `ratio` appears to have grown by at least this amount.
    pub(crate) fn p_of_growth(&self, runs: &RunEvents, ratio: f64) -> f64 {
        let m = runs.each_ref().map(Vec::len);
        let [base, new] = runs.each_ref().map(|side| side.iter().sum::<f64>());
        let expected = ratio * m[1] as f64 / m[0] as f64;
        let (tau2, degrees) = self.variance(runs);
        let deviance = penalised(base, new, expected, between_run_variance(tau2, m)).max(0.0);
        let tail = student_tail(deviance.sqrt(), degrees as u32);
        if new > base * expected { tail } else { 1.0 - tail }
    }

    /// Returns [`Spread::p_of_growth`] of a single subject. Its own runs must show the growth too, so the variance
    /// needs no minimum from the average of the frames. For a total, its own runs decide alone.
    pub(crate) fn p_of_one(&self, runs: &RunEvents, ratio: f64) -> f64 {
        let by_frames = || Spread { average: 0.0, ..*self }.p_of_growth(runs, ratio);
        match self.p_alone(runs, ratio) {
            Some(p) if self.is_of_total => p,
            p => by_frames().max(p.unwrap_or(0.0)),
        }
    }

    /// Returns the probability of this growth by the subject's own runs, without the runs of other frames: Student's
    /// test of the mean logs. Returns `None` with one run per side, or if a side has no events.
    fn p_alone(&self, runs: &RunEvents, ratio: f64) -> Option<f64> {
        let [base, new] = runs.each_ref().map(|side| mean(side));
        if base <= 0.0 || new <= 0.0 {
            return None;
        }
        let (deviation, degrees) = self.error_alone(runs)?;
        let growth = (new / (base * ratio)).ln();
        let tail = student_tail(growth.abs() / deviation, degrees as u32);
        Some(if growth > 0.0 { tail } else { 1.0 - tail })
    }

    /// Returns the standard error of a growth's log by the subject's own runs, including counting noise, and its
    /// degrees of freedom. Returns `None` with one run per side.
    fn error_alone(&self, runs: &RunEvents) -> Option<(f64, f64)> {
        let (variance, degrees, _) = self.variance_alone(runs)?;
        let m = runs.each_ref().map(Vec::len);
        Some((between_run_variance(variance, m).sqrt().max(1e-12), degrees))
    }

    /// Returns the variance of a subject's own runs, its degrees of freedom, and the part that counting contributes.
    /// Runs that agree by coincidence are shrunk towards the variance of other programs. Runs that differ by more keep
    /// their variance, and the prior contributes fewer degrees of freedom, because their program is unlike the others.
    /// Returns `None` with one run per side.
    fn variance_alone(&self, runs: &RunEvents) -> Option<(f64, f64, f64)> {
        if !self.is_replicated(runs) {
            return None;
        }
        let (variance, own_degrees, counted) = variance_of_runs(runs, self.paired);
        let prior = prior_of_one(runs.each_ref().map(Vec::len), self.paired);
        let shrunk = (prior * (self.known_variance + counted) + own_degrees * variance) / (prior + own_degrees);
        let likeness = ((self.known_variance + counted) / variance.max(1e-300)).min(1.0);
        // Rounding must not cost a degree if the variances are equal.
        let degrees = (prior * likeness + own_degrees + 1e-6).floor();
        Some((shrunk.max(variance), degrees, counted))
    }

    /// Returns the two-sided probability that builds that differ by `ratio` appear to differ by at least this amount.
    pub(crate) fn p_of_change(&self, runs: &RunEvents, ratio: f64) -> f64 {
        two_sided(self.p_of_growth(runs, ratio))
    }

    /// Returns [`Spread::p_of_change`] of a single subject, by [`Spread::p_of_one`].
    pub(crate) fn p_of_change_of_one(&self, runs: &RunEvents, ratio: f64) -> f64 {
        two_sided(self.p_of_one(runs, ratio))
    }

    fn is_replicated(&self, runs: &RunEvents) -> bool {
        if self.paired { runs[0].len() > 1 } else { runs[0].len() + runs[1].len() > 2 }
    }
}

/// Additional results for checks.
#[cfg(feature = "check")]
impl Spread {
    /// Returns the standard deviation between runs of the log of a typical frame's cost.
    pub(crate) fn tau(&self) -> f64 {
        self.tau2.sqrt()
    }

    /// Returns the standard deviation between runs of the log of a total, beyond counting. A spread of frames returns
    /// [`Spread::tau`].
    pub(crate) fn tau_of_one(&self, runs: &RunEvents) -> f64 {
        if !self.is_of_total || !self.is_replicated(runs) {
            return self.tau();
        }
        let (variance, _, counted) = variance_of_runs(runs, self.paired);
        (variance - counted).max(0.0).sqrt()
    }

    /// Returns the standard deviation of the logarithm of a subject's growth.
    pub(crate) fn deviation(&self, runs: &RunEvents) -> f64 {
        let counting = |side: &[f64]| 1.0 / side.iter().sum::<f64>().max(0.5);
        (counting(&runs[0])
            + counting(&runs[1])
            + between_run_variance(self.variance(runs).0, runs.each_ref().map(Vec::len)))
        .sqrt()
    }

    /// Returns the probability that a build with a cost of `limit` events per run appears to cost at least this amount.
    /// The spread must come from runs, not from pairs.
    pub(crate) fn p_above(&self, runs: &[f64], limit: f64) -> f64 {
        let (sum, m) = (runs.iter().sum::<f64>(), runs.len() as f64);
        let expected = (limit * m).max(1e-9);
        if sum <= expected {
            return 1.0;
        }
        let center = sum / m;
        let squares: f64 = runs.iter().map(|x| (x / center - 1.0).powi(2)).sum();
        let (counted, degrees) = (1.0 / center, self.degrees + m - 1.0);
        let shrunk = (self.degrees * (self.tau2 + counted) + squares) / degrees;
        let variance = (shrunk - counted).max(self.min_variance(m - 1.0, m)).max(1e-12) / m;
        // Minimizes the sum of the Poisson deviance and of the penalty for a run that differs. The slope of that sum
        // grows with x. Differences of large counts are computed before their logs, to keep precision.
        let slope = |x: f64| expected * x.exp_m1() - (sum - expected) + x / variance;
        let x = bisect(0.0, (sum / expected).ln(), |x| slope(x) > 0.0);
        let beyond = x / variance;
        // The log of the fitted rate divided by the sum. Near a limit, the two are nearly equal. Far beyond it, the
        // difference `sum - beyond` would lose all precision.
        let log_rate = if beyond < sum / 2.0 { (-beyond / sum).ln_1p() } else { expected.ln() + x - sum.ln() };
        let deviance = -2.0 * (sum * log_rate + beyond) + x * x / variance;
        student_tail(deviance.max(0.0).sqrt(), degrees as u32)
    }

    /// Returns the smallest growth, as a factor minus one, that is detected in nine of ten tries in a typical frame
    /// with `events` events per run of the base. `chance` is the accepted probability of a false positive. `ratio` is
    /// the ratio of events at equal cost.
    pub(crate) fn detectable(&self, events: f64, ratio: f64, m: [usize; 2], chance: f64) -> f64 {
        let tau2 = self.tau2.max(self.min_variance(self.own_degrees(m), per_side(m)));
        let [base, new] = m.map(|m| m as f64);
        let degrees = self.degrees + self.own_degrees(m);
        least_growth(events * base, ratio * new / base, between_run_variance(tau2, m), required(chance, degrees))
    }

    /// Returns the detectable growth of a single subject, given its runs: the larger requirement of
    /// [`Spread::p_of_one`]'s two tests.
    pub(crate) fn detectable_alone(&self, runs: &RunEvents, ratio: f64, chance: f64) -> f64 {
        let m = runs.each_ref().map(Vec::len);
        let [base, new] = m.map(|m| m as f64);
        let (tau2, degrees) = Spread { average: 0.0, ..*self }.variance(runs);
        let events = runs[0].iter().sum::<f64>();
        let by_frames =
            least_growth(events, ratio * new / base, between_run_variance(tau2, m), required(chance, degrees));
        match self.error_alone(runs).map(|(error, degrees)| (required(chance, degrees) * error).exp_m1()) {
            Some(alone) if self.is_of_total => alone,
            alone => by_frames.max(alone.unwrap_or(0.0)),
        }
    }

    /// Returns the number of runs per side that would distinguish a growth of this size from chance. The number exceeds
    /// the present number. Returns `None` if the value did not grow beyond `ratio`, or if more than [`MAX_RUNS`] runs
    /// are necessary.
    pub(crate) fn runs_needed(&self, runs: &RunEvents, ratio: f64, chance: f64, is_alone: bool) -> Option<usize> {
        let [base, new] = runs.each_ref().map(|side| mean(side));
        if new <= base * ratio {
            return None;
        }
        let tau2 = match self.variance_alone(runs) {
            Some((variance, _, counted)) if self.is_of_total => (variance - counted).max(0.0),
            _ if is_alone => Spread { average: 0.0, ..*self }.variance(runs).0,
            _ => self.variance(runs).0,
        };
        let first = runs[0].len().min(runs[1].len()) + 1;
        let deviance = |m: usize| penalised(base * m as f64, new * m as f64, ratio, between_run_variance(tau2, [m, m]));
        let needed = |m: usize| {
            let own_degrees = self.own_degrees([m, m]);
            required(chance, own_degrees + if is_alone { prior_of_one([m, m], self.paired) } else { self.degrees })
        };
        (first..=MAX_RUNS).find(|&m| deviance(m) > needed(m).powi(2))
    }

    /// Returns the degrees of freedom of `m` runs per side, without a prior.
    fn own_degrees(&self, m: [usize; 2]) -> f64 {
        (if self.paired { m[0] - 1 } else { m[0] + m[1] - 2 }) as f64
    }
}

/// Returns the number of standard deviations that a growth needs to be detected in nine of ten tries, given the
/// accepted probability of a false positive.
#[cfg(feature = "check")]
fn required(chance: f64, degrees: f64) -> f64 {
    with_power(student_quantile(chance, degrees as u32), Some(degrees as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::rank::false_discoveries;

    /// Deterministic random numbers between 0 and 1.
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as f64 + 0.5) / (1u64 << 31) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * self.next().ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
        }

        fn poisson(&mut self, mean: f64) -> f64 {
            if mean > 200.0 {
                return (mean + mean.sqrt() * self.normal()).round().max(0.0);
            }
            let (mut p, limit, mut n) = (self.next(), (-mean).exp(), 0.0);
            while p > limit {
                p *= self.next();
                n += 1.0;
            }
            n
        }

        /// Returns runs of frames with these costs. On the new side, the cost of the first frame is multiplied by
        /// `factor`.
        fn frames(&mut self, costs: &[f64], tau: f64, m: [usize; 2], factor: f64) -> Vec<RunEvents> {
            let mut runs_of = |i: usize, side: usize| {
                let cost = costs[i] * if i == 0 && side == 1 { factor } else { 1.0 };
                let run = (0..m[side]).map(|_| {
                    let cost = cost * (tau * self.normal()).exp();
                    self.poisson(cost)
                });
                run.collect::<Vec<f64>>()
            };
            (0..costs.len()).map(|i| [runs_of(i, 0), runs_of(i, 1)]).collect()
        }
    }

    fn costs() -> Vec<f64> {
        (0..100).map(|i| 500.0 / (1.0 + i as f64 / 10.0)).collect()
    }

    /// Checks the nominal rate of false findings, and the detection of a change of 30 %.
    #[test]
    fn equal_builds_rarely_fail_and_a_change_of_30_percent_is_found() {
        let mut chance = Uniform(7);
        for (m, tau, min_power) in
            [([1, 1], 0.05, 0.0), ([2, 2], 0.03, 0.0), ([3, 3], 0.02, 0.0), ([5, 5], 0.05, 0.9), ([8, 8], 0.05, 0.99)]
        {
            let (mut alarms, mut n_found) = (0, 0);
            let tries = 200;
            for _ in 0..tries {
                let frames = chance.frames(&costs(), tau, m, 1.3);
                let spread = Spread::of_frames(frames.iter().cloned(), 0.0049, false);
                let is_found = |runs: &RunEvents| spread.p_of_growth(runs, 1.0) * (frames.len() as f64) < 0.01;
                alarms += usize::from(frames[1..].iter().any(is_found));
                n_found += usize::from(is_found(&frames[0]));
            }
            // The bound is three standard deviations above one in a hundred.
            assert!(alarms <= 6, "{m:?} {tau}: {alarms} false");
            assert!(n_found as f64 >= min_power * tries as f64, "{m:?} {tau}: {n_found} found");
        }
    }

    #[test]
    fn the_estimated_spread_matches_the_simulated_spread() {
        let mut chance = Uniform(3);
        for tau in [0.03, 0.1, 0.3] {
            let frames = chance.frames(&costs(), tau, [5, 5], 1.0);
            let spread = Spread::of_frames(frames.iter().cloned(), 0.0049, false);
            assert!((spread.tau() / tau).ln().abs() < 0.3, "{tau}: {spread:?}");
            assert!(spread.degrees > 10.0, "{spread:?}");
        }
        // Frames that disagree reduce the degrees of freedom.
        let mut frames = chance.frames(&costs(), 0.02, [5, 5], 1.0);
        frames.extend(chance.frames(&costs(), 0.4, [5, 5], 1.0));
        let spread = Spread::of_frames(frames.iter().cloned(), 0.0049, false);
        assert!(spread.degrees < 6.0, "{spread:?}");
    }

    /// If runs vary as much as runs of other programs, each added run lowers the required change, for frames and for a
    /// single subject, on either side.
    #[test]
    fn another_run_never_raises_the_required_change() {
        let known_variance = 0.0049;
        let needed = |m: [usize; 2], paired: bool, chance: f64, events: f64| {
            let is_replicated = m[0] + m[1] > 2;
            let prior = if is_replicated { least_prior(m, paired).max(1.0) } else { DEGREES_OF_KNOWN };
            let spread = Spread {
                tau2: known_variance,
                degrees: prior,
                average: 0.0,
                known_variance,
                paired,
                is_of_total: false,
            };
            let frame = spread.detectable(events, 1.0, m, chance);
            // Runs with the variance of other programs: equally far above and below the mean.
            let deviation = (known_variance + 1.0 / events).sqrt();
            let side = |m: usize| {
                let step = if m < 2 { 0.0 } else { deviation * ((m - 1) as f64 / (m - m % 2) as f64).sqrt() };
                let sign = |i: usize| if m % 2 == 1 && i + 1 == m { 0.0 } else { 1.0 - 2.0 * (i % 2) as f64 };
                (0..m).map(|i| events * (1.0 + step * sign(i))).collect::<Vec<f64>>()
            };
            let alone = spread.detectable_alone(&m.map(side), 1.0, chance);
            // The logs of few events are skewed, which reduces the power of a test by the subject's own runs.
            [frame, if events < 100.0 || chance < 1e-3 { 0.0 } else { alone }]
        };
        for chance in [1e-2, 1e-3, 1e-4] {
            for events in [50.0, 1000.0, 1e6] {
                for (a, b) in (1..9).flat_map(|a| (1..9).map(move |b| (a, b))) {
                    for more in [[a + 1, b], [a, b + 1]] {
                        let before = needed([a, b], false, chance, events);
                        for (before, after) in before.iter().zip(needed(more, false, chance, events)) {
                            // `least_growth` is exact to 0.1 %.
                            assert!(after <= before * 1.005, "{a} {b} {more:?} {chance} {events}: {before} {after}");
                        }
                    }
                }
                for m in 1..9 {
                    let [before, after] = [m, m + 1].map(|m| needed([m, m], true, chance, events));
                    for (before, after) in before.iter().zip(after) {
                        assert!(after <= before * 1.005, "{m} pairs {chance} {events}: {before} {after}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_growth_of_the_detectable_size_is_found_nine_times_in_ten() {
        let mut chance = Uniform(11);
        let (m, tau) = ([5, 5], 0.05);
        let one_in = 0.01 / 100.0;
        let true_spread = Spread {
            tau2: tau * tau,
            degrees: 20.0,
            average: 0.0,
            known_variance: 0.0049,
            paired: false,
            is_of_total: false,
        };
        // Also for a frame with few events.
        for cost in [500.0, 15.0] {
            let mut costs = costs();
            costs[0] = cost;
            let factor = 1.0 + true_spread.detectable(cost, 1.0, m, one_in);
            let mut n_found = 0;
            for _ in 0..300 {
                let frames = chance.frames(&costs, tau, m, factor);
                let spread = Spread::of_frames(frames.iter().cloned(), 0.0049, false);
                n_found += usize::from(spread.p_of_growth(&frames[0], 1.0) < one_in);
            }
            assert!((250..=295).contains(&n_found), "{n_found} of 300 at {factor}");
        }
    }

    /// Runs on one of two levels agree by coincidence. Checks of equal builds must not fail more often than the model
    /// promises, and tables must not have more false rows. Three runs must reveal a growth larger than the difference
    /// between the levels.
    #[test]
    fn two_levels_of_runs_are_not_reported_as_a_change() {
        let mut chance = Uniform(13);
        for (part, level, jitter, growth) in [(0.3, 1.1, 0.0, 1.6), (0.3, 1.1, 0.01, 1.6), (0.1, 1.3, 0.01, 2.5)] {
            for m in 2..5 {
                let (mut checks, mut tables, mut n_found, tries) = (0, 0, 0, 150);
                for _ in 0..tries {
                    let mut run = || {
                        let level = if chance.next() < part { level } else { 1.0 };
                        (1e6 * level * (jitter * chance.normal()).exp()).round()
                    };
                    let mut side = || (0..m).map(|_| run()).collect::<Vec<f64>>();
                    let mut frames: Vec<RunEvents> = (0..40).map(|_| [side(), side()]).collect();
                    let spread = |frames: &[RunEvents]| Spread::of_frames(frames.iter().cloned(), 0.0049, false);
                    let fails =
                        |spread: &Spread, runs: &RunEvents| spread.p_of_growth(runs, 1.0) * frames.len() as f64 <= 0.01;
                    let equal = spread(&frames);
                    checks += usize::from(frames.iter().any(|runs| fails(&equal, runs)));
                    let p: Vec<f64> = frames.iter().map(|runs| equal.p_of_change(runs, 1.0)).collect();
                    tables += usize::from(false_discoveries(&p).iter().any(|q| *q <= 0.05));
                    let mut grown = frames[0].clone();
                    grown[1].iter_mut().for_each(|events| *events *= growth);
                    frames[0] = grown.clone();
                    n_found += usize::from(spread(&frames).p_of_growth(&grown, 1.0) * frames.len() as f64 <= 0.01);
                }
                // 2 % and 5 %, plus three standard deviations for this number of tries.
                assert!(checks <= 8 && tables <= 15, "{part} {m}: {checks} checks, {tables} tables");
                assert!(m < 3 || n_found >= tries * 8 / 10, "{part} {m}: {n_found} found");
            }
        }
    }

    /// If whole runs differ, all frames show the same few factors, so the total's own runs must show its growth.
    #[test]
    fn a_single_subject_is_also_tested_by_its_own_runs() {
        let mut chance = Uniform(5);
        // With two runs per side, the prior provides most of the variance. If whole runs vary three times as much as
        // runs of other programs, 4 % fail by chance instead of 1 %.
        for (m, factor, min_found, max_alarms) in [(2, 0.2, 0, 15), (3, 0.1, 0, 8), (5, 0.1, 0, 8), (5, 0.02, 285, 8)] {
            let (mut alarms, mut n_found) = (0, 0);
            for _ in 0..300 {
                let length: Vec<f64> = (0..2 * m).map(|_| (factor * chance.normal()).exp()).collect();
                let runs_of = |cost: f64, growth: f64, chance: &mut Uniform| -> RunEvents {
                    let side = |half: usize, growth: f64, chance: &mut Uniform| {
                        (0..m).map(|i| chance.poisson(cost * growth * length[half * m + i])).collect::<Vec<f64>>()
                    };
                    [side(0, 1.0, chance), side(1, growth, chance)]
                };
                let frames: Vec<RunEvents> = costs().iter().map(|&cost| runs_of(cost, 1.0, &mut chance)).collect();
                let spread = Spread::of_frames(frames.iter().cloned(), 0.0049, false);
                let is_found = |total: &RunEvents| spread.p_of_one(total, 1.0) < 0.01;
                alarms += usize::from(is_found(&runs_of(20_000.0, 1.0, &mut chance)));
                n_found += usize::from(is_found(&runs_of(20_000.0, 1.2, &mut chance)));
            }
            assert!(alarms <= max_alarms && n_found >= min_found, "{m} {factor}: {alarms} false, {n_found} found");
        }
    }

    /// A frame on one side only provides no estimate of the variation between runs.
    #[test]
    fn frames_on_one_side_only_do_not_change_the_spread() {
        let mut chance = Uniform(9);
        let mut frames = chance.frames(&costs(), 0.1, [5, 5], 1.0);
        let alone = Spread::of_frames(frames.iter().cloned(), 0.0049, false).tau();
        let mut new = chance.frames(&costs(), 0.1, [5, 5], 1.0);
        new.iter_mut().for_each(|runs| runs[0].fill(0.0));
        frames.extend(new);
        assert_eq!(Spread::of_frames(frames.into_iter(), 0.0049, false).tau(), alone);
    }

    #[test]
    fn pairs_cancel_the_variation_that_both_runs_share() {
        // Run lengths that differ by a half, while the runs of each pair have equal length.
        let lengths = [1.0, 1.5, 0.7, 1.2, 0.9];
        let frames: Vec<RunEvents> = (0..20)
            .map(|i| {
                let side = |factor: f64| lengths.iter().map(|l| (1000.0 + i as f64) * l * factor).collect::<Vec<f64>>();
                [side(1.0), side(if i == 0 { 1.15 } else { 1.0 })]
            })
            .collect();
        let p = |paired: bool| Spread::of_frames(frames.iter().cloned(), 0.0049, paired).p_of_growth(&frames[0], 1.0);
        assert!(p(false) > 0.1 && p(true) < 1e-3, "{} {}", p(false), p(true));
    }

    #[test]
    fn p_above_falls_with_the_distance_of_the_limit() {
        let spread = Spread {
            tau2: 0.0025,
            degrees: 20.0,
            average: 0.0,
            known_variance: 0.0049,
            paired: false,
            is_of_total: false,
        };
        let runs = [1000.0, 1010.0, 990.0];
        assert!(spread.p_above(&runs, 800.0) < 1e-3 && spread.p_above(&runs, 1200.0) == 1.0);
        let near = spread.p_above(&runs, 999.9);
        assert!((0.4..0.6).contains(&near), "{near}");
        // A limit further below the runs is more surely exceeded, down to a limit of zero.
        let p_values: Vec<f64> =
            [999.9, 900.0, 500.0, 100.0, 1.0, 1e-6, 0.0].map(|limit| spread.p_above(&runs, limit)).into();
        assert!(p_values.is_sorted_by(|a, b| a >= b), "{p_values:?}");
        // Counts of cycles give no better precision than the variation between runs allows.
        let p = |scale: f64| spread.p_above(&[1030.0 * scale], 1000.0 * scale);
        assert!((p(1e12) - p(1e9)).abs() < 1e-3 && p(1e12) > 0.2, "{} {}", p(1e12), p(1e9));
        // More runs distinguish smaller changes, and the result states the necessary number.
        let few = [vec![1000.0], vec![1150.0]];
        let needed = spread.runs_needed(&few, 1.0, 0.01, false).unwrap_or(0);
        assert!((4..12).contains(&needed), "{needed}");
        assert_eq!(spread.runs_needed(&[vec![10.0], vec![10.1]], 1.0, 0.01, false), None);
    }
}
