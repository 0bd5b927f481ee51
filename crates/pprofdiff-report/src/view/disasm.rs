//! Show instructions with their costs, of functions that match (needs --binary).

use super::{Matched, Question, ShownBy, View, ViewOptions, ViewSpec};
use crate::report::Report;
use pprofdiff::options::Scope;
use pprofdiff::{Diff, Result};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "disasm",
    about: "Show instructions with their costs, of functions that match (needs --binary)",
    scope: Scope::Rows,
    matched: Some(Matched { what: "function", about: "Matched against each function's name in its binary" }),
    shown_by: ShownBy::Json,
    view: Some(|ViewOptions { regex, .. }| View::Disasm { regex, limit: None }),
    ..ViewSpec::BASE
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Listing(asked.diff.disasm(asked.query, regex, limit)?))
}

/// Why no function matches that an expression was meant for: it has no instructions of its own.
pub(crate) fn unmatched(diff: &Diff, regex: &str) -> Result<Option<String>> {
    let inlined = diff.only_inlined(regex)?;
    Ok(inlined.first().map(|inlined| {
        let (function, places) = (&inlined.function, inlined.places());
        format!("{function} has no instructions of its own: it is inlined into {places}")
    }))
}
