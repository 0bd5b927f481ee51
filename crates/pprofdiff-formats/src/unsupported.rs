//! Files that are not profiles, or profiles in a format that is not supported. They are recognised by their first
//! bytes. The error names the kind of file, and the maintained tool that converts it to a supported format.

use crate::table::{is_text, quoted};
use pprofdiff_profile::advice;
use pprofdiff_profile::{Error, ErrorKind};

/// A kind of file that is not supported.
struct UnsupportedFile {
    /// The kind of file. It completes the sentence "this is ...".
    about: &'static str,
    /// The remedy. `{}` stands for the first words of the text, if they are informative.
    remedy: &'static str,
    /// The command of the remedy, with `{}` for the file, or `None` if no single command does it.
    command: Option<&'static str>,
    recognises: fn(&[u8]) -> bool,
}

/// All kinds, in the order of recognition. They are tried only for files that no input format recognises.
static UNSUPPORTED: &[UnsupportedFile] = &[
    UnsupportedFile {
        about: "perf.data of an old perf, or of a machine with the other byte order",
        remedy: "have perf write it as text",
        command: Some("perf script -i {} > profile.txt"),
        recognises: |head| head.starts_with(b"PERFFILE") || head.starts_with(b"2ELIFREP"),
    },
    UnsupportedFile {
        about: "an execution trace of Go",
        remedy: "take a profile out of it with go tool trace (sched, sync, syscall or net)",
        command: Some("go tool trace -pprof=sched {} > profile.pb.gz"),
        recognises: |head| {
            head.starts_with(b"go 1.") && head.get(..16).is_some_and(|h| h.windows(5).any(|w| w == b"trace"))
        },
    },
    UnsupportedFile {
        about: "a heap dump of Java, which has objects and no stacks",
        remedy: "record allocations instead, with async-profiler or the Flight Recorder",
        command: None,
        recognises: |head| head.starts_with(b"JAVA PROFILE 1.0."),
    },
    UnsupportedFile {
        about: "samples of Austin in its binary form",
        remedy: "convert it with mojo2austin of the package austin-python",
        command: Some("mojo2austin {} profile.austin"),
        recognises: |head| head.starts_with(b"MOJ"),
    },
    UnsupportedFile {
        about: "a profile of memray",
        remedy: "have memray write its table as CSV or JSON; it cannot write stacks in a supported format",
        command: None,
        recognises: |head| head.starts_with(b"memray\0"),
    },
    UnsupportedFile {
        about: "samples of CPython's profiling.sampling in its binary form",
        remedy: "have it written as collapsed stacks",
        command: Some("python -m profiling.sampling replay --collapsed -o profile.txt {}"),
        // The letters TACH as a 32-bit number, in the byte order of the machine.
        recognises: |head| head.starts_with(b"HCAT") || head.starts_with(b"TACH\0"),
    },
    UnsupportedFile {
        about: "a dump of stackprof",
        remedy: "have it written as folded stacks; it has them if it was recorded with raw: true",
        command: Some("stackprof --stackcollapse {} > profile.txt"),
        recognises: |head| head.starts_with(b"\x04\x08{") && find(head, b"gc_samples"),
    },
    UnsupportedFile {
        about: "stackprof's report as JSON",
        remedy: "convert the dump that it was made from: stackprof --stackcollapse DUMP > profile.txt",
        command: None,
        recognises: |head| is_json(head) && find(head, b"\"gc_samples\"") && find(head, b"\"missed_samples\""),
    },
    UnsupportedFile {
        about: "a trace of .NET",
        remedy: "convert it to speedscope's format",
        command: Some("dotnet-trace convert {} --format Speedscope"),
        recognises: |head| head.starts_with(b"Nettrace"),
    },
    UnsupportedFile {
        about: "a report of simpleperf",
        remedy: "convert the recording with simpleperf's own converter: pprof_proto_generator.py -i perf.data -o profile.pb",
        command: None,
        recognises: |head| {
            let is_text_of_it = is_text(head) && head.starts_with(b"Cmdline: ") && find(head, b"\nEvent count: ");
            head.starts_with(b"SIMPLEPERF") || is_text_of_it
        },
    },
    UnsupportedFile {
        about: "a recording of heaptrack",
        remedy: "have it written as folded stacks (read them with --input-type space/bytes)",
        command: Some("heaptrack_print --flamegraph-cost-type peak -F profile.txt {}"),
        recognises: |head| is_text(head) && head.starts_with(b"v 1") && find(head, b"\nX ") && find(head, b"\nI "),
    },
    UnsupportedFile {
        about: "a trace of Perfetto",
        remedy: "take its profiles out with traceconv: heap profiles, or with --perf samples of CPUs",
        command: Some("traceconv profile {}"),
        // Tracing services write this mark between packets.
        recognises: |head| find(head, b"\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79"),
    },
    UnsupportedFile {
        about: "a report of go tool pprof",
        remedy: "pass the profile that it was made from",
        command: None,
        recognises: |head| {
            is_text(head) && (head.starts_with(b"File: ") || head.starts_with(b"Type: ")) && find(head, b"flat%")
        },
    },
    UnsupportedFile {
        about: "text in UTF-16",
        remedy: "save it as UTF-8",
        command: Some("iconv -f utf-16 -t utf-8 {} > profile.txt"),
        recognises: |head| head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff"),
    },
    UnsupportedFile {
        about: "compressed twice",
        remedy: "decompress it once",
        command: Some("gzip -dc {} > profile"),
        recognises: |head| head.starts_with(b"\x1f\x8b\x08"),
    },
    UnsupportedFile {
        about: "a zip archive",
        remedy: "unpack it first",
        command: Some("unzip -p {} > profile"),
        recognises: |head| head.starts_with(b"PK\x03\x04"),
    },
    UnsupportedFile {
        about: "a tar archive",
        remedy: "unpack it first",
        command: Some("tar -xf {}"),
        recognises: |head| head.get(257..262) == Some(b"ustar"),
    },
    UnsupportedFile {
        about: "compressed with xz",
        remedy: "decompress it first; gzip and zstd are read directly",
        command: Some("xz -dc {} > profile"),
        recognises: |head| head.starts_with(b"\xfd7zXZ\0"),
    },
    UnsupportedFile {
        about: "compressed with bzip2",
        remedy: "decompress it first; gzip and zstd are read directly",
        command: Some("bzip2 -dc {} > profile"),
        recognises: |head| head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY"),
    },
    UnsupportedFile {
        about: "compressed with lz4",
        remedy: "decompress it first; gzip and zstd are read directly",
        command: Some("lz4 -dc {} > profile"),
        recognises: |head| head.starts_with(b"\x04\x22\x4d\x18"),
    },
    UnsupportedFile {
        about: "a program",
        remedy: "pass a profile of it, and the program itself with --binary if names are missing",
        command: None,
        recognises: |head| {
            head.starts_with(b"\x7fELF") || head.starts_with(b"MZ\x90\0") || head.starts_with(b"\xcf\xfa\xed\xfe")
        },
    },
    UnsupportedFile {
        about: "a picture",
        remedy: "pass the profile that it was drawn from",
        command: None,
        recognises: |head| {
            head.starts_with(b"\x89PNG")
                || head.starts_with(b"\xff\xd8\xff")
                || head.starts_with(b"GIF8")
                || head.starts_with(b"%PDF-")
        },
    },
    UnsupportedFile {
        about: "an SVG picture",
        remedy: "pass the profile that it was drawn from",
        command: None,
        recognises: |head| is_markup(head) && find(head, b"<svg"),
    },
    UnsupportedFile {
        about: "an HTML page",
        remedy: "it says {}; if it came from a server, it may be an error, a login or a list of profiles",
        command: None,
        recognises: |head| is_markup(head) && (find_word(head, b"<html") || find_word(head, b"<!doctype html")),
    },
    UnsupportedFile {
        about: "XML",
        remedy: "pass the profile that it was made from",
        command: None,
        recognises: |head| is_markup(head) && trimmed(head).starts_with(b"<?xml"),
    },
    UnsupportedFile {
        about: "a profile of the Firefox profiler in its binary form, JSLB",
        remedy: "have it written as JSON",
        command: None,
        recognises: |head| head.starts_with(b"\xdc\xdfJSLB"),
    },
    UnsupportedFile {
        about: "a trace of Chrome or in its format",
        remedy: "open it in https://www.speedscope.app and export it; for Node, record with --cpu-prof instead",
        command: None,
        recognises: |head| {
            let is_list = trimmed(head).starts_with(b"[") && find(head, b"\"ph\"") && find(head, b"\"ts\"");
            is_json(head) && (is_list || find(head, b"\"traceEvents\""))
        },
    },
    UnsupportedFile {
        about: "JSON that is not recognised",
        remedy: "it begins {}; the supported kinds of JSON are .cpuprofile, .heapprofile, OpenTelemetry profiles and files \
                 of speedscope and the Firefox profiler; if it comes from a server, it may be an error",
        command: None,
        recognises: is_json,
    },
];

/// Returns true for a known kind of file that is not supported. Such files may have lines that end in numbers, like
/// folded stacks.
pub(crate) fn recognises(head: &[u8]) -> bool {
    UNSUPPORTED.iter().any(|other| (other.recognises)(head))
}

/// Returns the error for a known kind of file that is not supported, or `None` for any other content.
pub(crate) fn error(name: &str, head: &[u8]) -> Option<Error> {
    let other = UNSUPPORTED.iter().find(|other| (other.recognises)(head))?;
    let remedy = other.remedy.replacen("{}", &quoted(first_words(head)), 1);
    let error = Error::new(ErrorKind::OtherFormat, format!("this is {}; {remedy}", other.about));
    Some(match other.command {
        Some(command) => error.advise(command.replacen("{}", &advice::operand(name, "FILE"), 1)),
        None => error,
    })
}

/// Returns the title of a page in HTML or XML, if it has one, or else the first line of a text that is not blank.
pub(crate) fn first_words(head: &[u8]) -> &[u8] {
    const TITLE: [&[u8]; 2] = [b"<title>", b"</title>"];
    let place = |text: &[u8], word: &[u8]| text.windows(word.len()).position(|w| w.eq_ignore_ascii_case(word));
    let title = place(head, TITLE[0]).map(|start| &head[start + TITLE[0].len()..]);
    let title = title.and_then(|rest| place(rest, TITLE[1]).map(|end| rest[..end].trim_ascii()));
    let line = || trimmed(head).split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
    title.filter(|title| !title.is_empty() && is_markup(head)).unwrap_or_else(line)
}

fn trimmed(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

fn is_markup(head: &[u8]) -> bool {
    trimmed(head).starts_with(b"<") && is_text(head)
}

fn is_json(head: &[u8]) -> bool {
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

/// Like `find`, but ignores case.
fn find_word(head: &[u8], words: &[u8]) -> bool {
    head.windows(words.len()).any(|w| w.eq_ignore_ascii_case(words))
}
