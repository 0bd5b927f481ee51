//! Files that match a pattern, in folders or in an object store, each with the text that the pattern's wildcards
//! matched.
//!
//! `*` and `?` match characters other than `/`, `[...]` matches one of several characters, and `**` matches a directory
//! and everything below it.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;
use regex::Regex;

use super::Source;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::short_lists::{sort_by, sort_by_cached_key};
use pprofdiff_profile::{Error, Result};

/// An object store, which lists and loads files by URL.
pub trait Objects: Sync {
    /// Returns true if this store holds the files of `pattern`, which may also be a URL prefix that ends with a slash.
    fn has(&self, pattern: &str) -> bool;

    /// Calls `each` with the URL of each file that starts with `prefix`, in any order.
    ///
    /// # Errors
    /// Returns the errors of the store.
    fn list(&self, prefix: &str, each: &mut dyn FnMut(String)) -> Result<()>;

    /// Returns the source that loads a file.
    ///
    /// # Errors
    /// Returns an error if `url` is not a valid file URL.
    fn source(&self, url: &str) -> Result<Source>;
}

/// Characters that start a wildcard.
pub const SIGNS: [char; 3] = ['*', '?', '['];

/// Finds files by pattern, in pairs, by keys, or as the builds of a history. Searches folders, and object stores that
/// the caller provides. The results are paths; the path of an object is its URL.
#[derive(Clone, Copy, Default)]
pub struct Finder<'a> {
    objects: Option<&'a dyn Objects>,
}

impl std::fmt::Debug for Finder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").finish_non_exhaustive()
    }
}

/// The text that each wildcard of a pattern matched. The inner `None` marks a `**/` that matched no directory; the
/// outer `None` marks a path whose spelling differs from the pattern.
pub(super) type WildcardTexts = Option<Vec<Option<String>>>;

/// Returns the texts that the wildcards matched, joined by `/`, or the whole path if its spelling differs from the
/// pattern.
pub(super) fn matched_name(texts: Option<&[Option<String>]>, path: &Path) -> String {
    let joined = texts.map(|parts| parts.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/"));
    joined.unwrap_or_else(|| path.display().to_string())
}

impl<'a> Finder<'a> {
    /// Creates a finder that searches folders and `objects`.
    pub fn with_objects(objects: &'a dyn Objects) -> Finder<'a> {
        Finder { objects: Some(objects) }
    }

    /// Returns the object store that holds the files of a pattern, or `None` if they are in a folder.
    pub(super) fn objects_of(self, pattern: &str) -> Option<&'a dyn Objects> {
        self.objects.filter(|objects| objects.has(pattern))
    }

    /// Returns the source that loads a file from the results.
    pub(super) fn source(self, path: PathBuf) -> Result<Source> {
        match path.to_str().and_then(|url| Some((url, self.objects_of(url)?))) {
            Some((url, objects)) => objects.source(url),
            None if is_pipe_or_device(&path) => Err(pipe_or_device_error().in_input(&path.display().to_string())),
            None => Ok(Source::Path(path)),
        }
    }

    /// Returns the files that match a pattern, ordered by path, each with the text that the wildcards matched (joined
    /// by `/`), or with the whole path if its spelling differs from the pattern.
    ///
    /// `**` matches a directory and all directories below it, each once. Links are followed last, after everything that
    /// is reachable without them. A file with several paths therefore gets its real path, and a link to a parent
    /// directory is not followed a second time.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid, a directory can't be read, or objects can't be listed.
    #[cfg(test)]
    pub(super) fn matches(self, pattern: &str) -> Result<Vec<(String, PathBuf)>> {
        let to_named = |(texts, path): (WildcardTexts, PathBuf)| (matched_name(texts.as_deref(), &path), path);
        Ok(self.captured(pattern)?.into_iter().map(to_named).collect())
    }

    /// Returns the same files as [`Finder::matches`], with the text of each wildcard as a separate value.
    pub(super) fn captured(self, pattern: &str) -> Result<Vec<(WildcardTexts, PathBuf)>> {
        let invalid = |e: &dyn std::fmt::Display| Error::query(format!("the pattern {pattern:?} is invalid: {e}"));
        Pattern::new(pattern).map_err(|e| invalid(&e))?;
        // The paths of folders are found part by part, so `a//*` finds `a/b`.
        let parts: PathBuf = Path::new(pattern).components().collect();
        let spelling = if self.objects_of(pattern).is_some() { pattern.into() } else { parts.to_string_lossy() };
        let wildcard_regex = wildcard_regex(&spelling).map_err(|e| invalid(&e))?;
        let texts = |text: &str| {
            let parts = |c: regex::Captures<'_>| c.iter().skip(1).map(|m| m.map(|m| m.as_str().to_owned())).collect();
            wildcard_regex.captures(text).map(parts)
        };
        if let Some(objects) = self.objects_of(pattern) {
            let mut files = Vec::new();
            objects.list(&pattern[..pattern.find(SIGNS).unwrap_or(pattern.len())], &mut |url| {
                if let Some(parts) = texts(&url).filter(|_| !url.ends_with('/')) {
                    files.push((Some(parts), PathBuf::from(url)));
                }
            })?;
            sort_by(&mut files, |(_, a), (_, b)| a.cmp(b));
            return Ok(files);
        }
        let files = in_folders(pattern, &invalid)?;
        Ok(files.into_iter().map(|path| (texts(&path.display().to_string()), path)).collect())
    }
}

/// Returns the files in folders that match a pattern, ordered by path.
fn in_folders(pattern: &str, invalid: &dyn Fn(&dyn std::fmt::Display) -> Error) -> Result<Vec<PathBuf>> {
    let mut paths = vec![PathBuf::new()];
    let mut parts = Path::new(pattern).components().peekable();
    while let Some(part) = parts.next() {
        let text = part.as_os_str().to_str().unwrap_or_default();
        let literal = !matches!(part, Component::Normal(_)) || !text.contains(SIGNS);
        if literal {
            paths.iter_mut().for_each(|path| path.push(part));
            paths.retain(|path| path.symlink_metadata().is_ok());
        } else if text == "**" {
            paths = list_directories(paths, |_| true)?;
            if parts.peek().is_none() {
                paths = list_entries(paths, |_| true)?;
            }
        } else {
            let part = Pattern::new(text).map_err(|e| invalid(&e))?;
            paths = list_entries(paths, |name| name.to_str().is_some_and(|name| part.matches(name)))?;
        }
    }
    paths.retain(|path| !path.is_dir());
    paths.sort();
    Ok(paths)
}

/// Returns the entries of a directory, or nothing if the path is not a directory. An empty path means the current
/// directory.
fn entries(directory: &Path) -> Result<Vec<DirEntry>> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let all = std::fs::read_dir(directory).and_then(Iterator::collect);
    all.map_err(|e| Error::io(e).in_input(&directory.display().to_string()))
}

/// Returns the entries of `directories` whose names satisfy `is_wanted`. Reads each directory once, however many links
/// lead to it, so the time for a pattern is at most its number of parts times the number of files.
pub(super) fn list_entries(mut directories: Vec<PathBuf>, is_wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
    let (mut paths, mut seen) = (Vec::new(), HashSet::default());
    sort_by_cached_key(&mut directories, |path| (path.is_symlink(), path.clone()));
    for directory in directories {
        if is_new(&directory, &mut seen) {
            let names = entries(&directory)?.into_iter().map(|e| e.file_name());
            paths.extend(names.filter(|n| is_wanted(n)).map(|n| directory.join(n)));
        }
    }
    Ok(paths)
}

/// Returns true for a directory that has not been visited under any name.
fn is_new(directory: &Path, seen: &mut HashSet<PathBuf>) -> bool {
    let path = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    path.is_dir() && path.canonicalize().is_ok_and(|real| seen.insert(real))
}

/// Returns the directories among `open` and all directories below them whose names satisfy `is_wanted`. Each directory
/// appears once, however many links lead to it.
pub(super) fn list_directories(mut open: Vec<PathBuf>, is_wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
    let (mut directories, mut seen) = (Vec::new(), HashSet::default());
    // The loop pops from the end. The reverse order visits directories by name, with links last.
    sort_by_cached_key(&mut open, |path| Reverse((path.is_symlink(), path.clone())));
    let mut links: Vec<PathBuf> = Vec::new();
    loop {
        let Some(directory) = open.pop() else {
            if links.is_empty() {
                return Ok(directories);
            }
            sort_by(&mut links, |a, b| b.cmp(a));
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
                _ if !is_wanted(&name) => {}
                Ok(kind) if kind.is_symlink() => links.push(path),
                Ok(kind) if kind.is_dir() => open.push(path),
                _ => {}
            }
        }
        directories.push(directory);
    }
}

/// A piece of a pattern.
enum PatternPiece<'p> {
    /// `**/`.
    Directories,
    /// `**` at the end.
    Everything,
    /// The characters between brackets.
    Class(&'p str),
    /// `*`.
    Name,
    /// `?`.
    Character,
    /// Any other character.
    Literal(char),
}

/// Returns the first piece of a pattern, and its length.
fn first_piece(rest: &str) -> Option<(PatternPiece<'_>, usize)> {
    let first = rest.chars().next()?;
    let class = rest.strip_prefix('[').and_then(|r| r.get(1..)?.find(']').map(|end| &r[..=end]));
    Some(match (first, class) {
        _ if rest.starts_with("**/") => (PatternPiece::Directories, 3),
        _ if rest.starts_with("**") => (PatternPiece::Everything, 2),
        ('[', Some(class)) => (PatternPiece::Class(class), class.len() + 2),
        ('*', _) => (PatternPiece::Name, 1),
        ('?', _) => (PatternPiece::Character, 1),
        (first, _) => (PatternPiece::Literal(first), first.len_utf8()),
    })
}

/// Returns a regular expression that captures the text of each wildcard in the pattern.
fn wildcard_regex(pattern: &str) -> Result<Regex, regex::Error> {
    let mut re = String::from("^");
    let mut rest = pattern;
    while let Some((piece, length)) = first_piece(rest) {
        match piece {
            PatternPiece::Directories => re += "(?:(.*)/)?",
            PatternPiece::Everything => re += "(.*)",
            PatternPiece::Class(class) => {
                let inner =
                    class.strip_prefix('!').map_or_else(|| regex::escape(class), |c| format!("^{}", regex::escape(c)));
                re += &format!("([{}])", inner.replace(r"\-", "-"));
            }
            PatternPiece::Name => re += "([^/]*)",
            PatternPiece::Character => re += "([^/])",
            PatternPiece::Literal(c) => re += &regex::escape(&c.to_string()),
        }
        rest = &rest[length..];
    }
    Regex::new(&(re + "$"))
}

/// Returns the indices of the wildcards in each part of a pattern. A part consists of adjacent wildcards, such as `??`
/// or `[a-f]*`.
pub(super) fn wildcard_parts(pattern: &str) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let (mut rest, mut index, mut continues) = (pattern, 0, false);
    while let Some((piece, length)) = first_piece(rest) {
        let is_wildcard = !matches!(piece, PatternPiece::Literal(_));
        match parts.last_mut().filter(|_| continues) {
            Some(part) if is_wildcard => part.push(index),
            _ if is_wildcard => parts.push(vec![index]),
            _ => {}
        }
        index += usize::from(is_wildcard);
        continues = is_wildcard && !matches!(piece, PatternPiece::Directories);
        rest = &rest[length..];
    }
    parts
}

/// Returns true for a pipe or a device such as a terminal. Reading it could block forever.
pub(super) fn is_pipe_or_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns the error for a pipe or device that a directory or pattern search found. Reading it could block all later
/// files.
pub(super) fn pipe_or_device_error() -> Error {
    Error::io(std::io::Error::other("a pipe or device, which is read only if its path is given directly"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn file_is_found_once_even_if_links_lead_to_it() {
        use std::os::unix::fs::symlink;
        let root = std::env::temp_dir().join(format!("pprofdiff-patterns-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for dir in ["d/a/deep", "d/b", "aside"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["d/1.gz", "d/a/2.gz", "d/a/deep/3.gz", "d/b/4.txt", "aside/5.gz"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        // Each loop of links doubles the number of paths to a file at every level. Linux follows 40 links: 2^40 paths.
        for (to, link) in
            [("..", "d/a/l"), ("..", "d/b/l"), ("../d", "d/0"), ("../aside", "d/z"), ("nowhere", "d/n.gz")]
        {
            symlink(to, root.join(link)).unwrap();
        }
        let matches = |pattern: &str| {
            let pattern = root.join(pattern).display().to_string();
            let path = |(_, path): (String, PathBuf)| path.strip_prefix(&root).unwrap().display().to_string();
            Finder::default().matches(&pattern).unwrap().into_iter().map(path).collect::<Vec<_>>()
        };
        let all = ["d/1.gz", "d/a/2.gz", "d/a/deep/3.gz", "d/n.gz", "d/z/5.gz"];
        assert_eq!(matches("d/**/*.gz"), all);
        assert_eq!(matches("*/**/**/*.gz"), ["aside/5.gz", all[0], all[1], all[2], all[3]]);
        assert_eq!(matches("d/**"), [all[0], all[1], all[2], "d/b/4.txt", all[3], all[4]]);
        // A link is followed if no other path leads to its target.
        assert_eq!(matches("d/**/a/**/?.gz"), [all[1], all[2], "d/a/l/1.gz", "d/a/l/n.gz", "d/a/l/z/5.gz"]);
        assert_eq!(matches("d/a/l/*.gz"), ["d/a/l/1.gz", "d/a/l/n.gz"]);
        assert_eq!(matches("d/none/**/*.gz"), [""; 0]);
        // One wildcard per level: with 20 links to their own directory there would be 20^12 paths.
        std::fs::create_dir_all(root.join("loops")).unwrap();
        std::fs::write(root.join("loops/6.gz"), "").unwrap();
        (0..20).for_each(|i| symlink(".", root.join(format!("loops/l{i}"))).unwrap());
        for (part, first) in [("*/", "l0/"), ("*/l7/", "l0/l7/")] {
            let only = format!("loops/{}6.gz", first.repeat(12));
            assert_eq!(matches(&format!("loops/{}*.gz", part.repeat(12))), [only]);
        }
        // A pattern that names links finds the file under the links' names.
        assert_eq!(matches("loops/l[12]/6.gz"), ["loops/l1/6.gz", "loops/l2/6.gz"]);
        // A directory search works like `**`, except that it skips hidden names.
        for hidden in ["d/.git", "d/b/.x"] {
            std::fs::create_dir_all(root.join(hidden)).unwrap();
            std::fs::write(root.join(hidden).join("7.gz"), "").unwrap();
        }
        let pairs = Finder::default().directory_pairs(&root.join("d"), &root.join("d")).unwrap();
        let named: Vec<&str> = pairs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(named, ["1.gz", "a/2.gz", "a/deep/3.gz", "b/4.txt", "n.gz", "z/5.gz"]);
        assert!(Finder::default().directory_pairs(&root, &root.join("none")).is_err());
        assert!(Finder::default().matches("d/a**").unwrap_err().to_string().contains("invalid"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn adjacent_wildcards_are_one_part() {
        for (pattern, expected) in [
            ("a/*/cpu-*.pb", vec![vec![0], vec![1]]),
            ("a/build-??.pb", vec![vec![0, 1]]),
            ("[a-f]*/**/x-[!0]", vec![vec![0, 1], vec![2], vec![3]]),
            ("**/*.pb", vec![vec![0], vec![1]]),
            ("a.pb", vec![]),
        ] {
            assert_eq!(wildcard_parts(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn wildcards_capture_the_text_they_match() {
        for (pattern, path, expected) in [
            ("a/*/cpu.pb.gz", "a/svc/cpu.pb.gz", Some("svc")),
            ("a/*-?.pb", "a/x.y-1.pb", Some("x.y/1")),
            ("./a/**/c.pb", "./a/x/y/c.pb", Some("x/y")),
            ("a/[0-9]*.pb", "a/12.pb", Some("1/2")),
            ("a/[!x]*.pb", "a/yz.pb", Some("y/z")),
            ("a/*.pb", "a/b/c.pb", None),
            ("a+/(*).pb", "a+/(b).pb", Some("b")),
        ] {
            let captured = wildcard_regex(pattern)
                .unwrap()
                .captures(path)
                .map(|c| c.iter().skip(1).flatten().map(|m| m.as_str()).collect::<Vec<_>>().join("/"));
            assert_eq!(captured.as_deref(), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn wildcards_are_captured_however_the_directories_are_spelled() {
        // Tests run in the folder of the crate.
        for pattern in ["src/input/serv*/mod.rs", "./src/input/serv*/mod.rs", "src/./input//serv*/mod.rs"] {
            let names = Finder::default().matches(pattern).unwrap().into_iter().map(|(name, _)| name);
            assert_eq!(names.collect::<Vec<_>>(), ["er"], "{pattern}");
        }
        let pairs = Finder::default().pattern_pairs("./src/inp*/mod.rs", "./src/inp*/pairs.rs").unwrap();
        assert!(pairs.len() == 1 && pairs[0].name == "ut" && pairs[0].sides.is_ok(), "{pairs:?}");
        let keys = [("folder".to_owned(), "{1}".to_owned())];
        let files = Finder::default().keyed_files("./src/inp*/mod.rs", &keys, &Default::default()).unwrap();
        assert_eq!(files[0].keys["folder"], "ut");
    }

    /// A test store with these URLs that records the listed prefixes.
    struct TestObjects(&'static [&'static str], std::sync::Mutex<Vec<String>>);

    impl Objects for TestObjects {
        fn has(&self, pattern: &str) -> bool {
            pattern.starts_with("s3://")
        }

        fn list(&self, prefix: &str, each: &mut dyn FnMut(String)) -> Result<()> {
            self.1.lock().unwrap().push(prefix.to_owned());
            self.0.iter().filter(|url| url.starts_with(prefix)).for_each(|url| each((*url).to_owned()));
            Ok(())
        }

        fn source(&self, url: &str) -> Result<Source> {
            Ok(Source::Bytes(url.to_owned(), Vec::new()))
        }
    }

    #[test]
    fn objects_and_files_match_the_same_patterns() {
        const KEYS: &[&str] =
            &["b/y.pb", "b/x.pb", "b/deep/er/x.pb", "b/deep/", "b/x.txt", "c/x.pb", "b/.x/y.pb", "c/"];
        let urls: &[&str] = &["s3://b/y.pb", "s3://b/x.pb", "s3://b/deep/er/x.pb", "s3://b/deep/", "s3://b/x.txt"];
        let more: &[&str] = &["s3://c/x.pb", "s3://b/.x/y.pb", "s3://c/"];
        let store = TestObjects(Box::leak([urls, more].concat().into_boxed_slice()), Default::default());
        let finder = Finder::with_objects(&store);
        // The same files in folders are the expected result.
        let root = std::env::temp_dir().join(format!("pprofdiff-objects-{}", std::process::id()));
        for key in KEYS {
            let path = root.join(key);
            std::fs::create_dir_all(if key.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !key.ends_with('/') {
                std::fs::write(path, "").unwrap();
            }
        }
        let captures = |pattern: &str, finder: Finder<'_>, under: &str| {
            let captures = finder.captured(&format!("{under}{pattern}")).unwrap().into_iter();
            let shown = |path: PathBuf| path.to_str().unwrap().strip_prefix(under).unwrap().to_owned();
            captures.map(|(texts, path)| (shown(path), texts)).collect::<Vec<_>>()
        };
        for (pattern, n) in [
            ("b/*.pb", 2),
            ("*/x.pb", 2),
            ("b/**/x.pb", 2),
            ("b/**", 5),
            ("**/*.pb", 5),
            ("b/[!y].*", 2),
            ("b/?.pb", 2),
            ("b/x.pb", 1),
            ("b/none*", 0),
            ("*", 0),
        ] {
            let objects = captures(pattern, finder, "s3://");
            assert_eq!(objects.len(), n, "{pattern}: {objects:?}");
            assert_eq!(objects, captures(pattern, Finder::default(), &format!("{}/", root.display())), "{pattern}");
        }
        assert_eq!(store.1.lock().unwrap()[..3], ["s3://b/", "s3://", "s3://b/"]);
        let named = |base: &str, new: &str, finder: Finder<'_>| {
            let pairs = finder.pairs(base, new).unwrap();
            pairs.into_iter().map(|pair| (pair.name, pair.sides.is_ok())).collect::<Vec<_>>()
        };
        let folder = |name: &str| root.join(name).display().to_string();
        let both = named("s3://b/", "s3://c/", finder);
        assert_eq!((both.len(), &both), (4, &named(&folder("b"), &folder("c"), Finder::default())));
        // A folder and a bucket can be paired.
        assert_eq!(both, named(&folder("b"), "s3://c/", finder));
        std::fs::remove_dir_all(root).unwrap();
    }
}
