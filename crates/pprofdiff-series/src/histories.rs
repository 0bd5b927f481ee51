//! Compares several histories of builds, such as one history per service: the lasting changes of each, ranked together.
//!
//! ```text
//! builds of a service -> Series -> lasting changes (the largest first) -> RankedHistory -> Histories, ranked
//! ```
//!
//! Each history is a series of its own, with its own noise. Histories are ranked by the size of their largest lasting
//! change, so all of them need one sample type: the one in which most of them were loaded.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Ranked, Series, SeriesOptions, Shift};
use pprofdiff::input::HistoryBuilds;
use pprofdiff::{Error, Query, Result, Sort};
use pprofdiff_profile::short_lists::sort_by;
use pprofdiff_profile::units;

/// One of several histories.
#[derive(Debug)]
#[non_exhaustive]
pub struct RankedHistory {
    /// The values of [`Histories::keys`].
    pub values: Vec<String>,
    /// The builds.
    pub series: Series,
    /// The lasting changes, the largest first.
    pub shifts: Ranked<Shift>,
}

impl RankedHistory {
    /// Returns the size of the largest lasting change in the family's base unit, such as seconds. 0 without a change.
    fn size(&self) -> f64 {
        let scale = units::find(&self.series.summary.unit).map_or(1.0, |unit| unit.factor() as f64);
        self.shifts.rows.first().map_or(0.0, |shift| shift.value.delta().unsigned_abs() as f64 * scale)
    }
}

/// A history that could not be loaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedHistory {
    /// The values of [`Histories::keys`].
    pub values: Vec<String>,
    /// The error message.
    pub error: String,
    /// The error.
    pub cause: Arc<Error>,
}

/// Several histories, ranked.
#[derive(Debug)]
#[non_exhaustive]
pub struct Histories {
    /// The names of the keys that distinguish the histories, such as `service`.
    pub keys: Vec<String>,
    /// The cost that is followed.
    pub sort: Sort,
    /// The histories, those with the largest lasting change first. Histories without a lasting change keep their order.
    pub all: Vec<RankedHistory>,
    /// The histories that could not be loaded.
    pub failed: Vec<FailedHistory>,
}

impl Histories {
    /// Loads the builds of each history, and ranks the histories. `options` returns the options of a history. `each` is
    /// called after each history.
    ///
    /// Without a sample type in the query, a history has the default type of its first build. If these types differ,
    /// the histories with another type than most are loaded again in the type of most histories.
    ///
    /// # Errors
    /// Fails if no history could be loaded. Errors of other histories are in [`Histories::failed`].
    pub fn load(
        keys: Vec<String>,
        groups: Vec<HistoryBuilds>,
        query: &Query,
        sort: Sort,
        options: impl Fn(&HistoryBuilds) -> Result<SeriesOptions>,
        mut each: impl FnMut(),
    ) -> Result<Histories> {
        let read = |group: &HistoryBuilds, query: &Query| Series::load(group.builds.clone(), query, &options(group)?);
        let mut loaded: Vec<(HistoryBuilds, Result<Series>)> = Vec::new();
        for group in groups {
            let series = read(&group, query);
            loaded.push((group, series));
            each();
        }
        let main_type = sample_type_of_most(loaded.iter().filter_map(|(_, series)| series.as_ref().ok()));
        let (mut all, mut failed) = (Vec::new(), Vec::new());
        for (group, series) in loaded {
            let is_other = |series: &Series| main_type.as_ref().is_some_and(|main| series.summary.sample_type != *main);
            let series = match (series, &main_type) {
                (Ok(series), Some(main)) if is_other(&series) => {
                    read(&group, &query.clone().with_sample_type(main.as_str()))
                }
                (series, _) => series,
            };
            match series {
                Ok(series) => {
                    let shifts = series.shifts(sort);
                    all.push(RankedHistory { values: group.values, series, shifts });
                }
                Err(e) => {
                    failed.push(FailedHistory { values: group.values, error: e.to_string(), cause: Arc::new(e) });
                }
            }
        }
        if all.is_empty() {
            let first = failed.into_iter().next().and_then(|first| Arc::into_inner(first.cause));
            return Err(first.unwrap_or_else(|| Error::query("there is no history to compare")));
        }
        // A stable sort, so that ties stay in the order of the keys.
        sort_by(&mut all, |a, b| b.size().partial_cmp(&a.size()).unwrap_or(Ordering::Equal));
        Ok(Histories { keys, sort, all, failed })
    }

    /// Returns the number of builds that failed in histories that were loaded, and the number of all builds in them.
    pub fn failed_builds(&self) -> (usize, usize) {
        let failed = self.all.iter().map(|history| history.series.errors().len()).sum();
        (failed, self.all.iter().map(|history| history.series.builds.all.len()).sum())
    }
}

/// Returns the sample type of most series. A tie goes to the earlier series.
fn sample_type_of_most<'s>(all: impl Iterator<Item = &'s Series> + Clone) -> Option<String> {
    let count = |name: &str| all.clone().filter(|series| series.summary.sample_type == name).count();
    let mut best: Option<(&str, usize)> = None;
    for series in all.clone() {
        let name = series.summary.sample_type.as_str();
        if best.is_none_or(|(_, most)| count(name) > most) {
            best = Some((name, count(name)));
        }
    }
    best.map(|(name, _)| name.to_owned())
}
