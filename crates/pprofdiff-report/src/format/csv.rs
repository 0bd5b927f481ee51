//! CSV (RFC 4180): a line of column names, then one line a row. Lists are joined with `;`, root first.
//!
//! Texts are exact, unless they are for a spreadsheet: those run a cell that begins with `=`, `+`, `-` or `@` as a
//! formula.
//!
//! Quoting is done by hand: the csv crate takes a field as a whole, and a stack may be ten million names.

use std::io::{self, Write};

use crate::format::{self, BASE, Each, Format, unsupported};
use crate::numbers::write_integer;
use crate::table::{Cell, Lists, Table};

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    extensions: &["csv"],
    about: "a line a row, below the columns' names",
    warns: false,
    shows: format::rows,
    write: |report, out, style| report.table().ok_or_else(unsupported)?.write_csv(out, style.csv()),
    each: Some(Each {
        limit: None,
        write: |item, out, style| match item.result {
            Ok(table) => rows(table, Some(("pair", item.name)), item.first, style.csv(), out),
            Err(_) => Ok(()),
        },
    }),
    ..BASE
};

/// How CSV is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// Put a `'` before texts (each of a list) that begin with `=`, `+`, `-`, `@`, a tab or a line break: a spreadsheet
    /// then shows them, and runs no formula. Numbers stay as they are.
    pub quote_formulas: bool,
}

impl Table {
    /// Writes the table as CSV. Numbers are whole and in the profile's unit; what is missing is empty.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_csv(&self, out: &mut dyn Write, options: CsvOptions) -> io::Result<()> {
        rows(self, None, true, options, out)
    }
}

/// Writes the rows, each after a field of its own (its column's name and its value), with or without the line of names.
pub(crate) fn rows(
    table: &Table,
    own: Option<(&str, &str)>,
    names: bool,
    options: CsvOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let texts = options.quote_formulas;
    if names {
        let own = own.iter().map(|(name, _)| *name);
        for (i, name) in own.chain(table.columns.iter().map(|c| &*c.name)).enumerate() {
            field(out, i > 0, texts, [name])?;
        }
        writeln!(out)?;
    }
    for row in 0..table.len() {
        own.map_or(Ok(()), |(_, value)| field(out, false, texts, [value]))?;
        for (i, column) in table.columns.iter().enumerate() {
            let behind = i > 0 || own.is_some();
            match column.cell(row) {
                Cell::Missing => field(out, behind, texts, [])?,
                Cell::Text(text) => field(out, behind, texts, [text])?,
                Cell::Int(v) => {
                    separate(out, behind)?;
                    write_integer(out, v)?;
                }
                Cell::Ratio(v) => field(out, behind, false, [v.to_string().as_str()])?,
                Cell::List(lists, row) => field(out, behind, texts, Strings(lists, row))?,
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// A row's list, which can be walked twice.
#[derive(Clone, Copy)]
struct Strings<'a>(&'a Lists, usize);

impl<'a> IntoIterator for Strings<'a> {
    type Item = &'a str;
    type IntoIter = Box<dyn Iterator<Item = &'a str> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.0.get(self.1))
    }
}

/// What stands between a field and the one before it.
fn separate(out: &mut dyn Write, behind_another: bool) -> io::Result<()> {
    if behind_another { out.write_all(b",") } else { Ok(()) }
}

/// True if a field with this string must be quoted. Looks at all bytes whatever they are, which is many at a time.
fn needs_quotes(string: &str) -> bool {
    string.bytes().fold(false, |any, b| any | (b == b',') | (b == b'"') | (b == b'\r') | (b == b'\n'))
}

/// A field, of strings with `;` between them. The csv crate wants a field as a whole, and a stack can be ten million
/// names; so quoting, which is all there is to writing CSV, is done here. A table has many times as many fields as
/// rows, so nothing empty is written, and what needs no quotes at once.
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
    use crate::format::tests::Calls;

    #[test]
    fn a_plain_field_is_written_at_once() {
        let mut out = Calls::default();
        assert!(field(&mut out, true, false, ["github.com/example/parse.(*Tokens).Next"]).is_ok());
        assert_eq!((out.calls, &*out.written), (2, &b",github.com/example/parse.(*Tokens).Next"[..]));
    }

    #[test]
    fn fields_are_read_again_as_they_were() {
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
    fn formulas_are_quoted_where_that_is_wanted() {
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
