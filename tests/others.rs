//! Tests of files that are not profiles: the error names their kind, and the command that it advises gives a profile.

use std::path::{Path, PathBuf};
use std::process::Command;

use pprofdiff::{ErrorKind, LoadOptions};

use crate::{oracle, tools};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn shell(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_advised_command_makes_a_profile() {
    let folder = folder("packed");
    std::fs::copy(oracle::corpus().join("go-heap.base.pb.gz"), folder.join("profile")).unwrap();
    let total = |path: &Path| pprofdiff::open(path, &LoadOptions::default()).unwrap().total(0);
    let expected = total(&folder.join("profile"));
    let zip = "python3 -c 'import zipfile; zipfile.ZipFile(\"it is.zip\", \"w\").write(\"profile\")'";
    for (tool, script, file, description) in [
        ("unzip", zip, "it is.zip", "a zip archive"),
        ("tar", "tar -cf it.tar profile", "it.tar", "a tar archive"),
        ("xz", "xz -k -c profile > it.xz", "it.xz", "compressed with xz"),
        ("bzip2", "bzip2 -k -c profile > it.bz2", "it.bz2", "compressed with bzip2"),
        ("gzip", "gzip -c profile > it.gz", "it.gz", "compressed twice"),
        ("lz4", "lz4 -q -c profile > it.lz4", "it.lz4", "compressed with lz4"),
    ] {
        let package = if tool == "xz" { "xz-utils" } else { tool };
        if !tools::have(tool, "--help", package, "others::the_advised_command_makes_a_profile") {
            continue;
        }
        shell(&folder, script);
        std::fs::remove_file(folder.join("profile")).unwrap();
        let error = open_below(&folder, file);
        assert!(error.to_string().contains(description), "{error}");
        shell(&folder, error.advice().unwrap());
        assert_eq!(total(&folder.join("profile")), expected, "{file}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns the error for a file, with the advice adapted to run inside the folder.
fn open_below(folder: &Path, file: &str) -> pprofdiff::Error {
    let bytes = std::fs::read(folder.join(file)).unwrap();
    let error = pprofdiff::from_bytes(file, &bytes, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherFormat, "{error}");
    error
}

#[test]
fn the_advice_for_go_traces_gives_a_profile() {
    let folder = folder("trace");
    let program = "package main\n\nimport (\n\t\"os\"\n\t\"runtime/trace\"\n\t\"time\"\n)\n\nfunc main() {\n\ttrace.Start(os.Stdout)\n\t\
                   done := make(chan bool)\n\tfor i := 0; i < 4; i++ {\n\t\tgo func() { time.Sleep(time.Millisecond); done <- true }()\n\t}\n\t\
                   for i := 0; i < 4; i++ {\n\t\t<-done\n\t}\n\ttrace.Stop()\n}\n";
    std::fs::write(folder.join("main.go"), program).unwrap();
    shell(&folder, "go run main.go > it.trace");
    let error = open_below(&folder, "it.trace");
    assert!(error.to_string().contains("an execution trace of Go"), "{error}");
    // Whether goroutines wait for the scheduler depends on chance. They always wait for each other.
    shell(&folder, &error.advice().unwrap().replace("sched", "sync"));
    let profile = pprofdiff::open(folder.join("profile.pb.gz"), &LoadOptions::default()).unwrap();
    assert!(profile.total(0) > Some(0));
}

#[test]
fn each_kind_of_file_is_named_in_the_error() {
    let tar = [&[b'a'; 257][..], b"ustar\0"].concat();
    // A packet with a time, and the mark that a tracing service writes.
    let mark = b"\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79";
    let perfetto = [&b"\x0a\x17\x40\x05\x50\x01\xa2\x02\x10"[..], mark].concat();
    for (bytes, description, advice) in [
        (&b"2ELIFREP\0"[..], "the other byte order; have perf write it as text", "perf script -i in > profile.txt"),
        (b"go 1.26 trace\0\0\0\x01", "an execution trace of Go", "go tool trace -pprof=sched in > profile.pb.gz"),
        (b"JAVA PROFILE 1.0.2\0", "a heap dump of Java", ""),
        (b"MOJ\x03", "samples of Austin in its binary form", "mojo2austin in profile.austin"),
        (b"memray\0\x0a", "a profile of memray", ""),
        (b"File: main\nType: cpu\nShowing nodes\n      flat  flat%   sum%\n", "a report of go tool pprof", ""),
        (b"\xff\xfea\0 \x001\0", "text in UTF-16; save it as UTF-8", "iconv -f utf-16 -t utf-8 in > profile.txt"),
        (b"PK\x03\x04\x14\0", "a zip archive", "unzip -p in > profile"),
        (&tar, "a tar archive", "tar -xf in"),
        (b"\x7fELF\x02\x01\x01", "a program", ""),
        (b"\x89PNG\r\n\x1a\n", "a picture", ""),
        (b"%PDF-1.7\n", "a picture", ""),
        (b"<?xml version=\"1.0\"?>\n<svg xmlns=\"x\">", "an SVG picture", ""),
        (b"\n<!DOCTYPE HTML>\n<title>404</title>", "an HTML page; it says \"404\"; if it came from a server", ""),
        (b"<?xml version=\"1.0\"?>\n<a/>", "XML", ""),
        (b"{\"meta\":{\"stackwalk\":1}}", "Firefox's raw format", ""),
        (b"\xdc\xdfJSLB\x01\0", "the Firefox profiler in its binary form", ""),
        (b"{\"traceEvents\":[]}", "a trace of Chrome", ""),
        (b"[{\"name\":\"a\",\"ph\":\"I\",\"ts\":1}]", "a trace of Chrome", ""),
        (
            b"HCAT\x01\0\0\0",
            "profiling.sampling in its binary",
            "python -m profiling.sampling replay --collapsed -o profile.txt in",
        ),
        (
            b"\x04\x08{\x10:\x0cversionf\x081.2:\x0fgc_samplesi\x06",
            "a dump of stackprof",
            "stackprof --stackcollapse in > profile.txt",
        ),
        (b"{\"version\":1.2,\"gc_samples\":1,\"missed_samples\":0}", "stackprof's report as JSON", ""),
        (b"Nettrace\x14\0\0\0!FastSerialization.1", "a trace of .NET", "dotnet-trace convert in --format Speedscope"),
        (b"SIMPLEPERF\x01\0X\0", "a report of simpleperf; convert the recording with simpleperf's own converter", ""),
        (
            b"Cmdline: /bin/simpleperf record\nArch: arm64\nEvent: cpu-cycles\nEvent count: 5\n",
            "a report of simpleperf",
            "",
        ),
        (
            b"v 10400 3\nX ./a 1\nI 1000 5e\ns 1c /a\n",
            "a recording of heaptrack",
            "heaptrack_print --flamegraph-cost-type peak -F profile.txt in",
        ),
        (&perfetto, "a trace of Perfetto", "traceconv profile in"),
        (b"<html><title>\n Sign in</title>", "an HTML page; it says \"Sign in\"; if it came from a server", ""),
        (b"{\"error\": \"not found\", \"x\": 1}", "it begins \"{\\\"error\\\": \\\"not found\\\"", ""),
        (b" [1, 2]", "JSON that is not recognised", ""),
        (b"{\"error\": \"not found\"}", "JSON that is not recognised", ""),
    ] {
        let error = pprofdiff::from_bytes("in", bytes, &LoadOptions::default()).unwrap_err();
        let shown = error.to_string();
        assert!(error.kind() == ErrorKind::OtherFormat && shown.contains(description), "{shown}");
        assert_eq!(error.advice().unwrap_or_default(), advice, "{shown}");
        assert!(!shown.contains('\n'), "{shown}");
    }
    // Prose and files that only resemble these kinds are not named.
    for bytes in [&b"{x}"[..], b"[section]\na=b\n", b"<3 profiles", b"File: main\n", b"goroutines\n"] {
        let error = pprofdiff::from_bytes("in", bytes, &LoadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }
    let empty = pprofdiff::from_bytes("in", b"", &LoadOptions::default()).unwrap_err();
    assert!(empty.to_string().contains("empty"), "{empty}");
}
