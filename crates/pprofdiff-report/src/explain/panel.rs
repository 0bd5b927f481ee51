//! An explanation as the page opens with it: HTML, in the words that text has, with a button for each cause.

use std::fmt::Write as _;

use super::words::{ExplanationText, MAX_CAUSES, Markup, Priority, is_replaced};
use pprofdiff::explain::{Cause, Explanation};

const TITLE: &str = "Show its stacks in the flame graph; again, or Esc: all of them";

/// The explanation as HTML. A button has the number of its cause, for a script that shows its stacks. Everything from
/// the input is escaped. Warnings are left to the page.
pub(crate) fn explain_panel(e: &Explanation) -> String {
    let words = ExplanationText { e, markup: Markup::Html };
    // The page's own total is that of all runs of a side.
    let of = if e.noise.runs == (1, 1) { "" } else { ", the mean of a side's runs" };
    let mut html = format!("<h2>What changed <span class=\"caption\">{}{of}</span></h2>", words.head("→"));
    if let Some(verdict) = words.verdict() {
        let _ = write!(html, "<p>{verdict}</p>");
    }
    if let Some(rewrite) = &e.rewrite {
        let _ = write!(html, "<p>{}</p>", words.rewrite(rewrite));
    }
    let (first, more) = e.causes.split_at(e.causes.len().min(MAX_CAUSES));
    push_causes(&mut html, &words, first, 0);
    if !more.is_empty() {
        let _ = write!(html, "<details><summary>{} more</summary>", more.len());
        push_causes(&mut html, &words, more, first.len());
        html.push_str("</details>");
    }
    let small =
        |about: &Priority| matches!(about, Priority::Account | Priority::Moved | Priority::Scale | Priority::Noise);
    html.push_str("<ul class=\"notes\">");
    for line in words.lines().iter().filter(|line| small(&line.about)) {
        let _ = write!(html, "<li>{}</li>", line.text);
    }
    html + "</ul>"
}

/// Causes as a list, with `from` of them before.
fn push_causes(html: &mut String, words: &ExplanationText, causes: &[Cause], from: usize) {
    if causes.is_empty() {
        return;
    }
    html.push_str("<ol>");
    for (number, cause) in (from..).zip(causes) {
        let class = if cause.delta < 0.0 { "less" } else { "more" };
        let text = format!("{}. {}.", number + 1, words.cause(cause));
        // Labels are in no stack: without a function there is nothing to show.
        let _ = match cause.function {
            Some(_) => write!(
                html,
                "<li class=\"{class}\"><button type=\"button\" title=\"{TITLE}\" data-cause=\"{number}\" aria-pressed=\"false\">{text}</button>"
            ),
            None => write!(html, "<li class=\"{class}\"><span>{text}</span>"),
        };
        if !cause.parts.is_empty() && !is_replaced(cause) {
            let _ = write!(html, "<div class=\"note\">{}</div>", words.parts(&cause.parts));
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
}
