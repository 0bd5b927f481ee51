//! The error type of all pprofdiff crates. An error contains the input, the record, the byte offset, a description and
//! advice.
//!
//! Errors are written for people. `Display` prints a single line that is safe to show, whatever the input contains. The
//! parts are available unescaped, so that a caller can build its own message.
//!
//! Commands to copy are separate from the message. The pprofdiff command shows them on a terminal only, because logs
//! may contain names from untrusted sources.

use std::fmt;
use std::io;
use std::ops::Range;

use crate::mentions;
use crate::redact::Secrets;
use crate::sanitize::sanitize;

/// The result type of the engine's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of failure, for callers that act on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error; see [`Error::io_error`].
    Io,
    /// The input is not a valid profile.
    Malformed,
    /// The input has a known format that pprofdiff cannot read.
    OtherFormat,
    /// The input exceeds a limit: the caller's, or one that is built in, such as 4 GiB per profile.
    Limit,
    /// The inputs are valid, but can't be compared or merged with each other.
    Incompatible,
    /// Counters decreased between two snapshots, because the process was restarted.
    Reset,
    /// None of the snapshot's sample types counts from the start of the process, so subtracting snapshots is
    /// meaningless.
    NotCumulative,
    /// The work was cancelled; see [`Cancellation`](crate::Cancellation).
    Interrupted,
    /// The request is invalid: an unknown sample type, an invalid regular expression, a factor of NaN.
    Query,
}

/// An error of the engine. It is a single pointer, so it is cheap to move.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    input: Option<String>,
    record: Option<String>,
    offset: Option<u64>,
    detail: String,
    /// The names of options in `detail`.
    mentions: Vec<Range<usize>>,
    advice: Option<String>,
    io: Option<io::Error>,
}

impl Error {
    /// Creates an error. `detail` describes the problem and what to do, but not the place.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        let (input, record, offset, advice, io) = (None, None, None, None, None);
        let (detail, mentions) = (detail.into(), Vec::new());
        Error(Box::new(Inner { kind, input, record, offset, detail, mentions, advice, io }))
    }

    /// Creates an error about an invalid request.
    pub fn query(detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Query, detail)
    }

    /// Creates an error about an invalid request whose detail mentions options between backticks. `Display` prints their
    /// names, and [`Error::spelled`] spells them like an interface. The detail must not contain text from profiles.
    pub fn naming_options(detail: &str) -> Error {
        let (detail, mentions) = mentions::plain(detail);
        let mut e = Error::query(detail);
        e.0.mentions = mentions;
        e
    }

    /// Creates an error about an invalid input.
    pub fn malformed(detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, detail)
    }

    /// Converts an operating system error.
    pub fn io(error: io::Error) -> Error {
        let mut e = Error::new(ErrorKind::Io, error.to_string());
        e.0.io = Some(error);
        e
    }

    /// Adds a command that helps the user; see [`Error::advice`].
    pub fn advise(mut self, command: String) -> Error {
        self.0.advice = Some(command);
        self
    }

    /// Inserts `words` before the detail.
    pub fn prefixed(mut self, words: &str) -> Error {
        self.0.detail.insert_str(0, words);
        for mention in &mut self.0.mentions {
            *mention = mention.start + words.len()..mention.end + words.len();
        }
        self
    }

    /// Redacts the secrets of a request from this error.
    #[must_use]
    pub fn without(mut self, secrets: &Secrets) -> Error {
        let redact = |text: &mut String| *text = secrets.redact(text).into_owned();
        let inner = &mut *self.0;
        if secrets.redact(&inner.detail) != inner.detail {
            inner.mentions.clear();
        }
        [Some(&mut inner.detail), inner.input.as_mut(), inner.record.as_mut(), inner.advice.as_mut()]
            .into_iter()
            .flatten()
            .for_each(redact);
        if let Some(io) = inner.io.take() {
            let text = io.to_string();
            let redacted = secrets.redact(&text);
            inner.io = Some(if redacted == text { io } else { io::Error::new(io.kind(), redacted.into_owned()) });
        }
        self
    }

    /// Sets the name of the file or other input, unless it is already set.
    pub fn in_input(mut self, name: &str) -> Error {
        self.0.input.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Sets the record that was being read, unless it is already set.
    pub fn in_record(mut self, record: impl FnOnce() -> String) -> Error {
        self.0.record.get_or_insert_with(record);
        self
    }

    /// Sets the byte offset in the inflated data, unless it is already set.
    pub fn at(mut self, offset: usize) -> Error {
        self.0.offset.get_or_insert(offset as u64);
        self
    }

    /// Converts an error about a part of an input into an error about the whole input. Adds the part's name to the
    /// record, and replaces the offset, which was relative to the part, with `offset`.
    #[doc(hidden)]
    pub fn of_part(mut self, part: Option<&str>, offset: Option<usize>) -> Error {
        if let Some(part) = part {
            let record = self.0.record.take();
            self.0.record = Some(record.map_or_else(|| part.to_owned(), |record| format!("{part}, {record}")));
        }
        self.0.offset = offset.map(|offset| offset as u64);
        self
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file or other input that was being read.
    pub fn input(&self) -> Option<&str> {
        self.0.input.as_deref()
    }

    /// Returns the record that was being read, such as `sample 17`. Records count from 0, and lines of text from 1.
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// Returns the byte offset in the inflated data.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the description of the problem, without the place.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the description like [`Error::detail`], with the options in it spelled by `spelling`, which gets a name
    /// and possibly a value.
    pub fn spelled_detail(&self, spelling: impl Fn(&str, Option<&str>) -> String) -> String {
        mentions::replace(&self.0.detail, &self.0.mentions, spelling)
    }

    /// Returns the line of `Display`, with the options in it spelled like in [`Error::spelled_detail`].
    pub fn spelled(&self, spelling: impl Fn(&str, Option<&str>) -> String) -> String {
        Line { error: &self.0, detail: &self.spelled_detail(spelling) }.to_string()
    }

    /// Returns a POSIX shell command that helps the user. Names in it are quoted, so they cannot inject commands.
    /// `Display` omits the command: show it to people, and keep it out of logs.
    pub fn advice(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }

    /// Returns the operating system's error, if any.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.io.as_ref()
    }
}

/// The line that `Display` prints, with a detail whose options may be spelled like an interface.
struct Line<'a> {
    error: &'a Inner,
    detail: &'a str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Line { error: &self.0, detail: &self.0.detail }.fmt(f)
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.error.input {
            write!(f, "{}: ", sanitize(input))?;
        }
        if let Some(record) = &self.error.record {
            write!(f, "{}: ", sanitize(record))?;
        }
        f.write_str(&sanitize(self.detail))?;
        if let Some(offset) = self.error.offset {
            write!(f, " (at byte {offset} of the inflated data)")?;
        }
        Ok(())
    }
}

/// Prints the same line as `Display`, because `unwrap` and a `main` that returns a [`Result`] use `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.io.as_ref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_format_is_one_line() {
        let error = Error::malformed("location 7 is not there").in_input("a\n.pb").in_record(|| "sample 3".to_owned());
        let printed = format!("{:?}", error.at(12).advise("rm -r".to_owned()));
        assert_eq!(printed, "a\u{fffd}.pb: sample 3: location 7 is not there (at byte 12 of the inflated data)");
    }

    #[test]
    fn options_in_an_error_are_spelled_like_the_interface() {
        let error =
            Error::naming_options("`base_time` needs two sides; use `time`").prefixed("pair 1: ").in_input("a.pb");
        assert_eq!(error.to_string(), "a.pb: pair 1: base_time needs two sides; use time");
        let spelled = error.spelled(|name, _| format!("--{}", name.replace('_', "-")));
        assert_eq!(spelled, "a.pb: pair 1: --base-time needs two sides; use --time");
    }
}
