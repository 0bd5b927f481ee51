//! Processes: what they are called, and which files are mapped where.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Cursor;
use super::file::Record;
use crate::error::{Error, ErrorKind, Result};
use crate::interner::Interner;
use crate::random::{HashMap, RandomState};

/// How many mapped files may be copied to processes that are forked: in any input, and more for each so many bytes.
const COPIES: usize = 1 << 18;
const BYTES_A_COPY: usize = 64;

/// Bits of a record's `misc`.
const IS_EXEC: u16 = 1 << 13;
const HAS_BUILD_ID: u16 = 1 << 14;

/// What the kernel's records call the process that is none.
const KERNEL: u32 = u32::MAX;

/// A file as it is mapped, by whichever process and to wherever: a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Mapped<'t> {
    pub file: &'t [u8],
    /// Empty if it is not known.
    pub build_id: &'t [u8],
    pub offset: u64,
    /// 0 of memory that is no file's: code that was made at run time is at other addresses each time.
    pub size: u64,
}

/// Where the processor was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Kernel,
    User,
    /// A guest or a hypervisor, whose files nobody tells.
    Other,
}

/// The mapped files of a process by their first addresses: the address after the last, where the file's part begins, and
/// its number.
type Space = BTreeMap<u64, (u64, u64, u32)>;

/// A process. Forked ones share what is mapped until it changes in one of them.
#[derive(Debug, Clone, Default)]
struct Process {
    mapped: Rc<Space>,
    /// What was mapped before it ran another program: the kernel is called from there until it has begun.
    before: Option<Rc<Space>>,
}

#[derive(Debug)]
pub(super) struct Processes<'t> {
    pub mapped: Interner<Mapped<'t>, RandomState>,
    /// By their numbers: where each was mapped first, and whether it was the first of a process, as programs are.
    pub first: Vec<(u64, bool)>,
    all: HashMap<u32, Process>,
    kernel: Space,
    /// Names of threads.
    names: HashMap<u32, &'t [u8]>,
    copies_left: usize,
}

impl<'t> Processes<'t> {
    pub fn for_input(size: usize) -> Processes<'t> {
        Processes {
            mapped: Interner::default(),
            first: Vec::new(),
            all: HashMap::default(),
            kernel: Space::new(),
            names: HashMap::from_iter([(0, &b"swapper"[..])]),
            copies_left: COPIES + size / BYTES_A_COPY,
        }
    }

    /// A thread's name; none if it is not known.
    pub fn name(&self, tid: u32) -> Option<&'t [u8]> {
        self.names.get(&tid).copied()
    }

    /// A thread has another name; if it runs another program, other files are mapped from now on.
    pub fn rename(&mut self, record: &Record<'t>) -> Result<()> {
        let mut body = record.body;
        let (pid, tid) = (body.u32()?, body.u32()?);
        self.names.insert(tid, body.text());
        if let (true, Some(process)) = (record.misc & IS_EXEC != 0, self.all.get_mut(&pid)) {
            process.before = Some(std::mem::take(&mut process.mapped));
        }
        Ok(())
    }

    /// A thread has begun; if it is a process of its own, with the same files.
    pub fn fork(&mut self, record: &Record<'t>) -> Result<()> {
        let mut body = record.body;
        let (pid, parent, tid, parent_tid) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
        match self.names.get(&parent_tid) {
            Some(&name) => self.names.insert(tid, name),
            None => self.names.remove(&tid),
        };
        if pid == parent {
            return Ok(());
        }
        // What perf says of processes that were there before has their own files behind it.
        let shared = self.all.get(&parent).filter(|_| record.misc & IS_EXEC == 0).cloned();
        self.all.insert(pid, shared.unwrap_or_default());
        Ok(())
    }

    /// A file is mapped; `is_long` is the newer record with more of it.
    pub fn map(&mut self, record: &Record<'t>, is_long: bool, build_ids: &HashMap<&'t [u8], &'t [u8]>) -> Result<()> {
        let mut body = record.body;
        let (pid, _) = (body.u32()?, body.u32()?);
        let (start, size, offset) = (body.u64()?, body.u64()?, body.u64()?);
        let mut own_id: &[u8] = b"";
        if is_long {
            let mut device = body.part(24)?;
            if record.misc & HAS_BUILD_ID != 0 {
                let length = usize::from(device.bytes(4)?[0]).min(20);
                own_id = device.bytes(length)?;
            }
            body.part(8)?;
        }
        let file = without_symbol(body.text());
        let build_id = if own_id.is_empty() { build_ids.get(file).copied().unwrap_or_default() } else { own_id };
        let end = start.saturating_add(size);
        if start >= end {
            return Ok(());
        }
        let mapped = match has_no_file(file) {
            true => Mapped { file, build_id: b"", offset: 0, size: 0 },
            false => Mapped { file, build_id, offset, size: end - start },
        };
        let number = self.mapped.number(mapped);
        let is_kernel = pid == KERNEL;
        let is_first = !is_kernel && self.all.get(&pid).is_none_or(|process| process.mapped.is_empty());
        if number as usize == self.first.len() {
            self.first.push((start, is_first));
        }
        let space = if is_kernel { &mut self.kernel } else { self.own_space(pid)? };
        insert(space, start, end, number);
        Ok(())
    }

    /// The space of a process, which is its alone from now on.
    fn own_space(&mut self, pid: u32) -> Result<&mut Space> {
        let space = &mut self.all.entry(pid).or_default().mapped;
        if Rc::get_mut(space).is_none() {
            self.copies_left = self.copies_left.checked_sub(space.len()).ok_or_else(|| {
                Error::new(
                    ErrorKind::Limit,
                    "its processes have more files in common than is read of a file of its size",
                )
            })?;
        }
        Ok(Rc::make_mut(space))
    }

    /// What is mapped at an address: its number, and how far into it the address is.
    pub fn find(&self, mode: Mode, pid: u32, address: u64) -> Option<(u32, u64)> {
        let (origin, number) = match mode {
            Mode::Kernel => at(&self.kernel, address),
            Mode::User => {
                let process = self.all.get(&pid)?;
                at(&process.mapped, address).or_else(|| at(process.before.as_ref()?, address))
            }
            Mode::Other => None,
        }?;
        let has_file = self.mapped.values[number as usize].size != 0;
        Some((number, if has_file { address.wrapping_sub(origin) } else { 0 }))
    }
}

/// What is mapped at an address: where the file's part begins, and its number.
fn at(space: &Space, address: u64) -> Option<(u64, u32)> {
    let (_, &(end, origin, number)) = space.range(..=address).next_back()?;
    (address < end).then_some((origin, number))
}

/// Puts a mapped file into a space, in the place of what was there.
fn insert(space: &mut Space, start: u64, end: u64, number: u32) {
    if let Some((&from, &(to, origin, before))) = space.range(..start).next_back()
        && to > start
    {
        space.insert(from, (start, origin, before));
        if to > end {
            space.insert(end, (to, origin, before));
        }
    }
    while let Some((&from, &(to, origin, before))) = space.range(start..end).next() {
        space.remove(&from);
        if to > end {
            space.insert(end, (to, origin, before));
        }
    }
    space.insert(start, (end, start, number));
}

/// The kernel is mapped under its name and that of the symbol that it begins with: `[kernel.kallsyms]_text`.
fn without_symbol(file: &[u8]) -> &[u8] {
    let closed = file.iter().position(|&b| b == b']').filter(|_| file.starts_with(b"[kernel."));
    closed.map_or(file, |closed| &file[..=closed])
}

/// True of what the kernel calls memory that no file is mapped in.
fn has_no_file(name: &[u8]) -> bool {
    let begins: [&[u8]; 7] =
        [b"//anon", b"/anon_hugepage", b"/dev/zero", b"/SYSV", b"[heap]", b"[stack", b"anon_inode:"];
    begins.iter().any(|begin| name.starts_with(begin))
}

/// The mode that a mark in a chain of addresses says; none of other addresses.
pub(super) fn mode_of_mark(address: u64) -> Option<Mode> {
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

/// The mode that a record says.
pub(super) fn mode_of_record(misc: u16) -> Mode {
    match misc & 7 {
        1 => Mode::Kernel,
        2 => Mode::User,
        _ => Mode::Other,
    }
}

/// The records that are lost, as a record says.
pub(super) fn lost(mut body: Cursor<'_>, has_id: bool) -> Result<u64> {
    if has_id {
        body.u64()?;
    }
    body.u64()
}
