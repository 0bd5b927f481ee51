//! What `git` says of a range of commits: the command itself, as it is installed, in the folder where we are.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pprofdiff::commits::{History, LOG_ARGS, Tree};
use pprofdiff::explain::Explanation;
use pprofdiff::{Diff, Query};

use crate::args::GitArgs;
use crate::{Failure, Result};

/// The most that is read of what `git log` writes.
const MAX_LOG_BYTES: u64 = 512 << 20;
/// What is no program's source, and large: no part of what is read.
const LEFT_OUT: [&str; 6] = ["package-lock.json", "go.sum", "*.min.js", "*.svg", "yarn.lock", "pnpm-lock.yaml"];

/// The commits of a range, and where their sources are.
pub struct Commits {
    history: History,
    root: PathBuf,
    /// The newest one; none if that is the working tree.
    tip: Option<String>,
    files: Vec<String>,
}

/// The commits that the arguments ask for.
pub fn commits(args: &GitArgs) -> Result<Option<Commits>> {
    let Some(range) = &args.range else { return Ok(None) };
    if Path::new(range).is_file() {
        let message =
            format!("--git takes a range of commits, and {range} is a file; put --git last, or write --git A..B");
        return Err(Failure::Message(message));
    }
    Commits::of_range(Path::new("."), range).map(Some)
}

/// Runs git in a folder; what it writes.
///
/// # Errors
/// There is no git, or what it says, in one line.
pub fn git<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new("git");
    // Nothing is asked of whoever sits there, and locks of others are left alone.
    command.arg("-C").arg(dir).args(args).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = |e: std::io::Error| Failure::Message(format!("git can't be run: {e}"));
    let mut child = command.spawn().map_err(missing)?;
    let stderr = child.stderr.take();
    // Read beside the output, which may be longer than a pipe holds.
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |pipe| pipe.take(MAX_LOG_BYTES + 1).read_to_end(&mut bytes));
    if bytes.len() as u64 > MAX_LOG_BYTES {
        let _ = child.kill();
        let _ = child.wait();
        let limit = MAX_LOG_BYTES >> 20;
        return Err(Failure::Message(format!(
            "the files that these commits change have more than {limit} MB; name fewer"
        )));
    }
    let status = child.wait().map_err(missing)?;
    read.map_err(missing)?;
    if !status.success() {
        let said = said.join().unwrap_or_default();
        let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed and said nothing");
        return Err(Failure::Message(format!("git: {}", line.trim_start_matches("fatal: "))));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Commits {
    /// The commits of `A..B`; of `A` alone those of HEAD, and what is not committed; of an empty text those that another
    /// branch lacks.
    pub fn of_range(dir: &Path, range: &str) -> Result<Commits> {
        let root = PathBuf::from(git(dir, ["rev-parse", "--show-toplevel"])?.trim_end());
        let (base, tip) = match range.split_once("..") {
            Some((base, tip)) => {
                let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
                (or_head(base), Some(or_head(tip.trim_start_matches('.'))))
            }
            None if range.is_empty() => (upstream(&root)?, None),
            None => (range.to_owned(), None),
        };
        let end = tip.as_deref().unwrap_or("HEAD");
        for name in [base.as_str(), end] {
            let commit = format!("{name}^{{commit}}");
            git(&root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])
                .map_err(|_| Failure::Message(format!("git knows no commit {name:?}")))?;
        }
        let left_out: Vec<String> = LEFT_OUT.iter().map(|pattern| format!(":(exclude,glob)**/{pattern}")).collect();
        let paths = || ["--", "."].into_iter().chain(left_out.iter().map(String::as_str));
        let asked = format!("{base}..{end}");
        let log = git(&root, LOG_ARGS.into_iter().chain([asked.as_str()]).chain(paths()))?;
        let mut history = History::parse(&log);
        if tip.is_none() {
            // What is not committed is the newest of all.
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
            return Err(Failure::Message(format!("git: no commit in {asked}, and nothing that is not committed")));
        }
        let files = git(&root, ["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "--full-tree", end])?;
        Ok(Commits { history, root, tip, files: files.lines().map(str::to_owned).collect() })
    }

    /// Says of each cause which commits reach it.
    pub fn rank(&self, diff: &Diff, query: &Query, explanation: &mut Explanation) -> Result<()> {
        let read = |path: &str| match &self.tip {
            Some(tip) => git(&self.root, ["show".to_owned(), format!("{tip}:{path}")]).ok(),
            None => std::fs::read_to_string(self.root.join(path)).ok(),
        };
        let tree = Tree { files: self.files.clone(), read: &read };
        Ok(diff.rank_commits(query, explanation, &self.history, &tree)?)
    }
}

/// Where a branch began: what it has in common with its upstream, or with the main branch.
fn upstream(root: &Path) -> Result<String> {
    let head = git(root, ["rev-parse", "HEAD"])?;
    for name in ["@{upstream}", "origin/HEAD", "origin/main", "origin/master", "main", "master"] {
        let Ok(base) = git(root, ["merge-base", "HEAD", name]) else { continue };
        if base != head {
            return Ok(base.trim_end().to_owned());
        }
    }
    Err(Failure::Message(
        "--git: HEAD has no commit that its upstream, main or master lacks; name a range, A..B".to_owned(),
    ))
}
