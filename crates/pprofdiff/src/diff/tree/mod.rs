//! The tree of all stacks of a selection. It is built in one pass over both sides, and several views are computed from
//! it.
//!
//! ```text
//! samples of all inputs -> entries (distinct stacks, with the values of all sample types)   build.rs
//!     -> ordered by their frames, root first -> chains, in depth-first order                chains.rs
//! a sample type: sums before each entry -> the sum beneath a chain is a difference          sums.rs
//!     -> frames, edges, calls of a graph, flame graphs                                       views.rs, flame.rs
//! ```
//!
//! A **place** is a node of the tree. Places are numbered in depth-first order.
//!
//! A **chain** is a path of places without a branch: every stack that reaches its first place also reaches its last
//! place. Only at its last place can stacks end, or continue with different callees. A stack therefore adds at most two
//! chains, however deep it is. The part of the tree beneath a chain is a range of chains and a range of entries.
//!
//! An **entry** is a distinct sequence of frames, each with a flag that tells if the frame is inlined. Entries that
//! differ only in these flags are neighbours, and they are the same stack.
//!
//! A recursive frame or edge must count only once per stack. The tree stores this for all sample types: a place counts
//! for its frame if no caller above it has the same frame, and for its edge if the edge does not occur above it. A view
//! is then one pass over the places of the tree, without sets, stamps or hashes.
//!
//! The tree is built only if more than one view is requested ([`Selection::build_tree`]). A single table is faster
//! without it.
//!
//! `explain` does not use the tree, but reads the samples again. Its frames have canonical names and its stacks are
//! truncated. Its values are kept per run, with the number of events and the variance of each sample.

mod build;
mod chains;
mod flame;
mod growing;
mod sums;
mod views;

use std::sync::Arc;

use super::selection::{Measure, Selection};
pub(super) use flame::TreeStacks;
use pprofdiff_profile::columns::Total;
use sums::TypeSums;

/// A frame's number, with a flag that tells if it is inlined into its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TreeStep(u32);

impl TreeStep {
    fn frame(self) -> u32 {
        self.0 >> 1
    }

    fn is_inlined(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The call that leads to a place: the number of its edge, with two flags. They tell if the edge and the frame occur
/// here for the first time on the path from the root.
#[derive(Clone, Copy)]
struct Arrival(u32);

impl Arrival {
    /// The edge number of places without an edge: at the root, and in a frame that calls itself.
    const NO_EDGE: u32 = u32::MAX >> 2;

    fn new(edge: u32, is_first_edge: bool, is_first_frame: bool) -> Arrival {
        Arrival(edge << 2 | u32::from(is_first_edge) << 1 | u32::from(is_first_frame))
    }

    fn edge(self) -> u32 {
        self.0 >> 2
    }

    fn is_first_edge(self) -> bool {
        self.0 & 2 != 0
    }

    fn is_first_frame(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A path without a branch. The list of chains has an additional last element, which only marks the end.
#[derive(Clone, Copy)]
struct Chain {
    /// Its first place. The chain ends before the first place of the next chain.
    start: u32,
    /// The chain that it branches off, or [`NONE`](pprofdiff_profile::columns::NONE).
    parent: u32,
    /// The first chain after all chains beneath it.
    end: u32,
    /// The first entry beneath it. Entries that end in this chain come before the entries of the next chain.
    entry: u32,
}

/// The tree of all stacks of a selection.
pub(super) struct StackTree {
    /// The frame of each place, in depth-first order.
    steps: Vec<TreeStep>,
    /// The call that leads to each place.
    arrivals: Vec<Arrival>,
    chains: Vec<Chain>,
    /// The (caller, callee) of each edge.
    edges: Vec<(u32, u32)>,
    /// The changes of places whose frame is inlined in some entries only: the place, an entry, and true if the frame is
    /// called (not inlined) from that entry on. In ascending order. The first change of a place is at its first entry.
    /// The steps of these places are marked as inlined.
    changes: Vec<(u32, u32, bool)>,
    n_entries: usize,
    /// The sums of each entry, by column. Columns are ordered by sample type. Each type has a column for the base, if
    /// there is one, and a column for the new side.
    values: Vec<i64>,
    /// The (column, entry) pairs of entries with samples whose sum is zero. In ascending order.
    cancelled: Vec<(u32, u32)>,
    /// By column, the sums over samples that pass the filters, including samples without frames.
    totals: Vec<Total>,
    is_two_sided: bool,
}

impl Selection {
    /// Builds the tree of all stacks, and computes all later views of this selection from it. This pays off if more
    /// than one view is requested, and costs about as much as the table of stacks. If the tree would exceed the memory
    /// limit, it is not built, and each view reads the samples itself.
    pub fn build_tree(&self) {
        self.keep_tree(|| StackTree::from_selection(self));
    }

    /// Returns true if the tree of all stacks was built.
    pub fn has_tree(&self) -> bool {
        self.tree().is_some()
    }
}

impl Measure {
    /// Returns the tree, if it was built.
    pub(super) fn tree(&self) -> Option<&Arc<StackTree>> {
        self.selection.tree()
    }
}

impl StackTree {
    /// Returns the column of one side of a sample type, or `None` if the selection does not have this side.
    fn column(&self, sample_type: usize, base: bool) -> Option<usize> {
        match self.is_two_sided {
            true => Some(2 * sample_type + usize::from(!base)),
            false => (!base).then_some(sample_type),
        }
    }

    /// Returns the places of a chain.
    fn places(&self, chain: usize) -> std::ops::Range<usize> {
        self.chains[chain].start as usize..self.chains[chain + 1].start as usize
    }

    /// Returns the sums over one side's samples that pass the filters.
    pub(super) fn total(&self, sample_type: usize, base: bool) -> Total {
        self.column(sample_type, base).map_or_else(Total::default, |column| self.totals[column])
    }
}
