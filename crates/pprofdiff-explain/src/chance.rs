//! Tests whether a single frame's change exceeds chance. Views grey out frames within chance. A cause must hold for
//! all frames together, so it needs more (`search`).

use super::Explanation;
use pprofdiff::shared::statistics::counts::{LEVEL, between_run_variance, least_growth, penalised};

impl Explanation {
    /// Returns true if a frame's change is within chance. `base` and `new` are its values in a run of each side (the
    /// mean of several runs), not normalized, in the sample type's unit.
    ///
    /// Let `b = m0 base / event` and `n = m1 new / event` be the events in all runs of each side
    /// ([`super::NoiseEstimate::event`]), `r` the ratio of the amounts of work ([`super::WorkScale::factor`]) times `m1 / m0`,
    /// and `V = tau^2 (1/m0 + 1/m1)` the variance. A change is within chance if `min over x of G(b, n, r e^x) + x^2 / V
    /// < 3.84`, where `G` is the deviance of two Poisson counts. Therefore one in twenty unchanged frames exceeds
    /// chance. For negative values, and if the value of an event is unknown (0), returns true only if both values are
    /// equal.
    pub fn is_chance(&self, base: f64, new: f64) -> bool {
        let event = self.noise.event;
        if !(base >= 0.0 && new >= 0.0 && event > 0.0) {
            return base == new;
        }
        let [m0, m1] = self.runs();
        let (ratio, variance) = self.expected();
        base + new <= 0.0 || penalised(base * m0 / event, new * m1 / event, ratio, variance) < LEVEL
    }

    /// Returns the least factor, at equal work, of growth that exceeds chance for a frame with this base value;
    /// accurate to about 0.1%.
    pub fn least_growth(&self, base: f64) -> f64 {
        let (ratio, variance) = self.expected();
        let events = base * self.runs()[0] / self.noise.event.max(f64::MIN_POSITIVE);
        1.0 + least_growth(events, ratio, variance, LEVEL.sqrt())
    }

    fn runs(&self) -> [f64; 2] {
        let (m0, m1) = self.noise.runs;
        [m0 as f64, m1 as f64]
    }

    /// Returns the expected ratio of an unchanged frame's new value to its base value, over all runs, and the variance
    /// of the logarithm of this ratio between the sides.
    fn expected(&self) -> (f64, f64) {
        let ([m0, m1], (base, new)) = (self.runs(), self.noise.runs);
        (self.scale.factor * m1 / m0, between_run_variance(self.noise.tau.powi(2), [base, new]))
    }
}
