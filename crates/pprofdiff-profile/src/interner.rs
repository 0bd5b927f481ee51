//! Assigns numbers to distinct values. All tables of distinct strings, frames, labels, stacks and samples use this
//! module.
//!
//! A hash only finds candidates; equality is decided by content. Hashers are keyed with a secret, so nobody can prepare
//! collisions.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A hash index from values to their numbers. The values themselves are stored by the caller.
#[derive(Debug, Clone, Default)]
pub struct Index {
    numbers: HashTable<u32>,
}

impl Index {
    /// Creates an index with room for `n` values. Memory pages that stay unused cost nothing.
    pub fn with_capacity(n: usize) -> Index {
        Index { numbers: HashTable::with_capacity(n) }
    }

    /// Returns the number of the value that has this hash and satisfies `same`. If the index has no such value, it
    /// assigns the number `next`, and the caller must store the value under that number. `hash_of` returns the hash of
    /// a numbered value.
    #[inline(always)]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        next: usize,
        same: impl Fn(u32) -> bool,
        hash_of: impl Fn(u32) -> u64,
    ) -> Found {
        match self.numbers.entry(hash, |&n| same(n), |&n| hash_of(n)) {
            Entry::Occupied(occupied) => Found::Known(*occupied.get()),
            Entry::Vacant(vacant) => {
                let next = next as u32;
                vacant.insert(next);
                Found::New(next)
            }
        }
    }

    /// Adds a value that is not in the index yet, under the given number.
    pub fn insert_new(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        self.numbers.insert_unique(hash, number, |&n| hash_of(n));
    }

    /// Removes all numbers and keeps the memory.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }

    /// Reserves room for `n` more values.
    pub fn reserve(&mut self, n: usize, hash_of: impl Fn(u32) -> u64) {
        self.numbers.reserve(n, |&n| hash_of(n));
    }

    /// Returns the number of the value that has this hash and satisfies `same`.
    #[inline]
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        self.numbers.find(hash, |&n| same(n)).copied()
    }
}

/// The result of [`Index::find_or_insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The value already had this number.
    Known(u32),
    /// The value received this number now.
    New(u32),
}

impl Found {
    /// Returns the value's number.
    #[inline(always)]
    pub fn number(self) -> u32 {
        match self {
            Found::Known(number) | Found::New(number) => number,
        }
    }
}

/// A set of distinct values, numbered in the order of their first use.
#[derive(Debug, Clone)]
pub struct Interner<T, S> {
    index: Index,
    state: S,
    /// The values, indexed by their numbers.
    pub values: Vec<T>,
}

impl<T, S: Default> Default for Interner<T, S> {
    fn default() -> Interner<T, S> {
        Interner { index: Index::default(), state: S::default(), values: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash, S: BuildHasher> Interner<T, S> {
    /// Creates an empty interner with the given hasher and room for `n` values.
    pub fn with_capacity(n: usize, state: S) -> Interner<T, S> {
        Interner { index: Index::with_capacity(n), state, values: Vec::with_capacity(n) }
    }

    /// Adds a value that only the caller can find: [`Interner::number`] and [`Interner::find`] do not find it.
    #[inline]
    pub fn push(&mut self, value: T) -> u32 {
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    /// Returns the value's number, if it has a number.
    #[inline]
    pub fn find(&self, value: T) -> Option<u32> {
        self.index.find(self.state.hash_one(value), |n| self.values[n as usize] == value)
    }

    /// Returns the value's number. A new value receives the next number.
    #[inline]
    pub fn number(&mut self, value: T) -> u32 {
        let Interner { index, state, values } = self;
        let entry = index.find_or_insert(
            state.hash_one(value),
            values.len(),
            |n| values[n as usize] == value,
            |n| state.hash_one(values[n as usize]),
        );
        if let Found::New(_) = entry {
            values.push(value);
        }
        entry.number()
    }
}

/// A set of distinct sequences (texts, sets, stacks), numbered in the order of their first use. All sequences share one
/// array.
#[derive(Debug, Clone)]
pub struct Sequences<T, S> {
    index: Index,
    state: S,
    all: Vec<T>,
    ends: Vec<usize>,
}

impl<T, S: Default> Default for Sequences<T, S> {
    fn default() -> Sequences<T, S> {
        Sequences { index: Index::default(), state: S::default(), all: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash, S: BuildHasher> Sequences<T, S> {
    /// Returns the sequence's number. A new sequence receives the next number.
    #[inline]
    pub fn number(&mut self, sequence: &[T]) -> u32 {
        let Sequences { index, state, all, ends } = self;
        let get = |n: u32| &all[start(ends, n)..ends[n as usize]];
        let hash = state.hash_one(sequence);
        let entry = index.find_or_insert(hash, ends.len(), |n| get(n) == sequence, |n| state.hash_one(get(n)));
        if let Found::New(_) = entry {
            all.extend_from_slice(sequence);
            ends.push(all.len());
        }
        entry.number()
    }

    /// Returns the sequence with this number.
    pub fn get(&self, number: u32) -> &[T] {
        &self.all[start(&self.ends, number)..self.ends[number as usize]]
    }

    /// Returns the number of distinct sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all sequences end to end, and the end of each.
    pub fn into_parts(self) -> (Vec<T>, Vec<usize>) {
        (self.all, self.ends)
    }
}

fn start(ends: &[usize], number: u32) -> usize {
    number.checked_sub(1).map_or(0, |before| ends[before as usize])
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::{Interner, Sequences};

    #[test]
    fn equal_values_share_a_number() {
        let mut values = Interner::with_capacity(0, RandomState::new());
        assert_eq!([7u64, 8, 7, 9, 8].map(|v| values.number(v)), [0, 1, 0, 2, 1]);
        assert_eq!([9, 6].map(|v| values.find(v)), [Some(2), None]);
        assert_eq!(values.values, [7, 8, 9]);
    }

    #[test]
    fn equal_sequences_share_a_number() {
        let mut texts: Sequences<u8, RandomState> = Sequences::default();
        assert_eq!([&b""[..], b"a", b"", b"ab", b"a"].map(|t| texts.number(t)), [0, 1, 0, 2, 1]);
        assert_eq!([0, 1, 2].map(|n| texts.get(n)), [&b""[..], b"a", b"ab"]);
    }
}
