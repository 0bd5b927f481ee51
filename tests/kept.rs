//! What a store keeps of its builds' columns: a series is the same with it and without, whoever writes beside, whatever is
//! damaged or another's there; and with it builds are not read again.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::series::{Series, SeriesBuilder, SeriesOptions};
use pprofdiff::store::{self, Selection, Store};
use pprofdiff::{Profile, Query, Source};

use crate::cli::{stdout, temp};

const BUILDS: usize = 90;

/// A build of a program whose functions come and go, and of which one costs more from the fiftieth build on.
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
    Selection::named(path).unwrap().unwrap().builds().unwrap()
}

fn asking(sample_type: Option<&str>) -> Query {
    sample_type.map_or_else(Query::default, |name| Query::default().with_sample_type(name))
}

fn bytes(series: &Series) -> Vec<u8> {
    assert_eq!(series.errors().len(), 0);
    postcard::to_stdvec(series).unwrap()
}

/// What a series has without anything that is kept.
fn plain(path: &Path, query: &Query) -> Vec<u8> {
    let mut builder = SeriesBuilder::new(query, &SeriesOptions::default()).unwrap();
    builder.add(&builds(path)).unwrap();
    bytes(&builder.finish().unwrap())
}

fn kept(path: &Path, query: &Query) -> Vec<u8> {
    bytes(&Series::load(builds(path), query, &SeriesOptions::default()).unwrap())
}

fn files(store: &Store) -> Vec<PathBuf> {
    let files = fs::read_dir(store.dir().join("_series")).into_iter().flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Makes it impossible to read what functions cost in a build.
fn forget(store: &Store, number: usize) {
    fs::remove_dir_all(store.dir().join(format!("functions/service=api/build={number}"))).unwrap();
}

#[test]
fn a_build_more_reads_that_build_alone() {
    let (store, path) = fleet("kept-more");
    for query in [asking(None), asking(Some("samples"))] {
        let before = files(&store).len();
        let wanted = plain(&path, &query);
        assert_eq!(kept(&path, &query), wanted);
        // Of another sample type there are other files.
        assert!(files(&store).len() > before + 1, "{:?}", files(&store));
        assert_eq!(kept(&path, &query), wanted);
    }
    let n = files(&store).len();
    add(&store, BUILDS, &build(BUILDS));
    // A build of two profiles, which are added up, is kept as well.
    add(&store, BUILDS, &build(BUILDS + 1));
    let wanted = plain(&path, &asking(None));
    // The first says which sample type it is, so it is always read.
    (1..BUILDS).for_each(|number| forget(&store, number));
    assert_eq!(kept(&path, &asking(None)), wanted);
    // The last group grew; what there was of it is gone.
    assert_eq!(files(&store).len(), n);
    fs::remove_dir_all(store.dir().join(format!("samples/service=api/build={BUILDS}"))).unwrap();
    let without = Series::load(builds(&path), &asking(None), &SeriesOptions::default()).unwrap();
    assert_eq!(without.builds.all.len(), BUILDS);
}

#[test]
fn a_build_that_was_removed_is_not_counted() {
    let (store, path) = fleet("kept-removed");
    kept(&path, &asking(None));
    let n = files(&store).len();
    for number in [0, 33, 34, BUILDS - 1] {
        fs::remove_dir_all(store.dir().join(format!("samples/service=api/build={number}"))).unwrap();
        let wanted = plain(&path, &asking(None));
        assert_eq!(kept(&path, &asking(None)), wanted, "{number}");
        assert_eq!(kept(&path, &asking(None)), wanted, "{number}");
    }
    // One group was made anew for each of the first three, of the last its beginning is not kept any more.
    assert!((n + 3..=n + 4).contains(&files(&store).len()), "{n} {}", files(&store).len());
    // The command says the same, and that of a compacted store is no other.
    let csv = || stdout(&["series", &path.display().to_string(), "--rows", "values", "--format", "csv"]);
    let of_kept = csv();
    fs::remove_dir_all(store.dir().join("_series")).unwrap();
    assert_eq!(csv(), of_kept);
    store.compact().unwrap();
    assert_eq!(csv(), of_kept);
}

#[test]
fn what_is_wrong_is_ignored_and_made_again() {
    let (store, path) = fleet("kept-wrong");
    let wanted = kept(&path, &asking(None));
    let whole: Vec<(PathBuf, Vec<u8>)> = files(&store).into_iter().map(|f| (f.clone(), fs::read(f).unwrap())).collect();
    let (file, content) = whole.iter().max_by_key(|(_, content)| content.len()).unwrap();
    let mended = |what: &str| {
        assert!(kept(&path, &asking(None)) == wanted, "{what}");
        assert!(fs::read(file).unwrap() == *content, "{what}");
    };
    let with_sum = |content: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(content);
        [content, &sum.sum().to_le_bytes()].concat()
    };
    assert!(with_sum(&content[..content.len() - 4]) == *content);
    for at in (0..content.len()).step_by(content.len() / 40) {
        let mut changed = content.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(file, &changed).unwrap();
        mended(&format!("changed at {at}"));
        fs::write(file, &content[..at]).unwrap();
        mended(&format!("cut at {at}"));
    }
    // What a stranger writes, with a sum that is right: of other builds, or nonsense.
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
        // It may lie, of a unit that no other build has as well, but all goes well with it.
        let mut changed = content[..content.len() - 4].to_vec();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (state >> 33) as usize % changed.len();
        changed[at] = (state >> 20) as u8;
        fs::write(file, with_sum(&changed)).unwrap();
        let series = Series::load(builds(&path), &asking(None), &SeriesOptions::default()).unwrap();
        assert_eq!(series.builds.all.len(), BUILDS, "{round}");
        series.shifts(pprofdiff::Sort::Flat);
    }
    // A folder where the file is to be, and a file where the folder is to be.
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
    assert!(kept(&path, &asking(None)) == wanted);
    fs::remove_dir_all(store.dir().join("_series")).unwrap();
    fs::write(store.dir().join("_series"), "a text").unwrap();
    assert!(kept(&path, &asking(None)) == wanted);
    store.compact().unwrap();
}

#[test]
fn two_that_write_at_once_and_a_disk_that_is_full_change_no_answer() {
    let (store, path) = fleet("kept-writers");
    let wanted = plain(&path, &asking(None));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    for _ in 0..5 {
        pool.scope(|scope| {
            (0..4).for_each(|_| scope.spawn(|_| assert!(kept(&path, &asking(None)) == wanted)));
        });
        assert!(kept(&path, &asking(None)) == wanted);
        fs::remove_dir_all(store.dir().join("_series")).unwrap();
    }
    // A file may have no block at all; more is an error, once the signal is ignored. Answers go to pipes.
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
