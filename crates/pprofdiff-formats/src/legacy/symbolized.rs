//! Text profiles that begin with the names of their addresses, as `pprof --raw` of gperftools and php-memprof write
//! them:
//!
//! ```text
//! --- symbol
//! binary=index.php
//! 0x0000000000000001 main
//! 0x0000000000000002 load
//! ---
//! --- heap
//! heap profile:      1:     1024 [      1:     1024] @ heapprofile
//! ```
//!
//! The profile after the names is read as usual, and its locations get the names. Inlined functions are separated by
//! `--`, the caller first. gperftools names the address of a call, one byte before the return address in the stack, and
//! for the leaf the address itself. php-memprof numbers functions from 1, and names these numbers. A name may therefore
//! belong to the address in the stack, which is tried first, or to the address one below it.
//!
//! CPU profiles with names are not supported. Old versions of php-memprof wrote function numbers in them, which cannot
//! be distinguished from addresses of calls.

use super::{CONTENTION, HEAP, TextLines};
use crate::LoadOptions;
use crate::table::{HEAD, InputFormat};
use pprofdiff_profile::Profile;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::shared::{FoundLine, Symbolizer, Text};
use pprofdiff_profile::{Error, ErrorKind, Result};

pub(crate) const SYMBOLIZED: InputFormat = InputFormat {
    name: "symbolized",
    about: "a heap profile as text with names in front, of pprof --raw or php-memprof",
    has_times: false,
    has_events: false,
    recognises: |head| TextLines::new(head).next() == Some(BEGIN),
    read,
};

const BEGIN: &[u8] = b"--- symbol";

/// The formats of profiles that may follow the names.
const PROFILES: [InputFormat; 2] = [HEAP, CONTENTION];

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let mut lines = TextLines::new(&text);
    let names = read_names(&mut lines)?;
    // The kind of profile is on a line of its own, which some writers omit.
    let mut rest = lines.clone();
    if rest.next().is_some_and(|line| line.starts_with(b"--- ")) {
        lines = rest;
    }
    let profile = lines.rest;
    let head = &profile[..profile.len().min(HEAD)];
    let Some(format) = PROFILES.iter().find(|format| (format.recognises)(head)) else {
        let detail = "the profile after its names is not a heap or contention profile as text; read it without the names, \
                      and name the program with --binary";
        return Err(lines.place(Error::new(ErrorKind::OtherFormat, detail)));
    };
    let (names_size, part) = (text.len() - profile.len(), format!("the profile after line {}", lines.number));
    let profile = format.read(name, profile.to_vec(), options).map_err(|e| {
        let offset = e.offset().map(|offset| offset as usize + names_size);
        e.of_part(Some(&part), offset)
    })?;
    add_names(profile, &names, options.inflated_limit)
}

/// Reads the addresses and their names, up to and including the line after them. If an address occurs twice, its first
/// name counts.
fn read_names<'t>(lines: &mut TextLines<'t>) -> Result<HashMap<u64, &'t [u8]>> {
    if lines.next() != Some(BEGIN) {
        return Err(lines.error("is not \"--- symbol\", which begins the names of addresses"));
    }
    let mut names = HashMap::default();
    while let Some(line) = lines.next() {
        if line.starts_with(b"---") {
            return Ok(names);
        }
        let Some(named) = line.strip_prefix(b"0x") else { continue };
        let end = named.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(named.len());
        let address = std::str::from_utf8(&named[..end]).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let address = address.ok_or_else(|| lines.error("has no address of 64 bits"))?;
        names.entry(address).or_insert(named[end..].trim_ascii());
    }
    Err(Error::malformed("the names of its addresses do not end with a line ---"))
}

fn add_names(profile: Profile, names: &HashMap<u64, &[u8]>, limit: u64) -> Result<Profile> {
    // The symbolizer identifies texts by number.
    let mut numbers: HashMap<&[u8], u32> = HashMap::default();
    let mut symbolizer = Symbolizer::default();
    for location in 0..profile.locations().len() as u32 {
        let address = profile.locations().address[location as usize];
        // The reader of the profile has subtracted one from the addresses of the stack.
        let functions = address.checked_add(1).and_then(|next| names.get(&next)).or_else(|| names.get(&address));
        let Some(functions) = functions else { continue };
        let mut lines = Vec::new();
        let mut rest = Some(*functions);
        while let Some(text) = rest {
            let end = text.windows(2).position(|pair| pair == b"--");
            let function = &text[..end.unwrap_or(text.len())];
            rest = end.map(|end| &text[end + 2..]);
            if !function.is_empty() {
                let number = numbers.len() as u32;
                lines.push(Text { number: *numbers.entry(function).or_insert(number), bytes: function });
            }
        }
        let none = Text { number: u32::MAX, bytes: b"" };
        let line = |name| FoundLine { name, system_name: name, file: none, line: 0, column: 0, start_line: 0 };
        symbolizer.add(&profile, location, 0, lines.into_iter().rev().map(line));
    }
    symbolizer.finish(profile, limit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;

    const HEAP_OF_ONE: &str = "heap profile: 1: 1024 [1: 1024] @ heapprofile\n 1: 1024 [1: 1024] @";

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    #[test]
    fn locations_get_the_names_before_the_profile() {
        for (names, stack, expected) in [
            // php-memprof names function numbers.
            ("0x0000000000000001 main\n0x0000000000000002 load", "0x2 0x1", "main|load"),
            // gperftools names the leaf's address and the addresses of calls, with inlined functions.
            (
                "0x401000 take\n0x401fff f(int, char*)--g--\n0x402fff main",
                "0x401000 0x402000 0x403000",
                "main|f(int, char*)|g|take",
            ),
        ] {
            for kind in ["--- heap\n", ""] {
                let text = format!("--- symbol\nbinary=app\n{names}\n---\n{kind}{HEAP_OF_ONE} {stack}\n");
                let p = load(&text).unwrap();
                assert_eq!(rows(&p), [format!("{expected} bytes=1024: 1 1024")], "{text}");
                assert!(p.warnings().is_empty(), "{:?}", p.warnings());
            }
        }
    }

    #[test]
    fn errors_have_the_line_and_the_offset() {
        let names = "--- symbol\n0x1 f\n---\n";
        for (text, words, offset) in [
            ("--- symbol\n0x1 f\n".to_owned(), "do not end", None),
            (
                "--- symbol\n0x11111111111111111 f\n---\n".to_owned(),
                "line 2: \"0x11111111111111111 f\" has no address",
                Some(11),
            ),
            (format!("{names}--- profile\n\0\0\0\0"), "is not a heap or contention profile", Some(21)),
            (format!("{names}{HEAP_OF_ONE} 0x1\nx\n"), "is not a sample of a heap profile", Some(92)),
        ] {
            let error = load(&text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert_eq!(error.offset(), offset, "{text}: {error}");
        }
    }
}
