//! Collects the entries of the tree from samples: distinct stacks, with the sums of all sample types.
//!
//! As in `stacks`, a keyed hash of 128 bits identifies a stack. Both sides are read in parallel: the base into the
//! table, and the new side into a list of hashes. Frames of the new side are read a second time only for stacks that
//! the base does not have.

use super::super::frames::Innermost;
use super::super::selection::Selection;
use super::super::stacks::Keys;
use super::super::walk::{ColumnVisitor, SampleLocations, TypeColumns, Walk};
use super::StackTree;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, Total};
use pprofdiff_profile::interner::{Found, Index};
use pprofdiff_profile::parallel;
use pprofdiff_profile::samples::SampleRange;

/// The memory limit of a tree and its construction, in addition to twice the bytes of the profiles.
const EXTRA_BYTES: usize = 16 << 20;

/// The distinct stacks while they are collected.
pub(super) struct Entries {
    index: Index,
    hashes: Vec<u128>,
    /// The end of each entry's frames in `all`.
    ends: Vec<usize>,
    /// The steps of all entries, each entry root first.
    all: Vec<u32>,
    /// By entry, the sum of each column.
    pub values: Vec<i64>,
    /// By entry, a bit for each column. It is set if a sample has a value in the column.
    pub present: Vec<u64>,
    pub n_columns: usize,
    /// The maximum size in bytes. Beyond it, the table is full and the tree is not built.
    room: usize,
    is_full: bool,
}

/// The samples of the new side that have frames.
struct HashedSamples {
    hashes: Vec<u128>,
    /// By sample, the value of each sample type.
    values: Vec<i64>,
}

impl StackTree {
    /// Builds the tree of a selection. Returns `None` if it exceeds the memory limit.
    pub(super) fn from_selection(selection: &Selection) -> Option<StackTree> {
        let inputs: Vec<TypeColumns<'_>> = selection.columns();
        let n_types = inputs.first()?.of_types.len();
        let is_two_sided = selection.diff().is_two_sided();
        let (first, others): (Vec<_>, Vec<_>) = inputs.iter().partition(|c| c.walk.input.base == is_two_sided);
        let bytes: usize = inputs.iter().map(|c| c.walk.input.profile.inflated_size()).sum();
        let samples: usize = others.iter().map(|c| c.walk.input.profile.n_samples()).sum();
        // The new side's samples stay in memory until the base is complete.
        let hashed = samples.saturating_mul(size_of::<u128>() + size_of::<i64>() * n_types);
        let room = bytes.saturating_mul(2).saturating_add(EXTRA_BYTES).checked_sub(hashed)?;
        let keys = Keys::default();
        let step = 1 + usize::from(is_two_sided);
        let ((mut entries, first_totals), (hashed, other_totals)) =
            parallel::join(|| collect(&first, &keys, n_types, step, room), || hash(&others, &keys, n_types));
        let unknown = entries.add_known(&hashed, n_types);
        entries.add_unknown(&others, &hashed, &unknown, n_types);
        drop(hashed);
        if entries.is_full {
            return None;
        }
        entries.index = Index::default();
        entries.hashes = Vec::new();
        let totals = match is_two_sided {
            true => first_totals.into_iter().zip(other_totals).flat_map(<[Total; 2]>::from).collect(),
            false => first_totals,
        };
        let room = room - entries.bytes();
        StackTree::of_entries(&entries, selection.frames().len(), room).map(|tree| StackTree {
            totals,
            is_two_sided,
            ..tree
        })
    }
}

/// A range of consecutive samples of one input.
type ColumnRange<'c, 'm> = (&'c TypeColumns<'m>, SampleRange);

/// Splits the samples of a side into pieces that are large enough to be read in parallel. A piece contains several
/// inputs, or a part of one input.
fn pieces<'c, 'm>(inputs: &[&'c TypeColumns<'m>]) -> Vec<Vec<ColumnRange<'c, 'm>>> {
    let mut all: Vec<ColumnRange<'c, 'm>> = Vec::new();
    for &columns in inputs {
        all.extend(columns.walk.ranges().into_iter().map(|range| (columns, range)));
    }
    // Small inputs are read sequentially.
    let piece_len = if all.len() > inputs.len() { all.len().div_ceil(parallel::threads()) } else { all.len() };
    all.chunks(piece_len.max(1)).map(<[_]>::to_vec).collect()
}

/// Collects the entries of the base, or of the only side, and the totals of its sample types.
fn collect(
    inputs: &[&TypeColumns<'_>],
    keys: &Keys,
    n_types: usize,
    step: usize,
    room: usize,
) -> (Entries, Vec<Total>) {
    let pieces = pieces(inputs);
    let room_of_piece = room / pieces.len().max(1);
    let collected = parallel::map(&pieces, |piece| collect_piece(piece, keys, n_types, step, room_of_piece));
    if collected.len() > 1 && collected.iter().any(|(entries, _)| entries.is_full) {
        // Pieces of unequal size may exceed their share of the memory, so a single piece gets all of it.
        return collect_piece(&pieces.concat(), keys, n_types, step, room);
    }
    let mut collected = collected.into_iter();
    let (mut all, mut totals) =
        collected.next().unwrap_or_else(|| (Entries::new(n_types * step, room), vec![Total::default(); n_types]));
    all.room = room;
    for (entries, piece_totals) in collected {
        all.append(entries);
        for (total, piece_total) in totals.iter_mut().zip(piece_totals) {
            total.sum += piece_total.sum;
            total.magnitude += piece_total.magnitude;
        }
    }
    (all, totals)
}

fn collect_piece(
    piece: &[ColumnRange<'_, '_>],
    keys: &Keys,
    n_types: usize,
    step: usize,
    room: usize,
) -> (Entries, Vec<Total>) {
    let mut entries = Entries::new(n_types * step, room);
    let mut totals = vec![Total::default(); n_types];
    for (columns, range) in piece {
        StepVisitor::visit(columns, range, |values, steps| {
            add_totals(&mut totals, values);
            if !steps.is_empty() && !entries.is_full {
                let entry = entries.number(keys.hash(0, steps), steps);
                entries.add(entry, 0, step, values);
            }
        });
    }
    (entries, totals)
}

/// Hashes the samples of the new side. Also returns the totals of its sample types.
fn hash(inputs: &[&TypeColumns<'_>], keys: &Keys, n_types: usize) -> (HashedSamples, Vec<Total>) {
    let pieces = parallel::map(&pieces(inputs), |piece| {
        let mut hashed = HashedSamples { hashes: Vec::new(), values: Vec::new() };
        let mut totals = vec![Total::default(); n_types];
        for (columns, range) in piece {
            StepVisitor::visit(columns, range, |values, steps| {
                add_totals(&mut totals, values);
                if !steps.is_empty() {
                    hashed.hashes.push(keys.hash(0, steps));
                    hashed.values.extend_from_slice(values);
                }
            });
        }
        (hashed, totals)
    });
    let mut pieces = pieces.into_iter();
    let empty = || (HashedSamples { hashes: Vec::new(), values: Vec::new() }, vec![Total::default(); n_types]);
    let (mut all, mut totals) = pieces.next().unwrap_or_else(empty);
    for (hashed, piece_totals) in pieces {
        all.hashes.extend(hashed.hashes);
        all.values.extend(hashed.values);
        for (total, piece_total) in totals.iter_mut().zip(piece_totals) {
            total.sum += piece_total.sum;
            total.magnitude += piece_total.magnitude;
        }
    }
    (all, totals)
}

fn add_totals(totals: &mut [Total], values: &[i64]) {
    for (total, value) in totals.iter_mut().zip(values) {
        // If the sums over all samples fit, the sums over a part of them fit too.
        total.sum += value;
        total.magnitude += value.saturating_abs();
    }
}

impl Entries {
    pub(super) fn new(n_columns: usize, room: usize) -> Entries {
        let (index, hashes, ends, all) = (Index::default(), Vec::new(), Vec::new(), Vec::new());
        let (values, present) = (Vec::new(), Vec::new());
        Entries { index, hashes, ends, all, values, present, n_columns, room, is_full: false }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of 64-bit words in each entry's bits.
    pub(super) fn words(&self) -> usize {
        self.n_columns.div_ceil(64)
    }

    /// Returns the steps of an entry, root first.
    #[inline(always)]
    pub(super) fn steps(&self, entry: u32) -> &[u32] {
        let start = entry.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.all[start..self.ends[entry as usize]]
    }

    /// Returns the number of an entry, given leaf first, and adds it if it is new.
    #[inline(always)]
    pub(super) fn number(&mut self, hash: u128, steps: &[u32]) -> usize {
        let Entries { index, hashes, .. } = self;
        let hash_of = |n: u32| hashes[n as usize];
        match index.find_or_insert(hash as u64, hashes.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64) {
            Found::Known(n) => n as usize,
            Found::New(n) => {
                self.hashes.push(hash);
                self.all.extend(steps.iter().rev());
                self.ends.push(self.all.len());
                self.values.resize(self.values.len() + self.n_columns, 0);
                self.present.resize(self.present.len() + self.words(), 0);
                self.is_full |= self.bytes() > self.room || self.len() == NONE as usize;
                n as usize
            }
        }
    }

    /// Adds all entries of `other` to this table.
    fn append(&mut self, other: Entries) {
        for (i, &hash) in checkpointed(other.hashes.iter().enumerate()) {
            if self.is_full {
                return;
            }
            let Entries { index, hashes, .. } = self;
            let hash_of = |n: u32| hashes[n as usize];
            let slot = index.find_or_insert(hash as u64, hashes.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64);
            let (values, words) = (&other.values[i * self.n_columns..], self.words());
            let present = &other.present[i * words..][..words];
            match slot {
                Found::Known(n) => {
                    let sums = &mut self.values[n as usize * self.n_columns..][..self.n_columns];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                    self.present[n as usize * words..].iter_mut().zip(present).for_each(|(all, bits)| *all |= bits);
                }
                Found::New(_) => {
                    self.hashes.push(hash);
                    self.all.extend_from_slice(other.steps(i as u32));
                    self.ends.push(self.all.len());
                    self.values.extend_from_slice(&values[..self.n_columns]);
                    self.present.extend_from_slice(present);
                    self.is_full |= self.bytes() > self.room || self.len() == NONE as usize;
                }
            }
        }
    }

    /// Returns the size in bytes. The hash table takes about nine bytes per entry.
    fn bytes(&self) -> usize {
        let entry = size_of::<u128>() + size_of::<usize>() + 9 + 8 * (self.n_columns + self.words());
        self.all.len() * size_of::<u32>() + self.len() * entry
    }

    /// Adds a sample's values to an entry. `first` is the column of the first sample type, and `step` is the distance
    /// between the columns of two types.
    #[inline(always)]
    fn add(&mut self, entry: usize, first: usize, step: usize, values: &[i64]) {
        let words = self.words();
        let sums = &mut self.values[entry * self.n_columns..][..self.n_columns];
        let present = &mut self.present[entry * words..][..words];
        for (i, &value) in values.iter().enumerate() {
            let column = first + i * step;
            sums[column] += value;
            present[column / 64] |= u64::from(value != 0) << (column % 64);
        }
    }

    /// Adds the values of the new side's samples to stacks of the base. Returns the positions of the samples with other
    /// stacks, in order.
    fn add_known(&mut self, samples: &HashedSamples, n_types: usize) -> Vec<usize> {
        let mut unknown = Vec::new();
        // Two snapshots of one process usually have their samples in the same order.
        let mut next = 0;
        for (i, &hash) in samples.hashes.iter().enumerate() {
            let slot = match self.hashes.get(next) {
                Some(&next_hash) if next_hash == hash => Some(next),
                _ => self.index.find(hash as u64, |n| self.hashes[n as usize] == hash).map(|n| n as usize),
            };
            let Some(entry) = slot else {
                unknown.push(i);
                continue;
            };
            self.add(entry, 1, 2, &samples.values[i * n_types..][..n_types]);
            next = entry + 1;
        }
        unknown
    }

    /// Adds the samples of the new side at the positions `unknown`.
    fn add_unknown(&mut self, inputs: &[&TypeColumns<'_>], samples: &HashedSamples, unknown: &[usize], n_types: usize) {
        let mut visitor = UnknownVisitor { entries: self, samples, unknown: unknown.iter(), n_types, i: 0, next: None };
        visitor.next = visitor.unknown.next().copied();
        for columns in inputs {
            if visitor.next.is_none() || visitor.entries.is_full {
                break;
            }
            let reader = StepReader::new(columns);
            columns
                .visit(&columns.walk.input.profile.sample_range(), &mut InputVisitor { reader, visitor: &mut visitor });
        }
    }
}

/// Reads the steps of a sample, leaf first.
struct StepReader<'c, 'm> {
    columns: &'c TypeColumns<'m>,
    /// For each location, the step of its innermost frame, as a common number. The flag for further frames is the flag
    /// for inlining, because the innermost frame is inlined if the location has further frames.
    innermost: Vec<Innermost>,
    steps: Vec<u32>,
}

impl<'c, 'm> StepReader<'c, 'm> {
    fn new(columns: &'c TypeColumns<'m>) -> Self {
        StepReader { columns, innermost: columns.walk.innermost(), steps: Vec::new() }
    }

    #[inline(always)]
    fn read(&mut self, locations: impl SampleLocations) -> &[u32] {
        let StepReader { columns, innermost, steps } = self;
        steps.clear();
        locations.for_each(|l| {
            let first = innermost[l as usize];
            steps.push(first.to_bits());
            if first.has_more() {
                push_callers(&columns.walk, l, steps);
            }
        });
        steps
    }
}

/// Pushes the steps of the frames that a location's innermost frame is inlined into. Few locations have such frames.
/// This function is never inlined, so that the compiler inlines the rest of the loop over the locations.
#[inline(never)]
fn push_callers(walk: &Walk<'_>, location: u32, steps: &mut Vec<u32>) {
    let rest = &walk.frames.expand(location)[1..];
    let last = rest.len() - 1;
    let common = |f: u32| walk.translation[f as usize];
    steps.extend(rest.iter().enumerate().map(|(i, &f)| Innermost::new(common(f), i < last).to_bits()));
}

/// Calls `f` with the values and the steps of each sample, leaf first.
struct StepVisitor<'c, 'm, F> {
    reader: StepReader<'c, 'm>,
    f: F,
}

impl<'c, 'm, F: FnMut(&[i64], &[u32])> StepVisitor<'c, 'm, F> {
    fn visit(columns: &'c TypeColumns<'m>, range: &SampleRange, f: F) {
        columns.visit(range, &mut StepVisitor { reader: StepReader::new(columns), f });
    }
}

impl<F: FnMut(&[i64], &[u32])> ColumnVisitor for StepVisitor<'_, '_, F> {
    #[inline(always)]
    fn sample(&mut self, values: &[i64], locations: impl SampleLocations) {
        (self.f)(values, self.reader.read(locations));
    }
}

/// Adds the samples of the new side whose stacks the base does not have.
struct UnknownVisitor<'e> {
    entries: &'e mut Entries,
    samples: &'e HashedSamples,
    unknown: std::slice::Iter<'e, usize>,
    n_types: usize,
    /// The position of the next sample with frames, and the position of the next sample to add.
    i: usize,
    next: Option<usize>,
}

/// Passes the samples of one input to an [`UnknownVisitor`].
struct InputVisitor<'c, 'm, 'v, 'e> {
    reader: StepReader<'c, 'm>,
    visitor: &'v mut UnknownVisitor<'e>,
}

impl ColumnVisitor for InputVisitor<'_, '_, '_, '_> {
    #[inline(always)]
    fn sample(&mut self, values: &[i64], locations: impl SampleLocations) {
        if locations.leaf().is_none() {
            return;
        }
        let v = &mut *self.visitor;
        let i = v.i;
        v.i += 1;
        if v.next != Some(i) || v.entries.is_full {
            return;
        }
        v.next = v.unknown.next().copied();
        let entry = v.entries.number(v.samples.hashes[i], self.reader.read(locations));
        debug_assert_eq!(values, &v.samples.values[i * v.n_types..][..v.n_types]);
        v.entries.add(entry, 1, 2, values);
    }
}

#[cfg(test)]
mod tests {
    use pprofdiff_profile::builder::ProfileBuilder;

    use super::super::super::Diff;
    use super::StackTree;
    use crate::{Profile, Query, Result};

    /// Enough samples for three pieces. Some values cancel out, and some stacks have a value in only one of the pieces.
    fn profile(seed: u32) -> Result<Profile> {
        let mut random = seed;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        let mut builder = ProfileBuilder::new();
        builder.sample_type("cpu", "nanoseconds");
        builder.sample_type("space", "bytes");
        let (mut frames, mut lines) = (Vec::new(), Vec::new());
        for i in 0..20 {
            let function = builder.function(format!("f{i}"), "", 0);
            let line = builder.line(function, 0);
            let caller = lines.last().copied().unwrap_or(line);
            // Every third location has two frames: its own, inlined into the function before it.
            let lines_of = if i % 3 == 0 { vec![line, caller] } else { vec![line] };
            frames.push(builder.location(None, 0, &lines_of)?);
            lines.push(line);
        }
        for _ in 0..200_000 {
            let depth = 1 + next(4);
            let stack: Vec<_> = (0..depth).map(|_| frames[next(20) as usize]).collect();
            let values = [(); 2].map(|()| i64::from(next(3)) - 1);
            builder.sample(&stack, &values, &[])?;
        }
        builder.build("made")
    }

    #[test]
    fn the_tree_does_not_depend_on_the_number_of_threads() -> Result<()> {
        let selection = Diff::between(profile(1)?, profile(2)?)?.select(&Query::default())?;
        let parts = |tree: Option<StackTree>| {
            tree.map(|tree| {
                let steps: Vec<u32> = tree.steps.iter().map(|step| step.0).collect();
                let chains: Vec<_> =
                    tree.chains.iter().map(|chain| (chain.start, chain.parent, chain.end, chain.entry)).collect();
                let totals: Vec<_> = tree.totals.iter().map(|total| (total.sum, total.magnitude)).collect();
                let arrivals: Vec<u32> = tree.arrivals.iter().map(|arrival| arrival.0).collect();
                (steps, arrivals, chains, tree.edges, tree.changes, tree.values, tree.cancelled, totals)
            })
        };
        let one = parts(StackTree::from_selection(&selection));
        assert!(one.as_ref().is_some_and(|(steps, .., cancelled, _)| steps.len() > 1000 && !cancelled.is_empty()));
        for threads in [2, 4] {
            let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build() else { return Ok(()) };
            let (many, pieces) = pool.install(|| {
                let columns = selection.columns();
                let n_pieces: Vec<usize> = columns.iter().map(|input| super::pieces(&[input]).len()).collect();
                (parts(StackTree::from_selection(&selection)), n_pieces)
            });
            assert_eq!(pieces, [threads.min(3); 2]);
            assert!(many == one, "{threads}");
        }
        Ok(())
    }
}
