//! CallGraph and Listing: what a notebook shows of a call graph and of source lines, and what is saved of it.
//!
//! Both hold what was written, not what it was written from: it is small, and it pickles.

use std::path::PathBuf;

use pprofdiff_report::{
    TextOptions, dot, listing_html, listing_json, listing_text, missing_sources, svg, to_html_page,
};
use pyo3::prelude::*;

use crate::profile::{Pickled, pickled};
use crate::table::text;
use crate::{error, flamegraph};

/// A call graph, made by callgraph(). A notebook shows it as a picture; no Graphviz is needed.
#[pyclass(frozen, module = "pprofdiff")]
pub struct CallGraph {
    words: String,
    dot: String,
    /// The picture, or why there is none.
    svg: Result<String, String>,
}

impl CallGraph {
    pub fn new(graph: &pprofdiff::graph::Graph) -> CallGraph {
        CallGraph {
            words: format!("<CallGraph of {} frames and {} calls>", graph.nodes.len(), graph.calls.len()),
            dot: text(|out| dot(graph, out)),
            svg: svg(graph).map_err(|e| e.to_string()),
        }
    }
}

/// Writes a file, by its ending.
fn save(py: Python<'_>, path: PathBuf, choose: impl FnOnce(&str) -> Option<String>, endings: &str) -> PyResult<()> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    match choose(&ending) {
        Some(content) => flamegraph::save(py, path, content),
        None => Err(error::message(py, &format!("{}: a file to save to ends in {endings}", path.display()))),
    }
}

#[pymethods]
impl CallGraph {
    /// The picture as an <svg> element: no script, no style sheet, no link; everything from the input is escaped.
    /// Of very many calls it has the heaviest, and says how many.
    /// Raises PprofError if there are more than 400 frames.
    fn to_svg(&self, py: Python<'_>) -> PyResult<&str> {
        self.svg.as_deref().map_err(|e| error::message(py, e))
    }

    /// The graph in Graphviz's language.
    fn to_dot(&self) -> &str {
        &self.dot
    }

    /// Save it as what the path ends in: .svg, or .dot (.gv) for Graphviz.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let svg = match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => self.to_svg(py)?,
            _ => "",
        };
        let choose = |ending: &str| match ending {
            "svg" => Some(format!("{svg}\n")),
            "dot" | "gv" => Some(self.dot.clone()),
            _ => None,
        };
        save(py, path, choose, ".svg, .dot or .gv")
    }

    fn _repr_svg_(&self) -> Option<&str> {
        self.svg.as_deref().ok()
    }

    /// In a frame that scrolls: most graphs are wider than a notebook.
    fn _repr_html_(&self) -> Option<String> {
        let svg = self.svg.as_deref().ok()?;
        Some(format!("<div style=\"overflow:auto;max-height:80vh\">{svg}</div>"))
    }

    fn __repr__(&self) -> &str {
        &self.words
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        pickled(slf.py(), "_rebuild_callgraph", serde_json::to_vec(&(&this.words, &this.dot, &this.svg)))
    }
}

/// Source lines or instructions with their costs, made by list() or disasm().
#[pyclass(frozen, module = "pprofdiff")]
pub struct Listing {
    text: String,
    json: String,
    html: String,
    page: String,
}

impl Listing {
    pub fn new(listing: &pprofdiff::list::Listing) -> Listing {
        let shown = text(|out| listing_text(listing, out, TextOptions::default()));
        let hint = missing_sources(listing, ["base_source=", "new_source=", "source_path="]);
        // The hint is all ours.
        let note = hint.as_ref().map(|hint| format!("<div class=\"pprofdiff\"><div class=\"note\">{hint}</div></div>"));
        Listing {
            text: format!(
                "{}{}",
                shown.trim_end(),
                hint.as_ref().map_or_else(String::new, |hint| format!(
                    "

{hint}"
                ))
            ),
            json: text(|out| listing_json(listing, out)),
            html: listing_html(listing) + &note.unwrap_or_default(),
            page: to_html_page(listing),
        }
    }
}

#[pymethods]
impl Listing {
    /// The functions, each a dict: name, file, base_source and new_source (where the texts were found, or
    /// None), status, flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta, notes, and lines, a list of
    /// dicts: base_line and new_line (None where a build does not have the line), change ("same", "inserted" or
    /// "deleted"), text and the same costs. Of one profile: source, flat and cum, and line; no status or change.
    ///
    /// Lines of profiles that were loaded with `binary` have instructions, a list of dicts: base_address and
    /// new_address, change, text, function, file and line (the innermost that it was made of), and the same costs. Made
    /// by disasm(), functions have them and no lines, and base_binary and new_binary.
    #[getter]
    fn routines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))?.get_item("routines")
    }

    /// The listing as JSON, schema pprofdiff/1.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// The listing as an HTML fragment; everything from the input is escaped.
    fn to_html(&self) -> &str {
        &self.html
    }

    /// Save it as what the path ends in: .html, .json or .txt.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let choose = |ending: &str| match ending {
            "html" | "htm" => Some(self.page.clone()),
            "json" => Some(self.json.clone()),
            "txt" => Some(format!("{}\n", self.text)),
            _ => None,
        };
        save(py, path, choose, ".html, .json or .txt")
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        pickled(slf.py(), "_rebuild_listing", serde_json::to_vec(&(&this.text, &this.json, &this.html, &this.page)))
    }
}

#[pyfunction(name = "_rebuild_callgraph")]
pub fn rebuild_callgraph(bytes: &[u8]) -> PyResult<CallGraph> {
    let (words, dot, svg) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(CallGraph { words, dot, svg })
}

#[pyfunction(name = "_rebuild_listing")]
pub fn rebuild_listing(bytes: &[u8]) -> PyResult<Listing> {
    let (text, json, html, page) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(Listing { text, json, html, page })
}
