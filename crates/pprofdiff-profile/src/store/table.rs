//! Tables as Parquet files: columns in, bytes out, and back.
//!
//! What is read was written by a stranger, perhaps. A file is taken only if it says that it is such a table and has its
//! columns, and what it announces is held against the limit before a page is unpacked; where the library panics all the same,
//! that is an error of the file.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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

use super::lists;
use crate::error::{Error, ErrorKind, Result};
use crate::work;

/// The key of a file's metadata that says what it is.
const MARKER: &str = "pprofdiff.store";
/// What is packed hard is packed once and read often.
const LEVEL: i32 = 6;
/// A name occurs in its dictionary once, so the dictionary may be large.
const MAX_DICTIONARY: usize = 8 << 20;
/// Rows that are read at once.
const BATCH: usize = 16 << 10;

/// What a column holds. Nothing is null: what is not known is 0 or empty, as in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    /// Numbers that mostly occur once: a dictionary of them would take more than they do.
    Value,
    /// Numbers near to those before them.
    Near,
    Text,
    /// Texts that mostly occur once.
    Hash,
    Ints,
    Texts,
}

/// A table's name and its columns.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
}

/// Lists, one after the other, and where each ends.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Lists<T> {
    pub values: Vec<T>,
    pub ends: Vec<usize>,
}

impl<T> Lists<T> {
    pub fn end_list(&mut self) {
        self.ends.push(self.values.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.values[from..to])
    }

    /// Parquet's levels: 1 where a value is, 0 of an empty list; 0 where a list begins, 1 within it.
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

/// A column's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    Int(Vec<i64>),
    Bytes(Vec<ByteArray>),
    Ints(Lists<i32>),
    Texts(Lists<ByteArray>),
}

impl Column {
    pub fn ints(self) -> Vec<i64> {
        if let Column::Int(values) = self { values } else { Vec::new() }
    }

    pub fn bytes(self) -> Vec<ByteArray> {
        if let Column::Bytes(values) = self { values } else { Vec::new() }
    }

    pub fn int_lists(self) -> Lists<i32> {
        if let Column::Ints(lists) = self { lists } else { Lists { values: Vec::new(), ends: Vec::new() } }
    }
}

impl Table {
    fn schema(&self) -> Result<Arc<parquet::schema::types::Type>> {
        let list = |of: &str, name: &str| format!("required group {name} (LIST) {{ repeated group list {{ {of}; }} }}");
        let columns = self.columns.iter().map(|(name, kind)| match kind {
            Kind::Int | Kind::Value | Kind::Near => format!("required int64 {name};"),
            Kind::Text => format!("required binary {name} (STRING);"),
            Kind::Hash => format!("required binary {name};"),
            Kind::Ints => list("required int32 element", name),
            Kind::Texts => list("required binary element (STRING)", name),
        });
        let message = format!("message {} {{ {} }}", self.name, columns.collect::<Vec<_>>().join(" "));
        Ok(Arc::new(parse_message_type(&message).map_err(unwritten)?))
    }

    fn writer(&self, about: String) -> Result<SerializedFileWriter<Vec<u8>>> {
        let mut properties = WriterProperties::builder();
        for (name, kind) in self.columns {
            let path = match kind {
                Kind::Int | Kind::Text | Kind::Texts => continue,
                Kind::Value | Kind::Near | Kind::Hash => vec![(*name).to_owned()],
                // As `lists` says of texts; so few bytes need no dictionary.
                Kind::Ints => [*name, "list", "element"].map(str::to_owned).into(),
            };
            if *kind == Kind::Near {
                properties = properties.set_column_encoding(path.clone().into(), Encoding::DELTA_BINARY_PACKED);
            }
            properties = properties.set_column_dictionary_enabled(path.into(), false);
        }
        let properties = properties
            .set_created_by("pprofdiff".to_owned())
            .set_compression(Compression::ZSTD(zstd_level()?))
            .set_dictionary_page_size_limit(MAX_DICTIONARY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(vec![KeyValue::new(MARKER.to_owned(), about)]));
        SerializedFileWriter::new(Vec::new(), self.schema()?, Arc::new(properties.build())).map_err(unwritten)
    }

    /// A file of one group of rows, and what its metadata say.
    pub fn write(&self, columns: &[Column], about: String) -> Result<Vec<u8>> {
        let mut writer = self.writer(about)?;
        let schema = SchemaDescriptor::new(self.schema()?);
        let mut group = writer.next_row_group().map_err(unwritten)?;
        for (index, column) in columns.iter().enumerate() {
            work::poll();
            let written = match column {
                Column::Int(values) => put::<Int64Type>(&mut group, values, None),
                Column::Bytes(values) => put::<ByteArrayType>(&mut group, values, None),
                Column::Ints(lists) => put::<Int32Type>(&mut group, &lists.values, Some(lists.levels())),
                Column::Texts(texts) => {
                    let packed = lists::pack(texts, schema.column(index), zstd_level()?);
                    packed.and_then(|(bytes, close)| group.append_column(&bytes, close))
                }
            };
            written.map_err(unwritten)?;
        }
        group.close().map_err(unwritten)?;
        writer.into_inner().map_err(unwritten)
    }

    /// Groups of rows of several files in one, as they are.
    pub fn concat(&self, groups: &[(&TableFile, usize)], about: String) -> Result<Vec<u8>> {
        let mut writer = self.writer(about)?;
        for (file, group) in groups {
            work::poll();
            let group = file.reader.metadata().row_group(*group);
            let mut copy = writer.next_row_group().map_err(unwritten)?;
            for chunk in group.columns() {
                let close = ColumnCloseResult {
                    bytes_written: chunk.compressed_size() as u64,
                    rows_written: group.num_rows() as u64,
                    metadata: chunk.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copy.append_column(&file.bytes, close).map_err(unwritten)?;
            }
            copy.close().map_err(unwritten)?;
        }
        writer.into_inner().map_err(unwritten)
    }

    /// Opens a file of this table, within a limit on what it may inflate to.
    pub fn open(&'static self, bytes: Vec<u8>, limit: u64) -> Result<TableFile> {
        let bytes = Bytes::from(bytes);
        let reader = guarded(|| SerializedFileReader::new(bytes.clone()))?;
        let metadata = reader.metadata();
        let about = about(metadata)?;
        let wanted = SchemaDescriptor::new(self.schema()?);
        if metadata.file_metadata().schema_descr().columns() != wanted.columns() {
            return Err(Error::malformed(format!("its columns are not those of a store's table of {}", self.name)));
        }
        let announced = metadata.row_groups().iter().flat_map(|group| group.columns());
        let announced = announced.map(|chunk| chunk.uncompressed_size().max(chunk.num_values()).max(0) as u64);
        let announced = announced.fold(0, u64::saturating_add);
        if announced > limit {
            let detail = format!("it would inflate to {announced} bytes; the limit is {limit} (--inflated-limit)");
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        Ok(TableFile { table: self, bytes, reader, about, limit })
    }
}

/// What a file's metadata say, and how many groups of rows it has; of the file only its end is read.
pub fn read_about(file: &File) -> Result<(String, usize)> {
    let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(file))?;
    Ok((about(&metadata)?, metadata.num_row_groups()))
}

fn about(metadata: &ParquetMetaData) -> Result<String> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let about = pairs.filter(|pair| pair.key == MARKER).find_map(|pair| pair.value.clone());
    about.ok_or_else(|| {
        let detail = "this Parquet file is not of a pprofdiff store; profiles come into a store by pprofdiff store add";
        Error::new(ErrorKind::OtherFormat, detail)
    })
}

/// An open file of a table.
pub struct TableFile {
    table: &'static Table,
    bytes: Bytes,
    reader: SerializedFileReader<Bytes>,
    /// What its metadata say.
    pub about: String,
    limit: u64,
}

impl TableFile {
    pub fn n_groups(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// Some columns of a group of rows, in the order in which they are named.
    pub fn columns<const N: usize>(&self, group: usize, names: [&str; N]) -> Result<[Column; N]> {
        let read = || {
            let group = self.reader.get_row_group(group)?;
            let mut columns = Vec::with_capacity(N);
            for name in names {
                work::poll();
                let index = self.table.columns.iter().position(|column| column.0 == name).unwrap_or_default();
                columns.push(self.column(&*group, index)?);
            }
            Ok(columns)
        };
        guarded(read)?.try_into().map_err(|_| Error::malformed("it has no such columns"))
    }

    fn column(&self, group: &dyn RowGroupReader, index: usize) -> Result<Column, ParquetError> {
        let announced = group.metadata().column(index).num_values();
        // What pages announce is what is made room for, so they may announce no more than their column.
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
        if rows as u64 > self.limit {
            return Err(ParquetError::General(format!("it has {rows} rows")));
        }
        Ok(match self.table.columns[index].1 {
            Kind::Int | Kind::Value | Kind::Near => Column::Int(get::<Int64Type>(group, index, rows)?.values),
            Kind::Text | Kind::Hash => Column::Bytes(get::<ByteArrayType>(group, index, rows)?.values),
            Kind::Ints => Column::Ints(get::<Int32Type>(group, index, rows)?),
            Kind::Texts => Column::Texts(get::<ByteArrayType>(group, index, rows)?),
        })
    }
}

type Levels = (Vec<i16>, Vec<i16>);

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<Levels>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let (definition, repetition) = levels.as_ref().map_or((None, None), |(d, r)| (Some(&d[..]), Some(&r[..])));
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}

/// A column's lists, or its values if it has no lists; of exactly so many rows.
fn get<T: DataType>(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Lists<T::T>, ParquetError> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let is_list = group.metadata().column(index).column_descr().max_rep_level() > 0;
    let mut lists = Lists { values: Vec::new(), ends: Vec::new() };
    let (mut definition, mut repetition, mut read) = (Vec::new(), Vec::new(), 0);
    while read < rows {
        work::poll();
        let (records, ..) = reader.read_records(
            BATCH.min(rows - read),
            Some(&mut definition),
            Some(&mut repetition),
            &mut lists.values,
        )?;
        if records == 0 {
            break;
        }
        read += records;
    }
    if is_list {
        let mut end = 0;
        for (at, (&defined, &repeated)) in definition.iter().zip(&repetition).enumerate() {
            if repeated == 0 && at > 0 {
                lists.ends.push(end);
            }
            end += usize::from(defined > 0);
        }
        if !definition.is_empty() {
            lists.ends.push(end);
        }
    }
    let (found, is_whole) = match is_list {
        true => (lists.ends.len(), lists.ends.last().copied().unwrap_or(0) == lists.values.len()),
        false => (lists.values.len(), true),
    };
    if found != rows || !is_whole {
        return Err(ParquetError::General(format!("a column has {found} of {rows} rows")));
    }
    Ok(lists)
}

/// The library's answer; its panic is an error.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    let damaged = |why: &str| Error::malformed(format!("this is no whole Parquet file of a store: {why}"));
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|e| damaged(&e.to_string())),
        // Work that is stopped unwinds, too.
        Err(panic) if panic.downcast_ref::<String>().is_none() && panic.downcast_ref::<&str>().is_none() => {
            std::panic::resume_unwind(panic)
        }
        Err(_) => Err(damaged("it can't be decoded")),
    }
}

fn zstd_level() -> Result<ZstdLevel> {
    ZstdLevel::try_new(LEVEL).map_err(unwritten)
}

fn unwritten(e: ParquetError) -> Error {
    Error::query(format!("a table could not be written: {e}"))
}
