//! Which files belong together, for batches: two directories, two patterns, or a manifest.
//!
//! Whatever is found comes out, in the order of its name: a file without a partner is an error in its place, so that as
//! many results can be counted as there were files to compare. A manifest is read while it is worked on.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Source;
use super::patterns::{Finder, SIGNS, below, inside, is_pipe_or_device, not_waited_for};
use crate::error::{Error, ErrorKind, Result};
use crate::redact::redacted;

/// Two sides under one name.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchItem {
    /// What the sides have in common: a path below both directories, what a pattern's `*` stood for, or as the
    /// manifest says.
    pub name: String,
    /// Where base and new come from, or why there is no pair. What is found here are paths only; those of a manifest
    /// are as it writes them.
    pub sides: Result<(Vec<Source>, Vec<Source>)>,
}

impl BatchItem {
    /// Two sides that are known.
    pub fn new(name: impl Into<String>, base: Vec<Source>, new: Vec<Source>) -> BatchItem {
        BatchItem { name: name.into(), sides: Ok((base, new)) }
    }
}

impl Finder<'_> {
    /// Pairs the files of two directories, see [`Finder::directory_pairs`], or else those of two patterns, see
    /// [`Finder::pattern_pairs`].
    ///
    /// # Errors
    /// Theirs; also if there is no file on either side.
    pub fn pairs(self, base: &str, new: &str) -> Result<Vec<BatchItem>> {
        let is_dir = |text: &str| Path::new(text).is_dir() || text.ends_with('/') && self.objects_of(text).is_some();
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

    /// Pairs files of two directories that have the same path below them. Names that begin with a dot are left out. Links
    /// are followed as by the pattern `**`, see [`Finder::pattern_pairs`].
    ///
    /// # Errors
    /// A directory that can't be read.
    pub fn directory_pairs(self, base: &Path, new: &Path) -> Result<Vec<BatchItem>> {
        Ok(join(self.below(base)?, self.below(new)?, false))
    }

    /// What is below a directory, by its path there.
    fn below(self, dir: &Path) -> Result<BTreeMap<String, PathBuf>> {
        let is_shown = |name: &OsStr| !name.as_encoded_bytes().starts_with(b".");
        if let Some((text, objects)) = dir.to_str().and_then(|text| Some((text, self.objects_of(text)?))) {
            let mut found = BTreeMap::new();
            objects.list(text, &mut |url| {
                let name = url.get(text.len()..).filter(|name| name.split('/').all(|part| is_shown(part.as_ref())));
                if let Some(name) = name.filter(|name| !name.is_empty() && !name.ends_with('/')) {
                    found.insert(name.to_owned(), PathBuf::from(&url));
                }
            })?;
            return Ok(found);
        }
        std::fs::read_dir(dir).map_err(|e| Error::io(e).in_input(&dir.display().to_string()))?;
        let found = inside(below(vec![dir.to_owned()], is_shown)?, is_shown)?;
        let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).display().to_string();
        Ok(found.into_iter().filter(|path| !path.is_dir()).map(|path| (name(&path), path)).collect())
    }

    /// Pairs files of two patterns in which `*` and `?` stand for the same: `main/*/cpu.pb.gz` and `branch/*/cpu.pb.gz`.
    /// `**` stands for any directories. Each part of a pattern looks into each directory once, by its own name if it has
    /// one there, so links to a directory above end where they lead back.
    ///
    /// # Errors
    /// An invalid pattern; patterns with different wildcards; two files for which they stand for the same.
    pub fn pattern_pairs(self, base: &str, new: &str) -> Result<Vec<BatchItem>> {
        let signs = |pattern: &str| pattern.chars().filter(|c| SIGNS.contains(c)).collect::<String>();
        if signs(base) != signs(new) {
            return Err(Error::query(format!(
                "the patterns {base:?} and {new:?} do not have the same wildcards in the same order"
            )));
        }
        // What is named by all of its letters is read whatever it is.
        let is_named = signs(base).is_empty();
        let found = |pattern: &str| -> Result<BTreeMap<String, PathBuf>> {
            let mut found = BTreeMap::new();
            for (name, path) in self.matches(pattern)? {
                if let Some(other) = found.insert(name, path.clone()) {
                    let (one, two) = (other.display(), path.display());
                    return Err(Error::query(format!("the pattern {pattern:?} names {one} and {two} alike")));
                }
            }
            Ok(found)
        };
        Ok(join(found(base)?, found(new)?, is_named))
    }
}

fn join(base: BTreeMap<String, PathBuf>, mut new: BTreeMap<String, PathBuf>, is_named: bool) -> Vec<BatchItem> {
    let both = |base: PathBuf, new: PathBuf| {
        if let Some(found) = [&base, &new].into_iter().find(|path| !is_named && is_pipe_or_device(path)) {
            return Err(not_waited_for().in_input(&found.display().to_string()));
        }
        Ok((vec![Source::Path(base)], vec![Source::Path(new)]))
    };
    let missing = |side: &str, path: &Path| {
        Error::new(ErrorKind::Incompatible, format!("there is no such file on the {side} side"))
            .in_input(&path.display().to_string())
    };
    let mut pairs: BTreeMap<String, Result<(Vec<Source>, Vec<Source>)>> = BTreeMap::new();
    for (name, path) in base {
        let pair = match new.remove(&name) {
            Some(partner) => both(path, partner),
            None => Err(missing("new", &path)),
        };
        pairs.insert(name, pair);
    }
    pairs.extend(new.into_iter().map(|(name, path)| (name, Err(missing("base", &path)))));
    pairs.into_iter().map(|(name, sides)| BatchItem { name, sides }).collect()
}

/// One line of a manifest.
#[derive(Deserialize)]
struct Entry {
    name: Option<String>,
    base: Files,
    new: Files,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Files {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl From<Files> for Vec<Source> {
    fn from(files: Files) -> Vec<Source> {
        match files {
            Files::One(file) => vec![Source::Path(file)],
            Files::Several(files) => files.into_iter().map(Source::Path).collect(),
        }
    }
}

impl Entry {
    fn pair(self) -> BatchItem {
        let (base, new): (Vec<Source>, Vec<Source>) = (self.base.into(), self.new.into());
        let name = self.name.unwrap_or_else(|| new.first().map_or_else(String::new, Source::name));
        BatchItem { name, sides: Ok((base, new)) }
    }
}

/// Reads pairs from a manifest, line by line: CSV with the columns `base`, `new` and perhaps `name`, or lines of JSON
/// with such keys (where a side may be a list). A line that is neither is an error in its place.
///
/// # Errors
/// A file that can't be opened.
pub fn manifest_pairs(path: &Path) -> Result<Box<dyn Iterator<Item = BatchItem> + Send>> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io(e).in_input(&name))?;
    Ok(read_manifest(BufReader::new(file), name, is_json(path)))
}

/// True of a manifest that is lines of JSON, by its name; others are CSV.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["jsonl", "ndjson", "json"].iter().any(|j| e.eq_ignore_ascii_case(j)))
}

fn read_manifest(
    input: impl BufRead + Send + 'static,
    manifest: String,
    json: bool,
) -> Box<dyn Iterator<Item = BatchItem> + Send> {
    let invalid = move |line: u64, why: String| BatchItem {
        name: format!("line {line}"),
        // The error may quote a URL.
        sides: Err(Error::malformed(redacted(&why).into_owned())
            .in_input(&manifest)
            .in_record(|| format!("line {line}"))),
    };
    if json {
        let mut numbered = (1..).zip(Lines(input));
        return Box::new(std::iter::from_fn(move || {
            loop {
                let (line, text) = numbered.next()?;
                match text.map(|text| (serde_json::from_slice::<Entry>(&text), text)) {
                    Ok((_, text)) if text.trim_ascii().is_empty() => {}
                    Ok((Ok(entry), _)) => return Some(entry.pair()),
                    Ok((Err(e), _)) => {
                        return Some(invalid(line, format!("a pair is {{\"base\": ..., \"new\": ...}}: {e}")));
                    }
                    Err(e) => return Some(invalid(line, e.to_string())),
                }
            }
        }));
    }
    let mut reader = csv::Reader::from_reader(input).into_deserialize::<Entry>();
    Box::new(std::iter::from_fn(move || {
        let line = reader.reader().position().line();
        Some(match reader.next()? {
            Ok(entry) => entry.pair(),
            Err(e) => invalid(e.position().map_or(line, csv::Position::line), format!("a pair has base and new: {e}")),
        })
    }))
}

/// Lines of bytes, of at most a mebibyte each: the end of the first that is longer, which is no manifest.
pub(super) struct Lines<R>(pub(super) R);

impl<R: BufRead> Iterator for Lines<R> {
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
    fn manifests_of_both_kinds_and_bad_lines_in_their_place() {
        let some = |name: &str, n| (name.to_owned(), Some(n));
        let csv = "name,base,new\nx,a,b\n\"y,z\",c,d\nshort\nw,e,f\n";
        assert_eq!(
            names(csv, false),
            [some("x", [1, 1]), some("y,z", [1, 1]), ("line 4".into(), None), some("w", [1, 1])]
        );
        assert_eq!(names("base,new\na,b\n", false), [some("b", [1, 1])]);
        let json =
            "{\"base\":\"a\",\"new\":[\"b\",\"c\"],\"name\":\"x\"}\n\n{\"base\":3}\n{\"base\":\"d\",\"new\":\"e\"}";
        assert_eq!(names(json, true), [some("x", [1, 2]), ("line 3".into(), None), some("e", [1, 1])]);
    }
}
