//! The table of whole stacks: every distinct sequence of frames, with the values of both sides.
//!
//! A stack is identified by a keyed hash of its frames (`Keys`) that cannot be forged, so matching the sides does not
//! compare frames. The frames of all stacks are stored in one array. A stack that both sides have is stored once.

use std::cmp::Reverse;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use super::frames::Innermost;
use super::labels::KnownTexts;
use super::texts::{self, TextInterner};
use super::walk::{SampleLocations, SampleVisitor, Walk};
use super::{Frames, Measure, Pair, Status, Summary};
use pprofdiff_profile::cancellation::{Checkpointer, checkpointed};
use pprofdiff_profile::interner::{Found, Index, Interner, Sequences};
use pprofdiff_profile::random::{QualityState, RandomState};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::{Profile, parallel};

/// One distinct stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackRow {
    /// The position of its frames in the array; use [`Stacks::frames_of`].
    range: Range<usize>,
    /// The number of its label set, see [`Stacks::labels_of`].
    labels: u32,
    /// The sum of its samples' values, scaled.
    pub weight: Pair,
    /// Whether both sides have the stack, and whether its values differ.
    pub status: Status,
}

/// All distinct stacks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stacks {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The frames of the stacks.
    pub frames: Arc<Frames>,
    /// True if stacks with different labels are different rows.
    pub by_labels: bool,
    label_sets: LabelSets,
    /// The stacks. [`Measure::stacks`] sorts them by |delta| descending, then by the frames' names from the root.
    pub rows: Vec<StackRow>,
    /// The frames of all stacks, each stack root first.
    all: Vec<u32>,
}

/// Random keys that hash a stack to 128 bits.
///
/// The input of the hash is the label set's number x_0 and the frames' numbers x_1, x_2, ... (from 1, leaf first). With
/// secret random 128-bit keys k_i, the hash is the sum of k_i * x_i modulo 2^128. This is multilinear hashing: two
/// different sequences of numbers below 2^32 have the same hash with a probability of at most 2^-96 over the choice of
/// the keys. The keys are new for each use and never shown, so the bound also holds for crafted input. Among a hundred
/// million stacks, the probability of any collision is 2^-43. A frame costs one multiplication, and the multiplications
/// do not depend on each other.
#[doc(hidden)]
#[derive(Clone)]
pub struct Keys {
    random: RandomState,
    /// The first keys. Further keys are computed on each use, so that a deep stack does not need memory.
    first: Vec<u128>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Default for Keys {
    /// Draws random keys.
    fn default() -> Keys {
        let random = RandomState::new();
        let first = (0..256).map(|i| key(&random, i)).collect();
        Keys { random, first }
    }
}

impl Keys {
    /// Returns the hash of a stack, given leaf first.
    #[inline(always)]
    pub fn hash(&self, labels: u32, frames: &[u32]) -> u128 {
        let mut hash = self.first[0].wrapping_mul(u128::from(labels));
        for (key, &frame) in self.first[1..].iter().zip(frames) {
            hash = hash.wrapping_add(key.wrapping_mul(u128::from(frame) + 1));
        }
        if frames.len() < self.first.len() { hash } else { hash.wrapping_add(self.rest(frames)) }
    }

    #[cold]
    fn rest(&self, frames: &[u32]) -> u128 {
        let rest = frames.iter().enumerate().skip(self.first.len() - 1);
        rest.fold(0, |h, (i, &f)| h.wrapping_add(key(&self.random, i + 1).wrapping_mul(u128::from(f) + 1)))
    }
}

/// Returns a random number: the standard library's keyed hash of `i`.
fn key(random: &RandomState, i: usize) -> u128 {
    u128::from(random.hash_one((i, 0u8))) << 64 | u128::from(random.hash_one((i, 1u8)))
}

/// The distinct stacks of both sides while they are collected. Labels are part of a stack's hash.
struct StackTable {
    index: Index,
    hashes: Vec<u128>,
    rows: Vec<StackRow>,
    all: Vec<u32>,
}

impl StackTable {
    /// Creates a table with room for a profile's stacks, so that it never grows and copies. Unused pages cost nothing.
    /// On 32-bit targets the address space is too small, and in a browser all reserved memory counts, so there the
    /// table grows.
    fn with_room_for(profile: Option<&Profile>) -> StackTable {
        let max_room = if cfg!(target_pointer_width = "64") { usize::MAX } else { 1 << 20 };
        let (n, bytes) = profile.map_or((0, 0), |p| (p.n_samples().min(max_room), p.inflated_size().min(max_room)));
        StackTable {
            index: Index::with_capacity(n),
            hashes: Vec::with_capacity(n),
            rows: Vec::with_capacity(n),
            all: Vec::with_capacity(bytes / 2),
        }
    }

    /// Returns the row of a stack, given leaf first, and adds it if it is new.
    #[inline(always)]
    fn row(&mut self, hash: u128, labels: u32, frames: &[u32]) -> &mut StackRow {
        let StackTable { index, hashes, rows, all } = self;
        let hash_of = |n: u32| hashes[n as usize];
        let entry = index.find_or_insert(hash as u64, rows.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64);
        if let Found::New(_) = entry {
            let start = all.len();
            all.extend(frames.iter().rev());
            hashes.push(hash);
            let (weight, status) = (Pair { base: 0, new: 0 }, Status::Removed);
            rows.push(StackRow { range: start..all.len(), labels, weight, status });
        }
        &mut rows[entry.number() as usize]
    }

    /// Adds the values of the new side's samples to stacks of the base. Returns the positions of the samples with other
    /// stacks, in order.
    fn add_known(&mut self, samples: &[HashedSample]) -> Vec<usize> {
        let StackTable { index, hashes, rows, .. } = self;
        let mut unknown = Vec::new();
        // Two snapshots of one process usually have their samples in the same order.
        let mut next = 0;
        for (i, sample) in checkpointed(samples.iter().enumerate()) {
            let stack = match hashes.get(next) {
                Some(&hash) if hash == sample.hash => Some(next),
                _ => index.find(sample.hash as u64, |n| hashes[n as usize] == sample.hash).map(|n| n as usize),
            };
            let Some(stack) = stack else {
                unknown.push(i);
                continue;
            };
            rows[stack].weight.new += sample.value;
            rows[stack].status = Status::Same;
            next = stack + 1;
        }
        unknown
    }
}

/// A sample of the new side. Its frames are read again only if the base does not have its stack.
struct HashedSample {
    hash: u128,
    value: i64,
    labels: u32,
}

impl Measure {
    /// Returns all distinct stacks, sorted. With `by_labels`, stacks whose samples have different labels are different
    /// rows.
    pub fn stacks(&self, by_labels: bool) -> Stacks {
        let mut stacks = self.stacks_as_found(by_labels);
        stacks.sort();
        stacks
    }

    /// Returns the rows of [`Measure::stacks`] in file order: the stacks of the base, then the stacks that only the new
    /// side has. Use it if the order does not matter, because sorting the stacks takes longer than matching them.
    pub fn stacks_as_found(&self, by_labels: bool) -> Stacks {
        let keys = Keys::default();
        let mut label_sets = LabelSets::default();
        let two_sided = self.summary().base.is_some();
        let (mut table, samples) = if by_labels {
            // Label sets are numbered across both sides, so the sides cannot run in parallel.
            let mut sets = LabelCollector::default();
            let table = self.table(two_sided, &keys, |walk, sample| sets.number(walk, sample));
            let samples = self.hashed(two_sided, &keys, |walk, sample| sets.number(walk, sample));
            label_sets = sets.finish(self.profile_bytes());
            (table, samples)
        } else {
            parallel::join(|| self.table(two_sided, &keys, |_, _| 0), || self.hashed(two_sided, &keys, |_, _| 0))
        };
        let base_rows = if two_sided { table.rows.len() } else { 0 };
        let unknown = table.add_known(&samples);
        self.add_unknown(&mut table, &samples, &unknown);
        let StackTable { mut rows, all, .. } = table;
        for (i, row) in rows.iter_mut().enumerate() {
            let in_base = i < base_rows;
            row.weight = self.scales.apply(row.weight);
            if !in_base || row.status != Status::Removed {
                row.status = Status::new(in_base, true, row.weight.delta() == 0);
            }
        }
        Stacks { summary: self.summary().clone(), frames: self.frames().clone(), by_labels, label_sets, rows, all }
    }

    /// Collects the stacks of the base, or of the only side.
    fn table<'s>(
        &'s self,
        base: bool,
        keys: &Keys,
        mut labels: impl FnMut(&Walk<'s>, Sample<'s>) -> u32,
    ) -> StackTable {
        let mut walks = self.walks_of(base).peekable();
        let mut table = StackTable::with_room_for(walks.peek().map(|w| &*w.input.profile));
        for walk in walks {
            let add = |value, frames: &[u32], sample| {
                let labels = labels(&walk, sample);
                let row = table.row(keys.hash(labels, frames), labels, frames);
                if base { row.weight.base += value } else { row.weight.new += value }
            };
            LeafFirstVisitor::visit(&walk, add);
        }
        table
    }

    /// Hashes the samples of the new side. Returns an empty list for a single profile.
    fn hashed<'s>(
        &'s self,
        two_sided: bool,
        keys: &Keys,
        mut labels: impl FnMut(&Walk<'s>, Sample<'s>) -> u32,
    ) -> Vec<HashedSample> {
        let mut samples = Vec::new();
        for walk in self.walks_of(false).filter(|_| two_sided) {
            samples.reserve(walk.input.profile.n_samples());
            LeafFirstVisitor::visit(&walk, |value, frames, sample| {
                let labels = labels(&walk, sample);
                samples.push(HashedSample { hash: keys.hash(labels, frames), value, labels });
            });
        }
        samples
    }

    /// Adds the samples of the new side at the positions `unknown`.
    fn add_unknown(&self, table: &mut StackTable, samples: &[HashedSample], unknown: &[usize]) {
        let (mut unknown, mut i) = (unknown.iter().copied().peekable(), 0);
        for walk in self.walks_of(false) {
            if unknown.peek().is_none() {
                break;
            }
            let (innermost, frames) = (walk.innermost(), Vec::new());
            let (unknown, i) = (&mut unknown, &mut i);
            let mut visitor = NewStackVisitor { walk: &walk, innermost, frames, table, samples, unknown, i };
            walk.visit(&walk.input.profile.sample_range(), &mut visitor);
        }
    }
}

/// Calls `f` with each sample that has frames: its value, its frames leaf first, and the sample.
struct LeafFirstVisitor<'c, 'm, F> {
    walk: &'c Walk<'m>,
    /// The innermost frame of each location, as a common number.
    innermost: Vec<Innermost>,
    frames: Vec<u32>,
    f: F,
}

impl<'c, 'm, F: FnMut(i64, &[u32], Sample<'m>)> LeafFirstVisitor<'c, 'm, F> {
    fn visit(walk: &'c Walk<'m>, f: F) {
        let mut visitor = LeafFirstVisitor { walk, innermost: walk.innermost(), frames: Vec::new(), f };
        walk.visit(&walk.input.profile.sample_range(), &mut visitor);
    }
}

impl<'m, F: FnMut(i64, &[u32], Sample<'m>)> SampleVisitor<'m> for LeafFirstVisitor<'_, 'm, F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        let LeafFirstVisitor { walk, innermost, frames, f } = self;
        frames.clear();
        locations.for_each(|l| walk.push_frames(innermost[l as usize], l, frames));
        // A sample without frames (or whose frames were all filtered away) is not a stack.
        if !frames.is_empty() {
            f(value, frames, sample);
        }
    }
}

/// Adds the samples of one profile of the new side whose stacks the base does not have.
struct NewStackVisitor<'c, 'm, I: Iterator<Item = usize>> {
    walk: &'c Walk<'m>,
    innermost: Vec<Innermost>,
    frames: Vec<u32>,
    table: &'c mut StackTable,
    samples: &'c [HashedSample],
    /// The positions of these samples in `samples`, in order.
    unknown: &'c mut std::iter::Peekable<I>,
    /// The position of the next sample.
    i: &'c mut usize,
}

impl<'m, I: Iterator<Item = usize>> SampleVisitor<'m> for NewStackVisitor<'_, 'm, I> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        if locations.leaf().is_none() {
            return;
        }
        let i = std::mem::replace(self.i, *self.i + 1);
        if self.unknown.next_if_eq(&i).is_some() {
            let HashedSample { hash, labels, .. } = self.samples[i];
            let NewStackVisitor { walk, innermost, frames, .. } = self;
            frames.clear();
            locations.for_each(|l| walk.push_frames(innermost[l as usize], l, frames));
            self.table.row(hash, labels, frames).weight.new += value;
        }
    }
}

impl Stacks {
    /// Creates sorted stacks from chains, each root first with its exact sums of both sides.
    pub(super) fn of_chains(
        measure: &Measure,
        chains: impl IntoIterator<Item = (Vec<u32>, (Option<i64>, Option<i64>))>,
    ) -> Stacks {
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        for (chain, (base, new)) in checkpointed(chains) {
            let start = all.len();
            all.extend(chain);
            let exact = Pair { base: base.unwrap_or_default(), new: new.unwrap_or_default() };
            let weight = measure.scales.apply(exact);
            let status = Status::new(base.is_some(), new.is_some(), weight.delta() == 0);
            rows.push(StackRow { range: start..all.len(), labels: 0, weight, status });
        }
        let (summary, frames) = (measure.summary().clone(), measure.frames().clone());
        let label_sets = LabelSets::default();
        let mut stacks = Stacks { summary, frames, by_labels: false, label_sets, rows, all };
        stacks.sort();
        stacks
    }

    /// Returns a row's frames, root first.
    pub fn frames_of(&self, row: &StackRow) -> &[u32] {
        &self.all[row.range.clone()]
    }

    /// Returns a row's labels as `key=value`, sorted. Empty if stacks with different labels share a row.
    pub fn labels_of(&self, row: &StackRow) -> impl Iterator<Item = &str> {
        self.label_numbers_of(row).iter().map(|&label| self.label(label))
    }

    /// Returns the numbers of a row's labels.
    pub fn label_numbers_of(&self, row: &StackRow) -> &[u32] {
        self.label_sets.get(row.labels)
    }

    /// Returns a label by its number.
    pub fn label(&self, number: u32) -> &str {
        self.label_sets.printed(self.label_sets.by_text[number as usize])
    }

    /// Returns the number of distinct labels.
    pub fn n_labels(&self) -> usize {
        self.label_sets.by_text.len()
    }

    fn sort(&mut self) {
        let Stacks { rows, all, frames, label_sets, .. } = self;
        // Ranks the frames by name, so that stacks compare as numbers.
        let mut by_name: Vec<u32> = (0..frames.len() as u32).collect();
        by_name.sort_unstable_by(|&a, &b| frames.order(a).cmp(&frames.order(b)));
        let mut rank = vec![0u32; by_name.len()];
        for (i, &f) in by_name.iter().enumerate() {
            rank[f as usize] = i as u32;
        }
        let mut pace = Checkpointer::default();
        rows.sort_unstable_by(|a, b| {
            pace.step(1);
            let delta = |r: &StackRow| Reverse(r.weight.delta().unsigned_abs());
            let names = |r: &StackRow| all[r.range.clone()].iter().map(|&f| rank[f as usize]);
            delta(a)
                .cmp(&delta(b))
                .then_with(|| names(a).cmp(names(b)))
                .then_with(|| label_sets.get(a.labels).cmp(label_sets.get(b.labels)))
        });
    }
}

/// A label as numbers of its texts, in 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LabelText {
    key: u32,
    /// The number of the value's text. For a numeric label, the number of its unit, marked by [`NUMBER`].
    text: u32,
    number: i64,
}

/// The bit that marks a numeric label. Numbers of texts are smaller, since each text takes two bytes of a profile.
const NUMBER: u32 = 1 << 31;

/// Collects sets of labels. Each distinct set is stored once, as numbers.
struct LabelCollector {
    texts: TextInterner,
    labels: Interner<LabelText, QualityState>,
    /// The sets, each in ascending order.
    sets: Sequences<u32, QualityState>,
    /// The texts of the profile that is being read, with the walk's index.
    known_texts: (usize, KnownTexts),
    set: Vec<u32>,
}

impl Default for LabelCollector {
    fn default() -> LabelCollector {
        let mut sets = Sequences::default();
        // The first set is empty. Stacks use it if rows do not distinguish labels.
        sets.number(&[]);
        LabelCollector {
            texts: TextInterner::default(),
            labels: Interner::default(),
            sets,
            known_texts: (usize::MAX, KnownTexts::default()),
            set: Vec::new(),
        }
    }
}

impl LabelCollector {
    /// Returns the number of a sample's label set.
    fn number<'m>(&mut self, walk: &Walk<'m>, sample: Sample<'m>) -> u32 {
        let p = &*walk.input.profile;
        if self.known_texts.0 != walk.index {
            self.known_texts = (walk.index, KnownTexts::default());
        }
        self.set.clear();
        for label in walk.labels(&sample) {
            let mut text = |id| self.known_texts.1.id(p, id, &mut self.texts);
            let key = text(label.key);
            let label = match label.value {
                LabelValue::Text(value) => LabelText { key, text: text(value), number: 0 },
                LabelValue::Number(number, unit) => LabelText { key, text: text(unit) | NUMBER, number },
            };
            self.set.push(self.labels.number(label));
        }
        self.set.sort_unstable();
        self.sets.number(&self.set)
    }

    /// Formats the labels and sorts them by text. `profiles` is the size of the profiles, which limits the texts'
    /// length.
    fn finish(self, profiles: usize) -> LabelSets {
        let LabelCollector { texts, labels: Interner { values: labels, .. }, sets, .. } = self;
        let (mut members, sets) = sets.into_parts();
        // A number has at most 20 digits, and `=` is one more byte.
        let length = |l: &LabelText| texts.get(l.key).len() + texts.get(l.text & !NUMBER).len() + 21;
        let all = labels.iter().map(length).fold(0, usize::saturating_add);
        let max_len = texts::longest(profiles, all, 2 * labels.len());
        let (mut bytes, mut ends) = (String::new(), Vec::with_capacity(labels.len()));
        for label in &labels {
            let text = |id: u32| texts::shortened(texts.get(id), max_len, id);
            let (key, value) = (text(label.key), text(label.text & !NUMBER));
            let _ = match label.text & NUMBER {
                0 => write!(bytes, "{key}={value}"),
                _ => write!(bytes, "{key}={}{value}", label.number),
            };
            ends.push(bytes.len());
        }
        drop((labels, texts));
        let mut sets = LabelSets { by_text: (0..ends.len() as u32).collect(), bytes, ends, members: Vec::new(), sets };
        let mut by_text = std::mem::take(&mut sets.by_text);
        by_text.sort_unstable_by(|&a, &b| sets.printed(a).cmp(sets.printed(b)));
        let mut rank = vec![0; by_text.len()];
        for (i, &label) in by_text.iter().enumerate() {
            rank[label as usize] = i as u32;
        }
        members.iter_mut().for_each(|label| *label = rank[*label as usize]);
        let mut start = 0;
        for &end in &sets.sets {
            members[start..end].sort_unstable();
            start = end;
        }
        LabelSets { by_text, members, ..sets }
    }
}

/// The formatted labels of rows, numbered in the order of their texts.
#[derive(Debug, Clone, Default)]
struct LabelSets {
    /// The texts in the order in which they were collected, without separators.
    bytes: String,
    ends: Vec<usize>,
    /// For each number, the position of its text in collection order.
    by_text: Vec<u32>,
    /// Set `i` is `members[sets[i - 1]..sets[i]]`, in ascending order.
    members: Vec<u32>,
    sets: Vec<usize>,
}

impl LabelSets {
    /// Returns the labels of a set, in order.
    fn get(&self, set: u32) -> &[u32] {
        let start = set.checked_sub(1).map_or(0, |i| self.sets[i as usize]);
        &self.members[start..self.sets.get(set as usize).copied().unwrap_or(start)]
    }

    /// Returns a label's text by its position in collection order.
    fn printed(&self, position: u32) -> &str {
        let start = position.checked_sub(1).map_or(0, |i| self.ends[i as usize]);
        &self.bytes[start..self.ends[position as usize]]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Diff, LoadOptions, Query, Result};

    #[test]
    fn frames_of_matching_stacks_are_stored_once() -> Result<()> {
        let profile = |text: &str| crate::from_bytes("p", text.as_bytes(), &LoadOptions::default()).map(Arc::new);
        let base = [profile("main;a 1\nmain;b 2\nmain;e 1\nmain;e -1\n")?];
        // Two profiles with stacks in another order, with duplicates, and with stacks that the base does not have.
        let new = [profile("main;c;d 1\nmain;b 5\nmain;c;d 2\n")?, profile("main;f 1\nmain;e 4\nmain;b 1\n")?];
        for by_labels in [false, true] {
            let diff = Diff::new(&base, &new)?.summed();
            let stacks = diff.measure(&Query::default())?.stacks_as_found(by_labels);
            let row = |row: &StackRow| {
                let names: Vec<String> = stacks.frames_of(row).iter().map(|&f| stacks.frames.name(f)).collect();
                (names.join(";"), row.weight.base, row.weight.new, row.status)
            };
            let expected = [
                ("main;a", 1, 0, Status::Removed),
                ("main;b", 2, 6, Status::Changed),
                ("main;e", 0, 4, Status::Changed),
                ("main;c;d", 0, 3, Status::Added),
                ("main;f", 0, 1, Status::Added),
            ];
            let rows: Vec<_> = stacks.rows.iter().map(row).collect();
            assert_eq!(rows, expected.map(|(name, base, new, status)| (name.to_owned(), base, new, status)));
            assert_eq!(stacks.all.len(), 2 + 2 + 2 + 3 + 2);
        }
        Ok(())
    }
}
