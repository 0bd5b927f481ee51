//! `FlameGraph`: a flame graph that notebooks display.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use pprofdiff::{Query, Selection};
use pprofdiff_page::Page;
use pprofdiff_report::{Request, View};
use pyo3::prelude::*;

use crate::answers::to_string;
use crate::pictures::save_by_extension;
use crate::profile::{Pickled, pickled};
use crate::views::Views;
use crate::{REGISTRY, error, runtime};

/// The picture, or the reason why it can't be drawn.
type Picture = Result<String, String>;

/// A flame graph, returned by Views.flamegraph(). Notebooks show it in a sandboxed frame.
#[pyclass(frozen, module = "pprofdiff")]
pub struct FlameGraph {
    page: Arc<Page>,
    /// The picture without script. It is drawn when it is needed first, because most callers only want the page.
    svg: OnceLock<Picture>,
    /// The input of the picture. `None` after unpickling: a pickle contains the picture.
    drawn: Option<(pprofdiff::Diff, Arc<Mutex<Option<(Query, Selection)>>>, Query)>,
}

impl FlameGraph {
    pub fn new(
        page: Page,
        diff: pprofdiff::Diff,
        selected: Arc<Mutex<Option<(Query, Selection)>>>,
        query: Query,
    ) -> FlameGraph {
        FlameGraph { page: Arc::new(page), svg: OnceLock::new(), drawn: Some((diff, selected, query)) }
    }

    /// Draws the picture, or returns the one drawn before.
    fn picture(&self, py: Python<'_>) -> PyResult<&Picture> {
        if let (None, Some((diff, selected, query))) = (self.svg.get(), self.drawn.clone()) {
            let format = REGISTRY.format("flamegraph").map_err(|e| error::from_engine(py, &e))?;
            let drawn = runtime::run(py, move || {
                let request = Request { query, view: View::default() }.for_format(format, &REGISTRY);
                let draw = |request: Request| {
                    let report = request.answer_with(&diff, |query| Views::select(&diff, &selected, query))?;
                    to_string(format, &report)
                };
                Ok(request.and_then(draw).map_err(|e| e.to_string()))
            })?;
            // Another thread may have drawn the same picture meanwhile.
            let _ = self.svg.set(drawn);
        }
        Ok(self.svg.get_or_init(|| Err("the picture was not drawn".to_owned())))
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

    /// Return the graph as an <svg> element without scripts, with the same boxes down to a width of one pixel and a
    /// tooltip for each box.
    fn to_svg(&self, py: Python<'_>) -> PyResult<&str> {
        self.picture(py)?.as_deref().map(str::trim_end).map_err(|e| error::message(py, e))
    }

    /// Save the graph in the format of the path's extension: .html for the interactive page, or .svg for a picture
    /// without scripts.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let choose = |ending: &str| match ending {
            "html" | "htm" => Ok(Some(self.page.html.clone())),
            "svg" => Ok(Some(format!("{}\n", self.to_svg(py)?))),
            _ => Ok(None),
        };
        save_by_extension(py, path, choose, ".html or .svg")
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
        let picture = slf.get().picture(slf.py())?;
        pickled(slf.py(), "_rebuild_flamegraph", serde_json::to_vec(&(&*slf.get().page, picture)))
    }
}

#[pyfunction(name = "_rebuild_flamegraph")]
pub fn rebuild_flamegraph(bytes: &[u8]) -> PyResult<FlameGraph> {
    let (page, svg) = serde_json::from_slice::<(Page, Picture)>(bytes).map_err(error::pickle)?;
    Ok(FlameGraph { page: Arc::new(page), svg: OnceLock::from(svg), drawn: None })
}
