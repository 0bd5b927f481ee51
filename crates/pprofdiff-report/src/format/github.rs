//! The findings of a check as annotations of a GitHub workflow.

use std::io::{self, Write};

use crate::check::{finding, normalized, verdict};
use crate::format::{Format, unsupported};
use crate::report::Report;
use crate::request::Ask;
use pprofdiff::check::{Check, Outcome};
use pprofdiff::text::harmless;

pub(crate) const FORMAT: Format = Format {
    name: "github",
    extensions: &["github"],
    about: "what a check found, as annotations of a GitHub workflow",
    binary: false,
    limit: None,
    warns: true,
    shows: |request| matches!(request.ask, Ask::Check(_)).then(|| request.clone()),
    write: |report, out, _| match report {
        Report::Check(check) => check_github(check, out),
        _ => Err(unsupported()),
    },
    each: None,
};

/// A line that an annotation shows is short; GitHub shows ten of a kind and step.
const ANNOTATIONS: usize = 10;

/// Writes annotations for a GitHub workflow: an error a failure, a warning for what is inconclusive, a notice for
/// what is allowed. GitHub shows ten of each kind; what is beyond that is counted in the last.
///
/// # Errors
/// The writer's.
pub(crate) fn check_github(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let kinds = [(Outcome::Fail, "error"), (Outcome::Inconclusive, "warning"), (Outcome::Allowed, "notice")];
    for (outcome, command) in kinds {
        let all = check.rules.iter().flat_map(|r| r.findings.iter().map(move |f| (r, f)));
        let found: Vec<_> = all.filter(|(_, f)| f.outcome == outcome).collect();
        let shown = if found.len() > ANNOTATIONS { ANNOTATIONS - 1 } else { found.len() };
        for (rule, f) in &found[..shown] {
            let title = format!("{} {}", outcome.name(), rule.rule);
            writeln!(out, "::{command} title={}::{}", property(&title), data(&finding(f, rule)))?;
        }
        if shown < found.len() {
            let rest = found.len() - shown;
            writeln!(out, "::{command} title=pprofdiff::and {rest} more of outcome {}", outcome.name())?;
        }
    }
    for warning in check.warnings.iter().take(ANNOTATIONS) {
        writeln!(out, "::warning title=pprofdiff::{}", data(warning))?;
    }
    normalized(check).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    writeln!(out, "{}", verdict(check.verdict))
}

/// Text after the second `::`, as GitHub's runner unpacks it. It would also unpack line breaks, of which harmless text
/// has none: a name can't add lines to an annotation either.
fn data(text: &str) -> String {
    harmless(text).replace('%', "%25")
}

/// Text of a property, which ends at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
