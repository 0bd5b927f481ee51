//! Files that are written whole or not at all.
//!
//! Content goes to a temporary file beside the target, is synced, and is renamed into place. So readers see the old
//! content or the new one, and a full disk, an error or a crash leaves the old one. A target that is not a regular file
//! (a device, a pipe) is written to directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::work::{self, PolledWrite};

/// Writes a file, whole or not at all. A file that is there already keeps its permissions, and its owner if that is
/// allowed; through a symbolic link the file that it points to is written, not the link, also if there is none yet.
///
/// # Errors
/// The operating system's, with the file's name; links that lead in a circle; those of `write`.
pub fn write_file(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    work::begin_phase("writing");
    replace(path, write).map_err(|e| Error::io(e).in_input(&path.display().to_string()))
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let before = existing(fs::metadata(path))?;
    // By its real name, so that links stay links. What is open, but has no name any more, is written to as it is.
    let real = match &before {
        Some(_) => fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        None => end_of_links(path)?,
    };
    let path = real.as_path();
    if before.is_some() {
        // Fails where writing to the file would be refused, which replacing it would not be; also for a directory.
        let file = OpenOptions::new().write(true).open(path)?;
        if !file.metadata()?.is_file() {
            return fill(&file, write);
        }
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (fresh, _unfinished) = temporary(directory)?;
    fill(fresh.as_file(), write)?;
    if let Some(before) = before {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            // Only root may give files away; to others it stays their own.
            let _ = fchown(fresh.as_file(), Some(before.uid()), Some(before.gid()));
        }
        fresh.as_file().set_permissions(before.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(path).map_err(|e| e.error)?;
    // The name is safe once the directory is on the disk; not every system can do that, and the file is whole anyway.
    let _ = File::open(directory).and_then(|d| d.sync_all());
    Ok(())
}

/// A new file in a folder, which is removed unless it gets another name.
fn temporary(directory: &Path) -> io::Result<(NamedTempFile, Option<Unfinished>)> {
    // The system's own error: what the crate makes of it has the temporary file's name, and no number.
    let mut code = None;
    let mut unfinished = None;
    let create = |path: &Path| {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        unfinished = file.is_ok().then(|| Unfinished::new(path));
        file.inspect_err(|e| code = e.raw_os_error())
    };
    let fresh = tempfile::Builder::new().prefix(STAGED_PREFIX).make_in(directory, create);
    Ok((fresh.map_err(|e| code.map_or(e, io::Error::from_raw_os_error))?, unfinished))
}

/// The prefix of the names of temporary files.
pub(crate) const STAGED_PREFIX: &str = ".pprofdiff-";

/// A file that is written and synced under a temporary name. Dropping it removes the file.
#[cfg(feature = "store")]
pub(crate) struct Staged {
    file: NamedTempFile,
    _unfinished: Option<Unfinished>,
}

#[cfg(feature = "store")]
impl Staged {
    /// Writes a file into `folder`, which must be on the file system of the final path.
    pub fn write(folder: &Path, bytes: &[u8]) -> io::Result<Staged> {
        work::begin_phase("writing");
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

/// Writes a file that may be lost: like [`Staged`], but without waiting for the disk.
#[cfg(feature = "store")]
pub(crate) fn write_cache(unfinished: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(unfinished)?;
    let (fresh, _unfinished) = temporary(unfinished)?;
    fill(fresh.as_file(), |out| out.write_all(bytes))?;
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fresh.persist(path).map(drop).map_err(|e| e.error)
}

/// A file that only its owner can read. Dropping it removes the file, and so does Ctrl-C.
#[derive(Debug)]
pub struct PrivateFile {
    file: tempfile::TempPath,
    _unfinished: Unfinished,
}

impl PrivateFile {
    /// Creates a file with this content in the folder for temporary files.
    ///
    /// # Errors
    /// The operating system's.
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

/// The temporary files of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary file, as long as it is there.
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

/// Removes what is half written, for a process that ends without waiting for the threads that write.
#[doc(hidden)]
pub fn remove_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// What is there, if it is.
fn existing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// The path that links lead to, at which there is nothing. (Where they lead in a circle the system says so before.)
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    while existing(fs::symlink_metadata(&path))?.is_some() {
        let to = fs::read_link(&path)?;
        path.pop();
        path.push(to);
    }
    Ok(path)
}

fn fill(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, PolledWrite::new(file));
    write(&mut out)?;
    out.flush()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::work::Work;

    #[test]
    fn writing_that_is_stopped_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_file(&path, |out| out.write_all(b"old")).unwrap();
        let (work, mut unfinished) = (Work::new(), Vec::new());
        work.stop_at_poll(4);
        let ended = work.run(|| {
            write_file(&path, |out| {
                unfinished = UNFINISHED.lock().unwrap().clone();
                loop {
                    out.write_all(&[b'x'; 1 << 16])?;
                }
            })
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
        assert!(unfinished.iter().any(|path| path.starts_with(folder.path())));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(UNFINISHED.lock().unwrap().iter().all(|path| !path.starts_with(folder.path())));
    }
}
