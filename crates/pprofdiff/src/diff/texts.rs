//! Texts that a view builds or collects: each once, and none out of proportion to the profiles.

use pprofdiff_profile::interner::Sequences;
use pprofdiff_profile::random::QualityState;

/// Distinct texts by number.
pub(crate) type TextInterner = Sequences<u8, QualityState>;

/// Texts up to this length are never shortened.
const SHORT_ENOUGH: usize = 256;

/// The most bytes that each of some texts may keep, given the profiles' bytes, those of all texts, and their number.
///
/// Built texts repeat what the profile has once: a few hundred kilobytes could stand for gigabytes. So together they
/// have at most twice the bytes of the profiles and 32 MiB; if they have more, long texts lose their middle.
pub(crate) fn longest(profiles: usize, all: usize, n: usize) -> usize {
    let most = profiles.saturating_mul(2).saturating_add(32 << 20);
    if all <= most { usize::MAX } else { (most / n.max(1)).max(SHORT_ENOUGH) }
}

/// A text for display, of at most `most` bytes: of a longer one the ends, and its number, so that different texts stay
/// different.
pub(crate) fn shortened(text: &[u8], most: usize, number: u32) -> String {
    if text.len() <= most {
        return String::from_utf8_lossy(text).into_owned();
    }
    let ends = most.saturating_sub(48) / 2;
    let [head, tail] = [&text[..ends], &text[text.len() - ends..]].map(String::from_utf8_lossy);
    // A character that is cut in two is left out.
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
