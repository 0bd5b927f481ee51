//! Write the diff as one profile.

use super::{Question, ViewSpec};
use crate::report::Report;
use pprofdiff::{Result, WriteOptions};

pub(crate) const VIEW: ViewSpec =
    ViewSpec { name: "profile", about: "Write the diff as one profile", ..ViewSpec::BASE };

pub(crate) fn answer(asked: &Question<'_>, options: &WriteOptions) -> Result<Report> {
    Ok(Report::Profile(asked.diff.to_bytes(asked.query, options)?))
}
