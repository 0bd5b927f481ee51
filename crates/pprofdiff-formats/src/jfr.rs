//! Recordings of Java Flight Recorder (JFR), as JDK 11 and later and async-profiler write them: version 2 of the
//! format.
//!
//! A file is a sequence of self-contained chunks. A chunk has a header (`chunk.rs`), events, a description of its types
//! (`metadata.rs`), and constants such as stacks and names (`constants.rs`). Events refer to constants by number.
//! Integers are compressed or plain, as the header specifies. The reference is the JDK's own reader, the package
//! `jdk.jfr.internal.consumer`.
//!
//! - `jdk.ExecutionSample` and `jdk.NativeMethodSample` become `samples` and `native_samples`. They record a thread
//!   that runs Java, or that waits or works in native code, when the recorder's clock ticks. The time between two
//!   samples of a thread depends on the number of threads, so samples are counted and not converted to time.
//! - `jdk.CPUTimeSample` (JDK 25) becomes `samples` and, by its sampling period, `cpu`. In such a recording,
//!   `jdk.ExecutionSample` becomes `execution_samples`, because samples of two clocks cannot be added. A sample whose
//!   stack could not be walked (`failed`) counts only in the total. A sample that was delayed to the next safepoint
//!   gets the label `biased`.
//! - `profiler.WallClockSample` of async-profiler becomes `wall_samples`. An event may stand for several samples; its
//!   field `samples` has their number.
//! - `profiler.Malloc` and `profiler.Free` become `native_alloc_space` and `native_alloc_objects` and, if there are
//!   frees, `native_inuse_space` and `native_inuse_objects` (`native.rs`).
//! - Allocations become `alloc_space`. `jdk.ObjectAllocationInNewTLAB` counts the size of the buffer and
//!   `jdk.ObjectAllocationOutsideTLAB` the size of the object. Without these events, `jdk.ObjectAllocationSample`
//!   counts its weight. All of them estimate the same bytes, so the samples are left out if the recording has the other
//!   events.
//! - `jdk.JavaMonitorEnter` becomes `contentions` and `delay`, `jdk.ThreadPark` becomes `parks` and `park`. They are
//!   separate because idle threads of pools are parked most of the time.
//!
//! A time window contains the events that start in it, even if they end later. A window may begin or end with the first
//! event of any type, such as `jdk.GarbageCollection`.
//!
//! The thread's name and state become labels, and so does the class of the allocated object or the awaited monitor. A
//! frame becomes a function, `a.b.C.f`, and a line. The JVM numbers hidden classes, such as the classes of lambdas,
//! differently in each run; the numbers are removed (`names.rs`).
//!
//! The crate `jfrs` 0.2.5 is not used: it allocates whatever a length in the file says, and keeps all constants as
//! trees of values.
//!
//! Times, numbers of threads, descriptors of methods, the way a frame was compiled, and all other events are not read.
//! A warning lists skipped event types that have stacks (`census.rs`).

mod census;
mod chunk;
mod constants;
mod metadata;
mod names;
mod native;
#[cfg(test)]
mod tests;

use crate::InputFormat;
use crate::LoadOptions;
use crate::kit::tree::{StackBudget, TextBudget, too_large};
use census::Census;
use chunk::Chunk;
use constants::Constants;
use metadata::{FieldPositions, JfrField, Metadata, Pool, SkipBudget};
use native::{Allocation, NativeMemory};
use pprofdiff_profile::builder::{FunctionId, LocationId, ProfileBuilder};
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::{Events, Timeline};
use pprofdiff_profile::{Error, Result};
use pprofdiff_profile::{Profile, Sampled};

pub(crate) const JFR: InputFormat = InputFormat {
    name: "jfr",
    about: "a recording of Java's Flight Recorder",
    has_times: true,
    has_events: true,
    recognises: |head| head.starts_with(chunk::MAGIC),
    read,
};

/// The amount that an event adds to a column.
#[derive(Debug, Clone, Copy)]
enum Amount {
    One,
    /// The value of a field of type long.
    Field(JfrField),
    /// The value of a field of type int, which takes four bytes and not eight if integers are not compressed.
    Int(JfrField),
    /// The value of a field in ticks of the chunk's clock, converted to nanoseconds.
    Ticks(JfrField),
    /// Like `Ticks`, but recordings without the field do not get the column.
    OptionalTicks(JfrField),
}

/// A sample type.
struct JfrColumn {
    kind: &'static str,
    unit: &'static str,
    /// A column that replaces this column if the recording has both, because both measure the same quantity.
    unless: Option<usize>,
    /// If the recording has this other column, the name that this column gets instead of its own.
    renamed: Option<(usize, &'static str)>,
}

const fn column(kind: &'static str, unit: &'static str) -> JfrColumn {
    JfrColumn { kind, unit, unless: None, renamed: None }
}

const SAMPLES: usize = 0;
const CPU_SAMPLES: usize = 1;
const CPU: usize = 2;
const NATIVE_SAMPLES: usize = 3;
const WALL_SAMPLES: usize = 4;
const SAMPLED_SPACE: usize = 5;
const ALLOC_SPACE: usize = 6;
const CONTENTIONS: usize = 7;
const DELAY: usize = 8;
const PARKS: usize = 9;
const PARK: usize = 10;
const NATIVE_ALLOC_SPACE: usize = 11;
const NATIVE_ALLOC_OBJECTS: usize = 12;
const NATIVE_INUSE_SPACE: usize = 13;
const NATIVE_INUSE_OBJECTS: usize = 14;

/// All sample types, in the order of the constants above. The columns of an event are adjacent. The default sample type
/// of a recording is `cpu`, or else its first type.
const COLUMNS: [JfrColumn; 15] = [
    JfrColumn { renamed: Some((CPU_SAMPLES, "execution_samples")), ..column("samples", "count") },
    column("samples", "count"),
    column("cpu", "nanoseconds"),
    column("native_samples", "count"),
    column("wall_samples", "count"),
    JfrColumn { unless: Some(ALLOC_SPACE), ..column("alloc_space", "bytes") },
    column("alloc_space", "bytes"),
    column("contentions", "count"),
    column("delay", "nanoseconds"),
    column("parks", "count"),
    column("park", "nanoseconds"),
    column("native_alloc_space", "bytes"),
    column("native_alloc_objects", "count"),
    column("native_inuse_space", "bytes"),
    column("native_inuse_objects", "count"),
];

/// An event type that is read: its columns, and the field with the class that becomes a label.
#[derive(Debug)]
struct JfrEvent {
    name: &'static str,
    adds: &'static [(usize, Amount)],
    class: Option<JfrField>,
    native: Option<Native>,
}

/// The effect of an event on native memory.
#[derive(Debug, Clone, Copy)]
enum Native {
    Allocates,
    Frees,
}

const fn event(name: &'static str, adds: &'static [(usize, Amount)]) -> JfrEvent {
    JfrEvent { name, adds, class: None, native: None }
}

const EVENTS: [JfrEvent; 11] = [
    event("jdk.ExecutionSample", &[(SAMPLES, Amount::One)]),
    event("jdk.CPUTimeSample", &[(CPU_SAMPLES, Amount::One), (CPU, Amount::OptionalTicks(JfrField::SamplingPeriod))]),
    event("jdk.NativeMethodSample", &[(NATIVE_SAMPLES, Amount::One)]),
    event("profiler.WallClockSample", &[(WALL_SAMPLES, Amount::Int(JfrField::Samples))]),
    JfrEvent {
        class: Some(JfrField::ObjectClass),
        ..event("jdk.ObjectAllocationSample", &[(SAMPLED_SPACE, Amount::Field(JfrField::Weight))])
    },
    JfrEvent {
        class: Some(JfrField::ObjectClass),
        ..event("jdk.ObjectAllocationInNewTLAB", &[(ALLOC_SPACE, Amount::Field(JfrField::TlabSize))])
    },
    JfrEvent {
        class: Some(JfrField::ObjectClass),
        ..event("jdk.ObjectAllocationOutsideTLAB", &[(ALLOC_SPACE, Amount::Field(JfrField::AllocationSize))])
    },
    JfrEvent {
        class: Some(JfrField::MonitorClass),
        ..event("jdk.JavaMonitorEnter", &[(CONTENTIONS, Amount::One), (DELAY, Amount::Ticks(JfrField::Duration))])
    },
    JfrEvent {
        class: Some(JfrField::ParkedClass),
        ..event("jdk.ThreadPark", &[(PARKS, Amount::One), (PARK, Amount::Ticks(JfrField::Duration))])
    },
    JfrEvent {
        native: Some(Native::Allocates),
        ..event(
            "profiler.Malloc",
            &[(NATIVE_ALLOC_SPACE, Amount::Field(JfrField::Size)), (NATIVE_ALLOC_OBJECTS, Amount::One)],
        )
    },
    JfrEvent { native: Some(Native::Frees), ..event("profiler.Free", &[]) },
];

/// The maximum number of columns that an event's sum needs. `profiler.Malloc` needs four: the two columns that it adds
/// to, and the two columns for memory in use, which follow them.
const MAX_ADDS: usize = 4;

/// The key of a sum of samples, in addition to their stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct JfrRoot {
    /// The first column that the event adds to. The sum's values begin with this column.
    column: u32,
    thread: StringId,
    state: StringId,
    class: StringId,
    is_biased: bool,
}

/// Returns the earliest time when a chunk began, in nanoseconds since 1970.
fn recording_start(data: &[u8]) -> Result<i64> {
    let (mut offset, mut first) = (0, i64::MAX);
    while offset < data.len() {
        let chunk = Chunk::read(data, offset)?;
        (offset, first) = (chunk.end, first.min(chunk.start_nanos));
    }
    Ok(first)
}

/// Returns the time of the first event of each type, in nanoseconds after `start`. All events are read, because events
/// are not sorted by time. Events without a start time and events of unknown types are skipped.
fn first_events(data: &[u8], start: i64) -> Result<Events> {
    let (mut events, mut offset, mut pace) = (Events::default(), 0, Checkpointer::default());
    while offset < data.len() {
        let chunk = Chunk::read(data, offset)?;
        offset = chunk.end;
        let metadata = Metadata::read(&chunk)?;
        let mut steps = SkipBudget::for_chunk(chunk.size());
        for event in chunk.events() {
            let (id, mut cursor) = event?;
            pace.step(1);
            let Some(class) = metadata.class_of(id) else { continue };
            let places = metadata.places(class, &mut cursor, &mut steps)?;
            if let Some(mut ticks) = places[JfrField::StartTime as usize] {
                let time = chunk.time(ticks.long()?)?;
                events.see(class.full_name(), time.checked_sub(start).ok_or_else(too_large)?);
            }
        }
    }
    Ok(events)
}

fn read(name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let timeline = options.time.as_ref().map(|window| {
        let start = recording_start(&data)?;
        Ok::<_, Error>((start, Timeline::with_events(window, Some(start), || first_events(&data, start))?))
    });
    let mut recording = JfrRecording {
        builder: ProfileBuilder::new(),
        stacks: Sequences::default(),
        sums: Interner::default(),
        values: Vec::new(),
        used: [false; COLUMNS.len()],
        sampled: [Sampled::default(); COLUMNS.len()],
        native: NativeMemory::default(),
        census: Census::default(),
        n_failed: 0,
        texts: TextBudget::for_input(data.len()),
        span: None,
        timeline: timeline.transpose()?,
        pace: Checkpointer::default(),
    };
    let (mut offset, mut number) = (0, 0);
    while offset < data.len() {
        let mut read_next = || {
            let chunk = Chunk::read(&data, offset)?;
            offset = chunk.end;
            recording.read_chunk(&chunk)
        };
        read_next().map_err(|e| e.in_record(|| format!("chunk {number}")))?;
        number += 1;
    }
    let notes = recording.notes();
    let builder = recording.finish(data.len())?;
    drop(data);
    Ok(builder.build(name)?.with_notes(notes))
}

/// The contents of the chunks that were read.
struct JfrRecording {
    builder: ProfileBuilder,
    /// Distinct stacks, from the leaf. A tree would have a node for each frame and thread. JFR files refer to a stack
    /// by number, so such a tree could be much larger than the file.
    stacks: Sequences<LocationId, RandomState>,
    /// The keys of the sums: a root and the index of a stack.
    sums: Interner<(JfrRoot, u32), RandomState>,
    /// The values of each sum, in the root's column and the columns after it.
    values: Vec<[i64; MAX_ADDS]>,
    /// True for each column of an event that was read, inside or outside the time window.
    used: [bool; COLUMNS.len()],
    /// The statistics of each column.
    sampled: [Sampled; COLUMNS.len()],
    native: NativeMemory,
    census: Census,
    /// The number of samples of CPU time whose stack could not be walked (`failed`).
    n_failed: u64,
    texts: TextBudget,
    /// The times when the first chunk began and when the last chunk ended, in nanoseconds since 1970.
    span: Option<(i64, i64)>,
    /// The time when the recording began ([`recording_start`]), and the time window to read, if the caller set one.
    timeline: Option<(i64, Timeline)>,
    pace: Checkpointer,
}

/// The constants of a chunk that were already converted, by their keys. Keys are valid in one chunk only.
#[derive(Default)]
struct Converted {
    /// Indexes into [`JfrRecording::stacks`].
    stacks: HashMap<u64, u32>,
    labels: HashMap<(Pool, u64), StringId>,
    methods: HashMap<u64, FunctionId>,
}

impl JfrRecording {
    fn read_chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let end = chunk.start_nanos.saturating_add(chunk.duration_nanos.max(0));
        let (first, last) = self.span.unwrap_or((chunk.start_nanos, end));
        self.span = Some((first.min(chunk.start_nanos), last.max(end)));
        let metadata = Metadata::read(chunk)?;
        let mut constants = Constants::read(chunk, &metadata)?;
        let mut converted = Converted::default();
        let mut counts: HashMap<i64, u64> = HashMap::default();
        for event in chunk.events() {
            let (id, cursor) = event?;
            self.pace.step(1);
            *counts.entry(id).or_default() += 1;
            let Some(class) = metadata.class_of(id) else { continue };
            let Some(event) = class.event.map(|number| &EVENTS[number]) else { continue };
            let places = constants.places(class, cursor);
            places
                .and_then(|places| self.add(event, &places, &mut constants, &mut converted, chunk))
                .map_err(|e| e.in_record(|| format!("{} at byte {}", event.name, cursor.offset())))?;
        }
        for (id, events) in counts {
            if let Some(class) = metadata.class_of(id) {
                self.census.add(class, events);
            }
        }
        Ok(())
    }

    /// Returns the warnings about skipped events and missing stacks.
    fn notes(&self) -> Vec<String> {
        let failed = (self.n_failed > 0).then(|| {
            format!("{} samples of CPU time have no stack (failed); they count only in the total", self.n_failed)
        });
        failed.into_iter().chain(self.census.skipped()).collect()
    }

    /// Adds an event to the sums. An event outside the time window only marks its columns as used.
    fn add(
        &mut self,
        event: &JfrEvent,
        places: &FieldPositions<'_>,
        constants: &mut Constants<'_, '_>,
        converted: &mut Converted,
        chunk: &Chunk<'_>,
    ) -> Result<()> {
        let number = |field: JfrField| places[field as usize].map(|mut place| place.long()).transpose();
        let is_recorded = |amount: &Amount| match amount {
            Amount::OptionalTicks(field) => places[*field as usize].is_some(),
            _ => true,
        };
        for &(column, _) in event.adds.iter().filter(|(_, amount)| is_recorded(amount)) {
            self.used[column] = true;
        }
        let place = |field: JfrField| {
            places[field as usize].ok_or_else(|| Error::malformed(format!("its type has no {}", field.name())))
        };
        let required = |field: JfrField| place(field)?.long();
        let time = || chunk.time(required(JfrField::StartTime)?);
        if let Some((start, timeline)) = &mut self.timeline {
            let time = time()?;
            if !timeline.contains(time.checked_sub(*start).ok_or_else(too_large)?) {
                return Ok(());
            }
        }
        if let Some(Native::Frees) = event.native {
            self.native.free(required(JfrField::Address)?, time()?);
            return Ok(());
        }
        let flag =
            |field: JfrField| places[field as usize].map_or(Ok(false), |mut place| Ok::<_, Error>(place.byte()? != 0));
        self.n_failed += u64::from(flag(JfrField::Failed)?);
        let is_biased = flag(JfrField::Biased)?;
        let thread =
            number(JfrField::EventThread)?.map_or_else(|| number(JfrField::SampledThread), |key| Ok(Some(key)))?;
        let mut label = |pool, key: Option<i64>, converted: &mut Converted| match key {
            Some(key) => self.label(pool, key as u64, constants, converted),
            None => Ok(StringId::EMPTY),
        };
        let thread = label(Pool::Thread, thread, converted)?;
        let state = label(Pool::State, number(JfrField::State)?, converted)?;
        let class = event.class.map(number).transpose()?.flatten();
        let class = label(Pool::Class, class, converted)?;
        let stack = match number(JfrField::StackTrace)? {
            Some(key) => self.stack(key as u64, constants, converted)?,
            None => self.stacks.number(&[]),
        };
        let Some(&(first, _)) = event.adds.first() else { return Ok(()) };
        let root = JfrRoot { column: first as u32, thread, state, class, is_biased };
        let sum = self.sums.number((root, stack));
        self.values.resize(self.sums.values.len(), [0; MAX_ADDS]);
        for &(column, amount) in event.adds.iter().filter(|(_, amount)| is_recorded(amount)) {
            let value = match amount {
                Amount::One => 1,
                Amount::Field(field) => required(field)?,
                Amount::Int(field) => i64::from(place(field)?.int()?),
                Amount::Ticks(field) | Amount::OptionalTicks(field) => chunk.nanos(required(field)?)?,
            };
            self.add_to(sum, column, value)?;
        }
        if let Some(Native::Allocates) = event.native {
            let allocation = Allocation { sum, bytes: required(JfrField::Size)? };
            self.native.allocate(required(JfrField::Address)?, time()?, allocation);
        }
        Ok(())
    }

    /// Adds a value to a sum. The column must be among the columns of the sum's event.
    fn add_to(&mut self, sum: u32, column: usize, value: i64) -> Result<()> {
        let first = self.sums.values[sum as usize].0.column as usize;
        let total = &mut self.values[sum as usize][column - first];
        *total = total.checked_add(value).ok_or_else(too_large)?;
        self.sampled[column].add(value);
        Ok(())
    }

    /// Adds the native memory in use at the end, if the recording has frees.
    fn add_native_in_use(&mut self) -> Result<()> {
        let Some(in_use) = std::mem::take(&mut self.native).in_use() else { return Ok(()) };
        (self.used[NATIVE_INUSE_OBJECTS], self.used[NATIVE_INUSE_SPACE]) = (true, true);
        for Allocation { sum, bytes } in in_use {
            self.pace.step(1);
            self.add_to(sum, NATIVE_INUSE_OBJECTS, 1)?;
            self.add_to(sum, NATIVE_INUSE_SPACE, bytes)?;
        }
        Ok(())
    }

    /// Returns the text of a label, or an empty text if the constant is unknown. A thread is called by its Java name,
    /// or else by its name in the operating system; a state and a class by their names.
    fn label(
        &mut self,
        pool: Pool,
        key: u64,
        constants: &mut Constants<'_, '_>,
        converted: &mut Converted,
    ) -> Result<StringId> {
        if let Some(&text) = converted.labels.get(&(pool, key)) {
            return Ok(text);
        }
        let text = match pool {
            Pool::Thread => match constants.text(pool, key, JfrField::JavaName)? {
                name if name.is_empty() => constants.text(pool, key, JfrField::OsName)?,
                name => name,
            },
            Pool::Class => names::class(&constants.symbol(pool, key, JfrField::Name)?),
            _ => constants.text(pool, key, JfrField::Name)?,
        };
        self.texts.take(text.len())?;
        let text = self.builder.string(&text);
        converted.labels.insert((pool, key), text);
        Ok(text)
    }

    /// Returns the index of a stack in `stacks`. A stack with an unknown key becomes an empty stack.
    fn stack(&mut self, key: u64, constants: &mut Constants<'_, '_>, converted: &mut Converted) -> Result<u32> {
        if let Some(&number) = converted.stacks.get(&key) {
            return Ok(number);
        }
        let mut stack = Vec::new();
        if let Some(mut frames) = constants.frames(key)? {
            while let Some(frame) = constants.next_frame(&mut frames)? {
                self.pace.step(1);
                let function = self.method(frame.method, constants, converted)?;
                // Native methods have line -1, which becomes 0, an unknown line.
                let line = self.builder.line(function, i64::from(frame.line.max(0)));
                stack.push(self.builder.location(None, 0, &[line])?);
            }
        }
        let number = self.stacks.number(&stack);
        converted.stacks.insert(key, number);
        Ok(number)
    }

    /// Returns the function of a method. A method without a name, or with an unknown key, becomes `[unknown]`.
    fn method(&mut self, key: u64, constants: &mut Constants<'_, '_>, converted: &mut Converted) -> Result<FunctionId> {
        if let Some(&function) = converted.methods.get(&key) {
            return Ok(function);
        }
        let class = match constants.key(Pool::Method, key, JfrField::Type)? {
            Some(class) => constants.symbol(Pool::Class, class, JfrField::Name)?,
            None => Vec::new(),
        };
        let name = names::method(&class, &constants.symbol(Pool::Method, key, JfrField::Name)?);
        self.texts.take(name.len())?;
        let function = self.builder.function(if name.is_empty() { b"[unknown]" } else { &*name }, "", 0);
        converted.methods.insert(key, function);
        Ok(function)
    }

    fn finish(mut self, size: usize) -> Result<ProfileBuilder> {
        self.add_native_in_use()?;
        if !self.used.contains(&true) {
            return Err(self.without_samples());
        }
        let JfrRecording { mut builder, stacks, sums, values: sum_values, used, sampled, span, timeline, .. } = self;
        let is_kept = |i: usize| used[i] && COLUMNS[i].unless.is_none_or(|other| !used[other]);
        // The position of each column among the sample types of the profile.
        let mut places = [None; COLUMNS.len()];
        let mut n_types = 0;
        for (i, column) in COLUMNS.iter().enumerate().filter(|(i, _)| is_kept(*i)) {
            let kind = column.renamed.filter(|&(other, _)| used[other]).map_or(column.kind, |(_, name)| name);
            builder.sample_type(kind, column.unit);
            if n_types == 0 || i == CPU {
                let default = builder.string(kind);
                builder.header().default_sample_type = default;
            }
            builder.sampled(n_types, sampled[i]);
            places[i] = Some(n_types);
            n_types += 1;
        }
        if let Some((begin, end)) = span {
            builder.header().time_nanos = begin;
            builder.header().duration_nanos = end.checked_sub(begin).ok_or_else(too_large)?;
        }
        if let Some((_, timeline)) = timeline {
            timeline.finish(builder.header())?;
        }
        let [thread, state, class] = ["thread", "state", "class"].map(|key| builder.string(key));
        let biased = Label { key: builder.string("biased"), value: LabelValue::Text(builder.string("true")) };
        let (mut budget, mut labels, mut values) = (StackBudget::for_input(size), Vec::new(), vec![0; n_types]);
        for (&(root, stack), sums) in sums.values.iter().zip(&sum_values) {
            // A column that is left out has no position, so its values are dropped.
            let first = root.column as usize;
            let kept = sums.iter().zip(places.iter().skip(first)).filter_map(|(&sum, place)| Some((sum, (*place)?)));
            values.fill(0);
            kept.for_each(|(sum, place)| values[place] = sum);
            if values.iter().all(|&value| value == 0) {
                continue;
            }
            let stack = stacks.get(stack);
            budget.take(stack.len(), n_types)?;
            labels.clear();
            for (key, value) in [(thread, root.thread), (state, root.state), (class, root.class)] {
                if value != StringId::EMPTY {
                    labels.push(Label { key, value: LabelValue::Text(value) });
                }
            }
            labels.extend(root.is_biased.then_some(biased));
            builder.sample(stack, &values, &labels)?;
        }
        Ok(builder)
    }

    /// Returns the error for a recording without any event that is read.
    fn without_samples(&self) -> Error {
        let events = self.census.all().map_or_else(|| "it has no events".to_owned(), |types| format!("it has {types}"));
        Error::malformed(format!(
            "it has no samples, allocations or waits for monitors; {events}; record with \
             settings=profile of the JDK, or with -e cpu, wall, alloc, lock or nativemem of async-profiler"
        ))
    }
}
