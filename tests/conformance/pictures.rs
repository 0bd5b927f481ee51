//! Compares call graphs and source listings with pprof's `-dot` and `-list`.
//!
//! Pictures show scaled numbers, so the comparison uses the engine's own graph and listing, and pprof is run with the
//! unit of the file. Names are multisets, as in `rows`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use pprofdiff::graph::{Graph, GraphOptions};

use pprofdiff::list::SourceDirs;

use pprofdiff::{Diff, Granularity, LoadOptions, Pair as Sides, Profile, Query};
use pprofdiff_report::{Registry, Request};
use regex::Regex;

use crate::examine::Log;
use crate::exceptions::without_zeros;
use crate::pairs::{Input, Pair};
use crate::pprof::{self, Subject};
use crate::reports::{number, word};
use crate::rows::Row;

/// Limits for a graph: number of nodes, and fractions for nodes and edges. The first entry is the default of both
/// tools.
const KEPT: [(usize, f64, f64); 6] =
    [(80, 0.005, 0.001), (20, 0.005, 0.001), (12, 0.0, 0.0), (7, 0.02, 0.05), (0, 0.01, 0.02), (0, 0.0, 0.0)];

fn load(path: &Path) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("", &std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap())
}

fn options((node_count, node_fraction, edge_fraction): (usize, f64, f64)) -> GraphOptions {
    GraphOptions::default()
        .with_node_count(node_count)
        .with_node_fraction(node_fraction)
        .with_edge_fraction(edge_fraction)
}

/// Returns the arguments for pprof. It counts and draws labels as nodes, unlike us, so they are hidden.
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

/// Compares the graphs of one profile: nodes, edges, dotted edges and numbers.
pub fn examine_graphs(pair: &Pair, log: &mut Log) {
    for input in [&pair.base, &pair.new] {
        let diff = Diff::of_profile(&load(&input.path)).unwrap();
        for (sample_type, unit) in diff.sample_types() {
            for granularity in [Granularity::Functions, Granularity::Lines] {
                let view = diff.measure(&query(&sample_type, granularity)).unwrap();
                // Among lines with equal cost, pprof keeps the first in text order (`:133` before `:35`), and we use
                // numeric order. Therefore, lines are compared without a limit on the number of nodes.
                let comparable = |kept: &&(usize, f64, f64)| granularity == Granularity::Functions || kept.0 == 0;
                for &kept in KEPT.iter().filter(comparable) {
                    let graph = view.graph(&options(kept)).unwrap();
                    let words = words(&sample_type, &unit, granularity, kept);
                    let subject = Subject::One(&input.path);
                    let (nodes, edges) = read(&pprof::report_of_command_line("dot", subject, &words));
                    let commands = || pprof::command_line("-dot", subject, &words);
                    log.compare(our_nodes(&graph, |p| p.new), nodes, commands);
                    log.compare(our_edges(&graph, |p| p.new), edges, commands);
                }
            }
        }
    }
}

/// Compares the call trees of one profile: nodes and edges, trimmed and complete. For two profiles, compares the
/// complete tree with its deltas.
pub fn examine_call_trees(pair: &Pair, log: &mut Log) {
    let two = Subject::Two { base: &pair.base.path, new: &pair.new.path };
    let of_one = |input: &Input| Diff::of_profile(&load(&input.path)).unwrap();
    let both = Diff::new(&[load(&pair.base.path)], &[load(&pair.new.path)]).unwrap();
    let subjects = [
        (of_one(&pair.base), Subject::One(&pair.base.path)),
        (of_one(&pair.new), Subject::One(&pair.new.path)),
        (both, two),
    ];
    for (diff, subject) in subjects {
        for (sample_type, unit) in diff.sample_types() {
            let measure = diff.measure(&query(&sample_type, Granularity::Functions)).unwrap();
            let comparable = |kept: &&(usize, f64, f64)| !diff.is_two_sided() || **kept == (0, 0.0, 0.0);
            for &kept in KEPT.iter().filter(comparable) {
                let mut graph = measure.graph(&options(kept).with_call_tree(true)).unwrap();
                let mut words = words(&sample_type, &unit, Granularity::Functions, kept);
                words.push("-call_tree".into());
                let (nodes, edges) = read(&pprof::report_of_command_line("dot", subject, &words));
                // pprof omits nodes that cancel, like in graphs.
                let cancelled: Vec<bool> =
                    graph.nodes.iter().map(|n| n.flat.delta() == 0 && n.cum.delta() == 0).collect();
                graph.calls.retain(|c| !cancelled[c.caller as usize] && !cancelled[c.callee as usize]);
                let commands = || pprof::command_line("-dot", subject, &words);
                if kept.0 != 0 && graph.nodes_total > kept.0 {
                    // Nodes without own cost rank equally, and pprof keeps an arbitrary subset of them.
                    log.equal(graph.nodes.len() as i64, nodes.len() as i64, "nodes", commands);
                    continue;
                }
                log.compare(without_zeros(our_nodes(&graph, Sides::delta)), without_zeros(nodes), commands);
                log.compare(without_zeros(our_edges(&graph, Sides::delta)), without_zeros(edges), commands);
            }
        }
    }
}

/// Compares two profiles, untrimmed: all nodes and edges with their deltas. (pprof trims a diff by the total after
/// subtraction, which we do not.)
pub fn examine_graph_of_diff(pair: &Pair, log: &mut Log) {
    let diff = Diff::new(&[load(&pair.base.path)], &[load(&pair.new.path)]).unwrap();
    for (sample_type, unit) in diff.sample_types() {
        let kept = (0, 0.0, 0.0);
        let graph = diff.measure(&query(&sample_type, Granularity::Functions)).unwrap().graph(&options(kept)).unwrap();
        let words = words(&sample_type, &unit, Granularity::Functions, kept);
        let subject = Subject::Two { base: &pair.base.path, new: &pair.new.path };
        let (nodes, edges) = read(&pprof::report_of_command_line("dot", subject, &words));
        let commands = || pprof::command_line("-dot", subject, &words);
        // pprof omits nodes that cancel, with their edges.
        let cancelled = |i: u32| {
            let node = &graph.nodes[i as usize];
            node.flat.delta() == 0 && node.cum.delta() == 0
        };
        let mut shown = graph.clone();
        shown.calls.retain(|c| !cancelled(c.caller) && !cancelled(c.callee));
        log.compare(without_zeros(our_nodes(&graph, Sides::delta)), without_zeros(nodes), commands);
        log.compare(without_zeros(our_edges(&shown, Sides::delta)), without_zeros(edges), commands);
    }
}

fn query(sample_type: &str, granularity: Granularity) -> Query {
    Query::default().with_sample_type(sample_type).with_granularity(granularity)
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
    let row = |c: &pprofdiff::graph::Call| {
        let arrow = if c.residual { "..." } else { "->" };
        let inlined = if c.inlined { " (inline)" } else { "" };
        let subject = format!("{} {arrow} {}{inlined}", name(c.caller), name(c.callee));
        Row { subject, numbers: vec![value(c.weight)] }
    };
    graph.calls.iter().map(row).collect()
}

/// Reads pprof's dot: nodes with flat and cum, and edges.
///
/// The tooltip of a node is its name and cum. Its label ends in lines such as `1ns (2%)` and `of 3ns (4%)`, or only one
/// of them.
pub fn read(dot: &str) -> (Vec<Row>, Vec<Row>) {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        let quoted = r#""((?:[^"\\]|\\.)*)""#;
        Regex::new(&format!(r"^N\d+ (-> N\d+ )?\[label={quoted}.*? tooltip={quoted}")).unwrap()
    });
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for line in dot.lines().filter(|l| l.starts_with('N') && !l.contains("_0 [") && !l.starts_with("NN")) {
        let Some(captures) = LINE.captures(line) else { panic!("pprof, dot: {line}") };
        let label = &captures[2];
        let tooltip = captures[3].replace("\\\"", "\"").replace("\\\\", "\\");
        let (name, cum) = tooltip.rsplit_once(" (").unwrap();
        let cum = number(cum.trim_end_matches(')'));
        if let Some(ends) = captures.get(1) {
            // pprof draws calls of omitted nodes (which cancelled) as calls of a node 0.
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

/// Returns the folder with the sources of a pair's program, and the prefix of their paths. Pairs without sources are
/// skipped.
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

/// Compares every line of every function whose source is available, for each side and for the diff. Returns the number
/// of compared lines with samples.
pub fn examine_listings(pair: &Pair, log: &mut Log) {
    let Some((folder, prefix)) = sources(&pair.name) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers").join(folder);
    let folder = folder.canonicalize().unwrap();
    // pprof reads absolute paths, such as those of compiler headers, by default. We need an option for that.
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
            let query = query(&sample_type, Granularity::Functions).with_trim_path(vec![prefix.into()]);
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

/// Reads pprof's listing: one row per line.
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

/// Compares one profile as callgrind: the cost of every address, and every call.
pub fn examine_callgrind(pair: &Pair, log: &mut Log) {
    let registry = Registry::standard();
    let format = registry.format("callgrind").unwrap();
    for input in [&pair.base, &pair.new] {
        let diff = Diff::of_profile(&load(&input.path)).unwrap();
        for (sample_type, unit) in diff.sample_types() {
            let request = Request { query: query(&sample_type, Granularity::Functions), ..Request::default() };
            let mut ours = Vec::new();
            let report = request.for_format(format, &registry).unwrap().answer(&diff).unwrap();
            format.write(&report, &mut ours, Default::default()).unwrap();
            let words = vec![format!("-sample_index={sample_type}"), format!("-unit={unit}")];
            let subject = Subject::One(input.for_pprof.at(crate::question::Granularity::Addresses));
            let theirs = pprof::report_of_command_line("callgrind", subject, &words);
            let commands = || pprof::command_line("-callgrind", subject, &words);
            let (nodes, calls) = read_callgrind(std::str::from_utf8(&ours).unwrap());
            let (expected_nodes, expected_calls) = read_callgrind(&theirs);
            log.compare(nodes, expected_nodes, commands);
            log.compare(calls, expected_calls, commands);
        }
    }
}

/// Reads the callgrind format: costs by place, and calls. Names that occurred before are replaced by numbers, and pprof
/// writes most addresses relative to the previous node.
fn read_callgrind(text: &str) -> (Vec<Row>, Vec<Row>) {
    static SUFFIX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" \[\d+/\d+\]$").unwrap());
    let (mut nodes, mut calls) = (Vec::new(), Vec::new());
    let mut names_by_number: HashMap<(String, String), String> = HashMap::new();
    let mut names: HashMap<&str, String> = HashMap::new();
    let (mut before, mut node_address, mut node, mut callee) = (0u64, 0u64, String::new(), None::<String>);
    // A frame without a name is named by its binary in our output, and has an empty name in pprof's.
    let place = |names: &HashMap<&str, String>, [file, name]: [&str; 2], address: u64, line: &str| {
        let name_of = |field| names.get(field).map_or("", String::as_str);
        let name = SUFFIX.replace(name_of(name), "");
        let nameless = name.starts_with('[') || name == "<unknown>" || name == name_of(file);
        format!("{address:x} {} {}:{line}", if nameless { "" } else { &name }, name_of(file))
    };
    for line in text.lines() {
        let field = line.split_once('=').filter(|(f, _)| ["ob", "fl", "fn", "cob", "cfl", "cfn"].contains(f));
        if let Some((field, value)) = field {
            let kind = field.trim_start_matches('c').to_owned();
            let (number, new) = value.split_once(' ').unwrap_or((value, ""));
            if !new.is_empty() {
                let name = new.to_owned();
                assert!(
                    names_by_number.insert((kind.clone(), number.into()), name).is_none(),
                    "{number} stands for two: {line}"
                );
            }
            let name =
                if number.is_empty() { String::new() } else { names_by_number[&(kind, number.to_owned())].clone() };
            names.insert(["ob", "fl", "fn", "cob", "cfl", "cfn"].into_iter().find(|f| *f == field).unwrap(), name);
            continue;
        }
        let is_call = line.starts_with("calls=0 ");
        let rest = line.strip_prefix("calls=0 ").unwrap_or(line);
        if !rest.starts_with(|c: char| "*+-".contains(c) || c.is_ascii_digit()) {
            continue;
        }
        let words: Vec<&str> = rest.split(' ').collect();
        if let Some(callee) = callee.take() {
            calls.push(Row { subject: format!("{node} -> {callee}"), numbers: vec![words[2].parse().unwrap()] });
            continue;
        }
        if !is_call {
            before = node_address;
        }
        let address = match words[0].strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None if words[0] == "*" => before,
            None => before.wrapping_add_signed(words[0].parse().unwrap()),
        };
        if is_call {
            callee = Some(place(&names, ["cfl", "cfn"], address, words[1]));
            continue;
        }
        node_address = address;
        node = place(&names, ["fl", "fn"], address, words[1]);
        nodes.push(Row { subject: node.clone(), numbers: vec![words[2].parse().unwrap()] });
    }
    (nodes, calls)
}
