//! Show what each frame costs in each build.

use super::{Of, ShownBy, View};
use crate::table::Table;
use pprofdiff::Result;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;

pub(crate) const VIEW: View = View {
    name: "values",
    about: "Show what each frame costs in each build",
    scope: Scope::Everything,
    of: Of::Builds,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: None,
};

/// Where `dense`, also rows of builds that do not have the frame.
pub(crate) fn answer(series: &Series, dense: bool, limit: usize) -> Result<Table> {
    let table = if dense { Table::dense_values_of(series)? } else { Table::values_of(series) };
    Ok(table.head(limit))
}
