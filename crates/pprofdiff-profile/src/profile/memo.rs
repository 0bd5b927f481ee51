//! Maps the records of a table to numbers. [`Memo`] stores the caller's numbers; [`Numbers`] assigns them on first use.
//!
//! A table may be much larger than the part that samples use (ten million strings in twenty megabytes). The vector is
//! therefore allocated as zeros, so the operating system allocates no memory for unused pages. A reset costs time only
//! for the records that were used.

use super::NONE;

/// A map from record indexes to numbers below [`NONE`]. Initially, no record has a number.
#[derive(Default)]
pub struct Memo {
    /// The number plus one; 0 for a record without a number.
    numbers_plus_one: Vec<u32>,
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

impl Memo {
    /// Creates an empty map for `n` records.
    pub fn new(n: usize) -> Memo {
        Memo { numbers_plus_one: vec![0; n] }
    }

    /// Returns the record's number, or `NONE`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u32 {
        self.numbers_plus_one[index].wrapping_sub(1)
    }

    /// Sets the record's number.
    #[inline(always)]
    pub fn set(&mut self, index: usize, number: u32) {
        self.numbers_plus_one[index] = number + 1;
    }
}

/// A map from record indexes to consecutive numbers, in the order of first use, from 0.
#[derive(Default)]
pub struct Numbers {
    memo: Memo,
    /// The indexes of the numbered records, in the order of their numbers.
    pub used: Vec<u32>,
}

impl Numbers {
    /// Clears the map for a table of `n` records.
    pub fn reset(&mut self, n: usize) {
        if n > self.memo.numbers_plus_one.len() {
            self.memo = Memo::new(n);
        } else {
            self.used.iter().for_each(|&index| self.memo.numbers_plus_one[index as usize] = 0);
        }
        self.used.clear();
    }

    /// Returns the record's number. A new record receives the next number.
    #[inline]
    pub fn get(&mut self, index: u32) -> u64 {
        let number = match self.memo.get(index as usize) {
            NONE => {
                let number = self.used.len() as u32;
                self.memo.set(index as usize, number);
                self.used.push(index);
                number
            }
            number => number,
        };
        u64::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn reset_restarts_numbering_for_tables_of_any_size() {
        let mut numbers = Numbers::default();
        for n in [3, 2, 5, 5] {
            numbers.reset(n);
            let last = n as u32 - 1;
            assert_eq!([last, 0, last].map(|i| numbers.get(i)), [0, 1, 0]);
            assert_eq!(numbers.used, [last, 0]);
        }
    }
}
