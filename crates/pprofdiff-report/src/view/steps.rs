//! The view `steps`: all changes of frames from one build to another.

use std::io::{self, Write};

use super::ViewSpec;
use crate::numbers::counted_of;
use crate::series::{build_columns, frame_columns};
use crate::table::build::{costs, statuses};
use crate::table::schema::{Holds, Spec, build, frame, label, spec};
use crate::table::{Cost, Data, Kind, Measured, Role, Table};
use crate::text::{TextCell, TextOptions, change_cells, fitting_grid, heads};
use pprofdiff::Sort;
use pprofdiff_series::{Builds, Ranked, Series, Step};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "steps",
    about: "Show all changes of frames from one build to the next",
    kinds: &[&STEPS],
    ..ViewSpec::OF_BUILDS
};

/// The kind of tables with one step per row.
pub(crate) static STEPS: Kind = Kind {
    name: "steps",
    columns: |_| frame().into_iter().chain([label("mapping")]).chain(columns()).collect(),
    text: |table, out, options| {
        write_steps(table, &counted_of(table.len(), table.rows_total, "step"), &[("status", "status")], out, options)
    },
    chart_label: |table, row, name| table.name_with_build(row, "to", name),
    ..Kind::OF_BUILDS
};

/// Returns the columns of a step.
pub(super) fn columns() -> Vec<Spec> {
    let mut all: Vec<Spec> = ["from", "to"].into_iter().flat_map(build).collect();
    all.push(spec("status", Role::Status, Holds::Text));
    for (measured, names) in
        [(Measured::Flat, ["flat_from", "flat_to", "flat_delta"]), (Measured::Cum, ["cum_from", "cum_to", "cum_delta"])]
    {
        let cost = Cost { measured, sample_type: 0 };
        let roles = [Role::Base(cost), Role::New(cost), Role::Delta(cost)];
        all.extend(names.into_iter().zip(roles).map(|(name, role)| spec(name, role, Holds::Value)));
    }
    all.push(spec("total_from", Role::Total, Holds::Value));
    all
}

pub(crate) fn answer(series: &Series, sort: Sort, limit: usize) -> Table {
    Table::steps(&series.steps(sort), limit)
}

/// Returns the data of a step's columns: from and to with their numbers, status, `flat_from, flat_to, flat_delta,
/// cum_from, cum_to, cum_delta, total_from`.
pub(super) fn step_columns<'a>(builds: &Builds, steps: impl Iterator<Item = &'a Step> + Clone) -> Vec<Data> {
    let mut columns = Vec::new();
    columns.extend(build_columns(builds, steps.clone().map(|s| Some(s.from))));
    columns.extend(build_columns(builds, steps.clone().map(|s| Some(s.to))));
    columns.push(statuses(steps.clone().map(|s| s.status)));
    columns.extend(costs(true, steps.clone().map(|s| s.flat)));
    columns.extend(costs(true, steps.clone().map(|s| s.cum)));
    columns.push(Data::Value(steps.map(|s| builds.all[s.from].total).collect()));
    columns
}

impl Table {
    /// Builds a table of the first `n` steps. Columns: name, file, line, mapping, from, from_number, to, to_number (the
    /// keys of both builds, and their indexes in [`pprofdiff_series::Builds::all`]), status, `flat_from, flat_to,
    /// flat_delta, cum_from, cum_to, cum_delta`, and `total_from`, the earlier build's total.
    pub fn steps(ranked: &Ranked<Step>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.extend(step_columns(&ranked.builds, rows.iter()));
        Table::new(&STEPS, &ranked.summary, columns).of_ranked(ranked)
    }
}

/// Writes steps for people: a line that starts with `rows`, then one row per step. `seen` lists the heads and names of
/// additional columns. A row whose builds are equal has no step, and shows `-` instead of builds.
pub(super) fn write_steps(
    table: &Table,
    rows: &str,
    seen: &[(&str, &str)],
    out: &mut dyn Write,
    options: TextOptions,
) -> io::Result<()> {
    if options.brief && table.is_empty() {
        return Ok(());
    }
    if !options.brief {
        writeln!(out, "{rows}; growth is relative to the earlier cost, \"of total\" to the earlier build's total\n")?;
    }
    let costs: Vec<_> = table.lead_costs().into_iter().map(|costs| (costs, table.format(&costs))).collect();
    let [first, second] = &costs[..] else { return Ok(()) };
    let sides = ["before", "after", "step"];
    let second_name = second.0.cost.measured.name();
    let mut head = heads(first.0.cost.measured.name(), true, sides, true);
    let start = head.len();
    head.extend(heads(second_name, true, sides, false));
    let second_columns = start..head.len();
    head.extend(["from", "to"].map(str::to_owned));
    head.extend(seen.iter().map(|(head, _)| (*head).to_owned()));
    let optional = [
        (second_columns, second_name.to_owned()),
        (head.len() - seen.len()..head.len(), seen.iter().map(|(head, _)| *head).collect::<Vec<_>>().join(", ")),
    ];
    let optional = optional.each_ref().map(|(columns, name)| (columns.clone(), name.as_str()));
    head.push("frame".to_owned());
    fitting_grid(out, options, &head, &optional, |push| {
        (0..table.len()).try_for_each(|row| {
            let mut cells = change_cells(first.1, first.0.pair(row), Some(table.total_of(first.0.cost, row)));
            cells.extend(change_cells(second.1, second.0.pair(row), None));
            let unchanged = table.text_of("from", row) == table.text_of("to", row);
            cells.extend(["from", "to"].map(|name| match unchanged {
                true => "-".into(),
                false => TextCell::from(table.build(name, row)),
            }));
            cells.extend(seen.iter().map(|(_, name)| TextCell::from(table.text_of(name, row))));
            cells.push(table.label(row).into());
            push(cells)
        })
    })
}
