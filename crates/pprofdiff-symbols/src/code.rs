//! The machine code of a binary: its functions with their addresses and instructions.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::path::PathBuf;

use object::{Object, ObjectSegment};

use super::demangled;
use super::dwarf::{DebugFiles, Memory};
use super::file::{Binary, MAX_SEGMENTS, Symbol, Symbols, parse, read};
use super::go;
use super::image::Image;
use super::instructions::{self, Architecture, Instruction};
use super::same_code::{self, CodeComparison, FunctionCode};
use super::search::Mapped;
use pprofdiff_profile::cancellation::checkpoint;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, Result};

/// The executable code of a binary, with its functions by address, numbered from 0.
pub struct Code<'a> {
    object: object::File<'a>,
    architecture: Architecture,
    /// The address and bytes of each executable segment.
    parts: Vec<(u64, &'a [u8])>,
    /// The functions. No two start at the same address, and each has a size.
    functions: Symbols<'a>,
    /// The function of each origin, or `None` if several functions share the origin.
    by_origin: OnceCell<HashMap<Origin<'a>, Option<u32>>>,
    /// The function of each demangled name, or `None` if several functions share the name.
    by_name: OnceCell<HashMap<Cow<'a, [u8]>, Option<u32>>>,
    /// The names of all functions in the symbol table.
    symbol_names: OnceCell<HashMap<&'a [u8], u32>>,
    image: OnceCell<Image<'a>>,
    /// The addresses that something refers to, ordered; `None` if the code is too large to search.
    referenced: OnceCell<Option<Vec<u64>>>,
}

/// The maximum size of code that is searched for references to data.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// A function's name in the symbol table, and its source file if the function is local to this file.
pub type Origin<'a> = (&'a [u8], &'a [u8]);

impl std::fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("functions", &self.functions.0.len()).finish_non_exhaustive()
    }
}

impl Mapped {
    /// Returns the functions and instructions. `memory` owns the data that the result borrows.
    ///
    /// # Errors
    /// Returns an error if the file can't be read any more, if its architecture is neither x86-64 nor arm64, or if it
    /// is a kernel symbol table.
    pub fn code<'a>(&self, memory: &'a Memory) -> Result<Code<'a>> {
        self.binary.code(&self.by_build_id, memory)
    }
}

impl Binary {
    /// Like [`Mapped::code`]. Searches the paths in `by_build_id` for symbols if the file lacks them.
    ///
    /// # Errors
    /// Returns the errors of [`Mapped::code`].
    pub fn code<'a>(&self, by_build_id: &[PathBuf], memory: &'a Memory) -> Result<Code<'a>> {
        Code::read(self, by_build_id, memory)
    }
}

/// The maximum length of a name that [`Code::find`] and [`Code::find_name`] can find. Without it, a symbol table could
/// refer to each byte of a huge text as the start of a name.
const MAX_NAME_BYTES: usize = 4096;

impl<'a> Code<'a> {
    /// Reads the functions of a binary from its symbols and from a separate file with debug information. Reads Go's own
    /// tables if the binary has neither.
    fn read(binary: &Binary, by_build_id: &[PathBuf], memory: &'a Memory) -> Result<Code<'a>> {
        let path = binary.path();
        if binary.is_of_kernel() {
            return Err(Error::query("a kernel symbol table has no instructions").in_input(&path.to_string_lossy()));
        }
        let object = parse(path, memory.keep(read(path)?))?;
        let architecture = match object.architecture() {
            object::Architecture::X86_64 => Architecture::X86_64,
            object::Architecture::Aarch64 if object.is_little_endian() => Architecture::Arm64,
            other => {
                let detail = format!("it is for {other:?}; only x86-64 and arm64 are supported");
                return Err(Error::query(detail).in_input(&path.to_string_lossy()));
            }
        };
        let executable = object.segments().take(MAX_SEGMENTS).filter(|segment| segment.permissions().executable());
        let parts: Vec<(u64, &[u8])> =
            executable.filter_map(|segment| Some((segment.address(), segment.data().ok()?))).collect();
        let separate = DebugFiles { binary: path, by_build_id }.find(&object, memory);
        let mut functions = Symbols::new([Some(&object), separate.as_ref().map(|(_, object)| object)]);
        if object.symbols().next().is_none() && separate.is_none() {
            functions.0.extend(go::functions(&object, memory));
            functions.0.sort_by_key(|function| function.address);
        }
        functions.end_each(&parts);
        let (by_origin, by_name, symbol_names, image, referenced) = Default::default();
        Ok(Code { object, architecture, parts, functions, by_origin, by_name, symbol_names, image, referenced })
    }

    /// Returns the numbers of all functions, in the order of their addresses.
    pub fn functions(&self) -> Range<u32> {
        0..self.functions.0.len() as u32
    }

    /// Returns the function that contains an address.
    pub fn function_at(&self, address: u64) -> Option<u32> {
        self.functions.index(address).map(|index| index as u32)
    }

    /// Returns the identity of a function, independent of its address.
    pub fn origin(&self, function: u32) -> Origin<'a> {
        let Symbol { name, file, .. } = self.functions.0[function as usize];
        (name, file)
    }

    /// Returns the demangled name of a function.
    pub fn name(&self, function: u32) -> Cow<'a, [u8]> {
        demangled(self.origin(function).0)
    }

    /// Returns the start address of a function and its bytes.
    pub fn bytes(&self, function: u32) -> (u64, &'a [u8]) {
        let Symbol { address, size, .. } = self.functions.0[function as usize];
        let bytes = self.parts.iter().find_map(|&(start, bytes)| {
            let bytes = bytes.get(usize::try_from(address.checked_sub(start)?).ok()?..)?;
            bytes.get(..usize::try_from(size).ok()?).filter(|bytes| !bytes.is_empty())
        });
        (address, bytes.unwrap_or_default())
    }

    /// Compares a function with a function of another build. `align` pairs two sequences of instructions as in the
    /// listing of instructions, or returns `None` if they differ in too much.
    pub fn compare(
        &self,
        function: u32,
        new: &Code<'a>,
        new_function: u32,
        align: impl Fn(&[&str], &[&str]) -> Option<Vec<(Option<u32>, Option<u32>)>>,
    ) -> CodeComparison {
        if self.architecture != new.architecture {
            return CodeComparison::Unknown("the builds are for different processors");
        }
        match (FunctionCode::new(self, function), FunctionCode::new(new, new_function)) {
            (Ok(base), Ok(new)) => same_code::compare(&base, &new, align),
            (Err(reason), _) | (_, Err(reason)) => CodeComparison::Unknown(reason),
        }
    }

    /// Returns the data of the binary.
    pub(super) fn image(&self) -> &Image<'a> {
        self.image.get_or_init(|| Image::read(&self.object))
    }

    /// Returns the distance from an address of data to the next address that code, data or a symbol refers to, or to the end
    /// of the section. It is the length of the data, or of its first part if something refers to its middle. Returns
    /// `None` if the code is too large to search.
    pub(super) fn data_len(&self, address: u64) -> Option<usize> {
        let referenced = self.referenced.get_or_init(|| self.find_referenced()).as_ref()?;
        let next = referenced.partition_point(|&other| other <= address);
        let end = referenced.get(next).map_or(usize::MAX, |next| usize::try_from(next - address).unwrap_or(usize::MAX));
        Some(end.min(self.image().bytes(address).len()))
    }

    fn find_referenced(&self) -> Option<Vec<u64>> {
        let size: u64 = self.functions.0.iter().map(|function| function.size).sum();
        if size > MAX_SEARCHED_BYTES {
            return None;
        }
        // Instructions of Go contain distances instead of addresses.
        let has_absolute = self.has_absolute_operands() && !self.has_symbol(b"runtime.text");
        let mut referenced = self.image().referenced();
        for function in self.functions() {
            checkpoint();
            self.instructions(function, |instruction| {
                referenced.extend(instruction.target);
                if has_absolute {
                    let text = instruction.compared(|_| None);
                    referenced
                        .extend(same_code::numbers(&text).1.into_iter().filter(|&n| self.image().is_in_section(n)));
                }
            });
        }
        referenced.sort_unstable();
        referenced.dedup();
        Some(referenced)
    }

    /// Returns true if constants in instructions may be addresses. arm64 has no constants of 32 bits.
    pub(super) fn has_absolute_operands(&self) -> bool {
        self.architecture == Architecture::X86_64 && self.image().is_fixed
    }

    /// Returns true if a function has this name in the symbol table.
    pub(super) fn has_symbol(&self, name: &[u8]) -> bool {
        self.symbol_names().contains_key(name)
    }

    /// Returns true if several functions have this name in the symbol table, such as local functions of several files.
    pub(super) fn has_several(&self, name: &[u8]) -> bool {
        self.symbol_names().get(name).is_some_and(|&n| n > 1)
    }

    /// Returns the number of functions by name.
    fn symbol_names(&self) -> &HashMap<&'a [u8], u32> {
        self.symbol_names.get_or_init(|| {
            let mut names: HashMap<&[u8], u32> = HashMap::default();
            self.functions.0.iter().for_each(|function| *names.entry(function.name).or_default() += 1);
            names
        })
    }

    /// Calls `each` with the instructions at an address outside of functions, at most `len` bytes.
    pub(super) fn decode_at(&self, address: u64, len: usize, each: impl FnMut(Instruction)) {
        let bytes = self.parts.iter().find_map(|&(start, bytes)| {
            let from = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(from..).map(|bytes| &bytes[..len.min(bytes.len())])
        });
        instructions::decode(self.architecture, address, bytes.unwrap_or_default(), each);
    }

    /// Calls `each` with a function's instructions, in order.
    pub fn instructions(&self, function: u32, each: impl FnMut(Instruction)) {
        let (address, bytes) = self.bytes(function);
        instructions::decode(self.architecture, address, bytes, each);
    }

    /// Returns the function with this identity, unless several functions have it.
    pub fn find(&self, origin: Origin<'_>) -> Option<u32> {
        let all = || self.unique_by(|f| (f.name, f.file));
        self.by_origin.get_or_init(all).get(&origin).copied().flatten()
    }

    /// Returns the function with this demangled name, unless several functions have it.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        let all = || self.unique_by(|f| demangled(f.name));
        self.by_name.get_or_init(all).get(name).copied().flatten()
    }

    /// Groups the functions by a key. A key that several functions share maps to `None`.
    fn unique_by<K: Eq + std::hash::Hash>(&self, key: impl Fn(&Symbol<'a>) -> K) -> HashMap<K, Option<u32>> {
        let mut all: HashMap<K, Option<u32>> = HashMap::default();
        for (f, number) in self.functions.0.iter().zip(0..).filter(|(f, _)| f.name.len() <= MAX_NAME_BYTES) {
            all.entry(key(f)).and_modify(|entry| *entry = None).or_insert(Some(number));
        }
        all
    }
}
