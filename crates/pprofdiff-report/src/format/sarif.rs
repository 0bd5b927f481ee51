//! The findings of a check as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), which code scanning
//! shows. A failing finding is a result.
//!
//! Text shows a selection of the failing findings, and counts the others. The results are the same selection, and a
//! notification of the run has the count.
//!
//! SARIF also has result kinds for passing and open findings, and suppressions for allowed findings. They are not
//! written, because code scanning would show them as alerts like all others.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::check::{commits, finding, select_findings, unmatched};
use crate::explain::located_causes;
use crate::format::{Format, check_of, of_checks};
use pprofdiff::check::{Finding, Outcome, SourceLocation};
use pprofdiff::text::sanitize;
use pprofdiff_explain::{Cause, ExplainedCheck, ExplainedRule};

pub(crate) const FORMAT: Format =
    of_checks("sarif", &["sarif"], "check findings for code scanning", |report, out, _| {
        check_sarif(check_of(report)?, out)
    });

fn check_sarif(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let mut ids: Vec<String> = Vec::new();
    let (mut results, mut others) = (Vec::new(), Vec::new());
    for rule in &check.rules {
        let id = sanitize(&rule.rule).into_owned();
        let index = ids.iter().position(|other| *other == id).unwrap_or(ids.len());
        if index == ids.len() {
            ids.push(id);
        }
        let (selected, rest) = select_findings(rule);
        let failed = selected.into_iter().filter(|f| f.outcome == Outcome::Fail);
        results.extend(failed.map(|f| result(check, rule, index, f)));
        let is_of_failures =
            |line: &&String| line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" more fail");
        others.extend(rest.iter().filter(is_of_failures).map(|line| {
            let id = sanitize(&rule.rule);
            json!({"level": "note", "message": {"text": sanitize(line)}, "associatedRule": {"id": id}})
        }));
    }
    let descriptor = |id: &String| json!({"id": id, "shortDescription": {"text": format!("the limit {id}")}});
    let rules: Vec<Value> = ids.iter().map(descriptor).collect();
    let notifications =
        check.summary.warnings.iter().map(|w| json!({"level": "warning", "message": {"text": sanitize(w)}}));
    // Code scanning shows no result for a rule that matches nothing, so the rule is an error of the configuration.
    let unmatched = check.rules.iter().filter_map(|rule| Some((rule, unmatched(rule)?)));
    let configuration: Vec<Value> = unmatched
        .map(|(rule, message)| {
            let id = sanitize(&rule.rule);
            json!({"level": "error", "message": {"text": sanitize(&message)}, "associatedRule": {"id": id}})
        })
        .collect();
    let mut invocation = json!({
        "executionSuccessful": true,
        "toolExecutionNotifications": notifications.chain(others).collect::<Vec<_>>(),
    });
    if !configuration.is_empty() {
        invocation["toolConfigurationNotifications"] = configuration.into();
    }
    let version = env!("CARGO_PKG_VERSION");
    let mut run = json!({
        "tool": {"driver": {"name": "pprofdiff", "version": version, "rules": rules}},
        "invocations": [invocation],
        "results": results,
    });
    // Code scanning takes the part before the last slash as the category of the run. Runs of one category replace each
    // other.
    if let Some(name) = &check.name {
        run["automationDetails"] = json!({"id": format!("pprofdiff/{}/", sanitize(name))});
    }
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn result(check: &ExplainedCheck, rule: &ExplainedRule, index: usize, f: &Finding) -> Value {
    let subject = sanitize(f.frame.as_deref().unwrap_or(&rule.sample_type));
    let causes = causes_of(rule, f);
    // The address of a file that the repository lacks would lead nowhere.
    let is_known = |place: &&SourceLocation| !check.foreign_files.contains(&place.file);
    let places: Vec<(&String, &SourceLocation)> =
        causes.iter().filter_map(|(text, cause)| Some((text, cause.place.as_ref().filter(is_known)?))).collect();
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": subject}]});
    // Code scanning requires a file: the changed lines of a commit that reaches the cause, or else the cause's own line,
    // the function of the finding, or the new profile.
    // It shows only files of the repository, whose paths are relative.
    let is_relative = |place: &&SourceLocation| !uri(&place.file).contains("://");
    let all_places = || places.iter().map(|(_, place)| *place).chain(f.place.as_ref().filter(is_known));
    let place = all_places().find(is_relative).or_else(|| all_places().next());
    if let Some(commit) = commits(rule).next() {
        let (first, last) = commit.lines;
        let region = json!({"startLine": first.max(1), "endLine": last.max(first).max(1)});
        location["physicalLocation"] = json!({"artifactLocation": {"uri": uri(&commit.file)}, "region": region});
    } else if let Some(place) = place {
        location["physicalLocation"] = physical(place);
    } else if let Some(path) = check.summary.new.paths.first() {
        location["physicalLocation"] = json!({"artifactLocation": {"uri": uri(path)}});
    }
    let whys = causes.iter().map(|(text, _)| format!("\nwhy: {text}"));
    let name = check.name.as_ref().map_or_else(String::new, |name| format!("{}: ", sanitize(name)));
    let mut result = json!({
        "ruleId": sanitize(&rule.rule),
        "ruleIndex": index,
        "kind": "fail",
        "level": "error",
        "message": {"text": name.clone() + &sanitize(&finding(f, rule)) + &whys.collect::<String>()},
        "locations": [location],
        "partialFingerprints": {"rule/subject": format!("{name}{} {subject}", sanitize(&rule.rule))},
    });
    if !places.is_empty() {
        let related = |(i, (text, place)): (usize, &(&String, &SourceLocation))| json!({"id": i, "message": {"text": text}, "physicalLocation": physical(place)});
        result["relatedLocations"] = places.iter().enumerate().map(related).collect();
    }
    result
}

/// Returns the causes of a finding in words: all causes of the rule for its first failed finding, which exceeds the
/// limit most, and for any other finding the causes that name its function.
fn causes_of<'r>(rule: &'r ExplainedRule, f: &Finding) -> Vec<(String, &'r Cause)> {
    let is_first =
        rule.findings.iter().find(|f| f.outcome == Outcome::Fail).is_some_and(|first| std::ptr::eq(first, f));
    let concerns = |cause: &Cause| {
        let is_named =
            |frame: &String| cause.evidence.functions.contains(frame) || cause.evidence.callers.contains(frame);
        is_first || f.frame.as_ref().is_some_and(is_named)
    };
    let all = rule.why.iter().flat_map(|why| located_causes(why).into_iter().zip(&why.causes));
    all.filter(|(_, cause)| concerns(cause)).collect()
}

/// Returns a source line as a physical location.
fn physical(place: &SourceLocation) -> Value {
    json!({"artifactLocation": {"uri": uri(&place.file)}, "region": {"startLine": place.line.max(1)}})
}

/// Returns a path as a URI reference (RFC 3986). All bytes except letters, digits and `-._~/` are escaped. SARIF permits
/// relative references for files of the repository, and otherwise requires an absolute URI, so an absolute path gets the
/// scheme `file`.
fn uri(path: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    let escape = |path: &str| -> String {
        path.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    };
    let is_scheme = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if let Some((scheme, rest)) = path.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        // A URL has its own ports, queries and escapes.
        let is_of_url = |b: u8| is_plain(b) || b":?&=%@+,;[]#".contains(&b);
        let kept = |b: u8| if is_of_url(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
        return format!("{scheme}://{}", rest.bytes().map(kept).collect::<String>());
    }
    match path.as_bytes() {
        [b'/', ..] => format!("file://{}", escape(path)),
        [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic() => {
            format!("file:///{}:{}", char::from(*drive), escape(&path[2..].replace('\\', "/")))
        }
        _ => escape(path),
    }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_outside_of_the_repository_are_absolute_uris() {
        assert_eq!(uri("src/a b.go"), "src/a%20b.go");
        assert_eq!(uri("/usr/local/go/src/runtime/proc.go"), "file:///usr/local/go/src/runtime/proc.go");
        assert_eq!(uri("C:\\src\\a.cc"), "file:///C:/src/a.cc");
        assert_eq!(uri("https://host:80/a b?x=1"), "https://host:80/a%20b?x=1");
        assert_eq!(uri("a:b/c.go"), "a%3Ab/c.go");
    }
}
