//! The findings of a check, as a Python class.

use pprofdiff_report::Report;
use pyo3::prelude::*;

use crate::error;
use crate::profile::{Pickled, pickled};
use crate::rendered::Rendered;

/// The findings of a check, returned by check().
#[pyclass(frozen, extends = Rendered, module = "pprofdiff")]
pub struct Check {}

impl Check {
    /// Creates the object from the report of a check.
    pub fn new(report: Report) -> pprofdiff::Result<(Check, Rendered)> {
        Ok((Check {}, Rendered::new(report)?))
    }
}

#[pymethods]
impl Check {
    /// The verdict: "pass", "fail", "inconclusive" or "unmatched" (a rule without frames). Allowed changes pass.
    #[getter]
    fn verdict(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().verdict.clone()
    }

    /// The rules as a list of dicts. Keys: rule, outcome, sample_type, unit, is_of_each, compared, total_base,
    /// total_new and total_delta (medians), below_floor, floor, too_small, left_out, tau (the variation between runs),
    /// detectable (the smallest growth in percent that would have failed), p_limit (the largest p_adjusted that
    /// fails), family (the number of rules that share the error rate) and findings. Findings are a list of dicts with
    /// the keys frame (None for a total, or for frames checked as a sum), outcome ("fail", "inconclusive", "allowed" or
    /// "pass"), reason, base and new (dicts: median, min, max, values), delta (an int, or a float for a half, like
    /// median), excess, percent, p, p_adjusted (corrected for the frames of the rule), runs_needed, and code (the
    /// difference between the instructions of both builds) if it was compared.
    #[getter]
    fn rules<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "rules")
    }

    /// Return the findings as JUnit XML, one test case per rule.
    fn to_junit(slf: &Bound<'_, Self>) -> PyResult<String> {
        findings(slf, "junit")
    }

    /// Return the findings as SARIF, for code scanning.
    fn to_sarif(slf: &Bound<'_, Self>) -> PyResult<String> {
        findings(slf, "sarif")
    }

    /// Return the findings as annotations of a GitHub workflow. Print them in a step of the workflow.
    fn to_github(slf: &Bound<'_, Self>) -> PyResult<String> {
        findings(slf, "github")
    }

    /// Returns the rules as tuples of lines: rule, outcome, findings, causes. The pytest plugin shows them.
    fn _lines(slf: &Bound<'_, Self>) -> Vec<(String, String, Vec<String>, Vec<String>)> {
        let rules = slf.as_super().get().rules.iter().cloned();
        rules.map(|lines| (lines.rule, lines.outcome, lines.findings, lines.whys)).collect()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_check", serde_json::to_vec(slf.as_super().get()))
    }
}

/// Returns the findings in a format of CI systems.
fn findings(check: &Bound<'_, Check>, format: &str) -> PyResult<String> {
    let unknown = || error::message(check.py(), &format!("this check was not written as {format}"));
    check.as_super().get().findings.get(format).cloned().ok_or_else(unknown)
}

#[pyfunction(name = "_rebuild_check")]
pub fn rebuild_check(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<Check>> {
    Py::new(py, (Check {}, serde_json::from_slice::<Rendered>(bytes).map_err(error::pickle)?))
}
