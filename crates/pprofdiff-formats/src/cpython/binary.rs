//! The binary form, specified in CPython's `InternalDocs/profiling_binary_format.md`.
//!
//! ```text
//! header (64 bytes): magic, version, Python's version, start, interval, counts, offsets of the tables, compression, mode
//! samples, compressed with zstd or not
//! strings: length, UTF-8                       file names and function names
//! frames: file, name, line, column, ...        indexes of strings, and numbers
//! statistics (56 bytes), not in every file
//! footer (32 bytes): number of strings, of frames, size of the file
//! ```
//!
//! A record of samples has a thread and its stack, which is written as a difference to the previous stack of the same
//! thread. The stacks therefore become nodes of a tree, and a thread has the path to its current node. Times are
//! microseconds since the previous sample of the same thread, or since the start. The clock is monotonic, so the time of
//! day is unknown.
//!
//! All numbers of a fixed size are in the byte order of the machine that recorded; the first four bytes show which one.
//!
//! Not read: the ends of lines and columns, opcodes, the states of threads (except which one is the main thread), and
//! statistics besides the duration.

use super::{MODES, location, nanos, write};
use crate::kit::tree::{TextBudget, TreeNode, ValueTree, too_large};
use crate::{InputFormat, LoadOptions};
use pprofdiff_profile::advice;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::{Timeline, unzstd};
use pprofdiff_profile::{Error, ErrorKind, Profile, Result};
use std::borrow::Cow;

pub(crate) const BINARY: InputFormat = InputFormat {
    name: "cpython-binary",
    about: "a recording of CPython's profiling.sampling --binary",
    has_times: true,
    has_events: false,
    recognises: |head| head.starts_with(LITTLE) || head.starts_with(b"TACH\0"),
    read,
};

/// The first four bytes on machines of each byte order: the letters TACH as a 32-bit number.
const LITTLE: &[u8] = b"HCAT";
const BIG: &[u8] = b"TACH";

const VERSION: u32 = 1;
const HEADER: usize = 64;
const FOOTER: usize = 32;
/// The offset of the sampling interval.
const INTERVAL: usize = 20;
/// The statistics end in this signature, their version and their size (16 bytes).
const STATISTICS: &[u8] = b"TACHSTAT";

/// Kinds of compression.
const NONE: u32 = 0;
const ZSTD: u32 = 1;

/// Kinds of records.
const REPEAT: u8 = 0;
const FULL: u8 = 1;
const SUFFIX: u8 = 2;
const POP_PUSH: u8 = 3;

/// The bit of a sample's status that marks the main thread.
const IS_MAIN: u8 = 1 << 5;

/// The bits of the header's last number that have the mode, plus one. The other bits have options of the recording.
const MODE_BITS: u32 = 7;

fn read(name: &str, data: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let header = SamplingHeader::read(name, &data)?;
    let mut recording = SamplingRecording {
        builder: ProfileBuilder::new(),
        frames: Vec::new(),
        tree: ValueTree::new(),
        threads: Vec::new(),
        numbers: HashMap::default(),
        timeline: options.time.as_ref().map(|window| Timeline::new(window, None)).transpose()?,
        last: 0,
        n_samples: 0,
    };
    recording.read_frames(&data, &header)?;
    let samples = header.samples(&data, options.inflated_limit)?;
    recording.read_samples(&samples, &header)?;
    let size = data.len() + samples.len();
    let builder = recording.finish(&header, statistics(&data, &header), size)?;
    drop(samples);
    drop(data);
    builder.build(name)
}

/// A position in the file or in its decompressed samples.
struct SamplingCursor<'t> {
    data: &'t [u8],
    at: usize,
    is_big: bool,
}

impl<'t> SamplingCursor<'t> {
    fn new(data: &'t [u8], at: usize, is_big: bool) -> SamplingCursor<'t> {
        SamplingCursor { data, at: at.min(data.len()), is_big }
    }

    fn left(&self) -> usize {
        self.data.len() - self.at
    }

    fn bytes(&mut self, size: usize) -> Result<&'t [u8]> {
        let Some(bytes) = self.data[self.at..].get(..size) else {
            let detail = format!("expected {size} bytes, but only {} are left", self.left());
            return Err(Error::malformed(detail).at(self.at));
        };
        self.at += size;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.bytes(N)?);
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        let bytes = self.fixed()?;
        Ok(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&mut self) -> Result<u64> {
        let bytes = self.fixed()?;
        Ok(if self.is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Reads an unsigned number of variable length (LEB128).
    fn varint(&mut self) -> Result<u64> {
        let begin = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::malformed("a number is longer than 64 bits").at(begin))
    }

    /// Reads a signed number of variable length (zigzag and LEB128).
    fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// The parts of the header and of the footer that are read.
struct SamplingHeader {
    is_big: bool,
    interval: i64,
    n_samples: u64,
    /// The offsets where the tables begin.
    strings: usize,
    frames: usize,
    compression: u32,
    mode: Option<&'static str>,
    n_strings: u32,
    n_frames: u32,
}

impl SamplingHeader {
    fn read(name: &str, data: &[u8]) -> Result<SamplingHeader> {
        let is_big = data.starts_with(BIG);
        if !is_big && !data.starts_with(LITTLE) {
            return Err(Error::malformed("it does not begin with the letters TACH, as these recordings do").at(0));
        }
        let mut header = SamplingCursor::new(data, LITTLE.len(), is_big);
        let version = header.u32()?;
        let python: [u8; 4] = header.fixed()?;
        if version != VERSION {
            let detail = format!(
                "this is a recording of Python {}.{}.{} in version {version} of its format, and pprofdiff reads version \
                 {VERSION}; have the same Python write it as collapsed stacks",
                python[0], python[1], python[2]
            );
            let command = "python -m profiling.sampling replay --collapsed -o profile.txt";
            let error = Error::new(ErrorKind::OtherFormat, detail);
            return Err(error.advise(format!("{command} {}", advice::operand(name, "FILE"))));
        }
        if data.len() < HEADER + FOOTER {
            return Err(Error::malformed("it is shorter than its header and footer; it was cut off").at(data.len()));
        }
        let (_start, interval_micros, n_samples, _threads) =
            (header.u64()?, header.u64()?, header.u64()?, header.u32()?);
        let tables = header.at;
        let (strings, frames) = (header.u64()?, header.u64()?);
        let (compression, mode) = (header.u32()?, header.u32()?);
        let end = data.len() - FOOTER;
        let mut footer = SamplingCursor::new(data, end, is_big);
        let (n_strings, n_frames, size) = (footer.u32()?, footer.u32()?, footer.u64()?);
        if size != data.len() as u64 {
            let detail = format!(
                "its footer states a size of {size} bytes, but the file has {}; it was cut off or damaged",
                data.len()
            );
            return Err(Error::malformed(detail).at(end + 8));
        }
        // Alphas and betas of Python 3.15 had shorter counts in the header, so their offsets are elsewhere.
        if strings < HEADER as u64 || frames < strings || frames > end as u64 {
            let detail = format!(
                "its tables should begin at bytes {strings} and {frames}, but they must follow each other between bytes \
                 {HEADER} and {end}; if a test release of Python 3.15 recorded it, record it again with a later one"
            );
            return Err(Error::malformed(detail).at(tables));
        }
        if interval_micros == 0 {
            return Err(Error::malformed("its sampling interval must be greater than zero").at(INTERVAL));
        }
        let mode = (mode & MODE_BITS).checked_sub(1).and_then(|mode| MODES.get(mode as usize)).copied();
        Ok(SamplingHeader {
            is_big,
            interval: nanos(interval_micros).map_err(|e| e.at(INTERVAL))?,
            n_samples,
            strings: strings as usize,
            frames: frames as usize,
            compression,
            mode,
            n_strings,
            n_frames,
        })
    }

    /// Returns the file up to the end of its samples, or the decompressed samples.
    fn samples<'t>(&self, data: &'t [u8], limit: u64) -> Result<Cow<'t, [u8]>> {
        let samples = &data[HEADER..self.strings];
        match self.compression {
            NONE => Ok(data[..self.strings].into()),
            ZSTD if samples.is_empty() => Ok(samples.into()),
            ZSTD => {
                let inflated = unzstd(&mut &*samples, limit);
                inflated.map(Cow::from).map_err(|e| e.in_record(|| "the compressed samples".to_owned()).at(HEADER))
            }
            other => {
                let detail = format!("its samples are compressed in a way that pprofdiff does not know ({other})");
                Err(Error::malformed(detail).at(56))
            }
        }
    }
}

/// Returns the measured duration in nanoseconds, or 0 if the file lacks it.
fn statistics(data: &[u8], header: &SamplingHeader) -> i64 {
    let end = data.len() - FOOTER;
    let duration = || {
        let mut trailer = SamplingCursor::new(data, end.checked_sub(16)?, header.is_big);
        let is_there = trailer.bytes(STATISTICS.len()).ok()? == STATISTICS;
        let (_version, size) = (trailer.u32().ok()?, trailer.u32().ok()?);
        let begin = end.checked_sub(size as usize).filter(|begin| is_there && *begin >= header.frames)?;
        SamplingCursor::new(data, begin, header.is_big).u64().ok().map(f64::from_bits)
    };
    match duration() {
        // A longer duration is damaged; 10^9 seconds are 30 years.
        Some(seconds) if (0.0..1e9).contains(&seconds) => (seconds * 1e9) as i64,
        _ => 0,
    }
}

/// A thread of one interpreter, while its samples are read.
struct SampledThread {
    id: u64,
    interpreter: u32,
    is_main: bool,
    /// The time of its last sample in microseconds since the start.
    time: u64,
    /// The nodes of its current stack from the outermost frame. The first one is the root.
    path: Vec<TreeNode>,
}

struct SamplingRecording {
    builder: ProfileBuilder,
    /// The location of each frame, or `None` for frames of the profiler itself.
    frames: Vec<Option<LocationId>>,
    /// The sums of samples. The key of a root is the index of a thread.
    tree: ValueTree<u32>,
    threads: Vec<SampledThread>,
    /// The index of each thread by its id and its interpreter.
    numbers: HashMap<(u64, u32), u32>,
    timeline: Option<Timeline>,
    /// The time of the last sample of all threads, in nanoseconds since the start.
    last: i64,
    n_samples: u64,
}

impl SamplingRecording {
    fn read_frames(&mut self, data: &[u8], header: &SamplingHeader) -> Result<()> {
        let (mut strings, mut pace) = (Vec::new(), Checkpointer::default());
        let mut cursor = SamplingCursor::new(&data[..header.frames], header.strings, header.is_big);
        for number in 0..header.n_strings {
            let mut read_next = || {
                let size = cursor.varint()?;
                cursor.bytes(usize::try_from(size).unwrap_or(usize::MAX))
            };
            strings.push(read_next().map_err(|e| e.in_record(|| format!("string {number}")))?);
            pace.step(1);
        }
        let mut texts = TextBudget::for_input(data.len());
        let mut cursor = SamplingCursor::new(&data[..data.len() - FOOTER], header.frames, header.is_big);
        for number in 0..header.n_frames {
            let begin = cursor.at;
            let mut read_next = || {
                let mut text = || {
                    let index = cursor.varint()?;
                    let text = usize::try_from(index).ok().and_then(|index| strings.get(index)).copied();
                    text.ok_or_else(|| {
                        Error::malformed(format!("it refers to string {index}, but there are {}", strings.len()))
                            .at(begin)
                    })
                };
                let (file, name) = (text()?, text()?);
                let (line, _end, column, _width) =
                    (cursor.signed()?, cursor.signed()?, cursor.signed()?, cursor.signed()?);
                cursor.byte()?;
                texts.take(file.len() + name.len())?;
                location(&mut self.builder, name, file, line, column)
            };
            self.frames.push(read_next().map_err(|e| e.in_record(|| format!("frame {number}")).at(begin))?);
            pace.step(1);
        }
        Ok(())
    }

    fn read_samples(&mut self, samples: &[u8], header: &SamplingHeader) -> Result<()> {
        // Offsets of errors count from the beginning of the file, or of the decompressed samples.
        let (begin, what) = match header.compression {
            NONE => (HEADER, ""),
            _ => (0, " of the decompressed samples"),
        };
        let mut cursor = SamplingCursor::new(samples, begin, header.is_big);
        let (mut number, mut pace) = (0u64, Checkpointer::default());
        while cursor.left() > 0 {
            let begin = cursor.at;
            self.read_record(&mut cursor).map_err(|e| e.in_record(|| format!("record {number}{what}")).at(begin))?;
            pace.step(1 + (cursor.at - begin) / 16);
            number += 1;
        }
        if self.n_samples != header.n_samples {
            let detail = format!(
                "its header states {} samples, but there are {}; it was cut off or damaged",
                header.n_samples, self.n_samples
            );
            return Err(Error::malformed(detail).at(28));
        }
        Ok(())
    }

    /// Reads a record: one sample, or several of the same stack.
    fn read_record(&mut self, cursor: &mut SamplingCursor<'_>) -> Result<()> {
        let (id, interpreter, kind) = (cursor.u64()?, cursor.u32()?, cursor.byte()?);
        let thread = self.thread(id, interpreter)?;
        if kind == REPEAT {
            let count = cursor.varint()?;
            for _ in 0..count {
                self.read_sample(cursor, thread)?;
            }
            return Ok(());
        }
        if ![FULL, SUFFIX, POP_PUSH].contains(&kind) {
            return Err(Error::malformed(format!("its kind {kind} is unknown")));
        }
        // The time and the state come before the stack, which they belong to.
        let stamp = read_stamp(cursor)?;
        let depth = self.threads[thread].path.len() - 1;
        let kept = match kind {
            FULL => 0,
            SUFFIX => {
                let shared = cursor.varint()?;
                usize::try_from(shared).ok().filter(|&shared| shared <= depth).ok_or_else(|| {
                    Error::malformed(format!("it shares {shared} frames with a stack of {depth} frames"))
                })?
            }
            _ => depth.saturating_sub(usize::try_from(cursor.varint()?).unwrap_or(usize::MAX)),
        };
        let n_new = cursor.varint()?;
        // A frame takes at least one byte.
        let n_new = usize::try_from(n_new).ok().filter(|&n| n <= cursor.left()).ok_or_else(|| {
            Error::malformed(format!("it should have {n_new} more frames, but only {} bytes are left", cursor.left()))
        })?;
        let mut leaf_first = Vec::with_capacity(n_new);
        for _ in 0..n_new {
            let index = cursor.varint()?;
            let frame = usize::try_from(index).ok().and_then(|index| self.frames.get(index)).copied();
            leaf_first.push(frame.ok_or_else(|| {
                Error::malformed(format!("it refers to frame {index}, but there are {}", self.frames.len()))
            })?);
        }
        let path = &mut self.threads[thread].path;
        path.truncate(1 + kept);
        for frame in leaf_first.into_iter().rev() {
            let Some(&node) = path.last() else { break };
            path.push(frame.map_or(node, |location| self.tree.child(node, location)));
        }
        self.add(thread, stamp)
    }

    /// Returns the index of a thread, and adds the thread if it is new.
    fn thread(&mut self, id: u64, interpreter: u32) -> Result<usize> {
        if let Some(&number) = self.numbers.get(&(id, interpreter)) {
            return Ok(number as usize);
        }
        let number = u32::try_from(self.threads.len()).map_err(|_| Error::malformed("it has too many threads"))?;
        let root = self.tree.root(number);
        self.threads.push(SampledThread { id, interpreter, is_main: false, time: 0, path: vec![root] });
        self.numbers.insert((id, interpreter), number);
        Ok(number as usize)
    }

    fn read_sample(&mut self, cursor: &mut SamplingCursor<'_>, thread: usize) -> Result<()> {
        let stamp = read_stamp(cursor)?;
        self.add(thread, stamp)
    }

    /// Adds a sample of a thread's current stack. `stamp` is the time since its previous sample, and its state.
    fn add(&mut self, thread: usize, (delta, status): (u64, u8)) -> Result<()> {
        self.n_samples += 1;
        let thread = &mut self.threads[thread];
        thread.is_main |= status & IS_MAIN != 0;
        thread.time = thread.time.checked_add(delta).ok_or_else(too_large)?;
        let time = nanos(thread.time)?;
        self.last = self.last.max(time);
        let is_read = match &mut self.timeline {
            Some(timeline) => timeline.contains(time),
            None => true,
        };
        // A stack of the profiler's own frames ends at the root.
        match (thread.path.first(), thread.path.last()) {
            (Some(root), Some(leaf)) if is_read && leaf != root => self.tree.add(*leaf, 1),
            _ => Ok(()),
        }
    }

    fn finish(self, header: &SamplingHeader, duration: i64, size: usize) -> Result<ProfileBuilder> {
        let SamplingRecording { mut builder, tree, threads, timeline, last, .. } = self;
        builder.header().duration_nanos = if duration > 0 { duration } else { last };
        if let Some(timeline) = timeline {
            timeline.finish(builder.header())?;
        }
        let [thread_key, tid, interpreter] = ["thread", "tid", "interpreter"].map(|key| builder.string(key));
        let main = builder.string("MainThread");
        let has_interpreters = threads.iter().any(|thread| thread.interpreter != 0);
        let mut values = Vec::with_capacity(threads.len());
        for thread in &threads {
            values.push(match i64::try_from(thread.id) {
                Ok(id) => LabelValue::Number(id, StringId::EMPTY),
                Err(_) => LabelValue::Text(builder.string(thread.id.to_string())),
            });
        }
        write(&tree, header.mode, header.interval, size, &mut builder, |number, labels| {
            let thread = &threads[number as usize];
            if thread.is_main {
                labels.push(Label { key: thread_key, value: LabelValue::Text(main) });
            }
            labels.push(Label { key: tid, value: values[number as usize] });
            if has_interpreters {
                let value = LabelValue::Number(thread.interpreter.into(), StringId::EMPTY);
                labels.push(Label { key: interpreter, value });
            }
        })?;
        Ok(builder)
    }
}

/// Reads the time since the thread's previous sample, and the state of the thread.
fn read_stamp(cursor: &mut SamplingCursor<'_>) -> Result<(u64, u8)> {
    Ok((cursor.varint()?, cursor.byte()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value > 127 {
            out.push(value as u8 | 128);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }

    fn signed(value: i64) -> Vec<u8> {
        varint((value << 1 ^ value >> 63) as u64)
    }

    /// A recording, written like CPython's `binary_io_writer.c` does.
    struct Written {
        is_big: bool,
        compression: u32,
        n_samples: u64,
        mode: u32,
        records: Vec<u8>,
        duration: Option<f64>,
    }

    impl Written {
        fn new(n_samples: u64, records: Vec<Vec<u8>>) -> Written {
            Written { is_big: false, compression: NONE, n_samples, mode: 1, records: records.concat(), duration: None }
        }

        fn u32(&self, value: u32) -> Vec<u8> {
            if self.is_big { value.to_be_bytes().into() } else { value.to_le_bytes().into() }
        }

        fn u64(&self, value: u64) -> Vec<u8> {
            if self.is_big { value.to_be_bytes().into() } else { value.to_le_bytes().into() }
        }

        fn bytes(&self) -> Vec<u8> {
            let strings = ["a.py", "main", "leaf", "~", "<GC>", "/x/_sync_coordinator.py", "start"];
            let strings: Vec<u8> =
                strings.iter().flat_map(|s| [varint(s.len() as u64), s.as_bytes().into()].concat()).collect();
            let frame = |file, name, line: i64, column: i64| {
                [varint(file), varint(name), signed(line), signed(0), signed(column), signed(0), vec![255]].concat()
            };
            let frames = [frame(0, 1, 9, -1), frame(0, 2, 300, 4), frame(3, 4, -1, -1), frame(5, 6, 1, 0)].concat();
            let records = match self.compression {
                ZSTD => zstd::encode_all(&*self.records, 1).unwrap(),
                _ => self.records.clone(),
            };
            let strings_at = HEADER + records.len();
            let header = [
                self.u32(0x5441_4348),
                self.u32(VERSION),
                vec![3, 15, 2, 0],
                self.u64(5_000_000),
                self.u64(1000),
                self.u64(self.n_samples),
                self.u32(2),
                self.u64(strings_at as u64),
                self.u64((strings_at + strings.len()) as u64),
                self.u32(self.compression),
                self.u32(self.mode),
            ];
            let statistics = self.duration.map(|seconds| {
                let numbers =
                    [self.u64(seconds.to_bits()), vec![0; 32], STATISTICS.to_vec(), self.u32(1), self.u32(56)];
                numbers.concat()
            });
            let body = [header.concat(), records, strings, frames, statistics.unwrap_or_default()].concat();
            let size = body.len() + FOOTER;
            [body, self.u32(7), self.u32(4), self.u64(size as u64), vec![0; 16]].concat()
        }
    }

    fn record(written: &Written, thread: u64, kind: u8, rest: &[u8]) -> Vec<u8> {
        [written.u64(thread), written.u32(0), vec![kind], rest.to_vec()].concat()
    }

    /// `main` calls `leaf`: 1 sample in `leaf`, 2 more, 1 in `main`, 1 in `leaf` again. Another thread collects garbage.
    fn sample_records(written: &Written) -> Vec<u8> {
        let one = |thread, kind, rest: &[u8]| record(written, thread, kind, rest);
        [
            // 1000 us later, the main thread, two frames from the leaf.
            one(7, FULL, &[0xe8, 7, 0x20, 2, 1, 0]),
            one(7, REPEAT, &[2, 0xe8, 7, 0x20, 0xd0, 0xf, 0x20]),
            one(1 << 63, FULL, &[100, 1, 1, 2]),
            // Without its innermost frame, and then with one more frame than the last one.
            one(7, POP_PUSH, &[10, 1, 1, 0]),
            one(7, SUFFIX, &[10, 1, 1, 1, 1]),
            // Only the profiler's own frame.
            one(7, FULL, &[10, 1, 1, 3]),
        ]
        .concat()
    }

    fn load(bytes: &[u8]) -> Result<Profile> {
        crate::from_bytes("in", bytes, &LoadOptions::default())
    }

    #[test]
    fn stacks_are_restored_from_differences() {
        let expected = [
            "<GC> tid=9223372036854775808: 1 1000000",
            "main a.py:9 thread=MainThread tid=7: 1 1000000",
            "main a.py:9|leaf a.py:300:5 thread=MainThread tid=7: 4 4000000",
        ];
        for (is_big, compression, duration) in [(false, NONE, None), (true, NONE, Some(0.5)), (true, ZSTD, Some(0.5))] {
            let mut written = Written { is_big, compression, duration, ..Written::new(7, vec![]) };
            written.records = sample_records(&written);
            let p = load(&written.bytes()).unwrap();
            assert_eq!(rows(&p), expected);
            assert_eq!(p.duration_nanos(), duration.map_or(4_030_000, |_| 500_000_000));
            assert_eq!((p.period(), p.default_sample_type()), (1_000_000, Some(1)));
            // The mode is in the lowest bits, and options of the recording follow.
            for (mode, types) in [(0x3a, vec!["samples", "cpu"]), (0, vec!["samples"])] {
                written.mode = mode;
                let names: Vec<String> =
                    load(&written.bytes()).unwrap().sample_types().iter().map(|t| t.0.clone()).collect();
                assert_eq!(names, types);
            }
        }
    }

    #[test]
    fn a_time_window_selects_samples() {
        let mut written = Written::new(7, vec![]);
        written.records = sample_records(&written);
        let part = |window: &str| {
            let options = LoadOptions::default().with_time(window.parse().unwrap());
            rows(&crate::from_bytes("in", &written.bytes(), &options).unwrap())
        };
        assert_eq!(part("1ms..2ms"), ["main a.py:9|leaf a.py:300:5 thread=MainThread tid=7: 1 1000000"]);
        assert_eq!(part("..1ms"), ["<GC> tid=9223372036854775808: 1 1000000"]);
    }

    #[test]
    fn errors_name_the_record() {
        let plain = Written::new(1, vec![]);
        let one = |kind: u8, rest: &[u8]| record(&plain, 7, kind, rest);
        for (n_samples, records, words) in [
            (1, vec![one(FULL, &[1, 1, 1, 9])], "record 0: it refers to frame 9, but there are 4"),
            (1, vec![one(9, &[1, 1, 1, 0])], "record 0: its kind 9 is unknown"),
            (
                1,
                vec![one(FULL, &[1, 1, 200, 1])],
                "record 0: it should have 200 more frames, but only 0 bytes are left",
            ),
            (1, vec![one(FULL, &[1, 1])], "record 0: expected 1 bytes, but only 0 are left"),
            (1, vec![one(REPEAT, &[200, 1, 1, 1])], "record 0: expected 1 bytes, but only 0 are left"),
            (
                2,
                vec![one(FULL, &[1, 1, 1, 0]), one(SUFFIX, &[1, 1, 2, 0])],
                "record 1: it shares 2 frames with a stack of 1 frames",
            ),
            (
                5,
                vec![one(FULL, &[1, 1, 1, 0])],
                "its header states 5 samples, but there are 1; it was cut off or damaged",
            ),
            (1, vec![one(FULL, &[255; 11])], "record 0: a number is longer than 64 bits"),
        ] {
            let mut written = Written::new(n_samples, records);
            for compression in [NONE, ZSTD] {
                written.compression = compression;
                let bytes = written.bytes();
                let error = load(&bytes).unwrap_err();
                let words = match compression {
                    ZSTD => words
                        .replace("record 0:", "record 0 of the decompressed samples:")
                        .replace("record 1:", "record 1 of the decompressed samples:"),
                    _ => words.to_owned(),
                };
                assert!(error.to_string().contains(&words) && error.offset().is_some(), "{words}: {error}");
            }
        }
        let mut written = Written::new(7, vec![]);
        written.records = sample_records(&written);
        let whole = written.bytes();
        let changed = |offset: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[offset] = byte;
            load(&bytes).unwrap_err().to_string()
        };
        assert!(changed(4, 2).contains("in version 2 of its format, and pprofdiff reads version 1"));
        assert!(changed(40, 1).contains("its tables should begin at bytes"), "{}", changed(40, 1));
        assert!(changed(56, 3).contains("its samples are compressed in a way that pprofdiff does not know (3)"));
        for end in LITTLE.len()..whole.len() {
            let error = load(&whole[..end]).unwrap_err();
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
    }
}
