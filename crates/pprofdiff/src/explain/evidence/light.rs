//! What is left of the stacks that are not looked at by themselves: what each shares with the heavy ones.

use super::read::{Collected, Distinct, Reader};
use super::rows::Stacks;
use super::samples::{OfRun, Run};
use super::weights::{Beginnings, fitting};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::work::paced;

/// Light stacks by what some heavy one begins with as well, or by their first frame if none does; and by their labels.
pub(super) struct Light {
    beginnings: Beginnings,
    /// What is left of stacks, and which beginning of heavy ones it is: [`NONE`] of a first frame, and of what has no stack.
    stacks: Stacks,
    beginning_of: Vec<u32>,
    /// By beginning: its number among these stacks, or [`NONE`].
    of_beginnings: Vec<u32>,
    /// The rows that they make: (stack, labels).
    rows: Interner<(u32, u32), FastState>,
    /// By distinct stack with labels: its row here; [`NONE`] of the heavy ones.
    row_of: Vec<u32>,
}

/// What a light stack shares with heavy ones.
struct Shared {
    stack: u32,
    /// In frames.
    length: u32,
    /// The beginning; of none its first frame.
    of: u32,
}

impl Light {
    /// `heavy` is each heavy one's row, and [`NONE`] for the others; `heavy_stacks` are those of the beginnings.
    pub fn new(
        runs: &[Run<'_>],
        read: &[OfRun],
        distinct: &Distinct,
        reader: &Reader<'_>,
        heavy: &[u32],
        beginnings: Beginnings,
        heavy_stacks: &Stacks,
    ) -> Light {
        let mut is_light = vec![false; distinct.first.len()];
        for (_, (stack, _)) in paced(heavy.iter().zip(&distinct.rows)).filter(|(row, _)| **row == NONE) {
            is_light[*stack as usize] = true;
        }
        let (mut stacks, mut beginning_of) = (Stacks::default(), Vec::new());
        let mut of_beginnings = vec![NONE; beginnings.len()];
        // By first frame; the last is of what has no stack.
        let no_frame = reader.names.len() as u32;
        let mut of_roots = vec![NONE; reader.names.len() + 1];
        let mut stack_of = vec![NONE; distinct.first.len()];
        let shorten = |(shared, hashes): &mut (Vec<Shared>, Vec<u64>), stack: u32, frames: &[u32]| {
            let (length, beginning) = beginnings.longest(frames, hashes);
            let root = frames.first().copied().unwrap_or(no_frame);
            shared.push(Shared { stack, length: length as u32, of: if length == 0 { root } else { beginning } });
        };
        let shared = distinct.look_at(runs, read, reader, &is_light, shorten);
        for Shared { stack, length, of } in paced(shared.into_iter().flat_map(|(shared, _)| shared)) {
            let number = if length == 0 { &mut of_roots[of as usize] } else { &mut of_beginnings[of as usize] };
            if *number == NONE {
                let root = Some(of).filter(|of| *of != no_frame);
                let beginning = || heavy_stacks.get(beginnings.stack(of))[..length as usize].iter().copied();
                *number = if length == 0 { stacks.push(root) } else { stacks.push(beginning()) };
                beginning_of.push(if length == 0 { NONE } else { of });
            }
            stack_of[stack as usize] = *number;
        }
        let mut rows = Interner::default();
        let row_of = paced(heavy.iter().zip(&distinct.rows)).map(|(&row, &(stack, labels))| match row {
            NONE => rows.number((stack_of[stack as usize], labels)),
            _ => NONE,
        });
        let row_of = row_of.collect();
        Light { beginnings, stacks, beginning_of, of_beginnings, rows, row_of }
    }

    /// Where what is left has more frames in all runs than there is room for, all but the heaviest rows are cut further: to
    /// what these, the heavy stacks or all have.
    pub fn cut(&mut self, distinct: &Distinct, room: usize) {
        let n = self.rows.values.len();
        let length = |row: u32| self.stacks.get(self.rows.values[row as usize].0).len();
        let (mut frames, mut last) = (0, vec![NONE; n]);
        for (own, run) in distinct.of_run.iter().zip(0..) {
            for row in paced(own).map(|&number| self.row_of[number as usize]).filter(|row| *row != NONE) {
                if std::mem::replace(&mut last[row as usize], run) != run {
                    frames += length(row);
                }
            }
        }
        if frames <= room {
            return;
        }
        let mut weights = vec![[0.0; 2]; n];
        for (&row, of) in paced(self.row_of.iter().zip(&distinct.weights)).filter(|(row, _)| **row != NONE) {
            (0..2).for_each(|side| weights[row as usize][side] += of.values[side]);
        }
        let total = [0, 1].map(|side| weights.iter().map(|weight| weight[side]).sum::<f64>().max(1e-300));
        let share = |weight: &[f64; 2]| (weight[0] / total[0]).max(weight[1] / total[1]);
        let mut order: Vec<(f64, u32)> = weights.iter().map(share).zip(0..).collect();
        // Of equal weights by content, so that no order decides.
        let content = |row: u32| {
            let (stack, labels) = self.rows.values[row as usize];
            (self.stacks.get(stack), labels)
        };
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| content(a.1).cmp(&content(b.1))));
        order.truncate(fitting(order.iter().map(|&(_, row)| length(row)), room));
        let mut is_kept = vec![false; n];
        order.iter().for_each(|&(_, row)| is_kept[row as usize] = true);
        let mut cut_to: Vec<u32> = (0..n as u32).collect();
        for row in paced(0..n).filter(|&row| !is_kept[row]) {
            let (stack, labels) = self.rows.values[row];
            let beginning = self.beginning_of[stack as usize];
            if beginning == NONE {
                continue;
            }
            let (mut at, mut length) = (beginning, self.stacks.get(stack).len());
            while length > 1 {
                (at, length) = (self.beginnings.shorter(at), length - 1);
                let shorter = self.of_beginnings[at as usize];
                let known = if shorter == NONE { None } else { self.rows.find((shorter, labels)) };
                if known.is_some_and(|row| is_kept.get(row as usize) == Some(&true)) {
                    break;
                }
            }
            if self.of_beginnings[at as usize] == NONE {
                let frames: Vec<u32> = self.stacks.get(stack)[..length].to_vec();
                self.of_beginnings[at as usize] = self.stacks.push(frames);
                self.beginning_of.push(at);
            }
            cut_to[row] = self.rows.number((self.of_beginnings[at as usize], labels));
        }
        self.row_of.iter_mut().filter(|row| **row != NONE).for_each(|row| *row = cut_to[*row as usize]);
    }

    /// Makes a row of each, and says which each of the light ones belongs to.
    pub fn make_rows(mut self, found: &mut Collected<'_, '_>, row_of: &mut [u32], is_whole: &[bool]) {
        // No row is looked up from here on.
        let rows = std::mem::take(&mut self.rows).values;
        let mut made = vec![NONE; rows.len()];
        // Growing by doubling would make this the largest list of all.
        found.rows.reserve_exact(rows.len());
        for (row, &light) in paced(row_of.iter_mut().zip(&self.row_of)).filter(|(_, light)| **light != NONE) {
            let made = &mut made[light as usize];
            if *made == NONE {
                let (stack, labels) = rows[light as usize];
                let stack = found.stacks.push(self.stacks.get(stack).iter().copied());
                *made = found.push_cut(stack, labels, is_whole);
            }
            *row = *made;
        }
    }
}
