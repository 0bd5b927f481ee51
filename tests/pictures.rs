//! Tests of call graphs, listings and files for other viewers. Computed values are compared with the plain
//! implementation, and files are read by other parsers and programs. (`conformance` compares the costs of nodes, edges
//! and lines with pprof.) Graphviz must be installed.

#![allow(clippy::unwrap_used)]

mod listings;
mod viewers;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::generate;
use crate::{oracle, tools};
use oracle::{Frame, Sides, Stack};
use pprofdiff::graph::{Graph, GraphOptions, Rank};
use pprofdiff::list::{SourceCode, SourceText};
use pprofdiff::proto::{Function, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, Frames, Granularity, LoadOptions, Profile, Query, proto};
use pprofdiff_report::{self as report, TextOptions, listing_html, listing_json, listing_text, svg};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn load(bytes: &[u8]) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("test", bytes, &LoadOptions::default()).unwrap())
}

fn pair(name: &str) -> Diff {
    let [base, new] = oracle::raw_pair(name).map(|bytes| load(&bytes));
    Diff::new(&[base], &[new]).unwrap()
}

fn frame(frames: &Frames, f: u32) -> Frame {
    (frames.name(f), frames.file(f), frames.line(f), frames.address(f), frames.mapping(f))
}

fn magnitude((base, new): Sides) -> i64 {
    base.abs().max(new.abs()).max((new - base).abs())
}

/// Sums the calls among the kept frames directly from the samples: weight, and whether other frames lie in between.
fn calls(base: &[Stack], new: &[Stack], kept: &BTreeSet<Frame>) -> BTreeMap<(Frame, Frame), (Sides, bool)> {
    let mut rows: BTreeMap<(Frame, Frame), (Sides, bool)> = BTreeMap::new();
    for (stacks, is_base) in [(base, true), (new, false)] {
        for s in stacks {
            let mut seen = BTreeSet::new();
            let places: Vec<usize> = (0..s.frames.len()).filter(|&i| kept.contains(&s.frames[i])).collect();
            for w in places.windows(2) {
                let call = (s.frames[w[0]].clone(), s.frames[w[1]].clone());
                if call.0 != call.1 && seen.insert(call.clone()) {
                    let row = rows.entry(call).or_default();
                    *(if is_base { &mut row.0.0 } else { &mut row.0.1 }) += s.value;
                    row.1 |= w[1] > w[0] + 1;
                }
            }
        }
    }
    rows
}

/// Checks a graph with two sides completely: its frames and calls, and their weights.
fn check_graph(base: &[u8], new: &[u8], options: GraphOptions) -> usize {
    let diff = Diff::new(&[load(base)], &[load(new)]).unwrap();
    let (base, new) = (oracle::decode(base), oracle::decode(new));
    let mut compared = 0;
    for (kind, _) in diff.sample_types() {
        let column =
            |p: &proto::Profile| p.sample_type.iter().position(|t| oracle::string(p, t.r#type) == kind).unwrap();
        let stacks = |p| oracle::stacks(p, column(p), Granularity::Functions, false);
        let (b, n) = (stacks(&base), stacks(&new));
        let top = oracle::top(&b, &n);
        let total = |side: fn(&Sides) -> i64| top.values().map(|(flat, _)| side(flat).abs()).sum::<i64>();
        let total = total(|s| s.0).max(total(|s| s.1)) as f64;
        let cutoff = (total * options.node_fraction) as i64;

        let query = Query::default().with_sample_type(kind.clone());
        let graph = diff.measure(&query).unwrap().graph(&options).unwrap();
        let mut expected: Vec<(&Frame, &(Sides, Sides))> =
            top.iter().filter(|(_, (_, cum))| magnitude(*cum) >= cutoff).collect();
        assert_eq!(graph.nodes_total, top.len());
        if options.rank != Rank::Entropy {
            let score = |(_, (flat, cum)): &(&Frame, &(Sides, Sides))| {
                std::cmp::Reverse(magnitude(if options.rank == Rank::Flat { *flat } else { *cum }))
            };
            expected.sort_by_key(score);
            let scores: Vec<_> = expected.iter().map(score).collect();
            let ours: Vec<_> = graph
                .nodes
                .iter()
                .map(|n| score(&(&frame(&graph.frames, n.frame), &top[&frame(&graph.frames, n.frame)])))
                .collect();
            let limit = if options.node_count == 0 { scores.len() } else { options.node_count.min(scores.len()) };
            assert_eq!(ours, scores[..limit], "{kind}: not the heaviest, or not in order");
        } else if options.node_count == 0 {
            assert_eq!(graph.nodes.len(), expected.len(), "{kind}");
        }
        for n in &graph.nodes {
            let sides = ((n.flat.base, n.flat.new), (n.cum.base, n.cum.new));
            assert_eq!(sides, top[&frame(&graph.frames, n.frame)], "{kind}");
        }

        let kept: BTreeSet<Frame> = graph.nodes.iter().map(|n| frame(&graph.frames, n.frame)).collect();
        let all = calls(&b, &n, &kept);
        let cutoff = (total * options.edge_fraction) as i64;
        let mut left: BTreeMap<_, _> = all.iter().filter(|(_, (w, _))| magnitude(*w) >= cutoff).collect();
        assert_eq!(graph.dropped_calls, all.len() - left.len(), "{kind}");
        let mut callees: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for c in &graph.calls {
            let name = |i: u32| frame(&graph.frames, graph.nodes[i as usize].frame);
            let call = (name(c.caller), name(c.callee));
            assert_eq!(((c.weight.base, c.weight.new), c.residual), left.remove(&call).copied().unwrap(), "{kind}");
            callees.entry(c.caller).or_default().push(c.callee);
            compared += 1;
        }
        // Every other missing call is residual, and the callee can still be reached on another path.
        for ((caller, callee), (_, residual)) in left {
            assert!(residual, "{kind}: {caller:?} -> {callee:?} is gone");
            let number =
                |f: &Frame| graph.nodes.iter().position(|n| frame(&graph.frames, n.frame) == *f).unwrap() as u32;
            let (mut seen, mut open) = (BTreeSet::new(), vec![number(caller)]);
            while let Some(n) = open.pop() {
                open.extend(callees.get(&n).into_iter().flatten().filter(|c| seen.insert(**c)));
            }
            assert!(seen.contains(&number(callee)), "{kind}: {callee:?} is cut off from {caller:?}");
        }
    }
    compared
}

fn graph_options(node_count: usize, node_fraction: f64, edge_fraction: f64, rank: Rank) -> GraphOptions {
    GraphOptions::default()
        .with_node_count(node_count)
        .with_node_fraction(node_fraction)
        .with_edge_fraction(edge_fraction)
        .with_rank(rank)
}

#[test]
fn graphs_keep_frames_that_are_large_on_either_side() {
    let mut compared = 0;
    for name in oracle::pairs() {
        let [base, new] = oracle::raw_pair(&name);
        for options in [
            graph_options(80, 0.005, 0.001, Rank::Entropy),
            graph_options(9, 0.0, 0.02, Rank::Entropy),
            graph_options(15, 0.01, 0.0, Rank::Flat),
            graph_options(15, 0.0, 0.0, Rank::Cum),
            graph_options(0, 0.0, 0.0, Rank::Entropy),
        ] {
            compared += check_graph(&base, &new, options);
        }
    }
    assert!(compared > 3000, "only {compared} calls");
}

#[test]
fn fractions_must_be_between_0_and_1() {
    let view = pair("go-mutex").measure(&Query::default()).unwrap();
    for bad in [-0.1, 1.1, f64::NAN] {
        assert!(view.graph(&graph_options(0, bad, 0.0, Rank::Flat)).unwrap_err().to_string().contains("from 0 to 1"));
        assert!(view.graph(&graph_options(0, 0.0, bad, Rank::Flat)).is_err());
    }
}

/// Returns a numeric attribute of an element.
fn number(node: Node, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("{name} of {node:?}")).parse().unwrap()
}

/// Checks the geometry of a picture: nodes do not overlap, everything is inside the page, and each call runs from the
/// border of its caller to the border of its callee. Returns the words in the picture.
fn check_picture(svg: &str, graph: &Graph) -> Vec<String> {
    let document = Document::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    let known_tags = ["svg", "g", "rect", "path", "text", "title"];
    let mut words = Vec::new();
    for node in document.descendants().filter(|n| n.is_element()) {
        let tag = node.tag_name().name();
        assert!(known_tags.contains(&tag), "<{tag}> has no place in a picture");
        assert!(node.attributes().all(|a| !a.name().starts_with("on") && !["href", "style", "id"].contains(&a.name())));
        if tag == "text" || tag == "title" {
            words.push(node.text().unwrap_or_default().to_owned());
        }
    }
    let classed = |class: &'static str| document.descendants().filter(move |n| n.attribute("class") == Some(class));
    let boxes: Vec<[f64; 4]> = classed("node")
        .map(|n| {
            let rect = n.children().find(|c| c.has_tag_name(("http://www.w3.org/2000/svg", "rect"))).unwrap();
            let (x, y) = (number(rect, "x"), number(rect, "y"));
            [x, y, x + number(rect, "width"), y + number(rect, "height")]
        })
        .collect();
    assert_eq!(boxes.len(), graph.nodes.len());
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
            assert!(apart, "{a:?} and {b:?} overlap");
        }
    }
    let root = document.root_element();
    let translate = root.children().find(|n| n.has_attribute("transform")).unwrap().attribute("transform").unwrap();
    let (dx, dy) = translate.trim_start_matches("translate(").trim_end_matches(')').split_once(' ').unwrap();
    let (dx, dy): (f64, f64) = (dx.parse().unwrap(), dy.parse().unwrap());
    for b in &boxes {
        let within = b[0] + dx >= 0.0 && b[1] + dy >= 0.0;
        assert!(within && b[2] + dx <= number(root, "width") && b[3] + dy <= number(root, "height"), "off the paper");
    }
    // Numbers have one decimal.
    let on_border = |(x, y): (f64, f64), b: &[f64; 4]| {
        let inside = x >= b[0] - 0.2 && x <= b[2] + 0.2 && y >= b[1] - 0.2 && y <= b[3] + 0.2;
        inside && [x - b[0], x - b[2], y - b[1], y - b[3]].iter().any(|d| d.abs() < 0.2)
    };
    let drawn: Vec<Node> = classed("call").collect();
    assert_eq!(drawn.len(), graph.calls.len());
    for (call, drawn) in graph.calls.iter().zip(drawn) {
        let paths: Vec<&str> = drawn.children().filter_map(|c| c.attribute("d")).collect();
        let start = |path: &str| {
            let point: Vec<f64> = path[1..].split(['C', 'L', ' ']).take(2).map(|n| n.parse().unwrap()).collect();
            (point[0], point[1])
        };
        assert!(on_border(start(paths[0]), &boxes[call.caller as usize]), "{drawn:?} does not begin at its caller");
        assert!(on_border(start(paths[1]), &boxes[call.callee as usize]), "{drawn:?} does not end at its callee");
    }
    words
}

#[test]
fn pictures_of_the_corpus_are_laid_out_correctly() {
    for name in oracle::pairs() {
        let diff = pair(&name);
        for (kind, _) in diff.sample_types() {
            let query = Query::default().with_sample_type(kind);
            let graph = diff.measure(&query).unwrap().graph(&GraphOptions::default()).unwrap();
            check_picture(&svg(&graph).unwrap(), &graph);
        }
        let one = Diff::of_profile(diff.base().next().unwrap()).unwrap();
        let graph = one.measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
        let words = check_picture(&svg(&graph).unwrap(), &graph);
        assert!(words.iter().all(|w| !w.contains(" → ") || w.contains('\n')), "one profile has no changes: {words:?}");
    }
}

#[test]
fn the_picture_of_the_story_shows_added_and_removed_frames() {
    let graph = pair("story-cpu").measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
    let svg = svg(&graph).unwrap();
    let words = check_picture(&svg, &graph);
    for expected in [
        "names.canonical",
        "0 → 0.20s  new",
        "+10.53% of total",
        "cum 0 → 1.39s  new",
        "+73.16% of total",
        "cpu (nanoseconds): 1.90s → 2.93s  +1.03s  +54.2%",
        "logmill/names.compare → logmill/names.canonical\n0 → 1.39s  +1.39s  new  +73.16% of total",
    ] {
        assert!(words.iter().any(|w| w == expected), "{expected:?} is not in {words:?}");
    }
    // The added frame has a thick border, the removed frame a dashed one.
    let node =
        |name: &str| svg.split("<g class=\"node\"").find(|n| n.contains(&format!("data-name=\"{name}\""))).unwrap();
    assert!(node("logmill/names.canonical").contains("stroke-width=\"2.5\""));
    assert!(node("logmill/accesslog.cleanName").contains("stroke-dasharray"));
    assert!(!node("main.run").contains("stroke-width") && !node("main.run").contains("stroke-dasharray"));
}

/// Returns the contrast ratio of two hexadecimal colours (WCAG 2.2).
fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |color: &str| {
        let channel = |i: usize| {
            let v = f64::from(u8::from_str_radix(&color[i..i + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn written(format: &str, report: &report::Report) -> String {
    let mut out = Vec::new();
    report::Registry::standard().format(format).unwrap().write(report, &mut out, Default::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the colour that the style sheet sets for a selector.
fn dark_color<'a>(style: &'a str, selector: &str) -> &'a str {
    let rule = style.lines().find_map(|line| line.strip_prefix(selector)).unwrap_or_else(|| panic!("no {selector}"));
    rule.split_once("fill: ").unwrap().1.split(' ').next().unwrap()
}

#[test]
fn files_of_pictures_follow_dark_backgrounds_and_stay_readable() {
    let view = pair("story-cpu").measure(&Query::default()).unwrap();
    let graph = view.graph(&GraphOptions::default()).unwrap();
    assert!(!svg(&graph).unwrap().contains("<style"), "a picture inside of a page follows the page");
    let stacks = report::Report::Stacks(view.stacks(false), usize::MAX);
    let fits = "<style>.pprofdiff-flamegraph { max-width: 100%; height: auto }</style>";
    assert!(written("flamegraph", &stacks).contains(fits), "a flame graph shrinks to the width of a notebook");
    for (class, picture, min_boxes) in [
        ("pprofdiff-callgraph", written("svg", &report::Report::Graph(graph)), 20),
        ("pprofdiff-flamegraph", written("flamegraph", &stacks), 20),
    ] {
        let document = Document::parse(&picture).unwrap();
        let style = document.descendants().find(|n| n.has_tag_name("style") || n.tag_name().name() == "style").unwrap();
        let style = style.text().unwrap();
        assert!(style.starts_with("@media (prefers-color-scheme: dark) {"), "{style}");
        let paper = dark_color(style, &format!(".{class} [fill=\"#ffffff\"]"));
        assert!(contrast(dark_color(style, &format!(".{class} {{")), paper) > 4.5);
        let mut fills = BTreeSet::new();
        for group in document.descendants().filter(|n| n.tag_name().name() == "g") {
            if group.attribute("class") == Some("call") || group.has_attribute("transform") {
                continue;
            }
            let part = |tag: &str| group.children().find(|n| n.tag_name().name() == tag);
            let fill = part("rect").unwrap().attribute("fill").unwrap();
            let rect = format!(".{class} rect[fill=\"{fill}\"] ");
            let dark = dark_color(style, &format!("{rect}{{"));
            let ink = dark_color(style, &format!("{rect}~ text {{"));
            assert!(contrast(dark, ink) > 4.5, "{ink} on {dark}");
            if let Some(ink) = part("text").and_then(|text| text.attribute("fill")) {
                assert!(contrast(fill, ink) > 4.5, "{ink} on {fill}");
            }
            fills.insert(fill);
        }
        assert!(fills.len() > min_boxes, "{class}: {}", fills.len());
    }
}

#[test]
fn flame_graphs_are_pictures_without_script_in_which_parents_cover_their_children() {
    let one = |diff: &Diff| Diff::of_profile(diff.base().next().unwrap()).unwrap();
    let names = oracle::pairs();
    let diffs = names.iter().map(|name| pair(name)).chain([hostile_diff()]);
    let mut boxes = 0;
    for diff in diffs.flat_map(|diff| [one(&diff), diff]) {
        let stacks = diff.measure(&Query::default()).unwrap().stacks(false);
        let is_empty = stacks.rows.iter().all(|row| row.weight == Default::default());
        let picture = written("flamegraph", &report::Report::Stacks(stacks, usize::MAX));
        let document = Document::parse(&picture).unwrap_or_else(|e| panic!("{e}\n{picture}"));
        for node in document.descendants().filter(|n| n.is_element()) {
            let tag = node.tag_name().name();
            assert!(["svg", "style", "g", "rect", "text", "title"].contains(&tag), "<{tag}> has no place in a picture");
            let is_allowed = |name: &str| !name.starts_with("on") && !["href", "style", "id"].contains(&name);
            assert!(node.attributes().all(|a| is_allowed(a.name())));
        }
        let rects = document.descendants().filter(|n| n.tag_name().name() == "rect" && n.has_attribute("x"));
        let mut rows: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for rect in rects {
            let left = number(rect, "x");
            rows.entry(number(rect, "y") as u64).or_default().push((left, left + number(rect, "width")));
        }
        let rows: Vec<_> = rows.into_values().collect();
        assert!(is_empty || rows[0].len() == 1 && rows[0][0].1 - rows[0][0].0 > 1175.0, "{:?}", rows.first());
        for (above, below) in rows.iter().zip(rows.iter().skip(1)) {
            for (left, right) in below {
                // A gap of 0.7 pixels separates boxes.
                let covers = |(from, to): &(f64, f64)| *from <= left + 0.02 && *to >= right - 0.72;
                assert!(above.iter().any(covers), "{left} to {right} is not below a box");
                boxes += 1;
            }
        }
    }
    assert!(boxes > 2000, "{boxes}");
}

#[test]
fn the_flame_graph_of_the_story_shows_added_and_removed_frames() {
    let stacks = pair("story-cpu").measure(&Query::default()).unwrap().stacks(false);
    let picture = written("flamegraph", &report::Report::Stacks(stacks, usize::MAX));
    for expected in [
        ">all  1.90s → 2.93s  +54.2%<",
        ">+ logmill/names.canonical  0 → 1.39s  new<",
        ">− accesslo…<",
        "logmill/names.canonical\ncum 0 → 1.39s  +1.39s  new  +73.16% of total\nflat 0 → 0.20s  +0.20s  new",
    ] {
        assert!(picture.contains(expected), "{expected}");
    }
    let document = Document::parse(&picture).unwrap();
    // Returns how much more red than blue the box of a function is, and whether its outline is dashed.
    let look = |name: &str| {
        let is_title = |n: &Node<'_, '_>| n.text().is_some_and(|text| text.starts_with(&format!("{name}\n")));
        let title = document.descendants().find(|n| n.tag_name().name() == "title" && is_title(n)).unwrap();
        let rect = title.parent().unwrap().children().find(|n| n.tag_name().name() == "rect").unwrap();
        let fill = rect.attribute("fill").unwrap();
        let channel = |at: usize| i32::from_str_radix(&fill[at..at + 2], 16).unwrap();
        (channel(1) - channel(5), rect.has_attribute("stroke-dasharray"))
    };
    let (added, reduced, removed) =
        ("logmill/names.canonical", "logmill/accesslog.(*Reader).Next", "logmill/accesslog.cleanName");
    assert!(look(added).0 > 100 && look(reduced).0 < -50 && look(removed).0 < -30, "{:?}", look(reduced));
    assert_eq!([added, reduced, removed].map(|name| look(name).1), [false, false, true]);
}

#[test]
fn a_graph_that_is_too_large_for_a_picture_is_refused() {
    let graph = pair("story-cpu").measure(&Query::default().with_granularity(Granularity::Addresses)).unwrap();
    let graph = graph.graph(&graph_options(0, 0.0, 0.0, Rank::Entropy)).unwrap();
    assert!(graph.nodes.len() > 400);
    assert!(svg(&graph).unwrap_err().to_string().contains("too many for a picture"));
}

/// Builds a profile of `n` functions with the given weighted calls, in stacks below the first function.
fn calling(n: usize, calls: impl Iterator<Item = (usize, usize, i64)>) -> Arc<Profile> {
    calling_in(1, n, calls)
}

/// Like [`calling`], with several numbered sample types that all have the same values.
fn calling_in(types: usize, n: usize, calls: impl Iterator<Item = (usize, usize, i64)>) -> Arc<Profile> {
    let mut strings = vec![b"".to_vec(), b"cpu".to_vec(), b"nanoseconds".to_vec()];
    strings.extend((0..n).map(|i| format!("pkg.function{i:03}").into_bytes()));
    strings.extend((1..types).map(|i| format!("type{i}").into_bytes()));
    let names = std::iter::once(1).chain(n as i64 + 3..);
    let ids = 1..=n as u64;
    let location = |id: u64| Location {
        id,
        line: vec![Line { function_id: id, line: id as i64, column: 0 }],
        ..Default::default()
    };
    let profile = proto::Profile {
        string_table: strings,
        sample_type: names.take(types).map(|name| ValueType { r#type: name, unit: 2 }).collect(),
        function: ids.clone().map(|id| Function { id, name: id as i64 + 2, ..Default::default() }).collect(),
        location: ids.map(location).collect(),
        sample: calls
            .map(|(from, to, v)| Sample {
                location_id: vec![to as u64 + 1, from as u64 + 1],
                value: vec![v; types],
                label: vec![],
            })
            .collect(),
        ..Default::default()
    };
    Arc::new(profile.load("calling").unwrap())
}

/// Each sample type has its own picture. If each had the maximum size, a page with a hundred types would take a hundred
/// seconds.
#[test]
fn the_pictures_of_a_page_share_one_budget() {
    let calls = (0..30).flat_map(|a| (0..30).filter(move |&b| a != b).map(move |b| (a, b, 100)));
    let profile = calling_in(12, 30, calls);
    let diff = Diff::of_profile(&profile).unwrap();
    let page = |sample_type: &str| {
        let query = Query::default().with_sample_type(sample_type);
        let options = pprofdiff_page::PageOptions::default();
        let page = pprofdiff_page::page(&diff, &query, &options, None).unwrap().html;
        let parts = page.split("\"callgraph\":").skip(1).map(|part| part.split("</svg>").next().unwrap_or_default());
        (parts.map(|svg| svg.matches("class=\\\"call\\\"").count()).collect::<Vec<_>>(), page)
    };
    for sample_type in ["cpu", "type11"] {
        let (calls, page) = page(sample_type);
        assert!((2..6).contains(&calls.len()) && calls.iter().all(|&n| n > 30), "{sample_type}: {calls:?}");
        let note = format!("the page has call graphs of {} of 12 sample types", calls.len());
        assert!(page.contains(&note), "{note} is not said");
    }
}

#[test]
fn too_many_calls_draws_the_heaviest_and_warns() {
    let all = |n: usize| (0..n).flat_map(move |a| (0..n).filter(move |&b| a != b).map(move |b| (a, b)));
    let weighed = |(a, b): (usize, usize)| (a, b, 1000 + (a * 31 + b * 17) as i64 % 200);
    let layers = (0..380usize).flat_map(|a| (0..20).map(move |b| (a, (a / 20 + 1) * 20 + b)));
    let long = (1..400usize).map(|a| (a - 1, a)).chain((0..2000).map(|i| (i * 7 % 390, i * 7 % 390 + 2 + i * 3 % 8)));
    let graphs: [(usize, Vec<(usize, usize)>); 5] = [
        (80, all(80).collect()),
        (30, all(30).collect()),
        (400, all(400).collect()),
        (400, layers.collect()),
        (400, long.collect()),
    ];
    for (n, pairs) in graphs {
        let profile = calling(n, pairs.iter().copied().map(weighed));
        let view = Diff::of_profile(&profile).unwrap().measure(&Query::default()).unwrap();
        let graph = view.graph(&graph_options(0, 0.0, 0.0, Rank::Entropy)).unwrap();
        let distinct: BTreeSet<_> = pairs.iter().collect();
        assert_eq!((graph.nodes.len(), graph.calls.len()), (n, distinct.len()), "Graphviz gets all");
        let svg = svg(&graph).unwrap();
        let document = Document::parse(&svg).unwrap();
        let classed = |class: &'static str| document.descendants().filter(move |n| n.attribute("class") == Some(class));
        let title = |n: Node| n.children().find(|c| c.tag_name().name() == "title").unwrap().text().unwrap().to_owned();
        let drawn: Vec<String> = classed("call").map(title).collect();
        assert_eq!(classed("node").count(), n);
        assert!(drawn.len() < graph.calls.len() && drawn.len() > n, "{} of {n} frames", drawn.len());
        let note = format!("{} of {} calls are drawn", drawn.len(), graph.calls.len());
        assert!(svg.contains(&note), "{note:?} is not said");
        // The work is proportional to the number of points of all lines. A call between neighbours has three points.
        let points: usize = classed("call")
            .map(|call| call.children().find_map(|c| c.attribute("d")).unwrap().matches('C').count())
            .sum();
        assert!(points < 4000 + 3 * drawn.len(), "{points} points");
        // Every called function has an incoming line, at least from its heaviest caller.
        let name = |i: u32| graph.frames.name(graph.nodes[i as usize].frame);
        let mut heaviest: BTreeMap<String, String> = BTreeMap::new();
        for c in &graph.calls {
            heaviest.entry(name(c.callee)).or_insert_with(|| name(c.caller));
        }
        for (callee, caller) in heaviest {
            assert!(drawn.iter().any(|t| t.starts_with(&format!("{caller} → {callee}\n"))), "{caller} → {callee}");
        }
    }
}

fn is_graphviz_installed(test: &str) -> bool {
    tools::have("dot", "-V", "graphviz", &format!("pictures::{test}"))
}

/// Renders a graph with Graphviz.
fn graphviz(dot: &[u8]) -> String {
    let child =
        Command::new("dot").arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = dot.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("syntax error"), "{stderr}\n{}", String::from_utf8_lossy(dot));
    String::from_utf8(output.stdout).unwrap()
}

/// Renders a graph with Graphviz, and returns the words of each node and edge, without spaces and line breaks.
fn graphviz_words(dot: &[u8]) -> Vec<String> {
    let svg = graphviz(dot);
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = Document::parse_with_options(&svg, options).unwrap();
    let known_tags = ["svg", "g", "title", "polygon", "text", "path", "a", "polyline"];
    assert!(document.descendants().filter(|n| n.is_element()).all(|n| known_tags.contains(&n.tag_name().name())));
    let groups = document.descendants().filter(|n| matches!(n.attribute("class"), Some("node" | "edge")));
    let words = |n: Node| {
        let texts = n.descendants().filter(|t| t.tag_name().name() == "text").filter_map(|t| t.text());
        texts.collect::<String>().replace(['\u{a0}', ' '], "")
    };
    groups.map(words).collect()
}

#[test]
fn graphviz_draws_the_same_nodes_and_calls() {
    if !is_graphviz_installed("graphviz_draws_the_same_nodes_and_calls") {
        return;
    }
    for name in oracle::pairs() {
        let graph = pair(&name).measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
        let mut dot = Vec::new();
        report::dot(&graph, &mut dot).unwrap();
        // Our own picture has the same words; the label of a call comes after it.
        let svg = svg(&graph).unwrap();
        let document = Document::parse(&svg).unwrap();
        let groups = document.descendants().filter(|n| matches!(n.attribute("class"), Some("node" | "call")));
        let words = |n: Node| {
            let texts = n.children().filter(|t| t.tag_name().name() == "text").filter_map(|t| t.text());
            texts.collect::<String>().replace(' ', "")
        };
        let mut ours: Vec<String> = groups.map(words).collect();
        let mut theirs = graphviz_words(&dot);
        theirs.retain(|w| !w.starts_with("base") && !w.is_empty());
        ours.sort();
        theirs.sort();
        assert_eq!(theirs, ours, "{name}");
    }
}

const HOSTILE: [&[u8]; 12] = [
    b"</script><img src=x onerror=alert(1)>",
    b"--></style></svg><script>alert(1)</script>",
    b"quotes \" ' ` and \\N back\\slashes\\",
    b"nul\0bell\x07escape\x1b[31m",
    "bidi \u{202e}evil\u{2066}".as_bytes(),
    b"not UTF-8 \xff\xfe\xc3",
    b"&lt;entity&gt; &amp;amp; &#60;",
    b"line\nbreak\r\ttab",
    b"semi;colon goroutine 7",
    b"]]> {brace} [bracket] <html label>",
    "\u{ffff}\u{feff}\u{85}\u{2028}".as_bytes(),
    b" ",
];

/// Builds a profile whose functions, files and binaries have the hostile names and one name of 10 kB. Each function
/// calls the next.
fn hostile(values: [i64; 2]) -> Arc<Profile> {
    let long = b"long<name>\"".repeat(1000);
    let names: Vec<Vec<u8>> = HOSTILE.iter().map(|n| n.to_vec()).chain([long]).collect();
    let mut strings = vec![b"".to_vec(), b"cpu".to_vec(), b"nanoseconds".to_vec()];
    strings.extend(names.iter().cloned());
    let ids = 1..=names.len() as u64;
    let function = |id: u64| Function { id, name: id as i64 + 2, filename: id as i64 + 2, ..Default::default() };
    let location = |id: u64| {
        let line = vec![Line { function_id: id, line: id as i64, column: 0 }];
        Location { id, line, ..Default::default() }
    };
    let sample =
        |(depth, v): (u64, i64)| Sample { location_id: (1..=depth).rev().collect(), value: vec![v], label: vec![] };
    let profile = proto::Profile {
        string_table: strings,
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: ids.clone().map(function).collect(),
        location: ids.clone().map(location).collect(),
        sample: ids.flat_map(|id| values.map(|v| (id, v * id as i64))).map(sample).collect(),
        ..Default::default()
    };
    Arc::new(profile.load("<img src=x onerror=alert(2)>").unwrap())
}

fn hostile_diff() -> Diff {
    Diff::new(&[hostile([3, 4])], &[hostile([5, 1])]).unwrap()
}

/// Returns true if the text has no control characters or characters that change its direction.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
    })
}

#[test]
fn hostile_names_stay_text_in_pictures() {
    let is_graphviz_installed = is_graphviz_installed("hostile_names_stay_text_in_pictures");
    for granularity in [Granularity::Functions, Granularity::Lines, Granularity::Files] {
        for diff in [hostile_diff(), Diff::of_profile(&hostile([1, 2])).unwrap()] {
            let view = diff.measure(&Query::default().with_granularity(granularity)).unwrap();
            let graph = view.graph(&GraphOptions::default()).unwrap();
            assert_eq!(graph.nodes.len(), HOSTILE.len() + 1);
            let words = check_picture(&svg(&graph).unwrap(), &graph);
            assert!(words.iter().all(|w| is_harmless(w) && w.chars().count() < 1000), "{words:?}");
            let all = words.concat();
            for text in ["onerror=alert(1)>", "quotes \" ' `", "&lt;entity&gt;", "not UTF-8 \u{fffd}", "…"] {
                assert!(all.contains(text), "{text:?} is not shown: {all}");
            }
            if !is_graphviz_installed {
                continue;
            }
            let mut dot = Vec::new();
            report::dot(&graph, &mut dot).unwrap();
            let all = graphviz_words(&dot).concat();
            assert!(is_harmless(&all));
            for text in ["onerror=alert(1)>", "quotes\"'`", "\\Nback\\slashes\\", "&lt;entity&gt;&amp;amp;&#60;", "…"]
            {
                assert!(all.contains(text), "{text:?} is not shown: {all}");
            }
        }
    }
}

#[test]
fn hostile_names_stay_text_in_listings() {
    struct Hostile;
    impl SourceCode for Hostile {
        fn find(&self, base: bool, path: &str) -> Option<SourceText> {
            let text = format!("<b>{base}</b>\n</td><script>\n\x1b[31m\u{202e}\n").repeat(9);
            Some(SourceText::new(path, text))
        }
    }
    for diff in [hostile_diff(), Diff::of_profile(&hostile([1, 2])).unwrap()] {
        let listing = diff.list(&Query::default(), ".", &Hostile).unwrap();
        assert_eq!(listing.routines.len(), HOSTILE.len() + 1);
        let html = listing_html(&listing);
        let document = Document::parse(&html).unwrap_or_else(|e| panic!("{e}\n{html}"));
        let known_tags =
            ["div", "style", "b", "span", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"];
        for node in document.descendants().filter(Node::is_element) {
            assert!(known_tags.contains(&node.tag_name().name()), "{node:?}");
            assert!(node.attributes().all(|a| ["class", "open"].contains(&a.name())), "{node:?}");
        }
        let text: String = document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
        assert!(is_harmless(&text));
        for part in ["</script><img src=x onerror=alert(1)>", "</td><script>", "not UTF-8 \u{fffd}"] {
            assert!(text.contains(part), "{part:?}");
        }
        let mut json = Vec::new();
        listing_json(&listing, &mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert!(
            json["routines"].as_array().unwrap().iter().any(|r| r["name"] == "</script><img src=x onerror=alert(1)>")
        );
        let mut text = Vec::new();
        listing_text(&listing, &mut text, TextOptions::default()).unwrap();
        assert!(String::from_utf8(text).unwrap().chars().all(|c| c == '\n' || !c.is_control()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: oracle::cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_graphs_agree_with_the_plain_implementation_and_can_be_drawn(
        a in generate::recipe(), b in generate::recipe(), node_count in 0usize..9, fraction in 0f64..0.2
    ) {
        let (a, b) = (generate::encode(&generate::profile(&a), 0), generate::encode(&generate::profile(&b), 0));
        for rank in [Rank::Entropy, Rank::Cum] {
            check_graph(&a, &b, graph_options(node_count, fraction, fraction / 2.0, rank));
        }
        let diff = Diff::new(&[load(&a)], &[load(&b)]).unwrap();
        let view = diff.measure(&Query::default().with_granularity(Granularity::Lines)).unwrap();
        let graph = view.graph(&graph_options(0, 0.0, 0.0, Rank::Entropy)).unwrap();
        check_picture(&svg(&graph).unwrap(), &graph);
        listing_html(&diff.list(&Query::default(), ".", &()).unwrap());
    }
}
