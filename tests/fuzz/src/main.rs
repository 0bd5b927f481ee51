//! All fuzz targets in one program, because compiling and linking each takes longer than a short run. FUZZ_TARGET in
//! the environment selects one. Without it, the program lists the targets with their maximum input size.
//!
//! Each target is a file in `targets/` and a row of the table below.

#![no_main]

#[path = "../../oracle/mod.rs"]
mod oracle;
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
    pub mod stored;
    pub mod views;
    pub mod write;
}

use std::sync::LazyLock;

type Target = (&'static str, usize, fn(&[u8]));

/// Name, maximum input size in bytes, and function of each target.
const TARGETS: [Target; 12] = [
    ("load", 65_536, targets::load::run),
    ("views", 65_536, targets::views::run),
    ("delta", 65_536, targets::delta::run),
    ("oracle", 8192, targets::oracle::run), // quadratic in the input size
    ("write", 65_536, targets::write::run),
    ("filters", 1024, targets::filters::run),
    ("layouts", 4096, targets::layouts::run),
    ("explains", 1024, targets::explains::run),
    ("stored", 4096, targets::stored::run),
    ("folded", 65_536, targets::folded::run),
    ("inputs", 65_536, targets::inputs::run),
    ("binaries", 65_536, targets::binaries::run),
];

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let Ok(name) = std::env::var("FUZZ_TARGET") else {
        TARGETS.iter().for_each(|(name, max_len, _)| println!("{name} {max_len}"));
        std::process::exit(0);
    };
    let target = TARGETS.iter().find(|target| target.0 == name);
    target.unwrap_or_else(|| panic!("there is no fuzz target {name:?}")).2
});

libfuzzer_sys::fuzz_target!(
    init: {
        LazyLock::force(&RUN);
    },
    |data: &[u8]| RUN(data)
);
