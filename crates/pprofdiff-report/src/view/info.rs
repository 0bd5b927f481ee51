//! Show what is in the files: sample types, totals, times, mappings.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "info",
    about: "Show what is in the files: sample types, totals, times, mappings",
    scope: Scope::Everything,
    of: Of::OneType,
    matched: None,
    shown_by: ShownBy::Json,
    of_pairs: None,
};

pub(crate) fn answer(asked: &Question<'_>) -> Report {
    Report::Info(asked.diff.clone())
}
