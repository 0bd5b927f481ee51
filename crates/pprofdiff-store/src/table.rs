//! Reads and writes the tables of a store as Parquet files.
//!
//! The files may come from a stranger. A file is accepted only if it declares itself such a table and has its columns.
//! A few bytes can encode millions of equal values, so a [`Budget`] limits the decoded rows and unpacked pages in
//! advance. A panic of the library becomes an error about the file.

use std::cell::Cell;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::{lists, thrift};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The metadata key that marks a file as part of a store. Its value describes the file's profiles as JSON.
const MARKER: &str = "pprofdiff.store";
/// The compression level of zstd. A file is compressed once and read often, so the level is high.
const ZSTD_LEVEL: i32 = 6;
/// A name occurs in its dictionary once, so the dictionary may be large.
const MAX_DICTIONARY_BYTES: usize = 8 << 20;
/// The number of rows to read at once.
const BATCH_ROWS: usize = 16 << 10;

/// The type and encoding of a column. No value is null: unknown values are 0 or empty, as in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Int,
    /// Numbers that rarely repeat. A dictionary would take more space than the numbers.
    Value,
    /// Numbers close to their predecessors, stored as differences.
    Near,
    Text,
    /// Byte strings that rarely repeat.
    Hash,
    Ints,
    Texts,
}

/// The name and columns of a table.
pub struct StoreTable {
    pub name: &'static str,
    pub columns: &'static [(&'static str, ColumnKind)],
}

/// Lists stored one after the other, with the end of each list.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ColumnLists<T> {
    pub values: Vec<T>,
    pub ends: Vec<usize>,
}

impl<T> ColumnLists<T> {
    pub fn end_list(&mut self) {
        self.ends.push(self.values.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.values[from..to])
    }

    /// Returns Parquet's definition levels (1 for a value, 0 for an empty list) and repetition levels (0 at the start
    /// of a list, 1 inside it).
    fn levels(&self) -> (Vec<i16>, Vec<i16>) {
        let mut levels = (Vec::with_capacity(self.values.len()), Vec::with_capacity(self.values.len()));
        for list in self.iter() {
            let n = list.len().max(1);
            levels.0.extend(std::iter::repeat_n(i16::from(!list.is_empty()), n));
            levels.1.push(0);
            levels.1.extend(std::iter::repeat_n(1, n - 1));
        }
        levels
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreColumn {
    Int(Vec<i64>),
    Bytes(Vec<ByteArray>),
    Ints(ColumnLists<i32>),
    Texts(ColumnLists<ByteArray>),
}

impl StoreColumn {
    pub fn ints(self) -> Vec<i64> {
        if let StoreColumn::Int(values) = self { values } else { Vec::new() }
    }

    pub fn bytes(self) -> Vec<ByteArray> {
        if let StoreColumn::Bytes(values) = self { values } else { Vec::new() }
    }

    pub fn int_lists(self) -> ColumnLists<i32> {
        if let StoreColumn::Ints(lists) = self { lists } else { ColumnLists { values: Vec::new(), ends: Vec::new() } }
    }
}

impl StoreTable {
    fn schema(&self) -> Result<Arc<parquet::schema::types::Type>> {
        let list =
            |item: &str, name: &str| format!("required group {name} (LIST) {{ repeated group list {{ {item}; }} }}");
        let columns = self.columns.iter().map(|(name, kind)| match kind {
            ColumnKind::Int | ColumnKind::Value | ColumnKind::Near => format!("required int64 {name};"),
            ColumnKind::Text => format!("required binary {name} (STRING);"),
            ColumnKind::Hash => format!("required binary {name};"),
            ColumnKind::Ints => list("required int32 element", name),
            ColumnKind::Texts => list("required binary element (STRING)", name),
        });
        let message = format!("message {} {{ {} }}", self.name, columns.collect::<Vec<_>>().join(" "));
        Ok(Arc::new(parse_message_type(&message).map_err(write_error)?))
    }

    fn writer(&self, about: String) -> Result<SerializedFileWriter<Vec<u8>>> {
        let mut properties = WriterProperties::builder();
        for (name, kind) in self.columns {
            let path = match kind {
                ColumnKind::Int | ColumnKind::Text | ColumnKind::Texts => continue,
                ColumnKind::Value | ColumnKind::Near | ColumnKind::Hash => vec![(*name).to_owned()],
                // Without a dictionary, each number takes four bytes. Whole bytes compress better than the library's
                // dictionary indices (see `lists`).
                ColumnKind::Ints => [*name, "list", "element"].map(str::to_owned).into(),
            };
            if *kind == ColumnKind::Near {
                properties = properties.set_column_encoding(path.clone().into(), Encoding::DELTA_BINARY_PACKED);
            }
            properties = properties.set_column_dictionary_enabled(path.into(), false);
        }
        let properties = properties
            .set_created_by("pprofdiff".to_owned())
            .set_compression(Compression::ZSTD(zstd_level()?))
            .set_dictionary_page_size_limit(MAX_DICTIONARY_BYTES)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(vec![KeyValue::new(MARKER.to_owned(), about)]));
        SerializedFileWriter::new(Vec::new(), self.schema()?, Arc::new(properties.build())).map_err(write_error)
    }

    /// Encodes a file with one row group and the metadata `about`.
    pub fn write(&self, columns: &[StoreColumn], about: String) -> Result<Vec<u8>> {
        let mut writer = self.writer(about)?;
        let schema = SchemaDescriptor::new(self.schema()?);
        let mut group = writer.next_row_group().map_err(write_error)?;
        for (index, column) in columns.iter().enumerate() {
            cancellation::checkpoint();
            let written = match column {
                StoreColumn::Int(values) => write_column::<Int64Type>(&mut group, values, None),
                StoreColumn::Bytes(values) => write_column::<ByteArrayType>(&mut group, values, None),
                StoreColumn::Ints(lists) => write_column::<Int32Type>(&mut group, &lists.values, Some(lists.levels())),
                StoreColumn::Texts(texts) => {
                    let packed = lists::pack(texts, schema.column(index), zstd_level()?);
                    packed.and_then(|(bytes, close)| group.append_column(&bytes, close))
                }
            };
            written.map_err(write_error)?;
        }
        group.close().map_err(write_error)?;
        writer.into_inner().map_err(write_error)
    }

    /// Copies row groups of several files unchanged into one file.
    pub fn concat(&self, groups: &[(&TableFile, usize)], about: String) -> Result<Vec<u8>> {
        let mut writer = self.writer(about)?;
        // The files may be damaged, and the library allocates the sizes that they announce, so it may panic.
        catch_panics(|| {
            for (file, group) in groups {
                cancellation::checkpoint();
                let group = file.reader.metadata().row_group(*group);
                let mut copy = writer.next_row_group()?;
                for chunk in group.columns() {
                    let close = ColumnCloseResult {
                        bytes_written: chunk.compressed_size() as u64,
                        rows_written: group.num_rows() as u64,
                        metadata: chunk.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copy.append_column(&file.bytes, close)?;
                }
                copy.close()?;
            }
            writer.into_inner()
        })
    }

    /// Opens a file of this table.
    pub fn open(&'static self, bytes: Vec<u8>) -> Result<TableFile> {
        let bytes = Bytes::from(bytes);
        check_metadata(&bytes)?;
        let reader = catch_panics(|| SerializedFileReader::new(bytes.clone()))?;
        let metadata = reader.metadata();
        let about = about(metadata)?;
        let expected = SchemaDescriptor::new(self.schema()?);
        if metadata.file_metadata().schema_descr().columns() != expected.columns() {
            return Err(Error::malformed(format!(
                "its columns differ from the columns of a store's table {}",
                self.name
            )));
        }
        Ok(TableFile { table: self, bytes, reader, about })
    }
}

/// The remaining number of bytes that may be decoded.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    left: u64,
}

impl Budget {
    pub fn new(limit: u64) -> Budget {
        Budget { limit, left: limit }
    }

    /// Takes bytes from the budget.
    ///
    /// # Errors
    /// Returns an error if the budget has fewer bytes left.
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let detail = format!("it would inflate to more than {} bytes (--inflated-limit)", self.limit);
                Err(Error::new(ErrorKind::Limit, detail))
            }
        }
    }
}

/// Reads a file's description and the number of its row groups. Reads only the end of the file.
pub fn read_about(file: &mut (impl Read + Seek)) -> Result<(String, usize)> {
    let size = file.seek(SeekFrom::End(0)).map_err(Error::io)?;
    let mut read_last = |bytes: u64| {
        let mut last = Vec::new();
        file.seek(SeekFrom::Start(size.saturating_sub(bytes))).map_err(Error::io)?;
        file.take(bytes).read_to_end(&mut last).map_err(Error::io)?;
        Ok::<Vec<u8>, Error>(last)
    };
    let tail = read_last(TAIL_BYTES)?;
    let length = u64::from(metadata_length(&tail)?);
    let metadata = read_last((length + TAIL_BYTES).min(size))?;
    let metadata = check_metadata(&metadata)?;
    let metadata = catch_panics(|| ParquetMetaDataReader::decode_metadata(metadata))?;
    Ok((about(&metadata)?, metadata.num_row_groups()))
}

/// The size of a file's tail: four bytes for the length of its metadata, and the magic bytes `PAR1`.
const TAIL_BYTES: u64 = 8;

fn metadata_length(file: &[u8]) -> Result<u32> {
    match file.split_last_chunk::<8>() {
        Some((_, [a, b, c, d, b'P', b'A', b'R', b'1'])) => Ok(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => Err(damaged("it does not end like a Parquet file")),
    }
}

/// Returns the metadata at the end of a file, if the library can read it without allocating more than the file holds.
fn check_metadata(file: &[u8]) -> Result<&[u8]> {
    let end = file.len().saturating_sub(TAIL_BYTES as usize);
    let start = end.checked_sub(metadata_length(file)? as usize);
    let metadata = start.and_then(|start| file.get(start..end)).filter(|metadata| thrift::is_schema_sound(metadata));
    metadata.ok_or_else(|| damaged("its metadata is damaged"))
}

fn about(metadata: &ParquetMetaData) -> Result<String> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let about = pairs.filter(|pair| pair.key == MARKER).find_map(|pair| pair.value.clone());
    about.ok_or_else(|| {
        let detail =
            "this Parquet file is not part of a pprofdiff store; add profiles to a store with pprofdiff store add";
        Error::new(ErrorKind::OtherFormat, detail)
    })
}

/// An open file of a table.
pub struct TableFile {
    table: &'static StoreTable,
    bytes: Bytes,
    reader: SerializedFileReader<Bytes>,
    /// The description from the file's metadata.
    pub about: String,
}

impl TableFile {
    pub fn n_groups(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// Reads columns of a group of rows, in the given order. Keeps only the rows of a column whose number is a multiple
    /// of its step.
    pub fn columns<const N: usize>(
        &self,
        group: usize,
        names: [(&str, usize); N],
        budget: &mut Budget,
    ) -> Result<[StoreColumn; N]> {
        let index = |name: &str| self.table.columns.iter().position(|column| column.0 == name).unwrap_or_default();
        for (name, step) in names {
            budget.take(catch_panics(|| self.inflated_size(group, index(name), step))?)?;
        }
        let read = || {
            let group = self.reader.get_row_group(group)?;
            let mut columns = Vec::with_capacity(N);
            for (name, step) in names {
                cancellation::checkpoint();
                columns.push(self.column(&*group, index(name), step)?);
            }
            Ok(columns)
        };
        catch_panics(read)?.try_into().map_err(|_| Error::malformed("it has no such columns"))
    }

    /// Returns the decoded size of a column in a group: its pages, and its values. Unpacks nothing, because pages and
    /// columns announce their sizes, and the library refuses a page with another size.
    fn inflated_size(&self, group: usize, index: usize, step: usize) -> Result<u64, ParquetError> {
        let group = self.reader.metadata().row_group(group);
        let (chunk, kind) = (group.column(index), self.table.columns[index].1);
        let (Ok(values), Ok(rows)) = (u64::try_from(chunk.num_values()), u64::try_from(group.num_rows())) else {
            return Err(ParquetError::General("it announces a negative number of rows".to_owned()));
        };
        let (start, length) = chunk.byte_range();
        let end = start.checked_add(length).and_then(|end| usize::try_from(end).ok());
        let range = usize::try_from(start).ok().zip(end);
        let packed = range.and_then(|(start, end)| self.bytes.get(start..end));
        let pages = packed.and_then(thrift::pages_size);
        let pages = pages.ok_or_else(|| ParquetError::General("its pages are damaged".to_owned()))?;
        let kept = |width: u64| values.div_ceil(step as u64).saturating_mul(width);
        let values_size = match kind {
            ColumnKind::Int | ColumnKind::Value | ColumnKind::Near => kept(8),
            ColumnKind::Text | ColumnKind::Hash => kept(16),
            // Each element counts at least one byte, because the skipped rows are decoded too.
            ColumnKind::Ints => values.max(kept(4)).saturating_add(rows.div_ceil(step as u64).saturating_mul(8)),
            ColumnKind::Texts => values.max(kept(16)).saturating_add(rows.div_ceil(step as u64).saturating_mul(8)),
        };
        Ok(pages.saturating_add(values_size).max(rows))
    }

    fn column(&self, group: &dyn RowGroupReader, index: usize, step: usize) -> Result<StoreColumn, ParquetError> {
        let announced = group.metadata().column(index).num_values();
        // The library allocates the sizes that pages announce, so the pages must not announce more values than their
        // column.
        let mut pages = group.get_column_page_reader(index)?;
        let mut values = 0_i64;
        while let Some(page) = pages.peek_next_page()? {
            values = values.saturating_add(page.num_levels.unwrap_or(0) as i64);
            if values > announced {
                return Err(ParquetError::General(format!("a column has more than its {announced} values")));
            }
            pages.skip_next_page()?;
        }
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
        Ok(match self.table.columns[index].1 {
            ColumnKind::Int | ColumnKind::Value | ColumnKind::Near => {
                StoreColumn::Int(load::<Int64Type>(group, index, rows, step)?.values)
            }
            ColumnKind::Text | ColumnKind::Hash => {
                StoreColumn::Bytes(load::<ByteArrayType>(group, index, rows, step)?.values)
            }
            ColumnKind::Ints => StoreColumn::Ints(load::<Int32Type>(group, index, rows, step)?),
            ColumnKind::Texts => StoreColumn::Texts(load::<ByteArrayType>(group, index, rows, step)?),
        })
    }
}

type ListLevels = (Vec<i16>, Vec<i16>);

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<ListLevels>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let (definition, repetition) = levels.as_ref().map_or((None, None), |(d, r)| (Some(&d[..]), Some(&r[..])));
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}

/// Reads a column of `rows` rows: its lists, or its values if it has no lists. Keeps only the rows whose number is a
/// multiple of `step`.
fn load<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
    rows: usize,
    step: usize,
) -> Result<ColumnLists<T::T>, ParquetError> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let is_list = group.metadata().column(index).column_descr().max_rep_level() > 0;
    // The `step` rows of a sample have equal lists. The budget counts only the kept lists.
    let announced = usize::try_from(group.metadata().column(index).num_values()).unwrap_or(usize::MAX);
    let max_kept = announced.div_ceil(step);
    let mut kept = ColumnLists { values: Vec::new(), ends: Vec::new() };
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        cancellation::checkpoint();
        definition.clear();
        repetition.clear();
        let batch_rows = BATCH_ROWS.min(rows - read);
        let (records, ..) =
            reader.read_records(batch_rows, Some(&mut definition), Some(&mut repetition), &mut values)?;
        let damaged = || ParquetError::General(format!("a column has {} of {rows} rows", read + records));
        if records == 0 {
            return Err(damaged());
        }
        let is_kept = |row: usize| (read + row).is_multiple_of(step);
        let mut values_left = values.drain(..);
        let mut rows_begun = 0;
        if is_list {
            for (&defined, &repeated) in definition.iter().zip(&repetition) {
                if repeated == 0 {
                    if rows_begun > 0 && is_kept(rows_begun - 1) {
                        kept.end_list();
                    }
                    rows_begun += 1;
                }
                let row = rows_begun.checked_sub(1).ok_or_else(damaged)?;
                if defined > 0 {
                    let value = values_left.next().ok_or_else(damaged)?;
                    kept.values.extend(is_kept(row).then_some(value));
                }
            }
            if rows_begun > 0 && is_kept(rows_begun - 1) {
                kept.end_list();
            }
        } else {
            for value in values_left.by_ref() {
                kept.values.extend(is_kept(rows_begun).then_some(value));
                rows_begun += 1;
            }
        }
        if rows_begun != records || values_left.next().is_some() {
            return Err(damaged());
        }
        drop(values_left);
        if is_list && kept.values.len() > max_kept {
            return Err(ParquetError::General("the rows of a sample have different lists".to_owned()));
        }
        read += records;
    }
    Ok(kept)
}

thread_local! {
    /// True while this thread runs the library on the content of a file.
    static CATCHES_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Runs the library and returns its answer. A panic of the library becomes an error and prints nothing. A cancellation
/// continues to unwind.
pub(super) fn catch_panics<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    static HOOK: Once = Once::new();
    // The hook prints before a panic can be caught. Other panics go to the previous hook.
    HOOK.call_once(|| {
        let previous_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CATCHES_PANICS.try_with(Cell::get).unwrap_or(false) {
                previous_hook(panic);
            }
        }));
    });
    let outer = CATCHES_PANICS.replace(true);
    let answer = catch_unwind(AssertUnwindSafe(read));
    CATCHES_PANICS.set(outer);
    match answer {
        Ok(read) => read.map_err(|e| damaged(&e.to_string())),
        // A cancelled computation also unwinds, but with a payload that is not a text.
        Err(panic) if panic.downcast_ref::<String>().is_none() && panic.downcast_ref::<&str>().is_none() => {
            panic::resume_unwind(panic)
        }
        Err(_) => Err(damaged("it can't be decoded")),
    }
}

fn damaged(why: &str) -> Error {
    Error::malformed(format!("this is not a complete Parquet file of a store: {why}"))
}

fn zstd_level() -> Result<ZstdLevel> {
    ZstdLevel::try_new(ZSTD_LEVEL).map_err(write_error)
}

fn write_error(e: ParquetError) -> Error {
    Error::query(format!("a table could not be written: {e}"))
}
