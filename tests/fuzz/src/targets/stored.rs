//! Changed bytes of serialized tables and series: each is refused, or can be written in every format.

use std::sync::{Arc, LazyLock};

use pprofdiff_series::{Series, SeriesOptions};

use crate::inputs::{Inputs, RandomBytes};
use crate::shared::{Choices, LIMIT, table};
use pprofdiff::{Diff, Query, Sort, Source};
use pprofdiff_report::{Table, series_html};

/// The serialized data: a table of each kind, and a series.
static STORED: LazyLock<(Vec<Vec<u8>>, Vec<u8>)> = LazyLock::new(|| {
    let files = [
        include_bytes!("../../../corpus/go-mutex.base.pb.gz").as_slice(),
        include_bytes!("../../../corpus/go-mutex.new.pb.gz").as_slice(),
    ];
    let load = |bytes: &[u8]| Arc::new(pprofdiff::from_bytes("in", bytes, &LIMIT).unwrap_or_else(|e| panic!("{e}")));
    let [base, new] = files.map(load);
    // Enough builds for lasting changes.
    let profile = |i: usize| if i < 3 { &base } else { &new };
    let builds = (0..6).map(|i| (i.to_string(), Source::Profile(profile(i).clone())));
    let builds = Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let diff = Diff::new(std::slice::from_ref(&base), &[new]).unwrap_or_else(|e| panic!("{e}"));
    let mut tables = vec![
        Table::values_of(&builds),
        Table::steps(&builds.steps(Sort::Flat), usize::MAX),
        Table::movers(&builds.movers(Sort::Flat), usize::MAX),
        Table::shifts(&builds.shifts(Sort::Flat), usize::MAX, &[]),
    ];
    for diff in [diff, Diff::of_profile(&base).unwrap_or_else(|e| panic!("{e}"))] {
        let view = diff.measure(&Query::default()).unwrap_or_else(|e| panic!("{e}"));
        tables.extend([
            Table::top(&view.top(Sort::Flat), usize::MAX),
            Table::stacks(&view.stacks(true), usize::MAX),
            Table::labels(&view.labels()),
        ]);
        tables.extend(view.edges(None, Sort::Flat).map(|edges| Table::tree(&edges)));
    }
    let bytes = |t: &Table| postcard::to_stdvec(&t.head(5)).unwrap_or_else(|e| panic!("{e}"));
    (tables.iter().map(bytes).collect(), serde_json::to_vec(&builds).unwrap_or_else(|e| panic!("{e}")))
});

pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let (tables, series) = &*STORED;
    let table_index = usize::from(choices.byte()) % (tables.len() + 1);
    let mut bytes = tables.get(table_index).unwrap_or(series).clone();
    while !choices.0.is_empty() {
        let offset = (usize::from(choices.byte()) << 8 | usize::from(choices.byte())) % (bytes.len() + 1);
        let (how, byte) = (choices.byte(), choices.byte());
        match how % 4 {
            0 => bytes.insert(offset, byte),
            1 if offset < bytes.len() => drop(bytes.remove(offset)),
            2 if offset < bytes.len() => bytes[offset] = bytes[offset].wrapping_add(byte),
            _ if offset < bytes.len() => bytes[offset] = byte,
            _ => {}
        }
    }
    if table_index == tables.len() {
        let Ok(series) = serde_json::from_slice::<Series>(&bytes) else { return };
        table(&Table::values_of(&series));
        let shifts = series.shifts(Sort::Flat);
        series.change_points(&shifts, 3);
        table(&Table::shifts(&shifts, usize::MAX, &[]));
        table(&Table::steps(&series.steps(Sort::Flat), usize::MAX));
        table(&Table::movers(&series.movers(Sort::Cum), usize::MAX));
        series_html(&series, Sort::Cum, 5);
    } else if let Ok(stored) = postcard::from_bytes::<Table>(&bytes) {
        table(&stored);
    }
}

/// Returns up to seven arbitrary changes of each table and of the series.
pub fn seeds() -> Inputs {
    let mut random = RandomBytes(1);
    let mut seeds = Vec::new();
    for stored in 0..12 {
        for changes in 0..8 {
            let input = [stored].into_iter().chain(random.by_ref().take(4 * changes)).collect();
            seeds.push((format!("{stored}-{changes}"), input));
        }
    }
    seeds
}
