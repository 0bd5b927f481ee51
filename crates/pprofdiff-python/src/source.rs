//! Converts Python objects to sources of profiles.

use std::path::{Path, PathBuf};

use pprofdiff::Source;
use pprofdiff::input::{Fetch, Finder};
use pprofdiff::text::{Secrets, redacted};
use pprofdiff_cli::sides;
use pyo3::exceptions::{PyModuleNotFoundError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::error;
use crate::profile::Profile;
use crate::runtime;

/// Converts one object to a source. Bytes are copied, because a thread of the pool must not hold a Python object, see
/// [`crate::runtime`]. Compressed bytes are small compared with their inflated size.
pub fn source(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(profile) = object.cast::<Profile>() {
        return Ok(Source::Profile(profile.get().profile.clone()));
    }
    if let Some(url) = url(object) {
        // The server is queried later, when the source is loaded without the GIL.
        if let Some(source) = pprofdiff_cli::server_source(&url) {
            return source.map_err(|e| error::from_engine(object.py(), &e));
        }
        // Errors about the bytes, and the profile itself, must not repeat a secret of the URL.
        let (bytes, secrets) = (fetch(object.py(), &url)?, Secrets::of_url(&url));
        let fetch = Fetch::with_secrets(move || Ok((bytes.clone(), secrets.clone())));
        return Ok(Source::Fetch(redacted(&url).into_owned(), fetch));
    }
    if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
        let path = object.extract::<PathBuf>()?;
        return sides::source_of(&path).map_err(|e| error::from_engine(object.py(), &e));
    }
    if let Some(bytes) = bytes(object)? {
        return Ok(Source::Bytes("<bytes>".to_owned(), bytes));
    }
    if object.hasattr("read")? {
        let content = object.call_method0("read")?;
        let name = object.getattr("name").and_then(|n| n.extract::<String>()).unwrap_or_else(|_| "<stream>".to_owned());
        let name = redacted(&name).into_owned();
        return match bytes(&content)? {
            Some(bytes) => Ok(Source::Bytes(name, bytes)),
            None => Err(PyTypeError::new_err(format!(
                "{name}: read() gave {}, not bytes; a profile is binary, so open it with mode 'rb'",
                content.get_type().name()?
            ))),
        };
    }
    let type_name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a profile must be a path, a URL, bytes, a file object or a Profile, not {type_name}"
    )))
}

/// Returns the text of an object that is a URL, which starts with a scheme and `://`.
pub fn url(object: &Bound<'_, PyAny>) -> Option<String> {
    let text = object.cast::<PyString>().ok()?.to_str().ok()?;
    let (scheme, _) = text.split_once("://")?;
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(legal)).then(|| text.to_owned())
}

/// Fetches a URL through fsspec, which supports many schemes. Errors of fsspec are passed on unchanged, unless the URL
/// has a secret that they could repeat.
fn fetch(py: Python<'_>, url: &str) -> PyResult<Vec<u8>> {
    let shown = redacted(url);
    fetch_as(py, url, &shown).map_err(|e| as_shown(py, url, e))
}

/// Lists the URLs of all files below a URL that ends in a slash, through fsspec. Errors are handled as in [`fetch`].
pub fn list(py: Python<'_>, folder: &str) -> PyResult<Vec<String>> {
    let files = || -> PyResult<Vec<String>> {
        let (filesystem, path) = filesystem(py, folder)?;
        // fsspec returns paths without the scheme. The part after the folder is the same in paths and URLs.
        let path = path.trim_end_matches('/');
        let url = |entry: Bound<'_, PyAny>| {
            let entry: String = entry.extract()?;
            Ok(format!("{folder}{}", entry.strip_prefix(path).unwrap_or(&entry).trim_start_matches('/')))
        };
        filesystem.call_method1("find", (path,))?.try_iter()?.map(|entry| url(entry?)).collect()
    };
    files().map_err(|e| as_shown(py, folder, e))
}

/// Hides the secrets of the URL in an error.
fn as_shown(py: Python<'_>, url: &str, e: PyErr) -> PyErr {
    if redacted(url) == url { e } else { without_secrets(py, url, &e) }
}

/// Creates an error of the nearest builtin base class of `e`, with the same text but without the
/// secrets of the URL. The cause of `e` is dropped, because it could contain the secrets too.
fn without_secrets(py: Python<'_>, url: &str, e: &PyErr) -> PyErr {
    let text = e.value(py).str().map_or_else(|_| String::new(), |s| s.to_string_lossy().into_owned());
    let text = Secrets::of_url(url).redact(&text).into_owned();
    let builtin = || {
        let is_builtin = |class: &Bound<'_, PyAny>| class.getattr("__module__")?.eq("builtins");
        let class = e.get_type(py).mro().iter().find(|class| is_builtin(class).unwrap_or(false))?;
        class.call1((&text,)).ok()
    };
    // Some exception classes need more arguments than a text.
    builtin().map_or_else(|| PyOSError::new_err(text.clone()), PyErr::from_value)
}

/// Returns fsspec's file system and path for a URL.
fn filesystem<'py>(py: Python<'py>, url: &str) -> PyResult<(Bound<'py, PyAny>, String)> {
    let fsspec = py.import("fsspec.core").map_err(|e| {
        if !e.is_instance_of::<PyModuleNotFoundError>(py) {
            return e;
        }
        let shown = redacted(url);
        PyModuleNotFoundError::new_err(format!("{shown}: loading from a URL needs fsspec: pip install fsspec"))
    })?;
    fsspec.call_method1("url_to_fs", (url,))?.extract()
}

fn fetch_as(py: Python<'_>, url: &str, shown: &str) -> PyResult<Vec<u8>> {
    let (filesystem, path) = filesystem(py, url)?;
    let content = filesystem.call_method1("cat_file", (path,))?;
    bytes(&content)?.ok_or_else(|| PyTypeError::new_err(format!("{shown}: fsspec gave something other than bytes")))
}

/// Returns the content of bytes or of an object with the buffer protocol; `None` for other objects.
fn bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
    Ok(Some(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Converts an iterable of objects to sources.
pub fn sources(objects: &Bound<'_, PyAny>) -> PyResult<Vec<Source>> {
    if objects.is_instance_of::<PyString>() || objects.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("profiles must be a list"));
    }
    let (mut all, mut made) = (Vec::new(), 0);
    // Does not use `collect`, because that calls `__length_hint__`, and Python would print and discard a Ctrl-C during
    // that call.
    for object in objects.try_iter()? {
        let source = source(&object?)?;
        // The weights reflect the work per object: a path requires file system calls.
        made += if source.path().is_some() { 100 } else { 10 };
        runtime::yield_gil(objects.py(), &mut made)?;
        all.push(source);
    }
    Ok(all)
}

/// One side of a comparison.
pub struct SideSources {
    pub sources: Vec<Source>,
    /// For each source, the Profile object that the caller passed, or `None` for other sources. A diff
    /// returns these objects, so that `diff.base[0] is profile`.
    pub given: Vec<Option<Py<Profile>>>,
}

/// Returns the text of an object that is a pattern of paths. Returns `None` for URLs, and if a file has
/// exactly this name.
fn pattern(object: &Bound<'_, PyAny>) -> Option<String> {
    let text = object.cast::<PyString>().ok()?.to_str().ok()?;
    let is_pattern = text.contains(['*', '?', '[']) && url(object).is_none() && !Path::new(text).exists();
    is_pattern.then(|| text.to_owned())
}

impl SideSources {
    /// Converts one object, or a list or tuple of objects. A pattern stands for all files that match it.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<SideSources> {
        let py = object.py();
        let mut side = SideSources { sources: Vec::new(), given: Vec::new() };
        let mut add = |object: &Bound<'_, PyAny>| {
            if let Some(pattern) = pattern(object) {
                let files = Finder::default().builds(&pattern).map_err(|e| error::from_engine(py, &e))?;
                side.given.extend(files.iter().map(|_| None));
                side.sources.extend(files.into_iter().map(|(_, source)| source));
                return Ok(());
            }
            // A side of a folder of runs (`RUNS/base`) or a part of a store stands for all of its profiles.
            if let Ok(path) = object.extract::<PathBuf>()
                && let Some(runs) = sides::named(&path).map_err(|e| error::from_engine(py, &e))?
            {
                side.given.extend(runs.runs.iter().map(|_| None));
                side.sources.extend(runs.to_sources());
                return Ok(());
            }
            side.given.push(object.cast::<Profile>().ok().map(|p| p.clone().unbind()));
            source(object).map(|source| side.sources.push(source))
        };
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let mut made = 0;
            for object in object.try_iter()? {
                add(&object?)?;
                made += 100;
                runtime::yield_gil(py, &mut made)?;
            }
        } else {
            add(object)?;
        }
        Ok(side)
    }
}
