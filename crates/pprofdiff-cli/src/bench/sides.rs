//! Where the two sides are: worktrees in a temporary folder, which go with this, the working tree, or folders of the user's.

use std::path::{Path, PathBuf};

use crate::args::BenchArgs;
use crate::git::git;
use crate::{Failure, Result};

/// A side's sources.
pub struct Checkout {
    /// Where commands run.
    pub dir: PathBuf,
    /// All that belongs to the side: the worktree, or the folder.
    pub root: PathBuf,
    /// The commit; empty where there is none.
    pub commit: String,
    /// Goes with this.
    _worktree: Option<Worktree>,
}

struct Worktree {
    root: PathBuf,
    dir: PathBuf,
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let dir = self.dir.display().to_string();
        let _ = git(&self.root, ["worktree", "remove", "--force", &dir]);
        let _ = std::fs::remove_dir_all(&self.dir);
        let _ = git(&self.root, ["worktree", "prune"]);
        // The folder of both, which the first to go leaves.
        let _ = self.dir.parent().map(std::fs::remove_dir);
    }
}

impl Checkout {
    fn of_dir(dir: &Path) -> Result<Checkout> {
        let wrong = |what: String| Failure::Message(format!("{}: {what}", dir.display()));
        let full = std::fs::canonicalize(dir).map_err(|e| wrong(e.to_string()))?;
        if !full.is_dir() {
            return Err(wrong("it is no folder".to_owned()));
        }
        Ok(Checkout { root: full.clone(), dir: full, commit: String::new(), _worktree: None })
    }

    /// A worktree of a revision, of which the folder is where we are in the repository.
    fn of_revision(root: &Path, here: &Path, revision: &str, name: &str) -> Result<Checkout> {
        let asked = format!("{revision}^{{commit}}");
        let commit = git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &asked])
            .map_err(|_| Failure::Message(format!("git knows no commit {revision:?}")))?;
        let commit = commit.trim_end().to_owned();
        let both = std::env::temp_dir().join(format!("pprofdiff-bench-{}", std::process::id()));
        std::fs::create_dir_all(&both).map_err(|e| Failure::Message(format!("{}: {e}", both.display())))?;
        let dir = both.join(name);
        let worktree = Worktree { root: root.to_owned(), dir: dir.clone() };
        let path = dir.display().to_string();
        git(root, ["worktree", "add", "--quiet", "--detach", &path, &commit])?;
        let inside = dir.join(here);
        if !inside.is_dir() {
            return Err(Failure::Message(format!("{revision} has no folder {}, where we are", here.display())));
        }
        Ok(Checkout { dir: inside, root: dir, commit, _worktree: Some(worktree) })
    }
}

/// What is compared: a range of commits, or two folders.
pub fn checkouts(range: &str, dirs: &[PathBuf]) -> Result<[Checkout; 2]> {
    if let [base, new] = dirs {
        return Ok([Checkout::of_dir(base)?, Checkout::of_dir(new)?]);
    }
    let root = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-toplevel"])?.trim_end());
    let here = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-prefix"])?.trim_end());
    let head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
    match range.split_once("..") {
        Some((base, new)) => Ok([
            Checkout::of_revision(&root, &here, &head(base), "base")?,
            Checkout::of_revision(&root, &here, &head(new.trim_start_matches('.')), "new")?,
        ]),
        None => {
            let base = Checkout::of_revision(&root, &here, range, "base")?;
            Ok([base, Checkout { root, ..Checkout::of_dir(Path::new("."))? }])
        }
    }
}

/// What the arguments name. Two commands are compared here, if nothing else is said.
pub fn named(args: &BenchArgs, has_two_commands: bool) -> Result<(String, Vec<PathBuf>)> {
    match (&args.range, &args.base_dir, &args.new_dir) {
        (Some(range), None, None) => Ok((range.clone(), Vec::new())),
        (None, Some(base), Some(new)) => Ok((String::new(), vec![base.clone(), new.clone()])),
        _ if has_two_commands => Ok((String::new(), vec![PathBuf::from("."), PathBuf::from(".")])),
        _ => Err(Failure::Message(
            "name what to compare: BASE..NEW, --base-dir and --new-dir, or --base-cmd and --new-cmd".to_owned(),
        )),
    }
}
