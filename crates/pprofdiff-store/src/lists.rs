//! Packs columns of text lists into Parquet pages that compress better than the library's pages.
//!
//! The library stores dictionary indices with as few bits as possible. Such indices don't fall on byte boundaries, so
//! zstd can't find the repeated parts of stacks, which make up most of the data. Each page contains its bit width, so
//! indices may also take whole bytes. The library lacks an option for that, so this module writes the pages itself.
//! Every Parquet reader can read them.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::table::ColumnLists;
use pprofdiff_profile::cancellation;
use pprofdiff_profile::random::HashMap;

/// The number of values after which a page ends. Only whole lists are in a page, so the last list may exceed it.
const PAGE_VALUES: usize = 1 << 18;

/// Packs a column of lists. The caller appends the result to a row group.
pub fn pack(
    lists: &ColumnLists<ByteArray>,
    column: ColumnDescPtr,
    level: ZstdLevel,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut indices: HashMap<&[u8], u32> = HashMap::default();
    let (mut dictionary, mut value_indices) = (Vec::new(), Vec::with_capacity(lists.values.len()));
    for value in &lists.values {
        let next = indices.len() as u32;
        value_indices.push(*indices.entry(value.data()).or_insert_with(|| {
            dictionary.extend((value.len() as u32).to_le_bytes());
            dictionary.extend(value.data());
            next
        }));
    }
    let last = indices.len().saturating_sub(1) as u32;
    let width = (1..4).find(|bytes| last >> (8 * bytes) == 0).unwrap_or(4);
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let (mut packed, mut unpacked, mut first, mut levels) = (0, 0, 0, 0);
    let mut put = |page: Page, size: usize| -> Result<usize, ParquetError> {
        cancellation::checkpoint();
        let written = pages.write_page(CompressedPage::new(page, size))?;
        (packed, unpacked) = (packed + written.compressed_size, unpacked + written.uncompressed_size);
        Ok(written.compressed_size)
    };
    let compress = |bytes: &[u8]| zstd::bulk::compress(bytes, level.compression_level()).map(Bytes::from);
    let (size, buf) = (dictionary.len(), compress(&dictionary)?);
    let encoding = Encoding::PLAIN;
    first += put(Page::DictionaryPage { buf, num_values: indices.len() as u32, encoding, is_sorted: false }, size)?;
    let (mut row, mut value) = (0, 0);
    while row < lists.ends.len() {
        // Parquet's levels, one per value or empty list: repetition (1 if the value continues a list) and definition (1
        // if there is a value).
        let (mut repetition, mut definition, from) = (Vec::new(), Vec::new(), value);
        while row < lists.ends.len() && (repetition.is_empty() || value - from < PAGE_VALUES) {
            let n = lists.ends[row] - value;
            repetition.extend((0..n.max(1)).map(|place| u32::from(place > 0)));
            definition.extend(std::iter::repeat_n(u32::from(n > 0), n.max(1)));
            (row, value) = (row + 1, value + n);
        }
        let mut page = Vec::new();
        for level in [&repetition, &definition] {
            let mut bits = Vec::new();
            put_run(level, 1, &mut bits);
            page.extend((bits.len() as u32).to_le_bytes());
            page.extend(bits);
        }
        page.push(8 * width as u8);
        put_run(&value_indices[from..value], 8 * width, &mut page);
        levels += repetition.len();
        let data_page = Page::DataPage {
            buf: compress(&page)?,
            num_values: repetition.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        put(data_page, page.len())?;
    }
    let metadata = ColumnChunkMetaData::builder(column)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_compression(Compression::ZSTD(level))
        .set_num_values(levels as i64)
        .set_total_compressed_size(packed as i64)
        .set_total_uncompressed_size(unpacked as i64)
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(first as i64)
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: packed as u64,
        rows_written: lists.ends.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok((sink.into_inner()?.into(), close))
}

/// Encodes numbers of `width` bits as one bit-packed run: the number of groups of eight, then their bits, lowest first.
fn put_run(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let groups = numbers.len().div_ceil(8);
    let mut head = (groups as u64) << 1 | 1;
    while head > 0x7f {
        out.push(head as u8 | 0x80);
        head >>= 7;
    }
    out.push(head as u8);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut filled) = (0_u64, 0);
    for &number in numbers {
        bits |= u64::from(number) << filled;
        filled += width;
        while filled >= 8 {
            out.push(bits as u8);
            (bits, filled) = (bits >> 8, filled - 8);
        }
    }
    if filled > 0 {
        out.push(bits as u8);
    }
    out.resize(end, 0);
}
