//! `FlameGraph`: a flame graph that notebooks display.

use std::path::PathBuf;
use std::sync::Arc;

use pprofdiff_page::Page;
use pyo3::prelude::*;

use crate::profile::{Pickled, pickled};
use crate::{error, runtime};

/// A flame graph, returned by Views.flamegraph(). Notebooks show it in a sandboxed frame.
#[pyclass(frozen, module = "pprofdiff")]
pub struct FlameGraph {
    page: Arc<Page>,
}

impl FlameGraph {
    pub fn new(page: Page) -> FlameGraph {
        FlameGraph { page: Arc::new(page) }
    }
}

/// Writes text to a file with the GIL released. The file is written completely or not at all.
pub fn save(py: Python<'_>, path: PathBuf, text: impl AsRef<[u8]> + Send + 'static) -> PyResult<()> {
    runtime::run(py, move || pprofdiff::output::write_file(path, |out| out.write_all(text.as_ref())))
}

#[pymethods]
impl FlameGraph {
    /// Return the graph as a self-contained HTML file.
    fn to_html(&self) -> &str {
        &self.page.html
    }

    /// Write the graph to a path as an HTML file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        save(py, path, self.page.html.clone())
    }

    /// Return the graph as a notebook widget. The frame that the user selects, with a click or the arrow keys, is
    /// available as `widget.frame` (a name, or None) and `widget.stack` (names, root first). `widget.observe(f,
    /// "stack")` calls f on each selection.
    ///
    /// Raises ModuleNotFoundError without anywidget: pip install anywidget.
    fn widget<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pprofdiff._widget")?.call_method1("FlameGraphWidget", (slf,))
    }

    fn _repr_html_(&self) -> String {
        self.page.framed()
    }

    fn __repr__(&self) -> String {
        format!(
            "<FlameGraph of {}: {} kB, for a notebook or .save(path)>",
            self.page.title,
            self.page.html.len() / 1000
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_flamegraph", serde_json::to_vec(&*slf.get().page))
    }
}

#[pyfunction(name = "_rebuild_flamegraph")]
pub fn rebuild_flamegraph(bytes: &[u8]) -> PyResult<FlameGraph> {
    Ok(FlameGraph::new(serde_json::from_slice(bytes).map_err(error::pickle)?))
}
