//! Whole stacks with their labels as text, each from the leaf.

use std::io::{self, Write};

use crate::numbers::{counted, signed};
use crate::table::{Cell, Table};
use crate::text::{TextOptions, paint};
use pprofdiff::text::sanitize;

/// Writes blocks like pprof: the labels, then the value and the frames from the leaf.
pub(crate) fn write_traces(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    const RULER: &str = "-----------+-------------------------------------------------------";
    let costs = table.costs();
    let Some(weights) = costs.first() else { return Ok(()) };
    let cost = table.format(weights);
    table.write_header(out, options)?;
    let two_sided = table.summary.base.is_some();
    if two_sided {
        writeln!(out, "{:>10} {:>10} {:>11}", "base", "new", "delta")?;
    }
    for row in 0..table.len() {
        writeln!(out, "{RULER}")?;
        let list = |column: &str| match table.column(column).map(|c| c.cell(row)) {
            Some(Cell::List(lists, row)) => Some(lists.get(row)),
            _ => None,
        };
        for label in list("labels").into_iter().flatten() {
            // Sanitize before splitting, because commands for CI runners can contain `=`.
            let label = sanitize(label);
            let (key, value) = label.split_once('=').unwrap_or((&label, ""));
            writeln!(out, "{key:>10}:  {value}")?;
        }
        let weight = weights.pair(row);
        let value = match two_sided {
            true => {
                let (base, new) = (cost.sides.format(weight.base), cost.sides.format(weight.new));
                let delta = weight.delta();
                let text = signed(delta, cost.delta);
                // Pad before colouring, because escape sequences have no width.
                format!("{base:>10} {new:>10} {}", paint(&format!("{text:>11}"), delta.signum(), options))
            }
            false => format!("{:>10}", cost.sides.format(weight.new)),
        };
        let frames: Vec<&str> = list("frames").into_iter().flatten().collect();
        let indent = if two_sided { 33 } else { 10 };
        for (i, frame) in frames.iter().rev().enumerate() {
            match i {
                0 => writeln!(out, "{value}   {}", sanitize(frame))?,
                _ => writeln!(out, "{:indent$}   {}", "", sanitize(frame))?,
            }
        }
    }
    writeln!(out, "{RULER}")?;
    if table.len() < table.rows_total {
        writeln!(out, "{} of {}", table.len(), counted(table.rows_total, "stack"))?;
    }
    Ok(())
}
