//! The text output of `perf script`, which prints the samples that Linux's perf recorded.
//!
//! ```text
//! comm  pid/tid [cpu] time:  period event:
//!         address symbol+0xoffset (binary)
//!         address symbol (inlined)
//! ```
//!
//! A sample is a header line, whose fields `-F` selects, then its frames from the leaf, then a blank line. Without call
//! graphs, the single frame is on the header line. The form is that of perf's `builtin-script.c`; its manual:
//! <https://man7.org/linux/man-pages/man1/perf-script.1.html>.
//!
//! - An event becomes a sample type with the event's name and modifiers, such as `cycles:u/count`. The clocks
//!   `cpu-clock` and `task-clock` count `nanoseconds`. The value of a sample is its period. If perf does not print
//!   periods, each sample counts 1, as in `cycles:u samples/count`. If perf does not print events either,
//!   `--input-type` sets the type.
//! - Clocks, cycles and instructions come first among the sample types. The others follow by name. The first type is
//!   the default.
//! - `comm`, `pid` and `tid` become labels; `pid` and `tid` are numbers. perf prints the process only if it is
//!   selected.
//! - A frame becomes a function in the mapping of its binary, with file and line after `-F +srcline`. A frame without a
//!   symbol gets the name of its binary, `[libc.so.6]`. Inlined frames have the address of the frame that contains
//!   them, and share its location.
//!
//! The times of a time window count from the first sample. A window may begin or end with the first sample of an event.
//!
//! These fields do not become part of the profile: addresses, offsets in functions (they differ from run to run),
//! times, CPUs, and the fields of tracepoints. Addresses serve only to find the frame that contains an inlined frame,
//! and times only to select a time window.

mod parse;

use crate::LoadOptions;
use crate::kit::lines::{each_line, lines};
use crate::kit::tree::{StackBudget, ValueTree};
use crate::table::{InputFormat, is_text, quoted};
use parse::{SampleHeader, ScriptFrame, is_comment, is_indented, is_record, number, source_line};
use pprofdiff_profile::Profile;
use pprofdiff_profile::Sampled;
use pprofdiff_profile::builder::{BuilderLine, LocationId, MappingId, ProfileBuilder};
use pprofdiff_profile::columns::{Mapping, StringId};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::{Events, Timeline, decimal};
use pprofdiff_profile::short_lists::sort_by_key;
use pprofdiff_profile::{Error, Result};

pub(crate) const PERF_SCRIPT: InputFormat = InputFormat {
    name: "perf-script",
    about: "the text of perf script",
    has_times: true,
    has_events: true,
    recognises,
    read,
};

/// Returns true if the text begins with a sample that ends in a frame or is followed by a frame. If the sample has an
/// event, another sample with an event, or nothing, may also follow. Comments, and up to 999 other records before the
/// sample, are skipped.
fn recognises(head: &[u8]) -> bool {
    if !is_text(head) {
        return false;
    }
    let mut lines = lines(head).filter(|(_, line)| !line.is_empty() && !is_comment(line)).map(|(_, line)| line);
    let Some(header) = lines.by_ref().take(1000).find(|line| !is_record(line)).and_then(SampleHeader::parse) else {
        return false;
    };
    let next = lines.find(|line| !is_record(line));
    let is_frame = |line: &[u8]| is_indented(line) && ScriptFrame::parse(line).is_some();
    ScriptFrame::parse_on_header(header.rest).is_some()
        || next.is_some_and(is_frame)
        || header.event.is_some()
            && next.is_none_or(|next| SampleHeader::parse(next).is_some_and(|h| h.event.is_some()))
}

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let mut script = Script::new(options);
    if let Some(window) = &options.time {
        script.timeline = Some(Timeline::with_events(window, None, || first_events(&text, options))?);
    }
    script.read(&text)?;
    if script.has_samples && !script.names_something {
        let none = "no sample has an event or a frame; is this the text output of perf script?";
        return Err(Error::malformed(none).at(text.len()));
    }
    let builder = script.finish(text.len())?;
    drop(text);
    builder.build(name)
}

/// Returns the time of the first sample of each event, in nanoseconds after the first sample of all. The whole text is
/// read for this, before it is read again for its samples.
fn first_events(text: &[u8], options: &LoadOptions) -> Result<Events> {
    let mut script = Script { events: Some(Events::default()), ..Script::new(options) };
    script.read(text)?;
    Ok(script.events.unwrap_or_default())
}

/// The key of a sum of samples, in addition to their stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ScriptRoot {
    column: u32,
    comm: StringId,
    pid: Option<i64>,
    tid: i64,
}

/// Returns the sample type and the unit of an event. If `by_period` is true, values are periods, which are nanoseconds
/// for clocks. Otherwise, values are numbers of samples.
pub(crate) fn event_type(event: &str, by_period: bool) -> (String, &'static str) {
    let is_clock = ["cpu-clock", "task-clock"].contains(&event.split(':').next().unwrap_or_default());
    match by_period {
        true => (event.to_owned(), if is_clock { "nanoseconds" } else { "count" }),
        false => (format!("{event} samples"), "count"),
    }
}

/// Events that measure time or work. The event that is most useful for a comparison comes first.
const MAIN_EVENTS: [&str; 5] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles", "instructions"];

/// Returns the columns in an order that does not depend on the order of samples: perf prints samples by time and does
/// not record which event came first in `-e`. Otherwise the default type would be the event that a recording happened
/// to sample first, and two recordings of one program would be compared by different events.
fn stable_order(columns: &[ScriptColumn<'_>]) -> Vec<usize> {
    let rank = |column: &ScriptColumn<'_>| {
        let event = String::from_utf8_lossy(column.event.unwrap_or_default());
        // Hybrid CPUs name an event after the kind of core: `cpu_core/cycles/u`.
        let main = event.split([':', '/']).filter_map(|part| MAIN_EVENTS.iter().position(|main| *main == part)).min();
        main.unwrap_or(MAIN_EVENTS.len())
    };
    let mut order: Vec<usize> = (0..columns.len()).collect();
    sort_by_key(&mut order, |&column| (rank(&columns[column]), columns[column].event, !columns[column].by_period));
    order
}

/// The meaning of a column: an event, counted by its periods or by its samples.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ScriptColumn<'t> {
    /// The event, or `None` if perf did not print it.
    event: Option<&'t [u8]>,
    by_period: bool,
}

struct Script<'t> {
    builder: ProfileBuilder,
    /// The sample type and unit of samples without an event (`--input-type`).
    input_type: (String, String),
    tree: ValueTree<ScriptRoot>,
    columns: Vec<ScriptColumn<'t>>,
    /// The statistics of each column.
    sampled: Vec<Sampled>,
    by_column: HashMap<ScriptColumn<'t>, u32>,
    mappings: HashMap<&'t [u8], MappingId>,
    /// The locations of frames without inlined frames, by symbol, binary and source line.
    locations: HashMap<[&'t [u8]; 3], LocationId>,
    /// The sample that is being read.
    sample: Option<SampleHeader<'t>>,
    /// The period of this sample, or 1.
    value: i64,
    /// The frames of this sample, from the leaf.
    frames: Vec<ScriptFrame<'t>>,
    root_first: Vec<LocationId>,
    /// The time window to read, if the caller set one.
    timeline: Option<Timeline>,
    /// The time of the first sample in nanoseconds, if times are read.
    first: Option<i64>,
    /// The time of the first sample of each event, if only these times are read.
    events: Option<Events>,
    has_samples: bool,
    /// True if some sample has an event or a frame.
    names_something: bool,
}

impl<'t> Script<'t> {
    fn new(options: &LoadOptions) -> Script<'t> {
        Script {
            builder: ProfileBuilder::new(),
            input_type: options.input_type.clone(),
            tree: ValueTree::new(),
            columns: Vec::new(),
            sampled: Vec::new(),
            by_column: HashMap::default(),
            mappings: HashMap::default(),
            locations: HashMap::default(),
            sample: None,
            value: 0,
            frames: Vec::new(),
            root_first: Vec::new(),
            timeline: None,
            first: None,
            events: None,
            has_samples: false,
            names_something: false,
        }
    }

    fn read(&mut self, text: &'t [u8]) -> Result<()> {
        each_line(text, |_, line| self.line(line))?;
        self.end_sample().map_err(|e| e.in_record(|| "the last sample".to_owned()))
    }

    fn line(&mut self, line: &'t [u8]) -> Result<()> {
        if line.is_empty() {
            return self.end_sample();
        }
        if is_comment(line) {
            return Ok(());
        }
        // perf puts a tab before frames, and blanks before short thread names to align them. A line that begins with a
        // tab is therefore a frame. A line that begins with blanks is a frame unless it is a sample with an event.
        let may_be_frame = self.sample.is_some() && is_indented(line);
        if may_be_frame && line[0] == b'\t' {
            return self.frame(line);
        }
        if is_record(line) {
            return self.end_sample();
        }
        if may_be_frame && SampleHeader::parse(line).is_none_or(|header| header.event.is_none()) {
            return self.frame(line);
        }
        self.end_sample()?;
        let Some(header) = SampleHeader::parse(line) else {
            return Err(Error::malformed(format!(
                "{} is neither a sample of perf script (comm pid/tid time: event:) nor a frame; print it with \
                 perf script -F comm,pid,tid,time,period,event,ip,sym,dso",
                quoted(line.trim_ascii())
            )));
        };
        let too_large = |digits| Error::malformed(format!("{} is more than an int64 holds", quoted(digits)));
        self.value = match header.period {
            Some(digits) => number(digits).ok_or_else(|| too_large(digits))?,
            None => 1,
        };
        self.has_samples = true;
        self.names_something |= header.event.is_some() || !header.rest.is_empty();
        self.sample = Some(header);
        Ok(())
    }

    fn frame(&mut self, line: &'t [u8]) -> Result<()> {
        self.names_something = true;
        if let Some(frame) = ScriptFrame::parse(line) {
            self.frames.push(frame);
            return Ok(());
        }
        // A line that is no frame is the source line of the frame before it, which may be on the header line.
        self.frame_on_header();
        let source = line.trim_ascii();
        match self.frames.last_mut() {
            Some(frame) if frame.source.is_empty() => {
                let inlined = source.strip_suffix(b" (inlined)");
                frame.inlined |= inlined.is_some();
                frame.source = inlined.unwrap_or(source);
                Ok(())
            }
            _ => Err(Error::malformed(format!(
                "{} is not a frame of perf script (address symbol (binary))",
                quoted(line.trim_ascii())
            ))),
        }
    }

    /// Adds the frame on the header line. perf prints it there for recordings without call graphs.
    fn frame_on_header(&mut self) {
        let rest = self.sample.as_ref().map(|header| header.rest).filter(|_| self.frames.is_empty());
        self.frames.extend(rest.and_then(ScriptFrame::parse_on_header));
    }

    /// Adds the sample that is being read, if there is one, to the tree. A sample outside the time window only creates
    /// its column.
    fn end_sample(&mut self) -> Result<()> {
        self.frame_on_header();
        let Some(header) = self.sample.take() else { return Ok(()) };
        let column = ScriptColumn { event: header.event, by_period: header.period.is_some() };
        let next = self.columns.len() as u32;
        let column = *self.by_column.entry(column).or_insert_with(|| {
            self.columns.push(column);
            self.sampled.push(Sampled::default());
            next
        });
        if !self.is_within(&header)? {
            self.frames.clear();
            return Ok(());
        }
        self.root_first.clear();
        // Goes from the outermost frame inwards. Inlined frames come before the frame that contains them.
        let mut end = self.frames.len();
        while end > 0 {
            let outer = self.frames[end - 1];
            let is_inside = |f: &ScriptFrame<'_>| f.inlined && f.address == outer.address && !outer.inlined;
            let inlined = self.frames[..end - 1].iter().rev().take_while(|f| is_inside(f)).count();
            let location = self.location(end - 1 - inlined, end)?;
            self.root_first.push(location);
            end -= 1 + inlined;
        }
        self.frames.clear();
        let comm = self.builder.string(header.comm);
        let mut node = self.tree.root(ScriptRoot { column, comm, pid: header.pid, tid: header.tid });
        for &location in &self.root_first {
            node = self.tree.child(node, location);
        }
        self.sampled[column as usize].add(self.value);
        self.tree.add(node, self.value)
    }

    /// Returns true if the sample is in the time window, or no window is set. perf prints samples by time, so the first
    /// one begins the recording. If only the times of events are read, records the time and returns false.
    ///
    /// # Errors
    /// The sample has no time.
    fn is_within(&mut self, header: &SampleHeader<'_>) -> Result<bool> {
        if self.timeline.is_none() && self.events.is_none() {
            return Ok(true);
        }
        let seconds = header.time.and_then(|time| std::str::from_utf8(time).ok());
        let time = seconds.and_then(|seconds| decimal(seconds, 1_000_000_000)).ok_or_else(|| {
            Error::query(
                "the text has no times; print them with perf script -F comm,pid,tid,time,period,event,ip,sym,dso",
            )
        })?;
        // Neither time is negative, so the difference does not overflow.
        let since_first = time - *self.first.get_or_insert(time);
        if let Some(events) = &mut self.events {
            header.event.into_iter().for_each(|event| events.see(event, since_first));
        }
        Ok(self.timeline.as_mut().is_some_and(|timeline| timeline.contains(since_first)))
    }

    /// Returns the location of the frame before the index `end`, and of the frames from `begin` on, which are inlined
    /// into it.
    fn location(&mut self, begin: usize, end: usize) -> Result<LocationId> {
        let outer = self.frames[end - 1];
        let key = [outer.symbol, outer.binary, outer.source];
        if let (true, Some(&location)) = (end - begin == 1, self.locations.get(&key)) {
            return Ok(location);
        }
        let mapping = if outer.binary.is_empty() { None } else { Some(self.mapping(outer.binary)) };
        let lines: Vec<BuilderLine> = (begin..end).map(|i| self.function_line(self.frames[i], outer.binary)).collect();
        let location = self.builder.location(mapping, 0, &lines)?;
        if end - begin == 1 {
            self.locations.insert(key, location);
        }
        Ok(location)
    }

    fn mapping(&mut self, binary: &'t [u8]) -> MappingId {
        let Script { mappings, builder, .. } = self;
        *mappings.entry(binary).or_insert_with(|| {
            let file = builder.string(binary);
            builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: StringId::EMPTY, flags: 0 })
        })
    }

    /// Returns the function and line of a frame. Without a symbol, the function is called by the binary's file name,
    /// such as `[libc.so.6]`, or `[unknown]` if the binary is unknown too.
    fn function_line(&mut self, frame: ScriptFrame<'t>, binary: &[u8]) -> BuilderLine {
        let (file, line) = source_line(frame.source);
        let function = match (frame.symbol, binary) {
            (b"", b"") => self.builder.function("[unknown]", file, 0),
            (b"", binary) => {
                let base = binary.rsplit(|&b| b == b'/').next().unwrap_or(binary);
                let base = base.strip_prefix(b"[").and_then(|base| base.strip_suffix(b"]")).unwrap_or(base);
                self.builder.function([b"[", base, b"]"].concat(), file, 0)
            }
            (symbol, _) => self.builder.function(symbol, file, 0),
        };
        self.builder.line(function, line)
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let Script { mut builder, input_type, tree, columns, sampled, timeline, .. } = self;
        if let Some(timeline) = timeline {
            timeline.finish(builder.header())?;
        }
        let order = stable_order(&columns);
        for (place, &column) in order.iter().enumerate() {
            builder.sampled(place, sampled[column]);
            let ScriptColumn { event, by_period } = columns[column];
            let Some(event) = event else {
                builder.sample_type(&input_type.0, &input_type.1);
                continue;
            };
            let (kind, unit) = event_type(&String::from_utf8_lossy(event), by_period);
            builder.sample_type(&kind, unit);
            if columns.len() > 1 && builder.header().default_sample_type == StringId::EMPTY {
                builder.header().default_sample_type = builder.string(kind);
            }
        }
        let mut places = vec![0; columns.len()];
        order.iter().enumerate().for_each(|(place, &column)| places[column] = place);
        let [comm, pid, tid] = ["comm", "pid", "tid"].map(|key| builder.string(key));
        let number = |key, value| Label { key, value: LabelValue::Number(value, StringId::EMPTY) };
        tree.write(&mut builder, columns.len(), &mut StackBudget::for_input(size), |root, labels| {
            if root.comm != StringId::EMPTY {
                labels.push(Label { key: comm, value: LabelValue::Text(root.comm) });
            }
            labels.extend(root.pid.map(|value| number(pid, value)));
            labels.push(number(tid, root.tid));
            (places[root.column as usize], 1)
        })?;
        Ok(builder)
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

    fn types(p: &Profile) -> Vec<String> {
        p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect()
    }

    #[test]
    fn samples_are_counted_by_their_own_event() {
        let sample = |event: &str, period: i64| format!("a 1 1.5: {period} {event}:\n\t1 f (x)\n\n");
        let p = load(&[sample("faults", 1), sample("cycles", 900), sample("cycles", 900)].concat()).unwrap();
        let of_type = |i: usize| p.sampled(i).map(|sampled| (sampled.samples, sampled.event()));
        assert_eq!(types(&p), ["cycles/count", "faults/count"]);
        assert_eq!([of_type(0), of_type(1)], [Some((2, Some(900.0))), Some((1, Some(1.0)))]);
    }

    #[test]
    fn sample_types_and_the_default_do_not_depend_on_the_order_of_samples() {
        let sample = |event: &str| format!("a 1 1.5: 100 {event}:\n\t1 f (x)\n\n");
        for (events, expected) in [
            (["misses", "cycles:u", "a-faults"], ["cycles:u", "a-faults", "misses"]),
            (["cpu_core/cycles/u", "instructions", "task-clock"], ["task-clock", "cpu_core/cycles/u", "instructions"]),
        ] {
            for turn in 0..3 {
                let text: String = (0..3).map(|i| sample(events[(i + turn) % 3])).collect();
                let p = load(&text).unwrap();
                let types: Vec<String> = p.sample_types().into_iter().map(|(kind, _)| kind).collect();
                assert_eq!((types, p.default_sample_type()), (expected.map(str::to_owned).to_vec(), Some(0)));
            }
        }
        // Values stay with their events.
        let p = load("a 1 1.5: 7 misses:\n\t1 f (x)\n\na 1 1.6: 100 cycles:\n\t1 f (x)\n").unwrap();
        assert_eq!([p.total(0), p.total(1)], [Some(100), Some(7)]);
    }

    #[test]
    fn folded_stacks_and_heap_profiles_are_not_taken_for_perf_script() {
        for text in ["3: 4 [5: 6] @ 0x1\n3: 4 [5: 6] @ 0x1\n", "a;b 10\na;c 5\n"] {
            assert!(!recognises(text.as_bytes()), "{text}");
        }
        let error = read("in", b"a;b 10\na;c 5\n".to_vec(), &LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("no sample has an event or a frame"), "{error}");
    }

    #[test]
    fn samples_have_frames_labels_and_periods() {
        let text = "\
# captured on: today
#
Web Content 12 3  71/72 [001]   73097.428021:    2000000 cycles:u: \n\
\t            12a7 set+0x37 (/build/a.out)
\t    7f0000001000 operator()(int) const+0x1 (/usr/lib/my lib.so)
\tffffffff81000000 [unknown] ([kernel.kallsyms])
\t            1000 [unknown] (/usr/lib/libc.so.6)
\t               0 [unknown] ([unknown])

swapper     0 [000]     1.000000:          1 cpu-clock:  ffffffff81000001 native_halt+0xb ([kernel.kallsyms])
         cc1plus  81/81 73097.5: PERF_RECORD_COMM exec: cc1plus:81/81
x 71/72 2.0: 3 cycles:u:
\t12ff set+0x8f (/build/a.out)
\t7f0000001fff operator()(int) const+0x1000 (/usr/lib/my lib.so)
\tffffffff81000010 [unknown] ([kernel.kallsyms])
\t1 [unknown] (/usr/lib/libc.so.6)
\t5 [unknown] ([unknown])
";
        let p = load(text).unwrap();
        assert_eq!(types(&p), ["cpu-clock/nanoseconds", "cycles:u/count"]);
        let stack = "[unknown]|[libc.so.6]|[kernel.kallsyms]|operator()(int) const|set";
        let expected = [
            format!("{stack} comm=Web Content 12 3 pid=71 tid=72: 0 2000000"),
            format!("{stack} comm=x pid=71 tid=72: 0 3"),
            "native_halt comm=swapper: 1 0".to_owned(),
        ];
        assert_eq!(rows(&p), expected);
        assert_eq!(p.n_locations(), 6);
        let mappings: Vec<String> = p.mappings().iter().map(|m| p.text(m.file)).collect();
        assert_eq!(mappings, ["/usr/lib/libc.so.6", "/build/a.out", "/usr/lib/my lib.so", "[kernel.kallsyms]"]);
    }

    #[test]
    fn inlined_frames_share_the_location_of_the_function_that_contains_them() {
        let text = "a 1/1 1.0: 1 cycles:\n\t10 in1 (inlined)\n\t10 in2+0x4 (inlined)\n\t10 f+0x2 (/a)\n\t9 other (inlined)\n\
                    \t20 main (/a)\n\n\
                    a 1/1 1.0: 1 cycles:\n\t10 in1\n  in.c:7 (inlined)\n\t10 in2\n  in.c:9 (discriminator 3) (inlined)\n\
                    \t10 f+0x2 (/a)\n  ??:0\n\t20 main (/a)\n  main.c:5\n";
        let p = load(text).unwrap();
        assert_eq!(
            rows(&p),
            [
                "main main.c:5|f|in2 in.c:9|in1 in.c:7 comm=a pid=1 tid=1: 1",
                "main|other|f|in2|in1 comm=a pid=1 tid=1: 1"
            ]
        );
        let mut depths = Vec::new();
        for s in p.samples() {
            let mut depth = 0;
            s.for_each_location(|_| depth += 1);
            depths.push(depth);
        }
        depths.sort_unstable();
        assert_eq!(depths, [2, 3]);
    }

    #[test]
    fn fields_that_perf_does_not_print_are_optional() {
        for (text, kind, row) in [
            ("a 5 1.5: cycles:\n\tff f (/a)\n", "cycles samples/count", "f comm=a tid=5: 1"),
            ("a 5 1.5:\n\tff f (/a)\n", "samples/count", "f comm=a tid=5: 1"),
            ("a 5 \n\tff f\n\tfe g+0x\n", "samples/count", "g+0x|f comm=a tid=5: 1"),
            ("   a b  5/6 7 cycles:  55c3c2d0c337 f\n", "cycles/count", "f comm=a b pid=5 tid=6: 7"),
            ("a 5 1.5: 7 cycles: ff f+0x1 (/a (deleted))\n  f.c:3\n", "cycles/count", "f f.c:3 comm=a tid=5: 7"),
            (
                "a 5 [003] 1.5: sched:sched_switch: prev_comm=add next=1\n\tff f (/a)\n",
                "sched:sched_switch samples/count",
                "f comm=a tid=5: 1",
            ),
            ("a 5 1.5: sys:x: 12 fd: 7\n    b 6 1.6: sys:x: fd: 8\n", "sys:x samples/count", " comm=a tid=5: 1"),
            ("a 5 6 1.5: 7 cycles: ff f (/a)\n", "cycles/count", "f comm=a 5 tid=6: 7"),
            ("a -1/-1 1.5: 7 cycles:\n\tff f (/a)\n", "cycles/count", "f comm=a pid=-1 tid=-1: 7"),
        ] {
            let p = load(text);
            let p = p.unwrap();
            assert_eq!((types(&p), rows(&p)[0].as_str()), (vec![kind.to_owned()], row), "{text}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let good = "a 5 1.5: 1 cycles:\n\tff f (/a)\n\n";
        for (text, words) in [
            (format!("{good}what is this\n"), "line 4: \"what is this\" is neither a sample of perf script"),
            (format!("{good}\tff f (/a)\n"), "line 4: \"ff f (/a)\" is neither"),
            (format!("{good}a 5 1.5: 1 cycles:\n\tsource.c:5\n"), "line 5: \"source.c:5\" is not a frame"),
            (
                format!("{good}a 5 1.5: 99999999999999999999 cycles:\n\tff f (/a)\n"),
                "line 4: \"99999999999999999999\" is more than",
            ),
            (
                format!("{good}a 5 1.5: 9223372036854775807 cycles:\n\tff f (/a)\n\n"),
                "line 6: its values add up to more than an int64 holds",
            ),
        ] {
            let error = load(&text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }

    /// Such an error occurs if a text without events is cut off after its first header.
    #[test]
    fn the_error_about_samples_without_frames_has_the_offset_of_the_end() {
        let text = b"a 5 1.5:\n";
        let error = read("in", text.to_vec(), &LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("no sample has an event or a frame"), "{error}");
        assert_eq!(error.offset(), Some(text.len() as u64));
    }

    #[test]
    fn perf_script_is_recognised_by_a_sample_and_a_frame() {
        let lines = "a 5 1.5: 1 cycles:\n\tff f (/a)\n\n".repeat(5000);
        for text in [
            &lines[..crate::table::HEAD],
            "# x\n\na 5 1.5: PERF_RECORD_FORK(1:1)\na 5/6 [001] 1.5: 1 cycles: ff f (/a)\n",
            "a 5 1.5: sys:x: fd: 7\na 5 1.5: sys:x: fd: 7\n",
            "a 5 \n\tff f (/a)\n",
        ] {
            assert!(recognises(text.as_bytes()), "{text:.60}");
        }
        for text in [
            "",
            "a;b 5\na;c 6\n",
            "a b 5\nc d 6\n",
            "Chapter 1\n\nIt was late.\n",
            "add 1\n  abc\n",
            "{\"a\": 5}",
            "x 1 1.5: y: z\nwords\n",
        ] {
            assert!(!recognises(text.as_bytes()), "{text}");
        }
    }
}
