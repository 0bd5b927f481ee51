//! Functions, inlined functions and lines from the tables that a Go program contains for its own runtime. Even stripped
//! programs (`-ldflags=-s`) have them. Supports Go 1.18 to 1.26 in all binary formats.
//!
//! The layout is documented only in Go's sources: `cmd/link/internal/ld/pcln.go` writes the tables, and
//! `runtime/symtab.go`, `runtime/symtabinl.go` and `_func` in `runtime/runtime2.go` read them. In short:
//!
//! ```text
//! module (runtime.moduledata) -> header; text, the base of function offsets; gofunc, the base of inlined calls
//! header (runtime.pcHeader)   -> names, units, files, values, functions
//! function (runtime._func)    -> its name and start line; file, line and inlined call of each address
//! inlined call                -> its name and start line; an address that has the file and line of the call
//! ```

use std::cell::Cell;
use std::path::Path;

use gimli::{EndianSlice, Endianity, Reader, RunTimeEndian};
use object::{Object, ObjectSegment, RelocationTarget};

use super::dwarf::CountedSlice;
#[cfg(feature = "disasm")]
use super::dwarf::Memory;
use super::file::FoundFrame;
#[cfg(feature = "disasm")]
use super::file::Symbol;
use pprofdiff_profile::cancellation;

/// The first four bytes of a header, from Go 1.18 and from Go 1.20 on.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// The maximum number of candidates to try for a header, and for a module. For example, a program embedded in another
/// program has a header without a module.
const MAX_CANDIDATES: usize = 16;

/// The indices of words in a module: the first address of its functions, the end of the last function, and the base of
/// function offsets.
const MIN_PC: usize = 20;
const MAX_PC: usize = 21;
const TEXT: usize = 22;
/// The index of the word with the address of the inlined calls (`gofunc`), for each version in [`MAGICS`].
const CALLS: [usize; 2] = [38, 40];

/// A function has several tables of values by address (`PCDATA`), and several other tables (`FUNCDATA`). These are the
/// indices of its tables of inlined calls: `PCDATA_InlTreeIndex` and `FUNCDATA_InlTree`.
const CALL_INDEXES: u32 = 2;
const CALL_TREE: u32 = 3;
/// The offset of a missing tree.
const NO_TREE: u32 = u32::MAX;

/// The number of bytes that may be read per byte of the tables, and per address. Go's own programs take 1 and 130.
const READS_PER_BYTE: u64 = 16;
const READS_PER_ADDRESS: u64 = 1024;

/// Looks up sorted addresses. Calls `f` with each address from the first to the last Go function and its frames,
/// innermost first. The frames of an address in a gap between functions are empty. Does not call `f` for an address
/// whose tables can't be read. Returns a warning for the user if some tables could not be read.
pub(super) fn look_up(
    path: &Path,
    object: &object::File<'_>,
    addresses: &[u64],
    mut f: impl FnMut(u64, &[FoundFrame<'_>]),
) -> Option<String> {
    if addresses.is_empty() {
        return None;
    }
    let left = Cell::new(READS_PER_ADDRESS.saturating_mul(addresses.len() as u64));
    let tables = GoTables::find(object, &left)?;
    let (mut failed, mut frames) = (None, Vec::new());
    let mut current: Option<(usize, Option<GoFunction>)> = None;
    for &address in addresses {
        cancellation::checkpoint();
        let Some(number) = tables.number(address) else { continue };
        if current.as_ref().is_none_or(|&(current, _)| current != number) {
            // Decoded values take more memory than their tables, so only one function's values are kept.
            drop(current.take());
            let function = tables.function(number).map_err(|e| failed = Some(e)).ok();
            current = Some((number, function));
        }
        let Some((_, Some(function))) = &current else { continue };
        frames.clear();
        match tables.frames(function, address, &mut frames) {
            Ok(()) => f(address, &frames),
            Err(e) => failed = Some(e),
        }
    }
    let why = match failed? {
        gimli::Error::Io => "reading them takes more work than their size allows".to_owned(),
        e => e.to_string(),
    };
    Some(format!("{}: some of Go's tables were not read: {why}", path.display()))
}

/// Returns all functions whose names can be read within the budget.
#[cfg(feature = "disasm")]
pub(super) fn functions<'a>(object: &object::File<'a>, memory: &'a Memory) -> Vec<Symbol<'a>> {
    let Some(tables) = GoTables::find(object, &memory.left) else { return Vec::new() };
    let n = tables.functions.len();
    memory.left.set(memory.left.get().saturating_add(READS_PER_ADDRESS.saturating_mul(n as u64)));
    let begin =
        |number: usize| tables.functions.get(number).map_or(tables.end, |function| tables.endian.read_u32(function));
    let function = |number: usize| -> gimli::Result<Symbol<'a>> {
        let mut record = at_offset(&tables.records, tables.endian.read_u32(&tables.functions[number][4..]).into())?;
        record.skip(4)?;
        let name = text(&tables.names, record.read_u32()?)?;
        let address = tables.text.saturating_add(begin(number).into());
        Ok(Symbol { address, size: begin(number + 1).saturating_sub(begin(number)).into(), name, file: b"" })
    };
    (0..n).filter_map(|number| function(number).ok()).collect()
}

/// The first eight bytes of the tables (`runtime.pcHeader`).
struct GoHeader {
    /// The index of the version in [`MAGICS`].
    version: usize,
    /// The alignment of code addresses in bytes.
    quantum: u8,
    /// The size of a pointer.
    pointer: u8,
}

impl GoHeader {
    fn parse(bytes: &[u8], endian: RunTimeEndian) -> Option<GoHeader> {
        let magic = endian.read_u32(bytes);
        let version = MAGICS.iter().position(|&m| m == magic)?;
        let &[.., 0, 0, quantum @ (1 | 2 | 4), pointer @ (4 | 8)] = bytes else { return None };
        Some(GoHeader { version, quantum, pointer })
    }
}

/// The function tables of a Go program.
struct GoTables<'a> {
    endian: RunTimeEndian,
    /// True from Go 1.20 on.
    has_start_lines: bool,
    /// The alignment of code addresses in bytes. Tables of values count addresses in this unit.
    quantum: u32,
    /// The base of function offsets.
    text: u64,
    /// The start of each function relative to `text`, and its offset in `records`.
    functions: &'a [[u8; 8]],
    /// The end of the last function, relative to `text`.
    end: u32,
    names: CountedSlice<'a>,
    /// The files of each unit, as offsets in `files`.
    units: CountedSlice<'a>,
    files: CountedSlice<'a>,
    values: CountedSlice<'a>,
    records: CountedSlice<'a>,
    calls: CountedSlice<'a>,
}

impl<'a> GoTables<'a> {
    fn find(object: &object::File<'a>, left: &'a Cell<u64>) -> Option<GoTables<'a>> {
        let endian = endian(object);
        let headers = words(object, 8).filter_map(|(address, word)| Some((address, GoHeader::parse(word, endian)?)));
        headers.take(MAX_CANDIDATES).find_map(|(address, header)| GoTables::read(object, address, &header, left))
    }

    /// Reads the tables whose header is at an address. Returns `None` unless a module refers to this header and its
    /// code has the same start and end.
    fn read(object: &object::File<'a>, address: u64, header: &GoHeader, left: &'a Cell<u64>) -> Option<GoTables<'a>> {
        let endian = endian(object);
        let counted = |address| Some(CountedSlice { slice: EndianSlice::new(bytes(object, address)?, endian), left });
        let table = counted(address)?;
        left.set(left.get().saturating_add(READS_PER_BYTE.saturating_mul(table.slice.len() as u64)));
        let &GoHeader { version, quantum, pointer } = header;
        let mut fields = at_offset(&table, 8).ok()?;
        let mut word = || fields.read_address(pointer).ok();
        let (n_functions, _n_files, _text) = (word()?, word()?, word()?);
        let mut part = || at_offset(&table, word()?).ok();
        let (names, units, files, values, records) = (part()?, part()?, part()?, part()?, part()?);
        let size = usize::try_from(n_functions).ok()?.checked_mul(8)?;
        let functions = records.slice.slice().get(..size)?.as_chunks().0;
        let begin = endian.read_u32(functions.first()?);
        let end = at_offset(&records, size as u64).ok()?.read_u32().ok()?;
        let is_same = |module: &Vec<u64>| {
            let in_text = |offset: u32| module[TEXT].wrapping_add(offset.into());
            module[MIN_PC] == in_text(begin) && module[MAX_PC] == in_text(end)
        };
        let pointers = words(object, pointer.into());
        let pointers = pointers.filter(|(_, w)| EndianSlice::new(w, endian).read_address(pointer) == Ok(address));
        let relocated = relocations(object).filter(|&(_, target)| target == address);
        let places = relocated.map(|(address, _)| address).chain(pointers.map(|(address, _)| address));
        let module =
            places.take(MAX_CANDIDATES).find_map(|address| module(object, address, pointer).filter(is_same))?;
        Some(GoTables {
            endian,
            has_start_lines: version > 0,
            quantum: quantum.into(),
            text: module[TEXT],
            functions,
            end,
            names,
            units,
            files,
            values,
            records,
            calls: counted(module[CALLS[version]])?,
        })
    }

    /// Returns the number of the function that contains an address, or of the function before it: there are gaps
    /// between functions.
    fn number(&self, address: u64) -> Option<usize> {
        let offset = u32::try_from(address.checked_sub(self.text)?).ok().filter(|&offset| offset < self.end)?;
        self.functions.partition_point(|function| self.endian.read_u32(function) <= offset).checked_sub(1)
    }

    fn function(&self, number: usize) -> gimli::Result<GoFunction> {
        let [begin, record_offset] = [0, 4].map(|from| self.endian.read_u32(&self.functions[number][from..]));
        let mut record = at_offset(&self.records, record_offset.into())?;
        // The fields of `runtime._func`, in their order.
        record.skip(4)?;
        let name = record.read_u32()?;
        record.skip(12)?;
        let (files, lines) = (record.read_u32()?, record.read_u32()?);
        let (n_values, unit) = (record.read_u32()?, record.read_u32()?);
        let start_line = if self.has_start_lines { record.read_u32()? } else { 0 };
        record.skip(3)?;
        let n_others = record.read_u8()?;
        let (mut indexes, mut calls) = (0, 0);
        if n_values > CALL_INDEXES && u32::from(n_others) > CALL_TREE {
            calls = at_offset(&record, 4 * (u64::from(n_values) + u64::from(CALL_TREE)))?.read_u32()?;
            if calls != NO_TREE {
                indexes = at_offset(&record, 4 * u64::from(CALL_INDEXES))?.read_u32()?;
            }
        }
        Ok(GoFunction {
            begin: self.text.saturating_add(begin.into()),
            name,
            unit,
            start_line,
            files: self.values(files)?,
            lines: self.values(lines)?,
            indexes: self.values(indexes)?,
            calls,
        })
    }

    /// Decodes the values at an offset. Offset 0 means that there are no values.
    fn values(&self, offset: u32) -> gimli::Result<GoValues> {
        let mut values = Vec::new();
        if offset == 0 {
            return Ok(GoValues(values));
        }
        let mut table = at_offset(&self.values, offset.into())?;
        let (mut end, mut value) = (0u32, -1i32);
        loop {
            // The lowest bit holds the sign of a difference. A difference of 0 ends the table, except at its start.
            let difference = table.read_uleb128_u32()?;
            if difference == 0 && !values.is_empty() {
                return Ok(GoValues(values));
            }
            value = value.wrapping_add((difference >> 1) as i32 ^ -((difference & 1) as i32));
            end = end.saturating_add(table.read_uleb128_u32()?.saturating_mul(self.quantum));
            values.push((end, value));
        }
    }

    /// Adds the frames of an address in a function, innermost first. Adds nothing for an address in the gap after the
    /// function.
    fn frames(&self, function: &GoFunction, address: u64, frames: &mut Vec<FoundFrame<'a>>) -> gimli::Result<()> {
        let mut offset = u32::try_from(address.saturating_sub(function.begin)).unwrap_or(u32::MAX);
        if function.lines.at_offset(offset).is_none() {
            return Ok(());
        }
        // The size of `runtime.inlinedCall`, and the offset of its name.
        let (size, skipped) = if self.has_start_lines { (16, 4) } else { (20, 12) };
        let mut inner = u32::MAX;
        // An inlined call has a larger index than the call that contains it, so this loop ends.
        while let Some(index) = function.indexes.at_offset(offset).filter(|&index| index < inner) {
            let call_offset = u64::from(function.calls) + size * u64::from(index) + skipped;
            let mut call = at_offset(&self.calls, call_offset)?;
            let (name, parent) = (call.read_u32()?, call.read_u32()?);
            let start_line = if self.has_start_lines { call.read_u32()? } else { 0 };
            frames.push(self.frame(function, offset, name, start_line)?);
            (inner, offset) = (index, parent);
        }
        frames.push(self.frame(function, offset, function.name, function.start_line)?);
        Ok(())
    }

    fn frame(&self, function: &GoFunction, offset: u32, name: u32, start_line: u32) -> gimli::Result<FoundFrame<'a>> {
        let file = match function.files.at_offset(offset) {
            Some(file) => {
                let file_offset = 4 * (u64::from(function.unit) + u64::from(file));
                text(&self.files, at_offset(&self.units, file_offset)?.read_u32()?)?
            }
            None => b"",
        };
        let line = function.lines.at_offset(offset).unwrap_or(0);
        Ok(FoundFrame { name: text(&self.names, name)?, file, line, column: 0, start_line })
    }
}

/// A function, with the calls inlined into it.
struct GoFunction {
    begin: u64,
    /// An offset in the table of names.
    name: u32,
    /// The index of the first file of the function's unit.
    unit: u32,
    start_line: u32,
    files: GoValues,
    lines: GoValues,
    /// The index of the innermost inlined call by address, counted from the function's first inlined call.
    indexes: GoValues,
    /// The offset of the function's first inlined call in the module's inlined calls.
    calls: u32,
}

/// Values by address. Each value has its end, relative to the function's start.
struct GoValues(Vec<(u32, i32)>);

impl GoValues {
    /// Returns the value at an offset. Negative values mean that there is no value.
    fn at_offset(&self, offset: u32) -> Option<u32> {
        let index = self.0.partition_point(|&(end, _)| end <= offset);
        self.0.get(index).and_then(|&(_, value)| u32::try_from(value).ok())
    }
}

fn endian(object: &object::File<'_>) -> RunTimeEndian {
    if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// Returns the loaded bytes from an address to the end of its segment.
fn bytes<'a>(object: &object::File<'a>, address: u64) -> Option<&'a [u8]> {
    object.segments().find_map(|segment| {
        let from = usize::try_from(address.checked_sub(segment.address())?).ok()?;
        segment.data().ok()?.get(from..).filter(|bytes| !bytes.is_empty())
    })
}

/// Returns all aligned words of a size in the loaded segments, with their addresses.
fn words<'a>(object: &object::File<'a>, size: usize) -> impl Iterator<Item = (u64, &'a [u8])> {
    object.segments().flat_map(move |segment| {
        let skipped = segment.address().wrapping_neg() % size as u64;
        let data = segment.data().unwrap_or_default().get(skipped as usize..).unwrap_or_default();
        let begin = segment.address().wrapping_add(skipped);
        data.chunks_exact(size).zip(0u64..).map(move |(word, i)| (begin.wrapping_add(i * size as u64), word))
    })
}

/// Returns the address and the addend of each word that the loader fills in when it starts a position-independent
/// program. Go's and GNU's linkers also write the addends into the words; LLVM's linker leaves the words 0.
fn relocations(object: &object::File<'_>) -> impl Iterator<Item = (u64, u64)> {
    let relocations = object.dynamic_relocations().into_iter().flatten();
    let absolute = relocations.filter(|(_, r)| r.target() == RelocationTarget::Absolute && !r.has_implicit_addend());
    absolute.map(|(address, relocation)| (address, relocation.addend() as u64))
}

/// Returns the words of a possible module, up to the last word that this reader uses. Applies relocations.
fn module(object: &object::File<'_>, address: u64, pointer: u8) -> Option<Vec<u64>> {
    let mut bytes = EndianSlice::new(bytes(object, address)?, endian(object));
    let last = CALLS[CALLS.len() - 1];
    let mut words = (0..=last).map(|_| bytes.read_address(pointer).ok()).collect::<Option<Vec<u64>>>()?;
    for (place, target) in relocations(object) {
        let index = place.wrapping_sub(address) / u64::from(pointer);
        if let Some(word) = words.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) {
            *word = target;
        }
    }
    Some(words)
}

fn at_offset<'a>(table: &CountedSlice<'a>, offset: u64) -> gimli::Result<CountedSlice<'a>> {
    let mut table = table.clone();
    table.skip(usize::try_from(offset).map_err(|_| gimli::Error::UnsupportedOffset)?)?;
    Ok(table)
}

/// Returns the zero-terminated text at an offset in a table of texts.
fn text<'a>(table: &CountedSlice<'a>, offset: u32) -> gimli::Result<&'a [u8]> {
    // A text follows the zero byte of the previous text. If a future Go version changes the layout, offsets would point
    // into the middle of names.
    if offset > 0 && at_offset(table, u64::from(offset) - 1)?.read_u8()? != 0 {
        return Err(gimli::Error::NoEntryAtGivenOffset(offset.into()));
    }
    Ok(at_offset(table, offset.into())?.read_null_terminated_slice()?.slice.slice())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The places of a test program's module and header. Their addresses equal their offsets in the file.
    const MODULE: usize = 128;
    const HEADER: usize = 512;
    /// The address of the first function. The file does not contain the code.
    const CODE: u64 = 0x40_0000;

    fn put(program: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
        program.resize(program.len().max(offset + bytes.len()), 0);
        program[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn le<const N: usize>(numbers: [u32; N]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    /// Builds an ELF file with functions of 64 bytes, each with an inlined call. `version` is an index in [`MAGICS`],
    /// `values` are the functions' value tables, and `parent` is the offset of the call in its caller.
    fn program(version: usize, n_functions: u32, values: &[u8], parent: u32) -> Vec<u8> {
        let mut p = b"\x7fELF\x02\x01\x01".to_vec();
        put(&mut p, 16, &[2, 0, 62, 0, 1]);
        put(&mut p, 32, &[64]);
        put(&mut p, 52, &[64, 0, 56, 0, 1]);
        put(&mut p, 64, &[1, 0, 0, 0, 4]);
        let word = |p: &mut Vec<u8>, place: usize, value: u64| put(p, place, &value.to_le_bytes());
        put(&mut p, HEADER, &le([MAGICS[version], 0x0801_0000]));
        let mut parts: Vec<Vec<u8>> =
            vec![b"main.outer\0main.inner\0".to_vec(), le([0, 5]), b"a.go\0b.go\0".to_vec(), values.to_vec()];
        let size = 8 * n_functions + 4;
        let mut functions: Vec<u8> = (0..n_functions).flat_map(|i| le([64 * i, size])).collect();
        functions.extend(le([64 * n_functions]));
        let start_line = if version > 0 { &le([9])[..] } else { &[] };
        // The tables of files, lines and calls are at offsets 1, 8 and 15.
        functions.extend([le([0, 0, 0, 0, 0, 1, 8, 3, 0]), start_line.to_vec(), le([0x0400_0000])].concat());
        functions.extend(le([0, 0, 15, 0, 0, 0, 0]));
        parts.push(functions);
        parts.push(if version > 0 { le([0, 11, parent, 19]) } else { le([0, 0, 0, 11, parent]) });
        word(&mut p, HEADER + 8, n_functions.into());
        let mut place = HEADER + 72;
        for (i, part) in parts.iter().enumerate() {
            if i < 5 {
                word(&mut p, HEADER + 32 + 8 * i, (place - HEADER) as u64);
            } else {
                word(&mut p, MODULE + 8 * CALLS[version], place as u64);
            }
            put(&mut p, place, part);
            place = p.len();
        }
        let end = CODE + 64 * u64::from(n_functions);
        for (index, value) in [(0, HEADER as u64), (MIN_PC, CODE), (MAX_PC, end), (TEXT, CODE)] {
            word(&mut p, MODULE + 8 * index, value);
        }
        let size = p.len() as u64;
        word(&mut p, 96, size);
        word(&mut p, 104, size);
        p
    }

    /// In the first 48 bytes of a function, the middle third is inlined.
    const VALUES: &[u8] = b"\0\x02\x10\x02\x10\x01\x10\0\x16\x10\x14\x10\x11\x10\0\0\x10\x02\x10\x01\x10\0";

    /// The name, file, line and start line of each frame by address, and the warning.
    type FoundByAddress = (Vec<(u64, Vec<(String, String, u32, u32)>)>, Option<String>);

    fn look_up_all(program: &[u8], addresses: &[u64]) -> FoundByAddress {
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Ok(object) = object::File::parse(program) else { return (all, None) };
        let note = look_up(Path::new("program"), &object, addresses, |address, frames| {
            let frames = frames.iter().map(|f| (text(f.name), text(f.file), f.line, f.start_line));
            all.push((address.wrapping_sub(CODE), frames.collect()));
        });
        (all, note)
    }

    #[test]
    fn inlined_function_comes_before_its_caller() {
        for (version, [inner, outer]) in [(0, [0, 0]), (1, [19, 9])] {
            let frame = |name: &str, file: &str, line, start| (name.to_owned(), file.to_owned(), line, start);
            let addresses = [CODE - 1, CODE, CODE + 16, CODE + 40, CODE + 48, CODE + 64];
            let (results, note) = look_up_all(&program(version, 1, VALUES, 4), &addresses);
            let inlined = vec![frame("main.inner", "b.go", 20, inner), frame("main.outer", "a.go", 10, outer)];
            let outer_at = |line| vec![frame("main.outer", "a.go", line, outer)];
            assert_eq!(results, [(0, outer_at(10)), (16, inlined), (40, outer_at(11)), (48, vec![])]);
            assert_eq!(note, None);
        }
    }

    #[test]
    fn recursive_inlined_calls_end() {
        let (results, _) = look_up_all(&program(1, 1, VALUES, 20), &[CODE + 20]);
        assert_eq!(results[0].1.iter().map(|f| &*f.0).collect::<Vec<_>>(), ["main.inner", "main.outer"]);
    }

    #[test]
    fn damaged_tables_give_a_warning_or_valid_frames() {
        let addresses: Vec<u64> = (CODE..CODE + 128).collect();
        let mut n_warnings = 0;
        for version in 0..MAGICS.len() {
            let whole = program(version, 2, VALUES, 4);
            for offset in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[offset] = byte;
                    let (results, note) = look_up_all(&damaged, &addresses);
                    assert!(results.iter().all(|(_, frames)| frames.len() <= 2), "{offset}");
                    n_warnings += usize::from(note.is_some());
                }
                look_up_all(&whole[..offset], &addresses);
            }
        }
        assert!(n_warnings > 100, "{n_warnings}");
    }

    #[test]
    fn shared_tables_are_limited_by_the_read_budget() {
        let long = [VALUES[..8].to_vec(), b"\x16\x01\x02\0".repeat(1 << 14), vec![0]].concat();
        assert_eq!(look_up_all(&program(1, 1, &long, 4), &[CODE]).1, None);
        let addresses: Vec<u64> = (0..1000).map(|i| CODE + 64 * i).collect();
        let (results, note) = look_up_all(&program(1, 1000, &long, 4), &addresses);
        assert!(!results.is_empty() && results.len() < 100, "{}", results.len());
        assert_eq!(
            note.unwrap(),
            "program: some of Go's tables were not read: reading them takes more work than their size allows"
        );
    }
}
