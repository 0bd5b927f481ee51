//! Snapshots of a synthetic process: growing counters, arbitrary gauges, and stacks that appear (and, on request,
//! vanish). Each snapshot has another legal encoding.

#![allow(dead_code)] // each test file uses its own part

use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

/// A splitmix64 generator, the same on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A stack of the process, with its counters so far.
#[derive(Clone)]
struct Stack {
    locations: Vec<usize>,
    labels: Vec<(u64, u64)>,
    counted: [i64; 2],
    in_use: [i64; 2],
}

/// The process: its possible locations, and its stacks.
pub struct Process {
    random: Random,
    /// Mapping (3 for none), relative address, lines as (function, line, column), folded.
    locations: Vec<(u64, u64, Vec<(u64, i64, i64)>, bool)>,
    stacks: Vec<Stack>,
    vanishing: bool,
    taken: i64,
}

/// The sample types. The first two are cumulative.
pub const TYPES: [(&str, &str); 4] =
    [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];

const FUNCTIONS: u64 = 14;

impl Process {
    pub fn new(seed: u64, vanishing: bool) -> Process {
        let mut random = Random(seed);
        let locations = (0..40)
            .map(|_| {
                let lines = (0..random.below(4))
                    .map(|_| (random.below(FUNCTIONS), random.below(3) as i64 - 1, random.below(2) as i64))
                    .collect();
                // Many locations have no address, so only their lines distinguish them.
                let address = if random.one_in(2) { 0 } else { random.below(0x4000) };
                (random.below(4), address, lines, random.one_in(10))
            })
            .collect();
        Process { random, locations, stacks: Vec::new(), vanishing, taken: 0 }
    }

    fn grow(&mut self) {
        let random = &mut self.random;
        for _ in 0..5 + random.below(20) {
            // The same stack may occur twice in the process, which gives duplicate samples.
            let depth = if random.one_in(12) { 40 + random.below(60) } else { random.below(9) };
            self.stacks.push(Stack {
                locations: (0..depth).map(|_| random.below(40) as usize).collect(),
                labels: (0..random.below(3)).map(|_| (random.below(4), random.below(6))).collect(),
                counted: [0; 2],
                in_use: [0; 2],
            });
        }
        if self.vanishing {
            // Removes stacks of the older half, but keeps short stacks. A short stack may occur twice, and its sum would
            // decrease instead of vanishing.
            let n = self.stacks.len();
            let mut index = 0;
            self.stacks.retain(|s| {
                index += 1;
                s.locations.len() < 4 || index > n / 2 || !random.one_in(4)
            });
        }
        for s in &mut self.stacks {
            if !random.one_in(3) {
                let more = random.below(1000) as i64;
                s.counted = [s.counted[0] + more, s.counted[1] + more * (16 << random.below(12))];
            }
            let in_use = if random.one_in(2) { random.below(50) as i64 } else { 0 };
            s.in_use = [in_use, in_use * 48];
        }
    }

    /// Advances the process, and takes a snapshot.
    pub fn snapshot(&mut self) -> Profile {
        self.grow();
        self.taken += 1;
        let random = &mut self.random;
        let mut strings = Strings(vec![Vec::new()]);
        for i in 0..random.below(5) {
            strings.add(&format!("unused {i}"));
        }
        let sample_type = TYPES.map(|(kind, unit)| ValueType { r#type: strings.add(kind), unit: strings.add(unit) });
        // Ids differ in each snapshot: consecutive, or sparse.
        let sparse = random.one_in(2);
        let salt = random.below(1 << 20);
        let id = |i: u64| if sparse { (i * 7919 + salt + 3) << 33 | 5 } else { i + 1 };

        let base = random.below(1 << 20) << 12;
        let mapping: Vec<Mapping> = (0..3)
            .map(|i| Mapping {
                id: id(i),
                memory_start: base + (i << 32),
                memory_limit: base + (i << 32) + 0x10000 * (i + 1),
                file_offset: i * 0x1000,
                filename: if i == 2 { 0 } else { strings.add(&format!("/usr/bin/program{i}")) },
                build_id: if i == 1 { strings.add("0123abcd") } else { 0 },
                has_functions: true,
                ..Mapping::default()
            })
            .collect();
        let mut function: Vec<Function> = (0..FUNCTIONS)
            .map(|i| Function {
                id: id(i),
                // Two functions have the same name as another, but not the same first line or file.
                name: if i == 3 { 0 } else { strings.add(&format!("pkg.function{}", i % 12)) },
                system_name: if i % 5 == 1 { strings.add(&format!("_ZN{i}")) } else { 0 },
                filename: if i == 4 { 0 } else { strings.add(&format!("src/file{}.go", i % 3 + i / 12)) },
                start_line: i as i64 / 6,
            })
            .collect();
        // Some locations occur twice, under two ids.
        let mut location: Vec<Location> = Vec::new();
        for (i, (m, address, lines, is_folded)) in (0..).zip(self.locations.iter().chain(&self.locations[..8])) {
            let start = if *m == 3 { 0 } else { mapping[*m as usize].memory_start };
            location.push(Location {
                id: id(i),
                mapping_id: if *m == 3 { 0 } else { id(*m) },
                address: start + address,
                line: lines.iter().map(|&(f, line, column)| Line { function_id: id(f), line, column }).collect(),
                is_folded: *is_folded,
            });
        }
        let mut sample: Vec<Sample> = Vec::new();
        for s in &self.stacks {
            let twin =
                |&l: &usize, random: &mut Random| id(if l < 8 && random.one_in(2) { l as u64 + 40 } else { l as u64 });
            let location_id: Vec<u64> = s.locations.iter().map(|l| twin(l, random)).collect();
            let mut label: Vec<Label> = s
                .labels
                .iter()
                .map(|&(key, value)| {
                    let key = strings.add(&format!("key{key}"));
                    match value {
                        0 => Label { key, num: 0, num_unit: strings.add("bytes"), ..Label::default() },
                        1 => Label { key, num: -7, ..Label::default() },
                        2 => Label { key, ..Label::default() },
                        _ => Label { key, str: strings.add(&format!("value{value}")), ..Label::default() },
                    }
                })
                .collect();
            let value: Vec<i64> = s.counted.into_iter().chain(s.in_use).collect();
            // The order of label keys does not matter, but the order of values of one key does.
            let text = |index: i64| strings.0[index as usize].clone();
            if label.len() == 2 && text(label[0].key) != text(label[1].key) && random.one_in(2) {
                label.swap(0, 1);
            }
            if random.one_in(6) {
                // Splits the sample in two.
                let part: Vec<i64> = value.iter().map(|&v| v / 3).collect();
                let rest = value.iter().zip(&part).map(|(v, p)| v - p).collect();
                sample.push(Sample { location_id: location_id.clone(), value: rest, label: label.clone() });
                sample.push(Sample { location_id, value: part, label });
            } else {
                sample.push(Sample { location_id, value, label });
            }
        }
        match random.below(4) {
            0 => random.shuffle(&mut sample),
            1 => sample.reverse(),
            2 => sample.rotate_right(1),
            _ => {}
        }
        if sparse {
            random.shuffle(&mut location);
            random.shuffle(&mut function);
        }
        let time_nanos = 1_700_000_000_000_000_000 + self.taken * 10_000_000_000;
        let mut p = Profile {
            sample_type: sample_type.to_vec(),
            sample,
            mapping,
            location,
            function,
            drop_frames: strings.add("runtime\\..*"),
            keep_frames: strings.add("runtime\\.main"),
            time_nanos,
            period_type: Some(ValueType { r#type: strings.add("space"), unit: strings.add("bytes") }),
            period: 524_288,
            comment: vec![strings.add("a comment"), strings.add("another")],
            default_sample_type: strings.add("inuse_space"),
            doc_url: strings.add("https://example.com/heap"),
            ..Profile::default()
        };
        p.string_table = strings.0;
        p
    }
}

/// A string table that may contain duplicates.
struct Strings(Vec<Vec<u8>>);

impl Strings {
    fn add(&mut self, text: &str) -> i64 {
        self.0.push(text.as_bytes().to_vec());
        self.0.len() as i64 - 1
    }
}
