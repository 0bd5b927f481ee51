//! The partitions of a store and their profiles, and paths such as `STORE/service=api/build=123` that select some of
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{LOCATIONS, SAMPLES, StoredContent};
use super::costs::{self, FUNCTIONS};
use super::files::{find_link, names};
use super::table::{Budget, StoreTable};
use super::{Costs, Store, TABLES, escape, is_id, open_file, read_entries, unescape};
use pprofdiff::LoadOptions;
use pprofdiff::input::{BatchItem, DerivedData, ProfileSource, Source, sort_builds};
use pprofdiff_profile::{Error, ErrorKind, Result};
use pprofdiff_profile::{Profile, parallel};

/// The prefix of compacted files' names. No id starts with it.
pub(super) const COMPACTED: &str = "compact-";
const EXTENSION: &str = ".parquet";
/// The maximum depth of folders to search for files outside the partitions.
const MAX_DEPTH: usize = 16;
/// The maximum number of attempts to read a folder while other processes compact it.
const MAX_TRIES: u32 = 8;

/// A set of profiles with the same key values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    store: Store,
    keys: Vec<(String, String)>,
}

/// The location of a profile in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    partition: Partition,
    id: String,
    /// The name of the profile's files, without the extension.
    stem: String,
    /// The index of the profile in its files.
    group: usize,
}

impl Partition {
    pub(super) fn new(store: &Store, keys: Vec<(String, String)>) -> Partition {
        Partition { store: store.clone(), keys }
    }

    /// Returns the keys and their values, in the store's order.
    pub fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    /// Returns the path of the partition inside a table: `service=api/build=123`.
    pub fn name(&self) -> String {
        self.keys.iter().map(|(key, value)| format!("{key}={}", escape(value))).collect::<Vec<_>>().join("/")
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the first link (or other file that is not a folder) on the path to a table's folder of this partition.
    pub(super) fn find_link(&self, table: &StoreTable) -> Option<PathBuf> {
        find_link(&self.store.dir, &Path::new(table.name).join(self.name()))
    }

    pub(super) fn folder(&self, table: &StoreTable) -> PathBuf {
        self.store.dir.join(table.name).join(self.name())
    }

    pub(super) fn file(&self, table: &StoreTable, stem: &str) -> PathBuf {
        self.folder(table).join(format!("{stem}{EXTENSION}"))
    }

    /// Returns the sorted names of a table's files, without the extension. Skips names that engines ignore.
    pub(super) fn stems(&self, table: &StoreTable) -> Result<Vec<String>> {
        let folder = self.folder(table);
        let mut stems = Vec::new();
        for name in names(&folder)? {
            stems.extend(name.strip_suffix(EXTENSION).filter(|stem| !stem.starts_with(['.', '_'])).map(str::to_owned));
        }
        stems.sort();
        Ok(stems)
    }

    /// Returns the number of files of all tables, and their size in bytes.
    ///
    /// # Errors
    /// Returns an error if a folder can't be read.
    pub fn size(&self) -> Result<(usize, u64)> {
        let (mut files, mut bytes) = (0, 0);
        for table in TABLES {
            for stem in self.stems(table)? {
                files += 1;
                bytes += fs::metadata(self.file(table, &stem)).map_or(0, |file| file.len());
            }
        }
        Ok((files, bytes))
    }

    /// Returns the partition's profiles in the order of their ids, each once. A profile in a compacted file is read
    /// from this file, even while the replaced files still exist.
    ///
    /// # Errors
    /// Returns an error if the folder or a compacted file can't be read, or if a compacted file does not belong to a
    /// store.
    pub fn profiles(&self) -> Result<Vec<StoredProfile>> {
        // A compaction may have replaced a compacted file after the folder was read. The new file may be missing from
        // the list, so the folder is read again.
        let mut tries = 0;
        loop {
            tries += 1;
            match self.find_profiles() {
                Err(e) if is_gone(&e) && tries < MAX_TRIES => {}
                result => return result,
            }
        }
    }

    fn find_profiles(&self) -> Result<Vec<StoredProfile>> {
        let mut profiles = BTreeMap::new();
        let stems = self.stems(&SAMPLES)?;
        let (compacted, single): (Vec<String>, Vec<String>) = stems.into_iter().partition(|s| s.starts_with(COMPACTED));
        for stem in single {
            profiles.insert(stem.clone(), (stem, 0));
        }
        for stem in compacted {
            for (group, entry) in read_entries(&self.file(&SAMPLES, &stem))?.into_iter().enumerate() {
                profiles.insert(entry.id, (stem.clone(), group));
            }
        }
        let stored = |(id, (stem, group))| StoredProfile { partition: self.clone(), id, stem, group };
        Ok(profiles.into_iter().map(stored).collect())
    }
}

/// Returns an error if `path`, which is next to a table's partitions, is or contains a table file. Engines would count
/// its rows. Ignores names that engines ignore.
fn check_left_out(path: &Path, key: &str) -> Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    if name.starts_with(['.', '_']) || !holds_table_file(path, MAX_DEPTH)? {
        return Ok(());
    }
    let detail = match name.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
        Some(value) => {
            let escaped = escape(&unescape(value));
            format!("this partition must be named {key}={escaped}; rename it, or merge it with the folder of that name")
        }
        None => format!("this is not a partition: its name does not begin with {key}=; move it out of the store"),
    };
    Err(Error::malformed(detail).in_input(&path.display().to_string()))
}

/// Returns true if `path` has the extension of a table's file, or is a folder with such a file or with more than
/// `depth` levels of folders.
fn holds_table_file(path: &Path, depth: usize) -> Result<bool> {
    if !fs::metadata(path).is_ok_and(|file| file.is_dir()) {
        return Ok(path.extension().is_some_and(|ending| ending == &EXTENSION[1..]));
    }
    // Deeper folders are assumed to hold files, because links may form a cycle.
    if depth == 0 {
        return Ok(true);
    }
    for name in names(path)? {
        if !name.starts_with(['.', '_']) && holds_table_file(&path.join(name), depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a file is missing, for example because it was removed after its folder was read.
pub(super) fn is_gone(e: &Error) -> bool {
    e.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

impl StoredProfile {
    /// Returns the profile's id in the store.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the profile's keys and their values.
    pub fn keys(&self) -> &[(String, String)] {
        &self.partition.keys
    }

    /// Returns the store that holds the profile.
    pub fn store(&self) -> &Store {
        &self.partition.store
    }

    /// Returns the profile's name in reports: `STORE/service=api/build=123/ID`.
    pub fn name(&self) -> String {
        self.partition.store.dir.join(self.partition.name()).join(&self.id).display().to_string()
    }

    /// Reads the profile and verifies it: a change since it was added is an error. The decoded rows and the profile may
    /// each take at most `inflated_limit` bytes.
    ///
    /// # Errors
    /// Returns an error if the profile exceeds the limit, or if a file can't be read, is damaged or does not belong to
    /// a store.
    pub fn load(&self, inflated_limit: u64) -> Result<Profile> {
        self.retry(|stored| stored.read(inflated_limit))
    }

    /// Calls `read`, and calls it again with the profile's new location if its files were compacted meanwhile.
    fn retry<T>(&self, read: impl Fn(&StoredProfile) -> Result<T>) -> Result<T> {
        match read(self) {
            Err(e) if is_gone(&e) => {
                let moved = self.partition.profiles()?.into_iter().find(|stored| stored.id == self.id);
                read(&moved.filter(|moved| moved != self).ok_or(e)?)
            }
            result => result,
        }
    }

    fn read(&self, limit: u64) -> Result<Profile> {
        let [samples, locations] = [&SAMPLES, &LOCATIONS].map(|table| self.partition.file(table, &self.stem));
        let named = |e: Error| e.in_input(&samples.display().to_string());
        let ((file, mut entries), (locations_file, _)) =
            (open_file(&SAMPLES, &samples)?, open_file(&LOCATIONS, &locations)?);
        if self.group >= entries.len() || self.group >= locations_file.n_groups() {
            return Err(named(Error::malformed(format!("it has no profile {}", self.group))));
        }
        let about = entries.swap_remove(self.group).about.unwrap_or_default();
        // A sample has one row per type. Among the columns that are read here, only the values differ between these
        // rows.
        let step = about.n_types().max(1);
        let mut budget = Budget::new(limit);
        budget.take(about.size()).map_err(named)?;
        let (sample_columns, names) = StoredContent::READ;
        let rows = file.columns(
            self.group,
            sample_columns.map(|name| (name, if name == "value" { 1 } else { step })),
            &mut budget,
        );
        let rows = rows.map_err(named)?;
        let frames = locations_file.columns(self.group, names.map(|name| (name, 1)), &mut budget);
        let content =
            StoredContent::read(about, rows, frames.map_err(|e| e.in_input(&locations.display().to_string()))?);
        let content = content.map_err(named)?;
        let actual_id = content.id(self.keys()).map_err(named)?;
        if actual_id != self.id {
            let detail = format!(
                "its content, name or folder was changed since it was added; its content has the id {actual_id}"
            );
            return Err(named(Error::malformed(detail)));
        }
        let profile = content.to_profile(&self.name()).map_err(named)?;
        Budget::new(limit).take(profile.inflated_size() as u64).map_err(named)?;
        Ok(profile)
    }

    /// Returns the costs of the profile's functions without reading its samples, or `None` if they can only be computed
    /// from the profile.
    ///
    /// # Errors
    /// Returns the errors of [`StoredProfile::load`].
    pub fn costs(&self, inflated_limit: u64) -> Result<Option<Costs>> {
        self.retry(|stored| stored.read_costs(inflated_limit))
    }

    fn read_costs(&self, limit: u64) -> Result<Option<Costs>> {
        let path = self.partition.file(&FUNCTIONS, &self.stem);
        let named = |e: Error| e.in_input(&path.display().to_string());
        let (file, mut entries) = open_file(&FUNCTIONS, &path)?;
        if self.group >= entries.len() || entries[self.group].id != self.id {
            return Err(named(Error::malformed(format!("it has no profile {}", self.id))));
        }
        let Some(stored) = entries.swap_remove(self.group).costs else { return Ok(None) };
        let mut budget = Budget::new(limit);
        let rows = file.columns(self.group, costs::READ.map(|name| (name, 1)), &mut budget).map_err(named)?;
        costs::read(stored, rows).map(Some).map_err(named)
    }

    /// Returns a source that reads the profile on demand.
    pub fn to_source(&self) -> Source {
        Source::Custom(Arc::new(self.clone()))
    }
}

impl ProfileSource for StoredProfile {
    fn name(&self) -> String {
        self.name()
    }

    fn load(&self, options: &LoadOptions) -> Result<Profile> {
        let profile = self.load(options.inflated_limit)?;
        let window = profile.window().cloned();
        let mut options = options.clone();
        // The profile may already be stored as this part of its recording.
        options.time = options.time.filter(|time| window.as_ref() != Some(time));
        let loaded = pprofdiff::from_bytes(&self.name(), profile.buffer(), &options)?;
        Ok(loaded.with_window(window))
    }

    fn costs(&self, inflated_limit: u64) -> Result<Option<Costs>> {
        self.costs(inflated_limit)
    }

    fn derived(&self) -> Option<(&dyn DerivedData, &str)> {
        Some((self.store(), self.id()))
    }
}

/// A selection of profiles in a store by the values of some keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSelection {
    /// The store.
    pub store: Store,
    /// The keys that the path fixes, with their values.
    pub fixed: Vec<(String, String)>,
    /// The id of the selected profile, if only one is selected.
    pub id: Option<String>,
    /// The path that the user wrote.
    pub name: String,
}

impl StoreSelection {
    /// Parses a path that selects profiles: `STORE`, or `STORE/key=value/...` with any of the keys in any order,
    /// optionally followed by the id of a profile as in reports. Returns `None` if the path is not inside a store.
    ///
    /// # Errors
    /// Returns an error if the path has a key twice or a key that the store lacks, and the errors of [`Store::open`].
    pub fn named(path: &Path) -> Result<Option<StoreSelection>> {
        let (mut dir, mut fixed) = (path, Vec::new());
        let id = path.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name)).map(str::to_owned);
        if let (Some(_), Some(parent)) = (&id, path.parent()) {
            dir = parent;
        }
        let mut twice = None;
        while !Store::is_in(dir) {
            let pair = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('='));
            let (Some((key, value)), Some(parent)) = (pair, dir.parent()) else { return Ok(None) };
            twice = twice.or(fixed.iter().any(|(fixed, _)| fixed == key).then_some(key));
            fixed.insert(0, (key.to_owned(), unescape(value)));
            dir = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        }
        // Paths to a table's folder are not accepted. They are meant for other programs.
        let store = Store::open(dir)?;
        let name = path.display().to_string();
        if let Some((key, _)) = fixed.iter().find(|(key, _)| !store.keys.contains(key)) {
            let detail = format!("this store has the keys {}, not {key}", store.keys.join(", "));
            return Err(Error::query(detail).in_input(&name));
        }
        if let Some(key) = twice {
            return Err(Error::query(format!("the key {key} occurs twice; remove one")).in_input(&name));
        }
        Ok(Some(StoreSelection { store, fixed, id, name }))
    }

    /// Returns the selected partitions in the natural order of their keys, which compares numbers by value.
    ///
    /// # Errors
    /// Returns an error if no partition matches, if a folder can't be read, or if table files are outside partitions.
    pub fn partitions(&self) -> Result<Vec<Partition>> {
        let partitions = self.partitions_of(&SAMPLES)?;
        if partitions.is_empty() {
            let detail = "the store has no profile with these keys; pprofdiff store list shows its profiles";
            return Err(Error::new(ErrorKind::Query, detail).in_input(&self.name));
        }
        Ok(partitions)
    }

    /// Returns the partitions with a folder in a table. A folder with another name is an error if it holds table files,
    /// because engines would count them.
    pub(super) fn partitions_of(&self, table: &StoreTable) -> Result<Vec<Partition>> {
        let mut key_lists = vec![Vec::new()];
        for key in &self.store.keys {
            let fixed_value = self.fixed.iter().find(|(fixed, _)| fixed == key).map(|(_, value)| value);
            let mut next = Vec::new();
            for keys in key_lists {
                let folder = Partition::new(&self.store, Vec::clone(&keys)).folder(table);
                let mut values = Vec::new();
                for name in names(&folder)? {
                    match name.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('=')) {
                        Some(value) if escape(&unescape(value)) == value => values.push((unescape(value), ())),
                        _ => check_left_out(&folder.join(&name), key)?,
                    }
                }
                sort_builds(&mut values);
                for (value, ()) in
                    values.into_iter().filter(|(value, ())| fixed_value.is_none_or(|fixed_value| fixed_value == value))
                {
                    let mut keys = keys.clone();
                    keys.push((key.clone(), value));
                    next.push(keys);
                }
            }
            key_lists = next;
        }
        Ok(key_lists.into_iter().map(|keys| Partition::new(&self.store, keys)).collect())
    }

    /// Returns all selected profiles.
    ///
    /// # Errors
    /// Returns the errors of [`StoreSelection::partitions`] and [`Partition::profiles`], and an error if no profile is
    /// selected.
    pub fn profiles(&self) -> Result<Vec<StoredProfile>> {
        Ok(self.partition_profiles()?.into_iter().flat_map(|(_, profiles)| profiles).collect())
    }

    /// Returns the partitions with selected profiles, and these profiles.
    fn partition_profiles(&self) -> Result<Vec<(Partition, Vec<StoredProfile>)>> {
        let profiles = |partition: &Partition| {
            let mut profiles = partition.profiles()?;
            if let Some(id) = &self.id {
                profiles.retain(|stored| stored.id == *id);
            }
            Ok((partition.clone(), profiles))
        };
        // A history may have a thousand folders. Errors are returned in the order of the partitions.
        let all: Vec<Result<_>> = parallel::map(&self.partitions()?, profiles);
        let mut all = all.into_iter().collect::<Result<Vec<_>>>()?;
        all.retain(|(_, profiles)| !profiles.is_empty());
        if all.is_empty() {
            return Err(Error::query("the store has no such profile").in_input(&self.name));
        }
        Ok(all)
    }

    /// Returns the profiles by the value of the only key that the selection leaves open. Several profiles with the same
    /// value are added up.
    ///
    /// # Errors
    /// Returns an error unless exactly one key is open; also returns the errors of [`StoreSelection::profiles`].
    pub fn builds(&self) -> Result<Vec<(String, Source)>> {
        let open: Vec<&String> =
            self.store.keys.iter().filter(|key| !self.fixed.iter().any(|(f, _)| f == *key)).collect();
        if open.len() != 1 {
            let keys = self.store.keys.join(", ");
            let detail = format!(
                "give all but one of the store's keys ({keys}) to compare builds by the remaining key: STORE/key=value/..."
            );
            return Err(Error::query(detail).in_input(&self.name));
        }
        let build = |(partition, profiles): (Partition, Vec<StoredProfile>)| {
            let key =
                partition.keys.iter().find(|(key, _)| key == open[0]).map_or_else(String::new, |(_, v)| v.clone());
            let name = self.store.dir.join(partition.name()).display().to_string();
            (key, sum(&name, profiles))
        };
        Ok(self.partition_profiles()?.into_iter().map(build).collect())
    }
}

/// Pairs the profiles of two selections by the values of the keys that neither selection fixes, for example all
/// services of two builds. The profiles of a side are its runs. A pair with profiles on one side only is an error at
/// its position in the result.
///
/// # Errors
/// Returns the errors of [`StoreSelection::profiles`].
pub fn store_pairs(base: &StoreSelection, new: &StoreSelection) -> Result<Vec<BatchItem>> {
    let is_open = |key: &String| ![base, new].iter().any(|side| side.fixed.iter().any(|(fixed, _)| fixed == key));
    let mut sides: BTreeMap<Vec<(String, String)>, [Vec<Source>; 2]> = BTreeMap::new();
    for (side, selection) in [base, new].into_iter().enumerate() {
        for (partition, runs) in selection.partition_profiles()? {
            let common = partition.keys.iter().filter(|(key, _)| is_open(key)).cloned().collect();
            sides.entry(common).or_default()[side].extend(runs.iter().map(StoredProfile::to_source));
        }
    }
    let pair = |(keys, [base_runs, new_runs]): (Vec<(String, String)>, [Vec<Source>; 2])| {
        let name = if keys.is_empty() { new.name.clone() } else { Partition::new(&new.store, keys.clone()).name() };
        let missing = [(&base_runs, base), (&new_runs, new)].into_iter().find(|(side, _)| side.is_empty());
        let missing = missing.map(|(_, side)| {
            Error::new(ErrorKind::Incompatible, format!("{} has no profile for this pair", side.name)).in_input(&name)
        });
        let lacks_partner = missing.is_some();
        let sides = missing.map_or(Ok((base_runs, new_runs)), Err);
        (name.clone(), BatchItem::of_result(name, sides).with_keys(keys).without_partner(lacks_partner))
    };
    let mut pairs: Vec<_> = sides.into_iter().map(pair).collect();
    sort_builds(&mut pairs);
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// Returns a source that adds up profiles. A single profile is its own source.
fn sum(name: &str, profiles: Vec<StoredProfile>) -> Source {
    let mut sources: Vec<Source> = profiles.iter().map(StoredProfile::to_source).collect();
    if sources.len() == 1 { sources.swap_remove(0) } else { Source::Merged(name.to_owned(), sources) }
}
