//! Source files at two revisions of the repository in the current folder, for listings that show each side's own source.
//!
//! Files are read with `git cat-file`, which runs no filters, and from bare repositories as well. Paths in a profile are
//! untrusted, and a path is read only if the revision has a regular file with this path or with its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pprofdiff::list::{FindSource, SourceDirs, SourceText};
use pprofdiff::random::HashMap;

use super::{CommitRange, git, git_within};
use crate::{Failure, Result};

/// The maximum size of a source file, as for files in folders. Larger files are not read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The source files of the base and of the new side.
#[derive(Debug)]
struct GitSources {
    root: PathBuf,
    /// The name of the repository's folder.
    name: String,
    /// The base and the new side. `None` if a side has the files of the working tree.
    sides: [Option<Revision>; 2],
}

/// The files of a revision.
#[derive(Debug)]
struct Revision {
    id: String,
    /// The paths of regular files, with their texts once they were read.
    files: Mutex<HashMap<String, Option<Option<Arc<str>>>>>,
}

/// Returns the sources of both sides at the revisions of a range, `BASE..NEW`. For `BASE` alone, the new side has the
/// sources of the working tree. A single profile has the sources of the range's end, or of a single revision.
///
/// # Errors
/// Fails if a revision is unknown, and if git fails.
pub fn git_sources(dir: &Path, range: &str, is_two_sided: bool) -> Result<SourceDirs> {
    let advice = "write --git BASE..NEW with two commits, branches or tags";
    git(dir, ["rev-parse", "--git-dir"])?;
    let resolved = CommitRange::resolve(dir, range);
    let CommitRange { base, tip } = resolved.map_err(|failure| match failure {
        Failure::Message(_) if Path::new(range).is_file() => {
            Failure::Message(format!("--git needs revisions, but {range} is a file; {advice}"))
        }
        Failure::Message(message) => Failure::Message(format!("{message}; {advice}")),
        failure => failure,
    })?;
    let [base, new] = if is_two_sided { [Some(base), tip] } else { [None, Some(tip.unwrap_or(base))] };
    // Fails in a bare repository.
    let root = git(dir, ["rev-parse", "--show-toplevel"]).ok().map(|root| PathBuf::from(root.trim_end()));
    let work_tree = match (&new, &root) {
        (Some(_), _) => Vec::new(),
        (None, Some(root)) => vec![root.clone()],
        (None, None) => {
            return Err(Failure::Message(format!(
                "--git {range}: a bare repository has no working tree for the new side; {advice}"
            )));
        }
    };
    let root = root.map_or_else(|| std::fs::canonicalize(dir).map_err(Failure::from), Ok)?;
    let name = root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".git").unwrap_or(&name).to_owned();
    let revision = |id: Option<String>| id.map(|id| Revision::list(&root, id)).transpose();
    let sides = [revision(base)?, revision(new)?];
    Ok(SourceDirs::new(Vec::new(), work_tree).with_finder(GitSources { root, name, sides }))
}

impl Revision {
    /// Lists the regular files of a commit.
    fn list(root: &Path, id: String) -> Result<Revision> {
        let list = git(root, ["ls-tree", "-r", "-z", "--full-tree", &id])?;
        let regular = |entry: &str| {
            let (about, path) = entry.split_once('\t')?;
            about.starts_with("100").then(|| (path.to_owned(), None))
        };
        let files = Mutex::new(list.split('\0').filter_map(regular).collect());
        Ok(Revision { id, files })
    }

    /// Returns the text of a file, or `None` if the revision has no such file, or if it is too large.
    fn read(&self, root: &Path, path: &str) -> Option<Arc<str>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let text = files.get_mut(path)?;
        let read = || {
            let object = format!("{}:{path}", self.id);
            git_within(root, ["cat-file", "blob", &object], MAX_FILE_BYTES, String::new).ok().map(Arc::from)
        };
        text.get_or_insert_with(read).clone()
    }
}

impl FindSource for GitSources {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let revision = self.sides[usize::from(!base)].as_ref()?;
        let path = path.replace('\\', "/");
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        for first in 0..parts.len() {
            // As in folders: the last part of a longer path could belong to any program.
            if first > 0 && first + 1 == parts.len() && parts[first - 1] != self.name {
                break;
            }
            let file = parts[first..].join("/");
            if let Some(text) = revision.read(&self.root, &file) {
                let id = &revision.id[..revision.id.len().min(12)];
                return Some(SourceText::new(format!("{id}:{file}"), text));
            }
        }
        None
    }
}
