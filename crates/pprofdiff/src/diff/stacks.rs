//! Whole stacks: every distinct sequence of frames, with the values of both sides.
//!
//! A stack is known by a keyed hash of its frames (`Keys`) that can't be forged, so matching the sides compares no
//! frames. The frames of all stacks lie end to end in one array, those of a stack that both sides have once.

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
use pprofdiff_profile::interner::{Found, Index, Interner, Sequences};
use pprofdiff_profile::random::{QualityState, RandomState};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::work::{Pace, paced};
use pprofdiff_profile::{Profile, parallel};

/// One distinct stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackRow {
    /// Where its frames lie; use [`Stacks::frames_of`].
    range: Range<usize>,
    /// Number of its labels, see [`Stacks::labels_of`].
    labels: u32,
    /// What its samples cost.
    pub weight: Pair,
    /// What happened to it.
    pub status: Status,
}

/// All distinct stacks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stacks {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The frames that stacks consist of.
    pub frames: Arc<Frames>,
    /// True if stacks with different labels are different rows.
    pub by_labels: bool,
    label_sets: LabelSets,
    /// Of [`Measure::stacks`]: ordered by |delta| descending, then by the frames' names from the root.
    pub rows: Vec<StackRow>,
    /// The frames of all stacks, each root first.
    all: Vec<u32>,
}

/// What stands for a stack: a number of 128 bits.
///
/// With the frames' numbers x_1, x_2, ... (from 1, leaf first), the labels' number x_0 and secret random numbers k_i
/// of 128 bits, it is the sum of k_i * x_i modulo 2^128. That is multilinear hashing: two different sequences of
/// numbers below 2^32 have the same sum with a probability of at most 2^-96, over the choice of the keys. The keys are
/// new for each use and never shown, so this holds for crafted input too: among a hundred million stacks, 2^-43 for all
/// pairs together. A multiplication a frame, and none waits for another.
#[derive(Clone)]
pub(crate) struct Keys {
    random: RandomState,
    /// Those of the first numbers; further ones are worked out each time, so that a deep stack takes no memory.
    first: Vec<u128>,
}

impl Keys {
    pub(crate) fn new() -> Keys {
        let random = RandomState::new();
        let first = (0..256).map(|i| key(&random, i)).collect();
        Keys { random, first }
    }

    /// The number that stands for a stack, given leaf first.
    #[inline(always)]
    pub(crate) fn hash(&self, labels: u32, frames: &[u32]) -> u128 {
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

/// A number's keyed hash by the standard library serves as a random number.
fn key(random: &RandomState, i: usize) -> u128 {
    u128::from(random.hash_one((i, 0u8))) << 64 | u128::from(random.hash_one((i, 1u8)))
}

/// The distinct stacks of both sides while they are collected; labels are part of a stack's key.
struct Table {
    index: Index,
    hashes: Vec<u128>,
    rows: Vec<StackRow>,
    all: Vec<u32>,
}

impl Table {
    /// With room for a profile's stacks, so that growing copies nothing: pages that are not used cost nothing. With 32
    /// bits there is not so much room, and in a browser all that is taken counts; there tables grow.
    fn with_room_for(profile: Option<&Profile>) -> Table {
        let most = if cfg!(target_pointer_width = "64") { usize::MAX } else { 1 << 20 };
        let (n, bytes) = profile.map_or((0, 0), |p| (p.n_samples().min(most), p.inflated_size().min(most)));
        Table {
            index: Index::with_capacity(n),
            hashes: Vec::with_capacity(n),
            rows: Vec::with_capacity(n),
            all: Vec::with_capacity(bytes / 2),
        }
    }

    /// The row of a stack, given leaf first.
    #[inline(always)]
    fn row(&mut self, hash: u128, labels: u32, frames: &[u32]) -> &mut StackRow {
        let Table { index, hashes, rows, all } = self;
        let of = |n: u32| hashes[n as usize];
        let found = index.find_or_insert(hash as u64, rows.len(), |n| of(n) == hash, |n| of(n) as u64);
        if let Found::New(_) = found {
            let start = all.len();
            all.extend(frames.iter().rev());
            hashes.push(hash);
            let (weight, status) = (Pair { base: 0, new: 0 }, Status::Removed);
            rows.push(StackRow { range: start..all.len(), labels, weight, status });
        }
        &mut rows[found.number() as usize]
    }

    /// Adds the samples of the new side whose stacks the base has; gives the places of the others, in order.
    fn add_known(&mut self, samples: &[Hashed]) -> Vec<usize> {
        let Table { index, hashes, rows, .. } = self;
        let mut unknown = Vec::new();
        // Two snapshots of one process mostly have their samples in the same order.
        let mut next = 0;
        for (i, sample) in paced(samples.iter().enumerate()) {
            let found = match hashes.get(next) {
                Some(&hash) if hash == sample.hash => Some(next),
                _ => index.find(sample.hash as u64, |n| hashes[n as usize] == sample.hash).map(|n| n as usize),
            };
            let Some(row) = found else {
                unknown.push(i);
                continue;
            };
            rows[row].weight.new += sample.value;
            rows[row].status = Status::Same;
            next = row + 1;
        }
        unknown
    }
}

/// A sample of the new side. Its frames are looked at again only if the base does not have the stack.
struct Hashed {
    hash: u128,
    value: i64,
    labels: u32,
}

impl Measure {
    /// All distinct stacks. `by_labels` also tells apart stacks whose samples have different labels.
    pub fn stacks(&self, by_labels: bool) -> Stacks {
        let mut stacks = self.stacks_as_found(by_labels);
        stacks.sort();
        stacks
    }

    /// [`Measure::stacks`] in the order in which they come in the files: those of the base, then what only new has.
    /// For callers that go through all of them anyway: ordering them costs more than matching them.
    pub fn stacks_as_found(&self, by_labels: bool) -> Stacks {
        let keys = Keys::new();
        let mut label_sets = LabelSets::default();
        let two_sided = self.summary().base.is_some();
        let (mut table, samples) = if by_labels {
            // Label sets are numbered across both sides, so one after the other.
            let mut sets = LabelCollector::default();
            let table = self.table(two_sided, &keys, |walk, sample| sets.number(walk, sample));
            let samples = self.hashed(two_sided, &keys, |walk, sample| sets.number(walk, sample));
            label_sets = sets.finish(self.profile_bytes());
            (table, samples)
        } else {
            parallel::join(|| self.table(two_sided, &keys, |_, _| 0), || self.hashed(two_sided, &keys, |_, _| 0))
        };
        let of_base = if two_sided { table.rows.len() } else { 0 };
        let unknown = table.add_known(&samples);
        self.add_unknown(&mut table, &samples, &unknown);
        let Table { mut rows, all, .. } = table;
        for (i, row) in rows.iter_mut().enumerate() {
            let in_base = i < of_base;
            row.weight = self.scales.apply(row.weight);
            if !in_base || row.status != Status::Removed {
                row.status = Status::new(in_base, true, row.weight.delta() == 0);
            }
        }
        Stacks { summary: self.summary().clone(), frames: self.frames().clone(), by_labels, label_sets, rows, all }
    }

    /// The stacks of the base, or of the only side.
    fn table<'s>(&'s self, base: bool, keys: &Keys, mut labels: impl FnMut(&Walk<'s>, Sample<'s>) -> u32) -> Table {
        let mut walks = self.walks_of(base).peekable();
        let mut table = Table::with_room_for(walks.peek().map(|w| &*w.input.profile));
        for walk in walks {
            let add = |value, frames: &[u32], sample| {
                let labels = labels(&walk, sample);
                let row = table.row(keys.hash(labels, frames), labels, frames);
                if base { row.weight.base += value } else { row.weight.new += value }
            };
            StackVisitor::visit(&walk, add);
        }
        table
    }

    /// The samples of the new side; none unless there are two.
    fn hashed<'s>(
        &'s self,
        two_sided: bool,
        keys: &Keys,
        mut labels: impl FnMut(&Walk<'s>, Sample<'s>) -> u32,
    ) -> Vec<Hashed> {
        let mut samples = Vec::new();
        for walk in self.walks_of(false).filter(|_| two_sided) {
            samples.reserve(walk.input.profile.n_samples());
            StackVisitor::visit(&walk, |value, frames, sample| {
                let labels = labels(&walk, sample);
                samples.push(Hashed { hash: keys.hash(labels, frames), value, labels });
            });
        }
        samples
    }

    /// Adds those samples of the new side that have the places `unknown`.
    fn add_unknown(&self, table: &mut Table, samples: &[Hashed], unknown: &[usize]) {
        let (mut unknown, mut i) = (unknown.iter().copied().peekable(), 0);
        for walk in self.walks_of(false) {
            if unknown.peek().is_none() {
                break;
            }
            let (innermost, frames) = (walk.innermost(), Vec::new());
            let (unknown, i) = (&mut unknown, &mut i);
            let mut visitor = UnknownVisitor { walk: &walk, innermost, frames, table, samples, unknown, i };
            walk.visit(&walk.input.profile.sample_range(), &mut visitor);
        }
    }
}

/// Calls `f` with the value of each sample that has frames, its frames leaf first, and itself.
struct StackVisitor<'c, 'm, F> {
    walk: &'c Walk<'m>,
    /// By location, with common numbers.
    innermost: Vec<Innermost>,
    frames: Vec<u32>,
    f: F,
}

impl<'c, 'm, F: FnMut(i64, &[u32], Sample<'m>)> StackVisitor<'c, 'm, F> {
    fn visit(walk: &'c Walk<'m>, f: F) {
        let mut visitor = StackVisitor { walk, innermost: walk.innermost(), frames: Vec::new(), f };
        walk.visit(&walk.input.profile.sample_range(), &mut visitor);
    }
}

impl<'m, F: FnMut(i64, &[u32], Sample<'m>)> SampleVisitor<'m> for StackVisitor<'_, 'm, F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        let StackVisitor { walk, innermost, frames, f } = self;
        frames.clear();
        locations.for_each(|l| walk.push_frames(innermost[l as usize], l, frames));
        // A sample whose frames were all filtered away, or that never had any, is no stack.
        if !frames.is_empty() {
            f(value, frames, sample);
        }
    }
}

/// Adds the samples of one profile of the new side that the base does not have.
struct UnknownVisitor<'c, 'm, I: Iterator<Item = usize>> {
    walk: &'c Walk<'m>,
    innermost: Vec<Innermost>,
    frames: Vec<u32>,
    table: &'c mut Table,
    samples: &'c [Hashed],
    /// Places in `samples`, in order.
    unknown: &'c mut std::iter::Peekable<I>,
    /// The place of the next sample.
    i: &'c mut usize,
}

impl<'m, I: Iterator<Item = usize>> SampleVisitor<'m> for UnknownVisitor<'_, 'm, I> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        if locations.leaf().is_none() {
            return;
        }
        let i = std::mem::replace(self.i, *self.i + 1);
        if self.unknown.next_if_eq(&i).is_some() {
            let Hashed { hash, labels, .. } = self.samples[i];
            let UnknownVisitor { walk, innermost, frames, .. } = self;
            frames.clear();
            locations.for_each(|l| walk.push_frames(innermost[l as usize], l, frames));
            self.table.row(hash, labels, frames).weight.new += value;
        }
    }
}

impl Stacks {
    /// The stacks that these chains are, each root first with its exact sums of both sides.
    pub(super) fn of_chains(
        measure: &Measure,
        chains: impl IntoIterator<Item = (Vec<u32>, (Option<i64>, Option<i64>))>,
    ) -> Stacks {
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        for (chain, (base, new)) in paced(chains) {
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

    /// A row's frames, root first.
    pub fn frames_of(&self, row: &StackRow) -> &[u32] {
        &self.all[row.range.clone()]
    }

    /// A row's labels as `key=value`, sorted; none unless stacks with different labels are different rows.
    pub fn labels_of(&self, row: &StackRow) -> impl Iterator<Item = &str> {
        self.label_numbers_of(row).iter().map(|&label| self.label(label))
    }

    /// A row's labels by number.
    pub fn label_numbers_of(&self, row: &StackRow) -> &[u32] {
        self.label_sets.get(row.labels)
    }

    /// A label by its number.
    pub fn label(&self, number: u32) -> &str {
        self.label_sets.printed(self.label_sets.by_text[number as usize])
    }

    /// How many labels there are.
    pub fn n_labels(&self) -> usize {
        self.label_sets.by_text.len()
    }

    fn sort(&mut self) {
        let Stacks { rows, all, frames, label_sets, .. } = self;
        // Frames by name have a rank, so that stacks compare as numbers.
        let mut by_name: Vec<u32> = (0..frames.len() as u32).collect();
        by_name.sort_unstable_by(|&a, &b| frames.order(a).cmp(&frames.order(b)));
        let mut rank = vec![0u32; by_name.len()];
        for (i, &f) in by_name.iter().enumerate() {
            rank[f as usize] = i as u32;
        }
        let mut pace = Pace::default();
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

/// A label by the numbers of its texts, in 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LabelText {
    key: u32,
    /// Its text; or its unit, marked by [`NUMBER`].
    text: u32,
    number: i64,
}

/// Texts are fewer, since each takes two bytes of a profile.
const NUMBER: u32 = 1 << 31;

/// Sets of labels while they are collected: each once, as numbers.
struct LabelCollector {
    texts: TextInterner,
    labels: Interner<LabelText, QualityState>,
    /// Each in ascending order.
    sets: Sequences<u32, QualityState>,
    /// Texts of the profile that is being read, the walk's index.
    known: (usize, KnownTexts),
    set: Vec<u32>,
}

impl Default for LabelCollector {
    fn default() -> LabelCollector {
        let mut sets = Sequences::default();
        // The first set is empty: that of stacks whose labels do not count.
        sets.number(&[]);
        LabelCollector {
            texts: TextInterner::default(),
            labels: Interner::default(),
            sets,
            known: (usize::MAX, KnownTexts::default()),
            set: Vec::new(),
        }
    }
}

impl LabelCollector {
    /// The number of a sample's labels.
    fn number<'m>(&mut self, walk: &Walk<'m>, sample: Sample<'m>) -> u32 {
        let p = &*walk.input.profile;
        if self.known.0 != walk.index {
            self.known = (walk.index, KnownTexts::default());
        }
        self.set.clear();
        for label in walk.labels(&sample) {
            let mut text = |id| self.known.1.id(p, id, &mut self.texts);
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

    /// Prints the labels, and puts them in order. `profiles` is the size of what they come from.
    fn finish(self, profiles: usize) -> LabelSets {
        let LabelCollector { texts, labels: Interner { values: labels, .. }, sets, .. } = self;
        let (mut members, sets) = sets.into_parts();
        // A number has at most 20 digits.
        let length = |l: &LabelText| texts.get(l.key).len() + texts.get(l.text & !NUMBER).len() + 21;
        let all = labels.iter().map(length).fold(0, usize::saturating_add);
        let most = texts::longest(profiles, all, 2 * labels.len());
        let (mut bytes, mut ends) = (String::new(), Vec::with_capacity(labels.len()));
        for label in &labels {
            let text = |id: u32| texts::shortened(texts.get(id), most, id);
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

/// The labels of rows, printed: numbered in the order of their texts.
#[derive(Debug, Clone, Default)]
struct LabelSets {
    /// As they were found, end to end.
    bytes: String,
    ends: Vec<usize>,
    /// For each number, where it was found.
    by_text: Vec<u32>,
    /// Set `i` is `members[sets[i - 1]..sets[i]]`, in ascending order.
    members: Vec<u32>,
    sets: Vec<usize>,
}

impl LabelSets {
    /// The labels of a set, in order.
    fn get(&self, set: u32) -> &[u32] {
        let start = set.checked_sub(1).map_or(0, |i| self.sets[i as usize]);
        &self.members[start..self.sets.get(set as usize).copied().unwrap_or(start)]
    }

    /// A label by where it was found.
    fn printed(&self, found: u32) -> &str {
        let start = found.checked_sub(1).map_or(0, |i| self.ends[i as usize]);
        &self.bytes[start..self.ends[found as usize]]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Diff, LoadOptions, Query, Result};

    #[test]
    fn frames_are_kept_once() -> Result<()> {
        let profile = |text: &str| Profile::from_bytes("p", text.as_bytes(), &LoadOptions::default()).map(Arc::new);
        let base = [profile("main;a 1\nmain;b 2\nmain;e 1\nmain;e -1\n")?];
        // Two profiles, stacks in another order, twice, and some that the base does not have.
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
