//! A pass over the samples of a run. It returns the distinct stacks with their labels, by the run's own numbers, and
//! their sums. Stacks that did not fit into memory are read again by [`OfRun::each_stack`].

use super::super::thresholds::{
    EVENTS_OF_UNCOUNTED_DELAY, MAX_EVENTS_OF_CERTAIN_OBJECT, MIN_SIZE_OF_CERTAIN_OBJECT, VARIANCE_OF_DELAY,
};
use super::labels::{RunLabels, texts_of};
use super::read::SampleReader;
use super::rows::{Stacks, ValueKind};
use super::stack_chunks::{StackChunk, StackInterner};
use super::weights::Weight;
use crate::diff::stacks::Keys;
use crate::diff::{Innermost, SampleLocations, SampleVisitor, Walk};
use crate::sampling::{Basis, events_of_exact};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::samples::{Sample, SampleRange};
use std::sync::Arc;

/// Maximum number of frames of a stack, counted from its leaf.
pub(in crate::explain) const DEEPEST: usize = 256;

/// Returns the number of events that one heap object represents. `size` is in units of the sampling rate. An object is
/// sampled with `p = 1 - exp(-size)`. The number of objects also varies, so an object counts as `p` events. Large
/// objects in use are an exception: they certainly exist, and only sampling is random, so they count as `p / (1 - p)`
/// events. Allocations always count as `p` events: large buffers do not grow with the amount of work and would be
/// reported as causes (in two of eight cases of a web shop that differed only in the amount of work).
fn events_of_object(size: f64, is_level: bool) -> f64 {
    if is_level && size > MIN_SIZE_OF_CERTAIN_OBJECT {
        size.exp_m1().min(MAX_EVENTS_OF_CERTAIN_OBJECT)
    } else {
        -(-size).exp_m1()
    }
}

/// A profile with the information about its sampling.
pub(in crate::explain) struct Run<'m> {
    pub walk: Walk<'m>,
    /// The walk of another sample type that is read in the same pass.
    pub beside: Option<Walk<'m>>,
    pub count: Option<Walk<'m>>,
    pub bytes: Option<Walk<'m>>,
    /// The side; `None` for A/A runs, which only estimate noise.
    pub side: Option<usize>,
    /// The run's column in [`StackRows::run_values`](super::rows::StackRows::run_values).
    pub column: usize,
    /// The greatest common divisor of all counts, which is the inverse of the sampling fraction.
    pub step: u64,
    /// True if the sample type measures a level instead of activity.
    pub is_level: bool,
    /// The basis for the number of events behind a value.
    pub basis: Basis,
    /// True if the number of samples is unknown, and the basis is nominal.
    pub is_unknown: bool,
    /// Factor for values, if the samples were taken at another rate than the base's.
    pub times: f64,
    /// The number of samples that count as one event, if the opposite side was sampled less often.
    pub coarse: f64,
}

/// The contribution of one sample to its row.
#[derive(Clone, Copy, Default)]
pub(in crate::explain) struct SampleSums {
    pub value: f64,
    pub count: f64,
    pub events: f64,
    pub variance: f64,
}

impl std::ops::AddAssign for SampleSums {
    fn add_assign(&mut self, other: SampleSums) {
        self.value += other.value;
        self.count += other.count;
        self.events += other.events;
        self.variance += other.variance;
    }
}

/// The distinct stacks of a profile, for all sample types that are read in one pass.
#[derive(Default)]
pub(in crate::explain) struct RunStacks {
    /// By stack, in the form that the search uses: a keyed hash, which is equal in all runs.
    pub hashes: Vec<u128>,
    /// By stack: a number that breaks ties of equal weight. It does not depend on the order of samples or files.
    pub ties: Vec<u64>,
    /// By stack: the number of frames.
    pub depths: Vec<u16>,
    /// By stack: the innermost program function, or [`NONE`].
    pub owns: Vec<u32>,
    /// The chunks of samples that were read, which cover all samples.
    pub(super) chunks: Vec<ReadChunk>,
    /// By location: a bit per sample type that uses it.
    pub(super) is_used: Vec<u8>,
}

impl RunStacks {
    /// Returns the weight of a stack without its values.
    pub fn weight(&self, stack: u32, tie: u64) -> Weight {
        let stack = stack as usize;
        Weight { values: [0.0; 2], tie, depth: self.depths[stack], own_function: self.owns[stack] }
    }
}

/// The stacks that first occur in a chunk of the samples.
pub(super) struct ReadChunk {
    pub range: SampleRange,
    /// The frames of the first stacks, limited by memory, with their numbers; [`NONE`] if an earlier chunk has the
    /// stack.
    pub kept: Stacks,
    pub numbers: Vec<u32>,
    /// The remaining stacks: the position of the first sample with the stack, among the read samples of the chunk, and
    /// the stack's number.
    pub others: Vec<(u32, u32)>,
}

/// The samples of a run for one sample type.
#[derive(Default)]
pub(in crate::explain) struct OfRun {
    pub stacks: Arc<RunStacks>,
    /// The bit of this sample type in `RunStacks::is_used`.
    used_bit: u8,
    /// The distinct stacks with labels, by the run's own numbers: (stack, set of labels).
    pub rows: Vec<(u32, u32)>,
    pub parts: Vec<SampleSums>,
    pub labels: RunLabels,
    /// The sum of negative values, as a magnitude. They are not part of any stack.
    pub negative: f64,
}

/// Facts about all visited samples.
pub(super) struct Visited {
    /// By location: a bit per sample type that uses it.
    pub is_used: Vec<u8>,
    /// The sums of negative values, as magnitudes.
    pub negative: [f64; 2],
}

/// Calls `each` with wanted samples: the values of each sample type, and the canonical numbers of frames, leaf first.
/// The predicate `wants` gets the position of a sample among all samples with a positive value of any sample type. The
/// list of frames is empty for a sample without a stack.
struct Visitor<'c, 'm, W, F> {
    wants: W,
    place: u32,
    walk: &'c Walk<'m>,
    canonical: &'c [u32],
    /// By location, with canonical numbers.
    innermost: &'c [Innermost],
    beside: Option<&'c Walk<'m>>,
    /// By location: a bit per sample type that uses it.
    is_used: Vec<u8>,
    /// The sums of negative values, as magnitudes.
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
        (0..2).for_each(|index| self.negative[index] -= values[index].min(0) as f64);
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
    /// Reads the frames of a sample. This is the innermost loop. It is a function of its own, and leaves rare cases to
    /// another function, so that its variables stay in registers.
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

/// Appends the callers into which a location's innermost frame is inlined.
#[inline(never)]
fn push_callers(walk: &Walk<'_>, canonical: &[u32], location: u32, frames: &mut Vec<u32>) {
    let callers = walk.frames.expand(location)[1..].iter();
    frames.extend(callers.map(|&frame| canonical[walk.translation[frame as usize] as usize]));
}

impl<'m> Run<'m> {
    /// Returns the contribution of a sample, with the number of events behind it.
    pub(in crate::explain) fn part(&self, kind: ValueKind, v: f64, sample: &Sample<'_>) -> SampleSums {
        let value_in = |walk: &Option<Walk<'_>>| walk.as_ref().map(|walk| walk.value(sample) as f64);
        let counted = value_in(&self.count).map(|c| c.max(1.0));
        let v = v * self.times;
        let events = match self.basis {
            Basis::Column(column) => (sample.value(column).unsigned_abs() as f64).max(1.0),
            Basis::Own => v,
            Basis::Size(event) => (v / event).max(1.0),
            Basis::Heap(rate) => match (counted, value_in(&self.bytes)) {
                (Some(c), Some(bytes)) if bytes > 0.0 => {
                    (c * events_of_object(bytes / c / rate, self.is_level)).max(1e-9)
                }
                _ => (v / rate).max(1.0),
            },
            Basis::Delay => counted.unwrap_or(1.0) / self.step.max(1) as f64,
            Basis::Objects => counted.unwrap_or(v),
            Basis::Exact => events_of_exact(counted.unwrap_or(v)),
            // For delays only: other values with an unknown number of samples have a nominal basis.
            Basis::Unknown => EVENTS_OF_UNCOUNTED_DELAY,
        };
        let events = events / self.coarse;
        let variance = v * v / events * if kind == ValueKind::Delay { VARIANCE_OF_DELAY } else { 1.0 };
        // Without a count, the number of waits is unknown.
        let count = counted.unwrap_or(if kind == ValueKind::Delay { 0.0 } else { events });
        SampleSums { value: v, count, events, variance }
    }

    /// Returns the innermost frame of each location, with canonical numbers.
    pub(super) fn innermost(&self, reader: &SampleReader<'_>) -> Vec<Innermost> {
        let common = |first: Innermost| Innermost::new(reader.canonical[first.frame() as usize], first.has_more());
        self.walk.innermost().into_iter().map(common).collect()
    }

    /// Calls `each` with the samples of a range that `wants` selects by position: the values (of this sample type and
    /// the type beside it), the stack in the form that the search uses (leaf first), and the sample.
    pub(super) fn visit(
        &self,
        reader: &SampleReader<'_>,
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

    /// Calls `each` with the canonical numbers of all used frames. A frame may come several times.
    pub(in crate::explain) fn for_each_used(&self, samples: &OfRun, canonical: &[u32], mut each: impl FnMut(u32)) {
        for (location, _) in (0..).zip(&samples.stacks.is_used).filter(|(_, used)| **used & samples.used_bit != 0) {
            let frames = self.walk.frames.expand(location).iter();
            frames.for_each(|&frame| each(canonical[self.walk.translation[frame as usize] as usize]));
        }
    }
}

impl OfRun {
    /// Reads a profile for one sample type, or for two in one pass. `room` is the memory for frames of stacks, in
    /// bytes.
    pub(in crate::explain) fn read(
        runs: &[&Run<'_>],
        reader: &SampleReader<'_>,
        keys: &Keys,
        room: usize,
    ) -> Vec<OfRun> {
        let walk = &runs[0].walk;
        let innermost = runs[0].innermost(reader);
        // Reads in parallel chunks if there is one sample type and no labels. Which labels are kept depends on earlier
        // samples.
        if runs.len() == 1 && !walk.input.profile.has_labels() {
            let ranges = walk.ranges();
            let room = room / ranges.len().max(1);
            let read = |range: &SampleRange| StackChunk::read(runs[0], reader, keys, &innermost, range, room);
            if ranges.len() > 1
                && let Some(samples) = StackChunk::joined(parallel::map(&ranges, read))
            {
                return vec![samples];
            }
        }
        OfRun::read_whole(runs, reader, keys, &innermost, room)
    }

    fn read_whole(
        runs: &[&Run<'_>],
        reader: &SampleReader<'_>,
        keys: &Keys,
        innermost: &[Innermost],
        room: usize,
    ) -> Vec<OfRun> {
        let profile = &runs[0].walk.input.profile;
        let has_labels = profile.has_labels();
        // Otherwise, rows are exactly the stacks.
        let has_rows = has_labels || runs.len() > 1;
        let mut stacks = StackInterner::with_room_for(profile.n_samples(), room);
        let mut samples: Vec<(OfRun, Interner<(u32, u32), FastState>)> =
            runs.iter().map(|_| Default::default()).collect();
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
                for (((samples, rows), run), value) in
                    samples.iter_mut().zip(runs).zip(values).filter(|(_, value)| *value > 0)
                {
                    let labels = if has_labels { samples.labels.set_of(&texts) } else { 0 };
                    let row = if has_rows { rows.number((number, labels)) } else { number };
                    if row as usize == samples.parts.len() {
                        samples.parts.push(SampleSums::default());
                    }
                    samples.parts[row as usize] += run.part(reader.kind, value as f64, sample);
                }
            },
        );
        let stacks = Arc::new(stacks.finish(profile.sample_range(), visited.is_used));
        let to_samples =
            |(((samples, rows), negative), bit): (((OfRun, Interner<(u32, u32), FastState>), f64), u32)| {
                let rows =
                    if has_rows { rows.values } else { (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect() };
                OfRun { stacks: stacks.clone(), used_bit: 1 << bit, rows, negative, ..samples }
            };
        samples.into_iter().zip(visited.negative).zip(0..).map(to_samples).collect()
    }

    /// Creates the samples of a profile without labels, for one sample type. Rows are exactly the stacks.
    pub(super) fn from_stacks(stacks: RunStacks, parts: Vec<SampleSums>, negative: f64) -> OfRun {
        let rows = (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect();
        OfRun { stacks: Arc::new(stacks), used_bit: 1, rows, parts, labels: RunLabels::default(), negative }
    }

    /// Returns the number of chunks that [`OfRun::each_stack`] can process in parallel.
    pub(super) fn n_chunks(&self) -> usize {
        self.stacks.chunks.len()
    }

    /// Calls `each` with the number and the frames (root first) of each wanted stack that first occurs in a chunk.
    /// Reads the samples again for stacks whose frames did not fit into memory.
    pub(super) fn each_stack(
        &self,
        run: &Run<'_>,
        reader: &SampleReader<'_>,
        chunk: usize,
        wants: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, &[u32]),
    ) {
        let ReadChunk { range, kept, numbers, others } = &self.stacks.chunks[chunk];
        for (position, &number) in
            (0..).zip(checkpointed(numbers)).filter(|(_, number)| **number != NONE && wants(**number))
        {
            each(number, kept.get(position));
        }
        // They are in the order of their positions.
        let unread = || others.iter().filter(|(_, number)| wants(*number));
        let (mut places, mut numbers) = (unread().map(|stack| stack.0).peekable(), unread().map(|stack| stack.1));
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
