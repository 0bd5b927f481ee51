//! Selections of a diff, where all that is asked of it begins. What moved between the builds, if names are to follow it,
//! is found first: it takes both sides' stacks, which only [`explain`](mod@crate::explain) looks at together.

use crate::diff::{Diff, Matching, Measure, Moves, Query, Selection};
use crate::{Result, explain};

impl Diff {
    /// Selects what the query's filters, granularity and `no_inlines` say: works out the filters and interns the
    /// frames. [`Matching::Moved`] costs as much as an explanation besides, and looks at all samples of the sample type
    /// that is explained unless one is named, so that views of one pair agree on what moved.
    ///
    /// # Errors
    /// An invalid regular expression. The profiles were checked when they were loaded.
    pub fn select(&self, query: &Query) -> Result<Selection> {
        self.select_with(query, &self.moves(query.matching)?)
    }

    /// As [`Diff::select`], for a question of runs: numbers of a run or a build tell no functions apart, even where a side
    /// is one profile.
    ///
    /// # Errors
    /// As [`Diff::select`].
    pub(crate) fn select_of_runs(&self, query: &Query) -> Result<Selection> {
        self.select_matched(query, query.matching.resolved(true), &self.moves(query.matching)?)
    }

    /// Finds what moved, if names are to follow it.
    fn moves(&self, matching: Matching) -> Result<Moves> {
        match matching {
            Matching::Moved if self.is_two_sided() => explain::moves(self),
            _ => Ok(Moves::default()),
        }
    }

    /// What a query asks: [`Diff::select`] and one [`Selection::measure`].
    ///
    /// # Errors
    /// Theirs.
    pub fn measure(&self, query: &Query) -> Result<Measure> {
        // First, so that an unknown sample type costs nothing.
        self.find_sample_type(query.sample_type.as_deref())?;
        self.select(query)?.measure(query.sample_type.as_deref(), query.normalize)
    }
}
