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
//! Lost: times, numbers of threads, descriptors of methods, how a frame was compiled, all other events.

mod chunk;
mod constants;
mod metadata;
mod names;
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
use chunk::Chunk;
use constants::Constants;
use metadata::{Field, Metadata, Places, Pool, Steps};

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
    /// Of a field, in the chunk's ticks: nanoseconds.
    Ticks(Field),
}

/// A sample type.
struct Column {
    kind: &'static str,
    unit: &'static str,
    /// A column that this one is left out beside, as both are of the same.
    unless: Option<usize>,
}

const fn column(kind: &'static str, unit: &'static str) -> Column {
    Column { kind, unit, unless: None }
}

const COLUMNS: [Column; 8] = [
    column("samples", "count"),
    column("native_samples", "count"),
    Column { kind: "alloc_space", unit: "bytes", unless: Some(3) },
    column("alloc_space", "bytes"),
    column("contentions", "count"),
    column("delay", "nanoseconds"),
    column("parks", "count"),
    column("park", "nanoseconds"),
];

/// An event that is read: what it adds to which columns, and the field with a class for a label.
#[derive(Debug)]
struct Event {
    name: &'static str,
    adds: &'static [(usize, Amount)],
    class: Option<Field>,
}

const EVENTS: [Event; 7] = [
    Event { name: "jdk.ExecutionSample", adds: &[(0, Amount::One)], class: None },
    Event { name: "jdk.NativeMethodSample", adds: &[(1, Amount::One)], class: None },
    Event {
        name: "jdk.ObjectAllocationSample",
        adds: &[(2, Amount::Field(Field::Weight))],
        class: Some(Field::ObjectClass),
    },
    Event {
        name: "jdk.ObjectAllocationInNewTLAB",
        adds: &[(3, Amount::Field(Field::TlabSize))],
        class: Some(Field::ObjectClass),
    },
    Event {
        name: "jdk.ObjectAllocationOutsideTLAB",
        adds: &[(3, Amount::Field(Field::AllocationSize))],
        class: Some(Field::ObjectClass),
    },
    Event {
        name: "jdk.JavaMonitorEnter",
        adds: &[(4, Amount::One), (5, Amount::Ticks(Field::Duration))],
        class: Some(Field::MonitorClass),
    },
    Event {
        name: "jdk.ThreadPark",
        adds: &[(6, Amount::One), (7, Amount::Ticks(Field::Duration))],
        class: Some(Field::ParkedClass),
    },
];

/// What samples are added up under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    column: u32,
    thread: StringId,
    state: StringId,
    class: StringId,
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
    let builder = recording.finish(data.len())?;
    drop(data);
    builder.build(name)
}

/// What the chunks add up to.
struct Recording {
    builder: ProfileBuilder,
    /// Distinct stacks, from the leaf. A tree would have a node of each frame for each thread, in files where a stack is a number.
    stacks: Sequences<LocationId, RandomState>,
    /// What is added up, of which stack, and how much that is.
    sums: Interner<(Root, u32), RandomState>,
    values: Vec<i64>,
    used: [bool; COLUMNS.len()],
    /// By column.
    sampled: [Sampled; COLUMNS.len()],
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
        for event in chunk.events() {
            let (id, cursor) = event?;
            self.pace.step(1);
            let Some(class) = metadata.class_of(id) else { continue };
            let Some(event) = class.event.map(|number| &EVENTS[number]) else { continue };
            let places = constants.places(class, cursor);
            places
                .and_then(|places| self.add(event, &places, &mut constants, &mut known, chunk))
                .map_err(|e| e.in_record(|| format!("{} at byte {}", event.name, cursor.offset())))?;
        }
        Ok(())
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
        for &(column, _) in event.adds {
            self.used[column] = true;
        }
        if let Some((start, timeline)) = &mut self.timeline {
            let missing = || Error::malformed("its type has no startTime");
            let time = chunk.time(number(Field::StartTime)?.ok_or_else(missing)?)?;
            if !timeline.contains(time.checked_sub(*start).ok_or_else(too_large)?) {
                return Ok(());
            }
        }
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
        for &(column, amount) in event.adds {
            let number = |field: Field| {
                number(field)?.ok_or_else(|| Error::malformed(format!("its type has no {}", field.name())))
            };
            let value = match amount {
                Amount::One => 1,
                Amount::Field(field) => number(field)?,
                Amount::Ticks(field) => chunk.nanos(number(field)?)?,
            };
            let sum = self.sums.number((Root { column: column as u32, thread, state, class }, stack)) as usize;
            if sum == self.values.len() {
                self.values.push(0);
            }
            self.values[sum] = self.values[sum].checked_add(value).ok_or_else(too_large)?;
            self.sampled[column].add(value);
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

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let Recording { mut builder, stacks, sums, values: sums_of, used, sampled, span, timeline, .. } = self;
        if !used.contains(&true) {
            return Err(Error::malformed(
                "it has no event that is read: samples, allocations, or waits for monitors; record with settings=profile",
            ));
        }
        let is_kept = |i: usize| used[i] && COLUMNS[i].unless.is_none_or(|other| !used[other]);
        // Where each column is among those that are kept.
        let mut places = [None; COLUMNS.len()];
        let mut n_types = 0;
        for (i, column) in COLUMNS.iter().enumerate().filter(|(i, _)| is_kept(*i)) {
            builder.sample_type(column.kind, column.unit);
            if n_types == 0 {
                let default = builder.string(column.kind);
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
        let (mut budget, mut labels, mut values) = (StackBudget::for_input(size), Vec::new(), vec![0; n_types]);
        for (&(root, stack), &sum) in sums.values.iter().zip(&sums_of).filter(|(_, sum)| **sum != 0) {
            // What is left out adds nothing to another column.
            let Some(place) = places[root.column as usize] else { continue };
            let stack = stacks.get(stack);
            budget.take(stack.len(), n_types)?;
            labels.clear();
            for (key, value) in [(thread, root.thread), (state, root.state), (class, root.class)] {
                if value != StringId::EMPTY {
                    labels.push(Label { key, value: LabelValue::Text(value) });
                }
            }
            values[place] = sum;
            builder.sample(stack, &values, &labels)?;
            values[place] = 0;
        }
        Ok(builder)
    }
}
