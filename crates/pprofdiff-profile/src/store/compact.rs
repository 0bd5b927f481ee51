//! Few large files of many small ones.
//!
//! Groups of rows are copied as they are, one a profile, so that a profile is read of a compacted file as fast as before. A
//! file says which profiles it has: readers of ours take those from it and from no other. It is in its place before what it
//! replaces is removed, and what is removed last is what made those profiles visible first.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::content::{LOCATIONS, SAMPLES, hex_16};
use super::select::{COMPACTED, Partition, Selection, is_gone, names};
use super::table::TableFile;
use super::{Entry, Store, TABLES, TMP, entries_text, open_file};
use crate::error::{Error, Result};
use crate::output;
use crate::random::HashSet;

/// A writer that has not ended after so long never will.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);
/// A compacted file gets no larger than this, unless one profile is.
const MAX_BYTES: u64 = 256 << 20;

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Files before, of all tables.
    pub files_before: usize,
    /// Files after.
    pub files_after: usize,
    /// Bytes before, of all tables.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Files of writers that never ended, which were removed.
    pub left_over: usize,
}

impl Store {
    /// Makes few files of many in each partition, and removes what writers left half done long ago.
    ///
    /// # Errors
    /// A file that is no store's; the operating system's.
    pub fn compact(&self) -> Result<Compaction> {
        let mut done = Compaction::default();
        let all = Selection { store: self.clone(), fixed: Vec::new(), id: None, name: self.dir.display().to_string() };
        for partition in all.partitions_of(&SAMPLES)? {
            let (files, bytes) = partition.size()?;
            done.files_before += files;
            done.bytes_before += bytes;
            partition.compact()?;
            let (files, bytes) = partition.size()?;
            done.files_after += files;
            done.bytes_after += bytes;
        }
        for table in TABLES {
            for partition in all.partitions_of(table)? {
                let visible = partition.stems(&SAMPLES)?;
                for stem in partition.stems(table)?.iter().filter(|stem| !visible.contains(stem)) {
                    done.left_over += usize::from(remove_old(&partition.file(table, stem), LEFT_OVER)?);
                }
            }
        }
        for name in names(&self.dir.join(TMP))? {
            done.left_over += usize::from(remove_old(&self.dir.join(TMP).join(name), LEFT_OVER)?);
        }
        done.left_over += self.sweep_derived();
        Ok(done)
    }
}

/// Removes a file that was not written for so long.
pub(super) fn remove_old(path: &Path, least: Duration) -> Result<bool> {
    let age = fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    if age.is_none_or(|age| age < least) {
        return Ok(false);
    }
    remove(path).map(|()| true)
}

/// Removes a file, whether another compaction has done so meanwhile or not.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(e).in_input(&path.display().to_string())),
        _ => Ok(()),
    }
}

impl Partition {
    fn compact(&self) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for stem in self.stems(&SAMPLES)? {
            let size = fs::metadata(self.file(&SAMPLES, &stem)).map_or(0, |file| file.len());
            if bytes + size > MAX_BYTES {
                self.compact_batch(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
            batch.push(stem);
            bytes += size;
        }
        self.compact_batch(&batch)
    }

    /// Makes one file a table of those with these names.
    fn compact_batch(&self, stems: &[String]) -> Result<()> {
        if stems.len() < 2 {
            return Ok(());
        }
        match self.merge_files(stems) {
            // Another compaction was faster, and has them all.
            Err(e) if is_gone(&e) => Ok(()),
            merged => {
                let merged = merged?;
                for table in TABLES.into_iter().rev() {
                    for stem in stems.iter().filter(|stem| **stem != merged) {
                        remove(&self.file(table, stem))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes the files of all profiles in files of these names; what they are called.
    fn merge_files(&self, stems: &[String]) -> Result<String> {
        let mut ids: Vec<String> = Vec::new();
        let mut merged = String::new();
        for table in TABLES {
            let mut files = Vec::new();
            for stem in stems {
                files.push(open_file(table, &self.file(table, stem))?);
            }
            // A profile that two files have is copied once. Locations are asked first; the others must have the same.
            let all =
                files.iter().flat_map(|(file, entries)| entries.iter().enumerate().map(move |entry| (file, entry)));
            let mut seen: HashSet<&String> = HashSet::default();
            let groups: Vec<_> = all.filter(|(_, (_, entry))| seen.insert(&entry.id)).collect();
            let found: Vec<String> = groups.iter().map(|(_, (_, entry))| entry.id.clone()).collect();
            if merged.is_empty() {
                merged = format!("{COMPACTED}{}", hash_of(&found));
                ids = found;
            } else if ids != found {
                let detail = format!("its files of {} and of {} have other profiles", LOCATIONS.name, table.name);
                return Err(Error::malformed(detail).in_input(&self.folder(table).display().to_string()));
            }
            let copied: Vec<(&TableFile, usize)> = groups.iter().map(|(file, (group, _))| (*file, *group)).collect();
            let entries: Vec<&Entry> = groups.iter().map(|(_, (_, entry))| *entry).collect();
            let bytes = table.concat(&copied, entries_text(&entries)?)?;
            output::write_new(&self.store_dir().join(TMP), &self.file(table, &merged), &bytes, true)?;
        }
        Ok(merged)
    }
}

fn hash_of(ids: &[String]) -> String {
    let mut hash = Sha256::new();
    ids.iter().for_each(|id| hash.update(id));
    hex_16(hash)
}
