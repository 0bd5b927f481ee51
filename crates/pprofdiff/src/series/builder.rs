//! Makes a series: a column of each build, then one unit and one scale for all.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

#[cfg(feature = "store")]
use super::kept;
use super::{Against, Build, Builds, FrameValue, MAX_MAGNITUDE, Order, Series, SeriesOptions};
use crate::diff::{
    Diff, FrameInterner, Frames, Granularity, Matching, Normalize, Pair, Query, Scale, Side, Sort, Summary,
};
use crate::options::Scope;
use crate::{Error, ErrorKind, Result, explain as causes};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::input::{Source, check_history};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::units;
use pprofdiff_profile::{LoadOptions, Profile};

/// What is kept of a profile, in its own unit.
pub(super) struct Column {
    pub values: Vec<FrameValue>,
    pub total: Total,
    pub sample_type: String,
    pub unit: String,
    pub samples: usize,
    pub duration_nanos: i64,
    pub time_nanos: i64,
    pub warnings: Vec<String>,
    /// As [`Build::event`], before anything is scaled.
    pub event: f64,
}

/// The columns of some builds, of frames that they share. Frames are numbered as they occur first, build by build, so that
/// it makes no difference which builds are a group.
pub(super) struct Group {
    pub frames: Frames,
    pub columns: Vec<Result<Column>>,
}

impl Group {
    /// The columns, with the numbers that another interner gives to their frames.
    fn into_columns(self, names: &mut FrameInterner) -> Result<Vec<Result<Column>>> {
        let numbers = names.add(&self.frames, 0..self.frames.len() as u32)?;
        let mut columns = self.columns;
        for column in columns.iter_mut().flatten() {
            column.values.iter_mut().for_each(|v| v.frame = numbers[v.frame as usize]);
        }
        Ok(columns)
    }

    /// Builds that failed for one reason.
    fn failed(e: &Error, builds: usize, granularity: Granularity) -> Group {
        let columns = (0..builds).map(|_| Err(Error::new(e.kind(), e.detail()))).collect();
        Group { frames: FrameInterner::new(granularity).frames(), columns }
    }

    /// Several as one.
    pub(super) fn concat(mut groups: Vec<Group>, granularity: Granularity) -> Result<Group> {
        if groups.len() == 1 {
            return Ok(groups.swap_remove(0));
        }
        let (mut names, mut columns) = (FrameInterner::new(granularity), Vec::new());
        for group in groups {
            columns.extend(group.into_columns(&mut names)?);
        }
        Ok(Group { frames: names.frames(), columns })
    }
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

/// Groups of builds in a window for each thread: enough that threads seldom wait at its end.
const WINDOW: usize = 4;

/// The next builds that are read together: of a store those that are kept together, of others each by itself.
fn next_group(builds: &mut Peekable<impl Iterator<Item = (String, Source)>>) -> Option<Vec<(String, Source)>> {
    let group = vec![builds.next()?];
    #[cfg(feature = "store")]
    let group = kept::filled(group, builds);
    Some(group)
}

fn load_group(builds: &[(String, Source)], query: &Query, load: &LoadOptions) -> Group {
    #[cfg(feature = "store")]
    if builds.len() > 1
        && let Some(group) = kept::group(builds, query, load)
    {
        return group;
    }
    read_group(builds, query, load)
}

/// The columns of builds, of their profiles.
pub(super) fn read_group(builds: &[(String, Source)], query: &Query, load: &LoadOptions) -> Group {
    let groups = parallel::map(builds, |(_, source)| match column(source, query, load) {
        Ok((column, frames)) => Group { frames, columns: vec![Ok(column)] },
        Err(e) => Group { frames: FrameInterner::new(query.granularity).frames(), columns: vec![Err(e)] },
    });
    Group::concat(groups, query.granularity).unwrap_or_else(|e| Group::failed(&e, builds.len(), query.granularity))
}

/// Loads a profile and keeps its column, with frames of its own.
fn column(source: &Source, query: &Query, options: &LoadOptions) -> Result<(Column, Frames)> {
    #[cfg(feature = "store")]
    if let Some(column) = super::stored::column(source, query, options)? {
        return Ok(column);
    }
    let profile = source.load(options)?;
    of_profile(&profile, query).map_err(|e| e.in_input(profile.name()))
}

fn of_profile(profile: &Arc<Profile>, query: &Query) -> Result<(Column, Frames)> {
    profile.one_sided()?;
    let diff = Diff::of_profile(profile)?;
    let index = diff.find_sample_type(query.sample_type.as_deref())?;
    let measure = diff.select_of_runs(query)?.measure_type(index, query.normalize)?;
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
                "what moved is known between two sides; a series matches names as exact, stable or canonical",
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
            let (now, later) = rest.split_at(self.window().min(rest.len()));
            self.add_groups(&now.chunks(1).collect::<Vec<_>>())?;
            rest = later;
        }
        Ok(())
    }

    /// As [`SeriesBuilder::add`]; builds of a store are read by what is kept of them.
    ///
    /// # Errors
    /// As [`SeriesBuilder::add`].
    pub(super) fn add_all(&mut self, builds: impl IntoIterator<Item = (String, Source)>) -> Result<()> {
        let mut builds = builds.into_iter().peekable();
        while builds.peek().is_some() {
            let groups: Vec<_> = match self.window() {
                1 => builds.next().map(|build| vec![build]).into_iter().collect(),
                window => (0..window).map_while(|_| next_group(&mut builds)).collect(),
            };
            self.add_groups(&groups)?;
        }
        Ok(())
    }

    /// How many groups are loaded at once. The first build that has values decides on the sample type, so it can't share a
    /// window with others.
    fn window(&self) -> usize {
        let is_first = !self.loaded.iter().any(|l| l.column.is_ok());
        if is_first { 1 } else { WINDOW * parallel::threads() }
    }

    fn add_groups(&mut self, groups: &[impl AsRef<[(String, Source)]> + Sync]) -> Result<()> {
        let (query, load) = (&self.query, &self.options.load);
        let loaded = parallel::map(groups, |builds| load_group(builds.as_ref(), query, load));
        for (builds, group) in groups.iter().zip(loaded) {
            let builds = builds.as_ref();
            let columns = group.into_columns(&mut self.names);
            let columns = columns.unwrap_or_else(|e| Group::failed(&e, builds.len(), self.query.granularity).columns);
            for ((key, source), column) in builds.iter().zip(columns) {
                self.push(key.clone(), source.name(), source.again(), column)?;
            }
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
        let repeats = self.repeats();
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
            sampling: None,
            base: None,
            new: Side {
                paths: loaded.clone().map(|b| b.path.clone()).collect(),
                samples: loaded.clone().map(|b| b.samples).fold(0, usize::saturating_add),
                counted: None,
                duration_nanos: loaded.clone().map(|b| b.duration_nanos).fold(0, i64::saturating_add),
                time_nanos: loaded.clone().map(|b| b.time_nanos).filter(|&t| t != 0).min().unwrap_or(0),
                window: None,
            },
            sample_type: self.query.sample_type.clone().unwrap_or_default(),
            unit: first.map_or_else(String::new, |(_, _, unit)| unit),
            query: self.query.with_normalize(self.normalize),
            factor: 1.0,
            sum: false,
            chance: None,
            warnings: {
                let of_builds = warnings.into_iter().map(|(warning, keys)| of_some(&warning, &keys, columns.len()));
                of_builds.chain(repeats).collect()
            },
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

    /// Returns a warning about builds with the profile of another build, because they are no evidence that a level
    /// lasts. Profiles that do not record a time may be equal by chance.
    fn repeats(&self) -> Option<String> {
        let loaded = || self.loaded.iter().filter_map(|build| Some((&build.key, build.column.as_ref().ok()?)));
        let is_same = |a: &Column, b: &Column| {
            let head = |c: &Column| (c.time_nanos, c.duration_nanos, c.samples, c.total.sum, c.total.magnitude);
            head(a) == head(b) && a.values == b.values
        };
        let mut firsts: HashMap<i64, Vec<(&String, &Column)>> = HashMap::default();
        let (mut count, mut example) = (0, None);
        for (key, column) in loaded().filter(|(_, column)| column.time_nanos != 0) {
            let known = firsts.entry(column.time_nanos).or_default();
            match known.iter().find(|(_, other)| is_same(other, column)) {
                Some((first, _)) => {
                    count += 1;
                    example.get_or_insert((*first, key));
                }
                None => known.push((key, column)),
            }
        }
        let (first, key) = example?;
        let builds = if count == 1 { "1 build is" } else { &format!("{count} builds are") };
        Some(format!(
            "{builds} the same profile as another build ({key} as {first}): it counts once where a change is explained, and \
             is no evidence that a level lasts"
        ))
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
        let fits = |v: i64| Some(v).filter(|v| v.unsigned_abs() <= MAX_MAGNITUDE);
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
