//! Show the callers of frames that match, as whole chains from the root.

use super::{Ask, Matched, Question, ShownBy, View, ViewOptions};
use crate::report::Report;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "roots",
    about: "Show the callers of frames that match, as whole chains from the root",
    scope: Scope::Rows,
    matched: Matched::FRAMES,
    shown_by: ShownBy::Rows,
    ask: Some(|ViewOptions { regex, .. }| Ask::Roots { regex, limit: None }),
    of_pairs: true,
    ..View::BASE
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Table(Table::stacks(&asked.one()?.roots(regex)?, limit)))
}
