//! Write a page of many builds: the course of each frame, and flame graphs of before and after.

use super::{Of, ViewSpec};
use crate::page::{PageOptions, series_page};
use crate::report::Report;
use crate::timelines::Timelines;
use pprofdiff::series::Series;
use pprofdiff::{LoadOptions, Result, Sort};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "courses",
    about: "Write a page of many builds: the course of each frame, and flame graphs of before and after",
    of: Of::Builds,
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
