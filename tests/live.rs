//! Tests with profiles over HTTP and HTTPS, from a real Go server that the tests start: deltas of the live process,
//! URLs instead of files for every verb, and servers that do not answer, or not with a profile. `go` must be installed.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pprofdiff::{LoadOptions, Profile};

struct Server {
    /// The server runs as long as its standard input is open.
    _process: Child,
    http: String,
    https: String,
    certificate: PathBuf,
}

/// Starts one server for all tests of this file.
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
            .arg(corpus())
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

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

fn heap() -> String {
    format!("{}/debug/pprof/heap", server().http)
}

/// Creates an empty folder for output.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a `delta` command with these arguments.
fn command(folder: &Path, args: &[&str]) -> Command {
    verb(folder, &[&["delta"], args].concat())
}

fn verb(folder: &Path, args: &[&str]) -> Command {
    program(env!("CARGO_BIN_EXE_pprofdiff"), folder, args)
}

fn program(program: &str, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).args(args).stdin(Stdio::null());
    // The requests to our own server must not go through a proxy of the machine.
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

/// Checks that a command failed with one line, and returns that line.
fn failure(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "not one line: {stderr}");
    assert!(stderr.starts_with("pprofdiff: "), "{stderr}");
    stderr
}

fn load(path: &Path) -> Profile {
    pprofdiff::open(path, &LoadOptions::default()).unwrap()
}

#[test]
fn a_delta_of_a_live_process_works_over_http() {
    let folder = folder("seconds");
    succeed(&command(&folder, &[&heap(), "--seconds", "1", "-o", "out.pb.gz"]).output().unwrap());
    assert_eq!(files(&folder), ["out.pb.gz"], "the snapshot that was kept is gone again");
    let delta = load(&folder.join("out.pb.gz"));
    let seconds = delta.duration_nanos() as f64 / 1e9;
    assert!((0.9..5.0).contains(&seconds), "{seconds} s");
    // The process allocates a lot per second, but holds little.
    assert!(delta.total(1).unwrap() > 1 << 20 && delta.total(3).unwrap() < 16 << 20);
    assert!(delta.comments().pop().unwrap().starts_with("pprofdiff delta: cumulative alloc_objects alloc_space;"));
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof", "-top", "-sample_index=alloc_space"]);
    let output = pprof.arg(folder.join("out.pb.gz")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("main.allocate"), "{text}");
}

#[test]
fn repeated_deltas_of_a_live_process_work_over_https() {
    let folder = folder("every");
    let url = format!("{}/debug/pprof/heap", server().https);
    let args = [&url, "--every", "200ms", "--count", "3", "-o", "heap-{index}.pb.zst"];
    succeed(&command(&folder, &args).env("SSL_CERT_FILE", &server().certificate).output().unwrap());
    assert_eq!(files(&folder), ["heap-1.pb.zst", "heap-2.pb.zst", "heap-3.pb.zst"]);
    assert!((1..4).all(|i| load(&folder.join(format!("heap-{i}.pb.zst"))).n_samples() > 0));
    // The server's certificate is self-signed.
    let line = failure(&command(&folder, &args).output().unwrap());
    assert!(line.contains("https://127.0.0.1") && line.to_lowercase().contains("certificate"), "{line}");
}

#[test]
fn finished_snapshots_are_kept_if_the_next_one_fails() {
    let folder = folder("kept");
    let url = format!("{}/twice", server().http);
    let output = command(&folder, &[&url, "--every", "100ms", "-o", "{index}.pb.gz"]).output().unwrap();
    let line = failure(&output);
    assert!(line.contains("503 Service Unavailable: out of snapshots"), "{line}");
    assert!(line.contains("the last snapshot is kept in snapshot.pb.gz"), "{line}");
    assert_eq!(files(&folder), ["1.pb.gz", "snapshot.pb.gz"]);
    // The saved snapshot can be the start of another delta.
    let output = command(&folder, &["snapshot.pb.gz", &heap(), "-o", "2.pb.gz"]).output().unwrap();
    succeed(&output);
    assert!(load(&folder.join("2.pb.gz")).n_samples() > 0);
}

#[cfg(target_os = "linux")]
#[test]
fn finished_snapshots_are_kept_on_ctrl_c() {
    let folder = folder("interrupted");
    // The tests may run with Ctrl-C ignored (by nohup, or in the background of a script), and child processes inherit
    // that. `env` restores the default.
    let heeds_it = ["--default-signal=INT", env!("CARGO_BIN_EXE_pprofdiff")];
    let args = ["delta", &heap(), "--seconds", "3600", "-o", "out.pb.gz"];
    let mut child = program("env", &folder, &[&heeds_it[..], &args[..]].concat()).spawn().unwrap();
    let kept = folder.join("out.snapshot.pb.gz");
    let begin = Instant::now();
    while !kept.exists() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no snapshot was kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(files(&folder), ["out.snapshot.pb.gz"]);
    assert!(load(&kept).n_samples() > 0);
}

/// Returns a URL that requires a password.
fn url_with_password(login: &str) -> String {
    format!("{}/closed", server().http.replace("//", &format!("//{login}@")))
}

#[test]
fn goroutines_are_read_in_each_form() {
    let folder = folder("goroutines");
    for form in ["", "?debug=1", "?debug=2"] {
        let url = format!("{}/debug/pprof/goroutine{form}", server().http);
        let output = verb(&folder, &["top", &url, "--sort", "cum", "-n", "1000"]).output().unwrap();
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(table.contains("goroutine (count): ") && table.contains("main.main"), "{form}: {table}");
    }
}

#[test]
fn passwords_in_urls_are_sent_to_the_server() {
    let folder = folder("password");
    succeed(
        &command(&folder, &[&url_with_password("user:secret"), "--seconds", "1", "-o", "out.pb.gz"]).output().unwrap(),
    );
    assert!(load(&folder.join("out.pb.gz")).n_samples() > 0);
}

#[test]
fn every_failure_prints_one_line() {
    let folder = folder("wrong");
    let failure_of = |url: &str, more: &[&str]| {
        let args = [&[url, "--seconds", "1", "-o", "out.pb.gz"], more].concat();
        failure(&command(&folder, &args).output().unwrap())
    };
    let url_of = |path: &str| format!("{}/{path}", server().http);
    let begin = Instant::now();
    let line = failure_of(&url_of("slow"), &["--timeout", "300ms"]);
    assert!(line.contains("/slow: no answer within 0.300 s"), "{line}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(failure_of(&url_of("debug/pprof/none"), &[]).contains("404 Not Found: Unknown profile"));
    assert!(failure_of(&url_of("page"), &[]).contains("this is an HTML page; it says \"<html>Not what"));
    assert!(failure_of(&url_of("cut"), &[]).contains("/cut: "));
    assert!(failure_of(&url_of("debug/pprof/heap"), &["--inflated-limit", "50"]).contains("limit of 50 bytes"));
    assert!(failure_of("http://127.0.0.1:1/heap", &[]).contains("refused"));
    // Profiles without cumulative counters: some URLs are refused without a request, others after the first snapshot.
    // No case waits for a second snapshot.
    let nobody = "http://user:secret@127.0.0.1:1/debug/pprof";
    for path in ["profile", "profile?seconds=60", "goroutine", "goroutineleak", "heap?seconds=30"] {
        let line = failure_of(&format!("{nobody}/{path}"), &[]);
        assert!(line.contains("nothing to subtract") && line.contains("--cumulative TYPE,..."), "{line}");
        assert!(line.contains("http://***@127.0.0.1:1/debug") && !line.contains("secret"), "{line}");
    }
    let hour = |more: &[&str]| {
        let url = url_of("other-name");
        command(&folder, &[&[&url, "--seconds", "3600", "-o", "out.pb.gz"], more].concat())
    };
    let line = failure(&hour(&[]).output().unwrap());
    assert!(line.contains("/other-name: none of its sample types (goroutine) is known to count"), "{line}");
    assert!(line.contains("(--cumulative TYPE,...)"), "{line}");
    assert!(failure(&hour(&["--cumulative", "threads"]).output().unwrap()).contains("there is no sample type"));
    let line = failure_of(&url_with_password("user:wrong-secret"), &[]);
    assert!(line.contains("//***@127.0.0.1") && line.contains("401 Unauthorized"), "{line}");
    assert!(failure_of("http://[", &[]).contains("http://["));
    assert!(failure_of("http://no-such-host.invalid/heap", &[]).contains("http://no-such-host.invalid/heap: "));
    let one = |args: &[&str]| failure(&command(&folder, args).output().unwrap());
    assert!(one(&[&heap(), "-o", "out.pb.gz"]).contains("--seconds 30"));
    assert!(one(&[&heap(), "--every", "1s", "-o", "out.pb.gz"]).contains("{index}"));
    assert!(one(&["a.pb.gz", "b.pb.gz", "--seconds", "3", "-o", "out.pb.gz"]).contains("URL"));
    assert!(one(&[&heap(), "--every", "soon", "-o", "out.pb.gz"]).contains("30s"));
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

/// Returns the URL of a file of the corpus.
fn corpus_url(file: &str) -> String {
    format!("{}/corpus/{file}", server().http)
}

/// Returns the standard output of a command without the names of the two files. Its stderr must be empty.
fn stdout_without_names(output: &Output, names: [&str; 2]) -> String {
    let (text, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!([0, 1].contains(&output.status.code().unwrap()) && stderr.is_empty(), "{stderr}");
    text.replace(names[0], "BASE").replace(names[1], "NEW")
}

#[test]
fn every_verb_accepts_urls_instead_of_files() {
    let folder = folder("verbs");
    let names = ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"];
    let urls = names.map(corpus_url);
    let paths = names.map(|name| corpus().join(name).display().to_string());
    let verbs: [&[&str]; 12] = [
        &["diff"],
        &["top", "--sort", "cum"],
        &["tree", "-n", "5"],
        &["peek", "names"],
        &["list", "names.compare", "--source-path", "."],
        &["stacks", "-n", "5"],
        &["labels"],
        &["info", "--format", "json"],
        &["check", "--fail-on", "total>+5%", "--format", "json"],
        &["batch", "--format", "jsonl", "-n", "3"],
        &["series", "--order", "given", "--format", "json"],
        &["merge", "-o", "-"],
    ];
    for args in verbs {
        let [of_files, of_urls] = [&paths, &urls].map(|[base, new]| {
            let output = verb(&folder, &[args, &[base, new]].concat()).output().unwrap();
            stdout_without_names(&output, [base, new])
        });
        // Files and URLs appear under their own names. All other output is equal.
        assert!(!of_urls.is_empty(), "{args:?}");
        if args[0] == "batch" {
            let rows = |text: &str| text.split_once("\"rows\"").map(|(_, rows)| rows.to_owned());
            assert!(rows(&of_urls).is_some() && rows(&of_urls) == rows(&of_files), "{of_urls}");
        } else {
            assert_eq!(of_files, of_urls, "{args:?}");
        }
    }
    // No verb, a URL combined with a file, and several URLs per side.
    let stdout_of = |args: &[&str]| {
        let output = verb(&folder, args).output().unwrap();
        stdout_without_names(&output, ["", ""].map(|_| "no such name"))
    };
    let rows = |text: &str| text.lines().filter(|l| l.contains("logmill/")).collect::<Vec<_>>().join("\n");
    let usual = rows(&stdout_of(&[&urls[0], &urls[1]]));
    assert!(usual.lines().count() > 3, "{usual}");
    assert_eq!(rows(&stdout_of(&[&paths[0], &urls[1]])), usual);
    assert_eq!(
        rows(&stdout_of(&["--base", &urls[0], &paths[0], "--new", &paths[1], &urls[1]])),
        rows(&stdout_of(&["--base", &paths[0], &paths[0], "--new", &paths[1], &paths[1]]))
    );
    let against = stdout_of(&["series", &urls[1], "--base", &urls[0], "--format", "csv"]);
    assert!(against.lines().count() > 3, "{against}");
    // URL schemes are case-insensitive.
    assert_eq!(rows(&stdout_of(&[&urls[0].replace("http:", "HTTP:"), &urls[1]])), usual);
    // The answer of the server must not be confused with a file error.
    let line = failure(&verb(&folder, &["top", &corpus_url("none.pb.gz")]).output().unwrap());
    assert!(line.contains("/corpus/none.pb.gz: the server answers 404 Not Found"), "{line}");
}

#[test]
fn urls_in_manifests_are_fetched_only_if_that_is_allowed() {
    let folder = folder("manifest");
    let counted = || {
        let mut stream = std::net::TcpStream::connect(server().http.trim_start_matches("http://")).unwrap();
        std::io::Write::write_all(&mut stream, b"GET /count HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer.lines().last().unwrap().parse::<u32>().unwrap()
    };
    let url = format!("{}/counted", server().http.replace("//", "//user:secret@"));
    let file = corpus().join("go-heap.base.pb.gz").display().to_string();
    let manifest = format!("name,base,new\nhere,{file},{file}\nthere,{url},{file}\nboth,{url},{url}\n");
    std::fs::write(folder.join("pairs.csv"), manifest).unwrap();
    let before = counted();
    let output = verb(&folder, &["batch", "pairs.csv", "--format", "jsonl"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(
        stderr.matches("URLs in a manifest, or from an agent, are fetched only with --allow-urls").count(),
        2,
        "{stderr}"
    );
    assert!(stderr.contains("2 of 3 pairs failed") && !stderr.contains("secret"), "{stderr}");
    assert_eq!(counted(), before, "nobody asked");
    let output = verb(&folder, &["batch", "pairs.csv", "--format", "jsonl", "--allow-urls"]).output().unwrap();
    let (text, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && stderr.is_empty() && !text.contains("secret"), "{stderr}");
    assert_eq!((text.lines().count(), counted() - before), (3, 3), "{text}");
}

#[test]
fn https_is_not_redirected_to_http() {
    let folder = folder("redirect");
    let (http, https) = (&server().http, &server().https);
    let heap = |address: &str| format!("{}/debug/pprof/heap", address.split_once("//").unwrap().1);
    let top = |url: &str| verb(&folder, &["top", url]).env("SSL_CERT_FILE", &server().certificate).output().unwrap();
    let line = failure(&top(&format!("{https}/to-http/{}", heap(http))));
    assert!(line.contains("the server redirects from https to http, which is not followed"), "{line}");
    for url in [
        format!("{https}/to-https/{}", heap(https)),
        format!("{http}/to-https/{}", heap(https)),
        format!("{http}/to-http/{}", heap(http)),
    ] {
        let output = top(&url);
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // A second redirect is refused, too.
    let line = failure(&top(&format!("{https}/to-https/{}", heap(https).replace("debug/pprof/heap", "to-http/x/y"))));
    assert!(line.contains("which is not followed"), "{line}");
}

#[test]
fn every_verb_applies_size_and_time_limits_to_urls() {
    let folder = folder("limits");
    let url_of = |path: &str| format!("{}/{path}", server().http);
    let file = corpus().join("go-heap.base.pb.gz").display().to_string();
    for args in [&["top"][..], &["diff", &file], &["merge", &file, "-o", "out.pb.gz"], &["series", &file]] {
        let failure_of =
            |path: &str, more: &[&str]| failure_of_single_url(&folder, &[args, &[&url_of(path)], more].concat());
        assert!(failure_of("slow", &["--timeout", "300ms"]).contains("/slow: no answer within 0.300 s"));
        let line = failure_of("endless", &["--inflated-limit", "1000000"]);
        assert!(line.contains("/endless: the answer is longer than the limit of 1000000 bytes"), "{line}");
        assert!(failure_of("endless-error", &[]).contains("418 I'm a teapot: too much to say"));
        let line = failure_of("debug/pprof/heap?gc=1", &["--inflated-limit", "9000"]);
        assert!(line.contains("limit"), "{line}");
    }
    // The limit from the environment applies to answers of servers.
    let output = verb(&folder, &["top", &url_of("endless")]).env("PPROFDIFF_MAX_INFLATED", "70000").output().unwrap();
    assert!(failure(&output).contains("limit of 70000 bytes"));
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

/// Returns the error line for the only URL of a command. Verbs with many inputs print a second line with counts.
fn failure_of_single_url(folder: &Path, args: &[&str]) -> String {
    let output = verb(folder, args).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|l| !l.contains("1 of 2 builds failed")).collect();
    assert_eq!(lines.len(), 1, "{args:?}: {stderr}");
    lines[0].to_owned()
}
