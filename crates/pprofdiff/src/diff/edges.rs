//! Callers and callees: what `peek` and `tree` show.
//!
//! An edge is an ordered pair of frames that follow each other in a stack; it counts once per sample
//! however often the pair recurs, and a frame that calls itself has no edge. Edges are interned by
//! their pair of frame indexes; "once" is a stamp, as in `top`.

use std::sync::Arc;

use hashbrown::HashMap;

use super::pattern;
use super::top::{Sort, TopRow};
use super::{Frames, Pair, Summary, View};
use crate::error::Result;

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

/// Nodes with their callers and callees.
#[derive(Debug, Clone)]
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

type Sums = HashMap<u64, (u32, i64), foldhash::fast::RandomState>;

impl View {
    /// Callers and callees of the frames whose label (as [`Frames::label`]) matches `pattern`, or of all.
    ///
    /// # Errors
    /// A bad regular expression.
    pub fn edges(&self, pattern: Option<&str>, sort: Sort) -> Result<Edges> {
        let regex = pattern.map(|p| pattern::compile("peek", p)).transpose()?;
        let top = self.top(sort);
        let (base, new) = self.sides(|base| self.edge_sums(base));
        let mut weights: HashMap<u64, Pair, foldhash::fast::RandomState> = HashMap::default();
        for (edge, (_, sum)) in base {
            weights.entry(edge).or_default().base = sum;
        }
        for (edge, (_, sum)) in new {
            weights.entry(edge).or_default().new = self.scale.apply(sum);
        }
        let mut nodes = top.rows;
        if let Some(regex) = regex {
            nodes.retain(|row| regex.is_match(self.frames.label(row.frame).as_bytes()));
        }
        let mut rank = vec![u32::MAX; self.frames.len()];
        for (i, row) in nodes.iter().enumerate() {
            rank[row.frame as usize] = i as u32;
        }
        let mut edges = Vec::new();
        for (edge, weight) in weights {
            let (caller, callee) = ((edge >> 32) as u32, edge as u32);
            edges.push(Edge { node: callee, other: caller, relation: Relation::Caller, weight });
            edges.push(Edge { node: caller, other: callee, relation: Relation::Callee, weight });
        }
        edges.retain(|e| rank[e.node as usize] != u32::MAX);
        edges.sort_unstable_by(|a, b| {
            let key =
                |e: &Edge| (rank[e.node as usize], e.relation, std::cmp::Reverse(e.weight.delta().unsigned_abs()));
            key(a).cmp(&key(b)).then_with(|| self.frames.order(a.other).cmp(&self.frames.order(b.other)))
        });
        Ok(Edges { summary: self.summary().clone(), frames: self.frames.clone(), nodes, edges })
    }

    fn edge_sums(&self, base: bool) -> Sums {
        let mut sums = Sums::default();
        let mut stamp = 0;
        self.each_stack(base, |value, stack, _, _| {
            stamp += 1;
            for pair in stack.windows(2).filter(|pair| pair[0] != pair[1]) {
                let edge = u64::from(pair[0]) << 32 | u64::from(pair[1]);
                let (last, sum) = sums.entry(edge).or_default();
                if *last != stamp {
                    *last = stamp;
                    *sum += value;
                }
            }
        });
        sums
    }
}
