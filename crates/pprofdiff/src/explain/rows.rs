//! The input of the search: distinct stacks with what they cost on both sides and in each run, by dense numbers. `read`
//! makes it.
//!
//! Names are made canonical and numbered in their order, and rows are sorted by those numbers, so nothing that follows
//! depends on the order of runs, samples or threads.

use super::labels::LabelTexts;
use super::runtime::{Class, Runtime};
use crate::diff::State;
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::work::Pace;

/// What values are measured by, from which follows how many events stand behind one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Samples at intervals, as of time: a sample is an event.
    Sampled,
    /// Allocations, sampled by their size and written as if all had been seen.
    Heap,
    /// Waiting (locks, blocking), sampled and multiplied by the fraction.
    Delay,
}

/// A canonical name.
pub(super) struct Name {
    pub text: String,
    pub class: Class,
    /// The names that are called so here, with what each costs on both sides.
    pub shown: Vec<(String, [f64; 2])>,
}

/// A distinct stack with its labels, and sums over a side's runs.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub stack: u32,
    /// The number of its label set.
    pub labels: u32,
    /// Answers to causes elsewhere.
    pub background: bool,
    /// Values of both sides.
    pub v: [f64; 2],
    /// What is counted, such as allocations.
    pub c: [f64; 2],
    /// Events of both sides.
    pub e: [f64; 2],
    /// The sampling variance of the values, both sides together.
    pub q: f64,
}

/// The value of one row in one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub row: u32,
    /// The run.
    pub column: u32,
    pub value: f64,
}

/// The values of rows in runs, without those that are 0: many runs have few of all stacks each.
#[derive(Debug, Default)]
pub(super) struct RunValues {
    /// By row and column, each once.
    cells: Vec<Cell>,
    ends: Vec<usize>,
}

impl RunValues {
    /// Of so many rows. Cells of one place are added up in the order in which they come.
    pub(super) fn new(rows: usize, mut cells: Vec<Cell>) -> RunValues {
        let place = |cell: &Cell| (cell.row, cell.column);
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

    /// A row's, by column.
    pub(super) fn of(&self, row: usize) -> &[Cell] {
        &self.cells[self.ends[row]..self.ends[row + 1]]
    }
}

pub(super) type Stacks = Sequences<u32, State>;

pub(super) struct Rows {
    pub kind: Kind,
    /// Number of runs of either side.
    pub m: [usize; 2],
    /// Number of runs of equal builds: only their values are there, to learn noise from.
    pub learned: usize,
    pub runtime: &'static Runtime,
    pub names: Vec<Name>,
    pub rows: Vec<Row>,
    /// The values of the runs: those of the base, of the new side, and of equal builds.
    pub runs: RunValues,
    /// Texts of labels, and the sets of them that stacks have.
    pub labels: LabelTexts,
    pub label_sets: Vec<Vec<u32>>,
    /// How many keys labels have, and of how many there was no room for candidates.
    pub keys_of_labels: usize,
    pub keys_left_out: usize,
    /// The number of distinct stacks that were cut to what they share with heavier ones.
    pub pruned: usize,
    pub stacks: Stacks,
}

impl Rows {
    /// The number of columns in `runs`.
    pub(super) fn runs_of_row(&self) -> usize {
        self.m[0] + self.m[1] + self.learned
    }

    /// A stack's frames, root first.
    pub(super) fn stack(&self, row: usize) -> &[u32] {
        self.stacks.get(self.rows[row].stack)
    }

    pub(super) fn is_system(&self, frame: u32) -> bool {
        self.names[frame as usize].class.system
    }

    /// The sums of both sides.
    pub(super) fn total(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().map(|r| r.v[s]).sum())
    }

    /// Those of what is not in the background.
    pub(super) fn front(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().filter(|r| !r.background).map(|r| r.v[s]).sum())
    }

    /// The value of one event.
    pub(super) fn event(&self) -> f64 {
        let (q, v) = self.rows.iter().fold((0.0, 0.0), |(q, v), r| (q + r.q, v + r.v[0] + r.v[1]));
        if v > 0.0 { q / v } else { 0.0 }
    }

    /// Gives rows other stacks, and adds up those that become the same. `change` gets a row's number and a copy of its
    /// stack.
    pub(super) fn regroup(&mut self, mut change: impl FnMut(usize, &mut Vec<u32>)) {
        let mut stacks = Stacks::default();
        let mut numbers: Interner<(u32, u32), State> = Interner::default();
        let mut rows: Vec<Row> = Vec::with_capacity(self.rows.len());
        let mut cells: Vec<Cell> = Vec::with_capacity(self.runs.cells.len());
        let (mut stack, mut pace) = (Vec::new(), Pace::default());
        for (i, row) in self.rows.iter().enumerate() {
            pace.step(1 + self.stacks.get(row.stack).len() / 4);
            stack.clear();
            stack.extend_from_slice(self.stacks.get(row.stack));
            change(i, &mut stack);
            let id = stacks.number(&stack);
            let number = numbers.number((id, row.labels)) as usize;
            cells.extend(self.runs.of(i).iter().map(|cell| Cell { row: number as u32, ..*cell }));
            if number == rows.len() {
                rows.push(Row { stack: id, ..row.clone() });
                continue;
            }
            let sum = &mut rows[number];
            for s in [0, 1] {
                sum.v[s] += row.v[s];
                sum.c[s] += row.c[s];
                sum.e[s] += row.e[s];
            }
            sum.q += row.q;
        }
        (self.runs, self.rows, self.stacks) = (RunValues::new(rows.len(), cells), rows, stacks);
    }

    /// Sorts rows by their names and labels.
    pub(super) fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let mut pace = Pace::default();
        order.sort_unstable_by(|&a, &b| {
            pace.step(1);
            let (x, y) = (&self.rows[a], &self.rows[b]);
            let labels = || self.label_sets[x.labels as usize].cmp(&self.label_sets[y.labels as usize]);
            self.stacks.get(x.stack).cmp(self.stacks.get(y.stack)).then_with(labels)
        });
        let of_row = |(&i, row): (&usize, u32)| self.runs.of(i).iter().map(move |cell| Cell { row, ..*cell });
        let cells = order.iter().zip(0..).flat_map(of_row).collect();
        self.runs = RunValues::new(order.len(), cells);
        self.rows = order.iter().map(|&i| self.rows[i].clone()).collect();
    }
}
