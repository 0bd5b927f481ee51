//! Callers and callees of frames, as `peek` and `tree` show them.
//!
//! An edge is an ordered pair of frames that follow each other in a stack. It counts once per sample, however often the
//! pair recurs, and a frame that calls itself has no edge. Edges are numbered by their pair of frame indexes (`Calls`).
//! A stamp of the last sample detects repeated edges, as in `top`.

use std::cmp::Reverse;
use std::sync::Arc;

use super::pattern;
use super::selection::mean;
use super::top::{Sort, Top, TopRow};
use super::{Frames, Measure, Pair, Summary};
use crate::Result;
use pprofdiff_profile::cancellation::{Checkpointer, checkpointed};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{FastState, HashMap};

/// The direction of an edge, as seen from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The node is the callee, and the second frame is its caller.
    Caller,
    /// The node is the caller, and the second frame is the callee.
    Callee,
}

impl Relation {
    /// Returns the relation as it is spelled in results.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Caller => "caller",
            Relation::Callee => "callee",
        }
    }
}

/// An edge, seen from one of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// The frame whose callers and callees are listed.
    pub node: u32,
    /// The second frame: a caller or a callee of the node.
    pub other: u32,
    /// The role of the second frame.
    pub relation: Relation,
    /// The sum of the samples that contain this edge.
    pub weight: Pair,
}

impl Edge {
    /// A placeholder that is overwritten.
    const EMPTY: Edge = {
        let weight = Pair { base: 0, new: 0 };
        Edge { node: 0, other: 0, relation: Relation::Caller, weight }
    };
}

/// Nodes with their callers and callees.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Edges {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The frames of the nodes and edges.
    pub frames: Arc<Frames>,
    /// The nodes, in the order of the table of frames.
    pub nodes: Vec<TopRow>,
    /// The edges, grouped by node in the order of `nodes`. In a group, callers come before callees, each sorted by
    /// |delta| descending, then by name.
    pub edges: Vec<Edge>,
}

/// Numbers ordered pairs by their first occurrence. The elements of a pair are below a bound.
///
/// Most calls have the same caller as the callee's previous call, so the previous caller is checked before the table.
#[doc(hidden)]
pub struct Calls {
    numbers: Interner<(u32, u32), FastState>,
    /// For each callee, its last caller and the number of this pair.
    last: Vec<(u32, u32)>,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

impl Calls {
    pub fn below(bound: usize) -> Calls {
        Calls { numbers: Interner::default(), last: vec![(u32::MAX, 0); bound] }
    }

    /// Returns the pairs (caller, callee), by their numbers.
    pub(super) fn pairs(&self) -> &[(u32, u32)] {
        &self.numbers.values
    }

    /// Consumes the table and returns the pairs (caller, callee), by their numbers.
    pub fn into_pairs(self) -> Vec<(u32, u32)> {
        self.numbers.values
    }

    #[inline]
    pub fn id(&mut self, caller: u32, callee: u32) -> usize {
        let last = &mut self.last[callee as usize];
        if last.0 != caller {
            *last = (caller, self.numbers.number((caller, callee)));
        }
        last.1 as usize
    }
}

impl Measure {
    /// Returns the callers and callees of all frames, or of the frames whose label ([`Frames::label`]) matches
    /// `pattern`.
    ///
    /// # Errors
    /// Fails on an invalid regular expression.
    pub fn edges(&self, pattern: Option<&str>, sort: Sort) -> Result<Edges> {
        let regex = pattern.map(|p| pattern::compile("peek", p)).transpose()?;
        let mut top = self.top(sort);
        if let Some(regex) = regex {
            top.rows.retain(|row| self.frames().is_match(&regex, row.frame));
        }
        Ok(self.edges_of(top))
    }

    /// Returns the callers and callees of the frames in a table.
    pub fn edges_of(&self, top: Top) -> Edges {
        let (all, mut weights) = self.edge_weights();
        weights.iter_mut().for_each(|weight| *weight = self.scales.apply(*weight));
        if let Some(counts) = self.counts() {
            let (calls, sums) = counts.edge_weights();
            let count_of: HashMap<(u32, u32), i64> = calls.into_iter().zip(sums.iter().map(|sum| sum.new)).collect();
            for (call, weight) in all.iter().zip(&mut weights) {
                weight.new = mean(weight.new, count_of.get(call).copied().unwrap_or(0));
            }
        }
        let nodes = top.rows;
        let mut rank = vec![u32::MAX; self.frames().len()];
        for (i, row) in nodes.iter().enumerate() {
            rank[row.frame as usize] = i as u32;
        }
        // Places each edge next to the other edges of its node and relation. These groups are small, so that sorting
        // within them is fast.
        let group_of = |node: u32, relation: Relation| {
            let place = rank[node as usize];
            (place != u32::MAX).then_some(2 * place as usize + usize::from(relation == Relation::Callee))
        };
        let ends_of = |(caller, callee): (u32, u32)| {
            let ends = [(callee, caller, Relation::Caller), (caller, callee, Relation::Callee)];
            ends.into_iter().filter_map(move |(node, other, relation)| {
                Some((group_of(node, relation)?, Edge { node, other, relation, weight: Pair::default() }))
            })
        };
        let mut next = vec![0; 2 * nodes.len() + 1];
        checkpointed(&all).flat_map(|&call| ends_of(call)).for_each(|(group, _)| next[group + 1] += 1);
        (1..next.len()).for_each(|group| next[group] += next[group - 1]);
        let mut edges = vec![Edge::EMPTY; next.last().copied().unwrap_or(0)];
        for (&call, weight) in checkpointed(all.iter().zip(weights)) {
            for (group, edge) in ends_of(call) {
                edges[next[group]] = Edge { weight, ..edge };
                next[group] += 1;
            }
        }
        let mut pace = Checkpointer::default();
        for group in edges.chunk_by_mut(|a, b| (a.node, a.relation) == (b.node, b.relation)) {
            group.sort_unstable_by(|a, b| {
                pace.step(1);
                let size = |e: &Edge| Reverse(e.weight.delta().unsigned_abs());
                size(a).cmp(&size(b)).then_with(|| self.frames().order(a.other).cmp(&self.frames().order(b.other)))
            });
        }
        Edges { summary: self.summary().clone(), frames: self.frames().clone(), nodes, edges }
    }

    /// Returns all edges that occur in samples as (caller, callee), and their exact sums.
    fn edge_weights(&self) -> (Vec<(u32, u32)>, Vec<Pair>) {
        if let Some(tree) = self.tree() {
            return tree.edge_sums(self.sample_type);
        }
        let ((mut all, base), (new_calls, new)) = self.sides(|base| self.edge_sums(base));
        let mut weights: Vec<Pair> = base.into_iter().map(|base| Pair { base, new: 0 }).collect();
        for (&(caller, callee), sum) in new_calls.pairs().iter().zip(new) {
            let id = all.id(caller, callee);
            weights.resize(all.pairs().len(), Pair::default());
            weights[id].new = sum;
        }
        (all.into_pairs(), weights)
    }

    /// Returns the edges of one side, and the sum of each.
    fn edge_sums(&self, base: bool) -> (Calls, Vec<i64>) {
        let mut calls = Calls::below(self.frames().len());
        // The stamp of the last sample with the edge, and the sum.
        let mut sums: Vec<(u32, i64)> = Vec::new();
        let mut stamp = 0;
        self.for_each_stack(base, |value, stack| {
            stamp += 1;
            for pair in stack.windows(2).filter(|pair| pair[0] != pair[1]) {
                let id = calls.id(pair[0], pair[1]);
                if id == sums.len() {
                    sums.push((0, 0));
                }
                let (last, sum) = &mut sums[id];
                if *last != stamp {
                    *last = stamp;
                    *sum += value;
                }
            }
        });
        (calls, sums.into_iter().map(|(_, sum)| sum).collect())
    }
}
