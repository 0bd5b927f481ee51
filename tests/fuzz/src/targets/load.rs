//! Any bytes: they load, or the error is one line. A loaded profile can be traversed completely.

use std::hint::black_box;

use pprofdiff::samples::LabelValue;

use crate::inputs::{Inputs, MAX_BYTES, files, name, profiles};
use crate::shared::LIMIT;

pub fn run(data: &[u8]) {
    let loaded = pprofdiff::from_bytes("in", data, &LIMIT);
    // Reading from a stream in small pieces gives the same result.
    let read = pprofdiff::from_reader("in", SlowReader(data), &LIMIT);
    match (&loaded, &read) {
        (Ok(a), Ok(b)) => assert_eq!(a.inflated_size(), b.inflated_size()),
        (Err(a), Err(b)) => {
            let text = a.to_string();
            assert_eq!(text, b.to_string());
            assert!(!text.contains('\n'), "an error of several lines: {text}");
        }
        (a, b) => panic!("from bytes: {:?}, from a reader: {:?}", a.as_ref().err(), b.as_ref().err()),
    }
    let Ok(p) = loaded else { return };
    let (mut n, mut sums) = (0, vec![0i64; p.sample_types().len()]);
    for sample in p.samples() {
        n += 1;
        sample.for_each_location(|l| assert!((l as usize) < p.n_locations()));
        assert!(sample.leaf().is_none_or(|l| (l as usize) < p.n_locations()));
        let mut i = 0;
        sample.for_each_value(|v| {
            assert_eq!(v, sample.value(i));
            sums[i] += v;
            i += 1;
        });
        assert_eq!(i, sums.len());
        for label in sample.labels() {
            p.string(label.key);
            match label.value {
                LabelValue::Text(text) => p.string(text),
                LabelValue::Number(_, unit) => p.string(unit),
            };
        }
    }
    assert_eq!(n, p.n_samples());
    two_parts(data, &sums);
    black_box((p.warnings(), p.comments(), p.doc_url(), p.mapping_files(), p.period_type(), p.default_sample_type()));
}

/// Returns real profiles with and without compression.
pub fn seeds() -> Inputs {
    let compressed = files(&crate::oracle::corpus()).into_iter().filter(|path| name(path).ends_with(".pb.gz"));
    let compressed = compressed.map(|path| (name(&path), std::fs::read(&path).unwrap()));
    compressed.filter(|(_, bytes)| bytes.len() < MAX_BYTES).chain(profiles()).collect()
}

/// Two parts of a recording add up to the whole, if both can be read.
fn two_parts(data: &[u8], whole: &[i64]) {
    let load = |window: &str| {
        let window = window.parse().unwrap_or_else(|e| panic!("{e}"));
        pprofdiff::from_bytes("in", data, &LIMIT.clone().with_time(window))
    };
    let mut sums = vec![0i64; whole.len()];
    for part in [load("..1ms"), load("1ms..")] {
        match part {
            Ok(p) => {
                assert_eq!(p.sample_types().len(), whole.len());
                for sample in p.samples() {
                    let mut sums = sums.iter_mut();
                    sample.for_each_value(|v| sums.next().into_iter().for_each(|sum| *sum = sum.wrapping_add(v)));
                }
            }
            Err(e) if e.detail().starts_with("no sample is within") => {}
            // The profile lacks times for some samples.
            Err(_) => return,
        }
    }
    assert_eq!(sums, whole);
}

/// Reads seven bytes at a time.
struct SlowReader<'a>(&'a [u8]);

impl std::io::Read for SlowReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(7).min(self.0.len());
        let (part, rest) = self.0.split_at(n);
        out[..n].copy_from_slice(part);
        self.0 = rest;
        Ok(n)
    }
}
