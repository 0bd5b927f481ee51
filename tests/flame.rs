//! Compares flame graphs with a plain implementation (a map of paths), and checks the invariants for drawing and
//! pruning.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::generate;
use crate::oracle;
use oracle::{Frame, Sides};
use pprofdiff::flame::{Flame, FlameFrame, FlameNode, FlameOptions, Widths};
use pprofdiff::{Diff, Granularity, LoadOptions, Measure, Normalize, Profile, Query, Status, proto};
use proptest::prelude::*;

fn everything() -> FlameOptions {
    FlameOptions::default().with_min_width(0.0).with_max_frames(usize::MAX)
}

fn load(bytes: &[u8]) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("test", bytes, &LoadOptions::default()).unwrap())
}

fn query(kind: &str) -> Query {
    Query::default().with_sample_type(kind).with_granularity(Granularity::Lines)
}

/// A node's path from the root. `None` stands for `(pruned)`.
type Path = Vec<Option<Frame>>;

fn paths(flame: &Flame) -> BTreeMap<Path, FlameNode> {
    let frames = &flame.frames;
    let (mut nodes, mut path) = (BTreeMap::new(), Path::new());
    for (i, node) in flame.nodes.iter().enumerate() {
        assert_eq!(i == 0, node.frame == FlameFrame::Root);
        path.truncate((node.depth as usize).saturating_sub(1));
        assert_eq!(path.len(), (node.depth as usize).saturating_sub(1), "a node before its parent");
        match node.frame {
            FlameFrame::Root => {}
            FlameFrame::Pruned => path.push(None),
            FlameFrame::Frame(f) => {
                path.push(Some((frames.name(f), frames.file(f), frames.line(f), frames.address(f), frames.mapping(f))))
            }
        }
        assert!(nodes.insert(path.clone(), *node).is_none(), "a path has two nodes");
    }
    nodes
}

type Plain = BTreeMap<Path, (Sides, Sides, [i64; 4])>;

/// Computes cum, flat and widths (larger, base, new, change) of every path from the values of whole stacks.
fn plain(stacks: &BTreeMap<(Vec<Frame>, Vec<String>), Sides>, inverted: bool) -> Plain {
    let mut nodes = Plain::from([(Path::new(), ((0, 0), (0, 0), [0; 4]))]);
    for ((frames, _), (base, new)) in stacks {
        let mut path: Path = frames.iter().cloned().map(Some).collect();
        if inverted {
            path.reverse();
        }
        for length in 0..=path.len() {
            let (cum, flat, widths) = nodes.entry(path[..length].to_vec()).or_default();
            *cum = (cum.0 + base, cum.1 + new);
            if length == path.len() {
                *flat = (flat.0 + base, flat.1 + new);
            }
            let (b, n) = (base.abs(), new.abs());
            for (sum, width) in widths.iter_mut().zip([b.max(n), b, n, (new - base).abs()]) {
                *sum += width;
            }
        }
    }
    nodes
}

fn list(w: Widths) -> [i64; 4] {
    [w.max, w.base, w.new, w.delta]
}

/// Returns the sums of the children's widths and cum values, for each path with children.
fn beneath(nodes: &BTreeMap<Path, FlameNode>) -> BTreeMap<Path, ([i64; 4], Sides)> {
    let mut sums: BTreeMap<Path, ([i64; 4], Sides)> = BTreeMap::new();
    for (path, node) in nodes.iter().filter(|(path, _)| !path.is_empty()) {
        let (widths, cum) = sums.entry(path[..path.len() - 1].to_vec()).or_default();
        widths.iter_mut().zip(list(node.width)).for_each(|(s, w)| *s += w);
        *cum = (cum.0 + node.cum.base, cum.1 + node.cum.new);
    }
    sums
}

/// Checks the invariants of any flame graph, pruned or not.
fn check_invariants(flame: &Flame, whole: &Flame, options: &FlameOptions) {
    let (pruned, all) = (paths(flame), paths(whole));
    let frames = flame.nodes.iter().filter(|n| matches!(n.frame, FlameFrame::Frame(_))).count();
    assert!(frames <= options.max_frames && flame.nodes.len() <= 2 * frames + 2);
    let beneath = beneath(&pruned);
    let mut lost = [0; 4];
    for (path, node) in &pruned {
        let (sum, below) = beneath.get(path).copied().unwrap_or_default();
        let cum = (node.flat.base + below.0, node.flat.new + below.1);
        assert!(list(node.width).iter().zip(sum).all(|(width, s)| *width >= s), "children are wider: {path:?}");
        if path.last() == Some(&None) {
            lost.iter_mut().zip(list(node.width)).for_each(|(s, w)| *s += w);
        } else {
            // Pruning does not change the remaining nodes, and loses no cost.
            assert_eq!(node, &all[path]);
            assert_eq!(cum, (node.cum.base, node.cum.new), "something got lost: {path:?}");
        }
    }
    assert_eq!(lost, list(flame.pruned.width));
    // Kept nodes are at least as wide as pruned nodes.
    let share = |w: Widths| {
        list(w)
            .iter()
            .zip(list(flame.nodes[0].width))
            .map(|(a, b)| if b == 0 { 0.0 } else { *a as f64 / b as f64 })
            .fold(0.0, f64::max)
    };
    let thinnest = pruned.iter().filter(|(p, _)| !p.contains(&None)).map(|(_, n)| share(n.width)).fold(1.0, f64::min);
    assert!(flame.pruned.stacks == 0 || thinnest >= flame.pruned.widest || pruned.len() == 1);
    for (path, node) in all.iter().filter(|(p, _)| !pruned.contains_key(*p)) {
        assert!(share(node.width) <= flame.pruned.widest, "{path:?} is wide, and was pruned");
    }
}

fn check_view(view: &Measure, base: &[oracle::Stack], new: &[oracle::Stack]) -> usize {
    let stacks = oracle::by_stack(base, new, false);
    let mut nodes = 0;
    for inverted in [false, true] {
        let whole = view.flame(&everything().with_inverted(inverted));
        let expected = plain(&stacks, inverted);
        let got: Plain = paths(&whole)
            .into_iter()
            .map(|(p, n)| (p, ((n.cum.base, n.cum.new), (n.flat.base, n.flat.new), list(n.width))))
            .collect();
        oracle::assert_same(&got, &expected, if inverted { "inverted" } else { "from the root" });
        assert_eq!((whole.pruned.stacks, whole.pruned.of_stacks), (0, stacks.len()));
        for window in whole.nodes.windows(2).filter(|w| w[0].depth == w[1].depth) {
            assert!(window[0].width.max >= window[1].width.max, "siblings are out of order");
        }
        for (max_frames, min_width) in [(usize::MAX, 0.02), (usize::MAX, 0.3), (7, 0.0), (1, 0.0), (0, 0.0), (20, 0.01)]
        {
            let options =
                FlameOptions::default().with_inverted(inverted).with_min_width(min_width).with_max_frames(max_frames);
            check_invariants(&view.flame(&options), &whole, &options);
        }
        nodes += whole.nodes.len();
    }
    nodes
}

fn check_all(base: &[u8], new: &[u8]) -> usize {
    let diff = Diff::new(&[load(base)], &[load(new)]).unwrap();
    let (base, new) = (oracle::decode(base), oracle::decode(new));
    let mut nodes = 0;
    for (kind, _) in diff.sample_types() {
        let column =
            |p: &proto::Profile| p.sample_type.iter().position(|t| oracle::string(p, t.r#type) == kind).unwrap();
        let stacks = |p| oracle::stacks(p, column(p), Granularity::Lines, false);
        nodes += check_view(&diff.measure(&query(&kind)).unwrap(), &stacks(&base), &stacks(&new));
    }
    nodes
}

#[test]
fn the_corpus_agrees_with_the_plain_implementation() {
    for name in oracle::pairs() {
        // The plain implementation does not support drop_frames.
        let [base, new] = oracle::raw_pair(&name)
            .map(|bytes| prost::Message::encode_to_vec(&proto::Profile { drop_frames: 0, ..oracle::decode(&bytes) }));
        let nodes = check_all(&base, &new);
        assert!(nodes > 20, "{name}: only {nodes} nodes were compared");
    }
}

#[test]
fn one_profile_has_one_side() {
    let [_, new] = oracle::raw_pair("story-cpu");
    let diff = Diff::of_profile(&load(&new)).unwrap();
    let stacks = oracle::stacks(&oracle::decode(&new), 1, Granularity::Lines, false);
    let view = diff.measure(&query("cpu")).unwrap();
    assert!(check_view(&view, &[], &stacks) > 100);
    assert!(view.flame(&everything()).nodes.iter().all(|n| n.status() == Status::Added && n.cum.base == 0));
}

#[test]
fn removed_and_added_frames_have_a_status() {
    let [base, new] = oracle::raw_pair("story-cpu").map(|bytes| load(&bytes));
    let flame = Diff::new(&[base], &[new]).unwrap().measure(&Query::default()).unwrap().flame(&everything());
    let node_of = |name: &str| {
        let is = |n: &&FlameNode| matches!(n.frame, FlameFrame::Frame(f) if flame.frames.name(f) == name);
        *flame.nodes.iter().find(is).unwrap()
    };
    assert_eq!(node_of("logmill/names.canonical").status(), Status::Added);
    assert_eq!(node_of("logmill/accesslog.cleanName").status(), Status::Removed);
    assert_eq!(node_of("logmill/accesslog.cleanName").width.max, 290_000_000);
    assert_eq!(node_of("main.main").status(), Status::Changed);
}

#[test]
fn a_scaled_value_is_scaled_once() {
    let [base, new] = oracle::raw_pair("go-heap-ops").map(|bytes| load(&bytes));
    let diff = Diff::new(&[base], &[new]).unwrap();
    let view = |normalize| diff.measure(&Query::default().with_normalize(normalize)).unwrap();
    let (plain, scaled) =
        (paths(&view(Normalize::None).flame(&everything())), view(Normalize::Factor(1.0 / 3.0)).flame(&everything()));
    check_widths(&scaled);
    for (path, node) in paths(&scaled) {
        let exact = plain[&path].cum;
        assert_eq!(node.cum.base, exact.base);
        assert_eq!(node.cum.new, (exact.new as f64 / 3.0).round() as i64);
    }
}

/// Rounding must not make children wider than their parent.
fn check_widths(flame: &Flame) {
    let all = paths(flame);
    let beneath = beneath(&all);
    for (path, node) in &all {
        let (sum, _) = beneath.get(path).copied().unwrap_or_default();
        assert!(list(node.width).iter().zip(sum).all(|(width, s)| *width >= s));
    }
}

#[test]
fn deep_recursion_needs_no_deep_call_stack_and_is_fast() {
    // 200 stacks of 20,000 frames: a tree without branches.
    let mut p = proto::Profile { string_table: vec![vec![], b"n".to_vec(), b"f".to_vec()], ..Default::default() };
    p.sample_type.push(proto::ValueType { r#type: 1, unit: 1 });
    p.function.push(proto::Function { id: 1, name: 2, ..Default::default() });
    p.location.push(proto::Location {
        id: 1,
        line: vec![proto::Line { function_id: 1, ..Default::default() }],
        ..Default::default()
    });
    for depth in 1..=200 {
        p.sample.push(proto::Sample { location_id: vec![1; depth * 100], value: vec![1], ..Default::default() });
    }
    let diff = Diff::of_profile(&load(&prost::Message::encode_to_vec(&p))).unwrap();
    let view = diff.measure(&Query::default()).unwrap();
    for inverted in [false, true] {
        let flame = view.flame(&everything().with_inverted(inverted));
        assert_eq!(flame.nodes.len(), 20_001);
        let flame = view.flame(&everything().with_inverted(inverted).with_max_frames(10));
        assert_eq!((flame.nodes.len(), flame.pruned.stacks), (12, 200));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: oracle::cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_profiles_agree_with_the_plain_implementation(a in generate::recipe(), b in generate::recipe()) {
        let (a, b) = (generate::profile(&a), generate::profile(&b));
        check_all(&generate::encode(&a, 0), &generate::encode(&b, 0));
    }
}
