//! Rows as a tree of calls: since rows are sorted by their frames, all that lies below a call is a range of them.
//!
//! Beside the tree of all rows there is one for each label, of the rows that have it. So that ranges are ranges there, too,
//! these rows are listed once more: a **member** is a place in the list of all rows and, after them, of those of each
//! label. Every set of the search is a few ranges of members.

use std::ops::Range;

use super::rows::Rows;
use crate::diff::edges::Calls;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::work::Pace;

/// A frame at a place in the stacks of neighbouring rows.
pub(super) struct Node {
    pub frame: u32,
    /// The node of its caller, or [`NONE`].
    pub parent: u32,
    /// The members that run through it.
    pub start: u32,
    pub end: u32,
    /// The number of the call that leads to it, [`NONE`] at the root; and whether this is the first such call of the stack.
    edge: u32,
    is_first_edge: bool,
    /// True if its frame is no system frame, and the first of its kind in the stack.
    is_first: bool,
}

impl Node {
    pub(super) fn members(&self) -> Range<u32> {
        self.start..self.end
    }
}

/// The tree of all rows, and those of labels.
pub(super) struct CallTree {
    /// The row of each member.
    pub members: Vec<u32>,
    /// Those of each label.
    pub of_labels: Vec<Range<u32>>,
    /// In depth-first order: those of the tree of all rows, then those of labels.
    pub nodes: Vec<Node>,
    /// How many are of all rows.
    n_plain: usize,
    /// The deepest node of each member, or [`NONE`].
    pub deepest: Vec<u32>,
    /// The nodes of the tree of each label.
    nodes_of_labels: Vec<Range<u32>>,
    /// (caller, callee) by number of a call.
    pub edges: Vec<(u32, u32)>,
}

impl CallTree {
    pub(super) fn new(rows: &Rows) -> CallTree {
        let n = rows.n_front();
        let mut tree = CallTree {
            members: (0..n as u32).collect(),
            of_labels: Vec::with_capacity(rows.labels.len()),
            nodes: Vec::new(),
            n_plain: 0,
            deepest: Vec::new(),
            nodes_of_labels: Vec::new(),
            edges: Vec::new(),
        };
        tree.add_plain(rows);
        tree.n_plain = tree.nodes.len();
        tree.list_labels(rows, n);
        tree.deepest.resize(tree.members.len(), NONE);
        for label in 0..tree.of_labels.len() {
            tree.add_label(tree.of_labels[label].clone());
        }
        tree
    }

    /// The tree of all rows.
    fn add_plain(&mut self, rows: &Rows) {
        let mut calls = Calls::below(rows.names.len());
        // How often each frame, and each call, is on the way to the last row, whose nodes are `way`.
        let (mut of_frames, mut of_edges) = (vec![0u32; rows.names.len()], Vec::new());
        let (mut way, mut pace): (Vec<u32>, _) = (Vec::new(), Pace::default());
        let mut last: &[u32] = &[];
        for member in 0..self.members.len() as u32 {
            let stack = rows.stack(member as usize);
            let common = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
            pace.step(1 + stack.len() - common);
            for node in way.drain(common..) {
                let node = &mut self.nodes[node as usize];
                node.end = member;
                of_frames[node.frame as usize] -= 1;
                if node.edge != NONE {
                    of_edges[node.edge as usize] -= 1;
                }
            }
            for (depth, &frame) in stack.iter().enumerate().skip(common) {
                let (mut edge, mut is_first_edge) = (NONE, false);
                if let Some(&above) = depth.checked_sub(1).and_then(|above| stack.get(above)) {
                    edge = calls.id(above, frame) as u32;
                    of_edges.resize(of_edges.len().max(edge as usize + 1), 0u32);
                    is_first_edge = of_edges[edge as usize] == 0;
                    of_edges[edge as usize] += 1;
                }
                let times = &mut of_frames[frame as usize];
                let is_first = *times == 0 && !rows.is_system(frame);
                *times += 1;
                let parent = way.last().copied().unwrap_or(NONE);
                way.push(self.nodes.len() as u32);
                self.nodes.push(Node { frame, parent, start: member, end: 0, edge, is_first_edge, is_first });
            }
            self.deepest.push(way.last().copied().unwrap_or(NONE));
            last = stack;
        }
        let end = self.members.len() as u32;
        way.into_iter().for_each(|node| self.nodes[node as usize].end = end);
        self.number_edges(calls.into_pairs());
        self.cut_system(rows);
    }

    /// Numbers calls in the order of their names.
    fn number_edges(&mut self, pairs: Vec<(u32, u32)>) {
        let mut order: Vec<((u32, u32), u32)> = pairs.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut number = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &(_, old))| number[old as usize] = new);
        for node in self.nodes.iter_mut().filter(|node| node.edge != NONE) {
            node.edge = number[node.edge as usize];
        }
        self.edges = order.into_iter().map(|(pair, _)| pair).collect();
    }

    /// Takes out the calls between system functions that no function of the program is below of: the first of them says
    /// what is called.
    fn cut_system(&mut self, rows: &Rows) {
        // A function of the program: at the node or below it; above it.
        let mut below: Vec<bool> = self.nodes.iter().map(|node| !rows.is_system(node.frame)).collect();
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(_, node)| node.parent != NONE) {
            below[node.parent as usize] |= below[i];
        }
        let mut above: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for i in 0..self.nodes.len() {
            let node = &self.nodes[i];
            let is_below = match node.parent {
                NONE => false,
                parent => above[parent as usize] || !rows.is_system(self.nodes[parent as usize].frame),
            };
            above.push(is_below);
            let is_called_by_system = node.parent != NONE && rows.is_system(self.nodes[node.parent as usize].frame);
            if is_called_by_system && is_below && !below[i] {
                self.nodes[i].is_first_edge = false;
            }
        }
    }

    /// Lists the rows of each label.
    fn list_labels(&mut self, rows: &Rows, n: usize) {
        let labels_of = |row: u32| &rows.label_sets[rows.rows[row as usize].labels as usize];
        let mut next = vec![0u32; rows.labels.len()];
        (0..n as u32).flat_map(labels_of).for_each(|&label| next[label as usize] += 1);
        let mut end = n as u32;
        for next in &mut next {
            self.of_labels.push(end..end + *next);
            end += std::mem::replace(next, end);
        }
        self.members.resize(end as usize, 0);
        for row in 0..n as u32 {
            for &label in labels_of(row) {
                let next = &mut next[label as usize];
                self.members[*next as usize] = row;
                *next += 1;
            }
        }
    }

    /// The tree of a label's rows: what is found with a function.
    fn add_label(&mut self, members: Range<u32>) {
        let first = self.nodes.len() as u32;
        // The nodes of the way to the last row that are in its tree: the plain one, and this one.
        let (mut way, mut new): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut pace = Pace::default();
        for member in members.clone() {
            let row = self.members[member as usize];
            while let Some(&(plain, node)) = way.last()
                && self.nodes[plain as usize].end <= row
            {
                self.nodes[node as usize].end = member;
                way.pop();
            }
            // From the deepest up to the first that is known.
            let known = way.last().map_or(NONE, |&(plain, _)| plain);
            let mut at = self.deepest[row as usize];
            while at != known && at != NONE {
                let node = &self.nodes[at as usize];
                if node.is_first {
                    new.push(at);
                }
                at = node.parent;
            }
            pace.step(1 + new.len());
            for plain in new.drain(..).rev() {
                let parent = way.last().map_or(NONE, |&(_, node)| node);
                way.push((plain, self.nodes.len() as u32));
                let frame = self.nodes[plain as usize].frame;
                let (edge, is_first_edge, is_first) = (NONE, false, true);
                self.nodes.push(Node { frame, parent, start: member, end: 0, edge, is_first_edge, is_first });
            }
            self.deepest[member as usize] = way.last().map_or(NONE, |&(_, node)| node);
        }
        way.into_iter().for_each(|(_, node)| self.nodes[node as usize].end = members.end);
        self.nodes_of_labels.push(first..self.nodes.len() as u32);
    }

    /// The members below each function of the program: (function, members), in the order of members.
    pub(super) fn functions(&self) -> impl Iterator<Item = (u32, Range<u32>, u32)> {
        let plain = self.nodes[..self.n_plain].iter().zip(0..);
        plain.filter(|(node, _)| node.is_first).map(|(node, i)| (node.frame, node.members(), i))
    }

    /// Those below each call.
    pub(super) fn calls(&self) -> impl Iterator<Item = (u32, Range<u32>, u32)> {
        let plain = self.nodes[..self.n_plain].iter().zip(0..);
        plain.filter(|(node, _)| node.is_first_edge).map(|(node, i)| (node.edge, node.members(), i))
    }

    /// Those of a label that are below each function.
    pub(super) fn functions_of(&self, label: usize) -> impl Iterator<Item = (u32, Range<u32>, u32)> {
        let of_label = self.nodes_of_labels[label].clone();
        of_label.map(|i| (self.nodes[i as usize].frame, self.nodes[i as usize].members(), i))
    }
}
