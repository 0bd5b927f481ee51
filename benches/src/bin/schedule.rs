//! Predicts the time of a pair on more cores than this machine has. `schedule [PAIR...]` (S, M, L) prints a Markdown
//! table.
//!
//! Each operation runs on one thread, with its jobs timed, and the recorded jobs are then scheduled on 1 to 64 cores.
//! The last column is a real measurement with two threads. Values are medians of five, or single runs of operations on
//! L, which take long. The longer decompression is a lower limit that more cores cannot reduce, unless a file has
//! several members.

#![allow(clippy::unwrap_used)] // a measurement that can't read its own files has nothing better to say

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pprofdiff::parallel::schedule::record;
use pprofdiff::{Diff, LoadOptions, Query, Sort};
use pprofdiff_benches::{L, M, S, inflate, pair};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_page::{PageOptions, page};
use pprofdiff_report::Table;
use rustix::time::{ClockId, clock_gettime};

const CORES: [usize; 6] = [1, 2, 4, 8, 16, 64];

type Operation = fn(&[PathBuf; 2]);

const OPERATIONS: [(&str, Operation); 4] = [
    ("open", |paths| drop(open(paths))),
    ("table", |paths| {
        let top = open(paths).measure(&Query::default()).unwrap().top(Sort::Flat);
        drop(Table::top(&top, usize::MAX));
    }),
    ("explain", |paths| {
        drop(pprofdiff_explain::explain(&open(paths), &Query::default(), &[], &ExplainOptions::default()).unwrap())
    }),
    ("page", |paths| drop(page(&open(paths), &Query::default(), &PageOptions::default(), None).unwrap())),
];

fn open(paths: &[PathBuf; 2]) -> Diff {
    Diff::open(&paths[0], &paths[1], &LoadOptions::default()).unwrap()
}

/// Returns the median of several durations, in milliseconds.
fn median(times: usize, mut measure: impl FnMut() -> Duration) -> f64 {
    let mut all: Vec<Duration> = (0..times).map(|_| measure()).collect();
    all.sort_unstable();
    all[times / 2].as_secs_f64() * 1000.0
}

/// Returns the CPU time of this thread, which other programs do not increase.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed(f: impl FnOnce()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    println!("Milliseconds by number of cores; in brackets, the ratio to the longer inflation.\n");
    println!("| pair, work | {} | two threads |", CORES.map(|n| n.to_string()).join(" | "));
    println!("|---|{}", "---|".repeat(CORES.len() + 1));
    for size in [S, M, L].into_iter().filter(|size| names.is_empty() || names.iter().any(|name| name == size.name)) {
        let paths = pair(size, 1).unwrap();
        let files = [0, 1].map(|side: usize| std::fs::read(&paths[side]).unwrap());
        let times = if size.name == L.name { 1 } else { 5 };
        let inflation = files
            .iter()
            .map(|file| median(5, || record(1, thread_time, || inflate(file)).1.work()))
            .fold(0.0, f64::max);
        println!("| {}, the longer inflation | {inflation:.1} | | | | | | |", size.name);
        for (name, work) in OPERATIONS {
            let on = CORES.map(|cores| median(times, || record(cores, thread_time, || work(&paths)).1.time()));
            let real = median(times, || timed(|| two.install(|| work(&paths))));
            let cells = on.iter().chain([&real]).map(|time| format!("{time:.1} ({:.1})", time / inflation));
            println!("| {}, {name} | {} |", size.name, cells.collect::<Vec<_>>().join(" | "));
        }
    }
}
