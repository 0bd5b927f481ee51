//! Generated stacks with labels, as deep and as numerous as a few bytes can describe. `explain` must stay within a
//! bounded amount of work, and name only causes that exist.

use std::sync::Arc;

use crate::inputs::Inputs;
use crate::shared::Choices;
use pprofdiff::proto::{Function, Label, Line, Location, Profile, Sample, ValueType};
use pprofdiff::{Diff, Query};
use pprofdiff_explain::ExplainOptions;

/// Maximum steps for any input, plus a maximum per byte of both profiles. Both are above the engine's own limit, where
/// it stops comparing, but not immediately.
const WORK: u64 = 1 << 28;
const WORK_OF_BYTE: u64 = 96;

pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let n = 2 + u64::from(choices.byte());
    let (keys, values) = (1 + i64::from(choices.byte()), 1 + i64::from(choices.byte() % 8));
    let mut sides: [Vec<Sample>; 2] = Default::default();
    while !choices.0.is_empty() {
        let placement = choices.byte();
        let (first, step, depth) = (choices.byte(), choices.byte(), choices.byte());
        let (has, of_label, value) = (i64::from(choices.byte()), i64::from(choices.byte()), i64::from(choices.byte()));
        let location_id = (0..1 + u64::from(depth)).map(|i| 1 + (u64::from(first) + i * u64::from(step)) % n).collect();
        let label =
            |key: i64| Label { key: 2 + key, str: 2 + keys + (key * of_label + value) % values, ..Label::default() };
        let sample = Sample { location_id, value: vec![value], label: (0..has.min(keys)).map(label).collect() };
        // On the base, on the new side, or on both, where it may cost more.
        let more = i64::from(placement / 4) * i64::from(placement % 4 == 3);
        if placement % 4 != 1 {
            sides[0].push(sample.clone());
        }
        if placement % 4 != 0 {
            sides[1].push(Sample { value: vec![value + more], ..sample });
        }
    }
    let texts = (0..keys).map(|i| format!("k{i}")).chain((0..values).map(|i| format!("v{i}")));
    let names = (0..n).map(|i| if i % 5 == 4 { format!("runtime.f{i}") } else { format!("main.f{i}") });
    let strings: Vec<String> = [String::new(), "cpu".into()].into_iter().chain(texts).chain(names).collect();
    let line = |id| vec![Line { function_id: id, line: 1, column: 0 }];
    let first_name = 2 + keys + values - 1;
    let [base, new] = sides.map(|sample| {
        let profile = Profile {
            string_table: strings.iter().cloned().map(String::into_bytes).collect(),
            sample_type: vec![ValueType { r#type: 1, unit: 0 }],
            function: (1..=n).map(|id| Function { id, name: first_name + id as i64, ..Default::default() }).collect(),
            location: (1..=n).map(|id| Location { id, line: line(id), ..Default::default() }).collect(),
            sample,
            ..Default::default()
        };
        Arc::new(profile.load("in").unwrap_or_else(|e| panic!("{e}")))
    });
    let bytes = base.inflated_size() + new.inflated_size();
    let diff = Diff::new(&[base], &[new]).unwrap_or_else(|e| panic!("{e}"));
    let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default())
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(e.work <= WORK + WORK_OF_BYTE * bytes as u64, "{} steps for {bytes} bytes", e.work);
    assert!(e.causes.iter().all(|c| c.delta.is_finite() && c.score.is_finite()), "{:?}", e.causes);
}

/// Returns profiles with few and many functions and labels, and with short and deep stacks.
pub fn seeds() -> Inputs {
    let mut seeds = Vec::new();
    for (functions, keys, labels) in [(20, 3, 2), (200, 0, 0), (100, 200, 200), (250, 250, 250)] {
        for depth in [5, 60, 250] {
            // The placement, the frames (first, step, number), the labels (number, a value), and the cost.
            let samples = (0..100).flat_map(|i| [3 + 4 * (i % 3), i, 1 + i % 7, depth, labels, i, 20 + i]);
            let input = [functions, keys, 3].into_iter().chain(samples).collect();
            seeds.push((format!("{functions}-{labels}-{depth}"), input));
        }
    }
    seeds
}
