//! A binary: its headers, and the frames of its addresses. Each address is looked up only once.
//!
//! A binary is read completely, and again for each profile with new addresses. Files are not memory-mapped, and their
//! bytes do not stay in memory, because debug information is large; only the results are kept.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use object::{BinaryFormat, Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::demangled;
use super::dwarf::{self, DebugFiles, Memory};
use super::{go, kallsyms};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::Mapping;
use pprofdiff_profile::interner::Sequences;
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::shared::{FoundLine, Text};
use pprofdiff_profile::{Error, Result};

/// The maximum size of a binary. It is read completely, because a memory map would not be safe against other processes.
const MAX_BYTES: u64 = 8 << 30;

/// The maximum number of segments to read. Programs have about ten, and each address lookup searches all of them.
pub(super) const MAX_SEGMENTS: usize = 1024;

/// A part of the file that is loaded, and its address.
#[derive(Debug)]
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
    executable: bool,
}

/// An executable or a library, or a symbol table that represents the kernel.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    build_id: String,
    /// The file format, or `None` for the kernel's symbol table.
    format: Option<BinaryFormat>,
    /// The preferred load address. In formats other than ELF, a mapping with offset 0 starts at this address. ELF does
    /// not use it.
    image_base: u64,
    segments: Vec<Segment>,
    cache: Mutex<KnownFrames>,
}

/// A cache of lookups. Profiles of the same binary share most of their addresses.
#[derive(Debug, Default)]
struct KnownFrames {
    strings: Sequences<u8, RandomState>,
    /// The number of each name's demangled form, by the number of the name.
    demangled: HashMap<u32, u32>,
    frames: Vec<BinaryFrame>,
    /// The range of `frames` for each address, innermost first.
    addresses: HashMap<u64, (u32, u32)>,
}

/// A frame whose texts are numbers in `strings`.
#[derive(Debug, Clone, Copy)]
struct BinaryFrame {
    name: u32,
    file: u32,
    line: u32,
    column: u32,
    start_line: u32,
}

/// The numbers of texts, by the texts' location in memory while their source is loaded. Each shared name is hashed only
/// once, however many addresses use it.
type SymbolTexts = HashMap<(*const u8, usize), u32>;

/// A frame from debug information or symbols.
#[derive(Default)]
pub(super) struct FoundFrame<'a> {
    pub name: &'a [u8],
    pub file: &'a [u8],
    pub line: u32,
    pub column: u32,
    pub start_line: u32,
}

/// Reads a regular file. The path may come from a profile or a binary, so it could name a device or a pipe that never
/// ends.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let read = || -> Result<Vec<u8>> {
        // Opening a pipe would wait for its writer, so the file type is checked first.
        let metadata = std::fs::metadata(path).map_err(Error::io)?;
        if !metadata.is_file() {
            return Err(Error::query("this is not a regular file"));
        }
        if metadata.len() > MAX_BYTES {
            return Err(Error::query(format!("this is larger than the limit of {MAX_BYTES} bytes for binaries")));
        }
        // A sparse file may report a size larger than all memory.
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(metadata.len() as usize + 1).map_err(|e| Error::io(e.into()))?;
        File::open(path).and_then(|f| f.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(Error::io)?;
        Ok(bytes)
    };
    read().map_err(|e| e.in_input(&path.to_string_lossy()))
}

pub(super) fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<object::File<'a>> {
    object::File::parse(bytes).map_err(|e| {
        Error::malformed(format!("this is not a readable binary (ELF, Mach-O or PE): {e}"))
            .in_input(&path.to_string_lossy())
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the build id in hexadecimal digits: the GNU build id, or Mach-O's UUID. Returns an empty string if there is
/// neither.
pub(super) fn build_id(object: &object::File<'_>) -> String {
    let gnu = object.build_id().ok().flatten().map(hex);
    gnu.or_else(|| object.mach_uuid().ok().flatten().map(|id| hex(&id))).unwrap_or_default()
}

impl Binary {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, is not a regular file or not a binary, or is a kernel symbol table
    /// with hidden addresses.
    pub fn open(path: &Path) -> Result<Binary> {
        let bytes = read(path)?;
        if kallsyms::recognises(&bytes) {
            return Binary::open_kernel(path, &bytes);
        }
        let object = parse(path, &bytes)?;
        let segments: Vec<Segment> = object
            .segments()
            .take(MAX_SEGMENTS)
            .map(|s| {
                let (offset, size) = s.file_range();
                Segment { address: s.address(), offset, size, executable: s.permissions().executable() }
            })
            .collect();
        let is_text = |s: &object::Segment<'_, '_>| matches!(s.name_bytes(), Ok(Some(b"__TEXT")));
        let image_base = match object.format() {
            BinaryFormat::MachO => object.segments().find(is_text).map_or(0, |s| s.address()),
            _ => object.relative_address_base(),
        };
        let (build_id, format) = (build_id(&object), Some(object.format()));
        Ok(Binary { path: path.to_owned(), build_id, format, image_base, segments, cache: Mutex::default() })
    }

    fn open_kernel(path: &Path, bytes: &[u8]) -> Result<Binary> {
        if kallsyms::functions(bytes).0.is_empty() {
            let hidden = "all its addresses are 0, because the kernel hides them (kptr_restrict); copy it as root";
            return Err(Error::query(hidden).in_input(&path.to_string_lossy()));
        }
        let (build_id, segments, cache) = Default::default();
        Ok(Binary { path: path.to_owned(), build_id, format: None, image_base: 0, segments, cache })
    }

    /// Returns true for the kernel's symbol table, which covers the kernel and all its modules.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.format.is_none()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the build id in hexadecimal digits, or an empty string.
    pub fn build_id(&self) -> &str {
        &self.build_id
    }

    /// Converts an address of a process that mapped the file to an address in the file. Without a mapping, or with a
    /// mapping of the whole address space (which some tools write), the address is already the file's own. Addresses in
    /// a kernel symbol table are addresses of the running kernel. Returns `None` if the file does not contain the
    /// address.
    pub fn own_address(&self, mapping: Option<&Mapping>, address: u64) -> Option<u64> {
        let Some(m) = mapping.filter(|m| m.start != 0 || m.offset != 0 || (m.limit != 0 && m.limit != u64::MAX)) else {
            return Some(address);
        };
        let Some(format) = self.format else { return Some(address) };
        if (m.start, m.offset) == (0, 0) {
            // No process maps address 0. The address counts from the file's first segment, as in the Firefox profiler.
            let first = self.segments.first().map_or(0, |segment| segment.address);
            return address.checked_add(if format == BinaryFormat::Elf { first } else { self.image_base });
        }
        let in_file = address.checked_sub(m.start)?.checked_add(m.offset)?;
        if format != BinaryFormat::Elf {
            return in_file.checked_add(self.image_base);
        }
        // Pages at segment borders belong to two segments. Code is in the executable segment.
        let holds = |s: &&Segment| in_file.checked_sub(s.offset).is_some_and(|offset| offset < s.size);
        let segments = || self.segments.iter().filter(holds);
        let segment = segments().find(|s| s.executable).or_else(|| segments().next())?;
        (in_file - segment.offset).checked_add(segment.address)
    }

    /// Looks up addresses in the file, so that [`Binary::frames`] knows them. Searches the paths in `by_build_id` for
    /// debug information if the file lacks it. Returns warnings for the user.
    ///
    /// # Errors
    /// Returns an error if the file can't be read any more.
    pub fn look_up(&self, addresses: &[u64], by_build_id: &[PathBuf]) -> Result<Vec<String>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<u64> = addresses.iter().copied().filter(|a| !cache.addresses.contains_key(a)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = read(&self.path)?;
        if self.is_of_kernel() {
            let (symbols, mut numbers) = (kallsyms::functions(&bytes), SymbolTexts::default());
            new.iter().for_each(|&address| cache.add(address, &[], &symbols, &mut numbers));
            return Ok(Vec::new());
        }
        let object = parse(&self.path, &bytes)?;
        let memory = Memory::default();
        let separate = DebugFiles { binary: &self.path, by_build_id }.find(&object, &memory);
        let symbols = Symbols::new([Some(&object), separate.as_ref().map(|(_, object)| object)]);
        let (path, debug) = separate.as_ref().map_or((&self.path, &object), |(path, object)| (path, object));
        let mut without_lines = Vec::new();
        let mut numbers = SymbolTexts::default();
        let dwarf_warning = dwarf::look_up(path, debug, &memory, &new, |address, frames| {
            cache.add(address, frames, &symbols, &mut numbers);
            if frames.is_empty() {
                without_lines.push(address);
            }
        });
        // Paths built from DWARF have been freed, so other texts may reuse their memory.
        numbers.clear();
        let add = |address, frames: &[FoundFrame<'_>]| cache.add(address, frames, &symbols, &mut numbers);
        let go_warning = go::look_up(&self.path, &object, &without_lines, add);
        Ok(dwarf_warning.into_iter().chain(go_warning).collect())
    }

    /// Calls `f` with the frames of an address that was looked up, innermost first.
    pub fn frames(&self, address: u64, f: impl FnOnce(&mut dyn Iterator<Item = FoundLine<'_>>)) {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(&(from, to)) = cache.addresses.get(&address) else { return };
        let text = |number: u32| Text { number, bytes: cache.strings.get(number) };
        f(&mut cache.frames[from as usize..to as usize].iter().map(|frame| FoundLine {
            name: text(cache.demangled.get(&frame.name).copied().unwrap_or(frame.name)),
            system_name: text(frame.name),
            file: text(frame.file),
            line: frame.line,
            column: frame.column,
            start_line: frame.start_line,
        }));
    }
}

impl KnownFrames {
    fn add(&mut self, address: u64, frames: &[FoundFrame<'_>], symbols: &Symbols<'_>, numbers: &mut SymbolTexts) {
        let from = self.frames.len() as u32;
        let symbol = symbols.at(address);
        let outermost = frames.len().wrapping_sub(1);
        for (i, f) in frames.iter().enumerate() {
            // The symbol's name is more precise than the name in debug information: it identifies clones of a function
            // and functions folded into it.
            let name = symbol.filter(|_| i == outermost).map_or(f.name, |symbol| symbol.name);
            self.push(name, f, numbers);
        }
        if let (true, Some(symbol)) = (frames.is_empty(), symbol) {
            self.push(symbol.name, &FoundFrame { file: symbol.file, ..FoundFrame::default() }, numbers);
        }
        self.addresses.insert(address, (from, self.frames.len() as u32));
    }

    fn push(&mut self, name: &[u8], frame: &FoundFrame<'_>, numbers: &mut SymbolTexts) {
        let number = self.number(name, numbers);
        if !self.demangled.contains_key(&number) {
            let demangled = demangled(name);
            let demangled = self.strings.number(&demangled);
            self.demangled.insert(number, demangled);
        }
        // Go compiles in `.` and writes paths relative to it. Its own profiles have the paths without `./`.
        let file = self.number(frame.file.strip_prefix(b"./").unwrap_or(frame.file), numbers);
        let &FoundFrame { line, column, start_line, .. } = frame;
        self.frames.push(BinaryFrame { name: number, file, line, column, start_line });
    }

    fn number(&mut self, text: &[u8], numbers: &mut SymbolTexts) -> u32 {
        *numbers.entry((text.as_ptr(), text.len())).or_insert_with(|| self.strings.number(text))
    }
}

/// A function in a symbol table.
#[derive(Clone, Copy)]
pub(super) struct Symbol<'a> {
    pub address: u64,
    /// The size in bytes, or 0 if the table does not have it.
    pub size: u64,
    pub name: &'a [u8],
    /// The source file of a function that is local to a file, otherwise empty.
    pub file: &'a [u8],
}

/// The number of bytes that each symbol adds to the common budget for names.
const NAME_BYTES: usize = 4096;
/// The maximum number of bytes to read in names in addition to [`NAME_BYTES`] per symbol. Without a limit, many symbols
/// could name parts of one long text.
const MORE_NAME_BYTES: usize = 16 << 20;

/// The functions of symbol tables, ordered by address and size. If several functions start at an address, lookups
/// return the largest, and among equal sizes the last in the table, as in LLVM's symbolizer.
pub(super) struct Symbols<'a>(pub Vec<Symbol<'a>>);

impl<'a> Symbols<'a> {
    pub(super) fn new(objects: [Option<&object::File<'a>>; 2]) -> Symbols<'a> {
        let mut symbols = Symbols(Vec::new());
        objects.into_iter().flatten().for_each(|object| symbols.add(object));
        symbols.0.sort_by_key(|s| (s.address, s.size));
        symbols
    }

    fn add(&mut self, object: &object::File<'a>) {
        let mut file: &[u8] = b"";
        let mut left = MORE_NAME_BYTES;
        for s in checkpointed(object.symbols().chain(object.dynamic_symbols())) {
            let Ok(name) = s.name_bytes() else { continue };
            match (left + NAME_BYTES).checked_sub(name.len()) {
                Some(rest) => left = rest,
                None => return,
            }
            match s.kind() {
                // ELF lists the local symbols of a source file after the file's name.
                SymbolKind::File => file = name,
                SymbolKind::Text if s.is_definition() && !name.is_empty() => {
                    // Mach-O symbols of C functions start with an underscore that is not in the source.
                    let is_mach_o = object.format() == BinaryFormat::MachO;
                    let name = name.strip_prefix(b"_").filter(|_| is_mach_o).unwrap_or(name);
                    let file = if s.is_global() { b"" } else { file };
                    self.0.push(Symbol { address: s.address(), size: s.size(), name, file });
                }
                _ => {}
            }
        }
    }

    fn at(&self, address: u64) -> Option<Symbol<'a>> {
        self.index(address).map(|index| self.0[index])
    }

    /// Returns the index of the function that contains an address: the last function that starts at or before the
    /// address, unless its end is at or before the address. A function without a size extends to the next function.
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        let next = self.0.partition_point(|s| s.address <= address);
        let symbol = self.0.get(next.checked_sub(1)?)?;
        (symbol.size == 0 || address - symbol.address < symbol.size).then_some(next - 1)
    }

    /// Keeps one function per address and gives it a size. A function without a size ends at the next function's start.
    /// No function extends beyond its executable segment, and functions outside all of them are removed. `parts` are
    /// the address and bytes of each executable segment.
    #[cfg(feature = "disasm")]
    pub(super) fn end_each(&mut self, parts: &[(u64, &[u8])]) {
        let by_address = std::mem::take(&mut self.0);
        for symbol in by_address {
            match self.0.last_mut() {
                Some(last) if last.address == symbol.address => *last = symbol,
                _ => self.0.push(symbol),
            }
        }
        let mut next = u64::MAX;
        for symbol in self.0.iter_mut().rev() {
            let bytes_left = parts.iter().filter_map(|(start, bytes)| {
                let from = symbol.address.checked_sub(*start)?;
                (bytes.len() as u64).checked_sub(from)
            });
            let max_size = bytes_left.max().unwrap_or(0);
            let size = if symbol.size == 0 { next - symbol.address } else { symbol.size };
            (symbol.size, next) = (size.min(max_size), symbol.address);
        }
        self.0.retain(|symbol| symbol.size > 0);
    }
}
