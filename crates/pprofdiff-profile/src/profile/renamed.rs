//! Replaces function names in a profile's message with demangled names.
//!
//! The record of a renamed function gets a second name field at its end. Protobuf readers use the last occurrence of a
//! field. The new names are appended to the string table, and all other bytes stay unchanged.

use super::wire::{Fields, put};
use super::{Memo, NONE, Profile};
use crate::cancellation::checkpointed;
use crate::demangle::{Demangle, is_mangled, symbol};
use crate::error::Result;
use crate::interner::Sequences;
use crate::random::RandomState;

/// A marker for renaming a function to its linker name.
const LINKER_NAME: u32 = 0;

/// The new names of functions.
#[derive(Default)]
struct FunctionRenames {
    /// The distinct names.
    strings: Sequences<u8, RandomState>,
    /// The new name of each function: [`LINKER_NAME`], or the number of a string plus one, or [`NONE`] to keep the
    /// name. Empty if all functions keep their names, as in most profiles.
    by_function: Vec<u32>,
}

impl Profile {
    /// Replaces function names with their demangled linker names. A function whose name differs from its linker name
    /// keeps its name, unless the name is empty or the mode replaces all names. If the result would exceed `limit`
    /// bytes, all names stay unchanged and a note is added.
    ///
    /// pprof also cuts `<...>` and `(...)` from names that look like demangled C++. This function does not, because
    /// names in other languages look similar, and cutting them would merge different functions.
    #[doc(hidden)]
    pub fn with_demangled(self, mode: Demangle, limit: u64) -> Result<Profile> {
        let renamed = match mode {
            Demangle::Off => return Ok(self),
            mode => FunctionRenames::demangled(&self, mode),
        };
        if renamed.by_function.is_empty() {
            return Ok(self);
        }
        let message = renamed.message(&self)?;
        if message.len() as u64 > limit {
            let note = format!(
                "names stay as the linker knows them, because demangled names would make the profile larger than {limit} bytes"
            );
            return Ok(self.with_notes(vec![note]));
        }
        let Profile { name, notes, sampled, may_be_diff, .. } = self;
        let profile = Profile::decode(&name, message)?.with_notes(notes).with_sampled(sampled);
        Ok(Profile { may_be_diff, ..profile })
    }
}

impl FunctionRenames {
    /// Computes the new names of all functions.
    fn demangled(profile: &Profile, mode: Demangle) -> FunctionRenames {
        let functions = profile.functions();
        let mut renamed = FunctionRenames::default();
        // Keyed by the string of the linker name, so that a name is demangled once, however many functions share it.
        let mut names_by_system = Memo::new(if functions.name.is_empty() { 0 } else { profile.n_strings() });
        for (function, (&name, &system)) in checkpointed(functions.name.iter().zip(&functions.system_name).enumerate())
        {
            let linker_name = profile.string(system);
            if name == system && !is_mangled(linker_name) {
                // Most functions end here.
                continue;
            }
            let name = profile.string(name);
            let has_own_name = !name.is_empty() && name != linker_name;
            let is_replaced = mode.is_forced() && !linker_name.is_empty();
            if has_own_name && !is_replaced {
                continue;
            }
            let mut new = names_by_system.get(system.index());
            if new == NONE {
                new = renamed.name_of(linker_name, mode);
                names_by_system.set(system.index(), new);
            }
            let text = if new == LINKER_NAME { linker_name } else { renamed.strings.get(new - 1) };
            if text == name {
                continue;
            }
            if renamed.by_function.is_empty() {
                renamed.by_function = vec![NONE; functions.name.len()];
            }
            renamed.by_function[function] = new;
        }
        renamed
    }

    /// Demangles a linker name. Returns the value for [`FunctionRenames::by_function`].
    fn name_of(&mut self, linker_name: &[u8], mode: Demangle) -> u32 {
        symbol(linker_name, mode).map_or(LINKER_NAME, |demangled| self.strings.number(demangled.as_bytes()) + 1)
    }

    /// Encodes the message of `profile` with the new names.
    fn message(&self, profile: &Profile) -> Result<Vec<u8>> {
        let first_string = profile.n_strings() as u64;
        let (mut out, mut record) = (Vec::with_capacity(profile.data.len()), Vec::new());
        let mut function = 0;
        let mut fields = Fields::new(&profile.data, 0);
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            let new = if field == 5 { self.by_function[function] } else { NONE };
            function += usize::from(field == 5);
            let name = match new {
                NONE => {
                    out.extend_from_slice(&profile.data[start..fields.offset()]);
                    continue;
                }
                LINKER_NAME => u64::from(profile.functions.system_name[function - 1].0),
                string => first_string + u64::from(string - 1),
            };
            record.extend_from_slice(value.bytes()?);
            put::int(&mut record, 2, name);
            put::bytes(&mut out, 5, &record);
            record.clear();
        }
        for number in 0..self.strings.len() as u32 {
            put::bytes(&mut out, 6, self.strings.get(number));
        }
        Ok(out)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;

    const PUSH: &str = "_ZNSt6vectorIiSaIiEE9push_backERKi";

    /// Returns the names and linker names of functions in a profile that was read with this mode.
    fn names(mode: Demangle, functions: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut b = ProfileBuilder::new();
        b.sample_type("samples", "count");
        for (name, system) in functions {
            let function = b.function_of_system(name.as_bytes(), system.as_bytes(), b"a.cc", 3);
            let line = b.line(function, 5);
            let location = b.location(None, 0, &[line]).unwrap();
            b.sample(&[location], &[1], &[]).unwrap();
        }
        let written = b.build("").unwrap();
        let read = Profile::decode("in", written.buffer().to_vec());
        let p = read.and_then(|p| p.with_demangled(mode, u64::MAX)).unwrap();
        let all = p.functions();
        assert_eq!((p.n_samples(), &*p.locations().line_number), (functions.len(), &*vec![5; functions.len()]));
        let names = all.name.iter().zip(&all.system_name);
        names.map(|(&name, &system)| (p.text(name), p.text(system))).collect()
    }

    #[test]
    fn only_functions_without_another_name_are_demangled() {
        let functions = [
            (PUSH, PUSH),
            ("", "_ZN3foo3barEv"),
            ("mine", "_ZN3foo3barEv"),
            ("_ZN3foo3barEv", ""),
            ("", "main"),
            ("f(int)", "f(int)"),
            ("a::f(int)", "a::f(int)"),
        ];
        let by_name = |mode| names(mode, &functions).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let default = ["std::vector::push_back", "foo::bar", "mine", "_ZN3foo3barEv", "main", "f(int)", "a::f(int)"]
            .map(str::to_owned);
        assert_eq!(by_name(Demangle::Default), default);
        assert_eq!(
            by_name(Demangle::Full)[0..3],
            ["std::vector<int, std::allocator<int> >::push_back(int const&)", "foo::bar()", "foo::bar()"]
        );
        assert_eq!(by_name(Demangle::None)[0..4], [PUSH, "_ZN3foo3barEv", "_ZN3foo3barEv", "_ZN3foo3barEv"]);
        assert_eq!(by_name(Demangle::Off), functions.map(|(name, _)| name));
        // Linker names stay unchanged, so a written profile can be demangled again in another mode.
        assert!(
            names(Demangle::Default, &functions)
                .iter()
                .zip(functions)
                .all(|((_, system), (_, linker_name))| system == linker_name)
        );
    }

    #[test]
    fn a_profile_without_mangled_names_keeps_its_bytes() {
        let read = |mode| {
            let mut b = ProfileBuilder::new();
            b.sample_type("samples", "count");
            for name in ["main", "f", "std::vector<int>::f(int)"] {
                let function = b.function(name, "", 0);
                let location = b.location(None, 0, &[b.line(function, 0)]).unwrap();
                b.sample(&[location], &[3], &[]).unwrap();
            }
            b.build("in").and_then(|p| p.with_demangled(mode, u64::MAX)).unwrap().buffer().to_vec()
        };
        assert_eq!(read(Demangle::Default), read(Demangle::Off));
    }

    #[test]
    fn names_stay_mangled_with_a_note_if_the_profile_would_exceed_the_limit() {
        let mut b = ProfileBuilder::new();
        b.sample_type("samples", "count");
        let function = b.function(PUSH, "", 0);
        let line = b.line(function, 0);
        let location = b.location(None, 0, &[line]).unwrap();
        b.sample(&[location], &[1], &[]).unwrap();
        let profile = b.build("in").unwrap();
        let size = profile.buffer().len() as u64;
        let profile = profile.with_demangled(Demangle::Default, size).unwrap();
        assert_eq!(profile.text(profile.functions().name[0]), PUSH);
        assert!(profile.warnings()[0].contains("as the linker knows them"), "{:?}", profile.warnings());
    }
}
