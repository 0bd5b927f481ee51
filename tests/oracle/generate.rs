//! Profiles that proptest makes up, and every legal way to write them down.

#![allow(dead_code, clippy::unwrap_used)] // each test file uses its own part

use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use proptest::prelude::*;
use prost::Message;

/// What profiles are made of; indexes are taken modulo the tables' lengths.
#[derive(Debug, Clone)]
pub struct Recipe {
    sparse_ids: bool,
    n_types: usize,
    functions: Vec<(u8, u8, u8)>,
    locations: Vec<(u8, u16, Vec<(u8, u8)>)>,
    samples: Vec<(Vec<u8>, Vec<i64>, Vec<(u8, u8, i64)>)>,
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    let value = prop_oneof![Just(0i64), -50i64..1000, Just(1i64 << 53), Just((1i64 << 53) + 1)];
    let label = (0u8..4, 0u8..6, -3i64..5);
    let sample = (
        prop::collection::vec(any::<u8>(), 0..12),
        prop::collection::vec(value, 3),
        prop::collection::vec(label, 0..3),
    );
    let location = (0u8..4, any::<u16>(), prop::collection::vec((any::<u8>(), 0u8..20), 0..4));
    (
        any::<bool>(),
        1usize..4,
        prop::collection::vec((0u8..12, 0u8..4, 0u8..3), 1..12),
        prop::collection::vec(location, 1..16),
        prop::collection::vec(sample, 0..24),
    )
        .prop_map(|(sparse_ids, n_types, functions, locations, samples)| Recipe {
            sparse_ids,
            n_types,
            functions,
            locations,
            samples,
        })
}

/// The message of a recipe. Names occur twice in the string table, some functions have no name, some
/// locations no lines, some no mapping.
pub fn profile(r: &Recipe) -> Profile {
    let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
    let mut s = |text: &str| {
        strings.push(text.as_bytes().to_vec());
        strings.len() as i64 - 1
    };
    let id = |i: usize| if r.sparse_ids { (i as u64 * 7919 + 3) << 33 | 5 } else { i as u64 + 1 };
    let types = ["alpha", "beta", "gamma"];
    let sample_type = types[..r.n_types].iter().map(|t| ValueType { r#type: s(t), unit: s("count") }).collect();
    // Sizes differ, so that no two mappings are the same binary at another address.
    let mapping: Vec<Mapping> = (0..3)
        .map(|i| Mapping {
            id: id(i),
            memory_start: 0x1000 * i as u64,
            memory_limit: 0x1000 * i as u64 + 0x10000 * (i as u64 + 1),
            filename: if i == 2 { 0 } else { s(&format!("/usr/bin/program{i}")) },
            ..Mapping::default()
        })
        .collect();
    let function: Vec<Function> = (0..r.functions.len())
        .map(|i| {
            let (name, file, start) = r.functions[i];
            Function {
                id: id(i),
                name: if name == 0 { 0 } else { s(&format!("pkg.function{name}")) },
                system_name: 0,
                filename: if file == 0 { 0 } else { s(&format!("src/file{file}.go")) },
                start_line: i64::from(start),
            }
        })
        .collect();
    let location: Vec<Location> = (0..r.locations.len())
        .map(|i| {
            let (mapping, address, lines) = &r.locations[i];
            let line = |&(f, line): &(u8, u8)| Line {
                function_id: id(usize::from(f) % r.functions.len()),
                line: i64::from(line),
                column: 0,
            };
            Location {
                id: id(i),
                mapping_id: if *mapping == 3 { 0 } else { id(usize::from(*mapping)) },
                address: u64::from(*address),
                line: lines.iter().map(line).collect(),
                is_folded: false,
            }
        })
        .collect();
    let sample = r
        .samples
        .iter()
        .map(|(locations, values, labels)| Sample {
            location_id: locations.iter().map(|&l| id(usize::from(l) % r.locations.len())).collect(),
            value: values[..r.n_types].to_vec(),
            label: labels
                .iter()
                .map(|&(key, text, num)| {
                    let key = s(&format!("key{key}"));
                    match text {
                        0 => Label { key, num, ..Label::default() },
                        1 => Label { key, num, num_unit: s("bytes"), ..Label::default() },
                        _ => Label { key, str: s(&format!("value{text}")), ..Label::default() },
                    }
                })
                .collect(),
        })
        .collect();
    Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        time_nanos: 1_700_000_000_000_000_000,
        duration_nanos: 1_000_000_000,
        string_table: strings,
        ..Profile::default()
    }
}

/// The bytes of a message, in a form that `form` chooses: order of the tables, packed, unpacked or
/// mixed numbers, unknown fields in between.
pub fn encode(p: &Profile, form: u8) -> Vec<u8> {
    let mut tables: Vec<Vec<u8>> = vec![
        field(2, p.sample.iter().map(|s| encode_sample(s, form % 3))),
        field(3, p.mapping.iter().map(Message::encode_to_vec)),
        field(4, p.location.iter().map(Message::encode_to_vec)),
        field(5, p.function.iter().map(Message::encode_to_vec)),
        field(6, p.string_table.iter().cloned()),
        field(1, p.sample_type.iter().map(Message::encode_to_vec)),
    ];
    tables.rotate_left(usize::from(form) % 6);
    if form & 8 != 0 {
        tables.reverse();
    }
    if form & 16 != 0 {
        // Unknown fields: a varint, eight bytes, a string, four bytes.
        tables.insert(3, b"\xf8\x07\x05\xf9\x0712345678\xfa\x07\x02hi\xfd\x071234".to_vec());
    }
    let mut bytes = tables.concat();
    let header = Profile { time_nanos: p.time_nanos, duration_nanos: p.duration_nanos, ..Profile::default() };
    bytes.extend(header.encode_to_vec());
    bytes
}

fn varint(out: &mut Vec<u8>, v: u64) {
    prost::encoding::encode_varint(v, out);
}

fn field(number: u64, messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    for m in messages {
        varint(&mut out, number << 3 | 2);
        varint(&mut out, m.len() as u64);
        out.extend(m);
    }
    out
}

/// A sample with its numbers packed (0), unpacked (1), or some of each with its labels in between (2).
fn encode_sample(s: &Sample, form: u8) -> Vec<u8> {
    let labels = field(3, s.label.iter().map(Message::encode_to_vec));
    let numbers = |field_number: u64, values: &[u64], packed: bool| {
        let mut out = Vec::new();
        if packed {
            let mut inner = Vec::new();
            values.iter().for_each(|&v| varint(&mut inner, v));
            out.extend(field(field_number, std::iter::once(inner)));
        } else {
            for &v in values {
                varint(&mut out, field_number << 3);
                varint(&mut out, v);
            }
        }
        out
    };
    let values: Vec<u64> = s.value.iter().map(|&v| v as u64).collect();
    let (l, v) = (s.location_id.len() / 2, values.len() / 2);
    match form {
        0 => [numbers(1, &s.location_id, true), numbers(2, &values, true), labels].concat(),
        1 => [numbers(1, &s.location_id, false), numbers(2, &values, false), labels].concat(),
        _ => [
            numbers(2, &values[..v], false),
            numbers(1, &s.location_id[..l], true),
            labels,
            numbers(1, &s.location_id[l..], false),
            numbers(2, &values[v..], true),
        ]
        .concat(),
    }
}
