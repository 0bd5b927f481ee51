//! Source lines and instructions with what they cost: functions by a regular expression, line by line or instruction by
//! instruction, both sides.
//!
//! The cost of a line of the base belongs to the same statement of the new side, whatever its number has become
//! there. So where the texts of both builds are at hand, their lines are aligned by a text diff, which looks at
//! whole files and not at the indentation; lines that only one build has are deleted or inserted. Where a text is
//! missing, or the texts differ in too many lines (`MAX_PAIRS`), lines are paired by their offset in the function
//! (`Shift`), and the routine's notes say so.
//!
//! This module reads no files: the texts come from a [`SourceCode`].

#[cfg(feature = "disasm")]
mod code;
mod inlined;
#[cfg(feature = "list")]
mod lines;

use std::sync::Arc;

use super::{Diff, Pair, Query, Status, Summary};
pub use crate::sources::{SourceDirs, SourceFiles};
use crate::{Error, Result};
pub use inlined::Inlined;

/// Where a listing gets its texts from. `()` has none.
pub trait SourceCode {
    /// The text of a file of one side's build; `None` if there is none. The path is that of the profile, without
    /// the prefix that the query's `trim_path` cuts off. Texts that are equal best share their memory.
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
    /// Where it was found, for people.
    pub place: String,
    /// What it says.
    pub text: Arc<str>,
}

impl SourceText {
    /// A text, and where it was found.
    pub fn new(place: impl Into<String>, text: impl Into<Arc<str>>) -> SourceText {
        SourceText { place: place.into(), text: text.into() }
    }
}

/// What became of a line or an instruction between the builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// Both builds have it, or it is not known.
    Same,
    /// Only the new build has it.
    Inserted,
    /// Only the base has it.
    Deleted,
}

impl LineChange {
    /// The change as results spell it.
    pub fn name(self) -> &'static str {
        match self {
            LineChange::Same => "same",
            LineChange::Inserted => "inserted",
            LineChange::Deleted => "deleted",
        }
    }
}

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Its number in the base; `None` if the base does not have it, or if this is a single profile. Where a text is
    /// missing and lines are paired by offset it is where the line should be.
    pub base: Option<i64>,
    /// Its number in the new side.
    pub new: Option<i64>,
    /// What became of it.
    pub change: LineChange,
    /// What it says, that of the new side if both have it; `None` without sources.
    pub text: Option<String>,
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it calls.
    pub cum: Pair,
    /// The instructions that were made of it, where the profiles were loaded with binaries: those of all functions that
    /// have it, inlined or not, and that samples ran.
    pub instructions: Vec<Instruction>,
}

/// An instruction of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// Its address in the base's binary; `None` if the base does not have it, or if this is a single profile.
    pub base: Option<u64>,
    /// Its address in the new side's binary.
    pub new: Option<u64>,
    /// What became of it: the same is one with the same operation, registers and function that is meant.
    pub change: LineChange,
    /// What it says, that of the new side if both have it: as GNU objdump writes it, in AT&T's syntax.
    pub text: String,
    /// What it was made of, on the same side as the text.
    pub place: Option<Place>,
    /// What its samples cost themselves.
    pub flat: Pair,
    /// What it cost with all that it calls; a sample counts once for each address in it.
    pub cum: Pair,
}

/// A source line as debug information tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The function, the innermost of those that were inlined; the first 200 characters of its name.
    pub function: Arc<str>,
    /// Its file, trimmed; empty if it is not known.
    pub file: Arc<str>,
    /// The line number.
    pub line: u32,
}

/// The characters of a name that a [`Place`] has.
const MAX_NAME: usize = 200;

impl Place {
    /// True if the function is this one.
    pub fn is_of(&self, function: &str) -> bool {
        is_start(&self.function, function)
    }
}

/// True if that is what a name of at most [`MAX_NAME`] characters was made of.
fn is_start(start: &str, name: &str) -> bool {
    start.chars().eq(name.chars().take(MAX_NAME))
}

/// A function in a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Routine {
    /// The function.
    pub name: String,
    /// Its file, trimmed: that of the new side, if the builds name it differently. `None` if the profiles do not say.
    pub file: Option<String>,
    /// That of the base, if it is another one.
    pub base_file: Option<String>,
    /// Where the texts were found, or the binaries: of the base, and of the new side.
    pub places: (Option<String>, Option<String>),
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it called; a sample counts once, so lines may add up to more.
    pub cum: Pair,
    /// What happened to it.
    pub status: Status,
    /// Its lines in order: with texts, whole stretches of them; without, those with samples.
    pub lines: Vec<Line>,
    /// Its instructions in order, where they are asked for.
    pub instructions: Vec<Instruction>,
    /// What a user should know before trusting the lines.
    pub notes: Vec<String>,
}

/// What a listing shows of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Source lines.
    Lines,
    /// Instructions.
    Instructions,
}

/// Functions, line by line or instruction by instruction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listing {
    /// What it shows of them.
    pub of: Listed,
    /// What the listing is of.
    pub summary: Arc<Summary>,
    /// Ordered by |delta| of cum descending, then by that of flat, then by name and file.
    pub routines: Vec<Routine>,
}

impl Listing {
    /// The first `n` routines.
    #[must_use]
    pub fn head(mut self, n: usize) -> Listing {
        self.routines.truncate(n);
        self
    }
}

impl Diff {
    /// The functions whose name matches, line by line. The query's granularity does not matter: it is `lines`.
    ///
    /// # Errors
    /// As [`Diff::measure`], and an invalid regular expression.
    pub fn list(&self, query: &Query, pattern: &str, sources: &dyn SourceCode) -> Result<Listing> {
        if !query.matching.is_exact() {
            return Err(Error::query("list pairs functions by their names as they are; matching is for other views"));
        }
        let regex = super::pattern::compile("list", pattern)?;
        let (summary, routines) = self.routines(query, &|name| regex.is_match(name), sources, |all| all.collect())?;
        Ok(Listing { of: Listed::Lines, summary, routines })
    }

    /// The first `n` functions of those that a text is found for, line by line. As [`Diff::list`] otherwise.
    ///
    /// # Errors
    /// As [`Diff::measure`].
    pub fn list_with_sources(&self, query: &Query, n: usize, sources: &dyn SourceCode) -> Result<Listing> {
        let has_text = |r: &Routine| r.places != (None, None);
        let (summary, routines) =
            self.routines(query, &|_| true, sources, |all| all.filter(has_text).take(n).collect())?;
        Ok(Listing { of: Listed::Lines, summary, routines })
    }

    /// The first `n` functions whose name in their binaries matches, instruction by instruction. Where the binaries are,
    /// [`LoadOptions::with_binaries`](crate::LoadOptions::with_binaries) told when the profiles were loaded. The query's
    /// granularity does not matter: it is `addresses`, without inlined frames, since an address is one instruction.
    ///
    /// Operations, registers and the names of what is called are compared; addresses are not.
    ///
    /// # Errors
    /// As [`Diff::measure`]; an invalid regular expression; a binary is missing, or for another machine than x86-64 and
    /// arm64.
    pub fn disasm(&self, query: &Query, pattern: &str, n: usize) -> Result<Listing> {
        #[cfg(feature = "disasm")]
        return self.disassembled(query, pattern, n);
        #[cfg(not(feature = "disasm"))]
        {
            let _ = (query, pattern, n);
            Err(Error::query("this build has no instructions (no feature \"disasm\")"))
        }
    }

    /// Of the functions whose names match, those without code of their own, for whom [`Diff::disasm`] has nothing: wherever
    /// the profiles have them, they are inlined.
    ///
    /// # Errors
    /// An invalid regular expression.
    pub fn only_inlined(&self, pattern: &str) -> Result<Vec<Inlined>> {
        let regex = super::pattern::compile("disasm", pattern)?;
        Ok(inlined::only_inlined(self.profiles().map(|(_, profile)| profile), &|name| regex.is_match(name)))
    }

    /// Of a build without the feature `list`.
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
