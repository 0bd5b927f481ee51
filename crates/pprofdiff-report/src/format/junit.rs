//! The findings of a check as JUnit's XML, which CI systems show as tests: a test case a rule.
//!
//! There is no standard of it; what is written here is what Jenkins, GitLab, Azure and Buildkite have in common.

use std::io::{self, Write};

use crate::check::{finding, verdict};
use crate::format::{Format, check_of, of_checks};
use crate::html::escape;
use pprofdiff::check::{Check, Outcome};

pub(crate) const FORMAT: Format =
    of_checks("junit", &["xml"], "what a check found, as JUnit's XML: a test case a rule", |report, out, _| {
        check_junit(check_of(report)?, out)
    });

/// Writes a suite of the rules: what fails is a failure, and what is inconclusive was skipped, which blocks nothing.
fn check_junit(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let count = |of: Outcome| check.rules.iter().filter(|rule| rule.outcome == of).count();
    let (tests, failures, skipped) = (check.rules.len(), count(Outcome::Fail), count(Outcome::Inconclusive));
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>")?;
    writeln!(out, "  <testsuite name=\"pprofdiff check\" {counts}>")?;
    for rule in &check.rules {
        let (name, class) = (escape(&rule.rule), escape(&rule.sample_type));
        write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"")?;
        let lines: Vec<String> = rule.findings.iter().map(|f| escape(&finding(f, rule))).collect();
        let element = match rule.outcome {
            Outcome::Fail => "failure",
            Outcome::Inconclusive => "skipped",
            Outcome::Pass | Outcome::Allowed => {
                writeln!(out, "/>")?;
                continue;
            }
        };
        let message = escape(verdict(rule.outcome));
        writeln!(out, ">\n      <{element} message=\"{message}\">{}</{element}>\n    </testcase>", lines.join("\n"))?;
    }
    check.summary.warnings.iter().try_for_each(|w| writeln!(out, "    <system-err>{}</system-err>", escape(w)))?;
    writeln!(out, "  </testsuite>\n</testsuites>")
}
