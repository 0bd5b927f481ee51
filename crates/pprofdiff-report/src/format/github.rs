//! The findings of a check as annotations of a GitHub workflow.

use std::io::{self, Write};

use crate::check::{commits, finding, normalized, select_findings, verdict, whys};
use crate::explain::causes_text;
use crate::format::{Format, check_of, of_checks};
use pprofdiff::check::{Check, Outcome};
use pprofdiff::text::sanitize;

pub(crate) const FORMAT: Format =
    of_checks("github", &["github"], "what a check found, as annotations of a GitHub workflow", |report, out, _| {
        check_github(check_of(report)?, out)
    });

/// A line that an annotation shows is short; GitHub shows ten of a kind and step.
const ANNOTATIONS: usize = 10;

/// Writes annotations for a GitHub workflow: an error a failure, a warning for what is inconclusive, a notice for
/// what is allowed; of each rule those that people are told, where their functions stand, the first with the causes; and a
/// notice on the lines of each commit that reaches one. GitHub shows ten of each kind; what is beyond that is counted in the
/// last.
///
/// # Errors
/// The writer's.
pub(crate) fn check_github(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let kinds = [(Outcome::Fail, "error"), (Outcome::Inconclusive, "warning"), (Outcome::Allowed, "notice")];
    for (outcome, command) in kinds {
        let all = check.rules.iter().flat_map(|r| &r.findings).filter(|f| f.outcome == outcome).count();
        let mut found = Vec::new();
        for (rule, why) in check.rules.iter().zip(whys(check, causes_text)) {
            let told = select_findings(rule).0.into_iter().filter(|f| f.outcome == outcome);
            let mut why = Some(why).filter(|_| outcome == rule.outcome);
            found.extend(told.map(|f| (rule, f, why.take().unwrap_or_default())));
        }
        found.truncate(if all > ANNOTATIONS { ANNOTATIONS - 1 } else { ANNOTATIONS });
        for (rule, f, why) in &found {
            let title = format!("{} {}", outcome.name(), rule.rule);
            let place = f.place.as_ref().map(|p| format!("file={},line={},", property(&p.file), p.line));
            let lines = why.iter().map(|cause| format!("%0Awhy: {}", data(cause)));
            let text = lines.fold(data(&finding(f, rule)), |text, line| text + &line);
            writeln!(out, "::{command} {}title={}::{text}", place.unwrap_or_default(), property(&title))?;
        }
        if found.len() < all {
            let rest = all - found.len();
            writeln!(out, "::{command} title=pprofdiff::and {rest} more of outcome {}", outcome.name())?;
        }
    }
    // Each commit on its own lines, which a pull request shows there.
    let mut told: Vec<&str> = Vec::new();
    for commit in check.rules.iter().flat_map(commits) {
        if told.len() < ANNOTATIONS && !told.contains(&commit.commit.as_str()) {
            told.push(&commit.commit);
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

/// Text after the second `::`, as GitHub's runner unpacks it. It would also unpack line breaks, of which harmless text
/// has none: a name can't add lines to an annotation either.
fn data(text: &str) -> String {
    sanitize(text).replace('%', "%25")
}

/// Text of a property, which ends at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
