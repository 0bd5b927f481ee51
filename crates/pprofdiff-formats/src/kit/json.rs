//! A JSON reader that yields tokens, for the profile formats that are JSON.
//!
//! A profile in JSON is mostly long arrays of numbers, or a tree with one frame per level. A tree of JSON values would
//! take many times the memory of the text. A recursive parser would have to refuse stacks of more than some forty
//! frames (each frame is three levels of JSON), or it would overflow the call stack. A [`Json`] avoids both: it is a
//! position in the text that can be copied. Readers use copies to find members in any order and to read two arrays in
//! step.
//!
//! Skipped values are validated like values that are read. Strings may hold invalid UTF-8, as names in pprof may.

use std::borrow::Cow;

use pprofdiff_profile::cancellation::ByteCheckpointer;
use pprofdiff_profile::{Error, Result};

/// A position in a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Json<'t> {
    text: &'t [u8],
    offset: usize,
    pace: ByteCheckpointer,
}

/// The kind of a value, determined by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    Object,
    Array,
    String,
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// A string as written in the JSON text. Its escapes have been validated.
#[derive(Debug, Clone, Copy)]
pub struct JsonText<'t> {
    raw: &'t [u8],
    escaped: bool,
}

/// A number as written in the JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Number<'t> {
    raw: &'t [u8],
    offset: usize,
}

/// The state of an object or array while its members are read.
#[derive(Debug)]
pub struct JsonScope {
    /// True before the first member.
    is_first: bool,
    /// One bit for each name that was already read, by its number ([`JsonScope::mark`]).
    seen: u64,
}

impl<'t> Json<'t> {
    /// Returns the position at the beginning of a text. A byte order mark is skipped.
    pub fn new(text: &'t [u8]) -> Json<'t> {
        Json { text, offset: if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }, pace: ByteCheckpointer::default() }
    }

    /// Returns the offset of this position in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.offset += 1;
        }
    }

    /// Returns the error for unexpected text at this position.
    fn unexpected(&self, expected: &str) -> Error {
        let actual = match self.byte() {
            None => return Error::malformed(format!("expected {expected}, but it was cut off")).at(self.offset),
            Some(b @ b' '..=b'~') => format!("'{}'", char::from(b)),
            Some(b) => format!("byte {b:#04x}"),
        };
        Error::malformed(format!("expected {expected}, not {actual}")).at(self.offset)
    }

    /// Returns the kind of the next value, without reading it.
    ///
    /// # Errors
    /// No value begins here.
    pub fn kind(&mut self) -> Result<JsonKind> {
        self.skip_blanks();
        Ok(match self.byte() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b'-' | b'0'..=b'9') => JsonKind::Number,
            Some(b't' | b'f' | b'n') => JsonKind::Word,
            _ => return Err(self.unexpected("a value")),
        })
    }

    fn open(&mut self, bracket: u8, expected: &str) -> Result<JsonScope> {
        self.skip_blanks();
        if self.byte() != Some(bracket) {
            return Err(self.unexpected(expected));
        }
        self.offset += 1;
        Ok(JsonScope { is_first: true, seen: 0 })
    }

    /// Reads the opening bracket of an object.
    pub fn object(&mut self) -> Result<JsonScope> {
        self.open(b'{', "an object")
    }

    /// Reads the opening bracket of an array.
    pub fn array(&mut self) -> Result<JsonScope> {
        self.open(b'[', "an array")
    }

    /// Moves to the next member and returns true, or reads the closing bracket and returns false.
    fn next_member(&mut self, opened: &mut JsonScope, close: u8, expected: &str) -> Result<bool> {
        self.skip_blanks();
        self.pace.left(self.text.len() - self.offset);
        let first = std::mem::replace(&mut opened.is_first, false);
        match self.byte() {
            Some(b) if b == close => {
                self.offset += 1;
                Ok(false)
            }
            Some(_) if first => Ok(true),
            Some(b',') => {
                self.offset += 1;
                Ok(true)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Reads the next key of an object and stops before its value. Returns `None` at the end. [`Json::member`] also
    /// rejects duplicate keys.
    fn key(&mut self, object: &mut JsonScope) -> Result<Option<JsonText<'t>>> {
        Ok(self.key_with_place(object)?.map(|(_, key)| key))
    }

    /// Reads the next key of an object, stops before its value, and returns the key with its offset. Returns `None` at
    /// the end.
    pub fn key_with_place(&mut self, object: &mut JsonScope) -> Result<Option<(usize, JsonText<'t>)>> {
        if !self.next_member(object, b'}', "',' or '}'")? {
            return Ok(None);
        }
        self.skip_blanks();
        let offset = self.offset;
        let key = self.string()?;
        self.skip_blanks();
        if self.byte() != Some(b':') {
            return Err(self.unexpected("':'"));
        }
        self.offset += 1;
        Ok(Some((offset, key)))
    }

    /// Moves to the next element of an array. Returns false after the last one, when the array is closed.
    pub fn element(&mut self, array: &mut JsonScope) -> Result<bool> {
        self.next_member(array, b']', "',' or ']'")
    }

    /// Skips to the next member with one of these names and stops before its value. Returns `None` at the end.
    ///
    /// # Errors
    /// A name occurs twice in one object. Parsers disagree about which value counts, so the object is rejected.
    pub fn member<'n>(&mut self, object: &mut JsonScope, names: &[&'n str]) -> Result<Option<&'n str>> {
        while let Some((offset, key)) = self.key_with_place(object)? {
            let key = key.bytes();
            match names.iter().position(|name| *name.as_bytes() == *key) {
                Some(i) => {
                    object.mark(i, names[i]).map_err(|e| e.at(offset))?;
                    return Ok(Some(names[i]));
                }
                None => self.skip()?,
            }
        }
        Ok(None)
    }

    /// Returns the state for a position after the first member of an object or array.
    pub fn within() -> JsonScope {
        JsonScope { is_first: false, seen: 0 }
    }

    /// Reads a string.
    pub fn string(&mut self) -> Result<JsonText<'t>> {
        self.skip_blanks();
        if self.byte() != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        self.offset += 1;
        let (begin, mut escaped) = (self.offset, false);
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.offset += 1;
                    match self.byte() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.offset += 1,
                        Some(b'u') => {
                            for _ in 0..4 {
                                self.offset += 1;
                                if !self.byte().is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return Err(self.unexpected("a hexadecimal digit"));
                                }
                            }
                            self.offset += 1;
                        }
                        _ => return Err(self.unexpected("the rest of an escape")),
                    }
                }
                Some(b' '..) => self.offset += 1,
                _ => return Err(self.unexpected("the rest of a string")),
            }
        }
        let raw = &self.text[begin..self.offset];
        self.offset += 1;
        Ok(JsonText { raw, escaped })
    }

    /// Reads a number.
    pub fn number(&mut self) -> Result<Number<'t>> {
        self.skip_blanks();
        let begin = self.offset;
        if self.byte() == Some(b'-') {
            self.offset += 1;
        }
        match self.byte() {
            Some(b'0') => self.offset += 1,
            _ => self.digits(if begin == self.offset { "a number" } else { "a digit" })?,
        }
        if self.byte() == Some(b'.') {
            self.offset += 1;
            self.digits("a digit")?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.offset += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.digits("a digit")?;
        }
        Ok(Number { raw: &self.text[begin..self.offset], offset: begin })
    }

    fn digits(&mut self, expected: &str) -> Result<()> {
        if !self.byte().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.unexpected(expected));
        }
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.offset += 1;
        }
        Ok(())
    }

    /// Skips `word` and returns true if it comes next.
    fn word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let is_next = self.text[self.offset..].starts_with(word.as_bytes());
        self.offset += if is_next { word.len() } else { 0 };
        is_next
    }

    /// Skips `null` and returns true if it comes next.
    pub fn null(&mut self) -> bool {
        self.word("null")
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self) -> Result<bool> {
        let flag = self.word("true");
        if flag || self.word("false") { Ok(flag) } else { Err(self.unexpected("true or false")) }
    }

    /// Skips a value. Memory use is one byte per open level, because nesting may be deep.
    pub fn skip(&mut self) -> Result<()> {
        let mut open: Vec<JsonKind> = Vec::new();
        loop {
            // A value begins here.
            let kind = self.kind()?;
            let mut opened = Json::within();
            match kind {
                JsonKind::Object => (opened, _) = (self.object()?, open.push(kind)),
                JsonKind::Array => (opened, _) = (self.array()?, open.push(kind)),
                JsonKind::String => _ = self.string()?,
                JsonKind::Number => _ = self.number()?,
                JsonKind::Word if self.null() => {}
                JsonKind::Word => _ = self.flag()?,
            }
            // Closes every object and array that ends here, up to the next value.
            loop {
                let more = match open.last() {
                    None => return Ok(()),
                    Some(JsonKind::Object) => self.key(&mut opened)?.is_some(),
                    Some(_) => self.element(&mut opened)?,
                };
                if more {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Reads an object and returns the positions of the values of these members. A position is `None` if the object has
    /// no such member, or if its value is `null`, `true` or `false`.
    ///
    /// # Errors
    /// The errors of [`Json::member`].
    pub fn members<const N: usize>(&mut self, names: [&str; N]) -> Result<[Option<Json<'t>>; N]> {
        let mut values = [None; N];
        let mut object = self.object()?;
        while let Some(name) = self.member(&mut object, &names)? {
            let kind = self.kind()?;
            for (value, _) in values.iter_mut().zip(names).filter(|(_, other)| *other == name) {
                *value = Some(*self).filter(|_| kind != JsonKind::Word);
            }
            self.skip()?;
        }
        Ok(values)
    }

    /// Checks that only white space follows the value of the whole text.
    pub fn end(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.byte().is_some() { Err(self.unexpected("the end")) } else { Ok(()) }
    }
}

impl JsonScope {
    /// Marks the name with this number, which must be less than 64, as read.
    ///
    /// # Errors
    /// The name was already read in this object.
    pub fn mark(&mut self, number: usize, name: &str) -> Result<()> {
        let bit = 1 << number;
        if self.seen & bit != 0 {
            return Err(Error::malformed(format!("the key \"{name}\" occurs twice in one object; remove one")));
        }
        self.seen |= bit;
        Ok(())
    }
}

/// Returns the keys of the object that a text begins with, or no keys if it does not begin with an object. If the text
/// is cut off or malformed, returns the keys before this place.
pub fn keys(head: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut json = Json::new(head);
    let mut keys = Vec::new();
    let Ok(mut object) = json.object() else { return keys };
    while let Ok(Some(key)) = json.key(&mut object) {
        keys.push(key.bytes());
        if json.skip().is_err() {
            break;
        }
    }
    keys
}

/// Returns true if `text` contains `word`.
pub fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|w| w == word.as_bytes())
}

impl<'t> JsonText<'t> {
    /// Returns the unescaped bytes. Half of a surrogate pair becomes U+FFFD, the replacement character.
    pub fn bytes(self) -> Cow<'t, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut bytes = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            if first != b'\\' {
                bytes.push(first);
                continue;
            }
            let Some((&escape, after)) = rest.split_first() else { break };
            rest = after;
            match escape {
                b'b' => bytes.push(8),
                b'f' => bytes.push(12),
                b'n' => bytes.push(b'\n'),
                b'r' => bytes.push(b'\r'),
                b't' => bytes.push(b'\t'),
                b'u' => {
                    let mut code = hex(rest);
                    rest = rest.get(4..).unwrap_or_default();
                    let low = rest.strip_prefix(b"\\u").map(hex).filter(|low| (0xdc00..0xe000).contains(low));
                    if let (0xd800..0xdc00, Some(low)) = (code, low) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        rest = rest.get(6..).unwrap_or_default();
                    }
                    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => bytes.push(other),
            }
        }
        Cow::Owned(bytes)
    }
}

fn hex(text: &[u8]) -> u32 {
    let digit = |&b: &u8| char::from(b).to_digit(16).unwrap_or_default();
    text.iter().take(4).map(digit).fold(0, |code, digit| code << 4 | digit)
}

impl<'t> Number<'t> {
    /// Returns the number times `10^power`, rounded to the nearest integer (halves away from zero), and whether the
    /// result is exact. The computation is decimal: it never converts to binary floating point.
    ///
    /// # Errors
    /// The result does not fit in an int64.
    pub fn scaled(self, power: i64) -> Result<(i64, bool)> {
        let too_large = || {
            let shown = String::from_utf8_lossy(&self.raw[..self.raw.len().min(40)]);
            Error::malformed(format!("{shown} is more than an int64 holds")).at(self.offset)
        };
        let (negative, raw) = self.raw.strip_prefix(b"-").map_or((false, self.raw), |rest| (true, rest));
        let (mantissa, exponent) = match raw.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(offset) => (&raw[..offset], exponent(&raw[offset + 1..])),
            None => (raw, 0),
        };
        let point = mantissa.iter().position(|&b| b == b'.').unwrap_or(mantissa.len());
        // The number of digits before the decimal point, after it was moved.
        let whole = (point as i64).saturating_add(exponent).saturating_add(power);
        let (mut value, mut exact, mut half, mut digits_read) = (0u64, true, false, 0i64);
        let mut digits = mantissa.iter().filter(|&&b| b != b'.').map(|b| u64::from(b - b'0'));
        for digit in digits.by_ref() {
            if digits_read < whole {
                value = value.checked_mul(10).and_then(|v| v.checked_add(digit)).ok_or_else(too_large)?;
            } else {
                half |= digits_read == whole && digit >= 5;
                exact &= digit == 0;
            }
            digits_read += 1;
        }
        while digits_read < whole && value > 0 {
            value = value.checked_mul(10).ok_or_else(too_large)?;
            digits_read += 1;
        }
        let rounded = i128::from(value) + i128::from(half);
        let signed = if negative { -rounded } else { rounded };
        i64::try_from(signed).map(|v| (v, exact)).map_err(|_| too_large())
    }

    /// Returns the number as written.
    pub fn text(self) -> &'t [u8] {
        self.raw
    }

    /// Returns the number as an integer.
    ///
    /// # Errors
    /// The number has a fraction or does not fit in an int64.
    pub fn whole(self) -> Result<i64> {
        match self.scaled(0)? {
            (value, true) => Ok(value),
            _ => {
                let shown = String::from_utf8_lossy(&self.raw[..self.raw.len().min(40)]);
                Err(Error::malformed(format!("{shown} has a fraction; it must be a whole number")).at(self.offset))
            }
        }
    }
}

/// Parses an exponent. The result is clamped to 2^40, which is already out of range for any number.
fn exponent(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let value = digits.iter().fold(0i64, |v, b| v.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    let value = value.min(1 << 40);
    if negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Validates a text as one JSON value.
    fn check(text: &[u8]) -> Result<()> {
        let mut json = Json::new(text);
        json.skip()?;
        json.end()
    }

    /// Returns random sequences of JSON tokens. Some of them are valid.
    fn texts() -> impl Iterator<Item = String> {
        const WORDS: [&str; 22] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\"a\"",
            "\"\\n\\u00e9\"",
            "\"\\",
            "\"",
            "0",
            "-",
            "12",
            ".5",
            "e3",
            "E-1",
            "+",
            "true",
            "null",
            "nul",
            "\u{e9}",
        ];
        let mut random = 7u64;
        let mut next = move |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % n
        };
        (0..200_000).map(move |i| {
            let mut text: String = (0..next(9)).map(|_| WORDS[next(WORDS.len())]).collect();
            if i % 2 == 0 {
                text = format!("{{\"k\":[{text}]}}");
            }
            text
        })
    }

    #[test]
    fn accepts_exactly_the_texts_that_serde_json_accepts() {
        let mut valid = 0;
        for text in texts() {
            let other = serde_json::from_str::<serde::de::IgnoredAny>(&text);
            assert_eq!(check(text.as_bytes()).is_ok(), other.is_ok(), "{text:?}: {other:?}");
            valid += usize::from(other.is_ok());
        }
        assert!(valid > 2000, "{valid}");
    }

    #[test]
    fn strings_and_escapes_match_serde_json() {
        for text in [r#""""#, r#""a\"b\\c\/d\b\f\n\r\t""#, r#""\u0041\u00e9\u20ac\ud83d\ude00é""#, r#""\u0000\u001f""#]
        {
            let expected: String = serde_json::from_str(text).unwrap();
            assert_eq!(Json::new(text.as_bytes()).string().unwrap().bytes(), expected.as_bytes(), "{text}");
        }
        // Half of a surrogate pair is not a character.
        for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#] {
            let read = Json::new(text.as_bytes()).string().unwrap().bytes().into_owned();
            assert!(read.starts_with("\u{fffd}".as_bytes()), "{text}");
        }
        assert_eq!(Json::new(r#""\ud83d\ud83d\ude00""#.as_bytes()).string().unwrap().bytes(), "\u{fffd}😀".as_bytes());
        assert_eq!(&*Json::new(b"\"\xff\xfe\"").string().unwrap().bytes(), b"\xff\xfe");
    }

    #[test]
    fn numbers_are_scaled_exactly() {
        for (text, power, expected) in [
            ("0", 9, (0, true)),
            ("-0.0", 0, (0, true)),
            ("12", 3, (12_000, true)),
            ("-1.5", 1, (-15, true)),
            ("0.005531524991965853", 9, (5_531_525, false)),
            ("1.5", 0, (2, false)),
            ("-1.5", 0, (-2, false)),
            ("0.49", 0, (0, false)),
            ("0.05", 0, (0, false)),
            ("12.00", 0, (12, true)),
            ("1e3", 0, (1000, true)),
            ("1.25E+2", 0, (125, true)),
            ("1250e-2", 0, (13, false)),
            ("1e-400", 9, (0, false)),
            ("0e99999999999999999999", 9, (0, true)),
            ("9223372036854775807", 0, (i64::MAX, true)),
            ("-9223372036854775808", 0, (i64::MIN, true)),
            ("0.009223372036854775807", 21, (9_223_372_036_854_775_807, true)),
        ] {
            assert_eq!(Json::new(text.as_bytes()).number().unwrap().scaled(power).unwrap(), expected, "{text}");
        }
        for (text, power) in
            [("9223372036854775808", 0), ("-9223372036854775809", 0), ("1e19", 0), ("1", 19), ("1e999999", 0)]
        {
            let error = Json::new(text.as_bytes()).number().unwrap().scaled(power).unwrap_err();
            assert!(error.to_string().contains("more than an int64 holds"), "{text}: {error}");
        }
        let error = Json::new(b" 1.5").number().unwrap().whole().unwrap_err();
        assert!(error.to_string().contains("1.5 has a fraction") && error.offset() == Some(1), "{error}");
    }

    #[test]
    fn errors_name_the_expected_and_the_actual_text() {
        for (text, words, offset) in [
            (&b"{\"a\":1"[..], "expected ',' or '}', but it was cut off", 6),
            (b"[1 2]", "expected ',' or ']', not '2'", 3),
            (b"{\"a\" 1}", "expected ':', not '1'", 5),
            (b"{1:2}", "expected a string, not '1'", 1),
            (b"[1,]", "expected a value, not ']'", 3),
            (b"[01]", "expected ',' or ']', not '1'", 2),
            (b"\"\\x\"", "expected the rest of an escape, not 'x'", 2),
            (b"\"\\u00g0\"", "expected a hexadecimal digit, not 'g'", 5),
            (b"\"a\nb\"", "expected the rest of a string, not byte 0x0a", 2),
            (b"[] []", "expected the end, not '['", 3),
            (b"", "expected a value, but it was cut off", 0),
            (b"[nul]", "expected true or false, not 'n'", 1),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.to_string().contains(words) && error.offset() == Some(offset), "{error}");
        }
    }

    #[test]
    fn a_duplicate_key_is_an_error_only_where_members_are_read() {
        for (text, error) in [
            (r#"{"a":1,"b":2,"a":1}"#, Some(13)),
            (r#"{"a":null,"x":0, "\u0061":1}"#, Some(17)),
            (r#"{"x":1,"x":2,"a":[{"a":1},{"a":2}],"b":{"a":1,"a":2}}"#, None),
        ] {
            let members = Json::new(text.as_bytes()).members(["a", "b"]);
            assert_eq!(members.as_ref().err().map(Error::offset), error.map(Some), "{text}");
            let message = members.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.is_none() || message.contains(r#"the key "a" occurs twice in one object"#), "{message}");
        }
    }

    #[test]
    fn a_million_nested_levels_do_not_overflow_the_call_stack() {
        let n = 1_000_000;
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert!(check((open.repeat(n) + "1" + &close.repeat(n)).as_bytes()).is_ok());
            assert!(check((open.repeat(n) + "1" + &close.repeat(n - 1)).as_bytes()).is_err());
        }
        assert!(check("[{\"a\":".repeat(n).as_bytes()).is_err());
    }

    #[test]
    fn keys_returns_the_keys_before_the_text_is_cut_off() {
        let text = b" {\"a\": {\"x\": [1]}, \"b\\u0041\" :[{\"y\":1}], \"c\": 12}";
        assert_eq!(keys(text), [&b"a"[..], b"bA", b"c"]);
        assert_eq!(keys(&text[..text.len() - 12]), [&b"a"[..], b"bA"]);
        assert!(keys(b"[{\"a\":1}]").is_empty() && keys(b"").is_empty());
    }
}
