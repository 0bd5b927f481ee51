//! An explanation as an HTML fragment for notebooks: each cause with bars of what it costs on both sides.

use std::fmt::Write as _;

use super::markup::Markup;
use super::words::{ExplanationText, Priority};
use crate::html::style;
use pprofdiff::explain::Explanation;

/// The longest bar, in pixels.
const WIDEST: f64 = 160.0;

/// The explanation as an HTML fragment, readable without JavaScript, in light and in dark. Everything from the input is
/// escaped.
pub fn explain_html(e: &Explanation) -> String {
    let words = ExplanationText { e, markup: Markup::Html };
    let mut html = format!("{}<div class=\"pprofdiff\"><div>{}</div>", style(), words.head("→"));
    if let Some(verdict) = words.verdict() {
        let _ = write!(html, "<p><b>{verdict}</b></p>");
    }
    if let Some(rewrite) = &e.rewrite {
        let _ = write!(html, "<p>{}</p>", words.rewrite(rewrite));
    }
    let values = e.causes.iter().flat_map(|c| [c.evidence.base.value, c.evidence.new.value]);
    let most = values.fold(0.0, f64::max);
    if !e.causes.is_empty() {
        html.push_str("<table><tbody>");
    }
    for (i, cause) in e.causes.iter().enumerate() {
        let class = if cause.delta < 0.0 { "less" } else { "more" };
        let bar = |value: f64, side: &str, color: &str| {
            let width = if most > 0.0 { (value / most * WIDEST).ceil() } else { 0.0 };
            format!(
                "<div title=\"{side} {}\" style=\"width:{width}px;height:.5em;margin:2px 0;background:{color}\"></div>",
                words.total(value)
            )
        };
        let _ = write!(
            html,
            "<tr><td>{}.</td><td class=\"w\" style=\"white-space:normal\">{}</td><td class=\"w\">{}{}</td></tr>",
            i + 1,
            words.cause(cause),
            bar(cause.evidence.base.value, "base", "rgba(128,128,128,.6)"),
            bar(cause.evidence.new.value, "new", &format!("var(--{class})")),
        );
    }
    if !e.causes.is_empty() {
        html.push_str("</tbody></table>");
    }
    for line in words.lines().iter().filter(|l| !matches!(l.about, Priority::Answer | Priority::Detail)) {
        let _ = write!(html, "<div class=\"note\">{}</div>", line.text);
    }
    html.push_str("</div>");
    e.also.iter().for_each(|also| html.push_str(&explain_html(also)));
    html
}
