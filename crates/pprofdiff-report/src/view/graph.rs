//! The view `graph`: the call graph.

use super::{Form, RowLimit, Takes, ViewContext, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::graph::GraphOptions;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "graph",
    about: "Draw the call graph",
    scope: Scope::Frames,
    forms: &[Form::Graph],
    limit: RowLimit::Nodes,
    takes: &[Takes::CallTree],
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, options: &GraphOptions) -> Result<Report> {
    Ok(Report::Graph(context.single_measure()?.graph(options)?))
}
