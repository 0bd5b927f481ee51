//! Show what each label's values cost.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "labels",
    about: "Show what each label's values cost",
    scope: Scope::Rows,
    of: Of::SeveralTypes,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Labels { limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, limit: usize) -> Result<Report> {
    let labels = asked.each(|measure| Ok(measure.labels()))?;
    Ok(Report::Table(Table::all_labels(&labels).head(limit)))
}
