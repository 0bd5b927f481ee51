//! The view `movers`: the frames of many builds, ranked by their largest step.

use super::steps::{columns, step_columns, write_steps};
use super::{Form, ViewSpec};
use crate::numbers::counted_of;
use crate::series::{build_columns, frame_columns};
use crate::table::schema::{Holds, build, frame, label, spec};
use crate::table::{Data, Kind, Role, Table};
use pprofdiff::Sort;
use pprofdiff_series::{Mover, Ranked, Series};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "movers",
    about: "Rank the frames of many builds by their largest step",
    kinds: &[&MOVERS],
    forms: &[Form::Text, Form::Json, Form::Rows, Form::Prose, Form::Page],
    ..ViewSpec::OF_BUILDS
};

/// The kind of tables with one frame per row and its largest step.
pub(crate) static MOVERS: Kind = Kind {
    name: "movers",
    columns: |_| {
        let mut all = Vec::from(frame());
        all.push(label("mapping"));
        all.extend(["first_seen", "last_seen"].into_iter().flat_map(build));
        all.push(spec("builds", Role::Key, Holds::Line));
        all.extend(columns());
        all
    },
    text: |table, out, options| {
        let rows = match table.rows_total {
            1 => "1 frame by its largest step".to_owned(),
            _ => format!("{} by their largest step", counted_of(table.len(), table.rows_total, "frame")),
        };
        write_steps(table, &rows, &[("first", "first_seen"), ("last", "last_seen")], out, options)
    },
    chart_label: |table, row, name| table.name_with_build(row, "to", name),
    ..Kind::OF_BUILDS
};

pub(crate) fn answer(series: &Series, sort: Sort, limit: usize) -> Table {
    Table::movers(&series.movers(sort), limit)
}

impl Table {
    /// Builds a table of the first `n` frames. Columns: the frame; first_seen and last_seen (keys and numbers of
    /// builds); builds (the number of builds that contain the frame); and the columns of the frame's largest step.
    pub fn movers(ranked: &Ranked<Mover>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|m| m.frame));
        columns.extend(build_columns(&ranked.builds, rows.iter().map(|m| Some(m.first))));
        columns.extend(build_columns(&ranked.builds, rows.iter().map(|m| Some(m.last))));
        columns.push(Data::Line(rows.iter().map(|m| Some(m.builds as i64)).collect()));
        columns.extend(step_columns(&ranked.builds, rows.iter().map(|m| &m.step)));
        Table::new(&MOVERS, &ranked.summary, columns).of_ranked(ranked)
    }
}
