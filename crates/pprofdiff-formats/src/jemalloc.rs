//! Heap profiles of jemalloc (`prof.dump`, `MALLOC_CONF=prof:true`), the format that `jeprof` reads:
//!
//! ```text
//! heap_v2/524288
//!   t*: 28106: 56637512 [0: 0]
//! @ 0x7f8e5c 0x55d2a1
//!   t*: 13: 6688 [0: 0]
//!   t0: 13: 6688 [0: 0]
//! MAPPED_LIBRARIES:
//! ```
//!
//! First comes the rate, then the sums of all threads and of each thread. Then each stack has its addresses from the
//! leaf, and its sums in the same form: objects and bytes in use, and all allocated objects and bytes, if jemalloc
//! counts them (`prof_accum`). They become `inuse_objects/count` and `inuse_space/bytes`, and optionally
//! `alloc_objects` and `alloc_space`. Sampled values are scaled up as `jeprof` does. Mapped libraries become mappings.
//! The sums of single threads are not read. The source is jemalloc, `src/prof_data.c` and `bin/jeprof.in`.

use crate::InputFormat;
use crate::legacy::{
    self, AddressStack, LegacyHead, Pattern, Sink, TextLines, address_part, addresses, decimal, group, unsample,
};
use pprofdiff_profile::{Error, Result};

pub(crate) const JEMALLOC: InputFormat = InputFormat {
    name: "jemalloc",
    about: "a heap profile of jemalloc: heap_v2/RATE",
    has_times: false,
    has_events: false,
    recognises: |head| HEADER.is_match(TextLines::new(head).next().unwrap_or_default()),
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        let (head, kind) = header(&mut lines)?;
        legacy::read(name, &head, lines, |lines, sink| stacks(lines, &kind, sink))
    },
};

static HEADER: Pattern = Pattern::new(r"(?-u)^heap_v2/([0-9]+)$");
static SUMS: Pattern = Pattern::new(r"(?-u)^\s*t(?:\*|[0-9]+): *([0-9]+): *([0-9]+) *\[ *([0-9]+): *([0-9]+) *\]\s*$");

/// The properties of the file that are needed to read its samples.
struct JemallocHeader {
    /// The mean number of allocated bytes between two samples.
    rate: i64,
    /// True if jemalloc counted all allocated objects and bytes, and not only those in use.
    has_allocated: bool,
}

/// Reads the header up to the sums of all threads, which show whether the file has all allocated objects and bytes.
fn header(lines: &mut TextLines<'_>) -> Result<(LegacyHead, JemallocHeader)> {
    let first = lines.next().unwrap_or_default();
    let header = HEADER.captures(first).ok_or_else(|| lines.error("is not a header of jemalloc, heap_v2/RATE"))?;
    let rate = decimal(group(&header, 1)).ok_or_else(|| lines.error("has a rate that is more than an int64 holds"))?;
    let mut has_allocated = false;
    let mut ahead = lines.clone();
    while let Some(line) = ahead.next_content().filter(|line| SUMS.is_match(line)) {
        if is_total(line) {
            let [_, _, objects, bytes] = sums(&ahead)?;
            has_allocated = objects != 0 || bytes != 0;
        }
    }
    const TYPES: [(&str, &str); 4] =
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    let head = LegacyHead::new(if has_allocated { &TYPES } else { &TYPES[2..] }, ("space", "bytes"), rate);
    Ok((head, JemallocHeader { rate, has_allocated }))
}

fn is_total(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"t*")
}

/// Parses the four numbers of the current line: objects and bytes in use, then all allocated objects and bytes.
fn sums(lines: &TextLines<'_>) -> Result<[i64; 4]> {
    let problem = "is neither a stack (@ 0x5 0x6) nor its sums (t*: 1: 2 [3: 4])";
    let numbers_of_line = SUMS.captures(lines.line).ok_or_else(|| lines.error(problem))?;
    let mut numbers = [0; 4];
    for (i, number) in numbers.iter_mut().enumerate() {
        *number = decimal(group(&numbers_of_line, i + 1)).ok_or_else(|| too_large(lines))?;
    }
    Ok(numbers)
}

fn too_large(lines: &TextLines<'_>) -> Error {
    lines.error("has a number that is more than an int64 holds")
}

fn stacks(lines: &mut TextLines<'_>, kind: &JemallocHeader, sink: &mut Sink<'_>) -> Result<()> {
    let (mut stack, mut in_stack) = (Vec::new(), false);
    while let Some(line) = lines.next_content() {
        if legacy::maps::begin_after(line) {
            break;
        }
        if let Some(text) = line.strip_prefix(b"@") {
            stack.clear();
            in_stack = true;
            if address_part(text) != text.trim_ascii_end() && !text.trim_ascii().is_empty() {
                return Err(lines.error("is not a stack of addresses, such as @ 0x5 0x6"));
            }
            if !addresses(text, 1, &mut stack) {
                return Err(lines.error("has an address of more than 64 bits"));
            }
            continue;
        }
        let [objects, bytes, all_objects, all_bytes] = sums(lines)?;
        if !in_stack || !is_total(line) {
            continue;
        }
        let pair = |count, size| unsample(count, size, kind.rate).ok_or_else(|| too_large(lines));
        let (used, allocated) = (pair(objects, bytes)?, pair(all_objects, all_bytes)?);
        let values = [allocated.0, allocated.1, used.0, used.1];
        let values = if kind.has_allocated { &values[..] } else { &values[2..] };
        sink(AddressStack { addresses: &stack, values, ..AddressStack::default() }).map_err(|e| lines.place(e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::LoadOptions;
    use pprofdiff_profile::Profile;

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    /// Formats each sample: addresses from the leaf with their binaries, and values.
    fn rows(p: &Profile) -> Vec<String> {
        let locations = p.locations();
        let sample = |s: pprofdiff_profile::samples::Sample<'_>| {
            let mut frames = Vec::new();
            s.for_each_location(|l| {
                let mapping = p.mappings().get(locations.mapping[l as usize] as usize);
                let file = mapping.map_or_else(String::new, |m| p.text(m.file));
                frames.push(format!("{:#x} {file}", locations.address[l as usize]));
            });
            let values: Vec<String> = (0..p.sample_types().len()).map(|i| s.value(i).to_string()).collect();
            format!("{}: {}", frames.join(" "), values.join(" "))
        };
        p.samples().map(sample).collect()
    }

    const MAPS: &str =
        "\nMAPPED_LIBRARIES:\n00400000-00500000 r-xp 00001000 fd:01 12 /a\n00600000-00700000 r-xp 0 fd:01 13 /b.so\n";

    #[test]
    fn sampled_values_are_scaled_up() {
        // At a rate of 1,000, one in 1.582 allocations of 1,000 bytes is sampled, and every allocation of 1,000,000
        // bytes.
        let text = format!(
            "heap_v2/1000\n  t*: 14: 3010000 [0: 0]\n  t0: 14: 3010000 [0: 0]\n@ 0x400010 0x600020\n  t*: 10: 10000 [0: 0]\n  \
             t0: 10: 10000 [0: 0]\n@ 0x600020\n  t*: 3: 3000000 [0: 0]\n@\n  t*: 1: 1000000 [0: 0]\n@ 0x1\n  t*: 0: 0 [0: 0]\n{MAPS}"
        );
        let p = load(&text).unwrap();
        let expected =
            ["0x40000f /a 0x60001f /b.so: 15 15819", "0x60001f /b.so: 3 3000000", ": 1 1000000", "0x0 : 0 0"];
        let actual = rows(&p);
        assert_eq!(actual[..3], expected[..3]);
        let types: Vec<String> = p.sample_types().into_iter().map(|t| t.0).collect();
        assert_eq!(types, ["inuse_objects", "inuse_space"]);
        let all = text
            .replace("t*: 14: 3010000 [0: 0]", "t*: 14: 3010000 [1: 5]")
            .replace("3000000 [0: 0]", "3000000 [6: 6000000]");
        let p = load(&all).unwrap();
        assert_eq!(rows(&p)[1], "0x60001f /b.so: 6 6000000 3 3000000");
        assert_eq!(p.sample_types()[0], ("alloc_objects".to_owned(), "count".to_owned()));
    }

    #[test]
    fn errors_name_the_line() {
        for (rest, words) in [
            ("@ 0x1\n  t*: 1: 2\n", "line 3: \"  t*: 1: 2\" is neither a stack"),
            ("@ 0x1 main\n", "line 2: \"@ 0x1 main\" is not a stack of addresses"),
            ("@ 0x1ffffffffffffffff\n", "line 2: \"@ 0x1ffffffffffffffff\" has an address of more than 64 bits"),
            ("@ 0x1\n t*: 9223372036854775808: 1 [0: 0]\n", "more than an int64 holds"),
            ("@ 0x1\n t*: 9223372036854775807: 1 [0: 0]\n", "more than an int64 holds"),
            ("x\n", "line 2: \"x\" is neither"),
        ] {
            let error = load(&format!("heap_v2/524288\n{rest}")).unwrap_err();
            assert!(error.to_string().contains(words), "{rest}: {error}");
        }
        assert!(load("heap_v2/99999999999999999999\n").unwrap_err().to_string().contains("line 1"));
    }
}
