//! `series`: many builds, frame by frame.

use pprofdiff::input::{Finder, Objects};
use pprofdiff::random::HashMap;
use pprofdiff::{LoadOptions, Query, Sort, Source};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_page::{Page, PageOptions, TimelinesView};
use pprofdiff_report::{
    Report, Request, Table as EngineTable, TextOptions, View, builds_json, series_chart, series_html,
};
use pprofdiff_series::{Against, BuildOrder, SeriesBuilder, SeriesOptions, StoreColumns};
use pprofdiff_store::StoreSelection;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyException, PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::explain::Explanation;
use crate::flamegraph::save;
use crate::histories::Histories;
use crate::listed::ListedUrls;
use crate::options::{check_one_type, loading, parse_sort, take_loading, view_query, without_base};
use crate::profile::{Pickled, Profile, pickled};
use crate::table::{ROWS_SHOWN, Table, chart, move_causes_first, text};
use crate::{error, explain, runtime, source};

/// Many builds, frame by frame; returned by series().
///
/// Polars, pandas, DuckDB and others read it as values(). A notebook shows the lasting changes. For fewer than six
/// builds, or with a base, it shows the frames with the largest steps instead.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Series {
    series: Arc<pprofdiff_series::Series>,
    /// The options that loaded the profiles. They are used again to determine causes. A pickle does not contain them.
    load: LoadOptions,
}

impl Series {
    /// Creates a series that reads its builds again with these options.
    pub fn of(series: Arc<pprofdiff_series::Series>, load: &LoadOptions) -> Series {
        Series { series, load: load.clone() }
    }

    /// Runs `f` on the series with the GIL released.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&pprofdiff_series::Series) -> T + Send + 'static,
    ) -> PyResult<T> {
        let series = self.series.clone();
        runtime::run(py, move || Ok(f(&series)))
    }

    fn table(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&pprofdiff_series::Series) -> EngineTable + Send + 'static,
    ) -> PyResult<Table> {
        Ok(Table::new(self.run(py, make)?))
    }

    fn all_values<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, Table>> {
        Bound::new(py, self.values(py, dense)?)
    }
}

/// Refuses all keywords. The options of a query apply to all builds, so the error names series(), which takes them.
fn refuse(method: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some((name, _)) = options.and_then(|options| options.iter().next()) else { return Ok(()) };
    let name: String = name.extract()?;
    let message = match Query::options().any(|option| option.name == name) {
        true => format!("{method}() has no {name}=, which applies to all builds; pass it to series(..., {name}=...)"),
        false => format!("{method}() got an unexpected keyword argument '{name}'"),
    };
    Err(PyTypeError::new_err(message))
}

#[pymethods]
impl Series {
    /// The builds in order, as a list of dicts. Keys: key, path, and either error (the reason why the build
    /// failed), or stacks, duration_nanos, time_nanos, total (before filters, normalized) and factor (by which
    /// its values were multiplied).
    #[getter]
    fn builds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (builds_json(&self.series.builds),))
    }

    /// The failed builds: their keys, with the reasons.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let errors = PyDict::new(py);
        self.series.builds.failed().try_for_each(|b| errors.set_item(&b.key, b.error.as_deref()))?;
        Ok(errors)
    }

    /// Return the values as a Table: one row per build and frame, build after build, with the values of top() of the
    /// build's profile.
    ///
    /// With `dense`, builds that lack a frame have rows with 0, up to 20 million rows. Columns: build (its key),
    /// build_number (its index in `builds`), name, file, line, mapping (None at granularities without them), flat and
    /// cum.
    #[pyo3(signature = (*, dense = false))]
    fn values(&self, py: Python<'_>, dense: bool) -> PyResult<Table> {
        let make = move |series: &pprofdiff_series::Series| match dense {
            true => EngineTable::dense_values_of(series),
            false => Ok(EngineTable::values_of(series)),
        };
        let series = self.series.clone();
        Ok(Table::new(runtime::run(py, move || make(&series))?))
    }

    /// Return the frames as a Table, ordered by the largest step of each frame: its change from one build to
    /// the next.
    ///
    /// `sort` is the cost that counts: "flat" (own cost) or "cum" (cost with callees). Columns: name, file, line,
    /// mapping, first_seen and last_seen (the keys of the first and last build with the frame, with their numbers),
    /// builds (the number of builds with the frame), and the columns of steps() for the largest step. `n` limits the
    /// rows.
    #[pyo3(
        signature = (n = None, *, sort = "flat", **options),
        text_signature = "($self, n=None, *, sort='flat')"
    )]
    fn movers(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        refuse("movers", options)?;
        let sort = parse_sort(py, sort)?;
        self.table(py, move |series| EngineTable::movers(&series.movers(sort), n.unwrap_or(usize::MAX)))
    }

    /// Return the lasting changes as a Table, largest first: for each, the build since which a frame costs more or
    /// less, beyond the usual variation between builds. `since` is the most likely first bad build.
    ///
    /// `sort` is the cost that counts: "flat" (own cost) or "cum" (cost with callees). Columns: name, file, line,
    /// mapping, kind ("step": the change stays; "passed": it went away again; "drift": it came gradually), since (the
    /// key of that build), earliest and latest (the range of builds that may have introduced the change),
    /// until (the first build without the change; for a drift the last build), before, after and delta (means),
    /// delta_low and delta_high (the 95 % interval of the delta), q (the share of false positives among changes that
    /// are at least as clear, at most 0.05), total_before (the mean total of the builds before the change) and cause.
    /// The number of a build is in an additional column, such as since_number. `n` limits the rows. With fewer than six
    /// builds, or with a base, the table is empty.
    ///
    /// With `explain`, the cause is the second column. It is determined from at most five builds before a change and
    /// five after it. Their profiles are read again from their paths, so bytes and objects raise PprofError.
    #[pyo3(
        signature = (n = None, *, sort = "flat", explain = false, **options),
        text_signature = "($self, n=None, *, sort='flat', explain=False)"
    )]
    fn shifts(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        explain: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        refuse("shifts", options)?;
        let (sort, series, load) = (parse_sort(py, sort)?, self.series.clone(), self.load.clone());
        let view = View::Shifts { sort, limit: n, explain: explain.then(ExplainOptions::default) };
        let answer = move || Request::default().asking(view).answer_series(&series, &load);
        match runtime::run(py, answer)? {
            Report::Table(mut table) => {
                if explain {
                    move_causes_first(&mut table);
                }
                Ok(Table::new(table))
            }
            _ => Err(error::message(py, "lasting changes are not a table")),
        }
    }

    /// Return all steps as a Table, largest first: the changes of a frame from one build to the next, or from
    /// the base to another build.
    ///
    /// Columns: name, file, line, mapping, from and to (the keys of the builds, with from_number and to_number),
    /// status, flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta and total_from (the total of the earlier
    /// build, which percentages refer to). `n` limits the rows.
    #[pyo3(
        signature = (n = None, *, sort = "flat", **options),
        text_signature = "($self, n=None, *, sort='flat')"
    )]
    fn steps(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        refuse("steps", options)?;
        let sort = parse_sort(py, sort)?;
        self.table(py, move |series| EngineTable::steps(&series.steps(sort), n.unwrap_or(usize::MAX)))
    }

    /// Explain why a build differs from the builds before it, or from the base. See Diff.explain().
    ///
    /// `build` is the key of the build. It defaults to the build of the largest lasting change, and if there is none,
    /// to the build of the largest step. In a history, at most `runs` builds before it are treated as runs of one
    /// program, and so are the build and the builds after it. Several runs show how much builds vary
    /// anyway. Without `build`, builds beyond another lasting change of similar size are not used.
    ///
    /// The profiles are read again from their paths. Bytes and objects raise PprofError, and so do the first build and
    /// failed builds.
    #[pyo3(signature = (
        build = None, *, runs = 5, min_effect = 0.002, **options
    ))]
    #[allow(clippy::too_many_arguments)]
    fn explain(
        &self,
        py: Python<'_>,
        build: Option<&str>,
        runs: usize,
        min_effect: f64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Explanation>> {
        let builds = &self.series.builds.all;
        let missing = |key| error::message(py, &format!("unknown build {key:?}"));
        let index =
            build.map(|key| builds.iter().position(|b| b.key == key).ok_or_else(|| missing(key))).transpose()?;
        let load = match options.is_some_and(|options| !options.is_empty()) {
            true => without_base(py, &loading(options)?)?,
            false => self.load.clone(),
        };
        let series = self.series.clone();
        let explanation = runtime::run(py, move || {
            let point = match index {
                Some(index) => series.change_point(index, runs)?,
                None => series
                    .largest_change(Sort::Flat, runs)
                    .ok_or_else(|| pprofdiff::Error::query("no build changed anything"))?,
            };
            let explanation = series.explain(&point, &load, &explain::options(None, min_effect))?;
            Explanation::new(Report::Explain(Box::new(explanation)))
        })?;
        Py::new(py, explanation)
    }

    /// Return a self-contained HTML page: charts of each frame over the builds, and for each change, flame
    /// graphs and tables of the builds before and after it.
    ///
    /// The page has the first `n` rows of shifts(), at most 500; for fewer than six builds or with a base, it has rows
    /// of movers(). The twelve largest changes have flame graphs. The builds around them are read again from their
    /// paths, so bytes and objects raise PprofError.
    #[pyo3(signature = (*, n = None, sort = "flat"))]
    fn to_html(&self, py: Python<'_>, n: Option<usize>, sort: &str) -> PyResult<String> {
        let (sort, series, load) = (parse_sort(py, sort)?, self.series.clone(), self.load.clone());
        let lasting = series.is_history();
        let view = View::extension(TimelinesView { lasting, sort, limit: n, options: PageOptions::default() });
        let answer = move || Request::default().asking(view).answer_series(&series, &load);
        let page: Option<Page> = match runtime::run(py, answer)? {
            Report::Document(document) => document.downcast(),
            _ => None,
        };
        page.map(|page| page.html).ok_or_else(|| error::message(py, "a series has no page"))
    }

    /// Write to_html() to a path.
    #[pyo3(signature = (path, *, n = None, sort = "flat"))]
    fn save_html(&self, py: Python<'_>, path: PathBuf, n: Option<usize>, sort: &str) -> PyResult<()> {
        save(py, path, self.to_html(py, n, sort)?)
    }

    /// Draw at most `n` frames over the builds as a line chart, with a rule at each lasting change. The frames
    /// are the first rows of shifts(), or of movers() if there are no shifts. `sort` is the cost to draw:
    /// "flat" (own cost) or "cum" (cost with callees). Returns the same kind of object as Table.plot().
    #[pyo3(signature = (n = 8, *, sort = "flat"))]
    fn plot<'py>(&self, py: Python<'py>, n: usize, sort: &str) -> PyResult<Bound<'py, PyAny>> {
        let sort = parse_sort(py, sort)?;
        chart(py, &self.run(py, move |series| series_chart(series, sort, n))?)
    }

    /// Return values() as a polars.DataFrame, see Table.to_polars(); `dense` as in values().
    #[pyo3(signature = (*, dense = false))]
    fn to_polars<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, PyAny>> {
        self.all_values(py, dense)?.call_method0("to_polars")
    }

    /// Return values() as a pandas.DataFrame, see Table.to_pandas(); `dense` as in values().
    #[pyo3(signature = (*, dense = false))]
    fn to_pandas<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, PyAny>> {
        self.all_values(py, dense)?.call_method0("to_pandas")
    }

    /// Return values() as an Arrow stream, see Table.__arrow_c_stream__().
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.all_values(py, false)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |series| series_html(series, Sort::Flat, ROWS_SHOWN))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |series| {
            let table = match series.is_history() {
                true => EngineTable::shifts(&series.shifts(Sort::Flat), ROWS_SHOWN, &[]),
                false => EngineTable::movers(&series.movers(Sort::Flat), ROWS_SHOWN),
            };
            text(|out| table.write_text(out, TextOptions::default())).trim_end().to_owned()
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let py = slf.py();
        pickled(py, "_rebuild_series", slf.get().run(py, serde_json::to_vec)?)
    }
}

#[pyfunction(name = "_rebuild_series")]
pub fn rebuild_series(bytes: &[u8]) -> PyResult<Series> {
    let series = Arc::new(serde_json::from_slice(bytes).map_err(error::pickle)?);
    Ok(Series { series, load: LoadOptions::default() })
}

/// The question to answer for each build.
struct SeriesQuestion {
    query: Query,
    options: SeriesOptions,
    raise: bool,
    /// The folder of the repository whose history orders the builds.
    repository: Option<PathBuf>,
}

/// Orders builds by the history of their commits, oldest first, and returns the options with the commits' subjects.
fn order_by_commits(
    py: Python<'_>,
    repository: &Path,
    builds: &mut [(String, Source)],
    options: SeriesOptions,
) -> PyResult<SeriesOptions> {
    let keys: Vec<String> = builds.iter().map(|(key, _)| key.clone()).collect();
    let folder = repository.to_owned();
    let names = keys.clone();
    let places = py.detach(move || pprofdiff_cli::commit_places(&folder, &names));
    let places = places.map_err(|reason| error::message(py, &reason))?;
    let commits: HashMap<&String, _> = keys.iter().zip(&places).collect();
    builds.sort_by_key(|(key, _)| commits.get(key).map(|(position, _)| *position));
    let subjects: HashMap<String, String> =
        keys.iter().zip(&places).map(|(key, (_, subject))| (key.clone(), subject.clone())).collect();
    Ok(options.with_order(BuildOrder::Commits).with_subjects(subjects))
}

/// Loads several histories.
fn histories(py: Python<'_>, pattern: &Path, group: &str, question: SeriesQuestion) -> PyResult<Histories> {
    let engine = |e| error::from_engine(py, &e);
    let load = question.options.load.clone();
    let listed = ListedUrls::new(py, &[pattern])?;
    let finder = Finder::with_objects(&listed);
    let mut all = finder.build_groups(&pattern.to_string_lossy(), group, &load).map_err(engine)?;
    let mut options = question.options.with_order(BuildOrder::Key);
    if let Some(repository) = &question.repository {
        let mut builds: Vec<_> = all.groups.iter().flat_map(|group| group.builds.clone()).collect();
        options = order_by_commits(py, repository, &mut builds, options)?;
        let places: HashMap<&String, usize> = builds.iter().enumerate().map(|(i, (key, _))| (key, i)).collect();
        for group in &mut all.groups {
            group.builds.sort_by_key(|(key, _)| places.get(key).copied());
        }
    }
    for (_, source) in all.groups.iter_mut().flat_map(|group| &mut group.builds) {
        if let Some(url) = source.path().and_then(Path::to_str).filter(|url| listed.has(url)).map(str::to_owned) {
            *source = source::source(PyString::new(py, &url).as_any())?;
        }
    }
    let query = question.query;
    let histories = runtime::run(py, move || {
        pprofdiff_series::histories::Histories::load(
            all.keys,
            all.groups,
            &query,
            Sort::Flat,
            |_| Ok(options.clone()),
            || (),
        )
    })?;
    let failed_histories = histories.failed.iter().map(|failed| &*failed.cause);
    let failed_builds = histories.all.iter().flat_map(|history| history.series.errors()).map(|(_, e)| e);
    match failed_histories.chain(failed_builds).next().filter(|_| question.raise) {
        Some(e) => Err(error::from_engine(py, e)),
        None => Histories::new(py, histories, &load),
    }
}

/// The key of a build, with its source or the error message of the caller's own reader.
type Item = (String, Result<Source, String>);

/// Converts one profile. An object of a wrong type is the caller's mistake, and raises. A profile that can't be read
/// becomes a failed build.
fn item(key: String, object: &Bound<'_, PyAny>) -> PyResult<Item> {
    match source::source(object) {
        Ok(source) => Ok((key, Ok(source))),
        Err(e) if is_mistake(object.py(), &e) => Err(e),
        Err(e) => Ok((key, Err(e.value(object.py()).str()?.to_string()))),
    }
}

fn is_mistake(py: Python<'_>, e: &PyErr) -> bool {
    !e.is_instance_of::<PyException>(py) || e.is_instance_of::<PyTypeError>(py) || e.is_instance_of::<PyImportError>(py)
}

/// Returns the path or URL, if the object is one.
fn path(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    match object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
        true => Ok(Some(object.extract()?)),
        false => Ok(None),
    }
}

/// Returns the keys of a list of paths: the differing parts of the paths, which depend on the whole
/// list. Returns `None` for other iterables, in which [`key_of`] determines the key of each item alone.
fn path_keys(profiles: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    if !profiles.is_instance_of::<PyList>() && !profiles.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for object in profiles.try_iter()? {
        let Some(path) = path(&object?)? else { return Ok(None) };
        paths.push(path);
    }
    Ok(Some(pprofdiff::input::file_builds(&paths).into_iter().map(|(key, _)| key).collect()))
}

/// Returns the key of a profile: from the caller's function or, without one, the Profile's name, the
/// path, or the item's number, counted from 0.
fn key_of(object: &Bound<'_, PyAny>, key: Option<&Bound<'_, PyAny>>, number: usize) -> PyResult<String> {
    if let Some(key) = key {
        return Ok(key.call1((object,))?.str()?.to_string());
    }
    if let Ok(profile) = object.cast::<Profile>() {
        return Ok(profile.get().profile.name().to_owned());
    }
    Ok(path(object)?
        .map_or_else(|| number.to_string(), |p| pprofdiff::text::redacted(&p.to_string_lossy()).into_owned()))
}

/// Loads the builds of a store, ordered by key. The store caches the values of builds, so most
/// queries read only the profiles of new builds.
fn from_store(
    py: Python<'_>,
    base: Option<Item>,
    stored: StoreSelection,
    question: SeriesQuestion,
) -> PyResult<Series> {
    let SeriesQuestion { query, mut options, raise, .. } = question;
    options.order = BuildOrder::Key;
    let load = options.load.clone();
    let base = base.and_then(|(key, source)| Some((key, source.ok()?)));
    let series = runtime::run(py, move || {
        pprofdiff_series::Series::load(base.into_iter().chain(stored.builds()?), &query, &options)
    })?;
    finished(py, series, raise, load)
}

fn finished(py: Python<'_>, series: pprofdiff_series::Series, raise: bool, load: LoadOptions) -> PyResult<Series> {
    match series.errors().first().filter(|_| raise) {
        Some((_, e)) => Err(error::from_engine(py, e)),
        None => Ok(Series { series: Arc::new(series), load }),
    }
}

/// Loads the builds in windows, so that an iterable is read only a little ahead, and combines them.
fn gather(
    py: Python<'_>,
    base: Option<Item>,
    profiles: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    mut question: SeriesQuestion,
) -> PyResult<Series> {
    let engine = |e| error::from_engine(py, &e);
    if let Some(store_path) = path(profiles)?
        && let Some(stored) = StoreSelection::named(&store_path).map_err(engine)?
    {
        return match key {
            None => from_store(py, base, stored, question),
            Some(_) => Err(error::message(py, "the builds of a store already have keys, so key= is not supported")),
        };
    }
    let load = question.options.load.clone();
    let mut items: Box<dyn Iterator<Item = PyResult<Item>>> = if let Ok(pattern) = profiles.extract::<String>() {
        question.options.order = BuildOrder::Key;
        let listed = ListedUrls::new(py, &[pattern.as_ref()])?;
        let finder = Finder::with_objects(&listed);
        // A function decides itself which part of the path is the build.
        let is_history = key.is_none() && base.is_none();
        let builds = if is_history { finder.history(&pattern) } else { finder.builds(&pattern) };
        let mut builds = builds.map_err(engine)?;
        if let Some(key) = key {
            for (name, source) in &mut builds {
                if let Source::Path(path) = source {
                    // A pathlib.Path would change `s3://b/x` to `s3:/b/x`.
                    let called = match path.to_str().filter(|url| listed.has(url)) {
                        Some(url) => key.call1((url,)),
                        None => key.call1((path.as_path(),)),
                    };
                    *name = called?.str()?.to_string();
                }
            }
            pprofdiff::input::sort_builds(&mut builds);
        }
        if let Some(repository) = &question.repository {
            question.options = order_by_commits(py, repository, &mut builds, question.options)?;
        }
        Box::new(builds.into_iter().map(move |(key, source)| match source.path().and_then(Path::to_str) {
            Some(url) if listed.has(url) => item(key, PyString::new(py, url).as_any()),
            _ => Ok((key, Ok(source))),
        }))
    } else if profiles.is_instance_of::<PyBytes>() || profiles.cast::<Profile>().is_ok() || path(profiles)?.is_some() {
        return Err(PyTypeError::new_err("profiles must be an iterable, a pattern, or a selection of a store"));
    } else {
        if question.repository.is_some() {
            return Err(error::message(py, "git needs a pattern, whose * is the commit of a build"));
        }
        let keys = if key.is_none() { path_keys(profiles)? } else { None };
        Box::new(profiles.try_iter()?.enumerate().map(move |(i, object)| {
            let object = object?;
            let key = match keys.as_ref().and_then(|keys| keys.get(i)) {
                Some(key) => key.clone(),
                None => key_of(&object, key, i)?,
            };
            item(key, &object)
        }))
    };
    let mut builder = SeriesBuilder::new(&question.query, &question.options).map_err(engine)?;
    let window = 4 * runtime::pool(py)?.current_num_threads();
    let mut base = base;
    loop {
        let mut next: Vec<Item> = base.take().into_iter().collect();
        // Does not use `collect`, see `source::sources`.
        for item in items.by_ref().take(window) {
            next.push(item?);
        }
        let window = next;
        if window.is_empty() {
            break;
        }
        let raise = question.raise;
        let (back, failed) = runtime::run(py, move || {
            let mut sources = Vec::with_capacity(window.len());
            for (key, source) in window {
                match source {
                    Ok(source) => sources.push((key, source)),
                    Err(reason) => {
                        builder.add(&std::mem::take(&mut sources))?;
                        builder.add_failed(key, &reason)?;
                    }
                }
            }
            builder.add(&sources)?;
            let failed = raise && builder.has_failed();
            Ok((builder, failed))
        })?;
        builder = back;
        if failed {
            break;
        }
    }
    let series = runtime::run(py, move || builder.finish())?;
    finished(py, series, question.raise, load)
}

/// Follow frames along a history of builds, or compare many builds with one base.
///
/// `profiles` is an iterable of anything that load() accepts, oldest first, or a pattern, or a selection of a store.
/// For a pattern such as "builds/*/cpu.pb.gz", the text that * matches is the key of a build, and builds are sorted by
/// key (numbers in keys compare as numbers). For a selection of a store such as "fleet/service=api", the builds are the
/// values of the remaining key. `key` is a function that returns a build's key for an item of `profiles` or, for a
/// pattern, for a path or URL. By default, the key in a list of paths is the differing part of the paths; for
/// other items it is the path, the Profile's name or the item's number. Loaded profiles are not kept in
/// memory, and an iterable is read a few items ahead.
///
/// With `group`, several histories are followed, such as one per service: series("runs/*/*.pb.gz",
/// group="service={1},build={2}") returns Histories. {1} is the text that the first wildcard matched. The key "build",
/// or else the last key, is the build. A pattern with several parts that vary needs it.
///
/// With `git`, the keys of the builds are commits, and builds are ordered by the history of the repository in this
/// folder. The build that a change came with then has the subject of its commit in `builds`.
///
/// Each build is compared with the previous build, or with `base` if it is given. `base` is anything that load()
/// accepts. Its key is "base", and an error in it is raised.
///
/// A build that can't be loaded, or that lacks the sample type, is listed in `errors` with the reason, and does not
/// affect the other builds. With on_error="raise" its error is raised. For the other keywords see load() and Views.
/// `sample_type` (a single one) defaults to the default type of the first build that loads, and units are converted to
/// the finest. `normalize` scales all builds to the first build, by "total" or "duration".
///
/// Raises PprofError for a question that can't be answered, and the error of the first build if all builds fail.
#[pyfunction]
#[pyo3(signature = (
    profiles, key = None, *, base = None, group = None, git = None, on_error = "collect", **options
))]
#[allow(clippy::too_many_arguments)]
pub fn series(
    py: Python<'_>,
    profiles: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    base: Option<&Bound<'_, PyAny>>,
    group: Option<&str>,
    git: Option<PathBuf>,
    on_error: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let load = without_base(py, &take_loading(options)?)?;
    let query = view_query(py, &Query::default(), options)?;
    check_one_type(py, &query, "series()")?;
    let raise = match on_error {
        "collect" => false,
        "raise" => true,
        _ => return Err(error::message(py, &format!("on_error must be 'collect' or 'raise', not {on_error:?}"))),
    };
    let against = if base.is_some() { Against::First } else { Against::Previous };
    let options = SeriesOptions::default()
        .with_load(load)
        .with_against(against)
        .with_order(BuildOrder::Given)
        .with_known(&StoreColumns);
    let base = base.map(|base| Ok::<_, PyErr>(("base".to_owned(), Ok(source::source(base)?)))).transpose()?;
    if base.is_some() && (group.is_some() || git.is_some()) {
        return Err(error::message(py, "group and git order builds as histories, so base is not supported"));
    }
    let question = SeriesQuestion { query, options, raise, repository: git };
    if let Some(group) = group {
        return match path(profiles)? {
            Some(pattern) if key.is_none() => histories(py, &pattern, group, question)?.into_py_any(py),
            _ => Err(error::message(py, "group needs a pattern or a manifest, without key")),
        };
    }
    gather(py, base, profiles, key, question)?.into_py_any(py)
}
