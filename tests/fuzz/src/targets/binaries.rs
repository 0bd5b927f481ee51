//! Any bytes as the binary of a profile: a one-line error, or a valid profile with names for some of its addresses, and
//! its instructions. The first byte of the input selects the addresses.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::inputs::Inputs;
use crate::shared::LIMIT;
use crate::tools::have;
use pprofdiff::binary::Binaries;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::columns::Mapping;
use pprofdiff::{Diff, Query, WriteOptions};

pub fn run(data: &[u8]) {
    let Some((start, binary)) = data.split_first() else { return };
    let profile = profile(u64::from(*start));
    std::fs::write(file(), binary).unwrap_or_else(|e| panic!("{e}"));
    let options = LIMIT.clone().with_binaries(Binaries::new(Vec::new(), vec![file().clone()]));
    match pprofdiff::from_bytes("in", &profile, &options) {
        Ok(profile) => {
            assert_eq!(profile.n_samples(), 64);
            let diff = Diff::of_profile(&profile.into()).unwrap_or_else(|e| panic!("{e}"));
            match diff.disasm(&Query::default(), ".", 8) {
                Ok(listing) => assert!(listing.routines.len() <= 8),
                Err(e) => assert!(!e.to_string().contains('\n'), "an error of several lines: {e}"),
            }
        }
        Err(e) => assert!(!e.to_string().contains('\n'), "an error of several lines: {e}"),
    }
}

/// Compiles a small program with lines and without, compressed and split, at four addresses each.
pub fn seeds() -> Inputs {
    const PROGRAM: &str =
        "static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); } int main(int n, char **v) { return f(n); }";
    const OPTIONS: [&str; 6] = ["-g -O2", "-O2", "-g -gz", "-gdwarf-2 -O1", "-gdwarf-4 -gsplit-dwarf", "-g -flto -O2"];
    if !have("cc", "--version", "build-essential", "fuzz target binaries") {
        return Vec::new();
    }
    let folder = std::env::temp_dir().join(format!("pprofdiff-fuzz-seeds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("seed.c"), PROGRAM).unwrap();
    let mut seeds = Vec::new();
    for (i, options) in OPTIONS.into_iter().enumerate() {
        let words = ["-nostdlib", "-shared", "-o", "seed.so", "seed.c"].into_iter().chain(options.split(' '));
        let status = Command::new("cc").args(words).current_dir(&folder).status().unwrap();
        assert!(status.success(), "cc {options} fails");
        let program = std::fs::read(folder.join("seed.so")).unwrap();
        seeds.extend((0..4).map(|start| (format!("{i}-{start}"), [&[start], &*program].concat())));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    seeds
}

/// Returns the path of the binary, in a memory file system if there is one.
fn file() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        folder.join(format!("pprofdiff-fuzz-{}", std::process::id()))
    })
}

/// Builds a profile with 64 addresses, starting at an offset given by `start`, of a program loaded at its link address.
fn profile(start: u64) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("samples", "count");
    let none = builder.string("");
    let mapping = Mapping { start: 0, limit: 0, offset: 0, file: none, build_id: none, flags: 0 };
    let mapping = builder.mapping(mapping);
    for i in 0..64 {
        let location = builder.location(Some(mapping), 0x1000 + start * 64 + i * 16, &[]);
        let sample = location.and_then(|l| builder.sample(&[l], &[1], &[]));
        sample.unwrap_or_else(|e| panic!("{e}"));
    }
    let built = builder.build("made").and_then(|p| p.to_bytes(&WriteOptions::default()));
    built.unwrap_or_else(|e| panic!("{e}"))
}
