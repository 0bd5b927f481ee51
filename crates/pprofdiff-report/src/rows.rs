//! The rows of a table as text for people: the label of a row, the formats of its costs, and several sample types side
//! by side.

use std::io::{self, Write};

use crate::numbers::CostFormat;
use crate::shown::ShownColumn;
use crate::table::{Cell, Cost, CostColumns, Data, Role, RunStatistic, Table};
use crate::text::{Cells, TextCell, TextOptions, grid};
use pprofdiff::Sort;

impl Table {
    /// Writes the rows alone.
    pub(crate) fn write_rows(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        (self.kind.text)(self, out, options)
    }

    /// Returns the costs of the first sample type, starting with the leading cost, which is the cost that the rows are
    /// ordered by. Only the leading cost is shown with growth and share, because a terminal is too narrow for both.
    pub(crate) fn lead_costs(&self) -> Vec<CostColumns<'_>> {
        let mut costs: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == 0).collect();
        if self.sort == Sort::Cum {
            costs.reverse();
        }
        costs
    }

    /// Returns the format of a cost of the rows. All costs of one sample type have the same format, so flat and cum
    /// share one unit.
    pub(crate) fn format(&self, costs: &CostColumns<'_>) -> CostFormat {
        let summary = self.sample_type(costs.cost.sample_type);
        let all: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == costs.cost.sample_type).collect();
        let pairs = all.iter().flat_map(|costs| (0..self.len()).map(|row| costs.pair(row)));
        CostFormat::for_values(summary, costs.delta.is_some(), pairs)
    }

    /// Formats a row of a table of frames in one line, like pprof: `address name file:line`, without the parts that the
    /// row lacks.
    pub fn label(&self, row: usize) -> String {
        let number = |name: &str| match self.column(name).map(|c| c.cell(row)) {
            Some(Cell::Int(v)) => Some(v),
            _ => None,
        };
        let (name, file) = (self.text_of("name", row), self.text_of("file", row));
        let mut label = number("address").map(|a| format!("{a:016x} ")).unwrap_or_default();
        label.push_str(name);
        if !file.is_empty() && file != name {
            label.push_str(&format!(" {file}"));
        }
        if let Some(line) = number("line") {
            label.push_str(&format!(":{line}"));
        }
        label
    }

    pub(crate) fn cells(&self, costs: &CostColumns<'_>, full: bool) -> Cells<'_> {
        Cells { cost: self.format(costs), summary: &self.summary, full }
    }

    /// Returns the run statistics to show: the p-value, and the standard deviation of each side whose column has
    /// values. Empty for tables without statistics.
    pub(crate) fn chance_columns(&self) -> Vec<RunStatistic> {
        let all = [RunStatistic::BaseSd, RunStatistic::NewSd, RunStatistic::P].into_iter();
        all.filter(|&statistic| {
            let column = self.in_role(Role::Chance(statistic)).map(|c| &c.data);
            matches!(column, Some(Data::Ratio(v)) if statistic == RunStatistic::P || v.iter().any(Option::is_some))
        })
        .collect()
    }

    /// Writes several sample types side by side: for each, the cost that the rows are ordered by, then the ratio.
    pub(crate) fn write_beside(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        let columns: Vec<_> = self.shown_columns().into_iter().filter(ShownColumn::is_number).collect();
        let mut head: Vec<String> = columns.iter().map(|c| self.short_head(c)).collect();
        head.push(self.kind.row.to_owned());
        grid(out, options, &head, |push| {
            (0..self.len()).try_for_each(|row| {
                let number = |c| self.number(c, row).map_or_else(|| "".into(), |(text, sign)| TextCell { text, sign });
                let mut cells: Vec<TextCell> = columns.iter().map(number).collect();
                cells.push((self.kind.row_label)(self, row).into());
                push(cells)
            })
        })
    }

    /// Returns the head of a column like [`heads`]: only the first column of a sample type has the sample type's name.
    fn short_head(&self, column: &ShownColumn<'_>) -> String {
        let two_sided = self.summary.base.is_some();
        let sample_type = |cost: Cost| self.sample_type(cost.sample_type).sample_type.as_str();
        match column.column.role {
            _ if column.is_made() => column.head.clone(),
            Role::Base(cost) => format!("{}: base", sample_type(cost)),
            Role::New(cost) if !two_sided => sample_type(cost).to_owned(),
            Role::Figure | Role::DeltaPart(_) => column.head.clone(),
            Role::RatioBase(_) => "ratio: base".to_owned(),
            Role::RatioNew(_) if !two_sided => "ratio".to_owned(),
            Role::New(_) | Role::RatioNew(_) => "new".to_owned(),
            _ => "delta".to_owned(),
        }
    }
}
