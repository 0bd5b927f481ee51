//! The explanation as an HTML fragment for notebooks: the page's waterfall picture with its own style sheet.

use std::fmt::Write as _;

use super::markup::Markup;
use super::panel::push_account;
use super::words::{ExplanationText, Priority};
use crate::html::style;
use pprofdiff_explain::Explanation;

/// The page's style for the picture, with the notebook's text colour.
const STYLE: &str = concat!(
    "<style>.pprofdiff{--line:rgba(128,128,128,.4);--quiet:color-mix(in srgb,currentColor 75%,transparent);",
    "--text:currentColor;--bar:rgba(128,128,128,.7);--accent:#4a86e8;max-width:1100px}\n.pprofdiff{\n",
    include_str!("account.css"),
    "}\n.pprofdiff .verdict{font-weight:600}.pprofdiff>.account{margin:6px 0}</style>"
);

/// Returns the explanation as an HTML fragment that needs no JavaScript and fits light and dark themes. One fragment
/// per further sample type follows. Everything from the input is escaped.
pub fn explain_html(e: &Explanation) -> String {
    let mut html = format!("{}{STYLE}<div class=\"pprofdiff\">{}</div>", style(), account_html(e));
    e.also.iter().for_each(|also| html.push_str(&explain_html(also)));
    html
}

/// Returns the fragment of one sample type without the style sheet: the totals, the picture, and the lines about
/// warnings, moves, scale and noise, which the picture does not contain.
pub(super) fn account_html(e: &Explanation) -> String {
    let words = ExplanationText::new(e, Markup::Html);
    let mut html = format!("<div>{}</div>", words.head("→"));
    push_account(&words, false, &mut html);
    let is_drawn = |about: &Priority| matches!(about, Priority::Answer | Priority::Account | Priority::Detail);
    for line in words.lines().iter().filter(|line| !is_drawn(&line.about)) {
        let _ = write!(html, "<div class=\"note\">{}</div>", line.text);
    }
    html
}
