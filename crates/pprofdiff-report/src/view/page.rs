//! The view `page`: an interactive HTML page.

use super::{ViewContext, ViewSpec};
use crate::page::{PageOptions, page};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::list::{SourceCode, SourceDirs};

pub(crate) const VIEW: ViewSpec = ViewSpec { name: "page", about: "Write an interactive HTML page", ..ViewSpec::BASE };

pub(crate) fn answer(context: &ViewContext<'_>, options: &PageOptions, sources: Option<&SourceDirs>) -> Result<Report> {
    let files = sources.map(SourceDirs::files);
    Ok(Report::Page(page(context.diff, context.query, options, files.as_ref().map(|f| f as &dyn SourceCode))?))
}
