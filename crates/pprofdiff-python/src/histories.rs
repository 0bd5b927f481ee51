//! The Python class of several histories of builds, which series(group=...) returns.

use std::sync::Arc;

use pprofdiff::LoadOptions;
use pprofdiff_report::{HistoriesReport, Report, Request, Style, View};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::series::Series;
use crate::table::text;
use crate::{REGISTRY, error};

/// Several histories of builds, such as one per service; returned by series() with `group`. The histories with the
/// largest lasting change come first.
///
/// `histories["api"]` is the Series of one of them, and iterating yields the names. A name consists of the values of
/// the keys, joined by a slash.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Histories {
    names: Vec<String>,
    series: Vec<Py<Series>>,
    report: Report,
}

impl Histories {
    /// Answers with the lasting changes of each history.
    pub fn new(
        py: Python<'_>,
        histories: pprofdiff_series::histories::Histories,
        load: &LoadOptions,
    ) -> PyResult<Histories> {
        let view = View::Shifts { sort: histories.sort, limit: None, explain: None };
        let request = Request::default().asking(view);
        let report = request.answer_histories(&histories, usize::MAX, load).map_err(|e| error::from_engine(py, &e))?;
        let names = histories.all.iter().map(|history| history.values.join("/")).collect();
        let series = histories.all.into_iter().map(|history| Py::new(py, Series::of(Arc::new(history.series), load)));
        let series = series.collect::<PyResult<_>>()?;
        Ok(Histories { names, series, report })
    }

    fn of_report(&self) -> Option<&HistoriesReport> {
        if let Report::Histories(report) = &self.report { Some(report) } else { None }
    }

    fn written(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let format = REGISTRY.format(format).map_err(|e| error::from_engine(py, &e))?;
        Ok(text(|out| format.write(&self.report, out, Style::default())))
    }
}

#[pymethods]
impl Histories {
    /// The histories as a list of dicts, the largest lasting change first. Keys: the keys of the group, changes (the
    /// number of lasting changes), and of the largest one name (of the frame), kind, since (the most likely first build
    /// with it), before, after and delta. These are None without a lasting change of a frame's own cost. The key notes
    /// is a list of sentences about lasting changes of the total and of costs with callees that own costs do not show,
    /// and of warnings, such as that builds are the same profile.
    #[getter]
    fn ranking<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let Some(report) = self.of_report() else { return Ok(list) };
        for row in &report.rows {
            let dict = PyDict::new(py);
            for (key, value) in report.keys.iter().zip(&row.values) {
                dict.set_item(key, value)?;
            }
            let largest = row.largest.as_ref();
            dict.set_item("changes", row.changes)?;
            dict.set_item("name", largest.map(|change| &change.frame))?;
            dict.set_item("kind", largest.map(|change| change.kind))?;
            dict.set_item("since", largest.map(|change| &change.since))?;
            dict.set_item("before", largest.map(|change| change.value.base))?;
            dict.set_item("after", largest.map(|change| change.value.new))?;
            dict.set_item("delta", largest.map(|change| change.value.delta()))?;
            dict.set_item("notes", &row.notes)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// The histories that could not be loaded, as a list of (name, reason).
    #[getter]
    fn failed(&self) -> Vec<(String, String)> {
        let failed = self.of_report().into_iter().flat_map(|report| &report.failed);
        failed.map(|failed| (failed.values.join("/"), failed.error.clone())).collect()
    }

    /// Return the ranking as text.
    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        self.written(py, "text")
    }

    /// Return the ranking as a Markdown table.
    fn to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        self.written(py, "markdown")
    }

    /// Return the ranking and the lasting changes of each history as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.written(py, "json")
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Series>> {
        let index = self.names.iter().position(|n| n == name);
        index.map(|i| self.series[i].clone_ref(py)).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, &self.names)?.try_iter()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.to_text(py)?.trim_end().to_owned())
    }
}
