//! Keys that distinguish builds, and their natural order: digits in a key are compared as numbers, so `build-9` comes
//! before `build-10`.
//!
//! The order is implemented here because it must be total for all keys: a sort may panic if its order is not total.
//! The existing libraries we checked guarantee that only for ordinary names.

use std::path::PathBuf;

use super::Source;
#[cfg(feature = "files")]
use super::{
    Fetch,
    patterns::{Finder, is_pipe_or_device, pipe_or_device_error},
};
use pprofdiff_profile::text::redacted;
use pprofdiff_profile::{Error, Result};

#[cfg(feature = "files")]
impl Finder<'_> {
    /// Finds the files that match a pattern. Each file's key is the text that the pattern's wildcards matched, and the
    /// files are ordered by key. `**` matches any number of directories. A pipe or device becomes a source that fails
    /// to load.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid or matches no file, or if a directory or object store can't be
    /// listed.
    pub fn builds(self, pattern: &str) -> Result<Vec<(String, Source)>> {
        let mut files = self.matches(pattern)?;
        if files.is_empty() {
            return Err(Error::query(format!("no file matches {pattern:?}")));
        }
        files.sort_by_cached_key(|(key, path)| (natural_sort_key(key), path.clone()));
        let source = |path: PathBuf| match is_pipe_or_device(&path) {
            true => Source::Fetch(path.display().to_string(), Fetch::new(|| Err(pipe_or_device_error()))),
            false => Source::Path(path),
        };
        Ok(files.into_iter().map(|(key, path)| (key, source(path))).collect())
    }
}

/// Returns each file with a key, in the given order. The key is the path without the parts that all files share at its
/// beginning and end.
pub fn file_builds(files: &[PathBuf]) -> Vec<(String, Source)> {
    // Some paths may be URLs with passwords.
    let shown: Vec<PathBuf> = files.iter().map(|f| PathBuf::from(&*redacted(&f.to_string_lossy()))).collect();
    let parts = |f: &PathBuf| f.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let paths: Vec<Vec<String>> = shown.iter().map(parts).collect();
    let shortest = paths.iter().map(Vec::len).min().unwrap_or(0);
    let count_equal = |part: fn(&[String], usize) -> &String| {
        (0..shortest).take_while(|&i| paths.iter().all(|p| part(p, i) == part(&paths[0], i))).count()
    };
    let (front, back) = (count_equal(|p, i| &p[i]), count_equal(|p, i| &p[p.len() - 1 - i]));
    let key = |(path, parts): (&PathBuf, &Vec<String>)| match parts.get(front..parts.len() - back) {
        Some(difference) if !difference.is_empty() => difference.join("/"),
        // Without a differing part, the key is the whole path: a single file, a file that is given twice, or `a/x` and
        // `a/b/x`.
        _ => path.display().to_string(),
    };
    shown.iter().zip(&paths).map(key).zip(files).map(|(key, file)| (key, Source::Path(file.clone()))).collect()
}

/// Orders builds by their keys.
pub fn sort_builds<T>(builds: &mut [(String, T)]) {
    builds.sort_by_cached_key(|(key, _)| natural_sort_key(key));
}

/// Returns the indices of two groups of builds if the keys have exactly two names, such as five builds `branch-1` to
/// `branch-5` and five builds `main-1` to `main-5`. Such builds are two sides, not a history: ordered by key, the
/// branch would come first, and its slowdown would look like a speedup.
///
/// The name of a key is the text before its first number. Returns `None` if a key has no number, or unless the keys
/// have exactly two names with at least two builds each.
pub fn two_names<'k>(keys: impl Iterator<Item = &'k str>) -> Option<[Vec<usize>; 2]> {
    let mut names: Vec<(&str, Vec<usize>)> = Vec::new();
    for (place, key) in keys.enumerate() {
        let name = &key[..key.find(|c: char| c.is_ascii_digit())?];
        match names.iter().position(|group| group.0 == name) {
            Some(group) => names[group].1.push(place),
            None if names.len() == 2 => return None,
            None => names.push((name, vec![place])),
        }
    }
    let sides: [_; 2] = names.try_into().ok()?;
    let sides = sides.map(|(_, places)| places);
    sides.iter().all(|places| places.len() > 1).then_some(sides)
}

/// Checks that builds ordered by their keys can be a history.
///
/// # Errors
/// Returns an error if the builds have [two names](two_names).
pub fn check_history(keys: &[&str]) -> Result<()> {
    let Some(sides) = two_names(keys.iter().copied()) else { return Ok(()) };
    let [a, b] = sides.map(|places| match places.as_slice() {
        [first, .., last] => format!("{} to {}", keys[*first], keys[*last]),
        _ => String::new(),
    });
    Err(Error::query(format!(
        "{a} and {b} have no order between them; compare them as two sides, with the files of one after --base and those of \
         the other after --new, or as one history in the order in which they are named (--order given)"
    )))
}

/// A part of a key. Numbers sort before words and by value: without leading zeros, the number with more digits is
/// larger.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum KeyPart {
    Number(usize, String),
    Word(String),
}

/// Returns the sort key of a build: the parts of its key, then the key itself as a tie-breaker.
pub(super) fn natural_sort_key(key: &str) -> impl Ord + use<> {
    let mut parts = Vec::new();
    let mut rest = key;
    while let Some(c) = rest.chars().next() {
        let digits = c.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(if digits {
            let digits = part.trim_start_matches('0');
            KeyPart::Number(digits.len(), digits.to_owned())
        } else {
            KeyPart::Word(part.to_owned())
        });
        rest = after;
    }
    (parts, key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_two_names_are_rejected_as_a_history() {
        let is_history = |keys: &[&str]| check_history(keys).is_ok();
        assert!(!is_history(&["branch-1", "branch-2", "main-1", "main-2", "main-3"]));
        assert!(!is_history(&["a/1.pb.gz", "a/2.pb.gz", "b/1.pb.gz", "b/2.pb.gz"]));
        // These keys have one name, one build with the second name, three names, or no numbers.
        assert!(is_history(&["v1.9-rc1", "v1.9-rc2", "v1.10", "v1.11"]));
        assert!(is_history(&["1", "2", "nightly-1", "nightly-2", "nightly"]));
        assert!(is_history(&["main-1", "main-2", "release-1"]));
        assert!(is_history(&["a1", "a2", "b1", "b2", "c1", "c2"]));
        assert!(is_history(&[]) && is_history(&["a", "b", "c", "d"]));
    }

    #[test]
    fn builds_sort_by_the_numbers_in_their_keys() {
        let ordered = [
            "",
            "2",
            "10",
            "10a",
            "a",
            "a-1",
            "build-0",
            "build-00",
            "build-01",
            "build-1",
            "build-9",
            "build-10",
            "build-10-rc2",
            "build-10-rc10",
            "build-99999999999999999999",
            "build-100000000000000000000",
            "v1.2.9",
            "v1.2.10",
            "v1.10.0",
        ];
        let mut builds: Vec<(String, ())> = ordered.iter().rev().map(|k| ((*k).to_owned(), ())).collect();
        sort_builds(&mut builds);
        assert_eq!(builds.iter().map(|(k, ())| k.as_str()).collect::<Vec<_>>(), ordered);
    }

    #[test]
    fn file_keys_are_the_differing_path_parts() {
        let keys = |files: &[&str]| -> Vec<String> {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            file_builds(&files).into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(keys(&["b/9/cpu.pb", "b/10/cpu.pb"]), ["9", "10"]);
        assert_eq!(keys(&["/x/a.pb", "/x/b.pb"]), ["a.pb", "b.pb"]);
        assert_eq!(keys(&["x/1/s/a.pb", "x/2/t/a.pb"]), ["1/s", "2/t"]);
        assert_eq!(keys(&["a/x", "a/b/x"]), ["a/x", "b"]);
        assert_eq!(keys(&["a/x", "a/x"]), ["a/x", "a/x"]);
        assert_eq!(keys(&["one.pb"]), ["one.pb"]);
        assert!(keys(&[]).is_empty());
    }
}
