//! How profiles are loaded, as users say it: the table of those options, and the policy of command and binding, which asks
//! the environment for what is not given. The rest of this crate asks no environment.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::input::InputFormat;
use crate::options::{OptionRow, options};
use crate::{Demangle, Error, LoadOptions, Result, TimeSplit, TimeWindow};

/// The variable of the environment that says the most bytes that a profile may inflate to.
const LIMIT_VARIABLE: &str = "PPROFDIFF_MAX_INFLATED";

/// The variable that says in which folders binaries are searched; pprof's.
#[cfg(feature = "binary")]
const BINARY_VARIABLE: &str = "PPROF_BINARY_PATH";

options! {
    /// How profiles are loaded, as users say it. Its options are [`Loading::options`].
    #[derive(Debug, Clone, Default)]
    #[non_exhaustive]
    pub struct Loading, docs loading_docs loading_keywords, others {}

    Loading {
        input_format: Option<&'static InputFormat> = "input_format" {
            about: "The format of all profiles",
            notes: " Unless given, each is recognised by its content.",
            value: "FORMAT",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        input_type: Option<String> = "input_type" {
            about: "What profiles count that don't say it, such as folded stacks",
            notes: " Written as cpu/nanoseconds;\n  samples/count unless given.",
            value: "TYPE/UNIT",
            annotation: "str | None",
            is: Rarely Everything Elsewhere,
        }
        binary: Vec<PathBuf> = "binary" {
            about: "Where names and instructions of addresses are looked up",
            notes: " A binary, or a folder that is\n  searched as pprof searches those of PPROF_BINARY_PATH, which come after it. Of several builds the one with the\n  profile's build id is taken.",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        base_binary: Vec<PathBuf> = "base_binary" {
            about: "The same for the base alone",
            notes: "",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        new_binary: Vec<PathBuf> = "new_binary" {
            about: "The same for the new side alone",
            notes: "",
            value: "PATH",
            annotation: "str | PathLike[str] | Sequence[str | PathLike[str]] | None",
            is: Rarely Everything Elsewhere,
        }
        demangle: Demangle = "demangle" {
            about: "How names are demangled: default, templates, full, none, off",
            notes: " As pprof's\n  -symbolize=demangle=HOW: by default without parameters and template arguments. off keeps the names that the\n  profile has.",
            value: "HOW",
            annotation: "Literal[\"default\", \"templates\", \"full\", \"none\", \"off\"] | None",
            is: Rarely Everything Elsewhere,
        }
        time: Option<TimeWindow> = "time" {
            about: "The time inside each recording that is read, such as 10s..25s",
            notes: " Either end may be missing. Times\n  count from the recording's beginning, or are moments (2026-11-25T10:00:00Z) or names of events, the first\n  of which counts (..GarbageCollection), where its format has them.",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        base_time: Option<TimeWindow> = "base_time" {
            about: "The same for the base alone",
            notes: " One recording may be both sides.",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        new_time: Option<TimeWindow> = "new_time" {
            about: "The same for the new side alone",
            notes: "",
            value: "FROM..UNTIL",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        split_at: Option<TimeSplit> = "split_at" {
            about: "Compare each recording before a time or event with what comes after it",
            notes: " The same as\n  base_time=..AT and new_time=AT.. together. One recording may be both sides.",
            value: "AT",
            annotation: "str | None",
            is: Always Everything Elsewhere,
        }
        any_build: bool = "any_build" {
            about: "Use given binaries even if their build ids are not the profiles'",
            notes: "",
            value: "",
            annotation: "bool",
            is: Rarely Everything Elsewhere,
        }
    }

    Limits {
        inflated_limit: Option<u64> = "inflated_limit" {
            about: "Maximum bytes that a profile may inflate to",
            notes: " Unless given that of PPROFDIFF_MAX_INFLATED in\n  the environment, or 2 GiB; 4 GiB minus one at most. A URL's answer may be as long.",
            value: "BYTES",
            annotation: "int | None",
            is: Rarely Everything Elsewhere,
        }
    }
}

impl Loading {
    /// All options, in the order of help.
    pub fn options() -> impl Iterator<Item = OptionRow<Loading>> {
        Loading::FIELDS.iter().copied()
    }

    /// The option of a name.
    pub fn option(name: &str) -> Option<OptionRow<Loading>> {
        Loading::options().find(|option| option.name == name)
    }

    /// How to load: what is not given is as the environment says it, or as [`LoadOptions`] has it.
    ///
    /// # Errors
    /// A variable that is no number; more than 4 GiB minus one; an unknown format, or a type without a unit.
    pub fn to_options(&self) -> Result<LoadOptions> {
        let of_variable = |text: OsString| {
            let number = text.to_str().and_then(|text| text.trim().parse().ok());
            number.ok_or_else(|| {
                Error::query(format!("{LIMIT_VARIABLE} is the most bytes that a profile may inflate to, not {text:?}"))
            })
        };
        let variable = || std::env::var_os(LIMIT_VARIABLE).filter(|text| !text.is_empty()).map(of_variable).transpose();
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

    /// The parts that are read of the base and of the new side.
    fn times(&self) -> Result<(Option<TimeWindow>, Option<TimeWindow>)> {
        let given = [&self.time, &self.base_time, &self.new_time];
        match &self.split_at {
            Some(_) if given.iter().any(|window| window.is_some()) => {
                Err(Error::query("split_at says which times both sides have; time, base_time or new_time are too many"))
            }
            Some(split) => Ok((Some(split.before.clone()), Some(split.after.clone()))),
            None => {
                let of_side = |own: &Option<TimeWindow>| own.as_ref().or(self.time.as_ref()).cloned();
                Ok((of_side(&self.base_time), of_side(&self.new_time)))
            }
        }
    }

    /// As [`Loading::to_options`], where no profile is loaded as a base: binaries and times of the base would be ignored.
    ///
    /// # Errors
    /// Such; as [`Loading::to_options`].
    pub fn to_options_without_base(&self) -> Result<LoadOptions> {
        if !self.base_binary.is_empty() {
            return Err(Error::query("base_binary is for a comparison of two sides; here name the binary with binary"));
        }
        if self.split_at.is_some() {
            return Err(Error::query(
                "split_at is for a comparison of two sides; of one profile name a part with time",
            ));
        }
        if self.base_time.is_some() {
            return Err(Error::query("base_time is for a comparison of two sides; of one profile it is time"));
        }
        self.to_options()
    }

    /// True if each side is a part of a recording of its own, which may be the same recording.
    pub fn has_both_times(&self) -> bool {
        self.split_at.is_some() || self.base_time.is_some() && self.new_time.is_some()
    }

    #[cfg(feature = "binary")]
    fn binaries(&self) -> crate::binary::Binaries {
        let folders = std::env::var_os(BINARY_VARIABLE).unwrap_or_default();
        let folders = std::env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()).collect();
        let of_side = |own: &[PathBuf]| [own, &self.binary].concat();
        let binaries = crate::binary::Binaries::new(of_side(&self.base_binary), of_side(&self.new_binary));
        binaries.with_folders(folders).with_any_build(self.any_build)
    }
}
