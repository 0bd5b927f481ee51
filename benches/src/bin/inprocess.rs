//! Runs the engine's operations and their lower limits in one process, one at a time and on demand, so that a driver
//! can alternate between processes.
//!
//! `inprocess PAIR` (S, M, L, real, or many for the 200 pairs) checks the results first. It then reads names of
//! operations from standard input, one per line, and prints the wall time and the CPU time of each in seconds.

#![allow(clippy::unwrap_used)] // a measurement that can't read its own files has nothing better to say

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use pprofdiff::check::Rules;
use pprofdiff::{Compression, Diff, LoadOptions, Query, Sort, Source, Top, WriteOptions, batch};
use pprofdiff_benches::bare::decode_and_add;
use pprofdiff_benches::{L, M, S, inflate, many_pairs, obvious, pair, real_pair};
use pprofdiff_explain::{ExplainOptions, ExplainedCheck, Explanation};
use pprofdiff_page::{PageOptions, page};
use pprofdiff_report::Table;
use rayon::ThreadPool;
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};

type NamedOperation = (&'static str, Box<dyn Fn()>);

fn pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
}

/// Returns the CPU time of this process, over all threads.
fn cpu_seconds() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn open(paths: &[PathBuf; 2]) -> Diff {
    Diff::open(&paths[0], &paths[1], &LoadOptions::default()).unwrap()
}

fn top(diff: &Diff) -> Top {
    diff.measure(&Query::default()).unwrap().top(Sort::Flat)
}

/// Checks the table against the simplest implementation. That takes minutes for `large` pairs, so their flat values
/// only have to add up to the totals.
fn check(paths: &[PathBuf; 2], large: bool) {
    let top = top(&open(paths));
    if large {
        let flat = top.rows.iter().fold((0, 0), |t, r| (t.0 + r.flat.base, t.1 + r.flat.new));
        assert_eq!(flat, (top.summary.total.base, top.summary.total.new), "the flat values do not add up");
        return;
    }
    let ours: HashMap<String, [i64; 4]> =
        top.rows.iter().map(|r| (top.frames.name(r.frame), [r.flat.base, r.flat.new, r.cum.base, r.cum.new])).collect();
    assert!(ours == obvious::table(paths).unwrap(), "ours and the obvious way disagree");
}

fn explain(diff: &Diff) -> Explanation {
    pprofdiff_explain::explain(diff, &Query::default(), &[], &ExplainOptions::default()).unwrap()
}

/// Runs a check with a rule on every function.
fn rules(diff: &Diff) -> ExplainedCheck {
    let mut rules = Rules::default();
    rules.fail_on("flat:regex=.>+10%").unwrap();
    pprofdiff_explain::check(&rules, &ExplainOptions::default(), diff, &Query::default()).unwrap()
}

fn write(paths: &[PathBuf; 2], compression: Compression) {
    let profile = open(paths).to_profile(&Query::default()).unwrap();
    profile.to_bytes(&WriteOptions::default().with_compression(compression)).unwrap();
}

/// Returns the operations on one pair, on two threads.
fn one_pair_operations(paths: &[PathBuf; 2]) -> Vec<NamedOperation> {
    let files = [0, 1].map(|i: usize| std::fs::read(&paths[i]).unwrap());
    let two = pool(2);
    let work = |name, f: fn(&[PathBuf; 2])| -> NamedOperation {
        let (paths, two) = (paths.clone(), two.clone());
        (name, Box::new(move || two.install(|| f(&paths))))
    };
    let (limit, bare, inputs) = (two.clone(), two.clone(), files.clone());
    vec![
        ("inflate", Box::new(move || limit.install(|| files.par_iter().for_each(|file| inflate(file))))),
        (
            "bare",
            Box::new(move || bare.install(|| drop(inputs.par_iter().map(|f| decode_and_add(f)).collect::<Vec<_>>()))),
        ),
        work("open", |paths| drop(open(paths))),
        work("top", |paths| drop(top(&open(paths)))),
        // The same operation as Python's diff(a, b).top().
        work("table", |paths| drop(Table::top(&top(&open(paths)), usize::MAX))),
        work("stacks", |paths| drop(open(paths).measure(&Query::default()).unwrap().stacks_as_found(false))),
        // Includes opening, as `top` does. The difference is the cost of the answer.
        work("explain", |paths| drop(explain(&open(paths)))),
        work("check", |paths| drop(rules(&open(paths)))),
        work("page", |paths| drop(page(&open(paths), &Query::default(), &PageOptions::default(), None).unwrap())),
        work("written", |paths| write(paths, Compression::None)),
        work("written_gzip", |paths| write(paths, Compression::Gzip)),
    ]
}

/// Returns the operations on many pairs, on one thread and on two. `many` only opens the diffs. `tops` also computes
/// the table of each diff on the consumer's side, as a loop over the diffs does.
fn many_pair_operations(pairs: &[[PathBuf; 2]]) -> Vec<NamedOperation> {
    let files: Arc<Vec<Vec<u8>>> = Arc::new(pairs.iter().flatten().map(|path| std::fs::read(path).unwrap()).collect());
    let source = |path: &PathBuf| vec![Source::Path(path.clone())];
    let pairs: Arc<Vec<_>> = Arc::new(pairs.iter().map(|[base, new]| (source(base), source(new))).collect());
    let mut works: Vec<NamedOperation> = Vec::new();
    for (threads, [limit, many, tops]) in
        [(1, ["inflate_1", "many_1", "tops_1"]), (2, ["inflate_2", "many_2", "tops_2"])]
    {
        let (pool, files) = (pool(threads), files.clone());
        let each = |f: fn(&ThreadPool, Diff)| -> Box<dyn Fn()> {
            let (pool, pairs) = (pool.clone(), pairs.clone());
            Box::new(move || {
                batch(pool.clone(), pairs.iter().cloned(), LoadOptions::default())
                    .for_each(|diff| f(&pool, diff.unwrap()));
            })
        };
        works.push((many, each(|_, diff| drop(diff))));
        works.push((tops, each(|pool, diff| drop(pool.install(|| top(&diff))))));
        works.push((limit, Box::new(move || pool.install(|| files.par_iter().for_each(|file| inflate(file))))));
    }
    works
}

fn main() {
    let scenario = std::env::args().nth(1).unwrap_or_default();
    let works = match scenario.as_str() {
        "many" => {
            let pairs = many_pairs().unwrap();
            pairs.iter().for_each(|paths| check(paths, false));
            many_pair_operations(&pairs)
        }
        "real" => {
            check(&real_pair(), false);
            one_pair_operations(&real_pair())
        }
        name => {
            let size = [S, M, L].into_iter().find(|s| s.name == name).expect("PAIR is S, M, L, real or many");
            let paths = pair(size, 1).unwrap();
            check(&paths, name == "L");
            one_pair_operations(&paths)
        }
    };
    for name in std::io::stdin().lines() {
        let name = name.unwrap();
        let (_, work) = works.iter().find(|(n, _)| *n == name).expect("the name of an operation");
        let (start, cpu) = (Instant::now(), cpu_seconds());
        work();
        println!("{} {}", start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    }
}
