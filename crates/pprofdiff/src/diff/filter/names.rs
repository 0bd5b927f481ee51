//! Finds the functions and mappings of a profile that an expression matches by name, and applies drop_frames.

use regex::bytes::Regex;

use super::plan::{DROP, DROP_BENEATH};
use crate::Result;
use crate::diff::matching;
use crate::diff::pattern::ForeignPattern;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::random::HashSet;

/// Returns the number of locations at the leaf that drop_frames removes. Going down from the root, the first matching
/// location after a location that does not match is removed with everything below it. A stack never becomes empty.
pub(super) fn cut_of_drops(locations: &[u32], flag: impl Fn(u32) -> u8) -> usize {
    let mut interesting = false;
    for (i, &l) in locations.iter().enumerate().rev() {
        match flag(l) & (DROP | DROP_BENEATH) {
            0 => interesting = true,
            _ if !interesting => {}
            f if f & DROP != 0 => return i + 1,
            // The match is inside an inlined group, so the rest of the group remains.
            _ => return i,
        }
    }
    0
}

/// Returns for each function whether drop_frames and keep_frames of `rules` drop it, or `None` if no function is
/// dropped. Like pprof, ignores invalid expressions, but with a warning. Expressions that are too expensive are ignored
/// as well.
pub(super) fn dropped_functions(p: &Profile, rules: &Profile, warnings: &mut Vec<String>) -> Option<Vec<bool>> {
    match try_dropped(p, rules) {
        Ok(dropped) => dropped.filter(|dropped| dropped.contains(&true)),
        Err(e) => {
            let consequence = "drop_frames and keep_frames of the profile are not applied";
            warnings.push(format!("{}: {consequence}: {}", rules.name(), e.detail()));
            None
        }
    }
}

/// Returns for each function whether it counts as part of its callers, or `None` if no function does.
pub(super) fn folded_functions(p: &Profile, folded: &HashSet<String>) -> Option<Vec<bool>> {
    if folded.is_empty() {
        return None;
    }
    let functions = by_string(p, &p.functions().name, |name| {
        std::str::from_utf8(name).is_ok_and(|name| folded.contains(&*matching::canonical(name)))
    });
    Some(functions).filter(|functions| functions.contains(&true))
}

fn try_dropped(p: &Profile, rules: &Profile) -> Result<Option<Vec<bool>>> {
    let compile = |option, id: StringId| {
        let pattern = rules.text(id);
        (!pattern.is_empty()).then(|| ForeignPattern::new(option, &pattern)).transpose()
    };
    let Some(mut drop) = compile("drop_frames", rules.header().drop_frames)? else { return Ok(None) };
    // If keep_frames is invalid, drop_frames is not applied either, as in pprof.
    let mut keep = compile("keep_frames", rules.header().keep_frames)?;
    let mut is_dropped = |name: &[u8]| -> Result<bool> {
        Ok(drop.is_match(name)? && !keep.as_mut().map_or(Ok(false), |keep| keep.is_match(name))?)
    };
    let mut failed = None;
    let dropped = by_simple_name(p, |name| {
        failed.is_none()
            && is_dropped(name).unwrap_or_else(|e| {
                failed = Some(e);
                false
            })
    });
    failed.map_or(Ok(Some(dropped)), Err)
}

/// Returns for each function whether its simplified name matches. Functions without a name never match.
pub(super) fn by_simple_name(p: &Profile, mut matches: impl FnMut(&[u8]) -> bool) -> Vec<bool> {
    by_string(p, &p.functions().name, |name| !name.is_empty() && matches(simple_name(name)))
}

/// Matches a column of strings. Each distinct string is matched once.
fn by_string(p: &Profile, column: &[StringId], mut matches: impl FnMut(&[u8]) -> bool) -> Vec<bool> {
    let mut memo: Vec<u8> = vec![2; p.n_strings()];
    let matched = |&id: &StringId| {
        let slot = &mut memo[id.index()];
        if *slot == 2 {
            *slot = u8::from(matches(p.string(id)));
        }
        *slot == 1
    };
    column.iter().map(matched).collect()
}

/// Returns a function's name without a leading dot (PowerPC) and without its argument list.
pub(super) fn simple_name(name: &[u8]) -> &[u8] {
    const RESERVED: [&[u8]; 2] = [b"(anonymous namespace)", b"operator()"];
    let name = name.strip_prefix(b".").unwrap_or(name);
    let mut i = 0;
    while i < name.len() {
        if let Some(reserved) = RESERVED.iter().find(|r| name[i..].starts_with(r)) {
            i += reserved.len();
        } else if name[i] == b'(' {
            return &name[..i];
        } else {
            i += 1;
        }
    }
    name
}

/// The functions and mappings of a profile that a regular expression matches.
pub(super) struct NameMatches {
    /// For each function of the profile, then for each pseudo-function, whether it matches.
    pub functions: Vec<bool>,
    mappings: Vec<bool>,
}

impl NameMatches {
    pub fn new(p: &Profile, pseudo: &[(Vec<u8>, Vec<u8>)], regex: &Regex) -> NameMatches {
        let names = by_string(p, &p.functions().name, |s| regex.is_match(s));
        let files = by_string(p, &p.functions().file, |s| regex.is_match(s));
        let mut functions: Vec<bool> = names.iter().zip(files).map(|(&name, file)| name || file).collect();
        functions.extend(pseudo.iter().map(|(name, file)| regex.is_match(name) || regex.is_match(file)));
        let mappings = p.mappings().iter().map(|m| regex.is_match(p.string(m.file))).collect();
        NameMatches { functions, mappings }
    }

    pub fn mapping(&self, index: u32) -> bool {
        index != NONE && self.mappings[index as usize]
    }
}

pub(super) fn retain_from(lines: &mut Vec<u32>, start: usize, keep: impl Fn(u32) -> bool) {
    let mut end = start;
    for i in start..lines.len() {
        if keep(lines[i]) {
            lines[end] = lines[i];
            end += 1;
        }
    }
    lines.truncate(end);
}
