//! The lower limit of the engine's design: decompression, unchecked tables, and one addition per location of each
//! sample. It assumes ids from 1 to n and the usual encoding of samples. Other files cause a panic or wrong results.

use std::path::Path;

/// Returns the sums of the last sample type by function id, and the number of strings. Each location adds to the
/// function of its innermost line.
pub fn decode_and_add(file: &[u8]) -> (Vec<i64>, usize) {
    let size = u32::from_le_bytes(*file.last_chunk::<4>().unwrap()) as usize;
    let mut data = vec![0; size];
    libdeflater::Decompressor::new().gzip_decompress(file, &mut data).unwrap();
    // Samples may come before the tables.
    let (mut names, mut functions, mut locations, mut n_types) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for_each_field(&data, |field, _, message| match field {
        1 => n_types += 1,
        4 => {
            let mut function = 0;
            for_each_field(message, |field, _, line| {
                // The innermost line is the first.
                if field == 4 && function == 0 {
                    for_each_field(line, |field, value, _| function = if field == 1 { value } else { function });
                }
            });
            locations.push(function as u32);
        }
        5 => {
            let mut name = 0;
            for_each_field(message, |field, value, _| name = if field == 2 { value } else { name });
            functions.push(name as u32);
        }
        6 => names.push(message.as_ptr() as usize),
        _ => {}
    });
    let mut sums = vec![0i64; functions.len() + 1];
    for_each_field(&data, |field, _, message| {
        if field != 2 {
            return;
        }
        let (mut ids, mut value, mut one, mut n) = (&message[..0], 0, 0, 0);
        for_each_field(message, |field, number, bytes| match field {
            1 if bytes.is_empty() => one = number,
            1 => ids = bytes,
            2 if bytes.is_empty() => (value, n) = (if n == n_types - 1 { number } else { value }, n + 1),
            2 => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    value = varint(&mut rest);
                }
            }
            _ => {}
        });
        if one != 0 {
            sums[locations[one as usize - 1] as usize] += value as i64;
        }
        while !ids.is_empty() {
            sums[locations[varint(&mut ids) as usize - 1] as usize] += value as i64;
        }
    });
    (sums, names.len())
}

/// Runs [`decode_and_add`] on a file.
pub fn decode_and_add_file(path: &Path) -> (Vec<i64>, usize) {
    decode_and_add(&std::fs::read(path).unwrap())
}

#[inline(always)]
fn for_each_field<'a>(mut data: &'a [u8], mut f: impl FnMut(u64, u64, &'a [u8])) {
    while !data.is_empty() {
        let key = varint(&mut data);
        let value = varint(&mut data);
        let (bytes, rest) = data.split_at(if key & 7 == 2 { value as usize } else { 0 });
        data = rest;
        f(key >> 3, value, bytes);
    }
}

#[inline(always)]
fn varint(data: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = data[0];
        *data = &data[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}
