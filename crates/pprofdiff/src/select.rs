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
        let moves = match query.matching {
            Matching::Moved if self.is_two_sided() => explain::moves(self)?,
            _ => Moves::default(),
        };
        self.select_with(query, &moves)
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
