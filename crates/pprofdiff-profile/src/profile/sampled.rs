//! Statistics about the samples behind each sample type, collected before a reader adds samples up by stack.
//!
//! A pprof file shows the number of samples behind a value in a column of counts, or in its period. Other formats list
//! the samples themselves, each with a weight: perf's periods, speedscope's weights, the list `samples` of a V8 heap
//! profile. Readers of these formats collect statistics while they add samples up, because the sums do not show them.

use super::Profile;

/// Statistics about the samples of one sample type: their number, and how unequal their weights are.
///
/// A sum of independent samples with weights `w` has the variance `sum(w^2)`. The sum therefore has the same relative
/// noise as `sum(w)^2 / sum(w^2)` equal samples, each with the weight `sum(w^2) / sum(w)` ([`Sampled::event`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampled {
    /// The number of samples with a weight above 0.
    pub samples: u64,
    weights: f64,
    squares: f64,
    largest: f64,
}

/// The maximum number of events that a single sample counts as.
const MAX_OF_ONE: f64 = 3.0;

impl Sampled {
    /// Adds a sample. Weights of 0 or less are ignored, because they do not count as cost.
    pub fn add(&mut self, weight: i64) {
        if weight > 0 {
            self.samples += 1;
            self.weights += weight as f64;
            self.squares += (weight as f64).powi(2);
            self.largest = self.largest.max(weight as f64);
        }
    }

    /// Adds the samples of another profile, with their weights multiplied by `times`.
    #[doc(hidden)]
    pub fn merge(&mut self, other: &Sampled, times: f64) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weights += other.weights * times;
        self.squares += other.squares * times * times;
        self.largest = self.largest.max(other.largest * times);
    }

    /// Returns the weight of one event in the unit of the sample type, or `None` without samples. One sample with an
    /// unusually large weight is still a single event on its stack, so the result is at least a third of the largest
    /// weight.
    pub fn event(&self) -> Option<f64> {
        (self.weights > 0.0).then(|| (self.squares / self.weights).max(self.largest / MAX_OF_ONE))
    }
}

impl Profile {
    /// Returns statistics about the samples of a sample type, or `None` if the file's format does not list samples. A
    /// profile that was written and read back has lost them.
    pub fn sampled(&self, sample_type: usize) -> Option<&Sampled> {
        self.sampled.get(sample_type).filter(|sampled| sampled.samples > 0)
    }

    /// Sets the statistics about the samples of each sample type.
    #[doc(hidden)]
    pub fn with_sampled(self, sampled: Vec<Sampled>) -> Profile {
        Profile { sampled, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::Sampled;

    #[test]
    fn unequal_weights_count_as_fewer_samples() {
        let mut equal = Sampled::default();
        (0..10).for_each(|_| equal.add(7));
        equal.add(0);
        equal.add(-3);
        assert_eq!((equal.samples, equal.event()), (10, Some(7.0)));
        // Nine samples of 1 and one sample of 91: 100 in all, with hardly more information than a single sample.
        let mut unequal = Sampled::default();
        (0..9).for_each(|_| unequal.add(1));
        unequal.add(91);
        assert_eq!(unequal.event(), Some((9.0 + 91.0 * 91.0) / 100.0));
        assert_eq!(Sampled::default().event(), None);
    }
}
