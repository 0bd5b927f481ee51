//! Compresses profiles for output.
//!
//! A loaded profile keeps its message, so writing it back only compresses the message. Unknown fields and the order of
//! records survive. The module `message` encodes new messages.
//!
//! With the feature `libdeflate` (the default), gzip uses libdeflate, which needs all of its input at once. At every
//! level it is smaller and faster than zlib-rs, and its output is smaller than Go's (zlib-rs at level 1 writes 5 to
//! 12 % more than Go does).
//!
//! A large message is split into gzip members, which are compressed in parallel. The split depends on the message's
//! size only, so the bytes do not depend on the number of threads.

use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Profile;
#[cfg(feature = "zstd")]
use crate::cancellation::CheckpointedRead;
use crate::error::{Error, Result};
use crate::parallel;

/// The compression of a written profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compression {
    /// Gzip, which every profile reader supports. Messages above 1 MiB use several members.
    #[default]
    Gzip,
    /// Zstandard, which is smaller and faster than gzip, but `go tool pprof` cannot read it.
    Zstd,
    /// No compression: the message itself.
    None,
}

impl Compression {
    /// Returns the compression for a file name: zstd for `.zst`, none for `.pb`, gzip for all other names.
    pub fn of_path(path: &Path) -> Compression {
        match path.extension().and_then(|e| e.to_str()) {
            Some("zst") => Compression::Zstd,
            Some("pb") => Compression::None,
            _ => Compression::Gzip,
        }
    }

    /// Returns the valid levels. Without compression, the only level is 0.
    pub const fn levels(self) -> RangeInclusive<u32> {
        match self {
            Compression::Gzip => 0..=9,
            Compression::Zstd => 1..=22,
            Compression::None => 0..=0,
        }
    }

    /// Returns the default level. Gzip uses level 1, because libdeflate's level 1 compresses nearly as well as zlib's
    /// level 6, in a quarter of the time.
    pub const fn default_level(self) -> u32 {
        match self {
            Compression::Gzip => 1,
            Compression::Zstd => 3,
            Compression::None => 0,
        }
    }
}

/// Options for writing a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The compression.
    pub compression: Compression,
    /// One of [`Compression::levels`]; ignored without compression. Defaults to [`Compression::default_level`].
    pub level: Option<u32>,
}

impl WriteOptions {
    /// Returns options for gzip at its default level.
    pub const fn new() -> WriteOptions {
        WriteOptions { compression: Compression::Gzip, level: None }
    }

    /// Sets the compression. Keeps the level if it was set.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the compression level.
    #[must_use]
    pub const fn with_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }
}

impl Profile {
    /// Encodes the profile. Equal profiles and options always give equal bytes.
    ///
    /// # Errors
    /// Fails if the compression level does not exist, or for zstd if this build cannot write zstd.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.data, options)
    }
}

/// Compresses a message. Fails if the compression level does not exist, or for zstd if this build cannot write zstd.
pub fn pack(message: &[u8], options: &WriteOptions) -> Result<Vec<u8>> {
    let level = options.level.unwrap_or(options.compression.default_level());
    let check = |name: &str| {
        let levels = options.compression.levels();
        if levels.contains(&level) {
            return Ok(());
        }
        Err(Error::query(format!("{name} has the levels {} to {}, not {level}", levels.start(), levels.end())))
    };
    match options.compression {
        Compression::None => Ok(message.to_vec()),
        Compression::Gzip => {
            check("gzip")?;
            gzip(message, level)
        }
        Compression::Zstd => {
            check("zstd")?;
            zstd(message, level)
        }
    }
}

/// The maximum size of a message that becomes a single gzip member.
const ALONE: usize = 1 << 20;
/// The maximum size of a member of a larger message. Each member costs about 2 kB, because it cannot refer to earlier
/// data.
const MEMBER: usize = 4 << 20;

/// Compresses a message with gzip. Messages above a certain size are split into members of equal size; the last member
/// may be a few bytes larger. The number of members is even, for two threads. The split depends on the message's size
/// only, so the bytes are the same for any number of threads.
fn gzip(message: &[u8], level: u32) -> Result<Vec<u8>> {
    let n = if message.len() <= ALONE { 1 } else { 2 * message.len().div_ceil(2 * MEMBER) };
    let size = message.len() / n;
    let end = |i| if i + 1 < n { (i + 1) * size } else { message.len() };
    let parts: Vec<&[u8]> = (0..n).map(|i| &message[i * size..end(i)]).collect();
    let mut members = parallel::map(&parts, |part| gzip_member(part, level)).into_iter().collect::<Result<Vec<_>>>()?;
    Ok(if n == 1 { members.swap_remove(0) } else { members.concat() })
}

#[cfg(feature = "libdeflate")]
fn gzip_member(part: &[u8], level: u32) -> Result<Vec<u8>> {
    use libdeflater::{CompressionLvl, Compressor};
    let level = CompressionLvl::new(level as i32).map_err(|e| Error::query(format!("gzip level {level}: {e:?}")))?;
    let mut deflate = Compressor::new(level);
    let mut out = vec![0; deflate.gzip_compress_bound(part.len())];
    let n = deflate.gzip_compress(part, &mut out).map_err(|e| Error::query(format!("gzip: {e}")))?;
    out.truncate(n);
    Ok(out)
}

/// Compresses one member with zlib-rs, which builds without a C compiler.
#[cfg(not(feature = "libdeflate"))]
fn gzip_member(part: &[u8], level: u32) -> Result<Vec<u8>> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    out.write_all(part).and_then(|()| out.finish()).map_err(Error::io)
}

#[cfg(feature = "zstd")]
fn zstd(message: &[u8], level: u32) -> Result<Vec<u8>> {
    zstd::encode_all(CheckpointedRead(message), level as i32).map_err(Error::io)
}

#[cfg(not(feature = "zstd"))]
fn zstd(_: &[u8], _: u32) -> Result<Vec<u8>> {
    Err(Error::query("this build can't write zstd (the feature zstd of the crate)"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::bufread::{GzDecoder, MultiGzDecoder};

    use super::{ALONE, MEMBER, WriteOptions, gzip, pack};

    /// Returns bytes that compress about as well as profiles do.
    fn message(len: usize) -> Vec<u8> {
        let mut state = 1u32;
        let byte = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 & 0x55
        };
        (0..len).map(byte).collect()
    }

    #[test]
    fn gzip_members_have_equal_size_for_any_number_of_threads() {
        for (len, n) in [(0, 1), (1, 1), (ALONE, 1), (ALONE + 1, 2), (2 * MEMBER, 2), (2 * MEMBER + 1, 4)] {
            let message = message(len);
            let bytes = pack(&message, &WriteOptions::new()).unwrap_or_default();
            let mut sizes = Vec::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let mut member = Vec::new();
                let mut decoder = GzDecoder::new(rest);
                assert!(decoder.read_to_end(&mut member).is_ok());
                rest = decoder.into_inner();
                sizes.push(member.len());
            }
            assert_eq!(sizes.len(), n, "{len}");
            assert!(sizes.iter().all(|&size| (len / n..len / n + n).contains(&size)), "{sizes:?}");
            let mut inflated = Vec::new();
            assert!(MultiGzDecoder::new(&bytes[..]).read_to_end(&mut inflated).is_ok() && inflated == message);
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let on_pool = pool.map(|pool| pool.install(|| gzip(&message, 1).unwrap_or_default()));
                assert!(on_pool.is_ok_and(|packed| packed == bytes), "{len} on {threads} threads");
            }
        }
    }
}
