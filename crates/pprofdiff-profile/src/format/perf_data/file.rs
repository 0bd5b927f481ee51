//! A file's parts: its header, the sections that are described there, and its records, in the order of their times.
//!
//! ```text
//! header: where the events, the records and the sections are    or, written into a pipe, the records alone, some of
//! events (attributes, ids)                                      which say what the other parts do
//! records: size, kind, body
//! sections: build ids, names of events
//! ```

use super::event::{Event, Events};
use super::{Cursor, kinds};
use crate::advice;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::unzstd;
use crate::random::HashMap;
use crate::work::Pace;

pub(super) const MAGIC: &[u8] = b"PERFILE2";

/// Sizes of the header: of a file, and of what was written into a pipe.
const HEADER: u64 = 104;
const PIPED: u64 = 16;

/// Bits of the header, and numbers of records, for the sections that are read.
const BUILD_IDS: u64 = 2;
const EVENT_DESCRIPTIONS: u64 = 12;
/// The records are in other files of a folder.
const FOLDER: u64 = 24;

/// The end of a zstd frame: perf flushes what it packs, and never ends it.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];

/// A record of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'t> {
    pub kind: u32,
    pub misc: u16,
    pub body: Cursor<'t>,
}

impl<'t> Record<'t> {
    /// The record at a place.
    fn read(data: &'t [u8], at: usize) -> Result<Record<'t>> {
        let mut header = Cursor::new(data, at);
        let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
        let size = usize::from(size).checked_sub(8);
        let size = size.ok_or_else(|| Error::malformed("a record is smaller than its header").at(at))?;
        Ok(Record { kind, misc, body: header.part(size)? })
    }
}

/// What is known of a file before its samples are looked at.
pub(super) struct File<'t> {
    pub events: Events,
    /// By the file's name.
    pub build_ids: HashMap<&'t [u8], &'t [u8]>,
    /// The records of the kernel, by their times: places in the file, and behind its end in what was packed in it.
    records: Vec<(u64, u64)>,
    data: &'t [u8],
    inflated: &'t [u8],
    pub notes: Vec<String>,
}

/// What records that are packed inflate to, which is records again; empty if there are none.
pub(super) fn inflate(data: &[u8], limit: u64) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    let (from, to, _) = Parts::read(data)?.records;
    each_record(data, from, to, |record| {
        let mut body = record.body;
        match record.kind {
            kinds::COMPRESSED => packed.extend_from_slice(body.rest()),
            kinds::COMPRESSED2 => {
                let size = body.u64()?;
                packed.extend_from_slice(body.sized(size)?.rest());
            }
            _ => {}
        }
        Ok(())
    })?;
    if packed.is_empty() {
        return Ok(packed);
    }
    packed.extend(LAST_BLOCK);
    unzstd(&mut &*packed, limit).map_err(|e| e.in_record(|| "the packed records".to_owned()))
}

/// Calls `f` with all records up to `to`.
fn each_record<'t>(
    data: &'t [u8],
    mut from: usize,
    to: usize,
    mut f: impl FnMut(Record<'t>) -> Result<()>,
) -> Result<()> {
    let mut pace = Pace::default();
    while from < to {
        pace.step(1);
        let record = Record::read(&data[..to], from)?;
        f(record)?;
        from = record.body.end();
        let mut body = record.body;
        // What is not in the record stands behind it.
        let more = match record.kind {
            kinds::TRACING_DATA => u64::from(body.u32()?),
            kinds::AUXTRACE => body.u64()?,
            _ => continue,
        };
        from = Cursor::new(&data[..to], from).sized(more)?.end();
    }
    Ok(())
}

/// A file's parts by their places.
struct Parts {
    is_piped: bool,
    /// Where the events are, and the size of each.
    events: (u64, u64),
    event_size: u64,
    /// Where the records begin and end, and whether they are cut off.
    records: (usize, usize, bool),
    /// The bits of the sections behind the records.
    sections: u64,
}

impl Parts {
    fn read(data: &[u8]) -> Result<Parts> {
        let mut header = Cursor::new(data, MAGIC.len());
        let size = header.u64()?;
        if size == PIPED {
            let records = (PIPED as usize, data.len(), false);
            return Ok(Parts { is_piped: true, events: (0, 0), event_size: 0, records, sections: 0 });
        }
        if size < HEADER {
            return Err(Error::malformed(format!("its header has {size} bytes")).at(MAGIC.len()));
        }
        let event_size = header.u64()?;
        let events = (header.u64()?, header.u64()?);
        let (from, size) = (header.u64()?, header.u64()?);
        header.part(16)?;
        let sections = header.u64()?;
        // A recorder that is killed does not come to write the size.
        let is_cut = size == 0;
        let to = if is_cut { data.len() as u64 } else { from.saturating_add(size) };
        if to > data.len() as u64 || from > to {
            let detail =
                format!("its records should end at byte {to}, and the file has {} bytes; it is cut off", data.len());
            return Err(Error::malformed(detail).at(data.len()));
        }
        let (from, to) = (from as usize, to as usize);
        if is_cut {
            // Nor do the sections come.
            let records = (from, whole_records(data, from), true);
            return Ok(Parts { is_piped: false, events, event_size, records, sections: 0 });
        }
        Ok(Parts { is_piped: false, events, event_size, records: (from, to, false), sections })
    }
}

impl<'t> File<'t> {
    pub fn read(name: &str, data: &'t [u8], inflated: &'t [u8]) -> Result<File<'t>> {
        let parts = Parts::read(data)?;
        let (from, to, is_cut) = parts.records;
        let events = Events::for_input(data.len());
        let (build_ids, records, notes) = (HashMap::default(), Vec::new(), Vec::new());
        let mut file = File { events, build_ids, records, data, inflated, notes };
        if !parts.is_piped {
            file.read_events(&parts)?;
            file.read_sections(name, &parts)?;
        }
        if is_cut {
            file.notes.push("perf record did not end as it should, so the last samples may be missing".to_owned());
        }
        each_record(data, from, to, |record| file.record(name, record, 0))?;
        let behind = data.len() as u64;
        each_record(inflated, 0, inflated.len(), |record| match record.kind {
            kinds::COMPRESSED | kinds::COMPRESSED2 => Err(Error::malformed("packed records are packed again")),
            _ => file.record(name, record, behind),
        })?;
        file.events.finish(name)?;
        file.sort()?;
        Ok(file)
    }

    fn read_events(&mut self, parts: &Parts) -> Result<()> {
        let (from, size) = parts.events;
        let mut section = Cursor::section(self.data, from, size)?;
        while section.left() > 0 {
            let mut entry = section.sized(parts.event_size.max(1))?;
            let body = entry.sized(parts.event_size.saturating_sub(16))?;
            let (from, size) = (entry.u64()?, entry.u64()?);
            let event = self.events.add(body)?;
            self.events.add_ids(event, Cursor::section(self.data, from, size)?)?;
        }
        Ok(())
    }

    fn read_sections(&mut self, name: &str, parts: &Parts) -> Result<()> {
        let mut places = Cursor::new(self.data, parts.records.1);
        for bit in (0..64).filter(|bit| parts.sections >> bit & 1 != 0) {
            let (from, size) = (places.u64()?, places.u64()?);
            if [BUILD_IDS, EVENT_DESCRIPTIONS, FOLDER].contains(&bit) {
                self.section(name, bit, Cursor::section(self.data, from, size)?)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &str, number: u64, mut section: Cursor<'t>) -> Result<()> {
        match number {
            BUILD_IDS => {
                while section.left() >= 8 {
                    let record = Record::read(section.data(), section.offset())?;
                    section = section.after(&record.body);
                    self.build_id(record)?;
                }
                Ok(())
            }
            EVENT_DESCRIPTIONS => self.events.describe(section),
            FOLDER => {
                Err(as_text(name, "its records are in other files of its folder", "have perf write them as text"))
            }
            _ => Ok(()),
        }
    }

    fn build_id(&mut self, record: Record<'t>) -> Result<()> {
        /// The id has its length behind it.
        const HAS_SIZE: u16 = 1 << 15;
        let mut body = record.body;
        body.u32()?;
        let id = body.bytes(24)?;
        let size = if record.misc & HAS_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        self.build_ids.insert(body.text(), &id[..size]);
        Ok(())
    }

    /// Keeps a record of the kernel for later, and reads one of perf.
    fn record(&mut self, name: &str, record: Record<'t>, behind: u64) -> Result<()> {
        let mut body = record.body;
        match record.kind {
            kinds::ATTRIBUTES => {
                let size = u64::from(Event::size(body)?);
                let attributes = body.sized(size)?;
                let event = self.events.add(attributes)?;
                self.events.add_ids(event, body)
            }
            kinds::EVENT_UPDATE => self.events.update(body),
            kinds::FEATURE => {
                let number = body.u64()?;
                self.section(name, number, body)
            }
            kinds::BUILD_ID => self.build_id(record),
            kinds::AUXTRACE => Err(as_text(
                name,
                "it has traces of the processor (Intel PT, Arm SPE), which perf must decode",
                "perf script with --itrace makes samples of them",
            )),
            kind if kinds::IS_READ.contains(&kind) => {
                self.records.push((0, behind + (body.offset() - 8) as u64));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Buffers of different CPUs are written one after the other. What perf itself says has no time, and comes first.
    fn sort(&mut self) -> Result<()> {
        let mut records = std::mem::take(&mut self.records);
        for (time, at) in &mut records {
            let record = self.at(*at)?;
            *time = self.events.time(&record).map_err(|e| e.at(*at as usize))?;
        }
        records.sort_by_key(|&(time, _)| time);
        self.records = records;
        Ok(())
    }

    fn at(&self, at: u64) -> Result<Record<'t>> {
        match at.checked_sub(self.data.len() as u64) {
            None => Record::read(self.data, at as usize),
            Some(at) => Record::read(self.inflated, at as usize),
        }
    }

    /// The records of the kernel, in the order of their times.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'t>>> + '_ {
        self.records.iter().map(|&(_, at)| self.at(at))
    }
}

/// Where the records end that are there as a whole.
fn whole_records(data: &[u8], mut at: usize) -> usize {
    while let Ok(record) = Record::read(data, at) {
        at = record.body.end();
    }
    at
}

/// An error about what only perf can read: `why`, and what to do.
pub(super) fn as_text(name: &str, why: &str, way_out: &str) -> Error {
    let command = format!("perf script -i {} -F +pid,+srcline > profile.txt", advice::operand(name, "FILE"));
    Error::new(ErrorKind::OtherFormat, format!("{why}; {way_out}")).advise(command)
}
