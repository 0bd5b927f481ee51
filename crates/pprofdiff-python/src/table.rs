//! Table: the rows of any view, and everything that can be made of them.

use std::io;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use pprofdiff::report::{Cell, Column, Data, Table as EngineTable, TextOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyRange, PySlice, PyString};

use crate::views::rebuild;
use crate::{arrow, error, runtime};

/// Rows that a repr shows, as the command does.
pub const ROWS_SHOWN: usize = 20;

/// The rows of a view, as columns, under a summary.
///
/// A sequence of dicts with the columns' names for keys; slices are Tables. Polars, pandas, pyarrow,
/// DuckDB and others read it through the Arrow C stream interface.
#[pyclass(frozen, module = "pprofdiff")]
pub struct Table {
    pub table: Arc<EngineTable>,
}

/// Writes text to memory, which does not fail.
pub fn text(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    let written = write(&mut out);
    debug_assert!(written.is_ok());
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn value<'py>(py: Python<'py>, cell: &Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::Missing => Ok(py.None().into_bound(py)),
        Cell::Text(text) => Ok(PyString::new(py, text).into_any()),
        Cell::Int(v) => v.into_bound_py_any(py),
        Cell::List(lists, row) => Ok(PyList::new(py, lists.get(*row).collect::<Vec<_>>())?.into_any()),
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

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<&Column> {
        self.table.column(name).ok_or_else(|| {
            let names: Vec<&str> = self.table.columns.iter().map(|c| &*c.name).collect();
            error::message(py, &format!("there is no column {name:?}; there are {}", names.join(", ")))
        })
    }

    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for column in &self.table.columns {
            dict.set_item(PyString::intern(py, &column.name), value(py, &column.cell(row))?)?;
        }
        Ok(dict)
    }

    fn values<'py>(&self, py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.table.len()).map(|row| value(py, &column.cell(row)));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
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
        self.table.kind.name()
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

    /// The values of one column: str, int, list of str, or None where there is none.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.values(py, self.find(py, name)?)
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
    fn head(&self, n: usize) -> Table {
        Table::new(self.table.head(n))
    }

    /// All rows as dicts.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, (0..self.table.len()).map(|row| self.row(py, row)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The table as JSON, schema pprofdiff/1.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_json(out)))
    }

    /// The table as CSV: a line of column names, then the rows; lists are joined with ";".
    fn to_csv(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_csv(out)))
    }

    /// The table as Markdown, for pull requests: units scaled, with a summary.
    fn to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| text(|out| table.write_markdown(out)))
    }

    /// The table as a polars.DataFrame; lists are List(Categorical). Needs polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a pandas.DataFrame: values int64, line Int64, address UInt64, text string, lists
    /// object. Needs pandas, but not pyarrow.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = py.import("pandas")?;
        let columns = PyDict::new(py);
        for column in &self.table.columns {
            let values = match &column.data {
                Data::Value(values) => numpy(py, values.clone(), "int64")?,
                Data::Line(lines) => nullable(py, lines, "int64")?,
                Data::Address(addresses) => nullable(py, addresses, "uint64")?,
                Data::Text(_) => pandas.call_method1("array", (self.values(py, column)?, "string"))?,
                Data::Lists(_) => pandas.call_method1("Series", (self.values(py, column)?, py.None(), "object"))?,
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
            let rows: Vec<usize> =
                (0..range.slicelength as isize).map(|i| (range.start + i * range.step) as usize).collect();
            return Ok(Bound::new(py, Table::new(self.table.take(&rows)))?.into_any());
        }
        if index.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "a Table is indexed by row numbers and slices; for a column there is column()",
            ));
        }
        let row: isize = index.extract()?;
        let row = if row < 0 { row + len } else { row };
        if !(0..len).contains(&row) {
            return Err(PyIndexError::new_err(format!("there are {len} rows")));
        }
        Ok(self.row(py, row as usize)?.into_any())
    }

    /// Row after row, as dicts.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let rows = PyRange::new(py, 0, slf.get().table.len() as isize)?;
        py.import("builtins")?.call_method1("map", (slf.getattr("__getitem__")?, rows))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |table| table.to_html(ROWS_SHOWN))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, Table::to_text)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let table = &slf.get().table;
        // On this thread: what a worker process sends home should start no threads there.
        let bytes = py.detach(|| postcard::to_stdvec(&**table)).map_err(error::pickle)?;
        Ok((rebuild(py, "_rebuild_table")?, (PyBytes::new(py, &bytes),)))
    }
}

#[pyfunction(name = "_rebuild_table")]
pub fn rebuild_table(bytes: &[u8]) -> PyResult<Table> {
    Ok(Table::new(postcard::from_bytes(bytes).map_err(error::pickle)?))
}
