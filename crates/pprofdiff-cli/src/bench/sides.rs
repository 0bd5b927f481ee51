//! The checkouts of the two sides: git worktrees in private temporary folders, the working tree, or folders that the user
//! names. A worktree is removed when its checkout is dropped.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::submodules;
use crate::args::BenchArgs;
use crate::git::{CommitRange, git};
use crate::{Failure, Result};

/// A side's sources.
pub struct Checkout {
    /// Where commands run.
    pub dir: PathBuf,
    /// All that belongs to the side: the worktree, or the folder.
    pub root: PathBuf,
    /// The commit; empty where there is none.
    pub commit: String,
    /// Keeps the worktrees until the checkout is dropped.
    _worktrees: Option<Worktrees>,
}

/// The worktrees of a side, in a folder that only this user can enter: first the repository, then its submodules.
pub struct Worktrees {
    worktrees: Vec<Worktree>,
    folder: TempDir,
}

struct Worktree {
    /// The options that name the repository to git.
    repository: Vec<String>,
    dir: PathBuf,
    /// Git's own files about the worktree, inside the repository.
    admin: Option<PathBuf>,
}

impl Worktrees {
    /// Creates an empty folder with a new, unpredictable name: a folder that is already there is never used.
    fn new() -> Result<Worktrees> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("pprofdiff-bench-").rand_bytes(16);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let parent = std::env::temp_dir();
        let wrong = |e| {
            let parent = parent.display();
            Failure::Message(format!(
                "{parent}: no folder for worktrees can be created: {e}; set TMPDIR to another one"
            ))
        };
        // git runs elsewhere, so a relative TMPDIR would mean another folder there.
        let parent = std::path::absolute(&parent).map_err(wrong)?;
        let folder = builder.tempdir_in(parent).map_err(wrong)?;
        Ok(Worktrees { worktrees: Vec::new(), folder })
    }

    /// Checks out a commit of a repository into a folder below this one.
    pub fn add(&mut self, repository: Vec<String>, dir: &Path, commit: &str) -> Result<()> {
        let path = dir.display().to_string();
        let add = ["worktree", "add", "--quiet", "--detach", &path, commit];
        git(self.folder.path(), repository.iter().map(String::as_str).chain(add))?;
        let admin = git(dir, ["rev-parse", "--absolute-git-dir"]).ok().map(|text| PathBuf::from(text.trim_end()));
        // Any other place is not git's folder of one worktree, and must not be removed.
        let admin = admin.filter(|admin| admin.parent().is_some_and(|parent| parent.ends_with("worktrees")));
        self.worktrees.push(Worktree { repository, dir: dir.to_owned(), admin });
        Ok(())
    }

    /// The folder of all.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Worktrees {
    fn drop(&mut self) {
        // Submodules lie inside the worktree that was added before them.
        while let Some(Worktree { repository, dir, admin }) = self.worktrees.pop() {
            let path = dir.display().to_string();
            let remove = ["worktree", "remove", "--force", "--force", &path];
            if git(self.folder.path(), repository.iter().map(String::as_str).chain(remove)).is_err() {
                // Never `worktree prune`: it would also forget the user's worktrees on disks that are not mounted now.
                let _ = std::fs::remove_dir_all(&dir);
                let _ = admin.map(std::fs::remove_dir_all);
            }
        }
    }
}

impl Checkout {
    fn of_dir(dir: &Path) -> Result<Checkout> {
        let wrong = |what: String| Failure::Message(format!("{}: {what}", dir.display()));
        let full = std::fs::canonicalize(dir).map_err(|e| wrong(e.to_string()))?;
        if !full.is_dir() {
            return Err(wrong("it is no folder".to_owned()));
        }
        Ok(Checkout { root: full.clone(), dir: full, commit: String::new(), _worktrees: None })
    }

    /// Checks out a commit with its submodules. Commands run in the same subfolder as this process.
    fn of_commit(root: &Path, here: &Path, commit: &str, name: &str) -> Result<Checkout> {
        let mut worktrees = Worktrees::new()?;
        let dir = worktrees.folder().join(name);
        worktrees.add(vec!["-C".to_owned(), root.display().to_string()], &dir, commit)?;
        submodules::check_out(&mut worktrees, &dir, root)?;
        let inside = dir.join(here);
        if !inside.is_dir() {
            return Err(Failure::Message(format!("commit {commit} has no folder {}, where we are", here.display())));
        }
        Ok(Checkout { dir: inside, root: dir, commit: commit.to_owned(), _worktrees: Some(worktrees) })
    }
}

/// Checks out both sides of a range, or finds the two folders.
pub fn checkouts(range: &str, dirs: &[PathBuf]) -> Result<[Checkout; 2]> {
    if let [base, new] = dirs {
        return Ok([Checkout::of_dir(base)?, Checkout::of_dir(new)?]);
    }
    let root = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-toplevel"])?.trim_end());
    let here = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-prefix"])?.trim_end());
    let CommitRange { base, tip } = CommitRange::resolve(&root, range)?;
    let base = Checkout::of_commit(&root, &here, &base, "base")?;
    let new = match tip {
        Some(tip) => Checkout::of_commit(&root, &here, &tip, "new")?,
        None => Checkout { root, ..Checkout::of_dir(Path::new("."))? },
    };
    Ok([base, new])
}

/// Returns the range or the folders that the arguments name. `--base-cmd` and `--new-cmd` alone run in the current folder,
/// also if they are equal: then it is an A/A run.
pub fn named(args: &BenchArgs) -> Result<(String, Vec<PathBuf>)> {
    match (&args.range, &args.base_dir, &args.new_dir) {
        (Some(range), None, None) => Ok((range.clone(), Vec::new())),
        (None, Some(base), Some(new)) => Ok((String::new(), vec![base.clone(), new.clone()])),
        _ if args.base_cmd.is_some() || args.new_cmd.is_some() => {
            Ok((String::new(), vec![PathBuf::from("."), PathBuf::from(".")]))
        }
        _ => Err(Failure::Message(
            "name what to compare: BASE..NEW, --base-dir and --new-dir, or --base-cmd and --new-cmd".to_owned(),
        )),
    }
}
