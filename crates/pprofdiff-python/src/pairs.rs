//! Which profiles there are: pairs of them, and profiles with their keys, for batch() and scan().

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use pprofdiff::input::{BatchItem, Finder, Groups, ListedFile, manifest_pairs};
use pprofdiff::loading::Loading;
use pprofdiff::store::{Selection, StoredProfile};
use pprofdiff::{Error, Source};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::listed::Listed;
use crate::profile::rebuild;
use crate::{error, runtime};

/// Two sides under one name, for batch(). Made by pairs(), or by hand.
///
/// `base` and `new` are as for diff(); the name is the new side's unless given.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Pair {
    /// What the sides have in common: the path below both directories, what a pattern's `*` stood for, or as the
    /// manifest says.
    #[pyo3(get)]
    pub name: String,
    /// The base, as diff() takes it; None if there is an error.
    #[pyo3(get)]
    pub base: Py<PyAny>,
    /// The new side, as diff() takes it; None if there is an error.
    #[pyo3(get)]
    pub new: Py<PyAny>,
    /// Why there is no pair (a file without a partner, a bad line), or None.
    #[pyo3(get)]
    pub error: Option<Py<PyAny>>,
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
/// pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"); of URLs, fsspec lists the files. A file without a partner is a Pair
/// with an error, so results can be counted against files.
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
    let listed = Listed::new(py, &[&base, &new])?;
    let found = runtime::run(py, move || Finder::with_objects(&listed).pairs(&text(&base), &text(&new)))?;
    found.into_iter().map(|pair| Pair::found(py, pair)).collect::<PyResult<Vec<_>>>()?.into_py_any(py)
}

/// Which files belong together by keys: Pairs for batch(), in the natural order of the keys that both sides share.
///
/// `files` is a pattern (of URLs, too), of whose paths and labels `keys` are made ("service={1},version={version}": {1}
/// is what its first sign stands for, {version} the value of that label, of which a profile has one); or a manifest, of
/// which they are columns ("service,version"), beside the column profile; or an iterable of dicts of such columns.
/// `base` and `new` say what a side's keys are: "version=v1", or "version=@previous" and "version=@latest". All files
/// of a side are its runs. What only one side has is a Pair with an error.
///
/// Raises PprofError if nothing matches, or of keys and sides that are none; OSError from the system.
#[pyfunction]
pub fn group_pairs(py: Python<'_>, files: &Bound<'_, PyAny>, keys: &str, base: &str, new: &str) -> PyResult<Vec<Pair>> {
    let groups = Groups::new(keys, base, new);
    let found = match files.extract::<PathBuf>() {
        Ok(of) => {
            let listed = Listed::new(py, &[&of])?;
            runtime::run(py, move || {
                let options = Loading::default().to_options()?;
                Finder::with_objects(&listed).group_pairs(&of.to_string_lossy(), &groups, &options)
            })?
        }
        Err(_) => {
            let mut listed = Vec::new();
            for row in files.try_iter()? {
                listed.push(listed_file(&row?)?);
            }
            groups.pair_listed(listed, "what is listed").map_err(|e| error::from_engine(py, &e))?
        }
    };
    found.into_iter().map(|pair| Pair::found(py, pair)).collect()
}

/// A row of what the caller has listed.
fn listed_file(row: &Bound<'_, PyAny>) -> PyResult<ListedFile> {
    let mut columns = BTreeMap::new();
    for (name, value) in row.cast::<PyDict>()? {
        columns.insert(name.extract::<String>()?, value.str()?.to_string());
    }
    let profile = columns.remove("profile").ok_or_else(|| PyKeyError::new_err("profile"))?;
    Ok(ListedFile::new(profile, columns))
}

/// The profiles that scan() is given as one text or path, with their keys.
#[pyfunction(name = "_listed_files")]
#[pyo3(signature = (of, keys))]
pub fn listed_files(
    py: Python<'_>,
    of: PathBuf,
    keys: Option<String>,
) -> PyResult<Vec<(OsString, BTreeMap<String, String>)>> {
    let listed = Listed::new(py, &[&of])?;
    let list = move || match Selection::named(&of)? {
        None => {
            let options = Loading::default().to_options()?;
            Finder::with_objects(&listed).list_files(&of.to_string_lossy(), keys.as_deref(), &options)
        }
        Some(_) if keys.is_some() => Err(Error::query("a store has its own keys").in_input(&of.display().to_string())),
        Some(stored) => {
            let keyed = |p: &StoredProfile| ListedFile::new(p.name(), p.keys().iter().cloned().collect());
            Ok(stored.profiles()?.iter().map(keyed).collect())
        }
    };
    Ok(runtime::run(py, list)?.into_iter().map(|file| (file.profile.into_os_string(), file.keys)).collect())
}
