//! Time of each stage, on one thread: `cargo bench -p pprofdiff-bench`.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use divan::{Bencher, black_box};
use pprofdiff::report::{self, PageOptions};
use pprofdiff::{Compression, Diff, FlameOptions, LoadOptions, Profile, Query, Sort, WriteOptions};
use pprofdiff_bench::{Build, M, S, Size, gzip, message};

fn main() {
    divan::main();
}

const SIZES: [&str; 2] = ["S", "M"];

fn size(name: &str) -> Size {
    if name == "S" { S } else { M }
}

fn loaded(name: &str) -> Diff {
    let load = |build| {
        let bytes = message(size(name), build, 1, 1);
        Arc::new(Profile::from_bytes(name, &bytes, &LoadOptions::default()).unwrap())
    };
    Diff::new(&[load(Build::Base)], &[load(Build::New)]).unwrap()
}

/// Inflating and parsing one file.
#[divan::bench(args = SIZES)]
fn load_gzip(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = gzip(&message(size(name), Build::Base, 1, 1));
    bencher.bench(|| Profile::from_bytes(name, black_box(&bytes), &LoadOptions::default()).unwrap());
}

/// Copying and parsing one message: what of `load_gzip` is not inflating.
#[divan::bench(args = SIZES)]
fn load_raw(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = message(size(name), Build::Base, 1, 1);
    bencher.bench(|| Profile::from_bytes(name, black_box(&bytes), &LoadOptions::default()).unwrap());
}

/// Interning the frames of both sides.
#[divan::bench(args = SIZES)]
fn view(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    bencher.bench(|| diff.view(&Query::default()).unwrap());
}

/// The table of frames of a view.
#[divan::bench(args = SIZES)]
fn top(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    let view = diff.view(&Query::default()).unwrap();
    bencher.bench(|| view.top(Sort::Flat));
}

/// The same under a filter.
#[divan::bench(args = SIZES)]
fn filtered_top(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    let mut query = Query::default();
    query.filters.focus = Some("package1".to_owned());
    bencher.bench(|| diff.view(&query).unwrap().top(Sort::Flat));
}

/// All stacks, matched by name.
#[divan::bench(args = SIZES)]
fn stacks(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    let view = diff.view(&Query::default()).unwrap();
    bencher.bench(|| view.stacks(false));
}

/// Both flame graphs of a page: from the root, and inverted. Matching the stacks is `stacks`, once for each.
#[divan::bench(args = SIZES)]
fn flame(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    let view = diff.view(&Query::default()).unwrap();
    let graph = |inverted| view.flame(&FlameOptions { inverted, ..FlameOptions::default() });
    bencher.bench(|| (graph(false), graph(true)));
}

/// The page, of every sample type.
#[divan::bench(args = SIZES)]
fn page(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    bencher.bench(|| report::page(&diff, &Query::default(), &PageOptions::default()).unwrap());
}

/// The diff as a message, without compressing it.
#[divan::bench(args = SIZES)]
fn written(bencher: Bencher<'_, '_>, name: &str) {
    let diff = loaded(name);
    let options = WriteOptions { compression: Compression::None, level: None };
    bencher.bench(|| diff.to_profile(&Query::default()).unwrap().to_bytes(&options).unwrap());
}
