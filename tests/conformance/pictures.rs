//! Call graphs and source listings beside pprof's `-dot` and `-list`.
//!
//! Pictures show scaled numbers, so the graph that is compared is the engine's, and its listing as well; pprof prints
//! the file's own unit when asked. Names are multisets, as in `rows`.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use pprofdiff::{Diff, Granularity, Graph, GraphOptions, LoadOptions, Pair as Sides, Profile, Query, SourceDirs};
use regex::Regex;

use crate::examine::Log;
use crate::exceptions::without_zeros;
use crate::pairs::Pair;
use crate::pprof::{self, Subject};
use crate::reports::{number, word};
use crate::rows::Row;

/// How much of a graph is kept: nodes, and the fractions for nodes and edges. The first is the default of both tools.
const KEPT: [(usize, f64, f64); 6] =
    [(80, 0.005, 0.001), (20, 0.005, 0.001), (12, 0.0, 0.0), (7, 0.02, 0.05), (0, 0.01, 0.02), (0, 0.0, 0.0)];

fn load(path: &Path) -> Arc<Profile> {
    Arc::new(Profile::from_bytes("", &std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap())
}

fn options((node_count, node_fraction, edge_fraction): (usize, f64, f64)) -> GraphOptions {
    GraphOptions { node_count, node_fraction, edge_fraction, ..GraphOptions::default() }
}

/// What pprof is asked. It counts and draws labels as nodes, which we do not, so they are hidden.
fn words(sample_type: &str, unit: &str, granularity: Granularity, kept: (usize, f64, f64)) -> Vec<String> {
    let (nodes, node_fraction, edge_fraction) = kept;
    vec![
        format!("-sample_index={sample_type}"),
        format!("-unit={unit}"),
        format!("-{}", granularity.name()),
        "-trim=true".into(),
        "-taghide=.".into(),
        format!("-nodecount={nodes}"),
        format!("-nodefraction={node_fraction}"),
        format!("-edgefraction={edge_fraction}"),
    ]
}

/// One profile: the same nodes and edges, the same that are dotted, the same numbers.
pub fn examine_graphs(pair: &Pair, log: &mut Log) {
    for input in [&pair.base, &pair.new] {
        let diff = Diff::of_profile(&load(&input.path)).unwrap();
        for (sample_type, unit) in diff.sample_types() {
            for granularity in [Granularity::Functions, Granularity::Lines] {
                let view = diff.measure(&query(&sample_type, granularity)).unwrap();
                // Of lines that count the same, pprof keeps those that are first as text (`:133` before `:35`), and we
                // by number. So lines are not cut off at a number of nodes.
                let comparable = |kept: &&(usize, f64, f64)| granularity == Granularity::Functions || kept.0 == 0;
                for &kept in KEPT.iter().filter(comparable) {
                    let graph = view.graph(&options(kept)).unwrap();
                    let words = words(&sample_type, &unit, granularity, kept);
                    let subject = Subject::One(&input.path);
                    let (nodes, edges) = read(&pprof::report_of_command_line("dot", subject, &words));
                    let said_by = || pprof::command_line("-dot", subject, &words);
                    log.compare(our_nodes(&graph, |p| p.new), nodes, said_by);
                    log.compare(our_edges(&graph, |p| p.new), edges, said_by);
                }
            }
        }
    }
}

/// Two profiles, untrimmed: all nodes and edges with their deltas. (pprof trims a diff by what is left of the total
/// after subtraction, which we do not.)
pub fn examine_graph_of_diff(pair: &Pair, log: &mut Log) {
    let diff = Diff::new(&[load(&pair.base.path)], &[load(&pair.new.path)]).unwrap();
    for (sample_type, unit) in diff.sample_types() {
        let kept = (0, 0.0, 0.0);
        let graph = diff.measure(&query(&sample_type, Granularity::Functions)).unwrap().graph(&options(kept)).unwrap();
        let words = words(&sample_type, &unit, Granularity::Functions, kept);
        let subject = Subject::Two { base: &pair.base.path, new: &pair.new.path };
        let (nodes, edges) = read(&pprof::report_of_command_line("dot", subject, &words));
        let said_by = || pprof::command_line("-dot", subject, &words);
        // What cancels is no node for pprof, and so are the edges at such a node.
        let cancelled = |i: u32| {
            let node = &graph.nodes[i as usize];
            node.flat.delta() == 0 && node.cum.delta() == 0
        };
        let mut shown = graph.clone();
        shown.calls.retain(|c| !cancelled(c.caller) && !cancelled(c.callee));
        log.compare(without_zeros(our_nodes(&graph, Sides::delta)), without_zeros(nodes), said_by);
        log.compare(without_zeros(our_edges(&shown, Sides::delta)), without_zeros(edges), said_by);
    }
}

fn query(sample_type: &str, granularity: Granularity) -> Query {
    Query { sample_type: Some(sample_type.into()), granularity, ..Query::default() }
}

fn our_nodes(graph: &Graph, value: fn(Sides) -> i64) -> Vec<Row> {
    let row = |n: &pprofdiff::TopRow| Row {
        subject: graph.frames.label(n.frame),
        numbers: vec![value(n.flat), value(n.cum)],
    };
    graph.nodes.iter().map(row).collect()
}

fn our_edges(graph: &Graph, value: fn(Sides) -> i64) -> Vec<Row> {
    let name = |i: u32| graph.frames.label(graph.nodes[i as usize].frame);
    let row = |c: &pprofdiff::Call| {
        let arrow = if c.residual { "..." } else { "->" };
        let inlined = if c.inlined { " (inline)" } else { "" };
        let subject = format!("{} {arrow} {}{inlined}", name(c.caller), name(c.callee));
        Row { subject, numbers: vec![value(c.weight)] }
    };
    graph.calls.iter().map(row).collect()
}

/// Reads pprof's dot: nodes with flat and cum, and edges.
///
/// A node's tooltip is its name and cum; its label ends in lines such as `1ns (2%)` and `of 3ns (4%)`, or in one of them.
fn read(dot: &str) -> (Vec<Row>, Vec<Row>) {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        let quoted = r#""((?:[^"\\]|\\.)*)""#;
        Regex::new(&format!(r"^N\d+ (-> N\d+ )?\[label={quoted}.*? tooltip={quoted}")).unwrap()
    });
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for line in dot.lines().filter(|l| l.starts_with('N') && !l.contains("_0 [") && !l.starts_with("NN")) {
        let Some(found) = LINE.captures(line) else { panic!("pprof, dot: {line}") };
        let label = &found[2];
        let tooltip = found[3].replace("\\\"", "\"").replace("\\\\", "\\");
        let (name, cum) = tooltip.rsplit_once(" (").unwrap();
        let cum = number(cum.trim_end_matches(')'));
        if let Some(ends) = found.get(1) {
            // pprof draws calls of nodes that it has left out (they cancelled) as calls of a node 0.
            if ends.as_str() == "-> N0 " || line.starts_with("N0 ") {
                continue;
            }
            let inlined = if label.contains("(inline)") { " (inline)" } else { "" };
            edges.push(Row { subject: format!("{name}{inlined}"), numbers: vec![cum] });
            continue;
        }
        let lines: Vec<&str> = label.split("\\n").collect();
        let last = lines[lines.len() - 1];
        let flat = match last.split_once("of ") {
            Some(("", _)) => number(word(lines[lines.len() - 2]).0),
            Some((flat, _)) => number(word(flat).0),
            None => cum,
        };
        nodes.push(Row { subject: name.into(), numbers: vec![flat, cum] });
    }
    (nodes, edges)
}

/// Where the sources of a pair's program lie, and what their paths begin with; the pairs that have none are left out.
fn sources(pair: &str) -> Option<(&'static str, &'static str)> {
    match pair {
        "story-cpu" => Some(("story/logmill", "logmill")),
        name if name.starts_with("go-") && name != "go-wall" => Some(("go", "producers")),
        name if name.starts_with("rust-") => Some(("rust", "/sheet")),
        name if name.starts_with("cpp-") => Some(("cpp", "/parcels")),
        "python-full" => Some(("python", "/tmp/pprofdiff-corpus/python")),
        _ => None,
    }
}

/// Every line of every function whose source is at hand: of each side alone, and of the diff. Gives how many lines with
/// samples were compared.
pub fn examine_listings(pair: &Pair, log: &mut Log) {
    let Some((folder, prefix)) = sources(&pair.name) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers").join(folder);
    let folder = folder.canonicalize().unwrap();
    // pprof reads absolute paths, such as those of a compiler's headers, unasked; we do if told so.
    let folders = vec![folder.clone(), "/".into()];
    let (base, new) = (load(&pair.base.path), load(&pair.new.path));
    let two = Diff::new(std::slice::from_ref(&base), std::slice::from_ref(&new)).unwrap();
    let subjects = [
        (Subject::One(&pair.base.path), Diff::of_profile(&base).unwrap()),
        (Subject::One(&pair.new.path), Diff::of_profile(&new).unwrap()),
        (Subject::Two { base: &pair.base.path, new: &pair.new.path }, two),
    ];
    for (subject, diff) in subjects {
        for (sample_type, unit) in diff.sample_types() {
            let words = vec![
                format!("-sample_index={sample_type}"),
                format!("-unit={unit}"),
                format!("-source_path={}:/", folder.display()),
                format!("-trim_path={prefix}"),
            ];
            let theirs = read_listing(&pprof::report_of_command_line("list .", subject, &words));
            let dirs = SourceDirs::new(folders.clone(), folders.clone());
            let query = Query { trim_path: vec![prefix.into()], ..query(&sample_type, Granularity::Functions) };
            let listing = diff.list(&query, ".", &dirs.files()).unwrap();
            let mut ours = Vec::new();
            for r in listing.routines.iter().filter(|r| r.places.1.is_some()) {
                for l in r.lines.iter().filter(|l| l.text.is_some()) {
                    let place = format!("{} {}:{}", r.name, r.file.as_deref().unwrap(), l.new.unwrap());
                    let subject = format!("{place}:{}", l.text.as_deref().unwrap());
                    ours.push(Row { subject, numbers: vec![l.flat.delta(), l.cum.delta()] });
                }
            }
            log.compare(without_zeros(ours), without_zeros(theirs), || pprof::command_line("-list=.", subject, &words));
        }
    }
}

/// Reads pprof's listing: a row a line.
fn read_listing(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut routine = "";
    let value = |printed: &str| if printed == "." { 0 } else { number(printed) };
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("ROUTINE ======================== ") {
            routine = rest;
            continue;
        }
        let (flat, rest) = word(line);
        let (cum, rest) = word(rest);
        let Some((number, source)) = rest.split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<i64>() else { continue };
        let (name, file) = routine.rsplit_once(" in ").unwrap();
        rows.push(Row { subject: format!("{name} {file}:{number}:{source}"), numbers: vec![value(flat), value(cum)] });
    }
    rows
}
