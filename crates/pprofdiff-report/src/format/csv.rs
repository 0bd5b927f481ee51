//! CSV (RFC 4180): a header line, then one line per row. Lists are joined with `;`, root first.
//!
//! Texts are exact by default. For spreadsheets, [`CsvOptions::quote_formulas`] protects texts that a spreadsheet would
//! run as a formula.
//!
//! Quoting is implemented here because the csv crate needs each field as one string, and a stack can have ten million
//! names.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::format::{BASE, Each, EachHeader, Format, unsupported};
use crate::numbers::write_integer;
use crate::report::Report;
use crate::shows::Form;
use crate::style::Style;
use crate::table::{Cell, Column, Data, Lists, Table, Texts};
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
                if i == 0 {
                    let is_taken = |name: &str| row.table.column(name).is_some();
                    let keys = histories.keys.iter().map(|key| key_column(key, is_taken));
                    header(keys, Some(&row.table), style.csv(), out)?;
                }
                let values: Vec<&str> = row.values.iter().map(String::as_str).collect();
                rows(&row.table, &values, style.csv(), out)?;
            }
            Ok(())
        }
        Report::Ranking(ranking) => write_ranking(ranking, style.csv(), out),
        _ => report.table().ok_or_else(unsupported)?.write_csv(out, style.csv()),
    },
    each: Some(Each {
        limit: None,
        header: Some(|EachHeader { keys, table }, out, style| {
            let is_taken =
                |name: &str| ["pair", ERROR].contains(&name) || table.is_some_and(|table| table.column(name).is_some());
            let keys = keys.iter().map(|name| key_column(name, is_taken));
            header(["pair".into()].into_iter().chain(keys).chain([ERROR.into()]), *table, style.csv(), out)
        }),
        write: |item, out, style| {
            let mut values = vec![item.name];
            values.extend(item.keys.iter().map(|(_, value)| value.as_str()));
            match item.result {
                Ok(table) => {
                    values.push("");
                    rows(table, &values, style.csv(), out)
                }
                Err(error) => {
                    let error = error.to_string();
                    values.push(&error);
                    failed_row(&values, item.columns, style.csv(), out)
                }
            }
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
        header([], Some(self), options, out)?;
        rows(self, &[], options, out)
    }
}

/// Writes the pairs of a ranking, then the pairs that failed.
fn write_ranking(ranking: &Ranking, options: CsvOptions, out: &mut dyn Write) -> io::Result<()> {
    let table = with_keys(ranking, Table::ranked_pairs(ranking));
    table.write_csv(out, options)?;
    let error_place = table.columns.iter().position(|column| column.name == ERROR).unwrap_or_default();
    for failed in &ranking.failed {
        let mut values = vec![""; error_place + 1];
        (values[error_place], values[0]) = (&failed.error, &failed.pair);
        failed_row(&values, table.columns.len() - values.len(), options, out)?;
    }
    Ok(())
}

/// Adds the keys of ranked pairs and the empty errors of these pairs as columns after the pair, and cuts the table to
/// the rows of the ranking.
fn with_keys(ranking: &Ranking, table: Table) -> Table {
    let mut table = table.head(ranking.rows.unwrap_or(usize::MAX));
    let pairs = &ranking.pairs[..table.len()];
    let keys: BTreeSet<&String> = pairs.iter().flat_map(|pair| pair.keys.keys()).collect();
    let is_taken = |name: &str| name == ERROR || table.column(name).is_some();
    let named = keys.into_iter().map(|key| {
        let values: Texts = pairs.iter().map(|pair| pair.keys.get(key).map(String::as_str)).collect();
        (key_column(key, is_taken).into_owned(), values)
    });
    let errors = (ERROR.to_owned(), pairs.iter().map(|_| None::<&str>).collect());
    let added: Vec<(String, Texts)> = named.chain([errors]).collect();
    let role = table.columns[0].role;
    let column = |(name, values): (String, Texts)| Column { name: name.into(), role, data: Data::Text(values) };
    table.columns.splice(1..1, added.into_iter().map(column));
    table
}

/// The column with the error of a failed pair.
const ERROR: &str = "error";

/// Writes a pair that failed: its values, and `empty` columns without a value.
fn failed_row(values: &[&str], empty: usize, options: CsvOptions, out: &mut dyn Write) -> io::Result<()> {
    for (i, value) in values.iter().enumerate() {
        field(out, i > 0, options.quote_formulas, [*value])?;
    }
    (0..empty).try_for_each(|_| separate(out, true))?;
    writeln!(out)
}

/// Returns the name of the column of a key. `key_` precedes a name that another column has.
pub fn key_column(name: &str, is_taken: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if is_taken(name) { format!("key_{name}").into() } else { name.into() }
}

/// Writes the header line: the names of additional columns, then those of the table's columns.
fn header<'a>(
    additional: impl IntoIterator<Item = Cow<'a, str>>,
    table: Option<&'a Table>,
    options: CsvOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = table.into_iter().flat_map(|table| &table.columns).map(|column| Cow::Borrowed(&*column.name));
    for (i, name) in additional.into_iter().chain(columns).enumerate() {
        field(out, i > 0, options.quote_formulas, [&*name])?;
    }
    writeln!(out)
}

/// Writes the rows. `additional` are values to put before all others, the same in every row.
fn rows(table: &Table, additional: &[&str], options: CsvOptions, out: &mut dyn Write) -> io::Result<()> {
    let texts = options.quote_formulas;
    for row in 0..table.len() {
        for (i, value) in additional.iter().enumerate() {
            field(out, i > 0, texts, [*value])?;
        }
        for (i, column) in table.columns.iter().enumerate() {
            let behind = i > 0 || !additional.is_empty();
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
