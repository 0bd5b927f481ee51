//! Show whole stacks with their labels, from the leaf, as pprof does.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "traces",
    about: "Show whole stacks with their labels, from the leaf, as pprof does",
    scope: Scope::Rows,
    of: Of::OneType,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Traces { limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, limit: usize) -> Result<Report> {
    Ok(Report::Traces(Table::stacks(&asked.one()?.stacks(true), limit)))
}
