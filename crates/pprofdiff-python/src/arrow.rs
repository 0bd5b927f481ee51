//! Exports tables as Arrow data through the C stream interface. A table becomes one record batch that holds the table,
//! so values and the ids of lists, which are most of a large table, are not copied. The tables of many pairs are mostly
//! small, so they are copied into common batches of a bounded size.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch,
    RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use pprofdiff_report::{Cell, Data, Lists, Table, Texts, key_column};

/// Converts texts to a string array. Uses 64-bit offsets only if 32 bits are not enough.
fn strings(texts: &Texts) -> ArrayRef {
    let bytes: usize = texts.iter().flatten().map(str::len).sum();
    if i32::try_from(bytes).is_ok() {
        Arc::new(texts.iter().collect::<StringArray>())
    } else {
        Arc::new(texts.iter().collect::<LargeStringArray>())
    }
}

/// The buffer of a column with numbers. It keeps its table alive.
struct NumberBuffer {
    table: Arc<Table>,
    column: usize,
}

impl AsRef<[u8]> for NumberBuffer {
    fn as_ref(&self) -> &[u8] {
        match &self.table.columns[self.column].data {
            Data::Value(values) => bytemuck::cast_slice(values),
            Data::Lists(lists) => bytemuck::cast_slice(&lists.ids),
            _ => &[],
        }
    }
}

impl NumberBuffer {
    fn share<T: ArrowNativeType>(table: &Arc<Table>, column: usize) -> ScalarBuffer<T> {
        Buffer::from(Bytes::from_owner(NumberBuffer { table: table.clone(), column })).into()
    }
}

/// Converts lists of strings to a list array whose items refer to a dictionary that all rows share. An id of 2^31 or
/// more would become negative, and is rejected like any id outside the dictionary.
fn lists(lists: &Lists, ids: ScalarBuffer<i32>) -> Result<ArrayRef, ArrowError> {
    let too_many = |_| ArrowError::OffsetOverflowError(lists.ids.len());
    let ends = lists.ends.iter().map(|&end| i32::try_from(end)).collect::<Result<Vec<i32>, _>>().map_err(too_many)?;
    let strings = DictionaryArray::<Int32Type>::try_new(Int32Array::new(ids, None), strings(&lists.dictionary))?;
    let item = Field::new(
        "item",
        DataType::Dictionary(DataType::Int32.into(), strings.values().data_type().clone().into()),
        true,
    );
    let offsets = OffsetBuffer::new(std::iter::once(0).chain(ends).collect::<ScalarBuffer<i32>>());
    Ok(Arc::new(ListArray::try_new(Arc::new(item), offsets, Arc::new(strings), None)?))
}

fn batch(table: &Arc<Table>) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::with_capacity(table.columns.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let array: ArrayRef = match &column.data {
            Data::Text(texts) => strings(texts),
            Data::Value(_) => Arc::new(Int64Array::new(NumberBuffer::share(table, index), None)),
            Data::Line(lines) => Arc::new(Int64Array::from(lines.clone())),
            Data::Address(addresses) => Arc::new(UInt64Array::from(addresses.clone())),
            Data::Ratio(ratios) => Arc::new(Float64Array::from(ratios.clone())),
            Data::Lists(column) => lists(column, NumberBuffer::share(table, index))?,
        };
        fields.push(Field::new(&*column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// Returns the table as a stream with one batch.
pub fn stream(table: &Arc<Table>) -> Result<FFI_ArrowArrayStream, ArrowError> {
    let batch = batch(table)?;
    let schema = batch.schema();
    Ok(FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
}

/// A pair in a stream of many pairs: the rows of its table, or its error.
pub struct PairRows {
    pub name: String,
    /// The values of the pair's keys, in the order of the stream's columns. `None` for a key that the pair lacks.
    pub keys: Vec<Option<String>>,
    pub error: Option<String>,
    pub table: Option<Arc<Table>>,
}

impl PairRows {
    /// Returns the number of rows in the stream. A failed pair has one row, so that no pair is missing.
    fn len(&self) -> usize {
        self.table.as_ref().map_or(1, |table| table.len())
    }
}

/// The columns of the stream: the pair, the type of its values, then the columns of a table of frames.
const PAIR_COLUMNS: [(&str, DataType); 16] = [
    ("pair", DataType::Utf8),
    ("error", DataType::Utf8),
    ("sample_type", DataType::Utf8),
    ("unit", DataType::Utf8),
    ("name", DataType::Utf8),
    ("file", DataType::Utf8),
    ("line", DataType::Int64),
    ("address", DataType::UInt64),
    ("mapping", DataType::Utf8),
    ("status", DataType::Utf8),
    ("flat_base", DataType::Int64),
    ("flat_new", DataType::Int64),
    ("flat_delta", DataType::Int64),
    ("cum_base", DataType::Int64),
    ("cum_new", DataType::Int64),
    ("cum_delta", DataType::Int64),
];

/// The limits of a batch, in rows and in bytes of text. The row that reaches a limit is the last one. Small pairs share
/// a batch, and a large pair is split.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_TEXT: usize = 64 << 20;

/// A column under construction.
enum Filling {
    Text(StringBuilder),
    Int(Int64Builder),
    Address(UInt64Builder),
}

impl Filling {
    /// Appends a value. Returns its length if it is a text.
    fn push(&mut self, cell: &Cell<'_>) -> Result<usize, ArrowError> {
        match (self, cell) {
            (Filling::Text(column), Cell::Text(text)) => {
                // Offsets have 32 bits. The limits of a batch keep it far below that, unless a single text is too long.
                if text.len() > i32::MAX as usize - 2 * BATCH_TEXT {
                    return Err(ArrowError::OffsetOverflowError(text.len()));
                }
                column.append_value(text);
                return Ok(text.len());
            }
            (Filling::Int(column), Cell::Int(v)) => column.append_option(i64::try_from(*v).ok()),
            (Filling::Address(column), Cell::Int(v)) => column.append_option(u64::try_from(*v).ok()),
            (Filling::Text(column), _) => column.append_null(),
            (Filling::Int(column), _) => column.append_null(),
            (Filling::Address(column), _) => column.append_null(),
        }
        Ok(0)
    }

    fn finish(self) -> ArrayRef {
        match self {
            Filling::Text(mut column) => Arc::new(column.finish()),
            Filling::Int(mut column) => Arc::new(column.finish()),
            Filling::Address(mut column) => Arc::new(column.finish()),
        }
    }
}

/// An iterator of record batches from the tables of many pairs. Each batch is built on demand.
struct PairBatches<I, F> {
    pairs: I,
    at_end: F,
    schema: Arc<Schema>,
    /// The pair that did not fit the last batch, and its next row.
    cut: Option<(PairRows, usize)>,
    /// An error to return after the rows before it.
    failed: Option<ArrowError>,
}

impl<I: Iterator<Item = Result<PairRows, ArrowError>>, F> PairBatches<I, F> {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut columns: Vec<Filling> = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.data_type() {
                DataType::Utf8 => Filling::Text(StringBuilder::new()),
                DataType::UInt64 => Filling::Address(UInt64Builder::new()),
                _ => Filling::Int(Int64Builder::new()),
            })
            .collect();
        let (mut rows, mut text) = (0, 0);
        while rows < BATCH_ROWS && text < BATCH_TEXT {
            let (pair, from) = match self.cut.take().map(Ok).or_else(|| Some(self.pairs.next()?.map(|p| (p, 0)))) {
                None => break,
                Some(Ok(cut)) => cut,
                Some(Err(e)) if rows == 0 => return Err(e),
                Some(Err(e)) => {
                    self.failed = Some(e);
                    break;
                }
            };
            let keys = self.schema.fields().len() - PAIR_COLUMNS.len();
            let fields = self.schema.fields().iter();
            let table_columns: Vec<_> = fields.map(|field| pair.table.as_ref()?.column(field.name())).collect();
            let mut row = from;
            while row < pair.len() && rows < BATCH_ROWS && text < BATCH_TEXT {
                // The pair, its keys, and the other columns before those of the table.
                let shared = |i: usize| match i {
                    0 => Some(Some(&*pair.name)),
                    i if i <= keys => Some(pair.keys.get(i - 1).and_then(Option::as_deref)),
                    i => match i - keys {
                        1 => Some(pair.error.as_deref()),
                        2 => Some(pair.table.as_ref().map(|t| &*t.summary.sample_type)),
                        3 => Some(pair.table.as_ref().map(|t| &*t.summary.unit)),
                        _ => None,
                    },
                };
                for (i, column) in columns.iter_mut().enumerate() {
                    text += match (shared(i), table_columns[i]) {
                        (Some(shared), _) => column.push(&shared.map_or(Cell::Missing, Cell::Text))?,
                        (None, values) => column.push(&values.map_or(Cell::Missing, |values| values.cell(row)))?,
                    };
                }
                (row, rows) = (row + 1, rows + 1);
            }
            if row < pair.len() {
                self.cut = Some((pair, row));
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        RecordBatch::try_new(self.schema.clone(), columns.into_iter().map(Filling::finish).collect()).map(Some)
    }
}

impl<I: Iterator<Item = Result<PairRows, ArrowError>>, F: FnMut()> Iterator for PairBatches<I, F> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.failed.take() {
            Some(e) => Some(Err(e)),
            None => self.batch().transpose(),
        };
        if next.is_none() {
            (self.at_end)();
        }
        next
    }
}

/// Returns the tables of many pairs as a stream of batches. `keys` are the names of the pairs' keys, which become columns
/// after the pair. `pairs` must be fused. `at_end` is called when the reader reaches the end.
pub fn pairs_stream(
    keys: &[String],
    pairs: impl Iterator<Item = Result<PairRows, ArrowError>> + Send + 'static,
    at_end: impl FnMut() + Send + 'static,
) -> FFI_ArrowArrayStream {
    let mut fields = PAIR_COLUMNS.map(|(name, kind)| Field::new(name, kind, true)).to_vec();
    let is_taken = |name: &str| PAIR_COLUMNS.iter().any(|(column, _)| *column == name);
    let key = |name: &String| Field::new(key_column(name, is_taken), DataType::Utf8, true);
    fields.splice(1..1, keys.iter().map(key));
    let schema = Arc::new(Schema::new(fields));
    let batches = PairBatches { pairs, at_end, schema: schema.clone(), cut: None, failed: None };
    FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)))
}
