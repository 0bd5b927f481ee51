//! The view `roots`: the callers of matching frames, as whole chains from the root.

use super::{Form, MatchTarget, RowLimit, View, ViewContext, ViewOptions, ViewSpec};
use crate::report::Report;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "roots",
    about: "Show the callers of matching frames, as whole chains from the root",
    scope: Scope::Rows,
    matched: MatchTarget::FRAMES,
    forms: Form::OF_ROWS,
    view: Some(|ViewOptions { regex, .. }| View::Roots { regex, limit: None }),
    of_pairs: true,
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, regex: &str, limit: usize) -> Result<Report> {
    Ok(Report::Table(Table::stacks(&context.single_measure()?.roots(regex)?, limit)))
}
