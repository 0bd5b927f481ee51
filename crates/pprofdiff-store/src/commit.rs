//! Commits move the files of a profile, or of a compaction, into all tables or into none.
//!
//! Engines read each table by itself and cannot detect an incomplete profile. A table must therefore not keep a file
//! whose companions in the other tables are missing. A commit has three steps:
//!
//! 1. All files are written and synced in `_tmp`. A process that is killed here leaves nothing in a table.
//! 2. `_tmp/commit-NAME.json` records where the files belong and which files they replace. From here on the commit is
//!    durable: the next writer completes it.
//! 3. Renames move the files into place, samples last. Then the replaced files are removed.
//!
//! If a new file is lost before it is in place, the commit is undone.
//!
//! A lock serializes commits, so an unfinished commit belongs to a process that was killed. Files are moved, never
//! copied, so completing a commit can't restore files that were compacted since. Engines see part of a commit while
//! step 3 runs. If the process is killed during step 3, they see it until the next `add` or `compact`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compact::compacted_stem;
use super::content::SAMPLES;
use super::files::{self, Lock, find_link};
use super::select::{COMPACTED, Partition};
use super::table::StoreTable;
use super::{Store, TABLES, TMP, is_id, read_entries};
use pprofdiff_profile::output::{STAGED_PREFIX, Staged};
use pprofdiff_profile::{Error, ErrorKind, Result};

const PREFIX: &str = "commit-";
const SUFFIX: &str = ".json";
/// The maximum size of a commit: twice the names of [`MAX_BATCH_FILES`](super::compact::MAX_BATCH_FILES) replaced
/// files.
const MAX_BYTES: u64 = 4 << 20;
const COMMIT_LOCK: &str = "_commit.lock";
const COMPACT_LOCK: &str = "_compact.lock";

/// The content of a commit's file.
#[derive(Serialize, Deserialize)]
struct Commit {
    keys: Vec<(String, String)>,
    /// The name of the new files, without their extension.
    stem: String,
    /// The names in `_tmp` of the new files, in the order of [`TABLES`].
    files: Vec<String>,
    /// The names of the files that the new files replace, without their extension.
    replaces: Vec<String>,
    /// Whether each table already had a file named `stem`. An undone commit keeps such a file.
    #[serde(default)]
    existed: [bool; TABLES.len()],
}

impl Store {
    /// Creates the folder for unfinished files if necessary, and returns it. It is never a link.
    pub(super) fn tmp(&self) -> Result<PathBuf> {
        let tmp = self.dir.join(TMP);
        match find_link(&self.dir, TMP.as_ref()) {
            Some(path) => {
                let detail = "this is not a folder, and a store writes to its own folders only; remove it";
                Err(Error::malformed(detail).in_input(&path.display().to_string()))
            }
            None => {
                fs::create_dir_all(&tmp).map_err(|e| Error::io(e).in_input(&tmp.display().to_string()))?;
                Ok(tmp)
            }
        }
    }

    /// Waits until no other process commits, and takes the lock. Compactions merge files without this lock; they hold
    /// it only during their renames and removals.
    pub(super) fn lock_commits(&self) -> Result<Lock> {
        Lock::take(&self.dir.join(COMMIT_LOCK))
    }

    /// Waits until no other process compacts, and takes the lock. Two concurrent compactions would copy the same
    /// profiles.
    pub(super) fn lock_compactions(&self) -> Result<Lock> {
        Lock::take(&self.dir.join(COMPACT_LOCK))
    }

    /// Completes the commits of processes that were killed.
    pub(super) fn complete_commits(&self) -> Result<()> {
        let tmp = self.tmp()?;
        let commits = || -> Result<Vec<String>> {
            let names = files::names(&tmp)?.into_iter();
            Ok(names.filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)).collect())
        };
        if commits()?.is_empty() {
            return Ok(());
        }
        // While this process holds the lock, no running process owns an unfinished commit.
        let _lock = self.lock_commits()?;
        for name in commits()? {
            let path = tmp.join(name);
            let commit = self.read_commit(&path)?;
            let partition = Partition::new(self, commit.keys.clone());
            commit.complete(&partition).map_err(|e| match e.input() {
                // The error names a file of a table. The commit is the reason why this process writes that file.
                Some(_) => e.prefixed(&format!("completing {}: ", path.display())),
                None => e.in_input(&path.display().to_string()),
            })?;
            files::remove(&path)?;
        }
        Ok(())
    }

    /// Reads a commit, which may be forged: it may only move files from `_tmp` to partitions of this store.
    fn read_commit(&self, path: &Path) -> Result<Commit> {
        let damaged = || {
            let detail = "this is not a commit of this store; remove it";
            Error::malformed(detail).in_input(&path.display().to_string())
        };
        let commit: Commit = serde_json::from_slice(&files::read(path, MAX_BYTES)?).map_err(|_| damaged())?;
        let has_keys = commit.keys.iter().map(|(key, _)| key).eq(&self.keys);
        let are_stems = is_stem(&commit.stem) && commit.replaces.iter().all(|stem| is_stem(stem));
        let is_staged = |name: &String| name.starts_with(STAGED_PREFIX) && !name.contains(['/', '\\']);
        let is_right =
            has_keys && are_stems && commit.files.len() == TABLES.len() && commit.files.iter().all(is_staged);
        if is_right && self.ordered(&commit.keys).is_ok() { Ok(commit) } else { Err(damaged()) }
    }
}

/// Returns true if `stem` is a valid name for a file of a table, without its extension.
pub(super) fn is_stem(stem: &str) -> bool {
    is_id(stem.strip_prefix(COMPACTED).unwrap_or(stem))
}

impl Partition {
    /// Moves new files into all tables, in the order of [`TABLES`], and removes the files that they replace. The caller
    /// holds the lock for commits. An error leaves the tables unchanged, unless some replaced files were already removed
    /// or only the commit's own file can't be removed. Then the next writer completes the commit.
    pub(super) fn commit(&self, stem: &str, staged: Vec<Staged>, replaces: Vec<String>) -> Result<()> {
        let tmp = self.store().tmp()?;
        let file_names = staged.iter().map(Staged::name).collect();
        let existed = TABLES.map(|table| fs::symlink_metadata(self.file(table, stem)).is_ok());
        let commit = Commit { keys: self.keys().to_vec(), stem: stem.to_owned(), files: file_names, replaces, existed };
        commit.create_folders(self)?;
        let path = tmp.join(format!("{PREFIX}{stem}{SUFFIX}"));
        let named = |e: io::Error| Error::io(e).in_input(&path.display().to_string());
        let text = serde_json::to_vec(&commit).map_err(|e| Error::query(e.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            let detail = format!("this commit would have {} bytes; the limit is {MAX_BYTES}", text.len());
            return Err(Error::new(ErrorKind::Limit, detail).in_input(&path.display().to_string()));
        }
        let journal = Staged::write(&tmp, &text).map_err(named)?;
        // The commit can't be cancelled from here on.
        let kept: io::Result<Vec<PathBuf>> = staged.into_iter().map(Staged::keep).collect();
        let undo = |kept: &[PathBuf], e: Error| {
            // Without working locks, another process may have completed this commit and removed the replaced files. The
            // new files are then the only copy.
            if !commit.can_be_undone(self) {
                return Err(e);
            }
            // Samples first, because our readers see a profile as soon as its samples exist.
            for (table, existed) in TABLES.into_iter().zip(existed).rev() {
                if !existed {
                    let _ = fs::remove_file(self.file(table, stem));
                }
            }
            kept.iter().chain([&path]).for_each(|file| drop(fs::remove_file(file)));
            Err(e)
        };
        let kept = kept.map_err(named)?;
        if let Err(e) = journal.persist(&path) {
            return undo(&kept, named(e));
        }
        let _ = File::open(&tmp).and_then(|folder| folder.sync_all());
        if let Err(e) = commit.place(self).and_then(|()| commit.remove_replaced(self)) {
            return undo(&kept, e);
        }
        // The commit's file goes last: after a crash, the renames can still be repeated from it.
        self.sync_folders();
        files::remove(&path)
    }

    /// Makes renames and removals durable, on systems that can sync a folder.
    fn sync_folders(&self) {
        for table in TABLES {
            let _ = File::open(self.folder(table)).and_then(|folder| folder.sync_all());
        }
    }

    fn has_all_files(&self, stem: &str) -> bool {
        TABLES.into_iter().all(|table| fs::symlink_metadata(self.file(table, stem)).is_ok())
    }

    /// Removes a file of a table if its name and the profiles in it show that this store wrote it. Removes nothing
    /// behind a link. Returns false if the file is foreign or gone.
    pub(super) fn remove_own(&self, table: &StoreTable, stem: &str) -> Result<bool> {
        let path = self.file(table, stem);
        let is_ours = || -> Result<bool> {
            let entries = read_entries(&path)?;
            Ok(match stem.starts_with(COMPACTED) {
                true => stem == compacted_stem(entries.iter().map(|entry| &entry.id)),
                false => entries.len() == 1 && entries[0].id == stem,
            })
        };
        if !is_stem(stem)
            || self.find_link(table).is_some()
            || !files::is_own_file(&path)
            || !is_ours().unwrap_or(false)
        {
            return Ok(false);
        }
        files::remove(&path).map(|()| true)
    }
}

impl Commit {
    /// Creates the folders of the new files before the commit, so that a failure here changes nothing.
    fn create_folders(&self, partition: &Partition) -> Result<()> {
        for table in TABLES {
            let folder = partition.folder(table);
            fs::create_dir_all(&folder).map_err(|e| Error::io(e).in_input(&folder.display().to_string()))?;
        }
        Ok(())
    }

    /// Completes the commit of a process that was killed, or undoes it if one of its new files was lost.
    fn complete(&self, partition: &Partition) -> Result<()> {
        if self.find_lost(partition).is_some() {
            self.roll_back(partition)?;
        } else {
            self.create_folders(partition)?;
            self.place(partition)?;
            self.remove_replaced(partition)?;
        }
        partition.sync_folders();
        Ok(())
    }

    /// Returns true if every replaced file still exists, so that removing the new files loses no profile.
    fn can_be_undone(&self, partition: &Partition) -> bool {
        self.replaces.iter().all(|stem| partition.has_all_files(stem))
    }

    /// Moves the new files that are not yet in place.
    ///
    /// # Errors
    /// Returns an error if a new file is neither in `_tmp` nor in place, or if a file can't be moved.
    fn place(&self, partition: &Partition) -> Result<()> {
        // An incomplete profile must not become visible, not even briefly.
        self.check_lost(partition)?;
        let tmp = partition.store().dir.join(TMP);
        for (table, name) in TABLES.into_iter().zip(&self.files) {
            let (from, to) = (tmp.join(name), partition.file(table, &self.stem));
            // A missing file has already been moved, or was lost.
            if files::is_own_file(&from) {
                match fs::rename(&from, &to) {
                    // Without working locks, another process may have moved the file since the check above.
                    Err(e) if e.kind() == io::ErrorKind::NotFound && files::is_own_file(&to) => (),
                    moved => moved.map_err(|e| Error::io(e).in_input(&to.display().to_string()))?,
                }
            }
        }
        self.check_lost(partition)
    }

    fn check_lost(&self, partition: &Partition) -> Result<()> {
        match self.find_lost(partition) {
            Some(path) => {
                let detail = "another process removed this file before it was moved here; try again";
                Err(Error::io(io::Error::new(io::ErrorKind::NotFound, detail)).in_input(&path.display().to_string()))
            }
            None => Ok(()),
        }
    }

    /// Returns the final path of a new file that is neither in `_tmp` nor in place. `compact` removes files from `_tmp`
    /// that are a day old, even if their writer was only suspended.
    fn find_lost(&self, partition: &Partition) -> Option<PathBuf> {
        let tmp = partition.store().dir.join(TMP);
        let files = TABLES.into_iter().zip(&self.files);
        // The order of these checks matters: a rename between them moves a file from the first path to the second.
        let mut lost = files.filter(|(_, name)| !files::is_own_file(&tmp.join(name)));
        lost.find_map(|(table, _)| {
            let path = partition.file(table, &self.stem);
            (!files::is_own_file(&path)).then_some(path)
        })
    }

    /// Removes the new files of a commit that can't be completed because one of them was lost.
    ///
    /// # Errors
    /// Returns an error if replaced files are gone, because the new files may be the only copy, or if a file can't be
    /// removed.
    fn roll_back(&self, partition: &Partition) -> Result<()> {
        // Without samples, nothing of the partition is left, for example because a user removed it.
        if !self.can_be_undone(partition) && !partition.stems(&SAMPLES)?.is_empty() {
            let detail = "this commit can't be completed or undone: both a new file and a replaced file are missing; \
                          restore one of them, or remove the commit";
            return Err(Error::malformed(detail));
        }
        // Samples first, because our readers see a profile as soon as its samples exist.
        for (table, existed) in TABLES.into_iter().zip(self.existed).rev() {
            if !existed {
                partition.remove_own(table, &self.stem)?;
            }
        }
        let tmp = partition.store().dir.join(TMP);
        let staged = self.files.iter().map(|name| tmp.join(name));
        staged.filter(|path| files::is_own_file(path)).try_for_each(|path| files::remove(&path))
    }

    /// Removes the replaced files if the new files exist in all tables. Samples go first, as in any removal.
    fn remove_replaced(&self, partition: &Partition) -> Result<()> {
        if self.replaces.is_empty() || !partition.has_all_files(&self.stem) {
            return Ok(());
        }
        for table in TABLES.into_iter().rev() {
            for stem in self.replaces.iter().filter(|stem| **stem != self.stem) {
                partition.remove_own(table, stem)?;
            }
        }
        Ok(())
    }
}
