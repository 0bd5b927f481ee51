//! Several profiles to one: samples that are the same add up, everything unreferenced goes.
//!
//! This is also how a diff is written (the base's samples negated and labelled). What counts as the
//! same is pprof's, so that our merged profiles equal its own:
//!
//! - [`MappingKey`]: size rounded up to 4 KiB, file offset, build id or else file name. Not the
//!   start: the kernel moves it from run to run.
//! - [`FunctionKey`]: start line, name, system name, file name.
//! - a location: its address relative to its mapping, the mapping, its lines, whether it is folded.
//! - a sample: its locations and its labels, sorted by key.
//!
//! Whole keys are compared, never only their hashes, so nothing can be forged into a wrong sum.
//! Everything is numbered in the order of first use, so the result is deterministic.

use std::cmp::Ordering::Equal;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use hashbrown::{HashMap, HashTable};

use super::message::{MergedHeader, Output};
use super::types::{CommonType, common_types};
use super::{BASE_LABEL, LabelValue, NONE, Profile, Sample, StringId};
use crate::error::{Error, Result};

type State = foldhash::fast::RandomState;

/// Which samples of a profile take part, and which lines and locations of them.
pub(crate) trait Selection {
    /// Calls `f` with the index of each line of a location that stays, innermost first.
    fn lines(&self, location: u32, f: &mut dyn FnMut(u32));

    /// Fills `locations` with those of the sample that stay, leaf first; false if the sample goes.
    /// `index` is the sample's place in the profile.
    fn locations(&self, index: usize, sample: &Sample<'_>, locations: &mut Vec<u32>) -> bool;
}

/// The selection that leaves everything as it is.
pub(crate) struct Everything<'p>(pub &'p Profile);

impl Selection for Everything<'_> {
    fn lines(&self, location: u32, f: &mut dyn FnMut(u32)) {
        self.0.locations().lines(location).for_each(f);
    }

    fn locations(&self, _index: usize, sample: &Sample<'_>, locations: &mut Vec<u32>) -> bool {
        sample.each_location(|l| locations.push(l));
        true
    }
}

/// One profile's share of a merge.
pub(crate) struct Part<'p, S> {
    pub profile: &'p Profile,
    /// Index of the profile in [`CommonType::columns`].
    pub index: usize,
    /// `Some(b)`: of a written diff, only the samples of the base (true) or of the other side.
    pub side: Option<bool>,
    /// Subtract, and label the samples as the base of a diff.
    pub as_base: bool,
    pub selection: S,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct MappingKey {
    size: u64,
    offset: u64,
    build_id_or_file: u32,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct FunctionKey {
    pub start_line: i64,
    pub name: u32,
    pub system_name: u32,
    pub file: u32,
}

#[derive(Clone, Copy)]
pub(super) struct MergedMapping {
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
    pub file: u32,
    pub build_id: u32,
    pub flags: u8,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct MergedLine {
    pub function: u32,
    pub number: i64,
    pub column: i64,
}

pub(super) struct MergedLocation {
    /// Index, or `NONE`.
    pub mapping: u32,
    pub address: u64,
    pub folded: bool,
    pub lines: Range<usize>,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct MergedLabel {
    /// Text labels sort before numbers; within a key the file's order stays (the sort is stable).
    pub numeric: bool,
    pub key: u32,
    pub value: i64,
    pub unit: u32,
}

pub(super) struct MergedSample {
    pub locations: Range<usize>,
    pub labels: Range<usize>,
    pub is_base: bool,
}

/// What was already translated of the profile that is being added, by its own indexes.
struct Memo {
    strings: Vec<u32>,
    functions: Vec<u32>,
    mappings: Vec<u32>,
    locations: Vec<u32>,
}

impl Memo {
    fn new(p: &Profile) -> Memo {
        Memo {
            strings: vec![NONE; p.n_strings()],
            functions: vec![NONE; p.n_functions()],
            mappings: vec![NONE; p.mappings().len()],
            locations: vec![NONE; p.n_locations()],
        }
    }
}

/// Fields of the result that do not follow from the profiles alone.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    pub duration_nanos: i64,
    /// What drop_frames says was done already, so the result must not say it again.
    pub frames_dropped: bool,
}

/// Adds profiles up; see the module's text for what is the same.
pub(crate) struct Merger<'p> {
    types: &'p [CommonType],
    state: State,
    pub(super) strings: Vec<&'p [u8]>,
    string_ids: HashMap<&'p [u8], u32, State>,
    pub(super) functions: Vec<FunctionKey>,
    function_ids: HashMap<FunctionKey, u32, State>,
    pub(super) mappings: Vec<MergedMapping>,
    mapping_ids: HashMap<MappingKey, u32, State>,
    pub(super) locations: Vec<MergedLocation>,
    location_ids: HashTable<u32>,
    pub(super) lines: Vec<MergedLine>,
    pub(super) samples: Vec<MergedSample>,
    sample_ids: HashTable<u32>,
    pub(super) stacks: Vec<u32>,
    pub(super) labels: Vec<MergedLabel>,
    values: Vec<i64>,
}

/// Adds profiles up to one.
///
/// Sample types that all have are kept, in the finest of their units. Times: the earliest. Durations
/// add up. Comments of all are kept once; the other fields are those of the first that has them.
///
/// # Errors
/// No profile, no common sample type, or values that add up past int64.
pub fn merge(profiles: &[&Profile]) -> Result<Profile> {
    if profiles.is_empty() {
        return Err(Error::query("there is no profile to merge"));
    }
    let types = common_types(profiles)?;
    let mut merger = Merger::new(&types);
    for (index, &profile) in profiles.iter().enumerate() {
        merger.add(Part { profile, index, side: None, as_base: false, selection: Everything(profile) });
    }
    let duration = profiles.iter().fold(0i64, |sum, p| sum.saturating_add(p.duration_nanos()));
    merger.finish("merged", profiles, Fields { duration_nanos: duration, frames_dropped: false }, |_, _, v| v)
}

impl<'p> Merger<'p> {
    pub(crate) fn new(types: &'p [CommonType]) -> Merger<'p> {
        let state = State::default();
        let mut merger = Merger {
            types,
            strings: Vec::new(),
            string_ids: HashMap::with_hasher(state.clone()),
            functions: Vec::new(),
            function_ids: HashMap::with_hasher(state.clone()),
            mappings: Vec::new(),
            mapping_ids: HashMap::with_hasher(state.clone()),
            locations: Vec::new(),
            location_ids: HashTable::new(),
            lines: Vec::new(),
            samples: Vec::new(),
            sample_ids: HashTable::new(),
            stacks: Vec::new(),
            labels: Vec::new(),
            values: Vec::new(),
            state,
        };
        merger.intern(b"");
        merger
    }

    /// Adds one profile's samples.
    pub(crate) fn add<S: Selection>(&mut self, part: Part<'p, S>) {
        let p = part.profile;
        let mut memo = Memo::new(p);
        if self.mappings.is_empty() && !p.mappings().is_empty() {
            // By convention the first mapping is the main binary, so the first profile's comes first.
            self.mapping(p, 0, &mut memo);
        }
        let columns: Vec<(usize, i64)> = self.types.iter().map(|t| t.columns[part.index]).collect();
        let sign = if part.as_base { -1 } else { 1 };
        let base_label = MergedLabel {
            numeric: false,
            key: self.intern(BASE_LABEL.0),
            value: i64::from(self.intern(BASE_LABEL.1)),
            unit: 0,
        };
        let (mut locations, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (index, sample) in p.samples().enumerate() {
            let sample_is_base = sample.is_base();
            if part.side.is_some_and(|side| side != sample_is_base) {
                continue;
            }
            // The base of a written diff is negative already.
            let sign = if part.side == Some(true) { -sign } else { sign };
            values.clear();
            sample.each_value(|v| values.push(v));
            if columns.iter().all(|&(c, _)| values[c] == 0) {
                continue;
            }
            locations.clear();
            if !part.selection.locations(index, &sample, &mut locations) {
                continue;
            }
            for l in &mut locations {
                *l = self.location(p, *l, &part.selection, &mut memo);
            }
            labels.clear();
            for label in sample.all_labels() {
                let key = self.string(p, label.key, &mut memo);
                labels.push(match label.value {
                    LabelValue::Text(t) => {
                        MergedLabel { numeric: false, key, value: i64::from(self.string(p, t, &mut memo)), unit: 0 }
                    }
                    LabelValue::Number(value, unit) => {
                        MergedLabel { numeric: true, key, value, unit: self.string(p, unit, &mut memo) }
                    }
                });
            }
            if part.side.is_some() {
                labels.retain(|l| *l != base_label);
            }
            if part.as_base {
                labels.push(base_label);
            }
            // By the key's bytes and not its number, so that the order does not depend on what was merged before.
            labels.sort_by(|a, b| {
                let key = |l: &MergedLabel| self.strings[l.key as usize];
                a.numeric.cmp(&b.numeric).then_with(|| if a.key == b.key { Equal } else { key(a).cmp(key(b)) })
            });
            let index = self.sample(&locations, &labels, part.as_base);
            let sums = &mut self.values[index * columns.len()..][..columns.len()];
            for (sum, &(column, times)) in sums.iter_mut().zip(&columns) {
                // common_types made sure that this can't overflow.
                *sum = sum.wrapping_add(sign * values[column].wrapping_mul(times));
            }
        }
    }

    fn intern(&mut self, bytes: &'p [u8]) -> u32 {
        *self.string_ids.entry(bytes).or_insert_with(|| {
            self.strings.push(bytes);
            self.strings.len() as u32 - 1
        })
    }

    fn string(&mut self, p: &'p Profile, id: StringId, memo: &mut Memo) -> u32 {
        let slot = id.0 as usize;
        if memo.strings[slot] == NONE {
            memo.strings[slot] = self.intern(p.string(id));
        }
        memo.strings[slot]
    }

    fn mapping(&mut self, p: &'p Profile, index: u32, memo: &mut Memo) -> u32 {
        if memo.mappings[index as usize] != NONE {
            return memo.mappings[index as usize];
        }
        let m = p.mappings()[index as usize];
        let (file, build_id) = (self.string(p, m.file, memo), self.string(p, m.build_id, memo));
        let key = MappingKey {
            size: m.limit.wrapping_sub(m.start).wrapping_add(0xfff) & !0xfff,
            offset: m.offset,
            build_id_or_file: if build_id != 0 { build_id } else { file },
        };
        let id = *self.mapping_ids.entry(key).or_insert_with(|| {
            let MappingKey { offset, .. } = key;
            self.mappings.push(MergedMapping {
                start: m.start,
                limit: m.limit,
                offset,
                file,
                build_id,
                flags: m.flags,
            });
            self.mappings.len() as u32 - 1
        });
        memo.mappings[index as usize] = id;
        id
    }

    fn function(&mut self, p: &'p Profile, index: u32, memo: &mut Memo) -> u32 {
        let i = index as usize;
        if memo.functions[i] != NONE {
            return memo.functions[i];
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
        memo.functions[i] = id;
        id
    }

    fn location(&mut self, p: &'p Profile, index: u32, selection: &impl Selection, memo: &mut Memo) -> u32 {
        let i = index as usize;
        if memo.locations[i] != NONE {
            return memo.locations[i];
        }
        let columns = p.locations();
        let (mut mapping, mut address) = (NONE, columns.address[i]);
        if columns.mapping[i] != NONE {
            mapping = self.mapping(p, columns.mapping[i], memo);
            // The address as it would be had the binary been mapped where the merged mapping says.
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
        let same = |l: &MergedLocation| {
            (l.mapping, l.address, l.folded) == (new.mapping, new.address, new.folded)
                && lines[l.lines.clone()] == lines[new.lines.clone()]
        };
        let entry =
            self.location_ids.entry(hash(&new), |&o| same(&locations[o as usize]), |&o| hash(&locations[o as usize]));
        let id = match entry {
            hashbrown::hash_table::Entry::Occupied(e) => {
                let id = *e.get();
                self.lines.truncate(first);
                id
            }
            hashbrown::hash_table::Entry::Vacant(e) => {
                let id = self.locations.len() as u32;
                e.insert(id);
                self.locations.push(new);
                id
            }
        };
        memo.locations[i] = id;
        id
    }

    fn sample(&mut self, locations: &[u32], labels: &[MergedLabel], is_base: bool) -> usize {
        let (samples, stacks, all_labels, state) = (&self.samples, &self.stacks, &self.labels, &self.state);
        let parts = |s: &MergedSample| (&stacks[s.locations.clone()], &all_labels[s.labels.clone()]);
        let entry = self.sample_ids.entry(
            state.hash_one((locations, labels)),
            |&o| parts(&samples[o as usize]) == (locations, labels),
            |&o| state.hash_one(parts(&samples[o as usize])),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(e) => *e.get() as usize,
            hashbrown::hash_table::Entry::Vacant(e) => {
                let id = self.samples.len();
                e.insert(id as u32);
                let (l, k) = (self.stacks.len(), self.labels.len());
                self.stacks.extend_from_slice(locations);
                self.labels.extend_from_slice(labels);
                self.samples.push(MergedSample {
                    locations: l..l + locations.len(),
                    labels: k..k + labels.len(),
                    is_base,
                });
                self.values.extend(std::iter::repeat_n(0, self.types.len()));
                id
            }
        }
    }

    /// The merged profile. `header_of` gives the fields that are no tables; `value` has the last word
    /// on each value, from whether the sample is of the base, its column and the exact sum.
    pub(crate) fn finish(
        mut self,
        name: &str,
        header_of: &[&'p Profile],
        fields: Fields,
        value: impl Fn(bool, usize, i64) -> i64,
    ) -> Result<Profile> {
        let types: &'p [CommonType] = self.types;
        let types: Vec<(u32, u32)> =
            types.iter().map(|t| (self.intern(t.kind.as_bytes()), self.intern(t.unit.as_bytes()))).collect();
        let header = self.header(header_of, fields);
        let n = types.len();
        let mut out = Output::new(&self);
        for (kind, unit) in types {
            out.value_type(1, kind, unit);
        }
        if !self.mappings.is_empty() {
            out.mappings.get(0);
        }
        let mut values = Vec::with_capacity(n);
        for (i, s) in self.samples.iter().enumerate() {
            values.clear();
            values.extend(self.values[i * n..][..n].iter().enumerate().map(|(c, &v)| value(s.is_base, c, v)));
            if values.iter().any(|&v| v != 0) {
                out.sample(s, &values);
            }
        }
        out.tables();
        out.strings_and_header(&header);
        Profile::decode(name, out.out)
    }

    fn header(&mut self, profiles: &[&'p Profile], fields: Fields) -> MergedHeader {
        let mut first_string = |get: &dyn Fn(&super::Header) -> u32| {
            let bytes = profiles.iter().map(|p| p.string(StringId(get(p.header())))).find(|s| !s.is_empty());
            self.intern(bytes.unwrap_or_default())
        };
        let default_sample_type = first_string(&|h| h.default_sample_type);
        let doc_url = first_string(&|h| h.doc_url);
        let drop_frames = first_string(&|h| if fields.frames_dropped { 0 } else { h.drop_frames });
        let keep_frames = first_string(&|h| if fields.frames_dropped { 0 } else { h.keep_frames });
        let mut comments: Vec<u32> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for p in profiles {
            let all = p.header().comments.iter().map(|&c| self.intern(p.string(c)));
            comments.extend(all.filter(|&c| known.insert(c)));
        }
        let period_type = profiles.iter().find_map(|p| p.header().period_type.map(|t| (p, t)));
        MergedHeader {
            drop_frames,
            keep_frames,
            time_nanos: profiles.iter().map(|p| p.time_nanos()).filter(|&t| t != 0).min().unwrap_or(0),
            duration_nanos: fields.duration_nanos,
            period_type: period_type.map(|(p, t)| (self.intern(p.string(t.kind)), self.intern(p.string(t.unit)))),
            period: profiles.iter().map(|p| p.period()).max().unwrap_or(0),
            comments,
            default_sample_type,
            doc_url,
        }
    }
}
