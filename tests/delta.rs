//! Tests of deltas between snapshots of cumulative profiles: against a plain implementation, against the Go library
//! (live), and invariants. The series of snapshots are real (tests/corpus/series) and synthetic. `go` must be
//! installed.

#![allow(clippy::unwrap_used)]

#[path = "delta/golang.rs"]
mod golang;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::generate;
use crate::generated_series as series;
use crate::oracle;
use pprofdiff::delta::{Delta, DeltaComputer, DeltaOptions, OnReset, Reset, delta};
use pprofdiff::{Compression, Diff, ErrorKind, LoadOptions, Profile, Query, WriteOptions, merge, proto};
use series::Process;

/// The content of a sample: mapping, relative address, lines and folded flag of each location; then the labels.
type Key = (Vec<String>, Vec<String>);

/// Sums a profile by sample content in the simplest way. The keys contain only fields that pprof's `merge`
/// distinguishes.
fn plain(p: &proto::Profile) -> BTreeMap<Key, Vec<i64>> {
    let text = |index: i64| oracle::string(p, index);
    let mapping = |id: u64| p.mapping.iter().find(|m| m.id == id && id != 0);
    let location = |id: &u64| {
        let l = p.location.iter().find(|l| l.id == *id).unwrap();
        let binary = mapping(l.mapping_id).map(|m| {
            let name = if m.build_id != 0 { m.build_id } else { m.filename };
            (m.memory_limit.wrapping_sub(m.memory_start).div_ceil(4096), m.file_offset, text(name))
        });
        let start = mapping(l.mapping_id).map_or(0, |m| m.memory_start);
        let lines: Vec<_> = l
            .line
            .iter()
            .map(|line| {
                let f = p.function.iter().find(|f| f.id == line.function_id).unwrap();
                (text(f.name), text(f.system_name), text(f.filename), f.start_line, line.line, line.column)
            })
            .collect();
        format!("{binary:?} {} {lines:?} {}", l.address.wrapping_sub(start), l.is_folded)
    };
    let mut sums: BTreeMap<Key, Vec<i64>> = BTreeMap::new();
    for s in &p.sample {
        let labels = s.label.iter().filter(|l| l.str != 0 || l.num != 0 || l.num_unit != 0);
        let mut labels: Vec<(bool, String, String)> = labels
            .map(|l| (l.str == 0, text(l.key), format!("{:?} {} {:?}", text(l.str), l.num, text(l.num_unit))))
            .map(|(numeric, key, value)| (numeric, key, if numeric { value } else { value.replace(' ', "_") }))
            .collect();
        labels.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let labels = labels.into_iter().map(|(numeric, key, value)| format!("{numeric} {key}={value}")).collect();
        let sum = sums
            .entry((s.location_id.iter().map(location).collect(), labels))
            .or_insert_with(|| vec![0; p.sample_type.len()]);
        sum.iter_mut().zip(&s.value).for_each(|(sum, v)| *sum += v);
    }
    sums
}

/// Computes the expected delta. `before` is `None` for the first snapshot.
fn plain_delta(before: Option<&proto::Profile>, now: &proto::Profile, cumulative: &[usize]) -> BTreeMap<Key, Vec<i64>> {
    let (before, mut now) = (before.map(plain).unwrap_or_default(), plain(now));
    for (key, values) in &mut now {
        cumulative.iter().for_each(|&c| values[c] -= before.get(key).map_or(0, |b| b[c]));
    }
    now.retain(|_, values| values.iter().any(|&v| v != 0));
    now
}

/// Returns the number of samples with a nonzero count that vanished, and whether they held more than half of either
/// counter.
fn plain_vanished(before: &[u8], now: &[u8]) -> (usize, bool) {
    let (before, now) = (plain(&oracle::decode(before)), plain(&oracle::decode(now)));
    let gone: Vec<&Vec<i64>> = before.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, v)| v).collect();
    let sum = |all: &mut dyn Iterator<Item = &Vec<i64>>, c: usize| -> i64 { all.map(|v| v[c].abs()).sum() };
    let half = |c: usize| 2 * sum(&mut gone.iter().copied(), c) > sum(&mut before.values(), c);
    (gone.iter().filter(|v| v[0] != 0 || v[1] != 0).count(), half(0) || half(1))
}

fn load(bytes: &[u8]) -> Profile {
    pprofdiff::from_bytes("snapshot", bytes, &LoadOptions::default()).unwrap()
}

const RAW: WriteOptions = WriteOptions::new().with_compression(Compression::None);

fn message(d: &Delta<'_>) -> Vec<u8> {
    d.to_bytes(&RAW).unwrap()
}

/// Reads the inflated snapshots of a real series.
fn real_snapshots(kind: &str) -> Vec<Vec<u8>> {
    let file = |i: usize| oracle::corpus().join(format!("series/{kind}-{i:02}.pb.gz"));
    (0..12).map(|i| oracle::gunzip(&std::fs::read(file(i)).unwrap())).collect()
}

/// The snapshot in the real series that is the first of a restarted process.
const RESTARTED: usize = 9;

const KINDS: [&str; 4] = ["heap", "mutex", "block", "goroutine"];

fn cumulative(kind: &str) -> &'static [usize] {
    if kind == "goroutine" { &[] } else { &[0, 1] }
}

/// The policy for profiles with these cumulative columns. If there are none, all columns are declared to be gauges.
fn policy(cumulative: &[usize]) -> DeltaOptions {
    let options = DeltaOptions::default();
    if cumulative.is_empty() { options.with_cumulative([""; 0]) } else { options }
}

/// Generates snapshots, each in another encoding.
fn generate_snapshots(seed: u64, n: u8, vanishing: bool) -> Vec<Vec<u8>> {
    let mut process = Process::new(seed, vanishing);
    (0..n).map(|i| generate::encode(&process.snapshot(), i.wrapping_mul(11).wrapping_add(seed as u8) % 32)).collect()
}

/// Checks that a written delta contains only records that it uses, in the order of Go's writers.
fn assert_pruned(p: &proto::Profile) {
    let locations: BTreeSet<u64> = p.sample.iter().flat_map(|s| s.location_id.clone()).collect();
    assert_eq!(locations, p.location.iter().map(|l| l.id).collect());
    let functions: BTreeSet<u64> = p.location.iter().flat_map(|l| l.line.iter().map(|l| l.function_id)).collect();
    assert_eq!(functions, p.function.iter().map(|f| f.id).collect());
    // The first mapping is the main binary, whether or not it is used.
    let mappings: BTreeSet<u64> = p.location.iter().map(|l| l.mapping_id).filter(|&id| id != 0).collect();
    assert!(p.mapping.iter().skip(1).all(|m| mappings.contains(&m.id)));
    let strings = (p.sample_type.iter().chain(&p.period_type).flat_map(|t| [t.r#type, t.unit]))
        .chain(p.sample.iter().flat_map(|s| s.label.iter().flat_map(|l| [l.key, l.str, l.num_unit])))
        .chain(p.mapping.iter().flat_map(|m| [m.filename, m.build_id]))
        .chain(p.function.iter().flat_map(|f| [f.name, f.system_name, f.filename]))
        .chain([p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url, 0])
        .chain(p.comment.iter().copied());
    assert_eq!(strings.collect::<BTreeSet<i64>>(), (0..p.string_table.len() as i64).collect());
}

/// Returns the sample keys of `left` in the order of their first appearance.
fn order(p: &proto::Profile, left: &BTreeMap<Key, Vec<i64>>) -> Vec<Key> {
    let mut seen = BTreeSet::new();
    let one = |s: &proto::Sample| {
        let single = proto::Profile { sample: vec![s.clone()], ..p.clone() };
        plain(&single).into_keys().next().unwrap()
    };
    p.sample.iter().map(one).filter(|key| left.contains_key(key) && seen.insert(key.clone())).collect()
}

/// Compares a delta with the plain implementation, field by field.
fn assert_delta(before: Option<&[u8]>, now: &[u8], ours: &Delta<'_>, cumulative: &[usize], context: &str) {
    let (before, now) = (before.map(oracle::decode), oracle::decode(now));
    let expected = plain_delta(before.as_ref(), &now, cumulative);
    let written = oracle::decode(&message(ours));
    oracle::assert_same(&plain(&written), &expected, context);
    assert_eq!(written.sample.len(), expected.len(), "{context}: a sample is there twice");
    assert_eq!(ours.samples, expected.len(), "{context}");
    assert_eq!(order(&written, &expected), order(&now, &expected), "{context}: the order");
    assert_pruned(&written);

    let header = |p: &proto::Profile| {
        let t = p.period_type.map(|t| (oracle::string(p, t.r#type), oracle::string(p, t.unit)));
        let strings =
            [p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url].map(|index| oracle::string(p, index));
        (strings, t, p.period, p.time_nanos)
    };
    assert_eq!(header(&written), header(&now), "{context}");
    let comments = |p: &proto::Profile| p.comment.iter().map(|&c| oracle::string(p, c)).collect::<Vec<_>>();
    let (own_comments, all) = (comments(&now), comments(&written));
    assert_eq!(all[..own_comments.len()], own_comments, "{context}");
    assert_eq!(all.len(), own_comments.len() + 1, "{context}");
    assert!(all[own_comments.len()].starts_with("pprofdiff delta: cumulative "), "{all:?}");
    let duration = before.as_ref().map_or(now.duration_nanos, |b| now.time_nanos - b.time_nanos);
    assert_eq!(written.duration_nanos, duration, "{context}");
    let mapping = |p: &proto::Profile, m: &proto::Mapping| {
        let flags = [m.has_functions, m.has_filenames, m.has_line_numbers, m.has_inline_frames];
        (
            m.memory_start,
            m.memory_limit,
            m.file_offset,
            oracle::string(p, m.filename),
            oracle::string(p, m.build_id),
            flags,
        )
    };
    let mappings: Vec<_> = now.mapping.iter().map(|m| mapping(&now, m)).collect();
    assert!(written.mapping.iter().all(|m| mappings.contains(&mapping(&written, m))), "{context}");
    assert_eq!(written.mapping.first().map(|m| mapping(&written, m)), mappings.first().cloned(), "{context}");
}

#[test]
fn a_stream_of_snapshots_equals_the_plain_implementation() {
    let (mut vanished, mut restarts) = (0, 0);
    for seed in 0..60 {
        let snapshots = generate_snapshots(seed, 6, seed % 2 == 0);
        let mut computer = DeltaComputer::new(DeltaOptions::default());
        let mut before: Option<&[u8]> = None;
        for (i, now) in snapshots.iter().enumerate() {
            let context = format!("series {seed}, snapshot {i}");
            let profile = load(now);
            let (gone, restarted) = before.map_or((0, false), |before| plain_vanished(before, now));
            // Clamping subtracts counters that are present as usual, and none of these decreased.
            let on_reset = if restarted { OnReset::Clamp } else { OnReset::Error };
            if restarted {
                assert_eq!(computer.update(&profile).unwrap_err().kind(), ErrorKind::Reset, "{context}");
            }
            let ours = computer.update_with(&profile, on_reset).unwrap();
            assert_delta(before, now, &ours, &[0, 1], &context);
            assert_eq!((ours.first, ours.reset.is_some(), ours.vanished), (before.is_none(), restarted, gone));
            vanished += gone;
            restarts += usize::from(restarted);
            if let Some(before) = before {
                let pair = delta(&load(before), &profile, &DeltaOptions::default().with_on_reset(on_reset)).unwrap();
                assert_eq!(message(&pair), message(&ours), "{context}: two deltas of the same snapshots");
            }
            before = Some(now);
        }
    }
    assert!(vanished > 100 && restarts > 0, "only {vanished} samples vanished, {restarts} times most of them");
}

#[test]
fn real_series_equal_the_plain_implementation_and_the_restart_is_detected() {
    for kind in KINDS {
        let snapshots = real_snapshots(kind);
        let mut computer = DeltaComputer::new(policy(cumulative(kind)));
        for (i, now) in snapshots.iter().enumerate() {
            let profile = load(now);
            let context = format!("{kind} {i}");
            if i == RESTARTED && kind != "goroutine" {
                let e = computer.update(&profile).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Reset, "{e}");
                assert!(e.to_string().starts_with("snapshot: counters went down in "), "{e}");
                let passed = computer.update_with(&profile, OnReset::Pass).unwrap();
                assert!(matches!(passed.reset, Some(Reset::Decreased { samples, .. }) if samples > 0));
                let written = oracle::decode(&message(&passed));
                oracle::assert_same(&plain(&written), &plain_delta(None, &oracle::decode(now), &[]), &context);
                continue;
            }
            let ours = computer.update(&profile).unwrap();
            assert_delta(i.checked_sub(1).map(|b| &snapshots[b][..]), now, &ours, cumulative(kind), &context);
        }
    }
}

#[test]
fn a_decreasing_counter_is_an_error_or_passed_or_clamped_and_always_reported() {
    for seed in 0..20 {
        let snapshots = generate_snapshots(seed, 4, false);
        // Swaps the times, as if the last snapshot had been taken first.
        let swap_times = |bytes: &[u8], seconds: i64| {
            let mut p = oracle::decode(bytes);
            p.time_nanos += seconds * 1_000_000_000;
            generate::encode(&p, 0)
        };
        let (before, now) = (swap_times(&snapshots[3], 0), swap_times(&snapshots[1], 60));
        let (b, n) = (oracle::decode(&before), oracle::decode(&now));
        let (old, new) = (plain(&b), plain(&n));
        let lower = |key: &Key, values: &Vec<i64>| (0..2).any(|c| values[c] < old.get(key).map_or(0, |o| o[c]));
        let expected = new.iter().filter(|(key, values)| lower(key, values)).count();
        assert!(expected > 0);

        let mut computer = DeltaComputer::new(DeltaOptions::default());
        computer.update(&load(&before)).unwrap();
        let e = computer.update(&load(&now)).unwrap_err();
        assert_eq!((e.kind(), e.input()), (ErrorKind::Reset, Some("snapshot")));

        // The error changed no state, so the previous snapshot can still be compared.
        for (on_reset, words) in [(OnReset::Clamp, "count as unchanged"), (OnReset::Pass, "passed as it is")] {
            let pair = delta(&load(&before), &load(&now), &DeltaOptions::default().with_on_reset(on_reset)).unwrap();
            match &pair.reset {
                Some(Reset::Decreased { samples, .. }) => assert_eq!(*samples, expected),
                other => panic!("{other:?}"),
            }
            let mut expected = new.clone();
            if on_reset == OnReset::Clamp {
                for (key, values) in &mut expected {
                    (0..2).for_each(|c| values[c] = (values[c] - old.get(key).map_or(0, |o| o[c])).max(0));
                }
            }
            expected.retain(|_, values| values.iter().any(|&v| v != 0));
            let written = oracle::decode(&message(&pair));
            oracle::assert_same(&plain(&written), &expected, words);
            assert!(oracle::string(&written, *written.comment.last().unwrap()).contains(words));
            assert_eq!(message(&computer.update_with(&load(&now), on_reset).unwrap()), message(&pair));
            computer.start(&load(&before)).unwrap();
        }
    }
}

#[test]
fn an_unrelated_process_is_a_reset() {
    let (a, b) = (&generate_snapshots(1, 1, false)[0], &generate_snapshots(2, 1, false)[0]);
    let mut other = oracle::decode(b);
    for s in &mut other.string_table {
        if s.starts_with(b"pkg.") || s.starts_with(b"/usr") || s.starts_with(b"0123") {
            s.push(b'X');
        }
    }
    other.sample.retain(|s| s.location_id.len() > 8);
    let other = other.load("other").unwrap();
    let e = delta(&load(a), &other, &DeltaOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Reset);
    assert!(e.to_string().starts_with("other: "), "{e}");
    let passed = delta(&load(a), &other, &DeltaOptions::default().with_on_reset(OnReset::Pass)).unwrap();
    match passed.reset.as_ref().unwrap() {
        Reset::Vanished { samples, of: all_samples, gone, counted, .. } => {
            assert_eq!((samples, gone), (all_samples, counted));
            assert_eq!(*samples, passed.vanished);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn vanished_samples_are_reported_and_are_a_reset_beyond_half_of_a_counter() {
    // 10 stacks of one function. The first stack counted 50, the other nine 50 in total. `more` is added to each.
    let stacks: Vec<Vec<u64>> = (1..=10).map(|depth| vec![1; depth]).collect();
    let snapshot = |from: usize, more: i64| {
        let counted = |i: usize| if i == 0 { [50, 0] } else { [[5, 6][usize::from(i > 4)], 3] };
        let values: Vec<[i64; 2]> = (0..10).map(|i| counted(i).map(|v| v + more)).collect();
        let samples: Vec<(&[u64], &[i64])> = (from..10).map(|i| (&stacks[i][..], &values[i][..])).collect();
        small(&["delay", "inuse"], 0, &samples)
    };
    let comment = |d: &Delta<'_>| d.to_profile("d").unwrap().comments().pop().unwrap();
    let before = snapshot(0, 0);
    assert_eq!(before.total(0), Some(100));

    // All samples are still there, so there is no warning.
    let clean = delta(&before, &snapshot(0, 1), &DeltaOptions::default()).unwrap();
    assert_eq!((clean.vanished, clean.warning()), (0, None));
    assert_eq!(comment(&clean), "pprofdiff delta: cumulative delay; gauges inuse");

    // One sample of ten, with half of the count, vanished. The comment reports it.
    let half = delta(&before, &snapshot(1, 1), &DeltaOptions::default()).unwrap();
    assert_eq!((half.vanished, &half.reset, half.samples), (1, &None, 9));
    assert!(comment(&half).ends_with("; 1 sample that had counted something is gone"), "{}", comment(&half));
    assert!(half.warning().unwrap().starts_with("1 sample that had counted something is gone; "), "{half:?}");

    // One more vanished sample makes it a reset, which follows the policy.
    let now = snapshot(2, 1);
    let e = delta(&before, &now, &DeltaOptions::default()).unwrap_err();
    let expected = "2 of the 10 samples that had counted something are gone, with 55 of 100 of delay";
    assert_eq!(e.kind(), ErrorKind::Reset);
    assert!(e.to_string().starts_with(&format!("small: {expected} since small: the process was restarted")), "{e}");
    for (on_reset, first_left, words) in [(OnReset::Pass, 6, "passed as it is"), (OnReset::Clamp, 1, "as unchanged")] {
        let ours = delta(&before, &now, &DeltaOptions::default().with_on_reset(on_reset)).unwrap();
        assert_eq!((ours.vanished, ours.samples), (2, 8));
        assert_eq!(oracle::decode(&message(&ours)).sample[0].value, [first_left, 4]);
        assert_eq!(comment(&ours).matches("gone").count(), 1);
        assert!(comment(&ours).contains(expected) && comment(&ours).ends_with(words), "{}", comment(&ours));
        assert_eq!(ours.warning().unwrap(), format!("{expected}: the process was restarted"));
    }
    // Gauges and samples with a zero count may vanish.
    let counts = |first: i64| small(&["delay", "inuse"], 0, &[(&[1], &[first, 9]), (&[2], &[1, 0])]);
    let ours = delta(&counts(0), &small(&["delay", "inuse"], 0, &[(&[2], &[1, 0])]), &DeltaOptions::default()).unwrap();
    assert_eq!((ours.vanished, ours.warning()), (0, None));
}

#[test]
fn profiles_without_counters_are_refused_at_the_first_snapshot() {
    let goroutines = load(&real_snapshots("goroutine")[0]);
    let mut computer = DeltaComputer::new(DeltaOptions::default());
    for e in [computer.start(&goroutines).unwrap_err(), computer.update(&goroutines).unwrap_err()] {
        assert_eq!((e.kind(), e.input()), (ErrorKind::NotCumulative, Some("snapshot")));
        assert!(e.to_string().contains("(goroutine) is known to count"), "{e}");
    }
    assert_eq!(delta(&goroutines, &goroutines, &DeltaOptions::default()).unwrap_err().kind(), ErrorKind::NotCumulative);
    let none = small(&[], 0, &[]);
    assert!(delta(&none, &none, &DeltaOptions::default()).unwrap_err().to_string().contains("sample types (none)"));
    // Explicit column names, or an explicit empty list, are accepted.
    for cumulative in [vec!["goroutine".to_owned()], Vec::new()] {
        let policy = DeltaOptions::default().with_cumulative(cumulative);
        delta(&goroutines, &goroutines, &policy).unwrap();
    }
}

#[test]
fn a_written_diff_is_not_a_snapshot() {
    let [a, b] = [2, 3].map(|i: usize| Arc::new(load(&real_snapshots("heap")[i])));
    let written = Diff::new(std::slice::from_ref(&a), std::slice::from_ref(&b)).unwrap();
    let written = written.to_bytes(&Query::default(), &RAW).unwrap();
    let written = pprofdiff::from_bytes("written", &written, &LoadOptions::default()).unwrap();
    let mut computer = DeltaComputer::new(DeltaOptions::default());
    computer.start(&a).unwrap();
    let errors = [
        computer.update(&written).unwrap_err(),
        delta(&written, &b, &DeltaOptions::default()).unwrap_err(),
        delta(&a, &written, &DeltaOptions::default()).unwrap_err(),
        DeltaComputer::new(DeltaOptions::default()).update(&written).unwrap_err(),
    ];
    for e in errors {
        assert_eq!(e.kind(), ErrorKind::Incompatible);
        assert!(e.to_string().starts_with("written: this is a written diff: "), "{e}");
    }
    // The stream keeps its state.
    let after = message(&computer.update(&b).unwrap());
    assert_eq!(after, message(&delta(&a, &b, &DeltaOptions::default()).unwrap()));
}

#[test]
fn the_deltas_of_a_series_add_up_to_last_minus_first() {
    let series = KINDS.map(|kind| (kind, real_snapshots(kind)[..RESTARTED].to_vec(), cumulative(kind)));
    let generate_snapshots = (0..20).map(|seed| ("made up", generate_snapshots(seed, 8, false), &[0, 1][..]));
    for (name, snapshots, cumulative) in series.into_iter().chain(generate_snapshots) {
        let mut computer = DeltaComputer::new(policy(cumulative));
        computer.start(&load(&snapshots[0])).unwrap();
        let rest = snapshots[1..].iter();
        let deltas: Vec<Profile> =
            rest.map(|s| computer.update(&load(s)).unwrap().to_profile("delta").unwrap()).collect();
        let sum = merge(&deltas.iter().collect::<Vec<_>>()).unwrap();
        let sum = plain(&oracle::decode(&sum.to_bytes(&RAW).unwrap()));
        let (first, last) = (oracle::decode(&snapshots[0]), oracle::decode(snapshots.last().unwrap()));
        let counters = |all: BTreeMap<Key, Vec<i64>>| -> BTreeMap<Key, Vec<i64>> {
            let only = |(key, v): (Key, Vec<i64>)| (key, cumulative.iter().map(|&c| v[c]).collect::<Vec<i64>>());
            all.into_iter().map(only).filter(|(_, v)| v.iter().any(|&v| v != 0)).collect()
        };
        let whole = plain_delta(Some(&first), &last, cumulative);
        oracle::assert_same(&counters(sum), &counters(whole), name);
    }
}

#[test]
fn snapshots_in_the_wrong_order_and_of_other_kinds_are_errors() {
    let [heap, mutex] = ["heap", "mutex"].map(|kind| real_snapshots(kind).iter().map(|s| load(s)).collect::<Vec<_>>());
    let error = |prev, cur| delta(prev, cur, &DeltaOptions::default()).unwrap_err();
    let e = error(&heap[2], &heap[1]);
    assert_eq!(e.kind(), ErrorKind::Incompatible);
    assert!(e.to_string().contains("give the older snapshot first"), "{e}");
    let e = error(&heap[2], &mutex[3]);
    assert!(e.to_string().contains("contentions (count), delay (nanoseconds)"), "{e}");
    assert!(e.to_string().contains("alloc_objects (count), alloc_space (bytes)"), "{e}");
    let named = |name: &str| DeltaOptions::default().with_cumulative(vec![name.to_owned()]);
    let e = delta(&heap[1], &heap[2], &named("objects")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Query);
    assert!(e.to_string().contains("there is no sample type \"objects\""), "{e}");

    // An error does not change the state of the stream.
    let mut computer = DeltaComputer::new(DeltaOptions::default());
    computer.start(&heap[2]).unwrap();
    computer.update(&heap[1]).unwrap_err();
    computer.update(&mutex[3]).unwrap_err();
    let after = message(&computer.update(&heap[3]).unwrap());
    assert_eq!(after, message(&delta(&heap[2], &heap[3], &DeltaOptions::default()).unwrap()));
}

#[test]
fn cumulative_columns_can_be_named_and_are_reported() {
    let snapshots = generate_snapshots(5, 2, false);
    let [before, now] = [0, 1].map(|i: usize| oracle::decode(&snapshots[i]));
    for names in [&["inuse_space"][..], &["alloc_space"], &[]] {
        let policy = DeltaOptions::default().with_cumulative(names.iter().copied()).with_on_reset(OnReset::Clamp);
        let ours = delta(&load(&snapshots[0]), &load(&snapshots[1]), &policy).unwrap();
        let columns: Vec<usize> = (0..4).filter(|&c| names.contains(&series::TYPES[c].0)).collect();
        let mut expected = plain_delta(Some(&before), &now, &columns);
        expected.values_mut().for_each(|v| v.iter_mut().for_each(|v| *v = (*v).max(0)));
        expected.retain(|_, v| v.iter().any(|&v| v != 0));
        oracle::assert_same(&plain(&oracle::decode(&message(&ours))), &expected, &format!("{names:?}"));
        let cumulative_types: Vec<&str> =
            ours.treatments.iter().filter(|t| t.cumulative).map(|t| t.sample_type.as_str()).collect();
        assert_eq!(cumulative_types, names);
    }
    let ours = delta(&load(&snapshots[0]), &load(&snapshots[1]), &DeltaOptions::default()).unwrap();
    let comment = ours.to_profile("delta").unwrap().comments().pop().unwrap();
    assert_eq!(comment, "pprofdiff delta: cumulative alloc_objects alloc_space; gauges inuse_objects inuse_space");
}

/// Builds a small profile by hand.
fn small(types: &[&str], time_nanos: i64, samples: &[(&[u64], &[i64])]) -> Profile {
    let mut string_table: Vec<Vec<u8>> = vec![Vec::new(), b"f".to_vec(), b"g".to_vec()];
    let sample_type = types
        .iter()
        .map(|t| {
            string_table.push(t.as_bytes().to_vec());
            proto::ValueType { r#type: string_table.len() as i64 - 1, unit: 0 }
        })
        .collect();
    let line = |function_id| proto::Line { function_id, line: 1, column: 0 };
    let p = proto::Profile {
        sample_type,
        sample: samples
            .iter()
            .map(|(l, v)| proto::Sample { location_id: l.to_vec(), value: v.to_vec(), label: Vec::new() })
            .collect(),
        // Locations have no addresses, so only their content distinguishes them.
        location: (1..3).map(|id| proto::Location { id, line: vec![line(id)], ..Default::default() }).collect(),
        function: (1..3).map(|id| proto::Function { id, name: id as i64, ..Default::default() }).collect(),
        string_table,
        time_nanos,
        ..Default::default()
    };
    p.load("small").unwrap()
}

#[test]
fn edge_cases_of_small_profiles() {
    let values = |d: &Delta<'_>| oracle::decode(&message(d)).sample.into_iter().map(|s| s.value).collect::<Vec<_>>();
    let compute_delta = |prev: &Profile, cur: &Profile| delta(prev, cur, &DeltaOptions::default());
    let (a, b) = (&["delay", "x"][..], &["x", "delay"][..]);
    // Two locations without an address are different.
    let before = small(a, 0, &[(&[1], &[5, 1]), (&[2], &[7, 0])]);
    let ours = compute_delta(&before, &small(a, 0, &[(&[2], &[8, 0]), (&[1], &[5, 0]), (&[1, 2], &[3, 0])])).unwrap();
    assert_eq!(values(&ours), [[1, 0], [3, 0]]);
    assert_eq!(ours.to_profile("d").unwrap().duration_nanos(), 0, "neither says when it was taken");
    // The same sample types in another order.
    assert_eq!(values(&compute_delta(&before, &small(b, 0, &[(&[1], &[1, 9]), (&[2], &[0, 7])])).unwrap()), [[1, 4]]);
    // Nothing changed; then, no samples at all.
    assert_eq!(compute_delta(&before, &small(a, 9, &[(&[1], &[5, 0]), (&[2], &[7, 0])])).unwrap().samples, 0);
    assert_eq!(compute_delta(&small(a, 0, &[]), &small(a, 0, &[])).unwrap().samples, 0);
    // A counter that starts below zero counts as a decrease.
    assert_eq!(
        compute_delta(&before, &small(a, 0, &[(&[1], &[5, 0]), (&[1, 1], &[-1, 0])])).unwrap_err().kind(),
        ErrorKind::Reset
    );
    // Deltas and time differences that overflow int64.
    let (low, high) = (small(a, 0, &[(&[1], &[-2, 0])]), small(a, 0, &[(&[1], &[i64::MAX - 1, 0])]));
    assert!(compute_delta(&low, &high).unwrap_err().to_string().contains("more than an int64 holds"));
    let (old, new) = (small(a, i64::MIN, &[(&[1], &[1, 0])]), small(a, i64::MAX, &[(&[1], &[2, 0])]));
    assert_eq!(compute_delta(&old, &new).unwrap().to_profile("d").unwrap().duration_nanos(), i64::MAX);
    assert_eq!(compute_delta(&new, &old).unwrap_err().kind(), ErrorKind::Incompatible);
}

#[test]
fn all_compressions_write_the_same_delta() {
    let heap = real_snapshots("heap");
    let ours = delta(&load(&heap[4]), &load(&heap[5]), &DeltaOptions::default()).unwrap();
    let raw = message(&ours);
    for (compression, magic) in [(Compression::Gzip, &b"\x1f\x8b"[..]), (Compression::Zstd, b"\x28\xb5\x2f\xfd")] {
        let sizes = [1, 9].map(|level| {
            let bytes =
                ours.to_bytes(&WriteOptions::default().with_compression(compression).with_level(level)).unwrap();
            assert!(bytes.starts_with(magic));
            assert_eq!(load(&bytes).to_bytes(&RAW).unwrap(), raw);
            bytes.len()
        });
        assert!(sizes[1] < sizes[0] && sizes[0] < raw.len());
    }
}

#[test]
fn the_go_library_gives_the_same_delta_and_no_smaller_file() {
    let mut questions = Vec::new();
    for kind in KINDS {
        let snapshots = real_snapshots(kind);
        for (i, pair) in snapshots.windows(2).enumerate() {
            if i + 1 != RESTARTED {
                questions.push((format!("{kind}-{i}"), pair.to_vec(), cumulative(kind)));
            }
        }
    }
    for seed in 0..30 {
        let snapshots = generate_snapshots(seed, 5, false);
        let pairs = snapshots.windows(2).enumerate();
        questions.extend(pairs.map(|(i, pair)| (format!("made-up-{seed}-{i}"), pair.to_vec(), &[0, 1][..])));
    }
    let (ours, theirs) = golang::compare_with_go(&questions);
    assert!(theirs > 1000, "only {theirs} samples were compared");
    println!("{} deltas of {theirs} samples; bytes ours and Go's: {ours:?}", questions.len());
}
