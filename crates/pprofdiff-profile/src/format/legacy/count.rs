//! Go's counts of stacks as text (`debug=1` of net/http/pprof): goroutines, threads that were created, and any profile of
//! a program's own.
//!
//! ```text
//! goroutine profile: total 3
//! 2 @ 0x43a9c5 0x44b2f1
//! #   0x43a9c4    main.wait+0x24  /src/main.go:12
//! ```
//!
//! Comments say functions, lines and labels, which pprof passes over.

use super::super::InputFormat;
use super::{Head, Lines, Pattern, Sink, Stack, addresses, decimal, group, is_blank_or_comment, names};
use crate::error::Result;

pub(in crate::format) const GO_COUNT: InputFormat = InputFormat {
    name: "go-count",
    about: "a Go profile as text (debug=1): goroutine, threadcreate",
    has_times: false,
    has_events: false,
    recognises: |head| kind(Lines::new(head).next_content()).is_some(),
    read: |name, text, _| {
        let mut lines = Lines::new(&text);
        let kind = kind(lines.next_content());
        let kind = kind.ok_or_else(|| lines.error("is no header, such as goroutine profile: total 3"))?;
        super::read(name, &Head::new(&[(&kind, "count")], (&kind, "count"), 1), lines, stacks)
    },
};

static HEADER: Pattern = Pattern::new(r"(?-u)\A(\S+) profile: total [0-9]+\z");
static SAMPLE: Pattern = Pattern::new(r"(?-u)\A([0-9]+) @((?: 0x[0-9a-f]+)+)\z");

/// What a header says is counted.
fn kind(line: Option<&[u8]>) -> Option<String> {
    let found = HEADER.captures(line?)?;
    Some(String::from_utf8_lossy(group(&found, 1)).into_owned())
}

fn stacks(lines: &mut Lines<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let mut stack = Vec::new();
    while let Some(line) = lines.next() {
        if is_blank_or_comment(line) {
            continue;
        }
        if line.starts_with(b"---") {
            break;
        }
        let found = SAMPLE.captures(line).ok_or_else(|| lines.error("is no sample, such as 2 @ 0x43a9c5"))?;
        let count =
            decimal(group(&found, 1)).ok_or_else(|| lines.error("has a count that is more than an int64 holds"))?;
        stack.clear();
        if !addresses(group(&found, 2), 1, &mut stack) {
            return Err(lines.error("has an address of more than 64 bits"));
        }
        let labels = names::labels(lines.clone());
        sink(Stack { addresses: &stack, values: &[count], labels: &labels, ..Stack::default() })
            .map_err(|e| lines.place(e))?;
    }
    Ok(())
}
