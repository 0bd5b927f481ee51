//! The keywords of views and of loading, from the option tables of the engine. All callers (Profile, Diff, series and
//! batches) read keywords through this file. `python/pprofdiff/types.py` declares them as TypedDicts.

use std::path::PathBuf;

use pprofdiff::list::SourceDirs;
use pprofdiff::loading::Loading;
use pprofdiff::options::{Heading, OptionKind, OptionRow, OptionValue};
use pprofdiff::{Compression, Granularity, LoadOptions, Normalize, Query, Sort, WriteOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::{described, error};

/// Expands to the first line of a docstring, which CPython parses for `inspect.signature`. The line
/// lists the names in the option tables before `**options`, so that notebooks can complete them.
macro_rules! signature {
    (query $before:literal) => {
        concat!($before, query_keywords!(), filter_keywords!(), ", **options)\n--\n\n")
    };
    (filters $before:literal) => {
        concat!($before, filter_keywords!(), ", **filters)\n--\n\n")
    };
    (loading $before:literal) => {
        concat!($before, loading_keywords!(), ", **options)\n--\n\n")
    };
}
pub(crate) use signature;

/// An argument that may be one value or a list of values.
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
        _ => Err(error::message(py, &format!("sort must be 'flat' or 'cum', not {sort:?}"))),
    }
}

/// Parses "total", "duration", a factor or None.
pub fn parse_normalize(how: Option<&Bound<'_, PyAny>>) -> PyResult<Normalize> {
    let Some(how) = how.filter(|how| !how.is_none()) else { return Ok(Normalize::None) };
    match how.extract::<f64>() {
        Ok(factor) => Ok(Normalize::Factor(factor)),
        Err(_) => how.extract::<&str>()?.parse().map_err(|e| error::from_engine(how.py(), &e)),
    }
}

/// Converts a Python value to an option's value.
fn value_of(kind: &OptionKind, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    Ok(match kind {
        OptionKind::Flag => OptionValue::Flag(value.extract()?),
        OptionKind::Count => OptionValue::Texts(vec![value.extract::<u64>()?.to_string()]),
        OptionKind::Number(_) if is_number => OptionValue::Texts(vec![value.extract::<f64>()?.to_string()]),
        OptionKind::Texts(_) => OptionValue::Texts(value.extract::<OneOrMore<String>>()?.into_vec()),
        OptionKind::Paths => OptionValue::Paths(value.extract::<OneOrMore<PathBuf>>()?.into_vec()),
        _ => OptionValue::Texts(vec![value.extract()?]),
    })
}

/// Sets options from keywords. None leaves an option unchanged.
fn set_options<T>(
    given: Option<&Bound<'_, PyDict>>,
    options: &[OptionRow<T>],
    mut set: impl FnMut(OptionRow<T>, OptionValue) -> pprofdiff::Result<()>,
) -> PyResult<()> {
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(option) = options.iter().find(|option| option.name == name) else {
            let names = options.iter().map(|option| option.name).collect::<Vec<_>>().join(", ");
            return Err(PyTypeError::new_err(format!("unknown option {name:?}; the options are {names}")));
        };
        if !value.is_none() {
            let py = value.py();
            set(*option, value_of(&(option.kind)(), &value)?).map_err(|e| error::from_engine(py, &e))?;
        }
    }
    Ok(())
}

/// Sets options of a query from keywords. `takes` selects the options that are allowed. Then checks all
/// filters of the query, including earlier filters.
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

/// Returns `query` extended with a view's keywords.
pub fn view_query(py: Python<'_>, query: &Query, given: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
    let mut query = query.clone();
    set_query(py, &mut query, given, |_| true)?;
    Ok(query)
}

/// Like [`view_query`], for a view with a fixed granularity.
pub fn view_query_by(
    py: Python<'_>,
    query: &Query,
    view: &str,
    granularity: Granularity,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Query> {
    if given.is_some_and(|given| given.contains("granularity").unwrap_or(false)) {
        let rows = granularity.name();
        return Err(PyTypeError::new_err(format!("{view}() shows {rows}, so it does not support granularity")));
    }
    Ok(view_query(py, query, given)?.with_granularity(granularity))
}

/// Returns true for the options of filter().
pub fn is_filter(option: &OptionRow<Query>) -> bool {
    option.heading == Heading::Filters
}

/// Returns an error if the query has several sample types.
pub fn check_one_type(py: Python<'_>, query: &Query, caller: &str) -> PyResult<()> {
    match query.extra_sample_types.is_empty() {
        true => Ok(()),
        false => Err(error::message(py, &format!("{caller} supports only one sample type"))),
    }
}

/// Returns the loading options from keywords.
pub fn loading(given: Option<&Bound<'_, PyDict>>) -> PyResult<Loading> {
    let mut loading = Loading::default();
    let options: Vec<_> = Loading::options().collect();
    set_options(given, &options, |option, value| option.set(&mut loading, value))?;
    Ok(loading)
}

/// Like [`loading`], for keywords that include other options. Removes the loading options from `given`.
pub fn take_loading(given: Option<&Bound<'_, PyDict>>) -> PyResult<Loading> {
    let Some(given) = given else { return loading(None) };
    let loading_options = PyDict::new(given.py());
    for option in Loading::options() {
        if let Some(value) = given.get_item(option.name)? {
            loading_options.set_item(option.name, value)?;
            given.del_item(option.name)?;
        }
    }
    loading(Some(&loading_options))
}

/// Returns the options for loading the profiles of two sides.
pub fn two_sided(py: Python<'_>, loading: &Loading) -> PyResult<LoadOptions> {
    loading.to_options().map_err(|e| error::from_engine(py, &e))
}

/// Returns the options for loading profiles without a base side. Options of the base, such as
/// `base_binary`, are errors.
pub fn without_base(py: Python<'_>, loading: &Loading) -> PyResult<LoadOptions> {
    loading.to_options_without_base().map_err(|e| error::from_engine(py, &e))
}

/// Returns the keywords of views and of loading: heading, name, type and description. The test of
/// `types.py` generates its TypedDicts from them, and scan() uses them to separate both groups. Each
/// keyword may be None, which means not given.
#[pyfunction(name = "_options")]
pub fn options() -> Vec<(String, &'static str, String, String)> {
    fn row<T>(o: OptionRow<T>) -> (String, &'static str, String, String) {
        (format!("{:?}", o.heading), o.name, described::annotation(&o), described::about(&o))
    }
    Query::options().map(row).chain(Loading::options().map(row)).collect()
}

/// Rejects keywords that are not loading options, before anything is loaded.
#[pyfunction(name = "_check_loading")]
pub fn check_loading(py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<()> {
    for name in given.keys() {
        let name: String = name.extract()?;
        let is_of_views = Query::options().any(|option| option.name == name);
        if is_of_views && Loading::options().all(|option| option.name != name) {
            return Err(PyTypeError::new_err(format!(
                "batch() loads profiles, so {name}= belongs to the call that follows it: .ranking({name}=...) or \
                 .tables({name}=...)"
            )));
        }
    }
    two_sided(py, &loading(Some(given))?).map(drop)
}

/// Returns the source folders in the arguments. `source_path` applies to both sides.
pub fn source_dirs(
    base: Option<OneOrMore<PathBuf>>,
    new: Option<OneOrMore<PathBuf>>,
    source_path: Option<OneOrMore<PathBuf>>,
) -> SourceDirs {
    let both = all(source_path);
    let with_both =
        |loading_options: Option<OneOrMore<PathBuf>>| all(loading_options).into_iter().chain(both.clone()).collect();
    SourceDirs::new(with_both(base), with_both(new))
}

/// Returns the source folders in the arguments of a page, or `None` if there are none.
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
        _ => Err(error::message(py, &format!("compression must be 'gzip', 'zstd' or 'none', not {name:?}"))),
    }
}

pub fn write_options(compression: Compression, level: Option<u32>) -> WriteOptions {
    let mut options = WriteOptions::new().with_compression(compression);
    options.level = level;
    options
}
