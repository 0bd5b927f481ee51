//! Tests the requests to servers and the handling of good and hostile answers. Answers of a real Pyroscope are tested
//! in `tests/servers.rs`.

use std::cell::RefCell;

use super::*;
use crate::LoadOptions;

const NOW: i64 = 1_772_366_400_000;
const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";

fn json(text: &str) -> Answer {
    Answer {
        status: 200,
        content_type: "application/json; charset=utf-8".into(),
        body: text.into(),
        ..Answer::default()
    }
}

fn status(status: u16, content_type: &str, body: &str) -> Answer {
    Answer { status, content_type: content_type.into(), body: body.into(), ..Answer::default() }
}

fn proto(body: Vec<u8>) -> Answer {
    Answer { status: 200, content_type: "application/proto".into(), body, ..Answer::default() }
}

fn types(names: &[&str]) -> Answer {
    let sets = names.iter().map(|n| format!(r#"{{"labels":[{{"name":"__profile_type__","value":"{n}"}}]}}"#));
    json(&format!(r#"{{"labelsSet":[{}]}}"#, sets.collect::<Vec<_>>().join(",")))
}

/// Returns a profile with one sample.
fn profile() -> Vec<u8> {
    let mut b = ProfileBuilder::new();
    b.sample_type("cpu", "nanoseconds");
    let built = b.sample(&[], &[7], &[]).and_then(|()| b.build("made"));
    let options = WriteOptions::new().with_compression(Compression::None);
    built.and_then(|p| p.to_bytes(&options)).unwrap_or_default()
}

/// Fetches an address from a server that gives these answers in this order. Returns the result and the requests.
fn ask_with(
    address: &str,
    token: Option<Token>,
    answers: Vec<Answer>,
) -> (Result<Vec<u8>, String>, Vec<ServerRequest>) {
    let credentials = Credentials { token, outdated: None };
    let (requests, answers) = (RefCell::new(Vec::new()), RefCell::new(answers.into_iter()));
    let query = ServerQuery::parse(address, NOW).unwrap_or_else(|e| panic!("{address}: {e}"));
    let fetched = query.fetch(&credentials, 1 << 20, &|request| {
        requests.borrow_mut().push(request);
        Ok(answers.borrow_mut().next().unwrap_or_else(|| panic!("a question too many")))
    });
    assert!(answers.into_inner().next().is_none(), "too few questions");
    (fetched.map_err(|e| e.to_string()), requests.into_inner())
}

fn refusal(address: &str, answers: Vec<Answer>) -> String {
    ask_with(address, None, answers).0.err().unwrap_or_else(|| panic!("{address} is answered"))
}

#[test]
fn pyroscope_queries_request_a_merged_profile() {
    let address = r#"pyroscope://h:1/p/{a="b c"}?type=cpu&from=-2h&until=-1h&tenant=me"#;
    let (fetched, requests) = ask_with(address, None, vec![types(&[SAMPLES, CPU, CPU]), proto(profile())]);
    assert_eq!(fetched, Ok(profile()));
    let urls: Vec<&str> = requests.iter().map(|request| request.url.as_str()).collect();
    let url = |method: &str| format!("https://h:1/p/querier.v1.QuerierService/{method}");
    assert_eq!(urls, [url("Series"), url("SelectMergeProfile")]);
    let question: serde_json::Value =
        serde_json::from_slice(requests[0].body.as_deref().unwrap_or_default()).unwrap_or_default();
    let expected = serde_json::json!({"matchers": ["{a=\"b c\"}"], "labelNames": ["__profile_type__"],
        "start": NOW - 7_200_000, "end": NOW - 3_600_000});
    assert_eq!(question, expected);
    // Fields 1 and 2 are texts, and fields 3 and 4 are the times.
    let body = requests[1].body.clone().unwrap_or_default();
    let mut fields = pprofdiff_profile::shared::wire::Fields::new(&body, 0);
    let mut read = Vec::new();
    while let Ok(Some((field, value))) = fields.next() {
        let text = value.bytes().map(|b| String::from_utf8_lossy(b).into_owned());
        read.push((field, text.or_else(|_| value.int().map(|n| n.to_string())).unwrap_or_default()));
    }
    let expected =
        [CPU.to_owned(), "{a=\"b c\"}".to_owned(), (NOW - 7_200_000).to_string(), (NOW - 3_600_000).to_string()];
    assert_eq!(read, (1..).zip(expected).collect::<Vec<_>>());
    for request in &requests {
        assert!(request.headers.contains(&("X-Scope-OrgID", "me".to_owned())), "{:?}", request.headers);
        assert!(request.headers.iter().all(|(name, _)| *name != "Authorization"));
    }
    // A full type name needs no request for types, and an answer may be compressed.
    let packed = crate::from_bytes("made", &profile(), &LoadOptions::default());
    let packed = packed.and_then(|p| p.to_bytes(&WriteOptions::new())).unwrap_or_default();
    assert!(packed.starts_with(&[0x1f, 0x8b]));
    let (fetched, requests) = ask_with(&format!("pyroscope://h/{{}}?type={CPU}"), None, vec![proto(packed)]);
    assert_eq!((fetched, requests.len()), (Ok(profile()), 1));
}

#[test]
fn a_short_type_name_must_match_exactly_one_type() {
    let choose = |type_param: &str, names: &[&str]| {
        let address = format!("pyroscope://h/{{}}{type_param}");
        let query = ServerQuery::parse(&address, NOW).unwrap_or_else(|e| panic!("{address}: {e}"));
        query.choose_type(|| Ok(names.iter().map(|&n| n.to_owned()).collect())).map_err(|e| e.to_string())
    };
    for type_param in ["?type=cpu", "?type=process_cpu:cpu", "?type=cpu:nanoseconds", &format!("?type={CPU}")] {
        assert_eq!(choose(type_param, &[SAMPLES, CPU]), Ok(CPU.to_owned()), "{type_param}");
    }
    assert_eq!(choose("", &[CPU]), Ok(CPU.to_owned()));
    let several = choose("?type=process_cpu", &[SAMPLES, CPU]);
    assert_eq!(several, Err(format!("type=process_cpu matches several types; write one of {CPU}, {SAMPLES}")));
    assert_eq!(
        choose("", &[SAMPLES, CPU]),
        Err(format!("choose a type with ?type=NAME (a part will do): {CPU}, {SAMPLES}"))
    );
    // A short name consists of whole parts of the type's name, next to each other, from the first or second part on.
    for unknown in ["?type=cp", "?type=process", "?type=nanoseconds", "?type=cpu:count"] {
        let message = choose(unknown, &[SAMPLES, CPU]).err().unwrap_or_default();
        assert_eq!(message, format!("no profile type matches {}; available types: {CPU}, {SAMPLES}", &unknown[1..]));
    }
    let many: Vec<String> = (0..50).map(|i| format!("{i:02}:a:b:c:d")).collect();
    let message = choose("", &many.iter().map(String::as_str).collect::<Vec<_>>()).err().unwrap_or_default();
    assert!(message.ends_with("19:a:b:c:d and 30 more"), "{message}");
}

#[test]
fn address_without_selector_loads_the_series_as_a_profile() {
    let series = |service: &str, kind: &str| {
        format!(
            r#"{{"labels":[{{"name":"__profile_type__","value":"{kind}"}},{{"name":"__name__","value":"x"}},
            {{"name":"empty"}},{{"name":"service_name","value":"{service}"}}]}}"#
        )
    };
    let answer =
        format!(r#"{{"labelsSet":[{},{},{}]}}"#, series("shop", CPU), series("shop", SAMPLES), series("db", CPU));
    let (fetched, requests) = ask_with("pyroscope://h", None, vec![json(&answer)]);
    assert_eq!(requests.len(), 1);
    let profile = fetched.map(|bytes| crate::from_bytes("x", &bytes, &LoadOptions::default()));
    let Ok(Ok(profile)) = profile else { panic!("no profile") };
    assert_eq!((profile.n_samples(), profile.total(0)), (3, Some(3)));
    let text = |id| String::from_utf8_lossy(profile.string(id)).into_owned();
    let mut labels: Vec<(String, String)> = Vec::new();
    for sample in profile.samples() {
        for label in sample.labels() {
            let LabelValue::Text(value) = label.value else { panic!("a number") };
            labels.push((text(label.key), text(value)));
        }
    }
    labels.sort();
    labels.dedup();
    let expected = [("service_name", "db"), ("service_name", "shop"), ("type", CPU), ("type", SAMPLES)];
    assert_eq!(labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn refusals_explain_what_to_do() {
    let address = &format!("pyroscope://h/{{}}?type={CPU}");
    let refusal_of = |answer: Answer| refusal(address, vec![answer]);
    let page = "<!DOCTYPE html>\n<title>secret page</title>";
    let redirected = |status: u16| Answer { status, location: "https://login.example/?a".into(), ..Answer::default() };
    for (answer, expected) in [
        (
            proto(Vec::new()),
            "{} matches no profile of the type process_cpu:cpu:nanoseconds:cpu:nanoseconds from \
            2026-03-01T11:00:00Z until 2026-03-01T12:00:00Z; list all series: pprofdiff labels 'pyroscope://h'",
        ),
        (proto(vec![0x0a, 0x00, 0x32, 0x00]), "matches no profile"),
        (proto(vec![0xff; 30]), "the server's answer is not a profile"),
        (
            status(200, "text/html", page),
            "https://h does not answer like Pyroscope (200, text/html); put the server's path",
        ),
        (status(200, "", ""), "does not answer like Pyroscope (200, no content type)"),
        (json("{}"), "does not answer like Pyroscope (200, application/json"),
        (status(404, "text/html", page), "does not answer like Pyroscope (404, text/html)"),
        (
            status(404, "application/json", r#"{"code":"not_found","message":"no tenant x"}"#),
            "answers 404: no tenant x",
        ),
        (
            status(404, "text/plain; charset=utf-8", "404 page not found"),
            "does not answer like Pyroscope (404, text/plain",
        ),
        (status(404, "application/json", r#"{"code":5,"message":"Not Found"}"#), "does not answer like Pyroscope (404"),
        (redirected(302), "redirects to \"https://login.example/?***\", which is not followed"),
        (redirected(307), "redirects to"),
        (redirected(308), "redirects to"),
        (
            status(401, "application/json", r#"{"code":"unauthenticated","message":"no org id"}"#),
            "add tenant=NAME (no org id)",
        ),
        (status(401, "text/html", page), "requires a token (401); set PPROFDIFF_TOKEN_H to it, or to user:password"),
        (status(403, "text/plain", "not you\nat all"), "requires a token (403: not you); set"),
        (status(400, "application/json", r#"{"message":"parse error\nat 3"}"#), "the server answers 400: parse error"),
        (status(413, "text/plain", ""), "the server answers 413"),
        (status(500, "application/json", "{\"message\":"), "the server answers 500"),
        (status(503, "text/plain", &"x".repeat(9999)), "the server answers 503: xxx"),
    ] {
        let message = refusal_of(answer);
        assert!(message.contains(expected) && !message.contains("secret page") && message.len() < 600, "{message}");
    }
    let Some(bomb) = pprofdiff_profile::shared::pack(&vec![0; 9 << 20], &WriteOptions::new()).ok() else {
        panic!("no bomb")
    };
    assert!(refusal_of(proto(bomb.clone())).contains("limit of 1048576 bytes"));
    assert!(refusal_of(Answer { status: 500, body: bomb, ..Answer::default() }).ends_with("the server answers 500"));
    // These answers arrive before the request for the profile.
    let short = |answer| refusal("pyroscope://h/{a=\"b\"}?type=cpu", vec![answer]);
    assert!(short(json("{}")).contains("{a=\"b\"} matches no profile from 2026"));
    assert!(short(json("[1]")).contains("can't parse the answer of https://h/querier.v1.QuerierService/Series"));
    assert!(short(json(&"[".repeat(100_000))).contains("can't parse the answer"));
    assert!(short(types(&[SAMPLES])).contains("no profile type matches type=cpu"));
}

#[test]
fn tokens_are_sent_only_to_the_named_host() {
    let token = |address: &str, is_named: bool, set: &[(&str, &str)]| {
        let query = ServerQuery::parse(address, NOW).unwrap_or_else(|e| panic!("{address}: {e}"));
        let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let credentials = query.credentials(is_named, variable);
        credentials.map(|credentials| credentials.token.map(|token| token.header())).map_err(|e| e.to_string())
    };
    let general = &[("PPROFDIFF_TOKEN", "t")];
    let with_host_token = &[("PPROFDIFF_TOKEN", "t"), ("PPROFDIFF_TOKEN_A__B_EXAMPLE", "own")];
    let bearer = |token: &str| Ok(Some(format!("Bearer {token}")));
    assert_eq!(token("pyroscope://a-b.Example:4040", true, general), bearer("t"));
    assert_eq!(token("pyroscope://a-b.Example:4040", true, with_host_token), bearer("own"));
    assert_eq!(token("pyroscope://other", true, with_host_token), bearer("t"));
    assert_eq!(token("pyroscope://localhost", true, general), bearer("t"));
    // A host that a manifest or an agent names gets only its own token. A host that others can listen to gets no token,
    // and its own token is an error.
    assert_eq!(token("pyroscope://a-b.example", false, general), Ok(None));
    assert_eq!(token("pyroscope://a-b.example", false, with_host_token), bearer("own"));
    assert_eq!(token("pyroscope+http://a-b.example", true, general), Ok(None));
    let plain = token("pyroscope+http://a-b.example", true, with_host_token).err().unwrap_or_default();
    assert!(plain.contains("the token in PPROFDIFF_TOKEN_A__B_EXAMPLE is not sent over plain http"), "{plain}");
    let six = &[("PPROFDIFF_TOKEN_0___0___0___0___0___0___0___1", "six")];
    assert_eq!(token("pyroscope://[::1]", true, six), bearer("six"));
    assert_eq!(token("pyroscope://[0:0::0001]", false, six), bearer("six"));
    assert_eq!(token("pyroscope+http://localhost", false, &[("PPROFDIFF_TOKEN_LOCALHOST", "own")]), bearer("own"));
    assert_eq!(token("pyroscope://h", true, &[("PPROFDIFF_TOKEN", "")]), Ok(None));
    assert_eq!(
        token("pyroscope://h", true, &[("PPROFDIFF_TOKEN", "Aladdin:open-sesame")]),
        Ok(Some("Basic QWxhZGRpbjpvcGVuLXNlc2FtZQ==".to_owned()))
    );
    let message = token("pyroscope://h", true, &[("PPROFDIFF_TOKEN", "se\r\ncret")]).err().unwrap_or_default();
    assert!(message.contains("the token in PPROFDIFF_TOKEN has a space") && !message.contains("cret"), "{message}");
    // The token is in the header of each request but in no error.
    let token_with = |secret: &str| Token { variable: "PPROFDIFF_TOKEN".into(), secret: secret.into() };
    let refused = status(401, "text/plain", "bad token");
    let (fetched, requests) =
        ask_with("pyroscope://h/{}?type=cpu", Some(token_with("s3cret")), vec![types(&[CPU]), refused]);
    assert!(requests.iter().all(|r| r.headers.contains(&("Authorization", "Bearer s3cret".to_owned()))));
    assert_eq!(fetched, Err("the server refuses the token of PPROFDIFF_TOKEN (401: bad token)".to_owned()));
}

#[test]
fn no_two_hosts_share_a_variable() {
    let mut hosts: Vec<String> = vec!["[::1]".into(), "[1::]".into(), "[a:b::]".into(), "0.0.0.0.0.0.0.1".into()];
    // The loop builds all names of up to six of these characters.
    for length in 1..=6 {
        for number in 0..4usize.pow(length) {
            let char_at = |place: u32| ['a', '-', '.', '_'][number / 4usize.pow(place) % 4];
            hosts.push((0..length).map(char_at).collect());
        }
    }
    let mut variables = std::collections::BTreeMap::new();
    for host in &hosts {
        let query = ServerQuery::parse(&format!("pyroscope://{host}"), NOW).unwrap_or_else(|e| panic!("{host}: {e}"));
        let Some(variable) = query.token_variable() else {
            assert!(
                host.contains('_')
                    || host.starts_with(['-', '.'])
                    || host.ends_with(['-', '.'])
                    || host.contains("..")
                    || host.contains("-.")
                    || host.contains(".-"),
                "{host}"
            );
            continue;
        };
        assert!(variable.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{variable}");
        assert_eq!(variables.insert(variable.clone(), host), None, "{host}: {variable}");
    }
    assert!(variables.len() > 50 && variables.contains_key("PPROFDIFF_TOKEN_A_A__A"), "{}", variables.len());
}

#[test]
fn an_outdated_variable_gets_a_hint_to_rename_it() {
    let query = ServerQuery::parse("pyroscope://a-b.example/{}?type=a:b:c:d:e", NOW).unwrap_or_else(|e| panic!("{e}"));
    let refusal = |set: &[&str]| {
        let variable = |name: &str| set.contains(&name).then(|| "s3cret".to_owned());
        let credentials = query.credentials(true, variable).unwrap_or_else(|e| panic!("{e}"));
        let refused = |_: ServerRequest| Ok(status(401, "text/plain", "who?"));
        query.fetch(&credentials, 1 << 20, &refused).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let renamed = "; PPROFDIFF_TOKEN_A_B_EXAMPLE belongs to another host because hyphens are now __: rename it to \
                   PPROFDIFF_TOKEN_A__B_EXAMPLE";
    for set in [&["PPROFDIFF_TOKEN_A_B_EXAMPLE"][..], &["PPROFDIFF_TOKEN_A_B_EXAMPLE", "PPROFDIFF_TOKEN"]] {
        let message = refusal(set);
        assert!(message.ends_with(renamed), "{message}");
    }
    for set in [&[][..], &["PPROFDIFF_TOKEN_A_B_EXAMPLE", "PPROFDIFF_TOKEN_A__B_EXAMPLE"]] {
        let message = refusal(set);
        assert!(message.contains("(401: who?)") && !message.contains("rename"), "{message}");
    }
}

#[test]
fn a_token_that_a_server_repeats_is_hidden() {
    let long = "x".repeat(MAX_QUOTED_CHARS - 10);
    for (secret, echo) in [
        ("s3cret-token", "s3cret-token"),
        ("me:s3cret/pass", "s3cret%2Fpass"),
        ("me:s3cret/pass", "bWU6czNjcmV0L3Bhc3M="),
    ] {
        let token = || Some(Token { variable: "PPROFDIFF_TOKEN".into(), secret: secret.into() });
        let json_text = |text: &str| format!("{{\"message\":\"{text}\"}}");
        for answer in [
            status(401, "text/plain", &format!("no {echo}")),
            status(400, "text/plain", &format!("{long}{echo}")),
            status(400, "application/json", &json_text(&format!("no {echo}"))),
            status(200, &format!("text/{echo}"), ""),
            Answer { status: 302, location: format!("https://login/{echo}?next={echo}"), ..Answer::default() },
            json(&format!("{{\"labelsSet\":\"{echo}\"}}")),
            types(&[&format!("{echo}:a:b:c:d"), "x:a:b:c:d"]),
        ] {
            let message = ask_with("pyroscope://h/{}?type=cpu", token(), vec![answer]).0.err().unwrap_or_default();
            assert!(!message.is_empty() && !message.contains(&echo[..8]), "{message}");
        }
    }
}
