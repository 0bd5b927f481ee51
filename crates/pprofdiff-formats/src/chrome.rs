//! Profiles of V8, as Chrome's DevTools and `node --cpu-prof` and `--heap-prof` save them: `.cpuprofile` and
//! `.heapprofile`. They are the types `Profiler.Profile` and `HeapProfiler.SamplingHeapProfile` of the DevTools
//! protocol (<https://chromedevtools.github.io/devtools-protocol/v8/>) as JSON.
//!
//! Both are call trees. The call frame of a node is a function: its name, its script, and the line and column where it
//! begins. The file counts them from 0, and -1 means unknown; the profile counts them from 1. The node `(root)` is not
//! a frame.
//!
//! **CPU.** `samples` has a node for each tick of the profiler's clock. `timeDeltas` has the microseconds from the
//! previous tick to this one; the first counts from `startTime`. A sample therefore stands for the time until the next
//! sample, as in DevTools (`CPUProfileDataModel`). DevTools first sorts samples by time, because ticks of other threads
//! may be late. The last sample ends with the recording; without a usable `endTime`, it gets the mean of all other
//! samples. The time before the first sample is not counted. A time window cuts samples at its ends.
//!
//! The sample types are
//!
//! - `wall/nanoseconds`, all of that time;
//! - `cpu/nanoseconds`, the same without the node `(idle)`, in which the thread waits for work. V8's clock is not a CPU
//!   clock: `(program)` is native code, whether it works or waits;
//! - `samples/count`, the number of samples in `cpu`.
//!
//! Not read: the order of samples, and the lines inside a function (`positionTicks`).
//!
//! **Heap.** `selfSize` is the memory that a node's function allocated and that is still in use, estimated from
//! samples: `inuse_space/bytes`. The file does not have the number of objects; the list `samples` has it only for the
//! samples, and is not read.
//!
//! **Traces** contain CPU profiles in pieces (`trace.rs`).

mod cpu;
mod heap;
mod torch;
mod trace;

use std::borrow::Cow;

use crate::InputFormat;
use crate::kit::json::{self, Json, Number};
use cpu::read_cpu;
use heap::read_heap;
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::{Error, Result};
use trace::read_trace;

pub(crate) const CPU: InputFormat = InputFormat {
    name: "cpuprofile",
    about: "a CPU profile of Chrome or Node: .cpuprofile",
    has_times: true,
    has_events: false,
    recognises: |head| {
        let keys = json::keys(head);
        let has = |key: &str| keys.iter().any(|k| **k == *key.as_bytes());
        (has("nodes") && json::contains(head, "\"callFrame\"")) || has("timeDeltas")
    },
    read: |name, text, options| read(name, text, |text, builder| read_cpu(text, options.time.as_ref(), builder)),
};

pub(crate) const HEAP: InputFormat = InputFormat {
    name: "heapprofile",
    about: "a sampled heap profile of Chrome or Node: .heapprofile",
    has_times: false,
    has_events: false,
    recognises: |head| {
        json::keys(head).iter().any(|key| **key == *b"head")
            && json::contains(head, "\"callFrame\"")
            && json::contains(head, "\"selfSize\"")
    },
    read: |name, text, _| read(name, text, read_heap),
};

pub(crate) const TRACE: InputFormat = InputFormat {
    name: "chrome-trace",
    about: "a trace of Chrome or Node with a CPU profile, or of torch.profiler with stacks",
    has_times: true,
    has_events: true,
    recognises: |head| trace::recognises(head, &json::keys(head)),
    read: |name, text, options| {
        let mut notes = Vec::new();
        let profile = read(name, text, |text, builder| {
            notes = read_trace(text, options, builder)?;
            Ok(())
        })?;
        Ok(profile.with_notes(notes))
    },
};

fn read(name: &str, text: Vec<u8>, fill: impl FnOnce(&[u8], &mut ProfileBuilder) -> Result<()>) -> Result<Profile> {
    let mut builder = ProfileBuilder::new();
    fill(&text, &mut builder)?;
    drop(text);
    builder.build(name)
}

/// A missing node.
const NONE: u32 = u32::MAX;

/// The role of a node, determined by its name. A node with a script is always a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeRole {
    Root,
    Idle,
    Function,
}

/// A call tree, with one element per node in each list.
#[derive(Default)]
struct CallNodes {
    /// The parent of each node, or [`NONE`].
    parents: Vec<u32>,
    /// `None` until the call frame is read.
    frames: Vec<Option<(LocationId, NodeRole)>>,
}

impl CallNodes {
    /// Adds a node without a call frame, and returns its index.
    fn open(&mut self, parent: u32) -> Result<u32> {
        let number = u32::try_from(self.parents.len()).ok().filter(|&n| n != NONE);
        let number = number.ok_or_else(|| Error::malformed("it has more than 4 billion nodes"))?;
        self.parents.push(parent);
        self.frames.push(None);
        Ok(number)
    }

    /// Checks that no node is its own ancestor. Visits each node at most twice.
    fn check_ends(&self) -> Result<()> {
        let mut ends = vec![false; self.parents.len()];
        for start in 0..self.parents.len() as u32 {
            let (mut node, mut steps) = (start, 0);
            while node != NONE && !ends[node as usize] {
                if steps == self.parents.len() {
                    return Err(Error::malformed("it is its own ancestor").in_record(|| format!("node {start}")));
                }
                (node, steps) = (self.parents[node as usize], steps + 1);
            }
            node = start;
            while node != NONE && !ends[node as usize] {
                ends[node as usize] = true;
                node = self.parents[node as usize];
            }
        }
        Ok(())
    }

    /// Sets `leaf_first` to the stack of a node. The root is included only in its own stack.
    fn stack(&self, mut node: u32, leaf_first: &mut Vec<LocationId>) {
        leaf_first.clear();
        while node != NONE {
            if let Some((location, role)) = self.frames[node as usize]
                && (role != NodeRole::Root || leaf_first.is_empty())
            {
                leaf_first.push(location);
            }
            node = self.parents[node as usize];
        }
    }
}

/// Reads a call frame.
fn call_frame(json: &mut Json<'_>, builder: &mut ProfileBuilder) -> Result<(LocationId, NodeRole)> {
    let begin = *json;
    let (mut name, mut url, mut line, mut column) = (None, None, 0, 0);
    let mut object = json.object()?;
    while let Some(key) = json.member(&mut object, &["functionName", "url", "lineNumber", "columnNumber"])? {
        match key {
            "functionName" => name = Some(json.string()?.bytes()),
            "url" => url = Some(json.string()?.bytes()),
            "lineNumber" => line = place(json.number()?)?,
            _ => column = place(json.number()?)?,
        }
    }
    let name = name.ok_or_else(|| missing("its call frame has no functionName", begin))?;
    let url = with_slashes(url.unwrap_or_default());
    let role = match &*name {
        b"(root)" if url.is_empty() => NodeRole::Root,
        b"(idle)" if url.is_empty() => NodeRole::Idle,
        _ => NodeRole::Function,
    };
    let name = if name.is_empty() { Cow::Owned(unnamed(&url, line, column)) } else { name };
    let function = builder.function(&name, url, line);
    let line_and_column = builder.line(function, line).with_column(column);
    Ok((builder.location(None, 0, &[line_and_column])?, role))
}

/// Converts a Windows path to the form of its URL: a capital drive letter and slashes. Recorders use both forms.
fn with_slashes(url: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match *url {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => {
            let mut path = url.into_owned();
            path[0].make_ascii_uppercase();
            path.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
            path.into()
        }
        _ => url,
    }
}

/// Returns the name for a function without a name. A program has many, so the name contains the place, as in V8's own
/// traces. The file is relative to its package, so that the name does not depend on the installation path.
fn unnamed(url: &[u8], line: i64, column: i64) -> Vec<u8> {
    let mut name = b"(anonymous)".to_vec();
    if url.is_empty() {
        return name;
    }
    const PACKAGES: &[u8] = b"/node_modules/";
    let file = match url.windows(PACKAGES.len()).rposition(|part| part == PACKAGES) {
        Some(start) => &url[start + PACKAGES.len()..],
        None if url.starts_with(b"node:") => url,
        None => url.rsplit(|&byte| byte == b'/').next().unwrap_or(url),
    };
    name.push(b' ');
    name.extend_from_slice(file);
    if line > 0 {
        name.extend_from_slice(format!(":{line}:{column}").as_bytes());
    }
    name
}

/// Converts a line or column from counting from 0 to counting from 1. An unknown place, -1, becomes 0.
fn place(number: Number<'_>) -> Result<i64> {
    Ok(number.whole()?.saturating_add(1).max(0))
}

fn missing(detail: &str, place: Json<'_>) -> Error {
    Error::malformed(detail).at(place.offset())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::LoadOptions;
    use crate::kit::tree::rows;
    use pprofdiff_profile::ErrorKind;

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    fn frame(name: &str, line: i64) -> String {
        format!(r#""callFrame":{{"functionName":"{name}","scriptId":"7","url":"","lineNumber":{line}}}"#)
    }

    /// Writes a profile of a root with `(idle)` (2), `f` (3) and its callee `g` (4). `rest` follows the nodes.
    fn cpu(rest: &str) -> String {
        let [root, idle, f] = [("(root)", -1), ("(idle)", -1), ("f", 0)].map(|(name, line)| frame(name, line));
        let g = r#""callFrame":{"functionName":"g","url":"a.js","lineNumber":4,"columnNumber":0}"#;
        format!(
            r#"{{"nodes":[{{"id":1,{root},"hitCount":0,"children":[2,3]}},{{"id":2,{idle},"hitCount":1}},
            {{"id":3,{f},"hitCount":2,"children":[4],"positionTicks":[{{"line":1,"ticks":2}}]}},
            {{"id":4,{g},"hitCount":4}}],{rest}}}"#
        )
    }

    #[test]
    fn functions_without_a_name_are_named_by_their_place() {
        for (url, line, expected) in [
            ("", 3, "(anonymous)"),
            ("file:///srv/app/main.js", 0, "(anonymous) main.js:1:8"),
            ("/srv/node_modules/a/node_modules/@b/c/lib/index.js", 6, "(anonymous) @b/c/lib/index.js:7:8"),
            ("node:internal/timers", -1, "(anonymous) node:internal/timers"),
            (r"c:\app\node_modules\rxjs\of.js", 2, "(anonymous) rxjs/of.js:3:8"),
            ("C:/app/node_modules/rxjs/of.js", 2, "(anonymous) rxjs/of.js:3:8"),
        ] {
            let url = with_slashes(Cow::Borrowed(url.as_bytes()));
            assert_eq!(unnamed(&url, line + 1, 8), expected.as_bytes());
        }
        assert_eq!(*with_slashes(Cow::Borrowed(br"c:\app\a.js")), *b"C:/app/a.js");
        assert_eq!(*with_slashes(Cow::Borrowed(br"/app/a\b.js")), *br"/app/a\b.js");
    }

    #[test]
    fn a_sample_lasts_until_the_next_one_and_the_last_one_until_the_end() {
        for (rest, expected) in [
            // 3 for 20, 2 for 6, 4 for 4, and the last for 7, until the end. The first 1000 are not counted.
            (
                r#""startTime":5,"endTime":1042,"samples":[3,2,4,3],"timeDeltas":[1000,20,6,4]"#,
                vec!["(idle): 0 6000 0", "f :1: 2 27000 27000", "f :1|g a.js:5:1: 1 4000 4000"],
            ),
            // A recording may end with its last sample.
            (
                r#""startTime":5,"endTime":40,"samples":[3,4,3],"timeDeltas":[10,20,5]"#,
                vec!["f :1: 2 20000 20000", "f :1|g a.js:5:1: 1 5000 5000"],
            ),
            // If it ends before its last sample, this sample gets the mean, 10.
            (
                r#""startTime":0,"endTime":12,"samples":[3,2,4,3],"timeDeltas":[1000,20,6,4]"#,
                vec!["(idle): 0 6000 0", "f :1: 2 30000 30000", "f :1|g a.js:5:1: 1 4000 4000"],
            ),
            // Sorted by time: 3 at 10, 4 at 15, 2 at 20.
            (
                r#""timeDeltas":[10,10,-5],"samples":[3,2,4]"#,
                vec!["(idle): 0 5000 0", "f :1: 1 5000 5000", "f :1|g a.js:5:1: 1 5000 5000"],
            ),
            // Negative times come first.
            (
                r#""timeDeltas":[0,-10,20],"samples":[3,4,3]"#,
                vec!["f :1: 2 20000 20000", "f :1|g a.js:5:1: 1 10000 10000"],
            ),
            // A single sample lasts until the end.
            (
                r#""startTime":100,"endTime":130,"samples":[4],"timeDeltas":[10]"#,
                vec!["f :1|g a.js:5:1: 1 20000 20000"],
            ),
            (r#""samples":[1,1],"timeDeltas":[0,0.5]"#, vec!["(root): 2 1000 1000"]),
            // Without times of samples, the total time is distributed evenly.
            (r#""startTime":0,"endTime":9,"samples":[3,3,2]"#, vec!["(idle): 0 3000 0", "f :1: 2 6000 6000"]),
            (
                r#""startTime":0,"endTime":14"#,
                vec!["(idle): 0 2000 0", "f :1: 2 4000 4000", "f :1|g a.js:5:1: 4 8000 8000"],
            ),
            (r#""title":"no times""#, vec!["f :1: 2", "f :1|g a.js:5:1: 4"]),
            (r#""samples":[],"timeDeltas":[]"#, vec![]),
        ] {
            assert_eq!(rows(&load(&cpu(rest)).unwrap()), expected, "{rest}");
        }
        let p = load(&cpu(r#""startTime":0,"endTime":14"#)).unwrap();
        assert_eq!(
            p.sample_types()[1..],
            [("wall", "nanoseconds"), ("cpu", "nanoseconds")].map(|(k, u)| (k.into(), u.into()))
        );
        assert_eq!(p.header().duration_nanos, 14_000);
        // The default type is set, so that it also holds when profiles of other types are merged.
        assert_eq!(p.text(p.header().default_sample_type), "cpu");
    }

    #[test]
    fn nodes_are_linked_by_parents_or_children() {
        let nodes = [frame("(root)", -1), frame("", 2), frame("b\\u0041\\\"", 3)];
        let text = format!(
            r#" {{"timeDeltas":[1,2],"samples":[30,20],"nodes":[{{{},"id":30,"parent":20,"children":null}},
            {{"parent":10,"id":20,{},"children":[30]}},{{{},"id":10}}]}} "#,
            nodes[2], nodes[1], nodes[0]
        );
        assert_eq!(rows(&load(&text).unwrap()), ["(anonymous) :3: 1 2000 2000", "(anonymous) :3|bA\" :4: 1 2000 2000"]);
    }

    #[test]
    fn errors_of_cpu_profiles_name_the_record() {
        let node = |id: i64, more: &str| format!("{{\"id\":{id},{}{more}}}", frame("f", 0));
        let profile = |nodes: &[String], rest: &str| format!("{{\"nodes\":[{}]{rest}}}", nodes.join(","));
        let single_node = |rest: &str| profile(&[node(1, "")], rest);
        for (text, words) in [
            (single_node(r#","samples":[1,9],"timeDeltas":[0,0]"#), "sample 1: unknown node id 9"),
            (single_node(r#","samples":[1,1],"timeDeltas":[0]"#), "sample 1: `timeDeltas` has no time for this sample"),
            (single_node(r#","samples":[1],"timeDeltas":[0,1]"#), "`timeDeltas` has more elements than `samples`"),
            (single_node(r#","samples":["1"],"timeDeltas":[0]"#), "sample 0: expected a number, not '\"'"),
            (single_node(r#","samples":[1],"timeDeltas":[1e300]"#), "1e300 is more than an int64 holds"),
            (single_node(r#","samples":[1,1,1],"timeDeltas":[0,9e15,9e15]"#), "add up to more than an int64 holds"),
            (single_node(r#","samples":[1.5],"timeDeltas":[0]"#), "1.5 has a fraction"),
            (single_node(r#","startTime":-9e15,"endTime":9e15"#), "add up to more than an int64 holds"),
            (single_node(r#","samples":{},"timeDeltas":[0]"#), "expected an array, not '{'"),
            (profile(&[node(1, ""), node(1, "")], ""), "node 1: node 0 has the same id 1"),
            (profile(&[node(1, ",\"children\":[3]")], ""), "node 0: unknown node id 3"),
            (
                profile(&[node(1, ",\"children\":[2]"), node(2, ",\"children\":[1]")], ""),
                "node 0: it is its own ancestor",
            ),
            (profile(&[node(1, ",\"parent\":1")], ""), "node 0: it is its own ancestor"),
            (
                profile(&[node(1, ",\"children\":[3]"), node(2, ",\"children\":[3]"), node(3, "")], ""),
                "node 1: node 2 is a child of this node and of node 0",
            ),
            (profile(&[node(1, ",\"hitCount\":-1")], ""), "node 0: its hitCount -1 is negative"),
            (profile(&[format!("{{{}}}", frame("f", 0))], ""), "node 0: it has no id"),
            (profile(&["{\"id\":1}".into()], ",\"x\":{\"callFrame\":1}"), "node 0: it has no callFrame"),
            (
                profile(&["{\"id\":1,\"callFrame\":{\"url\":\"x\"}}".into()], ""),
                "node 0: its call frame has no functionName",
            ),
            ("{\"timeDeltas\":[]}".into(), "it has no `nodes`"),
            ("{\"timeDeltas\":[],\"head\":{}}".into(), "it is in the format that Chrome wrote until 2016"),
            (single_node(",") + "x", "expected a string, not '}'"),
        ] {
            let error = load(&text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
        let whole = cpu(r#""startTime":5,"samples":[3,2,4],"timeDeltas":[10,20,6]"#);
        let options = LoadOptions::default().with_input_format("cpuprofile").unwrap();
        for end in 1..whole.len() {
            let error = crate::from_bytes("in", &whole.as_bytes()[..end], &options).unwrap_err();
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
    }

    #[test]
    fn heap_profiles_are_trees_with_members_in_any_order() {
        let [root, f, g] = ["(root)", "f", "g"].map(|name| frame(name, 0));
        let leaf = format!(r#"{{"selfSize":5,{g},"children":[]}}"#);
        let text = format!(
            r#"{{"head":{{{root},"selfSize":0,"id":1,"children":[
            {{"children":[{leaf},{{{f},"id":3,"children":null,"selfSize":1}}],"selfSize":2.0,{f}}},{leaf}]}},
            "samples":[{{"size":5,"nodeId":2,"ordinal":1}}]}}"#
        );
        let p = load(&text).unwrap();
        assert_eq!(rows(&p), ["f :1: 2", "f :1|f :1: 1", "f :1|g :1: 5", "g :1: 5"]);
        assert_eq!(p.sample_types(), [("inuse_space".to_owned(), "bytes".to_owned())]);
        let options = LoadOptions::default().with_input_format("heapprofile").unwrap();
        for end in 1..text.len() {
            let error = crate::from_bytes("in", &text.as_bytes()[..end], &options).unwrap_err();
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
        for (text, words) in [
            ("{}", "it has no `head`"),
            ("{\"head\":{\"selfSize\":1}}", "node 0: it has no callFrame"),
            (
                &*format!("{{\"head\":{{{f},\"children\":[{{{f},\"selfSize\":\"1\"}}]}}}}"),
                "node 1: expected a number, not '\"'",
            ),
            (&*format!("{{\"head\":{{{f},\"children\":[1]}}}}"), "node 1: expected an object, not '1'"),
        ] {
            let error = crate::from_bytes("in", text.as_bytes(), &options).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn stacks_may_be_deep_but_their_total_size_is_limited() {
        let frame = frame("f", 0);
        let chain = |depth: usize, size: i64| {
            let open = format!("{{{frame},\"selfSize\":{size},\"children\":[");
            format!("{{\"head\":{}{}}}", open.repeat(depth), "]}".repeat(depth))
        };
        // A chain of 2,000 nodes means 2 million frames; a chain of 200,000 would mean 20 billion.
        assert_eq!(load(&chain(2000, 1)).unwrap().total(0), Some(2000));
        assert_eq!(load(&chain(200_000, 0)).unwrap().n_samples(), 0);
        let error = load(&chain(200_000, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }

    #[test]
    fn v8_profiles_are_recognised_by_their_members() {
        let node = format!("{{\"id\":1,{}}}", frame("f", 0));
        for (text, cpu, heap) in [
            (format!("{{\"nodes\":[{node}"), true, false),
            ("{\"startTime\":1,\"timeDeltas\":[1".to_owned(), true, false),
            (format!("{{\"head\":{{{},\"selfSize\":0", frame("f", 0)), false, true),
            // A heap snapshot, a graph, and a key inside another object.
            ("{\"snapshot\":{\"meta\":{}},\"nodes\":[9,1,1]}".to_owned(), false, false),
            ("{\"nodes\":[{\"id\":1}],\"edges\":[]}".to_owned(), false, false),
            ("{\"x\":{\"timeDeltas\":[]}}".to_owned(), false, false),
        ] {
            assert_eq!((CPU.recognises)(text.as_bytes()), cpu, "{text}");
            assert_eq!((HEAP.recognises)(text.as_bytes()), heap, "{text}");
        }
    }
}
