//! The content of a binary by address: its data, the names of its data, and the words that the
//! loader writes at the start. The comparison of code resolves the operands of instructions with it.

use std::ops::Range;

use object::{
    BinaryFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags,
    RelocationTarget, SectionKind, SymbolKind, elf,
};

use super::file::MAX_SEGMENTS;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

/// The maximum number of data symbols and of relocations to read. The largest programs that we know (browsers) have about
/// two million relocations.
const MAX_ENTRIES: usize = 4_000_000;

/// Programs with a fixed address start above this address. Libraries and position-independent programs start at 0.
const MIN_ADDRESS: u64 = 0x1000;

/// A loaded part of the binary.
struct ImageSegment<'a> {
    address: u64,
    bytes: &'a [u8],
    writable: bool,
    executable: bool,
}

/// A named object in the data of a binary.
#[derive(Clone, Copy)]
pub(super) struct DataSymbol<'a> {
    pub address: u64,
    /// The size in bytes, or 0 if the table does not have it. In formats without sizes, the distance to the next object.
    pub size: u64,
    pub name: &'a [u8],
}

/// The content of a word that the loader writes at the start.
#[derive(Clone, Copy)]
pub(super) enum LoadedWord<'a> {
    /// The address of a symbol of another library, plus an addend.
    Import(&'a [u8], i64),
    /// An address in this binary.
    Address(u64),
}

/// A binary's data by address.
pub(super) struct Image<'a> {
    segments: Vec<ImageSegment<'a>>,
    /// The data symbols, ordered by address.
    symbols: Vec<DataSymbol<'a>>,
    words: HashMap<u64, LoadedWord<'a>>,
    sections: Vec<Range<u64>>,
    /// The addresses of data that only the loader writes.
    relocated_constants: Vec<Range<u64>>,
    /// The addresses of the description of stack frames.
    unwinding: Vec<Range<u64>>,
    /// The addresses of the stubs that call functions of other libraries.
    stubs: Vec<Range<u64>>,
    /// The thread-local variables, ordered by their offset from the thread pointer, which is negative.
    thread_locals: Vec<(i64, &'a [u8])>,
    /// True if symbols have sizes, as in ELF.
    pub has_sizes: bool,
    /// True for a program that is always loaded at the same address, so that instructions and data may contain absolute
    /// addresses.
    pub is_fixed: bool,
}

impl<'a> Image<'a> {
    pub(super) fn read(object: &object::File<'a>) -> Image<'a> {
        let segments = object.segments().take(MAX_SEGMENTS).filter_map(|segment| {
            let (writable, executable) = (segment.permissions().writable(), segment.permissions().executable());
            Some(ImageSegment { address: segment.address(), bytes: segment.data().ok()?, writable, executable })
        });
        // Symbols without a type and a size mark positions, such as the end of a section.
        let is_data = |symbol: &object::Symbol<'a, '_>| match symbol.kind() {
            SymbolKind::Data => true,
            SymbolKind::Unknown => symbol.size() > 0,
            _ => false,
        };
        let all = object.symbols().chain(object.dynamic_symbols());
        let named = all.filter(|symbol| is_data(symbol) && symbol.is_definition()).filter_map(|symbol| {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
            Some(DataSymbol { address: symbol.address(), size: symbol.size(), name })
        });
        let mut symbols: Vec<DataSymbol<'a>> = checkpointed(named.take(MAX_ENTRIES)).collect();
        symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
        let has_sizes = object.format() == BinaryFormat::Elf;
        if !has_sizes {
            let next: Vec<u64> = symbols.iter().skip(1).map(|symbol| symbol.address).collect();
            symbols.iter_mut().zip(next).for_each(|(symbol, next)| symbol.size = next - symbol.address);
        }
        let dynamic = object.dynamic_symbol_table();
        let relocations = object.dynamic_relocations().into_iter().flatten().filter_map(|(address, relocation)| {
            if is_thread_local(relocation.flags()) && !matches!(relocation.target(), RelocationTarget::Symbol(_)) {
                return None;
            }
            let addend = relocation.addend();
            let word = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = dynamic.as_ref()?.symbol_by_index(index).ok()?;
                    match symbol.is_definition() {
                        // Its address is an offset.
                        true if symbol.kind() == SymbolKind::Tls => return None,
                        true => LoadedWord::Address(symbol.address().wrapping_add_signed(addend)),
                        false => LoadedWord::Import(symbol.name_bytes().ok()?, addend),
                    }
                }
                RelocationTarget::Absolute if !relocation.has_implicit_addend() => LoadedWord::Address(addend as u64),
                _ => return None,
            };
            Some((address, word))
        });
        let ranges = |is_wanted: fn(&[u8]) -> bool| -> Vec<Range<u64>> {
            let all = object.sections().take(MAX_SEGMENTS).filter(|section| section.name_bytes().is_ok_and(is_wanted));
            all.map(|section| section.address()..section.address().saturating_add(section.size())).collect()
        };
        Image {
            // Sections that are not loaded, such as debug information, have the address 0.
            sections: ranges(|_| true).into_iter().filter(|section| section.start > 0).collect(),
            relocated_constants: ranges(|name| name.starts_with(b".data.rel.ro") || name == b"__const"),
            unwinding: ranges(|name| name.starts_with(b".eh_frame") || name == b"__eh_frame"),
            stubs: ranges(|name| name.starts_with(b".plt") || name == b"__stubs" || name == b"__symbol_stub1"),
            segments: segments.collect(),
            symbols,
            thread_locals: thread_locals(object),
            has_sizes,
            words: checkpointed(relocations.take(MAX_ENTRIES)).collect(),
            is_fixed: object.kind() == object::ObjectKind::Executable,
        }
    }

    fn segment(&self, address: u64) -> Option<&ImageSegment<'a>> {
        let holds = |segment: &&ImageSegment<'a>| {
            address.checked_sub(segment.address).is_some_and(|offset| offset < segment.bytes.len() as u64)
        };
        self.segments.iter().find(holds)
    }

    /// Returns the bytes from an address to the end of its segment. They are empty if the file does not contain them.
    pub(super) fn bytes(&self, address: u64) -> &'a [u8] {
        self.segment(address).map_or(&[], |segment| &segment.bytes[(address - segment.address) as usize..])
    }

    /// Returns true if the program can change the data at an address, or if the file does not contain it.
    pub(super) fn is_writable(&self, address: u64) -> bool {
        let is_constant = self.relocated_constants.iter().any(|range| range.contains(&address));
        !is_constant && self.segment(address).is_none_or(|segment| segment.writable)
    }

    /// Returns true for a stub that calls a function of another library.
    pub(super) fn is_stub(&self, address: u64) -> bool {
        self.stubs.iter().any(|range| range.contains(&address))
    }

    /// Returns true for the description of stack frames, which contains addresses of all functions.
    pub(super) fn is_unwinding(&self, address: u64) -> bool {
        self.unwinding.iter().any(|range| range.contains(&address))
    }

    /// Returns the end of the section that contains an address.
    pub(super) fn section_end(&self, address: u64) -> Option<u64> {
        self.sections.iter().find(|section| section.contains(&address)).map(|section| section.end)
    }

    /// Returns true if the file contains this address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.segment(address).is_some()
    }

    /// Returns true if the address is in a section or at its end. The headers of the file are outside of all sections, and
    /// few programs refer to them. The file does not contain the bytes of variables that start with zeros.
    pub(super) fn is_in_section(&self, address: u64) -> bool {
        let is_in = |section: &Range<u64>| section.contains(&address) || section.end == address;
        if self.sections.is_empty() { self.contains(address) } else { self.sections.iter().any(is_in) }
    }

    /// Returns true if a word may be a pointer.
    pub(super) fn has_pointer(&self, address: u64) -> bool {
        let word = self.bytes(address).first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        // The file does not contain variables that start with zeros, so sections decide.
        let is_address = |word| self.contains(word) || self.sections.iter().any(|section| section.contains(&word));
        self.words.contains_key(&address) || self.has_unlisted_pointers() && word.is_some_and(is_address)
    }

    /// Returns true if the loader writes all pointers, as in a program of ELF that is loaded at any address. Most small
    /// numbers are addresses in such a program.
    fn has_all_pointers(&self) -> bool {
        self.has_sizes && !self.is_fixed
    }

    /// Returns true if a word with an address of the binary is a pointer, although the list of the loader's words is unknown
    /// or lacks it. In a binary that starts at address 0, such as a library of Mach-O, most small numbers are addresses.
    fn has_unlisted_pointers(&self) -> bool {
        let starts_low = self.segments.iter().any(|segment| !segment.bytes.is_empty() && segment.address < MIN_ADDRESS);
        !self.has_all_pointers() && !starts_low
    }

    /// Returns true if a named object starts at an address.
    pub(super) fn is_start(&self, address: u64) -> bool {
        self.symbols.binary_search_by_key(&address, |symbol| symbol.address).is_ok()
    }

    /// Returns the named object that contains an address. An object of unknown size extends to the next object.
    /// These are all objects of formats without sizes, and the objects with Go's collected data.
    pub(super) fn symbol(&self, address: u64) -> Option<DataSymbol<'a>> {
        let next = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = *self.symbols.get(next.checked_sub(1)?)?;
        let is_open = symbol.size == 0 && (!self.has_sizes || is_pool(symbol.name));
        (is_open || address - symbol.address < symbol.size).then_some(symbol)
    }

    /// Returns the thread-local variable at an offset from the thread pointer, and the offset in the variable.
    pub(super) fn thread_local(&self, offset: i64) -> Option<(&'a [u8], i64)> {
        if offset >= 0 {
            return None;
        }
        let next = self.thread_locals.partition_point(|(start, _)| *start <= offset);
        let (start, name) = *self.thread_locals.get(next.checked_sub(1)?)?;
        Some((name, offset - start))
    }

    /// Returns true if the thread-local variables of both builds have the same names and offsets. Returns false if the names
    /// are unknown.
    pub(super) fn has_same_thread_locals(&self, other: &Image<'_>) -> bool {
        !self.thread_locals.is_empty() && self.thread_locals == other.thread_locals
    }

    /// Returns the addresses that symbols and words of the loader refer to, and the ends of sections, in any order.
    pub(super) fn referenced(&self) -> Vec<u64> {
        let symbols = self.symbols.iter().flat_map(|symbol| [symbol.address, symbol.address.wrapping_add(symbol.size)]);
        let words = self.words.values().filter_map(|word| match word {
            LoadedWord::Address(address) => Some(*address),
            LoadedWord::Import(..) => None,
        });
        let data = self.segments.iter().filter(|segment| self.has_unlisted_pointers() && !segment.executable);
        let fixed = data.flat_map(|segment| {
            let skipped = (segment.address.wrapping_neg() % 8) as usize;
            segment.bytes.get(skipped..).unwrap_or_default().as_chunks::<8>().0
        });
        let fixed = fixed.map(|bytes| u64::from_le_bytes(*bytes)).filter(|&word| self.is_in_section(word));
        checkpointed(fixed).chain(symbols).chain(words).chain(self.sections.iter().map(|section| section.end)).collect()
    }

    /// Returns the content of a word that the loader writes. A word of a program with a fixed address contains an
    /// address itself, if the address is in the program.
    pub(super) fn word(&self, address: u64) -> Option<LoadedWord<'a>> {
        if let Some(&word) = self.words.get(&address) {
            return Some(word);
        }
        let word = u64::from_le_bytes(*self.bytes(address).first_chunk()?);
        (self.is_fixed && self.contains(word)).then_some(LoadedWord::Address(word))
    }
}

/// Returns true for words that the loader sets to an offset of a thread-local variable, or to the number of a module. The
/// numbers of x86-64 and arm64 do not overlap.
fn is_thread_local(flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else { return false };
    [
        elf::R_X86_64_DTPMOD64,
        elf::R_X86_64_DTPOFF64,
        elf::R_X86_64_TPOFF64,
        elf::R_X86_64_TLSDESC,
        elf::R_AARCH64_TLS_DTPMOD,
        elf::R_AARCH64_TLS_DTPREL,
        elf::R_AARCH64_TLS_TPREL,
        elf::R_AARCH64_TLSDESC,
    ]
    .contains(&r_type)
}

/// Returns the thread-local variables of an x86-64 program with their offsets from the thread pointer. The pointer is at the
/// end of the program's block of variables, aligned like the block.
fn thread_locals<'a>(object: &object::File<'a>) -> Vec<(i64, &'a [u8])> {
    let is_block = |kind| matches!(kind, SectionKind::Tls | SectionKind::UninitializedTls);
    let sections = || object.sections().filter(|section| is_block(section.kind()));
    let (start, end) =
        (sections().map(|s| s.address()).min(), sections().map(|s| s.address().saturating_add(s.size())).max());
    let (Some(start), Some(end)) = (start, end) else { return Vec::new() };
    let align = sections().map(|section| section.align()).max().unwrap_or(1).max(1);
    let size = end.saturating_sub(start).saturating_add(align - 1) / align * align;
    let named = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Tls && !symbol.is_undefined());
    let mut all: Vec<(i64, &[u8])> = checkpointed(named.take(MAX_ENTRIES))
        .filter_map(|symbol| (symbol.address() as i64).checked_sub(size as i64).zip(symbol.name_bytes().ok()))
        .collect();
    all.sort_unstable();
    all
}

/// Returns true for the symbols that Go's linker gives to all texts, types and other constants together.
pub(super) fn is_pool(name: &[u8]) -> bool {
    name.ends_with(b".*") || name.ends_with(b":*") || name == b"runtime.types"
}
