//! Numbers stacks with their labels. Most stacks have one set of labels, which an array by stack finds without a hash.

use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::FastState;

/// Pairs of a stack and a set of labels, numbered in the order of their first use.
#[derive(Default)]
pub(super) struct LabelledStacks {
    pairs: Interner<(u32, u32), FastState>,
    /// By stack: its first pair, or [`NONE`]. Only further pairs are in the index of `pairs`.
    first: Vec<u32>,
}

impl LabelledStacks {
    /// Creates an empty list with room for a pair for each of `n` stacks.
    pub fn with_capacity(n: usize) -> LabelledStacks {
        let mut all = LabelledStacks::default();
        all.pairs.values.reserve(n);
        all.first.resize(n, NONE);
        all
    }

    /// Returns the number of a pair. A new pair receives the next number.
    #[inline]
    pub fn number(&mut self, stack: u32, labels: u32) -> u32 {
        if stack as usize >= self.first.len() {
            self.first.resize(stack as usize + 1, NONE);
        }
        let first = &mut self.first[stack as usize];
        if *first == NONE {
            *first = self.pairs.push((stack, labels));
            return *first;
        }
        if self.pairs.values[*first as usize].1 == labels { *first } else { self.pairs.number((stack, labels)) }
    }

    /// Returns the number of a pair, if it has one.
    pub fn find(&self, stack: u32, labels: u32) -> Option<u32> {
        let first = self.first.get(stack as usize).copied().filter(|first| *first != NONE)?;
        if self.pairs.values[first as usize].1 == labels { Some(first) } else { self.pairs.find((stack, labels)) }
    }

    /// Returns the pairs by number.
    pub fn values(&self) -> &[(u32, u32)] {
        &self.pairs.values
    }

    pub fn into_values(self) -> Vec<(u32, u32)> {
        self.pairs.values
    }
}

#[cfg(test)]
mod tests {
    use super::super::weights::mix;
    use super::LabelledStacks;

    #[test]
    fn pairs_are_numbered_in_the_order_of_their_first_use() {
        for seed in 0..100u64 {
            let (mut pairs, mut expected) = (LabelledStacks::with_capacity(2), Vec::<(u32, u32)>::new());
            for i in 0..60 {
                let random = mix(seed << 8 | i);
                let pair = ((random % 7) as u32, (random >> 32) as u32 % 3);
                assert_eq!(pairs.find(pair.0, pair.1), expected.iter().position(|e| *e == pair).map(|n| n as u32));
                if !expected.contains(&pair) {
                    expected.push(pair);
                }
                assert_eq!(Some(pairs.number(pair.0, pair.1)), pairs.find(pair.0, pair.1), "{seed}");
            }
            assert_eq!(pairs.into_values(), expected, "{seed}");
        }
    }
}
