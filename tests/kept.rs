//! Tests of the columns that a store caches for series. A series has the same result with and without the cache, with
//! concurrent writers, and with damaged or foreign cache files. With the cache, builds are not read again.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::{Profile, Query, Source};
use pprofdiff_series::{Series, SeriesBuilder, SeriesOptions, StoreColumns};
use pprofdiff_store::{self as store, Store, StoreSelection};

use crate::cli::{stdout, temp};

const BUILDS: usize = 90;

/// Builds a profile of a program whose functions come and go. One function costs more in builds with number >= 50.
fn build(number: usize) -> Arc<Profile> {
    let mut b = ProfileBuilder::new();
    b.sample_type("samples", "count");
    b.sample_type("cpu", "nanoseconds");
    let root = b.function("main.main", "main.go", 1);
    let root = b.location(None, 0, &[b.line(root, 3)]).unwrap();
    for f in (0..12).filter(|f| f % 3 > 0 || number % 7 != *f) {
        let function = b.function(format!("main.f{f}"), "main.go", f as i64);
        let location = b.location(None, 0, &[b.line(function, 12)]).unwrap();
        let grown = if f == 4 && number >= 50 { 400 } else { 0 };
        let count = (1000 + grown + number * 37 % 101 + f * 5) as i64;
        b.sample(&[location, root], &[count, count * 10_000_000], &[]).unwrap();
    }
    Arc::new(b.build("made").unwrap())
}

fn add(store: &Store, number: usize, profile: &Arc<Profile>) {
    let keys = [("service", "api".to_owned()), ("build", number.to_string())];
    store::add(store, profile, &keys.map(|(key, value)| (key.to_owned(), value))).unwrap();
}

fn fleet(name: &str) -> (Store, PathBuf) {
    let dir = temp(name);
    let store = Store::open_or_create(&dir, &["service".to_owned(), "build".to_owned()]).unwrap();
    (0..BUILDS).for_each(|number| add(&store, number, &build(number)));
    (store, dir.join("service=api"))
}

fn builds(path: &Path) -> Vec<(String, Source)> {
    StoreSelection::named(path).unwrap().unwrap().builds().unwrap()
}

fn options() -> SeriesOptions {
    SeriesOptions::default().with_known(&StoreColumns)
}

fn query_for(sample_type: Option<&str>) -> Query {
    sample_type.map_or_else(Query::default, |name| Query::default().with_sample_type(name))
}

fn bytes(series: &Series) -> Vec<u8> {
    assert_eq!(series.errors().len(), 0);
    postcard::to_stdvec(series).unwrap()
}

/// Computes a series without cached columns.
fn series_without_cache(path: &Path, query: &Query) -> Vec<u8> {
    let mut builder = SeriesBuilder::new(query, &options()).unwrap();
    builder.add(&builds(path)).unwrap();
    bytes(&builder.finish().unwrap())
}

fn series_with_cache(path: &Path, query: &Query) -> Vec<u8> {
    bytes(&Series::load(builds(path), query, &options()).unwrap())
}

fn files(store: &Store) -> Vec<PathBuf> {
    let files = fs::read_dir(store.dir().join("_series")).into_iter().flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Removes the function values of a build, so that they cannot be read again.
fn remove_function_values(store: &Store, number: usize) {
    fs::remove_dir_all(store.dir().join(format!("functions/service=api/build={number}"))).unwrap();
}

#[test]
fn adding_a_build_reads_only_that_build() {
    let (store, path) = fleet("kept-more");
    for query in [query_for(None), query_for(Some("samples"))] {
        let before = files(&store).len();
        let expected = series_without_cache(&path, &query);
        assert_eq!(series_with_cache(&path, &query), expected);
        // Other sample types have their own cache files.
        assert!(files(&store).len() > before + 1, "{:?}", files(&store));
        assert_eq!(series_with_cache(&path, &query), expected);
    }
    let n = files(&store).len();
    add(&store, BUILDS, &build(BUILDS));
    // A build that sums two profiles is cached as well.
    add(&store, BUILDS, &build(BUILDS + 1));
    let expected = series_without_cache(&path, &query_for(None));
    // The first build is always read, because it determines the sample type.
    (1..BUILDS).for_each(|number| remove_function_values(&store, number));
    assert_eq!(series_with_cache(&path, &query_for(None)), expected);
    // The last group grew, and its old file was removed.
    assert_eq!(files(&store).len(), n);
    fs::remove_dir_all(store.dir().join(format!("samples/service=api/build={BUILDS}"))).unwrap();
    let without = Series::load(builds(&path), &query_for(None), &options()).unwrap();
    assert_eq!(without.builds.all.len(), BUILDS);
}

#[test]
fn a_build_that_was_removed_is_not_counted() {
    let (store, path) = fleet("kept-removed");
    series_with_cache(&path, &query_for(None));
    let n = files(&store).len();
    for number in [0, 33, 34, BUILDS - 1] {
        fs::remove_dir_all(store.dir().join(format!("samples/service=api/build={number}"))).unwrap();
        let expected = series_without_cache(&path, &query_for(None));
        assert_eq!(series_with_cache(&path, &query_for(None)), expected, "{number}");
        assert_eq!(series_with_cache(&path, &query_for(None)), expected, "{number}");
    }
    // A new file was written for each of the first three groups. For the last group, the file of its beginning was
    // removed.
    assert!((n + 3..=n + 4).contains(&files(&store).len()), "{n} {}", files(&store).len());
    // The command gives the same result, also after the store has been compacted.
    let csv = || stdout(&["series", &path.display().to_string(), "--rows", "values", "--format", "csv"]);
    let of_kept = csv();
    fs::remove_dir_all(store.dir().join("_series")).unwrap();
    assert_eq!(csv(), of_kept);
    store.compact().unwrap();
    assert_eq!(csv(), of_kept);
}

#[test]
fn damaged_cache_files_are_ignored_and_rewritten() {
    let (store, path) = fleet("kept-wrong");
    let expected = series_with_cache(&path, &query_for(None));
    let whole: Vec<(PathBuf, Vec<u8>)> = files(&store).into_iter().map(|f| (f.clone(), fs::read(f).unwrap())).collect();
    let (file, content) = whole.iter().max_by_key(|(_, content)| content.len()).unwrap();
    let mended = |damage: &str| {
        assert!(series_with_cache(&path, &query_for(None)) == expected, "{damage}");
        assert!(fs::read(file).unwrap() == *content, "{damage}");
    };
    let with_sum = |content: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(content);
        [content, &sum.sum().to_le_bytes()].concat()
    };
    assert!(with_sum(&content[..content.len() - 4]) == *content);
    for offset in (0..content.len()).step_by(content.len() / 40) {
        let mut changed = content.clone();
        changed[offset] ^= 1 << (offset % 8);
        fs::write(file, &changed).unwrap();
        mended(&format!("changed at {offset}"));
        fs::write(file, &content[..offset]).unwrap();
        mended(&format!("cut at {offset}"));
    }
    // Files with a valid checksum that a stranger wrote: the columns of other builds, or nonsense.
    let other = &whole.iter().find(|(other, _)| other != file).unwrap().1;
    fs::write(file, other).unwrap();
    mended("another's");
    for (name, nonsense) in [("zeros", vec![0; 1000]), ("ones", vec![0xff; 1000]), ("nothing", Vec::new())] {
        fs::write(file, with_sum(&nonsense)).unwrap();
        mended(name);
    }
    fs::write(file, with_sum(&[&content[..content.len() - 4], &[0]].concat())).unwrap();
    mended("with more behind it");
    let mut state = 1_u64;
    for round in 0..200 {
        // The values may be wrong, even with a unit that no other build has, but nothing may fail.
        let mut changed = content[..content.len() - 4].to_vec();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = (state >> 33) as usize % changed.len();
        changed[offset] = (state >> 20) as u8;
        fs::write(file, with_sum(&changed)).unwrap();
        let series = Series::load(builds(&path), &query_for(None), &options()).unwrap();
        assert_eq!(series.builds.all.len(), BUILDS, "{round}");
        series.shifts(pprofdiff::Sort::Flat);
    }
    // A folder in place of the file, and a file in place of the folder.
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
    assert!(series_with_cache(&path, &query_for(None)) == expected);
    fs::remove_dir_all(store.dir().join("_series")).unwrap();
    fs::write(store.dir().join("_series"), "a text").unwrap();
    assert!(series_with_cache(&path, &query_for(None)) == expected);
    store.compact().unwrap();
}

#[test]
fn concurrent_writers_and_a_full_disk_do_not_change_answers() {
    let (store, path) = fleet("kept-writers");
    let expected = series_without_cache(&path, &query_for(None));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    for _ in 0..5 {
        pool.scope(|scope| {
            (0..4).for_each(|_| scope.spawn(|_| assert!(series_with_cache(&path, &query_for(None)) == expected)));
        });
        assert!(series_with_cache(&path, &query_for(None)) == expected);
        fs::remove_dir_all(store.dir().join("_series")).unwrap();
    }
    // The limit of zero blocks simulates a full disk: every write to a file fails. The signal is ignored, and answers
    // go to pipes.
    let args = ["series", &path.display().to_string(), "--rows", "values", "--format", "csv"];
    let whole = stdout(&args);
    fs::remove_dir_all(store.dir().join("_series")).unwrap();
    let shell = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let output = Command::new("bash").args(["-c", shell, env!("CARGO_BIN_EXE_pprofdiff")]).args(args).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap() == whole);
    assert!(files(&store).is_empty(), "{:?}", files(&store));
    assert_eq!(fs::read_dir(store.dir().join("_tmp")).unwrap().count(), 0);
}
