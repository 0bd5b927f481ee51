//! The view `profile`: the diff written as one profile.

use super::{Form, ViewContext, ViewSpec};
use crate::report::Report;
use pprofdiff::{Result, WriteOptions};

pub(crate) const VIEW: ViewSpec =
    ViewSpec { name: "profile", about: "Write the diff as one profile", forms: &[Form::Profile], ..ViewSpec::BASE };

pub(crate) fn answer(context: &ViewContext<'_>, options: &WriteOptions) -> Result<Report> {
    Ok(Report::Profile(context.diff.to_bytes(context.query, options)?))
}
