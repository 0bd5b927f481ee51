//! Endurance test: repeated loads, diffs and exports of real profiles do not increase memory or open files. Runs 1,000
//! rounds; `PPROFDIFF_ROUNDS` sets another number.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use pprofdiff::delta::{DeltaOptions, delta};

use pprofdiff::flame::FlameOptions;

use pprofdiff::graph::GraphOptions;

use pprofdiff::output::write_file;

use pprofdiff::{Diff, LoadOptions, Query, Sort, WriteOptions, merge};
use pprofdiff_page::PageOptions;
use pprofdiff_report::{self as report, CsvOptions, Table, TextOptions, svg};

/// Returns the current resident memory in kilobytes, and the number of open files.
fn resources_in_use() -> (u64, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    (line.trim().trim_end_matches(" kB").parse().unwrap(), files)
}

/// Returns small pairs of each producer, so that a thousand rounds take seconds, and the broken files and snapshots.
fn inputs() -> (Vec<[PathBuf; 2]>, Vec<PathBuf>) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let list = |dir: &str| {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(corpus.join(dir)).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()).collect();
        files.sort();
        files
    };
    let is_small = |p: &PathBuf| p.metadata().unwrap().len() < 20_000;
    let bases = list("").into_iter().filter(|p| p.to_string_lossy().ends_with(".base.pb.gz"));
    let pair = |base: PathBuf| [base.clone(), base.to_string_lossy().replace(".base.", ".new.").into()];
    let pairs: Vec<[PathBuf; 2]> = bases.map(pair).filter(|p| p.iter().all(is_small)).collect();
    assert!(pairs.len() >= 5, "only {} pairs", pairs.len());
    (pairs, [list("malformed"), list("legacy")].concat())
}

fn round(i: usize, [base, new]: &[PathBuf; 2], broken: &[PathBuf], out: &Path) {
    let options = LoadOptions::default();
    let open = |path: &PathBuf| Arc::new(pprofdiff::open(path, &options).unwrap());
    let _ = pprofdiff::open(&broken[i % broken.len()], &options);
    let _ = pprofdiff::open(base, &LoadOptions::default().with_inflated_limit(100).unwrap()).unwrap_err();
    let (base, new) = (open(base), open(new));
    let diff = Diff::new(from_ref(&base), from_ref(&new)).unwrap();
    let query = Query::default();
    let view = diff.measure(&query).unwrap();
    let write = |f: &dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()>| write_file(out, |w| f(w)).unwrap();
    match i % 10 {
        0 => write(&|w| Table::top(&view.top(Sort::Flat), usize::MAX).write_json(w)),
        1 => write(&|w| Table::tree(&view.edges(None, Sort::Cum).unwrap()).write_text(w, TextOptions::default())),
        2 => write(&|w| report::folded(&view.stacks(false), w)),
        3 => write(&|w| Table::stacks(&view.stacks(true), usize::MAX).write_csv(w, CsvOptions::default())),
        4 => drop(view.flame(&FlameOptions::default())),
        5 => write(&|w| w.write_all(svg(&view.graph(&GraphOptions::default()).unwrap()).unwrap().as_bytes())),
        6 => drop(pprofdiff_page::page(&diff, &query, &PageOptions::default(), None).unwrap()),
        7 => write(&|w| w.write_all(&diff.to_bytes(&query, &WriteOptions::default()).unwrap())),
        8 => drop(merge(&[&base, &new]).unwrap().to_bytes(&WriteOptions::default()).unwrap()),
        _ => {
            let cumulative = base.sample_types().pop().map(|(name, _)| vec![name]);
            let mut policy = DeltaOptions::default();
            policy.cumulative = cumulative;
            drop(delta(&base, &base, &policy).unwrap().to_bytes(&WriteOptions::default()).unwrap());
        }
    }
}

#[test]
fn a_thousand_rounds_use_no_more_memory_and_files_than_the_first() {
    let rounds: usize = std::env::var("PPROFDIFF_ROUNDS").map_or(1000, |n| n.parse().unwrap());
    let (pairs, broken) = inputs();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("endurance-{}", std::process::id()));
    let mut series = Vec::new();
    for i in 0..rounds {
        // Every pair is combined with every export.
        round(i, &pairs[i / 10 % pairs.len()], &broken, &out);
        if (i + 1) % (rounds / 10) == 0 {
            series.push(resources_in_use());
            println!("{} rounds: {} kB, {} open files", i + 1, resources_in_use().0, resources_in_use().1);
        }
    }
    std::fs::remove_file(&out).unwrap();
    // The allocator keeps freed memory, so usage may still grow in the first rounds.
    let (warm, last) = (series[2], series[9]);
    assert_eq!(last.1, warm.1, "open files: {series:?}");
    assert!(last.0 <= warm.0 + 4096, "memory in kB: {series:?}");
}
