//! Numbers on the page: columns of varints in base64, a quarter of the size of the same numbers in JSON.
//!
//! Signed values are zigzag, as in protobuf. A tree's values are written as what a node lacks of its
//! parent's, since most nodes have nearly all of it: a byte instead of six.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A column while it is written.
#[derive(Default)]
pub(super) struct Numbers {
    bytes: Vec<u8>,
}

impl Numbers {
    pub(super) fn push(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Any int64; wraps where a difference of two overflowed, and so does the page when it adds it again.
    pub(super) fn push_signed(&mut self, value: i64) {
        self.push((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
}

impl FromIterator<u64> for Numbers {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Numbers {
        let mut numbers = Numbers::default();
        values.into_iter().for_each(|v| numbers.push(v));
        numbers
    }
}

impl FromIterator<i64> for Numbers {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Numbers {
        let mut numbers = Numbers::default();
        values.into_iter().for_each(|v| numbers.push_signed(v));
        numbers
    }
}
