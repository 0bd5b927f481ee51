//! The table of formats and views that a frontend offers. A frontend composes it once: the standard formats and views
//! of this crate, and those of the crates above it.

use std::io::{self, Write};
use std::path::Path;

use crate::format::{self, Each, EachHeader, Format, Item};
use crate::request::Request;
use crate::style::Style;
use crate::table::Table;
use crate::view::{self, View, ViewOptions, ViewSpec};
use pprofdiff::{Error, Result};

/// The formats and views of a frontend, in the order of help.
#[derive(Debug, Clone)]
pub struct Registry {
    formats: Vec<&'static Format>,
    views: Vec<&'static ViewSpec>,
}

/// The formats and views that a crate above this one adds to a [`Registry`].
#[derive(Debug)]
pub struct Extension {
    /// The formats, each with the name of the format that it precedes in lists. A format goes to the end if the
    /// registry has no format with that name.
    pub formats: &'static [(&'static Format, &'static str)],
    /// The views, each with the name of the view that it precedes in lists, as in `formats`.
    pub views: &'static [(&'static ViewSpec, &'static str)],
}

impl Registry {
    /// Returns the formats and views of this crate.
    pub fn standard() -> Registry {
        Registry { formats: format::STANDARD.to_vec(), views: view::STANDARD.to_vec() }
    }

    /// Adds the formats and views of a crate above this one.
    #[must_use]
    pub fn with(mut self, extension: &Extension) -> Registry {
        for (format, next) in extension.formats {
            let place = self.formats.iter().position(|f| f.name == *next).unwrap_or(self.formats.len());
            self.formats.insert(place, format);
        }
        for (view, next) in extension.views {
            let place = self.views.iter().position(|v| v.name == *next).unwrap_or(self.views.len());
            self.views.insert(place, view);
        }
        self
    }

    /// Returns all formats.
    pub fn formats(&self) -> &[&'static Format] {
        &self.formats
    }

    /// Returns all views.
    pub fn views(&self) -> &[&'static ViewSpec] {
        &self.views
    }

    /// Returns the format with this name.
    ///
    /// # Errors
    /// Fails on an unknown name. The error lists all names.
    pub fn format(&self, name: &str) -> Result<&'static Format> {
        self.formats.iter().copied().find(|f| f.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.formats.iter().map(|f| f.name).collect();
            Error::query(format!("unknown format {name:?}; expected one of {}", names.join(", ")))
        })
    }

    /// Returns the format for a file's extension, ignoring case. The longest matching extension counts, so
    /// `x.speedscope.json` is not JSON. A name without an extension means text.
    ///
    /// # Errors
    /// Fails on an unknown extension. The error lists the usual extension of each format.
    pub fn format_of_path(&self, path: &Path) -> Result<&'static Format> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let all = self.formats.iter().flat_map(|&f| f.extensions.iter().map(move |&e| (e, f)));
        let ends = all.filter(|(e, _)| name.strip_suffix(e).is_some_and(|rest| rest.ends_with('.')));
        if let Some((_, format)) = ends.max_by_key(|(e, _)| e.len()) {
            return Ok(format);
        }
        if path.extension().is_none() {
            return self.format("text");
        }
        let endings: Vec<String> = self.formats.iter().map(|f| format!(".{} ({})", f.extensions[0], f.name)).collect();
        let path = path.display().to_string();
        Err(Error::query(format!("unknown file extension; name a format, or use one of {}", endings.join(", ")))
            .in_input(&path))
    }

    /// Restores the view of a deserialized request, if it is a view of a crate above the report.
    ///
    /// # Errors
    /// Fails if the registry does not have the view, and if the view does not have these options.
    pub fn resolve(&self, request: Request) -> Result<Request> {
        match &request.view {
            View::Extension(view) => Ok(Request { view: View::Extension(view.resolved(&self.views)?), ..request }),
            _ => Ok(request),
        }
    }

    /// Returns the view with this name.
    pub fn view(&self, name: &str) -> Option<&'static ViewSpec> {
        self.views.iter().copied().find(|spec| spec.name == name)
    }

    /// Parses a view of a batch: a name such as `top`, or `peek=RE` for a view with an expression.
    ///
    /// # Errors
    /// Fails if a batch does not accept the view, if the expression of a view with one is missing or empty, and if a
    /// view without one gets an expression. The error lists the accepted views.
    pub fn pair_view(&self, text: &str) -> Result<View> {
        let (name, regex) = text.split_once('=').unwrap_or((text, ""));
        let is_named =
            |spec: &&&ViewSpec| spec.of_pairs && spec.name == name && spec.matched.is_some() != regex.is_empty();
        match self.views.iter().find(is_named).and_then(|spec| spec.view) {
            Some(view) => Ok(view(ViewOptions { regex: regex.to_owned(), ..ViewOptions::default() })),
            None => Err(Error::query(format!("unknown view {text:?}; expected one of {}", self.pair_view_names()))),
        }
    }

    /// Returns the names of the views that a batch accepts, separated by commas.
    pub fn pair_view_names(&self) -> String {
        let views = self.views.iter().filter(|spec| spec.of_pairs);
        let name =
            |spec: &&ViewSpec| if spec.matched.is_some() { format!("{}=RE", spec.name) } else { spec.name.to_owned() };
        views.map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Writes the tables of many pairs in one format.
#[derive(Debug)]
pub struct EachWriter {
    each: &'static Each,
    style: Style,
    /// The columns, once they are written.
    header: Option<WrittenHeader>,
    /// The pairs that failed before the header was written.
    waiting: Vec<WaitingPair>,
}

/// The columns of many pairs that were written.
#[derive(Debug)]
struct WrittenHeader {
    keys: Vec<String>,
    /// The number of columns of the first table.
    columns: usize,
}

/// A pair that failed before the columns are known.
#[derive(Debug)]
struct WaitingPair {
    name: String,
    keys: Vec<(String, String)>,
    error: String,
}

impl EachWriter {
    /// Creates a writer.
    ///
    /// # Errors
    /// Fails if the format does not support many pairs. The error lists the formats of `registry` that do.
    pub fn new(format: &'static Format, style: Style, registry: &Registry) -> Result<EachWriter> {
        match &format.each {
            Some(each) => Ok(EachWriter { each, style, header: None, waiting: Vec::new() }),
            None => {
                let can = registry.formats().iter().filter(|f| f.each.is_some()).map(|f| f.name);
                let can = can.collect::<Vec<_>>().join(", ");
                Err(Error::query(format!("many pairs can't be written as {}; supported formats: {can}", format.name)))
            }
        }
    }

    /// Returns the default maximum number of rows per pair.
    pub fn limit(&self) -> Option<usize> {
        self.each.limit
    }

    /// Writes the result of one pair. `keys` are its keys ([`BatchItem::keys`](pprofdiff::input::BatchItem::keys)). A
    /// format with a header has columns for the keys of the first table and of the failed pairs before it.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write(
        &mut self,
        name: &str,
        keys: &[(String, String)],
        result: Result<&Table, &Error>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.each.header.is_some() && self.header.is_none() {
            match result {
                Ok(table) => self.begin(keys, Some(table), out)?,
                Err(error) => {
                    let (name, error) = (name.to_owned(), error.to_string());
                    self.waiting.push(WaitingPair { name, keys: keys.to_vec(), error });
                    return Ok(());
                }
            }
        }
        self.write_pair(name, keys, result, out)
    }

    /// Writes the pairs that still wait for a header, if no pair has a table. Call it after the last pair.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.waiting.is_empty() { Ok(()) } else { self.begin(&[], None, out) }
    }

    /// Writes the header and the waiting pairs.
    fn begin(&mut self, keys: &[(String, String)], table: Option<&Table>, out: &mut dyn Write) -> io::Result<()> {
        let Some(write_header) = self.each.header else { return Ok(()) };
        let waiting = std::mem::take(&mut self.waiting);
        let mut names: Vec<String> = Vec::new();
        for (name, _) in keys.iter().chain(waiting.iter().flat_map(|pair| &pair.keys)) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        write_header(&EachHeader { keys: &names, table }, out, self.style)?;
        self.header = Some(WrittenHeader { keys: names, columns: table.map_or(0, |table| table.columns.len()) });
        for WaitingPair { name, keys, error } in &waiting {
            self.write_pair(name, keys, Err(&Error::query(error.as_str())), out)?;
        }
        Ok(())
    }

    fn write_pair(
        &self,
        name: &str,
        keys: &[(String, String)],
        result: Result<&Table, &Error>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(WrittenHeader { keys: names, columns }) = &self.header else {
            return (self.each.write)(&Item { name, keys, result, columns: 0 }, out, self.style);
        };
        let value = |name: &String| keys.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        let keys: Vec<_> = names.iter().map(|name| (name.clone(), value(name).unwrap_or_default())).collect();
        (self.each.write)(&Item { name, keys: &keys, result, columns: *columns }, out, self.style)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::{Extension, Registry};
    use crate::format::Format;

    #[test]
    fn formats_are_found_by_name_and_by_the_longest_ending() {
        let registry = Registry::standard();
        let name_for_path = |path: &str| registry.format_of_path(Path::new(path)).map(|f| f.name);
        for (path, name) in [
            ("a.json", "json"),
            ("a.speedscope.json", "speedscope"),
            ("a.pb.gz", "pprof"),
            ("dir.svg/a", "text"),
            ("A.MD", "markdown"),
            ("a.b.csv", "csv"),
        ] {
            assert_eq!(name_for_path(path).unwrap(), name, "{path}");
        }
        let error = name_for_path("report.xyz").unwrap_err().to_string();
        assert!(error.contains("report.xyz") && error.contains(".svg (svg)"), "{error}");
        for format in registry.formats() {
            assert_eq!(registry.format(format.name).unwrap().name, format.name);
            assert_eq!(name_for_path(&format!("x.{}", format.extensions[0])).unwrap(), format.name);
        }
        assert!(registry.format("xml").unwrap_err().to_string().contains("speedscope"));
    }

    #[test]
    fn an_extension_is_listed_before_the_format_that_it_names() {
        static POEM: Format = Format { name: "poem", extensions: &["poem"], ..crate::format::BASE };
        static POEMS: Extension = Extension { formats: &[(&POEM, "json"), (&POEM, "unknown")], views: &[] };
        let registry = Registry::standard().with(&POEMS);
        let names: Vec<&str> = registry.formats().iter().map(|f| f.name).collect();
        assert_eq!((&names[..3], names.last()), (["text", "poem", "json"].as_slice(), Some(&"poem")));
        assert_eq!(registry.format_of_path(Path::new("a.POEM")).unwrap().name, "poem");
    }
}
