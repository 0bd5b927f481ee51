//! Decodes functions with the costs of their instructions, aligns both sides, and attaches instructions to source
//! lines.

use std::collections::{BTreeMap, BTreeSet};

use super::{CodeFunction, CodeListing, FunctionPair, OpenedBinary, file_name, plain, short};
use crate::Result;
use crate::diff::alignment::align;
use crate::diff::list::{CodeChange, LineChange, ListedInstruction, ListedPlace, Routine};
use crate::diff::{Status, identity};
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_symbols::{FoundLine, instructions};

impl CodeListing<'_> {
    /// Decodes a function's instructions, with their costs on one side.
    fn decode(&self, (number, function): CodeFunction, side: usize) -> Vec<Decoded> {
        let code = &self.codes[number as usize].code;
        let mut decoded: Vec<instructions::Instruction> = Vec::new();
        code.instructions(function, |instruction| decoded.push(instruction));
        let target = |i: &instructions::Instruction| code.function_at(i.target?);
        let targets: BTreeSet<u32> = decoded.iter().filter_map(target).collect();
        let names: BTreeMap<u32, String> = targets.into_iter().map(|f| (f, short(&code.name(f)))).collect();
        let symbol = |address: u64| {
            let target = code.function_at(address)?;
            Some((&*names[&target], address - code.bytes(target).0))
        };
        let other_symbol = |address: u64| symbol(address).filter(|_| code.function_at(address) != Some(function));
        let mut costs = self.sampled(number, code.bytes(function).0).peekable();
        let mut all = Vec::with_capacity(decoded.len());
        for i in decoded {
            let (mut flat, mut cum) = (0, 0);
            // Includes addresses inside the instruction. A caller's address is often one byte before its return
            // address.
            while let Some((_, n)) = costs.next_if(|(a, _)| a.wrapping_sub(i.address) < u64::from(i.len)) {
                let cost = self.costs[side][n as usize];
                (flat, cum) = (flat + cost.flat, cum + cost.cum);
            }
            all.push(Decoded {
                code: number,
                address: i.address,
                key: i.compared(other_symbol),
                text: i.named(symbol),
                flat,
                cum,
            });
        }
        all
    }

    /// Returns the addresses of a code with samples, from `from` on, with their numbers.
    fn sampled(&self, code: u32, from: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let values = &self.addresses.values;
        let first = self.order.partition_point(|&n| values[n as usize] < (code, from));
        let sampled_addresses = self.order[first..].iter().map(move |&n| (values[n as usize], n));
        sampled_addresses.take_while(move |((c, _), _)| *c == code).map(|((_, address), n)| (address, n))
    }

    /// Looks up the source lines of instructions. Groups them by binary, because each lookup reads the binary.
    pub(super) fn look_up<'d>(&mut self, all: impl Iterator<Item = &'d Decoded>) -> Result<()> {
        let mut addresses: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        all.for_each(|i| addresses.entry(i.code).or_default().push(i.address));
        for (code, addresses) in addresses {
            self.warnings.extend(self.codes[code as usize].mapped.look_up(&addresses)?);
        }
        Ok(())
    }

    /// Aligns the instructions of both sides. Adds a note if there are too many to compare.
    fn aligned(&mut self, base: &[&Decoded], new: &[&Decoded], notes: &mut Vec<String>) -> Vec<ListedInstruction> {
        let [b, n] = [base, new].map(|side| side.iter().map(|i| &*i.key).collect::<Vec<_>>());
        let rows = align(&b, &n, &mut self.pairs_left).unwrap_or_else(|| {
            let note = "the sides differ in too many instructions to be compared";
            if notes.iter().all(|existing| existing != note) {
                notes.push(note.to_owned());
            }
            let (b, n) = (0..b.len() as u32, 0..n.len() as u32);
            b.map(|i| (Some(i), None)).chain(n.map(|i| (None, Some(i)))).collect()
        });
        let is_two_sided = self.is_two_sided();
        let row = |(b, n): (Option<u32>, Option<u32>)| {
            let (b, n) = (b.map(|i| base[i as usize]), n.map(|i| new[i as usize]));
            let cost = |value: fn(&Decoded) -> i64| self.pair(b.map_or(0, value), n.map_or(0, value));
            let (flat, cum) = (cost(|i| i.flat), cost(|i| i.cum));
            Some(ListedInstruction {
                base: b.map(|i| i.address),
                new: n.map(|i| i.address),
                change: match (b, n) {
                    (None, Some(_)) if is_two_sided => LineChange::Inserted,
                    (Some(_), None) => LineChange::Deleted,
                    _ => LineChange::Same,
                },
                text: n.or(b)?.text.clone(),
                place: self.place(n.or(b)?),
                flat,
                cum,
            })
        };
        rows.into_iter().filter_map(row).collect()
    }

    /// Returns the source line of the innermost frame of an instruction.
    fn place(&mut self, i: &Decoded) -> Option<ListedPlace> {
        let (mut place, trim, texts) = (None, self.trim, &mut self.texts);
        self.codes[i.code as usize].mapped.binary.frames(i.address, |lines| {
            place = lines.next().filter(|line| line.line != 0).map(|line| {
                let function = texts.entry((i.code, line.name.number, false));
                let function = function.or_insert_with(|| short(line.name.bytes).into()).clone();
                let file = texts.entry((i.code, line.file.number, true));
                let file = file.or_insert_with(|| short(&identity::file_path(line.file.bytes, trim)).into()).clone();
                ListedPlace { function, file, line: line.line }
            });
        });
        place
    }

    /// Lists functions by instruction.
    pub(super) fn routines(&mut self, pairs: &[FunctionPair]) -> Result<Vec<Routine>> {
        let mut decoded: Vec<Option<[Vec<Decoded>; 2]>> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let has_room = self.takes(pair.iter().flatten().copied());
            let decode = |side: usize| pair[side].map_or_else(Vec::new, |f| self.decode(f, side));
            decoded.push(has_room.then(|| [0, 1].map(decode)));
        }
        self.look_up(decoded.iter().flatten().flatten().flatten())?;
        let routine = |(&pair, decoded): (&FunctionPair, Option<[Vec<Decoded>; 2]>)| {
            let (flat, cum, ran) = self.sums(pair);
            let mut notes = Vec::new();
            let code = if self.is_two_sided() && decoded.is_some() { Some(self.code_change(pair)?) } else { None };
            if let (Some(sides), true) = (&decoded, code.as_ref().is_some_and(CodeChange::is_same)) {
                notes.extend(self.loop_alignment(pair, |side, from, to| {
                    let inside = sides[side].iter().filter(|i| (from..=to).contains(&i.address));
                    inside.map(|i| i.flat).sum()
                }));
            }
            let instructions = match decoded {
                Some(sides) => {
                    let [base, new] = sides.each_ref().map(|side| side.iter().collect::<Vec<_>>());
                    self.aligned(&base, &new, &mut notes)
                }
                None => {
                    notes.push(TOO_LONG.to_owned());
                    Vec::new()
                }
            };
            let path = |f: CodeFunction| self.codes[f.0 as usize].mapped.binary.path().display().to_string();
            let [base, new] = pair.map(|f| f.map(path));
            Ok(Routine {
                name: pair[1].or(pair[0]).map(|f| self.name(f)).unwrap_or_default(),
                file: None,
                base_file: None,
                places: (base, new),
                flat,
                cum,
                status: Status::new(ran[0], ran[1], flat.delta() == 0 && cum.delta() == 0),
                lines: Vec::new(),
                instructions,
                code,
                notes,
            })
        };
        pairs.iter().zip(decoded).map(routine).collect()
    }

    /// For each of these names, returns the functions of binaries in which samples of each side executed it.
    pub(super) fn functions_of(
        &mut self,
        names: &HashSet<String>,
    ) -> Result<HashMap<String, [BTreeSet<CodeFunction>; 2]>> {
        let mut functions_by_name: HashMap<String, [BTreeSet<CodeFunction>; 2]> = HashMap::default();
        for (number, OpenedBinary { mapped, code, .. }) in self.codes.iter().enumerate() {
            let number = number as u32;
            let addresses: Vec<(u64, u32)> = self.sampled(number, 0).collect();
            self.warnings.extend(mapped.look_up(&addresses.iter().map(|(a, _)| *a).collect::<Vec<_>>())?);
            // By the number of the name, so that each text is compared once.
            let mut names_by_number: HashMap<u32, Option<String>> = HashMap::default();
            for (address, n) in addresses {
                let Some(function) = code.function_at(address) else { continue };
                mapped.binary.frames(address, |lines| {
                    let mut lines = lines.peekable();
                    while let Some(line) = lines.next() {
                        let is_outermost = lines.peek().is_none();
                        for text in [line.name, line.system_name] {
                            let name = names_by_number.entry(text.number).or_insert_with(|| {
                                Some(plain(&String::from_utf8_lossy(text.bytes))).filter(|name| names.contains(name))
                            });
                            let Some(name) = name else { continue };
                            if !functions_by_name.contains_key(name) {
                                functions_by_name.insert(name.clone(), Default::default());
                            }
                            let Some(functions) = functions_by_name.get_mut(name) else { continue };
                            for side in (0..2).filter(|&side| self.costs[side][n as usize].stamp != 0) {
                                functions[side].insert((number, function));
                            }
                            if is_outermost {
                                self.outermost.insert((name.clone(), (number, function)));
                            }
                        }
                    }
                });
            }
        }
        Ok(functions_by_name)
    }

    /// Decodes the instructions of a routine's functions on both sides. Returns `None` if they exceed the limit.
    pub(super) fn decode_all(&mut self, functions: &[BTreeSet<CodeFunction>; 2]) -> Option<[Vec<Decoded>; 2]> {
        let mut sides = functions.clone();
        if self.is_two_sided() {
            for (side, side_functions) in functions.iter().enumerate() {
                sides[1 - side].extend(side_functions.iter().filter_map(|&f| self.partner(f, 1 - side)));
            }
        }
        let has_room = self.takes(sides.iter().flatten().copied());
        let decode = |side: usize| sides[side].iter().flat_map(|&f| self.decode(f, side)).collect();
        has_room.then(|| [0, 1].map(decode))
    }

    /// Adds instructions to the lines of a routine.
    pub(super) fn open_lines(&mut self, r: &mut Routine, decoded: &[Vec<Decoded>; 2]) {
        let name = plain(&r.name);
        let mut by_line: [BTreeMap<i64, Vec<&Decoded>>; 2] = Default::default();
        for (side, decoded) in decoded.iter().enumerate() {
            let file = if side == 0 { r.base_file.as_ref().or(r.file.as_ref()) } else { r.file.as_ref() };
            // By the numbers of names and file, so that each text is compared once.
            let mut is_own_text: HashMap<(u32, [u32; 3]), bool> = HashMap::default();
            for i in decoded {
                let mut lines = BTreeSet::new();
                self.codes[i.code as usize].mapped.binary.frames(i.address, |frames| {
                    let is_own = |frame: &FoundLine<'_>| {
                        let texts = [frame.name, frame.system_name, frame.file];
                        *is_own_text.entry((i.code, texts.map(|text| text.number))).or_insert_with(|| {
                            let [function_name, system, path] = texts.map(|text| String::from_utf8_lossy(text.bytes));
                            (plain(&function_name) == name || plain(&system) == name)
                                && file.is_none_or(|file| file_name(&path) == file_name(file))
                        })
                    };
                    lines.extend(frames.filter(is_own).map(|frame| i64::from(frame.line)));
                });
                lines.into_iter().for_each(|line| by_line[side].entry(line).or_default().push(i));
            }
        }
        for line in &mut r.lines {
            let mut take = |side: usize, n: Option<i64>| n.and_then(|n| by_line[side].remove(&n)).unwrap_or_default();
            let (base, new) = (take(0, line.base), take(1, line.new));
            line.instructions = self.aligned(&base, &new, &mut r.notes);
        }
    }
}

pub(super) const TOO_LONG: &str = "its instructions are omitted, because the listing is too long; list fewer functions";

/// A decoded instruction of one side.
pub(super) struct Decoded {
    code: u32,
    address: u64,
    /// The part of the instruction that is comparable between builds.
    key: String,
    text: String,
    flat: i64,
    cum: i64,
}
