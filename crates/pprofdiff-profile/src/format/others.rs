//! What people hand over that is no profile, or one in a format that is not read: known by its first bytes, to say what
//! it is and which maintained tool makes something of it that is read.

use super::is_text;
use crate::advice;
use crate::error::{Error, ErrorKind};

/// A kind of file that is not read.
struct Other {
    /// What it is, with its article.
    about: &'static str,
    /// What to do.
    way_out: &'static str,
    /// The command that does it, with `{}` for the file.
    command: Option<&'static str>,
    recognises: fn(&[u8]) -> bool,
}

/// Asked in this order of what no format recognises.
static OTHERS: &[Other] = &[
    Other {
        about: "perf.data of an old perf, or of a machine with the other order of bytes",
        way_out: "have perf write it as text, which is read",
        command: Some("perf script -i {} > profile.txt"),
        recognises: |head| head.starts_with(b"PERFFILE") || head.starts_with(b"2ELIFREP"),
    },
    Other {
        about: "an execution trace of Go",
        way_out: "take a profile out of it with go tool trace (sched, sync, syscall or net)",
        command: Some("go tool trace -pprof=sched {} > profile.pb.gz"),
        recognises: |head| {
            head.starts_with(b"go 1.") && head.get(..16).is_some_and(|h| h.windows(5).any(|w| w == b"trace"))
        },
    },
    Other {
        about: "the stacks of Go's goroutines in words (debug=2)",
        way_out: "ask for debug=0, which has names and labels, or debug=1",
        command: None,
        recognises: |head| is_text(head) && head.starts_with(b"goroutine ") && find(&head[..head.len().min(80)], b" ["),
    },
    Other {
        about: "a heap dump of Java, which has objects and no stacks",
        way_out: "record allocations instead, with async-profiler or the Flight Recorder",
        command: None,
        recognises: |head| head.starts_with(b"JAVA PROFILE 1.0."),
    },
    Other {
        about: "samples of Austin in its binary form",
        way_out: "convert it with mojo2austin of the package austin-python",
        command: Some("mojo2austin {} profile.austin"),
        recognises: |head| head.starts_with(b"MOJ"),
    },
    Other {
        about: "a profile of memray",
        way_out: "have memray write its table as CSV or JSON; it writes no stacks that are read here",
        command: None,
        recognises: |head| head.starts_with(b"memray\0"),
    },
    Other {
        about: "a profile of callgrind, which has calls and no stacks",
        way_out: "open it with KCachegrind",
        command: None,
        recognises: |head| {
            let begin = head.get(..head.len().min(400)).unwrap_or_default();
            head.starts_with(b"# callgrind format") || find(begin, b"creator: callgrind")
        },
    },
    Other {
        about: "a report of go tool pprof",
        way_out: "give the profile that it was made of",
        command: None,
        recognises: |head| {
            is_text(head) && (head.starts_with(b"File: ") || head.starts_with(b"Type: ")) && find(head, b"flat%")
        },
    },
    Other {
        about: "text in UTF-16",
        way_out: "save it as UTF-8",
        command: Some("iconv -f utf-16 -t utf-8 {} > profile.txt"),
        recognises: |head| head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff"),
    },
    Other {
        about: "packed twice",
        way_out: "unpack it once",
        command: Some("gzip -dc {} > profile"),
        recognises: |head| head.starts_with(b"\x1f\x8b\x08"),
    },
    Other {
        about: "a zip archive",
        way_out: "unpack it first",
        command: Some("unzip -p {} > profile"),
        recognises: |head| head.starts_with(b"PK\x03\x04"),
    },
    Other {
        about: "a tar archive",
        way_out: "unpack it first",
        command: Some("tar -xf {}"),
        recognises: |head| head.get(257..262) == Some(b"ustar"),
    },
    Other {
        about: "packed with xz",
        way_out: "unpack it first; gzip and zstd are read as they are",
        command: Some("xz -dc {} > profile"),
        recognises: |head| head.starts_with(b"\xfd7zXZ\0"),
    },
    Other {
        about: "packed with bzip2",
        way_out: "unpack it first; gzip and zstd are read as they are",
        command: Some("bzip2 -dc {} > profile"),
        recognises: |head| head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY"),
    },
    Other {
        about: "packed with lz4",
        way_out: "unpack it first; gzip and zstd are read as they are",
        command: Some("lz4 -dc {} > profile"),
        recognises: |head| head.starts_with(b"\x04\x22\x4d\x18"),
    },
    Other {
        about: "a program",
        way_out: "give the profile of it, and this with --binary if names are missing",
        command: None,
        recognises: |head| {
            head.starts_with(b"\x7fELF") || head.starts_with(b"MZ\x90\0") || head.starts_with(b"\xcf\xfa\xed\xfe")
        },
    },
    Other {
        about: "a picture",
        way_out: "give the profile that it was drawn from",
        command: None,
        recognises: |head| {
            head.starts_with(b"\x89PNG")
                || head.starts_with(b"\xff\xd8\xff")
                || head.starts_with(b"GIF8")
                || head.starts_with(b"%PDF-")
        },
    },
    Other {
        about: "an SVG picture",
        way_out: "give the profile that it was drawn from",
        command: None,
        recognises: |head| markup(head) && find(head, b"<svg"),
    },
    Other {
        about: "an HTML page",
        way_out: "if it came from a server, look at it: it may be an error, a login or a list of profiles",
        command: None,
        recognises: |head| markup(head) && (find_word(head, b"<html") || find_word(head, b"<!doctype html")),
    },
    Other {
        about: "XML",
        way_out: "give the profile that it was made of",
        command: None,
        recognises: |head| markup(head) && trimmed(head).starts_with(b"<?xml"),
    },
    Other {
        about: "a profile of the Firefox profiler in its binary form, JSLB",
        way_out: "have it written as JSON, which is read",
        command: None,
        recognises: |head| head.starts_with(b"\xdc\xdfJSLB"),
    },
    Other {
        about: "a trace of Chrome",
        way_out: "save a .cpuprofile from DevTools, or run node with --cpu-prof",
        command: None,
        recognises: |head| json(head) && find(head, b"\"traceEvents\""),
    },
    Other {
        about: "JSON that is not recognised",
        way_out: "of JSON, .cpuprofile, .heapprofile, OpenTelemetry profiles and files of speedscope and the Firefox profiler are read; if it comes from a server, look at \
                  it: it may be an error",
        command: None,
        recognises: json,
    },
];

/// True of what is known to be something else, though it may have lines that end in numbers.
pub(super) fn are(head: &[u8]) -> bool {
    OTHERS.iter().any(|other| (other.recognises)(head))
}

/// An error that says what an input is, if that is known.
pub(super) fn error(name: &str, head: &[u8]) -> Option<Error> {
    let other = OTHERS.iter().find(|other| (other.recognises)(head))?;
    let error = Error::new(ErrorKind::OtherFormat, format!("this is {}; {}", other.about, other.way_out));
    Some(match other.command {
        Some(command) => error.advise(command.replacen("{}", &advice::operand(name, "FILE"), 1)),
        None => error,
    })
}

fn trimmed(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

fn markup(head: &[u8]) -> bool {
    trimmed(head).starts_with(b"<") && is_text(head)
}

fn json(head: &[u8]) -> bool {
    let rest = trimmed(head);
    let follows = rest.get(1..).unwrap_or_default().trim_ascii_start().first();
    is_text(head)
        && match rest.first() {
            Some(b'{') => matches!(follows, Some(b'"' | b'}')),
            Some(b'[') => matches!(follows, Some(b'{' | b'[' | b'"' | b']' | b'-' | b'0'..=b'9')),
            _ => false,
        }
}

fn find(head: &[u8], words: &[u8]) -> bool {
    head.windows(words.len()).any(|w| w == words)
}

/// As `find`, in letters of any case.
fn find_word(head: &[u8], words: &[u8]) -> bool {
    head.windows(words.len()).any(|w| w.eq_ignore_ascii_case(words))
}
