//! Distinct things by number: the one find-or-insert that every table of distinct strings, frames, labels, stacks and
//! samples is made with.
//!
//! A hash only finds candidates; equality is by content. Hashers are keyed, so collisions can't be prepared.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Numbers of things that are kept elsewhere, found by their hash.
#[derive(Debug, Clone, Default)]
pub struct Index {
    numbers: HashTable<u32>,
}

impl Index {
    /// With room for `n` things. Pages that are not used cost nothing.
    pub fn with_capacity(n: usize) -> Index {
        Index { numbers: HashTable::with_capacity(n) }
    }

    /// The number of the thing that has this hash and is the `same`. If there is none, it gets the number `next`, and
    /// the caller keeps it under that. `hash_of` gives the hash of a thing that has a number.
    #[inline(always)]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        next: usize,
        same: impl Fn(u32) -> bool,
        hash_of: impl Fn(u32) -> u64,
    ) -> Found {
        match self.numbers.entry(hash, |&n| same(n), |&n| hash_of(n)) {
            Entry::Occupied(known) => Found::Known(*known.get()),
            Entry::Vacant(vacant) => {
                let next = next as u32;
                vacant.insert(next);
                Found::New(next)
            }
        }
    }

    /// Gives a thing a number, which is known to have none yet.
    pub fn insert_new(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        self.numbers.insert_unique(hash, number, |&n| hash_of(n));
    }

    /// Forgets all numbers, and keeps the memory.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }

    /// Makes room for `n` more things.
    pub fn reserve(&mut self, n: usize, hash_of: impl Fn(u32) -> u64) {
        self.numbers.reserve(n, |&n| hash_of(n));
    }

    /// The number of the thing that has this hash and is the `same`.
    #[inline]
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        self.numbers.find(hash, |&n| same(n)).copied()
    }
}

/// What [`Index::find_or_insert`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The thing has this number.
    Known(u32),
    /// It has it from now on.
    New(u32),
}

impl Found {
    /// The number.
    #[inline(always)]
    pub fn number(self) -> u32 {
        match self {
            Found::Known(number) | Found::New(number) => number,
        }
    }
}

/// Distinct values by number, in the order in which they first came.
#[derive(Debug, Clone)]
pub struct Interner<T, S> {
    index: Index,
    state: S,
    /// The values, by their numbers.
    pub values: Vec<T>,
}

impl<T, S: Default> Default for Interner<T, S> {
    fn default() -> Interner<T, S> {
        Interner { index: Index::default(), state: S::default(), values: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash, S: BuildHasher> Interner<T, S> {
    /// Without values, with the caller's hasher and room for `n`.
    pub fn with_capacity(n: usize, state: S) -> Interner<T, S> {
        Interner { index: Index::with_capacity(n), state, values: Vec::with_capacity(n) }
    }

    /// A number for a value that the caller finds by itself; it is not found by [`Interner::number`].
    #[inline]
    pub fn push(&mut self, value: T) -> u32 {
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    /// The value's number, if it has one.
    #[inline]
    pub fn find(&self, value: T) -> Option<u32> {
        self.index.find(self.state.hash_one(value), |n| self.values[n as usize] == value)
    }

    /// The value's number; a new one if it has none yet.
    #[inline]
    pub fn number(&mut self, value: T) -> u32 {
        let Interner { index, state, values } = self;
        let found = index.find_or_insert(
            state.hash_one(value),
            values.len(),
            |n| values[n as usize] == value,
            |n| state.hash_one(values[n as usize]),
        );
        if let Found::New(_) = found {
            values.push(value);
        }
        found.number()
    }
}

/// Sequences by number, end to end in one array: texts, sets, stacks.
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
    /// The sequence's number; a new one if it has none yet.
    #[inline]
    pub fn number(&mut self, sequence: &[T]) -> u32 {
        let Sequences { index, state, all, ends } = self;
        let of = |n: u32| &all[start(ends, n)..ends[n as usize]];
        let hash = state.hash_one(sequence);
        let found = index.find_or_insert(hash, ends.len(), |n| of(n) == sequence, |n| state.hash_one(of(n)));
        if let Found::New(_) = found {
            all.extend_from_slice(sequence);
            ends.push(all.len());
        }
        found.number()
    }

    /// A sequence by its number.
    pub fn get(&self, number: u32) -> &[T] {
        &self.all[start(&self.ends, number)..self.ends[number as usize]]
    }

    /// Number of distinct sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All sequences end to end, and where each ends.
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
    fn values_have_one_number_each() {
        let mut values = Interner::with_capacity(0, RandomState::new());
        assert_eq!([7u64, 8, 7, 9, 8].map(|v| values.number(v)), [0, 1, 0, 2, 1]);
        assert_eq!([9, 6].map(|v| values.find(v)), [Some(2), None]);
        assert_eq!(values.values, [7, 8, 9]);
    }

    #[test]
    fn sequences_have_one_number_each() {
        let mut texts: Sequences<u8, RandomState> = Sequences::default();
        assert_eq!([&b""[..], b"a", b"", b"ab", b"a"].map(|t| texts.number(t)), [0, 1, 0, 2, 1]);
        assert_eq!([0, 1, 2].map(|n| texts.get(n)), [&b""[..], b"a", b"ab"]);
    }
}
