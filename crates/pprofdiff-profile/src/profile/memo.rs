//! Numbers for the records of a table, each found when it is first asked for.
//!
//! A table may be much larger than what samples use of it (ten million strings in twenty megabytes). So what is never
//! set stays a page of zeros that the system has not allocated yet, and a reset costs what was used.

use super::NONE;

/// A number below [`NONE`] for some of the records.
#[derive(Default)]
pub struct Memo {
    /// The number plus one.
    of: Vec<u32>,
}

impl Memo {
    /// Without any number, for `n` records.
    pub fn new(n: usize) -> Memo {
        Memo { of: vec![0; n] }
    }

    /// The record's number, or `NONE`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u32 {
        self.of[index].wrapping_sub(1)
    }

    /// Gives a record its number.
    #[inline(always)]
    pub fn set(&mut self, index: usize, number: u32) {
        self.of[index] = number + 1;
    }
}

/// Numbers in the order of first use, from 0.
#[derive(Default)]
pub struct Numbers {
    memo: Memo,
    /// The record of each number.
    pub used: Vec<u32>,
}

impl Numbers {
    /// Resets it for a table of `n` records.
    pub fn reset(&mut self, n: usize) {
        if n > self.memo.of.len() {
            self.memo = Memo::new(n);
        } else {
            self.used.iter().for_each(|&index| self.memo.of[index as usize] = 0);
        }
        self.used.clear();
    }

    /// The record's number.
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
    fn numbers_begin_anew_with_tables_of_any_size() {
        let mut numbers = Numbers::default();
        for n in [3, 2, 5, 5] {
            numbers.reset(n);
            let last = n as u32 - 1;
            assert_eq!([last, 0, last].map(|i| numbers.get(i)), [0, 1, 0]);
            assert_eq!(numbers.used, [last, 0]);
        }
    }
}
