//! Why two sides differ, as Python sees it.

use pprofdiff::explain::{ExplainOptions, FEW_SAMPLES};
use pprofdiff::{Normalize, Query};
use pprofdiff_report::{Report, Table as EngineTable, explain_html};
use pyo3::prelude::*;

use crate::profile::{Pickled, pickled};
use crate::rendered::Rendered;
use crate::table::Table;
use crate::{error, runtime};

/// Why two sides differ, made by Diff.explain(). A notebook shows the causes with bars of both sides.
#[pyclass(frozen, extends = Rendered, module = "pprofdiff")]
pub struct Explanation {
    html: String,
    causes: EngineTable,
}

/// The options, as keywords give them.
pub fn options(ops: Option<(f64, f64)>, min_effect: f64) -> ExplainOptions {
    let mut options = ExplainOptions::default().with_min_effect(min_effect);
    options.ops = ops;
    options
}

/// The account of what a diff's table shows, for notebooks: nothing where there is nothing to explain, or too much to do so
/// unasked. Not normalized, since the scale is found.
pub fn account_html(py: Python<'_>, diff: &pprofdiff::Diff, query: &Query) -> PyResult<String> {
    if !diff.is_two_sided() || diff.n_samples() > FEW_SAMPLES {
        return Ok(String::new());
    }
    let (diff, mut query) = (diff.clone(), query.clone().with_normalize(Normalize::None));
    query.sample_type = query.sample_type.or_else(|| diff.default_sample_type().map(str::to_owned));
    runtime::run(py, move || {
        let explanation = diff.explain(&query, &[], &ExplainOptions::default());
        Ok(explanation.map_or_else(|_| String::new(), |e| explain_html(&e)))
    })
}

/// The text, with what shows the stacks of the first cause as a call, for a diff with the name `d`.
fn in_python(e: &pprofdiff::explain::Explanation, text: &str) -> String {
    let Some(cause) = e.causes.first() else { return text.to_owned() };
    // What JSON escapes, Python reads alike.
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let label = cause.label.as_ref().map(|label| format!("{}={}", label.key, label.value));
    let filters: Vec<String> = [("ignore", cause.evidence.ignore.as_ref()), ("tagfocus", label.as_ref())]
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", quoted(value))))
        .collect();
    let filter = if filters.is_empty() { String::new() } else { format!(".filter({})", filters.join(", ")) };
    let sample_type = quoted(&e.summary.sample_type);
    let call = match &cause.evidence.pattern {
        Some(pattern) => format!("d{filter}.peek({}, sample_type={sample_type})", quoted(pattern)),
        None => format!("d{filter}.top(sample_type={sample_type})"),
    };
    let line = |line: &str| match line.starts_with("   pprofdiff ") {
        true => format!("   {call}"),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

impl Explanation {
    /// Of the report of an explanation.
    pub fn new(report: &Report) -> pprofdiff::Result<(Explanation, Rendered)> {
        let Report::Explain(of) = report else { return Err(pprofdiff::Error::query("this is no explanation")) };
        let mut rendered = Rendered::new(report)?;
        rendered.text = in_python(of, &rendered.text);
        Ok((Explanation { html: explain_html(of), causes: EngineTable::causes(of) }, rendered))
    }
}

#[pymethods]
impl Explanation {
    /// One of "change", "none" and "inconclusive".
    #[getter]
    fn verdict(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().verdict.clone()
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

    /// How the difference of the totals adds up, of a mean run: delta = work + causes + consequences + rest; with
    /// garbage (how much of the consequences that is), by_chance, unexplained, consequences_by_chance and p.
    #[getter]
    fn account<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "account")
    }

    /// Cost that has another name now, each a dict: function, from, how, delta, cost, even and inside.
    #[getter]
    fn moved<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "moved")
    }

    /// How much of a difference is chance: a dict with deviation, noticed, mde, runs and more.
    #[getter]
    fn noise<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "noise")
    }

    /// The largest cause as a dict (one of to_dict()["causes"]); where these samples can't tell, what is nearest to
    /// a cause; None if there is nothing.
    #[getter]
    fn best<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let part = |name| slf.as_super().get().part(slf.py(), name);
        for name in ["causes", "suspects"] {
            let causes = part(name)?;
            if causes.len()? > 0 {
                return causes.get_item(0).map(Some);
            }
        }
        let candidate = part("candidate")?;
        Ok((!candidate.is_none()).then_some(candidate))
    }

    /// All that is known as a dict, schema pprofdiff/1, kind explain: verdict, scale, account, causes, moved,
    /// suspects, background, noise and more; see docs/explain.md.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().parsed(slf.py())
    }

    /// What is said as an HTML fragment; everything from the input is escaped.
    fn to_html(&self) -> &str {
        &self.html
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let held = (slf.as_super().get(), &slf.get().html, &slf.get().causes);
        pickled(slf.py(), "_rebuild_explanation", serde_json::to_vec(&held))
    }
}

#[pyfunction(name = "_rebuild_explanation")]
pub fn rebuild_explanation(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<Explanation>> {
    let (rendered, html, causes) = serde_json::from_slice::<(Rendered, _, _)>(bytes).map_err(error::pickle)?;
    Py::new(py, (Explanation { html, causes }, rendered))
}
