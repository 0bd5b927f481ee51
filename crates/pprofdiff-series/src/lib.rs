//! Compares many builds, frame by frame: along a history, or each against one base. A series is a sparse table of
//! builds and frames.
//!
//! ```text
//! source -> Profile -> Measure -> Top -> column: frames and values, without the profile   (on the pool, by windows)
//!                                       \-> names, interned once for all builds         (in the order of the builds)
//! columns -> one unit, normalized -> Series -> values, steps, movers
//! ```
//!
//! A profile is dropped as soon as its column is complete. Memory therefore holds the columns (24 bytes per build and
//! frame) and the profiles of one window. A build that fails keeps its place with an error and has no column. Its
//! neighbours are then compared with each other, because a history with a gap is more useful than two separate halves.
//!
//! This crate computes values and differences. `shifts` separates lasting changes from noise, and `change_points`
//! combines the changes of all frames. [`fleet`] ranks many pairs, and `histories` ranks several histories. Reports are in `pprofdiff-report`, and stores hand over
//! their columns through [`known::KnownColumns`].
//!
//! Values are normalized to the first build, so that all builds use one scale.

#![warn(missing_debug_implementations)]

mod builder;
mod change_points;
pub mod fleet;
pub mod histories;
pub mod known;
mod shifts;
mod statistics;
#[cfg(feature = "store")]
mod store;

pub use builder::SeriesBuilder;
pub use change_points::ChangePoint;
pub use shifts::{FEWEST_BUILDS, Shift, ShiftKind};
#[cfg(feature = "store")]
pub use store::StoreColumns;

use std::sync::Arc;

use known::KnownColumns;
use serde::{Deserialize, Serialize};

use pprofdiff::LoadOptions;
use pprofdiff::input::Source;
use pprofdiff::{Error, Frames, Pair, Query, Result, Sort, Status, Summary};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

/// The baseline of each build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Against {
    /// The previous build, for a history.
    #[default]
    Previous,
    /// The first build, for comparing each build with one base.
    First,
}

/// The order of the builds. A history sorted by key cannot contain two names
/// ([`check_history`](pprofdiff::input::check_history)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BuildOrder {
    /// The order given by the caller.
    #[default]
    Given,
    /// By key, where numbers in keys are compared as numbers ([`Finder::builds`](pprofdiff::input::Finder::builds)).
    Key,
    /// By the history of their commits, oldest first. The keys are commits, and the caller orders the builds.
    Commits,
}

/// The options of a series.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SeriesOptions {
    /// The options for loading profiles.
    pub load: LoadOptions,
    /// The baseline of each build.
    pub against: Against,
    /// The order of the builds.
    pub order: BuildOrder,
    /// The subjects of the builds' commits, by the keys of the builds.
    pub subjects: Arc<HashMap<String, String>>,
    /// The columns that are known without reading profiles, such as those of builds in a store.
    pub known: Option<&'static dyn KnownColumns>,
}

impl SeriesOptions {
    /// Sets the options for loading profiles.
    #[must_use]
    pub fn with_load(mut self, load: LoadOptions) -> Self {
        self.load = load;
        self
    }

    /// Sets the baseline of each build.
    #[must_use]
    pub fn with_against(mut self, against: Against) -> Self {
        self.against = against;
        self
    }

    /// Sets the order of the builds.
    #[must_use]
    pub fn with_order(mut self, order: BuildOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the subjects of the builds' commits, by the keys of the builds.
    #[must_use]
    pub fn with_subjects(mut self, subjects: impl Into<Arc<HashMap<String, String>>>) -> Self {
        self.subjects = subjects.into();
        self
    }

    /// Sets the columns that are known without reading profiles.
    #[must_use]
    pub fn with_known(mut self, known: &'static dyn KnownColumns) -> Self {
        self.known = Some(known);
        self
    }
}

/// A build, as headers show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Build {
    /// The unique key of the build.
    pub key: String,
    /// The name of its profile.
    pub path: String,
    /// The reason in one line if the build failed. All other values are then 0. `None` if the build has values.
    pub error: Option<String>,
    /// The number of samples as written.
    pub samples: usize,
    /// The duration that the profile records.
    pub duration_nanos: i64,
    /// The start of the profile in nanoseconds since 1970, as recorded; 0 if it is not recorded.
    pub time_nanos: i64,
    /// The sum of the magnitudes of all values, normalized and before filters. Percentages refer to it.
    pub total: i64,
    /// The factor by which normalization multiplied its values; 1 without normalization.
    pub factor: f64,
    /// The value of one event, such as a sample or a sampled allocation, in the unit and scale of the values. 0 if it
    /// is unknown.
    #[serde(default)]
    pub event: f64,
    /// The subject of its commit, if the builds are ordered by commits.
    #[serde(default)]
    pub subject: Option<String>,
}

/// All builds of a series in their order, including failed builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Builds {
    /// The builds.
    pub all: Vec<Build>,
    /// The baseline of each build.
    pub against: Against,
    /// The order of the builds.
    pub order: BuildOrder,
}

impl Builds {
    /// Iterates over the builds that have values.
    pub fn loaded(&self) -> impl DoubleEndedIterator<Item = &Build> + Clone {
        self.all.iter().filter(|b| b.error.is_none())
    }

    /// Returns the last build with values before `build`, or `build` itself without such a build.
    pub fn loaded_before(&self, build: usize) -> usize {
        let before = self.all.iter().take(build).rposition(|b| b.error.is_none());
        before.unwrap_or(build)
    }

    /// Iterates over the builds that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Build> + Clone {
        self.all.iter().filter(|b| b.error.is_some())
    }
}

/// The values of one frame in one build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FrameValue {
    /// The index in [`Series::frames`].
    pub frame: u32,
    /// The cost of the frame itself.
    pub flat: i64,
    /// The cost of the frame with all its callees.
    pub cum: i64,
}

impl FrameValue {
    /// Creates the value of a frame.
    pub fn new(frame: u32, flat: i64, cum: i64) -> FrameValue {
        FrameValue { frame, flat, cum }
    }

    /// Creates the value of a frame that the build does not contain.
    pub fn absent(frame: u32) -> FrameValue {
        FrameValue { frame, flat: 0, cum: 0 }
    }
}

/// The change of a frame from one build to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The index in [`Series::frames`].
    pub frame: u32,
    /// The earlier build or the base, as an index in [`Builds::all`].
    pub from: usize,
    /// The later build.
    pub to: usize,
    /// The flat of both builds.
    pub flat: Pair,
    /// The cum of both builds.
    pub cum: Pair,
    /// Added, removed or changed.
    pub status: Status,
}

impl Step {
    /// Returns the cost in the given sort order.
    pub fn value(&self, sort: Sort) -> Pair {
        match sort {
            Sort::Flat => self.flat,
            Sort::Cum => self.cum,
        }
    }

    fn size(&self, sort: Sort) -> [u64; 2] {
        sort.size(self.flat, self.cum)
    }
}

/// A frame over all builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mover {
    /// The index in [`Series::frames`].
    pub frame: u32,
    /// The first build with the frame, as an index in [`Builds::all`].
    pub first: usize,
    /// The last build with the frame.
    pub last: usize,
    /// The number of builds with the frame.
    pub builds: usize,
    /// The frame's largest step, and the earliest of equally large steps. If the frame never changed, the step from its
    /// first build to its last build.
    pub step: Step,
}

/// Steps or movers, sorted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ranked<T> {
    /// The header of the series.
    pub summary: Arc<Summary>,
    /// The builds of the rows.
    pub builds: Arc<Builds>,
    /// The frames of the rows.
    pub frames: Arc<Frames>,
    /// The sort order of the rows.
    pub sort: Sort,
    /// The rows.
    pub rows: Vec<T>,
}

/// The table of builds and frames, see the module documentation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "StoredSeries")]
#[non_exhaustive]
pub struct Series {
    /// The header of the series. Its totals belong to the first and the last build that have values.
    pub summary: Arc<Summary>,
    /// The builds.
    pub builds: Arc<Builds>,
    /// The frames of the values.
    pub frames: Arc<Frames>,
    /// The builds with values, in order: the index in [`Builds::all`], and the values in the order of a profile's table
    /// of frames.
    columns: Vec<(usize, Vec<FrameValue>)>,
    #[serde(skip)]
    errors: Vec<(usize, Error)>,
    /// For each build, the source that can load it again if it is not a file. Not serialized.
    #[serde(skip)]
    fetches: Vec<Option<Source>>,
    /// True if the caller chose no sample type.
    has_default_type: bool,
}

/// A deserialized series before validation. Errors of failed builds only keep their message.
#[derive(Deserialize)]
struct StoredSeries {
    summary: Arc<Summary>,
    builds: Arc<Builds>,
    frames: Arc<Frames>,
    columns: Vec<(usize, Vec<FrameValue>)>,
    has_default_type: bool,
}

impl TryFrom<StoredSeries> for Series {
    type Error = &'static str;

    fn try_from(stored: StoredSeries) -> Result<Series, &'static str> {
        let StoredSeries { summary, builds, frames, columns, has_default_type } = stored;
        let loaded = builds.all.iter().enumerate().filter(|(_, b)| b.error.is_none()).map(|(i, _)| i);
        if columns.is_empty() || !columns.iter().map(|(build, _)| *build).eq(loaded) {
            return Err("the columns do not match the builds");
        }
        let mut seen = vec![usize::MAX; frames.len()];
        for (column, (_, values)) in columns.iter().enumerate() {
            for v in values {
                match seen.get_mut(v.frame as usize) {
                    Some(last) if *last != column => *last = column,
                    _ => return Err("a column has a duplicate frame, or a frame that does not exist"),
                }
                if [v.flat, v.cum].iter().any(|v| v.unsigned_abs() > MAX_MAGNITUDE) {
                    return Err("a value exceeds half the range of an int64");
                }
            }
        }
        Ok(Series { summary, builds, frames, columns, errors: Vec::new(), fetches: Vec::new(), has_default_type })
    }
}

/// The maximum sum of the magnitudes of a build's values. With this limit, the difference of two values fits an int64.
const MAX_MAGNITUDE: u64 = (i64::MAX / 2) as u64;

/// The value of one frame in one column.
#[derive(Clone, Copy)]
struct FramePoint {
    column: usize,
    flat: i64,
    cum: i64,
}

impl Series {
    /// Loads builds with unique keys and combines them. Inside a rayon pool, this uses all of its threads. A build that
    /// fails keeps its place in [`Series::builds`] with its error, and does not affect other builds.
    ///
    /// ```no_run
    /// use pprofdiff::input::Finder;
    /// use pprofdiff_series::{Series, SeriesOptions};
    /// use pprofdiff::{Query, Sort};
    ///
    /// # fn main() -> pprofdiff::Result<()> {
    /// let series = Series::load(Finder::default().builds("builds/*/cpu.pb.gz")?, &Query::default(), &SeriesOptions::default())?;
    /// for mover in series.movers(Sort::Flat).rows.iter().take(10) {
    ///     let (from, to) = (&series.builds.all[mover.step.from], &series.builds.all[mover.step.to]);
    ///     println!("{:+} from {} to {}: {}", mover.step.flat.delta(), from.key, to.key, series.frames.name(mover.frame));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`SeriesBuilder::new`], [`SeriesBuilder::add`] and [`SeriesBuilder::finish`].
    pub fn load(
        builds: impl IntoIterator<Item = (String, Source)>,
        query: &Query,
        options: &SeriesOptions,
    ) -> Result<Series> {
        let mut builder = SeriesBuilder::new(query, options)?;
        builder.add_all(builds)?;
        builder.finish()
    }

    /// Returns the builds that failed, as an index in [`Builds::all`] and the error. Empty for a deserialized series,
    /// which only has the messages in [`Build::error`].
    pub fn errors(&self) -> &[(usize, Error)] {
        &self.errors
    }

    /// Iterates over the table: the index in [`Builds::all`] of each build with values, and its values by frame in the
    /// order of a profile's table of frames.
    pub fn values(&self) -> impl Iterator<Item = (usize, &[FrameValue])> + Clone {
        self.columns.iter().map(|(build, values)| (*build, values.as_slice()))
    }

    /// Returns the flat or cum of each given frame in all builds with values, 0 where the frame does not occur.
    pub fn history(&self, frames: &[u32], sort: Sort) -> Vec<Vec<i64>> {
        let mut place = vec![usize::MAX; self.frames.len()];
        frames.iter().enumerate().for_each(|(i, &f)| place[f as usize] = i);
        let mut histories = vec![vec![0; self.columns.len()]; frames.len()];
        for (c, (_, values)) in self.columns.iter().enumerate() {
            for v in values {
                if let Some(history) = histories.get_mut(place[v.frame as usize]) {
                    history[c] = if sort == Sort::Flat { v.flat } else { v.cum };
                }
            }
        }
        histories
    }

    /// Calls `f` with each frame that occurs in a build, and its points in the order of the builds.
    fn for_each_frame(&self, mut f: impl FnMut(u32, &[FramePoint])) {
        // Transposes the table: the positions of a frame's values are `places[ends[frame - 1]..ends[frame]]`.
        let mut ends = vec![0_usize; self.frames.len() + 1];
        self.columns.iter().flat_map(|(_, values)| values).for_each(|v| ends[v.frame as usize + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut places = vec![(0_u32, 0_u32); ends[self.frames.len()]];
        for (column, (_, values)) in self.columns.iter().enumerate() {
            for (i, v) in values.iter().enumerate() {
                let end = &mut ends[v.frame as usize];
                places[*end] = (column as u32, i as u32);
                *end += 1;
            }
        }
        let (mut start, mut points) = (0, Vec::new());
        for (frame, &end) in checkpointed(ends[..self.frames.len()].iter().enumerate()) {
            points.clear();
            points.extend(places[start..end].iter().map(|&(column, i)| {
                let v = self.columns[column as usize].1[i as usize];
                FramePoint { column: column as usize, flat: v.flat, cum: v.cum }
            }));
            if !points.is_empty() {
                f(frame as u32, &points);
            }
            start = end;
        }
    }

    fn step(&self, frame: u32, [from, to]: [usize; 2], before: Option<FramePoint>, after: Option<FramePoint>) -> Step {
        let value = |f: fn(FramePoint) -> i64| Pair { base: before.map_or(0, f), new: after.map_or(0, f) };
        let (flat, cum) = (value(|p| p.flat), value(|p| p.cum));
        let same = flat.delta() == 0 && cum.delta() == 0;
        let status = Status::new(before.is_some(), after.is_some(), same);
        Step { frame, from: self.columns[from].0, to: self.columns[to].0, flat, cum, status }
    }

    /// Calls `f` with each step that changes the frame's values, in the order of the builds.
    fn for_each_step(&self, frame: u32, points: &[FramePoint], mut f: impl FnMut(Step)) {
        let mut report = |columns, before: Option<FramePoint>, after: Option<FramePoint>| {
            let step = self.step(frame, columns, before, after);
            if step.flat.delta() != 0 || step.cum.delta() != 0 {
                f(step);
            }
        };
        let n = self.columns.len();
        match self.builds.against {
            Against::Previous => {
                for (i, &p) in points.iter().enumerate() {
                    let before = i.checked_sub(1).map(|i| points[i]).filter(|b| b.column + 1 == p.column);
                    if p.column > 0 {
                        report([p.column - 1, p.column], before, Some(p));
                    }
                    let next = p.column + 1;
                    if next < n && points.get(i + 1).is_none_or(|after| after.column != next) {
                        report([p.column, next], Some(p), None);
                    }
                }
            }
            Against::First => match points.split_first().filter(|(first, _)| first.column == 0) {
                None => points.iter().for_each(|&p| report([0, p.column], None, Some(p))),
                Some((&base, mut rest)) => {
                    for column in 1..n {
                        let after = rest.first().copied().filter(|p| p.column == column);
                        rest = &rest[usize::from(after.is_some())..];
                        report([0, column], Some(base), after);
                    }
                }
            },
        }
    }

    /// Returns all steps that change a value, sorted by the magnitude of the change ([`Sort`]), then by build, then by
    /// the frame's name.
    pub fn steps(&self, sort: Sort) -> Ranked<Step> {
        let mut rows = Vec::new();
        self.for_each_frame(|frame, points| self.for_each_step(frame, points, |step| rows.push(step)));
        self.ranked(sort, rows, |step| (step, step.to))
    }

    /// Returns all frames, sorted by the magnitude of their largest step ([`Sort`]), then by name.
    pub fn movers(&self, sort: Sort) -> Ranked<Mover> {
        let mut rows = Vec::new();
        self.for_each_frame(|frame, points| {
            let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
            let mut largest: Option<Step> = None;
            self.for_each_step(frame, points, |step| {
                if largest.is_none_or(|l| step.size(sort) > l.size(sort)) {
                    largest = Some(step);
                }
            });
            let still = || self.step(frame, [first.column, last.column], Some(*first), Some(*last));
            rows.push(Mover {
                frame,
                first: self.columns[first.column].0,
                last: self.columns[last.column].0,
                builds: points.len(),
                step: largest.unwrap_or_else(still),
            });
        });
        self.ranked(sort, rows, |mover| (&mover.step, 0))
    }

    fn ranked<T>(&self, sort: Sort, mut rows: Vec<T>, step: impl Fn(&T) -> (&Step, usize)) -> Ranked<T> {
        // Ranks the frames by name, so that equal rows are compared by numbers.
        let mut by_name: Vec<u32> = (0..self.frames.len() as u32).collect();
        by_name.sort_unstable_by(|&a, &b| self.frames.order(a).cmp(&self.frames.order(b)));
        let mut place = vec![0_u32; by_name.len()];
        (0..).zip(&by_name).for_each(|(i, &frame)| place[frame as usize] = i);
        rows.sort_unstable_by_key(|row| {
            let (step, then) = step(row);
            (std::cmp::Reverse(step.size(sort)), then, place[step.frame as usize])
        });
        let (summary, builds) = (self.summary.clone(), self.builds.clone());
        Ranked { summary, builds, frames: self.frames.clone(), sort, rows }
    }
}
