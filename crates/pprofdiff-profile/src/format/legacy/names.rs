//! What Go writes into comments beside its stacks, and pprof passes over: names of addresses, and labels.
//!
//! ```text
//! 2 @ 0x43a9c5 0x4e0cc5
//! # labels: {"role":"writer"}
//! #    0x4e0cc4    main.wait+0x24    /src/main.go:12
//! ```
//!
//! The addresses are those of the calls, so one less than in the stack. Go leaves out the runtime's functions at the
//! leaf, and `runtime.goexit` at the root; what is not named is one of these. (`printStackRecord` in Go's runtime/pprof.)

use std::collections::BTreeMap;

use super::{Lines, Pattern, decimal, group};
use crate::random::HashMap;

/// What is at an address.
#[derive(Clone, Copy)]
pub struct Name<'t> {
    pub function: &'t [u8],
    pub file: &'t [u8],
    pub line: i64,
}

static NAME: Pattern = Pattern::new(r"(?-u)\A#\t0x([0-9a-f]+)\t(.+)\+0x[0-9a-f]+\t+(.+):([0-9]+)\z");

/// The name of a function that Go left out.
const LEFT_OUT: &[u8] = b"runtime.(unnamed)";

/// The names in a text.
#[derive(Default)]
pub struct Names<'t>(HashMap<u64, Name<'t>>);

impl<'t> Names<'t> {
    /// What is at an address, which is the root of a stack or not; `None` if there are no names, or Go had none either.
    pub fn at(&self, address: u64, is_root: bool) -> Option<Name<'t>> {
        if self.0.is_empty() {
            return None;
        }
        let left_out = Name { function: if is_root { b"runtime.goexit" } else { LEFT_OUT }, file: b"", line: 0 };
        Some(self.0.get(&address).copied().unwrap_or(left_out)).filter(|name| !name.function.is_empty())
    }
}

/// The names that are in the lines from the next one on.
pub fn read(mut lines: Lines<'_>) -> Names<'_> {
    let mut names = HashMap::default();
    while let Some(line) = lines.next() {
        if !line.starts_with(b"#\t0x") {
            continue;
        }
        let hex = |text| std::str::from_utf8(text).ok().and_then(|a| u64::from_str_radix(a, 16).ok());
        let Some(found) = NAME.captures(line) else {
            // An address alone has no name.
            if let Some(address) = hex(&line[4..]) {
                names.entry(address).or_insert(Name { function: b"", file: b"", line: 0 });
            }
            continue;
        };
        let address = hex(group(&found, 1));
        if let Some((address, line)) = address.zip(decimal(group(&found, 4))) {
            let (function, file) = (group(&found, 2), group(&found, 3));
            names.entry(address).or_insert(Name { function, file, line });
        }
    }
    Names(names)
}

/// The labels of a sample, from the line after it.
pub fn labels(mut lines: Lines<'_>) -> Vec<(String, String)> {
    let labels = lines.next().and_then(|line| line.strip_prefix(b"# labels: "));
    // Go quotes as JSON does, but for what no label should have.
    let labels = labels.and_then(|text| serde_json::from_slice::<BTreeMap<String, String>>(text).ok());
    labels.into_iter().flatten().collect()
}
