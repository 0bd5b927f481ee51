//! Generated profiles for benchmarks. They are deterministic, and have the shape of profiles from large services.
//!
//! A generated program is a layered call graph. Every function has a few call sites, and one of them is hot. Each call
//! site leads to a function of a deeper layer, or rarely back to a function above (recursion). A stack is a random walk
//! down from a root. About one location in eight has an inlined callee.
//!
//! - The new side is another build of the same program: 8 % of the base's stacks are gone, 8 % are new, all addresses
//!   differ, lines are shifted, and ids are assigned anew.
//! - Snapshots are heap profiles of one process, so its allocation counters only grow.
//! - Builds of a history are versions of one program. A few stacks disappear and appear in each build, values vary, and
//!   one function becomes more expensive from some build on.

#[allow(clippy::unwrap_used)]
pub mod bare;
pub mod obvious;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use prost::encoding::encode_varint;

/// The dimensions of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// The name in tables.
    pub name: &'static str,
    samples: u64,
    functions: u64,
    /// The minimum number of calls per hundred that take a function's hot path. It determines how well stacks compress.
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

/// The number of call sites per function.
const SITES: u64 = 3;
/// The number of snapshots in a series.
pub const SNAPSHOTS: u64 = 10;
/// The number of size-S pairs for benchmarks of many pairs.
pub const PAIRS: u64 = 200;

/// A small, fast random number generator (splitmix64). Its quality suffices for random walks, and it gives equal
/// results on all machines.
#[derive(Clone, Copy)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
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

/// A side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairSide {
    /// The base.
    Base,
    /// The new side.
    New,
}

/// Appends an integer field of a message. Zero is the default, and is omitted.
fn int(out: &mut Vec<u8>, field: u64, v: u64) {
    if v != 0 {
        encode_varint(field << 3, out);
        encode_varint(v, out);
    }
}

/// Appends a bytes field of a message.
fn bytes(out: &mut Vec<u8>, field: u64, b: &[u8]) {
    encode_varint(field << 3 | 2, out);
    encode_varint(b.len() as u64, out);
    out.extend_from_slice(b);
}

/// Assigns ids to keys in the order of first use, starting at 1.
#[derive(Default)]
struct IdOrder {
    ids: HashMap<u64, u64>,
    used: Vec<u64>,
}

impl IdOrder {
    fn get(&mut self, key: u64) -> u64 {
        let used = &mut self.used;
        *self.ids.entry(key).or_insert_with(|| {
            used.push(key);
            used.len() as u64
        })
    }
}

/// A generated program.
#[derive(Clone, Copy)]
struct Program {
    size: Size,
    seed: u64,
}

impl Program {
    /// Fills `stack` with the call sites of a stack, root first. The stack's index determines its content, whatever the
    /// build. Returns the random generator for further properties of the stack.
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
            // Calls lead from one layer to the next. One call in thirty leads back to the caller.
            function = match h.below(30) {
                0 if stack.len() > 2 => stack[stack.len() - 2] / SITES,
                _ => (8 + (layer % layers) * wide + h.below(wide)) % functions,
            };
        }
        random
    }
}

/// The cost of a stack: the number of occurrences (or allocated objects), and the number of objects still in use.
struct StackCost {
    count: u64,
    kept: u64,
}

/// Returns one side of a pair as an uncompressed message.
pub fn message(size: Size, build: PairSide, seed: u64) -> Vec<u8> {
    let shift = if build == PairSide::New { size.samples * 8 / 100 } else { 0 };
    encode(Program { size, seed }, build as u64, shift..shift + size.samples, |_, random| {
        let count = weight(random) + u64::from(build == PairSide::New) * random.below(20);
        StackCost { count, kept: count / 3 }
    })
}

/// Returns snapshot `time` of a process's heap, as an uncompressed message. Allocation counters only grow, and half of
/// them stay constant. In each snapshot, some stacks are new. They come first and so shift all ids, as in Go's
/// profiles. A few of the oldest stacks are gone, and others are missing in this snapshot only.
pub fn snapshot(size: Size, time: u64, seed: u64) -> Vec<u8> {
    let step = size.samples / 100;
    let stacks = (time * step..size.samples + 2 * time * step).rev();
    encode(
        Program { size, seed },
        PairSide::Base as u64,
        stacks.filter(|&i| !hash(&[i, time]).is_multiple_of(50)),
        |index, random| {
            let (weight, busy) = (weight(random), hash(&[index]) % 2);
            let count = weight * (8 + busy * time) / 8;
            StackCost { count, kept: if busy == 0 { count / 3 } else { hash(&[index, time, 1]) % (count + 1) } }
        },
    )
}

/// The build of a history at which a function becomes more expensive.
pub const STEP: u64 = 600;

/// Returns build `number` of a history as an uncompressed message. Over a thousand builds, 8 % of the stacks are
/// replaced. In each build, one stack in 25 is missing. The values of single stacks vary by up to 10 %, and all values
/// together by up to 3 %.
pub fn history(size: Size, number: u64, seed: u64) -> Vec<u8> {
    let program = Program { size, seed };
    let begin = number * size.samples / 12_500;
    let stacks = (begin..begin + size.samples).filter(|&i| !hash(&[seed, i, number]).is_multiple_of(25));
    let mut stack = Vec::new();
    program.walk(0, &mut stack);
    let slow = stack[stack.len() / 3] / SITES;
    let common = 970 + hash(&[seed, number, 2]) % 61;
    // Costs are requested one after another, so a single buffer suffices.
    let stack = std::cell::RefCell::new(stack);
    encode(program, number + 2, stacks, |index, random| {
        let mut stack = stack.borrow_mut();
        program.walk(index, &mut stack);
        let grown = number >= STEP && stack.iter().any(|site| site / SITES == slow);
        let stack_factor = 900 + hash(&[seed, index, number, 3]) % 201;
        let count = weight(random) * stack_factor * common * if grown { 13 } else { 10 } / 10_000_000;
        StackCost { count: count.max(1), kept: 0 }
    })
}

/// Returns the weight of a stack. Most stacks are rare, and some are hot.
fn weight(random: &mut Random) -> u64 {
    (random.below(1000) + 1) * (1 + random.below(40) / 39 * 50)
}

/// Encodes a message. Version 0 is the base, version 1 the new side, and larger versions are builds of a history.
fn encode(
    program: Program,
    version: u64,
    stacks: impl Iterator<Item = u64>,
    cost: impl Fn(u64, &mut Random) -> StackCost,
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

    let mut locations = IdOrder::default();
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
        let StackCost { count, kept } = cost(index, &mut random);
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

    let mut functions = IdOrder::default();
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
            // Files change every twenty builds.
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
            // The path depends on the file alone, because the first function of a file differs between snapshots.
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
    // A history has one build per hour.
    let later = if version > 1 { version * 3_600_000_000_000 } else { version };
    int(&mut out, 9, 1_790_000_000_000_000_000 + later);
    int(&mut out, 10, 30_000_000_000);
    out
}

/// Compresses a message with gzip at level 6, as Go's library for profiles does (`github.com/google/pprof/profile`).
pub fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    io::Write::write_all(&mut encoder, message).and_then(|()| encoder.finish()).expect("memory does not fail")
}

/// Decompresses a file with libdeflate into a fresh buffer, as the lower limit of loading times.
#[allow(clippy::unwrap_used)]
pub fn inflate(file: &[u8]) {
    let size = u32::from_le_bytes(*file.last_chunk::<4>().unwrap()) as usize;
    let mut out = vec![0; size];
    libdeflater::Decompressor::new().gzip_decompress(file, &mut out).unwrap();
    std::hint::black_box(&out);
}

/// Writes `path` unless it exists.
fn made(path: PathBuf, message: impl FnOnce() -> Vec<u8>) -> io::Result<PathBuf> {
    if !path.exists() {
        // Another process may write the same file at the same time.
        let part = path.with_extension(format!("part{}", std::process::id()));
        std::fs::write(&part, gzip(&message()))?;
        std::fs::rename(part, &path)?;
    }
    Ok(path)
}

/// Returns the files of a pair. Missing files are generated.
pub fn pair(size: Size, seed: u64) -> io::Result<[PathBuf; 2]> {
    let dir = data_dir()?;
    let file =
        |side: &str, build| made(dir.join(format!("{}-{seed}.{side}.pb.gz", size.name)), || message(size, build, seed));
    Ok([file("base", PairSide::Base)?, file("new", PairSide::New)?])
}

/// Returns [`PAIRS`] pairs of size S, one pair per program.
pub fn many_pairs() -> io::Result<Vec<[PathBuf; 2]>> {
    (1..=PAIRS).map(|seed| pair(S, seed)).collect()
}

/// Returns a series of [`SNAPSHOTS`] cumulative heap profiles of one process, oldest first.
pub fn series(size: Size) -> io::Result<Vec<PathBuf>> {
    let dir = data_dir()?;
    (0..SNAPSHOTS)
        .map(|time| made(dir.join(format!("{}-heap.{time}.pb.gz", size.name)), || snapshot(size, time, 1)))
        .collect()
}

/// Returns a pair of real profiles from the corpus: two builds of a Rust program, with inlining.
pub fn real_pair() -> [PathBuf; 2] {
    ["base", "new"]
        .map(|side| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/corpus/rust-cpu.{side}.pb.gz")))
}

/// Returns the folder of benchmark files, in the target folder of the workspace. Files from a different version of this
/// generator are removed, because their content may differ.
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
