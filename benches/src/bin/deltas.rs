//! Measures the deltas of a series of heap snapshots. Prints milliseconds per stage and snapshot as JSON, as medians of
//! the runs (`stream`: one mean over the snapshots per run).
//!
//! `deltas [RUNS [OUT-{index}]]` measures from the bytes of a gzip file to the bytes of a gzip file (level 1), on one
//! thread; RUNS defaults to 5. It also measures two threads, as in the command: the next snapshot is loaded while the
//! current snapshot is processed. With a file name, it writes the deltas, for checks by other tools.

#![allow(clippy::unwrap_used)] // a measurement that can't read its own files has nothing better to say

use std::time::Instant;

use pprofdiff::delta::{DeltaComputer, DeltaOptions, OnReset};

use pprofdiff::{LoadOptions, WriteOptions};
use pprofdiff_benches::{M, series};

fn main() {
    let mut args = std::env::args().skip(1);
    let runs: usize = args.next().map_or(5, |runs| runs.parse().expect("RUNS is a number"));
    let out = args.next();
    let paths = series(M).unwrap();
    let snapshots: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let options = WriteOptions::default().with_level(1);
    let load = |bytes: &[u8]| pprofdiff::from_bytes("snapshot", bytes, &LoadOptions::default()).unwrap();

    // For each snapshot after the first: load, update, pack, all.
    let mut times = vec![[const { Vec::new() }; 4]; snapshots.len() - 1];
    let (mut size, mut snapshot_size, mut inflated, mut samples) = (0, 0, 0, 0);
    for _ in 0..runs {
        // A few generated stacks occur twice. Their counters shrink if one of the two is missing, so resets are
        // clamped.
        let mut computer = DeltaComputer::new(DeltaOptions::default().with_on_reset(OnReset::Clamp));
        computer.start(&load(&snapshots[0])).unwrap();
        (size, snapshot_size, inflated, samples) = (0, 0, 0, 0);
        for (i, bytes) in snapshots[1..].iter().enumerate() {
            let start = Instant::now();
            let profile = load(bytes);
            let loaded = start.elapsed();
            let delta = computer.update(&profile).unwrap();
            let updated = start.elapsed();
            let packed = delta.to_bytes(&options).unwrap();
            (inflated, samples) = (inflated + delta.size(), samples + delta.samples);
            drop(profile);
            let all = start.elapsed();
            for (times, time) in times[i].iter_mut().zip([loaded, updated - loaded, all - updated, all]) {
                times.push(time.as_secs_f64() * 1000.0);
            }
            (size, snapshot_size) = (size + packed.len(), snapshot_size + bytes.len());
            if let Some(out) = &out {
                std::fs::write(out.replace("{index}", &(i + 1).to_string()), packed).unwrap();
            }
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let streams = (0..runs).map(|_| {
        let mut computer = DeltaComputer::new(DeltaOptions::default().with_on_reset(OnReset::Clamp));
        computer.start(&load(&snapshots[0])).unwrap();
        let start = Instant::now();
        pool.install(|| {
            let mut next = Some(load(&snapshots[1]));
            for i in 1..snapshots.len() {
                let Some(profile) = next.take() else { return };
                let mut work = || drop(computer.update(&profile).unwrap().to_bytes(&options).unwrap());
                ((), next) = rayon::join(&mut work, || snapshots.get(i + 1).map(|bytes| load(bytes)));
            }
        });
        start.elapsed().as_secs_f64() * 1000.0 / (snapshots.len() - 1) as f64
    });
    let streams: Vec<f64> = streams.collect();
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let column = |c: usize| -> Vec<f64> { times.iter().map(|t| median(t[c].clone())).collect() };
    let json = serde_json::json!({
        "load": column(0), "update": column(1), "pack": column(2), "milliseconds": column(3), "stream": streams,
        "bytes": size, "snapshot_bytes": snapshot_size, "inflated": inflated, "samples": samples,
    });
    println!("{json}");
}
