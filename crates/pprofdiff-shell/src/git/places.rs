//! The places of commits in the history of a repository, to order builds by their commits.

use std::path::Path;

use super::{commit_id, git};
use crate::{Failure, Result};

/// A commit in the history of a repository.
#[derive(Debug, Clone)]
pub struct CommitPlace {
    /// The commit's id.
    pub id: String,
    /// The first line of the commit's message.
    pub subject: String,
    /// The number of commits before it, in an order in which all ancestors of a commit are before it.
    pub position: usize,
}

/// The minimum number of digits of an abbreviated commit, as git abbreviates it.
const MIN_COMMIT_DIGITS: usize = 7;
/// The maximum number of commits outside of all branches and tags that are looked up, each with its own git process.
const MAX_UNREACHABLE: usize = 100;
/// The maximum number of builds that an error names.
const MAX_NAMED: usize = 20;

/// Finds the commits of builds in the repository of a folder, in the order of `keys`. A key is a commit, which may be
/// abbreviated to seven digits and followed by an extension.
///
/// # Errors
/// Fails if a key is no commit, or if the repository lacks a commit. The error lists these keys.
pub fn commit_places(dir: &Path, keys: &[&str]) -> Result<Vec<CommitPlace>> {
    let mut others: Vec<&str> = keys.iter().copied().filter(|key| !is_commit(key)).collect();
    others.dedup();
    if !others.is_empty() {
        return Err(Failure::Message(format!(
            "--git orders builds by their commits, but these keys are not commits (7 to 40 hexadecimal digits): {}; leave \
             out --git, or name the part with the commit by --group build={{1}}",
            list_names(&others)
        )));
    }
    let mut log = CommitLog::read(dir, &[])?;
    let missing: Vec<&str> = keys.iter().copied().filter(|key| log.find(&commit(key)).is_none()).collect();
    if !missing.is_empty() && missing.len() <= MAX_UNREACHABLE {
        let ids: Vec<String> = missing.iter().filter_map(|key| commit_id(dir, &commit(key)).ok()).collect();
        if !ids.is_empty() {
            log = CommitLog::read(dir, &ids)?;
        }
    }
    let missing: Vec<&str> = keys.iter().copied().filter(|key| log.find(&commit(key)).is_none()).collect();
    if !missing.is_empty() {
        return Err(Failure::Message(format!(
            "git: the repository of {} lacks the commits of these builds: {}; fetch them, use more digits if an \
             abbreviation is ambiguous, or leave these builds out",
            dir.display(),
            list_names(&missing)
        )));
    }
    Ok(keys.iter().filter_map(|key| log.find(&commit(key))).collect())
}

/// Returns the part of a key that may be a commit: the key without extensions.
fn commit(key: &str) -> String {
    key.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

fn is_commit(key: &str) -> bool {
    let text = commit(key);
    (MIN_COMMIT_DIGITS..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns true if all keys look like commits, and there is a key. A number such as a date needs a letter in one of the
/// keys to look like a commit.
pub fn are_commits<'k>(keys: impl Iterator<Item = &'k str> + Clone) -> bool {
    let has_letter = |key: &str| commit(key).bytes().any(|byte| byte.is_ascii_alphabetic());
    keys.clone().any(has_letter) && keys.clone().all(is_commit)
}

/// Lists names, at most [`MAX_NAMED`] of them.
fn list_names(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// All commits of a repository, sorted by id.
struct CommitLog(Vec<CommitPlace>);

impl CommitLog {
    /// Reads the commits of all branches and tags, of HEAD, and of `ids`.
    fn read(dir: &Path, ids: &[String]) -> Result<CommitLog> {
        let options = ["-c", "log.showSignature=false", "log", "--topo-order", "--format=%H %s", "--all"];
        // HEAD may be on no branch.
        let head = commit_id(dir, "HEAD").ok();
        let log = git(dir, options.into_iter().chain(head.iter().chain(ids).map(String::as_str)))?;
        let count = log.lines().count();
        let place = |(index, line): (usize, &str)| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            CommitPlace { id: id.to_owned(), subject: subject.to_owned(), position: count - index }
        };
        let mut commits: Vec<CommitPlace> = log.lines().enumerate().map(place).collect();
        commits.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(CommitLog(commits))
    }

    /// Returns the only commit whose id starts with `prefix`.
    fn find(&self, prefix: &str) -> Option<CommitPlace> {
        let start = self.0.partition_point(|commit| *commit.id < *prefix);
        let mut same = self.0[start..].iter().take_while(|commit| commit.id.starts_with(prefix));
        same.next().filter(|_| same.next().is_none()).cloned()
    }
}

/// Returns the number of commits that `tip` has in addition to `base`, or `None` if `base` is not an ancestor of `tip`.
///
/// # Errors
/// Fails if git fails.
pub fn commits_between(dir: &Path, base: &str, tip: &str) -> Result<Option<u64>> {
    if git(dir, ["merge-base", "--is-ancestor", base, tip]).is_err() {
        return Ok(None);
    }
    let count = git(dir, ["rev-list", "--count", "--end-of-options", &format!("{base}..{tip}")])?;
    Ok(count.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{CommitLog, CommitPlace, are_commits};

    #[test]
    fn keys_that_look_like_commits_may_have_extensions() {
        let are = |keys: &[&str]| are_commits(keys.iter().copied());
        assert!(are(&["1c9a8f7", "20261128"]) && are(&["1c9a8f7d2.pb.gz", "1C9A8F7D3.pb.gz"]));
        assert!(!are(&[]) && !are(&["20261127", "20261128"]) && !are(&["1c9a8f7", "main"]) && !are(&["1c9a8f"]));
    }

    #[test]
    fn an_abbreviated_commit_is_found_unless_it_is_ambiguous() {
        let place = |id: &str| CommitPlace { id: id.to_owned(), subject: String::new(), position: 0 };
        let log = CommitLog(["aaa1", "aab1", "aab2", "b001"].map(place).to_vec());
        let find = |prefix: &str| log.find(prefix).map(|commit| commit.id);
        assert_eq!(find("aaa").as_deref(), Some("aaa1"));
        assert_eq!(find("aab2").as_deref(), Some("aab2"));
        assert_eq!(find("b").as_deref(), Some("b001"));
        assert_eq!([find("aab"), find("aac"), find("c"), find("aaa11")], [const { None }; 4]);
    }
}
