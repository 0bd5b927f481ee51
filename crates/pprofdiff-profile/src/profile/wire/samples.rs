//! Decodes the location ids, values and labels of samples directly from the message. Nothing is cached: each access
//! decodes the bytes again.

use super::{Fields, Value, long_varint, varint, without_top_bits};

/// The numbers of one repeated integer field in a message.
///
/// All known producers write either one packed field, or a field per number (Go does so for up to two numbers).
///
/// [`Ints::all`], which decodes location ids, is the engine's innermost loop. It is a plain loop over the bytes: most
/// ids in a file have the same length, which the processor predicts well. For ids, branch-free decoders brought no gain
/// or were slower (benches/README.md). Values have unpredictable lengths, so [`Ints::all_values`] avoids branches.
#[derive(Clone, Copy)]
pub(crate) struct Ints<'a> {
    bytes: &'a [u8],
    /// 0 if `bytes` holds packed numbers. Otherwise `bytes` is a sequence of fields, and this is the number of the
    /// field to read.
    field: u64,
}

impl<'a> Ints<'a> {
    /// Returns true if all numbers are well formed and `f` returns true for each. Stops at the first failure.
    #[inline(always)]
    pub(crate) fn all(self, mut f: impl FnMut(u64) -> bool) -> bool {
        let (mut packed, mut fields) = self.begin();
        loop {
            if !all_packed(packed, &mut f) {
                return false;
            }
            if fields.is_empty() {
                return true;
            }
            match next_chunk(fields, self.field) {
                Some(chunk) => (packed, fields) = chunk,
                None => return false,
            }
        }
    }

    /// Splits the bytes into packed numbers and fields that contain further numbers.
    #[inline(always)]
    fn begin(self) -> (&'a [u8], &'a [u8]) {
        if self.field == 0 { (self.bytes, &[]) } else { (&[], self.bytes) }
    }

    /// Returns true if all numbers are well formed and within `1..=n`.
    #[inline(always)]
    pub(crate) fn are_within(self, n: u32) -> bool {
        (self.field == 0 && packed_within(self.bytes, n)) || self.all(|v| v.wrapping_sub(1) < u64::from(n))
    }

    /// Calls `f` with each number, and stops at the first malformed one.
    #[inline(always)]
    pub(crate) fn each(self, mut f: impl FnMut(u64)) {
        self.all(|v| {
            f(v);
            true
        });
    }

    /// Decodes ids that start at 1 into indexes from 0, and returns them as a part of the buffer. It takes fewer
    /// instructions than pushing each index.
    #[inline(always)]
    pub(crate) fn indexes(self, buffer: &mut Vec<u32>) -> &mut [u32] {
        // Each number takes at least a byte.
        if buffer.len() < self.bytes.len() {
            buffer.resize(self.bytes.len(), 0);
        }
        let mut slots = buffer.iter_mut();
        self.all(|id| slots.next().map(|slot| *slot = (id as u32).wrapping_sub(1)).is_some());
        let left = slots.len();
        let n = buffer.len() - left;
        &mut buffer[..n]
    }

    /// Does the same as [`Ints::all`], but faster for numbers of unpredictable length, such as sample values. It finds
    /// the ends of all numbers at once in up to 64 bytes, and does not branch on lengths below nine (except in the last
    /// seven bytes). Longer and unpacked fields are decoded by [`Ints::all`].
    #[inline(always)]
    pub(crate) fn all_values(self, mut f: impl FnMut(u64) -> bool) -> bool {
        if self.field != 0 || self.bytes.len() > 64 {
            return self.all(f);
        }
        let (mut ends, mut start) = (ends(self.bytes), 0);
        while ends != 0 {
            let end = ends.trailing_zeros() as usize + 1;
            ends &= ends - 1;
            match number(self.bytes, start, end) {
                Some(v) if f(v) => start = end,
                _ => return false,
            }
        }
        start == self.bytes.len()
    }

    /// Returns the number at index `n`.
    #[inline(always)]
    pub(crate) fn nth(self, n: usize) -> Option<u64> {
        if self.field == 0 && self.bytes.len() <= 64 && n < 64 {
            let (mut ends, mut start) = (ends(self.bytes), 0);
            for _ in 0..n {
                start = ends.trailing_zeros() as usize + 1;
                ends &= ends.wrapping_sub(1);
            }
            return if ends == 0 { None } else { number(self.bytes, start, ends.trailing_zeros() as usize + 1) };
        }
        let (mut before, mut nth_number) = (n, None);
        self.all(|v| {
            nth_number = (before == 0).then_some(v);
            before = before.wrapping_sub(1);
            nth_number.is_none()
        });
        nth_number
    }

    /// Returns the first number.
    #[inline(always)]
    pub(crate) fn first(self) -> Option<u64> {
        let (mut packed, mut fields) = self.begin();
        while packed.is_empty() && !fields.is_empty() {
            (packed, fields) = next_chunk(fields, self.field)?;
        }
        varint(packed).map(|(v, _)| v)
    }

    /// Takes a field (number below 16) off the front of a message: one packed occurrence, or all consecutive unpacked
    /// occurrences. The result is empty if the message begins with another field. Returns `None` if the message is
    /// truncated.
    #[inline(always)]
    fn take_field(message: &mut &'a [u8], field: u8) -> Option<Ints<'a>> {
        if message.first() == Some(&(field << 3 | 2)) {
            let (len, n) = varint(&message[1..])?;
            let (packed, rest) = message[1 + n..].split_at_checked(usize::try_from(len).ok()?)?;
            *message = rest;
            return Some(Ints { bytes: packed, field: 0 });
        }
        let all = *message;
        while message.first() == Some(&(field << 3)) {
            let (_, n) = varint(&message[1..])?;
            *message = &message[1 + n..];
        }
        Some(Ints { bytes: &all[..all.len() - message.len()], field: u64::from(field) })
    }
}

/// Returns the bytes of the next occurrence of a field, either packed numbers or a single number, and the fields after
/// it. Both are empty at the end. A single number is encoded like a packed list of one. Returns `None` if a field is
/// malformed.
#[inline(never)]
fn next_chunk(fields: &[u8], field: u64) -> Option<(&[u8], &[u8])> {
    let mut rest = Fields::new(fields, 0);
    loop {
        let start = rest.offset();
        let Some((number, value)) = rest.next().ok()? else { return Some((&[], &[])) };
        if number == field {
            let end = rest.offset();
            let packed = match value {
                Value::Bytes(packed) => packed,
                // Skip the key.
                Value::Varint(_) => &fields[start + varint(&fields[start..])?.1..end],
                Value::Fixed => return None,
            };
            return Some((packed, &fields[end..]));
        }
    }
}

/// Returns true if packed numbers are well formed and `f` returns true for each. Decodes like [`varint`], but with an
/// iterator that only moves forward. The remaining length is then not a variable of its own, which saves one register,
/// and one check per byte.
#[inline(always)]
fn all_packed(packed: &[u8], mut f: impl FnMut(u64) -> bool) -> bool {
    let mut bytes = packed.iter();
    while let Some(&first) = bytes.next() {
        let mut v = u64::from(first);
        if first >= 0x80 {
            let Some(&second) = bytes.next() else { return false };
            v = v & 0x7f | u64::from(second) << 7;
            if second >= 0x80 {
                let Some(&third) = bytes.next() else { return false };
                v = v & 0x3fff | u64::from(third) << 14;
                if third >= 0x80 {
                    let rest = bytes.as_slice();
                    let n;
                    (v, n) = long_varint(rest, v & 0x1f_ffff);
                    if n == 0 {
                        return false;
                    }
                    bytes = rest[n..].iter();
                }
            }
        }
        if !f(v) {
            return false;
        }
    }
    true
}

/// Returns a mask with a bit per byte, for at most 64 bytes. A bit is set where a number ends, which is where a byte's
/// top bit is clear.
#[inline(always)]
fn ends(bytes: &[u8]) -> u64 {
    let bits = |word: u64| (!word & 0x8080_8080_8080_8080).wrapping_mul(0x0002_0408_1020_4081) >> 56;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut ends = 0;
    for (i, word) in words.iter().enumerate() {
        ends |= bits(u64::from_le_bytes(*word)) << (8 * i);
    }
    if !rest.is_empty() {
        ends |= bits(word(rest, u64::MAX)) << (8 * words.len());
    }
    ends
}

/// Packs fewer than eight bytes into a word and fills the upper bytes from `fill`, whose bytes must all be equal. For
/// four to seven bytes, two overlapping reads replace a read per byte.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], fill: u64) -> u64 {
    let len = bytes.len();
    let low = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len % 8) - 32)
        }
        _ if len > 0 => {
            let byte = |i: usize| u64::from(bytes[i]) << (8 * i);
            byte(0) | byte(len / 2) | byte(len - 1)
        }
        _ => 0,
    };
    low | fill << (8 * (len % 8))
}

/// Decodes the number in `bytes[start..end]`. Returns `None` if it is too long.
#[inline(always)]
fn number(bytes: &[u8], start: usize, end: usize) -> Option<u64> {
    match bytes[start..].first_chunk::<8>() {
        Some(word) if end - start <= 8 => {
            Some(without_top_bits(u64::from_le_bytes(*word) & u64::MAX >> (64 - 8 * (end - start))))
        }
        _ => varint(&bytes[start..]).map(|(v, _)| v),
    }
}

/// Checks quickly whether packed numbers are well formed and within `1..=n`. True is certain; false only means that the
/// numbers need a full check. The result is always false if `n` has one digit or more than three digits.
///
/// Here, a digit is a group of 7 bits. Each byte of a number holds one digit, and the last byte holds the highest
/// digit. The function compares each byte with the two bytes before it, eight bytes at a time, and does not decode any
/// number.
///
/// A number is certainly in range if its last byte is not zero, and if one of these conditions holds:
///
/// - It has fewer digits than `n`.
/// - Both have two digits, and the number is at most `n`.
/// - Both have three digits, and the number's two highest digits are less than the two highest digits of `n`.
#[inline(always)]
fn packed_within(bytes: &[u8], n: u32) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    // The two highest digits are compared. `highest` and `next` are these digits of `n`, except that the two-digit case
    // adds 1 to the lower digit, because equality is allowed there.
    let (three, highest, next) = match n {
        0x80..0x4000 => (false, n >> 7, (n & 0x7f) + 1),
        0x4000..0x20_0000 => (true, n >> 14, n >> 7 & 0x7f),
        _ => return false,
    };
    // Sets the top bit of each byte that is at least `limit` (0 to 0x80).
    let at_least = |low: u64, limit: u32| (low + (0x80 - u64::from(limit)) * EACH) & TOP;
    let (mut invalid, mut more_before, mut reached_before) = (0, 0, 0);
    let mut check = |word: u64| {
        let (low, more) = (word & !TOP, word & TOP);
        let zero = !(low + !TOP) & !more & TOP;
        let more_1 = more << 8 | more_before >> 56;
        let more_2 = if three { more << 16 | more_before >> 48 } else { TOP };
        let reached = at_least(low, next);
        let next_reached = reached << 8 | reached_before >> 56;
        let too_large = at_least(low, highest + 1) | at_least(low, highest) & next_reached;
        invalid |= zero | more_1 & more_2 & (more | too_large);
        (more_before, reached_before) = (more, reached);
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| check(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        // Fill the word with the byte 1, which is a valid number. The fill bytes would complete a truncated number,
        // so the last line of this function checks the last byte.
        check(word(rest, EACH));
    }
    invalid == 0 && bytes.last().is_none_or(|&last| last < 0x80)
}

/// The parts of a sample's message.
#[derive(Clone, Copy)]
pub(crate) struct SampleParts<'a> {
    pub locations: Ints<'a>,
    pub values: Ints<'a>,
    /// A range of fields that contains all labels.
    pub labels: &'a [u8],
}

impl<'a> SampleParts<'a> {
    /// Splits a message that consists of locations, values and labels, in this order and without other fields. All
    /// known producers write this form. Returns `None` if the locations or values are truncated. Does not detect all
    /// other forms: fields that do not follow this order end up in `labels`, whose fields are not checked.
    #[inline(always)]
    pub(crate) fn usual(message: &'a [u8]) -> Option<SampleParts<'a>> {
        let mut rest = message;
        let locations = Ints::take_field(&mut rest, 1)?;
        let values = Ints::take_field(&mut rest, 2)?;
        Some(SampleParts { locations, values, labels: rest })
    }

    /// Splits a message of any form. `likely` must be true only if loading has checked that the message has the form
    /// that [`SampleParts::usual`] expects.
    #[inline(always)]
    pub(crate) fn new(message: &'a [u8], likely: bool) -> SampleParts<'a> {
        match SampleParts::usual(message) {
            Some(parts) if likely => parts,
            _ => SampleParts::any(message),
        }
    }

    /// Splits a message in any form that protobuf allows.
    pub(crate) fn any(message: &'a [u8]) -> SampleParts<'a> {
        let ints = |field| Ints { bytes: message, field };
        SampleParts { locations: ints(1), values: ints(2), labels: message }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::put;
    use super::{Ints, SampleParts, packed_within, varint, word};

    #[test]
    fn numbers_are_decoded_in_every_form_and_malformed_numbers_are_detected() {
        let numbers: Vec<u64> =
            (0..64).map(|i| 1u64 << i).flat_map(|v| [v - 1, v, v + 1]).chain([u64::MAX, 0]).collect();
        let mut packed = Vec::new();
        numbers.iter().for_each(|&v| put::varint(&mut packed, v));
        let mut message = Vec::new();
        put::int(&mut message, 3, 7);
        put::bytes(&mut message, 1, &packed);
        put::int(&mut message, 1, 5);
        put::int(&mut message, 2, 6);
        put::bytes(&mut message, 1, &[]);
        put::bytes(&mut message, 1, &packed);
        let read = |ints: Ints<'_>| {
            let mut actual = Vec::new();
            let is_whole = ints.all(|v| {
                actual.push(v);
                true
            });
            let mut again = Vec::new();
            let as_values = ints.all_values(|v| {
                again.push(v);
                true
            });
            assert_eq!((as_values, &again), (is_whole, &actual));
            (is_whole, actual)
        };
        let expected: Vec<u64> = numbers.iter().copied().chain([5]).chain(numbers.iter().copied()).collect();
        let ints = SampleParts::any(&message).locations;
        assert_eq!(
            (0..expected.len() + 1).map(|n| ints.nth(n)).collect::<Vec<_>>(),
            expected.iter().copied().map(Some).chain([None]).collect::<Vec<_>>()
        );
        assert_eq!(read(ints), (true, expected));

        let mut usual = Vec::new();
        put::bytes(&mut usual, 1, &packed);
        [8, 9].iter().for_each(|&v| put::int(&mut usual, 2, v));
        let parts = SampleParts::usual(&usual).unwrap();
        assert_eq!(read(parts.locations), (true, numbers.clone()));
        assert_eq!((read(parts.values), parts.labels), ((true, vec![8, 9]), &[][..]));

        for chunk in numbers.chunks(7) {
            let mut packed = Vec::new();
            chunk.iter().for_each(|&v| put::varint(&mut packed, v));
            let ints = Ints { bytes: &packed, field: 0 };
            assert_eq!(read(ints), (true, chunk.to_vec()));
            assert_eq!(
                (0..8).map(|n| ints.nth(n)).collect::<Vec<_>>(),
                (0..8).map(|n| chunk.get(n).copied()).collect::<Vec<_>>()
            );
            assert_eq!(ints.first(), Some(chunk[0]));
        }
        let cut_off = Ints { bytes: &[1, 2, 0x80], field: 0 };
        assert_eq!(read(cut_off), (false, vec![1, 2]));
    }

    /// Decodes one number byte by byte, as the protobuf documentation describes. Returns its value and length.
    fn decode_simply(data: &[u8]) -> Option<(u64, usize)> {
        let len = data.iter().take(10).position(|&byte| byte < 0x80)? + 1;
        let digits = data[..len].iter().enumerate();
        Some((digits.map(|(i, &byte)| (u128::from(byte & 0x7f) << (7 * i)) as u64).fold(0, |v, digit| v | digit), len))
    }

    #[test]
    fn numbers_of_all_lengths_match_a_simple_decoder() {
        // Random bytes, most of them with the top bit set, so that numbers have all lengths and some are too long.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut lengths = [0; 11];
        for round in 0..40_000 {
            let len = random() as usize % 24;
            let continued = [0x80, 0xff, 0x00][round % 3];
            let bytes: Vec<u8> =
                (0..len).map(|_| random() as u8 | if random() % 8 == 0 { 0 } else { continued }).collect();
            let (mut rest, mut expected) = (&bytes[..], Vec::new());
            while let Some((v, n)) = decode_simply(rest) {
                expected.push(v);
                rest = &rest[n..];
                lengths[n] += 1;
            }
            lengths[0] += usize::from(!rest.is_empty());
            assert_eq!(varint(&bytes), decode_simply(&bytes), "{bytes:x?}");
            let ints = Ints { bytes: &bytes, field: 0 };
            let (mut actual, mut values) = (Vec::new(), Vec::new());
            let is_whole = ints.all(|v| {
                actual.push(v);
                true
            });
            let is_whole_as_values = ints.all_values(|v| {
                values.push(v);
                true
            });
            assert_eq!((is_whole, &actual), (rest.is_empty(), &expected), "{bytes:x?}");
            assert_eq!(is_whole_as_values, is_whole, "{bytes:x?}");
            assert!(values == expected || !is_whole, "{bytes:x?}");
            if is_whole {
                assert_eq!((0..=expected.len()).map(|n| ints.nth(n)).collect::<Vec<_>>(), {
                    expected.iter().copied().map(Some).chain([None]).collect::<Vec<_>>()
                });
            }
        }
        assert!(lengths.iter().all(|&n| n > 100), "{lengths:?}");
    }

    #[test]
    fn fewer_than_eight_bytes_are_padded_to_a_word() {
        for len in 0..8 {
            let bytes: Vec<u8> = (0..len).map(|i| 0x81 + 17 * i).collect();
            for fill in [0, u64::MAX, 0x0101_0101_0101_0101] {
                let mut expected = fill.to_le_bytes();
                expected[..bytes.len()].copy_from_slice(&bytes);
                assert_eq!(word(&bytes, fill), u64::from_le_bytes(expected), "{len} {fill:x}");
            }
        }
    }

    #[test]
    fn quick_id_check_never_accepts_ids_out_of_range() {
        let packed = |ids: &[u64]| {
            let mut bytes = Vec::new();
            ids.iter().for_each(|&v| put::varint(&mut bytes, v));
            bytes
        };
        let mut accepted = 0;
        for n in [127, 128, 129, 255, 256, 300, 16_383, 16_384, 16_385, 24_752, 236_113, 2_097_151, 2_097_152u32] {
            let edges =
                [0, 1, 2, 127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152, 1 << 21, 1 << 28, 1 << 35, u64::MAX];
            let near = (0..300).flat_map(|d| [u64::from(n).saturating_sub(d), u64::from(n) + d]);
            for id in edges.into_iter().chain(near) {
                // Test each position in a word, and positions before a longer and a shorter number.
                for before in 0..9 {
                    for after in [&[][..], &[1], &[u64::from(n)]] {
                        let ids: Vec<u64> =
                            vec![1; before].into_iter().chain([id]).chain(after.iter().copied()).collect();
                        let valid = ids.iter().all(|&id| 1 <= id && id <= u64::from(n));
                        let glance = packed_within(&packed(&ids), n);
                        assert!(valid || !glance, "{ids:?} are not all within 1..={n}");
                        accepted += usize::from(glance);
                        let ints = Ints { bytes: &packed(&ids), field: 0 };
                        assert_eq!(ints.are_within(n), valid, "{ids:?} {n}");
                    }
                }
            }
        }
        assert!(accepted > 10_000, "a glance accepts next to nothing: {accepted}");
        for malformed in [
            &[0x80][..],
            &[1, 0x80],
            &[1, 1, 1, 1, 1, 1, 1, 0xff],
            &[0x80, 0x80, 0x80, 0x01],
            &[0x80, 0],
            &[0x81, 0x00],
        ] {
            assert!(!packed_within(malformed, 20_000), "{malformed:?}");
            assert!(!packed_within(malformed, 1000), "{malformed:?}");
        }
    }
}
