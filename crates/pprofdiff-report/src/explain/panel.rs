//! The waterfall picture of an account, at the top of the page and in notebooks: one bar per part of the difference,
//! from the base's total to the new side's total, each with a sentence. It is drawn here as HTML and SVG, so it works
//! without scripts.
//!
//! The page's content security policy forbids inline styles, so bars state their positions as attributes in percent.

use std::fmt::Write as _;

use super::markup::Markup;
use super::words::{ExplanationText, MAX_CAUSES, Priority, is_replaced, percent};
use crate::numbers::{figure, p_words};
use pprofdiff_explain::{Cause, Explanation, Remainder, Verdict};

/// The style sheet of the picture, without colours.
pub const ACCOUNT_STYLE: &str = include_str!("account.css");
const TITLE: &str = "Show the stacks of this cause in all views; click again or press Esc to show all stacks";
/// Minimum size of the change for an axis that starts at zero, as a fraction of the largest value. For a smaller
/// change, the axis starts higher, so that the change stays visible.
const MIN_CHANGED: f64 = 0.25;

/// Returns the explanation for the page. A cause with a function is a button with the cause's number, with which the
/// script finds its stacks; the number of the best candidate follows the numbers of the causes. Everything from the
/// input is escaped. Warnings are not included, because the page itself shows them.
pub fn explain_panel(e: &Explanation) -> String {
    let words = ExplanationText::new(e, Markup::Html);
    let mut html = "<h2>What changed</h2>".to_owned();
    // The page's header sums all runs of a side; the account compares means.
    if e.noise.runs != (1, 1) {
        html.insert_str(html.len() - "</h2>".len(), " <span class=\"caption\">in the mean of a side's runs</span>");
    }
    push_account(&words, true, &mut html);
    let small = |about: &Priority| matches!(about, Priority::Moved | Priority::Scale | Priority::Noise);
    html.push_str("<ul class=\"notes\">");
    for line in words.lines().iter().filter(|line| small(&line.about)) {
        let _ = write!(html, "<li>{}</li>", line.text);
    }
    html + "</ul>"
}

/// Appends the verdict, a rewrite and the picture. `buttons` makes causes buttons, for pages whose script shows their
/// stacks.
pub(super) fn push_account(words: &ExplanationText, buttons: bool, html: &mut String) {
    if let Some(verdict) = words.verdict() {
        let _ = write!(html, "<p class=\"verdict\">{verdict}</p>");
    }
    if let Some(rewrite) = &words.e.rewrite {
        let _ = write!(html, "<p>{}</p>", words.rewrite(rewrite));
    }
    Waterfall::new(words, buttons).draw(html);
}

/// Returns the best candidate of an inconclusive explanation, or without a candidate the first suspect. The page can
/// show its stacks. Returns `None` for any other verdict.
pub fn nearest_cause(e: &Explanation) -> Option<&Cause> {
    let nearest = e.candidate.as_ref().map(|c| &c.cause).or_else(|| e.suspects.first());
    nearest.filter(|_| e.verdict == Verdict::Inconclusive)
}

/// The account as rows; each bar starts where the bar above it ends.
struct Waterfall<'a> {
    words: &'a ExplanationText<'a>,
    buttons: bool,
    /// The value at the left end of the axis, and the width of the axis, in the unit of the totals.
    from: f64,
    across: f64,
    /// The value at which the next bar starts.
    next: f64,
    /// The difference that percentages refer to; 0 if the parts cancel out.
    delta: f64,
}

impl<'a> Waterfall<'a> {
    fn new(words: &'a ExplanationText<'a>, buttons: bool) -> Waterfall<'a> {
        let (e, account) = (words.e, &words.e.account);
        let deltas = || {
            let causes = e.causes.iter().map(|cause| cause.delta);
            [account.work].into_iter().chain(causes).chain([account.consequences, account.rest])
        };
        let levels: Vec<f64> = deltas()
            .scan(e.total.0, |level, delta| {
                *level += delta;
                Some(*level)
            })
            .chain([e.total.0, e.total.1])
            .collect();
        let low = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let high = levels.iter().copied().fold(0.0, f64::max);
        // A change of a few percent would be invisible on an axis from zero.
        let from = match high - low {
            changed if changed > 0.0 && changed < MIN_CHANGED * high => low - changed / MIN_CHANGED * 0.5,
            _ => low.min(0.0),
        };
        let delta = if e.do_parts_cancel_out() { 0.0 } else { account.delta };
        Waterfall { words, buttons, from, across: (high - from).max(f64::MIN_POSITIVE), next: e.total.0, delta }
    }

    fn draw(mut self, html: &mut String) {
        let (words, e) = (self.words, self.words.e);
        let account = &e.account;
        let cut = if self.from > 0.0 {
            format!(" <span class=\"note\">bars begin at {}</span>", words.total(self.from))
        } else {
            String::new()
        };
        html.push_str("<ol class=\"account\">");
        let head = if self.delta == 0.0 { "" } else { "of the change" };
        self.whole(html, &format!("base <b>{}</b>{cut}", words.total(e.total.0)), head, e.total.0);
        if e.is_drawn(account.work) {
            let text = format!("{} times the work: {}", figure(e.scale.factor), words.amount(account.work));
            self.part(html, account.work, "work", &text);
        }
        let (first, more) = e.causes.split_at(e.causes.len().min(MAX_CAUSES));
        for (number, cause) in (0..).zip(first) {
            self.cause(html, number, cause);
        }
        if !more.is_empty() {
            let _ = write!(html, "<li class=\"others\"><details><summary>{} more</summary><ol>", more.len());
            for (number, cause) in (first.len()..).zip(more) {
                self.cause(html, number, cause);
            }
            html.push_str("</ol></details></li>");
        }
        if e.is_drawn(account.consequences) {
            let all = if e.is_all_consequences() { ", which is all that changed" } else { "" };
            let text = format!("GC, scheduling and locks: {}{all}", words.amount(account.consequences));
            self.part(html, account.consequences, "work", &text);
        }
        if e.is_drawn(account.rest) {
            let chance = match e.remainder() {
                Remainder::Unknown | Remainder::Unexplained => "without a known cause",
                Remainder::Noise => "within noise",
                Remainder::Real => "larger than noise",
                Remainder::Small => "small",
                Remainder::Rewritten => "in rewritten code",
            };
            let text = format!("remainder: {}, {chance}", words.amount(account.rest));
            // The best candidate is a part of the remainder.
            let begin = self.next;
            self.part(html, account.rest, "rest", &text);
            if let Some(cause) = nearest_cause(e) {
                let end = self.next;
                self.next = begin;
                self.candidate(html, e.causes.len(), cause);
                self.next = end;
            }
        } else if let Some(cause) = nearest_cause(e) {
            self.candidate(html, e.causes.len(), cause);
        }
        let p = account.p.filter(|_| !e.is_exact()).map_or_else(String::new, |p| format!(", {}", p_words(p)));
        let times = match e.total {
            (base, new) if base > 0.0 && new > 0.0 => format!("x{}", figure(new / base)),
            _ => String::new(),
        };
        let how = format!("{times}{p}");
        let how = how.trim_start_matches(", ");
        let change = match account.delta.abs() > 0.0 {
            true if how.is_empty() => format!(": total {}", words.amount(account.delta)),
            true => format!(": total {} ({how})", words.amount(account.delta)),
            false => String::new(),
        };
        self.whole(html, &format!("new <b>{}</b>{change}", words.total(e.total.1)), "", e.total.1);
        html.push_str("</ol>");
    }

    /// Returns a value's position in percent of the axis.
    fn x(&self, value: f64) -> f64 {
        (100.0 * (value - self.from) / self.across).clamp(0.0, 100.0)
    }

    /// Draws the bar of a side's total, from zero or from the left end of an axis that starts higher.
    fn whole(&self, html: &mut String, text: &str, head: &str, total: f64) {
        let (zero, end) = (self.x(0.0), self.x(total));
        let _ = write!(
            html,
            "<li class=\"whole\"><span class=\"what\">{text}</span><span class=\"part\">{head}</span>\
             <svg aria-hidden=\"true\"><rect x=\"{zero:.2}%\" width=\"{:.2}%\"/></svg></li>",
            (end - zero).max(0.2)
        );
    }

    /// Draws a part of the account other than a cause.
    fn part(&mut self, html: &mut String, delta: f64, class: &str, text: &str) {
        let _ = write!(html, "<li class=\"{class}\"><span class=\"what\">{text}</span>");
        self.bar(html, delta);
        html.push_str("</li>");
    }

    fn cause(&mut self, html: &mut String, number: usize, cause: &Cause) {
        let class = if cause.delta < 0.0 { "less" } else { "more" };
        let text = format!("{}. {}.", number + 1, self.words.cause(cause));
        let _ = write!(html, "<li class=\"{class}\">");
        self.button(html, number, cause, &text);
        self.bar(html, cause.delta);
        if !cause.parts.is_empty() && !is_replaced(cause) {
            let _ = write!(html, "<div class=\"note\">{}</div>", self.words.parts(&cause.parts));
        }
        html.push_str("</li>");
    }

    /// Draws the best candidate with its name and amount only, because the verdict already describes the candidate.
    fn candidate(&mut self, html: &mut String, number: usize, cause: &Cause) {
        let name = cause.function.as_deref().map_or_else(|| "everything".to_owned(), |f| self.words.markup.name(f));
        let text = format!("perhaps {name}: {}", self.words.amount(cause.delta));
        html.push_str("<li class=\"candidate\">");
        self.button(html, number, cause, &text);
        self.bar(html, cause.delta);
        html.push_str("</li>");
    }

    fn button(&self, html: &mut String, number: usize, cause: &Cause, text: &str) {
        // A label alone selects no frames, so there are no stacks to show.
        let _ = match self.buttons && cause.function.is_some() {
            true => write!(
                html,
                "<button type=\"button\" class=\"what\" title=\"{TITLE}\" data-cause=\"{number}\" aria-pressed=\"false\">{text}</button>"
            ),
            false => write!(html, "<span class=\"what\">{text}</span>"),
        };
    }

    /// Draws the bar of a part, with its percentage of the difference unless the parts cancel out. Moves the start of
    /// the next bar to the end of this bar.
    fn bar(&mut self, html: &mut String, delta: f64) {
        let (begin, end) = (self.x(self.next), self.x(self.next + delta));
        self.next += delta;
        let part = match delta / self.delta {
            part if self.delta == 0.0 || !part.is_finite() => String::new(),
            part => format!("{}{}", if part < 0.0 { "-" } else { "" }, percent(part)),
        };
        let _ = write!(
            html,
            "<span class=\"part\">{part}</span><svg aria-hidden=\"true\">\
             <line x1=\"{begin:.2}%\" x2=\"{begin:.2}%\" y1=\"0\" y2=\"50%\"/>\
             <line x1=\"{end:.2}%\" x2=\"{end:.2}%\" y1=\"50%\" y2=\"100%\"/>\
             <rect x=\"{:.2}%\" width=\"{:.2}%\"/></svg>",
            begin.min(end),
            (end - begin).abs().max(0.2)
        );
    }
}
