//! The answer of `explain` in each output format: text, Markdown, an HTML fragment for notebooks, and JSON (schema
//! `pprofdiff/1`, kind `explain`).

mod commits;
mod markup;
mod notebook;
mod panel;
mod words;

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::json::{header, object};
use crate::style::Style;
use markup::{Markup, pieces};
pub use notebook::explain_html;
pub use panel::{ACCOUNT_STYLE, explain_panel, nearest_cause};
use pprofdiff::advice::{operand, typed, word};
use pprofdiff::{Diff, Query};
use pprofdiff_explain::{Cause, ExplainOptions, Explanation, ScaleRule, Verdict};
use pprofdiff_series::fleet::PairCauses;
#[cfg(feature = "check")]
use words::MAX_CAUSES;
pub use words::OPS;
use words::{ExplanationText, Priority, TextLine, most_important};

/// The text that replaces a function's cause if the samples are inconclusive.
const INCONCLUSIVE: &str = "these samples are inconclusive";

/// Returns the exit code for an explanation and its further sample types: 1 if any of them changed, otherwise 3 if any
/// is inconclusive, otherwise 0.
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
/// If writing fails.
pub(crate) fn explain_json(e: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &explain_object(e)?)?;
    writeln!(out)
}

/// Returns the explanation as a JSON object.
///
/// # Errors
/// If serialization fails, which numbers and strings do not.
pub fn explain_object(e: &Explanation) -> serde_json::Result<Value> {
    let mut object = object("explain", header(&e.summary));
    if let Value::Object(mut fields) = serde_json::to_value(e)? {
        let words = ExplanationText::new(e, Markup::Pieces);
        let add_sentence = |object: &mut Value, cause: &Cause| {
            object["evidence"]["command"] = json!(command_of(e, cause));
            object["sentence"] = json!(pieces(&words.cause(cause)));
        };
        if let (Some(object), Some(candidate)) = (fields.get_mut("candidate"), &e.candidate) {
            add_sentence(object, &candidate.cause);
        }
        for (name, causes) in [("causes", &e.causes), ("suspects", &e.suspects)] {
            let Some(Value::Array(objects)) = fields.get_mut(name) else { continue };
            for (object, cause) in objects.iter_mut().zip(causes) {
                add_sentence(object, cause);
            }
        }
        if !e.also.is_empty() {
            fields.insert("also".to_owned(), e.also.iter().map(explain_object).collect::<serde_json::Result<_>>()?);
        }
        object.extend(fields);
    }
    Ok(Value::Object(object))
}

/// Returns the causes below which the text shows a command, with this command and their explanation.
pub fn shown_commands(e: &Explanation) -> Vec<(String, &Explanation, &Cause)> {
    let all = std::iter::once(e).chain(&e.also);
    all.filter_map(|e| {
        let cause = if e.is_uncounted() { largest_uncounted(e).next() } else { e.causes.first() }?;
        Some((command_of(e, cause), e, cause))
    })
    .collect()
}

/// Returns the changes that the verdict names as the largest if the number of samples is unknown.
fn largest_uncounted(e: &Explanation) -> impl Iterator<Item = &Cause> {
    e.candidate.iter().map(|candidate| &candidate.cause).chain(&e.suspects)
}

/// Returns the command that shows the stacks of a cause, quoted for a shell: `peek` with the cause's pattern in the
/// reader's own code, or `top` if the cause has no pattern. A file that holds both sides is named once, unless label filters or a time window
/// select only one of the sides.
fn command_of(e: &Explanation, cause: &Cause) -> String {
    let mut words = vec!["pprofdiff".to_owned()];
    match cause.own_pattern() {
        Some(pattern) => {
            words.extend(["peek".to_owned(), word(&typed(&pattern))]);
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

/// Writes the explanation as text, one paragraph per sample type.
///
/// # Errors
/// If writing fails.
pub(crate) fn explain_text(e: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let words = ExplanationText::new(e, Markup::Plain);
    write!(out, "{}", paragraph_text(&words.head("->"), words.lines(), style.color))?;
    for also in &e.also {
        writeln!(out)?;
        explain_text(also, out, style)?;
    }
    Ok(())
}

fn paragraph_text(head: &str, lines: Vec<TextLine>, color: bool) -> String {
    let line = |line: TextLine| match line.about {
        Priority::Answer if color => format!("\x1b[1m{}\x1b[0m\n", line.text),
        _ => line.text + "\n",
    };
    std::iter::once(format!("{head}\n")).chain(lines.into_iter().map(line)).collect()
}

/// Returns the most important lines of the explanation as text or Markdown: the head and the most important line of
/// each paragraph, and `more` further lines, of which each paragraph gets one in turn.
pub(crate) fn explain_head(e: &Explanation, more: usize, is_text: bool) -> String {
    let paragraphs = 1 + e.also.len();
    let paragraph = |(i, e)| {
        let kept = 1 + (more + paragraphs - 1 - i) / paragraphs;
        let words = ExplanationText::new(e, if is_text { Markup::Plain } else { Markup::Markdown });
        let lines = most_important(words.lines(), kept);
        match is_text {
            true => paragraph_text(&words.head("->"), lines, false),
            false => paragraph_markdown(&words.head("→"), lines),
        }
    };
    std::iter::once(e).chain(&e.also).enumerate().map(paragraph).collect::<Vec<_>>().join("\n")
}

/// Returns a number of further lines with which [`explain_head`] is complete. Paragraphs share the lines equally, so
/// the longest paragraph determines the number.
pub(crate) fn lines_to_cut(e: &Explanation) -> usize {
    let lines = |e| ExplanationText::new(e, Markup::Plain).lines().len().saturating_sub(1);
    std::iter::once(e).chain(&e.also).map(lines).max().unwrap_or(0) * (1 + e.also.len())
}

/// Returns the answer of an explanation as lines of text, for an answer about many builds: the lines of `explain_text`
/// without details and noise. `known` are warnings that the reader has seen already. If `is_brief` is true, only the
/// verdict, rewrites and causes remain.
pub fn answer_lines(e: &Explanation, known: &[String], is_brief: bool) -> Vec<String> {
    // The totals tell several sample types apart.
    let has_head = !is_brief || !e.also.is_empty();
    let lines_of = |e: &Explanation| {
        let words = ExplanationText::new(e, Markup::Plain);
        let lines = answer(&words, known).filter(|line| !is_brief || line.about == Priority::Answer);
        has_head.then(|| words.head("->")).into_iter().chain(lines.map(|line| line.text)).collect::<Vec<_>>()
    };
    std::iter::once(e).chain(&e.also).flat_map(lines_of).collect()
}

/// Returns the lines of [`answer_lines`] as Markdown.
pub(crate) fn answer_markdown(e: &Explanation, known: &[String]) -> String {
    let words = ExplanationText::new(e, Markup::Markdown);
    let mut text = paragraph_markdown(&words.head("→"), answer(&words, known).collect());
    for also in &e.also {
        text.push('\n');
        text.push_str(&answer_markdown(also, known));
    }
    text
}

/// Iterates over the lines of an explanation without details, noise and known warnings.
fn answer(words: &ExplanationText<'_>, known: &[String]) -> impl Iterator<Item = TextLine> {
    // The warnings of a series begin with the build.
    let warnings = &words.e.summary.warnings;
    let is_known = warnings.first().is_some_and(|warning| known.iter().any(|known| known.ends_with(warning)));
    let lines = words.lines().into_iter();
    lines.filter(move |line| match line.about {
        Priority::Detail | Priority::Noise => false,
        Priority::Warning => !is_known,
        _ => true,
    })
}

/// Writes the explanation as Markdown: causes as a numbered list, other lines below it.
///
/// # Errors
/// If writing fails.
pub(crate) fn explain_markdown(e: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let words = ExplanationText::new(e, Markup::Markdown);
    write!(out, "{}", paragraph_markdown(&words.head("→"), words.lines()))?;
    for also in &e.also {
        writeln!(out)?;
        explain_markdown(also, out)?;
    }
    Ok(())
}

fn paragraph_markdown(head: &str, lines: Vec<TextLine>) -> String {
    let mut text = format!("{head}\n");
    let mut last = None;
    for line in lines {
        // Details of a cause stay in its list item, and the next cause continues the list. An empty line separates all
        // other lines, which are paragraphs.
        let in_list =
            line.about == Priority::Detail || line.about == Priority::Answer && last == Some(Priority::Detail);
        if !in_list || last.is_none() {
            text.push('\n');
        }
        text.push_str(&line.text);
        text.push('\n');
        last = Some(line.about);
    }
    text
}

/// Returns one line for each of the first [`MAX_CAUSES`] causes, with the cause's commit if known. Checks show these
/// lines below a rule.
#[cfg(feature = "check")]
fn causes(words: &ExplanationText<'_>) -> Vec<String> {
    let commit =
        |cause: &Cause| cause.commits.as_ref().map_or_else(String::new, |c| format!("; {}", words.commits(cause, c)));
    // The causes of another sample type than the rule's.
    let of = words.e.sample_type.as_ref().map_or_else(String::new, |kind| format!("{}: ", words.markup.words(kind)));
    // If nothing else changed, a check names the amount of work.
    if words.e.causes.is_empty() && words.e.scale.rule == ScaleRule::Agree {
        return vec![words.scale()];
    }
    words.e.causes.iter().take(MAX_CAUSES).map(|cause| format!("{of}{}{}", words.cause(cause), commit(cause))).collect()
}

/// Returns one line for each of the first [`MAX_CAUSES`] causes as text.
#[cfg(feature = "check")]
pub(crate) fn causes_text(e: &Explanation) -> Vec<String> {
    causes(&ExplanationText::new(e, Markup::Plain))
}

/// Returns one line for each of the first [`MAX_CAUSES`] causes as text, with the path of the source file.
#[cfg(feature = "check")]
pub(crate) fn located_causes(e: &Explanation) -> Vec<String> {
    causes(&ExplanationText { has_folders: true, ..ExplanationText::new(e, Markup::Plain) })
}

/// Returns one line for each of the first [`MAX_CAUSES`] causes as Markdown.
#[cfg(feature = "check")]
pub(crate) fn causes_markdown(e: &Explanation) -> Vec<String> {
    causes(&ExplanationText::new(e, Markup::Markdown))
}

/// Returns the cause of one function's change in words. In order of preference: a cause of this function, a move from
/// or to it, a cause that names it as a caller, callee or part, the first cause that has no function or for which `below` is
/// true, or the rewrite of its package. Otherwise returns [`INCONCLUSIVE`], or a sentence that no separate cause was found.
pub(crate) fn cause_of(e: &Explanation, function: &str, below: impl Fn(&Cause) -> bool) -> String {
    let words = ExplanationText::new(e, Markup::Plain);
    let is = |name: &String| name == function;
    let is_of_function = |cause: &&Cause| cause.evidence.functions.iter().any(is);
    let is_named = |cause: &&Cause| {
        let parts = cause.parts.iter().flat_map(|part| part.function.iter().chain(&part.caller));
        cause.evidence.callers.iter().chain(&cause.chain).chain(&cause.callee).chain(parts).any(is)
    };
    let moved = || e.moved.iter().find(|moved| is(&moved.from) || is(&moved.function));
    let is_below = |path: &String| {
        function.strip_prefix(path.as_str()).is_some_and(|rest| !path.is_empty() && rest.starts_with(['.', ':', '/']))
    };
    let rewrite = || e.rewrite.as_ref().filter(|rewrite| is_below(&rewrite.from) || is_below(&rewrite.to));
    match (e.causes.iter().find(is_of_function), moved()) {
        (Some(cause), _) => words.cause(cause),
        (None, Some(moved)) => words.moved(moved),
        (None, None) => {
            let of_all = |cause: &&Cause| cause.function.is_none() || below(cause);
            let cause = e.causes.iter().find(is_named).or_else(|| e.causes.iter().find(of_all));
            match (cause, e.verdict) {
                (Some(cause), _) => words.cause(cause),
                (None, verdict) => match (rewrite(), verdict) {
                    (Some(rewrite), _) => words.rewrite(rewrite).trim_end_matches('.').to_owned(),
                    (None, Verdict::Inconclusive) => INCONCLUSIVE.to_owned(),
                    (None, _) => "no separate cause was found".to_owned(),
                },
            }
        }
    }
}

/// Returns the parts of a pair's explanation that a ranking of many pairs keeps: the causes, the verdict in one line,
/// and the account as HTML.
///
/// # Errors
/// Those of [`explain`](pprofdiff_explain::explain).
pub fn pair_causes(diff: &Diff, query: &Query) -> pprofdiff::Result<PairCauses> {
    let e = &pprofdiff_explain::explain(diff, query, &[], &ExplainOptions::default())?;
    let words = ExplanationText::new(e, Markup::Plain);
    let line = explain_line(e).unwrap_or_else(|| {
        let scale = if e.scale.rule == ScaleRule::Same { String::new() } else { words.scale() };
        format!("{} {scale}", words.verdict().unwrap_or_default()).trim_end().to_owned()
    });
    PairCauses::from_explanation(diff, e, |cause| words.cause(cause), line, || Some(notebook::account_html(e)))
}

/// Returns the sentence of a cause, a suspect or a candidate of this explanation, as in its text.
pub fn cause_sentence(e: &Explanation, cause: &Cause) -> String {
    ExplanationText::new(e, Markup::Plain).cause(cause)
}

/// Returns a conclusive explanation in one line: the first cause and the number of further causes, or that nothing
/// changed. Returns `None` for an inconclusive explanation, and for a change without causes.
pub fn explain_line(e: &Explanation) -> Option<String> {
    let words = ExplanationText::new(e, Markup::Plain);
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
