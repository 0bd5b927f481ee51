//! Show source lines with their costs, of functions that match.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "list",
    about: "Show source lines with their costs, of functions that match",
    scope: Scope::Rows,
    of: Of::OneType,
    matched: Some("function"),
    shown_by: ShownBy::Json,
    of_pairs: None,
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, sources: &SourceDirs, limit: usize) -> Result<Report> {
    Ok(Report::Listing(asked.diff.list(asked.query, regex, &sources.files())?.head(limit)))
}
