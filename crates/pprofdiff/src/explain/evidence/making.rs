//! Makes the sets of stacks: of each kind of key those with the events, and of sets with the same rows one.

use std::ops::Range;

use super::calls::{CallTree, Lists};
use super::rows::Rows;
use super::sets::{Key, Set};
use super::weights::mix;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index};
use pprofdiff_profile::work::{Pace, paced};

/// Sets that have fewer events than this can be no cause.
pub(super) const MIN_EVENTS: f64 = 5.0;
/// A set with more than this part of both sides is the scale and no cause.
const WHOLE: f64 = 0.9;
/// What a system function must have more to say than a program's, as a penalised deviance.
const PRICE_OF_SYSTEM: f64 = 6.0;

/// What members add up to, before each.
#[derive(Clone, Copy, Default)]
struct Before {
    values: [Exact; 2],
    variance: Exact,
    /// Stands for the set of rows.
    hash: u64,
}

/// A sum with what rounding took from it, so that what is small is not lost behind what is large: variances are squares,
/// and the difference of two sums is asked for.
#[derive(Clone, Copy, Default)]
struct Exact {
    sum: f64,
    lost: f64,
}

impl Exact {
    /// With a value more (two-sum, Knuth).
    fn plus(self, value: f64) -> Exact {
        let sum = self.sum + value;
        let of_value = sum - self.sum;
        let lost = (self.sum - (sum - of_value)) + (value - of_value);
        Exact { sum, lost: self.lost + lost }
    }

    fn since(self, before: Exact) -> f64 {
        (self.sum - before.sum) + (self.lost - before.lost)
    }
}

/// Sets while they are made, one kind after the other.
pub(super) struct Making<'a> {
    rows: &'a Rows,
    before: Vec<Before>,
    front: [f64; 2],
    pub sets: Vec<Set>,
    pub other_names: Vec<(u32, Key)>,
    pub ranges: Vec<Range<u32>>,
    index: Index,
    hashes: Vec<u64>,
}

/// What the members of a key add up to.
#[derive(Default)]
struct Sum {
    values: [f64; 2],
    variance: f64,
    hash: u64,
}

fn value_of_event(v: [f64; 2], q: f64) -> f64 {
    q / (v[0] + v[1]).max(1e-300)
}

impl<'a> Making<'a> {
    pub fn new(rows: &'a Rows, tree: &CallTree) -> Making<'a> {
        let mut sum = Before::default();
        let mut before = Vec::with_capacity(tree.members.len() + 1);
        for &row in paced(&tree.members) {
            let of = &rows.rows[row as usize];
            before.push(sum);
            let v = [sum.values[0].plus(of.values[0]), sum.values[1].plus(of.values[1])];
            sum =
                Before { values: v, variance: sum.variance.plus(of.variance), hash: sum.hash.wrapping_add(mixed(row)) };
        }
        before.push(sum);
        let (front, sets, other_names) = (rows.front(), Vec::new(), Vec::new());
        let (ranges, hashes) = (Vec::new(), Vec::new());
        Making { rows, before, front, sets, other_names, ranges, index: Index::default(), hashes }
    }

    /// Makes room for what all kinds of key may come to: what grows is copied. Pages that are not used cost nothing.
    pub fn reserve(&mut self, of_kinds: &[&Lists]) {
        let n = of_kinds.iter().map(|lists| lists.n_used()).sum();
        self.sets.reserve_exact(n);
        self.hashes.reserve_exact(n);
        self.index.reserve(n, |n| self.hashes[n as usize]);
        self.ranges.reserve_exact(of_kinds.iter().map(|lists| lists.places.len()).sum());
    }

    /// Makes the sets of one kind of key: those that have the events, and of sets with the same rows one. `lists` are the places
    /// of each key, `span_of` says which members a place has, and `key_of` what the number of a key stands for. Gives the set of
    /// each number; [`NONE`] if it has not the events, or another key has the same rows.
    pub fn add(
        &mut self,
        tree: &CallTree,
        lists: &Lists,
        key_of: impl Fn(u32) -> Key,
        span_of: impl Fn(u32) -> Option<Range<u32>>,
    ) -> Vec<u32> {
        let mut pace = Pace::default();
        let add = |number: u32| {
            let spans = lists.of(number as usize);
            pace.step(1 + spans.len());
            self.add_set(tree, key_of(number), spans.iter().filter_map(|&place| span_of(place)))
        };
        (0..lists.len() as u32).map(add).collect()
    }

    /// Makes the set of a key with these members, which are in order, and gives its number; [`NONE`] if it has not the events, or
    /// there is one with the same rows, which gets another name then.
    #[inline(always)]
    fn add_set(&mut self, tree: &CallTree, key: Key, spans: impl Iterator<Item = Range<u32>>) -> u32 {
        let (start, mut sum, mut last) = (self.ranges.len(), Sum::default(), NONE..NONE);
        for span in spans {
            let (from, to) = (&self.before[span.start as usize], &self.before[span.end as usize]);
            let values = [0, 1].map(|side| to.values[side].since(from.values[side]));
            sum.values = [sum.values[0] + values[0], sum.values[1] + values[1]];
            sum.variance += to.variance.since(from.variance);
            sum.hash = sum.hash.wrapping_add(to.hash.wrapping_sub(from.hash));
            if last.end == span.start {
                last.end = span.end;
            } else {
                if last.end != NONE {
                    self.ranges.push(last);
                }
                last = span;
            }
        }
        let all = sum.values[0] + sum.values[1];
        let event = value_of_event(sum.values, sum.variance);
        if !(all > 0.0 && all >= MIN_EVENTS * event) {
            self.ranges.truncate(start);
            return NONE;
        }
        self.ranges.push(last);
        let Making { sets, index, hashes, ranges, .. } = self;
        let own = &ranges[start..];
        let same = |n: u32| {
            let other = &ranges[sets[n as usize].ranges()];
            // The members of labels have other numbers than those of all rows.
            hashes[n as usize] == sum.hash && (other == own || tree.are_same_rows(other, own))
        };
        let found = index.find_or_insert(sum.hash, sets.len(), same, |n| hashes[n as usize]);
        if let Found::Known(n) = found {
            self.other_names.push((n, key));
            self.ranges.truncate(start);
            return NONE;
        }
        hashes.push(sum.hash);
        let whole = (0..2).all(|side| sum.values[side] > WHOLE * self.front[side]);
        let price = if matches!(key, Key::Leaf(f) if self.rows.is_system(f)) { PRICE_OF_SYSTEM } else { 0.0 };
        let (start, end) = (start as u32, ranges.len() as u32);
        sets.push(Set { key, start, end, values: sum.values, event, whole, price });
        found.number()
    }
}

/// A number that stands for a row: sets are compared row by row where the sums of these are equal.
fn mixed(row: u32) -> u64 {
    mix((u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
