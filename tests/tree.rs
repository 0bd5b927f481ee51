//! Compares views that use the shared tree of stacks with views that walk the samples, and with the plain
//! implementation. The inputs are the corpus and generated profiles, whose locations share functions (recursion,
//! partial inlining), whose values are negative or cancel out, and whose types are zero in some samples.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

use crate::generate;
use crate::oracle;
use pprofdiff::edges::Relation;
use pprofdiff::flame::FlameOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::{
    Diff, Filters, Granularity, LoadOptions, Measure, Normalize, Profile, Query, Selection, Sort, Status, proto,
};
use proptest::prelude::*;

fn load(bytes: &[u8]) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("test", bytes, &LoadOptions::default()).unwrap())
}

/// Returns each view as text, with its rows in order.
fn views(measure: &Measure) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let mut add = |name: String, rows: Vec<String>| all.push((name, rows));
    let frames = measure.frames();
    let label = |frame: u32| format!("{} {:?}", frames.label(frame), frames.mapping(frame));
    add("kept".to_owned(), vec![format!("{:?}", measure.kept_total())]);
    for sort in [Sort::Flat, Sort::Cum] {
        let top = measure.top(sort);
        let rows = top.rows.iter().map(|r| format!("{} {:?} {:?} {:?}", label(r.frame), r.flat, r.cum, r.status));
        add(format!("top {sort:?}"), rows.collect());
        let edges = measure.edges(Some("[1-5]|main"), sort).unwrap();
        let rows = edges.edges.iter();
        let rows = rows.map(|e| format!("{} {:?} {} {:?}", label(e.node), e.relation, label(e.other), e.weight));
        add(format!("edges {sort:?}"), rows.collect());
    }
    let all_nodes = GraphOptions::default().with_node_count(0).with_node_fraction(0.0).with_edge_fraction(0.0);
    let few = all_nodes.with_node_count(5);
    for options in [GraphOptions::default(), all_nodes, few, few.with_rank(pprofdiff::graph::Rank::Cum)] {
        let graph = measure.graph(&options).unwrap();
        let nodes = graph.nodes.iter().map(|n| format!("{} {:?} {:?}", label(n.frame), n.cum, n.status));
        let name = |node: u32| label(graph.nodes[node as usize].frame);
        let calls = graph.calls.iter().map(|c| {
            let marks = (c.residual, c.inlined);
            format!("{} calls {} {:?} {marks:?}", name(c.caller), name(c.callee), c.weight)
        });
        let counts = format!("{} {} {}", graph.nodes_total, graph.edge_cutoff, graph.dropped_calls);
        add(format!("graph {options:?}"), nodes.chain(calls).chain([counts]).collect());
    }
    let everything = FlameOptions::default().with_min_width(0.0).with_max_frames(usize::MAX);
    for options in [everything, everything.with_max_frames(7), everything.with_min_width(0.1)] {
        for inverted in [false, true] {
            let flame = measure.flame(&options.with_inverted(inverted));
            let mut rows: Vec<String> = flame.nodes.iter().map(|node| format!("{node:?}")).collect();
            rows.push(format!("{:?}", flame.pruned));
            add(format!("flame {options:?} inverted={inverted}"), rows);
        }
    }
    all
}

/// Returns two selections of one query, without and with a tree.
fn both(diff: &Diff, query: &Query) -> (Selection, Selection) {
    let (plain, tree) = (diff.select(query).unwrap(), diff.select(query).unwrap());
    tree.build_tree();
    assert!(tree.has_tree() && !plain.has_tree());
    (plain, tree)
}

/// Checks that all views of all sample types are the same, and returns the number of rows.
fn check(diff: &Diff, query: &Query) -> usize {
    let (plain, tree) = both(diff, query);
    let mut rows = 0;
    for i in 0..diff.sample_types().len() {
        let (Ok(plain), Ok(tree)) = (plain.measure_type(i, query.normalize), tree.measure_type(i, query.normalize))
        else {
            continue;
        };
        for ((name, plain), (_, tree)) in views(&plain).iter().zip(&views(&tree)) {
            assert_eq!(plain, tree, "{name} {query:?}");
            rows += plain.len();
        }
    }
    rows
}

/// Checks that frames and edges equal those of the plain implementation.
fn check_plain(base: &[u8], new: &[u8], granularity: Granularity, no_inlines: bool) {
    let diff = Diff::new(&[load(base)], &[load(new)]).unwrap();
    let (base, new) = (oracle::decode(base), oracle::decode(new));
    let query = Query::default().with_granularity(granularity).with_no_inlines(no_inlines);
    let (_, selection) = both(&diff, &query);
    for (i, (kind, _)) in diff.sample_types().iter().enumerate() {
        let column =
            |p: &proto::Profile| p.sample_type.iter().position(|t| oracle::string(p, t.r#type) == *kind).unwrap();
        let stacks = |p| oracle::stacks(p, column(p), granularity, no_inlines);
        let (base, new) = (stacks(&base), stacks(&new));
        let measure = selection.measure_type(i, Normalize::None).unwrap();
        let frames = measure.frames().clone();
        let frame = |f: u32| (frames.name(f), frames.file(f), frames.line(f), frames.address(f), frames.mapping(f));
        let edges = measure.edges(None, Sort::Flat).unwrap();
        let rows = edges.nodes.iter();
        let rows = rows.map(|r| (frame(r.frame), ((r.flat.base, r.flat.new), (r.cum.base, r.cum.new)))).collect();
        oracle::assert_same(&rows, &oracle::top(&base, &new), kind);
        let calls = edges.edges.iter().filter(|e| e.relation == Relation::Callee);
        let calls: BTreeMap<_, _> =
            calls.map(|e| ((frame(e.node), frame(e.other)), (e.weight.base, e.weight.new))).collect();
        oracle::assert_same(&calls, &oracle::edges(&base, &new), kind);
    }
}

fn filtered(name: &str, value: &str) -> Query {
    Query::default().with_filters(Filters::default().with(name, value).unwrap())
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn views_of_the_corpus_are_the_same_with_and_without_a_tree() {
    for name in oracle::pairs() {
        let raw = oracle::raw_pair(&name);
        let [base, new] = raw.clone().map(|bytes| load(&bytes));
        let diff = Diff::new(from_ref(&base), from_ref(&new)).unwrap();
        assert!(check(&diff, &Query::default()) > 100, "{name}");
        let lines = Query::default().with_granularity(Granularity::Lines);
        check(&diff, &lines);
        check(&diff, &lines.clone().with_no_inlines(true));
        check(&diff, &Query::default().with_normalize(Normalize::Factor(0.3)));
        check(&diff, &filtered("focus", "a.*e"));
        check(&diff, &filtered("hide", "^[a-m]").with_granularity(Granularity::Lines));
        check(&Diff::of_profile(&new).unwrap(), &Query::default());
        // A written diff: two sides in one file.
        let written = diff.to_profile(&Query::default()).unwrap();
        check(&Diff::of_profile(&Arc::new(written)).unwrap(), &Query::default());
        // Runs, whose values are means, and summed sides.
        let runs = Diff::new(&[base.clone(), new.clone(), base.clone()], &[new, base]).unwrap();
        check(&runs, &Query::default().with_normalize(Normalize::Total));
        check(&runs.summed(), &Query::default());
        let [base, new] = raw
            .map(|bytes| prost::Message::encode_to_vec(&proto::Profile { drop_frames: 0, ..oracle::decode(&bytes) }));
        check_plain(&base, &new, Granularity::Functions, false);
    }
}

#[test]
fn means_are_the_same_with_and_without_a_tree() {
    let [_, new] = oracle::raw_pair("go-heap-ops").map(|bytes| load(&bytes));
    let diff = Diff::of_profile(&new).unwrap();
    let (plain, tree) = both(&diff, &Query::default().with_mean(true));
    for sample_type in [0, 1] {
        let [plain, tree] = [&plain, &tree].map(|s| s.measure_type(sample_type, Normalize::None).unwrap());
        assert_eq!(plain.summary().total, tree.summary().total);
        assert_eq!(plain.top(Sort::Cum).rows, tree.top(Sort::Cum).rows);
        assert_eq!(plain.edges(None, Sort::Cum).unwrap().edges, tree.edges(None, Sort::Cum).unwrap().edges);
    }
}

#[test]
fn rows_whose_values_cancel_out_are_kept() {
    let base = load(b"main;a 1\nmain;e 1\nmain;e -1\nmain;g 2\n");
    let new = load(b"main;a 2\nmain;f 3\nmain;f;f 1\nmain;f -3\nmain;f;f -1\nmain;g 1\nmain;g -1\n");
    let diff = Diff::new(&[base], &[new]).unwrap();
    assert!(check(&diff, &Query::default()) > 40);
    let (_, tree) = both(&diff, &Query::default());
    let top = tree.measure(None, Normalize::None).unwrap().top(Sort::Flat);
    let status = |name: &str| top.rows.iter().find(|r| top.frames.name(r.frame) == name).map(|r| r.status);
    assert_eq!(["e", "f", "g"].map(status), [Status::Removed, Status::Added, Status::Changed].map(Some));
}

#[test]
fn a_tree_that_is_too_large_is_not_built() {
    // A frame takes one byte here, but eight in a tree.
    let mut p = proto::Profile { string_table: vec![vec![], b"n".to_vec(), b"f".to_vec()], ..Default::default() };
    p.sample_type.push(proto::ValueType { r#type: 1, unit: 1 });
    for id in 1..=2 {
        p.function.push(proto::Function { id, name: 2, start_line: id as i64, ..Default::default() });
        let line = vec![proto::Line { function_id: id, line: id as i64, ..Default::default() }];
        p.location.push(proto::Location { id, line, ..Default::default() });
    }
    let locations: Vec<u64> = (0..10_000_000).map(|i| 1 + i % 2).collect();
    p.sample.push(proto::Sample { location_id: locations, value: vec![1], ..Default::default() });
    let diff = Diff::of_profile(&load(&prost::Message::encode_to_vec(&p))).unwrap();
    let selection = diff.select(&Query::default().with_granularity(Granularity::Lines)).unwrap();
    selection.build_tree();
    assert!(!selection.has_tree());
    assert_eq!(selection.measure(None, Normalize::None).unwrap().top(Sort::Flat).rows.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: oracle::cases(16), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn views_of_generated_profiles_are_the_same_with_and_without_a_tree(
        a in generate::recipe(), b in generate::recipe(), c in generate::recipe(), factor in 0.01..3.0,
    ) {
        let bytes = [&a, &b, &c].map(|recipe| generate::encode(&generate::profile(recipe), 0));
        let [a, b, c] = [&bytes[0], &bytes[1], &bytes[2]].map(|bytes| load(bytes));
        let functions = Query::default();
        let lines = Query::default().with_granularity(Granularity::Lines);
        let filters = [
            ("focus", "function[1-4]"), ("ignore", "function2"), ("hide", "function[3-6]"), ("show", "function|program"),
            ("show_from", "function[25]"), ("prune_from", "function7"), ("tagfocus", "key1"), ("tagroot", "key1,key2"),
            ("tagleaf", "key0"),
        ];
        for diff in [
            Diff::new(from_ref(&a), from_ref(&b)),
            Diff::new(&[a.clone(), c.clone()], &[b.clone(), a.clone(), b.clone()]),
            Diff::of_profile(&c),
        ] {
            let Ok(diff) = diff else { continue };
            check(&diff, &functions);
            check(&diff, &lines);
            check(&diff, &lines.clone().with_no_inlines(true));
            if diff.is_two_sided() {
                check(&diff, &functions.clone().with_normalize(Normalize::Factor(factor)));
                check(&diff.clone().summed(), &functions);
            }
            for (name, value) in filters {
                check(&diff, &filtered(name, value));
            }
        }
        for granularity in [Granularity::Functions, Granularity::Lines, Granularity::Files] {
            check_plain(&bytes[0], &bytes[1], granularity, false);
        }
    }
}
