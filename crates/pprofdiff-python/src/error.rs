//! Converts the engine's errors to Python exceptions: `PprofError`, `OSError` for system errors, and
//! `KeyboardInterrupt` for cancelled work.

use std::io;

use pprofdiff::ErrorKind;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::keywords::keywords;

static PPROF_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the exception class. The stable ABI of Python 3.11 can't extend ValueError with C fields, so the attributes
/// are ordinary ones: the class has the defaults, and the `__dict__` of an instance is pickled with it.
pub fn pprof_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let class = PPROF_ERROR.get_or_try_init(py, || {
        let doc = c"A profile is invalid, or a question about it can't be answered.

The message is a single line with the input, the record, the byte offset and the reason. Control characters and
other unprintable characters in it are replaced. The attributes have the exact parts:
input (str or None: the file's name, or a placeholder for it), record (str or None: such as 'sample 17', counted
from 0), offset (int or None: in bytes of the inflated data) and detail (str: the reason, without the place).
advice (str or None) is a shell command that can help; names in it are quoted. It is also attached as a note, so a
traceback shows it, but the message, which goes to logs, does not contain it.";
        let base = py.get_type::<PyValueError>();
        // Sets the attributes here and not through new_type's own dict, because pyo3 0.30 frees that dict too early.
        let class = PyErr::new_type(py, c"pprofdiff.PprofError", Some(doc), Some(&base), None)?;
        for name in ["input", "record", "offset", "detail", "advice"] {
            class.bind(py).setattr(name, py.None())?;
        }
        Ok::<_, PyErr>(class)
    })?;
    Ok(class.bind(py))
}

/// Returns a PprofError about an argument.
pub fn message(py: Python<'_>, text: &str) -> PyErr {
    instance(py, &pprofdiff::text::sanitize(text), text, None).unwrap_or_else(|e| e)
}

/// Converts an error of the engine.
pub fn from_engine(py: Python<'_>, e: &pprofdiff::Error) -> PyErr {
    if e.kind() == ErrorKind::Interrupted {
        return PyKeyboardInterrupt::new_err(());
    }
    match e.io_error() {
        Some(io) if io.kind() != io::ErrorKind::InvalidInput => from_io(py, io, e.input()),
        _ => {
            let policy = match e.kind() {
                ErrorKind::Reset => "; to continue after a restart, set on_reset=\"pass\" or on_reset=\"clamp\"",
                _ => "",
            };
            let [message, detail] = [e.spelled(keyword), e.spelled_detail(keyword)].map(|text| text + policy);
            instance(py, &keywords(&message), &keywords(&detail), Some(e)).unwrap_or_else(|e| e)
        }
    }
}

/// Returns an option as it is written in a call.
fn keyword(name: &str, value: Option<&str>) -> String {
    format!("{name}={}", value.map_or_else(String::new, |value| format!("{value:?}")))
}

fn instance(py: Python<'_>, message: &str, detail: &str, e: Option<&pprofdiff::Error>) -> PyResult<PyErr> {
    let value = pprof_error(py)?.call1((message,))?;
    value.setattr("detail", detail)?;
    if let Some(e) = e {
        value.setattr("input", e.input())?;
        value.setattr("record", e.record())?;
        value.setattr("offset", e.offset())?;
        if let Some(advice) = e.advice() {
            value.setattr("advice", advice)?;
            value.call_method1("add_note", (advice,))?;
        }
    }
    Ok(PyErr::from_value(value))
}

/// Converts a system error with its errno, so that Python chooses the subclass, such as FileNotFoundError.
pub fn from_io(py: Python<'_>, e: &io::Error, path: Option<&str>) -> PyErr {
    let os_error = || {
        let errno = match (e.raw_os_error(), e.kind()) {
            (Some(errno), _) => errno,
            (None, io::ErrorKind::IsADirectory) => py.import("errno")?.getattr("EISDIR")?.extract()?,
            (None, _) => {
                let text = path.map_or_else(|| e.to_string(), |p| format!("{p}: {e}"));
                return Ok(PyOSError::new_err(pprofdiff::text::sanitize(&text).into_owned()));
            }
        };
        let text: String = py.import("os")?.call_method1("strerror", (errno,))?.extract()?;
        Ok::<_, PyErr>(match path {
            Some(path) => PyOSError::new_err((errno, text, path.to_owned())),
            None => PyOSError::new_err((errno, text)),
        })
    };
    os_error().unwrap_or_else(|e| e)
}

/// Returns the error for a pickle of another program or another version.
pub fn pickle(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("not a pickle of this version of pprofdiff: {e}"))
}
