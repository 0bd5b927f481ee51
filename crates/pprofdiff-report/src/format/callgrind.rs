//! The format of KCachegrind and QCachegrind, as `go tool pprof -callgrind` writes it: the cost of each address and of
//! the calls from it.
//!
//! A diff is written as two events, base and new, and the viewer switches between them. Deltas are impossible because
//! the viewers do not support negative costs. Costs are in the sample type's own unit. The numbers of calls are 0
//! because profiles do not contain them.

use std::io::{self, Write};

use super::{BASE, Format, unsupported};
use crate::report::Report;
use crate::shows::{self, Form};
use pprofdiff::Pair;
use pprofdiff::graph::Graph;
use pprofdiff::random::HashMap;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::text::sanitize;

pub(crate) const FORMAT: Format = Format {
    name: "callgrind",
    extensions: &["callgrind", "callgraph.out"],
    about: "the whole call graph by address, for KCachegrind",
    warns: false,
    form: Form::Calls,
    asks: shows::whole_graph,
    write: |report, out, _| match report {
        Report::Graph(graph) => callgrind(graph, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// A table that writes each text once: `(1) main` the first time, then `(1)`.
#[derive(Default)]
struct CallgrindNames {
    numbers: HashMap<String, usize>,
    /// The text of each number; `None` once it was written.
    texts: Vec<Option<String>>,
}

impl CallgrindNames {
    /// Returns the number of a text, or `None` if the text is empty.
    fn number(&mut self, text: Option<String>) -> Option<usize> {
        let text = text.filter(|t| !t.is_empty())?;
        let next = self.texts.len();
        let number = *self.numbers.entry(text.clone()).or_insert(next);
        if number == next {
            self.texts.push(Some(text));
        }
        Some(number)
    }

    fn write(&mut self, field: &str, number: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
        match number.map(|n| (n + 1, self.texts[n].take())) {
            None => writeln!(out, "{field}="),
            Some((n, None)) => writeln!(out, "{field}=({n})"),
            Some((n, Some(text))) => writeln!(out, "{field}=({n}) {}", sanitize(&text)),
        }
    }
}

/// The numbers of a node's binary, file and function.
type NodePlace = (Option<usize>, Option<usize>, Option<usize>);

fn callgrind(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let (s, frames) = (&graph.summary, &graph.frames);
    let two_sided = s.base.is_some();
    // Spaces separate the names of events.
    let event = |side: &str| sanitize(&format!("{}{side}({})", s.sample_type, s.unit)).replace(' ', "_");
    let costs = |p: Pair| if two_sided { format!("{} {}", p.base, p.new) } else { p.new.to_string() };
    writeln!(out, "# callgrind format\npositions: instr line")?;
    match two_sided {
        true => writeln!(out, "events: {} {}", event("_base"), event("_new"))?,
        false => writeln!(out, "events: {}", event(""))?,
    }
    let (mut binaries, mut files, mut names) =
        (CallgrindNames::default(), CallgrindNames::default(), CallgrindNames::default());
    let mut place = |frame: u32| -> NodePlace {
        let name = Some(frames.name(frame));
        (binaries.number(frames.mapping(frame)), files.number(frames.file(frame)), names.number(name))
    };
    let places: Vec<NodePlace> = graph.nodes.iter().map(|row| place(row.frame)).collect();
    let position = |node: usize| {
        let frame = graph.nodes[node].frame;
        format!("{:#x} {}", frames.address(frame).unwrap_or(0), frames.line(frame).unwrap_or(0))
    };
    let mut calls: Vec<_> = graph.calls.iter().collect();
    // Group the calls by caller. The sort is stable, so the heaviest calls stay first.
    sort_by_key(&mut calls, |call| call.caller);
    let mut calls = calls.into_iter().peekable();
    for (i, row) in graph.nodes.iter().enumerate() {
        let (binary, file, name) = places[i];
        if i == 0 || places[i] != places[i - 1] {
            writeln!(out)?;
            binaries.write("ob", binary, out)?;
            files.write("fl", file, out)?;
            names.write("fn", name, out)?;
        }
        writeln!(out, "{} {}", position(i), costs(row.flat))?;
        while let Some(call) = calls.next_if(|call| call.caller as usize == i) {
            let (callees, file, name) = places[call.callee as usize];
            // Without `cob`, viewers assume that the callee is in the caller's binary.
            if callees != binary {
                binaries.write("cob", callees, out)?;
            }
            files.write("cfl", file, out)?;
            names.write("cfn", name, out)?;
            writeln!(out, "calls=0 {}", position(call.callee as usize))?;
            // The position of the caller.
            writeln!(out, "* * {}", costs(call.weight))?;
        }
    }
    Ok(())
}
