//! The view `courses`: the HTML page of many builds.

use super::{ViewInput, ViewSpec};
use crate::page::{PageOptions, series_page};
use crate::report::Report;
use crate::timelines::Timelines;
use pprofdiff::{LoadOptions, Result, Sort};
use pprofdiff_series::Series;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "courses",
    about: "Write an HTML page of many builds, with each frame's cost over time and flame graphs of before and after",
    input: ViewInput::Builds,
    ..ViewSpec::BASE
};

pub(crate) fn answer(
    series: &Series,
    lasting: bool,
    sort: Sort,
    limit: usize,
    options: &PageOptions,
    load: &LoadOptions,
) -> Result<Report> {
    let timelines = Timelines::new(series, lasting, sort, limit);
    Ok(Report::Page(series_page(series, &timelines, sort, options, load)?))
}
