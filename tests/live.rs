//! Deltas of a live process: a real Go server, started here, is sampled over http and https; and what happens when it
//! does not answer, or not with a profile. `go` must be installed.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pprofdiff::{LoadOptions, Profile};

struct Server {
    /// Its standard input is open as long as it is to run.
    _process: Child,
    http: String,
    https: String,
    certificate: PathBuf,
}

/// One server for all tests of this file.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
        std::fs::create_dir_all(&folder).unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live/main.go");
        let built = Command::new("go").arg("build").arg("-o").arg(folder.join("server")).arg(program).output();
        let built = built.unwrap_or_else(|e| panic!("cannot run `go`: {e}; install Go 1.24 or later"));
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let certificate = folder.join("certificate.pem");
        let mut process = Command::new(folder.join("server"))
            .arg(&certificate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (http, https) = line.trim().split_once(' ').unwrap();
        Server { http: http.to_owned(), https: https.to_owned(), certificate, _process: process }
    })
}

fn heap() -> String {
    format!("{}/debug/pprof/heap", server().http)
}

/// An empty folder to write to.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.current_dir(folder).arg("delta").args(args).stdin(Stdio::null());
    // A proxy of the machine's is not for our own server.
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE"] {
        command.env_remove(name);
    }
    command
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn succeed(output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty() && output.stdout.is_empty(), "{stderr}");
}

/// The one line of a run that must fail.
fn failure(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "not one line: {stderr}");
    assert!(stderr.starts_with("pprofdiff: "), "{stderr}");
    stderr
}

fn load(path: &Path) -> Profile {
    Profile::open(path, &LoadOptions::default()).unwrap()
}

#[test]
fn a_live_process_is_sampled_over_http() {
    let folder = folder("seconds");
    succeed(&command(&folder, &[&heap(), "--seconds", "1", "-o", "out.pb.gz"]).output().unwrap());
    assert_eq!(files(&folder), ["out.pb.gz"], "the snapshot that was kept is gone again");
    let delta = load(&folder.join("out.pb.gz"));
    let seconds = delta.duration_nanos() as f64 / 1e9;
    assert!((0.9..5.0).contains(&seconds), "{seconds} s");
    // It allocates a lot in a second, and holds little.
    assert!(delta.total(1).unwrap() > 1 << 20 && delta.total(3).unwrap() < 16 << 20);
    assert!(delta.comments().pop().unwrap().starts_with("pprofdiff delta: cumulative alloc_objects alloc_space;"));
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof", "-top", "-sample_index=alloc_space"]);
    let output = pprof.arg(folder.join("out.pb.gz")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("main.allocate"), "{text}");
}

#[test]
fn a_live_process_is_sampled_again_and_again_over_https() {
    let folder = folder("every");
    let url = format!("{}/debug/pprof/heap", server().https);
    let args = [&url, "--every", "200ms", "--count", "3", "-o", "heap-{index}.pb.zst"];
    succeed(&command(&folder, &args).env("SSL_CERT_FILE", &server().certificate).output().unwrap());
    assert_eq!(files(&folder), ["heap-1.pb.zst", "heap-2.pb.zst", "heap-3.pb.zst"]);
    assert!((1..4).all(|i| load(&folder.join(format!("heap-{i}.pb.zst"))).n_samples() > 0));
    // A certificate that nobody signed.
    let line = failure(&command(&folder, &args).output().unwrap());
    assert!(line.contains("https://127.0.0.1") && line.to_lowercase().contains("certificate"), "{line}");
}

#[test]
fn what_was_taken_is_kept_when_the_next_one_fails() {
    let folder = folder("kept");
    let url = format!("{}/twice", server().http);
    let output = command(&folder, &[&url, "--every", "100ms", "-o", "{index}.pb.gz"]).output().unwrap();
    let line = failure(&output);
    assert!(line.contains("503 Service Unavailable: out of snapshots"), "{line}");
    assert!(line.contains("the last snapshot is kept in snapshot.pb.gz"), "{line}");
    assert_eq!(files(&folder), ["1.pb.gz", "snapshot.pb.gz"]);
    // And one can go on with it.
    let output = command(&folder, &["snapshot.pb.gz", &heap(), "-o", "2.pb.gz"]).output().unwrap();
    succeed(&output);
    assert!(load(&folder.join("2.pb.gz")).n_samples() > 0);
}

#[cfg(unix)]
#[test]
fn what_was_taken_is_kept_when_ctrl_c_comes() {
    let folder = folder("interrupted");
    let mut child = command(&folder, &[&heap(), "--seconds", "3600", "-o", "out.pb.gz"]).spawn().unwrap();
    let kept = folder.join("out.snapshot.pb.gz");
    let begin = Instant::now();
    while !kept.exists() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no snapshot was kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
    assert_eq!(files(&folder), ["out.snapshot.pb.gz"]);
    assert!(load(&kept).n_samples() > 0);
}

/// The URL that asks for a password.
fn closed(login: &str) -> String {
    format!("{}/closed", server().http.replace("//", &format!("//{login}@")))
}

#[test]
fn passwords_are_sent() {
    let folder = folder("password");
    succeed(&command(&folder, &[&closed("user:secret"), "--seconds", "1", "-o", "out.pb.gz"]).output().unwrap());
    assert!(load(&folder.join("out.pb.gz")).n_samples() > 0);
}

#[test]
fn whatever_goes_wrong_is_one_clear_line() {
    let folder = folder("wrong");
    let ask = |url: &str, more: &[&str]| {
        let args = [&[url, "--seconds", "1", "-o", "out.pb.gz"], more].concat();
        failure(&command(&folder, &args).output().unwrap())
    };
    let at = |path: &str| format!("{}/{path}", server().http);
    let begin = Instant::now();
    let line = ask(&at("slow"), &["--timeout", "300ms"]);
    assert!(line.contains("/slow: no answer within 0.300 s"), "{line}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(ask(&at("debug/pprof/none"), &[]).contains("404 Not Found: Unknown profile"));
    assert!(ask(&at("page"), &[]).contains("this is not a profile"));
    assert!(ask(&at("cut"), &[]).contains("/cut: "));
    assert!(ask(&at("debug/pprof/heap?debug=1"), &[]).contains("convert it first"));
    assert!(ask(&at("debug/pprof/heap"), &["--inflated-limit", "50"]).contains("limit of 50 bytes"));
    assert!(ask("http://127.0.0.1:1/heap", &[]).contains("refused"));
    // What can't be subtracted: by its URL nothing is asked for; else the first snapshot tells. Nobody waits.
    let nobody = "http://user:secret@127.0.0.1:1/debug/pprof";
    for path in ["profile", "profile?seconds=60", "goroutine", "heap?seconds=30"] {
        let line = ask(&format!("{nobody}/{path}"), &[]);
        assert!(line.contains("nothing to subtract") && line.contains("--cumulative TYPE,..."), "{line}");
        assert!(line.contains("http://***@127.0.0.1:1/debug") && !line.contains("secret"), "{line}");
    }
    let hour = |more: &[&str]| {
        let url = at("other-name");
        command(&folder, &[&[&url, "--seconds", "3600", "-o", "out.pb.gz"], more].concat())
    };
    let line = failure(&hour(&[]).output().unwrap());
    assert!(line.contains("/other-name: none of its sample types (goroutine) is known to count"), "{line}");
    assert!(line.contains("(--cumulative TYPE,...)"), "{line}");
    assert!(failure(&hour(&["--cumulative", "threads"]).output().unwrap()).contains("there is no sample type"));
    let line = ask(&closed("user:wrong-secret"), &[]);
    assert!(line.contains("//***@127.0.0.1") && line.contains("401 Unauthorized"), "{line}");
    assert!(ask("http://[", &[]).contains("http://["));
    assert!(ask("http://no-such-host.invalid/heap", &[]).contains("http://no-such-host.invalid/heap: "));
    let one = |args: &[&str]| failure(&command(&folder, args).output().unwrap());
    assert!(one(&[&heap(), "-o", "out.pb.gz"]).contains("--seconds 30"));
    assert!(one(&[&heap(), "--every", "1s", "-o", "out.pb.gz"]).contains("{index}"));
    assert!(one(&["a.pb.gz", "b.pb.gz", "--seconds", "3", "-o", "out.pb.gz"]).contains("URL"));
    assert!(one(&[&heap(), "--every", "soon", "-o", "out.pb.gz"]).contains("30s"));
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}
