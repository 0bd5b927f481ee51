//! The formats: a module and a row here, and one file each. A format knows reports and nothing else; nothing else knows a
//! format.

mod callgrind;
pub(crate) mod csv;
pub(crate) mod dot;
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
use std::path::Path;

use self::csv::CsvOptions;
use self::text::TextOptions;
use crate::report::Report;
use crate::request::Request;
use crate::table::Table;
use crate::view::{ShownBy, View};
#[cfg(feature = "check")]
use pprofdiff::check::Check;
use pprofdiff::{Error, Result};

/// A way to write reports.
#[derive(Debug)]
pub struct Format {
    /// The name that users give it.
    pub name: &'static str,
    /// What names of its files end in, without the dot; the first is the usual one.
    pub extensions: &'static [&'static str],
    /// What it is, in a few words.
    pub about: &'static str,
    /// True if a terminal can't show it.
    pub binary: bool,
    /// The most rows unless told otherwise, of formats that people read.
    pub limit: Option<usize>,
    /// True if it has room for the warnings of a report; elsewhere they are for the face to say.
    pub warns: bool,
    /// What of a report it has no place for, as warnings for the face to say.
    pub leaves_out: fn(&Report) -> Vec<String>,
    /// The request whose answer it writes when this one is asked: usually the same, or another view of the same question,
    /// or at another granularity. `None` if it can't show it.
    pub shows: fn(&Request) -> Option<Request>,
    /// Writes a report of a view that it shows.
    pub write: fn(&Report, &mut dyn Write, Style) -> io::Result<()>,
    /// How it writes the tables of many pairs, if it does.
    pub each: Option<Each>,
}

/// How a format writes the tables of many pairs, one after the other.
#[derive(Debug)]
pub struct Each {
    /// The most rows a pair unless told otherwise.
    pub limit: Option<usize>,
    /// Writes one of them.
    pub write: fn(&Item<'_>, &mut dyn Write, Style) -> io::Result<()>,
}

/// What became of one of many pairs.
#[derive(Debug)]
pub struct Item<'a> {
    /// The pair's name.
    pub name: &'a str,
    /// Its table, or why there is none.
    pub result: Result<&'a Table, &'a Error>,
    /// True of the first that has a table.
    pub first: bool,
}

/// How a format writes, where it has a choice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Text has colours, for a terminal.
    pub color: bool,
    /// CSV has a `'` before what a spreadsheet would run as a formula.
    pub quote_formulas: bool,
    /// An explanation for people or for a language model has about so many tokens; the least important goes first.
    pub budget: Option<usize>,
    /// Text is about rows: its header does not name the inputs, nor say what columns are.
    pub brief: bool,
}

impl Style {
    pub(crate) fn text(self) -> TextOptions {
        TextOptions { color: self.color, brief: self.brief }
    }

    pub(crate) fn csv(self) -> CsvOptions {
        CsvOptions { quote_formulas: self.quote_formulas }
    }
}

/// Writes the tables of many pairs in one format.
#[derive(Debug)]
pub struct EachWriter {
    each: &'static Each,
    style: Style,
    begun: bool,
}

impl EachWriter {
    /// A writer that has written nothing.
    ///
    /// # Errors
    /// A format that has no room for many pairs; the error names those that have.
    pub fn new(format: &'static Format, style: Style) -> Result<EachWriter> {
        match &format.each {
            Some(each) => Ok(EachWriter { each, style, begun: false }),
            None => {
                let can = Format::all().iter().filter(|f| f.each.is_some()).map(|f| f.name);
                let can = can.collect::<Vec<_>>().join(", ");
                Err(Error::query(format!("many pairs can't be written as {}; they can as {can}", format.name)))
            }
        }
    }

    /// The most rows a pair unless told otherwise.
    pub fn limit(&self) -> Option<usize> {
        self.each.limit
    }

    /// Writes what became of a pair.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&mut self, name: &str, result: Result<&Table, &Error>, out: &mut dyn Write) -> io::Result<()> {
        let first = !self.begun && result.is_ok();
        self.begun |= first;
        (self.each.write)(&Item { name, result, first }, out, self.style)
    }
}

/// All formats, in the order in which help lists them.
static FORMATS: &[&Format] = &[
    &text::FORMAT,
    &json::FORMAT,
    &jsonl::FORMAT,
    &csv::FORMAT,
    &markdown::FORMAT,
    &pprof::FORMAT,
    &folded::FORMAT,
    #[cfg(feature = "html")]
    &crate::page::FORMAT,
    &speedscope::FORMAT,
    &dot::FORMAT,
    #[cfg(feature = "svg")]
    &svg::FORMAT,
    &callgrind::FORMAT,
    #[cfg(feature = "check")]
    &github::FORMAT,
    #[cfg(feature = "check")]
    &junit::FORMAT,
    #[cfg(feature = "check")]
    &sarif::FORMAT,
];

impl Format {
    /// All formats.
    pub fn all() -> &'static [&'static Format] {
        FORMATS
    }

    /// True if it writes all stacks, whatever the number of rows.
    pub fn writes_whole(&self) -> bool {
        let shows =
            |limit| (self.shows)(&Request::default().asking(View::default().ordered(Default::default(), limit)));
        shows(Some(1)).is_none() && shows(None).is_some()
    }

    /// The format of a name.
    ///
    /// # Errors
    /// There is none; the error names all.
    pub fn named(name: &str) -> Result<&'static Format> {
        Format::all().iter().copied().find(|f| f.name == name).ok_or_else(|| {
            let names: Vec<&str> = Format::all().iter().map(|f| f.name).collect();
            Error::query(format!("there is no format {name:?}; there are {}", names.join(", ")))
        })
    }

    /// The format that a file's name asks for by its ending; the longest ending counts. A name without an ending asks for
    /// text.
    ///
    /// # Errors
    /// An ending of no format; the error names all.
    pub fn of_path(path: &Path) -> Result<&'static Format> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let all = Format::all().iter().flat_map(|&f| f.extensions.iter().map(move |&e| (e, f)));
        let ends = all.filter(|(e, _)| name.strip_suffix(e).is_some_and(|rest| rest.ends_with('.')));
        if let Some((_, format)) = ends.max_by_key(|(e, _)| e.len()) {
            return Ok(format);
        }
        if path.extension().is_none() {
            return Ok(&text::FORMAT);
        }
        let endings: Vec<String> = Format::all().iter().map(|f| format!(".{} ({})", f.extensions[0], f.name)).collect();
        let path = path.display().to_string();
        Err(Error::query(format!("no format is known by this ending; name one, or end in {}", endings.join(", ")))
            .in_input(&path))
    }
}

/// What most formats have in common: text, all rows and warnings of a report, one at a time. It shows nothing by itself.
pub(crate) const BASE: Format = Format {
    name: "",
    extensions: &[],
    about: "",
    binary: false,
    limit: None,
    warns: true,
    leaves_out: nothing,
    shows: |_| None,
    write: |_, _, _| Err(unsupported()),
    each: None,
};

/// Of formats that write all of a report.
pub(crate) fn nothing(_: &Report) -> Vec<String> {
    Vec::new()
}

/// A format of what a check found.
#[cfg(feature = "check")]
pub(crate) const fn of_checks(
    name: &'static str,
    extensions: &'static [&'static str],
    about: &'static str,
    write: fn(&Report, &mut dyn Write, Style) -> io::Result<()>,
) -> Format {
    let shows = |request: &Request| matches!(request.view, View::Check(_)).then(|| request.clone());
    Format { name, extensions, about, shows, write, ..BASE }
}

/// What a check found, of its report.
#[cfg(feature = "check")]
pub(crate) fn check_of(report: &Report) -> io::Result<&Check> {
    match report {
        Report::Check(check) => Ok(check),
        _ => Err(unsupported()),
    }
}

/// What formats of rows show.
pub(crate) fn rows(request: &Request) -> Option<Request> {
    (request.view.spec().shown_by == ShownBy::Rows).then(|| request.clone())
}

/// What formats of whole stacks show.
pub(crate) fn all_stacks(request: &Request) -> Option<Request> {
    match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { limit: None, significant: false, .. } | View::Stacks { by_labels: false, limit: None } => {
            Some(request.asking(View::Stacks { by_labels: false, limit: None }))
        }
        _ => None,
    }
}

/// What pictures of the call graph show.
pub(crate) fn graph(request: &Request) -> Option<Request> {
    match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { significant: false, .. } | View::Tree { .. } => {
            Some(request.asking(View::Graph(Default::default())))
        }
        View::Graph(_) => Some(request.clone()),
        _ => None,
    }
}

/// A report of a view that the format does not show: nothing that a request leads to.
pub(crate) fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this format can't show that view")
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{self, Write};
    use std::path::Path;

    use super::Format;

    /// What was written, and in how many pieces: each is a call through a pointer, and what formats spend most on.
    #[derive(Default)]
    pub(crate) struct Calls {
        pub calls: usize,
        pub written: Vec<u8>,
    }

    impl Write for Calls {
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

    #[test]
    fn formats_are_found_by_name_and_by_the_longest_ending() {
        let of = |path: &str| Format::of_path(Path::new(path)).map(|f| f.name);
        for (path, name) in [
            ("a.json", "json"),
            ("a.speedscope.json", "speedscope"),
            ("a.pb.gz", "pprof"),
            ("dir.svg/a", "text"),
            ("A.HTML", "html"),
            ("a.b.csv", "csv"),
        ] {
            assert_eq!(of(path).unwrap(), name, "{path}");
        }
        let error = of("report.xyz").unwrap_err().to_string();
        assert!(error.contains("report.xyz") && error.contains(".svg (svg)"), "{error}");
        for format in Format::all() {
            assert_eq!(Format::named(format.name).unwrap().name, format.name);
            assert_eq!(of(&format!("x.{}", format.extensions[0])).unwrap(), format.name);
        }
        assert!(Format::named("xml").unwrap_err().to_string().contains("speedscope"));
    }
}
