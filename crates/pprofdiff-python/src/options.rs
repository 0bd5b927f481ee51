//! The keywords that all views take: what to look at, and how. One place reads them, for Profile and Diff, for series and for
//! batches; the stub has them as one TypedDict.

use pprofdiff::filter::Filter;
use pprofdiff::{Filters, Granularity, Normalize, Query, Sort};
use pprofdiff_report::{Ask, Request};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

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

/// Sets a filter that is given by its name: None leaves it as it is, an empty text takes it away. False if there is no
/// such filter.
fn set_filter(filters: &mut Filters, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(filter) = Filter::named(name) else { return Ok(false) };
    if let Some(value) = value.extract::<Option<String>>()? {
        filter.set(filters, Some(value));
    }
    Ok(true)
}

/// Sets the filters that are given as keywords.
pub fn set_filters(py: Python<'_>, filters: &mut Filters, given: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        if !set_filter(filters, &name, &value)? {
            return Err(PyTypeError::new_err(format!("there is no filter {name:?}; see Views.filter()")));
        }
    }
    filters.check().map_err(|e| error::from_engine(py, &e))
}

/// What the keywords of a view say.
#[derive(Clone)]
pub struct ViewOptions {
    pub query: Query,
    /// Sample types side by side with the query's.
    pub beside: Vec<String>,
}

impl From<Query> for ViewOptions {
    fn from(query: Query) -> ViewOptions {
        ViewOptions { query, beside: Vec::new() }
    }
}

impl ViewOptions {
    /// Reads the keywords, on top of what is asked already.
    pub fn new(py: Python<'_>, query: &Query, given: Option<&Bound<'_, PyDict>>) -> PyResult<ViewOptions> {
        let mut options = ViewOptions::from(query.clone());
        for (name, value) in given.into_iter().flatten() {
            options.set(py, name.extract()?, &value)?;
        }
        options.query.filters.check().map_err(|e| error::from_engine(py, &e))?;
        Ok(options)
    }

    fn set(&mut self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let query = &mut self.query;
        match name {
            "sample_type" => {
                let mut types = all(value.extract::<Option<OneOrMore<String>>>()?).into_iter();
                (query.sample_type, self.beside) = (types.next(), types.collect());
            }
            "granularity" => {
                let name = value.extract::<&str>()?;
                query.granularity = name.parse().map_err(|e| error::from_engine(py, &e))?;
            }
            "noinlines" => query.no_inlines = value.extract()?,
            "match" => {
                let name = value.extract::<&str>()?;
                query.matching = name.parse().map_err(|e| error::from_engine(py, &e))?;
            }
            // An empty prefix is none.
            "trim_path" => {
                let prefixes = all(value.extract::<Option<OneOrMore<String>>>()?);
                query.trim_path = prefixes.into_iter().filter(|prefix| !prefix.is_empty()).collect();
            }
            "normalize" => {
                if !value.is_none() {
                    query.normalize = parse_normalize(Some(value))?;
                }
            }
            "unit" => query.showing.unit = value.extract()?,
            "mean" => query.showing.mean = value.extract()?,
            "drop_negative" => query.showing.drop_negative = value.extract()?,
            "relative_percentages" => query.showing.relative_percentages = value.extract()?,
            _ if set_filter(&mut query.filters, name, value)? => {}
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "there is no option {name:?}; there are sample_type, granularity, noinlines, match, trim_path, normalize, unit, \
                     mean, drop_negative, relative_percentages, {}",
                    Filters::ALL.iter().map(|f| f.name).collect::<Vec<_>>().join(", ")
                )));
            }
        }
        Ok(())
    }

    /// The options of a view that has one granularity.
    pub fn by_rows_of(
        mut self,
        view: &str,
        granularity: Granularity,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ViewOptions> {
        if given.is_some_and(|given| given.contains("granularity").unwrap_or(false)) {
            let rows = granularity.name();
            return Err(PyTypeError::new_err(format!("{view}() shows {rows}, so it takes no granularity")));
        }
        self.query.granularity = granularity;
        Ok(self)
    }

    /// The query of what is asked of one sample type.
    pub fn of_one_type(self, py: Python<'_>, what: &str) -> PyResult<Query> {
        match self.beside.is_empty() {
            true => Ok(self.query),
            false => Err(error::message(py, &format!("{what} takes one sample type"))),
        }
    }

    pub fn request(self, ask: Ask) -> Request {
        Request { query: self.query, beside: self.beside, ask }
    }
}
