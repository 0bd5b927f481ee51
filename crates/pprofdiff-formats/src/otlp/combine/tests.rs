//! Tests that files of the collector's file exporter equal the sum of their messages, and tests with messages made by
//! hand.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use super::super::tests::{bytes, dictionary, int, lines, message, packed, profile, resource, times, with_samples};
use super::*;
use crate::LoadOptions;
use crate::kit::tree::rows;
use pprofdiff_profile::Profile;

fn load(data: &[u8]) -> Result<Profile> {
    crate::from_bytes("in", data, &LoadOptions::default())
}

/// Writes messages after their lengths.
fn framed(messages: &[&[u8]]) -> Vec<u8> {
    let length = |message: &[u8]| u32::try_from(message.len()).unwrap().to_be_bytes();
    messages.iter().flat_map(|message| [&length(message), *message].concat()).collect()
}

/// Returns the sum of the values for each sample type, and each stack with its labels.
fn sums(profiles: &[Profile]) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for p in profiles {
        for row in rows(p) {
            let (key, values) = row.rsplit_once(": ").unwrap();
            for ((kind, unit), value) in p.sample_types().iter().zip(values.split(' ')) {
                *sums.entry((format!("{kind}/{unit}"), key.to_owned())).or_insert(0) += value.parse::<i64>().unwrap();
            }
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

#[test]
fn collector_files_are_the_sum_of_their_messages() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/inputs");
    let open = |name: &str| crate::open(inputs.join(format!("{name}.otlp.gz")), &LoadOptions::default()).unwrap();
    let messages = ["cpp-cpu.base", "go-labels-cpu.new", "go-heap.new"].map(open);
    let expected = sums(&messages);
    assert!(expected.len() > 300, "{}", expected.len());
    for name in ["collector.jsonl", "collector.frames", "collector.json-zstd", "collector.zstd"] {
        let p = open(name);
        let types: Vec<String> = p.sample_types().iter().map(|(kind, _)| kind.clone()).collect();
        assert_eq!(types, ["samples", "cpu", "alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], "{name}");
        assert!(sums(&[p]) == expected, "{name}");
    }
}

#[test]
fn both_numberings_and_json_give_the_same_profile() {
    let current =
        with_samples(&[[int(1, 1), packed(2, &[1, 2]), packed(4, &[5])].concat(), [int(1, 2), times(3)].concat()]);
    // The link decides the numbering: the dictionary does not have it.
    let old = with_samples(&[
        [int(1, 1), packed(2, &[5]), packed(3, &[1, 2]), int(4, 0)].concat(),
        [int(1, 2), times(3)].concat(),
    ]);
    let json = |samples: &str| {
        format!(
            r#"{{"resourceProfiles": [{{"scopeProfiles": [{{"profiles": [{{"sampleType": {{"typeStrindex": 1, "unitStrindex": 2}},
            "{samples}": [{{"stackIndex": 1, "attributeIndices": [1, "2"], "values": ["5"], "linkIndex": 0}},
            {{"stackIndex": 2, "timestampsUnixNano": ["1", 2, "3"], "unknown": [{{}}]}}]}}]}}]}}],
            "dictionary": {{"stringTable": ["", "cpu", "ns", "count", "main", "leaf", "thr\u0065ad", "depth"],
            "mappingTable": [{{}}], "linkTable": [{{}}], "functionTable": [{{}}, {{"nameStrindex": 4}}, {{"nameStrindex": 5}}],
            "locationTable": [{{}}, {{"lines": [{{"functionIndex": 1}}], "address": "18446744073709551615"}},
            {{"lines": [{{"functionIndex": 2, "line": 3e0}}], "mappingIndex": null}}],
            "attributeTable": [{{}}, {{"keyStrindex": 6, "value": {{"stringValue": "a"}}}},
            {{"keyStrindex": 7, "value": {{"intValue": "7"}}, "unitStrindex": 3}}],
            "stackTable": [{{}}, {{"locationIndices": [2, 1]}}, {{"locationIndices": [1]}}]}}}}"#
        )
    };
    let expected = ["leaf<main [5] thread=a depth=7count", "main [3]"];
    for data in [&current, &old, json("samples").as_bytes(), json("sample").as_bytes()] {
        assert_eq!(lines(&load(data).unwrap()), expected);
        for (several, n) in [(framed(&[data]), 1), (framed(&[&current, data, &old]), 3)] {
            let p = load(&several).unwrap();
            assert_eq!(lines(&p), expected.repeat(n), "{n}");
            assert_eq!(p.total(0), Some(8 * n as i64));
        }
    }
    let p = load(format!("{}\n\n {}", json("samples"), json("sample")).as_bytes()).unwrap();
    assert_eq!(lines(&p), expected.repeat(2));
    assert_eq!(p.locations().address.iter().max(), Some(&u64::MAX));
}

#[test]
fn json_attributes_match_protobuf_attributes() {
    let value = |value: &str| {
        let text = format!(
            r#"{{"resourceProfiles":[{{"resource":{{"attributes":[{{"key":"k","value":{{{value}}}}}]}},"scopeProfiles":[{{"profiles":
            [{{"samples":[{{"values":[1]}}]}}]}}]}}],"dictionary":{{"stringTable":["","x"]}}}}"#
        );
        load(text.as_bytes()).map(|p| lines(&p).join("")).map_err(|e| e.to_string())
    };
    let deep = |n: usize| format!("{}{}", r#""arrayValue":{"values":[{"#.repeat(n), "}]}".repeat(n));
    for (json, label) in [
        (r#""stringValue":"a\tb""#, " k=a\tb"),
        (r#""stringValueStrindex":1"#, " k=x"),
        (r#""boolValue":true"#, " k=true"),
        (r#""intValue":"-9223372036854775808""#, " k=-9223372036854775808"),
        (r#""doubleValue":1.5"#, " k=1.5"),
        (r#""doubleValue":"-Infinity""#, " k=-inf"),
        (r#""bytesValue":"AP8Q""#, " k=00ff10"),
        (r#""bytesValue":"_w""#, " k=ff"),
        (r#""arrayValue":{"values":[{"intValue":1},{"boolValue":false}]}"#, " k=[1,false]"),
        (r#""kvlistValue":{"values":[{"key":"a","value":{"intValue":2}}]}"#, " k={\"a\":2}"),
        (&deep(5000), " k=[[[[[[[[...]]]]]]]]"),
    ] {
        assert_eq!(value(json), Ok(format!(" [1]{label}")), "{json}");
    }
    for (json, words) in [
        (r#""intValue":"1.5""#, "expected a whole number"),
        (r#""bytesValue":"!""#, "not in base64"),
        (r#""stringValueStrindex":2"#, "message 0: it refers to string 2, but there are 2"),
        (r#""stringValue":2"#, "expected a string, not '2'"),
    ] {
        let error = value(json).unwrap_err();
        assert!(error.contains(words), "{json}: {error}");
    }
}

#[test]
fn errors_name_the_message() {
    let good = with_samples(&[[int(1, 1), packed(4, &[5])].concat()]);
    let bad = with_samples(&[[int(1, 9), packed(4, &[5])].concat()]);
    let no_value = with_samples(&[int(1, 1)]);
    let error = |data: &[u8]| load(data).unwrap_err().to_string();
    let place = format!("(at byte {} of the inflated data)", 4 + good.len());
    let message = error(&framed(&[&good, &bad]));
    assert!(
        message.contains("message 1, profile 0, sample 0: it fits no numbering") && message.contains(&place),
        "{message}"
    );
    let message = error(&framed(&[&good, &no_value]));
    assert!(message.contains("message 1, ") && message.contains("it has no values and no timestamps"), "{message}");
    let named = LoadOptions::default().with_input_format("otlp").unwrap();
    let message = crate::from_bytes("in", &framed(&[&good, &bad]), &named).unwrap_err().to_string();
    assert!(
        message.contains("message 1: it refers to stack 9, but there are 3") && message.contains(&place),
        "{message}"
    );
    let whole = framed(&[&good, &good]);
    for end in good.len() + 5..whole.len() {
        let message = error(&whole[..end]);
        assert!(message.contains("it was cut off"), "{end}: {message}");
    }
    let text = "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":1}]}]}]}]}";
    let message = error(text.as_bytes());
    assert!(
        message.contains("message 0: it refers to stack 1, but there are 0")
            && message.contains(&format!("(at byte {} of", text.find("1}").unwrap())),
        "{message}"
    );
    for end in 20..text.len() {
        let message = error(&text.as_bytes()[..end]);
        assert!(message.contains("it was cut off") || message.contains("stack 1, but there are 0"), "{end}: {message}");
    }
    // The limit applies to all messages together.
    let options = LoadOptions { inflated_limit: 2 * whole.len() as u64, ..LoadOptions::default() };
    assert!(crate::from_bytes("in", &whole, &options).is_ok());
    let packed = zstd::encode_all(&vec![b' '; 4 * whole.len()][..], 1).unwrap();
    let json = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let message = crate::from_bytes("in", &framed(&[&json, &packed]), &options).unwrap_err();
    assert!([ErrorKind::Malformed, ErrorKind::Limit].contains(&message.kind()), "{message}");
    let message = crate::from_bytes("in", &framed(&[&good, &packed]), &options).unwrap_err();
    assert_eq!((message.kind(), message.record()), (ErrorKind::Limit, Some("message 1")), "{message}");
}

#[test]
fn a_single_message_is_not_combined() {
    let whole = message(&[resource(&[], &[profile(1, 2, &[packed(4, &[5])])])], &dictionary());
    assert_eq!(combine(&whole, None, 1 << 20).unwrap(), None);
    assert_eq!(combine(&bytes(1, ""), None, 1 << 20).unwrap(), None);
}
