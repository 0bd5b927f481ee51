//! The one error type: which input, which record, at which byte, what is wrong and what to do.
//!
//! Errors are for people. `Display` is a single line that is safe to print, whatever the input contains. The parts are
//! public, unescaped, so that a caller can build its own message.
//!
//! Advice to copy is apart from the message: the command shows it on a terminal only, since logs have strangers' names.

use std::fmt;
use std::io;

use crate::redact::Secrets;
use crate::sanitize::sanitize;

/// What the engine's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of failure, for callers that act on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error; see [`Error::io_error`].
    Io,
    /// The input is not a valid profile.
    Malformed,
    /// The input is in a format that is known and not read.
    OtherFormat,
    /// The input is larger than the limits that the caller set.
    Limit,
    /// The inputs are valid, but can't be compared or merged with each other.
    Incompatible,
    /// Counters went down between two snapshots: the process was restarted.
    Reset,
    /// None of a snapshot's sample types is known to count from the start of the process, so there is nothing to
    /// subtract.
    NotCumulative,
    /// The work was stopped from outside; see [`Work`](crate::Work).
    Interrupted,
    /// The request is invalid: an unknown sample type, an invalid regular expression, a factor of NaN.
    Query,
}

/// An error of the engine. Cheap to move; it costs an allocation only when something is wrong.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    input: Option<String>,
    record: Option<String>,
    offset: Option<u64>,
    detail: String,
    advice: Option<String>,
    io: Option<io::Error>,
}

impl Error {
    /// An error of a kind; `detail` says what is wrong and what to do, without the place.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        let (input, record, offset, advice, io) = (None, None, None, None, None);
        Error(Box::new(Inner { kind, input, record, offset, detail: detail.into(), advice, io }))
    }

    /// An invalid request.
    pub fn query(detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Query, detail)
    }

    /// An input that is not valid.
    pub fn malformed(detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, detail)
    }

    /// An error of the operating system.
    pub fn io(error: io::Error) -> Error {
        let mut e = Error::new(ErrorKind::Io, error.to_string());
        e.0.io = Some(error);
        e
    }

    /// Adds a command that helps; see [`Error::advice`].
    pub fn advise(mut self, command: String) -> Error {
        self.0.advice = Some(command);
        self
    }

    /// Puts words in front of the detail.
    pub fn prefixed(mut self, words: &str) -> Error {
        self.0.detail.insert_str(0, words);
        self
    }

    /// Redacts the secrets of a request from this error.
    #[must_use]
    pub fn without(mut self, secrets: &Secrets) -> Error {
        let redact = |text: &mut String| *text = secrets.redact(text).into_owned();
        let inner = &mut *self.0;
        [Some(&mut inner.detail), inner.input.as_mut(), inner.record.as_mut(), inner.advice.as_mut()]
            .into_iter()
            .flatten()
            .for_each(redact);
        if let Some(io) = inner.io.take() {
            let text = io.to_string();
            let shown = secrets.redact(&text);
            inner.io = Some(if shown == text { io } else { io::Error::new(io.kind(), shown.into_owned()) });
        }
        self
    }

    /// Names the file or other input, unless it is named already.
    pub fn in_input(mut self, name: &str) -> Error {
        self.0.input.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Names the record that was being read, unless it is named already.
    pub fn in_record(mut self, record: impl FnOnce() -> String) -> Error {
        self.0.record.get_or_insert_with(record);
        self
    }

    /// Adds the byte offset in the inflated data, unless there is one already.
    pub fn at(mut self, offset: usize) -> Error {
        self.0.offset.get_or_insert(offset as u64);
        self
    }

    /// As an error of a part of an input, whose place in it is not that in the whole: here is that, if it is known.
    pub(crate) fn of_part(mut self, part: Option<&str>, at: Option<usize>) -> Error {
        if let Some(part) = part {
            let record = self.0.record.take();
            self.0.record = Some(record.map_or_else(|| part.to_owned(), |record| format!("{part}, {record}")));
        }
        self.0.offset = at.map(|at| at as u64);
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file or other input that was being read.
    pub fn input(&self) -> Option<&str> {
        self.0.input.as_deref()
    }

    /// The record that was being read, such as `sample 17` (records count from 0).
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// Byte offset in the inflated data.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What is wrong, without the place.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// A command for a POSIX shell that helps, to be copied: names in it are quoted, so none of them is more than a
    /// name. `Display` leaves it out; show it where a person reads, and not in logs.
    pub fn advice(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }

    /// The operating system's error, if there was one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.io.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.0.input {
            write!(f, "{}: ", sanitize(input))?;
        }
        if let Some(record) = &self.0.record {
            write!(f, "{}: ", sanitize(record))?;
        }
        f.write_str(&sanitize(&self.0.detail))?;
        if let Some(offset) = self.0.offset {
            write!(f, " (at byte {offset} of the inflated data)")?;
        }
        Ok(())
    }
}

/// The line of `Display`: it is what a `main` that returns a [`Result`] prints, and what `unwrap` panics with.
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
    fn what_main_prints_is_one_line() {
        let error = Error::malformed("location 7 is not there").in_input("a\n.pb").in_record(|| "sample 3".to_owned());
        let printed = format!("{:?}", error.at(12).advise("rm -r".to_owned()));
        assert_eq!(printed, "a\u{fffd}.pb: sample 3: location 7 is not there (at byte 12 of the inflated data)");
    }
}
