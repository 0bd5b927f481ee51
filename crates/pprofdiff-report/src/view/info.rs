//! Show what is in the files: sample types, totals, times, mappings.

use super::{Question, ShownBy, ViewSpec};
use crate::report::Report;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "info",
    about: "Show what is in the files: sample types, totals, times, mappings",
    shown_by: ShownBy::Json,
    ..ViewSpec::BASE
};

pub(crate) fn answer(asked: &Question<'_>) -> Report {
    Report::Info(asked.diff.clone())
}
