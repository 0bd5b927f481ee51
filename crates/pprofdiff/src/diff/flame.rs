//! The flame graph: both sides' call trees as one, so that what vanished is drawn as well as what appeared.
//!
//! Stacks of both sides are matched first ([`Stacks`]); the tree is then cut out of them from the root
//! down, widest node first:
//!
//! ```text
//! heap <- the root, which has all stacks
//! while there are nodes in the heap, and the tree is not full:
//!     take the widest, keep it
//!     part its stacks by their next frame; each part is a node for the heap, unless it is too thin
//! what is left in the heap is too thin as well: it goes to its parent's `(pruned)` child
//! ```
//!
//! A stack is looked at once for each of its frames that is kept, so time is linear in what the samples
//! hold, and what can't be seen costs next to nothing. Memory is the stacks, and at most two nodes a kept
//! frame (itself, and its `(pruned)` child).
//!
//! A width is a sum over the stacks beneath a node, and no stack has a negative width, so a parent is never
//! narrower than its children together, whichever width is drawn. (The difference of two cum values has no such
//! property, which is why a subtracted flame graph can't be drawn.) For the same reason a node
//! that is thin has only thin ones beneath it, and pruning it loses nothing that would be seen.
//!
//! The inverted graph is cut by itself: turning the pruned one around would show next to nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::normalize::Scales;
use super::stacks::Stacks;
use super::tree::TreeStacks;
use super::{Frames, Measure, Pair, Status, Summary};
use pprofdiff_profile::work::Pace;

/// Which way a flame graph grows, and how much of it is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FlameOptions {
    /// From the leaf to its callers, instead of from the root to its callees.
    pub inverted: bool,
    /// The part of the whole below which a node counts as too thin to be seen; 0 keeps all that there is room for.
    pub min_width: f64,
    /// The most frames to keep. The widest are.
    pub max_frames: usize,
}

impl FlameOptions {
    /// From the leaf to its callers, or not.
    #[must_use]
    pub fn with_inverted(mut self, inverted: bool) -> Self {
        self.inverted = inverted;
        self
    }

    /// Without the nodes below this part of the whole.
    #[must_use]
    pub fn with_min_width(mut self, min_width: f64) -> Self {
        self.min_width = min_width;
        self
    }

    /// With at most this many frames.
    #[must_use]
    pub fn with_max_frames(mut self, max_frames: usize) -> Self {
        self.max_frames = max_frames;
        self
    }
}

impl Default for FlameOptions {
    /// What half a pixel is on a screen 2,000 wide after zooming in ten times, and what opens at once in a browser.
    fn default() -> FlameOptions {
        FlameOptions { inverted: false, min_width: 0.5 / 20_000.0, max_frames: 50_000 }
    }
}

/// How wide a node may be drawn: sums over the stacks beneath it, each of which is at least 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Widths {
    /// Of the larger side of each stack: shows what vanished as large as it was.
    pub max: i64,
    /// Of the base's magnitude.
    pub base: i64,
    /// Of the new side's magnitude.
    pub new: i64,
    /// Of the magnitude of the change: what moved between stacks counts twice, what stayed is gone.
    pub delta: i64,
}

impl Widths {
    pub(super) fn from_weight(weight: Pair) -> Widths {
        let magnitude = |v: i64| v.saturating_abs();
        let (base, new) = (magnitude(weight.base), magnitude(weight.new));
        Widths { max: base.max(new), base, new, delta: magnitude(weight.delta()) }
    }

    /// Saturates only by the rounding of scaled values: the magnitudes of both sides fit an int64 together.
    fn add(&mut self, other: Widths) {
        let sum = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        sum(&mut self.max, other.max);
        sum(&mut self.base, other.base);
        sum(&mut self.new, other.new);
        sum(&mut self.delta, other.delta);
    }

    /// The part of the whole that this is, in the way of drawing it in which it is widest.
    fn share(self, whole: Widths) -> f64 {
        let part = |own: i64, whole: i64| if whole == 0 { 0.0 } else { own as f64 / whole as f64 };
        let [a, b] = [part(self.max, whole.max), part(self.base, whole.base)];
        let [c, d] = [part(self.new, whole.new), part(self.delta, whole.delta)];
        a.max(b).max(c).max(d)
    }
}

/// What a box of the graph stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameFrame {
    /// All stacks.
    Root,
    /// A frame; index in [`Flame::frames`].
    Frame(u32),
    /// The siblings that are too thin to be seen, together.
    Pruned,
}

/// One box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlameNode {
    /// What it stands for.
    pub frame: FlameFrame,
    /// How many boxes lead to it; the root has 0.
    pub depth: u32,
    /// What the stacks beneath it cost. Where one frame recurs in a stack, each of its boxes has it.
    pub cum: Pair,
    /// What the stacks that end here cost.
    pub flat: Pair,
    /// How wide it may be drawn.
    pub width: Widths,
    /// Whether the base, and whether the new side, has it.
    pub sides: (bool, bool),
}

impl FlameNode {
    /// What happened to it.
    pub fn status(&self) -> Status {
        Status::new(self.sides.0, self.sides.1, self.cum.delta() == 0 && self.width.delta == 0)
    }
}

/// What the `(pruned)` boxes of a graph hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// Number of stacks that end in one.
    pub stacks: usize,
    /// Of how many.
    pub of_stacks: usize,
    /// How wide they are together.
    pub width: Widths,
    /// The part of the whole that the widest box has that was pruned.
    pub widest: f64,
}

/// A flame graph of two sides, or of one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Flame {
    /// What it is of.
    pub summary: Arc<Summary>,
    /// The frames that boxes refer to.
    pub frames: Arc<Frames>,
    /// Depth first. Siblings by `width.max` descending, then name; `(pruned)` last.
    pub nodes: Vec<FlameNode>,
    /// What was too thin.
    pub pruned: Pruned,
    /// True if it grows from the leaf to its callers.
    pub inverted: bool,
}

impl Measure {
    /// The flame graph. A sample without frames is in no stack, so it is not in the graph either.
    pub fn flame(&self, options: &FlameOptions) -> Flame {
        self.matched_stacks().flame(options)
    }

    /// What flame graphs are cut out of: for callers that want more than one.
    pub fn matched_stacks(&self) -> MatchedStacks {
        let found = match TreeStacks::from_measure(self) {
            Some(stacks) => Found::Tree(stacks),
            None => {
                // With their exact values: a node's sum is scaled once, as every value of a table is, and not the rounded
                // sum of scaled stacks.
                let exact = Measure { scales: Scales::ONE, ..self.clone() };
                Found::Stacks(exact.stacks_as_found(false))
            }
        };
        MatchedStacks { found, summary: self.summary().clone(), scales: self.scales }
    }
}

/// The stacks of both sides that flame graphs are cut out of, in no particular order.
pub struct MatchedStacks {
    found: Found,
    summary: Arc<Summary>,
    scales: Scales,
}

enum Found {
    Stacks(Stacks),
    Tree(TreeStacks),
}

impl MatchedStacks {
    /// A flame graph.
    pub fn flame(&self, options: &FlameOptions) -> Flame {
        let growing = match &self.found {
            Found::Stacks(stacks) => {
                let inverted = options.inverted;
                let rows = (0..stacks.rows.len() as u32).collect();
                grow(&mut Rows { stacks, scales: self.scales, inverted, rows, keys: Vec::new() }, options)
            }
            Found::Tree(tree) if options.inverted => grow(&mut tree.up(), options),
            Found::Tree(tree) => grow(&mut tree.down(), options),
        };
        let frames = match &self.found {
            Found::Stacks(stacks) => &stacks.frames,
            Found::Tree(tree) => tree.frames(),
        };
        growing.finish(options.inverted, self.summary.clone(), frames.clone(), self.scales)
    }
}

/// Where a flame graph's boxes come from.
pub(super) trait Source {
    /// What stacks a box has.
    type At: Clone;

    /// All stacks.
    fn all(&mut self) -> (Self::At, Sum);

    /// Parts a box's stacks by the frame that comes next: calls `f` with each part, in the order of the frames' numbers, and
    /// gives what ends in the box. `depth` is the box's.
    fn part(&mut self, depth: usize, at: &Self::At, f: impl FnMut(Part<Self::At>)) -> Pair;
}

/// Those of a box's stacks that go on with one frame.
pub(super) struct Part<At> {
    pub frame: u32,
    pub at: At,
    pub sum: Sum,
}

/// A node while the tree grows.
struct Node {
    parent: usize,
    frame: FlameFrame,
    depth: u32,
    sum: Sum,
    flat: Pair,
    pruned: Sum,
    kept: bool,
}

/// What is added up over stacks. `weight` is not scaled yet.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub weight: Pair,
    pub width: Widths,
    pub sides: (bool, bool),
    pub stacks: usize,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        add(&mut self.weight, other.weight);
        self.width.add(other.width);
        self.sides = (self.sides.0 | other.sides.0, self.sides.1 | other.sides.1);
        self.stacks += other.stacks;
    }
}

/// Never saturates: [`super::Diff::new`] refuses profiles whose sums do not fit.
fn add(a: &mut Pair, b: Pair) {
    *a = Pair { base: a.base.saturating_add(b.base), new: a.new.saturating_add(b.new) };
}

/// The tree when it has grown.
struct Grown {
    nodes: Vec<Node>,
    /// The share of the widest node that was pruned.
    widest: f64,
}

/// A node in the heap: the widest is the greatest, and of two alike the one that was found first.
struct Open {
    share: f64,
    node: usize,
}

impl Ord for Open {
    fn cmp(&self, other: &Open) -> Ordering {
        self.share.total_cmp(&other.share).then_with(|| Reverse(self.node).cmp(&Reverse(other.node)))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Open) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Open) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

/// Grows the tree.
fn grow<S: Source>(source: &mut S, options: &FlameOptions) -> Grown {
    let node = |parent, frame, depth, sum| {
        let (flat, pruned) = (Pair::default(), Sum::default());
        Node { parent, frame, depth, sum, flat, pruned, kept: false }
    };
    let (at, all) = source.all();
    let (mut nodes, mut places) = (vec![node(0, FlameFrame::Root, 0, all)], vec![at]);
    let mut heap = BinaryHeap::from([Open { share: 1.0, node: 0 }]);
    let (mut kept, mut widest) = (0, 0.0f64);
    let mut pace = Pace::default();
    // The root is no frame, so it takes no room.
    while kept <= options.max_frames
        && let Some(Open { node: parent, .. }) = heap.pop()
    {
        kept += 1;
        pace.step(1 + nodes[parent].sum.stacks);
        let (depth, at) = (nodes[parent].depth, places[parent].clone());
        let flat = source.part(depth as usize, &at, |Part { frame, at, sum }| {
            let share = sum.width.share(all.width);
            if share < options.min_width {
                nodes[parent].pruned.add(sum);
                widest = widest.max(share);
                return;
            }
            heap.push(Open { share, node: nodes.len() });
            nodes.push(node(parent, FlameFrame::Frame(frame), depth + 1, sum));
            places.push(at);
        });
        (nodes[parent].kept, nodes[parent].flat) = (true, flat);
    }
    for Open { share, node } in heap {
        let (parent, sum) = (nodes[node].parent, nodes[node].sum);
        nodes[parent].pruned.add(sum);
        widest = widest.max(share);
    }
    Grown { nodes, widest }
}

/// Stacks as they were found: each box's are a range of rows.
struct Rows<'a> {
    stacks: &'a Stacks,
    scales: Scales,
    inverted: bool,
    /// Indexes of stacks, so that each box's lie together.
    rows: Vec<u32>,
    /// Memory to work in.
    keys: Vec<(u32, u32)>,
}

impl Rows<'_> {
    /// One stack's values.
    fn sum_of(&self, row: u32) -> Sum {
        let row = &self.stacks.rows[row as usize];
        let scaled = self.scales.apply(row.weight);
        let sides = (row.status != Status::Added, row.status != Status::Removed);
        Sum { weight: row.weight, width: Widths::from_weight(scaled), sides, stacks: 1 }
    }

    fn sum(&self, range: std::ops::Range<usize>) -> Sum {
        let mut sum = Sum::default();
        self.rows[range].iter().for_each(|&row| sum.add(self.sum_of(row)));
        sum
    }
}

impl Source for Rows<'_> {
    type At = std::ops::Range<usize>;

    fn all(&mut self) -> (Self::At, Sum) {
        (0..self.rows.len(), self.sum(0..self.rows.len()))
    }

    fn part(&mut self, depth: usize, at: &Self::At, mut f: impl FnMut(Part<Self::At>)) -> Pair {
        const END: u32 = u32::MAX;
        let (stacks, inverted) = (self.stacks, self.inverted);
        let Rows { rows, keys, .. } = self;
        let rows = &mut rows[at.clone()];
        keys.clear();
        keys.extend(rows.iter().map(|&row| {
            let frames = stacks.frames_of(&stacks.rows[row as usize]);
            let next = if inverted { frames.iter().rev().nth(depth) } else { frames.get(depth) };
            (next.copied().unwrap_or(END), row)
        }));
        // Most nodes have one callee, so there is nothing to order.
        if keys.iter().any(|k| k.0 != keys[0].0) {
            keys.sort_unstable();
            rows.iter_mut().zip(keys.iter()).for_each(|(row, key)| *row = key.1);
        }
        let mut flat = Pair::default();
        let mut start = at.start;
        for group in self.keys.chunk_by(|a, b| a.0 == b.0) {
            let end = start + group.len();
            match group[0].0 {
                END => group.iter().for_each(|k| add(&mut flat, stacks.rows[k.1 as usize].weight)),
                frame => f(Part { frame, at: start..end, sum: self.sum(start..end) }),
            }
            start = end;
        }
        flat
    }
}

impl Grown {
    /// Puts the kept nodes in their order.
    fn finish(self, inverted: bool, summary: Arc<Summary>, frames: Arc<Frames>, scales: Scales) -> Flame {
        let widest = self.widest;
        // A node's children were found one after the other.
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
        let mut nodes = Vec::new();
        // A node before its children, and its `(pruned)` child after all that is beneath them.
        enum Step {
            Enter(usize),
            Pruned(usize),
        }
        let mut open = vec![Step::Enter(0)];
        while let Some(step) = open.pop() {
            let (node, sum, frame, depth, flat) = match step {
                Step::Enter(i) => {
                    let n = &self.nodes[i];
                    (i, n.sum, n.frame, n.depth, n.flat)
                }
                Step::Pruned(i) => {
                    let n = &self.nodes[i];
                    pruned.stacks += n.pruned.stacks;
                    pruned.width.add(n.pruned.width);
                    (i, n.pruned, FlameFrame::Pruned, n.depth + 1, n.pruned.weight)
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
            if matches!(step, Step::Enter(_)) {
                if self.nodes[node].pruned.stacks > 0 {
                    open.push(Step::Pruned(node));
                }
                siblings.clear();
                siblings.extend(children[node].clone().filter(|&child| self.nodes[child].kept));
                siblings.sort_unstable_by(|&a, &b| width(b).cmp(&width(a)).then_with(|| name(b).cmp(&name(a))));
                open.extend(siblings.iter().map(|&child| Step::Enter(child)));
            }
        }
        Flame { summary, frames, nodes, pruned, inverted }
    }
}
