//! Profiles to measure with: made up, deterministic, in the shape of what large services produce.
//!
//! A made-up program is a layered call graph: every function has a few call sites, one of them hot, each
//! of which leads to a function of a deeper layer (or, rarely, back to one above: recursion). A stack is a
//! random walk down from a root. About one location in eight has an inlined callee. The new side is another
//! build of the same program: of its stacks 8 % are gone and 8 % are new, every address is another,
//! lines are shifted, ids are assigned anew. Snapshots are of one process: its counters grow. Builds of a history are as many
//! versions of the program: few stacks go and come in each, values differ, and one function costs more from some build on.

#[allow(clippy::unwrap_used)]
pub mod bare;
pub mod obvious;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use prost::encoding::encode_varint;

/// How large a profile is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Its name in tables.
    pub name: &'static str,
    samples: u64,
    functions: u64,
    /// Of a hundred calls of a function, how many take its hot path at least: what makes stacks compress.
    hot: u64,
    depth: u64,
    values: usize,
    labels: bool,
}

/// Small: a short CPU profile.
pub const S: Size = Size { name: "S", samples: 5_000, functions: 1_760, hot: 60, depth: 22, values: 2, labels: false };
/// Medium: the heap profile of a large service.
pub const M: Size = Size { name: "M", samples: 50_000, functions: 10_400, hot: 65, depth: 26, values: 4, labels: true };
/// Large: a day of a fleet, merged.
pub const L: Size =
    Size { name: "L", samples: 1_000_000, functions: 100_000, hot: 84, depth: 45, values: 2, labels: false };

/// Call sites of a function.
const SITES: u64 = 3;
/// Snapshots of a series.
pub const SNAPSHOTS: u64 = 10;
/// Pairs of size S for what compares many.
pub const PAIRS: u64 = 200;

/// A small fast generator (splitmix64): good enough to walk with, the same everywhere.
#[derive(Clone, Copy)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }
}

fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |h, &p| Random(h ^ p.wrapping_mul(0x2545_f491_4f6c_dd1d)).bits())
}

/// Which side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The first build.
    Base,
    /// The second.
    New,
}

/// Fields of a message, appended to bytes.
fn int(out: &mut Vec<u8>, field: u64, v: u64) {
    if v != 0 {
        encode_varint(field << 3, out);
        encode_varint(v, out);
    }
}

fn bytes(out: &mut Vec<u8>, field: u64, b: &[u8]) {
    encode_varint(field << 3 | 2, out);
    encode_varint(b.len() as u64, out);
    out.extend_from_slice(b);
}

/// Numbers things in the order of first use, from 1.
#[derive(Default)]
struct Order {
    ids: HashMap<u64, u64>,
    used: Vec<u64>,
}

impl Order {
    fn get(&mut self, key: u64) -> u64 {
        let used = &mut self.used;
        *self.ids.entry(key).or_insert_with(|| {
            used.push(key);
            used.len() as u64
        })
    }
}

/// A made-up program.
#[derive(Clone, Copy)]
struct Program {
    size: Size,
    seed: u64,
}

impl Program {
    /// The call sites of one stack, root first; a stack's number says all about it, whatever the build.
    /// Returns what is left of its randomness.
    fn walk(self, index: u64, stack: &mut Vec<u64>) -> Random {
        let Size { functions, hot, depth, .. } = self.size;
        let layers = depth * 3 / 2;
        let wide = functions / layers;
        let mut random = Random(hash(&[self.seed, index]));
        let mut function = random.below(8);
        stack.clear();
        for layer in 0..depth / 2 + random.below(depth) + 1 {
            let call = if random.below(100) < hot { 0 } else { random.below(SITES) };
            let site = function * SITES + call;
            stack.push(site);
            let mut h = Random(hash(&[self.seed, site]));
            // Calls lead from one layer to the next; one in thirty to a function that is above already.
            function = match h.below(30) {
                0 if stack.len() > 2 => stack[stack.len() - 2] / SITES,
                _ => (8 + (layer % layers) * wide + h.below(wide)) % functions,
            };
        }
        random
    }
}

/// What a stack cost: times that it was seen (or objects that it allocated), and objects still in use.
struct Cost {
    count: u64,
    kept: u64,
}

/// One side of a pair as an inflated message.
pub fn message(size: Size, build: Build, seed: u64) -> Vec<u8> {
    let shift = if build == Build::New { size.samples * 8 / 100 } else { 0 };
    encode(Program { size, seed }, build as u64, shift..shift + size.samples, |_, random| {
        let count = weight(random) + u64::from(build == Build::New) * random.below(20);
        Cost { count, kept: count / 3 }
    })
}

/// Snapshot `time` of a process's heap, as an inflated message. Counters only grow, and half of them stand
/// still; each time some stacks are new, which come first and so move all ids (as Go's do), a few of the
/// oldest are gone, and others are missing this once.
pub fn snapshot(size: Size, time: u64, seed: u64) -> Vec<u8> {
    let step = size.samples / 100;
    let stacks = (time * step..size.samples + 2 * time * step).rev();
    encode(
        Program { size, seed },
        Build::Base as u64,
        stacks.filter(|&i| !hash(&[i, time]).is_multiple_of(50)),
        |index, random| {
            let (weight, busy) = (weight(random), hash(&[index]) % 2);
            let count = weight * (8 + busy * time) / 8;
            Cost { count, kept: if busy == 0 { count / 3 } else { hash(&[index, time, 1]) % (count + 1) } }
        },
    )
}

/// The build of a history from which on a function costs more.
pub const STEP: u64 = 600;

/// Build `number` of a history as an inflated message: after a thousand builds 8 % of the stacks are others, one in 25 is not
/// seen, and values differ by up to 10 %, and by up to 3 % in common.
pub fn history(size: Size, number: u64, seed: u64) -> Vec<u8> {
    let program = Program { size, seed };
    let begin = number * size.samples / 12_500;
    let stacks = (begin..begin + size.samples).filter(|&i| !hash(&[seed, i, number]).is_multiple_of(25));
    let mut stack = Vec::new();
    program.walk(0, &mut stack);
    let slow = stack[stack.len() / 3] / SITES;
    let all = 970 + hash(&[seed, number, 2]) % 61;
    // Costs are asked for one after the other.
    let stack = std::cell::RefCell::new(stack);
    encode(program, number + 2, stacks, |index, random| {
        let mut stack = stack.borrow_mut();
        program.walk(index, &mut stack);
        let grown = number >= STEP && stack.iter().any(|site| site / SITES == slow);
        let own = 900 + hash(&[seed, index, number, 3]) % 201;
        let count = weight(random) * own * all * if grown { 13 } else { 10 } / 10_000_000;
        Cost { count: count.max(1), kept: 0 }
    })
}

/// Most stacks are rare, some are hot.
fn weight(random: &mut Random) -> u64 {
    (random.below(1000) + 1) * (1 + random.below(40) / 39 * 50)
}

/// The base has the version 0, the new side 1; builds of a history have further ones.
fn encode(
    program: Program,
    version: u64,
    stacks: impl Iterator<Item = u64>,
    cost: impl Fn(u64, &mut Random) -> Cost,
) -> Vec<u8> {
    let Program { size, seed } = program;
    let mut strings: Vec<String> = vec![String::new()];
    let mut out = Vec::new();
    let types: &[(&str, &str)] = if size.values == 4 {
        &[("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    } else {
        &[("samples", "count"), ("cpu", "nanoseconds")]
    };
    for (kind, unit) in types {
        let mut m = Vec::new();
        for (field, text) in [(1, kind), (2, unit)] {
            strings.push((*text).to_owned());
            int(&mut m, field, strings.len() as u64 - 1);
        }
        bytes(&mut out, 1, &m);
    }
    let label_keys = strings.len() as u64;
    strings.extend(["bytes", "endpoint"].map(str::to_owned));
    let label_values = strings.len() as u64;
    strings.extend((0..40).map(|i| format!("/api/v1/resource{i}")));

    let mut locations = Order::default();
    let (mut m, mut inner, mut stack) = (Vec::new(), Vec::new(), Vec::new());
    for index in stacks {
        let mut random = program.walk(index, &mut stack);
        m.clear();
        inner.clear();
        stack.iter().rev().for_each(|&site| encode_varint(locations.get(site), &mut inner));
        bytes(&mut m, 1, &inner);
        inner.clear();
        let object = 16 << random.below(8);
        let endpoint = (random.below(4) == 0).then_some(random.below(40));
        let Cost { count, kept } = cost(index, &mut random);
        let heap = [count, count * object, kept, kept * object];
        let cpu = [count, count * 10_000_000];
        let values: &[u64] = if size.values == 4 { &heap } else { &cpu };
        values.iter().for_each(|&v| encode_varint(v, &mut inner));
        bytes(&mut m, 2, &inner);
        if size.labels {
            inner.clear();
            int(&mut inner, 1, label_keys);
            int(&mut inner, 3, object);
            bytes(&mut m, 3, &inner);
            if let Some(endpoint) = endpoint {
                inner.clear();
                int(&mut inner, 1, label_keys + 1);
                int(&mut inner, 2, label_values + endpoint);
                bytes(&mut m, 3, &inner);
            }
        }
        bytes(&mut out, 2, &m);
    }

    m.clear();
    strings.push("/usr/local/bin/service".to_owned());
    let file = strings.len() as u64 - 1;
    let base_address = if version > 0 { 0x55d0_0000_0000 } else { 0x5590_0000_0000 };
    for (field, v) in
        [(1, 1), (2, base_address), (3, base_address + 0x4000_0000), (5, file), (7, 1), (8, 1), (9, 1), (10, 1)]
    {
        int(&mut m, field, v);
    }
    bytes(&mut out, 3, &m);

    let mut functions = Order::default();
    for (i, &site) in locations.used.iter().enumerate() {
        let function = site / SITES;
        let h = hash(&[seed, site, 1]);
        m.clear();
        int(&mut m, 1, i as u64 + 1);
        int(&mut m, 2, 1);
        int(&mut m, 3, base_address + hash(&[site, version]) % 0x4000_0000);
        let shift = match version {
            0 => 0,
            1 => hash(&[function / 20]) % 9,
            // Files are edited every twenty builds.
            _ => hash(&[function / 20, version / 20]) % 9,
        };
        let mut line = |function: u64, number: u64| {
            inner.clear();
            int(&mut inner, 1, functions.get(function));
            int(&mut inner, 2, number + shift);
            bytes(&mut m, 4, &inner);
        };
        if h.is_multiple_of(8) {
            line((function * 31 + 7) % size.functions, 10 + h % 900);
        }
        line(function, 20 + (h >> 20) % 2000);
        bytes(&mut out, 4, &m);
    }
    let mut files = HashMap::new();
    for (i, &function) in functions.used.iter().enumerate() {
        m.clear();
        strings.push(format!(
            "example.com/fleet/service{}/internal/package{}.(*Type{}).Method{function}",
            function % 17,
            function % 211,
            function % 1009
        ));
        let name = strings.len() as u64 - 1;
        let file = *files.entry(function / 20).or_insert_with(|| {
            // By the file alone: which of its functions comes first differs from one snapshot to the next.
            let file = function / 20;
            strings.push(format!("/src/fleet/service{}/internal/package{}/file{file}.go", file % 17, file % 211));
            strings.len() as u64 - 1
        });
        for (field, v) in [(1, i as u64 + 1), (2, name), (3, name), (4, file), (5, 10 + function % 700)] {
            int(&mut m, field, v);
        }
        bytes(&mut out, 5, &m);
    }
    strings.iter().for_each(|s| bytes(&mut out, 6, s.as_bytes()));
    // A history has a build an hour.
    let later = if version > 1 { version * 3_600_000_000_000 } else { version };
    int(&mut out, 9, 1_790_000_000_000_000_000 + later);
    int(&mut out, 10, 30_000_000_000);
    out
}

/// A message as a gzip file, at the level that Go writes.
pub fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    io::Write::write_all(&mut encoder, message).and_then(|()| encoder.finish()).expect("memory does not fail")
}

/// The limit: libdeflate into a fresh buffer, and nothing else.
#[allow(clippy::unwrap_used)]
pub fn inflate(file: &[u8]) {
    let size = u32::from_le_bytes(*file.last_chunk::<4>().unwrap()) as usize;
    let mut out = vec![0; size];
    libdeflater::Decompressor::new().gzip_decompress(file, &mut out).unwrap();
    std::hint::black_box(&out);
}

/// Writes `path` unless it is there.
fn made(path: PathBuf, message: impl FnOnce() -> Vec<u8>) -> io::Result<PathBuf> {
    if !path.exists() {
        // Another process may make the same file at the same time.
        let part = path.with_extension(format!("part{}", std::process::id()));
        std::fs::write(&part, gzip(&message()))?;
        std::fs::rename(part, &path)?;
    }
    Ok(path)
}

/// The files of a pair, made if they are missing.
pub fn pair(size: Size, seed: u64) -> io::Result<[PathBuf; 2]> {
    let dir = data_dir()?;
    let file =
        |side: &str, build| made(dir.join(format!("{}-{seed}.{side}.pb.gz", size.name)), || message(size, build, seed));
    Ok([file("base", Build::Base)?, file("new", Build::New)?])
}

/// [`PAIRS`] pairs of size S, of as many programs.
pub fn many_pairs() -> io::Result<Vec<[PathBuf; 2]>> {
    (1..=PAIRS).map(|seed| pair(S, seed)).collect()
}

/// A series of [`SNAPSHOTS`] cumulative heap profiles of one process, the oldest first.
pub fn series(size: Size) -> io::Result<Vec<PathBuf>> {
    let dir = data_dir()?;
    (0..SNAPSHOTS)
        .map(|time| made(dir.join(format!("{}-heap.{time}.pb.gz", size.name)), || snapshot(size, time, 1)))
        .collect()
}

/// A pair of real profiles of the corpus: two builds of a program in Rust, with inlining.
pub fn real_pair() -> [PathBuf; 2] {
    ["base", "new"]
        .map(|side| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/corpus/rust-cpu.{side}.pb.gz")))
}

/// Where measurements keep their files: in the target folder of the workspace. What another version of this file
/// made is removed, since it may be something else.
pub fn data_dir() -> io::Result<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data");
    let (mark, generator) = (dir.join("generator.rs"), include_str!("lib.rs"));
    if !std::fs::read_to_string(&mark).is_ok_and(|text| text == generator) {
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        std::fs::write(mark, generator)?;
    }
    Ok(dir)
}
