//! A profile to bytes: the message as it is, compressed as requested.
//!
//! A loaded profile keeps its message, so writing it back is compression and nothing else: unknown
//! fields and the order of records survive. New messages are made by `message`.
//!
//! Gzip is libdeflate's, which wants the whole message at once and gives one member: at every level smaller and faster
//! than zlib-rs, and smaller than what Go writes (zlib-rs at level 1 writes 5 to 12 % more than Go does).

use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Profile;
use crate::error::{Error, Result};

/// How a written profile is compressed.
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
    /// The compression that a file's name asks for: `.zst` zstd, `.pb` none, anything else gzip.
    pub fn of_path(path: &Path) -> Compression {
        match path.extension().and_then(|e| e.to_str()) {
            Some("zst") => Compression::Zstd,
            Some("pb") => Compression::None,
            _ => Compression::Gzip,
        }
    }

    /// The valid levels; only 0 where nothing is compressed.
    pub const fn levels(self) -> RangeInclusive<u32> {
        match self {
            Compression::Gzip => 0..=9,
            Compression::Zstd => 1..=22,
            Compression::None => 0..=0,
        }
    }

    /// The level unless one is given. That of gzip is 1: with libdeflate it compresses nearly as well as zlib's 6, in a
    /// quarter of the time.
    pub const fn default_level(self) -> u32 {
        match self {
            Compression::Gzip => 1,
            Compression::Zstd => 3,
            Compression::None => 0,
        }
    }
}

/// How to write a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The compression.
    pub compression: Compression,
    /// One of [`Compression::levels`]; unless given, [`Compression::default_level`].
    pub level: Option<u32>,
}

impl WriteOptions {
    /// Gzip at its default level.
    pub const fn new() -> WriteOptions {
        WriteOptions { compression: Compression::Gzip, level: None }
    }

    /// With a compression, at its default level unless a level is given.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// With a level of the compression.
    #[must_use]
    pub const fn with_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }
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
