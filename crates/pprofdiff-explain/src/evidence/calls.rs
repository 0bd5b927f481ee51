//! Rows as a tree of calls. Rows are sorted by their frames, so everything below a call is a range of rows.
//!
//! There is one tree of all rows, and one tree per label of the rows with this label. The rows with labels are listed
//! again, so that the rows of each label are a range as well: a **member** is a position in the list of all rows,
//! followed by the rows of each label. Every set of the search consists of a few ranges of members.

use std::ops::Range;

use super::rows::StackRows;
use super::sets::grouped;
use pprofdiff::shared::Calls;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::columns::NONE;

/// A frame at a position in the stacks of consecutive rows.
pub(crate) struct CallNode {
    pub frame: u32,
    /// The caller's node, or [`NONE`].
    pub parent: u32,
    /// The range of members that contain it.
    start: u32,
    end: u32,
}

impl CallNode {
    fn members(&self) -> Range<u32> {
        self.start..self.end
    }

    /// Returns the end of the range of members that contain it.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }
}

/// Properties of a node in the tree of all rows.
pub(crate) struct NodeInfo {
    /// The number of the call that leads to the node. [`NONE`] for a root, and if the stack contains the same call
    /// above, because a recursive call counts once per stack.
    call: u32,
    /// True if the frame is not a system frame.
    pub is_own: bool,
    /// True if `is_own` holds, and this is the frame's first occurrence in the stack.
    is_first: bool,
    /// True for a call between two system functions below a function of the program. Only the first system function
    /// says what the program calls. Therefore this call counts only for stacks that return to the program below it.
    pub is_inner: bool,
}

/// The tree of all rows, and the trees of labels.
pub(crate) struct CallTree {
    /// The row of each member.
    pub members: Vec<u32>,
    /// The members of each label.
    pub label_ranges: Vec<Range<u32>>,
    /// The nodes in depth-first order: first the tree of all rows, then the trees of labels.
    pub nodes: Vec<CallNode>,
    /// The properties of the nodes in the tree of all rows.
    pub places: Vec<NodeInfo>,
    /// The deepest node of each member, or [`NONE`].
    pub deepest: Vec<u32>,
    /// The nodes in the tree of each label.
    label_nodes: Vec<Range<u32>>,
    /// The calls by number: (caller, callee).
    pub edges: Vec<(u32, u32)>,
}

impl CallTree {
    pub(crate) fn new(rows: &StackRows) -> CallTree {
        let n = rows.n_front();
        let mut tree = CallTree {
            members: (0..n as u32).collect(),
            label_ranges: Vec::with_capacity(rows.labels.len()),
            nodes: Vec::new(),
            places: Vec::new(),
            deepest: Vec::new(),
            label_nodes: Vec::new(),
            edges: Vec::new(),
        };
        tree.add_plain(rows);
        tree.list_labels(rows, n);
        tree.deepest.resize(tree.members.len(), NONE);
        for label in 0..tree.label_ranges.len() {
            tree.add_label(tree.label_ranges[label].clone());
        }
        tree
    }

    /// Returns true if two lists of ranges contain the same rows in the same order.
    pub(super) fn are_same_rows(&self, a: &[Range<u32>], b: &[Range<u32>]) -> bool {
        let members = |range: &Range<u32>| &self.members[range.start as usize..range.end as usize];
        let (mut a_members, mut b_members) = (a.iter().map(members), b.iter().map(members));
        let (mut left, mut right): (&[u32], &[u32]) = (&[], &[]);
        loop {
            left = if left.is_empty() { a_members.next().unwrap_or_default() } else { left };
            right = if right.is_empty() { b_members.next().unwrap_or_default() } else { right };
            let common = left.len().min(right.len());
            if common == 0 || left[..common] != right[..common] {
                return left.is_empty() && right.is_empty();
            }
            (left, right) = (&left[common..], &right[common..]);
        }
    }

    /// Builds the tree of all rows.
    fn add_plain(&mut self, rows: &StackRows) {
        // The number of frames that each row shares with its predecessor. All remaining frames become nodes.
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
        let is_system: Vec<bool> = rows.names.iter().map(|name| name.class.system).collect();
        // The number of occurrences of each frame and each call on the path to the last row. `path` lists its nodes.
        let (mut frame_uses, mut call_uses) = (vec![0u32; rows.names.len()], Vec::new());
        let (mut path, mut pace): (Vec<(u32, u32)>, _) = (Vec::new(), Checkpointer::default());
        for member in 0..self.members.len() as u32 {
            let stack = rows.stack(member as usize);
            let common = common_of_rows[member as usize] as usize;
            pace.step(1 + stack.len() - common);
            for (node, edge) in path.drain(common..) {
                let node = &mut self.nodes[node as usize];
                node.end = member;
                frame_uses[node.frame as usize] -= 1;
                if edge != NONE {
                    call_uses[edge as usize] -= 1;
                }
            }
            for (depth, &frame) in stack.iter().enumerate().skip(common) {
                let (mut edge, mut call) = (NONE, NONE);
                if let Some(&above) = depth.checked_sub(1).and_then(|above| stack.get(above)) {
                    edge = calls.id(above, frame) as u32;
                    if edge as usize >= call_uses.len() {
                        call_uses.resize(edge as usize + 1, 0u32);
                    }
                    call = if call_uses[edge as usize] == 0 { edge } else { NONE };
                    call_uses[edge as usize] += 1;
                }
                let times = &mut frame_uses[frame as usize];
                let is_own = !is_system[frame as usize];
                let is_first = *times == 0 && is_own;
                *times += 1;
                let parent = path.last().map_or(NONE, |above| above.0);
                path.push((self.nodes.len() as u32, edge));
                self.nodes.push(CallNode { frame, parent, start: member, end: 0 });
                self.places.push(NodeInfo { call, is_own, is_first, is_inner: false });
            }
            self.deepest.push(path.last().map_or(NONE, |above| above.0));
        }
        let end = self.members.len() as u32;
        path.into_iter().for_each(|(node, _)| self.nodes[node as usize].end = end);
        self.number_calls(calls.into_pairs(), rows.names.len());
        self.mark_inner();
    }

    /// Numbers calls in the order of their names.
    fn number_calls(&mut self, pairs: Vec<(u32, u32)>, n_names: usize) {
        // Sorts by callee and then, stably, by caller.
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

    /// Marks calls between system functions below the program.
    fn mark_inner(&mut self) {
        // True if the node is below a function of the program.
        let mut is_below: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for i in 0..self.nodes.len() {
            let parent = match self.nodes[i].parent {
                NONE => None,
                parent => Some((is_below[parent as usize], self.places[parent as usize].is_own)),
            };
            is_below.push(parent.is_some_and(|(below, is_own)| below || is_own));
            self.places[i].is_inner = parent == Some((true, false)) && !self.places[i].is_own;
        }
    }

    /// Lists the rows of each label.
    fn list_labels(&mut self, rows: &StackRows, n: usize) {
        let labels_of = |row: u32| &rows.label_sets[rows.rows[row as usize].labels as usize];
        let mut next = vec![0u32; rows.labels.len()];
        (0..n as u32).flat_map(labels_of).for_each(|&label| next[label as usize] += 1);
        let mut end = n as u32;
        for next in &mut next {
            self.label_ranges.push(end..end + *next);
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

    /// Builds the tree of a label's rows. It contains no system functions.
    fn add_label(&mut self, members: Range<u32>) {
        let first = self.nodes.len() as u32;
        // The path to the last row, as pairs of nodes: in the tree of all rows, and in this tree.
        let (mut path, mut new): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut pace = Checkpointer::default();
        for member in members.clone() {
            let row = self.members[member as usize];
            while let Some(&(plain, node)) = path.last()
                && self.nodes[plain as usize].end <= row
            {
                self.nodes[node as usize].end = member;
                path.pop();
            }
            // From the deepest node up to the first node on the current path.
            let last = path.last().map_or(NONE, |&(plain, _)| plain);
            let (mut node, mut steps) = (self.deepest[row as usize], 1);
            while node != last && node != NONE {
                steps += 1;
                if self.places[node as usize].is_first {
                    new.push(node);
                }
                node = self.nodes[node as usize].parent;
            }
            pace.step(steps);
            for plain in new.drain(..).rev() {
                let parent = path.last().map_or(NONE, |&(_, node)| node);
                path.push((plain, self.nodes.len() as u32));
                let frame = self.nodes[plain as usize].frame;
                self.nodes.push(CallNode { frame, parent, start: member, end: 0 });
            }
            self.deepest[member as usize] = path.last().map_or(NONE, |&(_, node)| node);
        }
        path.into_iter().for_each(|(_, node)| self.nodes[node as usize].end = members.end);
        self.label_nodes.push(first..self.nodes.len() as u32);
    }

    /// Calls `each` with the members below each function, except system functions: function, members, node. Members are
    /// in order. A recursive function counts once per stack.
    pub(crate) fn for_each_function(&self, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for (i, _) in (0..).zip(&self.places).filter(|(_, place)| place.is_first) {
            let node = &self.nodes[i as usize];
            each(node.frame, node.members(), i);
        }
    }

    /// Calls `each` with the members below each call: number of the call, members, node. Members are in order. Calls
    /// between system functions count only for members that return to the program.
    pub(crate) fn for_each_call(&self, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for (i, (node, place)) in (0..).zip(self.nodes.iter().zip(&self.places)) {
            if place.call != NONE && !place.is_inner {
                each(place.call, node.members(), i);
            }
            // Inner calls whose stacks return to the program at this node.
            let mut above = if place.is_own { node.parent } else { NONE };
            while let Some(inner) = self.places.get(above as usize).filter(|above| above.is_inner) {
                if inner.call != NONE {
                    each(inner.call, node.members(), above);
                }
                above = self.nodes[above as usize].parent;
            }
        }
    }

    /// Calls `each` with a label's members below each function, like [`CallTree::for_each_function`].
    pub(crate) fn for_each_function_of(&self, label: usize, mut each: impl FnMut(u32, Range<u32>, u32)) {
        for i in self.label_nodes[label].clone() {
            each(self.nodes[i as usize].frame, self.nodes[i as usize].members(), i);
        }
    }
}
