//! Table: the rows of any view, and everything that can be made of them.

use std::io;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use pprofdiff_report::{Cell, CsvOptions, Data, Table as EngineTable, TextOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PySlice, PyString};

use crate::profile::{Pickled, pickled};
use crate::{arrow, error, runtime};

/// Rows that a repr shows, as the command does.
pub const ROWS_SHOWN: usize = 20;

/// The rows of a view, as columns, under a summary.
///
/// A sequence of dicts with the columns' names for keys: table[0] is a row, table[:3] a Table, and table["name"] a
/// column, as a list of str, int, float, list of str, or None where there is none. Polars, pandas, pyarrow, DuckDB and
/// others read it through the Arrow C stream interface.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Table {
    pub table: Arc<EngineTable>,
}

/// Writes text to memory, which does not fail.
pub fn text(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    let written = write(&mut pprofdiff::work::PolledWrite::new(&mut out));
    debug_assert!(written.is_ok());
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The values of one column as Python's objects.
///
/// The strings of lists are made once each and shared, as their dictionary is: stacks have ten or a hundred times as many
/// frames as there are different ones.
struct Values {
    column: usize,
    /// Of the dictionary, by their numbers; `None` for a single row, as long as that would not pay for them.
    strings: Option<Vec<Option<Py<PyString>>>>,
}

impl Values {
    fn of_all_rows(column: usize) -> Values {
        Values { column, strings: Some(Vec::new()) }
    }

    fn of_one_row(column: usize) -> Values {
        Values { column, strings: None }
    }

    /// A row's value. Adds to `made` what it costs.
    fn value<'py>(
        &mut self,
        py: Python<'py>,
        table: &EngineTable,
        row: usize,
        made: &mut usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        *made += 1;
        match table.columns[self.column].cell(row) {
            Cell::Missing => Ok(py.None().into_bound(py)),
            Cell::Text(text) => Ok(PyString::new(py, text).into_any()),
            Cell::Int(v) => v.into_bound_py_any(py),
            Cell::Ratio(v) => v.into_bound_py_any(py),
            Cell::List(lists, row) => {
                let (numbers, n) = (lists.numbers(row), lists.dictionary.len());
                if self.strings.is_none() && numbers.len() < n {
                    return Ok(PyList::new(py, lists.get(row).collect::<Vec<_>>())?.into_any());
                }
                let strings = self.strings.get_or_insert_default();
                strings.resize_with(n, || None);
                let mut string = |&id: &u32| {
                    let text = || lists.dictionary.get(id as usize).unwrap_or_default();
                    strings[id as usize].get_or_insert_with(|| PyString::new(py, text()).unbind()).bind(py).clone()
                };
                if numbers.len() < runtime::OBJECTS_PER_YIELD {
                    *made += numbers.len();
                    return Ok(PyList::new(py, numbers.iter().map(string))?.into_any());
                }
                let list = PyList::empty(py);
                for part in numbers.chunks(runtime::OBJECTS_PER_YIELD) {
                    part.iter().try_for_each(|id| list.append(string(id)))?;
                    // Lets no other thread in, which might want what is borrowed here.
                    runtime::check_signals(py)?;
                }
                Ok(list.into_any())
            }
        }
    }
}

/// Row after row, as dicts. As a generator, it can be asked by one thread at a time.
#[pyclass(name = "_Rows", module = "pprofdiff._native")]
pub struct Rows {
    table: Arc<EngineTable>,
    columns: Vec<(Py<PyString>, Values)>,
    next: usize,
    /// Since the last look at signals.
    made: usize,
}

impl Rows {
    fn new(py: Python<'_>, table: &Arc<EngineTable>, values: fn(usize) -> Values) -> Rows {
        let columns = table.columns.iter().enumerate();
        let columns = columns.map(|(i, c)| (PyString::intern(py, &c.name).unbind(), values(i))).collect();
        Rows { table: table.clone(), columns, next: 0, made: 0 }
    }

    fn row<'py>(&mut self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &mut self.columns {
            dict.set_item(name.bind(py), values.value(py, &self.table, row, &mut self.made)?)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // list() does not by itself. While nothing is borrowed, since another thread may want this iterator then.
        let mut made = slf.try_borrow()?.made;
        runtime::yield_gil(slf.py(), &mut made)?;
        let mut rows = slf.try_borrow_mut()?;
        rows.made = made;
        if rows.next == rows.table.len() {
            return Ok(None);
        }
        rows.next += 1;
        let row = rows.next - 1;
        rows.row(slf.py(), row).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.table.len() - self.next
    }
}

impl Table {
    pub fn new(table: EngineTable) -> Table {
        Table { table: Arc::new(table) }
    }

    /// The first rows as the command prints them.
    pub fn to_text(table: &EngineTable) -> String {
        text(|out| table.head(ROWS_SHOWN).write_text(out, TextOptions::default())).trim_end().to_owned()
    }

    /// Works on the table with the GIL released.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&EngineTable) -> T + Send + 'static,
    ) -> PyResult<T> {
        let table = self.table.clone();
        runtime::run(py, move || Ok(f(&table)))
    }

    /// The number of the column of a name.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        self.table.columns.iter().position(|c| c.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.table.columns.iter().map(|c| &*c.name).collect();
            error::message(py, &format!("there is no column {name:?}; there are {}", names.join(", ")))
        })
    }

    fn values<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let (mut values, mut made) = (Values::of_all_rows(column), 0);
        let list = PyList::empty(py);
        for row in 0..self.table.len() {
            list.append(values.value(py, &self.table, row, &mut made)?)?;
            runtime::yield_gil(py, &mut made)?;
        }
        Ok(list)
    }
}

/// What plot() returns of a specification in Vega-Lite.
pub fn chart<'py>(py: Python<'py>, specification: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pprofdiff._plot")?.call_method1("chart", (specification,))
}

/// Numbers as a numpy array, from their bytes.
fn numpy<'py, T: arrow_buffer::ArrowNativeType>(
    py: Python<'py>,
    values: Vec<T>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let buffer = ScalarBuffer::from(values).into_inner();
    py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, buffer.as_slice()), dtype))?.call_method0("copy")
}

/// Numbers that may be missing, as one of pandas' nullable arrays.
fn nullable<'py, T: arrow_buffer::ArrowNativeType>(
    py: Python<'py>,
    values: &[Option<T>],
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let mask = values.iter().map(|v| u8::from(v.is_none())).collect();
    let values = values.iter().map(|v| v.unwrap_or_default()).collect();
    let arguments = (numpy::<T>(py, values, dtype)?, numpy::<u8>(py, mask, "bool")?);
    py.import("pandas")?.getattr("arrays")?.call_method1("IntegerArray", arguments)
}

#[pymethods]
impl Table {
    /// What the rows are: "top", "diff", "peek", "tree", "stacks" or "labels"; of a series "values", "movers"
    /// or "steps".
    #[getter]
    fn kind(&self) -> &'static str {
        self.table.kind.name
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.table.columns.iter().map(|c| &*c.name).collect()
    }

    /// What the table is of, as the header of to_json(): the sides, sample_type, unit, granularity,
    /// filters, normalize, warnings and totals; of a series the builds in place of sides and totals.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.table.summary_json(),))
    }

    /// Number of rows before any were cut off.
    #[getter]
    fn rows_total(&self) -> usize {
        self.table.rows_total
    }

    /// Ordered by one column; rows that are equal in it keep their order.
    #[pyo3(signature = (by, descending = true))]
    fn sort(&self, py: Python<'_>, by: String, descending: bool) -> PyResult<Table> {
        self.find(py, &by)?;
        Ok(self
            .run(py, move |table| table.sort(&by, descending))?
            .map_or_else(|| Table { table: self.table.clone() }, Table::new))
    }

    /// The first `n` rows; of peek and tree, the rows of the first `n` nodes.
    #[pyo3(signature = (n = 20))]
    fn head(&self, py: Python<'_>, n: usize) -> PyResult<Table> {
        self.run(py, move |table| table.head(n)).map(Table::new)
    }

    /// All rows as dicts.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut rows = Rows::new(py, &self.table, Values::of_all_rows);
        let list = PyList::empty(py);
        for row in 0..self.table.len() {
            list.append(rows.row(py, row)?)?;
            runtime::yield_gil(py, &mut rows.made)?;
        }
        Ok(list)
    }

    /// The table as JSON, schema pprofdiff/1.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_json(out)))
    }

    /// The table as CSV: a line of column names, then the rows; lists are joined with ";". Texts are exact, and a
    /// spreadsheet runs those that begin with = + - @ as formulas; quote_formulas puts a ' before them.
    #[pyo3(signature = (*, quote_formulas = false))]
    fn to_csv(&self, py: Python<'_>, quote_formulas: bool) -> PyResult<String> {
        let options = CsvOptions { quote_formulas };
        self.run(py, move |table| text(|out| table.write_csv(out, options)))
    }

    /// The table as Markdown, for pull requests: units scaled, with a summary.
    fn to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_markdown(out)))
    }

    /// The first `n` rows as a bar chart, in the order of the table: of two sides how much each changed, with
    /// whiskers where runs say how much that varies; of one profile what it costs.
    ///
    /// An altair.Chart (or one of altair's compound charts) where altair is installed, else an object with the
    /// Vega-Lite specification (to_dict(), to_json()), which JupyterLab and VS Code draw as well. Values are in the
    /// axis's unit. Raises PprofError for Series.values(): Series.plot() draws those.
    #[pyo3(signature = (n = 20))]
    fn plot<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyAny>> {
        chart(py, &self.run(py, move |table| table.to_chart(n))?.map_err(|e| error::from_engine(py, &e))?)
    }

    /// The table as a polars.DataFrame; lists are List(Categorical). Needs polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a pandas.DataFrame: values int64, ratios float64, line Int64, address UInt64, text string, lists
    /// object. Needs pandas, but not pyarrow.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = py.import("pandas")?;
        let columns = PyDict::new(py);
        for (i, column) in self.table.columns.iter().enumerate() {
            let values = match &column.data {
                Data::Value(values) => numpy(py, values.clone(), "int64")?,
                Data::Line(lines) => nullable(py, lines, "int64")?,
                Data::Address(addresses) => nullable(py, addresses, "uint64")?,
                Data::Ratio(ratios) => {
                    numpy(py, ratios.iter().map(|v| v.unwrap_or(f64::NAN)).collect::<Vec<f64>>(), "float64")?
                }
                Data::Text(_) => pandas.call_method1("array", (self.values(py, i)?, "string"))?,
                Data::Lists(_) => pandas.call_method1("Series", (self.values(py, i)?, py.None(), "object"))?,
            };
            columns.set_item(&*column.name, values)?;
        }
        pandas.call_method1("DataFrame", (columns,))
    }

    /// The table as a pyarrow.Table. Needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The Arrow PyCapsule interface: text utf8, values and line int64, address uint64, lists
    /// list<dictionary<int32, utf8>>. A requested schema is not looked at.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let table = self.table.clone();
        let stream =
            runtime::run(py, move || Ok(arrow::stream(&table)))?.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.table.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.table.len() as isize;
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(len)?;
            let table = self.run(py, move |table| {
                let row = |i| (range.start + i * range.step) as usize;
                table.take(&(0..range.slicelength as isize).map(row).collect::<Vec<_>>())
            })?;
            return Ok(Bound::new(py, Table::new(table))?.into_any());
        }
        if let Ok(name) = index.cast::<PyString>() {
            let column = self.find(py, name.to_str()?).map_err(|e| PyKeyError::new_err(e.value(py).to_string()))?;
            return Ok(self.values(py, column)?.into_any());
        }
        let row: isize = index.extract()?;
        let row = if row < 0 { row + len } else { row };
        if !(0..len).contains(&row) {
            return Err(PyIndexError::new_err(format!("there are {len} rows")));
        }
        Ok(Rows::new(py, &self.table, Values::of_one_row).row(py, row as usize)?.into_any())
    }

    /// Row after row, as dicts.
    fn __iter__(&self, py: Python<'_>) -> Rows {
        Rows::new(py, &self.table, Values::of_all_rows)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| table.to_html(ROWS_SHOWN))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, Table::to_text)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let py = slf.py();
        let table = slf.get().table.clone();
        pickled(py, "_rebuild_table", runtime::run_apart(py, move || Ok(postcard::to_stdvec(&*table)))?)
    }
}

#[pyfunction(name = "_rebuild_table")]
pub fn rebuild_table(py: Python<'_>, bytes: &[u8]) -> PyResult<Table> {
    let bytes = bytes.to_vec();
    let table = runtime::run_apart(py, move || Ok(postcard::from_bytes(&bytes)))?;
    Ok(Table::new(table.map_err(error::pickle)?))
}
