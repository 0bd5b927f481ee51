//! Profiles of the Firefox Profiler in its "processed" format, as the profiler saves them and as samply and other tools
//! write them. `src/types/profile.ts` of <https://github.com/firefox-devtools/profiler> describes the types.
//!
//! A profile has threads with samples, and tables that refer to each other by index: a stack is a frame and a caller
//! stack, a frame refers to a function, and all names are in one list of strings. Each thread has its own tables, or,
//! since version 60, all threads share them (`shared`). Strings were shared earlier (since 56), so the reader looks for
//! each table in both places. Later versions made more changes: files have a table since 58, missing numbers may be -1
//! since 65, stacks store the distance to their caller since 66, and frames refer to a library since 70.
//!
//! - A sample counts 1, or its weight: `samples`, `time/nanoseconds` or `space/bytes`, depending on the thread.
//! - The CPU time of the thread since the previous sample becomes `cpu/nanoseconds`, if it is recorded in units of
//!   time.
//! - A time window selects the samples by their times (`time`, or `timeDeltas`), with the CPU time before each of them.
//!   It may begin or end with a marker (`markers.rs`).
//! - `thread`, `process`, `pid` and `tid` become labels.
//! - A frame gets its function's file, its own line and column, and its library as the mapping. A frame without a
//!   symbol has an address as its name. It keeps the address relative to the library's beginning, so that binaries can
//!   name it.
//!
//! Not read: other markers, counters, times (except for a time window), samples without a stack (nothing ran),
//! addresses of frames with a name, and recorded allocations.

mod markers;
mod tables;

use crate::InputFormat;
use crate::LoadOptions;
use crate::kit::json::{self, Json, JsonKind};
use crate::kit::tree::{StackBudget, TextBudget, TreeNode, ValueTree, too_large};
use pprofdiff_profile::TimeWindow;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::Timeline;
use pprofdiff_profile::{Error, ErrorKind, Result};
use pprofdiff_profile::{Profile, Sampled};
use tables::{FirefoxStacks, Libraries, NONE, TablePositions};

pub(crate) const FIREFOX: InputFormat = InputFormat {
    name: "firefox",
    about: "a profile of the Firefox profiler, samply's too",
    has_times: true,
    has_events: true,
    recognises: |head| {
        json::keys(head).iter().any(|key| **key == *b"meta")
            && ["preprocessedProfileVersion", "\"markerSchema\"", "\"stackwalk\""]
                .iter()
                .any(|word| json::contains(head, word))
    },
    read,
};

/// Milliseconds and microseconds in nanoseconds, as powers of ten.
const MILLISECONDS: i64 = 6;
const MICROSECONDS: i64 = 3;

/// Sample types, in the order of the profile. The weights of a thread have one of the first three types.
const COLUMNS: [(&str, &str); 4] =
    [("samples", "count"), ("time", "nanoseconds"), ("space", "bytes"), ("cpu", "nanoseconds")];
const SAMPLES: usize = 0;
const TIME: usize = 1;
const SPACE: usize = 2;
const CPU: usize = 3;

/// The key of a sum of samples: a sample type and the index of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FirefoxRoot {
    column: u32,
    thread: u32,
}

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let mut file = FirefoxFile {
        builder: ProfileBuilder::new(),
        tree: ValueTree::new(),
        threads: Vec::new(),
        used: [false; COLUMNS.len()],
        sampled: [Sampled::default(); COLUMNS.len()],
        cpu_power: None,
        start: None,
        timeline: None,
        budget: StackBudget::for_input(text.len()),
        texts: TextBudget::for_input(text.len()),
    };
    file.read(&text, options.time.as_ref())?;
    let builder = file.finish(text.len())?;
    drop(text);
    builder.build(name)
}

struct FirefoxFile {
    builder: ProfileBuilder,
    tree: ValueTree<FirefoxRoot>,
    threads: Vec<Thread>,
    /// True for each column with samples, inside or outside the time window.
    used: [bool; COLUMNS.len()],
    /// The statistics of each column.
    sampled: [Sampled; COLUMNS.len()],
    /// The unit of CPU times in nanoseconds, as a power of ten, or `None` if the unit is unknown or not a unit of time,
    /// such as CPU cycles.
    cpu_power: Option<i64>,
    /// The time when the recording began, in nanoseconds on the clock of the samples. Without this time in the file, a
    /// time window sets it to the time of the first sample.
    start: Option<i64>,
    /// The time window to read, if the caller set one.
    timeline: Option<Timeline>,
    /// The limit for stacks that threads share, because each thread walks them again.
    budget: StackBudget,
    texts: TextBudget,
}

/// The labels of a thread. Each of them may be missing.
struct Thread {
    name: StringId,
    process: StringId,
    /// The ids of the process and of the thread.
    ids: [Option<LabelValue>; 2],
}

impl FirefoxFile {
    fn read(&mut self, text: &[u8], window: Option<&TimeWindow>) -> Result<()> {
        let mut json = Json::new(text);
        let [meta, libs, shared, threads] = json.members(["meta", "libs", "shared", "threads"])?;
        json.end()?;
        let Some(mut meta) = meta else { return Err(Error::malformed("it has no `meta`")) };
        self.read_meta(&mut meta)?;
        let libraries = Libraries::read(libs, &mut self.builder)?;
        let shared = TablePositions::read(shared)?;
        let mut shared_stacks = None;
        let Some(mut threads) = threads else { return Err(Error::malformed("it has no `threads`")) };
        if let Some(window) = window {
            self.begin_timeline(window, threads, &shared)?;
        }
        let mut array = threads.array()?;
        while threads.element(&mut array)? {
            let number = self.threads.len();
            let mut read_next = || {
                let tables = TablePositions::read(Some(threads))?;
                if tables.has_stacks() {
                    let stacks =
                        FirefoxStacks::read(&tables.or(&shared), &libraries, &mut self.builder, &mut self.texts)?;
                    return self.read_thread(&mut threads, &stacks);
                }
                if shared_stacks.is_none() {
                    shared_stacks = Some(FirefoxStacks::read(&shared, &libraries, &mut self.builder, &mut self.texts)?);
                }
                shared_stacks.as_ref().map_or(Ok(()), |stacks| self.read_thread(&mut threads, stacks))
            };
            read_next().map_err(|e| e.in_record(|| format!("thread {number}")))?;
        }
        Ok(())
    }

    /// Sets the time window. Without a start time in the file, the recording begins with the first sample.
    fn begin_timeline(&mut self, window: &TimeWindow, all: Json<'_>, shared: &TablePositions<'_>) -> Result<()> {
        let mut threads = all;
        let (mut array, mut first) = (threads.array()?, None);
        while self.start.is_none() && threads.element(&mut array)? {
            let [samples] = threads.members(["samples"])?;
            let Some(mut times) = samples.map(SampleTimes::begin).transpose()? else { continue };
            while let Some(time) = times.next()? {
                first = Some(first.map_or(time, |first: i64| first.min(time)));
            }
        }
        let began = self.builder.header().time_nanos;
        // Without `startTime` of the recording, times of day are unknown. `startTime` is the time of day when sample
        // times are 0, so it is moved to the start of the recording.
        let began = (began != 0).then(|| began.saturating_add(first.unwrap_or(0)));
        self.start = self.start.or(first);
        let start = self.start.unwrap_or(0);
        self.timeline = Some(Timeline::with_events(window, began, || markers::first_events(all, shared, start))?);
        Ok(())
    }

    /// Reads the times of the recording and the unit of CPU times.
    ///
    /// # Errors
    /// The profile is in Firefox's raw format, or a time is malformed or too large.
    fn read_meta(&mut self, meta: &mut Json<'_>) -> Result<()> {
        let begin = meta.offset();
        let names =
            ["preprocessedProfileVersion", "startTime", "profilingStartTime", "profilingEndTime", "sampleUnits"];
        let [version, start, from, until, units] = meta.members(names)?;
        if version.is_none() {
            let detail = "it is Firefox's raw format, not the format of the Firefox Profiler; open it at \
                          profiler.firefox.com and save it";
            return Err(Error::new(ErrorKind::OtherFormat, detail).at(begin));
        }
        let time = |place: Option<Json<'_>>| {
            place.map(|mut json| Ok::<_, Error>(json.number()?.scaled(MILLISECONDS)?.0)).transpose()
        };
        let (start, from, until) = (time(start)?, time(from)?, time(until)?);
        self.start = from;
        self.builder.header().time_nanos = match (start, from) {
            (Some(start), from) => start.checked_add(from.unwrap_or(0)).ok_or_else(too_large)?,
            (None, _) => 0,
        };
        if let (Some(from), Some(until)) = (from, until) {
            self.builder.header().duration_nanos = until.checked_sub(from).ok_or_else(too_large)?.max(0);
        }
        if let Some(mut units) = units
            && let [Some(mut unit)] = units.members(["threadCPUDelta"])?
        {
            self.cpu_power = match &*unit.string()?.bytes() {
                b"ns" => Some(0),
                b"\xc2\xb5s" | b"us" => Some(MICROSECONDS),
                _ => None,
            };
        }
        Ok(())
    }

    fn read_thread(&mut self, json: &mut Json<'_>, stacks: &FirefoxStacks) -> Result<()> {
        let [name, process, pid, tid, samples] = json.members(["name", "processName", "pid", "tid", "samples"])?;
        let mut text = |place: Option<Json<'_>>| match place {
            Some(mut json) => Ok::<_, Error>(self.builder.string(json.string()?.bytes())),
            None => Ok(StringId::EMPTY),
        };
        let (name, process) = (text(name)?, text(process)?);
        let ids = [self.id(pid)?, self.id(tid)?];
        let thread = u32::try_from(self.threads.len()).map_err(|_| Error::malformed("it has too many threads"))?;
        self.threads.push(Thread { name, process, ids });
        match samples {
            Some(samples) => self.read_samples(samples, thread, stacks),
            None => Ok(()),
        }
    }

    /// Reads the id of a process or thread, if there is one: a number, or a string, which becomes a number if it is
    /// one.
    fn id(&mut self, place: Option<Json<'_>>) -> Result<Option<LabelValue>> {
        let Some(mut json) = place else { return Ok(None) };
        if json.kind()? == JsonKind::Number {
            return Ok(Some(LabelValue::Number(json.number()?.whole()?, StringId::EMPTY)));
        }
        let text = json.string()?.bytes();
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        Ok(Some(match number {
            Some(number) => LabelValue::Number(number, StringId::EMPTY),
            None => LabelValue::Text(self.builder.string(&text)),
        }))
    }

    fn read_samples(&mut self, mut samples: Json<'_>, thread: u32, stacks: &FirefoxStacks) -> Result<()> {
        let begin = samples.offset();
        let mut times = self.timeline.as_ref().map(|_| SampleTimes::begin(samples)).transpose()?;
        let [stack, weights, kind, cpu] = samples.members(["stack", "weight", "weightType", "threadCPUDelta"])?;
        let Some(mut stack) = stack else { return Err(Error::malformed("its samples have no `stack`").at(begin)) };
        let column = match kind.map(|mut kind| Ok::<_, Error>(kind.string()?.bytes())).transpose()?.as_deref() {
            None | Some(b"samples") => SAMPLES,
            Some(b"tracing-ms") => TIME,
            Some(b"bytes") => SPACE,
            Some(_) => return Err(Error::malformed("`weightType` has an unknown value").at(begin)),
        };
        let mut weights = weights.map(NumberColumn::begin).transpose()?;
        let mut cpu = cpu.filter(|_| self.cpu_power.is_some()).map(NumberColumn::begin).transpose()?;
        let (mut nodes, mut number) = (HashMap::default(), 0u64);
        let mut array = stack.array()?;
        while stack.element(&mut array)? {
            let mut read_next = || -> Result<()> {
                let place = stack.offset();
                let weight = match &mut weights {
                    Some(weights) => weights.next(if column == TIME { MILLISECONDS } else { 0 })?,
                    None => 1,
                };
                let time = match (&mut cpu, self.cpu_power) {
                    (Some(cpu), Some(power)) => cpu.next(power)?,
                    _ => 0,
                };
                let taken = times.as_mut().map(SampleTimes::next).transpose()?;
                if stack.null() {
                    return Ok(());
                }
                let stack = stack.number()?.whole()?;
                if stack == -1 {
                    return Ok(());
                }
                // The CPU time before the first sample is unknown.
                let has_cpu = cpu.is_some() && number > 0;
                if let (Some(taken), Some(timeline)) = (taken, &mut self.timeline) {
                    self.used[column] = true;
                    self.used[CPU] |= has_cpu;
                    let taken = taken.ok_or_else(|| Error::malformed("it has no time").at(place))?;
                    if !timeline.contains(taken.checked_sub(self.start.unwrap_or(0)).ok_or_else(too_large)?) {
                        return Ok(());
                    }
                }
                self.add(FirefoxRoot { column: column as u32, thread }, stack, weight, stacks, &mut nodes)
                    .map_err(|e| e.at(place))?;
                if has_cpu {
                    self.add(FirefoxRoot { column: CPU as u32, thread }, stack, time, stacks, &mut nodes)?;
                }
                Ok(())
            };
            read_next().map_err(|e| e.prefixed(&format!("sample {number}: ")))?;
            number += 1;
        }
        Ok(())
    }

    /// Adds a value to the sum of a stack. `nodes` has the nodes of this thread, by column and stack.
    fn add(
        &mut self,
        root: FirefoxRoot,
        stack: i64,
        value: i64,
        stacks: &FirefoxStacks,
        nodes: &mut HashMap<(u32, u32), TreeNode>,
    ) -> Result<()> {
        let stack = stacks.check(stack)?;
        self.used[root.column as usize] = true;
        self.sampled[root.column as usize].add(value);
        // Walks up to the first caller with a node of this thread, and creates the nodes below it on the way back.
        let (mut path, mut current): (Vec<(u32, LocationId)>, u32) = (Vec::new(), stack);
        let mut node = loop {
            if current == NONE {
                break self.tree.root(root);
            }
            if let Some(&node) = nodes.get(&(root.column, current)) {
                break node;
            }
            let (location, caller) = stacks.get(current);
            path.push((current, location));
            current = caller;
        };
        // A node takes much more memory than a frame, so each frame counts twice.
        self.budget.take(2 * path.len(), 0)?;
        for &(stack, location) in path.iter().rev() {
            node = self.tree.child(node, location);
            nodes.insert((root.column, stack), node);
        }
        self.tree.add(node, value)
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let FirefoxFile { mut builder, tree, threads, mut used, sampled, timeline, .. } = self;
        // A profile without samples still gets a sample type.
        used[SAMPLES] |= !used.contains(&true);
        let mut places = [0; COLUMNS.len()];
        let mut n_types = 0;
        for (i, (kind, unit)) in COLUMNS.iter().enumerate().filter(|(i, _)| used[*i]) {
            builder.sample_type(kind, unit);
            if n_types == 0 {
                let default = builder.string(kind);
                builder.header().default_sample_type = default;
            }
            builder.sampled(n_types, sampled[i]);
            places[i] = n_types;
            n_types += 1;
        }
        if let Some(timeline) = timeline {
            timeline.finish(builder.header())?;
        }
        let [thread_key, process_key, pid_key, tid_key] =
            ["thread", "process", "pid", "tid"].map(|key| builder.string(key));
        tree.write(&mut builder, n_types, &mut StackBudget::for_input(size), |root, labels| {
            let thread = &threads[root.thread as usize];
            for (key, text) in [(thread_key, thread.name), (process_key, thread.process)] {
                if text != StringId::EMPTY {
                    labels.push(Label { key, value: LabelValue::Text(text) });
                }
            }
            for (key, id) in [(pid_key, thread.ids[0]), (tid_key, thread.ids[1])] {
                labels.extend(id.map(|value| Label { key, value }));
            }
            (places[root.column as usize], 1)
        })?;
        Ok(builder)
    }
}

/// The times of samples, from a column of times or of time differences.
struct SampleTimes<'t> {
    column: Option<NumberColumn<'t>>,
    /// The last time, for a column of differences.
    sum: Option<i64>,
}

impl<'t> SampleTimes<'t> {
    fn begin(mut samples: Json<'t>) -> Result<SampleTimes<'t>> {
        let [times, deltas] = samples.members(["time", "timeDeltas"])?;
        let sum = deltas.filter(|_| times.is_none()).map(|_| 0);
        Ok(SampleTimes { column: times.or(deltas).map(NumberColumn::begin).transpose()?, sum })
    }

    /// Returns the time of the next sample in nanoseconds, or `None` after the last time and for samples without times.
    fn next(&mut self) -> Result<Option<i64>> {
        let Some(NumberColumn { json, array }) = &mut self.column else { return Ok(None) };
        if !json.element(array)? {
            return Ok(None);
        }
        let time = json.number()?.scaled(MILLISECONDS)?.0;
        match &mut self.sum {
            None => Ok(Some(time)),
            Some(sum) => {
                *sum = sum.checked_add(time).ok_or_else(too_large)?;
                Ok(Some(*sum))
            }
        }
    }
}

/// A column of numbers that is read in step with another.
struct NumberColumn<'t> {
    json: Json<'t>,
    array: json::JsonScope,
}

impl<'t> NumberColumn<'t> {
    fn begin(mut json: Json<'t>) -> Result<NumberColumn<'t>> {
        let array = json.array()?;
        Ok(NumberColumn { json, array })
    }

    /// Returns the next number times `10^power`; `null` counts as 0.
    ///
    /// # Errors
    /// The column has no further number, so it is shorter than the column of stacks.
    fn next(&mut self, power: i64) -> Result<i64> {
        if !self.json.element(&mut self.array)? {
            return Err(Error::malformed("a column of its samples is shorter than `stack`").at(self.json.offset()));
        }
        if self.json.null() { Ok(0) } else { Ok(self.json.number()?.scaled(power)?.0) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    const STRINGS: &str = r#""stringArray":["main","a.c","0x1f","libx.so","draw","b.js"]"#;
    /// `main` calls an unnamed function of a library, and `draw`.
    const FUNCTIONS: &str = r#""funcTable":{"length":3,"name":[0,2,4],"resource":[-1,0,-1],FILES,"lineNumber":[null,null,7]},
        "resourceTable":{"lib":[0],"name":[3],"type":[1],"length":1}"#;
    const STACKS: &str = r#""frameTable":{"func":[0,1,2],"line":[3,null,9],"column":[null,null,5],"address":[-1,31,-1]},
        "stackTable":{"frame":[0,1,2],"prefix":[null,0,0],"length":3}"#;

    fn profile(units: &str, shared: &str, threads: &[String]) -> String {
        let meta = format!(
            r#"{{"interval":1,"startTime":1000.5,"profilingStartTime":2,"profilingEndTime":12.25,{units}"preprocessedProfileVersion":57}}"#
        );
        let libs = r#"[{"name":"libx.so","path":"/lib/libx.so","codeId":"ab12","debugName":"libx.so"}]"#;
        format!(r#"{{"meta":{meta},"libs":{libs}{shared},"threads":[{}]}}"#, threads.join(","))
    }

    fn thread(tables: &str, pid: &str, samples: &str) -> String {
        format!(
            r#"{{"name":"T","processName":"web","pid":{pid},"tid":7,"samples":{{{samples}}},"markers":{{"data":[1]}}{tables}}}"#
        )
    }

    /// Returns the same profile in four layouts: all tables in the thread; shared strings; all tables shared, and files
    /// in a table; the newest layout, with libraries of frames, distances to callers, and -1 for missing numbers.
    fn layouts(units: &str, pid: &str, samples: &str) -> [String; 4] {
        let files = FUNCTIONS.replace("FILES", r#""fileName":[1,null,5]"#);
        let sources = FUNCTIONS.replace("FILES", r#""source":[0,null,1]"#);
        let thread_tables = format!(",{STRINGS},{files},{STACKS}");
        let tables = format!(",{files},{STACKS}");
        let shared =
            format!(r#","shared":{{{STRINGS},{sources},{STACKS},"sources":{{"filename":[1,5],"uuid":[null,null]}}}}"#);
        let newest = shared
            .replace(r#""prefix":[null,0,0]"#, r#""prefixOffset":[0,1,2]"#)
            .replace(r#""resource":[-1,0,-1]"#, r#""resource":[-1,-1,-1]"#)
            .replace(r#""func":[0,1,2]"#, r#""lib":[-1,0,-1],"func":[0,1,2]"#)
            .replace("null", "-1");
        [
            profile(units, "", &[thread(&thread_tables, pid, samples)]),
            profile(units, &format!(r#","shared":{{{STRINGS}}}"#), &[thread(&tables, pid, samples)]),
            profile(units, &shared, &[thread("", pid, samples)]),
            profile(units, &newest, &[thread("", pid, &samples.replace("2,null", "2,-1"))]),
        ]
    }

    #[test]
    fn all_layouts_give_the_same_profile() {
        let samples = r#""stack":[1,2,null,1,0],"time":[1,2,3,4,5],"weight":null,"weightType":"samples""#;
        for text in layouts("", "\"12\"", samples) {
            let p = load(&text).unwrap();
            let labels = "thread=T process=web pid=12 tid=7";
            let expected = [
                format!("main a.c:3 {labels}: 1"),
                format!("main a.c:3|[libx.so] {labels}: 2"),
                format!("main a.c:3|draw b.js:9:5 {labels}: 1"),
            ];
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(rows(&p), expected, "{text}");
            assert_eq!(p.sample_types(), [("samples".to_owned(), "count".to_owned())]);
            assert_eq!((p.header().time_nanos, p.header().duration_nanos), (1_002_500_000, 10_250_000));
            assert_eq!(
                p.mappings().iter().map(|m| (p.text(m.file), p.text(m.build_id))).collect::<Vec<_>>(),
                [("/lib/libx.so".to_owned(), "ab12".to_owned())]
            );
        }
    }

    #[test]
    fn weights_and_cpu_times_have_their_units() {
        let micro = "\"sampleUnits\":{\"time\":\"ms\",\"threadCPUDelta\":\"\u{b5}s\"},";
        for (units, kind, weights, expected, types) in [
            (micro, "samples", "[5,1,9]", ["main a.c:3 L: 5 0", "main a.c:3|draw b.js:9:5 L: 1 20000"], "samples cpu"),
            (
                "\"sampleUnits\":{\"threadCPUDelta\":\"ns\"},",
                "samples",
                "null",
                ["main a.c:3 L: 1 0", "main a.c:3|draw b.js:9:5 L: 1 20"],
                "samples cpu",
            ),
            (
                "\"sampleUnits\":{\"threadCPUDelta\":\"variable CPU cycles\"},",
                "samples",
                "[2,3,9]",
                ["main a.c:3 L: 2", "main a.c:3|draw b.js:9:5 L: 3"],
                "samples",
            ),
            ("", "tracing-ms", "[1.5,2,9]", ["main a.c:3 L: 1500000", "main a.c:3|draw b.js:9:5 L: 2000000"], "time"),
            ("", "bytes", "[1,-2,9]", ["main a.c:3 L: 1", "main a.c:3|draw b.js:9:5 L: -2"], "space"),
        ] {
            let samples =
                format!(r#""stack":[0,2,null],"weight":{weights},"weightType":"{kind}","threadCPUDelta":[70,20,5]"#);
            for text in layouts(units, "\"a-1\"", &samples) {
                let p = load(&text).unwrap();
                let actual: Vec<String> =
                    rows(&p).iter().map(|row| row.replace("thread=T process=web pid=a-1 tid=7", "L")).collect();
                // Samples with values of one type each are separate samples, so they are added up here.
                let mut sums = std::collections::BTreeMap::<&str, Vec<i64>>::new();
                for row in &actual {
                    let (key, values) = row.rsplit_once(": ").unwrap();
                    let values = values.split(' ').map(|v| v.parse::<i64>().unwrap());
                    let sum = sums.entry(key).or_insert_with(|| vec![0; p.sample_types().len()]);
                    sum.iter_mut().zip(values).for_each(|(sum, v)| *sum += v);
                }
                let shown = |(key, values): (&&str, &Vec<i64>)| {
                    format!("{key}: {}", values.iter().map(i64::to_string).collect::<Vec<_>>().join(" "))
                };
                assert_eq!(sums.iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
                assert_eq!(p.sample_types().iter().map(|(kind, _)| &**kind).collect::<Vec<_>>().join(" "), types);
            }
        }
    }

    #[test]
    fn errors_name_the_record() {
        let good = &layouts("", "1", r#""stack":[1],"weight":[1],"weightType":"samples""#)[0];
        for (from, to, words) in [
            ("\"stack\":[1]", "\"stack\":[3]", "thread 0: sample 0: unknown stack 3: there are 3"),
            ("\"stack\":[1]", "\"stack\":[1,1]", "thread 0: sample 1: a column of its samples is shorter"),
            ("\"stack\":[1]", "\"x\":[1]", "thread 0: its samples have no `stack`"),
            ("\"weightType\":\"samples\"", "\"weightType\":\"x\"", "`weightType` has an unknown value"),
            (
                "\"prefix\":[null,0,0]",
                "\"prefix\":[null,1,0]",
                "thread 0: `stackTable`: stack 1 is called by stack 1, but callers must come first",
            ),
            (
                "\"prefix\":[null,0,0]",
                "\"prefix\":[null,0]",
                "thread 0: `stackTable` has 3 numbers in `frame` and 2 in `prefix`",
            ),
            ("\"prefix\":[null,0,0]", "\"prefixOffset\":[0,2,0]", "stack 1 is called by stack 1, but"),
            ("\"prefix\":[null,0,0]", "\"x\":[null,0,0]", "`stackTable` has neither `prefix` nor `prefixOffset`"),
            ("\"frame\":[0,1,2]", "\"frame\":[0,1,3]", "thread 0: `stackTable`: unknown frame 3: there are 3"),
            ("\"func\":[0,1,2]", "\"func\":[0,1,9]", "thread 0: `frameTable`: unknown function 9: there are 3"),
            ("\"name\":[0,2,4]", "\"name\":[0,2,6]", "thread 0: `funcTable`: unknown string 6: there are 6"),
            ("\"preprocessedProfileVersion\":57", "\"stackwalk\":1", "it is Firefox's raw format"),
            ("\"stackTable\"", "\"x\"", "thread 0: it has no `stackTable`"),
            ("\"threads\"", "\"x\"", "it has no `threads`"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = load(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    /// Walking a long stack that many threads share is limited, and so are long names that many functions share.
    #[test]
    fn shared_stacks_are_bounded() {
        let n = 200_000;
        let list = |element: &dyn Fn(usize) -> String| (0..n).map(element).collect::<Vec<_>>().join(",");
        let stacks = format!(
            r#"{STRINGS},"funcTable":{{"name":[0]}},"frameTable":{{"func":[0]}},"stackTable":{{"frame":[{}],"prefix":[null,{}]}}"#,
            list(&|_| "0".into()),
            (0..n - 1).map(|i| i.to_string()).collect::<Vec<_>>().join(","),
        );
        let thread_text = format!(r#"{{"samples":{{"stack":[{}]}}}}"#, n - 1);
        let file =
            |threads: usize| profile("", &format!(r#","shared":{{{stacks}}}"#), &vec![thread_text.clone(); threads]);
        assert_eq!(load(&file(3)).unwrap().n_samples(), 3);
        // A name of a megabyte, shared by a thousand functions.
        let named = |file: &dyn Fn(usize) -> usize| {
            let list = |element: &dyn Fn(usize) -> String| (0..1000).map(element).collect::<Vec<_>>().join(",");
            let (long, files) = ("x".repeat(1 << 20), list(&|i| format!("\"{i}\"")));
            let functions =
                format!(r#""name":[{}],"fileName":[{}]"#, list(&|_| "0".into()), list(&|i| file(i).to_string()));
            let shared =
                format!(r#","shared":{{"stringArray":["{long}",{files}],"funcTable":{{{functions}}},{STACKS}}}"#);
            load(&profile("", &shared, &[thread("", "1", r#""stack":[0]"#)]))
        };
        assert_eq!(named(&|_| 1).unwrap().n_samples(), 1);
        let error = named(&|i| 1 + i).unwrap_err();
        assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("names are too long"), "{error}");
        let error = load(&file(100)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}
