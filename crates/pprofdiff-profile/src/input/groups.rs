//! Which files belong together by keys that their paths, their labels or a manifest say: services and versions, hosts and hours.
//!
//! ```text
//! 's3/*/*.pb.gz', service={1},version={version}   each file by its keys: of its path, and of a label
//!   base version=v1, new version=v2               two files' sides, where all other keys are alike
//! ```
//!
//! All files of a side are runs of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Source;
use super::builds::natural;
use super::pairs::{BatchItem, Lines, is_json};
use super::patterns::{Finder, StoodFor, is_pipe_or_device, not_waited_for};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;
use crate::profile::{LabelValue, LoadOptions, Profile};

/// Which files of a pattern are compared with which.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Groups {
    /// The keys of a file: `service={1},version={version}`, where `{1}` is what the pattern's first sign stood for and
    /// `{version}` the value of the profile's label; of a manifest the names of columns, `service,version`.
    pub keys: String,
    /// The base's: `version=v1`; `version=@previous` is the last but one of those that there are, in their natural order.
    pub base: String,
    /// The new side's: `version=v2`; `version=@latest` is the last.
    pub new: String,
}

impl Groups {
    /// Files by these keys, of which a base is compared with a new side.
    pub fn new(keys: impl Into<String>, base: impl Into<String>, new: impl Into<String>) -> Groups {
        Groups { keys: keys.into(), base: base.into(), new: new.into() }
    }
}

/// A key's name, and the letters and signs that make its value.
type Template<'a> = (&'a str, Vec<Piece<'a>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// The number of a sign, from 1.
    Sign(usize),
    /// A label's key.
    Label(&'a str),
}

/// The keys of a template.
fn template(text: &str) -> Result<Vec<Template<'_>>> {
    let invalid =
        |why: &str| Error::query(format!("the keys {text:?} are invalid: {why}; such as service={{1}},version={{2}}"));
    let mut keys: Vec<Template<'_>> = Vec::new();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| invalid("a key has a name and a value"))?;
        if name.is_empty() || keys.iter().any(|(known, _)| *known == name) {
            return Err(invalid("each key has a name of its own"));
        }
        let pieces = pieces(value).map_err(invalid)?;
        keys.push((name, pieces));
    }
    Ok(keys)
}

/// The letters and signs that make a value.
fn pieces(mut value: &str) -> Result<Vec<Piece<'_>>, &'static str> {
    let mut pieces = Vec::new();
    while let Some(begin) = value.find('{') {
        let end = value[begin..].find('}').map(|end| begin + end).ok_or("a { has no }")?;
        pieces.extend((begin > 0).then_some(Piece::Text(&value[..begin])));
        pieces.push(match (value[begin + 1..end].parse(), &value[begin + 1..end]) {
            (Ok(0), _) | (_, "") => return Err("between braces stands a sign's number, from 1, or a label's key"),
            (Ok(number), _) => Piece::Sign(number),
            (Err(_), label) => Piece::Label(label),
        });
        value = &value[end + 1..];
    }
    pieces.extend((!value.is_empty()).then_some(Piece::Text(value)));
    Ok(pieces)
}

/// The value that pieces make of what a pattern's signs stood for, and of labels; `None` if there are fewer signs.
fn value(
    pieces: &[Piece<'_>],
    stood_for: Option<&[Option<String>]>,
    labels: &BTreeMap<&str, String>,
) -> Option<String> {
    let text = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => Some((*text).to_owned()),
        Piece::Sign(number) => stood_for?.get(number - 1).cloned().map(Option::unwrap_or_default),
        Piece::Label(key) => labels.get(key).cloned(),
    };
    pieces.iter().map(text).collect()
}

/// The values of a profile's labels. Samples without one, such as those of a runtime's own threads, say nothing.
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
            all.next().ok_or_else(|| invalid(format!("no sample has a label {key}, which is to be its key")))?;
        let other = all.filter(|value| *value != first).map(text).find(|value| *value != text(first));
        if let Some(other) = other {
            return Err(invalid(format!(
                "its samples have {key}={0} and {key}={other}, and a key has one value a file; write each part to one of its \
                 own, as by: pprofdiff top FILE --tagfocus {key}={0} -o PART.pb.gz",
                text(first)
            )));
        }
        values.insert(*key, text(first));
    }
    Ok(values)
}

impl Finder<'_> {
    /// The files of a pattern, each with its values of keys. Files are loaded only if labels are asked for.
    fn of_pattern(self, pattern: &str, keys: &[Template<'_>], options: &LoadOptions) -> Result<Vec<ListedFile>> {
        let pieces = keys.iter().flat_map(|(_, pieces)| pieces);
        let labels: Vec<&str> =
            pieces.filter_map(|piece| if let Piece::Label(key) = piece { Some(*key) } else { None }).collect();
        let read = |(stood_for, path): &(StoodFor, PathBuf)| {
            let labels = match labels.is_empty() {
                true => BTreeMap::new(),
                false => label_values(&*self.source(path.clone())?.load(options)?, &labels)?,
            };
            let mut values = BTreeMap::new();
            for (name, pieces) in keys {
                let why = || Error::query(format!("the key {name} has more signs than the pattern {pattern:?}"));
                values.insert((*name).to_owned(), value(pieces, stood_for.as_deref(), &labels).ok_or_else(why)?);
            }
            Ok(ListedFile::new(path.clone(), values))
        };
        let found = self.captured(pattern)?;
        match found.is_empty() {
            true => Err(Error::query(format!("no file matches {pattern:?}"))),
            false => parallel::map(&found, read).into_iter().collect(),
        }
    }

    /// The files of a pattern, each with its values of keys: in those, `{2}` is what the pattern's second sign stood for, and
    /// `{service}` the value of the profile's label.
    ///
    /// # Errors
    /// An invalid pattern, or one that matches nothing; values with other signs; of labels those of [`Profile::open`], and a
    /// profile without the label, or with several values of it.
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
        self.of_pattern(pattern, &templates, options)
    }

    /// Files with their keys: those of a pattern, of whose paths and labels `keys` are made (`service={1},version={version}`),
    /// or those that a manifest lists ([`listed_files`]), of whose columns they are names (`service,version`; all, unless
    /// given).
    ///
    /// # Errors
    /// An invalid pattern or manifest; keys that are none, or that a file has not; those of [`Finder::keyed_files`].
    pub fn list_files(self, of: &str, keys: Option<&str>, options: &LoadOptions) -> Result<Vec<ListedFile>> {
        if Path::new(of).is_file() {
            let mut files = listed_files(Path::new(of))?;
            if let Some(keys) = keys {
                let names = key_names(keys)?;
                files.iter().try_for_each(|file| file.values(&names, of).map(drop))?;
                files.iter_mut().for_each(|file| file.keys.retain(|key, _| names.contains(&key.as_str())));
            }
            return Ok(files);
        }
        self.of_pattern(of, &keys.map_or_else(|| Ok(Vec::new()), template)?, options)
    }

    /// Pairs files by their keys, see [`Finder::list_files`]; in the natural order of what both sides have in common. What only
    /// one side has is an error in its place.
    ///
    /// # Errors
    /// As [`Finder::list_files`]; sides that are none.
    pub fn group_pairs(self, of: &str, groups: &Groups, options: &LoadOptions) -> Result<Vec<BatchItem>> {
        let files = self.list_files(of, Some(&groups.keys), options)?;
        let names: Vec<&str> =
            groups.keys.split(',').map(|key| key.split_once('=').map_or(key, |(name, _)| name)).collect();
        groups.pair(&names, files, of)
    }
}

/// What a side's keys are.
fn selector<'a>(text: &'a str, keys: &[&str]) -> Result<Vec<(usize, &'a str)>> {
    let of = |part: &'a str| {
        let (name, value) = part.split_once('=')?;
        Some((keys.iter().position(|known| *known == name)?, value)).filter(|(_, value)| !value.is_empty())
    };
    let unknown = |part: &str| Error::query(format!("{part:?} is no KEY=VALUE of a key; keys are {}", keys.join(", ")));
    text.split(',').map(|part| of(part).ok_or_else(|| unknown(part))).collect()
}

/// A file's values of all keys.
type Values = Vec<String>;

/// The names of keys: `service,version`.
fn key_names(keys: &str) -> Result<Vec<&str>> {
    let names: Vec<&str> = keys.split(',').collect();
    match names.iter().any(|name| name.is_empty() || name.contains(['=', '{'])) {
        true => Err(Error::query(format!(
            "the keys {keys:?} are invalid: of what is listed they are names, such as service,version"
        ))),
        false => Ok(names),
    }
}

impl Groups {
    /// Pairs files whose values of all keys, and of others, are known. `of` is where they are listed, for errors.
    ///
    /// # Errors
    /// As [`Finder::group_pairs`]; a file without one of the keys.
    pub fn pair_listed(&self, files: Vec<ListedFile>, of: &str) -> Result<Vec<BatchItem>> {
        self.pair(&key_names(&self.keys)?, files, of)
    }

    /// Pairs files, each with its values of the keys of these names.
    fn pair(&self, keys: &[&str], files: Vec<ListedFile>, of: &str) -> Result<Vec<BatchItem>> {
        let sides = [selector(&self.base, keys)?, selector(&self.new, keys)?];
        let names = |side: &[(usize, &str)]| {
            let mut names: Vec<usize> = side.iter().map(|(key, _)| *key).collect();
            names.sort_unstable();
            names
        };
        if names(&sides[0]) != names(&sides[1]) || sides[0] == sides[1] {
            return Err(Error::query(format!(
                "{:?} and {:?} are not two values of the same keys",
                self.base, self.new
            )));
        }
        // By what both sides have in common: the files, each with its values of the keys in which they differ.
        let differs = names(&sides[0]);
        let mut common: BTreeMap<Vec<String>, Vec<(Values, PathBuf)>> = BTreeMap::new();
        for file in files {
            let values = file.values(keys, of)?;
            let rest =
                values.iter().enumerate().filter(|(key, _)| !differs.contains(key)).map(|(_, v)| v.clone()).collect();
            common.entry(rest).or_default().push((values, file.profile));
        }
        let mut pairs: Vec<BatchItem> = Vec::new();
        for (rest, files) in common {
            let of_side = |side: &[(usize, &str)]| -> Vec<PathBuf> {
                let wanted: Vec<(usize, Option<String>)> =
                    side.iter().map(|&(key, value)| (key, meant(&files, key, value))).collect();
                let is = |values: &Values| wanted.iter().all(|(key, value)| value.as_ref() == Some(&values[*key]));
                files.iter().filter(|(values, _)| is(values)).map(|(_, path)| path.clone()).collect()
            };
            let found = [of_side(&sides[0]), of_side(&sides[1])];
            // A build that has neither is asked by nobody.
            if found.iter().all(Vec::is_empty) {
                continue;
            }
            let name = if rest.is_empty() { self.new.clone() } else { rest.join("/") };
            pairs.push(BatchItem { sides: pair(&name, self, found), name });
        }
        if pairs.is_empty() {
            return Err(Error::query(format!("no file of {of:?} has {:?} or {:?}", self.base, self.new)));
        }
        pairs.sort_by_cached_key(|pair| natural(&pair.name));
        Ok(pairs)
    }
}

/// A profile with its keys.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ListedFile {
    /// A file, or a URL.
    pub profile: PathBuf,
    /// Its keys, and what else is said of it.
    #[serde(flatten, deserialize_with = "texts")]
    pub keys: BTreeMap<String, String>,
}

impl ListedFile {
    /// A profile with these keys.
    pub fn new(profile: impl Into<PathBuf>, keys: BTreeMap<String, String>) -> ListedFile {
        ListedFile { profile: profile.into(), keys }
    }

    /// Its values of keys.
    fn values(&self, keys: &[&str], of: &str) -> Result<Values> {
        let value = |name: &&str| {
            let why = || format!("{} has no {name:?}", self.profile.display());
            self.keys.get(*name).cloned().ok_or_else(|| Error::malformed(why()).in_input(of))
        };
        keys.iter().map(value).collect()
    }
}

/// Reads values as they are written, including JSON numbers. A duplicate key is an error, because the intended value is
/// unknown.
fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<BTreeMap<String, String>, D::Error> {
    struct Texts;

    impl<'de> serde::de::Visitor<'de> for Texts {
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
                    return Err(serde::de::Error::custom(format_args!("the key {name:?} occurs twice; remove one")));
                }
                texts.insert(name, text);
            }
            Ok(texts)
        }
    }

    from.deserialize_map(Texts)
}

/// What a manifest lists: CSV with a column `profile`, whose other columns are keys, or lines of JSON with such names.
///
/// # Errors
/// A file that can't be read, or a line that is no such file's.
pub fn listed_files(manifest: &Path) -> Result<Vec<ListedFile>> {
    let name = manifest.display().to_string();
    let invalid = |line: u64, why: &dyn std::fmt::Display| {
        let why = format!("a line names a profile and its keys: {why}");
        Error::malformed(why).in_input(&name).in_record(|| format!("line {line}"))
    };
    let file = BufReader::new(File::open(manifest).map_err(|e| Error::io(e).in_input(&name))?);
    if is_json(manifest) {
        let lines =
            (1..).zip(Lines(file)).filter(|(_, text)| !text.as_ref().is_ok_and(|text| text.trim_ascii().is_empty()));
        let read = |(line, text): (u64, std::io::Result<Vec<u8>>)| {
            serde_json::from_slice(&text.map_err(|e| invalid(line, &e))?).map_err(|e| invalid(line, &e))
        };
        return lines.map(read).collect();
    }
    let mut reader = csv::Reader::from_reader(file).into_deserialize::<ListedFile>();
    let mut files = Vec::new();
    loop {
        let line = reader.reader().position().line();
        match reader.next() {
            None => return Ok(files),
            Some(Ok(file)) => files.push(file),
            Some(Err(e)) => return Err(invalid(e.position().map_or(line, csv::Position::line), &e)),
        }
    }
}

/// The value that is meant of those that some files have.
fn meant(files: &[(Values, PathBuf)], key: usize, value: &str) -> Option<String> {
    let back = match value {
        "@latest" => 0,
        "@previous" => 1,
        _ => return Some(value.to_owned()),
    };
    let mut all: Vec<&String> = files.iter().map(|(values, _)| &values[key]).collect();
    all.sort_by_cached_key(|value| natural(value));
    all.dedup();
    all.iter().rev().nth(back).map(|value| (*value).clone())
}

fn pair(name: &str, groups: &Groups, found: [Vec<PathBuf>; 2]) -> Result<(Vec<Source>, Vec<Source>)> {
    for (side, files) in [&groups.base, &groups.new].into_iter().zip(&found) {
        if files.is_empty() {
            return Err(Error::new(ErrorKind::Incompatible, format!("there is no file of {side}")).in_input(name));
        }
        if let Some(pipe) = files.iter().find(|path| is_pipe_or_device(path)) {
            return Err(not_waited_for().in_input(&pipe.display().to_string()));
        }
    }
    let [base, new] = found.map(|files| files.into_iter().map(Source::Path).collect());
    Ok((base, new))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Files of these paths, in a folder of their own, and what groups find there: names with the files of both sides.
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
        let found = Finder::default().group_pairs(&pattern, &groups, &LoadOptions::default());
        let prefix = format!("{}/", root.display());
        let names = |side: &[Source]| {
            let names = side.iter().map(|s| s.name().strip_prefix(&prefix).unwrap().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        let said = |pair: BatchItem| match pair.sides {
            Ok((base, new)) => format!("{}: {} | {}", pair.name, names(&base), names(&new)),
            Err(e) => format!("{}: {e}", pair.name),
        };
        std::fs::remove_dir_all(root).unwrap();
        Ok(found?.into_iter().map(said).collect())
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
    fn files_are_paired_by_their_keys() {
        let keys = "service={1},version={2}";
        assert_eq!(
            grouped("keys", FILES, "*/*/*.pb", [keys, "version=v1", "version=v2"]).unwrap(),
            [
                "api: api/v1/a.pb api/v1/b.pb | api/v2/a.pb",
                "db: db/v1/a.pb | db/v2/a.pb",
                "old: old: there is no file of version=v2",
            ]
        );
        // The natural order is that of builds; who has one version has no previous one.
        assert_eq!(
            grouped("order", FILES, "*/*/a.pb", [keys, "version=@previous", "version=@latest"]).unwrap(),
            [
                "api: api/v2/a.pb | api/v10/a.pb",
                "db: db/v1/a.pb | db/v2/a.pb",
                "old: old: there is no file of version=@previous",
                "x: x: there is no file of version=@previous",
            ]
        );
        // What no key says is alike; what a key says in which both differ is named by the new side.
        assert_eq!(
            grouped("all", FILES, "*/*/*.pb", ["build={2}", "build=v1", "build=v2"]).unwrap(),
            ["build=v2: api/v1/a.pb api/v1/b.pb db/v1/a.pb old/v1/a.pb | api/v2/a.pb db/v2/a.pb"]
        );
        let both = ["of={1}-{2},file={3}", "of=api-v1", "of=db-v1"];
        assert_eq!(
            grouped("both", FILES, "*/*/*.pb", both).unwrap(),
            ["a: api/v1/a.pb | db/v1/a.pb", "b: b: there is no file of of=db-v1"]
        );
    }

    #[test]
    fn what_are_no_groups() {
        let usual = ["service={1},version={2}", "version=v1", "version=v2"];
        for (at, text, why) in [
            (0, "service", "a key has a name and a value"),
            (0, "={1},version={2}", "a name of its own"),
            (0, "version={1},version={2}", "a name of its own"),
            (0, "service={1,version={2}", "a { has no }"),
            (0, "service={0},version={2}", "from 1"),
            (0, "service={},version={2}", "from 1"),
            (0, "service={1},version={4}", "more signs than the pattern"),
            (1, "build=v1", "keys are service, version"),
            (1, "v1", "keys are service, version"),
            (1, "version=", "keys are service, version"),
            (1, "service=api", "not two values of the same keys"),
            (2, "version=v1", "not two values of the same keys"),
        ] {
            let mut asked = usual;
            asked[at] = text;
            let error = grouped("none", FILES, "*/*/*.pb", asked).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let none = |pattern, asked| grouped("nothing", FILES, pattern, asked).unwrap_err().to_string();
        assert!(none("*/*/*.gz", usual).contains("no file matches"));
        let unknown = none("*/*/*.pb", [usual[0], "version=v8", "version=v9"]);
        assert!(unknown.contains("has \"version=v8\" or \"version=v9\""), "{unknown}");
    }

    #[test]
    fn what_a_manifest_lists_is_paired_by_its_columns() {
        let dir = std::env::temp_dir().join(format!("pprofdiff-listed-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let asked = Groups::new("service,version", "version=1", "version=2");
        let of = |name: &str, text: &str| {
            let manifest = dir.join(name);
            std::fs::write(&manifest, text).unwrap();
            let said = |pair: BatchItem| match pair.sides {
                Ok(sides) => format!("{}: {:?}", pair.name, [sides.0, sides.1].map(|side| side.len())),
                Err(e) => format!("{}: {e}", pair.name),
            };
            match Finder::default().group_pairs(&manifest.display().to_string(), &asked, &LoadOptions::default()) {
                Ok(pairs) => pairs.into_iter().map(said).collect(),
                Err(e) => vec![e.to_string()],
            }
        };
        let csv = "service,profile,version,host\napi,a,1,x\napi,b,1,y\napi,s3://c,2,x\ndb,d,1,x\n";
        let listed = ["api: [2, 1]", "db: db: there is no file of version=2"];
        assert_eq!(of("a.csv", csv), listed);
        // Numbers of JSON are what CSV has of them.
        let json = "{\"profile\":\"a\",\"service\":\"api\",\"version\":1}\n\n{\"profile\":\"b\",\"service\":\"api\",\"version\":1}\n\
                    {\"profile\":\"s3://c\",\"service\":\"api\",\"version\":\"2\"}\n{\"profile\":\"d\",\"service\":\"db\",\"version\":1}\n";
        assert_eq!(of("a.jsonl", json), listed);
        for (name, text, why) in [
            ("b.csv", "profile,service\na,api\n", "a has no \"version\""),
            ("c.csv", "file,service,version\na,api,1\n", "line 2: a line names a profile and its keys"),
            ("d.csv", "profile,service,version\na,api,1\nb,api\n", "line 3: a line names a profile"),
            ("e.jsonl", "{\"profile\":\"a\"}\n[]\n", "line 2: a line names a profile"),
            ("f.csv", "profile,service,version\na,api,3\n", "has \"version=1\" or \"version=2\""),
        ] {
            let said = of(name, text);
            assert!(said.len() == 1 && said[0].contains(name) && said[0].contains(why), "{text}: {said:?}");
        }
        let by_signs = Groups::new("service={1},version={2}", "version=1", "version=2");
        let csv = dir.join("a.csv").display().to_string();
        let by_signs = Finder::default().group_pairs(&csv, &by_signs, &LoadOptions::default());
        let error = by_signs.unwrap_err().to_string();
        assert!(error.contains("they are names, such as service,version"), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
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
