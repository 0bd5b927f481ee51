//! From the runs of both sides to rows: each heavy stack becomes a row, and light stacks are truncated to the longest
//! prefix they share with a heavy stack.

use super::labelled::LabelledStacks;
use super::labels::WorkLabels;
use super::names::FrameTexts;
use super::prefixes::LightStacks;
use super::rows::{FrameName, Row, RunValue, RunValues, StackList, StackRows};
use super::samples::{DEEPEST, OfRun, Run};
use super::stack_ids::StackIds;
use super::weights::{ChosenStacks, StackPrefixes, Weight, chosen, mix};
use crate::thresholds::MAX_BACKGROUND_PART;
use pprofdiff::shared::statistics::total::TotalRuns;
use pprofdiff::shared::{Columns, Keys, Runtime, SampleSums, StackOrder, ValueKind, runs};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::parallel;

/// Memory for the frames of stacks while reading, in bytes, in addition to an eighth of the profiles' size.
const ROOM: usize = 12 << 20;
/// Lower bound of the limit for the number of frames of all rows. If rows share no calls, the tree of calls and its
/// sets take about 50 bytes per frame. The limit is [`FRAMES`], or one frame per [`BYTES_OF_FRAME`] of the profiles.
/// Half of it is for heavy stacks, half for light stacks.
const FRAMES: usize = 1 << 20;
const BYTES_OF_FRAME: usize = 16;

/// Minimum number of stacks per thread.
const MIN_STACKS: usize = 1 << 16;

/// Reads samples with the canonical numbers of their frames.
pub(crate) struct SampleReader<'m> {
    pub kind: ValueKind,
    runtime: &'static Runtime,
    pub names: &'m [FrameName],
    /// The canonical number of each frame.
    pub canonical: &'m [u32],
    has_background: bool,
}

impl SampleReader<'_> {
    /// Reduces a stack (leaf first) to the frames that the search uses: without artefacts of profiling and, if inlining
    /// is unstable, without system frames below the program's last frame.
    #[inline(always)]
    pub(crate) fn shorten(&self, stack: &mut Vec<u32>) {
        let class = |f: u32| self.names[f as usize].class;
        let mut leaf = stack.iter().take_while(|&&f| class(f).artefact).count().min(stack.len().saturating_sub(1));
        if self.runtime.trim_library_leaves {
            leaf += stack[leaf..].iter().position(|&f| !class(f).system).unwrap_or(0);
        }
        if leaf > 0 {
            stack.drain(..leaf);
        }
        stack.truncate(DEEPEST);
        if self.runtime.trim_library_leaves {
            stack.dedup();
        }
    }

    #[inline(always)]
    pub(super) fn is_system(&self, frame: u32) -> bool {
        self.names[frame as usize].class.system
    }

    fn is_background(&self, stack: &[u32]) -> bool {
        let class = |f: &u32| self.names[*f as usize].class;
        let waits = || stack.last().is_some_and(|f| class(f).own_waits);
        // A sample without a stack may belong to anything.
        self.has_background
            && !stack.is_empty()
            && (stack.iter().all(|f| class(f).system)
                || stack.iter().any(|f| class(f).background)
                || self.kind == ValueKind::Delay && waits())
    }
}

/// Returns true if the sample type counts goroutines.
fn is_goroutines(sample_type: &str) -> bool {
    sample_type.starts_with("goroutine")
}

/// The profiles of one sample type while they are read.
pub(crate) struct ReadRuns<'m> {
    columns: &'m Columns<'m>,
    runtime: &'static Runtime,
    names: Vec<FrameName>,
    /// The canonical number of each frame.
    canonical: Vec<u32>,
    runs: Vec<Run<'m>>,
    read: Vec<OfRun>,
}

impl<'m> ReadRuns<'m> {
    /// Prepares the profiles without reading samples.
    fn unread(columns: &'m Columns<'m>, texts: &FrameTexts) -> ReadRuns<'m> {
        let (names, canonical) = texts.names(columns);
        let runs = runs(columns).into_iter().map(|sampled| Run { sampled, beside: None }).collect();
        ReadRuns { columns, runtime: texts.runtime, names, canonical, runs, read: Vec::new() }
    }

    pub(crate) fn new(columns: &'m Columns<'m>, texts: &FrameTexts) -> ReadRuns<'m> {
        let mut reads = ReadRuns::unread(columns, texts);
        reads.read = read_runs(&[&reads]).into_iter().flatten().collect();
        reads
    }

    /// Reads two sample types. They share one pass over the samples if both give frames the same names.
    pub(crate) fn both(columns: [&'m Columns<'m>; 2], texts: &FrameTexts) -> [ReadRuns<'m>; 2] {
        let [mut a, mut b] = columns.map(|columns| ReadRuns::unread(columns, texts));
        let is_same_name = |(a, b): (&FrameName, &FrameName)| a.text == b.text;
        let are_same = a.canonical == b.canonical && a.names.iter().zip(&b.names).all(is_same_name);
        if !are_same || columns[0].kind != columns[1].kind {
            return columns.map(|columns| ReadRuns::new(columns, texts));
        }
        for (a_run, b_run) in a.runs.iter_mut().zip(&mut b.runs) {
            (a_run.beside, b_run.beside) = (Some(b_run.sampled.walk.clone()), Some(a_run.sampled.walk.clone()));
        }
        for mut read in read_runs(&[&a, &b]) {
            b.read.extend(read.pop());
            a.read.extend(read.pop());
        }
        [a, b]
    }

    fn reader(&self) -> SampleReader<'_> {
        let Columns { kind, has_background, .. } = *self.columns;
        SampleReader { kind, runtime: self.runtime, names: &self.names, canonical: &self.canonical, has_background }
    }

    pub(crate) fn rows(self) -> StackRows {
        let Columns { kind, learned, .. } = *self.columns;
        let bytes = self.columns.value.profile_bytes();
        let reader = self.reader();
        let ReadRuns { runs, read, .. } = &self;
        let labels = WorkLabels::new(runs, read, is_goroutines(&self.columns.value.summary().sample_type));
        let frames = (bytes / BYTES_OF_FRAME).max(FRAMES) / 2;
        let m = [Some(0), Some(1)].map(|side| runs.iter().filter(|run| run.sampled.side == side).count());
        let mut collected =
            CollectedRows { reader: &reader, stacks: StackList::default(), prefix_of: Vec::new(), rows: Vec::new() };
        let (sums_by_run, pruned) = {
            let distinct = DistinctStacks::new(runs, read, &labels);
            let Heavy { mut row_of, prefixes, light: pruned, is_whole } =
                collected.heavy(runs, read, &distinct, frames);
            if pruned > 0 {
                let mut light = LightStacks::new(runs, read, &distinct, &reader, &row_of, prefixes, &collected.stacks);
                light.cut(&distinct, frames);
                light.make_rows(&mut collected, &mut row_of, &is_whole);
            }
            (collected.add_up(runs, read, &distinct, &row_of, m.iter().all(|&m| m > 1) || learned > 1), pruned)
        };
        let mut negative = [0.0; 2];
        let by_side = runs.iter().zip(read).filter_map(|(run, samples)| Some((run.sampled.side?, samples.negative)));
        by_side.for_each(|(side, sum)| negative[side] += sum);
        let sides = if pruned > 0 { sides(runs, read, &self.canonical, self.names.len()) } else { Vec::new() };
        let total_runs = total_runs(runs, read, self.columns.known_variance);
        let CollectedRows { stacks, rows, prefix_of, .. } = collected;
        let order = (pruned > 0).then(|| stacks.sorted_by_prefix(&prefix_of));
        let ReadRuns { runtime, names, .. } = self;
        let (label_sets, labels) = (labels.sets, labels.texts);
        let mut read = StackRows {
            kind,
            runs: m,
            learned,
            runtime,
            names,
            rows,
            run_values: sums_by_run,
            total_runs,
            labels,
            label_sets,
            keys_of_labels: 0,
            keys_left_out: 0,
            pruned,
            negative,
            sides,
            stacks,
        };
        let sum =
            |has: fn(&Row) -> bool| read.rows.iter().filter(|r| has(r)).map(|r| r.values[0] + r.values[1]).sum::<f64>();
        if sum(|r| r.background) > MAX_BACKGROUND_PART * sum(|_| true) {
            read.rows.iter_mut().for_each(|r| r.background = false);
        }
        match order {
            Some(order) => read.arrange_in(order),
            None => read.arrange(),
        }
        read.fit_labels(bytes);
        read
    }
}

/// Returns the total of each run, without A/A runs.
fn total_runs(runs: &[Run<'_>], read: &[OfRun], known_variance: f64) -> TotalRuns {
    let (mut totals, mut events) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (run, samples) in runs.iter().zip(read) {
        let Some(side) = run.sampled.side else { continue };
        let mut sum = SampleSums::default();
        samples.parts.iter().for_each(|part| sum += *part);
        totals[side].push(sum.value + samples.negative);
        events[side].push(run.sampled.event(sum));
    }
    TotalRuns::new(totals, events, known_variance)
}

/// Reads the profiles of one sample type, or of two in one pass. Returns, by profile, the samples of each type.
fn read_runs(sample_types: &[&ReadRuns<'_>]) -> Vec<Vec<OfRun>> {
    let (reader, keys, n) = (sample_types[0].reader(), Keys::default(), sample_types[0].runs.len());
    let read = |run: &usize| {
        let runs: Vec<&Run<'_>> = sample_types.iter().map(|reads| &reads.runs[*run]).collect();
        let room = runs[0].sampled.walk.input.profile.inflated_size() / 8 + ROOM / n.max(1);
        OfRun::read(&runs, &reader, &keys, room)
    };
    parallel::map(&(0..n).collect::<Vec<_>>(), read)
}

/// The distinct stacks with labels of all runs.
pub(super) struct DistinctStacks {
    /// By run and its own number of a row: the common number.
    pub run_numbers: Vec<Vec<u32>>,
    pub weights: Vec<Weight>,
    /// By number: the stack and the set of labels.
    pub rows: Vec<(u32, u32)>,
    /// By stack: the first run that has it, and the stack's number in that run.
    pub first: Vec<(u32, u32)>,
}

impl DistinctStacks {
    fn new(runs: &[Run<'_>], read: &[OfRun], labels: &WorkLabels) -> DistinctStacks {
        let (stacks, first) = numbered(read);
        let are_stacks =
            |run: &OfRun| run.rows.len() == run.stacks.hashes.len() && (0..).zip(&run.rows).all(|(n, r)| *r == (n, 0));
        if labels.sets.len() == 1 && read.iter().all(are_stacks) {
            let rows = (0..first.len() as u32).map(|stack| (stack, 0)).collect();
            return DistinctStacks { weights: weights(runs, read, &stacks, &first), run_numbers: stacks, rows, first };
        }
        let mut rows = LabelledStacks::with_capacity(first.len());
        let mut weights: Vec<Weight> = Vec::with_capacity(first.len());
        let mut run_numbers = Vec::with_capacity(runs.len());
        for (i, ((run, samples), stacks)) in runs.iter().zip(read).zip(stacks).enumerate() {
            let row = |(&(stack, set), part): (&(u32, u32), &SampleSums)| {
                let set = labels.set_of(i, set);
                let number = rows.number(stacks[stack as usize], set);
                if number as usize == weights.len() {
                    let tie = mix(samples.stacks.ties[stack as usize] ^ u64::from(set));
                    weights.push(samples.stacks.weight(stack, tie));
                }
                if let Some(side) = run.sampled.side {
                    weights[number as usize].values[side] += part.value;
                }
                number
            };
            run_numbers.push(checkpointed(samples.rows.iter().zip(&samples.parts)).map(row).collect());
        }
        DistinctStacks { run_numbers, weights, rows: rows.into_values(), first }
    }

    /// Returns, by row, the functions that it contains, as bits. `functions` has at most 64 entries.
    fn having(
        &self,
        runs: &[Run<'_>],
        read: &[OfRun],
        reader: &SampleReader<'_>,
        functions: &[u32],
        rows: &[u32],
    ) -> Vec<u64> {
        let (mut bits, mut is_wanted) = (vec![0u64; reader.names.len()], vec![false; self.first.len()]);
        functions.iter().zip(0..).for_each(|(&function, bit)| bits[function as usize] |= 1 << bit);
        let stack_of = |row: &u32| self.rows[*row as usize].0 as usize;
        rows.iter().for_each(|row| is_wanted[stack_of(row)] = true);
        let visit = |matches: &mut Vec<(u32, u64)>, stack: u32, frames: &[u32]| {
            let has = frames.iter().fold(0, |has, &frame| has | bits[frame as usize]);
            matches.extend((has != 0).then_some((stack, has)));
        };
        let mut bits_of_stacks = vec![0; self.first.len()];
        for (stack, has) in self.visit_stacks(runs, read, reader, &is_wanted, visit).into_iter().flatten() {
            bits_of_stacks[stack as usize] = has;
        }
        checkpointed(rows).map(|row| bits_of_stacks[stack_of(row)]).collect()
    }

    /// Calls `visit` with each wanted stack and its frames, as in the first run that has the stack. Chunks of the runs
    /// are processed in parallel. Returns, by chunk and in order, the values that `visit` filled.
    pub(super) fn visit_stacks<T: Default + Send>(
        &self,
        runs: &[Run<'_>],
        read: &[OfRun],
        reader: &SampleReader<'_>,
        is_wanted: &[bool],
        visit: impl Fn(&mut T, u32, &[u32]) + Sync,
    ) -> Vec<T> {
        // By run: the common number of each stack, if this run is the first to have it and it is wanted.
        let mut firsts: Vec<Vec<u32>> = read.iter().map(|samples| vec![NONE; samples.stacks.hashes.len()]).collect();
        for (&(run, number), stack) in self.first.iter().zip(0..).filter(|(_, stack)| is_wanted[*stack as usize]) {
            firsts[run as usize][number as usize] = stack;
        }
        let chunks = |run: usize| (0..read[run].n_chunks()).map(move |chunk| (run, chunk));
        let chunks: Vec<(usize, usize)> = (0..runs.len()).flat_map(chunks).collect();
        parallel::map(&chunks, |&(run, chunk)| {
            let (firsts, mut result) = (&firsts[run], T::default());
            let wants = |number: u32| firsts[number as usize] != NONE;
            read[run].each_stack(&runs[run], reader, chunk, wants, |number, frames| {
                visit(&mut result, firsts[number as usize], frames);
            });
            result
        })
    }
}

/// Returns, by run and its own number of a stack, the common number. Also returns, by common number, the first run that
/// has the stack, and its number in that run.
fn numbered(read: &[OfRun]) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    // Splits runs into lists that are large enough for a thread.
    let total: usize = read.iter().map(|samples| samples.stacks.hashes.len()).sum();
    let chunk_size = total.div_ceil(parallel::parts(total, MIN_STACKS)).max(1);
    let (mut lists, mut list_origins): (Vec<&[u128]>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    for (samples, run) in read.iter().zip(0..) {
        list_origins.extend(
            (0..).step_by(chunk_size).zip(samples.stacks.hashes.chunks(chunk_size)).map(|(from, _)| (run, from)),
        );
        lists.extend(samples.stacks.hashes.chunks(chunk_size));
    }
    let numbers = StackIds::new(&lists);
    let mut first = Vec::with_capacity(numbers.len);
    for (list, (run, from)) in list_origins.iter().enumerate() {
        first.extend(checkpointed(numbers.new_places(list)).map(|place| (*run, from + place as u32)));
    }
    let mut common_numbers: Vec<Vec<u32>> = read.iter().map(|_| Vec::new()).collect();
    for ((run, _), numbers) in list_origins.iter().zip(numbers.by_list) {
        match &mut common_numbers[*run as usize] {
            all if all.is_empty() => *all = numbers,
            all => all.extend(numbers),
        }
    }
    (common_numbers, first)
}

/// Returns the weights of all stacks, if rows are exactly the stacks. Works on ranges of stacks in parallel.
fn weights(runs: &[Run<'_>], read: &[OfRun], stacks: &[Vec<u32>], first: &[(u32, u32)]) -> Vec<Weight> {
    let weight = |&(run, number): &(u32, u32)| {
        let stacks = &read[run as usize].stacks;
        stacks.weight(number, mix(stacks.ties[number as usize]))
    };
    let mut weights: Vec<Weight> = checkpointed(first).map(weight).collect();
    let chunk_size = weights.len().div_ceil(parallel::parts(weights.len(), MIN_STACKS)).max(1);
    let chunks: Vec<_> = (0..).step_by(chunk_size).zip(weights.chunks_mut(chunk_size)).collect();
    parallel::each(chunks, |(from, weights): (u32, &mut [Weight])| {
        for ((run, samples), common_numbers) in runs.iter().zip(read).zip(stacks) {
            let Some(side) = run.sampled.side else { continue };
            for (&number, part) in checkpointed(common_numbers.iter().zip(&samples.parts)) {
                if let Some(weight) = weights.get_mut(number.wrapping_sub(from) as usize) {
                    weight.values[side] += part.value;
                }
            }
        }
    });
    weights
}

/// The heavy stacks: each becomes a row.
struct Heavy {
    /// The row of each distinct stack with labels; [`NONE`] if it is light.
    row_of: Vec<u32>,
    /// The prefixes of the heavy stacks, if there are light stacks.
    prefixes: StackPrefixes,
    /// The number of light stacks.
    light: usize,
    /// By function: true if it is the innermost program function of heavy stacks only.
    is_whole: Vec<bool>,
}

/// Rows while they are collected.
pub(super) struct CollectedRows<'r, 'm> {
    reader: &'r SampleReader<'m>,
    pub stacks: StackList,
    /// By stack: its prefix in [`StackPrefixes`], if there are light stacks. [`NONE`] for a stack without a heavy
    /// stack's first frame.
    pub(super) prefix_of: Vec<u32>,
    pub(super) rows: Vec<Row>,
}

impl CollectedRows<'_, '_> {
    /// Adds a row for a stack.
    pub fn push(&mut self, stack: u32, labels: u32) -> u32 {
        let background = self.reader.is_background(self.stacks.get(stack));
        self.rows.push(Row {
            stack,
            labels,
            background,
            is_below: false,
            values: [0.0; 2],
            counts: [0.0; 2],
            events: [0.0; 2],
            variance: 0.0,
        });
        self.rows.len() as u32 - 1
    }

    /// Adds a row for a truncated light stack. It does not count as its last function's own cost if [`Heavy::is_whole`]
    /// holds for this function.
    pub fn push_cut(&mut self, stack: u32, labels: u32, is_whole: &[bool]) -> u32 {
        let row = self.push(stack, labels);
        let innermost = self.stacks.get(stack).iter().rev().find(|frame| !self.reader.is_system(**frame));
        self.rows[row as usize].is_below =
            innermost.is_some_and(|&innermost| is_whole.get(innermost as usize) == Some(&true));
        row
    }

    /// Adds a row for each heavy stack. Frames come from the first run that has the stack.
    fn heavy(&mut self, runs: &[Run<'_>], read: &[OfRun], distinct: &DistinctStacks, frames: usize) -> Heavy {
        let parts = read.iter().flat_map(|samples| &samples.parts);
        let (values, variance) = parts.fold((0.0, 0.0), |(v, q), part| (v + part.value, q + part.variance));
        let with = |functions: &[u32], rows: &[u32]| distinct.having(runs, read, self.reader, functions, rows);
        let ChosenStacks { stacks: heavy, is_whole } = chosen(&distinct.weights, frames, variance / values, with);
        let mut stack_of = vec![NONE; distinct.first.len()];
        let mut is_wanted = vec![false; distinct.first.len()];
        heavy.iter().for_each(|&row| is_wanted[distinct.rows[row as usize].0 as usize] = true);
        let keep = |kept: &mut (Vec<u32>, StackList), stack: u32, frames: &[u32]| {
            kept.0.push(stack);
            kept.1.push_slice(frames);
        };
        let kept = distinct.visit_stacks(runs, read, self.reader, &is_wanted, keep);
        self.rows.reserve(heavy.len());
        for (numbers, stacks) in kept {
            self.stacks.reserve(&stacks);
            for (number, stack) in (0..).zip(checkpointed(numbers)) {
                stack_of[stack as usize] = self.stacks.push_slice(stacks.get(number));
            }
        }
        let mut row_of = vec![NONE; distinct.rows.len()];
        for &row in checkpointed(&heavy) {
            let (stack, labels) = distinct.rows[row as usize];
            row_of[row as usize] = self.push(stack_of[stack as usize], labels);
        }
        let light = distinct.rows.len() - heavy.len();
        let prefixes = if light > 0 { self.prefixes() } else { StackPrefixes::with_capacity(0) };
        Heavy { row_of, prefixes, light, is_whole }
    }

    /// Returns the prefixes of all stacks so far, and sets the prefix of each stack.
    fn prefixes(&mut self) -> StackPrefixes {
        let stacks = &self.stacks;
        let order = StackOrder::new(self.reader.names.len(), 0, |n| stacks.get(n)).sorted(stacks.len());
        let mut last: &[u32] = &[];
        let n_new = |stack: &u32| {
            let before = std::mem::replace(&mut last, stacks.get(*stack));
            last.len() - before.iter().zip(last).take_while(|(a, b)| a == b).count()
        };
        let mut prefixes = StackPrefixes::with_capacity(checkpointed(&order).map(n_new).sum());
        self.prefix_of.resize(stacks.len(), NONE);
        for stack in checkpointed(order) {
            self.prefix_of[stack as usize] = prefixes.add(stack, stacks.get(stack));
        }
        prefixes
    }

    /// Sums the runs, by the row of each distinct stack with labels. Returns each run's values if they measure noise.
    fn add_up(
        &mut self,
        runs: &[Run<'_>],
        read: &[OfRun],
        distinct: &DistinctStacks,
        row_of: &[u32],
        is_measured: bool,
    ) -> RunValues {
        let mut cells = Vec::new();
        // For the current run: the sums of each row, and the rows that occur.
        let (mut parts, mut present_rows) = (vec![SampleSums::default(); self.rows.len()], Vec::new());
        let mut is_present = vec![false; self.rows.len()];
        for ((run, samples), common_numbers) in runs.iter().zip(read).zip(&distinct.run_numbers) {
            for (&number, &part) in checkpointed(common_numbers.iter().zip(&samples.parts)) {
                let row = row_of[number as usize];
                if !std::mem::replace(&mut is_present[row as usize], true) {
                    parts[row as usize] = SampleSums::default();
                    present_rows.push(row);
                }
                parts[row as usize] += part;
            }
            for row in checkpointed(present_rows.drain(..)) {
                is_present[row as usize] = false;
                let part = parts[row as usize];
                if is_measured {
                    cells.push(RunValue { row, column: run.sampled.column as u32, value: part.value });
                }
                let Some(side) = run.sampled.side else { continue };
                let row = &mut self.rows[row as usize];
                row.values[side] += part.value;
                row.counts[side] += part.count;
                row.events[side] += part.events;
                row.variance += part.variance;
            }
        }
        RunValues::new(self.rows.len(), cells)
    }
}

/// Returns, by canonical name, the sides that have it.
fn sides(runs: &[Run<'_>], read: &[OfRun], canonical: &[u32], n_names: usize) -> Vec<[bool; 2]> {
    let mut sides = vec![[false; 2]; n_names];
    for (run, samples) in checkpointed(runs.iter().zip(read)) {
        let side = usize::from(!run.sampled.walk.input.base);
        run.for_each_used(samples, canonical, |name| sides[name as usize][side] = true);
    }
    sides
}
