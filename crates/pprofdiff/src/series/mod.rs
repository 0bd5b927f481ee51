//! Many builds, frame by frame: along a history, or each against one base. Build x frame as a sparse table.
//!
//! ```text
//! source -> Profile -> Measure -> Top -> column: frames and values, nothing of the profile   (on the pool, by windows)
//!                                       \-> names, interned once for all builds            (in the order of the builds)
//! columns -> one unit, normalized -> Series -> values, steps, movers
//! ```
//!
//! A profile is gone as soon as its column is made, so that memory is that of the columns (24 bytes a build and frame
//! that it has) and of as many profiles as a window has at most. A build that fails is an error in its place and has no
//! column; its neighbours are then compared with each other.
//!
//! What is here are values and differences; `shifts` tells lasting changes from noise, `change_points` brings those of all
//! frames together.
//!
//! Values are normalized to the first build, so that they stand on one scale. A build that fails is left out: a history
//! with a hole says more than two halves.

mod builder;
mod change_points;
#[cfg(feature = "store")]
mod kept;
mod shifts;
#[cfg(feature = "store")]
mod stored;

pub use builder::SeriesBuilder;
pub use change_points::ChangePoint;
pub use shifts::{FEWEST_BUILDS, Shift, ShiftKind};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::{Frames, Pair, Query, Sort, Status, Summary};
use crate::{Error, Result};
use pprofdiff_profile::LoadOptions;
use pprofdiff_profile::input::Source;
use pprofdiff_profile::work::paced;

/// What each build is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Against {
    /// The one before it: a history.
    #[default]
    Previous,
    /// The first: each build against one base.
    First,
}

/// What the builds are ordered by. A history by keys can't have two names ([`check_history`](pprofdiff_profile::input::check_history)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Order {
    /// The caller.
    #[default]
    Given,
    /// Their keys, in which numbers count as numbers ([`Finder::builds`](crate::input::Finder::builds)).
    Key,
}

/// How a series is made.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SeriesOptions {
    /// How profiles are loaded.
    pub load: LoadOptions,
    /// What each build is compared with.
    pub against: Against,
    /// What they are ordered by.
    pub order: Order,
}

impl SeriesOptions {
    /// With these options for loading profiles.
    #[must_use]
    pub fn with_load(mut self, load: LoadOptions) -> Self {
        self.load = load;
        self
    }

    /// With what each build is compared with.
    #[must_use]
    pub fn with_against(mut self, against: Against) -> Self {
        self.against = against;
        self
    }

    /// With what the builds are ordered by.
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
}

/// One build, for headers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Build {
    /// What tells it from the others.
    pub key: String,
    /// Its profile's name.
    pub path: String,
    /// Why it has no values, in one line; `None` if it has. All else is 0 then.
    pub error: Option<String>,
    /// Number of samples as written.
    pub samples: usize,
    /// What the profile says that it took.
    pub duration_nanos: i64,
    /// When it was taken; 0 if it does not say.
    pub time_nanos: i64,
    /// Sum of the magnitudes of all values, before filters and normalized; percentages are of it.
    pub total: i64,
    /// What its values were multiplied by.
    pub factor: f64,
    /// What one event is worth, such as a sample or a sampled allocation, in its values; 0 if that is not known.
    #[serde(default)]
    pub event: f64,
}

/// All builds of a series, loaded and failed, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Builds {
    /// The builds.
    pub all: Vec<Build>,
    /// What each is compared with.
    pub against: Against,
    /// What they are ordered by.
    pub order: Order,
}

impl Builds {
    /// Those that have values.
    pub fn loaded(&self) -> impl DoubleEndedIterator<Item = &Build> + Clone {
        self.all.iter().filter(|b| b.error.is_none())
    }

    /// The last of those that have values before a build; the build itself if there is none.
    pub fn loaded_before(&self, build: usize) -> usize {
        let before = self.all.iter().take(build).rposition(|b| b.error.is_none());
        before.unwrap_or(build)
    }

    /// Those that have none.
    pub fn failed(&self) -> impl Iterator<Item = &Build> + Clone {
        self.all.iter().filter(|b| b.error.is_some())
    }
}

/// One build's values of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FrameValue {
    /// Index in [`Series::frames`].
    pub frame: u32,
    /// What the frame cost itself.
    pub flat: i64,
    /// What it cost with all that it called.
    pub cum: i64,
}

impl FrameValue {
    /// Of a frame that the build does not have.
    pub fn absent(frame: u32) -> FrameValue {
        FrameValue { frame, flat: 0, cum: 0 }
    }
}

/// How a frame changed from one build to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Index in [`Series::frames`].
    pub frame: u32,
    /// The earlier build, or the base: index in [`Builds::all`].
    pub from: usize,
    /// The later build.
    pub to: usize,
    /// flat of both.
    pub flat: Pair,
    /// cum of both.
    pub cum: Pair,
    /// Added, removed or changed.
    pub status: Status,
}

impl Step {
    /// The column that rows are sorted by.
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

/// One frame over all builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mover {
    /// Index in [`Series::frames`].
    pub frame: u32,
    /// The first build that has it: index in [`Builds::all`].
    pub first: usize,
    /// The last build that has it.
    pub last: usize,
    /// Number of builds that have it.
    pub builds: usize,
    /// Its largest step; the earliest of those that are alike. If it never changed, one from its first build to its
    /// last.
    pub step: Step,
}

/// Steps or movers, in their order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ranked<T> {
    /// What the series is of.
    pub summary: Arc<Summary>,
    /// The builds that rows refer to.
    pub builds: Arc<Builds>,
    /// The frames that rows refer to.
    pub frames: Arc<Frames>,
    /// What the rows are ordered by.
    pub sort: Sort,
    /// The rows.
    pub rows: Vec<T>,
}

/// Build x frame; see the module.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
#[non_exhaustive]
pub struct Series {
    /// What the series is of. Its totals are those of the first and of the last build that have values.
    pub summary: Arc<Summary>,
    /// The builds.
    pub builds: Arc<Builds>,
    /// The frames that values refer to.
    pub frames: Arc<Frames>,
    /// Of the builds that have values, in order: index in [`Builds::all`], and the values in the order of a profile's
    /// table of frames.
    columns: Vec<(usize, Vec<FrameValue>)>,
    #[serde(skip)]
    errors: Vec<(usize, Error)>,
    /// Of each build where it can be had again, if that is no file. Not stored.
    #[serde(skip)]
    fetches: Vec<Option<Source>>,
}

/// A stored series, not yet checked. Of failed builds it has only the message.
#[derive(Deserialize)]
struct Stored {
    summary: Arc<Summary>,
    builds: Arc<Builds>,
    frames: Arc<Frames>,
    columns: Vec<(usize, Vec<FrameValue>)>,
}

impl TryFrom<Stored> for Series {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Series, &'static str> {
        let Stored { summary, builds, frames, columns } = stored;
        let loaded = builds.all.iter().enumerate().filter(|(_, b)| b.error.is_none()).map(|(i, _)| i);
        if columns.is_empty() || !columns.iter().map(|(build, _)| *build).eq(loaded) {
            return Err("the columns are not those of the builds");
        }
        let mut seen = vec![usize::MAX; frames.len()];
        for (column, (_, values)) in columns.iter().enumerate() {
            for v in values {
                match seen.get_mut(v.frame as usize) {
                    Some(last) if *last != column => *last = column,
                    _ => return Err("a column has a frame twice, or one that is not there"),
                }
                if [v.flat, v.cum].iter().any(|v| v.unsigned_abs() > MAX_MAGNITUDE) {
                    return Err("a value is larger than half of what an int64 holds");
                }
            }
        }
        Ok(Series { summary, builds, frames, columns, errors: Vec::new(), fetches: Vec::new() })
    }
}

/// The largest sum of the magnitudes of a build's values: no difference of two is larger than an int64.
const MAX_MAGNITUDE: u64 = (i64::MAX / 2) as u64;

/// One frame's value in one column.
#[derive(Clone, Copy)]
struct Point {
    column: usize,
    flat: i64,
    cum: i64,
}

impl Series {
    /// Loads builds (each with a key that no other has) and brings them together; inside a rayon pool on all its
    /// threads. A build that fails is in [`Series::builds`], in its place, with its error, and stops nothing.
    ///
    /// ```no_run
    /// use pprofdiff::input::Finder;
    /// use pprofdiff::series::{Series, SeriesOptions};
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
    /// As [`SeriesBuilder::new`] and [`SeriesBuilder::finish`].
    pub fn load(
        builds: impl IntoIterator<Item = (String, Source)>,
        query: &Query,
        options: &SeriesOptions,
    ) -> Result<Series> {
        let mut builder = SeriesBuilder::new(query, options)?;
        builder.add_all(builds)?;
        builder.finish()
    }

    /// The builds that failed: index in [`Builds::all`], and why.
    pub fn errors(&self) -> &[(usize, Error)] {
        &self.errors
    }

    /// The table itself: each build that has values (index in [`Builds::all`]) with one value a frame that it has, in
    /// the order of a profile's table of frames.
    pub fn values(&self) -> impl Iterator<Item = (usize, &[FrameValue])> + Clone {
        self.columns.iter().map(|(build, values)| (*build, values.as_slice()))
    }

    /// flat or cum of a frame in each build that has values; 0 where it does not occur.
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

    /// Calls `f` with each frame that any build has, and its points in the order of the builds.
    fn for_each_frame(&self, mut f: impl FnMut(u32, &[Point])) {
        // The table turned around: the places of a frame's values are `places[ends[frame - 1]..ends[frame]]`.
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
        for (frame, &end) in paced(ends[..self.frames.len()].iter().enumerate()) {
            points.clear();
            points.extend(places[start..end].iter().map(|&(column, i)| {
                let v = self.columns[column as usize].1[i as usize];
                Point { column: column as usize, flat: v.flat, cum: v.cum }
            }));
            if !points.is_empty() {
                f(frame as u32, &points);
            }
            start = end;
        }
    }

    fn step(&self, frame: u32, [from, to]: [usize; 2], before: Option<Point>, after: Option<Point>) -> Step {
        let value = |f: fn(Point) -> i64| Pair { base: before.map_or(0, f), new: after.map_or(0, f) };
        let (flat, cum) = (value(|p| p.flat), value(|p| p.cum));
        let same = flat.delta() == 0 && cum.delta() == 0;
        let status = Status::new(before.is_some(), after.is_some(), same);
        Step { frame, from: self.columns[from].0, to: self.columns[to].0, flat, cum, status }
    }

    /// Calls `f` with each step of a frame that changes something, in the order of the builds.
    fn for_each_step(&self, frame: u32, points: &[Point], mut f: impl FnMut(Step)) {
        let mut found = |columns, before: Option<Point>, after: Option<Point>| {
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
                        found([p.column - 1, p.column], before, Some(p));
                    }
                    let next = p.column + 1;
                    if next < n && points.get(i + 1).is_none_or(|after| after.column != next) {
                        found([p.column, next], Some(p), None);
                    }
                }
            }
            Against::First => match points.split_first().filter(|(first, _)| first.column == 0) {
                None => points.iter().for_each(|&p| found([0, p.column], None, Some(p))),
                Some((&base, mut rest)) => {
                    for column in 1..n {
                        let after = rest.first().copied().filter(|p| p.column == column);
                        rest = &rest[usize::from(after.is_some())..];
                        found([0, column], Some(base), after);
                    }
                }
            },
        }
    }

    /// All steps that change something: by the magnitudes of the change ([`Sort`]), then by build, then by frame.
    pub fn steps(&self, sort: Sort) -> Ranked<Step> {
        let mut rows = Vec::new();
        self.for_each_frame(|frame, points| self.for_each_step(frame, points, |step| rows.push(step)));
        self.ranked(sort, rows, |step| (step, step.to))
    }

    /// All frames: by the magnitudes of the largest step of each ([`Sort`]), then by name.
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
        // Frames by name, so that rows that are alike compare numbers.
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
