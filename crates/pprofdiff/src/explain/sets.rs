//! The candidates of the search: sets of stacks that have a name, such as all that a function costs by itself, or all
//! that lies below one call.

use super::rows::Rows;
use super::weights::mix;
use crate::diff::State;
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::parallel::sort_unstable_by;
use pprofdiff_profile::work::{Pace, paced};

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
    /// The sets of each row: `sets_of[ends[row]..ends[row + 1]]`.
    sets_of: Vec<u32>,
    ends: Vec<usize>,
}

impl Sets {
    pub(super) fn new(rows: &Rows) -> Sets {
        let KeysOfRows { keys, numbers, ends: ends_of_rows } = keys_of(rows);
        let numbers_of = |row: usize| &numbers[ends_of_rows[row]..ends_of_rows[row + 1]];
        // Values, variance, and what stands for the set of rows.
        let mut sums = vec![([0.0; 2], 0.0, 0u64); keys.len()];
        for (row, of) in paced(rows.rows.iter().enumerate()) {
            let hash_of_row = mixed(row as u32);
            for &key in numbers_of(row) {
                let (v, q, hash) = &mut sums[key as usize];
                (v[0], v[1], *q) = (v[0] + of.v[0], v[1] + of.v[1], *q + of.q);
                *hash = hash.wrapping_add(hash_of_row);
            }
        }
        let value_of_event = |v: [f64; 2], q: f64| q / (v[0] + v[1]).max(1e-300);
        let has_events = |&key: &u32| {
            let (v, q, _) = sums[key as usize];
            v[0] + v[1] > 0.0 && v[0] + v[1] >= FEWEST_EVENTS * value_of_event(v, q)
        };
        // In the order in which keys are preferred, whatever the order in which they came.
        let mut order: Vec<u32> = (0..keys.len() as u32).filter(has_events).collect();
        sort_unstable_by(&mut order, |&a, &b| keys[a as usize].cmp(&keys[b as usize]));
        let mut place = vec![u32::MAX; keys.len()];
        order.iter().zip(0..).for_each(|(&key, at)| place[key as usize] = at);
        let pairs = || (0..rows.rows.len()).flat_map(|row| numbers_of(row).iter().map(move |&key| (key, row as u32)));
        let placed = || pairs().map(|(key, row)| (place[key as usize] as usize, row));
        let (members, ends) = grouped(order.len(), || placed().filter(|(at, _)| *at != u32::MAX as usize));
        drop((numbers, ends_of_rows, place));
        let front = rows.front();
        // Room for all at once: what grows takes twice as much for a moment, and what is not used nothing.
        let mut sets: Vec<Set> = Vec::with_capacity(order.len());
        let mut index = Index::default();
        let mut hashes: Vec<u64> = Vec::with_capacity(order.len());
        let mut labelled = 0;
        for (i, &k) in paced(order.iter().enumerate()) {
            let (key, start, end) = (keys[k as usize], ends[i], ends[i + 1]);
            let of = |n: u32, sets: &[Set]| sets[n as usize].start..sets[n as usize].end;
            let (v, q, hash) = sums[k as usize];
            let same = |n: u32| members[of(n, &sets)] == members[start..end];
            let found = index.find_or_insert(hash, sets.len(), same, |n| hashes[n as usize]);
            if let Found::Known(n) = found {
                sets[n as usize].same.push(key);
                continue;
            }
            hashes.push(hash);
            let whole = (0..2).all(|s| v[s] > WHOLE * front[s]);
            let price = if matches!(key, Key::Leaf(f) if rows.is_system(f)) { PRICE_OF_SYSTEM } else { 0.0 };
            labelled += usize::from(key.is_label());
            let w = value_of_event(v, q);
            sets.push(Set { key, same: Vec::new(), start, end, v, w, whole, price });
        }
        let plain = (sets.len() - labelled).max(1);
        let of_label = PRICE_OF_LABEL + 2.0 * (labelled as f64 / plain as f64).max(1e-9).ln().max(0.0);
        sets.iter_mut().filter(|s| s.key.is_label()).for_each(|s| s.price = of_label);
        let mut all = Sets { sets, members, sets_of: Vec::new(), ends: vec![0; rows.rows.len() + 1] };
        let of_sets = || (0..all.sets.len()).flat_map(|j| all.rows(j).iter().map(move |&row| (row as usize, j as u32)));
        let (sets_of, ends) = grouped(rows.rows.len(), of_sets);
        (all.sets_of, all.ends) = (sets_of, ends);
        all
    }

    /// The sets that a row is in.
    pub(super) fn of_row(&self, row: usize) -> &[u32] {
        &self.sets_of[self.ends[row]..self.ends[row + 1]]
    }

    /// A set's rows, in order.
    pub(super) fn rows(&self, set: usize) -> &[u32] {
        &self.members[self.sets[set].start..self.sets[set].end]
    }

    /// The rows of all sets together.
    pub(super) fn places(&self) -> usize {
        self.members.len()
    }

    /// The sums of a number of each row over all sets.
    pub(super) fn sums(&self, of_row: &[f64]) -> Vec<f64> {
        let mut pace = Pace::default();
        let sum = |s: &Set| {
            pace.step(1 + (s.end - s.start) / 4);
            self.members[s.start..s.end].iter().map(|&r| of_row[r as usize]).sum()
        };
        self.sets.iter().map(sum).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }
}

/// Values by their group, each group's in the order in which they came, and where the groups end.
fn grouped<I: Iterator<Item = (usize, u32)>>(groups: usize, pairs: impl Fn() -> I) -> (Vec<u32>, Vec<usize>) {
    let mut ends = vec![0; groups + 1];
    paced(pairs()).for_each(|(group, _)| ends[group + 1] += 1);
    (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
    let mut values = vec![0; ends[groups]];
    let mut next = ends.clone();
    for (group, value) in paced(pairs()) {
        values[next[group]] = value;
        next[group] += 1;
    }
    (values, ends)
}

/// A number that stands for a row: sets are compared row by row where the sums of these are equal.
fn mixed(row: u32) -> u64 {
    mix((u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A frame of a stack, with the numbers of its keys.
#[derive(Clone, Copy)]
struct Known {
    frame: u32,
    node: Option<u32>,
    /// With the frame above.
    edge: Option<u32>,
}

/// The keys of all rows by numbers, and each row's: `numbers[ends[row]..ends[row + 1]]`.
struct KeysOfRows {
    keys: Vec<Key>,
    numbers: Vec<u32>,
    ends: Vec<usize>,
}

/// Numbers of keys, as rows have them. Keys of two numbers are found by their hash, those of a frame by it.
struct Pairs {
    keys: Interner<Key, State>,
    /// By frame: the numbers of its own cost, its node, its leaf. [`NONE`] if there is none yet.
    of_frame: Vec<[u32; 3]>,
    last_row: Vec<u32>,
    /// Those of the rows, one row after the other.
    numbers: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Pairs {
    /// A row has a key, even if it is there twice.
    #[inline]
    fn add(&mut self, number: u32, row: u32) {
        if std::mem::replace(&mut self.last_row[number as usize], row) != row {
            self.numbers.push(number);
        }
    }

    fn number(&mut self, key: Key) -> u32 {
        let slot = match key {
            Key::Own(frame) => Some((frame, 0)),
            Key::Node(frame) => Some((frame, 1)),
            Key::Leaf(frame) => Some((frame, 2)),
            Key::Edge(..) | Key::Label(_) | Key::LabelNode(..) => None,
        };
        let Some((frame, which)) = slot else {
            let number = self.keys.number(key);
            self.last_row.resize(self.keys.values.len(), NONE);
            return number;
        };
        let number = &mut self.of_frame[frame as usize][which];
        if *number == NONE {
            *number = self.keys.push(key);
            self.last_row.push(NONE);
        }
        *number
    }

    fn add_key(&mut self, key: Key, row: u32) {
        let number = self.number(key);
        self.add(number, row);
    }
}

/// The keys of all rows that may be candidates, and which rows have each. A row's stack begins mostly as the one before,
/// since rows are sorted: what is at the same depth as there need not be looked up.
fn keys_of(rows: &Rows) -> KeysOfRows {
    let of_frame = vec![[NONE; 3]; rows.names.len()];
    let mut found = Pairs { keys: Interner::default(), of_frame, last_row: Vec::new(), numbers: Vec::new() };
    let mut ends = Vec::with_capacity(rows.rows.len() + 1);
    let (mut known, mut pace): (Vec<Known>, _) = (Vec::new(), Pace::default());
    // By label, at each depth the frame of the last row that has the label, with the number of both.
    let mut of_labels: Vec<Vec<(u32, Option<u32>)>> = vec![Vec::new(); rows.labels.len()];
    for (row, of) in rows.rows.iter().enumerate() {
        ends.push(found.numbers.len());
        if of.background {
            continue;
        }
        let (stack, row) = (rows.stack(row), row as u32);
        pace.step(1 + stack.len());
        let own = stack.iter().rposition(|&frame| !rows.is_system(frame));
        let Some(&leaf) = stack.last() else { continue };
        if let Some(own) = own {
            found.add_key(Key::Own(stack[own]), row);
        }
        if own.is_none() || !rows.is_system(leaf) {
            found.add_key(Key::Leaf(leaf), row);
        }
        // The first system function below the innermost of the program's own says what is called.
        let stack = &stack[..own.map_or(stack.len(), |own| (own + 2).min(stack.len()))];
        known.truncate(stack.len());
        let mut is_same_above = false;
        for (depth, &frame) in stack.iter().enumerate() {
            let before = known.get(depth).copied().filter(|known| known.frame == frame);
            let node = match before {
                Some(before) => before.node,
                None => (!rows.is_system(frame)).then(|| found.number(Key::Node(frame))),
            };
            let edge = match before.filter(|_| is_same_above) {
                Some(before) => before.edge,
                None => depth.checked_sub(1).map(|above| found.number(Key::Edge(stack[above], frame))),
            };
            is_same_above = before.is_some();
            let here = Known { frame, node, edge };
            match known.get_mut(depth) {
                Some(known) => *known = here,
                None => known.push(here),
            }
            node.into_iter().chain(edge).for_each(|number| found.add(number, row));
        }
        for &label in &rows.label_sets[of.labels as usize] {
            found.add_key(Key::Label(label), row);
            let known_of_label = &mut of_labels[label as usize];
            known_of_label.resize(known.len(), (0, None));
            for (known, of_label) in known.iter().zip(known_of_label).filter(|(known, _)| known.node.is_some()) {
                let number = match *of_label {
                    (frame, Some(number)) if frame == known.frame => number,
                    _ => found.number(Key::LabelNode(label, known.frame)),
                };
                *of_label = (known.frame, Some(number));
                found.add(number, row);
            }
        }
    }
    ends.push(found.numbers.len());
    KeysOfRows { keys: found.keys.values, numbers: found.numbers, ends }
}
