//! Tests of the rules of `explain`. Each rule of its table has a test whose name begins with the rule's name. Other
//! tests check that rules do not apply where they should not.

use std::path::Path;
use std::sync::Arc;

use pprofdiff::{Diff, LoadOptions, Profile, Query, Source};
use pprofdiff_explain::{CauseKind, ExplainOptions, Explanation, MoveKind, RULES, ScaleRule, Verdict};

use crate::synthetic::{Stacks, cpu, of_tenants, profile, says, stacks, with, words};

fn between(base: &[(&str, i64)], new: &[(&str, i64)]) -> Explanation {
    explain(&[cpu(&with(base))], &[cpu(&with(new))])
}

fn explain(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Explanation {
    pprofdiff_explain::explain(&Diff::new(base, new).unwrap(), &Query::default(), &[], &ExplainOptions::default())
        .unwrap()
}

/// Explains a sample type of two files of tests/corpus.
fn of_corpus(base: &str, new: &str, sample_type: &str) -> Explanation {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let [base, new] = [base, new].map(|name| [Source::Path(corpus.join(name))]);
    let diff = Diff::load(&base, &new, &LoadOptions::default()).unwrap();
    let query = Query::default().with_sample_type(sample_type);
    pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap()
}

/// Each rule needs a test in this file, and a row in docs/explain.md.
#[test]
fn each_rule_has_a_case_and_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain.md");
    let (cases, docs) = (include_str!("rules.rs"), std::fs::read_to_string(docs).unwrap());
    for rule in &RULES {
        assert!(cases.contains(&format!("#[test]\nfn {}_", rule.name)), "no case of {}", rule.name);
        let row = format!("| `{}` | {} | {} | {} |", rule.name, rule.stage(), rule.needs, rule.says);
        assert!(docs.contains(&row), "docs/explain.md has no row\n{row}");
    }
}

#[test]
fn calls_that_cost_more_are_named_with_their_caller() {
    let side = |n: i64| {
        let others = [("main.main;main.a;main.e", 5000), ("main.main;main.d;main.b;main.c", 3000)];
        [("main.main;main.a;main.b;main.c", n), others[0], others[1]]
    };
    let e = between(&side(3000), &side(9000));
    assert_eq!((e.causes.len(), e.causes[0].kind), (1, CauseKind::Calls), "{e:?}");
    says(&e, "main.a spends more in main.b (called more, or slower): +60s");
    says(&between(&side(9000), &side(3000)), "main.a spends less in main.b (called less, or faster): -60s");
}

#[test]
fn added_calls_are_causes() {
    let (without, with) =
        ([("main.main;main.a", 3000)], [("main.main;main.a", 3000), ("main.main;main.a;main.b", 4000)]);
    let e = between(&without, &with);
    assert_eq!((e.causes.len(), e.causes[0].kind, e.causes[0].factor), (1, CauseKind::Added, None), "{e:?}");
    says(&e, "main.a now calls main.b: +40s");
}

#[test]
fn removed_calls_are_causes() {
    let (without, with) =
        ([("main.main;main.a", 3000)], [("main.main;main.a", 3000), ("main.main;main.a;main.b", 4000)]);
    let e = between(&with, &without);
    assert_eq!((e.causes.len(), e.causes[0].kind, e.causes[0].factor), (1, CauseKind::Removed, Some(0.0)), "{e:?}");
    says(&e, "main.a no longer calls main.b: -40s");
}

#[test]
fn labels_are_named_if_only_their_samples_changed() {
    let e = explain(&[of_tenants(1.0, 1, 0)], &[of_tenants(1.8, 2, 0)]);
    let label = e.causes[0].label.as_ref().map(|label| (label.key.as_str(), label.value.as_str()));
    assert_eq!((e.causes.len(), label), (1, Some(("tenant", "b"))), "{e:?}");
    says(&e, "other values of the label did not change");
}

/// Checks that the cost shift is the only finding, and returns its two function names.
fn moved(base: &[(&str, i64)], new: &[(&str, i64)], how: MoveKind) -> (String, String) {
    let e = between(base, new);
    assert_eq!((e.verdict, e.causes.len(), e.moved.len()), (Verdict::None, 0, 1), "{e:?}");
    let moved = &e.moved[0];
    assert_eq!(moved.how, how, "{moved:?}");
    (moved.from.clone(), moved.function.clone())
}

#[test]
fn inlined_functions_are_part_of_their_callers() {
    let (base, new) = ([("main.main;main.a;main.b;main.c", 6000)], [("main.main;main.a;main.c", 6000)]);
    assert_eq!(moved(&base, &new, MoveKind::Inlined), ("main.b".to_owned(), "main.a".to_owned()));
}

#[test]
fn outlined_functions_were_part_of_their_callers() {
    let (base, new) = ([("main.main;main.a", 9000)], [("main.main;main.a", 4500), ("main.main;main.a;main.b", 4500)]);
    assert_eq!(moved(&base, &new, MoveKind::Outlined), ("main.a".to_owned(), "main.b".to_owned()));
}

#[test]
fn cost_shift_within_a_caller_is_not_a_cause() {
    let side = |a: i64, b: i64| [("main.main;main.host;main.scan", a), ("main.main;main.host;main.scanFast", b)];
    let e = between(&side(6000, 2000), &side(2000, 6000));
    assert_eq!((e.verdict, e.causes.len(), e.moved.len()), (Verdict::None, 0, 1), "{e:?}");
    assert!(e.moved[0].even && matches!(e.moved[0].how, MoveKind::Shift | MoveKind::Swap), "{e:?}");
    // A change on top of the shift is a cause.
    let e = between(&side(6000, 2000), &side(2000, 12_000));
    assert!(!e.causes.is_empty() && e.moved.iter().all(|moved| moved.even), "{e:?}");
}

/// Builds runs of a program whose whole cost is in one function.
fn of_one_function(n: i64, size: i64) -> Vec<Arc<Profile>> {
    let run = |i: i64| {
        let n = n + i * n / 100;
        let types = [("alloc_objects", "count"), ("alloc_space", "bytes")];
        let stacks_of = |function: &str, n: i64| {
            (vec!["main.main", function].into_iter().map(str::to_owned).collect::<Vec<_>>(), vec![n, n * size])
        };
        let all = [stacks_of("main.solve", n), stacks_of("main.other", n / 50)];
        let all: Vec<_> =
            all.iter().map(|(stack, v)| (stack.iter().map(String::as_str).collect(), v.clone())).collect();
        profile(&stacks(&types, &all))
    };
    (0..3).map(run).collect()
}

#[test]
fn whole_programs_in_one_function_may_have_done_less_work_or_the_function_is_cheaper() {
    let e = explain(&of_one_function(100_000, 64), &of_one_function(50_000, 64));
    assert_eq!((e.verdict, e.causes.len(), e.suspects.len()), (Verdict::Inconclusive, 0, 1), "{e:?}");
    says(&e, "Either 0.50 times as much work, or main.solve itself allocates less");
    // Less work makes fewer allocations, but not smaller ones.
    let e = explain(&of_one_function(100_000, 64), &of_one_function(100_000, 32));
    assert_eq!((e.verdict, e.causes.len()), (Verdict::Change, 1), "{e:?}");
    says(&e, "main.solve itself allocates less, called by main.main: ");
}

#[test]
fn ambiguous_causes_are_withheld() {
    let side = |n: i64| {
        let all = [("main.main;main.a;main.b".to_owned(), n), ("main.main;main.c".to_owned(), 90)];
        cpu(&all.to_vec())
    };
    let e = explain(&[side(4000)], &[side(9000)]);
    assert_eq!((e.verdict, e.causes.len()), (Verdict::Inconclusive, 0), "{e:?}");
    assert!(!e.suspects.is_empty(), "{e:?}");
    says(&e, "times as much work, or main.");
}

#[test]
fn renamed_packages_are_matched_and_changes_in_them_are_causes() {
    let package_stacks = |path: &str, b: i64| -> Vec<(String, i64)> {
        ["A", "B", "C", "D"]
            .iter()
            .map(|f| (format!("main.main;main.load;{path}.(*T).{f}"), if *f == "B" { b } else { 3000 }))
            .collect()
    };
    let side = |path: &str, b: i64| {
        let stacks = package_stacks(path, b);
        cpu(&with(&stacks.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side("x.org/lib.v2", 3000)], &[side("y.org/lib.v3", 3000)]);
    assert_eq!(e.verdict, Verdict::None, "{e:?}");
    assert_eq!(e.moved.iter().filter(|moved| moved.how == MoveKind::Renamed && moved.even).count(), 4, "{:?}", e.moved);
    says(&e, "Moved: x.org/lib.v2 is now called y.org/lib.v3: 4 functions.");
    let e = explain(&[side("x.org/lib.v2", 3000)], &[side("y.org/lib.v3", 9000)]);
    let cause = &e.causes[0];
    assert_eq!((cause.kind, cause.function.as_deref()), (CauseKind::Own, Some("y.org/lib.v3.(*T).B")), "{e:?}");
    assert!((cause.delta - 6e10).abs() < 1e6, "{cause:?}");
    // The pattern matches the stacks of both names.
    let pattern = cause.evidence.pattern.clone().unwrap();
    assert!(pattern.contains("lib\\.v2") && pattern.contains("lib\\.v3"), "{pattern}");
    let moved = e.moved.iter().find(|moved| moved.function == "y.org/lib.v3.(*T).B").unwrap();
    assert_eq!((moved.cost, moved.even), (Some((3e10, 9e10)), false));
}

#[test]
fn equal_cost_alone_is_not_a_rename() {
    let e = between(&[("main.main;main.load;a/one.Read", 4000)], &[("main.main;main.load;b/two.Parse", 4000)]);
    assert!(e.moved.iter().all(|moved| moved.how != MoveKind::Renamed), "{:?}", e.moved);
    // An equal last part of the name is evidence of a rename in one module. Other libraries have functions of that name.
    let read = |path: &str| format!("main.main;main.load;{path}.Read");
    let (one, two, other) = (read("a/one"), read("a/two"), read("b/two"));
    let e = between(&[(&one, 4000)], &[(&two, 4100)]);
    assert!(e.moved.iter().any(|moved| moved.how == MoveKind::Renamed) && e.causes.is_empty(), "{e:?}");
    let e = between(&[(&one, 4000)], &[(&other, 4100)]);
    assert!(e.moved.iter().all(|moved| moved.how == MoveKind::Replaced) && e.causes.is_empty(), "{e:?}");
}

#[test]
fn two_common_names_do_not_make_a_package_renamed() {
    let package = |path: &str, names: &[&str], n: i64| -> Arc<Profile> {
        let all: Vec<String> = names.iter().map(|name| format!("main.main;main.load;{path}.{name}")).collect();
        cpu(&with(&all.iter().map(|stack| (stack.as_str(), n)).collect::<Vec<_>>()))
    };
    let many: Vec<String> = (0..20).map(|i| format!("c{i}")).chain(["New".to_owned(), "Get".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let e = explain(&[package("x/lru", &["New", "Get"], 20_000)], &[package("y/kafka", &many, 900)]);
    assert!(e.moved.iter().all(|moved| !moved.from.contains("lru.New")), "{:?}", e.moved);
    // Names that differ only in case are different names.
    let [base, new] = ["x/v2", "x/v3"].map(|path| package(path, &["Read", "read", "Close"], 2000));
    let e = explain(&[base], &[new]);
    assert_eq!(
        (e.verdict, e.moved.iter().filter(|moved| moved.how == MoveKind::Renamed).count()),
        (Verdict::None, 3),
        "{e:?}"
    );
}

#[test]
fn many_packages_with_equal_names_are_matched_quickly() {
    let side = |letter: char| {
        let all: Vec<String> =
            (0..20_000).flat_map(|i| ["f", "g"].map(|f| format!("main.main;{letter}{i}.{f}"))).collect();
        cpu(&all.into_iter().map(|stack| (stack, 3)).collect())
    };
    let e = explain(&[side('h')], &[side('k')]);
    assert!(e.moved.iter().all(|moved| moved.how != MoveKind::Renamed) && e.work < 1 << 24, "{}", e.work);
}

#[test]
fn a_change_without_a_counterpart_is_not_a_swap() {
    let side = |dearer: i64| {
        [
            ("main.main;main.f", 100),
            ("main.main;main.f;sync.(*Once).Do;main.init", 700),
            ("main.main;main.f;sync.(*Once).Do;runtime.lock", dearer),
        ]
    };
    let e = between(&side(1), &side(9000));
    assert!(e.moved.iter().all(|moved| moved.how != MoveKind::Swap), "{:?}", e.moved);
    assert!(e.causes.first().is_some_and(|cause| cause.delta > 8e10), "{}", words(&e));
}

#[test]
fn calls_through_a_function_inlined_on_one_side_are_causes() {
    let side = |middle: &str, each: i64| {
        let all: Vec<String> = (0..6).map(|k| format!("main.main;main.a;{middle}main.c;main.k{k}")).collect();
        let mut all: Vec<(String, i64)> = all.into_iter().map(|stack| (stack, each)).collect();
        all.extend(with(&[("main.main;main.a;main.x", 9000), ("main.main;main.a;main.y", 9000)]));
        cpu(&all)
    };
    let e = explain(&[side("main.b;", 4000)], &[side("", 2500)]);
    assert_eq!(e.causes.first().and_then(|cause| cause.function.as_deref()), Some("main.c"), "{}", words(&e));
    assert!((e.causes[0].delta + 9e10).abs() < 1e7, "{}", words(&e));
}

#[test]
fn replaced_calls_are_one_cause() {
    let e = between(&[("main.main;main.load;a/one.Read", 5000)], &[("main.main;main.load;b/two.Parse", 900)]);
    assert_eq!(e.causes.len(), 1, "{e:?}");
    let cause = &e.causes[0];
    assert_eq!((cause.kind, cause.function.as_deref()), (CauseKind::Calls, Some("main.load")));
    assert!((cause.delta + 4.1e10).abs() < 1e6, "{cause:?}");
    says(&e, "main.load calls b/two.Parse (+9s) instead of a/one.Read (-50s): -41s");
    // Each part keeps its own delta.
    assert_eq!(cause.parts.iter().map(|part| part.delta).collect::<Vec<_>>(), [9e9, -5e10]);
}

#[test]
fn own_cost_in_the_runtime_is_attributed_to_the_call() {
    let find = |own_cost: i64, map: i64| {
        let map = (map > 0).then_some(("main.main;main.find;runtime.mapaccess1", map));
        std::iter::once(("main.main;main.find", own_cost)).chain(map).collect::<Vec<_>>()
    };
    let e = between(&find(1000, 1000), &find(1000, 5000));
    let cause = &e.causes[0];
    let names = (cause.function.as_deref(), cause.callee.as_deref());
    assert_eq!((cause.kind, names), (CauseKind::Calls, (Some("main.find"), Some("runtime.mapaccess1"))), "{e:?}");
    assert!((cause.delta - 4e10).abs() < 1e6, "{cause:?}");
    says(&e, "main.find spends more in runtime.mapaccess1 (called more, or slower)");
    says(&between(&find(1000, 0), &find(1000, 5000)), "main.find now calls runtime.mapaccess1");
    says(&between(&find(1000, 5000), &find(1000, 0)), "main.find no longer calls runtime.mapaccess1");
    // A change of the function's own code is not attributed to a call.
    let e = between(&find(1000, 1000), &find(5000, 1000));
    assert_eq!((e.causes[0].kind, e.causes[0].callee.as_deref()), (CauseKind::Own, None), "{e:?}");
}

#[test]
fn calls_of_a_library_name_the_functions_of_the_program() {
    let side = |one: i64, two: i64| {
        let sort = |caller: &str, n: i64| (format!("main.main;{caller};sort.Sort;sort.insertionSort"), n);
        let other = |n: i64| ("main.main;main.one;sort.Sort;sort.heapSort".to_owned(), n);
        let all = [sort("main.one", one), sort("main.two", two), other(3000)];
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side(2000, 2000)], &[side(8000, 8000)]);
    let program: Vec<(&str, f64)> =
        e.causes[0].program.iter().map(|side| (side.function.as_str(), side.delta)).collect();
    assert_eq!(program, [("main.one", 6e10), ("main.two", 6e10)], "{e:?}");
    says(&e, "for main.one (+60s), main.two (+60s)");
    // The next step is in the program, and the pattern of the evidence is in the library.
    let patterns =
        |e: &Explanation| (e.causes[0].own_pattern().unwrap(), e.causes[0].evidence.pattern.clone().unwrap());
    let library = r"^sort\.insertionSort$".to_owned();
    assert_eq!(patterns(&e), (r"^(main\.one|main\.two)$".to_owned(), library), "{e:?}");
    // A cause in the program has one pattern.
    let (e, two) = (explain(&[side(2000, 2000)], &[side(2000, 8000)]), || r"^main\.two$".to_owned());
    assert_eq!(patterns(&e), (two(), two()), "{e:?}");
}

#[test]
fn rewritten_libraries_come_first_and_causes_are_above_them() {
    let side = |path: &str, names: &str, read: i64, write: i64| -> Vec<(String, i64)> {
        let entry_stacks = |entry: &str, n: i64| {
            let stack = |c: char| (format!("main.main;main.{entry};x.org/lib.{entry};{path}.{names}{c}"), n / 6);
            "abcdef".chars().map(stack).collect::<Vec<_>>()
        };
        [entry_stacks("Read", read), entry_stacks("Write", write)].concat()
    };
    let profile_of =
        |stacks: Vec<(String, i64)>| cpu(&with(&stacks.iter().map(|(s, n)| (s.as_str(), *n)).collect::<Vec<_>>()));
    let base = profile_of(side("x.org/lib/old", "decode", 30_000, 30_000));
    let e = explain(&[base], &[profile_of(side("x.org/lib/new", "scan", 30_000, 90_000))]);
    let rewrite = e.rewrite.as_ref().unwrap();
    assert_eq!((rewrite.from.as_str(), rewrite.to.as_str()), ("x.org/lib/old", "x.org/lib/new"));
    assert_eq!((rewrite.gone, rewrite.came), (6, 6), "{rewrite:?}");
    says(&e, "Rewritten: x.org/lib/old is now x.org/lib/new: 6 functions (600s) were replaced by 6 (1200s).");
    assert_eq!(e.causes.len(), 1, "{e:?}");
    assert!(["x.org/lib.Write", "main.Write"].contains(&e.causes[0].function.as_deref().unwrap()), "{e:?}");
    // Functions of scripts have no package. The text then names the function whose callees were replaced.
    let script = |names: &str, read: i64| {
        let stacks = "abcdef".chars().map(|c| (format!("main.main;load;{names}{c}"), read / 6));
        profile_of(stacks.collect())
    };
    let e = explain(&[script("decode", 30_000)], &[script("scan", 90_000)]);
    assert_eq!(e.rewrite.as_ref().unwrap().below.as_deref(), Some("load"), "{e:?}");
    says(&e, "Rewritten: the callees of load: 6 functions (300s) were replaced by 6 (900s)");
}

/// Builds a heap profile: stacks with a number of objects and their size in bytes. All objects are sampled.
fn heap(sample_type: &str, allocations: &[(&str, i64, i64)]) -> Arc<Profile> {
    let objects = sample_type.replace("space", "objects");
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        allocations.iter().map(|(stack, n, size)| (stack.split(';').collect(), vec![*n, n * size])).collect();
    profile(&stacks(&[(&objects, "count"), (sample_type, "bytes")], &all))
}

#[test]
fn in_use_level_is_not_an_amount_of_work() {
    let side = |times: i64, cache: i64| {
        let names: Vec<String> = (0..12).map(|i| format!("main.main;main.f{i}")).collect();
        let mut all: Vec<_> = names.iter().map(|name| (name.as_str(), 1000 * times, 100)).collect();
        all.push(("main.main;main.cache", cache, 100));
        heap("inuse_space", &all)
    };
    let e = explain(&[side(1, 500)], &[side(2, 1000)]);
    assert_eq!((e.verdict, e.scale.rule, e.scale.factor), (Verdict::Change, ScaleRule::Level, 1.0));
    assert_eq!((e.causes.len(), &e.causes[0].function, e.causes[0].factor), (1, &None, Some(2.0)), "{e:?}");
    says(&e, "everything grew by the same factor (more live data, or a leak in proportion)");
    // A cache that grew more than the rest has its own line. The account adds up with zero work.
    let e = explain(&[side(1, 500)], &[side(2, 50_000)]);
    assert_eq!(e.causes[0].function.as_deref(), Some("main.cache"));
    assert_eq!((e.account.work, e.account.delta), (0.0, e.account.causes + e.account.rest), "{e:?}");
    says(&e, "everything else grew by the same factor");
}

#[test]
fn more_work_makes_more_objects_but_not_larger_ones() {
    let side = |count: i64, size: i64| {
        let names: Vec<String> = (0..12).map(|i| format!("main.main;main.f{i}")).collect();
        heap("alloc_space", &names.iter().map(|name| (name.as_str(), count, size)).collect::<Vec<_>>())
    };
    let runs = |count: i64, size: i64| [0, 1, 2].map(|run| side(count + 10 * run, size));
    let e = explain(&runs(5000, 100), &runs(6000, 100));
    assert_eq!((e.scale.rule, (e.scale.factor * 100.0).round()), (ScaleRule::Agree, 120.0), "{e:?}");
    says(&e, "The new side did 1.20 times as much work: its number of operations differs (");
    let e = explain(&runs(5000, 100), &runs(5000, 120));
    assert_eq!((e.scale.factor, e.account.work), (1.0, 0.0), "{e:?}");
}

#[test]
fn a_uniform_increase_is_more_work_or_slower_code() {
    let once = with(&[]);
    let twice: Stacks = once.iter().map(|(stack, n)| (stack.clone(), 2 * n)).collect();
    let (once, twice) = ([cpu(&once)], [cpu(&twice)]);
    says(
        &explain(&once, &twice),
        "The new side did 2.00 times as much work, or all code became slower by the same factor (",
    );
    says(
        &explain(&twice, &once),
        "The new side did 0.50 times as much work, or all code became faster by the same factor (",
    );
    says(
        &explain(&twice, &once),
        "frames agree). Pass --ops N0,N1 with the number of operations per side to tell which. Nothing else changed.",
    );
}

#[test]
fn samples_without_a_stack_are_reported_and_detection_exceeds_noise() {
    let side = |waited: i64| {
        let all = [(vec!["main.main", "main.lock"], vec![10, waited]), (Vec::new(), vec![3, 300_000_000])];
        profile(&stacks(&[("contentions", "count"), ("delay", "nanoseconds")], &all))
    };
    let e = explain(&[side(600_000_000)], &[side(700_000_000)]);
    says(
        &e,
        "warning: 33% of the base's and 30% of the new side's delay could not be attributed to a function: no stack",
    );
    assert_eq!((e.total, e.account.delta), ((900_000_000.0, 1_000_000_000.0), 100_000_000.0), "as a table has them");
    assert!(e.noise.noticed > e.noise.deviation, "{:?}", e.noise);
}

#[test]
fn gc_pressure_is_attributed_to_the_allocating_function() {
    let side = |allocated: i64, collected: i64| {
        vec![
            ("main.main;main.rows;runtime.makeslice;runtime.mallocgc", allocated),
            ("main.main;main.page;runtime.newobject;runtime.mallocgc", 3000),
            ("runtime.gcBgMarkWorker;runtime.gcDrain;runtime.scanobject", collected),
        ]
    };
    let e = between(&side(2000, 5000), &side(12_000, 15_000));
    let cause = &e.causes[0];
    assert_eq!(cause.function.as_deref(), Some("main.rows"), "{e:?}");
    assert!((cause.garbage.unwrap() - 1e11).abs() < 1e6, "{cause:?}");
    assert_eq!((e.account.garbage, e.account.consequences), (1e11, 1e11));
    says(&e, "plus about +100s of garbage collection");
    // If nothing else changed, the line reports it as the whole change.
    let e = between(&side(2000, 5000), &side(2000, 15_000));
    assert!(e.causes.is_empty(), "{e:?}");
    says(&e, "GC, scheduling and locks changed by +100s, which is all that changed");
}

#[test]
fn gc_pressure_uses_the_heap_profiles_of_the_same_runs() {
    // The CPU profile does not show which function allocates. The heap profile shows that `page` does, although it
    // takes little time.
    let time = |rows: i64, page: i64, collected: i64| {
        let gc = "runtime.gcBgMarkWorker;runtime.gcDrain;runtime.scanobject";
        cpu(&with(&[("main.main;main.rows", rows), ("main.main;main.page", page), (gc, collected)]))
    };
    let allocated = |page: i64| {
        let all = [("main.main;main.rows", 9000, 100), ("main.main;main.page;main.line", page, 100)];
        heap("alloc_space", &all)
    };
    let diff = Diff::new(&[time(3000, 2000, 5000)], &[time(9000, 6000, 15_000)]).unwrap();
    let heaps = Diff::new(&[allocated(1000)], &[allocated(8000)]).unwrap();
    let explain = |options| pprofdiff_explain::explain(&diff, &Query::default(), &[], &options);
    let e = explain(ExplainOptions::default().with_heap(heaps)).unwrap();
    let garbage: Vec<_> = e.causes.iter().map(|c| (c.function.as_deref().unwrap(), c.garbage)).collect();
    assert_eq!(garbage, [("main.rows", None), ("main.page", Some(1e11))], "{e:?}");
    let [of_heap] = e.also.as_slice() else { panic!("{e:?}") };
    assert_eq!((of_heap.summary.sample_type.as_str(), of_heap.causes.len()), ("alloc_space", 1), "{of_heap:?}");
    says(&e, "main.line");
    assert!(explain(ExplainOptions::default()).unwrap().causes.iter().all(|c| c.garbage.is_none()));
    let refused = explain(ExplainOptions::default().with_heap(diff.clone())).unwrap_err().to_string();
    assert!(refused.contains("the heap profiles must record allocations"), "{refused}");
}

#[test]
fn both_memory_in_use_and_allocations_of_a_heap_are_explained() {
    let types = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
    let types: Vec<_> = types.iter().map(|t| (*t, if t.ends_with("space") { "bytes" } else { "count" })).collect();
    let side = |allocated: i64, kept: i64| {
        let one = |name: &'static str, a: i64, b: i64| (vec!["main.main", name], vec![a, 100 * a, b, 100 * b]);
        let mut message = stacks(&types, &[one("main.f", allocated, 4000), one("main.g", 5000, kept)]);
        message.default_sample_type = message.sample_type[3].r#type;
        profile(&message)
    };
    let diff = Diff::new(&[side(9000, 2000)], &[side(30_000, 8000)]).unwrap();
    let explain = |query| pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
    let e = explain(Query::default());
    let summary_of = |e: &Explanation| (e.summary.sample_type.clone(), e.causes[0].function.clone().unwrap());
    assert_eq!(summary_of(&e), ("inuse_space".to_owned(), "main.g".to_owned()), "{e:?}");
    assert_eq!(summary_of(&e.also[0]), ("alloc_space".to_owned(), "main.f".to_owned()), "{e:?}");
    let text = words(&e);
    assert!(text.contains("\n\nalloc_space: "), "{text}");
    assert!(explain(Query::default().with_sample_type("inuse_space")).also.is_empty());
}

#[test]
fn names_that_exist_in_both_builds_are_not_merged() {
    // Checks that the cause has only the 3,000 samples (of 10 ms) of its own function, without those of similar names.
    let alone = |e: &Explanation, function: &str| {
        let cause = &e.causes[0];
        assert_eq!((cause.function.as_deref(), cause.evidence.base.value), (Some(function), 3e10), "{e:?}");
    };
    let side = |stack: &'static str, n: i64| [(stack, n), ("main.main;x.org/a.F[string]", 3000)];
    // Two instances of a generic function; one of them changed.
    let instance = |n: i64| side("main.main;x.org/a.F[int]", n);
    alone(&between(&instance(3000), &instance(9000)), "x.org/a.F[int]");
    // An instance that exists on one side only is matched by the rest of its name.
    let instance = |shape: &'static str| side(shape, 3000);
    let e = between(&instance("main.main;x.org/a.F[go.shape.int_0]"), &instance("main.main;x.org/a.F[go.shape.int_1]"));
    assert!(e.causes.is_empty(), "{e:?}");
    // Closures are renumbered when an earlier closure is added, so `func1` may differ between the sides.
    let closures =
        |first: i64, second: i64| [("main.main;main.run.func1", first), ("main.main;main.run.func2", second)];
    let e = between(&[("main.main;main.run.func1", 6000)], &closures(3000, 6000));
    assert_eq!((e.causes.len(), e.causes[0].kind), (1, CauseKind::Own), "{e:?}");
    alone(&between(&closures(3000, 3000), &closures(3000, 9000)), "main.run.func2");
}

/// Builds a profile of waits: for each stack the number of waits, and the milliseconds of each.
fn waits(entries: &[(&str, i64, i64)]) -> Arc<Profile> {
    let all: Vec<(Vec<&str>, Vec<i64>)> =
        entries.iter().map(|(stack, n, each)| (stack.split(';').collect(), vec![*n, n * each * 1_000_000])).collect();
    profile(&stacks(&[("contentions", "count"), ("delay", "nanoseconds")], &all))
}

#[test]
fn lock_contention_distinguishes_longer_waits_from_more_waits() {
    let run = |wobble: i64, n: i64, each: i64| {
        waits(&[
            ("main.main;main.serve;main.(*Stats).Record;sync.(*Mutex).Unlock", n + wobble, each),
            ("main.main;main.serve;main.(*Cache).Get;sync.(*Mutex).Unlock", 311 + wobble, 3),
            ("main.main;main.serve;main.(*Log).Write;sync.(*Mutex).Unlock", 211 - wobble, 4),
        ])
    };
    let side = |n: i64, each: i64| [-8, 0, 9].map(|wobble| run(wobble, n, each));
    let e = explain(&side(307, 2), &side(307, 20));
    assert_eq!((e.causes.len(), e.causes[0].function.as_deref()), (1, Some("main.(*Stats).Record")), "{e:?}");
    says(&e, "waits at main.(*Stats).Record cost more");
    says(&e, "1.00 times as many waits, each 10 times as long: the lock is held longer");
    let e = explain(&side(307, 2), &side(1213, 2));
    assert_eq!(e.causes[0].function.as_deref(), Some("main.(*Stats).Record"), "{e:?}");
    says(&e, "each 1.00 times as long: waits are more frequent");
    assert!(explain(&side(307, 2), &side(307, 2)).causes.is_empty());
}

#[test]
fn candidate_is_named_if_there_is_no_cause() {
    let small = |n: i64| {
        let names: Vec<String> = (0..8).map(|i| format!("main.main;main.f{i}")).collect();
        let mut all: Vec<(String, i64)> = names.into_iter().map(|name| (name, 40)).collect();
        all.push(("main.main;main.slow".to_owned(), n));
        cpu(&all)
    };
    let e = explain(&[small(30)], &[small(62)]);
    assert_eq!(e.verdict, Verdict::Inconclusive, "{e:?}");
    let candidate = e.candidate.as_ref().unwrap();
    assert_eq!(candidate.cause.function.as_deref(), Some("main.slow"));
    assert!(candidate.cause.score < e.noise.need && candidate.runs.is_some_and(|runs| runs >= 3), "{candidate:?}");
    says(&e, "Best candidate: main.slow");
    assert!(explain(&[small(30)], &[small(30)]).candidate.is_none());
}

#[test]
fn the_amount_of_work_is_unknown_if_no_frames_agree() {
    let side = |counts: &[i64]| {
        let all = counts.iter().zip(0..).map(|(n, i)| (format!("main.main;main.f{i}"), *n)).collect();
        cpu(&all)
    };
    let e = explain(&[side(&[9000, 9000, 9000, 9000])], &[side(&[3000, 27_000, 14_000, 50_000])]);
    assert_eq!((e.scale.rule, e.scale.factor), (ScaleRule::Unknown, 1.0), "{e:?}");
    says(&e, "The amount of work is unknown");
}

#[test]
fn the_number_of_operations_is_read_from_benchmark_output() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ops-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let base = write("base.txt", "BenchmarkSplit-8   1000   56 ns/op\nBenchmarkSplit-8   3000   55 ns/op\n");
    let new = write("new.txt", "BenchmarkSplit-16   6000   56 ns/op\n");
    let other = write("other.txt", "BenchmarkJoin-8   6000   56 ns/op\n");
    let several = write("several.txt", "BenchmarkSplit-8 6000 5 ns/op\nBenchmarkJoin-8 6000 5 ns/op\n");
    let both = write("both.txt", "BenchmarkSplit-8 2000 5 ns/op\nBenchmarkJoin-8 6000 5 ns/op\n");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let pair = ["base", "new"].map(|side| corpus.join(format!("go-heap-ops.{side}.pb.gz")).display().to_string());
    let run = |from: [&str; 2]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let out = command.args(["explain", &pair[0], &pair[1], "--ops-from", from[0], from[1]]).output().unwrap();
        (out.status.code(), [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap()))
    };
    let (code, [text, _]) = run([&base, &new]);
    assert!(code == Some(0) && text.contains("3.00 times as many operations, as given"), "{text}");
    for (from, message) in [
        ([&base, &other], "no benchmark in common"),
        ([&both, &several], "grew by different factors, 1.00 to 3.00"),
        ([&pair[0], &new], "base.pb.gz: "),
    ] {
        let (code, [_, error]) = run([from[0], from[1]]);
        assert!(code == Some(2) && error.contains(message), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// If the number of operations is given, differences in machine speed between runs are noise.
#[test]
fn run_duration_is_noise_if_operations_are_given() {
    let run = |(speed, find): (f64, f64)| {
        let cost = |i: i64| (5000 + 10 * i) as f64 * speed * if i == 0 { find } else { 1.0 };
        cpu(&(0..30).map(|i| (format!("main.main;shop/work.F{i}"), cost(i) as i64)).collect())
    };
    let between = |speeds: &[f64], new: &[f64], find: f64| {
        let runs = |side_speeds: &[f64], find| side_speeds.iter().map(|&speed| run((speed, find))).collect::<Vec<_>>();
        let options = ExplainOptions::default().with_ops(1000.0, 1000.0);
        let diff = Diff::new(&runs(speeds, 1.0), &runs(new, find)).unwrap();
        pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap()
    };
    let causes = |e: &Explanation| e.causes.iter().filter_map(|c| c.function.clone()).collect::<Vec<_>>();
    let (base, new) = ([1.0, 1.1, 0.95], [1.12, 1.02, 1.2]);
    let equal = between(&base, &new, 1.0);
    assert_eq!((equal.verdict, causes(&equal)), (Verdict::None, vec![]), "{}", words(&equal));
    assert_eq!(causes(&between(&base, &new, 2.0)), ["shop/work.F0"]);
    // A large and plausible change is inconclusive, although a change of a single function would have been detected.
    let speeds = [0.85, 1.15, 0.9, 1.1];
    let slower = |times: f64| between(&speeds, &speeds.map(|speed| times * speed), 1.0);
    let unsure = slower(1.26);
    assert!(unsure.noise.noticed < 1.0 && unsure.account.p.is_some_and(|p| p > 0.05), "{unsure:?}");
    assert_eq!((unsure.verdict, causes(&unsure)), (Verdict::Inconclusive, vec![]), "{}", words(&unsure));
    // The text must not call a change of a quarter of a well-sampled total chance.
    says(&unsure, "The difference has no known cause; runs of one side differ as much.");
    assert_eq!(causes(&slower(1.4)), ["main.main"]);
}

/// With two runs per side that are far apart, a fourfold increase may be chance. It must not be reported as no change.
#[test]
fn a_vast_change_without_a_cause_is_inconclusive() {
    let run = |times: f64| {
        let stacks = [("main.main;main.work", 20_000.0), ("main.main;main.other", 20.0)];
        cpu(&stacks.iter().map(|(stack, n)| ((*stack).to_owned(), (n * times) as i64)).collect())
    };
    let e = explain(&[run(0.6), run(1.4)], &[run(2.0), run(6.0)]);
    assert!(e.account.p.is_some_and(|p| p > 0.1), "{e:?}");
    assert_eq!((e.verdict, e.causes.len()), (Verdict::Inconclusive, 0), "{}", words(&e));
}

/// A small change below a changed function is a part of it, so that the sentence has the amount of the table.
#[test]
fn nested_causes_are_parts_of_the_outer_cause() {
    let side = |work: i64, check: i64| {
        let parse = |callee: &'static str| ["main.main;main.load;main.parse", callee].concat();
        let work = ["", ";main.split", ";main.trim", ";main.fold"].map(|callee| (parse(callee), work));
        let all: Vec<(String, i64)> = work.into_iter().chain([(parse(";main.check"), check)]).collect();
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side(4000, 0)], &[side(1000, 900)]);
    assert_eq!(e.causes.len(), 1, "{}", words(&e));
    says(&e, "main.main spends less in main.load (called less, or faster): -111s");
    says(&e, "including main.parse itself -30s, main.fold -30s, main.split -30s");
}

/// In a recursion, a part has the change of all stacks below its outermost call, and not only of those in which the
/// innermost call is this one. Parts do not overlap.
#[test]
fn nested_parts_in_a_recursion_have_the_changes_of_the_table() {
    let side = |leaf: i64, close: i64, check: i64, own: i64| {
        let below = |callees: &str, n: i64| (["main.main;main.load;lib.Parse", callees].concat(), n);
        let stacks = [
            below(";lib.value;lib.list;lib.gen;lib.value;lib.list;lib.gen;lib.value;lib.leaf", leaf),
            below(";lib.value;lib.list;lib.gen;lib.value;lib.list;lib.close", close),
            below(";lib.check", check),
            below("", own),
        ];
        cpu(&(0..6).map(|i| (format!("main.main;main.f{i}"), 900)).chain(stacks).collect())
    };
    let e = explain(&[side(6000, 1500, 300, 300)], &[side(600, 150, 5, 30)]);
    says(&e, "including lib.gen -67.50s");
}

/// In a rewritten library, only the own cost of a function and its new callees differ by name. The sentence about the
/// function still states its whole change.
#[test]
fn completed_causes_have_the_change_of_the_whole_function() {
    let side = |names: &str, first: i64, own: i64| {
        let stack = |callee: usize| (format!("main.main;main.load;lib.Read;lib.{names}{callee}"), first);
        let own = ("main.main;main.load;lib.Read".to_owned(), own);
        let all: Vec<(String, i64)> = (0..8).map(stack).chain([own]).collect();
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side("old", 6000, 9000)], &[side("new", 4000, 400)]);
    let read = |function: &str| e.causes.iter().find(|cause| cause.function.as_deref() == Some(function));
    let cause = read("lib.Read").unwrap_or_else(|| panic!("{}", words(&e)));
    // 8 x 20 s + 86 s.
    assert!((cause.delta + 24.6e10).abs() < 1e9, "{}", words(&e));
}

/// A function between a caller and a callee that the base calls directly. The callee did not move to another place, and
/// the wrapper is charged with its other cost only.
#[test]
fn wrappers_are_charged_with_their_own_cost() {
    let base = [("main.main;main.serve;re.Match;re.step", 6000), ("main.main;main.serve;re.Match", 1000)];
    let new = [
        ("main.main;main.serve;re.Quick;re.Match;re.step", 6100),
        ("main.main;main.serve;re.Quick;re.Match", 1000),
        ("main.main;main.serve;re.Quick;re.Compile;re.parse", 9000),
    ];
    let e = between(&base, &new);
    assert_eq!(e.causes.len(), 1, "{}", words(&e));
    assert!((e.causes[0].delta - 9e10).abs() < 2e9, "{}", words(&e));
    // Two wrappers in a row, without cost of their own.
    let chain =
        [("main.main;main.serve;a.Outer;b.Inner;re.Match;re.step", 6000), ("main.main;main.serve;re.Match", 1000)];
    let e = between(&base, &chain);
    assert!(e.causes.is_empty(), "{}", words(&e));
    says(&e, "Moved: main.serve now calls re.Match through a.Outer");
    // Another wrapper took the place of the first.
    let with_wrapper = |wrapper: &str| {
        let stack = format!("main.main;main.serve;{wrapper};re.Match;re.step");
        cpu(&with(&[(&stack, 6000)]))
    };
    let e = explain(&[with_wrapper("a.Old")], &[with_wrapper("b.New")]);
    assert!(e.causes.is_empty(), "{}", words(&e));
    // A third of the work, with few events in the wrappers: 50 and 10 may be the same cost. The order of the sides does
    // not matter.
    let side = |wrapper: &str, events: i64, others: i64| {
        let others = (0..6).map(|i| (format!("main.main;main.f{i}"), others));
        cpu(&others.chain([(format!("main.main;main.serve;{wrapper};re.Match"), events)]).collect())
    };
    let sides = [[side("a.Old", 50, 900)], [side("b.New", 10, 300)]];
    for (base, new) in [(0, 1), (1, 0)] {
        let e = explain(&sides[base], &sides[new]);
        assert!(e.causes.is_empty(), "{}", words(&e));
    }
}

/// A compiler inlines a callee into one of its callers, whose own cost grows by what the callee lost there. If the caller
/// with its callees changed as well, that change is the cause.
#[test]
fn completed_own_costs_include_the_callees_that_they_absorbed() {
    let side = |stacks: &[(&str, i64)]| {
        let others = [("main.main;main.a", 900), ("main.main;main.b", 850), ("main.main;main.text;main.write", 800)];
        cpu(&others.iter().chain(stacks).map(|(stack, n)| ((*stack).to_owned(), *n)).collect())
    };
    let of_tag = |own: i64, write: i64| side(&[("main.main;main.tag", own), ("main.main;main.tag;main.write", write)]);
    let e = explain(&[of_tag(1, 500)], &[of_tag(900, 20)]);
    let changes: Vec<_> = e.causes.iter().map(|cause| (cause.function.as_deref(), cause.kind)).collect();
    assert_eq!(changes, [(Some("main.tag"), CauseKind::Calls)], "{}", words(&e));
    assert!((e.causes[0].delta - 4.19e9).abs() < 1e7, "{}", words(&e));
    let e = explain(&[of_tag(2, 30)], &[of_tag(34, 12)]);
    assert!(e.causes.is_empty() && e.candidate.is_none(), "{}", words(&e));
    says(&e, "Moved: the cost of main.write is now in main.tag (inlined): together 320ms -> 460ms");
}

/// A new callee took a part of its caller's own cost, and calls something that is new. The caller's net change is the
/// cause, although its own cost changed in the opposite direction.
#[test]
fn completed_own_costs_may_change_in_the_opposite_direction() {
    let new = [("main.main;main.a", 5880), ("main.main;main.a;main.b", 3120), ("main.main;main.a;main.b;main.z", 2880)];
    let e = between(&[("main.main;main.a", 9000)], &new);
    says(&e, "main.a costs more (called more, or slower): +28.80s");
    says(&e, "including main.b +60s, main.a itself -31.20s");
}

/// Two methods moved to another type. The second one is rare, so its cost proves nothing.
#[test]
fn renamed_methods_prove_that_others_of_their_type_moved() {
    let side = |of: &str, rare: i64| {
        let prepare = format!("main.main;a.({of}).prepare");
        cpu(&with(&[(&format!("{prepare};a.place"), 3000), (&format!("{prepare};a.({of}).merge"), rare)]))
    };
    let e = explain(&[side("*File", 4)], &[side("*Sheet", 600)]);
    says(&e, "Moved: a.(*File).prepare is now called a.(*Sheet).prepare");
    assert!(!words(&e).contains("now calls"), "{}", words(&e));
    says(&e, "a.(*Sheet).prepare spends more in a.(*Sheet).merge");
}

/// Methods of two types with two names may call the same function. They are not one method.
#[test]
fn methods_of_two_types_with_two_names_are_not_renamed() {
    let side = |method: &str, n: i64| cpu(&with(&[(&format!("main.main;a.{method};a.copy"), n)]));
    let e = explain(&[side("(*Iter).Value", 3000)], &[side("Value.MapIndex", 3300)]);
    assert!(!words(&e).contains("is now called"), "{}", words(&e));
    let e = explain(&[side("(*Iter).Value", 3000)], &[side("(*Iter).Map", 3300)]);
    says(&e, "a.(*Iter).Value is now called a.(*Iter).Map");
}

/// A function became two, and one of these calls a third. The sum that is stated includes all of them.
#[test]
fn outlined_parts_are_stated_with_all_that_is_new_below_the_caller() {
    let others = [("main.main;main.a", 200), ("main.main;main.b", 150), ("main.main;main.c", 170)];
    let base = [("main.main;main.fdct", 50)];
    let new = [
        ("main.main;main.fdct", 1),
        ("main.main;main.fdct;main.rows", 24),
        ("main.main;main.fdct;main.columns", 17),
        ("main.main;main.fdct;main.columns;main.box", 7),
    ];
    let side = |stacks: &[(&str, i64)]| {
        cpu(&others.iter().chain(stacks).map(|(stack, n)| ((*stack).to_owned(), *n)).collect())
    };
    let e = explain(&[side(&base)], &[side(&new)]);
    says(&e, "main.rows (outlined)");
    says(&e, "together 500ms -> 490ms");
}

/// Runs of an interpreter differ in a few functions by more than in the others, so one pair needs stronger evidence.
#[test]
fn uneven_pair_of_an_interpreter_needs_stronger_evidence() {
    let e = |root: &str, n: i64| {
        let side = |n: i64| {
            let others = (0..30).map(|i| (format!("{root};f{i}"), 2000 + 10 * i));
            cpu(&others.chain([(format!("{root};load"), n)]).collect())
        };
        explain(&[side(1000)], &[side(n)])
    };
    // The scores of 1,380 to 1,440 are between the threshold and 1.5 times the threshold.
    let (compiled, interpreted) = (e("main", 1440), e("<module>", 1440));
    assert_eq!(compiled.causes.len(), 1, "{}", words(&compiled));
    assert_eq!(interpreted.causes.len(), 0, "{}", words(&interpreted));
    says(&interpreted, "Best candidate: load itself costs more");
    assert_eq!(e("<module>", 1470).causes.len(), 1);
}

/// A function's own cost includes the runtime functions that it calls. The plain table shows it without them.
#[test]
fn own_cost_with_callees_in_the_runtime_says_so() {
    let side =
        |own: i64, copied: i64| [("main.main;main.handle", own), ("main.main;main.handle;runtime.memmove", copied)];
    let e = between(&side(2000, 1000), &side(8000, 4000));
    let cause = &e.causes[0];
    assert_eq!((e.causes.len(), cause.kind), (1, CauseKind::Own), "{e:?}");
    let parts: Vec<_> = cause.parts.iter().map(|part| (part.function.as_deref().unwrap(), part.delta / 1e9)).collect();
    assert_eq!(parts, [("main.handle", 60.0), ("runtime.memmove", 30.0)]);
    says(&e, "main.handle itself, with runtime.memmove, costs more (called more by main.main, or slower): +90s");
    says(&e, "including main.handle itself +60s, runtime.memmove +30s");
    // Without a change in the runtime, only the function is named.
    let e = between(&side(2000, 1000), &side(8000, 1000));
    says(&e, "main.handle itself costs more: +60s");
    assert!(e.causes[0].parts.is_empty(), "{e:?}");
}

/// A function's own cost that has a nested cause becomes the cost of the function. Callees that did not change belong to its
/// ratio, too.
#[test]
fn own_cost_with_a_nested_cause_has_the_ratio_of_the_whole_function() {
    let side = |own: i64, grown: i64| {
        let handle = "main.main;main.handle";
        [(handle.to_owned(), own), (format!("{handle};main.key"), 1400), (format!("{handle};main.grow"), grown)]
    };
    let [base, new] = [side(500, 100), side(8000, 1600)];
    let refs = |side: &[(String, i64); 3]| side.clone().map(|(stack, n)| (&*stack.leak(), n));
    let e = between(&refs(&base), &refs(&new));
    let cause = &e.causes[0];
    assert_eq!(
        (e.causes.len(), cause.kind, cause.function.as_deref()),
        (1, CauseKind::Calls, Some("main.handle")),
        "{e:?}"
    );
    assert_eq!((cause.delta / 1e9, cause.factor), (90.0, Some(5.5)), "{e:?}");
}

/// Two sample types of the same runs may show different amounts of work. Then neither is stated as certain.
#[test]
fn amounts_of_work_that_contradict_each_other_are_not_certain() {
    let time = |n: i64| cpu(&with(&[("main.main;main.rows", n)]));
    let allocated = |work: i64| {
        let names: Vec<String> = (0..9).map(|i| format!("main.main;main.f{i}")).collect();
        let all: Vec<_> =
            names.iter().zip(1..).map(|(stack, i)| (stack.as_str(), work * (500 + 40 * i), 100)).collect();
        heap("alloc_space", &all)
    };
    let explained = |work: i64| {
        let diff = Diff::new(&[time(3000)], &[time(9000)]).unwrap();
        let heaps = Diff::new(&[allocated(1)], &[allocated(work)]).unwrap();
        let options = ExplainOptions::default().with_heap(heaps);
        pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).unwrap()
    };
    let e = explained(2);
    assert_eq!(e.also[0].scale.rule, ScaleRule::Agree, "{e:?}");
    says(&e, "The amount of work is not certain: equal work on both sides is shown here");
    says(&e, "but alloc_space shows 2.00 times as much");
    says(&e, "2.00 times the work would explain");
    assert!(!words(&explained(1)).contains("not certain"));
}

/// Functions whose memory disappeared have most of the change. Functions that grew at the same time are causes of their own.
#[test]
fn memory_that_shrinks_hides_no_memory_that_grows() {
    let go = of_corpus("go-heap.base.pb.gz", "go-heap.new.pb.gz", "inuse_space");
    says(&go, "main.heap (heap.go:33) no longer holds memory in main.readChunk: -3.30MB");
    says(&go, "main.heap (heap.go:39) holds more memory in main.growSessions: +1022.49kB (+29%), x9.72");
    says(&go, "main.heap (heap.go:41) now holds memory in main.indexDocument: +165.95kB");
    let cpp = of_corpus("cpp-heap.base.pb.gz", "cpp-heap.new.pb.gz", "alloc_space");
    says(
        &cpp,
        "parcels::Plan (parcels.cc:75) allocates more in parcels::Extend, without parcels::Tour::Tour: +13.96MB",
    );
    let node = of_corpus("node-heap.base.pb.gz", "node-heap.new.pb.gz", "inuse_space");
    says(&node, "buildMenu (shop.js:24) now holds memory: +999.51kB");
    says(&node, "heap (profile.js:28) now holds memory in fillCache: +789.91kB");
}

/// The C library's functions that start a program or thread are neither causes nor callers to name.
#[test]
fn causes_below_the_start_of_a_program_are_named_without_it() {
    let e = of_corpus("inputs/calls.base.callgrind.gz", "inputs/calls.new.callgrind.gz", "Ir");
    let cause = &e.causes[0];
    assert_eq!((cause.caller.as_deref(), cause.function.as_deref()), (None, Some("main")), "{e:?}");
    says(
        &e,
        "main (calls.c:38) costs more: +24277 (+16%), x2.04. Called as often (once), each 2.04 times as expensive",
    );
    let side = |n: i64| {
        ["start_thread", "clone", "__libc_start_main@@GLIBC_2.34"]
            .map(|start| [("work", n), ("idle", 900)].map(|(f, n)| (format!("{start};{f}"), n)))
            .concat()
    };
    let (base, new) = (side(300), side(3000));
    let [base, new] = [&base, &new].map(|side| side.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>());
    says(&between(&base, &new), "1. work itself costs more: +81s");
}

/// Goroutines of a text profile begin with `runtime.goexit`, which has no line.
#[test]
fn goroutines_of_text_profiles_have_lines_and_are_counted() {
    let [leaking, fixed] = ["leaking", "fixed"].map(|name| format!("goroutines/{name}.goroutine.debug1.txt.gz"));
    let e = of_corpus(&leaking, &fixed, "goroutine");
    says(&e, "main.first[...] (main.go:24) no longer holds goroutines in main.(*queue[...]).take: -3");
    says(&e, "main.deep (main.go:42) holds fewer goroutines: -2");
}

/// Without a number of samples, no change is certain. The answer lists every change that matters.
#[test]
fn large_changes_are_listed_if_the_number_of_samples_is_unknown() {
    let side = |unique: i64, sub: i64, added: i64| {
        let rows = [
            ("handle;parse", 40),
            ("handle;unique", unique),
            ("handle;fmt", 30),
            ("handle;sub", sub),
            ("handle;unique;add", added),
        ];
        let rows: Vec<(Vec<&str>, Vec<i64>)> = rows
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(stack, n)| {
                let stack = ["<module>", "main"].into_iter().chain(stack.split(';')).collect();
                (stack, vec![n * 100_003])
            })
            .collect();
        profile(&stacks(&[("time", "nanoseconds")], &rows))
    };
    let e = explain(&[side(8, 20, 4)], &[side(56, 86, 0)]);
    let text = words(&e);
    assert!(
        text.contains("Largest change: sub itself costs more (called more by handle, or slower): +6.60ms"),
        "{text}"
    );
    assert!(text.contains("Next: unique itself costs more (called more by handle, or slower): +4.40ms"), "{text}");
    assert_eq!((e.causes.len(), e.suspects.len()), (0, 1), "{text}");
}

/// The sentence about a wrapper names the function behind it. The line below names the callees that cost more.
#[test]
fn wrappers_list_their_other_callees() {
    let others = [("main.main;main.b", 5000), ("main.main;main.c", 4000), ("main.main;main.d", 3000)];
    let base = [&others[..], &[("main.main;main.a;re.Match", 3000)]].concat();
    let wrapped = ["re.Match", "re.Compile"].map(|callee| format!("main.main;main.a;re.MatchString;{callee}"));
    let new = [&others[..], &[(wrapped[0].as_str(), 3000), (wrapped[1].as_str(), 4000)]].concat();
    let e = between(&base, &new);
    says(&e, "main.a now calls re.Match through re.MatchString; cost of re.MatchString besides re.Match: +40s");
    says(&e, "including re.Compile +40s");
}

/// Without samples, a function's own cost that grew from nearly nothing is not the cost of the function with its callees.
#[test]
fn own_cost_that_came_is_not_the_cost_of_the_function() {
    let e = of_corpus("inputs/callers.base.prof", "inputs/callers.new.prof", "time");
    says(&e, "Largest change: <built-in method builtins.sum> itself costs more: +47.44ms (+188%), x107.");
    says(&e, "Next: <genexpr> (programs.py:26) itself costs less, called by <built-in method builtins.sum>: -20.67ms");
}
