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

mod change_points;
mod shifts;

pub use change_points::ChangePoint;
pub use shifts::{FEWEST_BUILDS, Shift, ShiftKind};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::{
    Diff, FrameInterner, Frames, Granularity, Matching, Normalize, Pair, Query, Scale, Side, Sort, Status, Summary,
};
use crate::options::Scope;
use crate::{Error, ErrorKind, Result, explain as causes};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::input::{Source, check_history};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::units;
use pprofdiff_profile::work::paced;
use pprofdiff_profile::{LoadOptions, Profile};

/// What each build is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Against {
    /// The one before it: a history.
    #[default]
    Previous,
    /// The first: each build against one base.
    First,
}

/// What the builds are ordered by. A history by keys can't have two names ([`check_history`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Order {
    /// The caller.
    #[default]
    Given,
    /// Their keys, in which numbers count as numbers ([`pattern_builds`](crate::input::pattern_builds)).
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
                if [v.flat, v.cum].iter().any(|v| v.unsigned_abs() > MOST) {
                    return Err("a value is larger than half of what an int64 holds");
                }
            }
        }
        Ok(Series { summary, builds, frames, columns, errors: Vec::new(), fetches: Vec::new() })
    }
}

/// The largest sum of the magnitudes of a build's values: no difference of two is larger than an int64.
const MOST: u64 = (i64::MAX / 2) as u64;

/// What is kept of a profile, in its own unit.
struct Column {
    values: Vec<FrameValue>,
    total: Total,
    sample_type: String,
    unit: String,
    samples: usize,
    duration_nanos: i64,
    time_nanos: i64,
    warnings: Vec<String>,
    /// As [`Build::event`], before anything is scaled.
    event: f64,
}

/// A build that was loaded, or why it was not.
struct Loaded {
    key: String,
    path: String,
    /// If it is no file.
    fetch: Option<Source>,
    column: Result<Column>,
}

/// Makes a [`Series`] of builds that come one after the other.
pub struct SeriesBuilder {
    /// Asked of each build; the first that has values decides the sample type.
    query: Query,
    /// Applied when all builds are there.
    normalize: Normalize,
    options: SeriesOptions,
    names: FrameInterner,
    loaded: Vec<Loaded>,
    keys: HashSet<String>,
}

/// Builds in a window for each thread: enough that threads seldom wait at its end.
const WINDOW: usize = 4;

/// Loads a profile and keeps its column, with frames of its own.
fn column(source: &Source, query: &Query, options: &LoadOptions) -> Result<(Column, Frames)> {
    let profile = source.load(options)?;
    of_profile(&profile, query).map_err(|e| e.in_input(profile.name()))
}

fn of_profile(profile: &Arc<Profile>, query: &Query) -> Result<(Column, Frames)> {
    profile.one_sided()?;
    let diff = Diff::of_profile(profile)?;
    let index = diff.find_sample_type(query.sample_type.as_deref())?;
    let measure = diff.select(query)?.measure_type(index, query.normalize)?;
    let event = causes::sampling(&measure)?.0.first().copied().unwrap_or(0.0);
    let top = measure.top(Sort::Flat);
    let mut own = FrameInterner::new(query.granularity);
    let numbers = own.add(&top.frames, top.rows.iter().map(|r| r.frame))?;
    let values = top.rows.iter().zip(numbers);
    let values = values.map(|(row, frame)| FrameValue { frame, flat: row.flat.new, cum: row.cum.new }).collect();
    let summary = &top.summary;
    let column = Column {
        values,
        total: diff.side_total(false, index),
        sample_type: summary.sample_type.clone(),
        unit: summary.unit.clone(),
        samples: summary.new.samples,
        duration_nanos: summary.new.duration_nanos,
        time_nanos: summary.new.time_nanos,
        warnings: summary.warnings.clone(),
        event,
    };
    Ok((column, own.frames()))
}

impl SeriesBuilder {
    /// A series without builds.
    ///
    /// # Errors
    /// What no series can answer: an invalid regular expression, addresses (which mean something else in each
    /// build), a factor to normalize by (there are many builds), or what is of one table ([`Scope`]).
    pub fn new(query: &Query, options: &SeriesOptions) -> Result<SeriesBuilder> {
        query.check_scope("a series", Scope::Everything)?;
        query.filters.check()?;
        if query.granularity == Granularity::Addresses {
            return Err(Error::query("addresses mean something else in each build; a series goes down to lines"));
        }
        if query.matching == Matching::Moved {
            return Err(Error::query(
                "what moved is known between two sides; a series matches names as exact or canonical",
            ));
        }
        if matches!(query.normalize, Normalize::Factor(_)) {
            return Err(Error::query(
                "there are many builds to normalize; it goes by total or duration, not by a factor",
            ));
        }
        Ok(SeriesBuilder {
            query: Query { normalize: Normalize::None, ..query.clone() },
            normalize: query.normalize,
            options: options.clone(),
            names: FrameInterner::new(query.granularity),
            loaded: Vec::new(),
            keys: HashSet::default(),
        })
    }

    /// Loads builds, each with a key that no other has; inside a rayon pool on all its threads. A build that fails is
    /// in [`Series::builds`], in its place, with its error.
    ///
    /// # Errors
    /// That of the first build, if all are compared with it.
    pub fn add(&mut self, builds: &[(String, Source)]) -> Result<()> {
        let mut rest = builds;
        while !rest.is_empty() {
            // The first build that has values decides on the sample type, so it can't share a window with others.
            let is_first = !self.loaded.iter().any(|l| l.column.is_ok());
            let window = if is_first { 1 } else { WINDOW * parallel::threads() };
            let (now, later) = rest.split_at(window.min(rest.len()));
            let (query, load) = (&self.query, &self.options.load);
            let columns = parallel::map(now, |(_, source)| column(source, query, load));
            for ((key, source), column) in now.iter().zip(columns) {
                let column = column.and_then(|(mut column, frames)| {
                    let numbers = self.names.add(&frames, 0..frames.len() as u32)?;
                    column.values.iter_mut().for_each(|v| v.frame = numbers[v.frame as usize]);
                    Ok(column)
                });
                let fetch = matches!(source, Source::Fetch(..)).then(|| source.clone());
                self.push(key.clone(), source.name(), fetch, column)?;
            }
            rest = later;
        }
        Ok(())
    }

    /// Adds a build that the caller could not get.
    ///
    /// # Errors
    /// As [`SeriesBuilder::add`].
    pub fn add_failed(&mut self, key: String, reason: &str) -> Result<()> {
        let error = Error::io(std::io::Error::other(reason)).in_input(&key);
        self.push(key.clone(), key, None, Err(error))
    }

    /// True if a build failed so far.
    pub fn has_failed(&self) -> bool {
        self.loaded.iter().any(|l| l.column.is_err())
    }

    fn push(&mut self, key: String, path: String, fetch: Option<Source>, column: Result<Column>) -> Result<()> {
        let column = match self.keys.insert(key.clone()) {
            true => column,
            false => Err(Error::query(format!("there is another build with the key {key:?}")).in_input(&path)),
        };
        match (&column, self.options.against) {
            (Err(_), Against::First) if self.loaded.is_empty() => return column.map(drop),
            (Ok(column), _) => self.query.sample_type = Some(column.sample_type.clone()),
            _ => {}
        }
        self.loaded.push(Loaded { key, path, fetch, column });
        Ok(())
    }

    /// Brings the builds together: in one unit, the finest of theirs, and normalized to the first that has values.
    ///
    /// # Errors
    /// No builds; the error of the first if none has values, or if all are compared with it; a history by keys of two
    /// names, which have no order between them.
    pub fn finish(self) -> Result<Series> {
        if (self.options.order, self.options.against) == (Order::Key, Against::Previous) {
            let keys: Vec<&str> = self.loaded.iter().map(|build| build.key.as_str()).collect();
            check_history(&keys)?;
        }
        let times = self.finest_unit();
        let mut all = Vec::with_capacity(self.loaded.len());
        let (mut columns, mut errors, mut warnings) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut fetches = Vec::with_capacity(self.loaded.len());
        let mut first: Option<(Total, i64, String)> = None;
        for (index, (Loaded { key, path, fetch, column }, times)) in self.loaded.into_iter().zip(times).enumerate() {
            fetches.push(fetch);
            let mut build = Build {
                key,
                path,
                error: None,
                samples: 0,
                duration_nanos: 0,
                time_nanos: 0,
                total: 0,
                factor: 1.0,
                event: 0.0,
            };
            let fitted = column.and_then(|mut column| {
                let (unit, times) = times?;
                column.fit(times, Scale::One)?;
                column.unit = unit;
                let (total, duration, _) =
                    first.get_or_insert_with(|| (column.total, column.duration_nanos, column.unit.clone()));
                let durations = (*duration, column.duration_nanos);
                let scale = Scale::new(self.normalize, (total.sum, column.total.sum), durations, [1, 1])?;
                column.fit(1, scale)?;
                Ok((column, scale))
            });
            match fitted {
                Ok((column, scale)) => {
                    build.samples = column.samples;
                    build.duration_nanos = column.duration_nanos;
                    build.time_nanos = column.time_nanos;
                    build.total = column.total.magnitude;
                    build.factor = scale.factor();
                    build.event = column.event;
                    for warning in column.warnings {
                        warnings.entry(warning).or_insert_with(Vec::new).push(build.key.clone());
                    }
                    columns.push((index, column.values));
                }
                Err(e) => {
                    let e = e.in_input(&build.path);
                    build.error = Some(e.to_string());
                    errors.push((index, e));
                }
            }
            all.push(build);
        }
        let builds = Arc::new(Builds { all, against: self.options.against, order: self.options.order });
        if columns.is_empty() || (builds.against == Against::First && builds.all[0].error.is_some()) {
            let error = errors.into_iter().next().map(|(_, e)| e);
            return Err(error.unwrap_or_else(|| Error::query("a series needs builds, and there are none")));
        }
        let loaded = builds.loaded();
        let total = |build: Option<&Build>| build.map_or(0, |b| b.total);
        let summary = Summary {
            base: None,
            new: Side {
                paths: loaded.clone().map(|b| b.path.clone()).collect(),
                samples: loaded.clone().map(|b| b.samples).sum(),
                counted: None,
                duration_nanos: loaded.clone().map(|b| b.duration_nanos).fold(0, i64::saturating_add),
                time_nanos: loaded.clone().map(|b| b.time_nanos).filter(|&t| t != 0).min().unwrap_or(0),
            },
            sample_type: self.query.sample_type.clone().unwrap_or_default(),
            unit: first.map_or_else(String::new, |(_, _, unit)| unit),
            query: self.query.with_normalize(self.normalize),
            factor: 1.0,
            sum: false,
            chance: None,
            warnings: warnings.into_iter().map(|(warning, keys)| of_some(&warning, &keys, columns.len())).collect(),
            total: Pair { base: total(loaded.clone().next()), new: total(loaded.clone().next_back()) },
        };
        Ok(Series {
            summary: summary.into(),
            builds: builds.clone(),
            frames: self.names.frames().into(),
            columns,
            errors,
            fetches,
        })
    }

    /// For each build: the finest unit of all that convert into that of the first, and what the build's values are to
    /// be multiplied by.
    fn finest_unit(&self) -> Vec<Result<(String, i64)>> {
        let units = || self.loaded.iter().map(|l| l.column.as_ref().ok().map(|c| c.unit.as_str()));
        let Some(first) = units().flatten().next() else { return units().map(|_| Ok((String::new(), 1))).collect() };
        let of_first = units::find(first);
        let convertible = |unit: &str| units::find(unit).filter(|u| of_first.is_some_and(|f| u.same_family(f)));
        let finest =
            units().flatten().filter(|u| convertible(u).is_some()).min_by_key(|u| convertible(u).map(|u| u.factor()));
        let finest = finest.filter(|unit| units::find(unit).map(|u| u.factor()) != of_first.map(|u| u.factor()));
        let finest = finest.unwrap_or(first);
        let of_build = |unit: &str| {
            if unit == finest {
                return Ok((finest.to_owned(), 1));
            }
            let quotient = convertible(unit).zip(convertible(finest)).map(|(from, to)| from.factor() / to.factor());
            let times = quotient.and_then(|q| i64::try_from(q).ok()).ok_or_else(|| {
                let detail = format!("its unit, {unit}, does not convert into that of the first build, {first}");
                Error::new(ErrorKind::Incompatible, detail)
            });
            Ok((finest.to_owned(), times?))
        };
        units().map(|unit| of_build(unit.unwrap_or(finest))).collect()
    }
}

impl Column {
    /// Multiplies and scales the values, such that no difference of two such columns overflows.
    fn fit(&mut self, times: i64, scale: Scale) -> Result<()> {
        let fits = |v: i64| Some(v).filter(|v| v.unsigned_abs() <= MOST);
        let magnitude = self.total.magnitude.checked_mul(times).map(|m| scale.apply(m)).and_then(fits);
        let magnitude = magnitude.ok_or_else(|| {
            let detail = "its values add up to more than half of what an int64 holds, so that steps could be too large";
            Error::new(ErrorKind::Incompatible, detail)
        })?;
        let fit = |v: i64| scale.apply(v * times);
        self.event *= scale.factor().abs() * times as f64;
        self.total = Total { sum: fit(self.total.sum), magnitude };
        for v in &mut self.values {
            (v.flat, v.cum) = (fit(v.flat), fit(v.cum));
        }
        Ok(())
    }
}

/// A warning, with the builds that it is of where it is not of all.
fn of_some(warning: &str, keys: &[String], all: usize) -> String {
    match keys {
        _ if keys.len() == all => warning.to_owned(),
        [one] => format!("{one}: {warning}"),
        _ => format!("{} of {all} builds: {warning}", keys.len()),
    }
}

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
    /// use pprofdiff::input::pattern_builds;
    /// use pprofdiff::series::{Series, SeriesOptions};
    /// use pprofdiff::{Query, Sort};
    ///
    /// # fn main() -> pprofdiff::Result<()> {
    /// let series = Series::load(pattern_builds("builds/*/cpu.pb.gz")?, &Query::default(), &SeriesOptions::default())?;
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
        let mut builds = builds.into_iter().peekable();
        while builds.peek().is_some() {
            let window: Vec<_> = builds.by_ref().take(WINDOW * parallel::threads()).collect();
            builder.add(&window)?;
        }
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
