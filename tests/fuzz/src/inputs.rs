//! The known inputs of a target: its seeds, and the files of `regressions/TARGET`, which once broke it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::{TARGETS, Target, oracle};

/// Names and contents.
pub type Inputs = Vec<(String, Vec<u8>)>;

/// The maximum size of a seed from a file of the corpus. libFuzzer changes larger inputs slowly, and two such profiles
/// fit into one input.
pub const MAX_BYTES: usize = 40_000;

impl Target {
    /// Returns the seeds and the regressions.
    pub fn inputs(&self) -> Inputs {
        let mut inputs = (self.seeds)();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(self.name);
        if folder.is_dir() {
            inputs.extend(files(&folder).into_iter().map(|path| (name(&path), fs::read(&path).unwrap())));
        }
        inputs
    }
}

/// Writes the known inputs of all targets to `FOLDER/TARGET/NAME`.
pub fn write_inputs(folder: &Path) {
    for target in &TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder).unwrap();
        for (name, data) in target.inputs() {
            fs::write(folder.join(name), data).unwrap();
        }
    }
}

/// Returns the files of a folder, sorted by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// Returns a path's file name.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Returns the start of a file, decompressed if its name ends in .gz.
pub fn start_of(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut start = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(&*bytes).take(MAX_BYTES as u64).read_to_end(&mut start).unwrap();
    } else {
        start.extend(bytes.iter().take(MAX_BYTES));
    }
    start
}

/// Returns the real profiles, without compression.
pub fn messages() -> Inputs {
    let profiles = files(&oracle::corpus()).into_iter().filter_map(|path| {
        let name = name(&path).strip_suffix(".pb.gz")?.to_owned();
        let mut message = Vec::new();
        MultiGzDecoder::new(&*fs::read(&path).unwrap()).read_to_end(&mut message).unwrap();
        Some((name, message))
    });
    profiles.filter(|(_, message)| message.len() < MAX_BYTES).collect()
}

/// Returns pairs of real profiles, without compression: the name of the base, and both messages.
pub fn pairs() -> Vec<(String, [Vec<u8>; 2])> {
    let messages = messages();
    let bases = messages.iter().filter(|(name, _)| name.ends_with(".base"));
    let pair = bases.map(|(name, base)| {
        let new = name.replace(".base", ".new");
        let new = messages.iter().find(|(name, _)| *name == new).map_or(base, |(_, new)| new);
        (name.clone(), [base.clone(), new.clone()])
    });
    pair.collect()
}

/// Returns the real profiles without compression, the malformed ones, and those of old formats.
pub fn profiles() -> Inputs {
    let folders = ["malformed", "legacy"].map(|folder| files(&oracle::corpus().join(folder)));
    let files = folders.into_iter().flatten().filter(|path| path.extension().is_none_or(|extension| extension != "md"));
    let truncated = files.map(|path| {
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(MAX_BYTES);
        (name(&path), bytes)
    });
    messages().into_iter().chain(truncated).collect()
}

/// Encodes a part of an input for `Choices::parts`.
pub fn part(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    [&length, data].concat()
}

/// Random bytes that are the same in each run, by splitmix64.
pub struct RandomBytes(pub u64);

impl Iterator for RandomBytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some((mixed >> 56) as u8)
    }
}
