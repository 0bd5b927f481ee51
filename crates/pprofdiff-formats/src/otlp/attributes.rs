//! OTLP attributes: converts them to labels, and interprets attributes of mappings, locations and profiles.

use super::dictionary::{ATTRIBUTES, STRINGS};
use super::{NOTHING, OtlpMessage, each_number, fixed64};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::Tables;
use pprofdiff_profile::shared::wire::{Fields, Value, for_each_int};
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The role of an attribute, in addition to being a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum AttributeRole {
    /// No other role.
    Label,
    /// A flag of a mapping: the number of the bit that it sets in the mapping's flags.
    Flag(u8),
    /// A build id of a mapping, with its rank. If a mapping has several, the build id of the lowest rank is used.
    BuildId(u8),
    /// The flag `is_folded` of a location.
    Folded,
    /// A comment of a profile.
    Comment,
    /// The pattern `drop_frames` of a profile.
    DropFrames,
    /// The pattern `keep_frames` of a profile.
    KeepFrames,
    /// The `doc_url` of a profile.
    DocUrl,
}

impl AttributeRole {
    /// Returns true if the attribute describes a whole profile.
    pub(super) fn is_of_profiles(self) -> bool {
        matches!(
            self,
            AttributeRole::Comment | AttributeRole::DropFrames | AttributeRole::KeepFrames | AttributeRole::DocUrl
        )
    }

    fn from_key(key: &[u8]) -> AttributeRole {
        match key {
            b"process.executable.build_id.gnu" => AttributeRole::BuildId(0),
            b"process.executable.build_id.go" => AttributeRole::BuildId(1),
            b"process.executable.build_id.htlhash" => AttributeRole::BuildId(2),
            b"pprof.mapping.has_functions" => AttributeRole::Flag(0),
            b"pprof.mapping.has_filenames" => AttributeRole::Flag(1),
            b"pprof.mapping.has_line_numbers" => AttributeRole::Flag(2),
            b"pprof.mapping.has_inline_frames" => AttributeRole::Flag(3),
            b"pprof.location.is_folded" => AttributeRole::Folded,
            b"pprof.profile.drop_frames" => AttributeRole::DropFrames,
            b"pprof.profile.keep_frames" => AttributeRole::KeepFrames,
            b"pprof.profile.doc_url" => AttributeRole::DocUrl,
            // The collector adds a number to the keys of comments: `pprof.profile.comment.0`.
            _ => match key.strip_prefix(b"pprof.profile.comment") {
                Some([] | [b'.', ..]) => AttributeRole::Comment,
                _ => AttributeRole::Label,
            },
        }
    }
}

impl<'a> OtlpMessage<'a> {
    /// Reads an attribute of the dictionary: key, value and unit. The key and the unit are strings of the dictionary.
    /// Returns its index in `attributes`, or 0 for an attribute without a key or value, which is ignored.
    pub(super) fn attribute(&mut self, mut fields: Fields<'a>) -> Result<u32> {
        let (mut key, mut unit, mut content) = (0, 0, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => key = value.varint()?,
                2 => content = Some(fields.message(value)?),
                3 => unit = value.varint()?,
                _ => {}
            }
        }
        let (key, unit) = (self.canonical(key)?, self.canonical(unit)?);
        let label = self.label(key, content, unit)?;
        let role = AttributeRole::from_key(self.string(key));
        Ok(if label == NOTHING { 0 } else { self.attributes.number((label, role)) })
    }

    /// Reads an attribute of a resource, whose key is a text or a string of the dictionary. Returns [`NOTHING`] for an
    /// attribute without a key or value.
    pub(super) fn key_value(&mut self, mut fields: Fields<'a>) -> Result<Label> {
        let (mut key, mut content) = (StringId::EMPTY, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => key = self.text(value.bytes()?),
                2 => content = Some(fields.message(value)?),
                3 if value.varint()? != 0 => key = self.canonical(value.varint()?)?,
                _ => {}
            }
        }
        self.label(key, content, StringId::EMPTY)
    }

    fn label(&mut self, key: StringId, content: Option<Fields<'a>>, unit: StringId) -> Result<Label> {
        let value = match content {
            Some(content) => self.value(content, unit)?,
            None => NOTHING.value,
        };
        // profile.proto cannot distinguish these values from a label without a value.
        let is_nothing = [NOTHING.value, LabelValue::Number(0, StringId::EMPTY)].contains(&value);
        Ok(if is_nothing || key == StringId::EMPTY { NOTHING } else { Label { key, value } })
    }

    /// Converts a value to the value of a label. Integers stay numbers with their unit, and all other values become
    /// text.
    fn value(&mut self, content: Fields<'a>, unit: StringId) -> Result<LabelValue> {
        let Some(last) = last_value(content)? else { return Ok(NOTHING.value) };
        Ok(match last.field {
            1 => LabelValue::Text(self.text(last.value.bytes()?)),
            3 => LabelValue::Number(last.value.int()?, unit),
            8 => LabelValue::Text(self.canonical(last.value.varint()?)?),
            _ => {
                let mut text = String::new();
                self.show(&last, &mut text, 0)?;
                self.room = self.room.saturating_sub(text.len());
                LabelValue::Text(self.text(text.as_bytes()))
            }
        })
    }

    /// Writes a value as text. Deeply nested values are shortened to `...`, which also bounds the recursion.
    fn show(&self, any: &AnyValue<'a>, out: &mut String, depth: u32) -> Result<()> {
        const DEPTH: u32 = 8;
        let value = any.value;
        match any.field {
            1 => self.quote(value.bytes()?, out)?,
            8 => self.quote(self.bytes(STRINGS, self.string_index(value.varint()?)?.0).0, out)?,
            2 => out.push_str(if value.varint()? != 0 { "true" } else { "false" }),
            3 => out.push_str(&value.int()?.to_string()),
            4 => match fixed64(self.data, any.start, any.fields.offset()) {
                Some(bits) => out.push_str(&format!("{:?}", f64::from_bits(bits))),
                None => return Err(Error::malformed("a fraction has the wrong wire type")),
            },
            7 => value.bytes()?.iter().for_each(|byte| out.push_str(&format!("{byte:02x}"))),
            _ if depth == DEPTH => {
                value.bytes()?;
                out.push_str("...");
            }
            _ => {
                let (begin, end) = if any.field == 5 { ('[', ']') } else { ('{', '}') };
                out.push(begin);
                let (mut items, mut separator) = (any.fields.message(value)?, "");
                while let Some((field, value)) = items.next()? {
                    if field != 1 {
                        continue;
                    }
                    out.push_str(std::mem::replace(&mut separator, ","));
                    let item = items.message(value)?;
                    let item = if any.field == 5 { Some(item) } else { self.show_key(item, out)? };
                    match item.map_or(Ok(None), last_value)? {
                        Some(last) => self.show(&last, out, depth + 1)?,
                        None => out.push_str("null"),
                    }
                }
                out.push(end);
            }
        }
        Ok(())
    }

    /// Writes the key of a map entry, and returns its value.
    fn show_key(&self, mut entry: Fields<'a>, out: &mut String) -> Result<Option<Fields<'a>>> {
        let (mut key, mut content) = (&b""[..], None);
        while let Some((field, value)) = entry.next()? {
            match field {
                1 => key = value.bytes()?,
                2 => content = Some(entry.message(value)?),
                3 if value.varint()? != 0 => key = self.bytes(STRINGS, self.string_index(value.varint()?)?.0).0,
                _ => {}
            }
        }
        self.quote(key, out)?;
        out.push(':');
        Ok(content)
    }

    /// Writes a text in quotes.
    ///
    /// # Errors
    /// The value would exceed the room for texts that are made from attribute values.
    fn quote(&self, bytes: &[u8], out: &mut String) -> Result<()> {
        if out.len() + bytes.len() > self.room {
            let detail = "the values of attributes are too large when the strings that they refer to are inserted";
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        out.push_str(&format!("{:?}", String::from_utf8_lossy(bytes)));
        Ok(())
    }

    /// Reads a field of attribute indexes, and appends the ids of attributes that have an effect.
    pub(super) fn read_attributes(&self, value: Value<'a>, attributes: &mut Vec<u32>) -> Result<()> {
        for_each_int(value, |v| {
            let index = self.index(ATTRIBUTES, v)?;
            attributes.extend(self.attribute_ids.get(index as usize).filter(|id| **id != 0));
            Ok(())
        })
    }

    /// Calls `f` with the role and the value of each attribute of a record that has an effect.
    pub(super) fn attributes_of(&self, record: Fields<'a>, field: u64, mut f: impl FnMut(AttributeRole, LabelValue)) {
        // The table was validated, so errors cannot occur.
        let _ = each_number(record, field, |v| {
            if let Some(&id) = self.attribute_ids.get(v as usize).filter(|id| **id != 0) {
                let (label, role) = self.attributes.values[id as usize];
                f(role, label.value);
            }
            Ok(())
        });
    }

    /// Returns true for the value `true`, which is a text here.
    pub(super) fn is_true(&self, value: LabelValue) -> bool {
        matches!(value, LabelValue::Text(text) if self.string(text) == b"true")
    }
}

/// A field of an attribute value. A value should have exactly one field.
struct AnyValue<'a> {
    field: u64,
    value: Value<'a>,
    /// The offset of the field.
    start: usize,
    /// The fields after this field.
    fields: Fields<'a>,
}

/// Returns the last field of a value, which is the field that counts. The others are skipped without decoding, because
/// they may be large.
fn last_value(mut fields: Fields<'_>) -> Result<Option<AnyValue<'_>>> {
    let mut last = None;
    loop {
        let start = fields.offset();
        let Some((field, value)) = fields.next()? else { return Ok(last) };
        if (1..=8).contains(&field) {
            last = Some(AnyValue { field, value, start, fields: fields.clone() });
        }
    }
}
