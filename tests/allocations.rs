//! Memory tests with a counting allocator. Loading and diffing allocate once per table, never once per sample, location
//! or string: profiles of two sizes take about the same number of allocations. A stream of a thousand deltas uses
//! constant memory.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::slice::from_ref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pprofdiff::delta::{DeltaComputer, DeltaOptions};
use pprofdiff::proto::{Function, Label, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, LoadOptions, Query, Sort, Source, WriteOptions, proto};
use pprofdiff_series::{Series, SeriesOptions};
use prost::Message;

struct CountingAllocator;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
/// Bytes that are allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Maximum of `LIVE` so far.
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Held by a test while it counts, because the counters are global.
static COUNTER_LOCK: Mutex<()> = Mutex::new(());

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        grow(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        grow(new_size);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn count<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let result = f();
    (result, ALLOCATIONS.load(Ordering::Relaxed) - before)
}

/// Builds a profile with `n` functions, `n` locations of two lines, `3 n` strings and `4 n` samples.
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
    let _alone = COUNTER_LOCK.lock().unwrap();
    let counts: Vec<(usize, usize)> = [200, 20_000]
        .into_iter()
        .map(|n| {
            let bytes = profile(n);
            // The thread of the test harness sometimes allocates, too. The minimum of several counts excludes this.
            let tries = (0..5).map(|_| {
                let (loaded, loading) = count(|| pprofdiff::from_bytes("p", &bytes, &LoadOptions::default()).unwrap());
                let loaded = Arc::new(loaded);
                let (top, diffing) = count(|| {
                    let diff = Diff::new(from_ref(&loaded), from_ref(&loaded)).unwrap();
                    diff.measure(&Query::default()).unwrap().top(Sort::Flat)
                });
                assert_eq!(top.rows.len(), n as usize);
                (loading, diffing)
            });
            tries.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).unwrap()
        })
        .collect();
    println!("allocations of (loading, diffing), small and a hundred times as large: {counts:?}");
    let [small, large] = counts[..] else { unreachable!() };
    // Every column is reserved once, at its full size.
    assert_eq!(large.0, small.0, "loading allocates by the record");
    assert!(small.0 < 60, "loading takes {} allocations", small.0);
    // Interning does not know the number of distinct texts and frames in advance, so its tables double. A hundred times
    // the size takes seven more steps for each of a few tables.
    assert!(large.1 - small.1 <= 7 * 14, "diffing allocates by the record: {counts:?}");
}

/// Builds snapshot `i` of a process with 2,000 stacks. Each snapshot replaces 40 stacks and their functions. One stack
/// stays, which shows that it is still the same process.
fn snapshot(i: u64) -> Vec<u8> {
    let mut strings: Vec<Vec<u8>> = ["", "alloc_space", "bytes", "main"].map(|s| s.as_bytes().to_vec()).to_vec();
    let first = 40 * i;
    strings.extend((first..first + 2000).map(|f| format!("function number {f}").into_bytes()));
    let line = |function_id| Line { function_id, line: 3, column: 0 };
    let p = proto::Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=2001).map(|id| Function { id, name: id as i64 + 2, ..Default::default() }).collect(),
        location: (1..=2001).map(|id| Location { id, line: vec![line(id)], ..Default::default() }).collect(),
        sample: (1..=2001)
            .map(|id| Sample { location_id: vec![id, 1], value: vec![(i + 1) as i64 * 48], label: Vec::new() })
            .collect(),
        string_table: strings,
        time_nanos: 1 + i as i64,
        ..Default::default()
    };
    p.encode_to_vec()
}

#[test]
fn a_stream_of_a_thousand_snapshots_takes_the_memory_of_one() {
    let _alone = COUNTER_LOCK.lock().unwrap();
    let mut computer = DeltaComputer::new(DeltaOptions::default());
    // Live bytes and number of allocations of each update, including the compressed result. Loading is not counted.
    let mut seen: Vec<(usize, usize)> = Vec::with_capacity(1000);
    for i in 0..1000 {
        let profile = pprofdiff::from_bytes("p", &snapshot(i), &LoadOptions::default()).unwrap();
        let before = LIVE.load(Ordering::Relaxed);
        let ((), allocations) = count(|| {
            let delta = computer.update(&profile).unwrap();
            assert_eq!((delta.samples, delta.vanished), if i == 0 { (2001, 0) } else { (2001, 40) });
            drop(delta.to_bytes(&WriteOptions::default()).unwrap());
        });
        let grown = LIVE.load(Ordering::Relaxed) as isize - before as isize;
        seen.push((allocations, if i == 0 { grown } else { seen[i as usize - 1].1 as isize + grown } as usize));
    }
    println!(
        "(allocations, live bytes) of updates 1, 2, 3, 10, 100, 1000: {:?}",
        [0, 1, 2, 9, 99, 999].map(|i| seen[i])
    );
    let (settled, last) = (seen[9], seen[999]);
    assert!(seen[9..].iter().all(|s| s.1 <= settled.1), "memory grows: {settled:?}, {last:?}");
    assert!(seen[9..].iter().all(|s| s.0 <= 40), "an update allocates {:?} times", seen[9..].iter().map(|s| s.0).max());
    assert!(settled.1 < 2001 * 400, "{} bytes are kept for 2001 samples", settled.1);
}

#[test]
fn a_series_of_a_thousand_builds_stores_only_their_values() {
    let _alone = COUNTER_LOCK.lock().unwrap();
    let size = snapshot(0).len();
    let mut live: Vec<usize> = Vec::with_capacity(1000);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let builds = (0..1000).map(|i| {
        live.push(LIVE.load(Ordering::Relaxed) - before);
        (i.to_string(), Source::Bytes("p".to_owned(), snapshot(i)))
    });
    let made = Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap();
    assert_eq!((made.builds.loaded().count(), made.frames.len()), (1000, 2001 + 999 * 40));
    let (kept, peak) = (LIVE.load(Ordering::Relaxed) - before, PEAK.load(Ordering::Relaxed) - before);
    let grown = (live[996] - live[496]) / 500;
    println!("a build is of {size} bytes and leaves {grown}; a thousand keep {kept}, {peak} at the most");
    // 24 bytes per value, plus the names of the 40 new functions of each build.
    assert!(grown < 2001 * 24 + 40 * 250 + 1000, "a build of {size} bytes leaves {grown}");
    // Temporary memory: one window of builds (one of them loaded), and tables that double.
    assert!(peak < kept + 12 * size + kept / 4, "{peak} bytes at the most, {kept} of them for what stays ({size})");
}
