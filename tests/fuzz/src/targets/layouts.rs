//! Any call graph: a picture of all functions in limited time, and Graphviz's text.

use std::sync::Arc;

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
