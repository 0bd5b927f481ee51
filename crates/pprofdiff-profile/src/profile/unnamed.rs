//! Which locations have an address and no function name, so that a binary has to name them.

use super::{NONE, Profile};
use crate::advice;

/// The numbers of locations with and without a function name.
#[derive(Debug, Clone, Copy, Default)]
struct Names {
    named: usize,
    unnamed: usize,
    /// The first mapping with locations that have no name.
    mapping: Option<u32>,
}

impl Profile {
    /// Warns if more locations are mere addresses than have a function name. Names in brackets, such as `[libc.so.6]`
    /// and `[unknown]`, are what readers call an address without a symbol.
    pub(super) fn names_warning(&self) -> Option<String> {
        // Users who named binaries read which of them are missing in another note.
        #[cfg(feature = "binary")]
        if !self.binaries.is_empty() {
            return None;
        }
        let Names { named, unnamed, mapping } = self.names()?;
        let binary =
            mapping.map_or_else(String::new, |m| format!(" in {}", self.mapping_words(&self.mappings[m as usize])));
        Some(match named {
            0 => format!("no function names, only addresses{binary}; the names are in that binary (--binary)"),
            _ => format!(
                "{unnamed} of {} locations have no function name, only an address{binary}; the names are in that binary (--binary)",
                named + unnamed
            ),
        })
    }

    /// Returns a command for a POSIX shell that adds the names of functions, if most are missing. Names in it are quoted,
    /// so none of them is more than a name. Show it where a person reads, and not in logs.
    pub fn advice(&self) -> Option<String> {
        let mapping = self.names()?.mapping;
        let binary = mapping.map_or_else(String::new, |m| self.text(self.mappings[m as usize].file));
        Some(advice::symbolize(&binary, &self.name))
    }

    /// Counts the locations with a name and without, and returns `None` unless most are without.
    fn names(&self) -> Option<Names> {
        let mut names = Names::default();
        let mut first = NONE;
        for location in 0..self.locations.len() as u32 {
            let mapping = self.locations.mapping[location as usize];
            let lines = self.locations.lines(location);
            let functions = lines.map(|line| self.locations.line_function[line as usize]);
            let mut names_of_lines = functions.map(|f| self.string(self.functions.name[f as usize]));
            if names_of_lines.any(is_name) {
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

/// Returns false for what readers call an address without a symbol.
fn is_name(name: &[u8]) -> bool {
    !(name.is_empty() || name.starts_with(b"[") && name.ends_with(b"]"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::builder::ProfileBuilder;
    use crate::columns::Mapping;

    /// Warnings about a profile of a program with these locations: a name, or only an address for "".
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
    fn addresses_are_no_names_whatever_readers_call_them() {
        for names in [&["", ""][..], &["", "[unknown]"], &["[libc.so.6]", "[app]", ""]] {
            let warnings = warnings(names);
            assert_eq!(warnings.len(), 1, "{names:?}");
            assert!(warnings[0].starts_with("made: no function names, only addresses in /bin/app;"), "{warnings:?}");
        }
        let some = warnings(&["main", "", "", "[unknown]"]);
        assert!(some[0].contains("3 of 4 locations have no function name, only an address in /bin/app"), "{some:?}");
        assert!(some[0].contains("--binary"), "{some:?}");
        for names in [&["main", ""][..], &["main", "run", "[unknown]"]] {
            assert!(warnings(names).is_empty(), "{names:?}");
        }
    }
}
