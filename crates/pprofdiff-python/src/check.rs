//! What a check found, as Python sees it.

use pprofdiff_report::{Format, Report, exit_code};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::profile::rebuild;
use crate::table::text;

/// What became of the rules of a check, made by check().
#[pyclass(frozen, module = "pprofdiff")]
pub struct Check {
    text: String,
    json: String,
    markdown: String,
    verdict: String,
    exit_code: u8,
}

impl Check {
    /// Of the report of a check.
    pub fn new(report: &Report) -> pprofdiff::Result<Check> {
        let written = |format: &str| {
            let format = Format::named(format)?;
            Ok::<_, pprofdiff::Error>(text(|out| (format.write)(report, out, Default::default())))
        };
        let Report::Check(check) = report else { return Err(pprofdiff::Error::query("this is no check")) };
        Ok(Check {
            text: written("text")?.trim_end().to_owned(),
            json: written("json")?,
            markdown: written("markdown")?,
            verdict: check.verdict.name().to_owned(),
            exit_code: exit_code(check.verdict),
        })
    }

    fn fact<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))?.get_item(name)
    }
}

#[pymethods]
impl Check {
    /// One of "pass", "fail" and "inconclusive"; what is allowed passes.
    #[getter]
    fn verdict(&self) -> &str {
        &self.verdict
    }

    /// What the command would end with: 0 pass, 1 fail, 3 inconclusive.
    #[getter]
    fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The rules, each a dict: rule, outcome, sample_type, unit, is_of_each, compared, below_floor, floor,
    /// too_small, left_out, tau (how much runs differ), detectable (the least growth in percent that would have
    /// failed) and findings, a list of dicts: frame (None for a total, or frames that are taken as one), outcome
    /// ("fail", "inconclusive", "allowed" or "pass"), reason, base and new (dicts: median, min, max, values), delta
    /// (as median an int, unless it is a half), percent, p, p_adjusted (for all that is compared) and runs_needed.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fact(py, "rules")
    }

    /// What a user should know before trusting the verdict.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fact(py, "warnings")
    }

    /// The findings as JSON, schema pprofdiff/1, kind check.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// The findings as Markdown for a pull request, under 65,000 characters.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    fn _repr_markdown_(&self) -> &str {
        &self.markdown
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let (py, this) = (slf.py(), slf.get());
        let parts = (&this.text, &this.json, &this.markdown, &this.verdict, this.exit_code);
        let bytes = serde_json::to_vec(&parts).map_err(error::pickle)?;
        Ok((rebuild(py, "_rebuild_check")?, (PyBytes::new(py, &bytes),)))
    }
}

#[pyfunction]
#[pyo3(name = "_rebuild_check")]
pub fn rebuild_check(bytes: &[u8]) -> PyResult<Check> {
    let (text, json, markdown, verdict, exit_code) = serde_json::from_slice(bytes).map_err(error::pickle)?;
    Ok(Check { text, json, markdown, verdict, exit_code })
}
