//! Columns of lists of texts, as they are packed best.
//!
//! Parquet gives the numbers of a dictionary as few bits as they need. These are no whole bytes, so zstd finds nothing of what
//! stacks have in common, which is most of them. How many bits a page has stands in the page: here they are whole bytes. The
//! library has no such option, so these pages are made here; all that read Parquet read them.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::table::Lists;
use crate::random::HashMap;
use crate::work;

/// A page ends behind the list with which it has so many values.
const PAGE_VALUES: usize = 1 << 18;

/// A column of lists, to be appended to a group of rows.
pub fn pack(
    lists: &Lists<ByteArray>,
    column: ColumnDescPtr,
    level: ZstdLevel,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut numbers: HashMap<&[u8], u32> = HashMap::default();
    let (mut dictionary, mut of_values) = (Vec::new(), Vec::with_capacity(lists.values.len()));
    for value in &lists.values {
        let next = numbers.len() as u32;
        of_values.push(*numbers.entry(value.data()).or_insert_with(|| {
            dictionary.extend((value.len() as u32).to_le_bytes());
            dictionary.extend(value.data());
            next
        }));
    }
    let last = numbers.len().saturating_sub(1) as u32;
    let width = (1..4).find(|bytes| last >> (8 * bytes) == 0).unwrap_or(4);
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let (mut packed, mut unpacked, mut first, mut levels) = (0, 0, 0, 0);
    let mut put = |page: Page, size: usize| -> Result<usize, ParquetError> {
        work::poll();
        let done = pages.write_page(CompressedPage::new(page, size))?;
        (packed, unpacked) = (packed + done.compressed_size, unpacked + done.uncompressed_size);
        Ok(done.compressed_size)
    };
    let compress = |bytes: &[u8]| zstd::bulk::compress(bytes, level.compression_level()).map(Bytes::from);
    let (size, buf) = (dictionary.len(), compress(&dictionary)?);
    let encoding = Encoding::PLAIN;
    first += put(Page::DictionaryPage { buf, num_values: numbers.len() as u32, encoding, is_sorted: false }, size)?;
    let (mut row, mut value) = (0, 0);
    while row < lists.ends.len() {
        // Of each value, or of a list that is empty: whether a list goes on with it, and whether it is one.
        let (mut goes_on, mut is_value, from) = (Vec::new(), Vec::new(), value);
        while row < lists.ends.len() && (goes_on.is_empty() || value - from < PAGE_VALUES) {
            let n = lists.ends[row] - value;
            goes_on.extend((0..n.max(1)).map(|place| u32::from(place > 0)));
            is_value.extend(std::iter::repeat_n(u32::from(n > 0), n.max(1)));
            (row, value) = (row + 1, value + n);
        }
        let mut page = Vec::new();
        for of_level in [&goes_on, &is_value] {
            let mut bits = Vec::new();
            run(of_level, 1, &mut bits);
            page.extend((bits.len() as u32).to_le_bytes());
            page.extend(bits);
        }
        page.push(8 * width as u8);
        run(&of_values[from..value], 8 * width, &mut page);
        levels += goes_on.len();
        let page_of = Page::DataPage {
            buf: compress(&page)?,
            num_values: goes_on.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        put(page_of, page.len())?;
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

/// Numbers of so many bits as one run: the count of groups of eight, and their bits from the lowest on.
fn run(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
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
