//! When enough runs were taken: a confidence sequence for the mean of paired differences of unknown variance, which holds
//! at all looks together, so that it may be looked at after each pair and gone on with for as long as one likes.
//!
//! The mixture of Student's t over a normal prior of the standardised mean with variance `1/c²` is a test martingale under
//! a scale-invariant filtration (Lai 1976; Wang and Ramdas 2023, *Anytime-valid t-tests and confidence sequences for
//! Gaussian means with unknown variance*, theorem 4.7). With `r = c²/(n + c²)` it is
//! `sqrt(r) ((1 + t²/(n-1)) / (1 + r t²/(n-1)))^(n/2)`, and by Ville's inequality exceeds `1/alpha` once in `1/alpha`
//! sequences at most, however long they are.

/// `c²`: differences of about two standard deviations are found soonest.
const PRIOR: f64 = 0.25;
/// The probability of a change that is none, over all looks.
pub const ALARMS: f64 = 0.01;
/// That of a change larger than the one that was ruled out.
pub const MISSES: f64 = 0.05;

/// What pairs of runs say so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// The sides differ.
    Change,
    /// They differ by no more than what was asked for.
    NoLargerChange,
    /// Neither is known yet.
    Open,
}

/// Pairs of runs, one of each side, and the change that matters.
#[derive(Debug, Clone)]
pub struct Pairs {
    logs: Vec<f64>,
    effect: f64,
}

impl Pairs {
    /// None yet. `effect` is the change that matters, as a part: 0.02.
    pub fn new(effect: f64) -> Pairs {
        Pairs { logs: Vec::new(), effect }
    }

    /// Adds a pair by the totals of its runs. What is not positive says nothing, and is not counted.
    pub fn push(&mut self, base: f64, new: f64) {
        let log = (new / base).ln();
        if log.is_finite() {
            self.logs.push(log);
        }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.logs.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// The mean change, as a part.
    pub fn change(&self) -> Option<f64> {
        (!self.logs.is_empty()).then(|| mean(&self.logs).exp_m1())
    }

    /// The changes that are not ruled out, with an error of `alpha` over all looks; `None` while there are too few pairs.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let n = self.logs.len() as f64;
        if n < 2.0 {
            return None;
        }
        let mean = mean(&self.logs);
        let variance = self.logs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        let r = PRIOR / (n + PRIOR);
        // Where the martingale is 1/alpha, solved for t²/(n-1).
        let k = (1.0 / (alpha * r.sqrt())).powf(2.0 / n);
        if r * k >= 1.0 {
            return None;
        }
        let t = ((n - 1.0) * (k - 1.0) / (1.0 - r * k)).sqrt();
        let half = t * (variance / n).sqrt();
        Some(((mean - half).exp_m1(), (mean + half).exp_m1()))
    }

    /// Whether it is decided.
    pub fn decision(&self) -> Decision {
        if self.interval(ALARMS).is_some_and(|(low, high)| low > 0.0 || high < 0.0) {
            return Decision::Change;
        }
        let is_within = |(low, high): (f64, f64)| low >= -self.effect && high <= self.effect;
        if self.interval(MISSES).is_some_and(is_within) { Decision::NoLargerChange } else { Decision::Open }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::{Decision, Pairs};

    /// SplitMix64, as a normal variable by twelve dice.
    fn normal(state: &mut u64) -> f64 {
        let mut dice = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as f64 / u64::MAX as f64
        };
        (0..12).map(|_| dice()).sum::<f64>() - 6.0
    }

    /// How often "change" is said, and after how many pairs on average, of runs that differ by `noise`, in a load that comes
    /// and goes: for some runs in a row all take `load` more.
    fn simulate(change: f64, noise: f64, load: f64, most: usize) -> (usize, usize, f64) {
        let (mut state, mut alarms, mut ruled_out, mut pairs_of_all) = (7u64, 0, 0, 0);
        let rounds = 2000;
        for round in 0..rounds {
            let (mut pairs, mut busy) = (Pairs::new(0.02), 0.0f64);
            while pairs.len() < most && pairs.decision() == Decision::Open {
                let mut sides = [0.0; 2];
                // In turns: A B, B A.
                for side in if (pairs.len() + round) % 2 == 0 { [0, 1] } else { [1, 0] } {
                    busy = if normal(&mut state) > 1.0 { 1.0 - busy } else { busy };
                    let mean = (side as f64 * change).exp() * (1.0 + load * busy);
                    sides[side] = mean * (noise * normal(&mut state)).exp();
                }
                pairs.push(sides[0], sides[1]);
            }
            alarms += usize::from(pairs.decision() == Decision::Change);
            ruled_out += usize::from(pairs.decision() == Decision::NoLargerChange);
            pairs_of_all += pairs.len();
        }
        (alarms * 1000 / rounds, ruled_out * 1000 / rounds, pairs_of_all as f64 / rounds as f64)
    }

    /// The naive way: the medians of five runs of one side and then five of the other, at 2 %.
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

    /// docs/bench.md has these numbers.
    #[test]
    fn alarms_are_as_rare_as_promised_over_all_looks() {
        let mut said = Vec::new();
        for (noise, load) in [(0.01, 0.0), (0.03, 0.0), (0.01, 0.1), (0.03, 0.3)] {
            let (alarms, ruled_out, pairs) = simulate(0.0, noise, load, 30);
            said.push(format!(
                "noise {noise} load {load}: alarms {alarms} none {ruled_out} in 1000, {pairs:.1} pairs; naive {}",
                naive(noise, load)
            ));
            assert!(alarms <= 10, "{alarms} of 1000 with {noise} and {load}");
        }
        for (change, noise) in [(0.05, 0.01), (0.02, 0.01), (0.05, 0.03), (0.02, 0.03)] {
            let (found, _, pairs) = simulate(change, noise, 0.0, 30);
            said.push(format!("change {change} noise {noise}: found {found} in 1000 after {pairs:.1} pairs"));
        }
        eprintln!("{}", said.join("\n"));
        let (found, _, pairs) = simulate(0.05, 0.01, 0.0, 30);
        assert!(found >= 990 && pairs < 10.0, "{found} after {pairs}");
    }

    #[test]
    fn what_says_nothing_is_not_counted() {
        let mut pairs = Pairs::new(0.02);
        pairs.push(0.0, 1.0);
        pairs.push(f64::NAN, 1.0);
        assert!(pairs.is_empty() && pairs.change().is_none() && pairs.interval(0.05).is_none());
        (0..9).for_each(|i| pairs.push(100.0, 100.0 + f64::from(i % 2) * 0.1));
        assert_eq!(pairs.decision(), Decision::NoLargerChange);
        (0..40).for_each(|i| pairs.push(100.0, 110.0 + f64::from(i % 2) * 0.1));
        assert_eq!(pairs.decision(), Decision::Change);
    }
}
