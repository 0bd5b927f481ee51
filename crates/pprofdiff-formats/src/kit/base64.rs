//! Decodes base64.

use ::base64::alphabet;
use ::base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use ::base64::engine::{DecodePaddingMode, Engine};

/// Accepts text with and without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Decodes text in the standard or the URL-safe alphabet, with or without padding. Returns `None` if the text is
/// invalid.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let is_url_safe = text.iter().any(|b| matches!(b, b'-' | b'_'));
    let alphabet = if is_url_safe { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    GeneralPurpose::new(alphabet, LENIENT).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_are_decoded_with_or_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(&[0xfb, 0xff][..]), "{text}");
        }
        assert_eq!(decode(b""), Some(Vec::new()));
        for wrong in ["A", "AAAAA", "A A=", "Zm9v\n", "+_8="] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
