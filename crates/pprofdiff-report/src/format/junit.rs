//! The findings of a check as JUnit XML, which CI systems show as tests. Each rule is a test case.
//!
//! JUnit XML is not standardized; this file writes the subset that Jenkins, GitLab, Azure and Buildkite share.

use std::io::{self, Write};

use crate::check::{finding, unmatched, verdict};
use crate::explain::located_causes;
use crate::format::{Format, check_of, of_checks};
use crate::html::escape;
use pprofdiff::check::Outcome;
use pprofdiff_explain::ExplainedCheck;

pub(crate) const FORMAT: Format =
    of_checks("junit", &["xml"], "check findings as JUnit XML, one test case per rule", |report, out, _| {
        check_junit(check_of(report)?, out)
    });

/// Writes a test suite with one test case per rule. A failed rule is a failure. An inconclusive rule is a skipped test,
/// which does not block a pipeline. A rule that matches no frame is an error. The message of a failure or a skipped test is the worst finding in one line. Their text lists all findings
/// of the rule and the causes, with their source lines. All other rules pass.
fn check_junit(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let count = |outcome: Outcome| check.rules.iter().filter(|rule| rule.outcome == outcome).count();
    let (tests, failures, skipped) = (check.rules.len(), count(Outcome::Fail), count(Outcome::Inconclusive));
    let errors = count(Outcome::Unmatched);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"");
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>")?;
    let suite = check.name.as_deref().map_or_else(|| "pprofdiff check".to_owned(), escape);
    writeln!(out, "  <testsuite name=\"{suite}\" {counts}>")?;
    for rule in &check.rules {
        // Jenkins and GitLab identify a test by its class and name, without its suite.
        let class = match &check.name {
            Some(name) => format!("{name}.{}", rule.sample_type),
            None => rule.sample_type.clone(),
        };
        let (name, class) = (escape(&rule.rule), escape(&class));
        write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"")?;
        let findings: Vec<String> =
            rule.findings.iter().filter(|f| !f.is_ignored()).map(|f| finding(f, rule)).collect();
        let element = match rule.outcome {
            Outcome::Fail => "failure",
            Outcome::Inconclusive => "skipped",
            Outcome::Unmatched => "error",
            Outcome::Pass | Outcome::Allowed => {
                writeln!(out, "/>")?;
                continue;
            }
        };
        // Filters can leave a rule without findings.
        let unmatched = unmatched(rule);
        let message = unmatched.as_ref().or(findings.first()).map_or(verdict(rule.outcome), String::as_str);
        let message = escape(message);
        let whys = rule.why.iter().flat_map(|why| located_causes(why)).map(|cause| format!("why: {cause}"));
        let lines: Vec<String> = findings.iter().cloned().chain(whys).map(|line| escape(&line)).collect();
        writeln!(out, ">\n      <{element} message=\"{message}\">{}</{element}>\n    </testcase>", lines.join("\n"))?;
    }
    check.summary.warnings.iter().try_for_each(|w| writeln!(out, "    <system-err>{}</system-err>", escape(w)))?;
    writeln!(out, "  </testsuite>\n</testsuites>")
}
