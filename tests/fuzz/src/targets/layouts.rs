//! Any call graph: a picture of all functions in limited time, and Graphviz's text.

use std::sync::Arc;

use crate::inputs::{Inputs, RandomBytes};
use crate::shared::Choices;
use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
use pprofdiff::{Diff, Query};
use pprofdiff_report::{dot, svg};

pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let n = 2 + u64::from(choices.byte());
    let few = usize::from(choices.byte());
    let mut sample = Vec::new();
    while !choices.0.is_empty() {
        let depth = 2 + choices.byte() % 6;
        let location_id = (0..depth).map(|_| 1 + u64::from(choices.byte()) % n).collect();
        sample.push(Sample { location_id, value: vec![1 + i64::from(choices.byte())], label: vec![] });
    }
    let line = |id| vec![Line { function_id: id, line: 1, column: 0 }];
    let profile = Profile {
        string_table: [String::new(), "cpu".into()]
            .into_iter()
            .chain((0..n).map(|i| format!("f{i}")))
            .map(String::into_bytes)
            .collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 0 }],
        function: (1..=n).map(|id| Function { id, name: id as i64 + 1, ..Default::default() }).collect(),
        location: (1..=n).map(|id| Location { id, line: line(id), ..Default::default() }).collect(),
        sample,
        ..Default::default()
    };
    let profile = profile.load("in").unwrap_or_else(|e| panic!("{e}"));
    let view = Diff::of_profile(&Arc::new(profile)).and_then(|diff| diff.measure(&Query::default()));
    let view = view.unwrap_or_else(|e| panic!("{e}"));
    // All frames, or few frames, so that calls pass through omitted ones.
    for node_count in [0, few] {
        let options = GraphOptions::default()
            .with_node_count(node_count)
            .with_node_fraction(0.0)
            .with_edge_fraction(0.0)
            .with_rank(Rank::Cum);
        let graph = view.graph(&options).unwrap_or_else(|e| panic!("{e}"));
        assert!(dot(&graph, &mut Vec::new()).is_ok());
        let svg = svg(&graph).unwrap_or_else(|e| panic!("{e}"));
        let drawn = svg.matches("<g class=\"call\"").count();
        let is_reported = svg.contains(&format!("{drawn} of {} calls are drawn", graph.calls.len()));
        assert_eq!(is_reported, drawn < graph.calls.len(), "{drawn} of {} calls", graph.calls.len());
        assert!(drawn > 0 || graph.calls.is_empty(), "no call is drawn");
        assert!(svg.len() < (1 << 20) + 2000 * (drawn + graph.nodes.len()), "{} bytes", svg.len());
    }
}

/// Returns graphs of samples with two frames, of several sizes and shapes.
pub fn seeds() -> Inputs {
    let mut random = RandomBytes(1);
    let mut seeds = Vec::new();
    for n in [3, 10, 40, 100, 250] {
        let each = |calls: fn(usize, usize) -> Vec<usize>| -> Vec<(usize, usize)> {
            (0..n).flat_map(|a| calls(a, n).into_iter().map(move |b| (a, b))).collect()
        };
        let all_call_all = each(|_, n| (0..n).collect());
        let chain = (0..n - 1).map(|a| (a, a + 1)).chain((0..n).map(|a| (n - 1, a))).collect();
        let next_four = each(|a, _| (a + 1..a + 5).collect());
        let mut index = || usize::from(random.next().unwrap_or_default()) % n;
        let arbitrary = (0..600).map(|_| (index(), index())).collect();
        for (shape, calls) in [all_call_all, chain, next_four, arbitrary].into_iter().enumerate() {
            let mut input = vec![(n - 2) as u8, 20];
            for (a, b) in calls.into_iter().take(1000) {
                input.extend([0, (b % n) as u8, (a % n) as u8, random.next().unwrap_or_default()]);
            }
            seeds.push((format!("{n}-{shape}"), input));
        }
    }
    seeds
}
