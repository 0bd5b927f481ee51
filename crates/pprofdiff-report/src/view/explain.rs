//! Explain why two sides differ: the few causes, what only moved, and what is noise.

use super::{Of, Question, ShownBy, View, ViewSpec};
use crate::report::Report;
use crate::table::schema::{Holds, key, label, spec};
use crate::table::{Data, Kind, Measured, Role, Table};
use pprofdiff::Result;
use pprofdiff::explain::{Cause, ExplainOptions, Explanation};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "explain",
    about: "Explain why two sides differ: the few causes, what only moved, and what is noise",
    of: Of::SeveralTypes,
    shown_by: ShownBy::Rows,
    kinds: &[&CAUSES],
    view: Some(|_| View::Explain(ExplainOptions::default())),
    of_pairs: true,
    ..ViewSpec::BASE
};

/// Causes of a difference.
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
            of => format!("{word} {of}"),
        });
        words.into_iter().chain(ends).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    },
    chart_label: |table, row, name| {
        let of = ["caller", "function", "callee"].map(|name| table.text_of(name, row));
        let of = of.into_iter().filter(|of| !of.is_empty()).map(name).collect::<Vec<_>>();
        if of.is_empty() { table.text_of("label", row).to_owned() } else { of.join(" → ") }
    },
    ..Kind::BASE
};

pub(crate) fn answer(asked: &Question<'_>, options: &ExplainOptions) -> Result<Report> {
    let query = asked.query;
    Ok(Report::Explain(Box::new(asked.diff.explain(query, &query.extra_sample_types, options)?)))
}

impl Table {
    /// One cause a row, the largest change first. Columns: function, caller, callee, label (`key=value`), kind; `base, new`
    /// (of a run), `delta` (what a run of the new side has more than the base at its amount of work), factor (none if there was nothing before), score.
    pub fn causes(of: &Explanation) -> Table {
        let text = |f: &dyn Fn(&Cause) -> Option<String>| Data::Text(of.causes.iter().map(f).collect());
        let value = |f: &dyn Fn(&Cause) -> f64| Data::Value(of.causes.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            text(&|c| c.function.clone()),
            text(&|c| c.caller.clone()),
            text(&|c| c.callee.clone()),
            text(&|c| c.label.as_ref().map(|l| format!("{}={}", l.key, l.value))),
            text(&|c| Some(c.kind.name().to_owned())),
            value(&|c| c.evidence.base.value),
            value(&|c| c.evidence.new.value),
            value(&|c| c.delta),
            Data::Ratio(of.causes.iter().map(|c| c.factor).collect()),
            Data::Ratio(of.causes.iter().map(|c| Some(c.score)).collect()),
        ];
        Table::new(&CAUSES, &of.summary, data)
    }
}
