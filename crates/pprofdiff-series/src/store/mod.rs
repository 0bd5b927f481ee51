//! The columns that a store knows of its builds: the costs of functions, and the cached columns of earlier series. The
//! only part of series that knows stores, for [`SeriesOptions::with_known`](super::SeriesOptions::with_known).

mod kept;
mod stored;

use crate::known::{BuildColumn, BuildGroup, KnownColumns};
use pprofdiff::LoadOptions;
use pprofdiff::input::Source;
use pprofdiff::{Frames, Query, Result};

/// The columns of builds in a store.
#[derive(Debug)]
pub struct StoreColumns;

impl KnownColumns for StoreColumns {
    fn continues(&self, group: &[(String, Source)], next: &Source) -> bool {
        kept::continues(group, next)
    }

    fn group(
        &self,
        builds: &[(String, Source)],
        query: &Query,
        load: &LoadOptions,
        read: &dyn Fn(&[(String, Source)]) -> BuildGroup,
    ) -> Option<BuildGroup> {
        kept::group(builds, query, load, read)
    }

    fn column(&self, source: &Source, query: &Query, load: &LoadOptions) -> Result<Option<(BuildColumn, Frames)>> {
        stored::column(source, query, load)
    }
}
