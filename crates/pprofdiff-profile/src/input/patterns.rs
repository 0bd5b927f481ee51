//! The files that a pattern matches, in folders or in an object store, each with what the pattern's signs stood for.
//!
//! `*` and `?` stand for letters other than `/`, `[...]` for one of some, `**` for a directory and all below it.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;
use regex::Regex;

use super::Source;
use crate::error::{Error, Result};
use crate::random::HashSet;

/// What lists and loads files that lie in no folder, by their URLs: an object store.
pub trait Objects: Sync {
    /// True of a pattern, or of what ends with a slash, of its files.
    fn has(&self, pattern: &str) -> bool;

    /// Names each file whose URL begins so, in any order.
    ///
    /// # Errors
    /// Those of who is asked.
    fn list(&self, prefix: &str, found: &mut dyn FnMut(String)) -> Result<()>;

    /// What loads one of them.
    ///
    /// # Errors
    /// A URL that can't be a file's.
    fn source(&self, url: &str) -> Result<Source>;
}

/// What begins what stands for something in a pattern.
pub const SIGNS: [char; 3] = ['*', '?', '['];

/// Finds files by patterns, in pairs, by keys, or as the builds of a history: in folders, and among the objects that a caller
/// can list. What it finds are paths, of objects their URLs.
#[derive(Clone, Copy, Default)]
pub struct Finder<'a> {
    objects: Option<&'a dyn Objects>,
}

/// What each sign of a pattern stood for; `None` of a sign that stood for nothing, and of a path in other letters.
pub(super) type StoodFor = Option<Vec<Option<String>>>;

impl<'a> Finder<'a> {
    /// Finds files in folders, and those that the objects have.
    pub fn with_objects(objects: &'a dyn Objects) -> Finder<'a> {
        Finder { objects: Some(objects) }
    }

    /// Who has the files of a pattern, if they lie in no folder.
    pub(super) fn objects_of(self, pattern: &str) -> Option<&'a dyn Objects> {
        self.objects.filter(|objects| objects.has(pattern))
    }

    /// What loads a file that was found.
    pub(super) fn source(self, path: PathBuf) -> Result<Source> {
        match path.to_str().and_then(|url| Some((url, self.objects_of(url)?))) {
            Some((url, objects)) => objects.source(url),
            None if is_pipe_or_device(&path) => Err(not_waited_for().in_input(&path.display().to_string())),
            None => Ok(Source::Path(path)),
        }
    }

    /// The files that a pattern matches, in the order of their paths, each with what its signs stood for (joined by `/`).
    ///
    /// `**` stands for a directory and all below it, each once: links are followed when all that is there without them has
    /// been seen, so that a file has its own name where it has several, and a link that leads back to where it lies ends
    /// there.
    ///
    /// # Errors
    /// An invalid pattern; a directory that can't be read, or objects that can't be listed.
    pub(super) fn matches(self, pattern: &str) -> Result<Vec<(String, PathBuf)>> {
        // Paths are tidied up (`./a`), so that the pattern's own letters may not be found in them.
        let named = |(stood_for, path): (StoodFor, PathBuf)| {
            let name = stood_for.map(|parts| parts.into_iter().flatten().collect::<Vec<_>>().join("/"));
            (name.unwrap_or_else(|| path.display().to_string()), path)
        };
        Ok(self.captured(pattern)?.into_iter().map(named).collect())
    }

    /// The same, with what each sign stood for by itself.
    pub(super) fn captured(self, pattern: &str) -> Result<Vec<(StoodFor, PathBuf)>> {
        let invalid = |e: &dyn std::fmt::Display| Error::query(format!("the pattern {pattern:?} is invalid: {e}"));
        Pattern::new(pattern).map_err(|e| invalid(&e))?;
        let signs = signs(pattern).map_err(|e| invalid(&e))?;
        let stood_for = |text: &str| {
            let parts = |c: regex::Captures<'_>| c.iter().skip(1).map(|m| m.map(|m| m.as_str().to_owned())).collect();
            signs.captures(text).map(parts)
        };
        if let Some(objects) = self.objects_of(pattern) {
            let mut found = Vec::new();
            objects.list(&pattern[..pattern.find(SIGNS).unwrap_or(pattern.len())], &mut |url| {
                if let Some(parts) = stood_for(&url).filter(|_| !url.ends_with('/')) {
                    found.push((Some(parts), PathBuf::from(url)));
                }
            })?;
            found.sort_by(|(_, a), (_, b)| a.cmp(b));
            return Ok(found);
        }
        let found = in_folders(pattern, &invalid)?;
        Ok(found.into_iter().map(|path| (stood_for(&path.display().to_string()), path)).collect())
    }
}

/// The files in folders that a pattern matches, in the order of their paths.
fn in_folders(pattern: &str, invalid: &dyn Fn(&dyn std::fmt::Display) -> Error) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let mut parts = Path::new(pattern).components().peekable();
    while let Some(part) = parts.next() {
        let text = part.as_os_str().to_str().unwrap_or_default();
        let literal = !matches!(part, Component::Normal(_)) || !text.contains(SIGNS);
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
    Ok(found)
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
pub(super) fn inside(mut directories: Vec<PathBuf>, wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
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
pub(super) fn below(mut open: Vec<PathBuf>, wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>> {
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
pub(super) fn is_pipe_or_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The error of such a file that was found by a directory or a pattern: waiting would stop all that come after it.
pub(super) fn not_waited_for() -> Error {
    Error::io(std::io::Error::other("a pipe or device, which is read only if it is named itself"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
            Finder::default().matches(&pattern).unwrap().into_iter().map(path).collect::<Vec<_>>()
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
        let pairs = Finder::default().directory_pairs(&root.join("d"), &root.join("d")).unwrap();
        let named: Vec<&str> = pairs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(named, ["1.gz", "a/2.gz", "a/deep/3.gz", "b/4.txt", "n.gz", "z/5.gz"]);
        assert!(Finder::default().directory_pairs(&root, &root.join("none")).is_err());
        assert!(Finder::default().matches("d/a**").unwrap_err().to_string().contains("invalid"));
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

    /// A store of these URLs, which says what it was asked to list.
    struct Store(&'static [&'static str], std::sync::Mutex<Vec<String>>);

    impl Objects for Store {
        fn has(&self, pattern: &str) -> bool {
            pattern.starts_with("s3://")
        }

        fn list(&self, prefix: &str, found: &mut dyn FnMut(String)) -> Result<()> {
            self.1.lock().unwrap().push(prefix.to_owned());
            self.0.iter().filter(|url| url.starts_with(prefix)).for_each(|url| found((*url).to_owned()));
            Ok(())
        }

        fn source(&self, url: &str) -> Result<Source> {
            Ok(Source::Bytes(url.to_owned(), Vec::new()))
        }
    }

    #[test]
    fn objects_are_found_as_files_are() {
        const KEYS: &[&str] =
            &["b/y.pb", "b/x.pb", "b/deep/er/x.pb", "b/deep/", "b/x.txt", "c/x.pb", "b/.x/y.pb", "c/"];
        let urls: &[&str] = &["s3://b/y.pb", "s3://b/x.pb", "s3://b/deep/er/x.pb", "s3://b/deep/", "s3://b/x.txt"];
        let more: &[&str] = &["s3://c/x.pb", "s3://b/.x/y.pb", "s3://c/"];
        let store = Store(Box::leak([urls, more].concat().into_boxed_slice()), Default::default());
        let finder = Finder::with_objects(&store);
        // The same files in folders judge it.
        let root = std::env::temp_dir().join(format!("pprofdiff-objects-{}", std::process::id()));
        for key in KEYS {
            let path = root.join(key);
            std::fs::create_dir_all(if key.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !key.ends_with('/') {
                std::fs::write(path, "").unwrap();
            }
        }
        let found = |pattern: &str, finder: Finder<'_>, under: &str| {
            let found = finder.captured(&format!("{under}{pattern}")).unwrap().into_iter();
            let shown = |path: PathBuf| path.to_str().unwrap().strip_prefix(under).unwrap().to_owned();
            found.map(|(stood_for, path)| (shown(path), stood_for)).collect::<Vec<_>>()
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
            let objects = found(pattern, finder, "s3://");
            assert_eq!(objects.len(), n, "{pattern}: {objects:?}");
            assert_eq!(objects, found(pattern, Finder::default(), &format!("{}/", root.display())), "{pattern}");
        }
        assert_eq!(store.1.lock().unwrap()[..3], ["s3://b/", "s3://", "s3://b/"]);
        let named = |base: &str, new: &str, finder: Finder<'_>| {
            let pairs = finder.pairs(base, new).unwrap();
            pairs.into_iter().map(|pair| (pair.name, pair.sides.is_ok())).collect::<Vec<_>>()
        };
        let folder = |name: &str| root.join(name).display().to_string();
        let both = named("s3://b/", "s3://c/", finder);
        assert_eq!((both.len(), &both), (4, &named(&folder("b"), &folder("c"), Finder::default())));
        // A folder beside a bucket.
        assert_eq!(both, named(&folder("b"), "s3://c/", finder));
        std::fs::remove_dir_all(root).unwrap();
    }
}
