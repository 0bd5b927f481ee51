//! The view `stacks`: whole stacks.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Form, RowLimit, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};
use crate::chart::stack_name;
use crate::numbers::whole;
use crate::report::Report;
use crate::table::build::{costs, dictionary, statuses};
use crate::table::multi_type::{TextNumbers, TypePart, join};
use crate::table::schema::{Holds, spec};
use crate::table::{Cell, Data, Kind, Lists, Measured, Role, Table};
use crate::text::{TextOptions, paint};
use pprofdiff::Result;
use pprofdiff::cancellation::checkpointed;
use pprofdiff::options::Scope;
use pprofdiff::stacks::{StackRow, Stacks};
use pprofdiff::text::sanitize;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "stacks",
    about: "Show whole stacks",
    scope: Scope::Rows,
    input: ViewInput::SeveralTypes,
    forms: &[Form::Text, Form::Json, Form::Rows, Form::Prose, Form::Stacks, Form::Profile],
    kinds: &[&STACKS],
    view: Some(|ViewOptions { by_labels, .. }| View::Stacks { by_labels, limit: None }),
    of_pairs: true,
    takes: &[Takes::Labels],
    narrowed: |view| matches!(view, View::Stacks { by_labels: true, .. }).then_some(""),
    limit: RowLimit::Rows,
    ..ViewSpec::BASE
};

/// The kind of tables with one distinct stack per row.
pub(crate) static STACKS: Kind = Kind {
    name: "stacks",
    row: "stack",
    columns: |shape| {
        let lists = |name| spec(name, Role::Label, Holds::Lists);
        let mut all = vec![lists("frames")];
        all.extend(shape.by_labels.then(|| lists("labels")));
        all.extend(shape.costs(&[Measured::Weight]));
        all.extend(shape.status());
        all
    },
    text: write_stacks,
    chart_label: stack_name,
    ..Kind::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, by_labels: bool, limit: usize) -> Result<Report> {
    if context.query.extra_sample_types.is_empty() {
        return Ok(Report::Stacks(context.single_measure()?.stacks(by_labels), limit));
    }
    let stacks = context.per_sample_type(|measure| Ok(measure.stacks(by_labels)))?;
    Ok(Report::Table(Table::all_stacks(&stacks).head(limit)))
}

impl Table {
    /// Builds a table of the first `n` stacks. Columns: frames (root first, formatted like pprof); labels (sorted
    /// `key=value`, only if the stacks are distinguished by labels); `base, new, delta, status` for two sides, or
    /// `weight` for one.
    pub fn stacks(stacks: &Stacks, n: usize) -> Table {
        let two_sided = stacks.summary.base.is_some();
        let rows = &stacks.rows[..n.min(stacks.rows.len())];
        let (texts, number) = dictionary(&stacks.frames, rows.iter().flat_map(|r| stacks.frames_of(r).iter().copied()));
        let mut lists = Lists { dictionary: Arc::new(texts), ..Lists::default() };
        for row in checkpointed(rows) {
            lists.ids.extend(stacks.frames_of(row).iter().map(|&f| number[f as usize]));
            lists.ends.push(lists.ids.len());
        }
        let mut data = vec![Data::Lists(lists)];
        if stacks.by_labels {
            data.push(Data::Lists(label_lists(stacks, rows)));
        }
        data.extend(costs(two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        let types = std::slice::from_ref(&stacks.summary);
        Table { rows_total: stacks.rows.len(), ..Table::from_columns(&STACKS, types, stacks.by_labels, data) }
    }

    /// Builds one table of stacks with the costs of several sample types. All must come from one selection, so that a
    /// frame has the same number in each.
    pub(crate) fn all_stacks(stacks: &[Stacks]) -> Table {
        let mut labels = TextNumbers::default();
        let parts = stacks.iter().map(|type_stacks| {
            let keys = type_stacks.rows.iter().map(|row| {
                let mut key = type_stacks.frames_of(row).to_vec();
                if type_stacks.by_labels {
                    // A separator between frames and labels. No frame has this number.
                    key.push(u32::MAX);
                    key.extend(type_stacks.labels_of(row).map(|label| labels.number(label)));
                }
                key.into()
            });
            let keys = keys.collect();
            TypePart { table: Table::stacks(type_stacks, usize::MAX), keys, nodes: Vec::new() }
        });
        join(parts.collect(), false)
    }
}

/// Returns the labels of stacks as lists, with only the labels of these stacks in the dictionary.
fn label_lists(stacks: &Stacks, rows: &[StackRow]) -> Lists {
    let mut number = vec![u32::MAX; stacks.n_labels()];
    let mut shown: Vec<u32> = Vec::new();
    let mut lists = Lists::default();
    for row in checkpointed(rows) {
        for &label in stacks.label_numbers_of(row) {
            let slot = &mut number[label as usize];
            if *slot == u32::MAX {
                *slot = shown.len() as u32;
                shown.push(label);
            }
            lists.ids.push(*slot);
        }
        lists.ends.push(lists.ids.len());
    }
    lists.dictionary = Arc::new(shown.iter().map(|&label| Some(stacks.label(label))).collect());
    lists
}

fn write_stacks(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let costs = table.costs();
    let formats: Vec<_> = costs.iter().map(|c| table.format(c)).collect();
    let Some(weights) = costs.first() else { return Ok(()) };
    for row in 0..table.len() {
        let weight = weights.pair(row);
        let status = table.texts("status").and_then(|t| t.get(row)).map_or_else(String::new, |s| format!("  {s}"));
        let sign = if table.summary.base.is_some() { weight.delta().signum() } else { 0 };
        let types = costs.iter().zip(&formats).enumerate().map(|(i, (costs, format))| {
            let s = table.sample_type(i);
            let words = format.words(costs.pair(row), whole(s), "->");
            if table.beside.is_empty() { words } else { format!("{} {words}", s.sample_type) }
        });
        let words: Vec<String> = types.chain(table.ratio_words(row)).collect();
        writeln!(out, "{}{status}", paint(&words.join("   "), sign, options))?;
        for column in ["labels", "frames"] {
            if let Some(Cell::List(lists, row)) = table.column(column).map(|c| c.cell(row)) {
                let indent = if column == "labels" { "  # " } else { "    " };
                lists.get(row).try_for_each(|text| writeln!(out, "{indent}{}", sanitize(text)))?;
            }
        }
    }
    Ok(())
}
