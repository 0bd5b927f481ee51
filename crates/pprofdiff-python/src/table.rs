//! `Table`: the rows of a view, and their conversion to other formats.

use std::io;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use pprofdiff_report::{Cell, CsvOptions, Data, Report, Table as EngineTable, TextOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PySlice, PyString};

use crate::keywords::in_keywords;
use crate::profile::{Pickled, pickled};
use crate::within::text_within;
use crate::{arrow, error, runtime};

/// The number of rows in a repr, as in the text output of the command by default.
pub const ROWS_SHOWN: usize = 20;

/// The rows of a view as columns, with a summary.
///
/// A table is a sequence of dicts whose keys are the column names. table[0] is a row, table[:3] is a Table, and
/// table["name"] is a column: a list of str, int, float or list of str, with None for missing values. Polars, pandas,
/// pyarrow, DuckDB and others read a table through the Arrow C stream interface.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Table {
    pub table: Arc<EngineTable>,
}

/// Writes text to memory, which can't fail.
pub fn text(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    let written = write(&mut pprofdiff::cancellation::CheckpointedWrite::new(&mut out));
    debug_assert!(written.is_ok());
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Converts the values of one column to Python objects.
///
/// The strings in lists are created once and shared, like the strings in the column's dictionary: stacks contain ten to
/// a hundred times as many frames as there are distinct frames.
struct ColumnValues {
    column: usize,
    /// The strings of the dictionary, by id. `None` for a single row until a list is long enough for sharing to save
    /// work.
    strings: Option<Vec<Option<Py<PyString>>>>,
}

impl ColumnValues {
    fn of_all_rows(column: usize) -> ColumnValues {
        ColumnValues { column, strings: Some(Vec::new()) }
    }

    fn of_one_row(column: usize) -> ColumnValues {
        ColumnValues { column, strings: None }
    }

    /// Returns the value in a row, and adds its cost to `made`.
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
                    // Checks signals without releasing the GIL: another thread that used this iterator meanwhile would
                    // fail, because the iterator is borrowed here.
                    runtime::check_signals(py)?;
                }
                Ok(list.into_any())
            }
        }
    }
}

/// An iterator of rows as dicts. Like a generator, only one thread can use it at a time.
#[pyclass(name = "_Rows", module = "pprofdiff._native")]
pub struct TableRows {
    table: Arc<EngineTable>,
    columns: Vec<(Py<PyString>, ColumnValues)>,
    next: usize,
    /// The number of objects created since the last check for signals.
    made: usize,
}

impl TableRows {
    fn new(py: Python<'_>, table: &Arc<EngineTable>, values: fn(usize) -> ColumnValues) -> TableRows {
        let columns = table.columns.iter().enumerate();
        let columns = columns.map(|(i, c)| (PyString::intern(py, &c.name).unbind(), values(i))).collect();
        TableRows { table: table.clone(), columns, next: 0, made: 0 }
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
impl TableRows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // list() does not check signals by itself. Nothing is borrowed here, because another thread may use this
        // iterator meanwhile.
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
    pub fn new(mut table: EngineTable) -> Table {
        table.summary = in_keywords(&table.summary);
        Table { table: Arc::new(table) }
    }

    /// Returns the first rows as the command prints them.
    pub fn to_text(table: &EngineTable) -> String {
        text(|out| table.head(ROWS_SHOWN).write_text(out, TextOptions::default())).trim_end().to_owned()
    }

    /// Runs `f` on the table with the GIL released.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&EngineTable) -> T + Send + 'static,
    ) -> PyResult<T> {
        let table = self.table.clone();
        runtime::run(py, move || Ok(f(&table)))
    }

    /// Returns the index of the column called `name`.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        self.table.columns.iter().position(|c| c.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.table.columns.iter().map(|c| &*c.name).collect();
            error::message(py, &format!("unknown column {name:?}; the columns are {}", names.join(", ")))
        })
    }

    fn values<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let (mut values, mut made) = (ColumnValues::of_all_rows(column), 0);
        let list = PyList::empty(py);
        for row in 0..self.table.len() {
            list.append(values.value(py, &self.table, row, &mut made)?)?;
            runtime::yield_gil(py, &mut made)?;
        }
        Ok(list)
    }
}

/// Returns the result of plot() for a Vega-Lite specification.
pub fn chart<'py>(py: Python<'py>, specification: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pprofdiff._plot")?.call_method1("chart", (specification,))
}

/// Converts numbers to a numpy array.
fn numpy<'py, T: arrow_buffer::ArrowNativeType>(
    py: Python<'py>,
    values: Vec<T>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let buffer = ScalarBuffer::from(values).into_inner();
    py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, buffer.as_slice()), dtype))?.call_method0("copy")
}

/// Converts numbers that can be missing to a nullable pandas array.
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
    /// The kind of the rows: "top", "diff", "peek", "tree", "stacks", "traces", "labels" or "causes";
    /// for a series "values", "movers", "steps" or "shifts"; for a ranking "pairs", "shared_causes" or
    /// "common_changes".
    #[getter]
    fn kind(&self) -> &'static str {
        self.table.kind.name
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.table.columns.iter().map(|c| &*c.name).collect()
    }

    /// The header of to_json() as a dict: the sides, sample_type, unit, granularity, filters, normalize,
    /// warnings and totals. For a series, it has the builds instead of sides and totals.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.table.summary_json(),))
    }

    /// The number of rows before the limit was applied.
    #[getter]
    fn rows_total(&self) -> usize {
        self.table.rows_total
    }

    /// Return the table sorted by one column. Rows with equal values keep their order.
    #[pyo3(signature = (by, descending = true))]
    fn sort(&self, py: Python<'_>, by: String, descending: bool) -> PyResult<Table> {
        self.find(py, &by)?;
        Ok(self
            .run(py, move |table| table.sort(&by, descending))?
            .map_or_else(|| Table { table: self.table.clone() }, Table::new))
    }

    /// Return the first `n` rows. For peek and tree, return the rows of the first `n` nodes, and for
    /// labels the first `n` rows of each key.
    #[pyo3(signature = (n = 20))]
    fn head(&self, py: Python<'_>, n: usize) -> PyResult<Table> {
        self.run(py, move |table| table.head(n)).map(Table::new)
    }

    /// Return all rows as dicts.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut rows = TableRows::new(py, &self.table, ColumnValues::of_all_rows);
        let list = PyList::empty(py);
        for row in 0..self.table.len() {
            list.append(rows.row(py, row)?)?;
            runtime::yield_gil(py, &mut rows.made)?;
        }
        Ok(list)
    }

    /// Return the table as JSON, schema pprofdiff/1.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_json(out)))
    }

    /// Return the table as CSV, with a header line of column names. Lists are joined with ";". Text is written
    /// unchanged, but a spreadsheet runs text that begins with = + - @ as a formula; quote_formulas puts a ' before
    /// such text.
    #[pyo3(signature = (*, quote_formulas = false))]
    fn to_csv(&self, py: Python<'_>, quote_formulas: bool) -> PyResult<String> {
        let options = CsvOptions { quote_formulas };
        self.run(py, move |table| text(|out| table.write_csv(out, options)))
    }

    /// Return all rows as text, as the command prints them. With max_tokens (at least 50), the text has at most that
    /// many tokens, counted as by the command's --budget: the first rows, and the number of omitted rows.
    #[pyo3(name = "to_text", signature = (*, max_tokens = None))]
    pub fn to_text_within(&self, py: Python<'_>, max_tokens: Option<usize>) -> PyResult<String> {
        let table = self.table.clone();
        text_within(py, max_tokens, None, move |format, budget| Report::Table((*table).clone()).within(format, budget))
    }

    /// Return the table as Markdown for pull requests, with scaled units and a summary.
    fn to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_markdown(out)))
    }

    /// Draw the first `n` rows as a bar chart, in the order of the table. For two sides, bars show the changes, with
    /// whiskers for the variation between runs. For one profile, bars show the costs.
    ///
    /// Returns an altair.Chart (or a compound chart) if altair is installed, and otherwise an object with the Vega-Lite
    /// specification (to_dict(), to_json()), which JupyterLab and VS Code can draw too. Values are in the axis's unit.
    /// Raises PprofError for Series.values(); use Series.plot() instead.
    #[pyo3(signature = (n = 20))]
    fn plot<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyAny>> {
        chart(py, &self.run(py, move |table| table.to_chart(n))?.map_err(|e| error::from_engine(py, &e))?)
    }

    /// Return the table as a polars.DataFrame, with lists as List(Categorical). Needs polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Return the table as a pandas.DataFrame, with values as int64, ratios as float64, line as Int64, address as
    /// UInt64, text as string and lists as object. Needs pandas, but not pyarrow.
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

    /// Return the table as a pyarrow.Table. Needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Implements the Arrow PyCapsule interface: text as utf8 (large_utf8 from 2 GiB on), values and
    /// line as int64, address as uint64, ratios as float64, lists as list<dictionary<int32, utf8>>. A
    /// requested schema is ignored.
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
            return Err(PyIndexError::new_err(format!("row index out of range; the table has {len} rows")));
        }
        Ok(TableRows::new(py, &self.table, ColumnValues::of_one_row).row(py, row as usize)?.into_any())
    }

    /// Iterate over the rows as dicts.
    fn __iter__(&self, py: Python<'_>) -> TableRows {
        TableRows::new(py, &self.table, ColumnValues::of_all_rows)
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
        let bytes = runtime::run_apart(py, move || {
            if !are_causes_first(&table) {
                return Ok(postcard::to_stdvec(&(false, &*table)));
            }
            // A stored table has the columns in the order of its kind, with the causes last.
            let mut stored = EngineTable::clone(&table);
            let cause = stored.columns.remove(1);
            stored.columns.push(cause);
            Ok(postcard::to_stdvec(&(true, &stored)))
        })?;
        pickled(py, "_rebuild_table", bytes)
    }
}

/// Moves the causes of lasting changes from the end of the columns behind the names, where a data frame shows them
/// without scrolling.
pub fn move_causes_first(table: &mut EngineTable) {
    if let Some(cause) = table.columns.pop_if(|column| column.name == "cause") {
        table.columns.insert(1, cause);
    }
}

fn are_causes_first(table: &EngineTable) -> bool {
    table.kind.name == "shifts" && table.columns.get(1).is_some_and(|column| column.name == "cause")
}

#[pyfunction(name = "_rebuild_table")]
pub fn rebuild_table(py: Python<'_>, bytes: &[u8]) -> PyResult<Table> {
    let bytes = bytes.to_vec();
    let stored = runtime::run_apart(py, move || Ok(postcard::from_bytes::<(bool, EngineTable)>(&bytes)))?;
    let (are_first, mut table) = stored.map_err(error::pickle)?;
    if are_first {
        move_causes_first(&mut table);
    }
    Ok(Table::new(table))
}
