//! Finds functions without code of their own: they are inlined in all samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::MAX_NAME;
use pprofdiff_profile::Profile;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by_key;

/// The maximum number of functions that [`Inlined::places`] names.
const MAX_NAMED: usize = 3;

/// A function that is always inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inlined {
    /// The first 200 characters of the function's name.
    pub function: String,
    /// The functions that contain its code, sorted by the number of addresses, descending.
    pub into: Vec<String>,
}

impl Inlined {
    /// Lists the functions that contain its code, for messages.
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

/// Returns the matching functions that are inlined everywhere in the profiles, sorted by name.
pub(super) fn only_inlined<'p>(
    profiles: impl Iterator<Item = &'p Profile>,
    matches: &dyn Fn(&[u8]) -> bool,
) -> Vec<Inlined> {
    // For each function, the number of addresses inside each host function. A function with code of its own is its own
    // host.
    let mut hosts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for p in profiles {
        let (functions, locations) = (p.functions(), p.locations());
        let mut is_match: HashMap<StringId, bool> = HashMap::default();
        let mut counts: HashMap<(StringId, StringId), usize> = HashMap::default();
        for location in checkpointed(0..locations.address.len() as u32) {
            let name = |line: u32| functions.name[locations.line_function[line as usize] as usize];
            let lines = locations.lines(location);
            let Some(host) = lines.clone().last().map(name) else { continue };
            for function in lines.map(name) {
                if *is_match.entry(function).or_insert_with(|| matches(p.string(function))) {
                    *counts.entry((function, host)).or_default() += 1;
                }
            }
        }
        // A name of a megabyte may be the host of many functions.
        let text = |id| String::from_utf8_lossy(p.string(id)).chars().take(MAX_NAME).collect();
        for ((function, host), count) in counts {
            *hosts.entry(text(function)).or_default().entry(text(host)).or_default() += count;
        }
    }
    hosts.retain(|function, hosts| !hosts.contains_key(function));
    let inlined = hosts.into_iter().map(|(function, hosts)| {
        let mut into: Vec<_> = hosts.into_iter().collect();
        sort_by_key(&mut into, |(_, count)| Reverse(*count));
        Inlined { function, into: into.into_iter().map(|(name, _)| name).collect() }
    });
    inlined.collect()
}
