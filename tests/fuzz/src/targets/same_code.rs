//! Any bytes as the binaries of two builds, whose functions are compared. The first two bytes are the length of the base's
//! binary. Two functions are only identical if they have the same bytes, a build never differs from itself, and the sides
//! can be swapped.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::inputs::Inputs;
use crate::tools::have;
use pprofdiff::binary::{Binary, Code, CodeComparison, Memory};

/// The maximum number of compared functions, so that an input does not take long.
const MAX_FUNCTIONS: usize = 40;

pub fn run(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let sides = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let memory = Memory::default();
    let (Some(base), Some(new)) = (code(0, sides.0, &memory), code(1, sides.1, &memory)) else { return };
    for f in base.functions().take(MAX_FUNCTIONS) {
        assert!(!is_changed(base.compare(f, &base, f, align)), "a build differs from itself");
        let Some(g) = new.find(base.origin(f)) else { continue };
        let (forward, backward) = (base.compare(f, &new, g, align), new.compare(g, &base, f, align));
        for (change, other) in [(forward, backward), (backward, forward)] {
            if change == CodeComparison::Identical {
                assert_eq!(base.bytes(f).1, new.bytes(g).1, "identical functions have other bytes");
            }
            let is_same = matches!(change, CodeComparison::Identical | CodeComparison::Relocated);
            assert!(!(is_same && is_changed(other)), "{change:?}, but swapped {other:?}");
        }
    }
}

fn is_changed(change: CodeComparison) -> bool {
    matches!(change, CodeComparison::Changed { .. })
}

/// Pairs the instructions in order, and leaves out the rest.
fn align(base: &[&str], new: &[&str]) -> Option<Vec<(Option<u32>, Option<u32>)>> {
    let number = |i: usize, len: usize| (i < len).then_some(i as u32);
    Some((0..base.len().max(new.len())).map(|i| (number(i, base.len()), number(i, new.len()))).collect())
}

/// Reads a binary through a file.
fn code<'m>(side: usize, bytes: &[u8], memory: &'m Memory) -> Option<Code<'m>> {
    let file = &files()[side];
    std::fs::write(file, bytes).unwrap_or_else(|e| panic!("{e}"));
    Binary::open(file).ok()?.code(&[], memory).ok()
}

/// Returns the paths of both binaries, in a memory file system if there is one.
fn files() -> &'static [PathBuf; 2] {
    static FILES: OnceLock<[PathBuf; 2]> = OnceLock::new();
    FILES.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        ["base", "new"].map(|side| folder.join(format!("pprofdiff-fuzz-code-{side}-{}", std::process::id())))
    })
}

/// Compiles a small program and an edited one whose functions are in another order.
pub fn seeds() -> Inputs {
    const PROGRAM: &str = "static const int table[] = {7, 1, 9, 4, 8, 2, 6, 5, 3, 0, 11};
        static int limits[] = {10, 20, 30}; int f(int n) { return n < 2 ? n : table[n % 11] + f(n - 2); }
        int g(int n) { switch (n) { case 0: return 5; case 1: return f(n); case 2: return limits[n % 3];
        case 3: return n * n; case 4: return 1 / n; case 5: return f(n + 1) - 2; } return 0; }
        const char *h(int n) { limits[n & 1]++; return n ? \"text\" : \"other\"; }
        double k(double x) { return x * 1.25 + 0.5; } int main(int n, char **v) { return f(n) + g(n) + (int)k(n); }";
    const OPTIONS: [&str; 4] =
        ["-O2 -shared -fPIC", "-O1 -no-pie -fno-pie", "-O2 -fno-plt -shared -fPIC", "-O3 -static-pie -fPIE"];
    if !have("cc", "--version", "build-essential", "fuzz target same_code") {
        return Vec::new();
    }
    let folder = std::env::temp_dir().join(format!("pprofdiff-fuzz-code-seeds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let moved = PROGRAM.replace("int f(int n)", "int z(int n) { return n * 3 + limits[1]; } int f(int n)");
    let edited = moved.replace("8, 2", "8, 3").replace("n * n", "n + n").replace("other", "outer");
    let mut seeds = Vec::new();
    for (i, options) in OPTIONS.into_iter().enumerate() {
        let build = |source: &str| {
            std::fs::write(folder.join("seed.c"), source).unwrap();
            let words = ["-nostdlib", "-Wl,-e,main", "-Wl,-z,noseparate-code", "-o", "seed", "seed.c"];
            let status = Command::new("cc").args(words).args(options.split(' ')).current_dir(&folder).status().unwrap();
            assert!(status.success(), "cc {options} fails");
            std::fs::read(folder.join("seed")).unwrap()
        };
        let base = build(PROGRAM);
        let length = u16::try_from(base.len()).unwrap().to_le_bytes();
        for (name, source) in [("moved", &moved), ("edited", &edited)] {
            seeds.push((format!("{i}-{name}"), [&length, &*base, &*build(source)].concat()));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    seeds
}
