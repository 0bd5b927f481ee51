//! Compares the Go library (tests/verdict/main.go) with the engine on the same inputs: the corpus, its broken files,
//! and thousands of mutations of real profiles. Both accept an input with the same samples and sums, or both refuse it.
//! The tables here list every accepted difference; tests/README.md explains them. If `PPROFDIFF_INPUTS` names a
//! directory, its files are compared as well, for example the inputs found by fuzzing.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::golibrary;
use pprofdiff::{LoadOptions, proto};
use prost::Message;

/// Inputs that only pprofdiff refuses: the text of our error, and the reason.
const ONLY_WE_REFUSE: &[(&str, &str)] = &[
    ("add up to more than an int64 holds", "sums wrap around in Go"),
    ("does not exist in protobuf", "no writer writes field 0, or one from 2^29 on: damage"),
    ("words are left", "Go takes zeros for the rest of a sample that is cut off, of words of 64 bits"),
    ("more nanoseconds than an int64 holds", "they wrap around in Go"),
];

/// Inputs that only Go refuses: the text of its error, and the reason.
const ONLY_GO_REFUSES: &[(&str, &str)] = &[("unrecognized profile format", "zstd, which Go does not read")];

/// Returns our verdict about a file, in the format of main.go.
fn verdict(path: &Path) -> String {
    let profile = match pprofdiff::open(path, &LoadOptions::default()) {
        Ok(profile) => profile,
        Err(e) => return format!("reject {e}"),
    };
    let sums =
        (0..profile.sample_types().len()).map(|t| profile.samples().map(|s| s.value(t)).sum::<i64>().to_string());
    format!("accept {} {}", profile.n_samples(), sums.collect::<Vec<_>>().join(","))
}

/// Returns Go's verdicts.
fn go_verdicts(oracle: &Path, paths: &[PathBuf]) -> Vec<String> {
    let mut go = Command::new(oracle).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = go.stdin.take().unwrap();
    let asked: String = paths.iter().map(|p| format!("{}\n", p.display())).collect();
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()).unwrap());
    let output = go.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn files(dir: &str) -> Vec<PathBuf> {
    files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(dir))
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.is_file() && !p.ends_with("README.md"));
    files.sort();
    files
}

/// A xorshift generator. Its numbers are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Returns a message with a few bytes changed, inserted, removed or doubled, or a truncated message.
fn mutate(message: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..=random.below(2) {
        let offset = random.below(bytes.len());
        // Half of the changes are small, so that some inputs remain valid.
        match random.below(16) {
            0 => bytes[offset] ^= 1 << random.below(8),
            1 => bytes[offset] = random.below(256) as u8,
            2 => bytes[offset] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            3 => bytes.insert(offset, random.below(256) as u8),
            4 => drop(bytes.remove(offset)),
            5 => bytes.truncate(offset.max(1)),
            6 => {
                let end = (offset + 1 + random.below(20)).min(bytes.len());
                let part = bytes[offset..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, part);
            }
            8.. => bytes[offset] ^= 1,
            _ => {
                let end = (offset + 1 + random.below(20)).min(bytes.len());
                bytes.drain(offset..end);
                bytes.extend((bytes.is_empty()).then_some(0));
            }
        }
    }
    bytes
}

/// Inputs that mutations rarely produce: a sum beyond int64, two concatenated profiles (which both refuse), zstd, a field
/// number that protobuf does not allow, and lines with unusual spaces.
fn rare_inputs() -> Vec<Vec<u8>> {
    let mut p = proto::Profile {
        string_table: [&b""[..], b"cpu", b"count"].map(<[u8]>::to_vec).to_vec(),
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        sample: vec![proto::Sample { value: vec![i64::MAX], ..Default::default() }],
        time_nanos: 1,
        ..Default::default()
    };
    let one = p.encode_to_vec();
    p.sample.push(p.sample[0].clone());
    let far = [&one[..], b"\x80\x80\x80\x80\x10\x00"].concat();
    let spaces =
        "goroutine profile: total 3\n\u{b}\n2 @ 0x43a9c5\n\u{85}\u{2003}\n\u{a0}# a comment\n1 @ 0x43a9c6\n\u{b}";
    vec![p.encode_to_vec(), one.repeat(2), zstd::encode_all(&*one, 1).unwrap(), far, spaces.into()]
}

#[test]
fn go_and_pprofdiff_accept_the_same_inputs_with_the_same_sums() {
    let per_file: usize = std::env::var("PPROFDIFF_MUTATIONS").map_or(150, |n| n.parse().unwrap());
    let folder = golibrary::build("verdict");
    let mut paths = [files(""), files("series"), files("malformed"), files("legacy")].concat();
    let n_real = paths.len();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for (i, path) in files("").iter().chain(&files("malformed")).chain(&files("legacy")).enumerate() {
        let mut message = Vec::new();
        let packed = std::fs::read(path).unwrap();
        if flate2::read::MultiGzDecoder::new(&*packed).read_to_end(&mut message).is_err() {
            message = packed;
        }
        // Large profiles are skipped: both tools take long to read them.
        if message.len() < 100_000 {
            for n in 0..per_file {
                let path = folder.join(format!("{i}-{n}"));
                std::fs::write(&path, mutate(&message, &mut random)).unwrap();
                paths.push(path);
            }
        }
    }
    for (i, bytes) in rare_inputs().into_iter().enumerate() {
        paths.push(folder.join(format!("purpose-{i}")));
        std::fs::write(&paths[paths.len() - 1], bytes).unwrap();
    }
    let n_made = paths.len();
    if let Some(more) = std::env::var_os("PPROFDIFF_INPUTS") {
        paths.extend(files_in(Path::new(&more)));
    }
    let theirs = go_verdicts(&folder.join("oracle"), &paths);
    assert_eq!(theirs.len(), paths.len());
    let (mut accepted, mut differ, mut unexplained) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    for (i, (path, theirs)) in paths.iter().zip(&theirs).enumerate() {
        let ours = verdict(path);
        accepted += usize::from(ours.starts_with("accept") && i < n_made);
        let reasons = match (ours.starts_with("accept"), theirs.starts_with("accept")) {
            (true, true) if ours == *theirs => continue,
            (false, false) => continue,
            (false, true) => (ONLY_WE_REFUSE, &ours),
            (true, false) => (ONLY_GO_REFUSES, theirs),
            (true, true) => (&[][..], &ours),
        };
        match reasons.0.iter().find(|(words, _)| reasons.1.contains(words)) {
            Some((words, _)) => *differ.entry(words).or_default() += 1,
            None => unexplained.push(format!("{}\n  we: {ours}\n  Go: {theirs}", path.display())),
        }
    }
    println!(
        "{n_made} inputs, of which {n_real} as they are, {accepted} accepted; {} others; different, with a reason: {differ:?}",
        paths.len() - n_made
    );
    unexplained.truncate(20);
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let reasons = ONLY_WE_REFUSE.iter().chain(ONLY_GO_REFUSES);
    let unused: Vec<_> = reasons.filter(|(words, _)| !differ.contains_key(words)).collect();
    assert!(unused.is_empty(), "reasons that nothing needs: {unused:?}");
    // If almost all mutations were refused, or almost none, the comparison would prove little.
    assert!(accepted > n_made / 10 && accepted < n_made * 9 / 10, "{accepted} of {n_made} are accepted");
    std::fs::remove_dir_all(folder).unwrap();
}
