//! Rows as a tree of calls: since rows are sorted by their frames, all that lies below a call is a range of them.
//!
//! Beside the tree of all rows there is one for each label, of the rows that have it. So that ranges are ranges there, too,
//! these rows are listed once more: a **member** is a place in the list of all rows and, after them, of those of each
//! label. Every set of the search is a few ranges of members.

use std::ops::Range;

use super::rows::Rows;
use super::sets::grouped;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::work::{Pace, paced};

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
    /// The members that run through it.
    pub(super) fn members(&self) -> Range<u32> {
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
    pub call: u32,
    /// True if its frame is the program's and no system frame.
    pub is_own: bool,
    /// True if it is such a frame, the first of its kind in the stack.
    pub is_first: bool,
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
    /// With its nodes by what they are called.
    pub(super) fn new(rows: &Rows) -> (CallTree, Keyed) {
        let (n, n_names) = (rows.n_front(), rows.names.len());
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
        let [frames, led_to] = tree.number_calls(n_names);
        let has_inner = tree.mark_inner();
        let calls = tree.below_calls(led_to, has_inner);
        tree.list_labels(rows, n);
        tree.deepest.resize(tree.members.len(), NONE);
        for label in 0..tree.of_labels.len() {
            tree.add_label(tree.of_labels[label].clone());
        }
        let (label_keys, labels) = tree.below_labels(n_names);
        (tree, Keyed { frames, calls, labels, label_keys })
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
        // How often each frame is on the way to the last row, whose nodes are `way`.
        let mut of_frames = vec![0u32; rows.names.len()];
        let (mut way, mut pace): (Vec<u32>, _) = (Vec::new(), Pace::default());
        for member in 0..self.members.len() as u32 {
            let stack = rows.stack(member as usize);
            let common = common_of_rows[member as usize] as usize;
            pace.step(1 + stack.len() - common);
            for node in way.drain(common..) {
                let node = &mut self.nodes[node as usize];
                node.end = member;
                of_frames[node.frame as usize] -= 1;
            }
            let mut parent = way.last().copied().unwrap_or(NONE);
            for (depth, &frame) in stack.iter().enumerate().skip(common) {
                let times = &mut of_frames[frame as usize];
                // A call recurs only where its callee does.
                let has_call = |call: &[u32]| *times > 0 && stack[..depth].windows(2).any(|other| other == call);
                let is_candidate = depth > 0 && !has_call(&stack[depth - 1..=depth]);
                let is_own = !rows.is_system(frame);
                let is_first = *times == 0 && is_own;
                *times += 1;
                let number = self.nodes.len() as u32;
                way.push(number);
                self.nodes.push(Node { frame, parent, start: member, end: 0 });
                let call = if is_candidate { 0 } else { NONE };
                self.places.push(Place { call, is_own, is_first, is_inner: false });
                parent = number;
            }
            self.deepest.push(parent);
        }
        let end = self.members.len() as u32;
        way.into_iter().for_each(|node| self.nodes[node as usize].end = end);
    }

    /// Numbers calls in the order of their names. Gives the nodes of each frame, and of each call those that it leads to.
    fn number_calls(&mut self, n_names: usize) -> [Lists; 2] {
        let nodes = &self.nodes;
        let of_frames = Lists::new(n_names, || nodes.iter().map(|node| node.frame).zip(0..));
        // By callee, and then by caller, which keeps the order of callees.
        let frame = |node: u32| nodes[node as usize].frame;
        let caller = |node: u32| frame(nodes[node as usize].parent);
        let by_callee = || of_frames.places.iter().copied().filter(|&node| self.places[node as usize].call != NONE);
        let Lists { places: order, .. } = Lists::new(n_names, || by_callee().map(|node| (caller(node), node)));
        let (mut ends, mut last) = (Vec::new(), None);
        for (at, &node) in paced(order.iter().enumerate()) {
            let call = (caller(node), frame(node));
            if last.replace(call) != Some(call) {
                self.edges.push(call);
                ends.push(at);
            }
            self.places[node as usize].call = self.edges.len() as u32 - 1;
        }
        ends.push(order.len());
        [of_frames, Lists { places: order, ends }]
    }

    /// Marks the calls among system functions below the program's: true if there are any.
    fn mark_inner(&mut self) -> bool {
        let mut has_inner = false;
        // True below a function of the program.
        let mut is_below: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for i in 0..self.nodes.len() {
            let of_parent = match self.nodes[i].parent {
                NONE => None,
                parent => Some((is_below[parent as usize], self.places[parent as usize].is_own)),
            };
            is_below.push(of_parent.is_some_and(|(below, own)| below || own));
            self.places[i].is_inner = of_parent == Some((true, false)) && !self.places[i].is_own;
            has_inner |= self.places[i].is_inner;
        }
        has_inner
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

    /// By the number of a call the nodes whose members lie below it, in the order of members. `led_to` are those that it leads
    /// to: of an inner call members count that come back to the program.
    fn below_calls(&self, led_to: Lists, has_inner: bool) -> Lists {
        if !has_inner {
            return led_to;
        }
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(led_to.places.len());
        for (i, place) in paced((0..).zip(&self.places)) {
            if place.call != NONE && !place.is_inner {
                pairs.push((place.call, i));
            }
            // The inner calls that come back to the program here.
            let mut above = if place.is_own { self.nodes[i as usize].parent } else { NONE };
            while let Some(inner) = self.places.get(above as usize).filter(|above| above.is_inner) {
                if inner.call != NONE {
                    pairs.push((inner.call, i));
                }
                above = self.nodes[above as usize].parent;
            }
        }
        Lists::new(self.edges.len(), || pairs.iter().copied())
    }

    /// The nodes of labels by label and function, in the order of members, and what each of these keys stands for.
    fn below_labels(&self, n_names: usize) -> (Vec<(u32, u32)>, Lists) {
        let (mut keys, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        let mut places = vec![0; self.nodes.len() - self.places.len()];
        // By frame how many nodes of a label have it, and then where the next of these is listed; a bit for each that one has.
        let (mut next, mut is_there, mut pace) = (vec![0; n_names], vec![0u64; n_names.div_ceil(64)], Pace::default());
        for (label, range) in (0..).zip(&self.nodes_of_labels) {
            let nodes = &self.nodes[range.start as usize..range.end as usize];
            pace.step(nodes.len());
            for node in nodes {
                next[node.frame as usize] += 1;
                is_there[node.frame as usize / 64] |= 1 << (node.frame % 64);
            }
            let first = keys.len();
            for (word, at) in is_there.iter_mut().zip(0..) {
                while *word != 0 {
                    let frame = 64 * at + word.trailing_zeros();
                    *word &= *word - 1;
                    keys.push((label, frame));
                    ends.push(end);
                    end += std::mem::replace(&mut next[frame as usize], end);
                }
            }
            for (node, number) in nodes.iter().zip(range.start..) {
                let next = &mut next[node.frame as usize];
                places[*next] = number;
                *next += 1;
            }
            keys[first..].iter().for_each(|(_, frame)| next[*frame as usize] = 0);
        }
        ends.push(end);
        (keys, Lists { places, ends })
    }
}

/// Places by the number of a key, in order: those of a key are `places[ends[key]..ends[key + 1]]`.
pub(super) struct Lists {
    pub places: Vec<u32>,
    pub ends: Vec<usize>,
}

impl Lists {
    /// Of so many keys. `pairs` gives each place with its key, in order; the same each time.
    pub fn new<I: Iterator<Item = (u32, u32)>>(keys: usize, pairs: impl Fn() -> I) -> Lists {
        let (places, ends) = grouped(keys, || pairs().map(|(key, place)| (key as usize, place)));
        Lists { places, ends }
    }

    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// How many keys have places.
    pub fn n_used(&self) -> usize {
        self.ends.windows(2).filter(|ends| ends[0] < ends[1]).count()
    }

    pub fn of(&self, key: usize) -> &[u32] {
        &self.places[self.ends[key]..self.ends[key + 1]]
    }
}

/// The nodes of a tree by what they are called.
pub(super) struct Keyed {
    /// Those of all rows by their frame.
    pub frames: Lists,
    /// By the number of a call those whose members lie below it.
    pub calls: Lists,
    /// Those of labels by label and function, and what these keys stand for.
    pub labels: Lists,
    pub label_keys: Vec<(u32, u32)>,
}
