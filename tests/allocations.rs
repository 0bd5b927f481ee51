//! Zero copy, shown: loading and diffing allocates by the table, never by the sample, location or
//! string. A counting allocator counts while profiles of two sizes go through.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pprofdiff::proto::{Function, Label, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort, proto};
use prost::Message;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let result = f();
    (result, ALLOCATIONS.load(Ordering::Relaxed) - before)
}

/// A profile with `n` functions, `n` locations of two lines, `3 n` strings and `4 n` samples.
fn profile(n: u64) -> Vec<u8> {
    let mut strings: Vec<Vec<u8>> = ["", "cpu", "ns", "key", "value"].map(|s| s.as_bytes().to_vec()).to_vec();
    strings.extend((0..2 * n).map(|i| format!("string number {i}").into_bytes()));
    let function = |i| Function { id: i, name: 4 + i as i64, filename: 4 + (n + i) as i64, ..Default::default() };
    let line = |i| Line { function_id: i, line: 3, column: 0 };
    let location = |i| Location { id: i, line: vec![line(i), line(i % n + 1)], ..Default::default() };
    let sample = |i| Sample {
        location_id: (0..20).map(|d| (i * 31 + d * 17) % n + 1).collect(),
        value: vec![i as i64],
        label: vec![Label { key: 3, str: 4, ..Default::default() }],
    };
    let p = proto::Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=n).map(function).collect(),
        location: (1..=n).map(location).collect(),
        sample: (0..4 * n).map(sample).collect(),
        string_table: strings,
        ..Default::default()
    };
    p.encode_to_vec()
}

#[test]
fn allocations_do_not_grow_with_the_profile() {
    let counts: Vec<(usize, usize)> = [200, 20_000]
        .into_iter()
        .map(|n| {
            let bytes = profile(n);
            let (loaded, loading) = count(|| Profile::from_bytes("p", &bytes, &LoadOptions::default()).unwrap());
            let loaded = Arc::new(loaded);
            let (top, diffing) = count(|| {
                let diff = Diff::new(from_ref(&loaded), from_ref(&loaded)).unwrap();
                diff.view(&Query::default()).unwrap().top(Sort::Flat)
            });
            assert_eq!(top.rows.len(), n as usize);
            (loading, diffing)
        })
        .collect();
    println!("allocations of (loading, diffing), small and a hundred times as large: {counts:?}");
    let [small, large] = counts[..] else { unreachable!() };
    // Every column is reserved once at its full size.
    assert_eq!(large.0, small.0, "loading allocates by the record");
    assert!(small.0 < 60, "loading takes {} allocations", small.0);
    // Interning does not know beforehand how many texts and frames are distinct: its tables double,
    // which is seven more steps for a hundred times the size, for each of a few tables.
    assert!(large.1 - small.1 <= 7 * 14, "diffing allocates by the record: {counts:?}");
}
