//! The C++ program for the tests of symbols. Compiling takes two seconds, so builds that several tests use are compiled
//! once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{folder, run};

pub(super) fn parcels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/cpp/parcels.cc")
}

/// Compiles the program with g++ and these options, as the file `name` in the folder.
pub(super) fn cpp(folder: &Path, name: &str, options: &str) -> PathBuf {
    run(folder, &format!("g++ -std=c++17 -pthread {options} -o {name} {}", parcels().display()));
    folder.join(name)
}

/// Returns a shared build that tests must not modify.
pub(super) fn compiled() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cpp(&folder("elsewhere"), "parcels", "-O1 -g"))
}

/// Returns a shared second build, with other options.
pub(super) fn compiled_otherwise() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cpp(&folder("another-build"), "other", "-O2 -g"))
}
