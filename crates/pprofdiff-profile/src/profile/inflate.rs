//! Inflates an input file to the bytes of its message: gzip (all members), zstd, or uncompressed.
//!
//! Inflating gzip takes most of the time of loading, so it has two implementations. A file that is completely in memory
//! is inflated by libdeflate, one member at a time ([`gunzip_whole`]). All other inputs, and files that `gunzip_whole`
//! declines, are read block by block with `flate2`'s low-level `Decompress`. This second implementation also describes
//! errors in a file.
//!
//! The gzip framing around `Decompress` is parsed here. `flate2`'s `GzDecoder` uses a slower checksum and copies
//! through an additional buffer. Together, they take half the time of inflation itself.
//!
//! For gzip, the output is one buffer that never grows more than 64 bytes beyond the limit. The size that a file
//! declares only determines the first reservation. It is ignored if deflate cannot reach it, and capped at 512 MiB.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};

#[cfg(feature = "libdeflate")]
use super::libdeflate::gunzip_member;
use crate::cancellation;
use crate::cancellation::CheckpointedRead;
use crate::error::{Error, ErrorKind, Result};

/// The maximum expansion of deflate is 1032:1 (258 bytes from two bits), so no valid size exceeds it.
const MAX_DEFLATE_RATIO: u64 = 1032;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The flag for a gzip header that ends in its own checksum.
const FHCRC: u8 = 2;

/// Returns true if the bytes begin with a zstd frame or a skippable frame (RFC 8878). Parallel compressors and seekable
/// files put skippable frames first.
fn is_zstd(bytes: &[u8]) -> bool {
    matches!(bytes, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Facts about the input that are available before reading it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hint {
    /// The length of the compressed input.
    pub compressed: u64,
    /// The last four bytes, which in gzip contain the inflated size modulo 2^32.
    pub trailer: [u8; 4],
}

impl Hint {
    fn of_slice(bytes: &[u8]) -> Hint {
        let trailer = bytes.last_chunk::<4>().copied().unwrap_or_default();
        Hint { compressed: bytes.len() as u64, trailer }
    }

    /// Returns the inflated size that a gzip file declares, or `None` if deflate cannot reach it.
    fn believable(&self) -> Option<u64> {
        let claimed = u64::from(u32::from_le_bytes(self.trailer));
        (claimed <= self.compressed.saturating_mul(MAX_DEFLATE_RATIO)).then_some(claimed)
    }
}

/// Allocates a buffer of zeros, or returns `None` if memory is insufficient. `vec!` would abort, so this function first
/// tries a reservation.
fn zeroed(size: usize) -> Option<Vec<u8>> {
    Vec::<u8>::new().try_reserve_exact(size).ok()?;
    Some(vec![0; size])
}

/// Returns true if the bytes begin like gzip or zstd data.
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP_MAGIC) || is_zstd(bytes)
}

/// Inflates a whole file. Fails if the message exceeds `limit` bytes.
pub fn inflate_file(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
    if is_packed(&bytes) || bytes.is_empty() {
        return inflate_slice(&bytes, limit);
    }
    check_limit(bytes.len(), limit)?;
    Ok(bytes)
}

/// Inflates like [`inflate_file`], from borrowed bytes.
pub fn inflate_slice(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    match gunzip_whole(bytes, limit) {
        Some(out) => Ok(out),
        None => inflate(&mut &*bytes, Some(Hint::of_slice(bytes)), limit),
    }
}

/// Declines all files, because libdeflate is not available.
#[cfg(not(feature = "libdeflate"))]
fn gunzip_whole(_: &[u8], _: u64) -> Option<Vec<u8>> {
    None
}

/// Inflates a file of gzip members (usually a single member) with libdeflate. Returns `None` to decline the file, which
/// does not mean that the file is invalid.
///
/// The end of a file only contains the size of its last member, and the sizes of earlier members are unknown. The
/// buffer therefore begins with the last member's size. Before each further member, it gets free space for twice the
/// largest member so far. In files that pprofdiff wrote, all members have about the same size, so this suffices.
#[cfg(feature = "libdeflate")]
fn gunzip_whole(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let max_size = usize::try_from(limit.min(MAX_RESERVED)).ok()?;
    let claimed = Hint::of_slice(bytes).believable()?;
    if !bytes.starts_with(&GZIP_MAGIC) || claimed > max_size as u64 {
        return None;
    }
    let mut out = zeroed(claimed as usize)?;
    let (mut read, mut written, mut largest) = (0, 0, 0);
    loop {
        cancellation::checkpoint();
        let member = &bytes[read..];
        // libdeflate does not check the header's own checksum, which is very rare.
        if member.get(3).is_some_and(|flags| flags & FHCRC != 0) {
            return None;
        }
        let (packed, inflated) = gunzip_member(member, &mut out[written..])?;
        (read, written, largest) = (read + packed, written + inflated, largest.max(inflated));
        if read == bytes.len() {
            out.truncate(written);
            return Some(out);
        }
        if out.len() - written < 2 * largest {
            // Grow to the size that the whole file reaches if the rest expands like the part so far. Grow by at least
            // half, so that all copies together are at most three times the size of the output.
            let estimate = (written as u64).saturating_mul(bytes.len() as u64) / read as u64;
            let size = usize::try_from(estimate + estimate / 16).ok()?.max(written + written / 2) + 2 * largest;
            if size > max_size {
                return None;
            }
            let mut larger = zeroed(size)?;
            larger[..written].copy_from_slice(&out[..written]);
            out = larger;
        }
    }
}

/// Reads all of `input` and returns the inflated message. Fails if the message exceeds `limit` bytes.
pub fn inflate(input: &mut dyn BufRead, hint: Option<Hint>, limit: u64) -> Result<Vec<u8>> {
    let mut magic = Vec::with_capacity(4);
    (&mut *input).take(4).read_to_end(&mut magic).map_err(Error::io)?;
    if magic.is_empty() {
        return Err(Error::malformed("the input is empty"));
    }
    let mut input = magic.as_slice().chain(input);
    if magic.starts_with(&GZIP_MAGIC) {
        gunzip(&mut input, hint, limit)
    } else if is_zstd(&magic) {
        unzstd(&mut input, limit)
    } else {
        let mut out = Vec::new();
        if let Some(hint) = hint {
            // Ignore a failed reservation: if memory really runs out, reading reports it.
            let size = usize::try_from(hint.compressed.min(limit)).unwrap_or(usize::MAX);
            let _ = out.try_reserve_exact(size.saturating_add(1));
        }
        read_limited(&mut input, &mut out, limit).map_err(Error::io)?;
        check_limit(out.len(), limit)?;
        Ok(out)
    }
}

/// Returns an error, because this build lacks a reader of zstd.
#[cfg(not(any(feature = "zstd", feature = "ruzstd")))]
pub fn unzstd(_: &mut dyn BufRead, _: u64) -> Result<Vec<u8>> {
    Err(Error::query(
        "this is compressed with zstd, which this build can't read (enable the crate feature zstd or ruzstd)",
    ))
}

/// Inflates consecutive zstd frames.
#[cfg(feature = "zstd")]
pub fn unzstd(input: &mut dyn BufRead, limit: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(Error::io)?;
    // zstd's message about damaged data depends on the block boundaries of the reads, so it is not used.
    if let Err(e) = read_limited(&mut decoder, &mut out, limit) {
        return Err(unreadable_zstd(e.to_string().contains("memory")));
    }
    check_limit(out.len(), limit)?;
    Ok(out)
}

/// Inflates consecutive zstd frames.
#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
pub fn unzstd(input: &mut dyn BufRead, limit: u64) -> Result<Vec<u8>> {
    use super::zstd_in_rust::{Decoder, Problem};
    let mut out = Vec::new();
    let mut decoder = Decoder::new(input);
    if read_limited(&mut decoder, &mut out, limit).is_err() {
        return Err(unreadable_zstd(decoder.problem == Problem::Window));
    }
    check_limit(out.len(), limit)?;
    Ok(out)
}

/// Returns the error for zstd data that cannot be inflated.
#[cfg(any(feature = "zstd", feature = "ruzstd"))]
fn unreadable_zstd(is_window_too_large: bool) -> Error {
    Error::malformed(match is_window_too_large {
        true => "inflating the zstd data requires a window of more than 128 MiB",
        false => "the zstd data is damaged or cut off",
    })
}

/// Appends at most `limit` + 1 bytes of the input. The additional byte shows that the limit is exceeded.
fn read_limited(input: &mut dyn Read, out: &mut Vec<u8>, limit: u64) -> io::Result<()> {
    CheckpointedRead(input).take(limit.saturating_add(1)).read_to_end(out).map(|_| ())
}

fn check_limit(len: usize, limit: u64) -> Result<()> {
    if len as u64 > limit {
        let detail =
            format!("the profile inflates to more than the limit of {limit} bytes; raise the limit to read it");
        return Err(Error::new(ErrorKind::Limit, detail));
    }
    Ok(())
}

/// The maximum number of bytes to reserve for a size that the file only declares. Larger outputs are inflated block by
/// block, and their buffer grows during inflation.
const MAX_RESERVED: u64 = 512 << 20;

/// The output buffer: `bytes[..len]` contains inflated data, and the rest is zero and free.
///
/// The rest is zero because the inflater needs plain, initialized slices. The operating system provides a large zeroed
/// buffer as fresh pages, so the first reservation costs nothing. Only later growth is cleared explicitly.
struct Output {
    bytes: Vec<u8>,
    len: usize,
    limit: u64,
}

impl Output {
    fn new(hint: Option<Hint>, limit: u64) -> Output {
        let mut output = Output { bytes: Vec::new(), len: 0, limit };
        if let Some(claimed) = hint.and_then(|hint| hint.believable()) {
            // Reserve a few more bytes than declared, so that the end of the stream is found without growing the
            // buffer.
            let size = claimed.min(limit).min(MAX_RESERVED) as usize + 64;
            output.bytes = zeroed(size).unwrap_or_default();
        }
        output
    }

    /// Returns the free part of the buffer. Grows the buffer if it is full, to at most one byte above the limit. This
    /// byte shows that the limit is exceeded.
    fn free(&mut self) -> Result<&mut [u8]> {
        if self.len == self.bytes.len() {
            let max_growth =
                usize::try_from(self.limit.saturating_add(1)).unwrap_or(usize::MAX).saturating_sub(self.len);
            let more = self.len.max(64 << 10).min(max_growth);
            self.bytes.try_reserve_exact(more).map_err(|_| {
                let detail = format!("no memory for a profile that inflates to more than {} bytes", self.len);
                Error::new(ErrorKind::Limit, detail)
            })?;
            self.bytes.resize(self.len + more, 0);
        }
        Ok(&mut self.bytes[self.len..])
    }
}

/// Inflates gzip members block by block.
fn gunzip(input: &mut dyn BufRead, hint: Option<Hint>, limit: u64) -> Result<Vec<u8>> {
    let mut out = Output::new(hint, limit);
    loop {
        member(input, &mut out)?;
        let rest = input.fill_buf().map_err(Error::io)?;
        if rest.is_empty() {
            out.bytes.truncate(out.len);
            return Ok(out.bytes);
        }
        if rest[0] != GZIP_MAGIC[0] {
            return Err(Error::malformed("bytes that are not gzip follow the gzip data").at(out.len));
        }
    }
}

/// Inflates one gzip member (RFC 1952): a header, a deflate stream, and the CRC-32 and size of the inflated data.
fn member(input: &mut dyn BufRead, out: &mut Output) -> Result<()> {
    let start = out.len;
    // Errors carry the offset of the member's start, because the progress inside a member depends on the blocks that
    // were read.
    let cut_off = || Error::malformed("the gzip data is cut off; is the file truncated?").at(start);
    let truncated = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        _ => Error::io(e),
    };
    skip_header(input).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData => Error::malformed(e.to_string()).at(start),
        _ => truncated(e),
    })?;
    let mut crc = crc32fast::Hasher::new();
    let mut inflater = Decompress::new(false);
    loop {
        cancellation::checkpoint();
        let chunk = input.fill_buf().map_err(Error::io)?;
        if chunk.is_empty() {
            return Err(cut_off());
        }
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let status = inflater.decompress(chunk, out.free()?, FlushDecompress::None);
        let consumed = (inflater.total_in() - read) as usize;
        let produced = (inflater.total_out() - written) as usize;
        input.consume(consumed);
        // Update the checksum now, while the data is in the cache.
        crc.update(&out.bytes[out.len..out.len + produced]);
        out.len += produced;
        check_limit(out.len, out.limit)?;
        match status {
            Ok(Status::StreamEnd) => break,
            Ok(Status::Ok | Status::BufError) if consumed + produced > 0 => {}
            // zlib's message depends on the blocks that were read, so it is not used.
            Ok(_) | Err(_) => return Err(Error::malformed("the gzip data is damaged").at(start)),
        }
    }
    let mut trailer = [0; 8];
    input.read_exact(&mut trailer).map_err(truncated)?;
    let [c0, c1, c2, c3, size @ ..] = trailer;
    if crc.finalize() != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(Error::malformed("the gzip checksum (CRC-32) is wrong; the file is damaged").at(start));
    }
    if (out.len - start) as u32 != u32::from_le_bytes(size) {
        return Err(Error::malformed("the gzip length is wrong; the file is damaged").at(start));
    }
    Ok(())
}

/// Skips a gzip header. Fails if it is invalid or truncated.
fn skip_header(input: &mut dyn BufRead) -> io::Result<()> {
    const FEXTRA: u8 = 4;
    const FNAME: u8 = 8;
    const FCOMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    let invalid = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidData, message));
    let mut header = GzipHeader { input, crc: crc32fast::Hasher::new() };
    let [m0, m1, method, flags, ..] = header.read::<10>()?;
    if [m0, m1] != GZIP_MAGIC {
        return invalid("bytes that are not gzip follow the gzip data");
    }
    if method != 8 {
        return invalid("the gzip header declares a compression method that does not exist");
    }
    if flags & RESERVED != 0 {
        return invalid("the gzip header has flags that are reserved; the file is damaged");
    }
    if flags & FEXTRA != 0 {
        let len = u16::from_le_bytes(header.read()?);
        for _ in 0..len {
            header.read::<1>()?;
        }
    }
    for flag in [FNAME, FCOMMENT] {
        if flags & flag != 0 {
            while header.read()? != [0] {}
        }
    }
    if flags & FHCRC != 0 {
        let sum = header.crc.clone().finalize() as u16;
        if u16::from_le_bytes(header.read()?) != sum {
            return invalid("the checksum of the gzip header is wrong; the file is damaged");
        }
    }
    Ok(())
}

/// A reader for a gzip header that computes the checksum of the bytes it reads.
struct GzipHeader<'i> {
    input: &'i mut dyn BufRead,
    crc: crc32fast::Hasher,
}

impl GzipHeader<'_> {
    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.crc.update(&bytes);
        Ok(bytes)
    }
}

#[cfg(all(test, feature = "libdeflate"))]
mod tests {
    use super::{gunzip_whole, inflate_slice};
    use crate::profile::{WriteOptions, pack};

    fn packed(message: &[u8]) -> Vec<u8> {
        pack(message, &WriteOptions::new()).unwrap_or_default()
    }

    /// Returns random numbers as text, which compresses to a fraction of its size.
    fn message(n: u32) -> Vec<u8> {
        (0..n).flat_map(|i| i.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect()
    }

    #[test]
    fn libdeflate_inflates_all_members() {
        let large = message(700_000);
        assert!(large.len() > 6 << 20);
        let cut = |sizes: &[usize]| {
            let (mut rest, mut members) = (&large[..], Vec::new());
            for &size in sizes {
                let (member, after) = rest.split_at(size);
                members.push(packed(member));
                rest = after;
            }
            (large[..large.len() - rest.len()].to_vec(), members.concat())
        };
        let cases = [
            (large.clone(), packed(&large)),
            cut(&[100_000; 30]),
            cut(&[0, 0, 300_000]),
            cut(&[1000, 2000, 4000, 8000, 16_000]),
            (vec![b'a'; 1 << 20].repeat(4), packed(&[b'a'; 1 << 20]).repeat(4)),
        ];
        for (i, (message, bytes)) in cases.iter().enumerate() {
            assert!(gunzip_whole(bytes, 2 << 30).as_ref() == Some(message), "case {i}");
            assert!(
                inflate_slice(bytes, message.len() as u64).is_ok_and(|out| out == *message),
                "case {i}, at the limit"
            );
            assert!(inflate_slice(bytes, message.len() as u64 - 1).is_err(), "case {i}, above the limit");
        }
        // If there is no space for a member, libdeflate declines the file, and flate2 inflates it.
        for sizes in [&[10, 1000, 500_000, 10][..], &[300_000, 0]] {
            let (message, bytes) = cut(sizes);
            assert!(gunzip_whole(&bytes, 2 << 30).is_none());
            assert!(inflate_slice(&bytes, 2 << 30).is_ok_and(|out| out == message));
        }
    }
}
