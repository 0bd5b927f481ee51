//! The checkouts of the two sides: git worktrees in private temporary folders, the working tree, or folders of the
//! user. Dropping a checkout removes its worktrees.

use std::path::{Path, PathBuf};

use pprofdiff_shell::git::{CommitRange, git};
use pprofdiff_shell::{Failure, Result};
use tempfile::TempDir;

use super::process::{CommandJob, OutputKind, Runner, lines};
use super::submodules;
use crate::BenchOptions;

/// The sources of a side.
pub struct Checkout {
    /// The folder in which commands run.
    pub dir: PathBuf,
    /// The folder that contains all files of the side: the worktree, the user's working tree, or the folder that the
    /// user gave.
    pub root: PathBuf,
    /// The commit id, or an empty text if the side is not a commit.
    pub commit: String,
    /// The worktrees, which are removed when the checkout is dropped.
    _worktrees: Option<Worktrees>,
}

/// The worktrees of a side: first the repository, then its submodules. On Unix, only the current user can enter their
/// folder.
pub struct Worktrees {
    worktrees: Vec<Worktree>,
    folder: TempDir,
}

struct Worktree {
    /// The options with which git selects the repository, such as `-C ROOT`.
    repository: Vec<String>,
    dir: PathBuf,
    /// The folder inside the repository where git keeps its data about the worktree; `None` if git could not report it.
    admin: Option<PathBuf>,
}

impl Worktrees {
    /// Creates an empty folder with a new, unpredictable name. It never uses an existing folder.
    fn new() -> Result<Worktrees> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("pprofdiff-bench-").rand_bytes(16);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let parent = std::env::temp_dir();
        let wrong = |e| {
            let parent = parent.display();
            Failure::Message(format!(
                "{parent}: can't create a folder for worktrees here: {e}; set TMPDIR to another folder"
            ))
        };
        // git runs in another folder, where a relative TMPDIR would name a different place.
        let parent = std::path::absolute(&parent).map_err(wrong)?;
        let folder = builder.tempdir_in(parent).map_err(wrong)?;
        Ok(Worktrees { worktrees: Vec::new(), folder })
    }

    /// Checks out a commit of a repository into `dir`, which must be below [`Worktrees::folder`].
    pub fn add(&mut self, runner: &Runner<'_>, repository: Vec<String>, dir: &Path, commit: &str) -> Result<()> {
        let path = dir.display().to_string();
        let add = ["worktree", "add", "--quiet", "--detach", &path, commit];
        let add: Vec<String> = repository.iter().cloned().chain(add.map(str::to_owned)).collect();
        // A failed `worktree add` can leave a worktree behind, which must be removed too.
        self.worktrees.push(Worktree { repository, dir: dir.to_owned(), admin: None });
        let added = self.run_git(runner, add);
        let admin = git(dir, ["rev-parse", "--absolute-git-dir"]).ok().map(|text| PathBuf::from(text.trim_end()));
        if let Some(worktree) = self.worktrees.last_mut() {
            // If `worktree add` failed, git may report the data of the whole repository, which must never be removed.
            worktree.admin = admin.filter(|admin| admin.parent().is_some_and(|parent| parent.ends_with("worktrees")));
        }
        added
    }

    /// Runs a git command that can take long, because it may download files and run hooks and filters of the user.
    /// Ctrl-C and `--max-time` stop it, together with the processes that it started.
    fn run_git(&self, runner: &Runner<'_>, args: Vec<String>) -> Result<()> {
        let command: Vec<String> = ["git".to_owned()].into_iter().chain(args).collect();
        // git runs in a background process group, where a prompt on the terminal would hang. So neither git nor ssh may
        // prompt there.
        let variables = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("SSH_ASKPASS_REQUIRE", "force"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_ALL", "C"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (dir, output) = (self.folder.path(), self.folder.path().join("git.txt"));
        let job = CommandJob {
            command: &command,
            dir,
            variables: &variables,
            output: &output,
            kind: OutputKind::Log,
            patience: None,
        };
        if runner.run(&job)?.status.success() {
            return Ok(());
        }
        let messages: Vec<String> = lines(&output).map(|line| line.trim().to_owned()).collect();
        // The log also contains output of the user's hooks and filters, so prefer a line of git itself.
        let line = messages.iter().find_map(|line| line.strip_prefix("fatal: ").map(str::to_owned));
        let line = line.or_else(|| messages.into_iter().find(|line| !line.is_empty()));
        Err(Failure::Message(format!("git: {}", line.as_deref().unwrap_or("worktree add failed without a message"))))
    }

    /// Returns the folder that contains all worktrees.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Worktrees {
    fn drop(&mut self) {
        // Submodules are inside the worktree that was added before them, so they are removed first.
        while let Some(worktree) = self.worktrees.pop() {
            let path = worktree.dir.display().to_string();
            // The second --force also removes a locked worktree.
            let remove = ["worktree", "remove", "--force", "--force", &path];
            let remove: Vec<&str> = worktree.repository.iter().map(String::as_str).chain(remove).collect();
            if git(self.folder.path(), &remove).is_ok() {
                continue;
            }
            let admin = worktree.own_admin();
            // Removes the folder itself. `worktree prune` would also forget the user's worktrees on disks that are not
            // mounted.
            let _ = std::fs::remove_dir_all(&worktree.dir);
            // git refuses a damaged worktree, but it forgets a worktree whose folder is gone.
            if git(self.folder.path(), &remove).is_err() {
                let _ = admin.map(std::fs::remove_dir_all);
            }
        }
    }
}

impl Worktree {
    /// Returns the admin folder if it still describes this worktree. The user may have moved the worktree, and another
    /// worktree may have reused the name of the folder.
    fn own_admin(&self) -> Option<&Path> {
        let admin = self.admin.as_deref()?;
        let text = std::fs::read_to_string(admin.join("gitdir")).ok()?;
        // The path is relative to the admin folder if git is configured with `worktree.useRelativePaths`. Only the
        // folder is canonicalised, because a damaged worktree may lack `.git`.
        let link = admin.join(text.trim());
        let dir = std::fs::canonicalize(link.parent()?).ok()?;
        let is_own = link.ends_with(".git") && std::fs::canonicalize(&self.dir).is_ok_and(|path| path == dir);
        is_own.then_some(admin)
    }
}

impl Checkout {
    pub fn from_dir(dir: &Path) -> Result<Checkout> {
        let wrong = |reason: String| Failure::Message(format!("{}: {reason}", dir.display()));
        let full = std::fs::canonicalize(dir).map_err(|e| wrong(e.to_string()))?;
        if !full.is_dir() {
            return Err(wrong("not a folder".to_owned()));
        }
        Ok(Checkout { root: full.clone(), dir: full, commit: String::new(), _worktrees: None })
    }

    /// Checks out a commit with its submodules. Commands run in the same subfolder as this process.
    fn from_commit(runner: &Runner<'_>, root: &Path, subfolder: &Path, commit: &str, name: &str) -> Result<Checkout> {
        let mut worktrees = Worktrees::new()?;
        let dir = worktrees.folder().join(name);
        worktrees.add(runner, vec!["-C".to_owned(), root.display().to_string()], &dir, commit)?;
        submodules::check_out(runner, &mut worktrees, &dir, root)?;
        let inside = dir.join(subfolder);
        if !inside.is_dir() {
            return Err(Failure::Message(format!(
                "commit {commit} does not contain the current folder, {}; run from a folder that both commits have",
                subfolder.display()
            )));
        }
        Ok(Checkout { dir: inside, root: dir, commit: commit.to_owned(), _worktrees: Some(worktrees) })
    }
}

/// Checks out both sides of `range`, or opens the two folders in `dirs`. The new side of a range without `..` is the
/// user's working tree, in which git changes nothing.
pub fn checkouts(runner: &Runner<'_>, range: &str, dirs: &[PathBuf]) -> Result<[Checkout; 2]> {
    if let [base, new] = dirs {
        return Ok([Checkout::from_dir(base)?, Checkout::from_dir(new)?]);
    }
    let root = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-toplevel"])?.trim_end());
    let subfolder = PathBuf::from(git(Path::new("."), ["rev-parse", "--show-prefix"])?.trim_end());
    let CommitRange { base, tip } = CommitRange::resolve(&root, range)?;
    let base = Checkout::from_commit(runner, &root, &subfolder, &base, "base")?;
    let new = match tip {
        Some(tip) => Checkout::from_commit(runner, &root, &subfolder, &tip, "new")?,
        None => Checkout { root, ..Checkout::from_dir(Path::new("."))? },
    };
    Ok([base, new])
}

/// Returns the range or the folders that the options name. If they only have `--base-cmd` or `--new-cmd`, both sides
/// run in the current folder.
pub fn named(options: &BenchOptions) -> Result<(String, Vec<PathBuf>)> {
    match (&options.range, &options.base_dir, &options.new_dir) {
        (Some(range), None, None) => Ok((range.clone(), Vec::new())),
        (None, Some(base), Some(new)) => Ok((String::new(), vec![base.clone(), new.clone()])),
        _ if options.base_cmd.is_some() || options.new_cmd.is_some() => {
            Ok((String::new(), vec![PathBuf::from("."), PathBuf::from(".")]))
        }
        _ => Err(Failure::Message(
            "name what to compare: BASE..NEW, --base-dir and --new-dir, or --base-cmd and --new-cmd".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Worktree;

    #[test]
    fn an_admin_folder_that_describes_another_worktree_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [admin, dir, moved] = ["worktrees/base", "base", "moved"].map(|name| folder.path().join(name));
        for dir in [&admin, &dir, &moved] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let worktree = Worktree { repository: Vec::new(), dir: dir.clone(), admin: Some(admin.clone()) };
        assert_eq!(worktree.own_admin(), None);
        for (gitdir, is_own) in [
            (format!("{}/.git\n", dir.display()), true),
            ("../../base/.git\n".to_owned(), true),
            (format!("{}/.git\n", moved.display()), false),
            (format!("{}\n", dir.display()), false),
        ] {
            std::fs::write(admin.join("gitdir"), &gitdir).unwrap();
            assert_eq!(worktree.own_admin().is_some(), is_own, "{gitdir}");
        }
    }
}
