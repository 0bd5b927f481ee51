//! The layout of a file: its header, its sections, and its records sorted by time.
//!
//! ```text
//! header: positions of the events, records and sections         or, written into a pipe, only records, some of
//! events (attributes, ids)                                      which replace the other parts
//! records: size, kind, body
//! sections: build ids, names of events
//! ```

use super::event::{PerfEvent, PerfEvents};
use super::{PerfCursor, kinds};
use pprofdiff_profile::advice;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::shared::unzstd;
use pprofdiff_profile::{Error, ErrorKind, Result};

pub(super) const MAGIC: &[u8] = b"PERFILE2";

/// The size of the header in a file, and in the output that perf writes into a pipe.
const HEADER: u64 = 104;
const PIPED: u64 = 16;

/// The numbers of the sections that are read. The header has a bit for each section that the file contains. In a pipe,
/// a section is a record that begins with this number.
const BUILD_IDS: u64 = 2;
const EVENT_DESCRIPTIONS: u64 = 12;
/// The section that marks a directory: the records are in other files.
const FOLDER: u64 = 24;

/// The end of a zstd frame: the header of an empty last block. perf flushes the compressed stream and never ends it, so
/// the end is appended before decompression.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];

/// A record. The body is the record without its header of eight bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerfRecord<'t> {
    pub kind: u32,
    pub misc: u16,
    pub body: PerfCursor<'t>,
}

impl<'t> PerfRecord<'t> {
    /// Reads the record at an offset.
    fn read(data: &'t [u8], offset: usize) -> Result<PerfRecord<'t>> {
        let mut header = PerfCursor::new(data, offset);
        let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
        let size = usize::from(size).checked_sub(8);
        let size = size.ok_or_else(|| Error::malformed("a record is smaller than its header").at(offset))?;
        Ok(PerfRecord { kind, misc, body: header.part(size)? })
    }
}

/// A file's events, build ids and sorted records.
pub(super) struct PerfFile<'t> {
    pub events: PerfEvents,
    /// The build ids of perf's own records and of the section of build ids, by file name.
    pub build_ids: HashMap<&'t [u8], &'t [u8]>,
    /// The time and the offset of each record of the kernel, sorted by time. The decompressed records follow the file:
    /// an offset in them is counted from the end of the file.
    records: Vec<(u64, u64)>,
    data: &'t [u8],
    inflated: &'t [u8],
    pub notes: Vec<String>,
}

/// Decompresses the compressed records, which contain further records. The result is empty for a file without them.
pub(super) fn inflate(data: &[u8], limit: u64) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    let (from, to, _) = FileLayout::read(data)?.records;
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
    unzstd(&mut &*packed, limit).map_err(|e| e.in_record(|| "the compressed records".to_owned()))
}

/// Calls `f` with each record between two offsets.
fn each_record<'t>(
    data: &'t [u8],
    mut from: usize,
    to: usize,
    mut f: impl FnMut(PerfRecord<'t>) -> Result<()>,
) -> Result<()> {
    let mut pace = Checkpointer::default();
    while from < to {
        pace.step(1);
        let record = PerfRecord::read(&data[..to], from)?;
        f(record)?;
        from = record.body.end();
        let mut body = record.body;
        // These records are followed by data that is not included in their size.
        let more = match record.kind {
            kinds::TRACING_DATA => u64::from(body.u32()?),
            kinds::AUXTRACE => body.u64()?,
            _ => continue,
        };
        from = PerfCursor::new(&data[..to], from).sized(more)?.end();
    }
    Ok(())
}

/// The positions of a file's parts.
struct FileLayout {
    is_piped: bool,
    /// The offset and size of the events.
    events: (u64, u64),
    /// The size of one event in bytes.
    event_size: u64,
    /// The offsets where the records begin and end, and true if perf was killed before it wrote their size. They then
    /// end after the last complete record.
    records: (usize, usize, bool),
    /// A bit for each section after the records, by its number.
    sections: u64,
}

impl FileLayout {
    fn read(data: &[u8]) -> Result<FileLayout> {
        let mut header = PerfCursor::new(data, MAGIC.len());
        let size = header.u64()?;
        if size == PIPED {
            let records = (PIPED as usize, data.len(), false);
            return Ok(FileLayout { is_piped: true, events: (0, 0), event_size: 0, records, sections: 0 });
        }
        if size < HEADER {
            return Err(Error::malformed(format!("its header has {size} bytes")).at(MAGIC.len()));
        }
        let event_size = header.u64()?;
        let events = (header.u64()?, header.u64()?);
        let (from, size) = (header.u64()?, header.u64()?);
        header.part(16)?;
        let sections = header.u64()?;
        // perf writes the size at the end, so the size is 0 if perf was killed.
        let is_cut = size == 0;
        let to = if is_cut { data.len() as u64 } else { from.saturating_add(size) };
        if to > data.len() as u64 || from > to {
            let detail =
                format!("its records should end at byte {to}, but the file has {} bytes; it was cut off", data.len());
            return Err(Error::malformed(detail).at(data.len()));
        }
        let (from, to) = (from as usize, to as usize);
        if is_cut {
            // perf writes the sections after the size, so they are missing too.
            let records = (from, whole_records(data, from), true);
            return Ok(FileLayout { is_piped: false, events, event_size, records, sections: 0 });
        }
        Ok(FileLayout { is_piped: false, events, event_size, records: (from, to, false), sections })
    }
}

impl<'t> PerfFile<'t> {
    pub fn read(name: &str, data: &'t [u8], inflated: &'t [u8]) -> Result<PerfFile<'t>> {
        let parts = FileLayout::read(data)?;
        let (from, to, is_cut) = parts.records;
        let events = PerfEvents::for_input(data.len());
        let (build_ids, records, notes) = (HashMap::default(), Vec::new(), Vec::new());
        let mut file = PerfFile { events, build_ids, records, data, inflated, notes };
        if !parts.is_piped {
            file.read_events(&parts)?;
            file.read_sections(name, &parts)?;
        }
        if is_cut {
            file.notes.push("perf record was interrupted, so the last samples may be missing".to_owned());
        }
        each_record(data, from, to, |record| file.record(name, record, 0))?;
        let file_size = data.len() as u64;
        each_record(inflated, 0, inflated.len(), |record| match record.kind {
            kinds::COMPRESSED | kinds::COMPRESSED2 => Err(Error::malformed("compressed records are nested")),
            _ => file.record(name, record, file_size),
        })?;
        file.events.finish(name)?;
        file.sort()?;
        Ok(file)
    }

    fn read_events(&mut self, parts: &FileLayout) -> Result<()> {
        let (from, size) = parts.events;
        let mut section = PerfCursor::section(self.data, from, size)?;
        while section.left() > 0 {
            let mut entry = section.sized(parts.event_size.max(1))?;
            let body = entry.sized(parts.event_size.saturating_sub(16))?;
            let (from, size) = (entry.u64()?, entry.u64()?);
            let event = self.events.add(body)?;
            self.events.add_ids(event, PerfCursor::section(self.data, from, size)?)?;
        }
        Ok(())
    }

    fn read_sections(&mut self, name: &str, parts: &FileLayout) -> Result<()> {
        let mut positions = PerfCursor::new(self.data, parts.records.1);
        for bit in (0..64).filter(|bit| parts.sections >> bit & 1 != 0) {
            let (from, size) = (positions.u64()?, positions.u64()?);
            if [BUILD_IDS, EVENT_DESCRIPTIONS, FOLDER].contains(&bit) {
                self.section(name, bit, PerfCursor::section(self.data, from, size)?)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &str, number: u64, mut section: PerfCursor<'t>) -> Result<()> {
        match number {
            BUILD_IDS => {
                while section.left() >= 8 {
                    let record = PerfRecord::read(section.data(), section.offset())?;
                    section = section.after(&record.body);
                    self.build_id(record)?;
                }
                Ok(())
            }
            EVENT_DESCRIPTIONS => self.events.describe(section),
            FOLDER => {
                Err(as_text(name, "its records are in other files of its directory", "have perf write them as text"))
            }
            _ => Ok(()),
        }
    }

    fn build_id(&mut self, record: PerfRecord<'t>) -> Result<()> {
        /// The bit of a record's `misc` for a length after the 20 bytes of the id. Without it, the id takes all of
        /// them.
        const HAS_SIZE: u16 = 1 << 15;
        let mut body = record.body;
        body.u32()?;
        let id = body.bytes(24)?;
        let size = if record.misc & HAS_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        self.build_ids.insert(body.text(), &id[..size]);
        Ok(())
    }

    /// Remembers the offset of a record of the kernel that is used, and interprets perf's own records. Other records
    /// are ignored. `base` is the offset of the data that contains the record: 0 for the file, and the size of the file
    /// for the decompressed records.
    ///
    /// # Errors
    /// The record is malformed, or perf must decode it.
    fn record(&mut self, name: &str, record: PerfRecord<'t>, base: u64) -> Result<()> {
        let mut body = record.body;
        match record.kind {
            kinds::ATTRIBUTES => {
                let size = u64::from(PerfEvent::size(body)?);
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
                "it has processor traces (Intel PT, Arm SPE), which perf must decode",
                "perf script with --itrace converts them to samples",
            )),
            kind if kinds::IS_READ.contains(&kind) => {
                self.records.push((0, base + (body.offset() - 8) as u64));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sorts the records by time, because perf writes the buffers of different CPUs one by one. Records without a time
    /// come first, in the order of the file: perf writes them for processes that already ran.
    fn sort(&mut self) -> Result<()> {
        let mut records = std::mem::take(&mut self.records);
        for (time, offset) in &mut records {
            let record = self.record_at(*offset)?;
            *time = self.events.time(&record).map_err(|e| e.at(*offset as usize))?;
        }
        records.sort_by_key(|&(time, _)| time);
        self.records = records;
        Ok(())
    }

    fn record_at(&self, offset: u64) -> Result<PerfRecord<'t>> {
        match offset.checked_sub(self.data.len() as u64) {
            None => PerfRecord::read(self.data, offset as usize),
            Some(offset) => PerfRecord::read(self.inflated, offset as usize),
        }
    }

    /// Returns the records of the kernel, sorted by time.
    pub fn records(&self) -> impl Iterator<Item = Result<PerfRecord<'t>>> + '_ {
        self.records.iter().map(|&(_, offset)| self.record_at(offset))
    }
}

/// Returns the end of the last complete record, or `offset` if there is none.
fn whole_records(data: &[u8], mut offset: usize) -> usize {
    while let Ok(record) = PerfRecord::read(data, offset) {
        offset = record.body.end();
    }
    offset
}

/// Returns the error for a file that only perf can read, with a reason and a remedy. Its advice is the command that
/// converts the file to text.
pub(super) fn as_text(name: &str, reason: &str, remedy: &str) -> Error {
    let command = format!("perf script -i {} -F +pid,+srcline > profile.txt", advice::operand(name, "FILE"));
    Error::new(ErrorKind::OtherFormat, format!("{reason}; {remedy}")).advise(command)
}
