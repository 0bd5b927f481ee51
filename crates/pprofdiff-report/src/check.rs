//! What a check found: for people, as JSON (schema `pprofdiff/1`, kind `check`), as Markdown for a pull request
//! and as annotations for GitHub.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::explain::{causes_markdown, causes_text};
use super::markdown::{code, escape};
use super::numbers::{growth_of, p_words, share_text};
use super::text::TextOptions;
use pprofdiff::Normalize;
use pprofdiff::check::{ALPHA, Check, Finding, Halves, Outcome, RuleCheck, Runs};
use pprofdiff::text::harmless;
use pprofdiff::units;

/// GitHub takes 65,536 characters; this leaves room for what a bot puts around it.
const MARKDOWN_LIMIT: usize = 64_000;

/// In digits, all of them, where the unit is not known.
fn value(v: Halves, unit: &str) -> String {
    if units::find(unit).is_some() { units::show(v.round(), unit) } else { v.to_string() }
}

/// `1.90s`, or of several runs `1.90s (1.85s to 2.01s, 5 runs)`.
fn runs(runs: &Runs, unit: &str) -> String {
    let median = value(runs.median, unit);
    match runs.values.len() {
        1 => median,
        n => format!("{median} ({} to {}, {n} runs)", units::show(runs.min, unit), units::show(runs.max, unit)),
    }
}

fn delta(f: &Finding, unit: &str) -> String {
    format!("{}{}", if f.delta.twice() > 0 { "+" } else { "" }, value(f.delta, unit))
}

fn growth(f: &Finding) -> String {
    match (f.base.median.to_f64(), f.new.median.to_f64()) {
        (0.0, new) if new > 0.0 => "new".to_owned(),
        (base, 0.0) if base > 0.0 => "gone".to_owned(),
        (base, new) if base > 0.0 && new > 0.0 => growth_of(base, f.delta.to_f64()),
        _ => "-".to_owned(),
    }
}

/// `+15.77s  x5.06  +147.8% of total`; of the total itself its growth says both.
fn change(f: &Finding, rule: &RuleCheck) -> String {
    let change = format!("{}  {}", delta(f, &rule.unit), growth(f));
    match f.share {
        Some(_) => format!("{change}  {} of total", share_text(f.share, true)),
        None => change,
    }
}

/// `p 0.003`, or what it would take to know.
fn chance(f: &Finding) -> Option<String> {
    let p = f.p_adjusted.map(p_words);
    if f.outcome != Outcome::Inconclusive {
        return p;
    }
    if f.p_adjusted.is_some_and(|p| p <= ALPHA) {
        return Some(format!("too few events to be sure ({})", p?));
    }
    let runs = f.runs_needed.map_or_else(String::new, |runs| format!(", about {runs} runs a side would tell"));
    Some(format!("within chance ({}){runs}", p?))
}

/// A finding in one line: `main.parse: 100ms -> 150ms  +50ms  +50%  p 0.003`.
pub(crate) fn finding(f: &Finding, rule: &RuleCheck) -> String {
    let what = f.frame.as_deref().unwrap_or(&rule.sample_type);
    let (base, new) = (runs(&f.base, &rule.unit), runs(&f.new, &rule.unit));
    let chance = chance(f).map_or_else(String::new, |chance| format!("  {chance}"));
    let reason = f.reason.as_deref().map_or_else(String::new, |r| format!(" (allowed: {r})"));
    format!("{what}: {base} -> {new}  {}{chance}{reason}", change(f, rule))
}

/// What was compared, where that is not said by the finding itself.
fn extent(rule: &RuleCheck) -> String {
    let mut text = format!("{} compared", rule.compared);
    if rule.below_floor > 0 {
        text += &format!(", {} below the floor of {}%", rule.below_floor, rule.floor);
    }
    if rule.left_out > 0 {
        text += &format!(", {} there by chance", rule.left_out);
    }
    if rule.too_small > 0 {
        text += &format!(", {} too small to tell the limit from chance", rule.too_small);
    }
    text
}

/// What silence is worth: `+31% would have been noticed`.
fn detectable(rule: &RuleCheck) -> Option<String> {
    let least = rule.detectable.filter(|_| rule.outcome != Outcome::Fail)?;
    let of = if rule.is_of_each { " of a frame with a tenth of the total" } else { "" };
    let growth = match least {
        least if least < 10.0 => format!("+{least:.1}%"),
        least if least < 900.0 => format!("+{least:.0}%"),
        least => format!("x{:.0}", 1.0 + least / 100.0),
    };
    Some(format!("{growth}{of} would have been noticed"))
}

pub(crate) fn verdict(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass | Outcome::Allowed => "pass: within all limits",
        Outcome::Inconclusive => "inconclusive: what was measured can't tell a change from chance",
        Outcome::Fail => "fail: a limit is exceeded",
    }
}

/// Where values are not what was measured, how they were scaled.
pub(crate) fn normalized(check: &Check) -> Option<String> {
    let by = match check.normalize {
        Normalize::None => return None,
        Normalize::Factor(_) => "by it",
        _ => "to the base's median",
    };
    Some(format!("normalized by {}: each run of the new side is scaled {by}", check.normalize.mode()))
}

/// Writes the findings for people.
///
/// # Errors
/// The writer's.
pub(crate) fn check_text(check: &Check, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let painted = |outcome: Outcome| match outcome {
        Outcome::Fail if options.color => format!("\x1b[31m{:<12}\x1b[0m", outcome.name()),
        Outcome::Pass if options.color => format!("\x1b[32m{:<12}\x1b[0m", outcome.name()),
        _ => format!("{:<12}", outcome.name()),
    };
    check.warnings.iter().try_for_each(|w| writeln!(out, "warning: {}", harmless(w)))?;
    normalized(check).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    for rule in &check.rules {
        let (name, kind) = (harmless(&rule.rule), harmless(&rule.sample_type));
        writeln!(out, "{}  {name}  {kind}, {}", painted(rule.outcome), extent(rule))?;
        for f in &rule.findings {
            let (base, new) = (runs(&f.base, &rule.unit), runs(&f.new, &rule.unit));
            write!(out, "  {}  {base} -> {new}  {}", painted(f.outcome), change(f, rule))?;
            chance(f).map_or(Ok(()), |p| write!(out, "  {p}"))?;
            f.frame.as_ref().map_or(Ok(()), |frame| write!(out, "  {}", harmless(frame)))?;
            f.reason.as_ref().map_or(Ok(()), |reason| write!(out, "  (allowed: {})", harmless(reason)))?;
            writeln!(out)?;
        }
        if let Some(line) = detectable(rule) {
            writeln!(out, "  {line}")?;
        }
        for cause in rule.why.iter().flat_map(|why| causes_text(why)) {
            writeln!(out, "  why: {cause}")?;
        }
    }
    writeln!(out, "{}", verdict(check.verdict))
}

/// What a process ends with that ends on a verdict: 0, 1 for a regression, 3 for inconclusive (2 is for errors).
pub fn exit_code(verdict: Outcome) -> u8 {
    match verdict {
        Outcome::Pass | Outcome::Allowed => 0,
        Outcome::Fail => 1,
        Outcome::Inconclusive => 3,
    }
}

/// Writes the findings as one JSON object.
///
/// # Errors
/// The writer's.
pub(crate) fn check_json(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let normalize = json!({"mode": check.normalize.mode()});
    let mut object = json!({
        "schema": "pprofdiff/1", "kind": "check", "exit_code": exit_code(check.verdict), "normalize": normalize,
    });
    if let (Value::Object(object), Value::Object(own)) = (&mut object, serde_json::to_value(check)?) {
        object.extend(own);
    }
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}

/// Writes the findings as Markdown, of fewer than 65,000 characters: the longest lists are cut, which is said.
///
/// # Errors
/// The writer's.
pub(crate) fn check_markdown(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let mut most = check.rules.iter().map(|r| r.findings.len()).max().unwrap_or(0);
    let mut text = markdown(check, most, usize::MAX);
    while text.chars().count() > MARKDOWN_LIMIT && most > 0 {
        most /= 2;
        text = markdown(check, most, usize::MAX);
    }
    let mut rules = check.rules.len();
    while text.chars().count() > MARKDOWN_LIMIT && rules > 0 {
        rules /= 2;
        text = markdown(check, 0, rules);
    }
    out.write_all(text.as_bytes())
}

/// With at most so many findings a rule, and so many rules.
fn markdown(check: &Check, most: usize, rules: usize) -> String {
    let mark = |o: Outcome| match o {
        Outcome::Pass => "✅ pass",
        Outcome::Allowed => "☑️ allowed",
        Outcome::Inconclusive => "❔ inconclusive",
        Outcome::Fail => "❌ fail",
    };
    // What a file or a rule is called may be of any length; what is said here must not be.
    let short = |text: &str| match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    };
    let unit = |r: &RuleCheck| r.unit.clone();
    let mut text = format!("### pprofdiff: {}\n\n", verdict(check.verdict));
    check.warnings.iter().take(20).for_each(|w| text += &format!("> {}\n\n", escape(&short(w))));
    normalized(check).iter().for_each(|line| text += &format!("{line}\n\n"));
    for rule in check.rules.iter().take(rules) {
        let (name, kind) = (code(&short(&rule.rule)), escape(&short(&rule.sample_type)));
        text += &format!("**{}** {name} ({kind}, {})\n\n", mark(rule.outcome), extent(rule));
        let shown = &rule.findings[..rule.findings.len().min(most)];
        if !shown.is_empty() {
            text +=
                "| | frame | base | new | delta | growth | of total | chance |\n|---|---|---|---|---:|---:|---:|---|\n";
        }
        for f in shown {
            let frame = f.frame.as_deref().map_or_else(|| "all".to_owned(), |f| code(&short(f)));
            let reason = f.reason.as_deref().map_or_else(String::new, |r| format!(": {}", escape(&short(r))));
            let (base, new) = (runs(&f.base, &unit(rule)), runs(&f.new, &unit(rule)));
            text += &format!("| {}{reason} | {frame} | {base} | {new} ", mark(f.outcome));
            let share = share_text(f.share, true);
            let chance = chance(f).unwrap_or_default().replace('<', "&lt;");
            text += &format!("| {} | {} | {share} | {chance} |\n", delta(f, &unit(rule)), growth(f));
        }
        if shown.len() < rule.findings.len() {
            text += &format!("\n{} of {} shown\n", shown.len(), rule.findings.len());
        }
        if let Some(line) = detectable(rule) {
            text += &format!("\n{line}\n");
        }
        let causes: Vec<String> = rule.why.iter().flat_map(|why| causes_markdown(why)).collect();
        if !causes.is_empty() {
            text += &format!("\nWhy:\n- {}\n", causes.join("\n- "));
        }
        text.push('\n');
    }
    if rules < check.rules.len() {
        text += &format!("{rules} of {} rules shown\n", check.rules.len());
    }
    text
}
