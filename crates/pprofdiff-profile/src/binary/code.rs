//! The machine code of a binary: which functions it has and where, and their instructions.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::PathBuf;

use object::{Object, ObjectSegment};

use super::demangled;
use super::dwarf::{DebugFiles, Memory};
use super::file::{Binary, MAX_SEGMENTS, Symbol, Symbols, parse, read};
use super::go;
use super::instructions::{self, Architecture, Instruction};
use super::search::Mapped;
use crate::error::{Error, Result};
use crate::random::HashMap;

/// What a binary can run: its functions by address, numbered from 0.
pub struct Code<'a> {
    architecture: Architecture,
    /// Where each part that can run lies, and its bytes.
    parts: Vec<(u64, &'a [u8])>,
    /// Each begins elsewhere, and says where it ends.
    functions: Symbols<'a>,
    by_origin: OnceCell<HashMap<Origin<'a>, Option<u32>>>,
    by_name: OnceCell<HashMap<Cow<'a, [u8]>, Option<u32>>>,
}

/// A function's name as the linker has it, and what it was compiled of if no other file sees it.
pub type Origin<'a> = (&'a [u8], &'a [u8]);

impl std::fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("functions", &self.functions.0.len()).finish_non_exhaustive()
    }
}

impl Mapped {
    /// The functions and instructions. `memory` holds what they borrow.
    ///
    /// # Errors
    /// The file can't be read any more, or it is for another machine than x86-64 and arm64.
    pub fn code<'a>(&self, memory: &'a Memory) -> Result<Code<'a>> {
        Code::read(&self.binary, &self.by_build_id, memory)
    }
}

/// Longer names are not looked for: a table of symbols can name one text from each of its bytes on.
const LONGEST_NAME: usize = 4096;

impl<'a> Code<'a> {
    /// Reads the functions of a binary: those of its symbols, or where it has none, of Go's own tables.
    fn read(binary: &Binary, by_build_id: &[PathBuf], memory: &'a Memory) -> Result<Code<'a>> {
        let path = binary.path();
        if binary.is_of_kernel() {
            return Err(Error::query("it has names and no instructions").in_input(&path.to_string_lossy()));
        }
        let object = parse(path, memory.keep(read(path)?))?;
        let architecture = match object.architecture() {
            object::Architecture::X86_64 => Architecture::X86_64,
            object::Architecture::Aarch64 if object.is_little_endian() => Architecture::Arm64,
            other => {
                let detail = format!("it is for {other:?}; instructions are shown of x86-64 and arm64");
                return Err(Error::query(detail).in_input(&path.to_string_lossy()));
            }
        };
        let can_run = object.segments().take(MAX_SEGMENTS).filter(|segment| segment.permissions().executable());
        let parts: Vec<(u64, &[u8])> =
            can_run.filter_map(|segment| Some((segment.address(), segment.data().ok()?))).collect();
        let separate = DebugFiles { binary: path, by_build_id }.find(&object, memory);
        let mut functions = Symbols::new([Some(&object), separate.as_ref().map(|(_, object)| object)]);
        if object.symbols().next().is_none() && separate.is_none() {
            functions.0.extend(go::functions(&object, memory));
            functions.0.sort_by_key(|function| function.address);
        }
        functions.end_each(&parts);
        let (by_origin, by_name) = Default::default();
        Ok(Code { architecture, parts, functions, by_origin, by_name })
    }

    /// The function that an address lies in.
    pub fn function_at(&self, address: u64) -> Option<u32> {
        self.functions.index(address).map(|index| index as u32)
    }

    /// Which function it is, wherever it lies.
    pub fn origin(&self, function: u32) -> Origin<'a> {
        let Symbol { name, file, .. } = self.functions.0[function as usize];
        (name, file)
    }

    /// A function's name as people read it.
    pub fn name(&self, function: u32) -> Cow<'a, [u8]> {
        demangled(self.origin(function).0)
    }

    /// The address that a function begins at, and its bytes.
    pub fn bytes(&self, function: u32) -> (u64, &'a [u8]) {
        let Symbol { address, size, .. } = self.functions.0[function as usize];
        let bytes = self.parts.iter().find_map(|&(start, bytes)| {
            let bytes = bytes.get(usize::try_from(address.checked_sub(start)?).ok()?..)?;
            bytes.get(..usize::try_from(size).ok()?).filter(|bytes| !bytes.is_empty())
        });
        (address, bytes.unwrap_or_default())
    }

    /// Calls `each` with a function's instructions, in order.
    pub fn instructions(&self, function: u32, each: impl FnMut(Instruction)) {
        let (address, bytes) = self.bytes(function);
        instructions::decode(self.architecture, address, bytes, each);
    }

    /// The only function that is the same one.
    pub fn find(&self, origin: Origin<'_>) -> Option<u32> {
        let all = || self.only(|f| (f.name, f.file));
        self.by_origin.get_or_init(all).get(&origin).copied().flatten()
    }

    /// The only function with a name as people read it.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        let all = || self.only(|f| demangled(f.name));
        self.by_name.get_or_init(all).get(name).copied().flatten()
    }

    /// The functions by a key, with none where several have it.
    fn only<K: Eq + std::hash::Hash>(&self, key: impl Fn(&Symbol<'a>) -> K) -> HashMap<K, Option<u32>> {
        let mut all: HashMap<K, Option<u32>> = HashMap::default();
        for (f, number) in self.functions.0.iter().zip(0..).filter(|(f, _)| f.name.len() <= LONGEST_NAME) {
            all.entry(key(f)).and_modify(|only| *only = None).or_insert(Some(number));
        }
        all
    }
}
