//! A ranking of many pairs as tables, text, Markdown and JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::json::{header, object};
use crate::markdown::escape;
use crate::numbers::total;
use crate::style::Style;
use crate::table::schema::{Holds, label, spec};
use crate::table::{Cell, Cost, Data, Kind, Measured, Role, Table};
use crate::text::TextOptions;
use pprofdiff::text::sanitize;
use pprofdiff_series::fleet::{CommonChange, FleetCause, RankedPair, Ranking, SharedCause};

/// The default maximum number of rows of each table in text.
pub(crate) const MAX_ROWS: usize = 20;

/// The kind of tables with one pair per row. Changed pairs come first.
pub(crate) static PAIRS: Kind = Kind {
    name: "pairs",
    row: "pair",
    has_sides: |two_sided| two_sided,
    several_types: false,
    columns: |shape| {
        let mut all = vec![label("pair"), label("function"), label("cause")];
        all.extend(shape.costs(&[Measured::Weight]));
        let cost = Cost { measured: Measured::Weight, sample_type: 0 };
        all.push(spec("causes_delta", Role::DeltaPart(cost), Holds::Value));
        all.push(spec("q", Role::Figure, Holds::Ratio));
        all
    },
    row_label: |table, row| match table.text_of("cause", row) {
        "" => table.text_of("pair", row).to_owned(),
        cause => format!("{}: {cause}", table.text_of("pair", row)),
    },
    ..Kind::BASE
};

/// The kind of tables with one shared cause per row.
pub(crate) static SHARED: Kind = Kind {
    name: "shared_causes",
    row: "cause",
    has_sides: |two_sided| two_sided,
    several_types: false,
    columns: |shape| {
        let mut all = vec![label("function"), label("callee"), label("caller_package"), label("pair"), label("cause")];
        all.push(spec("pairs", Role::Key, Holds::Line));
        all.extend(shape.costs(&[Measured::Weight]));
        all.push(spec("share", Role::Figure, Holds::Ratio));
        all
    },
    // The sentence describes the cause in one of the pairs, so the label names this pair.
    row_label: |table, row| {
        let pairs = match table.column("pairs").map(|column| column.cell(row)) {
            Some(Cell::Int(pairs)) => pairs,
            _ => 0,
        };
        format!("{pairs} pairs; in {}: {}", table.text_of("pair", row), table.text_of("cause", row))
    },
    ..Kind::BASE
};

/// The kind of tables with one function per row. Each function changed slightly in many pairs.
pub(crate) static COMMON: Kind = Kind {
    name: "common_changes",
    row: "function",
    has_sides: |two_sided| two_sided,
    several_types: false,
    columns: |shape| {
        let mut all = vec![label("function"), spec("pairs", Role::Key, Holds::Line)];
        all.extend(shape.costs(&[Measured::Weight]));
        all.extend(["share", "q"].map(|name| spec(name, Role::Figure, Holds::Ratio)));
        all
    },
    row_label: |table, row| match table.column("pairs").map(|column| column.cell(row)) {
        Some(Cell::Int(pairs)) => format!("{} in {pairs} pairs", table.text_of("function", row)),
        _ => table.text_of("function", row).to_owned(),
    },
    ..Kind::BASE
};

impl Table {
    /// Builds a table with one pair per row; significantly changed pairs come first. Columns: pair; function and cause
    /// (the function and the sentence of the pair's first cause, missing without causes); `base, new, delta` of the
    /// total; causes_delta (the sum of the changes of its causes, which is the order of changed pairs); q (the false
    /// discovery rate of the causes; 1 without causes).
    pub fn ranked_pairs(ranking: &Ranking) -> Table {
        let first = |f: fn(&FleetCause) -> Option<String>| {
            Data::Text(ranking.pairs.iter().map(|pair| pair.causes.first().and_then(f)).collect())
        };
        let value = |f: fn(&RankedPair) -> i64| Data::Value(ranking.pairs.iter().map(f).collect());
        let data = vec![
            Data::Text(ranking.pairs.iter().map(|pair| Some(pair.pair.as_str())).collect()),
            first(|cause| cause.function.clone()),
            first(|cause| Some(cause.sentence.clone())),
            value(|pair| pair.total_base),
            value(|pair| pair.total_new),
            value(|pair| pair.total_delta),
            value(|pair| pair.causes_delta.round() as i64),
            Data::Ratio(ranking.pairs.iter().map(|pair| Some(pair.q)).collect()),
        ];
        Table::new(&PAIRS, &ranking.summary, data)
    }

    /// Builds a table with one shared cause per row, largest change first. Columns: function, callee, caller_package,
    /// pair (the pair with the largest change), cause (the sentence for that pair); pairs (the number of pairs with the
    /// cause); `base, new, delta` of its stacks, summed over pairs; share, the delta as a share of the sum of all base
    /// totals.
    pub fn shared_causes(ranking: &Ranking) -> Table {
        let text = |f: fn(&SharedCause) -> Option<&str>| Data::Text(ranking.shared.iter().map(f).collect());
        let value =
            |f: fn(&SharedCause) -> f64| Data::Value(ranking.shared.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            text(|cause| Some(&cause.function)),
            text(|cause| cause.callee.as_deref()),
            text(|cause| cause.caller_package.as_deref()),
            text(|cause| cause.named.first().map(String::as_str)),
            text(|cause| Some(&cause.sentence)),
            Data::Line(ranking.shared.iter().map(|cause| Some(cause.pairs as i64)).collect()),
            value(|cause| cause.base),
            value(|cause| cause.new),
            value(|cause| cause.delta),
            Data::Ratio(ranking.shared.iter().map(|cause| Some(cause.share)).collect()),
        ];
        Table::new(&SHARED, &ranking.summary, data)
    }

    /// Builds a table with one function per row whose own cost changed slightly in many pairs, largest change first.
    /// Columns: function; pairs, the number of pairs in which the function is not a cause by itself; `base, new, delta`
    /// of the function's own cost, summed over these pairs, with the base at the new sides' amounts of work; share, the
    /// delta as a share of the sum of all base totals; q (the false discovery rate).
    pub fn common_changes(ranking: &Ranking) -> Table {
        let all = &ranking.common;
        let value = |f: fn(&CommonChange) -> f64| Data::Value(all.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            Data::Text(all.iter().map(|change| Some(change.function.as_str())).collect()),
            Data::Line(all.iter().map(|change| Some(change.pairs as i64)).collect()),
            value(|change| change.base),
            value(|change| change.new),
            value(|change| change.new.round() - change.base.round()),
            Data::Ratio(all.iter().map(|change| Some(change.share)).collect()),
            Data::Ratio(all.iter().map(|change| Some(change.q)).collect()),
        ];
        Table::new(&COMMON, &ranking.summary, data)
    }
}

/// Returns the first line of a ranking: the numbers of changed, compared and failed pairs.
pub fn head(ranking: &Ranking) -> String {
    let failed = if ranking.failed.is_empty() {
        String::new()
    } else {
        format!("; {} could not be compared", ranking.failed.len())
    };
    let pairs = if ranking.pairs.len() == 1 { "pair" } else { "pairs" };
    format!(
        "{} of {} {pairs} changed by more than chance (at most {}% of them falsely){failed}",
        ranking.changed,
        ranking.pairs.len(),
        (1000.0 * ranking.fdr).round() / 10.0,
    )
}

/// The heading of the pairs. Their q is not the p-value of the total: without a cause, a total that changed for certain means
/// more work, or all code became slower.
const PAIRS_HEADING: &str = "Pairs, ranked by the sum of their causes (causes delta); pairs without causes, by delta. q tests \
                             the causes: it is 1 without causes, even if the total changed";

/// Returns the non-empty tables with their headings, each cut to `max_rows`.
pub(crate) fn tables(ranking: &Ranking, max_rows: usize) -> Vec<(String, Table)> {
    let (shared, pairs) = (Table::shared_causes(ranking), Table::ranked_pairs(ranking));
    let counted = |heading: &str, table: &Table| match table.len() <= max_rows {
        true => heading.to_owned(),
        false => format!("{heading}, {max_rows} of {}", table.len()),
    };
    let all = [
        ("Causes that several pairs share", shared),
        ("Small changes that many pairs share, each within chance by itself", Table::common_changes(ranking)),
        (PAIRS_HEADING, pairs),
    ];
    let all = all.into_iter().filter(|(_, table)| !table.is_empty());
    all.map(|(heading, table)| (counted(heading, &table), table.head(max_rows))).collect()
}

pub(crate) fn ranking_text(ranking: &Ranking, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "{}", head(ranking))?;
    writeln!(out, "{} of all: {}", sanitize(&ranking.summary.sample_type), total(&ranking.summary, "->"))?;
    ranking.summary.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {}", sanitize(warning)))?;
    for (heading, table) in tables(ranking, ranking.rows.unwrap_or(MAX_ROWS)) {
        writeln!(out, "\n{heading}:\n")?;
        // The last column is a sentence, which must not lose its middle.
        table.write_rows(out, TextOptions { width: None, ..style.text() })?;
    }
    ranking.failed.iter().try_for_each(|failed| writeln!(out, "failed: {}", sanitize(&failed.error)))
}

pub(crate) fn ranking_markdown(ranking: &Ranking, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escape(&head(ranking)))?;
    ranking.summary.warnings.iter().try_for_each(|warning| writeln!(out, "> {}\n", escape(warning)))?;
    for (heading, table) in tables(ranking, ranking.rows.unwrap_or(MAX_ROWS)) {
        writeln!(out, "{heading}:\n")?;
        table.write_markdown(out)?;
        writeln!(out)?;
    }
    ranking.failed.iter().try_for_each(|failed| writeln!(out, "> failed: {}\n", escape(&failed.error)))
}

/// Writes the ranking as one JSON object. Includes all pairs, shared causes and common changes unless the number of
/// rows is limited.
pub(crate) fn ranking_json(ranking: &Ranking, out: &mut dyn Write) -> io::Result<()> {
    let mut object = object("ranking", header(&ranking.summary));
    // A ranking does not list the files of its pairs.
    object.retain(|name, _| !matches!(name.as_str(), "base" | "new"));
    if let Value::Object(mut fields) = json!(ranking) {
        for name in ["pairs", "shared", "common"] {
            if let (Some(rows), Some(Value::Array(all))) = (ranking.rows, fields.get_mut(name)) {
                all.truncate(rows);
            }
        }
        object.extend(fields);
    }
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}
