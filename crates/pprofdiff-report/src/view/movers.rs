//! Show the frames of many builds by their largest steps.

use super::{Of, ShownBy, View};
use crate::table::Table;
use pprofdiff::Sort;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;

pub(crate) const VIEW: View = View {
    name: "movers",
    about: "Show the frames of many builds by their largest steps",
    scope: Scope::Everything,
    of: Of::Builds,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: None,
};

pub(crate) fn answer(series: &Series, sort: Sort, limit: usize) -> Table {
    Table::movers(&series.movers(sort), limit)
}
