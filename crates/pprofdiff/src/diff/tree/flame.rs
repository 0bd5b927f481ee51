//! Computes flame graphs from the tree. From the root, each box is a place of the tree, and its sum is the difference
//! of two accumulated sums. From the leaf, each stack is followed up through its chains.

use std::sync::Arc;

use super::super::flame::{BoxSource, BoxSum, ChildBox, Widths};
use super::super::normalize::Scales;
use super::super::selection::Measure;
use super::super::{Frames, Pair};
use super::StackTree;
use pprofdiff_profile::columns::NONE;

/// The stacks of one sample type.
pub(in super::super) struct TreeStacks {
    tree: Arc<StackTree>,
    frames: Arc<Frames>,
    scales: Scales,
    /// The stacks that samples of this type have, in the tree's order.
    stacks: Vec<TreeStack>,
    /// By chain, the first stack that ends in this chain or in a later chain.
    first: Vec<u32>,
    /// The sum over all stacks before each stack, and the sum over all stacks.
    before: Vec<StackPrefix>,
}

struct TreeStack {
    /// The chain that contains its leaf.
    chain: u32,
    sides: (bool, bool),
    weight: Pair,
}

impl TreeStack {
    fn sum(&self, scales: Scales) -> BoxSum {
        let width = Widths::from_weight(scales.apply(self.weight));
        BoxSum { weight: self.weight, width, sides: self.sides, stacks: 1 }
    }
}

/// A sum over the first stacks. Differences of these sums are sums over ranges.
#[derive(Clone, Copy, Default)]
struct StackPrefix {
    weight: Pair,
    width: Widths,
    sides: [u32; 2],
}

impl StackPrefix {
    /// Adds a stack. Returns `None` if the rounding of scaled values overflows an int64.
    fn with(self, sum: &BoxSum) -> Option<StackPrefix> {
        let (w, by) = (self.width, sum.width);
        Some(StackPrefix {
            weight: Pair { base: self.weight.base + sum.weight.base, new: self.weight.new + sum.weight.new },
            width: Widths {
                max: w.max.checked_add(by.max)?,
                base: w.base.checked_add(by.base)?,
                new: w.new.checked_add(by.new)?,
                delta: w.delta.checked_add(by.delta)?,
            },
            sides: [self.sides[0] + u32::from(sum.sides.0), self.sides[1] + u32::from(sum.sides.1)],
        })
    }
}

impl TreeStacks {
    /// Collects the stacks of a measure. Returns `None` if there is no tree or if a sum overflows.
    pub(in super::super) fn from_measure(measure: &Measure) -> Option<TreeStacks> {
        let tree = measure.tree()?;
        let (sums, scales) = (tree.sums_of(measure.sample_type), measure.scales);
        let (mut stacks, mut first) = (Vec::with_capacity(tree.n_entries), Vec::with_capacity(tree.chains.len()));
        let mut before = Vec::with_capacity(tree.n_entries + 1);
        before.push(StackPrefix::default());
        for chain in 0..tree.chains.len() {
            first.push(stacks.len() as u32);
            if chain + 1 == tree.chains.len() {
                break;
            }
            let ending = sums.ending(chain);
            if !ending.is_empty() {
                let stack = TreeStack { chain: chain as u32, sides: ending.sides(), weight: ending.weight };
                before.push(before.last().copied().unwrap_or_default().with(&stack.sum(scales))?);
                stacks.push(stack);
            }
        }
        Some(TreeStacks { tree: tree.clone(), frames: measure.frames().clone(), scales, stacks, first, before })
    }

    pub(in super::super) fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    fn of_range(&self, from: u32, to: u32) -> BoxSum {
        let (a, b) = (&self.before[from as usize], &self.before[to as usize]);
        BoxSum {
            weight: Pair { base: b.weight.base - a.weight.base, new: b.weight.new - a.weight.new },
            width: Widths {
                max: b.width.max - a.width.max,
                base: b.width.base - a.width.base,
                new: b.width.new - a.width.new,
                delta: b.width.delta - a.width.delta,
            },
            sides: (b.sides[0] > a.sides[0], b.sides[1] > a.sides[1]),
            stacks: (to - from) as usize,
        }
    }

    /// Returns the boxes of a flame graph from the root.
    pub(in super::super) fn down(&self) -> Down<'_> {
        Down { stacks: self }
    }

    /// Returns the boxes of a flame graph from the leaf.
    pub(in super::super) fn up(&self) -> Up<'_> {
        let chains = &self.tree.chains;
        let row = |(i, stack): (usize, &TreeStack)| StackCursor {
            stack: i as u32,
            chain: stack.chain,
            place: chains[stack.chain as usize + 1].start - 1,
        };
        let rows = self.stacks.iter().enumerate().map(row).collect();
        Up { stacks: self, rows, keyed: Vec::new() }
    }
}

/// Boxes from the root. Each box is a chain and a place in it, or [`NONE`] for the root.
pub(in super::super) struct Down<'s> {
    stacks: &'s TreeStacks,
}

impl Down<'_> {
    fn part_of(&self, chain: u32, place: u32) -> ChildBox<(u32, u32)> {
        let end = self.stacks.tree.chains[chain as usize].end;
        let sum = self.stacks.of_range(self.stacks.first[chain as usize], self.stacks.first[end as usize]);
        ChildBox { frame: self.stacks.tree.steps[place as usize].frame(), position: (chain, place), sum: Some(sum) }
    }
}

impl BoxSource for Down<'_> {
    type Position = (u32, u32);

    fn all(&mut self) -> (Self::Position, BoxSum) {
        ((NONE, NONE), self.stacks.of_range(0, self.stacks.stacks.len() as u32))
    }

    fn part(
        &mut self,
        _: usize,
        &(chain, place): &Self::Position,
        mut f: impl FnMut(ChildBox<Self::Position>),
    ) -> Pair {
        let chains = &self.stacks.tree.chains;
        let (mut child, end, mut flat) = (0, chains.len() as u32 - 1, Pair::default());
        let end = match chain {
            NONE => end,
            chain if place + 1 < chains[chain as usize + 1].start => {
                let frame = self.stacks.tree.steps[place as usize + 1].frame();
                f(ChildBox { frame, position: (chain, place + 1), sum: None });
                return flat;
            }
            chain => {
                let first = &self.stacks.first;
                flat = self.stacks.of_range(first[chain as usize], first[chain as usize + 1]).weight;
                child = chain + 1;
                chains[chain as usize].end
            }
        };
        // Siblings are sorted by their frames' numbers.
        while child < end {
            let part = self.part_of(child, chains[child as usize].start);
            if part.sum.is_some_and(|sum| sum.stacks > 0) {
                f(part);
            }
            child = chains[child as usize].end;
        }
        flat
    }
}

/// A stack, with the next place on its path from the leaf to the root. Above the root, the place is [`NONE`].
#[derive(Clone, Copy)]
struct StackCursor {
    stack: u32,
    chain: u32,
    place: u32,
}

/// Boxes from the leaf. Each box is a range of rows.
pub(in super::super) struct Up<'s> {
    stacks: &'s TreeStacks,
    rows: Vec<StackCursor>,
    /// A buffer that is reused between calls.
    keyed: Vec<(u32, StackCursor)>,
}

impl BoxSource for Up<'_> {
    type Position = std::ops::Range<usize>;

    fn all(&mut self) -> (Self::Position, BoxSum) {
        (0..self.rows.len(), self.stacks.of_range(0, self.rows.len() as u32))
    }

    fn part(&mut self, depth: usize, position: &Self::Position, mut f: impl FnMut(ChildBox<Self::Position>)) -> Pair {
        let Up { stacks, rows, keyed } = self;
        let tree = &stacks.tree;
        let rows = &mut rows[position.clone()];
        keyed.clear();
        keyed.extend(rows.iter().map(|row| match row.place {
            NONE => (NONE, *row),
            place => {
                let chain = &tree.chains[row.chain as usize];
                let (chain, above) = match (place > chain.start, chain.parent) {
                    (true, _) => (row.chain, place - 1),
                    (false, NONE) => (NONE, NONE),
                    (false, parent) => (parent, tree.chains[parent as usize + 1].start - 1),
                };
                (tree.steps[place as usize].frame(), StackCursor { stack: row.stack, chain, place: above })
            }
        }));
        if keyed.iter().any(|k| k.0 != keyed[0].0) {
            keyed.sort_unstable_by_key(|k| k.0);
        }
        rows.iter_mut().zip(keyed.iter()).for_each(|(row, keyed)| *row = keyed.1);
        let mut flat = Pair::default();
        let mut start = position.start;
        for group in keyed.chunk_by(|a, b| a.0 == b.0) {
            let sum = || {
                let mut sum = BoxSum::default();
                group.iter().for_each(|(_, row)| sum.add(stacks.stacks[row.stack as usize].sum(stacks.scales)));
                sum
            };
            let end = start + group.len();
            let is_all = depth > 0 && group.len() == position.len();
            match group[0].0 {
                NONE => flat = sum().weight,
                frame => f(ChildBox { frame, position: start..end, sum: (!is_all).then(sum) }),
            }
            start = end;
        }
        flat
    }
}
