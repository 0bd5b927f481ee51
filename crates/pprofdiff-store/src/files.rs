//! Access to the files and folders of a store, which may come from a stranger.
//!
//! A store holds regular files in folders. A pipe would block its reader, and a device may never end, so both are
//! refused before they are opened. Readers follow links to regular files. Code that removes or replaces files does not.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
#[cfg(windows)]
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use pprofdiff_profile::cancellation;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The pause between two attempts to take a lock. It is short compared with a commit.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

/// Returns the sorted names in a folder. A missing folder has no names.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let named = |e: Error| e.in_input(&folder.display().to_string());
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| named(Error::io(e)))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| named(Error::io(e)))?.file_name();
        names.push(name.into_string().map_err(|name| {
            named(Error::malformed(format!("the name {name:?} is not UTF-8; move it out of the store")))
        })?);
    }
    names.sort();
    Ok(names)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let named = |e: Error| e.in_input(&path.display().to_string());
    let (file, size) = open_regular(path)?;
    let too_large = |size| {
        let detail = format!("it has {size} bytes; the limit for a file of a store is {limit}");
        Err(named(Error::new(ErrorKind::Limit, detail)))
    };
    if size > limit {
        return too_large(size);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| named(Error::io(e)))?;
    // The file may have grown, and some system files report a size of zero.
    if bytes.len() as u64 > limit { too_large(bytes.len() as u64) } else { Ok(bytes) }
}

/// Opens a regular file or a link to a regular file, and returns it with its size.
pub fn open_regular(path: &Path) -> Result<(File, u64)> {
    let named = |e: Error| e.in_input(&path.display().to_string());
    let size = |file: io::Result<fs::Metadata>| match file {
        Ok(file) if file.is_file() => Ok(file.len()),
        Ok(_) => {
            let detail =
                "this is a folder, a pipe or a device, and a store holds regular files; move it out of the store";
            Err(named(Error::malformed(detail)))
        }
        Err(e) => Err(named(Error::io(e))),
    };
    size(fs::metadata(path))?;
    // Another file may take this file's place in between. It is opened without blocking, and refused below.
    let file = read_options().open(path).map_err(|e| named(Error::io(e)))?;
    let size = size(file.metadata())?;
    Ok((file, size))
}

fn read_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    options.custom_flags((rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits() as i32);
    options
}

/// Returns true if `path` is a regular file and not a link.
pub fn is_own_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Returns the path of the first component of `below`, relative to `dir`, that exists and is not a folder, such as a
/// link.
pub fn find_link(dir: &Path, below: &Path) -> Option<PathBuf> {
    let mut path = dir.to_owned();
    below.components().find_map(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|file| !file.is_dir()).then(|| path.clone())
    })
}

/// Removes a file. Another process may already have removed it.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(e).in_input(&path.display().to_string())),
        _ => Ok(()),
    }
}

/// An exclusive lock among processes and threads. The system releases it when its holder ends for any reason.
pub struct Lock {
    /// `None` on a file system without locks.
    _file: Option<File>,
}

impl Lock {
    /// Creates the lock's file if necessary, and waits for the lock.
    ///
    /// # Errors
    /// Returns an error if the file can't be created or opened, if the file system locks only files that this user can
    /// write, or if the path is not a regular file.
    pub fn take(path: &Path) -> Result<Lock> {
        let with_path = |e: io::Error| Error::io(e).in_input(&path.display().to_string());
        if fs::symlink_metadata(path).is_ok_and(|file| !file.is_file()) {
            let detail = "this is the lock of a store, and not a regular file; remove it";
            return Err(Error::malformed(detail).in_input(&path.display().to_string()));
        }
        loop {
            cancellation::checkpoint();
            match try_lock(path) {
                Ok(file) => return Ok(Lock { _file: file }),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY_PAUSE),
                Err(e) => return Err(with_path(e)),
            }
        }
    }
}

/// Takes a lock, or returns `WouldBlock`. Without locks on the file system, returns `None` at once.
#[cfg(unix)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, OFlags, flock};
    use rustix::io::Errno;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut options = read_options();
    options.custom_flags(flags);
    // Most file systems lock a file of another user without write access.
    let file = match options.clone().write(true).create(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => options.open(path)?,
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        // NFS supports locks, but only for files that are open for writing.
        Err(Errno::BADF | Errno::ACCESS) => {
            let detail =
                "this file system locks only writable files; make the lock of the store writable for its group";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, detail))
        }
        Err(_) => Ok(None),
    }
}

/// On Windows, opening a file without sharing acts as a lock.
#[cfg(windows)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    const SHARING_VIOLATION: i32 = 32;
    match OpenOptions::new().write(true).create(true).truncate(false).share_mode(0).open(path) {
        Err(e) if e.raw_os_error() == Some(SHARING_VIOLATION) => Err(io::ErrorKind::WouldBlock.into()),
        file => file.map(Some),
    }
}

#[cfg(not(any(unix, windows)))]
fn try_lock(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
