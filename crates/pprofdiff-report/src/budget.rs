//! Texts for language models: shortens reports to a token budget.

use std::cmp::Reverse;
use std::io;

use crate::explain::{explain_head, lines_to_cut};
use crate::format::text::FORMAT;
use crate::numbers::counted;
use crate::report::Report;
use crate::style::Style;
use crate::table::{LimitUnit, Table};
use crate::tokens::tokens;
use pprofdiff::Pair;
use pprofdiff::list::Listing;
use pprofdiff::random::{HashMap, HashSet};

/// Returns a text within a token budget: the whole text if it fits, otherwise its first lines, followed by the number
/// of omitted lines. If even the first line does not fit with that number, returns the line's beginning and `...`. The
/// result is empty if the budget is too small for any of this.
pub fn text_head(text: &str, budget: usize) -> String {
    if tokens(text) <= budget {
        return text.to_owned();
    }
    head_of(text, text.lines().count(), budget)
}

/// Returns the beginning of a text that does not fit completely, like [`text_head`]. `all` is the number of lines from
/// which omitted lines are counted; it may exceed the number of lines in `text`.
fn head_of(text: &str, all: usize, budget: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let head = |n: usize| {
        let kept: String = lines[..n].iter().flat_map(|line| [line, "\n"]).collect();
        kept + &left_out(all.saturating_sub(n), "line")
    };
    let whole = largest_fitting(lines.len().saturating_sub(1), |n| tokens(&head(n)) <= budget);
    if whole > 0 {
        return head(whole);
    }
    let line: Vec<char> = lines.first().map_or_else(Vec::new, |line| line.chars().collect());
    let line_head = |n: usize| line[..n].iter().collect::<String>() + "...\n";
    // A name can be a megabyte, so limit the search: `tokens` counts at least one token per 64 characters.
    let part = largest_fitting(line.len().min(budget.saturating_mul(64)), |n| tokens(&line_head(n)) <= budget);
    if part > 0 { line_head(part) } else { String::new() }
}

/// Formats a line with the number of omitted parts. Empty if nothing was omitted.
fn left_out(n: usize, noun: &str) -> String {
    if n == 0 { String::new() } else { format!("{} more: ask with a larger budget\n", counted(n, noun)) }
}

/// Returns the largest number from 1 to `limit` for which `fits` is true, or 0 if there is none. If `fits` is true for
/// a number, it must be true for all smaller numbers, because the search is a bisection.
fn largest_fitting(limit: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, limit);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// A report that can be cut to a number of parts. A part is a row, frame, edge, function, line or finding, depending on
/// the report. Cuts keep the most important parts, or the first lines if the report has no order of importance.
struct ReportParts<'a> {
    /// The number of parts in the full report.
    parts: usize,
    /// The minimum number of parts to show before the budget is spent on a header with the names of the inputs.
    worth: usize,
    /// Formats the given number of parts in the given style, and the number of omitted parts.
    text: Box<dyn Fn(usize, Style) -> io::Result<String> + 'a>,
}

/// All texts of a report, from the shortest to the full text. Each step adds one thing: a part, a longer ending, or the
/// header with the names of the inputs. The order of the steps depends only on the report. A larger budget therefore
/// reaches the same step or a later step, whose text has no fewer lines.
struct TruncationSteps<'a> {
    cut: ReportParts<'a>,
    endings: &'a [String],
    /// Additions other than parts, each with the number of parts that precede it, in ascending order.
    additions: Vec<(usize, Addition)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Addition {
    /// The next longer ending.
    Ending,
    /// The names of the inputs, and the meaning of the columns.
    Header,
}

/// An ending takes at most one third of a truncated answer.
const ENDING_SHARE: usize = 3;

impl<'a> TruncationSteps<'a> {
    fn new(cut: ReportParts<'a>, endings: &'a [String]) -> io::Result<TruncationSteps<'a>> {
        let brief = |parts: usize| Ok::<_, io::Error>(tokens(&(cut.text)(parts, BRIEF)?));
        let mut additions = Vec::new();
        let mut after = 0;
        for ending in endings.iter().skip(1) {
            let least = tokens(ending).saturating_mul(ENDING_SHARE - 1);
            after = first_from(after, cut.parts, |parts| Ok(brief(parts)? >= least))?;
            additions.push((after, Addition::Ending));
        }
        // The header appears once it at most doubles the answer. Until then, parts are a better use of the budget.
        let is_worth = |parts| Ok(tokens(&(cut.text)(parts, Style::default())?) <= brief(parts)?.saturating_mul(2));
        after = first_from(cut.worth.min(cut.parts), cut.parts, is_worth)?;
        additions.push((after, Addition::Header));
        additions.sort_by_key(|(after, _)| *after);
        Ok(TruncationSteps { cut, endings, additions })
    }

    /// Returns the number of the last step, whose text is the full report with the longest ending and the header.
    fn last(&self) -> usize {
        self.cut.parts + self.additions.len()
    }

    /// Returns the text after the given number of steps.
    fn text(&self, steps: usize) -> io::Result<String> {
        let added = self.additions.iter().enumerate().take_while(|(before, (after, _))| after + before < steps);
        let added: Vec<Addition> = added.map(|(_, (_, addition))| *addition).collect();
        let style = if added.contains(&Addition::Header) { Style::default() } else { BRIEF };
        let text = (self.cut.text)(steps - added.len(), style)?;
        let ending = added.iter().filter(|addition| **addition == Addition::Ending).count();
        Ok(text + self.endings.get(ending).map_or("", String::as_str))
    }

    /// Returns the text of the step that a fixed search reaches within the budget, or [`None`] if not even the first
    /// text fits. The search tries to advance by powers of two, largest first, and skips an advance whose text does not
    /// fit. The powers after a skipped one are smaller than it in total, so a larger budget never ends at an earlier
    /// step. A search for the last step that fits would not guarantee more lines, because column widths and units can
    /// make a later text shorter.
    fn within(&self, budget: usize) -> io::Result<Option<String>> {
        let (mut steps, mut text) = (0, self.text(0)?);
        if tokens(&text) > budget {
            return Ok(None);
        }
        for stride in (0..usize::BITS - 1).rev().map(|bit| 1 << bit) {
            if stride > self.last() - steps {
                continue;
            }
            let longer = self.text(steps + stride)?;
            if tokens(&longer) <= budget {
                (steps, text) = (steps + stride, longer);
            }
        }
        Ok(Some(text))
    }
}

/// The style of truncated texts before the step that adds the header.
const BRIEF: Style = Style { color: false, quote_formulas: false, budget: None, brief: true, width: None };

/// Returns the first number from `from` on, and below `last`, for which `is_so` is true, or `last` if there is none.
/// `is_so` must stay true once it is true. It renders a text per call, so few numbers are tried: first in growing
/// strides, then by bisection.
fn first_from(from: usize, last: usize, is_so: impl Fn(usize) -> io::Result<bool>) -> io::Result<usize> {
    let (mut low, mut high, mut stride) = (from, from, 1);
    while high < last && !is_so(high)? {
        (low, high) = (high + 1, last.min(high + stride));
        stride *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(high)
}

impl Report {
    /// Writes the report as text with one of the `endings`, in at most `budget` tokens. Omits and counts the parts that
    /// do not fit: rows and findings from the end; for a single frame or function, its cheapest callers, callees or
    /// lines. An explanation loses its least important lines. A small budget also omits the names of the inputs, growth
    /// and share, and may omit the ending.
    ///
    /// The endings must be sorted from the shortest to the longest, and each must have at least as many lines as its
    /// predecessor. The full report gets the longest ending.
    ///
    /// A larger budget never shows fewer lines.
    ///
    /// # Errors
    /// Fails if the report cannot be written as text.
    pub fn text_within(&self, budget: usize, endings: &[String]) -> io::Result<String> {
        let whole = self.text(Style::default())?;
        let longest = endings.last().map_or("", String::as_str);
        if tokens(&whole) + tokens(longest) <= budget {
            return Ok(whole + longest);
        }
        let steps = TruncationSteps::new(self.cut(&whole)?, endings)?;
        if let Some(text) = steps.within(budget)? {
            return Ok(text);
        }
        // Not even the text without any part fits. The fallback must not have more lines than that text, so that a
        // larger budget never shows fewer lines. It therefore only uses endings with as few lines as the shortest.
        let lines = |ending: &String| ending.lines().count();
        let fallback_endings = endings.iter().take_while(|ending| lines(ending) == endings.first().map_or(0, lines));
        let ending =
            fallback_endings.filter(|ending| tokens(ending) <= budget / ENDING_SHARE).last().map_or("", String::as_str);
        let first = (steps.cut.text)(0, BRIEF)?;
        #[cfg(feature = "check")]
        let first = match (self, first.trim_end().rsplit_once('\n')) {
            // The verdict is the last line of a check, but the first line of a truncated check.
            (Report::Check(_), Some((before, verdict))) => format!("{verdict}\n{before}\n"),
            _ => first,
        };
        Ok(head_of(&first, whole.lines().count(), budget - budget / ENDING_SHARE) + ending)
    }

    /// Prepares the report for truncation. `whole` is the full text. A text with more parts never has fewer lines.
    fn cut(&self, whole: &str) -> io::Result<ReportParts<'_>> {
        let parts_of = |report: Report, style: Style, left: usize, noun: &str| {
            Ok::<_, io::Error>(report.text(style)? + &left_out(left, noun))
        };
        Ok(match self {
            // First add the callers and callees of the first frame one by one, then add whole frames.
            Report::Table(table) if table.kind.limit_unit == LimitUnit::Nodes => {
                let (nodes, first) = (table.nodes.shown.len(), table.head(1));
                let edges = first.most_edges();
                let text = move |parts: usize, style: Style| match parts.checked_sub(edges) {
                    None => {
                        let shorter = first.strongest_edges(parts);
                        let left = first.len() - shorter.len();
                        parts_of(Report::Table(shorter), style, left, "edge")
                    }
                    Some(more) => {
                        let left = nodes.saturating_sub(more + 1);
                        parts_of(Report::Table(table.head(more + 1)), style, left, "frame")
                    }
                };
                ReportParts { parts: edges + nodes.saturating_sub(1), worth: 1, text: Box::new(text) }
            }
            Report::Table(table) => {
                let all = table.len();
                let text = move |parts: usize, style: Style| {
                    let shorter = table.head(parts);
                    let left = if shorter.len() < all { table.rows_total - shorter.len() } else { 0 };
                    parts_of(Report::Table(shorter), style, left, table.kind.row)
                };
                ReportParts { parts: all, worth: 4, text: Box::new(text) }
            }
            // First add the lines of the first function one by one, then add whole functions.
            Report::Listing(listing) => {
                let (functions, first) = (listing.routines.len(), listing.clone().head(1));
                let lines = first.routines.iter().map(|r| r.lines.len() + r.instructions.len()).sum();
                let text = move |parts: usize, style: Style| match parts.checked_sub(lines) {
                    None => {
                        let shorter = dearest_lines(&first, parts);
                        let kept: usize = shorter.routines.iter().map(|r| r.lines.len() + r.instructions.len()).sum();
                        parts_of(Report::Listing(shorter), style, lines - kept, "line")
                    }
                    Some(more) => {
                        let left = functions.saturating_sub(more + 1);
                        parts_of(Report::Listing(listing.clone().head(more + 1)), style, left, "function")
                    }
                };
                ReportParts { parts: lines + functions.saturating_sub(1), worth: 3, text: Box::new(text) }
            }
            #[cfg(feature = "check")]
            Report::Check(check) => {
                let shortened = move |findings: usize| {
                    let (mut shorter, mut left) = (check.clone(), 0);
                    for rule in &mut shorter.rules {
                        left += rule.findings.len().saturating_sub(findings);
                        rule.findings.truncate(findings);
                    }
                    (Report::Check(shorter), left)
                };
                // The text for people lists few findings, and summarizes the others in one line. With a further line
                // for omitted findings, a truncated text could have more lines than the full text.
                let (findings, all) = (check.rules.iter().map(|rule| rule.findings.len()).max(), whole.lines().count());
                let lacks_lines =
                    |n| shortened(n).0.text(Style::default()).is_ok_and(|text| text.lines().count() < all);
                let parts = if lacks_lines(0) { largest_fitting(findings.unwrap_or(0), lacks_lines) + 1 } else { 0 };
                let text = move |findings: usize, style: Style| match findings < parts {
                    true => {
                        let (shorter, left) = shortened(findings);
                        parts_of(shorter, style, left, "finding")
                    }
                    false => self.text(style),
                };
                ReportParts { parts, worth: 0, text: Box::new(text) }
            }
            Report::Explain(explanation) => {
                let all = whole.lines().count();
                let text = move |parts: usize, _: Style| {
                    let text = explain_head(explanation, parts);
                    let left = all.saturating_sub(text.lines().count());
                    Ok(text + &left_out(left, "line"))
                };
                ReportParts { parts: lines_to_cut(explanation), worth: 0, text: Box::new(text) }
            }
            _ => {
                let lines: Vec<String> = whole.lines().map(|line| format!("{line}\n")).collect();
                let last = lines.len().saturating_sub(1);
                let text = move |parts: usize, _: Style| {
                    let shown = (parts + 1).min(lines.len());
                    Ok(lines[..shown].concat() + &left_out(lines.len() - shown, "line"))
                };
                ReportParts { parts: last, worth: 0, text: Box::new(text) }
            }
        })
    }

    fn text(&self, style: Style) -> io::Result<String> {
        let mut out = Vec::new();
        (FORMAT.write)(self, &mut out, style)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

impl Table {
    /// Returns the number of callers or of callees of one node, whichever is larger.
    fn most_edges(&self) -> usize {
        let callers = self
            .texts("relation")
            .map_or(0, |relations| (0..self.len()).filter(|&row| relations.get(row) == Some("caller")).count());
        callers.max(self.len() - callers)
    }

    /// Returns the first `n` callers and the first `n` callees of one node. The table must contain no other nodes.
    fn strongest_edges(&self, n: usize) -> Table {
        let relations = self.texts("relation");
        let mut counts: HashMap<Option<&str>, usize> = HashMap::default();
        let mut within = |row: usize| {
            let count = counts.entry(relations.and_then(|r| r.get(row))).or_default();
            *count += 1;
            *count <= n
        };
        let rows: Vec<usize> = (0..self.len()).filter(|&row| within(row)).collect();
        let mut shorter = self.take(&rows);
        shorter.nodes.shown.clone_from(&self.nodes.shown);
        shorter
    }
}

/// Returns the first function with up to `n` lines and up to `n` instructions, in their order. Keeps those with the
/// largest change of cum cost, or in a single profile with the largest cum cost. Flat cost breaks ties.
fn dearest_lines(listing: &Listing, n: usize) -> Listing {
    let mut shorter = listing.clone().head(1);
    let weight = |p: Pair| if listing.summary.base.is_some() { p.delta().unsigned_abs() } else { p.new.unsigned_abs() };
    for routine in &mut shorter.routines {
        dearest(&mut routine.lines, n, |l| (weight(l.cum), weight(l.flat)));
        dearest(&mut routine.instructions, n, |i| (weight(i.cum), weight(i.flat)));
    }
    shorter
}

/// Keeps the `n` items with the largest weight, in their order. The earlier of equal items is kept.
fn dearest<T>(all: &mut Vec<T>, n: usize, weight: impl Fn(&T) -> (u64, u64)) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&i| (Reverse(weight(&all[i])), i));
    order.truncate(n);
    let kept: HashSet<usize> = order.into_iter().collect();
    let mut i = 0..;
    all.retain(|_| i.next().is_some_and(|i| kept.contains(&i)));
}

#[cfg(test)]
mod tests;
