//! Columns of numbers on the page: varints in base64, a quarter of the size of the same numbers in JSON.
//!
//! Signed values use zigzag encoding, as in protobuf. A tree stores the difference between the parent's value and the
//! node's value. Most nodes have nearly all of their parent's value, so the difference usually takes one byte instead
//! of six.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A column under construction. A column must contain either unsigned or signed values, because its reader has to know
/// which.
#[derive(Default)]
pub(crate) struct PageNumbers {
    bytes: Vec<u8>,
}

impl PageNumbers {
    /// Creates an empty column with room for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> PageNumbers {
        PageNumbers { bytes: Vec::with_capacity(bytes) }
    }

    pub(crate) fn push(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends an int64. A difference from a parent's value may have overflowed and wrapped around; the page's
    /// arithmetic also wraps, which restores the value.
    pub(crate) fn push_signed(&mut self, value: i64) {
        self.push((value << 1 ^ value >> 63) as u64);
    }

    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
}

impl FromIterator<u64> for PageNumbers {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> PageNumbers {
        let mut numbers = PageNumbers::default();
        values.into_iter().for_each(|v| numbers.push(v));
        numbers
    }
}

impl FromIterator<i64> for PageNumbers {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> PageNumbers {
        let mut numbers = PageNumbers::default();
        values.into_iter().for_each(|v| numbers.push_signed(v));
        numbers
    }
}
