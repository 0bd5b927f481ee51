//! Pairs files by keys such as service and version, or host and hour. The keys come from the files' paths, their labels
//! or a manifest.
//!
//! ```text
//! 's3/*/*.pb.gz', service={1},version={version}   the keys of each file: from its path, and from a label
//!   base version=v1, new version=v2               two files are paired if all their other keys are equal
//! ```
//!
//! All files of a side are runs of this side.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Source;
use super::builds::natural_sort_key;
use super::pairs::{BatchItem, ManifestLines, is_json};
use super::patterns::{Finder, WildcardTexts, is_pipe_or_device, pipe_or_device_error};
use crate::LoadOptions;
use pprofdiff_profile::Profile;
use pprofdiff_profile::parallel;
use pprofdiff_profile::samples::LabelValue;
use pprofdiff_profile::short_lists::sort_by_cached_key;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The keys that decide which files of a pattern are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Groups {
    /// The keys of a file. In `service={1},version={version}`, `{1}` is the text that the pattern's first wildcard
    /// matched, and `{version}` is the value of the profile's label. For a manifest, the keys are column names:
    /// `service,version`.
    pub keys: String,
    /// The key values of the base: `version=v1`. `version=@previous` selects the second to last version in natural
    /// order among the files whose other keys are equal.
    pub base: String,
    /// The key values of the new side: `version=v2`. `version=@latest` selects the last version among these files.
    pub new: String,
}

impl Groups {
    /// Creates groups in which files with the key values `base` are compared with files with the key values `new`.
    pub fn new(keys: impl Into<String>, base: impl Into<String>, new: impl Into<String>) -> Groups {
        Groups { keys: keys.into(), base: base.into(), new: new.into() }
    }
}

/// A key's name and the pieces that make up its value.
type KeyTemplate<'a> = (&'a str, Vec<TemplatePiece<'a>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplatePiece<'a> {
    Text(&'a str),
    /// The number of a wildcard, counted from 1.
    Sign(usize),
    /// The key of a label.
    Label(&'a str),
}

/// Parses key templates such as `service={1},version={2}`.
fn parse_templates(text: &str) -> Result<Vec<KeyTemplate<'_>>> {
    let invalid =
        |why: &str| Error::query(format!("the keys {text:?} are invalid: {why}; example: service={{1}},version={{2}}"));
    let mut keys: Vec<KeyTemplate<'_>> = Vec::new();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| invalid("a key needs a name and a value"))?;
        if name.is_empty() || keys.iter().any(|(key, _)| *key == name) {
            return Err(invalid("each key needs a unique name"));
        }
        let pieces = pieces(value).map_err(invalid)?;
        keys.push((name, pieces));
    }
    Ok(keys)
}

/// Parses the pieces of a key's value.
fn pieces(mut value: &str) -> Result<Vec<TemplatePiece<'_>>, &'static str> {
    let mut pieces = Vec::new();
    while let Some(begin) = value.find('{') {
        let end = value[begin..].find('}').map(|end| begin + end).ok_or("a { is not closed by }")?;
        pieces.extend((begin > 0).then_some(TemplatePiece::Text(&value[..begin])));
        pieces.push(match (value[begin + 1..end].parse(), &value[begin + 1..end]) {
            (Ok(0), _) | (_, "") => return Err("braces must contain a wildcard's number, from 1, or a label's key"),
            (Ok(number), _) => TemplatePiece::Sign(number),
            (Err(_), label) => TemplatePiece::Label(label),
        });
        value = &value[end + 1..];
    }
    pieces.extend((!value.is_empty()).then_some(TemplatePiece::Text(value)));
    Ok(pieces)
}

/// Builds a key's value from the wildcards' texts and the labels. Returns `None` if a piece needs a wildcard or label
/// that is missing.
fn value(
    pieces: &[TemplatePiece<'_>],
    wildcards: Option<&[Option<String>]>,
    labels: &BTreeMap<&str, String>,
) -> Option<String> {
    let text = |piece: &TemplatePiece<'_>| match piece {
        TemplatePiece::Text(text) => Some((*text).to_owned()),
        TemplatePiece::Sign(number) => wildcards?.get(number - 1).cloned().map(Option::unwrap_or_default),
        TemplatePiece::Label(key) => labels.get(key).cloned(),
    };
    pieces.iter().map(text).collect()
}

/// Returns the values of a profile's labels. Ignores samples without the label, such as samples of a runtime's own
/// threads. Fails if the samples have no value or several values of a label.
fn label_values<'k>(profile: &Profile, keys: &[&'k str]) -> Result<BTreeMap<&'k str, String>> {
    let text = |value| match value {
        LabelValue::Text(text) => profile.text(text),
        LabelValue::Number(number, unit) => format!("{number}{}", profile.text(unit)),
    };
    let invalid = |why: String| Error::new(ErrorKind::Incompatible, why).in_input(profile.name());
    let mut values = BTreeMap::new();
    for key in keys {
        let all = profile.samples().flat_map(|sample| sample.labels());
        let mut all = all.filter(|label| profile.string(label.key) == key.as_bytes()).map(|label| label.value);
        let first =
            all.next().ok_or_else(|| invalid(format!("no sample has the label {key}, which is used as a key")))?;
        let other = all.filter(|value| *value != first).map(text).find(|value| *value != text(first));
        if let Some(other) = other {
            return Err(invalid(format!(
                "its samples have {key}={0} and {key}={other}, but a key needs one value per file; split the file by label, \
                 for example with: pprofdiff top FILE --tagfocus {key}={0} -o PART.pb.gz",
                text(first)
            )));
        }
        values.insert(*key, text(first));
    }
    Ok(values)
}

impl Finder<'_> {
    /// Returns the files that match a pattern, each with its key values. Loads files only if a key uses a label.
    fn pattern_files(self, pattern: &str, keys: &[KeyTemplate<'_>], options: &LoadOptions) -> Result<Vec<ListedFile>> {
        let pieces = keys.iter().flat_map(|(_, pieces)| pieces);
        let labels: Vec<&str> =
            pieces.filter_map(|piece| if let TemplatePiece::Label(key) = piece { Some(*key) } else { None }).collect();
        let read = |(wildcards, path): &(WildcardTexts, PathBuf)| {
            let labels = match labels.is_empty() {
                true => BTreeMap::new(),
                false => label_values(&*self.source(path.clone())?.load(options)?, &labels)?,
            };
            let mut values = BTreeMap::new();
            for (name, pieces) in keys {
                let why =
                    || Error::query(format!("the key {name} refers to a wildcard that the pattern {pattern:?} lacks"));
                values.insert((*name).to_owned(), value(pieces, wildcards.as_deref(), &labels).ok_or_else(why)?);
            }
            Ok(ListedFile::new(path.clone(), values))
        };
        let matches = self.captured(pattern)?;
        match matches.is_empty() {
            true => Err(Error::query(format!("no file matches {pattern:?}"))),
            false => parallel::map(&matches, read).into_iter().collect(),
        }
    }

    /// Returns the files that match a pattern, each with its key values. In a key's text, `{2}` is the text that the
    /// pattern's second wildcard matched, and `{service}` is the value of the profile's label.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid or matches no file, or if a key uses a wildcard that the pattern
    /// lacks. With labels, also returns the errors of [`open`](crate::open), and an error if a profile has no value or
    /// several values of the label.
    pub fn keyed_files(
        self,
        pattern: &str,
        keys: &[(String, String)],
        options: &LoadOptions,
    ) -> Result<Vec<ListedFile>> {
        let mut templates = Vec::with_capacity(keys.len());
        for (key, text) in keys {
            let invalid = |why| Error::query(format!("the key {key}={text} is invalid: {why}"));
            templates.push((key.as_str(), pieces(text).map_err(invalid)?));
        }
        self.pattern_files(pattern, &templates, options)
    }

    /// Lists files with their keys. If `pattern_or_manifest` is a file, it is a manifest ([`listed_files`]) and `keys`
    /// names its columns (`service,version`; all columns by default). Otherwise it is a pattern, and `keys` builds the
    /// values from paths and labels (`service={1},version={version}`).
    ///
    /// # Errors
    /// Returns an error if the pattern, the manifest or the keys are invalid, or if a file lacks a key; also returns
    /// the errors of [`Finder::keyed_files`].
    pub fn list_files(
        self,
        pattern_or_manifest: &str,
        keys: Option<&str>,
        options: &LoadOptions,
    ) -> Result<Vec<ListedFile>> {
        if Path::new(pattern_or_manifest).is_file() {
            let mut files = listed_files(Path::new(pattern_or_manifest))?;
            if let Some(keys) = keys {
                let names = key_names(keys)?;
                files.iter().try_for_each(|file| file.values(&names, pattern_or_manifest).map(drop))?;
                files.iter_mut().for_each(|file| file.keys.retain(|key, _| names.contains(&key.as_str())));
            }
            return Ok(files);
        }
        self.pattern_files(pattern_or_manifest, &keys.map_or_else(|| Ok(Vec::new()), parse_templates)?, options)
    }

    /// Pairs files by their keys, see [`Finder::list_files`]. The pairs are in the natural order of the keys that both
    /// sides share. A file group that exists on one side only is an error at its position.
    ///
    /// # Errors
    /// Returns the errors of [`Finder::list_files`], and an error if a side's key values are invalid or no file has
    /// them.
    pub fn group_pairs(
        self,
        pattern_or_manifest: &str,
        groups: &Groups,
        options: &LoadOptions,
    ) -> Result<Vec<BatchItem>> {
        let files = self.list_files(pattern_or_manifest, Some(&groups.keys), options)?;
        let names: Vec<&str> =
            groups.keys.split(',').map(|key| key.split_once('=').map_or(key, |(name, _)| name)).collect();
        groups.pair(&names, files, pattern_or_manifest)
    }
}

/// Parses the key values of a side into indices of `keys` and values, ordered by index.
fn parse_side<'a>(text: &'a str, keys: &[&str]) -> Result<Vec<(usize, &'a str)>> {
    let parse = |part: &'a str| {
        let (name, value) = part.split_once('=')?;
        Some((keys.iter().position(|key| *key == name)?, value)).filter(|(_, value)| !value.is_empty())
    };
    let unknown =
        |part: &str| Error::query(format!("{part:?} is not KEY=VALUE with one of the keys {}", keys.join(", ")));
    let mut values =
        text.split(',').map(|part| parse(part).ok_or_else(|| unknown(part))).collect::<Result<Vec<_>>>()?;
    values.sort_unstable();
    Ok(values)
}

/// The values of all keys of a file.
type KeyValues = Vec<String>;

/// Parses the names of keys: `service,version`.
fn key_names(keys: &str) -> Result<Vec<&str>> {
    let names: Vec<&str> = keys.split(',').collect();
    match names.iter().any(|name| name.is_empty() || name.contains(['=', '{'])) {
        true => Err(Error::query(format!(
            "the keys {keys:?} are invalid: a list needs names only, such as service,version"
        ))),
        false => Ok(names),
    }
}

impl Groups {
    /// Pairs listed files. `list_name` is the name of the list in errors.
    ///
    /// # Errors
    /// Returns the errors of [`Finder::group_pairs`], and an error if a file lacks one of the keys.
    pub fn pair_listed(&self, files: Vec<ListedFile>, list_name: &str) -> Result<Vec<BatchItem>> {
        self.pair(&key_names(&self.keys)?, files, list_name)
    }

    /// Pairs files by the keys in `keys`.
    fn pair(&self, keys: &[&str], files: Vec<ListedFile>, list_name: &str) -> Result<Vec<BatchItem>> {
        let sides = [parse_side(&self.base, keys)?, parse_side(&self.new, keys)?];
        let names = |side: &[(usize, &str)]| side.iter().map(|(key, _)| *key).collect::<Vec<usize>>();
        if names(&sides[0]) != names(&sides[1]) || sides[0] == sides[1] {
            return Err(Error::query(format!(
                "{:?} and {:?} must be two different values of the same keys",
                self.base, self.new
            )));
        }
        // Groups the files by the keys that both sides share. Each file keeps the values of all its keys.
        let differs = names(&sides[0]);
        let mut common: BTreeMap<Vec<String>, Vec<(KeyValues, PathBuf)>> = BTreeMap::new();
        for file in files {
            let values = file.values(keys, list_name)?;
            let rest =
                values.iter().enumerate().filter(|(key, _)| !differs.contains(key)).map(|(_, v)| v.clone()).collect();
            common.entry(rest).or_default().push((values, file.profile));
        }
        let mut pairs: Vec<BatchItem> = Vec::new();
        for (rest, files) in common {
            let resolved = [&sides[0], &sides[1]].map(|side| -> Vec<(usize, Option<String>)> {
                side.iter().map(|&(key, value)| (key, resolve_value(&files, key, value))).collect()
            });
            let select = |selected: &[(usize, Option<String>)]| -> Vec<PathBuf> {
                let is_selected =
                    |values: &KeyValues| selected.iter().all(|(key, value)| value.as_ref() == Some(&values[*key]));
                files.iter().filter(|(values, _)| is_selected(values)).map(|(_, path)| path.clone()).collect()
            };
            let sides = [select(&resolved[0]), select(&resolved[1])];
            // A group without files on either side is not part of the comparison.
            if sides.iter().all(Vec::is_empty) {
                continue;
            }
            let name = if rest.is_empty() { self.new.clone() } else { rest.join("/") };
            let shared_names = (0..keys.len()).filter(|key| !differs.contains(key)).map(|key| keys[key].to_owned());
            let mut values: Vec<(String, String)> = shared_names.zip(rest).collect();
            for (base, new) in resolved[0].iter().zip(&resolved[1]) {
                for ((key, value), side) in [(base, "base"), (new, "new")] {
                    values.push((format!("{}_{side}", keys[*key]), value.clone().unwrap_or_default()));
                }
            }
            let lacks_partner = sides.iter().any(Vec::is_empty);
            let sides = pair(&name, self, sides);
            pairs.push(BatchItem::of_result(name, sides).with_keys(values).without_partner(lacks_partner));
        }
        if pairs.is_empty() {
            return Err(Error::query(format!("no file of {list_name:?} has {:?} or {:?}", self.base, self.new)));
        }
        sort_by_cached_key(&mut pairs, |pair| natural_sort_key(&pair.name));
        Ok(pairs)
    }
}

/// A profile with its keys.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ListedFile {
    /// The path or URL of the profile.
    pub profile: PathBuf,
    /// The profile's keys and all other columns of its line.
    #[serde(flatten, deserialize_with = "texts")]
    pub keys: BTreeMap<String, String>,
}

impl ListedFile {
    /// Creates a profile with these keys.
    pub fn new(profile: impl Into<PathBuf>, keys: BTreeMap<String, String>) -> ListedFile {
        ListedFile { profile: profile.into(), keys }
    }

    /// Returns the file's values of `keys`. `list_name` is the name of the list in errors.
    fn values(&self, keys: &[&str], list_name: &str) -> Result<KeyValues> {
        let value = |name: &&str| {
            let why = || format!("{} has no {name:?}", self.profile.display());
            self.keys.get(*name).cloned().ok_or_else(|| Error::malformed(why()).in_input(list_name))
        };
        keys.iter().map(value).collect()
    }
}

/// Reads the values of a JSON object as texts. Numbers are read first, so `1.10` becomes `1.1`. A duplicate key is an
/// error, because the intended value is unknown.
fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<BTreeMap<String, String>, D::Error> {
    struct TextMapVisitor;

    impl<'de> serde::de::Visitor<'de> for TextMapVisitor {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("keys with values")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
            let mut texts = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                let text = match value {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                };
                if texts.contains_key(&name) {
                    return Err(serde::de::Error::custom(duplicate_key(&name)));
                }
                texts.insert(name, text);
            }
            Ok(texts)
        }
    }

    from.deserialize_map(TextMapVisitor)
}

fn duplicate_key(name: &str) -> String {
    format!("the key {name:?} occurs twice; remove one")
}

/// Returns the profile and the keys in a line of a CSV manifest. Serde would convert values that look like numbers, and
/// change `1.10` to `1.1`.
fn csv_file(columns: &csv::StringRecord, line: &csv::StringRecord) -> Result<ListedFile, String> {
    let mut keys = BTreeMap::new();
    for (name, value) in columns.iter().zip(line) {
        if keys.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(duplicate_key(name));
        }
    }
    let profile = keys.remove("profile").ok_or("the column \"profile\" is missing")?;
    Ok(ListedFile::new(profile, keys))
}

/// Reads the files that a manifest lists. The manifest is CSV with a column `profile` (all other columns are keys), or
/// JSON lines with these names.
///
/// # Errors
/// Returns an error if the manifest can't be read or a line is invalid.
pub fn listed_files(manifest: &Path) -> Result<Vec<ListedFile>> {
    let name = manifest.display().to_string();
    let invalid = |line: u64, why: &dyn std::fmt::Display| {
        let why = format!("each line needs a profile and its keys: {why}");
        Error::malformed(why).in_input(&name).in_record(|| format!("line {line}"))
    };
    let file = BufReader::new(File::open(manifest).map_err(|e| Error::io(e).in_input(&name))?);
    if is_json(manifest) {
        let lines = (1..)
            .zip(ManifestLines(file))
            .filter(|(_, text)| !text.as_ref().is_ok_and(|text| text.trim_ascii().is_empty()));
        let read = |(line, text): (u64, std::io::Result<Vec<u8>>)| {
            serde_json::from_slice(&text.map_err(|e| invalid(line, &e))?).map_err(|e| invalid(line, &e))
        };
        return lines.map(read).collect();
    }
    let mut reader = csv::Reader::from_reader(file);
    let (mut files, mut record) = (Vec::new(), csv::StringRecord::new());
    let columns = reader.headers().map_err(|e| invalid(1, &e))?.clone();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(files),
            Ok(true) => {
                let line = record.position().map_or(line, csv::Position::line);
                files.push(csv_file(&columns, &record).map_err(|e| invalid(line, &e))?);
            }
            Err(e) => return Err(invalid(e.position().map_or(line, csv::Position::line), &e)),
        }
    }
}

/// Resolves `@latest` and `@previous` to a value that occurs in the files, which are all files with the same other
/// keys. Returns other values unchanged.
fn resolve_value(files: &[(KeyValues, PathBuf)], key: usize, value: &str) -> Option<String> {
    let steps_back = match value {
        "@latest" => 0,
        "@previous" => 1,
        _ => return Some(value.to_owned()),
    };
    let mut values: Vec<&String> = files.iter().map(|(values, _)| &values[key]).collect();
    sort_by_cached_key(&mut values, |value| natural_sort_key(value));
    values.dedup();
    values.iter().rev().nth(steps_back).map(|value| (*value).clone())
}

fn pair(name: &str, groups: &Groups, sides: [Vec<PathBuf>; 2]) -> Result<(Vec<Source>, Vec<Source>)> {
    for (side, files) in [&groups.base, &groups.new].into_iter().zip(&sides) {
        if files.is_empty() {
            return Err(Error::new(ErrorKind::Incompatible, format!("no file has {side}")).in_input(name));
        }
        if let Some(pipe) = files.iter().find(|path| is_pipe_or_device(path)) {
            return Err(pipe_or_device_error().in_input(&pipe.display().to_string()));
        }
    }
    let [base, new] = sides.map(|files| files.into_iter().map(Source::Path).collect());
    Ok((base, new))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Creates files with these paths in a separate folder and pairs them. Returns each pair's name with the files of
    /// both sides.
    fn grouped(test: &str, files: &[&str], pattern: &str, [keys, base, new]: [&str; 3]) -> Result<Vec<String>> {
        let root = std::env::temp_dir().join(format!("pprofdiff-groups-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let groups = Groups::new(keys, base, new);
        let pattern = root.join(pattern).display().to_string();
        let pairs = Finder::default().group_pairs(&pattern, &groups, &LoadOptions::default());
        let prefix = format!("{}/", root.display());
        let names = |side: &[Source]| {
            let names = side.iter().map(|s| s.name().strip_prefix(&prefix).unwrap().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        let show = |pair: BatchItem| match pair.sides {
            Ok((base, new)) => format!("{}: {} | {}", pair.name, names(&base), names(&new)),
            Err(e) => format!("{}: {e}", pair.name),
        };
        std::fs::remove_dir_all(root).unwrap();
        Ok(pairs?.into_iter().map(show).collect())
    }

    const FILES: &[&str] = &[
        "api/v1/a.pb",
        "api/v1/b.pb",
        "api/v2/a.pb",
        "api/v10/a.pb",
        "db/v1/a.pb",
        "db/v2/a.pb",
        "old/v1/a.pb",
        "x/v7/a.pb",
    ];

    #[test]
    fn files_are_paired_by_equal_remaining_keys() {
        let keys = "service={1},version={2}";
        assert_eq!(
            grouped("keys", FILES, "*/*/*.pb", [keys, "version=v1", "version=v2"]).unwrap(),
            [
                "api: api/v1/a.pb api/v1/b.pb | api/v2/a.pb",
                "db: db/v1/a.pb | db/v2/a.pb",
                "old: old: no file has version=v2",
            ]
        );
        // `@latest` and `@previous` use the natural order of builds. A service with one version has no previous
        // version.
        assert_eq!(
            grouped("order", FILES, "*/*/a.pb", [keys, "version=@previous", "version=@latest"]).unwrap(),
            [
                "api: api/v2/a.pb | api/v10/a.pb",
                "db: db/v1/a.pb | db/v2/a.pb",
                "old: old: no file has version=@previous",
                "x: x: no file has version=@previous",
            ]
        );
        // Files are paired regardless of attributes without a key. A pair whose only keys are the compared keys gets
        // the name of the new side.
        assert_eq!(
            grouped("all", FILES, "*/*/*.pb", ["build={2}", "build=v1", "build=v2"]).unwrap(),
            ["build=v2: api/v1/a.pb api/v1/b.pb db/v1/a.pb old/v1/a.pb | api/v2/a.pb db/v2/a.pb"]
        );
        let both = ["of={1}-{2},file={3}", "of=api-v1", "of=db-v1"];
        assert_eq!(
            grouped("both", FILES, "*/*/*.pb", both).unwrap(),
            ["a: api/v1/a.pb | db/v1/a.pb", "b: b: no file has of=db-v1"]
        );
    }

    #[test]
    fn invalid_keys_and_sides_are_explained() {
        let usual = ["service={1},version={2}", "version=v1", "version=v2"];
        for (index, text, why) in [
            (0, "service", "a key needs a name and a value"),
            (0, "={1},version={2}", "a unique name"),
            (0, "version={1},version={2}", "a unique name"),
            (0, "service={1,version={2}", "a { is not closed"),
            (0, "service={0},version={2}", "from 1"),
            (0, "service={},version={2}", "from 1"),
            (0, "service={1},version={4}", "refers to a wildcard that the pattern"),
            (1, "build=v1", "one of the keys service, version"),
            (1, "v1", "one of the keys service, version"),
            (1, "version=", "one of the keys service, version"),
            (1, "service=api", "two different values of the same keys"),
            (2, "version=v1", "two different values of the same keys"),
        ] {
            let mut arguments = usual;
            arguments[index] = text;
            let error = grouped("none", FILES, "*/*/*.pb", arguments).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let swapped = [usual[0], "service=api,version=v1", "version=v1,service=api"];
        let error = grouped("none", FILES, "*/*/*.pb", swapped).unwrap_err().to_string();
        assert!(error.contains("two different values of the same keys"), "{error}");
        let error_of = |pattern, arguments| grouped("nothing", FILES, pattern, arguments).unwrap_err().to_string();
        assert!(error_of("*/*/*.gz", usual).contains("no file matches"));
        let unknown = error_of("*/*/*.pb", [usual[0], "version=v8", "version=v9"]);
        assert!(unknown.contains("has \"version=v8\" or \"version=v9\""), "{unknown}");
    }

    #[test]
    fn manifest_files_are_paired_by_their_columns() {
        let dir = std::env::temp_dir().join(format!("pprofdiff-listed-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let groups = Groups::new("service,version", "version=1", "version=2");
        let pair_manifest = |name: &str, text: &str| {
            let manifest = dir.join(name);
            std::fs::write(&manifest, text).unwrap();
            let show = |pair: BatchItem| match pair.sides {
                Ok(sides) => format!("{}: {:?}", pair.name, [sides.0, sides.1].map(|side| side.len())),
                Err(e) => format!("{}: {e}", pair.name),
            };
            match Finder::default().group_pairs(&manifest.display().to_string(), &groups, &LoadOptions::default()) {
                Ok(pairs) => pairs.into_iter().map(show).collect(),
                Err(e) => vec![e.to_string()],
            }
        };
        let csv = "service,profile,version,host\napi,a,1,x\napi,b,1,y\napi,s3://c,2,x\ndb,d,1,x\n";
        let listed = ["api: [2, 1]", "db: db: no file has version=2"];
        assert_eq!(pair_manifest("a.csv", csv), listed);
        // JSON numbers and CSV texts give the same keys.
        let json = "{\"profile\":\"a\",\"service\":\"api\",\"version\":1}\n\n{\"profile\":\"b\",\"service\":\"api\",\"version\":1}\n\
                    {\"profile\":\"s3://c\",\"service\":\"api\",\"version\":\"2\"}\n{\"profile\":\"d\",\"service\":\"db\",\"version\":1}\n";
        assert_eq!(pair_manifest("a.jsonl", json), listed);
        for (name, text, why) in [
            ("b.csv", "profile,service\na,api\n", "a has no \"version\""),
            ("c.csv", "file,service,version\na,api,1\n", "line 2: each line needs a profile and its keys"),
            ("d.csv", "profile,service,version\na,api,1\nb,api\n", "line 3: each line needs a profile"),
            ("e.jsonl", "{\"profile\":\"a\"}\n[]\n", "line 2: each line needs a profile"),
            ("f.csv", "profile,service,version\na,api,3\n", "has \"version=1\" or \"version=2\""),
        ] {
            let results = pair_manifest(name, text);
            assert!(results.len() == 1 && results[0].contains(name) && results[0].contains(why), "{text}: {results:?}");
        }
        let by_signs = Groups::new("service={1},version={2}", "version=1", "version=2");
        let csv = dir.join("a.csv").display().to_string();
        let by_signs = Finder::default().group_pairs(&csv, &by_signs, &LoadOptions::default());
        let error = by_signs.unwrap_err().to_string();
        assert!(error.contains("needs names only, such as service,version"), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn keys_of_a_csv_manifest_are_kept_as_written() {
        let path = std::env::temp_dir().join(format!("pprofdiff-{}-written.csv", std::process::id()));
        std::fs::write(&path, "version,build,profile,commit,on\n1.10,007,12,123e4567, true\n").unwrap();
        let files = listed_files(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let keys = [("version", "1.10"), ("build", "007"), ("commit", "123e4567"), ("on", " true")];
        let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(files, [ListedFile::new("12", BTreeMap::from(keys))]);
    }

    #[test]
    fn a_duplicate_key_in_a_manifest_is_an_error() {
        for (file, text) in [
            ("twice.jsonl", "{\"profile\":\"a\",\"build\":\"1\",\"build\":\"2\"}\n"),
            ("twice.csv", "profile,build,build\na,1,2\n"),
        ] {
            let path = std::env::temp_dir().join(format!("pprofdiff-{}-{file}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            let error = listed_files(&path).unwrap_err().to_string();
            std::fs::remove_file(path).unwrap();
            assert!(error.contains("the key \"build\" occurs twice"), "{error}");
        }
    }
}
