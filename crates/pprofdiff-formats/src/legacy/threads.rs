//! Stacks of all threads as text, from gperftools' `threadz`:
//!
//! ```text
//! --- threadz 1 ---
//!
//! --- Thread 7f794ab90940 (name: main/14748) stack: ---
//!   PC: 0x40ab8f 0x40ac10
//!   0x4035c9
//! --- Thread 7f794a31c700 (name: worker/14749) stack: ---
//!     [same as previous thread]
//! ```

use super::{AddressStack, LegacyHead, Pattern, Sink, TextLines, addresses, maps, trim};
use crate::InputFormat;
use pprofdiff_profile::Result;

pub(crate) const THREADS: InputFormat = InputFormat {
    name: "threads",
    about: "stacks of threads as text (threadz)",
    has_times: false,
    has_events: false,
    recognises: |head| {
        let line = TextLines::new(head).next_content().unwrap_or_default();
        START.is_match(line) || THREAD.is_match(line)
    },
    read: |name, text, _| {
        let mut lines = TextLines::new(&text);
        let line = lines.next_content().unwrap_or_default();
        if START.is_match(line) {
            while lines.next().is_some_and(|line| !maps::begin_after(line) && !line.starts_with(b"-")) {}
        } else if !THREAD.is_match(line) {
            return Err(lines.error("is not a header, such as --- threadz 1 ---"));
        }
        let head =
            LegacyHead { leaf_may_be_twice: true, ..LegacyHead::new(&[("thread", "count")], ("thread", "count"), 1) };
        super::read(name, &head, lines, stacks)
    },
};

static START: Pattern = Pattern::new(r"(?-u)--- threadz [0-9]+ ---");
static THREAD: Pattern = Pattern::new(r"(?-u)--- Thread ([[:xdigit:]]+) \(name: (.*)/([0-9]+)\) stack: ---");

/// Passes the stacks from the current line on to the sink. A thread without addresses, or with the same stack as the
/// previous thread, counts for the previous stack. It is ignored if there is none.
fn stacks(lines: &mut TextLines<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let (mut last, mut stack, mut count) = (Vec::new(), Vec::new(), 0);
    while !maps::begin_after(lines.line) && !lines.line.starts_with(b"---- no stack trace for") {
        if !THREAD.is_match(lines.line) {
            return Err(lines.error("is not a thread, such as --- Thread 7f79 (name: main/12) stack: ---"));
        }
        let same = read_stack(lines, &mut stack)?;
        if same || stack.is_empty() {
            count += i64::from(count > 0);
            continue;
        }
        if count > 0 {
            sink(AddressStack { addresses: &last, values: &[count], ..AddressStack::default() })
                .map_err(|e| lines.place(e))?;
        }
        std::mem::swap(&mut last, &mut stack);
        count = 1;
    }
    if count > 0 {
        sink(AddressStack { addresses: &last, values: &[count], ..AddressStack::default() })
            .map_err(|e| lines.place(e))?;
    }
    Ok(())
}

/// Reads a thread's addresses up to the next thread. Returns true if the thread has the same stack as the previous
/// thread.
fn read_stack(lines: &mut TextLines<'_>, stack: &mut Vec<u64>) -> Result<bool> {
    stack.clear();
    let mut same = false;
    while let Some(line) = lines.next().map(trim) {
        if line.starts_with(b"---") {
            break;
        }
        let words = b"same as previous thread";
        if line.windows(words.len()).any(|w| w == words) {
            same = true;
        } else if !addresses(line, 0, stack) {
            return Err(lines.error("has an address of more than 64 bits"));
        }
    }
    // All addresses except the leaf are return addresses.
    stack.iter_mut().skip(1).for_each(|address| *address = address.wrapping_sub(1));
    Ok(same)
}
