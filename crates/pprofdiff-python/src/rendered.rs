//! The common part of answers with a verdict: the verdict, and the answer rendered in each format. The object holds the
//! rendered output, because it is small and can be pickled.

use pprofdiff_report::shared::RuleLines;
use pprofdiff_report::{Form, Report, exit_code, explain_exit_code};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::REGISTRY;
use crate::answers::to_string;
use crate::explain::{in_python, with_ops};
use crate::keywords::{explained_in_keywords, in_keywords};
use crate::pictures::save_by_extension;
use crate::within::{head_within, text_within};

/// The base class of Check and Explanation: the answer as text, Markdown and JSON, and the command's exit code.
#[derive(Serialize, Deserialize)]
#[pyclass(frozen, subclass, module = "pprofdiff")]
pub struct Rendered {
    pub verdict: String,
    pub exit_code: u8,
    pub text: String,
    pub markdown: String,
    pub json: String,
    /// The findings of a check in the formats of CI systems, by name of the format; empty for an explanation.
    pub findings: BTreeMap<String, String>,
    /// The rules of a check in lines; empty for an explanation.
    pub rules: Vec<RuleLines>,
    /// The report, from which `to_text(max_tokens=...)` writes. Pickling drops it.
    #[serde(skip)]
    pub report: Option<Arc<Report>>,
}

impl Rendered {
    /// Renders the report of a check or an explanation.
    pub fn new(report: Report) -> pprofdiff::Result<Rendered> {
        let report = match report {
            Report::Check(mut check) => {
                check.summary = in_keywords(&check.summary);
                Report::Check(check)
            }
            Report::Explain(explanation) => Report::Explain(Box::new(explained_in_keywords(&explanation))),
            _ => return Err(pprofdiff::Error::query("this answer has no verdict")),
        };
        let (verdict, exit_code) = match &report {
            Report::Check(check) => (check.verdict.name(), exit_code(check.verdict)),
            Report::Explain(explanation) => (explanation.verdict.name(), explain_exit_code(explanation)),
            _ => return Err(pprofdiff::Error::query("this answer has no verdict")),
        };
        let written = |format: &str| to_string(REGISTRY.format(format)?, &report);
        let is_check = matches!(report, Report::Check(_));
        let formats = REGISTRY.formats().iter().filter(|format| is_check && format.form == Form::Findings);
        let findings = formats.map(|format| Ok((format.name.to_owned(), to_string(format, &report)?)));
        Ok(Rendered {
            verdict: verdict.to_owned(),
            exit_code,
            text: written("text")?.trim_end().to_owned(),
            markdown: written("markdown")?,
            json: written("json")?,
            findings: findings.collect::<pprofdiff::Result<_>>()?,
            rules: match &report {
                Report::Check(check) => RuleLines::from_check(check),
                _ => Vec::new(),
            },
            report: Some(Arc::new(report)),
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
    /// inconclusive, 4 a rule matches no frame.
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

    /// Return the answer as text, most important parts first. With max_tokens (at least 50), the text has at most
    /// that many tokens, counted as by the command's --budget: the parts that fit, and the number of omitted parts.
    /// A copy that was pickled keeps the first lines instead.
    #[pyo3(signature = (*, max_tokens = None))]
    fn to_text(&self, py: Python<'_>, max_tokens: Option<usize>) -> PyResult<String> {
        let (Some(max), Some(report)) = (max_tokens, self.report.clone()) else {
            return head_within(py, max_tokens, &self.text);
        };
        let shortened = {
            let report = report.clone();
            text_within(py, Some(max), None, move |format, budget| report.within(format, budget))?
        };
        match &*report {
            // The call in Python can have more tokens than the command.
            Report::Explain(e) => head_within(py, Some(max), with_ops(in_python(e, &shortened)).trim_end()),
            _ => Ok(shortened),
        }
    }

    /// Return the answer as Markdown for a pull request. A check has less than 65,000 characters.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    /// Save the answer in the format of the path's extension: .txt, .md or .json. A check also writes .xml (JUnit),
    /// .sarif and .github (annotations of a workflow).
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let findings = |name: &str| self.findings.get(name).cloned();
        let choose = |ending: &str| {
            Ok(match ending {
                "txt" => Some(format!("{}\n", self.text)),
                "md" | "markdown" => Some(self.markdown.clone()),
                "json" => Some(self.json.clone()),
                "xml" => findings("junit"),
                "sarif" | "github" => findings(ending),
                _ => None,
            })
        };
        let endings =
            if self.findings.is_empty() { ".txt, .md or .json" } else { ".txt, .md, .json, .xml, .sarif or .github" };
        save_by_extension(py, path, choose, endings)
    }

    fn _repr_markdown_(&self) -> &str {
        &self.markdown
    }

    fn __repr__(&self) -> &str {
        &self.text
    }
}
