//! Heap and contention profiles of Java as text, and the list that describes each address, common to all Java profiles.
//!
//! ```text
//! --- heapz 1 ---
//! format = java
//! resolution = bytes
//!   7048   1 @ 0x00000003 0x00000004
//!      0x00000003 com.example.Parser.read (Parser.java:121)
//!      0x00000004 com.example.Main.run (Main.java:17)
//! ```
//!
//! The bytes or the time come before the count here. An address is only an index into the list, so it is not kept. A
//! frame without an entry in the list stays unnamed.

use super::{AddressStack, LegacyHead, Pattern, Sink, TextLines, addresses, decimal, group, literal, trim, unsample};
use crate::InputFormat;
use pprofdiff_profile::Profile;
use pprofdiff_profile::Result;
use pprofdiff_profile::builder::{FunctionId, LocationId, MappingId, ProfileBuilder};
use pprofdiff_profile::columns::{Mapping, StringId};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};

pub(crate) const JAVA: InputFormat = InputFormat {
    name: "java",
    about: "a heap or contention profile of Java as text",
    has_times: false,
    has_events: false,
    recognises: |head| is_heap(head) || is_contention(head),
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        let is_heap = match trim(lines.next().unwrap_or_default()) {
            HEAP => true,
            CONTENTION => false,
            _ => return Err(lines.error("is not a header, such as --- heapz 1 ---")),
        };
        let head = attributes(&mut lines, is_heap)?;
        let mut rest = lines.clone();
        stacks(&mut rest, &head, is_heap, &mut |_| Ok(()))?;
        read(name, &head, rest, |sink| stacks(&mut lines.clone(), &head, is_heap, sink))
    },
};

const HEAP: &[u8] = b"--- heapz 1 ---";
const CONTENTION: &[u8] = b"--- contentionz 1 ---";
/// The mean number of bytes between two samples of a heap profile, which the file does not contain.
const RATE: i64 = 512 << 10;

static ATTRIBUTE: Pattern = Pattern::new(r"(?-u)([\w ]+)=([\w ]+)");
static SAMPLE: Pattern = Pattern::new(r"(?-u) *([0-9]+) +([0-9]+) +@ +([ x0-9a-f]*)");
static LOCATION: Pattern = Pattern::new(r"(?-u)^\s*0x([[:xdigit:]]+)\s+(.*)\s*$");
static FILE_AND_LINE: Pattern = Pattern::new(r"(?-u)^(.*)\s+\((.+):(-?[0-9]+)\)$");
static FILE: Pattern = Pattern::new(r"(?-u)^(.*)\s+\((.*)\)$");

fn is_heap(head: &[u8]) -> bool {
    trim(TextLines::new(head).next().unwrap_or_default()) == HEAP
}

/// Returns true for a contention profile of Java. Contention profiles of gperftools have the same first line, but not
/// these attributes.
pub(super) fn is_contention(head: &[u8]) -> bool {
    let mut lines = TextLines::new(head);
    if trim(lines.next().unwrap_or_default()) != CONTENTION {
        return false;
    }
    while let Some(line) = lines.next() {
        match ATTRIBUTE.captures(line) {
            Some(attribute) if matches!(trim(group(&attribute, 1)), b"format" | b"resolution") => return true,
            None if !trim(line).is_empty() => return false,
            _ => {}
        }
    }
    false
}

/// Reads the attributes before the samples. The current line is then the last attribute.
fn attributes(lines: &mut TextLines<'_>, is_heap: bool) -> Result<LegacyHead> {
    let mut head = LegacyHead::default();
    loop {
        let previous = lines.clone();
        let Some(line) = lines.next() else { break };
        if trim(line).is_empty() {
            continue;
        }
        let Some(attribute) = ATTRIBUTE.captures(line) else {
            *lines = previous;
            break;
        };
        let (key, value) = (trim(group(&attribute, 1)), trim(group(&attribute, 2)));
        let number = || literal(value).ok_or_else(|| lines.error("is not set to a number"));
        match (key, is_heap) {
            (b"format", _) if value == b"java" => {}
            (b"resolution", _) => {
                let unit = String::from_utf8_lossy(value);
                let kinds = if is_heap { ["inuse_objects", "inuse_space"] } else { ["contentions", "delay"] };
                head.types = LegacyHead::new(&[(kinds[0], "count"), (kinds[1], &unit)], ("", ""), 0).types;
            }
            (b"sampling period", false) => {
                head = LegacyHead {
                    types: head.types,
                    duration_nanos: head.duration_nanos,
                    ..LegacyHead::new(&[], ("contentions", "count"), number()?)
                };
            }
            (b"ms since reset", false) => {
                let nanos = number()?.checked_mul(1_000_000);
                head.duration_nanos = nanos.ok_or_else(|| lines.error("is more nanoseconds than an int64 holds"))?;
            }
            _ => return Err(lines.error("is an unknown attribute of a Java profile")),
        }
    }
    Ok(head)
}

/// Passes all samples after the current line to the sink. The current line is then the last sample.
fn stacks(lines: &mut TextLines<'_>, head: &LegacyHead, is_heap: bool, sink: &mut Sink<'_>) -> Result<()> {
    let mut stack = Vec::new();
    loop {
        let previous = lines.clone();
        let Some(line) = lines.next() else { return Ok(()) };
        if trim(line).is_empty() {
            continue;
        }
        let Some(sample) = SAMPLE.captures(line) else {
            *lines = previous;
            return Ok(());
        };
        let too_large = || lines.error("has a number that is more than an int64 holds");
        let [size, count] = [1, 2].map(|i| decimal(group(&sample, i)));
        let (size, count) = size.zip(count).ok_or_else(too_large)?;
        stack.clear();
        if !addresses(group(&sample, 3), 0, &mut stack) {
            return Err(lines.error("has an address of more than 64 bits"));
        }
        let (values, block) = match (is_heap, head.period) {
            (true, _) if count == 0 => return Err(lines.error("has bytes without objects")),
            (true, _) => (unsample(count, size, RATE), Some(size / count)),
            (false, 0) => (Some((count, size)), None),
            (false, period) => (count.checked_mul(period).zip(size.checked_mul(period)), None),
        };
        let (count, size) = values.ok_or_else(too_large)?;
        sink(AddressStack { addresses: &stack, values: &[count, size], block, ..AddressStack::default() })
            .map_err(|e| lines.place(e))?;
    }
}

/// Reads a profile whose addresses are described in the next lines. `stacks` passes all stacks to a sink. It is called
/// twice: first to find the addresses that are used, then to add the samples.
pub(super) fn read(
    name: &str,
    head: &LegacyHead,
    mut lines: TextLines<'_>,
    stacks: impl Fn(&mut Sink<'_>) -> Result<()>,
) -> Result<Profile> {
    let mut builder = head.builder();
    let mut used = HashMap::<u64, Option<LocationId>>::default();
    stacks(&mut |stack| {
        used.extend(stack.addresses.iter().map(|&address| (address, None)));
        Ok(())
    })?;
    let mut functions = HashMap::default();
    while let Some(line) = lines.next() {
        let Some(entry) = LOCATION.captures(trim(line)) else { continue };
        let digits = std::str::from_utf8(group(&entry, 1)).unwrap_or_default();
        let address = u64::from_str_radix(digits, 16);
        let address = address.map_err(|_| lines.error("has an address of more than 64 bits"))?;
        if let Some(location) = used.get_mut(&address) {
            let (function, line) = function(group(&entry, 2), &mut functions, &mut builder);
            *location = Some(builder.location(None, 0, &[builder.line(function, line)])?);
        }
    }
    let bytes = builder.string("bytes");
    let (mut locations, mut unknown): (Vec<LocationId>, Option<MappingId>) = (Vec::new(), None);
    stacks(&mut |stack| {
        locations.clear();
        for address in stack.addresses {
            let existing = used.get(address).copied().flatten();
            let location = match existing {
                Some(location) => location,
                None if *address == 0 => builder.location(None, 0, &[])?,
                None => {
                    let all = Mapping::of_all_addresses();
                    let mapping = *unknown.get_or_insert_with(|| builder.mapping(all));
                    builder.location(Some(mapping), 0, &[])?
                }
            };
            locations.push(location);
        }
        let label = stack.block.map(|b| Label { key: bytes, value: LabelValue::Number(b, StringId::EMPTY) });
        builder.sample(&locations, stack.values, label.as_slice())
    })?;
    drop((used, functions));
    builder.build(name)
}

/// Parses the description of an address into a function and a line. Functions are identified by name, so the first file
/// counts, as in pprof.
fn function<'t>(
    text: &'t [u8],
    functions: &mut HashMap<&'t [u8], FunctionId>,
    builder: &mut ProfileBuilder,
) -> (FunctionId, i64) {
    let (name, file, line): (&[u8], &[u8], i64) = if let Some(captures) = FILE_AND_LINE.captures(text) {
        (group(&captures, 1), group(&captures, 2), decimal(group(&captures, 3)).unwrap_or(0).max(0))
    } else if let Some(captures) = FILE.captures(text) {
        // The file name of a library is enough, without its path.
        let path = group(&captures, 2);
        (group(&captures, 1), path.rsplit(|&b| b == b'/').find(|part| !part.is_empty()).unwrap_or_default(), 0)
    } else if text.windows(18).any(|w| w == b"generated stub/JIT") {
        (b"STUB", b"", 0)
    } else {
        (text, b"", 0)
    };
    (*functions.entry(name).or_insert_with(|| builder.function(name, file, 0)), line)
}
