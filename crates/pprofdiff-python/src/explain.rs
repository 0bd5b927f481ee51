//! Why two sides differ, as Python sees it.

use pprofdiff::explain::ExplainOptions;
use pprofdiff_report::{Format, Report, Style, Table as EngineTable, explain_html};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::profile::rebuild;
use crate::table::{Table, text};

/// Why two sides differ, made by Diff.explain(). A notebook shows the causes with bars of both sides.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Explanation {
    verdict: String,
    text: String,
    json: String,
    markdown: String,
    html: String,
    causes: EngineTable,
}

/// The options, as keywords give them.
pub fn options(ops: Option<(f64, f64)>, min_effect: f64) -> ExplainOptions {
    let mut options = ExplainOptions::default().with_min_effect(min_effect);
    options.ops = ops;
    options
}

impl Explanation {
    /// Of the report of an explanation.
    pub fn new(report: &Report) -> pprofdiff::Result<Explanation> {
        let written = |format: &str| {
            let format = Format::named(format)?;
            Ok::<_, pprofdiff::Error>(text(|out| (format.write)(report, out, Style::default())))
        };
        let Report::Explain(of) = report else { return Err(pprofdiff::Error::query("this is no explanation")) };
        Ok(Explanation {
            verdict: of.verdict.name().to_owned(),
            text: written("text")?.trim_end().to_owned(),
            json: written("json")?,
            markdown: written("markdown")?,
            html: explain_html(of),
            causes: EngineTable::causes(of),
        })
    }
}

#[pymethods]
impl Explanation {
    /// One of "change", "none" and "inconclusive".
    #[getter]
    fn verdict(&self) -> &str {
        &self.verdict
    }

    /// The causes, the largest change first. Columns: function, caller, callee (of the language's runtime, where
    /// these calls changed), label, kind ("self", "calls", "added" or "removed"); base and new, what a run costs
    /// in its stacks, of which none is another cause's; delta, what a run of the new side has more than the base
    /// at its amount of work; factor (None if there was nothing before) and score, which is how far it is from
    /// chance.
    #[getter]
    fn causes(&self) -> Table {
        Table::new(self.causes.clone())
    }

    /// All that is known as a dict, schema pprofdiff/1, kind explain: verdict, scale, account, causes, moved,
    /// suspects, background, noise and more; see docs/explain.md.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// The same as JSON.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// What is said as Markdown, for pull requests.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    /// What is said as an HTML fragment; everything from the input is escaped.
    fn to_html(&self) -> &str {
        &self.html
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    fn _repr_markdown_(&self) -> &str {
        &self.markdown
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let (py, this) = (slf.py(), slf.get());
        let parts = (&this.verdict, &this.text, &this.json, &this.markdown, &this.html, &this.causes);
        let bytes = serde_json::to_vec(&parts).map_err(error::pickle)?;
        Ok((rebuild(py, "_rebuild_explanation")?, (PyBytes::new(py, &bytes),)))
    }
}

#[pyfunction(name = "_rebuild_explanation")]
pub fn rebuild_explanation(bytes: &[u8]) -> PyResult<Explanation> {
    let (verdict, text, json, markdown, html, causes) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(Explanation { verdict, text, json, markdown, html, causes })
}
