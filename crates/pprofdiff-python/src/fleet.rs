//! Many pairs in one answer: what batch(...).ranking() collects, and what it gives.

use std::sync::Mutex;

use pprofdiff::Error;
use pprofdiff::fleet::{Fleet, PairCauses};
use pprofdiff_report::{Format, Report, Style, Table as EngineTable};
use pyo3::prelude::*;

use crate::batch::describe;
use crate::error;
use crate::profile::{Pickled, pickled};
use crate::table::{Table, text};

/// What is kept of a pair: it comes from a worker.
#[pyclass(frozen, name = "_PairCauses", module = "pprofdiff._native")]
pub struct Causes(pub PairCauses);

#[pymethods]
impl Causes {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_causes", postcard::to_stdvec(&slf.get().0))
    }
}

#[pyfunction(name = "_rebuild_causes")]
pub fn rebuild_causes(bytes: &[u8]) -> PyResult<Causes> {
    Ok(Causes(postcard::from_bytes(bytes).map_err(error::pickle)?))
}

/// Pairs as they come.
#[pyclass(name = "_Fleet", module = "pprofdiff._native")]
pub struct Collected(Mutex<Fleet>);

#[pymethods]
impl Collected {
    #[new]
    fn new() -> Collected {
        Collected(Mutex::new(Fleet::default()))
    }

    /// Takes what became of a pair: its causes, or an exception.
    fn push(&mut self, name: &str, made: &Bound<'_, PyAny>) {
        let found = match made.cast::<Causes>() {
            Ok(causes) => Ok(causes.get().0.clone()),
            Err(_) => Err(Error::query(describe(made))),
        };
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).push(name, found);
    }

    fn ranking(&mut self, py: Python<'_>, fdr: f64) -> PyResult<Ranking> {
        let fleet = std::mem::take(self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        Ranking::new(py, fleet, fdr)
    }
}

/// Many pairs by what changed beyond chance, and the causes that several of them share. Made by Batch.ranking().
#[pyclass(frozen, module = "pprofdiff")]
pub struct Ranking {
    fleet: Fleet,
    fdr: f64,
    changed: usize,
    failed: Vec<(String, String)>,
    pairs: EngineTable,
    clusters: EngineTable,
    common: EngineTable,
    text: String,
    markdown: String,
    json: String,
}

impl Ranking {
    fn new(py: Python<'_>, fleet: Fleet, fdr: f64) -> PyResult<Ranking> {
        let made = |e: &Error| error::from_engine(py, e);
        let ranking = fleet.clone().ranking(fdr).map_err(|e| made(&e))?;
        let failed = ranking.failed.iter().map(|failed| (failed.pair.clone(), failed.error.clone())).collect();
        let (changed, pairs) = (ranking.changed, EngineTable::ranked_pairs(&ranking));
        let clusters = EngineTable::shared_causes(&ranking);
        let common = EngineTable::common_changes(&ranking);
        let report = Report::Ranking(Box::new(ranking));
        let written = |format: &str| {
            let format = Format::named(format)?;
            Ok::<_, Error>(text(|out| (format.write)(&report, out, Style::default())))
        };
        let all = || Ok::<_, Error>((written("text")?, written("markdown")?, written("json")?));
        let (text, markdown, json) = all().map_err(|e| made(&e))?;
        let text = text.trim_end().to_owned();
        Ok(Ranking { fleet, fdr, changed, failed, pairs, clusters, common, text, markdown, json })
    }
}

#[pymethods]
impl Ranking {
    /// How many pairs changed by more than chance: the first rows of pairs.
    #[getter]
    fn changed(&self) -> usize {
        self.changed
    }

    /// One pair a row: first those that changed by more than chance, the largest change by causes first. Columns:
    /// pair; function and cause (the largest, in words) of one that changed; base, new and delta of its totals; q, the
    /// least rate of false discoveries at which it changed.
    #[getter]
    fn pairs(&self) -> Table {
        Table::new(self.pairs.clone())
    }

    /// One cause a row that several pairs share, the largest change first. Columns: function, callee, caller_package
    /// (where all agree), pair (that with the largest change), cause (in its words), pairs (how many), base, new and
    /// delta (summed over them) and share, the delta as a part of all bases' totals.
    #[getter]
    fn clusters(&self) -> Table {
        Table::new(self.clusters.clone())
    }

    /// One function a row whose own cost changed alike in many pairs, in each within chance, the largest first.
    /// Columns: function, pairs (how many), base (at the new sides' amounts of work), new and delta (summed over them),
    /// share, the delta as a part of all bases' totals, and q.
    #[getter]
    fn common(&self) -> Table {
        Table::new(self.common.clone())
    }

    /// The pairs that could not be compared: their names, and why.
    #[getter]
    fn failed(&self) -> Vec<(String, String)> {
        self.failed.clone()
    }

    /// All that is known as a dict, schema pprofdiff/1, kind ranking.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// The same as JSON.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// The ranking as Markdown.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    /// The ranking as a page for a browser, which needs nothing else: each cause and pair opens with its account.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let ranking = self.fleet.clone().ranking(self.fdr).map_err(|e| error::from_engine(py, &e))?;
        let html = Format::named("html").map_err(|e| error::from_engine(py, &e))?;
        Ok(text(|out| (html.write)(&Report::Ranking(Box::new(ranking)), out, Style::default())))
    }

    fn _repr_markdown_(&self) -> &str {
        &self.markdown
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        pickled(slf.py(), "_rebuild_ranking", postcard::to_stdvec(&(&this.fleet, this.fdr)))
    }
}

#[pyfunction(name = "_rebuild_ranking")]
pub fn rebuild_ranking(py: Python<'_>, bytes: &[u8]) -> PyResult<Ranking> {
    let (fleet, fdr) = postcard::from_bytes(bytes).map_err(error::pickle)?;
    Ranking::new(py, fleet, fdr)
}
