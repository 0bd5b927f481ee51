//! Many pairs in one answer: which changed by more than chance, and the causes that several share.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Of, ShownBy, ViewSpec};
use crate::format::Style;
use crate::format::json::{header, object};
use crate::numbers::total;
use crate::table::schema::{Holds, label, spec};
use crate::table::{Cell, Data, Kind, Measured, Role, Table};
use pprofdiff::fleet::{CommonChange, FleetCause, RankedPair, Ranking, SharedCause};
use pprofdiff::text::sanitize;

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "ranking",
    about: "Rank many pairs by what changed beyond chance, with the causes that several share",
    of: Of::ManyPairs,
    shown_by: ShownBy::Rows,
    kinds: &[&PAIRS, &SHARED, &COMMON],
    ..ViewSpec::BASE
};

/// The rows that people are shown of either table unless they ask for others.
const MAX_ROWS: usize = 20;

/// Pairs, those that changed first.
pub(crate) static PAIRS: Kind = Kind {
    name: "pairs",
    row: "pair",
    has_sides: |two_sided| two_sided,
    several_types: false,
    columns: |shape| {
        let mut all = vec![label("pair"), label("function"), label("cause")];
        all.extend(shape.costs(&[Measured::Weight]));
        all.push(spec("q", Role::Figure, Holds::Ratio));
        all
    },
    row_label: |table, row| match table.text_of("cause", row) {
        "" => table.text_of("pair", row).to_owned(),
        cause => format!("{}: {cause}", table.text_of("pair", row)),
    },
    ..Kind::BASE
};

/// Causes that several pairs have.
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
    // What is said is of one of the pairs.
    row_label: |table, row| {
        let pairs = match table.column("pairs").map(|column| column.cell(row)) {
            Some(Cell::Int(pairs)) => pairs,
            _ => 0,
        };
        format!("{pairs} pairs; in {}: {}", table.text_of("pair", row), table.text_of("cause", row))
    },
    ..Kind::BASE
};

/// Small changes that many pairs share.
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
    /// One pair a row, those that changed by more than chance first. Columns: pair; function and cause (the largest, in words)
    /// of one that changed; `base, new, delta` of its totals; q.
    pub fn ranked_pairs(of: &Ranking) -> Table {
        let first = |f: fn(&FleetCause) -> Option<String>| {
            Data::Text(of.pairs.iter().map(|pair| pair.causes.first().and_then(f)).collect())
        };
        let value = |f: fn(&RankedPair) -> i64| Data::Value(of.pairs.iter().map(f).collect());
        let data = vec![
            Data::Text(of.pairs.iter().map(|pair| Some(pair.pair.as_str())).collect()),
            first(|cause| cause.function.clone()),
            first(|cause| Some(cause.sentence.clone())),
            value(|pair| pair.total_base),
            value(|pair| pair.total_new),
            value(|pair| pair.total_delta),
            Data::Ratio(of.pairs.iter().map(|pair| Some(pair.q)).collect()),
        ];
        Table::new(&PAIRS, &of.summary, data)
    }

    /// One cause a row that several pairs have, the largest change first. Columns: function, callee, caller_package, pair
    /// (that with the largest change) and cause (what it says of it); pairs, how many have it; `base, new, delta` of its
    /// stacks, summed; share, the delta as a part of all bases' totals.
    pub fn shared_causes(of: &Ranking) -> Table {
        let text = |f: fn(&SharedCause) -> Option<&str>| Data::Text(of.shared.iter().map(f).collect());
        let value = |f: fn(&SharedCause) -> f64| Data::Value(of.shared.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            text(|cause| Some(&cause.function)),
            text(|cause| cause.callee.as_deref()),
            text(|cause| cause.caller_package.as_deref()),
            text(|cause| cause.named.first().map(String::as_str)),
            text(|cause| Some(&cause.sentence)),
            Data::Line(of.shared.iter().map(|cause| Some(cause.pairs as i64)).collect()),
            value(|cause| cause.base),
            value(|cause| cause.new),
            value(|cause| cause.delta),
            Data::Ratio(of.shared.iter().map(|cause| Some(cause.share)).collect()),
        ];
        Table::new(&SHARED, &of.summary, data)
    }

    /// One function a row whose own cost changed by little in many pairs, the largest change first. Columns: function; pairs, in
    /// how many it is no cause by itself; `base, new, delta` of its own cost, summed, the base at the new sides' amounts of
    /// work; share, the delta as a part of all bases' totals; q.
    pub fn common_changes(of: &Ranking) -> Table {
        let all = &of.common;
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
        Table::new(&COMMON, &of.summary, data)
    }
}

/// What is said first.
pub(crate) fn head(of: &Ranking) -> String {
    let failed =
        if of.failed.is_empty() { String::new() } else { format!("; {} could not be compared", of.failed.len()) };
    let pairs = if of.pairs.len() == 1 { "pair" } else { "pairs" };
    format!(
        "{} of {} {pairs} changed by more than chance (at most {}% of them falsely){failed}",
        of.changed,
        of.pairs.len(),
        (1000.0 * of.fdr).round() / 10.0,
    )
}

/// The tables with what is said above each; of causes none if pairs share none.
fn tables(of: &Ranking) -> Vec<(String, Table)> {
    let most = of.rows.unwrap_or(MAX_ROWS);
    let (shared, pairs) = (Table::shared_causes(of), Table::ranked_pairs(of));
    let counted = |what: &str, table: &Table| match table.len() <= most {
        true => what.to_owned(),
        false => format!("{what}, {most} of {}", table.len()),
    };
    let all = [
        ("Causes that several pairs share", shared),
        ("Small changes that many pairs share, each within chance by itself", Table::common_changes(of)),
        ("Pairs, by what changed", pairs),
    ];
    let all = all.into_iter().filter(|(_, table)| !table.is_empty());
    all.map(|(what, table)| (counted(what, &table), table.head(most))).collect()
}

pub(crate) fn ranking_text(of: &Ranking, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "{}", head(of))?;
    writeln!(out, "{} of all: {}", sanitize(&of.summary.sample_type), total(&of.summary, "->"))?;
    for (what, table) in tables(of) {
        writeln!(out, "\n{what}:\n")?;
        table.write_rows(out, style.text())?;
    }
    of.failed.iter().try_for_each(|failed| writeln!(out, "failed: {}", sanitize(&failed.error)))
}

pub(crate) fn ranking_markdown(of: &Ranking, out: &mut dyn Write) -> io::Result<()> {
    use crate::format::markdown::escape;
    writeln!(out, "**{}**\n", escape(&head(of)))?;
    for (what, table) in tables(of) {
        writeln!(out, "{what}:\n")?;
        table.write_markdown(out)?;
        writeln!(out)?;
    }
    of.failed.iter().try_for_each(|failed| writeln!(out, "> failed: {}\n", escape(&failed.error)))
}

/// Writes the ranking as one JSON object, with all pairs unless a number of rows is given.
pub(crate) fn ranking_json(of: &Ranking, out: &mut dyn Write) -> io::Result<()> {
    let mut object = object("ranking", header(&of.summary));
    // Of many pairs no files are named.
    object.retain(|name, _| !matches!(name.as_str(), "base" | "new"));
    if let Value::Object(mut own) = json!(of) {
        for name in ["pairs", "shared", "common"] {
            if let (Some(rows), Some(Value::Array(all))) = (of.rows, own.get_mut(name)) {
                all.truncate(rows);
            }
        }
        object.extend(own);
    }
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}
