//! The sums of one sample type, accumulated over the entries of a tree. The sum of any range of entries is then the
//! difference of two of them.

use super::super::Pair;
use super::{Chain, StackTree};

/// The sums of a range of entries, for one sample type.
#[derive(Clone, Copy, Default)]
pub(super) struct EntrySum {
    pub weight: Pair,
    /// The number of these entries that exist in the base and on the new side.
    present: [u32; 2],
}

impl EntrySum {
    /// Returns which sides have samples in the range, as (base, new).
    pub fn sides(self) -> (bool, bool) {
        (self.present[0] > 0, self.present[1] > 0)
    }

    /// Returns true if no sample in the range has a value.
    pub fn is_empty(self) -> bool {
        self.present == [0, 0]
    }
}

/// A view of a tree for one sample type.
pub(super) struct TypeSums<'t> {
    pub tree: &'t StackTree,
    /// The sums of all entries before each entry, and the sum of all entries. They cannot overflow, because the sums
    /// over all samples fit.
    before: Vec<EntrySum>,
}

impl StackTree {
    pub(super) fn sums_of(&self, sample_type: usize) -> TypeSums<'_> {
        let mut before = vec![EntrySum::default(); self.n_entries + 1];
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
    /// Returns the sums of the entries from `from` to `to`.
    #[inline(always)]
    pub(super) fn sum(&self, from: u32, to: u32) -> EntrySum {
        let (a, b) = (&self.before[from as usize], &self.before[to as usize]);
        EntrySum {
            weight: Pair { base: b.weight.base - a.weight.base, new: b.weight.new - a.weight.new },
            present: [b.present[0] - a.present[0], b.present[1] - a.present[1]],
        }
    }

    /// Returns the sums of all stacks that pass through a chain.
    #[inline(always)]
    pub(super) fn beneath(&self, chain: &Chain) -> EntrySum {
        self.sum(chain.entry, self.tree.chains[chain.end as usize].entry)
    }

    /// Returns the sums of the stacks that end in a chain.
    #[inline(always)]
    pub(super) fn ending(&self, chain: usize) -> EntrySum {
        self.sum(self.tree.chains[chain].entry, self.tree.chains[chain + 1].entry)
    }

    /// Calls `f` with each chain that samples of this type pass through, in depth-first order.
    #[inline(always)]
    pub(super) fn for_each_chain(&self, mut f: impl FnMut(usize, EntrySum)) {
        let mut i = 0;
        while i + 1 < self.tree.chains.len() {
            let chain = &self.tree.chains[i];
            let sum = self.beneath(chain);
            if sum.is_empty() {
                // Chains beneath it are empty as well.
                i = chain.end as usize;
                continue;
            }
            f(i, sum);
            i += 1;
        }
    }
}
