//! Print all samples, locations and mappings as text, as pprof does.

use std::sync::Arc;

use super::{Question, ShownBy, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "raw",
    about: "Print all samples, locations and mappings as text, as pprof does",
    shown_by: ShownBy::Text,
    ..ViewSpec::BASE
};

pub(crate) fn answer(asked: &Question<'_>) -> Result<Report> {
    let diff = asked.diff;
    // A file is shown as it is, also where it says which frames to drop.
    Ok(match diff.new_side().next().filter(|_| diff.profiles().count() == 1) {
        Some(own) => Report::Raw(own.clone(), false),
        None => Report::Raw(Arc::new(diff.to_profile_as_read(asked.query)?), true),
    })
}
