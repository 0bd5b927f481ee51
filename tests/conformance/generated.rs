//! Generated pairs of profiles with content that no producer in the corpus writes. A seed determines them.
//!
//! Their content is legal but rare: sparse ids, locations without lines, functions without names, several binaries at
//! other addresses in the other run, inlined recursion, values that cancel out, labels with repeated keys, units that
//! differ between the sides, `drop_frames`, and tables in any order.

use std::path::{Path, PathBuf};

use crate::pairs::Pair;
use crate::profile::{write_bytes, write_scalar, write_varint};

pub fn pairs(count: u64) -> Vec<Pair> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    std::fs::create_dir_all(&folder).unwrap();
    let pair = |seed: u64| {
        let side = |name: &str, is_base: bool| -> PathBuf {
            // Other tests create and read the same files at the same time, so a file gets its final name when it is
            // complete.
            let path = folder.join(format!("{seed}.{name}.pb"));
            let written = folder.join(format!("{seed}.{name}.{:?}", std::thread::current().id()));
            std::fs::write(&written, Generator::new(seed, is_base).profile()).unwrap();
            std::fs::rename(&written, &path).unwrap();
            path
        };
        Pair::read(&format!("generated-{seed}"), side("base", true), side("new", false))
    };
    (1..=count).map(pair).collect()
}

/// Builds a profile with one sample, whose values are 1, 2, 3 ... in these types.
pub fn with_types(types: &[&str], default: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let message = |fields: &[(u64, u64)]| {
        let mut message = Vec::new();
        fields.iter().for_each(|&(number, value)| write_scalar(&mut message, number, value));
        message
    };
    // Strings: 0 is empty, 1 the unit, 2 the function, 3 the default, then the types.
    (0..types.len() as u64).for_each(|i| write_bytes(&mut out, 1, &message(&[(1, 4 + i), (2, 1)])));
    let values: Vec<(u64, u64)> = std::iter::once((1, 1)).chain((1..=types.len() as u64).map(|v| (2, v))).collect();
    write_bytes(&mut out, 2, &message(&values));
    let mut location = message(&[(1, 1)]);
    write_bytes(&mut location, 4, &message(&[(1, 1)]));
    write_bytes(&mut out, 4, &location);
    write_bytes(&mut out, 5, &message(&[(1, 1), (2, 2)]));
    ["", "count", "f", default].iter().chain(types).for_each(|text| write_bytes(&mut out, 6, text.as_bytes()));
    write_scalar(&mut out, 14, 3);
    out
}

/// Generates the two sides of a pair. They share their functions, and differ in samples, addresses and table order.
struct Generator {
    shared: Random,
    own: Random,
    is_base: bool,
    strings: Vec<String>,
}

/// A xorshift64* generator, the same on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

struct Function {
    name: String,
    file: String,
    start_line: u64,
}

impl Generator {
    fn new(seed: u64, is_base: bool) -> Generator {
        let scrambled = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed_of_side = if is_base { scrambled ^ 0xba5e } else { scrambled ^ 0x4e3 };
        Generator { shared: Random(scrambled), own: Random(seed_of_side), is_base, strings: vec![String::new()] }
    }

    fn string(&mut self, text: &str) -> u64 {
        let position = self.strings.iter().position(|string| string == text);
        position.unwrap_or_else(|| {
            self.strings.push(text.into());
            self.strings.len() - 1
        }) as u64
    }

    fn profile(mut self) -> Vec<u8> {
        // Ids have gaps. On one side they are too large for a table indexed by id.
        let stride = if self.own.one_in(3) { 1 << 33 } else { 1 + self.own.below(3) };
        let id = |position: usize| (position as u64 + 1) * stride;

        let functions = self.functions();
        let mut messages: Vec<(u64, Vec<u8>)> = Vec::new();

        let base_unit = ["milliseconds", "microseconds", "nanoseconds"][self.shared.below(3) as usize];
        let unit = if self.is_base { base_unit } else { "nanoseconds" };
        // One column may be missing on one side, and the order differs.
        let mut types = vec![("objects", "count"), ("time", unit), ("space", "bytes")];
        match self.own.below(3) {
            0 if self.is_base => drop(types.pop()),
            1 => types.swap(0, 1),
            _ => {}
        }
        for (name, unit) in &types {
            let mut message = Vec::new();
            let (name, unit) = (self.string(name), self.string(unit));
            write_scalar(&mut message, 1, name);
            write_scalar(&mut message, 2, unit);
            messages.push((1, message));
        }

        let mapping_count = 3;
        let slide = 0x1000 * self.own.below(1 << 20);
        for position in 0..mapping_count {
            let file = ["/usr/bin/server", "/lib/libfirst.so", ""][position];
            let start = 0x40_0000 + 0x10_0000 * position as u64 + slide;
            let mut message = Vec::new();
            write_scalar(&mut message, 1, id(position));
            write_scalar(&mut message, 2, start);
            write_scalar(&mut message, 3, start + 0x8_0000);
            let file = self.string(file);
            write_scalar(&mut message, 5, file);
            messages.push((3, message));
        }

        for (position, function) in functions.iter().enumerate() {
            let (name, file) = (self.string(&function.name), self.string(&function.file));
            let mut message = Vec::new();
            write_scalar(&mut message, 1, id(position));
            write_scalar(&mut message, 2, name);
            write_scalar(&mut message, 3, name);
            write_scalar(&mut message, 4, file);
            write_scalar(&mut message, 5, function.start_line);
            messages.push((5, message));
        }

        let location_count = 20 + self.shared.below(30) as usize;
        for position in 0..location_count {
            let mut message = Vec::new();
            write_scalar(&mut message, 1, id(position));
            // Some locations have no mapping. Their addresses are the same in every run.
            let mapping = self.shared.below(mapping_count as u64 + 1);
            let offset = self.shared.below(0x8000) * 8;
            if mapping < mapping_count as u64 {
                write_scalar(&mut message, 2, id(mapping as usize));
                write_scalar(&mut message, 3, 0x40_0000 + 0x10_0000 * mapping + slide + offset);
            } else {
                write_scalar(&mut message, 3, offset);
            }
            // Either all lines of a location have a file, or none: see `exceptions::FILES`.
            let has_files = !self.shared.one_in(4);
            let alike: Vec<usize> =
                (0..functions.len()).filter(|&index| functions[index].file.is_empty() != has_files).collect();
            let line_count = [0, 1, 1, 1, 2, 2, 3, 4][self.shared.below(8) as usize];
            for _ in 0..if alike.is_empty() { 0 } else { line_count } {
                let index = alike[self.shared.below(alike.len() as u64) as usize];
                let number = self.shared.below(6);
                let mut line = Vec::new();
                write_scalar(&mut line, 1, id(index));
                write_scalar(&mut line, 2, if functions[index].name.is_empty() { 0 } else { number });
                write_bytes(&mut message, 4, &line);
            }
            messages.push((4, message));
        }

        for _ in 0..30 + self.own.below(60) {
            let sample = self.sample(location_count, &types, id);
            messages.push((2, sample));
        }
        // Frames that every view drops.
        let dropped = self.string("main\\.[ab]|ns::.*|\\(anonymous namespace\\)::c");
        let kept = self.string("main\\.b|ns::d.*");
        let drops = self.shared.one_in(2);
        for text in &self.strings {
            messages.push((6, text.clone().into_bytes()));
        }

        // Fields may come in any order as long as the order within each table is kept. Here the samples or the strings
        // may come first.
        match self.own.below(3) {
            0 => messages.sort_by_key(|(number, _)| *number),
            1 => messages.sort_by_key(|(number, _)| 6 - number),
            _ => {}
        }
        let mut out = Vec::new();
        for (number, message) in messages {
            write_bytes(&mut out, number, &message);
        }
        if drops {
            write_scalar(&mut out, 7, dropped);
            write_scalar(&mut out, 8, kept);
        }
        write_scalar(&mut out, 10, 1_000_000_000 + self.own.below(1_000_000_000));
        out
    }

    fn functions(&mut self) -> Vec<Function> {
        let count = 8 + self.shared.below(20);
        let function = |random: &mut Random| {
            let letter = (b'a' + random.below(12) as u8) as char;
            let name = match random.below(12) {
                0 => String::new(),
                1 => format!("ns::{letter}::operator()(int, char)"),
                2 => format!("main.(*T{letter}).Method"),
                3 => format!("<impl Trait for {letter}>::call::{{{{closure}}}}"),
                4 => format!("(anonymous namespace)::{letter}(std::string)"),
                5 => format!("Größe{letter}"),
                _ => format!("main.{letter}"),
            };
            let file = match random.below(6) {
                // See `exceptions::NAMELESS`.
                _ if name.is_empty() => String::new(),
                0 => String::new(),
                1 => format!("/src//lib/../{letter}.go"),
                2 => "/proc/self/cwd/main.cc".into(),
                number => format!("/src/file{number}.go"),
            };
            let start_line = if name.is_empty() { 0 } else { random.below(3) * 10 };
            Function { name, file, start_line }
        };
        (0..count).map(|_| function(&mut self.shared)).collect()
    }

    fn sample(&mut self, location_count: usize, types: &[(&str, &str)], id: impl Fn(usize) -> u64) -> Vec<u8> {
        let mut message = Vec::new();
        let depth = self.own.below(9);
        let locations: Vec<u64> = (0..depth).map(|_| id(self.own.below(location_count as u64) as usize)).collect();
        // Values are small, so that sums cancel out. Some are negative, as in a written diff, and some are zero.
        let values: Vec<u64> = types
            .iter()
            .map(|(name, unit)| match self.own.below(5) {
                // See `exceptions::CONVERTED`.
                _ if *name == "time" && *unit != "nanoseconds" => 1 + self.own.below(9),
                0 => 0,
                1 => -(self.own.below(5) as i64) as u64,
                _ => self.own.below(9),
            })
            .collect();
        for (number, integers) in [(1, locations), (2, values)] {
            if self.own.one_in(4) {
                integers.iter().for_each(|integer| write_scalar(&mut message, number, *integer));
            } else {
                let mut packed = Vec::new();
                integers.iter().for_each(|integer| write_varint(&mut packed, *integer));
                write_bytes(&mut message, number, &packed);
            }
        }
        for _ in 0..self.own.below(4) {
            let mut label = Vec::new();
            let is_text = self.own.one_in(2);
            let key = match is_text {
                true => ["thread", "tenant", "bytes"][self.own.below(3) as usize],
                false => ["bytes", "latency", "shard"][self.own.below(3) as usize],
            };
            let key_index = self.string(key);
            write_scalar(&mut label, 1, key_index);
            if is_text {
                let text = ["one", "two=2", "32kb", "a,b"][self.own.below(4) as usize];
                let value = self.string(text);
                write_scalar(&mut label, 2, value);
            } else {
                write_scalar(&mut label, 3, 512 * self.own.below(8));
                let unit = match key {
                    "latency" => self.string("milliseconds"),
                    "bytes" => self.string("bytes"),
                    _ => 0,
                };
                write_scalar(&mut label, 4, unit);
            }
            write_bytes(&mut message, 3, &label);
        }
        message
    }
}
