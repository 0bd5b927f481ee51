//! Ours beside the limit and the obvious way, in one process and in turns: medians as JSON on standard output.
//!
//! `inprocess SIZE RUNS`. The limit is libdeflate inflating both files on two threads, and nothing else. The
//! obvious way is prost messages and a HashMap; its answer is what ours is checked against, before
//! anything is timed (at size L by its totals only, since it takes minutes there).

#![allow(clippy::unwrap_used)] // a measurement that can't read its own files has nothing better to say

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pprofdiff::{Compression, Diff, LoadOptions, Query, Sort, WriteOptions, proto};
use pprofdiff_bench::{L, M, S, pair};
use prost::Message;

/// Inflates both files on two threads.
fn limit(files: &[Vec<u8>; 2]) {
    let inflate = |bytes: &[u8]| {
        let size = u32::from_le_bytes(*bytes.last_chunk::<4>().unwrap()) as usize;
        let mut out = vec![0; size];
        libdeflater::Decompressor::new().gzip_decompress(bytes, &mut out).unwrap();
        std::hint::black_box(&out);
    };
    rayon::join(|| inflate(&files[0]), || inflate(&files[1]));
}

fn open(paths: &[PathBuf; 2]) -> Diff {
    Diff::open(&[&paths[0]], &[&paths[1]], &LoadOptions::default()).unwrap()
}

/// (flat base, flat new, cum base, cum new) of each function, the obvious way.
fn obvious(paths: &[PathBuf; 2]) -> HashMap<String, [i64; 4]> {
    let mut rows: HashMap<String, [i64; 4]> = HashMap::new();
    for (side, path) in paths.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        let mut raw = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut raw).unwrap();
        let p = proto::Profile::decode(&raw[..]).unwrap();
        let functions: HashMap<u64, String> = p
            .function
            .iter()
            .map(|f| (f.id, String::from_utf8(p.string_table[f.name as usize].clone()).unwrap()))
            .collect();
        let locations: HashMap<u64, &proto::Location> = p.location.iter().map(|l| (l.id, l)).collect();
        for s in &p.sample {
            let value = *s.value.last().unwrap();
            if value == 0 {
                continue;
            }
            let stack: Vec<&String> = s
                .location_id
                .iter()
                .flat_map(|id| locations[id].line.iter().map(|l| &functions[&l.function_id]))
                .collect();
            rows.entry(stack[0].clone()).or_default()[side] += value;
            for name in stack.into_iter().collect::<HashSet<_>>() {
                rows.entry(name.clone()).or_default()[2 + side] += value;
            }
        }
    }
    rows
}

fn check(paths: &[PathBuf; 2], size: &str) {
    let top = open(paths).view(&Query::default()).unwrap().top(Sort::Flat);
    if size == "L" {
        let flat = top.rows.iter().fold((0, 0), |t, r| (t.0 + r.flat.base, t.1 + r.flat.new));
        assert_eq!(flat, (top.summary.total.base, top.summary.total.new), "the flat values do not add up");
        return;
    }
    let ours: HashMap<String, [i64; 4]> =
        top.rows.iter().map(|r| (top.frames.name(r.frame), [r.flat.base, r.flat.new, r.cum.base, r.cum.new])).collect();
    assert!(ours == obvious(paths), "ours and the obvious way disagree");
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let size = [S, M, L].into_iter().find(|s| s.name == args[1]).expect("SIZE is S, M or L");
    let runs: usize = args[2].parse().expect("RUNS is a number");
    let paths = pair(size, 1).unwrap();
    let files = [0, 1].map(|i: usize| std::fs::read(Path::new(&paths[i])).unwrap());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    check(&paths, size.name);

    let raw = WriteOptions { compression: Compression::None, level: None };
    let written = || open(&paths).to_profile(&Query::default()).unwrap();
    type Work<'a> = (&'a str, Box<dyn Fn() + Sync + 'a>);
    let mut works: Vec<Work<'_>> = vec![
        ("inflate", Box::new(|| limit(&files))),
        ("open", Box::new(|| drop(open(&paths)))),
        ("top", Box::new(|| drop(open(&paths).view(&Query::default()).unwrap().top(Sort::Flat)))),
        ("stacks", Box::new(|| drop(open(&paths).view(&Query::default()).unwrap().stacks(false)))),
        ("written", Box::new(|| drop(written().to_bytes(&raw).unwrap()))),
        ("written_gzip", Box::new(|| drop(written().to_bytes(&WriteOptions::default()).unwrap()))),
    ];
    if size.name != "L" {
        works.push(("obvious", Box::new(|| drop(obvious(&paths)))));
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); works.len()];
    for _ in 0..runs {
        for ((_, work), times) in works.iter().zip(&mut times) {
            let start = Instant::now();
            pool.install(work);
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let medians: serde_json::Map<String, serde_json::Value> =
        works.iter().zip(times).map(|((name, _), t)| ((*name).to_owned(), median(t).into())).collect();
    println!("{}", serde_json::Value::Object(medians));
}
