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

/// Decodes the next two varints of packed numbers at once, or one where eight bytes do not hold two:
/// the first, perhaps the second, and the length of what was decoded.
///
/// Location ids are two or three bytes long, and which can't be predicted. So nothing branches on a
/// length, and finding where the next two begin takes one load and a few steps for both; decoding one
/// after the other waits for each one's length before it can look at the next.
#[inline(always)]
fn two_varints(data: &[u8]) -> Option<(u64, Option<u64>, usize)> {
    if let Some(word) = data.first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        // The top bit of each byte that ends a number; then the same without the first.
        let ends = !word & 0x8080_8080_8080_8080;
        let second = ends & ends.wrapping_sub(1);
        if second != 0 {
            let up_to = |end: u64| word & (end ^ (end - 1));
            let first_bits = ends.trailing_zeros() + 1;
            let (a, b) = (without_top_bits(up_to(ends)), without_top_bits(up_to(second) >> first_bits));
            return Some((a, Some(b), second.trailing_zeros() as usize / 8 + 1));
        }
    }
    varint(data).map(|(v, n)| (v, None, n))
}

/// Closes the gaps that the top bit of each byte leaves: pairs of bytes, of two bytes, of four.
#[inline(always)]
fn without_top_bits(x: u64) -> u64 {
    let x = (x & 0x7f00_7f00_7f00_7f00) >> 1 | x & 0x007f_007f_007f_007f;
    let x = (x & 0x3fff_0000_3fff_0000) >> 2 | x & 0x0000_3fff_0000_3fff;
    (x & 0x0fff_ffff_0000_0000) >> 4 | x & 0x0fff_ffff
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
        match self {
            Ints::Packed(mut bytes) => {
                while !bytes.is_empty() {
                    match two_varints(bytes) {
                        Some((a, b, n)) if f(a) && b.is_none_or(&mut f) => bytes = &bytes[n..],
                        _ => return false,
                    }
                }
                true
            }
            Ints::Tagged(mut bytes) => {
                while !bytes.is_empty() {
                    match varint(&bytes[1..]) {
                        Some((v, n)) if f(v) => bytes = &bytes[1 + n..],
                        _ => return false,
                    }
                }
                true
            }
            Ints::Mixed(..) => false,
        }
    }

    /// Calls `f` with each number. Ends where a malformed one would be.
    #[inline(always)]
    pub(crate) fn each(self, mut f: impl FnMut(u64)) {
        match self {
            Ints::Packed(mut bytes) => {
                while let Some((a, b, n)) = two_varints(bytes) {
                    bytes = &bytes[n..];
                    f(a);
                    if let Some(b) = b {
                        f(b);
                    }
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

#[cfg(test)]
mod tests {
    use super::{Ints, put, varint};

    #[test]
    fn numbers_of_all_lengths_in_all_orders_are_read_as_one_by_one() {
        let numbers: Vec<u64> =
            (0..64).map(|i| 1u64 << i).flat_map(|v| [v - 1, v, v + 1]).chain([u64::MAX, 0]).collect();
        for step in 1..numbers.len() {
            let row: Vec<u64> = (0..numbers.len()).map(|i| numbers[i * step % numbers.len()]).collect();
            let mut bytes = Vec::new();
            row.iter().for_each(|&v| put::varint(&mut bytes, v));
            let mut got = Vec::new();
            Ints::Packed(&bytes).each(|v| got.push(v));
            assert_eq!(got, row);
            got.clear();
            assert!(Ints::Packed(&bytes).all(|v| {
                got.push(v);
                true
            }));
            assert_eq!(got, row);
            for cut in 1..9 {
                let cut_off = &bytes[..bytes.len() - cut];
                let (mut rest, mut whole) = (cut_off, true);
                while whole && !rest.is_empty() {
                    whole = varint(rest).map(|(_, n)| rest = &rest[n..]).is_some();
                }
                assert_eq!(Ints::Packed(cut_off).all(|_| true), whole, "cut off by {cut}");
            }
        }
    }
}
