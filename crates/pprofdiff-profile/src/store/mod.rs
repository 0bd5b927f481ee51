//! A store of profiles in Parquet files, which polars, DuckDB and Spark read as they are.
//!
//! ```text
//! STORE/pprofdiff-store.json                        the names of its keys, in their order
//! STORE/samples/service=api/build=123/ID.parquet    one row per value; makes a profile visible to our readers
//! STORE/locations/service=api/build=123/ID.parquet  files, lines and addresses of its frames
//! STORE/functions/service=api/build=123/ID.parquet  what each function costs
//! STORE/_series/                                    what follows from all that, for sooner answers
//! STORE/_tmp/                                       what is being written, and what was never finished
//! STORE/_commit.lock, STORE/_compact.lock           empty files that writers lock
//! ```
//!
//! A profile is written outside the tables, synced and then renamed into place, completely or not at all (`commit.rs`).
//! A file's name is derived from content and keys, so two writers write either different files or the same file. Files
//! are never modified. Readers take no lock; writers hold a lock during renames.
//!
//! A profile is read by itself: files share no ids, so that no join counts anything twice, and a partition that is removed
//! takes nothing from another.

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

pub use compact::Compaction;
pub use costs::{Costs, FunctionCost, TypeCosts};
pub use select::{Partition, Selection, StoredProfile, store_pairs};

use crate::error::{Error, Result};
use crate::output::Staged;
use crate::profile::Profile;
use content::{About, Content, LOCATIONS, SAMPLES};
use costs::{FUNCTIONS, StoredCosts};
use table::{Table, TableFile};

/// The file that says what a folder is.
const MARKER_FILE: &str = "pprofdiff-store.json";
const SCHEMA: &str = "pprofdiff-store/1";
/// What is being written. No engine reads a folder with such a name.
const TMP: &str = "_tmp";
/// The maximum size of a table's file.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The maximum size of a marker.
const MAX_MARKER_BYTES: u64 = 64 << 10;
/// The longest value of a key: of what file systems take for a name.
const MAX_VALUE: usize = 200;

/// In the order in which a profile is written: its samples make it visible.
static TABLES: [&Table; 3] = [&LOCATIONS, &FUNCTIONS, &SAMPLES];

/// A folder of profiles by keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
    keys: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    schema: String,
    keys: Vec<String>,
}

/// What a file says of each of its profiles, in the order of its groups of rows.
#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    name: String,
    /// Only with its samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    /// Only with its functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    costs: Option<StoredCosts>,
}

/// Whether a profile is new in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// What it is called there.
    pub id: String,
    /// False if it was there already.
    pub is_new: bool,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Store {
    /// True if a folder is a store.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(MARKER_FILE).is_file()
    }

    /// Opens a store.
    ///
    /// # Errors
    /// The folder is none, or one of another version.
    pub fn open(dir: &Path) -> Result<Store> {
        let path = dir.join(MARKER_FILE);
        let named = |e: Error| e.in_input(&path.display().to_string());
        let text = match files::read(&path, MAX_MARKER_BYTES) {
            Err(e) if select::is_gone(&e) => {
                let detail = "this is no store of profiles; pprofdiff store add makes one";
                return Err(Error::query(detail).in_input(&dir.display().to_string()));
            }
            text => text?,
        };
        let marker: Marker = serde_json::from_slice(&text).map_err(|e| named(Error::malformed(e.to_string())))?;
        if marker.schema != SCHEMA {
            return Err(named(Error::query(format!("its schema is {:?}; wanted is {SCHEMA:?}", marker.schema))));
        }
        marker.keys.iter().try_for_each(|key| check_key(key)).map_err(named)?;
        Ok(Store { dir: dir.to_owned(), keys: marker.keys })
    }

    /// Opens a store, or makes one with these keys, if there is nothing.
    ///
    /// # Errors
    /// As [`Store::open`]; a folder that has something else in it; keys that can't be names of folders and columns.
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
            let is_other =
                fs::read_dir(dir).is_ok_and(|mut files| files.any(|file| file.is_ok_and(|f| f.file_name() != TMP)));
            if is_other && !Store::is_in(dir) {
                return Err(named(Error::query(
                    "the folder has other files; a store is made in one that is empty or new",
                )));
            }
            let marker = Marker { schema: SCHEMA.to_owned(), keys: keys.to_vec() };
            let text = serde_json::to_vec(&marker).map_err(|e| Error::query(e.to_string()))?;
            let tmp = Store { dir: dir.to_owned(), keys: Vec::new() }.tmp()?;
            // Where another writer was faster its keys stand.
            let written = Staged::write(&tmp, &text).and_then(|marker| marker.persist_new(&dir.join(MARKER_FILE)));
            written.map_err(|e| named(Error::io(e)))?;
        }
        Store::open(dir)
    }

    /// The names of its keys, in the order of its folders.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Values of keys in the store's order.
    ///
    /// # Errors
    /// They are not those of the store, or can't be names of folders.
    fn ordered(&self, keys: &[(String, String)]) -> Result<Vec<(String, String)>> {
        let value = |key: &String| keys.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
        let ordered: Option<Vec<_>> = self.keys.iter().map(|key| Some((key.clone(), value(key)?))).collect();
        let Some(ordered) = ordered.filter(|ordered| ordered.len() == keys.len()) else {
            let keys = self.keys.iter().map(|key| format!("--key {key}=...")).collect::<Vec<_>>().join(" ");
            let detail = format!("profiles of this store have the keys {keys}");
            return Err(Error::query(detail).in_input(&self.dir.display().to_string()));
        };
        match ordered.iter().find(|(_, value)| value.is_empty() || escape(value).len() > MAX_VALUE) {
            Some((key, _)) => {
                Err(Error::query(format!("the value of {key} is empty, or longer than {MAX_VALUE} bytes")))
            }
            None => Ok(ordered),
        }
    }

    /// Adds a profile: all of it or nothing. One that is there already changes nothing.
    ///
    /// # Errors
    /// Other keys than the store's; a profile without sample types; the operating system's.
    pub fn add(&self, profile: &Profile, keys: &[(String, String)], costs: &Costs) -> Result<Added> {
        let keys = self.ordered(keys)?;
        let content = Content::new(profile)?;
        let id = content.id(&keys)?;
        let partition = Partition::new(self, keys);
        let is_known = || Ok::<bool, Error>(partition.profiles()?.iter().any(|known| known.id() == id));
        if is_known()? {
            let _ = self.complete_commits();
            return Ok(Added { id, is_new: false, bytes: 0 });
        }
        let name = profile.name();
        let entry = || Entry { id: id.clone(), name: name.to_owned(), about: None, costs: None };
        let files = [
            (&LOCATIONS, content.locations(&id), entry()),
            (&FUNCTIONS, costs.rows(profile, &id), Entry { costs: costs.to_stored(profile), ..entry() }),
            (&SAMPLES, content.samples(&id, name), Entry { about: Some(content.about), ..entry() }),
        ];
        let tmp = self.tmp()?;
        let (mut bytes, mut staged) = (0, Vec::new());
        for (table, columns, entry) in files {
            let file = table.write(&columns, entries_text(&[entry])?)?;
            bytes += file.len() as u64;
            let named = |e| Error::io(e).in_input(&partition.file(table, &id).display().to_string());
            staged.push(Staged::write(&tmp, &file).map_err(named)?);
        }
        // An unfinished commit does not block this commit; `compact` reports it.
        let _ = self.complete_commits();
        let _lock = self.lock_commits()?;
        if is_known()? {
            return Ok(Added { id, is_new: false, bytes: 0 });
        }
        partition.commit(&id, staged, Vec::new())?;
        Ok(Added { id, is_new: true, bytes })
    }
}

fn entries_text(entries: &[impl Serialize]) -> Result<String> {
    serde_json::to_string(entries).map_err(|e| Error::query(e.to_string()))
}

/// Checks that a key can be the name of a column beside those of the tables, and of folders.
fn check_key(key: &str) -> Result<()> {
    let is_word = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && key.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_word || key.len() > 64 {
        return Err(Error::query(format!("a key is a word of letters, digits and _, not {key:?}")));
    }
    let columns = TABLES.into_iter().flat_map(|table| table.columns);
    match columns.map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(key)) {
        Some(name) => Err(Error::query(format!("{name} is a column of the store's tables; name the key otherwise"))),
        None => Ok(()),
    }
}

/// Returns true if `text` has the form of a profile's id, which is a hash of the same length.
fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A value as part of a folder's name, as Hive escapes it.
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

/// Opens a file of a table. One that is not there is said to be gone, which tells it from one that is damaged.
fn open_file(table: &'static Table, path: &Path) -> Result<(TableFile, Vec<Entry>)> {
    let named = |e: Error| e.in_input(&path.display().to_string());
    let file = table.open(files::read(path, MAX_FILE_BYTES)?).map_err(named)?;
    let entries = entries(&file.about, file.n_groups()).map_err(named)?;
    Ok((file, entries))
}

/// The profiles that a file of a table has.
fn read_entries(path: &Path) -> Result<Vec<Entry>> {
    let (mut file, _) = files::open_regular(path)?;
    let read = table::read_about(&mut file).and_then(|(about, groups)| entries(&about, groups));
    read.map_err(|e| e.in_input(&path.display().to_string()))
}

fn entries(about: &str, groups: usize) -> Result<Vec<Entry>> {
    let entries: Vec<Entry> =
        serde_json::from_str(about).map_err(|e| Error::malformed(format!("what it says of its profiles: {e}")))?;
    match entries.len() == groups {
        true => Ok(entries),
        false => Err(Error::malformed("it has not as many groups of rows as profiles")),
    }
}
