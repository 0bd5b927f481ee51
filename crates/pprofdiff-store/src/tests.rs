//! Tests of stores: round trips, concurrent writers, unfinished writes, and damaged or foreign files.

#![allow(clippy::unwrap_used)]

mod hostile;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use parquet::data_type::ByteArray;

use super::table::{Budget, ColumnKind, ColumnLists, StoreColumn};
use super::*;
use pprofdiff::LoadOptions;
use pprofdiff::input::BatchItem;
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::{ErrorKind, WriteOptions, merge};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "gz")).collect();
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files
}

fn open(path: &Path) -> Profile {
    pprofdiff::open(path, &LoadOptions::default()).unwrap()
}

fn keys(build: &str) -> Vec<(String, String)> {
    [("service", "api/v1 ü"), ("build", build)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn store(dir: &Path) -> Store {
    Store::open_or_create(dir, &["service".to_owned(), "build".to_owned()]).unwrap()
}

/// A size limit that no profile in these tests reaches.
const LIMIT: u64 = 1 << 30;

fn load(stored: &StoredProfile) -> Result<Profile> {
    stored.load(LIMIT)
}

/// Returns a small profile with one sample of this value.
fn counting(value: i64) -> Profile {
    let mut b = ProfileBuilder::new();
    b.sample_type("cpu", "nanoseconds");
    let f = b.function("main.run", "run.go", 7);
    let location = b.location(None, 0, &[b.line(f, 12)]).unwrap();
    b.sample(&[location], &[value], &[]).unwrap();
    b.build("made").unwrap()
}

fn total(store: &Store) -> i64 {
    let all = StoreSelection::named(store.dir()).unwrap().unwrap();
    all.profiles().unwrap().iter().map(|stored| load(stored).unwrap().total(0).unwrap()).sum()
}

/// Returns the names in the folder for unfinished files.
fn unfinished(store: &Store) -> Vec<String> {
    files::names(&store.dir().join(TMP)).unwrap()
}

/// Returns the profiles in all files of each table, as engines see them: sorted, with duplicates.
fn seen_by_engines(partition: &Partition) -> [Vec<String>; 3] {
    TABLES.map(|table| {
        let entries = |stem: &String| read_entries(&partition.file(table, stem)).unwrap();
        let all = partition.stems(table).unwrap();
        let mut ids: Vec<String> = all.iter().flat_map(entries).map(|entry| entry.id).collect();
        ids.sort();
        ids
    })
}

/// Serializes all content of a profile in a normalized order.
fn bytes_of(p: &Profile) -> Vec<u8> {
    merge(&[p]).unwrap().to_bytes(&WriteOptions::new()).unwrap()
}

#[test]
fn loaded_profiles_equal_the_added_profiles() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for path in corpus() {
        let profile = open(&path);
        let build = path.file_name().unwrap().to_string_lossy().into_owned();
        let added = store.add(&profile, &keys(&build), &Costs::default()).unwrap();
        assert!(added.is_new && added.bytes > 0);
        let profiles =
            StoreSelection::named(&dir.path().join(format!("build={build}"))).unwrap().unwrap().profiles().unwrap();
        let [stored] = &profiles[..] else { panic!("{profiles:?}") };
        assert_eq!((stored.id(), stored.keys()), (added.id.as_str(), &keys(&build)[..]));
        let loaded = stored.to_source().load(&LoadOptions::default()).unwrap();
        assert!(bytes_of(&loaded) == bytes_of(&profile), "{build}");
        assert_eq!((loaded.n_samples(), loaded.time_nanos()), (profile.n_samples(), profile.time_nanos()));
        assert!(!store.add(&profile, &keys(&build), &Costs::default()).unwrap().is_new);
    }
}

#[test]
fn labels_of_all_kinds_round_trip() {
    let mut b = ProfileBuilder::new();
    b.sample_type("space", "bytes");
    let [key, text, unit, empty] = ["key", "tëxt\"\n", "bytes", ""].map(|t| b.string(t));
    use pprofdiff_profile::samples::Label;
    use pprofdiff_profile::samples::LabelValue::*;
    let labels = [Text(text), Number(-7, empty), Number(0, unit), Number(i64::MAX, unit), Text(text)];
    b.sample(&[], &[3], &labels.map(|value| Label { key, value })).unwrap();
    b.sample(&[], &[0], &[]).unwrap();
    let profile = b.build("labels").unwrap();
    let content = StoredContent::new(&profile).unwrap();
    let back = content.to_profile("labels").unwrap();
    assert!(back.buffer() == profile.buffer());
    assert_eq!(content.id(&keys("1")).unwrap().len(), 32);
    assert_ne!(content.id(&keys("1")).unwrap(), content.id(&keys("2")).unwrap());
}

#[test]
fn part_of_a_recording_keeps_its_time_window() {
    let dir = tempfile::tempdir().unwrap();
    let (store, window) = (store(dir.path()), "10s..25s".parse().unwrap());
    let part = counting(1).with_window(Some(window));
    let added = store.add(&part, &keys("1"), &Costs::default()).unwrap();
    // The whole recording is a different profile.
    assert_ne!(added.id, store.add(&counting(1), &keys("1"), &Costs::default()).unwrap().id);
    let all = StoreSelection::named(dir.path()).unwrap().unwrap().profiles().unwrap();
    let stored = all.into_iter().find(|stored| stored.id() == added.id).unwrap();
    let load = |options: &LoadOptions| stored.to_source().load(options);
    assert_eq!(load(&LoadOptions::default()).unwrap().window(), part.window());
    // The stored part can be requested, but no other part.
    let time = |text: &str| LoadOptions::default().with_time(text.parse().unwrap());
    assert_eq!(load(&time("10s..25s")).unwrap().window(), part.window());
    assert!(load(&time("10s..20s")).is_err());
    let sum = |parts: Vec<pprofdiff::Source>| {
        pprofdiff::Source::Merged("sum".to_owned(), parts).load(&LoadOptions::default())
    };
    let twice = vec![stored.to_source(), stored.to_source()];
    assert_eq!(sum(twice).unwrap().window(), part.window());
    let whole = pprofdiff::Source::Profile(std::sync::Arc::new(counting(1)));
    assert_eq!(sum(vec![stored.to_source(), whole]).unwrap().window(), None);
}

/// The expected hash is the start of the output of `printf 'main.run\0run.go\0' | sha256sum`.
#[test]
fn stack_hash_equals_sha256_of_names_and_files() {
    let samples = StoredContent::new(&counting(1)).unwrap().samples("id", "name");
    let StoreColumn::Bytes(stacks) = &samples[7] else { panic!() };
    let hex: String = stacks[0].data().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "ed9e5389968c87b43545128fde056636");
}

#[test]
fn text_lists_of_any_size_round_trip() {
    static LISTS: StoreTable = StoreTable { name: "x", columns: &[("a", ColumnKind::Texts), ("b", ColumnKind::Near)] };
    // The texts need indices of one byte, of two bytes, or in the last case of three bytes; some lists are empty; the
    // last case fills more than one page.
    for (rows, length, texts) in [(0, 0, 0), (9, 0, 0), (9, 4, 1), (200, 9, 256), (200, 9, 257), (90_000, 5, 70_001)] {
        let mut lists = ColumnLists { values: Vec::new(), ends: Vec::new() };
        for row in 0..rows {
            let n_texts = if row % 7 == 3 { 0 } else { length };
            let text = |place: usize| format!("f{}", (row * length + place) % texts);
            lists.values.extend((0..n_texts).map(|place| ByteArray::from(text(place).as_str())));
            lists.end_list();
        }
        let distinct: std::collections::BTreeSet<&[u8]> = lists.values.iter().map(|text| text.data()).collect();
        assert_eq!(distinct.len(), texts);
        let near = StoreColumn::Int((0..rows as i64).map(|row| row * row - 7).collect());
        let expected = [StoreColumn::Texts(lists), near];
        let file = LISTS.open(LISTS.write(&expected, "x".to_owned()).unwrap()).unwrap();
        let read = file.columns(0, [("a", 1), ("b", 1)], &mut Budget::new(LIMIT));
        assert!(read.unwrap() == expected, "{rows} {length} {texts}");
    }
}

#[test]
fn kept_lists_that_are_longer_than_the_skipped_lists_are_refused() {
    static LISTS: StoreTable = StoreTable { name: "x", columns: &[("a", ColumnKind::Ints)] };
    let read = |lengths: [usize; 4]| {
        let mut lists = ColumnLists { values: Vec::new(), ends: Vec::new() };
        for length in lengths {
            lists.values.extend(vec![7; length]);
            lists.end_list();
        }
        let file = LISTS.open(LISTS.write(&[StoreColumn::Ints(lists)], "x".to_owned()).unwrap()).unwrap();
        file.columns(0, [("a", 4)], &mut Budget::new(LIMIT)).map(|[column]| column.int_lists().values.len())
    };
    assert_eq!(read([5, 5, 5, 5]).unwrap(), 5);
    assert_eq!(read([0, 0, 0, 0]).unwrap(), 0);
    // The budget counts a quarter of the elements for every fourth row.
    assert!(read([1000, 0, 0, 0]).unwrap_err().to_string().contains("lists"));
}

#[test]
fn keys_are_checked_and_paths_select() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Store::open_or_create(dir.path(), &keys).unwrap_err().to_string()
    };
    assert!(refused(&[]).contains("--key"), "{}", refused(&[]));
    assert!(refused(&["value"]).contains("column"), "{}", refused(&["value"]));
    assert!(refused(&["a/b"]).contains("word"), "{}", refused(&["a/b"]));
    assert!(refused(&["a", "a"]).contains("twice"));
    let store = store(dir.path());
    for (value, build) in [(1, "9"), (2, "10")] {
        store.add(&counting(value), &keys(build), &Costs::default()).unwrap();
    }
    assert!(
        store
            .add(&counting(1), &keys("1")[1..], &Costs::default())
            .unwrap_err()
            .to_string()
            .contains("--key service=...")
    );
    assert!(store.add(&counting(1), &keys(""), &Costs::default()).unwrap_err().to_string().contains("empty"));
    let select = |path: &str| StoreSelection::named(&dir.path().join(path));
    let all = select("").unwrap().unwrap();
    let builds: Vec<String> = all.partitions().unwrap().iter().map(|p| p.keys()[1].1.clone()).collect();
    assert_eq!(builds, ["9", "10"]);
    assert!(all.builds().unwrap_err().to_string().contains("all but one"));
    let builds = select("service=api%2Fv1 ü").unwrap().unwrap().builds().unwrap();
    assert_eq!(builds.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["9", "10"]);
    let [ten] = &select("build=10").unwrap().unwrap().profiles().unwrap()[..] else { panic!() };
    // The name in reports selects the same profile again.
    assert_eq!(
        StoreSelection::named(Path::new(&ten.name())).unwrap().unwrap().profiles().unwrap(),
        std::slice::from_ref(ten)
    );
    // Builds and pairs also contain this profile only.
    store.add(&counting(3), &keys("10"), &Costs::default()).unwrap();
    let id_of = |id: &str, path: &str| select(&format!("{path}/{id}")).unwrap().unwrap();
    let one = id_of(ten.id(), "service=api%2Fv1 ü").builds().unwrap();
    assert!(one.len() == 1 && one[0].0 == "10" && one[0].1.name() == ten.name(), "{one:?}");
    let nine = select("build=9").unwrap().unwrap();
    let pairs = store_pairs(&nine, &id_of(ten.id(), "build=10")).unwrap();
    let [BatchItem { sides: Ok((base, new)), .. }] = &pairs[..] else { panic!("{pairs:?}") };
    assert!(base.len() == 1 && new.len() == 1 && new[0].name() == ten.name(), "{new:?}");
    let none = "0".repeat(32);
    assert!(store_pairs(&nine, &id_of(&none, "build=10")).unwrap_err().to_string().contains("no such profile"));
    assert!(id_of(&none, "service=api%2Fv1 ü").builds().unwrap_err().to_string().contains("no such profile"));
    assert!(select("build=9/build=10").unwrap_err().to_string().contains("the key build occurs twice"));
    let other = select(&format!("build=9/{}", ten.id())).unwrap().unwrap();
    assert!(other.profiles().unwrap_err().to_string().contains("no such profile"));
    assert!(select("build=11").unwrap().unwrap().profiles().unwrap_err().to_string().contains("store list"));
    assert!(select("host=x").unwrap_err().to_string().contains("service, build"));
    assert!(select("samples/build=10").unwrap().is_none() && select("x").unwrap().is_none());
}

#[test]
fn compaction_keeps_each_profile_once_even_with_leftovers() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for value in 1..=5 {
        store.add(&counting(value), &keys("1"), &Costs::default()).unwrap();
    }
    store.add(&counting(100), &keys("2"), &Costs::default()).unwrap();
    let partition = Partition::new(&store, keys("1"));
    let singles = partition.stems(&SAMPLES).unwrap();
    let old: Vec<(PathBuf, Vec<u8>)> = TABLES
        .into_iter()
        .flat_map(|table| singles.iter().map(|stem| partition.file(table, stem)).collect::<Vec<_>>())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    // These sources are selected before the compaction and read after it.
    let before = partition.profiles().unwrap();
    let done = store.compact().unwrap();
    assert_eq!((done.files_before, done.files_after, total(&store)), (18, 6, 115));
    assert_eq!(before.iter().map(|stored| load(stored).unwrap().total(0).unwrap()).sum::<i64>(), 15);
    // This state is left by a compaction that was killed before it removed the replaced files.
    old.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    assert_eq!((partition.stems(&SAMPLES).unwrap().len(), total(&store)), (6, 115));
    assert!(!store.add(&counting(3), &keys("1"), &Costs::default()).unwrap().is_new);
    assert_eq!((store.compact().unwrap().files_after, total(&store)), (6, 115));
    // Engines count all rows of all files.
    let n_profiles = |stem: &String| open_file(&SAMPLES, &partition.file(&SAMPLES, stem)).unwrap().1.len();
    assert_eq!(partition.stems(&SAMPLES).unwrap().iter().map(n_profiles).sum::<usize>(), 5);
    store.add(&counting(1000), &keys("1"), &Costs::default()).unwrap();
    assert_eq!((store.compact().unwrap().files_after, total(&store)), (6, 1115));
    assert_eq!(store.compact().unwrap().files_before, 6);
}

#[test]
fn unfinished_files_are_ignored_and_removed_once_old() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    let added = store.add(&counting(2), &keys("2"), &Costs::default()).unwrap();
    // One writer was killed before its samples were in place, and another was killed in the middle of a file.
    let partition = Partition::new(&store, keys("2"));
    fs::remove_file(partition.file(&SAMPLES, &added.id)).unwrap();
    fs::write(dir.path().join(TMP).join(".pprofdiff-x"), b"PAR1").unwrap();
    assert_eq!((total(&store), store.compact().unwrap().left_over), (1, 0));
    let old = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    let left = [
        partition.file(&LOCATIONS, &added.id),
        partition.file(&FUNCTIONS, &added.id),
        dir.path().join("_tmp/.pprofdiff-x"),
    ];
    left.iter().for_each(|path| fs::File::options().append(true).open(path).unwrap().set_modified(old).unwrap());
    assert_eq!((store.compact().unwrap().left_over, total(&store)), (3, 1));
    // A later writer of the same profile succeeds.
    assert!(store.add(&counting(2), &keys("2"), &Costs::default()).unwrap().is_new);
    assert_eq!(total(&store), 3);
}

#[test]
fn concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let write = &|thread: i64| {
        // The threads add overlapping profiles, with compactions in between.
        let store = store(dir.path());
        for value in thread..thread + 6 {
            store.add(&counting(1 << value), &keys("1"), &Costs::default()).unwrap();
            if value % 2 == 0 {
                store.compact().unwrap();
            }
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    pool.scope(|scope| (0..4).for_each(|thread| scope.spawn(move |_| write(thread))));
    let store = store(dir.path());
    assert_eq!(total(&store), (1 << 9) - 1);
    // Engines count each profile once, even before the next compaction.
    assert_eq!(seen_by_engines(&Partition::new(&store, keys("1"))).map(|ids| ids.len()), [9; 3]);
}

#[test]
fn changed_bytes_are_rejected_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let profile = open(&corpus()[0]);
    let added = store.add(&profile, &keys("1"), &Costs::default()).unwrap();
    let partition = Partition::new(&store, keys("1"));
    let expected = bytes_of(&profile);
    for table in [&SAMPLES, &LOCATIONS] {
        let path = partition.file(table, &added.id);
        let whole = fs::read(&path).unwrap();
        let (mut refused, mut same) = (0, 0);
        let mut check = |bytes: &[u8], index: usize| {
            fs::write(&path, bytes).unwrap();
            match partition.profiles().and_then(|all| load(&all[0])) {
                Ok(loaded) => {
                    assert!(bytes_of(&loaded) == expected, "{} byte {index}", table.name);
                    same += 1;
                }
                Err(e) => {
                    assert!(e.to_string().contains(&added.id), "{e}");
                    refused += 1;
                }
            }
        };
        for index in (0..whole.len()).step_by(whole.len() / 150).chain(whole.len() - 300..whole.len()) {
            let mut changed = whole.clone();
            changed[index] ^= 1 << (index % 8);
            check(&changed, index);
            if index % 5 == 0 {
                check(&whole[..index], index);
            }
        }
        assert!(refused > same, "{refused} {same}");
        fs::write(&path, &whole).unwrap();
    }
    // The profile does not belong under other keys.
    let other = Partition::new(&store, keys("2"));
    for table in TABLES {
        fs::create_dir_all(other.folder(table)).unwrap();
        fs::copy(partition.file(table, &added.id), other.file(table, &added.id)).unwrap();
    }
    let error = other.profiles().unwrap()[0].load(LIMIT).unwrap_err().to_string();
    assert!(error.contains("was changed since it was added"), "{error}");
}

#[test]
fn function_costs_round_trip_and_changes_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (store, profile) = (store(dir.path()), counting(7));
    let function = |name: &str, flat| FunctionCost { function: name.to_owned(), binary: String::new(), flat, cum: 7 };
    let type_costs = TypeCosts {
        name: ["cpu".to_owned(), "nanoseconds".to_owned()],
        total: [7, 7],
        event: 0.1,
        functions: vec![function("main.run", 7), function("main.main", 0)],
    };
    let mut costs = Costs::default();
    (costs.types, costs.is_plain) = (vec![type_costs], true);
    let added = store.add(&profile, &keys("1"), &costs).unwrap();
    let partition = Partition::new(&store, keys("1"));
    let read = || partition.profiles().unwrap()[0].costs(LIMIT);
    let mut expected = costs.clone();
    expected.samples = 1;
    assert_eq!(read().unwrap().unwrap(), expected);
    // If the user needs a warning, the costs must be computed from the profile.
    let mut warned = costs;
    warned.is_plain = false;
    store.add(&counting(8), &keys("2"), &warned).unwrap();
    assert_eq!(Partition::new(&store, keys("2")).profiles().unwrap()[0].costs(LIMIT).unwrap(), None);
    let path = partition.file(&FUNCTIONS, &added.id);
    let whole = fs::read(&path).unwrap();
    let expected = read().unwrap();
    let mut refused = 0;
    for index in 0..whole.len() {
        let mut changed = whole.clone();
        changed[index] ^= 1 << (index % 8);
        fs::write(&path, changed).unwrap();
        match read() {
            Ok(costs) => assert!(costs == expected || costs.is_none(), "byte {index}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
}

#[test]
fn errors_identify_foreign_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    let partition = Partition::new(&store, keys("1"));
    let [samples, functions] = [&SAMPLES, &FUNCTIONS].map(|table| partition.file(table, &added.id));
    let error = || partition.profiles().unwrap()[0].load(LIMIT).unwrap_err().to_string();
    fs::copy(&functions, &samples).unwrap();
    assert!(error().contains("differ from the columns of a store's table samples"), "{}", error());
    static FOREIGN: StoreTable = StoreTable { name: "x", columns: &[("a", ColumnKind::Int)] };
    let foreign = FOREIGN.write(&[StoreColumn::Int(vec![1])], String::new()).unwrap();
    let text = String::from_utf8_lossy(&foreign).into_owned();
    assert!(text.contains("pprofdiff.store"));
    let place = foreign.windows(15).position(|w| w == b"pprofdiff.store").unwrap();
    let mut renamed = foreign.clone();
    renamed[place] = b'q';
    fs::write(&samples, &renamed).unwrap();
    assert!(error().contains("not part of a pprofdiff store"), "{}", error());
    fs::write(&samples, b"a text").unwrap();
    assert!(error().contains("not a complete Parquet file"), "{}", error());
    // The announced size is compared with the limit before decompression.
    let bomb = FOREIGN.write(&[StoreColumn::Int((0..100_000).collect())], String::new()).unwrap();
    let bomb = FOREIGN.open(bomb).unwrap();
    let error = bomb.columns(0, [("a", 1)], &mut Budget::new(100_000)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
    fs::write(dir.path().join(MARKER_FILE), r#"{"schema":"pprofdiff-store/2","keys":[]}"#).unwrap();
    assert!(Store::open(dir.path()).unwrap_err().to_string().contains("pprofdiff-store/2"));
    assert!(Store::open(&dir.path().join("samples")).unwrap_err().to_string().contains("not a profile store"));
}

/// Runs in a separate process, because the file size limit applies to the whole process.
#[test]
#[cfg(unix)]
fn full_disk_leaves_no_partial_profile() {
    const CHILD: &str = "PPROFDIFF_TEST_STORE";
    if let Ok(dir) = std::env::var(CHILD) {
        let error = store(Path::new(&dir)).add(&open(&corpus()[0]), &keys("1"), &Costs::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    let test = "tests::full_disk_leaves_no_partial_profile";
    // `ulimit -f` limits a file to this number of 1 KiB blocks. Once the signal is ignored, a larger file is a write
    // error.
    let shell = format!("trap '' XFSZ; ulimit -f 4; exec \"$0\" {test} --exact --nocapture");
    let mut child = Command::new("bash");
    child.args(["-c", &shell]).arg(std::env::current_exe().unwrap()).env(CHILD, dir.path());
    // Uses pipes for the output, because the limit also applies to a log file.
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(total(&store), 1);
    assert_eq!(unfinished(&store), [""; 0]);
    let partition = Partition::new(&store, keys("1"));
    assert_eq!(TABLES.map(|table| partition.stems(table).unwrap().len()), [1; 3]);
}
