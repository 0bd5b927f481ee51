//! The view `labels`: the cost of each label value.

use std::io::{self, Write};

use super::{Form, RowLimit, View, ViewContext, ViewInput, ViewSpec};
use crate::report::Report;
use crate::table::build::{costs, statuses};
use crate::table::multi_type::{TextNumbers, TypePart, join};
use crate::table::schema::{key, label};
use crate::table::{Data, Kind, LimitUnit, Measured, Table};
use crate::text::{TextOptions, grid};
use pprofdiff::labels::Labels;
use pprofdiff::options::Scope;
use pprofdiff::{Result, units};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "labels",
    about: "Show the cost of each label value",
    scope: Scope::Rows,
    input: ViewInput::SeveralTypes,
    forms: Form::OF_ROWS,
    kinds: &[&LABELS],
    view: Some(|_| View::Labels { limit: None }),
    of_pairs: true,
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

/// The kind of tables with one label value per row.
pub(crate) static LABELS: Kind = Kind {
    name: "labels",
    row: "label value",
    limit_unit: LimitUnit::RowsOfEach("key"),
    columns: |shape| {
        let mut all = vec![key("key"), label("value"), key("unit")];
        all.extend(shape.costs(&[Measured::Weight]));
        all.extend(shape.status());
        all
    },
    text: write_labels,
    row_label: label_value,
    chart_label: |table, row, _| label_value(table, row),
    ..Kind::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, limit: usize) -> Result<Report> {
    let labels = context.per_sample_type(|measure| Ok(measure.labels()))?;
    Ok(Report::Table(Table::all_labels(&labels).head(limit)))
}

impl Table {
    /// Builds a table with one label value per row. Columns: key, value, unit (missing for texts); then
    /// `base, new, delta, status` for two sides, or `weight` for one.
    pub fn labels(labels: &Labels) -> Table {
        let two_sided = labels.summary.base.is_some();
        let rows = &labels.rows;
        let mut data = vec![
            Data::Text(rows.iter().map(|r| Some(labels.key(r))).collect()),
            Data::Text(rows.iter().map(|r| Some(labels.value(r))).collect()),
            Data::Text(rows.iter().map(|r| labels.unit(r)).collect()),
        ];
        data.extend(costs(two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        Table::new(&LABELS, &labels.summary, data)
    }

    /// Builds one table of label values with the costs of several sample types. A row is identified by the texts of
    /// key, value and unit.
    pub(crate) fn all_labels(labels: &[Labels]) -> Table {
        if let [single] = labels {
            return Table::labels(single);
        }
        let mut texts = TextNumbers::default();
        let parts = labels.iter().map(|type_labels| {
            let keys = type_labels.rows.iter().map(|row| {
                let unit = type_labels.unit(row).map_or(u32::MAX, |unit| texts.number(&unit));
                [texts.number(&type_labels.key(row)), texts.number(&type_labels.value(row)), unit].into()
            });
            let keys = keys.collect();
            TypePart { table: Table::labels(type_labels), keys, nodes: Vec::new() }
        });
        join(parts.collect(), true)
    }
}

/// Formats a label value as `key = value`. A number with a unit is scaled: `bytes = 64kB`.
fn label_value(table: &Table, row: usize) -> String {
    let value = table.text_of("value", row);
    let value = match (value.parse(), table.texts("unit").and_then(|units| units.get(row))) {
        (Ok(number), Some(unit)) => units::show(number, unit),
        _ => value.to_owned(),
    };
    format!("{} = {value}", table.text_of("key", row))
}

fn write_labels(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    if !table.beside.is_empty() {
        return table.write_beside(out, options);
    }
    let costs = table.costs();
    let Some(weight) = costs.first() else { return Ok(()) };
    let weights = table.cells(weight, true);
    let two_sided = table.summary.base.is_some();
    let mut head = weights.head("");
    head.extend(two_sided.then(|| "status".to_owned()));
    head.push("label".to_owned());
    grid(out, options, &head, |push| {
        (0..table.len()).try_for_each(|row| {
            let mut cells = weights.format(weight.pair(row));
            if two_sided {
                cells.push(table.text_of("status", row).into());
            }
            cells.push(label_value(table, row).into());
            push(cells)
        })
    })
}
