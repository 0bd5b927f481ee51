//! JSON lines for many pairs, one object per line: the pair's name and keys, its table's header and its rows, or its
//! error.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::json::write_rows;
use crate::format::{BASE, Each, Format, Item, unsupported};
use crate::json::SCHEMA;
use crate::report::Report;
use crate::shows::Form;
use crate::style::Style;
use crate::table::Table;
use pprofdiff::Error;
use pprofdiff_series::fleet::Ranking;

pub(crate) const FORMAT: Format = Format {
    name: "jsonl",
    extensions: &["jsonl", "ndjson"],
    about: "one object per line, for many pairs",
    form: Form::Lines,
    write: |report, out, _| match report {
        Report::Ranking(ranking) => write_ranking(ranking, out),
        _ => Err(unsupported()),
    },
    each: Some(Each { limit: Some(100), header: None, write }),
    ..BASE
};

/// Writes a line for each pair of a ranking, in the order of the ranking, and for each failed pair. The header of a ranking
/// has the sums of all pairs, so the lines contain only its fields that each pair shares.
fn write_ranking(ranking: &Ranking, out: &mut dyn Write) -> io::Result<()> {
    let is_shared = |field: &str| ["sample_type", "unit"].contains(&field);
    let table = Table::ranked_pairs(ranking).head(ranking.rows.unwrap_or(usize::MAX));
    for (row, pair) in ranking.pairs.iter().take(table.len()).enumerate() {
        let mut rows = table.take(&[row]);
        rows.rows_total = 1;
        let keys: Vec<(String, String)> = pair.keys.clone().into_iter().collect();
        write_line(&Item { name: &pair.pair, keys: &keys, result: Ok(&rows), columns: 0 }, is_shared, out)?;
    }
    for failed in &ranking.failed {
        let error = Error::query(failed.error.as_str());
        write_line(&Item { name: &failed.pair, keys: &[], result: Err(&error), columns: 0 }, is_shared, out)?;
    }
    Ok(())
}

fn write(item: &Item<'_>, out: &mut dyn Write, _: Style) -> io::Result<()> {
    write_line(item, |_| true, out)
}

/// Writes a pair with the chosen fields of its header.
fn write_line(item: &Item<'_>, has_field: impl Fn(&str) -> bool, out: &mut dyn Write) -> io::Result<()> {
    let pair = json!(item.name);
    write!(out, "{{\"pair\": {pair}")?;
    if !item.keys.is_empty() {
        let keys: Map<String, Value> = item.keys.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        write!(out, ", \"keys\": {}", Value::Object(keys))?;
    }
    let table = match item.result {
        Ok(table) => table,
        Err(error) => {
            let error = json!(error.to_string());
            return writeln!(out, ", \"schema\": \"{SCHEMA}\", \"kind\": \"failed\", \"error\": {error}}}");
        }
    };
    write!(out, ", \"schema\": \"{SCHEMA}\", \"kind\": \"{}\"", table.kind.name)?;
    for (key, value) in table.header().into_iter().filter(|(key, _)| has_field(key)) {
        write!(out, ", \"{key}\": {value}")?;
    }
    write!(out, ", \"rows_total\": {}, \"rows\": [", table.rows_total)?;
    write_rows(table, ", ", "", out)?;
    writeln!(out, "]}}")
}
