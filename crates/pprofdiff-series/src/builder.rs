//! Builds a series: computes a column for each build, then converts all columns to one unit and one scale.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use super::known::{BuildColumn, BuildGroup, KnownColumns};
use super::{Against, Build, BuildOrder, Builds, FrameValue, MAX_MAGNITUDE, Series, SeriesOptions};
use pprofdiff::input::{Source, check_history};
use pprofdiff::options::Scope;
use pprofdiff::sampling::{Model, Sampling};
use pprofdiff::shared::{FrameInterner, Moves, Scale, sampling};
use pprofdiff::{
    Diff, Error, ErrorKind, Frames, Granularity, Matching, Normalize, Pair, Query, Result, Side, Sort, Summary,
};
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::units;

/// A loaded build, or a build that failed.
struct LoadedBuild {
    key: String,
    path: String,
    /// The source that can load the build again, if it is not a file.
    fetch: Option<Source>,
    column: Result<BuildColumn>,
}

/// Builds a [`Series`] from builds that are added one after another.
pub struct SeriesBuilder {
    /// The query for each build. The first build with values determines the sample type.
    query: Query,
    /// True if the caller chose no sample type.
    has_default_type: bool,
    /// The normalization, which is applied after all builds are loaded.
    normalize: Normalize,
    options: SeriesOptions,
    names: FrameInterner,
    loaded: Vec<LoadedBuild>,
    keys: HashSet<String>,
}

impl std::fmt::Debug for SeriesBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesBuilder").finish_non_exhaustive()
    }
}

/// The number of groups per thread in a window. It is large enough that threads rarely wait at the end of a window.
const WINDOW: usize = 4;

/// Takes the next builds that are loaded together: a group of builds with known columns, or a single build.
fn next_group(
    builds: &mut Peekable<impl Iterator<Item = (String, Source)>>,
    known: Option<&dyn KnownColumns>,
) -> Option<Vec<(String, Source)>> {
    let mut group = vec![builds.next()?];
    while let Some(known) = known
        && let Some(next) = builds.next_if(|(_, next)| known.continues(&group, next))
    {
        group.push(next);
    }
    Some(group)
}

fn load_group(builds: &[(String, Source)], query: &Query, options: &SeriesOptions) -> BuildGroup {
    let read = |builds: &[(String, Source)]| read_group(builds, query, options);
    if let Some(known) = options.known
        && builds.len() > 1
        && let Some(group) = known.group(builds, query, &options.load, &read)
    {
        return group;
    }
    read(builds)
}

/// Computes the columns of builds from their profiles.
fn read_group(builds: &[(String, Source)], query: &Query, options: &SeriesOptions) -> BuildGroup {
    let groups = parallel::map(builds, |(_, source)| match column(source, query, options) {
        Ok((column, frames)) => BuildGroup { frames, columns: vec![Ok(column)] },
        Err(e) => BuildGroup { frames: FrameInterner::new(query.granularity).frames(), columns: vec![Err(e)] },
    });
    BuildGroup::concat(groups, query.granularity)
        .unwrap_or_else(|e| BuildGroup::failed(&e, builds.len(), query.granularity))
}

/// Computes the column of a build with its own frames, from known values or from its profile.
fn column(source: &Source, query: &Query, options: &SeriesOptions) -> Result<(BuildColumn, Frames)> {
    if let Some(known) = options.known
        && let Some(column) = known.column(source, query, &options.load)?
    {
        return Ok(column);
    }
    let profile = source.load(&options.load)?;
    column_of_profile(&profile, query).map_err(|e| e.in_input(profile.name()))
}

fn column_of_profile(profile: &Arc<Profile>, query: &Query) -> Result<(BuildColumn, Frames)> {
    profile.one_sided()?;
    let diff = Diff::of_profile(profile)?;
    let index = diff.find_sample_type(query.sample_type.as_deref())?;
    let measure = diff.select_of_runs(query, &Moves::default())?.measure_type(index, query.normalize)?;
    let event = sampling(&measure)?.0.first().copied().unwrap_or(0.0);
    let top = measure.top(Sort::Flat);
    let mut names = FrameInterner::new(query.granularity);
    let numbers = names.add(&top.frames, top.rows.iter().map(|r| r.frame))?;
    let values = top.rows.iter().zip(numbers);
    let values = values.map(|(row, frame)| FrameValue { frame, flat: row.flat.new, cum: row.cum.new }).collect();
    let summary = &top.summary;
    let mut warnings = summary.warnings.clone();
    warnings.extend(uncounted_warning(profile, index, &summary.sample_type));
    let column = BuildColumn {
        values,
        total: diff.side_total(false, index),
        sample_type: summary.sample_type.clone(),
        unit: summary.unit.clone(),
        samples: summary.new.samples,
        duration_nanos: summary.new.duration_nanos,
        time_nanos: summary.new.time_nanos,
        warnings,
        event,
    };
    Ok((column, names.frames()))
}

/// Returns the warning about a build whose profile does not state its number of samples. Lasting changes do not depend
/// on that number, because they are compared with the differences between builds.
fn uncounted_warning(profile: &Profile, sample_type: usize, name: &str) -> Option<String> {
    let sampling = Sampling::of_profile(profile, sample_type);
    (sampling.model == Model::Unknown).then(|| {
        format!(
            "the number of samples behind {name} is unknown ({}), so only the differences between builds show the noise",
            sampling.by
        )
    })
}

/// Returns a warning about a history of keys without numbers. Their order by name is probably not the order of the
/// builds.
fn by_alphabet(builds: &Builds) -> Option<String> {
    let is_by_key = (builds.order, builds.against) == (BuildOrder::Key, Against::Previous);
    let has_number = |build: &Build| build.key.bytes().any(|byte| byte.is_ascii_digit());
    let [first, .., last] = builds.all.as_slice() else { return None };
    (is_by_key && !builds.all.iter().any(has_number)).then(|| {
        format!(
            "the builds are in alphabetical order, from {} to {}, because numbers are missing in their names; name the \
             files in their order (--order given), or compare each with one of them (--base)",
            first.key, last.key
        )
    })
}

impl SeriesBuilder {
    /// Creates a builder without builds.
    ///
    /// # Errors
    /// Fails if a series does not support the query: on an invalid regular expression, on addresses (which differ
    /// between builds), on matching of moved functions (which needs two sides), on a factor for normalization (which
    /// applies to two sides only), and on options of single tables ([`Scope`]).
    pub fn new(query: &Query, options: &SeriesOptions) -> Result<SeriesBuilder> {
        query.check_scope("a series", Scope::Everything)?;
        query.filters.check()?;
        if query.granularity == Granularity::Addresses {
            return Err(Error::query("addresses differ between builds, so a series does not support them; use lines"));
        }
        if query.matching == Matching::Moved {
            return Err(Error::query(
                "a series does not support matching as moved, which needs two sides; use exact, stable or canonical",
            ));
        }
        if matches!(query.normalize, Normalize::Factor(_)) {
            return Err(Error::query("a series can be normalized by total or by duration, but not by a factor"));
        }
        Ok(SeriesBuilder {
            query: query.clone().with_normalize(Normalize::None),
            has_default_type: query.sample_type.is_none(),
            normalize: query.normalize,
            options: options.clone(),
            names: FrameInterner::new(query.granularity),
            loaded: Vec::new(),
            keys: HashSet::default(),
        })
    }

    /// Loads builds. Inside a rayon pool, this uses all of its threads. A build that fails keeps its place in
    /// [`Series::builds`] with its error. A build whose key an earlier build has fails, too.
    ///
    /// # Errors
    /// Returns the error of the first build if all builds are compared with it ([`Against::First`]). Errors of other
    /// builds are not returned, because they stay in the series.
    pub fn add(&mut self, builds: &[(String, Source)]) -> Result<()> {
        let mut rest = builds;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.window().min(rest.len()));
            self.add_groups(&now.chunks(1).collect::<Vec<_>>())?;
            rest = later;
        }
        Ok(())
    }

    /// Like [`SeriesBuilder::add`], but loads builds with known columns in groups.
    ///
    /// # Errors
    /// Returns the errors of [`SeriesBuilder::add`].
    pub(super) fn add_all(&mut self, builds: impl IntoIterator<Item = (String, Source)>) -> Result<()> {
        let mut builds = builds.into_iter().peekable();
        while builds.peek().is_some() {
            let groups: Vec<_> = match self.window() {
                1 => builds.next().map(|build| vec![build]).into_iter().collect(),
                window => (0..window).map_while(|_| next_group(&mut builds, self.options.known)).collect(),
            };
            self.add_groups(&groups)?;
        }
        Ok(())
    }

    /// Returns the number of groups to load in parallel. The first build with values determines the sample type, so it
    /// is loaded alone.
    fn window(&self) -> usize {
        let is_first = !self.loaded.iter().any(|l| l.column.is_ok());
        if is_first { 1 } else { WINDOW * parallel::threads() }
    }

    fn add_groups(&mut self, groups: &[impl AsRef<[(String, Source)]> + Sync]) -> Result<()> {
        let (query, options) = (&self.query, &self.options);
        let loaded = parallel::map(groups, |builds| load_group(builds.as_ref(), query, options));
        for (builds, group) in groups.iter().zip(loaded) {
            let builds = builds.as_ref();
            let columns = group.into_columns(&mut self.names);
            let columns =
                columns.unwrap_or_else(|e| BuildGroup::failed(&e, builds.len(), self.query.granularity).columns);
            for ((key, source), column) in builds.iter().zip(columns) {
                self.push(key.clone(), source.name(), source.again(), column)?;
            }
        }
        Ok(())
    }

    /// Adds a build that the caller could not load.
    ///
    /// # Errors
    /// Returns the errors of [`SeriesBuilder::add`].
    pub fn add_failed(&mut self, key: String, reason: &str) -> Result<()> {
        let error = Error::io(std::io::Error::other(reason)).in_input(&key);
        self.push(key.clone(), key, None, Err(error))
    }

    /// Returns true if a build has failed so far.
    pub fn has_failed(&self) -> bool {
        self.loaded.iter().any(|l| l.column.is_err())
    }

    fn push(&mut self, key: String, path: String, fetch: Option<Source>, column: Result<BuildColumn>) -> Result<()> {
        let column = match self.keys.insert(key.clone()) {
            true => column,
            false => Err(Error::query(format!("there is another build with the key {key:?}")).in_input(&path)),
        };
        match (&column, self.options.against) {
            (Err(_), Against::First) if self.loaded.is_empty() => return column.map(drop),
            (Ok(column), _) => self.query.sample_type = Some(column.sample_type.clone()),
            _ => {}
        }
        self.loaded.push(LoadedBuild { key, path, fetch, column });
        Ok(())
    }

    /// Combines the builds. Converts values to the finest unit of all builds, and normalizes them to the first build
    /// with values.
    ///
    /// # Errors
    /// Fails if there are no builds, and if a history sorted by key contains two names, which have no order. Returns
    /// the error of the first build if no build has values, or if all builds are compared with the first build.
    pub fn finish(self) -> Result<Series> {
        let repeats = self.repeats();
        if (self.options.order, self.options.against) == (BuildOrder::Key, Against::Previous) {
            let keys: Vec<&str> = self.loaded.iter().map(|build| build.key.as_str()).collect();
            check_history(&keys)?;
        }
        let times = self.finest_unit();
        let mut all = Vec::with_capacity(self.loaded.len());
        let (mut columns, mut errors, mut warnings) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut fetches = Vec::with_capacity(self.loaded.len());
        let mut first: Option<(Total, i64, String)> = None;
        for (index, (LoadedBuild { key, path, fetch, column }, times)) in self.loaded.into_iter().zip(times).enumerate()
        {
            fetches.push(fetch);
            let subject = self.options.subjects.get(&key).cloned();
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
                subject,
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
            return Err(error.unwrap_or_else(|| Error::query("a series needs at least one build")));
        }
        let loaded = builds.loaded();
        let total = |build: Option<&Build>| build.map_or(0, |b| b.total);
        let build_warnings = warnings.into_iter().map(|(warning, keys)| with_builds(&warning, &keys, columns.len()));
        let summary = Summary::of_builds(
            Side::of_builds(
                loaded.clone().map(|b| b.path.clone()).collect(),
                loaded.clone().map(|b| b.samples).fold(0, usize::saturating_add),
                loaded.clone().map(|b| b.duration_nanos).fold(0, i64::saturating_add),
                loaded.clone().map(|b| b.time_nanos).filter(|&t| t != 0).min().unwrap_or(0),
            ),
            first.map_or_else(String::new, |(_, _, unit)| unit),
            self.query.with_normalize(self.normalize),
            Pair { base: total(loaded.clone().next()), new: total(loaded.clone().next_back()) },
            build_warnings.chain(repeats).chain(by_alphabet(&builds)).collect(),
        );
        Ok(Series {
            summary: summary.into(),
            builds: builds.clone(),
            frames: self.names.frames().into(),
            columns,
            errors,
            fetches,
            has_default_type: self.has_default_type,
        })
    }

    /// Returns a warning about builds that contain the profile of another build, because they are no evidence that a
    /// level lasts. Returns `None` without such builds. Ignores profiles that do not record a time, which may be equal
    /// by chance.
    fn repeats(&self) -> Option<String> {
        let loaded = || self.loaded.iter().filter_map(|build| Some((&build.key, build.column.as_ref().ok()?)));
        let is_same = |a: &BuildColumn, b: &BuildColumn| {
            let head = |c: &BuildColumn| (c.time_nanos, c.duration_nanos, c.samples, c.total.sum, c.total.magnitude);
            head(a) == head(b) && a.values == b.values
        };
        let mut firsts: HashMap<i64, Vec<(&String, &BuildColumn)>> = HashMap::default();
        let (mut count, mut example) = (0, None);
        for (key, column) in loaded().filter(|(_, column)| column.time_nanos != 0) {
            let same_time = firsts.entry(column.time_nanos).or_default();
            match same_time.iter().find(|(_, other)| is_same(other, column)) {
                Some((first, _)) => {
                    count += 1;
                    example.get_or_insert((*first, key));
                }
                None => same_time.push((key, column)),
            }
        }
        let (first, key) = example?;
        let builds = if count == 1 { "1 build is" } else { &format!("{count} builds are") };
        Some(format!(
            "{builds} the same profile as another build ({key} as {first}): it counts once in \
             explanations, and does not show that a level lasts"
        ))
    }

    /// Returns for each build the common unit, and the factor that converts the build's values to it. The common unit
    /// is the finest unit of all builds that can be converted to the first build's unit. Returns an error for each
    /// build whose unit cannot be converted.
    fn finest_unit(&self) -> Vec<Result<(String, i64)>> {
        let units = || self.loaded.iter().map(|l| l.column.as_ref().ok().map(|c| c.unit.as_str()));
        let Some(first) = units().flatten().next() else { return units().map(|_| Ok((String::new(), 1))).collect() };
        let first_unit = units::find(first);
        let convertible = |unit: &str| units::find(unit).filter(|u| first_unit.is_some_and(|f| u.same_family(f)));
        let finest =
            units().flatten().filter(|u| convertible(u).is_some()).min_by_key(|u| convertible(u).map(|u| u.factor()));
        let finest = finest.filter(|unit| units::find(unit).map(|u| u.factor()) != first_unit.map(|u| u.factor()));
        let finest = finest.unwrap_or(first);
        let to_finest = |unit: &str| {
            if unit == finest {
                return Ok((finest.to_owned(), 1));
            }
            let quotient = convertible(unit).zip(convertible(finest)).map(|(from, to)| from.factor() / to.factor());
            let times = quotient.and_then(|q| i64::try_from(q).ok()).ok_or_else(|| {
                let detail = format!("its unit, {unit}, can't be converted to the first build's unit, {first}");
                Error::new(ErrorKind::Incompatible, detail)
            });
            Ok((finest.to_owned(), times?))
        };
        units().map(|unit| to_finest(unit.unwrap_or(finest))).collect()
    }
}

impl BuildColumn {
    /// Multiplies and scales the values. Fails if the difference of two such columns could overflow.
    fn fit(&mut self, times: i64, scale: Scale) -> Result<()> {
        let fits = |v: i64| Some(v).filter(|v| v.unsigned_abs() <= MAX_MAGNITUDE);
        let magnitude = self.total.magnitude.checked_mul(times).map(|m| scale.apply(m)).and_then(fits);
        let magnitude = magnitude.ok_or_else(|| {
            let detail = "its values add up to more than half the range of an int64, so differences could overflow";
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

/// Returns a warning, with its builds if it does not apply to all of them.
fn with_builds(warning: &str, keys: &[String], all: usize) -> String {
    match keys {
        _ if keys.len() == all => warning.to_owned(),
        [one] => format!("{one}: {warning}"),
        _ => format!("{} of {all} builds: {warning}", keys.len()),
    }
}
