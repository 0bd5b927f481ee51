//! Orders samples by their stacks, which makes the written profile compress best.
//!
//! Neighbouring samples then share most of their ids: the compressed file is an eighth smaller, and compression takes a
//! tenth less time.
//!
//! Diffs are [`SampleOrder::Sorted`]. Sums are [`SampleOrder::Grouped`], which compresses as well and keeps merging
//! associative. Think of the stacks as a tree from the roots, where an end is a child too. The order of a node's
//! children is the order of their first stacks. Merging a merged profile again finds the same first stacks, so it
//! results in the same order. Sorting by number would not be associative, because each merge numbers the locations anew.

use super::Merger;
use crate::cancellation::Checkpointer;

/// The order of the samples in a merged profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleOrder {
    /// The order in which the samples were added.
    Added,
    /// Stacks that begin alike from the root are neighbours. Among different beginnings, the first added comes first.
    Grouped,
    /// The order of the numbers of the stacks' locations, compared from the root.
    Sorted,
}

impl Merger<'_> {
    /// Returns the sample indexes in the given order. Samples with the same stack keep their order.
    pub(super) fn ordered_samples(&self, order: SampleOrder) -> Vec<u32> {
        if order == SampleOrder::Added {
            return (0..self.samples.len() as u32).collect();
        }
        let mut end_of = vec![0; self.stacks.len()];
        self.samples.iter().for_each(|s| end_of[s.stack as usize] += 1);
        let mut end = 0;
        for stack in self.ordered_stacks(order) {
            end += end_of[stack as usize];
            end_of[stack as usize] = end;
        }
        let mut samples = vec![0; self.samples.len()];
        for (i, s) in self.samples.iter().enumerate().rev() {
            end_of[s.stack as usize] -= 1;
            samples[end_of[s.stack as usize]] = i as u32;
        }
        samples
    }

    /// Returns the stacks in the given order.
    ///
    /// This is a radix sort from the root: it splits stacks by one location, then each part by the next location.
    /// Locations are dense numbers, so a table of them counts the stacks of each part. Comparing whole stacks would
    /// read their common beginning again for each comparison.
    fn ordered_stacks(&self, order: SampleOrder) -> Vec<u32> {
        let spans = self.stacks.iter().map(|stack| &stack.locations);
        let stacks = (0..).zip(spans).map(|(number, span)| Stack { number, len: span.len() as u32, end: span.end });
        let ordered: Vec<Stack> = stacks.collect();
        let n = ordered.len();
        let mut splitter = Splitter {
            locations: &self.stack_locations,
            order,
            unsplit: ordered.clone(),
            ordered,
            part_of: vec![0; n],
            part_of_key: vec![0; self.locations.len() + 1],
            parts: Vec::new(),
            part_order: Vec::new(),
            pace: Checkpointer::default(),
        };
        let mut runs = vec![StackRun { start: 0, end: n, depth: 0 }];
        while let Some(run) = runs.pop() {
            splitter.split(run, &mut runs);
        }
        splitter.ordered.iter().map(|stack| stack.number).collect()
    }
}

/// The maximum size of a run to split by insertion. Longer runs are split by counting.
const SHORT: usize = 8;

/// A stack to order.
#[derive(Clone, Copy, Default)]
struct Stack {
    number: u32,
    /// The number of the stack's locations, and their end in [`Splitter::locations`].
    len: u32,
    end: usize,
}

/// Stacks that are equal up to a depth. They are neighbours in [`Splitter::ordered`].
#[derive(Clone, Copy)]
struct StackRun {
    start: usize,
    end: usize,
    depth: usize,
}

/// The stacks of a run with the same next location.
struct Part {
    /// See [`Splitter::key`].
    key: u32,
    size: usize,
    /// The position in [`Splitter::ordered`] of the part's next stack.
    next: usize,
}

struct Splitter<'m> {
    locations: &'m [u32],
    order: SampleOrder,
    /// The stacks. Until a run is split, its stacks are in the order of their addition.
    ordered: Vec<Stack>,
    /// A copy of the current run.
    unsplit: Vec<Stack>,
    /// The index of the part of each stack in the current run.
    part_of: Vec<u32>,
    /// The index in `parts` plus 1 of each key, or 0 outside the current run.
    part_of_key: Vec<u32>,
    /// The parts of the current run, in the order of first occurrence.
    parts: Vec<Part>,
    /// The indexes of the parts of the current run, in their final order.
    part_order: Vec<u32>,
    pace: Checkpointer,
}

/// Returns the key of a stack's next location: the location plus 1, or 0 if the stack ends.
#[inline(always)]
fn key(locations: &[u32], stack: Stack, depth: usize) -> u32 {
    if stack.len as usize == depth { 0 } else { locations[stack.end - 1 - depth] + 1 }
}

impl Splitter<'_> {
    /// Orders a run by its next locations, and adds the parts with several stacks to `runs`.
    fn split(&mut self, mut run: StackRun, runs: &mut Vec<StackRun>) {
        let size = run.end - run.start;
        // Grouping keeps the order of two stacks.
        if size < 2 || size == 2 && self.order == SampleOrder::Grouped {
            return;
        }
        self.pace.step(size / 8 + 1);
        run.depth = self.common_depth(run);
        if size <= SHORT {
            self.split_short(run, runs);
        } else {
            self.split_long(run, runs);
        }
    }

    /// Returns the depth up to which all stacks of a run are equal.
    fn common_depth(&mut self, run: StackRun) -> usize {
        let first = self.ordered[run.start];
        let mut common = first.len as usize;
        for &stack in &self.ordered[run.start + 1..run.end] {
            common = common.min(stack.len as usize);
            let is_same = |depth| self.locations[first.end - 1 - depth] == self.locations[stack.end - 1 - depth];
            common = (run.depth..common).find(|&depth| !is_same(depth)).unwrap_or(common);
            if common == run.depth {
                break;
            }
        }
        self.pace.step((common - run.depth) / 8);
        common
    }

    /// Splits a short run by insertion.
    fn split_short(&mut self, run: StackRun, runs: &mut Vec<StackRun>) {
        let mut keyed = [(0, Stack::default()); SHORT];
        let keyed = &mut keyed[..run.end - run.start];
        for i in 0..keyed.len() {
            let stack = self.ordered[run.start + i];
            let key = key(self.locations, stack, run.depth);
            let before = &keyed[..i];
            // The stack follows the last stack that must come before it.
            let last_before = match self.order {
                SampleOrder::Sorted => before.iter().rposition(|&(other, _)| other <= key),
                _ => before.iter().rposition(|&(other, _)| other == key).or(i.checked_sub(1)),
            };
            let place = last_before.map_or(0, |place| place + 1);
            keyed.copy_within(place..i, place + 1);
            keyed[place] = (key, stack);
        }
        let mut start = run.start;
        for part in keyed.chunk_by(|a, b| a.0 == b.0) {
            let end = start + part.len();
            self.ordered[start..end].iter_mut().zip(part).for_each(|(slot, &(_, stack))| *slot = stack);
            if part.len() > 1 {
                runs.push(StackRun { start, end, depth: run.depth + 1 });
            }
            start = end;
        }
    }

    /// Splits a long run by counting.
    fn split_long(&mut self, run: StackRun, runs: &mut Vec<StackRun>) {
        self.find_parts(run);
        self.part_order.clear();
        self.part_order.extend(0..self.parts.len() as u32);
        if self.order == SampleOrder::Sorted {
            self.part_order.sort_unstable_by_key(|&part| self.parts[part as usize].key);
        }
        let mut end = run.start;
        for &part in &self.part_order {
            let part = &mut self.parts[part as usize];
            let start = end;
            end += part.size;
            part.next = start;
            if part.size > 1 {
                runs.push(StackRun { start, end, depth: run.depth + 1 });
            }
        }
        let unsplit = &mut self.unsplit[..run.end - run.start];
        unsplit.copy_from_slice(&self.ordered[run.start..run.end]);
        for (&stack, &part) in unsplit.iter().zip(&self.part_of) {
            let part = &mut self.parts[part as usize];
            self.ordered[part.next] = stack;
            part.next += 1;
        }
    }

    /// Counts the stacks of each next location in `parts`.
    fn find_parts(&mut self, run: StackRun) {
        self.parts.clear();
        for (&stack, part_of) in self.ordered[run.start..run.end].iter().zip(&mut self.part_of) {
            let key = key(self.locations, stack, run.depth);
            let slot = &mut self.part_of_key[key as usize];
            if *slot == 0 {
                self.parts.push(Part { key, size: 0, next: 0 });
                *slot = self.parts.len() as u32;
            }
            *part_of = *slot - 1;
            self.parts[*part_of as usize].size += 1;
        }
        self.parts.iter().for_each(|part| self.part_of_key[part.key as usize] = 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::MergedLocation;
    use super::{Merger, SampleOrder};

    /// Returns the stacks of a tree of groups: a stack's children are grouped by their next location, in the order of
    /// first occurrence. This is the definition of [`SampleOrder::Grouped`], written plainly.
    fn grouped(stacks: Vec<(u32, &[u32])>) -> Vec<u32> {
        let mut order: Vec<Option<u32>> = Vec::new();
        let mut groups: BTreeMap<Option<u32>, Vec<(u32, &[u32])>> = BTreeMap::new();
        for (stack, rest) in stacks {
            let first = rest.first().copied();
            if !groups.contains_key(&first) {
                order.push(first);
            }
            groups.entry(first).or_default().push((stack, rest.get(1..).unwrap_or_default()));
        }
        let mut all = Vec::new();
        for group in order.into_iter().filter_map(|first| groups.remove(&first).map(|group| (first, group))) {
            match group {
                (None, group) => all.extend(group.into_iter().map(|(stack, _)| stack)),
                (_, group) => all.extend(grouped(group)),
            }
        }
        all
    }

    #[test]
    fn stacks_are_sorted_and_grouped_as_defined() {
        let mut state = 1u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        // Few and many locations, shallow and deep stacks, so that runs of all sizes are equal up to every depth.
        for (n, ids, depth) in [(1, 2, 2), (300, 2, 20), (5000, 3, 14), (5000, 1000, 6), (40, 1, 300)] {
            let mut merger = Merger::new(&[]);
            // From the root.
            let mut stacks: Vec<Vec<u32>> = Vec::new();
            for _ in 0..n {
                let stack: Vec<u32> = (0..below(depth)).map(|_| below(ids)).collect();
                let from_leaf: Vec<u32> = stack.iter().copied().rev().collect();
                if merger.stack(&from_leaf) as usize == stacks.len() {
                    stacks.push(stack);
                }
            }
            merger.locations.extend((0..ids).map(|_| MergedLocation {
                mapping: 0,
                address: 0,
                folded: false,
                lines: 0..0,
            }));
            let mut sorted: Vec<u32> = (0..stacks.len() as u32).collect();
            sorted.sort_by_key(|&i| &stacks[i as usize]);
            assert!(merger.ordered_stacks(SampleOrder::Sorted) == sorted, "{n} stacks of {ids} locations");
            let plainly = grouped((0..).zip(stacks.iter().map(|stack| &stack[..])).collect());
            assert!(merger.ordered_stacks(SampleOrder::Grouped) == plainly, "{n} stacks of {ids} locations");
        }
    }
}
