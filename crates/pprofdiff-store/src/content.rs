//! Converts a profile to the rows of a store's tables, and back.
//!
//! `samples` has a row per value. It has the data for most questions, so they need no join. `locations` has the
//! remaining data of the profile's frames, under the location numbers that the samples use. Data without influence on
//! views is dropped: unused locations and functions, and the locations' flag `is_folded`. Bytes that are not UTF-8 are
//! replaced, as in views. The views of a stored profile therefore equal the views of its file.
//!
//! Two hashes are the first 16 bytes of SHA-256. Any program can compute them, and they are stable across our versions:
//! - `stack` of a sample: hashes the name and file of each frame, from the leaf, with a zero byte after each text.
//!   A stack has the same hash in different builds, because the hash excludes lines and addresses.
//! - The id of a profile: hashes the keys and all data that restores the profile ([`StoredContent::id`]), so a changed
//!   profile is detected.

use std::fmt;

use parquet::data_type::ByteArray;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use super::table::{ColumnKind, ColumnLists, StoreColumn, StoreTable};
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::columns::{Mapping, NONE, StringId, ValueType};
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Result};

pub static SAMPLES: StoreTable = StoreTable {
    name: "samples",
    columns: &[
        ("profile", ColumnKind::Text),
        ("name", ColumnKind::Text),
        ("time_nanos", ColumnKind::Int),
        ("duration_nanos", ColumnKind::Int),
        ("sample_type", ColumnKind::Text),
        ("unit", ColumnKind::Text),
        ("value", ColumnKind::Value),
        ("stack", ColumnKind::Hash),
        ("functions", ColumnKind::Texts),
        ("locations", ColumnKind::Ints),
        ("labels", ColumnKind::Text),
    ],
};

pub static LOCATIONS: StoreTable = StoreTable {
    name: "locations",
    columns: &[
        ("profile", ColumnKind::Text),
        ("location", ColumnKind::Near),
        // 0 for the innermost inlined function, or -1 if the location's functions are unknown.
        ("inline_depth", ColumnKind::Int),
        ("function", ColumnKind::Text),
        ("system_name", ColumnKind::Text),
        ("file", ColumnKind::Text),
        ("start_line", ColumnKind::Near),
        ("line", ColumnKind::Near),
        ("line_column", ColumnKind::Int),
        // The index of the mapping in the profile, or -1 without a mapping.
        ("mapping", ColumnKind::Int),
        ("binary", ColumnKind::Text),
        ("address", ColumnKind::Value),
    ],
};

/// The columns of `locations` that are needed to restore a profile.
const RESTORED_LOCATION_COLUMNS: [&str; 10] = [
    "location",
    "inline_depth",
    "function",
    "system_name",
    "file",
    "start_line",
    "line",
    "line_column",
    "mapping",
    "address",
];

/// The metadata of a profile, without its rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredAbout {
    types: Vec<[String; 2]>,
    time_nanos: i64,
    duration_nanos: i64,
    period_type: Option<[String; 2]>,
    period: i64,
    default_sample_type: String,
    drop_frames: String,
    keep_frames: String,
    comments: Vec<String>,
    doc_url: String,
    mappings: Vec<StoredMapping>,
    /// The part of its recording that the profile covers, or `None` for a whole recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct StoredMapping {
    start: u64,
    limit: u64,
    offset: u64,
    file: String,
    build_id: String,
    flags: u8,
}

/// The rows and metadata of a profile, from which it can be restored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredContent {
    pub about: StoredAbout,
    /// The values, by sample and then by type.
    values: Vec<i64>,
    /// The location numbers of each sample's stack.
    stacks: ColumnLists<i32>,
    /// The labels of each sample, as JSON.
    labels: Vec<ByteArray>,
    /// The columns in [`RESTORED_LOCATION_COLUMNS`].
    locations: [StoreColumn; 10],
}

fn text(p: &Profile, id: StringId) -> ByteArray {
    String::from_utf8_lossy(p.string(id)).as_bytes().to_vec().into()
}

/// Returns the first 16 bytes of a hash.
fn first_16(hash: Sha256) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&hash.finalize()[..16]);
    first
}

/// Returns the first 16 bytes of a hash as hexadecimal digits, the form of ids.
pub fn hex_16(hash: Sha256) -> String {
    first_16(hash).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl StoredAbout {
    /// Returns the number of sample types.
    pub fn n_types(&self) -> usize {
        self.types.len()
    }

    /// Returns the approximate size of the texts in bytes.
    pub fn size(&self) -> u64 {
        let types: usize = self.types.iter().flatten().map(String::len).sum();
        let comments: usize = self.comments.iter().map(String::len).sum();
        let mappings: usize = self.mappings.iter().map(|m| 24 + m.file.len() + m.build_id.len()).sum();
        (types + comments + mappings) as u64
    }

    fn new(p: &Profile) -> StoredAbout {
        let (h, text) = (p.header(), |id| p.text(id));
        let mapping = |m: &Mapping| StoredMapping {
            start: m.start,
            limit: m.limit,
            offset: m.offset,
            file: text(m.file),
            build_id: text(m.build_id),
            flags: m.flags,
        };
        StoredAbout {
            types: p.sample_types().into_iter().map(|(kind, unit)| [kind, unit]).collect(),
            time_nanos: h.time_nanos,
            duration_nanos: h.duration_nanos,
            period_type: h.period_type.map(|t| [text(t.kind), text(t.unit)]),
            period: h.period,
            default_sample_type: text(h.default_sample_type),
            drop_frames: text(h.drop_frames),
            keep_frames: text(h.keep_frames),
            comments: p.comments(),
            doc_url: p.doc_url(),
            mappings: p.mappings().iter().map(mapping).collect(),
            window: p.window().map(|window| window.as_str().to_owned()),
        }
    }
}

impl StoredContent {
    /// Converts a profile to rows.
    ///
    /// # Errors
    /// Returns an error if the profile has no sample types.
    pub fn new(p: &Profile) -> Result<StoredContent> {
        let about = StoredAbout::new(p);
        if about.types.is_empty() {
            return Err(
                Error::query("the profile has no sample types, so there is nothing to store").in_input(p.name())
            );
        }
        let mut numbers = vec![-1_i32; p.n_locations()];
        let mut used = Vec::new();
        let mut stacks = ColumnLists { values: Vec::new(), ends: Vec::new() };
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for sample in p.samples() {
            sample.for_each_location(|location| {
                let number = &mut numbers[location as usize];
                if *number < 0 {
                    *number = used.len() as i32;
                    used.push(location);
                }
                stacks.values.push(*number);
            });
            stacks.end_list();
            sample.for_each_value(|value| values.push(value));
            labels.push(StoredLabels::from_profile(p, sample.all_labels()).to_text()?.into_bytes().into());
        }
        Ok(StoredContent { about, values, stacks, labels, locations: locations(p, &used) })
    }

    fn n_types(&self) -> usize {
        self.about.n_types()
    }

    /// Returns the columns of [`SAMPLES`], in their order.
    pub fn samples(&self, id: &str, name: &str) -> Vec<StoreColumn> {
        let (types, n) = (self.n_types(), self.values.len());
        let constant = |text: &str| StoreColumn::Bytes(vec![ByteArray::from(text); n]);
        let per_type = |part: usize| {
            let texts: Vec<ByteArray> = self.about.types.iter().map(|t| t[part].as_str().into()).collect();
            StoreColumn::Bytes(texts.iter().cycle().take(n).cloned().collect())
        };
        let names = self.names_of_locations();
        let (mut hashes, mut functions) = (Vec::with_capacity(n), ColumnLists { values: Vec::new(), ends: Vec::new() });
        let mut locations = ColumnLists { values: Vec::new(), ends: Vec::new() };
        let mut pace = Checkpointer::default();
        for stack in self.stacks.iter() {
            let frames = || stack.iter().flat_map(|&location| &names[location as usize]);
            let mut hash = Sha256::new();
            for part in frames().flatten() {
                hash.update(part.data());
                hash.update([0]);
            }
            let hash = ByteArray::from(first_16(hash).to_vec());
            for _ in 0..types {
                hashes.push(hash.clone());
                functions.values.extend(frames().map(|[name, _]| name.clone()));
                functions.end_list();
                locations.values.extend_from_slice(stack);
                locations.end_list();
            }
            pace.step(1 + types * stack.len() / 16);
        }
        let labels = self.labels.iter().flat_map(|text| std::iter::repeat_n(text, types)).cloned().collect();
        vec![
            constant(id),
            constant(name),
            StoreColumn::Int(vec![self.about.time_nanos; n]),
            StoreColumn::Int(vec![self.about.duration_nanos; n]),
            per_type(0),
            per_type(1),
            StoreColumn::Int(self.values.clone()),
            StoreColumn::Bytes(hashes),
            StoreColumn::Texts(functions),
            StoreColumn::Ints(locations),
            StoreColumn::Bytes(labels),
        ]
    }

    /// Returns the name and file of each frame, by location. A location without functions gets one frame, with the name
    /// of its binary in brackets.
    fn names_of_locations(&self) -> Vec<Vec<[ByteArray; 2]>> {
        let [numbers, depths, functions, _, files, .., mappings, _] = &self.locations;
        let (StoreColumn::Int(numbers), StoreColumn::Int(depths), StoreColumn::Int(mappings)) =
            (numbers, depths, mappings)
        else {
            return Vec::new();
        };
        let (StoreColumn::Bytes(functions), StoreColumn::Bytes(files)) = (functions, files) else { return Vec::new() };
        let mut names: Vec<Vec<[ByteArray; 2]>> = Vec::new();
        for (row, &number) in numbers.iter().enumerate() {
            if names.len() <= number as usize {
                names.push(Vec::new());
            }
            let name = match depths[row] {
                -1 => ByteArray::from(format!("[{}]", self.binary(mappings[row])).as_str()),
                _ => functions[row].clone(),
            };
            names[number as usize].push([name, files[row].clone()]);
        }
        names
    }

    /// Returns the file name of a mapped binary, or an empty string if it is unknown.
    fn binary(&self, mapping: i64) -> &str {
        let file = usize::try_from(mapping).ok().and_then(|m| self.about.mappings.get(m)).map_or("", |m| &m.file);
        file.rsplit(['/', '\\']).next().unwrap_or_default()
    }

    /// Returns the columns of [`LOCATIONS`], in their order.
    pub fn locations(&self, id: &str) -> Vec<StoreColumn> {
        let [.., StoreColumn::Int(mappings), _] = &self.locations else { return Vec::new() };
        let file = |&mapping: &i64| {
            let mapping = usize::try_from(mapping).ok().and_then(|m| self.about.mappings.get(m));
            ByteArray::from(mapping.map_or("", |m| m.file.as_str()))
        };
        let binaries = StoreColumn::Bytes(mappings.iter().map(file).collect());
        let mut columns = vec![StoreColumn::Bytes(vec![ByteArray::from(id); mappings.len()])];
        columns.extend(self.locations.iter().cloned());
        columns.insert(columns.len() - 1, binaries);
        columns
    }

    /// Returns the profile's id in the store. Equal content with equal keys has the same id on every machine. The
    /// profile's name does not influence the id.
    ///
    /// # Errors
    /// Never fails for a valid profile.
    pub fn id(&self, keys: &[(String, String)]) -> Result<String> {
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        put(b"pprofdiff-store/1");
        keys.iter().for_each(|(key, value)| [key, value].into_iter().for_each(|text| put(text.as_bytes())));
        put(&serde_json::to_vec(&self.about).map_err(|e| Error::query(e.to_string()))?);
        let numbers = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        put(&numbers(&self.values));
        for stack in self.stacks.iter() {
            put(&stack.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
        }
        self.labels.iter().for_each(|labels| put(labels.data()));
        for column in &self.locations {
            match column {
                StoreColumn::Int(values) => put(&numbers(values)),
                StoreColumn::Bytes(texts) => texts.iter().for_each(|text| put(text.data())),
                StoreColumn::Ints(_) | StoreColumn::Texts(_) => {}
            }
        }
        Ok(hex_16(hash))
    }

    /// Builds the content from columns of a store: the values of all rows, and the stacks and labels of each sample's
    /// first row. The caller compares the id, so this function does not compare the columns.
    ///
    /// # Errors
    /// Returns an error if sample types are missing, or if the number of values is not a multiple of their number.
    pub fn read(
        about: StoredAbout,
        [values, stacks, labels]: [StoreColumn; 3],
        locations: [StoreColumn; 10],
    ) -> Result<StoredContent> {
        let (values, stacks, labels) = (values.ints(), stacks.int_lists(), labels.bytes());
        let types = about.n_types();
        if types == 0 || !values.len().is_multiple_of(types) {
            return Err(Error::malformed("its values don't fill all sample types"));
        }
        Ok(StoredContent { about, values, stacks, labels, locations })
    }

    /// The columns of both tables that [`StoredContent::read`] expects.
    pub const READ: ([&str; 3], [&str; 10]) = (["value", "locations", "labels"], RESTORED_LOCATION_COLUMNS);

    /// Restores and validates the profile.
    ///
    /// # Errors
    /// Returns an error if the profile is invalid.
    pub fn to_profile(&self, name: &str) -> Result<Profile> {
        let mut b = ProfileBuilder::new();
        self.about.types.iter().for_each(|[kind, unit]| b.sample_type(kind, unit));
        let a = &self.about;
        let period_type =
            a.period_type.as_ref().map(|[kind, unit]| ValueType { kind: b.string(kind), unit: b.string(unit) });
        let texts = [&a.drop_frames, &a.keep_frames, &a.default_sample_type, &a.doc_url];
        let [drop_frames, keep_frames, default_sample_type, doc_url] = texts.map(|text| b.string(text));
        let comments = a.comments.iter().map(|comment| b.string(comment)).collect();
        let header = b.header();
        (header.drop_frames, header.keep_frames, header.doc_url) = (drop_frames, keep_frames, doc_url);
        (header.time_nanos, header.duration_nanos) = (a.time_nanos, a.duration_nanos);
        (header.period_type, header.period) = (period_type, a.period);
        (header.default_sample_type, header.comments) = (default_sample_type, comments);
        let mut mappings = Vec::with_capacity(a.mappings.len());
        for m in &a.mappings {
            let (file, build_id) = (b.string(&m.file), b.string(&m.build_id));
            let mapping = Mapping { start: m.start, limit: m.limit, offset: m.offset, file, build_id, flags: m.flags };
            mappings.push(b.mapping(mapping));
        }
        let locations = self.build_locations(&mut b, &mappings)?;
        let mut stack = Vec::new();
        let samples = self.stacks.iter().zip(self.values.chunks(self.n_types())).zip(&self.labels);
        for ((locations_of_sample, values), labels) in samples {
            stack.clear();
            for &number in locations_of_sample {
                let location = usize::try_from(number).ok().and_then(|n| locations.get(n));
                stack.push(*location.ok_or_else(|| Error::malformed(format!("location {number} is missing")))?);
            }
            let labels = StoredLabels::parse(labels.data())?.to_labels(&mut b);
            b.sample(&stack, values, &labels)?;
        }
        let window = a.window.as_deref().map(str::parse).transpose()?;
        Ok(b.build(name)?.with_window(window))
    }

    fn build_locations(
        &self,
        b: &mut ProfileBuilder,
        mappings: &[pprofdiff_profile::builder::MappingId],
    ) -> Result<Vec<pprofdiff_profile::builder::LocationId>> {
        let [numbers, depths, functions, system_names, files, start_lines, lines, columns, mapping_indices, addresses] =
            self.locations.clone();
        let [numbers, depths, start_lines, lines, columns, mapping_indices, addresses] =
            [numbers, depths, start_lines, lines, columns, mapping_indices, addresses].map(StoreColumn::ints);
        let [functions, system_names, files] = [functions, system_names, files].map(StoreColumn::bytes);
        let mut locations = Vec::new();
        let mut location_lines = Vec::new();
        for row in 0..numbers.len() {
            if depths[row] >= 0 {
                let [name, system_name, file] = [&functions[row], &system_names[row], &files[row]].map(|t| t.data());
                let function = b.function_of_system(name, system_name, file, start_lines[row]);
                location_lines.push(b.line(function, lines[row]).with_column(columns[row]));
            }
            if numbers.get(row + 1) == Some(&numbers[row]) {
                continue;
            }
            let mapping = match mapping_indices[row] {
                -1 => None,
                number => {
                    let mapping = usize::try_from(number).ok().and_then(|n| mappings.get(n));
                    Some(*mapping.ok_or_else(|| Error::malformed(format!("mapping {number} is missing")))?)
                }
            };
            if numbers[row] != locations.len() as i64 {
                return Err(Error::malformed("its locations are not in order"));
            }
            locations.push(b.location(mapping, addresses[row] as u64, &location_lines)?);
            location_lines.clear();
        }
        Ok(locations)
    }
}

/// Returns the columns in [`RESTORED_LOCATION_COLUMNS`] of the locations in `used`, numbered in this order.
fn locations(p: &Profile, used: &[u32]) -> [StoreColumn; 10] {
    let (l, f) = (p.locations(), p.functions());
    let mut ints: [Vec<i64>; 7] = Default::default();
    let mut texts: [Vec<ByteArray>; 3] = Default::default();
    // Rows with the same text share one copy of it.
    let mut texts_by_id = vec![None; p.n_strings()];
    let mut text = |id: StringId| texts_by_id[id.index()].get_or_insert_with(|| text(p, id)).clone();
    for (number, &location) in used.iter().enumerate() {
        let index = location as usize;
        let mapping = if l.mapping[index] == NONE { -1 } else { i64::from(l.mapping[index]) };
        let mut row = |depth: i64, start_line: i64, line: i64, column: i64, names: [StringId; 3]| {
            let row = [number as i64, depth, start_line, line, column, mapping, l.address[index] as i64];
            ints.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            texts.iter_mut().zip(names).for_each(|(column, id)| column.push(text(id)));
        };
        let lines = l.lines(location);
        if lines.is_empty() {
            row(-1, 0, 0, 0, [StringId::EMPTY; 3]);
        }
        for (depth, line) in (0..).zip(lines) {
            let line = line as usize;
            let function = l.line_function[line] as usize;
            let names = [f.name[function], f.system_name[function], f.file[function]];
            row(depth, f.start_line[function], l.line_number[line], l.line_column[line], names);
        }
    }
    let [number, depth, start_line, line, column, mapping, address] = ints.map(StoreColumn::Int);
    let [name, system_name, file] = texts.map(StoreColumn::Bytes);
    [number, depth, name, system_name, file, start_line, line, column, mapping, address]
}

/// The labels of a sample as a JSON object. A value is a text, a number, or a number with its unit. A key may repeat.
#[derive(Default)]
struct StoredLabels(Vec<(String, StoredLabel)>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredLabel {
    Text(String),
    Number(i64),
    Measured(i64, String),
}

impl StoredLabels {
    fn from_profile(p: &Profile, labels: impl Iterator<Item = Label>) -> StoredLabels {
        let label = |label: Label| {
            let value = match label.value {
                LabelValue::Text(text) => StoredLabel::Text(p.text(text)),
                LabelValue::Number(number, StringId::EMPTY) => StoredLabel::Number(number),
                LabelValue::Number(number, unit) => StoredLabel::Measured(number, p.text(unit)),
            };
            (p.text(label.key), value)
        };
        StoredLabels(labels.map(label).collect())
    }

    fn to_text(&self) -> Result<String> {
        use serde::ser::{SerializeMap, Serializer};
        let mut out = Vec::new();
        let mut writer = serde_json::Serializer::new(&mut out);
        let mut write = || {
            let mut map = writer.serialize_map(Some(self.0.len()))?;
            self.0.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
            SerializeMap::end(map)
        };
        write().map_err(|e| Error::query(e.to_string()))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn parse(text: &[u8]) -> Result<StoredLabels> {
        let parsed = serde_json::from_slice(text);
        parsed.map_err(|e| Error::malformed(format!("labels must be a JSON object of texts and numbers: {e}")))
    }

    fn to_labels(&self, b: &mut ProfileBuilder) -> Vec<Label> {
        let label = |(key, value): &(String, StoredLabel)| {
            let key = b.string(key);
            let value = match value {
                StoredLabel::Text(text) => LabelValue::Text(b.string(text)),
                StoredLabel::Number(number) => LabelValue::Number(*number, StringId::EMPTY),
                StoredLabel::Measured(number, unit) => LabelValue::Number(*number, b.string(unit)),
            };
            Label { key, value }
        };
        self.0.iter().map(label).collect()
    }
}

impl<'de> Deserialize<'de> for StoredLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StoredLabels, D::Error> {
        struct LabelsVisitor;
        impl<'de> Visitor<'de> for LabelsVisitor {
            type Value = StoredLabels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredLabels, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(StoredLabels(pairs))
            }
        }
        deserializer.deserialize_map(LabelsVisitor)
    }
}
