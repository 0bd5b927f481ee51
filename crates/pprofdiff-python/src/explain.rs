//! Why two sides differ, as Python sees it.

use pprofdiff::explain::ExplainOptions;
use pprofdiff::{Normalize, Query};
use pprofdiff_report::{Format, Report, Style, Table as EngineTable, explain_html};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::profile::rebuild;
use crate::table::{Table, text};
use crate::{error, runtime};

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

/// The most samples of both sides that are explained unasked, where a picture or table is shown: a second's work.
const MAX_UNASKED: usize = 200_000;

/// The account of what a diff's table shows, for notebooks: nothing where there is nothing to explain, or too much to do so
/// unasked. Not normalized, since the scale is found.
pub fn account_html(py: Python<'_>, diff: &pprofdiff::Diff, query: &Query) -> PyResult<String> {
    let samples: usize = diff.profiles().map(|(_, profile)| profile.n_samples()).sum();
    if !diff.is_two_sided() || samples > MAX_UNASKED {
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
    let sample_type = quoted(&e.sample_type);
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
    /// A part of what to_dict() has.
    fn part<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item(name)
    }

    /// Of the report of an explanation.
    pub fn new(report: &Report) -> pprofdiff::Result<Explanation> {
        let written = |format: &str| {
            let format = Format::named(format)?;
            Ok::<_, pprofdiff::Error>(text(|out| (format.write)(report, out, Style::default())))
        };
        let Report::Explain(of) = report else { return Err(pprofdiff::Error::query("this is no explanation")) };
        Ok(Explanation {
            verdict: of.verdict.name().to_owned(),
            text: in_python(of, written("text")?.trim_end()),
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

    /// How the difference of the totals adds up, of a mean run: delta = work + causes + consequences + rest; with
    /// garbage (how much of the consequences that is), by_chance, consequences_by_chance and p.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "account")
    }

    /// Cost that has another name now, each a dict: function, from, how, delta, cost, even and inside.
    #[getter]
    fn moved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "moved")
    }

    /// How much of a difference is chance: a dict with deviation, noticed, mde, runs and more.
    #[getter]
    fn noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "noise")
    }

    /// The largest cause as a dict (one of to_dict()["causes"]); where these samples can't tell, what is nearest to
    /// a cause; None if there is nothing.
    #[getter]
    fn best<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        for name in ["causes", "suspects"] {
            let causes = self.part(py, name)?;
            if causes.len()? > 0 {
                return causes.get_item(0).map(Some);
            }
        }
        let candidate = self.part(py, "candidate")?;
        Ok((!candidate.is_none()).then_some(candidate))
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
