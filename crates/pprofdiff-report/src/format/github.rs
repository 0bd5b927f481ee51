//! The findings of a check as annotations of a GitHub workflow.

use std::io::{self, Write};

use crate::check::{commits, finding, normalized, select_findings, verdict, whys};
use crate::explain::causes_text;
use crate::format::{Format, check_of, of_checks};
use pprofdiff::check::Outcome;
use pprofdiff::text::sanitize;
use pprofdiff_explain::ExplainedCheck;

pub(crate) const FORMAT: Format =
    of_checks("github", &["github"], "check findings as annotations of a GitHub workflow", |report, out, _| {
        check_github(check_of(report)?, out)
    });

/// The maximum number of annotations for each outcome, for commits, and for warnings of the profiles. GitHub shows ten
/// of each kind (error, warning, notice) per step.
const ANNOTATIONS: usize = 10;

/// Writes annotations for a GitHub workflow: an error per failure, a warning per inconclusive finding, and a notice per
/// allowed finding. Each rule contributes the findings that [`select_findings`] selects, placed at their functions if
/// known. The first finding with the rule's own outcome includes the causes. If annotations do not cover all findings
/// of an outcome, a last annotation states the number of the others. Each commit that reaches a cause adds a notice at
/// its lines, and each warning of the profiles a warning.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn check_github(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let kinds = [(Outcome::Fail, "error"), (Outcome::Inconclusive, "warning"), (Outcome::Allowed, "notice")];
    for (outcome, command) in kinds {
        let all =
            check.rules.iter().flat_map(|r| &r.findings).filter(|f| f.outcome == outcome && !f.is_ignored()).count();
        let mut annotations = Vec::new();
        for (rule, why) in check.rules.iter().zip(whys(check, causes_text)) {
            let selected = select_findings(rule).0.into_iter().filter(|f| f.outcome == outcome);
            let mut why = Some(why).filter(|_| outcome == rule.outcome);
            annotations.extend(selected.map(|f| (rule, f, why.take().unwrap_or_default())));
        }
        annotations.truncate(if all > ANNOTATIONS { ANNOTATIONS - 1 } else { ANNOTATIONS });
        for (rule, f, why) in &annotations {
            let title = format!("{} {}", outcome.name(), rule.rule);
            let place = f.place.as_ref().map(|p| format!("file={},line={},", property(&p.file), p.line));
            let lines = why.iter().map(|cause| format!("%0Awhy: {}", data(cause)));
            let text = lines.fold(data(&finding(f, rule)), |text, line| text + &line);
            writeln!(out, "::{command} {}title={}::{text}", place.unwrap_or_default(), property(&title))?;
        }
        if annotations.len() < all {
            let rest = all - annotations.len();
            writeln!(out, "::{command} title=pprofdiff::and {rest} more of outcome {}", outcome.name())?;
        }
    }
    // One notice per commit, which a pull request shows at the commit's lines.
    let mut notified: Vec<&str> = Vec::new();
    for commit in check.rules.iter().flat_map(commits) {
        if notified.len() < ANNOTATIONS && !notified.contains(&commit.commit.as_str()) {
            notified.push(&commit.commit);
            let (first, last) = commit.lines;
            let place = format!("file={},line={first},endLine={last}", property(&commit.file));
            let title = property(&format!("{} {}", commit.short, commit.subject));
            writeln!(out, "::notice {place},title={title}::it reaches a cause: {}", data(&commit.why))?;
        }
    }
    for warning in check.summary.warnings.iter().take(ANNOTATIONS) {
        writeln!(out, "::warning title=pprofdiff::{}", data(warning))?;
    }
    normalized(check).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    writeln!(out, "{}", verdict(check.verdict))
}

/// Escapes the text after the second `::`, which GitHub's runner unescapes. Line breaks need no escaping, because
/// sanitized text does not contain them. A name therefore cannot add lines to an annotation.
fn data(text: &str) -> String {
    sanitize(text).replace('%', "%25")
}

/// Escapes the value of a property, which ends at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
