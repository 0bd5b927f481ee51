//! Show the builds from which on a frame costs something else.

use super::{Of, ShownBy, View};
use crate::series::causes_of;
use crate::table::Table;
use pprofdiff::explain::ExplainOptions;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;
use pprofdiff::{LoadOptions, Result, Sort};

pub(crate) const VIEW: View = View {
    name: "shifts",
    about: "Show the builds from which on a frame costs something else",
    scope: Scope::Everything,
    of: Of::Builds,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: None,
};

/// Finding causes reads the builds around each shift again.
pub(crate) fn answer(
    series: &Series,
    sort: Sort,
    limit: usize,
    explain: Option<&ExplainOptions>,
    load: &LoadOptions,
) -> Result<Table> {
    let shifts = series.shifts(sort);
    let causes = explain.map(|options| causes_of(series, &shifts, limit, load, options));
    Ok(Table::shifts(&shifts, limit, &causes.transpose()?.unwrap_or_default()))
}
