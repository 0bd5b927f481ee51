//! The columns that Markdown, HTML and text of several sample types show: the columns of the data, plus a row's growth
//! and its delta's share of the total. These two follow the delta of the leading cost, which is the cost (flat or cum)
//! that the rows are ordered by.

use super::numbers::{CostFormat, figure, growth, p_text, ratio_text, share, share_text, signed, spread_text, whole};
use super::table::{Cell, Column, Cost, CostColumns, Data, Measured, Role, RunStatistic, Table, ratio};
use super::text::{GROWTH, OF_TOTAL};
use pprofdiff::top::SIGNIFICANT;

/// One column to show.
pub(crate) struct ShownColumn<'a> {
    /// The head.
    pub head: String,
    /// The column of the data. The shown column is this column, or is computed from it.
    pub column: &'a Column,
    content: ColumnContent<'a>,
}

#[derive(Clone, Copy)]
enum ColumnContent<'a> {
    /// The data as it is.
    Data,
    /// The cost of one side.
    Side(CostFormat),
    /// A delta, or an end of its confidence interval.
    Delta(CostFormat),
    /// The row's growth, computed from both sides.
    Growth(CostColumns<'a>),
    /// The delta's share of the total.
    Share(Cost),
    /// A ratio in the unit of the sample type with this index, the numerator.
    Ratio(usize),
    /// A number without a unit.
    Figure,
    /// A statistic of the runs.
    Chance(RunStatistic),
}

impl ShownColumn<'_> {
    /// Returns true if the column shows formatted numbers, false if it shows the data as it is, such as names and line
    /// numbers.
    pub(crate) fn is_number(&self) -> bool {
        !matches!(self.content, ColumnContent::Data)
    }

    /// Returns true if the column is computed: growth or a share of the total.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self.content, ColumnContent::Growth(_) | ColumnContent::Share(_))
    }
}

impl Table {
    /// Returns the columns to show. Growth and share follow the delta of the leading cost of each sample type. With
    /// several sample types, only the leading cost is shown. Columns for which [`is_left_out`] is true are not shown.
    pub(crate) fn shown_columns(&self) -> Vec<ShownColumn<'_>> {
        let lead = self.lead_costs().first().map(|c| c.cost.measured);
        let several = !self.beside.is_empty();
        let is_shown = |measured: Measured| !several || Some(measured) == lead;
        let costs: Vec<(CostColumns<'_>, CostFormat)> =
            self.costs().into_iter().map(|costs| (costs, self.format(&costs))).collect();
        let cost_format = |cost: Cost| costs.iter().find(|(costs, _)| costs.cost == cost);
        let mut shown = Vec::new();
        for column in self.columns.iter().filter(|c| !is_left_out(c)) {
            let mut push = |head: String, content| shown.push(ShownColumn { head, column, content });
            match column.role {
                Role::Base(cost) | Role::New(cost) | Role::Delta(cost) => {
                    let Some(&(columns, format)) = cost_format(cost).filter(|_| is_shown(cost.measured)) else {
                        continue;
                    };
                    let is_delta = matches!(column.role, Role::Delta(_));
                    push(
                        self.heading(column, cost),
                        if is_delta { ColumnContent::Delta(format) } else { ColumnContent::Side(format) },
                    );
                    if is_delta && Some(cost.measured) == lead {
                        push(GROWTH.to_owned(), ColumnContent::Growth(columns));
                        push(OF_TOTAL.to_owned(), ColumnContent::Share(cost));
                    }
                }
                Role::RatioBase(measured) | Role::RatioNew(measured) if is_shown(measured) => {
                    let (Some([numerator, _]), Some(name)) = (ratio(&self.sample_types()), self.ratio_name()) else {
                        continue;
                    };
                    let side = match column.role {
                        Role::RatioBase(_) => ": base",
                        _ if self.summary.base.is_some() => ": new",
                        _ => "",
                    };
                    push(format!("{name}{side}"), ColumnContent::Ratio(numerator));
                }
                Role::RatioBase(_) | Role::RatioNew(_) => {}
                Role::DeltaEnd(cost) | Role::DeltaPart(cost) => {
                    let Some(&(_, format)) = cost_format(cost) else { continue };
                    push(column.name.replace('_', " "), ColumnContent::Delta(format));
                }
                Role::Figure => push(column.name.replace('_', " "), ColumnContent::Figure),
                Role::Chance(statistic) => push(statistic.head().to_owned(), ColumnContent::Chance(statistic)),
                _ => push(column.name.replace('_', " "), ColumnContent::Data),
            }
        }
        shown
    }

    /// Returns the head of a column of costs: its name with spaces. With several sample types, the name starts with the
    /// sample type, whose own underscores are kept.
    fn heading(&self, column: &Column, cost: Cost) -> String {
        let kind = &self.sample_type(cost.sample_type).sample_type;
        match column.name.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('_')) {
            Some(rest) if !self.beside.is_empty() => format!("{kind} {}", rest.replace('_', " ")),
            _ => column.name.replace('_', " "),
        }
    }

    /// Formats the number of a row and returns it with the sign that determines its colour. Only deltas, growth and
    /// shares have a sign; for other numbers it is 0. Returns `None` for columns of texts, lists, lines and addresses.
    pub(crate) fn number(&self, shown: &ShownColumn<'_>, row: usize) -> Option<(String, i64)> {
        if let (ColumnContent::Ratio(numerator), Data::Ratio(ratios)) = (shown.content, &shown.column.data) {
            return Some((ratio_text(ratios[row], &self.sample_type(numerator).unit), 0));
        }
        if let (ColumnContent::Figure, Data::Ratio(figures)) = (shown.content, &shown.column.data) {
            return Some((figures[row].map_or_else(|| "-".to_owned(), figure), 0));
        }
        if let ColumnContent::Chance(statistic) = shown.content {
            return Some((self.format_statistic(statistic, row), 0));
        }
        let Data::Value(values) = &shown.column.data else { return None };
        let v = values[row];
        Some(match shown.content {
            ColumnContent::Data | ColumnContent::Ratio(_) | ColumnContent::Figure | ColumnContent::Chance(_) => {
                (v.to_string(), 0)
            }
            ColumnContent::Side(format) => (format.sides.format(v), 0),
            ColumnContent::Delta(format) => (signed(v, format.delta), v.signum()),
            ColumnContent::Growth(costs) => (growth(costs.pair(row)), v.signum()),
            ColumnContent::Share(cost) => (share_text(share(v, self.total_of(cost, row)), true), v.signum()),
        })
    }

    /// Formats a statistic of the runs: a standard deviation relative to the mean, a p-value or a false discovery rate.
    /// For a row whose change is not significant, the reason for excluding the row from the tests replaces the last
    /// two, or `~` if the row was tested.
    pub(crate) fn format_statistic(&self, statistic: RunStatistic, row: usize) -> String {
        let figure = |statistic: RunStatistic| match self.in_role(Role::Chance(statistic)).map(|c| c.cell(row)) {
            Some(Cell::Ratio(figure)) => Some(figure),
            _ => None,
        };
        let mean = self.lead_costs().first().map_or(Default::default(), |costs| costs.pair(row));
        let left_out = || self.in_role(Role::LeftOut).map(|c| c.cell(row));
        match statistic {
            RunStatistic::BaseSd => spread_text(figure(statistic), mean.base),
            RunStatistic::NewSd => spread_text(figure(statistic), mean.new),
            RunStatistic::P | RunStatistic::Q if figure(RunStatistic::Q).is_some_and(|q| q <= SIGNIFICANT) => {
                figure(statistic).map_or_else(String::new, p_text)
            }
            RunStatistic::P | RunStatistic::Q => match left_out() {
                Some(Cell::Text(why)) => why.to_owned(),
                _ => "~".to_owned(),
            },
        }
    }

    /// Returns the name of the ratio, such as `alloc_space/alloc_objects`, or `None` if the sample types permit no
    /// ratio.
    pub(crate) fn ratio_name(&self) -> Option<String> {
        let names = ratio(&self.sample_types())?.map(|i| self.sample_type(i).sample_type.as_str());
        Some(names.join("/"))
    }

    /// Formats the ratios of a row, such as `ratio 512B -> 1kB`, for tables whose only ratios are one per side. Returns
    /// `None` if the sample types permit no ratio.
    pub(crate) fn ratio_words(&self, row: usize) -> Option<String> {
        let [numerator, _] = ratio(&self.sample_types())?;
        let ratios = self.columns.iter().filter_map(|c| match &c.data {
            Data::Ratio(ratios) => Some(ratio_text(ratios[row], &self.sample_type(numerator).unit)),
            _ => None,
        });
        Some(format!("ratio {}", ratios.collect::<Vec<_>>().join(" -> ")))
    }

    /// Returns the total that the shares of a row refer to: for tables of changes between builds, the row's own total
    /// (that of the earlier build), otherwise the base's total or the total of a single profile.
    pub(crate) fn total_of(&self, cost: Cost, row: usize) -> i64 {
        match self.in_role(Role::Total).map(|c| &c.data) {
            Some(Data::Value(totals)) => totals.get(row).copied().unwrap_or(0),
            _ => whole(self.sample_type(cost.sample_type)),
        }
    }
}

/// Returns true for columns that are not shown: columns without any value (such as files at granularity functions), the
/// totals that shares refer to, numbers of builds (whose keys are shown), the false discovery rate, and the reasons for
/// excluding rows from tests (which replace p-values).
fn is_left_out(column: &Column) -> bool {
    match &column.data {
        // The p-value is only shown for rows whose false discovery rate is low enough, so the rate itself is redundant.
        _ if matches!(column.role, Role::Total | Role::Number | Role::Chance(RunStatistic::Q) | Role::LeftOut) => true,
        Data::Text(t) => t.iter().all(|t| t.is_none()),
        Data::Line(v) => v.iter().all(Option::is_none),
        Data::Address(v) => v.iter().all(Option::is_none),
        Data::Value(_) | Data::Lists(_) | Data::Ratio(_) => false,
    }
}
