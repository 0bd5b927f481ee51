//! From samples to entries: distinct stacks, with the sums of all sample types.
//!
//! As in `stacks`, a stack is known by a keyed hash of 128 bits, and both sides are walked at the same time: the base into
//! the table, the new side into a list of hashes, of which only what the base does not have is looked at again.

use super::super::frames::Innermost;
use super::super::selection::Selection;
use super::super::stacks::Keys;
use super::super::walk::{ColumnVisitor, Columns, SampleLocations};
use super::Tree;
use pprofdiff_profile::columns::{NONE, Total};
use pprofdiff_profile::interner::{Found, Index};
use pprofdiff_profile::parallel;

/// What a tree, and all that is made for it, may take besides twice the bytes of the profiles.
const FLOOR: usize = 16 << 20;

/// Entries while they are collected.
pub(super) struct Entries {
    index: Index,
    hashes: Vec<u128>,
    /// Where the frames of each end in `all`.
    ends: Vec<usize>,
    /// The steps of all, each root first.
    all: Vec<u32>,
    /// By entry: the sum of each column.
    pub values: Vec<i64>,
    /// By entry: a bit for each column, set if some sample has a value.
    pub present: Vec<u64>,
    pub n_columns: usize,
    /// Bytes that it may have.
    room: usize,
    is_full: bool,
}

/// The samples of the new side that have frames.
struct Hashed {
    hashes: Vec<u128>,
    /// By sample: the value of each sample type.
    values: Vec<i64>,
}

impl Tree {
    /// The tree of a selection; `None` where it would take too much.
    pub(super) fn from_selection(selection: &Selection) -> Option<Tree> {
        let inputs: Vec<Columns<'_>> = selection.columns();
        let n_types = inputs.first()?.of_types.len();
        let is_two_sided = selection.diff().is_two_sided();
        let (first, others): (Vec<_>, Vec<_>) = inputs.iter().partition(|c| c.walk.input.base == is_two_sided);
        let bytes: usize = inputs.iter().map(|c| c.walk.input.profile.inflated_size()).sum();
        let samples: usize = others.iter().map(|c| c.walk.input.profile.n_samples()).sum();
        // A sample of the new side is kept until the base is known.
        let hashed = samples.saturating_mul(size_of::<u128>() + size_of::<i64>() * n_types);
        let room = bytes.saturating_mul(2).saturating_add(FLOOR).checked_sub(hashed)?;
        let keys = Keys::new();
        let step = 1 + usize::from(is_two_sided);
        let ((mut entries, of_first), (hashed, of_others)) =
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
            true => of_first.into_iter().zip(of_others).flat_map(<[Total; 2]>::from).collect(),
            false => of_first,
        };
        let room = room - entries.bytes();
        Tree::of_entries(&entries, selection.frames().len(), room).map(|tree| Tree { totals, is_two_sided, ..tree })
    }
}

/// The entries of the base, or of the only side, and the totals of the sample types there.
fn collect(inputs: &[&Columns<'_>], keys: &Keys, n_types: usize, step: usize, room: usize) -> (Entries, Vec<Total>) {
    let mut entries = Entries::new(n_types * step, room);
    let mut totals = vec![Total::default(); n_types];
    for columns in inputs {
        StepVisitor::visit(columns, |values, steps| {
            add_totals(&mut totals, values);
            if !steps.is_empty() && !entries.is_full {
                let entry = entries.number(keys.hash(0, steps), steps);
                entries.add(entry, 0, step, values);
            }
        });
    }
    (entries, totals)
}

/// The samples of the new side, and the totals of the sample types there.
fn hash(inputs: &[&Columns<'_>], keys: &Keys, n_types: usize) -> (Hashed, Vec<Total>) {
    let mut hashed = Hashed { hashes: Vec::new(), values: Vec::new() };
    let mut totals = vec![Total::default(); n_types];
    for columns in inputs {
        StepVisitor::visit(columns, |values, steps| {
            add_totals(&mut totals, values);
            if !steps.is_empty() {
                hashed.hashes.push(keys.hash(0, steps));
                hashed.values.extend_from_slice(values);
            }
        });
    }
    (hashed, totals)
}

fn add_totals(totals: &mut [Total], values: &[i64]) {
    for (total, value) in totals.iter_mut().zip(values) {
        // A part of the samples can't overflow where all of them do not.
        total.sum += value;
        total.magnitude += value.saturating_abs();
    }
}

impl Entries {
    fn new(n_columns: usize, room: usize) -> Entries {
        let (index, hashes, ends, all) = (Index::default(), Vec::new(), Vec::new(), Vec::new());
        let (values, present) = (Vec::new(), Vec::new());
        Entries { index, hashes, ends, all, values, present, n_columns, room, is_full: false }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Words of bits that each entry has.
    pub(super) fn words(&self) -> usize {
        self.n_columns.div_ceil(64)
    }

    /// The steps of an entry, root first.
    #[inline(always)]
    pub(super) fn steps(&self, entry: u32) -> &[u32] {
        let start = entry.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.all[start..self.ends[entry as usize]]
    }

    /// The number of an entry, given leaf first.
    #[inline(always)]
    fn number(&mut self, hash: u128, steps: &[u32]) -> usize {
        let Entries { index, hashes, .. } = self;
        let of = |n: u32| hashes[n as usize];
        match index.find_or_insert(hash as u64, hashes.len(), |n| of(n) == hash, |n| of(n) as u64) {
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

    /// What it takes; of the table of hashes about nine bytes an entry.
    fn bytes(&self) -> usize {
        let entry = size_of::<u128>() + size_of::<usize>() + 9 + 8 * (self.n_columns + self.words());
        self.all.len() * size_of::<u32>() + self.len() * entry
    }

    /// Adds a sample to the columns of an entry: that of its first sample type, and others each so many further on.
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

    /// Adds the samples of the new side whose stacks the base has; gives the places of the others, in order.
    fn add_known(&mut self, samples: &Hashed, n_types: usize) -> Vec<usize> {
        let mut unknown = Vec::new();
        // Two snapshots of one process mostly have their samples in the same order.
        let mut next = 0;
        for (i, &hash) in samples.hashes.iter().enumerate() {
            let found = match self.hashes.get(next) {
                Some(&known) if known == hash => Some(next),
                _ => self.index.find(hash as u64, |n| self.hashes[n as usize] == hash).map(|n| n as usize),
            };
            let Some(entry) = found else {
                unknown.push(i);
                continue;
            };
            self.add(entry, 1, 2, &samples.values[i * n_types..][..n_types]);
            next = entry + 1;
        }
        unknown
    }

    /// Adds those samples of the new side that have the places `unknown`.
    fn add_unknown(&mut self, inputs: &[&Columns<'_>], samples: &Hashed, unknown: &[usize], n_types: usize) {
        let mut visitor = UnknownVisitor { entries: self, samples, unknown: unknown.iter(), n_types, i: 0, next: None };
        visitor.next = visitor.unknown.next().copied();
        for columns in inputs {
            if visitor.next.is_none() || visitor.entries.is_full {
                break;
            }
            let reader = StepReader::new(columns);
            columns.visit(&mut OfInput { reader, visitor: &mut visitor });
        }
    }
}

/// Reads the steps of a sample, leaf first.
struct StepReader<'c, 'm> {
    columns: &'c Columns<'m>,
    /// By location, with common numbers: the step itself, since a location's innermost frame is inlined if there are more.
    innermost: Vec<Innermost>,
    steps: Vec<u32>,
}

impl<'c, 'm> StepReader<'c, 'm> {
    fn new(columns: &'c Columns<'m>) -> Self {
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
                let rest = &columns.walk.frames.expand(l)[1..];
                let common = |f: u32| columns.walk.translation[f as usize];
                let last = rest.len() - 1;
                steps.extend(rest.iter().enumerate().map(|(i, &f)| Innermost::new(common(f), i < last).to_bits()));
            }
        });
        steps
    }
}

/// Calls `f` with the values of each sample, and its steps, leaf first.
struct StepVisitor<'c, 'm, F> {
    reader: StepReader<'c, 'm>,
    f: F,
}

impl<'c, 'm, F: FnMut(&[i64], &[u32])> StepVisitor<'c, 'm, F> {
    fn visit(columns: &'c Columns<'m>, f: F) {
        columns.visit(&mut StepVisitor { reader: StepReader::new(columns), f });
    }
}

impl<F: FnMut(&[i64], &[u32])> ColumnVisitor for StepVisitor<'_, '_, F> {
    #[inline(always)]
    fn sample(&mut self, values: &[i64], locations: impl SampleLocations) {
        (self.f)(values, self.reader.read(locations));
    }
}

/// Adds the samples of the new side that the base does not have.
struct UnknownVisitor<'e> {
    entries: &'e mut Entries,
    samples: &'e Hashed,
    unknown: std::slice::Iter<'e, usize>,
    n_types: usize,
    /// The place of the next sample that has frames, and that of the next one that is unknown.
    i: usize,
    next: Option<usize>,
}

/// The same for one input.
struct OfInput<'c, 'm, 'v, 'e> {
    reader: StepReader<'c, 'm>,
    visitor: &'v mut UnknownVisitor<'e>,
}

impl ColumnVisitor for OfInput<'_, '_, '_, '_> {
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
