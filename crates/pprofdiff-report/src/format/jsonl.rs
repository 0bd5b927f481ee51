//! JSON lines for many pairs, one object per line: the pair's name and keys, its table's header and its rows, or its
//! error.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::json::write_rows;
use crate::format::{BASE, Each, Format, Item};
use crate::json::SCHEMA;
use crate::shows::Form;
use crate::style::Style;

pub(crate) const FORMAT: Format = Format {
    name: "jsonl",
    extensions: &["jsonl", "ndjson"],
    about: "one object per line, for many pairs",
    form: Form::Lines,
    each: Some(Each { limit: Some(100), write }),
    ..BASE
};

fn write(item: &Item<'_>, out: &mut dyn Write, _: Style) -> io::Result<()> {
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
    for (key, value) in table.header() {
        write!(out, ", \"{key}\": {value}")?;
    }
    write!(out, ", \"rows_total\": {}, \"rows\": [", table.rows_total)?;
    write_rows(table, ", ", "", out)?;
    writeln!(out, "]}}")
}
