//! Tests of name matching across builds: the views equal those of profiles whose names were made equal by hand.

use std::sync::Arc;

use pprofdiff::check::{CheckPolicy, Outcome, Rules};
use pprofdiff::{Diff, Filters, Granularity, LoadOptions, Matching, Profile, Query, Sort, Status};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_report::Table;

use crate::synthetic::{profile, stacks};

/// The names of functions in two builds of a Rust, a Go and a JavaScript program, and the name that both sides share.
const NAMES: [[&str; 3]; 5] = [
    ["orders::price::h0123456789abcdef", "orders::price::hfedcba9876543210", "orders::price"],
    ["main.run.func3", "main.run.func4.1", "main.run.func#"],
    ["parse.part.0", "parse", "parse"],
    ["render:/app/page.js:12:7", "render:/app/page.js:14:7", "render:/app/page.js"],
    ["main.main", "main.main", "main.main"],
];

/// Builds a profile with one column of the names: those of a build, or the shared names.
fn side(column: usize) -> Arc<Profile> {
    let name = |i: usize| NAMES[i][column];
    let all = [
        (vec![name(4), name(0)], vec![10]),
        (vec![name(4), name(0), name(1)], vec![20]),
        (vec![name(4), name(2), name(3), name(2)], vec![30]),
    ];
    profile(&stacks(&[("samples", "count")], &all))
}

#[test]
fn matched_views_equal_those_of_equal_names() {
    let canonical = Query::default().with_matching(Matching::Canonical);
    let matched = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let by_hand = Diff::new(&[side(2)], &[side(2)]).unwrap();
    for granularity in [Granularity::Functions, Granularity::FileFunctions, Granularity::Lines] {
        let view = matched.measure(&canonical.clone().with_granularity(granularity)).unwrap();
        let expected = by_hand.measure(&Query::default().with_granularity(granularity)).unwrap();
        let tables = |m: &pprofdiff::Measure| {
            [
                Table::top(&m.top(Sort::Flat), usize::MAX).columns,
                Table::tree(&m.edges(None, Sort::Cum).unwrap()).columns,
                Table::stacks(&m.stacks(true), usize::MAX).columns,
            ]
        };
        assert_eq!(tables(&view), tables(&expected), "{granularity:?}");
    }
    let exact = matched.measure(&Query::default()).unwrap().top(Sort::Flat);
    assert_eq!(exact.rows.iter().filter(|r| r.status == Status::Same).count(), 1);
    // Names are also matched in a single profile.
    let one = Diff::of_profile(&side(0)).unwrap().measure(&canonical).unwrap().top(Sort::Flat);
    assert!(one.rows.iter().any(|r| one.frames.name(r.frame) == "orders::price"));
}

#[test]
fn matched_names_are_reported_and_written_files_keep_their_names() {
    let diff = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let view = diff.measure(&Query::default().with_matching(Matching::Canonical)).unwrap();
    let [warning] = &view.summary().warnings[..] else { panic!("{:?}", view.summary().warnings) };
    assert!(
        warning.starts_with("7 names were matched without compiler-generated numbers, such as orders::price::h"),
        "{warning}"
    );
    assert!(warning.ends_with(" as orders::price"), "{warning}");
    let by_file = Query::default().with_granularity(Granularity::Files);
    let rows = |query: &Query| Table::top(&diff.measure(query).unwrap().top(Sort::Flat), usize::MAX).columns;
    assert_eq!(rows(&by_file.clone().with_matching(Matching::Canonical)), rows(&by_file));
    let equal = Diff::new(&[side(2)], &[side(2)]).unwrap();
    assert!(equal.measure(&Query::default().with_matching(Matching::Canonical)).unwrap().summary().warnings.is_empty());
}

/// Builds with a renamed function and a function that the new build inlined: the base, the new side, and the base with
/// both changes applied by hand.
fn builds() -> [Arc<Profile>; 3] {
    let build = |parse: &'static str, helper: bool, costs: [i64; 5]| {
        let called = |below: &[&'static str]| {
            let stack = ["main", "work"].into_iter().chain(helper.then_some("helper"));
            stack.chain(below.iter().copied()).collect::<Vec<_>>()
        };
        let all = [
            (vec!["main", "load", parse, "lex"], vec![costs[0]]),
            (vec!["main", "load", parse], vec![costs[1]]),
            (called(&["hash"]), vec![costs[2]]),
            (called(&[]), vec![costs[3]]),
            (vec!["main", "work"], vec![costs[4]]),
            // Too few samples to be matched.
            (vec!["main", if helper { "before" } else { "after" }], vec![2]),
        ];
        profile(&stacks(&[("samples", "count")], &all))
    };
    [
        build("parse", true, [300, 100, 200, 50, 100]),
        build("scan", false, [305, 98, 204, 49, 99]),
        // The part of `helper` that was inlined into `work` appears as `work`.
        profile(&stacks(
            &[("samples", "count")],
            &[
                (vec!["main", "load", "scan", "lex"], vec![300]),
                (vec!["main", "load", "scan"], vec![100]),
                (vec!["main", "work", "hash"], vec![200]),
                (vec!["main", "work"], vec![150]),
                (vec!["main", "before"], vec![2]),
            ],
        )),
    ]
}

fn diff(base: &Arc<Profile>, new: &Arc<Profile>) -> Diff {
    Diff::new(std::slice::from_ref(base), std::slice::from_ref(new)).unwrap()
}

#[test]
fn views_follow_renamed_and_inlined_functions() {
    let [base, new, by_hand] = builds();
    let moved = Query::default().with_matching(Matching::Moved);
    let tables = |m: &pprofdiff::Measure| {
        [
            Table::top(&m.top(Sort::Flat), usize::MAX).columns,
            Table::tree(&m.edges(None, Sort::Cum).unwrap()).columns,
            Table::stacks(&m.stacks(true), usize::MAX).columns,
        ]
    };
    let view = pprofdiff_explain::measure(&diff(&base, &new), &moved).unwrap();
    let expected = diff(&by_hand, &new).measure(&Query::default()).unwrap();
    assert_eq!(tables(&view), tables(&expected));
    assert_eq!(view.summary().total, expected.summary().total);
    let warnings = [
        "matched under other names: parse of the base is scan",
        "matched inlined on one side: helper of the base is part of work",
    ];
    assert_eq!(view.summary().warnings, warnings);
    assert_eq!(view.summary().query.matching.name(), "moved");
    // With the sides swapped, the function was outlined.
    let view = pprofdiff_explain::measure(&diff(&new, &base), &moved).unwrap();
    assert_eq!(view.summary().warnings[1], "matched inlined on one side: helper of the new side is part of work");
    assert!(view.top(Sort::Flat).rows.iter().all(|r| !["helper", "scan"].contains(&&*view.frames().name(r.frame))));
    // Filters match the original names, and do not change the matching.
    let focused = moved.clone().with_filters(Filters::default().with("focus", "^parse$|^scan$").unwrap());
    let rows = pprofdiff_explain::measure(&diff(&new, &base), &focused).unwrap().top(Sort::Flat);
    let names: Vec<String> = rows.rows.iter().map(|r| rows.frames.name(r.frame)).collect();
    assert_eq!(names, ["lex", "parse", "load", "main"]);
    // Nothing is matched between a build and itself, or in a single profile.
    let same = pprofdiff_explain::measure(&diff(&new, &new), &moved).unwrap();
    assert!(same.summary().warnings.is_empty());
    assert!(Diff::of_profile(&new).unwrap().measure(&moved).unwrap().summary().warnings.is_empty());
}

/// A part of a function that calls nothing became a separate function. Another function is really new.
#[test]
fn an_outlined_part_is_merged_with_its_caller() {
    let count = [("samples", "count")];
    let base = [(vec!["main", "parse"], vec![400]), (vec!["main", "work"], vec![300])];
    let new = [
        (vec!["main", "parse"], vec![110]),
        (vec!["main", "parse", "word"], vec![290]),
        (vec!["main", "work"], vec![290]),
        (vec!["main", "work", "extra"], vec![100]),
    ];
    let diff = Diff::new(&[profile(&stacks(&count, &base))], &[profile(&stacks(&count, &new))]).unwrap();
    let top =
        pprofdiff_explain::measure(&diff, &Query::default().with_matching(Matching::Moved)).unwrap().top(Sort::Flat);
    let rows: Vec<_> = top.rows.iter().map(|r| (top.frames.name(r.frame), r.flat.base, r.flat.new)).collect();
    let row = |name: &str, base, new| (name.to_owned(), base, new);
    assert_eq!(rows, [row("extra", 0, 100), row("work", 300, 290), row("main", 0, 0), row("parse", 400, 400)]);
}

#[test]
fn a_stack_of_only_inlined_functions_is_kept() {
    let count = [("samples", "count")];
    let base = [
        (vec!["main", "work", "helper", "hash"], vec![200]),
        (vec!["helper"], vec![40]),
        (vec!["main", "work"], vec![100]),
    ];
    let new = [(vec!["main", "work", "hash"], vec![200]), (vec!["main", "work"], vec![100])];
    let diff = Diff::new(&[profile(&stacks(&count, &base))], &[profile(&stacks(&count, &new))]).unwrap();
    let top =
        pprofdiff_explain::measure(&diff, &Query::default().with_matching(Matching::Moved)).unwrap().top(Sort::Flat);
    let rows: Vec<_> = top.rows.iter().map(|r| (top.frames.name(r.frame), r.flat.base, r.flat.new)).collect();
    let row = |name: &str, base, new| (name.to_owned(), base, new);
    assert_eq!(rows, [row("helper", 40, 0), row("hash", 200, 200), row("main", 0, 0), row("work", 100, 100)]);
}

#[test]
fn written_profiles_and_listings_refuse_name_matching() {
    let diff = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let canonical = Query::default().with_matching(Matching::Canonical);
    let error = diff.to_profile(&canonical).unwrap_err().to_string();
    assert!(error.contains("a written profile keeps the original names"), "{error}");
    let error = diff.list(&canonical, "price", &()).unwrap_err().to_string();
    assert!(error.contains("list pairs functions by their original names"), "{error}");
    let error = "fuzzy".parse::<Matching>().unwrap_err().to_string();
    assert!(error.contains("exact, stable, canonical or moved"), "{error}");
}

/// Folded stacks as two runs of equal builds write them, and the name that checks show.
const RUNS: [[&str; 3]; 8] = [
    [
        "a/Main$$Lambda$14/0x0000000800c03000.apply",
        "a/Main$$Lambda$31/0x00007f1c88c03a18.apply",
        "a/Main$$Lambda.apply",
    ],
    ["Shop$$Lambda$6.0x00007feba8001440.run", "Shop$$Lambda$6.0x00007f1111111140.run", "Shop$$Lambda.run"],
    ["r/GeneratedMethodAccessor12.invoke", "r/GeneratedMethodAccessor37.invoke", "r/GeneratedMethodAccessor.invoke"],
    ["s/S$$EnhancerBySpringCGLIB$$1a2b.f", "s/S$$EnhancerBySpringCGLIB$$9f8e.f", "s/S$$EnhancerBySpringCGLIB.f"],
    ["_RNvCs8K9WJNlS7Dz_4shop3tax", "_RNvCsb3Fw6Ra2Kc1_4shop3tax", "shop::tax"],
    ["b::f::h0123456789abcdef", "b::f::hfedcba9876543210", "b::f"],
    [
        "{closure:/srv/releases/20240101120000/f.php:12}",
        "{closure:/srv/releases/20240202120000/f.php:12}",
        "{closure:/srv/releases/f.php:12}",
    ],
    ["<function f at 0x7f3a2c0d1e50>", "<function f at 0x7f0000000000>", "<function f>"],
];

/// Reads a run from text.
fn run(column: usize) -> Arc<Profile> {
    let text: String = RUNS.iter().map(|names| format!("main;{};leaf 500\n", names[column])).collect();
    Arc::new(pprofdiff::from_bytes("in", text.as_bytes(), &LoadOptions::default()).unwrap())
}

#[test]
fn comparisons_of_runs_ignore_numbers_that_differ_between_runs() {
    let diff = diff(&run(0), &run(1));
    let check = |matching| {
        let mut rules = Rules::default();
        rules.policy = CheckPolicy::default().with_strict(true);
        rules.fail_on("cum:any>+5%").unwrap();
        pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default().with_matching(matching))
            .unwrap()
    };
    for matching in [Matching::Auto, Matching::Stable, Matching::Canonical] {
        assert_eq!(check(matching).verdict, Outcome::Pass, "{matching:?}");
    }
    assert_eq!(check(Matching::Exact).verdict, Outcome::Fail);
    // A table of two profiles has pprof's names, except for mangled names, which pprof demangles.
    let changed = |diff: &Diff| {
        let top = diff.measure(&Query::default()).unwrap().top(Sort::Cum);
        top.rows.iter().filter(|row| row.status != Status::Same).count()
    };
    assert_eq!(changed(&diff), 2 * (RUNS.len() - 1));
    let runs = Diff::new(&[run(0), run(1)], &[run(1), run(0)]).unwrap();
    assert_eq!(changed(&runs), 0);
    let top = runs.measure(&Query::default()).unwrap().top(Sort::Cum);
    for [.., shown] in RUNS {
        assert!(top.rows.iter().any(|row| top.frames.name(row.frame) == shown), "{shown}");
    }
    let explained = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
    assert!(explained.causes.is_empty() && explained.moved.is_empty(), "{explained:?}");
}

#[test]
fn frames_of_the_profiler_are_not_causes() {
    let side = |wrapped: bool| {
        let root = if wrapped { vec!["runtime.goexit"] } else { vec![] };
        let all: Vec<_> = [("fill", 400), ("sort", 300), ("write", 200), ("read", 100)]
            .into_iter()
            .map(|(f, value)| ([&root[..], &["runtime.main", "main.main", f]].concat(), vec![value]))
            .collect();
        profile(&stacks(&[("samples", "count")], &all))
    };
    let explained = pprofdiff_explain::explain(
        &diff(&side(true), &side(false)),
        &Query::default(),
        &[],
        &ExplainOptions::default(),
    )
    .unwrap();
    assert!(explained.causes.is_empty(), "{explained:?}");
    let warnings = &explained.summary.warnings;
    assert!(warnings.iter().any(|w| w.contains("the base begin with runtime.goexit")), "{warnings:?}");
}
