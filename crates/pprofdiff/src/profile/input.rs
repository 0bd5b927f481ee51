//! The one door through which every input comes: paths, bytes and readers, in any packing.
//!
//! A file is inflated while it is read, a block at a time: neither the compressed file nor a second
//! copy of it is ever held, and no memory map can be pulled away under us by another process
//! truncating the file (a map of a large file saved less than the page faults it cost).

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::Profile;
use super::inflate::{Hint, inflate};
use crate::error::{Error, ErrorKind, Result};

/// How to load a profile.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Most bytes that a profile may inflate to. 2 GiB unless set; 4 GiB minus one is the most
    /// that can be set, since offsets into the buffer are 32 bits wide.
    pub inflated_limit: u64,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { inflated_limit: 2 << 30 }
    }
}

/// The variable of the environment that says the most bytes that a profile may inflate to.
const LIMIT_VARIABLE: &str = "PPROFDIFF_MAX_INFLATED";

impl LoadOptions {
    /// With the given limit; if there is none, with that of the environment's `PPROFDIFF_MAX_INFLATED`, in bytes; and
    /// without either, with the default. What the command and the Python package use; the default alone asks no
    /// environment.
    ///
    /// # Errors
    /// A variable that is no number.
    pub fn limited(inflated_limit: Option<u64>) -> Result<LoadOptions> {
        let Some(text) = std::env::var_os(LIMIT_VARIABLE).filter(|v| inflated_limit.is_none() && !v.is_empty()) else {
            return Ok(
                inflated_limit.map_or_else(LoadOptions::default, |inflated_limit| LoadOptions { inflated_limit })
            );
        };
        let number = text.to_str().and_then(|text| text.trim().parse().ok());
        let inflated_limit = number.ok_or_else(|| {
            Error::query(format!("{LIMIT_VARIABLE} is the most bytes that a profile may inflate to, not {text:?}"))
        })?;
        Ok(LoadOptions { inflated_limit })
    }
}

/// A block large enough that reading costs nothing beside inflating, and small enough for the cache.
const BLOCK: usize = 128 << 10;

pub(super) fn open(path: &Path, options: &LoadOptions) -> Result<Profile> {
    let name = path.display().to_string();
    let load = || {
        let mut file = File::open(path).map_err(Error::io)?;
        let metadata = file.metadata().map_err(Error::io)?;
        if metadata.is_dir() {
            return Err(Error::io(std::io::ErrorKind::IsADirectory.into()));
        }
        let hint =
            if metadata.is_file() { Some(hint_of_file(&mut file, metadata.len()).map_err(Error::io)?) } else { None };
        load(&name, &mut BufReader::with_capacity(BLOCK, file), hint, options)
    };
    load().map_err(|e| e.in_input(&name))
}

pub(super) fn from_bytes(name: &str, mut bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
    let hint = Some(Hint::of_slice(bytes));
    load(name, &mut bytes, hint, options).map_err(|e| e.in_input(name))
}

pub(super) fn from_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<Profile> {
    load(name, &mut BufReader::with_capacity(BLOCK, reader), None, options).map_err(|e| e.in_input(name))
}

fn hint_of_file(file: &mut File, compressed: u64) -> std::io::Result<Hint> {
    let mut trailer = [0; 4];
    if compressed >= 4 {
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut trailer)?;
        file.rewind()?;
    }
    Ok(Hint { compressed, trailer })
}

fn load(name: &str, input: &mut dyn BufRead, hint: Option<Hint>, options: &LoadOptions) -> Result<Profile> {
    let data = inflate(input, hint, options.inflated_limit.min(u64::from(u32::MAX)))?;
    if let Some(format) = legacy_format(&data) {
        let detail = format!(
            "this is {format}, which is older than profile.proto; convert it first: go tool pprof -proto -output=OUT.pb.gz {name}"
        );
        return Err(Error::new(ErrorKind::Legacy, detail));
    }
    Profile::decode(name, data)
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
