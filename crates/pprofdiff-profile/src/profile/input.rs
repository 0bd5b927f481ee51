//! The entry point of all input: paths, bytes and readers, in any compression.
//!
//! A file is read as a whole, which is what the fastest inflater wants; a raw one is read into the buffer that strings
//! will be slices of. What has no size (a pipe), or is larger than a profile may be, is inflated while it is read. No
//! file is mapped: another process that truncates it could pull the map away under us.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::Profile;
use super::inflate::{inflate, inflate_file, inflate_slice};
use crate::advice;
use crate::error::{Error, ErrorKind, Result};
use crate::redact::redacted;

/// How to load a profile.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Most bytes that a profile may inflate to. 2 GiB unless set; 4 GiB minus one is the most
    /// that can be set, since offsets into the buffer are 32 bits wide. Loading refuses more.
    pub inflated_limit: u64,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { inflated_limit: 2 << 30 }
    }
}

impl LoadOptions {
    fn limit(&self) -> Result<u64> {
        let most = u64::from(u32::MAX);
        if self.inflated_limit > most {
            let detail = format!(
                "the limit on what a profile may inflate to is at most {most} bytes (4 GiB - 1), not {}",
                self.inflated_limit
            );
            return Err(Error::query(detail));
        }
        Ok(self.inflated_limit)
    }

    /// With a limit of its own, in bytes, checked here and not only when the first profile is loaded.
    ///
    /// # Errors
    /// More than 4 GiB minus one.
    pub fn with_inflated_limit(inflated_limit: u64) -> Result<LoadOptions> {
        let options = LoadOptions { inflated_limit };
        options.limit().map(|_| options)
    }
}

/// A block large enough that reading costs nothing beside inflating, and small enough for the cache.
const BLOCK: usize = 128 << 10;

pub(super) fn open(path: &Path, options: &LoadOptions) -> Result<Profile> {
    let name = path.display().to_string();
    let name = redacted(&name);
    let load_file = || {
        let mut file = File::open(path).map_err(Error::io)?;
        let metadata = file.metadata().map_err(Error::io)?;
        if metadata.is_dir() {
            return Err(Error::io(std::io::ErrorKind::IsADirectory.into()));
        }
        let limit = options.limit()?;
        if !metadata.is_file() || metadata.len() > limit {
            return load(&name, inflate(&mut BufReader::with_capacity(BLOCK, file), None, limit)?);
        }
        let mut bytes = Vec::new();
        // A failed reservation is no error yet: reading reports it if it really comes to that. One byte more shows the
        // end.
        let _ = bytes.try_reserve_exact(metadata.len() as usize + 1);
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(Error::io)?;
        load(&name, inflate_file(bytes, limit)?)
    };
    load_file().map_err(|e| e.in_input(&name))
}

pub(super) fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    let inflated = options.limit().and_then(|limit| inflate_slice(bytes, limit));
    inflated.and_then(|data| load(name, data)).map_err(|e| e.in_input(name))
}

pub(super) fn from_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    let mut reader = BufReader::with_capacity(BLOCK, reader);
    let inflated = options.limit().and_then(|limit| inflate(&mut reader, None, limit));
    inflated.and_then(|data| load(name, data)).map_err(|e| e.in_input(name))
}

fn load(name: &str, data: Vec<u8>) -> Result<Profile> {
    let legacy = legacy_format(&data);
    // A message may begin like one of those: the words are a string of it.
    Profile::decode(name, data).map_err(|error| match legacy {
        Some(format) if error.kind() == ErrorKind::Malformed => {
            let detail = format!(
                "this is {format}, which is older than profile.proto; convert it first, with go tool pprof -proto \
                 and its binary"
            );
            // Such a profile has addresses only, so what it is of has to be at hand.
            Error::new(ErrorKind::Legacy, detail).advise(advice::symbolize("", name))
        }
        _ => error,
    })
}

/// Recognises the formats that pprof read before `profile.proto`, by how they begin.
fn legacy_format(data: &[u8]) -> Option<&'static str> {
    let head = &data[..data.len().min(4096)];
    let text = head.trim_ascii_start();
    let first_line = text.split(|&b| b == b'\n').next().unwrap_or_default();
    let contains = |needle: &[u8]| first_line.windows(needle.len()).any(|w| w == needle);
    if text.starts_with(b"heap profile:") || text.starts_with(b"--- heapz") || text.starts_with(b"--- growthz") {
        return Some("a heap profile in text form");
    }
    if text.starts_with(b"--- contention") || text.starts_with(b"--- mutex") {
        return Some("a contention profile in text form");
    }
    if text.starts_with(b"--- threadz") || text.starts_with(b"--- Thread") {
        return Some("a thread profile in text form");
    }
    if contains(b" profile: total ") {
        return Some("a Go count profile in text form (debug=1)");
    }
    // gperftools CPU profiles begin with the words 0, 3, 0, PERIOD, 0: 32 or 64 bits wide, either endian.
    let words_4 = [[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]];
    let mut little_8 = [0; 24];
    little_8[8] = 3;
    let mut big_8 = [0; 24];
    big_8[15] = 3;
    if words_4.iter().any(|w| head.starts_with(w)) || head.starts_with(&little_8) || head.starts_with(&big_8) {
        return Some("a gperftools CPU profile");
    }
    None
}
