//! A chunk's header, and the numbers and texts in it.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind, Result};
use crate::format::tree::too_large;

pub(super) const MAGIC: &[u8] = b"FLR\0";

/// Bytes of a header.
const HEADER: usize = 68;

/// A place in a chunk. It may be copied: values are found once, and read when they are needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    /// The file up to where what is read here ends.
    data: &'t [u8],
    at: usize,
    compressed: bool,
}

impl<'t> Cursor<'t> {
    /// Where it is in the file.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.data.len() - self.at
    }

    pub fn bytes(&mut self, n: usize) -> Result<&'t [u8]> {
        let bytes = self.data[self.at..].get(..n).ok_or_else(|| {
            Error::malformed(format!("{n} bytes should be here, and {} are left", self.left())).at(self.at)
        })?;
        self.at += n;
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn plain<const N: usize>(&mut self) -> Result<i64> {
        let bytes = self.bytes(N)?;
        // Of big-endian bytes, the first has the sign.
        let sign = if bytes[0] & 0x80 != 0 { -1 } else { 0 };
        Ok(bytes.iter().fold(sign, |number, &byte| number << 8 | i64::from(byte)))
    }

    /// Seven bits a byte, the lowest first; the ninth byte has eight.
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

    /// An int. Compressed, a negative one has 32 bits.
    pub fn int(&mut self) -> Result<i32> {
        if self.compressed { Ok(self.packed()? as i32) } else { Ok(self.plain::<4>()? as i32) }
    }

    pub fn long(&mut self) -> Result<i64> {
        if self.compressed { self.packed() } else { self.plain::<8>() }
    }

    /// How many elements come, of which each takes a byte at least.
    pub fn count(&mut self) -> Result<usize> {
        let at = self.at;
        let count = self.int()?;
        usize::try_from(count).ok().filter(|&count| count <= self.left()).ok_or_else(|| {
            Error::malformed(format!("there should be {count} elements, and {} bytes are left", self.left())).at(at)
        })
    }

    /// A text, or where one is: the number of a constant.
    pub fn text(&mut self) -> Result<Text<'t>> {
        let at = self.at;
        Ok(Text::Here(match self.byte()? {
            0 | 1 => Cow::Borrowed(&[]),
            2 => return Ok(Text::Constant(self.long()? as u64)),
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
            other => return Err(Error::malformed(format!("{other} is no encoding of a text")).at(at)),
        }))
    }
}

/// A text of an event or of a constant.
#[derive(Debug)]
pub(super) enum Text<'t> {
    Here(Cow<'t, [u8]>),
    /// It is a constant of this key.
    Constant(u64),
}

/// One chunk of a recording.
#[derive(Debug)]
pub(super) struct Chunk<'t> {
    /// The file up to the chunk's end.
    data: &'t [u8],
    begin: usize,
    pub end: usize,
    compressed: bool,
    constants: i64,
    metadata: i64,
    pub start_nanos: i64,
    pub duration_nanos: i64,
    start_ticks: i64,
    ticks_per_second: i64,
}

impl<'t> Chunk<'t> {
    /// Reads the header of the chunk that begins at a byte of a file.
    pub fn read(file: &'t [u8], begin: usize) -> Result<Chunk<'t>> {
        let mut cursor = Cursor { data: file, at: begin, compressed: false };
        if cursor.bytes(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::malformed("no chunk of a recording begins here").at(begin));
        }
        let (major, minor) = (cursor.short()?, cursor.short()?);
        if major != 2 {
            let detail = format!(
                "it has version {major}.{minor} of the format; version 2 is read, which JDK 11 and later write, and 8 from 8u262 on"
            );
            return Err(Error::new(ErrorKind::OtherFormat, detail).at(begin));
        }
        let (size, constants, metadata) = (cursor.long()?, cursor.long()?, cursor.long()?);
        let (start_nanos, duration_nanos) = (cursor.long()?, cursor.long()?);
        let (start_ticks, ticks_per_second) = (cursor.long()?, cursor.long()?);
        let features = cursor.int()?;
        if size == 0 || metadata == 0 {
            return Err(Error::malformed(
                "it was not finished: the program ended before the recorder wrote what the events mean",
            )
            .at(begin));
        }
        let end = usize::try_from(size).ok().filter(|&size| size >= HEADER).and_then(|size| begin.checked_add(size));
        let Some(end) = end.filter(|&end| end <= file.len()) else {
            let detail = format!("it should have {size} bytes, and {} are left: it was cut off", file.len() - begin);
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

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.end - self.begin
    }

    /// Where the description of types is.
    pub fn metadata(&self) -> Result<Cursor<'t>> {
        self.event_at(self.metadata, 0, "the description of types")
    }

    /// Where the last constants are.
    pub fn constants(&self) -> Result<Cursor<'t>> {
        self.event_at(self.constants, 1, "the constants")
    }

    /// Where an event of a kind begins, behind that kind; what it is called in errors.
    pub fn event_at(&self, offset: i64, kind: i64, what: &str) -> Result<Cursor<'t>> {
        let at = usize::try_from(offset).ok().filter(|&at| at >= HEADER).and_then(|at| self.begin.checked_add(at));
        let Some(at) = at.filter(|&at| at < self.end) else {
            return Err(
                Error::malformed(format!("{what} should be at its byte {offset}, which it has not")).at(self.begin)
            );
        };
        let (found, cursor) = self.event(at)?;
        if found != kind {
            return Err(Error::malformed(format!("an event of type {found} is where {what} should be")).at(at));
        }
        Ok(cursor)
    }

    /// The type of the event at a byte of the file, and what is in it.
    fn event(&self, at: usize) -> Result<(i64, Cursor<'t>)> {
        let mut cursor = Cursor { data: self.data, at, compressed: self.compressed };
        let size = cursor.int()?;
        let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
        let Some(end) = end.filter(|&end| end > cursor.at && end <= self.end) else {
            let detail = format!("an event has {size} bytes, and its chunk {} from there", self.end - at);
            return Err(Error::malformed(detail).at(at));
        };
        cursor.data = &self.data[..end];
        Ok((cursor.long()?, cursor))
    }

    /// All events with their types, but for those that tell of others.
    pub fn events(&self) -> impl Iterator<Item = Result<(i64, Cursor<'t>)>> {
        let mut at = Some(self.begin + HEADER);
        std::iter::from_fn(move || {
            loop {
                let begin = at.filter(|&at| at < self.end)?;
                match self.event(begin) {
                    Ok((kind, cursor)) => {
                        at = Some(cursor.data.len());
                        if kind > 1 {
                            return Some(Ok((kind, cursor)));
                        }
                    }
                    Err(e) => {
                        at = None;
                        return Some(Err(e));
                    }
                }
            }
        })
    }

    /// Where the last constants begin, from the chunk's own beginning.
    pub fn constants_offset(&self) -> i64 {
        self.constants
    }

    /// A place that was there before.
    pub fn cursor_at(&self, at: usize) -> Cursor<'t> {
        Cursor { data: self.data, at, compressed: self.compressed }
    }

    /// Where the event ends that a cursor is in.
    pub fn end_of(cursor: &Cursor<'t>) -> usize {
        cursor.data.len()
    }

    /// Where the chunk begins in the file.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// A time in ticks as nanoseconds since 1970.
    pub fn time(&self, ticks: i64) -> Result<i64> {
        let of = |ticks: i64| self.nanos(ticks.wrapping_sub(self.start_ticks));
        of(ticks)?.checked_add(self.start_nanos).ok_or_else(too_large)
    }

    /// A number of ticks in nanoseconds.
    pub fn nanos(&self, ticks: i64) -> Result<i64> {
        let nanos = i128::from(ticks) * 1_000_000_000;
        let nanos = nanos.checked_div(i128::from(self.ticks_per_second.max(0)));
        nanos
            .and_then(|nanos| i64::try_from(nanos).ok())
            .ok_or_else(|| Error::malformed(format!("{ticks} ticks of {} a second are no time", self.ticks_per_second)))
    }
}
