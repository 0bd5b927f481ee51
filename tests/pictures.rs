//! Call graphs, listings and files for other viewers: against the plain version where there is something to compute,
//! against parsers and programs of others where something is written. (That nodes, edges and lines cost what pprof says
//! is `conformance`'s part.) Graphviz must be installed.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::generate;
use crate::{oracle, tools};
use oracle::{Frame, Sides, Stack};
use pprofdiff::graph::{Graph, GraphOptions, Rank};
use pprofdiff::list::{LineChange, Listing, SourceCode, SourceText};
use pprofdiff::proto::{Function, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, Frames, Granularity, LoadOptions, Profile, Query, proto};
use pprofdiff_report::{self as report, TextOptions, listing_html, listing_json, listing_text, svg};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn load(bytes: &[u8]) -> Arc<Profile> {
    Arc::new(Profile::from_bytes("test", bytes, &LoadOptions::default()).unwrap())
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

/// The calls among some frames as the samples say: weight, and whether others lie in between.
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

/// All that is said of a graph with two sides: which frames and calls it keeps, and their weights.
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
            let most = if options.node_count == 0 { scores.len() } else { options.node_count.min(scores.len()) };
            assert_eq!(ours, scores[..most], "{kind}: not the heaviest, or not in order");
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
        // Whatever else is gone is residual, and another way leads there.
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
fn graphs_of_two_sides_keep_what_is_large_on_either() {
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
fn a_fraction_is_a_part_of_one() {
    let view = pair("go-mutex").measure(&Query::default()).unwrap();
    for bad in [-0.1, 1.1, f64::NAN] {
        assert!(view.graph(&graph_options(0, bad, 0.0, Rank::Flat)).unwrap_err().to_string().contains("from 0 to 1"));
        assert!(view.graph(&graph_options(0, 0.0, bad, Rank::Flat)).is_err());
    }
}

/// The attribute of an element as a number.
fn number(node: Node, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("{name} of {node:?}")).parse().unwrap()
}

/// Checks a picture as it is drawn: no two nodes overlap, everything is on the paper, every call runs from the border of
/// its caller to that of its callee. Gives the words that are written in it.
fn look_at(svg: &str, graph: &Graph) -> Vec<String> {
    let document = Document::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    let known = ["svg", "g", "rect", "path", "text", "title"];
    let mut words = Vec::new();
    for node in document.descendants().filter(|n| n.is_element()) {
        let tag = node.tag_name().name();
        assert!(known.contains(&tag), "<{tag}> has no place in a picture");
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
    // Numbers are written with one decimal.
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
fn pictures_of_the_corpus_are_drawn_as_they_should() {
    for name in oracle::pairs() {
        let diff = pair(&name);
        for (kind, _) in diff.sample_types() {
            let query = Query::default().with_sample_type(kind);
            let graph = diff.measure(&query).unwrap().graph(&GraphOptions::default()).unwrap();
            look_at(&svg(&graph).unwrap(), &graph);
        }
        let one = Diff::of_profile(diff.base().next().unwrap()).unwrap();
        let graph = one.measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
        let words = look_at(&svg(&graph).unwrap(), &graph);
        assert!(words.iter().all(|w| !w.contains(" → ") || w.contains('\n')), "one profile has no changes: {words:?}");
    }
}

#[test]
fn a_picture_of_the_story_says_what_happened() {
    let graph = pair("story-cpu").measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
    let svg = svg(&graph).unwrap();
    let words = look_at(&svg, &graph);
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
    // The frame that is new has a thick border, the one that is gone a dashed one.
    let node =
        |name: &str| svg.split("<g class=\"node\"").find(|n| n.contains(&format!("data-name=\"{name}\""))).unwrap();
    assert!(node("logmill/names.canonical").contains("stroke-width=\"2.5\""));
    assert!(node("logmill/accesslog.cleanName").contains("stroke-dasharray"));
    assert!(!node("main.run").contains("stroke-width") && !node("main.run").contains("stroke-dasharray"));
}

#[test]
fn a_graph_that_is_too_large_for_a_picture_is_refused() {
    let graph = pair("story-cpu").measure(&Query::default().with_granularity(Granularity::Addresses)).unwrap();
    let graph = graph.graph(&graph_options(0, 0.0, 0.0, Rank::Entropy)).unwrap();
    assert!(graph.nodes.len() > 400);
    assert!(svg(&graph).unwrap_err().to_string().contains("too many for a picture"));
}

/// Functions of which each calls some others, each call with the given weight, in stacks below the first function.
fn calling(n: usize, calls: impl Iterator<Item = (usize, usize, i64)>) -> Arc<Profile> {
    calling_in(1, n, calls)
}

/// As [`calling`], with as many sample types of one name and a number, which all have these values.
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

/// Each sample type has a picture: were each as large as one may be, a page of a hundred would take as many seconds.
#[test]
fn what_the_pictures_of_a_page_cost_is_bounded_together() {
    let calls = (0..30).flat_map(|a| (0..30).filter(move |&b| a != b).map(move |b| (a, b, 100)));
    let profile = calling_in(12, 30, calls);
    let diff = Diff::of_profile(&profile).unwrap();
    let page = |wanted: &str| {
        let query = Query::default().with_sample_type(wanted);
        let options = report::PageOptions::default();
        let page = report::page(&diff, &query, &options, None).unwrap().html;
        let parts = page.split("\"callgraph\":").skip(1).map(|part| part.split("</svg>").next().unwrap_or_default());
        (parts.map(|svg| svg.matches("class=\\\"call\\\"").count()).collect::<Vec<_>>(), page)
    };
    for wanted in ["cpu", "type11"] {
        let (calls, page) = page(wanted);
        assert!((2..6).contains(&calls.len()) && calls.iter().all(|&n| n > 30), "{wanted}: {calls:?}");
        let said = format!("the page has call graphs of {} of 12 sample types", calls.len());
        assert!(page.contains(&said), "{said} is not said");
    }
}

#[test]
fn of_calls_beyond_number_the_heaviest_are_drawn_and_it_is_said() {
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
        let said = format!("{} of {} calls are drawn", drawn.len(), graph.calls.len());
        assert!(svg.contains(&said), "{said:?} is not said");
        // What the work follows: points of all lines, of which a call between neighbours has three.
        let points: usize = classed("call")
            .map(|call| call.children().find_map(|c| c.attribute("d")).unwrap().matches('C').count())
            .sum();
        assert!(points < 4000 + 3 * drawn.len(), "{points} points");
        // Whatever is called is called by something, and by what calls it most.
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

fn has_graphviz(test: &str) -> bool {
    tools::have("dot", "-V", "graphviz", &format!("pictures::{test}"))
}

/// Graphviz's own picture of a graph.
fn graphviz(dot: &[u8]) -> String {
    let child =
        Command::new("dot").arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = dot.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("syntax error"), "{said}\n{}", String::from_utf8_lossy(dot));
    String::from_utf8(output.stdout).unwrap()
}

/// What Graphviz makes of it: the words of each node and edge, without the spaces and the lines that they are set in.
fn graphviz_words(dot: &[u8]) -> Vec<String> {
    let svg = graphviz(dot);
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = Document::parse_with_options(&svg, options).unwrap();
    let known = ["svg", "g", "title", "polygon", "text", "path", "a", "polyline"];
    assert!(document.descendants().filter(|n| n.is_element()).all(|n| known.contains(&n.tag_name().name())));
    let groups = document.descendants().filter(|n| matches!(n.attribute("class"), Some("node" | "edge")));
    let words = |n: Node| {
        let texts = n.descendants().filter(|t| t.tag_name().name() == "text").filter_map(|t| t.text());
        texts.collect::<String>().replace(['\u{a0}', ' '], "")
    };
    groups.map(words).collect()
}

#[test]
fn graphviz_draws_the_nodes_and_calls_that_we_draw() {
    if !has_graphviz("graphviz_draws_the_nodes_and_calls_that_we_draw") {
        return;
    }
    for name in oracle::pairs() {
        let graph = pair(&name).measure(&Query::default()).unwrap().graph(&GraphOptions::default()).unwrap();
        let mut dot = Vec::new();
        report::dot(&graph, &mut dot).unwrap();
        // The same words are in our own picture; there the label of a call stands behind it.
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

/// A profile whose functions, files and binaries have such names, and one of 10 kB. Each calls the next.
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

/// True if there is nothing that a text can't hold or that turns it around.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
    })
}

#[test]
fn hostile_names_stay_text_in_pictures() {
    let has_graphviz = has_graphviz("hostile_names_stay_text_in_pictures");
    for granularity in [Granularity::Functions, Granularity::Lines, Granularity::Files] {
        for diff in [hostile_diff(), Diff::of_profile(&hostile([1, 2])).unwrap()] {
            let view = diff.measure(&Query::default().with_granularity(granularity)).unwrap();
            let graph = view.graph(&GraphOptions::default()).unwrap();
            assert_eq!(graph.nodes.len(), HOSTILE.len() + 1);
            let words = look_at(&svg(&graph).unwrap(), &graph);
            assert!(words.iter().all(|w| is_harmless(w) && w.chars().count() < 1000), "{words:?}");
            let all = words.concat();
            for text in ["onerror=alert(1)>", "quotes \" ' `", "&lt;entity&gt;", "not UTF-8 \u{fffd}", "…"] {
                assert!(all.contains(text), "{text:?} is not shown: {all}");
            }
            if !has_graphviz {
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
        let known = ["div", "style", "b", "span", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"];
        for node in document.descendants().filter(Node::is_element) {
            assert!(known.contains(&node.tag_name().name()), "{node:?}");
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

#[test]
fn other_viewers_read_stacks_with_both_values() {
    for diff in oracle::pairs().iter().map(|n| pair(n)).chain([hostile_diff()]) {
        for granularity in [Granularity::Functions, Granularity::Lines] {
            let view = diff.measure(&Query::default().with_granularity(granularity)).unwrap();
            let stacks = view.stacks(false);
            let mut folded = Vec::new();
            report::folded(&stacks, &mut folded).unwrap();
            let folded = String::from_utf8(folded).unwrap();
            let (mut base, mut new) = (0, 0);
            for line in folded.lines().filter(|line| !line.starts_with("# ")) {
                // As readers of the format take it apart: two numbers from the end.
                let (rest, last) = line.rsplit_once(' ').unwrap();
                let (stack, first) = rest.rsplit_once(' ').unwrap();
                assert!(!stack.is_empty());
                base += first.parse::<i64>().unwrap();
                new += last.parse::<i64>().unwrap();
            }
            let sum = |f: fn(&pprofdiff::stacks::StackRow) -> i64| stacks.rows.iter().map(f).sum::<i64>();
            assert_eq!((base, new), (sum(|r| r.weight.base), sum(|r| r.weight.new)));

            let mut scope = Vec::new();
            report::speedscope(&stacks, &mut scope).unwrap();
            let scope: serde_json::Value = serde_json::from_slice(&scope).unwrap();
            let frames = scope["shared"]["frames"].as_array().unwrap();
            for (profile, (name, value)) in
                scope["profiles"].as_array().unwrap().iter().zip([("base", base), ("new", new)])
            {
                let list = |key: &str| profile[key].as_array().unwrap().clone();
                assert_eq!(
                    (&profile["name"], &profile["type"], &profile["endValue"]),
                    (&name.into(), &"sampled".into(), &value.into())
                );
                assert_eq!(list("weights").iter().map(|w| w.as_i64().unwrap()).sum::<i64>(), value);
                assert_eq!(list("samples").len(), list("weights").len());
                for stack in list("samples") {
                    assert!(stack.as_array().unwrap().iter().all(|f| (f.as_u64().unwrap() as usize) < frames.len()));
                }
            }
            assert_eq!(scope["profiles"].as_array().unwrap().len(), 2);
        }
    }
}

#[test]
fn inferno_draws_folded_stacks_of_one_profile_and_of_two() {
    let one = Diff::of_profile(pair("story-cpu").base().next().unwrap()).unwrap();
    for (diff, is_diff) in [(pair("story-cpu"), true), (hostile_diff(), true), (one, false)] {
        let view = diff.measure(&Query::default()).unwrap();
        let mut folded = Vec::new();
        report::folded(&view.stacks(false), &mut folded).unwrap();
        let mut svg = Vec::new();
        let mut options = inferno::flamegraph::Options::default();
        options.min_width = 0.0;
        inferno::flamegraph::from_reader(&mut options, &*folded, &mut svg).unwrap();
        let svg = String::from_utf8_lossy(&svg).into_owned();
        let total = view.summary().total.new;
        let shown = inferno_number(total);
        assert!(
            svg.contains(&format!("<title>all ({shown} samples, 100%")),
            "{shown} is not in {}",
            &svg[svg.len() - 3000..]
        );
        // Only of two columns it says how a frame changed.
        assert_eq!(svg.contains("%; +") || svg.contains("%; -"), is_diff);
    }
}

/// `1,234,567`.
fn inferno_number(v: i64) -> String {
    let digits: Vec<char> = v.to_string().chars().rev().collect();
    let groups: Vec<String> = digits.chunks(3).map(|c| c.iter().collect()).collect();
    groups.join(",").chars().rev().collect()
}

/// The sources of the story: as they are in the repository, and with the branch's patch.
struct Story {
    patch: String,
}

/// For each line of the new text: what it says, and its number in the old text if it was there.
type Patched = Vec<(String, Option<i64>)>;

impl Story {
    fn new() -> Story {
        Story { patch: std::fs::read_to_string(Story::dir().join("../branch.patch")).unwrap() }
    }

    fn dir() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story/logmill")
    }

    fn main(path: &str) -> Option<String> {
        std::fs::read_to_string(Story::dir().join(path.strip_prefix("logmill/")?)).ok()
    }

    /// Applies the patch by hand; so it is the patch that says which line became which.
    fn branch(&self, path: &str) -> Option<Patched> {
        let old = Story::main(path)?;
        let mut old = old.lines().zip(1i64..).peekable();
        let mut new: Patched = Vec::new();
        let header = format!("+++ b/{}", path.strip_prefix("logmill/")?);
        let hunks = self.patch.lines().skip_while(|l| **l != header).skip(1).take_while(|l| !l.starts_with("--- a/"));
        for l in hunks {
            if let Some(at) = l.strip_prefix("@@ -") {
                let start: i64 = at.split(',').next().unwrap().parse().unwrap();
                while old.peek().is_some_and(|(_, n)| *n < start) {
                    let (text, n) = old.next().unwrap();
                    new.push((text.to_owned(), Some(n)));
                }
                continue;
            }
            match l.split_at_checked(1) {
                Some(("+", text)) => new.push((text.to_owned(), None)),
                Some(("-", text)) => assert_eq!(old.next().unwrap().0, text),
                context => {
                    let (text, n) = old.next().unwrap();
                    assert_eq!(text, context.map_or("", |c| c.1));
                    new.push((text.to_owned(), Some(n)));
                }
            }
        }
        new.extend(old.map(|(text, n)| (text.to_owned(), Some(n))));
        Some(new)
    }
}

impl SourceCode for Story {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let text = match base {
            true => Story::main(path)?,
            false => self.branch(path)?.into_iter().map(|(text, _)| text + "\n").collect(),
        };
        Some(SourceText::new(format!("{}:{path}", if base { "main" } else { "branch" }), text))
    }
}

/// flat and cum of each line that has some, by function, file and line, without sources: of one side.
fn costs(listing: &Listing) -> BTreeMap<(String, Option<String>, i64), (i64, i64)> {
    let lines = listing.routines.iter().flat_map(|r| r.lines.iter().map(move |l| (r, l)));
    lines.map(|(r, l)| ((r.name.clone(), r.file.clone(), l.new.unwrap()), (l.flat.new, l.cum.new))).collect()
}

#[test]
fn a_statement_that_moved_meets_its_own_cost() {
    let (diff, story, query) = (pair("story-cpu"), Story::new(), Query::default());
    let one = |profile| costs(&Diff::of_profile(profile).unwrap().list(&query, "^logmill/", &()).unwrap());
    let (base, new) = (one(diff.base().next().unwrap()), one(diff.new_side().next().unwrap()));
    let listing = diff.list(&query, "^logmill/", &story).unwrap();
    let (mut moved, mut found) = (0, (0, 0));
    for r in &listing.routines {
        let file = r.file.clone().unwrap();
        // An inlined function of the library has no source here.
        let lines = story.branch(&file);
        let is_of_lines = |note: &String| !note.starts_with("inlined");
        assert!(!r.notes.iter().any(is_of_lines) || lines.is_none(), "{:?}", r.notes);
        for l in &r.lines {
            let cost = |side: &BTreeMap<_, (i64, i64)>, n: Option<i64>| {
                n.and_then(|n| side.get(&(r.name.clone(), r.file.clone(), n)).copied()).unwrap_or_default()
            };
            let (b, n) = (cost(&base, l.base), cost(&new, l.new));
            assert_eq!(((l.flat.base, l.cum.base), (l.flat.new, l.cum.new)), (b, n), "{} {l:?}", r.name);
            if let (Some(n), Some(lines)) = (l.new, &lines) {
                // What the patch calls a line that stayed is one; empty lines and braces may stay in more than one way.
                let (text, was) = &lines[n as usize - 1];
                assert_eq!(l.text.as_deref(), Some(text.as_str()));
                if text.trim().len() > 1 {
                    assert_eq!(l.base, *was, "{file}:{n} {text}");
                }
            }
            let change = match (l.base, l.new) {
                // Without a source nobody knows.
                _ if lines.is_none() => LineChange::Same,
                (None, _) => LineChange::Inserted,
                (_, None) => LineChange::Deleted,
                _ => LineChange::Same,
            };
            assert_eq!(l.change, change);
            moved += usize::from(
                l.base.is_some() && l.new.is_some() && l.base != l.new && l.cum.base != 0 && l.cum.new != 0,
            );
            found = (found.0 + l.flat.base, found.1 + l.flat.new);
        }
        let sum = |f: fn(&pprofdiff::list::Line) -> i64| r.lines.iter().map(f).sum::<i64>();
        assert_eq!((r.flat.base, r.flat.new), (sum(|l| l.flat.base), sum(|l| l.flat.new)), "{}", r.name);
    }
    assert!(moved >= 5, "only {moved} lines moved and have samples on both sides");
    let all = |side: &BTreeMap<_, (i64, i64)>| side.values().map(|(flat, _)| flat).sum::<i64>();
    assert_eq!(found, (all(&base), all(&new)), "some cost is lost");
}

#[test]
fn a_routine_costs_what_its_function_costs() {
    for name in oracle::pairs() {
        let diff = pair(&name);
        let view = diff.measure(&Query::default().with_granularity(Granularity::FileFunctions)).unwrap();
        let top = view.top(pprofdiff::Sort::Cum);
        let mut expected: Vec<_> = top
            .rows
            .iter()
            .filter(|r| !(top.frames.name(r.frame).starts_with('[') || top.frames.name(r.frame) == "<unknown>"))
            .map(|r| {
                (
                    top.frames.name(r.frame),
                    top.frames.file(r.frame),
                    r.flat.base,
                    r.flat.new,
                    r.cum.base,
                    r.cum.new,
                    r.status,
                )
            })
            .collect();
        let listing = diff.list(&Query::default(), ".", &()).unwrap();
        let mut ours: Vec<_> = listing
            .routines
            .iter()
            .map(|r| (r.name.clone(), r.file.clone(), r.flat.base, r.flat.new, r.cum.base, r.cum.new, r.status))
            .collect();
        // A function whose file is named differently by the builds is one routine here and two rows there.
        let two_files: BTreeSet<String> = expected
            .iter()
            .filter(|a| !ours.iter().any(|b| (&a.0, &a.1) == (&b.0, &b.1)))
            .map(|a| a.0.clone())
            .collect();
        assert!(two_files.len() < 3, "{name}: {two_files:?}");
        expected.retain(|r| !two_files.contains(&r.0) && r.0 != "Non JS threads activity");
        ours.retain(|r| !two_files.contains(&r.0) && r.0 != "Non JS threads activity");
        let key = |r: &(String, Option<String>, i64, i64, i64, i64, pprofdiff::Status)| (r.0.clone(), r.1.clone());
        expected.sort_by_key(key);
        ours.sort_by_key(key);
        assert_eq!(ours, expected, "{name}");
    }
}

/// A text of one side only, sources of another build, a moved file: no cost is lost, and it is said.
#[test]
fn what_changed_most_is_listed_where_there_are_sources() {
    let (diff, story, query) = (pair("story-cpu"), Story::new(), Query::default());
    let all = diff.list(&query, ".", &story).unwrap().routines;
    let with: Vec<_> = all.iter().filter(|r| r.places != (None, None)).cloned().collect();
    assert!(with.len() > 5 && with.len() < all.len() && all[..with.len()].iter().any(|r| r.places == (None, None)));
    for w in with.windows(2) {
        assert!(w[0].cum.delta().abs() >= w[1].cum.delta().abs());
    }
    for n in [0, 1, 5, usize::MAX] {
        let listed = diff.list_with_sources(&query, n, &story).unwrap().routines;
        let key = |r: &pprofdiff::list::Routine| (r.name.clone(), r.file.clone(), r.cum, r.lines.clone());
        assert!(listed.iter().map(key).eq(with.iter().take(n).map(key)));
    }
    assert!(diff.list_with_sources(&query, 9, &()).unwrap().routines.is_empty());
}

/// The texts of every file of the base, and of the new side.
struct Given(Option<Arc<str>>, Option<Arc<str>>);

impl Given {
    fn new(base: Option<&str>, new: Option<&str>) -> Given {
        Given(base.map(Arc::from), new.map(Arc::from))
    }
}

impl SourceCode for Given {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let text = if base { self.0.clone() } else { self.1.clone() }?;
        Some(SourceText::new(format!("{base}:{path}"), text))
    }
}

/// A profile of functions: name, file, first line (0: not said), and lines with what they cost.
fn profile_of(functions: &[(&str, &str, i64, &[(i64, i64)])]) -> Arc<Profile> {
    let mut p = proto::Profile {
        string_table: ["", "cpu", "ns"].iter().map(|s| s.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        ..Default::default()
    };
    for (name, filename, start_line, lines) in functions {
        let function_id = p.function.len() as u64 + 1;
        p.string_table.extend([name.as_bytes().to_vec(), filename.as_bytes().to_vec()]);
        let (name, filename) = (p.string_table.len() as i64 - 2, p.string_table.len() as i64 - 1);
        p.function.push(Function { id: function_id, name, filename, start_line: *start_line, ..Default::default() });
        for &(line, value) in *lines {
            let id = p.location.len() as u64 + 1;
            p.location.push(Location { id, line: vec![Line { function_id, line, column: 0 }], ..Default::default() });
            p.sample.push(Sample { location_id: vec![id], value: vec![value], label: vec![] });
        }
    }
    Arc::new(p.load("made up").unwrap())
}

/// A line of a listing: its numbers (0 for none), text (`-` for none), and flat of both sides.
type Shown = (i64, i64, String, i64, i64);

/// The lines of the only function there is, and the notes.
fn only_routine(diff: &Diff, sources: &dyn SourceCode) -> (pprofdiff::list::Routine, Vec<Shown>) {
    let listing = diff.list(&Query::default(), ".", sources).unwrap();
    let [r] = &listing.routines[..] else { panic!("{:?}", listing.routines) };
    let shown = |l: &pprofdiff::list::Line| {
        let text = l.text.as_deref().unwrap_or("-").to_owned();
        (l.base.unwrap_or_default(), l.new.unwrap_or_default(), text, l.flat.base, l.flat.new)
    };
    let lines: Vec<Shown> = r.lines.iter().map(shown).collect();
    let sums = (lines.iter().map(|l| l.3).sum::<i64>(), lines.iter().map(|l| l.4).sum::<i64>());
    assert_eq!(sums, (r.flat.base, r.flat.new), "some cost is lost");
    (r.clone(), lines)
}

fn shown(base: i64, new: i64, text: &str, b: i64, n: i64) -> Shown {
    (base, new, text.to_owned(), b, n)
}

#[test]
fn without_sources_a_statement_of_a_function_that_moved_meets_its_own_cost() {
    let f = |start: i64, lines: &[(i64, i64)]| profile_of(&[("f", "f.go", start, lines)]);
    let pair = |base: &Arc<Profile>, new: &Arc<Profile>| {
        Diff::new(std::slice::from_ref(base), std::slice::from_ref(new)).unwrap()
    };
    // The function is two lines further down, and has a line with samples that the base does not have.
    let (base, new) = (f(66, &[(67, 345), (70, 5)]), f(68, &[(67, 93), (69, 1920), (72, 6)]));
    let moved = [shown(65, 67, "-", 0, 93), shown(67, 69, "-", 345, 1920), shown(70, 72, "-", 5, 6)];
    let (r, lines) = only_routine(&pair(&base, &new), &());
    assert_eq!(lines, moved);
    let offset = "lines are paired by their offset from the function's first line (66 -> 68)";
    assert_eq!(r.notes, [format!("no source of either side: {offset}")]);

    // With the text of one side alone its lines are shown, and paired in the same way.
    let text: String = (1..=80).map(|n| format!("line {n}\n")).collect();
    for (given, note) in [
        (Given::new(None, Some(&text)), "no source of the base"),
        (Given::new(Some(&text), None), "no source of the new side"),
    ] {
        let (r, lines) = only_routine(&pair(&base, &new), &given);
        assert_eq!(r.notes, [format!("{note}: {offset}")]);
        let with_cost: Vec<_> = lines.iter().filter(|l| l.3 + l.4 != 0).map(|l| (l.0, l.1, l.3, l.4)).collect();
        assert_eq!(with_cost, moved.each_ref().map(|l| (l.0, l.1, l.3, l.4)));
        let own = |l: &Shown| if given.0.is_some() { l.0 } else { l.1 };
        assert!(lines.iter().all(|l| l.1 - l.0 == 2 && l.2 == format!("line {}", own(l))), "{lines:?}");
        assert_eq!(lines.len(), 77 - 67 + 1);
    }

    // Where the profiles do not say where it begins, it moved as the first line did if more lines then meet.
    let by_first = |base: &[(i64, i64)], new: &[(i64, i64)]| only_routine(&pair(&f(0, base), &f(66, new)), &());
    let (r, lines) = by_first(&[(67, 3), (70, 5)], &[(69, 4), (72, 6)]);
    assert_eq!(lines, [shown(67, 69, "-", 3, 4), shown(70, 72, "-", 5, 6)]);
    assert!(r.notes[0].ends_with("by their offset from the first line with samples (67 -> 69)"), "{:?}", r.notes);
    let (r, lines) = by_first(&[(67, 3), (70, 5)], &[(70, 4), (72, 6), (0, 7)]);
    let numbers = [shown(67, 67, "-", 3, 0), shown(70, 70, "-", 5, 4), shown(72, 72, "-", 0, 6)];
    assert_eq!((&lines[..3], r.notes[0].ends_with("by their numbers")), (&numbers[..], true), "{:?}", r.notes);
    assert_eq!(lines[3].4, 7);

    // Numbers at their ends, and a function that one side has: nothing to pair.
    let (_, lines) = only_routine(&pair(&f(1, &[(i64::MAX, 3), (i64::MIN, 2)]), &f(9, &[(i64::MAX, 4)])), &());
    assert_eq!(lines.len(), 3, "{lines:?}");
    let nothing = profile_of(&[("f", "f.go", 1, &[])]);
    let (r, lines) = only_routine(&pair(&nothing, &new), &());
    assert_eq!((&r.notes[..], lines[0].0), (&["no source of either side".to_owned()][..], 0));
}

#[test]
fn sources_that_differ_in_too_many_lines_are_not_aligned_and_it_is_said() {
    let text = |shift: u32, n: u32| -> Arc<str> {
        let line = |i: u32| format!("{}\n", i.wrapping_mul(2_654_435_761) >> 8);
        (0..n).map(|i| line(i * 2 + shift)).collect::<String>().into()
    };
    let f = |start: i64| profile_of(&[("f", "f.go", start, &[(start + 1, 3), (start + 4, 5)])]);
    let diff = Diff::new(&[f(10)], &[f(30_010)]).unwrap();
    // Only what changed counts, not what both begin and end with.
    let same: String = "same\n".repeat(60_000);
    let few = Given::new(Some(&format!("{same}a\n{same}")), Some(&format!("{same}b\n{same}")));
    assert!(only_routine(&diff, &few).0.notes.is_empty());
    let (r, lines) = only_routine(&diff, &Given(Some(text(0, 60_000)), Some(text(1, 60_000))));
    let note = "the sources differ in too many lines to be compared: \
                lines are paired by their offset from the function's first line (10 -> 30010)";
    assert_eq!(r.notes, [note]);
    assert!(lines.iter().all(|l| l.1 - l.0 == 30_000 && l.2 != "-"), "{lines:?}");
    assert_eq!(lines.iter().filter(|l| l.3 != 0).map(|l| (l.3, l.4)).collect::<Vec<_>>(), [(3, 3), (5, 5)]);
}

/// The bound is of a listing: were it of each pair of files, a checkout of many would take as many times as long.
#[test]
fn what_is_compared_of_a_listing_is_bounded_over_all_files() {
    struct Files;
    impl SourceCode for Files {
        fn find(&self, base: bool, path: &str) -> Option<SourceText> {
            let n: u32 = path.strip_suffix(".go")?.parse().ok()?;
            let text: String = (0..n).map(|i| format!("{}\n", i * 2 + u32::from(base))).collect();
            Some(SourceText::new(path, text))
        }
    }
    // In the order in which they are listed: the first takes nearly all, so the second has no room, but the third has.
    let side = profile_of(&[
        ("first", "49000.go", 1, &[(2, 9)]),
        ("second", "20000.go", 1, &[(2, 5)]),
        ("third", "5000.go", 1, &[(2, 3)]),
    ]);
    let diff = Diff::new(&[profile_of(&[])], &[side]).unwrap();
    let listing = diff.list(&Query::default(), ".", &Files).unwrap();
    let is_cut = |r: &pprofdiff::list::Routine| r.notes.iter().any(|n| n.contains("differ in too many lines"));
    let cut: Vec<(&str, bool)> = listing.routines.iter().map(|r| (&*r.name, is_cut(r))).collect();
    assert_eq!(cut, [("first", false), ("second", true), ("third", false)]);
}

/// Functions may overlap; all lines of each would be lines times functions.
#[test]
fn a_listing_has_no_more_source_than_there_is_room_for() {
    let names: Vec<String> = (0..400).map(|i| format!("f{i}")).collect();
    let functions: Vec<_> = names.iter().map(|n| (&**n, "f.go", 1, &[(2, 1), (9_999, 1)][..])).collect();
    let p = profile_of(&functions);
    let text: String = "a line of a source\n".repeat(10_000);
    let diff = Diff::new(std::slice::from_ref(&p), std::slice::from_ref(&p)).unwrap();
    let given = Given::new(Some(&text), Some(&text));
    let routines = diff.list(&Query::default(), ".", &given).unwrap().routines;
    let whole = routines.iter().filter(|r| r.lines.len() > 9_000).count();
    assert!((5..100).contains(&whole), "{whole}");
    for r in &routines {
        let is_cut = r.notes.iter().any(|n| n.contains("left out"));
        assert!(is_cut == (r.lines.len() == 2) && r.flat == pprofdiff::Pair { base: 2, new: 2 });
    }
}

#[test]
fn a_function_whose_file_has_another_name_is_one_function() {
    let side = |files: &[(&'static str, &'static str)]| {
        let functions: Vec<_> = files.iter().map(|&(name, file)| (name, file, 1, &[(2, 1)][..])).collect();
        profile_of(&functions)
    };
    let base = side(&[
        ("renamed", "old.go"),
        ("twice", "a/x.c"),
        ("twice", "a/y.c"),
        ("twice", "a/z.c"),
        ("many", "p.c"),
        ("many", "q.c"),
        ("stays", "s.c"),
    ]);
    let new = side(&[
        ("renamed", "sub/new.go"),
        ("twice", "b/y.c"),
        ("twice", "b/w.c"),
        ("twice", "a/z.c"),
        ("many", "r.c"),
        ("many", "t.c"),
        ("stays", "s.c"),
    ]);
    let diff = Diff::new(&[base], &[new]).unwrap();
    let listing = diff.list(&Query::default(), ".", &()).unwrap();
    let mut found: Vec<String> = listing
        .routines
        .iter()
        .map(|r| {
            let from = r.notes.iter().find_map(|n| n.strip_prefix("the base has it in ")).unwrap_or("");
            format!("{} {} {}{}", r.name, r.file.as_deref().unwrap_or(""), r.flat.base * 10 + r.flat.new, from)
        })
        .collect();
    found.sort();
    let expected = [
        "many p.c 10",
        "many q.c 10",
        "many r.c 1",
        "many t.c 1",
        "renamed sub/new.go 11old.go",
        "stays s.c 11",
        "twice a/z.c 11",
        "twice b/w.c 11a/x.c",
        "twice b/y.c 11a/y.c",
    ];
    assert_eq!(found, expected);
}

#[test]
fn listings_say_when_lines_can_not_be_trusted() {
    let side = |file: &str, lines: &[(i64, i64)]| profile_of(&[("f", file, 2, lines)]);
    let diff = Diff::new(&[side("v1/f.go", &[(3, 10), (4, 1)])], &[side("v2/f.go", &[(4, 20), (9, 2)])]).unwrap();
    let listed = |sources: &dyn SourceCode| {
        let (r, lines) = only_routine(&diff, sources);
        assert_eq!((r.flat.base, r.flat.new, r.file.as_deref()), (11, 22, Some("v2/f.go")));
        assert_eq!(r.notes[0], "the base has it in v1/f.go");
        (lines, r.notes[1..].join("; "))
    };
    let (lines, notes) = listed(&());
    assert_eq!(lines, [shown(3, 3, "-", 10, 0), shown(4, 4, "-", 1, 20), shown(9, 9, "-", 0, 2)]);
    assert_eq!(notes, "no source of either side: lines are paired by their numbers");

    // The new text begins with a line more, so the base's line 3 is its line 4; it has no line 9.
    let (lines, notes) = listed(&Given::new(Some("a\nfunc f\n  work\n}"), Some("// new\na\nfunc f\nwork\n}")));
    let expected = [
        shown(1, 2, "a", 0, 0),
        shown(2, 3, "func f", 0, 0),
        shown(3, 4, "work", 10, 20),
        shown(4, 5, "}", 1, 0),
        shown(0, 9, "-", 0, 2),
    ];
    assert_eq!(lines, expected);
    assert!(notes.contains("not the source of this build"), "{notes}");

    let (lines, notes) = listed(&Given::new(None, Some("a\nfunc f\nwork\n}")));
    assert!(lines.contains(&shown(3, 3, "work", 10, 0)) && lines.contains(&shown(4, 4, "}", 1, 20)), "{lines:?}");
    assert!(notes.starts_with("no source of the base"), "{notes}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: oracle::cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_graphs_agree_with_the_plain_version_and_can_be_drawn(
        a in generate::recipe(), b in generate::recipe(), node_count in 0usize..9, fraction in 0f64..0.2
    ) {
        let (a, b) = (generate::encode(&generate::profile(&a), 0), generate::encode(&generate::profile(&b), 0));
        for rank in [Rank::Entropy, Rank::Cum] {
            check_graph(&a, &b, graph_options(node_count, fraction, fraction / 2.0, rank));
        }
        let diff = Diff::new(&[load(&a)], &[load(&b)]).unwrap();
        let view = diff.measure(&Query::default().with_granularity(Granularity::Lines)).unwrap();
        let graph = view.graph(&graph_options(0, 0.0, 0.0, Rank::Entropy)).unwrap();
        look_at(&svg(&graph).unwrap(), &graph);
        listing_html(&diff.list(&Query::default(), ".", &()).unwrap());
    }
}
