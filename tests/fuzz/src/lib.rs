//! The fuzz targets. Each target is a file in `targets/` and a row of the table below. A target file has two functions:
//! `run` takes an input and panics if a promise is broken, and `seeds` returns inputs to start from.
//!
//! The program `fuzz` changes inputs at random. The test in `replay.rs` only runs the known inputs, and needs no fuzzing
//! engine.

mod inputs;
#[path = "../../oracle/mod.rs"]
mod oracle;
#[cfg(test)]
mod replay;
mod shared;
mod targets {
    pub mod binaries;
    pub mod delta;
    pub mod explains;
    pub mod filters;
    pub mod folded;
    pub mod inputs;
    pub mod layouts;
    pub mod load;
    pub mod oracle;
    pub mod same_code;
    pub mod stored;
    pub mod views;
    pub mod write;
}
#[path = "../../oracle/tools.rs"]
mod tools;

use inputs::Inputs;
pub use inputs::write_inputs;

/// A fuzz target.
pub struct Target {
    /// The name on the command line, and of the target's folders.
    pub name: &'static str,
    /// The maximum size of a generated input, in bytes.
    pub max_bytes: usize,
    /// Runs the target on an input. It panics if a promise is broken.
    pub run: fn(&[u8]),
    seeds: fn() -> Inputs,
}

/// All targets.
pub static TARGETS: [Target; 13] = [
    target("load", 65_536, targets::load::run, targets::load::seeds),
    target("views", 65_536, targets::views::run, targets::views::seeds),
    target("delta", 65_536, targets::delta::run, targets::delta::seeds),
    target("oracle", 8192, targets::oracle::run, targets::oracle::seeds), // quadratic in the input size
    target("write", 65_536, targets::write::run, targets::write::seeds),
    target("filters", 1024, targets::filters::run, targets::filters::seeds),
    target("layouts", 4096, targets::layouts::run, targets::layouts::seeds),
    target("explains", 1024, targets::explains::run, targets::explains::seeds),
    target("stored", 4096, targets::stored::run, targets::stored::seeds),
    target("folded", 65_536, targets::folded::run, targets::folded::seeds),
    target("inputs", 65_536, targets::inputs::run, targets::inputs::seeds),
    target("binaries", 65_536, targets::binaries::run, targets::binaries::seeds),
    target("same_code", 65_536, targets::same_code::run, targets::same_code::seeds),
];

const fn target(name: &'static str, max_bytes: usize, run: fn(&[u8]), seeds: fn() -> Inputs) -> Target {
    Target { name, max_bytes, run, seeds }
}
