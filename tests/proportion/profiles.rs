//! Profiles that represent much more than their size. `halves` multiplies half of the size in the case's name.

use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;

const HALF_MB: usize = 1 << 19;

pub(super) fn base(functions: u64) -> Profile {
    Profile {
        string_table: vec![Vec::new(), b"cpu".to_vec(), b"count".to_vec(), b"f".to_vec()],
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=functions).map(|id| Function { id, name: 3, ..Default::default() }).collect(),
        location: (1..=functions).map(|id| location(id, &[id])).collect(),
        ..Default::default()
    }
}

fn location(id: u64, functions: &[u64]) -> Location {
    let line = functions.iter().map(|&function_id| Line { function_id, line: id as i64, column: 0 }).collect();
    Location { id, line, ..Default::default() }
}

fn sample(locations: Vec<u64>) -> Sample {
    Sample { location_id: locations, value: vec![1], label: vec![] }
}

pub(super) fn empty_strings(halves: u64) -> Vec<u8> {
    let mut bytes = Profile { sample: vec![sample(vec![1])], ..base(1) }.encode_to_vec();
    // Field 6, no bytes.
    bytes.extend([6 << 3 | 2, 0].repeat(halves as usize * 5_000_000));
    bytes
}

pub(super) fn deep_stack(halves: u64) -> Vec<u8> {
    let frames = (0..halves * 5_000_000).map(|i| 1 + i % 100).collect();
    Profile { sample: vec![sample(frames)], ..base(100) }.encode_to_vec()
}

pub(super) fn many_stacks(halves: u64) -> Vec<u8> {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (random >> 33) % 300
    };
    let sample = |_| sample((0..300).map(|_| next()).collect());
    Profile { sample: (0..halves * 20_000).map(sample).collect(), ..base(300) }.encode_to_vec()
}

pub(super) fn recursion(halves: u64) -> Vec<u8> {
    let deep = halves as usize * 500_000;
    Profile { sample: vec![sample(vec![1; deep]), sample(vec![1; deep - 1])], ..base(1) }.encode_to_vec()
}

pub(super) fn large_strings(halves: u64) -> Vec<u8> {
    let mut p = base(16);
    p.string_table.extend((0..16).map(|i| vec![b'a' + i; halves as usize * 64 * HALF_MB]));
    p.function.iter_mut().for_each(|f| f.name = 3 + f.id as i64);
    p.sample = (1..=16).map(|l| sample(vec![l])).collect();
    p.encode_to_vec()
}

/// Functions with one common name, each in its own file.
pub(super) fn shared_name(halves: u64) -> Vec<u8> {
    let mut p = base(100);
    p.string_table[3] = vec![b'x'; halves as usize * HALF_MB];
    for (i, f) in p.function.iter_mut().enumerate() {
        p.string_table.push(format!("{i}.go").into_bytes());
        f.filename = 4 + i as i64;
    }
    p.sample = (1..=100).map(|l| sample(vec![l, 101 - l])).collect();
    p.encode_to_vec()
}

/// Locations without functions, each with its own address, in a binary with a long path.
pub(super) fn shared_path(halves: u64) -> Vec<u8> {
    let mut p = base(100);
    p.string_table[3] = vec![b'x'; halves as usize * HALF_MB];
    p.mapping = vec![Mapping { id: 1, filename: 3, memory_limit: 1 << 40, ..Default::default() }];
    for l in &mut p.location {
        (l.mapping_id, l.address, l.line) = (1, l.id, vec![]);
    }
    p.sample = (1..=100).map(|l| sample(vec![l, 101 - l])).collect();
    p.encode_to_vec()
}

/// Locations with 30 lines of one function each. A sample needs one byte per location, which gives 30 frames per byte.
pub(super) fn short_inlining(halves: u64) -> Vec<u8> {
    let mut p = base(30);
    p.location = (1..=100).map(|id| location(id, &(1..=30).collect::<Vec<_>>())).collect();
    p.sample = (0..halves * 1000).map(|i| sample((0..1000).map(|j| 1 + (i * j) % 100).collect())).collect();
    p.encode_to_vec()
}

fn inlining(samples: u64, lines: u64) -> Vec<u8> {
    let mut p = base(samples);
    p.location.push(location(samples + 1, &vec![1; lines as usize]));
    p.sample = (1..=samples).map(|l| sample(vec![l, samples + 1])).collect();
    p.encode_to_vec()
}

pub(super) fn inlining_allowed(_: u64) -> Vec<u8> {
    inlining(200, 20_000)
}

pub(super) fn inlining_refused(halves: u64) -> Vec<u8> {
    inlining(halves * 10_000, 20_000)
}

pub(super) fn huge_ids(halves: u64) -> Vec<u8> {
    let mut p = base(halves * 100_000);
    let huge = |id: u64| u64::MAX - id * 7919;
    p.function.iter_mut().for_each(|f| f.id = huge(f.id));
    for l in &mut p.location {
        (l.id, l.line[0].function_id, l.line[0].line) = (huge(l.id), huge(l.line[0].function_id), l.id as i64);
    }
    p.sample = (1..=halves * 100_000).map(|l| sample(vec![huge(l)])).collect();
    p.encode_to_vec()
}

pub(super) fn labels(halves: u64) -> Vec<u8> {
    let label = (1..=halves as i64 * 500_000).map(|num| Label { key: 3, num, ..Default::default() }).collect();
    Profile { sample: vec![Sample { label, ..sample(vec![1]) }], ..base(1) }.encode_to_vec()
}

pub(super) fn label_each(halves: u64) -> Vec<u8> {
    let label = |num: i64| Label { key: 3, num, ..Default::default() };
    let samples = (1..=halves as i64 * 100_000).map(|i| Sample { label: vec![label(i)], ..sample(vec![1]) });
    Profile { sample: samples.collect(), ..base(1) }.encode_to_vec()
}

/// Each label is a row of a megabyte in each format, so there are only enough labels to detect a copy of the text per
/// label.
pub(super) fn long_keys(halves: u64) -> Vec<u8> {
    let mut p = base(1);
    p.string_table.push(vec![b'k'; 1 << 20]);
    let label = |num: i64| Label { key: 4, num, ..Default::default() };
    p.sample = (1..=halves as i64 * 1000).map(|i| Sample { label: vec![label(i)], ..sample(vec![1]) }).collect();
    p.encode_to_vec()
}

pub(super) fn string_number(_: u64) -> Vec<u8> {
    let mut p = base(1);
    p.function[0].name = 1 << 31;
    p.encode_to_vec()
}
