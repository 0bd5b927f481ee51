//! Lock contention as text: gperftools' `contentionz`, and Go's `mutex` and `block` (`debug=1` of net/http/pprof).
//!
//! ```text
//! --- mutex:
//! cycles/second=2445406713
//! sampling period=1
//! 1234567 12 @ 0x4c5a11 0x4c5a0c
//! ```
//!
//! A line has the cycles waited, the number of contentions, and a stack. Both numbers are multiplied by the sampling
//! period. Cycles are converted to nanoseconds if the file has the number of cycles per second.

use super::{
    AddressStack, LegacyHead, Pattern, Sink, TextLines, address_part, addresses, decimal, group, literal, whole,
};
use super::{is_blank_or_comment, java, trim};
use crate::InputFormat;
use pprofdiff_profile::Result;

pub(crate) const CONTENTION: InputFormat = InputFormat {
    name: "contention",
    about: "waiting for locks as text, of gperftools or Go (debug=1)",
    has_times: false,
    has_events: false,
    recognises: |head| is_header(TextLines::new(head).next().unwrap_or_default()) && !java::is_contention(head),
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        if !is_header(lines.next().unwrap_or_default()) {
            return Err(lines.error("is not a header, such as --- mutex:"));
        }
        let (head, hertz) = attributes(&mut lines)?;
        super::read(name, &head, lines, |lines, sink| stacks(lines, head.period, hertz, sink))
    },
};

/// The beginning of a sample, before its addresses.
static SAMPLE: Pattern = Pattern::new(r"(?-u)([0-9]+) *([0-9]+) @");

fn is_header(line: &[u8]) -> bool {
    [&b"--- contentionz "[..], b"--- mutex:", b"--- contention:"].iter().any(|h| line.starts_with(h))
}

/// Reads the attributes before the first sample, which becomes the current line. Returns the cycles per second too, or
/// 0 if they are missing.
fn attributes(lines: &mut TextLines<'_>) -> Result<(LegacyHead, i64)> {
    let types = [("contentions", "count"), ("delay", "nanoseconds")];
    let (mut head, mut hertz) = (LegacyHead::new(&types, ("contentions", "count"), 1), 0);
    while let Some(line) = lines.next_content() {
        if trim(line).starts_with(b"---") {
            break;
        }
        let Some(equals) = line.iter().position(|&b| b == b'=') else { break };
        let (key, value) = (trim(&line[..equals]), trim(&line[equals + 1..]));
        let number = || literal(value).ok_or_else(|| lines.error("is not set to a number"));
        match key {
            b"cycles/second" => hertz = number()?,
            b"sampling period" => head.period = number()?,
            b"ms since reset" => {
                let nanos = number()?.checked_mul(1_000_000);
                head.duration_nanos = nanos.ok_or_else(|| lines.error("is more nanoseconds than an int64 holds"))?;
            }
            b"discarded samples" => {}
            _ => return Err(lines.error("is an unknown attribute of a contention profile")),
        }
    }
    Ok((head, hertz))
}

/// Passes the stacks from the current line on to the sink.
fn stacks(lines: &mut TextLines<'_>, period: i64, hertz: i64, sink: &mut Sink<'_>) -> Result<()> {
    let mut stack = Vec::new();
    loop {
        let line = trim(lines.line);
        if line.starts_with(b"---") {
            return Ok(());
        }
        if !is_blank_or_comment(line) {
            let sample = "is not a sample of a contention profile, such as 1234 5 @ 0x6";
            let captures = SAMPLE.captures(line).ok_or_else(|| lines.error(sample))?;
            let numbers = decimal(group(&captures, 1)).zip(decimal(group(&captures, 2)));
            let values = numbers.and_then(|(cycles, count)| unsample(cycles, count, period, hertz));
            let values = values.ok_or_else(|| lines.error("has a number that is more than an int64 holds"))?;
            stack.clear();
            let end = captures.get(0).map_or(0, |m| m.end());
            if !addresses(address_part(&line[end..]), 1, &mut stack) {
                return Err(lines.error("has an address of more than 64 bits"));
            }
            sink(AddressStack { addresses: &stack, values: &values, ..AddressStack::default() })
                .map_err(|e| lines.place(e))?;
        }
        if lines.next().is_none() {
            return Ok(());
        }
    }
}

/// Returns the number of contentions and the time waited, both multiplied by the sampling period. The time is in
/// nanoseconds, or in cycles if `hertz`, the cycles per second, is not positive. If the period is not positive, returns
/// the count and the cycles unchanged. Returns `None` if a result does not fit in an int64.
fn unsample(cycles: i64, count: i64, period: i64, hertz: i64) -> Option<[i64; 2]> {
    if period <= 0 {
        return Some([count, cycles]);
    }
    let delay = match hertz {
        1.. => whole(cycles as f64 * period as f64 / (hertz as f64 / 1e9))?,
        _ => cycles,
    };
    Some([count.checked_mul(period)?, delay])
}
