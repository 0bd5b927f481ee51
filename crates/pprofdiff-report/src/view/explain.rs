//! The view `explain`: the causes of the difference between two sides, moved cost, and noise.

use super::{Form, View, ViewContext, ViewInput, ViewSpec};
use crate::report::Report;
use crate::table::schema::{Holds, key, label, spec};
use crate::table::{Data, Kind, Measured, Role, Table};
use pprofdiff::Result;
use pprofdiff_explain::{Cause, ExplainOptions, Explanation};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "explain",
    about: "Explain why two sides differ: the main causes, moved cost, and noise",
    input: ViewInput::SeveralTypes,
    forms: Form::OF_ROWS,
    kinds: &[&CAUSES],
    view: Some(|_| View::Explain(ExplainOptions::default())),
    of_pairs: true,
    refuses: &["granularity", "normalize"],
    ..ViewSpec::BASE
};

/// The kind of tables with one cause per row.
pub(crate) static CAUSES: Kind = Kind {
    name: "causes",
    row: "cause",
    has_sides: |two_sided| two_sided,
    several_types: false,
    columns: |shape| {
        let mut all = vec![label("function"), label("caller"), label("callee"), label("label"), key("kind")];
        all.extend(shape.costs(&[Measured::Weight]));
        all.extend(["factor", "score"].map(|name| spec(name, Role::Figure, Holds::Ratio)));
        all
    },
    row_label: |table, row| {
        let words = ["kind", "label", "function"].map(|name| table.text_of(name, row).to_owned());
        let ends = [("from", "caller"), ("to", "callee")].map(|(word, name)| match table.text_of(name, row) {
            "" => String::new(),
            name => format!("{word} {name}"),
        });
        words.into_iter().chain(ends).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    },
    chart_label: |table, row, name| {
        let names = ["caller", "function", "callee"].map(|name| table.text_of(name, row));
        let names = names.into_iter().filter(|name| !name.is_empty()).map(name).collect::<Vec<_>>();
        if names.is_empty() { table.text_of("label", row).to_owned() } else { names.join(" → ") }
    },
    ..Kind::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, options: &ExplainOptions) -> Result<Report> {
    let query = context.query;
    Ok(Report::Explain(Box::new(pprofdiff_explain::explain(context.diff, query, &query.extra_sample_types, options)?)))
}

impl Table {
    /// Builds a table with one cause per row, in the order of the explanation. Columns: function, caller, callee, label
    /// (`key=value`), kind; `base` and `new` (per run), `delta` (per run, `new` minus the base at the new side's amount
    /// of work, so it may differ from `new - base`), factor (missing if the base is zero), score.
    pub fn causes(explanation: &Explanation) -> Table {
        let text = |f: &dyn Fn(&Cause) -> Option<String>| Data::Text(explanation.causes.iter().map(f).collect());
        let value =
            |f: &dyn Fn(&Cause) -> f64| Data::Value(explanation.causes.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            text(&|c| c.function.clone()),
            text(&|c| c.caller.clone()),
            text(&|c| c.callee.clone()),
            text(&|c| c.label.as_ref().map(|l| format!("{}={}", l.key, l.value))),
            text(&|c| Some(c.kind.name().to_owned())),
            value(&|c| c.evidence.base.value),
            value(&|c| c.evidence.new.value),
            value(&|c| c.delta),
            Data::Ratio(explanation.causes.iter().map(|c| c.factor).collect()),
            Data::Ratio(explanation.causes.iter().map(|c| Some(c.score)).collect()),
        ];
        Table::new(&CAUSES, &explanation.summary, data)
    }
}
