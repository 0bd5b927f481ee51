//! CSV (RFC 4180): a header line, then one line per row. Lists are joined with `;`, root first.
//!
//! Texts are exact by default. For spreadsheets, [`CsvOptions::quote_formulas`] protects texts that a spreadsheet would
//! run as a formula.
//!
//! Quoting is implemented here because the csv crate needs each field as one string, and a stack can have ten million
//! names.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::format::{BASE, Each, Format, unsupported};
use crate::numbers::write_integer;
use crate::report::Report;
use crate::shows::Form;
use crate::style::Style;
use crate::table::{Cell, Column, Data, Lists, Table};
use pprofdiff_series::fleet::Ranking;

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    extensions: &["csv"],
    about: "one line per row, below a header line",
    warns: false,
    form: Form::Rows,
    write: |report, out, style| match report {
        Report::Histories(histories) => {
            for (i, row) in histories.rows.iter().enumerate() {
                let is_taken = |name: &str| row.table.column(name).is_some();
                let fields = histories.keys.iter().map(|key| key_column(key, is_taken));
                let fields: Vec<_> = fields.zip(row.values.iter().map(String::as_str)).collect();
                rows(&row.table, &fields, i == 0, style.csv(), out)?;
            }
            Ok(())
        }
        Report::Ranking(ranking) => with_keys(ranking, Table::ranked_pairs(ranking)).write_csv(out, style.csv()),
        _ => report.table().ok_or_else(unsupported)?.write_csv(out, style.csv()),
    },
    each: Some(Each {
        limit: None,
        write: |item, out, style| match item.result {
            Ok(table) => {
                let is_taken = |name: &str| name == "pair" || table.column(name).is_some();
                let mut fields = vec![("pair".into(), item.name)];
                fields.extend(item.keys.iter().map(|(name, value)| (key_column(name, is_taken), value.as_str())));
                rows(table, &fields, item.first, style.csv(), out)
            }
            Err(_) => Ok(()),
        },
    }),
    ..BASE
};

/// Options of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// Puts a `'` before texts (each text of a list) that begin with `=`, `+`, `-`, `@`, a tab or a line break, so that
    /// a spreadsheet shows them and runs no formula. Numbers stay unchanged.
    pub quote_formulas: bool,
}

impl Style {
    pub(crate) fn csv(self) -> CsvOptions {
        CsvOptions { quote_formulas: self.quote_formulas }
    }
}

impl Table {
    /// Writes the table as CSV. Costs are integers in the profile's unit; ratios and statistics are decimal numbers.
    /// Missing values are empty.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write_csv(&self, out: &mut dyn Write, options: CsvOptions) -> io::Result<()> {
        rows(self, &[], true, options, out)
    }
}

/// Adds the keys of ranked pairs as columns after the pair, and cuts the table to the rows of the ranking.
fn with_keys(ranking: &Ranking, table: Table) -> Table {
    let mut table = table.head(ranking.rows.unwrap_or(usize::MAX));
    let pairs = &ranking.pairs[..table.len()];
    let Some(first) = pairs.first() else { return table };
    for (index, name) in first.keys.keys().enumerate() {
        let name = key_column(name, |name| table.column(name).is_some()).into_owned();
        let values = pairs.iter().map(|pair| pair.keys.values().nth(index).map(String::as_str)).collect();
        let role = table.columns[0].role;
        table.columns.insert(1 + index, Column { name: name.into(), role, data: Data::Text(values) });
    }
    table
}

/// Returns the name of the column of a key. `key_` precedes a name that another column has.
pub fn key_column(name: &str, is_taken: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if is_taken(name) { format!("key_{name}").into() } else { name.into() }
}

/// Writes the rows, below a header line if `names`. `extra_fields` are the names of columns to put before all others,
/// and their values, which are the same in every row.
pub(crate) fn rows(
    table: &Table,
    extra_fields: &[(Cow<'_, str>, &str)],
    names: bool,
    options: CsvOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let texts = options.quote_formulas;
    if names {
        let extra_fields = extra_fields.iter().map(|(name, _)| &**name);
        for (i, name) in extra_fields.chain(table.columns.iter().map(|c| &*c.name)).enumerate() {
            field(out, i > 0, texts, [name])?;
        }
        writeln!(out)?;
    }
    for row in 0..table.len() {
        for (i, (_, value)) in extra_fields.iter().enumerate() {
            field(out, i > 0, texts, [*value])?;
        }
        for (i, column) in table.columns.iter().enumerate() {
            let behind = i > 0 || !extra_fields.is_empty();
            match column.cell(row) {
                Cell::Missing => field(out, behind, texts, [])?,
                Cell::Text(text) => field(out, behind, texts, [text])?,
                Cell::Int(v) => {
                    separate(out, behind)?;
                    write_integer(out, v)?;
                }
                Cell::Ratio(v) => field(out, behind, false, [v.to_string().as_str()])?,
                Cell::List(lists, row) => field(out, behind, texts, RowStrings(lists, row))?,
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The strings of a row's list. [`field`] iterates them twice: first to decide about quotes, then to write.
#[derive(Clone, Copy)]
struct RowStrings<'a>(&'a Lists, usize);

impl<'a> IntoIterator for RowStrings<'a> {
    type Item = &'a str;
    type IntoIter = Box<dyn Iterator<Item = &'a str> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.0.get(self.1))
    }
}

/// Writes the comma before a field, unless the field is the first.
fn separate(out: &mut dyn Write, behind_another: bool) -> io::Result<()> {
    if behind_another { out.write_all(b",") } else { Ok(()) }
}

/// Returns true if a field with this string must be quoted. Checks all bytes without an early exit, so that the
/// compiler can vectorize the loop.
fn needs_quotes(string: &str) -> bool {
    string.bytes().fold(false, |any, b| any | (b == b',') | (b == b'"') | (b == b'\r') | (b == b'\n'))
}

/// Writes a field whose strings are joined with `;`. A table has many more fields than rows, so the number of write
/// calls matters: a string without quotes is written in one call.
fn field<'a>(
    out: &mut dyn Write,
    behind_another: bool,
    quote_formulas: bool,
    strings: impl IntoIterator<Item = &'a str> + Clone,
) -> io::Result<()> {
    separate(out, behind_another)?;
    let quoted = strings.clone().into_iter().any(needs_quotes);
    if quoted {
        out.write_all(b"\"")?;
    }
    for (i, string) in strings.into_iter().enumerate() {
        if i > 0 {
            out.write_all(b";")?;
        }
        if quote_formulas && string.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
            out.write_all(b"'")?;
        }
        if !quoted {
            out.write_all(string.as_bytes())?;
            continue;
        }
        for (i, part) in string.split('"').enumerate() {
            out.write_all(if i > 0 { b"\"\"" } else { b"" })?;
            out.write_all(part.as_bytes())?;
        }
    }
    if quoted { out.write_all(b"\"") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::field;
    use crate::format::tests::WriteCounter;

    #[test]
    fn a_plain_field_is_written_in_one_call() {
        let mut out = WriteCounter::default();
        assert!(field(&mut out, true, false, ["github.com/example/parse.(*Tokens).Next"]).is_ok());
        assert_eq!((out.calls, &*out.written), (2, &b",github.com/example/parse.(*Tokens).Next"[..]));
    }

    #[test]
    fn fields_survive_a_round_trip() {
        let rows = [["a", "b,c"], ["say \"x\"", ""], ["two\nlines", "\r"], ["\"", ";"], ["", " "]];
        let mut out = Vec::new();
        for row in rows {
            let written = row.iter().enumerate().try_for_each(|(i, f)| field(&mut out, i > 0, false, [*f]));
            assert!(written.is_ok());
            out.push(b'\n');
        }
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&*out);
        let read: Result<Vec<Vec<String>>, _> = reader.deserialize().collect();
        assert_eq!(read.unwrap_or_default(), rows.map(|row| row.map(str::to_owned).to_vec()));
    }

    #[test]
    fn formulas_are_quoted_only_on_request() {
        for (strings, exact, quoted) in [
            (&["=1+1"][..], "=1+1", "'=1+1"),
            (&["main", "@a", "-b", "+c"], "main;@a;-b;+c", "main;'@a;'-b;'+c"),
            (&["a=b", ""], "a=b;", "a=b;"),
            (&["\t=x", "\r=y"], "\"\t=x;\r=y\"", "\"'\t=x;'\r=y\""),
        ] {
            for (quote, expected) in [(false, exact), (true, quoted)] {
                let mut out = Vec::new();
                assert!(field(&mut out, false, quote, strings.iter().copied()).is_ok());
                assert_eq!(String::from_utf8_lossy(&out), expected);
            }
        }
    }
}
