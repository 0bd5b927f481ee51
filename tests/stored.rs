//! Tests of serialized tables and series. If any byte is changed or the data is truncated, they are refused, or they
//! are tables that work in all functions. (Python pickles tables in this form, also to send them to other processes.)

#![allow(unsafe_code, clippy::unwrap_used)]

#[path = "oracle/mod.rs"]
mod oracle;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pprofdiff_series::{Series, SeriesOptions};

use pprofdiff::{Diff, LoadOptions, Query, Sort, Source};
use pprofdiff_report::{Cell, Column, Kind, Table, TextOptions, series_html};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An allocator that records the largest allocation.
struct RecordingAllocator;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator;

/// Memory that serde reserves in advance for a list, whatever its claimed length.
const MAX_RESERVED: usize = 1 << 20;

fn pair(name: &str) -> Diff {
    let [base, new] = oracle::raw_pair(name)
        .map(|bytes| Arc::new(pprofdiff::from_bytes("in", &bytes, &LoadOptions::default()).unwrap()));
    Diff::new(&[base], &[new]).unwrap()
}

fn builds() -> Series {
    let [base, new] = oracle::raw_pair("go-mutex").map(|bytes| Source::Bytes("build".to_owned(), bytes));
    let bad = Source::Bytes("bad".to_owned(), b"nothing".to_vec());
    let builds = [("1", base), ("2", bad), ("3", new)].map(|(key, source)| (key.to_owned(), source));
    Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap()
}

/// Returns a history with lasting changes.
fn history() -> Series {
    let build = |i: usize| {
        let text = format!("main;a {}\nmain;b {}\n", 1000 + i % 3, if i < 4 { 500 } else { 900 + i % 2 });
        (i.to_string(), Source::Bytes(format!("{i}.folded"), text.into_bytes()))
    };
    let series = Series::load((0..8).map(build), &Query::default(), &SeriesOptions::default()).unwrap();
    assert!(!series.shifts(Sort::Flat).rows.is_empty());
    series
}

/// Returns tables of all kinds, with a few rows each.
fn tables() -> Vec<Table> {
    let (two, series) = (pair("go-mutex"), builds());
    let one = Diff::of_profile(two.new_side().next().unwrap()).unwrap();
    let labelled = pair("story-cpu").measure(&Query::default()).unwrap();
    let mut tables = vec![
        Table::labels(&labelled.labels()).head(3),
        Table::stacks(&labelled.stacks(true), 2),
        Table::values_of(&series).head(3),
        Table::steps(&series.steps(Sort::Flat), 3),
        Table::movers(&series.movers(Sort::Flat), 3),
        Table::shifts(&history().shifts(Sort::Flat), 3, &[Some(["a cause", "b1 -> b2"].map(str::to_owned))]),
    ];
    for view in [one, two].map(|diff| diff.measure(&Query::default()).unwrap()) {
        tables.push(Table::top(&view.top(Sort::Flat), 3));
        tables.push(Table::stacks(&view.stacks(false), 2));
        tables.push(Table::labels(&view.labels()));
        tables.push(Table::tree(&view.edges(None, Sort::Flat).unwrap()).head(2));
        tables.push(Table::peek(&view.edges(Some("main"), Sort::Flat).unwrap()).head(1));
    }
    tables
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap()
}

/// Deserializes a value. Checks that no allocation is larger than the data allows.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    LARGEST.store(0, Ordering::Relaxed);
    let value = postcard::from_bytes(bytes).ok();
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= MAX_RESERVED + 64 * bytes.len(), "{largest} bytes at once for {}", bytes.len());
    value
}

/// Returns three of the seven changes, rotating with the position. Nightly runs use all of them.
fn some_of<T>(changes: [T; 7], position: usize) -> impl Iterator<Item = T> {
    let mut changes = changes;
    changes.rotate_left(3 * position % 7);
    changes.into_iter().take(oracle::cases(3) as usize)
}

/// Calls all functions of a table.
fn exercise(table: &Table) {
    let mut out = Vec::new();
    for color in [false, true] {
        table.write_text(&mut out, TextOptions { color, ..TextOptions::default() }).unwrap();
    }
    table.write_csv(&mut out, Default::default()).unwrap();
    table.write_markdown(&mut out).unwrap();
    table.to_html(2);
    out.clear();
    table.write_json(&mut out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), table.len());
    serde_json::from_str::<serde_json::Value>(&table.summary_json()).unwrap();
    for Column { name, .. } in &table.columns {
        let sorted = table.sort(name, true).unwrap();
        assert_eq!(sorted.len(), table.len());
    }
    let backwards: Vec<usize> = (0..table.len()).rev().collect();
    for part in [table.head(0), table.head(1), table.head(1000), table.take(&backwards)] {
        part.write_text(&mut out, TextOptions::default()).unwrap();
        // A part of a valid table is valid.
        assert!(read::<Table>(&bytes(&part)).is_some());
    }
    for row in 0..table.len() {
        table.label(row);
        for column in &table.columns {
            if let Cell::List(lists, row) = column.cell(row) {
                assert_eq!(lists.get(row).count(), lists.numbers(row).len());
            }
        }
    }
}

#[test]
fn tables_are_read_back_unchanged() {
    for table in tables() {
        let stored = bytes(&table);
        let again: Table = read(&stored).unwrap_or_else(|| panic!("a table of kind {:?} is refused", table.kind));
        assert_eq!(bytes(&again), stored);
        exercise(&again);
    }
}

#[test]
fn changed_tables_are_refused_or_usable() {
    let (mut refused, mut taken) = (0, 0);
    for table in tables() {
        let stored = bytes(&table);
        for offset in 0..stored.len() {
            assert!(read::<Table>(&stored[..offset]).is_none(), "{:?} is whole after {offset} bytes", table.kind);
            for change in some_of([0x01, 0x02, 0x04, 0x10, 0x40, 0x80, 0xff], offset) {
                let mut changed = stored.clone();
                changed[offset] ^= change;
                match read::<Table>(&changed) {
                    None => refused += 1,
                    Some(table) => {
                        taken += 1;
                        exercise(&table);
                    }
                }
            }
        }
    }
    assert!(refused > 10_000 && taken > 5_000, "{refused} refused, {taken} taken");
}

#[test]
fn inconsistent_tables_are_refused() {
    let top = tables().into_iter().find(|t| t.kind.name == "diff").unwrap();
    let stored = bytes(&top);
    // The last byte is the number of rows.
    assert_eq!(stored.last(), Some(&3));
    let endless = [&stored[..stored.len() - 1], &[0xff; 8], &[0x7f]].concat();
    assert!(read::<Table>(&endless).is_none());
    let without = |change: fn(&mut Table)| {
        let mut table = top.clone();
        change(&mut table);
        read::<Table>(&bytes(&table)).is_none()
    };
    assert!(without(|t| t.columns.clear()));
    assert!(without(|t| drop(t.columns.pop())));
    assert!(without(|t| t.columns.swap(0, 1)));
    assert!(without(|t| t.columns[0].name = "\"><script>".into()));
    assert!(without(|t| t.columns[6].data = t.columns[0].data.clone()));
    assert!(without(|t| t.kind = Kind::named("peek").unwrap()));
    assert!(without(|t| t.kind = Kind::named("top").unwrap()));
    assert!(without(|t| t.kind = Kind::named("steps").unwrap()));
    assert!(!without(|_| {}));
}

#[test]
fn changed_series_are_refused_or_usable() {
    let mut taken = 0;
    let stored = [builds(), history()].map(|series| serde_json::to_string(&series).unwrap());
    for stored in &stored {
        let again: Series = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), *stored);
    }
    let numbers = stored.iter().flat_map(|stored| {
        let digits = stored.match_indices(|c: char| c.is_ascii_digit());
        digits.map(move |(offset, _)| (stored, offset))
    });
    for (stored, offset) in numbers {
        let numbers = ["0", "7", "-3", "4294967295", "9223372036854775807", "-9223372036854775808", "null"];
        for number in some_of(numbers, offset) {
            let changed = format!("{}{number}{}", &stored[..offset], &stored[offset + 1..]);
            let Ok(series) = serde_json::from_str::<Series>(&changed) else { continue };
            taken += 1;
            for sort in [Sort::Flat, Sort::Cum] {
                exercise(&Table::movers(&series.movers(sort), 2));
                exercise(&Table::steps(&series.steps(sort), 2));
                let shifts = series.shifts(sort);
                exercise(&Table::shifts(&shifts, 2, &[]));
                series.change_points(&shifts, 3);
                series_html(&series, sort, 3);
            }
            exercise(&Table::values_of(&series).head(2));
            exercise(&Table::dense_values_of(&series).unwrap().head(2));
        }
    }
    assert!(taken > 1000, "{taken} taken");
}
