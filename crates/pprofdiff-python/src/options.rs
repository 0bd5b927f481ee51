//! The keywords that all views take, and those that say how profiles are loaded: the rows of the engine's tables. One place
//! reads them, for Profile and Diff, for series and for batches; the stub has them as TypedDicts.

use std::path::PathBuf;

use pprofdiff::list::SourceDirs;
use pprofdiff::loading::Loading;
use pprofdiff::options::{Heading, OptionKind, OptionRow, OptionValue};
use pprofdiff::{Compression, Granularity, LoadOptions, Normalize, Query, Sort, WriteOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::error;

/// The first line of a docstring, as CPython reads it for `inspect.signature`: what a notebook completes are the names of the
/// tables' rows, and not `**options`.
macro_rules! signature {
    (query $before:literal) => {
        concat!($before, pprofdiff::query_keywords!(), pprofdiff::filter_keywords!(), ", **options)\n--\n\n")
    };
    (filters $before:literal) => {
        concat!($before, pprofdiff::filter_keywords!(), ", **filters)\n--\n\n")
    };
    (loading $before:literal) => {
        concat!($before, pprofdiff::loading_keywords!(), ", **options)\n--\n\n")
    };
}
pub(crate) use signature;

/// An argument that may be one value or a list of them.
#[derive(FromPyObject)]
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

pub fn all<T>(given: Option<OneOrMore<T>>) -> Vec<T> {
    given.map_or_else(Vec::new, OneOrMore::into_vec)
}

pub fn parse_sort(py: Python<'_>, sort: &str) -> PyResult<Sort> {
    match sort {
        "flat" => Ok(Sort::Flat),
        "cum" => Ok(Sort::Cum),
        _ => Err(error::message(py, &format!("sort is 'flat' or 'cum', not {sort:?}"))),
    }
}

/// "total", "duration", a factor, or None.
pub fn parse_normalize(how: Option<&Bound<'_, PyAny>>) -> PyResult<Normalize> {
    let Some(how) = how.filter(|how| !how.is_none()) else { return Ok(Normalize::None) };
    match how.extract::<f64>() {
        Ok(factor) => Ok(Normalize::Factor(factor)),
        Err(_) => how.extract::<&str>()?.parse().map_err(|e| error::from_engine(how.py(), &e)),
    }
}

/// A value as an option takes it.
fn value_of(kind: &OptionKind, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    Ok(match kind {
        OptionKind::Flag => OptionValue::Flag(value.extract()?),
        OptionKind::Count => OptionValue::Texts(vec![value.extract::<u64>()?.to_string()]),
        OptionKind::Number if is_number => OptionValue::Texts(vec![value.extract::<f64>()?.to_string()]),
        OptionKind::Texts(_) => OptionValue::Texts(value.extract::<OneOrMore<String>>()?.into_vec()),
        OptionKind::Paths => OptionValue::Paths(value.extract::<OneOrMore<PathBuf>>()?.into_vec()),
        _ => OptionValue::Texts(vec![value.extract()?]),
    })
}

/// Sets options that are given as keywords, of which None leaves what is asked already.
fn set_options<T>(
    given: Option<&Bound<'_, PyDict>>,
    options: &[OptionRow<T>],
    mut set: impl FnMut(OptionRow<T>, OptionValue) -> pprofdiff::Result<()>,
) -> PyResult<()> {
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(option) = options.iter().find(|option| option.name == name) else {
            let known = options.iter().map(|option| option.name).collect::<Vec<_>>().join(", ");
            return Err(PyTypeError::new_err(format!("there is no option {name:?}; there are {known}")));
        };
        if !value.is_none() {
            let py = value.py();
            set(*option, value_of(&(option.kind)(), &value)?).map_err(|e| error::from_engine(py, &e))?;
        }
    }
    Ok(())
}

/// Sets some of a query's options, which are given as keywords.
pub fn set_query(
    py: Python<'_>,
    query: &mut Query,
    given: Option<&Bound<'_, PyDict>>,
    takes: impl Fn(&OptionRow<Query>) -> bool,
) -> PyResult<()> {
    let options: Vec<_> = Query::options().filter(takes).collect();
    set_options(given, &options, |option, value| query.set(option, value))?;
    query.filters.check().map_err(|e| error::from_engine(py, &e))
}

/// What the keywords of a view say, on top of what is asked already.
pub fn view_query(py: Python<'_>, query: &Query, given: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
    let mut query = query.clone();
    set_query(py, &mut query, given, |_| true)?;
    Ok(query)
}

/// As [`view_query`], of a view that has one granularity.
pub fn view_query_by(
    py: Python<'_>,
    query: &Query,
    view: &str,
    granularity: Granularity,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Query> {
    if given.is_some_and(|given| given.contains("granularity").unwrap_or(false)) {
        let rows = granularity.name();
        return Err(PyTypeError::new_err(format!("{view}() shows {rows}, so it takes no granularity")));
    }
    Ok(view_query(py, query, given)?.with_granularity(granularity))
}

/// True for the options that filter() takes.
pub fn is_filter(option: &OptionRow<Query>) -> bool {
    option.heading == Heading::Filters
}

/// Refuses several sample types.
pub fn check_one_type(py: Python<'_>, query: &Query, what: &str) -> PyResult<()> {
    match query.extra_sample_types.is_empty() {
        true => Ok(()),
        false => Err(error::message(py, &format!("{what} takes one sample type"))),
    }
}

/// How to load, as keywords say it.
pub fn loading(given: Option<&Bound<'_, PyDict>>) -> PyResult<Loading> {
    let mut loading = Loading::default();
    let options: Vec<_> = Loading::options().collect();
    set_options(given, &options, |option, value| option.set(&mut loading, value))?;
    Ok(loading)
}

/// As [`loading`], of keywords among which are others: takes its own out of them.
pub fn take_loading(given: Option<&Bound<'_, PyDict>>) -> PyResult<Loading> {
    let Some(given) = given else { return loading(None) };
    let own = PyDict::new(given.py());
    for option in Loading::options() {
        if let Some(value) = given.get_item(option.name)? {
            own.set_item(option.name, value)?;
            given.del_item(option.name)?;
        }
    }
    loading(Some(&own))
}

/// How the profiles of two sides are loaded.
pub fn of_sides(py: Python<'_>, loading: &Loading) -> PyResult<LoadOptions> {
    loading.to_options().map_err(|e| error::from_engine(py, &e))
}

/// How profiles are loaded of which none is a base.
pub fn without_base(py: Python<'_>, loading: &Loading) -> PyResult<LoadOptions> {
    loading.to_options_without_base().map_err(|e| error::from_engine(py, &e))
}

/// The keywords for `types.py`: under which heading, the name, its type and what it does. Each may be None: not given.
#[pyfunction(name = "_options")]
pub fn options() -> Vec<(String, &'static str, String, &'static str)> {
    fn row<T>(o: OptionRow<T>) -> (String, &'static str, String, &'static str) {
        let none = if o.annotation.ends_with("None") { "" } else { " | None" };
        (format!("{:?}", o.heading), o.name, format!("{}{none}", o.annotation), o.about)
    }
    Query::options().map(row).chain(Loading::options().map(row)).collect()
}

/// Refuses keywords that say nothing of how profiles are loaded, before anything is loaded.
#[pyfunction(name = "_check_loading")]
pub fn check_loading(py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<()> {
    of_sides(py, &loading(Some(given))?).map(drop)
}

/// The folders that arguments name; `source_path` stands for both sides.
pub fn source_dirs(
    base: Option<OneOrMore<PathBuf>>,
    new: Option<OneOrMore<PathBuf>>,
    source_path: Option<OneOrMore<PathBuf>>,
) -> SourceDirs {
    let both = all(source_path);
    let with = |own: Option<OneOrMore<PathBuf>>| all(own).into_iter().chain(both.clone()).collect();
    SourceDirs::new(with(base), with(new))
}

/// The folders that a page's arguments name, if they name some.
pub fn page_sources(
    base: Option<OneOrMore<PathBuf>>,
    new: Option<OneOrMore<PathBuf>>,
    source_path: Option<OneOrMore<PathBuf>>,
) -> Option<SourceDirs> {
    let given = base.is_some() || new.is_some() || source_path.is_some();
    given.then(|| source_dirs(base, new, source_path))
}

pub fn parse_compression(py: Python<'_>, name: &str) -> PyResult<Compression> {
    match name {
        "gzip" => Ok(Compression::Gzip),
        "zstd" => Ok(Compression::Zstd),
        "none" => Ok(Compression::None),
        _ => Err(error::message(py, &format!("compression is 'gzip', 'zstd' or 'none', not {name:?}"))),
    }
}

pub fn write_options(compression: Compression, level: Option<u32>) -> WriteOptions {
    let mut options = WriteOptions::new().with_compression(compression);
    options.level = level;
    options
}
