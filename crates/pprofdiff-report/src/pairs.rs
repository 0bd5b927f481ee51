//! Many pairs, one after the other: for people a line a pair and what moved most in it, JSON lines, or CSV with a line a
//! pair and frame.

use std::io::{self, Write};

use serde_json::json;

use super::csv::{self, CsvOptions};
use super::json::{header, write_rows};
use super::percent_of_base;
use super::table::{Kind, Table};
use super::text::{TextOptions, signed_percent};
use pprofdiff::Error;
use pprofdiff::harmless;
use pprofdiff::units;

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
    let show = |v: i64| units::show(v, &s.unit);
    let signed = |v: i64| format!("{}{}", if v > 0 { "+" } else { "" }, show(v));
    let percent = |v: i64| percent_of_base(v, s).map_or_else(|| "the base is 0".to_owned(), signed_percent);
    let (total, delta) = (s.total, s.total.delta());
    let (name, kind) = (harmless(name), harmless(&s.sample_type));
    let (base, new) = (show(total.base), show(total.new));
    writeln!(out, "{name}  {kind} {base} -> {new}, {} ({})", signed(delta), percent(delta))?;
    s.warnings.iter().try_for_each(|w| writeln!(out, "    warning: {}", harmless(w)))?;
    if table.kind != Kind::Diff {
        return table.write_rows(out, TextOptions::default());
    }
    let (flat, cum) = (table.values("flat_delta"), table.values("cum_delta"));
    for row in 0..table.len() {
        let frame = table.label(row);
        let (flat, cum) = (flat[row], cum[row]);
        writeln!(out, "    flat {} ({})  cum {}  {}", signed(flat), percent(flat), signed(cum), harmless(&frame))?;
    }
    Ok(())
}
