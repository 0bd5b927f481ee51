//! A table as Arrow: one record batch, handed over through the C stream interface. Values and the numbers
//! of lists, which are most of a large table, are not copied: the batch holds the table.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use pprofdiff::report::{Data, Lists, Table, Texts};

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
