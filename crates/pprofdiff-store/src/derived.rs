//! A cache of data derived from a store's profiles that takes time to compute. It lives next to the tables and may be
//! removed at any time.
//!
//! ```text
//! STORE/_series/NAME    NAME identifies the inputs; the file has the content and its CRC-32
//! ```
//!
//! Engines ignore folders whose name starts with an underscore. A file is written completely and then renamed, but
//! never synced; the CRC-32 detects a file that a crash damaged. A file that can't be read counts as missing, and a
//! file that can't be written is computed again the next time. A full disk or a read-only store therefore causes no
//! errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::compact::is_older;
use super::files::{self, find_link, names};
use super::{Store, is_id};
use pprofdiff::input::DerivedData;
use pprofdiff_profile::output;

const FOLDER: &str = "_series";
/// The maximum size of a cached content.
const MAX_BYTES: u64 = 128 << 20;
/// The minimum age of files to remove. Such files may belong to profiles that no longer exist.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Store {
    /// Returns the cache's folder, or `None` if it is a link or no folder: nothing is read, written or removed through
    /// a link.
    fn derived_dir(&self) -> Option<PathBuf> {
        find_link(&self.dir, FOLDER.as_ref()).is_none().then(|| self.dir.join(FOLDER))
    }

    /// Returns the cached content with this name, if it is undamaged.
    fn read_derived(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.derived_dir()?.join(name);
        let mut bytes = files::read(&path, MAX_BYTES + 4).ok().filter(|_| files::is_own_file(&path))?;
        let (content, sum) = bytes.split_last_chunk()?;
        (crc32fast::hash(content) == u32::from_le_bytes(*sum)).then_some(())?;
        bytes.truncate(bytes.len() - 4);
        Some(bytes)
    }

    /// Removes old files, and returns their number. The name and the CRC-32 must show that a file belongs to this
    /// cache. A file that a crash damaged therefore stays until its content is computed and written again.
    pub(super) fn sweep_derived(&self) -> usize {
        let Some(dir) = self.derived_dir() else { return 0 };
        let is_old =
            |name: &String| is_id(name) && is_older(&dir.join(name), MAX_AGE) && self.read_derived(name).is_some();
        let old = names(&dir).unwrap_or_default().into_iter().filter(is_old);
        old.filter(|name| files::remove(&dir.join(name)).is_ok()).count()
    }
}

impl DerivedData for Store {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.read_derived(name)
    }

    fn write(&self, name: &str, mut content: Vec<u8>) {
        if let (Some(dir), Ok(tmp)) = (self.derived_dir(), self.tmp())
            && content.len() as u64 <= MAX_BYTES
        {
            content.extend(crc32fast::hash(&content).to_le_bytes());
            let _ = output::write_cache(&tmp, &dir.join(name), &content);
        }
    }

    fn remove(&self, name: &str) {
        if let Some(dir) = self.derived_dir().filter(|_| is_id(name)) {
            let _ = fs::remove_file(dir.join(name));
        }
    }
}
