//! Heap profiles as text: of gperftools (`heapprofile`, `growth`, `fragmentation`), tcmalloc (`heap_v2/RATE`) and Go
//! (`heap/RATE`, the page `heap?debug=1` of net/http/pprof).
//!
//! ```text
//! heap profile: 3: 48 [7: 112] @ heap_v2/524288
//! 3: 48 [7: 112] @ 0x40c1d5 0x42fb46
//! ```
//!
//! A line has the objects and bytes in use, then all allocated objects and bytes, which differ if some were freed.

use super::{AddressStack, LegacyHead, Pattern, Sink, TextLines, address_part, addresses, decimal, group, unsample};
use crate::InputFormat;
use pprofdiff_profile::{Error, Result};

pub(crate) const HEAP: InputFormat = InputFormat {
    name: "heap",
    about: "a heap profile as text, of gperftools or Go (debug=1)",
    has_times: false,
    has_events: false,
    recognises: |head| is_header(TextLines::new(head).next().unwrap_or_default()),
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        let (head, kind) = header(lines.next().unwrap_or_default()).map_err(|e| lines.place(e))?;
        super::read(name, &head, lines, |lines, sink| stacks(lines, &kind, sink))
    },
};

static SAMPLED: Pattern = Pattern::new(
    r"(?-u)heap profile: *([0-9]+): *([0-9]+) *\[ *([0-9]+): *([0-9]+) *\] *@ *(heap[_a-z0-9]*)/?([0-9]*)",
);
static COUNTED: Pattern =
    Pattern::new(r"(?-u)heap profile: *[0-9]+: *[0-9]+ *\[ *[0-9]+: *[0-9]+ *\] @ (?:growthz?|fragmentationz?)");
/// The beginning of a sample, before its addresses. The addresses are parsed without a regular expression.
static SAMPLE: Pattern = Pattern::new(r"(?-u)(-?[0-9]+): *(-?[0-9]+) *\[ *([0-9]+): *([0-9]+) *\] @");

fn is_header(line: &[u8]) -> bool {
    SAMPLED.is_match(line) || COUNTED.is_match(line)
}

/// The properties of the header that are needed to read the samples.
struct HeapHeader {
    /// True if the sums of all allocated objects or bytes are neither 0 nor equal to the sums in use.
    has_allocated: bool,
    /// The mean number of bytes between two samples, or `None` if the values are not sampled.
    rate: Option<i64>,
}

fn header(line: &[u8]) -> Result<(LegacyHead, HeapHeader)> {
    let (mut kind, mut period) = (HeapHeader { has_allocated: false, rate: None }, 1);
    if let Some(header) = SAMPLED.captures(line) {
        let [objects, bytes, all_objects, all_bytes, name, rate] = [1, 2, 3, 4, 5, 6].map(|i| group(&header, i));
        let rate = if rate.is_empty() { Some(0) } else { decimal(rate) };
        let rate = rate.ok_or_else(|| Error::malformed("the sampling rate is more than an int64 holds"))?;
        (period, kind.rate) = match name {
            b"heapz_v2" | b"heap_v2" => (rate, Some(rate)),
            b"heapprofile" => (1, None),
            // Go writes twice the rate, as older versions of gperftools did.
            b"heap" => (rate / 2, Some(rate / 2)),
            _ => {
                let name = String::from_utf8_lossy(name);
                let detail =
                    format!("unknown kind of heap profile {name}; the kinds are heap_v2, heapprofile and heap");
                return Err(Error::malformed(detail));
            }
        };
        kind.has_allocated =
            (all_objects != objects && all_objects != b"0") || (all_bytes != bytes && all_bytes != b"0");
    } else if !COUNTED.is_match(line) {
        return Err(Error::malformed(
            "this is not a header of a heap profile, such as heap profile: 1: 2 [3: 4] @ heap_v2/5",
        ));
    }
    // The last type is the default.
    const TYPES: [(&str, &str); 4] =
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    let types: &[_] = if kind.has_allocated { &TYPES } else { &[("objects", "count"), ("space", "bytes")] };
    Ok((LegacyHead::new(types, ("space", "bytes"), period), kind))
}

fn stacks(lines: &mut TextLines<'_>, kind: &HeapHeader, sink: &mut Sink<'_>) -> Result<()> {
    let mut stack = Vec::new();
    while let Some(line) = lines.next_content() {
        if super::maps::begin_after(line) {
            break;
        }
        let sample = "is not a sample of a heap profile, such as 1: 2 [3: 4] @ 0x5";
        let captures = SAMPLE.captures(line).ok_or_else(|| lines.error(sample))?;
        let too_large = || lines.error("has a number that is more than an int64 holds");
        let [objects, bytes, all_objects, all_bytes] = [1, 2, 3, 4].map(|i| decimal(group(&captures, i)));
        let mut block = 0;
        let mut pair = |count: Option<i64>, size: Option<i64>| {
            let (count, size) = count.zip(size).ok_or_else(too_large)?;
            if count == 0 {
                return if size == 0 { Ok([0, 0]) } else { Err(lines.error("has bytes without objects")) };
            }
            block = size.checked_div(count).ok_or_else(too_large)?;
            let values = kind.rate.map_or(Some((count, size)), |rate| unsample(count, size, rate));
            values.map(|(count, size)| [count, size]).ok_or_else(too_large)
        };
        let allocated = if kind.has_allocated { pair(all_objects, all_bytes)? } else { [0, 0] };
        let used = pair(objects, bytes)?;
        let values = [allocated[0], allocated[1], used[0], used[1]];
        stack.clear();
        let end = captures.get(0).map_or(0, |m| m.end());
        if !addresses(address_part(&line[end..]), 1, &mut stack) {
            return Err(lines.error("has an address of more than 64 bits"));
        }
        let values = if kind.has_allocated { &values[..] } else { &values[2..] };
        sink(AddressStack { addresses: &stack, values, block: Some(block), ..AddressStack::default() })
            .map_err(|e| lines.place(e))?;
    }
    Ok(())
}
