//! Redaction of messages and names: passwords and tokens in URLs, and all secrets that a request carries.
//!
//! The name under which a profile is loaded goes through [`redacted`] (`load.rs` of pprofdiff-formats), so errors, tables, pages
//! and JSON hold no secrets. The command and Python also redact the messages of other libraries, which may repeat a
//! URL.
//!
//! A server can repeat a secret without its URL: in the body of an error, in a redirect, in XML. Each request therefore
//! has [`Secrets`], which hold the exact texts. [`Secrets::redact`] is applied to every message about the request.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::short_lists::sort_by_key;
use ::base64::Engine as _;
use ::base64::prelude::BASE64_STANDARD;

/// The replacement for a secret.
const HIDDEN: &str = "***";

/// Words that mark a parameter as secret when its name contains them, in any scheme.
const SECRET_WORDS: [&str; 18] = [
    "auth", "bearer", "code", "cookie", "cred", "jwt", "key", "nonce", "otp", "pass", "policy", "pwd", "sas", "secret",
    "session", "sig", "ticket", "token",
];

/// Parameters of web addresses whose values are shown, because they identify the profile. All other values are hidden,
/// because any of them can grant access, except for `true`, `false` and numbers of at most 13 characters.
const HARMLESS: [&str; 50] = [
    "algorithm",
    "app",
    "branch",
    "build",
    "cluster",
    "commit",
    "date",
    "debug",
    "delimiter",
    "duration",
    "encoding-type",
    "end",
    "env",
    "expires",
    "file",
    "format",
    "from",
    "gc",
    "host",
    "instance",
    "job",
    "limit",
    "name",
    "namespace",
    "offset",
    "page",
    "part",
    "path",
    "pod",
    "prefix",
    "profile",
    "query",
    "rate",
    "raw",
    "ref",
    "region",
    "rev",
    "seconds",
    "service",
    "signedheaders",
    "since",
    "start",
    "tag",
    "tenant",
    "time",
    "to",
    "type",
    "until",
    "version",
    "zone",
];
/// Prefixes that object stores add to the parameters of signed addresses.
const STORE_PREFIXES: [&str; 3] = ["x-amz-", "x-goog-", "x-ms-"];

/// Replaces the user, the password and the secret parameters of every URL in the text with `***`:
/// `https://***@host/path?debug=0&token=***`.
///
/// A URL whose port is not a number and that has no `@` before its path is invalid. Its port is taken for the start of
/// a password that contains `/`, `?`, `#` or whitespace, and everything up to the last `@` of the text is hidden.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut hidden = Vec::new();
    each_secret(text, |place, _| hidden.push(place));
    sort_by_key(&mut hidden, |place| place.start);
    without(text, hidden)
}

/// The reason why a part of a URL is treated as secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    /// The user and the password before the host.
    User,
    /// A parameter whose name sounds like a secret.
    Named,
    /// A parameter that is not on the list of harmless parameters.
    Possible,
}

/// Calls `report` with the range of each secret in the URLs of a text. Ranges may be nested.
fn each_secret(text: &str, mut report: impl FnMut(Range<usize>, Secrecy)) {
    // A text without whitespace is a name, so its URL extends to its end.
    let is_name = !text.contains(char::is_whitespace);
    let mut position = 0;
    while let Some(begin) = text[position..].find("://").map(|place| position + place + 3) {
        let scheme = text[position..begin - 3].rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
        let after = &text[begin..];
        let end = after.find(|c: char| c.is_whitespace() || "/?#".contains(c)).unwrap_or(after.len());
        let authority = &after[..end];
        let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
        // The last colon of `[::1]` does not begin a port.
        let odd = !port.bytes().all(|b| b.is_ascii_digit()) && !authority.ends_with(']');
        let user = authority.rfind('@').or_else(|| after.rfind('@').filter(|_| odd));
        position = begin;
        if let Some(user) = user {
            report(begin..begin + user, Secrecy::User);
            position += user;
        }
        let rest = &text[position..];
        // A nested URL is scanned by a later iteration.
        let next = rest.find("://").map_or(rest.len(), |next| {
            let scheme = rest[..next].rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
            scheme.map_or(0, |scheme| scheme + 1)
        });
        let blank = if is_name { rest.len() } else { end_of_url(rest) };
        let Some(query) = rest[..next.min(blank)].find(['?', '#']) else { continue };
        let mut param = position + query + 1;
        let end = position + blank;
        while param < end {
            let length = text[param..end].find(['&', ';', '#']).unwrap_or(end - param);
            let part = &text[param..param + length];
            let (name, value) = part.split_once('=').map_or(("", part), |(name, value)| (name, value));
            if let Some(secrecy) = secrecy(name, value, is_web) {
                report(param + length - value.len()..param + length, secrecy);
            }
            param += length + 1;
        }
    }
}

/// Returns the end of a URL within a sentence: whitespace, or the quote or bracket around the URL.
fn end_of_url(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((position, c)) = chars.next() {
        let is_last = chars.peek().is_none_or(|(_, next)| next.is_whitespace() || ":,;.)".contains(*next));
        if c.is_whitespace() || "\"<>`".contains(c) || (c == '\'' && is_last) {
            return position;
        }
    }
    text.len()
}

/// Returns why the value of a URL parameter must be hidden, or `None` if it may be shown. A value without a name has
/// the name "".
fn secrecy(name: &str, value: &str, is_web: bool) -> Option<Secrecy> {
    let name = String::from_utf8_lossy(&Plain::from_text(name).bytes).into_owned();
    let name = STORE_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
    let is_number = value.len() <= 13 && value.bytes().all(|b| b.is_ascii_digit() || b".-".contains(&b));
    let is_harmless = |name: &str| HARMLESS.contains(&name);
    let possible = |is_secret: bool| is_secret.then_some(Secrecy::Possible);
    match name {
        "signedheaders" => None,
        _ if value.is_empty() || value == HIDDEN => None,
        "" => possible(is_web && !is_number && !is_harmless(value)),
        name if SECRET_WORDS.iter().any(|word| name.contains(word)) => Some(Secrecy::Named),
        name => possible(is_web && !is_number && !is_harmless(name) && value != "true" && value != "false"),
    }
}

/// Replaces these ranges of the text with [`HIDDEN`]. The ranges must be sorted by their start.
fn without(text: &str, hidden: Vec<Range<usize>>) -> Cow<'_, str> {
    if hidden.is_empty() {
        return text.into();
    }
    let (mut shown, mut position) = (String::with_capacity(text.len()), 0);
    for place in hidden {
        if place.end <= position {
            continue;
        }
        if place.start >= position {
            shown.push_str(&text[position..place.start]);
            shown.push_str(HIDDEN);
        }
        position = place.end;
    }
    shown.push_str(&text[position..]);
    shown.into()
}

/// The minimum length of a secret to search for in messages. Shorter texts occur in many words.
const MIN_SECRET_BYTES: usize = 3;
/// The minimum length for values of parameters that may be harmless, such as `mode=cpu`, and for users without a
/// password, such as `git@`.
const MIN_POSSIBLE_BYTES: usize = 8;
/// The minimum length of a prefix of a secret that is hidden at the end of a message, where the rest may have been cut
/// off.
const MIN_CUT_BYTES: usize = 4;
/// The length of the longest usual encoding of a byte, such as `&quot;` or `\u0041`. Only numbers with leading zeros
/// (`&#0000065;`) are longer.
const MAX_ENCODING_BYTES: usize = 6;

/// All secrets that a request carries. Messages about the request and quotes of the server's answer go through
/// [`Secrets::redact`] before they are shortened.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<Secret>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// One secret: decoded, in lower case.
#[derive(Clone, PartialEq, Eq)]
struct Secret {
    bytes: Vec<u8>,
    /// True if this may be a harmless parameter. Such a text is hidden in messages, but never overwritten in a profile.
    is_possible: bool,
}

impl Secrets {
    /// Collects the passwords and secret parameters of all URLs in a text.
    pub fn of_url(url: &str) -> Secrets {
        let mut secrets = Secrets::default();
        each_secret(url, |place, secrecy| {
            let secret = &url[place];
            match (secrecy, secret.split_once(':')) {
                // A user name without a password is a token. With a password, the name itself is not secret.
                (Secrecy::User, Some((_, password))) => {
                    secrets.add(secret);
                    secrets.add(password);
                }
                (Secrecy::User, None) if secret.len() < MIN_POSSIBLE_BYTES => {}
                (Secrecy::User, None) | (Secrecy::Named, _) => secrets.add(secret),
                (Secrecy::Possible, _) => secrets.insert(secret, true),
            }
            if secrecy == Secrecy::User {
                secrets.add_basic(secret);
            }
        });
        secrets
    }

    /// Adds the content of the `Authorization` header that clients send for a URL's user: its base64 encoding, both as
    /// written and percent-decoded.
    fn add_basic(&mut self, user: &str) {
        let decoded = percent_decoded(user);
        for user in [user.as_bytes(), &decoded] {
            let colon: &[u8] = if user.contains(&b':') { b"" } else { b":" };
            self.add(&BASE64_STANDARD.encode([user, colon].concat()));
        }
    }

    /// Adds a secret.
    pub fn add(&mut self, secret: &str) {
        self.insert(secret, false);
    }

    fn insert(&mut self, secret: &str, is_possible: bool) {
        let min_bytes = if is_possible { MIN_POSSIBLE_BYTES } else { MIN_SECRET_BYTES };
        let secret = Secret { bytes: Plain::from_text(secret).bytes, is_possible };
        if secret.bytes.len() >= min_bytes && !self.0.contains(&secret) {
            let secrets = Arc::make_mut(&mut self.0);
            secrets.push(secret);
            // Longest first, because a secret may begin with another secret.
            sort_by_key(secrets, |secret| std::cmp::Reverse(secret.bytes.len()));
        }
    }

    /// Adds the secrets of `others`.
    #[must_use]
    pub fn and(mut self, others: &Secrets) -> Secrets {
        for secret in &*others.0 {
            if !self.0.contains(secret) {
                Arc::make_mut(&mut self.0).push(secret.clone());
            }
        }
        Arc::make_mut(&mut self.0).sort_by_key(|secret| std::cmp::Reverse(secret.bytes.len()));
        self
    }

    /// Replaces these secrets, and secrets in URLs, in the text. Also finds secrets that are percent-encoded, escaped
    /// as in XML or JSON, or written in another case.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let masked = without(text, self.places(text));
        match redacted(&masked) {
            Cow::Borrowed(_) => masked,
            Cow::Owned(shown) => shown.into(),
        }
    }

    /// Returns the ranges of these secrets in the text.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let plain = Plain::from_text(text);
        // The text may end within an encoded character.
        let end = plain.bytes.len();
        let last = plain.bytes.iter().rposition(|byte| b"%&\\".contains(byte));
        let end_of_whole = last.filter(|position| end - position <= MAX_ENCODING_BYTES).unwrap_or(end);
        let (mut places, mut position) = (Vec::new(), 0);
        while position < end {
            let (rest, before) = (&plain.bytes[position..], &plain.bytes[position..end_of_whole.max(position)]);
            let length = self.0.iter().map(|secret| &secret.bytes).find_map(|secret| {
                let is_cut = |rest: &[u8]| rest.len() >= MIN_CUT_BYTES && secret.starts_with(rest);
                match rest.starts_with(secret) {
                    true => Some(secret.len()),
                    false => (is_cut(rest) || is_cut(before)).then_some(rest.len()),
                }
            });
            let length = length.unwrap_or(0);
            if length > 0 {
                let place = plain.places[position].start as usize..plain.places[position + length - 1].end as usize;
                places.push(whole_chars(text, place));
            }
            position += length.max(1);
        }
        places
    }

    /// Overwrites these secrets with asterisks, one per byte, so the length stays the same. Ignores case, but does not
    /// find encoded secrets. Skips secrets that are shorter than [`MIN_MASKED_BYTES`] or may be harmless.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        let certain = self.0.iter().filter(|secret| !secret.is_possible).map(|secret| &secret.bytes);
        for secret in certain.filter(|secret| secret.len() >= MIN_MASKED_BYTES) {
            let matches_secret = |window: &[u8]| {
                window.iter().zip(secret).all(|(b, s)| match b {
                    b'+' => *s == b' ',
                    b => b.to_ascii_lowercase() == *s,
                })
            };
            let first = secret[0];
            let mut position = 0;
            while position + secret.len() <= bytes.len() {
                if bytes[position].to_ascii_lowercase() == first
                    && matches_secret(&bytes[position..position + secret.len()])
                {
                    bytes[position..position + secret.len()].fill(b'*');
                    position += secret.len();
                } else {
                    position += 1;
                }
            }
        }
    }
}

/// Undoes one level of percent-encoding.
fn percent_decoded(text: &str) -> Vec<u8> {
    let (text, mut bytes, mut position) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(position) {
        let decoded = if byte == b'%' { decode_first(&text[position..]) } else { None };
        let (byte, length) = decoded.unwrap_or((byte, 1));
        bytes.push(byte);
        position += length;
    }
    bytes
}

/// Extends a range to whole characters, because a part of a character can't be shown.
fn whole_chars(text: &str, place: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = place;
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The minimum length of a secret that is overwritten in a profile. Shorter secrets may be words or parts of numbers.
const MIN_MASKED_BYTES: usize = 12;

/// A decoded text in lower case, with spaces for `+`, and the position of each of its bytes in the original text.
struct Plain {
    bytes: Vec<u8>,
    places: Vec<Range<u32>>,
}

impl Plain {
    fn from_text(text: &str) -> Plain {
        /// The maximum number of nested encodings to undo.
        const MAX_ROUNDS: usize = 4;
        let bytes = text.as_bytes().to_vec();
        let mut plain =
            Plain { places: (0..bytes.len() as u32).map(|position| position..position + 1).collect(), bytes };
        for _ in 0..MAX_ROUNDS {
            let before = plain.bytes.len();
            plain = plain.decoded();
            if plain.bytes.len() == before {
                break;
            }
        }
        for byte in &mut plain.bytes {
            *byte = if *byte == b'+' { b' ' } else { byte.to_ascii_lowercase() };
        }
        plain
    }

    /// Undoes one level of encoding. Leaves XML and JSON escapes of characters above U+00FF as they are, because
    /// secrets are ASCII.
    fn decoded(&self) -> Plain {
        let (mut bytes, mut places, mut position) = (Vec::with_capacity(self.bytes.len()), Vec::new(), 0);
        while let Some(&first) = self.bytes.get(position) {
            let (byte, length) = decode_first(&self.bytes[position..]).unwrap_or((first, 1));
            bytes.push(byte);
            places.push(self.places[position].start..self.places[position + length - 1].end);
            position += length;
        }
        Plain { bytes, places }
    }
}

/// Decodes the byte that is encoded at the beginning of a text, and returns it with the length of its encoding.
fn decode_first(text: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8], radix: u32| {
        let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with(['+', '-']))?;
        u8::from_str_radix(text, radix).ok()
    };
    match text {
        [b'%', a, b, ..] => Some((number(&[*a, *b], 16)?, 3)),
        [b'\\', b'u', b'0', b'0', a, b, ..] => Some((number(&[*a, *b], 16)?, 6)),
        [b'\\', b'x', a, b, ..] => Some((number(&[*a, *b], 16)?, 4)),
        [b'\\', c @ (b'/' | b'"' | b'\\' | b'\''), ..] => Some((*c, 2)),
        [b'&', ..] => {
            let end = text.iter().take(10).position(|b| *b == b';')?;
            let byte = match &text[1..end] {
                b"amp" => b'&',
                b"lt" => b'<',
                b"gt" => b'>',
                b"quot" => b'"',
                b"apos" => b'\'',
                [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
                [b'#', digits @ ..] => number(digits, 10)?,
                _ => return None,
            };
            Some((byte, end + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Secrets, redacted};

    #[test]
    fn users_and_passwords_in_urls_are_hidden() {
        for (text, shown) in [
            ("http://u:secret@host:6060/heap?debug=0", "http://***@host:6060/heap?debug=0"),
            ("https://token-secret@host", "https://***@host"),
            ("http://u:a@secret@host/x@y", "http://***@host/x@y"),
            ("zip://in.pb::https://u:secret@host/x.zip", "zip://in.pb::https://***@host/x.zip"),
            ("cannot get 'http://u:secret@h/': no", "cannot get 'http://***@h/': no"),
            ("http://a:secret@h/1 and http://b:secret@h/2", "http://***@h/1 and http://***@h/2"),
            // Invalid URLs are hidden too.
            ("http://u:secret/1@host/heap", "http://***@host/heap"),
            ("http://u:se#secret?@host/heap", "http://***@host/heap"),
            ("http://u:se secret@host/heap", "http://***@host/heap"),
            // URLs without secrets.
            ("http://localhost:6060/pkg@v1.2/heap", "http://localhost:6060/pkg@v1.2/heap"),
            ("http://[::1]:6060/a@b", "http://[::1]:6060/a@b"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("file:///tmp/a@b.pb.gz", "file:///tmp/a@b.pb.gz"),
            ("dir/user@host/x.pb.gz", "dir/user@host/x.pb.gz"),
            ("://", "://"),
            ("", ""),
        ] {
            assert_eq!(redacted(text), shown);
            assert_eq!(redacted(shown), shown, "twice is once");
        }
    }

    #[test]
    fn secret_parameters_of_urls_are_hidden() {
        for (text, shown) in [
            ("http://h/x?X-Amz-Security-Token=SECRET", "http://h/x?X-Amz-Security-Token=***"),
            (
                "https://h/x?X-Amz-Date=20260101&X-Amz-Signature=ab&x=1",
                "https://h/x?X-Amz-Date=20260101&X-Amz-Signature=***&x=1",
            ),
            (
                "https://h/x?X-Amz-Securit%79-Tok%65n=SECRET#access_token=S",
                "https://h/x?X-Amz-Securit%79-Tok%65n=***#access_token=***",
            ),
            ("https://a.blob/x?sv=2024-01-01&sig=a%2Fb%3D;se=S", "https://a.blob/x?sv=2024-01-01&sig=***;se=***"),
            ("az://c/x?sig=SECRET&sv=a", "az://c/x?sig=***&sv=a"),
            ("http://h/x?SECRET", "http://h/x?***"),
            ("http://h/x?k=SECRET&debug", "http://h/x?k=***&debug"),
            ("http://h/x?token=a'b\"SECRET", "http://h/x?token=***"),
            ("no 'http://h/x?token=S': 404, http://h?k=S.", "no 'http://h/x?token=***': 404, http://h?k=***"),
            ("http://h/x?path=http://u:SECRET@h/y?t=SECRET", "http://h/x?path=http://***@h/y?t=***"),
            ("http://h/x?path=http://u:SECRET@h/&token=S", "http://h/x?path=http://***@h/&token=***"),
            ("http://h/?token=http://u:SECRET@h/&t=S", "http://h/?token=***&t=***"),
            ("http://u:p@h/x?token=S&debug=1", "http://***@h/x?token=***&debug=1"),
            ("pyroscope://h/{}?token=SECRET&type=cpu", "pyroscope://h/{}?token=***&type=cpu"),
            // URLs without secrets.
            ("http://h/heap?debug=0&seconds=30&gc=1", "http://h/heap?debug=0&seconds=30&gc=1"),
            ("http://h/x?build=9fceb02&raw#top", "http://h/x?build=9fceb02&raw#***"),
            (r#"pyroscope://h/{a="b?c"}?type=cpu&from=-1h"#, r#"pyroscope://h/{a="b?c"}?type=cpu&from=-1h"#),
            ("s3://b/k?x=y", "s3://b/k?x=y"),
            ("why? token=x", "why? token=x"),
        ] {
            assert_eq!(redacted(text), shown);
            assert_eq!(redacted(shown), shown, "twice is once");
        }
    }

    #[test]
    fn secrets_of_a_request_are_hidden_in_messages() {
        let mut secrets = Secrets::of_url("https://user:pass word@h/x?X-Amz-Security-Token=Ab%2Fc%2Bd%3D%3D&debug=1");
        secrets.add("tok\"en/<1>");
        for (text, shown) in [
            ("Ab/c+d==", "***"),
            ("got Ab%2Fc%2Bd%3D%3D, ab%2fc%2bd%3d%3d!", "got ***, ***!"),
            ("twice: Ab%252Fc%252Bd%253D%253D", "twice: ***"),
            ("<Message>Ab&#47;c&#x2B;d==&amp;x</Message>", "<Message>***&amp;x</Message>"),
            (r#"{"said":"Ab\/c\u002bd=="}"#, r#"{"said":"***"}"#),
            ("form: Ab%2Fc+d==", "form: ***"),
            (r#"tok"en/<1> tok\"en/<1> tok&quot;en/&lt;1&gt;"#, "*** *** ***"),
            ("pass word and pass%20word", "*** and ***"),
            ("it was cut: X=Ab%2Fc%2", "it was cut: X=***"),
            // Secrets in other URLs are hidden, and harmless parameters stay.
            ("to http://other/?sig=zz", "to http://other/?sig=***"),
            ("debug=1 of user é 100% &c; \\u12", "debug=1 of user é 100% &c; \\u12"),
            ("%C3%A9Ab/c+d==é", "%C3%A9***é"),
        ] {
            assert_eq!(secrets.redact(text), shown);
        }
        // Secrets that are too short would match everywhere.
        secrets = Secrets::default();
        secrets.add("a");
        assert_eq!(secrets.redact("a bad cat"), "a bad cat");
        secrets.add("sixteen-bytes-it");
        let mut bytes = b"x Sixteen-bytes-it sixteen".to_vec();
        secrets.mask(&mut bytes);
        assert_eq!(bytes, b"x **************** sixteen");
    }

    /// Checks a quote of the header, which contains the user and the password in base64.
    #[test]
    fn basic_authorization_of_a_user_is_hidden() {
        let secrets = Secrets::of_url("https://u:s3cr%65t@h/x");
        let text = "401: Basic dTpzM2NyJTY1dA== or dTpzM2NyZXQ=";
        assert_eq!(secrets.redact(text), "401: Basic *** or ***");
        assert_eq!(Secrets::of_url("https://a-long-token@h").redact("Basic YS1sb25nLXRva2VuOg=="), "Basic ***");
    }

    /// Parameters that are hidden as a precaution are often words that also occur in names and messages.
    #[test]
    fn possibly_harmless_parameters_do_not_mask_profiles_or_short_words() {
        let secrets = Secrets::of_url("http://h/p?class=org.apache.spark.executor.Executor&mode=cpu");
        let name = b"org.apache.spark.executor.Executor";
        let mut bytes = name.to_vec();
        secrets.mask(&mut bytes);
        assert_eq!(bytes, name);
        assert_eq!(secrets.redact("no cpu in org.apache.spark.executor.Executor"), "no cpu in ***");
        assert_eq!(Secrets::of_url("https://git@h/x").redact("a digit"), "a digit");
    }
}
