//! Measures the time of each stage, on one thread: `cargo bench -p pprofdiff-benches`.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use divan::{Bencher, black_box};
use pprofdiff::flame::FlameOptions;
use pprofdiff::{Compression, Diff, LoadOptions, Query, Sort, WriteOptions};
use pprofdiff_benches::{M, S, pair, real_pair};
use pprofdiff_page::PageOptions;

fn main() {
    divan::main();
}

const SIZES: [&str; 3] = ["S", "M", "real"];

/// Reads the gzip files of a pair.
fn files(name: &str) -> [Vec<u8>; 2] {
    let paths = match name {
        "S" => pair(S, 1).unwrap(),
        "M" => pair(M, 1).unwrap(),
        _ => real_pair(),
    };
    paths.map(|path| std::fs::read(path).unwrap())
}

fn inflate(file: &[u8]) -> Vec<u8> {
    let size = u32::from_le_bytes(*file.last_chunk::<4>().unwrap()) as usize;
    let mut out = vec![0; size];
    libdeflater::Decompressor::new().gzip_decompress(file, &mut out).unwrap();
    out
}

fn load_diff(name: &str) -> Diff {
    let [base, new] = files(name).map(|file| pprofdiff::from_bytes(name, &file, &LoadOptions::default()).unwrap());
    Diff::new(&[Arc::new(base)], &[Arc::new(new)]).unwrap()
}

/// The lower bound for `load_gzip`: libdeflate inflates one file.
#[divan::bench(args = SIZES)]
fn limit_inflate(bencher: Bencher<'_, '_>, name: &str) {
    let [file, _] = files(name);
    bencher.bench(|| inflate(black_box(&file)));
}

/// Inflates and parses one file.
#[divan::bench(args = SIZES)]
fn load_gzip(bencher: Bencher<'_, '_>, name: &str) {
    let [file, _] = files(name);
    bencher.bench(|| pprofdiff::from_bytes(name, black_box(&file), &LoadOptions::default()).unwrap());
}

/// Copies and parses one message: the part of `load_gzip` after inflating.
#[divan::bench(args = SIZES)]
fn load_raw(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = inflate(&files(name)[0]);
    bencher.bench(|| pprofdiff::from_bytes(name, black_box(&bytes), &LoadOptions::default()).unwrap());
}

/// Interns the frames of both sides.
#[divan::bench(args = SIZES)]
fn view(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    bencher.bench(|| diff.measure(&Query::default()).unwrap());
}

/// Builds the table of frames of a view.
#[divan::bench(args = SIZES)]
fn top(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let view = diff.measure(&Query::default()).unwrap();
    bencher.bench(|| view.top(Sort::Flat));
}

/// Builds the table of frames with a filter.
#[divan::bench(args = SIZES)]
fn filtered_top(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let mut query = Query::default();
    query.filters.focus = Some("package1|Parser".to_owned());
    bencher.bench(|| diff.measure(&query).unwrap().top(Sort::Flat));
}

/// Builds all stacks, matched by name.
#[divan::bench(args = SIZES)]
fn stacks(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let view = diff.measure(&Query::default()).unwrap();
    bencher.bench(|| view.stacks_as_found(false));
}

/// Builds both flame graphs of a page: from the root, and inverted. Each includes matching the stacks (see `stacks`).
#[divan::bench(args = SIZES)]
fn flame(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let view = diff.measure(&Query::default()).unwrap();
    let graph = |inverted| view.flame(&FlameOptions::default().with_inverted(inverted));
    bencher.bench(|| (graph(false), graph(true)));
}

/// Builds the page, with every sample type.
#[divan::bench(args = SIZES)]
fn page(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    bencher.bench(|| pprofdiff_page::page(&diff, &Query::default(), &PageOptions::default(), None).unwrap());
}

/// Encodes the diff as a message, without compression.
#[divan::bench(args = SIZES)]
fn written(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let options = WriteOptions::default().with_compression(Compression::None);
    bencher.bench(|| diff.to_profile(&Query::default()).unwrap().to_bytes(&options).unwrap());
}

/// Encodes and compresses a merged diff.
#[divan::bench(args = SIZES)]
fn written_gzip(bencher: Bencher<'_, '_>, name: &str) {
    let diff = load_diff(name);
    let profile = diff.to_profile(&Query::default()).unwrap();
    bencher.bench(|| profile.to_bytes(&WriteOptions::default()).unwrap());
}
