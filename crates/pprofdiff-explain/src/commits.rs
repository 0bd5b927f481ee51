//! The commits that reach a cause, as part of an explanation. `pprofdiff-commits` finds them.

use serde::Serialize;

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

impl RankedCommit {
    /// Creates the result for a commit, given its full and abbreviated hash and the first line of its message.
    #[doc(hidden)]
    pub fn new(
        [commit, short, subject]: [String; 3],
        file: String,
        lines: (u32, u32),
        reach: Reach,
        why: String,
        direct: bool,
    ) -> RankedCommit {
        RankedCommit { commit, short, subject, file, lines, reach, why, direct }
    }
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
    /// True if the function's definition was not found in the sources. A commit that changes the function may then be
    /// missing from `ranked`. Omitted from JSON if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlocated: bool,
}

impl RankedCommits {
    /// Creates the result for a cause.
    #[doc(hidden)]
    pub fn new(n_commits: usize, ranked: Vec<RankedCommit>) -> RankedCommits {
        RankedCommits { of: n_commits, ranked, unlocated: false }
    }

    /// Sets whether the function's definition was not found in the sources.
    #[doc(hidden)]
    #[must_use]
    pub fn with_unlocated(mut self, unlocated: bool) -> RankedCommits {
        self.unlocated = unlocated;
        self
    }

    /// Returns the commit that reaches the cause most directly; `None` if no commit reaches it directly.
    pub fn first(&self) -> Option<&RankedCommit> {
        self.ranked.first().filter(|commit| commit.direct)
    }
}
