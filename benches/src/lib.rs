//! Profiles to measure with: made up, deterministic, in the shape of what large services produce.
//!
//! A made-up program is a layered call graph: every function has a few call sites, each of which
//! leads to a function of a deeper layer (or, rarely, back to one above: recursion). A stack is a random
//! walk down from a root. About one location in eight has an inlined callee. The new side is another
//! build of the same program: of its stacks 8 % are gone and 8 % are new, every address is another,
//! lines are shifted, ids are assigned anew.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prost::encoding::encode_varint;

/// How large a profile is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Its name in tables.
    pub name: &'static str,
    samples: u64,
    functions: u64,
    sites: u64,
    depth: u64,
    values: usize,
    labels: bool,
}

/// Small: a short CPU profile.
pub const S: Size = Size { name: "S", samples: 5_000, functions: 1_700, sites: 3, depth: 22, values: 2, labels: false };
/// Medium: the heap profile of a large service.
pub const M: Size = Size { name: "M", samples: 50_000, functions: 9_500, sites: 3, depth: 26, values: 4, labels: true };
/// Large: a day of a fleet, merged.
pub const L: Size =
    Size { name: "L", samples: 1_000_000, functions: 88_000, sites: 3, depth: 45, values: 2, labels: false };

/// A small fast generator (splitmix64): good enough to walk with, the same everywhere.
#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |h, &p| Random(h ^ p.wrapping_mul(0x2545_f491_4f6c_dd1d)).next())
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

/// The inflated message of one side of a pair. `scale` multiplies the values: for series of snapshots.
pub fn message(size: Size, build: Build, seed: u64, scale: u64) -> Vec<u8> {
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

    let layers = size.depth * 3 / 2;
    let mut locations = Order::default();
    let (mut m, mut inner, mut stack) = (Vec::new(), Vec::new(), Vec::new());
    let shift = if build == Build::New { size.samples * 8 / 100 } else { 0 };
    for index in shift..shift + size.samples {
        // The walk depends on the stack's number alone, so both builds share 92 % of them.
        let mut random = Random(hash(&[seed, index]));
        let depth = size.depth / 2 + random.below(size.depth) + 1;
        let mut function = random.below(8);
        stack.clear();
        for layer in 0..depth {
            let site = function * size.sites + random.below(size.sites);
            stack.push(site);
            let h = hash(&[seed, site]);
            // Calls lead from one layer to the next; one in thirty to a function that is above already.
            let wide = size.functions / layers;
            function = match h % 30 {
                0 if stack.len() > 2 => stack[stack.len() - 2] / size.sites,
                _ => (8 + (layer % layers) * wide + (h >> 8) % wide) % size.functions,
            };
        }
        m.clear();
        inner.clear();
        stack.iter().rev().for_each(|&site| encode_varint(locations.get(site), &mut inner));
        bytes(&mut m, 1, &inner);
        inner.clear();
        let weight = (random.below(1000) + 1) * (1 + random.below(40) / 39 * 50)
            + u64::from(build == Build::New) * random.below(20);
        let values = [weight, weight * 10_000_000, weight / 3, weight * 48];
        values[..size.values].iter().for_each(|&v| encode_varint(v * scale, &mut inner));
        bytes(&mut m, 2, &inner);
        if size.labels {
            inner.clear();
            int(&mut inner, 1, label_keys);
            int(&mut inner, 3, 16 << random.below(8));
            bytes(&mut m, 3, &inner);
            if random.below(4) == 0 {
                inner.clear();
                int(&mut inner, 1, label_keys + 1);
                int(&mut inner, 2, label_values + random.below(40));
                bytes(&mut m, 3, &inner);
            }
        }
        bytes(&mut out, 2, &m);
    }

    m.clear();
    strings.push("/usr/local/bin/service".to_owned());
    let file = strings.len() as u64 - 1;
    let base_address = if build == Build::New { 0x55d0_0000_0000 } else { 0x5590_0000_0000 };
    for (field, v) in
        [(1, 1), (2, base_address), (3, base_address + 0x4000_0000), (5, file), (7, 1), (8, 1), (9, 1), (10, 1)]
    {
        int(&mut m, field, v);
    }
    bytes(&mut out, 3, &m);

    let mut functions = Order::default();
    for (i, &site) in locations.used.iter().enumerate() {
        let function = site / size.sites;
        let h = hash(&[seed, site, 1]);
        m.clear();
        int(&mut m, 1, i as u64 + 1);
        int(&mut m, 2, 1);
        int(&mut m, 3, base_address + hash(&[site, build as u64]) % 0x4000_0000);
        let shift = if build == Build::New { hash(&[function / 20]) % 9 } else { 0 };
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
            strings.push(format!(
                "/src/fleet/service{}/internal/package{}/file{}.go",
                function % 17,
                function % 211,
                function / 20
            ));
            strings.len() as u64 - 1
        });
        for (field, v) in [(1, i as u64 + 1), (2, name), (3, name), (4, file), (5, 10 + function % 700)] {
            int(&mut m, field, v);
        }
        bytes(&mut out, 5, &m);
    }
    strings.iter().for_each(|s| bytes(&mut out, 6, s.as_bytes()));
    int(&mut out, 9, 1_790_000_000_000_000_000 + u64::from(build == Build::New));
    int(&mut out, 10, 30_000_000_000);
    out
}

/// A message as a gzip file, at the level that Go writes.
pub fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    std::io::Write::write_all(&mut encoder, message).and_then(|()| encoder.finish()).expect("memory does not fail")
}

/// The files of a pair in `dir`, made there if they are missing.
pub fn pair(dir: &Path, size: Size, seed: u64) -> std::io::Result<[PathBuf; 2]> {
    std::fs::create_dir_all(dir)?;
    let file = |side: &str, build| -> std::io::Result<PathBuf> {
        let path = dir.join(format!("{}-{seed}.{side}.pb.gz", size.name));
        if !path.exists() {
            std::fs::write(&path, gzip(&message(size, build, seed, 1)))?;
        }
        Ok(path)
    };
    Ok([file("base", Build::Base)?, file("new", Build::New)?])
}

/// Where measurements keep their files: the target folder of the workspace.
pub fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data")
}
