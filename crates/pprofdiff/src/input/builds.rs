//! Keys that distinguish builds, and their natural order: digits in a key are compared as numbers, so `build-9` comes
//! before `build-10`.
//!
//! The order is implemented here because it must be total for all keys: a sort may panic if its order is not total.
//! The existing libraries we checked guarantee that only for ordinary names.

#[cfg(feature = "files")]
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Source;
#[cfg(feature = "files")]
use super::{
    Fetch,
    patterns::{Finder, WildcardTexts, is_pipe_or_device, matched_name, pipe_or_device_error, wildcard_parts},
};
#[cfg(feature = "files")]
use crate::LoadOptions;
#[cfg(feature = "files")]
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::short_lists::sort_by_cached_key;
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
        Ok(self.builds_and_varying_parts(pattern)?.0)
    }

    /// Finds the builds of one history. Like [`Finder::builds`], but refuses a pattern of which several wildcards match
    /// different texts, such as a service and a build: it is unclear which of them is the build.
    ///
    /// # Errors
    /// Returns the errors of [`Finder::builds`], and an error with the possible groups for several varying parts.
    pub fn history(self, pattern: &str) -> Result<Vec<(String, Source)>> {
        let (builds, varying) = self.builds_and_varying_parts(pattern)?;
        match group_readings(&varying, &builds) {
            None => Ok(builds),
            Some(GroupReadings { groups: [one, other], single }) => {
                let single = single.map_or_else(String::new, |single| format!(", or to {single:?} for one history"));
                Err(Error::query(format!(
                    "several parts of {pattern:?} vary, and one of them is the build; set group to {one:?} or {other:?} \
                     for several histories{single}"
                )))
            }
        }
    }

    /// Finds builds like [`Finder::builds`], and the parts of the pattern that vary between the files, as templates such as
    /// `{1}` or `{1}{2}`. Returns no parts if each part alone tells all files apart, because any of them is then the build.
    ///
    /// # Errors
    /// Returns the errors of [`Finder::builds`].
    pub fn builds_and_varying_parts(self, pattern: &str) -> Result<(Vec<(String, Source)>, Vec<String>)> {
        let files = self.captured(pattern)?;
        if files.is_empty() {
            return Err(Error::query(format!("no file matches {pattern:?}")));
        }
        let values = |part: &Vec<usize>| -> HashSet<Vec<Option<&String>>> {
            fn text(texts: &WildcardTexts, index: usize) -> Option<&String> {
                texts.as_ref()?.get(index)?.as_ref()
            }
            files.iter().map(|(texts, _)| part.iter().map(|&index| text(texts, index)).collect()).collect()
        };
        let counted = wildcard_parts(pattern).into_iter().map(|part| (values(&part).len(), part));
        let varying: Vec<(usize, Vec<usize>)> = counted.filter(|(count, _)| *count > 1).collect();
        let template = |part: &Vec<usize>| part.iter().map(|index| format!("{{{}}}", index + 1)).collect::<String>();
        let varying = match varying.iter().all(|(count, _)| *count == files.len()) {
            true => Vec::new(),
            false => varying.iter().map(|(_, part)| template(part)).collect(),
        };
        let name = |(texts, path): (WildcardTexts, PathBuf)| (matched_name(texts.as_deref(), &path), path);
        let mut named: Vec<(String, PathBuf)> = files.into_iter().map(name).collect();
        sort_by_cached_key(&mut named, |(key, path)| (natural_sort_key(key), path.clone()));
        Ok((named.into_iter().map(|(key, path)| (key, found(path))).collect(), varying))
    }

    /// Finds the builds of several histories by the keys of the files ([`Finder::list_files`]). The key `build`, or else
    /// the last key, is the key of the builds. Files with equal other keys are one history. Without other keys, all
    /// files are one history. Histories and builds are in natural order.
    ///
    /// # Errors
    /// Returns the errors of [`Finder::list_files`].
    pub fn build_groups(self, pattern_or_manifest: &str, keys: &str, options: &LoadOptions) -> Result<GroupedBuilds> {
        let files = self.list_files(pattern_or_manifest, Some(keys), options)?;
        let mut names: Vec<String> =
            keys.split(',').map(|key| key.split_once('=').map_or(key, |(name, _)| name).to_owned()).collect();
        let build = names.iter().position(|name| name == "build").unwrap_or(names.len() - 1);
        let build = names.remove(build);
        let mut groups: BTreeMap<Vec<String>, Vec<(String, Source)>> = BTreeMap::new();
        let repeated = {
            let mut seen: HashSet<&String> = HashSet::default();
            files.iter().filter_map(|file| file.keys.get(&build)).find(|key| !seen.insert(key)).cloned()
        };
        if let Some(repeated) = repeated.filter(|_| names.is_empty()) {
            let template =
                |name: &str, part: &str| if keys.contains('=') { format!("{name}={part}") } else { name.into() };
            let more = match build.as_str() {
                "build" => format!("{},{keys}", template("service", "{2}")),
                _ => format!("{keys},{}", template("build", "{2}")),
            };
            return Err(Error::query(format!(
                "several files have {build}={repeated}, but {build} is the only key and would be their build; add a key \
                 for several histories, such as {more}"
            )));
        }
        for mut file in files {
            let mut value = |name: &String| file.keys.remove(name).unwrap_or_default();
            let (key, values) = (value(&build), names.iter().map(&mut value).collect());
            groups.entry(values).or_default().push((key, found(file.profile)));
        }
        let mut groups: Vec<HistoryBuilds> =
            groups.into_iter().map(|(values, builds)| HistoryBuilds { values, builds }).collect();
        groups.iter_mut().for_each(|group| sort_builds(&mut group.builds));
        sort_by_cached_key(&mut groups, |group| group.values.iter().map(|v| natural_sort_key(v)).collect::<Vec<_>>());
        Ok(GroupedBuilds { keys: names, build, groups })
    }
}

/// Returns the source of a file that a search found. A pipe or device becomes a source that fails to load.
#[cfg(feature = "files")]
fn found(path: PathBuf) -> Source {
    match is_pipe_or_device(&path) {
        true => Source::Fetch(path.display().to_string(), Fetch::new(|| Err(pipe_or_device_error()))),
        false => Source::Path(path),
    }
}

/// The builds of several histories, such as one history per service.
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupedBuilds {
    /// The names of the keys that distinguish the histories.
    pub keys: Vec<String>,
    /// The name of the key that distinguishes the builds of a history.
    pub build: String,
    /// The histories.
    pub groups: Vec<HistoryBuilds>,
}

/// The builds of one of several histories.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryBuilds {
    /// The values of [`GroupedBuilds::keys`].
    pub values: Vec<String>,
    /// The builds in order, with their keys.
    pub builds: Vec<(String, Source)>,
}

/// The possible meanings of a pattern with several varying parts, as keys of [`Finder::build_groups`].
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupReadings {
    /// The keys of several histories, whose builds are the last or the first part.
    pub groups: [String; 2],
    /// The keys of one history, whose builds are all parts. `None` if such builds are no history ([`check_history`]).
    pub single: Option<String>,
}

/// Returns the possible meanings of these parts of a pattern, which finds these builds. Returns `None` for fewer than
/// two parts.
pub fn group_readings<T>(varying: &[String], builds: &[(String, T)]) -> Option<GroupReadings> {
    let [first, .., last] = varying else { return None };
    let keys = |build: &String| {
        let others: Vec<&String> = varying.iter().filter(|part| *part != build).collect();
        let name = |index: usize| if others.len() == 1 { "service".to_owned() } else { format!("key_{}", index + 1) };
        let others = others.iter().enumerate().map(|(index, part)| format!("{}={part},", name(index)));
        format!("{}build={build}", others.collect::<String>())
    };
    let names: Vec<&str> = builds.iter().map(|(key, _)| key.as_str()).collect();
    let single = check_history(&names).is_ok().then(|| format!("build={}", varying.join("/")));
    Some(GroupReadings { groups: [keys(last), keys(first)], single })
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
    sort_by_cached_key(builds, |(key, _)| natural_sort_key(key));
}

/// Returns the names of keys, each with the indices of its builds. The name of a key is the text before its first
/// number. Returns an empty list if a key has no number.
fn names<'k>(keys: impl Iterator<Item = &'k str>) -> Vec<(&'k str, Vec<usize>)> {
    let mut names: Vec<(&str, Vec<usize>)> = Vec::new();
    for (place, key) in keys.enumerate() {
        let Some(end) = key.find(|c: char| c.is_ascii_digit()) else { return Vec::new() };
        match names.iter().position(|group| group.0 == &key[..end]) {
            Some(group) => names[group].1.push(place),
            None => names.push((&key[..end], vec![place])),
        }
    }
    names
}

/// Returns the indices of two groups of builds if the keys have exactly two names, such as five builds `branch-1` to
/// `branch-5` and five builds `main-1` to `main-5`. Such builds are two sides, not a history: ordered by key, the
/// branch would come first, and its slowdown would look like a speedup.
///
/// The name of a key is the text before its first number. Returns `None` if a key has no number, or unless the keys
/// have exactly two names with at least two builds each.
pub fn two_names<'k>(keys: impl Iterator<Item = &'k str>) -> Option<[Vec<usize>; 2]> {
    let sides: [_; 2] = names(keys).try_into().ok()?;
    let sides = sides.map(|(_, places)| places);
    sides.iter().all(|places| places.len() > 1).then_some(sides)
}

/// The maximum number of names of builds that an error lists.
const MAX_NAMES: usize = 4;

/// Checks that builds ordered by their keys can be a history.
///
/// # Errors
/// Returns an error if at least two names of builds have several builds each, such as `go-1` and `heap-1`. The order of
/// such builds by name would mean nothing.
pub fn check_history(keys: &[&str]) -> Result<()> {
    // Commits have letters and digits in any order. Another message advises --git for them.
    let is_commit = |key: &&str| {
        let start = key.split('.').next().unwrap_or_default();
        (7..=40).contains(&start.len()) && start.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if keys.iter().all(is_commit) {
        return Ok(());
    }
    let names = names(keys.iter().copied());
    let repeated = names.iter().filter(|(_, places)| places.len() > 1);
    let ranges: Vec<String> = repeated
        .filter_map(|(_, places)| Some(format!("{} to {}", keys[*places.first()?], keys[*places.last()?])))
        .collect();
    match ranges.as_slice() {
        [] | [_] => Ok(()),
        [a, b] if names.len() == 2 => Err(Error::query(format!(
            "{a} and {b} have no order between them; compare them as two sides, with the files of one after --base and \
             those of the other after --new, or as one history in the order in which they are named (--order given)"
        ))),
        ranges => {
            let shown = ranges.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if ranges.len() > MAX_NAMES { " and others" } else { "" };
            Err(Error::query(format!(
                "{shown}{more} have no order between them; select one of them with the pattern, or compare them as one \
                 history in the order in which they are named (--order given)"
            )))
        }
    }
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
    fn keys_with_several_names_are_rejected_as_a_history() {
        let is_history = |keys: &[&str]| check_history(keys).is_ok();
        assert!(!is_history(&["branch-1", "branch-2", "main-1", "main-2", "main-3"]));
        assert!(!is_history(&["a/1.pb.gz", "a/2.pb.gz", "b/1.pb.gz", "b/2.pb.gz"]));
        assert!(!is_history(&["a1", "a2", "b1", "b2", "c1", "c2"]) && !is_history(&["a1", "a2", "b1", "b2", "c1"]));
        // These keys have one name, one build with the second name, or no numbers.
        assert!(is_history(&["v1.9-rc1", "v1.9-rc2", "v1.10", "v1.11"]));
        assert!(is_history(&["1", "2", "nightly-1", "nightly-2", "nightly"]));
        assert!(is_history(&["main-1", "main-2", "release-1"]));
        assert!(is_history(&["main-1", "main-2", "release-1", "trunk-1"]));
        let error = check_history(&["cpu-1", "cpu-2", "go-1", "go-2", "heap-1", "heap-2"]).map_err(|e| e.to_string());
        let why = "cpu-1 to cpu-2, go-1 to go-2, heap-1 to heap-2 have no order";
        assert!(error.as_ref().is_err_and(|error| error.starts_with(why)), "{error:?}");
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
