//! Whole stacks: every distinct sequence of frames, with the values of both sides.
//!
//! Stacks are interned by content: a hash finds candidates, the frames themselves decide, so a stack
//! that was crafted to collide is found out. The hash is seeded by process. One side's stacks lie
//! end to end in one array; a stack is a range of it.

use std::cmp::Reverse;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::frames::State;
use super::{Frames, Pair, Status, Summary, View};
use crate::profile::LabelValue;

/// One distinct stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackRow {
    /// Where its frames lie in [`Stacks::stacks`]; use [`Stacks::frames_of`].
    range: std::ops::Range<usize>,
    /// Index in [`Stacks::label_sets`].
    pub labels: u32,
    /// What its samples cost.
    pub weight: Pair,
    /// What happened to it.
    pub status: Status,
}

/// All distinct stacks.
#[derive(Debug, Clone)]
pub struct Stacks {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The frames that stacks consist of.
    pub frames: Arc<Frames>,
    /// True if stacks with different labels are different rows.
    pub by_labels: bool,
    /// The labels of rows: sorted `key=value`. The first is empty.
    pub label_sets: Vec<Vec<String>>,
    /// Ordered by |delta| descending, then by the frames' names from the root.
    pub rows: Vec<StackRow>,
    stacks: Vec<u32>,
}

/// Distinct stacks while they are collected; labels are part of a stack's key.
#[derive(Default)]
struct Table {
    ids: HashTable<u32>,
    stacks: Vec<u32>,
    rows: Vec<(std::ops::Range<usize>, u32, i64)>,
}

impl Table {
    fn add(&mut self, state: &State, stack: &[u32], labels: u32, value: i64) -> usize {
        let (rows, stacks) = (&mut self.rows, &mut self.stacks);
        let hash = |stack: &[u32], labels: u32| state.hash_one((stack, labels));
        let same = |&id: &u32| {
            let (range, l, _) = &rows[id as usize];
            *l == labels && stacks[range.clone()] == *stack
        };
        let rehash = |&id: &u32| {
            let (range, l, _) = &rows[id as usize];
            hash(&stacks[range.clone()], *l)
        };
        match self.ids.entry(hash(stack, labels), same, rehash) {
            Entry::Occupied(e) => {
                let id = *e.get() as usize;
                rows[id].2 += value;
                id
            }
            Entry::Vacant(e) => {
                e.insert(rows.len() as u32);
                let start = stacks.len();
                stacks.extend_from_slice(stack);
                rows.push((start..stacks.len(), labels, value));
                rows.len() - 1
            }
        }
    }
}

impl View {
    /// All distinct stacks. `by_labels` also tells apart stacks whose samples have different labels.
    pub fn stacks(&self, by_labels: bool) -> Stacks {
        let mut label_sets: Vec<Vec<String>> = vec![Vec::new()];
        let (base, new) = if by_labels {
            // Label sets are numbered across both sides, so one after the other.
            let mut ids = std::collections::HashMap::from([(Vec::new(), 0)]);
            let mut collect =
                |base| self.side_stacks(base, |walk, sample| label_set(walk, sample, &mut ids, &mut label_sets));
            (collect(true), collect(false))
        } else {
            self.sides(|base| self.side_stacks(base, |_, _| 0))
        };
        let (state, mut all) = (State::default(), Table::default());
        let mut pairs: Vec<(Pair, bool, bool)> = Vec::with_capacity(base.rows.len().max(new.rows.len()));
        for (range, labels, value) in &base.rows {
            all.add(&state, &base.stacks[range.clone()], *labels, 0);
            pairs.push((Pair { base: *value, new: 0 }, true, false));
        }
        for (range, labels, value) in &new.rows {
            let id = all.add(&state, &new.stacks[range.clone()], *labels, 0);
            if id == pairs.len() {
                pairs.push((Pair::default(), false, true));
            }
            (pairs[id].0.new, pairs[id].2) = (self.scale.apply(*value), true);
        }
        let rows = all.rows.into_iter().zip(pairs).map(|((range, labels, _), (weight, in_base, in_new))| StackRow {
            range,
            labels,
            weight,
            status: Status::new(in_base, in_new, weight.delta() == 0),
        });
        let mut stacks = Stacks {
            summary: self.summary().clone(),
            frames: self.frames.clone(),
            by_labels,
            label_sets,
            rows: rows.collect(),
            stacks: all.stacks,
        };
        stacks.sort();
        stacks
    }

    fn side_stacks<'s>(
        &'s self,
        base: bool,
        mut labels: impl FnMut(&'s super::view::Walk, crate::profile::Sample<'s>) -> u32,
    ) -> Table {
        let (state, mut table) = (State::default(), Table::default());
        self.each_stack(base, |value, stack, walk, sample| {
            // A sample whose frames were all filtered away, or that never had any, is no stack.
            if !stack.is_empty() {
                let labels = labels(walk, sample);
                table.add(&state, stack, labels, value);
            }
        });
        table
    }
}

impl Stacks {
    /// A row's frames, root first.
    pub fn frames_of(&self, row: &StackRow) -> &[u32] {
        &self.stacks[row.range.clone()]
    }

    fn sort(&mut self) {
        let Stacks { rows, stacks, frames, label_sets, .. } = self;
        // Frames by name have a rank, so that stacks compare as numbers.
        let mut by_name: Vec<u32> = (0..frames.len() as u32).collect();
        by_name.sort_unstable_by(|&a, &b| frames.order(a).cmp(&frames.order(b)));
        let mut rank = vec![0u32; by_name.len()];
        for (i, &f) in by_name.iter().enumerate() {
            rank[f as usize] = i as u32;
        }
        rows.sort_unstable_by(|a, b| {
            let delta = |r: &StackRow| Reverse(r.weight.delta().unsigned_abs());
            let names = |r: &StackRow| stacks[r.range.clone()].iter().map(|&f| rank[f as usize]);
            delta(a)
                .cmp(&delta(b))
                .then_with(|| names(a).cmp(names(b)))
                .then_with(|| label_sets[a.labels as usize].cmp(&label_sets[b.labels as usize]))
        });
    }
}

/// The number of a sample's labels, printed and sorted.
fn label_set(
    walk: &super::view::Walk,
    sample: crate::profile::Sample<'_>,
    ids: &mut std::collections::HashMap<Vec<String>, u32>,
    sets: &mut Vec<Vec<String>>,
) -> u32 {
    let p = &walk.member.profile;
    let mut set: Vec<String> = sample
        .labels()
        .map(|l| match l.value {
            LabelValue::Text(t) => format!("{}={}", p.text(l.key), p.text(t)),
            LabelValue::Number(v, unit) => format!("{}={v}{}", p.text(l.key), p.text(unit)),
        })
        .collect();
    set.sort();
    *ids.entry(set.clone()).or_insert_with(|| {
        sets.push(set);
        sets.len() as u32 - 1
    })
}
