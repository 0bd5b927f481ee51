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
    pub struct Loading, docs loading_docs loading_keywords, others {}

    Loading {
        input_format: Option<&'static InputFormat> = "input_format" {
            about: "The format of all profiles",
            notes: " Detected from the content of each profile by default.",
            value: "FORMAT",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        input_type: Option<String> = "input_type" {
            about: "Sample type of profiles that don't state it, such as folded stacks",
            notes: " Written as\n  cpu/nanoseconds; defaults to samples/count.",
            value: "TYPE/UNIT",
            annotation: "str | None",
            is: Rarely Everything Elsewhere,
        }
        binary: Vec<PathBuf> = "binary" {
            about: "Binary or folder for names and instructions of addresses",
            notes: " Folders are searched\n  like those in PPROF_BINARY_PATH, which are searched last. If several builds match, the binary with the profile's\n  build id is used.",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        base_binary: Vec<PathBuf> = "base_binary" {
            about: "Binary or folder for the base only",
            notes: "",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        new_binary: Vec<PathBuf> = "new_binary" {
            about: "Binary or folder for the new side only",
            notes: "",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        demangle: Demangle = "demangle" {
            about: "How names are demangled: default, templates, full, none, off",
            notes: " Like pprof's\n  -symbolize=demangle=HOW: the default omits parameters and template arguments. off keeps the names in the profile.",
            value: "HOW",
            annotation: "Literal[\"default\", \"templates\", \"full\", \"none\", \"off\"] | None",
            is: Rarely Everything Elsewhere,
        }
        time: Option<TimeWindow> = "time" {
            about: "Part of each recording to read, such as 10s..25s",
            notes: " Either end may be missing. Times count from\n  the start of the recording. If the format has them, an end may also be a moment (2026-11-25T10:00:00Z) or the\n  name of an event (..GarbageCollection); the first event of that name counts.",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        base_time: Option<TimeWindow> = "base_time" {
            about: "Part of each recording to read, for the base only",
            notes: " One recording may serve as both sides.",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        new_time: Option<TimeWindow> = "new_time" {
            about: "Part of each recording to read, for the new side only",
            notes: "",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        split_at: Option<TimeSplit> = "split_at" {
            about: "Compare the part before a time or event with the part after it",
            notes: " Short for\n  base_time=..AT and new_time=AT.. together. One recording may serve as both sides.",
            value: "AT",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        any_build: bool = "any_build" {
            about: "Use binaries even if their build ids differ from the profiles'",
            notes: "",
            value: "",
            annotation: "bool",
            is: Rarely Everything Elsewhere,
        }
    }

    Limits {
        inflated_limit: Option<u64> = "inflated_limit" {
            about: "Maximum bytes that a profile may inflate to",
            notes: " Defaults to the environment variable\n  PPROFDIFF_MAX_INFLATED, or 2 GiB; at most 4 GiB minus one. Also limits the size of a URL's answer.",
            value: "BYTES",
            annotation: "int | None",
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
        (options.base_time, options.time) = self.times()?;
        match &self.input_type {
            Some(text) => options.with_input_type(text),
            None => Ok(options),
        }
    }

    /// Returns the parts of recordings to read, for the base and for the new side; `None` for a whole recording.
    ///
    /// # Errors
    /// Returns an error for `split_at` together with other times.
    fn times(&self) -> Result<(Option<TimeWindow>, Option<TimeWindow>)> {
        let given = [&self.time, &self.base_time, &self.new_time];
        match &self.split_at {
            Some(_) if given.iter().any(|window| window.is_some()) => {
                Err(Error::query("split_at sets the times of both sides; remove time, base_time and new_time"))
            }
            Some(split) => Ok((Some(split.before.clone()), Some(split.after.clone()))),
            None => {
                let time_of = |side_time: &Option<TimeWindow>| side_time.as_ref().or(self.time.as_ref()).cloned();
                Ok((time_of(&self.base_time), time_of(&self.new_time)))
            }
        }
    }

    /// Converts like [`Loading::to_options`], for uses that load no base. Binaries and times of the base are errors
    /// there, because they would be ignored.
    ///
    /// # Errors
    /// Returns an error for `base_binary`, `base_time` or `split_at`, and the errors of [`Loading::to_options`].
    pub fn to_options_without_base(&self) -> Result<LoadOptions> {
        if !self.base_binary.is_empty() {
            return Err(Error::query("base_binary is for a comparison of two sides; for one profile use binary"));
        }
        if self.split_at.is_some() {
            return Err(Error::query("split_at is for a comparison of two sides; for a part of one profile use time"));
        }
        if self.base_time.is_some() {
            return Err(Error::query("base_time is for a comparison of two sides; for one profile use time"));
        }
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
