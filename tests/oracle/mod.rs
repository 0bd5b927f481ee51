//! A plain implementation of the engine with prost messages and maps, used to check the fast one.
//!
//! It is simple, shares no code with the engine, and ignores speed: one object and one set of frames per sample, and
//! maps keyed by content.

#![allow(dead_code, clippy::unwrap_used)] // each test file uses its own part

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use pprofdiff::Granularity;
use pprofdiff::proto::{Location, Profile};
use prost::Message;

/// A frame as a reader sees it: name, file, line, address, mapping.
pub type Frame = (String, Option<String>, Option<i64>, Option<u64>, Option<String>);

/// Values of base and new.
pub type Sides = (i64, i64);

/// Returns the number of random cases for a property: `n`, multiplied by PPROFDIFF_CASES if it is set.
pub fn cases(n: u32) -> u32 {
    n * std::env::var("PPROFDIFF_CASES").map_or(1, |times| times.parse::<u32>().unwrap())
}

/// Returns the directory of the real profiles.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// Returns the names of the pairs in the corpus, sorted.
pub fn pairs() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(corpus())
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().into_string().unwrap().strip_suffix(".base.pb.gz").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "the corpus is missing");
    names
}

/// Returns the inflated bytes of both sides of a pair.
pub fn raw_pair(name: &str) -> [Vec<u8>; 2] {
    ["base", "new"].map(|side| gunzip(&std::fs::read(corpus().join(format!("{name}.{side}.pb.gz"))).unwrap()))
}

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

pub fn decode(bytes: &[u8]) -> Profile {
    Profile::decode(bytes).unwrap()
}

pub fn string(p: &Profile, index: i64) -> String {
    String::from_utf8_lossy(&p.string_table[index as usize]).into_owned()
}

/// Returns a path without `.`, `..` and doubled slashes. Sufficient for the paths of the corpus.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
        if part == ".." && parts.last().is_some_and(|p| *p != "..") {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    if path.starts_with('/') { format!("/{}", parts.join("/")) } else { parts.join("/") }
}

/// Fails with only the rows that differ.
pub fn assert_same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    ours: &BTreeMap<K, V>,
    plain: &BTreeMap<K, V>,
    context: &str,
) {
    let keys: BTreeSet<&K> = ours.keys().chain(plain.keys()).collect();
    let differ: Vec<String> = keys
        .into_iter()
        .filter(|k| ours.get(k) != plain.get(k))
        .map(|k| format!("{k:?}: ours {:?}, plain {:?}", ours.get(k), plain.get(k)))
        .collect();
    assert!(
        differ.is_empty(),
        "{context}: {} rows differ:\n{}",
        differ.len(),
        differ[..differ.len().min(5)].join("\n")
    );
}

/// Returns the frames of a location at a granularity, innermost first. Addresses are those of the file.
pub fn frames(p: &Profile, location: &Location, granularity: Granularity, no_inlines: bool) -> Vec<Frame> {
    let mapping = p.mapping.iter().find(|m| m.id == location.mapping_id && m.id != 0);
    let mapping = mapping.map(|m| string(p, m.filename)).filter(|f| !f.is_empty());
    let address = (granularity == Granularity::Addresses && location.address != 0).then_some(location.address);
    let nameless = |address| {
        let name = match &mapping {
            Some(file) => format!("[{}]", file.trim_end_matches('/').rsplit('/').next().unwrap()),
            None => "<unknown>".to_owned(),
        };
        (name, None, None, address, mapping.clone())
    };
    if location.line.is_empty() {
        return vec![nameless(address)];
    }
    let lines = if no_inlines { &location.line[location.line.len() - 1..] } else { &location.line[..] };
    let frame = |line: &pprofdiff::proto::Line| {
        let f = p.function.iter().find(|f| f.id == line.function_id).unwrap();
        let name = string(p, f.name);
        let file = Some(clean(&string(p, f.filename))).filter(|f| !f.is_empty());
        let number = Some(line.line).filter(|&l| l != 0);
        let (name, file, number) = match granularity {
            Granularity::Functions => (name, None, None),
            Granularity::FileFunctions => (name, file, None),
            Granularity::Files => (String::new(), file, None),
            _ => (name, file, number),
        };
        if name.is_empty() && file.is_none() && number.is_none() {
            return nameless(address);
        }
        let shown = if name.is_empty() { file.clone().unwrap_or_default() } else { name };
        (shown, file, number, address, None)
    };
    lines.iter().map(frame).collect()
}

/// One expanded sample: frames root first, labels as sorted `key=value`, value.
pub struct Stack {
    pub frames: Vec<Frame>,
    pub labels: Vec<String>,
    pub value: i64,
}

/// Returns all samples of a profile whose value in the column is not zero.
pub fn stacks(p: &Profile, column: usize, granularity: Granularity, no_inlines: bool) -> Vec<Stack> {
    let stack = |s: &pprofdiff::proto::Sample| {
        let location = |id: &u64| p.location.iter().find(|l| l.id == *id).unwrap();
        let mut all: Vec<Frame> =
            s.location_id.iter().flat_map(|id| frames(p, location(id), granularity, no_inlines)).collect();
        all.reverse();
        let mut labels: Vec<String> = s
            .label
            .iter()
            .filter(|l| l.str != 0 || l.num != 0 || l.num_unit != 0)
            .map(|l| match l.str {
                0 => format!("{}={}{}", string(p, l.key), l.num, string(p, l.num_unit)),
                text => format!("{}={}", string(p, l.key), string(p, text)),
            })
            .collect();
        labels.sort();
        Stack { frames: all, labels, value: s.value[column] }
    };
    p.sample.iter().filter(|s| s.value[column] != 0).map(stack).collect()
}

/// Returns flat and cum of each frame for both sides.
pub fn top(base: &[Stack], new: &[Stack]) -> BTreeMap<Frame, (Sides, Sides)> {
    let mut rows: BTreeMap<Frame, (Sides, Sides)> = BTreeMap::new();
    for (stacks, side) in [(base, 0), (new, 1)] {
        for s in stacks {
            for frame in s.frames.iter().collect::<BTreeSet<_>>() {
                let (flat, cum) = rows.entry(frame.clone()).or_default();
                let own_value = if s.frames.last() == Some(frame) { s.value } else { 0 };
                *(if side == 0 { &mut flat.0 } else { &mut flat.1 }) += own_value;
                *(if side == 0 { &mut cum.0 } else { &mut cum.1 }) += s.value;
            }
        }
    }
    rows
}

/// The sort key for rows by size.
pub type Size = std::cmp::Reverse<[u64; 2]>;

/// Returns the absolute deltas of the sort column and of the other column, in descending order.
pub fn size(by: Sides, other: Sides) -> Size {
    std::cmp::Reverse([by, other].map(|(base, new)| (new - base).unsigned_abs()))
}

/// Returns the order of rows with equal size. It uses the names in the profile, not the names that are shown for
/// unnamed frames.
pub fn row_order((name, file, line, address, mapping): Frame) -> impl Ord {
    let is_made_up = mapping.is_some() || name == "<unknown>" || file.as_ref() == Some(&name);
    (if is_made_up { String::new() } else { name }, file, line.unwrap_or(0), address, mapping)
}

/// Returns the weight of each (caller, callee) for both sides.
pub fn edges(base: &[Stack], new: &[Stack]) -> BTreeMap<(Frame, Frame), Sides> {
    let mut rows: BTreeMap<(Frame, Frame), Sides> = BTreeMap::new();
    for (stacks, side) in [(base, 0), (new, 1)] {
        for s in stacks {
            let pairs: BTreeSet<_> = s.frames.windows(2).map(|w| (w[0].clone(), w[1].clone())).collect();
            for edge in pairs.into_iter().filter(|(a, b)| a != b) {
                let row = rows.entry(edge).or_default();
                *(if side == 0 { &mut row.0 } else { &mut row.1 }) += s.value;
            }
        }
    }
    rows
}

/// Returns the weight of each distinct stack (optionally with its labels) for both sides.
pub fn by_stack(base: &[Stack], new: &[Stack], by_labels: bool) -> BTreeMap<(Vec<Frame>, Vec<String>), Sides> {
    let mut rows: BTreeMap<(Vec<Frame>, Vec<String>), Sides> = BTreeMap::new();
    for (stacks, side) in [(base, 0), (new, 1)] {
        for s in stacks.iter().filter(|s| !s.frames.is_empty()) {
            let labels = if by_labels { s.labels.clone() } else { Vec::new() };
            let row = rows.entry((s.frames.clone(), labels)).or_default();
            *(if side == 0 { &mut row.0 } else { &mut row.1 }) += s.value;
        }
    }
    rows
}

/// Returns the weight of each label value for both sides. Values have the unit of the file.
pub fn by_label(base: &[Stack], new: &[Stack]) -> BTreeMap<String, Sides> {
    let mut rows: BTreeMap<String, Sides> = BTreeMap::new();
    for (stacks, side) in [(base, 0), (new, 1)] {
        for s in stacks {
            for label in &s.labels {
                let row = rows.entry(label.clone()).or_default();
                *(if side == 0 { &mut row.0 } else { &mut row.1 }) += s.value;
            }
        }
    }
    rows
}
