//! Loads profiles from paths, bytes and readers, in any supported compression, and the options for it.
//!
//! A regular file is read into memory as a whole, which the fastest inflater requires. An uncompressed file is read
//! directly into the profile's buffer. Inputs without a size (pipes) and files above the size limit are inflated while
//! they are read.
//!
//! Files are never memory-mapped, because another process could truncate the file and invalidate the map. Mapping would
//! save a copy, which matters from about 100 MB.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::InputFormat;
use crate::table;
use pprofdiff_profile::cancellation::{self, CheckpointedRead};
use pprofdiff_profile::shared::{inflate, inflate_file, inflate_slice};
use pprofdiff_profile::text::redacted;
use pprofdiff_profile::{Demangle, Error, Profile, Result, TimeWindow};
#[cfg(feature = "symbols")]
use pprofdiff_symbols::Binaries;

/// Options for loading a profile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The maximum size of an inflated profile in bytes; larger profiles fail to load. Defaults to 2 GiB. The highest
    /// possible limit is 4 GiB minus one, because offsets into the buffer are 32 bits wide.
    pub inflated_limit: u64,
    /// The format of all inputs. By default, each input's format is detected from its content.
    pub input_format: Option<&'static InputFormat>,
    /// The sample type and unit for inputs that do not declare them. Defaults to `("samples", "count")`.
    pub input_type: (String, String),
    /// The part of each recording to read. Formats without sample times fail to load with a time window.
    pub time: Option<TimeWindow>,
    /// Like `time`, for the base of a comparison; see [`LoadOptions::of_base`].
    pub base_time: Option<TimeWindow>,
    /// How function names are demangled.
    pub demangle: Demangle,
    /// The binaries for looking up the functions of addresses without symbols.
    #[cfg(feature = "symbols")]
    pub binaries: Binaries,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        let input_type = ("samples".to_owned(), "count".to_owned());
        LoadOptions {
            inflated_limit: 2 << 30,
            input_format: None,
            input_type,
            time: None,
            base_time: None,
            demangle: Demangle::default(),
            #[cfg(feature = "symbols")]
            binaries: Binaries::default(),
        }
    }
}

impl LoadOptions {
    /// Returns the limit on the inflated size. Fails if the limit is too high.
    fn limit(&self) -> Result<u64> {
        let max = u64::from(u32::MAX);
        if self.inflated_limit > max {
            let detail = format!(
                "the limit on what a profile may inflate to is at most {max} bytes (4 GiB - 1), not {}",
                self.inflated_limit
            );
            return Err(Error::query(detail));
        }
        Ok(self.inflated_limit)
    }

    /// Sets the maximum size of an inflated profile in bytes, and checks it immediately instead of on the first load.
    ///
    /// # Errors
    /// Fails if the limit exceeds 4 GiB minus one.
    pub fn with_inflated_limit(self, inflated_limit: u64) -> Result<LoadOptions> {
        let options = LoadOptions { inflated_limit, ..self };
        options.limit()?;
        Ok(options)
    }

    /// Sets the binaries for looking up the functions of addresses without symbols.
    #[cfg(feature = "symbols")]
    #[must_use]
    pub fn with_binaries(self, binaries: Binaries) -> LoadOptions {
        LoadOptions { binaries, ..self }
    }

    /// Sets the part of each recording to read, on both sides of a comparison.
    #[must_use]
    pub fn with_time(self, time: TimeWindow) -> LoadOptions {
        LoadOptions { time: Some(time.clone()), base_time: Some(time), ..self }
    }

    /// Returns the options for the base of a comparison. The base may use a different build of the binaries and a
    /// different time window.
    #[must_use]
    pub fn of_base(&self) -> LoadOptions {
        LoadOptions {
            time: self.base_time.clone(),
            #[cfg(feature = "symbols")]
            binaries: self.binaries.of_base(),
            ..self.clone()
        }
    }

    /// Completes a profile that was read: demangles names, looks up symbols and records the time window.
    fn finish(&self, profile: Profile) -> Result<Profile> {
        let profile = profile.with_demangled(self.demangle, self.limit()?)?;
        #[cfg(feature = "symbols")]
        let profile = self.binaries.attach(self.binaries.symbolize(profile, self.limit()?)?);
        Ok(profile.with_window(self.time.clone()))
    }

    /// Sets the format of all inputs by its name.
    ///
    /// # Errors
    /// Fails like [`InputFormat::named`].
    pub fn with_input_format(self, name: &str) -> Result<LoadOptions> {
        Ok(LoadOptions { input_format: Some(InputFormat::named(name)?), ..self })
    }

    /// Sets the sample type and unit for inputs that do not declare them, such as `cpu/nanoseconds`.
    ///
    /// # Errors
    /// Fails if the text is not a type, a slash and a unit.
    pub fn with_input_type(self, text: &str) -> Result<LoadOptions> {
        match text.split_once('/') {
            Some((kind, unit)) if !kind.is_empty() && !unit.is_empty() => {
                Ok(LoadOptions { input_type: (kind.to_owned(), unit.to_owned()), ..self })
            }
            _ => Err(Error::query(format!(
                "what an input counts is a type and a unit, such as cpu/nanoseconds, not {text:?}"
            ))),
        }
    }
}

/// The block size for reading. A block is large enough that reading costs nothing beside inflating, and small enough
/// for the cache.
const BLOCK: usize = 128 << 10;
/// The number of bytes of a file that are read between two checkpoints.
const PART: u64 = 16 << 20;

/// Loads a file: gzip, zstd or raw, in any format of [`InputFormat`].
///
/// # Errors
/// Fails if the file cannot be read or the profile is invalid. The error contains the file name and, if known, the
/// record, the byte offset in the inflated data, and advice.
pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Profile> {
    open_path(path.as_ref(), options)
}

fn open_path(path: &Path, options: &LoadOptions) -> Result<Profile> {
    let name = path.display().to_string();
    let name = redacted(&name);
    cancellation::begin_phase("reading");
    let load_file = || {
        let mut file = File::open(path).map_err(Error::io)?;
        let metadata = file.metadata().map_err(Error::io)?;
        if metadata.is_dir() {
            return Err(Error::io(std::io::ErrorKind::IsADirectory.into()));
        }
        let limit = options.limit()?;
        if !metadata.is_file() || metadata.len() > limit {
            return table::read(
                &name,
                inflate(&mut BufReader::with_capacity(BLOCK, CheckpointedRead(file)), None, limit)?,
                options,
            );
        }
        let mut bytes = Vec::new();
        // Ignore a failed reservation: if memory really runs out, reading reports it. One additional byte detects the
        // end of the file.
        let _ = usize::try_from(metadata.len() + 1).map(|size| bytes.try_reserve_exact(size));
        // Read in parts instead of through a reader with checkpoints, because for such a reader, `read_to_end` would
        // clear the buffer first.
        loop {
            cancellation::checkpoint();
            let part = PART.min(limit + 1 - bytes.len() as u64);
            let read = (&mut file).take(part).read_to_end(&mut bytes).map_err(Error::io)?;
            if (read as u64) < part || bytes.len() as u64 > limit {
                break;
            }
        }
        table::read(&name, inflate_file(bytes, limit)?, options)
    };
    load_file().and_then(|p| options.finish(p)).map_err(|e| e.in_input(&name))
}

/// Loads a profile from memory, like [`open`] loads a file. `name` identifies the profile in errors and reports.
///
/// # Errors
/// Fails like [`open`].
pub fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    cancellation::begin_phase("reading");
    let inflated = options.limit().and_then(|limit| inflate_slice(bytes, limit));
    let profile = inflated.and_then(|data| table::read(name, data, options));
    profile.and_then(|p| options.finish(p)).map_err(|e| e.in_input(name))
}

/// Reads a profile from `reader` until its end, like [`open`] reads a file.
///
/// # Errors
/// Fails like [`open`].
pub fn from_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    cancellation::begin_phase("reading");
    let mut reader = BufReader::with_capacity(BLOCK, CheckpointedRead(reader));
    let inflated = options.limit().and_then(|limit| inflate(&mut reader, None, limit));
    let profile = inflated.and_then(|data| table::read(name, data, options));
    profile.and_then(|p| options.finish(p)).map_err(|e| e.in_input(name))
}
