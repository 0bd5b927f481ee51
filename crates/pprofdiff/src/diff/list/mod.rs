//! Listings of functions: source lines or instructions with their costs on both sides.
//!
//! The cost of a line in the base must be shown next to the same statement of the new side, even if its line number has
//! changed. If the texts of both builds are available, their lines are aligned by a text diff, which compares whole
//! files and ignores indentation. Lines that only one build has are deleted or inserted. If a text is missing, or if
//! the texts differ in too many lines (`MAX_PAIRS`), lines are paired by their offset in the function (`LineShift`),
//! and a note of the routine reports it.
//!
//! This module does not read files. The texts come from a [`SourceCode`].

#[cfg(feature = "disasm")]
mod code;
mod inlined;
#[cfg(feature = "list")]
mod lines;

use std::sync::Arc;

use serde::Serialize;

use super::{Diff, Pair, Query, Status, Summary};
#[cfg(feature = "sources")]
pub use crate::sources::{FindSource, SourceDirs, SourceFiles};
use crate::{Error, ErrorKind, Result};
pub use inlined::Inlined;
use pprofdiff_profile::random::HashMap;

/// A source of texts for listings. `()` provides no texts.
pub trait SourceCode {
    /// Returns the text of a file in one side's build, or `None` if it does not exist. `path` is the path in the
    /// profile, without the prefix that the query's `trim_path` removes. Equal texts should share their memory.
    fn find(&self, base: bool, path: &str) -> Option<SourceText>;
}

impl SourceCode for () {
    fn find(&self, _base: bool, _path: &str) -> Option<SourceText> {
        None
    }
}

/// The text of a source file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceText {
    /// The location of the text, for messages.
    pub place: String,
    /// The text.
    pub text: Arc<str>,
}

impl SourceText {
    /// Creates a text with its location.
    pub fn new(place: impl Into<String>, text: impl Into<Arc<str>>) -> SourceText {
        SourceText { place: place.into(), text: text.into() }
    }
}

/// The difference of a line or an instruction between the builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// Both builds have it.
    Same,
    /// Only the new build has it.
    Inserted,
    /// Only the base has it.
    Deleted,
    /// The sources were not compared. Both builds have the line, or only one of them has it with samples.
    Unknown,
}

impl LineChange {
    /// Returns the change as it is spelled in results.
    pub fn name(self) -> &'static str {
        match self {
            LineChange::Same => "same",
            LineChange::Inserted => "inserted",
            LineChange::Deleted => "deleted",
            LineChange::Unknown => "unknown",
        }
    }
}

/// The difference between the instructions of a function in both builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "change", rename_all = "lowercase")]
#[non_exhaustive]
pub enum CodeChange {
    /// The function consists of the same bytes, which refer to the same functions and data.
    Identical,
    /// The function has the same instructions at other addresses.
    Relocated,
    /// Instructions differ.
    Changed {
        /// The number of instructions without an equal counterpart, on the side with more of them.
        differing: u32,
        /// The number of the function's instructions in the build that has more.
        instructions: u32,
        /// Functions that only the new build inlines into the function, at most three. They are known from debug
        /// information.
        gained: Vec<String>,
        /// Functions that only the base inlines into the function, at most three.
        lost: Vec<String>,
        /// The function whose instructions differ, if the compared function is inlined into it. `None` if instructions of
        /// the compared function's own copy differ.
        #[serde(skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// The comparison is not possible.
    Unknown {
        /// The reason.
        reason: String,
    },
}

impl CodeChange {
    #[cfg(feature = "disasm")]
    pub(crate) fn unknown(reason: impl Into<String>) -> CodeChange {
        CodeChange::Unknown { reason: reason.into() }
    }

    /// Returns the change as it is spelled in results.
    pub fn name(&self) -> &'static str {
        match self {
            CodeChange::Identical => "identical",
            CodeChange::Relocated => "relocated",
            CodeChange::Changed { gained, lost, .. } if gained.is_empty() && lost.is_empty() => "changed",
            CodeChange::Changed { .. } => "inlined differently",
            CodeChange::Unknown { .. } => "unknown",
        }
    }

    /// Returns true if both builds execute the same instructions.
    pub fn is_same(&self) -> bool {
        matches!(self, CodeChange::Identical | CodeChange::Relocated)
    }

    /// Returns the change of two functions together.
    #[cfg(feature = "disasm")]
    pub(crate) fn with(self, other: CodeChange) -> CodeChange {
        use CodeChange::{Changed, Identical, Relocated, Unknown};
        match (self, other) {
            (
                Changed { differing, instructions, gained, lost, within },
                Changed { differing: d, instructions: i, gained: g, lost: l, within: w },
            ) => {
                let join = |a: Vec<String>, b: Vec<String>| if a.is_empty() { b } else { a };
                let (differing, instructions) = (differing.saturating_add(d), instructions.saturating_add(i));
                let within = if w.is_none() { None } else { within };
                Changed { differing, instructions, gained: join(gained, g), lost: join(lost, l), within }
            }
            (changed @ Changed { .. }, _) | (_, changed @ Changed { .. }) => changed,
            (unknown @ Unknown { .. }, _) | (_, unknown @ Unknown { .. }) => unknown,
            (Relocated, _) | (_, Relocated) => Relocated,
            (Identical, Identical) => Identical,
        }
    }
}

/// The differences between the instructions of functions in both builds.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CodeChanges {
    /// The differences by the name of the function. Lacks functions that no sample executed.
    pub by_name: HashMap<String, CodeChange>,
    /// The reason why nothing was compared, for the user.
    pub warning: Option<String>,
}

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedLine {
    /// The line number in the base. `None` if the base does not have the line, and for a single profile. If lines are
    /// paired by offset, this is the expected line number.
    pub base: Option<i64>,
    /// The line number on the new side, or in the single profile. `None` if the new side does not have the line. If
    /// lines are paired by offset, this is the expected line number.
    pub new: Option<i64>,
    /// The difference between the builds.
    pub change: LineChange,
    /// The text, from the new side if both sides have the line. `None` without sources, and if the listing is too long
    /// to show them.
    pub text: Option<String>,
    /// The cost of the line itself.
    pub flat: Pair,
    /// The cost of the line with all functions that it calls.
    pub cum: Pair,
    /// The instructions that were compiled from the line, if the profiles were loaded with binaries. They come from all
    /// sampled functions that contain the line, including functions that inlined it.
    pub instructions: Vec<ListedInstruction>,
}

/// An instruction of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedInstruction {
    /// The address in the base's binary. `None` if the base does not have the instruction, and for a single profile.
    pub base: Option<u64>,
    /// The address in the new side's binary, or in the single profile's. `None` if the new side does not have the
    /// instruction.
    pub new: Option<u64>,
    /// The difference between the builds. Instructions are the same if they have the same operation, registers and
    /// target function.
    pub change: LineChange,
    /// The text, from the new side if both sides have the instruction. Its syntax is AT&T's, as GNU objdump writes it.
    pub text: String,
    /// The source line of the instruction, on the same side as the text. `None` if it is unknown.
    pub place: Option<ListedPlace>,
    /// The cost of samples at the instruction itself.
    pub flat: Pair,
    /// The cost including callees. A sample counts once for each of its addresses in the instruction.
    pub cum: Pair,
}

/// A source line from debug information.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedPlace {
    /// The innermost inlined function, limited to the first 200 characters of its name.
    pub function: Arc<str>,
    /// The trimmed path of the file, empty if it is unknown.
    pub file: Arc<str>,
    /// The line number.
    pub line: u32,
}

/// The maximum length in characters of a name in a [`ListedPlace`].
const MAX_NAME: usize = 200;

impl ListedPlace {
    /// Returns true if `function` is the function of this place.
    pub fn is_of(&self, function: &str) -> bool {
        is_start(&self.function, function)
    }
}

/// Returns true if `start` is `name`, limited to [`MAX_NAME`] characters.
fn is_start(start: &str, name: &str) -> bool {
    start.chars().eq(name.chars().take(MAX_NAME))
}

/// A function in a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Routine {
    /// The name of the function.
    pub name: String,
    /// The trimmed path of its file. If the builds use different paths, this is the new side's path. `None` if the
    /// profiles do not record it.
    pub file: Option<String>,
    /// The path in the base, if it is different.
    pub base_file: Option<String>,
    /// The locations of the source texts or of the binaries, for the base and the new side. `None` for a side whose
    /// text or binary is missing.
    pub places: (Option<String>, Option<String>),
    /// The cost of the function itself.
    pub flat: Pair,
    /// The cost of the function with its callees. A sample counts once, so the sum over lines may be larger.
    pub cum: Pair,
    /// Whether both sides have the function, and whether its costs differ.
    pub status: Status,
    /// The lines in order. With source texts, these are contiguous ranges of lines. Without, only the lines with
    /// samples.
    pub lines: Vec<ListedLine>,
    /// The instructions in order, if the listing shows instructions.
    pub instructions: Vec<ListedInstruction>,
    /// The difference between the function's instructions. `None` for a single profile, and in listings of lines.
    pub code: Option<CodeChange>,
    /// Notes that a user should read before trusting the lines.
    pub notes: Vec<String>,
}

/// The content of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Source lines.
    Lines,
    /// Instructions.
    Instructions,
}

/// Functions with their lines or instructions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listing {
    /// The content of the listing.
    pub of: Listed,
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The functions, sorted by |delta| of cum descending, then of flat, then by name and file.
    pub routines: Vec<Routine>,
}

impl Listing {
    /// Keeps only the first `n` routines.
    #[must_use]
    pub fn head(mut self, n: usize) -> Listing {
        self.routines.truncate(n);
        self
    }
}

impl Diff {
    /// Lists the lines of the functions whose name matches. Ignores the query's granularity and uses `lines`.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`]. Also fails on an invalid regular expression, on a query whose `match`
    /// is neither auto nor exact, and in builds without the feature `list`.
    pub fn list(&self, query: &Query, pattern: &str, sources: &dyn SourceCode) -> Result<Listing> {
        if !query.matching.is_exact() {
            return Err(Error::query("list pairs functions by their original names and does not support match"));
        }
        let regex = super::pattern::compile("list", pattern)?;
        let (summary, routines) = self.routines(query, &|name| regex.is_match(name), sources, |all| all.collect())?;
        Ok(Listing { of: Listed::Lines, summary, routines })
    }

    /// Like [`Diff::list`], but lists the first `n` functions that have a source text.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`]. Also fails in builds without the feature `list`.
    pub fn list_with_sources(&self, query: &Query, n: usize, sources: &dyn SourceCode) -> Result<Listing> {
        let has_text = |r: &Routine| r.places != (None, None);
        let (summary, routines) =
            self.routines(query, &|_| true, sources, |all| all.filter(has_text).take(n).collect())?;
        Ok(Listing { of: Listed::Lines, summary, routines })
    }

    /// Lists the instructions of the first `n` functions whose name in a binary matches. The binaries must be set with
    /// [`LoadOptions::with_binaries`](crate::LoadOptions::with_binaries) when the profiles are loaded. Ignores the
    /// query's granularity and uses `addresses` without inlined frames, since an address is one instruction.
    ///
    /// Instructions are compared by operation, registers and names of called functions, but not by address.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`]. Also fails on an invalid regular expression, on a query whose `match`
    /// is neither auto nor exact, if a binary is missing or is not for x86-64 or arm64, and in builds without the
    /// feature `disasm`.
    pub fn disasm(&self, query: &Query, pattern: &str, n: usize) -> Result<Listing> {
        #[cfg(feature = "disasm")]
        return self.disassembled(query, pattern, n);
        #[cfg(not(feature = "disasm"))]
        {
            let _ = (query, pattern, n);
            Err(Error::query("this build has no instructions (no feature \"disasm\")"))
        }
    }

    /// Compares the instructions of functions in both builds, by name. The binaries must be set with
    /// [`LoadOptions::with_binaries`](crate::LoadOptions::with_binaries) when the profiles are loaded. A function that is
    /// inlined everywhere has the code of the functions that contain it. The result lacks functions that no sample
    /// executed. A function in a binary that is missing is unknown.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`]. Also fails in builds without the feature `disasm`.
    pub fn code_changes(&self, query: &Query, names: &[String]) -> Result<HashMap<String, CodeChange>> {
        #[cfg(feature = "disasm")]
        return self.compared(query, names);
        #[cfg(not(feature = "disasm"))]
        {
            let _ = (query, names);
            Err(Error::query("this build has no instructions (no feature \"disasm\")"))
        }
    }

    /// Compares the instructions of functions like [`Diff::code_changes`], for views that show the result next to costs.
    /// Reading binaries takes time, so this returns `None` unless the user named binaries for both sides, for which
    /// `PPROF_BINARY_PATH` does not count. Binaries that can't be read are a warning, because the costs do not depend on
    /// them.
    ///
    /// # Errors
    /// Fails only if the work was cancelled.
    #[doc(hidden)]
    pub fn named_code_changes(&self, query: &Query, names: &[String]) -> Result<Option<CodeChanges>> {
        if !self.has_named_binaries() {
            return Ok(None);
        }
        match self.code_changes(query, names) {
            Ok(by_name) => Ok(Some(CodeChanges { by_name, warning: None })),
            Err(e) if e.kind() == ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let warning = format!("the instructions of both builds are not compared: {e}");
                Ok(Some(CodeChanges { warning: Some(warning), ..CodeChanges::default() }))
            }
        }
    }

    /// Returns true if there are two sides, and the user named binaries or folders of binaries for both of them.
    pub(crate) fn has_named_binaries(&self) -> bool {
        #[cfg(feature = "disasm")]
        return self.is_two_sided() && self.profiles().all(|(_, profile)| code::has_named_binaries(profile));
        #[cfg(not(feature = "disasm"))]
        false
    }

    /// Returns the matching functions without code of their own, which [`Diff::disasm`] cannot list. They are inlined
    /// everywhere in the profiles.
    ///
    /// # Errors
    /// Fails on an invalid regular expression.
    pub fn only_inlined(&self, pattern: &str) -> Result<Vec<Inlined>> {
        let regex = super::pattern::compile("disasm", pattern)?;
        Ok(inlined::only_inlined(self.profiles().map(|(_, profile)| profile), &|name| regex.is_match(name)))
    }

    /// Returns the name of a function of the profiles that matches, if there is one.
    ///
    /// # Errors
    /// Fails if the pattern is not a regular expression.
    #[doc(hidden)]
    pub fn matching_function(&self, pattern: &str) -> Result<Option<String>> {
        let regex = super::pattern::compile("disasm", pattern)?;
        let name = |profile: &crate::Profile| {
            let mut names = profile.functions().name.iter().map(|&id| profile.string(id));
            names.find(|name| regex.is_match(name)).map(|name| String::from_utf8_lossy(name).into_owned())
        };
        Ok(self.profiles().find_map(|(_, profile)| name(profile)))
    }

    /// Replaces the real method in builds without the feature `list`.
    #[cfg(not(feature = "list"))]
    fn routines(
        &self,
        _: &Query,
        _: &dyn Fn(&[u8]) -> bool,
        _: &dyn SourceCode,
        _: impl FnOnce(&mut dyn Iterator<Item = Routine>) -> Vec<Routine>,
    ) -> Result<(Arc<Summary>, Vec<Routine>)> {
        Err(Error::query("this build has no source lines (no feature \"list\")"))
    }
}
