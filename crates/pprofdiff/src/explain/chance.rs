//! Whether a frame's change is more than chance, one frame at a time: what a view greys. Causes answer for all frames
//! together and need more (`search`).

use super::Explanation;
use crate::statistics::counts::{LEVEL, between_run_variance, least_growth, penalised};

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
        let [m0, m1] = self.runs();
        let (ratio, variance) = self.expected();
        base + new <= 0.0 || penalised(base * m0 / event, new * m1 / event, ratio, variance) < LEVEL
    }

    /// The least factor, beyond that of the work, by which a frame of this value in the base must grow to be more than
    /// chance; to about 0.1%.
    pub fn least_growth(&self, base: f64) -> f64 {
        let (ratio, variance) = self.expected();
        let events = base * self.runs()[0] / self.noise.event.max(f64::MIN_POSITIVE);
        1.0 + least_growth(events, ratio, variance, LEVEL.sqrt())
    }

    fn runs(&self) -> [f64; 2] {
        let (m0, m1) = self.noise.runs;
        [m0 as f64, m1 as f64]
    }

    /// What frames that nothing touched have on the new side to what they have in the base, in all runs, and the variance
    /// of its log.
    fn expected(&self) -> (f64, f64) {
        let ([m0, m1], (base, new)) = (self.runs(), self.noise.runs);
        (self.scale.factor * m1 / m0, between_run_variance(self.noise.tau.powi(2), [base, new]))
    }
}
