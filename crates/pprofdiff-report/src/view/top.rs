//! The view `top`: the table of frames.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Form, RowLimit, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};
use crate::report::Report;
use crate::table::build::{costs, statuses};
use crate::table::multi_type::{TypePart, join};
use crate::table::schema::{Holds, Spec, TableShape, frame, label, spec};
use crate::table::{Column, Data, Kind, Measured, Role, RunStatistic, Table};
use crate::text::{TextCell, TextOptions, fitting_grid};
use pprofdiff::list::CodeChange;
use pprofdiff::options::Scope;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::top::{Chance, LeftOut, TopRow};
use pprofdiff::{Error, Granularity, Result, Sort, Top};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "top",
    about: "Show the frames of one profile, or of two",
    scope: Scope::Table,
    input: ViewInput::SeveralTypes,
    forms: &[
        Form::Text,
        Form::Json,
        Form::Rows,
        Form::Prose,
        Form::Stacks,
        Form::Profile,
        Form::Graph,
        Form::Calls,
        Form::Page,
    ],
    kinds: &[&TOP, &DIFF],
    view: Some(|ViewOptions { sort, .. }| View::Top { sort, limit: None, significant: false }),
    of_pairs: true,
    takes: &[Takes::Sort],
    narrowed: |view| matches!(view, View::Top { significant: true, .. }).then_some(" of significant rows"),
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

/// The kind of tables with the frames of one profile.
pub(crate) static TOP: Kind =
    Kind { name: "top", row: "frame", has_sides: |two_sided| !two_sided, columns, text: write_top, ..Kind::BASE };

/// The kind of tables with the frames of a diff.
pub(crate) static DIFF: Kind = Kind {
    name: "diff",
    row: "frame",
    has_sides: |two_sided| two_sided,
    columns,
    has_pair_lines: true,
    text: write_top,
    ..Kind::BASE
};

fn columns(shape: &TableShape<'_>) -> Vec<Spec> {
    let mut all = Vec::from(frame());
    all.extend([spec("address", Role::Key, Holds::Address), label("mapping")]);
    all.extend(shape.status());
    all.extend(shape.costs(&[Measured::Flat, Measured::Cum]));
    if shape.of_runs {
        let statistics = [
            ("base_sd", RunStatistic::BaseSd),
            ("new_sd", RunStatistic::NewSd),
            ("p", RunStatistic::P),
            ("q", RunStatistic::Q),
        ];
        all.extend(statistics.map(|(name, statistic)| spec(name, Role::Chance(statistic), Holds::Ratio)));
        all.push(spec("left_out", Role::LeftOut, Holds::Text));
    }
    if shape.of_code {
        all.push(spec("code", Role::Key, Holds::Text));
    }
    all
}

pub(crate) fn answer(context: &ViewContext<'_>, sort: Sort, limit: usize, significant: bool) -> Result<Report> {
    if !context.query.extra_sample_types.is_empty() {
        // A row that is hidden in the table of one sample type would appear in the joined table with a cost of 0.
        if significant || context.query.hide_below != Default::default() {
            let subject = if significant { "significant rows are available for" } else { "hide_below works with" };
            return Err(Error::query(format!("{subject} one sample type at a time")));
        }
        let tops = context.per_sample_type(|measure| Ok(measure.top(sort)))?;
        return Table::tops(&tops, limit).with_code(context).map(Report::Table);
    }
    let measure = context.single_measure()?;
    let mut top = match (significant, measure.summary().is_of_runs()) {
        (true, _) => measure.top_of_runs(sort)?,
        // Statistics are optional here. If they fail, for example because a run cannot be normalized by itself, show
        // the table without them.
        (false, true) => measure.top_of_runs(sort).unwrap_or_else(|e| {
            let mut top = measure.top(sort);
            let warning = format!("significance is unknown: {}", e.detail());
            Arc::make_mut(&mut top.summary).warnings.push(warning);
            top
        }),
        (false, false) => measure.top(sort),
    };
    if significant {
        top.retain_significant();
    }
    Table::top(&top, limit).with_code(context).map(Report::Table)
}

/// The maximum number of functions whose instructions are compared. Comparing takes about a millisecond per function,
/// and formats without a limit have all rows.
const MAX_COMPARED: usize = 100;

impl Table {
    /// Builds a table of the first `n` frames. Columns: name, file, line, address, mapping; status and `flat_base,
    /// flat_new, flat_delta, cum_base, cum_new, cum_delta` for two sides, or `flat, cum` for one; and, if there are
    /// statistics of runs, `base_sd, new_sd, p, q, left_out` for the cost that rows are ordered by.
    pub fn top(top: &Top, n: usize) -> Table {
        let two_sided = top.summary.base.is_some();
        let (frames, rows) = (&top.frames, &top.rows[..n.min(top.rows.len())]);
        let text = |f: &dyn Fn(u32) -> Option<String>| Data::Text(rows.iter().map(|r| f(r.frame)).collect());
        let mut data = vec![
            text(&|f| Some(frames.name(f))),
            text(&|f| frames.file(f)),
            Data::Line(rows.iter().map(|r| frames.line(r.frame)).collect()),
            Data::Address(rows.iter().map(|r| frames.address(r.frame)).collect()),
            text(&|f| frames.mapping(f)),
        ];
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        data.extend(costs(two_sided, rows.iter().map(|r| r.flat)));
        data.extend(costs(two_sided, rows.iter().map(|r| r.cum)));
        if let Some(chances) = &top.chances {
            let column = |f: fn(&Chance) -> Option<f64>| {
                Data::Ratio(rows.iter().map(|r| chances.get(r.frame as usize).and_then(f)).collect())
            };
            data.extend([column(|c| c.base_sd), column(|c| c.new_sd), column(|c| c.p), column(|c| c.q)]);
            let left_out = |r: &TopRow| chances.get(r.frame as usize)?.left_out.map(LeftOut::name);
            data.push(Data::Text(rows.iter().map(left_out).collect()));
        }
        let kind = if two_sided { &DIFF } else { &TOP };
        Table { rows_total: top.rows_total, sort: top.sort, ..Table::new(kind, &top.summary, data) }
    }

    /// Adds the column `code` to a table of functions, if the user named binaries for both sides: the difference between
    /// a function's instructions. It is missing for functions that are not compared: after the first [`MAX_COMPARED`], and
    /// without a sample in a binary.
    fn with_code(mut self, context: &ViewContext<'_>) -> Result<Table> {
        let names = match self.column("name").map(|column| &column.data) {
            Some(Data::Text(names)) if context.query.granularity == Granularity::Functions => names,
            _ => return Ok(self),
        };
        let compared: Vec<String> = names.iter().take(MAX_COMPARED).flatten().map(str::to_owned).collect();
        let Some(changes) = context.diff.named_code_changes(context.query, &compared)? else { return Ok(self) };
        let change = |name: Option<&str>| changes.by_name.get(name?).map(CodeChange::name);
        let data = Data::Text(
            names.iter().take(MAX_COMPARED).map(change).chain(names.iter().skip(MAX_COMPARED).map(|_| None)).collect(),
        );
        self.columns.push(Column { name: "code".into(), role: Role::Key, data });
        Arc::make_mut(&mut self.summary).warnings.extend(changes.warning);
        Ok(self)
    }

    /// Builds a table of the first `n` frames with the costs of several sample types. All must come from one selection,
    /// so that a frame has the same number in each.
    pub(crate) fn tops(tops: &[Top], n: usize) -> Table {
        if let [single] = tops {
            return Table::top(single, n);
        }
        let parts = tops.iter().map(|top| {
            let keys = top.rows.iter().map(|row| [row.frame].into()).collect();
            TypePart { table: Table::top(top, usize::MAX), keys, nodes: Vec::new() }
        });
        Table { sort: tops[0].sort, ..join(parts.collect(), false).head(n) }
    }
}

fn write_top(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    if !table.beside.is_empty() {
        return table.write_beside(out, options);
    }
    let mut costs = table.lead_costs();
    if table.summary.base.is_none() {
        // Like pprof, keep the order of flat and cum. A single profile leaves room for both costs in full.
        sort_by_key(&mut costs, |c| c.cost.measured == Measured::Cum);
    }
    let columns: Vec<_> =
        costs.iter().enumerate().map(|(i, c)| (c, table.cells(c, i == 0 && !options.brief))).collect();
    let chance = table.chance_columns();
    let mut head: Vec<String> = Vec::new();
    for (i, (costs, cells)) in columns.iter().enumerate() {
        head.extend(cells.head(costs.cost.measured.name()));
        head.extend(chance.iter().filter(|_| i == 0).map(|statistic| statistic.head().to_owned()));
    }
    let first = columns.first().map_or(0, |(costs, cells)| cells.head(costs.cost.measured.name()).len() + chance.len());
    let second = columns.get(1).map(|(costs, _)| (first..head.len(), costs.cost.measured.name()));
    let has_code = (0..table.len()).any(|row| !table.text_of("code", row).is_empty());
    head.extend(has_code.then(|| "code".to_owned()));
    head.push("frame".to_owned());
    fitting_grid(out, options, &head, second.as_slice(), |push| {
        (0..table.len()).try_for_each(|row| {
            let mut shown: Vec<TextCell> = Vec::new();
            for (i, (costs, cells)) in columns.iter().enumerate() {
                shown.extend(cells.format(costs.pair(row)));
                shown.extend(
                    chance.iter().filter(|_| i == 0).map(|statistic| table.format_statistic(*statistic, row).into()),
                );
            }
            shown.extend(has_code.then(|| table.text_of("code", row).to_owned().into()));
            shown.push(table.label(row).into());
            push(shown)
        })
    })
}
