//! Go's text profiles that count stacks (`debug=1` of net/http/pprof): goroutines, created threads, and any custom
//! profile of a program.
//!
//! ```text
//! goroutine profile: total 3
//! 2 @ 0x43a9c5 0x44b2f1
//! #   0x43a9c4    main.wait+0x24  /src/main.go:12
//! ```
//!
//! Comments contain functions, lines and labels. pprof ignores them; this reader uses them (`names.rs`).

use super::{
    AddressStack, LegacyHead, Pattern, Sink, TextLines, addresses, decimal, group, is_blank_or_comment, names,
};
use crate::InputFormat;
use pprofdiff_profile::Result;

pub(crate) const GO_COUNT: InputFormat = InputFormat {
    name: "go-count",
    about: "a Go profile as text (debug=1): goroutine, threadcreate",
    has_times: false,
    has_events: false,
    recognises: |head| kind(TextLines::new(head).next_content()).is_some(),
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        let kind = kind(lines.next_content());
        let kind = kind.ok_or_else(|| lines.error("is not a header, such as goroutine profile: total 3"))?;
        super::read(name, &LegacyHead::new(&[(&kind, "count")], (&kind, "count"), 1), lines, stacks)
    },
};

static HEADER: Pattern = Pattern::new(r"(?-u)\A(\S+) profile: total [0-9]+\z");
static SAMPLE: Pattern = Pattern::new(r"(?-u)\A([0-9]+) @((?: 0x[0-9a-f]+)+)\z");

/// Returns the name of the profile in a header.
fn kind(line: Option<&[u8]>) -> Option<String> {
    let header = HEADER.captures(line?)?;
    Some(String::from_utf8_lossy(group(&header, 1)).into_owned())
}

fn stacks(lines: &mut TextLines<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let mut stack = Vec::new();
    while let Some(line) = lines.next() {
        if is_blank_or_comment(line) {
            continue;
        }
        if line.starts_with(b"---") {
            break;
        }
        let sample = SAMPLE.captures(line).ok_or_else(|| lines.error("is not a sample, such as 2 @ 0x43a9c5"))?;
        let count =
            decimal(group(&sample, 1)).ok_or_else(|| lines.error("has a count that is more than an int64 holds"))?;
        stack.clear();
        if !addresses(group(&sample, 2), 1, &mut stack) {
            return Err(lines.error("has an address of more than 64 bits"));
        }
        let labels = names::labels(lines.clone());
        sink(AddressStack { addresses: &stack, values: &[count], labels: &labels, ..AddressStack::default() })
            .map_err(|e| lines.place(e))?;
    }
    Ok(())
}
