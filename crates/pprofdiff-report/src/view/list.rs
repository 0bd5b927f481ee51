//! The view `list`: source lines of matching functions with their costs.

use super::{Form, MatchTarget, RowLimit, Takes, View, ViewContext, ViewOptions, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Scope;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "list",
    about: "Show the source lines of matching functions with their costs",
    scope: Scope::Rows,
    matched: Some(MatchTarget { noun: "function", about: "Matched against each function's name" }),
    forms: &[Form::Text, Form::Json, Form::Page],
    view: Some(|ViewOptions { regex, sources, .. }| View::List { regex, sources, limit: None }),
    takes: &[Takes::Sources],
    limit: RowLimit::Functions,
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, regex: &str, sources: &SourceDirs, limit: usize) -> Result<Report> {
    Ok(Report::Listing(context.diff.list(context.query, regex, &sources.files())?.head(limit)))
}
