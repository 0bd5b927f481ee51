//! Many pairs: what a pair and its result are, the engine's batch as an iterator, and one pair on the calling thread,
//! which is what a worker of an executor does. `python/pprofdiff/_batch.py` makes `batch` of these.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use arrow_schema::ArrowError;
use pprofdiff::batch::Batch;
use pprofdiff::fleet::PairCauses;
use pprofdiff::input::{self, BatchItem, Groups, ListedFile, find_pairs, manifest_pairs};
use pprofdiff::{Query, Source};
use pprofdiff_report::{Cost, Data, Measured, Report, Request, Role, View, pair_causes};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyException, PyKeyError, PyKeyboardInterrupt, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PyString, PyTuple, PyType};
use serde::{Deserialize, Serialize};

use crate::arrow::PairRows;
use crate::fleet::Causes;
use crate::options::{loading, of_sides, parse_sort, view_query};
use crate::profile::{Diff, Pickled, Profile, pickled, rebuild};
use crate::source::Side;
use crate::table::Table;
use crate::{arrow, error, runtime};

/// Two sides under one name, for batch(). Made by pairs(), or by hand.
///
/// `base` and `new` are as for diff(); the name is the new side's unless given.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Pair {
    /// What the sides have in common: the path below both directories, what a pattern's `*` stood for, or as the
    /// manifest says.
    #[pyo3(get)]
    name: String,
    /// The base, as diff() takes it; None if there is an error.
    #[pyo3(get)]
    base: Py<PyAny>,
    /// The new side, as diff() takes it; None if there is an error.
    #[pyo3(get)]
    new: Py<PyAny>,
    /// Why there is no pair (a file without a partner, a bad line), or None.
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
}

impl Pair {
    fn found(py: Python<'_>, pair: BatchItem) -> PyResult<Pair> {
        let side = |sources: Vec<Source>| -> PyResult<Py<PyAny>> {
            // What is found are paths.
            let mut files: Vec<_> = sources.iter().filter_map(Source::path).map(Path::as_os_str).collect();
            match files.len() {
                1 => files.remove(0).into_py_any(py),
                _ => files.into_py_any(py),
            }
        };
        let (base, new, error) = match pair.sides {
            Ok((base, new)) => (side(base)?, side(new)?, None),
            Err(e) => (py.None(), py.None(), Some(error::from_engine(py, &e).into_value(py).into_any())),
        };
        Ok(Pair { name: pair.name, base, new, error })
    }
}

/// What a side is called: its first source's name.
fn side_name(side: &Bound<'_, PyAny>) -> String {
    let first = match side.is_instance_of::<PyList>() || side.is_instance_of::<PyTuple>() {
        true => side.get_item(0).unwrap_or_else(|_| side.clone()),
        false => side.clone(),
    };
    let path = || first.extract::<PathBuf>().ok().map(|path| path.display().to_string());
    let named = || first.getattr("name").ok()?.extract::<String>().ok();
    let name = path().or_else(named).unwrap_or_else(|| "<bytes>".to_owned());
    pprofdiff::text::redacted(&name).into_owned()
}

#[pymethods]
impl Pair {
    #[new]
    #[pyo3(signature = (base, new, name = None, *, error = None))]
    fn new(base: Bound<'_, PyAny>, new: Bound<'_, PyAny>, name: Option<String>, error: Option<Py<PyAny>>) -> Pair {
        Pair { name: name.unwrap_or_else(|| side_name(&new)), base: base.unbind(), new: new.unbind(), error }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, PairState)> {
        let (py, this) = (slf.py(), slf.get());
        let error = this.error.as_ref().map(|e| e.clone_ref(py));
        let state = (this.base.clone_ref(py), this.new.clone_ref(py), this.name.clone(), error);
        Ok((rebuild(py, "_rebuild_pair")?, state))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = PyString::new(py, &self.name).repr()?;
        let repr = match &self.error {
            Some(e) => format!("<pprofdiff.Pair {name} error={}>", e.bind(py).repr()?),
            None => {
                format!("<pprofdiff.Pair {name} base={} new={}>", self.base.bind(py).repr()?, self.new.bind(py).repr()?)
            }
        };
        // Sides may be URLs.
        Ok(pprofdiff::text::redacted(&repr).into_owned())
    }
}

type PairState = (Py<PyAny>, Py<PyAny>, String, Option<Py<PyAny>>);

#[pyfunction(name = "_rebuild_pair")]
pub fn rebuild_pair(base: Py<PyAny>, new: Py<PyAny>, name: String, error: Option<Py<PyAny>>) -> Pair {
    Pair { name, base, new, error }
}

/// The pairs of a manifest, of which a thread reads a few ahead: a line may be long in coming, and Ctrl-C is not to wait.
#[pyclass(module = "pprofdiff._native")]
pub struct Manifest {
    /// In a mutex only because a class must be shareable; the one method has it for itself.
    pairs: Mutex<Receiver<BatchItem>>,
    reader: Option<JoinHandle<()>>,
    /// Where the thread is.
    process: u32,
}

impl Manifest {
    fn new(lines: impl Iterator<Item = BatchItem> + Send + 'static) -> PyResult<Manifest> {
        let (sender, pairs) = sync_channel(64);
        let read = move || {
            for pair in lines {
                // Nobody listens any more.
                if sender.send(pair).is_err() {
                    break;
                }
            }
        };
        let reader = Builder::new().name("pprofdiff-manifest".to_owned()).spawn(read).map_err(runtime::no_threads)?;
        Ok(Manifest { pairs: Mutex::new(pairs), reader: Some(reader), process: std::process::id() })
    }
}

#[pymethods]
impl Manifest {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Pair>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "the pairs of a manifest belong to another process; call pairs() here",
            ));
        }
        let pairs = self.pairs.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waiting = &mut *pairs;
            match py.detach(move || waiting.recv_timeout(runtime::TICK)) {
                Ok(pair) => return Pair::found(py, pair).map(Some),
                Err(RecvTimeoutError::Timeout) => runtime::check_signals(py)?,
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = self.reader.take().map_or(Ok(()), JoinHandle::join);
                    return ended.map(|()| None).map_err(|panic| runtime::bug(&*panic));
                }
            }
        }
    }
}

/// Which files belong together: Pairs for batch(), in the order of their names.
///
/// `base` and `new` are two directories, whose files with the same path below them are compared (names that begin with
/// a dot are left out), or two patterns in which `*`, `?`, `[...]` and `**` stand for the same, as in
/// pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"). A file without a partner is a Pair with an error, so results can be
/// counted against files.
///
/// `base` alone is a manifest, which is read while it is worked on: CSV with the columns base, new and perhaps name, or
/// lines of JSON with such keys (.jsonl), where a side may be a list. A side may be a URL.
///
/// Raises PprofError if there is nothing to compare, OSError from the system.
#[pyfunction]
#[pyo3(signature = (base, new = None))]
pub fn pairs(py: Python<'_>, base: PathBuf, new: Option<PathBuf>) -> PyResult<Py<PyAny>> {
    let Some(new) = new else {
        return Manifest::new(runtime::run(py, move || manifest_pairs(&base))?)?.into_py_any(py);
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let found = runtime::run(py, move || find_pairs(&text(&base), &text(&new)))?;
    found.into_iter().map(|pair| Pair::found(py, pair)).collect::<PyResult<Vec<_>>>()?.into_py_any(py)
}

/// Which files belong together by keys: Pairs for batch(), in the natural order of the keys that both sides share.
///
/// `files` is a pattern, of whose paths `keys` are parts ("service={1},version={2}": {1} is what its first sign
/// stands for); or a manifest, of which they are columns ("service,version"), beside the column profile; or an
/// iterable of dicts of such columns, as for URLs that were listed. `base` and `new` say what a side's keys are:
/// "version=v1", or "version=@previous" and "version=@latest". All files of a side are its runs. What only one side
/// has is a Pair with an error.
///
/// Raises PprofError if nothing matches, or of keys and sides that are none; OSError from the system.
#[pyfunction]
pub fn group_pairs(py: Python<'_>, files: &Bound<'_, PyAny>, keys: &str, base: &str, new: &str) -> PyResult<Vec<Pair>> {
    let groups = Groups::new(keys, base, new);
    let found = match files.extract::<PathBuf>() {
        Ok(of) => runtime::run(py, move || input::group_pairs(&of.to_string_lossy(), &groups))?,
        Err(_) => {
            let mut listed = Vec::new();
            for row in files.try_iter()? {
                let mut columns = BTreeMap::new();
                for item in row?.cast::<PyDict>()?.iter() {
                    columns.insert(item.0.extract::<String>()?, item.1.str()?.to_string());
                }
                let profile = columns.remove("profile").ok_or_else(|| PyKeyError::new_err("profile"))?;
                listed.push(ListedFile::new(profile, columns));
            }
            groups.pair_listed(listed, "what is listed").map_err(|e| error::from_engine(py, &e))?
        }
    };
    found.into_iter().map(|pair| Pair::found(py, pair)).collect()
}

/// What is asked of each pair.
#[derive(Serialize, Deserialize)]
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
) -> impl Fn(pprofdiff::Diff) -> pprofdiff::Result<Answer> + Clone + Send + 'static {
    let asked = question.map(|q| q.0.clone());
    move |diff| match asked.as_deref() {
        Some(Asked::Report(request)) => Ok(Answer::Report(request.answer(&diff)?)),
        Some(Asked::Causes(query)) => Ok(Answer::Causes(pair_causes(&diff, query)?)),
        None => Ok(Answer::Diff(diff)),
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
#[pyo3(signature = (base, new, question, load))]
pub fn compare(
    py: Python<'_>,
    base: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
    question: Option<&Question>,
    load: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let (base, new, options) = (Side::new(base)?, Side::new(new)?, of_sides(py, &loading(Some(load))?)?);
    let make = maker(question);
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
                    batch.push_as(base.sources, new.sources, maker(self.question.as_ref()));
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
    ) -> PyResult<OnThreads> {
        Ok(OnThreads {
            pairs: Some(pairs.try_iter()?.unbind()),
            broken: None,
            pending: VecDeque::new(),
            batch: Mutex::new(Some(Batch::new(runtime::pool(py)?, of_sides(py, &loading(Some(load))?)?))),
            question: question.map(|q| Question(q.0.clone())),
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
