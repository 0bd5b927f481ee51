//! Functions, inlined ones among them, and lines from DWARF 2 to 5: in the binary itself, in a file of its own (found by
//! the build id or by what the binary says), split (`.dwo`, `.dwp`), shared (`.gnu_debugaltlink`), compressed.
//!
//! Debug information can ask for any amount of work: ranges and paths may be shared by any number of units and be written
//! out for each. So the reader counts the bytes that it reads, and from a number on that follows from the sizes of the
//! sections every read is an error, and what was not looked up by then has no lines.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use addr2line::{Context, Frame, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, Dwarf, DwarfPackage, EndianSlice, ReaderOffsetId,
    RunTimeEndian, SectionId, Unit, UnitHeader, UnitOffset, UnitRef,
};
use object::{CompressedData, CompressionFormat, Object, ObjectSection};
use typed_arena::Arena;

use super::file::{Found, build_id, hex, parse, read};
use crate::random::HashMap;
use crate::work;

/// Bytes that may be read for each byte of debug information; all addresses of what compilers write take 1 to 6.
const READS_PER_BYTE: u64 = 16;
/// And on top of these, whatever the size.
const READS: u64 = 1 << 20;
/// How many times as large as in the file a section may be when it is inflated; compilers reach 5.
const MAX_INFLATION: u64 = 100;

/// A slice that counts what is read of it.
#[derive(Debug, Clone)]
pub(super) struct Counted<'a> {
    pub slice: EndianSlice<'a, RunTimeEndian>,
    /// Bytes that may be read yet, of all slices that share this.
    pub left: &'a Cell<u64>,
}

impl Counted<'_> {
    #[inline]
    fn spend(&self, bytes: usize) -> gimli::Result<()> {
        // What takes no bytes takes time all the same.
        match self.left.get().checked_sub(bytes as u64 + 1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(gimli::Error::Io),
        }
    }
}

impl<'a> gimli::Reader for Counted<'a> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.slice.endian()
    }

    fn len(&self) -> usize {
        self.slice.len()
    }

    fn empty(&mut self) {
        gimli::Reader::empty(&mut self.slice);
    }

    fn truncate(&mut self, len: usize) -> gimli::Result<()> {
        gimli::Reader::truncate(&mut self.slice, len)
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.slice.offset_from(base.slice)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        gimli::Reader::offset_id(&self.slice)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        gimli::Reader::lookup_offset_id(&self.slice, id)
    }

    fn find(&self, byte: u8) -> gimli::Result<usize> {
        let at = gimli::Reader::find(&self.slice, byte);
        self.spend(*at.as_ref().unwrap_or(&self.slice.len()))?;
        at
    }

    fn skip(&mut self, len: usize) -> gimli::Result<()> {
        self.spend(0)?;
        gimli::Reader::skip(&mut self.slice, len)
    }

    fn split(&mut self, len: usize) -> gimli::Result<Self> {
        self.spend(0)?;
        let slice = gimli::Reader::split(&mut self.slice, len)?;
        Ok(Counted { slice, left: self.left })
    }

    fn to_slice(&self) -> gimli::Result<Cow<'_, [u8]>> {
        gimli::Reader::to_slice(&self.slice)
    }

    fn to_string(&self) -> gimli::Result<Cow<'_, str>> {
        self.spend(self.slice.len())?;
        gimli::Reader::to_string(&self.slice)
    }

    fn to_string_lossy(&self) -> gimli::Result<Cow<'_, str>> {
        self.spend(self.slice.len())?;
        gimli::Reader::to_string_lossy(&self.slice)
    }

    #[inline]
    fn read_slice(&mut self, buf: &mut [u8]) -> gimli::Result<()> {
        self.spend(buf.len())?;
        gimli::Reader::read_slice(&mut self.slice, buf)
    }
}

/// What lives as long as a lookup: files and inflated sections, which everything else borrows.
pub struct Memory {
    bytes: Arena<Vec<u8>>,
    /// Bytes that may be read yet.
    pub(super) left: Cell<u64>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { bytes: Arena::new(), left: Cell::new(READS) }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("files", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Memory {
    #[cfg(feature = "disasm")]
    pub(super) fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.bytes.alloc(bytes)
    }

    /// A section's content, inflated; empty if there is none, or if it would be out of proportion.
    fn section<'a>(&'a self, object: &object::File<'a>, name: &str) -> Counted<'a> {
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let data = content(object, name);
        let data = data.filter(|d| d.uncompressed_size <= MAX_INFLATION * d.data.len() as u64);
        let data: &'a [u8] = match data.and_then(|d| d.decompress().ok()) {
            None => &[],
            Some(Cow::Borrowed(data)) => data,
            Some(Cow::Owned(data)) => self.bytes.alloc(data),
        };
        self.left.set(self.left.get().saturating_add(READS_PER_BYTE * data.len() as u64));
        Counted { slice: EndianSlice::new(data, endian), left: &self.left }
    }

    /// A section of split debug information, which has names of its own.
    fn split_section<'a>(&'a self, object: &object::File<'a>, id: SectionId) -> Counted<'a> {
        id.dwo_name().map_or_else(|| self.empty(object), |name| self.section(object, name))
    }

    fn empty<'a>(&'a self, object: &object::File<'a>) -> Counted<'a> {
        self.section(object, "")
    }

    fn dwarf<'a>(&'a self, object: &object::File<'a>) -> Dwarf<Counted<'a>> {
        let Ok(dwarf) = Dwarf::load(|id| Ok::<_, Infallible>(self.section(object, id.name())));
        dwarf
    }

    /// The binary in a file that another one names; `None` if it can't be read, or if it is another build's.
    fn open<'a>(&'a self, path: &Path, is_right: impl Fn(&object::File<'a>) -> bool) -> Option<object::File<'a>> {
        let bytes: &'a [u8] = self.bytes.alloc(read(path).ok()?);
        parse(path, bytes).ok().filter(is_right)
    }
}

/// Where debug information may be that is not in the binary.
pub(super) struct DebugFiles<'a> {
    /// The binary itself.
    pub binary: &'a Path,
    /// Files that have the name of its build id.
    pub by_build_id: &'a [PathBuf],
}

impl DebugFiles<'_> {
    /// The file with the debug information of a binary that has none itself, and symbols, too.
    pub(super) fn find<'a>(
        &self,
        object: &object::File<'a>,
        memory: &'a Memory,
    ) -> Option<(PathBuf, object::File<'a>)> {
        if has_units(object) {
            return None;
        }
        let wanted = build_id(object);
        let same_build = |found: &object::File<'a>| build_id(found) == wanted && has_units(found);
        let mut candidates = self.by_build_id.to_vec();
        if let (Ok(Some((name, _))), Some(folder)) = (object.gnu_debuglink(), self.binary.parent()) {
            // Where gdb looks for it, too.
            let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
            let system = Path::new(SYSTEM).join(folder.strip_prefix("/").unwrap_or(folder));
            candidates.extend([folder.join(&name), folder.join(".debug").join(&name), system.join(&name)]);
        }
        candidates.into_iter().find_map(|path| Some((path.clone(), memory.open(&path, same_build)?)))
    }
}

/// Where Linux distributions install debug information.
pub(super) const SYSTEM: &str = "/usr/lib/debug";

fn has_units(object: &object::File<'_>) -> bool {
    content(object, ".debug_info").is_some_and(|data| data.uncompressed_size > 0)
}

/// A section's content, as it is in the file.
fn content<'a>(object: &object::File<'a>, name: &str) -> Option<CompressedData<'a>> {
    if let Some(section) = object.section_by_name(name) {
        return section.compressed_data().ok();
    }
    // Of Windows' binaries `object` does not know the form that Go's linker packs: another name, ZLIB, the size.
    let section = object.section_by_name(&format!(".z{}", name.strip_prefix('.')?))?;
    let (size, data) = section.data().ok()?.strip_prefix(b"ZLIB")?.split_first_chunk()?;
    let uncompressed_size = u64::from_be_bytes(*size);
    Some(CompressedData { format: CompressionFormat::Zlib, data, uncompressed_size })
}

/// Looks sorted addresses up in the debug information of a file, and calls `f` with each and its frames, innermost first;
/// with none if it has none. Returns what a user should know.
pub(super) fn look_up<'a>(
    path: &Path,
    object: &object::File<'a>,
    memory: &'a Memory,
    addresses: &[u64],
    mut f: impl FnMut(u64, &[Found<'_>]),
) -> Option<String> {
    let mut dwarf = memory.dwarf(object);
    if let Ok(Some((name, id))) = object.gnu_debugaltlink() {
        let name = path.with_file_name(String::from_utf8_lossy(name).into_owned());
        if let Some(shared) = memory.open(&name, |o| build_id(o) == hex(id)) {
            dwarf.set_sup(memory.dwarf(&shared));
        }
    }
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    let context = match Context::from_dwarf(dwarf) {
        Ok(context) => context,
        Err(e) => {
            addresses.iter().for_each(|&address| f(address, &[]));
            return Some(format!("{}: its debug information is damaged ({e}), so there are no lines", path.display()));
        }
    };
    let split = Split { path, memory, package: OnceCell::new() };
    let mut failed = None;
    let mut found = Vec::new();
    let mut start_lines = StartLines::default();
    for &address in addresses {
        work::poll();
        found.clear();
        match split.frames(&context, address) {
            Ok(mut frames) => loop {
                match frames.next() {
                    Ok(Some(frame)) => found.push(frame),
                    Ok(None) => break,
                    Err(e) => {
                        failed = Some(e);
                        break;
                    }
                }
            },
            Err(e) => failed = Some(e),
        }
        let names: Vec<_> = found.iter().map(|frame| frame.function.as_ref().map(|n| n.name.slice.slice())).collect();
        let starts = start_lines.find_all(&context, address, &found);
        let lines = found.iter().zip(names).zip(starts).map(|((frame, name), start_line)| {
            let location = frame.location.as_ref();
            Found {
                name: name.unwrap_or_default(),
                file: location.and_then(|l| l.file).unwrap_or_default().as_bytes(),
                line: location.and_then(|l| l.line).unwrap_or_default(),
                column: location.and_then(|l| l.column).unwrap_or_default(),
                start_line,
            }
        });
        f(address, &lines.collect::<Vec<_>>());
    }
    let e = failed?;
    let why =
        if memory.left.get() == 0 { "it asks for more work than its size allows".to_owned() } else { e.to_string() };
    Some(format!("{}: some of its debug information was not read: {why}", path.display()))
}

/// How many entries may stand between an inlined function and its declaration.
const MAX_ORIGINS: u32 = 16;

/// The lines that functions begin in. Files (the binary, what it shares with others, split units) are told apart by
/// where the context keeps them, since places begin at 0 in each.
#[derive(Default)]
struct StartLines<'a> {
    known: HashMap<(*const Dwarf<Counted<'a>>, Option<DebugInfoOffset>, UnitOffset), u32>,
    files: HashMap<*const Dwarf<Counted<'a>>, Units<'a>>,
}

/// The units of a file. Link-time optimization and dwz put a function's declaration into another unit, so those that
/// were needed are kept.
struct Units<'a> {
    headers: Vec<UnitHeader<Counted<'a>>>,
    read: HashMap<usize, Rc<Unit<Counted<'a>>>>,
}

impl<'a> StartLines<'a> {
    /// Those of an address's functions; 0 of one that does not say.
    fn find_all(
        &mut self,
        context: &Context<Counted<'a>>,
        address: u64,
        frames: &[Frame<'_, Counted<'a>>],
    ) -> Vec<u32> {
        // All frames of an address are of one unit, which is at hand by now.
        let Some(unit) = context.find_dwarf_and_unit(address).skip_all_loads() else { return vec![0; frames.len()] };
        let line = |frame: &Frame<'_, Counted<'a>>| {
            let offset = frame.dw_die_offset?;
            let key = (std::ptr::from_ref(unit.dwarf), unit.debug_info_offset(), offset);
            if let Some(&line) = self.known.get(&key) {
                return Some(line);
            }
            let line = self.find(&unit, offset, MAX_ORIGINS).ok().flatten().unwrap_or(0);
            self.known.insert(key, line);
            Some(line)
        };
        frames.iter().map(line).map(Option::unwrap_or_default).collect()
    }

    /// The line of an entry's declaration, or of that of what it is an instance of.
    fn find(&mut self, unit: &UnitRef<'_, Counted<'a>>, at: UnitOffset, most: u32) -> gimli::Result<Option<u32>> {
        let entry = unit.entry(at)?;
        if let Some(line) = entry.attr_value(gimli::DW_AT_decl_line).and_then(|v| v.udata_value()) {
            return Ok(u32::try_from(line).ok());
        }
        let origins = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        let (file, origin) = match origins.into_iter().find_map(|name| entry.attr_value(name)) {
            _ if most == 0 => return Ok(None),
            Some(AttributeValue::UnitRef(origin)) => return self.find(unit, origin, most - 1),
            Some(AttributeValue::DebugInfoRef(origin)) => (Some(unit.dwarf), origin),
            Some(AttributeValue::DebugInfoRefSup(origin)) => (unit.dwarf.sup(), origin),
            _ => return Ok(None),
        };
        let Some(file) = file else { return Ok(None) };
        match self.unit(file, origin)? {
            Some((other, origin)) => self.find(&other.unit_ref(file), origin, most - 1),
            None => Ok(None),
        }
    }

    /// The unit that has a place, and the place in it.
    #[allow(clippy::type_complexity)]
    fn unit(
        &mut self,
        dwarf: &Dwarf<Counted<'a>>,
        place: DebugInfoOffset,
    ) -> gimli::Result<Option<(Rc<Unit<Counted<'a>>>, UnitOffset)>> {
        let units = match self.files.entry(dwarf) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (mut all, mut headers) = (Vec::new(), dwarf.units());
                while let Some(header) = headers.next()? {
                    all.push(header);
                }
                new.insert(Units { headers: all, read: HashMap::default() })
            }
        };
        let next = units.headers.partition_point(|h| h.debug_info_offset().is_some_and(|begin| begin <= place));
        let Some(index) = next.checked_sub(1) else { return Ok(None) };
        let Some(offset) = place.to_unit_offset(&units.headers[index]) else { return Ok(None) };
        if let Some(unit) = units.read.get(&index) {
            return Ok(Some((unit.clone(), offset)));
        }
        let unit = Rc::new(dwarf.unit(units.headers[index].clone())?);
        units.read.insert(index, unit.clone());
        Ok(Some((unit, offset)))
    }
}

/// Debug information that is in files beside the binary, a unit each, or all of them in a package.
struct Split<'a> {
    path: &'a Path,
    memory: &'a Memory,
    package: OnceCell<Option<DwarfPackage<Counted<'a>>>>,
}

impl<'a> Split<'a> {
    fn frames<'c>(
        &self,
        context: &'c Context<Counted<'a>>,
        address: u64,
    ) -> gimli::Result<addr2line::FrameIter<'c, Counted<'a>>> {
        let mut lookup = context.find_frames(address);
        loop {
            match lookup {
                LookupResult::Output(frames) => return frames,
                LookupResult::Load { load, continuation } => lookup = continuation.resume(self.load(&load)),
            }
        }
    }

    // What counts is of one thread, and addr2line wants an Arc.
    #[allow(clippy::arc_with_non_send_sync)]
    fn load(&self, load: &SplitDwarfLoad<Counted<'a>>) -> Option<Arc<Dwarf<Counted<'a>>>> {
        let package = self.package.get_or_init(|| {
            let mut path = self.path.as_os_str().to_owned();
            path.push(".dwp");
            let object = self.memory.open(Path::new(&path), |_| true)?;
            let section = |id: SectionId| Ok::<_, gimli::Error>(self.memory.split_section(&object, id));
            DwarfPackage::load(section, self.memory.empty(&object)).ok()
        });
        if let Some(unit) = package.as_ref().and_then(|p| p.find_cu(load.dwo_id, &load.parent).ok().flatten()) {
            return Some(Arc::new(unit));
        }
        let text = |reader: &Option<Counted<'a>>| reader.as_ref().map(|r| r.slice.to_string_lossy().into_owned());
        let name = PathBuf::from(text(&load.path)?);
        let built = Path::new(&text(&load.comp_dir).unwrap_or_default()).join(&name);
        // A build folder that was moved has the file beside the binary.
        let moved = name.file_name().map(|name| self.path.with_file_name(name));
        std::iter::once(built).chain(moved).find_map(|path| {
            let object = self.memory.open(&path, |_| true)?;
            let Ok(mut dwarf) = Dwarf::load(|id| Ok::<_, Infallible>(self.memory.split_section(&object, id)));
            let header = dwarf.units().next().ok()??;
            (dwarf.unit(header).ok()?.dwo_id == Some(load.dwo_id)).then(|| {
                dwarf.make_dwo(&load.parent);
                Arc::new(dwarf)
            })
        })
    }
}
