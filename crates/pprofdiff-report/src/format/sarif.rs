//! The findings of a check as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), which code scanning
//! shows. Each failing finding is a result.
//!
//! SARIF also has result kinds for passing and open findings, and suppressions for allowed findings. They are not
//! written, because code scanning would show them as alerts like all others.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::check::{commits, finding};
use crate::format::{Format, check_of, of_checks};
use pprofdiff::check::{Finding, Outcome};
use pprofdiff::text::sanitize;
use pprofdiff_explain::{ExplainedCheck, ExplainedRule};

pub(crate) const FORMAT: Format =
    of_checks("sarif", &["sarif"], "check findings for code scanning", |report, out, _| {
        check_sarif(check_of(report)?, out)
    });

fn check_sarif(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let mut ids: Vec<String> = Vec::new();
    let mut results = Vec::new();
    for rule in &check.rules {
        let id = sanitize(&rule.rule).into_owned();
        let index = ids.iter().position(|other| *other == id).unwrap_or(ids.len());
        if index == ids.len() {
            ids.push(id);
        }
        let failed = rule.findings.iter().filter(|f| f.outcome == Outcome::Fail);
        results.extend(failed.map(|f| result(check, rule, index, f)));
    }
    let descriptor = |id: &String| json!({"id": id, "shortDescription": {"text": format!("the limit {id}")}});
    let rules: Vec<Value> = ids.iter().map(descriptor).collect();
    let notifications =
        check.summary.warnings.iter().map(|w| json!({"level": "warning", "message": {"text": sanitize(w)}}));
    let version = env!("CARGO_PKG_VERSION");
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "pprofdiff", "version": version, "rules": rules}},
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications.collect::<Vec<_>>(),
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn result(check: &ExplainedCheck, rule: &ExplainedRule, index: usize, f: &Finding) -> Value {
    let subject = sanitize(f.frame.as_deref().unwrap_or(&rule.sample_type));
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": subject}]});
    // Code scanning requires a file: the changed lines of a commit that reaches the cause, or else the new profile.
    if let Some(commit) = commits(rule).next() {
        let (first, last) = commit.lines;
        let region = json!({"startLine": first.max(1), "endLine": last.max(first).max(1)});
        location["physicalLocation"] = json!({"artifactLocation": {"uri": uri(&commit.file)}, "region": region});
    } else if let Some(path) = check.summary.new.paths.first() {
        location["physicalLocation"] = json!({"artifactLocation": {"uri": uri(path)}});
    }
    json!({
        "ruleId": sanitize(&rule.rule),
        "ruleIndex": index,
        "kind": "fail",
        "level": "error",
        "message": {"text": sanitize(&finding(f, rule))},
        "locations": [location],
        "partialFingerprints": {"rule/subject": format!("{} {subject}", sanitize(&rule.rule))},
    })
}

/// Returns a path as a URI reference (RFC 3986). All bytes except letters, digits and `-._~/` are escaped.
fn uri(path: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    path.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
