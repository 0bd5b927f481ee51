//! The call graph in Graphviz's DOT language.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::callgraph::Look;
use crate::format::{BASE, Format, unsupported};
use crate::report::Report;
use crate::shows::{self, Form};
use pprofdiff::Status;
use pprofdiff::graph::Graph;

pub(crate) const FORMAT: Format = Format {
    name: "dot",
    extensions: &["dot", "gv"],
    about: "the call graph, for Graphviz",
    form: Form::Graph,
    asks: shows::graph,
    write: |report, out, _| match report {
        Report::Graph(graph) => dot(graph, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// Writes the graph in DOT.
///
/// # Errors
/// Fails if `out` fails.
pub fn dot(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let look = Look::new(graph);
    writeln!(out, "digraph pprofdiff {{")?;
    writeln!(out, "node [shape=box style=filled fontname=\"Verdana,DejaVu Sans,sans-serif\" fillcolor=\"#f8f8f8\"]")?;
    writeln!(out, "edge [fontname=\"Verdana,DejaVu Sans,sans-serif\" fontsize=9]")?;
    // Graphviz aligns a line to the left if it ends in \l.
    let legend = look.legend().iter().fold(String::new(), |all, line| all + &escape(line) + "\\l");
    writeln!(out, "subgraph cluster_legend {{ style=invis; legend [fontsize=12 label=\"{legend}\"] }}")?;
    for (i, row) in graph.nodes.iter().enumerate() {
        let n = look.node(row);
        let mut style = String::from("filled");
        match n.status {
            Some(Status::Added) => style.push_str(",bold"),
            Some(Status::Removed) => style.push_str(",dashed"),
            _ => {}
        }
        let label = [n.name, n.values].concat().iter().map(|l| escape(l)).collect::<Vec<_>>().join("\\n");
        writeln!(
            out,
            "N{} [label=\"{label}\" fontsize={:.1} style=\"{style}\" color=\"{}\" fillcolor=\"{}\" tooltip=\"{}\"]",
            i + 1,
            n.font,
            n.line,
            n.fill,
            escape(&n.tooltip)
        )?;
    }
    for call in &graph.calls {
        let c = look.call(call);
        let mut style = String::new();
        if call.residual {
            style.push_str(" style=dotted");
        }
        if c.share > 0.0 {
            let _ = write!(style, " weight={}", 1 + (c.share * 99.0) as u32);
        }
        let tooltip = escape(&c.tooltip);
        writeln!(
            out,
            "N{} -> N{} [label=\" {}\" color=\"{}\" penwidth={:.2}{style} tooltip=\"{tooltip}\" labeltooltip=\"{tooltip}\"]",
            call.caller + 1,
            call.callee + 1,
            escape(&c.label),
            c.line,
            c.width,
        )?;
    }
    writeln!(out, "}}")
}

/// Escapes the inside of a quoted string. Graphviz interprets HTML entities and backslashes in it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}
