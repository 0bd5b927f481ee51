//! Files that a command writes and must not read: its answer would stand in the place of the profile.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pprofdiff::Error;

use crate::is_stdin;

/// The files that will be written, of those that are there already.
#[derive(Default)]
pub struct Outputs {
    files: Vec<(PathBuf, FileId)>,
    refused: OnceLock<String>,
}

impl Outputs {
    pub fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Outputs {
        let known = paths.into_iter().filter(|path| !is_stdin(path.as_ref()));
        let files =
            known.filter_map(|path| Some((path.as_ref().to_owned(), FileId::from_path(path.as_ref())?))).collect();
        Outputs { files, refused: OnceLock::new() }
    }

    /// Checks a file that is to be read.
    ///
    /// # Errors
    /// It is one of these, whatever path or link leads there.
    pub fn check_input(&self, input: &Path) -> pprofdiff::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        // A shell may have opened one of them as standard input.
        let opened = if is_stdin(input) { Path::new("/dev/stdin") } else { input };
        let id = FileId::from_path(opened);
        let Some((output, _)) = self.files.iter().find(|(_, output)| id.as_ref() == Some(output)) else {
            return Ok(());
        };
        let detail = format!("the output is also read, as {}; name another file for it", input.display());
        self.refused.get_or_init(|| detail.clone());
        Err(Error::query(detail).in_input(&output.display().to_string()))
    }

    /// Why nothing may be written, once an input was refused: of inputs that become known while others are worked on.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }
}

/// What a regular file has in common under all of its names.
#[derive(PartialEq, Eq)]
struct FileId(#[cfg(unix)] [u64; 2], #[cfg(not(unix))] PathBuf);

impl FileId {
    fn from_path(path: &Path) -> Option<FileId> {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(FileId([metadata.dev(), metadata.ino()]))
        }
        // Hard links are not told apart from copies there.
        #[cfg(not(unix))]
        return path.canonicalize().ok().filter(|_| metadata.is_file()).map(FileId);
    }
}
