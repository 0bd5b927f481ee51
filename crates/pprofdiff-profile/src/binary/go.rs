//! Functions, inlined ones among them, and lines from the tables that a Go program has for its own runtime: stripped
//! programs (`-ldflags=-s`) have them too. Those of Go 1.18 to 1.26 are read, from all formats of binaries.
//!
//! Go says what they consist of in its sources only: `cmd/link/internal/ld/pcln.go` writes them, `runtime/symtab.go`,
//! `runtime/symtabinl.go` and `_func` in `runtime/runtime2.go` read them. In short:
//!
//! ```text
//! module (runtime.moduledata) -> header; text, where functions count from; calls, those that were inlined
//! header (runtime.pcHeader)   -> names, units, files, values, functions
//! function (runtime._func)    -> its name and start line; file, line and inlined call, by address
//! inlined call                -> its name and start line; an address that has the file and line of the call
//! ```

use std::cell::Cell;
use std::path::Path;

use gimli::{EndianSlice, Endianity, Reader, RunTimeEndian};
use object::{Object, ObjectSegment, RelocationTarget};

use super::dwarf::Counted;
#[cfg(feature = "disasm")]
use super::dwarf::Memory;
use super::file::Found;
#[cfg(feature = "disasm")]
use super::file::Symbol;
use crate::work;

/// How a header begins, from Go 1.18 and from Go 1.20 on.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// How many places are tried that look like a header, and like a module. A program that is embedded in another one, for
/// example, has a header without a module.
const MAX_TRIED: usize = 16;

/// Words of a module.
const MIN_PC: usize = 20;
const MAX_PC: usize = 21;
const TEXT: usize = 22;
/// By version, as [`MAGICS`].
const CALLS: [usize; 2] = [38, 40];

/// A function has several tables of values by address, and of other things; these are of inlined calls.
const CALL_INDEXES: u32 = 2;
const CALL_TREE: u32 = 3;
const NO_TREE: u32 = u32::MAX;

/// How much may be read for each byte of the tables and for each address. Go's own programs take 1 and 130.
const READS_PER_BYTE: u64 = 16;
const READS_PER_ADDRESS: u64 = 1024;

/// Looks sorted addresses up, and calls `f` with each that a Go function has and its frames, innermost first. Returns
/// what a user should know.
pub(super) fn look_up(
    path: &Path,
    object: &object::File<'_>,
    addresses: &[u64],
    mut f: impl FnMut(u64, &[Found<'_>]),
) -> Option<String> {
    if addresses.is_empty() {
        return None;
    }
    let left = Cell::new(READS_PER_ADDRESS.saturating_mul(addresses.len() as u64));
    let tables = Tables::find(object, &left)?;
    let (mut failed, mut found) = (None, Vec::new());
    let mut current: Option<(usize, Option<Function>)> = None;
    for &address in addresses {
        work::poll();
        let Some(number) = tables.number(address) else { continue };
        if current.as_ref().is_none_or(|&(current, _)| current != number) {
            // Values take more memory than their tables, so those of one function are kept.
            drop(current.take());
            let function = tables.function(number).map_err(|e| failed = Some(e)).ok();
            current = Some((number, function));
        }
        let Some((_, Some(function))) = &current else { continue };
        found.clear();
        match tables.frames(function, address, &mut found) {
            Ok(()) => f(address, &found),
            Err(e) => failed = Some(e),
        }
    }
    let why = match failed? {
        gimli::Error::Io => "they ask for more work than their size allows".to_owned(),
        e => e.to_string(),
    };
    Some(format!("{}: some of Go's tables were not read: {why}", path.display()))
}

/// All functions, as far as their names may be read.
#[cfg(feature = "disasm")]
pub(super) fn functions<'a>(object: &object::File<'a>, memory: &'a Memory) -> Vec<Symbol<'a>> {
    let Some(tables) = Tables::find(object, &memory.left) else { return Vec::new() };
    let n = tables.functions.len();
    memory.left.set(memory.left.get().saturating_add(READS_PER_ADDRESS.saturating_mul(n as u64)));
    let begin =
        |number: usize| tables.functions.get(number).map_or(tables.end, |function| tables.endian.read_u32(function));
    let function = |number: usize| -> gimli::Result<Symbol<'a>> {
        let mut record = at(&tables.records, tables.endian.read_u32(&tables.functions[number][4..]).into())?;
        record.skip(4)?;
        let name = text(&tables.names, record.read_u32()?)?;
        let address = tables.text.saturating_add(begin(number).into());
        Ok(Symbol { address, size: begin(number + 1).saturating_sub(begin(number)).into(), name, file: b"" })
    };
    (0..n).filter_map(|number| function(number).ok()).collect()
}

/// What the first eight bytes of the tables say.
struct Header {
    /// As in [`MAGICS`].
    version: usize,
    /// What addresses are multiples of.
    quantum: u8,
    /// The size of a pointer.
    pointer: u8,
}

impl Header {
    fn parse(bytes: &[u8], endian: RunTimeEndian) -> Option<Header> {
        let magic = endian.read_u32(bytes);
        let version = MAGICS.iter().position(|&m| m == magic)?;
        let &[.., 0, 0, quantum @ (1 | 2 | 4), pointer @ (4 | 8)] = bytes else { return None };
        Some(Header { version, quantum, pointer })
    }
}

struct Tables<'a> {
    endian: RunTimeEndian,
    /// From Go 1.20 on.
    has_start_lines: bool,
    quantum: u32,
    text: u64,
    /// Where each function begins, counted from `text`, and its place in `records`.
    functions: &'a [[u8; 8]],
    /// Where the last one ends.
    end: u32,
    names: Counted<'a>,
    /// The files of each unit, as places in `files`.
    units: Counted<'a>,
    files: Counted<'a>,
    values: Counted<'a>,
    records: Counted<'a>,
    calls: Counted<'a>,
}

impl<'a> Tables<'a> {
    fn find(object: &object::File<'a>, left: &'a Cell<u64>) -> Option<Tables<'a>> {
        let endian = endian(object);
        let headers = words(object, 8).filter_map(|(address, word)| Some((address, Header::parse(word, endian)?)));
        headers.take(MAX_TRIED).find_map(|(address, header)| Tables::read(object, address, &header, left))
    }

    /// What has its header at an address; `None` unless a module has the same functions.
    fn read(object: &object::File<'a>, address: u64, header: &Header, left: &'a Cell<u64>) -> Option<Tables<'a>> {
        let endian = endian(object);
        let counted = |address| Some(Counted { slice: EndianSlice::new(bytes(object, address)?, endian), left });
        let table = counted(address)?;
        left.set(left.get().saturating_add(READS_PER_BYTE.saturating_mul(table.slice.len() as u64)));
        let &Header { version, quantum, pointer } = header;
        let mut fields = at(&table, 8).ok()?;
        let mut word = || fields.read_address(pointer).ok();
        let (n_functions, _n_files, _text) = (word()?, word()?, word()?);
        let mut part = || at(&table, word()?).ok();
        let (names, units, files, values, records) = (part()?, part()?, part()?, part()?, part()?);
        let size = usize::try_from(n_functions).ok()?.checked_mul(8)?;
        let functions = records.slice.slice().get(..size)?.as_chunks().0;
        let begin = endian.read_u32(functions.first()?);
        let end = at(&records, size as u64).ok()?.read_u32().ok()?;
        let is_same = |module: &Vec<u64>| {
            let in_text = |offset: u32| module[TEXT].wrapping_add(offset.into());
            module[MIN_PC] == in_text(begin) && module[MAX_PC] == in_text(end)
        };
        let pointers = words(object, pointer.into());
        let pointers = pointers.filter(|(_, w)| EndianSlice::new(w, endian).read_address(pointer) == Ok(address));
        let relocated = relocations(object).filter(|&(_, target)| target == address);
        let places = relocated.map(|(address, _)| address).chain(pointers.map(|(address, _)| address));
        let module = places.take(MAX_TRIED).find_map(|address| module(object, address, pointer).filter(is_same))?;
        Some(Tables {
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

    /// The number of the function that an address belongs to, or that it follows: there is room between functions.
    fn number(&self, address: u64) -> Option<usize> {
        let offset = u32::try_from(address.checked_sub(self.text)?).ok().filter(|&offset| offset < self.end)?;
        self.functions.partition_point(|function| self.endian.read_u32(function) <= offset).checked_sub(1)
    }

    fn function(&self, number: usize) -> gimli::Result<Function> {
        let [begin, place] = [0, 4].map(|from| self.endian.read_u32(&self.functions[number][from..]));
        let mut record = at(&self.records, place.into())?;
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
            calls = at(&record, 4 * (u64::from(n_values) + u64::from(CALL_TREE)))?.read_u32()?;
            if calls != NO_TREE {
                indexes = at(&record, 4 * u64::from(CALL_INDEXES))?.read_u32()?;
            }
        }
        Ok(Function {
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

    /// What is at a place; nothing at 0.
    fn values(&self, place: u32) -> gimli::Result<Values> {
        let mut values = Vec::new();
        if place == 0 {
            return Ok(Values(values));
        }
        let mut table = at(&self.values, place.into())?;
        let (mut end, mut value) = (0u32, -1i32);
        loop {
            // A difference has its sign in the lowest bit. One of 0 is the end, but for the first.
            let difference = table.read_uleb128_u32()?;
            if difference == 0 && !values.is_empty() {
                return Ok(Values(values));
            }
            value = value.wrapping_add((difference >> 1) as i32 ^ -((difference & 1) as i32));
            end = end.saturating_add(table.read_uleb128_u32()?.saturating_mul(self.quantum));
            values.push((end, value));
        }
    }

    /// Adds the frames of an address in a function or behind it, where it has none.
    fn frames(&self, function: &Function, address: u64, found: &mut Vec<Found<'a>>) -> gimli::Result<()> {
        let mut offset = u32::try_from(address.saturating_sub(function.begin)).unwrap_or(u32::MAX);
        if function.lines.at(offset).is_none() {
            return Ok(());
        }
        let (size, skipped) = if self.has_start_lines { (16, 4) } else { (20, 12) };
        let mut inner = u32::MAX;
        // A call comes after the one that it was inlined into, so this ends.
        while let Some(index) = function.indexes.at(offset).filter(|&index| index < inner) {
            let place = u64::from(function.calls) + size * u64::from(index) + skipped;
            let mut call = at(&self.calls, place)?;
            let (name, parent) = (call.read_u32()?, call.read_u32()?);
            let start_line = if self.has_start_lines { call.read_u32()? } else { 0 };
            found.push(self.frame(function, offset, name, start_line)?);
            (inner, offset) = (index, parent);
        }
        found.push(self.frame(function, offset, function.name, function.start_line)?);
        Ok(())
    }

    fn frame(&self, function: &Function, offset: u32, name: u32, start_line: u32) -> gimli::Result<Found<'a>> {
        let file = match function.files.at(offset) {
            Some(file) => {
                let place = 4 * (u64::from(function.unit) + u64::from(file));
                text(&self.files, at(&self.units, place)?.read_u32()?)?
            }
            None => b"",
        };
        let line = function.lines.at(offset).unwrap_or(0);
        Ok(Found { name: text(&self.names, name)?, file, line, column: 0, start_line })
    }
}

/// One function, with what was inlined into it.
struct Function {
    begin: u64,
    /// A place in the table of names.
    name: u32,
    /// Where the files of its unit begin.
    unit: u32,
    start_line: u32,
    files: Values,
    lines: Values,
    /// Those of inlined calls, which begin at `calls`.
    indexes: Values,
    calls: u32,
}

/// Values by address: each with its end, counted from where the function begins.
struct Values(Vec<(u32, i32)>);

impl Values {
    /// Negative values stand for none.
    fn at(&self, offset: u32) -> Option<u32> {
        let index = self.0.partition_point(|&(end, _)| end <= offset);
        self.0.get(index).and_then(|&(_, value)| u32::try_from(value).ok())
    }
}

fn endian(object: &object::File<'_>) -> RunTimeEndian {
    if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// What is loaded at an address, and behind it.
fn bytes<'a>(object: &object::File<'a>, address: u64) -> Option<&'a [u8]> {
    object.segments().find_map(|segment| {
        let from = usize::try_from(address.checked_sub(segment.address())?).ok()?;
        segment.data().ok()?.get(from..).filter(|bytes| !bytes.is_empty())
    })
}

/// All words of a size that are loaded, with their addresses, which are multiples of it.
fn words<'a>(object: &object::File<'a>, size: usize) -> impl Iterator<Item = (u64, &'a [u8])> {
    object.segments().flat_map(move |segment| {
        let skipped = segment.address().wrapping_neg() % size as u64;
        let data = segment.data().unwrap_or_default().get(skipped as usize..).unwrap_or_default();
        let begin = segment.address().wrapping_add(skipped);
        data.chunks_exact(size).zip(0u64..).map(move |(word, i)| (begin.wrapping_add(i * size as u64), word))
    })
}

/// Words that the loader of a position-independent program fills in: their addresses, and what it adds to where it
/// loads. Go's linker and GNU's write that into the words as well; LLVM's leaves them 0.
fn relocations(object: &object::File<'_>) -> impl Iterator<Item = (u64, u64)> {
    let all = object.dynamic_relocations().into_iter().flatten();
    let own = all.filter(|(_, r)| r.target() == RelocationTarget::Absolute && !r.has_implicit_addend());
    own.map(|(address, relocation)| (address, relocation.addend() as u64))
}

/// The words of what may be a module, up to the last one that is of use.
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

fn at<'a>(table: &Counted<'a>, offset: u64) -> gimli::Result<Counted<'a>> {
    let mut table = table.clone();
    table.skip(usize::try_from(offset).map_err(|_| gimli::Error::UnsupportedOffset)?)?;
    Ok(table)
}

/// The text at a place of a table of texts, each of which ends with a zero.
fn text<'a>(table: &Counted<'a>, place: u32) -> gimli::Result<&'a [u8]> {
    // Another layout of a future Go would lead into the middle of names.
    if place > 0 && at(table, u64::from(place) - 1)?.read_u8()? != 0 {
        return Err(gimli::Error::NoEntryAtGivenOffset(place.into()));
    }
    Ok(at(table, place.into())?.read_null_terminated_slice()?.slice.slice())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Where the parts of a program are, in memory as in the file.
    const MODULE: usize = 128;
    const HEADER: usize = 512;
    const CODE: u64 = 0x40_0000;

    fn put(program: &mut Vec<u8>, place: usize, bytes: &[u8]) {
        program.resize(program.len().max(place + bytes.len()), 0);
        program[place..place + bytes.len()].copy_from_slice(bytes);
    }

    fn le<const N: usize>(numbers: [u32; N]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    /// An ELF file with functions of 64 bytes, in each of which another one is inlined: the values of their tables.
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
        // Tables of files, lines and calls at 1, 8 and 15.
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

    /// Of the first 48 bytes of a function the middle third is inlined.
    const VALUES: &[u8] = b"\0\x02\x10\x02\x10\x01\x10\0\x16\x10\x14\x10\x11\x10\0\0\x10\x02\x10\x01\x10\0";

    /// Name, file, line and start line of each frame, and what is said.
    type Answer = (Vec<(u64, Vec<(String, String, u32, u32)>)>, Option<String>);

    fn answer(program: &[u8], addresses: &[u64]) -> Answer {
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Ok(object) = object::File::parse(program) else { return (all, None) };
        let note = look_up(Path::new("program"), &object, addresses, |address, found| {
            let frames = found.iter().map(|f| (text(f.name), text(f.file), f.line, f.start_line));
            all.push((address.wrapping_sub(CODE), frames.collect()));
        });
        (all, note)
    }

    #[test]
    fn an_inlined_function_stands_before_the_one_it_is_in() {
        for (version, [inner, outer]) in [(0, [0, 0]), (1, [19, 9])] {
            let frame = |name: &str, file: &str, line, start| (name.to_owned(), file.to_owned(), line, start);
            let addresses = [CODE - 1, CODE, CODE + 16, CODE + 40, CODE + 48, CODE + 64];
            let (found, note) = answer(&program(version, 1, VALUES, 4), &addresses);
            let inlined = vec![frame("main.inner", "b.go", 20, inner), frame("main.outer", "a.go", 10, outer)];
            let own = |line| vec![frame("main.outer", "a.go", line, outer)];
            assert_eq!(found, [(0, own(10)), (16, inlined), (40, own(11)), (48, vec![])]);
            assert_eq!(note, None);
        }
    }

    #[test]
    fn calls_that_are_inlined_into_themselves_end() {
        let (found, _) = answer(&program(1, 1, VALUES, 20), &[CODE + 20]);
        assert_eq!(found[0].1.iter().map(|f| &*f.0).collect::<Vec<_>>(), ["main.inner", "main.outer"]);
    }

    #[test]
    fn damage_is_said_or_harmless() {
        let addresses: Vec<u64> = (CODE..CODE + 128).collect();
        let mut n_said = 0;
        for version in 0..MAGICS.len() {
            let whole = program(version, 2, VALUES, 4);
            for place in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[place] = byte;
                    let (found, note) = answer(&damaged, &addresses);
                    assert!(found.iter().all(|(_, frames)| frames.len() <= 2), "{place}");
                    n_said += usize::from(note.is_some());
                }
                answer(&whole[..place], &addresses);
            }
        }
        assert!(n_said > 100, "{n_said}");
    }

    #[test]
    fn what_functions_share_is_not_read_for_each_without_end() {
        let long = [VALUES[..8].to_vec(), b"\x16\x01\x02\0".repeat(1 << 14), vec![0]].concat();
        assert_eq!(answer(&program(1, 1, &long, 4), &[CODE]).1, None);
        let addresses: Vec<u64> = (0..1000).map(|i| CODE + 64 * i).collect();
        let (found, note) = answer(&program(1, 1000, &long, 4), &addresses);
        assert!(!found.is_empty() && found.len() < 100, "{}", found.len());
        assert_eq!(
            note.unwrap(),
            "program: some of Go's tables were not read: they ask for more work than their size allows"
        );
    }
}
