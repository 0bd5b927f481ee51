//! One binary: what its headers say, and the frames of its addresses, which are looked up once.
//!
//! A binary is read whole, and again for each profile with new addresses. Nothing is mapped, and one with debug
//! information is not kept in memory for later questions; the answers are.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use object::{BinaryFormat, Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::demangled;
use super::dwarf::{self, DebugFiles, Memory};
use super::{go, kallsyms};
use crate::error::{Error, Result};
use crate::interner::Sequences;
use crate::profile::{FoundLine, Mapping, Text};
use crate::random::{HashMap, RandomState};
use crate::work::paced;

/// The largest binary that is read. It is read as a whole, since nothing else is safe from other processes.
const MAX_BYTES: u64 = 8 << 30;

/// Segments beyond these are not looked at: programs have ten, and each address is looked for in all.
pub(super) const MAX_SEGMENTS: usize = 1024;

/// A part of the file that is loaded, and where.
#[derive(Debug)]
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
    executable: bool,
}

/// An executable or a library, or what stands for the kernel.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    build_id: String,
    /// None of the kernel's table of symbols.
    format: Option<BinaryFormat>,
    /// The address that the file is made for: what a mapping's start is where its offset says nothing.
    image_base: u64,
    segments: Vec<Segment>,
    known: Mutex<Known>,
}

/// What was looked up before: profiles of one binary share most of their addresses.
#[derive(Debug, Default)]
struct Known {
    strings: Sequences<u8, RandomState>,
    /// By a name's number: that of the name as people read it.
    demangled: HashMap<u32, u32>,
    frames: Vec<Frame>,
    /// By address, the part of `frames` that it has, innermost first.
    addresses: HashMap<u64, (u32, u32)>,
}

/// Strings are numbers of `strings`.
#[derive(Debug, Clone, Copy)]
struct Frame {
    name: u32,
    file: u32,
    line: u32,
    column: u32,
    start_line: u32,
}

/// The numbers of texts by where they lie, while what they are read of is at hand: however many addresses share a name,
/// it is hashed once.
type Places = HashMap<(*const u8, usize), u32>;

/// What the lookups of debug information and symbols tell.
#[derive(Default)]
pub(super) struct Found<'a> {
    pub name: &'a [u8],
    pub file: &'a [u8],
    pub line: u32,
    pub column: u32,
    pub start_line: u32,
}

/// The bytes of a regular file: a name may come from a profile or a binary, and what a device or a pipe has may not end.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let read = || -> Result<Vec<u8>> {
        // Opening a pipe waits for its writer, so the kind is asked for first.
        let metadata = std::fs::metadata(path).map_err(Error::io)?;
        if !metadata.is_file() {
            return Err(Error::query("this is no regular file; a binary is one"));
        }
        if metadata.len() > MAX_BYTES {
            return Err(Error::query(format!("this is larger than the {MAX_BYTES} bytes that a binary may have")));
        }
        // A sparse file may say that it is larger than all memory.
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(metadata.len() as usize + 1).map_err(|e| Error::io(e.into()))?;
        File::open(path).and_then(|f| f.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(Error::io)?;
        Ok(bytes)
    };
    read().map_err(|e| e.in_input(&path.to_string_lossy()))
}

pub(super) fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<object::File<'a>> {
    object::File::parse(bytes).map_err(|e| {
        Error::malformed(format!("this is no binary that can be read (ELF, Mach-O or PE): {e}"))
            .in_input(&path.to_string_lossy())
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What tells builds of a binary apart, in hexadecimal digits: the GNU build id, or Mach-O's UUID. Empty if there is none.
pub(super) fn build_id(object: &object::File<'_>) -> String {
    let gnu = object.build_id().ok().flatten().map(hex);
    gnu.or_else(|| object.mach_uuid().ok().flatten().map(|id| hex(&id))).unwrap_or_default()
}

impl Binary {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// The operating system's; it is no regular file, or no binary.
    pub fn open(path: &Path) -> Result<Binary> {
        let bytes = read(path)?;
        if kallsyms::recognises(&bytes) {
            return Binary::of_kernel(path, &bytes);
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
        Ok(Binary { path: path.to_owned(), build_id, format, image_base, segments, known: Mutex::default() })
    }

    fn of_kernel(path: &Path, bytes: &[u8]) -> Result<Binary> {
        if kallsyms::functions(bytes).0.is_empty() {
            let hidden = "it has no addresses of functions: the kernel hides them (kptr_restrict); copy it as root";
            return Err(Error::query(hidden).in_input(&path.to_string_lossy()));
        }
        let (build_id, segments, known) = Default::default();
        Ok(Binary { path: path.to_owned(), build_id, format: None, image_base: 0, segments, known })
    }

    /// True of the kernel's table of symbols, which is of the kernel and of all its modules.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.format.is_none()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build id in hexadecimal digits; empty if there is none.
    pub fn build_id(&self) -> &str {
        &self.build_id
    }

    /// The address in the file's own numbers of an address of a process that mapped it. Without a mapping, or with one
    /// of everything (which some tools write), it is that already.
    pub fn own_address(&self, mapping: Option<&Mapping>, address: u64) -> Option<u64> {
        let Some(m) = mapping.filter(|m| m.start != 0 || m.offset != 0 || (m.limit != 0 && m.limit != u64::MAX)) else {
            return Some(address);
        };
        let Some(format) = self.format else { return Some(address) };
        if (m.start, m.offset) == (0, 0) {
            // No process has anything there: its addresses count from the file's first, as those of the Firefox profiler.
            let first = self.segments.first().map_or(0, |segment| segment.address);
            return address.checked_add(if format == BinaryFormat::Elf { first } else { self.image_base });
        }
        let in_file = address.checked_sub(m.start)?.checked_add(m.offset)?;
        if format != BinaryFormat::Elf {
            return in_file.checked_add(self.image_base);
        }
        // Pages at the borders belong to two segments; what runs is in the executable one.
        let holds = |s: &&Segment| in_file.checked_sub(s.offset).is_some_and(|at| at < s.size);
        let segments = || self.segments.iter().filter(holds);
        let segment = segments().find(|s| s.executable).or_else(|| segments().next())?;
        (in_file - segment.offset).checked_add(segment.address)
    }

    /// Looks addresses up (the file's own), so that [`Binary::frames`] knows them. Returns what a user should know.
    ///
    /// # Errors
    /// The file can't be read any more.
    pub fn look_up(&self, addresses: &[u64], by_build_id: &[PathBuf]) -> Result<Vec<String>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<u64> = addresses.iter().copied().filter(|a| !known.addresses.contains_key(a)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = read(&self.path)?;
        if self.is_of_kernel() {
            let (symbols, mut places) = (kallsyms::functions(&bytes), Places::default());
            new.iter().for_each(|&address| known.add(address, &[], &symbols, &mut places));
            return Ok(Vec::new());
        }
        let object = parse(&self.path, &bytes)?;
        let memory = Memory::default();
        let separate = DebugFiles { binary: &self.path, by_build_id }.find(&object, &memory);
        let symbols = Symbols::new([Some(&object), separate.as_ref().map(|(_, object)| object)]);
        let (path, debug) = separate.as_ref().map_or((&self.path, &object), |(path, object)| (path, object));
        let mut without_lines = Vec::new();
        let mut places = Places::default();
        let of_dwarf = dwarf::look_up(path, debug, &memory, &new, |address, found| {
            known.add(address, found, &symbols, &mut places);
            if found.is_empty() {
                without_lines.push(address);
            }
        });
        // Paths that were put together of DWARF are gone, so others may lie there.
        places.clear();
        let add = |address, found: &[Found<'_>]| known.add(address, found, &symbols, &mut places);
        let of_go = go::look_up(&self.path, &object, &without_lines, add);
        Ok(of_dwarf.into_iter().chain(of_go).collect())
    }

    /// Calls `f` with the lines of an address that was looked up, innermost first.
    pub fn frames(&self, address: u64, f: impl FnOnce(&mut dyn Iterator<Item = FoundLine<'_>>)) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(&(from, to)) = known.addresses.get(&address) else { return };
        let text = |number: u32| Text { number, bytes: known.strings.get(number) };
        f(&mut known.frames[from as usize..to as usize].iter().map(|frame| FoundLine {
            name: text(known.demangled.get(&frame.name).copied().unwrap_or(frame.name)),
            system_name: text(frame.name),
            file: text(frame.file),
            line: frame.line,
            column: frame.column,
            start_line: frame.start_line,
        }));
    }
}

impl Known {
    fn add(&mut self, address: u64, found: &[Found<'_>], symbols: &Symbols<'_>, places: &mut Places) {
        let from = self.frames.len() as u32;
        let symbol = symbols.at(address);
        let outermost = found.len().wrapping_sub(1);
        for (i, f) in found.iter().enumerate() {
            // The linker's name says more than the compiler's: which clone of a function it is, what was folded into it.
            let name = symbol.filter(|_| i == outermost).map_or(f.name, |symbol| symbol.name);
            self.push(name, f, places);
        }
        if let (true, Some(symbol)) = (found.is_empty(), symbol) {
            self.push(symbol.name, &Found { file: symbol.file, ..Found::default() }, places);
        }
        self.addresses.insert(address, (from, self.frames.len() as u32));
    }

    fn push(&mut self, name: &[u8], found: &Found<'_>, places: &mut Places) {
        let number = self.number(name, places);
        if !self.demangled.contains_key(&number) {
            let demangled = demangled(name);
            let demangled = self.strings.number(&demangled);
            self.demangled.insert(number, demangled);
        }
        // Go compiles in `.`, and names paths below it that its own profiles have as they are.
        let file = self.number(found.file.strip_prefix(b"./").unwrap_or(found.file), places);
        let &Found { line, column, start_line, .. } = found;
        self.frames.push(Frame { name: number, file, line, column, start_line });
    }

    fn number(&mut self, text: &[u8], places: &mut Places) -> u32 {
        *places.entry((text.as_ptr(), text.len())).or_insert_with(|| self.strings.number(text))
    }
}

/// A function of a symbol table.
#[derive(Clone, Copy)]
pub(super) struct Symbol<'a> {
    pub address: u64,
    /// 0 if the table does not say it.
    pub size: u64,
    pub name: &'a [u8],
    /// What was compiled, of functions that no other file sees.
    pub file: &'a [u8],
}

/// Bytes of names that are read for each symbol and on top of that, all together: many symbols may name the parts of one
/// long text.
const NAME_BYTES: usize = 4096;
const MORE_NAME_BYTES: usize = 16 << 20;

/// The functions of the symbol tables, by address and size. Of several with the same, the last one of the table counts, as
/// for LLVM's symbolizer.
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
        for s in paced(object.symbols().chain(object.dynamic_symbols())) {
            let Ok(name) = s.name_bytes() else { continue };
            match (left + NAME_BYTES).checked_sub(name.len()) {
                Some(rest) => left = rest,
                None => return,
            }
            match s.kind() {
                // ELF has the local symbols of a file behind its name.
                SymbolKind::File => file = name,
                SymbolKind::Text if s.is_definition() && !name.is_empty() => {
                    // C's names begin with an underscore in Mach-O that is not in the source.
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

    /// The last function that begins at or before an address, unless it ends before it.
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        let next = self.0.partition_point(|s| s.address <= address);
        let symbol = self.0.get(next.checked_sub(1)?)?;
        (symbol.size == 0 || address - symbol.address < symbol.size).then_some(next - 1)
    }

    /// Leaves one function of each address and gives it a size: where the table has none, it ends where the next one
    /// begins, and with its part of the binary at the latest.
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
            let left = parts.iter().filter_map(|(start, bytes)| {
                let from = symbol.address.checked_sub(*start)?;
                (bytes.len() as u64).checked_sub(from)
            });
            let most = left.max().unwrap_or(0);
            let size = if symbol.size == 0 { next - symbol.address } else { symbol.size };
            (symbol.size, next) = (size.min(most), symbol.address);
        }
        self.0.retain(|symbol| symbol.size > 0);
    }
}
