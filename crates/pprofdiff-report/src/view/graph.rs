//! Draw the call graph.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::graph::GraphOptions;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "graph",
    about: "Draw the call graph",
    scope: Scope::Frames,
    of: Of::OneType,
    matched: None,
    shown_by: ShownBy::OwnFormats,
    of_pairs: None,
};

pub(crate) fn answer(asked: &Question<'_>, options: &GraphOptions) -> Result<Report> {
    Ok(Report::Graph(asked.one()?.graph(options)?))
}
