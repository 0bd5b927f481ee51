//! Traces of `torch.profiler` that were recorded `with_stack=True`: the calls of Python functions as complete events
//! (`"ph":"X"`) of the category `python_function`, each with its start and its duration.
//!
//! ```text
//! {"ph":"X","cat":"python_function","name":"train.py(12): forward","pid":5,"tid":5,"ts":100.25,"dur":30.5,
//!  "args":{"Python id":2,"Python parent id":1,"Python thread":0}}
//! ```
//!
//! The name is a file, the line where the function begins, and its name; or a text such as `nn.Module: Linear_0` or
//! `<built-in method matmul of type object at 0x7f3b>`, in which the address is left out, because it differs between
//! runs.
//!
//! Calls of a thread nest by their times: a call is a caller of those that begin and end inside it. The time in a
//! function itself is its duration without the calls inside it. Times are rounded, so a call may end slightly after its
//! caller; it is cut there.
//!
//! The sample types are `calls/count`, because the profiler records every call, and `wall/nanoseconds`.
//!
//! Not read: operators (`cpu_op`), kernels of GPUs, and memory.

use super::trace::{Id, ThreadLabels};
use crate::kit::json::Json;
use crate::kit::tree::{StackBudget, TextBudget, too_large};
use pprofdiff_profile::Result;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::shared::Timeline;

/// A call of a function.
struct TorchCall<'t> {
    thread: u32,
    begin: i64,
    end: i64,
    name: Json<'t>,
}

/// The calls in a trace.
#[derive(Default)]
pub(super) struct Torch<'t> {
    threads: Vec<(Id, Id)>,
    numbers: HashMap<(Id, Id), u32>,
    calls: Vec<TorchCall<'t>>,
}

/// A call that is not finished while calls are read in the order of time.
struct OpenCall {
    node: u32,
    end: i64,
}

impl<'t> Torch<'t> {
    /// Adds a call of a thread (its process and its id).
    pub fn add(&mut self, thread: (Id, Id), name: Json<'t>, begin: i64, duration: i64) -> Result<()> {
        let n_threads = self.threads.len() as u32;
        let number = *self.numbers.entry(thread).or_insert(n_threads);
        if number == n_threads {
            self.threads.push(thread);
        }
        let end = begin.checked_add(duration.max(0)).ok_or_else(too_large)?;
        self.calls.push(TorchCall { thread: number, begin, end, name });
        Ok(())
    }

    /// Returns the time of the first call.
    pub fn start(&self) -> Option<i64> {
        self.calls.iter().map(|call| call.begin).min()
    }

    /// Adds the samples of all calls. Times count from `start`.
    pub fn write(
        mut self,
        start: i64,
        timeline: Option<&mut Timeline>,
        labels: &ThreadLabels<'_>,
        size: usize,
        builder: &mut ProfileBuilder,
    ) -> Result<()> {
        // Of calls that begin at the same time, the longest is the caller.
        self.calls.sort_by_key(|call| (call.thread, call.begin, std::cmp::Reverse(call.end)));
        let mut stacks = TorchTree { nodes: Interner::default(), values: Vec::new(), start, timeline };
        let (mut texts, mut last) = (TextBudget::for_input(size), start);
        for calls in self.calls.chunk_by(|a, b| a.thread == b.thread) {
            let (mut open, mut now): (Vec<OpenCall>, i64) = (Vec::new(), calls[0].begin);
            for call in calls {
                let place = call.name.offset();
                stacks.close(&mut open, &mut now, call.begin).map_err(|e| e.at(place))?;
                let text = { call.name }.string()?.bytes();
                texts.take(text.len()).map_err(|e| e.at(place))?;
                let location = location(&text, builder).map_err(|e| e.at(place))?;
                let parent = open.last().map_or((true, call.thread), |caller| (false, caller.node));
                let node = stacks.nodes.number((parent, location.0));
                stacks.count(node, call.begin).map_err(|e| e.at(place))?;
                // A call ends with its caller.
                let end = open.last().map_or(call.end, |caller| call.end.min(caller.end));
                open.push(OpenCall { node, end });
                last = last.max(end);
            }
            stacks.close(&mut open, &mut now, i64::MAX).map_err(|e| e.at(calls[0].name.offset()))?;
        }
        builder.sample_type("calls", "count");
        builder.sample_type("wall", "nanoseconds");
        let default = builder.string("wall");
        builder.header().default_sample_type = default;
        builder.header().duration_nanos = last.checked_sub(start).ok_or_else(too_large)?;
        let TorchTree { nodes, values, .. } = stacks;
        let thread_labels: Vec<_> = self.threads.iter().map(|&(pid, tid)| labels.of(pid, Some(tid))).collect();
        let (mut leaf_first, mut budget) = (Vec::new(), StackBudget::for_input(size));
        for (&((mut is_root, mut parent), location), values) in nodes.values.iter().zip(&values) {
            if *values == [0; 2] {
                continue;
            }
            leaf_first.clear();
            leaf_first.push(LocationId(location));
            while !is_root {
                let above = nodes.values[parent as usize];
                leaf_first.push(LocationId(above.1));
                (is_root, parent) = above.0;
            }
            budget.take(leaf_first.len(), 2)?;
            builder.sample(&leaf_first, values, &thread_labels[parent as usize])?;
        }
        Ok(())
    }
}

/// The call tree of all threads.
struct TorchTree<'w> {
    /// Each node has its parent and its location. The parent of a root (`true`) is its thread.
    nodes: Interner<((bool, u32), u32), RandomState>,
    /// The calls of each node, and their time without the calls inside.
    values: Vec<[i64; 2]>,
    start: i64,
    timeline: Option<&'w mut Timeline>,
}

impl TorchTree<'_> {
    fn add(&mut self, node: u32, column: usize, value: i64) -> Result<()> {
        self.values.resize(self.nodes.values.len(), [0; 2]);
        let sum = &mut self.values[node as usize][column];
        *sum = sum.checked_add(value).ok_or_else(too_large)?;
        Ok(())
    }

    /// Counts a call if it begins inside the time window.
    fn count(&mut self, node: u32, begin: i64) -> Result<()> {
        let time = begin.saturating_sub(self.start);
        let is_read = self.timeline.as_mut().is_none_or(|timeline| timeline.contains(time));
        self.add(node, 0, is_read.into())
    }

    /// Adds the time until `until` to the open calls, and closes the calls that end before.
    fn close(&mut self, open: &mut Vec<OpenCall>, now: &mut i64, until: i64) -> Result<()> {
        while let Some(call) = open.last() {
            let end = call.end.min(until);
            if end > *now {
                let [begin, end] = [*now, end].map(|time| time.saturating_sub(self.start));
                let time = self.timeline.as_mut().map_or(end - begin, |timeline| timeline.part(begin, end));
                self.add(call.node, 1, time)?;
            }
            *now = end.max(*now);
            if call.end > until {
                return Ok(());
            }
            open.pop();
        }
        *now = until.max(*now);
        Ok(())
    }
}

/// Adds the location of a function by its name in the trace.
fn location(text: &[u8], builder: &mut ProfileBuilder) -> Result<LocationId> {
    let (file, line, name) = parts(text).unwrap_or((b"", 0, text));
    // The address of an object differs between runs.
    const ADDRESS: &[u8] = b" at 0x";
    let name = match name.windows(ADDRESS.len()).rposition(|word| word == ADDRESS) {
        Some(begin) if name.ends_with(b">") => [&name[..begin], b">"].concat().into(),
        _ => std::borrow::Cow::Borrowed(name),
    };
    let function = builder.function(&name, file, line);
    let line = builder.line(function, line);
    builder.location(None, 0, &[line])
}

/// Parses `file(line): name`.
fn parts(text: &[u8]) -> Option<(&[u8], i64, &[u8])> {
    const SEPARATOR: &[u8] = b"): ";
    let end = text.windows(SEPARATOR.len()).position(|word| word == SEPARATOR)?;
    let open = text[..end].iter().rposition(|&byte| byte == b'(')?;
    let line: i64 = std::str::from_utf8(&text[open + 1..end]).ok()?.parse().ok()?;
    Some((&text[..open], line.max(0), &text[end + SEPARATOR.len()..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::LoadOptions;
    use crate::kit::tree::rows;

    /// Writes a trace of calls: thread, name, start and duration in microseconds.
    fn trace(calls: &[(u32, &str, &str, &str)]) -> String {
        let event = |(tid, name, begin, duration): &(u32, &str, &str, &str)| {
            format!(
                r#"{{"ph":"X","cat":"python_function","name":"{name}","pid":5,"tid":{tid},"ts":{begin},"dur":{duration},"args":{{"Python id":1}}}}"#
            )
        };
        let other = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":1,"dur":2},{"ph":"M","name":"thread_name","pid":5,"tid":5,"args":{"name":"main"}}"#;
        let events: Vec<String> = calls.iter().map(event).collect();
        format!(r#"{{"schemaVersion":1,"traceEvents":[{other},{}]}}"#, events.join(","))
    }

    fn read(calls: &[(u32, &str, &str, &str)], window: Option<&str>) -> Vec<String> {
        let mut options = LoadOptions::default();
        if let Some(window) = window {
            options = options.with_time(window.parse().unwrap());
        }
        let profile = crate::from_bytes("in", trace(calls).as_bytes(), &options).unwrap();
        assert_eq!(
            profile.sample_types(),
            [("calls", "count"), ("wall", "nanoseconds")].map(|(k, u)| (k.into(), u.into()))
        );
        rows(&profile)
    }

    const CALLS: [(u32, &str, &str, &str); 6] = [
        (5, "a.py(9): main", "100", "50"),
        (5, "b.py(3): work", "110.5", "10"),
        // It begins with its caller, and ends after it, because times are rounded.
        (5, "nn.Module: Linear_0", "110.5", "10.001"),
        (5, "b.py(3): work", "130", "10"),
        (5, "<built-in method mm of type object at 0x7f3b>", "132", "3"),
        (7, "a.py(9): main", "105", "1"),
    ];

    #[test]
    fn calls_nest_by_their_times() {
        let mut calls = CALLS;
        // The longer call is the caller.
        calls[2].3 = "9";
        calls.reverse();
        let expected = [
            "main a.py:9 pid=5 tid=7: 1 1000",
            "main a.py:9 thread=main pid=5 tid=5: 1 30000",
            "main a.py:9|work b.py:3 thread=main pid=5 tid=5: 2 8000",
            "main a.py:9|work b.py:3|<built-in method mm of type object> thread=main pid=5 tid=5: 1 3000",
            "main a.py:9|work b.py:3|nn.Module: Linear_0 thread=main pid=5 tid=5: 1 9000",
        ];
        assert_eq!(read(&calls, None), expected);
    }

    #[test]
    fn a_call_that_ends_after_its_caller_is_cut() {
        let calls = [(5, "a.py(1): f", "0", "10"), (5, "a.py(2): g", "4", "8"), (5, "a.py(3): h", "11", "1")];
        let labels = "thread=main pid=5 tid=5";
        let expected = [
            format!("f a.py:1 {labels}: 1 4000"),
            format!("f a.py:1|g a.py:2 {labels}: 1 6000"),
            format!("h a.py:3 {labels}: 1 1000"),
        ];
        assert_eq!(read(&calls, None), expected);
        let cut = [format!("f a.py:1 {labels}: 0 2000"), format!("f a.py:1|g a.py:2 {labels}: 1 1000")];
        assert_eq!(read(&calls, Some("2us..5us")), cut);
    }

    #[test]
    fn names_have_a_file_and_a_line_or_are_texts() {
        for (text, expected) in [
            ("torch/nn/module.py(12): forward", Some((&b"torch/nn/module.py"[..], 12, &b"forward"[..]))),
            ("a (b).py(3): <lambda>", Some((b"a (b).py", 3, b"<lambda>"))),
            ("nn.Module: Linear_0", None),
            ("<built-in function len>", None),
            ("f(x): y", None),
        ] {
            assert_eq!(parts(text.as_bytes()), expected, "{text}");
        }
    }
}
