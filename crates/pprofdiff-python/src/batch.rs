//! Many pairs: the Python classes of questions and results, the engine's batch as an iterator, and the comparison of
//! one pair on the calling thread, for workers of an executor. `python/pprofdiff/_batch.py` builds `batch` from these.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::ArrowError;
use pprofdiff::Query;
use pprofdiff::batch::Batch;
use pprofdiff_report::{Cost, Data, Measured, Report, Request, Role, View, key_column, pair_causes};
use pprofdiff_series::fleet::PairCauses;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyTuple, PyType};
use serde::{Deserialize, Serialize};

use crate::arrow::PairRows;
use crate::fleet::Causes;
use crate::options::{loading, parse_sort, two_sided, view_query};
use crate::pairs::{Pair, side_name};
use crate::profile::{Diff, Pickled, Profile, pickled};
use crate::source::SideSources;
use crate::table::Table;
use crate::views::Views;
use crate::{REGISTRY, arrow, error, runtime};

/// The question to answer for each pair of a batch, or for each profile of scan().
#[derive(Clone, Serialize, Deserialize)]
enum PairQuestion {
    /// A table.
    Report(Request),
    /// The causes that a ranking needs.
    Causes(Query),
}

/// The question of batch(...).tables(), batch(...).ranking() or scan(). It is pickled for workers.
#[pyclass(frozen, name = "_Question", module = "pprofdiff._native")]
pub struct BatchQuestion(Arc<PairQuestion>);

#[pymethods]
impl BatchQuestion {
    #[new]
    fn new(
        py: Python<'_>,
        view: &str,
        n: Option<usize>,
        sort: &str,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<BatchQuestion> {
        let query = view_query(py, &Query::default(), Some(options))?;
        let view: View = REGISTRY.pair_view(view).map_err(|e| error::from_engine(py, &e))?;
        let view = view.ordered(parse_sort(py, sort)?, n);
        Ok(BatchQuestion(Arc::new(PairQuestion::Report(Request { query, view }))))
    }

    /// Returns the question of ranking().
    #[staticmethod]
    fn causes(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<BatchQuestion> {
        let query = view_query(py, &Query::default(), Some(options))?;
        let request = Request { query, view: View::default() };
        request.of_one_type().map_err(|e| error::from_engine(py, &e))?;
        Ok(BatchQuestion(Arc::new(PairQuestion::Causes(request.query))))
    }

    /// True if the answers fit a single Arrow stream: if they are tables of frames of one sample type.
    #[getter]
    fn streams(&self) -> bool {
        let PairQuestion::Report(Request { query, view }) = &*self.0 else { return false };
        matches!(view, View::Top { .. }) && query.extra_sample_types.is_empty()
    }

    /// Answers the question for one profile of scan(). Does not warn about expressions without a match, because that is
    /// normal for some of many profiles.
    fn answer(&self, py: Python<'_>, profile: &Bound<'_, Profile>) -> PyResult<Table> {
        let PairQuestion::Report(request) = (*self.0).clone() else {
            return Err(PyTypeError::new_err("this question has no view"));
        };
        let views = profile.as_super().get();
        let (diff, selected) = (views.diff.clone(), views.selected.clone());
        let answer = move || request.answer_with(&diff, |query| Views::select(&diff, &selected, query));
        match runtime::run(py, answer)?.table() {
            Some(table) => Ok(Table::new(table.into_owned())),
            None => Err(PyTypeError::new_err("this view is not a table")),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_question", postcard::to_stdvec(&*slf.get().0))
    }
}

#[pyfunction(name = "_rebuild_question")]
pub fn rebuild_question(bytes: &[u8]) -> PyResult<BatchQuestion> {
    Ok(BatchQuestion(Arc::new(postcard::from_bytes(bytes).map_err(error::pickle)?)))
}

/// The names in [`Result::summary`] besides those of keys.
const SUMMARY_COLUMNS: [&str; 11] = [
    "name",
    "error",
    "sample_type",
    "unit",
    "total_base",
    "total_new",
    "total_delta",
    "frames",
    "frame",
    "flat_delta",
    "cum_delta",
];

/// The result for one pair of batch(): a diff or a table, or an error.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Result {
    /// The pair as given.
    #[pyo3(get)]
    pair: Py<PyAny>,
    /// The Diff; None if the pair failed, or if tables were requested.
    #[pyo3(get)]
    diff: Option<Py<Diff>>,
    /// The exception; None if the pair succeeded.
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
    /// The Table, if tables were requested; None if the pair failed.
    #[pyo3(get)]
    table: Option<Py<Table>>,
}

#[pymethods]
impl Result {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["pair", "diff", "error"])
    }

    #[new]
    #[pyo3(signature = (pair, diff, error, table = None))]
    fn new(pair: Py<PyAny>, diff: Option<Py<Diff>>, error: Option<Py<PyAny>>, table: Option<Py<Table>>) -> Result {
        Result { pair, diff, error, table }
    }

    /// The pair's name. For a tuple, it is the name of the new side.
    #[getter]
    fn name(&self, py: Python<'_>) -> String {
        let pair = self.pair.bind(py);
        if let Ok(pair) = pair.cast::<Pair>() {
            return pair.get().name.clone();
        }
        pair.get_item(1).map_or_else(|_| side_name(pair), |new| side_name(&new))
    }

    /// The result of tables() as one row: name, the pair's keys, error (as text), sample_type, unit, total_base,
    /// total_new, total_delta, frames (their number), and frame (name), flat_delta and cum_delta of the frame with the
    /// largest change. Missing values are None.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("name", self.name(py))?;
        if let Ok(pair) = self.pair.bind(py).cast::<Pair>() {
            let is_taken = |name: &str| SUMMARY_COLUMNS.contains(&name);
            for (name, value) in &pair.get().keys {
                dict.set_item(key_column(name, is_taken), value)?;
            }
        }
        dict.set_item("error", self.error.as_ref().map(|e| describe(e.bind(py))))?;
        let table = self.table.as_ref().map(|t| &t.get().table);
        let (summary, total) = (table.map(|t| &t.summary), table.map(|t| t.summary.total));
        dict.set_item("sample_type", summary.map(|s| &s.sample_type))?;
        dict.set_item("unit", summary.map(|s| &s.unit))?;
        dict.set_item("total_base", total.map(|t| t.base))?;
        dict.set_item("total_new", total.map(|t| t.new))?;
        dict.set_item("total_delta", total.map(|t| t.delta()))?;
        dict.set_item("frames", table.map(|t| t.rows_total))?;
        let first = table.filter(|t| !t.is_empty());
        dict.set_item("frame", first.map(|t| t.label(0)))?;
        for (name, measured) in [("flat_delta", Measured::Flat), ("cum_delta", Measured::Cum)] {
            let role = Role::Delta(Cost { measured, sample_type: 0 });
            let column = first.and_then(|t| t.columns.iter().find(|c| c.role == role));
            let delta = column.and_then(|c| if let Data::Value(v) = &c.data { v.first() } else { None });
            dict.set_item(name, delta)?;
        }
        Ok(dict)
    }

    /// For annotations: `Result[tuple[str, str]]`.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.call_method1("GenericAlias", (class, item))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, ResultState) {
        let (py, this) = (slf.py(), slf.get());
        let diff = this.diff.as_ref().map(|d| d.clone_ref(py));
        let error = this.error.as_ref().map(|e| e.clone_ref(py));
        let table = this.table.as_ref().map(|t| t.clone_ref(py));
        (slf.get_type().into_any(), (this.pair.clone_ref(py), diff, error, table))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let pair = self.pair.bind(py).repr()?;
        Ok(match (&self.error, &self.table) {
            (Some(e), _) => format!("<pprofdiff.Result pair={pair} error={}>", e.bind(py).repr()?),
            (None, Some(_)) => format!("<pprofdiff.Result pair={pair} table=...>"),
            (None, None) => format!("<pprofdiff.Result pair={pair} diff=...>"),
        })
    }
}

type ResultState = (Py<PyAny>, Option<Py<Diff>>, Option<Py<PyAny>>, Option<Py<Table>>);

/// Describes an exception in one line without control characters: its message, or its class if the message is empty.
pub fn describe(e: &Bound<'_, PyAny>) -> String {
    let words = e.str().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let line = words.lines().collect::<Vec<_>>().join(" ");
    match (line.is_empty(), e.get_type().name()) {
        (true, Ok(name)) => name.to_string_lossy().into_owned(),
        _ => pprofdiff::text::sanitize(&line).into_owned(),
    }
}

/// The answer for one pair. It is computed on the pool, so it holds no Python objects.
enum PairAnswer {
    Diff(pprofdiff::Diff),
    Report(Report),
    Causes(PairCauses),
}

/// Returns the function that computes a pair's answer: its diff, or the answer to the question.
fn maker(
    question: Option<&BatchQuestion>,
    sum: bool,
) -> impl Fn(pprofdiff::Diff) -> pprofdiff::Result<PairAnswer> + Clone + Send + 'static {
    let question = question.map(|q| q.0.clone());
    move |diff| {
        let diff = if sum { diff.summed() } else { diff };
        match question.as_deref() {
            Some(PairQuestion::Report(request)) => Ok(PairAnswer::Report(request.answer(&diff)?)),
            Some(PairQuestion::Causes(query)) => Ok(PairAnswer::Causes(pair_causes(&diff, query)?)),
            None => Ok(PairAnswer::Diff(diff)),
        }
    }
}

/// The existing Profile objects of both sides, see [`SideSources::given`].
type Given = [Vec<Option<Py<Profile>>>; 2];

fn wrap(py: Python<'_>, made: PairAnswer, [base, new]: Given) -> PyResult<Py<PyAny>> {
    match made {
        PairAnswer::Diff(diff) => Ok(Diff::wrap(py, diff, base, new)?.into_any()),
        PairAnswer::Causes(causes) => Causes(causes).into_py_any(py),
        PairAnswer::Report(report) => match report.table() {
            Some(table) => Table::new(table.into_owned()).into_py_any(py),
            None => Err(PyTypeError::new_err("this view is not a table")),
        },
    }
}

/// Compares one pair on the calling thread only, because the executor decides how its workers share the cores.
#[pyfunction(name = "_compare")]
#[pyo3(signature = (base, new, question, load, sum))]
pub fn compare(
    py: Python<'_>,
    base: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
    question: Option<&BatchQuestion>,
    load: &Bound<'_, PyDict>,
    sum: bool,
) -> PyResult<Py<PyAny>> {
    let (base, new, options) = (SideSources::new(base)?, SideSources::new(new)?, two_sided(py, &loading(Some(load))?)?);
    let make = maker(question, sum);
    let work = || make(pprofdiff::Diff::load(&base.sources, &new.sources, &options)?);
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(made)) => wrap(py, made, [base.given, new.given]),
        Ok(Err(e)) => Err(error::from_engine(py, &e)),
        Err(panic) => Err(runtime::bug(&*panic)),
    }
}

/// Returns the sides of a pair, or raises the pair's error.
#[pyfunction(name = "_sides")]
pub fn sides<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = pair.py();
    if let Ok(pair) = pair.cast::<Pair>() {
        let pair = pair.get();
        return match &pair.error {
            Some(e) => Err(PyErr::from_value(e.bind(py).clone())),
            None => Ok((pair.base.bind(py).clone(), pair.new.bind(py).clone())),
        };
    }
    match pair.extract() {
        Ok(sides) => Ok(sides),
        Err(_) => Err(PyTypeError::new_err(format!("a pair must be (base, new) or a Pair, not {}", pair.repr()?))),
    }
}

/// A pair that was read: submitted to the engine, or failed before.
struct Pending {
    pair: Py<PyAny>,
    given: PyResult<Given>,
}

/// Compares the pairs on the pool of this process: an iterator of (pair, Diff or Table or exception), in the order of
/// the pairs.
#[pyclass(name = "_OnThreads", module = "pprofdiff._native")]
pub struct OnThreads {
    pairs: Option<Py<PyIterator>>,
    /// The exception of the iterator of pairs. It is raised after the earlier pairs are returned.
    broken: Option<PyErr>,
    pending: VecDeque<Pending>,
    /// `None` after an interrupt: dropping the batch stops its pairs and releases the pool, even if a
    /// traceback keeps this object alive. The mutex exists only because a pyclass must be `Sync`; every
    /// method has exclusive access.
    batch: Mutex<Option<Batch<PairAnswer>>>,
    question: Option<BatchQuestion>,
    /// True if the profiles of a side are added up. Otherwise they are runs.
    sum: bool,
}

impl OnThreads {
    /// Submits pairs while the queue has room.
    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(batch) = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner) else { return Ok(()) };
        while let Some(pairs) = &self.pairs
            && self.pending.len() < batch.capacity()
        {
            let pair = match pairs.bind(py).clone().next() {
                Some(Ok(pair)) => pair,
                Some(Err(e)) if !e.is_instance_of::<PyException>(py) => return Err(e),
                last => {
                    self.broken = last.and_then(std::result::Result::err);
                    self.pairs = None;
                    break;
                }
            };
            let given =
                match sides(&pair).and_then(|(base, new)| Ok([SideSources::new(&base)?, SideSources::new(&new)?])) {
                    Ok([base, new]) => {
                        batch.push_as(base.sources, new.sources, maker(self.question.as_ref(), self.sum));
                        Ok([base.given, new.given])
                    }
                    Err(e) if !e.is_instance_of::<PyException>(py) => return Err(e),
                    Err(e) => Err(e),
                };
            self.pending.push_back(Pending { pair: pair.unbind(), given });
        }
        Ok(())
    }

    /// Waits for the answer of the oldest pair.
    fn wait(&mut self, py: Python<'_>, given: Given) -> PyResult<Py<PyAny>> {
        let slot = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(batch) = slot else { return Err(PyKeyboardInterrupt::new_err(())) };
            match py.detach(|| catch_unwind(AssertUnwindSafe(|| batch.pop(runtime::TICK)))) {
                Ok(Some(Ok(made))) => return wrap(py, made, given),
                Ok(Some(Err(e))) => return Err(error::from_engine(py, &e)),
                Ok(None) => runtime::check_signals(py).inspect_err(|_| *slot = None)?,
                Err(panic) => return Err(runtime::bug(&*panic)),
            }
        }
    }
}

#[pymethods]
impl OnThreads {
    #[new]
    fn new(
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
        question: Option<&BatchQuestion>,
        load: &Bound<'_, PyDict>,
        sum: bool,
    ) -> PyResult<OnThreads> {
        Ok(OnThreads {
            pairs: Some(pairs.try_iter()?.unbind()),
            broken: None,
            pending: VecDeque::new(),
            batch: Mutex::new(Some(Batch::new(runtime::pool(py)?, two_sided(py, &loading(Some(load))?)?))),
            question: question.map(|q| BatchQuestion(q.0.clone())),
            sum,
        })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        self.fill(py)?;
        let Some(Pending { pair, given }) = self.pending.pop_front() else {
            return self.broken.take().map_or(Ok(None), Err);
        };
        match given.and_then(|given| self.wait(py, given)) {
            Ok(made) => Ok(Some((pair, made))),
            Err(e) if !e.is_instance_of::<PyException>(py) => Err(e),
            Err(e) => Ok(Some((pair, e.into_value(py).into_any()))),
        }
    }
}

/// The results of tables() as rows of an Arrow stream, whose reader may call from any thread.
struct ResultRows {
    results: Option<Py<PyIterator>>,
    /// The names of the columns of keys. Pairs may have their keys in other orders.
    keys: Vec<String>,
    interrupted: Arc<AtomicBool>,
}

impl Iterator for ResultRows {
    type Item = std::result::Result<PairRows, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let results = self.results.as_ref()?;
        // A finalizing interpreter can't be attached to, so the stream ends.
        let next = Python::try_attach(|py| {
            let result = match results.bind(py).clone().next()? {
                Ok(result) => result,
                Err(e) if e.is_instance_of::<PyKeyboardInterrupt>(py) => {
                    // Readers do not pass the interrupt on, and most would discard the rows that are done. The stream
                    // ends here instead.
                    self.interrupted.store(true, Ordering::Relaxed);
                    return None;
                }
                Err(e) => return Some(Err(ArrowError::ExternalError(Box::new(e)))),
            };
            let result = match result.cast::<Result>() {
                Ok(result) => result.get(),
                Err(e) => return Some(Err(ArrowError::ExternalError(Box::new(PyErr::from(e))))),
            };
            let table = result.table.as_ref().map(|t| t.get().table.clone());
            let error = result.error.as_ref().map(|e| describe(e.bind(py)));
            let pair = result.pair.bind(py).cast::<Pair>().ok();
            let value = |name: &String| {
                let mut keys = pair?.get().keys.iter();
                keys.find(|(key, _)| key == name).map(|(_, value)| value.clone())
            };
            let keys = self.keys.iter().map(value).collect();
            Some(Ok(PairRows { name: result.name(py), keys, error, table }))
        });
        let next = next.flatten();
        if !matches!(next, Some(Ok(_))) {
            self.results = None;
        }
        next
    }
}

/// Returns the tables of many pairs as an Arrow C stream. `keys` are the names of the pairs' keys.
#[pyfunction(name = "_arrow_stream")]
pub fn arrow_stream<'py>(results: &Bound<'py, PyAny>, keys: Vec<String>) -> PyResult<Bound<'py, PyCapsule>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let rows = ResultRows {
        results: Some(results.try_iter()?.unbind()),
        keys: keys.clone(),
        interrupted: interrupted.clone(),
    };
    // An interrupt ends the stream. It is raised again after the reader has consumed the finished rows and returned to
    // Python.
    let at_end = move || {
        if interrupted.swap(false, Ordering::Relaxed) {
            Python::try_attach(|py| py.import("_thread")?.call_method0("interrupt_main").map(drop));
        }
    };
    PyCapsule::new_with_value(results.py(), arrow::pairs_stream(&keys, rows, at_end), c"arrow_array_stream")
}
