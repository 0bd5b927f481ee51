//! Merges several profiles into one. Equal samples are added up. Records that no sample refers to are dropped, except
//! for the first mapping.
//!
//! Diffs are written with the same code: it negates and labels the base's samples. Equality is defined as in pprof, so
//! the merged profiles equal pprof's own:
//!
//! - [`MappingKey`]: the size rounded up to 4 KiB, the file offset, and the build ID or else the file name. The start
//!   address is not part of the key, because the kernel changes it from run to run.
//! - [`FunctionKey`]: the start line, name, system name and file name.
//! - Locations: the mapping, the address relative to the mapping, the lines, and whether the location is folded.
//! - Samples: the locations, and the labels sorted by key.
//!
//! Keys are compared in full, never by hash alone, so no crafted input can cause a wrong sum. Records are numbered in
//! the order of first use, so the result is deterministic. Samples whose stacks begin alike are written together
//! ([`SampleOrder::Grouped`]), and merging is associative to the byte.

mod order;
mod sum;

use std::cmp::Ordering::Equal;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use hashbrown::HashMap;

use super::message::{About, MessageWriter, Tables};
use super::types::CommonType;
use super::{
    BASE_LABEL, Header, Label, LabelCache, LabelValue, Mapping, Memo, NONE, Profile, Sample, StringId, ValueType,
};
use crate::interner::{Found, Index, Sequences};
use crate::random::{FastState, HashSet};
pub use order::SampleOrder;
pub use sum::merge_as;
pub use sum::{merge, merge_bytes, merge_weighted, with_default_type};

type HashState = FastState;

/// The number of samples whose data is copied before they are written.
const GATHERED_SAMPLES: usize = 32;
/// The number of locations of the longest stack that is copied. The copies have a fixed maximum size.
const GATHERED_LOCATIONS: usize = 256;

/// A filter for a profile's samples, and for their lines, locations and labels.
pub trait SampleSelection {
    /// Returns true if all samples are kept with all their locations. Lines and labels are filtered in any case.
    fn is_whole(&self) -> bool;

    /// Calls `f` with the index of each kept line of a location, innermost first.
    fn lines(&self, location: u32, f: &mut dyn FnMut(u32));

    /// Fills `locations` with the sample's locations that are kept, leaf first. Returns false if the sample is dropped.
    /// `index` is the sample's position in the profile.
    fn locations(&self, index: usize, sample: &Sample<'_>, locations: &mut Vec<u32>) -> bool;

    /// Returns true if labels with this key are kept.
    fn shows_label(&self, key: StringId) -> bool;
}

/// A selection that keeps everything.
pub struct Everything<'p>(pub &'p Profile);

impl SampleSelection for Everything<'_> {
    fn lines(&self, location: u32, f: &mut dyn FnMut(u32)) {
        self.0.locations().lines(location).for_each(f);
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn locations(&self, _index: usize, _sample: &Sample<'_>, _locations: &mut Vec<u32>) -> bool {
        true
    }

    fn shows_label(&self, _key: StringId) -> bool {
        true
    }
}

/// One profile's part in a merge.
#[derive(Debug)]
pub struct MergePart<'p, S> {
    /// The profile.
    pub profile: &'p Profile,
    /// Index of the profile in [`CommonType::columns`].
    pub index: usize,
    /// Which samples of a written diff take part: `Some(true)` selects the base side, `Some(false)` the new side, and
    /// `None` all samples. If one side is selected, the samples lose the label that marks the base of a written diff.
    pub side: Option<bool>,
    /// True to subtract the values, and to label the samples as the base of a diff.
    pub as_base: bool,
    /// The factor for the profile's values.
    pub weight: i64,
    /// The filter for the profile's samples.
    pub selection: S,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct MappingKey {
    size: u64,
    offset: u64,
    build_id_or_file: u32,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct FunctionKey {
    start_line: i64,
    name: u32,
    system_name: u32,
    file: u32,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct MergedLine {
    function: u32,
    number: i64,
    column: i64,
}

struct MergedLocation {
    /// The index of the mapping, or `NONE`.
    mapping: u32,
    address: u64,
    folded: bool,
    lines: Range<usize>,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct MergedLabel {
    /// True for numeric labels, which sort after text labels. Labels with the same key keep the file's order, because
    /// the sort is stable.
    numeric: bool,
    key: u32,
    value: i64,
    unit: u32,
}

impl MergedLabel {
    fn label(self) -> Label {
        let value = if self.numeric {
            LabelValue::Number(self.value, StringId(self.unit))
        } else {
            LabelValue::Text(StringId(self.value as u32))
        };
        Label { key: StringId(self.key), value }
    }
}

/// A stack of locations. Both sides of a diff share it.
struct MergedStack {
    hash: u64,
    locations: Range<usize>,
    /// The first sample with this stack on the new side and on the base side, or `NONE`. Most stacks have one sample
    /// per side, which this field finds without a hash lookup.
    first: [u32; 2],
}

struct MergedSample {
    stack: u32,
    /// The number of the sample's label set in [`Merger::labels`].
    labels: u32,
    is_base: bool,
}

/// The indexes of records in the merged profile, by their index in the profile that [`Merger::add`] is adding. It is
/// filled on demand.
struct IndexTranslation {
    strings: Memo,
    functions: Memo,
    mappings: Memo,
    locations: Memo,
}

impl IndexTranslation {
    fn new(p: &Profile) -> IndexTranslation {
        IndexTranslation {
            strings: Memo::new(p.n_strings()),
            functions: Memo::new(p.n_functions()),
            mappings: Memo::new(p.mappings().len()),
            locations: Memo::new(p.n_locations()),
        }
    }
}

/// Fields of the result that the profiles alone do not determine.
#[derive(Debug, Clone, Copy)]
pub struct MergedFields {
    /// The duration of the merged profile.
    pub duration_nanos: i64,
    /// True if the frames that match drop_frames are already gone, so the result must not declare drop_frames and
    /// keep_frames again.
    pub frames_dropped: bool,
    /// The index of the sample type that the result declares as its default. Without it, the profiles' own default is
    /// kept.
    pub default_type: Option<usize>,
    /// The order of the samples.
    pub order: SampleOrder,
}

/// An accumulator that adds profiles up. The module comment defines which records count as equal.
pub struct Merger<'p> {
    types: &'p [CommonType],
    state: HashState,
    strings: Vec<&'p [u8]>,
    string_ids: HashMap<&'p [u8], u32, HashState>,
    functions: Vec<FunctionKey>,
    function_ids: HashMap<FunctionKey, u32, HashState>,
    mappings: Vec<Mapping>,
    mapping_ids: HashMap<MappingKey, u32, HashState>,
    locations: Vec<MergedLocation>,
    location_ids: Index,
    lines: Vec<MergedLine>,
    /// The locations of all stacks end to end, each from leaf to root.
    stack_locations: Vec<u32>,
    stacks: Vec<MergedStack>,
    stack_ids: Index,
    /// The stack that probably comes next: the stack after the last result. Most profiles list their stacks
    /// in nearly the same order, so this saves most lookups from the second profile on.
    expected_stack: usize,
    labels: Sequences<MergedLabel, HashState>,
    samples: Vec<MergedSample>,
    /// Indexes the samples that are not in [`MergedStack::first`], by stack and label set.
    sample_ids: Index,
    values: Vec<i64>,
}

impl std::fmt::Debug for Merger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merger").finish_non_exhaustive()
    }
}

impl<'p> Merger<'p> {
    /// Creates an empty merge.
    pub fn new(types: &'p [CommonType]) -> Merger<'p> {
        let state = HashState::default();
        let mut merger = Merger {
            types,
            strings: Vec::new(),
            string_ids: HashMap::with_hasher(state.clone()),
            functions: Vec::new(),
            function_ids: HashMap::with_hasher(state.clone()),
            mappings: Vec::new(),
            mapping_ids: HashMap::with_hasher(state.clone()),
            locations: Vec::new(),
            location_ids: Index::default(),
            lines: Vec::new(),
            stack_locations: Vec::new(),
            stacks: Vec::new(),
            stack_ids: Index::default(),
            expected_stack: 0,
            labels: Sequences::default(),
            samples: Vec::new(),
            sample_ids: Index::default(),
            values: Vec::new(),
            state,
        };
        merger.intern(b"");
        merger.labels.number(&[]);
        merger
    }

    /// Adds the selected samples of one profile.
    pub fn add<S: SampleSelection>(&mut self, part: MergePart<'p, S>) {
        let p = part.profile;
        let mut memo = IndexTranslation::new(p);
        if self.mappings.is_empty() && !p.mappings().is_empty() {
            // By convention the first mapping is the main binary, so the main binary of the first profile comes first.
            self.mapping(p, 0, &mut memo);
        }
        let columns: Vec<(usize, i64)> = self.types.iter().map(|t| t.columns[part.index]).collect();
        let sign = if part.as_base { -part.weight } else { part.weight };
        let base_label = MergedLabel {
            numeric: false,
            key: self.intern(BASE_LABEL.0),
            value: i64::from(self.intern(BASE_LABEL.1)),
            unit: 0,
        };
        let (mut buffer, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut label_cache = LabelCache::default();
        self.expected_stack = 0;
        self.samples.reserve(p.n_samples());
        self.values.reserve(p.n_samples() * columns.len());
        // Reserve for the first profile only: most stacks of the later profiles are already present.
        if self.stacks.is_empty() {
            self.stacks.reserve(p.n_samples());
            self.stack_ids.reserve(p.n_samples(), |_| 0);
        }
        for (index, sample) in p.samples().enumerate() {
            let sample_is_base = sample.is_base();
            if part.side.is_some_and(|side| side != sample_is_base) {
                continue;
            }
            // The base's values in a written diff are already negative.
            let sign = if part.side == Some(true) { -sign } else { sign };
            values.clear();
            sample.for_each_value(|v| values.push(v));
            if columns.iter().all(|&(c, _)| values[c] == 0) {
                continue;
            }
            let Some(locations) = self.translate_stack(&part, index, &sample, &mut memo, &mut buffer) else { continue };
            let stack = self.stack(locations);
            let label_set = match label_cache.find(sample.encoded_labels()) {
                Some(label_set) => label_set,
                None => {
                    self.translate_labels(&part, &sample, base_label, &mut memo, &mut labels);
                    let label_set = self.labels.number(&labels);
                    label_cache.insert(sample.encoded_labels(), label_set);
                    label_set
                }
            };
            let index = self.sample(stack, label_set, part.as_base);
            let sums = &mut self.values[index * columns.len()..][..columns.len()];
            for (sum, &(column, times)) in sums.iter_mut().zip(&columns) {
                // `common_types` has ruled out an overflow for weights of 1, and `check_weights` for other weights.
                *sum = sum.wrapping_add(sign * values[column].wrapping_mul(times));
            }
        }
    }

    /// Returns the merged locations of a sample, leaf first. Returns `None` if the selection drops the sample.
    #[inline(always)]
    fn translate_stack<'b, S: SampleSelection>(
        &mut self,
        part: &MergePart<'p, S>,
        index: usize,
        sample: &Sample<'p>,
        memo: &mut IndexTranslation,
        buffer: &'b mut Vec<u32>,
    ) -> Option<&'b [u32]> {
        let stack = if part.selection.is_whole() {
            sample.stack(buffer)
        } else {
            buffer.clear();
            if !part.selection.locations(index, sample, buffer) {
                return None;
            }
            &mut buffer[..]
        };
        // Number new locations from the root, because `SampleOrder::Sorted` compares these numbers from the root.
        for l in stack.iter_mut().rev() {
            *l = match memo.locations.get(*l as usize) {
                NONE => self.location(part.profile, *l, &part.selection, memo),
                merged => merged,
            };
        }
        Some(stack)
    }

    /// Fills `labels` with the merged labels of a sample, in the order that makes equal label sets equal.
    #[cold]
    fn translate_labels<S: SampleSelection>(
        &mut self,
        part: &MergePart<'p, S>,
        sample: &Sample<'p>,
        base_label: MergedLabel,
        memo: &mut IndexTranslation,
        labels: &mut Vec<MergedLabel>,
    ) {
        let p = part.profile;
        labels.clear();
        for label in sample.all_labels().filter(|l| part.selection.shows_label(l.key)) {
            let key = self.string(p, label.key, memo);
            labels.push(match label.value {
                LabelValue::Text(t) => {
                    MergedLabel { numeric: false, key, value: i64::from(self.string(p, t, memo)), unit: 0 }
                }
                LabelValue::Number(value, unit) => {
                    MergedLabel { numeric: true, key, value, unit: self.string(p, unit, memo) }
                }
            });
        }
        // A second empty string in the profile's table becomes string 0 here. A label with such a value is empty, and
        // readers would skip it.
        labels.retain(|l| l.value != 0 || l.unit != 0);
        if part.side.is_some() {
            labels.retain(|l| *l != base_label);
        }
        if part.as_base {
            labels.push(base_label);
        }
        // Sort by the key's bytes instead of its number, so the order does not depend on earlier profiles.
        labels.sort_by(|a, b| {
            let key = |l: &MergedLabel| self.strings[l.key as usize];
            a.numeric.cmp(&b.numeric).then_with(|| if a.key == b.key { Equal } else { key(a).cmp(key(b)) })
        });
    }

    fn intern(&mut self, bytes: &'p [u8]) -> u32 {
        *self.string_ids.entry(bytes).or_insert_with(|| {
            self.strings.push(bytes);
            self.strings.len() as u32 - 1
        })
    }

    fn string(&mut self, p: &'p Profile, id: StringId, memo: &mut IndexTranslation) -> u32 {
        match memo.strings.get(id.index()) {
            NONE => {
                let string = self.intern(p.string(id));
                memo.strings.set(id.index(), string);
                string
            }
            string => string,
        }
    }

    fn mapping(&mut self, p: &'p Profile, index: u32, memo: &mut IndexTranslation) -> u32 {
        let previous = memo.mappings.get(index as usize);
        if previous != NONE {
            return previous;
        }
        let m = p.mappings()[index as usize];
        let (file, build_id) = (self.string(p, m.file, memo), self.string(p, m.build_id, memo));
        let (size, offset, name) = p.mapping_key(index);
        let key = MappingKey { size, offset, build_id_or_file: self.string(p, name, memo) };
        let id = *self.mapping_ids.entry(key).or_insert_with(|| {
            self.mappings.push(Mapping { file: StringId(file), build_id: StringId(build_id), ..m });
            self.mappings.len() as u32 - 1
        });
        memo.mappings.set(index as usize, id);
        id
    }

    fn function(&mut self, p: &'p Profile, index: u32, memo: &mut IndexTranslation) -> u32 {
        let i = index as usize;
        let previous = memo.functions.get(i);
        if previous != NONE {
            return previous;
        }
        let f = p.functions();
        let key = FunctionKey {
            start_line: f.start_line[i],
            name: self.string(p, f.name[i], memo),
            system_name: self.string(p, f.system_name[i], memo),
            file: self.string(p, f.file[i], memo),
        };
        let id = *self.function_ids.entry(key).or_insert_with(|| {
            self.functions.push(key);
            self.functions.len() as u32 - 1
        });
        memo.functions.set(i, id);
        id
    }

    fn location(
        &mut self,
        p: &'p Profile,
        index: u32,
        selection: &impl SampleSelection,
        memo: &mut IndexTranslation,
    ) -> u32 {
        let i = index as usize;
        let columns = p.locations();
        let (mut mapping, mut address) = (NONE, columns.address[i]);
        if columns.mapping[i] != NONE {
            mapping = self.mapping(p, columns.mapping[i], memo);
            // Rebase the address onto the start address of the merged mapping.
            let from = p.mappings()[columns.mapping[i] as usize].start;
            address = address.wrapping_sub(from).wrapping_add(self.mappings[mapping as usize].start);
        }
        let first = self.lines.len();
        selection.lines(index, &mut |line| {
            let l = line as usize;
            let function = self.function(p, columns.line_function[l], memo);
            self.lines.push(MergedLine { function, number: columns.line_number[l], column: columns.line_column[l] });
        });
        let new = MergedLocation { mapping, address, folded: columns.folded[i], lines: first..self.lines.len() };
        let (locations, lines, state) = (&self.locations, &self.lines, &self.state);
        let hash = |l: &MergedLocation| state.hash_one((l.mapping, l.address, l.folded, &lines[l.lines.clone()]));
        let is_same = |l: &MergedLocation| {
            (l.mapping, l.address, l.folded) == (new.mapping, new.address, new.folded)
                && lines[l.lines.clone()] == lines[new.lines.clone()]
        };
        let get = |n: u32| &locations[n as usize];
        let entry =
            self.location_ids.find_or_insert(hash(&new), locations.len(), |n| is_same(get(n)), |n| hash(get(n)));
        match entry {
            Found::Known(_) => self.lines.truncate(first),
            Found::New(_) => self.locations.push(new),
        }
        let id = entry.number();
        memo.locations.set(i, id);
        id
    }

    /// Returns the number of a stack.
    #[inline]
    fn stack(&mut self, locations: &[u32]) -> u32 {
        let expected = self.expected_stack;
        if let Some(stack) = self.stacks.get(expected)
            && self.stack_locations[stack.locations.clone()] == *locations
        {
            self.expected_stack += 1;
            return expected as u32;
        }
        self.look_up_stack(locations)
    }

    #[inline(never)]
    fn look_up_stack(&mut self, locations: &[u32]) -> u32 {
        let (stacks, locations_of_stacks) = (&self.stacks, &self.stack_locations);
        let hash = self.state.hash_one(locations);
        let is_same = |n: u32| {
            let s = &stacks[n as usize];
            s.hash == hash && locations_of_stacks[s.locations.clone()] == *locations
        };
        let entry = self.stack_ids.find_or_insert(hash, stacks.len(), is_same, |n| stacks[n as usize].hash);
        match entry {
            Found::Known(stack) => self.expected_stack = stack as usize + 1,
            Found::New(_) => {
                let start = self.stack_locations.len();
                self.stack_locations.extend_from_slice(locations);
                self.stacks.push(MergedStack { hash, locations: start..start + locations.len(), first: [NONE; 2] });
            }
        }
        entry.number()
    }

    /// Returns the index of the sample with this stack and label set on one side.
    #[inline]
    fn sample(&mut self, stack: u32, labels: u32, is_base: bool) -> usize {
        let (samples, state) = (&self.samples, &self.state);
        let first = &mut self.stacks[stack as usize].first[usize::from(is_base)];
        let entry = if *first == NONE {
            *first = samples.len() as u32;
            Found::New(*first)
        } else if samples[*first as usize].labels == labels {
            Found::Known(*first)
        } else {
            let key_of = |n: u32| (samples[n as usize].stack, samples[n as usize].labels);
            let hash = |key: (u32, u32)| state.hash_one(key);
            let key = (stack, labels);
            self.sample_ids.find_or_insert(hash(key), samples.len(), |n| key_of(n) == key, |n| hash(key_of(n)))
        };
        if let Found::New(_) = entry {
            self.samples.push(MergedSample { stack, labels, is_base });
            self.values.extend(std::iter::repeat_n(0, self.types.len()));
        }
        entry.number() as usize
    }

    /// Encodes the merged profile as a message. The fields outside the tables come from `header_of` and `fields`.
    /// `value` computes each value that is written. Its arguments are whether the sample belongs to the base, the
    /// column, and the exact sum.
    pub fn finish(
        mut self,
        header_of: &[&'p Profile],
        fields: MergedFields,
        mut value: impl FnMut(bool, usize, i64) -> i64,
    ) -> Vec<u8> {
        let types: &'p [CommonType] = self.types;
        let mut intern = |s: &'p str| StringId(self.intern(s.as_bytes()));
        let types: Vec<_> = types.iter().map(|t| (intern(&t.kind), intern(&t.unit))).collect();
        let header = self.header(header_of, fields);
        let n = types.len();
        let mut writer = MessageWriter::default();
        writer.begin(&self, types.into_iter());
        let mut last = NONE;
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        for chunk in self.ordered_samples(fields.order).chunks(GATHERED_SAMPLES) {
            // Neighbours in this order are far apart in memory. Copying the data of many samples in loops of their own
            // lets the processor wait for them at the same time, instead of once per sample.
            locations.clear();
            values.clear();
            for &i in chunk {
                values.extend_from_slice(&self.values[i as usize * n..][..n]);
            }
            for &i in chunk {
                let stack = &self.stacks[self.samples[i as usize].stack as usize].locations;
                if stack.len() <= GATHERED_LOCATIONS {
                    locations.extend_from_slice(&self.stack_locations[stack.clone()]);
                }
            }
            let (mut locations, mut values) = (&locations[..], &mut values[..]);
            for &i in chunk {
                let s = &self.samples[i as usize];
                let mut stack = &self.stack_locations[self.stacks[s.stack as usize].locations.clone()];
                if stack.len() <= GATHERED_LOCATIONS {
                    (stack, locations) = locations.split_at(stack.len());
                }
                let (of_sample, others) = values.split_at_mut(n);
                values = others;
                of_sample.iter_mut().enumerate().for_each(|(column, v)| *v = value(s.is_base, column, *v));
                if of_sample.iter().all(|&v| v == 0) {
                    continue;
                }
                if s.stack != last {
                    writer.stack(stack);
                    last = s.stack;
                }
                writer.sample(of_sample, self.labels.get(s.labels).iter().map(|l| l.label()));
            }
        }
        writer.finish(&self, &About { header: &header, duration_nanos: header.duration_nanos, comment: None });
        writer.into_message()
    }

    fn header(&mut self, profiles: &[&'p Profile], fields: MergedFields) -> Header {
        let mut first_string = |get: &dyn Fn(&Header) -> StringId| {
            let bytes = profiles.iter().map(|p| p.string(get(p.header()))).find(|s| !s.is_empty());
            StringId(self.intern(bytes.unwrap_or_default()))
        };
        let of_profiles = first_string(&|h| h.default_sample_type);
        let doc_url = first_string(&|h| h.doc_url);
        let drop_frames = first_string(&|h| if fields.frames_dropped { StringId::EMPTY } else { h.drop_frames });
        let keep_frames = first_string(&|h| if fields.frames_dropped { StringId::EMPTY } else { h.keep_frames });
        let mut comments: Vec<StringId> = Vec::new();
        let mut seen = HashSet::new();
        for p in profiles {
            let interned = p.header().comments.iter().map(|&c| StringId(self.intern(p.string(c))));
            comments.extend(interned.filter(|&c| seen.insert(c)));
        }
        // Use the first period type that any profile declares, and the longest period with this type.
        let period_type_of = |p: &&'p Profile| p.header().period_type.map(|t| [p.string(t.kind), p.string(t.unit)]);
        let period_type = profiles.iter().find_map(period_type_of);
        let period = profiles.iter().filter(|p| period_type_of(p) == period_type).map(|p| p.period()).max();
        let types = self.types;
        let chosen = fields.default_type.and_then(|index| types.get(index));
        let default_sample_type = chosen.map_or(of_profiles, |chosen| StringId(self.intern(chosen.kind.as_bytes())));
        let mut intern = |text| StringId(self.intern(text));
        let period_type = period_type.map(|[kind, unit]| ValueType { kind: intern(kind), unit: intern(unit) });
        Header {
            drop_frames,
            keep_frames,
            time_nanos: profiles.iter().map(|p| p.time_nanos()).filter(|&t| t != 0).min().unwrap_or(0),
            duration_nanos: fields.duration_nanos,
            period_type,
            period: period.unwrap_or(0),
            comments,
            default_sample_type,
            doc_url,
        }
    }
}

impl Tables for Merger<'_> {
    fn sizes(&self) -> [usize; 4] {
        [self.strings.len(), self.functions.len(), self.mappings.len(), self.locations.len()]
    }

    fn string(&self, id: StringId) -> &[u8] {
        self.strings[id.0 as usize]
    }

    fn function(&self, index: u32) -> ([StringId; 3], i64) {
        let f = self.functions[index as usize];
        ([f.name, f.system_name, f.file].map(StringId), f.start_line)
    }

    fn mapping(&self, index: u32) -> Mapping {
        self.mappings[index as usize]
    }

    fn location(&self, index: u32) -> (u32, u64, bool) {
        let l = &self.locations[index as usize];
        (l.mapping, l.address, l.folded)
    }

    fn for_each_line(&self, location: u32, mut f: impl FnMut(u32, i64, i64)) {
        let lines = self.locations[location as usize].lines.clone();
        self.lines[lines].iter().for_each(|l| f(l.function, l.number, l.column));
    }
}
