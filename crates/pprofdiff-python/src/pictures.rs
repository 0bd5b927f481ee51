//! `CallGraph` and `Listing`: call graphs and listings that notebooks display and that can be saved.
//!
//! Both hold the rendered output instead of the data, because the output is small and can be pickled.

use std::path::PathBuf;
use std::sync::Arc;

use pprofdiff_report::{
    Report, TextOptions, dot, listing_html, listing_json, listing_text, missing_sources, svg, to_html_page,
};
use pyo3::prelude::*;

use crate::profile::{Pickled, pickled};
use crate::table::text;
use crate::within::{head_within, text_within};
use crate::{error, flamegraph};

/// A call graph, returned by callgraph(). Notebooks show it as a picture, without Graphviz.
#[pyclass(frozen, module = "pprofdiff")]
pub struct CallGraph {
    description: String,
    dot: String,
    /// The picture, or the reason why it can't be drawn.
    svg: Result<String, String>,
}

impl CallGraph {
    pub fn new(graph: &pprofdiff::graph::Graph) -> CallGraph {
        CallGraph {
            description: format!("<CallGraph of {} frames and {} calls>", graph.nodes.len(), graph.calls.len()),
            dot: text(|out| dot(graph, out)),
            svg: svg(graph).map_err(|e| e.to_string()),
        }
    }
}

/// Writes a file in the format of its extension. `choose` returns the content for an extension in lower case, and `None`
/// for an unknown one. The error lists `endings`.
pub fn save_by_extension(
    py: Python<'_>,
    path: PathBuf,
    choose: impl FnOnce(&str) -> PyResult<Option<String>>,
    endings: &str,
) -> PyResult<()> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    match choose(&ending)? {
        Some(content) => flamegraph::save(py, path, content),
        None => Err(error::message(py, &format!("{}: the file name must end in {endings}", path.display()))),
    }
}

#[pymethods]
impl CallGraph {
    /// Return the picture as an <svg> element without scripts, style sheets or links. All text from the input is
    /// escaped. A graph with very many calls shows only the heaviest calls, and reports how many.
    ///
    /// Raises PprofError for more than 400 frames.
    fn to_svg(&self, py: Python<'_>) -> PyResult<&str> {
        self.svg.as_deref().map_err(|e| error::message(py, e))
    }

    /// Return the graph in Graphviz's DOT language.
    fn to_dot(&self) -> &str {
        &self.dot
    }

    /// Save the graph in the format of the path's extension: .svg, or .dot (.gv) for Graphviz.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let choose = |ending: &str| match ending {
            "svg" => Ok(Some(format!("{}\n", self.to_svg(py)?))),
            "dot" | "gv" => Ok(Some(self.dot.clone())),
            _ => Ok(None),
        };
        save_by_extension(py, path, choose, ".svg, .dot or .gv")
    }

    fn _repr_svg_(&self) -> Option<&str> {
        self.svg.as_deref().ok()
    }

    /// A scrolling frame, because most graphs are wider than a notebook.
    fn _repr_html_(&self) -> Option<String> {
        let svg = self.svg.as_deref().ok()?;
        Some(format!("<div style=\"overflow:auto;max-height:80vh\">{svg}</div>"))
    }

    fn __repr__(&self) -> &str {
        &self.description
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        pickled(slf.py(), "_rebuild_callgraph", serde_json::to_vec(&(&this.description, &this.dot, &this.svg)))
    }
}

/// Source lines or instructions with their costs, returned by list() or disasm().
#[pyclass(frozen, module = "pprofdiff")]
pub struct Listing {
    text: String,
    json: String,
    html: String,
    page: String,
    /// The listing, from which `to_text(max_tokens=...)` writes. Pickling drops it.
    listing: Option<Arc<Report>>,
}

/// The keywords for folders of sources, in hints.
const SOURCE_KEYWORDS: [&str; 3] = ["base_source=", "new_source=", "source_path="];

impl Listing {
    pub fn new(engine_listing: pprofdiff::list::Listing) -> Listing {
        let listing = &engine_listing;
        let shown = text(|out| listing_text(listing, out, TextOptions::default()));
        let hint = missing_sources(listing, SOURCE_KEYWORDS);
        // The hint contains no text from the input, so it needs no escaping.
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
            listing: Some(Arc::new(Report::Listing(engine_listing))),
        }
    }
}

#[pymethods]
impl Listing {
    /// The functions, as a list of dicts. Keys: name, file, base_source and new_source (the location of the source
    /// text, or None), status, flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta, notes and lines. Lines
    /// are a list of dicts: base_line and new_line (None if a build lacks the line), change ("same", "inserted",
    /// "deleted", or "unknown" without the sources), text and the same costs. A listing of a single profile has source,
    /// flat and cum, and lines have line; there is no status or change.
    ///
    /// If the profiles were loaded with `binary`, lines have instructions, a list of dicts: base_address and
    /// new_address, change, text, function, file and line (of the innermost inlined function), and the same costs. In
    /// listings of disasm(), the functions have instructions, their lines are an empty list, and
    /// base_binary and new_binary take the place of base_source and new_source.
    #[getter]
    fn routines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))?.get_item("routines")
    }

    /// Return the listing as JSON, schema pprofdiff/1.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// Return the listing as text. With max_tokens (at least 50), the text has at most that many tokens, counted
    /// as by the command's --budget: the lines that changed most, and the number of omitted lines. A copy that was
    /// pickled keeps the first lines instead.
    #[pyo3(signature = (*, max_tokens = None))]
    fn to_text(&self, py: Python<'_>, max_tokens: Option<usize>) -> PyResult<String> {
        match (max_tokens, self.listing.clone()) {
            (Some(_), Some(listing)) => {
                let hint = match &*listing {
                    Report::Listing(listing) => missing_sources(listing, SOURCE_KEYWORDS),
                    _ => None,
                };
                text_within(py, max_tokens, hint, move |format, budget| listing.within(format, budget))
            }
            _ => head_within(py, max_tokens, &self.text),
        }
    }

    /// Return the listing as an HTML fragment. All text from the input is escaped.
    fn to_html(&self) -> &str {
        &self.html
    }

    /// Save the listing in the format of the path's extension: .html, .json or .txt.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let choose = |ending: &str| {
            Ok(match ending {
                "html" | "htm" => Some(self.page.clone()),
                "json" => Some(self.json.clone()),
                "txt" => Some(format!("{}\n", self.text)),
                _ => None,
            })
        };
        save_by_extension(py, path, choose, ".html, .json or .txt")
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
    let (description, dot, svg) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(CallGraph { description, dot, svg })
}

#[pyfunction(name = "_rebuild_listing")]
pub fn rebuild_listing(bytes: &[u8]) -> PyResult<Listing> {
    let (text, json, html, page) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(Listing { text, json, html, page, listing: None })
}
