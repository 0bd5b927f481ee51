//! Instructions with what they cost: the functions of both sides' binaries, decoded, aligned, and the samples of their
//! addresses summed.
//!
//! A sample's addresses are the process's; each mapping leads to a binary and to an address of its own there, by which
//! all profiles of a side are summed, wherever they were loaded. What a sample has twice counts once.
//!
//! Both sides' binaries must be there: a side whose code is missing would look as if it cost nothing.

mod routines;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Listed, Listing, MAX_NAME, Routine};
use crate::diff::alignment::MAX_PAIRS;
use crate::diff::top::Sort;
use crate::diff::{Diff, Granularity, Measure, Pair, Query, Summary, Walk};
use crate::{Error, Result};
use pprofdiff_profile::Profile;
use pprofdiff_profile::binary::{Code, Mapped, Memory, Origin, some_of};
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, HashSet, RandomState};
use pprofdiff_profile::work::paced;
use routines::TOO_LONG;

/// The machine code that a listing shows at most, in bytes of both sides: about 300,000 instructions.
const MAX_CODE_BYTES: usize = 1 << 20;

/// A function of a binary: the number of the code, and that of the function in it.
type Function = (u32, u32);

/// A function on both sides.
type Both = [Option<Function>; 2];

/// What an address or a function cost one side.
#[derive(Clone, Copy, Default)]
struct Cost {
    flat: i64,
    cum: i64,
    /// The last sample that was added to cum; 0 if none was.
    stamp: u64,
}

impl Cost {
    fn add_cum(&mut self, value: i64, stamp: u64) {
        if self.stamp != stamp {
            (self.stamp, self.cum) = (stamp, self.cum + value);
        }
    }
}

/// What is in a binary, and what the binary is to a program: itself, or a library by its file's name.
struct Opened<'m> {
    mapped: Mapped,
    code: Code<'m>,
    library: String,
}

/// The code that the samples of both sides ran.
struct CodeListing<'m> {
    measure: &'m Measure,
    /// Prefixes to cut off the paths of files.
    trim: &'m [String],
    codes: Vec<Opened<'m>>,
    /// Addresses with samples, by code.
    addresses: Interner<(u32, u64), RandomState>,
    /// Of each address: of the base and of the new side.
    costs: [Vec<Cost>; 2],
    /// Numbers of addresses, ordered.
    order: Vec<u32>,
    /// Functions with samples.
    functions: Interner<Function, RandomState>,
    sums: [Vec<Cost>; 2],
    /// The sums of a function.
    sums_of: HashMap<Function, [Cost; 2]>,
    /// The codes that the samples of each side ran.
    ran: [BTreeSet<u32>; 2],
    /// What was not found though a function that matches lies there, on each side.
    missing: [Vec<String>; 2],
    /// What was not found, and may have functions that match, with what it is to the program.
    unknown: [Vec<(String, String)>; 2],
    warnings: Vec<String>,
    /// Names by code and number, and paths.
    texts: HashMap<(u32, u32, bool), Arc<str>>,
    pairs_left: u64,
    bytes_left: usize,
}

/// How a profile's location lies in a binary.
#[derive(Clone, Copy)]
struct At {
    address: u32,
    function: u32,
}

/// The mappings of a profile in which functions that are asked for may lie; true if one does for certain.
type Wanted = BTreeMap<u32, bool>;

/// The mappings with functions that match, and those without names.
fn wanted(profile: &Profile, matches: &dyn Fn(&[u8]) -> bool) -> Wanted {
    let (locations, functions) = (profile.locations(), profile.functions());
    // Many functions may share a name of a megabyte.
    let mut known: HashMap<StringId, bool> = HashMap::default();
    let mut matching = |name: StringId| *known.entry(name).or_insert_with(|| matches(profile.string(name)));
    let names = functions.name.iter().zip(&functions.system_name);
    let matching: Vec<bool> = names.map(|(&name, &system)| matching(name) || matching(system)).collect();
    let mut all = Wanted::new();
    for location in paced(0..locations.len() as u32) {
        let lines = locations.lines(location);
        let surely = lines.clone().any(|line| matching[locations.line_function[line as usize] as usize]);
        let mapping = locations.mapping[location as usize];
        let is_somewhere = mapping != NONE || profile.mappings().is_empty();
        if locations.address[location as usize] != 0 && is_somewhere && (surely || lines.is_empty()) {
            *all.entry(mapping).or_default() |= surely;
        }
    }
    all
}

/// What a mapping is to the program: itself, whatever the build is called, or the library of a name.
fn library(profile: &Profile, mapping: u32) -> String {
    let file = profile.mappings().get(mapping as usize).filter(|_| mapping > 0);
    file.map_or_else(String::new, |m| file_name(&profile.text(m.file)).to_owned())
}

impl<'m> CodeListing<'m> {
    /// Opens the binaries of what matches, and sums what their addresses cost.
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
            warnings: Vec::new(),
            texts: HashMap::default(),
            pairs_left: MAX_PAIRS,
            bytes_left: MAX_CODE_BYTES,
        };
        let mut all: Vec<Wanted> = measure.walks().map(|walk| wanted(&walk.input.profile, matches)).collect();
        // The other side has the function, too, though no sample ran it there.
        let mut libraries: HashSet<String> = HashSet::default();
        for (walk, wanted) in measure.walks().zip(&all) {
            let surely = wanted.iter().filter(|(_, surely)| **surely);
            libraries.extend(surely.map(|(&mapping, _)| library(&walk.input.profile, mapping)));
        }
        for (walk, wanted) in measure.walks().zip(&mut all) {
            let profile = &walk.input.profile;
            let there = (0..profile.mappings().len() as u32).filter(|&m| libraries.contains(&library(profile, m)));
            there.for_each(|mapping| {
                wanted.entry(mapping).or_default();
            });
        }
        let mut stamp = 0;
        for (walk, wanted) in measure.walks().zip(&all) {
            let at = listing.places(&walk, wanted, memory)?;
            listing.add(&walk, &at, &mut stamp);
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

    /// What a user should know, once.
    fn warnings(mut self) -> Vec<String> {
        self.warnings.sort();
        self.warnings.dedup();
        self.warnings
    }

    /// Where each location of a profile lies, as far as it is wanted.
    fn places(&mut self, walk: &Walk<'_>, wanted: &Wanted, memory: &'m Memory) -> Result<Vec<Option<At>>> {
        let (profile, side) = (&*walk.input.profile, usize::from(!walk.input.base));
        let locations = profile.locations();
        let mut places = vec![None; locations.len()];
        let mappings: Vec<u32> = wanted.keys().copied().collect();
        let found = match profile.binaries().is_empty() {
            false => profile.binaries().find(profile, &mappings)?,
            true => mappings.iter().map(|&mapping| Err(words(profile, mapping))).collect(),
        };
        let mut code_of: HashMap<u32, usize> = HashMap::default();
        for ((&mapping, &surely), found) in wanted.iter().zip(found) {
            let library = library(profile, mapping);
            let opened = match found {
                Ok(None) => continue,
                Ok(Some(mapped)) => self.open(mapped, library.clone(), memory).map_err(|e| e.to_string()),
                Err(words) => Err(words),
            };
            match opened {
                Ok(code) => {
                    code_of.insert(mapping, code);
                }
                Err(words) if surely => self.missing[side].push(words),
                Err(words) => self.unknown[side].push((library, words)),
            }
        }
        for (location, place) in places.iter_mut().enumerate() {
            let Some(&code) = code_of.get(&locations.mapping[location]) else { continue };
            // Several profiles may have mapped one binary in several places, so its mapping is this profile's own.
            let mapping = profile.mappings().get(locations.mapping[location] as usize);
            let Opened { mapped, code: functions, .. } = &self.codes[code];
            let Some(own) = mapped.binary.own_address(mapping, locations.address[location]) else { continue };
            let Some(function) = functions.function_at(own) else { continue };
            *place = Some(At {
                address: self.addresses.number((code as u32, own)),
                function: self.functions.number((code as u32, function)),
            });
        }
        for side in 0..2 {
            self.costs[side].resize(self.addresses.values.len(), Cost::default());
            self.sums[side].resize(self.functions.values.len(), Cost::default());
        }
        Ok(places)
    }

    fn open(&mut self, mapped: Mapped, library: String, memory: &'m Memory) -> Result<usize> {
        let is_same = |opened: &Opened<'_>| {
            Arc::ptr_eq(&opened.mapped.binary, &mapped.binary) || opened.mapped.binary.path() == mapped.binary.path()
        };
        if let Some(known) = self.codes.iter().position(is_same) {
            return Ok(known);
        }
        let code = mapped.code(memory)?;
        self.codes.push(Opened { mapped, code, library });
        Ok(self.codes.len() - 1)
    }

    fn add(&mut self, walk: &Walk<'_>, places: &[Option<At>], stamp: &mut u64) {
        let side = usize::from(!walk.input.base);
        let (costs, sums) = (&mut self.costs[side], &mut self.sums[side]);
        walk.for_each(|value, locations, _| {
            *stamp += 1;
            // What filters put into stacks has numbers behind those of the locations.
            let place = |location: &u32| places.get(*location as usize).copied().flatten();
            if let Some(at) = locations.first().and_then(place) {
                costs[at.address as usize].flat += value;
                sums[at.function as usize].flat += value;
            }
            for at in locations.iter().filter_map(place) {
                costs[at.address as usize].add_cum(value, *stamp);
                sums[at.function as usize].add_cum(value, *stamp);
            }
        });
    }

    fn is_two_sided(&self) -> bool {
        self.measure.selection().diff().is_two_sided()
    }

    /// What both sides cost, scaled.
    fn pair(&self, base: i64, new: i64) -> Pair {
        self.measure.scales.apply(Pair { base, new })
    }

    fn name(&self, (code, function): Function) -> String {
        String::from_utf8_lossy(&self.codes[code as usize].code.name(function)).into_owned()
    }

    /// Which function it is, in whatever build.
    fn origin(&self, (code, function): Function) -> (&str, Origin<'m>) {
        let opened = &self.codes[code as usize];
        (&opened.library, opened.code.origin(function))
    }

    /// The functions that samples of a side ran, by binary and address.
    fn ran(&self, side: usize) -> impl Iterator<Item = Function> + '_ {
        let mut ran: Vec<Function> =
            self.sums_of.iter().filter(|(_, sums)| sums[side].stamp != 0).map(|(&function, _)| function).collect();
        ran.sort_unstable();
        ran.into_iter()
    }

    /// What another side has in the place of a function, though no sample ran it.
    fn partner(&self, function: Function, side: usize) -> Option<Function> {
        let (code, number) = function;
        if self.ran[side].contains(&code) {
            return Some(function);
        }
        let Opened { code: own, library, .. } = &self.codes[code as usize];
        let in_codes = |find: &dyn Fn(&Code<'m>) -> Option<u32>| {
            let codes = self.ran[side].iter().filter(|&&other| self.codes[other as usize].library == *library);
            codes.copied().find_map(|other| Some((other, find(&self.codes[other as usize].code)?)))
        };
        in_codes(&|other| other.find(own.origin(number))).or_else(|| in_codes(&|o| o.find_name(&own.name(number))))
    }

    /// Brings the functions of both sides together: what is the same one in the same binary; then what has the same
    /// linker's name, file and library; of the others with one name, if there is one on each side, these; then those
    /// that only one side's samples ran with what the other has there.
    fn pairs(&self, wanted: impl Fn(Function) -> bool) -> Vec<Both> {
        let mut by_name: BTreeMap<String, [Vec<Function>; 2]> = BTreeMap::new();
        for side in 0..2 {
            for function in self.ran(side).filter(|function| wanted(*function)) {
                by_name.entry(self.name(function)).or_default()[side].push(function);
            }
        }
        let mut pairs: Vec<Both> = Vec::new();
        let mut alone: Vec<(usize, Function)> = Vec::new();
        for [base, new] in by_name.into_values() {
            let both: BTreeSet<Function> = base.iter().filter(|f| new.binary_search(f).is_ok()).copied().collect();
            pairs.extend(both.iter().map(|&f| [Some(f), Some(f)]));
            let mut by_origin: BTreeMap<_, VecDeque<Function>> = BTreeMap::new();
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
            let old: Vec<Function> = by_origin.into_values().flatten().collect();
            match (&old[..], &others[..]) {
                (&[old], &[new]) => pairs.push([Some(old), Some(new)]),
                _ => alone.extend(old.into_iter().map(|f| (0, f)).chain(others.into_iter().map(|f| (1, f)))),
            }
        }
        let mut taken: [HashSet<Function>; 2] = Default::default();
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

    /// The sums of a pair of functions: flat, cum, and on which sides samples ran it.
    fn sums(&self, pair: Both) -> (Pair, Pair, [bool; 2]) {
        let of = |side: usize| pair[side].and_then(|f| self.sums_of.get(&f)).map(|sums| sums[side]).unwrap_or_default();
        let [base, new] = [of(0), of(1)];
        let ran = [base, new].map(|sum| sum.stamp != 0);
        (self.pair(base.flat, new.flat), self.pair(base.cum, new.cum), ran)
    }

    /// The bytes of functions are taken from what a listing may show; false if they are too many.
    fn takes(&mut self, functions: impl Iterator<Item = Function>) -> bool {
        let size = functions.map(|(code, f)| self.codes[code as usize].code.bytes(f).1.len()).sum();
        self.bytes_left.checked_sub(size).map(|left| self.bytes_left = left).is_some()
    }
}

fn words(profile: &Profile, mapping: u32) -> String {
    match profile.mappings().get(mapping as usize) {
        Some(mapping) => profile.mapping_words(mapping),
        None => "a binary that the profile does not name".to_owned(),
    }
}

/// The beginning of a text.
fn short(text: &[u8]) -> String {
    // A character has four bytes at most.
    let start = &text[..text.len().min(4 * MAX_NAME)];
    String::from_utf8_lossy(start).chars().take(MAX_NAME).collect()
}

/// A function's name as all instances of a generic one have it: Go's profiles write `[...]`, its binaries the types.
fn plain(name: &str) -> String {
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) if open < close => format!("{}[...]{}", &name[..open], &name[close + 1..]),
        _ => name.to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// What is said of binaries without which a question has no answer.
const ASKED: &str = "the instructions are";

/// Which binaries are missing, or are none that can be read, and of which side; nothing if none is.
fn describe_missing(what: &str, missing: [Vec<String>; 2], measure: &Measure) -> Option<String> {
    let diff = measure.selection().diff();
    // A written diff is one file, which has one option.
    let has_sides = diff.is_two_sided() && measure.walks().all(|walk| walk.input.part.is_none());
    let mut told = Vec::new();
    for (mut words, side) in missing.into_iter().zip(["of the base ", "of the new side "]) {
        words.sort();
        words.dedup();
        if !words.is_empty() {
            told.push(format!("{}{}", if has_sides { side } else { "" }, some_of(words)));
        }
    }
    let options = if has_sides { "--base-binary and --new-binary, or --binary for both" } else { "--binary" };
    (!told.is_empty())
        .then(|| format!("{what} in binaries that are missing: {}; name them with {options}", told.join(", ")))
}

/// Puts the instructions of both sides under the lines that they were made of, where binaries are named: those of all
/// functions in which samples ran a routine, inlined or not. What a user should know is added to the warnings.
pub(super) fn opened(
    measure: &Measure,
    mut routines: Vec<Routine>,
    mut summary: Summary,
    trim: &[String],
) -> Result<(Vec<Routine>, Summary)> {
    if measure.walks().all(|walk| walk.input.profile.binaries().is_empty()) {
        return Ok((routines, summary));
    }
    let memory = Memory::default();
    let names: HashSet<String> = routines.iter().map(|r| r.name.clone()).collect();
    let matches = |name: &[u8]| names.contains(&*String::from_utf8_lossy(name));
    let mut listing = CodeListing::new(measure, &matches, trim, &memory)?;
    if let Some(told) = describe_missing(ASKED, std::mem::take(&mut listing.missing), measure) {
        // Who only has folders that are searched anyway did not ask for instructions.
        summary.warnings.extend(measure.walks().any(|w| w.input.profile.binaries().is_named()).then_some(told));
        return Ok((routines, summary));
    }
    let functions = listing.functions_of(&names.iter().map(|name| plain(name)).collect())?;
    let none = Default::default();
    let of = |r: &Routine| functions.get(&plain(&r.name)).unwrap_or(&none);
    let decoded: Vec<_> = routines.iter().map(|r| listing.decode_all(of(r))).collect();
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

impl Diff {
    /// As [`Diff::disasm`] says it.
    pub(super) fn disassembled(&self, query: &Query, pattern: &str, n: usize) -> Result<Listing> {
        if !query.matching.is_exact() {
            return Err(Error::query("disasm pairs functions by their names as they are; matching is for other views"));
        }
        let regex = crate::diff::compile("disasm", pattern)?;
        self.find_sample_type(query.sample_type.as_deref())?;
        // An address stands for what was inlined there, too: it is one instruction.
        let own = Query { granularity: Granularity::Addresses, no_inlines: true, ..query.clone() };
        let measure = self.select_with(&own, &Default::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), query.normalize)?;
        let memory = Memory::default();
        let matches = |name: &[u8]| regex.is_match(name);
        let mut listing = CodeListing::new(&measure, &matches, &query.trim_path, &memory)?;
        let refuse =
            |missing| describe_missing(ASKED, missing, &measure).map_or(Ok(()), |told| Err(Error::query(told)));
        refuse(std::mem::take(&mut listing.missing))?;
        let is_asked = |f: Function| matches(listing.origin(f).1.0) || matches(listing.name(f).as_bytes());
        let pairs = listing.pairs(is_asked);
        // What a side without names costs there is not known as long as the binary is not.
        let libraries: BTreeSet<&str> = pairs.iter().flatten().flatten().map(|&f| listing.origin(f).0).collect();
        let is_there = |library: &str| pairs.is_empty() || libraries.contains(library);
        let (there, elsewhere): (Vec<_>, Vec<_>) = (0..2)
            .flat_map(|side| listing.unknown[side].iter().map(move |unknown| (side, unknown)))
            .partition(|(_, (library, _))| is_there(library));
        let by_side = |all: Vec<(usize, &(String, String))>| {
            let mut sides: [Vec<String>; 2] = Default::default();
            all.into_iter().for_each(|(side, (_, words))| sides[side].push(words.clone()));
            sides
        };
        let elsewhere = describe_missing("functions without names are", by_side(elsewhere), &measure);
        refuse(by_side(there))?;
        let sized = |pair: Both| {
            let (flat, cum, _) = listing.sums(pair);
            (Reverse(Sort::Cum.size(flat, cum)), pair[1].or(pair[0]).map(|f| listing.name(f)), pair)
        };
        let mut sized: Vec<_> = pairs.into_iter().map(sized).collect();
        sized.sort();
        let pairs: Vec<Both> = sized.into_iter().take(n).map(|(_, _, pair)| pair).collect();
        let routines = listing.routines(&pairs)?;
        let mut summary = measure.summary().clone();
        let warnings = &mut Arc::make_mut(&mut summary).warnings;
        warnings.extend(listing.warnings());
        warnings.extend(elsewhere);
        Ok(Listing { of: Listed::Instructions, summary, routines })
    }
}
