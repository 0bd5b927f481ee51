//! Functions that have no code of their own: wherever samples ran them, they were inlined.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::MAX_NAME;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

/// The functions to name into which one is inlined.
const MAX_NAMED: usize = 3;

/// Where a function is inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inlined {
    /// The function; the first 200 characters of its name.
    pub function: String,
    /// The functions in whose code it is, those first that have it at most addresses.
    pub into: Vec<String>,
}

impl Inlined {
    /// In words, without its own name.
    pub fn places(&self) -> String {
        let named = self.into.iter().take(MAX_NAMED).map(String::as_str);
        let more = self.into.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        let all: Vec<&str> = named.chain(more.as_deref()).collect();
        match all.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            all => all.concat(),
        }
    }
}

/// Of the functions whose names match, those that are inlined wherever the profiles have them, by name.
pub(super) fn only_inlined<'p>(
    profiles: impl Iterator<Item = &'p Profile>,
    matches: &dyn Fn(&[u8]) -> bool,
) -> Vec<Inlined> {
    // At how many addresses a function is in the code of another, or in its own.
    let mut hosts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for p in profiles {
        let (functions, locations) = (p.functions(), p.locations());
        let mut wanted: HashMap<StringId, bool> = HashMap::default();
        let mut counts: HashMap<(StringId, StringId), usize> = HashMap::default();
        for location in paced(0..locations.address.len() as u32) {
            let name = |line: u32| functions.name[locations.line_function[line as usize] as usize];
            let lines = locations.lines(location);
            let Some(own) = lines.clone().last().map(name) else { continue };
            for function in lines.map(name) {
                if *wanted.entry(function).or_insert_with(|| matches(p.string(function))) {
                    *counts.entry((function, own)).or_default() += 1;
                }
            }
        }
        // Many functions can be in one whose name has a megabyte.
        let text = |id| String::from_utf8_lossy(p.string(id)).chars().take(MAX_NAME).collect();
        for ((function, own), count) in counts {
            *hosts.entry(text(function)).or_default().entry(text(own)).or_default() += count;
        }
    }
    hosts.retain(|function, hosts| !hosts.contains_key(function));
    let inlined = hosts.into_iter().map(|(function, hosts)| {
        let mut into: Vec<_> = hosts.into_iter().collect();
        into.sort_by_key(|(_, count)| Reverse(*count));
        Inlined { function, into: into.into_iter().map(|(name, _)| name).collect() }
    });
    inlined.collect()
}
