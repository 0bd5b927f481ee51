//! A table as an HTML fragment for notebooks. It works without JavaScript, in light and in dark mode.

use std::fmt::Write;

use crate::html::{escape, escape_ours, style, summary};
use crate::names::shorten;
use crate::series::html_header;
use crate::table::{Cell, Column, Data, Role, Table};

/// Returns the class attribute of a column: `t` for names, `w` for words, none for numbers.
fn class(column: &Column) -> &'static str {
    match (&column.data, column.role) {
        (Data::Text(_), Role::Key | Role::Status) | (Data::Address(_), _) => " class=\"w\"",
        (Data::Text(_) | Data::Lists(_), _) => " class=\"t\"",
        (Data::Value(_) | Data::Line(_) | Data::Ratio(_), _) => "",
    }
}

/// The maximum number of a stack's frames in a cell, and of a text's bytes. A longer text is shortened to as many
/// characters.
const MAX_IN_CELL: usize = 1000;

fn cell(text: &str) -> String {
    if text.len() <= MAX_IN_CELL { escape(text) } else { escape(&shorten(text, MAX_IN_CELL)) }
}

impl Table {
    /// Returns the first `max_rows` rows as an HTML fragment below a summary. For tables with nodes or groups,
    /// `max_rows` limits the nodes, or the rows per group, as in [`Table::head`]. All text from the input is escaped.
    pub fn to_html(&self, max_rows: usize) -> String {
        let cut = (self.len() > max_rows).then(|| self.head(max_rows));
        let shown = cut.as_ref().unwrap_or(self);
        let s = &self.summary;
        let header =
            self.builds.as_ref().map_or_else(|| summary(&self.sample_types()), |builds| html_header(s, builds));
        let columns = shown.shown_columns();
        let mut html = format!("{}<div class=\"pprofdiff\">{header}<table><thead><tr>", style());
        for c in &columns {
            let _ = write!(html, "<th{}>{}</th>", class(c.column), escape(&c.head));
        }
        html.push_str("</tr></thead><tbody>");
        for row in 0..shown.len() {
            html.push_str("<tr>");
            for column in &columns {
                if let Some((number, sign)) = shown.number(column, row) {
                    let class = ["less", "", "more"][(sign + 1) as usize];
                    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
                    let _ = write!(html, "<td{class}>{}</td>", escape_ours(&number));
                    continue;
                }
                let c = column.column;
                let _ = match (&c.data, c.cell(row)) {
                    (Data::Address(_), Cell::Int(v)) => write!(html, "<td class=\"w\">{v:#x}</td>"),
                    (_, Cell::Int(v)) => write!(html, "<td>{v}</td>"),
                    (_, Cell::Ratio(v)) => write!(html, "<td>{v}</td>"),
                    (_, Cell::Text(text)) => write!(html, "<td{}>{}</td>", class(c), cell(text)),
                    (_, Cell::List(lists, row)) => {
                        let n = lists.get(row).count();
                        let mut frames: Vec<String> = lists.get(row).take(MAX_IN_CELL).map(cell).collect();
                        frames.extend((n > MAX_IN_CELL).then(|| format!("… ({n})")));
                        write!(html, "<td class=\"t\">{}</td>", frames.join(" › "))
                    }
                    (_, Cell::Missing) => write!(html, "<td></td>"),
                };
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table>");
        if shown.len() < self.rows_total {
            let _ = write!(html, "<div class=\"note\">{} of {} rows</div>", shown.len(), self.rows_total);
        }
        html.push_str("</div>");
        html
    }
}
