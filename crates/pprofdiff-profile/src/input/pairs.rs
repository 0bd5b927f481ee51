//! Which files belong together, for batches: two directories, two patterns, or a manifest.
//!
//! Whatever is found comes out, in the order of its name: a file without a partner is an error in its place, so that as
//! many results can be counted as there were files to compare. A manifest is read while it is worked on.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use glob::Pattern;
use regex::Regex;
use serde::Deserialize;

use super::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::random::HashSet;

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

/// Pairs the files of two directories, see [`directory_pairs`], or else those of two patterns, see [`pattern_pairs`].
///
/// # Errors
/// Theirs; also if there is no file on either side.
pub fn find_pairs(base: &str, new: &str) -> Result<Vec<BatchItem>> {
    let (base_dir, new_dir) = (Path::new(base), Path::new(new));
    let pairs = if base_dir.is_dir() && new_dir.is_dir() {
        directory_pairs(base_dir, new_dir)?
    } else {
        pattern_pairs(base, new)?
    };
    match pairs.is_empty() {
        true => Err(Error::query(format!("there are no files to compare in {base:?} and {new:?}"))),
        false => Ok(pairs),
    }
}

/// Pairs files of two directories that have the same path below them. Names that begin with a dot are left out. Links
/// are followed as by the pattern `**`, see [`pattern_pairs`].
///
/// # Errors
/// A directory that can't be read.
pub fn directory_pairs(base: &Path, new: &Path) -> Result<Vec<BatchItem>> {
    let files = |dir: &Path| -> Result<BTreeMap<String, PathBuf>> {
        std::fs::read_dir(dir).map_err(|e| Error::io(e).in_input(&dir.display().to_string()))?;
        let is_shown = |name: &OsStr| !name.as_encoded_bytes().starts_with(b".");
        let found = inside(below(vec![dir.to_owned()], is_shown)?, is_shown)?;
        let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).display().to_string();
        Ok(found.into_iter().filter(|path| !path.is_dir()).map(|path| (name(&path), path)).collect())
    };
    Ok(join(files(base)?, files(new)?, false))
}

/// Pairs files of two patterns in which `*` and `?` stand for the same: `main/*/cpu.pb.gz` and `branch/*/cpu.pb.gz`.
/// `**` stands for any directories. Each part of a pattern looks into each directory once, by its own name if it has
/// one there, so links to a directory above end where they lead back.
///
/// # Errors
/// An invalid pattern; patterns with different wildcards; two files for which they stand for the same.
pub fn pattern_pairs(base: &str, new: &str) -> Result<Vec<BatchItem>> {
    let signs = |pattern: &str| pattern.chars().filter(|c| "*?[".contains(*c)).collect::<String>();
    if signs(base) != signs(new) {
        return Err(Error::query(format!(
            "the patterns {base:?} and {new:?} do not have the same wildcards in the same order"
        )));
    }
    // What is named by all of its letters is read whatever it is.
    let is_named = signs(base).is_empty();
    let found = |pattern: &str| -> Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        for (name, path) in matches(pattern)? {
            if let Some(other) = found.insert(name, path.clone()) {
                let (one, two) = (other.display(), path.display());
                return Err(Error::query(format!("the pattern {pattern:?} names {one} and {two} alike")));
            }
        }
        Ok(found)
    };
    Ok(join(found(base)?, found(new)?, is_named))
}

/// The files that a pattern matches, in the order of their paths, each with what its signs stood for (joined by `/`).
///
/// `**` stands for a directory and all below it, each once: links are followed when all that is there without them has
/// been seen, so that a file has its own name where it has several, and a link that leads back to where it lies ends
/// there.
///
/// # Errors
/// An invalid pattern; a directory that can't be read.
pub(crate) fn matches(pattern: &str) -> Result<Vec<(String, PathBuf)>> {
    // Paths are tidied up (`./a`), so that the pattern's own letters may not be found in them.
    let named = |(stood_for, path): (Option<Vec<Option<String>>>, PathBuf)| {
        let name = stood_for.map(|parts| parts.into_iter().flatten().collect::<Vec<_>>().join("/"));
        (name.unwrap_or_else(|| path.display().to_string()), path)
    };
    Ok(captured(pattern)?.into_iter().map(named).collect())
}

/// The same, with what each sign stood for by itself.
pub(super) fn captured(pattern: &str) -> Result<Vec<(Option<Vec<Option<String>>>, PathBuf)>> {
    let invalid = |e: &dyn std::fmt::Display| Error::query(format!("the pattern {pattern:?} is invalid: {e}"));
    Pattern::new(pattern).map_err(|e| invalid(&e))?;
    let signs = signs(pattern).map_err(|e| invalid(&e))?;
    let mut found = vec![PathBuf::new()];
    let mut parts = Path::new(pattern).components().peekable();
    while let Some(part) = parts.next() {
        let text = part.as_os_str().to_str().unwrap_or_default();
        let literal = !matches!(part, Component::Normal(_)) || !text.contains(['*', '?', '[']);
        if literal {
            found.iter_mut().for_each(|path| path.push(part));
            found.retain(|path| path.symlink_metadata().is_ok());
        } else if text == "**" {
            found = below(found, |_| true)?;
            if parts.peek().is_none() {
                found = inside(found, |_| true)?;
            }
        } else {
            let part = Pattern::new(text).map_err(|e| invalid(&e))?;
            found = inside(found, |name| name.to_str().is_some_and(|name| part.matches(name)))?;
        }
    }
    found.retain(|path| !path.is_dir());
    found.sort();
    let named = found.into_iter().map(|path| {
        let text = path.display().to_string();
        let captures = signs.captures(&text);
        let parts = |c: regex::Captures<'_>| c.iter().skip(1).map(|m| m.map(|m| m.as_str().to_owned())).collect();
        (captures.map(parts), path)
    });
    Ok(named.collect())
}

/// What is in a directory; nothing if it is none. The empty path is the current one.
fn entries(directory: &Path) -> Result<Vec<DirEntry>> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let all = std::fs::read_dir(directory).and_then(Iterator::collect);
    all.map_err(|e| Error::io(e).in_input(&directory.display().to_string()))
}

/// What is in some directories and has a name that is wanted. Each directory is looked into once, whatever links lead
/// there, so that no pattern takes longer than its parts times the files that there are.
fn inside(mut directories: Vec<PathBuf>, wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::default());
    directories.sort_by_cached_key(|path| (path.is_symlink(), path.clone()));
    for directory in directories {
        if is_new(&directory, &mut seen) {
            let names = entries(&directory)?.into_iter().map(|e| e.file_name());
            found.extend(names.filter(|n| wanted(n)).map(|n| directory.join(n)));
        }
    }
    Ok(found)
}

/// True for a directory that has not been seen under any name.
fn is_new(directory: &Path, seen: &mut HashSet<PathBuf>) -> bool {
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    here.is_dir() && here.canonicalize().is_ok_and(|real| seen.insert(real))
}

/// Those of some paths that are directories, and the directories below them whose names are wanted; each once, whatever
/// leads there.
fn below(mut open: Vec<PathBuf>, wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::default());
    // The last is taken first: so in the order of their names, those that are links after all others.
    open.sort_by_cached_key(|path| Reverse((path.is_symlink(), path.clone())));
    let mut links: Vec<PathBuf> = Vec::new();
    loop {
        let Some(directory) = open.pop() else {
            if links.is_empty() {
                return Ok(found);
            }
            links.sort_by(|a, b| b.cmp(a));
            open = std::mem::take(&mut links);
            continue;
        };
        if !is_new(&directory, &mut seen) {
            continue;
        }
        for entry in entries(&directory)? {
            let name = entry.file_name();
            let path = directory.join(&name);
            match entry.file_type() {
                _ if !wanted(&name) => {}
                Ok(kind) if kind.is_symlink() => links.push(path),
                Ok(kind) if kind.is_dir() => open.push(path),
                _ => {}
            }
        }
        found.push(directory);
    }
}

/// What captures what the pattern's signs stand for.
fn signs(pattern: &str) -> Result<Regex, regex::Error> {
    let mut re = String::from("^");
    let mut rest = pattern.strip_prefix("./").unwrap_or(pattern);
    while let Some(c) = rest.chars().next() {
        let class = rest.strip_prefix('[').and_then(|r| r.get(1..)?.find(']').map(|end| &r[..=end]));
        let taken = match (c, class) {
            _ if rest.starts_with("**/") => {
                re += "(?:(.*)/)?";
                3
            }
            _ if rest.starts_with("**") => {
                re += "(.*)";
                2
            }
            ('[', Some(class)) => {
                let inner =
                    class.strip_prefix('!').map_or_else(|| regex::escape(class), |c| format!("^{}", regex::escape(c)));
                re += &format!("([{}])", inner.replace(r"\-", "-"));
                class.len() + 2
            }
            _ => {
                match c {
                    '*' => re += "([^/]*)",
                    '?' => re += "([^/])",
                    c => re += &regex::escape(&c.to_string()),
                }
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Regex::new(&(re + "$"))
}

/// True of what is neither file nor folder: a pipe or a terminal may be waited for for ever.
pub(crate) fn is_pipe_or_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The error of such a file that was found by a directory or a pattern: waiting would stop all that come after it.
pub(crate) fn not_waited_for() -> Error {
    Error::io(std::io::Error::other("a pipe or device, which is read only if it is named itself"))
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
        sides: Err(Error::malformed(why).in_input(&manifest).in_record(|| format!("line {line}"))),
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

    #[test]
    #[cfg(unix)]
    fn a_file_is_found_once_whatever_links_lead_to_it() {
        use std::os::unix::fs::symlink;
        let root = std::env::temp_dir().join(format!("pprofdiff-patterns-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for dir in ["d/a/deep", "d/b", "aside"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["d/1.gz", "d/a/2.gz", "d/a/deep/3.gz", "d/b/4.txt", "aside/5.gz"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        // Of the loops each doubles the paths to a file for each level that the system follows: 2^40 in all.
        for (to, link) in
            [("..", "d/a/l"), ("..", "d/b/l"), ("../d", "d/0"), ("../aside", "d/z"), ("nowhere", "d/n.gz")]
        {
            symlink(to, root.join(link)).unwrap();
        }
        let found = |pattern: &str| {
            let pattern = root.join(pattern).display().to_string();
            let path = |(_, path): (String, PathBuf)| path.strip_prefix(&root).unwrap().display().to_string();
            matches(&pattern).unwrap().into_iter().map(path).collect::<Vec<_>>()
        };
        let all = ["d/1.gz", "d/a/2.gz", "d/a/deep/3.gz", "d/n.gz", "d/z/5.gz"];
        assert_eq!(found("d/**/*.gz"), all);
        assert_eq!(found("*/**/**/*.gz"), ["aside/5.gz", all[0], all[1], all[2], all[3]]);
        assert_eq!(found("d/**"), [all[0], all[1], all[2], "d/b/4.txt", all[3], all[4]]);
        // A link is followed where nothing else leads there.
        assert_eq!(found("d/**/a/**/?.gz"), [all[1], all[2], "d/a/l/1.gz", "d/a/l/n.gz", "d/a/l/z/5.gz"]);
        assert_eq!(found("d/a/l/*.gz"), ["d/a/l/1.gz", "d/a/l/n.gz"]);
        assert_eq!(found("d/none/**/*.gz"), [""; 0]);
        // With one sign a level: 20 links to where they lie would be 20^12 paths.
        std::fs::create_dir_all(root.join("loops")).unwrap();
        std::fs::write(root.join("loops/6.gz"), "").unwrap();
        (0..20).for_each(|i| symlink(".", root.join(format!("loops/l{i}"))).unwrap());
        for (part, first) in [("*/", "l0/"), ("*/l7/", "l0/l7/")] {
            let only = format!("loops/{}6.gz", first.repeat(12));
            assert_eq!(found(&format!("loops/{}*.gz", part.repeat(12))), [only]);
        }
        // What is named has the names that it is given.
        assert_eq!(found("loops/l[12]/6.gz"), ["loops/l1/6.gz", "loops/l2/6.gz"]);
        // Directories are gone through like `**`, but for hidden names.
        for hidden in ["d/.git", "d/b/.x"] {
            std::fs::create_dir_all(root.join(hidden)).unwrap();
            std::fs::write(root.join(hidden).join("7.gz"), "").unwrap();
        }
        let pairs = directory_pairs(&root.join("d"), &root.join("d")).unwrap();
        let named: Vec<&str> = pairs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(named, ["1.gz", "a/2.gz", "a/deep/3.gz", "b/4.txt", "n.gz", "z/5.gz"]);
        assert!(directory_pairs(&root, &root.join("none")).is_err());
        assert!(matches("d/a**").unwrap_err().to_string().contains("invalid"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn signs_capture_what_they_stand_for() {
        for (pattern, path, wanted) in [
            ("a/*/cpu.pb.gz", "a/svc/cpu.pb.gz", Some("svc")),
            ("a/*-?.pb", "a/x.y-1.pb", Some("x.y/1")),
            ("./a/**/c.pb", "a/x/y/c.pb", Some("x/y")),
            ("a/[0-9]*.pb", "a/12.pb", Some("1/2")),
            ("a/[!x]*.pb", "a/yz.pb", Some("y/z")),
            ("a/*.pb", "a/b/c.pb", None),
            ("a+/(*).pb", "a+/(b).pb", Some("b")),
        ] {
            let captured = signs(pattern)
                .unwrap()
                .captures(path)
                .map(|c| c.iter().skip(1).flatten().map(|m| m.as_str()).collect::<Vec<_>>().join("/"));
            assert_eq!(captured.as_deref(), wanted, "{pattern} on {path}");
        }
    }
}
