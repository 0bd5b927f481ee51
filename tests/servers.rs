//! Tests of profiles that are queried from servers. Recorded answers of a real Pyroscope (`tests/servers/pyroscope.py
//! --write`) must give the profiles that it had received. Other tests use servers that are slow, endless, redirecting
//! or not profile servers. All servers run in this process.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// A request as received: its first line and headers, and its body.
#[derive(Clone)]
pub struct ReceivedRequest {
    pub head: String,
    body: Vec<u8>,
}

/// A local server that answers each request in its own thread, and keeps the requests.
pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    pub fn new(answer: impl Fn(&ReceivedRequest, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, kept, answer) = (stream.unwrap(), kept.clone(), answer.clone());
                std::thread::spawn(move || {
                    let Some(request) = read_request(&stream) else { return };
                    kept.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Server { port, requests }
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    fn address(&self, rest: &str) -> String {
        format!("pyroscope://127.0.0.1:{}{rest}", self.port)
    }
}

fn read_request(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { head, body })
}

pub fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    // The client may close the connection early, so errors are ignored.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// Starts a server that replays the recorded answers of Pyroscope. Returns it with the recorded time window.
fn start_recorded_server() -> (Server, String, u64) {
    let folder = corpus().join("servers");
    let all: Value = serde_json::from_slice(&std::fs::read(folder.join("pyroscope.json")).unwrap()).unwrap();
    let (from, until) = (all["from"].as_u64().unwrap(), all["until"].as_u64().unwrap());
    let server = Server::new(move |request, stream| {
        let path = request.head.split(' ').nth(1).unwrap();
        let question: String = request.body.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = |e: &&Value| e["path"] == path && e["question"] == question.as_str();
        let Some(exchange) = all["exchanges"].as_array().unwrap().iter().find(is_it) else {
            return send(stream, "500 Not Recorded", "", format!("not recorded: {path} {question}").as_bytes());
        };
        let kind = format!("Content-Type: {}\r\n", exchange["content_type"].as_str().unwrap());
        let (packed, body) = match exchange["file"].as_str() {
            Some(file) => ("Content-Encoding: gzip\r\n", std::fs::read(folder.join(file)).unwrap()),
            None => ("", exchange["answer"].as_str().unwrap().as_bytes().to_vec()),
        };
        send(stream, &format!("{} Recorded", exchange["status"]), &format!("{kind}{packed}"), &body);
    });
    (server, format!("from={from}&until={until}"), until)
}

fn selector(version: &str) -> String {
    format!("{{service_name=\"shop\", version=~\"{version}|x{{2,3}}\",zone!=`a \"b\"`}}")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.current_dir(corpus()).args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        if text.ends_with("_proxy") || text.starts_with("pprofdiff_") {
            command.env_remove(name);
        }
    }
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn succeed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that a command failed with one line, and returns that line.
pub fn failure(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    stderr
}

/// Returns the total, and the flat values of functions by name, sorted. Go's type parameters are removed from names,
/// because Pyroscope omits them and thus merges such functions.
fn flat(args: &[&str]) -> (i64, Vec<(String, i64)>) {
    let report: Value =
        serde_json::from_str(&succeed(&[&["top"], args, &["-n", "0", "--format", "json"]].concat())).unwrap();
    let name = |row: &Value| {
        let name = row["name"].as_str().unwrap();
        match (name.find("[go.shape."), name.rfind(']')) {
            (Some(begin), Some(end)) => format!("{}{}", &name[..begin], &name[end + 1..]),
            _ => name.to_owned(),
        }
    };
    let rows = report["rows"].as_array().unwrap().iter();
    let mut rows: Vec<(String, i64)> = rows.map(|row| (name(row), row["flat"].as_i64().unwrap())).collect();
    rows.sort();
    rows.dedup_by(|again, first| {
        again.0 == first.0 && {
            first.1 += again.1;
            true
        }
    });
    rows.retain(|(_, flat)| *flat != 0);
    (report["total"].as_i64().unwrap(), rows)
}

#[test]
fn pyroscope_returns_the_profiles_that_it_received() {
    let (server, window, _) = start_recorded_server();
    let pairs =
        [("story-cpu", "cpu"), ("story-cpu", "samples"), ("go-heap", "alloc_space"), ("go-heap", "inuse_objects")];
    for (pair, kind) in pairs {
        for (side, version) in [("base", "v1"), ("new", "v2")] {
            let of_file = flat(&[&format!("{pair}.{side}.pb.gz"), "--sample-type", kind]);
            let of_server = flat(&[&server.address(&format!("/{}?type={kind}&{window}", selector(version)))]);
            assert!(of_file.1.len() > 5, "{of_file:?}");
            assert_eq!(of_file, of_server, "{pair} {side} {kind}");
        }
    }
    // Both sides are queries.
    let [base, new] = ["v1", "v2"].map(|version| server.address(&format!("/{}?type=cpu&{window}", selector(version))));
    let verdict = |base: &str, new: &str| {
        let text = succeed(&["explain", base, new]);
        assert!(text.contains("now calls logmill/names.canonical"), "{text}");
    };
    verdict(&base, &new);
    let report: Value = serde_json::from_str(&succeed(&[&base, &new, "--format", "json", "-n", "1"])).unwrap();
    assert_eq!(report["base"]["paths"][0], base.as_str());
    assert_eq!((&report["total_base"], &report["total_new"]), (&1_900_000_000.into(), &2_930_000_000i64.into()));
    // A query can be combined with files.
    let among = succeed(&["--base", &base, &base, "--new", &new, "story-cpu.new.pb.gz", "--format", "json", "-n", "1"]);
    let report: Value = serde_json::from_str(&among).unwrap();
    assert_eq!(report["new"]["paths"].as_array().map(Vec::len), Some(2), "{report}");
}

#[test]
fn labels_of_a_server_lists_its_series() {
    let (server, window, _) = start_recorded_server();
    let address = server.address(&format!("?{window}"));
    let csv = succeed(&["labels", &address, "--format", "csv"]);
    for row in [
        "service_name,shop",
        "version,v1",
        "version,v2",
        "zone,eu west",
        "type,process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    ] {
        assert!(csv.contains(row), "{csv}");
    }
    assert!(!csv.contains("__"), "{csv}");
    let stacks = succeed(&["stacks", &address, "--format", "folded"]);
    assert!(stacks.contains("shop;memory:inuse_space:bytes:space:bytes 2"), "{stacks}");
}

#[test]
fn errors_of_pyroscope_are_shown_in_one_line() {
    let (server, window, until) = start_recorded_server();
    let refused = |query: &str| failure(&run(&["top", &server.address(&format!("/{query}"))]));
    let line = refused(&format!("{{service_name=\"none\"}}?type=cpu&{window}"));
    assert!(line.contains("{service_name=\"none\"} matches no profile from 20"), "{line}");
    let port = server.port;
    assert!(line.contains(&format!("; list all series: pprofdiff labels 'pyroscope://127.0.0.1:{port}'")), "{line}");
    let line = refused(&format!("{{service_name=\"none\"}}?type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&{window}"));
    assert!(line.contains("matches no profile of the type process_cpu:cpu:"), "{line}");
    let line = refused(&format!("{{service_name=shop}}?type=cpu&{window}"));
    assert!(line.contains("the server answers 400: failed to parse label selector"), "{line}");
    let line = refused(&format!("{{service_name=\"shop\"}}?type=process_cpu&{window}"));
    assert!(
        line.contains("matches several types; write one of process_cpu:cpu:nanoseconds:cpu:nanoseconds, process_cpu:s"),
        "{line}"
    );
    let line = refused(&format!("{{}}?type=cpu&from={}&until={until}", until - 30 * 24 * 3600));
    assert!(line.contains("the server answers 400: the query time range exceeds the limit"), "{line}");
}

/// Returns an address that takes a single request.
fn whole(server: &Server) -> String {
    server.address("/{}?type=process_cpu:cpu:nanoseconds:cpu:nanoseconds")
}

const PROFILE: &str = "Content-Type: application/proto\r\n";

#[test]
fn hostile_answers_are_errors() {
    let failure_with = |answer: fn(&mut TcpStream), more: &[&str]| {
        let server = Server::new(move |_, stream| answer(stream));
        let line = failure(&run(&[&["top", &whole(&server)], more].concat()));
        assert_eq!(server.requests().len(), 1, "{line}");
        line
    };
    // Endless answers, with a success and with an error status.
    let endless = |stream: &mut TcpStream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{PROFILE}\r\n").as_bytes());
        while stream.write_all(&[0x0a; 4096]).is_ok() {}
    };
    let line = failure_with(endless, &["--inflated-limit", "1000000"]);
    assert!(line.contains("the answer is longer than the limit of 1000000 bytes"), "{line}");
    let refusing = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 500 No\r\n\r\nno end\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    };
    let line = failure_with(refusing, &[]);
    assert!(line.contains("the server answers 500: no end") && line.len() < 1000, "{line}");
    // An answer that arrives byte by byte.
    let slow = |stream: &mut TcpStream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{PROFILE}\r\n").as_bytes());
        while stream.write_all(&[0x0a]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let begin = Instant::now();
    let line = failure_with(slow, &["--timeout", "300ms"]);
    assert!(line.contains("no answer within 0.300 s; request a shorter period (from=, until=)"), "{line}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    let page = |stream: &mut TcpStream| send(stream, "200 OK", "Content-Type: text/html\r\n", b"<html>login");
    assert!(failure_with(page, &[]).contains("does not answer like Pyroscope (200, text/html)"));
    let junk = |stream: &mut TcpStream| send(stream, "200 OK", PROFILE, &[0x32, 0x7f, 1, 2]);
    assert!(failure_with(junk, &[]).contains("the server's answer is not a profile"));
    // A valid message with samples, but without sample types.
    let broken = |stream: &mut TcpStream| send(stream, "200 OK", PROFILE, &[0x12, 2, 0x0a, 0]);
    assert!(failure_with(broken, &[]).contains("/{}?type=process_cpu"));
    let cut = |stream: &mut TcpStream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{PROFILE}Content-Length: 99\r\n\r\n").as_bytes());
    };
    assert!(failure_with(cut, &[]).starts_with("pprofdiff: pyroscope://127.0.0.1:"));
    let evil = |stream: &mut TcpStream| {
        send(stream, "400 No", "Content-Type: application/json\r\n", b"{\"message\":\"\\u001b[31m::error::red\"}");
    };
    let line = failure_with(evil, &[]);
    assert!(!line.contains('\u{1b}') && line.contains("the server answers 400"), "{line}");
    assert!(failure(&run(&["top", "pyroscope+https://127.0.0.1:1/{}?type=a:b:c:d:e"])).contains("refused"));
    let server = Server::new(|_, _| {});
    let address = whole(&server).replace("pyroscope:", "pyroscope+https:");
    assert_eq!(failure(&run(&["top", &address])).lines().count(), 1);
}

#[test]
fn busy_servers_are_retried() {
    let profile = std::fs::read(corpus().join("go-mutex.base.pb.gz")).unwrap();
    // Answers "busy" this many times, and then sends the profile.
    let busy = |times: usize, status: &'static str, wait: &'static str| {
        let (profile, left) = (profile.clone(), AtomicUsize::new(times));
        Server::new(move |_, stream| match left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => send(stream, status, wait, b"slow down"),
            Err(_) => send(stream, "200 OK", "Content-Type: application/octet-stream\r\n", &profile),
        })
    };
    let page = |server: &Server| format!("http://127.0.0.1:{}/profile.pb.gz", server.port);
    let expected = succeed(&["top", "go-mutex.base.pb.gz", "--format", "csv"]);
    for (status, wait) in [("503 Busy", ""), ("429 Slow", "Retry-After: 0\r\n")] {
        let server = busy(2, status, wait);
        assert_eq!(succeed(&["top", &page(&server), "--format", "csv"]), expected);
        assert_eq!(server.requests().len(), 3, "{status}");
    }
    let server = busy(usize::MAX, "503 Busy", "Retry-After: 0\r\n");
    let line = failure(&run(&["top", &page(&server)]));
    assert!(line.contains("the server answers 503") && line.contains("slow down"), "{line}");
    assert_eq!(server.requests().len(), 5);
    let server = busy(usize::MAX, "429 Slow", "Retry-After: 0\r\n");
    assert!(failure(&run(&["top", &whole(&server)])).contains("the server answers 429: slow down"));
    assert_eq!(server.requests().len(), 5);
    // A wait beyond the timeout fails at once, as do errors that a retry cannot fix.
    for (status, wait) in [("503 Busy", "Retry-After: 4294967295\r\n"), ("500 No", ""), ("403 No", "")] {
        let server = busy(usize::MAX, status, wait);
        assert!(failure(&run(&["top", &page(&server)])).contains(&format!("the server answers {}", &status[..3])));
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn redirects_are_not_followed_and_tokens_stay_with_their_host() {
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let elsewhere = Server::new(|_, stream| send(stream, "200 OK", PROFILE, b""));
        let location = format!("Location: http://127.0.0.1:{}/x\r\n", elsewhere.port);
        let server = Server::new(move |_, stream| send(stream, status, &location, b""));
        let output = command(&["top", &whole(&server)]).env("PPROFDIFF_TOKEN", "s3cret").output().unwrap();
        let line = failure(&output);
        assert!(line.contains("the server redirects to ") && !line.contains("s3cret"), "{line}");
        assert!(server.requests()[0].head.to_ascii_lowercase().contains("authorization: bearer s3cret"));
        assert!(elsewhere.requests().is_empty(), "{status}");
    }
}

#[test]
fn tokens_are_sent_only_to_hosts_that_the_user_names() {
    let (server, _, _) = start_recorded_server();
    let refusing = Server::new(|request, stream| {
        let is_sent = request.head.to_ascii_lowercase().contains("authorization");
        send(stream, "401 Unauthorized", "", if is_sent { b"bad token" } else { b"who?" });
    });
    let line = failure(&run(&["top", &whole(&refusing)]));
    assert!(line.contains("requires a token (401: who?); set PPROFDIFF_TOKEN_127_0_0_1 to it"), "{line}");
    let failure_with_variable =
        |args: &[&str], variable: &str| failure(&command(args).env(variable, "s3cret").output().unwrap());
    let line = failure_with_variable(&["top", &whole(&refusing)], "PPROFDIFF_TOKEN_127_0_0_1");
    assert!(line.contains("refuses the token of PPROFDIFF_TOKEN_127_0_0_1 (401: bad token)"), "{line}");
    assert!(!line.contains("s3cret"));
    // Hosts in a manifest need permission, and never receive the general token.
    let manifest = std::env::temp_dir().join(format!("pprofdiff-servers-{}.jsonl", std::process::id()));
    let pair = serde_json::json!({"name": "x", "base": whole(&refusing), "new": whole(&refusing)});
    std::fs::write(&manifest, format!("{pair}\n")).unwrap();
    let batch = |more: &[&str]| {
        let args = [&["batch", manifest.to_str().unwrap()], more].concat();
        let output = command(&args).env("PPROFDIFF_TOKEN", "s3cret").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).unwrap()
    };
    let before = refusing.requests().len();
    assert!(batch(&[]).contains("--allow-urls"));
    assert_eq!(refusing.requests().len(), before);
    let text = batch(&["--allow-urls"]);
    assert!(text.contains("requires a token (401: who?)") && !text.contains("s3cret"), "{text}");
    std::fs::remove_file(manifest).unwrap();
    // A password in an address is hidden, too.
    let line = failure(&run(&["top", &whole(&server).replace("//", "//user:s3cret@")]));
    assert!(line.contains("pyroscope://***@127.0.0.1") && line.contains("set PPROFDIFF_TOKEN in the"), "{line}");
    for wrong in ["/{}?token=s3cret", "/{}x?token=s3cret", "/{}?type=a&token=s3cret"] {
        let line = failure(&run(&["top", &server.address(wrong)]));
        assert!(line.contains("token") && !line.contains("s3cret"), "{line}");
    }
    assert!(server.requests().is_empty());
}

/// Starts a proxy that records the first request of each connection, also inside a tunnel, and answers with an error.
fn proxy() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let seen = Arc::new(Mutex::new(String::new()));
    let kept = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(first) = read_request(&stream) else { continue };
            kept.lock().unwrap().push_str(&first.head);
            if first.head.starts_with("CONNECT") && stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok() {
                let inner = read_request(&stream).map_or_else(String::new, |inner| inner.head);
                kept.lock().unwrap().push_str(&inner);
            }
            send(&mut stream, "500 No", "", b"");
        }
    });
    (address, seen)
}

#[test]
fn local_requests_bypass_the_proxy() {
    let (server, window, _) = start_recorded_server();
    let (proxy, seen) = proxy();
    let through = |args: &[&str]| {
        let mut command = command(args);
        command.env("PPROFDIFF_TOKEN", "s3cret").env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
        command
            .env("AWS_ENDPOINT_URL", format!("http://localhost:{}", server.port))
            .env("AWS_SECRET_ACCESS_KEY", "KEY");
        ["http_proxy", "https_proxy", "all_proxy"].iter().for_each(|name| _ = command.env(name, &proxy));
        command.output().unwrap()
    };
    for address in [server.address(&format!("?{window}")), server.address("").replace("127.0.0.1", "localhost")] {
        let output = through(&["labels", &address]);
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || line.contains("Not Recorded") || line.contains("answers 500"), "{line}");
    }
    for address in
        ["http://127.0.0.1:PORT/x", "http://me:s3cret@localhost:PORT/x", "http://127.1:PORT/x", "s3://bucket/key"]
    {
        let line = failure(&through(&["top", &address.replace("PORT", &server.port.to_string())]));
        assert!(line.contains("the server answers 500") && !line.contains("s3cret"), "{line}");
    }
    assert_eq!(*seen.lock().unwrap(), "");
    assert_eq!(server.requests().len(), 6);
    // Requests to other hosts go through the proxy, but without a token that others could read on the way.
    let line = failure(&through(&["top", "pyroscope+http://pyroscope.example/{}?type=a:b:c:d:e", "--timeout", "5s"]));
    assert!(line.contains("500"), "{line}");
    let seen = seen.lock().unwrap().to_ascii_lowercase();
    assert!(
        seen.contains("pyroscope.example") && !seen.contains("authorization") && !seen.contains("s3cret"),
        "{seen}"
    );
}

#[test]
fn a_token_goes_only_to_its_exact_host_and_never_over_plain_http() {
    let (proxy, seen) = proxy();
    let folder = std::env::temp_dir().join(format!("pprofdiff-hosts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = folder.join("pairs.csv");
    let batch = |address: &str, variable: &str| {
        std::fs::write(&manifest, format!("base,new\n{address},{address}\n")).unwrap();
        let mut command = command(&["batch", manifest.to_str().unwrap(), "--allow-urls", "--timeout", "5s"]);
        let output = command.env("http_proxy", &proxy).env(variable, "s3cret").output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let query = "{}?type=a:b:c:d:e";
    // This variable belongs to pyroscope.example.com.
    batch(&format!("pyroscope+http://pyroscope-example.com/{query}"), "PPROFDIFF_TOKEN_PYROSCOPE_EXAMPLE_COM");
    let request = seen.lock().unwrap().to_ascii_lowercase();
    assert!(request.contains("pyroscope-example.com") && !request.contains("s3cret"), "{request}");
    let error =
        batch(&format!("pyroscope+http://pyroscope-example.com/{query}"), "PPROFDIFF_TOKEN_PYROSCOPE__EXAMPLE_COM");
    assert!(error.contains("is not sent over plain http, where others can read it"), "{error}");
    assert!(!seen.lock().unwrap().contains("s3cret"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn redirects_are_followed_to_pages_without_showing_secrets() {
    let profile = std::fs::read(corpus().join("go-mutex.base.pb.gz")).unwrap();
    let elsewhere = Server::new(move |request, stream| match request.head.split(' ').nth(1).unwrap() {
        "/profile" => send(stream, "200 OK", "", &profile),
        path => send(stream, "403 No", "", format!("no {path}").as_bytes()),
    });
    let port = elsewhere.port;
    let server = Server::new(move |request, stream| {
        let path = request.head.split(' ').nth(1).unwrap();
        let (_, query) = path.split_once('?').unwrap_or((path, ""));
        let to = match path.split('?').next().unwrap() {
            "/there" => format!("http://127.0.0.1:{port}/profile"),
            "/copy" => format!("http://127.0.0.1:{port}/no?{query}"),
            "/other" => format!("http://127.0.0.1:{port}/no?sig=0therS3cret"),
            "/relative/x" => "../there".to_owned(),
            "/file" => "file:///etc/passwd".to_owned(),
            _ => "/loop?again".to_owned(),
        };
        send(stream, "302 Found", &format!("Location: {to}\r\n"), b"");
    });
    let page = |path: &str| format!("http://me:s3cret@127.0.0.1:{}/{path}", server.port);
    for path in ["there", "relative/x"] {
        assert_eq!(
            succeed(&["top", &page(path), "--format", "csv"]),
            succeed(&["top", "go-mutex.base.pb.gz", "--format", "csv"])
        );
    }
    assert!(elsewhere.requests().iter().all(|request| !request.head.to_ascii_lowercase().contains("authorization")));
    assert!(server.requests()[0].head.to_ascii_lowercase().contains("authorization: basic"));
    for (path, why) in [
        ("copy?token=s3cret%2F1", "the server answers 403 Forbidden: no /no?token=***"),
        ("other", "the server answers 403 Forbidden: no /no?sig=***"),
        ("file", "the server redirects to a file address, which is not followed"),
        ("loop", "the server redirects more than 10 times"),
    ] {
        let line = failure(&run(&["top", &page(path)]));
        assert!(line.contains(why) && !line.contains("3cret") && !line.contains("S3cret"), "{line}");
    }
}

#[test]
fn secrets_of_a_signed_url_are_never_shown() {
    let profile = b"main;a 10\nmain;b 5\n";
    let server = Server::new(|_, stream| send(stream, "200 OK", "", profile));
    let url =
        |side: &str| format!("http://127.0.0.1:{}/{side}?X-Amz-Security-Token=s3cret%2Ftoken&debug=0", server.port);
    let (base, new) = (url("base"), url("new"));
    for format in ["text", "json", "markdown", "html", "csv", "folded", "dot"] {
        for sides in [&[&base, &new][..], &[&new]] {
            let args: Vec<&str> = sides.iter().map(|side| side.as_str()).chain(["--format", format]).collect();
            let output = run(&[&["top"], args.as_slice()].concat());
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(output.status.success() && !text.contains("s3cret"), "{format}: {text}");
        }
    }
    let text = succeed(&["top", &base]);
    assert!(text.contains("/base?X-Amz-Security-Token=***&debug=0"), "{text}");
    let folder = std::env::temp_dir().join(format!("pprofdiff-signed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pairs.csv"), format!("base,new\n{base},{new}\n")).unwrap();
    for more in [&["--rank"][..], &["--format", "jsonl"], &[]] {
        let manifest = folder.join("pairs.csv");
        let output = run(&[&["batch", manifest.to_str().unwrap(), "--allow-urls"], more].concat());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success() && !text.contains("s3cret"), "{more:?}: {text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    // A profile and an error that repeat the secret.
    let echoing = Server::new(|request, stream| {
        let path = request.head.split(' ').nth(1).unwrap();
        send(stream, "200 OK", "", format!("main;{path} 10\n").as_bytes());
    });
    let line = succeed(&["top", &format!("http://127.0.0.1:{}/x?sig=s3cret-of-many-characters", echoing.port)]);
    assert!(line.contains("/x?sig=*****") && !line.contains("s3cret"), "{line}");
}

#[cfg(all(unix, feature = "serve", feature = "terminal"))]
#[test]
fn the_address_of_serve_is_never_a_process_argument() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("pprofdiff-open-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (browser, opened) = (folder.join("xdg-open"), folder.join("opened"));
    // The script renames its output, so the test never reads partial arguments.
    let script = format!("#!/bin/sh\nprintf %s \"$*\" >'{0}.part'\nmv '{0}.part' '{0}'\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(&["serve", "go-mutex.base.pb.gz", "--open"]);
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    let mut serve = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(' ').find(|word| word.starts_with("http://")).unwrap().to_owned();
    let begin = Instant::now();
    while !opened.exists() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let argument = std::fs::read_to_string(&opened).unwrap();
    let (page, mode) = (PathBuf::from(&argument), |path: &Path| std::fs::metadata(path).unwrap().permissions().mode());
    let content = std::fs::read_to_string(&page).unwrap();
    assert!(content.contains(&format!("content=\"0; url={address}\"")), "{content}");
    assert_eq!(mode(&page) & 0o777, 0o600);
    let (host, secret) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(!argument.contains(secret.trim_end_matches('/')) && !argument.contains("http"), "{argument}");
    // A request without the secret does not come from the browser.
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!((get("wrong/").as_str(), page.exists()), ("HTTP/1.1 404 Not Found", true));
    assert_eq!((get(secret).as_str(), page.exists()), ("HTTP/1.1 200 OK", false));
    serve.kill().unwrap();
    serve.wait().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn snapshots_require_a_url() {
    let args = ["delta", "pyroscope://127.0.0.1:1/{}?type=cpu", "-o", "none.pb.gz"];
    let line = failure(&run(&[&args[..], &["--seconds", "1"]].concat()));
    assert!(line.contains("take snapshots from one http:// or https:// URL"), "{line}");
    assert!(failure(&run(&args)).contains("a delta needs two snapshots"));
}
