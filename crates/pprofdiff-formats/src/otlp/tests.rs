//! Tests with OTLP messages made by hand.

#![allow(clippy::unwrap_used)]

use super::*;
use pprofdiff_profile::shared::wire::put;

// Writers of single fields.

pub(super) fn int(field: u32, v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put::varint(&mut out, u64::from(field << 3));
    put::varint(&mut out, v);
    out
}

pub(super) fn bytes(field: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    put::bytes(&mut out, field, content.as_ref());
    out
}

fn fixed(field: u32, v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put::varint(&mut out, u64::from(field << 3 | 1));
    out.extend_from_slice(&v.to_le_bytes());
    out
}

pub(super) fn packed(field: u32, numbers: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|&v| put::varint(&mut out, v as u64));
    bytes(field, out)
}

pub(super) fn times(n: u64) -> Vec<u8> {
    bytes(5, (1..=n).flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}

/// Builds a message from its resources and the fields of its dictionary.
pub(super) fn message(resources: &[Vec<u8>], dictionary: &[Vec<u8>]) -> Vec<u8> {
    let resources: Vec<u8> = resources.iter().flat_map(|r| bytes(1, r)).collect();
    [resources, bytes(2, dictionary.concat())].concat()
}

/// Builds a resource with its profiles in one scope.
pub(super) fn resource(attributes: &[Vec<u8>], profiles: &[Vec<u8>]) -> Vec<u8> {
    let attributes: Vec<u8> = attributes.iter().flat_map(|a| bytes(1, a)).collect();
    let profiles: Vec<u8> = profiles.iter().flat_map(|p| bytes(2, p)).collect();
    [bytes(1, attributes), bytes(2, profiles)].concat()
}

pub(super) fn profile(kind: u64, unit: u64, samples: &[Vec<u8>]) -> Vec<u8> {
    let samples: Vec<u8> = samples.iter().flat_map(|s| bytes(2, s)).collect();
    [bytes(1, [int(1, kind), int(2, unit)].concat()), samples].concat()
}

/// Builds a dictionary. Strings: 1 cpu, 2 ns, 3 count, 4 main, 5 leaf, 6 thread, 7 depth, 8 binary, 9 the key of a
/// build id. Stacks: 1 leaf < main, 2 main. Attributes: 1 thread=a, 2 depth=7 count.
pub(super) fn dictionary() -> Vec<Vec<u8>> {
    let strings =
        ["", "cpu", "ns", "count", "main", "leaf", "thread", "depth", "binary", "process.executable.build_id.go"];
    let strings = strings.iter().map(|s| bytes(5, s));
    let function = |name| bytes(3, int(1, name));
    let location = |f| bytes(2, [int(1, 1), int(2, 16 * f), bytes(3, [int(1, f), int(2, 10 + f)].concat())].concat());
    let attribute = |key, value: Vec<u8>, unit| bytes(6, [int(1, key), bytes(2, value), int(3, unit)].concat());
    let mapping = [int(1, 1), int(2, 0x1000), int(4, 8), packed(5, &[3])].concat();
    let mut all = vec![bytes(1, ""), bytes(1, mapping), bytes(2, ""), location(1), location(2)];
    all.extend([bytes(3, ""), function(4), function(5), bytes(4, ""), bytes(4, ""), bytes(6, "")]);
    all.extend([attribute(6, bytes(1, "a"), 0), attribute(7, int(3, 7), 3), attribute(9, bytes(1, "id1"), 0)]);
    all.extend([bytes(7, ""), bytes(7, packed(1, &[2, 1])), bytes(7, packed(1, &[1]))]);
    all.extend(strings);
    all
}

pub(super) fn with_samples(samples: &[Vec<u8>]) -> Vec<u8> {
    message(&[resource(&[], &[profile(1, 2, samples)])], &dictionary())
}

fn load_as(data: &[u8], format: Option<&str>) -> Result<Profile> {
    let options = LoadOptions::default();
    let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
    crate::from_bytes("in", data, &options)
}

/// Returns a line for each sample: names from the leaf, values, and labels.
pub(super) fn lines(p: &Profile) -> Vec<String> {
    let sample = |s: pprofdiff_profile::samples::Sample<'_>| {
        let mut names = Vec::new();
        s.for_each_location(|l| {
            let functions = p.locations().lines(l).map(|i| p.locations().line_function[i as usize]);
            names.extend(functions.map(|f| p.text(p.functions().name[f as usize])));
        });
        let values: Vec<i64> = (0..p.sample_types().len()).map(|t| s.value(t)).collect();
        let labels = s.labels().map(|l| match l.value {
            LabelValue::Text(text) => format!(" {}={}", p.text(l.key), p.text(text)),
            LabelValue::Number(v, unit) => format!(" {}={v}{}", p.text(l.key), p.text(unit)),
        });
        format!("{} {values:?}{}", names.join("<"), labels.collect::<String>())
    };
    p.samples().map(sample).collect()
}

#[test]
fn samples_have_stacks_values_and_labels_in_both_numberings() {
    let current = [
        [int(1, 1), packed(2, &[1, 2]), int(3, 0), packed(4, &[5])].concat(),
        [int(1, 2), packed(4, &[2, 3]), times(2)].concat(),
        [int(1, 1), packed(2, &[2, 1]), times(3)].concat(),
        packed(4, &[-4]),
    ];
    let old = [
        [int(1, 1), packed(2, &[5]), packed(3, &[1, 2]), int(4, 0)].concat(),
        [int(1, 2), packed(2, &[2, 3]), times(2)].concat(),
        [int(1, 1), packed(3, &[2, 1]), times(3)].concat(),
        packed(2, &[-4]),
    ];
    for (samples, name) in [(current, "otlp"), (old, "otlp-1.9")] {
        for format in [None, Some(name)] {
            let p = load_as(&with_samples(&samples), format).unwrap();
            assert_eq!(p.sample_types(), [("cpu".to_owned(), "ns".to_owned())]);
            let expected = ["leaf<main [8] thread=a depth=7count", "main [5]", " [-4]"];
            assert_eq!(lines(&p), expected, "{name} {format:?}");
            let mapping = p.mappings()[0];
            assert_eq!((p.text(mapping.file), p.text(mapping.build_id)), ("binary".to_owned(), "id1".to_owned()));
            assert_eq!((mapping.start, mapping.limit), (1, 0x1000));
            assert_eq!(p.locations().address, [0x20, 0x10]);
        }
    }
}

/// Returns the inferred numbering of the samples.
fn numbering(samples: &[Vec<u8>]) -> Result<Option<Numbering>> {
    OtlpMessage::scan(&with_samples(samples))?.numbering()
}

#[test]
fn the_numbering_is_inferred_from_the_types_of_fields() {
    let s = |fields: &[Vec<u8>]| fields.concat();
    for (samples, expected) in [
        (vec![packed(4, &[5])], Some(CURRENT)),
        (vec![packed(2, &[5])], Some(BEFORE)),
        (vec![s(&[packed(2, &[1]), packed(4, &[5])])], Some(CURRENT)),
        (vec![s(&[packed(2, &[1]), packed(3, &[1])])], Some(BEFORE)),
        // Attributes of 1.10, or values of 1.9, and the same number of timestamps. The link of any sample decides.
        (vec![s(&[packed(2, &[1]), times(1)]), s(&[int(3, 1), packed(2, &[1]), times(1)])], Some(CURRENT)),
        (vec![s(&[packed(2, &[1]), times(1)]), s(&[int(4, 1), packed(2, &[1]), times(1)])], Some(BEFORE)),
        // With a different count, these numbers are attributes. Without such an attribute, they are values.
        (vec![s(&[packed(2, &[1, 2]), times(1)])], Some(CURRENT)),
        (vec![s(&[packed(2, &[1, 4]), times(2)])], Some(BEFORE)),
        // Both numberings give the same result.
        (vec![times(3)], None),
        (vec![], None),
    ] {
        assert_eq!(numbering(&samples).unwrap(), expected, "{samples:?}");
    }
    let both = [s(&[int(1, 1), packed(2, &[1]), times(1)])];
    for (samples, words) in [
        (&both[..], "--input-format otlp (protocol 1.10 and later) or --input-format otlp-1.9 (1.8 and 1.9)"),
        (&[int(1, 1)], "sample 0: it fits no numbering of OTLP profiles"),
        (&[s(&[packed(3, &[1]), packed(4, &[1])])], "name it: --input-format otlp or --input-format otlp-1.9"),
    ] {
        let error = load_as(&with_samples(samples), None).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(lines(&load_as(&with_samples(&both), Some("otlp")).unwrap()), ["leaf<main [1] thread=a"]);
    assert_eq!(lines(&load_as(&with_samples(&both), Some("otlp-1.9")).unwrap()), ["leaf<main [1]"]);
    // Unpacked numbers, as async-profiler writes them.
    let unpacked = [s(&[int(1, 1), int(2, 1), int(2, 2), int(4, 5)])];
    assert_eq!(lines(&load_as(&with_samples(&unpacked), None).unwrap()), ["leaf<main [5] thread=a depth=7count"]);
    let unpacked = [s(&[int(1, 1), int(2, 1), int(3, 2), fixed(5, 1)])];
    assert_eq!(lines(&load_as(&with_samples(&unpacked), None).unwrap()), ["leaf<main [1] depth=7count"]);
}

#[test]
fn profiles_of_one_message_become_sample_types_of_one_profile() {
    let sample =
        |stack, attributes: &[i64], value| [int(1, stack), packed(2, attributes), packed(4, &[value])].concat();
    let attribute = |key: &str, value: &str| [bytes(1, key), bytes(2, bytes(1, value))].concat();
    let service_profiles =
        |service: &str, profiles: &[Vec<u8>]| resource(&[attribute("service.name", service)], profiles);
    let cpu = profile(1, 2, &[sample(1, &[1], 10), sample(2, &[], 20), sample(1, &[1], 1)]);
    let count = profile(1, 3, &[sample(2, &[], 3)]);
    let data = |resources: &[Vec<u8>]| message(resources, &dictionary());
    // A second sample type with another name: thread/count.
    let threads = profile(6, 3, &[sample(2, &[], 2), sample(1, &[2], 4)]);
    let p = load_as(
        &data(&[service_profiles("a", &[cpu.clone(), threads.clone()]), service_profiles("b", &[threads])]),
        None,
    )
    .unwrap();
    assert_eq!(p.sample_types(), [("cpu".into(), "ns".into()), ("thread".into(), "count".into())]);
    assert_eq!(
        lines(&p),
        [
            "leaf<main [11, 0] thread=a service.name=a",
            "main [20, 2] service.name=a",
            "leaf<main [0, 4] depth=7count service.name=a",
            "main [0, 2] service.name=b",
            "leaf<main [0, 4] depth=7count service.name=b",
        ]
    );
    // Equal resources are merged.
    let p = load_as(
        &data(&[service_profiles("a", std::slice::from_ref(&cpu)), service_profiles("a", std::slice::from_ref(&cpu))]),
        None,
    )
    .unwrap();
    assert_eq!(lines(&p), ["leaf<main [22] thread=a service.name=a", "main [40] service.name=a"]);
    // The user has to choose a unit if a type occurs in two.
    let both = data(&[service_profiles("a", &[cpu, count])]);
    let error = load_as(&both, None).unwrap_err().to_string();
    assert!(error.contains("cpu/ns and of cpu/count") && error.contains("--input-type cpu/ns"), "{error}");
    let options = LoadOptions::default().with_input_type("cpu/count").unwrap();
    let p = crate::from_bytes("in", &both, &options).unwrap();
    assert_eq!(lines(&p), ["main [3] service.name=a"]);
}

#[test]
fn headers_of_profiles_are_merged() {
    let about = |time, duration, period| {
        let kind = bytes(5, [int(1, 1), int(2, 2)].concat());
        [profile(1, 2, &[]), fixed(3, time), int(4, duration), kind, int(6, period)].concat()
    };
    let load = |profiles: &[Vec<u8>]| load_as(&message(&[resource(&[], profiles)], &dictionary()), None).unwrap();
    let p = load(&[about(1000, 50, 7), about(980, 30, 7)]);
    assert_eq!((p.time_nanos(), p.duration_nanos(), p.period()), (980, 70, 7));
    assert_eq!(p.period_type(), Some(("cpu".into(), "ns".into())));
    let p = load(&[about(1000, 50, 7), about(0, 99, 8)]);
    assert_eq!((p.time_nanos(), p.duration_nanos(), p.period(), p.period_type()), (1000, 50, 0, None));
    let p = load(&[about(0, 99, 7), about(u64::MAX, u64::MAX, 7)]);
    assert_eq!((p.time_nanos(), p.duration_nanos()), (i64::MAX, 0));
    // A profile without a sample type.
    let data = message(&[resource(&[], &[bytes(2, packed(4, &[3]))])], &dictionary());
    let options = LoadOptions::default().with_input_type("allocs/bytes").unwrap();
    let p = crate::from_bytes("in", &data, &options.with_input_format("otlp").unwrap()).unwrap();
    assert_eq!(p.sample_types(), [("allocs".to_owned(), "bytes".to_owned())]);
}

#[test]
fn protocols_1_8_and_1_9_number_the_fields_after_7_differently() {
    let head = |fields: &[Vec<u8>]| [profile(1, 2, &[packed(2, &[3])]), fields.concat()].concat();
    let load = |fields: &[Vec<u8>]| {
        let data = message(&[resource(&[], &[head(fields)])], &dictionary());
        load_as(&data, None).map(|p| (lines(&p), p.comments()))
    };
    let (labelled, plain) = (vec![" [3] thread=a".to_owned()], vec![" [3]".to_owned()]);
    let id = || [0; 16];
    let comments = vec!["leaf".to_owned(), "cpu".to_owned()];
    let payload = "text";
    // 1.9: id 7, dropped 8, format 9, payload 10, attributes 11. 1.8: comments 7, and the later numbers are one higher.
    for (fields, expected) in [
        (vec![bytes(7, id()), int(8, 1), bytes(9, payload), bytes(10, payload), packed(11, &[1])], (&labelled, vec![])),
        (vec![packed(11, &[1])], (&labelled, vec![])),
        (vec![packed(7, &[5, 1]), packed(12, &[1])], (&labelled, comments.clone())),
        (vec![packed(7, &[5, 1]), bytes(8, id()), bytes(11, payload)], (&plain, comments.clone())),
        (vec![packed(7, &[5, 1]), int(9, 4), bytes(10, payload), bytes(11, payload)], (&plain, comments.clone())),
    ] {
        assert_eq!(load(&fields).unwrap(), (expected.0.clone(), expected.1), "{fields:?}");
    }
}

/// Returns the label that an attribute with this value becomes, as `lines` writes it. Uses the numbers of the
/// dictionary.
fn shown(value: Vec<u8>, unit: u64) -> Result<String> {
    let mut dictionary = dictionary();
    dictionary.push(bytes(6, [int(1, 6), bytes(2, value), int(3, unit)].concat()));
    let sample = [int(1, 2), packed(2, &[4]), packed(4, &[1])].concat();
    let p = load_as(&message(&[resource(&[], &[profile(1, 2, &[sample])])], &dictionary), None)?;
    Ok(lines(&p)[0].replacen("main [1]", "", 1))
}

#[test]
fn attribute_values_become_numbers_or_text() {
    let list = |items: &[Vec<u8>]| bytes(5, items.iter().flat_map(|i| bytes(1, i)).collect::<Vec<u8>>());
    let entry = |key: &str, value: &[u8]| bytes(1, [bytes(1, key), bytes(2, value)].concat());
    let double = |v: f64| fixed(4, v.to_bits());
    for (value, unit, expected) in [
        (bytes(1, "text"), 3, " thread=text"),
        (int(3, -5i64 as u64), 3, " thread=-5count"),
        (int(3, 0), 3, " thread=0count"),
        (int(3, 0), 0, ""),
        (bytes(1, ""), 0, ""),
        (vec![], 0, ""),
        (int(8, 5), 0, " thread=leaf"),
        (int(2, 1), 0, " thread=true"),
        (int(2, 0), 0, " thread=false"),
        (double(1.5), 0, " thread=1.5"),
        (double(f64::NAN), 0, " thread=NaN"),
        (double(1e300), 0, " thread=1e300"),
        (bytes(7, [0xab, 0]), 0, " thread=ab00"),
        (list(&[]), 0, " thread=[]"),
        (
            list(&[bytes(1, "a\"b"), int(3, 1), int(2, 1), vec![], int(8, 4)]),
            0,
            " thread=[\"a\\\"b\",1,true,null,\"main\"]",
        ),
        (
            bytes(6, [entry("k", &int(3, 1)), entry("", &list(&[double(0.5)]))].concat()),
            0,
            " thread={\"k\":1,\"\":[0.5]}",
        ),
        (bytes(6, bytes(1, int(3, 5))), 0, " thread={\"leaf\":null}"),
        // The last of several values counts.
        ([bytes(1, "x"), int(3, 4), bytes(1, "y")].concat(), 0, " thread=y"),
    ] {
        assert_eq!(shown(value.clone(), unit).unwrap(), expected, "{value:?}");
    }
    let mut deep = int(3, 1);
    for _ in 0..2000 {
        deep = list(&[deep]);
    }
    assert_eq!(shown(deep, 0).unwrap(), " thread=[[[[[[[[...]]]]]]]]");
    // A value that refers to a long string many times.
    let again = list(&vec![int(8, 10); 100_000]);
    let mut dictionary = dictionary();
    dictionary.extend([bytes(5, "long".repeat(10_000)), bytes(6, [int(1, 6), bytes(2, again)].concat())]);
    let error = load_as(&message(&[resource(&[], &[])], &dictionary), Some("otlp")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn attributes_of_profiles_mappings_and_locations_undo_the_conversion_of_pprof() {
    let mut dictionary = dictionary();
    let base = 10;
    let keys = [
        "process.executable.build_id.gnu",
        "process.executable.build_id.htlhash",
        "pprof.mapping.has_functions",
        "pprof.mapping.has_inline_frames",
        "pprof.location.is_folded",
        "pprof.profile.comment.0",
        "pprof.profile.drop_frames",
        "pprof.profile.doc_url",
    ];
    dictionary.extend(keys.map(|key| bytes(5, key)));
    let value =
        |key: &str| if key.contains("pprof.profile") || key.contains("id.") { bytes(1, key) } else { int(2, 1) };
    dictionary.extend((base..).zip(keys).map(|(i, key)| bytes(6, [int(1, i), bytes(2, value(key))].concat())));
    // These are the attributes 4 to 11.
    dictionary.push(bytes(1, packed(5, &[5, 3, 4, 6, 7])));
    dictionary.push(bytes(2, [int(1, 2), int(2, 99), packed(4, &[8])].concat()));
    dictionary.push(bytes(7, packed(1, &[3])));
    let head = [profile(1, 2, &[[int(1, 3), packed(4, &[1])].concat()]), packed(11, &[1, 9, 10, 11])].concat();
    let p = load_as(&message(&[resource(&[], &[head])], &dictionary), None).unwrap();
    let mapping = p.mappings()[1];
    assert_eq!((p.text(mapping.build_id), mapping.flags), (keys[0].to_owned(), 0b1001));
    assert!(p.locations().folded[0]);
    assert_eq!((p.comments(), p.doc_url()), (vec![keys[5].to_owned()], keys[7].to_owned()));
    assert_eq!((p.text(p.header().drop_frames), lines(&p)), (keys[6].to_owned(), vec![" [1] thread=a".to_owned()]));
}

#[test]
fn errors_name_the_record_and_the_problem() {
    let s = |fields: &[Vec<u8>]| with_samples(&[fields.concat()]);
    let with = |record: Vec<u8>| {
        let mut dictionary = dictionary();
        dictionary.push(record);
        message(&[resource(&[], &[profile(1, 2, &[packed(4, &[1])])])], &dictionary)
    };
    for (data, words) in [
        (s(&[int(1, 3), packed(4, &[1])]), "profile 0, sample 0: it refers to stack 3, but there are 3"),
        (s(&[int(1, -1i64 as u64), packed(4, &[1])]), "it refers to stack -1, but there are 3"),
        (s(&[packed(2, &[4]), packed(4, &[1])]), "it refers to attribute 4, but there are 4"),
        (s(&[int(1, 1)]), "it has no values and no timestamps"),
        (s(&[packed(4, &[1, 2]), times(3)]), "it has 2 values and 3 timestamps"),
        (s(&[packed(4, &[1]), bytes(5, [0; 7])]), "its timestamps are not numbers of 64 bits"),
        (s(&[packed(4, &[i64::MAX, 1])]), "add up to more than an int64 holds"),
        (s(&[packed(4, &[1]), bytes(3, "")]), "a number is not encoded as one"),
        (s(&[bytes(1, ""), packed(4, &[1])]), "a number is not encoded as one"),
        (with_samples(&[packed(4, &[i64::MAX]), packed(4, &[1])]), "profile 0, sample 1: the values add up"),
        (
            with_samples(&[packed(4, &[i64::MAX]), [int(1, 1), packed(4, &[1])].concat()]),
            "add up to more than an int64 holds",
        ),
        (with(bytes(1, int(4, 10))), "mapping 2: it refers to string 10, but there are 10"),
        (with(bytes(1, packed(5, &[4]))), "mapping 2: it refers to attribute 4"),
        (with(bytes(2, int(1, 2))), "location 3: it refers to mapping 2"),
        (with(bytes(2, bytes(3, int(1, 3)))), "location 3: it refers to function 3"),
        (with(bytes(2, int(3, 1))), "location 3: a message or string is not encoded as one"),
        (with(bytes(3, int(3, 1 << 40))), "function 3: it refers to string 1099511627776"),
        (with(bytes(6, int(1, 10))), "attribute 4: it refers to string 10"),
        (with(bytes(6, bytes(2, int(8, 10)))), "attribute 4: it refers to string 10"),
        (with(bytes(6, bytes(2, int(4, 1)))), "attribute 4: a fraction has the wrong wire type"),
        (with(bytes(7, packed(1, &[1, 3]))), "stack 3: it refers to location 3"),
        (with(int(7, 1)), "stack: a message or string is not encoded as one"),
        (with_samples(&[]).repeat(2), "two concatenated messages"),
        (message(&[], &[bytes(5, "x")]), "string 0 is not empty"),
        (message(&[resource(&[], &[bytes(1, int(1, 99))])], &[]), "profile 0: it refers to string 99"),
        (
            message(&[resource(&[], &[[profile(0, 0, &[]), packed(3, &[1])].concat()])], &[]),
            "profile 0: field 3 is not a time; releases of the protocol before 1.8 are not supported",
        ),
        (b"\x0a\xff".to_vec(), "this is not an OTLP message"),
    ] {
        let error = load_as(&data, Some("otlp")).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let many = |n: u64| {
        let strings = (0..n + 1).map(|i| bytes(5, if i == 0 { String::new() } else { i.to_string() }));
        let profiles: Vec<Vec<u8>> = (0..n).map(|i| profile(i + 1, 0, &[packed(4, &[1])])).collect();
        load_as(&message(&[resource(&[], &profiles)], &strings.collect::<Vec<_>>()), Some("otlp"))
    };
    assert_eq!(many(64).unwrap().sample_types().len(), 64);
    assert_eq!(many(65).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn the_size_of_the_converted_profile_is_limited() {
    // Many samples share a deep stack.
    let mut dictionary = dictionary();
    dictionary.push(bytes(7, packed(1, &[1; 1000])));
    dictionary.extend((0..1000).map(|i| bytes(6, [int(1, 6), bytes(2, int(3, i + 1))].concat())));
    let samples: Vec<Vec<u8>> = (0..1000).map(|i| [int(1, 3), packed(2, &[i + 4]), packed(4, &[1])].concat()).collect();
    let data = message(&[resource(&[], &[profile(1, 2, &samples)])], &dictionary);
    assert_eq!(load_as(&data, None).unwrap().n_samples(), 1000);
    let options = LoadOptions::default().with_inflated_limit(500_000).unwrap();
    let error = crate::from_bytes("in", &data, &options).unwrap_err();
    assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("500000 bytes"), "{error}");
}

#[test]
fn otlp_is_recognised_by_its_structure() {
    let whole = with_samples(&[packed(4, &[1])]);
    let plain = message(&[resource(&[], &[profile(1, 2, &[])])], &[]);
    let dictionary_first = [bytes(2, dictionary().concat()), bytes(1, "")].concat();
    for data in [&whole[..], &plain[..], &dictionary_first[..]] {
        assert!(recognises(data), "{data:?}");
    }
    // Cut off anywhere after the sample type of the first profile.
    (20..whole.len()).for_each(|end| assert!(recognises(&whole[..end]), "{end}"));
    let span = [bytes(1, [7; 16]), bytes(2, [8; 8]), bytes(5, "GET /"), int(6, 1), fixed(7, 9)].concat();
    let spans = bytes(1, [bytes(1, ""), bytes(2, bytes(2, span))].concat());
    let log = bytes(1, bytes(2, bytes(2, [fixed(1, 9), int(2, 3)].concat())));
    let metric = bytes(1, bytes(2, bytes(2, [bytes(1, "name"), bytes(7, "x")].concat())));
    let pprof = [bytes(1, [int(1, 1), int(2, 2)].concat()), bytes(2, [packed(1, &[1]), packed(2, &[5])].concat())];
    for data in [&spans[..], &log[..], &metric[..], &pprof.concat()[..], &pprof[1][..], b"{}", b"", b"\x0a"] {
        assert!(!recognises(data), "{data:?}");
    }
}

#[test]
fn cut_or_damaged_messages_do_not_panic() {
    let samples = [
        [int(1, 1), packed(2, &[1, 2]), int(3, 0), packed(4, &[5, 6]), times(2)].concat(),
        [int(1, 2), packed(4, &[2])].concat(),
    ];
    let whole = with_samples(&samples);
    let read = |data: &[u8]| {
        for format in ["otlp", "otlp-1.9"] {
            let _ = load_as(data, Some(format));
        }
        let _ = load_as(data, None);
    };
    (0..whole.len()).for_each(|end| read(&whole[..end]));
    for offset in 0..whole.len() {
        for flip in [0x01, 0x02, 0x07, 0x08, 0x40, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[offset] ^= flip;
            read(&damaged);
        }
    }
}

/// Builds a message with every form of timestamps: packed and unpacked, with and without values, in and out of order.
pub(crate) fn timed(numbering: &str) -> Vec<u8> {
    let (values, attributes) = if numbering == "otlp" { (4, 2) } else { (2, 3) };
    const MS: u64 = 1_000_000;
    let began = 1_700_000_000_000 * MS;
    let times =
        |millis: &[u64]| bytes(5, millis.iter().flat_map(|ms| (began + ms * MS).to_le_bytes()).collect::<Vec<_>>());
    let samples = [
        [int(1, 1), packed(values, &[5, 70, 900]), times(&[40, 2, 120])].concat(),
        [int(1, 2), packed(attributes, &[1]), times(&[0, 51, 51, 340, 7000])].concat(),
        [int(1, 1), int(values, 3), fixed(5, began + 100 * MS), int(values, 4), fixed(5, began + 2600 * MS)].concat(),
    ];
    let samples = [profile(1, 2, &samples), fixed(3, began), int(4, 8000 * MS)].concat();
    message(&[resource(&[], &[samples])], &dictionary())
}

#[test]
fn a_time_window_selects_timestamps_and_their_values() {
    for format in ["otlp", "otlp-1.9"] {
        let load = |data: &[u8], window: &str| {
            let options = LoadOptions::default().with_input_format(format).unwrap();
            crate::from_bytes("in", data, &options.with_time(window.parse().unwrap()))
        };
        let p = load(&timed(format), "2ms..101ms").unwrap();
        assert_eq!(lines(&p), ["leaf<main [78]", "main [2] thread=a"]);
        assert_eq!((p.time_nanos(), p.duration_nanos()), (1_700_000_000_002_000_000, 99_000_000));
        let p = load(&timed(format), "2023-11-14T22:13:27Z..").unwrap();
        assert_eq!((lines(&p), p.duration_nanos()), (vec!["main [1] thread=a".to_owned()], 1_000_000_000));
        // Without a start time, the recording begins with the first timestamp.
        let values = if format == "otlp" { 4 } else { 2 };
        let samples = [[int(1, 1), packed(values, &[3, 4]), times(2)].concat(), [int(1, 2), times(4)].concat()];
        let p = load(&with_samples(&samples), "1ns..3ns").unwrap();
        assert_eq!(
            (lines(&p), p.time_nanos(), p.duration_nanos()),
            (vec!["leaf<main [4]".into(), "main [2]".into()], 2, 2)
        );
        let error = load(&with_samples(&[packed(values, &[1])]), "1ns..").unwrap_err().to_string();
        assert!(error.contains("profile 0, sample 0: it has no timestamps"), "{error}");
    }
}
