//! A table in GitHub's Markdown, for pull requests and notes: numbers scaled as in text.

use std::io::{self, Write};

#[cfg(feature = "check")]
use crate::check::check_markdown;
use crate::explain::explain_markdown;
use crate::format::{BASE, Format, rows, unsupported};
use crate::numbers::total;
use crate::report::Report;
use crate::series::{failure, header};
use crate::table::{Cell, Data, Table};
use crate::view::View;
use crate::view::ranking::ranking_markdown;
use pprofdiff::text::sanitize;

pub(crate) const FORMAT: Format = Format {
    name: "markdown",
    extensions: &["md", "markdown"],
    about: "a table for pull requests",
    limit: Some(20),
    shows: |request| match request.view {
        #[cfg(feature = "check")]
        View::Check(_) => Some(request.clone()),
        View::Explain(_) => Some(request.clone()),
        _ => rows(request),
    },
    write: |report, out, style| match report {
        #[cfg(feature = "check")]
        Report::Check(check) => check_markdown(check, out),
        Report::Explain(explanation) => explain_markdown(explanation, out, style),
        Report::Ranking(ranking) => ranking_markdown(ranking, out),
        _ => report.table().ok_or_else(unsupported)?.write_markdown(out),
    },
    ..BASE
};

impl Table {
    /// Writes the table as Markdown: a line with the totals, then the rows.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let s = &self.summary;
        if let Some(builds) = &self.builds {
            writeln!(out, "{}\n", escape(&header(s, builds)))?;
            builds.failed().try_for_each(|b| writeln!(out, "> failed: {}\n", escape(&failure(b))))?;
        }
        if self.builds.is_none() {
            for s in self.sample_types() {
                let of = match (s.is_of_runs(), s.sum) {
                    (true, _) => " (means of runs)",
                    (false, true) => " (sums)",
                    _ => "",
                };
                writeln!(out, "**{}**{of}: {}\n", escape(&s.sample_type), escape(&total(&s, "→")))?;
            }
        }
        s.warnings.iter().try_for_each(|w| writeln!(out, "> {}\n", escape(w)))?;
        let columns = self.shown_columns();
        write!(out, "|")?;
        columns.iter().try_for_each(|c| write!(out, " {} |", escape(&c.head)))?;
        write!(out, "\n|")?;
        columns.iter().try_for_each(|c| write!(out, "{}|", if c.is_number() { "---:" } else { "---" }))?;
        writeln!(out)?;
        for row in 0..self.len() {
            write!(out, "|")?;
            for column in &columns {
                if let Some((number, _)) = self.number(column, row) {
                    write!(out, " {} |", escape(&number))?;
                    continue;
                }
                let c = column.column;
                let cell = match (&c.data, c.cell(row)) {
                    (Data::Address(_), Cell::Int(v)) => format!("{v:#x}"),
                    (_, Cell::Int(v)) => v.to_string(),
                    (_, Cell::Ratio(v)) => v.to_string(),
                    (_, Cell::Text(text)) => code(text),
                    (_, Cell::List(lists, row)) => {
                        for text in lists.get(row) {
                            write!(out, " {}", code(text))?;
                        }
                        String::new()
                    }
                    (_, Cell::Missing) => String::new(),
                };
                write!(out, " {cell} |")?;
            }
            writeln!(out)?;
        }
        if self.len() < self.rows_total {
            writeln!(out, "\n{} of {} rows", self.len(), self.rows_total)?;
        }
        Ok(())
    }
}

/// Text that stays text: Markdown's signs and HTML's brackets lose their meaning. An `@` mentions nobody, a `#` links to no
/// issue and an address nowhere; since GitHub looks for them after it has taken backslashes away, only a blank without width
/// helps (github/cmark-gfm#181).
pub(crate) fn escape(text: &str) -> String {
    let broken = [("#", "#&#8203;"), ("@", "@&#8203;"), ("://", ":&#8203;//"), ("www.", "www&#8203;.")];
    broken.iter().fold(literal(text), |text, (sign, instead)| text.replace(sign, instead))
}

fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// A name as code, in which GitHub links nothing. Backquotes inside would end it, so it gets HTML's tag where there are
/// any.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = sanitize(text);
    if text.contains(['`', '|']) {
        return format!("<code>{}</code>", literal(&text));
    }
    format!("`{text}`")
}
