//! Stores whose writers were killed, and stores from strangers. Engines count the same as pprofdiff, and pprofdiff
//! reads, waits for and removes nothing outside the store.

use super::*;
use pprofdiff::input::DerivedData;

fn make_old(path: &Path) {
    let old = SystemTime::now() - Duration::from_secs(100 * 24 * 60 * 60);
    fs::File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
}

/// Simulates processes that were killed after each step of a commit. The next writer or compaction completes the
/// commit.
#[test]
fn a_killed_commit_is_completed_by_the_next_add_or_compaction() {
    for (moved, removed, is_compaction, repair) in [
        (0, 0, false, "compact"),
        (1, 0, false, "compact"),
        (2, 0, false, "add"),
        (2, 0, false, "the same add"),
        (3, 0, false, "add"),
        (0, 0, true, "compact"),
        (1, 0, true, "add"),
        (3, 0, true, "the same add"),
        (3, 1, true, "add"),
        (3, 4, true, "compact"),
        (3, 6, true, "add"),
    ] {
        let case = format!("{moved} moved, {removed} removed, {is_compaction}, {repair}");
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let partition = Partition::new(&store, keys("1"));
        for value in 1..=2 {
            store.add(&counting(value), &keys("1"), &Costs::default()).unwrap();
        }
        let before = partition.stems(&SAMPLES).unwrap();
        let old: Vec<(PathBuf, Vec<u8>)> = TABLES
            .into_iter()
            .flat_map(|table| before.iter().map(|stem| partition.file(table, stem)).collect::<Vec<_>>())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        match is_compaction {
            true => drop(store.compact().unwrap()),
            false => drop(store.add(&counting(4), &keys("1"), &Costs::default()).unwrap()),
        }
        let stem = partition.stems(&SAMPLES).unwrap().into_iter().find(|stem| !before.contains(stem)).unwrap();
        // Restores the state at which the process was killed.
        if is_compaction {
            // Samples are removed first.
            old.iter().rev().skip(removed).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        }
        let names = [0, 1, 2].map(|place| format!(".pprofdiff-{place}"));
        for (place, table) in TABLES.into_iter().enumerate().skip(moved) {
            fs::rename(partition.file(table, &stem), dir.path().join(TMP).join(&names[place])).unwrap();
        }
        let replaces = if is_compaction { before.as_slice() } else { &[] };
        let commit = serde_json::json!({"keys": keys("1"), "stem": stem, "files": names, "replaces": replaces});
        fs::write(dir.path().join(TMP).join(format!("commit-{stem}.json")), commit.to_string()).unwrap();

        match repair {
            "compact" => drop(store.compact().unwrap()),
            "add" => assert!(store.add(&counting(8), &keys("2"), &Costs::default()).unwrap().is_new),
            _ => {
                let value = if is_compaction { 1 } else { 4 };
                assert!(!store.add(&counting(value), &keys("1"), &Costs::default()).unwrap().is_new, "{case}");
            }
        }
        assert_eq!(unfinished(&store), [""; 0], "{case}");
        let ids: Vec<String> = partition.profiles().unwrap().iter().map(|stored| stored.id().to_owned()).collect();
        assert_eq!(ids.len(), if is_compaction { 2 } else { 3 }, "{case}");
        assert_eq!(seen_by_engines(&partition), [&ids, &ids, &ids].map(Clone::clone), "{case}");
        let expected = if is_compaction { 3 } else { 7 } + if repair == "add" { 8 } else { 0 };
        assert_eq!(total(&store), expected, "{case}");
    }
}

#[test]
fn a_commit_that_fails_leaves_nothing_in_any_table() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let partition = Partition::new(&store, keys("1"));
    let id = StoredContent::new(&counting(2)).unwrap().id(&keys("1")).unwrap();
    store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    // A folder takes the place of the second file.
    let place = partition.file(&FUNCTIONS, &id);
    fs::create_dir(&place).unwrap();
    let error = store.add(&counting(2), &keys("1"), &Costs::default()).unwrap_err().to_string();
    assert!(error.contains(&id), "{error}");
    fs::remove_dir(&place).unwrap();
    assert_eq!(seen_by_engines(&partition).map(|ids| ids.len()), [1; 3]);
    assert_eq!(unfinished(&store), [""; 0]);
    store.compact().unwrap();
    assert_eq!(seen_by_engines(&partition).map(|ids| ids.len()), [1; 3]);
}

/// Moves the new files of a finished `add` or `compact` back to `_tmp`.
fn stage_again(partition: &Partition, stem: &str) -> Vec<Staged> {
    let tmp = partition.store().dir().join(TMP);
    let stage = |table| {
        let path = partition.file(table, stem);
        let staged = Staged::write(&tmp, &fs::read(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        staged
    };
    TABLES.into_iter().map(stage).collect()
}

/// Without working locks, another process may complete a commit and remove the replaced files while its owner fails.
#[test]
fn a_failed_compaction_keeps_its_files_if_the_replaced_files_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = [1, 2].map(|value| store.add(&counting(value), &keys("1"), &Costs::default()).unwrap().id);
    store.compact().unwrap();
    let partition = Partition::new(&store, keys("1"));
    let [stem] = &partition.stems(&SAMPLES).unwrap()[..] else { panic!() };
    let staged = stage_again(&partition, stem);
    // A folder takes the place of the second file.
    let place = partition.file(&FUNCTIONS, stem);
    fs::create_dir(&place).unwrap();
    partition.commit(stem, staged, added.to_vec()).unwrap_err();
    assert!(partition.file(&LOCATIONS, stem).is_file());
    assert!(unfinished(&store).contains(&format!("commit-{stem}.json")));
    fs::remove_dir(&place).unwrap();
    store.complete_commits().unwrap();
    assert_eq!((total(&store), unfinished(&store)), (3, vec![]));
}

/// A writer may be suspended for more than a day, and `compact` then removes its unfinished files.
#[test]
fn a_commit_whose_staged_file_was_lost_stores_nothing() {
    for (is_compaction, is_killed, lost) in [false, true]
        .into_iter()
        .flat_map(|a| [false, true].into_iter().flat_map(move |b| (0..3).map(move |c| (a, b, c))))
    {
        let case = format!("{is_compaction}, {is_killed}, {lost}");
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let partition = Partition::new(&store, keys("1"));
        let added = [1, 2].map(|value| store.add(&counting(value), &keys("1"), &Costs::default()).unwrap().id);
        let paths = TABLES.into_iter().flat_map(|table| added.each_ref().map(|stem| partition.file(table, stem)));
        let old: Vec<(PathBuf, Vec<u8>)> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        let (stem, replaces) = match is_compaction {
            true => {
                store.compact().unwrap();
                (partition.stems(&SAMPLES).unwrap().remove(0), added.to_vec())
            }
            false => (store.add(&counting(4), &keys("1"), &Costs::default()).unwrap().id, Vec::new()),
        };
        let staged = stage_again(&partition, &stem);
        old.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let names: Vec<String> = staged.iter().map(Staged::name).collect();
        fs::remove_file(dir.path().join(TMP).join(&names[lost])).unwrap();
        if is_killed {
            let kept: Vec<PathBuf> = staged.into_iter().map(|staged| staged.keep().unwrap()).collect();
            // The first file had already been moved, unless it was lost.
            if lost > 0 {
                fs::rename(&kept[0], partition.file(&LOCATIONS, &stem)).unwrap();
            }
            let commit = serde_json::json!({"keys": keys("1"), "stem": stem, "files": names, "replaces": replaces});
            fs::write(dir.path().join(TMP).join(format!("commit-{stem}.json")), commit.to_string()).unwrap();
            store.complete_commits().unwrap();
        } else {
            let error = partition.commit(&stem, staged, replaces).unwrap_err().to_string();
            assert!(error.contains(&stem) && error.contains("try again"), "{case}: {error}");
        }
        assert_eq!(unfinished(&store), [""; 0], "{case}");
        assert_eq!(seen_by_engines(&partition).map(|ids| ids.len()), [2; 3], "{case}");
        assert_eq!(total(&store), 3, "{case}");
        // The next writer succeeds.
        assert!(store.add(&counting(4), &keys("1"), &Costs::default()).unwrap().is_new, "{case}");
        store.compact().unwrap();
        assert_eq!(total(&store), 7, "{case}");
    }
}

#[test]
fn foreign_commits_move_and_remove_no_foreign_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    let victim = dir.path().join("thesis.parquet");
    fs::write(&victim, b"x").unwrap();
    let [name, id, tmp] = [".pprofdiff-1", &"a".repeat(32), TMP];
    let path = dir.path().join(tmp).join("commit-x.json");
    let other_keys = [("service", "x"), ("host", "1")];
    let up = [("service", "../.."), ("build", "..")];
    let own_keys = keys("1");
    for (keys, stem, files, replaces) in [
        (keys("1"), "../../../thesis", [name; 3], vec![]),
        (keys("1"), id, ["../thesis.parquet"; 3], vec![]),
        (keys("1"), id, [".pprofdiff-/../../thesis.parquet"; 3], vec![]),
        (keys("1"), id, [name; 3], vec!["../../../../thesis"]),
        (other_keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into(), id, [name; 3], vec![]),
        (Vec::new(), id, [name; 3], vec![]),
    ] {
        let commit = serde_json::json!({"keys": keys, "stem": stem, "files": files, "replaces": replaces});
        fs::write(&path, commit.to_string()).unwrap();
        let error = store.compact().unwrap_err().to_string();
        assert!(error.contains("commit-x.json") && error.contains("remove it"), "{error}");
        // The foreign commit does not block a writer.
        assert!(!store.add(&counting(1), &own_keys, &Costs::default()).unwrap().is_new);
    }
    // Any value of a key is only a folder name inside a partition.
    let (up, files) = (up.map(|(key, value)| (key.to_owned(), value.to_owned())), [name; 3]);
    let commit = serde_json::json!({"keys": up, "stem": id, "files": files, "replaces": []});
    fs::write(&path, commit.to_string()).unwrap();
    store.compact().unwrap();
    assert_eq!((fs::read(&victim).unwrap(), total(&store)), (b"x".to_vec(), 1));
}

#[test]
#[cfg(unix)]
fn compaction_follows_no_link() {
    use std::os::unix::fs::symlink;
    let victim = tempfile::tempdir().unwrap();
    let foreign = victim.path().join("service=api%2Fv1%20%C3%BC/build=2");
    fs::create_dir_all(&foreign).unwrap();
    let id = "0123456789abcdef".repeat(2);
    for folder in [victim.path(), &foreign] {
        for name in [format!("{id}.parquet"), id.clone(), ".pprofdiff-x".to_owned(), "thesis.txt".to_owned()] {
            fs::write(folder.join(&name), b"x").unwrap();
            make_old(&folder.join(&name));
        }
    }
    let kept = || {
        let n_files =
            |folder: &Path| fs::read_dir(folder).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count();
        assert_eq!((n_files(victim.path()), n_files(&foreign)), (4, 4));
    };
    for link in ["_tmp", "_series", "functions", "samples/service=api%2Fv1%20%C3%BC/build=2", "functions/x"] {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        for value in 1..=2 {
            store.add(&counting(value), &keys("1"), &Costs::default()).unwrap();
        }
        let (path, target) = match link {
            // One table's folder is a link to a folder elsewhere.
            "functions/x" => (dir.path().join("functions/service=api%2Fv1%20%C3%BC/build=2"), foreign.as_path()),
            "functions" => (dir.path().join(link), victim.path()),
            _ if link.contains('/') => (dir.path().join(link), foreign.as_path()),
            _ => (dir.path().join(link), victim.path()),
        };
        fs::remove_dir_all(&path).ok();
        symlink(target, &path).unwrap();
        let done = store.compact();
        kept();
        match link {
            "_tmp" => {
                let error = done.unwrap_err().to_string();
                assert!(error.contains("_tmp") && error.contains("remove it"), "{error}");
                store.add(&counting(9), &keys("1"), &Costs::default()).unwrap_err();
            }
            // A cache behind a link is ignored.
            "_series" => {
                store.write(&id, b"x".to_vec());
                assert!(store.read(&id).is_none() && done.unwrap().links.is_empty());
                store.remove(&id);
            }
            _ => assert_eq!(done.unwrap().links, [path]),
        }
        kept();
    }
    // Compaction replaces neither a link to a file nor the linked file.
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = [1, 2, 4].map(|value| store.add(&counting(value), &keys("1"), &Costs::default()).unwrap());
    let partition = Partition::new(&store, keys("1"));
    let path = partition.file(&FUNCTIONS, &added[0].id);
    let elsewhere = victim.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!((store.compact().unwrap().links, total(&store)), (vec![path.clone()], 7));
    assert!(elsewhere.is_file() && path.is_symlink());
    assert_eq!(partition.stems(&SAMPLES).unwrap().len(), 2);
}

#[test]
fn sweeping_keeps_foreign_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = [1, 2].map(|value| store.add(&counting(value), &keys("1"), &Costs::default()).unwrap());
    let partition = Partition::new(&store, keys("1"));
    let (valid_file, other) = (partition.file(&FUNCTIONS, &added[0].id), "0123456789abcdef".repeat(2));
    store.write(&other, b"x".to_vec());
    let series = dir.path().join("_series");
    let ours = series.join(&other);
    let foreign = [
        partition.file(&FUNCTIONS, "mine"),
        partition.file(&FUNCTIONS, &other),
        partition.file(&LOCATIONS, &format!("compact-{other}")),
        dir.path().join("_tmp/thesis.txt"),
        series.join("thesis.txt"),
        series.join("a".repeat(32)),
    ];
    for path in &foreign {
        // Copies of valid table files, under names that they do not own.
        fs::copy(&valid_file, path).unwrap();
        make_old(path);
    }
    make_old(&ours);
    assert_eq!(store.compact().unwrap().left_over, 1);
    assert!(!ours.exists());
    foreign.iter().for_each(|path| assert!(path.exists(), "{}", path.display()));
}

#[test]
fn partitions_with_wrong_names_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    store.add(&counting(1), &keys("2"), &Costs::default()).unwrap();
    let service = dir.path().join("samples/service=api%2Fv1%20%C3%BC");
    let partition = Partition::new(&store, keys("1"));
    let file = partition.file(&SAMPLES, &added.id);
    for name in [
        "service=api%2Fv1 ü",
        "service=api%2fv1%20%C3%BC",
        "service=api%2Fv1%20%C3%B%43",
        "service=%61",
        "SERVICE=a",
        "x",
    ] {
        let folder = service.with_file_name(name).join("build=1");
        fs::create_dir_all(&folder).unwrap();
        // A folder without table files loses nothing and counts nothing twice.
        assert_eq!(total(&store), 2, "{name}");
        fs::copy(&file, folder.join("x.parquet")).unwrap();
        for path in ["", "build=1"] {
            let named = StoreSelection::named(&dir.path().join(path)).unwrap().unwrap();
            let error = named.profiles().unwrap_err().to_string();
            assert!(error.contains(name) && (error.contains("rename") || error.contains("move it")), "{error}");
        }
        assert!(store.compact().unwrap_err().to_string().contains(name));
        fs::remove_dir_all(service.with_file_name(name)).unwrap();
    }
    // Folders that engines skip are ignored.
    for name in ["_x", ".x"] {
        fs::create_dir_all(service.join(name)).unwrap();
        fs::copy(&file, service.join(name).join("x.parquet")).unwrap();
    }
    fs::write(service.join("README.txt"), b"x").unwrap();
    assert_eq!(total(&store), 2);
    fs::copy(&file, service.join("x.parquet")).unwrap();
    assert!(StoreSelection::named(dir.path()).unwrap().unwrap().profiles().is_err());
}

/// Reading a pipe would block, and reading a device would never end.
#[test]
#[cfg(unix)]
fn pipes_and_devices_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let added = store.add(&counting(1), &keys("1"), &Costs::default()).unwrap();
    let partition = Partition::new(&store, keys("1"));
    store.compact().unwrap();
    let compacted = partition.file(&SAMPLES, &format!("compact-{}", "a".repeat(32)));
    let pipe = dir.path().join("_tmp/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let read = || -> Result<()> {
        Store::open(dir.path())?;
        let [stored] = &partition.profiles()?[..] else { panic!() };
        stored.load(LIMIT)?;
        stored.costs(LIMIT).map(drop)
    };
    read().unwrap();
    let table_files = TABLES.map(|table| partition.file(table, &added.id));
    for path in table_files.into_iter().chain([compacted, dir.path().join(MARKER_FILE)]) {
        let whole = fs::read(&path).ok();
        for target in [Path::new("/dev/zero"), &pipe] {
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(target, &path).unwrap();
            let error = read().unwrap_err().to_string();
            assert!(error.contains("a pipe or a device") && error.contains("move it"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        whole.into_iter().for_each(|bytes| fs::write(&path, bytes).unwrap());
        read().unwrap();
    }
    // A lock that is a pipe or a device is not waited for, either.
    let lock = dir.path().join("_commit.lock");
    fs::remove_file(&lock).unwrap();
    fs::rename(&pipe, &lock).unwrap();
    let error = store.add(&counting(2), &keys("1"), &Costs::default()).unwrap_err().to_string();
    assert!(error.contains("commit.lock") && error.contains("remove it"), "{error}");
}

#[test]
fn rows_count_with_their_decoded_size() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut b = ProfileBuilder::new();
    b.sample_type("cpu", "nanoseconds");
    b.sample_type("samples", "count");
    let f = b.function("main.run", "run.go", 7);
    let location = b.location(None, 0, &[b.line(f, 12)]).unwrap();
    for _ in 0..200_000 {
        b.sample(&[location], &[7, 1], &[]).unwrap();
    }
    let profile = b.build("many").unwrap();
    let added = store.add(&profile, &keys("1"), &Costs::default()).unwrap();
    assert!(added.bytes < 40_000, "{}", added.bytes);
    let [stored] = &Partition::new(&store, keys("1")).profiles().unwrap()[..] else { panic!() };
    // Two 8-byte values, one list and one text per sample, plus the pages.
    let min_size = 200_000 * (2 * 8 + 4 + 8 + 16);
    for limit in [10, 100_000, min_size] {
        let error = stored.load(limit).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("--inflated-limit"), "{error}");
    }
    assert!(bytes_of(&stored.load(2 * min_size).unwrap()) == bytes_of(&profile));
    // Even a small profile exceeds a limit of 10 bytes.
    let added = store.add(&counting(1), &keys("2"), &Costs::default()).unwrap();
    let [small] = &Partition::new(&store, keys("2")).profiles().unwrap()[..] else { panic!() };
    assert_eq!(small.id(), added.id);
    assert_eq!(small.load(10).unwrap_err().kind(), ErrorKind::Limit);
}

/// Runs in a separate process to capture its standard error.
#[test]
fn a_panic_of_the_library_is_an_error_and_prints_nothing() {
    const CHILD: &str = "PPROFDIFF_TEST_STORE_PANIC";
    if std::env::var(CHILD).is_ok() {
        for _ in 0..2 {
            let panicked = table::catch_panics::<()>(|| panic!("of the library"));
            assert!(panicked.unwrap_err().to_string().contains("can't be decoded"));
        }
        let other = std::panic::catch_unwind(|| panic!("of another"));
        assert!(other.is_err());
        return;
    }
    let test = "tests::hostile::a_panic_of_the_library_is_an_error_and_prints_nothing";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("of another") && !printed.contains("of the library"), "{printed}");
}
