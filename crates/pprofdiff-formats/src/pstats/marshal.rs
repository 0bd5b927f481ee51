//! Reads values that Python's `marshal` wrote, versions 0 to 5, as far as profiles contain them: numbers, texts, tuples
//! and dictionaries. Nothing is executed, and code objects are refused. The source is CPython, `Python/marshal.c`.
//!
//! The highest bit of a type byte gives a value the next reference number, and `r` refers to such a value. A value counts
//! as numbered before its parts, and may not contain itself.

use crate::table::quoted;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::{Error, Result};

/// The number of a value in [`Marshalled`].
pub(super) type ValueId = u32;

#[derive(Debug, Clone, Copy)]
pub(super) enum MarshalValue {
    None,
    Int(i64),
    Float(f64),
    /// The start and the end of a text or of bytes in the input.
    Text(u32, u32),
    /// The start and the end of a tuple's parts.
    Tuple(u32, u32),
    /// The start and the end of a dictionary's keys and values, in turns.
    Dict(u32, u32),
    /// A value whose parts are being read.
    Unfinished,
}

/// The values of an input.
pub(super) struct Marshalled<'t> {
    text: &'t [u8],
    at: usize,
    values: Vec<MarshalValue>,
    /// The offset of each value.
    offsets: Vec<u32>,
    parts: Vec<ValueId>,
    references: Vec<ValueId>,
    /// The interned texts of Python 2, the targets of `R`.
    interned: Vec<ValueId>,
    pace: Checkpointer,
}

/// Profiles have five levels: the dictionary, its values, the callers of a function, a caller, and its name.
const MAX_DEPTH: usize = 16;
const REFERENCED: u8 = 0x80;

impl<'t> Marshalled<'t> {
    /// Reads a value, and returns its number.
    pub fn read(text: &'t [u8]) -> Result<(Marshalled<'t>, ValueId)> {
        let mut read = Marshalled {
            text,
            at: 0,
            values: Vec::new(),
            offsets: Vec::new(),
            parts: Vec::new(),
            references: Vec::new(),
            interned: Vec::new(),
            pace: Checkpointer::default(),
        };
        let root = read.value(0)?.ok_or_else(|| read.error("the value is missing"))?;
        if read.at < text.len() {
            return Err(read.error("bytes follow the profile; is it one file of cProfile?"));
        }
        Ok((read, root))
    }

    pub fn value_of(&self, id: ValueId) -> MarshalValue {
        self.values[id as usize]
    }

    pub fn offset_of(&self, id: ValueId) -> usize {
        self.offsets[id as usize] as usize
    }

    pub fn parts(&self, start: u32, end: u32) -> &[ValueId] {
        &self.parts[start as usize..end as usize]
    }

    pub fn text(&self, start: u32, end: u32) -> &'t [u8] {
        &self.text[start as usize..end as usize]
    }

    fn error(&self, detail: &str) -> Error {
        Error::malformed(detail).at(self.at)
    }

    fn take(&mut self, n: usize) -> Result<&'t [u8]> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.text.len());
        let end = end.ok_or_else(|| self.error("the data ends inside a value; is the file cut off?"))?;
        let bytes = &self.text[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    fn int32(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(i32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// Reads a length of bytes or parts. Each part takes a byte at least.
    fn length(&mut self) -> Result<usize> {
        let start = self.at;
        let length = usize::try_from(self.int32()?).ok().filter(|&length| length <= self.text.len() - self.at);
        length.ok_or_else(|| Error::malformed("a length is negative or goes beyond the end of the file").at(start))
    }

    fn small_length(&mut self) -> Result<usize> {
        Ok(usize::from(self.take(1)?[0]))
    }

    fn text_value(&mut self, length: usize) -> Result<MarshalValue> {
        let start = self.at as u32;
        self.take(length)?;
        Ok(MarshalValue::Text(start, self.at as u32))
    }

    /// Reads a value. Returns `None` for the mark at the end of a dictionary.
    fn value(&mut self, depth: usize) -> Result<Option<ValueId>> {
        self.pace.step(1);
        let start = self.at;
        let type_byte = self.take(1)?[0];
        let kind = type_byte & !REFERENCED;
        if kind == b'r' || kind == b'R' {
            let index = self.int32()?;
            let list = if kind == b'r' { &self.references } else { &self.interned };
            let id = usize::try_from(index).ok().and_then(|index| list.get(index)).copied();
            let id = id.filter(|&id| !matches!(self.values[id as usize], MarshalValue::Unfinished));
            let wrong = || Error::malformed(format!("reference {index} does not exist")).at(start);
            return id.map(Some).ok_or_else(wrong);
        }
        if kind == b'0' {
            return Ok(None);
        }
        let id = self.values.len() as ValueId;
        self.values.push(MarshalValue::Unfinished);
        self.offsets.push(start as u32);
        if type_byte & REFERENCED != 0 {
            self.references.push(id);
        }
        if kind == b't' {
            self.interned.push(id);
        }
        self.values[id as usize] = self.content(kind, start, depth)?;
        Ok(Some(id))
    }

    fn content(&mut self, kind: u8, start: usize, depth: usize) -> Result<MarshalValue> {
        Ok(match kind {
            b'N' => MarshalValue::None,
            b'F' => MarshalValue::Int(0),
            b'T' => MarshalValue::Int(1),
            b'i' => MarshalValue::Int(self.int32()?.into()),
            b'I' => MarshalValue::Int(i64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default())),
            b'l' => MarshalValue::Int(self.long(start)?),
            b'g' => MarshalValue::Float(f64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default())),
            b'f' => {
                let length = self.small_length()?;
                let digits = self.take(length)?;
                let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                MarshalValue::Float(
                    number.ok_or_else(|| Error::malformed(format!("{} is no number", quoted(digits))).at(start))?,
                )
            }
            b's' | b't' | b'u' | b'a' | b'A' => {
                let length = self.length()?;
                self.text_value(length)?
            }
            b'z' | b'Z' => {
                let length = self.small_length()?;
                self.text_value(length)?
            }
            b'(' | b'[' => {
                let length = self.length()?;
                self.tuple(length, start, depth)?
            }
            b')' => {
                let length = self.small_length()?;
                self.tuple(length, start, depth)?
            }
            b'{' => self.dict(start, depth)?,
            _ => {
                let detail = format!("a value of type {} is not part of a profile of cProfile", quoted(&[kind]));
                return Err(Error::malformed(detail).at(start));
            }
        })
    }

    /// Reads an integer of any size, as digits of 15 bits.
    fn long(&mut self, start: usize) -> Result<i64> {
        let n = self.int32()?;
        let digits = self.take((n.unsigned_abs() as usize).saturating_mul(2))?;
        let mut value: i128 = 0;
        for digit in digits.chunks_exact(2).rev() {
            let digit = i128::from(u16::from_le_bytes([digit[0], digit[1]]));
            value = (value << 15) + digit;
            if digit >= 1 << 15 || value > i128::from(i64::MAX) {
                return Err(Error::malformed("a number is more than an int64 holds").at(start));
            }
        }
        Ok(if n < 0 { -value as i64 } else { value as i64 })
    }

    fn limit_depth(depth: usize, start: usize) -> Result<()> {
        match depth >= MAX_DEPTH {
            true => Err(Error::malformed("values are nested too deeply for a profile of cProfile").at(start)),
            false => Ok(()),
        }
    }

    fn tuple(&mut self, length: usize, start: usize, depth: usize) -> Result<MarshalValue> {
        Self::limit_depth(depth, start)?;
        let mut own = Vec::new();
        for _ in 0..length {
            let missing = Error::malformed("a part of a tuple is missing").at(self.at);
            own.push(self.value(depth + 1)?.ok_or(missing)?);
        }
        Ok(self.add_parts(&own, MarshalValue::Tuple))
    }

    fn dict(&mut self, start: usize, depth: usize) -> Result<MarshalValue> {
        Self::limit_depth(depth, start)?;
        let mut own = Vec::new();
        while let Some(key) = self.value(depth + 1)? {
            let missing = Error::malformed("the value of a key is missing").at(self.at);
            let value = self.value(depth + 1)?.ok_or(missing)?;
            own.extend([key, value]);
        }
        Ok(self.add_parts(&own, MarshalValue::Dict))
    }

    fn add_parts(&mut self, own: &[ValueId], kind: fn(u32, u32) -> MarshalValue) -> MarshalValue {
        let start = self.parts.len() as u32;
        self.parts.extend_from_slice(own);
        kind(start, self.parts.len() as u32)
    }
}
