//! Many pairs: what a pair and its result are, the engine's batch as an iterator, and one pair on the calling thread,
//! which is what a worker of an executor does. `python/pprofdiff/_batch.py` makes `batch` of these.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::ArrowError;
use pprofdiff::Query;
use pprofdiff::batch::Batch;
use pprofdiff::fleet::PairCauses;
use pprofdiff_report::{Cost, Data, Measured, Report, Request, Role, View, pair_causes};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyTuple, PyType};
use serde::{Deserialize, Serialize};

use crate::arrow::PairRows;
use crate::fleet::Causes;
use crate::options::{loading, of_sides, parse_sort, view_query};
use crate::pairs::{Pair, side_name};
use crate::profile::{Diff, Pickled, Profile, pickled};
use crate::source::Side;
use crate::table::Table;
use crate::views::Views;
use crate::{arrow, error, runtime};

/// What is asked of each pair.
#[derive(Clone, Serialize, Deserialize)]
enum Asked {
    /// A table.
    Report(Request),
    /// What a ranking keeps of it.
    Causes(Query),
}

/// The question of batch(...).tables() or ranking(), which travels to workers.
#[pyclass(frozen, name = "_Question", module = "pprofdiff._native")]
pub struct Question(Arc<Asked>);

#[pymethods]
impl Question {
    #[new]
    fn new(
        py: Python<'_>,
        view: &str,
        n: Option<usize>,
        sort: &str,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Question> {
        let query = view_query(py, &Query::default(), Some(options))?;
        let view: View = view.parse().map_err(|e| error::from_engine(py, &e))?;
        let view = view.ordered(parse_sort(py, sort)?, n);
        Ok(Question(Arc::new(Asked::Report(Request { query, view }))))
    }

    /// That of ranking().
    #[staticmethod]
    fn causes(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Question> {
        let query = view_query(py, &Query::default(), Some(options))?;
        let request = Request { query, view: View::default() };
        request.of_one_type().map_err(|e| error::from_engine(py, &e))?;
        Ok(Question(Arc::new(Asked::Causes(request.query))))
    }

    /// True if the answers can be an Arrow stream of all pairs: frames, of one sample type.
    #[getter]
    fn streams(&self) -> bool {
        let Asked::Report(Request { query, view }) = &*self.0 else { return false };
        matches!(view, View::Top { .. }) && query.extra_sample_types.is_empty()
    }

    /// The answer for one profile of scan(). Nothing is warned of: what matches nothing in one of many is no mistake.
    fn answer(&self, py: Python<'_>, profile: &Bound<'_, Profile>) -> PyResult<Table> {
        let Asked::Report(request) = (*self.0).clone() else { return Err(PyTypeError::new_err("this is no view")) };
        let views = profile.as_super().get();
        let (diff, selected) = (views.diff.clone(), views.selected.clone());
        let answer = move || request.answer_with(&diff, |query| Views::select(&diff, &selected, query));
        match runtime::run(py, answer)?.table() {
            Some(table) => Ok(Table::new(table.into_owned())),
            None => Err(PyTypeError::new_err("this view is no table")),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_question", postcard::to_stdvec(&*slf.get().0))
    }
}

#[pyfunction(name = "_rebuild_question")]
pub fn rebuild_question(bytes: &[u8]) -> PyResult<Question> {
    Ok(Question(Arc::new(postcard::from_bytes(bytes).map_err(error::pickle)?)))
}

/// What became of one pair of batch(): a diff or a table, or an error.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Result {
    /// The pair as it was given.
    #[pyo3(get)]
    pair: Py<PyAny>,
    /// The Diff; None if the pair failed, or if tables were asked for.
    #[pyo3(get)]
    diff: Option<Py<Diff>>,
    /// The exception, or None if the pair did not fail.
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
    /// The Table, if tables were asked for; None if the pair failed.
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

    /// The pair's name; of a pair that is a tuple, that of its new side.
    #[getter]
    fn name(&self, py: Python<'_>) -> String {
        let pair = self.pair.bind(py);
        if let Ok(pair) = pair.cast::<Pair>() {
            return pair.get().name.clone();
        }
        pair.get_item(1).map_or_else(|_| side_name(pair), |new| side_name(&new))
    }

    /// The pair in one row, of what tables() gave: name, error (as text), sample_type, unit, total_base, total_new,
    /// total_delta, frames (how many there are), and of the frame that changed most frame (its name), flat_delta and
    /// cum_delta. What there is not is None.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("name", self.name(py))?;
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

/// An exception as one harmless line: its words, or what it is if it has none.
pub fn describe(e: &Bound<'_, PyAny>) -> String {
    let words = e.str().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let line = words.lines().collect::<Vec<_>>().join(" ");
    match (line.is_empty(), e.get_type().name()) {
        (true, Ok(name)) => name.to_string_lossy().into_owned(),
        _ => pprofdiff::text::sanitize(&line).into_owned(),
    }
}

/// What a pair became: on the pool, so nothing of Python.
enum Answer {
    Diff(pprofdiff::Diff),
    Report(Report),
    Causes(PairCauses),
}

/// What is made of a pair: its diff, or the answer to a question.
fn maker(
    question: Option<&Question>,
    sum: bool,
) -> impl Fn(pprofdiff::Diff) -> pprofdiff::Result<Answer> + Clone + Send + 'static {
    let asked = question.map(|q| q.0.clone());
    move |diff| {
        let diff = if sum { diff.summed() } else { diff };
        match asked.as_deref() {
            Some(Asked::Report(request)) => Ok(Answer::Report(request.answer(&diff)?)),
            Some(Asked::Causes(query)) => Ok(Answer::Causes(pair_causes(&diff, query)?)),
            None => Ok(Answer::Diff(diff)),
        }
    }
}

/// The Profile objects of both sides that existed before.
type Given = [Vec<Option<Py<Profile>>>; 2];

fn wrap(py: Python<'_>, made: Answer, [base, new]: Given) -> PyResult<Py<PyAny>> {
    match made {
        Answer::Diff(diff) => Ok(Diff::wrap(py, diff, base, new)?.into_any()),
        Answer::Causes(causes) => Causes(causes).into_py_any(py),
        Answer::Report(report) => match report.table() {
            Some(table) => Table::new(table.into_owned()).into_py_any(py),
            None => Err(PyTypeError::new_err("this view is no table")),
        },
    }
}

/// One pair, on the calling thread and no other: a worker's cores are shared out by whoever gave it its task.
#[pyfunction(name = "_compare")]
#[pyo3(signature = (base, new, question, load, sum))]
pub fn compare(
    py: Python<'_>,
    base: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
    question: Option<&Question>,
    load: &Bound<'_, PyDict>,
    sum: bool,
) -> PyResult<Py<PyAny>> {
    let (base, new, options) = (Side::new(base)?, Side::new(new)?, of_sides(py, &loading(Some(load))?)?);
    let make = maker(question, sum);
    let work = || make(pprofdiff::Diff::load(&base.sources, &new.sources, &options)?);
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(made)) => wrap(py, made, [base.given, new.given]),
        Ok(Err(e)) => Err(error::from_engine(py, &e)),
        Err(panic) => Err(runtime::bug(&*panic)),
    }
}

/// The sides of a pair; its error if it is none.
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
        Err(_) => Err(PyTypeError::new_err(format!("a pair is (base, new) or a Pair, not {}", pair.repr()?))),
    }
}

/// A pair that was read: with the engine, or failed before it got there.
struct Pending {
    pair: Py<PyAny>,
    given: PyResult<Given>,
}

/// The pairs on the pool of this process: an iterator of (pair, Diff or Table or exception), in the order of the pairs.
#[pyclass(name = "_OnThreads", module = "pprofdiff._native")]
pub struct OnThreads {
    pairs: Option<Py<PyIterator>>,
    /// What the iterator of pairs raised; told when the pairs before it are done.
    broken: Option<PyErr>,
    pending: VecDeque<Pending>,
    /// In a mutex only because a class must be shareable; every method has it for itself.
    /// Gone after an interrupt, with its pool: a traceback may keep this object.
    batch: Mutex<Option<Batch<Answer>>>,
    question: Option<Question>,
    /// Profiles of a side add up, and are no runs.
    sum: bool,
}

impl OnThreads {
    /// Reads pairs while there is room.
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
            let given = match sides(&pair).and_then(|(base, new)| Ok([Side::new(&base)?, Side::new(&new)?])) {
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

    /// Waits for the oldest pair.
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
        question: Option<&Question>,
        load: &Bound<'_, PyDict>,
        sum: bool,
    ) -> PyResult<OnThreads> {
        Ok(OnThreads {
            pairs: Some(pairs.try_iter()?.unbind()),
            broken: None,
            pending: VecDeque::new(),
            batch: Mutex::new(Some(Batch::new(runtime::pool(py)?, of_sides(py, &loading(Some(load))?)?))),
            question: question.map(|q| Question(q.0.clone())),
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

/// The results of tables(), as the rows of an Arrow stream. Its reader calls from any thread.
struct Rows {
    results: Option<Py<PyIterator>>,
    interrupted: Arc<AtomicBool>,
}

impl Iterator for Rows {
    type Item = std::result::Result<PairRows, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let results = self.results.as_ref()?;
        // Of an interpreter that is ending there is nothing more to be had.
        let next = Python::try_attach(|py| {
            let result = match results.bind(py).clone().next()? {
                Ok(result) => result,
                Err(e) if e.is_instance_of::<PyKeyboardInterrupt>(py) => {
                    // No reader passes that on, and most would throw away what is done.
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
            Some(Ok(PairRows { name: result.name(py), error, table }))
        });
        let next = next.flatten();
        if !matches!(next, Some(Ok(_))) {
            self.results = None;
        }
        next
    }
}

/// The tables of many pairs as an Arrow C stream.
#[pyfunction(name = "_arrow_stream")]
pub fn arrow_stream<'py>(results: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let rows = Rows { results: Some(results.try_iter()?.unbind()), interrupted: interrupted.clone() };
    // An interrupt ends the stream, and comes again only when its reader has all that is done and is back in Python.
    let at_end = move || {
        if interrupted.swap(false, Ordering::Relaxed) {
            Python::try_attach(|py| py.import("_thread")?.call_method0("interrupt_main").map(drop));
        }
    };
    PyCapsule::new_with_value(results.py(), arrow::pairs_stream(rows, at_end), c"arrow_array_stream")
}
