//! Tests of the formats that other tools save (.cpuprofile, .heapprofile, speedscope, perf script, jemalloc). The
//! expected values come from a plain parser (`tests/traces/judge.py`), `perf report` and `jeprof`.
//! `tests/producers/make traces` recorded them next to the files in `tests/corpus/inputs/`. Files written by our own
//! speedscope writer must be read back unchanged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pprofdiff::{Diff, ErrorKind, LoadOptions, Profile, Query, WriteOptions};
use pprofdiff_report as report;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::oracle;

fn load(bytes: &[u8]) -> pprofdiff::Result<Arc<Profile>> {
    pprofdiff::from_bytes("in", bytes, &LoadOptions::default()).map(Arc::new)
}

fn inputs() -> PathBuf {
    oracle::corpus().join("inputs")
}

fn text(name: &str) -> String {
    String::from_utf8(oracle::gunzip(&std::fs::read(inputs().join(name)).unwrap())).unwrap()
}

/// Returns the names of recorded files with an ending, without `.gz`.
fn files_with_ending(ending: &str) -> Vec<String> {
    let names = std::fs::read_dir(inputs()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter_map(|n| n.strip_suffix(".gz").map(str::to_owned)).collect();
    names.retain(|n| n.ends_with(ending));
    names.sort_unstable();
    assert!(names.len() >= 2, "{ending}: {names:?}");
    names
}

/// A stack from the root as `name file:line`, and its labels.
type Key = (Vec<String>, Vec<String>);

/// Returns the sum of the samples of each stack.
fn samples(p: &Profile) -> BTreeMap<Key, Vec<i64>> {
    use pprofdiff::samples::{Label, LabelValue};
    let (functions, locations) = (p.functions(), p.locations());
    let mut sums: BTreeMap<Key, Vec<i64>> = BTreeMap::new();
    for s in p.samples() {
        let mut stack = Vec::new();
        s.for_each_location(|l| {
            for line in locations.lines(l).map(|line| line as usize) {
                let function = locations.line_function[line] as usize;
                let (name, file) = (p.text(functions.name[function]), p.text(functions.file[function]));
                stack.push(format!("{name} {file}:{}", locations.line_number[line]));
            }
        });
        stack.reverse();
        let label = |label: Label| match label.value {
            LabelValue::Text(text) => format!("{}={}", p.text(label.key), p.text(text)),
            LabelValue::Number(n, _) => format!("{}={n}", p.text(label.key)),
        };
        let sum = sums.entry((stack, s.all_labels().map(label).collect())).or_insert_with(|| vec![0; p.totals().len()]);
        sum.iter_mut().enumerate().for_each(|(i, sum)| *sum += s.value(i));
    }
    sums.retain(|_, values| values.iter().any(|&v| v != 0));
    sums
}

#[test]
fn unnamed_addresses_give_advice_about_the_binary() {
    let p = pprofdiff::open(oracle::corpus().join("inputs/jemalloc.base.heap.gz"), &LoadOptions::default()).unwrap();
    assert!(p.warnings()[0].contains("the names are in that binary"), "{:?}", p.warnings());
    let advice = p.advice().unwrap();
    assert!(advice.contains("jemalloc.base.heap.gz --binary "), "{advice}");
}

#[test]
fn samples_equal_those_of_a_plain_parser() {
    for ending in [".cpuprofile", ".heapprofile", ".speedscope.json", ".perf.txt"] {
        for name in files_with_ending(ending) {
            let expected = std::fs::read_to_string(inputs().join(format!("{name}.expected.json"))).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            let p = load(text(&format!("{name}.gz")).as_bytes()).unwrap();
            assert_eq!(json!(p.sample_types()), expected["types"], "{name}");
            let rows = expected["samples"].as_array().unwrap().iter();
            let rows = rows.map(|r| serde_json::from_value::<(Vec<String>, Vec<String>, Vec<i64>)>(r.clone()).unwrap());
            let expected: BTreeMap<Key, Vec<i64>> =
                rows.map(|(stack, labels, values)| ((stack, labels), values)).collect();
            assert!(expected.len() > 4, "{name}");
            oracle::assert_same(&samples(&p), &expected, &name);
        }
    }
}

/// Idle time is only in the sample type `wall`, and the files have some.
#[test]
fn idle_time_is_not_cpu_time() {
    for name in files_with_ending(".cpuprofile") {
        let p = load(text(&format!("{name}.gz")).as_bytes()).unwrap();
        let samples = samples(&p);
        let idle = &samples[&(vec!["(idle) :0".to_owned()], vec![])];
        assert!(idle[1] > 50_000_000 && idle[0] == 0 && idle[2] == 0, "{name}: {idle:?}");
        assert_eq!(p.total(1).unwrap(), p.total(2).unwrap() + idle[1], "{name}");
        assert!(p.header().duration_nanos >= p.total(1).unwrap(), "{name}");
    }
}

/// `perf report` counts the samples of each symbol. Each sample is 2,000,000 events.
#[test]
fn symbols_have_the_same_samples_as_in_perf_report() {
    for side in ["base", "new"] {
        let p = load(text(&format!("frames.{side}.perf.txt.gz")).as_bytes()).unwrap();
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for ((stack, _), values) in samples(&p) {
            let name = stack.last().unwrap().split(" :").next().unwrap().to_owned();
            *sums.entry(name).or_default() += values[0];
        }
        let report = text(&format!("frames.{side}.report.txt.gz"));
        let row = |line: &str| {
            let (count, symbol) = line.split_once('|').unwrap();
            (symbol[4..].trim().to_owned(), count.trim().parse::<i64>().unwrap() * 2_000_000)
        };
        let expected: BTreeMap<String, i64> = report.lines().map(row).collect();
        assert!(expected.len() > 4);
        assert_eq!(sums, expected, "{side}");
    }
}

/// `jeprof` prints the bytes in use at each address, below it, and in total.
#[test]
fn addresses_have_the_same_bytes_as_in_jeprof() {
    for side in ["base", "new"] {
        let p = load(text(&format!("jemalloc.{side}.heap.gz")).as_bytes()).unwrap();
        let types: Vec<String> = p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
        assert_eq!(types, ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]);
        let mut sums: BTreeMap<u64, i64> = BTreeMap::new();
        for s in p.samples() {
            let mut addresses = Vec::new();
            s.for_each_location(|l| addresses.push(p.locations().address[l as usize]));
            addresses.sort_unstable();
            addresses.dedup();
            addresses.into_iter().for_each(|a| *sums.entry(a).or_default() += s.value(3));
        }
        let report = text(&format!("jemalloc.{side}.report.txt.gz"));
        let mut lines = report.lines();
        // jeprof rounds sums, while pprofdiff rounds each sample.
        let n = p.n_samples() as i64;
        let total: i64 = lines.next().unwrap().parse().unwrap();
        assert!((p.total(3).unwrap() - total).abs() <= n, "{side}: {:?} {total}", p.total(3));
        let mut checked = 0;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let (cum, address) = (words[1].parse::<i64>().unwrap(), u64::from_str_radix(words[2], 16).unwrap());
            assert!((sums[&address] - cum).abs() <= n, "{side}: {line} {}", sums[&address]);
            checked += i64::from(cum > 0);
        }
        assert!(checked >= 6 && total > 1_000_000, "{side}: {checked}");
        let program = p.mappings().iter().filter(|m| p.text(m.file) == "/press/press").count();
        assert!(program > 0, "{side}");
    }
}

#[test]
fn recorded_pairs_can_be_compared_and_written() {
    for name in [
        "press.SIDE.cpuprofile",
        "dwarf.SIDE.perf.txt",
        "py-spy.SIDE.speedscope.json",
        "jemalloc.SIDE.heap",
        "calls.SIDE.callgrind",
    ] {
        let [base, new] =
            ["base", "new"].map(|side| load(text(&(name.replace("SIDE", side) + ".gz")).as_bytes()).unwrap());
        let totals = [&base, &new].map(|p| p.total(0).unwrap());
        let diff = Diff::between(base, new.clone()).unwrap();
        let mut query = Query::default();
        query.sample_type = Some(new.sample_types()[0].0.clone());
        let total = diff.measure(&query).unwrap().summary().total;
        assert_eq!([total.base, total.new], totals, "{name}");
        // They can be written as profile.proto.
        let again = load(&new.to_bytes(&WriteOptions::default()).unwrap()).unwrap();
        assert_eq!(samples(&again), samples(&new), "{name}");
    }
}

fn scope(diff: &Diff, kind: &str) -> Vec<u8> {
    let mut query = Query::default();
    query.sample_type = Some(kind.to_owned());
    let mut out = Vec::new();
    report::speedscope(&diff.measure(&query).unwrap().stacks(false), &mut out).unwrap();
    out
}

/// Returns the values of each stack as our writer shows them. speedscope requires positive weights, so other stacks are
/// omitted.
fn values_of(diff: &Diff, kind: &str) -> BTreeMap<String, [i64; 2]> {
    let mut query = Query::default();
    query.sample_type = Some(kind.to_owned());
    let stacks = diff.measure(&query).unwrap().stacks(false);
    let mut values: BTreeMap<String, [i64; 2]> = BTreeMap::new();
    for row in &stacks.rows {
        let frames: Vec<String> = stacks.frames_of(row).iter().map(|&f| stacks.frames.label(f)).collect();
        let sum = values.entry(frames.join(";")).or_default();
        *sum = [sum[0] + row.weight.base.max(0), sum[1] + row.weight.new.max(0)];
    }
    values.retain(|_, values| *values != [0, 0]);
    values
}

#[test]
fn written_speedscope_files_are_read_back_unchanged() {
    let mut n = 0;
    for name in oracle::pairs() {
        let [base, new] = oracle::raw_pair(&name).map(|bytes| load(&bytes).unwrap());
        for diff in [Diff::between(base, new.clone()).unwrap(), Diff::of_profile(&new).unwrap()] {
            for (kind, unit) in diff.sample_types() {
                let p = load(&scope(&diff, &kind)).unwrap();
                let again = Diff::of_profile(&p).unwrap();
                assert_eq!(again.is_two_sided(), diff.is_two_sided(), "{name} {kind}");
                assert_eq!(again.sample_types(), [(kind.clone(), unit)], "{name}");
                assert_eq!(values_of(&again, &kind), values_of(&diff, &kind), "{name} {kind}");
                n += 1;
            }
        }
    }
    assert!(n > 50, "{n}");
}

/// Generates a call tree, which is written both as speedscope events and as samples.
fn calls() -> impl Strategy<Value = Vec<(u8, bool, u16)>> {
    prop::collection::vec((0u8..4, any::<bool>(), 0u16..50), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(oracle::cases(200)))]

    #[test]
    fn events_and_samples_of_the_same_calls_give_equal_stacks(calls in calls()) {
        let frames: Vec<Value> = (0..4).map(|f| json!({"name": format!("f{f}"), "file": "x.c", "line": f})).collect();
        let (mut stack, mut events, mut samples_, mut weights, mut now) = (vec![], vec![], vec![], vec![], 7);
        for (frame, opens, time) in calls {
            if !stack.is_empty() {
                samples_.push(json!(stack));
                weights.push(json!(time));
                now += time;
            }
            if opens || stack.is_empty() {
                events.push(json!({"type": "O", "frame": frame, "at": now}));
                stack.push(frame);
            } else {
                let frame = stack.pop();
                events.push(json!({"at": now, "frame": frame, "type": "C"}));
            }
        }
        let file = |profile: Value| json!({
            "profiles": [profile], "shared": {"frames": frames},
            "$schema": "https://www.speedscope.app/file-format-schema.json",
        });
        let evented = file(json!({"type": "evented", "unit": "microseconds", "startValue": 0, "events": events}));
        let sampled = file(json!({"samples": samples_, "weights": weights, "unit": "microseconds", "type": "sampled"}));
        let read = |file: &Value| samples(&load(file.to_string().as_bytes()).unwrap());
        prop_assert_eq!(read(&evented), read(&sampled));
        prop_assert_eq!(read(&evented), samples(&load(format!("{sampled:#}").as_bytes()).unwrap()));
    }

    /// A file that is truncated or changed anywhere is either read, or refused with the position of the error.
    #[test]
    fn damaged_files_are_read_or_refused_with_a_position(file in 0usize..5, fraction in 0.0..1.0f64, byte in any::<u8>(), cut in any::<bool>()) {
        let name = ["press.base.cpuprofile", "press.base.heapprofile", "pyinstrument.base.speedscope.json",
            "frames.base.perf.txt", "jemalloc.base.heap"][file];
        let format = ["cpuprofile", "heapprofile", "speedscope", "perf-script", "jemalloc"][file];
        let mut bytes = text(&format!("{name}.gz")).into_bytes();
        let offset = (bytes.len() as f64 * fraction) as usize;
        if cut { bytes.truncate(offset.max(1)) } else { bytes[offset] = byte }
        let options = LoadOptions::default().with_input_format(format).unwrap();
        match pprofdiff::from_bytes("in", &bytes, &options) {
            Ok(p) => prop_assert!(Diff::of_profile(&Arc::new(p)).is_ok()),
            Err(e) => {
                prop_assert_eq!(e.kind(), ErrorKind::Malformed, "{}", e);
                prop_assert!(e.offset().is_some_and(|o| o <= bytes.len() as u64) || e.detail().contains("it has no"), "{}", e);
            }
        }
    }
}

fn scope_of(profiles: Value) -> Vec<u8> {
    let frames = json!([{"name": "a"}, {"name": "b"}]);
    let scope = json!({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames},
        "profiles": profiles});
    scope.to_string().into_bytes()
}

#[test]
fn different_units_of_speedscope_are_not_added_up() {
    let profile = |name: &str, unit: &str| {
        let (samples, weights) = ([[0]], [7]);
        json!({"type": "sampled", "name": name, "unit": unit, "samples": samples, "weights": weights})
    };
    let read = |profiles: Value, input_type: &str| {
        let options = LoadOptions::default().with_input_type(input_type).unwrap();
        pprofdiff::from_bytes("in", &scope_of(profiles), &options)
    };
    for (first, second) in [("none", "milliseconds"), ("seconds", "none"), ("bytes", "none")] {
        let expected_type = if first == "bytes" { "heap/bytes" } else { "time/nanoseconds" };
        let profiles = json!([profile("main", first), profile("wall\u{1b}[1m", second)]);
        let error = read(profiles.clone(), expected_type).unwrap_err();
        let expected = format!(
            "in: profile 1: \"wall\\u{{1b}}[1m\" has the unit {second} and \"main\" (profile 0) has the unit {first}, so \
             the input type {expected_type} cannot apply to both; give an input type with another unit, such as samples/count"
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(read(profiles, "samples/count").unwrap().sample_types().len(), 2);
    }
    let times = json!([profile("main", "milliseconds"), profile("other", "seconds")]);
    assert_eq!(read(times, "wall/nanoseconds").unwrap().total(0), Some(7_007_000_000));
}

/// Parses a perf script text with a single sample, and returns its frames with binaries from the root, its labels and
/// its value.
fn parse_perf_sample(text: &str) -> (Vec<String>, Vec<String>, i64) {
    let p = load(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let read = samples(&p);
    let ([((_, labels), values)], [value]) =
        (&read.iter().collect::<Vec<_>>()[..], &p.samples().map(|s| s.value(0)).collect::<Vec<_>>()[..])
    else {
        panic!("{text}: {read:?}")
    };
    assert_eq!(values[..], [*value]);
    let mut frames = Vec::new();
    p.samples().for_each(|s| {
        s.for_each_location(|l| {
            let mapping = p.mappings().get(p.locations().mapping[l as usize] as usize);
            let binary = mapping.map_or_else(String::new, |m| p.text(m.file));
            let lines = p.locations().lines(l).map(|line| {
                let function = p.locations().line_function[line as usize] as usize;
                p.text(p.functions().name[function])
            });
            frames.extend(lines.map(|name| format!("{name} in {binary}")));
        });
    });
    frames.reverse();
    (frames, labels.clone(), *value)
}

#[test]
fn perf_script_paths_may_contain_parentheses() {
    for (line, frame) in [
        ("main+0x10 (/home/x (copy)/a.out)", "main in /home/x (copy)/a.out"),
        ("main (/home/x (copy)/a.out)", "main in /home/x (copy)/a.out"),
        ("main (/home/x (copy)/a.out (deleted))", "main in /home/x (copy)/a.out"),
        ("[unknown] (/home/x (copy)/a.out)", "[a.out] in /home/x (copy)/a.out"),
        ("main+0x1 (/a (b/c)", "main in /a (b/c"),
        ("main (/a (b/c)", "main in /a (b/c"),
        ("main (/a) b/c)", "main in /a) b/c"),
        ("(/home/x (copy)/a.out)", "[a.out] in /home/x (copy)/a.out"),
        // Symbols may contain parentheses, too.
        ("operator()(int) (const) (/a.out)", "operator()(int) (const) in /a.out"),
        ("(anonymous namespace)::f (int)+0x1 (/x (1)/a.out)", "(anonymous namespace)::f (int) in /x (1)/a.out"),
        ("f (anonymous namespace)::g ([kernel.kallsyms])", "f (anonymous namespace)::g in [kernel.kallsyms]"),
        ("compiled (/src/a.rb:3) (/tmp/perf-1.map)", "compiled (/src/a.rb:3) in /tmp/perf-1.map"),
        ("main (a.out)", "main in a.out"),
    ] {
        let (frames, _, value) = parse_perf_sample(&format!("x 1/2 1.5: 100 cycles:\n\t12a7 {line}\n"));
        assert_eq!((&frames[..], value), (&[frame.to_owned()][..], 100), "{line}");
        let (frames, ..) = parse_perf_sample(&format!("x 1/2 1.5: 100 cycles: ffffffff12a7 {line}\n"));
        assert_eq!(frames, [frame], "{line}");
    }
    let (frames, ..) = parse_perf_sample("x 1/2 1.5: 100 cycles:\n\t10 in1 (int) (inlined)\n\t10 f+0x2 (/x (1)/a)\n");
    assert_eq!(frames, ["f in /x (1)/a", "in1 (int) in /x (1)/a"]);
}

#[test]
fn perf_script_thread_names_may_be_anything() {
    let labels = |labels: &[&str]| labels.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    for (header, expected_labels) in [
        ("                 1234/1234  [000]   100.5:        100 cycles:u: ", labels(&["pid=1234", "tid=1234"])),
        ("                 1234   100.5:        100 cycles:u:", labels(&["tid=1234"])),
        ("                 1234 [001]   100 cycles:u:", labels(&["tid=1234"])),
        (" -1/-1 100.5: 100 cycles:u:", labels(&["pid=-1", "tid=-1"])),
        ("#wrk 7/8 100.5: 100 cycles:u:", labels(&["comm=#wrk", "pid=7", "tid=8"])),
        ("            #wrk     8 100.5: 100 cycles:u:", labels(&["comm=#wrk", "tid=8"])),
        // The name is a number.
        ("12 34 100.5: 100 cycles:u:", labels(&["comm=12", "tid=34"])),
        ("    12/3 34/35 [001] 100.5: 100 cycles:u:", labels(&["comm=12/3", "pid=34", "tid=35"])),
    ] {
        let sample = parse_perf_sample(&format!(
            "# captured on: today 1.5: 3 cycles:\n#\n# nrcpus online : 8\n{header}\n\tff f (/a)\n\n"
        ));
        assert_eq!(sample, (vec!["f in /a".to_owned()], expected_labels, 100), "{header}");
    }
    // Without a period and event, a sample counts 1.
    let sample = parse_perf_sample("#wrk 8 100.5:\n\tff f (/a)\n#wrk did 3\n");
    assert_eq!((sample.1, sample.2), (labels(&["comm=#wrk", "tid=8"]), 1));
    // Empty lines between samples are optional.
    let two = load(b" 1/1 1.5: 100 cycles:\n\tff f (/a)\n 1/1 1.5: 50 cycles:\n\tff f (/a)\n").unwrap();
    assert_eq!((two.n_samples(), two.total(0)), (1, Some(150)));
}
