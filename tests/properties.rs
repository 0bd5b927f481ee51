//! Compares the engine with the plain implementation (tests/oracle), and checks invariants that hold for every profile.
//! The inputs are the real profiles of the corpus and profiles that proptest generates.

#![allow(clippy::unwrap_used)]

mod builder;

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

use crate::generate;
use crate::oracle;
use builder::{all_fields, build, mapping};
use oracle::{Frame, Sides};
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::columns::StringId;
use pprofdiff::edges::Relation;
use pprofdiff::graph::GraphOptions;
use pprofdiff::samples::LabelValue;
use pprofdiff::{
    Compression, Diff, Filters, Frames, Granularity, LoadOptions, Normalize, Profile, Query, Sort, Source, Status,
    WriteOptions, proto,
};
use pprofdiff_report::{self as report, Table, listing_json, svg};
use proptest::prelude::*;
use prost::Message;

fn load(bytes: &[u8]) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("test", bytes, &LoadOptions::default()).unwrap())
}

fn query(sample_type: &str, granularity: Granularity, no_inlines: bool) -> Query {
    Query::default().with_sample_type(sample_type).with_granularity(granularity).with_no_inlines(no_inlines)
}

fn frame(frames: &Frames, f: u32) -> Frame {
    (frames.name(f), frames.file(f), frames.line(f), frames.address(f), frames.mapping(f))
}

/// Compares every table of a diff with the plain implementation, and returns the number of compared rows.
fn check_all(base: &[u8], new: &[u8], addresses: bool) -> usize {
    let diff = Diff::new(&[load(base)], &[load(new)]).unwrap();
    let (base, new) = (oracle::decode(base), oracle::decode(new));
    let column = |p: &proto::Profile, kind: &str| {
        p.sample_type.iter().position(|t| oracle::string(p, t.r#type) == kind).unwrap()
    };
    let mut rows = 0;
    for (kind, _) in diff.sample_types() {
        for &(_, granularity) in Granularity::ALL {
            if granularity == Granularity::Addresses && !addresses {
                continue;
            }
            for no_inlines in [false, true] {
                let stacks = |p| oracle::stacks(p, column(p, &kind), granularity, no_inlines);
                let (b, n) = (stacks(&base), stacks(&new));
                let view = diff.measure(&query(&kind, granularity, no_inlines)).unwrap();
                let context = format!("{kind} {} noinlines={no_inlines}", granularity.name());

                let top = view.top(Sort::Flat);
                let mut got = BTreeMap::new();
                for r in &top.rows {
                    let sides = ((r.flat.base, r.flat.new), (r.cum.base, r.cum.new));
                    assert!(
                        got.insert(frame(&top.frames, r.frame), sides).is_none(),
                        "{context}: a frame has two rows"
                    );
                }
                let expected = oracle::top(&b, &n);
                oracle::assert_same(&got, &expected, &context);
                rows += got.len();
                for sort in [Sort::Flat, Sort::Cum] {
                    let top = view.top(sort);
                    let order = |frame: u32| {
                        let frame = self::frame(&top.frames, frame);
                        let (flat, cum) = expected[&frame];
                        let (by, other) = if sort == Sort::Flat { (flat, cum) } else { (cum, flat) };
                        (oracle::size(by, other), oracle::row_order(frame))
                    };
                    assert!(top.rows.is_sorted_by_key(|r| order(r.frame)), "{context}: rows are out of order");
                }

                let edges = view.edges(None, Sort::Flat).unwrap();
                let expected = oracle::edges(&b, &n);
                assert_eq!(edges.edges.len(), 2 * expected.len(), "{context}: each edge is seen from both ends");
                let mut got = BTreeMap::new();
                for e in edges.edges.iter().filter(|e| e.relation == Relation::Callee) {
                    got.insert(
                        (frame(&top.frames, e.node), frame(&top.frames, e.other)),
                        (e.weight.base, e.weight.new),
                    );
                }
                oracle::assert_same(&got, &expected, &context);

                for by_labels in [false, true] {
                    let stacks = view.stacks(by_labels);
                    let got: BTreeMap<(Vec<Frame>, Vec<String>), Sides> = stacks
                        .rows
                        .iter()
                        .map(|r| {
                            let frames = stacks.frames_of(r).iter().map(|&f| frame(&stacks.frames, f)).collect();
                            let labels = stacks.labels_of(r).map(str::to_owned).collect();
                            ((frames, labels), (r.weight.base, r.weight.new))
                        })
                        .collect();
                    assert_eq!(got.len(), stacks.rows.len(), "{context}: a stack has two rows");
                    oracle::assert_same(&got, &oracle::by_stack(&b, &n, by_labels), &context);
                    rows += got.len();
                }

                // The engine sums numbers regardless of their unit. The plain implementation keeps the units of the
                // file.
                let labels = view.labels();
                let sum = |sides: &mut dyn Iterator<Item = Sides>| sides.fold((0, 0), |s, v| (s.0 + v.0, s.1 + v.1));
                let expected = oracle::by_label(&b, &n);
                let got = sum(&mut labels.rows.iter().map(|r| (r.weight.base, r.weight.new)));
                assert_eq!(got, sum(&mut expected.values().copied()), "{context}");
                for r in labels.rows.iter().filter(|r| labels.number(r).is_none()) {
                    let key = format!("{}={}", labels.key(r), labels.value(r));
                    assert_eq!(expected.get(&key), Some(&(r.weight.base, r.weight.new)), "{context} {key}");
                }
            }
        }
    }
    rows
}

#[test]
fn the_corpus_agrees_with_the_plain_implementation() {
    for name in oracle::pairs() {
        // conformance.rs compares drop_frames with go tool pprof. The plain implementation has no filters, so it is
        // removed here.
        let without_drops = |bytes: Vec<u8>| {
            let message = proto::Profile { drop_frames: 0, ..oracle::decode(&bytes) };
            Message::encode_to_vec(&message)
        };
        let [base, new] = oracle::raw_pair(&name).map(without_drops);
        // If the kernel moved a binary between the runs, the engine shifts its addresses. The plain implementation does
        // not, so addresses are compared only for equal mappings (and by go tool pprof in conformance.rs).
        let starts = |bytes: &[u8]| oracle::decode(bytes).mapping.iter().map(|m| m.memory_start).collect::<Vec<_>>();
        let rows = check_all(&base, &new, starts(&base) == starts(&new));
        assert!(rows > 100, "{name}: only {rows} rows were compared");
    }
}

/// Builds stacks of up to 500 locations. Most have several frames, as with deep inlining. `id` gives the location ids;
/// `turn` varies the result between the sides.
fn deep(id: fn(u64) -> u64, turn: u64) -> Vec<u8> {
    let texts = ["", "samples", "count"].into_iter().map(str::to_owned).chain((0..40).map(|i| format!("f{i}")));
    let line = |function_id, line| proto::Line { function_id, line, ..Default::default() };
    let location = |i: u64| proto::Location {
        id: id(i),
        address: 16 * i,
        line: (0..[1, 2, 3, 5][i as usize % 4]).map(|k| line((i * 7 + k * 3) % 40 + 1, (i + k) as i64)).collect(),
        ..Default::default()
    };
    let sample = |(n, depth): (u64, u64)| proto::Sample {
        location_id: (0..depth).map(|d| id((d * d + 13 * n * d + turn) % 300)).collect(),
        value: vec![[1, -70_000, 1 << 40][n as usize % 3] + (n + turn) as i64],
        ..Default::default()
    };
    let depths = [0, 1, 2, 21, 22, 63, 64, 65, 84, 85, 86, 127, 128, 129, 500];
    let function = |i: u64| proto::Function { id: i + 1, name: i as i64 + 3, ..Default::default() };
    let message = proto::Profile {
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        sample: (0..).zip(depths).map(sample).collect(),
        location: (0..300).map(location).collect(),
        function: (0..40).map(function).collect(),
        string_table: texts.map(String::into_bytes).collect(),
        ..Default::default()
    };
    message.encode_to_vec()
}

#[test]
fn deep_stacks_of_inlined_frames_agree_with_the_plain_implementation() {
    // Consecutive ids, ids with gaps, and ids of up to nine bytes take three different lookup paths.
    for id in [|i| i + 1, |i| 3 * i + 5, |i| (i + 1) << (7 * (i % 8))] as [fn(u64) -> u64; 3] {
        assert!(check_all(&deep(id, 0), &deep(id, 5), true) > 1000);
    }
}

/// Returns the rows of a diff as (frame, flat, cum, status), in order.
fn rows(diff: &Diff, q: &Query) -> Vec<(Frame, Sides, Sides, Status)> {
    let top = diff.measure(q).unwrap().top(Sort::Flat);
    top.rows
        .iter()
        .map(|r| (frame(&top.frames, r.frame), (r.flat.base, r.flat.new), (r.cum.base, r.cum.new), r.status))
        .collect()
}

fn swap((base, new): Sides) -> Sides {
    (new, base)
}

fn check_invariants(a: &Arc<Profile>, b: &Arc<Profile>) {
    let diff = |base: &Arc<Profile>, new: &Arc<Profile>| Diff::new(from_ref(base), from_ref(new)).unwrap();
    let (same, ab, ba) = (diff(a, a), diff(a, b), diff(b, a));
    let raw = |p: &Profile| p.to_bytes(&WriteOptions::default().with_compression(Compression::None)).unwrap();
    for (kind, _) in ab.sample_types() {
        let mut flat_totals = Vec::new();
        for &(_, granularity) in Granularity::ALL {
            let q = query(&kind, granularity, false);
            assert!(
                rows(&same, &q)
                    .iter()
                    .all(|(_, flat, cum, s)| *s == Status::Same && flat.0 == flat.1 && cum.0 == cum.1)
            );
            let forward = rows(&ab, &q);
            // Rows are sorted by magnitude, so the order is the same in both directions.
            let mirrored: Vec<_> = rows(&ba, &q)
                .into_iter()
                .map(|(f, flat, cum, status)| {
                    let status = match status {
                        Status::Added => Status::Removed,
                        Status::Removed => Status::Added,
                        other => other,
                    };
                    (f, swap(flat), swap(cum), status)
                })
                .collect();
            if granularity != Granularity::Addresses {
                // Addresses come from the new side, so they may differ between the two directions.
                assert!(forward == mirrored, "{kind} {}: diff(a, b) is not -diff(b, a)", granularity.name());
            }
            flat_totals.push(forward.iter().fold((0, 0), |t, (_, flat, _, _)| (t.0 + flat.0, t.1 + flat.1)));
        }
        assert!(
            flat_totals.windows(2).all(|w| w[0] == w[1]),
            "{kind}: flat totals differ by granularity: {flat_totals:?}"
        );

        // A diff that is written and read again is equal.
        let written = ab.to_profile(&Query::default()).unwrap();
        let reloaded = load(&written.to_bytes(&WriteOptions::default()).unwrap());
        let n_types = a.sample_types().len();
        let nothing_of_base = a.samples().all(|s| (0..n_types).all(|t| s.value(t) == 0));
        if !nothing_of_base {
            let again = Diff::of_profile(&reloaded).unwrap();
            let q = query(&kind, Granularity::Lines, false);
            let in_order = |d: &Diff| {
                // Merging drops samples whose columns are all zero, so rows of zeros are ignored.
                let mut all = rows(d, &q);
                all.retain(|(_, flat, cum, _)| (*flat, *cum) != ((0, 0), (0, 0)));
                all.iter().map(|r| (r.0.clone(), r.1, r.2)).collect::<Vec<_>>()
            };
            assert!(in_order(&again) == in_order(&ab), "{kind}: a written diff says something else");
        }
    }
    // Writing does not change the message, with any compression.
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let bytes = a.to_bytes(&WriteOptions::default().with_compression(compression)).unwrap();
        assert!(raw(&load(&bytes)) == raw(a), "writing changes the message");
    }
    // Merging is associative to the byte, and commutative except for the order.
    let merge = |ps: &[&Profile]| pprofdiff::merge(ps).unwrap();
    let c = merge(&[a, b]);
    assert!(raw(&merge(&[&c, a])) == raw(&merge(&[a, &merge(&[b, a])])), "merge is not associative");
    assert!(raw(&merge(&[&c])) == raw(&c), "merging one merged profile changes it");
    let written = pprofdiff::merge_bytes(&[(a, 1.0), (b, 1.0)], &WriteOptions::default()).unwrap();
    assert!(written == c.to_bytes(&WriteOptions::default()).unwrap(), "a merge without decoding writes other bytes");
    oracle::assert_same(&content(&merge(&[a, b])), &content(&merge(&[b, a])), "merge is not commutative");
}

/// Returns the samples of a profile by content, independent of their order and numbering, with summed values.
fn content(p: &Profile) -> BTreeMap<String, Vec<i64>> {
    let raw = p.to_bytes(&WriteOptions::default().with_compression(Compression::None)).unwrap();
    let message = oracle::decode(&raw);
    let mut samples = BTreeMap::new();
    for column in 0..message.sample_type.len() {
        // Absolute addresses come from the first profile, so they are ignored.
        for s in oracle::stacks(&message, column, Granularity::Lines, false) {
            let all = samples
                .entry(format!("{:?} {:?}", s.frames, s.labels))
                .or_insert_with(|| vec![0; message.sample_type.len()]);
            all[column] += s.value;
        }
    }
    samples.retain(|_, values| values.iter().any(|&v| v != 0));
    samples
}

#[test]
fn invariants_hold_for_the_corpus() {
    for name in oracle::pairs() {
        let [a, b] = oracle::raw_pair(&name).map(|bytes| load(&bytes));
        check_invariants(&a, &b);
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    for name in oracle::pairs() {
        let paths = ["base", "new"].map(|side| oracle::corpus().join(format!("{name}.{side}.pb.gz")));
        let answer = || {
            let source = |i: usize| Source::Path(paths[i].clone());
            let diff = Diff::load(&[source(0)], &[source(1), source(0)], &LoadOptions::default()).unwrap();
            let view = diff.measure(&Query::default().with_granularity(Granularity::Lines)).unwrap();
            let mut out = Vec::new();
            Table::top(&view.top(Sort::Flat), usize::MAX).write_json(&mut out).unwrap();
            Table::tree(&view.edges(None, Sort::Cum).unwrap()).write_json(&mut out).unwrap();
            Table::stacks(&view.stacks(true), usize::MAX).write_json(&mut out).unwrap();
            Table::labels(&view.labels()).write_json(&mut out).unwrap();
            out.extend(svg(&view.graph(&GraphOptions::default()).unwrap()).unwrap().into_bytes());
            listing_json(&diff.list(&Query::default(), ".", &()).unwrap(), &mut out).unwrap();
            report::speedscope(&view.stacks(false), &mut out).unwrap();
            out.extend(diff.to_profile(&Query::default()).unwrap().to_bytes(&WriteOptions::default()).unwrap());
            out
        };
        let alone = answer();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(answer) == alone, "{name} with {threads} threads");
        }
    }
}

/// At this number, samples are split between threads at load and for the table of functions.
#[test]
fn a_large_profile_gives_the_same_result_for_any_number_of_threads() {
    let mut message = oracle::decode(&oracle::raw_pair("go-heap")[0]);
    let samples = message.sample.clone();
    while message.sample.len() < 300_000 {
        let n = message.sample.len() as i64;
        message.sample.extend(samples.iter().cloned().map(|mut s| {
            s.value.iter_mut().for_each(|v| *v = *v % 1000 + n % 7);
            s
        }));
    }
    let bytes = message.encode_to_vec();
    let answer = || {
        let diff = Diff::of_profile(&load(&bytes)).unwrap();
        let mut out = Vec::new();
        Table::top(&diff.measure(&Query::default()).unwrap().top(Sort::Flat), usize::MAX).write_json(&mut out).unwrap();
        out
    };
    let alone = answer();
    // The error for a bad sample has the same number and offset as without threads.
    let position = message.sample.len() - 1000;
    message.sample[position].location_id.push(u64::MAX);
    let damaged = message.encode_to_vec();
    let error = || pprofdiff::from_bytes("bad", &damaged, &LoadOptions::default()).unwrap_err().to_string();
    let alone_error = error();
    assert!(alone_error.contains(&format!("sample {position}")), "{alone_error}");
    for threads in [2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(answer) == alone, "{threads} threads");
        assert_eq!(pool.install(error), alone_error, "{threads} threads");
    }
}

#[test]
fn summed_sides_add_up_their_files() {
    let [a, b] = oracle::raw_pair("go-heap").map(|bytes| load(&bytes));
    let q = query("alloc_space", Granularity::Functions, false);
    let doubled = Diff::new(&[a.clone(), a.clone()], from_ref(&b)).unwrap().summed();
    let single = Diff::new(&[a], &[b]).unwrap();
    let mut expected: Vec<_> =
        rows(&single, &q).into_iter().map(|(f, flat, cum, _)| (f, (2 * flat.0, flat.1), (2 * cum.0, cum.1))).collect();
    let mut got: Vec<_> = rows(&doubled, &q).into_iter().map(|(f, flat, cum, _)| (f, flat, cum)).collect();
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
}

#[test]
fn normalizing_by_total_makes_the_totals_equal() {
    for name in oracle::pairs() {
        let [a, b] = oracle::raw_pair(&name).map(|bytes| load(&bytes));
        let diff = Diff::new(&[a], &[b]).unwrap();
        for (kind, _) in diff.sample_types() {
            let q = Query::default().with_sample_type(kind.clone()).with_normalize(Normalize::Total);
            match diff.measure(&q) {
                Ok(view) => assert_eq!(view.summary().total.base, view.summary().total.new, "{name} {kind}"),
                Err(e) => assert!(e.to_string().contains("is zero"), "{name} {kind}: {e}"),
            }
        }
    }
}

#[test]
fn different_units_of_one_type_are_converted_to_the_finer_one() {
    let side = |unit: &str, value: i64| {
        let p = proto::Profile {
            string_table: [b"".as_slice(), b"cpu", unit.as_bytes(), b"f"].map(<[u8]>::to_vec).to_vec(),
            sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
            function: vec![proto::Function { id: 1, name: 3, ..Default::default() }],
            location: vec![proto::Location {
                id: 1,
                line: vec![proto::Line { function_id: 1, ..Default::default() }],
                ..Default::default()
            }],
            sample: vec![proto::Sample { location_id: vec![1], value: vec![value], label: vec![] }],
            ..Default::default()
        };
        Arc::new(p.load("units").unwrap())
    };
    let view = |base, new| -> pprofdiff::Result<_> { Diff::new(&[base], &[new])?.measure(&Query::default()) };
    let mixed = view(side("milliseconds", 3), side("microseconds", 5)).unwrap();
    let row = mixed.top(Sort::Flat).rows[0];
    assert_eq!((row.flat.base, row.flat.new, mixed.summary().unit.as_str()), (3000, 5, "microseconds"));
    let error = |base, new| view(base, new).err().unwrap().to_string();
    assert!(error(side("bytes", 3), side("seconds", 5)).contains("do not convert"));
    assert!(error(side("hours", i64::MAX / 4), side("nanoseconds", 5)).contains("int64"));
    assert!(error(side("count", i64::MAX / 2 + 1), side("count", i64::MAX / 2 + 1)).contains("int64"));
    let exact = view(side("count", (1 << 62) - 1), side("count", 1 << 62)).unwrap();
    assert_eq!(exact.top(Sort::Flat).rows[0].flat.delta(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: oracle::cases(96), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_profiles_agree_with_the_plain_implementation(
        a in generate::recipe(), b in generate::recipe(), forms in (0u8..32, 0u8..32)
    ) {
        let (a, b) = (generate::profile(&a), generate::profile(&b));
        check_all(&generate::encode(&a, forms.0), &generate::encode(&b, forms.1), true);
    }

    #[test]
    fn a_builder_writes_the_same_profile_as_prost(recipe in generate::recipe()) {
        let mut message = generate::profile(&recipe);
        // Fields that recipes never set.
        let texts = ["pkg.dropped", "pkg.kept", "said", "said again", "https://example.org/", "events", "count", "id"];
        let [drop, keep, one, two, url, events, count, id] = texts.map(|text| {
            message.string_table.push(text.into());
            message.string_table.len() as i64 - 1
        });
        (message.drop_frames, message.keep_frames, message.comment, message.doc_url) = (drop, keep, vec![one, two], url);
        message.default_sample_type = message.sample_type[0].r#type;
        (message.period_type, message.period) = (Some(proto::ValueType { r#type: events, unit: count }), 97);
        message.mapping[1].build_id = id;
        (message.mapping[1].has_filenames, message.mapping[2].file_offset) = (true, 4096);
        for f in &mut message.function {
            f.system_name = f.name;
        }
        for (i, line) in message.location.iter_mut().flat_map(|l| &mut l.line).enumerate() {
            line.column = i as i64 % 3;
        }
        let built = build(&message).build("test").unwrap();
        let again = built.to_bytes(&WriteOptions::default().with_compression(Compression::None)).unwrap();
        prop_assert_eq!(all_fields(&oracle::decode(&again)), all_fields(&message));
        // The engine treats both as equal.
        check_all(&again, &message.encode_to_vec(), true);
    }

    #[test]
    fn a_builder_refuses_unknown_ids_and_wrong_value_counts(recipe in generate::recipe(), more in 0..3_usize) {
        let message = generate::profile(&recipe);
        let mut larger = build(&message);
        let n_strings = (message.string_table.len() + 9) as u32;
        let function = (0..40).map(|i| larger.function(format!("more {i}"), "", 0)).last().unwrap();
        let line = larger.line(function, 1);
        let location = (0..40).map(|i| larger.location(None, i, &[line]).unwrap()).last().unwrap();
        let text = (0..n_strings).map(|i| larger.string(format!("text {i}"))).last().unwrap();
        let mapping = (0..9).map(|_| larger.mapping(mapping(&mut ProfileBuilder::new(), &Default::default(), |_| b""))).last();
        let types = message.sample_type.len();
        let mut small = build(&message);
        let values = vec![1; types];
        let label = |key, value| [pprofdiff::samples::Label { key, value }];
        let (key, empty) = (small.string("key"), StringId::EMPTY);
        prop_assert!(small.location(mapping, 0, &[]).is_err());
        prop_assert!(small.location(None, 0, &[line]).is_err());
        prop_assert!(small.sample(&[location], &values, &[]).is_err());
        prop_assert!(small.sample(&[], &values, &label(text, LabelValue::Text(empty))).is_err());
        prop_assert!(small.sample(&[], &values, &label(key, LabelValue::Text(text))).is_err());
        prop_assert!(small.sample(&[], &values, &label(key, LabelValue::Number(1, text))).is_err());
        let wrong = if more == types { types + 1 } else { more };
        prop_assert!(small.sample(&[], &vec![1; wrong], &[]).is_err());
        // Refused samples leave nothing behind.
        prop_assert_eq!(small.n_samples(), message.sample.len());
        small.sample(&[], &values, &label(key, LabelValue::Text(empty))).unwrap();
        // Some errors are detected only at the end: a sample type added after samples, and foreign strings in the
        // header.
        let mut late = build(&message);
        late.sample(&[], &values, &[]).unwrap();
        late.sample_type("late", "count");
        prop_assert!(late.build("test").is_err());
        small.header().doc_url = text;
        let e = small.build("test").unwrap_err();
        prop_assert!(e.to_string().starts_with("test: ") && e.to_string().contains("does not have"), "{}", e);
    }

    #[test]
    fn invariants_hold_for_generated_profiles(
        a in generate::recipe(), b in generate::recipe(), forms in (0u8..32, 0u8..32)
    ) {
        let (a, b) = (generate::profile(&a), generate::profile(&b));
        check_invariants(&load(&generate::encode(&a, forms.0)), &load(&generate::encode(&b, forms.1)));
    }
}

#[test]
fn a_diff_takes_owned_or_shared_profiles() {
    let load = |name: &str| pprofdiff::open(oracle::corpus().join(name), &LoadOptions::default()).unwrap();
    let shared = Arc::new(load("story-cpu.new.pb.gz"));
    let diff = Diff::between(load("story-cpu.base.pb.gz"), shared.clone()).unwrap();
    assert_eq!(diff.base().map(|p| p.n_samples()).collect::<Vec<_>>(), [156]);
    assert!(diff.new_side().count() == 1 && diff.new_side().all(|p| Arc::ptr_eq(p, &shared)));
}

#[test]
fn paths_and_sources_give_the_same_diff() {
    let path = |side: &str| oracle::corpus().join(format!("go-mutex.{side}.pb.gz"));
    let options = LoadOptions::default();
    let rows = |diff: Diff| diff.measure(&Query::default()).unwrap().top(Sort::Cum).rows;
    let opened = rows(Diff::open(path("base"), path("new").to_str().unwrap(), &options).unwrap());
    let source = |side| Source::Path(path(side));
    assert!(!opened.is_empty());
    assert_eq!(opened, rows(Diff::load(&[source("base")], &[source("new")], &options).unwrap()));
    // The mean of a run that is listed twice is the run itself.
    let twice = Diff::load(&[source("base")], &[source("new"), source("new")], &options).unwrap();
    assert_eq!(opened, rows(twice.clone()));
    assert_ne!(opened, rows(twice.summed()));
}

#[test]
fn filters_are_set_by_name() {
    let filters = Filters::default().with("focus", "a").unwrap().with("hide", "").unwrap();
    assert_eq!((filters.focus.as_deref(), filters.set()), (Some("a"), vec![("focus", "a")]));
    assert!(filters.with("fokus", "a").unwrap_err().to_string().contains("there is no filter \"fokus\""));
}
