//! Draw the call graph.

use super::{Question, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::graph::GraphOptions;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec =
    ViewSpec { name: "graph", about: "Draw the call graph", scope: Scope::Frames, ..ViewSpec::BASE };

pub(crate) fn answer(asked: &Question<'_>, options: &GraphOptions) -> Result<Report> {
    Ok(Report::Graph(asked.one()?.graph(options)?))
}
