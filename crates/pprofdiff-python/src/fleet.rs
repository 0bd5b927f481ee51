//! Rankings of many pairs: the collector behind batch(...).ranking(), and its result.

use std::sync::Mutex;

use pprofdiff::Error;
use pprofdiff_report::{Report, Style, Table as EngineTable};
use pprofdiff_series::fleet::{Fleet, PairCauses};
use pyo3::prelude::*;

use crate::batch::describe;
use crate::keywords::in_keywords;
use crate::profile::{Pickled, pickled};
use crate::table::{Table, text};
use crate::within::{head_within, text_within};
use crate::{REGISTRY, error};

/// The causes of one pair, as a worker returns them.
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

fn causes_of(made: &Bound<'_, PyAny>) -> pprofdiff::Result<PairCauses> {
    match made.cast::<Causes>() {
        Ok(causes) => Ok(causes.get().0.clone()),
        Err(_) => Err(Error::query(describe(made))),
    }
}

/// A collector of pairs for a ranking.
#[pyclass(name = "_Fleet", module = "pprofdiff._native")]
pub struct FleetCollector(Mutex<Fleet>);

#[pymethods]
impl FleetCollector {
    #[new]
    fn new() -> FleetCollector {
        FleetCollector(Mutex::new(Fleet::default()))
    }

    /// Adds the causes of a pair, or its exception.
    fn push(&mut self, name: &str, made: &Bound<'_, PyAny>) {
        let causes = causes_of(made);
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).push(name, causes);
    }

    /// Returns the sample type of the ranking, and the positions of the pairs that have it, but were measured in another
    /// one. Both are None if no pair has to be measured again.
    fn again(&mut self) -> Option<(String, Vec<usize>)> {
        let fleet = self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let positions = fleet.to_measure_again();
        Some((fleet.sample_type()?.to_owned(), positions)).filter(|(_, positions)| !positions.is_empty())
    }

    /// Replaces the causes of the pair at a position, or its exception.
    fn replace(&mut self, position: usize, made: &Bound<'_, PyAny>) {
        let causes = causes_of(made);
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).replace(position, causes);
    }

    fn ranking(&mut self, py: Python<'_>, fdr: f64) -> PyResult<Ranking> {
        let fleet = std::mem::take(self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        Ranking::new(py, fleet, fdr)
    }
}

/// Many pairs ranked by their changes beyond chance, and the causes that several of them share. Returned by
/// Batch.ranking().
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

/// Returns the ranking, with the options in its warnings spelled as keywords.
fn ranked(fleet: &Fleet, fdr: f64) -> pprofdiff::Result<pprofdiff_series::fleet::Ranking> {
    let mut ranking = fleet.clone().ranking(fdr)?;
    ranking.summary = in_keywords(&ranking.summary);
    Ok(ranking)
}

impl Ranking {
    fn new(py: Python<'_>, fleet: Fleet, fdr: f64) -> PyResult<Ranking> {
        let made = |e: &Error| error::from_engine(py, e);
        let ranking = ranked(&fleet, fdr).map_err(|e| made(&e))?;
        let failed = ranking.failed.iter().map(|failed| (failed.pair.clone(), failed.error.clone())).collect();
        let (changed, pairs) = (ranking.changed, EngineTable::ranked_pairs(&ranking));
        let clusters = EngineTable::shared_causes(&ranking);
        let common = EngineTable::common_changes(&ranking);
        let report = Report::Ranking(Box::new(ranking));
        let written = |format: &str| {
            let format = REGISTRY.format(format)?;
            Ok::<_, Error>(text(|out| format.write(&report, out, Style::default())))
        };
        let all = || Ok::<_, Error>((written("text")?, written("markdown")?, written("json")?));
        let (text, markdown, json) = all().map_err(|e| made(&e))?;
        let text = text.trim_end().to_owned();
        Ok(Ranking { fleet, fdr, changed, failed, pairs, clusters, common, text, markdown, json })
    }
}

#[pymethods]
impl Ranking {
    /// The number of pairs that changed beyond chance. They are the first rows of `pairs`.
    #[getter]
    fn changed(&self) -> usize {
        self.changed
    }

    /// The pairs as a Table, one row per pair. Pairs that changed beyond chance come first, ordered by the
    /// change that causes explain (causes_delta). Columns: pair, function and cause (the largest cause as text, for
    /// pairs that changed), base, new and delta (totals), causes_delta (the sum of the changes of the pair's
    /// causes) and q (the smallest false discovery rate at which the pair counts as changed).
    #[getter]
    fn pairs(&self) -> Table {
        Table::new(self.pairs.clone())
    }

    /// The causes that several pairs share as a Table, one row per cause, largest change first. Columns: function,
    /// callee, caller_package (if all pairs agree), pair (the pair with the largest change), cause (as text), pairs
    /// (their number), base, new and delta (summed over the pairs) and share (delta divided by the sum of all base
    /// totals).
    #[getter]
    fn clusters(&self) -> Table {
        Table::new(self.clusters.clone())
    }

    /// The functions whose own cost changed alike in many pairs, although the change is within chance in each
    /// of them. One row per function, largest change first. Columns: function, pairs (their number), base
    /// (scaled to the new sides' amounts of work), new and delta (summed over the pairs), share (delta divided
    /// by the sum of all base totals) and q.
    #[getter]
    fn common(&self) -> Table {
        Table::new(self.common.clone())
    }

    /// The pairs that could not be compared, as a list of (name, reason).
    #[getter]
    fn failed(&self) -> Vec<(String, String)> {
        self.failed.clone()
    }

    /// Return the whole ranking as a dict, schema pprofdiff/1, kind ranking.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// Return the whole ranking as JSON.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// Return the ranking as text. With max_tokens (at least 50), the text has at most that many tokens, counted
    /// as by the command's --budget: the first rows of each table, and the number of omitted rows.
    #[pyo3(signature = (*, max_tokens = None))]
    fn to_text(&self, py: Python<'_>, max_tokens: Option<usize>) -> PyResult<String> {
        if max_tokens.is_none() {
            return head_within(py, None, &self.text);
        }
        let ranking = ranked(&self.fleet, self.fdr).map_err(|e| error::from_engine(py, &e))?;
        let report = Report::Ranking(Box::new(ranking));
        text_within(py, max_tokens, None, move |format, budget| report.within(format, budget))
    }

    /// Return the ranking as Markdown.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    /// Return the ranking as a self-contained HTML page. Each shared cause and each changed pair
    /// expands to its explanation.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let ranking = ranked(&self.fleet, self.fdr).map_err(|e| error::from_engine(py, &e))?;
        let html = REGISTRY.format("html").map_err(|e| error::from_engine(py, &e))?;
        Ok(text(|out| html.write(&Report::Ranking(Box::new(ranking)), out, Style::default())))
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
