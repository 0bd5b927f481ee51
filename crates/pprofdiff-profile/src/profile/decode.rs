//! Decodes an inflated message into a validated [`Profile`].
//!
//! The fields of a message may come in any order (Go writes the samples first and the strings last), so decoding takes
//! three passes:
//!
//! 1. `scan` walks the top level once. It counts the records of each table, notes the part of the buffer that contains
//!    them, and reads the fields outside the tables.
//! 2. `strings`, `sample_types`, `mappings`, `functions` and `locations` fill the columns, whose sizes are now known,
//!    and check ids and string indexes. Each walks only its table's part of the buffer.
//! 3. `check_samples` decodes every sample once, checks its references, and adds up each column.
//!
//! The checks equal Go's `profile.Parse` and `CheckValid`, with these additions:
//!
//! - Field numbers that protobuf does not have (0, and above 2^29 - 1) are errors, because only damage can cause them.
//! - A profile whose values add up past int64 is an error, because no view of it could be correct.
//! - The message must be smaller than 4 GiB, and `max_frames` limits the number of frames.

use std::ops::Range;

use super::ids::Ids;
use super::samples::split;
use super::wire::{Fields, SampleParts, Value, for_each_int, varint, word};
use super::{BASE_LABEL, Functions, Header, Locations, Mapping, NONE, Profile, StringId, Total, ValueType};
use crate::cancellation::ByteCheckpointer;
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;

/// A top-level table: the number of its records, and the part of the buffer from the first record to the last.
#[derive(Default, Clone)]
struct WireTable {
    count: usize,
    part: Range<usize>,
}

const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;

/// The result of the first pass. `tables` is indexed by field number.
#[derive(Default)]
struct Scan {
    tables: [WireTable; 7],
    header: Header,
}

/// One record of a table.
struct TableRecord<'a> {
    index: usize,
    /// The offset of the record's field in the inflated data.
    offset: usize,
    message: &'a [u8],
    fields: Fields<'a>,
}

impl Profile {
    /// Decodes and validates an inflated message. `name` identifies the profile in errors and reports.
    ///
    /// # Errors
    /// Fails if the profile is invalid.
    pub fn decode(name: &str, data: Vec<u8>) -> Result<Profile> {
        Profile::try_decode(name, data).map_err(|(error, _)| error)
    }

    /// Decodes like [`Profile::decode`]. Returns the data together with an error, because the data may be in another
    /// format.
    #[doc(hidden)]
    pub fn try_decode(name: &str, data: Vec<u8>) -> Result<Profile, (Error, Vec<u8>)> {
        let mut profile = match tables(name, &data) {
            Ok(profile) => profile,
            Err(error) => return Err((error, data)),
        };
        profile.data = data;
        match check_samples(&mut profile) {
            Ok(()) => Ok(profile),
            Err(error) => Err((error, profile.data)),
        }
    }
}

/// Runs passes 1 and 2. The returned profile does not have its data yet, and its samples are unchecked.
fn tables(name: &str, data: &[u8]) -> Result<Profile> {
    if data.len() > u32::MAX as usize {
        let detail = "the profile is larger than 4 GiB, which offsets of 32 bits can't reach";
        return Err(Error::new(ErrorKind::Limit, detail));
    }
    let scan = scan(data)?;
    let tables = &scan.tables;
    let strings = strings(data, &tables[STRING as usize])?;
    let n_strings = strings.len() as u64;
    let sample_types = sample_types(data, &tables[SAMPLE_TYPE as usize], n_strings)?;
    check_header(&scan.header, n_strings)?;
    let (mappings, mapping_ids) = mappings(data, &tables[MAPPING as usize], n_strings)?;
    let (functions, function_ids) = functions(data, &tables[FUNCTION as usize], n_strings)?;
    let (locations, location_ids) = locations(data, &tables[LOCATION as usize], &mapping_ids, &function_ids)?;
    let samples = &tables[SAMPLE as usize];
    Ok(Profile {
        name: name.to_owned(),
        data: Vec::new(),
        strings,
        sample_types,
        mappings,
        functions,
        locations,
        location_ids,
        samples: samples.part.clone(),
        n_samples: samples.count,
        totals: Vec::new(),
        header: scan.header,
        is_diff: false,
        may_be_diff: false,
        has_labels: false,
        usual_samples: false,
        notes: Vec::new(),
        sampled: Vec::new(),
        window: None,
        attachment: None,
    })
}

/// Runs pass 1: counts the records of each table and reads the fields outside the tables.
fn scan(data: &[u8]) -> Result<Scan> {
    let mut scan = Scan::default();
    let mut fields = Fields::new(data, 0);
    loop {
        let header = &mut scan.header;
        let start = fields.offset();
        let has_records = scan.tables.iter().any(|t| t.count > 0);
        let prefix = move |e: Error| if has_records { e } else { e.prefixed("this is not a profile: ") };
        let Some((field, value)) = fields.next().map_err(|e| prefix(e).in_record(|| "profile".into()))? else { break };
        let mut read = || -> Result<()> {
            match field {
                SAMPLE_TYPE..=STRING => {
                    value.bytes()?;
                    let table = &mut scan.tables[field as usize];
                    if table.count == 0 {
                        table.part.start = start;
                    }
                    table.count += 1;
                }
                7 => header.drop_frames = StringId(string_index(value)?),
                8 => header.keep_frames = StringId(string_index(value)?),
                9 if header.time_nanos != 0 => {
                    let detail =
                        "two profiles are concatenated here; split them into two files, and pass both to add them up";
                    return Err(Error::malformed(detail));
                }
                9 => header.time_nanos = value.int()?,
                10 => header.duration_nanos = value.int()?,
                11 => header.period_type = Some(value_type(fields.message(value)?)?),
                12 => header.period = value.int()?,
                13 => for_each_int(value, |v| {
                    header.comments.push(StringId(u32::try_from(v).unwrap_or(NONE)));
                    Ok(())
                })?,
                14 => header.default_sample_type = StringId(string_index(value)?),
                15 => header.doc_url = StringId(string_index(value)?),
                _ => {}
            }
            Ok(())
        };
        read().map_err(|e| prefix(e).in_record(|| format!("profile field {field}")).at(start))?;
        if let SAMPLE_TYPE..=STRING = field {
            // The records of a table usually follow each other, and this pass does not look into them.
            let more = fields.skip_alike((field << 3 | 2) as u8);
            let table = &mut scan.tables[field as usize];
            (table.count, table.part.end) = (table.count + more, fields.offset());
        }
    }
    if scan.tables.iter().all(|t| t.count == 0) {
        return Err(Error::malformed("this is not a profile: it has no sample type, no sample and no string").at(0));
    }
    Ok(scan)
}

fn string_index(value: Value<'_>) -> Result<u32> {
    value.varint().map(index_of_string)
}

/// Converts a string index, which is int64 on the wire. A value that does not fit 32 bits is out of range of any table.
fn index_of_string(v: u64) -> u32 {
    u32::try_from(v).unwrap_or(NONE)
}

/// Reads a sample type or period type: its type and unit.
fn value_type(mut fields: Fields<'_>) -> Result<ValueType> {
    let (mut kind, mut unit) = (0, 0);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => kind = string_index(value)?,
            2 => unit = string_index(value)?,
            _ => {}
        }
    }
    Ok(ValueType { kind: StringId(kind), unit: StringId(unit) })
}

/// Calls `f` with each record of a table, in order. Adds the record's name, index and offset to the errors of `f`.
fn for_each_record<'a>(
    data: &'a [u8],
    part: &Range<usize>,
    field: u64,
    name: &str,
    mut f: impl FnMut(&TableRecord<'a>) -> Result<()>,
) -> Result<()> {
    let mut fields = Fields::new(&data[part.clone()], part.start);
    let (mut index, mut pace) = (0, ByteCheckpointer::default());
    loop {
        let offset = fields.offset();
        pace.left(part.end - offset);
        let Some((number, value)) = fields.next()? else { return Ok(()) };
        if number != field {
            continue;
        }
        let record = TableRecord { index, offset, message: value.bytes()?, fields: fields.message(value)? };
        f(&record).map_err(|e| e.in_record(|| format!("{name} {index}")).at(offset))?;
        index += 1;
    }
}

/// Checks that a string exists. `name` describes the reference in errors.
#[inline(always)]
fn check_string(index: u32, n_strings: u64, name: &str) -> Result<StringId> {
    if u64::from(index) < n_strings { Ok(StringId(index)) } else { Err(string_error(index, n_strings, name)) }
}

#[cold]
#[inline(never)]
fn string_error(index: u32, n_strings: u64, name: &str) -> Error {
    let index = if index == NONE { "that is negative or huge".to_owned() } else { index.to_string() };
    Error::malformed(format!("{name} is string {index}, but there are {n_strings} strings"))
}

/// Returns the offset of each string's length prefix.
fn strings(data: &[u8], table: &WireTable) -> Result<Vec<u32>> {
    let mut strings = Vec::with_capacity(table.count);
    for_each_record(data, &table.part, STRING, "string", |r| {
        if r.index == 0 && !r.message.is_empty() {
            return Err(Error::malformed("the first string must be empty"));
        }
        // `Profile::string` needs the offset of the length prefix, which follows the key.
        let key = varint(&data[r.offset..]).map_or(0, |(_, n)| n);
        strings.push((r.offset + key) as u32);
        Ok(())
    })?;
    if strings.is_empty() {
        return Err(Error::malformed("there is no string table; is the profile truncated?").at(data.len()));
    }
    Ok(strings)
}

fn sample_types(data: &[u8], table: &WireTable, n_strings: u64) -> Result<Vec<ValueType>> {
    let mut types = Vec::with_capacity(table.count);
    for_each_record(data, &table.part, SAMPLE_TYPE, "sample type", |r| {
        let t = value_type(r.fields.clone())?;
        check_string(t.kind.0, n_strings, "its type")?;
        check_string(t.unit.0, n_strings, "its unit")?;
        types.push(t);
        Ok(())
    })?;
    Ok(types)
}

fn check_header(header: &Header, n_strings: u64) -> Result<()> {
    let check = |index, name: &str| check_string(index, n_strings, name).map_err(|e| e.in_record(|| "profile".into()));
    check(header.drop_frames.0, "drop_frames")?;
    check(header.keep_frames.0, "keep_frames")?;
    check(header.default_sample_type.0, "the default sample type")?;
    check(header.doc_url.0, "the documentation URL")?;
    if let Some(t) = header.period_type {
        check(t.kind.0, "the period's type")?;
        check(t.unit.0, "the period's unit")?;
    }
    header.comments.iter().try_for_each(|c| check(c.0, "a comment").map(|_| ()))
}

/// Returns the error for an invalid id in a table, with the name and offset of the record.
fn id_error(data: &[u8], table: &WireTable, field: u64, name: &str, (index, error): (usize, Error)) -> Error {
    let mut error = Some(error);
    let result = for_each_record(data, &table.part, field, name, |r| match error.take_if(|_| r.index == index) {
        Some(e) => Err(e),
        None => Ok(()),
    });
    result.err().or(error).unwrap_or_else(|| Error::malformed(format!("{name} {index} has an invalid id")))
}

fn mappings(data: &[u8], table: &WireTable, n_strings: u64) -> Result<(Vec<Mapping>, Ids)> {
    let mut ids = Vec::with_capacity(table.count);
    let mut mappings = Vec::with_capacity(table.count);
    for_each_record(data, &table.part, MAPPING, "mapping", |r| {
        let (mut id, mut start, mut limit, mut offset, mut file, mut build_id, mut flags) = (0, 0, 0, 0, 0, 0, 0);
        let mut fields = r.fields.clone();
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => id = value.varint()?,
                2 => start = value.varint()?,
                3 => limit = value.varint()?,
                4 => offset = value.varint()?,
                5 => file = string_index(value)?,
                6 => build_id = string_index(value)?,
                7..=10 => {
                    let bit = 1u8 << (field - 7);
                    flags = if value.varint()? != 0 { flags | bit } else { flags & !bit };
                }
                _ => {}
            }
        }
        let file = check_string(file, n_strings, "its file name")?;
        let build_id = check_string(build_id, n_strings, "its build id")?;
        ids.push(id);
        mappings.push(Mapping { start, limit, offset, file, build_id, flags });
        Ok(())
    })?;
    let ids = Ids::new(&ids, "mapping").map_err(|e| id_error(data, table, MAPPING, "mapping", e))?;
    Ok((mappings, ids))
}

fn functions(data: &[u8], table: &WireTable, n_strings: u64) -> Result<(Functions, Ids)> {
    let n = table.count;
    let mut ids = Vec::with_capacity(n);
    let mut functions = Functions {
        name: Vec::with_capacity(n),
        system_name: Vec::with_capacity(n),
        file: Vec::with_capacity(n),
        start_line: Vec::with_capacity(n),
    };
    for_each_record(data, &table.part, FUNCTION, "function", |r| {
        let [id, name, system_name, file, start_line] = r.fields.clone().numbers()?;
        functions.name.push(check_string(index_of_string(name), n_strings, "its name")?);
        functions.system_name.push(check_string(index_of_string(system_name), n_strings, "its system name")?);
        functions.file.push(check_string(index_of_string(file), n_strings, "its file name")?);
        functions.start_line.push(start_line as i64);
        ids.push(id);
        Ok(())
    })?;
    let ids = Ids::new(&ids, "function").map_err(|e| id_error(data, table, FUNCTION, "function", e))?;
    Ok((functions, ids))
}

fn locations(data: &[u8], table: &WireTable, mapping_ids: &Ids, function_ids: &Ids) -> Result<(Locations, Ids)> {
    let n = table.count;
    let mut ids = Vec::with_capacity(n);
    let mut locations = Locations {
        mapping: Vec::with_capacity(n),
        address: Vec::with_capacity(n),
        folded: Vec::with_capacity(n),
        first_line: Vec::with_capacity(n + 1),
        line_function: Vec::with_capacity(n),
        line_number: Vec::with_capacity(n),
        line_column: Vec::with_capacity(n),
    };
    locations.first_line.push(0);
    for_each_record(data, &table.part, LOCATION, "location", |r| {
        let mut fields = r.fields.clone();
        let ([mut id, mut mapping, mut address], mut folded) = (fields.leading(), false);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => id = value.varint()?,
                2 => mapping = value.varint()?,
                3 => address = value.varint()?,
                4 => line(fields.message(value)?, function_ids, &mut locations)?,
                5 => folded = value.varint()? != 0,
                _ => {}
            }
        }
        ids.push(id);
        // A mapping id of 0 or an unknown mapping id marks a location outside all mappings, as in pprof.
        locations.mapping.push(mapping_ids.get(mapping).unwrap_or(NONE));
        locations.address.push(address);
        locations.folded.push(folded);
        locations.first_line.push(locations.line_function.len() as u32);
        Ok(())
    })?;
    let ids = Ids::new(&ids, "location").map_err(|e| id_error(data, table, LOCATION, "location", e))?;
    Ok((locations, ids))
}

/// Appends a line of the current location.
fn line(fields: Fields<'_>, function_ids: &Ids, locations: &mut Locations) -> Result<()> {
    let offset = fields.offset();
    let [function, number, column] = fields.numbers()?;
    let Some(index) = function_ids.get(function) else {
        return Err(
            Error::malformed(format!("a line refers to function id {function}, which does not exist")).at(offset)
        );
    };
    locations.line_function.push(index);
    locations.line_number.push(number as i64);
    locations.line_column.push(column as i64);
    Ok(())
}

/// The results of pass 3 for one part of the samples.
struct CheckedSamples {
    /// For each column: the sum of its values, and the sum of their absolute values.
    totals: Vec<(i64, u64)>,
    has_labels: bool,
    is_diff: bool,
    all_usual: bool,
    /// The number of frames in the part's samples; 0 if `check_part` did not have to count them.
    frames: u64,
}

/// Runs pass 3, in parallel if there are many samples.
fn check_samples(profile: &mut Profile) -> Result<()> {
    let table = WireTable { count: profile.n_samples, part: profile.samples.clone() };
    let n_types = profile.sample_types.len();
    if n_types == 0 && table.count > 0 {
        return Err(Error::malformed("there are samples, but no sample types that describe them").at(table.part.start));
    }
    let parts = split(&profile.data, table.part.clone(), table.count);
    let max_frames = max_frames(profile);
    let check = |part: &Range<usize>| check_part(profile, part, max_frames.is_some());
    let checked: Result<Vec<CheckedSamples>> = match parts.len() {
        1 => check(&table.part).map(|all| vec![all]),
        _ => parallel::map(&parts, check).into_iter().collect(),
    };
    // After an error, check again from the start: a part does not know the index of its first record.
    let checked = checked.or_else(|_| check(&table.part).map(|all| vec![all]))?;
    let frames: u64 = checked.iter().map(|c| c.frames).sum();
    if let Some(max) = max_frames.filter(|&max| frames > max) {
        let detail = format!(
            "its samples have {frames} frames, because locations with many lines are repeated; the limit for a profile of this size is {max} frames"
        );
        return Err(Error::new(ErrorKind::Limit, detail));
    }
    let mut totals = vec![(0i64, 0u64); n_types];
    for (sum, part) in checked.iter().flat_map(|c| c.totals.iter().enumerate()) {
        // If a sum wraps around, its magnitude does not fit int64, which is an error below.
        let total = &mut totals[sum];
        *total = (total.0.wrapping_add(part.0), total.1.saturating_add(part.1));
    }
    for (t, (sum, magnitude)) in profile.sample_types.iter().zip(totals) {
        let Ok(magnitude) = i64::try_from(magnitude) else {
            let kind = profile.text(t.kind);
            return Err(Error::malformed(format!(
                "the values of sample type {kind} add up to more than an int64 holds"
            )));
        };
        profile.totals.push(Total { sum, magnitude });
    }
    profile.has_labels = checked.iter().any(|c| c.has_labels);
    profile.is_diff = checked.iter().any(|c| c.is_diff);
    profile.usual_samples = checked.iter().all(|c| c.all_usual);
    Ok(())
}

/// Returns the maximum number of frames that the profile's samples may have, or `None` if they cannot exceed it.
///
/// A location id of a few bytes represents all lines of the location. Without a limit, a small file could contain any
/// number of frames. Each view would take unbounded time, and tables of stacks would take unbounded memory.
fn max_frames(profile: &Profile) -> Option<u64> {
    let max_lines = profile.locations.first_line.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    let max = 2 * profile.data.len() as u64 + (4 << 20);
    // A location takes at least one byte in a sample, which bounds the number of frames without counting them.
    (profile.samples.len() as u64 * u64::from(max_lines) > max).then_some(max)
}

/// Checks the samples in a part of the buffer. Counts their frames only if `count_frames` is true.
fn check_part(profile: &Profile, part: &Range<usize>, count_frames: bool) -> Result<CheckedSamples> {
    let (n_types, n_strings) = (profile.sample_types.len(), profile.strings.len() as u64);
    let mut totals = vec![(0i64, 0u64); n_types];
    let mut known_labels = KnownLabels::default();
    let (mut has_labels, mut is_diff, mut all_usual, mut frames) = (false, false, true, 0);
    let first_line = &profile.locations.first_line;
    let exists = |id: u64, frames: &mut u64| match profile.location_ids.get(id) {
        Some(l) if count_frames => {
            *frames += u64::from(first_line[l as usize + 1] - first_line[l as usize]);
            true
        }
        index => index.is_some(),
    };
    for_each_record(&profile.data, part, SAMPLE, "sample", |r| {
        let mut n_values = 0;
        let mut add = |n_values: &mut usize, v: u64| {
            if let Some((sum, magnitude)) = totals.get_mut(*n_values) {
                // If a sum wraps around, its magnitude does not fit int64, which `check_samples` reports.
                *sum = sum.wrapping_add(v as i64);
                *magnitude = magnitude.saturating_add((v as i64).unsigned_abs());
            }
            *n_values += 1;
        };
        let frames_before = frames;
        let usual = SampleParts::usual(r.message).filter(|parts| match profile.location_ids {
            Ids::Sequential(n) if !count_frames => parts.locations.are_within(n),
            _ => parts.locations.all(|id| exists(id, &mut frames)),
        });
        let labels = match &usual {
            Some(parts) if parts.labels.is_empty() => Some((false, false)),
            Some(parts) => {
                let origin = r.fields.offset() + r.message.len() - parts.labels.len();
                let is_base = check_labels(profile, Fields::new(parts.labels, origin), n_strings, &mut known_labels)?;
                is_base.map(|is_base| (true, is_base))
            }
            None => None,
        };
        // Values come last, because checking them adds them to the totals. If another part of the sample is unusual,
        // the loop below reads the sample again, and must not add its values twice.
        let values = usual.filter(|_| labels.is_some()).filter(|parts| {
            parts.values.all_values(|v| {
                add(&mut n_values, v);
                true
            })
        });
        if let (Some(_), Some((labelled, is_base))) = (values, labels) {
            has_labels |= labelled;
            is_diff |= is_base;
        } else {
            // The sample has an unusual form or an error. Reading it field by field finds the error and its offset.
            (all_usual, n_values, frames) = (false, 0, frames_before);
            let mut fields = r.fields.clone();
            loop {
                let offset = fields.offset();
                let Some((field, value)) = fields.next()? else { break };
                match field {
                    1 => for_each_int(value, |id| match exists(id, &mut frames) {
                        true => Ok(()),
                        false => Err(Error::malformed(format!("it refers to location id {id}, which does not exist"))),
                    })
                    .map_err(|e| e.at(offset))?,
                    2 => for_each_int(value, |v| {
                        add(&mut n_values, v);
                        Ok(())
                    })
                    .map_err(|e| e.at(offset))?,
                    3 => {
                        let label = fields.message(value).and_then(|fields| check_label(profile, fields, n_strings));
                        (has_labels, is_diff) = (true, is_diff | label.map_err(|e| e.at(offset))?);
                    }
                    _ => {}
                }
            }
        }
        if n_values != n_types {
            return Err(Error::malformed(format!("it has {n_values} values, but there are {n_types} sample types")));
        }
        Ok(())
    })?;
    Ok(CheckedSamples { totals, has_labels, is_diff, all_usual, frames })
}

/// Checks fields that should all be labels. Returns whether a label marks the base of a written diff, or `None` if a
/// field is not a label.
fn check_labels(
    profile: &Profile,
    mut labels: Fields<'_>,
    n_strings: u64,
    accepted: &mut KnownLabels,
) -> Result<Option<bool>> {
    let mut is_base = false;
    loop {
        let offset = labels.offset();
        let Some((field, value)) = labels.next()? else { return Ok(Some(is_base)) };
        if field != 3 {
            return Ok(None);
        }
        let message = value.bytes().map_err(|e| e.at(offset))?;
        let (slot, content) = accepted.find(message);
        if accepted.0[slot] != content {
            let marks_base = check_label(profile, labels.message(value)?, n_strings).map_err(|e| e.at(offset))?;
            is_base |= marks_base;
            if !marks_base && content != 0 {
                accepted.0[slot] = content;
            }
        }
    }
}

/// A cache of short labels, by their bytes, that are valid and do not mark the base. It pays off because most samples
/// repeat the labels of earlier samples.
struct KnownLabels([u64; 256]);

impl Default for KnownLabels {
    fn default() -> KnownLabels {
        KnownLabels([u64::MAX; 256])
    }
}

impl KnownLabels {
    /// Returns the cache slot of a label, and its bytes and length as one number. The number is 0 if the label is empty
    /// or too long for the cache.
    fn find(&self, message: &[u8]) -> (usize, u64) {
        if message.len() >= 8 {
            return (0, 0);
        }
        let content = word(message, 0) << 8 | message.len() as u64;
        ((content.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize, content)
    }
}

/// Checks a label. Returns true if it marks the base of a written diff.
fn check_label(profile: &Profile, mut fields: Fields<'_>, n_strings: u64) -> Result<bool> {
    let (mut key, mut text, mut unit) = (0, 0, 0);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => key = string_index(value)?,
            2 => text = string_index(value)?,
            3 => drop(value.int()?),
            4 => unit = string_index(value)?,
            _ => {}
        }
    }
    let key = check_string(key, n_strings, "a label's key")?;
    let text = check_string(text, n_strings, "a label's value")?;
    check_string(unit, n_strings, "a label's unit")?;
    Ok(text != StringId::EMPTY && profile.string(key) == BASE_LABEL.0 && profile.string(text) == BASE_LABEL.1)
}
