//! Finds the profiles for batch() and scan(): pairs of profiles, and profiles with their keys.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use pprofdiff::input::{BatchItem, Finder, Groups, ListedFile, manifest_pairs};
use pprofdiff::loading::Loading;
use pprofdiff::{Error, Source};
use pprofdiff_store::{StoreSelection, StoredProfile};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::listed::ListedUrls;
use crate::profile::rebuild;
use crate::{error, runtime};

/// Two sides with a common name, for batch(). Created by pairs(), or directly.
///
/// `base` and `new` are as in diff(). The name defaults to the name of the new side. `keys` become columns in tables of
/// many pairs.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Pair {
    /// The name of the pair: the path below both directories, the text that the pattern's `*` matched,
    /// the name in the manifest, or for group_pairs() the keys that both sides share.
    #[pyo3(get)]
    pub name: String,
    /// The base, as diff() accepts it; None if there is an error.
    #[pyo3(get)]
    pub base: Py<PyAny>,
    /// The new side, as diff() accepts it; None if there is an error.
    #[pyo3(get)]
    pub new: Py<PyAny>,
    /// The reason why the pair can't be compared (a file without a partner, an invalid line), or None.
    #[pyo3(get)]
    pub error: Option<Py<PyAny>>,
    pub keys: Vec<(String, String)>,
}

impl Pair {
    fn resolved(py: Python<'_>, pair: BatchItem) -> PyResult<Pair> {
        let side = |sources: Vec<Source>| -> PyResult<Py<PyAny>> {
            // All sources of the engine's pairs are paths, or URLs in the form of paths. An `OsStr` becomes a Python
            // str, which keeps the `//` of a URL. A `Path` would become a pathlib.Path, which drops one `/`.
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
        Ok(Pair { name: pair.name, base, new, error, keys: pair.keys })
    }
}

/// Returns the name of a side: the name of its first source.
pub fn side_name(side: &Bound<'_, PyAny>) -> String {
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
    #[pyo3(signature = (base, new, name = None, *, error = None, keys = None))]
    fn new(
        base: Bound<'_, PyAny>,
        new: Bound<'_, PyAny>,
        name: Option<String>,
        error: Option<Py<PyAny>>,
        keys: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pair> {
        let name = name.unwrap_or_else(|| side_name(&new));
        let keys = keys.map_or_else(|| Ok(Vec::new()), key_values)?;
        Ok(Pair { name, base: base.unbind(), new: new.unbind(), error, keys })
    }

    /// The parts that vary between the pairs, as a dict of texts in order: the keys of group_pairs(), with _base and
    /// _new for those that differ between the sides, or key_1 for the first wildcard of a pattern. Empty for
    /// directories and manifests.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.keys.iter().try_for_each(|(name, value)| dict.set_item(name, value))?;
        Ok(dict)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, PairState)> {
        let (py, this) = (slf.py(), slf.get());
        let error = this.error.as_ref().map(|e| e.clone_ref(py));
        let state = (this.base.clone_ref(py), this.new.clone_ref(py), this.name.clone(), error, this.keys.clone());
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
        // Sides can be URLs with secrets.
        Ok(pprofdiff::text::redacted(&repr).into_owned())
    }
}

type PairState = (Py<PyAny>, Py<PyAny>, String, Option<Py<PyAny>>, Vec<(String, String)>);

#[pyfunction(name = "_rebuild_pair")]
pub fn rebuild_pair(
    base: Py<PyAny>,
    new: Py<PyAny>,
    name: String,
    error: Option<Py<PyAny>>,
    keys: Vec<(String, String)>,
) -> Pair {
    Pair { name, base, new, error, keys }
}

/// Converts the keys that a caller gives.
fn key_values(keys: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    keys.iter().map(|(name, value)| Ok((name.extract()?, value.str()?.to_string()))).collect()
}

/// The pairs of a manifest. A thread reads a few pairs ahead, because a line may take long to arrive and Ctrl-C must
/// not wait for it.
#[pyclass(module = "pprofdiff._native")]
pub struct Manifest {
    /// The mutex exists only because a pyclass must be `Sync`; the single method has exclusive access.
    pairs: Mutex<Receiver<BatchItem>>,
    reader: Option<JoinHandle<()>>,
    /// The process that runs the reader thread.
    process: u32,
}

impl Manifest {
    fn new(lines: impl Iterator<Item = BatchItem> + Send + 'static) -> PyResult<Manifest> {
        let (sender, pairs) = sync_channel(64);
        let read = move || {
            for pair in lines {
                // The iterator was dropped.
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
                Ok(pair) => return Pair::resolved(py, pair).map(Some),
                Err(RecvTimeoutError::Timeout) => runtime::check_signals(py)?,
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = self.reader.take().map_or(Ok(()), JoinHandle::join);
                    return ended.map(|()| None).map_err(|panic| runtime::bug(&*panic));
                }
            }
        }
    }
}

/// Find files that belong together and return them as Pairs for batch(), ordered by name.
///
/// `base` and `new` are two directories, or two patterns. Files with the same path below both directories are compared;
/// names that begin with a dot are ignored. In patterns such as pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"), the
/// wildcards `*`, `?`, `[...]` and `**` must match the same text in both paths. fsspec lists the files of URL patterns.
/// A file without a partner becomes a Pair with an error, so the number of results matches the number of files.
///
/// `base` alone is a manifest, which is read while pairs are compared: CSV with the columns base, new and optionally
/// name, or JSON lines (.jsonl) with the same keys, in which a side can be a list. A side can be a URL.
///
/// Raises PprofError if there is nothing to compare, and OSError for system errors.
#[pyfunction]
#[pyo3(signature = (base, new = None))]
pub fn pairs(py: Python<'_>, base: PathBuf, new: Option<PathBuf>) -> PyResult<Py<PyAny>> {
    let Some(new) = new else {
        return Manifest::new(runtime::run(py, move || manifest_pairs(&base))?)?.into_py_any(py);
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let listed = ListedUrls::new(py, &[&base, &new])?;
    let resolved = runtime::run(py, move || Finder::with_objects(&listed).pairs(&text(&base), &text(&new)))?;
    resolved.into_iter().map(|pair| Pair::resolved(py, pair)).collect::<PyResult<Vec<_>>>()?.into_py_any(py)
}

/// Find files that belong together by keys and return them as Pairs for batch(), in the natural order of
/// the keys that both sides share.
///
/// `files` is a pattern (of paths or URLs), a manifest, or an iterable of dicts. For a pattern, `keys` are templates
/// for paths and labels, such as "service={1},version={version}": {1} is the text that the first wildcard matched, and
/// {version} is the profile's value of the label "version". For a manifest or dicts, `keys` are columns, such as
/// "service,version", in addition to the column "profile". `base` and `new` are the keys of each side: "version=v1", or
/// "version=@previous" and "version=@latest". All files of a side are its runs. A group that only one side has becomes
/// a Pair with an error.
///
/// Raises PprofError if nothing matches or if the keys or sides are invalid, and OSError for system errors.
#[pyfunction]
pub fn group_pairs(py: Python<'_>, files: &Bound<'_, PyAny>, keys: &str, base: &str, new: &str) -> PyResult<Vec<Pair>> {
    let groups = Groups::new(keys, base, new);
    let resolved = match files.extract::<PathBuf>() {
        Ok(files_path) => {
            let listed = ListedUrls::new(py, &[&files_path])?;
            runtime::run(py, move || {
                let options = Loading::default().to_options()?;
                Finder::with_objects(&listed).group_pairs(&files_path.to_string_lossy(), &groups, &options)
            })?
        }
        Err(_) => {
            let mut listed = Vec::new();
            for row in files.try_iter()? {
                listed.push(listed_file(&row?)?);
            }
            groups.pair_listed(listed, "the listed files").map_err(|e| error::from_engine(py, &e))?
        }
    };
    resolved.into_iter().map(|pair| Pair::resolved(py, pair)).collect()
}

/// Converts a dict that the caller listed.
fn listed_file(row: &Bound<'_, PyAny>) -> PyResult<ListedFile> {
    let mut columns = BTreeMap::new();
    for (name, value) in row.cast::<PyDict>()? {
        columns.insert(name.extract::<String>()?, value.str()?.to_string());
    }
    let profile = columns.remove("profile").ok_or_else(|| PyKeyError::new_err("profile"))?;
    Ok(ListedFile::new(profile, columns))
}

/// Returns the profiles that scan() receives as a single text or path, with their keys.
#[pyfunction(name = "_listed_files")]
#[pyo3(signature = (files, keys))]
pub fn listed_files(
    py: Python<'_>,
    files: PathBuf,
    keys: Option<String>,
) -> PyResult<Vec<(OsString, BTreeMap<String, String>)>> {
    let listed = ListedUrls::new(py, &[&files])?;
    let find_files = move || match StoreSelection::named(&files)? {
        None => {
            let options = Loading::default().to_options()?;
            Finder::with_objects(&listed).list_files(&files.to_string_lossy(), keys.as_deref(), &options)
        }
        Some(_) if keys.is_some() => {
            Err(Error::query("a store has its own keys").in_input(&files.display().to_string()))
        }
        Some(stored) => {
            let keyed = |p: &StoredProfile| ListedFile::new(p.name(), p.keys().iter().cloned().collect());
            Ok(stored.profiles()?.iter().map(keyed).collect())
        }
    };
    Ok(runtime::run(py, find_files)?.into_iter().map(|file| (file.profile.into_os_string(), file.keys)).collect())
}
