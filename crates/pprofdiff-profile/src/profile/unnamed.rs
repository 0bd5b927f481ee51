//! Finds profiles whose locations mostly lack function names. Such locations have only an address, and their names must
//! come from a binary.

use super::{NONE, Profile};
use crate::advice;

/// The numbers of locations with and without a function name.
#[derive(Debug, Clone, Copy, Default)]
struct NameCounts {
    named: usize,
    unnamed: usize,
    /// The first mapping that contains locations without a name.
    mapping: Option<u32>,
}

impl Profile {
    /// Warns if more locations have only an address than have a function name. Names in brackets, such as `[libc.so.6]`
    /// and `[unknown]`, are placeholders that readers use for addresses without a symbol.
    pub(super) fn names_warning(&self) -> Option<String> {
        // If the user passed binaries, another note lists the missing binaries.
        if self.attachment.is_some() {
            return None;
        }
        let NameCounts { named, unnamed, mapping } = self.names()?;
        let (binary, source) = match mapping {
            Some(m) => (format!(" in {}", self.mapping_words(&self.mappings[m as usize])), "that binary"),
            None => (String::new(), "the program's binary"),
        };
        Some(match named {
            0 => format!("no function names, only addresses{binary}; the names are in {source} (--binary)"),
            _ => format!(
                "{unnamed} of {} locations have no function name, only an address{binary}; the names are in {source} (--binary)",
                named + unnamed
            ),
        })
    }

    /// Returns a POSIX shell command that adds the function names, if most are missing. File names in it are quoted, so
    /// they cannot inject commands. Show the command to people, and keep it out of logs.
    pub fn advice(&self) -> Option<String> {
        let mapping = self.names()?.mapping;
        let binary = mapping.map_or_else(String::new, |m| self.text(self.mappings[m as usize].file));
        Some(advice::symbolize(&binary, &self.name))
    }

    /// Counts the locations with and without a name. Returns `None` unless most locations lack a name. A location
    /// without a name counts only if it has a mapping or an address: otherwise, no binary can provide its name.
    fn names(&self) -> Option<NameCounts> {
        // Functions have several locations, so each name is checked once.
        let is_named: Vec<bool> = self.functions.name.iter().map(|&name| is_name(self.string(name))).collect();
        let mut names = NameCounts::default();
        let mut first = NONE;
        for location in 0..self.locations.len() as u32 {
            let mapping = self.locations.mapping[location as usize];
            let mut lines = self.locations.lines(location);
            if lines.any(|line| is_named[self.locations.line_function[line as usize] as usize]) {
                names.named += 1;
            } else if mapping != NONE || self.locations.address[location as usize] != 0 {
                names.unnamed += 1;
                first = first.min(mapping);
            }
        }
        names.mapping = (first != NONE).then_some(first);
        (names.unnamed > names.named).then_some(names)
    }
}

/// Returns false for the placeholders that readers use for addresses without a symbol.
fn is_name(name: &[u8]) -> bool {
    !(name.is_empty() || name.starts_with(b"[") && name.ends_with(b"]"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::builder::ProfileBuilder;
    use crate::columns::Mapping;

    /// Returns the warnings for a profile with these locations. The name "" creates a location that has only an
    /// address.
    fn warnings(names: &[&str]) -> Vec<String> {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("cpu", "nanoseconds");
        let file = builder.string("/bin/app");
        let mapping = builder.mapping(Mapping { limit: 0x1000, file, ..Mapping::of_all_addresses() });
        for (address, name) in (1..).zip(names) {
            let function = builder.function(name, "", 0);
            let line = builder.line(function, 0);
            let lines = if name.is_empty() { &[][..] } else { &[line] };
            let location = builder.location(Some(mapping), address, lines).unwrap();
            builder.sample(&[location], &[1], &[]).unwrap();
        }
        builder.build("made").unwrap().warnings()
    }

    #[test]
    fn placeholders_for_addresses_do_not_count_as_names() {
        for names in [&["", ""][..], &["", "[unknown]"], &["[libc.so.6]", "[app]", ""]] {
            let warnings = warnings(names);
            assert_eq!(warnings.len(), 1, "{names:?}");
            assert!(warnings[0].starts_with("made: no function names, only addresses in /bin/app;"), "{warnings:?}");
        }
        let some = warnings(&["main", "", "", "[unknown]"]);
        assert!(some[0].contains("3 of 4 locations have no function name, only an address in /bin/app"), "{some:?}");
        assert!(some[0].contains("--binary"), "{some:?}");
        let mut builder = ProfileBuilder::new();
        builder.sample_type("cpu", "nanoseconds");
        let location = builder.location(None, 1, &[]).unwrap();
        builder.sample(&[location], &[1], &[]).unwrap();
        let [warning] = &builder.build("made").unwrap().warnings()[..] else { panic!() };
        assert!(warning.ends_with("only addresses; the names are in the program's binary (--binary)"), "{warning}");
        for names in [&["main", ""][..], &["main", "run", "[unknown]"]] {
            assert!(warnings(names).is_empty(), "{names:?}");
        }
    }
}
