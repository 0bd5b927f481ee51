//! What tells builds from each other, and the order of such keys: numbers in them count as numbers, so that `build-9`
//! comes before `build-10`.
//!
//! The order is our own since it has to be total whatever the keys are: a sort may panic on one that is not, and the
//! libraries looked at promise that for none but usual names.

use std::path::PathBuf;

use super::Source;
#[cfg(feature = "files")]
use super::{
    Fetch,
    patterns::{Finder, is_pipe_or_device, not_waited_for},
};
use crate::error::{Error, Result};
use crate::redact::redacted;

#[cfg(feature = "files")]
impl Finder<'_> {
    /// The files that a pattern matches, each with what the pattern's `*` and `?` stood for as its key, ordered by key.
    /// `**` stands for any directories.
    ///
    /// # Errors
    /// An invalid pattern, or one that matches nothing.
    pub fn builds(self, pattern: &str) -> Result<Vec<(String, Source)>> {
        let mut found = self.matches(pattern)?;
        if found.is_empty() {
            return Err(Error::query(format!("no file matches {pattern:?}")));
        }
        found.sort_by_cached_key(|(key, path)| (natural(key), path.clone()));
        let source = |path: PathBuf| match is_pipe_or_device(&path) {
            true => Source::Fetch(path.display().to_string(), Fetch::new(|| Err(not_waited_for()))),
            false => Source::Path(path),
        };
        Ok(found.into_iter().map(|(key, path)| (key, source(path))).collect())
    }
}

/// Files with the part of their path in which they differ as key, in the order given.
pub fn file_builds(files: &[PathBuf]) -> Vec<(String, Source)> {
    // Some may be URLs.
    let shown: Vec<PathBuf> = files.iter().map(|f| PathBuf::from(&*redacted(&f.to_string_lossy()))).collect();
    let parts = |f: &PathBuf| f.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let paths: Vec<Vec<String>> = shown.iter().map(parts).collect();
    let shortest = paths.iter().map(Vec::len).min().unwrap_or(0);
    let alike = |part: fn(&[String], usize) -> &String| {
        (0..shortest).take_while(|&i| paths.iter().all(|p| part(p, i) == part(&paths[0], i))).count()
    };
    let (front, back) = (alike(|p, i| &p[i]), alike(|p, i| &p[p.len() - 1 - i]));
    let key = |(path, parts): (&PathBuf, &Vec<String>)| match parts.get(front..parts.len() - back) {
        Some(own) if !own.is_empty() => own.join("/"),
        // A single file, one that is named twice, or `a/x` beside `a/b/x`.
        _ => path.display().to_string(),
    };
    shown.iter().zip(&paths).map(key).zip(files).map(|(key, file)| (key, Source::Path(file.clone()))).collect()
}

/// Orders builds by their keys.
pub fn sort_builds<T>(builds: &mut [(String, T)]) {
    builds.sort_by_cached_key(|(key, _)| natural(key));
}

/// The builds of two names, by their places: ten of which five are called `branch-1` to `branch-5` and five `main-1` to
/// `main-5`. They are two sides and no history: by key the branch would come first, and what it made slower would look like
/// a gain. `None` unless the keys begin, before their first number, in just two ways, and two builds or more in each.
pub fn two_names<'k>(keys: impl Iterator<Item = &'k str>) -> Option<[Vec<usize>; 2]> {
    let mut names: Vec<(&str, Vec<usize>)> = Vec::new();
    for (place, key) in keys.enumerate() {
        let name = &key[..key.find(|c: char| c.is_ascii_digit())?];
        match names.iter().position(|known| known.0 == name) {
            Some(known) => names[known].1.push(place),
            None if names.len() == 2 => return None,
            None => names.push((name, vec![place])),
        }
    }
    let sides: [_; 2] = names.try_into().ok()?;
    let sides = sides.map(|(_, places)| places);
    sides.iter().all(|places| places.len() > 1).then_some(sides)
}

/// Checks that builds which are ordered by their keys can be a history.
///
/// # Errors
/// They have [two names](two_names).
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

/// A part of a key. Numbers come before words, and go by their value: of digits without leading zeros the longer is
/// larger.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(usize, String),
    Word(String),
}

/// What keys are compared by: their parts, then as they are written.
pub(super) fn natural(key: &str) -> impl Ord + use<> {
    let mut parts = Vec::new();
    let mut rest = key;
    while let Some(c) = rest.chars().next() {
        let digits = c.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(if digits {
            let digits = part.trim_start_matches('0');
            Part::Number(digits.len(), digits.to_owned())
        } else {
            Part::Word(part.to_owned())
        });
        rest = after;
    }
    (parts, key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_are_no_history() {
        let is_history = |keys: &[&str]| check_history(keys).is_ok();
        assert!(!is_history(&["branch-1", "branch-2", "main-1", "main-2", "main-3"]));
        assert!(!is_history(&["a/1.pb.gz", "a/2.pb.gz", "b/1.pb.gz", "b/2.pb.gz"]));
        // One name, one build of a kind, three names, no numbers.
        assert!(is_history(&["v1.9-rc1", "v1.9-rc2", "v1.10", "v1.11"]));
        assert!(is_history(&["1", "2", "nightly-1", "nightly-2", "nightly"]));
        assert!(is_history(&["main-1", "main-2", "release-1"]));
        assert!(is_history(&["a1", "a2", "b1", "b2", "c1", "c2"]));
        assert!(is_history(&[]) && is_history(&["a", "b", "c", "d"]));
    }

    #[test]
    fn numbers_in_keys_count_as_numbers() {
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
    fn files_are_known_by_what_differs() {
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
