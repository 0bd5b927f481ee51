//! `diff_many`: an iterator over the engine's batch.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use pprofdiff::{Batch, LoadOptions};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple, PyType};

use crate::source::Side;
use crate::views::{Diff, Profile};
use crate::{error, runtime};

/// What became of one pair of diff_many(): a diff, or an error.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Result {
    /// The pair as it was given.
    #[pyo3(get)]
    pair: Py<PyAny>,
    /// The Diff, or None if the pair failed.
    #[pyo3(get)]
    diff: Option<Py<Diff>>,
    /// The exception, or None if the pair did not fail.
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
}

#[pymethods]
impl Result {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["pair", "diff", "error"])
    }

    #[new]
    fn new(pair: Py<PyAny>, diff: Option<Py<Diff>>, error: Option<Py<PyAny>>) -> Result {
        Result { pair, diff, error }
    }

    /// For annotations: `Result[tuple[str, str]]`.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.call_method1("GenericAlias", (class, item))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyAny>, (Py<PyAny>, Option<Py<Diff>>, Option<Py<PyAny>>)) {
        let (py, this) = (slf.py(), slf.get());
        let diff = this.diff.as_ref().map(|d| d.clone_ref(py));
        let error = this.error.as_ref().map(|e| e.clone_ref(py));
        (slf.get_type().into_any(), (this.pair.clone_ref(py), diff, error))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let pair = self.pair.bind(py).repr()?;
        Ok(match &self.error {
            Some(e) => format!("<pprofdiff.Result pair={pair} error={}>", e.bind(py).repr()?),
            None => format!("<pprofdiff.Result pair={pair} diff=...>"),
        })
    }
}

/// A pair that was read: with the engine, or failed before it got there.
struct Pending {
    pair: Py<PyAny>,
    given: PyResult<[Vec<Option<Py<Profile>>>; 2]>,
}

#[pyclass(module = "pprofdiff._native")]
pub struct DiffMany {
    pairs: Option<Py<PyIterator>>,
    /// What the iterator of pairs raised; told when the pairs before it are done.
    broken: Option<PyErr>,
    pending: VecDeque<Pending>,
    /// In a mutex only because a class must be shareable; every method has it for itself.
    batch: Mutex<Batch>,
    raise: bool,
    process: u32,
}

impl DiffMany {
    pub fn new(py: Python<'_>, pairs: &Bound<'_, PyAny>, raise: bool, options: LoadOptions) -> PyResult<DiffMany> {
        Ok(DiffMany {
            pairs: Some(pairs.try_iter()?.unbind()),
            broken: None,
            pending: VecDeque::new(),
            batch: Mutex::new(Batch::new(runtime::pool(py)?, options)),
            raise,
            process: std::process::id(),
        })
    }

    /// Reads pairs while there is room.
    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        let batch = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
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
            let given = match sides(&pair) {
                Ok([base, new]) => {
                    batch.push(base.sources, new.sources);
                    Ok([base.given, new.given])
                }
                Err(e) if !e.is_instance_of::<PyException>(py) => return Err(e),
                Err(e) => Err(e),
            };
            self.pending.push_back(Pending { pair: pair.unbind(), given });
        }
        Ok(())
    }

    /// Waits for the diff of the oldest pair.
    fn wait(&mut self, py: Python<'_>, [base, new]: [Vec<Option<Py<Profile>>>; 2]) -> PyResult<Py<Diff>> {
        let batch = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            match py.detach(|| catch_unwind(AssertUnwindSafe(|| batch.pop(runtime::TICK)))) {
                Ok(Some(Ok(diff))) => return Diff::wrap(py, diff, base, new),
                Ok(Some(Err(e))) => return Err(error::from_engine(py, &e)),
                Ok(None) => runtime::check_signals(py)?,
                Err(panic) => return Err(runtime::bug(&*panic)),
            }
        }
    }
}

/// The two sides of a pair.
fn sides(pair: &Bound<'_, PyAny>) -> PyResult<[Side; 2]> {
    let Ok((base, new)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(PyTypeError::new_err(format!("a pair is (base, new), not {}", pair.repr()?)));
    };
    Ok([Side::new(&base)?, Side::new(&new)?])
}

#[pymethods]
impl DiffMany {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// All results that are left, in memory at once.
    fn collect(&mut self, py: Python<'_>) -> PyResult<Vec<Result>> {
        std::iter::from_fn(|| self.__next__(py).transpose()).collect()
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Result>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err("diff_many was begun in another process; begin it again in this one"));
        }
        self.fill(py)?;
        let Some(Pending { pair, given }) = self.pending.pop_front() else {
            return self.broken.take().map_or(Ok(None), Err);
        };
        match given.and_then(|given| self.wait(py, given)) {
            Ok(diff) => Ok(Some(Result { pair, diff: Some(diff), error: None })),
            Err(e) if self.raise || !e.is_instance_of::<PyException>(py) => {
                self.pairs = None;
                self.pending.clear();
                Err(e)
            }
            Err(e) => Ok(Some(Result { pair, diff: None, error: Some(e.into_value(py).into_any()) })),
        }
    }
}
