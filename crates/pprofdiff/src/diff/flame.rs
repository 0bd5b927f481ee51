//! The flame graph. The call trees of both sides are merged into one tree, which shows removed code as well as added
//! code.
//!
//! Stacks of both sides are matched first ([`Stacks`]). The tree is then built from the root down, widest node first:
//!
//! ```text
//! heap <- the root, which has all stacks
//! while there are nodes in the heap, and the tree is not full:
//!     take the widest, keep it
//!     split its stacks by their next frame; each part becomes a node in the heap, unless it is too thin
//! nodes that remain in the heap are pruned: they go to the `(pruned)` child of their parent
//! ```
//!
//! A stack is visited once for each of its frames that is kept. The time is therefore linear in the size of the
//! samples, and invisible parts cost almost nothing. Memory holds the stacks, and at most two nodes per kept frame: the
//! frame itself, and its `(pruned)` child.
//!
//! A width is a sum over the stacks beneath a node, and no stack has a negative width. A parent is therefore never
//! narrower than its children together, for each kind of width. (The difference of two cum values does not have this
//! property, so a subtracted flame graph cannot be drawn.) For the same reason, all nodes beneath a thin node are thin,
//! and pruning the node removes only invisible boxes.
//!
//! The inverted graph is built from the stacks as well. Inverting a pruned graph would lose almost everything.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::normalize::Scales;
use super::stacks::Stacks;
use super::tree::TreeStacks;
use super::{Frames, Measure, Pair, Status, Summary};
use pprofdiff_profile::cancellation::Checkpointer;

/// The direction of a flame graph, and its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FlameOptions {
    /// True to grow from the leaf to its callers, false to grow from the root to its callees.
    pub inverted: bool,
    /// The share of the whole below which a node is too thin to be seen. With 0, all nodes are kept that fit into
    /// `max_frames`.
    pub min_width: f64,
    /// The maximum number of frames. The widest frames are kept.
    pub max_frames: usize,
}

impl FlameOptions {
    /// Sets whether the graph grows from the leaf to its callers.
    #[must_use]
    pub fn with_inverted(mut self, inverted: bool) -> Self {
        self.inverted = inverted;
        self
    }

    /// Sets the minimum share of the whole for a node.
    #[must_use]
    pub fn with_min_width(mut self, min_width: f64) -> Self {
        self.min_width = min_width;
        self
    }

    /// Sets the maximum number of frames.
    #[must_use]
    pub fn with_max_frames(mut self, max_frames: usize) -> Self {
        self.max_frames = max_frames;
        self
    }
}

impl Default for FlameOptions {
    /// Returns a minimum width of half a pixel on a screen of 2,000 pixels after zooming in ten times, and a number of
    /// frames that a browser opens without delay.
    fn default() -> FlameOptions {
        FlameOptions { inverted: false, min_width: 0.5 / 20_000.0, max_frames: 50_000 }
    }
}

/// The possible widths of a node: sums over the stacks beneath it, where each stack contributes at least 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Widths {
    /// The sum of the larger side of each stack. Removed code is shown as wide as it was.
    pub max: i64,
    /// The sum of the base's magnitudes.
    pub base: i64,
    /// The sum of the new side's magnitudes.
    pub new: i64,
    /// The sum of the magnitudes of changes. Cost that moved between stacks counts twice, and unchanged cost does not
    /// count.
    pub delta: i64,
}

impl Widths {
    pub(super) fn from_weight(weight: Pair) -> Widths {
        let magnitude = |v: i64| v.saturating_abs();
        let (base, new) = (magnitude(weight.base), magnitude(weight.new));
        Widths { max: base.max(new), base, new, delta: magnitude(weight.delta()) }
    }

    /// Adds widths. Only the rounding of scaled values can saturate, because the magnitudes of both sides together fit
    /// an int64.
    fn add(&mut self, other: Widths) {
        let sum = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        sum(&mut self.max, other.max);
        sum(&mut self.base, other.base);
        sum(&mut self.new, other.new);
        sum(&mut self.delta, other.delta);
    }

    /// Returns the share of the whole, as the maximum over the kinds of width.
    fn share(self, whole: Widths) -> f64 {
        let part = |part_width: i64, whole: i64| if whole == 0 { 0.0 } else { part_width as f64 / whole as f64 };
        let [a, b] = [part(self.max, whole.max), part(self.base, whole.base)];
        let [c, d] = [part(self.new, whole.new), part(self.delta, whole.delta)];
        a.max(b).max(c).max(d)
    }
}

/// The content of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameFrame {
    /// All stacks.
    Root,
    /// A frame, as an index in [`Flame::frames`].
    Frame(u32),
    /// All siblings that are too thin to be seen.
    Pruned,
}

/// A box of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlameNode {
    /// The content of the box.
    pub frame: FlameFrame,
    /// The number of boxes above it, 0 for the root.
    pub depth: u32,
    /// The sum of the stacks beneath the box. If a frame recurs in a stack, each of its boxes includes the stack.
    pub cum: Pair,
    /// The sum of the stacks that end in the box.
    pub flat: Pair,
    /// The possible widths of the box.
    pub width: Widths,
    /// Flags for the existence of the box in the base and on the new side.
    pub sides: (bool, bool),
}

impl FlameNode {
    /// Returns whether both sides have the box, and whether its values differ.
    pub fn status(&self) -> Status {
        Status::new(self.sides.0, self.sides.1, self.cum.delta() == 0 && self.width.delta == 0)
    }
}

/// The totals of a graph's `(pruned)` boxes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// The number of stacks that end in a pruned box.
    pub stacks: usize,
    /// The total number of stacks.
    pub of_stacks: usize,
    /// The sum of the widths of all pruned boxes.
    pub width: Widths,
    /// The largest share of the whole that a single pruned box has.
    pub widest: f64,
}

/// A flame graph of two sides, or of a single profile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Flame {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The frames of the boxes.
    pub frames: Arc<Frames>,
    /// The boxes, depth first. Siblings are sorted by `width.max` descending, then by name, with `(pruned)` last.
    pub nodes: Vec<FlameNode>,
    /// The totals of the pruned boxes.
    pub pruned: Pruned,
    /// True if the graph grows from the leaf to its callers.
    pub inverted: bool,
}

impl Measure {
    /// Builds the flame graph. A sample without frames has no stack, so the graph does not include it.
    pub fn flame(&self, options: &FlameOptions) -> Flame {
        self.matched_stacks().flame(options)
    }

    /// Returns the stacks that flame graphs are built from, for callers that build several graphs.
    pub fn matched_stacks(&self) -> MatchedStacks {
        let source = match TreeStacks::from_measure(self) {
            Some(stacks) => StackSource::Tree(stacks),
            None => {
                // Uses exact values, because a node's sum must be scaled once, like all values of a table. Adding
                // scaled stacks would add rounding errors.
                let exact = Measure { scales: Scales::ONE, ..self.clone() };
                StackSource::Stacks(exact.stacks_as_found(false))
            }
        };
        MatchedStacks { source, summary: self.summary().clone(), scales: self.scales }
    }
}

/// The matched stacks of both sides in no particular order, ready to build flame graphs.
pub struct MatchedStacks {
    source: StackSource,
    summary: Arc<Summary>,
    scales: Scales,
}

impl std::fmt::Debug for MatchedStacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MatchedStacks").finish_non_exhaustive()
    }
}

enum StackSource {
    Stacks(Stacks),
    Tree(TreeStacks),
}

impl MatchedStacks {
    /// Builds a flame graph.
    pub fn flame(&self, options: &FlameOptions) -> Flame {
        let growing = match &self.source {
            StackSource::Stacks(stacks) => grow_stacks(stacks, self.scales, options),
            StackSource::Tree(tree) if options.inverted => grow(&mut tree.up(), options),
            StackSource::Tree(tree) => grow(&mut tree.down(), options),
        };
        let frames = match &self.source {
            StackSource::Stacks(stacks) => &stacks.frames,
            StackSource::Tree(tree) => tree.frames(),
        };
        growing.finish(options.inverted, self.summary.clone(), frames.clone(), self.scales)
    }
}

impl Stacks {
    /// Builds a flame graph of these stacks. With a scale, each stack is already rounded, so sums can differ from
    /// [`Measure::flame`] by the rounding.
    pub fn flame(&self, options: &FlameOptions) -> Flame {
        let growing = grow_stacks(self, Scales::ONE, options);
        growing.finish(options.inverted, self.summary.clone(), self.frames.clone(), Scales::ONE)
    }
}

/// Builds the tree of a list of stacks.
fn grow_stacks(stacks: &Stacks, scales: Scales, options: &FlameOptions) -> Grown {
    let rows = (0..stacks.rows.len() as u32).collect();
    grow(&mut StackBoxes { stacks, scales, inverted: options.inverted, rows, keys: Vec::new() }, options)
}

/// The source of a flame graph's boxes.
pub(super) trait BoxSource {
    /// The position of a box, which identifies its stacks.
    type Position: Clone;

    /// Returns the root box with all stacks.
    fn all(&mut self) -> (Self::Position, BoxSum);

    /// Splits a box's stacks by their next frame. Calls `f` with each part, in the order of the frames' numbers, and
    /// returns the sum of the stacks that end in the box. `depth` is the depth of the box. The parts of the root always
    /// have a sum.
    fn part(&mut self, depth: usize, position: &Self::Position, f: impl FnMut(ChildBox<Self::Position>)) -> Pair;
}

/// The stacks of a box that continue with the same frame.
pub(super) struct ChildBox<Position> {
    pub frame: u32,
    pub position: Position,
    /// The sum of these stacks, or `None` if they are all stacks of the box.
    pub sum: Option<BoxSum>,
}

/// A node during construction.
struct GrowingNode {
    parent: usize,
    frame: FlameFrame,
    depth: u32,
    sum: BoxSum,
    /// The number of the node among kept nodes; `None` for a pruned node.
    kept: Option<NonZeroU32>,
}

/// The sums of a kept node that pruned nodes lack. Most nodes of a large profile are pruned.
#[derive(Clone, Copy, Default)]
struct KeptSums {
    flat: Pair,
    pruned: BoxSum,
}

/// Sums over stacks. `weight` is not scaled yet.
#[derive(Clone, Copy, Default)]
pub(super) struct BoxSum {
    pub weight: Pair,
    pub width: Widths,
    pub sides: (bool, bool),
    pub stacks: usize,
}

impl BoxSum {
    pub(super) fn add(&mut self, other: BoxSum) {
        add(&mut self.weight, other.weight);
        self.width.add(other.width);
        self.sides = (self.sides.0 | other.sides.0, self.sides.1 | other.sides.1);
        self.stacks += other.stacks;
    }
}

/// Adds a pair of sums. Never saturates, because [`super::Diff::new`] rejects profiles whose sums do not fit.
fn add(a: &mut Pair, b: Pair) {
    *a = Pair { base: a.base.saturating_add(b.base), new: a.new.saturating_add(b.new) };
}

/// The complete tree.
struct Grown {
    nodes: Vec<GrowingNode>,
    /// The sums of kept nodes. The first element belongs to no node.
    kept: Vec<KeptSums>,
    /// The share of the widest pruned node.
    widest: f64,
}

/// A node in the heap. The widest node comes first. Equally wide nodes are sorted by creation.
///
/// The upper half is the share. Shares are never negative, so their bits have the same order as the numbers. The lower
/// half is the inverted number of the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeapNode(u128);

impl HeapNode {
    fn new(share: f64, node: usize) -> HeapNode {
        HeapNode(u128::from(share.to_bits()) << 64 | u128::from(!(node as u64)))
    }

    fn share(self) -> f64 {
        f64::from_bits((self.0 >> 64) as u64)
    }

    fn node(self) -> usize {
        !(self.0 as u64) as usize
    }
}

/// Builds the tree.
fn grow<S: BoxSource>(source: &mut S, options: &FlameOptions) -> Grown {
    let (position, all) = source.all();
    let root = GrowingNode { parent: 0, frame: FlameFrame::Root, depth: 0, sum: all, kept: None };
    let (mut nodes, mut places) = (vec![root], vec![position]);
    let mut heap = BinaryHeap::from([HeapNode::new(1.0, 0)]);
    let (mut kept, mut widest) = (vec![KeptSums::default()], 0.0f64);
    let mut pace = Checkpointer::default();
    // The root is not a frame, so it does not count.
    while kept.len() <= options.max_frames.saturating_add(1)
        && let Some(widest_node) = heap.pop()
    {
        let (parent, parent_share) = (widest_node.node(), widest_node.share());
        let (depth, parent_sum, position) = (nodes[parent].depth, nodes[parent].sum, places[parent].clone());
        pace.step(1 + parent_sum.stacks);
        let mut sums = KeptSums::default();
        sums.flat = source.part(depth as usize, &position, |ChildBox { frame, position, sum }| {
            let (sum, share) = match sum {
                Some(sum) => (sum, sum.width.share(all.width)),
                None => (parent_sum, parent_share),
            };
            if share < options.min_width {
                sums.pruned.add(sum);
                widest = widest.max(share);
                return;
            }
            heap.push(HeapNode::new(share, nodes.len()));
            nodes.push(GrowingNode { parent, frame: FlameFrame::Frame(frame), depth: depth + 1, sum, kept: None });
            places.push(position);
        });
        nodes[parent].kept = NonZeroU32::new(kept.len() as u32);
        kept.push(sums);
    }
    for pruned in heap {
        let GrowingNode { parent, sum, .. } = nodes[pruned.node()];
        let number = nodes[parent].kept.map_or(0, |number| number.get() as usize);
        kept[number].pruned.add(sum);
        widest = widest.max(pruned.share());
    }
    Grown { nodes, kept, widest }
}

/// A source that reads a list of stacks. The stacks of a box are a range of rows.
struct StackBoxes<'a> {
    stacks: &'a Stacks,
    scales: Scales,
    inverted: bool,
    /// Indexes of stacks, sorted so that each box's stacks are adjacent.
    rows: Vec<u32>,
    /// A buffer that is reused between calls.
    keys: Vec<(u32, u32)>,
}

impl StackBoxes<'_> {
    /// Returns the values of one stack.
    fn sum_of(&self, row: u32) -> BoxSum {
        let row = &self.stacks.rows[row as usize];
        let scaled = self.scales.apply(row.weight);
        let sides = (row.status != Status::Added, row.status != Status::Removed);
        BoxSum { weight: row.weight, width: Widths::from_weight(scaled), sides, stacks: 1 }
    }

    fn sum(&self, range: std::ops::Range<usize>) -> BoxSum {
        let mut sum = BoxSum::default();
        self.rows[range].iter().for_each(|&row| sum.add(self.sum_of(row)));
        sum
    }
}

impl BoxSource for StackBoxes<'_> {
    type Position = std::ops::Range<usize>;

    fn all(&mut self) -> (Self::Position, BoxSum) {
        (0..self.rows.len(), self.sum(0..self.rows.len()))
    }

    fn part(&mut self, depth: usize, position: &Self::Position, mut f: impl FnMut(ChildBox<Self::Position>)) -> Pair {
        const END: u32 = u32::MAX;
        let (stacks, inverted) = (self.stacks, self.inverted);
        let StackBoxes { rows, keys, .. } = self;
        let rows = &mut rows[position.clone()];
        keys.clear();
        keys.extend(rows.iter().map(|&row| {
            let frames = stacks.frames_of(&stacks.rows[row as usize]);
            let next = if inverted { frames.iter().rev().nth(depth) } else { frames.get(depth) };
            (next.copied().unwrap_or(END), row)
        }));
        // Most nodes have one callee, so no sorting is needed.
        if keys.iter().any(|k| k.0 != keys[0].0) {
            keys.sort_unstable();
            rows.iter_mut().zip(keys.iter()).for_each(|(row, key)| *row = key.1);
        }
        let mut flat = Pair::default();
        let mut start = position.start;
        for group in self.keys.chunk_by(|a, b| a.0 == b.0) {
            let end = start + group.len();
            match group[0].0 {
                END => group.iter().for_each(|k| add(&mut flat, stacks.rows[k.1 as usize].weight)),
                frame => {
                    let is_all = depth > 0 && group.len() == position.len();
                    let sum = (!is_all).then(|| self.sum(start..end));
                    f(ChildBox { frame, position: start..end, sum });
                }
            }
            start = end;
        }
        flat
    }
}

impl Grown {
    /// Returns the sums of a kept node.
    fn kept_sums(&self, node: &GrowingNode) -> &KeptSums {
        &self.kept[node.kept.map_or(0, |number| number.get() as usize)]
    }

    /// Puts the kept nodes into their final order.
    fn finish(self, inverted: bool, summary: Arc<Summary>, frames: Arc<Frames>, scales: Scales) -> Flame {
        let widest = self.widest;
        // The children of a node were created one after another.
        let mut children = vec![0..0; self.nodes.len()];
        let mut start = 1;
        for siblings in self.nodes[1..].chunk_by(|a, b| a.parent == b.parent) {
            children[siblings[0].parent] = start..start + siblings.len();
            start += siblings.len();
        }
        let name = |i: usize| match self.nodes[i].frame {
            FlameFrame::Frame(f) => Some(frames.order(f)),
            _ => None,
        };
        let width = |i: usize| Reverse(self.nodes[i].sum.width.max);
        let mut siblings: Vec<usize> = Vec::new();
        let mut pruned = Pruned { of_stacks: self.nodes[0].sum.stacks, widest, ..Pruned::default() };
        let mut nodes = Vec::with_capacity(self.kept.len());
        // Visits a node before its children, and its `(pruned)` child after all other descendants.
        enum VisitStep {
            Enter(usize),
            Pruned(usize),
        }
        let mut pending = vec![VisitStep::Enter(0)];
        while let Some(step) = pending.pop() {
            let (node, sum, frame, depth, flat) = match step {
                VisitStep::Enter(i) => {
                    let n = &self.nodes[i];
                    (i, n.sum, n.frame, n.depth, self.kept_sums(n).flat)
                }
                VisitStep::Pruned(i) => {
                    let n = &self.nodes[i];
                    let sum = self.kept_sums(n).pruned;
                    pruned.stacks += sum.stacks;
                    pruned.width.add(sum.width);
                    (i, sum, FlameFrame::Pruned, n.depth + 1, sum.weight)
                }
            };
            nodes.push(FlameNode {
                frame,
                depth,
                cum: scales.apply(sum.weight),
                flat: scales.apply(flat),
                width: sum.width,
                sides: sum.sides,
            });
            if matches!(step, VisitStep::Enter(_)) {
                if self.kept_sums(&self.nodes[node]).pruned.stacks > 0 {
                    pending.push(VisitStep::Pruned(node));
                }
                siblings.clear();
                siblings.extend(children[node].clone().filter(|&child| self.nodes[child].kept.is_some()));
                siblings.sort_unstable_by(|&a, &b| width(b).cmp(&width(a)).then_with(|| name(b).cmp(&name(a))));
                pending.extend(siblings.iter().map(|&child| VisitStep::Enter(child)));
            }
        }
        Flame { summary, frames, nodes, pruned, inverted }
    }
}
