//! Columns that are known without reading profiles. A store implements [`KnownColumns`]; a series knows no stores.

use std::fmt;

use super::FrameValue;
use pprofdiff::LoadOptions;
use pprofdiff::input::Source;
use pprofdiff::shared::FrameInterner;
use pprofdiff::{Error, Frames, Granularity, Query, Result};
use pprofdiff_profile::columns::Total;

/// The values of one profile, in the profile's own unit.
#[derive(Debug)]
pub struct BuildColumn {
    /// The costs of the frames.
    pub values: Vec<FrameValue>,
    /// The sums over all samples.
    pub total: Total,
    /// The sample type of the values.
    pub sample_type: String,
    /// The unit of the values.
    pub unit: String,
    /// The number of samples.
    pub samples: usize,
    /// See [`Build::duration_nanos`](super::Build::duration_nanos).
    pub duration_nanos: i64,
    /// See [`Build::time_nanos`](super::Build::time_nanos).
    pub time_nanos: i64,
    /// The warnings about the profile.
    pub warnings: Vec<String>,
    /// See [`Build::event`](super::Build::event), here before scaling.
    pub event: f64,
}

/// The columns of several builds, with their shared frames. Frames are numbered by their first occurrence, build by
/// build, so that the result does not depend on how builds are grouped.
#[derive(Debug)]
pub struct BuildGroup {
    /// The frames of all columns.
    pub frames: Frames,
    /// The column of each build, or the error of a build that failed.
    pub columns: Vec<Result<BuildColumn>>,
}

impl BuildGroup {
    /// Returns the columns, with frame numbers from `names`.
    pub(super) fn into_columns(self, names: &mut FrameInterner) -> Result<Vec<Result<BuildColumn>>> {
        let numbers = names.add(&self.frames, 0..self.frames.len() as u32)?;
        let mut columns = self.columns;
        for column in columns.iter_mut().flatten() {
            column.values.iter_mut().for_each(|v| v.frame = numbers[v.frame as usize]);
        }
        Ok(columns)
    }

    /// Creates a group of builds that all failed with the same error.
    pub(super) fn failed(e: &Error, builds: usize, granularity: Granularity) -> BuildGroup {
        let columns = (0..builds).map(|_| Err(Error::new(e.kind(), e.detail()))).collect();
        BuildGroup { frames: FrameInterner::new(granularity).frames(), columns }
    }

    /// Combines several groups.
    ///
    /// # Errors
    /// Fails if there are too many frames.
    pub fn concat(mut groups: Vec<BuildGroup>, granularity: Granularity) -> Result<BuildGroup> {
        if groups.len() == 1 {
            return Ok(groups.swap_remove(0));
        }
        let (mut names, mut columns) = (FrameInterner::new(granularity), Vec::new());
        for group in groups {
            columns.extend(group.into_columns(&mut names)?);
        }
        Ok(BuildGroup { frames: names.frames(), columns })
    }
}

/// Hands a series the columns of builds without reading their profiles.
pub trait KnownColumns: fmt::Debug + Sync {
    /// Returns true if a build is loaded together with the builds before it.
    fn continues(&self, group: &[(String, Source)], next: &Source) -> bool;

    /// Returns the columns of several builds that are loaded together, or `None` if their profiles must be read. `read`
    /// computes the columns of the builds that are not known yet.
    fn group(
        &self,
        builds: &[(String, Source)],
        query: &Query,
        load: &LoadOptions,
        read: &dyn Fn(&[(String, Source)]) -> BuildGroup,
    ) -> Option<BuildGroup>;

    /// Returns the column of one build, or `None` if its profile must be read.
    ///
    /// # Errors
    /// Fails if the known values cannot be read or are damaged.
    fn column(&self, source: &Source, query: &Query, load: &LoadOptions) -> Result<Option<(BuildColumn, Frames)>>;
}
