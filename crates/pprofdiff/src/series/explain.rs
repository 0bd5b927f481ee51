//! Why a build differs from those before it. A series keeps values and no profiles, so these are read again.

use std::sync::Arc;

use super::{Against, Series};
use crate::diff::{Diff, Filters, Query, Sort};
use crate::explain::{ExplainOptions, Explanation};
use crate::{Error, Result};
use pprofdiff_profile::{LoadOptions, Profile};

impl Series {
    /// The build that the largest step leads to: index in [`super::Builds::all`]. `None` if nothing ever changed.
    pub fn largest_step(&self, sort: Sort) -> Option<usize> {
        let largest = self.movers(sort).rows.into_iter().next()?;
        (largest.step.flat.delta() != 0 || largest.step.cum.delta() != 0).then_some(largest.step.to)
    }

    /// Why a build (index in [`super::Builds::all`]) differs: of a history from those before it, at most `runs` of them,
    /// which are taken for runs of one program, as are it and those after it; of builds against a base from the base.
    /// Several runs show how much builds differ anyway. The profiles are read again from their paths.
    ///
    /// # Errors
    /// The first build; no runs; a build without values; a profile that can't be read again, as of one that was no file;
    /// as [`Diff::explain`].
    pub fn explain(
        &self,
        build: usize,
        runs: usize,
        load: &LoadOptions,
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        let loaded: Vec<usize> = self.columns.iter().map(|(index, _)| *index).collect();
        let key = |index: usize| self.builds.all.get(index).map_or("", |b| b.key.as_str());
        let Some(at) = loaded.iter().position(|&index| index == build) else {
            return Err(Error::query(format!("the build {:?} has no values", key(build))));
        };
        if at == 0 || runs == 0 {
            let why = if runs == 0 { "no runs are compared" } else { "nothing comes before it" };
            return Err(Error::query(format!("the build {:?} can't be explained: {why}", key(build))));
        }
        let (base, new) = match self.builds.against {
            Against::Previous => {
                (&loaded[at.saturating_sub(runs)..at], &loaded[at..loaded.len().min(at.saturating_add(runs))])
            }
            Against::First => (&loaded[..1], &loaded[at..at + 1]),
        };
        let open = |builds: &[usize]| -> Result<Vec<Arc<Profile>>> {
            let open = |&index: &usize| Profile::open(&self.builds.all[index].path, load).map(Arc::new);
            builds.iter().map(open).collect()
        };
        let mut filters = Filters::default();
        for (name, value) in &self.summary.filters {
            filters = filters.with(name, value.as_str())?;
        }
        let query = Query::default()
            .with_sample_type(&self.summary.sample_type)
            .with_no_inlines(self.summary.no_inlines)
            .with_matching(self.summary.matching)
            .with_filters(filters);
        Diff::new(&open(base)?, &open(new)?)?.explain(&query, &[], options)
    }
}
