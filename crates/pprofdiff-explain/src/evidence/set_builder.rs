//! Builds the sets of stacks: one set per key with enough events. Keys with the same rows share a set.

use std::ops::Range;

use super::calls::CallTree;
use super::rows::StackRows;
use super::sets::{Set, SetKey};
use super::weights::mix;
use crate::thresholds::{MAX_PART_OF_SIDES_IN_SET, MIN_EVENTS_OF_SET};
use pprofdiff_profile::cancellation::{Checkpointer, checkpointed};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index};

/// The sums over all members before a position.
#[derive(Clone, Copy, Default)]
struct PrefixSums {
    values: [Exact; 2],
    variance: Exact,
    /// The sum of hashes of the rows, which identifies the set of rows.
    hash: u64,
}

/// A sum with its rounding error, so that small values survive next to large values: variances are squares, and results
/// are differences of two sums.
#[derive(Clone, Copy, Default)]
struct Exact {
    sum: f64,
    lost: f64,
}

impl Exact {
    /// Adds a value (two-sum, Knuth).
    fn plus(self, value: f64) -> Exact {
        let sum = self.sum + value;
        let added = sum - self.sum;
        let lost = (self.sum - (sum - added)) + (value - added);
        Exact { sum, lost: self.lost + lost }
    }

    fn since(self, before: Exact) -> f64 {
        (self.sum - before.sum) + (self.lost - before.lost)
    }
}

/// Builds sets, one kind of key after another.
pub(super) struct SetBuilder {
    before: Vec<PrefixSums>,
    front: [f64; 2],
    pub sets: Vec<Set>,
    pub other_names: Vec<(u32, SetKey)>,
    pub ranges: Vec<Range<u32>>,
    index: Index,
    hashes: Vec<u64>,
}

/// The members of keys of one kind. Calls `each` with the number of the key and a range of members, in the order of
/// members, and identically every time.
pub(super) trait Spans {
    fn for_each(&self, each: impl FnMut(u32, Range<u32>));
}

/// The sums over the members of a key.
#[derive(Clone)]
struct KeyMembers {
    values: [f64; 2],
    variance: f64,
    hash: u64,
    n_ranges: u32,
    /// The start of the first range, and the end of the last range.
    start: u32,
    end: u32,
}

fn value_of_event(v: [f64; 2], q: f64) -> f64 {
    q / (v[0] + v[1]).max(1e-300)
}

impl SetBuilder {
    pub fn new(rows: &StackRows, tree: &CallTree) -> SetBuilder {
        let mut sum = PrefixSums::default();
        let mut before = Vec::with_capacity(tree.members.len() + 1);
        for &row in checkpointed(&tree.members) {
            let row_data = &rows.rows[row as usize];
            before.push(sum);
            let v = [sum.values[0].plus(row_data.values[0]), sum.values[1].plus(row_data.values[1])];
            sum = PrefixSums {
                values: v,
                variance: sum.variance.plus(row_data.variance),
                hash: sum.hash.wrapping_add(mixed(row)),
            };
        }
        before.push(sum);
        let (front, sets, other_names) = (rows.front(), Vec::new(), Vec::new());
        let (ranges, hashes) = (Vec::new(), Vec::new());
        SetBuilder { before, front, sets, other_names, ranges, index: Index::default(), hashes }
    }

    /// Builds the sets of one kind of key: a set per key with enough events, unless an earlier set has the same rows.
    /// `key_of` returns the key for a number. Returns the set of each key, or [`NONE`] for too few events, or if
    /// another key has the same rows.
    pub fn add(
        &mut self,
        tree: &CallTree,
        n_keys: usize,
        key_of: impl Fn(u32) -> SetKey,
        spans: &impl Spans,
    ) -> Vec<u32> {
        let mut pace = Checkpointer::default();
        let mut keys = self.members_of_keys(n_keys, spans, &mut pace);
        // By key: its next range, if it has several ranges. These are collected in a second pass.
        let mut next = Vec::with_capacity(n_keys);
        let (mut n_ranges, mut n_sets, mut n_single) = (0, 0, 0);
        for key in &mut keys {
            let all = key.values[0] + key.values[1];
            if !(all > 0.0 && all >= MIN_EVENTS_OF_SET * value_of_event(key.values, key.variance)) {
                key.n_ranges = 0;
            }
            next.push(if key.n_ranges > 1 { n_ranges as u32 } else { NONE });
            n_ranges += if key.n_ranges > 1 { key.n_ranges as usize } else { 0 };
            n_sets += usize::from(key.n_ranges > 0);
            n_single += usize::from(key.n_ranges == 1);
        }
        // Reserves memory for many sets at once, because growing doubles the memory temporarily. Another label adds
        // few.
        if n_sets > self.sets.len() / 4 {
            self.sets.reserve_exact(n_sets);
            self.hashes.reserve_exact(n_sets);
            self.ranges.reserve_exact(n_ranges + n_single);
            self.index.reserve(n_sets, |n| self.hashes[n as usize]);
        }
        // `NONE` as the end marks an empty range.
        let mut ranges = vec![NONE..NONE; n_ranges];
        spans.for_each(|number, span| {
            let next = &mut next[number as usize];
            if *next == NONE {
                return;
            }
            pace.step(1);
            let range = &mut ranges[*next as usize];
            if range.end == NONE {
                *range = span;
            } else if range.end == span.start {
                range.end = span.end;
            } else {
                *next += 1;
                ranges[*next as usize] = span;
            }
        });
        let mut place = 0;
        let mut set_of_key = Vec::with_capacity(n_keys);
        for (key, number) in checkpointed(keys.iter().zip(0..)) {
            let one = key.start..key.end;
            let ranges = match key.n_ranges {
                0 => &[],
                1 => std::slice::from_ref(&one),
                n => {
                    place += n as usize;
                    &ranges[place - n as usize..place]
                }
            };
            set_of_key.push(if ranges.is_empty() { NONE } else { self.add_set(tree, key_of(number), key, ranges) });
        }
        set_of_key
    }

    /// Sums the members of each key.
    fn members_of_keys(&self, n_keys: usize, spans: &impl Spans, pace: &mut Checkpointer) -> Vec<KeyMembers> {
        let mut keys =
            vec![KeyMembers { values: [0.0; 2], variance: 0.0, hash: 0, n_ranges: 0, start: 0, end: NONE }; n_keys];
        // Frames that call each other without a branch have the same members, so the last result is cached.
        let (mut last, mut last_sums) = (0..0, (([0.0; 2], 0.0), 0));
        spans.for_each(|number, span| {
            pace.step(1);
            if span != last {
                let (from, to) = (&self.before[span.start as usize], &self.before[span.end as usize]);
                let values = [0, 1].map(|side| to.values[side].since(from.values[side]));
                last_sums = ((values, to.variance.since(from.variance)), to.hash.wrapping_sub(from.hash));
                last = span.clone();
            }
            let (((values, variance), hash), key) = (last_sums, &mut keys[number as usize]);
            key.values = [key.values[0] + values[0], key.values[1] + values[1]];
            key.variance += variance;
            key.hash = key.hash.wrapping_add(hash);
            key.start = if key.n_ranges == 0 { span.start } else { key.start };
            key.n_ranges += u32::from(key.end != span.start);
            key.end = span.end;
        });
        keys
    }

    /// Adds a set and returns its number. If there is a set with the same rows, adds the key to its names and returns
    /// [`NONE`].
    fn add_set(&mut self, tree: &CallTree, key: SetKey, members: &KeyMembers, ranges: &[Range<u32>]) -> u32 {
        let SetBuilder { sets, index, hashes, .. } = self;
        let same = |n: u32| {
            let other = &self.ranges[sets[n as usize].ranges()];
            // The members of labels have other numbers than the members of all rows, so rows are compared.
            hashes[n as usize] == members.hash && (other == ranges || tree.are_same_rows(other, ranges))
        };
        let entry = index.find_or_insert(members.hash, sets.len(), same, |n| hashes[n as usize]);
        if let Found::Known(n) = entry {
            self.other_names.push((n, key));
            return NONE;
        }
        hashes.push(members.hash);
        let start = self.ranges.len() as u32;
        self.ranges.extend_from_slice(ranges);
        let whole = (0..2).all(|s| members.values[s] > MAX_PART_OF_SIDES_IN_SET * self.front[s]);
        let (v, w) = (members.values, value_of_event(members.values, members.variance));
        self.sets.push(Set { key, start, end: self.ranges.len() as u32, values: v, event: w, whole, price: 0.0 });
        entry.number()
    }
}

/// Returns a hash of a row. Sets with equal sums of hashes are compared row by row.
fn mixed(row: u32) -> u64 {
    mix((u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
