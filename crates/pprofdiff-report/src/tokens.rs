//! Text for language models: what it costs them, and reports that are shortened until they fit.

use std::cmp::Reverse;
use std::io;
use std::ops::RangeInclusive;

use crate::format::Style;
use crate::format::text::FORMAT;
use crate::numbers::counted;
use crate::report::Report;
use crate::table::{Counted, Table};
use pprofdiff::Pair;
use pprofdiff::list::Listing;
use pprofdiff::random::{HashMap, HashSet};

/// How many tokens of a language model a text is: more than any common one counts in tables, names and commands, and
/// without its vocabulary. Each digit, capital, sign and byte that is not ASCII is a token, and so are two small
/// letters, since names are not the words that vocabularies are made of: that holds for letters at random, too.
/// `tests/python/test_mcp.py` compares it with some.
pub fn tokens(text: &str) -> usize {
    let (mut rest, mut tokens) = (text.as_bytes(), 0);
    while let Some(&first) = rest.first() {
        let run = |is: fn(&u8) -> bool| rest.iter().take_while(|b| is(b)).count();
        let (length, cost) = match first {
            b'a'..=b'z' => {
                let letters = run(u8::is_ascii_lowercase);
                (letters, letters.div_ceil(2))
            }
            // Blanks are few tokens; the last one often goes by itself.
            b' ' | b'\t' | b'\n' => {
                let blanks = run(|b| matches!(b, b' ' | b'\t' | b'\n'));
                (blanks, blanks.div_ceil(32) + usize::from(blanks > 1))
            }
            _ => (1, 1),
        };
        tokens += cost;
        rest = &rest[length..];
    }
    tokens
}

/// The beginning of a text, of so many tokens at most: whole lines, after which it says how many there are more. Of a
/// first line that is too long the beginning.
pub fn text_head(text: &str, budget: usize) -> String {
    if tokens(text) <= budget {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let head = |n: usize| {
        let kept: String = lines[..n].iter().flat_map(|line| [line, "\n"]).collect();
        kept + &left_out(lines.len() - n, "line")
    };
    let whole = most(lines.len(), |n| tokens(&head(n)) <= budget);
    if whole > 0 {
        return head(whole);
    }
    let line: Vec<char> = lines.first().map_or_else(Vec::new, |line| line.chars().collect());
    let of = |n: usize| line[..n].iter().collect::<String>() + "...\n";
    // A name may be a megabyte; no token is longer than some bytes.
    let part = most(line.len().min(budget.saturating_mul(64)), |n| tokens(&of(n)) <= budget);
    if part > 0 { of(part) } else { String::new() }
}

/// What [`left_out`] takes of up to a million things.
const LEFT_OUT: usize = 40;

/// What is said of what there is no room for.
fn left_out(n: usize, what: &str) -> String {
    format!("{} more: ask with a larger budget\n", counted(n, what))
}

/// The largest number up to `most` that fits, if all smaller ones do; 0 if none does.
fn most(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

impl Report {
    /// The report as text of so many tokens at most. What there is no room for goes from the end and is counted there:
    /// rows and findings, and of one frame or function that is too long by itself the callers, callees or lines that
    /// cost least. Of an explanation the least important goes first. Where the names of the inputs would leave no room for
    /// rows, they go.
    ///
    /// # Errors
    /// A report that is no text.
    pub fn text_within(&self, budget: usize) -> io::Result<String> {
        let whole = self.text(Style::default())?;
        if tokens(&whole) <= budget {
            return Ok(whole);
        }
        // A way to shorten it to `n` parts, of so few to so many: what is left, and how much of what is left out. With fewer
        // parts than are worth it, more of them are better than the whole header.
        type Way<'a> = (RangeInclusive<usize>, usize, &'a str, Box<dyn Fn(usize) -> (Report, usize) + 'a>);
        let ways: Vec<Way> = match self {
            Report::Table(table) if table.kind.counted == Counted::Nodes => {
                let (nodes, first) = (table.nodes.shown.len(), table.head(1));
                let heads = move |n| (Report::Table(table.head(n)), nodes - n);
                let strongest = move |n| {
                    let shorter = first.strongest_edges(n);
                    let left = first.len() - shorter.len();
                    (Report::Table(shorter), left)
                };
                vec![(1..=nodes, 1, "frame", Box::new(heads)), (0..=table.len(), 1, "edge", Box::new(strongest))]
            }
            Report::Table(table) => {
                let head = |n| (Report::Table(table.head(n)), table.rows_total - n);
                vec![(1..=table.len(), 4, table.kind.row, Box::new(head))]
            }
            Report::Listing(listing) => {
                let (functions, first) = (listing.routines.len(), listing.clone().head(1));
                let lines = first.routines.iter().map(|r| r.lines.len() + r.instructions.len()).sum();
                let heads = move |n| (Report::Listing(listing.clone().head(n)), functions - n);
                let dearest = move |n| (Report::Listing(dearest_lines(&first, n)), lines - n);
                vec![(1..=functions, 1, "function", Box::new(heads)), (0..=lines, 3, "line", Box::new(dearest))]
            }
            #[cfg(feature = "check")]
            Report::Check(check) => {
                let all = check.rules.iter().map(|rule| rule.findings.len()).max().unwrap_or(0);
                let heads = move |n| {
                    let (mut shorter, mut left) = (check.clone(), 0);
                    for rule in &mut shorter.rules {
                        left += rule.findings.len().saturating_sub(n);
                        rule.findings.truncate(n);
                    }
                    (Report::Check(shorter), left)
                };
                vec![(0..=all, 0, "finding", Box::new(heads))]
            }
            Report::Explain(_) => {
                let shown = self.text(Style { budget: Some(budget.saturating_sub(LEFT_OUT)), ..Style::default() })?;
                let left = whole.lines().count() - shown.lines().count();
                let told = shown + &left_out(left, "line");
                return Ok(if tokens(&told) <= budget { told } else { text_head(&whole, budget) });
            }
            _ => Vec::new(),
        };
        for brief in [false, true] {
            let style = Style { brief, ..Style::default() };
            for (parts, worth, what, shortened) in &ways {
                let text = |n| {
                    let (report, left) = shortened(n);
                    // What could be written as a whole can be shortened.
                    report.text(style).unwrap_or_default() + &left_out(left, what)
                };
                let fits = |n| tokens(&text(n)) <= budget;
                let most_parts = parts.end().saturating_sub(1);
                let n = most(most_parts, fits);
                let fewest = if brief { *parts.start() } else { (*worth).min(most_parts).max(*parts.start()) };
                if n >= fewest && (n > 0 || fits(0)) {
                    return Ok(text(n));
                }
            }
            let text = self.text(Style { brief: true, ..style })?;
            if tokens(&text) <= budget {
                return Ok(text);
            }
        }
        // The verdict is the last line of a check, and its first where lines are cut off.
        match (self, whole.trim_end().rsplit_once('\n')) {
            #[cfg(feature = "check")]
            (Report::Check(_), Some((before, verdict))) => Ok(text_head(&format!("{verdict}\n{before}\n"), budget)),
            _ => Ok(text_head(&whole, budget)),
        }
    }

    fn text(&self, style: Style) -> io::Result<String> {
        let mut out = Vec::new();
        (FORMAT.write)(self, &mut out, style)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

impl Table {
    /// Of one node's callers and callees the first `n` each, which are the ones that changed or cost most.
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

/// Of the first function the `n` lines or instructions that changed or cost most, in their order.
fn dearest_lines(listing: &Listing, n: usize) -> Listing {
    let mut shorter = listing.clone().head(1);
    let weight = |p: Pair| if listing.summary.base.is_some() { p.delta().unsigned_abs() } else { p.new.unsigned_abs() };
    for routine in &mut shorter.routines {
        dearest(&mut routine.lines, n, |l| (weight(l.cum), weight(l.flat)));
        dearest(&mut routine.instructions, n, |i| (weight(i.cum), weight(i.flat)));
    }
    shorter
}

/// Leaves the `n` of the most weight.
fn dearest<T>(all: &mut Vec<T>, n: usize, weight: impl Fn(&T) -> (u64, u64)) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&i| (Reverse(weight(&all[i])), i));
    order.truncate(n);
    let kept: HashSet<usize> = order.into_iter().collect();
    let mut i = 0..;
    all.retain(|_| i.next().is_some_and(|i| kept.contains(&i)));
}

#[cfg(test)]
mod tests {
    use super::{text_head, tokens};

    #[test]
    fn digits_signs_and_half_words_are_counted() {
        for (text, count) in
            [("", 0), ("a", 1), ("abc", 2), ("aBCd", 4), ("1234", 4), ("a b", 3), ("a   b", 4), ("::", 2), ("é", 2)]
        {
            assert_eq!(tokens(text), count, "{text:?}");
        }
    }

    #[test]
    fn a_head_is_whole_lines_and_says_what_is_missing() {
        let text = &"a line of words\n".repeat(20);
        assert_eq!(text_head(text, tokens(text)), *text);
        assert_eq!(tokens("a line of words\n"), 11);
        let two_lines = "a line of words\na line of words\n18 lines more: ask with a larger budget\n";
        assert_eq!(text_head(text, tokens(two_lines)), two_lines);
        for text in [text, &"x".repeat(1000), &"é\n".repeat(100)] {
            for budget in 0..100 {
                assert!(tokens(&text_head(text, budget)) <= budget, "{budget}");
            }
        }
        assert_eq!(text_head(&"x".repeat(1000), 10), "xxxxxxxxxxxx...\n");
    }
}
