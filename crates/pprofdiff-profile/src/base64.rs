//! Bytes as text in base64.

use ::base64::alphabet;
use ::base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ::base64::engine::{DecodePaddingMode, Engine};

/// Padded or not.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Bytes as a text with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of a text with either alphabet, that of URLs too, padded or not; `None` if it is none.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let is_of_urls = text.iter().any(|b| matches!(b, b'-' | b'_'));
    let alphabet = if is_of_urls { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    GeneralPurpose::new(alphabet, LENIENT).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_alphabet_is_read_padded_or_not() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(&[0xfb, 0xff][..]), "{text}");
        }
        assert_eq!((encode(b"foob").as_str(), decode(b"")), ("Zm9vYg==", Some(Vec::new())));
        for wrong in ["A", "AAAAA", "A A=", "Zm9v\n", "+_8="] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
