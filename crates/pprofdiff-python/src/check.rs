//! What a check found, as Python sees it.

use pprofdiff_report::Report;
use pyo3::prelude::*;

use crate::error;
use crate::profile::{Pickled, pickled};
use crate::rendered::Rendered;

/// What became of the rules of a check, made by check().
#[pyclass(frozen, extends = Rendered, module = "pprofdiff")]
pub struct Check {}

impl Check {
    /// Of the report of a check.
    pub fn new(report: &Report) -> pprofdiff::Result<(Check, Rendered)> {
        Ok((Check {}, Rendered::new(report)?))
    }
}

#[pymethods]
impl Check {
    /// One of "pass", "fail" and "inconclusive"; what is allowed passes.
    #[getter]
    fn verdict(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().verdict.clone()
    }

    /// The rules, each a dict: rule, outcome, sample_type, unit, is_of_each, compared, total_base, total_new and
    /// total_delta (medians), below_floor, floor, too_small, left_out, tau (how much runs differ), detectable (the
    /// least growth in percent that would have failed) and findings, a list of dicts: frame (None for a total, or
    /// frames that are taken as one), outcome ("fail", "inconclusive", "allowed" or "pass"), reason, base and new
    /// (dicts: median, min, max, values), delta (an int, or a float if it is a half, like median), excess, percent, p,
    /// p_adjusted (corrected for everything that is compared) and runs_needed.
    #[getter]
    fn rules<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "rules")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        pickled(slf.py(), "_rebuild_check", serde_json::to_vec(slf.as_super().get()))
    }
}

#[pyfunction(name = "_rebuild_check")]
pub fn rebuild_check(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<Check>> {
    Py::new(py, (Check {}, serde_json::from_slice::<Rendered>(bytes).map_err(error::pickle)?))
}
