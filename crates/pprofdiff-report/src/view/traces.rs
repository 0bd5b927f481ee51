//! The view `traces`: whole stacks with their labels from the leaf, like `-traces` of pprof.

use super::{Form, RowLimit, View, ViewContext, ViewSpec};
use crate::report::Report;
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "traces",
    about: "Show whole stacks with their labels from the leaf, like pprof -traces",
    scope: Scope::Rows,
    forms: Form::OF_ROWS,
    view: Some(|_| View::Traces { limit: None }),
    of_pairs: true,
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, limit: usize) -> Result<Report> {
    Ok(Report::Traces(Table::stacks(&context.single_measure()?.stacks(true), limit)))
}
