//! Traces in Chrome's format: what DevTools' Performance panel saves, `node --trace-event-categories`, and Puppeteer's
//! and Playwright's tracing. They are lists of events, in a member `traceEvents` or by themselves.
//!
//! V8's profiler writes its CPU profile into the trace in pieces (`StreamPendingTraceEvents` of V8's
//! `profile-generator.cc`):
//!
//! ```text
//! {"name":"Profile","pid":5,"tid":6,"id":"0x1","ts":100,"args":{"data":{"startTime":98}}}
//! {"name":"ProfileChunk","pid":5,"tid":7,"id":"0x1","ts":200,"args":{"data":{
//!     "cpuProfile":{"nodes":[{"id":2,"parent":1,"callFrame":{..}}],"samples":[2,2]},"timeDeltas":[50,60],"lines":[3,4]}}}
//! ```
//!
//! The pieces of a profile have its `pid` and `id`. Only the event `Profile` has the thread that was profiled, because
//! pieces are written by another thread. All profiles are read as `.cpuprofile` files are (`cpu.rs`), and get the labels
//! `thread`, `process`, `pid` and `tid`. Names come from the events `thread_name` and `process_name`. An older event,
//! `CpuProfile`, has a whole profile. If two profiles of a thread overlap, such as DevTools' and one that the page took
//! itself, the one that began first is read, with a warning, because adding them would count time twice.
//!
//! Times in a trace count from the start of the first profile. A time window may begin or end with any event.
//!
//! `torch.profiler` writes the same format, with other events (`torch.rs`).
//!
//! Not read: all other events, and the lines and columns of samples.

use super::cpu::{MICROSECONDS, NodeTimes, SampleLists, add_types, read_nodes, write_nodes};
use super::torch::Torch;
use crate::LoadOptions;
use crate::kit::json::{self, Json, JsonKind};
use crate::kit::tree::{StackBudget, too_large};
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::{Events, Timeline};
use pprofdiff_profile::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// Returns true if a text begins like a trace: a list of events, or an object with such a list.
pub(super) fn recognises(head: &[u8], keys: &[Cow<'_, [u8]>]) -> bool {
    let has = |word: &str| json::contains(head, word);
    let begin = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    // DevTools writes its metadata first, which may be longer than the beginning.
    keys.iter()
        .any(|key| **key == *b"traceEvents" || **key == *b"metadata" && has("\"dataOrigin\"") && has("\"TraceEvents\""))
        || begin.first() == Some(&b'[')
            && begin[1..].trim_ascii_start().first() == Some(&b'{')
            && has("\"ph\"")
            && has("\"ts\"")
}

/// Reads a trace, and returns warnings.
pub(super) fn read_trace(text: &[u8], options: &LoadOptions, builder: &mut ProfileBuilder) -> Result<Vec<String>> {
    let mut json = Json::new(text);
    let begin = json.offset();
    let list = if json.kind()? == JsonKind::Array {
        let list = json;
        json.skip()?;
        list
    } else {
        let [list] = json.members(["traceEvents"])?;
        list.ok_or_else(|| Error::malformed("`traceEvents` is missing").at(begin))?
    };
    json.end()?;
    let mut trace = Trace::default();
    each_event(list, |event| trace.read_event(event, builder))?;
    trace.write(list, options, text.len(), builder)
}

/// The members of an event that are read.
const MEMBERS: [&str; 9] = ["name", "cat", "ph", "pid", "tid", "id", "ts", "dur", "args"];

type EventMembers<'t> = [Option<Json<'t>>; MEMBERS.len()];

/// Calls `f` with the members of each event.
fn each_event<'t>(mut list: Json<'t>, mut f: impl FnMut(EventMembers<'t>) -> Result<()>) -> Result<()> {
    let (mut number, mut array) = (0u64, list.array()?);
    while list.element(&mut array)? {
        let begin = list.offset();
        let read = list.members(MEMBERS).and_then(&mut f);
        read.map_err(|e| e.in_record(|| format!("event {number}")).at(begin))?;
        number += 1;
    }
    Ok(())
}

/// A process or a thread: a number, or a text.
pub(super) type Id = LabelValue;

/// A CPU profile in a trace.
struct TraceProfile {
    pid: Id,
    /// The thread that was profiled, or `None` without the event that has it.
    tid: Option<Id>,
    /// The time of its first event in nanoseconds.
    begin: i64,
}

/// An event with a piece of a CPU profile.
struct TracePiece<'t> {
    profile: u32,
    time: i64,
    args: Json<'t>,
}

#[derive(Default)]
struct Trace<'t> {
    profiles: Vec<TraceProfile>,
    /// The index of each profile by its process and its id.
    numbers: HashMap<(Id, Id), u32>,
    chunks: Vec<TracePiece<'t>>,
    names: ThreadNames,
    torch: Torch<'t>,
}

impl<'t> Trace<'t> {
    /// Keeps an event if it belongs to a profile or names a thread.
    fn read_event(
        &mut self,
        [name, category, phase, pid, tid, id, time, duration, args]: EventMembers<'t>,
        builder: &mut ProfileBuilder,
    ) -> Result<()> {
        let Some(name) = name else { return Ok(()) };
        let is =
            |place: Option<Json<'t>>, word: &[u8]| Ok::<_, Error>(&*place.map_or(Ok(Cow::default()), text_of)? == word);
        if is(category, b"python_function")? && is(phase, b"X")? {
            let (Some(time), Some(duration)) = (time, duration) else { return Ok(()) };
            let thread = (read_id(pid, builder)?, read_id(tid, builder)?);
            return self.torch.add(thread, name, nanos(time)?, nanos(duration)?);
        }
        match (&*text_of(name)?, time, args) {
            (kind @ (b"thread_name" | b"process_name"), _, Some(mut args)) => {
                if let [Some(name)] = args.members(["name"])? {
                    let (name, pid) = (builder.string(text_of(name)?), read_id(pid, builder)?);
                    match kind {
                        b"thread_name" => _ = self.names.threads.insert((pid, read_id(tid, builder)?), name),
                        _ => _ = self.names.processes.insert(pid, name),
                    }
                }
                Ok(())
            }
            (kind @ (b"Profile" | b"ProfileChunk" | b"CpuProfile"), Some(time), Some(args)) => {
                let (time, pid) = (nanos(time)?, read_id(pid, builder)?);
                let id = id.filter(|_| kind != b"CpuProfile").map(|id| read_id(Some(id), builder)).transpose()?;
                let profile = self.profile(pid, id, time)?;
                if kind != b"ProfileChunk" {
                    let tid = Some(read_id(tid, builder)?);
                    self.profiles[profile as usize] = TraceProfile { pid, tid, begin: time };
                }
                self.chunks.push(TracePiece { profile, time, args });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the index of a profile, and adds it if it is new. A profile without an id is always new.
    fn profile(&mut self, pid: Id, id: Option<Id>, begin: i64) -> Result<u32> {
        if let Some(&number) = id.and_then(|id| self.numbers.get(&(pid, id))) {
            return Ok(number);
        }
        let number = u32::try_from(self.profiles.len()).map_err(|_| Error::malformed("it has too many profiles"))?;
        self.profiles.push(TraceProfile { pid, tid: None, begin });
        if let Some(id) = id {
            self.numbers.insert((pid, id), number);
        }
        Ok(number)
    }

    /// Adds the samples of all profiles.
    fn write(
        self,
        list: Json<'t>,
        options: &LoadOptions,
        size: usize,
        builder: &mut ProfileBuilder,
    ) -> Result<Vec<String>> {
        let first = self.profiles.iter().map(|profile| profile.begin).min();
        let Some(start) = first.or_else(|| self.torch.start()) else { return Err(without_profile()) };
        let mut timeline = match &options.time {
            Some(window) => Some(Timeline::with_events(window, None, || events(list, start))?),
            None => None,
        };
        let Trace { profiles, chunks, names, torch, .. } = self;
        let labels = ThreadLabels::new(&names, builder);
        let notes = if profiles.is_empty() {
            torch.write(start, timeline.as_mut(), &labels, size, builder).map(|()| Vec::new())?
        } else {
            let mut writer = ProfileWriter { profiles, start, labels, budget: StackBudget::for_input(size), builder };
            writer.write(chunks, timeline.as_mut())?
        };
        match timeline {
            Some(timeline) => timeline.finish(builder.header()).map(|()| notes),
            None => Ok(notes),
        }
    }
}

/// Adds the samples of CPU profiles.
struct ProfileWriter<'w> {
    profiles: Vec<TraceProfile>,
    /// The start of the first profile.
    start: i64,
    labels: ThreadLabels<'w>,
    budget: StackBudget,
    builder: &'w mut ProfileBuilder,
}

impl ProfileWriter<'_> {
    /// Adds the samples in all pieces, and returns warnings.
    fn write(&mut self, mut chunks: Vec<TracePiece<'_>>, mut timeline: Option<&mut Timeline>) -> Result<Vec<String>> {
        // Events are in the order in which threads delivered them.
        chunks.sort_by_key(|chunk| (self.profiles[chunk.profile as usize].begin, chunk.profile, chunk.time));
        add_types(true, self.builder);
        // The time until which a profile of each thread was read.
        let mut ends: HashMap<(Id, Id), i64> = HashMap::default();
        let (mut duration, mut n_read, mut n_overlapping, mut n_without_thread) = (0, 0u64, 0u64, 0u64);
        for chunks in chunks.chunk_by(|a, b| a.profile == b.profile) {
            let profile = &self.profiles[chunks[0].profile as usize];
            let place = chunks[0].args.offset();
            let too_large = || too_large().at(place);
            let pieces = ProfilePieces::read(chunks)?;
            if pieces.ticks.is_empty() {
                continue;
            }
            let begin = profile.begin.checked_sub(self.start).ok_or_else(too_large)?;
            let thread = profile.tid.map(|tid| (profile.pid, tid));
            if thread.and_then(|thread| ends.get(&thread)).is_some_and(|&end| begin < end) {
                n_overlapping += 1;
                continue;
            }
            let (nodes, ids, _) = read_nodes(&pieces.nodes, self.builder).map_err(|e| e.at(place))?;
            let mut times = NodeTimes::new(&nodes, &ids, begin, timeline.as_deref_mut());
            let duration_of_pieces = pieces.duration().map_err(|e| e.at(place))?;
            let length = times.add_up(&pieces.ticks, duration_of_pieces).map_err(|e| e.at(place))?;
            let end = begin.checked_add(length).ok_or_else(too_large)?;
            match thread {
                Some(thread) => _ = ends.insert(thread, end),
                None => n_without_thread += 1,
            }
            (duration, n_read) = (end.max(duration), n_read + 1);
            let labels = self.labels.of(profile.pid, profile.tid);
            write_nodes(&nodes, [&times.counts, &times.nanos], true, &labels, &mut self.budget, self.builder)?;
        }
        if n_read == 0 {
            return Err(without_profile());
        }
        self.builder.header().duration_nanos = duration;
        let overlapping = format!(
            "{n_overlapping} of its CPU profiles began while another profile of the same thread was recorded; they were \
             left out, because their times would count twice"
        );
        let without_thread = format!(
            "the threads of {n_without_thread} of its CPU profiles are unknown, because the trace lost their first event"
        );
        let notes = [(n_overlapping, overlapping), (n_without_thread, without_thread)];
        Ok(notes.into_iter().filter(|(n, _)| *n > 0).map(|(_, note)| note).collect())
    }
}

/// The parts of a CPU profile in its events.
#[derive(Default)]
struct ProfilePieces<'t> {
    nodes: Vec<Json<'t>>,
    ticks: Vec<SampleLists<'t>>,
    start: Option<Json<'t>>,
    end: Option<Json<'t>>,
}

impl<'t> ProfilePieces<'t> {
    fn read(chunks: &[TracePiece<'t>]) -> Result<ProfilePieces<'t>> {
        let mut pieces = ProfilePieces::default();
        for chunk in chunks {
            let [Some(mut data)] = { chunk.args }.members(["data"])? else { continue };
            let place = data.offset();
            let [profile, deltas, start, end] = data.members(["cpuProfile", "timeDeltas", "startTime", "endTime"])?;
            // Whole profiles have their times inside.
            let names = ["nodes", "samples", "timeDeltas", "startTime", "endTime"];
            let [nodes, samples, inner_deltas, inner_start, inner_end] =
                profile.map(|mut profile| profile.members(names)).transpose()?.unwrap_or_default();
            pieces.nodes.extend(nodes);
            pieces.start = pieces.start.or(start).or(inner_start);
            pieces.end = end.or(inner_end).or(pieces.end);
            match (samples, deltas.or(inner_deltas)) {
                (Some(samples), Some(deltas)) => pieces.ticks.push((samples, deltas)),
                (None, None) => {}
                (None, Some(_)) => return Err(Error::malformed("it has `timeDeltas` without `samples`").at(place)),
                (Some(_), None) => return Err(Error::malformed("it has `samples` without `timeDeltas`").at(place)),
            }
        }
        Ok(pieces)
    }

    /// Returns the time from start to end, if both are known. Their clock may differ from the clock of events.
    fn duration(&self) -> Result<Option<i64>> {
        let (Some(start), Some(end)) = (self.start, self.end) else { return Ok(None) };
        Ok(Some(nanos(end)?.checked_sub(nanos(start)?).ok_or_else(too_large)?.max(0)))
    }
}

/// The names of threads and processes.
#[derive(Default)]
struct ThreadNames {
    threads: HashMap<(Id, Id), StringId>,
    processes: HashMap<Id, StringId>,
}

/// The labels of threads.
pub(super) struct ThreadLabels<'n> {
    names: &'n ThreadNames,
    keys: [StringId; 4],
}

impl<'n> ThreadLabels<'n> {
    fn new(names: &'n ThreadNames, builder: &mut ProfileBuilder) -> ThreadLabels<'n> {
        ThreadLabels { names, keys: ["thread", "process", "pid", "tid"].map(|key| builder.string(key)) }
    }

    /// Returns the labels of a thread. Unknown names and ids are left out.
    pub fn of(&self, pid: Id, tid: Option<Id>) -> Vec<Label> {
        let text = |name: Option<&StringId>| name.map(|&name| LabelValue::Text(name));
        let thread = tid.and_then(|tid| text(self.names.threads.get(&(pid, tid))));
        let values = [thread, text(self.names.processes.get(&pid)), Some(pid), tid];
        let known = values.into_iter().zip(self.keys).filter_map(|(value, key)| Some(Label { key, value: value? }));
        known.filter(|label| label.value != LabelValue::Text(StringId::EMPTY)).collect()
    }
}

/// Returns the times of all events since the start of the profiles.
fn events(list: Json<'_>, start: i64) -> Result<Events> {
    let mut events = Events::default();
    each_event(list, |[name, _, phase, _, _, _, time, ..]| {
        // Events of this phase name threads, and lack a time.
        let is_about = phase.is_some_and(|phase| text_of(phase).is_ok_and(|phase| *phase == *b"M"));
        if let (Some(name), Some(time), false) = (name, time, is_about) {
            events.see(&text_of(name)?, nanos(time)?.checked_sub(start).ok_or_else(too_large)?);
        }
        Ok(())
    })?;
    Ok(events)
}

fn without_profile() -> Error {
    let detail = "this is a trace in Chrome's format without samples of a CPU profile; record it with JavaScript samples \
                  in DevTools, with the category disabled-by-default-v8.cpu_profiler, or in torch.profiler with_stack=True; \
                  other traces can be opened in https://www.speedscope.app and exported";
    Error::new(ErrorKind::OtherFormat, detail)
}

/// Reads the id of a process, a thread or a profile. A text that is a number becomes one; a missing id is empty.
fn read_id(place: Option<Json<'_>>, builder: &mut ProfileBuilder) -> Result<Id> {
    let Some(mut json) = place else { return Ok(LabelValue::Text(StringId::EMPTY)) };
    let text = match json.kind()? {
        JsonKind::Number => Cow::Borrowed(json.number()?.text()),
        _ => json.string()?.bytes(),
    };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    Ok(match number {
        Some(number) => LabelValue::Number(number, StringId::EMPTY),
        None => LabelValue::Text(builder.string(&text)),
    })
}

fn text_of(mut json: Json<'_>) -> Result<Cow<'_, [u8]>> {
    Ok(json.string()?.bytes())
}

/// Reads a time in microseconds.
fn nanos(mut json: Json<'_>) -> Result<i64> {
    Ok(json.number()?.scaled(MICROSECONDS)?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;
    use pprofdiff_profile::Profile;

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    fn node(id: u32, parent: u32, name: &str) -> String {
        let parent = if parent == 0 { String::new() } else { format!(r#","parent":{parent}"#) };
        format!(r#"{{"id":{id}{parent},"callFrame":{{"functionName":"{name}","scriptId":0,"codeType":"JS"}}}}"#)
    }

    fn event(name: &str, ids: &str, time: u32, args: &str) -> String {
        format!(r#"{{"args":{args},"cat":"x","name":"{name}","ph":"P",{ids},"ts":{time}}}"#)
    }

    fn chunk(ids: &str, time: u32, nodes: &[String], samples: &str, deltas: &str) -> String {
        let nodes = nodes.join(",");
        let data = format!(
            r#"{{"cpuProfile":{{"nodes":[{nodes}],"samples":[{samples}]}},"timeDeltas":[{deltas}],"lines":[1]}}"#
        );
        event("ProfileChunk", ids, time, &format!(r#"{{"data":{data}}}"#))
    }

    fn head(ids: &str, time: u32) -> String {
        event("Profile", ids, time, &format!(r#"{{"data":{{"startTime":{}}}}}"#, time - 2))
    }

    const MAIN: &str = r#""pid":5,"tid":6,"id":"0x1""#;
    /// The pieces of the main thread's profile come from another thread.
    const PIECE: &str = r#""pid":5,"tid":9,"id":"0x1""#;

    /// A profile of `f`, which calls `g`: `f` for 20 us, `g` for 30 us, and idle time for 10 us, until the end.
    fn main_thread() -> Vec<String> {
        let first = [node(1, 0, "(root)"), node(2, 1, "(idle)"), node(3, 1, "f")];
        let end = event("ProfileChunk", PIECE, 170, r#"{"data":{"endTime":168}}"#);
        vec![
            head(MAIN, 100),
            // Pieces are sorted by their times.
            chunk(PIECE, 160, &[node(4, 3, "g")], "4,2", "20,30"),
            chunk(PIECE, 130, &first, "3", "10"),
            end,
        ]
    }

    #[test]
    fn pieces_of_a_profile_are_joined() {
        let names = [
            event("thread_name", r#""pid":5,"tid":6"#, 0, r#"{"name":"main"}"#),
            event("process_name", r#""pid":"5","tid":0"#, 0, r#"{"name":"app"}"#),
        ];
        let events = [&main_thread()[..], &names].concat().join(",\n");
        let expected = [
            "(idle) thread=main process=app pid=5 tid=6: 0 10000 0",
            "f thread=main process=app pid=5 tid=6: 1 20000 20000",
            "f|g thread=main process=app pid=5 tid=6: 1 30000 30000",
        ];
        for text in [format!("[{events}]"), format!(r#"{{"traceEvents":[{events}],"metadata":{{}}}}"#)] {
            let p = load(&text).unwrap();
            assert_eq!(rows(&p), expected, "{text}");
            assert_eq!((p.duration_nanos(), p.warnings()), (70_000, vec![]));
            assert_eq!(p.default_sample_type(), Some(2));
        }
    }

    #[test]
    fn profiles_of_other_threads_and_processes_are_added() {
        // A worker that begins 50 us later, in another process with the same id. Its last sample lasts for the mean.
        let worker = |ids: &str, time: u32| {
            let nodes = [node(1, 0, "(root)"), node(2, 1, "w")];
            [head(ids, time), chunk(ids, time + 9, &nodes, "2,2,2", "1,10,12")]
        };
        let all = [&main_thread()[..], &worker(r#""pid":7,"tid":8,"id":"0x1""#, 150)].concat();
        let p = load(&format!("[{}]", all.join(","))).unwrap();
        assert_eq!(rows(&p)[3], "w pid=7 tid=8: 3 33000 33000");
        assert_eq!(p.duration_nanos(), 84_000);
        let part = |window: &str| {
            let options = LoadOptions::default().with_time(window.parse().unwrap());
            rows(&crate::from_bytes("in", format!("[{}]", all.join(",")).as_bytes(), &options).unwrap())
        };
        let expected = ["(idle) pid=5 tid=6: 0 5000 0", "f|g pid=5 tid=6: 0 5000 5000", "w pid=7 tid=8: 1 10000 10000"];
        assert_eq!(part("55us..65us"), expected);
        // Another profile of the main thread: read if it begins after the end of the first one.
        for (time, n, warning) in [(120, 3, "1 of its CPU profiles began while another"), (170, 4, "")] {
            let all = [&main_thread()[..], &worker(r#""pid":5,"tid":6,"id":"0x2""#, time)].concat();
            let p = load(&format!("[{}]", all.join(","))).unwrap();
            assert_eq!((p.n_samples(), p.warnings().len()), (n, usize::from(n == 3)));
            assert!(p.warnings().iter().all(|w| w.contains(warning)), "{:?}", p.warnings());
        }
        // Without its first event, the thread is unknown.
        let p = load(&format!("[{}]", main_thread()[1..].join(","))).unwrap();
        assert_eq!(rows(&p)[1], "f pid=5: 1 20000 20000");
        assert!(p.warnings()[0].contains("the threads of 1 of its CPU profiles are unknown"), "{:?}", p.warnings());
    }

    #[test]
    fn a_whole_profile_in_one_event_is_read() {
        let nodes = [node(1, 0, "(root)"), node(2, 1, "f")].join(",");
        let profile = format!(r#"{{"nodes":[{nodes}],"samples":[2,2],"timeDeltas":[0,5],"startTime":1,"endTime":11}}"#);
        let args = format!(r#"{{"data":{{"cpuProfile":{profile}}}}}"#);
        let p = load(&format!("[{}]", event("CpuProfile", r#""pid":1,"tid":2"#, 3, &args))).unwrap();
        assert_eq!(rows(&p), ["f pid=1 tid=2: 2 10000 10000"]);
    }

    #[test]
    fn a_window_may_begin_at_an_event() {
        let mark = event("load", r#""pid":5,"tid":6"#, 130, "{}");
        let text = format!("[{mark},{}]", main_thread().join(","));
        let options = LoadOptions::default().with_time("load..".parse().unwrap());
        let p = crate::from_bytes("in", text.as_bytes(), &options).unwrap();
        assert_eq!(rows(&p), ["(idle) pid=5 tid=6: 0 10000 0", "f|g pid=5 tid=6: 1 30000 30000"]);
    }

    #[test]
    fn errors_of_traces_name_the_record() {
        let nodes = [node(1, 0, "(root)")];
        for (events, words) in [
            (vec![], "this is a trace in Chrome's format without samples"),
            (vec![head(MAIN, 100)], "without samples of a CPU profile"),
            (vec![chunk(PIECE, 5, &nodes, "1,1", "5")], "sample 1: `timeDeltas` has no time for this sample"),
            (vec![chunk(PIECE, 5, &nodes, "1", "5,6")], "`timeDeltas` has more elements than `samples`"),
            (vec![chunk(PIECE, 5, &nodes, "9", "5")], "sample 0: unknown node id 9"),
            (vec![chunk(PIECE, 5, &[node(2, 1, "f")], "2", "5")], "node 0: unknown node id 1"),
            (
                vec![event("ProfileChunk", PIECE, 1, r#"{"data":{"timeDeltas":[1]}}"#)],
                "it has `timeDeltas` without `samples`",
            ),
            (
                vec![event("ProfileChunk", PIECE, 1, r#"{"data":{"cpuProfile":{"samples":[1]}}}"#)],
                "it has `samples` without `timeDeltas`",
            ),
            (vec!["1".to_owned()], "event 0: expected an object, not '1'"),
            (vec![event("Profile", r#""pid":[],"id":1"#, 1, "{}")], "event 0: expected a string, not '['"),
        ] {
            let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
            let error = load(&text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.offset().is_some() || error.kind() == ErrorKind::OtherFormat, "{text}: {error}");
        }
        let whole = format!("[{}]", main_thread().join(","));
        let options = LoadOptions::default().with_input_format("chrome-trace").unwrap();
        for end in 1..whole.len() {
            let error = crate::from_bytes("in", &whole.as_bytes()[..end], &options).unwrap_err();
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
    }

    #[test]
    fn traces_are_recognised_by_their_list_of_events() {
        for (text, expected) in [
            (r#"{"traceEvents":[{"#, true),
            (r#"{"displayTimeUnit":"ms","otherData":{},"traceEvents":[]}"#, true),
            (
                "{\"metadata\": {\n  \"source\": \"DevTools\",\n  \"dataOrigin\": \"TraceEvents\",\n  \"sourceMaps\": [",
                true,
            ),
            (r#"[{"name":"a","ph":"M","ts":0"#, true),
            (r#" [ {"ts":0,"ph":"M""#, true),
            (r#"{"metadata":{"source":"x"}}"#, false),
            (r#"{"x":{"traceEvents":[]}}"#, false),
            (r#"[["ph","ts"]]"#, false),
            (r#"[{"ph":1}]"#, false),
        ] {
            assert_eq!(recognises(text.as_bytes(), &json::keys(text.as_bytes())), expected, "{text}");
        }
    }
}
