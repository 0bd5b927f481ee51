//! The columns of a table as Markdown and HTML show them, and text of several sample types: those of the data, and beside
//! the delta that leads what a row grew by itself and its delta's share of the total.

use super::numbers::{CostFormat, figure, growth, p_text, ratio_text, share, share_text, signed, spread_text, whole};
use super::table::{Cell, Column, Cost, CostColumns, Data, Measured, Role, RunStatistic, Table, ratio};
use super::text::{GROWTH, OF_TOTAL};
use pprofdiff::top::SIGNIFICANT;

/// One column of what is shown.
pub(crate) struct ShownColumn<'a> {
    /// Its heading.
    pub head: String,
    /// The data that it is, or is made of.
    pub column: &'a Column,
    what: What<'a>,
}

#[derive(Clone, Copy)]
enum What<'a> {
    /// As it is.
    Data,
    Side(CostFormat),
    Delta(CostFormat),
    Growth(CostColumns<'a>),
    Share(Cost),
    /// In the unit of a sample type.
    Ratio(usize),
    /// Without a unit.
    Figure,
    /// What runs say of the row.
    Chance(RunStatistic),
}

impl ShownColumn<'_> {
    /// True if it is numbers with a unit or in percent.
    pub(crate) fn is_number(&self) -> bool {
        !matches!(self.what, What::Data)
    }

    /// True if it is no column of the data: growth, and a share of the total.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self.what, What::Growth(_) | What::Share(_))
    }
}

impl Table {
    /// The columns to show. Growth and share stand beside one delta, that of the cost which the rows are ordered by. Of
    /// several sample types, only that cost is shown.
    pub(crate) fn shown_columns(&self) -> Vec<ShownColumn<'_>> {
        let lead = self.lead_costs().first().map(|c| c.cost.measured);
        let several = !self.beside.is_empty();
        let is_shown = |measured: Measured| !several || Some(measured) == lead;
        let costs: Vec<(CostColumns<'_>, CostFormat)> =
            self.costs().into_iter().map(|costs| (costs, self.format(&costs))).collect();
        let of = |cost: Cost| costs.iter().find(|(costs, _)| costs.cost == cost);
        let mut shown = Vec::new();
        for column in self.columns.iter().filter(|c| !is_left_out(c)) {
            let mut push = |head: String, what| shown.push(ShownColumn { head, column, what });
            match column.role {
                Role::Base(cost) | Role::New(cost) | Role::Delta(cost) => {
                    let Some(&(columns, format)) = of(cost).filter(|_| is_shown(cost.measured)) else { continue };
                    let is_delta = matches!(column.role, Role::Delta(_));
                    push(self.heading(column, cost), if is_delta { What::Delta(format) } else { What::Side(format) });
                    if is_delta && Some(cost.measured) == lead {
                        push(GROWTH.to_owned(), What::Growth(columns));
                        push(OF_TOTAL.to_owned(), What::Share(cost));
                    }
                }
                Role::RatioBase(measured) | Role::RatioNew(measured) if is_shown(measured) => {
                    let (Some([of, _]), Some(name)) = (ratio(&self.sample_types()), self.ratio_name()) else {
                        continue;
                    };
                    let side = match column.role {
                        Role::RatioBase(_) => ": base",
                        _ if self.summary.base.is_some() => ": new",
                        _ => "",
                    };
                    push(format!("{name}{side}"), What::Ratio(of));
                }
                Role::RatioBase(_) | Role::RatioNew(_) => {}
                Role::DeltaEnd(cost) => {
                    let Some(&(_, format)) = of(cost) else { continue };
                    push(column.name.replace('_', " "), What::Delta(format));
                }
                Role::Figure => push(column.name.replace('_', " "), What::Figure),
                Role::Chance(statistic) => push(statistic.head().to_owned(), What::Chance(statistic)),
                _ => push(column.name.replace('_', " "), What::Data),
            }
        }
        shown
    }

    /// The heading of a column of costs; of several sample types with that of the column.
    fn heading(&self, column: &Column, cost: Cost) -> String {
        let kind = &self.sample_type(cost.sample_type).sample_type;
        match column.name.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('_')) {
            Some(rest) if !self.beside.is_empty() => format!("{kind} {}", rest.replace('_', " ")),
            _ => column.name.replace('_', " "),
        }
    }

    /// The number of a row, and the sign of what it says; `None` for columns that are no such numbers.
    pub(crate) fn number(&self, shown: &ShownColumn<'_>, row: usize) -> Option<(String, i64)> {
        if let (What::Ratio(of), Data::Ratio(ratios)) = (shown.what, &shown.column.data) {
            return Some((ratio_text(ratios[row], &self.sample_type(of).unit), 0));
        }
        if let (What::Figure, Data::Ratio(figures)) = (shown.what, &shown.column.data) {
            return Some((figures[row].map_or_else(|| "-".to_owned(), figure), 0));
        }
        if let What::Chance(statistic) = shown.what {
            return Some((self.format_statistic(statistic, row), 0));
        }
        let Data::Value(values) = &shown.column.data else { return None };
        let v = values[row];
        Some(match shown.what {
            What::Data | What::Ratio(_) | What::Figure | What::Chance(_) => (v.to_string(), 0),
            What::Side(format) => (format.sides.format(v), 0),
            What::Delta(format) => (signed(v, format.delta), v.signum()),
            What::Growth(costs) => (growth(costs.pair(row)), v.signum()),
            What::Share(cost) => (share_text(share(v, self.total_of(cost, row)), true), v.signum()),
        })
    }

    /// What runs say of a row: how much they differ as a part of their mean, and the p-value, or `~` where the row is not
    /// told from noise; of one that is left out why.
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

    /// `alloc_space/alloc_objects`, where there are ratios.
    pub(crate) fn ratio_name(&self) -> Option<String> {
        let names = ratio(&self.sample_types())?.map(|i| self.sample_type(i).sample_type.as_str());
        Some(names.join("/"))
    }

    /// `ratio 512B -> 1kB`, where there are ratios of whole rows.
    pub(crate) fn ratio_words(&self, row: usize) -> Option<String> {
        let [of, _] = ratio(&self.sample_types())?;
        let ratios = self.columns.iter().filter_map(|c| match &c.data {
            Data::Ratio(ratios) => Some(ratio_text(ratios[row], &self.sample_type(of).unit)),
            _ => None,
        });
        Some(format!("ratio {}", ratios.collect::<Vec<_>>().join(" -> ")))
    }

    /// What the shares of a row are of: the base's total, or that of the build which a step began from.
    pub(crate) fn total_of(&self, cost: Cost, row: usize) -> i64 {
        match self.in_role(Role::Total).map(|c| &c.data) {
            Some(Data::Value(totals)) => totals.get(row).copied().unwrap_or(0),
            _ => whole(self.sample_type(cost.sample_type)),
        }
    }
}

/// True for columns that only take room: empty throughout (no file at granularity functions), what the percentages beside
/// them are of, or the numbers of builds whose keys are beside them.
fn is_left_out(column: &Column) -> bool {
    match &column.data {
        // What is not told from noise is marked, so the rate by which it is is not shown.
        _ if matches!(column.role, Role::Total | Role::Number | Role::Chance(RunStatistic::Q) | Role::LeftOut) => true,
        Data::Text(t) => t.iter().all(|t| t.is_none()),
        Data::Line(v) => v.iter().all(Option::is_none),
        Data::Address(v) => v.iter().all(Option::is_none),
        Data::Value(_) | Data::Lists(_) | Data::Ratio(_) => false,
    }
}
