//! Tests of profiles in object stores, by name and by pattern. A local server lists them in pages and checks the
//! requests. (tests/python/test_clusters.py compares the signatures with AWS's own library.)

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::servers::{Server, failure, send};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// Keys of the bucket `prof`, with the files of the corpus behind them.
const OBJECTS: &[(&str, &str)] = &[
    ("api/v1/.hidden/a.pb.gz", "go-heap.base.pb.gz"),
    ("api/v1/", ""),
    ("api/v1/a b&c.pb.gz", "story-cpu.base.pb.gz"),
    ("api/v2/a b&c.pb.gz", "story-cpu.new.pb.gz"),
    ("api/v10/other.txt", ""),
    ("db/v1/deep/er/x.pb.gz", "go-mutex.base.pb.gz"),
    ("db/v1/x.pb.gz", "go-heap.base.pb.gz"),
    ("db/v2/x.pb.gz", "go-heap.new.pb.gz"),
    ("db/v2/../../secret.pb.gz", "go-heap.new.pb.gz"),
    ("dc/v2/only.pb.gz", "go-heap.new.pb.gz"),
];

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, _) = match (first, after) {
            (b'%', [a, b, after @ ..]) => {
                let digits = [*a, *b];
                (after, bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()))
            }
            (byte, after) => (after, bytes.push(*byte)),
        };
    }
    String::from_utf8(bytes).unwrap()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Starts an object store with one bucket: three keys per page, one throttled request, and an object that denies
/// access.
fn store() -> Server {
    let requests_before = std::sync::atomic::AtomicUsize::new(0);
    Server::new(move |request, stream| {
        let url = request.head.split(' ').nth(1).unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let value = |name: &str| {
            let parameter = query.split('&').find_map(|part| part.strip_prefix(&format!("{name}=")));
            parameter.map(percent_decoded)
        };
        if requests_before.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return send(stream, "503 Slow Down", "Retry-After: 0\r\n", b"");
        }
        let no = |status: &str, code: &str, message: &str| -> (String, Vec<u8>) {
            let body =
                format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            (status.to_owned(), body.into_bytes())
        };
        let (status, body) = match percent_decoded(path).strip_prefix("/prof/") {
            None => no("404 Not Found", "NoSuchBucket", "The specified bucket does not exist"),
            Some("") => {
                let prefix = value("prefix").unwrap();
                let mut keys: Vec<&str> =
                    OBJECTS.iter().map(|(key, _)| *key).filter(|k| k.starts_with(&prefix)).collect();
                keys.sort_unstable();
                let from = value("continuation-token").map_or(0, |token| token.parse().unwrap());
                let page: String = keys[from..].iter().take(3).fold(String::new(), |all, key| {
                    let key = escaped(&key.replace(' ', "+").replace('+', "%20"));
                    all + &format!(
                        "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag>\
                         <Size>1</Size><StorageClass>STANDARD</StorageClass></Contents>"
                    )
                });
                let next = match keys.len() > from + 3 {
                    true => format!("<NextContinuationToken>{}</NextContinuationToken>", from + 3),
                    false => String::new(),
                };
                let body = format!(
                    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>prof</Name>\
                     <Prefix></Prefix><KeyCount>3</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>\
                     <IsTruncated>{}</IsTruncated>{next}{page}</ListBucketResult>",
                    !next.is_empty()
                );
                ("200 OK".to_owned(), body.into_bytes())
            }
            Some("denied") => no("403 Forbidden", "AccessDenied", "Access Denied"),
            Some(key) => match OBJECTS.iter().find(|(object_key, file)| *object_key == key && !file.is_empty()) {
                Some((_, file)) => ("200 OK".to_owned(), std::fs::read(corpus().join(file)).unwrap()),
                None => no("404 Not Found", "NoSuchKey", "The specified key does not exist."),
            },
        };
        send(stream, &status, "", &body);
    })
}

fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.current_dir(corpus()).args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        if text.ends_with("_proxy") || text.starts_with("aws_") || text.starts_with("pprofdiff_") {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", server.port))
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI");
    command
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_object_gives_the_same_output_as_its_file() {
    let store = store();
    let args = |base: &'static str, new: &'static str| [base, new, "--format", "json", "-n", "0"];
    let of_store = succeed(&mut command(&store, &args("s3://prof/api/v1/a b&c.pb.gz", "S3://prof/api/v2/a b&c.pb.gz")));
    let of_files = succeed(&mut command(&store, &args("story-cpu.base.pb.gz", "story-cpu.new.pb.gz")));
    let rows = |text: &str| serde_json::from_str::<Value>(text).unwrap()["rows"].clone();
    assert!(rows(&of_files).as_array().unwrap().len() > 10);
    assert_eq!(rows(&of_store), rows(&of_files));
    let first = &store.requests()[0].head;
    let signed =
        ["X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Credential=AKIDEXAMPLE%2F", "%2Fus-east-1%2Fs3%2Faws4_request"];
    assert!(signed.iter().all(|part| first.contains(part)), "{first}");
}

#[test]
fn objects_are_paired_by_patterns_keys_and_prefixes() {
    let names = |args: &[&str]| {
        let store = store();
        let mut all = command(&store, &[args, &["--format", "jsonl", "-n", "1"]].concat());
        let output = all.env("RAYON_NUM_THREADS", "1").output().unwrap();
        let line = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            let error = row["error"].as_str().map_or("", |text| text.rsplit(": ").next().unwrap());
            format!("{} {}{error}", row["pair"].as_str().unwrap_or_else(|| panic!("{row}")), row["total_new"])
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let mut all: Vec<String> = text.lines().map(line).collect();
        all.dedup();
        (all, String::from_utf8(output.stderr).unwrap(), store.requests().len())
    };
    let (all, errors, n_asked) = names(&["batch", "s3://prof/*/v1/*.pb.gz", "s3://prof/*/v2/*.pb.gz"]);
    assert_eq!(all.len(), 3, "{all:?} {errors}");
    assert!(all[0].starts_with("api/a b&c 2930000000") && all[1].starts_with("db/x "), "{all:?}");
    assert!(all[2].contains("no such file on the base side"), "{all:?}");
    // Ten keys in pages of three, listed twice, four profiles, and one "slow down" answer.
    assert_eq!(n_asked, 4 + 4 + 4 + 1, "{errors}");
    let grouped =
        ["batch", "s3://prof/**/*.pb.gz", "--group", "service={1},file={2}", "--base", "file=x", "--new", "file=x"];
    let (all, errors, _) = names(&grouped);
    assert!(all.is_empty() && errors.contains("must be two different values of the same keys"), "{errors}");
    let keys = ["--group", "service={1},version={2}", "--base", "version=@previous", "--new", "version=@latest"];
    let (all, errors, _) = names(&[&["batch", "s3://prof/*/*/*.pb.gz"], keys.as_slice()].concat());
    assert!(all[0].starts_with("api 2930000000") && all[1].starts_with("db "), "{all:?} {errors}");
    assert!(all[2].contains("no file has version=@previous"), "{all:?}");
    // Prefixes work like directories: hidden keys are omitted.
    let (all, errors, _) = names(&["batch", "s3://prof/db/v1/", "s3://prof/db/v2/"]);
    assert!(all.iter().any(|name| name.starts_with("x.pb.gz ")), "{all:?} {errors}");
    assert!(all.iter().any(|name| name.contains("deep/er/x.pb.gz") && name.contains("on the new side")), "{all:?}");
    let (all, _, _) = names(&["batch", "s3://prof/api/v1/", "s3://prof/api/v2/"]);
    assert!(all.len() == 1 && all[0].starts_with("a b&c.pb.gz 2930000000"), "{all:?}");
}

#[test]
fn a_pattern_of_objects_can_be_a_side() {
    let store = store();
    for verb in [&["check", "--fail-on", "total>+900%"][..], &["top"]] {
        let args = [verb, &["s3://prof/api/v1/*.pb.gz", "s3://prof/api/v2/*.pb.gz", "--format", "json"]].concat();
        let answer = succeed(&mut command(&store, &args));
        assert!(answer.contains("s3://prof/api/v1/a b&c.pb.gz"), "{args:?} {answer}");
    }
}

#[test]
#[cfg(feature = "store")]
fn a_bucket_can_be_a_series_and_fill_a_store() {
    let store = store();
    let series = succeed(&mut command(&store, &["series", "S3://prof/api/*/a*.pb.gz", "--format", "json"]));
    let series: Value = serde_json::from_str(&series).unwrap();
    let builds: Vec<&str> = series["builds"].as_array().unwrap().iter().map(|b| b["key"].as_str().unwrap()).collect();
    assert_eq!(builds, ["v1/ b&c", "v2/ b&c"]);
    let kept = std::env::temp_dir().join(format!("pprofdiff-buckets-{}", std::process::id()));
    let kept = kept.to_str().unwrap();
    let add = ["store", "add", kept, "s3://prof/*/*/x.pb.gz", "--key", "service={1}", "--key"];
    let stdout = succeed(&mut command(&store, &[&add[..], &["build={2}"]].concat()));
    assert!(stdout.starts_with("2 profiles added"), "{stdout}");
    let listed = succeed(&mut command(&store, &["store", "list", kept]));
    assert!(listed.contains("service=db/build=v1") && listed.contains("service=db/build=v2"), "{listed}");
    std::fs::remove_dir_all(kept).unwrap();
    // Labels of objects are read, too.
    let failed = command(&store, &[&add[..], &["host={host}"]].concat()).output().unwrap();
    assert!(failure(&failed).contains("s3://prof/db/v1/x.pb.gz: no sample has the label host"));
}

#[test]
fn errors_of_a_bucket_are_shown() {
    let store = store();
    let fails = |args: &[&str]| failure(&command(&store, args).output().unwrap());
    let _ = command(&store, &["top", "s3://prof/db/v1/x.pb.gz"]).output();
    for (address, why) in [
        (
            "s3://prof/none.pb.gz",
            "s3://prof/none.pb.gz: the server answers 404 Not Found: The specified key does not exist.",
        ),
        ("s3://nobucket/x.pb.gz", "404 Not Found: The specified bucket does not exist"),
        ("s3://prof/denied", "403 Forbidden: Access Denied"),
        ("s3://prof", "the key is missing; write s3://BUCKET/KEY"),
        ("s3://prof/../other/x", "a key must not begin with /"),
        ("s3://prof//evil.example/x", "a key must not begin with /"),
        ("s3://", "is not a bucket name"),
        ("s3://a@b/x", "is not a bucket name"),
        ("s3://../x", "is not a bucket name"),
    ] {
        let error = fails(&["top", address]);
        assert!(error.contains(why) && !error.contains("Signature") && !error.contains("AKID"), "{address}: {error}");
    }
    for (pattern, why) in [
        ("s3://prof/none*", "no file matches"),
        ("s3://*/x", "is not a bucket name"),
        ("s3://nobucket/*", "s3://nobucket/: the server answers 404 Not Found: The specified bucket does not exist"),
        ("s3://prof/a**", "is invalid"),
    ] {
        let error = fails(&["series", pattern]);
        assert!(error.contains(why), "{pattern}: {error}");
    }
    // Without credentials, the error explains how to get them.
    let mut nobody = command(&store, &["top", "s3://prof/denied"]);
    let error = failure(&nobody.env_remove("AWS_ACCESS_KEY_ID").output().unwrap());
    assert!(error.contains("aws configure export-credentials"), "{error}");
    assert!(!store.requests().last().unwrap().head.contains("X-Amz"));
    // A bucket address must not contain a password, and the error hides it.
    for args in [["top", "s3://me:s3cret@prof/x"], ["series", "s3://me:s3cret@prof/*"]] {
        let error = fails(&args);
        assert!(error.contains("is not a bucket name") && !error.contains("s3cret"), "{error}");
    }
    let mut nowhere = command(&store, &["top", "s3://prof/x"]);
    let error = failure(&nowhere.env("AWS_ENDPOINT_URL_S3", "host:port").output().unwrap());
    assert!(error.contains("AWS_ENDPOINT_URL_S3"), "{error}");
}

#[test]
fn an_endless_list_is_an_error_after_the_timeout() {
    let number = std::sync::atomic::AtomicUsize::new(0);
    let endless = Server::new(move |_, stream| {
        let next = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let body = format!(
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><NextContinuationToken>{next}\
             </NextContinuationToken></ListBucketResult>"
        );
        send(stream, "200 OK", "", body.as_bytes());
    });
    let output = command(&endless, &["series", "s3://prof/x/*.pb.gz", "--timeout", "500ms"]).output().unwrap();
    let error = failure(&output);
    assert!(error.contains("the list is not complete after") || error.contains("no answer within 0.500 s"), "{error}");
    assert!(endless.requests().len() > 2);
}

#[test]
fn secrets_in_answers_of_a_bucket_are_hidden() {
    for is_xml in [false, true] {
        let echoing = Server::new(move |request, stream| {
            let path = request.head.split(' ').nth(1).unwrap();
            let body = match is_xml {
                true => format!("<?xml version=\"1.0\"?><Error><Message>no {}</Message></Error>", escaped(path)),
                false => format!("no {} {path}\n", percent_decoded(path)),
            };
            send(stream, "403 Forbidden", "", body.as_bytes());
        });
        for args in [&["top", "s3://prof/x"][..], &["series", "s3://prof/*"]] {
            let mut command = command(&echoing, args);
            let error = failure(&command.env("AWS_SESSION_TOKEN", "SESSION/SECRET+==").output().unwrap());
            assert!(error.contains("403 Forbidden: no /prof"), "{error}");
            let head = echoing.requests().last().unwrap().head.clone();
            let signature = head.split("X-Amz-Signature=").nth(1).unwrap()[..64].to_owned();
            for secret in ["SESSION", "AKIDEXAMPLE", "Signature", signature.as_str()] {
                assert!(!error.contains(secret), "{secret}: {error}");
            }
        }
    }
}

#[test]
fn answers_that_are_not_lists_are_errors() {
    let deep =
        format!("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}", "<a>".repeat(1_000_000));
    for (body, why) in [
        (&*deep, "nested too deeply"),
        ("", "not a list of a bucket"),
        ("<ListBucketResult/>", "not a list of a bucket"),
        ("\u{fffd}<a><a><a>", "not a list of a bucket"),
        (
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><NextContinuationToken>1</NextContinuationToken>\
             </ListBucketResult>",
            "its continuation token repeats",
        ),
    ] {
        let answer = body.to_owned();
        let store = Server::new(move |_, stream| send(stream, "200 OK", "", answer.as_bytes()));
        let error = failure(&command(&store, &["series", "s3://prof/*.pb.gz"]).output().unwrap());
        assert!(error.contains(why), "{:.200}: {error}", body);
    }
}
