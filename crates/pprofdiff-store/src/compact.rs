//! Compaction: merges many small files into few large files.
//!
//! Groups of rows are copied unchanged, one per profile, so reading a profile from a compacted file is as fast as
//! before. A file lists the profiles that it holds: our readers take those profiles from this file only. The compacted
//! file is in place before the files that it replaces are removed (`commit.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::content::{LOCATIONS, SAMPLES, hex_16};
use super::files::{self, find_link, names};
use super::select::{COMPACTED, Partition, StoreSelection, is_gone};
use super::table::{StoreTable, TableFile};
use super::{ProfileEntry, Store, TABLES, entries_text, open_file};
use pprofdiff_profile::output::{STAGED_PREFIX, Staged};
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::{Error, Result};

/// The minimum age of unfinished files to remove. A writer that takes longer loses its files, and its commit fails.
const MIN_LEFT_OVER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum total size of the samples files that are merged into one file. A larger file is not merged.
const MAX_BYTES: u64 = 256 << 20;
/// The maximum number of files that one commit replaces in each table. It keeps the commit below its size limit.
pub(super) const MAX_BATCH_FILES: usize = 50_000;

/// The result of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of files of all tables before the compaction.
    pub files_before: usize,
    /// The number of files of all tables after the compaction.
    pub files_after: usize,
    /// The size of all tables before the compaction, in bytes.
    pub bytes_before: u64,
    /// The size of all tables after the compaction, in bytes.
    pub bytes_after: u64,
    /// The number of other files that were removed: files that killed writers left behind, and old cached data.
    pub left_over: usize,
    /// Links that take the place of folders and files. A compaction changes nothing behind them.
    pub links: Vec<PathBuf>,
}

impl Store {
    /// Merges the small files of each partition into few large files, and removes unfinished files of writers and old
    /// cached data. Follows no links. In tables and in the cache, removes only files whose name and content belong to
    /// this store; in `_tmp`, only files with the name of an unfinished file.
    ///
    /// # Errors
    /// Returns an error if a file does not belong to a store, or if a file can't be read or written.
    pub fn compact(&self) -> Result<Compaction> {
        let mut compaction = Compaction::default();
        let _compacting = self.lock_compactions()?;
        self.complete_commits()?;
        let all =
            StoreSelection { store: self.clone(), fixed: Vec::new(), id: None, name: self.dir.display().to_string() };
        for partition in all.partitions_of(&SAMPLES)? {
            let (files, bytes) = partition.size()?;
            compaction.files_before += files;
            compaction.bytes_before += bytes;
            match TABLES.into_iter().find_map(|table| partition.find_link(table)) {
                Some(link) => compaction.links.push(link),
                None => partition.compact(&mut compaction.links)?,
            }
            let (files, bytes) = partition.size()?;
            compaction.files_after += files;
            compaction.bytes_after += bytes;
        }
        let _committing = self.lock_commits()?;
        for table in TABLES {
            if let Some(link) = find_link(&self.dir, table.name.as_ref()) {
                compaction.links.push(link);
                continue;
            }
            for partition in all.partitions_of(table)? {
                match partition.find_link(table) {
                    Some(link) => compaction.links.push(link),
                    None => compaction.left_over += partition.sweep(table)?,
                }
            }
        }
        let tmp = self.tmp()?;
        for name in names(&tmp)?.into_iter().filter(|name| name.starts_with(STAGED_PREFIX)) {
            let path = tmp.join(name);
            if files::is_own_file(&path) && is_older(&path, MIN_LEFT_OVER_AGE) {
                files::remove(&path)?;
                compaction.left_over += 1;
            }
        }
        compaction.left_over += self.sweep_derived();
        compaction.links.sort();
        compaction.links.dedup();
        Ok(compaction)
    }
}

/// Returns true if a file was last written at least `min_age` ago.
pub(super) fn is_older(path: &Path, min_age: Duration) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|file| file.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age >= min_age))
}

impl Partition {
    fn compact(&self, links: &mut Vec<PathBuf>) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for stem in self.stems(&SAMPLES)? {
            let files_of_stem = TABLES.map(|table| self.file(table, &stem));
            if let Some(link) = files_of_stem.into_iter().find(|path| path.is_symlink()) {
                links.push(link);
                continue;
            }
            let size = fs::metadata(self.file(&SAMPLES, &stem)).map_or(0, |file| file.len());
            if bytes + size > MAX_BYTES || batch.len() == MAX_BATCH_FILES {
                self.compact_batch(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
            batch.push(stem);
            bytes += size;
        }
        self.compact_batch(&batch)
    }

    /// Merges the files with these names into one file per table. Leaves a single file unchanged.
    fn compact_batch(&self, stems: &[String]) -> Result<()> {
        if stems.len() < 2 {
            return Ok(());
        }
        let (merged, staged) = match self.merge_files(stems) {
            // A file is missing: on a file system without locks, another compaction has already merged these files.
            Err(e) if is_gone(&e) => return Ok(()),
            merged => merged?,
        };
        let _lock = self.store().lock_commits()?;
        self.commit(&merged, staged, stems.iter().filter(|stem| **stem != merged).cloned().collect())
    }

    /// Merges the profiles of these files into new files. Returns their final name and the files.
    fn merge_files(&self, stems: &[String]) -> Result<(String, Vec<Staged>)> {
        let tmp = self.store().tmp()?;
        let (mut ids, mut staged): (Vec<String>, Vec<Staged>) = (Vec::new(), Vec::new());
        for table in TABLES {
            let mut files = Vec::new();
            for stem in stems {
                files.push(open_file(table, &self.file(table, stem))?);
            }
            // A profile in two files is copied once. The first table, locations, sets the list of profiles; the other
            // tables must have the same profiles.
            let all =
                files.iter().flat_map(|(file, entries)| entries.iter().enumerate().map(move |entry| (file, entry)));
            let mut seen: HashSet<&String> = HashSet::default();
            let groups: Vec<_> = all.filter(|(_, (_, entry))| seen.insert(&entry.id)).collect();
            let group_ids: Vec<String> = groups.iter().map(|(_, (_, entry))| entry.id.clone()).collect();
            if staged.is_empty() {
                ids = group_ids;
            } else if ids != group_ids {
                let detail = format!("its files of {} and of {} have other profiles", LOCATIONS.name, table.name);
                return Err(Error::malformed(detail).in_input(&self.folder(table).display().to_string()));
            }
            let copied: Vec<(&TableFile, usize)> = groups.iter().map(|(file, (group, _))| (*file, *group)).collect();
            let entries: Vec<&ProfileEntry> = groups.iter().map(|(_, (_, entry))| *entry).collect();
            let bytes = table.concat(&copied, entries_text(&entries)?);
            let bytes = bytes.map_err(|e| e.in_input(&self.folder(table).display().to_string()))?;
            let named = |e| Error::io(e).in_input(&self.folder(table).display().to_string());
            staged.push(Staged::write(&tmp, &bytes).map_err(named)?);
        }
        Ok((compacted_stem(ids.iter()), staged))
    }

    /// Removes files of a table that belong to no visible profile. A file is removed at once if a compacted file holds
    /// its profile, otherwise after a day, because an older version of this program may still be writing it. The caller
    /// holds the lock for commits. Returns the number of removed files.
    fn sweep(&self, table: &StoreTable) -> Result<usize> {
        let visible = self.stems(&SAMPLES)?;
        let invisible: Vec<String> = self.stems(table)?.into_iter().filter(|stem| !visible.contains(stem)).collect();
        if invisible.is_empty() {
            return Ok(0);
        }
        let profiles = self.profiles()?;
        let mut removed = 0;
        for stem in invisible {
            let is_replaced = profiles.iter().any(|stored| stored.id() == stem);
            if is_replaced || is_older(&self.file(table, &stem), MIN_LEFT_OVER_AGE) {
                removed += usize::from(self.remove_own(table, &stem)?);
            }
        }
        Ok(removed)
    }
}

/// Returns the name of the compacted file that holds these profiles, without its extension.
pub(super) fn compacted_stem<'a>(ids: impl Iterator<Item = &'a String>) -> String {
    let mut hash = Sha256::new();
    ids.for_each(|id| hash.update(id));
    format!("{COMPACTED}{}", hex_16(hash))
}
