//! Inputs that once caused a bug.

use std::slice::from_ref;
use std::sync::Arc;

use pprofdiff::proto::{Function, Label, Line, Location, Profile, Sample, ValueType};
use pprofdiff::{Diff, LoadOptions, Query, Sort};
use pprofdiff_report as report;
use pprofdiff_report::Table;
use prost::Message;

use super::{load, valid};

/// Files that once caused a bug; see their README.md.
#[test]
fn regressions() {
    let named = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/malformed");
    let readme = std::fs::read_to_string(named.join("README.md")).unwrap();
    let mut n = 0;
    for entry in std::fs::read_dir(&named).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        n += 1;
        // Every way of reading gives the same error.
        let bytes = std::fs::read(&path).unwrap();
        let error = |p: pprofdiff::Result<pprofdiff::Profile>| p.err().map(|e| e.to_string().replace("in.pb", "in"));
        for size in [1, 7, 1000] {
            let read = pprofdiff::from_reader("in", SlowReader(&bytes, size), &LoadOptions::default());
            assert_eq!(error(read), error(load(&bytes)), "{name}, {size} bytes at a time");
        }
        assert!(readme.contains(&name), "README.md does not speak of {name}");
        match pprofdiff::open(&path, &LoadOptions::default()) {
            Err(e) => assert!(!e.to_string().contains('\n'), "{name}: {e}"),
            Ok(profile) => {
                let bare = pprofdiff::WriteOptions::default().with_compression(pprofdiff::Compression::None);
                let merged = pprofdiff::merge(&[&profile]).unwrap().to_bytes(&bare).unwrap();
                let again = pprofdiff::merge(&[&load(&merged).unwrap()]).unwrap().to_bytes(&bare).unwrap();
                assert!(merged == again, "{name}: merging again changes it");
                let diff = Diff::of_profile(&profile.into()).unwrap();
                let view = diff.measure(&Query::default()).unwrap();
                Table::top(&view.top(Sort::Flat), usize::MAX);
                view.edges(None, Sort::Cum).unwrap();
                Table::stacks(&view.stacks(true), usize::MAX);
                Table::labels(&view.labels());
                diff.to_profile(&Query::default()).unwrap();
            }
        }
    }
    assert!(n >= 2, "only {n} cases");
    let message = |name: &str| {
        let loaded = pprofdiff::open(named.join(name), &LoadOptions::default());
        loaded.map_or_else(|e| e.to_string(), |p| p.warnings().join("; "))
    };
    assert!(message("gzip-distance-too-far.pb.gz").contains("the gzip data is damaged (at byte"));
    assert!(message("gzip-cut-off.pb.gz").contains("the gzip data is cut off"));
    assert!(message("zstd-damaged.pb.zst").contains("the zstd data is damaged"));
    assert_eq!(message("words-of-a-text-format.pb"), "");
    assert!(message("sample-type-twice.pb").contains("sample type sample occurs more than once"));
}

/// A reader that returns a limited number of bytes at a time.
struct SlowReader<'a>(&'a [u8], usize);

impl std::io::Read for SlowReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(self.1).min(self.0.len());
        let (part, rest) = self.0.split_at(n);
        out[..n].copy_from_slice(part);
        self.0 = rest;
        Ok(n)
    }
}

#[test]
fn a_bad_label_after_similar_good_labels_is_reported() {
    let label = |str| Label { key: 1, str, num: 0, num_unit: 0 };
    let sample = |str| Sample { location_id: vec![], value: vec![1], label: vec![label(str)] };
    let mut p = Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        sample: vec![sample(2), sample(2), sample(2)],
        string_table: [&b""[..], b"a", b"b"].map(<[u8]>::to_vec).to_vec(),
        ..Profile::default()
    };
    let load = |p: &Profile| pprofdiff::from_bytes("labels", &p.encode_to_vec(), &LoadOptions::default());
    load(&p).unwrap();
    p.sample[1] = sample(3);
    let error = load(&p).unwrap_err().to_string();
    assert!(error.contains("sample 1") && error.contains("string 3"), "{error}");
}

#[test]
fn too_expensive_expressions_in_a_file_are_ignored_with_a_warning() {
    // A name of pseudo-random letters, so that an expression with a long lookback must keep all of them in memory.
    let mut seed = 1_u32;
    let name = (0..2_000_000).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"ab"[(seed >> 31) as usize]
    });
    let name: Vec<u8> = name.collect();
    for (drop, keep, why) in [
        ("[ab]*a[ab]{60000}", "", Some("of drop_frames is invalid: it repeats a part more than 1000 times")),
        ("[ab]*a[ab]{900}", "", Some("of drop_frames is too expensive to match")),
        (".*", "[ab]*a[ab]{900}", Some("of keep_frames is too expensive to match")),
        ("\\pL{900}", "", Some("of drop_frames is too large")),
        ("[ab]*c", "", None),
    ] {
        let mut p = valid();
        p.function.push(Function { id: 2, name: 7, filename: 4, ..Default::default() });
        p.location.push(Location {
            id: 2,
            line: vec![Line { function_id: 2, ..Default::default() }],
            ..Default::default()
        });
        p.sample[0].location_id.insert(0, 2);
        let add = |p: &mut Profile, text: &[u8]| {
            p.string_table.push(text.to_vec());
            p.string_table.len() as i64 - 1
        };
        add(&mut p, &name);
        (p.drop_frames, p.keep_frames) = (add(&mut p, drop.as_bytes()), add(&mut p, keep.as_bytes()));
        let profile = Arc::new(load(&p.encode_to_vec()).unwrap());
        let top = Diff::of_profile(&profile).unwrap().measure(&Query::default()).unwrap().top(Sort::Flat);
        assert_eq!(top.rows.len(), 2, "{drop}: nothing is dropped");
        let warning = why.map(|why| {
            format!("in.pb: drop_frames and keep_frames of the profile are not applied: the regular expression {why}")
        });
        assert_eq!(top.summary.warnings, Vec::from_iter(warning), "{drop}");
    }
}

/// Builds a profile of one sample with values in these types.
fn with_types(names: &[String], values: Vec<i64>) -> Arc<pprofdiff::Profile> {
    let mut p = valid();
    let first = p.string_table.len() as i64;
    p.string_table.extend(names.iter().map(|name| name.clone().into_bytes()));
    p.sample_type = (first..).take(names.len()).map(|name| ValueType { r#type: name, unit: 2 }).collect();
    p.sample[0].value = values;
    Arc::new(load(&p.encode_to_vec()).unwrap())
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn many_sample_types_take_time_in_proportion() {
    // Comparing all pairs of types would take minutes.
    let names: Vec<String> = (0..100_000).map(|i| format!("t{i}")).collect();
    let p = with_types(&names, vec![1; names.len()]);
    let diff = Diff::new(from_ref(&p), from_ref(&p)).unwrap();
    assert_eq!(diff.measure(&Query::default()).unwrap().top(Sort::Flat).rows.len(), 1);
    report::info(&diff, &mut Vec::new()).unwrap();
    for (selected, there, not_there) in [(7, vec![0, 7, 99], vec![100]), (250, vec![0, 98, 250], vec![99, 100, 251])] {
        let query = Query::default().with_sample_type(format!("t{selected}"));
        let page = pprofdiff_page::page(&diff, &query, &pprofdiff_page::PageOptions::default(), None).unwrap().html;
        let has = |t: &usize| page.contains(&format!("\"type\":\"t{t}\""));
        assert!(there.iter().all(has) && !not_there.iter().any(has), "{selected}");
        assert!(page.contains("the page has 100 of 100000 sample types"));
    }
}

/// Unlike pprof, which refuses such profiles. Values do not depend on the period's type.
#[test]
fn profiles_with_different_period_types_can_be_compared() {
    let sampled = |period_type: Option<ValueType>, value: i64| {
        let mut p = valid();
        (p.period_type, p.period, p.sample[0].value) = (period_type, 10 * value, vec![value]);
        Arc::new(load(&p.encode_to_vec()).unwrap())
    };
    let types = [None, Some(ValueType { r#type: 1, unit: 2 }), Some(ValueType { r#type: 2, unit: 1 })];
    for (base, new) in [(0, 1), (1, 0), (1, 2)] {
        let diff = Diff::between(sampled(types[base], 3), sampled(types[new], 5)).unwrap();
        assert_eq!(diff.measure(&Query::default()).unwrap().summary().total, pprofdiff::Pair { base: 3, new: 5 });
    }
    // The merged period belongs to the period type that is kept.
    let [none, first, second] = [0, 1, 2].map(|i| sampled(types[i], i as i64 + 1));
    let more = sampled(types[1], 9);
    let period = |all: &[Arc<pprofdiff::Profile>]| {
        let merged = pprofdiff::merge(&all.iter().map(|p| &**p).collect::<Vec<_>>()).unwrap();
        (merged.period_type().map(|t| t.0), merged.period())
    };
    let cpu = Some("cpu".to_owned());
    assert_eq!(period(&[none.clone(), first.clone(), second.clone()]), (cpu.clone(), 20));
    assert_eq!(period(&[first, second, more]), (cpu, 90));
    assert_eq!(period(&[none.clone(), none]), (None, 10));
}

#[test]
fn a_default_sample_type_without_values_is_a_warning() {
    let names = |types: &[&str]| types.iter().map(|t| t.to_string()).collect::<Vec<_>>();
    let types = names(&["alloc", "inuse", "cpu"]);
    let [some, none, cpu] = [vec![1, 2, 0], vec![0, 0, 0], vec![0, 0, 1]].map(|values| with_types(&types, values));
    let warnings = |base: &Arc<pprofdiff::Profile>, new: &Arc<pprofdiff::Profile>, sample_type: Option<&str>| {
        let mut query = Query::default();
        query.sample_type = sample_type.map(str::to_owned);
        let diff = Diff::new(from_ref(base), from_ref(new)).unwrap();
        diff.measure(&query).unwrap().summary().warnings.clone()
    };
    let warning = "the default sample type, cpu, has no values; these have: alloc, inuse";
    assert_eq!(warnings(&some, &some, None), [warning]);
    assert_eq!(warnings(&none, &some, None), [warning]);
    assert_eq!(warnings(&some, &none, None), [warning]);
    let quiet = [
        warnings(&none, &none, None),
        warnings(&cpu, &some, None),
        warnings(&some, &cpu, None),
        warnings(&some, &some, Some("cpu")),
    ];
    assert!(quiet.iter().all(Vec::is_empty), "{quiet:?}");

    let many: Vec<String> = (0..30).map(|i| format!("t{i}")).collect();
    let values = (0..30).map(|i| i64::from(i < 29)).collect();
    let top = Diff::of_profile(&with_types(&many, values)).unwrap().measure(&Query::default()).unwrap().top(Sort::Flat);
    let mut text = Vec::new();
    Table::top(&top, usize::MAX).write_text(&mut text, report::TextOptions::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let header = "warning: the default sample type, t29, has no values; these have: t0, t1,";
    assert!(text.contains(header) && text.contains("t9 and 19 more\n"), "{text}");
}

#[test]
fn explain_uses_the_first_sample_type_with_values_if_the_default_has_none() {
    let types = ["alloc", "inuse", "cpu"].map(str::to_owned);
    let diff = |values: [i64; 3]| {
        let profile = with_types(&types, values.to_vec());
        Diff::new(from_ref(&profile), from_ref(&profile)).unwrap()
    };
    let explained = |values: [i64; 3], sample_type: Option<&str>| {
        let mut query = Query::default();
        query.sample_type = sample_type.map(str::to_owned);
        let summary = pprofdiff_explain::explain(&diff(values), &query, &[], &Default::default()).unwrap().summary;
        (summary.sample_type.clone(), summary.warnings.clone())
    };
    let (kind, warnings) = explained([0, 2, 0], None);
    assert_eq!(kind, "inuse");
    assert_eq!(warnings[0], "the default sample type, cpu, has no values, but inuse has");
    let (kind, warnings) = explained([1, 2, 0], None);
    assert_eq!(kind, "alloc");
    assert_eq!(
        warnings[0],
        "the default sample type, cpu, has no values, but alloc has; these also have values: inuse"
    );
    for (values, sample_type) in [([1, 2, 3], None), ([0, 0, 0], None), ([1, 2, 0], Some("cpu"))] {
        let (kind, warnings) = explained(values, sample_type);
        assert_eq!(kind, "cpu");
        assert!(!warnings.iter().any(|w| w.contains("default")), "{warnings:?}");
    }
}

#[test]
fn values_without_any_stack_are_a_warning() {
    let threads = |count: i64, has_stack: bool| {
        let mut p = valid();
        (p.sample[0].value, p.sample[0].label) = (vec![count], Vec::new());
        if !has_stack {
            p.sample[0].location_id.clear();
            (p.location, p.function) = (Vec::new(), Vec::new());
        }
        Arc::new(load(&p.encode_to_vec()).unwrap())
    };
    let warnings = |base: i64, new: i64, has_stack: bool, focus: &str| {
        let mut query = Query::default();
        query.filters = query.filters.with("focus", focus).unwrap();
        let diff = Diff::new(&[threads(base, has_stack)], &[threads(new, has_stack)]).unwrap();
        diff.measure(&query).unwrap().summary().warnings.clone()
    };
    assert_eq!(warnings(10, 25, false, ""), ["no sample of cpu has a stack, so only its total is known"]);
    assert_eq!(warnings(10, 25, false, "x"), ["focus \"x\" matched nothing"]);
    assert!(warnings(0, 0, false, "").is_empty() && warnings(10, 25, true, "").is_empty());
}
