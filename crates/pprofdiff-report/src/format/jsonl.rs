//! JSON lines for many pairs, one object per line: the pair's name, its table's header and its rows, or its error.

use std::io::{self, Write};

use serde_json::json;

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
    let table = match item.result {
        Ok(table) => table,
        Err(error) => {
            return writeln!(
                out,
                "{}",
                json!({"pair": item.name, "schema": SCHEMA, "kind": "failed", "error": error.to_string()})
            );
        }
    };
    let (pair, kind) = (json!(item.name), table.kind.name);
    write!(out, "{{\"pair\": {pair}, \"schema\": \"{SCHEMA}\", \"kind\": \"{kind}\"")?;
    for (key, value) in table.header() {
        write!(out, ", \"{key}\": {value}")?;
    }
    write!(out, ", \"rows_total\": {}, \"rows\": [", table.rows_total)?;
    write_rows(table, ", ", "", out)?;
    writeln!(out, "]}}")
}
