//! Texts for language models: shortens reports to a token budget.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

#[cfg(feature = "check")]
use crate::check::select_findings;
use crate::explain::{explain_head, lines_to_cut};
use crate::format::{Format, text};
use crate::numbers::{CostFormat, counted, signed};
use crate::ranking::{MAX_ROWS, tables};
use crate::report::Report;
use crate::shows::Form;
use crate::style::Style;
use crate::table::{LimitUnit, Table};
use crate::text::sample_type;
use crate::tokens::tokens;
use pprofdiff::Pair;
#[cfg(feature = "check")]
use pprofdiff::check::Finding;
use pprofdiff::list::Listing;
use pprofdiff::random::{HashMap, HashSet};
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::text::sanitize;

/// The smallest budget that users can set, in tokens. The total and the number of omitted rows usually fit in it.
pub const MIN_BUDGET: usize = 50;

/// The advice for agents, whose tools have an argument `budget`.
const ASK_AGAIN: &str = "ask with a larger budget";

/// A budget for a text.
#[derive(Debug, Clone, Copy)]
pub struct TokenBudget<'a> {
    /// The maximum number of tokens, as [`tokens`] counts them.
    pub tokens: usize,
    /// How a reader gets the omitted parts, as the end of a line such as `12 frames more: ask with a larger budget`.
    pub advice: &'a str,
    /// The possible endings of the text, from the shortest to the longest. Each must have at least as many lines as its
    /// predecessor. The full text gets the longest ending.
    pub endings: &'a [String],
}

/// Returns a text within a token budget: the whole text if it fits, otherwise its first lines, followed by the number
/// of omitted lines. If even the first line does not fit with that number, returns the line's beginning and `...`. The
/// result is empty if the budget is too small for any of this.
pub fn text_head(text: &str, budget: usize) -> String {
    if tokens(text) <= budget {
        return text.to_owned();
    }
    head_of(text, text.lines().count(), budget, &|n| left_out(n, "line", ASK_AGAIN))
}

/// Returns the beginning of a text that does not fit completely, like [`text_head`]. `all` is the number of lines from
/// which omitted lines are counted; it may exceed the number of lines in `text`. `left_out` formats this number.
fn head_of(text: &str, all: usize, budget: usize, left_out: &dyn Fn(usize) -> String) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let head = |n: usize| {
        let kept: String = lines[..n].iter().flat_map(|line| [line, "\n"]).collect();
        kept + &left_out(all.saturating_sub(n))
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
fn left_out(n: usize, noun: &str, advice: &str) -> String {
    if n == 0 { String::new() } else { format!("{} more: {advice}\n", counted(n, noun)) }
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
        sort_by_key(&mut additions, |(after, _)| *after);
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
const BRIEF: Style = Style { color: false, quote_formulas: false, brief: true, width: None };

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

impl Format {
    /// Writes a report, and shortens it if there is a budget. Only text and Markdown can be shortened, see
    /// [`Format::check_budget`].
    ///
    /// # Errors
    /// Fails if `out` fails or the format can't show the report.
    pub fn write_within(
        &self,
        report: &Report,
        out: &mut dyn Write,
        style: Style,
        budget: Option<&TokenBudget<'_>>,
    ) -> io::Result<()> {
        match budget {
            Some(budget) => out.write_all(report.within(self, budget)?.as_bytes()),
            None => (self.write)(report, out, style),
        }
    }
}

impl Report {
    /// Writes the report as text for an agent, like [`Report::within`].
    ///
    /// # Errors
    /// Fails if the report cannot be written as text.
    pub fn text_within(&self, tokens: usize, endings: &[String]) -> io::Result<String> {
        self.within(&text::FORMAT, &TokenBudget { tokens, advice: ASK_AGAIN, endings })
    }

    /// Writes the report as text or Markdown with one of the endings, in at most the budget's tokens. Omits and counts
    /// the parts that do not fit: rows and findings from the end; for a single frame or function, its cheapest callers,
    /// callees or lines. An explanation loses its least important lines. A small budget also omits the names of the
    /// inputs, growth and share from text, and may omit the ending. The text has no colours.
    ///
    /// A larger budget never shows fewer lines, apart from the empty lines of Markdown. Lines are whole, unless not even
    /// the first line fits: then the text is the beginning of this line and `...`.
    ///
    /// # Errors
    /// Fails if the format cannot show the report.
    pub fn within(&self, format: &Format, budget: &TokenBudget<'_>) -> io::Result<String> {
        let (writer, endings) = (Writer { format, advice: budget.advice }, budget.endings);
        let budget = budget.tokens;
        let whole = writer.text(self, Style::default())?;
        let longest = endings.last().map_or("", String::as_str);
        if tokens(&whole) + tokens(longest) <= budget {
            return Ok(whole + longest);
        }
        let steps = TruncationSteps::new(self.cut(writer, &whole)?, endings)?;
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
        let budget = if endings.is_empty() { budget } else { budget - budget / ENDING_SHARE };
        Ok(head_of(&first, whole.lines().count(), budget, &|n| writer.left_out(n, "line")) + ending)
    }

    /// Prepares the report for truncation. `whole` is the full text. A text with more parts never has fewer lines.
    fn cut<'a>(&'a self, writer: Writer<'a>, whole: &str) -> io::Result<ReportParts<'a>> {
        let is_text = writer.format.form == Form::Text;
        Ok(match self {
            // First add the callers and callees of the first frame one by one, then add whole frames.
            Report::Table(table) if table.kind.limit_unit == LimitUnit::Nodes => {
                let (nodes, first) = (table.nodes.shown.len(), table.head(1));
                let edges = first.most_edges();
                let text = move |parts: usize, style: Style| match parts.checked_sub(edges) {
                    None => {
                        let shorter = first.strongest_edges(parts);
                        let left = first.len() - shorter.len();
                        writer.part(&Report::Table(shorter), style, left, "edge")
                    }
                    Some(more) => {
                        let left = nodes.saturating_sub(more + 1);
                        writer.part(&Report::Table(table.head(more + 1)), style, left, "frame")
                    }
                };
                let cut = ReportParts { parts: edges + nodes.saturating_sub(1), worth: 1, text: Box::new(text) };
                with_first_line(writer, table, table.head(1).len(), "edge", cut)
            }
            Report::Table(table) => {
                let left = table.rows_total.saturating_sub(1);
                with_first_line(writer, table, left, table.kind.row, rows(writer, Cow::Borrowed(table)))
            }
            // Text shows traces as stacks of lines, and Markdown as rows.
            Report::Stacks(stacks, max_rows) => rows(writer, Cow::Owned(Table::stacks(stacks, *max_rows))),
            Report::Traces(table) if !is_text => rows(writer, Cow::Borrowed(table)),
            // First add the lines of the first function one by one, then add whole functions.
            Report::Listing(listing) => {
                let (functions, first) = (listing.routines.len(), listing.clone().head(1));
                let lines = first.routines.iter().map(|r| r.lines.len() + r.instructions.len()).sum();
                let text = move |parts: usize, style: Style| match parts.checked_sub(lines) {
                    None => {
                        let shorter = dearest_lines(&first, parts);
                        let kept: usize = shorter.routines.iter().map(|r| r.lines.len() + r.instructions.len()).sum();
                        writer.part(&Report::Listing(shorter), style, lines - kept, "line")
                    }
                    Some(more) => {
                        let left = functions.saturating_sub(more + 1);
                        writer.part(&Report::Listing(listing.clone().head(more + 1)), style, left, "function")
                    }
                };
                ReportParts { parts: lines + functions.saturating_sub(1), worth: 3, text: Box::new(text) }
            }
            #[cfg(feature = "check")]
            Report::Check(check) => {
                let shortened = move |findings: usize| {
                    let (mut shorter, mut left) = (check.clone(), 0);
                    for rule in &mut shorter.rules {
                        // The values of a rule on one subject are as short as the rule.
                        let findings = if rule.is_of_each { findings } else { findings.max(1) };
                        left += rule.findings.len().saturating_sub(findings);
                        // The findings that text shows one by one come first.
                        let places: HashMap<*const Finding, usize> =
                            select_findings(rule).0.into_iter().map(std::ptr::from_ref).zip(0..).collect();
                        let mut order: Vec<usize> = (0..rule.findings.len()).collect();
                        let place = |&i: &usize| places.get(&std::ptr::from_ref(&rule.findings[i])).copied();
                        sort_by_key(&mut order, |i| place(i).unwrap_or(usize::MAX));
                        rule.findings = order.iter().take(findings).map(|&i| rule.findings[i].clone()).collect();
                    }
                    // The failed rules come first, and stay in a small budget.
                    sort_by_key(&mut shorter.rules, |rule| Reverse(rule.outcome));
                    (Report::Check(shorter), left)
                };
                // The text for people lists few findings, and summarizes the others in one line. With a further line
                // for omitted findings, a truncated text could have more lines than the full text.
                let (findings, all) = (check.rules.iter().map(|rule| rule.findings.len()).max(), whole.lines().count());
                let lacks_lines = |n| {
                    let text = writer.text(&shortened(n).0, Style::default());
                    text.is_ok_and(|text| text.lines().count() < all)
                };
                let parts = if lacks_lines(0) { largest_fitting(findings.unwrap_or(0), lacks_lines) + 1 } else { 0 };
                let text = move |findings: usize, style: Style| {
                    let is_shortened = findings < parts;
                    let (shorter, left) = shortened(if is_shortened { findings } else { usize::MAX });
                    let text = writer.text(&shorter, style)?;
                    let text = if is_text { verdict_first(&text, check.summary.warnings.len()) } else { text };
                    Ok(text + &writer.left_out(left, "finding"))
                };
                ReportParts { parts, worth: 2, text: Box::new(text) }
            }
            Report::Explain(explanation) => {
                let all = whole.lines().filter(|line| !line.is_empty()).count();
                let text = move |parts: usize, _: Style| {
                    let text = explain_head(explanation, parts, is_text);
                    let left = all.saturating_sub(text.lines().filter(|line| !line.is_empty()).count());
                    Ok(text + &writer.left_out(left, "line"))
                };
                ReportParts { parts: lines_to_cut(explanation), worth: 0, text: Box::new(text) }
            }
            Report::Ranking(ranking) => {
                let max_rows = ranking.rows.unwrap_or(MAX_ROWS);
                let lengths = move |max_rows| tables(ranking, max_rows).iter().map(|(_, table)| table.len()).sum();
                let longest = tables(ranking, max_rows).iter().map(|(_, table)| table.len()).max();
                let all: usize = lengths(max_rows);
                let text = move |rows: usize, style: Style| {
                    let (mut shorter, kept) = (ranking.clone(), lengths(rows));
                    shorter.rows = Some(rows);
                    writer.part(&Report::Ranking(shorter), style, all - kept, "row")
                };
                ReportParts { parts: longest.unwrap_or(0), worth: 0, text: Box::new(text) }
            }
            _ => {
                let lines: Vec<String> = whole.lines().map(|line| format!("{line}\n")).collect();
                let last = lines.len().saturating_sub(1);
                let text = move |parts: usize, _: Style| {
                    let shown = (parts + 1).min(lines.len());
                    Ok(lines[..shown].concat() + &writer.left_out(lines.len() - shown, "line"))
                };
                ReportParts { parts: last, worth: 0, text: Box::new(text) }
            }
        })
    }
}

/// Moves the verdict of a check to the first line, and the warnings to the end. The text begins with the warnings and
/// ends with the verdict. A truncated text loses its last lines.
#[cfg(feature = "check")]
fn verdict_first(text: &str, warnings: usize) -> String {
    let (before, verdict) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let lines: Vec<&str> = before.lines().collect();
    let (warnings, rules) = lines.split_at(warnings.min(lines.len()));
    [verdict].iter().chain(rules).chain(warnings).flat_map(|line| [line, "\n"]).collect()
}

/// Writes reports and the numbers of their omitted parts.
#[derive(Clone, Copy)]
struct Writer<'a> {
    format: &'a Format,
    advice: &'a str,
}

impl Writer<'_> {
    fn text(self, report: &Report, style: Style) -> io::Result<String> {
        let mut out = Vec::new();
        self.format.write(report, &mut out, style)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Formats the number of omitted parts. In Markdown, it is a paragraph of its own.
    fn left_out(self, n: usize, noun: &str) -> String {
        match left_out(n, noun, self.advice) {
            line if line.is_empty() || self.format.form == Form::Text => line,
            line => format!("\n{line}"),
        }
    }

    /// Writes a shortened report.
    fn part(self, report: &Report, style: Style, left: usize, noun: &str) -> io::Result<String> {
        Ok(self.text(report, style)? + &self.left_out(left, noun))
    }
}

/// Adds a step before the first row of a table: one line with the row's frame and its cost. Lines about the query and
/// warnings come with the first row of the table, and until then only their number is given. `left` is the number of
/// parts, called `noun`, that the line does not show.
fn with_first_line<'a>(
    writer: Writer<'a>,
    table: &'a Table,
    left: usize,
    noun: &'static str,
    cut: ReportParts<'a>,
) -> ReportParts<'a> {
    let is_one_text = writer.format.form == Form::Text && table.beside.is_empty() && table.builds.is_none();
    let Some(line) = first_line(table).filter(|_| is_one_text && cut.parts > 0) else { return cut };
    let warnings = match table.summary.warnings.len() {
        0 => String::new(),
        n => format!(" and {}", counted(n, "warning")),
    };
    let text = move |parts: usize, style: Style| {
        let (line, left) = match parts {
            0 => ("", if noun == "edge" { left } else { left + 1 }),
            1 => (line.as_str(), left),
            _ => return (cut.text)(parts - 1, style),
        };
        let mut out = Vec::new();
        sample_type(&mut out, &table.summary)?;
        let total = String::from_utf8_lossy(&out).into_owned();
        let more = match (left, warnings.is_empty()) {
            (0, true) => String::new(),
            (left, _) => format!("{}{warnings} more: {}\n", counted(left, noun), writer.advice),
        };
        Ok(format!("{total}{line}{more}"))
    };
    ReportParts { parts: cut.parts + 1, worth: cut.worth + 1, text: Box::new(text) }
}

/// Returns the frame and the cost of the first row, or of the first node of callers and callees, as one line:
/// `main.parse: 20ms -> 440ms  +420ms`.
fn first_line(table: &Table) -> Option<String> {
    let (label, cost, pair) = match table.kind.limit_unit {
        LimitUnit::Nodes => {
            let number = *table.nodes.shown.first()? as usize;
            let pair = table.nodes.all.get(number)?.cum;
            let cost = CostFormat::new(&table.summary, std::iter::once(pair));
            (table.nodes.labels.get(number)?.to_owned(), cost, pair)
        }
        _ => {
            let costs = table.lead_costs().into_iter().next().filter(|_| !table.is_empty())?;
            let pair = costs.pair(0);
            (table.label(0).to_owned(), CostFormat::new(&table.summary, std::iter::once(pair)), pair)
        }
    };
    // The rows of some tables, such as labels and stacks, have more than one text.
    if label.is_empty() {
        return None;
    }
    let value = match table.summary.base {
        Some(_) => {
            let [base, new] = [pair.base, pair.new].map(|value| cost.sides.format(value));
            format!("{base} -> {new}  {}", signed(pair.delta(), cost.delta))
        }
        None => cost.sides.format(pair.new),
    };
    Some(format!("{}: {value}\n", sanitize(&label)))
}

/// Prepares a table for truncation by rows.
fn rows<'a>(writer: Writer<'a>, table: Cow<'a, Table>) -> ReportParts<'a> {
    let all = table.len();
    let text = move |parts: usize, style: Style| {
        let mut shorter = table.head(parts);
        let left = if shorter.len() < all { table.rows_total - shorter.len() } else { 0 };
        // Markdown counts the rows in a line below the table. The line about the omitted rows takes its place.
        if left > 0 && writer.format.form == Form::Prose {
            shorter.rows_total = shorter.len();
        }
        writer.part(&Report::Table(shorter), style, left, table.kind.row)
    };
    ReportParts { parts: all, worth: 4, text: Box::new(text) }
}

/// The texts of many pairs within a budget: the first pairs that fit as a whole. Each step adds a pair or selects a
/// longer ending, and the text ends at the first step that does not fit. A larger budget therefore never shows less.
#[derive(Debug)]
pub struct PairsText<'a> {
    tokens: usize,
    advice: &'a str,
    endings: Vec<String>,
    text: String,
    shown: usize,
    /// The number of the ending.
    ending: usize,
    is_full: bool,
    /// The whole text, once a pair did not fit.
    shortened: Option<Shortened>,
}

#[derive(Debug)]
struct Shortened {
    /// The pairs that fit, or else the beginning of the first pair.
    pairs: String,
    ending: String,
}

/// Tokens reserved for the line that reports the number of pairs shown.
const ROOM_FOR_COUNT: usize = 40;

impl<'a> PairsText<'a> {
    /// Creates an empty text.
    pub fn new(tokens: usize, advice: &'a str) -> PairsText<'a> {
        PairsText {
            tokens,
            advice,
            endings: Vec::new(),
            text: String::new(),
            shown: 0,
            ending: 0,
            is_full: false,
            shortened: None,
        }
    }

    /// Creates an empty text for an agent.
    pub fn for_agent(tokens: usize) -> PairsText<'static> {
        PairsText::new(tokens, ASK_AGAIN)
    }

    /// Returns true if the text has endings.
    pub fn has_endings(&self) -> bool {
        !self.endings.is_empty()
    }

    /// Sets the possible endings, like [`TokenBudget::endings`].
    pub fn set_endings(&mut self, endings: Vec<String>) {
        self.endings = endings;
    }

    fn size(&self, ending: usize) -> usize {
        tokens(&self.text) + self.endings.get(ending).map_or(0, |ending| tokens(ending))
    }

    /// Adds the text of the next pair. Returns false if this pair or an earlier one does not fit.
    pub fn push(&mut self, pair: &str) -> bool {
        if self.shortened.is_some() {
            return false;
        }
        if self.is_full || self.size(self.ending) + tokens(pair) + ROOM_FOR_COUNT > self.tokens {
            self.shortened = Some(match self.shown {
                0 => {
                    let room = if self.endings.is_empty() { 0 } else { self.tokens / 4 };
                    let ending = self.endings.iter().rfind(|ending| tokens(ending) <= room);
                    let least = self.tokens.saturating_sub(room + ROOM_FOR_COUNT);
                    let all = pair.lines().count();
                    let pairs = head_of(pair, all, least, &|n| left_out(n, "line", self.advice));
                    Shortened { pairs, ending: ending.cloned().unwrap_or_default() }
                }
                _ => {
                    let ending = self.endings.get(self.ending).cloned().unwrap_or_default();
                    Shortened { pairs: std::mem::take(&mut self.text), ending }
                }
            });
            return false;
        }
        self.text.push_str(pair);
        self.shown += 1;
        while !self.is_full
            && self.endings.get(self.ending + 1).is_some_and(|longer| tokens(longer) <= tokens(&self.text) / 3)
        {
            self.is_full = self.size(self.ending + 1) + ROOM_FOR_COUNT > self.tokens;
            self.ending += usize::from(!self.is_full);
        }
        true
    }

    /// Returns the text. `count` is the number of pairs, if it is known.
    pub fn finish(self, count: Option<u64>) -> String {
        match self.shortened {
            Some(Shortened { pairs, ending }) => {
                let all = count.map_or_else(String::new, |count| format!(" of {count}"));
                format!("{pairs}{}{all} pairs are shown; {}\n{ending}", self.shown, self.advice)
            }
            None => {
                let ending = self.endings.iter().rfind(|ending| tokens(&self.text) + tokens(ending) <= self.tokens);
                self.text + ending.map_or("", String::as_str)
            }
        }
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
    sort_by_key(&mut order, |&i| (Reverse(weight(&all[i])), i));
    order.truncate(n);
    let kept: HashSet<usize> = order.into_iter().collect();
    let mut i = 0..;
    all.retain(|_| i.next().is_some_and(|i| kept.contains(&i)));
}

#[cfg(test)]
mod tests;
