//! Processes: the names of their threads, and the files that they have mapped.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::PerfCursor;
use super::file::PerfRecord;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::{Error, ErrorKind, Result};

/// An input may copy `COPIES + size / BYTES_A_COPY` mapped files, where `size` is the size of the input in bytes.
/// Forked processes share the list of their mapped files. The first change by one of them copies the list, and each
/// file in it counts. Without the limit, a small input with many forks could take far more memory than its size.
const COPIES: usize = 1 << 18;
const BYTES_A_COPY: usize = 64;

/// The bits of a record's `misc` are defined in the kernel's `include/uapi/linux/perf_event.h`.
///
/// `PERF_RECORD_MISC_COMM_EXEC` in a COMM record: the thread was renamed because it executed another program.
/// `PERF_RECORD_MISC_FORK_EXEC`, the same bit in a FORK record: the process does not inherit the mapped files of its
/// parent (see [`PerfProcesses::fork`]).
const IS_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID` in an MMAP2 record: it has a build id in place of the file's device and inode.
const HAS_BUILD_ID: u16 = 1 << 14;

/// The process id in the kernel's own records.
const KERNEL: u32 = u32::MAX;

/// A mapped part of a file, regardless of the process and the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MappedFile<'t> {
    pub file: &'t [u8],
    /// Empty if unknown.
    pub build_id: &'t [u8],
    /// The offset of the mapped part in the file.
    pub offset: u64,
    /// The size of the mapped part in bytes. It is 0 for memory without a file, such as generated code: its addresses
    /// differ in each run, so they are dropped.
    pub size: u64,
}

/// The mode of the processor when a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Kernel,
    User,
    /// A guest, a hypervisor, or an unknown mode. Mapped files are not looked up, so the frame is `[unknown]`.
    Other,
}

/// The mapped files of a process, by the first address of each. The three numbers of a value are:
///
/// 1. `end`: the address after the last address.
/// 2. `origin`: the address where the whole mapping began. It is less than the first address if a later mapping has
///    covered the beginning, and offsets in the file still count from it.
/// 3. `number`: the index of the file in [`PerfProcesses::mapped`].
type Space = BTreeMap<u64, (u64, u64, u32)>;

/// A process. A forked process shares the mapped files of its parent until one of the two maps a file.
#[derive(Debug, Clone, Default)]
struct PerfProcess {
    mapped: Rc<Space>,
    /// The mapped files before the last exec. Samples between the exec and the start of the new program have addresses
    /// in them, so an address outside `mapped` is looked up here.
    before_exec: Option<Rc<Space>>,
}

#[derive(Debug)]
pub(super) struct PerfProcesses<'t> {
    /// Distinct mapped files of all processes.
    pub mapped: Interner<MappedFile<'t>, RandomState>,
    /// For each file in `mapped`: the address in its first record, and true if the process of this record had no other
    /// mapped files. A program is the first file of its process.
    pub first: Vec<(u64, bool)>,
    /// The processes by process id.
    all: HashMap<u32, PerfProcess>,
    /// The kernel and its modules.
    kernel: Space,
    /// The names of threads, by thread id.
    names: HashMap<u32, &'t [u8]>,
    /// The number of mapped files that may still be copied ([`COPIES`]).
    copies_left: usize,
}

impl<'t> PerfProcesses<'t> {
    pub fn for_input(size: usize) -> PerfProcesses<'t> {
        PerfProcesses {
            mapped: Interner::default(),
            first: Vec::new(),
            all: HashMap::default(),
            kernel: Space::new(),
            names: HashMap::from_iter([(0, &b"swapper"[..])]),
            copies_left: COPIES + size / BYTES_A_COPY,
        }
    }

    /// Returns a thread's name, or `None` if it is unknown.
    pub fn name(&self, tid: u32) -> Option<&'t [u8]> {
        self.names.get(&tid).copied()
    }

    /// Renames a thread. If the thread executes another program, its process starts again without mapped files and
    /// keeps the old ones as `before_exec`.
    pub fn rename(&mut self, record: &PerfRecord<'t>) -> Result<()> {
        let mut body = record.body;
        let (pid, tid) = (body.u32()?, body.u32()?);
        self.names.insert(tid, body.text());
        if let (true, Some(process)) = (record.misc & IS_EXEC != 0, self.all.get_mut(&pid)) {
            process.before_exec = Some(std::mem::take(&mut process.mapped));
        }
        Ok(())
    }

    /// Records a new thread, which inherits the name of its parent thread. A new process also inherits the mapped files
    /// of its parent, except with [`IS_EXEC`].
    pub fn fork(&mut self, record: &PerfRecord<'t>) -> Result<()> {
        let mut body = record.body;
        let (pid, parent, tid, parent_tid) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
        match self.names.get(&parent_tid) {
            Some(&name) => self.names.insert(tid, name),
            None => self.names.remove(&tid),
        };
        if pid == parent {
            return Ok(());
        }
        // With IS_EXEC, perf itself wrote the record, for a process that already ran when the recording began. All its
        // mapped files follow, so it inherits none.
        let shared = self.all.get(&parent).filter(|_| record.misc & IS_EXEC == 0).cloned();
        self.all.insert(pid, shared.unwrap_or_default());
        Ok(())
    }

    /// Maps a file into a process or into the kernel. `is_long` marks the newer record, MMAP2, which has more fields.
    /// `build_ids` has the build ids that the recording lists by file name; a build id in the record takes precedence.
    /// A record without addresses is ignored.
    pub fn map(
        &mut self,
        record: &PerfRecord<'t>,
        is_long: bool,
        build_ids: &HashMap<&'t [u8], &'t [u8]>,
    ) -> Result<()> {
        let mut body = record.body;
        let (pid, _) = (body.u32()?, body.u32()?);
        let (start, size, offset) = (body.u64()?, body.u64()?, body.u64()?);
        let mut recorded_id: &[u8] = b"";
        if is_long {
            let mut device = body.part(24)?;
            if record.misc & HAS_BUILD_ID != 0 {
                let length = usize::from(device.bytes(4)?[0]).min(20);
                recorded_id = device.bytes(length)?;
            }
            body.part(8)?;
        }
        let file = without_symbol(body.text());
        let build_id =
            if recorded_id.is_empty() { build_ids.get(file).copied().unwrap_or_default() } else { recorded_id };
        let end = start.saturating_add(size);
        if start >= end {
            return Ok(());
        }
        let mapped = match has_no_file(file) {
            true => MappedFile { file, build_id: b"", offset: 0, size: 0 },
            false => MappedFile { file, build_id, offset, size: end - start },
        };
        let number = self.mapped.number(mapped);
        let is_kernel = pid == KERNEL;
        let is_first = !is_kernel && self.all.get(&pid).is_none_or(|process| process.mapped.is_empty());
        if number as usize == self.first.len() {
            self.first.push((start, is_first));
        }
        let space = if is_kernel { &mut self.kernel } else { self.unshared_space(pid)? };
        insert(space, start, end, number);
        Ok(())
    }

    /// Returns the mapped files of a process for changing. If other processes share them, they are copied first.
    ///
    /// # Errors
    /// The copy would exceed the limit for this input ([`COPIES`]).
    fn unshared_space(&mut self, pid: u32) -> Result<&mut Space> {
        let space = &mut self.all.entry(pid).or_default().mapped;
        if Rc::get_mut(space).is_none() {
            self.copies_left = self.copies_left.checked_sub(space.len()).ok_or_else(|| {
                Error::new(ErrorKind::Limit, "its processes share too many files for a file of its size")
            })?;
        }
        Ok(Rc::make_mut(space))
    }

    /// Returns the file that is mapped at an address: its index in `mapped`, and the offset of the address in the
    /// mapped part, which is 0 for memory without a file. Returns `None` if no file is mapped there, if the process is
    /// unknown, or for [`Mode::Other`].
    pub fn find(&self, mode: Mode, pid: u32, address: u64) -> Option<(u32, u64)> {
        let (origin, number) = match mode {
            Mode::Kernel => file_at(&self.kernel, address),
            Mode::User => {
                let process = self.all.get(&pid)?;
                file_at(&process.mapped, address).or_else(|| file_at(process.before_exec.as_ref()?, address))
            }
            Mode::Other => None,
        }?;
        let has_file = self.mapped.values[number as usize].size != 0;
        Some((number, if has_file { address.wrapping_sub(origin) } else { 0 }))
    }
}

/// Returns the `origin` and the `number` ([`Space`]) of the file that is mapped at an address, or `None` if no file is.
fn file_at(space: &Space, address: u64) -> Option<(u64, u32)> {
    let (_, &(end, origin, number)) = space.range(..=address).next_back()?;
    (address < end).then_some((origin, number))
}

/// Maps a file into a space. Parts of other files between `start` and `end` are unmapped; the parts before and after
/// remain.
fn insert(space: &mut Space, start: u64, end: u64, number: u32) {
    if let Some((&from, &(to, origin, previous))) = space.range(..start).next_back()
        && to > start
    {
        space.insert(from, (start, origin, previous));
        if to > end {
            space.insert(end, (to, origin, previous));
        }
    }
    while let Some((&from, &(to, origin, previous))) = space.range(start..end).next() {
        space.remove(&from);
        if to > end {
            space.insert(end, (to, origin, previous));
        }
    }
    space.insert(start, (end, start, number));
}

/// Removes the symbol after the kernel's name. The kernel is mapped as `[kernel.kallsyms]_text`, with its first symbol.
fn without_symbol(file: &[u8]) -> &[u8] {
    let end = file.iter().position(|&b| b == b']').filter(|_| file.starts_with(b"[kernel."));
    end.map_or(file, |end| &file[..=end])
}

/// Returns true for the names of memory without a file, such as the heap, stacks and shared memory.
fn has_no_file(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 7] =
        [b"//anon", b"/anon_hugepage", b"/dev/zero", b"/SYSV", b"[heap]", b"[stack", b"anon_inode:"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the mode that a mark in a call chain sets, or `None` for an ordinary address. The marks are the negative
/// numbers of `enum perf_callchain_context` in the kernel's `include/uapi/linux/perf_event.h`: -128 is
/// `PERF_CONTEXT_KERNEL` and -512 is `PERF_CONTEXT_USER`. Hypervisors and guests have other numbers.
pub(super) fn mode_of_mark(address: u64) -> Option<Mode> {
    /// `PERF_CONTEXT_MAX`, the lowest mark.
    const MARKS: u64 = -4095i64 as u64;
    match address {
        ..MARKS => None,
        _ => Some(match -(address as i64) {
            128 => Mode::Kernel,
            512 => Mode::User,
            _ => Mode::Other,
        }),
    }
}

/// Returns the mode of a record: the lowest three bits of `misc`, where 1 is `PERF_RECORD_MISC_KERNEL` and 2 is
/// `PERF_RECORD_MISC_USER`.
pub(super) fn mode_of_record(misc: u16) -> Mode {
    match misc & 7 {
        1 => Mode::Kernel,
        2 => Mode::User,
        _ => Mode::Other,
    }
}

/// Returns the number of lost records or samples. `has_id` marks the LOST record, which begins with an event's id; a
/// LOST_SAMPLES record does not.
pub(super) fn lost(mut body: PerfCursor<'_>, has_id: bool) -> Result<u64> {
    if has_id {
        body.u64()?;
    }
    body.u64()
}
