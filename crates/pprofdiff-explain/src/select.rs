//! Selections whose names follow moved code: the moves between the builds are found first, which needs the stacks of
//! both sides together.

use super::moves;
use pprofdiff::{Diff, Matching, Measure, Query, Result, Selection};

/// Selects like [`Diff::select`], and supports [`Matching::Moved`]. That costs as much as an explanation. It reads all
/// samples of the sample type that `explain` uses by default, so that all views of a pair agree about moves.
///
/// # Errors
/// Returns an error for an invalid query, such as one with an invalid regular expression or an unknown unit. The
/// profiles were checked when they were loaded.
pub fn select(diff: &Diff, query: &Query) -> Result<Selection> {
    match query.matching {
        Matching::Moved if diff.is_two_sided() => diff.select_with(query, &moves(diff)?),
        _ => diff.select(query),
    }
}

/// Runs a query: [`select`] and one [`Selection::measure`].
///
/// # Errors
/// Returns the errors of both.
pub fn measure(diff: &Diff, query: &Query) -> Result<Measure> {
    // The sample type is checked first, so that an unknown type costs nothing.
    diff.find_sample_type(query.sample_type.as_deref())?;
    select(diff, query)?.measure(query.sample_type.as_deref(), query.normalize)
}
