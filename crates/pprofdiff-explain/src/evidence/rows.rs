//! The input of the search: distinct stacks with their cost on both sides and in each run, by dense numbers. `read`
//! creates it.
//!
//! Names are canonical and numbered in their order, and rows are sorted by these numbers. Therefore results do not
//! depend on the order of runs, samples or threads, and everything below a call is a range of rows.

use std::sync::Arc;

use super::labels::LabelTexts;
use super::sets::grouped;
use crate::thresholds::MIN_PART_BELOW_BENCHMARK;
use pprofdiff::shared::statistics::total::TotalRuns;
use pprofdiff::shared::{Class, Runtime, StackOrder, ValueKind};
use pprofdiff_profile::cancellation::{Checkpointer, checkpointed};
use pprofdiff_profile::columns::NONE;

/// A canonical name.
pub(crate) struct FrameName {
    pub text: Arc<str>,
    pub class: Class,
    /// The original texts with this canonical name. Empty if `text` is the only one, as for most names.
    pub shown: Box<[SpelledName]>,
}

/// A name as it occurs in profiles, with its cost on both sides.
pub(crate) type SpelledName = (Arc<str>, [f64; 2]);

/// A distinct stack with its labels, and its sums over the runs of each side.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub stack: u32,
    /// The number of its set of labels, in [`StackRows::label_sets`].
    pub labels: u32,
    /// True if its cost is a consequence of causes elsewhere, such as garbage collection. Such rows are no candidates.
    pub background: bool,
    /// True if the stack was truncated at a function whose own stacks are all complete. Its cost is then not the
    /// function's own.
    pub is_below: bool,
    /// The values of both sides.
    pub values: [f64; 2],
    /// The counts of both sides, such as allocations.
    pub counts: [f64; 2],
    /// The events of both sides.
    pub events: [f64; 2],
    /// The sampling variance of the values, summed over both sides.
    pub variance: f64,
}

/// The value of one row in one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunValue {
    pub row: u32,
    /// The number of the run.
    pub column: u32,
    pub value: f64,
}

/// The nonzero values of rows in runs, because each run may have few of all stacks. Empty if noise between runs is not
/// measured.
#[derive(Debug, Default)]
pub(crate) struct RunValues {
    /// The cells by row and column, without duplicates.
    cells: Vec<RunValue>,
    ends: Vec<usize>,
}

impl RunValues {
    /// Creates the values of `rows` rows. Sums cells of the same row and run, in their order.
    pub(crate) fn new(rows: usize, mut cells: Vec<RunValue>) -> RunValues {
        let place = |cell: &RunValue| (cell.row, cell.column);
        if !cells.is_sorted_by(|a, b| place(a) < place(b)) {
            cells.sort_by_key(place);
            cells.dedup_by(|next, kept| {
                let is_same = place(next) == place(kept);
                kept.value += if is_same { next.value } else { 0.0 };
                is_same
            });
        }
        let mut ends = vec![0; rows + 1];
        cells.iter().for_each(|cell| ends[cell.row as usize + 1] += 1);
        (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
        RunValues { cells, ends }
    }

    /// Returns the cells of a row, by run.
    pub(crate) fn cells_of(&self, row: usize) -> &[RunValue] {
        if self.cells.is_empty() { &[] } else { &self.cells[self.ends[row]..self.ends[row + 1]] }
    }
}

/// If more than one in this many stacks is out of order, all stacks are sorted.
const MOVED: usize = 8;

/// The number of frames that a search for a frame compares at once.
const SEARCHED_FRAMES: usize = 64;

/// Stacks by number, stored end to end, root first.
#[derive(Clone, Default)]
pub(crate) struct StackList {
    frames: Vec<u32>,
    ends: Vec<usize>,
}

impl StackList {
    /// Creates an empty list with room for a number of stacks and frames.
    pub(crate) fn with_capacity(stacks: usize, frames: usize) -> StackList {
        StackList { frames: Vec::with_capacity(frames), ends: Vec::with_capacity(stacks) }
    }

    /// Creates an empty list with the size of another list as its capacity.
    pub(crate) fn with_room_for(others: &StackList) -> StackList {
        StackList::with_capacity(others.ends.len(), others.frames.len())
    }

    /// Reserves space for the stacks of another list.
    pub(crate) fn reserve(&mut self, others: &StackList) {
        self.frames.reserve_exact(others.frames.len());
        self.ends.reserve_exact(others.ends.len());
    }

    /// Adds a stack and returns its number.
    pub(crate) fn push(&mut self, stack: impl IntoIterator<Item = u32>) -> u32 {
        self.frames.extend(stack);
        self.ends.push(self.frames.len());
        self.ends.len() as u32 - 1
    }

    /// Like [`StackList::push`], and faster.
    pub(crate) fn push_slice(&mut self, stack: &[u32]) -> u32 {
        self.frames.extend_from_slice(stack);
        self.ends.push(self.frames.len());
        self.ends.len() as u32 - 1
    }

    pub(crate) fn get(&self, number: u32) -> &[u32] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.frames[start..self.ends[number as usize]]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns, by stack, true if it contains one of two frames.
    pub(crate) fn with_either(&self, a: u32, b: u32) -> Vec<bool> {
        let (mut with, mut stack) = (vec![false; self.len()], 0);
        for (chunk, start) in checkpointed(self.frames.chunks(SEARCHED_FRAMES).zip((0..).step_by(SEARCHED_FRAMES))) {
            // Few chunks have one of the frames. Without a branch, this compares several frames at once.
            if !chunk.iter().fold(false, |has, &frame| has | (frame == a) | (frame == b)) {
                continue;
            }
            for (place, _) in (start..).zip(chunk).filter(|(_, frame)| **frame == a || **frame == b) {
                stack += self.ends[stack..].iter().take_while(|end| **end <= place).count();
                with[stack] = true;
            }
        }
        with
    }

    /// Returns the numbers of stacks, sorted by frames. `n_names` is the number of names.
    fn sorted(&self, n_names: usize) -> Vec<u32> {
        // If few stacks changed since the last sort, sorts only these, and merges them with the rest.
        let (mut kept, mut moved): (Vec<u32>, Vec<u32>) = (Vec::with_capacity(self.len()), Vec::new());
        for stack in checkpointed(0..self.len() as u32) {
            match kept.last().is_none_or(|&last| self.get(last) <= self.get(stack)) {
                true => kept.push(stack),
                false => moved.push(stack),
            }
            if moved.len() > self.len() / MOVED {
                return StackOrder::new(n_names, 0, |n| self.get(n)).sorted(self.len());
            }
        }
        self.merged(kept, moved)
    }

    /// Merges sorted stacks with some others.
    fn merged(&self, kept: Vec<u32>, mut moved: Vec<u32>) -> Vec<u32> {
        moved.sort_by(|&a, &b| self.get(a).cmp(self.get(b)));
        let mut sorted = Vec::with_capacity(self.len());
        let mut moved = moved.into_iter().peekable();
        for stack in checkpointed(kept) {
            while let Some(other) = moved.next_if(|&other| self.get(other) < self.get(stack)) {
                sorted.push(other);
            }
            sorted.push(stack);
        }
        sorted.extend(moved);
        sorted
    }

    /// Returns the numbers of stacks, sorted by frames. `prefix_of` has, by stack, its number among prefixes that are
    /// numbered in the order of their frames, or [`NONE`] for a few stacks.
    pub(crate) fn sorted_by_prefix(&self, prefix_of: &[u32]) -> Vec<u32> {
        let with_prefix = || prefix_of.iter().zip(0..).filter(|(prefix, _)| **prefix != NONE);
        let n_prefixes = with_prefix().map(|(prefix, _)| *prefix as usize + 1).max().unwrap_or(0);
        let (by_prefix, _) = grouped(n_prefixes, || with_prefix().map(|(prefix, stack)| (*prefix as usize, stack)));
        let others = prefix_of.iter().zip(0..).filter(|(prefix, _)| **prefix == NONE).map(|(_, stack)| stack);
        self.merged(by_prefix, others.collect())
    }

    /// Returns the memory of the stacks in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.frames) + size_of_val(&*self.ends)
    }
}

pub(crate) struct StackRows {
    pub kind: ValueKind,
    /// The number of runs of each side.
    pub runs: [usize; 2],
    /// The number of A/A runs. Only their values in `run_values` exist, to estimate noise.
    pub learned: usize,
    pub runtime: &'static Runtime,
    pub names: Vec<FrameName>,
    pub rows: Vec<Row>,
    /// The values of each run: first the base, then the new side, then A/A runs.
    pub run_values: RunValues,
    /// The total of each run of the sides, for its test against chance.
    pub total_runs: TotalRuns,
    /// The texts of labels, and the distinct sets of labels.
    pub labels: LabelTexts,
    pub label_sets: Vec<Vec<u32>>,
    /// The number of keys of labels, and the number of keys that were dropped to save memory.
    pub keys_of_labels: usize,
    pub keys_left_out: usize,
    /// The number of distinct stacks that were truncated to a prefix they share with heavier stacks.
    pub pruned: usize,
    /// The sums of negative values, as magnitudes, by side. They are not part of any row.
    pub negative: [f64; 2],
    /// By name: the sides that have it, if stacks were truncated, because rows may lack it. Otherwise empty.
    pub sides: Vec<[bool; 2]>,
    pub stacks: StackList,
}

impl StackRows {
    /// Returns the number of runs in `run_values`.
    pub(crate) fn runs_of_row(&self) -> usize {
        self.runs[0] + self.runs[1] + self.learned
    }

    /// Returns the frames of a row's stack, root first.
    pub(crate) fn stack(&self, row: usize) -> &[u32] {
        self.stacks.get(self.rows[row].stack)
    }

    /// Returns true if one of a row's frames has a class.
    pub(crate) fn has(&self, row: usize, is: impl Fn(&Class) -> bool) -> bool {
        self.stack(row).iter().any(|&frame| is(&self.names[frame as usize].class))
    }

    /// Returns true if a side may have a function although none of its rows shows it, because stacks were truncated.
    pub(crate) fn may_have(&self, frame: u32, side: usize) -> bool {
        self.sides.get(frame as usize).is_some_and(|sides| sides[side])
    }

    pub(crate) fn is_system(&self, frame: u32) -> bool {
        self.names[frame as usize].class.system
    }

    /// Returns the totals of both sides as a table shows them, including the magnitudes of negative values.
    pub(crate) fn all(&self) -> [f64; 2] {
        let total = self.total();
        [0, 1].map(|side| total[side] + self.negative[side])
    }

    /// Returns the sums of all rows, by side.
    pub(crate) fn total(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().map(|r| r.values[s]).sum())
    }

    /// Returns the values without a stack, by side. They count in the total, but belong to no function. Such rows are
    /// never background.
    pub(crate) fn stackless(&self) -> [f64; 2] {
        // These rows come first in the foreground: one for each set of labels.
        let stackless = (0..self.n_front()).take_while(|&row| self.stack(row).is_empty());
        stackless.fold([0.0; 2], |sum, row| [0, 1].map(|side| sum[side] + self.rows[row].values[side]))
    }

    /// Returns the sums of rows outside the background, by side.
    pub(crate) fn front(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().filter(|r| !r.background).map(|r| r.values[s]).sum())
    }

    /// Returns true if more than half of each side, without background, is below a benchmark runner.
    pub(crate) fn is_benchmark(&self) -> bool {
        if !self.names.iter().any(|name| name.class.benchmark) {
            return false;
        }
        let is_below = |row: &usize| self.has(*row, |class| class.benchmark);
        let front = self.front();
        let benchmarked: Vec<usize> = (0..self.n_front()).filter(is_below).collect();
        (0..2).all(|side| {
            benchmarked.iter().map(|&row| self.rows[row].values[side]).sum::<f64>()
                > MIN_PART_BELOW_BENCHMARK * front[side]
        })
    }

    /// Returns the mean value of one event over all rows; 0 without values. It visits all rows: call it outside of loops.
    pub(crate) fn event(&self) -> f64 {
        let (q, v) =
            checkpointed(&self.rows).fold((0.0, 0.0), |(q, v), r| (q + r.variance, v + r.values[0] + r.values[1]));
        if v > 0.0 { q / v } else { 0.0 }
    }

    /// Returns the total of each run: those of the base, of the new side, and A/A runs.
    pub(crate) fn run_totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.runs_of_row()];
        for row in 0..self.rows.len() {
            self.run_values.cells_of(row).iter().for_each(|cell| totals[cell.column as usize] += cell.value);
        }
        totals
    }

    /// Replaces the stacks of rows, and sums rows that become equal. `change` receives the number of a row and a copy
    /// of its stack.
    pub(crate) fn regroup(&mut self, mut change: impl FnMut(usize, &mut Vec<u32>)) {
        let mut stacks = StackList::with_room_for(&self.stacks);
        let (mut stack, mut pace) = (Vec::new(), Checkpointer::default());
        for i in 0..self.rows.len() {
            stack.clear();
            stack.extend_from_slice(self.stack(i));
            pace.step(1 + stack.len() / 4);
            change(i, &mut stack);
            stacks.push_slice(&stack);
        }
        self.rows.iter_mut().zip(0..).for_each(|(row, i)| row.stack = i);
        self.stacks = stacks;
        self.arrange();
    }

    /// Sorts rows by frames and labels, with background rows last, and sums equal rows.
    pub(crate) fn arrange(&mut self) {
        self.arrange_in(self.stacks.sorted(self.names.len()));
    }

    /// Like [`StackRows::arrange`], given the order of all stacks by their frames.
    pub(crate) fn arrange_in(&mut self, order_of_stacks: Vec<u32>) {
        let old = std::mem::take(&mut self.stacks);
        let mut stacks = StackList::with_room_for(&old);
        let mut number = vec![0; old.len()];
        for stack in checkpointed(order_of_stacks) {
            let frames = old.get(stack);
            let is_known = stacks.len() > 0 && stacks.get(stacks.len() as u32 - 1) == frames;
            number[stack as usize] = if is_known { stacks.len() as u32 - 1 } else { stacks.push_slice(frames) };
        }
        self.stacks = stacks;
        let key = |row: &Row| (row.background, number[row.stack as usize], row.labels, row.is_below);
        // After grouping by stack, only rows of the same stack need sorting.
        let by_number = || self.rows.iter().zip(0..).map(|(row, i)| (number[row.stack as usize] as usize, i));
        let by_stack = grouped(self.stacks.len(), by_number).0;
        let keyed = || by_stack.iter().map(|&i| (key(&self.rows[i as usize]), i));
        let in_group = |background: bool| keyed().filter(move |(key, _)| key.0 == background);
        let mut order: Vec<((bool, u32, u32, bool), u32)> = Vec::with_capacity(self.rows.len());
        order.extend(in_group(false).chain(in_group(true)));
        let groups = order.chunk_by_mut(|a, b| (a.0.0, a.0.1) == (b.0.0, b.0.1)).filter(|rows| rows.len() > 1);
        groups.for_each(|rows| rows.sort_unstable());
        let mut cells = Vec::with_capacity(self.run_values.cells.len());
        let (mut n_rows, mut last) = (0, None);
        for (key, i) in checkpointed(&order) {
            n_rows += u32::from(last.replace(*key) != Some(*key));
            let number = n_rows - 1;
            cells.extend(self.run_values.cells_of(*i as usize).iter().map(|cell| RunValue { row: number, ..*cell }));
        }
        self.run_values = RunValues::new(n_rows as usize, cells);
        // Reorders in place, cycle by cycle, because rows are the largest data structure.
        for start in 0..order.len() {
            let mut place = start;
            loop {
                let from = std::mem::replace(&mut order[place].1, place as u32) as usize;
                if from == start || from == place {
                    break;
                }
                self.rows.swap(place, from);
                place = from;
            }
        }
        for (row, (key, _)) in self.rows.iter_mut().zip(&order) {
            row.stack = key.1;
        }
        let key = |row: &Row| (row.background, row.stack, row.labels, row.is_below);
        self.rows.dedup_by(|row, sum| {
            let is_same = key(row) == key(sum);
            if is_same {
                sum.add(row);
            }
            is_same
        });
        self.rows.shrink_to_fit();
    }

    /// Returns the number of rows outside the background, which come first.
    pub(crate) fn n_front(&self) -> usize {
        self.rows.partition_point(|row| !row.background)
    }
}

impl Row {
    /// Adds the sums of another row.
    fn add(&mut self, other: &Row) {
        for side in [0, 1] {
            self.values[side] += other.values[side];
            self.counts[side] += other.counts[side];
            self.events[side] += other.events[side];
        }
        self.variance += other.variance;
    }
}

#[cfg(test)]
mod tests {
    use super::super::sets::tests::rows;
    use super::super::weights::mix;
    use super::{Row, StackList};
    use std::collections::BTreeMap;

    #[test]
    fn regrouped_rows_are_sorted_and_equal_rows_are_summed() {
        for seed in 0..200u64 {
            let mut rows = rows(seed);
            let random = |i: usize| mix(seed << 20 | i as u64);
            rows.rows.iter_mut().enumerate().for_each(|(i, row)| row.background = random(i) % 3 == 0);
            let cut = |i: usize, stack: &mut Vec<u32>| stack.truncate(random(i) as usize / 3 % 4);
            let mut expected: BTreeMap<(bool, Vec<u32>, u32, bool), [f64; 2]> = BTreeMap::new();
            for (i, row) in rows.rows.iter().enumerate() {
                let mut stack = rows.stack(i).to_vec();
                cut(i, &mut stack);
                let sum = expected.entry((row.background, stack, row.labels, row.is_below)).or_default();
                (0..2).for_each(|side| sum[side] += row.values[side]);
            }
            rows.regroup(cut);
            let actual = rows.rows.iter().enumerate();
            let key = |i: usize, row: &Row| (row.background, rows.stack(i).to_vec(), row.labels, row.is_below);
            let actual = actual.map(|(i, row)| (key(i, row), row.values));
            assert!(actual.eq(expected), "{seed}");
        }
    }

    #[test]
    fn with_either_finds_the_stacks_that_contain_a_frame() {
        for seed in 0..200u64 {
            let (n_frames, mut stacks) = (2 + mix(seed) % 300, StackList::default());
            let frame = |i: u64, depth: u64| (mix(seed << 20 | i << 8 | depth) % n_frames) as u32;
            for i in 0..60 {
                stacks.push((0..mix(seed << 20 | i) % 9).map(|depth| frame(i, depth)));
            }
            let expected: Vec<bool> = (0..60).map(|n| stacks.get(n).iter().any(|&frame| frame < 2)).collect();
            assert_eq!(stacks.with_either(0, 1), expected, "{seed}");
        }
    }

    #[test]
    fn sorted_handles_any_number_of_moved_stacks() {
        for seed in 0..200u64 {
            let stack = |i: u64| -> Vec<u32> {
                (0..mix(seed << 20 | i) % 6).map(|depth| (mix(i << 8 | depth) % 3) as u32).collect()
            };
            let mut all: Vec<Vec<u32>> = (0..60).map(stack).collect();
            all.sort();
            // Moves between none and all of the stacks. Some become equal to others.
            for change in 0..seed % 61 {
                all[(mix(change) % 60) as usize] = stack(100 + change);
            }
            let mut stacks = StackList::default();
            all.iter().for_each(|stack| {
                stacks.push(stack.iter().copied());
            });
            let sorted: Vec<&[u32]> = stacks.sorted(3).into_iter().map(|number| stacks.get(number)).collect();
            all.sort();
            assert_eq!(sorted, all, "{seed}");
        }
    }
}
