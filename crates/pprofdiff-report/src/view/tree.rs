//! Show the callers and callees of all frames.

use super::peek::EDGES;
use super::{Of, Question, ShownBy, Takes, View, ViewOptions, ViewSpec};
use crate::report::Report;
use crate::table::{Kind, Table};
use pprofdiff::edges::Edges;
use pprofdiff::options::Scope;
use pprofdiff::{Result, Sort};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "tree",
    about: "Show the callers and callees of all frames",
    scope: Scope::Sums,
    of: Of::SeveralTypes,
    shown_by: ShownBy::Rows,
    kinds: &[&TREE],
    view: Some(|ViewOptions { sort, .. }| View::Tree { sort, limit: None }),
    of_pairs: true,
    takes: &[Takes::Sort],
    ..ViewSpec::BASE
};

/// Callers and callees of all frames.
pub(crate) static TREE: Kind = Kind { name: "tree", ..EDGES };

pub(crate) fn answer(asked: &Question<'_>, sort: Sort, limit: usize) -> Result<Report> {
    let edges = asked.each(|measure| measure.edges(None, sort))?;
    Ok(Report::Table(Table::all_edges(&edges, &TREE).head(limit)))
}

impl Table {
    /// Callers and callees, one edge a row, grouped by node. Columns: node, other (in pprof's words on
    /// one line), relation; for two sides `base, new, delta`, else `weight`.
    pub fn tree(of: &Edges) -> Table {
        Table::edges(of, &TREE)
    }
}
