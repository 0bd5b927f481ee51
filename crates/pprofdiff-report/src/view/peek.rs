//! The view `peek`: callers and callees of matching frames.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Form, MatchTarget, RowLimit, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};
use crate::numbers::CostFormat;
use crate::report::Report;
use crate::table::build::{costs, dictionary};
use crate::table::multi_type::{TypePart, join};
use crate::table::schema::{Spec, TableShape, key, label};
use crate::table::{Data, Kind, LimitUnit, Measured, NodeCost, Table, TableNodes, Texts};
use crate::text::{Cells, NOTE_GAP, TextOptions, grid};
use pprofdiff::edges::{Edge, Edges, Relation};
use pprofdiff::options::Scope;
use pprofdiff::random::HashMap;
use pprofdiff::{Pair, Result, Sort};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "peek",
    about: "Show the callers and callees of matching frames",
    scope: Scope::Sums,
    input: ViewInput::SeveralTypes,
    matched: MatchTarget::FRAMES,
    forms: Form::OF_ROWS,
    kinds: &[&PEEK],
    view: Some(|ViewOptions { regex, sort, .. }| View::Peek { regex, sort, limit: None }),
    of_pairs: true,
    takes: &[Takes::Sort],
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

/// The kind of tables with the edges of matching frames.
pub(crate) static PEEK: Kind = Kind { name: "peek", ..EDGES };

/// The common part of tables with one edge between caller and callee per row, grouped by node.
pub(crate) const EDGES: Kind = Kind {
    row: "edge",
    limit_unit: LimitUnit::Nodes,
    columns,
    text: write_edges,
    row_label: |table, row| {
        let [node, other, relation] = ["node", "other", "relation"].map(|name| table.text_of(name, row));
        format!("{node} {} {other}", if relation == "caller" { "from" } else { "calls" })
    },
    chart_label: |table, row, name| {
        let [node, other, relation] = ["node", "other", "relation"].map(|name| table.text_of(name, row));
        let [from, to] = if relation == "caller" { [other, node] } else { [node, other] }.map(name);
        format!("{from} → {to}")
    },
    ..Kind::BASE
};

fn columns(shape: &TableShape<'_>) -> Vec<Spec> {
    let mut all = vec![label("node"), label("other"), key("relation")];
    all.extend(shape.costs(&[Measured::Weight]));
    all
}

pub(crate) fn answer(context: &ViewContext<'_>, regex: &str, sort: Sort, limit: usize) -> Result<Report> {
    let edges = context.per_sample_type(|measure| measure.edges(Some(regex), sort))?;
    Ok(Report::Table(Table::all_edges(&edges, &PEEK).head(limit)))
}

impl Table {
    /// Builds a table of the callers and callees of matching frames. See [`Table::tree`] for the columns.
    pub fn peek(source: &Edges) -> Table {
        Table::edges(source, &PEEK)
    }

    /// Builds a table of `kind` with one edge per row. Nodes without edges are in [`Table::nodes`] only.
    pub(super) fn edges(source: &Edges, kind: &'static Kind) -> Table {
        let edges = &source.edges;
        let nodes = source.nodes.iter().map(|row| row.frame);
        let (labels, number) =
            dictionary(&source.frames, nodes.clone().chain(edges.iter().flat_map(|e| [e.node, e.other])));
        let label = |f: u32| number[f as usize] as usize;
        let relations: Texts = [Relation::Caller, Relation::Callee].iter().map(|r| Some(r.name())).collect();
        let mut data = vec![
            Data::Text(labels.shared(edges.iter().map(|e| label(e.node)))),
            Data::Text(labels.shared(edges.iter().map(|e| label(e.other)))),
            Data::Text(relations.shared(edges.iter().map(|e| usize::from(e.relation == Relation::Callee)))),
        ];
        data.extend(costs(source.summary.base.is_some(), edges.iter().map(|e| e.weight)));
        let mut number = vec![u32::MAX; source.frames.len()];
        for (i, row) in source.nodes.iter().enumerate() {
            number[row.frame as usize] = i as u32;
        }
        let nodes = TableNodes {
            all: Arc::new(source.nodes.iter().map(|r| NodeCost { flat: r.flat, cum: r.cum }).collect()),
            labels: labels.shared(nodes.map(label)),
            shown: (0..source.nodes.len() as u32).collect(),
            of_row: edges.iter().map(|e| number[e.node as usize]).collect(),
        };
        Table { nodes, ..Table::new(kind, &source.summary, data) }
    }

    /// Builds one table of edges with the costs of several sample types, which share a selection.
    pub(crate) fn all_edges(edges: &[Edges], kind: &'static Kind) -> Table {
        if let [single] = edges {
            return Table::edges(single, kind);
        }
        let parts = edges.iter().map(|type_edges| {
            let key = |e: &Edge| [e.node, e.other, u32::from(e.relation == Relation::Callee)].into();
            let nodes = type_edges.nodes.iter().map(|row| row.frame).collect();
            TypePart { table: Table::edges(type_edges, kind), keys: type_edges.edges.iter().map(key).collect(), nodes }
        });
        join(parts.collect(), true)
    }
}

/// Writes one block per node, like pprof's `-peek`: the callers, the node with its flat and cum cost, the callees. The
/// columns and the flat costs share one unit. With several sample types, writes the edges as rows instead.
fn write_edges(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let nodes = || table.nodes.shown.iter().map(|&number| &table.nodes.all[number as usize]);
    if !table.beside.is_empty() {
        return table.write_beside(out, options);
    }
    let costs = table.costs();
    let Some(weights) = costs.first() else { return Ok(()) };
    let rows = (0..table.len()).map(|row| weights.pair(row));
    let pairs: Vec<Pair> = rows.chain(nodes().flat_map(|n| [n.cum, n.flat])).collect();
    let cost = CostFormat::new(&table.summary, pairs.into_iter());
    let numbers = &Cells { cost, summary: &table.summary, full: true };
    let mut rows_of: HashMap<u32, Vec<usize>> = HashMap::default();
    for (row, &node) in table.nodes.of_row.iter().enumerate() {
        rows_of.entry(node).or_default().push(row);
    }
    let mut head = numbers.head("");
    head.push("  frame".to_owned());
    grid(out, options, &head, |push| {
        for (i, &number) in table.nodes.shown.iter().enumerate() {
            if i > 0 {
                push(Vec::new())?;
            }
            let rows = rows_of.get(&number).map_or(&[][..], Vec::as_slice);
            let edges = |relation: &'static str, word: &'static str| {
                rows.iter().filter(move |&&row| table.text_of("relation", row) == relation).map(move |&row| {
                    let mut cells = numbers.format(weights.pair(row));
                    cells.push(format!("    {word} {}", table.text_of("other", row)).into());
                    cells
                })
            };
            edges("caller", "from").try_for_each(&mut *push)?;
            let node = &table.nodes.all[number as usize];
            let label = table.nodes.labels.get(number as usize).unwrap_or_default();
            let flat = match table.summary.base {
                Some(_) => cost.change(node.flat, "->"),
                None => cost.sides.format(node.flat.new),
            };
            let mut cells = numbers.format(node.cum);
            cells.push(format!("  {label}{NOTE_GAP}(flat {flat})").into());
            push(cells)?;
            edges("callee", "calls").try_for_each(&mut *push)?;
        }
        Ok(())
    })
}
