//! Reads and writes the protobuf wire format in borrowed buffers.
//!
//! There are two readers. [`Fields`] reads any message field by field, checks every key and length, and locates errors.
//! `SampleParts` and `samples::Ints` read the location ids and values of samples. In the form that producers
//! usually write, they cost little more than decoding the numbers. They also detect malformed numbers, but do not
//! locate them. Loading walks the whole message with these readers, so all data that it has accepted is well formed.
//!
//! One difference from prost is deliberate. A ten-byte varint may carry bits past the 64th, which are dropped as in Go
//! and C++. As in prost, a repeated integer field may mix packed and unpacked values.

mod samples;

use crate::error::{Error, Result};
pub(crate) use samples::{SampleParts, word};

/// A field's value, by wire type.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A value of 32 or 64 bits. No field of `profile.proto` has this wire type. Readers skip it in unknown fields, and
    /// report an error in known fields.
    Fixed,
}

// Each conversion fails if the wire type does not match.
impl<'a> Value<'a> {
    pub fn varint(self) -> Result<u64> {
        match self {
            Value::Varint(v) => Ok(v),
            _ => Err(Error::malformed("a number is not encoded as one (wrong wire type)")),
        }
    }

    pub fn int(self) -> Result<i64> {
        self.varint().map(|v| v as i64)
    }

    pub fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Value::Bytes(b) => Ok(b),
            _ => Err(Error::malformed("a message or string is not encoded as one (wrong wire type)")),
        }
    }
}

/// An iterator over the fields of one message that checks each field.
#[derive(Clone)]
pub struct Fields<'a> {
    data: &'a [u8],
    position: usize,
    /// The offset of `data` in the inflated data; 0 if the caller needs offsets in `data` only.
    origin: usize,
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fields").finish_non_exhaustive()
    }
}

impl<'a> Fields<'a> {
    pub fn new(data: &'a [u8], origin: usize) -> Fields<'a> {
        Fields { data, position: 0, origin }
    }

    /// Returns the next field's offset in the inflated data, or in `data` if the origin is 0.
    pub fn offset(&self) -> usize {
        self.origin + self.position
    }

    /// Returns the fields of a nested message. `value` must be the value that [`Fields::next`] returned last.
    pub fn message(&self, value: Value<'a>) -> Result<Fields<'a>> {
        let bytes = value.bytes()?;
        Ok(Fields::new(bytes, self.offset() - bytes.len()))
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64> {
        match varint(&self.data[self.position..]) {
            Some((v, n)) => {
                self.position += n;
                Ok(v)
            }
            None => Err(self.varint_error()),
        }
    }

    #[cold]
    fn varint_error(&self) -> Error {
        let cut_off = self.data.len() - self.position < 10;
        Error::malformed(if cut_off { "the data ends inside a number" } else { "a number is longer than 10 bytes" })
            .at(self.offset())
    }

    /// Takes the next `n` bytes.
    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let left = self.data.len() - self.position;
        if n > left as u64 {
            let detail = format!(
                "a field of {n} bytes does not fit into the {left} bytes that are left; is the profile truncated?"
            );
            return Err(Error::malformed(detail).at(self.offset()));
        }
        let bytes = &self.data[self.position..self.position + n as usize];
        self.position += n as usize;
        Ok(bytes)
    }

    /// Returns the next field's number and value, or `None` at the end of the message.
    ///
    /// The field number is 64 bits wide, like the rest of the result. A 32-bit number would be written and read back in
    /// different widths, which stalls the processor on each read. That made reading tables twice as slow.
    // An iterator would let callers skip errors.
    #[allow(clippy::should_implement_trait)]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        let Some((&key, tail)) = self.data[self.position..].split_first() else { return Ok(None) };
        // Fast path for nearly every field of a profile: a key of one byte, then a number or a length.
        if (8..0x80).contains(&key)
            && matches!(key & 7, 0 | 2)
            && let Some((v, n)) = varint(tail)
        {
            let field = u64::from(key >> 3);
            if key & 7 == 0 {
                self.position += 1 + n;
                return Ok(Some((field, Value::Varint(v))));
            }
            if v <= (tail.len() - n) as u64 {
                self.position += 1 + n + v as usize;
                return Ok(Some((field, Value::Bytes(&tail[n..n + v as usize]))));
            }
        }
        self.next_unusual()
    }

    /// Reads fields 1 to `N` (below 16) if they come next in this order, which is how all known producers write table
    /// records. A missing field is 0. [`Fields::next`] returns the remaining fields.
    #[inline(always)]
    pub fn leading<const N: usize>(&mut self) -> [u64; N] {
        let (mut numbers, mut rest) = ([0; N], &self.data[self.position..]);
        for (field, number) in (1u8..).zip(&mut numbers) {
            if let Some((&key, tail)) = rest.split_first()
                && key == field << 3
                && let Some((v, n)) = varint(tail)
            {
                (*number, rest) = (v, &tail[n..]);
            }
        }
        self.position = self.data.len() - rest.len();
        numbers
    }

    /// Returns the numbers in fields 1 to `N` (below 16) in any order. A missing field is 0, and other fields are
    /// skipped.
    #[inline(always)]
    pub fn numbers<const N: usize>(mut self) -> Result<[u64; N]> {
        let mut numbers = self.leading();
        while let Some((field, value)) = self.next()? {
            if (1..=N as u64).contains(&field) {
                numbers[field as usize - 1] = value.varint()?;
            }
        }
        Ok(numbers)
    }

    /// Skips the next fields while they have this one-byte key and a length, and returns the number of skipped fields.
    /// It stops before a field in another form and before a malformed field, so that [`Fields::next`] can report it.
    #[inline(always)]
    pub fn skip_alike(&mut self, key: u8) -> usize {
        let (mut rest, mut n) = (&self.data[self.position..], 0);
        while let Some((&first, tail)) = rest.split_first()
            && first == key
            && let Some((len, size)) = varint(tail)
            && len <= (tail.len() - size) as u64
        {
            rest = &tail[size + len as usize..];
            n += 1;
        }
        self.position = self.data.len() - rest.len();
        n
    }

    /// Reads a field in full generality: any key, wire type and length.
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

/// Calls `f` for each number in one occurrence of a repeated integer field. An unpacked occurrence contains one number,
/// and a packed occurrence contains zero or more numbers.
#[inline]
pub fn for_each_int(value: Value<'_>, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
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

/// Decodes one varint. Returns its value and length, or `None` if it is truncated or longer than 10 bytes.
#[inline(always)]
pub fn varint(data: &[u8]) -> Option<(u64, usize)> {
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

/// Decodes the rest of a [`varint`] after its first three bytes, which gave `low`. Returns the value and the number of
/// additional bytes, or a length of 0 if the varint is malformed. This result fits two registers, so callers that
/// decode short numbers can keep their values in registers too.
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

/// Removes the top bit of each byte and closes the gaps: first between two bytes, then between pairs of bytes, then
/// between groups of four bytes.
#[inline(always)]
fn without_top_bits(x: u64) -> u64 {
    let x = (x & 0x7f00_7f00_7f00_7f00) >> 1 | x & 0x007f_007f_007f_007f;
    let x = (x & 0x3fff_0000_3fff_0000) >> 2 | x & 0x0000_3fff_0000_3fff;
    (x & 0x0fff_ffff_0000_0000) >> 4 | x & 0x0fff_ffff
}

/// Distributes the lowest 56 bits over eight bytes, seven bits per byte: the inverse of [`without_top_bits`].
#[inline(always)]
fn with_top_bits(x: u64) -> u64 {
    let x = (x << 4 & 0x0fff_ffff_0000_0000) | x & 0x0fff_ffff;
    let x = (x << 2 & 0x3fff_0000_3fff_0000) | x & 0x0000_3fff_0000_3fff;
    (x << 1 & 0x7f00_7f00_7f00_7f00) | x & 0x007f_007f_007f_007f
}

/// Appends varints and fields to a buffer.
// Inlined, because calling these functions would cost several per cent of the time for writing a diff.
pub mod put {
    #[inline]
    pub fn varint(out: &mut Vec<u8>, mut v: u64) {
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
    }

    /// Appends the varints of many numbers. Encodes numbers of up to eight bytes without a branch on their lengths, which
    /// are unpredictable for values.
    #[inline]
    pub fn varints(out: &mut Vec<u8>, numbers: &[i64]) {
        // Each number needs up to ten bytes. Eight bytes are written at a time, of which the number's own bytes count.
        let mut end = out.len();
        out.resize(end + 10 * numbers.len(), 0);
        for v in numbers.iter().map(|&v| v as u64) {
            let len = (63 - (v | 1).leading_zeros() as usize) / 7 + 1;
            match out[end..].first_chunk_mut() {
                Some(word) if len <= 8 => {
                    let more = 0x8080_8080_8080_8080 & !(u64::MAX << (8 * (len - 1)));
                    *word = (super::with_top_bits(v) | more).to_le_bytes();
                }
                _ => {
                    let mut rest = v;
                    for byte in &mut out[end..end + len] {
                        *byte = rest as u8 | 0x80;
                        rest >>= 7;
                    }
                    out[end + len - 1] &= 0x7f;
                }
            }
            end += len;
        }
        out.truncate(end);
    }

    /// Appends a scalar field. Zero is the default in proto3, so it is omitted.
    #[inline]
    pub fn int(out: &mut Vec<u8>, field: u32, v: u64) {
        if v != 0 {
            varint(out, u64::from(field << 3));
            varint(out, v);
        }
    }

    /// Appends a length-delimited field.
    #[inline]
    pub fn bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
        varint(out, u64::from(field << 3 | 2));
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::put;

    #[test]
    fn many_varints_equal_single_varints() {
        let edges = (0..64).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1]).chain([u64::MAX, 0]);
        let numbers: Vec<i64> = edges.map(|v| v as i64).collect();
        for many in numbers.chunks(1).chain(numbers.chunks(3)).chain([&numbers[..], &[]]) {
            let (mut together, mut one_by_one) = (vec![7], vec![7]);
            put::varints(&mut together, many);
            many.iter().for_each(|&v| put::varint(&mut one_by_one, v as u64));
            assert_eq!(together, one_by_one, "{many:?}");
        }
    }
}
