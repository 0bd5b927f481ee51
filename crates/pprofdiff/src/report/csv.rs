//! CSV (RFC 4180): a line of column names, then one line a row. Lists are joined with `;`, root first.

use std::io::{self, Write};

use super::table::{Cell, Table};

impl Table {
    /// Writes the table as CSV. Numbers are whole and in the profile's unit; what is missing is empty.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        rows(self, None, true, out)
    }
}

/// Writes the rows, each after a field of its own (its column's name and its value), with or without the line of names.
pub(super) fn rows(table: &Table, own: Option<(&str, &str)>, names: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    if names {
        let own = own.map(|(name, _)| name.as_bytes());
        writer.write_record(own.into_iter().chain(table.columns.iter().map(|c| c.name.as_bytes())))?;
    }
    let mut joined = String::new();
    for row in 0..table.len() {
        own.map_or(Ok(()), |(_, value)| writer.write_field(value))?;
        for column in &table.columns {
            match column.cell(row) {
                Cell::Missing => writer.write_field("")?,
                Cell::Text(text) => writer.write_field(text)?,
                Cell::Int(v) => writer.write_field(v.to_string())?,
                Cell::List(lists, row) => {
                    joined.clear();
                    for (i, text) in lists.get(row).enumerate() {
                        joined.push_str(if i > 0 { ";" } else { "" });
                        joined.push_str(text);
                    }
                    writer.write_field(&joined)?;
                }
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}
