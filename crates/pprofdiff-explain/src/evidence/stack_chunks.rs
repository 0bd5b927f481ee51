//! Large profiles are read in chunks in parallel, on the caller's pool. Joining the chunks gives the same result as
//! reading in one pass: stacks are numbered by their first samples, and each row's samples are added in their order.
//! Therefore sums are identical, to the last digit, for any number of threads.

use super::read::SampleReader;
use super::rows::StackList;
use super::samples::{DEEPEST, LocationFrames, OfRun, ReadChunk, Run, RunStacks, Visited};
use super::stack_ids::StackIds;
use super::weights::tie;
use pprofdiff::shared::{Keys, SampleSums};
use pprofdiff_profile::cancellation::{self, checkpointed};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index};
use pprofdiff_profile::parallel;
use pprofdiff_profile::samples::SampleRange;

/// Minimum number of stacks per thread when adding up samples.
const MIN_STACKS: usize = 1 << 15;
/// Sums of integers below this are exact in any order.
const EXACT: f64 = (1u64 << 53) as f64;

/// The distinct stacks of samples while they are read.
#[derive(Default)]
pub(super) struct StackInterner {
    index: Index,
    hashes: Vec<u128>,
    ties: Vec<u64>,
    depths: Vec<u16>,
    owns: Vec<u32>,
    /// The frames of the first stacks, and the memory limit for them in bytes.
    stacks: StackList,
    room: usize,
    /// The remaining stacks: the position of the first sample with the stack.
    places: Vec<u32>,
}

impl StackInterner {
    /// Reserves space for one stack per sample, so that growing never copies: unused pages are free. In a browser,
    /// reserved memory is not free, so lists grow there.
    pub fn with_room_for(n: usize, room: usize) -> StackInterner {
        let n = if cfg!(target_pointer_width = "64") { n } else { 0 };
        StackInterner {
            index: Index::with_capacity(n),
            hashes: Vec::with_capacity(n),
            ties: Vec::with_capacity(n),
            depths: Vec::with_capacity(n),
            owns: Vec::with_capacity(n),
            stacks: StackList::with_capacity(n, (n * DEEPEST).min(room / size_of::<u32>())),
            room,
            places: Vec::new(),
        }
    }

    /// Returns the number of a stack, given leaf first.
    #[inline(always)]
    pub fn number(&mut self, hash: u128, stack: &[u32], place: u32, reader: &SampleReader<'_>) -> u32 {
        let StackInterner { index, hashes, .. } = self;
        let hash_of = |n: u32| hashes[n as usize];
        let entry = index.find_or_insert(hash as u64, hashes.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64);
        if let Found::New(_) = entry {
            let keeps_all = self.stacks.len() == self.hashes.len();
            self.hashes.push(hash);
            self.ties.push(tie(stack));
            self.depths.push(stack.len() as u16);
            self.owns.push(stack.iter().copied().find(|&frame| !reader.is_system(frame)).unwrap_or(NONE));
            if keeps_all && self.stacks.bytes() + size_of_val(stack) <= self.room {
                self.stacks.push(stack.iter().rev().copied());
            } else {
                self.places.push(place);
            }
        }
        entry.number()
    }

    /// Releases unused capacity.
    fn shrink_to_fit(&mut self) {
        self.hashes.shrink_to_fit();
        self.ties.shrink_to_fit();
        self.depths.shrink_to_fit();
        self.owns.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// Returns the stacks of a profile that was read in one pass.
    pub fn finish(self, range: SampleRange, is_used: Vec<u8>) -> RunStacks {
        let StackInterner { hashes, ties, depths, owns, stacks: kept, places, .. } = self;
        let n_kept = kept.len() as u32;
        let others = places.into_iter().zip(n_kept..).collect();
        let chunks = vec![ReadChunk { range, kept, numbers: (0..n_kept).collect(), others }];
        RunStacks { hashes, ties, depths, owns, chunks, is_used }
    }
}

/// A chunk of a profile's samples, for one sample type and without labels.
pub(super) struct StackChunk {
    range: SampleRange,
    stacks: StackInterner,
    /// By stack, the contribution of its first sample; then the contributions of further samples, in their order.
    first: Vec<SampleSums>,
    further: Vec<(u32, SampleSums)>,
    /// True if `further` exceeded its memory limit.
    is_full: bool,
    visited: Visited,
}

impl StackChunk {
    pub fn read(
        run: &Run<'_>,
        reader: &SampleReader<'_>,
        keys: &Keys,
        locations: &LocationFrames,
        range: &SampleRange,
        room: usize,
    ) -> StackChunk {
        let mut stacks = StackInterner { room, ..StackInterner::default() };
        let (mut first, mut further, mut place): (Vec<SampleSums>, Vec<(u32, SampleSums)>, u32) =
            (Vec::new(), Vec::new(), 0);
        // Limits the memory for repetitions to the memory of the samples themselves.
        let max_further = range.bytes() / size_of::<(u32, SampleSums)>();
        let visited = run.visit(
            reader,
            range,
            locations,
            |_| true,
            |values, stack, sample| {
                let number = stacks.number(keys.hash(0, stack), stack, place, reader);
                place += 1;
                let part = run.sampled.part(reader.kind, values[0] as f64, sample);
                if number as usize == first.len() {
                    first.push(part);
                } else if further.len() <= max_further {
                    further.push((number, part));
                }
            },
        );
        let is_full = further.len() > max_further;
        stacks.shrink_to_fit();
        first.shrink_to_fit();
        further.shrink_to_fit();
        StackChunk { range: range.clone(), stacks, first, further, is_full, visited }
    }

    /// Joins all chunks of a profile, in order. Returns `None` if a sum could depend on the chunks, or if a chunk is
    /// full; the profile is then read again in one pass.
    pub fn joined(mut chunks: Vec<StackChunk>) -> Option<OfRun> {
        let negative: f64 = chunks.iter().map(|chunk| chunk.visited.negative[0]).sum();
        if chunks.iter().any(|chunk| chunk.is_full) || negative >= EXACT {
            return None;
        }
        let lists: Vec<&[u128]> = chunks.iter().map(|chunk| &*chunk.stacks.hashes).collect();
        let numbers = StackIds::new(&lists);
        let parts = added_up(&chunks, &numbers);
        // If each sample has a stack of its own, the data of the chunks is as large as the result, so it is freed
        // early.
        for chunk in &mut chunks {
            (chunk.first, chunk.further, chunk.stacks.index) = Default::default();
        }
        let firsts = parallel::map(&(0..chunks.len()).collect::<Vec<_>>(), |&i| Firsts::new(&chunks[i], i, &numbers));
        let mut all = RunStacks {
            hashes: Vec::with_capacity(numbers.len),
            ties: Vec::with_capacity(numbers.len),
            depths: Vec::with_capacity(numbers.len),
            owns: Vec::with_capacity(numbers.len),
            ..RunStacks::default()
        };
        for (chunk, firsts) in chunks.into_iter().zip(firsts) {
            cancellation::checkpoint();
            all.hashes.extend(firsts.hashes);
            all.ties.extend(firsts.ties);
            all.depths.extend(firsts.depths);
            all.owns.extend(firsts.owns);
            let kept = chunk.stacks.stacks;
            all.chunks.push(ReadChunk { range: chunk.range, kept, numbers: firsts.numbers, others: firsts.others });
            all.is_used.resize(chunk.visited.is_used.len(), 0);
            all.is_used.iter_mut().zip(chunk.visited.is_used).for_each(|(all, used)| *all |= used);
        }
        Some(OfRun::from_stacks(all, parts, negative))
    }
}

/// The stacks of a chunk that no earlier chunk has.
struct Firsts {
    hashes: Vec<u128>,
    ties: Vec<u64>,
    depths: Vec<u16>,
    owns: Vec<u32>,
    /// The same as in [`ReadChunk`].
    numbers: Vec<u32>,
    others: Vec<(u32, u32)>,
}

impl Firsts {
    fn new(chunk: &StackChunk, chunk_index: usize, numbers: &StackIds) -> Firsts {
        let StackInterner { hashes, ties, depths, owns, stacks: kept, places, .. } = &chunk.stacks;
        let (mut kept_numbers, mut others) = (vec![NONE; kept.len()], Vec::new());
        for (place, number) in checkpointed(numbers.new_places(chunk_index).zip(numbers.starts[chunk_index]..)) {
            match kept_numbers.get_mut(place) {
                Some(kept_numbers) => *kept_numbers = number,
                None => others.push((places[place - kept.len()], number)),
            }
        }
        let new_stacks = || checkpointed(numbers.new_places(chunk_index));
        Firsts {
            hashes: new_stacks().map(|stack| hashes[stack]).collect(),
            ties: new_stacks().map(|stack| ties[stack]).collect(),
            depths: new_stacks().map(|stack| depths[stack]).collect(),
            owns: new_stacks().map(|stack| owns[stack]).collect(),
            numbers: kept_numbers,
            others,
        }
    }
}

/// Returns, by stack, the sum of its samples in their order. Works on ranges of stacks in parallel.
fn added_up(chunks: &[StackChunk], numbers: &StackIds) -> Vec<SampleSums> {
    let mut sums = vec![SampleSums::default(); numbers.len];
    let chunk_size = numbers.len.div_ceil(parallel::parts(numbers.len, MIN_STACKS)).max(1);
    let ranges: Vec<_> = (0..).step_by(chunk_size).zip(sums.chunks_mut(chunk_size)).collect();
    parallel::each(ranges, |(from, sums): (u32, &mut [SampleSums])| {
        for (chunk, number_of) in chunks.iter().zip(&numbers.by_list) {
            for (&number, part) in checkpointed(number_of.iter().zip(&chunk.first)) {
                if let Some(sum) = sums.get_mut(number.wrapping_sub(from) as usize) {
                    *sum += *part;
                }
            }
            for &(stack, part) in checkpointed(&chunk.further) {
                if let Some(sum) = sums.get_mut(number_of[stack as usize].wrapping_sub(from) as usize) {
                    *sum += part;
                }
            }
        }
    });
    sums
}

#[cfg(test)]
mod tests {
    use super::super::names::FrameTexts;
    use super::super::read::ReadRuns;
    use super::super::rows::StackRows;
    use super::super::weights::mix;
    use pprofdiff::shared::{Moves, UserRules};
    use pprofdiff::{Diff, Normalize, Query};
    use pprofdiff_profile::builder::ProfileBuilder;
    use pprofdiff_profile::{Profile, Result};

    /// Creates a profile that is large enough for three chunks, with random stacks of `functions` functions. Some
    /// values are negative.
    fn profile(seed: u64, functions: u64) -> Result<Profile> {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("samples", "count");
        builder.sample_type("cpu", "nanoseconds");
        let mut locations = Vec::new();
        for function in 0..functions {
            let id = builder.function(format!("main.f{function}"), "main.go", 0);
            let line = builder.line(id, 1);
            locations.push(builder.location(None, 0, &[line])?);
        }
        for i in 0..200_000u64 {
            let random = |n: u64| mix(seed << 32 | i << 8 | n);
            let stack: Vec<_> =
                (0..random(0) % 6).map(|depth| locations[(random(1 + depth) % functions) as usize]).collect();
            let count = (random(9) % 5) as i64 - 1;
            builder.sample(&stack, &[count, count * (random(10) % 1_000_003) as i64], &[])?;
        }
        builder.build("made.pb.gz")
    }

    fn rows(diff: &Diff) -> Result<StackRows> {
        let selection = diff.select_with(&Query::default(), &Moves::default())?;
        let texts = FrameTexts::classify(selection.frames(), &UserRules::default());
        let value = selection.measure_type(1, Normalize::None)?;
        diff.target_of(1).read(&selection, &value, 0, |columns| ReadRuns::new(columns, &texts).rows())
    }

    /// Returns all sums bit by bit.
    fn digits(rows: &StackRows) -> Vec<(Vec<u32>, [u64; 7])> {
        let row = |i: usize| {
            let sums = &rows.rows[i];
            let [values, counts, events] = [sums.values, sums.counts, sums.events].map(|pair| pair.map(f64::to_bits));
            let all = [values[0], values[1], counts[0], counts[1], events[0], events[1], sums.variance.to_bits()];
            (rows.stack(i).to_vec(), all)
        };
        (0..rows.rows.len()).map(row).collect()
    }

    #[test]
    fn sums_are_identical_for_any_number_of_threads() -> Result<()> {
        // Mostly unique stacks, stacks that repeat a few times, and few stacks that repeat until chunks are full.
        for functions in [400, 30, 3] {
            let diff = Diff::between(profile(1, functions)?, profile(2, functions)?)?;
            let one = rows(&diff)?;
            for threads in [2, 4] {
                let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build() else { return Ok(()) };
                let measure = diff.measure(&Query::default())?;
                let chunks = |walk: pprofdiff::shared::Walk<'_>| pool.install(|| walk.ranges().len());
                assert!(measure.walks().all(|walk| chunks(walk) == threads.min(3)), "{functions}");
                let many = pool.install(|| rows(&diff))?;
                assert_eq!(many.negative, one.negative, "{functions}, {threads}");
                assert!(digits(&many) == digits(&one), "{functions}, {threads}");
            }
        }
        Ok(())
    }
}
