//! The view `courses`: the HTML page of many builds.

use serde::{Deserialize, Serialize};

use crate::page::PageOptions;
use crate::series::series_page;
use pprofdiff::{LoadOptions, Result, Sort};
use pprofdiff_report::shared::Timelines;
use pprofdiff_report::{ExtensionView, Form, Report, RowLimit, Takes, ViewInput, ViewSpec};
use pprofdiff_series::Series;

pub(crate) static VIEW: ViewSpec = ViewSpec::extension::<TimelinesView>(
    "courses",
    "Write an HTML page of many builds, with each frame's cost over time and flame graphs of before and after",
    ViewInput::Builds,
)
// The page always explains lasting changes.
.shown_as(&[Form::Page], &[Takes::Explain], RowLimit::Rows);

/// The HTML page of many builds, with the cost of each frame over time and flame graphs of before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelinesView {
    /// True to select frames by their lasting changes, false to select them by their largest steps.
    pub lasting: bool,
    /// The cost that ranks frames.
    pub sort: Sort,
    /// The maximum number of rows.
    pub limit: Option<usize>,
    /// The content of the page.
    pub options: PageOptions,
}

impl ExtensionView for TimelinesView {
    fn spec() -> &'static ViewSpec {
        &VIEW
    }

    fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        Some(&mut self.limit)
    }

    fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        let timelines = Timelines::new(series, self.lasting, self.sort, self.limit.unwrap_or(usize::MAX));
        Ok(Report::Document(Box::new(series_page(series, &timelines, self.sort, &self.options, load)?)))
    }
}
