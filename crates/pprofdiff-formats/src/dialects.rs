//! Folded stacks in the dialects of certain profilers: frames contain more than a name, and some stand for a thread.
//!
//! ```text
//! process 21:"python t.py";thread (22): worker;<module> (t.py:10);work (t.py:8) 6        py-spy
//! P21;T0:22;/src/t.py:<module>:10;/src/t.py:work:8 20084                                 Austin
//! tid:22;t.py:<module>:10;t.py:work:8 6                                                  CPython
//! comm-21/22;start_thread_[k];main;work_[j] 6                                            perf
//! ```
//!
//! Frames become functions with file and line. Processes and threads become the labels `process`, `pid`, `thread` and
//! `tid` (and `comm` for perf) instead of frames. Sources: the output of py-spy 0.4, Austin 3.7, FlameGraph's
//! stackcollapse-perf.pl, and CPython's `profiling.sampling`.

use crate::folded::{self, AddedLine, add_lines, split_number, value};
use crate::folded_header::FoldedHeader;
use crate::kit::lines::lines;
use crate::table::{InputFormat, is_text, quoted};
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::{LocationId, MappingId, ProfileBuilder};
use pprofdiff_profile::columns::{Mapping, StringId};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Result};

pub(crate) const PY_SPY: InputFormat = InputFormat {
    name: "py-spy",
    about: "folded stacks of py-spy: name (file:line)",
    has_times: false,
    has_events: false,
    recognises: |head| {
        mostly(head, |stack| stack.rsplit(|&b| b == b';').next().is_some_and(|leaf| parse_parens(leaf).line > 0))
    },
    read: |name, text, options| {
        let (kind, unit) = &options.input_type;
        read(
            name,
            &text,
            &[(kind, unit)],
            &Dialect { labels: py_spy_labels, frame: parse_parens, values: single_value },
        )
    },
};

pub(crate) const AUSTIN: InputFormat = InputFormat {
    name: "austin",
    about: "samples of Austin: P1;T2;file:function:line",
    has_times: false,
    has_events: false,
    recognises: |head| {
        is_text(head)
            && (head.starts_with(b"# austin:")
                || mostly(head, |stack| {
                    let mut frames = stack.split(|&b| b == b';');
                    frames.next().is_some_and(|f| austin_labels(f).len() == 1)
                        && frames.next().is_some_and(|f| austin_labels(f).len() == 1)
                }))
    },
    read: |name, text, _| {
        const TIME: [(&str, &str); 2] = [("cpu", "microseconds"), ("wall", "microseconds")];
        const MEMORY: [(&str, &str); 2] = [("alloc_space", "bytes"), ("dealloc_space", "bytes")];
        let (types, values): (&[_], _) = match austin_mode(&text) {
            Some(b"cpu") => (&TIME[..1], single_value as ParseValues),
            Some(b"memory") => (&MEMORY, memory_values as ParseValues),
            Some(b"full") => (&[TIME[0], TIME[1], MEMORY[0], MEMORY[1]], full_values as ParseValues),
            _ => (&TIME[1..], single_value as ParseValues),
        };
        read(name, &text, types, &Dialect { labels: austin_labels, frame: parse_colons, values })
    },
};

pub(crate) const CPYTHON: InputFormat = InputFormat {
    name: "cpython",
    about: "folded stacks of CPython's profiling.sampling: tid:1;file:function:line",
    has_times: false,
    has_events: false,
    recognises: |head| {
        mostly(head, |stack| !cpython_labels(stack.split(|&b| b == b';').next().unwrap_or_default()).is_empty())
    },
    read: |name, text, options| {
        let (kind, unit) = &options.input_type;
        read(
            name,
            &text,
            &[(kind, unit)],
            &Dialect { labels: cpython_labels, frame: parse_colons, values: single_value },
        )
    },
};

pub(crate) const PERF_FOLDED: InputFormat = InputFormat {
    name: "perf-folded",
    about: "folded stacks of perf's scripts: comm-1/2;name_[k]",
    has_times: false,
    has_events: false,
    recognises: |head| {
        mostly(head, |stack| !perf_labels(stack.split(|&b| b == b';').next().unwrap_or_default()).is_empty())
    },
    read: |name, text, options| {
        let (kind, unit) = &options.input_type;
        read(
            name,
            &text,
            &[(kind, unit)],
            &Dialect { labels: perf_labels, frame: parse_annotated, values: single_value },
        )
    },
};

/// The parsers for the lines of a tool.
struct Dialect {
    /// Returns the labels for a frame at the root. Returns no labels for an ordinary frame.
    labels: fn(&[u8]) -> RootLabels<'_>,
    /// Parses any other frame.
    frame: fn(&[u8]) -> DialectFrame<'_>,
    values: ParseValues,
}

/// Labels as pairs of key and text.
type RootLabels<'t> = Vec<(&'static str, &'t [u8])>;

/// A function that returns the values of a line from its last word, or `None` if the word is not a value. A value that
/// does not fit in an int64 is an error.
type ParseValues = fn(&[u8]) -> Option<Result<Vec<i64>>>;

/// The parts of a frame.
#[derive(Debug, PartialEq, Eq, Default)]
struct DialectFrame<'t> {
    name: &'t [u8],
    file: &'t [u8],
    line: i64,
    /// The name of the mapping, or empty if the frame does not have it.
    binary: &'static str,
}

fn single_value(word: &[u8]) -> Option<Result<Vec<i64>>> {
    split_number(&[b" ", word].concat()).map(|_| value(word).map(|v| vec![v]))
}

/// Parses a signed number of bytes into bytes allocated and bytes freed.
fn memory_values(word: &[u8]) -> Option<Result<Vec<i64>>> {
    single_value(word).map(|v| v.and_then(|v| allocated_and_freed(v[0], word)))
}

fn allocated_and_freed(bytes: i64, word: &[u8]) -> Result<Vec<i64>> {
    let freed = bytes.checked_neg().ok_or_else(|| Error::malformed(format!("{} is too small", quoted(word))))?;
    Ok(vec![bytes.max(0), freed.max(0)])
}

/// Parses time, whether the thread was idle, and bytes: `2185,0,65536`.
fn full_values(word: &[u8]) -> Option<Result<Vec<i64>>> {
    let parts: Vec<&[u8]> = word.split(|&b| b == b',').collect();
    let [time, idle, bytes] = parts[..] else { return None };
    let (time, bytes) = (single_value(time)?, single_value(bytes)?);
    let is_idle = match idle {
        b"0" => false,
        b"1" => true,
        _ => return None,
    };
    Some(time.and_then(|time| {
        let memory = allocated_and_freed(bytes?[0], word)?;
        Ok(vec![if is_idle { 0 } else { time[0] }, time[0], memory[0], memory[1]])
    }))
}

/// Returns Austin's mode from the comments at the beginning: wall, cpu, memory or full. It determines the meaning of
/// the values. Returns `None` if no comment has the mode; the values are then wall time.
fn austin_mode(text: &[u8]) -> Option<&[u8]> {
    let comments = lines(text).map(|(_, line)| line).take_while(|line| line.is_empty() || line.starts_with(b"#"));
    comments.into_iter().find_map(|line| line.strip_prefix(b"# mode: "))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn split_last(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let i = text.iter().rposition(|&b| b == separator)?;
    Some((&text[..i], &text[i + 1..]))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok().filter(|t| is_number(t.as_bytes()))?.parse().ok()
}

/// Parses `name (file:line)`, and `name (file)`. Any other frame is a name alone.
fn parse_parens(frame: &[u8]) -> DialectFrame<'_> {
    let whole = DialectFrame { name: frame, ..DialectFrame::default() };
    let Some(inner) = frame.strip_suffix(b")") else { return whole };
    let Some(open) = inner.windows(2).rposition(|w| w == b" (") else { return whole };
    let (name, place) = (&inner[..open], &inner[open + 2..]);
    match split_last(place, b':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some((file, line)) => DialectFrame { name, file, line, ..whole },
        // The arguments of a C++ function look similar, so the file must contain a dot and no comma.
        None if place.contains(&b'.') && !place.contains(&b',') => DialectFrame { name, file: place, ..whole },
        None => whole,
    }
}

/// Parses `file:function:line`. Any other frame is a name alone.
fn parse_colons(frame: &[u8]) -> DialectFrame<'_> {
    let parts = split_last(frame, b':').and_then(|(rest, line)| Some((split_last(rest, b':')?, number(line)?)));
    match parts {
        Some(((file, name), line)) if !name.is_empty() => DialectFrame { name, file, line, ..DialectFrame::default() },
        // Not a function, such as `:GC:`.
        _ => DialectFrame { name: frame, ..DialectFrame::default() },
    }
}

/// Parses `name_[k]`, which marks kernel code. `[j]` marks code compiled at run time, `[i]` inlined code, and `[0]` and
/// `[1]` code that is interpreted or compiled by the first compiler. The mark is removed from the name; kernel code and
/// code compiled at run time get the mappings `[kernel]` and `[jit]`.
fn parse_annotated(frame: &[u8]) -> DialectFrame<'_> {
    let Some((name, mark)) = frame.len().checked_sub(4).map(|mark_start| frame.split_at(mark_start)) else {
        return DialectFrame { name: frame, ..DialectFrame::default() };
    };
    match mark {
        b"_[k]" => DialectFrame { name, binary: "[kernel]", ..DialectFrame::default() },
        b"_[j]" => DialectFrame { name, binary: "[jit]", ..DialectFrame::default() },
        b"_[i]" | b"_[0]" | b"_[1]" => DialectFrame { name, ..DialectFrame::default() },
        _ => DialectFrame { name: frame, ..DialectFrame::default() },
    }
}

/// Parses `process 21:"python t.py"`, `thread (22)` and `thread (22): name`.
fn py_spy_labels(frame: &[u8]) -> RootLabels<'_> {
    if let Some(rest) = frame.strip_prefix(b"process ")
        && let Some(colon) = rest.iter().position(|&b| b == b':')
        && is_number(&rest[..colon])
    {
        let command =
            rest[colon + 1..].strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")).unwrap_or(&rest[colon + 1..]);
        return vec![("pid", &rest[..colon]), ("process", command)];
    }
    let Some(rest) = frame.strip_prefix(b"thread (") else { return Vec::new() };
    let Some(close) = rest.iter().position(|&b| b == b')') else { return Vec::new() };
    match (&rest[..close], &rest[close + 1..]) {
        (tid, b"") => vec![("tid", tid)],
        (tid, name) if name.starts_with(b": ") => vec![("tid", tid), ("thread", &name[2..])],
        _ => Vec::new(),
    }
}

/// Parses `P21`, a process, and `T0:22`, an interpreter and a thread.
fn austin_labels(frame: &[u8]) -> RootLabels<'_> {
    let is_id = |text: &[u8]| !text.is_empty() && text.iter().all(|b| b.is_ascii_hexdigit() || *b == b'x');
    match frame {
        [b'P', pid @ ..] if is_number(pid) => vec![("pid", pid)],
        [b'T', id @ ..] => match split_last(id, b':') {
            Some((interpreter, tid)) if is_number(interpreter) && is_id(tid) => vec![("tid", tid)],
            None if is_id(id) => vec![("tid", id)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn cpython_labels(frame: &[u8]) -> RootLabels<'_> {
    frame.strip_prefix(b"tid:").filter(|tid| is_number(tid)).map_or(Vec::new(), |tid| vec![("tid", tid)])
}

/// Parses `comm-21/22`, which `--tid` adds. The form that `--pid` adds cannot be distinguished from a name, so it
/// remains a frame.
fn perf_labels(frame: &[u8]) -> RootLabels<'_> {
    let parts = split_last(frame, b'/').and_then(|(rest, tid)| Some((split_last(rest, b'-')?, tid)));
    match parts {
        Some(((comm, pid), tid)) if !comm.is_empty() && is_number(tid) && (is_number(pid) || pid == b"?") => {
            vec![("comm", comm), ("pid", pid), ("tid", tid)]
        }
        _ => Vec::new(),
    }
}

/// Returns true if most lines have stacks of this tool, and the text does not begin with our own header.
fn mostly(head: &[u8], is_tool_stack: fn(&[u8]) -> bool) -> bool {
    let fits = |line: &[u8]| match split_last(line, b' ') {
        Some((stack, word)) if !line.starts_with(b"#") => {
            single_value(word).or_else(|| full_values(word)).is_some() && is_tool_stack(stack)
        }
        _ => false,
    };
    is_text(head) && FoldedHeader::find(head).is_none() && folded::most_lines_fit(head, fits)
}

fn read(name: &str, text: &[u8], types: &[(&str, &str)], dialect: &Dialect) -> Result<Profile> {
    let mut stacks = DialectStacks { builder: ProfileBuilder::new(), ..DialectStacks::default() };
    types.iter().for_each(|(kind, unit)| stacks.builder.sample_type(kind, unit));
    // The first type is the default if there are several.
    if let [(first, _), _, ..] = types {
        let first = stacks.builder.string(first);
        stacks.builder.header().default_sample_type = first;
    }
    let stackless = add_lines(text, |line| stacks.add(line, dialect))?;
    let DialectStacks { builder, locations, .. } = stacks;
    drop(locations);
    Ok(stackless.with_warning(builder.build(name)?))
}

#[derive(Default)]
struct DialectStacks<'t> {
    builder: ProfileBuilder,
    /// The locations of frames, by their text.
    locations: HashMap<&'t [u8], LocationId>,
    binaries: HashMap<&'static str, MappingId>,
    leaf_first: Vec<LocationId>,
    labels: Vec<Label>,
}

impl<'t> DialectStacks<'t> {
    fn add(&mut self, line: &'t [u8], dialect: &Dialect) -> Result<AddedLine> {
        if line.is_empty() || line.trim_ascii_start().starts_with(b"#") {
            return Ok(AddedLine::Usual);
        }
        // A line such as ` 1` has an empty stack before the blank, so blanks are trimmed only after the line is split.
        let parts = split_last(line, b' ').and_then(|(stack, word)| Some((stack, (dialect.values)(word)?)));
        let Some((stack, values)) = parts else {
            return Err(folded::without_number(line.trim_ascii_start()));
        };
        let (stack, values) = (stack.trim_ascii_start(), values?);
        self.leaf_first.clear();
        self.labels.clear();
        let mut at_root = true;
        for frame in stack.split(|&b| b == b';').filter(|_| !stack.is_empty()) {
            let labels = if at_root { (dialect.labels)(frame) } else { Vec::new() };
            at_root = !labels.is_empty();
            if !at_root {
                let location = self.location(frame, dialect)?;
                self.leaf_first.push(location);
            }
            for (key, text) in labels {
                let (key, text) = (self.builder.string(key), self.builder.string(text));
                self.labels.push(Label { key, value: LabelValue::Text(text) });
            }
        }
        self.leaf_first.reverse();
        self.builder.sample(&self.leaf_first, &values, &self.labels)?;
        Ok(AddedLine::from_sample(&self.leaf_first, &values))
    }

    fn location(&mut self, frame: &'t [u8], dialect: &Dialect) -> Result<LocationId> {
        if let Some(&location) = self.locations.get(frame) {
            return Ok(location);
        }
        let DialectFrame { name, file, line, binary } = (dialect.frame)(frame);
        let builder = &mut self.builder;
        let mapping = (!binary.is_empty()).then(|| {
            *self.binaries.entry(binary).or_insert_with(|| {
                let file = builder.string(binary);
                builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: StringId::EMPTY, flags: 0 })
            })
        });
        let function = builder.function(name, file, 0);
        let new = builder.location(mapping, 0, &[builder.line(function, line)])?;
        self.locations.insert(frame, new);
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::LoadOptions;

    fn load(text: &str, format: Option<&str>) -> Result<Profile> {
        let options = LoadOptions::default();
        let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
        crate::from_bytes("in", text.as_bytes(), &options)
    }

    /// Formats each sample: `name file line` of its frames from the root, its values, and its labels.
    fn samples(p: &Profile) -> Vec<String> {
        let frame = |l: u32| {
            let line = p.locations().first_line[l as usize] as usize;
            let f = p.locations().line_function[line] as usize;
            let (name, file) = (p.text(p.functions().name[f]), p.text(p.functions().file[f]));
            format!("{name} {file} {}", p.locations().line_number[line]).trim_end_matches(" 0").trim_end().to_owned()
        };
        let label = |l: Label| match l.value {
            LabelValue::Text(text) => format!(" {}={}", p.text(l.key), p.text(text)),
            LabelValue::Number(..) => String::new(),
        };
        let sample = |s: pprofdiff_profile::samples::Sample<'_>| {
            let mut frames = Vec::new();
            s.for_each_location(|l| frames.push(frame(l)));
            frames.reverse();
            let values: Vec<i64> = (0..p.sample_types().len()).map(|i| s.value(i)).collect();
            let labels: String = s.labels().map(label).collect();
            format!("{} {values:?}{labels}", frames.join("|"))
        };
        p.samples().map(sample).collect()
    }

    #[test]
    fn each_tool_is_recognised_and_its_frames_are_parsed() {
        for (format, text, expected) in [
            ("py-spy", "<module> (t.py:10);work (a b.py:8) 6\n", vec!["<module> t.py 10|work a b.py 8 [6]"]),
            (
                "py-spy",
                "process 21:\"python t.py -x\";thread (22): my worker;Thread.run (threading.py:9);f (lib.so);g (t.py:1) 1\n\
                 thread (22);f (t.py:3) 2\n",
                vec![
                    "Thread.run threading.py 9|f lib.so|g t.py 1 [1] pid=21 process=python t.py -x tid=22 thread=my worker",
                    "f t.py 3 [2] tid=22",
                ],
            ),
            (
                "austin",
                "# austin: 3.7.0\n# mode: wall\n\nP21;T0:22;/s/t.py:<module>:10;C:\\s\\t.py:work:8 20084\nP21;T0:22;:GC: 5\n\n# duration: 7\n",
                vec!["<module> /s/t.py 10|work C:\\s\\t.py 8 [20084] pid=21 tid=22", ":GC: [5] pid=21 tid=22"],
            ),
            (
                "austin",
                "# austin: 3.7.0\n# mode: full\n\nP1;T0:2 10,0,65536\nP1;T0:2;t.py:f:1 20,1,-4\n",
                vec![" [10, 10, 65536, 0] pid=1 tid=2", "f t.py 1 [0, 20, 0, 4] pid=1 tid=2"],
            ),
            ("austin", "# austin: 3.7.0\n# mode: memory\nP1;T0:2;t.py:f:1 -7\n", vec!["f t.py 1 [0, 7] pid=1 tid=2"]),
            ("austin", "P1;T7f0x1;t.py:f:1 7\n", vec!["f t.py 1 [7] pid=1 tid=7f0x1"]),
            (
                "austin",
                "# interval: 100\n# mode: cpu\nP1;T0:2;t.py:f:1 7\nP1;T0:2;t.py:f:2 8\n",
                vec!["f t.py 1 [7] pid=1 tid=2", "f t.py 2 [8] pid=1 tid=2"],
            ),
            ("cpython", "tid:7;t.py:<module>:10;<GC> 3\n", vec!["<module> t.py 10|<GC> [3] tid=7"]),
            (
                "perf-folded",
                "my prog-21/22;start_[k];main;f_[j];g_[i] 6\n",
                vec!["start|main|f|g [6] comm=my prog pid=21 tid=22"],
            ),
        ] {
            let p = load(text, None).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(samples(&p), expected, "{text}");
            let named = load(text, Some(format)).unwrap();
            assert_eq!(samples(&named), expected, "{text} as {format}");
            assert!(
                crate::table::FORMATS
                    .iter()
                    .find(|f| (f.recognises)(text.as_bytes()))
                    .is_some_and(|f| f.name == format)
            );
        }
    }

    #[test]
    fn kernel_and_jit_frames_get_a_mapping() {
        let p = load("a-1/2;b_[k];c_[j];d_[k] 1\n", None).unwrap();
        let files: Vec<String> = p.mappings().iter().map(|m| p.text(m.file)).collect();
        assert_eq!(files, ["[kernel]", "[jit]"]);
    }

    #[test]
    fn other_folded_stacks_are_not_taken_for_a_dialect() {
        for text in [
            "main;operator()(int, char) 3\n",
            "main;run (fast) 3\nmain;a (b.c:1) 2\nmain;c 2\n",
            "pool-1-thread-3;run 4\n",
            "# pprofdiff-folded cpu/nanoseconds value\nmain;f (t.py:1) 3\n",
            "a:b:3;c:d:4 5\n",
            "P1;main 5\n",
        ] {
            let format = crate::table::FORMATS.iter().find(|f| (f.recognises)(text.as_bytes())).unwrap();
            assert_eq!(format.name, "folded", "{text}");
        }
    }

    #[test]
    fn errors_name_the_line_and_quote_it() {
        for (text, format, words) in [
            ("f (t.py:1) 3\nf (t.py:1) x\n", "py-spy", "line 2: \"f (t.py:1) x\" does not end in a number"),
            ("f (t.py:1) 9223372036854775808\n", "py-spy", "more than an int64 holds"),
            ("# mode: full\nP1;T0:2 1,2,3\n", "austin", "line 2: \"P1;T0:2 1,2,3\" does not end in a number"),
            ("# mode: full\nP1;T0:2 1,1\n", "austin", "line 2: \"P1;T0:2 1,1\" does not end in a number"),
            ("# mode: memory\nP1;T0:2 -9223372036854775808\n", "austin", "too small"),
            ("tid:1;a:b:99999999999999999999 1.5\n", "cpython", "\"1.5\" has a fraction"),
        ] {
            let error = load(text, Some(format)).unwrap_err();
            assert!(error.to_string().contains(words), "{text:?}: {error}");
        }
    }
}
