//! `Profile` and `Diff`: their attributes apart from the views, and how they are pickled.

use std::fmt::Display;
use std::sync::Arc;

use pprofdiff::binary::Binaries;
use pprofdiff::input::InputFormat;
use pprofdiff::loading::Loading;
use pprofdiff::{Compression, Query, WriteOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta};

use crate::keywords::keywords;
use crate::options::without_base;
use crate::views::Views;
use crate::{error, runtime};

/// A loaded and validated profile, returned by load() and merge().
///
/// Its views show one side. The views of a diff that was written as a profile show both sides.
#[pyclass(frozen, extends = Views, module = "pprofdiff")]
pub struct Profile {
    pub profile: Arc<pprofdiff::Profile>,
}

/// A comparison of two sides, returned by diff(), and by filter() and normalize() of a Diff or a Profile.
///
/// The rows of its views have the values of both sides and the delta (new - base). Except in peek() and
/// tree(), they also have a status ("added", "removed", "changed" or "same"). A Diff that filter() or
/// normalize() returns for a Profile shows as many sides as the Profile.
#[pyclass(frozen, extends = Views, module = "pprofdiff")]
pub struct Diff {
    base: Vec<Py<Profile>>,
    new: Vec<Py<Profile>>,
    /// True if this is a filtered or normalized Profile.
    of_profile: bool,
}

/// Returns the same profiles with another query.
pub fn with_query(slf: &Bound<'_, Views>, query: Query) -> PyResult<Py<Diff>> {
    let py = slf.py();
    let clones = |profiles: &[Py<Profile>]| profiles.iter().map(|p| p.clone_ref(py)).collect::<Vec<_>>();
    let diff = slf.get().diff.clone();
    let sides = if let Ok(source) = slf.cast::<Diff>() {
        let source = source.get();
        Diff { base: clones(&source.base), new: clones(&source.new), of_profile: source.of_profile }
    } else {
        let profile = slf.cast::<Profile>()?.clone().unbind();
        let base = if diff.is_two_sided() { vec![profile.clone_ref(py)] } else { Vec::new() };
        Diff { base, new: vec![profile], of_profile: true }
    };
    Py::new(py, (sides, Views { diff, query, selected: Arc::default(), profile: None }))
}

impl Profile {
    pub fn new(py: Python<'_>, profile: Arc<pprofdiff::Profile>) -> PyResult<Py<Profile>> {
        let diff = pprofdiff::Diff::of_profile(&profile).map_err(|e| error::from_engine(py, &e))?;
        let views = Views { diff, query: Query::default(), selected: Arc::default(), profile: Some(profile.clone()) };
        Py::new(py, (Profile { profile }, views))
    }
}

#[pymethods]
impl Profile {
    /// The name of the file, or a placeholder: "<bytes>", "<stream>", "merged".
    #[getter]
    fn name(&self) -> &str {
        self.profile.name()
    }

    /// The number of samples as written, including duplicates.
    #[getter]
    fn n_samples(&self) -> usize {
        self.profile.n_samples()
    }

    /// The sum of the absolute values of each sample type in `sample_types`, before filters.
    #[getter]
    fn totals(&self) -> Vec<i64> {
        (0..).map_while(|i| self.profile.total(i)).collect()
    }

    /// The duration of the recording (a datetime.timedelta, truncated to microseconds), or None if the profile
    /// has no duration.
    #[getter]
    fn duration<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDelta>>> {
        match self.profile.duration_nanos() {
            0 => Ok(None),
            nanos => delta(py, nanos).map(Some),
        }
    }

    /// The time of the recording (a datetime.datetime in UTC, truncated to microseconds), or None if the
    /// profile has no time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let nanos = self.profile.time_nanos();
        if nanos == 0 {
            return Ok(None);
        }
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        epoch.add(delta(py, nanos)?).map(Some)
    }

    /// The number of events between two samples, in the unit of period_type.
    #[getter]
    fn period(&self) -> i64 {
        self.profile.period()
    }

    /// The (type, unit) of the period, or None.
    #[getter]
    fn period_type(&self) -> Option<(String, String)> {
        self.profile.period_type()
    }

    /// The comments in the profile.
    #[getter]
    fn comments(&self) -> Vec<String> {
        self.profile.comments()
    }

    /// A link to documentation of the profile's type; "" if the profile has no link.
    #[getter]
    fn doc_url(&self) -> String {
        self.profile.doc_url()
    }

    /// The file names of the mapped binaries.
    #[getter]
    fn mappings(&self) -> Vec<String> {
        self.profile.mapping_files()
    }

    /// Problems that affect the views, for example missing function names.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.profile.warnings().iter().map(|warning| keywords(warning).into_owned()).collect()
    }

    /// A shell command that fixes a warning: it adds missing function names. Names in it are quoted. None if no
    /// command is needed.
    #[getter]
    fn advice(&self) -> Option<String> {
        self.profile.advice()
    }

    /// True if the profile is a written diff.
    #[getter]
    fn is_diff(&self) -> bool {
        self.profile.is_diff()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, Option<String>, Bound<'py, PyBytes>))> {
        let py = slf.py();
        // Zstandard at level 1 is nearly as fast as a copy, and its output is much smaller.
        let options = WriteOptions::default().with_compression(Compression::Zstd).with_level(1);
        let profile = slf.get().profile.clone();
        let (name, window) = (profile.name().to_owned(), profile.window().map(|window| window.as_str().to_owned()));
        let bytes = runtime::run_apart(py, move || profile.to_bytes(&options))?;
        Ok((rebuild(py, "_rebuild_profile")?, (name, window, PyBytes::new(py, &bytes))))
    }
}

fn delta(py: Python<'_>, nanos: i64) -> PyResult<Bound<'_, PyDelta>> {
    const DAY: i64 = 86_400_000_000;
    let micros = nanos.div_euclid(1000);
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    PyDelta::new(py, days as i32, (rest / 1_000_000) as i32, (rest % 1_000_000) as i32, false)
}

impl Diff {
    /// Wraps a diff. `base` and `new` have the existing Profile objects at the positions of their profiles.
    pub fn wrap(
        py: Python<'_>,
        diff: pprofdiff::Diff,
        base: Vec<Option<Py<Profile>>>,
        new: Vec<Option<Py<Profile>>>,
    ) -> PyResult<Py<Diff>> {
        let wrap = |(existing, profile): (Option<Py<Profile>>, &Arc<pprofdiff::Profile>)| match existing {
            Some(existing) => Ok(existing),
            None => Profile::new(py, profile.clone()),
        };
        let sides = Diff {
            base: base.into_iter().zip(diff.given(true)).map(wrap).collect::<PyResult<_>>()?,
            new: new.into_iter().zip(diff.given(false)).map(wrap).collect::<PyResult<_>>()?,
            of_profile: false,
        };
        Py::new(py, (sides, Views { diff, query: Query::default(), selected: Arc::default(), profile: None }))
    }
}

#[pymethods]
impl Diff {
    /// The profiles of the base; empty for a single profile.
    #[getter]
    fn base(&self, py: Python<'_>) -> Vec<Py<Profile>> {
        self.base.iter().map(|p| p.clone_ref(py)).collect()
    }

    /// The profiles of the new side.
    #[getter(new)]
    fn new_side(&self, py: Python<'_>) -> Vec<Py<Profile>> {
        self.new.iter().map(|p| p.clone_ref(py)).collect()
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(
        Bound<'py, PyAny>,
        (Vec<Py<Profile>>, Vec<Py<Profile>>, bool, bool, Option<String>, Bound<'py, PyBytes>),
    )> {
        let (py, this) = (slf.py(), slf.get());
        let query = serde_json::to_vec(&slf.as_super().get().query).map_err(error::pickle)?;
        let sum = slf.as_super().get().diff.is_summed();
        let folder = slf.as_super().get().diff.folder().map(str::to_owned);
        let state = (this.base(py), this.new_side(py), this.of_profile, sum, folder, PyBytes::new(py, &query));
        Ok((rebuild(py, "_rebuild_diff")?, state))
    }
}

/// Returns the function that unpickles an object.
pub fn rebuild<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pprofdiff._native")?.getattr(name)
}

/// The result of `__reduce__`: the function that rebuilds the object, and its argument.
pub type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// Returns the result of `__reduce__` for an object that was serialized to `written`.
pub fn pickled<'py, E: Display>(
    py: Python<'py>,
    rebuilt_by: &str,
    written: Result<Vec<u8>, E>,
) -> PyResult<Pickled<'py>> {
    let bytes = written.map_err(error::pickle)?;
    Ok((rebuild(py, rebuilt_by)?, (PyBytes::new(py, &bytes),)))
}

#[pyfunction(name = "_rebuild_profile")]
pub fn rebuild_profile(py: Python<'_>, name: String, window: Option<String>, bytes: &[u8]) -> PyResult<Py<Profile>> {
    let window = window.map(|text| text.parse()).transpose().map_err(|e| error::from_engine(py, &e))?;
    let bytes = bytes.to_vec();
    // The profile was within the limit of its own loading options, which the pickle does not contain. The highest
    // possible limit (4 GiB - 1) therefore applies.
    let mut loading = Loading::default();
    loading.inflated_limit = Some(u64::from(u32::MAX));
    loading.input_format = InputFormat::named("pprof").ok();
    let options = without_base(py, &loading)?;
    // The profile was pickled with its names, so no binaries are searched.
    let options = options.with_binaries(Binaries::default());
    let profile = runtime::run(py, move || pprofdiff::from_bytes(&name, &bytes, &options))?;
    Profile::new(py, profile.with_window(window).into())
}

#[pyfunction(name = "_rebuild_diff")]
pub fn rebuild_diff(
    py: Python<'_>,
    base: Vec<Py<Profile>>,
    new: Vec<Py<Profile>>,
    of_profile: bool,
    sum: bool,
    folder: Option<String>,
    query: &[u8],
) -> PyResult<Py<Diff>> {
    let query: Query = serde_json::from_slice(query).map_err(error::pickle)?;
    let profiles = |side: &[Py<Profile>]| side.iter().map(|p| p.get().profile.clone()).collect::<Vec<_>>();
    let diff = match (of_profile, new.first()) {
        (true, Some(profile)) => pprofdiff::Diff::of_profile(&profile.get().profile),
        (true, None) => return Err(PyTypeError::new_err("not a pickle of pprofdiff")),
        (false, _) => pprofdiff::Diff::new(&profiles(&base), &profiles(&new)),
    };
    let diff = diff.map_err(|e| error::from_engine(py, &e))?;
    let diff = if sum { diff.summed() } else { diff };
    let diff = folder.into_iter().fold(diff, |diff, folder| diff.with_folder(folder));
    Py::new(py, (Diff { base, new, of_profile }, Views { diff, query, selected: Arc::default(), profile: None }))
}
