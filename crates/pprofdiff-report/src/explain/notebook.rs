//! An explanation as an HTML fragment for notebooks: the picture of the page's panel, with its style.

use std::fmt::Write as _;

use super::markup::Markup;
use super::panel::push_account;
use super::words::{ExplanationText, Priority};
use crate::html::style;
use pprofdiff::explain::Explanation;

/// The picture's style is the page's; its colours come from the notebook, as those of tables do.
const STYLE: &str = concat!(
    "<style>.pprofdiff{--line:rgba(128,128,128,.4);--quiet:color-mix(in srgb,currentColor 75%,transparent);",
    "--text:currentColor;--bar:rgba(128,128,128,.7);--accent:#4a86e8;max-width:1100px}\n.pprofdiff{\n",
    include_str!("../page/account.css"),
    "}\n.pprofdiff .verdict{font-weight:600}.pprofdiff>.account{margin:6px 0}</style>"
);

/// The explanation as an HTML fragment, readable without JavaScript, in light and in dark. Everything from the input is
/// escaped.
pub fn explain_html(e: &Explanation) -> String {
    let mut html = format!("{}{STYLE}<div class=\"pprofdiff\">{}</div>", style(), account_html(e));
    e.also.iter().for_each(|also| html.push_str(&explain_html(also)));
    html
}

/// The same without a style, of one sample type.
pub(super) fn account_html(e: &Explanation) -> String {
    let words = ExplanationText { e, markup: Markup::Html };
    let mut html = format!("<div>{}</div>", words.head("→"));
    push_account(&words, false, &mut html);
    let is_drawn = |about: &Priority| matches!(about, Priority::Answer | Priority::Account | Priority::Detail);
    for line in words.lines().iter().filter(|line| !is_drawn(&line.about)) {
        let _ = write!(html, "<div class=\"note\">{}</div>", line.text);
    }
    html
}
