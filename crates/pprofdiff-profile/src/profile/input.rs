//! The entry point of all input: paths, bytes and readers, in any compression.
//!
//! A file is read as a whole, which is what the fastest inflater wants; a raw one is read into the buffer that strings
//! will be slices of. What has no size (a pipe), or is larger than a profile may be, is inflated while it is read. No
//! file is mapped: another process that truncates it could pull the map away under us.
//! A map would save a copy that matters from about 100 MB.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::Profile;
use super::inflate::{inflate, inflate_file, inflate_slice};
#[cfg(feature = "binary")]
use crate::binary::Binaries;
use crate::demangle::Demangle;
use crate::error::{Error, Result};
use crate::format::{self, InputFormat};
use crate::redact::redacted;
use crate::window::TimeWindow;
use crate::work::{self, PolledRead};

/// How to load a profile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Most bytes that a profile may inflate to. 2 GiB unless set; 4 GiB minus one is the most
    /// that can be set, since offsets into the buffer are 32 bits wide. Loading refuses more.
    pub inflated_limit: u64,
    /// The format that inputs are in; each is recognised by its content unless set.
    pub input_format: Option<&'static InputFormat>,
    /// The sample type and unit of inputs that do not say what they count; `("samples", "count")` unless set.
    pub input_type: (String, String),
    /// The part of each recording that is read; of a format that does not say when samples were taken this is an error.
    pub time: Option<TimeWindow>,
    /// The same for the profiles of a comparison's base; see [`LoadOptions::of_base`].
    pub base_time: Option<TimeWindow>,
    /// How names of functions are demangled.
    pub demangle: Demangle,
    /// Where names of functions are looked up for addresses that have none.
    #[cfg(feature = "binary")]
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
            #[cfg(feature = "binary")]
            binaries: Binaries::default(),
        }
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

    /// With another limit, in bytes, checked here and not only when the first profile is loaded.
    ///
    /// # Errors
    /// More than 4 GiB minus one.
    pub fn with_inflated_limit(self, inflated_limit: u64) -> Result<LoadOptions> {
        let options = LoadOptions { inflated_limit, ..self };
        options.limit()?;
        Ok(options)
    }

    /// With binaries in which names of functions are looked up for addresses that have none.
    #[cfg(feature = "binary")]
    #[must_use]
    pub fn with_binaries(self, binaries: Binaries) -> LoadOptions {
        LoadOptions { binaries, ..self }
    }

    /// With the part of each recording that is read.
    #[must_use]
    pub fn with_time(self, time: TimeWindow) -> LoadOptions {
        LoadOptions { time: Some(time.clone()), base_time: Some(time), ..self }
    }

    /// The same for the profiles of a comparison's base, of which binaries may be another build, and the time another one.
    #[must_use]
    pub fn of_base(&self) -> LoadOptions {
        LoadOptions {
            time: self.base_time.clone(),
            #[cfg(feature = "binary")]
            binaries: self.binaries.of_base(),
            ..self.clone()
        }
    }

    /// What is done with each profile that was read.
    fn finish(&self, profile: Profile) -> Result<Profile> {
        let profile = profile.with_demangled(self.demangle, self.limit()?)?;
        #[cfg(feature = "binary")]
        let profile = self.binaries.symbolize(profile, self.limit()?)?.with_binaries(self.binaries.clone());
        Ok(profile.with_window(self.time.clone()))
    }

    /// With the format that all inputs are in, by its name.
    ///
    /// # Errors
    /// As [`InputFormat::named`].
    pub fn with_input_format(self, name: &str) -> Result<LoadOptions> {
        Ok(LoadOptions { input_format: Some(InputFormat::named(name)?), ..self })
    }

    /// With what inputs count that do not say it: a type and a unit, such as `cpu/nanoseconds`.
    ///
    /// # Errors
    /// A text without a type, a slash and a unit.
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

/// A block large enough that reading costs nothing beside inflating, and small enough for the cache.
const BLOCK: usize = 128 << 10;
/// A part of a file that is read at once.
const PART: u64 = 16 << 20;

pub(super) fn open(path: &Path, options: &LoadOptions) -> Result<Profile> {
    let name = path.display().to_string();
    let name = redacted(&name);
    work::begin_phase("reading");
    let load_file = || {
        let mut file = File::open(path).map_err(Error::io)?;
        let metadata = file.metadata().map_err(Error::io)?;
        if metadata.is_dir() {
            return Err(Error::io(std::io::ErrorKind::IsADirectory.into()));
        }
        let limit = options.limit()?;
        if !metadata.is_file() || metadata.len() > limit {
            return format::read(
                &name,
                inflate(&mut BufReader::with_capacity(BLOCK, PolledRead(file)), None, limit)?,
                options,
            );
        }
        let mut bytes = Vec::new();
        // A failed reservation is no error yet: reading reports it if it really comes to that. One byte more shows the
        // end.
        let _ = usize::try_from(metadata.len() + 1).map(|size| bytes.try_reserve_exact(size));
        // In parts, and not through a reader that polls: that would have the buffer cleared first.
        loop {
            work::poll();
            let part = PART.min(limit + 1 - bytes.len() as u64);
            let read = (&mut file).take(part).read_to_end(&mut bytes).map_err(Error::io)?;
            if (read as u64) < part || bytes.len() as u64 > limit {
                break;
            }
        }
        format::read(&name, inflate_file(bytes, limit)?, options)
    };
    load_file().and_then(|p| options.finish(p)).map_err(|e| e.in_input(&name))
}

pub(super) fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    work::begin_phase("reading");
    let inflated = options.limit().and_then(|limit| inflate_slice(bytes, limit));
    let profile = inflated.and_then(|data| format::read(name, data, options));
    profile.and_then(|p| options.finish(p)).map_err(|e| e.in_input(name))
}

pub(super) fn from_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<Profile> {
    let name = &redacted(name);
    work::begin_phase("reading");
    let mut reader = BufReader::with_capacity(BLOCK, PolledRead(reader));
    let inflated = options.limit().and_then(|limit| inflate(&mut reader, None, limit));
    let profile = inflated.and_then(|data| format::read(name, data, options));
    profile.and_then(|p| options.finish(p)).map_err(|e| e.in_input(name))
}
