//! `series`: many builds, frame by frame.

use pprofdiff::explain::ExplainOptions;
use pprofdiff::input::{Finder, Objects};
use pprofdiff::series::{Against, Order, SeriesBuilder, SeriesOptions};
use pprofdiff::store::Selection;
use pprofdiff::{LoadOptions, Query, Sort, Source};
use pprofdiff_report::{
    PageOptions, Report, Request, Table as EngineTable, TextOptions, View, builds_json, series_chart, series_html,
};
use pyo3::exceptions::{PyException, PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::explain::Explanation;
use crate::flamegraph::save;
use crate::listed::Listed;
use crate::options::{check_one_type, loading, parse_sort, take_loading, view_query, without_base};
use crate::profile::{Pickled, Profile, pickled};
use crate::table::{ROWS_SHOWN, Table, chart, text};
use crate::{error, explain, runtime, source};

/// Many builds, frame by frame: made by series().
///
/// Read by polars, pandas, DuckDB and others as values(). A notebook shows what changed for good, or the frames that
/// moved most of fewer than six builds and against a base.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Series {
    series: Arc<pprofdiff::series::Series>,
    /// How its profiles were loaded, and are again where causes are asked for. A pickle does not keep it.
    load: LoadOptions,
}

impl Series {
    /// Works on the series with the GIL released.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&pprofdiff::series::Series) -> T + Send + 'static,
    ) -> PyResult<T> {
        let series = self.series.clone();
        runtime::run(py, move || Ok(f(&series)))
    }

    fn table(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&pprofdiff::series::Series) -> EngineTable + Send + 'static,
    ) -> PyResult<Table> {
        Ok(Table::new(self.run(py, make)?))
    }

    fn all_values<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, Table>> {
        Bound::new(py, self.values(py, dense)?)
    }
}

#[pymethods]
impl Series {
    /// The builds in their order, each a dict: key, path, and either error (why it has no values), or stacks,
    /// duration_nanos, time_nanos, total (before filters, and normalized) and factor (what its values were
    /// multiplied by).
    #[getter]
    fn builds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (builds_json(&self.series.builds),))
    }

    /// The builds that have no values: their keys, and why.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let errors = PyDict::new(py);
        self.series.builds.failed().try_for_each(|b| errors.set_item(&b.key, b.error.as_deref()))?;
        Ok(errors)
    }

    /// The table itself: one row a build and frame that it has, build after build, each as top() of its profile.
    ///
    /// `dense` has a row for each build and frame, with 0 where a build does not have the frame: at most 20 million
    /// rows. Columns: build (its key), build_number (its index in `builds`), name, file, line, mapping (None where
    /// the granularity has none), flat, cum.
    #[pyo3(signature = (*, dense = false))]
    fn values(&self, py: Python<'_>, dense: bool) -> PyResult<Table> {
        let make = move |series: &pprofdiff::series::Series| match dense {
            true => EngineTable::dense_values_of(series),
            false => Ok(EngineTable::values_of(series)),
        };
        let series = self.series.clone();
        Ok(Table::new(runtime::run(py, move || make(&series))?))
    }

    /// The frames, ordered by the largest step of each: by how much it changed from one build to another.
    ///
    /// `sort` is what steps are of: "flat" (own cost) or "cum" (with what is called). Columns: name, file, line,
    /// mapping, first_seen and last_seen (the keys of the first and last build that have the frame, with their
    /// numbers), builds (how many have it), and of its largest step those of steps(). `n` rows, or all.
    #[pyo3(signature = (n = None, *, sort = "flat"))]
    fn movers(&self, py: Python<'_>, n: Option<usize>, sort: &str) -> PyResult<Table> {
        let sort = parse_sort(py, sort)?;
        self.table(py, move |series| EngineTable::movers(&series.movers(sort), n.unwrap_or(usize::MAX)))
    }

    /// From which build on a frame costs something else, beyond what builds differ by anyway: the first bad one.
    ///
    /// `sort` is the cost: "flat" (own) or "cum" (with what is called). Columns: name, file, line, mapping, kind
    /// ("step": it stays; "passed": it went away again; "drift": it came bit by bit), since (the key of the first
    /// build that has it), earliest and latest (the builds that it may as well have come with), until (the first build
    /// that it is gone from; of a drift the last), before, after and delta (of the mean), delta_low and delta_high
    /// (where the delta lies at 95 %), q (the part of false ones among what is as clear, to be 0.05 at most),
    /// total_before, and cause. A build's number is beside its key, such as since_number. The largest first; `n` rows,
    /// or all. None of fewer than six builds, or against a base.
    ///
    /// With `explain` causes are looked for, between at most five builds before a change and five after: their
    /// profiles are read again from their paths; of others (bytes, objects) it raises PprofError.
    #[pyo3(signature = (n = None, *, sort = "flat", explain = false))]
    fn shifts(&self, py: Python<'_>, n: Option<usize>, sort: &str, explain: bool) -> PyResult<Table> {
        let (sort, series, load) = (parse_sort(py, sort)?, self.series.clone(), self.load.clone());
        let view = View::Shifts { sort, limit: n, explain: explain.then(ExplainOptions::default) };
        let answer = move || Request::default().asking(view).answer_series(&series, &load);
        match runtime::run(py, answer)? {
            Report::Table(table) => Ok(Table::new(table)),
            _ => Err(error::message(py, "lasting changes are no table")),
        }
    }

    /// All steps that change something, the largest first: how a frame changed from one build to the next, or from
    /// the base to one of the others.
    ///
    /// Columns: name, file, line, mapping, from and to (the builds' keys, with from_number and to_number), status,
    /// flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta, and total_from, the earlier build's total, of
    /// which percentages are. `n` rows, or all.
    #[pyo3(signature = (n = None, *, sort = "flat"))]
    fn steps(&self, py: Python<'_>, n: Option<usize>, sort: &str) -> PyResult<Table> {
        let sort = parse_sort(py, sort)?;
        self.table(py, move |series| EngineTable::steps(&series.steps(sort), n.unwrap_or(usize::MAX)))
    }

    /// Why a build differs: of a history from those before it, at most `runs` of them, which are taken for runs
    /// of one program, as are it and those after it; of builds against a base from the base. Several runs show how
    /// much builds differ anyway. `build` is its key; unless given, that of the largest lasting change, between
    /// which and others no build is taken, or else of the largest step. See Diff.explain().
    ///
    /// The profiles are read again from their paths: of others (bytes, objects) it raises PprofError, as for the
    /// first build and one without values.
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
        let missing = |key| error::message(py, &format!("there is no build {key:?}"));
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
                    .ok_or_else(|| pprofdiff::Error::query("nothing ever changed"))?,
            };
            let explanation = series.explain(&point, &load, &explain::options(None, min_effect))?;
            Explanation::new(&Report::Explain(Box::new(explanation)))
        })?;
        Py::new(py, explanation)
    }

    /// The page for a browser, one file that needs nothing else: the course of each frame, and for the build of each
    /// change flame graphs and tables of before and after.
    ///
    /// Of the first `n` of shifts() (movers() of fewer than six builds, or against a base), 500 at most; the twelve
    /// largest changes have graphs. The builds around them are read again from their paths: of others (bytes,
    /// objects) it raises PprofError.
    #[pyo3(signature = (*, n = None, sort = "flat"))]
    fn to_html(&self, py: Python<'_>, n: Option<usize>, sort: &str) -> PyResult<String> {
        let (sort, series, load) = (parse_sort(py, sort)?, self.series.clone(), self.load.clone());
        let view = View::Timelines { lasting: series.is_history(), sort, limit: n, options: PageOptions::default() };
        let answer = move || Request::default().asking(view).answer_series(&series, &load);
        match runtime::run(py, answer)? {
            Report::Page(page) => Ok(page.html),
            _ => Err(error::message(py, "a series has no page")),
        }
    }

    /// Writes to_html() to a path.
    #[pyo3(signature = (path, *, n = None, sort = "flat"))]
    fn save_html(&self, py: Python<'_>, path: PathBuf, n: Option<usize>, sort: &str) -> PyResult<()> {
        save(py, path, self.to_html(py, n, sort)?)
    }

    /// The courses of at most `n` frames over the builds, as lines with a rule at each lasting change: of the first
    /// rows of shifts(), or of movers() where there are none. `sort` is what is drawn: "flat" (own cost) or "cum" (with
    /// what is called). The result is that of Table.plot().
    #[pyo3(signature = (n = 8, *, sort = "flat"))]
    fn plot<'py>(&self, py: Python<'py>, n: usize, sort: &str) -> PyResult<Bound<'py, PyAny>> {
        let sort = parse_sort(py, sort)?;
        chart(py, &self.run(py, move |series| series_chart(series, sort, n))?)
    }

    /// values() as a polars.DataFrame, see Table.to_polars(); `dense` as in values().
    #[pyo3(signature = (*, dense = false))]
    fn to_polars<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, PyAny>> {
        self.all_values(py, dense)?.call_method0("to_polars")
    }

    /// values() as a pandas.DataFrame, see Table.to_pandas(); `dense` as in values().
    #[pyo3(signature = (*, dense = false))]
    fn to_pandas<'py>(&self, py: Python<'py>, dense: bool) -> PyResult<Bound<'py, PyAny>> {
        self.all_values(py, dense)?.call_method0("to_pandas")
    }

    /// values() as an Arrow stream, see Table.__arrow_c_stream__().
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

/// What is asked of each build.
struct Question {
    query: Query,
    options: SeriesOptions,
    raise: bool,
}

/// A build's source, or what the caller's own reading of it said.
type Item = (String, Result<Source, String>);

/// Reads one profile. What is no profile at all is the caller's mistake; what can't be read is that build's.
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

/// The text of a path or URL.
fn path(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    match object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
        true => Ok(Some(object.extract()?)),
        false => Ok(None),
    }
}

/// The keys of a list of paths; of other things none, since a key of theirs does not depend on the others.
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

/// What the caller calls a profile; otherwise the path, the Profile's name, or its number from 0.
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

/// The builds of a store, in the order of their keys: what was read of them before is kept there.
fn of_store(py: Python<'_>, base: Option<Item>, stored: Selection, question: Question) -> PyResult<Series> {
    let Question { query, mut options, raise } = question;
    options.order = Order::Key;
    let load = options.load.clone();
    let base = base.and_then(|(key, source)| Some((key, source.ok()?)));
    let series = runtime::run(py, move || {
        pprofdiff::series::Series::load(base.into_iter().chain(stored.builds()?), &query, &options)
    })?;
    finished(py, series, raise, load)
}

fn finished(py: Python<'_>, series: pprofdiff::series::Series, raise: bool, load: LoadOptions) -> PyResult<Series> {
    match series.errors().first().filter(|_| raise) {
        Some((_, e)) => Err(error::from_engine(py, e)),
        None => Ok(Series { series: Arc::new(series), load }),
    }
}

/// Loads builds a window at a time, so that an iterable is read no further ahead, and brings them together.
fn gather(
    py: Python<'_>,
    base: Option<Item>,
    profiles: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    mut question: Question,
) -> PyResult<Series> {
    let engine = |e| error::from_engine(py, &e);
    if let Some(of) = path(profiles)?
        && let Some(stored) = Selection::named(&of).map_err(engine)?
    {
        return match key {
            None => of_store(py, base, stored, question),
            Some(_) => Err(error::message(py, "the builds of a store have keys, so it takes no key")),
        };
    }
    let load = question.options.load.clone();
    let mut items: Box<dyn Iterator<Item = PyResult<Item>>> = if let Ok(pattern) = profiles.extract::<String>() {
        question.options.order = Order::Key;
        let listed = Listed::new(py, &[pattern.as_ref()])?;
        let mut builds = Finder::with_objects(&listed).builds(&pattern).map_err(engine)?;
        if let Some(key) = key {
            for (name, source) in &mut builds {
                if let Source::Path(path) = source {
                    *name = key.call1((path.as_path(),))?.str()?.to_string();
                }
            }
            pprofdiff::input::sort_builds(&mut builds);
        }
        Box::new(builds.into_iter().map(move |(key, source)| match source.path().and_then(Path::to_str) {
            Some(url) if listed.has(url) => item(key, PyString::new(py, url).as_any()),
            _ => Ok((key, Ok(source))),
        }))
    } else if profiles.is_instance_of::<PyBytes>() || profiles.cast::<Profile>().is_ok() || path(profiles)?.is_some() {
        return Err(PyTypeError::new_err("profiles are given as an iterable, a pattern, or a part of a store"));
    } else {
        let known = if key.is_none() { path_keys(profiles)? } else { None };
        Box::new(profiles.try_iter()?.enumerate().map(move |(i, object)| {
            let object = object?;
            let key = match known.as_ref().and_then(|keys| keys.get(i)) {
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
        // Not collected: see `source::sources`.
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
/// `profiles` is an iterable of whatever load() takes, oldest first, or a pattern: of "builds/*/cpu.pb.gz" what *
/// stands for is the build's key, and keys order the builds (numbers in them count as numbers); or a part of a store,
/// "fleet/service=api", with the values of the key that is left. `key` gives a
/// build's key, from an item of `profiles` or, for a pattern, from a path; unless given it is what tells paths
/// from each other, or the item's number. Loaded profiles do not stay in memory, and an iterable is read a few
/// items ahead.
///
/// Each build is compared with the one before it; given `base`, which is whatever load() takes and has the key "base",
/// with that one, whose error is raised.
///
/// A build that can't be loaded, or does not have the sample type, is in `errors` with its reason and stops
/// nothing; with on_error="raise" its error is raised. The other keywords are those of load() and of Views:
/// `sample_type` (one) is unless given the default one of the first build that loads, and units are converted to the
/// finest; `normalize` scales all builds to the first, by "total" or "duration".
///
/// Raises PprofError for a question that can't be answered, and the error of the first build if none loads.
#[pyfunction]
#[pyo3(signature = (
    profiles, key = None, *, base = None, on_error = "collect", **options
))]
#[allow(clippy::too_many_arguments)]
pub fn series(
    py: Python<'_>,
    profiles: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    base: Option<&Bound<'_, PyAny>>,
    on_error: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Series> {
    let load = without_base(py, &take_loading(options)?)?;
    let query = view_query(py, &Query::default(), options)?;
    check_one_type(py, &query, "series()")?;
    let raise = match on_error {
        "collect" => false,
        "raise" => true,
        _ => return Err(error::message(py, &format!("on_error is 'collect' or 'raise', not {on_error:?}"))),
    };
    let against = if base.is_some() { Against::First } else { Against::Previous };
    let options = SeriesOptions::default().with_load(load).with_against(against).with_order(Order::Given);
    let base = base.map(|base| Ok::<_, PyErr>(("base".to_owned(), Ok(source::source(base)?)))).transpose()?;
    gather(py, base, profiles, key, Question { query, options, raise })
}
