//! The tables of a profile: strings, functions, frames, stacks and libraries. Threads have their own, or share them.

use crate::kit::json::{Json, JsonText};
use crate::kit::tree::TextBudget;
use pprofdiff_profile::builder::{FunctionId, LocationId, MappingId, ProfileBuilder};
use pprofdiff_profile::columns::Mapping;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, Result};

/// Stands for a missing number.
pub(super) const NONE: u32 = u32::MAX;

/// The size of a library's mapping. Addresses count from the library's beginning, and have 32 bits.
const ADDRESSES: u64 = 1 << 32;

/// The positions of the tables of a thread, or of the shared tables.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TablePositions<'t>([Option<Json<'t>>; NAMES.len()]);

const NAMES: [&str; 6] = ["stringArray", "funcTable", "frameTable", "stackTable", "resourceTable", "sources"];
const STRINGS: usize = 0;
const FUNCTIONS: usize = 1;
const FRAMES: usize = 2;
const STACKS: usize = 3;
const RESOURCES: usize = 4;
const SOURCES: usize = 5;

impl<'t> TablePositions<'t> {
    /// Finds the tables in the object of a thread, or in the object `shared`.
    pub fn read(place: Option<Json<'t>>) -> Result<TablePositions<'t>> {
        place.map_or(Ok(TablePositions::default()), |mut json| json.members(NAMES).map(TablePositions))
    }

    /// Returns true if there is a table of stacks or of frames, so that the stacks are not the shared ones.
    pub fn has_stacks(&self) -> bool {
        self.0[STACKS].is_some() || self.0[FRAMES].is_some()
    }

    /// Returns true if there is a list of strings.
    pub fn has_strings(&self) -> bool {
        self.0[STRINGS].is_some()
    }

    pub fn strings(&self) -> Result<Vec<JsonText<'t>>> {
        let Some(mut json) = self.0[STRINGS] else { return Err(Error::malformed("it has no `stringArray`")) };
        let mut strings = Vec::new();
        let mut array = json.array()?;
        while json.element(&mut array)? {
            strings.push(json.string()?);
        }
        Ok(strings)
    }

    /// Returns these tables, and takes missing tables from `fallback`.
    pub fn or(&self, fallback: &TablePositions<'t>) -> TablePositions<'t> {
        let mut places = *self;
        places.0.iter_mut().zip(fallback.0).for_each(|(place, other)| *place = place.or(other));
        places
    }

    /// Reads the columns of a table. All columns must have the same length, but columns after the first may be missing
    /// or empty.
    fn columns<const N: usize>(&self, table: usize, names: [&str; N]) -> Result<[Vec<u32>; N]> {
        let Some(mut json) = self.0[table] else {
            return Err(Error::malformed(format!("it has no `{}`", NAMES[table])));
        };
        let begin = json.offset();
        let mut columns = [const { Vec::new() }; N];
        for (column, place) in columns.iter_mut().zip(json.members(names)?) {
            if let Some(place) = place {
                *column = numbers(place)?;
            }
        }
        let n = columns[0].len();
        for (column, name) in columns.iter().zip(names).skip(1).filter(|(column, _)| !column.is_empty()) {
            if column.len() != n {
                let (table, first, other) = (NAMES[table], names[0], column.len());
                let detail = format!("`{table}` has {n} numbers in `{first}` and {other} in `{name}`");
                return Err(Error::malformed(detail).at(begin));
            }
        }
        Ok(columns)
    }
}

/// Reads a column of numbers. A number counts as missing if it is `null`, negative, or does not fit in 32 bits, as some
/// addresses do not.
fn numbers(mut json: Json<'_>) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    let mut array = json.array()?;
    while json.element(&mut array)? {
        let number = if json.null() { None } else { json.number()?.scaled(0).ok() };
        numbers.push(number.and_then(|(number, _)| u32::try_from(number).ok()).unwrap_or(NONE));
    }
    Ok(numbers)
}

/// Returns the element of a list with this index. The error for an unknown index names `kind` and the table.
fn find<T: Copy>(list: &[T], number: u32, kind: &str, table: usize) -> Result<T> {
    list.get(number as usize).copied().ok_or_else(|| {
        let n = list.len();
        Error::malformed(format!("`{}`: unknown {kind} {}: there are {n}", NAMES[table], i64::from(number)))
    })
}

/// Returns a number of a column, or `None` if the number or the whole column is missing.
fn number(column: &[u32], index: usize) -> Option<u32> {
    column.get(index).copied().filter(|&number| number != NONE)
}

/// The libraries: their mappings and short names.
pub(super) struct Libraries(Vec<(MappingId, Vec<u8>)>);

impl Libraries {
    pub fn read(place: Option<Json<'_>>, builder: &mut ProfileBuilder) -> Result<Libraries> {
        let mut libraries = Libraries(Vec::new());
        let Some(mut json) = place else { return Ok(libraries) };
        let mut array = json.array()?;
        while json.element(&mut array)? {
            let number = libraries.0.len();
            let mut read_next = || -> Result<(MappingId, Vec<u8>)> {
                let mut text = |place: Option<Json<'_>>| match place {
                    Some(mut json) => json.string().map(|text| text.bytes().into_owned()),
                    None => Ok(Vec::new()),
                };
                let [name, path, code] = json.members(["name", "path", "codeId"])?.map(&mut text);
                let (name, path, code) = (name?, path?, code?);
                let file = builder.string(if path.is_empty() { &name } else { &path });
                let build_id = builder.string(&code);
                let mapping = Mapping { start: 0, limit: ADDRESSES, offset: 0, file, build_id, flags: 0 };
                Ok((builder.mapping(mapping), name))
            };
            libraries.0.push(read_next().map_err(|e| e.in_record(|| format!("library {number}")))?);
        }
        Ok(libraries)
    }

    fn get(&self, number: u32, table: usize) -> Result<&(MappingId, Vec<u8>)> {
        let missing = || Error::malformed(format!("`{}`: unknown library {number}", NAMES[table]));
        self.0.get(number as usize).ok_or_else(missing)
    }
}

/// A function of a table.
#[derive(Debug, Clone, Copy)]
struct FirefoxFunction {
    id: FunctionId,
    /// The index of the function's library, if it is known.
    library: Option<u32>,
    /// True if the name is an address.
    is_unnamed: bool,
}

/// The stacks of a thread, or the shared stacks. Each has its innermost frame and its caller stack.
pub(super) struct FirefoxStacks {
    locations: Vec<LocationId>,
    frames: Vec<u32>,
    callers: Vec<u32>,
}

impl FirefoxStacks {
    pub fn read(
        places: &TablePositions<'_>,
        libraries: &Libraries,
        builder: &mut ProfileBuilder,
        texts: &mut TextBudget,
    ) -> Result<FirefoxStacks> {
        let strings = places.strings()?;
        let functions = read_functions(places, &strings, builder, texts)?;
        let [frame_functions, lines, columns, frame_libraries, addresses] =
            places.columns(FRAMES, ["func", "line", "column", "lib", "address"])?;
        let mut locations = Vec::with_capacity(frame_functions.len());
        for (i, &function) in frame_functions.iter().enumerate() {
            let function = find(&functions, function, "function", FRAMES)?;
            let frame_library =
                number(&frame_libraries, i).map(|library| libraries.get(library, FRAMES)).transpose()?;
            let library = frame_library.or(function.library.and_then(|library| libraries.0.get(library as usize)));
            let mapping = library.map(|&(mapping, _)| mapping);
            let function = match (library, number(&addresses, i)) {
                _ if !function.is_unnamed => function.id,
                (Some(_), Some(address)) => {
                    locations.push(builder.location(mapping, u64::from(address), &[])?);
                    continue;
                }
                (Some((_, name)), None) => {
                    texts.take(name.len())?;
                    builder.function([b"[", &**name, b"]"].concat(), "", 0)
                }
                (None, _) => builder.function("[unknown]", "", 0),
            };
            let line = builder.line(function, number(&lines, i).map_or(0, i64::from));
            let line = line.with_column(number(&columns, i).map_or(0, i64::from));
            locations.push(builder.location(mapping, 0, &[line])?);
        }
        let [frames, mut callers, offsets] = places.columns(STACKS, ["frame", "prefix", "prefixOffset"])?;
        if callers.len() + offsets.len() < frames.len() {
            return Err(Error::malformed("`stackTable` has neither `prefix` nor `prefixOffset`"));
        }
        if callers.is_empty() {
            // The distance to the caller, or 0 for none. A caller before the first stack is reported below.
            let caller = |(i, &offset): (usize, &u32)| match offset {
                0 => NONE,
                _ => (i as u32).checked_sub(offset).unwrap_or(i as u32),
            };
            callers = offsets.iter().enumerate().map(caller).collect();
        }
        for (i, &frame) in frames.iter().enumerate() {
            find(&locations, frame, "frame", STACKS)?;
            if let Some(caller) = number(&callers, i).filter(|&caller| caller as usize >= i) {
                let detail =
                    format!("`stackTable`: stack {i} is called by stack {caller}, but callers must come first");
                return Err(Error::malformed(detail));
            }
        }
        Ok(FirefoxStacks { locations, frames, callers })
    }

    /// Validates the index of a stack.
    pub fn check(&self, stack: i64) -> Result<u32> {
        let n = self.frames.len();
        let valid = u32::try_from(stack).ok().filter(|&stack| (stack as usize) < n);
        valid.ok_or_else(|| Error::malformed(format!("unknown stack {stack}: there are {n}")))
    }

    /// Returns the innermost frame of a stack, and its caller stack or [`NONE`].
    pub fn get(&self, stack: u32) -> (LocationId, u32) {
        let caller = self.callers.get(stack as usize).copied().unwrap_or(NONE);
        (self.locations[self.frames[stack as usize] as usize], caller)
    }
}

fn read_functions(
    places: &TablePositions<'_>,
    strings: &[JsonText<'_>],
    builder: &mut ProfileBuilder,
    texts: &mut TextBudget,
) -> Result<Vec<FirefoxFunction>> {
    let [names, resources, files, sources] = places.columns(FUNCTIONS, ["name", "resource", "fileName", "source"])?;
    let resource_libraries = match places.0[RESOURCES] {
        Some(_) => places.columns(RESOURCES, ["name", "lib"])?[1].clone(),
        None => Vec::new(),
    };
    let source_files = match places.0[SOURCES] {
        Some(_) => places.columns(SOURCES, ["filename"])?[0].clone(),
        None => Vec::new(),
    };
    let mut functions: Vec<FirefoxFunction> = Vec::with_capacity(names.len());
    // Functions by name and file. Many functions share both.
    let mut created: HashMap<(u32, u32), (FunctionId, bool)> = HashMap::default();
    for (i, &name) in names.iter().enumerate() {
        let file = match number(&sources, i) {
            Some(source) => Some(find(&source_files, source, "source", FUNCTIONS)?),
            None => number(&files, i),
        };
        let key = (name, file.unwrap_or(NONE));
        let (id, is_unnamed) = match created.get(&key) {
            Some(&existing) => existing,
            None => {
                let name = find(strings, name, "string", FUNCTIONS)?.bytes();
                let file = file.map(|file| find(strings, file, "string", FUNCTIONS)).transpose()?.map(JsonText::bytes);
                let file = file.unwrap_or_default();
                texts.take(name.len() + file.len())?;
                (builder.function(&name, file, 0), is_address(&name))
            }
        };
        created.insert(key, (id, is_unnamed));
        let library = number(&resources, i).and_then(|resource| number(&resource_libraries, resource as usize));
        functions.push(FirefoxFunction { id, library, is_unnamed });
    }
    Ok(functions)
}

/// Returns true for an address, which stands in for the name of a function without a symbol.
fn is_address(name: &[u8]) -> bool {
    name.strip_prefix(b"0x").is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit))
}
