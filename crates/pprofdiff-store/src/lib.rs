//! Stores profiles in Parquet files that polars, DuckDB and Spark can read directly. Comments call these programs
//! engines.
//!
//! Profiles and the costs of their functions go in, by keys, and come out as sources ([`pprofdiff::Source`]). Reports
//! and series of builds use them like any other source; this crate computes neither.
//!
//! ```text
//! STORE/pprofdiff-store.json                        the names of its keys, in their order
//! STORE/samples/service=api/build=123/ID.parquet    one row per value; makes a profile visible to our readers
//! STORE/locations/service=api/build=123/ID.parquet  files, lines and addresses of its frames
//! STORE/functions/service=api/build=123/ID.parquet  the cost of each function
//! STORE/_series/                                    a cache of derived data, for faster answers
//! STORE/_tmp/                                       unfinished files of running and killed writers
//! STORE/_commit.lock, STORE/_compact.lock           empty files that writers lock
//! ```
//!
//! A profile is written outside the tables, synced and then renamed into place, completely or not at all (`commit.rs`).
//! A file's name is derived from content and keys, so two writers write either different files or the same file. Files
//! are never modified. Readers take no lock; writers hold a lock during renames.
//!
//! Profiles share no rows. The rows of a profile contain its id, and its location numbers are valid only together with
//! this id. A join by both therefore finds no rows of another profile, and removing a partition never affects another
//! partition.

#![warn(missing_debug_implementations)]

mod add;
mod commit;
mod compact;
mod content;
mod costs;
mod derived;
mod files;
mod lists;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod thrift;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use add::add;
pub use compact::Compaction;
pub use pprofdiff::input::{Costs, FunctionCost, TypeCosts};
pub use select::{Partition, StoreSelection, StoredProfile, store_pairs};

use content::{LOCATIONS, SAMPLES, StoredAbout, StoredContent};
use costs::{FUNCTIONS, StoredCosts, rows, to_stored};
use pprofdiff_profile::Profile;
use pprofdiff_profile::output::Staged;
use pprofdiff_profile::{Error, Result};
use table::{StoreTable, TableFile};

/// The file that marks a folder as a store.
const MARKER_FILE: &str = "pprofdiff-store.json";
const SCHEMA: &str = "pprofdiff-store/1";
/// The folder for unfinished files. It is next to the tables, and its name starts with an underscore, because engines
/// ignore such folders.
const TMP: &str = "_tmp";
/// The maximum size of a table's file.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The maximum size of a marker.
const MAX_MARKER_BYTES: u64 = 64 << 10;
/// The maximum length of a key's value in bytes, after escaping. File systems limit the length of names.
const MAX_VALUE: usize = 200;

/// The tables in the order in which a profile's files are written. The samples come last because they make the profile
/// visible.
static TABLES: [&StoreTable; 3] = [&LOCATIONS, &FUNCTIONS, &SAMPLES];

/// A folder of profiles that are organized by keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
    keys: Vec<String>,
}

/// The content of the marker file.
#[derive(Serialize, Deserialize)]
struct Marker {
    schema: String,
    keys: Vec<String>,
}

/// The description of one profile in a table's file. The descriptions are in the order of the file's row groups.
#[derive(Serialize, Deserialize)]
struct ProfileEntry {
    id: String,
    name: String,
    /// Present only in the samples table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<StoredAbout>,
    /// Present only in the functions table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    costs: Option<StoredCosts>,
}

/// The result of adding a profile to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// The profile's id in the store.
    pub id: String,
    /// False if the store already had the profile.
    pub is_new: bool,
    /// The size of the new files in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns true if a folder is a store.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(MARKER_FILE).is_file()
    }

    /// Opens a store.
    ///
    /// # Errors
    /// Returns an error if the folder is not a store or is a store of another version, or if its marker can't be read.
    pub fn open(dir: &Path) -> Result<Store> {
        let path = dir.join(MARKER_FILE);
        let named = |e: Error| e.in_input(&path.display().to_string());
        let text = match files::read(&path, MAX_MARKER_BYTES) {
            Err(e) if select::is_gone(&e) => {
                let detail = "this is not a profile store; create one with pprofdiff store add";
                return Err(Error::query(detail).in_input(&dir.display().to_string()));
            }
            text => text?,
        };
        let marker: Marker = serde_json::from_slice(&text).map_err(|e| named(Error::malformed(e.to_string())))?;
        if marker.schema != SCHEMA {
            return Err(named(Error::query(format!(
                "its schema is {:?}, but only {SCHEMA:?} is supported",
                marker.schema
            ))));
        }
        marker.keys.iter().try_for_each(|key| check_key(key)).map_err(named)?;
        Ok(Store { dir: dir.to_owned(), keys: marker.keys })
    }

    /// Opens a store. Creates it with these keys if the folder is missing or empty. An existing store keeps its keys.
    ///
    /// # Errors
    /// Returns the errors of [`Store::open`]. For a new store, returns an error if the folder has other files, if no
    /// keys or equal keys are given, or if a key can't be the name of a folder and a column.
    pub fn open_or_create(dir: &Path, keys: &[String]) -> Result<Store> {
        if !Store::is_in(dir) {
            let named = |e: Error| e.in_input(&dir.display().to_string());
            if keys.is_empty() {
                return Err(named(Error::query(
                    "a new store needs the keys of its profiles: --key service=api --key build=123",
                )));
            }
            keys.iter().try_for_each(|key| check_key(key)).map_err(named)?;
            if keys.iter().enumerate().any(|(i, key)| keys[..i].contains(key)) {
                return Err(named(Error::query("a key is given twice")));
            }
            let has_other_files =
                fs::read_dir(dir).is_ok_and(|mut files| files.any(|file| file.is_ok_and(|f| f.file_name() != TMP)));
            if has_other_files && !Store::is_in(dir) {
                return Err(named(Error::query("the folder has other files; use an empty or new folder for a store")));
            }
            let marker = Marker { schema: SCHEMA.to_owned(), keys: keys.to_vec() };
            let text = serde_json::to_vec(&marker).map_err(|e| Error::query(e.to_string()))?;
            let tmp = Store { dir: dir.to_owned(), keys: Vec::new() }.tmp()?;
            // If another writer was faster, its keys apply.
            let written = Staged::write(&tmp, &text).and_then(|marker| marker.persist_new(&dir.join(MARKER_FILE)));
            written.map_err(|e| named(Error::io(e)))?;
        }
        Store::open(dir)
    }

    /// Returns the names of the store's keys, in the order of its folders.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the folder of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns these keys and their values in the store's order.
    ///
    /// # Errors
    /// Returns an error if the keys are not exactly the store's keys, or if a value is empty or longer than
    /// [`MAX_VALUE`].
    fn ordered(&self, keys: &[(String, String)]) -> Result<Vec<(String, String)>> {
        let value = |key: &String| keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        let ordered: Option<Vec<_>> = self.keys.iter().map(|key| Some((key.clone(), value(key)?))).collect();
        let Some(ordered) = ordered.filter(|ordered| ordered.len() == keys.len()) else {
            let keys = self.keys.iter().map(|key| format!("--key {key}=...")).collect::<Vec<_>>().join(" ");
            let detail = format!("profiles of this store have the keys {keys}");
            return Err(Error::query(detail).in_input(&self.dir.display().to_string()));
        };
        match ordered.iter().find(|(_, value)| value.is_empty() || escape(value).len() > MAX_VALUE) {
            Some((key, _)) => {
                let why = "is empty, or in the name of its folder (with %XX for special characters) longer than";
                Err(Error::query(format!("the value of {key} {why} {MAX_VALUE} bytes")))
            }
            None => Ok(ordered),
        }
    }

    /// Adds a profile, completely or not at all. Adding a profile that the store already has changes nothing.
    ///
    /// # Errors
    /// Returns an error if the keys differ from the store's keys, if a value is empty or too long, if the profile lacks
    /// sample types, or if a file can't be written.
    pub fn add(&self, profile: &Profile, keys: &[(String, String)], costs: &Costs) -> Result<Added> {
        let keys = self.ordered(keys)?;
        let content = StoredContent::new(profile)?;
        let id = content.id(&keys)?;
        let partition = Partition::new(self, keys);
        let is_stored = || Ok::<bool, Error>(partition.profiles()?.iter().any(|stored| stored.id() == id));
        if is_stored()? {
            let _ = self.complete_commits();
            return Ok(Added { id, is_new: false, bytes: 0 });
        }
        let name = profile.name();
        let entry = || ProfileEntry { id: id.clone(), name: name.to_owned(), about: None, costs: None };
        let files = [
            (&LOCATIONS, content.locations(&id), entry()),
            (&FUNCTIONS, rows(costs, profile, &id), ProfileEntry { costs: to_stored(costs, profile), ..entry() }),
            (&SAMPLES, content.samples(&id, name), ProfileEntry { about: Some(content.about), ..entry() }),
        ];
        let tmp = self.tmp()?;
        let (mut bytes, mut staged) = (0, Vec::new());
        for (table, columns, entry) in files {
            let file = table.write(&columns, entries_text(&[entry])?)?;
            bytes += file.len() as u64;
            let named = |e| Error::io(e).in_input(&partition.file(table, &id).display().to_string());
            staged.push(Staged::write(&tmp, &file).map_err(named)?);
        }
        // An older commit that can't be completed does not block this commit; `compact` reports it.
        let _ = self.complete_commits();
        let _lock = self.lock_commits()?;
        if is_stored()? {
            return Ok(Added { id, is_new: false, bytes: 0 });
        }
        partition.commit(&id, staged, Vec::new())?;
        Ok(Added { id, is_new: true, bytes })
    }
}

fn entries_text(entries: &[impl Serialize]) -> Result<String> {
    serde_json::to_string(entries).map_err(|e| Error::query(e.to_string()))
}

/// Checks that a key can be the name of a folder, and of a column next to the tables' own columns.
fn check_key(key: &str) -> Result<()> {
    let is_word = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && key.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_word || key.len() > 64 {
        let rule = "a word of at most 64 letters, digits and _ that starts with a letter";
        return Err(Error::query(format!("a key must be {rule}, not {key:?}")));
    }
    let columns = TABLES.into_iter().flat_map(|table| table.columns);
    match columns.map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(key)) {
        Some(name) => Err(Error::query(format!("{name} is a column of the store's tables; choose another key"))),
        None => Ok(()),
    }
}

/// Returns true if `text` has the form of a profile's id: 32 lowercase hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Escapes a value for a folder's name: all bytes become `%XX`, as in Hive, except ASCII letters, digits, `.`, `_`
/// and `-`.
fn escape(value: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    value.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens a file of a table. For a missing file, returns an error that [`select::is_gone`] recognizes, unlike for a
/// damaged file.
fn open_file(table: &'static StoreTable, path: &Path) -> Result<(TableFile, Vec<ProfileEntry>)> {
    let named = |e: Error| e.in_input(&path.display().to_string());
    let file = table.open(files::read(path, MAX_FILE_BYTES)?).map_err(named)?;
    let entries = entries(&file.about, file.n_groups()).map_err(named)?;
    Ok((file, entries))
}

/// Reads the descriptions of the profiles in a table's file.
fn read_entries(path: &Path) -> Result<Vec<ProfileEntry>> {
    let (mut file, _) = files::open_regular(path)?;
    let read = table::read_about(&mut file).and_then(|(about, groups)| entries(&about, groups));
    read.map_err(|e| e.in_input(&path.display().to_string()))
}

fn entries(about: &str, groups: usize) -> Result<Vec<ProfileEntry>> {
    let entries: Vec<ProfileEntry> =
        serde_json::from_str(about).map_err(|e| Error::malformed(format!("its list of profiles is invalid: {e}")))?;
    match entries.len() == groups {
        true => Ok(entries),
        false => Err(Error::malformed("its numbers of row groups and profiles differ")),
    }
}
