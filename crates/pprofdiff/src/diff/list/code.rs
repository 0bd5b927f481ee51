//! Lists instructions: decodes the functions of both sides' binaries, aligns them, and sums up the samples of their
//! addresses.
//!
//! Addresses in samples belong to a process. Each mapping leads to a binary and to an address inside it. Samples of all
//! profiles of a side are summed by this address, regardless of the load address. An address that occurs twice in a
//! sample counts once.
//!
//! The binaries of both sides are required. If a side's code were missing, the side would appear to cost nothing.

mod routines;
mod same_code;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{CodeChange, Listed, Listing, MAX_NAME, Routine};
use crate::diff::alignment::MAX_PAIRS;
use crate::diff::top::Sort;
use crate::diff::{Diff, Granularity, Matching, Measure, Normalize, Pair, Query, Summary, Walk};
use crate::{Error, Result};
use pprofdiff_profile::Profile;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, HashSet, RandomState};
use pprofdiff_symbols::{Binaries, Code, Mapped, Memory, Origin, some_of};
use routines::TOO_LONG;

/// The maximum size of the machine code in a listing, in bytes of both sides: about 300,000 instructions.
const MAX_CODE_BYTES: usize = 1 << 20;

/// A function of a binary: the number of the binary's code, and the function's number in it.
type CodeFunction = (u32, u32);

/// A function on both sides.
type FunctionPair = [Option<CodeFunction>; 2];

/// The cost of an address or a function on one side.
#[derive(Clone, Copy, Default)]
struct AddressCost {
    flat: i64,
    cum: i64,
    /// The last sample that was added to cum, 0 if there is none.
    stamp: u64,
}

impl AddressCost {
    fn add_cum(&mut self, value: i64, stamp: u64) {
        if self.stamp != stamp {
            (self.stamp, self.cum) = (stamp, self.cum + value);
        }
    }
}

/// An opened binary, with its role in the program: empty for the program itself, the file's name for a library.
struct OpenedBinary<'m> {
    mapped: Mapped,
    code: Code<'m>,
    library: String,
}

/// The code that samples of both sides executed.
struct CodeListing<'m> {
    measure: &'m Measure,
    /// The prefixes to cut off the paths of files.
    trim: &'m [String],
    codes: Vec<OpenedBinary<'m>>,
    /// The addresses with samples, as (code, address).
    addresses: Interner<(u32, u64), RandomState>,
    /// The cost of each address in the base and on the new side.
    costs: [Vec<AddressCost>; 2],
    /// The numbers of the addresses, sorted by address.
    order: Vec<u32>,
    /// The functions with samples.
    functions: Interner<CodeFunction, RandomState>,
    sums: [Vec<AddressCost>; 2],
    /// The sums of each function.
    sums_of: HashMap<CodeFunction, [AddressCost; 2]>,
    /// The codes that samples of each side executed.
    ran: [BTreeSet<u32>; 2],
    /// For each side, the binaries that were not found, although they contain a matching function.
    missing: [Vec<String>; 2],
    /// For each side, the binaries that were not found and may contain matching functions, with their role in the
    /// program.
    unknown: [Vec<(String, String)>; 2],
    /// For each side, the profiles and the mappings in them whose binaries were not found, and which contain a matching
    /// function.
    unopened: [Vec<(Arc<Profile>, u32)>; 2],
    /// The names that are the names of whole functions of binaries. Other names are inlined there.
    outermost: HashSet<(String, CodeFunction)>,
    warnings: Vec<String>,
    /// The names and paths, by code, number, and true for a path.
    texts: HashMap<(u32, u32, bool), Arc<str>>,
    pairs_left: u64,
    bytes_left: usize,
}

/// The position of a profile's location in a binary.
#[derive(Clone, Copy)]
struct CodePlace {
    address: u32,
    function: u32,
}

/// The mappings of a profile that may contain requested functions. True if a mapping certainly contains one.
type WantedMappings = BTreeMap<u32, bool>;

/// Returns the mappings with matching functions and the mappings without symbols.
fn wanted_mappings(profile: &Profile, matches: &dyn Fn(&[u8]) -> bool) -> WantedMappings {
    let (locations, functions) = (profile.locations(), profile.functions());
    // Many functions may share a name of a megabyte, so each name is matched once.
    let mut matches_by_name: HashMap<StringId, bool> = HashMap::default();
    let mut matching = |name: StringId| *matches_by_name.entry(name).or_insert_with(|| matches(profile.string(name)));
    let names = functions.name.iter().zip(&functions.system_name);
    let matching: Vec<bool> = names.map(|(&name, &system)| matching(name) || matching(system)).collect();
    let mut all = WantedMappings::new();
    for location in checkpointed(0..locations.len() as u32) {
        let lines = locations.lines(location);
        let is_certain = lines.clone().any(|line| matching[locations.line_function[line as usize] as usize]);
        let mapping = locations.mapping[location as usize];
        let is_somewhere = mapping != NONE || profile.mappings().is_empty();
        if locations.address[location as usize] != 0 && is_somewhere && (is_certain || lines.is_empty()) {
            *all.entry(mapping).or_default() |= is_certain;
        }
    }
    all
}

/// Returns the role of a mapping: empty for the program itself, independent of the file's name, or a library's file
/// name.
fn library(profile: &Profile, mapping: u32) -> String {
    let file = profile.mappings().get(mapping as usize).filter(|_| mapping > 0);
    file.map_or_else(String::new, |m| file_name(&profile.text(m.file)).to_owned())
}

impl<'m> CodeListing<'m> {
    /// Opens the binaries with matching functions, and sums up the costs of their addresses.
    fn new(
        measure: &'m Measure,
        matches: &dyn Fn(&[u8]) -> bool,
        trim: &'m [String],
        memory: &'m Memory,
    ) -> Result<CodeListing<'m>> {
        let mut listing = CodeListing {
            measure,
            trim,
            codes: Vec::new(),
            addresses: Interner::default(),
            costs: Default::default(),
            order: Vec::new(),
            functions: Interner::default(),
            sums: Default::default(),
            sums_of: HashMap::default(),
            ran: Default::default(),
            missing: Default::default(),
            unknown: Default::default(),
            unopened: Default::default(),
            outermost: HashSet::default(),
            warnings: Vec::new(),
            texts: HashMap::default(),
            pairs_left: MAX_PAIRS,
            bytes_left: MAX_CODE_BYTES,
        };
        let mut all: Vec<WantedMappings> =
            measure.walks().map(|walk| wanted_mappings(&walk.input.profile, matches)).collect();
        // The opposite side may contain the function as well, even if no sample executed it there.
        let mut libraries: HashSet<String> = HashSet::default();
        for (walk, requested) in measure.walks().zip(&all) {
            let certain = requested.iter().filter(|(_, certain)| **certain);
            libraries.extend(certain.map(|(&mapping, _)| library(&walk.input.profile, mapping)));
        }
        for (walk, requested) in measure.walks().zip(&mut all) {
            let profile = &walk.input.profile;
            let same_library =
                (0..profile.mappings().len() as u32).filter(|&m| libraries.contains(&library(profile, m)));
            same_library.for_each(|mapping| {
                requested.entry(mapping).or_default();
            });
        }
        let mut stamp = 0;
        for (walk, requested) in measure.walks().zip(&all) {
            let places = listing.places(&walk, requested, memory)?;
            listing.add(&walk, &places, &mut stamp);
        }
        listing.order = (0..listing.addresses.values.len() as u32).collect();
        listing.order.sort_unstable_by_key(|&n| listing.addresses.values[n as usize]);
        for (n, &function) in listing.functions.values.iter().enumerate() {
            let sums = [listing.sums[0][n], listing.sums[1][n]];
            for side in (0..2).filter(|&side| sums[side].stamp != 0) {
                listing.ran[side].insert(function.0);
            }
            listing.sums_of.insert(function, sums);
        }
        Ok(listing)
    }

    /// Returns the warnings without duplicates.
    fn warnings(mut self) -> Vec<String> {
        self.warnings.sort();
        self.warnings.dedup();
        self.warnings
    }

    /// Finds the position of each location of a profile, in the wanted mappings.
    fn places(
        &mut self,
        walk: &Walk<'_>,
        requested: &WantedMappings,
        memory: &'m Memory,
    ) -> Result<Vec<Option<CodePlace>>> {
        let (profile, side) = (&*walk.input.profile, usize::from(!walk.input.base));
        let locations = profile.locations();
        let mut places = vec![None; locations.len()];
        let mappings: Vec<u32> = requested.keys().copied().collect();
        let binaries = match Binaries::of(profile) {
            Some(binaries) => binaries.find(profile, &mappings)?,
            None => mappings.iter().map(|&mapping| Err(describe_mapping(profile, mapping))).collect(),
        };
        let mut code_of: HashMap<u32, usize> = HashMap::default();
        for ((&mapping, &is_certain), binary) in requested.iter().zip(binaries) {
            let library = library(profile, mapping);
            let opened = match binary {
                Ok(None) => continue,
                Ok(Some(mapped)) => self.open(mapped, library.clone(), memory).map_err(|e| e.to_string()),
                Err(words) => Err(words),
            };
            match opened {
                Ok(code) => {
                    code_of.insert(mapping, code);
                }
                Err(words) if is_certain => {
                    self.missing[side].push(words);
                    self.unopened[side].push((walk.input.profile.clone(), mapping));
                }
                Err(words) => self.unknown[side].push((library, words)),
            }
        }
        for (location, place) in places.iter_mut().enumerate() {
            let Some(&code) = code_of.get(&locations.mapping[location]) else { continue };
            // Several profiles may have mapped a binary at different addresses, so this uses the profile's own mapping.
            let mapping = profile.mappings().get(locations.mapping[location] as usize);
            let OpenedBinary { mapped, code: functions, .. } = &self.codes[code];
            let Some(own_address) = mapped.binary.own_address(mapping, locations.address[location]) else { continue };
            let Some(function) = functions.function_at(own_address) else { continue };
            *place = Some(CodePlace {
                address: self.addresses.number((code as u32, own_address)),
                function: self.functions.number((code as u32, function)),
            });
        }
        for side in 0..2 {
            self.costs[side].resize(self.addresses.values.len(), AddressCost::default());
            self.sums[side].resize(self.functions.values.len(), AddressCost::default());
        }
        Ok(places)
    }

    fn open(&mut self, mapped: Mapped, library: String, memory: &'m Memory) -> Result<usize> {
        let is_same = |opened: &OpenedBinary<'_>| {
            Arc::ptr_eq(&opened.mapped.binary, &mapped.binary) || opened.mapped.binary.path() == mapped.binary.path()
        };
        if let Some(index) = self.codes.iter().position(is_same) {
            return Ok(index);
        }
        let code = mapped.code(memory)?;
        self.codes.push(OpenedBinary { mapped, code, library });
        Ok(self.codes.len() - 1)
    }

    fn add(&mut self, walk: &Walk<'_>, places: &[Option<CodePlace>], stamp: &mut u64) {
        let side = usize::from(!walk.input.base);
        let (costs, sums) = (&mut self.costs[side], &mut self.sums[side]);
        walk.for_each(|value, locations, _| {
            *stamp += 1;
            // Pseudo-frames from filters have numbers after the locations, so they have no place.
            let place = |location: &u32| places.get(*location as usize).copied().flatten();
            if let Some(place) = locations.first().and_then(place) {
                costs[place.address as usize].flat += value;
                sums[place.function as usize].flat += value;
            }
            for place in locations.iter().filter_map(place) {
                costs[place.address as usize].add_cum(value, *stamp);
                sums[place.function as usize].add_cum(value, *stamp);
            }
        });
    }

    fn is_two_sided(&self) -> bool {
        self.measure.selection().diff().is_two_sided()
    }

    /// Returns the costs of both sides, scaled.
    fn pair(&self, base: i64, new: i64) -> Pair {
        self.measure.scales.apply(Pair { base, new })
    }

    fn name(&self, (code, function): CodeFunction) -> String {
        String::from_utf8_lossy(&self.codes[code as usize].code.name(function)).into_owned()
    }

    /// Returns the identity of a function, independent of the build.
    fn origin(&self, (code, function): CodeFunction) -> (&str, Origin<'m>) {
        let opened = &self.codes[code as usize];
        (&opened.library, opened.code.origin(function))
    }

    /// Returns the functions that samples of a side executed, by binary and address.
    fn ran(&self, side: usize) -> impl Iterator<Item = CodeFunction> + '_ {
        let mut ran: Vec<CodeFunction> =
            self.sums_of.iter().filter(|(_, sums)| sums[side].stamp != 0).map(|(&function, _)| function).collect();
        ran.sort_unstable();
        ran.into_iter()
    }

    /// Returns the counterpart of a function on another side, even if no sample executed it there.
    fn partner(&self, function: CodeFunction, side: usize) -> Option<CodeFunction> {
        let (code, number) = function;
        if self.ran[side].contains(&code) {
            return Some(function);
        }
        let OpenedBinary { code: own_code, library, .. } = &self.codes[code as usize];
        let in_codes = |find: &dyn Fn(&Code<'m>) -> Option<u32>| {
            let codes = self.ran[side].iter().filter(|&&other| self.codes[other as usize].library == *library);
            codes.copied().find_map(|other| Some((other, find(&self.codes[other as usize].code)?)))
        };
        in_codes(&|other| other.find(own_code.origin(number)))
            .or_else(|| in_codes(&|o| o.find_name(&own_code.name(number))))
    }

    /// Pairs the functions of both sides in this order: the same function in the same binary; functions with the same
    /// linker name, file and library; functions with the same name, if one remains on each side; functions that only
    /// one side's samples executed, with the counterpart in the opposite side's code.
    fn pairs(&self, is_wanted: impl Fn(CodeFunction) -> bool) -> Vec<FunctionPair> {
        let mut by_name: BTreeMap<String, [Vec<CodeFunction>; 2]> = BTreeMap::new();
        for side in 0..2 {
            for function in self.ran(side).filter(|function| is_wanted(*function)) {
                by_name.entry(self.name(function)).or_default()[side].push(function);
            }
        }
        let mut pairs: Vec<FunctionPair> = Vec::new();
        let mut alone: Vec<(usize, CodeFunction)> = Vec::new();
        for [base, new] in by_name.into_values() {
            let both: BTreeSet<CodeFunction> = base.iter().filter(|f| new.binary_search(f).is_ok()).copied().collect();
            pairs.extend(both.iter().map(|&f| [Some(f), Some(f)]));
            let mut by_origin: BTreeMap<_, VecDeque<CodeFunction>> = BTreeMap::new();
            for f in base.into_iter().filter(|f| !both.contains(f)) {
                by_origin.entry(self.origin(f)).or_default().push_back(f);
            }
            let mut others = Vec::new();
            for f in new.into_iter().filter(|f| !both.contains(f)) {
                match by_origin.get_mut(&self.origin(f)).and_then(VecDeque::pop_front) {
                    Some(old) => pairs.push([Some(old), Some(f)]),
                    None => others.push(f),
                }
            }
            let old: Vec<CodeFunction> = by_origin.into_values().flatten().collect();
            match (&old[..], &others[..]) {
                (&[old], &[new]) => pairs.push([Some(old), Some(new)]),
                _ => alone.extend(old.into_iter().map(|f| (0, f)).chain(others.into_iter().map(|f| (1, f)))),
            }
        }
        let mut taken: [HashSet<CodeFunction>; 2] = Default::default();
        for pair in &pairs {
            (0..2).for_each(|side| taken[side].extend(pair[side]));
        }
        for (side, function) in alone {
            let partner = if self.is_two_sided() { self.partner(function, 1 - side) } else { None };
            let mut pair = [None; 2];
            pair[side] = Some(function);
            pair[1 - side] = partner.filter(|&partner| taken[1 - side].insert(partner));
            pairs.push(pair);
        }
        pairs
    }

    /// Returns the flat and the cum of a pair of functions, and the sides with samples in it.
    fn sums(&self, pair: FunctionPair) -> (Pair, Pair, [bool; 2]) {
        let sums_of_side =
            |side: usize| pair[side].and_then(|f| self.sums_of.get(&f)).map(|sums| sums[side]).unwrap_or_default();
        let [base, new] = [sums_of_side(0), sums_of_side(1)];
        let ran = [base, new].map(|sum| sum.stamp != 0);
        (self.pair(base.flat, new.flat), self.pair(base.cum, new.cum), ran)
    }

    /// Subtracts the size of functions from the limit of the listing. Returns false if they do not fit.
    fn takes(&mut self, functions: impl Iterator<Item = CodeFunction>) -> bool {
        let size = functions.map(|(code, f)| self.codes[code as usize].code.bytes(f).1.len()).sum();
        self.bytes_left.checked_sub(size).map(|left| self.bytes_left = left).is_some()
    }
}

fn describe_mapping(profile: &Profile, mapping: u32) -> String {
    match profile.mappings().get(mapping as usize) {
        Some(mapping) => profile.mapping_words(mapping),
        None => "a binary that the profile does not name".to_owned(),
    }
}

/// Returns the start of a text.
fn short(text: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &text[..text.len().min(4 * MAX_NAME)];
    String::from_utf8_lossy(start).chars().take(MAX_NAME).collect()
}

/// Returns the name that all instances of a generic function share. Go's profiles contain `[...]`, its binaries the
/// types.
fn plain(name: &str) -> String {
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) if open < close => format!("{}[...]{}", &name[..open], &name[close + 1..]),
        _ => name.to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The start of the error about missing binaries.
const MISSING_INSTRUCTIONS: &str = "the instructions are";

/// Returns a message about missing or unreadable binaries of each side, or `None` if all are present.
fn describe_missing(subject: &str, missing: [Vec<String>; 2], measure: &Measure) -> Option<String> {
    let diff = measure.selection().diff();
    // A written diff is a single file, so only one option applies.
    let has_sides = diff.is_two_sided() && measure.walks().all(|walk| walk.input.part.is_none());
    let mut messages = Vec::new();
    for (mut words, side) in missing.into_iter().zip(["of the base ", "of the new side "]) {
        words.sort();
        words.dedup();
        if !words.is_empty() {
            messages.push(format!("{}{}", if has_sides { side } else { "" }, some_of(words)));
        }
    }
    let options = if has_sides { "--base-binary and --new-binary, or --binary for both" } else { "--binary" };
    (!messages.is_empty())
        .then(|| format!("{subject} in binaries that are missing: {}; name them with {options}", messages.join(", ")))
}

/// Adds the instructions of both sides to the source lines, if binaries are given. Includes the instructions of all
/// functions in which samples executed a routine, inlined or not. Adds warnings to the summary.
pub(super) fn opened(
    measure: &Measure,
    mut routines: Vec<Routine>,
    mut summary: Summary,
    trim: &[String],
) -> Result<(Vec<Routine>, Summary)> {
    if measure.walks().all(|walk| Binaries::of(&walk.input.profile).is_none()) {
        return Ok((routines, summary));
    }
    let memory = Memory::default();
    let names: HashSet<String> = routines.iter().map(|r| r.name.clone()).collect();
    let matches = |name: &[u8]| names.contains(&*String::from_utf8_lossy(name));
    let mut listing = CodeListing::new(measure, &matches, trim, &memory)?;
    if let Some(message) = describe_missing(MISSING_INSTRUCTIONS, std::mem::take(&mut listing.missing), measure) {
        // Folders that are always searched do not count as a request for instructions, so missing binaries are no
        // warning then.
        let is_named = |walk: &Walk<'_>| has_named_binaries(&walk.input.profile);
        summary.warnings.extend(measure.walks().any(|walk| is_named(&walk)).then_some(message));
        return Ok((routines, summary));
    }
    let functions = listing.functions_of(&names.iter().map(|name| plain(name)).collect())?;
    let no_functions = Default::default();
    let functions_of = |r: &Routine| functions.get(&plain(&r.name)).unwrap_or(&no_functions);
    let decoded: Vec<_> = routines.iter().map(|r| listing.decode_all(functions_of(r))).collect();
    listing.look_up(decoded.iter().flatten().flatten().flatten())?;
    for (r, decoded) in routines.iter_mut().zip(&decoded) {
        match decoded {
            Some(decoded) => listing.open_lines(r, decoded),
            None => r.notes.push(TOO_LONG.to_owned()),
        }
    }
    summary.warnings.extend(listing.warnings());
    Ok((routines, summary))
}

/// Returns true if the user named binaries or folders of binaries for a profile.
pub(super) fn has_named_binaries(profile: &Profile) -> bool {
    Binaries::of(profile).is_some_and(Binaries::is_named)
}

impl Diff {
    /// Implements [`Diff::code_changes`].
    pub(super) fn compared(&self, query: &Query, names: &[String]) -> Result<HashMap<String, CodeChange>> {
        let names: HashSet<String> = names.iter().cloned().collect();
        let has_binaries = |profile: &Profile| Binaries::of(profile).is_some();
        if names.is_empty() || !self.is_two_sided() || !self.profiles().any(|(_, profile)| has_binaries(profile)) {
            return Ok(HashMap::default());
        }
        let (granularity, matching) = (Granularity::Addresses, Matching::default());
        let by_address = Query { granularity, matching, no_inlines: true, ..query.clone() };
        let measure = self.select_with(&by_address, &Default::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), Normalize::None)?;
        let memory = Memory::default();
        let matches = |name: &[u8]| names.contains(&*String::from_utf8_lossy(name));
        let mut listing = CodeListing::new(&measure, &matches, &[], &memory)?;
        listing.code_changes(&names)
    }

    /// Implements [`Diff::disasm`].
    pub(super) fn disassembled(&self, query: &Query, pattern: &str, n: usize) -> Result<Listing> {
        if !query.matching.is_exact() {
            return Err(Error::query("disasm pairs functions by their original names and does not support match"));
        }
        let regex = crate::diff::compile("disasm", pattern)?;
        self.find_sample_type(query.sample_type.as_deref())?;
        // An address is one instruction, so functions that are inlined at it do not matter.
        let by_address = Query { granularity: Granularity::Addresses, no_inlines: true, ..query.clone() };
        let measure = self.select_with(&by_address, &Default::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), query.normalize)?;
        let memory = Memory::default();
        let matches = |name: &[u8]| regex.is_match(name);
        let mut listing = CodeListing::new(&measure, &matches, &query.trim_path, &memory)?;
        let refuse = |missing| {
            describe_missing(MISSING_INSTRUCTIONS, missing, &measure)
                .map_or(Ok(()), |message| Err(Error::query(message)))
        };
        refuse(std::mem::take(&mut listing.missing))?;
        let is_wanted = |f: CodeFunction| matches(listing.origin(f).1.0) || matches(listing.name(f).as_bytes());
        let pairs = listing.pairs(is_wanted);
        // If a binary without symbols is missing, the cost of the functions in it is unknown.
        let libraries: BTreeSet<&str> = pairs.iter().flatten().flatten().map(|&f| listing.origin(f).0).collect();
        let is_required = |library: &str| pairs.is_empty() || libraries.contains(library);
        let (required, optional): (Vec<_>, Vec<_>) = (0..2)
            .flat_map(|side| listing.unknown[side].iter().map(move |unknown| (side, unknown)))
            .partition(|(_, (library, _))| is_required(library));
        let by_side = |all: Vec<(usize, &(String, String))>| {
            let mut sides: [Vec<String>; 2] = Default::default();
            all.into_iter().for_each(|(side, (_, words))| sides[side].push(words.clone()));
            sides
        };
        let optional = describe_missing("functions without names are", by_side(optional), &measure);
        refuse(by_side(required))?;
        let sized = |pair: FunctionPair| {
            let (flat, cum, _) = listing.sums(pair);
            (Reverse(Sort::Cum.size(flat, cum)), pair[1].or(pair[0]).map(|f| listing.name(f)), pair)
        };
        let mut sized: Vec<_> = pairs.into_iter().map(sized).collect();
        sized.sort();
        let pairs: Vec<FunctionPair> = sized.into_iter().take(n).map(|(_, _, pair)| pair).collect();
        let routines = listing.routines(&pairs)?;
        let mut summary = measure.summary().clone();
        let warnings = &mut Arc::make_mut(&mut summary).warnings;
        warnings.extend(listing.warnings());
        warnings.extend(optional);
        Ok(Listing { of: Listed::Instructions, summary, routines })
    }
}
