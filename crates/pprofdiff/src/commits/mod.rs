//! Which commits reach the causes of a difference, and how directly: by the functions of a cause's stacks, with their files
//! from the profiles, and the functions that each commit changes.
//!
//! ```text
//! git log with whole files -> functions of both versions (source) -> what each commit changes (history)
//! stacks of a cause -> places (paths, rank) -> commits by how directly they reach one (rank)
//! ```
//!
//! This reads what `git` wrote and starts no process. What only moved, was formatted, commented or renamed does not count.
//! That a commit reaches a cause is no proof that it made it: rank and reason are what can be read off the text.

mod history;
mod paths;
mod rank;
mod source;

use serde::Serialize;

use crate::Result;
use crate::diff::{Diff, Granularity, Normalize, Query};
use crate::explain::Explanation;
pub use history::{History, LOG_ARGS};
use paths::Paths;

/// How a commit reaches a cause, the most direct first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It changes the function itself.
    OwnLines,
    /// It adds or drops a call that the cause's stacks have.
    Call,
    /// It requires another version of what the cause lies in.
    Dependency,
    /// It changes what the function calls, in stacks of the cause.
    Callee,
    /// It changes a constant or type that the function uses.
    Constant,
    /// It changes what calls the function.
    Caller,
    /// It changes the same file.
    File,
    /// It changes the same folder.
    Folder,
}

/// A commit that reaches a cause, with the place where.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedCommit {
    /// Its name in full.
    pub commit: String,
    /// As short as `git` has it.
    pub short: String,
    /// The first line of what it says.
    pub subject: String,
    /// The file.
    pub file: String,
    /// The lines that it changes there, the first and the last, as they are after it.
    pub lines: (u32, u32),
    /// How it reaches the cause.
    pub reach: Reach,
    /// That in words.
    pub why: String,
    /// False of what lies near and touches nothing that the cause goes through.
    pub direct: bool,
}

/// What the commits of a range have to do with a cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedCommits {
    /// Number of commits that were looked at.
    pub of: usize,
    /// Those that reach the cause, the most direct first, and then what is near.
    pub ranked: Vec<RankedCommit>,
}

impl RankedCommits {
    /// The commit that reaches the cause most directly.
    pub fn first(&self) -> Option<&RankedCommit> {
        self.ranked.first().filter(|commit| commit.direct)
    }
}

/// The files of the new side's sources, by their paths in the repository.
pub struct Tree<'a> {
    /// All of them.
    pub files: Vec<String>,
    /// The text of one.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

impl Diff {
    /// Says of each cause which commits reach it. `query` is the one that was explained.
    ///
    /// # Errors
    /// As [`Diff::explain`].
    pub fn rank_commits(&self, query: &Query, e: &mut Explanation, history: &History, tree: &Tree<'_>) -> Result<()> {
        let query = query.clone().with_granularity(Granularity::FileFunctions).with_normalize(Normalize::None);
        let query = query.with_sample_type(&e.summary.sample_type);
        let stacks = self.measure(&query)?.stacks_as_found(false);
        let paths = Paths::new(&tree.files, history);
        let ranking = rank::Ranking::new(&stacks, &paths, history, tree, e.scale.factor);
        for cause in &mut e.causes {
            cause.commits = ranking.of_cause(cause);
        }
        Ok(())
    }
}
