//! Tests of files in every state. A written file is complete or does not exist; a file that cannot be read or written
//! gives one line and exit code 2.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn corpus(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file).display().to_string()
}

fn story() -> [String; 2] {
    [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")]
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.stdin(Stdio::null());
    command
}

/// Creates an empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Checks that a command failed with exit code 2, and returns its error line.
fn failure(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "not one line: {stderr}");
    stderr
}

fn permissions_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let [base, new] = story();
    let directory = directory("replaced");
    let (target, link) = (directory.join("diff.pb.gz"), directory.join("link.pb.gz"));
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("diff.pb.gz", &link).unwrap();
    // A reader that has the old file open still sees the old content.
    let mut reader = fs::File::open(&target).unwrap();
    let done = command().args([&base, &new, "--format", "pprof", "-o"]).arg(&link).status().unwrap();
    assert!(done.success());
    let mut old = String::new();
    reader.read_to_string(&mut old).unwrap();
    assert_eq!(old, "old");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(permissions_of(&target), 0o640);
    assert!(fs::read(&target).unwrap().starts_with(&[0x1f, 0x8b]));
    assert_eq!(names(&directory), ["diff.pb.gz", "link.pb.gz"]);
    // A new file has the default permissions.
    let (fresh, other) = (directory.join("fresh.json"), directory.join("other"));
    assert!(command().args([&base, &new, "--format", "json", "-o"]).arg(&fresh).status().unwrap().success());
    fs::write(&other, "").unwrap();
    assert_eq!(permissions_of(&fresh), permissions_of(&other));
}

#[test]
fn writing_through_a_dangling_link_creates_its_target() {
    let [base, new] = story();
    let directory = directory("dangling");
    let path_to = |name: &str| directory.join(name);
    fs::create_dir(path_to("out")).unwrap();
    let links = [("link", "out/new.json"), ("chain", "far"), ("far", "./out/../out/far.json")];
    for (link, to) in links.into_iter().chain([("lost", "none/x"), ("loop", "loop2"), ("loop2", "loop")]) {
        symlink(to, path_to(link)).unwrap();
    }
    let run =
        |path: &str| command().args([&base, &new, "--format", "json", "-o", path]).current_dir(&directory).output();
    for (link, target) in [("link", "new.json"), ("chain", "far.json")] {
        assert!(run(link).unwrap().status.success());
        assert!(fs::read_to_string(path_to("out").join(target)).unwrap().starts_with('{'), "{link}");
    }
    let line = failure(&run("lost").unwrap());
    assert!(line.contains("lost: No such file or directory"), "{line}");
    let line = failure(&run("loop").unwrap());
    assert!(line.contains("loop: Too many levels of symbolic links"), "{line}");
    // The links are unchanged.
    assert_eq!(names(&directory), ["chain", "far", "link", "loop", "loop2", "lost", "out"]);
    assert!(names(&directory).iter().filter(|n| *n != "out").all(|n| path_to(n).is_symlink()));
    assert_eq!(names(&path_to("out")), ["far.json", "new.json"]);
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_temporary_file() {
    let [base, new] = story();
    let directory = directory("full");
    let target = directory.join("page.html");
    fs::write(&target, "old").unwrap();
    // Simulates a full disk: no file may grow beyond 8 blocks (of 512 or 1024 bytes).
    let limited = "ulimit -f 8; exec \"$@\"";
    for (file, ignored) in [(&target, ""), (&directory.join("new.html"), "trap '' XFSZ; ")] {
        let mut run = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_pprofdiff");
        run.args(["-c", &format!("{ignored}{limited}"), "sh", program, &base, &new, "--format", "html", "-o"]);
        let line = failure(&run.arg(file).output().unwrap());
        assert!(line.contains(&file.display().to_string()) && line.contains("too large"), "{line}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(names(&directory), ["page.html"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn devices_are_written_directly() {
    let [base, new] = story();
    let line = failure(&command().args([&base, &new, "--format", "json", "-o", "/dev/full"]).output().unwrap());
    assert!(line.contains("/dev/full: No space left on device"), "{line}");
    assert!(command().args([&base, &new, "-o", "/dev/null"]).status().unwrap().success());
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let to_stdout = command().args([&base, &new, "--format", "json"]).stdout(full).stderr(Stdio::piped()).spawn();
    let line = failure(&to_stdout.unwrap().wait_with_output().unwrap());
    assert!(line.contains("No space left on device"), "{line}");
}

#[test]
fn unwritable_outputs_are_one_line_errors() {
    let [base, new] = story();
    let directory = directory("refused");
    let run = |path: &Path| failure(&command().args([&base, &new, "-o"]).arg(path).output().unwrap());
    let line = run(&directory);
    assert!(line.contains("directory"), "{line}");
    let line = run(&directory.join("no/such"));
    assert!(line.contains("/no does not exist; create it first"), "{line}");
    assert!(names(&directory).is_empty());
    // A place where even root cannot create files.
    if cfg!(target_os = "linux") {
        let line = run(Path::new("/sys/pprofdiff.txt"));
        assert!(line.contains("/sys/pprofdiff.txt: "), "{line}");
    }
}

#[test]
fn named_pipes_are_read_and_written() {
    let [base, new] = story();
    let directory = directory("fifo");
    let (inlet, outlet) = (directory.join("in"), directory.join("out"));
    assert!(Command::new("mkfifo").args([&inlet, &outlet]).status().unwrap().success());
    let mut run = command().arg(&base).arg(&inlet).args(["--format", "json", "-o"]).arg(&outlet).spawn().unwrap();
    let writer = std::thread::spawn(move || fs::write(inlet, fs::read(new).unwrap()).unwrap());
    let text = fs::read_to_string(&outlet).unwrap();
    assert!(run.wait().unwrap().success());
    writer.join().unwrap();
    assert!(text.starts_with('{') && text.ends_with("}\n"), "{} bytes", text.len());
    assert_eq!(names(&directory), ["in", "out"]);
}

#[test]
fn a_directory_as_input_is_an_error() {
    let [base, _] = story();
    let line = failure(&command().arg(&base).arg(directory("input")).output().unwrap());
    assert!(line.contains("directory"), "{line}");
}

#[test]
fn a_file_that_changes_during_reading_is_complete_or_an_error() {
    let bytes = fs::read(corpus("story-cpu.new.pb.gz")).unwrap();
    let options = pprofdiff::LoadOptions::default();
    let samples = pprofdiff::from_bytes("", &bytes, &options).unwrap().n_samples();
    let path = directory("changing").join("growing.pb.gz");
    let (mut whole, mut cut_off) = (0, 0);
    let writing = {
        let (bytes, path) = (bytes.clone(), path.clone());
        std::thread::spawn(move || {
            for round in 0..20 {
                let mut file = fs::File::create(&path).unwrap();
                for part in bytes.chunks(4096) {
                    file.write_all(part).unwrap();
                    std::thread::yield_now();
                }
                // In half of the rounds, the file also shrinks during reading.
                file.set_len(if round % 2 == 0 { bytes.len() as u64 } else { 1000 }).unwrap();
            }
            fs::write(&path, &bytes).unwrap();
        })
    };
    loop {
        let last = writing.is_finished();
        match pprofdiff::open(&path, &options) {
            Ok(profile) => {
                assert_eq!(profile.n_samples(), samples);
                whole += 1;
            }
            Err(e) => {
                assert!(!last && !e.to_string().contains('\n'), "{e}");
                cut_off += 1;
            }
        }
        if last {
            break;
        }
    }
    writing.join().unwrap();
    assert!(whole > 0, "{whole} whole, {cut_off} cut off");
}

#[test]
#[cfg(target_os = "linux")]
fn help_on_a_full_device_is_an_error() {
    for args in [&["--help"][..], &["-h"], &["--version"], &["top", "--help"], &["help"], &["completions", "bash"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let line = failure(&command().args(args).stdout(full).stderr(Stdio::piped()).output().unwrap());
        assert!(line.contains("No space left on device"), "{args:?}: {line}");
        // A closed pipe is not an error.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(command().args(args).stdout(writer).status().unwrap().success(), "{args:?}");
    }
}

#[test]
fn an_input_is_never_overwritten() {
    let ([base, new], directory) = (story(), directory("over"));
    fs::copy(base, directory.join("a.pb.gz")).unwrap();
    fs::copy(new, directory.join("b.pb.gz")).unwrap();
    fs::hard_link(directory.join("a.pb.gz"), directory.join("hard.pb.gz")).unwrap();
    symlink("a.pb.gz", directory.join("soft.pb.gz")).unwrap();
    let run = |args: &[&str]| command().current_dir(&directory).args(args).output().unwrap();
    let content = || ["a.pb.gz", "b.pb.gz"].map(|file| fs::read(directory.join(file)).unwrap());
    let before = content();
    fs::write(directory.join("m.csv"), "base,new\na.pb.gz,b.pb.gz\n").unwrap();
    fs::create_dir(directory.join("builds")).unwrap();
    fs::create_dir(directory.join("base")).unwrap();
    fs::create_dir(directory.join("sub")).unwrap();
    for folder in ["base", "builds"] {
        fs::hard_link(directory.join("b.pb.gz"), directory.join(folder).join("1.pb.gz")).unwrap();
        fs::copy(directory.join("a.pb.gz"), directory.join(folder).join("2.pb.gz")).unwrap();
    }
    for (args, output) in [
        (&["a.pb.gz", "b.pb.gz", "--format", "pprof"][..], "a.pb.gz"),
        (&["a.pb.gz", "b.pb.gz", "--format", "pprof"], "sub/../b.pb.gz"),
        (&["a.pb.gz", "b.pb.gz", "--format", "json"], "hard.pb.gz"),
        (&["a.pb.gz", "b.pb.gz", "--format", "json"], "soft.pb.gz"),
        (&["hard.pb.gz", "b.pb.gz"], "a.pb.gz"),
        (&["top", "soft.pb.gz", "--format", "json"], "a.pb.gz"),
        (&["--base", "b.pb.gz", "--new", "b.pb.gz", "a.pb.gz", "--format", "text"], "a.pb.gz"),
        (&["list", ".", "a.pb.gz", "b.pb.gz", "--format", "text"], "b.pb.gz"),
        (&["info", "a.pb.gz", "--format", "text"], "a.pb.gz"),
        (&["raw", "a.pb.gz"], "a.pb.gz"),
        (&["comments", "a.pb.gz"], "a.pb.gz"),
        (&["merge", "b.pb.gz", "a.pb.gz"], "a.pb.gz"),
        (&["convert", "a.pb.gz"], "a.pb.gz"),
        (&["convert", "a.pb.gz", "--format", "folded"], "hard.pb.gz"),
        (&["delta", "a.pb.gz", "b.pb.gz"], "a.pb.gz"),
        (&["delta", "b.pb.gz", "a.pb.gz", "builds/2.pb.gz"], "builds/{index}.pb.gz"),
        (&["explain", "a.pb.gz", "b.pb.gz", "--format", "text"], "a.pb.gz"),
        (&["explain", "b.pb.gz", "b.pb.gz", "--noise", "a.pb.gz", "--format", "text"], "a.pb.gz"),
        (&["check", "a.pb.gz", "b.pb.gz", "--fail-on", "total > +5%", "--format", "text"], "a.pb.gz"),
        (&["check", "a.pb.gz", "b.pb.gz", "--fail-on", "total > +5%", "--report"], "b.pb.gz"),
        (
            &["check", "--baseline", "store", "--store", "b.pb.gz", "--fail-on", "total > +5%", "--format", "text"],
            "b.pb.gz",
        ),
        (&["batch", "base", "builds", "--format", "csv"], "builds/1.pb.gz"),
        (&["batch", "base/*.pb.gz", "builds/*.pb.gz", "--format", "csv"], "b.pb.gz"),
        (&["batch", "m.csv", "--format", "csv"], "a.pb.gz"),
        (&["batch", "m.csv", "--format", "csv"], "m.csv"),
        (&["series", "a.pb.gz", "b.pb.gz", "--format", "csv"], "b.pb.gz"),
        (&["series", "builds/*.pb.gz", "--format", "csv"], "b.pb.gz"),
        (&["series", "b.pb.gz", "b.pb.gz", "--base", "a.pb.gz", "--format", "csv"], "a.pb.gz"),
    ] {
        let last: &[&str] = if args.ends_with(&["--report"]) { &[output] } else { &["-o", output] };
        let output_of = run(&[args, last].concat());
        let line = failure(&output_of);
        let is_reported = line.contains("is also an input") && line.contains("choose another output file");
        assert!(is_reported && output_of.stdout.is_empty(), "{args:?} {output}: {line}");
        assert_eq!(content(), before, "{args:?} {output}");
    }
    assert_eq!(fs::read_to_string(directory.join("m.csv")).unwrap(), "base,new\na.pb.gz,b.pb.gz\n");
    assert_eq!(names(&directory), ["a.pb.gz", "b.pb.gz", "base", "builds", "hard.pb.gz", "m.csv", "soft.pb.gz", "sub"]);
    // Standard input can be the output file, too.
    let input = fs::File::open(directory.join("a.pb.gz")).unwrap();
    let merged =
        command().current_dir(&directory).args(["merge", "-", "b.pb.gz", "-o", "a.pb.gz"]).stdin(input).output();
    assert!(failure(&merged.unwrap()).contains("is also an input"));
    assert_eq!(content(), before);
    // A device is not replaced, and a copy of an input is a different file.
    assert!(run(&["convert", "a.pb.gz", "--format", "pprof", "-o", "/dev/null"]).status.success());
    assert!(run(&["convert", "a.pb.gz", "-o", "base/2.pb.gz"]).status.success());
    assert!(run(&["batch", "base", "builds", "--format", "csv", "-o", "base/out.csv"]).status.code() == Some(0));
}
