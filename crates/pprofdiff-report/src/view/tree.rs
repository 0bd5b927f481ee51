//! The view `tree`: the callers and callees of all frames.

use super::peek::EDGES;
use super::{Form, RowLimit, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};
use crate::report::Report;
use crate::table::{Kind, Table};
use pprofdiff::edges::Edges;
use pprofdiff::options::Scope;
use pprofdiff::{Result, Sort};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "tree",
    about: "Show the callers and callees of all frames",
    scope: Scope::Sums,
    input: ViewInput::SeveralTypes,
    forms: &[Form::Text, Form::Json, Form::Rows, Form::Prose, Form::Graph, Form::Calls],
    kinds: &[&TREE],
    view: Some(|ViewOptions { sort, .. }| View::Tree { sort, limit: None }),
    of_pairs: true,
    takes: &[Takes::Sort],
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

/// The kind of tables with the edges of all frames.
pub(crate) static TREE: Kind = Kind { name: "tree", ..EDGES };

pub(crate) fn answer(context: &ViewContext<'_>, sort: Sort, limit: usize) -> Result<Report> {
    let edges = context.per_sample_type(|measure| measure.edges(None, sort))?;
    Ok(Report::Table(Table::all_edges(&edges, &TREE).head(limit)))
}

impl Table {
    /// Builds a table with one edge between caller and callee per row, grouped by node. Columns: node, other (frames in
    /// one line, formatted like pprof), relation; `base, new, delta` for two sides, or `weight` for one.
    pub fn tree(edges: &Edges) -> Table {
        Table::edges(edges, &TREE)
    }
}
