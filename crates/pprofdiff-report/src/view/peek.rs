//! Show the callers and callees of frames that match.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::{Kind, Table};
use pprofdiff::options::Scope;
use pprofdiff::{Result, Sort};

pub(crate) const VIEW: View = View {
    name: "peek",
    about: "Show the callers and callees of frames that match",
    scope: Scope::Sums,
    of: Of::SeveralTypes,
    matched: Some("frame"),
    shown_by: ShownBy::Rows,
    of_pairs: Some(|regex| Ask::Peek { regex: regex.to_owned(), sort: Sort::default(), limit: None }),
};

pub(crate) fn answer(asked: &Question<'_>, regex: &str, sort: Sort, limit: usize) -> Result<Report> {
    let edges = asked.each(|measure| measure.edges(Some(regex), sort))?;
    Ok(Report::Table(Table::all_edges(&edges, Kind::Peek).head(limit)))
}
