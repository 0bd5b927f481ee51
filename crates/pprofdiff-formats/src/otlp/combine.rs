//! Combines the messages of a file, in protobuf or JSON, into one protobuf message. The collector's file exporter
//! writes such files:
//!
//! - JSON: one message, or several after each other, as in a file of lines;
//! - messages after a length prefix of four bytes, big-endian. Each message is protobuf or JSON, and may be compressed
//!   (the exporter's option `compression`).
//!
//! Each message has its own dictionary. Its tables are appended to the combined tables, and all indexes are moved by
//! the size of the combined tables before it. The tables of `schema.rs` drive this in the same way for JSON and
//! protobuf. Records that occur in several messages are not deduplicated here, because later stages compare records by
//! content.
//!
//! The OTLP specification defines the JSON encoding: names are in lowerCamelCase, 64-bit numbers may be strings, and
//! unknown names are ignored. A name that occurs twice in an object is an error
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).

#[cfg(test)]
mod tests;

use super::dictionary::TABLES;
use super::recognise::{is_json, length_of};
use super::schema::{ANY_VALUE, DICTIONARY, FieldKind, FieldSchema, PROFILE, PROFILE_1_8, RESOURCE_PROFILES};
use super::{BEFORE, CURRENT, Numbering, OtlpMessage, fixed64};
use crate::kit::base64;
use crate::kit::json;
use crate::kit::json::Json;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::shared::wire::{Fields, Value, for_each_int, put};
use pprofdiff_profile::shared::{inflate_slice, is_packed};
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The maximum depth of nested messages. Deeper values are left out; they would not be displayed anyway.
const MAX_DEPTH: usize = 40;

/// Returns the combined message of a file that is JSON or has several messages. Returns `None` if the file is a single
/// protobuf message.
///
/// # Errors
/// A message is invalid (the error has its number), or the uncompressed messages exceed `limit` bytes.
pub(super) fn combine(data: &[u8], named: Option<Numbering>, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut combined = Combined::default();
    let mut number = 0;
    if is_json(data) {
        let mut json = Json::new(data);
        while json.end().is_err() {
            combined.add_json(&mut json).map_err(|e| {
                let offset = e.offset().map(|offset| offset as usize);
                e.of_part(Some(&format!("message {number}")), offset)
            })?;
            number += 1;
        }
        return Ok(Some(combined.finish()));
    }
    if length_of(data).is_none() {
        return Ok(None);
    }
    let (mut rest, mut size) = (data, 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let begin = data.len() - rest.len();
        let mut add_next = || {
            let length = u32::from_be_bytes(*length) as usize;
            let Some((content, after)) = after.split_at_checked(length) else {
                let detail = format!("expected {length} bytes, but only {} are left: it was cut off", after.len());
                return Err(Error::malformed(detail));
            };
            rest = after;
            let unpacked = if is_packed(content) { Some(inflate_slice(content, limit)?) } else { None };
            let content = unpacked.as_deref().unwrap_or(content);
            size += content.len() as u64;
            if size > limit {
                return Err(Error::new(
                    ErrorKind::Limit,
                    format!("the messages exceed the limit of {limit} bytes in total"),
                ));
            }
            match is_json(content) {
                true => {
                    let mut json = Json::new(content);
                    combined.add_json(&mut json)?;
                    json.end()
                }
                false => combined.add_message(content, named),
            }
        };
        add_next().map_err(|e| e.of_part(Some(&format!("message {number}")), Some(begin)))?;
        number += 1;
    }
    match rest {
        [] => Ok(Some(combined.finish())),
        _ => Err(Error::malformed("it ends inside the length of a message: it was cut off").at(data.len())),
    }
}

/// The combined records of all messages so far. Entry 0 of each table, which means "none", is added at the end.
#[derive(Default)]
struct Combined {
    resources: Vec<u8>,
    tables: [Vec<u8>; TABLES.len()],
    /// The number of records in each table, without entry 0.
    counts: [u64; TABLES.len()],
    pace: Checkpointer,
}

impl Combined {
    fn add_message(&mut self, data: &[u8], named: Option<Numbering>) -> Result<()> {
        let message = OtlpMessage::scan(data)?;
        let numbering = if named.is_some() { named } else { message.numbering()? };
        let counts = message.tables.each_ref().map(|table| table.len() as u64);
        drop(message);
        let numbering = numbering.unwrap_or(CURRENT);
        let mut moving = Moving { data, numbering, counts, before: self.counts, pace: &mut self.pace };
        let mut fields = Fields::new(data, 0);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => nested(&mut self.resources, 1, |out| {
                    moving.message(fields.message(value)?, &RESOURCE_PROFILES, 0, out)
                })?,
                2 => {
                    let mut places = [0; TABLES.len()];
                    let mut dictionary = fields.message(value)?;
                    loop {
                        let start = dictionary.offset();
                        let Some((number, value)) = dictionary.next()? else { break };
                        let Some(field) = DICTIONARY.iter().find(|field| u64::from(field.number) == number) else {
                            continue;
                        };
                        // Entry 0 means "none", and is skipped.
                        let place = &mut places[number as usize];
                        if std::mem::replace(place, 1) == 1 {
                            let end = dictionary.offset();
                            moving.field(
                                field,
                                value,
                                &dictionary,
                                start..end,
                                0,
                                &mut self.tables[number as usize],
                            )?;
                        }
                    }
                }
                _ => {}
            }
        }
        self.count(counts);
        Ok(())
    }

    fn add_json(&mut self, json: &mut Json<'_>) -> Result<()> {
        let [resources, dictionary] = json.members(["resourceProfiles", "dictionary"])?;
        let mut counts = [0; TABLES.len()];
        if let Some(mut dictionary) = dictionary {
            let mut object = dictionary.object()?;
            while let Some(field) = next_field(&mut dictionary, &mut object, &DICTIONARY)? {
                let mut array = dictionary.array()?;
                while dictionary.element(&mut array)? {
                    dictionary.skip()?;
                    counts[field.number as usize] += 1;
                }
            }
        }
        let mut moving = Moving { data: &[], numbering: CURRENT, counts, before: self.counts, pace: &mut self.pace };
        if let Some(mut dictionary) = dictionary {
            let mut object = dictionary.object()?;
            while let Some(field) = next_field(&mut dictionary, &mut object, &DICTIONARY)? {
                let table = &mut self.tables[field.number as usize];
                let (mut array, mut place) = (dictionary.array()?, 0);
                while dictionary.element(&mut array)? {
                    let begin = dictionary.offset();
                    match place {
                        0 => dictionary.skip()?,
                        _ => moving.json(field, &mut dictionary, 0, table).map_err(|e| {
                            e.in_record(|| format!("{} {place}", TABLES[field.number as usize])).at(begin)
                        })?,
                    }
                    place += 1;
                }
            }
        }
        if let Some(mut resources) = resources {
            let mut array = resources.array()?;
            while resources.element(&mut array)? {
                nested(&mut self.resources, 1, |out| moving.object(&mut resources, &RESOURCE_PROFILES, 0, out))?;
            }
        }
        self.count(counts);
        Ok(())
    }

    fn count(&mut self, counts: [u64; TABLES.len()]) {
        for (count, added) in self.counts.iter_mut().zip(counts) {
            *count += added.saturating_sub(1);
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut dictionary = Vec::new();
        for (number, table) in (0u32..).zip(self.tables) {
            if DICTIONARY.iter().any(|field| field.number == number) {
                put::bytes(&mut dictionary, number, b"");
                dictionary.extend_from_slice(&table);
            }
        }
        let mut message = self.resources;
        put::bytes(&mut message, 2, &dictionary);
        message
    }
}

/// Reads the name of the next known field with a value other than `null`, and stops before its value. A field may use
/// either of its two names, but only once, as in protobuf's JSON mapping.
fn next_field(
    json: &mut Json<'_>,
    object: &mut json::JsonScope,
    schema: &'static [FieldSchema],
) -> Result<Option<&'static FieldSchema>> {
    while let Some((offset, key)) = json.key_with_place(object)? {
        let key = key.bytes();
        let is_named = |field: &FieldSchema| [field.name, field.old_name].iter().any(|name| *name.as_bytes() == *key);
        let Some(number) = schema.iter().position(is_named) else {
            json.skip()?;
            continue;
        };
        object.mark(number, schema[number].name).map_err(|e| e.at(offset))?;
        if !json.null() {
            return Ok(Some(&schema[number]));
        }
    }
    Ok(None)
}

/// Writes a field with the output of `write`, and inserts its length afterwards.
fn nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    put::varint(out, u64::from(number << 3 | 2));
    let begin = out.len();
    write(out)?;
    let mut length = Vec::with_capacity(10);
    put::varint(&mut length, (out.len() - begin) as u64);
    out.splice(begin..begin, length);
    Ok(())
}

fn put_int(out: &mut Vec<u8>, number: u32, value: u64) {
    put::varint(out, u64::from(number << 3));
    put::varint(out, value);
}

fn put_fixed(out: &mut Vec<u8>, number: u32, value: u64) {
    put::varint(out, u64::from(number << 3 | 1));
    out.extend_from_slice(&value.to_le_bytes());
}

/// A message that is being added to the combined message.
struct Moving<'a> {
    /// The message in protobuf. Empty for JSON.
    data: &'a [u8],
    numbering: Numbering,
    /// The number of records in each of its tables, including entry 0.
    counts: [u64; TABLES.len()],
    /// The number of records in each combined table before this message, without entry 0.
    before: [u64; TABLES.len()],
    pace: &'a mut Checkpointer,
}

impl Moving<'_> {
    /// Returns the index that a record of this message has in the combined table. Index 0, "none", stays 0.
    ///
    /// # Errors
    /// The message has no such record.
    fn index(&self, table: usize, index: u64) -> Result<u64> {
        match index {
            0 => Ok(0),
            index if index < self.counts[table] => Ok(self.before[table] + index),
            index => {
                let (table_name, n) = (TABLES[table], self.counts[table]);
                Err(Error::malformed(format!("it refers to {table_name} {}, but there are {n}", index as i64)))
            }
        }
    }

    /// Writes the fields of a message that have a row in `schema`, with their current numbers.
    fn message(
        &mut self,
        mut fields: Fields<'_>,
        schema: &[FieldSchema],
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.pace.step(1);
        loop {
            let start = fields.offset();
            let Some((number, value)) = fields.next()? else { return Ok(()) };
            let number_of =
                |field: &FieldSchema| if self.numbering == BEFORE { field.old_number } else { field.number };
            if let Some(field) = schema.iter().find(|field| u64::from(number_of(field)) == number) {
                let end = fields.offset();
                self.field(field, value, &fields, start..end, depth, out)?;
            }
        }
    }

    /// Writes the value of a field. `bytes` is the range of the field in the message. Messages below [`MAX_DEPTH`] are
    /// left out.
    fn field(
        &mut self,
        field: &FieldSchema,
        value: Value<'_>,
        fields: &Fields<'_>,
        bytes: std::ops::Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let number = field.number;
        match field.kind {
            FieldKind::Index(table) => for_each_int(value, |index| {
                put_int(out, number, self.index(table, index)?);
                Ok(())
            })?,
            FieldKind::Int | FieldKind::Flag => for_each_int(value, |v| {
                put_int(out, number, v);
                Ok(())
            })?,
            FieldKind::Fixed | FieldKind::Double => match (value, fixed64(self.data, bytes.start, bytes.end)) {
                (Value::Bytes(packed), _) if packed.len() % 8 == 0 => put::bytes(out, number, packed),
                (_, Some(v)) => put_fixed(out, number, v),
                _ => return Err(Error::malformed("expected a number of 64 bits").at(bytes.start)),
            },
            FieldKind::Text | FieldKind::Bytes => put::bytes(out, number, value.bytes()?),
            FieldKind::Message(_) | FieldKind::Profile if depth == MAX_DEPTH => {}
            FieldKind::Message(schema) => {
                let content = fields.message(value)?;
                nested(out, number, |out| self.message(content, schema, depth + 1, out))?;
            }
            FieldKind::Profile => {
                let content = fields.message(value)?;
                let is_1_8 = self.numbering == BEFORE && is_1_8(content.clone())?;
                let schema = if is_1_8 { &PROFILE_1_8 } else { &PROFILE };
                nested(out, number, |out| self.message(content, schema, depth + 1, out))?;
            }
        }
        Ok(())
    }

    /// Writes the members of a JSON object that have a row in `schema`.
    ///
    /// # Errors
    /// The object is malformed, or an attribute's value has several types.
    fn object(
        &mut self,
        json: &mut Json<'_>,
        schema: &'static [FieldSchema],
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.pace.step(1);
        let (begin, mut n_fields) = (json.offset(), 0);
        let mut object = json.object()?;
        while let Some(field) = next_field(json, &mut object, schema)? {
            n_fields += 1;
            if json.kind()? == json::JsonKind::Array {
                let mut array = json.array()?;
                while json.element(&mut array)? {
                    self.json(field, json, depth, out)?;
                }
            } else {
                self.json(field, json, depth, out)?;
            }
        }
        if n_fields > 1 && std::ptr::eq(schema, &raw const ANY_VALUE) {
            return Err(Error::malformed("a value has several types; keep only one").at(begin));
        }
        Ok(())
    }

    /// Writes a JSON value as a field. Messages below [`MAX_DEPTH`] are skipped.
    fn json(&mut self, field: &FieldSchema, json: &mut Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<()> {
        let number = field.number;
        match field.kind {
            FieldKind::Index(table) => {
                let begin = json.offset();
                let index = integer(json)?;
                put_int(out, number, self.index(table, index).map_err(|e| e.at(begin))?);
            }
            FieldKind::Int => put_int(out, number, integer(json)?),
            FieldKind::Flag => put_int(out, number, u64::from(json.flag()?)),
            FieldKind::Fixed => put_fixed(out, number, integer(json)?),
            FieldKind::Double => put_fixed(out, number, double(json)?.to_bits()),
            FieldKind::Text => put::bytes(out, number, &json.string()?.bytes()),
            FieldKind::Bytes => {
                let begin = json.offset();
                let bytes = base64::decode(&json.string()?.bytes());
                put::bytes(
                    out,
                    number,
                    &bytes.ok_or_else(|| Error::malformed("these bytes are not in base64").at(begin))?,
                );
            }
            FieldKind::Message(_) | FieldKind::Profile if depth == MAX_DEPTH => json.skip()?,
            FieldKind::Message(schema) => nested(out, number, |out| self.object(json, schema, depth + 1, out))?,
            FieldKind::Profile => nested(out, number, |out| self.object(json, &PROFILE, depth + 1, out))?,
        }
        Ok(())
    }
}

/// Returns true for a profile of protocol 1.8. Its field numbers after 6 are one higher, which shows in the types of
/// fields 8, 9 and 12. Returns false if the profile has none of these fields.
pub(super) fn is_1_8(mut profile: Fields<'_>) -> Result<bool> {
    while let Some((field, value)) = profile.next()? {
        if let (8 | 12, Value::Bytes(_)) | (9, Value::Varint(_)) = (field, value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a whole number, or a string with a whole number. Negative numbers are encoded as in protobuf.
fn integer(json: &mut Json<'_>) -> Result<u64> {
    let begin = json.offset();
    if json.kind()? == json::JsonKind::Number {
        let number = json.number()?;
        return match parse(number.text()) {
            Some(number) => Ok(number),
            None => Ok(number.whole()? as u64),
        };
    }
    let text = json.string()?.bytes();
    parse(&text).ok_or_else(|| Error::malformed("expected a whole number").at(begin))
}

fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(|number| number as u64))
}

/// Reads a number, or a string with a number, such as `NaN`, `Infinity` and `-Infinity`.
fn double(json: &mut Json<'_>) -> Result<f64> {
    let begin = json.offset();
    let text = match json.kind()? {
        json::JsonKind::Number => json.number()?.text().to_vec(),
        _ => json.string()?.bytes().into_owned(),
    };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::malformed("expected a number").at(begin))
}
