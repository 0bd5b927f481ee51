//! Show the callers and callees of all frames.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::{Kind, Table};
use pprofdiff::options::Scope;
use pprofdiff::{Result, Sort};

pub(crate) const VIEW: View = View {
    name: "tree",
    about: "Show the callers and callees of all frames",
    scope: Scope::Sums,
    of: Of::SeveralTypes,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Tree { sort: Sort::default(), limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, sort: Sort, limit: usize) -> Result<Report> {
    let edges = asked.each(|measure| measure.edges(None, sort))?;
    Ok(Report::Table(Table::all_edges(&edges, Kind::Tree).head(limit)))
}
