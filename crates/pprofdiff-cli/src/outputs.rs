//! Prevents a command from reading a file that it writes, because the output would overwrite the profile.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pprofdiff::Error;

use crate::is_stdin;

/// The output files that already exist.
#[derive(Default)]
pub struct Outputs {
    files: Vec<(PathBuf, OutputId)>,
    refused: OnceLock<String>,
}

impl Outputs {
    pub fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Outputs {
        let paths = paths.into_iter().filter(|path| !is_stdin(path.as_ref()));
        let files =
            paths.filter_map(|path| Some((path.as_ref().to_owned(), OutputId::from_path(path.as_ref())?))).collect();
        Outputs { files, refused: OnceLock::new() }
    }

    /// Checks that an input is not an output.
    ///
    /// # Errors
    /// Fails if the input is one of the output files, under any path or link.
    pub fn check_input(&self, input: &Path) -> pprofdiff::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        // The shell may have opened an output as standard input.
        let opened = if is_stdin(input) { Path::new("/dev/stdin") } else { input };
        let id = OutputId::from_path(opened);
        let Some((output, _)) = self.files.iter().find(|(_, output)| id.as_ref() == Some(output)) else {
            return Ok(());
        };
        let detail = format!("the output is also an input, {}; choose another output file", input.display());
        self.refused.get_or_init(|| detail.clone());
        Err(Error::query(detail).in_input(&output.display().to_string()))
    }

    /// Returns the error message of the first refused input, if any. Commands that discover inputs while they run check
    /// it before they write.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }
}

/// The identity of a regular file, which is the same for all of its names.
#[derive(PartialEq, Eq)]
struct OutputId(#[cfg(unix)] [u64; 2], #[cfg(not(unix))] PathBuf);

impl OutputId {
    fn from_path(path: &Path) -> Option<OutputId> {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(OutputId([metadata.dev(), metadata.ino()]))
        }
        // On other systems hard links look like copies.
        #[cfg(not(unix))]
        return path.canonicalize().ok().filter(|_| metadata.is_file()).map(OutputId);
    }
}
