//! Instructions with what they cost: the functions of both sides' binaries, decoded, aligned, and the samples of their
//! addresses summed.
//!
//! A sample's addresses are the process's; each mapping leads to a binary and to an address of its own there, by which
//! all profiles of a side are summed, wherever they were loaded. What a sample has twice counts once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Instruction, LineChange, Listed, Listing, Place, Routine};
use crate::diff::alignment::{MOST_PAIRS, align};
use crate::diff::top::Sort;
use crate::diff::{Diff, Granularity, Measure, Pair, Query, Status, Summary, Walk, identity};
use crate::{Error, Result};
use pprofdiff_profile::Profile;
use pprofdiff_profile::binary::{Code, FoundLine, Mapped, Memory, Text, instructions, some_of};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, HashSet, RandomState};

/// The machine code that a listing shows at most, in bytes of both sides: about 300,000 instructions.
const MOST_CODE: usize = 1 << 20;

/// The characters of a function's name in an instruction.
const MOST_OF_NAME: usize = 200;

/// A function of a binary: the number of the code, and that of the function in it.
type Function = (u32, u32);

/// What an address or a function cost one side.
#[derive(Clone, Copy, Default)]
struct Cost {
    flat: i64,
    cum: i64,
    /// The last sample that was added to cum.
    stamp: u64,
}

impl Cost {
    fn add_cum(&mut self, value: i64, stamp: u64) {
        if self.stamp != stamp {
            (self.stamp, self.cum) = (stamp, self.cum + value);
        }
    }
}

/// The code that the samples of both sides ran.
pub(super) struct Machine<'m> {
    measure: &'m Measure,
    /// Prefixes to cut off the paths of files.
    trim: &'m [String],
    codes: Vec<(Mapped, Code<'m>)>,
    /// Addresses with samples, by code.
    addresses: Interner<(u32, u64), RandomState>,
    /// Of each address: of the base and of the new side.
    costs: [Vec<Cost>; 2],
    /// Numbers of addresses, ordered.
    order: Vec<u32>,
    /// Functions with samples.
    functions: Interner<Function, RandomState>,
    sums: [Vec<Cost>; 2],
    /// What was not found though a function that matches lies there, on each side.
    missing: [Vec<String>; 2],
    /// What was not found, and may have functions that match.
    unknown: [Vec<String>; 2],
    warnings: Vec<String>,
    pairs_left: u64,
    bytes_left: usize,
}

/// How a profile's location lies in a binary.
#[derive(Clone, Copy)]
struct At {
    address: u32,
    function: u32,
}

/// A mapping of a profile in which there may be functions that are asked for.
struct Wanted {
    mapping: u32,
    /// It has such a function for certain.
    surely: bool,
}

/// The mappings with functions that match, and those without names.
fn wanted(profile: &Profile, matches: &dyn Fn(&[u8]) -> bool) -> Vec<Wanted> {
    let (locations, functions) = (profile.locations(), profile.functions());
    let matching: Vec<bool> = (0..functions.name.len())
        .map(|f| [functions.name[f], functions.system_name[f]].iter().any(|&name| matches(profile.string(name))))
        .collect();
    let mut all: BTreeMap<u32, bool> = BTreeMap::new();
    for location in 0..locations.len() as u32 {
        let lines = locations.lines(location);
        let surely = lines.clone().any(|line| matching[locations.line_function[line as usize] as usize]);
        let mapping = locations.mapping[location as usize];
        if locations.address[location as usize] != 0 && (surely || lines.is_empty()) {
            *all.entry(mapping).or_default() |= surely;
        }
    }
    all.into_iter().map(|(mapping, surely)| Wanted { mapping, surely }).collect()
}

impl<'m> Machine<'m> {
    /// Opens the binaries of what matches, and sums what their addresses cost.
    pub(super) fn new(
        measure: &'m Measure,
        matches: &dyn Fn(&[u8]) -> bool,
        trim: &'m [String],
        memory: &'m Memory,
    ) -> Result<Machine<'m>> {
        let mut machine = Machine {
            measure,
            trim,
            codes: Vec::new(),
            addresses: Interner::default(),
            costs: Default::default(),
            order: Vec::new(),
            functions: Interner::default(),
            sums: Default::default(),
            missing: Default::default(),
            unknown: Default::default(),
            warnings: Vec::new(),
            pairs_left: MOST_PAIRS,
            bytes_left: MOST_CODE,
        };
        let mut all: Vec<Vec<Wanted>> = measure.walks().map(|walk| wanted(&walk.input.profile, matches)).collect();
        // The other side has the function, too, though no sample ran it there: in the program itself, which is the first
        // mapping whatever the builds are called, or in a library of the same name.
        let key = |profile: &Profile, mapping: u32| {
            let file = profile.mappings().get(mapping as usize).filter(|_| mapping > 0);
            file.map_or_else(String::new, |m| file_name(&profile.text(m.file)).to_owned())
        };
        let mut keys: HashSet<String> = HashSet::default();
        for (walk, wanted) in measure.walks().zip(&all) {
            keys.extend(wanted.iter().filter(|w| w.surely).map(|w| key(&walk.input.profile, w.mapping)));
        }
        for (walk, wanted) in measure.walks().zip(&mut all) {
            let profile = &walk.input.profile;
            for mapping in 0..profile.mappings().len() as u32 {
                if keys.contains(&key(profile, mapping)) && wanted.iter().all(|w| w.mapping != mapping) {
                    wanted.push(Wanted { mapping, surely: false });
                }
            }
        }
        let mut stamp = 0;
        for (walk, wanted) in measure.walks().zip(&all) {
            let at = machine.places(&walk, wanted, memory)?;
            machine.add(&walk, &at, &mut stamp);
        }
        machine.order = (0..machine.addresses.values.len() as u32).collect();
        machine.order.sort_unstable_by_key(|&n| machine.addresses.values[n as usize]);
        Ok(machine)
    }

    /// What a user should know, once.
    fn warnings(mut self) -> Vec<String> {
        self.warnings.sort();
        self.warnings.dedup();
        self.warnings
    }

    /// Where each location of a profile lies, as far as it is wanted.
    fn places(&mut self, walk: &Walk<'_>, wanted: &[Wanted], memory: &'m Memory) -> Result<Vec<Option<At>>> {
        let (profile, base) = (&*walk.input.profile, usize::from(!walk.input.base));
        let locations = profile.locations();
        let mut places = vec![None; locations.len()];
        let mappings: Vec<u32> = wanted.iter().map(|w| w.mapping).collect();
        let found = match profile.binaries().is_empty() {
            false => profile.binaries().find(profile, &mappings)?,
            true => mappings.iter().map(|&mapping| Err(words(profile, mapping))).collect(),
        };
        let mut code_of: HashMap<u32, usize> = HashMap::default();
        for (wanted, found) in wanted.iter().zip(found) {
            match found {
                Ok(Some(mapped)) => {
                    code_of.insert(wanted.mapping, self.open(mapped, memory)?);
                }
                Ok(None) => {}
                Err(words) if wanted.surely => self.missing[base].push(words),
                Err(words) => self.unknown[base].push(words),
            }
        }
        for (location, place) in places.iter_mut().enumerate() {
            let Some(&code) = code_of.get(&locations.mapping[location]) else { continue };
            // Several profiles may have mapped one binary in several places, so its mapping is this profile's own.
            let mapping = profile.mappings().get(locations.mapping[location] as usize);
            let (mapped, functions) = &self.codes[code];
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

    fn open(&mut self, mapped: Mapped, memory: &'m Memory) -> Result<usize> {
        let known = self.codes.iter().position(|(m, _)| m.binary.path() == mapped.binary.path());
        known.map_or_else(
            || {
                let code = mapped.code(memory)?;
                self.codes.push((mapped, code));
                Ok(self.codes.len() - 1)
            },
            Ok,
        )
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

    /// What of both sides cost, scaled.
    fn pair(&self, base: i64, new: i64) -> Pair {
        self.measure.scales.apply(Pair { base, new })
    }

    fn name(&self, (code, function): Function) -> String {
        String::from_utf8_lossy(&self.codes[code as usize].1.name(function)).into_owned()
    }

    fn linker_name(&self, (code, function): Function) -> &'m [u8] {
        self.codes[code as usize].1.linker_name(function)
    }

    /// The functions that samples of a side ran.
    fn ran(&self, side: usize) -> impl Iterator<Item = (usize, Function)> + '_ {
        let sums = &self.sums[side];
        let functions = self.functions.values.iter().copied().enumerate();
        functions.filter(|(i, _)| sums.get(*i).is_some_and(|sum| sum.stamp != 0 || sum.flat != 0))
    }

    /// The codes of a side: those that its samples ran.
    fn codes_of(&self, side: usize) -> BTreeSet<u32> {
        self.ran(side).map(|(_, (code, _))| code).collect()
    }

    /// The function of another side that is called the same, though no sample ran it.
    fn partner(&self, function: Function, side: usize) -> Option<Function> {
        let in_codes = |find: &dyn Fn(&Code<'m>) -> Option<u32>| {
            self.codes_of(side).into_iter().find_map(|code| Some((code, find(&self.codes[code as usize].1)?)))
        };
        let (code, number) = function;
        in_codes(&|code| code.find_linker_name(self.linker_name(function)))
            .or_else(|| in_codes(&|other| other.find_name(&self.codes[code as usize].1.name(number))))
    }

    /// Brings the functions of both sides together: those with one linker's name; of the others with one name, if there
    /// is one on each side, these; then those that only one side's samples ran with what the other has of that name.
    fn pairs(&self, wanted: impl Fn(Function) -> bool) -> Vec<[Option<Function>; 2]> {
        let mut by_name: BTreeMap<String, [Vec<Function>; 2]> = BTreeMap::new();
        for side in 0..2 {
            for (_, function) in self.ran(side).filter(|(_, function)| wanted(*function)) {
                by_name.entry(self.name(function)).or_default()[side].push(function);
            }
        }
        let mut pairs = Vec::new();
        for [mut base, new] in by_name.into_values() {
            let mut alone = Vec::new();
            for function in new {
                let same = |other: &Function| self.linker_name(*other) == self.linker_name(function);
                match base.iter().position(same) {
                    Some(at) => pairs.push([Some(base.remove(at)), Some(function)]),
                    None => alone.push(function),
                }
            }
            if let ([old], [new]) = (&base[..], &alone[..]) {
                pairs.push([Some(*old), Some(*new)]);
                continue;
            }
            let is_two_sided = self.measure.selection().diff().is_two_sided();
            let partner = |function, side| if is_two_sided { self.partner(function, side) } else { None };
            pairs.extend(base.into_iter().map(|f| [Some(f), partner(f, 1)]));
            pairs.extend(alone.into_iter().map(|f| [partner(f, 0), Some(f)]));
        }
        pairs
    }

    /// The sums of a pair of functions: flat, cum, and on which sides samples ran it.
    fn sums(&self, pair: [Option<Function>; 2]) -> (Pair, Pair, [bool; 2]) {
        let number = |f: Function| self.functions.values.iter().position(|other| *other == f);
        let of = |side: usize| pair[side].and_then(number).map(|n| self.sums[side][n]).unwrap_or_default();
        let [base, new] = [of(0), of(1)];
        let ran = [base, new].map(|sum| sum.stamp != 0);
        (self.pair(base.flat, new.flat), self.pair(base.cum, new.cum), ran)
    }

    /// The bytes of a pair of functions are taken from what a listing may show; false if they are too many.
    fn takes(&mut self, pair: [Option<Function>; 2]) -> bool {
        let size = |f: Function| self.codes[f.0 as usize].1.bytes(f.1).1.len();
        let size = pair.into_iter().flatten().map(size).sum();
        self.bytes_left.checked_sub(size).map(|left| self.bytes_left = left).is_some()
    }

    /// A function's instructions with what they cost one side.
    fn decode(&mut self, (code, function): Function, side: usize) -> Result<Vec<Decoded>> {
        let (mapped, functions) = &self.codes[code as usize];
        let mut decoded: Vec<instructions::Instruction> = Vec::new();
        functions.instructions(function, |instruction| decoded.push(instruction));
        let target = |i: &instructions::Instruction| functions.function_at(i.target?);
        let targets: BTreeSet<u32> = decoded.iter().filter_map(target).collect();
        let short = |name: &[u8]| String::from_utf8_lossy(name).chars().take(MOST_OF_NAME).collect::<String>();
        let names: BTreeMap<u32, String> = targets.into_iter().map(|f| (f, short(&functions.name(f)))).collect();
        let symbol = |address: u64| {
            let target = functions.function_at(address)?;
            Some((&*names[&target], address - functions.bytes(target).0))
        };
        let elsewhere = |address: u64| symbol(address).filter(|_| functions.function_at(address) != Some(function));
        let addresses: Vec<u64> = decoded.iter().map(|i| i.address).collect();
        self.warnings.extend(mapped.look_up(&addresses)?);
        let values = &self.addresses.values;
        let from = self.order.partition_point(|&n| values[n as usize] < (code, functions.bytes(function).0));
        let mut costs =
            self.order[from..].iter().map(|&n| (values[n as usize], self.costs[side][n as usize])).peekable();
        let mut all = Vec::with_capacity(decoded.len());
        for i in decoded {
            let mut cost = Cost::default();
            // Also of an address in the middle: that of a caller is often one before where it goes on.
            while let Some((_, more)) =
                costs.next_if(|&((c, address), _)| c == code && address.wrapping_sub(i.address) < u64::from(i.len))
            {
                (cost.flat, cost.cum) = (cost.flat + more.flat, cost.cum + more.cum);
            }
            let (key, text) = (i.compared(elsewhere), i.named(symbol));
            all.push(Decoded { code, address: i.address, key, text, flat: cost.flat, cum: cost.cum });
        }
        Ok(all)
    }

    /// The instructions of both sides, aligned; with a note if there are too many to compare.
    fn aligned(&mut self, base: &[&Decoded], new: &[&Decoded], notes: &mut Vec<String>) -> Vec<Instruction> {
        let [b, n] = [base, new].map(|side| side.iter().map(|i| &*i.key).collect::<Vec<_>>());
        let rows = align(&b, &n, &mut self.pairs_left).unwrap_or_else(|| {
            notes.push("the sides differ in too many instructions to be compared".to_owned());
            let (b, n) = (0..b.len() as u32, 0..n.len() as u32);
            b.map(|i| (Some(i), None)).chain(n.map(|i| (None, Some(i)))).collect()
        });
        let is_two_sided = self.measure.selection().diff().is_two_sided();
        let row = |(b, n): (Option<u32>, Option<u32>)| {
            let (b, n) = (b.map(|i| base[i as usize]), n.map(|i| new[i as usize]));
            let cost = |of: fn(&Decoded) -> i64| self.pair(b.map_or(0, of), n.map_or(0, of));
            Some(Instruction {
                base: b.map(|i| i.address),
                new: n.map(|i| i.address),
                change: match (b, n) {
                    (None, Some(_)) if is_two_sided => LineChange::Inserted,
                    (Some(_), None) => LineChange::Deleted,
                    _ => LineChange::Same,
                },
                text: n.or(b)?.text.clone(),
                place: self.place(n.or(b)?),
                flat: cost(|i| i.flat),
                cum: cost(|i| i.cum),
            })
        };
        rows.into_iter().filter_map(row).collect()
    }

    /// What the innermost frame of an instruction says.
    fn place(&self, i: &Decoded) -> Option<Place> {
        let mut place = None;
        self.codes[i.code as usize].0.binary.frames(i.address, |lines| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let innermost = lines.next().filter(|line| line.line != 0);
            place = innermost.map(|line| Place {
                function: text(line.name.bytes),
                file: text(&identity::file_path(line.file.bytes, self.trim)),
                line: line.line,
            });
        });
        place
    }

    /// A pair of functions, instruction by instruction.
    fn routine(&mut self, pair: [Option<Function>; 2]) -> Result<Routine> {
        let (flat, cum, ran) = self.sums(pair);
        let mut notes = Vec::new();
        let instructions = if self.takes(pair) {
            let [base, new] = [0, 1].map(|side| pair[side].map_or(Ok(Vec::new()), |f| self.decode(f, side)));
            let (base, new) = (base?, new?);
            self.aligned(&base.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>(), &mut notes)
        } else {
            notes.push(
                "its instructions are left out, since the listing is too long: ask for fewer functions".to_owned(),
            );
            Vec::new()
        };
        let path = |f: Function| self.codes[f.0 as usize].0.binary.path().display().to_string();
        let [base, new] = pair.map(|f| f.map(path));
        let function = pair[1].or(pair[0]);
        Ok(Routine {
            name: function.map(|f| self.name(f)).unwrap_or_default(),
            file: None,
            places: (base, new),
            flat,
            cum,
            status: Status::new(ran[0], ran[1], flat.delta() == 0 && cum.delta() == 0),
            lines: Vec::new(),
            instructions,
            notes,
        })
    }
}

/// An instruction of one side.
struct Decoded {
    code: u32,
    address: u64,
    /// What is the same in another build.
    key: String,
    text: String,
    flat: i64,
    cum: i64,
}

fn words(profile: &Profile, mapping: u32) -> String {
    match profile.mappings().get(mapping as usize).filter(|_| mapping != NONE) {
        Some(mapping) => profile.mapping_words(mapping),
        None => "a binary that the profile does not name".to_owned(),
    }
}

/// Which binaries are missing, and of which side; nothing if none is.
fn told(missing: [Vec<String>; 2], is_two_sided: bool) -> Option<String> {
    let mut told = Vec::new();
    for (mut words, side) in missing.into_iter().zip(["of the base ", "of the new side "]) {
        words.sort();
        words.dedup();
        if !words.is_empty() {
            told.push(format!("{}{}", if is_two_sided { side } else { "" }, some_of(words)));
        }
    }
    let options = if is_two_sided { "--base-binary and --new-binary, or --binary for both" } else { "--binary" };
    (!told.is_empty()).then(|| {
        format!("the instructions are in binaries that are missing: {}; name them with {options}", told.join(", "))
    })
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
    let mut machine = Machine::new(measure, &matches, trim, &memory)?;
    let missing = std::mem::take(&mut machine.missing);
    if let Some(told) = told(missing, measure.selection().diff().is_two_sided()) {
        // Who only has folders that are searched anyway did not ask for instructions.
        summary.warnings.extend(measure.walks().any(|w| w.input.profile.binaries().is_named()).then_some(told));
        return Ok((routines, summary));
    }
    let mut functions = machine.functions_of(&names.iter().map(|name| plain(name)).collect())?;
    for r in &mut routines {
        let of_r = functions.remove(&plain(&r.name)).unwrap_or_default();
        machine.open_routine(r, of_r)?;
    }
    summary.warnings.extend(machine.warnings());
    Ok((routines, summary))
}

impl Machine<'_> {
    /// In which functions of a binary the samples of each side ran those with these names.
    fn functions_of(&mut self, names: &HashSet<String>) -> Result<HashMap<String, [BTreeSet<Function>; 2]>> {
        let mut found: HashMap<String, [BTreeSet<Function>; 2]> = HashMap::default();
        for (number, (mapped, code)) in self.codes.iter().enumerate() {
            let own = |n: &u32| self.addresses.values[*n as usize].0 == number as u32;
            let addresses: Vec<u32> = self.order.iter().copied().filter(own).collect();
            let values: Vec<u64> = addresses.iter().map(|&n| self.addresses.values[n as usize].1).collect();
            self.warnings.extend(mapped.look_up(&values)?);
            // By the number of the name: texts are compared once.
            let mut wanted: HashMap<u32, Option<String>> = HashMap::default();
            for (n, address) in addresses.into_iter().zip(values) {
                let Some(function) = code.function_at(address) else { continue };
                mapped.binary.frames(address, |lines| {
                    for line in lines {
                        let name = wanted.entry(line.name.number).or_insert_with(|| {
                            Some(plain(&String::from_utf8_lossy(line.name.bytes))).filter(|name| names.contains(name))
                        });
                        let Some(name) = name else { continue };
                        for side in [0, 1].into_iter().filter(|&side| self.costs[side][n as usize].stamp != 0) {
                            let functions = found.entry(name.clone()).or_default();
                            functions[side].insert((number as u32, function));
                        }
                    }
                });
            }
        }
        Ok(found)
    }

    /// Opens the lines of a routine.
    fn open_routine(&mut self, r: &mut Routine, functions: [BTreeSet<Function>; 2]) -> Result<()> {
        let mut sides = functions.clone();
        if self.measure.selection().diff().is_two_sided() {
            for (side, own) in functions.iter().enumerate() {
                sides[1 - side].extend(own.iter().filter_map(|&f| self.partner(f, 1 - side)));
            }
        }
        let all = sides.iter().flatten().map(|&f| [Some(f), None]).collect::<Vec<_>>();
        if !all.into_iter().all(|pair| self.takes(pair)) {
            r.notes
                .push("its instructions are left out, since the listing is too long: list fewer functions".to_owned());
            return Ok(());
        }
        let (name, file) = (plain(&r.name), r.file.clone());
        let mut decoded: [Vec<Decoded>; 2] = Default::default();
        let mut by_line: [BTreeMap<i64, Vec<usize>>; 2] = Default::default();
        for side in 0..2 {
            for &function in &sides[side] {
                for i in self.decode(function, side)? {
                    let mut lines = BTreeSet::new();
                    self.codes[i.code as usize].0.binary.frames(i.address, |frames| {
                        let is_own = |frame: &FoundLine<'_>| {
                            let text = |text: Text<'_>| String::from_utf8_lossy(text.bytes).into_owned();
                            let same_file = |file: &String| file_name(&text(frame.file)) == file_name(file);
                            plain(&text(frame.name)) == name && file.as_ref().is_none_or(same_file)
                        };
                        lines.extend(frames.filter(is_own).map(|frame| i64::from(frame.line)));
                    });
                    for line in lines {
                        by_line[side].entry(line).or_default().push(decoded[side].len());
                    }
                    decoded[side].push(i);
                }
            }
        }
        for line in &mut r.lines {
            let of = |side: usize, n: Option<i64>| -> Vec<&Decoded> {
                let indexes = n.and_then(|n| by_line[side].get(&n)).into_iter().flatten();
                indexes.map(|&i| &decoded[side][i]).collect()
            };
            line.instructions = self.aligned(&of(0, line.base), &of(1, line.new), &mut r.notes);
        }
        Ok(())
    }
}

impl Diff {
    /// As [`Diff::disasm`] says it.
    pub(super) fn disassembled(&self, query: &Query, pattern: &str, n: usize) -> Result<Listing> {
        let regex = crate::diff::compile("disasm", pattern)?;
        self.find_sample_type(query.sample_type.as_deref())?;
        // An address stands for what was inlined there, too: it is one instruction.
        let query = Query { granularity: Granularity::Addresses, no_inlines: true, ..query.clone() };
        let measure = self.select_with(&query, &Default::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), query.normalize)?;
        let memory = Memory::default();
        let mut machine = Machine::new(&measure, &|name| regex.is_match(name), &query.trim_path, &memory)?;
        let refuse = |missing| told(missing, self.is_two_sided()).map_or(Ok(()), |told| Err(Error::query(told)));
        refuse(std::mem::take(&mut machine.missing))?;
        let matches =
            |f: Function| regex.is_match(machine.linker_name(f)) || regex.is_match(machine.name(f).as_bytes());
        let pairs = machine.pairs(matches);
        // What a side without names costs is not known as long as its binaries are not.
        let ran = |side: usize| machine.ran(side).any(|(_, function)| matches(function));
        let unknown = [0, 1].map(|side| if ran(side) { Vec::new() } else { machine.unknown[side].clone() });
        refuse(unknown)?;
        let sized = |pair: [Option<Function>; 2]| {
            let (flat, cum, _) = machine.sums(pair);
            (Reverse(Sort::Cum.size(flat, cum)), pair[1].or(pair[0]).map(|f| machine.name(f)), pair)
        };
        let mut sized: Vec<_> = pairs.into_iter().map(sized).collect();
        sized.sort();
        let routines = sized.into_iter().take(n).map(|(_, _, pair)| machine.routine(pair)).collect::<Result<_>>()?;
        let mut summary = measure.summary().clone();
        Arc::make_mut(&mut summary).warnings.extend(machine.warnings());
        Ok(Listing { of: Listed::Instructions, summary, routines })
    }
}
