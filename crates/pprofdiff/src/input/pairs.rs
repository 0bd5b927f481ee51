//! Pairs files for a batch: from two directories, two patterns, or a manifest.
//!
//! Pairs from directories and patterns are ordered by name. A file without a partner becomes an error at its position,
//! so that no file is missing from the results. A manifest is read lazily, while its pairs are compared in its order.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Source;
use super::patterns::{
    Finder, SIGNS, is_pipe_or_device, list_directories, list_entries, matched_name, pipe_or_device_error,
};
use pprofdiff_profile::text::redacted;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// Base and new side under one name.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchItem {
    /// The part of the path that both sides share: the path below both directories, or the text that the patterns'
    /// wildcards matched. For a manifest, the name that it gives, or else the first file of the new side. For groups,
    /// the values of the keys that both sides share.
    pub name: String,
    /// The parts that vary between the pairs, as names and values. All pairs of a batch have the same names: the names
    /// of groups' keys (with `_base` and `_new` for the keys that differ between the sides), `key_1` for the first
    /// wildcard of a pattern, or the keys of a store. Empty for directories and manifests.
    pub keys: Vec<(String, String)>,
    /// True if only one of the sides has files. The pair is then an error.
    pub lacks_partner: bool,
    /// The sources of base and new, or the reason why there is no pair. Sources that this module finds are paths only;
    /// a manifest's paths are passed on as written, so they may be URLs.
    pub sides: Result<(Vec<Source>, Vec<Source>)>,
}

impl BatchItem {
    /// Creates a pair from two known sides.
    pub fn new(name: impl Into<String>, base: Vec<Source>, new: Vec<Source>) -> BatchItem {
        BatchItem::of_result(name.into(), Ok((base, new)))
    }

    /// Creates a pair, or the reason why there is none.
    #[doc(hidden)]
    pub fn of_result(name: String, sides: Result<(Vec<Source>, Vec<Source>)>) -> BatchItem {
        BatchItem { name, keys: Vec::new(), lacks_partner: false, sides }
    }

    /// Sets the keys.
    #[doc(hidden)]
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<(String, String)>) -> BatchItem {
        self.keys = keys;
        self
    }

    /// Marks a pair of which only one side has files.
    #[doc(hidden)]
    #[must_use]
    pub fn without_partner(mut self, lacks_partner: bool) -> BatchItem {
        self.lacks_partner = lacks_partner;
        self
    }
}

/// Returns the keys of a pattern's wildcards: `key_1` for the first one, as `{1}` in keys of groups. A wildcard `**/`
/// that matched no directory has an empty value.
fn wildcard_keys(texts: &[Option<String>]) -> Vec<(String, String)> {
    let key = |(number, text): (usize, &Option<String>)| (format!("key_{number}"), text.clone().unwrap_or_default());
    (1..).zip(texts).map(key).collect()
}

impl Finder<'_> {
    /// Pairs the files of two directories (see [`Finder::directory_pairs`]), or otherwise the files of two patterns
    /// (see [`Finder::pattern_pairs`]).
    ///
    /// # Errors
    /// Returns the errors of these functions, and an error if neither side has a file.
    pub fn pairs(self, base: &str, new: &str) -> Result<Vec<BatchItem>> {
        let is_dir = |text: &str| Path::new(text).is_dir() || text.ends_with('/') && self.objects_of(text).is_some();
        let is_missing = |text: &&str| {
            !text.contains(['*', '?', '[']) && self.objects_of(text).is_none() && !Path::new(text).exists()
        };
        if let Some(missing) = [base, new].iter().copied().find(is_missing) {
            return Err(Error::query("there is no such file or folder").in_input(missing));
        }
        let pairs = if is_dir(base) && is_dir(new) {
            self.directory_pairs(Path::new(base), Path::new(new))?
        } else {
            self.pattern_pairs(base, new)?
        };
        match pairs.is_empty() {
            true => Err(Error::query(format!("there are no files to compare in {base:?} and {new:?}"))),
            false => Ok(pairs),
        }
    }

    /// Pairs the files of two directories that have the same path below their directory. Skips names that begin with a
    /// dot. Follows links like the pattern `**`, see [`Finder::pattern_pairs`].
    ///
    /// # Errors
    /// Returns an error if a directory can't be read.
    pub fn directory_pairs(self, base: &Path, new: &Path) -> Result<Vec<BatchItem>> {
        Ok(join(self.list_below(base)?, self.list_below(new)?, false))
    }

    /// Lists the files below a directory by their paths relative to it.
    fn list_below(self, dir: &Path) -> Result<BTreeMap<String, PathBuf>> {
        let is_shown = |name: &OsStr| !name.as_encoded_bytes().starts_with(b".");
        if let Some((text, objects)) = dir.to_str().and_then(|text| Some((text, self.objects_of(text)?))) {
            let mut files = BTreeMap::new();
            objects.list(text, &mut |url| {
                let name = url.get(text.len()..).filter(|name| name.split('/').all(|part| is_shown(part.as_ref())));
                if let Some(name) = name.filter(|name| !name.is_empty() && !name.ends_with('/')) {
                    files.insert(name.to_owned(), PathBuf::from(&url));
                }
            })?;
            return Ok(files);
        }
        std::fs::read_dir(dir).map_err(|e| Error::io(e).in_input(&dir.display().to_string()))?;
        let files = list_entries(list_directories(vec![dir.to_owned()], is_shown)?, is_shown)?;
        let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).display().to_string();
        Ok(files.into_iter().filter(|path| !path.is_dir()).map(|path| (name(&path), path)).collect())
    }

    /// Pairs the files of two patterns if the wildcards match the same text in both: `main/*/cpu.pb.gz` and
    /// `branch/*/cpu.pb.gz`. `**` matches any number of directories. Each part of a pattern reads each directory once,
    /// under its real name if the directory has one at this level. A link to a parent directory therefore cannot loop.
    ///
    /// # Errors
    /// Returns an error if a pattern is invalid, if the patterns have different wildcards, or if the wildcards match
    /// the same text for two files.
    pub fn pattern_pairs(self, base: &str, new: &str) -> Result<Vec<BatchItem>> {
        let wildcards = |pattern: &str| pattern.chars().filter(|c| SIGNS.contains(c)).collect::<String>();
        if wildcards(base) != wildcards(new) {
            return Err(Error::query(format!(
                "the patterns {base:?} and {new:?} do not have the same wildcards in the same order"
            )));
        }
        // A path without wildcards is read whatever it is, even a pipe.
        let is_literal = wildcards(base).is_empty();
        let mut keys: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut matched_files = |pattern: &str| -> Result<BTreeMap<String, PathBuf>> {
            let mut files = BTreeMap::new();
            for (texts, path) in self.captured(pattern)? {
                let name = matched_name(texts.as_deref(), &path);
                keys.insert(name.clone(), wildcard_keys(texts.as_deref().unwrap_or_default()));
                if let Some(other) = files.insert(name, path.clone()) {
                    let (one, two) = (other.display(), path.display());
                    return Err(Error::query(format!(
                        "the wildcards of {pattern:?} match the same text in {one} and {two}"
                    )));
                }
            }
            Ok(files)
        };
        let mut pairs = join(matched_files(base)?, matched_files(new)?, is_literal);
        pairs.iter_mut().for_each(|pair| pair.keys = keys.remove(&pair.name).unwrap_or_default());
        Ok(pairs)
    }
}

fn join(base: BTreeMap<String, PathBuf>, mut new: BTreeMap<String, PathBuf>, is_literal: bool) -> Vec<BatchItem> {
    let both = |base: PathBuf, new: PathBuf| {
        if let Some(special_file) = [&base, &new].into_iter().find(|path| !is_literal && is_pipe_or_device(path)) {
            return Err(pipe_or_device_error().in_input(&special_file.display().to_string()));
        }
        Ok((vec![Source::Path(base)], vec![Source::Path(new)]))
    };
    let missing = |side: &str, path: &Path| {
        Error::new(ErrorKind::Incompatible, format!("there is no such file on the {side} side"))
            .in_input(&path.display().to_string())
    };
    let mut pairs: BTreeMap<String, BatchItem> = BTreeMap::new();
    let alone = |name: &str, side: &str, path: &Path| {
        BatchItem::of_result(name.to_owned(), Err(missing(side, path))).without_partner(true)
    };
    for (name, path) in base {
        let pair = match new.remove(&name) {
            Some(partner) => BatchItem::of_result(name.clone(), both(path, partner)),
            None => alone(&name, "new", &path),
        };
        pairs.insert(name, pair);
    }
    for (name, path) in new {
        let pair = alone(&name, "base", &path);
        pairs.insert(name, pair);
    }
    pairs.into_values().collect()
}

/// A line of a manifest.
#[derive(Deserialize)]
struct ManifestLine {
    name: Option<String>,
    base: ManifestSide,
    new: ManifestSide,
}

/// A line of a CSV manifest. An untagged [`ManifestSide`] would take a file name such as `007` for a number.
#[derive(Deserialize)]
struct CsvManifestLine {
    name: Option<String>,
    base: PathBuf,
    new: PathBuf,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ManifestSide {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl From<ManifestSide> for Vec<Source> {
    fn from(files: ManifestSide) -> Vec<Source> {
        match files {
            ManifestSide::One(file) => vec![Source::Path(file)],
            ManifestSide::Several(files) => files.into_iter().map(Source::Path).collect(),
        }
    }
}

impl ManifestLine {
    fn pair(self) -> BatchItem {
        let (base, new): (Vec<Source>, Vec<Source>) = (self.base.into(), self.new.into());
        let name = self.name.unwrap_or_else(|| new.first().map_or_else(String::new, Source::name));
        BatchItem::new(name, base, new)
    }
}

/// Reads pairs from a manifest, line by line. The manifest is CSV with the columns `base`, `new` and optionally `name`,
/// or JSON lines with these keys (a side may be a list). An invalid line becomes an error at its position.
///
/// # Errors
/// Returns an error if the file can't be opened.
pub fn manifest_pairs(path: &Path) -> Result<Box<dyn Iterator<Item = BatchItem> + Send>> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io(e).in_input(&name))?;
    Ok(read_manifest(BufReader::new(file), name, is_json(path)))
}

/// Returns true if the extension of the manifest's name means JSON lines. All other manifests are CSV.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["jsonl", "ndjson", "json"].iter().any(|j| e.eq_ignore_ascii_case(j)))
}

fn read_manifest(
    input: impl BufRead + Send + 'static,
    manifest: String,
    json: bool,
) -> Box<dyn Iterator<Item = BatchItem> + Send> {
    let invalid = move |line: u64, why: String| {
        // The error may quote a URL with a password.
        let error = Error::malformed(redacted(&why).into_owned()).in_input(&manifest);
        BatchItem::of_result(format!("line {line}"), Err(error.in_record(|| format!("line {line}"))))
    };
    if json {
        let mut numbered = (1..).zip(ManifestLines(input));
        return Box::new(std::iter::from_fn(move || {
            loop {
                let (line, text) = numbered.next()?;
                match text.map(|text| (serde_json::from_slice::<ManifestLine>(&text), text)) {
                    Ok((_, text)) if text.trim_ascii().is_empty() => {}
                    Ok((Ok(entry), _)) => return Some(entry.pair()),
                    Ok((Err(e), _)) => {
                        return Some(invalid(line, format!("expected {{\"base\": ..., \"new\": ...}}: {e}")));
                    }
                    Err(e) => return Some(invalid(line, e.to_string())),
                }
            }
        }));
    }
    let mut reader = csv::Reader::from_reader(input).into_deserialize::<CsvManifestLine>();
    Box::new(std::iter::from_fn(move || {
        let line = reader.reader().position().line();
        Some(match reader.next()? {
            Ok(CsvManifestLine { name, base, new }) => {
                ManifestLine { name, base: ManifestSide::One(base), new: ManifestSide::One(new) }.pair()
            }
            Err(e) => invalid(
                e.position().map_or(line, csv::Position::line),
                format!("expected the columns base and new: {e}"),
            ),
        })
    }))
}

/// An iterator over lines of bytes. It splits a line after one mebibyte to bound the memory; no real manifest has a
/// line that long.
pub(super) struct ManifestLines<R>(pub(super) R);

impl<R: BufRead> Iterator for ManifestLines<R> {
    type Item = std::io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        const MAX_LINE_BYTES: u64 = 1 << 20;
        let mut line = Vec::new();
        match self.0.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(line)),
            Err(e) => Some(Err(e)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(text: &'static str, json: bool) -> Vec<(String, Option<[usize; 2]>)> {
        let pairs = read_manifest(text.as_bytes(), "m".to_owned(), json);
        pairs.map(|p| (p.name, p.sides.ok().map(|(base, new)| [base.len(), new.len()]))).collect()
    }

    #[test]
    fn csv_and_json_manifests_report_bad_lines_at_their_position() {
        let some = |name: &str, n| (name.to_owned(), Some(n));
        let csv = "name,base,new\nx,a,b\n\"y,z\",c,d\nshort\nw,e,f\n";
        assert_eq!(
            names(csv, false),
            [some("x", [1, 1]), some("y,z", [1, 1]), ("line 4".into(), None), some("w", [1, 1])]
        );
        assert_eq!(names("base,new\na,b\n", false), [some("b", [1, 1])]);
        // A name that looks like a number is a file name.
        assert_eq!(names("base,new\n12,007\n", false), [some("007", [1, 1])]);
        let json =
            "{\"base\":\"a\",\"new\":[\"b\",\"c\"],\"name\":\"x\"}\n\n{\"base\":3}\n{\"base\":\"d\",\"new\":\"e\"}";
        assert_eq!(names(json, true), [some("x", [1, 2]), ("line 3".into(), None), some("e", [1, 1])]);
    }
}
