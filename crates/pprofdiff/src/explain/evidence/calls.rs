//! Rows as a tree of calls: since rows are sorted by their frames, all that lies below a call is a range of them.
//!
//! Beside the tree of all rows there is one for each label, of the rows that have it. So that ranges are ranges there, too,
//! these rows are listed once more: a **member** is a place in the list of all rows and, after them, of those of each
//! label. Every set of the search is a few ranges of members.

use std::ops::Range;

use super::rows::Rows;
use super::sets::grouped;
use crate::diff::edges::Calls;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::work::Pace;

/// A frame at a place in the stacks of neighbouring rows.
pub(in crate::explain) struct Node {
    pub frame: u32,
    /// The node of its caller, or [`NONE`].
    pub parent: u32,
    /// The members that run through it.
    start: u32,
    end: u32,
}

impl Node {
    fn members(&self) -> Range<u32> {
        self.start..self.end
    }

    /// The first member after those that run through it.
    pub(in crate::explain) fn end(&self) -> u32 {
        self.end
    }
}

/// What is known of a node of all rows.
pub(in crate::explain) struct Place {
    /// The number of the call that leads to it, where that is the first such call of the stack and a candidate; or [`NONE`].
    call: u32,
    /// True if its frame is the program's and no system frame.
    pub is_own: bool,
    /// True if it is such a frame, the first of its kind in the stack.
    is_first: bool,
    /// True of a system function that another one calls, below a function of the program: the first of them says what is
    /// called, so the call counts for the stacks alone that come back to the program.
    pub is_inner: bool,
}

/// The tree of all rows, and those of labels.
pub(in crate::explain) struct CallTree {
    /// The row of each member.
    pub members: Vec<u32>,
    /// Those of each label.
    pub of_labels: Vec<Range<u32>>,
    /// In depth-first order: those of the tree of all rows, then those of labels.
    pub nodes: Vec<Node>,
    /// Of those of all rows.
    pub places: Vec<Place>,
    /// The deepest node of each member, or [`NONE`].
    pub deepest: Vec<u32>,
    /// The nodes of the tree of each label.
    nodes_of_labels: Vec<Range<u32>>,
    /// (caller, callee) by number of a call.
    pub edges: Vec<(u32, u32)>,
}

impl CallTree {
    pub(in crate::explain) fn new(rows: &Rows) -> CallTree {
        let n = rows.n_front();
        let mut tree = CallTree {
            members: (0..n as u32).collect(),
            of_labels: Vec::with_capacity(rows.labels.len()),
            nodes: Vec::new(),
            places: Vec::new(),
            deepest: Vec::new(),
            nodes_of_labels: Vec::new(),
            edges: Vec::new(),
        };
        tree.add_plain(rows);
        tree.list_labels(rows, n);
        tree.deepest.resize(tree.members.len(), NONE);
        for label in 0..tree.of_labels.len() {
            tree.add_label(tree.of_labels[label].clone());
        }
        tree
    }

    /// True if ranges of members are of the same rows, in the same order.
    pub(super) fn are_same_rows(&self, a: &[Range<u32>], b: &[Range<u32>]) -> bool {
        let members = |range: &Range<u32>| &self.members[range.start as usize..range.end as usize];
        let (mut of_a, mut of_b) = (a.iter().map(members), b.iter().map(members));
        let (mut left, mut right): (&[u32], &[u32]) = (&[], &[]);
        loop {
            left = if left.is_empty() { of_a.next().unwrap_or_default() } else { left };
            right = if right.is_empty() { of_b.next().unwrap_or_default() } else { right };
            let common = left.len().min(right.len());
            if common == 0 || left[..common] != right[..common] {
                return left.is_empty() && right.is_empty();
            }
            (left, right) = (&left[common..], &right[common..]);
        }
    }

    /// The tree of all rows.
    fn add_plain(&mut self, rows: &Rows) {
        // How many frames each row begins with that the one before has, too: all others are nodes.
        let mut last: &[u32] = &[];
        let common_of = |row: usize| {
            let stack = rows.stack(row);
            let common = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
            last = stack;
            common as u32
        };
        let common_of_rows: Vec<u32> = (0..self.members.len()).map(common_of).collect();
        let frames: usize = (0..self.members.len()).map(|row| rows.stack(row).len()).sum();
        let n_nodes = frames - common_of_rows.iter().map(|&common| common as usize).sum::<usize>();
        self.nodes.reserve_exact(n_nodes);
        self.places.reserve_exact(n_nodes);
        self.deepest.reserve_exact(self.members.len());
        let mut calls = Calls::below(rows.names.len());
        // How often each frame, and each call, is on the way to the last row, whose nodes are `way`.
        let (mut of_frames, mut of_edges) = (vec![0u32; rows.names.len()], Vec::new());
        let (mut way, mut pace): (Vec<(u32, u32)>, _) = (Vec::new(), Pace::default());
        for member in 0..self.members.len() as u32 {
            let stack = rows.stack(member as usize);
            let common = common_of_rows[member as usize] as usize;
            pace.step(1 + stack.len() - common);
            for (node, edge) in way.drain(common..) {
                let node = &mut self.nodes[node as usize];
                node.end = member;
                of_frames[node.frame as usize] -= 1;
                if edge != NONE {
                    of_edges[edge as usize] -= 1;
                }
            }
            for (depth, &frame) in stack.iter().enumerate().skip(common) {
                let (mut edge, mut call) = (NONE, NONE);
                if let Some(&above) = depth.checked_sub(1).and_then(|above| stack.get(above)) {
                    edge = calls.id(above, frame) as u32;
                    of_edges.resize(of_edges.len().max(edge as usize + 1), 0u32);
                    call = if of_edges[edge as usize] == 0 { edge } else { NONE };
                    of_edges[edge as usize] += 1;
                }
                let times = &mut of_frames[frame as usize];
                let is_own = !rows.is_system(frame);
                let is_first = *times == 0 && is_own;
                *times += 1;
                let parent = way.last().map_or(NONE, |above| above.0);
                way.push((self.nodes.len() as u32, edge));
                self.nodes.push(Node { frame, parent, start: member, end: 0 });
                self.places.push(Place { call, is_own, is_first, is_inner: false });
            }
            self.deepest.push(way.last().map_or(NONE, |above| above.0));
        }
        let end = self.members.len() as u32;
        way.into_iter().for_each(|(node, _)| self.nodes[node as usize].end = end);
        self.number_calls(calls.into_pairs(), rows.names.len());
        self.mark_inner();
    }

    /// Numbers calls in the order of their names.
    fn number_calls(&mut self, pairs: Vec<(u32, u32)>, n_names: usize) {
        // By callee, and then by caller, which keeps the order of callees.
        let by_callee = grouped(n_names, || pairs.iter().map(|pair| pair.1 as usize).zip(0..)).0;
        let by_caller = || by_callee.iter().map(|&call| (pairs[call as usize].0 as usize, call));
        let order = grouped(n_names, by_caller).0;
        let mut number = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &old)| number[old as usize] = new);
        for place in self.places.iter_mut().filter(|place| place.call != NONE) {
            place.call = number[place.call as usize];
        }
        self.edges = order.into_iter().map(|call| pairs[call as usize]).collect();
    }

    /// Marks the calls among system functions below the program's.
    fn mark_inner(&mut self) {
        // True below a function of the program.
        let mut is_below: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for i in 0..self.nodes.len() {
            let of_parent = match self.nodes[i].parent {
                NONE => None,
                parent => Some((is_below[parent as usize], self.places[parent as usize].is_own)),
            };
            is_below.push(of_parent.is_some_and(|(below, own)| below || own));
            self.places[i].is_inner = of_parent == Some((true, false)) && !self.places[i].is_own;
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
            let (mut at, mut steps) = (self.deepest[row as usize], 1);
            while at != known && at != NONE {
                steps += 1;
                if self.places[at as usize].is_first {
                    new.push(at);
                }
                at = self.nodes[at as usize].parent;
            }
            pace.step(steps);
            for plain in new.drain(..).rev() {
                let parent = way.last().map_or(NONE, |&(_, node)| node);
                way.push((plain, self.nodes.len() as u32));
                let frame = self.nodes[plain as usize].frame;
                self.nodes.push(Node { frame, parent, start: member, end: 0 });
            }
            self.deepest[member as usize] = way.last().map_or(NONE, |&(_, node)| node);
        }
        way.into_iter().for_each(|(_, node)| self.nodes[node as usize].end = members.end);
        self.nodes_of_labels.push(first..self.nodes.len() as u32);
    }

    /// Shows the members below each function of the program: the function, members, the node; in the order of members.
    pub(in crate::explain) fn for_each_function(&self, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for (i, _) in (0..).zip(&self.places).filter(|(_, place)| place.is_first) {
            let node = &self.nodes[i as usize];
            each(node.frame, node.members(), i);
        }
    }

    /// Shows those below each call: the number of the call, members, the node; in the order of members.
    pub(in crate::explain) fn for_each_call(&self, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for (i, (node, place)) in (0..).zip(self.nodes.iter().zip(&self.places)) {
            if place.call != NONE && !place.is_inner {
                each(place.call, node.members(), i);
            }
            // The inner calls that come back to the program here.
            let mut above = if place.is_own { node.parent } else { NONE };
            while let Some(inner) = self.places.get(above as usize).filter(|above| above.is_inner) {
                if inner.call != NONE {
                    each(inner.call, node.members(), above);
                }
                above = self.nodes[above as usize].parent;
            }
        }
    }

    /// Shows those of a label that are below each function, likewise.
    pub(in crate::explain) fn for_each_function_of(&self, label: usize, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for i in self.nodes_of_labels[label].clone() {
            each(self.nodes[i as usize].frame, self.nodes[i as usize].members(), i);
        }
    }
}
