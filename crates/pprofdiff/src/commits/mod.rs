//! Ranks the commits that reach the causes of a difference by how directly they do so. The ranking compares the
//! functions on a cause's stacks, with their files from the profiles, with the functions that each commit changes.
//!
//! ```text
//! git log with whole files -> functions of both versions (source) -> changes of each commit (history)
//! stacks of a cause -> places (paths, rank) -> commits ordered by how directly they reach a place (rank)
//! ```
//!
//! The module reads the output of `git` and starts no process. Moved, reformatted, commented or renamed code does not
//! count as changed. A commit that reaches a cause need not have made it: rank and reason follow from the text alone.

mod history;
mod paths;
mod rank;
mod source;

use serde::Serialize;

use crate::Result;
use crate::diff::{Diff, Granularity, Normalize, Query};
use crate::explain::{self, Explanation};
pub use history::{History, LOG_ARGS};
use paths::RepositoryPaths;

/// The way in which a commit reaches a cause, most direct first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The commit changes the function itself.
    OwnLines,
    /// The commit adds or removes a call on the cause's stacks.
    Call,
    /// The commit requires another version of the dependency that contains the cause.
    Dependency,
    /// The commit changes a callee of the function, on stacks of the cause.
    Callee,
    /// The commit changes a constant or type that the function uses.
    Constant,
    /// The commit changes a caller of the function.
    Caller,
    /// The commit changes the same file.
    File,
    /// The commit changes the same folder.
    Folder,
}

/// A commit that reaches a cause, with the changed location.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedCommit {
    /// The full commit hash.
    pub commit: String,
    /// The commit hash as abbreviated by `git`.
    pub short: String,
    /// The first line of the commit message.
    pub subject: String,
    /// The changed file.
    pub file: String,
    /// The first and the last changed line, numbered as after the commit.
    pub lines: (u32, u32),
    /// The way in which the commit reaches the cause.
    pub reach: Reach,
    /// The reach as a short sentence.
    pub why: String,
    /// True if the commit reaches the cause directly. False if it only changes the same file or folder, or if its link
    /// to the cause is weak.
    pub direct: bool,
}

/// The commits of a range that reach a cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedCommits {
    /// The number of commits in the range, including commits that do not reach the cause.
    pub of: usize,
    /// The commits that reach the cause, at most five, most direct first. Commits that only change code nearby come
    /// last.
    pub ranked: Vec<RankedCommit>,
}

impl RankedCommits {
    /// Returns the commit that reaches the cause most directly; `None` if no commit reaches it directly.
    pub fn first(&self) -> Option<&RankedCommit> {
        self.ranked.first().filter(|commit| commit.direct)
    }
}

/// The source files of the new side, by their paths in the repository.
pub struct Tree<'a> {
    /// The paths of all files.
    pub files: Vec<String>,
    /// Returns the text of a file.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

/// Sets the commits that reach each cause of an explanation. `query` must be the query of that explanation. A cause
/// without a function, or a mere renaming, gets no commits.
///
/// # Errors
/// Returns the errors of [`measure`](explain::measure).
pub fn rank_commits(diff: &Diff, query: &Query, e: &mut Explanation, history: &History, tree: &Tree<'_>) -> Result<()> {
    let query = query.clone().with_granularity(Granularity::FileFunctions).with_normalize(Normalize::None);
    let query = query.with_sample_type(&e.summary.sample_type);
    let stacks = explain::measure(diff, &query)?.stacks_as_found(false);
    let paths = RepositoryPaths::new(&tree.files, history);
    let ranking = rank::CommitRanking::new(&stacks, &paths, history, tree, e.scale.factor);
    for cause in &mut e.causes {
        cause.commits = ranking.of_cause(cause);
    }
    Ok(())
}
