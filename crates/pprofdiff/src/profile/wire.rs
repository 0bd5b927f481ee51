//! The protobuf wire format, read from a borrowed buffer.
//!
//! Two readers over the same bytes. [`Fields`] checks everything and is what loading uses: whatever
//! it accepted once is known to be well formed. [`Repeated`] walks a repeated integer field of a
//! message that was accepted, packed or not, and simply ends where a malformed one would be.
//!
//! Departures from prost, on purpose: a ten-byte varint may carry bits past the 64th (they are
//! dropped, as Go and C++ do); a repeated integer may change between packed and unpacked.

use crate::error::{Error, Result};

/// A field's value as the wire gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// 32 or 64 bits; no field of `profile.proto` has these, so they are only ever skipped.
    Fixed,
}

impl<'a> Value<'a> {
    pub(crate) fn varint(self) -> Result<u64> {
        match self {
            Value::Varint(v) => Ok(v),
            _ => Err(Error::malformed("a number is not encoded as one (wrong wire type)")),
        }
    }

    pub(crate) fn int(self) -> Result<i64> {
        self.varint().map(|v| v as i64)
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Value::Bytes(b) => Ok(b),
            _ => Err(Error::malformed("a message or string is not encoded as one (wrong wire type)")),
        }
    }
}

/// The fields of one message, checked one by one.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    data: &'a [u8],
    at: usize,
    /// Where `data` begins in the inflated data, for errors.
    origin: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(data: &'a [u8], origin: usize) -> Fields<'a> {
        Fields { data, at: 0, origin }
    }

    /// Offset in the inflated data of the next field.
    pub(crate) fn offset(&self) -> usize {
        self.origin + self.at
    }

    /// The fields of a message that was just read with [`Fields::next`].
    pub(crate) fn message(&self, value: Value<'a>) -> Result<Fields<'a>> {
        let bytes = value.bytes()?;
        Ok(Fields::new(bytes, self.offset() - bytes.len()))
    }

    fn varint(&mut self) -> Result<u64> {
        match varint(&self.data[self.at..]) {
            Some((v, n)) => {
                self.at += n;
                Ok(v)
            }
            None if self.data.len() - self.at < 10 => {
                Err(Error::malformed("the data ends inside a number").at(self.offset()))
            }
            None => Err(Error::malformed("a number is longer than 10 bytes").at(self.offset())),
        }
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let left = self.data.len() - self.at;
        if n > left as u64 {
            let detail = format!(
                "a field of {n} bytes does not fit into the {left} bytes that are left; is the profile truncated?"
            );
            return Err(Error::malformed(detail).at(self.offset()));
        }
        let bytes = &self.data[self.at..self.at + n as usize];
        self.at += n as usize;
        Ok(bytes)
    }

    /// The next field's number and value, or `None` at the end of the message.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>> {
        if self.at == self.data.len() {
            return Ok(None);
        }
        let start = self.offset();
        let key = self.varint()?;
        if key >> 3 == 0 || key > u64::from(u32::MAX) {
            return Err(Error::malformed(format!("field number {} does not exist in protobuf", key >> 3)).at(start));
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            t => return Err(Error::malformed(format!("wire type {t} is not used by profiles")).at(start)),
        };
        Ok(Some(((key >> 3) as u32, value)))
    }
}

/// Calls `f` for every number of a repeated integer field's occurrence: one if unpacked, any if packed.
#[inline]
pub(crate) fn each_int(value: Value<'_>, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
    match value {
        Value::Varint(v) => f(v),
        Value::Bytes(mut packed) => {
            while !packed.is_empty() {
                let Some((v, n)) = varint(packed) else {
                    return Err(Error::malformed("the packed numbers are malformed"));
                };
                packed = &packed[n..];
                f(v)?;
            }
            Ok(())
        }
        Value::Fixed => value.varint().map(|_| ()),
    }
}

/// Decodes one varint: its value and length, or `None` if it is cut off or longer than 10 bytes.
#[inline(always)]
pub(crate) fn varint(data: &[u8]) -> Option<(u64, usize)> {
    let first = *data.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let second = *data.get(1)?;
    let low = u64::from(first & 0x7f) | u64::from(second & 0x7f) << 7;
    if second < 0x80 { Some((low, 2)) } else { long_varint(data, low) }
}

fn long_varint(data: &[u8], mut v: u64) -> Option<(u64, usize)> {
    for (i, &byte) in data.iter().enumerate().take(10).skip(2) {
        v |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((v, i + 1));
        }
    }
    None
}

/// The numbers of one repeated integer field of a message that loading has accepted.
///
/// Costs one comparison a field of the message besides the numbers themselves; allocates nothing.
#[derive(Clone)]
pub(crate) struct Repeated<'a> {
    packed: &'a [u8],
    rest: &'a [u8],
    field: u64,
}

impl<'a> Repeated<'a> {
    pub(crate) fn new(message: &'a [u8], field: u32) -> Repeated<'a> {
        Repeated { packed: &[], rest: message, field: u64::from(field) }
    }
}

impl Iterator for Repeated<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((v, n)) = varint(self.packed) {
                self.packed = &self.packed[n..];
                return Some(v);
            }
            let (key, n) = varint(self.rest)?;
            self.rest = &self.rest[n..];
            let skip = match key & 7 {
                0 => {
                    let (v, n) = varint(self.rest)?;
                    self.rest = &self.rest[n..];
                    if key >> 3 == self.field {
                        return Some(v);
                    }
                    continue;
                }
                1 => 8,
                2 => {
                    let (len, n) = varint(self.rest)?;
                    self.rest = &self.rest[n..];
                    len as usize
                }
                _ => 4,
            };
            let (head, tail) = self.rest.split_at_checked(skip)?;
            self.rest = tail;
            if key >> 3 == self.field && key & 7 == 2 {
                self.packed = head;
            }
        }
    }
}

/// Appends varints and length-delimited fields to a buffer: the writing half.
pub(crate) mod put {
    pub(crate) fn varint(out: &mut Vec<u8>, mut v: u64) {
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
    }

    /// A scalar field; zero is the default and is left out, as proto3 does.
    pub(crate) fn int(out: &mut Vec<u8>, field: u32, v: u64) {
        if v != 0 {
            varint(out, u64::from(field << 3));
            varint(out, v);
        }
    }

    pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
        varint(out, u64::from(field << 3 | 2));
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }

    /// A packed repeated field; left out if there is nothing in it. `scratch` is cleared and reused.
    pub(crate) fn packed(out: &mut Vec<u8>, field: u32, values: impl Iterator<Item = u64>, scratch: &mut Vec<u8>) {
        scratch.clear();
        values.for_each(|v| varint(scratch, v));
        if !scratch.is_empty() {
            bytes(out, field, scratch);
        }
    }
}
