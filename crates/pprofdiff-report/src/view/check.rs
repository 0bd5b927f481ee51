//! Check changes against limits, for CI; the exit code is the outcome.

use super::{Question, ShownBy, View};
use crate::report::Report;
use crate::request::CheckOptions;
use pprofdiff::Result;

pub(crate) const VIEW: View = View {
    name: "check",
    about: "Check changes against limits, for CI; the exit code is the outcome",
    shown_by: ShownBy::Json,
    ..View::BASE
};

pub(crate) fn answer(asked: &Question<'_>, options: &CheckOptions) -> Result<Report> {
    Ok(Report::Check(options.rules()?.check(asked.diff, asked.query)?))
}
