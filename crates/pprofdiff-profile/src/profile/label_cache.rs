//! Caches a value for the labels of a sample, because most samples have the same labels as another sample.

use std::hash::BuildHasher;

use crate::random::FastState;

/// The number of entries. Profiles that use more label sets decode some of them again.
const SLOTS: usize = 1 << 10;

/// A cache of fixed size from the encoded labels of one profile to values.
pub(crate) struct LabelCache<'p, T> {
    state: FastState,
    slots: Vec<Option<(&'p [u8], T)>>,
    /// The slot of the labels that were searched last.
    slot: usize,
}

impl<T: Copy> Default for LabelCache<'_, T> {
    fn default() -> Self {
        LabelCache { state: FastState::default(), slots: vec![None; SLOTS], slot: 0 }
    }
}

impl<'p, T: Copy> LabelCache<'p, T> {
    /// Returns the value of these encoded labels, if the cache has it.
    #[inline]
    pub(crate) fn find(&mut self, encoded: &[u8]) -> Option<T> {
        self.slot = self.state.hash_one(encoded) as usize % SLOTS;
        self.slots[self.slot].filter(|&(labels, _)| labels == encoded).map(|(_, value)| value)
    }

    /// Stores the value of the encoded labels that were searched last, in place of another value.
    pub(crate) fn insert(&mut self, encoded: &'p [u8], value: T) {
        self.slots[self.slot] = Some((encoded, value));
    }
}

#[cfg(test)]
mod tests {
    use super::{LabelCache, SLOTS};

    #[test]
    fn found_values_belong_to_the_same_labels() {
        let texts: Vec<[u8; 4]> = (0..3 * SLOTS as u32).map(u32::to_le_bytes).collect();
        let mut cache = LabelCache::default();
        let mut hits = 0;
        for _ in 0..2 {
            for (number, text) in (0..).zip(&texts) {
                for _ in 0..2 {
                    match cache.find(text) {
                        Some(found) => assert_eq!(found, number),
                        None => cache.insert(text, number),
                    }
                }
                hits += usize::from(cache.find(text) == Some(number));
            }
        }
        assert_eq!(hits, 2 * texts.len());
    }
}
