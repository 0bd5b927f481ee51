//! The common part of answers with a verdict: the verdict, and the answer rendered in each format. The object holds the
//! rendered output, because it is small and can be pickled.

use pprofdiff_report::{Report, Style, exit_code, explain_exit_code};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::REGISTRY;
use crate::table::text;

/// The base class of Check and Explanation: the answer as text, Markdown and JSON, and the command's exit code.
#[derive(Serialize, Deserialize)]
#[pyclass(frozen, subclass, module = "pprofdiff")]
pub struct Rendered {
    pub verdict: String,
    pub exit_code: u8,
    pub text: String,
    pub markdown: String,
    pub json: String,
}

impl Rendered {
    /// Renders the report of a check or an explanation.
    pub fn new(report: &Report) -> pprofdiff::Result<Rendered> {
        let (verdict, exit_code) = match report {
            Report::Check(check) => (check.verdict.name(), exit_code(check.verdict)),
            Report::Explain(explanation) => (explanation.verdict.name(), explain_exit_code(explanation)),
            _ => return Err(pprofdiff::Error::query("this answer has no verdict")),
        };
        let written = |format: &str| {
            let format = REGISTRY.format(format)?;
            Ok::<_, pprofdiff::Error>(text(|out| format.write(report, out, Style::default())))
        };
        Ok(Rendered {
            verdict: verdict.to_owned(),
            exit_code,
            text: written("text")?.trim_end().to_owned(),
            markdown: written("markdown")?,
            json: written("json")?,
        })
    }

    /// Returns the JSON as Python objects.
    pub fn parsed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// Returns a top-level item of the JSON.
    pub fn part<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.parsed(py)?.get_item(name)
    }
}

#[pymethods]
impl Rendered {
    /// The exit code of the command (for explain: with --exit-code): 0 passed or unchanged, 1 failed or changed, 3
    /// inconclusive.
    #[getter]
    fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Problems that affect the verdict.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "warnings")
    }

    /// Return the answer as JSON, schema pprofdiff/1, kind check or explain.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// Return the answer as Markdown for a pull request. A check has less than 65,000 characters.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    fn _repr_markdown_(&self) -> &str {
        &self.markdown
    }

    fn __repr__(&self) -> &str {
        &self.text
    }
}
