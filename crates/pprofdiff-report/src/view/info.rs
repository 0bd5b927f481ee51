//! The view `info`: the metadata of the input files.

use super::{Form, ViewContext, ViewSpec};
use crate::report::Report;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "info",
    about: "Show the contents of the files: sample types, totals, times, mappings",
    forms: Form::TEXT_AND_JSON,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>) -> Report {
    Report::Info(context.diff.clone())
}
