//! What Go writes into comments beside its stacks, and pprof passes over: names of addresses, and labels.
//!
//! ```text
//! 2 @ 0x43a9c5 0x4e0cc5
//! # labels: {"role":"writer"}
//! #	0x4e0cc4\tmain.wait+0x24\t\t/src/main.go:12
//! ```
//!
//! The addresses are those of the calls, so one less than in the stack. Go leaves out the runtime's functions at the
//! leaf: these stay addresses.

use std::collections::{BTreeMap, HashMap};

use super::{Lines, Pattern, decimal, group};

/// What is at an address.
pub struct Name<'t> {
    pub function: &'t [u8],
    pub file: &'t [u8],
    pub line: i64,
}

static NAME: Pattern = Pattern::new(r"(?-u)\A#\t0x([0-9a-f]+)\t(.+)\+0x[0-9a-f]+\t+(.+):([0-9]+)\z");

/// The names that are in the lines from the next one on.
pub fn of(mut lines: Lines<'_>) -> HashMap<u64, Name<'_>> {
    let mut names = HashMap::new();
    while let Some(line) = lines.next() {
        if !line.starts_with(b"#\t0x") {
            continue;
        }
        let Some(found) = NAME.captures(line) else { continue };
        let address = std::str::from_utf8(group(&found, 1)).ok().and_then(|a| u64::from_str_radix(a, 16).ok());
        if let Some((address, line)) = address.zip(decimal(group(&found, 4))) {
            let (function, file) = (group(&found, 2), group(&found, 3));
            names.entry(address).or_insert(Name { function, file, line });
        }
    }
    names
}

/// The labels of a sample, from the line after it.
pub fn labels(mut lines: Lines<'_>) -> Vec<(String, String)> {
    let labels = lines.next().and_then(|line| line.strip_prefix(b"# labels: "));
    // Go quotes as JSON does, but for what no label should have.
    let labels = labels.and_then(|text| serde_json::from_slice::<BTreeMap<String, String>>(text).ok());
    labels.into_iter().flatten().collect()
}
