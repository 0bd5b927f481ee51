//! A profile to bytes: the message as it is, packed as asked.
//!
//! A loaded profile keeps its message, so writing it back is compression and nothing else: unknown
//! fields and the order of records survive. New messages are made by `message`.
//!
//! Gzip is libdeflate's, which wants the whole message at once and gives one member: at every level smaller and faster
//! than zlib-rs, and smaller than what Go writes (zlib-rs at level 1 writes 5 to 12 % more than Go does).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Profile;
use crate::error::{Error, Result};

/// How a written profile is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compression {
    /// One gzip member, which every reader of profiles understands.
    #[default]
    Gzip,
    /// Smaller and faster, but `go tool pprof` does not read it.
    Zstd,
    /// The bare message.
    None,
}

impl Compression {
    /// The packing that a file's name asks for: `.zst` zstd, `.pb` none, anything else gzip.
    pub fn of_path(path: &Path) -> Compression {
        match path.extension().and_then(|e| e.to_str()) {
            Some("zst") => Compression::Zstd,
            Some("pb") => Compression::None,
            _ => Compression::Gzip,
        }
    }
}

/// How to write a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WriteOptions {
    /// The packing.
    pub compression: Compression,
    /// Compression level: gzip 0 to 9 (1 unless given: with libdeflate that is close to zlib's 6, in a quarter of the time), zstd 1 to 22 (3 unless given).
    pub level: Option<u32>,
}

impl Profile {
    /// The profile as bytes. The same profile and options give the same bytes, always.
    ///
    /// # Errors
    /// A level that does not exist.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.data, options)
    }
}

/// A message as bytes.
pub fn pack(message: &[u8], options: &WriteOptions) -> Result<Vec<u8>> {
    match options.compression {
        Compression::None => Ok(message.to_vec()),
        Compression::Gzip => {
            let level = options.level.unwrap_or(1);
            if level > 9 {
                return Err(Error::query(format!("gzip has the levels 0 to 9, not {level}")));
            }
            gzip(message, level)
        }
        Compression::Zstd => {
            let level = options.level.unwrap_or(3);
            if !(1..=22).contains(&level) {
                return Err(Error::query(format!("zstd has the levels 1 to 22, not {level}")));
            }
            zstd(message, level)
        }
    }
}

#[cfg(feature = "libdeflate")]
fn gzip(message: &[u8], level: u32) -> Result<Vec<u8>> {
    use libdeflater::{CompressionLvl, Compressor};
    let level = CompressionLvl::new(level as i32).map_err(|e| Error::query(format!("gzip level {level}: {e:?}")))?;
    let mut deflate = Compressor::new(level);
    let mut out = vec![0; deflate.gzip_compress_bound(message.len())];
    let n = deflate.gzip_compress(message, &mut out).map_err(|e| Error::query(format!("gzip: {e}")))?;
    out.truncate(n);
    Ok(out)
}

/// By zlib-rs, which needs no C compiler.
#[cfg(not(feature = "libdeflate"))]
fn gzip(message: &[u8], level: u32) -> Result<Vec<u8>> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    out.write_all(message).and_then(|()| out.finish()).map_err(Error::io)
}

#[cfg(feature = "zstd")]
fn zstd(message: &[u8], level: u32) -> Result<Vec<u8>> {
    zstd::encode_all(message, level as i32).map_err(Error::io)
}

#[cfg(not(feature = "zstd"))]
fn zstd(_: &[u8], _: u32) -> Result<Vec<u8>> {
    Err(Error::query("this build can't write zstd (the feature zstd of the crate)"))
}
