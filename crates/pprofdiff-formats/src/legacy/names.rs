//! Names of addresses, and labels, which Go writes as comments next to its stacks. pprof ignores them.
//!
//! ```text
//! 2 @ 0x43a9c5 0x4e0cc5
//! # labels: {"role":"writer"}
//! #    0x4e0cc4    main.wait+0x24    /src/main.go:12
//! ```
//!
//! These addresses are addresses of calls, so they are one less than in the stack. Go omits the runtime's functions at
//! the leaf, and `runtime.goexit` at the root, so an address without a name must be one of these. The source is
//! `printStackRecord` in Go's runtime/pprof.

use std::collections::BTreeMap;

use super::{Pattern, TextLines, decimal, group};
use pprofdiff_profile::random::HashMap;

/// The function, file and line of an address.
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
pub struct AddressNames<'t>(HashMap<u64, Name<'t>>);

impl<'t> AddressNames<'t> {
    /// Returns the name of an address, which may be the root of a stack. An address without a name is a function that
    /// Go left out: `runtime.goexit` at the root, and [`LEFT_OUT`] elsewhere. Returns `None` for files without names,
    /// and for addresses that Go could not name.
    pub fn find(&self, address: u64, is_root: bool) -> Option<Name<'t>> {
        if self.0.is_empty() {
            return None;
        }
        let left_out = Name { function: if is_root { b"runtime.goexit" } else { LEFT_OUT }, file: b"", line: 0 };
        Some(self.0.get(&address).copied().unwrap_or(left_out)).filter(|name| !name.function.is_empty())
    }
}

/// Reads the names in all lines after the current one.
pub fn read(mut lines: TextLines<'_>) -> AddressNames<'_> {
    let mut names = HashMap::default();
    while let Some(line) = lines.next() {
        if !line.starts_with(b"#\t0x") {
            continue;
        }
        let hex = |text| std::str::from_utf8(text).ok().and_then(|a| u64::from_str_radix(a, 16).ok());
        let Some(comment) = NAME.captures(line) else {
            // A comment with only an address means that Go had no name for it.
            if let Some(address) = hex(&line[4..]) {
                names.entry(address).or_insert(Name { function: b"", file: b"", line: 0 });
            }
            continue;
        };
        let address = hex(group(&comment, 1));
        if let Some((address, line)) = address.zip(decimal(group(&comment, 4))) {
            let (function, file) = (group(&comment, 2), group(&comment, 3));
            names.entry(address).or_insert(Name { function, file, line });
        }
    }
    AddressNames(names)
}

/// Reads the labels of a sample from the line after it. Returns no labels if this line does not contain valid labels.
pub fn labels(mut lines: TextLines<'_>) -> Vec<(String, String)> {
    let labels = lines.next().and_then(|line| line.strip_prefix(b"# labels: "));
    // Go's quoting matches JSON except for characters that labels should not contain.
    let labels = labels.and_then(|text| serde_json::from_slice::<BTreeMap<String, String>>(text).ok());
    labels.into_iter().flatten().collect()
}
