//! What a store has: partitions, and the profiles in them; and the paths that stand for some of them where a profile is
//! wanted, such as `STORE/service=api/build=123`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::content::{Content, LOCATIONS, SAMPLES};
use super::costs::FUNCTIONS;
use super::files::{find_link, names};
use super::table::{Budget, Table};
use super::{Costs, Store, TABLES, escape, is_id, open_file, read_entries, unescape};
use crate::error::{Error, ErrorKind, Result};
use crate::input::{BatchItem, Source, sort_builds};
use crate::profile::Profile;

/// What the names of compacted files begin with; no id does.
pub(super) const COMPACTED: &str = "compact-";
const ENDING: &str = ".parquet";
/// The maximum depth of folders to search for files outside the partitions.
const MAX_DEPTH: usize = 16;
/// How often a folder is read while others compact it.
const MAX_TRIES: u32 = 8;

/// The profiles that have the same keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    store: Store,
    keys: Vec<(String, String)>,
}

/// Where a profile of a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    partition: Partition,
    id: String,
    /// The name of its files, without the ending, and its place in them.
    stem: String,
    group: usize,
}

impl Partition {
    pub(super) fn new(store: &Store, keys: Vec<(String, String)>) -> Partition {
        Partition { store: store.clone(), keys }
    }

    /// Its keys and their values, in the store's order.
    pub fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    /// `service=api/build=123`.
    pub fn name(&self) -> String {
        self.keys.iter().map(|(key, value)| format!("{key}={}", escape(value))).collect::<Vec<_>>().join("/")
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the first folder on the path to a table's files that is a link.
    pub(super) fn find_link(&self, table: &Table) -> Option<PathBuf> {
        find_link(&self.store.dir, &Path::new(table.name).join(self.name()))
    }

    pub(super) fn folder(&self, table: &Table) -> PathBuf {
        self.store.dir.join(table.name).join(self.name())
    }

    pub(super) fn file(&self, table: &Table, stem: &str) -> PathBuf {
        self.folder(table).join(format!("{stem}{ENDING}"))
    }

    /// The files of a table, by their names without ending.
    pub(super) fn stems(&self, table: &Table) -> Result<Vec<String>> {
        let folder = self.folder(table);
        let mut stems = Vec::new();
        for name in names(&folder)? {
            stems.extend(name.strip_suffix(ENDING).filter(|stem| !stem.starts_with(['.', '_'])).map(str::to_owned));
        }
        stems.sort();
        Ok(stems)
    }

    /// Files and bytes of all tables.
    ///
    /// # Errors
    /// The operating system's.
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

    /// Its profiles, each once, by their ids. What was compacted is taken from there, whether the files that it replaces
    /// are removed yet or not.
    ///
    /// # Errors
    /// A file that is no store's.
    pub fn profiles(&self) -> Result<Vec<StoredProfile>> {
        // A file that another compaction has replaced since has a successor, which was perhaps not seen.
        let mut tries = 0;
        loop {
            tries += 1;
            match self.find_profiles() {
                Err(e) if is_gone(&e) && tries < MAX_TRIES => {}
                found => return found,
            }
        }
    }

    fn find_profiles(&self) -> Result<Vec<StoredProfile>> {
        let mut found = BTreeMap::new();
        let stems = self.stems(&SAMPLES)?;
        let (compacted, single): (Vec<String>, Vec<String>) = stems.into_iter().partition(|s| s.starts_with(COMPACTED));
        for stem in single {
            found.insert(stem.clone(), (stem, 0));
        }
        for stem in compacted {
            for (group, entry) in read_entries(&self.file(&SAMPLES, &stem))?.into_iter().enumerate() {
                found.insert(entry.id, (stem.clone(), group));
            }
        }
        let stored = |(id, (stem, group))| StoredProfile { partition: self.clone(), id, stem, group };
        Ok(found.into_iter().map(stored).collect())
    }
}

/// Rejects files and folders next to a table's partitions, unless engines ignore them.
fn check_left_out(path: &Path, key: &str) -> Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    if name.starts_with(['.', '_']) || !holds_table_file(path, MAX_DEPTH)? {
        return Ok(());
    }
    let detail = match name.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
        Some(value) => {
            let right = escape(&unescape(value));
            format!("this partition must be named {key}={right}; rename it, or merge it with the folder of that name")
        }
        None => format!("this is not a partition: its name does not begin with {key}=; move it out of the store"),
    };
    Err(Error::malformed(detail).in_input(&path.display().to_string()))
}

/// Returns true if `path` is a file of a table, or a folder with such a file at most `depth` levels deep.
fn holds_table_file(path: &Path, depth: usize) -> Result<bool> {
    if !fs::metadata(path).is_ok_and(|file| file.is_dir()) {
        return Ok(path.extension().is_some_and(|ending| ending == &ENDING[1..]));
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

/// Returns true if a file disappeared after its folder was read.
pub(super) fn is_gone(e: &Error) -> bool {
    e.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

impl StoredProfile {
    /// What it is called in the store.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its keys and their values.
    pub fn keys(&self) -> &[(String, String)] {
        &self.partition.keys
    }

    /// The store that it is in.
    pub fn store(&self) -> &Store {
        &self.partition.store
    }

    /// `STORE/service=api/build=123/ID`.
    pub fn name(&self) -> String {
        self.partition.store.dir.join(self.partition.name()).join(&self.id).display().to_string()
    }

    /// Reads the profile and verifies it: a change since it was added is an error. Its rows and the profile take at
    /// most `inflated_limit` bytes.
    ///
    /// # Errors
    /// The operating system's; a file that is damaged, or not from a store; a profile beyond the limit.
    pub fn load(&self, inflated_limit: u64) -> Result<Profile> {
        self.retry(|stored| stored.read(inflated_limit))
    }

    /// What is read, also if its files are compacted meanwhile.
    fn retry<T>(&self, read: impl Fn(&StoredProfile) -> Result<T>) -> Result<T> {
        match read(self) {
            Err(e) if is_gone(&e) => {
                let moved = self.partition.profiles()?.into_iter().find(|known| known.id == self.id);
                read(&moved.filter(|moved| moved != self).ok_or(e)?)
            }
            done => done,
        }
    }

    fn read(&self, limit: u64) -> Result<Profile> {
        let [samples, locations] = [&SAMPLES, &LOCATIONS].map(|table| self.partition.file(table, &self.stem));
        let named = |e: Error| e.in_input(&samples.display().to_string());
        let ((file, mut entries), (of_locations, _)) =
            (open_file(&SAMPLES, &samples)?, open_file(&LOCATIONS, &locations)?);
        if self.group >= entries.len() || self.group >= of_locations.n_groups() {
            return Err(named(Error::malformed(format!("it has no profile {}", self.group))));
        }
        let about = entries.swap_remove(self.group).about.unwrap_or_default();
        // A sample has one row per type. Only the values differ between these rows.
        let step = about.n_types().max(1);
        let mut budget = Budget::new(limit);
        budget.take(about.size()).map_err(named)?;
        let (of_samples, names) = Content::READ;
        let rows = file.columns(
            self.group,
            of_samples.map(|name| (name, if name == "value" { 1 } else { step })),
            &mut budget,
        );
        let rows = rows.map_err(named)?;
        let frames = of_locations.columns(self.group, names.map(|name| (name, 1)), &mut budget);
        let content = Content::read(about, rows, frames.map_err(|e| e.in_input(&locations.display().to_string()))?);
        let content = content.map_err(named)?;
        let found = content.id(self.keys()).map_err(named)?;
        if found != self.id {
            let detail =
                format!("its content was changed since it was added, or its name or folder was: it is {found}");
            return Err(named(Error::malformed(detail)));
        }
        let profile = content.to_profile(&self.name()).map_err(named)?;
        Budget::new(limit).take(profile.inflated_size() as u64).map_err(named)?;
        Ok(profile)
    }

    /// What its functions cost, without a look at its samples; `None` where that takes the profile itself.
    ///
    /// # Errors
    /// As [`StoredProfile::load`].
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
        let rows = file.columns(self.group, Costs::READ.map(|name| (name, 1)), &mut budget).map_err(named)?;
        Costs::read(stored, rows).map(Some).map_err(named)
    }

    /// The profile, to be read when it is wanted.
    pub fn to_source(&self) -> Source {
        Source::Stored(self.clone())
    }
}

/// Profiles of a store: all that have some values of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// The store.
    pub store: Store,
    /// The values that were asked for.
    pub fixed: Vec<(String, String)>,
    /// The one profile that was asked for.
    pub id: Option<String>,
    /// How it was named.
    pub name: String,
}

impl Selection {
    /// What a path stands for: `STORE`, or `STORE/key=value/...`, of any of the keys and in any order, and behind them
    /// perhaps the id of one profile, as reports name it. `None` of what lies in no store.
    ///
    /// # Errors
    /// Keys that the store has not.
    pub fn named(path: &Path) -> Result<Option<Selection>> {
        let (mut dir, mut fixed) = (path, Vec::new());
        let id = path.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name)).map(str::to_owned);
        if let (Some(_), Some(parent)) = (&id, path.parent()) {
            dir = parent;
        }
        while !Store::is_in(dir) {
            let pair = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('='));
            let (Some((key, value)), Some(parent)) = (pair, dir.parent()) else { return Ok(None) };
            fixed.insert(0, (key.to_owned(), unescape(value)));
            dir = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        }
        // Folders of a table are for other programs.
        let store = Store::open(dir)?;
        let name = path.display().to_string();
        if let Some((key, _)) = fixed.iter().find(|(key, _)| !store.keys.contains(key)) {
            let detail = format!("this store has the keys {}, and no {key}", store.keys.join(", "));
            return Err(Error::query(detail).in_input(&name));
        }
        Ok(Some(Selection { store, fixed, id, name }))
    }

    /// The partitions that it selects, in the order of their keys, in which numbers count as numbers.
    ///
    /// # Errors
    /// The operating system's; that there is none.
    pub fn partitions(&self) -> Result<Vec<Partition>> {
        let found = self.partitions_of(&SAMPLES)?;
        if found.is_empty() {
            let detail = "the store has no profile with these keys; pprofdiff store list says which it has";
            return Err(Error::new(ErrorKind::Query, detail).in_input(&self.name));
        }
        Ok(found)
    }

    /// Returns the partitions with a folder in a table. A folder with another name is an error if it holds table files,
    /// because engines would count them.
    pub(super) fn partitions_of(&self, table: &Table) -> Result<Vec<Partition>> {
        let mut found = vec![Vec::new()];
        for key in &self.store.keys {
            let wanted = self.fixed.iter().find(|(fixed, _)| fixed == key).map(|(_, value)| value);
            let mut next = Vec::new();
            for keys in found {
                let folder = Partition::new(&self.store, Vec::clone(&keys)).folder(table);
                let mut values = Vec::new();
                for name in names(&folder)? {
                    match name.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('=')) {
                        Some(value) if escape(&unescape(value)) == value => values.push((unescape(value), ())),
                        _ => check_left_out(&folder.join(&name), key)?,
                    }
                }
                sort_builds(&mut values);
                for (value, ()) in values.into_iter().filter(|(value, ())| wanted.is_none_or(|wanted| wanted == value))
                {
                    let mut keys = keys.clone();
                    keys.push((key.clone(), value));
                    next.push(keys);
                }
            }
            found = next;
        }
        Ok(found.into_iter().map(|keys| Partition::new(&self.store, keys)).collect())
    }

    /// All profiles that it selects.
    ///
    /// # Errors
    /// As [`Selection::partitions`] and [`Partition::profiles`].
    pub fn profiles(&self) -> Result<Vec<StoredProfile>> {
        let mut profiles = Vec::new();
        for partition in self.partitions()? {
            profiles.extend(partition.profiles()?);
        }
        if let Some(id) = &self.id {
            profiles.retain(|stored| stored.id == *id);
        }
        if profiles.is_empty() {
            return Err(Error::query("the store has no such profile").in_input(&self.name));
        }
        Ok(profiles)
    }

    /// The profiles by the value of the one key that is left open; several of one value add up.
    ///
    /// # Errors
    /// More than one key is open; as [`Selection::partitions`].
    pub fn builds(&self) -> Result<Vec<(String, Source)>> {
        let open: Vec<&String> =
            self.store.keys.iter().filter(|key| !self.fixed.iter().any(|(f, _)| f == *key)).collect();
        if open.len() != 1 {
            let keys = self.store.keys.join(", ");
            let detail = format!(
                "of the store's keys ({keys}) all but one must be given, which tells builds apart: STORE/key=value/..."
            );
            return Err(Error::query(detail).in_input(&self.name));
        }
        let build = |partition: Partition| {
            let key =
                partition.keys.iter().find(|(key, _)| key == open[0]).map_or_else(String::new, |(_, v)| v.clone());
            let name = self.store.dir.join(partition.name()).display().to_string();
            Ok((key, sum(&name, partition.profiles()?)))
        };
        self.partitions()?.into_iter().map(build).collect()
    }
}

/// Pairs of two selections, by the keys that neither has fixed: all services of two builds. Profiles of a side are its runs;
/// what only one side has is an error in its place.
///
/// # Errors
/// As [`Selection::partitions`].
pub fn store_pairs(base: &Selection, new: &Selection) -> Result<Vec<BatchItem>> {
    let is_open = |key: &String| ![base, new].iter().any(|side| side.fixed.iter().any(|(fixed, _)| fixed == key));
    let mut sides: BTreeMap<Vec<(String, String)>, [Vec<Source>; 2]> = BTreeMap::new();
    for (side, selection) in [base, new].into_iter().enumerate() {
        for partition in selection.partitions()? {
            let common = partition.keys.iter().filter(|(key, _)| is_open(key)).cloned().collect();
            let runs = partition.profiles()?;
            sides.entry(common).or_default()[side].extend(runs.iter().map(StoredProfile::to_source));
        }
    }
    let pair = |(keys, [of_base, of_new]): (Vec<(String, String)>, [Vec<Source>; 2])| {
        let name = if keys.is_empty() { new.name.clone() } else { Partition::new(&new.store, keys).name() };
        let missing = [(&of_base, base), (&of_new, new)].into_iter().find(|(side, _)| side.is_empty());
        let missing = missing.map(|(_, side)| {
            Error::new(ErrorKind::Incompatible, format!("there is no profile of it in {}", side.name)).in_input(&name)
        });
        (name, missing.map_or(Ok((of_base, of_new)), Err))
    };
    let mut pairs: Vec<_> = sides.into_iter().map(pair).collect();
    sort_builds(&mut pairs);
    Ok(pairs.into_iter().map(|(name, sides)| BatchItem { name, sides }).collect())
}

/// Several profiles as one.
fn sum(name: &str, profiles: Vec<StoredProfile>) -> Source {
    let mut sources: Vec<Source> = profiles.iter().map(StoredProfile::to_source).collect();
    if sources.len() == 1 { sources.swap_remove(0) } else { Source::Merged(name.to_owned(), sources) }
}
