//! All fuzz targets in one program, because compiling and linking each takes longer than a short run. FUZZ_TARGET in
//! the environment selects one. Without it, the program lists the targets with their maximum input size. With
//! FUZZ_INPUTS, it writes the known inputs of all targets into that folder.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use pprofdiff_fuzz::{TARGETS, write_inputs};

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let Ok(name) = std::env::var("FUZZ_TARGET") else {
        match std::env::var_os("FUZZ_INPUTS") {
            Some(folder) => write_inputs(Path::new(&folder)),
            None => TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.max_bytes)),
        }
        std::process::exit(0);
    };
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("there is no fuzz target {name:?}")).run
});

libfuzzer_sys::fuzz_target!(
    init: {
        LazyLock::force(&RUN);
    },
    |data: &[u8]| RUN(data)
);
