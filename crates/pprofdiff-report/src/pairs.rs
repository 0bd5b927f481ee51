//! Many pairs, one after the other: for people a line a pair and what moved most in it, JSON lines, or CSV with a line a
//! pair and frame.

use std::io::{self, Write};

use serde_json::json;

use super::csv::{self, CsvOptions};
use super::json::{header, write_rows};
use super::numbers::{signed, total, whole};
use super::table::{Kind, Table};
use super::text::TextOptions;
use pprofdiff::Error;
use pprofdiff::text::harmless;

/// How pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairFormat {
    /// For people.
    Text,
    /// An object a line: the pair, the header of its table, its rows; or the pair and its error.
    JsonLines,
    /// A line a pair and frame, below the columns' names; pairs that failed are not in it.
    Csv(CsvOptions),
}

/// Writes the tables of pairs in one format.
#[derive(Debug)]
pub struct PairWriter {
    format: PairFormat,
    begun: bool,
}

impl PairWriter {
    /// A writer that has written nothing.
    pub fn new(format: PairFormat) -> PairWriter {
        PairWriter { format, begun: false }
    }

    /// Writes what changed in a pair.
    ///
    /// # Errors
    /// The writer's.
    pub fn pair(&mut self, name: &str, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        match self.format {
            PairFormat::Text => text(name, table, out),
            PairFormat::Csv(options) => csv::rows(table, Some(("pair", name)), first, options, out),
            PairFormat::JsonLines => {
                write!(out, "{{\"pair\": {}", json!(name))?;
                for (key, value) in header(&table.summary) {
                    write!(out, ", \"{key}\": {value}")?;
                }
                write!(out, ", \"rows_total\": {}, \"rows\": [", table.rows_total)?;
                write_rows(table, ", ", "", out)?;
                writeln!(out, "]}}")
            }
        }
    }

    /// Writes that a pair failed, where the format has room for it.
    ///
    /// # Errors
    /// The writer's.
    pub fn error(&mut self, name: &str, error: &Error, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            PairFormat::JsonLines => writeln!(out, "{}", json!({"pair": name, "error": error.to_string()})),
            PairFormat::Text => writeln!(out, "{}  failed", harmless(name)),
            PairFormat::Csv(_) => Ok(()),
        }
    }
}

fn text(name: &str, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let s = &table.summary;
    writeln!(out, "{}  {} {}", harmless(name), harmless(&s.sample_type), total(s, "->"))?;
    s.warnings.iter().try_for_each(|w| writeln!(out, "    warning: {}", harmless(w)))?;
    if table.kind != Kind::Diff || !table.beside.is_empty() {
        return table.write_rows(out, TextOptions::default());
    }
    let costs = table.led();
    let [lead, other] = &costs[..] else { return Ok(()) };
    let (by, beside) = (table.format(lead), table.format(other));
    let names = [lead, other].map(|c| c.cost.measured.name());
    for row in 0..table.len() {
        let words = by.words(lead.pair(row), whole(s), "->");
        let rest = signed(other.pair(row).delta(), beside.delta);
        writeln!(out, "    {} {words}  {} {rest}  {}", names[0], names[1], harmless(&table.label(row)))?;
    }
    Ok(())
}
