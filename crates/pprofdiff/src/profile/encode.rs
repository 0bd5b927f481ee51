//! A profile to bytes: the message as it is, packed as asked.
//!
//! A loaded profile keeps its message, so writing it back is compression and nothing else: unknown
//! fields and the order of records survive. New messages are made by `merge`.

use std::io::Write;
use std::path::Path;

use super::Profile;
use crate::error::{Error, Result};

/// How a written profile is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// The packing.
    pub compression: Compression,
    /// Compression level: gzip 0 to 9 (6 unless given), zstd 1 to 22 (3 unless given).
    pub level: Option<u32>,
}

impl Profile {
    /// The profile as bytes. The same profile and options give the same bytes, always.
    ///
    /// # Errors
    /// A level that does not exist.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>> {
        match options.compression {
            Compression::None => Ok(self.data.clone()),
            Compression::Gzip => {
                let level = options.level.unwrap_or(6);
                if level > 9 {
                    return Err(Error::query(format!("gzip has the levels 0 to 9, not {level}")));
                }
                let out = Vec::with_capacity(self.data.len() / 2);
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(level));
                encoder.write_all(&self.data).and_then(|()| encoder.finish()).map_err(Error::io)
            }
            Compression::Zstd => {
                let level = options.level.unwrap_or(3);
                if !(1..=22).contains(&level) {
                    return Err(Error::query(format!("zstd has the levels 1 to 22, not {level}")));
                }
                zstd::encode_all(self.data.as_slice(), level as i32).map_err(Error::io)
            }
        }
    }
}
