//! Show the callers of frames that match, as whole chains from the root.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "roots",
    about: "Show the callers of frames that match, as whole chains from the root",
    scope: Scope::Rows,
    of: Of::OneType,
    matched: Some("frame"),
    shown_by: ShownBy::Rows,
    of_pairs: Some(|regex| Ask::Roots { regex: regex.to_owned(), limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Table(Table::stacks(&asked.one()?.roots(regex)?, limit)))
}
