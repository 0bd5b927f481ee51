//! Show the callers of frames that match, as whole chains from the root.

use super::{Matched, Question, ShownBy, View, ViewOptions, ViewSpec};
use crate::report::Report;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "roots",
    about: "Show the callers of frames that match, as whole chains from the root",
    scope: Scope::Rows,
    matched: Matched::FRAMES,
    shown_by: ShownBy::Rows,
    view: Some(|ViewOptions { regex, .. }| View::Roots { regex, limit: None }),
    of_pairs: true,
    ..ViewSpec::BASE
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Table(Table::stacks(&asked.one()?.roots(regex)?, limit)))
}
