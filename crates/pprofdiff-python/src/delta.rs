//! `DeltaComputer`: the engine's stream of deltas, one call at a time.

use std::sync::{Mutex, PoisonError};

use pprofdiff::delta::{DeltaOptions, OnReset, Treatment};

use pprofdiff::{LoadOptions, Source};
use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::{loading, without_base};
use crate::profile::Profile;
use crate::{error, runtime, source};

/// What happened in a stream of snapshots of one growing profile.
///
/// `cumulative` and `on_reset` are as for delta(). It keeps 16 bytes and the cumulative values of each sample of
/// the last snapshot, and uses its memory again, so it takes no more for a thousand snapshots than for one.
#[pyclass(frozen, module = "pprofdiff")]
pub struct DeltaComputer {
    /// Away while a call works with it, and for good after a call that was interrupted.
    state: Mutex<Option<Box<pprofdiff::delta::DeltaComputer>>>,
    last: Mutex<Last>,
    options: LoadOptions,
}

/// What is to be known of the last snapshot beside its delta.
#[derive(Default, Clone)]
struct Last {
    treatments: Vec<Treatment>,
    reset: Option<String>,
    vanished: usize,
}

/// The policy's word for counters that went down.
fn on_reset(py: Python<'_>, word: &str) -> PyResult<OnReset> {
    match word {
        "error" => Ok(OnReset::Error),
        "pass" => Ok(OnReset::Pass),
        "clamp" => Ok(OnReset::Clamp),
        _ => Err(error::message(py, &format!("on_reset is 'error', 'pass' or 'clamp', not {word:?}"))),
    }
}

pub fn policy(py: Python<'_>, cumulative: Option<Vec<String>>, word: &str) -> PyResult<DeltaOptions> {
    let options = DeltaOptions::default().with_on_reset(on_reset(py, word)?);
    Ok(match cumulative {
        Some(names) => options.with_cumulative(names),
        None => options,
    })
}

/// Says what the engine warns of: a reset that was no error, samples that are gone.
pub fn warn(py: Python<'_>, warning: Option<String>) -> PyResult<()> {
    let Some(warning) = warning else { return Ok(()) };
    let text = std::ffi::CString::new(&*pprofdiff::text::sanitize(&warning))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

impl DeltaComputer {
    /// Does `work` with a loaded snapshot and the state, on the pool.
    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        snapshot: Source,
        work: impl FnOnce(&mut pprofdiff::delta::DeltaComputer, &pprofdiff::Profile) -> pprofdiff::Result<T>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let taken = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut state) = taken else {
            return Err(PyRuntimeError::new_err(
                "this DeltaComputer is at work in another thread, or was interrupted at work; make a new one",
            ));
        };
        let options = self.options.clone();
        let (state, result) = runtime::run(py, move || {
            let result = snapshot.load(&options).and_then(|profile| work(&mut state, &profile));
            Ok((state, result))
        })?;
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        result.map_err(|e| error::from_engine(py, &e))
    }

    fn last(&self) -> Last {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn named(&self, cumulative: bool) -> Vec<String> {
        let treatments = self.last().treatments.into_iter().filter(|t| t.cumulative == cumulative);
        treatments.map(|t| t.sample_type).collect()
    }
}

#[pymethods]
impl DeltaComputer {
    #[new]
    #[pyo3(signature = (cumulative = None, *, on_reset = "error", **options))]
    fn new(
        py: Python<'_>,
        cumulative: Option<Vec<String>>,
        on_reset: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<DeltaComputer> {
        let computer = pprofdiff::delta::DeltaComputer::new(policy(py, cumulative, on_reset)?);
        Ok(DeltaComputer {
            state: Mutex::new(Some(Box::new(computer))),
            last: Mutex::default(),
            options: without_base(py, &loading(options)?)?,
        })
    }

    /// Take a snapshot (whatever load() takes) as the one before the next, and make nothing of it.
    ///
    /// Raises PprofError and OSError as load() does.
    fn start(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
        self.work(py, source::source(snapshot)?, |state, profile| state.start(profile))
    }

    /// What happened since the last snapshot; the first one is passed on as it is (duplicate samples added up,
    /// zeros gone).
    ///
    /// `snapshot` is whatever load() takes; `on_reset` stands for the computer's own, this time. After an error
    /// the last snapshot is still the last one.
    ///
    /// Raises as delta() does.
    #[pyo3(signature = (snapshot, *, on_reset = None))]
    fn update(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>, on_reset: Option<&str>) -> PyResult<Py<Profile>> {
        let on_reset = on_reset.map(|word| self::on_reset(py, word)).transpose()?;
        let (profile, warning, last) = self.work(py, source::source(snapshot)?, move |state, profile| {
            let delta = match on_reset {
                Some(on_reset) => state.update_with(profile, on_reset)?,
                None => state.update(profile)?,
            };
            let reset = delta.reset.as_ref().map(ToString::to_string);
            let (made, warning) = (delta.to_profile("delta")?, delta.warning());
            Ok((made, warning, Last { treatments: delta.treatments, reset, vanished: delta.vanished }))
        })?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        warn(py, warning)?;
        Profile::new(py, profile.into())
    }

    /// The sample types that the last update() subtracted.
    #[getter]
    fn cumulative(&self) -> Vec<String> {
        self.named(true)
    }

    /// The sample types that the last update() left as they were in the snapshot.
    #[getter]
    fn gauges(&self) -> Vec<String> {
        self.named(false)
    }

    /// What went down or was gone at the last update(), so that it was a restart; or None.
    #[getter]
    fn reset(&self) -> Option<String> {
        self.last().reset
    }

    /// How many samples had counted something before the last update() and were not in its snapshot. The comment and
    /// a UserWarning say it too.
    #[getter]
    fn vanished(&self) -> usize {
        self.last().vanished
    }

    fn __repr__(&self) -> String {
        format!("<pprofdiff.DeltaComputer cumulative={:?} gauges={:?}>", self.cumulative(), self.gauges())
    }
}
