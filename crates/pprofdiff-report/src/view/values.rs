//! The view `values`: the cost of each frame in each build.

use std::io::{self, Write};

use super::{Takes, ViewSpec};
use crate::numbers::{counted_of, share, share_text};
use crate::series::{build_columns, frame_columns};
use crate::table::schema::{build, frame, label};
use crate::table::{Data, Kind, Measured, Table};
use crate::text::{OF_TOTAL, TextCell, TextOptions, grid};
use pprofdiff::random::HashMap;
use pprofdiff::{Error, Result};
use pprofdiff_series::{FrameValue, Series};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "values",
    about: "Show the cost of each frame in each build",
    kinds: &[&VALUES],
    takes: &[Takes::Dense],
    ..ViewSpec::OF_BUILDS
};

/// The kind of tables with one build and frame per row.
pub(crate) static VALUES: Kind = Kind {
    name: "values",
    columns: |shape| {
        let mut all = Vec::from(build("build"));
        all.extend(frame());
        all.push(label("mapping"));
        all.extend(shape.costs(&[Measured::Flat, Measured::Cum]));
        all
    },
    text: write_values,
    ..Kind::OF_BUILDS
};

/// The maximum number of rows of a dense table, which limits its memory. A row takes about 60 bytes.
const MAX_DENSE: usize = 20_000_000;

/// Computes the first `limit` values. If `dense`, also adds rows for builds that do not contain a frame, and fails
/// above [`MAX_DENSE`] rows, whatever the limit.
pub(crate) fn answer(series: &Series, dense: bool, limit: usize) -> Result<Table> {
    match dense {
        true => Ok(Table::dense_values_of(series)?.head(limit)),
        false => Ok(Table::first_values_of(series, limit)),
    }
}

impl Table {
    /// Builds a table with one row per build and frame that the build contains, grouped by build, in the order of each
    /// profile's table of frames. Columns: build and build_number (its key, and its index in
    /// [`pprofdiff_series::Builds::all`]), name, file, line, mapping, flat, cum.
    pub fn values_of(series: &Series) -> Table {
        Table::first_values_of(series, usize::MAX)
    }

    /// Builds the first `n` rows of [`Table::values_of`] without the remaining rows.
    fn first_values_of(series: &Series, n: usize) -> Table {
        let all = series.values().map(|(_, values)| values.len()).sum();
        let rows = || series.values().flat_map(|(build, values)| values.iter().map(move |v| (build, *v))).take(n);
        Table::of_values(series, rows().map(|(build, _)| build).collect(), rows().map(|(_, v)| v), all)
    }

    /// Builds a table like [`Table::values_of`] with one row for each build with values and each frame of any build,
    /// grouped by build, in the order of [`Series::frames`]. The cost is 0 if the build does not contain the frame.
    ///
    /// # Errors
    /// Fails above 20 million rows.
    pub fn dense_values_of(series: &Series) -> Result<Table> {
        let (builds, n) = (series.builds.loaded().count(), series.frames.len());
        if builds.saturating_mul(n) > MAX_DENSE {
            return Err(Error::query(format!(
                "a dense table of {builds} builds with {n} frames has more than {MAX_DENSE} rows; leave out dense, or \
                 filter frames"
            )));
        }
        let mut all: Vec<FrameValue> = Vec::with_capacity(builds * n);
        for (_, values) in series.values() {
            let start = all.len();
            all.extend((0..n as u32).map(FrameValue::absent));
            values.iter().for_each(|v| all[start + v.frame as usize] = *v);
        }
        let builds = series.values().flat_map(|(build, _)| std::iter::repeat_n(build, n)).collect();
        Ok(Table::of_values(series, builds, all.iter().copied(), all.len()))
    }

    fn of_values(
        series: &Series,
        builds: Vec<usize>,
        values: impl Iterator<Item = FrameValue> + Clone,
        rows_total: usize,
    ) -> Table {
        let mut columns = Vec::from(build_columns(&series.builds, builds.iter().map(|&build| Some(build))));
        // Collect the frames, because cloning this iterator repeats its work and only a vector's is cheap to clone.
        let frames: Vec<u32> = values.clone().map(|v| v.frame).collect();
        columns.extend(frame_columns(&series.frames, frames.iter().copied()));
        columns.push(Data::Value(values.clone().map(|v| v.flat).collect()));
        columns.push(Data::Value(values.map(|v| v.cum).collect()));
        Table::new(&VALUES, &series.summary, columns).of_builds(&series.builds, rows_total)
    }
}

fn write_values(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let Some(builds) = &table.builds else { return Ok(()) };
    writeln!(
        out,
        "{}; \"of total\" is relative to each build's total\n",
        counted_of(table.len(), table.rows_total, "value")
    )?;
    let totals: HashMap<&str, i64> = builds.loaded().map(|b| (b.key.as_str(), b.total)).collect();
    let costs: Vec<_> = table.costs().into_iter().map(|costs| (costs, table.format(&costs))).collect();
    grid(out, options, &["flat", OF_TOTAL, "cum", OF_TOTAL, "build", "frame"], |push| {
        (0..table.len()).try_for_each(|row| {
            let key = table.text_of("build", row);
            let total = totals.get(key).copied().unwrap_or(0);
            let mut cells: Vec<TextCell> = Vec::with_capacity(6);
            for (costs, format) in &costs {
                let v = costs.new[row];
                cells.push(format.sides.format(v).into());
                cells.push(share_text(share(v, total), false).into());
            }
            cells.extend([key.into(), table.label(row).into()]);
            push(cells)
        })
    })
}
