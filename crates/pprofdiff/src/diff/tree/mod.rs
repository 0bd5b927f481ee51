//! The tree of stacks of a selection: what several views of it are reckoned from, built in one walk of both sides.
//!
//! ```text
//! samples of all inputs -> entries (distinct stacks, with the values of all sample types)   build.rs
//!     -> ordered by their frames, root first -> chains, in depth-first order                chains.rs
//! a sample type: sums before each entry -> the sum beneath a chain is a difference          sums.rs
//!     -> frames, edges, calls of a graph, flame graphs                                       views.rs, flame.rs
//! ```
//!
//! A **chain** is a run of frames that all stacks which have its first frame also have its last of; only the last has
//! several callees, or is where stacks end. So there are at most two chains a stack, however deep stacks are, and what
//! lies beneath one is a range of chains and a range of entries. An **entry** is a distinct sequence of frames together
//! with which of them are inlined; entries that differ in the latter alone are neighbours, and one stack.
//!
//! "Once a stack" is worked out once, for all sample types: a frame counts where no caller on its way is the same frame,
//! an edge where it has not occurred above. A view is then one pass over the frames of the tree, without a set, a stamp or
//! a hash.
//!
//! It is built where more than one view is asked ([`Selection::build_tree`]); a table alone is cheaper without.
//!
//! `explain` does not use it, but reads the samples once more: its frames are canonical and cut, and its values are
//! those of runs, with the events and the variance of each sample.

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

/// A frame's number, and whether it is inlined into its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Step(u32);

impl Step {
    fn frame(self) -> u32 {
        self.0 >> 1
    }

    fn is_inlined(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The call that leads to a place of the tree: the edge's number, whether it occurs here first on the way from the root,
/// and whether the frame does.
#[derive(Clone, Copy)]
struct Arrival(u32);

impl Arrival {
    /// Of places without an edge: at the root, and where a frame calls itself.
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

/// A run of frames without a branch. The last of all is no chain, but where the others end.
#[derive(Clone, Copy)]
struct Chain {
    /// Where its frames begin; they end where the next chain's begin.
    start: u32,
    /// The chain that it branches off, or [`NONE`](pprofdiff_profile::columns::NONE).
    parent: u32,
    /// The first chain behind all that are beneath it.
    end: u32,
    /// The first entry beneath it. Those that end in it come before those of the next chain.
    entry: u32,
}

/// All stacks of a selection.
pub(super) struct Tree {
    /// Each place's frame, in depth-first order.
    steps: Vec<Step>,
    /// How each place is reached.
    arrivals: Vec<Arrival>,
    chains: Vec<Chain>,
    /// (caller, callee) of each edge.
    edges: Vec<(u32, u32)>,
    /// Places whose frame is inlined in some entries and not in others: the place, an entry, and whether it is called
    /// from that entry on. In ascending order; the first of each place is that of its first entry. Their steps say
    /// inlined.
    changes: Vec<(u32, u32, bool)>,
    n_entries: usize,
    /// By column: the sample type, and for each the base if there is one, then new. The sums of each entry, in order.
    values: Vec<i64>,
    /// (column, entry) where samples have values and the sum is zero. In ascending order.
    cancelled: Vec<(u32, u32)>,
    /// By column: the sums of what filters leave, also of samples without frames.
    totals: Vec<Total>,
    is_two_sided: bool,
}

impl Selection {
    /// Builds the tree of all stacks, from which all views of this selection are then reckoned: worth it where more than one
    /// is asked. A pass over the samples, like one of the table of stacks. Where it would take more memory than a view
    /// may, there is none, and each view walks the samples for itself.
    pub fn build_tree(&self) {
        self.keep_tree(|| Tree::from_selection(self));
    }

    /// True if there is a tree of all stacks.
    pub fn has_tree(&self) -> bool {
        self.tree().is_some()
    }
}

impl Measure {
    /// The tree, if it is there.
    pub(super) fn tree(&self) -> Option<&Arc<Tree>> {
        self.selection.tree()
    }
}

impl Tree {
    /// The column of one side of a sample type; `None` if there is no such side.
    fn column(&self, sample_type: usize, base: bool) -> Option<usize> {
        match self.is_two_sided {
            true => Some(2 * sample_type + usize::from(!base)),
            false => (!base).then_some(sample_type),
        }
    }

    /// The frames of a chain: their places.
    fn places(&self, chain: usize) -> std::ops::Range<usize> {
        self.chains[chain].start as usize..self.chains[chain + 1].start as usize
    }

    /// The sums of what filters leave of one side.
    pub(super) fn total(&self, sample_type: usize, base: bool) -> Total {
        self.column(sample_type, base).map_or_else(Total::default, |column| self.totals[column])
    }
}
