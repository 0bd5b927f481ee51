//! Names that are matched across builds: views are those of profiles whose names were made equal by hand.

use std::sync::Arc;

use pprofdiff::{Diff, Granularity, Matching, Profile, Query, Sort, Status};
use pprofdiff_report::{Kind, Table};

use crate::explain::{profile, stacks};

/// A Rust program, a Go program, and one in JavaScript, as compilers of two builds name their functions.
const NAMES: [[&str; 3]; 5] = [
    ["orders::price::h0123456789abcdef", "orders::price::hfedcba9876543210", "orders::price"],
    ["main.run.func3", "main.run.func4.1", "main.run.func#"],
    ["parse.part.0", "parse", "parse"],
    ["render:/app/page.js:12:7", "render:/app/page.js:14:7", "render:/app/page.js"],
    ["main.main", "main.main", "main.main"],
];

/// A side's profile, by its names or by those that all sides have.
fn side(of: usize) -> Arc<Profile> {
    let name = |i: usize| NAMES[i][of];
    let all = [
        (vec![name(4), name(0)], vec![10]),
        (vec![name(4), name(0), name(1)], vec![20]),
        (vec![name(4), name(2), name(3), name(2)], vec![30]),
    ];
    profile(&stacks(&[("samples", "count")], &all))
}

#[test]
fn views_are_those_of_names_that_are_equal() {
    let canonical = Query::default().with_matching(Matching::Canonical);
    let matched = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let by_hand = Diff::new(&[side(2)], &[side(2)]).unwrap();
    for granularity in [Granularity::Functions, Granularity::FileFunctions, Granularity::Lines] {
        let view = matched.measure(&canonical.clone().with_granularity(granularity)).unwrap();
        let wanted = by_hand.measure(&Query::default().with_granularity(granularity)).unwrap();
        let tables = |m: &pprofdiff::Measure| {
            [
                Table::top(&m.top(Sort::Flat), usize::MAX).columns,
                Table::edges(&m.edges(None, Sort::Cum).unwrap(), Kind::Tree).columns,
                Table::stacks(&m.stacks(true), usize::MAX).columns,
            ]
        };
        assert_eq!(tables(&view), tables(&wanted), "{granularity:?}");
    }
    let exact = matched.measure(&Query::default()).unwrap().top(Sort::Flat);
    assert_eq!(exact.rows.iter().filter(|r| r.status == Status::Same).count(), 1);
    // Of one side alone, too.
    let one = Diff::of_profile(&side(0)).unwrap().measure(&canonical).unwrap().top(Sort::Flat);
    assert!(one.rows.iter().any(|r| one.frames.name(r.frame) == "orders::price"));
}

#[test]
fn what_was_matched_is_said_and_files_keep_their_names() {
    let diff = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let view = diff.measure(&Query::default().with_matching(Matching::Canonical)).unwrap();
    let [said] = &view.summary().warnings[..] else { panic!("{:?}", view.summary().warnings) };
    assert!(
        said.starts_with("7 names were matched without what a compiler numbers, such as orders::price::h"),
        "{said}"
    );
    assert!(said.ends_with(" as orders::price"), "{said}");
    let by_file = Query::default().with_granularity(Granularity::Files);
    let rows = |query: &Query| Table::top(&diff.measure(query).unwrap().top(Sort::Flat), usize::MAX).columns;
    assert_eq!(rows(&by_file.clone().with_matching(Matching::Canonical)), rows(&by_file));
    let equal = Diff::new(&[side(2)], &[side(2)]).unwrap();
    assert!(equal.measure(&Query::default().with_matching(Matching::Canonical)).unwrap().summary().warnings.is_empty());
}

#[test]
fn what_has_names_as_they_are_says_so() {
    let diff = Diff::new(&[side(0)], &[side(1)]).unwrap();
    let canonical = Query::default().with_matching(Matching::Canonical);
    let error = diff.to_profile(&canonical).unwrap_err().to_string();
    assert!(error.contains("a written profile has names as they are"), "{error}");
    let error = diff.list(&canonical, "price", &()).unwrap_err().to_string();
    assert!(error.contains("list pairs functions by their names"), "{error}");
    let error = "fuzzy".parse::<Matching>().unwrap_err().to_string();
    assert!(error.contains("exact or canonical"), "{error}");
}
