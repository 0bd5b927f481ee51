//! The explanation of a difference, as a Python class.

use pprofdiff::{Normalize, Query};
use pprofdiff_explain::{Cause, ExplainOptions, FEW_SAMPLES};
use pprofdiff_report::shared::OPS;
use pprofdiff_report::{Report, Table as EngineTable, explain_html, shown_commands};
use pyo3::prelude::*;

use crate::keywords::explained_in_keywords;
use crate::profile::{Pickled, pickled};
use crate::rendered::Rendered;
use crate::table::Table;
use crate::{error, runtime};

/// The explanation of a difference, returned by Diff.explain() and Series.explain(). A notebook shows
/// it as bars from the base's total to the new side's total: each cause has a bar.
#[pyclass(frozen, extends = Rendered, module = "pprofdiff")]
pub struct Explanation {
    html: String,
    causes: EngineTable,
}

/// Returns the options that the keywords set.
pub fn options(ops: Option<(f64, f64)>, min_effect: f64) -> ExplainOptions {
    let mut options = ExplainOptions::default().with_min_effect(min_effect);
    options.ops = ops;
    options
}

/// Explains the difference as an HTML fragment, which a notebook shows above the diff's table. Returns
/// an empty text for a single profile, and if the explanation fails. Also returns an empty text for
/// more than [`FEW_SAMPLES`] samples: the user did not request this explanation, so it must not take
/// long. Ignores the query's normalization, because explain determines the amount of work itself.
pub fn account_html(py: Python<'_>, diff: &pprofdiff::Diff, query: &Query) -> PyResult<String> {
    if !diff.is_two_sided() || diff.n_samples() > FEW_SAMPLES {
        return Ok(String::new());
    }
    let (diff, mut query) = (diff.clone(), query.clone().with_normalize(Normalize::None));
    query.sample_type = query.sample_type.or_else(|| diff.default_sample_type().map(str::to_owned));
    runtime::run(py, move || {
        let explanation = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default());
        Ok(explanation.map_or_else(|_| String::new(), |e| with_ops(explain_html(&explained_in_keywords(&e)))))
    })
}

/// Rewrites the text of `e` for Python: replaces each line with a shell command by a method call on a
/// diff called `d`.
pub fn in_python(e: &pprofdiff_explain::Explanation, text: &str) -> String {
    let calls: Vec<(String, String)> =
        shown_commands(e).into_iter().map(|(command, e, cause)| (command, peek_call(e, cause))).collect();
    let line = |line: &str| {
        let command = line.strip_prefix("   ");
        let call = calls.iter().find(|(of_shell, _)| command == Some(of_shell));
        call.map_or_else(|| line.to_owned(), |(_, call)| format!("   {call}"))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a call that shows the stacks of a cause.
fn peek_call(e: &pprofdiff_explain::Explanation, cause: &Cause) -> String {
    // JSON escapes are also valid in Python.
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let label = cause.label.as_ref().map(|label| format!("{}={}", label.key, label.value));
    let filters: Vec<String> = [("ignore", cause.evidence.ignore.as_ref()), ("tagfocus", label.as_ref())]
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", quoted(value))))
        .collect();
    let filter = if filters.is_empty() { String::new() } else { format!(".filter({})", filters.join(", ")) };
    let sample_type = quoted(&e.summary.sample_type);
    match cause.own_pattern() {
        Some(pattern) => format!("d{filter}.peek({}, sample_type={sample_type})", quoted(&pattern)),
        None => format!("d{filter}.top(sample_type={sample_type})"),
    }
}

/// Spells the advice about the amount of work as a keyword.
pub fn with_ops(text: String) -> String {
    if text.contains(OPS) {
        text.replace(OPS, "Pass ops=(N0, N1) with the number of operations per side")
    } else {
        text
    }
}

impl Explanation {
    /// Creates the object from the report of an explanation.
    pub fn new(report: Report) -> pprofdiff::Result<(Explanation, Rendered)> {
        let mut rendered = Rendered::new(report)?;
        let Some(Report::Explain(e)) = rendered.report.as_deref() else {
            return Err(pprofdiff::Error::query("this report is not an explanation"));
        };
        // The report is in keywords already.
        let explanation = Explanation { html: with_ops(explain_html(e)), causes: EngineTable::causes(e) };
        let text = with_ops(in_python(e, &rendered.text));
        rendered.text = text;
        rendered.markdown = with_ops(rendered.markdown);
        Ok((explanation, rendered))
    }
}

#[pymethods]
impl Explanation {
    /// The verdict: "change", "none" or "inconclusive".
    #[getter]
    fn verdict(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().verdict.clone()
    }

    /// The causes as a Table, largest change first. Columns: function, caller, callee (a function of the language's
    /// runtime, if calls to it changed), label, kind ("self", "calls", "added" or "removed"), base and new (the cost of
    /// a run in the cause's stacks, which no other cause shares), delta (the cost of a run of the new side beyond the
    /// base at the same amount of work), factor (None if the cost was zero before) and score (the distance from
    /// chance).
    #[getter]
    fn causes(&self) -> Table {
        Table::new(self.causes.clone())
    }

    /// The parts of the difference of the totals, for a mean run: delta = work + causes + consequences + rest.
    /// A dict that also has garbage (the part of the consequences due to garbage collection), by_chance,
    /// unexplained, consequences_by_chance and p.
    #[getter]
    fn account<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "account")
    }

    /// Cost that only moved to another function or to another name, as a list of dicts: function, from,
    /// how, delta, cost, even and inside.
    #[getter]
    fn moved<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "moved")
    }

    /// The noise of the comparison, as a dict with deviation, noticed, mde, runs and more.
    #[getter]
    fn noise<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().part(slf.py(), "noise")
    }

    /// The largest cause as a dict, like an item of to_dict()["causes"]. If the samples are inconclusive, the most
    /// likely cause; None if there is no candidate.
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

    /// Return the whole explanation as a dict, schema pprofdiff/1, kind explain: verdict, scale, account, causes,
    /// moved, suspects, background, noise and more; see docs/explain.md.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().parsed(slf.py())
    }

    /// Return the explanation as an HTML fragment. All text from the input is escaped.
    fn to_html(&self) -> &str {
        &self.html
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let state = (slf.as_super().get(), &slf.get().html, &slf.get().causes);
        pickled(slf.py(), "_rebuild_explanation", serde_json::to_vec(&state))
    }
}

#[pyfunction(name = "_rebuild_explanation")]
pub fn rebuild_explanation(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<Explanation>> {
    let (rendered, html, causes) = serde_json::from_slice::<(Rendered, _, _)>(bytes).map_err(error::pickle)?;
    Py::new(py, (Explanation { html, causes }, rendered))
}
