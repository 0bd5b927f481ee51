//! Why two sides differ: for people, in at most 15 lines, as Markdown, as a fragment for notebooks, and as JSON (schema
//! `pprofdiff/1`, kind `explain`).

mod commits;
mod markup;
mod notebook;
mod panel;
mod words;

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::format::Style;
use crate::format::json::{header, object};
use markup::{Markup, pieces};
pub use notebook::explain_html;
#[cfg(feature = "html")]
pub(crate) use panel::{explain_panel, nearest_cause, whole_changed};
use pprofdiff::advice::{operand, typed, word};
use pprofdiff::explain::{Cause, ExplainOptions, Explanation, ScaleRule, Verdict};
use pprofdiff::fleet::PairCauses;
use pprofdiff::{Diff, Query};
#[cfg(feature = "check")]
use words::MAX_CAUSES;
use words::{ExplanationText, Priority, most_important, within};

/// What is said where no cause is known.
pub const CAN_NOT_TELL: &str = "these samples can't tell";

/// What a process ends with that ends on the verdict, and those of what belongs to it: 1 something changed, 3 these samples
/// can't tell, 0 nothing did.
pub fn explain_exit_code(e: &Explanation) -> u8 {
    let verdicts: Vec<Verdict> = std::iter::once(e).chain(&e.also).map(|e| e.verdict).collect();
    match () {
        () if verdicts.contains(&Verdict::Change) => 1,
        () if verdicts.contains(&Verdict::Inconclusive) => 3,
        () => 0,
    }
}

/// Writes the explanation as one JSON object.
///
/// # Errors
/// The writer's.
pub(crate) fn explain_json(e: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &explain_object(e)?)?;
    writeln!(out)
}

/// The explanation as an object of JSON.
///
/// # Errors
/// None that is known: its fields are numbers and strings.
pub fn explain_object(e: &Explanation) -> serde_json::Result<Value> {
    let mut object = object("explain", header(&e.summary));
    if let Value::Object(mut own) = serde_json::to_value(e)? {
        let words = ExplanationText { e, markup: Markup::Pieces };
        let tell = |object: &mut Value, cause: &Cause| {
            object["evidence"]["command"] = json!(command_of(e, cause));
            object["sentence"] = json!(pieces(&words.cause(cause)));
        };
        if let (Some(candidate), Some(of)) = (own.get_mut("candidate"), &e.candidate) {
            tell(candidate, &of.cause);
        }
        for (name, causes) in [("causes", &e.causes), ("suspects", &e.suspects)] {
            let Some(Value::Array(objects)) = own.get_mut(name) else { continue };
            for (object, cause) in objects.iter_mut().zip(causes) {
                tell(object, cause);
            }
        }
        if !e.also.is_empty() {
            own.insert("also".to_owned(), e.also.iter().map(explain_object).collect::<serde_json::Result<_>>()?);
        }
        object.extend(own);
    }
    Ok(Value::Object(object))
}

/// The command that shows the stacks of a cause, quoted for a shell. A file that has both sides is named once.
fn command_of(e: &Explanation, cause: &Cause) -> String {
    let mut words = vec!["pprofdiff".to_owned()];
    match &cause.evidence.pattern {
        Some(pattern) => {
            words.extend(["peek".to_owned(), word(&typed(pattern))]);
        }
        None => words.push("top".to_owned()),
    }
    let windows =
        [e.summary.base.as_ref(), Some(&e.summary.new)].map(|side| side.and_then(|side| side.window.as_ref()));
    let base = e.summary.base.as_ref().map_or(&[][..], |base| &base.paths);
    let filters = e.summary.query.filters.set().into_iter();
    let tagged: Vec<_> = filters.filter(|(name, _)| ["base_tagfocus", "new_tagfocus"].contains(name)).collect();
    match (base, e.summary.new.paths.as_slice()) {
        ([both], [new]) if both == new && windows[0].is_some() == windows[1].is_some() && tagged.is_empty() => {
            words.push(operand(both, "FILE"))
        }
        ([base], [new]) => words.extend([operand(base, "BASE"), operand(new, "NEW")]),
        (base, new) => match &e.folder {
            Some(folder) => words.push(operand(folder, "RUNS")),
            None => {
                for (option, names, placeholder) in [("--base", base, "BASE"), ("--new", new, "NEW")] {
                    words.push(option.to_owned());
                    words.extend(names.iter().map(|name| operand(name, placeholder)));
                }
            }
        },
    }
    for (option, window) in ["--base-time", "--new-time"].into_iter().zip(windows) {
        words.extend(window.into_iter().flat_map(|window| [option.to_owned(), word(window)]));
    }
    for (name, value) in tagged {
        words.extend([format!("--{}", name.replace('_', "-")), word(&typed(value))]);
    }
    words.extend(["--sample-type".to_owned(), word(&e.summary.sample_type)]);
    if let Some(ignore) = &cause.evidence.ignore {
        words.extend(["--ignore".to_owned(), word(&typed(ignore))]);
    }
    if let Some(label) = &cause.label {
        words.extend(["--tagfocus".to_owned(), word(&format!("{}={}", label.key, label.value))]);
    }
    words.join(" ")
}

/// Writes the explanation for people, in at most 15 lines, and what belongs to it in a paragraph each.
///
/// # Errors
/// The writer's.
pub(crate) fn explain_text(e: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let words = ExplanationText { e, markup: Markup::Plain };
    let head = words.head("->");
    let lines = within(words.lines(), &head, budget_of(e, style));
    writeln!(out, "{head}")?;
    for line in lines {
        match line.about {
            Priority::Answer if style.color => writeln!(out, "\x1b[1m{}\x1b[0m", line.text)?,
            _ => writeln!(out, "{}", line.text)?,
        }
    }
    for also in &e.also {
        writeln!(out)?;
        explain_text(also, out, Style { budget: budget_of(e, style), ..style })?;
    }
    Ok(())
}

/// Returns the most important lines of the explanation for people: the head and the answer of each paragraph, and
/// `more` further lines, which the paragraphs take in turn.
pub(crate) fn explain_head(e: &Explanation, more: usize) -> String {
    let paragraphs = 1 + e.also.len();
    let paragraph = |(i, e)| {
        let words = ExplanationText { e, markup: Markup::Plain };
        let kept = 1 + (more + paragraphs - 1 - i) / paragraphs;
        let lines = most_important(words.lines(), kept).into_iter().map(|line| line.text);
        std::iter::once(words.head("->")).chain(lines).map(|line| line + "\n").collect::<String>()
    };
    std::iter::once(e).chain(&e.also).enumerate().map(paragraph).collect::<Vec<_>>().join("\n")
}

/// Returns the number of further lines with which [`explain_head`] is complete.
pub(crate) fn lines_to_cut(e: &Explanation) -> usize {
    let lines = |e| ExplanationText { e, markup: Markup::Plain }.lines().len().saturating_sub(1);
    std::iter::once(e).chain(&e.also).map(lines).max().unwrap_or(0) * (1 + e.also.len())
}

/// What a paragraph may take of the budget.
fn budget_of(e: &Explanation, style: Style) -> Option<usize> {
    style.budget.map(|budget| budget / (1 + e.also.len()))
}

/// Writes the explanation as Markdown: causes as a numbered list, the rest as lines below it.
///
/// # Errors
/// The writer's.
pub(crate) fn explain_markdown(e: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let words = ExplanationText { e, markup: Markup::Markdown };
    let head = words.head("→");
    let lines = within(words.lines(), &head, budget_of(e, style));
    writeln!(out, "{head}")?;
    let mut last = None;
    for line in lines {
        // What belongs to a cause stays in its list item; all else is a paragraph of its own.
        let in_list =
            line.about == Priority::Detail || line.about == Priority::Answer && last == Some(Priority::Detail);
        if !in_list || last.is_none() {
            writeln!(out)?;
        }
        writeln!(out, "{}", line.text)?;
        last = Some(line.about);
    }
    for also in &e.also {
        writeln!(out)?;
        explain_markdown(also, out, Style { budget: budget_of(e, style), ..style })?;
    }
    Ok(())
}

/// The causes, each a line, as they stand under what they are causes of.
#[cfg(feature = "check")]
fn causes(e: &Explanation, markup: Markup) -> Vec<String> {
    let words = ExplanationText { e, markup };
    let commit = |cause: &Cause| cause.commits.as_ref().map_or_else(String::new, |c| format!("; {}", words.commits(c)));
    e.causes.iter().take(MAX_CAUSES).map(|cause| words.cause(cause) + &commit(cause)).collect()
}

/// The causes for people.
#[cfg(feature = "check")]
pub(crate) fn causes_text(e: &Explanation) -> Vec<String> {
    causes(e, Markup::Plain)
}

/// The causes as Markdown.
#[cfg(feature = "check")]
pub(crate) fn causes_markdown(e: &Explanation) -> Vec<String> {
    causes(e, Markup::Markdown)
}

/// The cause of what one function costs more or less: that of which it is the function, where its cost moved from or to,
/// one that names it at all, one
/// `below` whose function it changed, or one that is of no function.
pub(crate) fn cause_of(e: &Explanation, function: &str, below: impl Fn(&Cause) -> bool) -> String {
    let words = ExplanationText { e, markup: Markup::Plain };
    let is = |name: &String| name == function;
    let own = |cause: &&Cause| cause.evidence.functions.iter().any(is);
    let named = |cause: &&Cause| {
        let parts = cause.parts.iter().flat_map(|part| part.function.iter().chain(&part.caller));
        cause.evidence.callers.iter().chain(&cause.chain).chain(&cause.callee).chain(parts).any(is)
    };
    let moved = || e.moved.iter().find(|moved| is(&moved.from) || is(&moved.function));
    match (e.causes.iter().find(own), moved()) {
        (Some(cause), _) => words.cause(cause),
        (None, Some(moved)) => words.moved(moved),
        (None, None) => {
            let of_all = |cause: &&Cause| cause.function.is_none() || below(cause);
            let cause = e.causes.iter().find(named).or_else(|| e.causes.iter().find(of_all));
            match (cause, e.verdict) {
                (Some(cause), _) => words.cause(cause),
                (None, Verdict::Inconclusive) => CAN_NOT_TELL.to_owned(),
                (None, _) => "no cause of its own was found".to_owned(),
            }
        }
    }
}

/// What a fleet keeps of a pair: its causes, and what it comes to, each in a line; and its account as HTML.
///
/// # Errors
/// As [`Diff::explain`].
pub fn pair_causes(diff: &Diff, query: &Query) -> pprofdiff::Result<PairCauses> {
    let e = &diff.explain(query, &[], &ExplainOptions::default())?;
    let words = ExplanationText { e, markup: Markup::Plain };
    let line = explain_line(e).unwrap_or_else(|| {
        let scale = if e.scale.rule == ScaleRule::Same { String::new() } else { words.scale() };
        format!("{} {scale}", words.verdict().unwrap_or_default()).trim_end().to_owned()
    });
    PairCauses::of(diff, e, |cause| words.cause(cause), line, || Some(notebook::account_html(e)))
}

/// What an explanation comes to in one line, where it is sure: the largest cause, or that nothing changed.
pub fn explain_line(e: &Explanation) -> Option<String> {
    let words = ExplanationText { e, markup: Markup::Plain };
    match (e.verdict, e.causes.as_slice()) {
        (Verdict::Change, [first, rest @ ..]) => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            Some(format!("{}{more}", words.cause(first)))
        }
        (Verdict::None, _) => {
            let scale = if e.scale.rule == ScaleRule::Same { String::new() } else { format!(" {}", words.scale()) };
            Some(format!("{}{scale}", words.verdict()?))
        }
        _ => None,
    }
}
