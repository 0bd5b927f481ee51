//! Hash flooding: inputs that are built to collide in hash tables may take at most three times as long as other inputs
//! of the same size.
//!
//! The hashers use secret keys of the process (see tests/architecture.rs), so nobody can compute collisions. These
//! tests try the collisions that are possible without the keys: those of common unkeyed hashers, of sums and products,
//! and of the lowest bits.

#![allow(clippy::unwrap_used)]

use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pprofdiff::delta::{DeltaOptions, delta};
use pprofdiff::proto::{Function, Label, Line, Location, Profile, Sample, ValueType};
use pprofdiff::{Diff, Granularity, LoadOptions, Query, Sort, merge};
use pprofdiff_explain::ExplainOptions;
use prost::Message;

const N: u64 = 1 << 14;

/// Returns a name of 28 bytes. "Aa" and "BB" have the same value in any hash of the form h * 31 + c, so all colliding
/// names are equal there.
fn name(i: u64, colliding: bool) -> Vec<u8> {
    let (zero, one): (&[u8], &[u8]) = if colliding { (b"Aa", b"BB") } else { (b"xK", b"q7") };
    (0..14).flat_map(|bit| if i >> bit & 1 == 0 { zero } else { one }).copied().collect()
}

/// Builds a profile. The two variants differ only in their ids, lines, addresses, labels and frame order.
fn profile(colliding: bool) -> Vec<u8> {
    // Colliding ids are equal in their lowest 40 bits. The others have the same bits at the bottom, and a high bit to
    // make them equally long.
    let id = |i: u64| if colliding { (i + 1) << 40 } else { 1 << 55 | (i + 1).wrapping_mul(0x9e37_79b9) & 0xffff_ffff };
    let number = |i: u64| if colliding { ((i + 1) << 45) as i64 } else { ((1 << 59) | ((i + 1) * 7919)) as i64 };
    let mut strings: Vec<Vec<u8>> = [&b""[..], b"cpu", b"count", b"key"].map(<[u8]>::to_vec).to_vec();
    strings.extend((0..N).map(|i| name(i, colliding)));
    let sample = |i: u64| {
        let value = if colliding { 4 + i } else { 4 + (i * 31) % N } as i64;
        let label = vec![
            Label { key: 3, str: value, ..Default::default() },
            Label { key: 3, num: number(i), ..Default::default() },
        ];
        // Rotations of the same frames have the same sum, product and exclusive or.
        let mut frames: Vec<u64> = (0..16).map(|k| if colliding { k } else { (i * 16 + k * 97) % N }).collect();
        if colliding {
            frames.rotate_left(i as usize % 16);
            frames.swap(i as usize / 16 % 16, i as usize / 256 % 16);
            frames[0] = i;
        }
        Sample { location_id: frames.into_iter().map(id).collect(), value: vec![1], label }
    };
    let p = Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (0..N).map(|i| Function { id: id(i), name: 4 + i as i64, ..Default::default() }).collect(),
        location: (0..N)
            .map(|i| Location {
                id: id(i),
                address: id(i),
                line: vec![Line { function_id: id(i), line: number(i), column: 0 }],
                ..Default::default()
            })
            .collect(),
        sample: (0..N).map(sample).collect(),
        string_table: strings,
        ..Default::default()
    };
    p.encode_to_vec()
}

/// Returns the time of everything that looks up ids, names or stacks.
fn time_lookups(bytes: &[u8]) -> Duration {
    let begin = Instant::now();
    let load = |name| Arc::new(pprofdiff::from_bytes(name, bytes, &LoadOptions::default()).unwrap());
    let (a, b) = (load("a"), load("b"));
    let diff = Diff::new(from_ref(&a), from_ref(&b)).unwrap();
    let view = diff.measure(&Query::default().with_granularity(Granularity::Addresses)).unwrap();
    assert_eq!(view.top(Sort::Flat).rows.len(), N as usize);
    assert!(view.stacks_as_found(true).rows.len() == N as usize);
    view.stacks_as_found(false);
    view.edges(None, Sort::Flat).unwrap();
    assert_eq!(view.labels().rows.len(), 2 * N as usize);
    pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
    merge(&[&a, &b]).unwrap();
    delta(&a, &b, &DeltaOptions::default().with_cumulative(vec!["cpu".to_owned()])).unwrap();
    begin.elapsed()
}

#[test]
fn colliding_names_ids_stacks_and_labels_are_not_slower() {
    let (benign, crafted) = (profile(false), profile(true));
    let ratio = crafted.len() as f64 / benign.len() as f64;
    assert!((0.8..1.25).contains(&ratio), "the two are not of one size: {ratio}");
    // The two run alternately, so that other load affects both, and the fastest run of each counts. With all colliding
    // entries in one bucket, 16,384 entries would take thousands of times as long.
    let mut fastest = [Duration::MAX; 2];
    for _ in 0..5 {
        for (i, bytes) in [&benign, &crafted].into_iter().enumerate() {
            fastest[i] = fastest[i].min(time_lookups(bytes));
        }
    }
    println!("benign {:?}, crafted {:?}", fastest[0], fastest[1]);
    assert!(fastest[1] < 3 * fastest[0], "benign {:?}, crafted {:?}", fastest[0], fastest[1]);
}

/// A text that thousands of samples refer to is read once, not once per sample.
#[test]
fn texts_of_a_megabyte_are_hashed_and_matched_once() {
    let labelled = |n: u64, length: usize| {
        let sample = |i: u64| Sample {
            location_id: vec![],
            value: vec![1],
            label: vec![Label { key: 3 + (i % 2) as i64, str: 5 + (i % 3) as i64, ..Default::default() }],
        };
        let strings = ["", "cpu", "count", "k", "l"].map(|s| s.as_bytes().to_vec()).into_iter();
        Profile {
            sample_type: vec![ValueType { r#type: 1, unit: 2 }],
            sample: (0..n).map(sample).collect(),
            string_table: strings.chain((0..3).map(|i| vec![b'a' + i; length])).collect(),
            ..Default::default()
        }
        .encode_to_vec()
    };
    let time = |bytes: &[u8]| {
        let p = Arc::new(pprofdiff::from_bytes("p", bytes, &LoadOptions::default()).unwrap());
        let diff = Diff::of_profile(&p).unwrap();
        let begin = Instant::now();
        for (tagfocus, tagroot) in [(None, None), (Some("c+$"), None), (None, Some("k"))] {
            let mut query = Query::default();
            (query.filters.tagfocus, query.filters.tagroot) = (tagfocus.map(str::to_owned), tagroot.map(str::to_owned));
            let view = diff.measure(&query).unwrap();
            view.labels();
            view.stacks(true);
        }
        begin.elapsed()
    };
    let long = 1 << 20;
    // The cost of the long texts and the cost of the samples, measured separately.
    let apart = time(&labelled(6, long)) + time(&labelled(20_000, 8));
    let together = time(&labelled(20_000, long));
    println!("apart {apart:?}, together {together:?}");
    // Reading the text once per sample would process 20,000 megabytes, which takes minutes.
    assert!(together < 10 * apart + Duration::from_secs(2), "apart {apart:?}, together {together:?}");
}
