//! What makes two frames the same: the one function to replace when frames are to be matched in
//! another way (across renames, across shifted lines).
//!
//! The key of each granularity is pprof's, without two of its quirks: at `files`, and for functions
//! without a name, pprof also splits rows by the line on which a function starts.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::{Profile, StringId};

/// What one row of a table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Granularity {
    /// One row a function name.
    #[default]
    Functions,
    /// One row a function name and file.
    FileFunctions,
    /// One row a file.
    Files,
    /// One row a function name, file and line.
    Lines,
    /// One row an instruction's address, with its function, file and line.
    Addresses,
}

impl Granularity {
    /// All, with the names that users give them.
    pub const ALL: [(&'static str, Granularity); 5] = [
        ("functions", Granularity::Functions),
        ("filefunctions", Granularity::FileFunctions),
        ("files", Granularity::Files),
        ("lines", Granularity::Lines),
        ("addresses", Granularity::Addresses),
    ];

    /// The name that users give it.
    pub fn name(self) -> &'static str {
        Granularity::ALL.iter().find(|(_, g)| *g == self).map_or("functions", |(name, _)| name)
    }
}

impl std::str::FromStr for Granularity {
    type Err = crate::Error;

    fn from_str(s: &str) -> crate::Result<Granularity> {
        Granularity::ALL.iter().find(|(name, _)| *name == s).map(|(_, g)| *g).ok_or_else(|| {
            let names = Granularity::ALL.map(|(name, _)| name).join(", ");
            crate::Error::query(format!("there is no granularity {s:?}; there are {names}"))
        })
    }
}

/// A frame's identity: two frames are the same if all of this is equal, strings by their bytes. What
/// the granularity leaves out is empty or 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub name: StringId,
    /// Compared as [`clean_path`] makes it.
    pub file: StringId,
    /// The mapped binary's file: of the identity only where there is neither name nor file.
    pub mapping: Option<StringId>,
    pub line: i64,
    pub address: u64,
}

/// The identity of one line of a location; a location without lines (no symbols) has line `None`.
///
/// `address` is the location's, already moved to where the other side has its binary.
pub(crate) fn identify(
    p: &Profile,
    granularity: Granularity,
    location: u32,
    line: Option<u32>,
    address: u64,
) -> Identity {
    use Granularity::{Addresses, Files, Functions, Lines};
    let mut i = Identity { name: StringId::EMPTY, file: StringId::EMPTY, mapping: None, line: 0, address: 0 };
    if granularity == Addresses {
        i.address = address;
    }
    if let Some(line) = line {
        let functions = p.functions();
        let function = p.locations().line_function[line as usize] as usize;
        if granularity != Files {
            i.name = functions.name[function];
        }
        if granularity != Functions {
            i.file = functions.file[function];
        }
        if matches!(granularity, Lines | Addresses) {
            i.line = p.locations().line_number[line as usize];
        }
    }
    if i.line == 0 && p.string(i.name).is_empty() && p.string(i.file).is_empty() {
        i.mapping = Some(p.mapping_file(location));
    }
    i
}

/// A path as pprof shows it: without `/proc/self/cwd/`, `.`, `..` and doubled slashes. `None` if that
/// changes nothing, which is the usual case.
pub(crate) fn clean_path(path: &[u8]) -> Option<Vec<u8>> {
    let trimmed =
        path.strip_prefix(b"/proc/self/cwd/./").or_else(|| path.strip_prefix(b"/proc/self/cwd/")).unwrap_or(path);
    let dirty = trimmed.len() != path.len()
        || (trimmed.len() > 1 && trimmed.ends_with(b"/"))
        || trimmed.windows(2).any(|w| w == b"//" || w == b"./")
        || trimmed == b".."
        || trimmed.ends_with(b"/.")
        || trimmed.ends_with(b"/..");
    if !dirty {
        return None;
    }
    let rooted = trimmed.first() == Some(&b'/');
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in trimmed.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|p| *p != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let mut clean = if rooted { b"/".to_vec() } else { Vec::new() };
    clean.extend(parts.join(&b'/'));
    if clean.is_empty() {
        clean.push(b'.');
    }
    Some(clean)
}

/// For each member and each of its mappings: what to add to an address so that the same place in the
/// same binary has the same address in all members.
///
/// The first member that uses a mapping sets the place; as in pprof, and in a diff that was written,
/// only what a sample with a value refers to counts as used, and the very first mapping.
pub(crate) fn address_shifts(profiles: &[&Profile]) -> Vec<Vec<u64>> {
    type Key<'p> = (u64, u64, &'p [u8]);
    let mut known: HashMap<Key<'_>, u64, foldhash::quality::RandomState> = HashMap::default();
    fn key(p: &Profile, mapping: u32) -> Key<'_> {
        let m = &p.mappings()[mapping as usize];
        let build_id = p.string(m.build_id);
        let name = if build_id.is_empty() { p.string(m.file) } else { build_id };
        // As pprof's mapping key: sizes are compared in pages.
        (m.limit.wrapping_sub(m.start).wrapping_add(0xfff) & !0xfff, m.offset, name)
    }
    for p in profiles {
        let n = p.mappings().len();
        let mut seen = vec![false; n];
        let mut see = |mapping: u32| {
            if mapping != NONE && !std::mem::replace(&mut seen[mapping as usize], true) {
                known.entry(key(p, mapping)).or_insert(p.mappings()[mapping as usize].start);
            }
        };
        if std::ptr::eq(*p, profiles[0]) && n > 0 {
            see(0);
        }
        for sample in p.samples() {
            let mut zero = true;
            sample.each_value(|v| zero &= v == 0);
            if !zero {
                sample.each_location(|l| see(p.locations().mapping[l as usize]));
            }
        }
    }
    let shift = |p: &Profile, m: u32| match known.get(&key(p, m)) {
        Some(start) => start.wrapping_sub(p.mappings()[m as usize].start),
        None => 0,
    };
    profiles.iter().map(|p| (0..p.mappings().len() as u32).map(|m| shift(p, m)).collect()).collect()
}

/// A location's address in the common address space of [`address_shifts`].
pub(crate) fn shifted_address(profile: &Profile, shifts: &[u64], location: u32) -> u64 {
    let locations = profile.locations();
    let address = locations.address[location as usize];
    match locations.mapping[location as usize] {
        NONE => address,
        m => address.wrapping_add(shifts[m as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::clean_path;

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        let cases = [
            ("a//b/../c/.", "a/c"),
            ("/../a", "/a"),
            ("./a", "a"),
            ("a/", "a"),
            ("..", ".."),
            ("../../a", "../../a"),
            ("/proc/self/cwd/./x.cc", "x.cc"),
            ("a/..", "."),
        ];
        for (path, clean) in cases {
            let got = clean_path(path.as_bytes()).unwrap_or_else(|| path.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&got), clean, "{path}");
        }
        for path in ["a.b/c..d", "/usr/lib", "", "/", "a"] {
            assert_eq!(clean_path(path.as_bytes()), None, "{path}");
        }
    }
}
