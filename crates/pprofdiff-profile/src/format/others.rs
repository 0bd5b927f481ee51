//! What people hand over that is no profile, or one in a format that is not read: known by its first bytes, to say what
//! it is and which maintained tool makes something of it that is read.

use super::{is_text, quoted};
use crate::advice;
use crate::error::{Error, ErrorKind};

/// A kind of file that is not read.
struct Other {
    /// What it is, with its article.
    about: &'static str,
    /// What to do, with `{}` for the text's first words where these say more.
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
        about: "a profile of cProfile, which has calls and no stacks",
        way_out: "record stacks instead: py-spy record --format raw -o profile.txt -- python PROGRAM, or from Python 3.15 on \
                  python -m profiling.sampling run --collapsed -o profile.txt PROGRAM",
        command: None,
        recognises: is_marshalled_by_python,
    },
    Other {
        about: "samples of CPython's profiling.sampling in its binary form",
        way_out: "have it written as collapsed stacks, which are read",
        command: Some("python -m profiling.sampling replay --collapsed -o profile.txt {}"),
        // The letters TACH as a number of 32 bits, in the order of bytes of the machine.
        recognises: |head| head.starts_with(b"HCAT") || head.starts_with(b"TACH\0"),
    },
    Other {
        about: "a dump of stackprof",
        way_out: "have it written as folded stacks; it has them if it was recorded with raw: true",
        command: Some("stackprof --stackcollapse {} > profile.txt"),
        recognises: |head| head.starts_with(b"\x04\x08{") && find(head, b"gc_samples"),
    },
    Other {
        about: "stackprof's report as JSON",
        way_out: "give stackprof the dump that it was made of: stackprof --stackcollapse DUMP > profile.txt",
        command: None,
        recognises: |head| json(head) && find(head, b"\"gc_samples\"") && find(head, b"\"missed_samples\""),
    },
    Other {
        about: "a trace of .NET",
        way_out: "convert it to speedscope's format, which is read",
        command: Some("dotnet-trace convert {} --format Speedscope"),
        recognises: |head| head.starts_with(b"Nettrace"),
    },
    Other {
        about: "a report of simpleperf",
        way_out: "give simpleperf's own converter the recording: pprof_proto_generator.py -i perf.data -o profile.pb",
        command: None,
        recognises: |head| {
            let is_text_of_it = is_text(head) && head.starts_with(b"Cmdline: ") && find(head, b"\nEvent count: ");
            head.starts_with(b"SIMPLEPERF") || is_text_of_it
        },
    },
    Other {
        about: "a recording of heaptrack",
        way_out: "have it written as folded stacks (read them with --input-type space/bytes)",
        command: Some("heaptrack_print --flamegraph-cost-type peak -F profile.txt {}"),
        recognises: |head| is_text(head) && head.starts_with(b"v 1") && find(head, b"\nX ") && find(head, b"\nI "),
    },
    Other {
        about: "a trace of Perfetto",
        way_out: "take its profiles out with traceconv: heap profiles, or with --perf samples of CPUs",
        command: Some("traceconv profile {}"),
        // Tracing services write this between packets.
        recognises: |head| find(head, b"\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79"),
    },
    Other {
        about: "a profile of Xdebug, which has calls and no stacks",
        way_out: "record folded stacks instead: xdebug.mode=trace and xdebug.trace_format=3",
        command: None,
        recognises: |head| is_text(head) && find(&head[..head.len().min(400)], b"creator: xdebug"),
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
        way_out: "it says {}; if it came from a server, it may be an error, a login or a list of profiles",
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
        about: "a trace of Chrome or in its format",
        way_out: "open it in https://www.speedscope.app and export it, which is read; of Node, record with --cpu-prof instead",
        command: None,
        recognises: |head| {
            let is_list = trimmed(head).starts_with(b"[") && find(head, b"\"ph\"") && find(head, b"\"ts\"");
            json(head) && (is_list || find(head, b"\"traceEvents\""))
        },
    },
    Other {
        about: "JSON that is not recognised",
        way_out: "it begins {}; of JSON, .cpuprofile, .heapprofile, OpenTelemetry profiles and files of speedscope and the Firefox \
                  profiler are read; if it comes from a server, it may be an error",
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
    let way_out = other.way_out.replacen("{}", &quoted(first_words(head)), 1);
    let error = Error::new(ErrorKind::OtherFormat, format!("this is {}; {way_out}", other.about));
    Some(match other.command {
        Some(command) => error.advise(command.replacen("{}", &advice::operand(name, "FILE"), 1)),
        None => error,
    })
}

/// Returns the title of a page, or else the first line of a text that is not blank.
pub(super) fn first_words(head: &[u8]) -> &[u8] {
    const TITLE: [&[u8]; 2] = [b"<title>", b"</title>"];
    let place = |text: &[u8], word: &[u8]| text.windows(word.len()).position(|w| w.eq_ignore_ascii_case(word));
    let title = place(head, TITLE[0]).map(|at| &head[at + TITLE[0].len()..]);
    let title = title.and_then(|rest| place(rest, TITLE[1]).map(|end| rest[..end].trim_ascii()));
    let line = || trimmed(head).split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
    title.filter(|title| !title.is_empty() && markup(head)).unwrap_or_else(line)
}

/// Returns true for a dictionary of Python whose first key is a tuple of three, as cProfile writes it: file, line and
/// function. The highest bit of each mark says that the object is used again.
fn is_marshalled_by_python(head: &[u8]) -> bool {
    let mark = |at: usize| head.get(at).map(|&b| b & 0x7f);
    let is_triple = match mark(1) {
        Some(b')') => head.get(2) == Some(&3),
        Some(b'(') => head.get(2..6) == Some(&[3, 0, 0, 0]),
        _ => false,
    };
    mark(0) == Some(b'{') && is_triple
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
