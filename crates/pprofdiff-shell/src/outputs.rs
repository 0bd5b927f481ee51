//! Rejects output files whose folder is missing, or that are also inputs, before the output file is replaced.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pprofdiff::Error;

use crate::is_stdin;

/// The output files of a command.
#[derive(Default)]
pub struct Outputs {
    /// The outputs that already exist.
    files: Vec<(PathBuf, OutputId)>,
    /// The first output in a folder that does not exist.
    homeless: Option<PathBuf>,
    /// The error message of the first input that was also an output.
    refused: OnceLock<String>,
}

impl Outputs {
    /// Looks up which of the files exist, and whether their folders do.
    pub fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Outputs {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        let paths = || paths.iter().filter(|path| !is_stdin(path));
        let files = paths().filter_map(|path| Some((path.clone(), OutputId::from_path(path)?))).collect();
        let homeless = paths().find(|path| missing_folder(path).is_some()).cloned();
        Outputs { files, homeless, refused: OnceLock::new() }
    }

    /// Checks that the folders of all outputs exist.
    ///
    /// # Errors
    /// Fails if a folder is missing. The error names the folder.
    pub fn check_folders(&self) -> pprofdiff::Result<()> {
        let Some((output, folder)) = self.homeless.as_ref().and_then(|path| Some((path, missing_folder(path)?))) else {
            return Ok(());
        };
        let detail = format!("the folder {} does not exist; create it first", folder.display());
        Err(Error::query(detail).in_input(&output.display().to_string()))
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
    /// it before each write.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }
}

/// Returns the folder of an output file, if it does not exist. Folders with placeholders (`{index}`) are not checked.
fn missing_folder(output: &Path) -> Option<&Path> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    (!folder.exists() && !folder.to_string_lossy().contains('{')).then_some(folder)
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
