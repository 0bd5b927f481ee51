//! The view `raw`: all samples, locations and mappings as text, like `go tool pprof -raw`.

use std::sync::Arc;

use super::{Form, ViewContext, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "raw",
    about: "Print all samples, locations and mappings as text, like pprof -raw",
    forms: &[Form::Text],
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>) -> Result<Report> {
    let diff = context.diff;
    // Show a single file unchanged, including the frames that its `drop_frames` names.
    Ok(match diff.new_side().next().filter(|_| diff.profiles().count() == 1) {
        Some(single_profile) => Report::Raw(single_profile.clone(), false),
        None => Report::Raw(Arc::new(diff.to_profile_as_read(context.query)?), true),
    })
}
