//! Callers and callees: what `peek` and `tree` show.
//!
//! An edge is an ordered pair of frames that follow each other in a stack; it counts once per sample
//! however often the pair recurs, and a frame that calls itself has no edge. Edges are numbered by
//! their pair of frame indexes (`Calls`); "once" is a stamp, as in `top`.

use std::cmp::Reverse;
use std::sync::Arc;

use super::pattern;
use super::selection::mean;
use super::top::{Sort, Top, TopRow};
use super::{Frames, Measure, Pair, Summary};
use crate::Result;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{FastState, HashMap};
use pprofdiff_profile::work::{Pace, paced};

/// Which side of a node the other end of an edge is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The other frame calls the node.
    Caller,
    /// The node calls the other frame.
    Callee,
}

impl Relation {
    /// The relation as results spell it.
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
    /// The frame that is looked at.
    pub node: u32,
    /// The frame at the other end.
    pub other: u32,
    /// Which of the two calls.
    pub relation: Relation,
    /// What the samples that take this edge cost.
    pub weight: Pair,
}

impl Edge {
    /// Of which nothing is known yet.
    const EMPTY: Edge = {
        let weight = Pair { base: 0, new: 0 };
        Edge { node: 0, other: 0, relation: Relation::Caller, weight }
    };
}

/// Nodes with their callers and callees.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Edges {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The frames that nodes and edges refer to.
    pub frames: Arc<Frames>,
    /// The nodes, ordered as in the table of frames.
    pub nodes: Vec<TopRow>,
    /// Grouped by node in the order of `nodes`; callers before callees; by |delta| descending, then name.
    pub edges: Vec<Edge>,
}

/// Ordered pairs of numbers below a bound, numbered in the order in which they come.
///
/// Most callees have the same caller as the last time, so that one is checked before the table.
pub(crate) struct Calls {
    numbers: Interner<(u32, u32), FastState>,
    /// For each callee: its last caller, and the number of the two.
    last: Vec<(u32, u32)>,
}

impl Calls {
    pub(crate) fn below(bound: usize) -> Calls {
        Calls { numbers: Interner::default(), last: vec![(u32::MAX, 0); bound] }
    }

    /// The pairs (caller, callee), by their numbers.
    pub(super) fn pairs(&self) -> &[(u32, u32)] {
        &self.numbers.values
    }

    /// The same, when no more are to be numbered.
    pub(crate) fn into_pairs(self) -> Vec<(u32, u32)> {
        self.numbers.values
    }

    #[inline]
    pub(crate) fn id(&mut self, caller: u32, callee: u32) -> usize {
        let last = &mut self.last[callee as usize];
        if last.0 != caller {
            *last = (caller, self.numbers.number((caller, callee)));
        }
        last.1 as usize
    }
}

impl Measure {
    /// Callers and callees of the frames whose label (as [`Frames::label`]) matches `pattern`, or of all.
    ///
    /// # Errors
    /// An invalid regular expression.
    pub fn edges(&self, pattern: Option<&str>, sort: Sort) -> Result<Edges> {
        let regex = pattern.map(|p| pattern::compile("peek", p)).transpose()?;
        let mut top = self.top(sort);
        if let Some(regex) = regex {
            top.rows.retain(|row| regex.is_match(self.frames().label(row.frame).as_bytes()));
        }
        Ok(self.edges_of(top))
    }

    /// Callers and callees of the frames of a table, which is made already.
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
        // Put beside those of the same node and relation, which are few, so only these are compared.
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
        paced(&all).flat_map(|&call| ends_of(call)).for_each(|(group, _)| next[group + 1] += 1);
        (1..next.len()).for_each(|group| next[group] += next[group - 1]);
        let mut edges = vec![Edge::EMPTY; next.last().copied().unwrap_or(0)];
        for (&call, weight) in paced(all.iter().zip(weights)) {
            for (group, edge) in ends_of(call) {
                edges[next[group]] = Edge { weight, ..edge };
                next[group] += 1;
            }
        }
        let mut pace = Pace::default();
        for group in edges.chunk_by_mut(|a, b| (a.node, a.relation) == (b.node, b.relation)) {
            group.sort_unstable_by(|a, b| {
                pace.step(1);
                let size = |e: &Edge| Reverse(e.weight.delta().unsigned_abs());
                size(a).cmp(&size(b)).then_with(|| self.frames().order(a.other).cmp(&self.frames().order(b.other)))
            });
        }
        Edges { summary: self.summary().clone(), frames: self.frames().clone(), nodes, edges }
    }

    /// All edges that samples take, (caller, callee), and the exact sums of each.
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

    /// One side's edges, and the sum of each.
    fn edge_sums(&self, base: bool) -> (Calls, Vec<i64>) {
        let mut calls = Calls::below(self.frames().len());
        // The last sample that took the edge, and the sum.
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
