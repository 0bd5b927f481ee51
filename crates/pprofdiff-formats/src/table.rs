//! The table of the formats that profiles come in, and the choice of a reader for an input.
//!
//! Each module recognises and reads one format or a few related formats. To add a format, add a row to `FORMATS`, and a
//! module if no existing module fits.
//!
//! Nearly all input is `profile.proto`, so the reader tries that format first, and other formats cost it nothing. The
//! other formats are tried only when the content is not a valid `profile.proto` message, or when the caller names a
//! format ([`LoadOptions::input_format`]). Their readers fill a [`ProfileBuilder`](pprofdiff_profile::builder::ProfileBuilder),
//! which validates the profile.
//!
//! Valid `profile.proto` content is never taken for another format, unless the caller names one. Other formats are
//! recognised by their first 64 KB.

use crate::{LoadOptions, unsupported};
use pprofdiff_profile::{Error, ErrorKind, Profile, Result};

/// A function that reads a profile from its name, the whole inflated content, and the options.
type ReadProfile = fn(&str, Vec<u8>, &LoadOptions) -> Result<Profile>;

/// A format that profiles come in.
#[derive(Debug)]
#[non_exhaustive]
pub struct InputFormat {
    /// The name that users type to choose this format.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// True if the format records when samples were taken, so that a time window can be read ([`LoadOptions::time`]).
    pub has_times: bool,
    /// True if recordings have named events that can begin or end a time window.
    pub has_events: bool,
    /// Returns true if content with this beginning seems to be in this format. The argument is the first [`HEAD`]
    /// bytes, or all of a shorter input. It is called in the order of the table, for content that is not valid
    /// `profile.proto`.
    pub(crate) recognises: fn(&[u8]) -> bool,
    pub(crate) read: ReadProfile,
}

/// The number of bytes that recognition looks at. They must hold several lines, and a line may be some KB long.
pub(crate) const HEAD: usize = 64 << 10;

/// All formats, in the order of recognition. Formats with weaker evidence come later.
pub(crate) static FORMATS: &[InputFormat] = &[
    InputFormat {
        name: "pprof",
        about: "profile.proto, as pprof writes it",
        has_times: false,
        has_events: false,
        // `read` below tries this format before all others.
        recognises: |_| false,
        read: |name, data, _| Profile::decode(name, data),
    },
    #[cfg(feature = "jfr")]
    crate::jfr::JFR,
    #[cfg(feature = "perf")]
    crate::perf_data::PERF_DATA,
    #[cfg(feature = "legacy")]
    crate::legacy::GPERFTOOLS_CPU,
    #[cfg(feature = "otlp")]
    crate::otlp::OTLP,
    #[cfg(feature = "otlp")]
    crate::otlp::OTLP_1_9,
    #[cfg(feature = "legacy")]
    crate::legacy::SYMBOLIZED,
    #[cfg(feature = "legacy")]
    crate::legacy::HEAP,
    #[cfg(feature = "legacy")]
    crate::legacy::GO_COUNT,
    #[cfg(feature = "legacy")]
    crate::legacy::THREADS,
    #[cfg(feature = "legacy")]
    crate::legacy::JAVA,
    #[cfg(feature = "legacy")]
    crate::legacy::CONTENTION,
    #[cfg(feature = "goroutines")]
    crate::goroutines::GOROUTINES,
    #[cfg(feature = "chrome")]
    crate::chrome::CPU,
    #[cfg(feature = "chrome")]
    crate::chrome::HEAP,
    #[cfg(feature = "speedscope")]
    crate::speedscope::SPEEDSCOPE,
    #[cfg(feature = "firefox")]
    crate::firefox::FIREFOX,
    #[cfg(feature = "perf")]
    crate::perf_script::PERF_SCRIPT,
    #[cfg(feature = "callgrind")]
    crate::callgrind::CALLGRIND,
    #[cfg(feature = "pstats")]
    crate::pstats::PSTATS,
    #[cfg(feature = "jemalloc")]
    crate::jemalloc::JEMALLOC,
    #[cfg(feature = "folded")]
    crate::dialects::AUSTIN,
    #[cfg(feature = "folded")]
    crate::dialects::CPYTHON,
    #[cfg(feature = "folded")]
    crate::dialects::PY_SPY,
    #[cfg(feature = "folded")]
    crate::dialects::PERF_FOLDED,
    #[cfg(feature = "folded")]
    crate::folded::FOLDED2,
    #[cfg(feature = "folded")]
    crate::folded::FOLDED,
];

impl InputFormat {
    /// Returns all formats.
    pub fn all() -> impl Iterator<Item = &'static InputFormat> {
        FORMATS.iter()
    }

    /// Returns the format called `name`.
    ///
    /// # Errors
    /// The name is unknown; the error lists all formats.
    pub fn named(name: &str) -> Result<&'static InputFormat> {
        InputFormat::all().find(|f| f.name == name).ok_or_else(|| {
            Error::query(format!("unknown input format {name:?}; the formats are {}", InputFormat::names(|_| true)))
        })
    }

    pub(crate) fn read(&self, name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
        match &options.time {
            Some(_) if !self.has_times => Err(self.without_times()),
            Some(window) if window.names_event() && !self.has_events => Err(self.without_events()),
            _ => (self.read)(name, data, options),
        }
    }

    fn without_times(&self) -> Error {
        Error::query(format!(
            "cannot select a time window: {} does not record when each sample was taken; these formats do: {}",
            self.name,
            InputFormat::names(|format| format.has_times)
        ))
    }

    fn without_events(&self) -> Error {
        Error::query(format!(
            "cannot select an event: {} has no named events; these formats have them: {}",
            self.name,
            InputFormat::names(|format| format.has_events)
        ))
    }

    fn names(is_wanted: impl Fn(&InputFormat) -> bool) -> String {
        InputFormat::all().filter(|format| is_wanted(format)).map(|format| format.name).collect::<Vec<_>>().join(", ")
    }
}

/// Reads inflated content in the format that the options name, or else as `profile.proto`, or else in the first format
/// that recognises it.
///
/// # Errors
/// No format recognises the content, the format cannot select the time window of the options, or its reader fails.
pub(crate) fn read(name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    if let Some(format) = options.input_format {
        return format.read(name, data, options);
    }
    let decoded = Profile::try_decode(name, data).and_then(|profile| match options.time {
        Some(_) => Err((FORMATS[0].without_times(), Vec::new())),
        None => Ok(profile),
    });
    decoded.or_else(|(error, data)| {
        if error.kind() != ErrorKind::Malformed {
            return Err(error);
        }
        let head = &data[..data.len().min(HEAD)];
        match FORMATS.iter().find(|f| (f.recognises)(head)) {
            Some(format) => format.read(name, data, options),
            None => Err(unsupported::error(name, head)
                .unwrap_or_else(|| if is_text(head) { unknown_text(head) } else { error })),
        }
    })
}

/// Returns true if the bytes contain no control characters except white space. Protobuf messages contain them: tags,
/// lengths and small numbers.
pub(crate) fn is_text(head: &[u8]) -> bool {
    head.iter().all(|&b| (b >= b' ' && b != 0x7f) || b.is_ascii_whitespace())
}

fn unknown_text(head: &[u8]) -> Error {
    let words = quoted(unsupported::first_words(head));
    // A single line is probably an error message, such as a server's reply.
    if head.trim_ascii().iter().filter(|&&b| b == b'\n').count() == 0 {
        return Error::malformed(format!("this is not a profile: it says {words}"));
    }
    let formats: Vec<&str> = InputFormat::all().map(|f| f.name).collect();
    Error::malformed(format!(
        "this is not a profile: it is text in no known format that begins {words}; if its format is one of these, choose \
         it with --input-format: {}",
        formats.join(", ")
    ))
}

/// Quotes text for an error message, up to 80 bytes.
pub(crate) fn quoted(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
    if text.len() > 80 { format!("{shown:?}...") } else { format!("{shown:?}") }
}

#[cfg(all(test, feature = "all"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn load(bytes: &[u8]) -> Result<Profile> {
        crate::from_bytes("in", bytes, &LoadOptions::default())
    }

    #[test]
    fn format_names_are_unique_and_readable() {
        for (i, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..i].iter().all(|f| f.name != format.name), "{} twice", format.name);
            assert!(InputFormat::named(format.name).is_ok());
        }
        let error = InputFormat::named("xml").unwrap_err().to_string();
        assert!(error.contains("\"xml\"") && error.contains("pprof, "), "{error}");
    }

    #[test]
    fn text_is_distinguished_from_damaged_messages() {
        let error = |bytes: &[u8]| load(bytes).unwrap_err().to_string();
        for text in ["root:x:0:0:root:/root:/bin/bash\nbin:x\n", "naïve\n\nx"] {
            assert!(
                error(text.as_bytes()).contains("it is text") && error(text.as_bytes()).contains(", folded2,"),
                "{text}"
            );
        }
        // A message of one line is quoted, with characters that could harm a terminal escaped.
        let long = "x".repeat(500);
        for (text, shown) in [
            ("404 page not found\n", "it says \"404 page not found\""),
            ("\n naïve\u{202e} ", "it says \"naïve\\u{202e}\""),
            (&long, &format!("it says \"{}\"...", "x".repeat(80))),
        ] {
            assert!(error(text.as_bytes()).ends_with(shown), "{}", error(text.as_bytes()));
        }
        for message in [&b"\x0a\x04\x08\x01\x10"[..], b"\x32\x00\x32", b"\xff\xff\x01"] {
            assert!(!error(message).contains("it is text"), "{}", error(message));
        }
    }

    #[test]
    fn a_named_format_overrides_recognition() {
        let options = LoadOptions::default().with_input_format("pprof").unwrap();
        let heap = b"heap profile: 1: 2 [3: 4] @ heap_v2/1\n";
        let error = crate::from_bytes("in", heap, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        assert_eq!(load(heap).unwrap().sample_types().len(), 4);
    }
}
