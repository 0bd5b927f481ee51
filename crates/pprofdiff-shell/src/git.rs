//! Runs the installed `git` command. Reads the commits of `--git` in the current folder, and serves `bench`, which
//! resolves and checks out commits. Submodules order builds by commits, and read sources at two revisions.

mod places;
mod sources;

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pprofdiff::{Diff, Query};
use pprofdiff_commits::{History, LOG_ARGS, Tree};
use pprofdiff_explain::Explanation;

use crate::{Failure, Result};

pub use places::{CommitPlace, are_commits, commit_places, commits_between};
pub use sources::git_sources;

/// The maximum number of bytes to read from the output of a git command. The output of `git log` is the largest.
const MAX_LOG_BYTES: u64 = 512 << 20;
/// The maximum size of an error message from git. The rest is dropped.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Variables that bind git to one repository, its index or its work tree. git sets them when it runs a hook. The list
/// has the variables of `git rev-parse --local-env-vars` up to git 2.52, except for `SETTING_VARIABLES`. It also has
/// `GIT_QUARANTINE_PATH`, which is set during a push.
const REPOSITORY_VARIABLES: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// Variables that carry settings. Commands keep them, because they bind git to no repository and CI images need them,
/// for example for `safe.directory` and `url.*.insteadOf`.
#[cfg(test)]
const SETTING_VARIABLES: [&str; 2] = ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"];
/// Variables that change the meaning of paths and diffs in our own git commands.
const DIALECT_VARIABLES: [&str; 5] =
    ["GIT_DIFF_OPTS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS"];
/// Files that are large and not source code. Their changes are not read.
const LEFT_OUT: [&str; 6] = ["package-lock.json", "go.sum", "*.min.js", "*.svg", "yarn.lock", "pnpm-lock.yaml"];

/// The commits of a range, and access to their sources.
pub struct Commits {
    history: History,
    root: PathBuf,
    /// The newest commit; `None` if the range ends at the working tree.
    tip: Option<String>,
    files: Vec<String>,
}

/// Reads the commits of the range in `--git`, if it is given.
///
/// # Errors
/// Fails if the range names a file, like [`Commits::from_range`] otherwise.
pub fn commits(range: Option<&str>) -> Result<Option<Commits>> {
    let Some(range) = range else { return Ok(None) };
    if Path::new(range).is_file() {
        let message =
            format!("--git needs a range of commits, but {range} is a file; put --git last, or write --git A..B");
        return Err(Failure::Message(message));
    }
    Commits::from_range(Path::new("."), range).map(Some)
}

/// Returns the root of the repository that contains a folder, or `None` outside of a repository.
pub fn root(dir: &Path) -> Option<PathBuf> {
    let root = git(dir, ["rev-parse", "--show-toplevel"]).ok()?;
    Some(PathBuf::from(root.trim_end()))
}

/// Removes all variables that bind git to one repository from a command's environment. Otherwise, a benchmark in a
/// pre-commit hook would check out into the index of the commit in progress.
pub fn leave_repository(command: &mut Command) {
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
}

/// The commit ids of a range. Unlike a name, an id can never be mistaken for an option.
#[derive(Debug)]
pub struct CommitRange {
    /// The commit before the first change.
    pub base: String,
    /// The newest commit, or `None` if the range ends at the working tree.
    pub tip: Option<String>,
}

impl CommitRange {
    /// Resolves `A..B`, `A...B` or `A` alone. The base of `A...B` is the merge base. An omitted side is HEAD.
    ///
    /// # Errors
    /// Fails if a side is not a commit, or if `A...B` has no merge base.
    pub fn resolve(root: &Path, range: &str) -> Result<CommitRange> {
        let commit = |name: &str| commit_id(root, if name.is_empty() { "HEAD" } else { name });
        let Some((base, tip)) = range.split_once("..") else {
            return Ok(CommitRange { base: commit(range)?, tip: None });
        };
        let Some(tip) = tip.strip_prefix('.') else {
            return Ok(CommitRange { base: commit(base)?, tip: Some(commit(tip)?) });
        };
        let (base, tip) = (commit(base)?, commit(tip)?);
        let merge_base = git(root, ["merge-base", &base, &tip])
            .map_err(|_| Failure::Message(format!("git: the sides of {range} have no commit in common; write A..B")))?;
        Ok(CommitRange { base: merge_base.trim_end().to_owned(), tip: Some(tip) })
    }
}

/// Resolves a revision to a commit id.
fn commit_id(root: &Path, revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let id = git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])
        .map_err(|_| Failure::Message(format!("git: unknown commit {revision:?}")))?;
    Ok(id.trim_end().to_owned())
}

/// Runs git in a folder and returns its output.
///
/// # Errors
/// Fails if git can't be started, if its output exceeds `MAX_LOG_BYTES`, or if it fails. In the last case, the message
/// is the first line that git printed on standard error.
pub fn git<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> Result<String> {
    let too_long = || format!("the changes of these commits exceed {} MB; give a shorter range", MAX_LOG_BYTES >> 20);
    git_within(dir, args, MAX_LOG_BYTES, too_long)
}

/// Runs git like [`git`], with another limit of its output and the error for a longer output.
fn git_within<S: AsRef<OsStr>>(
    dir: &Path,
    args: impl IntoIterator<Item = S>,
    max_bytes: u64,
    too_long: impl FnOnce() -> String,
) -> Result<String> {
    let mut command = Command::new("git");
    // Disables prompts, and locks that could disturb other git processes.
    command.arg("-C").arg(dir).args(args).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    leave_repository(&mut command);
    for name in DIALECT_VARIABLES {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = |e: std::io::Error| Failure::Message(format!("git can't be run: {e}"));
    let mut child = command.spawn().map_err(missing)?;
    let stderr = child.stderr.take();
    // Reads standard error in parallel, because the output can exceed the capacity of a pipe.
    let error_output = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = stderr {
            let _ = (&mut pipe).take(MAX_ERROR_BYTES).read_to_end(&mut text);
            // Drains the rest, because git blocks while the pipe is full.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |pipe| pipe.take(max_bytes + 1).read_to_end(&mut bytes));
    if bytes.len() as u64 > max_bytes {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Failure::Message(too_long()));
    }
    let status = child.wait().map_err(missing)?;
    read.map_err(missing)?;
    if !status.success() {
        let error_output = error_output.join().unwrap_or_default();
        let line =
            error_output.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed without a message");
        return Err(Failure::Message(format!("git: {}", line.trim_start_matches("fatal: "))));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Commits {
    /// Reads the commits of `A..B`. For `A` alone, reads the commits from `A` to HEAD and the uncommitted changes. For
    /// an empty text, `A` is the commit where the branch left its upstream.
    pub fn from_range(dir: &Path, range: &str) -> Result<Commits> {
        let root = PathBuf::from(git(dir, ["rev-parse", "--show-toplevel"])?.trim_end());
        let CommitRange { base, tip } = match range {
            "" => CommitRange { base: upstream(&root)?, tip: None },
            range => CommitRange::resolve(&root, range)?,
        };
        let end = match &tip {
            Some(tip) => tip.clone(),
            None => commit_id(&root, "HEAD")?,
        };
        let left_out: Vec<String> = LEFT_OUT.iter().map(|pattern| format!(":(exclude,glob)**/{pattern}")).collect();
        let paths = || ["--", "."].into_iter().chain(left_out.iter().map(String::as_str));
        let commit_range = format!("{base}..{end}");
        let log = git(&root, LOG_ARGS.into_iter().chain(["--end-of-options", &commit_range]).chain(paths()))?;
        let mut history = History::parse(&log);
        if tip.is_none() {
            // Uncommitted changes count as the newest commit.
            let options = LOG_ARGS
                .into_iter()
                .filter(|word| !["log", "--no-merges"].contains(word) && !word.starts_with("--format"));
            let (config, options): (Vec<&str>, Vec<&str>) = options.partition(|word| !word.starts_with("--"));
            let diff = git(&root, config.into_iter().chain(["diff"]).chain(options).chain(["HEAD"]).chain(paths()))?;
            if !diff.is_empty() {
                let mut newer = History::default();
                newer.push("", "uncommitted", "changes", &diff);
                history = history.after(newer);
            }
        }
        if history.is_empty() {
            // `A` alone names all changes after this commit, not the commit itself.
            return Err(Failure::Message(match tip {
                Some(_) => format!("git: the range {range} is empty: the base contains all of its commits"),
                None if range.is_empty() => {
                    format!("git: {commit_range} is empty, and there are no uncommitted changes")
                }
                None => format!(
                    "git: there is no commit after {range} and no uncommitted change; to compare commits, write {range}~1..{range}"
                ),
            }));
        }
        let files = git(&root, ["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "--full-tree", &end])?;
        Ok(Commits { history, root, tip, files: files.lines().map(str::to_owned).collect() })
    }

    /// Ranks the commits that reach each cause, and adds them to the explanation.
    pub fn rank(&self, diff: &Diff, query: &Query, explanation: &mut Explanation) -> Result<()> {
        let read = |path: &str| match &self.tip {
            Some(tip) => git(&self.root, ["show", "--end-of-options", &format!("{tip}:{path}")]).ok(),
            None => std::fs::read_to_string(self.root.join(path)).ok(),
        };
        let tree = Tree { files: self.files.clone(), read: &read };
        Ok(pprofdiff_commits::rank_commits(diff, query, explanation, &self.history, &tree)?)
    }
}

/// Returns the commit where the branch started: the merge base with its upstream or else with the main branch. A branch
/// that contains all commits of HEAD is skipped.
fn upstream(root: &Path) -> Result<String> {
    let head = git(root, ["rev-parse", "HEAD"])?;
    for name in ["@{upstream}", "origin/HEAD", "origin/main", "origin/master", "main", "master"] {
        let Ok(base) = git(root, ["merge-base", "HEAD", name]) else { continue };
        if base != head {
            return Ok(base.trim_end().to_owned());
        }
    }
    Err(Failure::Message(
        "--git: HEAD has no commits beyond its upstream, main or master, or none of these exists; commit your changes, \
         or give a range, A..B"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use super::{REPOSITORY_VARIABLES, SETTING_VARIABLES, leave_repository};

    #[test]
    fn every_repository_variable_of_the_installed_git_is_removed_and_settings_are_kept() {
        let output = Command::new("git").args(["rev-parse", "--local-env-vars"]).output().unwrap();
        for name in String::from_utf8(output.stdout).unwrap().lines() {
            assert_ne!(REPOSITORY_VARIABLES.contains(&name), SETTING_VARIABLES.contains(&name), "{name}");
        }
        let mut command = Command::new("true");
        leave_repository(&mut command);
        assert!(command.get_envs().any(|(name, value)| name == "GIT_INDEX_FILE" && value.is_none()));
        assert!(!command.get_envs().any(|(name, _)| name.to_string_lossy().starts_with("GIT_CONFIG_")));
    }
}
