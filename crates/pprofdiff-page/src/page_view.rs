//! The view `page`: an interactive HTML page.

use serde::{Deserialize, Serialize};

use crate::page::{PageOptions, page};
use pprofdiff::Result;
use pprofdiff::list::{SourceCode, SourceDirs};
use pprofdiff_report::{ExtensionView, Form, Report, RowLimit, Takes, ViewContext, ViewInput, ViewSpec};

pub(crate) static VIEW: ViewSpec = ViewSpec::extension::<PageView>(
    "page",
    "Write an interactive HTML page",
    ViewInput::OneType,
)
.shown_as(&[Form::Page], &[Takes::Sources], RowLimit::Refused("for a page, use `min_width` and `max_frames`"));

/// The HTML page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageView {
    /// The content of the page.
    pub options: PageOptions,
    /// The folders of the sources. Without them, the page has no source lines.
    pub sources: Option<SourceDirs>,
}

impl ExtensionView for PageView {
    fn spec() -> &'static ViewSpec {
        &VIEW
    }

    fn answer(&self, context: &ViewContext<'_>) -> Result<Report> {
        let files = self.sources.as_ref().map(SourceDirs::files);
        let sources = files.as_ref().map(|f| f as &dyn SourceCode);
        Ok(Report::Document(Box::new(page(context.diff, context.query, &self.options, sources)?)))
    }
}
