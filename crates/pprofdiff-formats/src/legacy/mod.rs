//! The formats that pprof read before `profile.proto`, and still reads: formats of gperftools and Go. Each has a
//! module. This file has their common parts: lines of text, addresses in a text, and a profile of stacks of addresses.
//!
//! All formats have stacks of addresses. Most end in a list of mapped binaries, which locations need, so the stacks are
//! read twice instead of being stored. The resulting values match `go tool pprof`, including its corrections for known
//! errors of the profilers; the comments mark these with "as in pprof". The source is google/pprof,
//! `profile/legacy_profile.go` and `legacy_java_profile.go`.

mod contention;
mod count;
mod cpu;
mod heap;
mod java;
pub(super) mod maps;
mod names;
mod symbolized;
mod threads;

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex};

pub(super) use contention::CONTENTION;
pub(super) use count::GO_COUNT;
pub(super) use cpu::GPERFTOOLS_CPU;
pub(super) use heap::HEAP;
pub(super) use java::JAVA;
pub(super) use symbolized::SYMBOLIZED;
pub(super) use threads::THREADS;

use maps::Mappings;
use names::AddressNames;
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::cancellation::ByteCheckpointer;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Result};

/// A stack of addresses from the leaf.
#[derive(Default)]
pub(super) struct AddressStack<'a> {
    pub addresses: &'a [u64],
    /// One value per sample type.
    pub values: &'a [i64],
    /// The size of a block of memory, for the label `bytes`.
    pub block: Option<i64>,
    /// Pairs of key and value.
    pub labels: &'a [(String, String)],
}

/// A function that receives the stacks of a file.
pub(super) type Sink<'s> = dyn FnMut(AddressStack<'_>) -> Result<()> + 's;

/// The properties of a file besides its stacks.
#[derive(Default)]
pub(super) struct LegacyHead {
    pub types: Vec<(String, String)>,
    pub period_type: (String, String),
    pub period: i64,
    pub duration_nanos: i64,
    /// True if the profiler may have written the leaf twice: as the interrupted address, and as the first return
    /// address.
    pub leaf_may_be_twice: bool,
}

impl LegacyHead {
    pub(super) fn new(types: &[(&str, &str)], period_type: (&str, &str), period: i64) -> LegacyHead {
        let owned = |t: (&str, &str)| (t.0.to_owned(), t.1.to_owned());
        let types = types.iter().copied().map(owned).collect();
        LegacyHead { types, period_type: owned(period_type), period, ..LegacyHead::default() }
    }

    /// Returns a profile builder with these properties and without samples.
    pub(super) fn builder(&self) -> ProfileBuilder {
        let mut builder = ProfileBuilder::new();
        self.types.iter().for_each(|(kind, unit)| builder.sample_type(kind, unit));
        if !self.period_type.0.is_empty() {
            builder.period(&self.period_type.0, &self.period_type.1, self.period);
        }
        builder.header().duration_nanos = self.duration_nanos;
        set_uninteresting(&mut builder, &self.types);
        builder
    }
}

/// Reads a text of stacks. `stacks` passes all stacks from the current line on to a sink, and stops at the last stack.
/// It is called twice: first only to find the list of mapped binaries after the stacks, then to add the stacks.
pub(super) fn read(
    name: &str,
    head: &LegacyHead,
    mut lines: TextLines<'_>,
    stacks: impl Fn(&mut TextLines<'_>, &mut Sink<'_>) -> Result<()>,
) -> Result<Profile> {
    let mut rest = lines.clone();
    stacks(&mut rest, &mut |_| Ok(()))?;
    let names = names::read(lines.clone());
    while !maps::begin_after(rest.line) && rest.next().is_some() {}
    let mut profile = Addresses::new(head, rest)?;
    profile.names = names;
    stacks(&mut lines, &mut |stack| profile.add(&stack))?;
    profile.build(name)
}

/// A profile of stacks of addresses.
pub(super) struct Addresses<'t> {
    builder: ProfileBuilder,
    names: AddressNames<'t>,
    mappings: Mappings,
    locations: HashMap<u64, LocationId>,
    stack: Vec<LocationId>,
    labels: Vec<Label>,
    bytes: StringId,
    leaf_may_be_twice: bool,
}

impl Addresses<'_> {
    /// Creates a profile with the mappings in the lines after the current one.
    pub(super) fn new(head: &LegacyHead, maps: TextLines<'_>) -> Result<Self> {
        let mut builder = head.builder();
        let mappings = Mappings::read(maps, &mut builder)?;
        let bytes = builder.string("bytes");
        let (names, locations) = (AddressNames::default(), HashMap::default());
        let (stack, labels) = (Vec::new(), Vec::new());
        Ok(Addresses {
            builder,
            names,
            mappings,
            locations,
            stack,
            labels,
            bytes,
            leaf_may_be_twice: head.leaf_may_be_twice,
        })
    }

    pub(super) fn add(&mut self, stack: &AddressStack<'_>) -> Result<()> {
        self.stack.clear();
        for (i, &address) in stack.addresses.iter().enumerate() {
            let location = match self.locations.get(&address) {
                Some(&location) => location,
                None => {
                    let mapping =
                        if address == 0 { None } else { Some(self.mappings.find(address, &mut self.builder)?) };
                    let line = self.names.find(address, i + 1 == stack.addresses.len()).map(|name| {
                        let function = self.builder.function(name.function, name.file, 0);
                        self.builder.line(function, name.line)
                    });
                    let new = self.builder.location(mapping, address, line.as_slice())?;
                    self.locations.insert(address, new);
                    new
                }
            };
            self.stack.push(location);
        }
        if let [leaf, next, ..] = stack.addresses
            && self.leaf_may_be_twice
            && *leaf == next.wrapping_add(1)
        {
            self.stack.remove(1);
        }
        self.labels.clear();
        let block = stack.block.map(|b| Label { key: self.bytes, value: LabelValue::Number(b, StringId::EMPTY) });
        self.labels.extend(block);
        for (key, value) in stack.labels {
            let (key, value) = (self.builder.string(key), self.builder.string(value));
            self.labels.push(Label { key, value: LabelValue::Text(value) });
        }
        self.builder.sample(&self.stack, stack.values, &self.labels)
    }

    pub(super) fn build(self, name: &str) -> Result<Profile> {
        let Addresses { builder, names, locations, mappings, .. } = self;
        drop((names, locations, mappings));
        builder.build(name)
    }
}

/// A text, line by line.
#[derive(Clone)]
pub(super) struct TextLines<'t> {
    /// The current line, without its end; empty before the first.
    pub line: &'t [u8],
    rest: &'t [u8],
    pace: ByteCheckpointer,
    /// The number of bytes before the current line.
    offset: usize,
    /// The number of the current line, from 1.
    number: u64,
    /// The number of bytes of the text.
    len: usize,
}

impl<'t> TextLines<'t> {
    pub(super) fn new(text: &'t [u8]) -> TextLines<'t> {
        // Some editors write a byte order mark first.
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        TextLines { line: &[], rest, pace: ByteCheckpointer::default(), offset: 0, number: 0, len: text.len() }
    }

    /// Returns the lines of the text that begins at an offset of a binary file.
    pub(super) fn after(text: &'t [u8], offset: usize) -> TextLines<'t> {
        let rest = text.get(offset..).unwrap_or_default();
        TextLines { line: &[], rest, pace: ByteCheckpointer::default(), offset, number: 0, len: text.len() }
    }

    /// Moves to the next line, and returns it.
    pub(super) fn next(&mut self) -> Option<&'t [u8]> {
        if self.rest.is_empty() {
            self.line = &[];
            return None;
        }
        self.pace.left(self.rest.len());
        self.offset = self.len - self.rest.len();
        self.number += 1;
        let end = self.rest.iter().position(|&b| b == b'\n');
        let (line, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.get(1..).unwrap_or_default();
        self.line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(self.line)
    }

    /// Moves to the next line that is neither blank nor a comment, and returns it.
    pub(super) fn next_content(&mut self) -> Option<&'t [u8]> {
        while let Some(line) = self.next() {
            if !is_blank_or_comment(line) {
                return Some(line);
            }
        }
        None
    }

    /// Adds the number and the offset of the current line to an error.
    pub(super) fn place(&self, error: Error) -> Error {
        let number = self.number;
        error.in_record(|| format!("line {number}")).at(self.offset)
    }

    /// Returns an error about the current line, which quotes the line.
    pub(super) fn error(&self, problem: &str) -> Error {
        self.place(Error::malformed(format!("{} {problem}", crate::table::quoted(self.line))))
    }
}

pub(super) fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(trim(line).first(), None | Some(b'#'))
}

/// Trims Unicode white space at both ends, as in pprof. A byte that is not valid UTF-8 is not white space.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let first = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let text = &text[first.len() - first.trim_start().len()..];
    let last = text.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty()).map_or("", |chunk| chunk.valid());
    &text[..text.len() - (last.len() - last.trim_end().len())]
}

/// A regular expression, compiled when it is first used.
pub(super) struct Pattern(&'static str, OnceLock<Option<Regex>>);

impl Pattern {
    pub(super) const fn new(pattern: &'static str) -> Pattern {
        Pattern(pattern, OnceLock::new())
    }

    pub(super) fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.1.get_or_init(|| Regex::new(self.0).ok()).as_ref()?.captures(text)
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.captures(text).is_some()
    }
}

/// Returns the text that a group matched, or an empty text if it did not match.
pub(super) fn group<'t>(captures: &Captures<'t>, i: usize) -> &'t [u8] {
    captures.get(i).map_or(&[], |m| m.as_bytes())
}

/// Parses a decimal number. Returns `None` if it is not a number or does not fit.
pub(super) fn decimal(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a decimal number, or a hexadecimal number with `0x`. Returns `None` if it is not a number or does not fit.
pub(super) fn literal(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Appends every `0x...` of a text, with lower-case digits as the profilers write them. Subtracts `less` from each
/// address, because profilers write return addresses. Returns false if an address has more than 64 bits.
pub(super) fn addresses(text: &[u8], less: u64, out: &mut Vec<u64>) -> bool {
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|&b| b == b'0') {
        rest = &rest[zero + 1..];
        let Some(digits) = rest.strip_prefix(b"x") else { continue };
        let n = digits.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).count();
        if n == 0 {
            continue;
        }
        let digits = std::str::from_utf8(&digits[..n]).unwrap_or_default();
        let Ok(address) = u64::from_str_radix(digits, 16) else { return false };
        out.push(address.wrapping_sub(less));
        rest = &rest[1 + n..];
    }
    true
}

/// Returns the beginning of a text that consists of addresses. The text follows an `@`.
pub(super) fn address_part(text: &[u8]) -> &[u8] {
    let n = text.iter().take_while(|b| matches!(b, b' ' | b'x' | b'0'..=b'9' | b'a'..=b'f')).count();
    &text[..n]
}

/// Scales a sampled number of objects and bytes up to the estimated total. An allocation of S bytes is sampled with the
/// probability 1 - e^(-S/rate); S is the mean size of the sampled objects. Both results are 0 if one of the numbers is
/// 0. Returns `None` if a result does not fit in an int64.
pub(super) fn unsample(count: i64, size: i64, rate: i64) -> Option<(i64, i64)> {
    if count == 0 || size == 0 {
        return Some((0, 0));
    }
    // Every allocation was sampled, or the rate is unknown.
    if rate <= 1 {
        return Some((count, size));
    }
    let mean = size as f64 / count as f64;
    let scale = 1.0 / (1.0 - (-mean / rate as f64).exp());
    Some((whole(count as f64 * scale)?, whole(size as f64 * scale)?))
}

/// Truncates a number to an integer. Returns `None` if it does not fit.
pub(super) fn whole(v: f64) -> Option<i64> {
    // 2^63 is a valid float, but does not fit in an int64.
    (v.abs() < 9_223_372_036_854_775_808.0).then_some(v as i64)
}

/// Sets the patterns for the profilers' own frames, which are dropped once frames have names, as in pprof.
fn set_uninteresting(builder: &mut ProfileBuilder, types: &[(String, String)]) {
    let has = |kind: &str| types.iter().any(|t| t.0 == kind);
    let (drop, keep) = match () {
        () if has("space") || has("inuse_space") => (ALLOCATORS, GO_ENTRIES),
        () if has("contentions") => (LOCKS, &[][..]),
        () => (SIGNAL_HANDLERS, &[][..]),
    };
    let (drop, keep) = (builder.string(drop.join("|")), builder.string(keep.join("|")));
    (builder.header().drop_frames, builder.header().keep_frames) = (drop, keep);
}

/// Functions that allocate, of POSIX, tcmalloc, macOS, Go and C++.
#[rustfmt::skip]
const ALLOCATORS: &[&str] = &[
    "calloc", "cfree", "malloc", "free", "memalign", "do_memalign", "(__)?posix_memalign", "pvalloc", "valloc", "realloc",
    r"tcmalloc::.*", "tc_calloc", "tc_cfree", "tc_malloc", "tc_free", "tc_memalign", "tc_posix_memalign", "tc_pvalloc",
    "tc_valloc", "tc_realloc", "tc_new", "tc_delete", "tc_newarray", "tc_deletearray", "tc_new_nothrow",
    "tc_newarray_nothrow",
    "malloc_zone_malloc", "malloc_zone_calloc", "malloc_zone_valloc", "malloc_zone_realloc", "malloc_zone_memalign",
    "malloc_zone_free",
    r"runtime\..*",
    "BaseArena::.*", "(::)?do_malloc_no_errno", "(::)?do_malloc_pages", "(::)?do_malloc", "DoSampledAllocation",
    "MallocedMemBlock::MallocedMemBlock", "_M_allocate", "__builtin_(vec_)?delete", "__builtin_(vec_)?new",
    "__gnu_cxx::new_allocator::allocate", "__libc_malloc", "__malloc_alloc_template::allocate", "allocate", "cpp_alloc",
    r"operator new(\[\])?", "simple_alloc::allocate",
];

/// Functions of Go's runtime that are kept although they match the pattern of dropped frames.
const GO_ENTRIES: &[&str] = &[r"runtime\.panic", r"runtime\.reflectcall", r"runtime\.call[0-9]*"];

const SIGNAL_HANDLERS: &[&str] = &[
    "ProfileData::Add",
    "ProfileData::prof_handler",
    "CpuProfiler::prof_handler",
    "__pthread_sighandler",
    "__restore",
];

/// Functions that measure waiting for locks.
#[rustfmt::skip]
const LOCKS: &[&str] = &[
    "RecordLockProfileData", "(base::)?RecordLockProfileData.*", "(base::)?SubmitMutexProfileData.*",
    "(base::)?SubmitSpinLockProfileData.*", "(base::Mutex::)?AwaitCommon.*", "(base::Mutex::)?Unlock.*",
    "(base::Mutex::)?UnlockSlow.*", "(base::Mutex::)?ReaderUnlock.*", "(base::MutexLock::)?~MutexLock.*",
    "(Mutex::)?AwaitCommon.*", "(Mutex::)?Unlock.*", "(Mutex::)?UnlockSlow.*", "(Mutex::)?ReaderUnlock.*",
    "(MutexLock::)?~MutexLock.*", "(SpinLock::)?Unlock.*", "(SpinLock::)?SlowUnlock.*",
    "(SpinLockHolder::)?~SpinLockHolder.*",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_line_ends_work_and_errors_have_offsets() {
        assert_eq!(TextLines::new(b"\xef\xbb\xbfa\n").next(), Some(&b"a"[..]));
        let mut lines = TextLines::new(b"a\r\n\n# c\nb");
        assert_eq!(lines.next_content(), Some(&b"a"[..]));
        assert_eq!(lines.next_content(), Some(&b"b"[..]));
        let error = lines.error("is wrong");
        assert_eq!((error.record(), error.offset()), (Some("line 4"), Some(8)));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn unicode_white_space_is_trimmed() {
        for (text, expected) in [
            (&b" \t\x0b a\x0bb \x0c\r"[..], &b"a\x0bb"[..]),
            ("\u{85}\u{a0}é\u{2003}".as_bytes(), "é".as_bytes()),
            (b" \xff \xfe ", b"\xff \xfe"),
            (b"\xa0 ", b"\xa0"),
            (b"\x0b", b""),
            (b"", b""),
        ] {
            assert_eq!(trim(text), expected, "{text:?}");
        }
    }

    #[test]
    fn addresses_are_parsed_anywhere_in_a_text() {
        let all = |text: &str, less| {
            let mut out = Vec::new();
            addresses(text.as_bytes(), less, &mut out).then_some(out)
        };
        for (text, less, expected) in [
            (" 0x1 0xff00", 0, Some(vec![1, 0xff00])),
            ("00x10x2;0X3 0x 0xg 0xA", 1, Some(vec![0xf])),
            ("0x0 0x10x20", 1, Some(vec![u64::MAX, 0xf])),
            ("0xffffffffffffffff", 0, Some(vec![u64::MAX])),
            ("0x10000000000000000", 0, None),
            ("@ 0x00000000000000000012", 0, Some(vec![0x12])),
        ] {
            assert_eq!(all(text, less), expected, "{text}");
        }
    }

    #[test]
    fn sampled_values_are_scaled_up() {
        // By hand: 1 / (1 - e^(-1024 / 524288)) is 512.5.
        assert_eq!(unsample(1, 1024, 524_288), Some((512, 524_800)));
        assert_eq!(unsample(7, 0, 524_288), Some((0, 0)));
        assert_eq!(unsample(7, 70, 1), Some((7, 70)));
        assert_eq!(unsample(i64::MAX, i64::MAX, 1 << 40), None);
    }
}
