//! Chunks of a recording: their headers, their events, and the encoding of numbers and texts.

use std::borrow::Cow;

use crate::kit::tree::too_large;
use pprofdiff_profile::{Error, ErrorKind, Result};

pub(super) const MAGIC: &[u8] = b"FLR\0";

/// The size of a header in bytes.
const HEADER: usize = 68;

/// A position in a chunk. It is copied to remember where a value begins, so that values are decoded only when needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct JfrCursor<'t> {
    /// The file, up to the end of the event or chunk that is being read.
    data: &'t [u8],
    /// The offset in the file.
    offset: usize,
    /// True if integers other than single bytes are compressed, as the chunk's header specifies.
    compressed: bool,
}

impl<'t> JfrCursor<'t> {
    /// Returns the offset in the file.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> usize {
        self.data.len() - self.offset
    }

    pub fn bytes(&mut self, n: usize) -> Result<&'t [u8]> {
        let bytes = self.data[self.offset..].get(..n).ok_or_else(|| {
            Error::malformed(format!("expected {n} bytes, but only {} are left", self.left())).at(self.offset)
        })?;
        self.offset += n;
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn plain<const N: usize>(&mut self) -> Result<i64> {
        let bytes = self.bytes(N)?;
        // The first byte has the sign, because the bytes are big-endian.
        let sign = if bytes[0] & 0x80 != 0 { -1 } else { 0 };
        Ok(bytes.iter().fold(sign, |number, &byte| number << 8 | i64::from(byte)))
    }

    /// Reads a compressed integer: seven bits per byte, lowest bits first. The ninth byte has eight bits.
    fn packed(&mut self) -> Result<i64> {
        let mut number = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number as i64);
            }
        }
        Ok((number | u64::from(self.byte()?) << 56) as i64)
    }

    pub fn short(&mut self) -> Result<i64> {
        if self.compressed { self.packed() } else { self.plain::<2>() }
    }

    /// Reads an int. Compression keeps only the 32 bits of a negative int, so the result is converted back from them.
    pub fn int(&mut self) -> Result<i32> {
        if self.compressed { Ok(self.packed()? as i32) } else { Ok(self.plain::<4>()? as i32) }
    }

    pub fn long(&mut self) -> Result<i64> {
        if self.compressed { self.packed() } else { self.plain::<8>() }
    }

    /// Reads a number of elements.
    ///
    /// # Errors
    /// The number is negative, or larger than the number of bytes left: each element takes at least one byte.
    pub fn count(&mut self) -> Result<usize> {
        let begin = self.offset;
        let count = self.int()?;
        usize::try_from(count).ok().filter(|&count| count <= self.left()).ok_or_else(|| {
            Error::malformed(format!("expected {count} elements, but only {} bytes are left", self.left())).at(begin)
        })
    }

    /// Reads a text, or the key of a constant with the text. The first byte is the encoding: 0 or 1 for an empty text,
    /// 2 for a constant, 3 for UTF-8, 4 for UTF-16, and 5 for Latin-1. Latin-1 and UTF-16 are converted to UTF-8.
    pub fn text(&mut self) -> Result<JfrText<'t>> {
        let begin = self.offset;
        Ok(JfrText::Here(match self.byte()? {
            0 | 1 => Cow::Borrowed(&[]),
            2 => return Ok(JfrText::Constant(self.long()? as u64)),
            3 => {
                let n = self.count()?;
                Cow::Borrowed(self.bytes(n)?)
            }
            4 => {
                let n = self.count()?;
                let units = (0..n).map(|_| Ok(self.short()? as u16)).collect::<Result<Vec<u16>>>()?;
                Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
            }
            5 => {
                let n = self.count()?;
                let latin = self.bytes(n)?;
                match latin.is_ascii() {
                    true => Cow::Borrowed(latin),
                    false => Cow::Owned(latin.iter().map(|&b| char::from(b)).collect::<String>().into_bytes()),
                }
            }
            other => return Err(Error::malformed(format!("unknown text encoding {other}")).at(begin)),
        }))
    }
}

/// A text in an event or in a constant.
#[derive(Debug)]
pub(super) enum JfrText<'t> {
    Here(Cow<'t, [u8]>),
    /// The key of a constant with the text.
    Constant(u64),
}

/// One chunk of a recording.
#[derive(Debug)]
pub(super) struct Chunk<'t> {
    /// The file, up to the chunk's end.
    data: &'t [u8],
    begin: usize,
    pub end: usize,
    compressed: bool,
    /// The offset of the last event with constants, from the chunk's beginning.
    constants: i64,
    /// The offset of the event with the description of types, from the chunk's beginning.
    metadata: i64,
    /// The time when the chunk began, in nanoseconds since 1970.
    pub start_nanos: i64,
    pub duration_nanos: i64,
    /// The time when the chunk began, in ticks. Events have their times in ticks.
    start_ticks: i64,
    ticks_per_second: i64,
}

impl<'t> Chunk<'t> {
    /// Reads the header of the chunk that begins at the offset `begin` of a file.
    pub fn read(file: &'t [u8], begin: usize) -> Result<Chunk<'t>> {
        let mut cursor = JfrCursor { data: file, offset: begin, compressed: false };
        if cursor.bytes(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::malformed("expected the header of a chunk").at(begin));
        }
        let (major, minor) = (cursor.short()?, cursor.short()?);
        if major != 2 {
            let detail = format!(
                "it has version {major}.{minor} of the format; only version 2 is read, which JDK 11 and later write, and \
                 8 from 8u262 on"
            );
            return Err(Error::new(ErrorKind::OtherFormat, detail).at(begin));
        }
        let (size, constants, metadata) = (cursor.long()?, cursor.long()?, cursor.long()?);
        let (start_nanos, duration_nanos) = (cursor.long()?, cursor.long()?);
        let (start_ticks, ticks_per_second) = (cursor.long()?, cursor.long()?);
        let features = cursor.int()?;
        if size == 0 || metadata == 0 {
            return Err(Error::malformed(
                "the recording is incomplete: the program ended before the recorder wrote the types of events",
            )
            .at(begin));
        }
        let end = usize::try_from(size).ok().filter(|&size| size >= HEADER).and_then(|size| begin.checked_add(size));
        let Some(end) = end.filter(|&end| end <= file.len()) else {
            let detail = format!("expected {size} bytes, but only {} are left: it was cut off", file.len() - begin);
            return Err(Error::malformed(detail).at(begin));
        };
        let data = &file[..end];
        let compressed = features & 1 != 0;
        Ok(Chunk {
            data,
            begin,
            end,
            compressed,
            constants,
            metadata,
            start_nanos,
            duration_nanos,
            start_ticks,
            ticks_per_second,
        })
    }

    /// Returns the size of the chunk in bytes.
    pub fn size(&self) -> usize {
        self.end - self.begin
    }

    /// Returns the position of the description of types.
    pub fn metadata(&self) -> Result<JfrCursor<'t>> {
        self.event_at(self.metadata, 0, "the description of types")
    }

    /// Returns the position of the last event with constants.
    pub fn constants(&self) -> Result<JfrCursor<'t>> {
        self.event_at(self.constants, 1, "the constants")
    }

    /// Returns the contents of the event at an offset from the chunk's beginning, which must have the type `kind`.
    /// Errors call the event `event_name`.
    pub fn event_at(&self, offset: i64, kind: i64, event_name: &str) -> Result<JfrCursor<'t>> {
        let begin = usize::try_from(offset)
            .ok()
            .filter(|&begin| begin >= HEADER)
            .and_then(|begin| self.begin.checked_add(begin));
        let Some(begin) = begin.filter(|&begin| begin < self.end) else {
            return Err(
                Error::malformed(format!("{event_name} should be at byte {offset}, outside the chunk")).at(self.begin)
            );
        };
        let (actual, cursor) = self.event(begin)?;
        if actual != kind {
            return Err(Error::malformed(format!("expected {event_name}, not an event of type {actual}")).at(begin));
        }
        Ok(cursor)
    }

    /// Returns the type of the event at an offset of the file, and the position of its contents.
    fn event(&self, offset: usize) -> Result<(i64, JfrCursor<'t>)> {
        let mut cursor = JfrCursor { data: self.data, offset, compressed: self.compressed };
        let size = cursor.int()?;
        let end = usize::try_from(size).ok().and_then(|size| offset.checked_add(size));
        let Some(end) = end.filter(|&end| end > cursor.offset && end <= self.end) else {
            let detail = format!("an event has {size} bytes, but its chunk has only {} left", self.end - offset);
            return Err(Error::malformed(detail).at(offset));
        };
        cursor.data = &self.data[..end];
        Ok((cursor.long()?, cursor))
    }

    /// Returns all events with their types, except the events with the description of types (type 0) and with constants
    /// (type 1). The iterator ends after the first error, because the position of the next event is unknown.
    pub fn events(&self) -> impl Iterator<Item = Result<(i64, JfrCursor<'t>)>> {
        let mut next = Some(self.begin + HEADER);
        std::iter::from_fn(move || {
            loop {
                let begin = next.filter(|&next| next < self.end)?;
                match self.event(begin) {
                    Ok((kind, cursor)) => {
                        next = Some(cursor.data.len());
                        if kind > 1 {
                            return Some(Ok((kind, cursor)));
                        }
                    }
                    Err(e) => {
                        next = None;
                        return Some(Err(e));
                    }
                }
            }
        })
    }

    /// Returns the offset of the last event with constants from the chunk's beginning.
    pub fn constants_offset(&self) -> i64 {
        self.constants
    }

    /// Returns the position at an offset that a cursor of this chunk had. Unlike that cursor, it may read up to the end
    /// of the chunk.
    pub fn cursor_at(&self, offset: usize) -> JfrCursor<'t> {
        JfrCursor { data: self.data, offset, compressed: self.compressed }
    }

    /// Returns the offset where the event ends that the cursor reads.
    pub fn end_of(cursor: &JfrCursor<'t>) -> usize {
        cursor.data.len()
    }

    /// Returns the offset of the chunk in the file.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// Converts a time in ticks to nanoseconds since 1970.
    ///
    /// # Errors
    /// The errors of [`Chunk::nanos`], or the time does not fit in an int64.
    pub fn time(&self, ticks: i64) -> Result<i64> {
        let nanos_since_start = |ticks: i64| self.nanos(ticks.wrapping_sub(self.start_ticks));
        nanos_since_start(ticks)?.checked_add(self.start_nanos).ok_or_else(too_large)
    }

    /// Converts a number of ticks to nanoseconds.
    ///
    /// # Errors
    /// The chunk's number of ticks per second is not positive, or the result does not fit in an int64.
    pub fn nanos(&self, ticks: i64) -> Result<i64> {
        let nanos = i128::from(ticks) * 1_000_000_000;
        let nanos = nanos.checked_div(i128::from(self.ticks_per_second.max(0)));
        nanos
            .and_then(|nanos| i64::try_from(nanos).ok())
            .ok_or_else(|| Error::malformed(format!("invalid time: {ticks} ticks at {}/second", self.ticks_per_second)))
    }
}
