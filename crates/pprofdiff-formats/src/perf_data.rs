//! Reads `perf.data` files of Linux's perf, without perf.
//!
//! A file has event definitions, records, and sections that describe them (`file.rs`). Records are not sorted by time,
//! because perf empties one buffer after the other. A record is a sample (`event.rs`), or it names a process or maps a
//! file into a process (`processes.rs`). The kernel's sources describe the format:
//! <https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/perf.data-file-format.txt>, and
//! `include/uapi/linux/perf_event.h` for the records.
//!
//! - Sample types and labels match the text of `perf script` (`perf_script.rs`), so both formats lead to the same
//!   tables: an event by its periods or by its samples; `comm`, `pid`, `tid`, and `cpu` if perf recorded it.
//! - A frame is an address in a mapping, with the build id if it is known, so that `--binary` can name it. Processes
//!   map a file at different addresses; the profile uses the address where the file was mapped first. A frame outside
//!   all mapped files is `[unknown]`.
//! - The address of a caller is the return address minus one, which is inside the call instruction.
//! - Events without samples are left out, and the first event with samples is the default. If no event has samples, all
//!   events are kept except the dummy event.
//! - Compressed records (`perf record -z`) and output that was written into a pipe are supported.
//!
//! Some recordings are refused, with the `perf` command that converts them to text: stacks that perf must unwind first
//! (`--call-graph dwarf`, `lbr`), processor traces, and files of a machine with the other byte order
//! (`unsupported.rs`).
//!
//! The crate `linux-perf-data` 0.13 is not used: it allocates as many bytes as a section claims to have, and does not
//! limit the size of decompressed data.
//!
//! The times of a time window count from the first sample. Otherwise, times serve only to sort the records and to
//! compute the duration of the recording.
//!
//! Fields of tracepoints, branches and registers are not read.

mod event;
mod file;
#[cfg(all(test, feature = "symbols"))]
mod oracle;
mod processes;
#[cfg(test)]
mod tests;

use crate::InputFormat;
use crate::LoadOptions;
use crate::kit::tree::{StackBudget, too_large};
use crate::perf_script::event_type;
use event::PerfSample;
use file::{PerfFile, PerfRecord};
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::columns::{Mapping, NONE, StringId};
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::{Events, Timeline};
use pprofdiff_profile::{Error, Result};
use pprofdiff_profile::{Profile, Sampled};
use processes::{MappedFile, Mode, PerfProcesses};

pub(crate) const PERF_DATA: InputFormat = InputFormat {
    name: "perf-data",
    about: "perf.data, as perf record writes it",
    has_times: true,
    has_events: true,
    recognises: |head| head.starts_with(file::MAGIC),
    read,
};

/// The types of records that are used. Numbers below 64 are records of the kernel, and numbers from 64 on are perf's
/// own.
mod kinds {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    /// Records of the kernel, which are processed in the order of their times.
    pub const IS_READ: [u32; 7] = [MMAP, LOST, COMM, FORK, SAMPLE, MMAP2, LOST_SAMPLES];
    pub const ATTRIBUTES: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// A position in a file, and the end of the part that is being read. Numbers are little-endian.
#[derive(Debug, Clone, Copy)]
struct PerfCursor<'t> {
    /// The file, up to the end of the part that is being read.
    data: &'t [u8],
    pos: usize,
}

impl<'t> PerfCursor<'t> {
    fn new(data: &'t [u8], pos: usize) -> PerfCursor<'t> {
        PerfCursor { data, pos: pos.min(data.len()) }
    }

    /// Returns the section at a range that the file specifies.
    ///
    /// # Errors
    /// The range exceeds the file.
    fn section(data: &'t [u8], from: u64, size: u64) -> Result<PerfCursor<'t>> {
        match from.checked_add(size) {
            Some(end) if end <= data.len() as u64 => Ok(PerfCursor { data: &data[..end as usize], pos: from as usize }),
            _ => {
                let has = data.len();
                let detail = format!("a section should have {size} bytes at byte {from}, but the file has {has} bytes");
                Err(Error::malformed(detail))
            }
        }
    }

    fn data(&self) -> &'t [u8] {
        self.data
    }

    fn offset(&self) -> usize {
        self.pos
    }

    fn end(&self) -> usize {
        self.data.len()
    }

    fn left(&self) -> usize {
        self.data.len() - self.pos
    }

    /// Returns a cursor from the end of `other` to the end of this one.
    fn after(self, other: &PerfCursor<'_>) -> PerfCursor<'t> {
        PerfCursor::new(self.data, other.end())
    }

    /// Returns the next `size` bytes as a part, and moves past them.
    fn part(&mut self, size: usize) -> Result<PerfCursor<'t>> {
        if size > self.left() {
            let detail = format!("expected {size} bytes, but only {} are left", self.left());
            return Err(Error::malformed(detail).at(self.pos));
        }
        let part = PerfCursor { data: &self.data[..self.pos + size], pos: self.pos };
        self.pos += size;
        Ok(part)
    }

    fn sized(&mut self, size: u64) -> Result<PerfCursor<'t>> {
        self.part(usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Returns all bytes left.
    fn rest(&self) -> &'t [u8] {
        &self.data[self.pos..]
    }

    fn bytes(&mut self, size: usize) -> Result<&'t [u8]> {
        self.part(size).map(|part| part.rest())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns the first of the last `words` words of eight bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    fn word_from_end(&self, words: usize) -> Result<u64> {
        let position = self.left().checked_sub(8 * words).map(|skipped| self.pos + skipped);
        position.map_or_else(
            || PerfCursor::new(self.data, self.end()).u64(),
            |position| PerfCursor::new(self.data, position).u64(),
        )
    }

    /// Returns the text up to the first zero byte, or all bytes left if none is zero.
    fn text(&self) -> &'t [u8] {
        self.rest().split(|&b| b == 0).next().unwrap_or_default()
    }
}

/// The key of a sum of samples, in addition to their stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PerfRoot {
    /// The index of the event in the file.
    event: u32,
    comm: StringId,
    pid: i32,
    tid: i32,
    cpu: Option<u32>,
}

fn read(name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let inflated = file::inflate(&data, options.inflated_limit)?;
    let file = PerfFile::read(name, &data, &inflated)?;
    let size = data.len() + inflated.len();
    let mut recording = PerfRecording::new(&file, size, options)?;
    for record in file.records() {
        let record = record?;
        recording.record(&record).map_err(|e| e.at(record.body.offset()))?;
    }
    let (builder, notes) = recording.finish(size)?;
    drop(file);
    drop((data, inflated));
    Ok(builder.build(name)?.with_notes(notes))
}

/// Returns the time of the first sample of each event, in nanoseconds after the first sample of all.
fn first_events(file: &PerfFile<'_>) -> Result<Events> {
    let (mut events, mut first, mut pace) = (Events::default(), None, Checkpointer::default());
    let names: Vec<String> = file.events.all.iter().map(|event| event.name()).collect();
    for record in file.records() {
        let record = record?;
        pace.step(1);
        if record.kind != kinds::SAMPLE {
            continue;
        }
        if let Some((number, sample)) = file.events.sample(record.body).map_err(|e| e.at(record.body.offset()))? {
            // Records are sorted by time, so the first sample that is read is the earliest.
            let since_first = sample.time.saturating_sub(*first.get_or_insert(sample.time));
            events.see(names[number as usize].as_bytes(), i64::try_from(since_first).map_err(|_| too_large())?);
        }
    }
    Ok(events)
}

/// The contents of the records that were read.
struct PerfRecording<'f, 't> {
    file: &'f PerfFile<'t>,
    builder: ProfileBuilder,
    processes: PerfProcesses<'t>,
    /// The places of frames: the index of the mapped file and the offset in its mapped part. A frame outside all mapped
    /// files has the index [`NONE`].
    places: Interner<(u32, u64), RandomState>,
    /// Distinct stacks of places, from the leaf.
    stacks: Sequences<u32, RandomState>,
    /// Keys of the sums: a root and the index of a stack.
    sums: Interner<(PerfRoot, u32), RandomState>,
    /// The value of each sum: periods, or a number of samples.
    values: Vec<i64>,
    /// The statistics of each event.
    sampled: Vec<Sampled>,
    /// The stack that is being read, from the leaf.
    stack: Vec<u32>,
    /// The number of records and samples that the kernel reports as lost.
    lost: u64,
    /// The number of samples whose id belongs to no event.
    without_event: u64,
    /// The times of the first and the last sample, in nanoseconds of the recorder's clock.
    span: Option<(u64, u64)>,
    /// The time window to read, if the caller set one.
    timeline: Option<Timeline>,
    /// True for each event with samples, inside or outside the time window.
    is_used: Vec<bool>,
    pace: Checkpointer,
}

impl<'f, 't> PerfRecording<'f, 't> {
    fn new(file: &'f PerfFile<'t>, size: usize, options: &LoadOptions) -> Result<PerfRecording<'f, 't>> {
        let timeline = options.time.as_ref();
        let timeline = timeline.map(|window| Timeline::with_events(window, None, || first_events(file))).transpose()?;
        Ok(PerfRecording {
            file,
            builder: ProfileBuilder::new(),
            processes: PerfProcesses::for_input(size),
            places: Interner::default(),
            stacks: Sequences::default(),
            sums: Interner::default(),
            values: Vec::new(),
            sampled: vec![Sampled::default(); file.events.all.len()],
            stack: Vec::new(),
            lost: 0,
            without_event: 0,
            span: None,
            timeline,
            is_used: vec![false; file.events.all.len()],
            pace: Checkpointer::default(),
        })
    }

    fn record(&mut self, record: &PerfRecord<'t>) -> Result<()> {
        self.pace.step(1);
        match record.kind {
            kinds::SAMPLE => match self.file.events.sample(record.body)? {
                Some((event, sample)) => self.sample(event, &sample, record.misc),
                None => {
                    self.without_event += 1;
                    Ok(())
                }
            },
            kinds::MMAP | kinds::MMAP2 => self.processes.map(record, record.kind == kinds::MMAP2, &self.file.build_ids),
            kinds::COMM => self.processes.rename(record),
            kinds::FORK => self.processes.fork(record),
            kinds::LOST | kinds::LOST_SAMPLES => {
                let lost = processes::lost(record.body, record.kind == kinds::LOST)?;
                self.lost = self.lost.saturating_add(lost);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn sample(&mut self, number: u32, sample: &PerfSample<'t>, misc: u16) -> Result<()> {
        let (first, last) = self.span.unwrap_or((sample.time, sample.time));
        self.span = Some((first.min(sample.time), last.max(sample.time)));
        self.is_used[number as usize] = true;
        // Records are sorted by time, so the first sample that is read is the earliest.
        let since_first = i64::try_from(sample.time - first.min(sample.time)).map_err(|_| too_large())?;
        if self.timeline.as_mut().is_some_and(|timeline| !timeline.contains(since_first)) {
            return Ok(());
        }
        let by_period = self.file.events.all[number as usize].is_by_period();
        let value = if by_period { i64::try_from(sample.period).map_err(|_| too_large())? } else { 1 };
        let comm = match self.processes.name(sample.tid as u32) {
            Some(name) => self.builder.string(name),
            // perf prints an unknown thread in this way.
            None => self.builder.string(format!(":{}", sample.tid)),
        };
        let root = PerfRoot { event: number, comm, pid: sample.pid, tid: sample.tid, cpu: sample.cpu };
        self.read_stack(sample, processes::mode_of_record(misc))?;
        let stack = self.stacks.number(&self.stack);
        let sum = self.sums.number((root, stack)) as usize;
        if sum == self.values.len() {
            self.values.push(0);
        }
        self.values[sum] = self.values[sum].checked_add(value).ok_or_else(too_large)?;
        self.sampled[number as usize].add(value);
        Ok(())
    }

    fn read_stack(&mut self, sample: &PerfSample<'t>, mut mode: Mode) -> Result<()> {
        self.stack.clear();
        let mut chain = sample.chain;
        self.pace.step(chain.left() / 64);
        // One is subtracted from return addresses, so that they are inside the call instruction. The first address, and
        // the first one after a mark, is where the processor was, so nothing is subtracted from it.
        let mut is_return = false;
        while chain.left() > 0 {
            let address = chain.u64()?;
            if let Some(marked) = processes::mode_of_mark(address) {
                (mode, is_return) = (marked, false);
                continue;
            }
            self.push_frame(mode, sample.pid, address.saturating_sub(u64::from(is_return)));
            is_return = true;
        }
        if self.stack.is_empty() && sample.address != 0 {
            self.push_frame(mode, sample.pid, sample.address);
        }
        Ok(())
    }

    fn push_frame(&mut self, mode: Mode, pid: i32, address: u64) {
        let place = self.processes.find(mode, pid as u32, address);
        self.stack.push(self.places.number(place.unwrap_or((NONE, 0))));
    }

    fn finish(mut self, size: usize) -> Result<(ProfileBuilder, Vec<String>)> {
        let (notes, locations) = (self.notes(), self.locations()?);
        let PerfRecording {
            file,
            mut builder,
            stacks,
            sums,
            values: sum_values,
            sampled,
            span,
            timeline,
            mut is_used,
            ..
        } = self;
        let events = &file.events.all;
        // A recording without samples keeps the sample types of all events that can have samples.
        if !is_used.contains(&true) {
            is_used = events.iter().map(|event| !event.is_dummy()).collect();
        }
        // Events may share a name, as on a processor with two kinds of cores. Such events become one sample type.
        let mut by_name: HashMap<String, usize> = HashMap::default();
        let mut columns = vec![0; events.len()];
        for (number, event) in events.iter().enumerate().filter(|(number, _)| is_used[*number]) {
            let (kind, unit) = event_type(&event.name(), event.is_by_period());
            let next = by_name.len();
            columns[number] = *by_name.entry(kind).or_insert_with_key(|kind| {
                builder.sample_type(kind, unit);
                if next == 0 {
                    builder.header().default_sample_type = builder.string(kind);
                }
                next
            });
        }
        let n_types = by_name.len();
        let mut type_samples = vec![Sampled::default(); n_types];
        for (number, event_samples) in sampled.iter().enumerate().filter(|(number, _)| is_used[*number]) {
            type_samples[columns[number]].merge(event_samples, 1.0);
        }
        type_samples.into_iter().enumerate().for_each(|(column, sampled)| builder.sampled(column, sampled));
        if let Some((first, last)) = span {
            builder.header().duration_nanos = i64::try_from(last - first).map_err(|_| too_large())?;
        }
        if let Some(timeline) = timeline {
            timeline.finish(builder.header())?;
        }
        let [comm, pid, tid, cpu] = ["comm", "pid", "tid", "cpu"].map(|key| builder.string(key));
        let number = |key, value| Label { key, value: LabelValue::Number(value, StringId::EMPTY) };
        let (mut budget, mut leaf_first, mut values) = (StackBudget::for_input(size), Vec::new(), vec![0; n_types]);
        for (&(root, stack), &sum) in sums.values.iter().zip(&sum_values).filter(|(_, sum)| **sum != 0) {
            let stack = stacks.get(stack);
            budget.take(stack.len(), n_types)?;
            leaf_first.clear();
            leaf_first.extend(stack.iter().map(|&place| locations[place as usize]));
            let mut labels = vec![number(pid, i64::from(root.pid)), number(tid, i64::from(root.tid))];
            // The CPU is a text label, because a number label of 0 means no label, and CPU 0 exists.
            let text = |n: u32| Label { key: cpu, value: LabelValue::Text(builder.string(n.to_string())) };
            labels.extend(root.cpu.map(text));
            if root.comm != StringId::EMPTY {
                labels.insert(0, Label { key: comm, value: LabelValue::Text(root.comm) });
            }
            values[columns[root.event as usize]] = sum;
            builder.sample(&leaf_first, &values, &labels)?;
            values[columns[root.event as usize]] = 0;
        }
        Ok((builder, notes))
    }

    /// Creates the locations of all places. Only mappings with locations are kept. The first of them that was the first
    /// mapped file of its process is taken for the program, and comes before all others.
    fn locations(&mut self) -> Result<Vec<LocationId>> {
        let PerfRecording { builder, processes, places, .. } = self;
        let mapped = &processes.mapped.values;
        let mut is_used = vec![false; mapped.len()];
        places
            .values
            .iter()
            .filter(|(number, _)| *number != NONE)
            .for_each(|(number, _)| is_used[*number as usize] = true);
        let used = || (0..mapped.len()).filter(|&number| is_used[number]);
        let program = used().find(|&number| processes.first[number].1);
        let mut mappings = vec![None; mapped.len()];
        for number in program.into_iter().chain(used()) {
            if mappings[number].is_none() {
                let MappedFile { file, build_id, offset, size } = mapped[number];
                let id: String = build_id.iter().map(|b| format!("{b:02x}")).collect();
                let (file, build_id) = (builder.string(file), builder.string(id));
                let start = if size == 0 { 0 } else { processes.first[number].0 };
                let limit = start.saturating_add(size);
                mappings[number] = Some(builder.mapping(Mapping { start, limit, offset, file, build_id, flags: 0 }));
            }
        }
        let unknown = builder.function("[unknown]", "", 0);
        let unknown = builder.line(unknown, 0);
        let mut location = |&(number, inside): &(u32, u64)| match number {
            NONE => builder.location(None, 0, &[unknown]),
            _ => {
                let (start, _) = processes.first[number as usize];
                let has_file = mapped[number as usize].size != 0;
                let address = if has_file { start.wrapping_add(inside) } else { 0 };
                builder.location(mappings[number as usize], address, &[])
            }
        };
        places.values.iter().map(&mut location).collect()
    }

    /// Returns the warnings for the user.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.file.notes.clone();
        if self.lost > 0 {
            notes.push(format!(
                "perf lost {} records, so some samples are missing; record with a larger buffer (-m) or less often (-F)",
                self.lost
            ));
        }
        if self.without_event > 0 {
            notes.push(format!("{} samples belong to no event of the file and are left out", self.without_event));
        }
        notes
    }
}
