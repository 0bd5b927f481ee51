//! The protobuf wire format, read from a borrowed buffer.
//!
//! Two readers over the same bytes. [`Fields`] checks everything and is what loading uses: whatever
//! it accepted once is known to be well formed. [`SampleParts`] and [`Ints`] are for samples: they
//! take the usual form apart with little more than the numbers' own cost.
//!
//! Departures from prost, on purpose: a ten-byte varint may carry bits past the 64th (they are
//! dropped, as Go and C++ do); a repeated integer may change between packed and unpacked.

mod samples;

use crate::error::{Error, Result};
pub(crate) use samples::{SampleParts, word};

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
    ///
    /// The number has 64 bits, as everything that a result can have in its place: of 32 it would be written and read in
    /// different widths, and the processor waits for each such read. It is what made reading tables twice as slow.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        let Some((&key, tail)) = self.data[self.at..].split_first() else { return Ok(None) };
        // Nearly every field of a profile: a key of one byte, then a number or a length.
        if (8..0x80).contains(&key)
            && matches!(key & 7, 0 | 2)
            && let Some((v, n)) = varint(tail)
        {
            let field = u64::from(key >> 3);
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

    /// The numbers of fields 1 to `N` (below 16), 0 for each that is missing: of those that come next in this order, as
    /// all known producers write records of the tables. What is left is for [`Fields::next`].
    #[inline(always)]
    pub(crate) fn leading<const N: usize>(&mut self) -> [u64; N] {
        let (mut numbers, mut rest) = ([0; N], &self.data[self.at..]);
        for (field, number) in (1u8..).zip(&mut numbers) {
            if let Some((&key, tail)) = rest.split_first()
                && key == field << 3
                && let Some((v, n)) = varint(tail)
            {
                (*number, rest) = (v, &tail[n..]);
            }
        }
        self.at = self.data.len() - rest.len();
        numbers
    }

    /// The numbers of fields 1 to `N` (below 16), 0 for each that is missing; other fields are skipped.
    #[inline(always)]
    pub(crate) fn numbers<const N: usize>(mut self) -> Result<[u64; N]> {
        let mut numbers = self.leading();
        while let Some((field, value)) = self.next()? {
            if (1..=N as u64).contains(&field) {
                numbers[field as usize - 1] = value.varint()?;
            }
        }
        Ok(numbers)
    }

    /// Passes over the fields that follow with this key of one byte and a length, and says how many they were. What is
    /// of another form, or wrong, is left for [`Fields::next`].
    #[inline(always)]
    pub(crate) fn skip_alike(&mut self, key: u8) -> usize {
        let (mut rest, mut n) = (&self.data[self.at..], 0);
        while let Some((&first, tail)) = rest.split_first()
            && first == key
            && let Some((len, size)) = varint(tail)
            && len <= (tail.len() - size) as u64
        {
            rest = &tail[size + len as usize..];
            n += 1;
        }
        self.at = self.data.len() - rest.len();
        n
    }

    #[cold]
    #[inline(never)]
    fn next_unusual(&mut self) -> Result<Option<(u64, Value<'a>)>> {
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
        Ok(Some((key >> 3, value)))
    }
}

/// Calls `f` for every number of a repeated integer field's occurrence: one if unpacked, any if packed.
#[inline]
pub(crate) fn for_each_int(value: Value<'_>, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
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
    if third < 0x80 {
        return Some((low, 3));
    }
    match long_varint(&data[3..], low) {
        (_, 0) => None,
        (v, n) => Some((v, 3 + n)),
    }
}

/// The rest of [`varint`], after three bytes that gave `low`: the number, and how many bytes more it takes, which is 0
/// if there is no number: so the result is two registers, and callers that decode short numbers keep theirs there too.
#[inline(never)]
fn long_varint(rest: &[u8], mut low: u64) -> (u64, usize) {
    if let Some(word) = rest.first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let len = (!word & 0x8080_8080_8080_8080).trailing_zeros() as usize / 8 + 1;
        if len > 7 {
            return (0, 0);
        }
        return (low | without_top_bits(word & u64::MAX >> (64 - 8 * len)) << 21, len);
    }
    for (i, &byte) in rest.iter().enumerate().take(7) {
        low |= u64::from(byte & 0x7f) << (7 * i + 21);
        if byte < 0x80 {
            return (low, i + 1);
        }
    }
    (0, 0)
}

/// Closes the gaps that the top bits leave: between pairs of bytes, of two bytes, of four.
#[inline(always)]
fn without_top_bits(x: u64) -> u64 {
    let x = (x & 0x7f00_7f00_7f00_7f00) >> 1 | x & 0x007f_007f_007f_007f;
    let x = (x & 0x3fff_0000_3fff_0000) >> 2 | x & 0x0000_3fff_0000_3fff;
    (x & 0x0fff_ffff_0000_0000) >> 4 | x & 0x0fff_ffff
}

/// Appends varints and length-delimited fields to a buffer: the writing half.
// Marked to be inlined: called, they are some per cent of what writing a diff costs.
pub(crate) mod put {
    #[inline]
    pub(crate) fn varint(out: &mut Vec<u8>, mut v: u64) {
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
    }

    /// A scalar field; zero is the default and is left out, as proto3 does.
    #[inline]
    pub(crate) fn int(out: &mut Vec<u8>, field: u32, v: u64) {
        if v != 0 {
            varint(out, u64::from(field << 3));
            varint(out, v);
        }
    }

    #[inline]
    pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
        varint(out, u64::from(field << 3 | 2));
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}
