//! Tables in GitHub's Markdown, for pull requests and notes. Numbers are scaled as in text.

use std::io::{self, Write};

#[cfg(feature = "check")]
use crate::check::check_markdown;
use crate::explain::explain_markdown;
use crate::format::{BASE, Format, unsupported};
use crate::histories::histories_markdown;
use crate::markdown::{code, escape};
use crate::numbers::total;
use crate::ranking::ranking_markdown;
use crate::report::Report;
use crate::series::{failed_builds, header};
use crate::shows::Form;
use crate::table::{Cell, Data, Table};

pub(crate) const FORMAT: Format = Format {
    name: "markdown",
    extensions: &["md", "markdown"],
    about: "a table for pull requests",
    limit: Some(20),
    form: Form::Prose,
    write: |report, out, style| match report {
        #[cfg(feature = "check")]
        Report::Check(check) => check_markdown(check, out),
        Report::Explain(explanation) => explain_markdown(explanation, out),
        Report::Ranking(ranking) => ranking_markdown(ranking, out),
        Report::Histories(histories) => histories_markdown(histories, out),
        _ => {
            let table = report.table().ok_or_else(unsupported)?;
            table.write_markdown_header(out)?;
            if style.brief && table.is_empty() { Ok(()) } else { table.write_markdown_rows(out) }
        }
    },
    ..BASE
};

impl Table {
    /// Writes the table as Markdown: a line with the total of each sample type (or for many builds, a line about the
    /// builds and one per failed build), the warnings, and the rows.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_markdown_header(out)?;
        self.write_markdown_rows(out)
    }

    fn write_markdown_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let s = &self.summary;
        if let Some(builds) = &self.builds {
            writeln!(out, "{}\n", escape(&header(s, builds)))?;
            failed_builds(builds).iter().try_for_each(|line| writeln!(out, "> failed: {}\n", escape(line)))?;
        }
        if self.builds.is_none() {
            for s in self.sample_types() {
                let suffix = match (s.is_of_runs(), s.sum) {
                    (true, _) => " (means of runs)",
                    (false, true) => " (sums)",
                    _ => "",
                };
                writeln!(out, "**{}**{suffix}: {}\n", escape(&s.sample_type), escape(&total(&s, "→")))?;
            }
        }
        s.warnings.iter().try_for_each(|w| writeln!(out, "> {}\n", escape(w)))
    }

    fn write_markdown_rows(&self, out: &mut dyn Write) -> io::Result<()> {
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
        for explained in self.shown_explanations() {
            write!(out, "\nexplain: {}: {}", escape(&explained.compared), explained.markdown)?;
        }
        Ok(())
    }
}
