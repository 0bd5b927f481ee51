//! One sample type of a tree: sums before each entry, so that those of any range of entries are a difference.

use super::super::Pair;
use super::{Chain, Tree};

/// What a range of entries has of a sample type.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub weight: Pair,
    /// How many entries the base, and the new side, has.
    present: [u32; 2],
}

impl Sum {
    /// Which sides have any of it.
    pub fn sides(self) -> (bool, bool) {
        (self.present[0] > 0, self.present[1] > 0)
    }

    /// True if no sample with a value is of it.
    pub fn is_empty(self) -> bool {
        self.present == [0, 0]
    }
}

/// A tree, looked at for one sample type.
pub(super) struct TypeSums<'t> {
    pub tree: &'t Tree,
    /// Of all entries before each, and of all. No part of the samples can overflow where all of them do not.
    before: Vec<Sum>,
}

impl Tree {
    pub(super) fn sums_of(&self, sample_type: usize) -> TypeSums<'_> {
        let mut before = vec![Sum::default(); self.n_entries + 1];
        for (side, base) in [true, false].into_iter().enumerate() {
            let Some(column) = self.column(sample_type, base) else { continue };
            let values = &self.values[column * self.n_entries..][..self.n_entries];
            let first = self.cancelled.partition_point(|c| c.0 < column as u32);
            let mut cancelled = self.cancelled[first..].iter().take_while(|c| c.0 == column as u32).peekable();
            let (mut weight, mut present) = (0i64, 0);
            for (i, (&value, after)) in values.iter().zip(&mut before[1..]).enumerate() {
                weight += value;
                present += u32::from(value != 0 || cancelled.next_if(|c| c.1 == i as u32).is_some());
                *(if base { &mut after.weight.base } else { &mut after.weight.new }) = weight;
                after.present[side] = present;
            }
        }
        TypeSums { tree: self, before }
    }
}

impl TypeSums<'_> {
    /// What these entries have.
    #[inline(always)]
    pub(super) fn sum(&self, from: u32, to: u32) -> Sum {
        let (a, b) = (&self.before[from as usize], &self.before[to as usize]);
        Sum {
            weight: Pair { base: b.weight.base - a.weight.base, new: b.weight.new - a.weight.new },
            present: [b.present[0] - a.present[0], b.present[1] - a.present[1]],
        }
    }

    /// What is beneath a chain: all stacks that run through its frames.
    #[inline(always)]
    pub(super) fn beneath(&self, chain: &Chain) -> Sum {
        self.sum(chain.entry, self.tree.chains[chain.end as usize].entry)
    }

    /// What ends in a chain.
    #[inline(always)]
    pub(super) fn own(&self, chain: usize) -> Sum {
        self.sum(self.tree.chains[chain].entry, self.tree.chains[chain + 1].entry)
    }

    /// Calls `f` with each chain that samples of this type run through, in depth-first order.
    #[inline(always)]
    pub(super) fn for_each_chain(&self, mut f: impl FnMut(usize, Sum)) {
        let mut i = 0;
        while i + 1 < self.tree.chains.len() {
            let chain = &self.tree.chains[i];
            let sum = self.beneath(chain);
            if sum.is_empty() {
                // Nor anything below it.
                i = chain.end as usize;
                continue;
            }
            f(i, sum);
            i += 1;
        }
    }
}
