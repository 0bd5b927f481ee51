//! Crafted profiles for thresholds of `explain` that change no answer of tests/corpus/explained.txt. Each test checks an
//! input just below a threshold and an input just above it. It fails with the lower and with the higher value in
//! tests/thresholds/pins.csv, unless the last column there names one of the two.

use std::sync::Arc;

use pprofdiff::proto::{Label, Profile as Message};
use pprofdiff::{Diff, Profile, Query};
use pprofdiff_explain::{ExplainOptions, Explanation, MoveKind, Verdict};

use crate::synthetic::{Stacks, cpu, profile, stacks, with, words};

fn explain(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Explanation {
    pprofdiff_explain::explain(&Diff::new(base, new).unwrap(), &Query::default(), &[], &ExplainOptions::default())
        .unwrap()
}

fn between(base: &[(&str, i64)], new: &[(&str, i64)]) -> Explanation {
    explain(&[cpu(&with(base))], &[cpu(&with(new))])
}

/// Checks that the answer is no for the first number, and yes for the second.
fn flips([no, yes]: [i64; 2], is_so: impl Fn(i64) -> bool) {
    assert_eq!([no, yes].map(is_so), [false, true], "for {no} and {yes}");
}

fn count(e: &Explanation, how: MoveKind) -> usize {
    e.moved.iter().filter(|moved| moved.how == how).count()
}

/// Borrows the names of stacks.
fn borrowed(all: &[(String, i64)]) -> Vec<(&str, i64)> {
    all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect()
}

// Evidence.

/// Builds a CPU profile whose samples have a value of the label `tenant`, or none.
fn labelled(samples: &[(String, i64, Option<String>)]) -> Arc<Profile> {
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        samples.iter().map(|(stack, n, _)| (stack.split(';').collect(), vec![*n, n * 10_000_000])).collect();
    let mut message: Message = stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &all);
    message.string_table.push(b"tenant".to_vec());
    let key = message.string_table.len() as i64 - 1;
    let mut texts: Vec<&str> = samples.iter().filter_map(|(.., value)| value.as_deref()).collect();
    texts.sort_unstable();
    texts.dedup();
    message.string_table.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
    for (sample, (.., value)) in message.sample.iter_mut().zip(samples) {
        let place = value.as_deref().and_then(|value| texts.iter().position(|text| *text == value));
        sample.label.extend(place.map(|place| Label { key, str: key + 1 + place as i64, ..Label::default() }));
    }
    profile(&message)
}

/// Returns true if the growth of the first of several tenants is attributed to its label. `others` are the values of
/// the other samples.
fn is_label_the_cause(others: &[Option<&str>]) -> bool {
    let side = |first: i64| {
        let of = |value: Option<&str>, n: i64| {
            (0..30).map(move |i| (format!("main.main;main.f{i}"), n, value.map(str::to_owned))).collect::<Vec<_>>()
        };
        let each = 1500 / others.len() as i64;
        let all: Vec<_> = others.iter().flat_map(|value| of(*value, each)).chain(of(Some("first"), first)).collect();
        labelled(&all)
    };
    let e = explain(&[side(500)], &[side(1000)]);
    e.causes.first().is_some_and(|cause| cause.label.is_some())
}

#[test]
fn keys_of_labels_have_2_to_50_values() {
    assert!(!is_label_the_cause(&[None]));
    assert!(is_label_the_cause(&[Some("second")]));
    flips([51, 50], |values| {
        let names: Vec<String> = (1..values).map(|value| format!("t{value}")).collect();
        is_label_the_cause(&names.iter().map(|name| Some(name.as_str())).collect::<Vec<_>>())
    });
}

#[test]
fn a_label_that_tells_the_runs_of_a_side_apart_is_no_cause() {
    let rest = || (0..30).map(|i| (format!("main.main;main.f{i}"), 100, None));
    // A leak: each run has one round of leaked goroutines more than the run before it.
    let leak = |rounds: i64| {
        let leaked = (1..=rounds).map(|round| ("main.main;main.leak".to_owned(), 20, Some(format!("r{round}"))));
        labelled(&leaked.chain(rest()).collect::<Vec<_>>())
    };
    let e = explain(&[20, 21, 22].map(leak), &[26, 27, 28].map(leak));
    assert_eq!(e.causes.len(), 1, "{:?}", e.causes);
    assert_eq!((e.causes[0].function.as_deref(), e.causes[0].label.is_none()), (Some("main.leak"), true));
    // A label that all runs have stays a cause, even if a run lacks a rare value. `rare` has each rare value's samples.
    let tenants = |first: i64, rare: &[i64]| {
        let of = |value: &'static str, n: i64| {
            (0..30).map(move |i| (format!("main.main;main.f{i}"), n, Some(value.to_owned())))
        };
        let rare = (0..).zip(rare).filter(|(_, n)| **n > 0);
        let rare = rare.map(|(value, n)| ("main.main;main.f0".to_owned(), *n, Some(format!("rare{value}"))));
        labelled(&of("a", first).chain(of("b", 50)).chain(rare).collect::<Vec<_>>())
    };
    let is_first_slower = |rare: [&[i64]; 6]| {
        let [base, new] = [(50, &rare[..3]), (90, &rare[3..])]
            .map(|(first, rare)| (0..).zip(rare).map(|(i, rare)| tenants(first + i % 2, rare)).collect::<Vec<_>>());
        let e = explain(&base, &new);
        e.causes.first().and_then(|cause| cause.label.as_ref()).is_some_and(|label| label.value == "a")
    };
    assert!(is_first_slower([&[3], &[0], &[4], &[2], &[0], &[3]]));
    assert!(is_first_slower([&[5], &[0], &[5], &[0], &[0], &[0]]));
    // One run had a job of its own.
    assert!(is_first_slower([&[0], &[40], &[0], &[0], &[0], &[0]]));
    // 40 rare values with 4 samples each on average, so that nearly every run lacks some of them.
    let random = |run: u64| -> Vec<i64> {
        let mut state = run + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        // Poisson (Knuth 1969).
        let mut poisson = || {
            (0..)
                .scan(1.0, |p, n| {
                    *p *= next();
                    (*p > (-4.0f64).exp()).then_some(n + 1)
                })
                .last()
        };
        (0..40).map(|_| poisson().unwrap_or(0)).collect()
    };
    let rare: [Vec<i64>; 6] = std::array::from_fn(|run| random(run as u64));
    assert!(rare.iter().any(|rare| rare.contains(&0)));
    assert!(is_first_slower(rare.each_ref().map(Vec::as_slice)));
    let is_labelled = |e: &Explanation| e.causes.first().is_some_and(|cause| cause.label.is_some());
    // A key whose values are the hosts of the runs, except for one value, which has half of the key's samples if n is 1000.
    flips([900, 1110], |n| {
        let side = |change: i64| {
            [0, 1, 2].map(|run| {
                let of = |value: String, n: i64| {
                    (0..30).map(move |i| (format!("main.main;main.f{i}"), n / 30, Some(value.clone())))
                };
                let hosts = of(format!("host{run}"), 1500);
                labelled(&hosts.chain(of("all".to_owned(), n * change)).chain(rest()).collect::<Vec<_>>())
            })
        };
        is_labelled(&explain(&side(1), &side(2)))
    });
    // 28 rounds in 6 runs: a run lacks one with 12.0 expected samples by chance, but not one with 12.5.
    flips([13, 12], |last| {
        let leak = |(rounds, each): (i64, i64)| {
            let leaked = (1..=rounds).map(|round| ("main.main;main.leak".to_owned(), each, Some(format!("r{round}"))));
            labelled(&leaked.chain(rest()).collect::<Vec<_>>())
        };
        let base = [(20, 12), (21, 12), (22, last)].map(leak);
        is_labelled(&explain(&base, &[(26, 12), (27, 12), (28, 12)].map(leak)))
    });
}

const COLLECTOR: &str = "runtime.gcBgMarkWorker;runtime.gcDrain;runtime.scanobject";

#[test]
fn background_work_is_foreground_if_it_has_more_than_70_percent() {
    // The other functions have 64,350 samples per side.
    flips([165_000, 138_000], |n| {
        let e = between(&[(COLLECTOR, n)], &[(COLLECTOR, n + 9000)]);
        e.account.consequences != 0.0
    });
}

#[test]
fn leaves_of_a_recorder_end_nearly_all_stacks() {
    flips([120, 85], |n| {
        let side = |leaf: &str, rest: i64| {
            let all = (0..10).map(|i| (format!("main;f{i}{leaf}"), 10_000)).chain([("main;g".to_owned(), rest)]);
            cpu(&all.collect())
        };
        let e = explain(&[side("", n)], &[side(";new;malloc", n)]);
        e.left_out.iter().any(|warning| warning.contains("end with"))
    });
}

#[test]
fn values_without_a_stack_are_reported_from_one_percent_on() {
    flips([900, 1150], |n| {
        let types = [("samples", "count"), ("cpu", "nanoseconds")];
        let side = || profile(&stacks(&types, &[(vec!["main"], vec![100_000 - n, 100_000 - n]), (vec![], vec![n, n])]));
        explain(&[side()], &[side()]).left_out.iter().any(|warning| warning.contains("could not be attributed"))
    });
}

// Renames.

#[test]
fn small_functions_are_not_renamed() {
    // A pair with less than 0.3% of the total is a swap, because only its names are alike.
    flips([205, 180], |n| {
        let host = ("main.main;main.host", 3000);
        let e =
            between(&[host, ("main.main;main.host;main.query", n)], &[host, ("main.main;main.host;main.queryRows", n)]);
        !e.moved.is_empty() || !e.causes.is_empty()
    });
}

/// Returns true if a function of these stacks was renamed. The callers and callees also have cost without it.
fn is_renamed(base: &[(String, i64)], new: &[(String, i64)]) -> bool {
    let rest = [("main.main;main.p", 3000), ("main.main;main.q", 3000), ("main.main;main.p;main.c1", 4000)];
    let rest = [&rest[..], &[("main.main;main.p;main.c2", 4000), ("main.main;main.q;main.c3", 4000)]].concat();
    let e = between(&[&rest, &borrowed(base)[..]].concat(), &[&rest, &borrowed(new)[..]].concat());
    count(&e, MoveKind::Renamed) == 1
}

#[test]
fn functions_with_the_same_last_name_share_half_of_their_callers() {
    flips([45, 55], |x| {
        let base = [("main.main;main.p;main.readAll;main.c1".to_owned(), 4000)];
        let new = [
            ("main.main;main.p;main.ReadAll;main.c2".to_owned(), 40 * x),
            ("main.main;main.q;main.ReadAll;main.c2".to_owned(), 4000 - 40 * x),
        ];
        is_renamed(&base, &new)
    });
}

#[test]
fn functions_with_similar_names_share_60_percent_of_callers_and_callees() {
    flips([13, 27], |x| {
        let stack =
            |function: &str, callee: &str, n: i64| (format!("main.main;main.p;main.{function};main.{callee}"), n);
        let base = [stack("query", "c1", 4000)];
        is_renamed(&base, &[stack("queryRows", "c1", 40 * x), stack("queryRows", "c2", 4000 - 40 * x)])
    });
}

#[test]
fn functions_with_the_same_last_name_are_ranked_by_overlap_before_cost() {
    // `READ` has a cost that differs 1.6-fold, which counts like 7% of the overlap.
    flips([7, 12], |x| {
        let stack =
            |caller: &str, function: &str, n: i64| (format!("main.main;main.{caller};main.{function};main.c1"), n);
        let base = [stack("p", "read", 4000)];
        let new = [stack("p", "READ", 6400), stack("p", "Read", 4000 - 40 * x), stack("q", "Read", 40 * x)];
        let rest = [("main.main;main.q;main.c1", 4000), ("main.main;main.p;main.c1", 4000)];
        let e = between(&[&rest, &borrowed(&base)[..]].concat(), &[&rest, &borrowed(&new)[..]].concat());
        e.moved.iter().any(|moved| moved.how == MoveKind::Renamed && moved.function == "main.READ")
    });
}

#[test]
fn methods_of_two_types_need_5_percent_in_common_distinctive_callees() {
    flips([40, 65], |x| {
        let all = |kind: &str| {
            let stack = |callee: &str, n: i64| (format!("main.main;main.p;shop.(*{kind}).Get{callee}"), n);
            vec![stack("", 4000 - 4 * x), stack(";shop.decode", 4 * x)]
        };
        is_renamed(&all("Table"), &all("Rows"))
    });
}

#[test]
fn similar_names_share_more_than_half_of_their_words() {
    let is_alike = |a: &str, b: &str| {
        let all = |function: &str| vec![(format!("main.main;main.p;main.{function}"), 4000)];
        is_renamed(&all(a), &all(b))
    };
    assert!(!is_alike("readAllFast", "readAllSlow"));
    assert!(is_alike("readAllRowsFast", "readAllRowsSlow"));
}

/// Returns stacks of a package with these functions. Each has `n` samples.
fn package(path: &str, names: &[&str], n: i64) -> Vec<(String, i64)> {
    names.iter().map(|name| (format!("main.main;main.load;{path}.{name}"), n)).collect()
}

fn n_renamed(base: &[(String, i64)], new: &[(String, i64)]) -> usize {
    count(&between(&borrowed(base), &borrowed(new)), MoveKind::Renamed)
}

#[test]
fn packages_with_related_paths_share_two_names() {
    // Costs that differ 1.6-fold, so that names and callers of single functions are not enough.
    let is_package =
        |names: &[&str]| n_renamed(&package("x.org/a/lib", names, 4000), &package("y.org/b/lib", names, 7600)) > 0;
    assert!(!is_package(&["Read"]));
    assert!(is_package(&["Read", "Write"]));
}

#[test]
fn go_packages_with_unrelated_paths_share_two_private_functions() {
    let is_package =
        |names: &[&str]| n_renamed(&package("shop/old", names, 4000), &package("shop/young", names, 8000)) > 0;
    assert!(!is_package(&["Read", "Write", "scan"]));
    assert!(is_package(&["Read", "parse", "scan"]));
}

#[test]
fn suffixes_of_paths_have_two_segments() {
    // Costs that differ 3-fold, which only equal paths permit.
    let is_package = |old: &str, new: &str| {
        n_renamed(&package(old, &["Read", "Write"], 4000), &package(new, &["Read", "Write"], 12_000)) > 0
    };
    assert!(!is_package("lib", "vendor/shop/lib"));
    assert!(is_package("shop/lib", "vendor/shop/lib"));
}

#[test]
fn names_in_more_than_32_new_packages_are_no_evidence() {
    flips([34, 30], |packages| {
        let mut new = package("y.org/b/lib", &["Read", "Write"], 7600);
        for i in 1..packages {
            let more: Vec<String> = (0..8).map(|k| format!("F{i}x{k}")).collect();
            let names: Vec<&str> = ["Read", "Write"].into_iter().chain(more.iter().map(String::as_str)).collect();
            new.extend(package(&format!("z.org/c/p{i}"), &names, 10));
        }
        n_renamed(&package("x.org/a/lib", &["Read", "Write"], 4000), &new) > 0
    });
}

// Inlined, outlined and rewritten functions.

#[test]
fn inlined_functions_have_60_percent_between_known_neighbours() {
    flips([50, 68], |x| {
        let base = [("main.main;main.a;main.b;main.c", 60 * x), ("main.main;main.a;main.b", 6000 - 60 * x)];
        let e = between(&base, &[("main.main;main.a;main.c", 60 * x), ("main.main;main.a", 6000 - 60 * x)]);
        assert_eq!(e.moved[0].how, MoveKind::Inlined, "{}", words(&e));
        e.moved.len() == 1
    });
}

#[test]
fn outlined_functions_have_60_percent_of_their_own() {
    flips([52, 68], |x| {
        let new = [
            ("main.main;main.a", 9000 - 60 * x),
            ("main.main;main.a;main.b", 60 * x),
            ("main.main;main.a;main.b;main.z", 6000 - 60 * x),
        ];
        let e = between(&[("main.main;main.a", 9000)], &new);
        e.moved.iter().any(|moved| moved.how == MoveKind::Outlined && moved.function == "main.b")
    });
}

#[test]
fn callers_with_10_percent_of_an_outlined_function_lost_the_cost() {
    // `rare` calls the function, but its own cost did not decrease.
    flips([14, 8], |x| {
        let base = [("main.main;main.a", 9000), ("main.main;main.rare", 2000)];
        let new = [
            ("main.main;main.a", 4500 + 45 * x),
            ("main.main;main.a;main.b", 4500 - 45 * x),
            ("main.main;main.rare", 2300),
            ("main.main;main.rare;main.b", 45 * x),
        ];
        count(&between(&base, &new), MoveKind::Outlined) > 0
    });
}

#[test]
fn outlined_functions_have_60_percent_below_main_callers() {
    flips([52, 68], |x| {
        let others: Vec<String> = (0..10).map(|i| format!("main.main;main.rare{i}")).collect();
        let below: Vec<String> = others.iter().map(|caller| format!("{caller};main.b")).collect();
        let rest: Vec<(&str, i64)> = others.iter().map(|caller| (caller.as_str(), 1000)).collect();
        let calls: Vec<(&str, i64)> = below.iter().map(|stack| (stack.as_str(), (4500 - 45 * x) / 10)).collect();
        let base = [&rest[..], &[("main.main;main.a", 9000)]].concat();
        let new = [&rest[..], &calls, &[("main.main;main.a", 4500), ("main.main;main.a;main.b", 45 * x)]].concat();
        count(&between(&base, &new), MoveKind::Outlined) > 0
    });
}

/// Returns true if code with `n` samples per side in a number of functions counts as rewritten.
fn is_rewritten(n: i64, functions: i64) -> bool {
    let side = |names: &str| {
        let stack = |i: i64| (format!("main.main;main.load;x.org/lib/{names}.{names}{i}"), n / functions);
        (0..functions).map(stack).collect::<Vec<_>>()
    };
    between(&borrowed(&side("decode")), &borrowed(&side("scan"))).rewrite.is_some()
}

#[test]
fn rewritten_code_has_30_percent_in_5_functions() {
    // The other functions have 64,350 samples.
    flips([22_000, 34_000], |n| is_rewritten(n, 6));
    flips([4, 5], |functions| is_rewritten(60_000, functions));
}

// Consequences, and words.

/// Explains growth of garbage collection from 10,000 samples, and nothing else.
fn collected(more: i64) -> Explanation {
    between(&[(COLLECTOR, 10_000)], &[(COLLECTOR, 10_000 + more)])
}

#[test]
fn consequences_change_by_more_than_chance() {
    flips([1400, 2000], |more| !collected(more).account.consequences_by_chance);
}

#[test]
fn consequences_that_are_all_that_changed_have_two_percent() {
    flips([1200, 2000], |more| {
        let e = between(&[(COLLECTOR, 1000)], &[(COLLECTOR, 1000 + more)]);
        e.is_all_consequences()
    });
}

#[test]
fn percentages_of_parts_that_cancel_out_are_not_shown() {
    flips([480, 330], |more| {
        let e = between(
            &[("main.main;main.up", 4000), ("main.main;main.down", 8000)],
            &[("main.main;main.up", 8000 + more), ("main.main;main.down", 4000)],
        );
        e.do_parts_cancel_out()
    });
}

/// Builds a heap profile: stacks with a number of objects of 64 bytes.
fn heap(allocations: &Stacks) -> Arc<Profile> {
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        allocations.iter().map(|(stack, n)| (stack.split(';').collect(), vec![*n, n * 64])).collect();
    profile(&stacks(&[("alloc_objects", "count"), ("alloc_space", "bytes")], &all))
}

/// Explains growth of `main.rows` and of garbage collection, with heap profiles of the same runs.
fn with_heaps(allocated: i64, collected: i64) -> Explanation {
    let side = |rows: i64, collected: i64| cpu(&with(&[("main.main;main.rows", rows), (COLLECTOR, collected)]));
    let heap = |n: i64| heap(&with(&[("main.main;main.rows", n)]));
    let diff = Diff::new(&[side(3000, 3000)], &[side(9000, 3000 + collected)]).unwrap();
    let heaps = Diff::new(&[heap(1000)], &[heap(1000 + allocated)]).unwrap();
    let options = ExplainOptions::default().with_heap(heaps);
    pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap()
}

#[test]
fn heaps_that_differ_by_less_than_two_percent_attribute_no_garbage() {
    // The other functions have 64,350 objects.
    flips([1000, 1700], |allocated| with_heaps(allocated, 2000).causes[0].garbage.is_some());
}

#[test]
fn garbage_below_half_a_percent_of_a_cause_is_not_listed() {
    flips([20, 45], |collected| with_heaps(9000, collected).causes[0].listed_garbage().is_some());
}

#[test]
fn amounts_of_work_are_disputed_if_they_differ_by_a_fifth_or_more() {
    // CPU shows equal work. All functions of the heap profile allocated more, in percent; e^0.2 is 1.22.
    flips([16, 30], |more| {
        let time = |n: i64| cpu(&with(&[("main.main;main.rows", n)]));
        let allocated = |percent: i64| {
            let functions = (0..9).map(|i| (format!("main.main;main.f{i}"), percent * (5000 + 400 * i)));
            heap(&functions.collect::<Vec<_>>())
        };
        let diff = Diff::new(&[time(3000)], &[time(9000)]).unwrap();
        let heaps = Diff::new(&[allocated(100)], &[allocated(100 + more)]).unwrap();
        let options = ExplainOptions::default().with_heap(heaps);
        let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap();
        assert!((e.also[0].scale.factor - (1.0 + more as f64 / 100.0)).abs() < 0.01, "{}", words(&e));
        e.scale.disputed.is_some()
    });
}

// Causes.

/// Explains a new call of `main.host` with 1,500 samples, and `before` in the base. The other calls of the host lose as
/// much together, and each loses little. `host` is their number of samples in the base.
fn spread_loss(before: i64, host: i64) -> Explanation {
    let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.host;main.k{i}")).collect();
    let calls = |n: i64| calls.iter().map(|stack| (stack.as_str(), n / 20)).collect::<Vec<_>>();
    let of_new = |n: i64| (n > 0).then_some(("main.main;main.host;main.n", n));
    let base: Vec<_> = calls(host).into_iter().chain(of_new(before)).collect();
    let new: Vec<_> = calls(host - 1500 + before).into_iter().chain(of_new(1500)).collect();
    between(&base, &new)
}

#[test]
fn functions_with_more_than_two_percent_on_a_side_are_not_added() {
    flips([40, 22], |before| spread_loss(before, 6500).causes.is_empty());
}

#[test]
fn cost_of_a_new_function_is_in_a_place_of_at_most_ten_times_its_size() {
    flips([8500, 6700], |host| spread_loss(0, host).causes.is_empty());
}

#[test]
fn the_counterpart_of_a_new_function_loses_at_most_140_percent_of_its_cost() {
    flips([147, 137], |x| {
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.host;main.k{i}")).collect();
        let calls: Vec<_> = calls.iter().map(|stack| (stack.as_str(), 800)).collect();
        let old = |n: i64| ("main.main;main.host;main.query", n);
        let base = [&calls[..], &[old(3000)]].concat();
        let new = [&calls[..], &[old(3000 - 15 * x), ("main.main;main.host;main.queryRows", 1500)]].concat();
        between(&base, &new).causes.is_empty()
    });
}

#[test]
fn functions_that_exchange_cost_differ_by_at_most_25_percent_if_one_is_new() {
    flips([69, 80], |x| {
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.host;main.k{i}")).collect();
        let calls = |n: i64| calls.iter().map(|stack| (stack.as_str(), n / 20)).collect::<Vec<_>>();
        let old = |n: i64| ("main.main;main.host;main.query", n);
        let base = [&calls(16_000)[..], &[old(3000)]].concat();
        let changed = [old(3000 - 15 * x), ("main.main;main.host;main.queryRows", 1500)];
        between(&base, &[&calls(14_500 + 15 * x)[..], &changed].concat()).causes.is_empty()
    });
}

#[test]
fn the_counterpart_of_a_new_function_changes_by_more_than_chance() {
    flips([30_000, 22_000], |n| {
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.host;main.k{i}")).collect();
        let calls: Vec<_> = calls.iter().map(|stack| (stack.as_str(), 800)).collect();
        let old = |n: i64| ("main.main;main.host;main.query", n);
        let changed = [old(n - 2040), ("main.main;main.host;main.queryRows", 1500)];
        between(&[&calls[..], &[old(n)]].concat(), &[&calls[..], &changed].concat()).causes.is_empty()
    });
}

#[test]
fn at_most_16_shifts_are_folded() {
    flips([20, 14], |n| {
        let side = |scan: i64, fast: i64| {
            let of = |i: i64| {
                let stack = |name: &str| format!("main.main;main.host{i};main.scan{i}{name}");
                [(stack(""), scan), (stack("Fast"), fast)]
            };
            (0..n).flat_map(of).collect::<Vec<_>>()
        };
        let e = between(&borrowed(&side(6000, 2000)), &borrowed(&side(2000, 6000)));
        count(&e, MoveKind::Shift) as i64 == n
    });
}

#[test]
fn advice_names_at_most_20_runs() {
    // Six runs per side, in which one of ten functions has `more` additional samples.
    flips([25, 32], |more| {
        let run = |more: i64| {
            cpu(&(0..10).map(|i| (format!("main.main;main.f{i}"), if i == 0 { 10 + more } else { 10 })).collect())
        };
        let [base, new] = [0, more].map(|more| (0..6).map(|i| run((more + i) / 6)).collect::<Vec<_>>());
        explain(&base, &new).candidate.is_some_and(|candidate| candidate.runs.is_some())
    });
}

#[test]
fn functions_that_exchange_cost_have_half_of_their_callees_in_common() {
    flips([44, 56], |x| {
        let side = |scan: i64, find: i64| {
            let stack = |function: &str, callee: &str, n: i64| {
                (format!("main.main;main.host;main.{function};main.{callee}"), n)
            };
            let of = |function: &str, own: &str, n: i64| {
                [stack(function, "read", n * x / 100), stack(function, own, n * (100 - x) / 100)]
            };
            [of("scan", "c1", scan), of("find", "c2", find)].concat()
        };
        !between(&borrowed(&side(6000, 2000)), &borrowed(&side(2000, 6000))).moved.is_empty()
    });
}

#[test]
fn functions_that_exchange_cost_have_a_call_in_half_of_the_stacks() {
    flips([47, 56], |x| {
        let base = [("main.main;main.host;main.scan", 6000), ("main.main;main.host;main.find", 500)];
        let called = ("main.main;main.host;main.scan;main.find", 45 * x);
        let e = between(
            &base,
            &[("main.main;main.host;main.scan", 2000), ("main.main;main.host;main.find", 4500 - 45 * x), called],
        );
        e.moved.iter().any(|moved| moved.from == "main.scan")
    });
}

#[test]
fn merged_causes_have_80_percent_in_common_callers() {
    flips([75, 85], |x| {
        let side = |n: i64| {
            let of = |function: &str, n: i64| {
                let others =
                    (0..10).map(|i| (format!("main.main;main.other{i};main.{function}"), n * (100 - x) / 1000));
                others.chain([(format!("main.main;main.host;main.{function}"), n * x / 100)]).collect::<Vec<_>>()
            };
            [of("scan", n), of("find", n), vec![("main.main;main.host;main.rest".to_owned(), 7000)]].concat()
        };
        between(&borrowed(&side(4000)), &borrowed(&side(9000))).causes.len() == 1
    });
}

/// Explains a call of `main.c` that goes through another function on each side, with a number of samples. The
/// functions have `percent` of their cost in the call.
fn routes(base: i64, new: i64, percent: i64) -> Explanation {
    let side = |function: &str, n: i64| {
        let called = (format!("main.main;main.a;{function};main.c"), n * percent / 100);
        [called, (format!("main.main;main.a;{function}"), n * (100 - percent) / 100)]
    };
    between(&borrowed(&side("a/one.Open", base)), &borrowed(&side("b/two.Start", new)))
}

#[test]
fn replaced_wrappers_have_costs_that_differ_by_at_most_35_percent() {
    flips([6667, 5714], |new| count(&routes(4000, new, 100), MoveKind::Replaced) > 0);
}

#[test]
fn replaced_wrappers_have_10_percent_of_their_cost_below() {
    // If the calls of `main.c` have too little cost, cost only moved between the functions.
    flips([13, 8], |percent| count(&routes(4000, 4000, percent), MoveKind::Shift) > 0);
}

#[test]
fn the_caller_of_replaced_calls_has_35_percent_of_their_change() {
    // The caller has too much of both sides to be a place of moved cost.
    flips([2900, 2400], |more| {
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.load;main.k{i}")).collect();
        let rest: Vec<_> = calls.iter().map(|stack| (stack.as_str(), 12_000)).collect();
        let base =
            [&rest[..], &[("main.main;main.load;a/one.Read", 5000), ("main.main;main.load;main.more", 1000)]].concat();
        let new =
            [&rest[..], &[("main.main;main.load;b/two.Parse", 900), ("main.main;main.load;main.more", 1000 + more)]]
                .concat();
        words(&between(&base, &new)).contains(" instead of ")
    });
}

#[test]
fn functions_with_similar_names_that_exchange_cost_differ_by_at_most_15_percent() {
    // The caller has too much noise to show that its sum is unchanged.
    flips([18, 12], |percent| {
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.host;main.k{i}")).collect();
        let calls: Vec<_> = calls.iter().map(|stack| (stack.as_str(), 3000)).collect();
        let side = |scan: i64, fast: i64| {
            [&calls[..], &[("main.main;main.host;main.scan", scan), ("main.main;main.host;main.scanFast", fast)]]
                .concat()
        };
        between(&side(3000, 1000), &side(1000, 3000 - 20 * percent)).causes.is_empty()
    });
}

#[test]
fn merged_causes_have_at_most_20_percent_in_common() {
    // `find` calls `scan`. Five other functions call `scan`, too.
    flips([22, 15], |percent| {
        let side = |n: i64| {
            let both = n * percent / 100;
            let of = |i: i64| {
                let caller = format!("main.main;main.host;main.caller{i}");
                let find = format!("main.main;main.host;main.find;main.c{i}");
                [(format!("{caller};main.scan"), (n - both) / 5), (find, (n - both) / 5), (caller, 2000)]
            };
            let called = ("main.main;main.host;main.find;main.scan".to_owned(), both);
            (0..5).flat_map(of).chain([called]).collect::<Vec<_>>()
        };
        between(&borrowed(&side(4000)), &borrowed(&side(9000))).causes.len() == 1
    });
}

#[test]
fn cost_moves_only_if_half_of_the_change_is_measured() {
    // `scan` grows everywhere. Below `host`, this hides a part of what the other callees lose.
    flips([55, 40], |percent| {
        let side = |lost: i64, scan: i64| {
            let host = (0..20).map(|i| (format!("main.main;main.load;main.host;main.k{i}"), 250 - lost / 20));
            let gained = lost - scan;
            let others = (0..300).map(|i| {
                let n = 5 + gained / 300 + i64::from(i < gained % 300);
                (format!("main.main;main.load;main.q{i}"), n)
            });
            let scans = (0..10).map(|i| (format!("main.main;main.other{i};main.scan"), 500 + scan));
            let called = ("main.main;main.load;main.host;main.scan".to_owned(), 100 + scan);
            cpu(&with(&borrowed(&host.chain(others).chain(scans).chain([called]).collect::<Vec<_>>())))
        };
        let diff = Diff::new(&[side(0, 0)], &[side(4500, 45 * percent)]).unwrap();
        let options = ExplainOptions::default().with_ops(1.0, 1.0);
        let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap();
        e.moved.iter().any(|moved| moved.from == "main.host")
    });
}

#[test]
fn places_of_moved_cost_contain_all_of_the_function() {
    // `outside` is the part of the function outside of the place, times 20,000.
    flips([30, 15], |outside| {
        let side = |scan: i64, outside: i64, other: i64| {
            let others = (0..1500).map(|i| (format!("main.main;main.host;main.q{i}"), other));
            let stack = |caller: &str, n: i64| (format!("main.main;main.{caller};main.scan"), n);
            let scans = [stack("host", scan - outside), stack("other", outside)];
            cpu(&with(&borrowed(&others.chain(scans).collect::<Vec<_>>())))
        };
        let diff = Diff::new(&[side(20_000, outside, 4)], &[side(8000, outside * 2 / 5, 12)]).unwrap();
        let options = ExplainOptions::default().with_ops(1.0, 1.0);
        let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap();
        e.causes.is_empty()
    });
}

#[test]
fn replaced_calls_have_half_of_the_cost_of_their_caller() {
    flips([1400, 1700], |parse| {
        let rest = ("main.main;main.load;main.k", 1500);
        let base = [rest, ("main.main;main.load;a/one.Read", 3000)];
        words(&between(&base, &[rest, ("main.main;main.load;b/two.Parse", parse)])).contains(" instead of ")
    });
}

#[test]
fn callees_with_10_percent_of_the_change_are_listed() {
    flips([770, 1150], |check| {
        let side = |split: i64, trim: i64, check: i64| {
            [
                ("main.main;main.load;main.parse;main.split", split),
                ("main.main;main.load;main.parse;main.trim", trim),
                ("main.main;main.load;main.parse;main.check", check),
            ]
        };
        let e = between(&side(10_000, 4000, 0), &side(2000, 2400, check));
        assert_eq!(e.causes.len(), 1, "{}", words(&e));
        e.causes[0].parts.iter().any(|part| part.function.as_deref() == Some("main.check"))
    });
}

#[test]
fn new_calls_exchanged_a_quarter_of_their_cost_if_the_caller_is_named() {
    // The cost of `scan` is now in `scanFast`.
    flips([22, 28], |percent| {
        let rest = ("main.main;main.host;main.k", 4000);
        let new = [
            rest,
            ("main.main;main.host;main.handle;main.scanFast", 30 * percent),
            ("main.main;main.host;main.handle;main.check", 3000 - 30 * percent),
        ];
        let e = between(&[rest, ("main.main;main.host;main.scan", 30 * percent)], &new);
        e.causes[0].function.as_deref() == Some("main.host")
    });
}

/// Explains own cost of a function that grew by `own` samples, and a callee that has `base` and `new` samples. The
/// function calls nothing else.
fn absorbed(own: i64, base: i64, new: i64) -> Explanation {
    let side = |own: i64, write: i64| {
        let others = [("a", 900), ("b", 850), ("text;main.write", 800), ("tag", own), ("tag;main.write", write)];
        cpu(&others.iter().map(|(stack, n)| (format!("main.main;main.{stack}"), *n)).collect())
    };
    explain(&[side(1, base)], &[side(1 + own, new)])
}

#[test]
fn callees_make_up_half_of_an_own_cost_that_absorbed_them() {
    flips([30, 37], |percent| {
        let e = absorbed(1000, 10 * percent, 0);
        e.causes[0].parts.iter().any(|part| part.function.as_deref() == Some("main.write"))
    });
}

#[test]
fn inlined_callees_lost_half_of_their_cost() {
    flips([45, 52], |percent| absorbed(800, 1000, 1000 - 10 * percent).causes.len() == 1);
}

#[test]
fn additions_have_90_percent_of_their_rare_caller() {
    flips([87, 93], |percent| {
        let calls: Vec<String> = (0..10).map(|i| format!("main.main;main.a;main.b;main.c{i}")).collect();
        let calls = calls.iter().map(|stack| (stack.as_str(), percent / 2));
        let new: Vec<_> = calls.chain([("main.main;main.a", 500 - 5 * percent)]).collect();
        let e = between(&[("main.main;main.a", 1)], &new);
        e.causes[0].function.as_deref() == Some("main.b")
    });
}

// Work and noise.

const BENCHMARK: &str = "testing.(*B).runN;main.BenchmarkLoad";

#[test]
fn benchmarks_have_most_of_each_side() {
    // Two functions cannot show an amount of work, except in a benchmark.
    flips([4400, 5600], |n| {
        let side = |times: i64| {
            cpu(&vec![
                (format!("{BENCHMARK};main.f"), n * times),
                ("main.main;main.g".to_owned(), (10_000 - n) * times),
            ])
        };
        explain(&[side(1)], &[side(2)]).scale.factor != 1.0
    });
}

#[test]
fn benchmarks_may_differ_many_times_in_work() {
    flips([40, 11], |times| {
        let side = |times: i64| cpu(&["f", "g"].map(|f| (format!("{BENCHMARK};main.{f}"), 100 * times)).to_vec());
        explain(&[side(1)], &[side(times)]).scale.factor != 1.0
    });
}

/// Builds a profile of waiting for locks: the number of waits of 1 ms of each lock, for each of 25 callers, because a
/// stack counts as one event.
fn locks(waits: &[i64]) -> Arc<Profile> {
    let names = |i: usize| (0..25).map(move |caller| format!("main.caller{caller};main.lock{i}"));
    let names: Vec<(String, i64)> = waits.iter().zip(0..).flat_map(|(n, i)| names(i).map(|name| (name, *n))).collect();
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        names.iter().map(|(name, n)| (name.split(';').collect(), vec![*n, n * 1_000_000])).collect();
    profile(&stacks(&[("contentions", "count"), ("delay", "nanoseconds")], &all))
}

#[test]
fn locks_agree_with_an_amount_of_work_if_nearly_all_do() {
    flips([25, 27], |n| {
        let side = |times: i64| {
            let run = |_| locks(&(0..30).map(|i| if i < n { 1000 * times } else { 1000 }).collect::<Vec<_>>());
            (0..3).map(run).collect::<Vec<_>>()
        };
        explain(&side(1), &side(2)).scale.factor > 1.5
    });
}

#[test]
fn objects_grow_with_the_work() {
    flips([1310, 1395], |objects| {
        let side = |objects: i64, bytes: i64| {
            let names: Vec<String> = (0..12).map(|i| format!("main.f{i}")).collect();
            let all: Vec<(Vec<&str>, Vec<i64>)> =
                names.iter().map(|name| (vec!["main.main", name.as_str()], vec![objects, bytes])).collect();
            (0..3)
                .map(|_| profile(&stacks(&[("alloc_objects", "count"), ("alloc_space", "bytes")], &all)))
                .collect::<Vec<_>>()
        };
        explain(&side(1000, 64_000), &side(objects, 96_000)).scale.factor != 1.0
    });
}

#[test]
fn known_noise_counts_until_enough_frames_are_measured() {
    let of_heap = |n: i64| heap(&(0..n).map(|i| (format!("main.main;main.f{i}"), 1000)).collect());
    flips([44, 36], |n| explain(&[of_heap(n)], &[of_heap(n)]).noise.tau > 0.0);
    let of_locks = |n: i64| locks(&vec![1000; n as usize]);
    flips([13, 9], |n| explain(&[of_locks(n)], &[of_locks(n)]).noise.tau > 0.2);
}

#[test]
fn any_amount_of_work_is_usual_if_80_percent_agree() {
    let is_scale = |functions: i64, n: i64, samples: i64, times: i64| {
        let stack =
            |i: i64, times: i64| (format!("main.main;main.f{i}"), if i < n { samples * times } else { samples });
        let side = |times: i64| cpu(&(0..functions).map(|i| stack(i, times)).collect());
        explain(&[side(1)], &[side(times)]).scale.factor > 2.0
    };
    flips([23, 27], |n| is_scale(40, n, 4, 30));
}

#[test]
fn amounts_of_work_are_shown_by_5_percent_of_a_side() {
    // Two functions have most of the cost, and their own factors. `rest` is the part of the other functions in the new
    // side.
    flips([40, 60], |rest| {
        let large = 1000 * (1000 - rest) / rest;
        let side = |factors: [i64; 2], n: i64| {
            let of = |name: String, n: i64| (format!("{BENCHMARK};main.{name}"), n);
            let functions = (0..2).map(|i| of(format!("f{i}"), large * factors[i as usize]));
            cpu(&functions.chain((0..40).map(|i| of(format!("g{i}"), n))).collect())
        };
        (explain(&[side([1, 1], 100)], &[side([3, 5], 200)]).scale.factor - 2.0).abs() < 0.01
    });
}

// Verdict.

/// Builds runs in which half of the cost is in a function `name`, and the rest in two others. `base` is the mean number
/// of samples of a base run, `percent` the ratio to it, and `spread` half of the distance of the first two runs, in
/// percent.
fn few(runs: i64, base: i64, spread: i64, name: &str, percent: i64) -> Vec<Arc<Profile>> {
    let run = |i: i64| {
        let n = base * percent * (100 + spread * (2 * i - runs + 1)) / 100;
        let side = |function: &str, n: i64| (format!("main.main;main.{function}"), n);
        let (rest, renamed) = (n / 400, format!("p;main.{name};main.c1"));
        cpu(&vec![side("f", rest), side("g", rest), side(&renamed, n / 100 - 2 * rest)])
    };
    (0..runs).map(run).collect()
}

/// Returns true if the verdict is "nothing changed" for runs of [`few`] in which a function was renamed.
fn is_nothing(runs: i64, base: i64, spread: i64, percent: i64) -> bool {
    let e = explain(&few(runs, base, spread, "query", 100), &few(runs, base, spread, "queryRows", percent));
    assert!(e.causes.is_empty() && e.suspects.is_empty() && !e.account.unexplained, "{}", words(&e));
    assert!(e.scale.factor == 1.0 && e.moved.len() == 1, "{}", words(&e));
    e.verdict == Verdict::None
}

#[test]
fn totals_with_p_below_a_tenth_rule_out_that_nothing_changed() {
    assert!(!is_nothing(3, 60, 0, 128)); // p = .08
    assert!(is_nothing(2, 120, 0, 128)); // p = .11
}

#[test]
fn likely_changes_of_the_total_rule_out_that_nothing_changed_if_a_quarter_is_unexplained() {
    // p is .07 and .09.
    assert!(is_nothing(3, 80, 0, 124));
    assert!(!is_nothing(3, 50, 0, 128));
}

#[test]
fn moved_cost_of_few_samples_is_inconclusive() {
    flips([40, 60], |n| {
        let side = |name: &str| {
            let all = (0..3).map(|i| (format!("main.main;main.f{i}"), n));
            cpu(&all.chain([(format!("main.main;main.p;main.{name};main.c1"), 14)]).collect())
        };
        let e = explain(&[side("query")], &[side("queryRows")]);
        assert!(!e.moved.is_empty(), "{}", words(&e));
        e.verdict == Verdict::None
    });
}

#[test]
fn remainders_beside_a_cause_are_chance_only_if_their_runs_vary_as_much() {
    // The remainder grows by 8%, and varies by `spread` per mille between runs. Its functions vary more, and so does
    // the cause.
    flips([19, 25], |spread| {
        let side = |cause: i64, growth: i64| {
            let run = |run: i64| {
                let of = |i: i64| {
                    let n = (1000 + growth + run * spread) * (100 + 15 * ((i + run + 4) % 3 - 1)) / 50;
                    (format!("main.main;main.f{i}"), n)
                };
                let changed = ("main.main;main.changed".to_owned(), cause * (5 + run) / 5);
                cpu(&(0..30).map(of).chain([changed]).collect())
            };
            (-1..2).map(run).collect::<Vec<_>>()
        };
        let options = ExplainOptions::default().with_ops(1.0, 1.0);
        let diff = Diff::new(&side(20_000, 0), &side(200_000, 80)).unwrap();
        let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap();
        assert_eq!(e.causes.len(), 1, "{}", words(&e));
        e.account.by_chance
    });
}

// Counts of instructions and calls.

/// Builds a profile that counts instructions. Each function is called 100 times.
fn counts(rows: &[(&str, i64)]) -> Arc<Profile> {
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        rows.iter().map(|(stack, n)| (stack.split(';').collect(), vec![100, *n])).collect();
    profile(&stacks(&[("calls", "count"), ("Ir", "count")], &all))
}

#[test]
fn the_cost_of_a_call_is_stated_if_half_a_percent_belongs_to_others() {
    // Own cost includes functions of the runtime, but a plain table does not.
    flips([6, 4], |runtime| {
        let side = |own: i64| {
            let others = [("main.main;main.a", 900_000), ("main.main;main.b", 800_000), ("main.main;main.c", 700_000)];
            let f = [("main.main;main.f", own), ("main.main;main.f;runtime.memmove", 1000 * runtime)];
            counts(&[&others[..], &f].concat())
        };
        let e = explain(&[side(1_000_000)], &[side(1_500_000)]);
        assert_eq!(e.causes.len(), 1, "{}", words(&e));
        e.causes[0].calls.as_ref().is_some_and(|calls| calls.unit_factor.is_some())
    });
}

#[test]
fn counts_move_inside_a_function_if_they_exceed_three_errors_of_it() {
    // `moved` is a part of `scan`, in per mille. Functions inside of the place do not tell the amount of work.
    flips([20, 30], |moved| {
        let side = |moved: i64| {
            let others = (0..20).map(|i| (format!("main.main;main.host;main.k{i}"), 100_000 - 100 * moved));
            let scan = ("main.main;main.host;main.scan".to_owned(), 500_000 + 2000 * moved);
            let rest = [("main.main;main.load".to_owned(), 3_000_000), ("main.main;main.store".to_owned(), 2_000_000)];
            counts(&borrowed(&others.chain([scan]).chain(rest).collect::<Vec<_>>()))
        };
        let e = explain(&[side(0)], &[side(moved)]);
        // Below and above, the answer names the move.
        assert!(e.causes.is_empty() && count(&e, MoveKind::Shift) == 1, "{}", words(&e));
        assert_eq!((e.moved[0].function.as_str(), e.moved[0].inside.as_deref()), ("main.scan", Some("main.host")));
        e.scale.of < 10
    });
}

#[test]
fn changes_of_counts_exceed_the_noise_of_a_thousand_functions() {
    flips([148, 172], |change| {
        let run = |n: i64| {
            counts(&[("main.main;main.f", n), ("main.main;main.a", 9_000_000), ("main.main;main.b", 8_000_000)])
        };
        let side = |mean: i64| [run(mean - 10_000), run(mean), run(mean + 10_000)];
        !explain(&side(2_000_000), &side(2_000_000 + 1000 * change)).causes.is_empty()
    });
}

#[test]
fn own_cost_names_functions_of_the_runtime_from_three_percent_on() {
    // `runtime` is a part of the change, in per mille. It grows as much as the function.
    flips([22, 45], |runtime| {
        let side = |own: i64, copied: i64| [("main.main;main.f", own), ("main.main;main.f;runtime.memmove", copied)];
        let e = between(&side(20_000 - 20 * runtime, 20 * runtime), &side(80_000 - 80 * runtime, 80 * runtime));
        assert_eq!((e.causes.len(), e.causes[0].function.as_deref()), (1, Some("main.f")), "{}", words(&e));
        e.causes[0].parts.len() > 1
    });
}

/// Explains the times of two sides, given as stacks with a time and a number of calls.
fn timed(base: &[(&str, i64, i64)], new: &[(&str, i64, i64)]) -> Explanation {
    let side = |rows: &[(&str, i64, i64)]| {
        let all: Vec<(Vec<&str>, Vec<i64>)> =
            rows.iter().map(|(stack, time, calls)| (stack.split(';').collect(), vec![*time, *calls])).collect();
        profile(&stacks(&[("time", "nanoseconds"), ("calls", "count")], &all))
    };
    let query = Query::default().with_sample_type("time");
    let diff = Diff::new(&[side(base)], &[side(new)]).unwrap();
    pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap()
}

#[test]
fn entry_functions_with_two_thirds_of_the_cost_show_the_work() {
    // `handle` is called equally often and has a part of the cost, in percent. `poll` has the rest.
    flips([60, 74], |part| {
        let side =
            |polls| [("main", 5, 1), ("main;handle", 1000 * part, 300), ("main;poll", 1000 * (100 - part), polls)];
        timed(&side(100), &side(900)).scale.calls.is_some()
    });
}

#[test]
fn calls_that_differ_by_half_a_percent_are_the_same_work() {
    flips([1007, 1004], |calls| {
        let side = |calls| [("main", 5, 1), ("main;handle", 900_000, calls)];
        timed(&side(1000), &side(calls)).scale.calls.is_some()
    });
}

/// A call that is much smaller than the call that disappeared does not replace it.
#[test]
fn calls_that_replace_one_another_have_a_similar_size() {
    flips([1700, 2300], |came| {
        // The caller has too much of both sides to be a place of moved cost.
        let calls: Vec<String> = (0..20).map(|i| format!("main.main;main.load;main.k{i}")).collect();
        let rest: Vec<_> = calls.iter().map(|stack| (stack.as_str(), 12_000)).collect();
        let base = [&rest[..], &[("main.main;main.load;a/one.Read", 20_000)]].concat();
        let new = [&rest[..], &[("main.main;main.load;b/two.Parse", came)]].concat();
        words(&between(&base, &new)).contains(" instead of ")
    });
}

/// The answer lists changes of at least a twentieth of the total after the largest change.
#[test]
fn changes_after_the_largest_have_a_twentieth_of_the_total() {
    let side = |a: i64, b: i64| {
        let rows = [("main;a", a), ("main;b", b), ("main;c", 3000), ("main;d", 2000)];
        let rows: Vec<(Vec<&str>, Vec<i64>)> =
            rows.iter().map(|(stack, n)| (stack.split(';').collect(), vec![n * 100_003])).collect();
        profile(&stacks(&[("time", "nanoseconds")], &rows))
    };
    flips([440, 560], |b| !explain(&[side(1000, 100)], &[side(10_000 - 5000 - b, b + 100)]).suspects.is_empty());
}
