//! The view `disasm`: instructions of matching functions with their costs. Requires binaries.

use super::{Form, MatchTarget, RowLimit, View, ViewContext, ViewOptions, ViewSpec};
use crate::report::Report;
use pprofdiff::options::Scope;
use pprofdiff::{Diff, Result};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "disasm",
    about: "Show the instructions of matching functions with their costs (needs --binary)",
    scope: Scope::Rows,
    matched: Some(MatchTarget { noun: "function", about: "Matched against each function's name in its binary" }),
    forms: &[Form::Text, Form::Json, Form::Page],
    view: Some(|ViewOptions { regex, .. }| View::Disasm { regex, limit: None }),
    limit: RowLimit::Functions,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Listing(context.diff.disasm(context.query, regex, limit)?))
}

/// Returns the reason why no function matches, if the matching functions are inlined and have no instructions of their
/// own, or if the profiles have their names without addresses.
pub(crate) fn unmatched(diff: &Diff, regex: &str) -> Result<Option<String>> {
    let inlined = diff.only_inlined(regex)?;
    if let Some(inlined) = inlined.first() {
        let (function, places) = (&inlined.function, inlined.places());
        return Ok(Some(format!("{function} has no instructions of its own: it is inlined into {places}")));
    }
    Ok(diff.matching_function(regex)?.map(|function| {
        format!(
            "{function} is in the profiles, but no address of its instructions in a binary; record addresses (pprof, \
             perf.data) and name the binaries (--binary)"
        )
    }))
}
