//! Writes files atomically: a file is written completely or not at all.
//!
//! The content goes to a temporary file next to the target, which is synced and then renamed. Readers therefore see
//! either the old or the new content, and a full disk, an error or a crash preserves the old content. A target that is
//! not a regular file (a device, a pipe), or that is open but deleted, is written directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use crate::cancellation::{self, CheckpointedWrite};
use crate::error::{Error, Result};

/// Writes a file completely or not at all. An existing file keeps its permissions, and its owner if the system permits.
/// If the path is a symbolic link, its target is written, even if the target does not exist yet.
///
/// # Errors
/// Fails with the error of `write` or of the operating system, which also reports symbolic links that form a cycle. The
/// error has the file's name.
pub fn write_file(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    cancellation::begin_phase("writing");
    replace(path, write).map_err(|e| Error::io(e).in_input(&path.display().to_string()))
}

/// Replaces the file at `path`.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let existing_metadata = existing(fs::metadata(path))?;
    // Use the real path, so that symbolic links survive.
    let real = match &existing_metadata {
        Some(_) => fs::canonicalize(path).ok(),
        None => Some(resolve_links(path)?),
    };
    if existing_metadata.is_some() {
        // Opening the file checks the permission to write it, which a rename would bypass. It also fails for a
        // directory.
        let file = OpenOptions::new().write(true).open(real.as_deref().unwrap_or(path))?;
        if !file.metadata()?.is_file() {
            return fill(&file, write);
        }
        if real.is_none() {
            // The file is open but deleted (`/proc/self/fd/3`), so no file can replace it.
            file.set_len(0)?;
            return fill(&file, write);
        }
    }
    let path = real.as_deref().unwrap_or(path);
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (temporary_file, _unfinished) = temporary(directory)?;
    fill(temporary_file.as_file(), write)?;
    if let Some(existing_metadata) = existing_metadata {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            // Only root may change a file's owner. For other users, the new file belongs to them.
            let _ = fchown(temporary_file.as_file(), Some(existing_metadata.uid()), Some(existing_metadata.gid()));
        }
        temporary_file.as_file().set_permissions(existing_metadata.permissions())?;
    }
    temporary_file.as_file().sync_all()?;
    temporary_file.persist(path).map_err(|e| e.error)?;
    // Sync the directory, so that the rename survives a crash. Not every system supports it, and the file is complete
    // in any case.
    let _ = File::open(directory).and_then(|d| d.sync_all());
    Ok(())
}

/// Creates a temporary file in a folder. Dropping it removes the file, unless it was renamed or kept.
fn temporary(directory: &Path) -> io::Result<(NamedTempFile, Option<Unfinished>)> {
    // Keep the system's error code: the error from `tempfile` contains the temporary name instead.
    let mut code = None;
    let mut unfinished = None;
    let create = |path: &Path| {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        unfinished = file.is_ok().then(|| Unfinished::new(path));
        file.inspect_err(|e| code = e.raw_os_error())
    };
    let temporary_file = tempfile::Builder::new().prefix(STAGED_PREFIX).make_in(directory, create);
    Ok((temporary_file.map_err(|e| code.map_or(e, io::Error::from_raw_os_error))?, unfinished))
}

/// The prefix of the names of temporary files.
#[doc(hidden)]
pub const STAGED_PREFIX: &str = ".pprofdiff-";

/// A file that is written and synced under a temporary name. Dropping it removes the file.
#[doc(hidden)]
pub struct Staged {
    file: NamedTempFile,
    _unfinished: Option<Unfinished>,
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged").finish_non_exhaustive()
    }
}

impl Staged {
    /// Writes a file into `folder`, which must be on the file system of the final path.
    pub fn write(folder: &Path, bytes: &[u8]) -> io::Result<Staged> {
        cancellation::begin_phase("writing");
        let (file, _unfinished) = temporary(folder)?;
        fill(file.as_file(), |out| out.write_all(bytes))?;
        file.as_file().sync_all()?;
        Ok(Staged { file, _unfinished })
    }

    /// Returns the file's name within its folder.
    pub fn name(&self) -> String {
        self.file.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Keeps the file under its temporary name.
    pub fn keep(self) -> io::Result<PathBuf> {
        self.file.keep().map(|(_, path)| path).map_err(|e| e.error)
    }

    /// Moves the file to `path`, replacing any file there.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.file.persist(path).map(drop).map_err(|e| e.error)
    }

    /// Moves the file to `path`, unless a file already exists there.
    pub fn persist_new(self, path: &Path) -> io::Result<()> {
        match self.file.persist_noclobber(path) {
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            moved => moved.map(drop).map_err(|e| e.error),
        }
    }
}

/// Writes a cache file, which may be lost in a crash: like [`Staged`], but without waiting for the disk. `unfinished`
/// is the folder of the temporary file. Creates both folders if necessary.
#[doc(hidden)]
pub fn write_cache(unfinished: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(unfinished)?;
    let (temporary_file, _unfinished) = temporary(unfinished)?;
    fill(temporary_file.as_file(), |out| out.write_all(bytes))?;
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    temporary_file.persist(path).map(drop).map_err(|e| e.error)
}

/// A file that only its owner can read. Dropping it removes the file, and so does [`remove_unfinished`].
#[derive(Debug)]
pub struct PrivateFile {
    file: tempfile::TempPath,
    _unfinished: Unfinished,
}

impl PrivateFile {
    /// Creates a file with this content in the folder for temporary files.
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn new(suffix: &str, content: &[u8]) -> Result<PrivateFile> {
        // tempfile grants no rights to others, and never opens an existing file.
        let create = || {
            let mut file = tempfile::Builder::new().prefix("pprofdiff-").suffix(suffix).tempfile()?;
            let unfinished = Unfinished::new(file.path());
            file.write_all(content)?;
            Ok(PrivateFile { file: file.into_temp_path(), _unfinished: unfinished })
        };
        create().map_err(|e| Error::io(e).in_input(&std::env::temp_dir().display().to_string()))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.file
    }
}

/// The temporary files of this process, which [`remove_unfinished`] removes.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// An entry of [`UNFINISHED`] that is removed when the value is dropped.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(path: &Path) -> Unfinished {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Unfinished(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Removes all unfinished files. A process calls it before it exits without waiting for its writing threads, for
/// example on Ctrl-C.
#[doc(hidden)]
pub fn remove_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Converts a "not found" error into `None`.
fn existing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Follows symbolic links to a path that does not exist. The system has already reported links that form a cycle.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    while existing(fs::symlink_metadata(&path))?.is_some() {
        let target = fs::read_link(&path)?;
        path.pop();
        path.push(target);
    }
    Ok(path)
}

/// Writes the content of a file through a buffer.
fn fill(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, CheckpointedWrite::new(file));
    write(&mut out)?;
    out.flush()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::cancellation::Cancellation;

    #[test]
    #[cfg(target_os = "linux")]
    fn open_but_deleted_file_is_written_directly() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut open = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        open.write_all(b"longer than the new content").unwrap();
        fs::remove_file(path).unwrap();
        let path = format!("/proc/self/fd/{}", open.as_raw_fd());
        write_file(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn cancelled_write_keeps_the_old_file_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_file(&path, |out| out.write_all(b"old")).unwrap();
        let (work, mut unfinished) = (Cancellation::new(), Vec::new());
        work.stop_at_checkpoint(4);
        let result = work.run(|| {
            write_file(&path, |out| {
                unfinished = UNFINISHED.lock().unwrap().clone();
                loop {
                    out.write_all(&[b'x'; 1 << 16])?;
                }
            })
        });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Interrupted);
        assert!(unfinished.iter().any(|path| path.starts_with(folder.path())));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(UNFINISHED.lock().unwrap().iter().all(|path| !path.starts_with(folder.path())));
    }
}
