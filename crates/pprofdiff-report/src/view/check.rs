//! Check changes against limits, for CI; the exit code is the outcome.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::CheckOptions;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: View = View {
    name: "check",
    about: "Check changes against limits, for CI; the exit code is the outcome",
    scope: Scope::Everything,
    of: Of::OneType,
    matched: None,
    shown_by: ShownBy::Json,
    of_pairs: None,
};

pub(crate) fn answer(asked: &Question<'_>, options: &CheckOptions) -> Result<Report> {
    Ok(Report::Check(options.rules()?.check(asked.diff, asked.query)?))
}
