//! Selections of a diff, the start of every view.
//!
//! Names that follow moved code need the functions that were renamed or inlined between the sides. The engine does not
//! find them: `pprofdiff_explain::select` does, and passes them to [`Diff::select_with`].

use crate::diff::{Diff, Matching, Measure, Moves, Query, Selection};
use crate::{Error, Result};

impl Diff {
    /// Selects the samples and frames of a query by its filters, granularity and `no_inlines`: evaluates the filters
    /// and interns the frames.
    ///
    /// # Errors
    /// Returns an error for an invalid query, such as one with an invalid regular expression or an unknown unit. Also
    /// fails for [`Matching::Moved`] on two sides, which `pprofdiff_explain::select` supports. The profiles were
    /// checked when they were loaded.
    pub fn select(&self, query: &Query) -> Result<Selection> {
        if query.matching == Matching::Moved && self.is_two_sided() {
            return Err(Error::query(
                "matching as moved needs the moves between the sides; call pprofdiff_explain::select, which finds them",
            ));
        }
        self.select_with(query, &Moves::default())
    }

    /// Selects like [`Diff::select_with`], for views of several runs. [`Matching::Auto`] becomes `Stable`, so that
    /// numbers of a run or a build in names do not separate functions, even if a side is a single profile.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::select_with`].
    #[doc(hidden)]
    pub fn select_of_runs(&self, query: &Query, moves: &Moves) -> Result<Selection> {
        self.select_matched(query, query.matching.resolved(true), moves)
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
