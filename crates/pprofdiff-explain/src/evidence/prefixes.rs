//! Light stacks, truncated to the longest prefix they share with a heavy stack.

use super::labelled::LabelledStacks;
use super::read::{CollectedRows, DistinctStacks, SampleReader};
use super::rows::StackList;
use super::samples::{OfRun, Run};
use super::weights::{StackPrefixes, select_fitting};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;

/// Light stacks, truncated to the longest prefix of a heavy stack, or to their first frame without one. Equal results
/// with the same labels are combined.
pub(super) struct LightStacks {
    prefixes: StackPrefixes,
    /// The truncated stacks, and their prefix: [`NONE`] for a single first frame, and for samples without a stack.
    stacks: StackList,
    prefix_of: Vec<u32>,
    /// By prefix: the number of its truncated stack, or [`NONE`].
    prefix_stacks: Vec<u32>,
    /// The resulting rows: (stack, labels).
    rows: LabelledStacks,
    /// By distinct stack with labels: the resulting row; [`NONE`] for heavy stacks.
    row_of: Vec<u32>,
}

/// The longest prefix that a light stack shares with heavy stacks.
struct SharedPrefix {
    stack: u32,
    /// The number of frames.
    length: u32,
    /// The prefix. If `length` is 0, the first frame instead.
    origin: u32,
}

impl LightStacks {
    /// Truncates all light stacks. `heavy` lists the row of each heavy stack, and [`NONE`] for light stacks.
    /// `heavy_stacks` are the stacks of the prefixes.
    pub fn new(
        runs: &[Run<'_>],
        read: &[OfRun],
        distinct: &DistinctStacks,
        reader: &SampleReader<'_>,
        heavy: &[u32],
        prefixes: StackPrefixes,
        heavy_stacks: &StackList,
    ) -> LightStacks {
        let mut is_light = vec![false; distinct.first.len()];
        for (_, (stack, _)) in checkpointed(heavy.iter().zip(&distinct.rows)).filter(|(row, _)| **row == NONE) {
            is_light[*stack as usize] = true;
        }
        let (mut stacks, mut prefix_of) = (StackList::default(), Vec::new());
        let mut prefix_stacks = vec![NONE; prefixes.len()];
        // By first frame. The last entry is for samples without a stack.
        let no_frame = reader.names.len() as u32;
        let mut root_stacks = vec![NONE; reader.names.len() + 1];
        let mut stack_of = vec![NONE; distinct.first.len()];
        let shorten = |(shared, hashes): &mut (Vec<SharedPrefix>, Vec<u64>), stack: u32, frames: &[u32]| {
            let (length, prefix) = prefixes.longest(frames, hashes);
            let root = frames.first().copied().unwrap_or(no_frame);
            shared.push(SharedPrefix { stack, length: length as u32, origin: if length == 0 { root } else { prefix } });
        };
        let shared = distinct.visit_stacks(runs, read, reader, &is_light, shorten);
        for SharedPrefix { stack, length, origin } in checkpointed(shared.into_iter().flat_map(|(shared, _)| shared)) {
            let number =
                if length == 0 { &mut root_stacks[origin as usize] } else { &mut prefix_stacks[origin as usize] };
            if *number == NONE {
                let root = Some(origin).filter(|origin| *origin != no_frame);
                let prefix = || &heavy_stacks.get(prefixes.stack(origin))[..length as usize];
                *number = if length == 0 { stacks.push(root) } else { stacks.push_slice(prefix()) };
                prefix_of.push(if length == 0 { NONE } else { origin });
            }
            stack_of[stack as usize] = *number;
        }
        let mut rows = LabelledStacks::with_capacity(stacks.len());
        let row_of = checkpointed(heavy.iter().zip(&distinct.rows)).map(|(&row, &(stack, labels))| match row {
            NONE => rows.number(stack_of[stack as usize], labels),
            _ => NONE,
        });
        let row_of = row_of.collect();
        LightStacks { prefixes, stacks, prefix_of, prefix_stacks, rows, row_of }
    }

    /// If the truncated stacks of all runs have more frames than `room`: truncates all but the heaviest rows further,
    /// to prefixes that also belong to the heaviest rows, or to a single frame.
    pub fn cut(&mut self, distinct: &DistinctStacks, room: usize) {
        let n = self.rows.values().len();
        let length = |row: u32| self.stacks.get(self.rows.values()[row as usize].0).len();
        let (mut frames, mut last) = (0, vec![NONE; n]);
        for (row_numbers, run) in distinct.run_numbers.iter().zip(0..) {
            for row in checkpointed(row_numbers).map(|&number| self.row_of[number as usize]).filter(|row| *row != NONE)
            {
                if std::mem::replace(&mut last[row as usize], run) != run {
                    frames += length(row);
                }
            }
        }
        if frames <= room {
            return;
        }
        let mut weights = vec![[0.0; 2]; n];
        for (&row, weight) in checkpointed(self.row_of.iter().zip(&distinct.weights)).filter(|(row, _)| **row != NONE) {
            (0..2).for_each(|side| weights[row as usize][side] += weight.values[side]);
        }
        let total = [0, 1].map(|side| weights.iter().map(|weight| weight[side]).sum::<f64>().max(1e-300));
        let share = |weight: &[f64; 2]| (weight[0] / total[0]).max(weight[1] / total[1]);
        let mut order: Vec<(f64, u32)> = weights.iter().map(share).zip(0..).collect();
        // Breaks ties by content, so the result does not depend on input order.
        let content = |row: u32| {
            let (stack, labels) = self.rows.values()[row as usize];
            (self.stacks.get(stack), labels)
        };
        let by_share =
            |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then_with(|| content(a.1).cmp(&content(b.1)));
        let n_fitting = select_fitting(&mut order, room, |(_, row)| length(*row), by_share);
        order.truncate(n_fitting);
        let mut is_kept = vec![false; n];
        order.iter().for_each(|&(_, row)| is_kept[row as usize] = true);
        let mut cut_to: Vec<u32> = (0..n as u32).collect();
        for row in checkpointed(0..n).filter(|&row| !is_kept[row]) {
            let (stack, labels) = self.rows.values()[row];
            let prefix = self.prefix_of[stack as usize];
            if prefix == NONE {
                continue;
            }
            let (mut prefix, mut length) = (prefix, self.stacks.get(stack).len());
            while length > 1 {
                (prefix, length) = (self.prefixes.shorter(prefix), length - 1);
                let shorter = self.prefix_stacks[prefix as usize];
                let longer_row = if shorter == NONE { None } else { self.rows.find(shorter, labels) };
                if longer_row.is_some_and(|row| is_kept.get(row as usize) == Some(&true)) {
                    break;
                }
            }
            if self.prefix_stacks[prefix as usize] == NONE {
                let frames: Vec<u32> = self.stacks.get(stack)[..length].to_vec();
                self.prefix_stacks[prefix as usize] = self.stacks.push(frames);
                self.prefix_of.push(prefix);
            }
            cut_to[row] = self.rows.number(self.prefix_stacks[prefix as usize], labels);
        }
        self.row_of.iter_mut().filter(|row| **row != NONE).for_each(|row| *row = cut_to[*row as usize]);
    }

    /// Adds a row for each truncated stack, and assigns these rows to the light stacks in `row_of`.
    pub fn make_rows(mut self, collected: &mut CollectedRows<'_, '_>, row_of: &mut [u32], is_whole: &[bool]) {
        // From here on, rows are not looked up by their stack, so the index is dropped.
        let rows = std::mem::take(&mut self.rows).into_values();
        let mut made = vec![NONE; rows.len()];
        // Doubling would make this the largest list of all.
        collected.rows.reserve_exact(rows.len());
        for (row, &light) in checkpointed(row_of.iter_mut().zip(&self.row_of)).filter(|(_, light)| **light != NONE) {
            let made = &mut made[light as usize];
            if *made == NONE {
                let (stack, labels) = rows[light as usize];
                collected.prefix_of.push(self.prefix_of[stack as usize]);
                let stack = collected.stacks.push_slice(self.stacks.get(stack));
                *made = collected.push_cut(stack, labels, is_whole);
            }
            *row = *made;
        }
    }
}
