//! Answers the views' requests for [`Views`], with the GIL released, and reuses the last selection.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pprofdiff::list::SourceDirs;
use pprofdiff::{Normalize, Query, Selection, WriteOptions};
use pprofdiff_page::{Page, PageOptions, PageView};
use pprofdiff_report::{Format, Report, Request, Style, Table as EngineTable, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::delta::warn;
use crate::keywords::{in_keywords, keywords};
use crate::options::view_query;
use crate::pictures::Listing;
use crate::table::{Table, text};
use crate::views::Views;
use crate::{REGISTRY, error, runtime};

/// The content of a page.
pub enum PageContent {
    /// The flame graph alone.
    Flame,
    /// The whole page, with source lines if folders are given.
    All(Option<SourceDirs>),
}

/// Writes a report to memory. Fails if the format can't show it, such as a call graph with too many frames.
pub fn to_string(format: &Format, report: &Report) -> pprofdiff::Result<String> {
    let mut written = Ok(());
    let output = text(|out| {
        written = format.write(report, out, Style::default());
        Ok(())
    });
    written.map(|()| output).map_err(|e| pprofdiff::Error::query(e.to_string()))
}

impl Views {
    /// Returns the query of filter() and normalize(), extended with a view's keywords.
    pub fn query_with(&self, py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
        view_query(py, &self.query, given)
    }

    /// Selects the samples and frames of a query by its filters and granularity. Reuses the last selection if these are
    /// the same.
    pub fn select(
        diff: &pprofdiff::Diff,
        selected: &Mutex<Option<(Query, Selection)>>,
        query: &Query,
    ) -> pprofdiff::Result<Selection> {
        let mut selection_query = query.clone().with_normalize(Normalize::None);
        (selection_query.sample_type, selection_query.extra_sample_types) = (None, Vec::new());
        let last = selected.lock().ok().and_then(|last| last.clone());
        if let Some((_, selection)) = last.filter(|(query, _)| *query == selection_query) {
            return Ok(selection);
        }
        let selection = pprofdiff_explain::select(diff, &selection_query)?;
        if let Ok(mut last) = selected.lock() {
            *last = Some((selection_query, selection.clone()));
        }
        Ok(selection)
    }

    /// Answers a request with the GIL released. Warns if an expression matches nothing, which is most likely a mistake.
    pub fn report(&self, py: Python<'_>, request: Request) -> PyResult<Report> {
        let (diff, selected) = (self.diff.clone(), self.selected.clone());
        let (report, unmatched) = runtime::run(py, move || {
            let report = request.answer_with(&diff, |query| Views::select(&diff, &selected, query))?;
            let unmatched = request.unmatched(&report, &diff)?;
            Ok((report, unmatched))
        })?;
        warn(py, unmatched)?;
        let filters = report.summary().into_iter().flat_map(|summary| &summary.warnings);
        let filters = filters.filter(|warning| warning.ends_with(" matched nothing"));
        filters.cloned().try_for_each(|warning| warn(py, Some(warning)))?;
        Ok(report)
    }

    pub fn table(&self, py: Python<'_>, query: Query, view: View) -> PyResult<Table> {
        match self.report(py, Request { query, view })?.table() {
            Some(table) => Ok(Table::new(table.into_owned())),
            None => Err(PyTypeError::new_err("this view is not a table")),
        }
    }

    pub fn listing(&self, py: Python<'_>, request: Request) -> PyResult<Listing> {
        match self.report(py, request)? {
            Report::Listing(mut listing) => {
                listing.summary = in_keywords(&listing.summary);
                runtime::run(py, move || Ok(Listing::new(listing)))
            }
            _ => Err(PyTypeError::new_err("this view is not a listing")),
        }
    }

    /// Returns the answer to a request as text in a format.
    pub fn written(&self, py: Python<'_>, query: Query, view: View, format: &str) -> PyResult<String> {
        let engine = |e| error::from_engine(py, &e);
        let format = REGISTRY.format(format).map_err(engine)?;
        let request = Request { query, view }.for_format(format, &REGISTRY).map_err(engine)?;
        let report = self.report(py, request)?;
        for warning in (format.leaves_out)(&report) {
            warn(py, Some(warning))?;
        }
        runtime::run(py, move || to_string(format, &report))
    }

    /// Returns the format that the name of a file for write() asks for, or `None` for a profile.
    pub fn format_of_path(&self, py: Python<'_>, path: &Path) -> PyResult<Option<&'static Format>> {
        if path.extension().is_none() {
            return Ok(None);
        }
        let request = Request { query: self.query.clone(), view: View::default() };
        let is_written = |format: &&Format| request.for_format(format, &REGISTRY).is_ok();
        match REGISTRY.format_of_path(path) {
            Ok(format) if format.name == "pprof" => Ok(None),
            Ok(format) if is_written(&format) => Ok(Some(format)),
            _ => {
                let formats = REGISTRY.formats().iter().copied().filter(is_written);
                let endings: Vec<String> = formats.map(|f| format!(".{} ({})", f.extensions[0], f.name)).collect();
                let (path, endings) = (path.display(), endings.join(", "));
                Err(error::message(
                    py,
                    &format!("{path}: unknown file extension; use one of {endings}, or compression= for a profile"),
                ))
            }
        }
    }

    /// Returns the table of frames with default options.
    pub fn default_table(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, self.query.clone(), View::default())
    }

    /// Returns the default table as `format` shows it, for a repr. If the view fails, returns the error
    /// message instead, because a repr must not fail.
    pub fn show(&self, py: Python<'_>, format: fn(&EngineTable) -> String) -> PyResult<String> {
        let (diff, query, selected) = (self.diff.clone(), self.query.clone(), self.selected.clone());
        runtime::run(py, move || {
            let request = Request { query, view: View::default() };
            let answer = request.answer_with(&diff, |query| Views::select(&diff, &selected, query));
            let shown = answer.map(|report| {
                report.table().map_or_else(String::new, |mut table| {
                    let summary = in_keywords(&table.summary);
                    if !Arc::ptr_eq(&summary, &table.summary) {
                        table.to_mut().summary = summary;
                    }
                    format(&table)
                })
            });
            Ok(shown.unwrap_or_else(|e| format!("pprofdiff: {}", keywords(&e.to_string()))))
        })
    }

    /// Returns the page, or only its flame graph.
    pub fn page(
        &self,
        py: Python<'_>,
        query: Query,
        min_width: Option<f64>,
        max_frames: Option<usize>,
        content: PageContent,
    ) -> PyResult<Page> {
        let (only_flame, sources) = match content {
            PageContent::Flame => (true, None),
            PageContent::All(sources) => (false, sources),
        };
        let default = PageOptions::default();
        let page = PageOptions {
            min_width: min_width.unwrap_or(default.min_width),
            max_frames: max_frames.unwrap_or(default.max_frames),
            only_flame,
            ..default
        };
        if !(0.0..=1.0).contains(&page.min_width) {
            return Err(error::message(py, &format!("min_width must be a number from 0 to 1, not {}", page.min_width)));
        }
        let view = View::extension(PageView { options: page, sources });
        match self.report(py, Request { query, view })? {
            Report::Document(document) => document.downcast(),
            _ => None,
        }
        .ok_or_else(|| PyTypeError::new_err("this view is not a page"))
    }

    /// Serializes the profile, or the diff as a profile.
    pub fn packed(&self, py: Python<'_>, options: WriteOptions) -> PyResult<Vec<u8>> {
        let (diff, query, profile) = (self.diff.clone(), self.query.clone(), self.profile.clone());
        runtime::run(py, move || match profile {
            Some(profile) => profile.to_bytes(&options),
            None => diff.to_bytes(&query, &options),
        })
    }
}
