//! The protobuf wire format, read from a borrowed buffer.
//!
//! Two readers over the same bytes. [`Fields`] checks everything and is what loading uses: whatever
//! it accepted once is known to be well formed. [`SampleParts`] and [`Ints`] are for samples that
//! were accepted: they recognise the usual form and read it with little more than the numbers' own
//! cost, and simply end where a malformed one would be.
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

    #[inline(always)]
    fn varint(&mut self) -> Result<u64> {
        match varint(&self.data[self.at..]) {
            Some((v, n)) => {
                self.at += n;
                Ok(v)
            }
            None => Err(self.varint_error()),
        }
    }

    #[cold]
    fn varint_error(&self) -> Error {
        let cut_off = self.data.len() - self.at < 10;
        Error::malformed(if cut_off { "the data ends inside a number" } else { "a number is longer than 10 bytes" })
            .at(self.offset())
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
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>> {
        // Nearly every field of a profile: a key of one byte, then a number or a length.
        let rest = &self.data[self.at..];
        if let Some((&key, tail)) = rest.split_first()
            && (8..0x80).contains(&key)
            && matches!(key & 7, 0 | 2)
            && let Some((v, n)) = varint(tail)
        {
            let field = u32::from(key >> 3);
            if key & 7 == 0 {
                self.at += 1 + n;
                return Ok(Some((field, Value::Varint(v))));
            }
            if v <= (tail.len() - n) as u64 {
                self.at += 1 + n + v as usize;
                return Ok(Some((field, Value::Bytes(&tail[n..n + v as usize]))));
            }
        }
        self.next_unusual()
    }

    #[cold]
    #[inline(never)]
    fn next_unusual(&mut self) -> Result<Option<(u32, Value<'a>)>> {
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
    if second < 0x80 {
        return Some((low, 2));
    }
    let third = *data.get(2)?;
    let low = low | u64::from(third & 0x7f) << 14;
    if third < 0x80 { Some((low, 3)) } else { long_varint(data, low) }
}

/// As [`varint`], for numbers whose length can't be predicted (location ids: two bytes or three): up
/// to four bytes are decoded without a branch on the length.
#[inline(always)]
fn varint_unpredictable(data: &[u8]) -> Option<(u64, usize)> {
    if let Some(word) = data.first_chunk::<4>() {
        let word = u32::from_le_bytes(*word);
        let ends = !word & 0x8080_8080;
        if ends != 0 {
            // The lowest set bit is the top bit of the last byte: keep what is up to it.
            let word = word & (ends ^ (ends - 1));
            let v = word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000 | word >> 3 & 0xfe0_0000;
            return Some((u64::from(v), ends.trailing_zeros() as usize / 8 + 1));
        }
    }
    varint(data)
}

fn long_varint(data: &[u8], mut v: u64) -> Option<(u64, usize)> {
    for (i, &byte) in data.iter().enumerate().take(10).skip(3) {
        v |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((v, i + 1));
        }
    }
    None
}

/// The numbers of one repeated integer field of a message that loading has accepted, by how they lie.
///
/// Internal iteration ([`Ints::each`]) decides once how they lie and not at every number; it is the
/// engine's innermost loop. Allocates nothing.
#[derive(Clone, Copy)]
pub(crate) enum Ints<'a> {
    /// One packed field: number after number.
    Packed(&'a [u8]),
    /// One unpacked field after the other: key and number, key and number. Go writes up to two so.
    Tagged(&'a [u8]),
    /// Anything else that protobuf allows: the whole message, and the field's number.
    Mixed(&'a [u8], u32),
}

impl<'a> Ints<'a> {
    /// Takes a run of a field (below 16) off the front of a message. What it returns is as well formed
    /// as the message is; `None` if the message is cut off.
    #[inline(always)]
    fn run(message: &mut &'a [u8], field: u8) -> Option<Ints<'a>> {
        if message.first() == Some(&(field << 3 | 2)) {
            let (len, n) = varint(&message[1..])?;
            let (packed, rest) = message[1 + n..].split_at_checked(usize::try_from(len).ok()?)?;
            *message = rest;
            return Some(Ints::Packed(packed));
        }
        let all = *message;
        while message.first() == Some(&(field << 3)) {
            let (_, n) = varint(&message[1..])?;
            *message = &message[1 + n..];
        }
        Some(Ints::Tagged(&all[..all.len() - message.len()]))
    }

    /// True if the numbers are well formed and `f` is true for each; ends at the first that is not.
    #[inline(always)]
    pub(crate) fn all(self, mut f: impl FnMut(u64) -> bool) -> bool {
        let (mut bytes, tag) = match self {
            Ints::Packed(bytes) => (bytes, 0),
            Ints::Tagged(bytes) => (bytes, 1),
            Ints::Mixed(..) => return false,
        };
        while !bytes.is_empty() {
            match bytes.get(tag..).and_then(varint_unpredictable) {
                Some((v, n)) if f(v) => bytes = &bytes[tag + n..],
                _ => return false,
            }
        }
        true
    }

    /// Calls `f` with each number. Ends where a malformed one would be.
    #[inline(always)]
    pub(crate) fn each(self, mut f: impl FnMut(u64)) {
        match self {
            Ints::Packed(mut bytes) => {
                while let Some((v, n)) = varint_unpredictable(bytes) {
                    bytes = &bytes[n..];
                    f(v);
                }
            }
            Ints::Tagged(mut bytes) => {
                while let Some((v, n)) = bytes.get(1..).and_then(varint) {
                    bytes = &bytes[1 + n..];
                    f(v);
                }
            }
            Ints::Mixed(message, field) => each_mixed(message, field, &mut f),
        }
    }

    /// The number at a place.
    #[inline]
    pub(crate) fn nth(self, n: usize) -> Option<u64> {
        let (mut i, mut found) = (0, None);
        match self {
            Ints::Packed(mut bytes) => {
                while let Some((v, len)) = varint(bytes) {
                    if i == n {
                        return Some(v);
                    }
                    i += 1;
                    bytes = &bytes[len..];
                }
            }
            _ => self.each(|v| {
                if i == n {
                    found = Some(v);
                }
                i += 1;
            }),
        }
        found
    }
}

#[cold]
#[inline(never)]
fn each_mixed(message: &[u8], field: u32, f: &mut dyn FnMut(u64)) {
    let mut fields = Fields::new(message, 0);
    while let Ok(Some((number, value))) = fields.next() {
        if number == field {
            let _ = each_int(value, |v| {
                f(v);
                Ok(())
            });
        }
    }
}

/// A sample's message, taken apart.
#[derive(Clone, Copy)]
pub(crate) struct SampleParts<'a> {
    pub locations: Ints<'a>,
    pub values: Ints<'a>,
    /// Fields among which all labels are.
    pub labels: &'a [u8],
    /// Locations, values, labels, in this order and nothing else: what all known producers write.
    pub usual: bool,
}

impl<'a> SampleParts<'a> {
    #[inline(always)]
    pub(crate) fn new(message: &'a [u8]) -> SampleParts<'a> {
        let mut rest = message;
        if let Some(locations) = Ints::run(&mut rest, 1)
            && let Some(values) = Ints::run(&mut rest, 2)
            && only_labels(rest)
        {
            return SampleParts { locations, values, labels: rest, usual: true };
        }
        let (locations, values) = (Ints::Mixed(message, 1), Ints::Mixed(message, 2));
        SampleParts { locations, values, labels: message, usual: false }
    }
}

/// True if a message consists of fields 3 only.
#[inline(always)]
fn only_labels(mut message: &[u8]) -> bool {
    while let Some((&key, rest)) = message.split_first() {
        let Some((len, n)) = varint(rest).filter(|_| key == 3 << 3 | 2) else { return false };
        match usize::try_from(len).ok().and_then(|len| rest[n..].get(len..)) {
            Some(rest) => message = rest,
            None => return false,
        }
    }
    true
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
