//! From the runs of both sides to rows: which stacks are heavy, each of which is a row, and what the lighter ones share with
//! these.

use super::labels::Labels;
use super::light::Light;
use super::names::Texts;
use super::numbering::Numbers;
use super::rows::{Cell, Kind, Name, Row, Rows, RunValues, Stacks};
use super::samples::{DEEPEST, OfRun, Part, Run};
use super::weights::{Beginnings, Chosen, Weight, chosen, mix};
use crate::diff::order::Order;
use crate::diff::stacks::Keys;
use crate::diff::top::LeftOut;
use crate::diff::{Frames, Measure, State, Walk};
use crate::runtimes::{Asked, Class, Runtime, UserRules};
use crate::sampling::Basis;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::parallel;
use pprofdiff_profile::work::paced;

/// The frames of stacks are kept in an eighth of the bytes of the profiles and so many more, while they are read.
const ROOM: usize = 12 << 20;
/// Where no rows share calls, the tree of these and its sets take about 50 bytes for each frame, so rows have this many
/// frames together, or one for so many bytes of the profiles: half of them the heavy stacks, half the lighter ones.
const FRAMES: usize = 1 << 20;
const BYTES_OF_FRAME: usize = 16;

/// The fewest stacks that are worth being looked at by themselves.
const MIN_STACKS: usize = 1 << 16;

/// The columns that are read together.
pub(in crate::explain) struct Columns<'m> {
    /// What is explained.
    pub value: &'m Measure,
    /// What counts it.
    pub count: Option<&'m Measure>,
    /// Of a heap, its bytes.
    pub bytes: Option<&'m Measure>,
    pub kind: Kind,
    /// What the runtime does answers to causes elsewhere: of time on a processor, and of waiting for locks. Of a wall
    /// clock and of goroutines it is how the program waits.
    pub has_background: bool,
    /// How many profiles at the end of the base are runs of equal builds.
    pub learned: usize,
    /// True of what there is, and not of what is done.
    pub is_level: bool,
    /// What a sample stands for on the base and on the new side, if the sides were sampled at different rates.
    pub rates: Option<[f64; 2]>,
}

/// Reads samples by their frames' canonical numbers.
pub(in crate::explain) struct Reader<'m> {
    pub kind: Kind,
    runtime: &'static Runtime,
    pub names: &'m [Name],
    /// By frame.
    pub canonical: &'m [u32],
    has_background: bool,
}

impl Reader<'_> {
    /// Makes a stack what the search sees of it, leaf first: without artefacts of profiling and, where they are inlined by
    /// chance, without system frames below the program's last.
    #[inline(always)]
    pub(in crate::explain) fn shorten(&self, stack: &mut Vec<u32>) {
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
        // What has no stack may be anything.
        self.has_background
            && !stack.is_empty()
            && (stack.iter().all(|f| class(f).system)
                || stack.iter().any(|f| class(f).background)
                || self.kind == Kind::Delay && waits())
    }
}

/// The value of one event in each run, in the order of the profiles; 0 where that is not known.
pub(in crate::explain) fn event_of_runs(columns: &Columns<'_>) -> Vec<f64> {
    parallel::map(&runs(columns), |run| {
        if run.is_unknown {
            return 0.0;
        }
        let mut sum = Part::default();
        run.walk.for_each_sample(|value, sample| {
            if value > 0 {
                sum += run.part(columns.kind, value as f64, &sample);
            }
        });
        if sum.value > 0.0 { sum.variance / sum.value } else { 0.0 }
    })
}

/// The profiles of a sample type as they are read.
pub(in crate::explain) struct Look<'m> {
    columns: &'m Columns<'m>,
    runtime: &'static Runtime,
    names: Vec<Name>,
    /// By frame.
    canonical: Vec<u32>,
    runs: Vec<Run<'m>>,
    read: Vec<OfRun>,
}

impl<'m> Look<'m> {
    /// Without what is read.
    fn unread(columns: &'m Columns<'m>, texts: &Texts) -> Look<'m> {
        let (names, canonical) = texts.names(Some(columns));
        Look { columns, runtime: texts.runtime, names, canonical, runs: runs(columns), read: Vec::new() }
    }

    pub(in crate::explain) fn new(columns: &'m Columns<'m>, texts: &Texts) -> Look<'m> {
        let mut look = Look::unread(columns, texts);
        look.read = read_runs(&[&look]).into_iter().flatten().collect();
        look
    }

    /// Of two sample types: in one, where both give frames the same names.
    pub(in crate::explain) fn both(columns: [&'m Columns<'m>; 2], texts: &Texts) -> [Look<'m>; 2] {
        let [mut a, mut b] = columns.map(|columns| Look::unread(columns, texts));
        let is_same_name = |(a, b): (&Name, &Name)| a.text == b.text;
        let are_same = a.canonical == b.canonical && a.names.iter().zip(&b.names).all(is_same_name);
        if !are_same || columns[0].kind != columns[1].kind {
            return columns.map(|columns| Look::new(columns, texts));
        }
        for (of_a, of_b) in a.runs.iter_mut().zip(&mut b.runs) {
            (of_a.beside, of_b.beside) = (Some(of_b.walk.clone()), Some(of_a.walk.clone()));
        }
        for mut read in read_runs(&[&a, &b]) {
            b.read.extend(read.pop());
            a.read.extend(read.pop());
        }
        [a, b]
    }

    fn reader(&self) -> Reader<'_> {
        let Columns { kind, has_background, .. } = *self.columns;
        Reader { kind, runtime: self.runtime, names: &self.names, canonical: &self.canonical, has_background }
    }

    pub(in crate::explain) fn rows(self) -> Rows {
        let Columns { kind, learned, .. } = *self.columns;
        let bytes = self.columns.value.profile_bytes();
        let reader = self.reader();
        let Look { runs, read, .. } = &self;
        let labels = Labels::new(runs, read);
        let frames = (bytes / BYTES_OF_FRAME).max(FRAMES) / 2;
        let m = [Some(0), Some(1)].map(|side| runs.iter().filter(|run| run.side == side).count());
        let mut found = Collected { reader: &reader, stacks: Stacks::default(), rows: Vec::new() };
        let (of_runs, pruned) = {
            let distinct = Distinct::new(runs, read, &labels);
            let Heavy { mut row_of, beginnings, light: pruned, is_whole } = found.heavy(runs, read, &distinct, frames);
            if pruned > 0 {
                let mut light = Light::new(runs, read, &distinct, &reader, &row_of, beginnings, &found.stacks);
                light.cut(&distinct, frames);
                light.make_rows(&mut found, &mut row_of, &is_whole);
            }
            (found.add_up(runs, read, &distinct, &row_of, m.iter().all(|&m| m > 1) || learned > 1), pruned)
        };
        let mut negative = [0.0; 2];
        let of_sides = runs.iter().zip(read).filter_map(|(run, of)| Some((run.side?, of.negative)));
        of_sides.for_each(|(side, sum)| negative[side] += sum);
        let sides = if pruned > 0 { sides(runs, read, &self.canonical, self.names.len()) } else { Vec::new() };
        let Collected { stacks, rows, .. } = found;
        let Look { runtime, names, .. } = self;
        let (label_sets, labels) = (labels.sets, labels.texts);
        let mut read = Rows {
            kind,
            runs: m,
            learned,
            runtime,
            names,
            rows,
            run_values: of_runs,
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
            |of: fn(&Row) -> bool| read.rows.iter().filter(|r| of(r)).map(|r| r.values[0] + r.values[1]).sum::<f64>();
        if sum(|r| r.background) > MAX_BACKGROUND * sum(|_| true) {
            read.rows.iter_mut().for_each(|r| r.background = false);
        }
        read.arrange();
        read.fit_labels(bytes);
        read
    }
}

/// Reads the profiles of one sample type, or of two in one look: by profile what it has of each.
fn read_runs(looks: &[&Look<'_>]) -> Vec<Vec<OfRun>> {
    let (reader, keys, n) = (looks[0].reader(), Keys::new(), looks[0].runs.len());
    let read = |run: &usize| {
        let runs: Vec<&Run<'_>> = looks.iter().map(|look| &look.runs[*run]).collect();
        let room = runs[0].walk.input.profile.inflated_size() / 8 + ROOM / n.max(1);
        OfRun::read(&runs, &reader, &keys, room)
    };
    parallel::map(&(0..n).collect::<Vec<_>>(), read)
}

/// The distinct stacks with labels of all runs.
pub(super) struct Distinct {
    /// By run and its own number of a row: the number among all.
    pub of_run: Vec<Vec<u32>>,
    pub weights: Vec<Weight>,
    /// The stack of each, and its set of labels.
    pub rows: Vec<(u32, u32)>,
    /// By stack: the first run that has it, and its number there.
    pub first: Vec<(u32, u32)>,
}

impl Distinct {
    fn new(runs: &[Run<'_>], read: &[OfRun], labels: &Labels) -> Distinct {
        let (stacks, first) = numbered(read);
        let are_stacks =
            |of: &OfRun| of.rows.len() == of.stacks.hashes.len() && (0..).zip(&of.rows).all(|(n, row)| *row == (n, 0));
        if labels.sets.len() == 1 && read.iter().all(are_stacks) {
            let rows = (0..first.len() as u32).map(|stack| (stack, 0)).collect();
            return Distinct { weights: weights(runs, read, &stacks, &first), of_run: stacks, rows, first };
        }
        let mut rows: Interner<(u32, u32), State> = Interner::default();
        let mut weights: Vec<Weight> = Vec::new();
        let mut of_run = Vec::with_capacity(runs.len());
        for (i, ((run, of), stacks)) in runs.iter().zip(read).zip(stacks).enumerate() {
            let row = |(&(stack, set), part): (&(u32, u32), &Part)| {
                let set = labels.set_of(i, set);
                let number = rows.number((stacks[stack as usize], set));
                if number as usize == weights.len() {
                    let tie = mix(of.stacks.ties[stack as usize] ^ u64::from(set));
                    weights.push(of.stacks.weight(stack, tie));
                }
                if let Some(side) = run.side {
                    weights[number as usize].values[side] += part.value;
                }
                number
            };
            of_run.push(paced(of.rows.iter().zip(&of.parts)).map(row).collect());
        }
        Distinct { of_run, weights, rows: rows.values, first }
    }

    /// Which of some functions, at most 64, these rows have: a bit for each.
    fn having(
        &self,
        runs: &[Run<'_>],
        read: &[OfRun],
        reader: &Reader<'_>,
        functions: &[u32],
        rows: &[u32],
    ) -> Vec<u64> {
        let (mut bits, mut is_wanted) = (vec![0u64; reader.names.len()], vec![false; self.first.len()]);
        functions.iter().zip(0..).for_each(|(&function, bit)| bits[function as usize] |= 1 << bit);
        let stack_of = |row: &u32| self.rows[*row as usize].0 as usize;
        rows.iter().for_each(|row| is_wanted[stack_of(row)] = true);
        let look = |found: &mut Vec<(u32, u64)>, stack: u32, frames: &[u32]| {
            let has = frames.iter().fold(0, |has, &frame| has | bits[frame as usize]);
            found.extend((has != 0).then_some((stack, has)));
        };
        let mut of_stacks = vec![0; self.first.len()];
        for (stack, has) in self.look_at(runs, read, reader, &is_wanted, look).into_iter().flatten() {
            of_stacks[stack as usize] = has;
        }
        paced(rows).map(|row| of_stacks[stack_of(row)]).collect()
    }

    /// Shows `look` those of the stacks that are wanted, with their frames, which are those of the first run that has it: pieces
    /// of the runs at the same time, of each what `look` made of it, in order.
    pub(super) fn look_at<T: Default + Send>(
        &self,
        runs: &[Run<'_>],
        read: &[OfRun],
        reader: &Reader<'_>,
        is_wanted: &[bool],
        look: impl Fn(&mut T, u32, &[u32]) + Sync,
    ) -> Vec<T> {
        // By run: which of all stacks are those that it is the first to have.
        let mut firsts: Vec<Vec<u32>> = read.iter().map(|of| vec![NONE; of.stacks.hashes.len()]).collect();
        for (&(run, own), stack) in self.first.iter().zip(0..).filter(|(_, stack)| is_wanted[*stack as usize]) {
            firsts[run as usize][own as usize] = stack;
        }
        let pieces = |run: usize| (0..read[run].n_pieces()).map(move |piece| (run, piece));
        let pieces: Vec<(usize, usize)> = (0..runs.len()).flat_map(pieces).collect();
        parallel::map(&pieces, |&(run, piece)| {
            let (firsts, mut made) = (&firsts[run], T::default());
            let wants = |own: u32| firsts[own as usize] != NONE;
            read[run].each_stack(&runs[run], reader, piece, wants, |own, frames| {
                look(&mut made, firsts[own as usize], frames);
            });
            made
        })
    }
}

/// By run and its own number of a stack: the number among all; and by that the first run that has it, and its number there.
fn numbered(read: &[OfRun]) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    // Lists that may be looked at by themselves.
    let total: usize = read.iter().map(|of| of.stacks.hashes.len()).sum();
    let at_a_time = total.div_ceil(parallel::parts(total, MIN_STACKS)).max(1);
    let (mut lists, mut of_lists): (Vec<&[u128]>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    for (of, run) in read.iter().zip(0..) {
        of_lists.extend((0..).step_by(at_a_time).zip(of.stacks.hashes.chunks(at_a_time)).map(|(from, _)| (run, from)));
        lists.extend(of.stacks.hashes.chunks(at_a_time));
    }
    let numbers = Numbers::new(&lists);
    let mut first = Vec::with_capacity(numbers.len);
    for (list, (run, from)) in of_lists.iter().enumerate() {
        first.extend(paced(numbers.new_places(list)).map(|place| (*run, from + place as u32)));
    }
    let mut of_run: Vec<Vec<u32>> = read.iter().map(|_| Vec::new()).collect();
    for ((run, _), numbers) in of_lists.iter().zip(numbers.of_lists) {
        match &mut of_run[*run as usize] {
            all if all.is_empty() => *all = numbers,
            all => all.extend(numbers),
        }
    }
    (of_run, first)
}

/// The weights of stacks that are the rows, some at a time.
fn weights(runs: &[Run<'_>], read: &[OfRun], stacks: &[Vec<u32>], first: &[(u32, u32)]) -> Vec<Weight> {
    let weight = |&(run, own): &(u32, u32)| {
        let stacks = &read[run as usize].stacks;
        stacks.weight(own, mix(stacks.ties[own as usize]))
    };
    let mut weights: Vec<Weight> = paced(first).map(weight).collect();
    let at_a_time = weights.len().div_ceil(parallel::parts(weights.len(), MIN_STACKS)).max(1);
    let some: Vec<_> = (0..).step_by(at_a_time).zip(weights.chunks_mut(at_a_time)).collect();
    parallel::each(some, |(from, weights): (u32, &mut [Weight])| {
        for ((run, of), own) in runs.iter().zip(read).zip(stacks) {
            let Some(side) = run.side else { continue };
            for (&number, part) in paced(own.iter().zip(&of.parts)) {
                if let Some(weight) = weights.get_mut(number.wrapping_sub(from) as usize) {
                    weight.values[side] += part.value;
                }
            }
        }
    });
    weights
}

/// The stacks that are looked at by themselves.
struct Heavy {
    /// The row of each distinct stack with labels; [`NONE`] if it is light.
    row_of: Vec<u32>,
    /// What they begin with, if there are light ones.
    beginnings: Beginnings,
    /// How many light ones there are.
    light: usize,
    /// By function: true if all stacks in which it is the program's innermost are heavy.
    is_whole: Vec<bool>,
}

/// Rows while they are collected.
pub(super) struct Collected<'r, 'm> {
    reader: &'r Reader<'m>,
    pub stacks: Stacks,
    pub(super) rows: Vec<Row>,
}

impl Collected<'_, '_> {
    /// Adds a row of a stack.
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

    /// Adds a row of a light stack as it was cut; [`Heavy::is_whole`] says of functions whether others are theirs.
    pub fn push_cut(&mut self, stack: u32, labels: u32, is_whole: &[bool]) -> u32 {
        let row = self.push(stack, labels);
        let own = self.stacks.get(stack).iter().rev().find(|frame| !self.reader.is_system(**frame));
        self.rows[row as usize].is_below = own.is_some_and(|&own| is_whole.get(own as usize) == Some(&true));
        row
    }

    /// Makes a row of each heavy stack, whose frames are those of the first run that has it.
    fn heavy(&mut self, runs: &[Run<'_>], read: &[OfRun], distinct: &Distinct, frames: usize) -> Heavy {
        let parts = read.iter().flat_map(|of| &of.parts);
        let (values, variance) = parts.fold((0.0, 0.0), |(v, q), part| (v + part.value, q + part.variance));
        let with = |functions: &[u32], rows: &[u32]| distinct.having(runs, read, self.reader, functions, rows);
        let Chosen { stacks: heavy, is_whole } = chosen(&distinct.weights, frames, variance / values, with);
        let mut stack_of = vec![NONE; distinct.first.len()];
        let mut is_wanted = vec![false; distinct.first.len()];
        heavy.iter().for_each(|&row| is_wanted[distinct.rows[row as usize].0 as usize] = true);
        let keep = |kept: &mut (Vec<u32>, Stacks), stack: u32, frames: &[u32]| {
            kept.0.push(stack);
            kept.1.push(frames.iter().copied());
        };
        let kept = distinct.look_at(runs, read, self.reader, &is_wanted, keep);
        self.rows.reserve(heavy.len());
        for (numbers, stacks) in kept {
            self.stacks.reserve(&stacks);
            for (own, stack) in (0..).zip(paced(numbers)) {
                stack_of[stack as usize] = self.stacks.push(stacks.get(own).iter().copied());
            }
        }
        let mut row_of = vec![NONE; distinct.rows.len()];
        for &row in paced(&heavy) {
            let (stack, labels) = distinct.rows[row as usize];
            row_of[row as usize] = self.push(stack_of[stack as usize], labels);
        }
        let (mut beginnings, light) = (Beginnings::new(), distinct.rows.len() - heavy.len());
        if light > 0 {
            let order = Order::new(self.reader.names.len(), 0, |n| self.stacks.get(n)).sorted(self.stacks.len());
            paced(order).for_each(|stack| beginnings.add(stack, self.stacks.get(stack)));
        }
        Heavy { row_of, beginnings, light, is_whole }
    }

    /// Adds up the runs, by the row of each distinct stack with labels; gives their values by row where noise `is_measured` by
    /// them.
    fn add_up(
        &mut self,
        runs: &[Run<'_>],
        read: &[OfRun],
        distinct: &Distinct,
        row_of: &[u32],
        is_measured: bool,
    ) -> RunValues {
        let mut cells = Vec::new();
        // Of the run: what each row has, and the rows that have anything.
        let (mut parts, mut found) = (vec![Part::default(); self.rows.len()], Vec::new());
        let mut is_found = vec![false; self.rows.len()];
        for ((run, of), own) in runs.iter().zip(read).zip(&distinct.of_run) {
            for (&number, &part) in paced(own.iter().zip(&of.parts)) {
                let row = row_of[number as usize];
                if !std::mem::replace(&mut is_found[row as usize], true) {
                    parts[row as usize] = Part::default();
                    found.push(row);
                }
                parts[row as usize] += part;
            }
            for row in paced(found.drain(..)) {
                is_found[row as usize] = false;
                let part = parts[row as usize];
                if is_measured {
                    cells.push(Cell { row, column: run.column as u32, value: part.value });
                }
                let Some(side) = run.side else { continue };
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

/// With more background than this, it is what the program does.
const MAX_BACKGROUND: f64 = 0.7;

/// The profiles, in the order of their files.
fn runs<'m>(columns: &Columns<'m>) -> Vec<Run<'m>> {
    let [of_base, of_new] = [true, false].map(|base| columns.value.walks_of(base).count());
    let m = [of_base - columns.learned, of_new];
    let mut next = [0, m[0], m[0] + m[1]];
    let walks = |measure: Option<&'m Measure>| measure.map(|m| m.walks().collect::<Vec<_>>());
    let (mut counts, mut bytes) = (walks(columns.count), walks(columns.bytes));
    let mut take = |i: usize| {
        let of = |walks: &mut Option<Vec<Walk<'m>>>| walks.as_mut().map(|walks| walks.swap_remove(i));
        (of(&mut counts), of(&mut bytes))
    };
    let walks: Vec<Walk<'m>> = columns.value.walks().collect();
    // From the last on, so that each is at its place when it is taken.
    let taken: Vec<_> = (0..walks.len()).rev().map(&mut take).collect();
    let run = |(walk, (count, bytes)): (Walk<'m>, (Option<Walk<'m>>, Option<Walk<'m>>))| {
        let side = usize::from(!walk.input.base);
        let side = if walk.input.base && next[0] == m[0] { None } else { Some(side) };
        let column = &mut next[side.unwrap_or(2)];
        let column = std::mem::replace(column, *column + 1);
        let mut step = 0;
        if let (Kind::Delay, Some(count)) = (columns.kind, &count) {
            walk.for_each_sample(|_, sample| step = gcd(step, count.value(&sample).unsigned_abs()));
        }
        let basis = columns.value.basis(walk.index);
        let is_unknown = basis == Basis::Unknown;
        let basis = if is_unknown && columns.kind != Kind::Delay { nominal(&walk) } else { basis };
        let (basis, times, coarse) = at_common_rate(basis, columns.rates, usize::from(!walk.input.base));
        let is_level = columns.is_level;
        Run { walk, beside: None, count, bytes, side, column, step, is_level, basis, is_unknown, times, coarse }
    };
    walks.into_iter().zip(taken.into_iter().rev()).map(run).collect()
}

/// The number of samples that a run of an unknown number is taken for, to rank what changed. No verdict follows from it.
const NOMINAL_SAMPLES: f64 = 1_000.0;

/// Returns a basis by which the changes of an unknown number of samples can be ranked.
fn nominal(walk: &Walk<'_>) -> Basis {
    Basis::Size((walk.total() as f64 / NOMINAL_SAMPLES).max(1.0))
}

/// Returns the basis of a side, the factor for its counts, and the number of its samples that equal one sample of the coarser
/// side.
///
/// With ten times as many samples, a stack that the other side would show in two samples has twenty. The search has one
/// amount for an event, so the finer side is taken for a coarser one: that loses at most half of the information, and never
/// reports a stack as new that the other side would have missed.
fn at_common_rate(basis: Basis, rates: Option<[f64; 2]>, side: usize) -> (Basis, f64, f64) {
    let Some(rates) = rates else { return (basis, 1.0, 1.0) };
    let coarsest = rates[0].max(rates[1]);
    match basis {
        Basis::Heap(_) | Basis::Objects => (Basis::Heap(coarsest), 1.0, 1.0),
        // In samples of the base.
        Basis::Own => (basis, rates[side] / rates[0], coarsest / rates[0]),
        _ => (basis, 1.0, coarsest / rates[side]),
    }
}

/// Of each frame: why it is chance whether a profile has it, if it is. Profiling itself puts some there; and of inlined
/// library functions it is chance, in some languages, which one a profile shows, which is the second answer.
pub(crate) fn by_chance(frames: &Frames) -> crate::Result<(Vec<Option<LeftOut>>, bool)> {
    let texts = Texts::of(frames, &UserRules::default(), Asked::LeftOut);
    let (runtime, (names, canonical)) = (texts.runtime, texts.names(None));
    let why = |class: Class| match class {
        Class { artefact: true, .. } => Some(LeftOut::Profiling),
        Class { system: true, .. } if runtime.unstable_inlining => Some(LeftOut::Inlining),
        _ => None,
    };
    let flickers = runtime.unstable_inlining || runtime.jit_inlining;
    Ok((canonical.iter().map(|&name| why(names[name as usize].class)).collect(), flickers))
}

/// Of each canonical name whether a side has it.
fn sides(runs: &[Run<'_>], read: &[OfRun], canonical: &[u32], n_names: usize) -> Vec<[bool; 2]> {
    let mut sides = vec![[false; 2]; n_names];
    for (run, of) in paced(runs.iter().zip(read)) {
        let side = usize::from(!run.walk.input.base);
        run.for_each_used(of, canonical, |name| sides[name as usize][side] = true);
    }
    sides
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
