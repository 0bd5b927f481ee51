//! Recordings of Java's Flight Recorder, as JDK 11 and later and async-profiler write them: version 2 of the format.
//!
//! A file is chunks, one after the other, each complete in itself: a header (`chunk.rs`), events, a description of all
//! types in it (`metadata.rs`), and constants that events refer to, such as stacks and names (`constants.rs`). Integers are
//! compressed or plain, as the header says. The format is described by the JDK's own reader, the package
//! `jdk.jfr.internal.consumer`.
//!
//! - `jdk.ExecutionSample` and `jdk.NativeMethodSample` are `samples` and `native_samples`: a thread that runs Java, or
//!   waits or works in native code, when the recorder's clock ticks. How much time a tick stands for depends on how many
//!   threads there are, so they are counted and no time is made of them.
//! - `jdk.CPUTimeSample` (JDK 25) is `samples` and, by its sampling period, `cpu`. Ticks of the other clock are then
//!   `execution_samples`, as two clocks do not add up. A sample whose stack could not be walked (`failed`) counts in the
//!   total alone; a sample that was only taken at the next safepoint has a label `biased`.
//! - `profiler.WallClockSample` of async-profiler is `wall_samples`: an event stands for as many samples as its field says.
//! - `profiler.Malloc` and `profiler.Free` are `native_alloc_space` and `native_alloc_objects` and, if there are frees,
//!   `native_inuse_space` and `native_inuse_objects` (`native.rs`).
//! - Allocations are `alloc_space`: `jdk.ObjectAllocationSample` by its weight; or, where the recording has them,
//!   `jdk.ObjectAllocationInNewTLAB` by the size of the buffer and `...OutsideTLAB` by that of the object. All are
//!   estimates of the same bytes, so the first is left out beside the others.
//! - `jdk.JavaMonitorEnter` is `contentions` and `delay`, `jdk.ThreadPark` `parks` and `park`. They are apart, as idle
//!   threads of pools are parked most of the time.
//!
//! An event is of the time at which it starts, also one that lasts: of a part of a recording these are read. A part may
//! begin or end with the first event of any type, such as `jdk.GarbageCollection`.
//!
//! The thread's name and state are labels, as is the class that is allocated or waited for. A frame is a function, `a.b.C.f`,
//! and a line. The JVM numbers hidden classes anew in each run, such as those of lambdas; the numbers are left out
//! (`names.rs`).
//!
//! Not by the crate `jfrs` 0.2.5, which allocates whatever a length in the file says and keeps all constants as trees of
//! values.
//!
//! Lost: times, numbers of threads, descriptors of methods, how a frame was compiled, all other events. A warning names the
//! event types that have stacks and are not read (`census.rs`).

mod census;
mod chunk;
mod constants;
mod metadata;
mod names;
mod native;
#[cfg(test)]
mod tests;

use super::InputFormat;
use super::tree::{StackBudget, TextBudget, too_large};
use crate::builder::{FunctionId, LocationId, ProfileBuilder};
use crate::error::{Error, Result};
use crate::interner::{Interner, Sequences};
use crate::profile::{Label, LabelValue, LoadOptions, Profile, Sampled, StringId};
use crate::random::{HashMap, RandomState};
use crate::window::{Events, Timeline};
use crate::work::Pace;
use census::Census;
use chunk::Chunk;
use constants::Constants;
use metadata::{Field, Metadata, Places, Pool, Steps};
use native::{Allocation, NativeMemory};

pub(super) const JFR: InputFormat = InputFormat {
    name: "jfr",
    about: "a recording of Java's Flight Recorder",
    has_times: true,
    has_events: true,
    recognises: |head| head.starts_with(chunk::MAGIC),
    read,
};

/// What is counted of an event.
#[derive(Debug, Clone, Copy)]
enum Amount {
    One,
    /// Of a field, as it is.
    Field(Field),
    /// Of a field that is an int.
    Int(Field),
    /// Of a field, in the chunk's ticks: nanoseconds.
    Ticks(Field),
    /// Like `Ticks`, but recordings without the field have no such column.
    OptionalTicks(Field),
}

/// A sample type.
struct Column {
    kind: &'static str,
    unit: &'static str,
    /// A column that excludes this one, because both measure the same.
    unless: Option<usize>,
    /// A column that takes this one's name, and the name that is left for this one.
    renamed: Option<(usize, &'static str)>,
}

const fn column(kind: &'static str, unit: &'static str) -> Column {
    Column { kind, unit, unless: None, renamed: None }
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

/// All sample types, in the order of the constants above. The columns of one event are adjacent. The first one of a recording is its default, unless it has `cpu`.
const COLUMNS: [Column; 15] = [
    Column { renamed: Some((CPU_SAMPLES, "execution_samples")), ..column("samples", "count") },
    column("samples", "count"),
    column("cpu", "nanoseconds"),
    column("native_samples", "count"),
    column("wall_samples", "count"),
    Column { unless: Some(ALLOC_SPACE), ..column("alloc_space", "bytes") },
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

/// An event that is read: what it adds to which columns, and the field with a class for a label.
#[derive(Debug)]
struct Event {
    name: &'static str,
    adds: &'static [(usize, Amount)],
    class: Option<Field>,
    native: Option<Native>,
}

/// What an event does with native memory.
#[derive(Debug, Clone, Copy)]
enum Native {
    Allocates,
    Frees,
}

const fn event(name: &'static str, adds: &'static [(usize, Amount)]) -> Event {
    Event { name, adds, class: None, native: None }
}

const EVENTS: [Event; 11] = [
    event("jdk.ExecutionSample", &[(SAMPLES, Amount::One)]),
    event("jdk.CPUTimeSample", &[(CPU_SAMPLES, Amount::One), (CPU, Amount::OptionalTicks(Field::SamplingPeriod))]),
    event("jdk.NativeMethodSample", &[(NATIVE_SAMPLES, Amount::One)]),
    event("profiler.WallClockSample", &[(WALL_SAMPLES, Amount::Int(Field::Samples))]),
    Event {
        class: Some(Field::ObjectClass),
        ..event("jdk.ObjectAllocationSample", &[(SAMPLED_SPACE, Amount::Field(Field::Weight))])
    },
    Event {
        class: Some(Field::ObjectClass),
        ..event("jdk.ObjectAllocationInNewTLAB", &[(ALLOC_SPACE, Amount::Field(Field::TlabSize))])
    },
    Event {
        class: Some(Field::ObjectClass),
        ..event("jdk.ObjectAllocationOutsideTLAB", &[(ALLOC_SPACE, Amount::Field(Field::AllocationSize))])
    },
    Event {
        class: Some(Field::MonitorClass),
        ..event("jdk.JavaMonitorEnter", &[(CONTENTIONS, Amount::One), (DELAY, Amount::Ticks(Field::Duration))])
    },
    Event {
        class: Some(Field::ParkedClass),
        ..event("jdk.ThreadPark", &[(PARKS, Amount::One), (PARK, Amount::Ticks(Field::Duration))])
    },
    Event {
        native: Some(Native::Allocates),
        ..event(
            "profiler.Malloc",
            &[(NATIVE_ALLOC_SPACE, Amount::Field(Field::Size)), (NATIVE_ALLOC_OBJECTS, Amount::One)],
        )
    },
    Event { native: Some(Native::Frees), ..event("profiler.Free", &[]) },
];

/// The maximum number of columns that one event counts.
const MAX_ADDS: usize = 4;

/// What samples are added up under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    /// The first of the event's columns.
    column: u32,
    thread: StringId,
    state: StringId,
    class: StringId,
    is_biased: bool,
}

/// When the first chunk began, in nanoseconds since 1970.
fn start_of(data: &[u8]) -> Result<i64> {
    let (mut at, mut first) = (0, i64::MAX);
    while at < data.len() {
        let chunk = Chunk::read(data, at)?;
        (at, first) = (chunk.end, first.min(chunk.start_nanos));
    }
    Ok(first)
}

/// When the first event of each type was. Events are not in the order of their times.
fn events_of(data: &[u8], start: i64) -> Result<Events> {
    let (mut events, mut at, mut pace) = (Events::default(), 0, Pace::default());
    while at < data.len() {
        let chunk = Chunk::read(data, at)?;
        at = chunk.end;
        let metadata = Metadata::read(&chunk)?;
        let mut steps = Steps::for_chunk(chunk.size());
        for event in chunk.events() {
            let (id, mut cursor) = event?;
            pace.step(1);
            let Some(class) = metadata.class_of(id) else { continue };
            let places = metadata.places(class, &mut cursor, &mut steps)?;
            if let Some(mut ticks) = places[Field::StartTime as usize] {
                let time = chunk.time(ticks.long()?)?;
                events.see(class.full_name(), time.checked_sub(start).ok_or_else(too_large)?);
            }
        }
    }
    Ok(events)
}

fn read(name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let timeline = options.time.as_ref().map(|window| {
        let start = start_of(&data)?;
        Ok::<_, Error>((start, Timeline::with_events(window, Some(start), || events_of(&data, start))?))
    });
    let mut recording = Recording {
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
        pace: Pace::default(),
    };
    let (mut at, mut number) = (0, 0);
    while at < data.len() {
        let mut one = || {
            let chunk = Chunk::read(&data, at)?;
            at = chunk.end;
            recording.read_chunk(&chunk)
        };
        one().map_err(|e| e.in_record(|| format!("chunk {number}")))?;
        number += 1;
    }
    let notes = recording.notes();
    let builder = recording.finish(data.len())?;
    drop(data);
    Ok(builder.build(name)?.with_notes(notes))
}

/// What the chunks add up to.
struct Recording {
    builder: ProfileBuilder,
    /// Distinct stacks, from the leaf. A tree would have a node of each frame for each thread, in files where a stack is a number.
    stacks: Sequences<LocationId, RandomState>,
    /// What is added up, of which stack, and how much that is in the root's column and those after it.
    sums: Interner<(Root, u32), RandomState>,
    values: Vec<[i64; MAX_ADDS]>,
    used: [bool; COLUMNS.len()],
    /// By column.
    sampled: [Sampled; COLUMNS.len()],
    native: NativeMemory,
    census: Census,
    /// The number of samples of CPU time whose stack could not be walked.
    n_failed: u64,
    texts: TextBudget,
    /// When it began and ended.
    span: Option<(i64, i64)>,
    /// When it began, and what is read of it, if that is a part.
    timeline: Option<(i64, Timeline)>,
    pace: Pace,
}

/// What is read of a chunk's constants so far, by their keys.
#[derive(Default)]
struct Known {
    /// Numbers of stacks.
    stacks: HashMap<u64, u32>,
    labels: HashMap<(Pool, u64), StringId>,
    methods: HashMap<u64, FunctionId>,
}

impl Recording {
    fn read_chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let end = chunk.start_nanos.saturating_add(chunk.duration_nanos.max(0));
        let (first, last) = self.span.unwrap_or((chunk.start_nanos, end));
        self.span = Some((first.min(chunk.start_nanos), last.max(end)));
        let metadata = Metadata::read(chunk)?;
        let mut constants = Constants::read(chunk, &metadata)?;
        let mut known = Known::default();
        let mut counts: HashMap<i64, u64> = HashMap::default();
        for event in chunk.events() {
            let (id, cursor) = event?;
            self.pace.step(1);
            *counts.entry(id).or_default() += 1;
            let Some(class) = metadata.class_of(id) else { continue };
            let Some(event) = class.event.map(|number| &EVENTS[number]) else { continue };
            let places = constants.places(class, cursor);
            places
                .and_then(|places| self.add(event, &places, &mut constants, &mut known, chunk))
                .map_err(|e| e.in_record(|| format!("{} at byte {}", event.name, cursor.offset())))?;
        }
        for (id, events) in counts {
            if let Some(class) = metadata.class_of(id) {
                self.census.add(class, events);
            }
        }
        Ok(())
    }

    /// Lists what a user should know about the events.
    fn notes(&self) -> Vec<String> {
        let failed = (self.n_failed > 0).then(|| {
            format!("{} samples of CPU time have no stack (failed); they count in the total alone", self.n_failed)
        });
        failed.into_iter().chain(self.census.skipped()).collect()
    }

    fn add(
        &mut self,
        event: &Event,
        places: &Places<'_>,
        constants: &mut Constants<'_, '_>,
        known: &mut Known,
        chunk: &Chunk<'_>,
    ) -> Result<()> {
        let number = |field: Field| places[field as usize].map(|mut place| place.long()).transpose();
        let is_recorded = |amount: &Amount| match amount {
            Amount::OptionalTicks(field) => places[*field as usize].is_some(),
            _ => true,
        };
        for &(column, _) in event.adds.iter().filter(|(_, amount)| is_recorded(amount)) {
            self.used[column] = true;
        }
        let place = |field: Field| {
            places[field as usize].ok_or_else(|| Error::malformed(format!("its type has no {}", field.name())))
        };
        let required = |field: Field| place(field)?.long();
        let time = || chunk.time(required(Field::StartTime)?);
        if let Some((start, timeline)) = &mut self.timeline {
            let time = time()?;
            if !timeline.contains(time.checked_sub(*start).ok_or_else(too_large)?) {
                return Ok(());
            }
        }
        if let Some(Native::Frees) = event.native {
            self.native.free(required(Field::Address)?, time()?);
            return Ok(());
        }
        let flag =
            |field: Field| places[field as usize].map_or(Ok(false), |mut place| Ok::<_, Error>(place.byte()? != 0));
        self.n_failed += u64::from(flag(Field::Failed)?);
        let is_biased = flag(Field::Biased)?;
        let thread = number(Field::EventThread)?.map_or_else(|| number(Field::SampledThread), |key| Ok(Some(key)))?;
        let mut label = |pool, key: Option<i64>, known: &mut Known| match key {
            Some(key) => self.label(pool, key as u64, constants, known),
            None => Ok(StringId::EMPTY),
        };
        let thread = label(Pool::Thread, thread, known)?;
        let state = label(Pool::State, number(Field::State)?, known)?;
        let class = event.class.map(number).transpose()?.flatten();
        let class = label(Pool::Class, class, known)?;
        let stack = match number(Field::StackTrace)? {
            Some(key) => self.stack(key as u64, constants, known)?,
            None => self.stacks.number(&[]),
        };
        let Some(&(first, _)) = event.adds.first() else { return Ok(()) };
        let root = Root { column: first as u32, thread, state, class, is_biased };
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
            let allocation = Allocation { sum, bytes: required(Field::Size)? };
            self.native.allocate(required(Field::Address)?, time()?, allocation);
        }
        Ok(())
    }

    /// Adds a value to a column of a sum, which is among those of the sum's event.
    fn add_to(&mut self, sum: u32, column: usize, value: i64) -> Result<()> {
        let first = self.sums.values[sum as usize].0.column as usize;
        let total = &mut self.values[sum as usize][column - first];
        *total = total.checked_add(value).ok_or_else(too_large)?;
        self.sampled[column].add(value);
        Ok(())
    }

    /// Adds the native memory in use at the end, if the recording knows it.
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

    /// What a label says: a thread, its state, or a class.
    fn label(
        &mut self,
        pool: Pool,
        key: u64,
        constants: &mut Constants<'_, '_>,
        known: &mut Known,
    ) -> Result<StringId> {
        if let Some(&text) = known.labels.get(&(pool, key)) {
            return Ok(text);
        }
        let text = match pool {
            Pool::Thread => match constants.text(pool, key, Field::JavaName)? {
                name if name.is_empty() => constants.text(pool, key, Field::OsName)?,
                name => name,
            },
            Pool::Class => names::class(&constants.symbol(pool, key, Field::Name)?),
            _ => constants.text(pool, key, Field::Name)?,
        };
        self.texts.take(text.len())?;
        let text = self.builder.string(&text);
        known.labels.insert((pool, key), text);
        Ok(text)
    }

    /// The number of a stack; an unknown one has no frames.
    fn stack(&mut self, key: u64, constants: &mut Constants<'_, '_>, known: &mut Known) -> Result<u32> {
        if let Some(&number) = known.stacks.get(&key) {
            return Ok(number);
        }
        let mut stack = Vec::new();
        if let Some(mut frames) = constants.frames(key)? {
            while let Some(frame) = constants.next_frame(&mut frames)? {
                self.pace.step(1);
                let function = self.method(frame.method, constants, known)?;
                // Native methods have -1.
                let line = self.builder.line(function, i64::from(frame.line.max(0)));
                stack.push(self.builder.location(None, 0, &[line])?);
            }
        }
        let number = self.stacks.number(&stack);
        known.stacks.insert(key, number);
        Ok(number)
    }

    fn method(&mut self, key: u64, constants: &mut Constants<'_, '_>, known: &mut Known) -> Result<FunctionId> {
        if let Some(&function) = known.methods.get(&key) {
            return Ok(function);
        }
        let class = match constants.key(Pool::Method, key, Field::Type)? {
            Some(class) => constants.symbol(Pool::Class, class, Field::Name)?,
            None => Vec::new(),
        };
        let name = names::method(&class, &constants.symbol(Pool::Method, key, Field::Name)?);
        self.texts.take(name.len())?;
        let function = self.builder.function(if name.is_empty() { b"[unknown]" } else { &*name }, "", 0);
        known.methods.insert(key, function);
        Ok(function)
    }

    fn finish(mut self, size: usize) -> Result<ProfileBuilder> {
        self.add_native_in_use()?;
        if !self.used.contains(&true) {
            return Err(self.without_samples());
        }
        let Recording { mut builder, stacks, sums, values: sums_of, used, sampled, span, timeline, .. } = self;
        let is_kept = |i: usize| used[i] && COLUMNS[i].unless.is_none_or(|other| !used[other]);
        // Where each column is among those that are kept.
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
        for (&(root, stack), sums) in sums.values.iter().zip(&sums_of) {
            // Columns that are left out add nothing to others.
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

    /// Explains a recording without any event that is read.
    fn without_samples(&self) -> Error {
        let found = self.census.all().map_or_else(|| "it has no events".to_owned(), |types| format!("it has {types}"));
        Error::malformed(format!(
            "it has no event that is read: samples, allocations, or waits for monitors; {found}; record with \
             settings=profile of the JDK, or with -e cpu, wall, alloc, lock or nativemem of async-profiler"
        ))
    }
}
