//! The findings of a check as text, as JSON (schema `pprofdiff/1`, kind `check`) and as Markdown for a pull request,
//! and the parts that other formats of checks share.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::explain::{causes_markdown, causes_text, explain_object, located_causes};
use super::json::{header_of_check, object};
use super::markdown::{code, escape};
use super::numbers::{CostFormat, growth_of, least_growth, p_words, share_text};
use super::text::TextOptions;
use pprofdiff::advice::{exactly, typed};
use pprofdiff::check::{ALPHA, Finding, Halves, Outcome, Runs, unmatched_rule};
use pprofdiff::random::HashSet;
use pprofdiff::sampling::Model;
use pprofdiff::text::sanitize;
use pprofdiff::units::{self, ColumnUnit};
use pprofdiff::{Normalize, Pair};
use pprofdiff_explain::Explanation;
use pprofdiff_explain::RankedCommit;
use pprofdiff_explain::{ExplainedCheck, ExplainedRule};

/// The maximum length of Markdown. GitHub accepts 65,536 characters; the difference is room for a bot's own text.
const MARKDOWN_LIMIT: usize = 64_000;

/// Formats the values of a finding in one common unit.
struct FindingValues {
    cost: CostFormat,
    is_known: bool,
}

impl FindingValues {
    fn from_finding(f: &Finding, unit: &str) -> FindingValues {
        let medians = Pair { base: f.base.median.round(), new: f.new.median.round() };
        let cost = CostFormat::in_unit(unit, true, std::iter::once(medians));
        FindingValues { cost, is_known: units::find(unit).is_some() }
    }

    /// Formats a value, rounded to an integer. A value in an unknown unit is not rounded and keeps all its digits.
    fn value(&self, v: Halves, unit: ColumnUnit) -> String {
        if self.is_known { unit.format(v.round()) } else { v.to_string() }
    }

    /// Formats one run as `1.90s`, and several as `1.90s (1.85s to 2.01s, 5 runs)`.
    fn runs(&self, runs: &Runs) -> String {
        let unit = self.cost.sides;
        let median = self.value(runs.median, unit);
        match runs.values.len() {
            1 => median,
            n => format!("{median} ({} to {}, {n} runs)", unit.format(runs.min), unit.format(runs.max)),
        }
    }

    fn delta(&self, delta: Halves) -> String {
        format!("{}{}", if delta.twice() > 0 { "+" } else { "" }, self.value(delta, self.cost.delta))
    }
}

/// Formats growth like [`numbers::growth`](super::numbers::growth), for medians that may have a fraction.
fn growth(f: &Finding) -> String {
    match (f.base.median.to_f64(), f.new.median.to_f64()) {
        (0.0, new) if new > 0.0 => "new".to_owned(),
        (base, 0.0) if base > 0.0 => "gone".to_owned(),
        (base, new) if base > 0.0 && new > 0.0 => growth_of(base, f.delta.to_f64()),
        _ => "-".to_owned(),
    }
}

/// Formats a change: `+15.77s  x5.06  +147.8% of total`. A finding without a share omits it: for the total itself, the
/// share would equal the growth.
fn change(f: &Finding, rule: &ExplainedRule) -> String {
    let change = format!("{}  {}", FindingValues::from_finding(f, &rule.unit).delta(f.delta), growth(f));
    match f.share {
        Some(_) => format!("{change}  {} of total", share_text(f.share, true)),
        None => change,
    }
}

/// Formats a p-value with the largest p-value that fails: `p = 0.003, limit 0.01`. If the p-value is corrected for
/// several frames, or if several rules share the limit, the text states their number.
fn significance(p: f64, rule: &ExplainedRule) -> String {
    let limit = rule.p_limit.unwrap_or(ALPHA);
    // A p-value that differs from the limit only in a later digit gets that digit.
    let fewest = if limit < 0.001 { 5 } else { 3 };
    let words = |digits: usize| match digits {
        3 => p_words(p),
        5 if p < 0.00001 => "p < 0.00001".to_owned(),
        _ => format!("p = {p:.digits$}"),
    };
    let agrees =
        |digits: &usize| (format!("{p:.0$}", *digits).parse::<f64>()).is_ok_and(|shown| (shown > limit) == (p > limit));
    let mut text = words((fewest..9).find(agrees).unwrap_or(9));
    if rule.compared > 1 {
        text += &format!(" among {} frames", rule.compared);
    }
    text += &format!(", limit {}", two_digits(limit));
    if limit < ALPHA {
        text += &format!(" of {} rules, Holm", rule.family);
    }
    text
}

/// Formats a number below 1 with two significant digits.
fn two_digits(value: f64) -> String {
    let digits = (1.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').to_owned()
}

/// Formats the significance: `p = 0.003, limit 0.01`, or the reason for an inconclusive outcome. Returns `None` for a
/// conclusive outcome without a p-value.
fn chance(f: &Finding, rule: &ExplainedRule) -> Option<String> {
    let p = f.p_adjusted.map(|p| significance(p, rule));
    let limit = rule.p_limit.unwrap_or(ALPHA);
    if f.outcome != Outcome::Inconclusive {
        return p;
    }
    if f.p_adjusted.is_some_and(|p| p <= limit) {
        return Some(format!("too few events to be sure ({})", p?));
    }
    if f.p.is_none() && rule.sampling.iter().any(|side| side.model == Model::Unknown) {
        return Some("the number of samples is unknown".to_owned());
    }
    if f.p.is_none() {
        return Some("on one side only because of inlining, which varies by chance".to_owned());
    }
    // One of many frames may also have too few events, so only a rule on one subject is known to fail alone.
    let would_fail = f.p_adjusted.is_some_and(|p| p <= ALPHA) && !rule.is_of_each;
    let alone = if would_fail { "; as the only rule it would fail" } else { "" };
    let runs = f.runs_needed.map_or_else(String::new, |runs| format!("about {runs} runs per side would be enough"));
    let comma = match (runs.is_empty(), would_fail) {
        (true, _) => "",
        (false, true) => "; ",
        (false, false) => ", ",
    };
    Some(format!("within chance ({}){alone}{comma}{runs}", p?))
}

/// Returns the message of a rule whose expression matches no frame.
pub(crate) fn unmatched(rule: &ExplainedRule) -> Option<String> {
    (rule.outcome == Outcome::Unmatched).then(|| unmatched_rule(&rule.rule))
}

/// Formats a finding in one line: `main.parse: 100ms -> 150ms  +50ms  +50%  p = 0.003, limit 0.01`. A finding without a
/// frame is about the total and starts with the sample type.
pub(crate) fn finding(f: &Finding, rule: &ExplainedRule) -> String {
    let subject = f.frame.as_deref().unwrap_or(&rule.sample_type);
    let values = FindingValues::from_finding(f, &rule.unit);
    let (base, new) = (values.runs(&f.base), values.runs(&f.new));
    let chance = chance(f, rule).map_or_else(String::new, |chance| format!("  {chance}"));
    let reason = f.reason.as_deref().map_or_else(String::new, |r| format!(" (allowed: {r})"));
    format!("{subject}: {base} -> {new}  {}{chance}{reason}", change(f, rule))
}

/// Formats the number of values that a rule compared, and the numbers of frames that it did not compare or cannot
/// judge.
fn extent(rule: &ExplainedRule) -> String {
    let mut text = format!("{} compared", rule.compared);
    if rule.below_floor > 0 {
        text += &format!(", {} below the floor of {}%", rule.below_floor, rule.floor);
    }
    if rule.left_out > 0 {
        text += &format!(", {} skipped as present by chance", rule.left_out);
    }
    if rule.too_small > 0 {
        text += &format!(", {} with noise above the limit", rule.too_small);
    }
    text
}

/// Describes the smallest change that the rule would have detected: `+31% would have failed nine times in ten`. Returns
/// `None` if the rule failed, or if this change is unknown. With one run per side, the change depends on the usual
/// variation between runs, which was not measured.
fn detectable(check: &ExplainedCheck, rule: &ExplainedRule) -> Option<String> {
    let least = rule.detectable.filter(|_| rule.outcome != Outcome::Fail)?;
    let target = if rule.is_of_each { " of a typical frame with 10% of the total" } else { "" };
    let is_pair =
        check.summary.base.as_ref().is_some_and(|base| base.paths.len() == 1) && check.summary.new.paths.len() == 1;
    let condition = if is_pair { ", if runs differ as usual" } else { "" };
    // Functions with the same instructions are allowed without an entry of the allow-list.
    let is_allowed = rule.findings.iter().any(|f| f.outcome == Outcome::Allowed && f.code.is_none());
    let exception = if is_allowed { ", unless the allow-list covers it" } else { "" };
    Some(format!("{}{target} would have failed nine times in ten{condition}{exception}", least_growth(least / 100.0)))
}

pub(crate) fn verdict(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass | Outcome::Allowed => "pass: within all limits",
        Outcome::Inconclusive => "inconclusive: these profiles cannot distinguish a change from noise",
        Outcome::Unmatched => "unmatched: a rule matches no frame",
        Outcome::Fail => "fail: a limit is exceeded",
    }
}

/// Returns the name of the checked program as `orders: `, or an empty text for a check without a name.
pub(crate) fn named(check: &ExplainedCheck) -> String {
    check.name.as_ref().map_or_else(String::new, |name| format!("{}: ", sanitize(name)))
}

/// Describes how normalization scales the runs of the new side, or returns `None` without normalization.
pub(crate) fn normalized(check: &ExplainedCheck) -> Option<String> {
    let scaling = match check.summary.query.normalize {
        Normalize::None => return None,
        Normalize::Factor(_) => "by it",
        _ => "to the base's median",
    };
    Some(format!(
        "normalized by {}: each run of the new side is scaled {scaling}",
        check.summary.query.normalize.mode()
    ))
}

/// The maximum number of findings shown one by one, for each rule and each outcome.
const MAX_FINDINGS: usize = 5;

/// Selects the findings to show one by one, and for each outcome with further findings returns a sentence about them. A
/// rule on any frame may report every frame on the way to the decisive frame, and every frame below it. The selection
/// for each outcome therefore contains only findings that lie within no other finding, preceded by the first finding of
/// the outcome if it exceeds the limit more than they do.
pub(crate) fn select_findings(rule: &ExplainedRule) -> (Vec<&Finding>, Vec<String>) {
    let (mut shown, mut rest) = (Vec::new(), Vec::new());
    for outcome in [Outcome::Fail, Outcome::Inconclusive, Outcome::Allowed, Outcome::Pass] {
        let all = || rule.findings.iter().filter(|f| f.outcome == outcome && !f.is_ignored());
        let mut first: Vec<&Finding> = all().filter(|f| f.within.is_none()).take(MAX_FINDINGS).collect();
        // A shortened check may lack the finding that contains the others.
        if first.is_empty() {
            first.extend(all().next());
        }
        // Callers with equal cost tie with the innermost frame, which represents them all.
        if let Some(largest) = all().next().filter(|largest| first.first().is_some_and(|f| f.excess < largest.excess)) {
            first.insert(0, largest);
            first.truncate(MAX_FINDINGS);
        }
        let others = all().count() - first.len();
        if others > 0 {
            let is_first = |name: &str| first.iter().any(|f| f.frame.as_deref() == Some(name));
            // A finding that is shown one by one may itself lie within another finding, and is not counted again.
            let further = all().filter(|f| !first.iter().any(|shown| std::ptr::eq(*shown, *f)));
            let within = further.filter(|f| f.within.as_deref().is_some_and(is_first)).count();
            let stacks_owner = match first.as_slice() {
                [single] => single.frame.as_deref().map_or("this".into(), sanitize),
                _ => "these".into(),
            };
            let more = format!("{others} more {}", outcome.name());
            rest.push(match within {
                0 => more,
                n if n == others => format!("{more}, all in stacks of {stacks_owner}"),
                n => format!("{more}, {n} of them in stacks of {stacks_owner}"),
            });
        }
        shown.extend(first);
    }
    (shown, rest)
}

/// Returns the causes of each rule as lines in the markup of `causes`. If several rules about one sample type have the
/// same cause, only the first of them gets its line.
pub(crate) fn whys(check: &ExplainedCheck, causes: fn(&Explanation) -> Vec<String>) -> Vec<Vec<String>> {
    let mut seen = HashSet::new();
    let mut new_causes = |rule: &ExplainedRule| {
        let lines = rule.why.iter().flat_map(|why| causes(why));
        lines.filter(|line| seen.insert((rule.sample_type.clone(), line.clone()))).collect()
    };
    check.rules.iter().map(&mut new_causes).collect()
}

/// The result of a rule as lines of text, for tools that report it in their own way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RuleLines {
    /// The text of the rule.
    pub rule: String,
    /// The name of the rule's outcome.
    pub outcome: String,
    /// The findings to show one by one, worst first, and sentences about the others.
    pub findings: Vec<String>,
    /// The causes with their source lines.
    pub whys: Vec<String>,
}

impl RuleLines {
    /// Returns the lines of each rule of a check.
    pub fn from_check(check: &ExplainedCheck) -> Vec<RuleLines> {
        let lines = |rule: &ExplainedRule| {
            let (shown, rest) = select_findings(rule);
            let findings = shown.into_iter().map(|f| sanitize(&finding(f, rule)).into_owned());
            RuleLines {
                rule: sanitize(&rule.rule).into_owned(),
                outcome: rule.outcome.name().to_owned(),
                findings: unmatched(rule).into_iter().chain(findings).chain(rest).collect(),
                whys: rule.why.iter().flat_map(|why| located_causes(why)).collect(),
            }
        };
        check.rules.iter().map(lines).collect()
    }
}

/// Returns the most directly related commit of each cause of a rule. Causes without ranked commits are skipped.
pub(crate) fn commits(rule: &ExplainedRule) -> impl Iterator<Item = &RankedCommit> {
    let causes = rule.why.iter().flat_map(|why| &why.causes);
    causes.filter_map(|cause| cause.commits.as_ref()?.first())
}

/// Writes the findings for people.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn check_text(check: &ExplainedCheck, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let painted = |outcome: Outcome| match outcome {
        Outcome::Fail if options.color => format!("\x1b[31m{:<12}\x1b[0m", outcome.name()),
        Outcome::Pass if options.color => format!("\x1b[32m{:<12}\x1b[0m", outcome.name()),
        _ => format!("{:<12}", outcome.name()),
    };
    check.summary.warnings.iter().try_for_each(|w| writeln!(out, "warning: {}", sanitize(w)))?;
    normalized(check).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    for (rule, why) in check.rules.iter().zip(whys(check, causes_text)) {
        let (name, kind) = (sanitize(&rule.rule), sanitize(&rule.sample_type));
        let (mut shown, rest) = select_findings(rule);
        // A brief text of a rule on one subject is a single line.
        let is_line = options.brief && !rule.is_of_each;
        let about = match shown.first().filter(|_| is_line) {
            _ if !options.brief => format!(", {}", extent(rule)),
            Some(f) => {
                let values = FindingValues::from_finding(f, &rule.unit);
                format!("  {} -> {}  {}", values.runs(&f.base), values.runs(&f.new), change(f, rule))
            }
            None => String::new(),
        };
        writeln!(out, "{}  {name}  {kind}{about}", painted(rule.outcome))?;
        shown.retain(|_| !is_line);
        for f in shown {
            let values = FindingValues::from_finding(f, &rule.unit);
            let (base, new) = (values.runs(&f.base), values.runs(&f.new));
            write!(out, "  {}  {base} -> {new}  {}", painted(f.outcome), change(f, rule))?;
            chance(f, rule).map_or(Ok(()), |p| write!(out, "  {p}"))?;
            f.frame.as_ref().map_or(Ok(()), |frame| write!(out, "  {}", sanitize(frame)))?;
            f.reason.as_ref().map_or(Ok(()), |reason| write!(out, "  (allowed: {})", sanitize(reason)))?;
            writeln!(out)?;
        }
        rest.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        if let Some(line) = detectable(check, rule) {
            writeln!(out, "  {line}")?;
        }
        why.iter().try_for_each(|cause| writeln!(out, "  why: {cause}"))?;
    }
    let name = named(check);
    writeln!(out, "{name}{}", if options.brief { brief_verdict(check) } else { verdict(check.verdict).to_owned() })
}

/// Formats the verdict for a small budget: a failure names its first failed rule.
fn brief_verdict(check: &ExplainedCheck) -> String {
    let mut failed = check.rules.iter().filter(|rule| rule.outcome == Outcome::Fail);
    let Some(first) = failed.next() else { return verdict(check.verdict).to_owned() };
    let more = match failed.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("fail: {}{more}", sanitize(&first.rule))
}

/// Returns the exit code for a verdict: 0 for a pass, 1 for a failure, 3 for inconclusive, 4 for a rule that matches no
/// frame. 2 is reserved for errors.
pub fn exit_code(verdict: Outcome) -> u8 {
    match verdict {
        Outcome::Pass | Outcome::Allowed => 0,
        Outcome::Fail => 1,
        Outcome::Inconclusive => 3,
        Outcome::Unmatched => 4,
    }
}

/// Entries of the allow-list for the failing findings of a check.
#[derive(Debug, Clone, Default)]
pub struct AcceptedFindings {
    /// The entries, as text to append to a `pprofdiff.toml`.
    pub entries: String,
    /// The number of entries.
    pub count: usize,
    /// The failed rules about totals and groups. An entry without a frame would turn the rule off.
    pub refused: Vec<String>,
}

/// Returns entries of the allow-list that cover the failing findings of a check. Later checks then fail only for other
/// findings.
pub fn accepted_findings(check: &ExplainedCheck) -> AcceptedFindings {
    let mut accepted = AcceptedFindings::default();
    // A rule may be given twice, in the configuration and on the command line.
    let mut seen = HashSet::new();
    for rule in &check.rules {
        for f in rule.findings.iter().filter(|f| f.outcome == Outcome::Fail) {
            let Some(frame) = &f.frame else {
                if !accepted.refused.contains(&rule.rule) {
                    accepted.refused.push(rule.rule.clone());
                }
                continue;
            };
            if !seen.insert((frame, &rule.rule, &rule.sample_type)) {
                continue;
            }
            let values = FindingValues::from_finding(f, &rule.unit);
            let (base, new) =
                (values.value(f.base.median, values.cost.sides), values.value(f.new.median, values.cost.sides));
            let reason = format!("accepted: {base} -> {new}  {}", growth(f));
            let entry = [
                ("name", check.name.clone()),
                ("frame", Some(typed(&exactly(frame)))),
                ("rule", Some(rule.rule.clone())),
                ("sample_type", Some(rule.sample_type.clone())),
                ("reason", Some(reason)),
            ];
            accepted.entries += "\n[[check.allow]]\n";
            let keys = entry.into_iter().filter_map(|(key, value)| Some((key, value?)));
            keys.for_each(|(key, value)| accepted.entries += &format!("{key} = {}\n", toml_text(&value)));
            accepted.count += 1;
        }
    }
    accepted
}

/// Formats a text for TOML, without escapes if possible.
fn toml_text(text: &str) -> String {
    if !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// Writes the findings as one JSON object.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn check_json(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let mut object = object("check", header_of_check(&check.summary));
    object.insert("exit_code".to_owned(), json!(exit_code(check.verdict)));
    if let Value::Object(fields) = serde_json::to_value(check)? {
        object.extend(fields);
    }
    let rules = object.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
    for (rule_json, rule) in rules.zip(&check.rules) {
        if let Some(why) = &rule.why {
            rule_json["why"] = explain_object(why)?;
        }
    }
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}

/// Writes the findings as Markdown of at most [`MARKDOWN_LIMIT`] characters. If all rules do not fit, repeatedly halves
/// the number of rules, which omits the last ones. A line then states how many rules are shown.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn check_markdown(check: &ExplainedCheck, out: &mut dyn Write) -> io::Result<()> {
    let mut rules = check.rules.len();
    let mut text = markdown(check, rules);
    while text.chars().count() > MARKDOWN_LIMIT && rules > 0 {
        rules /= 2;
        text = markdown(check, rules);
    }
    out.write_all(text.as_bytes())
}

/// Formats the first `rules` rules as Markdown.
fn markdown(check: &ExplainedCheck, rules: usize) -> String {
    let mark = |o: Outcome| match o {
        Outcome::Pass => "✅ pass",
        Outcome::Allowed => "☑️ allowed",
        Outcome::Inconclusive => "❔ inconclusive",
        Outcome::Unmatched => "⚠️ unmatched",
        Outcome::Fail => "❌ fail",
    };
    // Names of frames, files and rules can have any length, so shorten them.
    let short = |text: &str| match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let name = check.name.as_ref().map_or_else(String::new, |name| format!(" {}", escape(name)));
    let mut text = format!("### pprofdiff{name}: {}\n\n", verdict(check.verdict));
    check.summary.warnings.iter().take(20).for_each(|w| text += &format!("> {}\n\n", escape(&short(w))));
    normalized(check).iter().for_each(|line| text += &format!("{line}\n\n"));
    for (rule, causes) in check.rules.iter().zip(whys(check, causes_markdown)).take(rules) {
        let (name, kind) = (code(&short(&rule.rule)), escape(&short(&rule.sample_type)));
        text += &format!("**{}** {name} ({kind}, {})\n\n", mark(rule.outcome), extent(rule));
        let (shown, rest) = select_findings(rule);
        if !shown.is_empty() {
            text +=
                "| | frame | base | new | delta | growth | of total | chance |\n|---|---|---|---|---:|---:|---:|---|\n";
        }
        for f in shown {
            let frame = f.frame.as_deref().map_or_else(|| "all".to_owned(), |f| code(&short(f)));
            let reason = f.reason.as_deref().map_or_else(String::new, |r| format!(": {}", escape(&short(r))));
            let values = FindingValues::from_finding(f, &rule.unit);
            let (base, new) = (values.runs(&f.base), values.runs(&f.new));
            text += &format!("| {}{reason} | {frame} | {base} | {new} ", mark(f.outcome));
            let share = share_text(f.share, true);
            let chance = chance(f, rule).unwrap_or_default().replace('<', "&lt;");
            text += &format!("| {} | {} | {share} | {chance} |\n", values.delta(f.delta), growth(f));
        }
        rest.iter().for_each(|line| text += &format!("\n{}\n", escape(&short(line))));
        if let Some(line) = detectable(check, rule) {
            text += &format!("\n{line}\n");
        }
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
