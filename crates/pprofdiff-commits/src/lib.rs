//! Ranks the commits that reach the causes of a difference by how directly they do so. The ranking compares the
//! functions on a cause's stacks, with their files from the profiles, with the functions that each commit changes.
//!
//! ```text
//! git log with whole files -> functions of both versions (source) -> changes of each commit (history)
//! stacks of a cause -> places (paths, rank) -> commits ordered by how directly they reach a place (rank)
//! ```
//!
//! The crate reads the output of `git` and starts no process. Moved, reformatted, commented or renamed code does not
//! count as changed. A commit that reaches a cause need not have made it: rank and reason follow from the text alone.

#![warn(missing_debug_implementations)]

mod history;
mod paths;
mod rank;
mod source;

pub use history::{History, LOG_ARGS};
use paths::RepositoryPaths;
use pprofdiff::{Diff, Granularity, Normalize, Query, Result};
use pprofdiff_explain::Explanation;

/// The source files of the new side, by their paths in the repository.
pub struct Tree<'a> {
    /// The paths of all files.
    pub files: Vec<String>,
    /// Returns the text of a file.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").finish_non_exhaustive()
    }
}

/// Sets the commits that reach each cause of an explanation. `query` must be the query of that explanation. A cause
/// without a function, or a mere renaming, gets no commits.
///
/// # Errors
/// Returns the errors of [`measure`](pprofdiff_explain::measure).
pub fn rank_commits(diff: &Diff, query: &Query, e: &mut Explanation, history: &History, tree: &Tree<'_>) -> Result<()> {
    let query = query.clone().with_granularity(Granularity::FileFunctions).with_normalize(Normalize::None);
    let query = query.with_sample_type(&e.summary.sample_type);
    let stacks = pprofdiff_explain::measure(diff, &query)?.stacks_as_found(false);
    let paths = RepositoryPaths::new(&tree.files, history);
    let ranking = rank::CommitRanking::new(&stacks, &paths, history, tree, e.scale.factor);
    for cause in &mut e.causes {
        cause.commits = ranking.of_cause(cause);
    }
    Ok(())
}
