//! The columns of a table as Markdown and HTML show them: those of the data, and beside the delta that leads what a row
//! grew by itself and its delta's share of the total.

use super::markdown::is_left_out;
use super::numbers::{Cost, growth, share, share_text, signed, whole};
use super::table::{Column, Data, Table};
use super::text::{GROWTH, OF_TOTAL};

/// One column of what is shown.
pub(crate) struct ShownColumn<'a> {
    /// Its heading.
    pub head: String,
    /// The data that it is, or is made of.
    pub column: &'a Column,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// As it is.
    Data,
    Side(Cost),
    Delta(Cost),
    Growth([&'static str; 4]),
    Share,
}

impl ShownColumn<'_> {
    /// True if it is numbers with a unit or in percent.
    pub(crate) fn is_number(&self) -> bool {
        !matches!(self.what, What::Data)
    }
}

impl Table {
    /// The columns to show. Growth and share stand beside one delta, that of the cost which the rows are ordered by.
    pub(crate) fn shown_columns(&self) -> Vec<ShownColumn<'_>> {
        let [lead, _] = self.costs_led();
        let costs: Vec<([&str; 4], Cost)> = self.costs().iter().map(|&names| (names, self.cost(names))).collect();
        let mut shown = Vec::new();
        for column in self.columns.iter().filter(|c| !is_left_out(c)) {
            let cost = costs.iter().find(|(names, _)| names.contains(&&*column.name));
            let head = column.name.replace('_', " ");
            let what = match cost {
                Some(&(names, cost)) if matches!(column.data, Data::Value(_)) => {
                    if column.name == names[3] {
                        What::Delta(cost)
                    } else {
                        What::Side(cost)
                    }
                }
                _ => What::Data,
            };
            shown.push(ShownColumn { head, column, what });
            if matches!(what, What::Delta(_)) && column.name == lead[3] {
                shown.push(ShownColumn { head: GROWTH.to_owned(), column, what: What::Growth(lead) });
                shown.push(ShownColumn { head: OF_TOTAL.to_owned(), column, what: What::Share });
            }
        }
        shown
    }

    /// The number of a row, and the sign of what it says; `None` for columns that are no such numbers.
    pub(crate) fn number(&self, shown: &ShownColumn<'_>, row: usize) -> Option<(String, i64)> {
        let Data::Value(values) = &shown.column.data else { return None };
        let v = values[row];
        Some(match shown.what {
            What::Data => (v.to_string(), 0),
            What::Side(cost) => (cost.sides.format(v), 0),
            What::Delta(cost) => (signed(v, cost.delta), v.signum()),
            What::Growth(names) => (growth(self.of_row(names, row)), v.signum()),
            What::Share => (share_text(share(v, self.total_of(row)), true), v.signum()),
        })
    }

    /// What the shares of a row are of: the base's total, or that of the build which a step began from.
    pub(crate) fn total_of(&self, row: usize) -> i64 {
        match self.builds {
            None => whole(&self.summary),
            Some(_) => self.values("total_from").get(row).copied().unwrap_or(0),
        }
    }
}
