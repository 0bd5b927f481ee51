//! Selections of a diff, the start of every view. If names follow moved code, the moves between the builds are found
//! first: that needs the stacks of both sides together, so [`explain`](mod@crate::explain) finds them.

use crate::diff::{Diff, Matching, Measure, Moves, Query, Selection};
use crate::{Result, explain};

impl Diff {
    /// Selects the samples and frames of a query by its filters, granularity and `no_inlines`: evaluates the filters
    /// and interns the frames. [`Matching::Moved`] additionally costs as much as an explanation. It reads all samples
    /// of the sample type that `explain` uses by default, so that all views of a pair agree about moves.
    ///
    /// # Errors
    /// Returns an error for an invalid query, such as one with an invalid regular expression or an unknown unit. The
    /// profiles were checked when they were loaded.
    pub fn select(&self, query: &Query) -> Result<Selection> {
        self.select_with(query, &self.moves(query.matching)?)
    }

    /// Selects like [`Diff::select`], for views of several runs. [`Matching::Auto`] becomes `Stable`, so that numbers
    /// of a run or a build in names do not separate functions, even if a side is a single profile.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::select`].
    pub(crate) fn select_of_runs(&self, query: &Query) -> Result<Selection> {
        self.select_matched(query, query.matching.resolved(true), &self.moves(query.matching)?)
    }

    /// Finds the moved code, if names follow it.
    fn moves(&self, matching: Matching) -> Result<Moves> {
        match matching {
            Matching::Moved if self.is_two_sided() => explain::moves(self),
            _ => Ok(Moves::default()),
        }
    }

    /// Runs a query: [`Diff::select`] and one [`Selection::measure`].
    ///
    /// # Errors
    /// Returns the errors of both.
    pub fn measure(&self, query: &Query) -> Result<Measure> {
        // The sample type is checked first, so that an unknown type costs nothing.
        self.find_sample_type(query.sample_type.as_deref())?;
        self.select(query)?.measure(query.sample_type.as_deref(), query.normalize)
    }
}
