//! A naive reader of profile.proto, sufficient to choose questions and to count samples.
//!
//! It does not use the engine's reader, because the questions and the allowed rounding must not depend on the code
//! under test. It also writes the copies of a profile for pprof that avoid fields which trigger a bug in pprof's
//! grouping (see `exceptions`).

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

pub struct Profile {
    pub sample_types: Vec<ValueType>,
    pub samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct ValueType {
    pub name: String,
    pub unit: String,
}

pub struct Sample {
    /// Leaf first, as in the file, with inlined lines expanded.
    pub frames: Vec<Frame>,
    pub values: Vec<i64>,
    pub labels: Vec<Label>,
}

/// One line of a location, or the location itself if it has no lines.
pub struct Frame {
    pub function: String,
    pub file: String,
    /// The base name of the mapped file. It names frames without symbols.
    pub binary: String,
    /// True if the compiler inlined this line into the next.
    pub inlined: bool,
}

impl Frame {
    /// Returns the name that pprof shows at granularity `functions`.
    fn name(&self) -> String {
        match (self.function.as_str(), self.binary.as_str()) {
            ("", "") => "<unknown>".into(),
            ("", binary) => format!("[{binary}]"),
            (function, _) => function.into(),
        }
    }
}

pub struct Label {
    pub key: String,
    pub value: LabelValue,
}

pub enum LabelValue {
    Text(String),
    Number { value: i64, unit: String },
}

impl Profile {
    pub fn read(path: &Path) -> Profile {
        Profile::decode(&inflated(path))
    }

    /// Returns the number of samples that contain the frame `name`. It bounds the rounding error of a scaled row.
    pub fn samples_with(&self, name: &str) -> usize {
        self.samples.iter().filter(|sample| sample.frames.iter().any(|frame| frame.name() == name)).count()
    }

    pub fn has_negative_values(&self) -> bool {
        self.samples.iter().any(|sample| sample.values.iter().any(|value| *value < 0))
    }

    fn decode(bytes: &[u8]) -> Profile {
        // The string table may come last, so all tables are collected before names are resolved.
        let mut strings = Vec::new();
        let mut functions = HashMap::new();
        let mut locations = HashMap::new();
        let mut mappings = HashMap::new();
        let (mut raw_samples, mut raw_types) = (Vec::new(), Vec::new());
        for field in Fields(bytes) {
            match field.number {
                1 => raw_types.push(field.bytes),
                2 => raw_samples.push(field.bytes),
                3 => drop(mappings.insert(scalar(field.bytes, 1), field.bytes)),
                4 => drop(locations.insert(scalar(field.bytes, 1), field.bytes)),
                5 => drop(functions.insert(scalar(field.bytes, 1), field.bytes)),
                6 => strings.push(String::from_utf8_lossy(field.bytes).into_owned()),
                _ => {}
            }
        }
        let string = |index: u64| strings[index as usize].clone();

        let frames_of = |location: u64| -> Vec<Frame> {
            let location = locations[&location];
            let binary = mappings.get(&scalar(location, 2)).map_or(String::new(), |mapping| string(scalar(mapping, 5)));
            let binary = binary.rsplit('/').next().unwrap_or_default().to_string();
            let lines: Vec<&[u8]> = messages(location, 4).collect();
            let frame = |(position, line): (usize, &&[u8])| {
                let function = functions[&scalar(line, 1)];
                Frame {
                    function: string(scalar(function, 2)),
                    file: string(scalar(function, 4)),
                    binary: binary.clone(),
                    inlined: position + 1 < lines.len(),
                }
            };
            match lines.is_empty() {
                true => vec![Frame { function: String::new(), file: String::new(), binary, inlined: false }],
                false => lines.iter().enumerate().map(frame).collect(),
            }
        };
        let label = |bytes: &[u8]| {
            let (text, unit) = (scalar(bytes, 2), scalar(bytes, 4));
            let value = match text {
                0 => LabelValue::Number { value: scalar(bytes, 3) as i64, unit: string(unit) },
                _ => LabelValue::Text(string(text)),
            };
            Label { key: string(scalar(bytes, 1)), value }
        };
        let sample = |bytes: &&[u8]| Sample {
            frames: repeated(bytes, 1).into_iter().flat_map(&frames_of).collect(),
            values: repeated(bytes, 2).into_iter().map(|value| value as i64).collect(),
            labels: messages(bytes, 3).map(label).collect(),
        };
        let value_type = |bytes: &&[u8]| ValueType { name: string(scalar(bytes, 1)), unit: string(scalar(bytes, 2)) };
        Profile {
            sample_types: raw_types.iter().map(value_type).collect(),
            samples: raw_samples.iter().map(sample).collect(),
        }
    }
}

/// Returns the uncompressed profile in `path`.
pub fn inflated(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut inflated = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..])
        .read_to_end(&mut inflated)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    inflated
}

/// Returns true if the profile has frames to drop (field 7).
pub fn names_frames_to_drop(profile: &[u8]) -> bool {
    scalar(profile, 7) != 0
}

/// Returns the profile without the fields by which pprof splits frames of one file: the start lines of functions (field
/// 5), and the mapping (field 2) of locations whose lines all have a file.
pub fn with_files_alone(profile: &[u8]) -> Vec<u8> {
    let empty: Vec<bool> = messages(profile, 6).map(<[u8]>::is_empty).collect();
    let without_file: HashSet<u64> = messages(profile, 5)
        .filter(|function| empty[scalar(function, 4) as usize])
        .map(|function| scalar(function, 1))
        .collect();
    let has_files = |location: &[u8]| {
        let mut lines = messages(location, 4).peekable();
        lines.peek().is_some() && lines.all(|line| !without_file.contains(&scalar(line, 1)))
    };
    rewritten(profile, |number, message| match number {
        4 if has_files(message) => Some(rewritten(message, |number, _| (number == 2).then(Vec::new))),
        5 => Some(rewritten(message, |number, _| (number == 5).then(Vec::new))),
        _ => None,
    })
}

/// Returns the profile without the columns of its lines (field 3).
pub fn without_columns(profile: &[u8]) -> Vec<u8> {
    let line_without = |line: &[u8]| rewritten(line, |number, _| (number == 3).then(Vec::new));
    rewritten(profile, |number, message| {
        (number == 4).then(|| rewritten(message, |number, line| (number == 4).then(|| line_without(line))))
    })
}

/// Copies a message. `replace` may return other bytes for a field; an empty result removes the field.
fn rewritten(message: &[u8], replace: impl Fn(u64, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for field in Fields(message) {
        match replace(field.number, field.bytes) {
            None => out.extend_from_slice(field.encoded),
            Some(replacement) if replacement.is_empty() => {}
            Some(replacement) => write_bytes(&mut out, field.number, &replacement),
        }
    }
    out
}

pub fn write_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    write_varint(out, number << 3 | 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub fn write_scalar(out: &mut Vec<u8>, number: u64, value: u64) {
    write_varint(out, number << 3);
    write_varint(out, value);
}

pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// One field of a message. `bytes` is empty for a scalar, and `value` is 0 for other fields.
struct Field<'a> {
    number: u64,
    value: u64,
    bytes: &'a [u8],
    encoded: &'a [u8],
}

/// Iterates over the fields of a message. Valid producers only write wire types 0, 1, 2 and 5.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let start = self.0;
        let tag = self.varint();
        let mut field = Field { number: tag >> 3, value: 0, bytes: &[], encoded: &[] };
        let skipped = match tag & 7 {
            0 => {
                field.value = self.varint();
                0
            }
            1 => 8,
            2 => self.varint() as usize,
            5 => 4,
            other => panic!("wire type {other} in a profile of the corpus"),
        };
        (field.bytes, self.0) = self.0.split_at(skipped);
        field.encoded = &start[..start.len() - self.0.len()];
        Some(field)
    }
}

impl Fields<'_> {
    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for (position, byte) in self.0.iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                self.0 = &self.0[position + 1..];
                return value;
            }
        }
        panic!("a varint without an end in a profile of the corpus");
    }
}

/// Returns the messages, or strings, of one field.
fn messages(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    Fields(message).filter(move |field| field.number == number).map(|field| field.bytes)
}

fn scalar(message: &[u8], number: u64) -> u64 {
    Fields(message).filter(|field| field.number == number).last().map_or(0, |field| field.value)
}

/// Returns a repeated integer field, packed (with bytes) or unpacked (with a value).
fn repeated(message: &[u8], number: u64) -> Vec<u64> {
    let mut values = Vec::new();
    for field in Fields(message).filter(|field| field.number == number) {
        let packed = field.encoded[0] & 7 == 2;
        if packed {
            let mut rest = Fields(field.bytes);
            while !rest.0.is_empty() {
                values.push(rest.varint());
            }
        } else {
            values.push(field.value);
        }
    }
    values
}
