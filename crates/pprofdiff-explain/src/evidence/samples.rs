//! A pass over the samples of a run. It returns the distinct stacks with their labels, by the run's own numbers, and
//! their sums. Stacks that did not fit into memory are read again by [`OfRun::each_stack`].

use super::labelled::LabelledStacks;
use super::labels::{RunLabels, texts_of};
use super::read::SampleReader;
use super::rows::StackList;
use super::stack_chunks::{StackChunk, StackInterner};
use super::weights::Weight;
use pprofdiff::shared::{Innermost, Keys, SampleLocations, SampleSums, SampleVisitor, SampledRun, Walk};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::parallel;
use pprofdiff_profile::samples::{Sample, SampleRange};
use std::sync::Arc;

/// Maximum number of frames of a stack, counted from its leaf.
pub(crate) const DEEPEST: usize = 256;

/// A profile with the information about its sampling, and the sample type that is read in the same pass.
pub(crate) struct Run<'m> {
    pub sampled: SampledRun<'m>,
    /// The walk of another sample type that is read in the same pass.
    pub beside: Option<Walk<'m>>,
}

/// The distinct stacks of a profile, for all sample types that are read in one pass.
#[derive(Default)]
pub(crate) struct RunStacks {
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
    pub kept: StackList,
    pub numbers: Vec<u32>,
    /// The remaining stacks: the position of the first sample with the stack, among the read samples of the chunk, and
    /// the stack's number.
    pub others: Vec<(u32, u32)>,
}

/// The samples of a run for one sample type.
#[derive(Default)]
pub(crate) struct OfRun {
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
    locations: &'c LocationFrames,
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
        let Visitor { locations: all, is_used, frames, .. } = self;
        frames.clear();
        locations.for_each(|l| {
            let first = all.innermost[l as usize];
            is_used[l as usize] |= used;
            frames.push(first.frame());
            if first.has_more() {
                all.push_callers(l, frames);
            }
        });
    }
}

/// The frames of each location of a profile, with canonical numbers.
pub(super) struct LocationFrames {
    innermost: Vec<Innermost>,
    /// By location: the callers into which the innermost frame is inlined, `callers[starts[l]..starts[l + 1]]`.
    starts: Vec<u32>,
    callers: Vec<u32>,
}

impl LocationFrames {
    fn new(walk: &Walk<'_>, canonical: &[u32]) -> LocationFrames {
        let common = |first: Innermost| Innermost::new(canonical[first.frame() as usize], first.has_more());
        let innermost: Vec<Innermost> = walk.innermost().into_iter().map(common).collect();
        let (mut starts, mut callers) = (Vec::with_capacity(innermost.len() + 1), Vec::new());
        for (location, first) in (0..).zip(&innermost) {
            starts.push(callers.len() as u32);
            if first.has_more() {
                let frames = walk.frames.expand(location)[1..].iter();
                callers.extend(frames.map(|&frame| canonical[walk.translation[frame as usize] as usize]));
            }
        }
        starts.push(callers.len() as u32);
        LocationFrames { innermost, starts, callers }
    }

    /// Appends the callers into which a location's innermost frame is inlined.
    #[inline(never)]
    fn push_callers(&self, location: u32, frames: &mut Vec<u32>) {
        let location = location as usize;
        frames.extend_from_slice(&self.callers[self.starts[location] as usize..self.starts[location + 1] as usize]);
    }
}

impl<'m> Run<'m> {
    /// Returns the frames of each location.
    pub(super) fn locations(&self, reader: &SampleReader<'_>) -> LocationFrames {
        LocationFrames::new(&self.sampled.walk, reader.canonical)
    }

    /// Calls `each` with the samples of a range that `wants` selects by position: the values (of this sample type and
    /// the type beside it), the stack in the form that the search uses (leaf first), and the sample.
    pub(super) fn visit(
        &self,
        reader: &SampleReader<'_>,
        range: &SampleRange,
        locations: &LocationFrames,
        wants: impl FnMut(u32) -> bool,
        mut each: impl FnMut([i64; 2], &[u32], &Sample<'m>),
    ) -> Visited {
        let (walk, beside) = (&self.sampled.walk, self.beside.as_ref());
        let (is_used, negative, frames) = (vec![0; locations.innermost.len()], [0.0; 2], Vec::new());
        let each = |values: [i64; 2], frames: &mut Vec<u32>, sample: &Sample<'m>| {
            reader.shorten(frames);
            each(values, frames, sample);
        };
        let mut visitor = Visitor { wants, place: 0, beside, locations, is_used, negative, frames, each };
        let counts_beside = |sample: &Sample<'m>| beside.is_some_and(|beside| beside.value(sample) != 0);
        walk.visit_or(range, counts_beside, &mut visitor);
        Visited { is_used: visitor.is_used, negative: visitor.negative }
    }

    /// Calls `each` with the canonical numbers of all used frames. A frame may come several times.
    pub(crate) fn for_each_used(&self, samples: &OfRun, canonical: &[u32], mut each: impl FnMut(u32)) {
        for (location, _) in (0..).zip(&samples.stacks.is_used).filter(|(_, used)| **used & samples.used_bit != 0) {
            let frames = self.sampled.walk.frames.expand(location).iter();
            frames.for_each(|&frame| each(canonical[self.sampled.walk.translation[frame as usize] as usize]));
        }
    }
}

impl OfRun {
    /// Reads a profile for one sample type, or for two in one pass. `room` is the memory for frames of stacks, in
    /// bytes.
    pub(crate) fn read(runs: &[&Run<'_>], reader: &SampleReader<'_>, keys: &Keys, room: usize) -> Vec<OfRun> {
        let walk = &runs[0].sampled.walk;
        let locations = runs[0].locations(reader);
        // Reads in parallel chunks if there is one sample type and no labels. Which labels are kept depends on earlier
        // samples.
        if runs.len() == 1 && !walk.input.profile.has_labels() {
            let ranges = walk.ranges();
            let room = room / ranges.len().max(1);
            let read = |range: &SampleRange| StackChunk::read(runs[0], reader, keys, &locations, range, room);
            if ranges.len() > 1
                && let Some(samples) = StackChunk::joined(parallel::map(&ranges, read))
            {
                return vec![samples];
            }
        }
        OfRun::read_whole(runs, reader, keys, &locations, room)
    }

    fn read_whole(
        runs: &[&Run<'_>],
        reader: &SampleReader<'_>,
        keys: &Keys,
        locations: &LocationFrames,
        room: usize,
    ) -> Vec<OfRun> {
        let profile = &runs[0].sampled.walk.input.profile;
        let has_labels = profile.has_labels();
        // Otherwise, rows are exactly the stacks.
        let has_rows = has_labels || runs.len() > 1;
        let mut stacks = StackInterner::with_room_for(profile.n_samples(), room);
        let mut samples: Vec<(OfRun, LabelledStacks)> = runs.iter().map(|_| Default::default()).collect();
        if cfg!(target_pointer_width = "64") {
            samples.iter_mut().for_each(|(samples, _)| samples.parts.reserve(profile.n_samples()));
        }
        let (mut place, mut texts) = (0, Vec::new());
        let visited = runs[0].visit(
            reader,
            &profile.sample_range(),
            locations,
            |_| true,
            |values, stack, sample| {
                let number = stacks.number(keys.hash(0, stack), stack, place, reader);
                place += 1;
                if has_labels {
                    texts.clear();
                    texts.extend(texts_of(&runs[0].sampled.walk, sample));
                }
                for (((samples, rows), run), value) in
                    samples.iter_mut().zip(runs).zip(values).filter(|(_, value)| *value > 0)
                {
                    let labels = if has_labels { samples.labels.set_of(&texts) } else { 0 };
                    let row = if has_rows { rows.number(number, labels) } else { number };
                    if row as usize == samples.parts.len() {
                        samples.parts.push(SampleSums::default());
                    }
                    samples.parts[row as usize] += run.sampled.part(reader.kind, value as f64, sample);
                }
            },
        );
        let stacks = Arc::new(stacks.finish(profile.sample_range(), visited.is_used));
        let to_samples = |(((mut samples, rows), negative), bit): (((OfRun, LabelledStacks), f64), u32)| {
            samples.parts.shrink_to_fit();
            let rows =
                if has_rows { rows.into_values() } else { (0..stacks.hashes.len() as u32).map(|n| (n, 0)).collect() };
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
            &run.locations(reader),
            |place| places.next_if_eq(&place).is_some(),
            |_, stack, _| {
                frames.clear();
                frames.extend(stack.iter().rev());
                numbers.next().into_iter().for_each(|number| each(number, &frames));
            },
        );
    }
}
