//! Show whole stacks.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "stacks",
    about: "Show whole stacks",
    scope: Scope::Rows,
    of: Of::SeveralTypes,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Stacks { by_labels: false, limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, by_labels: bool, limit: usize) -> Result<Report> {
    if asked.query.extra_sample_types.is_empty() {
        return Ok(Report::Stacks(asked.one()?.stacks(by_labels), limit));
    }
    let stacks = asked.each(|measure| Ok(measure.stacks(by_labels)))?;
    Ok(Report::Table(Table::all_stacks(&stacks).head(limit)))
}
