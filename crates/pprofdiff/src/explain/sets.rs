//! The candidates of the search: sets of stacks that have a name, such as all that a function costs by itself, or all
//! that lies below one call.

use super::rows::Rows;
use crate::diff::State;
use pprofdiff_profile::interner::{Found, Index, Interner};

/// What a set of stacks is called. In the order in which names are preferred where sets are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// The function is the innermost of the program's own: what it costs with the system functions that it calls.
    Own(u32),
    /// The first calls the second.
    Edge(u32, u32),
    /// The function is on the stack.
    Node(u32),
    /// The function is at the leaf.
    Leaf(u32),
    /// The stack has the label.
    Label(u32),
    /// The stack has the label, and the function on it.
    LabelNode(u32, u32),
}

impl Key {
    /// The function that the set ends at.
    pub(super) fn frame(self) -> Option<u32> {
        match self {
            Key::Own(f) | Key::Edge(_, f) | Key::Node(f) | Key::Leaf(f) | Key::LabelNode(_, f) => Some(f),
            Key::Label(_) => None,
        }
    }

    pub(super) fn is_label(self) -> bool {
        matches!(self, Key::Label(_) | Key::LabelNode(..))
    }

    /// Sets of one class are compared with each other where noise is estimated.
    pub(super) fn class(self) -> usize {
        match self {
            Key::Own(_) | Key::Leaf(_) => 0,
            Key::Edge(..) | Key::Node(_) => 1,
            Key::Label(_) | Key::LabelNode(..) => 2,
        }
    }
}

/// Sets that have fewer events than this can be no cause.
const FEWEST_EVENTS: f64 = 5.0;
/// A set with more than this part of both sides is the scale and no cause.
const WHOLE: f64 = 0.9;
/// What a label must have more to say than a function, as a penalised deviance; and a system function than a program's.
const PRICE_OF_LABEL: f64 = 4.0;
const PRICE_OF_SYSTEM: f64 = 6.0;

/// One set.
pub(super) struct Set {
    pub key: Key,
    /// Other names of the same stacks.
    pub same: Vec<Key>,
    /// Its rows, in order: `Sets::members[start..end]`.
    start: usize,
    end: usize,
    /// Value of both sides.
    pub v: [f64; 2],
    /// The value of one event.
    pub w: f64,
    /// True if it is nearly all.
    pub whole: bool,
    /// What it must exceed besides the threshold.
    pub price: f64,
}

pub(super) struct Sets {
    pub sets: Vec<Set>,
    members: Vec<u32>,
}

impl Sets {
    pub(super) fn new(rows: &Rows) -> Sets {
        let mut keys: Interner<Key, State> = Interner::default();
        let mut last_row: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (i, row) in rows.rows.iter().enumerate().filter(|(_, row)| !row.background) {
            each_key(rows, i, row.labels, |key| {
                let number = keys.number(key);
                if number as usize == last_row.len() {
                    last_row.push(u32::MAX);
                }
                if last_row[number as usize] != i as u32 {
                    last_row[number as usize] = i as u32;
                    pairs.push((number, i as u32));
                }
            });
        }
        // Keys in the order in which they are preferred, whatever the order in which they came.
        let mut order: Vec<u32> = (0..keys.values.len() as u32).collect();
        order.sort_unstable_by_key(|&k| keys.values[k as usize]);
        let mut place = vec![0; order.len()];
        for (i, &k) in order.iter().enumerate() {
            place[k as usize] = i;
        }
        let mut ends = vec![0; order.len() + 1];
        for (k, _) in &pairs {
            ends[place[*k as usize] + 1] += 1;
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut members = vec![0; pairs.len()];
        let mut next = ends.clone();
        for (k, row) in &pairs {
            let at = &mut next[place[*k as usize]];
            members[*at] = *row;
            *at += 1;
        }
        drop(pairs);
        let front = rows.front();
        let mut sets: Vec<Set> = Vec::new();
        let mut index = Index::default();
        let mut labelled = 0;
        for (i, &k) in order.iter().enumerate() {
            let (key, start, end) = (keys.values[k as usize], ends[i], ends[i + 1]);
            let of = |n: u32, sets: &[Set]| sets[n as usize].start..sets[n as usize].end;
            let hash = |rows: &[u32]| rows.iter().fold(rows.len() as u64, |h, &r| h.wrapping_add(mixed(r)));
            let found = index.find_or_insert(
                hash(&members[start..end]),
                sets.len(),
                |n| members[of(n, &sets)] == members[start..end],
                |n| hash(&members[of(n, &sets)]),
            );
            if let Found::Known(n) = found {
                sets[n as usize].same.push(key);
                continue;
            }
            let (mut v, mut q) = ([0.0; 2], 0.0);
            for row in members[start..end].iter().map(|&r| &rows.rows[r as usize]) {
                (v[0], v[1], q) = (v[0] + row.v[0], v[1] + row.v[1], q + row.q);
            }
            let whole = (0..2).all(|s| v[s] > WHOLE * front[s]);
            let price = if matches!(key, Key::Leaf(f) if rows.is_system(f)) { PRICE_OF_SYSTEM } else { 0.0 };
            labelled += usize::from(key.is_label());
            let w = q / (v[0] + v[1]).max(1e-300);
            sets.push(Set { key, same: Vec::new(), start, end, v, w, whole, price });
        }
        let plain = (sets.len() - labelled).max(1);
        let of_label = PRICE_OF_LABEL + 2.0 * (labelled as f64 / plain as f64).max(1e-9).ln().max(0.0);
        sets.iter_mut().filter(|s| s.key.is_label()).for_each(|s| s.price = of_label);
        sets.retain(|s| s.v[0] + s.v[1] >= FEWEST_EVENTS * s.w);
        Sets { sets, members }
    }

    /// A set's rows, in order.
    pub(super) fn rows(&self, set: usize) -> &[u32] {
        &self.members[self.sets[set].start..self.sets[set].end]
    }

    /// The sums of a number of each row over all sets.
    pub(super) fn sums(&self, of_row: &[f64]) -> Vec<f64> {
        let sum = |s: &Set| self.members[s.start..s.end].iter().map(|&r| of_row[r as usize]).sum();
        self.sets.iter().map(sum).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }
}

/// A number that stands for a row: sets are compared row by row where the sums of these are equal. (splitmix64)
fn mixed(row: u32) -> u64 {
    let mut x = (u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The sets that a row belongs to, some more than once.
fn each_key(rows: &Rows, row: usize, labels: u32, mut f: impl FnMut(Key)) {
    let stack = rows.stack(row);
    let own = stack.iter().rposition(|&frame| !rows.is_system(frame));
    let Some(&leaf) = stack.last() else { return };
    if let Some(own) = own {
        f(Key::Own(stack[own]));
    }
    if own.is_none() || !rows.is_system(leaf) {
        f(Key::Leaf(leaf));
    }
    // The first system function below the innermost of the program's own says what is called.
    let stack = &stack[..own.map_or(stack.len(), |own| (own + 2).min(stack.len()))];
    stack.windows(2).for_each(|w| f(Key::Edge(w[0], w[1])));
    let nodes = || stack.iter().copied().filter(|&frame| !rows.is_system(frame));
    nodes().for_each(|frame| f(Key::Node(frame)));
    for &label in &rows.label_sets[labels as usize] {
        f(Key::Label(label));
        nodes().for_each(|frame| f(Key::LabelNode(label, frame)));
    }
}
