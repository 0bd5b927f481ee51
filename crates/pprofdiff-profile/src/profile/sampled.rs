//! What a reader saw of the samples behind each sample type, before it added them up by stack.
//!
//! A pprof file states how many samples a value stands for by a column that counts them, or by its period. Other formats
//! list the samples themselves, each with a weight: perf's periods, speedscope's weights, the list `samples` of a V8 heap
//! profile. Readers of these formats count while they add up, because the sums no longer show it.

use super::Profile;

/// The samples of one sample type: their number, and how unequal their weights are.
///
/// A sum of independent samples with weights `w` has the variance `sum(w^2)`. So the sum has the relative noise of
/// `sum(w)^2 / sum(w^2)` equal samples, each worth `sum(w^2) / sum(w)` ([`Sampled::event`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampled {
    /// The number of samples with a weight above 0.
    pub samples: u64,
    weights: f64,
    squares: f64,
    largest: f64,
}

/// The number of equal samples that a single one counts for at most.
const MAX_OF_ONE: f64 = 3.0;

impl Sampled {
    /// Adds a sample. Weights of 0 and less are no cost, and do not count.
    pub fn add(&mut self, weight: i64) {
        if weight > 0 {
            self.samples += 1;
            self.weights += weight as f64;
            self.squares += (weight as f64).powi(2);
            self.largest = self.largest.max(weight as f64);
        }
    }

    /// Adds the samples of another profile, whose weights are in a unit that is `times` as large.
    pub(crate) fn merge(&mut self, other: &Sampled, times: f64) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weights += other.weights * times;
        self.squares += other.squares * times * times;
        self.largest = self.largest.max(other.largest * times);
    }

    /// Returns the value of a sample, in the unit of the sample type; `None` without samples. One sample of an unusual weight
    /// is one event of its stack, so the value is at least a third of the largest weight.
    pub fn event(&self) -> Option<f64> {
        (self.weights > 0.0).then(|| (self.squares / self.weights).max(self.largest / MAX_OF_ONE))
    }
}

impl Profile {
    /// Returns the samples that the reader of the file saw of a sample type; `None` if the format does not list samples.
    /// A profile that was written and read again has lost this.
    pub fn sampled(&self, sample_type: usize) -> Option<&Sampled> {
        self.sampled.get(sample_type).filter(|sampled| sampled.samples > 0)
    }

    /// Sets the samples that were seen of each sample type.
    pub(crate) fn with_sampled(self, sampled: Vec<Sampled>) -> Profile {
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
        // Nine of 1 and one of 91: 100 in all, hardly more than one sample's worth of information.
        let mut unequal = Sampled::default();
        (0..9).for_each(|_| unequal.add(1));
        unequal.add(91);
        assert_eq!(unequal.event(), Some((9.0 + 91.0 * 91.0) / 100.0));
        assert_eq!(Sampled::default().event(), None);
    }
}
