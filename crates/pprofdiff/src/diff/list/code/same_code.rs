//! Compares the code of functions in both builds: whether a difference in cost comes with a difference in the instructions.

use std::collections::{BTreeMap, BTreeSet};

use super::{CodeFunction, CodeListing, FunctionPair, plain};
use crate::Result;
use crate::diff::alignment::align;
use crate::diff::list::CodeChange;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_symbols::CodeComparison;

/// The maximum number of inlined functions to name.
const MAX_INLINED: usize = 3;

/// The size of a line of the instruction cache, and of the window that decoders of most processors prefer.
const ALIGNMENT: u64 = 64;

impl CodeListing<'_> {
    /// Compares the code of a function on both sides.
    pub(super) fn code_change(&mut self, pair: FunctionPair) -> Result<CodeChange> {
        let (Some(base), Some(new)) = (pair[0], pair[1]) else {
            let side = usize::from(pair[0].is_some());
            let is_missing = !self.missing[side].is_empty();
            let reason = if is_missing { "its binary is missing" } else { "only one build has the function" };
            return Ok(CodeChange::unknown(reason));
        };
        if base == new {
            // Both profiles were recorded from the same file.
            return Ok(CodeChange::Identical);
        }
        let mut left = self.pairs_left;
        let [b, n] = [base, new].map(|(code, _)| &self.codes[code as usize].code);
        let left_cell = std::cell::Cell::new(left);
        let compared = b.compare(base.1, n, new.1, |b, n| {
            let mut left = left_cell.get();
            let rows = align(b, n, &mut left);
            left_cell.set(left);
            rows
        });
        left = left_cell.get();
        self.pairs_left = left;
        Ok(match compared {
            CodeComparison::Identical => CodeChange::Identical,
            CodeComparison::Relocated => CodeChange::Relocated,
            CodeComparison::Unknown(reason) => CodeChange::unknown(reason),
            CodeComparison::Changed { differing, instructions } => {
                let [old, now] = [self.inlined(base)?, self.inlined(new)?];
                let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
                    a.difference(b).take(MAX_INLINED).cloned().collect()
                };
                let (gained, lost) = (only(&now, &old), only(&old, &now));
                CodeChange::Changed { differing, instructions, gained, lost, within: None }
            }
        })
    }

    /// Returns the names of the functions that are inlined into a function.
    fn inlined(&mut self, function: CodeFunction) -> Result<BTreeSet<String>> {
        let (number, f) = function;
        let mut addresses = Vec::new();
        self.codes[number as usize].code.instructions(f, |instruction| addresses.push(instruction.address));
        let warnings = self.codes[number as usize].mapped.look_up(&addresses)?;
        self.warnings.extend(warnings);
        let mut names = BTreeSet::new();
        for address in addresses {
            self.codes[number as usize].mapped.binary.frames(address, |frames| {
                let mut frames = frames.peekable();
                while let Some(frame) = frames.next() {
                    // The last frame is the function itself.
                    if frames.peek().is_some() {
                        names.insert(plain(&String::from_utf8_lossy(frame.name.bytes)));
                    }
                }
            });
        }
        Ok(names)
    }

    /// Compares the code of all functions with these names, by name. A function that is inlined everywhere has the code
    /// of the functions that contain it. If several functions have a name, returns their most important change.
    pub(super) fn code_changes(&mut self, names: &HashSet<String>) -> Result<HashMap<String, CodeChange>> {
        let functions = self.functions_of(&names.iter().map(|name| plain(name)).collect())?;
        let mut by_pair: BTreeMap<FunctionPair, CodeChange> = BTreeMap::new();
        let mut changes = HashMap::default();
        for name in names {
            let Some(sides) = functions.get(&plain(name)) else { continue };
            let mut pairs: BTreeSet<FunctionPair> = BTreeSet::new();
            for &function in &sides[0] {
                pairs.insert([Some(function), self.partner(function, 1)]);
            }
            for &function in &sides[1] {
                pairs.insert([self.partner(function, 0), Some(function)]);
            }
            let mut change: Option<CodeChange> = None;
            for pair in pairs {
                let mut one = match by_pair.get(&pair) {
                    Some(known) => known.clone(),
                    None => self.code_change(pair)?,
                };
                by_pair.insert(pair, one.clone());
                let is_outermost = |f: &CodeFunction| self.outermost.contains(&(plain(name), *f));
                if let CodeChange::Changed { within, .. } = &mut one
                    && !pair.iter().flatten().any(is_outermost)
                {
                    *within = pair[1].or(pair[0]).map(|f| self.name(f));
                }
                change = Some(match change {
                    Some(change) => change.with(one),
                    None => one,
                });
            }
            changes.extend(change.map(|change| (name.clone(), change)));
        }
        for name in self.names_in_missing_binaries(names) {
            let unknown = CodeChange::unknown("its binary is missing");
            let change = match changes.remove(&name) {
                Some(change) => change.with(unknown),
                None => unknown,
            };
            changes.insert(name, change);
        }
        Ok(changes)
    }

    /// Returns the names of functions in binaries that were not found.
    fn names_in_missing_binaries(&self, names: &HashSet<String>) -> HashSet<String> {
        let mut found = HashSet::default();
        for (profile, mapping) in self.unopened.iter().flatten() {
            let (locations, functions) = (profile.locations(), profile.functions());
            let in_mapping = (0..locations.len() as u32).filter(|&l| locations.mapping[l as usize] == *mapping);
            let lines = checkpointed(in_mapping).flat_map(|location| locations.lines(location));
            let numbers: HashSet<u32> = lines.map(|line| locations.line_function[line as usize]).collect();
            for number in numbers {
                let number = number as usize;
                for name in [functions.name[number], functions.system_name[number]] {
                    let name = String::from_utf8_lossy(profile.string(name));
                    if names.contains(&*name) {
                        found.insert(name.into_owned());
                    }
                }
            }
        }
        found
    }

    /// Describes the hottest loop whose start is aligned differently in the builds, if the function has one.
    pub(super) fn loop_alignment(&self, pair: FunctionPair, costs: impl Fn(usize, u64, u64) -> i64) -> Option<String> {
        let [base, new] = pair;
        let [b, n] = [self.loops(base?), self.loops(new?)];
        // Without a difference in the instructions, loops have the same order on both sides.
        if b.len() != n.len() {
            return None;
        }
        let cost = |(b, n): &((u64, u64), (u64, u64))| costs(0, b.0, b.1).saturating_add(costs(1, n.0, n.1));
        // An outer loop contains the cost of its inner loops.
        let contains = |outer: &(u64, u64), inner: &(u64, u64)| outer.0 <= inner.0 && inner.1 <= outer.1;
        let is_innermost = |loops: &(u64, u64)| !b.iter().any(|other| other != loops && contains(loops, other));
        let innermost = b.iter().copied().zip(n).filter(|(b, _)| is_innermost(b));
        let ((b, _), (n, _)) = innermost.max_by_key(cost).filter(|loops| cost(loops) > 0)?;
        if b % ALIGNMENT == n % ALIGNMENT {
            return None;
        }
        Some(format!(
            "its hottest loop starts {} bytes into a {ALIGNMENT}-byte line in the base ({b:#x}) and {} in the new build \
             ({n:#x})",
            b % ALIGNMENT,
            n % ALIGNMENT
        ))
    }

    /// Returns the first and the last address of each loop, which ends with a jump back to its start.
    fn loops(&self, (code, function): CodeFunction) -> Vec<(u64, u64)> {
        let (start, _) = self.codes[code as usize].code.bytes(function);
        let mut loops = Vec::new();
        self.codes[code as usize].code.instructions(function, |instruction| {
            let is_back = |target: &u64| (start..=instruction.address).contains(target);
            if let Some(target) = instruction.target.filter(is_back).filter(|_| instruction.is_jump()) {
                loops.push((target, instruction.address));
            }
        });
        loops
    }
}
