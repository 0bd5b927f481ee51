//! Tests of the number of samples behind a value, for profiles of every producer: the sampling model, and its effect on
//! `check` and `explain`. The profiles are generated in the shapes that the producers write.

use std::sync::Arc;

use prost::Message as _;

use pprofdiff::check::{CheckPolicy, Outcome, Rules};
use pprofdiff::proto::{Profile as Message, ValueType};
use pprofdiff::sampling::{Model, Sampling};
use pprofdiff::top::SIGNIFICANT;
use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort, Source};
use pprofdiff_explain::{ExplainOptions, ExplainedCheck, Verdict};
use pprofdiff_series::{SeriesBuilder, SeriesOptions};

use crate::synthetic::{profile, stacks};
use crate::verdict::Random;

/// Returns a generator. Neighbouring seeds give independent numbers.
fn random(seed: u64) -> Random {
    Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// Draws the sample counts of twenty functions, about `mean` each.
fn draw_counts(random: &mut Random, mean: f64) -> Vec<(String, i64)> {
    (0..20).map(|i| (format!("shop.f{i}"), random.poisson(mean))).filter(|(_, n)| *n > 0).collect()
}

/// Builds a message in which each sample type has its unit value times the number of samples.
fn message(counts: &[(String, i64)], types: &[(&str, &str, i64)]) -> Message {
    let names: Vec<(&str, &str)> = types.iter().map(|(kind, unit, _)| (*kind, *unit)).collect();
    let values = |n: i64| types.iter().map(|(.., each)| each * n).collect::<Vec<_>>();
    let rows: Vec<_> = counts.iter().map(|(name, n)| (vec!["shop.main", name.as_str()], values(*n))).collect();
    stacks(&names, &rows)
}

fn with_period(mut message: Message, kind: &str, unit: &str, period: i64) -> Message {
    let first = message.string_table.len() as i64;
    message.string_table.extend([kind.as_bytes().to_vec(), unit.as_bytes().to_vec()]);
    message.period_type = Some(ValueType { r#type: first, unit: first + 1 });
    message.period = period;
    message
}

fn text(name: &str, text: &str) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes(name, text.as_bytes(), &LoadOptions::default()).unwrap())
}

fn check_as(base: &Arc<Profile>, new: &Arc<Profile>, rule: &str, how: CheckPolicy) -> ExplainedCheck {
    let mut rules = Rules::default();
    rules.fail_on(rule).unwrap();
    rules.policy = how;
    pprofdiff_explain::check(
        &rules,
        &ExplainOptions::default(),
        &Diff::between(base.clone(), new.clone()).unwrap(),
        &Query::default(),
    )
    .unwrap()
}

fn verdict(base: &Arc<Profile>, new: &Arc<Profile>, rule: &str) -> Outcome {
    check_as(base, new, rule, CheckPolicy::default()).verdict
}

/// Returns the same samples in the shape of each producer, 10 ms each.
fn shapes(counts: &[(String, i64)]) -> Vec<(&'static str, Arc<Profile>)> {
    const TEN_MS: i64 = 10_000_000;
    let folded =
        |each: i64| counts.iter().map(|(name, n)| format!("shop.main;{name} {}\n", n * each)).collect::<String>();
    let perf: String = counts
        .iter()
        .flat_map(|(name, n)| {
            let one =
                format!("shop 1 1.0:  10101010 cpu-clock:\n\t2 {name}+0x1 (/shop)\n\t1 shop.main+0x1 (/shop)\n\n");
            std::iter::repeat_n(one, *n as usize)
        })
        .collect();
    let frames: Vec<String> = counts.iter().map(|(name, _)| format!("{{\"name\":\"{name}\"}}")).collect();
    let each = |item: fn(usize) -> String| {
        let all = counts.iter().enumerate().flat_map(|(i, (_, n))| std::iter::repeat_n(item(i), *n as usize));
        all.collect::<Vec<_>>().join(",")
    };
    let n: i64 = counts.iter().map(|(_, n)| n).sum();
    let speedscope = format!(
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":[{}]}},\"profiles\":[\
         {{\"type\":\"sampled\",\"name\":\"a\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":{},\"samples\":[{}],\
         \"weights\":[{}]}}]}}",
        frames.join(","),
        n as f64 / 100.0,
        each(|i| format!("[{i}]")),
        each(|_| "0.01".to_owned()),
    );
    let nodes: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(i, (name, n))| {
            format!(
                "{{\"callFrame\":{{\"functionName\":\"{name}\",\"scriptId\":\"1\",\"url\":\"\",\"lineNumber\":1,\
                 \"columnNumber\":1}},\"selfSize\":{},\"id\":{},\"children\":[]}}",
                n * 524_288,
                i + 2
            )
        })
        .collect();
    let heap = format!(
        "{{\"head\":{{\"callFrame\":{{\"functionName\":\"(root)\",\"scriptId\":\"0\",\"url\":\"\",\"lineNumber\":-1,\
         \"columnNumber\":-1}},\"selfSize\":0,\"id\":1,\"children\":[{}]}},\"samples\":[{}]}}",
        nodes.join(","),
        each(|i| format!("{{\"size\":524288,\"nodeId\":{},\"ordinal\":1}}", i + 2)),
    );
    vec![
        ("folded counts", text("a.folded", &folded(1))),
        ("inferno's folds", text("b.folded", &folded(10_101_010))),
        ("perf script", text("a.txt", &perf)),
        ("speedscope", text("a.json", &speedscope)),
        ("V8 heap", text("a.heapprofile", &heap)),
        ("Go", profile(&message(counts, &[("samples", "count", 1), ("cpu", "nanoseconds", TEN_MS)]))),
        (
            "period",
            profile(&with_period(message(counts, &[("cpu", "nanoseconds", TEN_MS)]), "cpu", "nanoseconds", TEN_MS)),
        ),
        ("common step", profile(&message(counts, &[("cpu", "nanoseconds", TEN_MS)]))),
        ("Datadog", profile(&message(counts, &[("cpu-samples", "count", 1), ("cpu-time", "nanoseconds", TEN_MS)]))),
        ("PHP", profile(&message(counts, &[("sample", "count", 1), ("cpu-time", "nanoseconds", TEN_MS)]))),
    ]
}

#[test]
fn every_producer_states_the_number_of_its_samples() {
    let counts = draw_counts(&mut random(7), 12.0);
    let n: i64 = counts.iter().map(|(_, n)| n).sum();
    for (name, profile) in shapes(&counts) {
        let default = profile.default_sample_type().unwrap();
        let sampling = Sampling::of_profile(&profile, default);
        assert_eq!(sampling.model, Model::Counted, "{name}: {sampling:?}");
        let samples = sampling.samples.unwrap();
        assert!((samples - n as f64).abs() < 0.5, "{name}: {samples} of {n}, {}", sampling.by);
    }
}

#[test]
fn equal_builds_do_not_fail_in_any_format() {
    let mut failures: Vec<String> = Vec::new();
    for seed in 0..25 {
        let mut draws = random(seed + 1);
        let [base, new] = [(); 2].map(|()| shapes(&draw_counts(&mut draws, 12.0)));
        for ((name, base), (_, new)) in base.iter().zip(&new) {
            if verdict(base, new, "flat:any>+20%") == Outcome::Fail {
                failures.push(format!("{name} {seed}"));
            }
        }
    }
    // About 2.5 of 250 may fail by chance. More than eight would be significant (Poisson, p < 0.001).
    assert!(failures.len() <= 8, "{failures:?}");
}

#[test]
fn a_tripled_function_is_found_in_every_format() {
    let mut draws = random(3);
    let mut counts = draw_counts(&mut draws, 60.0);
    let base = shapes(&counts);
    counts.iter_mut().filter(|(name, _)| name == "shop.f3").for_each(|(_, n)| *n *= 4);
    for ((name, base), (_, new)) in base.into_iter().zip(shapes(&counts)) {
        assert_eq!(verdict(&base, &new, "flat:any>+20%"), Outcome::Fail, "{name}");
        let diff = Diff::between(base, new).unwrap();
        let explanation =
            pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
        assert_eq!(explanation.causes.first().and_then(|cause| cause.function.as_deref()), Some("shop.f3"), "{name}");
    }
}

#[test]
fn rules_on_frames_never_fail_if_the_number_of_samples_is_unknown() {
    let uneven = |seed: u64, factor: i64| {
        let mut draws = random(seed);
        let mut counts = draw_counts(&mut draws, 40.0);
        counts.iter_mut().for_each(|(_, n)| *n = *n * 9_999_991 + draws.below(1000) as i64);
        counts[4].1 *= factor;
        message(&counts, &[("cpu", "nanoseconds", 1)])
    };
    let odd = |seed| uneven(seed, 1);
    let cases: Vec<(&str, [Message; 2])> = vec![
        ("no period", [odd(1), uneven(1, 5)]),
        ("period 0", [odd(1), uneven(1, 5)].map(|m| with_period(m, "cpu", "nanoseconds", 0))),
        ("negative period", [odd(1), uneven(1, 5)].map(|m| with_period(m, "cpu", "nanoseconds", -10_000_000))),
        ("3 ns", [odd(1), uneven(1, 5)].map(|m| with_period(m, "cpu", "nanoseconds", 3))),
        ("a year", [odd(1), uneven(1, 5)].map(|m| with_period(m, "cpu", "nanoseconds", 31_557_600_000_000_000))),
        ("a period of bytes", [odd(1), uneven(1, 5)].map(|m| with_period(m, "space", "bytes", 524_288))),
    ];
    for (name, [base, new]) in cases {
        let (base, new) = (profile(&base), profile(&new));
        assert_eq!(Sampling::of_profile(&base, 0).model, Model::Unknown, "{name}");
        let report = check_as(&base, &new, "flat:any>+20%", CheckPolicy::default());
        assert_eq!(report.verdict, Outcome::Inconclusive, "{name}");
        assert!(report.rules[0].findings.iter().all(|f| f.p.is_none()), "{name}");
        assert!(report.summary.warnings.iter().any(|w| w.contains("number of samples")), "{name}");
        assert_eq!(
            check_as(&base, &new, "flat:any>+20%", CheckPolicy::default().with_strict(true)).verdict,
            Outcome::Fail
        );
        let diff = Diff::between(base, new).unwrap();
        let explained = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
        assert_eq!((explained.verdict, explained.account.p), (Verdict::Inconclusive, None), "{name}");
        let largest = explained.candidate.and_then(|candidate| candidate.cause.function);
        assert_eq!(largest.as_deref(), Some("shop.f4"), "{name}");
    }
}

#[test]
fn a_column_that_is_not_proportional_does_not_count_samples() {
    let mut draws = random(11);
    let rows: Vec<(String, i64, i64)> = (0..40)
        .map(|i| (format!("shop.f{i}"), 1 + draws.below(3) as i64, 7_000_003 * (1 << draws.below(14)) + i))
        .collect();
    let rows: Vec<_> = rows.iter().map(|(name, n, v)| (vec!["shop.main", name.as_str()], vec![*n, *v])).collect();
    let message = stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &rows);
    let sampling = Sampling::of_profile(&profile(&message), 1);
    assert!(!sampling.by.contains("counted by"), "{sampling:?}");
    assert!(sampling.by.contains("no period, values are not proportional to samples"), "{sampling:?}");
}

#[test]
fn large_numbers_without_a_common_step_are_not_sample_counts() {
    let mut draws = random(5);
    let folded: String = (0..20).map(|i| format!("main;f{i} {}\n", 1_000_003 + draws.below(9_000_000))).collect();
    assert_eq!(Sampling::of_profile(&text("cycles.folded", &folded), 0).model, Model::Unknown);
    let small: String = (0..20).map(|i| format!("main;f{i} {}\n", 1 + draws.below(50))).collect();
    assert_eq!(Sampling::of_profile(&text("counts.folded", &small), 0).model, Model::Counted);
}

#[test]
fn clock_resolution_and_allocator_rounding_are_not_sample_sizes() {
    let counts = draw_counts(&mut random(2), 12.0);
    for (each, model) in [(1_000_000, Model::Unknown), (10_000_000, Model::Counted), (1_000, Model::Unknown)] {
        let made = profile(&message(&counts, &[("cpu", "nanoseconds", each)]));
        assert_eq!(Sampling::of_profile(&made, 0).model, model, "{each}");
    }
    // Memory is a multiple of the allocator's rounding.
    let memory = profile(&message(&counts, &[("heap", "bytes", 4096)]));
    assert_eq!(Sampling::of_profile(&memory, 0).model, Model::Unknown);
}

#[test]
fn another_sampling_rate_is_not_a_change() {
    let profile_at = |draws: &mut Random, hertz: f64| {
        let counts: Vec<(String, i64)> =
            (0..60).map(|i| (format!("shop.f{i}"), draws.poisson(hertz * 10.0 / (2.0 + f64::from(i)) / 4.0))).collect();
        let counts: Vec<_> = counts.into_iter().filter(|(_, n)| *n > 0).collect();
        let period = (1e9 / hertz) as i64;
        let types = [("samples", "count", 1), ("cpu", "nanoseconds", period)];
        profile(&with_period(message(&counts, &types), "cpu", "nanoseconds", period))
    };
    let mut alarms = 0;
    for seed in 0..25 {
        let mut draws = random(seed + 1);
        for hertz in [[100.0, 1000.0], [1000.0, 100.0], [100.0, 500.0], [10.0, 1000.0]] {
            let [base, new] = hertz.map(|hertz| profile_at(&mut draws, hertz));
            let diff = Diff::between(base, new).unwrap();
            for kind in ["cpu", "samples"] {
                let query = Query::default().with_sample_type(kind);
                let explanation = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
                alarms += usize::from(explanation.verdict == Verdict::Change);
                assert!(explanation.summary.warnings.iter().any(|w| w.contains("different rates")), "{kind} {hertz:?}");
                let ratio = explanation.total.1 / explanation.total.0;
                assert!((0.5..2.0).contains(&ratio), "{kind} {hertz:?}: {ratio}");
            }
            let mut rules = Rules::default();
            rules.fail_on("samples:total>+20%").unwrap();
            let refused = pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default())
                .unwrap_err()
                .to_string();
            assert!(refused.contains("different rates") && refused.contains("cpu"), "{refused}");
        }
    }
    assert!(alarms <= 4, "{alarms} of 200");
}

#[test]
fn a_leak_is_gated_by_one_exact_snapshot() {
    let leaks = |stacks_of: &[(&str, &str, i64)]| {
        let rows: Vec<_> = stacks_of.iter().map(|(by, on, n)| (vec![*by, "shop.wait", *on], vec![*n])).collect();
        profile(&stacks(&[("goroutineleak", "count")], &rows))
    };
    const ON: [&str; 5] =
        ["runtime.chanrecv1", "runtime.chansend1", "runtime.selectgo", "sync.runtime_Semacquire", "runtime.gopark"];
    let empty = leaks(&[]);
    for rule in ["total>0", "flat:any>+0", "cum:any>+0"] {
        assert_eq!(verdict(&empty, &empty, rule), Outcome::Pass, "{rule}");
        // Sixty programs with one to three leaks in twenty functions, some of which also have a known leak.
        for program in 0..60 {
            let by = format!("shop.worker{}", program % 20);
            let known_leaks: &[(&str, &str, i64)] =
                if program % 3 == 0 { &[("shop.known", "runtime.gopark", 4)] } else { &[] };
            let leak = (by.as_str(), ON[program % ON.len()], 1 + program as i64 % 3);
            let (before, after) = (leaks(known_leaks), leaks(&[known_leaks, &[leak]].concat()));
            assert_eq!(verdict(&before, &after, rule), Outcome::Fail, "{rule} {program}");
            if rule != "total>0" {
                assert_eq!(verdict(&after, &after, rule), Outcome::Pass, "{rule} {program}");
                assert_eq!(verdict(&after, &before, rule), Outcome::Pass, "{rule} {program}");
            }
            let diff = Diff::between(before, after).unwrap();
            let explanation =
                pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
            let named = explanation.causes.iter().any(|cause| {
                let names = [cause.function.as_deref(), cause.caller.as_deref()];
                names.contains(&Some(by.as_str())) || cause.chain.contains(&by)
            });
            assert!(named, "{program}: {:?}", explanation.causes);
        }
    }
}

#[test]
fn an_unknown_side_makes_both_unknown() {
    let counts = draw_counts(&mut random(2), 40.0);
    let known_profile = profile(&message(&counts, &[("cpu", "nanoseconds", 10_000_000)]));
    let mut odd = counts.clone();
    odd.iter_mut().for_each(|(_, n)| *n = *n * 9_999_991 + 17);
    odd[2].1 *= 4;
    let unknown = profile(&message(&odd, &[("cpu", "nanoseconds", 1)]));
    for [base, new] in [[&known_profile, &unknown], [&unknown, &known_profile]] {
        assert_ne!(verdict(base, new, "flat:any>+20%"), Outcome::Fail);
        let [a, b] = Diff::between(base.clone(), new.clone()).unwrap().sampling(0);
        assert_eq!([a.model, b.model].iter().filter(|model| **model == Model::Unknown).count(), 1);
    }
}

/// Several runs show how much a frame varies, also if nobody knows how many samples there were.
#[test]
fn runs_with_an_unknown_number_of_samples_are_compared_by_their_own_variation() {
    let run = |seed: u64, factor: i64| {
        let mut odd = draw_counts(&mut random(seed), 40.0);
        odd.iter_mut().for_each(|(_, n)| *n = *n * 9_999_991 + 17);
        odd[2].1 *= factor;
        profile(&message(&odd, &[("cpu", "nanoseconds", 1)]))
    };
    let significant = |seed: u64, factor: i64, runs: u64| {
        let side = |first: u64, factor: i64| (first..first + runs).map(|i| run(i, factor)).collect::<Vec<_>>();
        let diff = Diff::new(&side(seed, 1), &side(seed + runs, factor)).unwrap();
        assert_eq!(diff.sampling(0).map(|side| side.model), [Model::Unknown; 2]);
        let measure = diff.measure(&Query::default()).unwrap();
        let top = measure.top_of_runs(Sort::Flat).unwrap();
        let q = |row: &pprofdiff::top::TopRow| top.chances.as_ref().unwrap()[row.frame as usize].q;
        let is_significant = |row: &&pprofdiff::top::TopRow| q(row).is_some_and(|q| q <= SIGNIFICANT);
        top.rows
            .iter()
            .filter(is_significant)
            .map(|row| measure.frames().name(row.frame).to_string())
            .collect::<Vec<_>>()
    };
    let mut alarms = 0;
    for seed in 0..40 {
        assert_eq!(significant(20 * seed, 8, 1), [] as [&str; 0], "one run per side");
        assert!(significant(20 * seed, 8, 5).contains(&"shop.f2".to_owned()), "{seed}");
        alarms += usize::from(!significant(20 * seed, 1, 3).is_empty());
    }
    assert!(alarms <= 2, "{alarms} of 40 equal pairs");
}

#[test]
fn a_series_names_the_builds_without_a_number_of_samples() {
    let counts = draw_counts(&mut random(3), 40.0);
    let known_build = message(&counts, &[("cpu", "nanoseconds", 10_000_000)]).encode_to_vec();
    let odd: Vec<_> = counts.iter().map(|(name, n)| (name.clone(), n * 9_999_991 + 17)).collect();
    let unknown = message(&odd, &[("cpu", "nanoseconds", 1)]).encode_to_vec();
    let warnings = |builds: &[&Vec<u8>]| {
        let source =
            |(i, bytes): (usize, &&Vec<u8>)| (format!("v{i}"), Source::Bytes(format!("v{i}.pb"), bytes.to_vec()));
        let builds: Vec<_> = builds.iter().enumerate().map(source).collect();
        let mut builder = SeriesBuilder::new(&Query::default(), &SeriesOptions::default()).unwrap();
        builder.add(&builds).unwrap();
        builder.finish().unwrap().summary.warnings.clone()
    };
    assert!(warnings(&[&known_build, &known_build]).iter().all(|warning| !warning.contains("number of samples")));
    let all = warnings(&[&known_build, &unknown, &known_build]);
    let warning = all.iter().find(|warning| warning.contains("the number of samples behind cpu is unknown")).unwrap();
    assert!(warning.contains("only the differences between builds") && warning.contains("v1"), "{warning}");
    assert!(!warning.contains("v0") && !warning.contains("v2"), "{warning}");
}

#[test]
fn different_jit_inlining_does_not_fail() {
    let run = |shown: i64| {
        let mut all = vec![
            (vec!["app.Shop.main", "app.Shop.sortAll", "java.util.DualPivotQuicksort.sort"], vec![400 - shown]),
            (vec!["app.Shop.main", "app.Shop.price"], vec![300]),
            (vec!["app.Shop.main", "app.Shop.parse", "java.lang.String.valueOf"], vec![300]),
        ];
        let sort = ["app.Shop.main", "app.Shop.sortAll", "java.util.DualPivotQuicksort.sort"];
        all.push(([&sort[..], &["java.util.DualPivotQuicksort.countingSort"]].concat(), vec![shown]));
        all.retain(|(_, values)| values[0] > 0);
        profile(&stacks(&[("samples", "count")], &all))
    };
    for rule in ["flat:any>+20%", "cum:any>+20%"] {
        assert_ne!(verdict(&run(0), &run(200), rule), Outcome::Fail, "{rule}");
        assert_ne!(verdict(&run(200), &run(0), rule), Outcome::Fail, "{rule}");
    }
}

#[test]
fn one_heavy_sample_is_one_event() {
    let perf = |rare: bool| {
        let one =
            |name: &str, period: i64| format!("a 1 1.0: {period} cycles:\n\t2 {name}+0x1 (/a)\n\t1 main+0x1 (/a)\n\n");
        let mut all: String = (0..2000).map(|i| one(&format!("f{}", i % 10), 10_000 + i)).collect();
        all += &if rare { one("rare", 500_000) } else { String::new() };
        text("a.txt", &all)
    };
    let diff = Diff::between(perf(false), perf(true)).unwrap();
    let explanation = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
    assert_ne!(explanation.verdict, Verdict::Change, "{:?}", explanation.causes);
    assert_ne!(verdict(&perf(false), &perf(true), "flat:any>+20%"), Outcome::Fail);
}

#[test]
fn complete_counts_of_several_runs_fail_only_if_all_exceed_the_limit() {
    let run = |n: i64| {
        let rows = if n > 0 { vec![(vec!["shop.worker", "runtime.gopark"], vec![n])] } else { Vec::new() };
        profile(&stacks(&[("goroutineleak", "count")], &rows))
    };
    let check = |base: &[i64], new: &[i64]| {
        let [base, new] = [base, new].map(|side| side.iter().map(|&n| run(n)).collect::<Vec<_>>());
        let mut rules = Rules::default();
        rules.fail_on("total>+0").unwrap();
        pprofdiff_explain::check(
            &rules,
            &ExplainOptions::default(),
            &Diff::new(&base, &new).unwrap(),
            &Query::default(),
        )
        .unwrap()
        .verdict
    };
    assert_eq!(check(&[0, 0], &[1, 0]), Outcome::Inconclusive);
    assert_eq!(check(&[0, 2], &[1, 3]), Outcome::Inconclusive);
    assert_eq!(check(&[0, 0], &[1, 2]), Outcome::Fail);
}

#[test]
fn filters_that_match_nothing_of_a_leak_do_not_pass() {
    let leak =
        |n: i64| profile(&stacks(&[("goroutineleak", "count")], &[(vec!["shop.worker", "runtime.gopark"], vec![n])]));
    let mut rules = Rules::default();
    rules.fail_on("total>+0").unwrap();
    let mut query = Query::default();
    query.filters.focus = Some("nosuch".to_owned());
    let report =
        pprofdiff_explain::check(&rules, &ExplainOptions::default(), &Diff::between(leak(1), leak(5)).unwrap(), &query)
            .unwrap();
    assert_eq!(report.verdict, Outcome::Inconclusive);
}

#[test]
fn records_that_were_not_summed_are_samples() {
    let rows: Vec<_> = (0..400).map(|i| (vec!["main", ["a", "b", "c", "d"][i % 4]], vec![4097 + i as i64])).collect();
    let sampling = Sampling::of_profile(&profile(&stacks(&[("heap", "bytes")], &rows)), 0);
    assert_eq!(sampling.model, Model::Counted, "{sampling:?}");
    let added_up: Vec<_> = rows.into_iter().take(4).collect();
    let sampling = Sampling::of_profile(&profile(&stacks(&[("heap", "bytes")], &added_up)), 0);
    assert_eq!(sampling.model, Model::Unknown, "{sampling:?}");
}

#[test]
fn jax_memory_is_exact_and_the_growing_function_is_named() {
    let side = |n: i64| {
        let rows = vec![
            (vec!["train.main", "train.keep"], vec![n, n * 3_000_000]),
            (vec!["train.main", "train.load"], vec![2, 8_000_000]),
        ];
        profile(&stacks(&[("allocations", "count"), ("space", "bytes")], &rows))
    };
    let diff = Diff::between(side(2), side(6)).unwrap();
    let query = Query::default().with_sample_type("space");
    let explanation = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
    assert_eq!(diff.sampling(1).map(|side| side.model), [Model::Exact; 2]);
    assert_eq!(explanation.causes.first().and_then(|cause| cause.function.as_deref()), Some("train.keep"));
    assert!(crate::synthetic::words(&explanation).contains("holds more"), "{}", crate::synthetic::words(&explanation));
}

#[test]
fn counts_of_valgrind_and_calls_are_exact_and_measured_times_are_unknown() {
    let models = |profile: &Profile| -> Vec<(String, Model)> {
        let types = profile.sample_types().into_iter().enumerate();
        types.map(|(i, (kind, _))| (kind, Sampling::of_profile(profile, i).model)).collect()
    };
    let named = |models: &[(&str, Model)]| -> Vec<(String, Model)> {
        models.iter().map(|(kind, model)| ((*kind).to_owned(), *model)).collect()
    };
    let file =
        "events: Ir I1mr sysTime\nevent: CEst = Ir + 10 I1mr\nfn=f\n1 100 3 5\ncfn=g\ncalls=2 1\n2 7 1\nfn=g\n1 7 1\n";
    let profile = text("callgrind.out.1", file);
    let exact = ["Ir", "I1mr"].map(|kind| (kind, Model::Exact));
    let expected =
        [&exact[..], &[("sysTime", Model::Unknown), ("CEst", Model::Exact), ("calls", Model::Exact)]].concat();
    assert_eq!(models(&profile), named(&expected));
    // The long name of the event tells the unit, or else the second event of --collect-systime=nsec.
    assert_eq!(profile.sample_types()[2], ("sysTime".to_owned(), "time".to_owned()));
    assert!(profile.warnings()[0].contains("the unit of sysTime is unknown"));
    let nanos = text("callgrind.out.2", "events: Ir sysCount sysTime sysCpuTime\nfn=f\n1 100 3 5 4\n");
    let units: Vec<String> = nanos.sample_types().into_iter().map(|(_, unit)| unit).collect();
    assert_eq!(units, ["count", "count", "nanoseconds", "nanoseconds"]);
    assert!(nanos.warnings().is_empty());
    for (unit, expected) in [("ms", "milliseconds"), ("us", "microseconds"), ("ns", "nanoseconds")] {
        let file = format!("event: sysTime : sysTime (elapsed {unit})\nevents: Ir sysCount sysTime\nfn=f\n1 100 3 5\n");
        let profile = text("callgrind.out.3", &file);
        assert_eq!(profile.sample_types()[2].1, expected);
        assert!(profile.warnings().is_empty());
    }
    // Writing a profile keeps this knowledge.
    let written = profile.to_bytes(&pprofdiff::WriteOptions::default()).unwrap();
    let again = pprofdiff::from_bytes("again", &written, &LoadOptions::default()).unwrap();
    assert_eq!(models(&again), named(&expected));
    let path = crate::oracle::corpus().join("inputs/callers.base.prof");
    let times = pprofdiff::open(path, &LoadOptions::default()).unwrap();
    let expected = [("time", Model::Unknown), ("calls", Model::Exact), ("primitive calls", Model::Exact)];
    assert_eq!(models(&times), named(&expected));
    // A column called Ir with another unit is not valgrind's.
    let other = stacks(&[("Ir", "bytes"), ("other", "count")], &[(vec!["f"], vec![5, 3])]);
    let other = pprofdiff::from_bytes("other", &other.encode_to_vec(), &LoadOptions::default()).unwrap();
    assert!(models(&other).iter().all(|(_, model)| *model != Model::Exact));
}
