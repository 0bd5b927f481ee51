//! `DeltaComputer`: computes a stream of deltas, one call at a time.

use std::sync::{Mutex, PoisonError};

use pprofdiff::delta::{DeltaOptions, OnReset, Treatment};

use pprofdiff::{LoadOptions, Source};
use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::{loading, without_base};
use crate::profile::Profile;
use crate::{error, runtime, source};

/// Computes deltas from a stream of snapshots of one cumulative profile.
///
/// `cumulative` and `on_reset` have the same meaning as in delta(). The object keeps 16 bytes per sample of the last
/// snapshot, and its cumulative values. It reuses its memory, so a thousand snapshots need no more memory than one.
#[pyclass(frozen, module = "pprofdiff")]
pub struct DeltaComputer {
    /// `None` while a call uses it, and permanently after an interrupted call.
    state: Mutex<Option<Box<pprofdiff::delta::DeltaComputer>>>,
    last_facts: Mutex<LastFacts>,
    options: LoadOptions,
}

/// Facts about the last update() apart from its delta.
#[derive(Default, Clone)]
struct LastFacts {
    treatments: Vec<Treatment>,
    reset: Option<String>,
    vanished: usize,
}

/// Parses the policy for counters that decreased.
fn on_reset(py: Python<'_>, word: &str) -> PyResult<OnReset> {
    match word {
        "error" => Ok(OnReset::Error),
        "pass" => Ok(OnReset::Pass),
        "clamp" => Ok(OnReset::Clamp),
        _ => Err(error::message(py, &format!("on_reset must be 'error', 'pass' or 'clamp', not {word:?}"))),
    }
}

pub fn policy(py: Python<'_>, cumulative: Option<Vec<String>>, word: &str) -> PyResult<DeltaOptions> {
    let options = DeltaOptions::default().with_on_reset(on_reset(py, word)?);
    Ok(match cumulative {
        Some(names) => options.with_cumulative(names),
        None => options,
    })
}

/// Issues a warning, if any, as a UserWarning: about a restart between two snapshots, an expression
/// without a match, or data that a format leaves out.
pub fn warn(py: Python<'_>, warning: Option<String>) -> PyResult<()> {
    let Some(warning) = warning else { return Ok(()) };
    let text = std::ffi::CString::new(&*pprofdiff::text::sanitize(&warning))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

impl DeltaComputer {
    /// Runs `work` with the loaded snapshot and the state, on the pool.
    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        snapshot: Source,
        work: impl FnOnce(&mut pprofdiff::delta::DeltaComputer, &pprofdiff::Profile) -> pprofdiff::Result<T>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let idle_state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut state) = idle_state else {
            return Err(PyRuntimeError::new_err(
                "this DeltaComputer is in use by another thread, or a call was interrupted; create a new one",
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

    fn last_facts(&self) -> LastFacts {
        self.last_facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn named(&self, cumulative: bool) -> Vec<String> {
        let treatments = self.last_facts().treatments.into_iter().filter(|t| t.cumulative == cumulative);
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
            last_facts: Mutex::default(),
            options: without_base(py, &loading(options)?)?,
        })
    }

    /// Set the snapshot that the next update() subtracts, without computing a delta.
    ///
    /// `snapshot` is anything that load() accepts. Raises PprofError and OSError like load().
    fn start(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
        self.work(py, source::source(snapshot)?, |state, profile| state.start(profile))
    }

    /// Return the change since the last snapshot as a Profile. The first snapshot is returned unchanged, except that
    /// duplicate samples are added up and zeros are dropped.
    ///
    /// `snapshot` is anything that load() accepts. `on_reset` overrides the computer's own policy for this call. After
    /// an error, the last snapshot stays the same.
    ///
    /// Raises the same errors as delta().
    #[pyo3(signature = (snapshot, *, on_reset = None))]
    fn update(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>, on_reset: Option<&str>) -> PyResult<Py<Profile>> {
        let on_reset = on_reset.map(|word| self::on_reset(py, word)).transpose()?;
        let (profile, warning, last_facts) = self.work(py, source::source(snapshot)?, move |state, profile| {
            let delta = match on_reset {
                Some(on_reset) => state.update_with(profile, on_reset)?,
                None => state.update(profile)?,
            };
            let reset = delta.reset.as_ref().map(ToString::to_string);
            let (made, warning) = (delta.to_profile("delta")?, delta.warning());
            Ok((made, warning, LastFacts { treatments: delta.treatments, reset, vanished: delta.vanished }))
        })?;
        *self.last_facts.lock().unwrap_or_else(PoisonError::into_inner) = last_facts;
        warn(py, warning)?;
        Profile::new(py, profile.into())
    }

    /// The sample types that the last update() subtracted.
    #[getter]
    fn cumulative(&self) -> Vec<String> {
        self.named(true)
    }

    /// The sample types that the last update() copied unchanged from the snapshot.
    #[getter]
    fn gauges(&self) -> Vec<String> {
        self.named(false)
    }

    /// The counters that decreased or disappeared in the last update(), which shows a restart; None if there was no
    /// restart.
    #[getter]
    fn reset(&self) -> Option<String> {
        self.last_facts().reset
    }

    /// The number of samples that had counted something before the last update() and are missing in its
    /// snapshot. The profile's comment and a UserWarning report it too.
    #[getter]
    fn vanished(&self) -> usize {
        self.last_facts().vanished
    }

    fn __repr__(&self) -> String {
        format!("<pprofdiff.DeltaComputer cumulative={:?} gauges={:?}>", self.cumulative(), self.gauges())
    }
}
