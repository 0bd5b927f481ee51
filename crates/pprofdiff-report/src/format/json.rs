//! JSON, schema `pprofdiff/1`: a header, then one object per row whose keys are the table's columns.
//!
//! Output is streamed, one row per line, so that large tables need no second copy in memory and line-based diffs work.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::text::MAX_SAMPLING;
#[cfg(feature = "check")]
use crate::check::check_json;
use crate::explain::explain_json;
use crate::format::{BASE, Format, unsupported};
use crate::histories::histories_json;
use crate::json::{JsonFields, SCHEMA, header, sample_type};
use crate::listing::listing_json;
use crate::numbers::write_integer;
use crate::ranking::ranking_json;
use crate::report::Report;
use crate::series::builds_header;
use crate::shows::Form;
use crate::table::{Cell, Table};
use pprofdiff::Diff;
use pprofdiff::Profile;
use pprofdiff::sampling::Sampling;

pub(crate) const FORMAT: Format = Format {
    name: "json",
    extensions: &["json"],
    about: "one object, schema pprofdiff/1",
    form: Form::Json,
    write: |report, out, _| match report {
        Report::Listing(listing) => listing_json(listing, out),
        Report::Info(diff) => out.write_all(info_json(diff).as_bytes()),
        Report::Explain(explanation) => explain_json(explanation, out),
        Report::Ranking(ranking) => ranking_json(ranking, out),
        Report::Histories(histories) => histories_json(histories, out),
        #[cfg(feature = "check")]
        Report::Check(check) => check_json(check, out),
        _ => report.table().ok_or_else(unsupported)?.write_json(out),
    },
    ..BASE
};

impl Table {
    /// Returns the fields of the table's header, in order.
    pub(crate) fn header(&self) -> JsonFields {
        let mut fields = header(&self.summary);
        if !self.beside.is_empty() {
            let types = self.sample_types().iter().map(|s| sample_type(s)).collect();
            fields.push(("sample_types", Value::Array(types)));
        }
        if let Some(builds) = &self.builds {
            fields.retain(|(name, _)| !matches!(*name, "profile" | "total" | "normalize"));
            fields.push(("normalize", json!({"mode": self.summary.query.normalize.mode()})));
            fields.splice(0..0, builds_header(builds));
        }
        if !self.explained.is_empty() {
            let explained = self.shown_explanations().map(|explained| {
                json!({"compared": explained.compared, "verdict": explained.verdict, "lines": explained.lines})
            });
            fields.push(("explained", explained.collect()));
        }
        fields
    }

    /// Returns the header as one JSON object.
    pub fn summary_json(&self) -> String {
        Value::Object(self.header().into_iter().map(|(k, v)| (k.to_owned(), v)).collect()).to_string()
    }

    /// Writes the table as JSON.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"schema\": \"{SCHEMA}\", \"kind\": \"{}\"", self.kind.name)?;
        for (name, value) in self.header() {
            write!(out, ",\n \"{name}\": {value}")?;
        }
        write!(out, ",\n \"rows_total\": {},\n \"rows\": [", self.rows_total)?;
        write_rows(self, ",\n  ", "\n  ", out)?;
        out.write_all(if self.is_empty() { b"]}\n" } else { b"\n ]}\n" })
    }
}

/// Writes each row as an object. `before` precedes the first row, and `between` precedes every further row.
pub(crate) fn write_rows(table: &Table, between: &str, before: &str, out: &mut dyn Write) -> io::Result<()> {
    // The text before each value is the same in all rows, so build it once. With several sample types, the names of
    // columns contain the sample type and may need escaping.
    let key = |(i, name): (usize, &str)| format!("{}{}: ", if i == 0 { "{" } else { ", " }, json!(name));
    let keys: Vec<String> = table.columns.iter().map(|column| &*column.name).enumerate().map(key).collect();
    for row in 0..table.len() {
        out.write_all(if row == 0 { before } else { between }.as_bytes())?;
        for (key, column) in keys.iter().zip(&table.columns) {
            out.write_all(key.as_bytes())?;
            cell(out, &column.cell(row))?;
        }
        out.write_all(if keys.is_empty() { b"{}" } else { b"}" })?;
    }
    Ok(())
}

fn cell(out: &mut dyn Write, cell: &Cell<'_>) -> io::Result<()> {
    match cell {
        Cell::Missing => out.write_all(b"null"),
        Cell::Text(text) => Ok(serde_json::to_writer(out, text)?),
        Cell::Int(v) => write_integer(out, *v),
        Cell::Ratio(v) => write!(out, "{v}"),
        Cell::List(lists, row) => {
            out.write_all(b"[")?;
            for (i, text) in lists.get(*row).enumerate() {
                if i > 0 {
                    out.write_all(b", ")?;
                }
                serde_json::to_writer(&mut *out, text)?;
            }
            out.write_all(b"]")
        }
    }
}

/// Returns the metadata of the profiles of a diff, or of a single profile, as JSON.
pub fn info_json(diff: &Diff) -> String {
    let profile = |side: &str, p: &Profile| {
        let default = p.default_sample_type();
        let sampling = |i: usize| (i < MAX_SAMPLING).then(|| Sampling::of_profile(p, i));
        let types = p.sample_types().into_iter().enumerate().map(|(i, (kind, unit))| {
            let default = default == Some(i);
            json!({"type": kind, "unit": unit, "total": p.total(i), "default": default, "sampling": sampling(i)})
        });
        let mut value = json!({
            "side": side,
            "path": p.name(),
            "sample_types": types.collect::<Vec<_>>(),
            "stacks": p.n_samples(),
            "locations": p.n_locations(),
            "functions": p.n_functions(),
            "duration_nanos": p.duration_nanos(),
            "time_nanos": p.time_nanos(),
            "period": p.period(),
            "period_type": p.period_type().map(|(kind, unit)| json!({"type": kind, "unit": unit})),
            "mappings": p.mapping_files(),
            "comments": p.comments(),
            "doc_url": p.doc_url(),
            "warnings": p.warnings(),
        });
        if let Some(window) = p.window() {
            value["time"] = json!(window.as_str());
        }
        value
    };
    let profiles: Vec<Value> = diff.profiles().map(|(side, p)| profile(side, p)).collect();
    format!("{}\n", json!({"schema": SCHEMA, "kind": "info", "profiles": profiles}))
}
