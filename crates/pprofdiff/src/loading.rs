//! The options of loading profiles, as rows of a table, and the environment variables that the command and the Python
//! binding use as defaults. The rest of this crate does not read the environment.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::input::InputFormat;
use crate::options::{OptionRow, options};
use crate::{Demangle, Error, LoadOptions, Result, TimeSplit, TimeWindow};

/// The environment variable with the maximum number of bytes that a profile may inflate to.
const LIMIT_VARIABLE: &str = "PPROFDIFF_MAX_INFLATED";

/// The environment variable with the folders of binaries, named as in pprof.
#[cfg(feature = "binary")]
const BINARY_VARIABLE: &str = "PPROF_BINARY_PATH";

options! {
    /// The options of loading profiles. Their rows are in [`Loading::options`].
    #[derive(Debug, Clone, Default)]
    #[non_exhaustive]
    pub struct Loading, others {}

    Loading {
        input_format: Option<&'static InputFormat> = "input_format" {
            about: "The format of all profiles",
            notes: "Detected from the content of each profile by default.",
            value: "FORMAT",
            is: Always Everything Elsewhere,
        }
        input_type: Option<String> = "input_type" {
            about: "Sample type of profiles that don't state it, such as folded stacks",
            notes: "Written as cpu/nanoseconds; defaults to samples/count.",
            value: "TYPE/UNIT",
            is: Rarely Everything Elsewhere,
        }
        binary: Vec<PathBuf> = "binary" {
            about: "Binary or folder for names and instructions of addresses",
            notes: "Folders are searched like those in PPROF_BINARY_PATH, which are searched last. If several builds match, the binary with the profile's build id is used.",
            value: "PATH",
            is: Rarely Everything Elsewhere,
        }
        base_binary: Vec<PathBuf> = "base_binary" {
            about: "Binary or folder for the base only",
            notes: "",
            value: "PATH",
            is: Rarely Everything Elsewhere,
            alone: "for one profile use `binary`",
        }
        new_binary: Vec<PathBuf> = "new_binary" {
            about: "Binary or folder for the new side only",
            notes: "",
            value: "PATH",
            is: Rarely Everything Elsewhere,
        }
        demangle: Demangle = "demangle" {
            about: "How names are demangled: default, templates, full, none, off",
            notes: "Like pprof's -symbolize=demangle=HOW: the default omits parameters and template arguments. off keeps the names in the profile.",
            value: "HOW",
            is: Rarely Everything Elsewhere,
        }
        time: Option<TimeWindow> = "time" {
            about: "Part of each recording to read, such as 10s..25s",
            notes: "Either end may be missing. Times count from the start of the recording. If the format has them, an end may also be a moment (2026-11-25T10:00:00Z) or the name of an event (..GarbageCollection); the first event of that name counts.",
            value: "FROM..UNTIL",
            is: Always Everything Elsewhere,
        }
        base_time: Option<TimeWindow> = "base_time" {
            about: "Part of each recording to read, for the base only",
            notes: "One recording may serve as both sides.",
            value: "FROM..UNTIL",
            is: Always Everything Elsewhere,
            alone: "for one profile use `time`",
        }
        new_time: Option<TimeWindow> = "new_time" {
            about: "Part of each recording to read, for the new side only",
            notes: "",
            value: "FROM..UNTIL",
            is: Always Everything Elsewhere,
        }
        split_at: Option<TimeSplit> = "split_at" {
            about: "Compare the part before a time or event with the part after it",
            notes: "Short for `base_time=..AT` and `new_time=AT..` together. One recording may serve as both sides.",
            value: "AT",
            is: Always Everything Elsewhere,
            alone: "for a part of one profile use `time`",
            conflicts: ["time", "base_time", "new_time"] "sets the times of both sides",
        }
        any_build: bool = "any_build" {
            about: "Use binaries even if their build ids differ from the profiles'",
            notes: "",
            value: "",
            is: Rarely Everything Elsewhere,
        }
    }

    Limits {
        inflated_limit: Option<u64> = "inflated_limit" {
            about: "Maximum bytes that a profile may inflate to",
            notes: "Defaults to the environment variable PPROFDIFF_MAX_INFLATED, or 2 GiB; at most 4 GiB minus one. Also limits the size of a URL's answer.",
            value: "BYTES",
            is: Rarely Everything Elsewhere,
        }
    }
}

impl Loading {
    /// Returns all options, in the order of the help text.
    pub fn options() -> impl Iterator<Item = OptionRow<Loading>> {
        Loading::FIELDS.iter().copied()
    }

    /// Returns the option with a name.
    pub fn option(name: &str) -> Option<OptionRow<Loading>> {
        Loading::options().find(|option| option.name == name)
    }

    /// Converts to the options of the loader. Missing values come from the environment, or from the defaults of
    /// [`LoadOptions`].
    ///
    /// # Errors
    /// Returns an error for a variable that is not a number, a limit above 4 GiB minus one, an unknown format, a type
    /// without a unit, or `split_at` together with other times.
    pub fn to_options(&self) -> Result<LoadOptions> {
        let parse_limit = |text: OsString| {
            let number = text.to_str().and_then(|text| text.trim().parse().ok());
            number.ok_or_else(|| {
                Error::query(format!(
                    "{LIMIT_VARIABLE} must be a whole number of bytes such as 1000000000, not {text:?}"
                ))
            })
        };
        let variable = || std::env::var_os(LIMIT_VARIABLE).filter(|text| !text.is_empty()).map(parse_limit).transpose();
        let mut options = LoadOptions::default();
        #[cfg(feature = "binary")]
        {
            options = options.with_binaries(self.binaries());
        }
        if let Some(limit) = self.inflated_limit.map_or_else(variable, |limit| Ok(Some(limit)))? {
            options = options.with_inflated_limit(limit)?;
        }
        (options.input_format, options.demangle) = (self.input_format, self.demangle);
        Loading::FIELDS.iter().try_for_each(|option| option.check_conflicts(Loading::FIELDS, self))?;
        (options.base_time, options.time) = self.times();
        match &self.input_type {
            Some(text) => options.with_input_type(text),
            None => Ok(options),
        }
    }

    /// Returns the parts of recordings to read, for the base and for the new side; `None` for a whole recording.
    fn times(&self) -> (Option<TimeWindow>, Option<TimeWindow>) {
        match &self.split_at {
            Some(split) => (Some(split.before.clone()), Some(split.after.clone())),
            None => {
                let time_of = |side_time: &Option<TimeWindow>| side_time.as_ref().or(self.time.as_ref()).cloned();
                (time_of(&self.base_time), time_of(&self.new_time))
            }
        }
    }

    /// Converts like [`Loading::to_options`], for uses that load no base. Binaries and times of the base are errors
    /// there, because they would be ignored.
    ///
    /// # Errors
    /// Returns an error for `base_binary`, `base_time` or `split_at`, and the errors of [`Loading::to_options`].
    pub fn to_options_without_base(&self) -> Result<LoadOptions> {
        Loading::FIELDS.iter().try_for_each(|option| option.check_alone(self))?;
        self.to_options()
    }

    /// Returns true if each side is a part of a recording. Both sides may be parts of one recording.
    pub fn has_both_times(&self) -> bool {
        self.split_at.is_some() || self.base_time.is_some() && self.new_time.is_some()
    }

    #[cfg(feature = "binary")]
    fn binaries(&self) -> crate::binary::Binaries {
        let folders = std::env::var_os(BINARY_VARIABLE).unwrap_or_default();
        let folders = std::env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()).collect();
        let binaries_of = |side_binaries: &[PathBuf]| [side_binaries, &self.binary].concat();
        let binaries = crate::binary::Binaries::new(binaries_of(&self.base_binary), binaries_of(&self.new_binary));
        binaries.with_folders(folders).with_any_build(self.any_build)
    }
}

/// Returns true if names and lines come from binaries.
#[cfg(feature = "binary")]
#[doc(hidden)]
pub fn has_binaries(options: &LoadOptions) -> bool {
    !options.binaries.is_empty()
}

/// Returns false, because this build does not read binaries.
#[cfg(not(feature = "binary"))]
#[doc(hidden)]
pub fn has_binaries(_: &LoadOptions) -> bool {
    false
}
