//! One look at the samples of a run: its distinct stacks with their labels, by the run's own numbers, and what they add up
//! to. Samples are read again for stacks that there was no room for ([`OfRun::each_stack`]).

use super::labels::{RunLabels, texts_of};
use super::read::Reader;
use super::rows::{Kind, Stacks};
use super::weights::tie;
use crate::diff::stacks::Keys;
use crate::diff::{Innermost, SampleLocations, SampleVisitor, Walk};
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::samples::Sample;
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

/// How many waits a record of delays stands for that does not say so. What counts is what runs differ by.
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
    /// True if its values are counts themselves.
    pub is_counted: bool,
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
    /// While it is read.
    index: Index,
    /// By stack, as the search sees it: the keyed hash by which runs share it.
    pub hashes: Vec<u128>,
    /// What decides between stacks of equal weight: the same in whatever order samples and files come.
    pub ties: Vec<u64>,
    /// The number of its frames.
    pub depths: Vec<u16>,
    /// The first stacks' frames: as many as there was room for.
    stacks: Stacks,
    /// Of the others: the place of the first sample that has the stack, among those that are read.
    places: Vec<u32>,
    /// By location: a bit for each sample type of which a sample has it.
    is_used: Vec<u8>,
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

/// Shows the samples that are wanted, by their places among those that cost something of any sample type, with what they cost of
/// each and their frames' canonical numbers, leaf first: none of what has no stack.
struct Visitor<'c, 'm, W, F> {
    wants: W,
    place: u32,
    walk: &'c Walk<'m>,
    canonical: &'c [u32],
    /// By location, with canonical numbers.
    innermost: Vec<Innermost>,
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
        let period = self.walk.input.profile.period() as f64;
        let counted = of(&self.count).map(|c| c.max(1.0));
        let by_period = || if period > 1.0 { (v / period).max(1.0) } else { 1.0 };
        let events = match kind {
            Kind::Delay => counted.unwrap_or(UNCOUNTED) / self.step.max(1) as f64,
            Kind::Heap if period > 1.0 => match (counted, of(&self.bytes)) {
                (Some(c), Some(bytes)) if bytes > 0.0 => {
                    (c * events_of_object(bytes / c / period, self.is_level)).max(1e-9)
                }
                _ => by_period(),
            },
            _ if self.is_counted => counted.unwrap_or(v),
            _ => counted.unwrap_or_else(by_period),
        };
        let variance = v * v / events * if kind == Kind::Delay { 2.0 } else { 1.0 };
        // Waits that are not counted are no number.
        let count = counted.unwrap_or(if kind == Kind::Delay { 0.0 } else { events });
        Part { value: v, count, events, variance }
    }

    /// Calls `each` with the values (here and beside) of each sample that `wants` one by its place, its stack as the search sees
    /// it, leaf first, and itself. Gives, by location, of which types one of these samples has it, and the magnitudes of
    /// negative values.
    fn visit(
        &self,
        reader: &Reader<'_>,
        wants: impl FnMut(u32) -> bool,
        mut each: impl FnMut([i64; 2], &[u32], &Sample<'m>),
    ) -> (Vec<u8>, [f64; 2]) {
        let (walk, beside, canonical) = (&self.walk, self.beside.as_ref(), reader.canonical);
        let common = |first: Innermost| Innermost::new(canonical[first.frame() as usize], first.has_more());
        let innermost: Vec<Innermost> = walk.innermost().into_iter().map(common).collect();
        let (is_used, negative, frames) = (vec![0; innermost.len()], [0.0; 2], Vec::new());
        let each = |values: [i64; 2], frames: &mut Vec<u32>, sample: &Sample<'m>| {
            reader.shorten(frames);
            each(values, frames, sample);
        };
        let mut visitor =
            Visitor { wants, place: 0, walk, beside, canonical, innermost, is_used, negative, frames, each };
        let counts_beside = |sample: &Sample<'m>| beside.is_some_and(|beside| beside.value(sample) != 0);
        walk.visit_or(&walk.input.profile.sample_range(), counts_beside, &mut visitor);
        (visitor.is_used, visitor.negative)
    }

    /// Calls `each` with the canonical numbers of the frames that its samples have, some more than once.
    pub(in crate::explain) fn for_each_used(&self, of: &OfRun, canonical: &[u32], mut each: impl FnMut(u32)) {
        for (location, _) in (0..).zip(&of.stacks.is_used).filter(|(_, used)| **used & of.used_bit != 0) {
            let frames = self.walk.frames.expand(location).iter();
            frames.for_each(|&frame| each(canonical[self.walk.translation[frame as usize] as usize]));
        }
    }
}

impl RunStacks {
    /// With room for as many stacks as there are samples, so that growing copies nothing: pages that are not used cost nothing.
    /// In a browser all that is taken counts; there they grow.
    fn with_room_for(n: usize) -> RunStacks {
        let n = if cfg!(target_pointer_width = "64") { n } else { 0 };
        RunStacks {
            index: Index::with_capacity(n),
            hashes: Vec::with_capacity(n),
            ties: Vec::with_capacity(n),
            depths: Vec::with_capacity(n),
            ..RunStacks::default()
        }
    }

    /// The number of a stack, given leaf first.
    #[inline(always)]
    fn number(&mut self, hash: u128, stack: &[u32], place: u32, room: usize) -> u32 {
        let RunStacks { index, hashes, .. } = self;
        let of = |n: u32| hashes[n as usize];
        let found = index.find_or_insert(hash as u64, hashes.len(), |n| of(n) == hash, |n| of(n) as u64);
        if let Found::New(_) = found {
            let keeps_all = self.stacks.len() == self.hashes.len();
            self.hashes.push(hash);
            self.ties.push(tie(stack));
            self.depths.push(stack.len() as u16);
            if keeps_all && self.stacks.bytes() + size_of_val(stack) <= room {
                self.stacks.push(stack.iter().rev().copied());
            } else {
                self.places.push(place);
            }
        }
        found.number()
    }
}

impl OfRun {
    /// Reads a profile, of one sample type or of two in one look. Frames of its stacks are kept in so many bytes.
    pub(in crate::explain) fn read(runs: &[&Run<'_>], reader: &Reader<'_>, keys: &Keys, room: usize) -> Vec<OfRun> {
        let has_labels = runs[0].walk.input.profile.has_labels();
        // Else rows are the stacks.
        let has_rows = has_labels || runs.len() > 1;
        let mut stacks = RunStacks::with_room_for(runs[0].walk.input.profile.n_samples());
        let mut of: Vec<(OfRun, Interner<(u32, u32), FastState>)> = runs.iter().map(|_| Default::default()).collect();
        let (mut place, mut texts) = (0, Vec::new());
        let (is_used, negative) = runs[0].visit(
            reader,
            |_| true,
            |values, stack, sample| {
                let number = stacks.number(keys.hash(0, stack), stack, place, room);
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
        (stacks.index, stacks.is_used) = (Index::default(), is_used);
        let stacks = Arc::new(stacks);
        let of_run = |(((of, rows), negative), bit): (((OfRun, Interner<(u32, u32), FastState>), f64), u32)| {
            let rows = if has_rows { rows.values } else { (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect() };
            OfRun { stacks: stacks.clone(), used_bit: 1 << bit, rows, negative, ..of }
        };
        of.into_iter().zip(negative).zip(0..).map(of_run).collect()
    }

    /// Calls `each` with the number and the frames, root first, of each stack that is wanted: `wants` says so of each number.
    /// Where there was no room for all of them, the samples are read again for the others.
    pub(in crate::explain) fn each_stack(
        &self,
        run: &Run<'_>,
        reader: &Reader<'_>,
        wants: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, &[u32]),
    ) {
        let RunStacks { stacks, places, .. } = &*self.stacks;
        let kept = stacks.len() as u32;
        for stack in paced(0..kept).filter(|&stack| wants(stack)) {
            each(stack, stacks.get(stack));
        }
        // They come in the order of their numbers.
        let others = || places.iter().copied().zip(kept..).filter(|(_, stack)| wants(*stack));
        let (mut places, mut stacks) = (others().map(|(place, _)| place).peekable(), others().map(|(_, stack)| stack));
        if places.peek().is_none() {
            return;
        }
        let mut frames = Vec::new();
        run.visit(
            reader,
            |place| places.next_if_eq(&place).is_some(),
            |_, stack, _| {
                frames.clear();
                frames.extend(stack.iter().rev());
                stacks.next().into_iter().for_each(|number| each(number, &frames));
            },
        );
    }
}
