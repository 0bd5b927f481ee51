//! Reads the sizes that a Parquet file announces, before the library trusts them.
//!
//! A page announces its inflated size, and the library allocates it. The file's metadata announces a sum per column,
//! but the library does not compare it with the pages. The schema announces the number of fields of each group, which
//! the library also allocates. This module reads those numbers and skips everything else. Pages and metadata are
//! structs in Thrift's compact protocol.

/// Fields of a page's header: the inflated size, and the size of the bytes after the header.
const INFLATED: i64 = 2;
const PACKED: i64 = 3;
/// The metadata's field for the list of schema elements, and an element's field for the number of its children.
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;
const INT32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// The maximum nesting of structs and lists. Valid metadata has fewer levels.
const MAX_DEPTH: usize = 12;

/// Returns true if a file's metadata is well-formed Thrift and no element of its schema announces more children than
/// the schema has elements.
pub fn is_schema_sound(metadata: &[u8]) -> bool {
    ThriftReader(metadata).check_metadata().is_some()
}

/// Returns the inflated size of all pages of a column, or `None` if a header is damaged.
pub fn pages_size(column: &[u8]) -> Option<u64> {
    let (mut rest, mut sum) = (ThriftReader(column), 0_u64);
    while !rest.0.is_empty() {
        let (inflated, packed) = rest.page_header()?;
        rest.skip(packed)?;
        sum = sum.saturating_add(inflated);
    }
    Some(sum)
}

struct ThriftReader<'a>(&'a [u8]);

impl ThriftReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a field's number and type. `last` is the number of the previous field, or 0. Returns `Some(None)` at the
    /// end of a struct, and `None` if the data is damaged.
    fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let header = self.byte()?;
        let (delta, kind) = (header >> 4, header & 0xf);
        Some(match (delta, kind) {
            (_, 0) => None,
            (0, _) => Some((self.int()?, kind)),
            _ => Some((last.checked_add(i64::from(delta))?, kind)),
        })
    }

    /// Reads a page's header and returns the page's inflated size and the size of the bytes after the header. A header
    /// with a duplicate field is ambiguous, so it counts as damaged.
    fn page_header(&mut self) -> Option<(u64, u64)> {
        let (mut inflated, mut packed, mut last) = (None, None, 0);
        while let Some((number, kind)) = self.field(last)? {
            let size = match number {
                INFLATED => &mut inflated,
                PACKED => &mut packed,
                _ => {
                    self.skip_value(kind, MAX_DEPTH)?;
                    last = number;
                    continue;
                }
            };
            let value = u64::try_from(self.int()?).ok()?;
            if kind != INT32 || size.replace(value).is_some() {
                return None;
            }
            last = number;
        }
        inflated.zip(packed)
    }

    fn check_metadata(&mut self) -> Option<()> {
        let mut last = 0;
        while let Some((number, kind)) = self.field(last)? {
            match (number, kind) {
                (SCHEMA, LIST) => {
                    let (elements, kind) = self.list()?;
                    for _ in 0..elements {
                        (kind == STRUCT).then_some(())?;
                        self.check_element(elements)?;
                    }
                }
                _ => self.skip_value(kind, MAX_DEPTH)?,
            }
            last = number;
        }
        Some(())
    }

    fn check_element(&mut self, elements: u64) -> Option<()> {
        let mut last = 0;
        while let Some((number, kind)) = self.field(last)? {
            match (number, kind) {
                (CHILDREN, INT32) => (u64::try_from(self.int()?).ok()? <= elements).then_some(())?,
                _ => self.skip_value(kind, MAX_DEPTH)?,
            }
            last = number;
        }
        Some(())
    }

    /// Reads a list's length and the type of its elements. Each element takes at least one byte, so a length above the
    /// number of remaining bytes is refused.
    fn list(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let length = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
        (length <= self.0.len() as u64).then_some((length, header & 0xf))
    }

    fn skip_value(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // A boolean is encoded in its field's type.
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let size = self.varint()?;
                self.skip(size)
            }
            LIST | 10 => {
                let (length, kind) = self.list()?;
                // In a list, a boolean takes one byte.
                let kind = if kind == 1 || kind == 2 { 3 } else { kind };
                (0..length).try_for_each(|_| self.skip_value(kind, depth))
            }
            STRUCT => {
                let mut last = 0;
                while let Some((number, kind)) = self.field(last)? {
                    self.skip_value(kind, depth)?;
                    last = number;
                }
                Some(())
            }
            // Parquet has no maps.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_schema_sound, pages_size};

    /// Builds a page: its type, its inflated size, the size of its bytes, a data header with one number, and the bytes.
    fn page(inflated: u8, packed: u8) -> Vec<u8> {
        let head = [0x15, 0, 0x15, inflated << 1, 0x15, packed << 1, 0x2c, 0x15, 8, 0, 0];
        head.into_iter().chain(std::iter::repeat_n(0xff, packed.into())).collect()
    }

    #[test]
    fn pages_count_with_the_size_in_their_headers() {
        assert_eq!(pages_size(&[]), Some(0));
        assert_eq!(pages_size(&page(60, 3)), Some(60));
        assert_eq!(pages_size(&[page(60, 3), page(7, 0), page(1, 1)].concat()), Some(68));
        // A size that is encoded in five bytes, for three bytes of data.
        let mut large = vec![0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0x06, 0, 1, 2, 3];
        assert_eq!(pages_size(&large), Some((1 << 31) - 1));
        large.pop();
        assert_eq!(pages_size(&large), None);
    }

    #[test]
    fn damaged_headers_are_refused() {
        let whole = page(60, 3);
        (1..whole.len()).for_each(|end| assert_eq!(pages_size(&whole[..end]), None, "{end}"));
        // A negative size, a duplicate size, a size that is not an `i32`, a header without an inflated size, and a map.
        for damaged in [
            &[0x15, 0, 0x15, 1, 0x15, 0, 0][..],
            &[0x15, 0, 0x15, 2, 0x05, 4, 2, 0x15, 0, 0],
            &[0x15, 0, 0x16, 2, 0x15, 0, 0],
            &[0x15, 0, 0x25, 0, 0],
            &[0x15, 0, 0x15, 2, 0x15, 0, 0x1b, 0, 0],
        ] {
            assert_eq!(pages_size(damaged), None, "{damaged:?}");
        }
        // Nested structs, and nested lists.
        assert_eq!(pages_size(&[0x4c; 1 << 16]), None);
        assert_eq!(pages_size(&[0x19; 1 << 16]), None);
    }

    #[test]
    fn a_schema_has_no_more_children_than_elements() {
        // A version, and a list of elements: a root with these children, and a leaf.
        let metadata = |children: &[u8]| {
            let head = [0x15, 4, 0x19, 0x2c, 0x48, 1, b'a', 0x15];
            let rest = [0, 0x15, 4, 0x38, 1, b'b', 0, 0x16, 0, 0x19, 0x0c, 0];
            [&head, children, &rest].concat()
        };
        assert!(is_schema_sound(&metadata(&[2])));
        assert!(is_schema_sound(&metadata(&[4])));
        for children in [&[6][..], &[1], &[0xfe, 0xff, 0xff, 0xff, 0x0f]] {
            assert!(!is_schema_sound(&metadata(children)), "{children:?}");
        }
        assert!(!is_schema_sound(&metadata(&[2])[..9]));
    }
}
