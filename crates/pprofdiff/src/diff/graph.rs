//! The call graph: the frames worth drawing, and what they call.
//!
//! Which frames and edges are kept is pprof's rule: frames whose cum is below a fraction of the total are dropped; of
//! the others the highest ranked are kept, up to a number; where a stack runs through frames that were not kept, the
//! kept ones on both ends are joined by a *residual* edge; light edges are dropped, and residual edges that only repeat
//! a longer path. Of two sides a value counts by the largest of |base|, |new| and |delta|: pprof takes the delta alone,
//! and so loses whatever is large on both sides.
//!
//! Costs a pass over the samples for the table of frames, and one or two for edges.

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

/// Which frames are kept if there are too many of them, and what they are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Rank {
    /// As pprof's graphs: cum, weighted by how evenly the cost is spread over its callers
    /// and callees, so that a frame which only passes calls on counts less.
    #[default]
    Entropy,
    /// By flat.
    Flat,
    /// By cum.
    Cum,
}

/// How much of the call graph to keep. The defaults are pprof's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphOptions {
    /// Most frames; 0 for any number.
    pub node_count: usize,
    /// Frames with less than this part of the total are dropped.
    pub node_fraction: f64,
    /// Edges with less than this part of the total are dropped.
    pub edge_fraction: f64,
    /// Which frames are kept if there are more than `node_count`.
    pub rank: Rank,
    /// A node for each way to a frame, and not for each frame.
    #[serde(default)]
    pub call_tree: bool,
}

impl GraphOptions {
    /// With at most this many frames; 0 for any number.
    #[must_use]
    pub fn with_node_count(mut self, node_count: usize) -> Self {
        self.node_count = node_count;
        self
    }

    /// Without the frames below this part of the total.
    #[must_use]
    pub fn with_node_fraction(mut self, fraction: f64) -> Self {
        self.node_fraction = fraction;
        self
    }

    /// Without the edges below this part of the total.
    #[must_use]
    pub fn with_edge_fraction(mut self, fraction: f64) -> Self {
        self.edge_fraction = fraction;
        self
    }

    /// With a node for each way to a frame, or for each frame.
    #[must_use]
    pub fn with_call_tree(mut self, call_tree: bool) -> Self {
        self.call_tree = call_tree;
        self
    }

    /// With frames ordered, and kept, by another rank.
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

/// A call from one frame to another, of all samples in which it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The caller's index in [`Graph::nodes`].
    pub caller: u32,
    /// The callee's.
    pub callee: u32,
    /// What the samples with this call cost.
    pub weight: Pair,
    /// True if frames lie between the two, in some sample, that were not kept.
    pub residual: bool,
    /// True if the callee is inlined into the caller wherever it occurs.
    pub inlined: bool,
}

/// A call graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Graph {
    /// What the graph is of.
    pub summary: Arc<Summary>,
    /// The frames that nodes refer to.
    pub frames: Arc<Frames>,
    /// The kept frames, by rank.
    pub nodes: Vec<TopRow>,
    /// The kept calls, by weight descending, then by the names of caller and callee.
    pub calls: Vec<Call>,
    /// Number of frames before any were dropped.
    pub nodes_total: usize,
    /// Frames with a smaller cum were dropped.
    pub node_cutoff: u64,
    /// Calls with a smaller weight were dropped.
    pub edge_cutoff: u64,
    /// How many calls between kept frames were dropped because they weigh less than `edge_cutoff`.
    pub dropped_calls: usize,
}

/// The number of what is no node.
pub(super) const MISSING: u32 = NONE;

/// A node: its number among all that there are, and what it costs.
type Node = (u32, TopRow);

/// The most nodes of a call tree: there may be as many as frames in all stacks together, which inlined frames make more
/// than bytes in the profiles.
pub fn most_ways(profile_bytes: usize) -> usize {
    (1 << 18) + profile_bytes / 64
}

/// The ways to all frames: a node for each frame that follows the same frames from the root.
struct Tree {
    /// In the order of their numbers; none has a caller behind it.
    rows: Vec<Node>,
    /// By number: the caller, or `NONE`.
    callers: Vec<u32>,
    /// By number: true if the frame is called, and not inlined, somewhere.
    called: Vec<bool>,
}

impl Tree {
    fn from_measure(measure: &Measure) -> Result<Tree> {
        let most = most_ways(measure.profile_bytes());
        // Each way is its caller's and the frame; as nodes come, so are they numbered.
        let mut ways: Interner<(u32, u32), FastState> = Interner::default();
        let empty = TopRow { frame: 0, flat: Pair::default(), cum: Pair::default(), status: Status::Same };
        let mut tree = Tree { rows: Vec::new(), callers: Vec::new(), called: Vec::new() };
        let mut present: Vec<[bool; 2]> = Vec::new();
        for walk in measure.walks() {
            let is_base = walk.input.base;
            let side = |pair: &mut Pair, value: i64| *(if is_base { &mut pair.base } else { &mut pair.new }) += value;
            walk.for_each(|value, locations, _| {
                let mut caller = NONE;
                for &l in locations.iter().rev() {
                    let expanded = walk.frames.expand(l);
                    for (depth, &f) in expanded.iter().enumerate().rev() {
                        if ways.values.len() > most {
                            return;
                        }
                        let frame = walk.translation[f as usize];
                        let node = ways.number((caller, frame));
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
        if ways.values.len() > most {
            let detail =
                format!("there are more than {most} ways to frames; --focus on some, or look at a flame graph");
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

    /// The calls between some of the nodes: each has one caller at most, the nearest of these on its way.
    fn calls(&self, nodes: &[Node]) -> Vec<Call> {
        let mut number = vec![NONE; self.callers.len()];
        for (i, (node, _)) in nodes.iter().enumerate() {
            number[*node as usize] = i as u32;
        }
        // By node: the nearest of these above it, if there are others in between, and if all of those are inlined.
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

/// What a value of two sides counts: the largest of |base|, |new| and |delta|.
fn magnitude(p: Pair) -> u64 {
    p.base.unsigned_abs().max(p.new.unsigned_abs()).max(p.delta().unsigned_abs())
}

/// What is known of a call while samples are walked.
#[derive(Clone, Copy, Default)]
pub(super) struct CallSum {
    stamp: u32,
    pub(super) weight: Pair,
    pub(super) residual: bool,
    pub(super) called: bool,
}

impl Measure {
    /// The call graph.
    ///
    /// # Errors
    /// A fraction that is not between 0 and 1; a call tree with more than [`most_ways`] nodes.
    pub fn graph(&self, options: &GraphOptions) -> Result<Graph> {
        for (name, fraction) in [("node", options.node_fraction), ("edge", options.edge_fraction)] {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(Error::query(format!("the {name} fraction is a number from 0 to 1, not {fraction}")));
            }
        }
        if options.call_tree {
            let tree = Tree::from_measure(self)?;
            return Ok(self.trimmed(tree.rows.clone(), |nodes| tree.calls(nodes), options));
        }
        Ok(self.graph_of(&self.top(Sort::Flat), options))
    }

    /// The call graph of a table of frames that is made already, and ordered by flat.
    pub fn graph_of(&self, top: &Top, options: &GraphOptions) -> Graph {
        self.trimmed(top.rows.iter().map(|row| (row.frame, *row)).collect(), |nodes| self.calls(nodes), options)
    }

    /// What is kept of nodes. Each has a number besides, by which `calls_of` finds the calls between some of them, numbered
    /// as they are.
    fn trimmed(&self, nodes: Vec<Node>, calls_of: impl Fn(&[Node]) -> Vec<Call>, options: &GraphOptions) -> Graph {
        let mut nodes = nodes;
        let nodes_total = nodes.len();
        // The total is what is left after filters.
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
            // What ran through the dropped frames is now residual, which may change the order.
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

    /// The calls between some frames, in no order; numbered as they are.
    fn calls(&self, nodes: &[Node]) -> Vec<Call> {
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

    /// The calls of both sides, of a pass over the samples.
    fn walked_calls(&self, number: &[u32], n_nodes: usize) -> (Calls, Vec<CallSum>) {
        let side = |base| self.side_calls(base, number, n_nodes);
        let ((mut all, mut sums), (new_calls, new)) = self.sides(side);
        for (&(caller, callee), sum) in new_calls.pairs().iter().zip(new) {
            let id = all.id(caller, callee);
            sums.resize(all.pairs().len(), CallSum::default());
            let both = &mut sums[id];
            both.weight.new = sum.weight.new;
            both.residual |= sum.residual;
            both.called |= sum.called;
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
                            // As in pprof, what a call is like is seen where it first occurs in a stack.
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

    /// Orders nodes by rank; renumbers the calls' ends.
    fn order(&self, nodes: &mut Vec<Node>, calls: &mut [Call], rank: Rank) {
        // A sum of floats depends on its order, so it must not depend on a hash map.
        calls.sort_unstable_by_key(|c| (Reverse(magnitude(c.weight)), c.caller, c.callee));
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
            // Of ways to one frame, the one that costs most; then the one that was met first.
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

    /// Orders calls by weight, then by the names of their ends.
    fn order_calls(&self, nodes: &[Node], calls: &mut [Call]) {
        let name = |i: u32| self.frames().order(nodes[i as usize].1.frame);
        calls.sort_unstable_by(|a, b| {
            let weight = |c: &Call| Reverse(magnitude(c.weight));
            weight(a)
                .cmp(&weight(b))
                .then_with(|| (name(a.caller), name(a.callee)).cmp(&(name(b.caller), name(b.callee))))
        });
    }
}

/// pprof's score of each node: its cum times the entropy of the costs that come in and go out, plus its flat. A node
/// where stacks begin or end has the entropy 1 on that end.
fn entropy(nodes: &[Node], calls: &[Call]) -> Vec<u64> {
    #[derive(Clone, Copy, Default)]
    struct End {
        calls: u32,
        total: u64,
        entropy: f64,
    }
    impl End {
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
    let mut into = vec![End::default(); nodes.len()];
    let mut out: Vec<End> = nodes.iter().map(|(_, n)| End { total: magnitude(n.flat), ..End::default() }).collect();
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
    let score = |(i, (_, node)): (usize, &Node)| {
        let flat = magnitude(node.flat);
        out[i].add(flat);
        (((into[i].score() + out[i].score()) * magnitude(node.cum) as f64) as u64).saturating_add(flat)
    };
    nodes.iter().enumerate().map(score).collect()
}

/// How many calls are looked at to find redundant residual ones. 80 frames that all call each other take a
/// hundredth of it.
const MAX_LOOKS: usize = 50_000_000;

/// Removes residual calls whose callee the caller also reaches in another way: for each node, from the lightest of
/// its incoming calls up to the first that is not residual. In graphs of many thousands of calls the search stops at
/// [`MAX_LOOKS`]; calls that then stay are redundant, not wrong.
fn remove_redundant(n_nodes: usize, calls: &mut Vec<Call>) {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); n_nodes];
    for (i, c) in calls.iter().enumerate() {
        into[c.callee as usize].push(i);
    }
    let mut gone = vec![false; calls.len()];
    let (mut seen, mut open) = (vec![NONE; n_nodes], Vec::new());
    let mut looks = 0;
    for node in (0..n_nodes).rev() {
        // Calls are ordered by weight.
        for &i in into[node].iter().rev().take_while(|&&i| calls[i].residual) {
            // From the callee upwards, without this call, until its caller is found.
            seen[node] = i as u32;
            open.clear();
            open.push(node);
            while let Some(n) = open.pop().filter(|_| !gone[i] && looks < MAX_LOOKS) {
                for &up in &into[n] {
                    looks += 1;
                    if up == i || gone[up] {
                        continue;
                    }
                    let caller = calls[up].caller as usize;
                    if seen[caller] != i as u32 {
                        seen[caller] = i as u32;
                        open.push(caller);
                    }
                    gone[i] |= calls[up].caller == calls[i].caller;
                }
            }
        }
    }
    let mut i = 0;
    calls.retain(|_| {
        i += 1;
        !gone[i - 1]
    });
}
