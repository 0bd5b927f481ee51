//! Whether a frame's change is more than chance, one frame at a time: what a view greys. Causes answer for all frames
//! together and need more (`search`).

use super::Explanation;
use crate::statistics::counts::{between, penalised};

/// What the penalised deviance of a frame that nothing touched exceeds one time in twenty: the quantile of chi-squared
/// with one degree of freedom.
const LEVEL: f64 = 3.84;
/// The most that a frame is asked to grow by, as a factor.
const MOST_GROWTH: f64 = 1e6;

impl Explanation {
    /// True if a frame's change is no more than chance. `base` and `new` are its values in a run of a side, the mean
    /// of several, not normalized, in the sample type's unit.
    ///
    /// With `b = m0 base / event` and `n = m1 new / event` events ([`super::Noise::event`]) in the runs of a side, the ratio
    /// `r` of the amounts of work ([`super::WorkScale::factor`]), times `m1 / m0`, and the variance
    /// `V = tau^2 (1/m0 + 1/m1)`, it is `min over x of G(b, n, r e^x) + x^2 / V < 3.84`, where `G` is the deviance of
    /// two Poisson counts: so one in twenty frames that nothing touched is not said to be chance. False of values below
    /// zero, which count nothing.
    pub fn is_chance(&self, base: f64, new: f64) -> bool {
        let event = self.noise.event;
        if !(base >= 0.0 && new >= 0.0 && event > 0.0) {
            return base == new;
        }
        let (m0, m1) = self.noise.runs;
        let ratio = self.scale.factor * m1 as f64 / m0 as f64;
        let variance = between(self.noise.tau.powi(2), [m0, m1]);
        let (b, n) = (base * m0 as f64 / event, new * m1 as f64 / event);
        base + new <= 0.0 || penalised(b, n, ratio, variance) < LEVEL
    }

    /// The least factor, beyond that of the work, by which a frame of this value in the base must grow to be more than
    /// chance; to about 0.2%.
    pub fn least_growth(&self, base: f64) -> f64 {
        let expected = base * self.scale.factor;
        let (mut low, mut high) = (0.0, MOST_GROWTH.ln());
        while high - low > 0.002 {
            let middle: f64 = (low + high) / 2.0;
            if self.is_chance(base, expected * middle.exp()) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.exp()
    }
}
