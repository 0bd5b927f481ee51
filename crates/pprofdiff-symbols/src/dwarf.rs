//! Functions, inlined functions and lines from DWARF 2 to 5. The debug information may be in the binary, in a separate
//! file (found by build id or debug link), split (`.dwo`, `.dwp`), shared (`.gnu_debugaltlink`) or compressed.
//!
//! Debug information can cause unlimited work: any number of units may share the same ranges and paths, which are
//! expanded for each unit. The reader therefore counts the bytes that it reads. Reads beyond a budget that depends on
//! the sections' sizes fail, and the remaining addresses get no lines.

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

use super::file::{FoundFrame, build_id, hex, parse, read};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::random::HashMap;

/// The number of bytes that may be read per byte of debug information. For compilers' output, looking up all addresses
/// takes 1 to 6.
const READS_PER_BYTE: u64 = 16;
/// The number of bytes that may be read in addition, for debug information of any size.
const MIN_READS: u64 = 1 << 20;
/// The maximum ratio of a section's inflated size to its size in the file. Compilers' output reaches 5.
const MAX_INFLATION: u64 = 100;

/// A slice that counts the bytes read from it.
#[derive(Debug, Clone)]
pub(super) struct CountedSlice<'a> {
    pub slice: EndianSlice<'a, RunTimeEndian>,
    /// The number of bytes that may still be read, shared by all slices.
    pub left: &'a Cell<u64>,
}

impl CountedSlice<'_> {
    #[inline]
    fn spend(&self, bytes: usize) -> gimli::Result<()> {
        // Each read counts as one byte more than it reads, because a read of zero bytes also takes time.
        match self.left.get().checked_sub(bytes as u64 + 1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(gimli::Error::Io),
        }
    }
}

impl<'a> gimli::Reader for CountedSlice<'a> {
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
        let index = gimli::Reader::find(&self.slice, byte);
        self.spend(*index.as_ref().unwrap_or(&self.slice.len()))?;
        index
    }

    fn skip(&mut self, len: usize) -> gimli::Result<()> {
        self.spend(0)?;
        gimli::Reader::skip(&mut self.slice, len)
    }

    fn split(&mut self, len: usize) -> gimli::Result<Self> {
        self.spend(0)?;
        let slice = gimli::Reader::split(&mut self.slice, len)?;
        Ok(CountedSlice { slice, left: self.left })
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

/// The owner of a lookup's files and inflated sections, which all other structures borrow, and its read budget.
pub struct Memory {
    bytes: Arena<Vec<u8>>,
    /// The number of bytes that may still be read.
    pub(super) left: Cell<u64>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { bytes: Arena::new(), left: Cell::new(MIN_READS) }
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

    /// Returns the inflated content of a section, and adds its size times [`READS_PER_BYTE`] to the read budget. A
    /// section that is missing, damaged or compressed beyond [`MAX_INFLATION`] is empty.
    fn section<'a>(&'a self, object: &object::File<'a>, name: &str) -> CountedSlice<'a> {
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let data = content(object, name);
        let data = data.filter(|d| d.uncompressed_size <= MAX_INFLATION * d.data.len() as u64);
        let data: &'a [u8] = match data.and_then(|d| d.decompress().ok()) {
            None => &[],
            Some(Cow::Borrowed(data)) => data,
            Some(Cow::Owned(data)) => self.bytes.alloc(data),
        };
        self.left.set(self.left.get().saturating_add(READS_PER_BYTE * data.len() as u64));
        CountedSlice { slice: EndianSlice::new(data, endian), left: &self.left }
    }

    /// Returns a section of split debug information, under its name there (such as `.debug_info.dwo`). A section that
    /// cannot be split is empty.
    fn split_section<'a>(&'a self, object: &object::File<'a>, id: SectionId) -> CountedSlice<'a> {
        id.dwo_name().map_or_else(|| self.empty(object), |name| self.section(object, name))
    }

    fn empty<'a>(&'a self, object: &object::File<'a>) -> CountedSlice<'a> {
        self.section(object, "")
    }

    fn dwarf<'a>(&'a self, object: &object::File<'a>) -> Dwarf<CountedSlice<'a>> {
        let Ok(dwarf) = Dwarf::load(|id| Ok::<_, Infallible>(self.section(object, id.name())));
        dwarf
    }

    /// Opens a separate file with debug information. Returns `None` if it can't be read or `is_right` is false, for
    /// example because it is from another build.
    fn open<'a>(&'a self, path: &Path, is_right: impl Fn(&object::File<'a>) -> bool) -> Option<object::File<'a>> {
        self.open_bytes(path, |object, _| is_right(object))
    }

    /// Opens a file like [`Memory::open`]; `is_right` also gets the content of the file.
    fn open_bytes<'a>(
        &'a self,
        path: &Path,
        is_right: impl Fn(&object::File<'a>, &[u8]) -> bool,
    ) -> Option<object::File<'a>> {
        let bytes: &'a [u8] = self.bytes.alloc(read(path).ok()?);
        parse(path, bytes).ok().filter(|object| is_right(object, bytes))
    }
}

/// The possible locations of debug information outside the binary.
pub(super) struct DebugFiles<'a> {
    /// The binary itself.
    pub binary: &'a Path,
    /// Paths derived from the binary's build id, such as `ab/cdef.debug`. The files may be missing.
    pub by_build_id: &'a [PathBuf],
}

impl DebugFiles<'_> {
    /// Finds the separate file with debug information and symbols. Returns `None` if the binary itself has debug
    /// information.
    pub(super) fn find<'a>(
        &self,
        object: &object::File<'a>,
        memory: &'a Memory,
    ) -> Option<(PathBuf, object::File<'a>)> {
        if has_units(object) {
            return None;
        }
        let expected_id = build_id(object);
        let link = object.gnu_debuglink().ok().flatten();
        // Without a build id, the checksum in the link identifies the build.
        let same_build = |candidate: &object::File<'a>, bytes: &[u8]| {
            let is_same = match expected_id.is_empty() {
                false => build_id(candidate) == expected_id,
                true => link.is_some_and(|(_, crc)| crc32fast::hash(bytes) == crc),
            };
            has_units(candidate) && is_same
        };
        let mut candidates = self.by_build_id.to_vec();
        if let (Some((name, _)), Some(folder)) = (link, self.binary.parent()) {
            // gdb looks in the same places.
            let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
            let system = Path::new(SYSTEM_DEBUG_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
            candidates.extend([folder.join(&name), folder.join(".debug").join(&name), system.join(&name)]);
        }
        candidates.into_iter().find_map(|path| Some((path.clone(), memory.open_bytes(&path, same_build)?)))
    }
}

/// Linux distributions install debug information in this folder.
pub(super) const SYSTEM_DEBUG_FOLDER: &str = "/usr/lib/debug";

fn has_units(object: &object::File<'_>) -> bool {
    content(object, ".debug_info").is_some_and(|data| data.uncompressed_size > 0)
}

/// The reason for lines that are missing because the budget is exhausted.
const TOO_MUCH_WORK: &str = "reading it takes more work than its size allows";

/// Describes an error. [`CountedSlice`] reports an exhausted budget as an I/O error.
fn reason(e: &gimli::Error) -> String {
    match e {
        gimli::Error::Io => TOO_MUCH_WORK.to_owned(),
        e => e.to_string(),
    }
}

/// Returns the content of a section as stored in the file.
fn content<'a>(object: &object::File<'a>, name: &str) -> Option<CompressedData<'a>> {
    if let Some(section) = object.section_by_name(name) {
        return section.compressed_data().ok();
    }
    // `object` does not support the form that Go's linker uses to compress sections of Windows binaries: a name with
    // `.z`, `ZLIB`, and the size.
    let section = object.section_by_name(&format!(".z{}", name.strip_prefix('.')?))?;
    let (size, data) = section.data().ok()?.strip_prefix(b"ZLIB")?.split_first_chunk()?;
    let uncompressed_size = u64::from_be_bytes(*size);
    Some(CompressedData { format: CompressionFormat::Zlib, data, uncompressed_size })
}

/// Looks up sorted addresses in the debug information of a file. Calls `f` with each address and its frames, innermost
/// first; the frames may be empty. Returns a warning for the user if some information could not be read.
pub(super) fn look_up<'a>(
    path: &Path,
    object: &object::File<'a>,
    memory: &'a Memory,
    addresses: &[u64],
    mut f: impl FnMut(u64, &[FoundFrame<'_>]),
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
            let why = match e {
                gimli::Error::Io => format!("not read: {TOO_MUCH_WORK}"),
                e => format!("damaged ({e})"),
            };
            return Some(format!("{}: its debug information is {why}, so there are no lines", path.display()));
        }
    };
    let split = SplitDebugInfo { path, memory, package: OnceCell::new() };
    let mut failed = None;
    let mut frames_found = Vec::new();
    let mut start_lines = StartLines::default();
    for &address in addresses {
        cancellation::checkpoint();
        frames_found.clear();
        match split.frames(&context, address) {
            Ok(mut frames) => loop {
                match frames.next() {
                    Ok(Some(frame)) => frames_found.push(frame),
                    Ok(None) => break,
                    Err(e) => {
                        failed = Some(e);
                        break;
                    }
                }
            },
            Err(e) => failed = Some(e),
        }
        let names: Vec<_> =
            frames_found.iter().map(|frame| frame.function.as_ref().map(|n| n.name.slice.slice())).collect();
        let starts = start_lines.find_all(&context, address, &frames_found);
        let lines = frames_found.iter().zip(names).zip(starts).map(|((frame, name), start_line)| {
            let location = frame.location.as_ref();
            FoundFrame {
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
    Some(format!("{}: some of its debug information was not read: {}", path.display(), reason(&e)))
}

/// The maximum number of references to follow from an instance of a function, such as an inlined call, to its
/// declaration.
const MAX_ORIGINS: u32 = 16;

/// A cache of functions' start lines. Offsets start at 0 in each file (the binary, its shared file, split units), so
/// the key includes the address of the file's `Dwarf` in the context.
#[derive(Default)]
struct StartLines<'a> {
    lines: HashMap<(*const Dwarf<CountedSlice<'a>>, Option<DebugInfoOffset>, UnitOffset), u32>,
    files: HashMap<*const Dwarf<CountedSlice<'a>>, Units<'a>>,
}

/// The units of a file. Link-time optimization and dwz move the declarations of many functions to another unit, so
/// parsed units are cached.
struct Units<'a> {
    /// The headers of all units, ordered by offset.
    headers: Vec<UnitHeader<CountedSlice<'a>>>,
    /// The parsed units, by their index in `headers`.
    read: HashMap<usize, Rc<Unit<CountedSlice<'a>>>>,
}

impl<'a> StartLines<'a> {
    /// Returns the start line of each frame's function, or 0 if it is unknown.
    fn find_all(
        &mut self,
        context: &Context<CountedSlice<'a>>,
        address: u64,
        frames: &[Frame<'_, CountedSlice<'a>>],
    ) -> Vec<u32> {
        // All frames of an address are in the same unit, which is already loaded.
        let Some(unit) = context.find_dwarf_and_unit(address).skip_all_loads() else { return vec![0; frames.len()] };
        let line = |frame: &Frame<'_, CountedSlice<'a>>| {
            let offset = frame.dw_die_offset?;
            let key = (std::ptr::from_ref(unit.dwarf), unit.debug_info_offset(), offset);
            if let Some(&line) = self.lines.get(&key) {
                return Some(line);
            }
            let line = self.find(&unit, offset, MAX_ORIGINS).ok().flatten().unwrap_or(0);
            self.lines.insert(key, line);
            Some(line)
        };
        frames.iter().map(line).map(Option::unwrap_or_default).collect()
    }

    /// Returns the line of an entry's declaration. Follows references from an instance to its origin, at most
    /// `max_origins` times.
    fn find(
        &mut self,
        unit: &UnitRef<'_, CountedSlice<'a>>,
        offset: UnitOffset,
        max_origins: u32,
    ) -> gimli::Result<Option<u32>> {
        let entry = unit.entry(offset)?;
        if let Some(line) = entry.attr_value(gimli::DW_AT_decl_line).and_then(|v| v.udata_value()) {
            return Ok(u32::try_from(line).ok());
        }
        let origins = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        let (file, origin) = match origins.into_iter().find_map(|name| entry.attr_value(name)) {
            _ if max_origins == 0 => return Ok(None),
            Some(AttributeValue::UnitRef(origin)) => return self.find(unit, origin, max_origins - 1),
            Some(AttributeValue::DebugInfoRef(origin)) => (Some(unit.dwarf), origin),
            Some(AttributeValue::DebugInfoRefSup(origin)) => (unit.dwarf.sup(), origin),
            _ => return Ok(None),
        };
        let Some(file) = file else { return Ok(None) };
        match self.unit(file, origin)? {
            Some((other, origin)) => self.find(&other.unit_ref(file), origin, max_origins - 1),
            None => Ok(None),
        }
    }

    /// Returns the unit that contains an offset, and the offset relative to the unit.
    #[allow(clippy::type_complexity)]
    fn unit(
        &mut self,
        dwarf: &Dwarf<CountedSlice<'a>>,
        info_offset: DebugInfoOffset,
    ) -> gimli::Result<Option<(Rc<Unit<CountedSlice<'a>>>, UnitOffset)>> {
        let units = match self.files.entry(dwarf) {
            Entry::Occupied(units) => units.into_mut(),
            Entry::Vacant(new) => {
                let (mut all, mut headers) = (Vec::new(), dwarf.units());
                while let Some(header) = headers.next()? {
                    all.push(header);
                }
                new.insert(Units { headers: all, read: HashMap::default() })
            }
        };
        let next = units.headers.partition_point(|h| h.debug_info_offset().is_some_and(|begin| begin <= info_offset));
        let Some(index) = next.checked_sub(1) else { return Ok(None) };
        let Some(offset) = info_offset.to_unit_offset(&units.headers[index]) else { return Ok(None) };
        if let Some(unit) = units.read.get(&index) {
            return Ok(Some((unit.clone(), offset)));
        }
        let unit = Rc::new(dwarf.unit(units.headers[index].clone())?);
        units.read.insert(index, unit.clone());
        Ok(Some((unit, offset)))
    }
}

/// Debug information in separate files: one `.dwo` file per unit, or a package (`.dwp`) with all units.
struct SplitDebugInfo<'a> {
    path: &'a Path,
    memory: &'a Memory,
    package: OnceCell<Option<DwarfPackage<CountedSlice<'a>>>>,
}

impl<'a> SplitDebugInfo<'a> {
    fn frames<'c>(
        &self,
        context: &'c Context<CountedSlice<'a>>,
        address: u64,
    ) -> gimli::Result<addr2line::FrameIter<'c, CountedSlice<'a>>> {
        let mut lookup = context.find_frames(address);
        loop {
            match lookup {
                LookupResult::Output(frames) => return frames,
                LookupResult::Load { load, continuation } => lookup = continuation.resume(self.load(&load)),
            }
        }
    }

    /// Finds the debug information of a split unit in the package or in its own file.
    // The counting reader belongs to one thread, but addr2line requires an `Arc`.
    #[allow(clippy::arc_with_non_send_sync)]
    fn load(&self, load: &SplitDwarfLoad<CountedSlice<'a>>) -> Option<Arc<Dwarf<CountedSlice<'a>>>> {
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
        let text = |reader: &Option<CountedSlice<'a>>| reader.as_ref().map(|r| r.slice.to_string_lossy().into_owned());
        let name = PathBuf::from(text(&load.path)?);
        let original = Path::new(&text(&load.comp_dir).unwrap_or_default()).join(&name);
        // If the build folder was moved, the file may be next to the binary.
        let moved = name.file_name().map(|name| self.path.with_file_name(name));
        std::iter::once(original).chain(moved).find_map(|path| {
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

#[cfg(test)]
mod tests {
    use gimli::Reader;

    use super::*;

    #[test]
    fn an_exhausted_budget_is_reported_even_if_some_of_it_is_left() {
        let left = Cell::new(5);
        let mut slice = CountedSlice { slice: EndianSlice::new(&[0; 16], RunTimeEndian::Little), left: &left };
        let error = slice.read_u64().err();
        assert_eq!((error.as_ref().map(reason), left.get()), (Some(TOO_MUCH_WORK.to_owned()), 5));
    }
}
