//! The call graph: the most important frames, and the calls between them.
//!
//! Frames and edges are selected by pprof's rules:
//!
//! - Frames with a cum below a fraction of the total are dropped. Of the rest, the highest ranked frames are kept, up
//!   to a maximum number.
//! - If a stack passes through dropped frames, the kept frames on both ends are joined by a *residual* edge.
//! - Light edges are dropped, and so are residual edges that only repeat a longer path.
//!
//! With two sides, the size of a value is the largest of |base|, |new| and |delta|. pprof uses only the delta, and so
//! drops frames that are large on both sides.
//!
//! The graph takes one pass over the samples for the table of frames, and one or two passes for the edges.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::edges::Calls;
use super::top::{Sort, Top, TopRow};
use super::{Frames, Measure, Pair, Status, Summary};
use crate::{Error, Result};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::FastState;

/// The order of frames, which also decides which frames are kept if there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Rank {
    /// By cum, multiplied by the entropy of the costs of the frame's callers and callees, as in pprof's graphs. A frame
    /// that only passes calls on ranks lower.
    #[default]
    Entropy,
    /// By flat.
    Flat,
    /// By cum.
    Cum,
}

/// Limits on the size of the call graph. The defaults are pprof's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphOptions {
    /// The maximum number of frames, 0 for no limit.
    pub node_count: usize,
    /// The minimum share of the total for a frame. Smaller frames are dropped.
    pub node_fraction: f64,
    /// The minimum share of the total for an edge. Smaller edges are dropped.
    pub edge_fraction: f64,
    /// The rank that selects frames if there are more than `node_count`.
    pub rank: Rank,
    /// True for a call tree, with a node for each call path to a frame. False for one node per frame.
    #[serde(default)]
    pub call_tree: bool,
}

impl GraphOptions {
    /// Sets the maximum number of frames, 0 for no limit.
    #[must_use]
    pub fn with_node_count(mut self, node_count: usize) -> Self {
        self.node_count = node_count;
        self
    }

    /// Sets the minimum share of the total for a frame.
    #[must_use]
    pub fn with_node_fraction(mut self, fraction: f64) -> Self {
        self.node_fraction = fraction;
        self
    }

    /// Sets the minimum share of the total for an edge.
    #[must_use]
    pub fn with_edge_fraction(mut self, fraction: f64) -> Self {
        self.edge_fraction = fraction;
        self
    }

    /// Sets whether there is a node for each call path to a frame, instead of one node per frame.
    #[must_use]
    pub fn with_call_tree(mut self, call_tree: bool) -> Self {
        self.call_tree = call_tree;
        self
    }

    /// Sets the rank that orders and selects frames.
    #[must_use]
    pub fn with_rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }
}

impl Default for GraphOptions {
    fn default() -> GraphOptions {
        GraphOptions {
            node_count: 80,
            node_fraction: 0.005,
            edge_fraction: 0.001,
            rank: Rank::Entropy,
            call_tree: false,
        }
    }
}

/// A call from one frame to another, summed over all samples that contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The caller's index in [`Graph::nodes`].
    pub caller: u32,
    /// The callee's index in [`Graph::nodes`].
    pub callee: u32,
    /// The sum of the samples with this call.
    pub weight: Pair,
    /// True if, in some sample, dropped frames lie between caller and callee.
    pub residual: bool,
    /// True if the callee is inlined into the caller in all samples.
    pub inlined: bool,
}

/// A call graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Graph {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The frames of the nodes.
    pub frames: Arc<Frames>,
    /// The kept frames, by rank.
    pub nodes: Vec<TopRow>,
    /// The kept calls, by weight descending, then by the names of caller and callee.
    pub calls: Vec<Call>,
    /// The number of frames before any were dropped.
    pub nodes_total: usize,
    /// The minimum magnitude of the cum of kept frames.
    pub node_cutoff: u64,
    /// The minimum magnitude of the weight of kept calls.
    pub edge_cutoff: u64,
    /// The number of calls between kept frames that were dropped because they weigh less than `edge_cutoff`. Residual
    /// calls that were dropped because they repeat a longer path are not counted.
    pub dropped_calls: usize,
}

/// A node's number that marks a frame without a node.
pub(super) const MISSING: u32 = NONE;

/// A node: its number among all nodes, and its sums.
type NumberedNode = (u32, TopRow);

/// Returns the maximum number of nodes of a call tree. A call tree can have a node for each frame of all stacks. With
/// inlined frames, this exceeds the number of bytes in the profiles.
pub fn most_ways(profile_bytes: usize) -> usize {
    (1 << 18) + profile_bytes / 64
}

/// A call tree: a node for each distinct path of frames from the root.
struct PathTree {
    /// The nodes in the order of their numbers. A caller comes before its callees.
    rows: Vec<NumberedNode>,
    /// By number, the node's caller; [`NONE`] for a root.
    callers: Vec<u32>,
    /// By number, true if the frame is called (not inlined) in some sample.
    called: Vec<bool>,
}

impl PathTree {
    fn from_measure(measure: &Measure) -> Result<PathTree> {
        let max_nodes = most_ways(measure.profile_bytes());
        // A path is its caller's node and the frame. Nodes are numbered in order of occurrence.
        let mut paths: Interner<(u32, u32), FastState> = Interner::default();
        let empty = TopRow { frame: 0, flat: Pair::default(), cum: Pair::default(), status: Status::Same };
        let mut tree = PathTree { rows: Vec::new(), callers: Vec::new(), called: Vec::new() };
        let mut present: Vec<[bool; 2]> = Vec::new();
        for walk in measure.walks() {
            let is_base = walk.input.base;
            let side = |pair: &mut Pair, value: i64| *(if is_base { &mut pair.base } else { &mut pair.new }) += value;
            walk.for_each(|value, locations, _| {
                let mut caller = NONE;
                for &l in locations.iter().rev() {
                    let expanded = walk.frames.expand(l);
                    for (depth, &f) in expanded.iter().enumerate().rev() {
                        if paths.values.len() > max_nodes {
                            return;
                        }
                        let frame = walk.translation[f as usize];
                        let node = paths.number((caller, frame));
                        let i = node as usize;
                        if i == tree.rows.len() {
                            tree.rows.push((node, TopRow { frame, ..empty }));
                            tree.callers.push(caller);
                            tree.called.push(false);
                            present.push([false; 2]);
                        }
                        side(&mut tree.rows[i].1.cum, value);
                        tree.called[i] |= depth + 1 == expanded.len();
                        present[i][usize::from(is_base)] = true;
                        caller = node;
                    }
                }
                if caller != NONE {
                    side(&mut tree.rows[caller as usize].1.flat, value);
                }
            });
        }
        if paths.values.len() > max_nodes {
            let detail =
                format!("the call tree has more than {max_nodes} nodes; --focus on some frames, or use a flame graph");
            return Err(Error::query(detail));
        }
        for ((_, row), [in_new, in_base]) in tree.rows.iter_mut().zip(present) {
            (row.flat, row.cum) = (measure.scales.apply(row.flat), measure.scales.apply(row.cum));
            row.status = Status::new(in_base, in_new, row.flat.delta() == 0 && row.cum.delta() == 0);
        }
        if measure.summary().query.drop_negative {
            tree.rows.retain(|(_, row)| !row.is_negative());
        }
        Ok(tree)
    }

    /// Returns the calls between the selected nodes. A node has at most one caller, the nearest selected node above it.
    fn calls(&self, nodes: &[NumberedNode]) -> Vec<Call> {
        let mut number = vec![NONE; self.callers.len()];
        for (i, (node, _)) in nodes.iter().enumerate() {
            number[*node as usize] = i as u32;
        }
        // For each node, the nearest selected node above it, whether other nodes lie between them, and whether all of
        // these nodes are inlined.
        let mut above: Vec<(u32, bool, bool)> = Vec::with_capacity(self.callers.len());
        for (i, &caller) in self.callers.iter().enumerate() {
            above.push(match caller {
                NONE => (NONE, false, false),
                caller if number[caller as usize] != NONE => (number[caller as usize], false, !self.called[i]),
                caller => {
                    let (nearest, _, inlined) = above[caller as usize];
                    (nearest, true, inlined && !self.called[i])
                }
            });
        }
        let calls = nodes.iter().enumerate().filter_map(|(i, (node, row))| {
            let (caller, residual, inlined) = above[*node as usize];
            (caller != NONE).then_some(Call { caller, callee: i as u32, weight: row.cum, residual, inlined })
        });
        calls.collect()
    }
}

/// Returns the size of a value of two sides: the largest of |base|, |new| and |delta|.
fn magnitude(p: Pair) -> u64 {
    p.base.unsigned_abs().max(p.new.unsigned_abs()).max(p.delta().unsigned_abs())
}

/// The data about a call that is collected from samples.
#[derive(Clone, Copy, Default)]
pub(super) struct CallSum {
    stamp: u32,
    pub(super) weight: Pair,
    pub(super) residual: bool,
    pub(super) called: bool,
}

impl Measure {
    /// Builds the call graph.
    ///
    /// # Errors
    /// Fails if a fraction is not between 0 and 1, and if a call tree has more than [`most_ways`] nodes.
    pub fn graph(&self, options: &GraphOptions) -> Result<Graph> {
        for (name, fraction) in [("node", options.node_fraction), ("edge", options.edge_fraction)] {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(Error::query(format!("the {name} fraction must be a number from 0 to 1, not {fraction}")));
            }
        }
        if options.call_tree {
            let tree = PathTree::from_measure(self)?;
            return Ok(self.trimmed(tree.rows.clone(), |nodes| tree.calls(nodes), options));
        }
        Ok(self.graph_of(&self.top(Sort::Flat), options))
    }

    /// Builds the call graph from an existing table of frames, which must be sorted by flat.
    pub fn graph_of(&self, top: &Top, options: &GraphOptions) -> Graph {
        self.trimmed(top.rows.iter().map(|row| (row.frame, *row)).collect(), |nodes| self.calls(nodes), options)
    }

    /// Drops nodes and calls by the options. Each node has a number. `calls_of` returns the calls between the given
    /// nodes, where callers and callees are indexes in the given list.
    fn trimmed(
        &self,
        nodes: Vec<NumberedNode>,
        calls_of: impl Fn(&[NumberedNode]) -> Vec<Call>,
        options: &GraphOptions,
    ) -> Graph {
        let mut nodes = nodes;
        let nodes_total = nodes.len();
        // The total after filters.
        let total = |side: fn(Pair) -> i64| {
            nodes.iter().fold(0u64, |sum, (_, row)| sum.saturating_add(side(row.flat).unsigned_abs()))
        };
        let total = total(|p| p.base).max(total(|p| p.new)) as f64;
        let node_cutoff = (total * options.node_fraction) as u64;
        let edge_cutoff = (total * options.edge_fraction) as u64;
        nodes.retain(|(_, row)| magnitude(row.cum) >= node_cutoff);
        let mut calls = calls_of(&nodes);
        self.order(&mut nodes, &mut calls, options.rank);
        if options.node_count != 0 && nodes.len() > options.node_count {
            nodes.truncate(options.node_count);
            // Calls through the dropped frames are now residual, which may change the order.
            calls = calls_of(&nodes);
            self.order(&mut nodes, &mut calls, options.rank);
        }
        self.order_calls(&nodes, &mut calls);
        let all_calls = calls.len();
        calls.retain(|c| magnitude(c.weight) >= edge_cutoff);
        let dropped_calls = all_calls - calls.len();
        remove_redundant(nodes.len(), &mut calls);
        Graph {
            summary: self.summary().clone(),
            frames: self.frames().clone(),
            nodes: nodes.into_iter().map(|(_, row)| row).collect(),
            calls,
            nodes_total,
            node_cutoff,
            edge_cutoff,
            dropped_calls,
        }
    }

    /// Returns the calls between the given nodes in no particular order. Callers and callees are indexes in `nodes`.
    fn calls(&self, nodes: &[NumberedNode]) -> Vec<Call> {
        let mut number = vec![NONE; self.frames().len()];
        for (i, (frame, _)) in nodes.iter().enumerate() {
            number[*frame as usize] = i as u32;
        }
        let (all, sums) = match self.tree() {
            Some(tree) => tree.calls(self.sample_type, &number, nodes.len()),
            None => self.walked_calls(&number, nodes.len()),
        };
        let call = |(&(caller, callee), sum): (&(u32, u32), CallSum)| Call {
            caller,
            callee,
            weight: self.scales.apply(sum.weight),
            residual: sum.residual,
            inlined: !sum.called,
        };
        all.pairs().iter().zip(sums).map(call).collect()
    }

    /// Computes the calls of both sides with a pass over the samples.
    fn walked_calls(&self, number: &[u32], n_nodes: usize) -> (Calls, Vec<CallSum>) {
        let side = |base| self.side_calls(base, number, n_nodes);
        let ((mut all, mut sums), (new_calls, new)) = self.sides(side);
        for (&(caller, callee), sum) in new_calls.pairs().iter().zip(new) {
            let id = all.id(caller, callee);
            sums.resize(all.pairs().len(), CallSum::default());
            let total = &mut sums[id];
            total.weight.new = sum.weight.new;
            total.residual |= sum.residual;
            total.called |= sum.called;
        }
        (all, sums)
    }

    fn side_calls(&self, base: bool, number: &[u32], n_nodes: usize) -> (Calls, Vec<CallSum>) {
        let mut calls = Calls::below(n_nodes);
        let mut sums: Vec<CallSum> = Vec::new();
        let mut stamp = 0;
        for walk in self.walks_of(base) {
            let numbers: Vec<u32> = walk.translation.iter().map(|&f| number[f as usize]).collect();
            walk.for_each(|value, locations, _| {
                stamp += 1;
                let (mut caller, mut residual) = (NONE, false);
                for &l in locations.iter().rev() {
                    let expanded = walk.frames.expand(l);
                    for (depth, &f) in expanded.iter().enumerate().rev() {
                        let callee = numbers[f as usize];
                        if callee == NONE {
                            residual = true;
                            continue;
                        }
                        if caller != NONE && caller != callee {
                            let id = calls.id(caller, callee);
                            if id == sums.len() {
                                sums.push(CallSum::default());
                            }
                            let sum = &mut sums[id];
                            // As in pprof, the flags of a call come from its first occurrence in a stack.
                            if sum.stamp != stamp {
                                sum.stamp = stamp;
                                let side = if base { &mut sum.weight.base } else { &mut sum.weight.new };
                                *side += value;
                                sum.residual |= residual;
                                sum.called |= depth + 1 == expanded.len();
                            }
                        }
                        (caller, residual) = (callee, false);
                    }
                }
            });
        }
        (calls, sums)
    }

    /// Sorts nodes by rank, and renumbers the ends of calls.
    fn order(&self, nodes: &mut Vec<NumberedNode>, calls: &mut [Call], rank: Rank) {
        // A sum of floats depends on the order of its terms. Sorting makes the order independent of hash maps. Keys are
        // single numbers, because comparing them takes most of the time. The smallest key is the largest weight.
        calls.sort_by_cached_key(|c| {
            u128::from(!magnitude(c.weight)) << 64 | u128::from(c.caller) << 32 | u128::from(c.callee)
        });
        let scores: Vec<u64> = match rank {
            Rank::Flat => nodes.iter().map(|(_, n)| magnitude(n.flat)).collect(),
            Rank::Cum => nodes.iter().map(|(_, n)| magnitude(n.cum)).collect(),
            Rank::Entropy => entropy(nodes, calls),
        };
        let mut by_rank: Vec<u32> = (0..nodes.len() as u32).collect();
        by_rank.sort_unstable_by(|&a, &b| {
            let frame = |i: u32| nodes[i as usize].1.frame;
            let score = |i: u32| Reverse(scores[i as usize]);
            let names = || self.frames().order(frame(a)).cmp(&self.frames().order(frame(b)));
            // Nodes for the same frame are sorted by cost, then by their number.
            let node = |i: u32| (Reverse(magnitude(nodes[i as usize].1.cum)), nodes[i as usize].0);
            score(a).cmp(&score(b)).then_with(names).then_with(|| node(a).cmp(&node(b)))
        });
        let mut new_number = vec![0; nodes.len()];
        for (i, &old) in by_rank.iter().enumerate() {
            new_number[old as usize] = i as u32;
        }
        *nodes = by_rank.iter().map(|&i| nodes[i as usize]).collect();
        for c in calls.iter_mut() {
            (c.caller, c.callee) = (new_number[c.caller as usize], new_number[c.callee as usize]);
        }
    }

    /// Sorts calls by weight, then by the names of their ends.
    fn order_calls(&self, nodes: &[NumberedNode], calls: &mut [Call]) {
        let name = |i: u32| self.frames().order(nodes[i as usize].1.frame);
        calls.sort_unstable_by(|a, b| {
            let weight = |c: &Call| Reverse(magnitude(c.weight));
            weight(a)
                .cmp(&weight(b))
                .then_with(|| (name(a.caller), name(a.callee)).cmp(&(name(b.caller), name(b.callee))))
        });
    }
}

/// Returns pprof's score of each node: its cum times the entropy of incoming and outgoing costs, plus its flat. If no
/// calls come in or go out, the entropy on that end is 1.
fn entropy(nodes: &[NumberedNode], calls: &[Call]) -> Vec<u64> {
    #[derive(Clone, Copy, Default)]
    struct NodeEnd {
        calls: u32,
        total: u64,
        entropy: f64,
    }
    impl NodeEnd {
        fn add(&mut self, weight: u64) {
            if weight > 0 {
                let part = weight as f64 / self.total as f64;
                self.entropy -= part * part.log2();
            }
        }

        fn score(&self) -> f64 {
            if self.calls == 0 { 1.0 } else { self.entropy }
        }
    }
    let mut into = vec![NodeEnd::default(); nodes.len()];
    let mut out: Vec<NodeEnd> =
        nodes.iter().map(|(_, n)| NodeEnd { total: magnitude(n.flat), ..NodeEnd::default() }).collect();
    for c in calls {
        for end in [&mut into[c.callee as usize], &mut out[c.caller as usize]] {
            end.calls += 1;
            end.total = end.total.saturating_add(magnitude(c.weight));
        }
    }
    for c in calls {
        into[c.callee as usize].add(magnitude(c.weight));
        out[c.caller as usize].add(magnitude(c.weight));
    }
    let score = |(i, (_, node)): (usize, &NumberedNode)| {
        let flat = magnitude(node.flat);
        out[i].add(flat);
        (((into[i].score() + out[i].score()) * magnitude(node.cum) as f64) as u64).saturating_add(flat)
    };
    nodes.iter().enumerate().map(score).collect()
}

/// The maximum number of calls to visit while searching redundant residual calls. 80 frames that all call each other
/// need a hundredth of it.
const MAX_VISITS: usize = 50_000_000;

/// Removes residual calls whose callee the caller also reaches on another path. For each node, checks its incoming
/// calls from the lightest up to the first call that is not residual. In graphs of many thousands of calls, the search
/// stops at [`MAX_VISITS`]. The graph then keeps calls that are redundant, but correct.
fn remove_redundant(n_nodes: usize, calls: &mut Vec<Call>) {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); n_nodes];
    for (i, c) in calls.iter().enumerate() {
        into[c.callee as usize].push(i);
    }
    let mut removed = vec![false; calls.len()];
    let (mut seen, mut pending) = (vec![NONE; n_nodes], Vec::new());
    let mut visits = 0;
    for node in (0..n_nodes).rev() {
        // The calls are sorted by weight.
        for &i in into[node].iter().rev().take_while(|&&i| calls[i].residual) {
            // Searches upwards from the callee for the caller, without this call.
            seen[node] = i as u32;
            pending.clear();
            pending.push(node);
            while let Some(n) = pending.pop().filter(|_| !removed[i] && visits < MAX_VISITS) {
                for &up in &into[n] {
                    visits += 1;
                    if up == i || removed[up] {
                        continue;
                    }
                    let caller = calls[up].caller as usize;
                    if seen[caller] != i as u32 {
                        seen[caller] = i as u32;
                        pending.push(caller);
                    }
                    removed[i] |= calls[up].caller == calls[i].caller;
                }
            }
        }
    }
    let mut i = 0;
    calls.retain(|_| {
        i += 1;
        !removed[i - 1]
    });
}
