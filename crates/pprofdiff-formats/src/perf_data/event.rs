//! Events and samples. An event defines the quantity that is counted, and the fields of its samples.

use super::file::{PerfRecord, as_text};
use super::{PerfCursor, kinds};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The bits for the fields of a sample (`enum perf_event_sample_format` of the kernel). The fields of a sample have
/// another order ([`PerfSample::read`]). `BRANCHES` and `STACK_MEMORY` follow the last field that is read.
mod has {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDRESS: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const BRANCHES: u64 = 1 << 11;
    pub const STACK_MEMORY: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of an event's flags, which are bit fields of the kernel's `struct perf_event_attr`.
const EXCLUDES_USER: u64 = 1 << 4;
const EXCLUDES_KERNEL: u64 = 1 << 5;
const IS_FREQUENCY: u64 = 1 << 10;
const ALL_HAVE_IDS: u64 = 1 << 18;
/// The bit of a branch selection for the call stack: calls that have not returned.
const CALL_STACK: u64 = 1 << 11;

/// The size of the oldest version of attributes in bytes.
const MIN_ATTRIBUTES: u32 = 64;

/// Kinds of events. Kind 0 is a hardware event.
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
/// The event without samples that perf adds to record other records.
const DUMMY: u64 = 9;

/// perf's names of hardware and software events, by their number (`config`).
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE_NAMES: [&str; 9] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
];

/// An event that was recorded.
#[derive(Debug)]
pub(super) struct PerfEvent {
    kind: u32,
    /// The number of the event among the events of its kind.
    config: u64,
    /// The fixed period of samples, or their frequency if the flags have [`IS_FREQUENCY`].
    period: u64,
    /// The fields of a sample, as bits of [`has`].
    sample: u64,
    /// The parts of the counter values in a sample, as bits ([`skip_counts`]).
    read: u64,
    flags: u64,
    /// The selection of branches, as bits.
    branches: u64,
    /// The name in the file, if it has one.
    name: Option<String>,
}

impl PerfEvent {
    /// Returns the size that the attributes claim to have, but at least the size of their oldest version.
    pub fn size(mut attributes: PerfCursor<'_>) -> Result<u32> {
        attributes.u32()?;
        Ok(attributes.u32()?.max(MIN_ATTRIBUTES))
    }

    fn read(mut attributes: PerfCursor<'_>) -> Result<PerfEvent> {
        let (kind, _, config, period) = (attributes.u32()?, attributes.u32()?, attributes.u64()?, attributes.u64()?);
        let (sample, read, flags) = (attributes.u64()?, attributes.u64()?, attributes.u64()?);
        attributes.part(16)?;
        // Older attributes end here.
        let branches = if attributes.left() >= 16 { attributes.part(8).and_then(|_| attributes.u64())? } else { 0 };
        Ok(PerfEvent { kind, config, period, sample, read, flags, branches, name: None })
    }

    /// Returns the name of the event in the file. For an event without a name, returns perf's name and modifier, such
    /// as `cycles:u`, or the numbers of an event that is not in [`HARDWARE_NAMES`] or [`SOFTWARE_NAMES`].
    pub fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let names = [&HARDWARE_NAMES[..], &SOFTWARE_NAMES].get(self.kind as usize).copied().unwrap_or_default();
        let name = usize::try_from(self.config).ok().and_then(|number| names.get(number));
        let modifiers = match (self.flags & EXCLUDES_USER != 0, self.flags & EXCLUDES_KERNEL != 0) {
            (true, false) => ":k",
            (false, true) => ":u",
            _ => "",
        };
        match name {
            Some(name) => format!("{name}{modifiers}"),
            None => format!("event {}:{:#x}", self.kind, self.config),
        }
    }

    /// Returns true if samples have periods, or the event has a fixed period. Returns false for tracepoints: their
    /// samples are counted, as in the output of `perf script`.
    pub fn is_by_period(&self) -> bool {
        self.kind != TRACEPOINT && (self.sample & has::PERIOD != 0 || self.flags & IS_FREQUENCY == 0)
    }

    /// Returns true for an event that only supplies records other than samples.
    pub fn is_dummy(&self) -> bool {
        (self.kind, self.config) == (SOFTWARE, DUMMY)
    }

    /// Returns the position of the id in a sample, in words from its beginning, or `None` if samples have no id.
    fn id_place(&self) -> Option<usize> {
        let preceding = [has::IP, has::TID, has::TIME, has::ADDRESS];
        match self.sample {
            sample if sample & has::IDENTIFIER != 0 => Some(0),
            sample if sample & has::ID != 0 => Some(preceding.iter().filter(|&&bit| sample & bit != 0).count()),
            _ => None,
        }
    }

    /// Returns the positions of the id and the time at the end of records other than samples, in words from the end: 1
    /// is the last word. A position is `None` if the event does not record the id or the time.
    fn places_from_end(&self) -> (Option<usize>, Option<usize>) {
        let order = [has::IDENTIFIER, has::CPU, has::STREAM_ID, has::ID, has::TIME];
        let place = |bit| {
            let following =
                order.iter().take_while(|&&listed| listed != bit).filter(|&&listed| self.sample & listed != 0);
            (self.sample & bit != 0).then(|| following.count() + 1)
        };
        (place(has::IDENTIFIER).or_else(|| place(has::ID)), place(has::TIME))
    }
}

/// All events of a file. Records refer to them by id.
#[derive(Debug)]
pub(super) struct PerfEvents {
    pub all: Vec<PerfEvent>,
    /// Indexes into `all`.
    by_id: HashMap<u64, u32>,
    /// The number of ids that may still be added. Many events could refer to the same bytes of the file.
    ids_left: usize,
}

impl PerfEvents {
    pub fn for_input(size: usize) -> PerfEvents {
        PerfEvents { all: Vec::new(), by_id: HashMap::default(), ids_left: size / 4 }
    }

    /// Adds an event without ids, and returns its index.
    pub fn add(&mut self, attributes: PerfCursor<'_>) -> Result<u32> {
        self.all.push(PerfEvent::read(attributes)?);
        Ok(self.all.len() as u32 - 1)
    }

    pub fn add_ids(&mut self, event: u32, mut ids: PerfCursor<'_>) -> Result<()> {
        let n = ids.left() / 8;
        self.ids_left = self.ids_left.checked_sub(n).ok_or_else(|| {
            Error::new(ErrorKind::Limit, "its events have too many ids for a file of its size").at(ids.offset())
        })?;
        for _ in 0..n {
            let id = ids.u64()?;
            self.by_id.insert(id, event);
        }
        Ok(())
    }

    /// Reads the section with the names of events, which are in the order of the events. Names of further events are
    /// ignored.
    pub fn describe(&mut self, mut section: PerfCursor<'_>) -> Result<()> {
        let (n, size) = (section.u32()?, section.u32()?);
        for number in 0..n as usize {
            section.sized(u64::from(size))?;
            let (ids, length) = (section.u32()?, section.u32()?);
            let name = section.sized(u64::from(length))?.text();
            section.sized(u64::from(ids) * 8)?;
            if let Some(event) = self.all.get_mut(number) {
                event.name = Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty());
            }
        }
        Ok(())
    }

    /// Reads an update of an event, and applies a new name. Other updates, and updates of unknown events, are ignored.
    pub fn update(&mut self, mut body: PerfCursor<'_>) -> Result<()> {
        const NAME: u64 = 2;
        let (kind, id) = (body.u64()?, body.u64()?);
        if let (NAME, Some(&event)) = (kind, self.by_id.get(&id)) {
            self.all[event as usize].name = Some(String::from_utf8_lossy(body.text()).into_owned());
        }
        Ok(())
    }

    /// Refuses recordings that cannot be read.
    ///
    /// # Errors
    /// There are no events, perf must unwind or assemble the stacks, or the events have their ids at different
    /// positions.
    pub fn finish(&self, name: &str) -> Result<()> {
        let Some(first) = self.all.first() else {
            return Err(Error::malformed("it has no events; is it a recording of perf record?"));
        };
        if self.all.iter().any(|event| event.sample & has::STACK_MEMORY != 0) {
            let reason =
                "it was recorded with --call-graph dwarf, which stores memory in place of stacks; perf must unwind it";
            return Err(as_text(name, reason, "have perf write it as text, or record with --call-graph fp"));
        }
        if self.all.iter().any(|event| event.sample & has::BRANCHES != 0 && event.branches & CALL_STACK != 0) {
            let reason = "it was recorded with --call-graph lbr, so perf must assemble its stacks";
            return Err(as_text(name, reason, "have perf write it as text, or record with --call-graph fp"));
        }
        let differs = |event: &PerfEvent| event.id_place() != first.id_place();
        if self.all.iter().any(differs) {
            return Err(Error::malformed(
                "its events store their ids at different positions, so samples are ambiguous",
            ));
        }
        Ok(())
    }

    /// Returns the time of a record, or 0 for a record without a time and for a sample of an unknown event.
    pub fn time(&self, record: &PerfRecord<'_>) -> Result<u64> {
        if record.kind == kinds::SAMPLE {
            return Ok(self.sample(record.body)?.map_or(0, |(_, sample)| sample.time));
        }
        let first = &self.all[0];
        if first.flags & ALL_HAVE_IDS == 0 {
            return Ok(0);
        }
        let word = |place: usize| record.body.word_from_end(place);
        let event = match first.places_from_end().0 {
            Some(place) if self.all.len() > 1 => {
                self.by_id.get(&word(place)?).map_or(first, |&e| &self.all[e as usize])
            }
            _ => first,
        };
        event.places_from_end().1.map_or(Ok(0), word)
    }

    /// Returns a sample and the index of its event, or `None` if no event has its id. If the file has one event, or
    /// samples have no id, the sample belongs to the first event.
    pub fn sample<'t>(&self, body: PerfCursor<'t>) -> Result<Option<(u32, PerfSample<'t>)>> {
        let number = match self.all[0].id_place() {
            Some(place) if self.all.len() > 1 => {
                let mut id = body;
                id.part(8 * place)?;
                match self.by_id.get(&id.u64()?) {
                    Some(&number) => number,
                    None => return Ok(None),
                }
            }
            _ => 0,
        };
        Ok(Some((number, PerfSample::read(&self.all[number as usize], body)?)))
    }
}

/// A sample. If a field was not recorded, `pid` and `tid` are -1, `address` and `time` are 0, `cpu` is `None`, `period`
/// is the period of the event, and `chain` is empty.
#[derive(Debug)]
pub(super) struct PerfSample<'t> {
    pub address: u64,
    pub pid: i32,
    pub tid: i32,
    /// The time in nanoseconds of the recorder's clock.
    pub time: u64,
    pub cpu: Option<u32>,
    pub period: u64,
    /// Addresses from the leaf. Marks between them change the mode of the following addresses.
    pub chain: PerfCursor<'t>,
}

impl<'t> PerfSample<'t> {
    fn read(event: &PerfEvent, mut body: PerfCursor<'t>) -> Result<PerfSample<'t>> {
        let mut sample =
            PerfSample { address: 0, pid: -1, tid: -1, time: 0, cpu: None, period: event.period, chain: body.part(0)? };
        let has = |bit| event.sample & bit != 0;
        if has(has::IDENTIFIER) {
            body.u64()?;
        }
        if has(has::IP) {
            sample.address = body.u64()?;
        }
        if has(has::TID) {
            (sample.pid, sample.tid) = (body.u32()? as i32, body.u32()? as i32);
        }
        if has(has::TIME) {
            sample.time = body.u64()?;
        }
        for bit in [has::ADDRESS, has::ID, has::STREAM_ID] {
            if has(bit) {
                body.u64()?;
            }
        }
        if has(has::CPU) {
            sample.cpu = Some(body.u32()?);
            body.u32()?;
        }
        if has(has::PERIOD) {
            sample.period = body.u64()?;
        }
        if has(has::READ) {
            skip_counts(event.read, &mut body)?;
        }
        if has(has::CALLCHAIN) {
            let n = body.u64()?;
            sample.chain = body.sized(n.saturating_mul(8))?;
        }
        Ok(sample)
    }
}

/// Skips the counter values that a sample may have: the event's own value, or the values of the whole group that it
/// leads. The bits of `format` are those of the kernel's `enum perf_event_read_format`.
fn skip_counts(format: u64, body: &mut PerfCursor<'_>) -> Result<()> {
    let [enabled, running, id, group, lost] = [0, 1, 2, 3, 4].map(|bit| format >> bit & 1);
    let count = 1 + id + lost;
    let words = if group != 0 { body.u64()?.saturating_mul(count) } else { count };
    body.sized(words.saturating_add(enabled + running).saturating_mul(8)).map(|_| ())
}
