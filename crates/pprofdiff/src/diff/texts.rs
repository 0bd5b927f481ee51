//! Stores each text of a view once, and limits the size of texts in proportion to the profiles.

use pprofdiff_profile::interner::Sequences;
use pprofdiff_profile::random::QualityState;

/// Distinct texts by number.
pub type TextInterner = Sequences<u8, QualityState>;

/// The length up to which texts are never shortened.
const SHORT_ENOUGH: usize = 256;

/// Returns the maximum length of a text, given the bytes of the profiles, the bytes of all texts, and the number of
/// texts. Returns `usize::MAX` if the texts need no limit, and never less than [`SHORT_ENOUGH`].
///
/// A text in a view may repeat what the profile stores once, so a few hundred kilobytes could expand to gigabytes.
/// Together, texts may use at most twice the bytes of the profiles plus 32 MiB. If they use more, long texts lose their
/// middle.
pub(crate) fn longest(profiles: usize, all: usize, n: usize) -> usize {
    let max_bytes = profiles.saturating_mul(2).saturating_add(32 << 20);
    if all <= max_bytes { usize::MAX } else { (max_bytes / n.max(1)).max(SHORT_ENOUGH) }
}

/// Returns a text for display with at most `max_len` bytes. A longer text keeps its start and its end, with its number
/// between them, so that different texts remain different.
pub(crate) fn shortened(text: &[u8], max_len: usize, number: u32) -> String {
    if text.len() <= max_len {
        return String::from_utf8_lossy(text).into_owned();
    }
    let ends = max_len.saturating_sub(48) / 2;
    let [head, tail] = [&text[..ends], &text[text.len() - ends..]].map(String::from_utf8_lossy);
    // Removes characters that the cut has split.
    let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
    format!("{head}…({} bytes, text {number})…{tail}", text.len())
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn shortened_texts_stay_different_and_whole_characters() {
        let text = "ä".repeat(1000);
        let short = shortened(text.as_bytes(), 257, 7);
        assert!(short.len() <= 257 && short.contains("2000 bytes, text 7") && !short.contains('\u{fffd}'), "{short}");
        assert_ne!(short, shortened(text.as_bytes(), 257, 8));
        assert_eq!(shortened(text.as_bytes(), 2000, 7), text);
    }
}
