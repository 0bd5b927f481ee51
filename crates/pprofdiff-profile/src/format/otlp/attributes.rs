//! Attributes: the labels that they become, and what else they say of mappings, locations and profiles.

use super::dictionary::{ATTRIBUTES, STRINGS};
use super::{Message, NOTHING, each_number, fixed64};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::wire::{Fields, Value, for_each_int};
use crate::profile::{Label, LabelValue, StringId, Tables};

/// What an attribute is for besides being a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Role {
    Label,
    /// Bit of a mapping's flags.
    Flag(u8),
    /// The lowest is taken.
    BuildId(u8),
    Folded,
    Comment,
    DropFrames,
    KeepFrames,
    DocUrl,
}

impl Role {
    /// True if it is said of a whole profile.
    pub(super) fn is_of_profiles(self) -> bool {
        matches!(self, Role::Comment | Role::DropFrames | Role::KeepFrames | Role::DocUrl)
    }

    fn from_key(key: &[u8]) -> Role {
        match key {
            b"process.executable.build_id.gnu" => Role::BuildId(0),
            b"process.executable.build_id.go" => Role::BuildId(1),
            b"process.executable.build_id.htlhash" => Role::BuildId(2),
            b"pprof.mapping.has_functions" => Role::Flag(0),
            b"pprof.mapping.has_filenames" => Role::Flag(1),
            b"pprof.mapping.has_line_numbers" => Role::Flag(2),
            b"pprof.mapping.has_inline_frames" => Role::Flag(3),
            b"pprof.location.is_folded" => Role::Folded,
            b"pprof.profile.drop_frames" => Role::DropFrames,
            b"pprof.profile.keep_frames" => Role::KeepFrames,
            b"pprof.profile.doc_url" => Role::DocUrl,
            // The collector numbers comments: `pprof.profile.comment.0`.
            _ => match key.strip_prefix(b"pprof.profile.comment") {
                Some([] | [b'.', ..]) => Role::Comment,
                _ => Role::Label,
            },
        }
    }
}

impl<'a> Message<'a> {
    /// An attribute of the dictionary: key, value and unit, where key and unit are strings of the dictionary.
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
        let role = Role::from_key(self.string(key));
        Ok(if label == NOTHING { 0 } else { self.attributes.number((label, role)) })
    }

    /// An attribute that brings its own key.
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
        // profile.proto can't tell these from a label without a value.
        let is_nothing = [NOTHING.value, LabelValue::Number(0, StringId::EMPTY)].contains(&value);
        Ok(if is_nothing || key == StringId::EMPTY { NOTHING } else { Label { key, value } })
    }

    /// A value as a label has it.
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

    /// Writes a value as text. What is nested deeper than people read is left out, which also bounds the recursion.
    fn show(&self, one: &AnyValue<'a>, out: &mut String, depth: u32) -> Result<()> {
        const DEPTH: u32 = 8;
        let value = one.value;
        match one.field {
            1 => self.quote(value.bytes()?, out)?,
            8 => self.quote(self.bytes(STRINGS, self.string_index(value.varint()?)?.0).0, out)?,
            2 => out.push_str(if value.varint()? != 0 { "true" } else { "false" }),
            3 => out.push_str(&value.int()?.to_string()),
            4 => match fixed64(self.data, one.start, one.fields.offset()) {
                Some(bits) => out.push_str(&format!("{:?}", f64::from_bits(bits))),
                None => return Err(Error::malformed("a fraction is not encoded as one (wrong wire type)")),
            },
            7 => value.bytes()?.iter().for_each(|byte| out.push_str(&format!("{byte:02x}"))),
            _ if depth == DEPTH => {
                value.bytes()?;
                out.push_str("...");
            }
            _ => {
                let (begin, end) = if one.field == 5 { ('[', ']') } else { ('{', '}') };
                out.push(begin);
                let (mut items, mut separator) = (one.fields.message(value)?, "");
                while let Some((field, value)) = items.next()? {
                    if field != 1 {
                        continue;
                    }
                    out.push_str(std::mem::replace(&mut separator, ","));
                    let item = items.message(value)?;
                    let item = if one.field == 5 { Some(item) } else { self.show_key(item, out)? };
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

    /// Writes the key of an entry of a map, and returns its value.
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

    fn quote(&self, bytes: &[u8], out: &mut String) -> Result<()> {
        if out.len() + bytes.len() > self.room {
            let detail = "the values of attributes are too large when the strings that they refer to are put in";
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        out.push_str(&format!("{:?}", String::from_utf8_lossy(bytes)));
        Ok(())
    }

    /// What an occurrence of attribute indices says.
    pub(super) fn said_of(&self, value: Value<'a>, attributes: &mut Vec<u32>) -> Result<()> {
        for_each_int(value, |v| {
            let index = self.index(ATTRIBUTES, v)?;
            attributes.extend(self.said.get(index as usize).filter(|said| **said != 0));
            Ok(())
        })
    }

    /// Calls `f` with the role and the label of each attribute of a record that says something.
    pub(super) fn attributes_of(&self, record: Fields<'a>, field: u64, mut f: impl FnMut(Role, LabelValue)) {
        // The table was checked.
        let _ = each_number(record, field, |v| {
            if let Some(&said) = self.said.get(v as usize).filter(|said| **said != 0) {
                let (label, role) = self.attributes.values[said as usize];
                f(role, label.value);
            }
            Ok(())
        });
    }

    pub(super) fn is_true(&self, value: LabelValue) -> bool {
        matches!(value, LabelValue::Text(text) if self.string(text) == b"true")
    }
}

/// A field of a value, of which there is one of several.
struct AnyValue<'a> {
    field: u64,
    value: Value<'a>,
    /// Where the field begins, and the fields after it.
    start: usize,
    fields: Fields<'a>,
}

/// The last field counts. Others are passed over before anything is made of them, which may be large.
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
