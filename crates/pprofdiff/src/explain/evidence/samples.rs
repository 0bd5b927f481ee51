//! One look at the samples of a run: its distinct stacks with their labels, by the run's own numbers, and what they add up
//! to. Samples are read again for stacks that there was no room for ([`OfRun::each_stack`]).

use super::labels::{RunLabels, texts_of};
use super::pieces::{Piece, Reading};
use super::read::Reader;
use super::rows::{Kind, Stacks};
use super::weights::Weight;
use crate::diff::stacks::Keys;
use crate::diff::{Innermost, SampleLocations, SampleVisitor, Walk};
use crate::sampling::{Basis, events_of_exact};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::samples::{Sample, SampleRange};
use pprofdiff_profile::work::paced;
use std::sync::Arc;

/// The most frames of a stack, from its leaf.
pub(in crate::explain) const DEEPEST: usize = 256;

/// How many events stand behind an object of a heap, which is so many times as large as the sampling rate. It is sampled with
/// `p = 1 - exp(-size)`; as there may be more or fewer of them, too, that is what it counts for. Of what is in use large ones
/// are known for certain, and only the sampling is chance: `p / (1 - p)`. Not of what was allocated: large buffers do not grow
/// with the amount of work, and would be taken for causes (of a web shop, two of eight cases in which only that differed).
fn events_of_object(size: f64, is_level: bool) -> f64 {
    if is_level && size > LARGE { size.exp_m1().min(CERTAIN) } else { -(-size).exp_m1() }
}
const LARGE: f64 = 3.0;
const CERTAIN: f64 = 100.0;

/// The number of waits that a record of delays without a count is taken for. Only several runs tell how much they differ.
const UNCOUNTED: f64 = 100.0;

/// One profile, and what it counts for.
pub(in crate::explain) struct Run<'m> {
    pub walk: Walk<'m>,
    /// Of another sample type that is read in the same look, where there is one.
    pub beside: Option<Walk<'m>>,
    pub count: Option<Walk<'m>>,
    pub bytes: Option<Walk<'m>>,
    /// The side, unless only noise is learned from it.
    pub side: Option<usize>,
    /// Its column in [`Rows::run_values`](super::rows::Rows::run_values).
    pub column: usize,
    /// What all counts are multiples of: the fraction that was sampled.
    pub step: u64,
    /// True of what there is, and not of what is done.
    pub is_level: bool,
    /// How the events behind a value are known.
    pub basis: Basis,
    /// True if the number of samples is not known, and the basis is a nominal one.
    pub is_unknown: bool,
    /// What values are multiplied by: counts of samples that were taken at another rate than the base's.
    pub times: f64,
    /// The number of its samples that count as one event, because the other side was sampled less often.
    pub coarse: f64,
}

/// What one sample adds to its row.
#[derive(Clone, Copy, Default)]
pub(in crate::explain) struct Part {
    pub value: f64,
    pub count: f64,
    pub events: f64,
    pub variance: f64,
}

impl std::ops::AddAssign for Part {
    fn add_assign(&mut self, other: Part) {
        self.value += other.value;
        self.count += other.count;
        self.events += other.events;
        self.variance += other.variance;
    }
}

/// The distinct stacks of a profile, of all sample types that are read in one look.
#[derive(Default)]
pub(in crate::explain) struct RunStacks {
    /// By stack, as the search sees it: the keyed hash by which runs share it.
    pub hashes: Vec<u128>,
    /// What decides between stacks of equal weight: the same in whatever order samples and files come.
    pub ties: Vec<u64>,
    /// The number of its frames.
    pub depths: Vec<u16>,
    /// The innermost function of the program, or [`NONE`].
    pub owns: Vec<u32>,
    /// The samples in the pieces that were read, all of them in one or more.
    pub(super) pieces: Vec<ReadPiece>,
    /// By location: a bit for each sample type of which a sample has it.
    pub(super) is_used: Vec<u8>,
}

impl RunStacks {
    /// A stack before its values are known.
    pub fn weight(&self, stack: u32, tie: u64) -> Weight {
        let stack = stack as usize;
        Weight { values: [0.0; 2], tie, depth: self.depths[stack], own: self.owns[stack] }
    }
}

/// The stacks that are first seen in a piece of the samples.
pub(super) struct ReadPiece {
    pub range: SampleRange,
    /// The frames of the first ones, as many as there was room for, with their numbers; [`NONE`] where an earlier piece has the
    /// stack.
    pub kept: Stacks,
    pub numbers: Vec<u32>,
    /// Of the others: the place of the first sample that has the stack, among those of the piece that are read, and its number.
    pub others: Vec<(u32, u32)>,
}

/// What a run has.
#[derive(Default)]
pub(in crate::explain) struct OfRun {
    pub stacks: Arc<RunStacks>,
    /// Which of the bits of locations are of its sample type.
    used_bit: u8,
    /// The distinct stacks with labels: (stack, set of labels), by the run's own numbers.
    pub rows: Vec<(u32, u32)>,
    pub parts: Vec<Part>,
    pub labels: RunLabels,
    /// The magnitudes of its negative values, which are in no stack's.
    pub negative: f64,
}

/// What is known of samples besides those that were shown.
pub(super) struct Visited {
    /// By location: a bit for each sample type of which one of the samples has it.
    pub is_used: Vec<u8>,
    /// The magnitudes of negative values.
    pub negative: [f64; 2],
}

/// Shows the samples that are wanted, by their places among those that cost something of any sample type, with what they cost of
/// each and their frames' canonical numbers, leaf first: none of what has no stack.
struct Visitor<'c, 'm, W, F> {
    wants: W,
    place: u32,
    walk: &'c Walk<'m>,
    canonical: &'c [u32],
    /// By location, with canonical numbers.
    innermost: &'c [Innermost],
    beside: Option<&'c Walk<'m>>,
    /// By location: a bit for each sample type of which a sample has it that was shown.
    is_used: Vec<u8>,
    /// The magnitudes of negative values.
    negative: [f64; 2],
    frames: Vec<u32>,
    each: F,
}

impl<'m, W: FnMut(u32) -> bool, F: FnMut([i64; 2], &mut Vec<u32>, &Sample<'m>)> SampleVisitor<'m>
    for Visitor<'_, 'm, W, F>
{
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        let values = [value, self.beside.map_or(0, |beside| beside.value(&sample))];
        let used = u8::from(values[0] != 0) | u8::from(values[1] != 0) << 1;
        (0..2).for_each(|of| self.negative[of] -= values[of].min(0) as f64);
        if values.iter().all(|&value| value <= 0) {
            locations.for_each(|l| self.is_used[l as usize] |= used);
            return;
        }
        self.place += 1;
        if (self.wants)(self.place - 1) {
            self.read(locations, used);
            (self.each)(values, &mut self.frames, &sample);
        }
    }
}

impl<W, F> Visitor<'_, '_, W, F> {
    /// Reads the frames of a sample: the innermost loop. It is a function by itself, and calls another for what is rare, so
    /// that all it needs stays in registers.
    #[inline(never)]
    fn read(&mut self, locations: impl SampleLocations, used: u8) {
        let Visitor { walk, canonical, innermost, is_used, frames, .. } = self;
        frames.clear();
        locations.for_each(|l| {
            let first = innermost[l as usize];
            is_used[l as usize] |= used;
            frames.push(first.frame());
            if first.has_more() {
                push_callers(walk, canonical, l, frames);
            }
        });
    }
}

/// Puts the frames that a location's innermost is inlined into at the end of a stack.
#[inline(never)]
fn push_callers(walk: &Walk<'_>, canonical: &[u32], location: u32, frames: &mut Vec<u32>) {
    let callers = walk.frames.expand(location)[1..].iter();
    frames.extend(callers.map(|&frame| canonical[walk.translation[frame as usize] as usize]));
}

impl<'m> Run<'m> {
    /// What a sample adds, with the events that stand behind it.
    pub(in crate::explain) fn part(&self, kind: Kind, v: f64, sample: &Sample<'_>) -> Part {
        let of = |walk: &Option<Walk<'_>>| walk.as_ref().map(|walk| walk.value(sample) as f64);
        let counted = of(&self.count).map(|c| c.max(1.0));
        let v = v * self.times;
        let events = match self.basis {
            Basis::Column(column) => (sample.value(column).unsigned_abs() as f64).max(1.0),
            Basis::Own => v,
            Basis::Size(event) => (v / event).max(1.0),
            Basis::Heap(rate) => match (counted, of(&self.bytes)) {
                (Some(c), Some(bytes)) if bytes > 0.0 => {
                    (c * events_of_object(bytes / c / rate, self.is_level)).max(1e-9)
                }
                _ => (v / rate).max(1.0),
            },
            Basis::Delay => counted.unwrap_or(1.0) / self.step.max(1) as f64,
            Basis::Objects => counted.unwrap_or(v),
            Basis::Exact => events_of_exact(counted.unwrap_or(v)),
            // A delay: other values of an unknown number of samples have a nominal basis.
            Basis::Unknown => UNCOUNTED,
        };
        let events = events / self.coarse;
        let variance = v * v / events * if kind == Kind::Delay { 2.0 } else { 1.0 };
        // Waits that are not counted are no number.
        let count = counted.unwrap_or(if kind == Kind::Delay { 0.0 } else { events });
        Part { value: v, count, events, variance }
    }

    /// The innermost frame of each location, with canonical numbers.
    pub(super) fn innermost(&self, reader: &Reader<'_>) -> Vec<Innermost> {
        let common = |first: Innermost| Innermost::new(reader.canonical[first.frame() as usize], first.has_more());
        self.walk.innermost().into_iter().map(common).collect()
    }

    /// Calls `each` with the values (here and beside) of each sample of a range that `wants` one by its place, its stack as the
    /// search sees it, leaf first, and itself.
    pub(super) fn visit(
        &self,
        reader: &Reader<'_>,
        range: &SampleRange,
        innermost: &[Innermost],
        wants: impl FnMut(u32) -> bool,
        mut each: impl FnMut([i64; 2], &[u32], &Sample<'m>),
    ) -> Visited {
        let (walk, beside, canonical) = (&self.walk, self.beside.as_ref(), reader.canonical);
        let (is_used, negative, frames) = (vec![0; innermost.len()], [0.0; 2], Vec::new());
        let each = |values: [i64; 2], frames: &mut Vec<u32>, sample: &Sample<'m>| {
            reader.shorten(frames);
            each(values, frames, sample);
        };
        let mut visitor =
            Visitor { wants, place: 0, walk, beside, canonical, innermost, is_used, negative, frames, each };
        let counts_beside = |sample: &Sample<'m>| beside.is_some_and(|beside| beside.value(sample) != 0);
        walk.visit_or(range, counts_beside, &mut visitor);
        Visited { is_used: visitor.is_used, negative: visitor.negative }
    }

    /// Calls `each` with the canonical numbers of the frames that its samples have, some more than once.
    pub(in crate::explain) fn for_each_used(&self, of: &OfRun, canonical: &[u32], mut each: impl FnMut(u32)) {
        for (location, _) in (0..).zip(&of.stacks.is_used).filter(|(_, used)| **used & of.used_bit != 0) {
            let frames = self.walk.frames.expand(location).iter();
            frames.for_each(|&frame| each(canonical[self.walk.translation[frame as usize] as usize]));
        }
    }
}

impl OfRun {
    /// Reads a profile, of one sample type or of two in one look. Frames of its stacks are kept in so many bytes.
    pub(in crate::explain) fn read(runs: &[&Run<'_>], reader: &Reader<'_>, keys: &Keys, room: usize) -> Vec<OfRun> {
        let walk = &runs[0].walk;
        let innermost = runs[0].innermost(reader);
        // In pieces where one type is read, without labels: which of these are left out depends on those before.
        if runs.len() == 1 && !walk.input.profile.has_labels() {
            let ranges = walk.ranges();
            let room = room / ranges.len().max(1);
            let read = |range: &SampleRange| Piece::read(runs[0], reader, keys, &innermost, range, room);
            if ranges.len() > 1
                && let Some(of) = Piece::joined(parallel::map(&ranges, read))
            {
                return vec![of];
            }
        }
        OfRun::read_whole(runs, reader, keys, &innermost, room)
    }

    fn read_whole(
        runs: &[&Run<'_>],
        reader: &Reader<'_>,
        keys: &Keys,
        innermost: &[Innermost],
        room: usize,
    ) -> Vec<OfRun> {
        let profile = &runs[0].walk.input.profile;
        let has_labels = profile.has_labels();
        // Else rows are the stacks.
        let has_rows = has_labels || runs.len() > 1;
        let mut stacks = Reading::with_room_for(profile.n_samples(), room);
        let mut of: Vec<(OfRun, Interner<(u32, u32), FastState>)> = runs.iter().map(|_| Default::default()).collect();
        let (mut place, mut texts) = (0, Vec::new());
        let visited = runs[0].visit(
            reader,
            &profile.sample_range(),
            innermost,
            |_| true,
            |values, stack, sample| {
                let number = stacks.number(keys.hash(0, stack), stack, place, reader);
                place += 1;
                if has_labels {
                    texts.clear();
                    texts.extend(texts_of(&runs[0].walk, sample));
                }
                for (((of, rows), run), value) in of.iter_mut().zip(runs).zip(values).filter(|(_, value)| *value > 0) {
                    let labels = if has_labels { of.labels.set_of(&texts) } else { 0 };
                    let row = if has_rows { rows.number((number, labels)) } else { number };
                    if row as usize == of.parts.len() {
                        of.parts.push(Part::default());
                    }
                    of.parts[row as usize] += run.part(reader.kind, value as f64, sample);
                }
            },
        );
        let stacks = Arc::new(stacks.finish(profile.sample_range(), visited.is_used));
        let of_run = |(((of, rows), negative), bit): (((OfRun, Interner<(u32, u32), FastState>), f64), u32)| {
            let rows = if has_rows { rows.values } else { (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect() };
            OfRun { stacks: stacks.clone(), used_bit: 1 << bit, rows, negative, ..of }
        };
        of.into_iter().zip(visited.negative).zip(0..).map(of_run).collect()
    }

    /// One sample type of a profile without labels: rows are the stacks.
    pub(super) fn of_stacks(stacks: RunStacks, parts: Vec<Part>, negative: f64) -> OfRun {
        let rows = (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect();
        OfRun { stacks: Arc::new(stacks), used_bit: 1, rows, parts, labels: RunLabels::default(), negative }
    }

    /// How many pieces [`OfRun::each_stack`] can look at, at the same time.
    pub(super) fn n_pieces(&self) -> usize {
        self.stacks.pieces.len()
    }

    /// Calls `each` with the number and the frames, root first, of each stack that is first seen in a piece and is wanted: `wants`
    /// says so of each number. Where there was no room for all of them, the samples are read again for the others.
    pub(super) fn each_stack(
        &self,
        run: &Run<'_>,
        reader: &Reader<'_>,
        piece: usize,
        wants: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, &[u32]),
    ) {
        let ReadPiece { range, kept, numbers, others } = &self.stacks.pieces[piece];
        for (own, &number) in (0..).zip(paced(numbers)).filter(|(_, number)| **number != NONE && wants(**number)) {
            each(number, kept.get(own));
        }
        // They come in the order of their places.
        let wanted = || others.iter().filter(|(_, number)| wants(*number));
        let (mut places, mut numbers) = (wanted().map(|of| of.0).peekable(), wanted().map(|of| of.1));
        if places.peek().is_none() {
            return;
        }
        let mut frames = Vec::new();
        run.visit(
            reader,
            range,
            &run.innermost(reader),
            |place| places.next_if_eq(&place).is_some(),
            |_, stack, _| {
                frames.clear();
                frames.extend(stack.iter().rev());
                numbers.next().into_iter().for_each(|number| each(number, &frames));
            },
        );
    }
}
