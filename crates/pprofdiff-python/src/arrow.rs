//! A table as Arrow: one record batch, handed over through the C stream interface. Values and the numbers
//! of lists, which are most of a large table, are not copied: the batch holds the table. The tables of many pairs are
//! copied together into batches of a bounded size, since most of them are small.

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
use pprofdiff_report::{Cell, Data, Lists, Table, Texts};

/// Strings; with wide offsets only where 32 bits are too few.
fn strings(texts: &Texts) -> ArrayRef {
    let bytes: usize = texts.iter().flatten().map(str::len).sum();
    if i32::try_from(bytes).is_ok() {
        Arc::new(texts.iter().collect::<StringArray>())
    } else {
        Arc::new(texts.iter().collect::<LargeStringArray>())
    }
}

/// The numbers of one column, as memory that keeps its table alive.
struct Numbers {
    table: Arc<Table>,
    column: usize,
}

impl AsRef<[u8]> for Numbers {
    fn as_ref(&self) -> &[u8] {
        match &self.table.columns[self.column].data {
            Data::Value(values) => bytemuck::cast_slice(values),
            Data::Lists(lists) => bytemuck::cast_slice(&lists.ids),
            _ => &[],
        }
    }
}

impl Numbers {
    fn share<T: ArrowNativeType>(table: &Arc<Table>, column: usize) -> ScalarBuffer<T> {
        Buffer::from(Bytes::from_owner(Numbers { table: table.clone(), column })).into()
    }
}

/// Lists of strings by their numbers in a dictionary, which all rows share. A number from
/// 2^31 on would be negative, which is refused as any that is not in the dictionary.
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
            Data::Value(_) => Arc::new(Int64Array::new(Numbers::share(table, index), None)),
            Data::Line(lines) => Arc::new(Int64Array::from(lines.clone())),
            Data::Address(addresses) => Arc::new(UInt64Array::from(addresses.clone())),
            Data::Ratio(ratios) => Arc::new(Float64Array::from(ratios.clone())),
            Data::Lists(column) => lists(column, Numbers::share(table, index))?,
        };
        fields.push(Field::new(&*column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// The table as a stream of one batch.
pub fn stream(table: &Arc<Table>) -> Result<FFI_ArrowArrayStream, ArrowError> {
    let batch = batch(table)?;
    let schema = batch.schema();
    Ok(FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
}

/// One pair in a stream of many: the rows of its table, or why there are none.
pub struct PairRows {
    pub name: String,
    pub error: Option<String>,
    pub table: Option<Arc<Table>>,
}

impl PairRows {
    /// Number of rows in the stream: a pair that failed has one, so that none is lost.
    fn len(&self) -> usize {
        self.table.as_ref().map_or(1, |table| table.len())
    }
}

/// The columns of many pairs: which pair, what its values are, then those of a table of frames.
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

/// A batch ends with the row that reaches one of these: small pairs share one, and a large one is cut.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_TEXT: usize = 64 << 20;

/// A column that is being filled.
enum Filling {
    Text(StringBuilder),
    Int(Int64Builder),
    Address(UInt64Builder),
}

impl Filling {
    /// Appends a value; its length if it is a text.
    fn push(&mut self, cell: &Cell<'_>) -> Result<usize, ArrowError> {
        match (self, cell) {
            (Filling::Text(column), Cell::Text(text)) => {
                // Offsets are 32 bits wide; a batch ends long before, unless one text alone is too long.
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

/// Record batches out of the tables of many pairs, made as they are taken.
struct PairBatches<I, F> {
    pairs: I,
    at_end: F,
    schema: Arc<Schema>,
    /// The pair that a batch was cut in, and its next row.
    cut: Option<(PairRows, usize)>,
    /// An error that waits until the rows before it were taken.
    failed: Option<ArrowError>,
}

impl<I: Iterator<Item = Result<PairRows, ArrowError>>, F> PairBatches<I, F> {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut columns: Vec<Filling> = PAIR_COLUMNS
            .iter()
            .map(|(_, kind)| match kind {
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
            let own: Vec<_> = PAIR_COLUMNS.iter().map(|(name, _)| pair.table.as_ref()?.column(name)).collect();
            let mut row = from;
            while row < pair.len() && rows < BATCH_ROWS && text < BATCH_TEXT {
                let shared = [
                    Some(&*pair.name),
                    pair.error.as_deref(),
                    pair.table.as_ref().map(|t| &*t.summary.sample_type),
                    pair.table.as_ref().map(|t| &*t.summary.unit),
                ];
                for (i, column) in columns.iter_mut().enumerate() {
                    text += match (shared.get(i), own[i]) {
                        (Some(shared), _) => column.push(&shared.map_or(Cell::Missing, Cell::Text))?,
                        (None, own) => column.push(&own.map_or(Cell::Missing, |own| own.cell(row)))?,
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

/// The tables of many pairs as a stream of batches. `pairs` is fused; `at_end` is called when the reader is told the end.
pub fn pairs_stream(
    pairs: impl Iterator<Item = Result<PairRows, ArrowError>> + Send + 'static,
    at_end: impl FnMut() + Send + 'static,
) -> FFI_ArrowArrayStream {
    let fields = PAIR_COLUMNS.map(|(name, kind)| Field::new(name, kind, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batches = PairBatches { pairs, at_end, schema: schema.clone(), cut: None, failed: None };
    FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)))
}
