//! Explain why two sides differ: the few causes, what only moved, and what is noise.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use pprofdiff::Result;
use pprofdiff::explain::ExplainOptions;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "explain",
    about: "Explain why two sides differ: the few causes, what only moved, and what is noise",
    scope: Scope::Everything,
    of: Of::SeveralTypes,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Explain(ExplainOptions::default())),
};

pub(crate) fn answer(asked: &Question<'_>, options: &ExplainOptions) -> Result<Report> {
    let query = asked.query;
    Ok(Report::Explain(Box::new(asked.diff.explain(query, &query.extra_sample_types, options)?)))
}
