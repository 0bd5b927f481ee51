//! The C++ program whose builds the tests of symbols look into. Compiling it takes two seconds, so builds that several tests
//! look into are made once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{folder, run};

pub(super) fn parcels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/cpp/parcels.cc")
}

/// Compiles it into a folder, by g++ with options, as the file `name`.
pub(super) fn cpp(folder: &Path, name: &str, options: &str) -> PathBuf {
    run(folder, &format!("g++ -std=c++17 -pthread {options} -o {name} {}", parcels().display()));
    folder.join(name)
}

/// A build that nobody changes.
pub(super) fn compiled() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cpp(&folder("elsewhere"), "parcels", "-O1 -g"))
}

/// Another one.
pub(super) fn compiled_otherwise() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cpp(&folder("another-build"), "other", "-O2 -g"))
}
