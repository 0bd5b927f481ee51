//! What follows from a store's profiles and takes time to make: kept beside the tables, as a cache that may be removed at any
//! time.
//!
//! ```text
//! STORE/_series/NAME    a name for what it follows from; the content, and its CRC-32
//! ```
//!
//! Engines read no folder of such a name. A file is written whole and renamed, never synced: what a crash leaves torn has
//! another sum. What can't be read is not there, and what can't be written is made again the next time, so that neither a
//! full disk nor a store that is read-only is an error here.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use super::compact::remove_old;
use super::select::names;
use super::{Store, TMP};
use crate::output;

const FOLDER: &str = "_series";
/// The longest content that is kept.
const MAX_BYTES: u64 = 128 << 20;
/// What was not written for so long may be of profiles that are gone.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Store {
    fn derived_dir(&self) -> PathBuf {
        self.dir.join(FOLDER)
    }

    /// What is kept below a name, if it is as it was written.
    #[doc(hidden)]
    pub fn read_derived(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.derived_dir().join(name);
        // Neither a pipe, which is waited for, nor a link.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES + 4);
        let file = File::open(&path).ok().filter(|_| is_ours)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 4).read_to_end(&mut bytes).ok()?;
        let (content, sum) = bytes.split_last_chunk()?;
        (crc32fast::hash(content) == u32::from_le_bytes(*sum)).then_some(())?;
        bytes.truncate(bytes.len() - 4);
        Some(bytes)
    }

    /// Keeps something below a name, if that can be done.
    #[doc(hidden)]
    pub fn write_derived(&self, name: &str, mut content: Vec<u8>) {
        if content.len() as u64 <= MAX_BYTES {
            content.extend(crc32fast::hash(&content).to_le_bytes());
            let _ = output::write_cache(&self.dir.join(TMP), &self.derived_dir().join(name), &content);
        }
    }

    /// Removes what has a successor.
    #[doc(hidden)]
    pub fn remove_derived(&self, name: &str) {
        let _ = fs::remove_file(self.derived_dir().join(name));
    }

    /// Removes what is old; how many files.
    pub(super) fn sweep_derived(&self) -> usize {
        let dir = self.derived_dir();
        let old = |name: &String| remove_old(&dir.join(name), MAX_AGE).unwrap_or(false);
        names(&dir).unwrap_or_default().iter().filter(|name| old(name)).count()
    }
}
