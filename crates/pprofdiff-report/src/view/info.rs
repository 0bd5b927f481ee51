//! Show what is in the files: sample types, totals, times, mappings.

use super::{Question, ShownBy, View};
use crate::report::Report;

pub(crate) const VIEW: View = View {
    name: "info",
    about: "Show what is in the files: sample types, totals, times, mappings",
    shown_by: ShownBy::Json,
    ..View::BASE
};

pub(crate) fn answer(asked: &Question<'_>) -> Report {
    Report::Info(asked.diff.clone())
}
