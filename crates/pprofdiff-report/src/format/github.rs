//! The findings of a check as annotations of a GitHub workflow.

use std::io::{self, Write};

use crate::check::{commits, finding, named, normalized, select_findings, unmatched, verdict, whys};
use crate::explain::causes_text;
use crate::format::{Format, check_of, of_checks};
use crate::numbers::counted;
use pprofdiff::check::{Finding, Outcome};
use pprofdiff::text::sanitize;
use pprofdiff_explain::{ExplainedCheck, ExplainedRule};

pub(crate) const FORMAT: Format =
    of_checks("github", &["github"], "check findings as annotations of a GitHub workflow", |report, out, _| {
        check_github(check_of(report)?, out)
    });

/// The maximum number of errors, of annotations for each other outcome, for commits, and for warnings of the profiles.
/// GitHub shows ten of each kind (error, warning, notice) per step.
const ANNOTATIONS: usize = 10;

/// The largest p-value of an inconclusive finding that gets a warning. Half of all comparisons of equal builds have a
/// finding with a larger p-value.
const MAX_P_OF_WARNING: f64 = 0.5;

/// Writes annotations for a GitHub workflow: an error per failure and per rule that matches no frame, a warning per
/// inconclusive rule, and a notice per allowed finding. Each rule contributes the findings that [`select_findings`]
/// selects, placed at their functions if known. A failure without a function, such as the total, is placed at the first
/// cause of its rule. The first finding with the rule's own outcome includes the causes. If annotations do not cover all
/// findings of an outcome, a last annotation states the number of the others; for inconclusive findings, it is a notice.
/// Each commit that reaches a cause adds a notice at its lines, and each warning of the profiles a warning.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn check_github(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let unmatched: Vec<String> = check.rules.iter().filter_map(unmatched).collect();
    // GitHub counts the errors of unmatched rules and of failures together.
    let has_failed = check.rules.iter().flat_map(|rule| &rule.findings).any(|f| f.outcome == Outcome::Fail);
    let max_unmatched = if has_failed { ANNOTATIONS / 2 } else { ANNOTATIONS };
    let shown = if unmatched.len() > max_unmatched { max_unmatched - 1 } else { unmatched.len() };
    for message in &unmatched[..shown] {
        writeln!(out, "::error title=pprofdiff::{}", data(message))?;
    }
    if shown < unmatched.len() {
        let rest = unmatched.len() - shown;
        writeln!(out, "::error title=pprofdiff::and {} that match no frame", counted(rest, "more rule"))?;
    }
    let errors = shown + usize::from(shown < unmatched.len());
    let name = named(check);
    let kinds = [
        (Outcome::Fail, "error", "error"),
        (Outcome::Inconclusive, "warning", "notice"),
        (Outcome::Allowed, "notice", "notice"),
    ];
    for (outcome, command, command_of_rest) in kinds {
        let all =
            check.rules.iter().flat_map(|r| &r.findings).filter(|f| f.outcome == outcome && !f.is_ignored()).count();
        let mut annotations = Vec::new();
        for (rule, why) in check.rules.iter().zip(whys(check, causes_text)) {
            let mut selected: Vec<&Finding> =
                select_findings(rule).0.into_iter().filter(|f| f.outcome == outcome).collect();
            if outcome == Outcome::Inconclusive {
                let is_candidate =
                    |f: &&Finding| rule.outcome == outcome && f.p_adjusted.is_none_or(|p| p <= MAX_P_OF_WARNING);
                selected = selected.into_iter().filter(is_candidate).take(1).collect();
            }
            let mut why = Some(why).filter(|_| outcome == rule.outcome);
            annotations.extend(selected.into_iter().map(|f| (rule, f, why.take().unwrap_or_default())));
        }
        let room = if outcome == Outcome::Fail { ANNOTATIONS - errors } else { ANNOTATIONS };
        annotations.truncate(if all > room { room - 1 } else { room });
        for (rule, f, why) in &annotations {
            let title = format!("{name}{} {}", outcome.name(), rule.rule);
            let of_cause = || rule.why.iter().flat_map(|why| &why.causes).find_map(|cause| cause.place.as_ref());
            let place =
                f.place.as_ref().or_else(|| of_cause().filter(|_| f.frame.is_none() && outcome == Outcome::Fail));
            let place = place.map(|p| format!("file={},line={},", property(&p.file), p.line));
            let lines = why.iter().map(|cause| format!("%0Awhy: {}", data(cause)));
            let text = lines.fold(data(&finding(f, rule)), |text, line| text + &line);
            writeln!(out, "::{command} {}title={}::{text}", place.unwrap_or_default(), property(&title))?;
        }
        if annotations.len() < all {
            let (rest, outcome_name) = (all - annotations.len(), outcome.name());
            let text = match annotations.len() {
                0 => format!("{} of outcome {outcome_name}", counted(rest, "finding")),
                _ => format!("and {rest} more of outcome {outcome_name}"),
            };
            let has_outcome = |r: &&ExplainedRule| r.findings.iter().any(|f| f.outcome == outcome);
            let rules: Vec<&ExplainedRule> = check.rules.iter().filter(has_outcome).collect();
            let title = match rules.as_slice() {
                [one] => property(&format!("{name}{outcome_name} {}", one.rule)),
                _ => "pprofdiff".to_owned(),
            };
            writeln!(out, "::{command_of_rest} title={title}::{text}")?;
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
    for warning in check.summary.warnings.iter().filter(|w| !unmatched.contains(w)).take(ANNOTATIONS) {
        writeln!(out, "::warning title=pprofdiff::{}", data(warning))?;
    }
    normalized(check).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    writeln!(out, "{name}{}", verdict(check.verdict))
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
