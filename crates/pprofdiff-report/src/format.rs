//! The table of output formats. Each format is one file with its `FORMAT`, plus a module and a row here. Formats depend
//! only on reports, and no other code depends on a particular format.

mod callgrind;
pub(crate) mod csv;
pub(crate) mod dot;
#[cfg(feature = "svg")]
pub(crate) mod flamegraph;
pub(crate) mod folded;
#[cfg(feature = "check")]
mod github;
pub(crate) mod json;
mod jsonl;
#[cfg(feature = "check")]
mod junit;
pub(crate) mod markdown;
pub(crate) mod pprof;
#[cfg(feature = "check")]
mod sarif;
pub(crate) mod speedscope;
#[cfg(feature = "svg")]
pub(crate) mod svg;
pub(crate) mod text;

use std::io::{self, Write};

use crate::report::Report;
use crate::request::Request;
use crate::shows::Form;
use crate::style::Style;
use crate::table::Table;
use pprofdiff::{Error, Result};
#[cfg(feature = "check")]
use pprofdiff_explain::ExplainedCheck;

/// An output format for reports.
#[derive(Debug)]
pub struct Format {
    /// The name as users type it.
    pub name: &'static str,
    /// The file extensions without the leading dot. The first is the usual one.
    pub extensions: &'static [&'static str],
    /// A description of a few words.
    pub about: &'static str,
    /// True for binary output, which a terminal cannot show.
    pub binary: bool,
    /// The default maximum number of rows, for formats that people read. `None` writes all rows.
    pub limit: Option<usize>,
    /// True if the output contains the report's warnings. Otherwise the caller has to show them.
    pub warns: bool,
    /// Returns warnings about the parts of a report that the format cannot represent. The caller shows them.
    pub leaves_out: fn(&Report) -> Vec<String>,
    /// The form of the output. The rows of views list the forms that show them.
    pub form: Form,
    /// Returns the request that the format answers instead of a given one that it shows: usually the same request,
    /// sometimes another view or granularity of the same query.
    pub asks: fn(&Request) -> Request,
    /// The writer of reports. [`Format::write`](fn@Format::write) calls it.
    pub write: fn(&Report, &mut dyn Write, Style) -> io::Result<()>,
    /// The writer for tables of many pairs, if the format supports them.
    pub each: Option<Each>,
}

impl Format {
    /// Writes a report of a view that the format supports.
    ///
    /// # Errors
    /// Fails if `out` fails, and if the format does not support the report. [`Request::for_format`] prevents the latter.
    pub fn write(&self, report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
        (self.write)(report, out, style)
    }
}

/// The part of a format that writes the tables of many pairs one after another.
#[derive(Debug)]
pub struct Each {
    /// The default maximum number of rows per pair.
    pub limit: Option<usize>,
    /// Writes the names of the columns, for formats that begin with them. Pairs that failed before the first table wait
    /// for it, because its columns are not known before.
    pub header: Option<fn(&EachHeader<'_>, &mut dyn Write, Style) -> io::Result<()>>,
    /// Writes one pair, which may be a pair that failed.
    pub write: fn(&Item<'_>, &mut dyn Write, Style) -> io::Result<()>,
}

/// The columns of many pairs.
#[derive(Debug)]
pub struct EachHeader<'a> {
    /// The names of the pairs' keys.
    pub keys: &'a [String],
    /// The first table; `None` if all pairs failed.
    pub table: Option<&'a Table>,
}

/// The result of one of many pairs.
#[derive(Debug)]
pub struct Item<'a> {
    /// The pair's name.
    pub name: &'a str,
    /// The names and values of the pair's keys. In a format with a header, they have the order of the header.
    pub keys: &'a [(String, String)],
    /// The pair's table, or the error that prevented it.
    pub result: Result<&'a Table, &'a Error>,
    /// The number of columns of the first table, if the format has a header.
    pub columns: usize,
}

/// The formats of this crate, in the order of help.
pub(crate) static STANDARD: &[&Format] = &[
    &text::FORMAT,
    &json::FORMAT,
    &jsonl::FORMAT,
    &csv::FORMAT,
    &markdown::FORMAT,
    &pprof::FORMAT,
    &folded::FORMAT,
    &speedscope::FORMAT,
    &dot::FORMAT,
    #[cfg(feature = "svg")]
    &svg::FORMAT,
    #[cfg(feature = "svg")]
    &flamegraph::FORMAT,
    &callgrind::FORMAT,
    #[cfg(feature = "check")]
    &github::FORMAT,
    #[cfg(feature = "check")]
    &junit::FORMAT,
    #[cfg(feature = "check")]
    &sarif::FORMAT,
];

/// The defaults of a format: text that contains warnings, for one report at a time.
pub(crate) const BASE: Format = Format {
    name: "",
    extensions: &[],
    about: "",
    binary: false,
    limit: None,
    warns: true,
    leaves_out: nothing,
    form: Form::Text,
    asks: Request::clone,
    write: |_, _, _| Err(unsupported()),
    each: None,
};

/// Returns no warnings, for formats that represent all of a report.
pub(crate) fn nothing(_: &Report) -> Vec<String> {
    Vec::new()
}

/// Creates a format for the findings of a check.
#[cfg(feature = "check")]
pub(crate) const fn of_checks(
    name: &'static str,
    extensions: &'static [&'static str],
    about: &'static str,
    write: fn(&Report, &mut dyn Write, Style) -> io::Result<()>,
) -> Format {
    Format { name, extensions, about, form: Form::Findings, write, ..BASE }
}

/// Returns the check in a report, or the error [`unsupported`] for any other report.
#[cfg(feature = "check")]
pub(crate) fn check_of(report: &Report) -> io::Result<&ExplainedCheck> {
    match report {
        Report::Check(check) => Ok(check),
        _ => Err(unsupported()),
    }
}

/// Returns the error for a report that the format does not support. [`Request::for_format`] prevents this case.
pub fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this format can't show that view")
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{self, Write};

    /// Records the written bytes and the number of write calls. Each call goes through a pointer and is the main cost
    /// of formats.
    #[derive(Default)]
    pub(crate) struct WriteCounter {
        pub calls: usize,
        pub written: Vec<u8>,
    }

    impl Write for WriteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_all(bytes).map(|()| bytes.len())
        }

        fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.calls += 1;
            self.written.extend_from_slice(bytes);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
