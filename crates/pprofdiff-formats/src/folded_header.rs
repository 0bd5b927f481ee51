//! The header of folded stacks that our own writer adds. It is outside of the reader, because builds without the reader
//! write it too.

use std::fmt;

#[cfg(feature = "folded")]
use crate::kit::lines::lines;
use pprofdiff_profile::text::sanitize;

/// The header line, which names the sample type and the columns of folded stacks. It does not end in a number, so flame
/// graph tools skip it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedHeader {
    /// The sample type.
    pub kind: String,
    /// Its unit.
    pub unit: String,
    /// True if each line has two numbers, first the base's and then the new side's.
    pub two_sided: bool,
}

/// The beginning of a header, and its possible ends.
pub(crate) const BEGIN: &str = "# pprofdiff-folded ";
const COLUMNS: [&str; 2] = [" value", " base new"];

impl fmt::Display for FoldedHeader {
    /// Writes the header without a line end. The first slash ends the type, so a slash inside the type becomes a colon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, unit, columns) = (self.kind.replace('/', ":"), &self.unit, COLUMNS[usize::from(self.two_sided)]);
        write!(f, "{BEGIN}{}/{}{columns}", sanitize(&kind), sanitize(unit))
    }
}

impl FoldedHeader {
    #[cfg(feature = "folded")]
    pub(crate) fn parse(line: &[u8]) -> Option<FoldedHeader> {
        let text = std::str::from_utf8(line.strip_prefix(BEGIN.as_bytes())?).ok()?;
        let (column, text) = COLUMNS.iter().enumerate().find_map(|(i, c)| Some((i, text.strip_suffix(c)?)))?;
        let (kind, unit) = text.split_once('/')?;
        Some(FoldedHeader { kind: kind.to_owned(), unit: unit.to_owned(), two_sided: column == 1 })
    }

    /// Returns the header of a text, if its first line that is not blank is a header.
    #[cfg(feature = "folded")]
    pub(crate) fn find(text: &[u8]) -> Option<FoldedHeader> {
        lines(text).find(|(_, line)| !line.is_empty()).and_then(|(_, line)| FoldedHeader::parse(line))
    }
}
