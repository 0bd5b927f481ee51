//! Parses pprof's text reports into rows.
//!
//! The numbers are exact if pprof prints in the unit of the file: it formats the sum as a float64 with two decimals and
//! removes `.00`, so integers up to 2^53 (three months of nanoseconds, nine petabytes) are unchanged. `number` checks
//! this, so no comparison uses rounded values.

use crate::command::labelled;
use crate::rows::Row;

/// `top`: flat and cum of every node.
pub struct Top {
    /// The base of percentages: the sum of absolute values before filters, of the base if there is one.
    pub total: i64,
    pub rows: Vec<Row>,
}

/// `peek .`: each node with its own sums, and the edges to its callers and callees.
pub struct Graph {
    pub nodes: Vec<Row>,
    pub edges: Vec<Row>,
}

/// `traces` of a diff: the stack and the value of every sample of either side.
pub struct Stacks {
    pub base: Vec<Row>,
    pub new: Vec<Row>,
}

/// Reads `top`.
pub fn top(text: &str) -> Top {
    let mut lines = text.lines();
    let mut total = 0;
    for line in lines.by_ref() {
        // "Showing nodes accounting for 1ns, 50% of 2ns total"
        if let Some(rest) = line.strip_prefix("Showing nodes accounting for ") {
            total = number(rest.rsplit(' ').nth(1).unwrap());
        }
        if line.trim_start().starts_with("flat ") {
            break;
        }
    }
    let rows = lines.map(|line| {
        let (flat, rest) = word(line);
        let (_, rest) = word(rest);
        let (_, rest) = word(rest);
        let (cum, rest) = word(rest);
        let (_, rest) = word(rest);
        let name = rest.strip_prefix(' ').unwrap_or_else(|| panic!("pprof, top: {line}"));
        Row { subject: without_inline_mark(name).into(), numbers: vec![number(flat), number(cum)] }
    });
    Top { total, rows: rows.collect() }
}

/// Reads `peek .`. Each block between two rulers has the callers, the node itself (its name one space after the bar),
/// and the callees.
pub fn graph(text: &str) -> Graph {
    let mut graph = Graph { nodes: Vec::new(), edges: Vec::new() };
    let Some((_, body)) = text.split_once(" + context") else { return graph };
    for block in body.split("----------------------------------------------------------+-------------\n").skip(1) {
        let is_node = |line: &&str| line.split_once("| ").is_some_and(|(_, name)| !name.starts_with("  "));
        let Some(node_line) = block.lines().find(is_node) else { continue };
        let (numbers, node) = node_line.split_once("| ").unwrap();
        let (flat, rest) = word(numbers);
        let (_, rest) = word(rest);
        let (_, rest) = word(rest);
        let (cum, _) = word(rest);
        graph.nodes.push(Row { subject: node.into(), numbers: vec![number(flat), number(cum)] });

        let mut relation = "caller ";
        for line in block.lines() {
            if line == node_line {
                relation = "callee ";
                continue;
            }
            let (weight, name) = line.split_once("|   ").unwrap_or_else(|| panic!("pprof, peek: {line}"));
            let (weight, _) = word(weight);
            graph
                .edges
                .push(Row { subject: edge(node, relation, without_inline_mark(name)), numbers: vec![number(weight)] });
        }
    }
    graph
}

/// Returns the name of an edge in a row. pprof lists each edge twice, once at either end.
pub fn edge(node: &str, relation: &str, other: &str) -> String {
    format!("{node} -- {relation}{other}")
}

/// Removes the suffix that pprof appends to the name of an inlined node or edge.
fn without_inline_mark(name: &str) -> &str {
    name.strip_suffix(" (inline)").or_else(|| name.strip_suffix(" (partial-inline)")).unwrap_or(name)
}

/// Reads `tags`: the sum for every value of every label. See `exceptions::BASE_LABEL`.
pub fn tags(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in text.split("\n\n").filter(|group| !group.trim().is_empty()) {
        let mut lines = group.trim_start_matches('\n').lines();
        let heading = lines.next().unwrap().trim_start();
        let (key, _) = heading.split_once(": Total ").unwrap_or_else(|| panic!("pprof, tags: {heading}"));
        if key == "pprof::base" {
            continue;
        }
        for line in lines {
            let (sum, rest) = word(line);
            // Without a total, the percentage is missing: `5ns:` instead of `5ns (12%):`.
            let value = match sum.strip_suffix(':') {
                Some(_) => rest,
                None => rest.split_once("%):").unwrap_or_else(|| panic!("pprof, tags: {line}")).1,
            };
            let value = value.strip_prefix(' ').unwrap_or(value);
            rows.push(Row { subject: format!("{key}={value}"), numbers: vec![number(sum.trim_end_matches(':'))] });
        }
    }
    rows
}

/// Reads `traces`: every sample. pprof's label for the base distinguishes the sides.
pub fn stacks(text: &str) -> Stacks {
    let mut stacks = Stacks { base: Vec::new(), new: Vec::new() };
    for sample in samples_of_traces(text) {
        let row = Row { subject: sample.stack, numbers: vec![sample.value] };
        match sample.labels.iter().any(|label| label.trim_start() == "pprof::base:  true") {
            true => stacks.base.push(row.negated()),
            false => stacks.new.push(row),
        }
    }
    stacks
}

/// A sample as printed by `traces`.
struct Trace<'t> {
    /// Labels come first (`key:  value`), then the frames from the leaf. The first frame follows the value of the
    /// sample.
    labels: Vec<&'t str>,
    /// Root first.
    stack: String,
    value: i64,
}

fn samples_of_traces(text: &str) -> Vec<Trace<'_>> {
    let mut traces = Vec::new();
    let samples = text.split("-----------+-------------------------------------------------------\n").skip(1);
    for sample in samples.filter(|sample| !sample.is_empty()) {
        let starts_stack = |line: &str| {
            let (value, frame) = word(line);
            value.strip_prefix('-').unwrap_or(value).starts_with(|c: char| c.is_ascii_digit())
                && frame.starts_with("  ")
        };
        let labels: Vec<&str> = sample.lines().take_while(|line| !starts_stack(line)).collect();
        let mut frames: Vec<&str> = sample
            .lines()
            .skip(labels.len())
            .map(|line| {
                let frame = line.strip_prefix("             ").unwrap_or_else(|| word(line).1.trim_start());
                without_inline_mark(frame)
            })
            .collect();
        frames.reverse();
        let (value, _) = word(sample.lines().nth(labels.len()).unwrap());
        // See `exceptions::UNTRIMMED`.
        let stack = frames.join("; ").replace("/proc/self/cwd/", "");
        traces.push(Trace { labels, stack, value: number(value) });
    }
    traces
}

/// Reads `traces` of one profile, with the labels of each sample. See `command::labelled`.
pub fn traces(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for sample in samples_of_traces(text) {
        let labels = sample.labels.iter().map(|label| label.trim_start().split_once(":  ").unwrap());
        rows.push(Row { subject: labelled(&sample.stack, labels), numbers: vec![sample.value] });
    }
    rows
}

/// Parses a number in the requested unit: digits, then the unit. A decimal point would mean that pprof has scaled it.
pub fn number(printed: &str) -> i64 {
    let end = printed.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(printed.len());
    let (digits, unit) = printed.split_at(end);
    assert!(!unit.starts_with('.'), "pprof scaled a value: {printed}");
    let number: i64 = digits.parse().unwrap_or_else(|_| panic!("not a number of pprof: {printed:?}"));
    assert!(number.abs() < 1 << 53, "pprof prints {printed} through a float64, which is not exact");
    number
}

/// Returns the first word of a line, and the rest.
pub fn word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    line.split_once(' ').unwrap_or((line, ""))
}

/// Returns all rows of any of these reports, for comparing two of them.
pub fn rows(command: &str, text: &str) -> Vec<Row> {
    match command {
        "top" => top(text).rows,
        "peek ." => {
            let Graph { mut nodes, edges } = graph(text);
            nodes.extend(edges);
            nodes
        }
        "tags" => tags(text),
        "traces" => {
            let Stacks { mut base, new } = stacks(text);
            base.extend(new);
            base
        }
        other => panic!("pprof's {other} is not read here"),
    }
}
