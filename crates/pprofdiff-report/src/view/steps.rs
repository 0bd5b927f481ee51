//! Show all steps of frames from one build to another.

use super::{Of, ShownBy, View};
use crate::table::Table;
use pprofdiff::Sort;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;

pub(crate) const VIEW: View = View {
    name: "steps",
    about: "Show all steps of frames from one build to another",
    scope: Scope::Everything,
    of: Of::Builds,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: None,
};

pub(crate) fn answer(series: &Series, sort: Sort, limit: usize) -> Table {
    Table::steps(&series.steps(sort), limit)
}
