//! The view `check`: changes checked against limits, for CI.

use super::{ShownBy, ViewContext, ViewSpec};
use crate::report::Report;
use crate::request::CheckOptions;
use pprofdiff::Result;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "check",
    about: "Check changes against limits, for CI; the exit code is the outcome",
    shown_by: ShownBy::Json,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, options: &CheckOptions) -> Result<Report> {
    let (rules, explain) = options.rules()?;
    Ok(Report::Check(pprofdiff_explain::check(&rules, &explain, context.diff, context.query)?))
}
