//! Tests of fleets: which of many pairs changed, and which causes they share. The programs are synthetic, so the true
//! changes are known.

use std::collections::BTreeSet;

use pprofdiff::{Diff, Error, Query};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_series::fleet::{FDR, Fleet, PairCauses, Ranking};

use crate::synthetic::{Program, profile, stacks};

const LIBRARY: &str = "log/v2.Encode";

/// Returns a service with its own functions that logs through the common library.
fn service(number: usize, logs: f64) -> Program {
    let program = Program::new(4 + number % 5);
    let encode = [&format!("svc{number}/api.Serve"), LIBRARY];
    program.with(&encode, logs)
}

/// Ranks the pairs of several services, each changed by `change`.
fn rank_services(services: usize, fdr: f64, change: impl Fn(usize, Program) -> Program) -> Ranking {
    let mut fleet = Fleet::default();
    for number in 0..services {
        let seed = 7919 * number as u64 + 1;
        let (base, new) = (service(number, 6.0), change(number, service(number, 6.0)));
        let sides = [base.sampled(4000.0, 1.0, seed), new.sampled(4000.0, 1.0, seed + 1)].map(|side| [side]);
        fleet.push(&format!("svc{number}"), explain_pair(&sides[0], &sides[1]));
    }
    fleet.ranking(fdr).unwrap()
}

fn explain_pair(
    base: &[std::sync::Arc<pprofdiff::Profile>],
    new: &[std::sync::Arc<pprofdiff::Profile>],
) -> pprofdiff::Result<PairCauses> {
    let diff = Diff::new(base, new)?;
    let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default())?;
    PairCauses::from_explanation(&diff, &e, |cause| format!("{:?}", cause.function), String::new(), || None)
}

#[test]
fn a_cause_shared_by_services_is_reported_once() {
    // The library costs three times as much in every fourth service. One service has its own change, and in one the
    // library became cheaper, which is a separate cause.
    let ranking = rank_services(40, FDR, |number, program| match number {
        _ if number % 4 == 0 => program.times_own(LIBRARY, 3.0),
        5 => program.times_own("shop/part1.Work2", 0.2),
        7 => program.times_own(LIBRARY, 0.1),
        _ => program,
    });
    let names: BTreeSet<&str> = ranking.pairs[..ranking.changed].iter().map(|pair| pair.pair.as_str()).collect();
    let expected: Vec<String> =
        (0..40).filter(|n| n % 4 == 0 || [5, 7].contains(n)).map(|n| format!("svc{n}")).collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect());
    assert_eq!(ranking.shared.len(), 1, "{:?}", ranking.shared);
    let shared = &ranking.shared[0];
    assert_eq!((shared.function.as_str(), shared.pairs, shared.named.len()), (LIBRARY, 10, 10));
    // The values of the shared cause are the sums over the pairs.
    let causes = ranking.pairs.iter().flat_map(|pair| &pair.causes);
    let of_library = || causes.clone().filter(|cause| cause.function.as_deref() == Some(LIBRARY) && cause.delta > 0.0);
    let sum: f64 = of_library().map(|cause| cause.delta).sum();
    assert!((shared.delta - sum).abs() < 1e-6 * sum && sum > 0.0, "{} of {sum}", shared.delta);
    let base: f64 = ranking.pairs.iter().map(|pair| pair.total_base as f64).sum();
    assert_eq!(base, ranking.summary.total.base as f64);
    assert!((shared.share - sum / base).abs() < 1e-9, "{}", shared.share);
    assert!((shared.base, shared.new) == (of_library().map(|c| c.base).sum(), of_library().map(|c| c.new).sum()));
    // The largest change comes first. Changes within chance are sorted by the change of the total, then by name.
    let size = |index: usize| ranking.pairs[index].causes.iter().map(|cause| cause.delta).sum::<f64>().abs();
    assert!((1..ranking.changed).all(|index| size(index) <= size(index - 1)));
    let rest = ranking.pairs[ranking.changed..].iter();
    let rest = rest.map(|pair| (std::cmp::Reverse(pair.total_delta.unsigned_abs()), &pair.pair));
    assert!(rest.is_sorted() && ranking.pairs[ranking.changed..].iter().all(|pair| pair.causes.is_empty()));
}

#[test]
fn no_pair_of_equal_builds_is_reported() {
    let ranking = rank_services(150, FDR, |_, program| program);
    assert_eq!((ranking.changed, ranking.shared.len(), ranking.pairs.len()), (0, 0, 150));
    assert!(ranking.common.is_empty(), "{:?}", ranking.common);
}

/// Ranks pairs of equal size whose new sides do `work` times the amount of work.
fn rank_with_work(services: usize, work: impl Fn(usize) -> f64, change: impl Fn(Program) -> Program) -> Ranking {
    let mut fleet = Fleet::default();
    for number in 0..services {
        let seed = 104_729 * number as u64 + 1;
        let base = [service(number, 6.0).sampled(4000.0, 1.0, seed)];
        let new = [change(service(number, 6.0)).sampled(4000.0, work(number), seed + 1)];
        fleet.push(&format!("svc{number}"), explain_pair(&base, &new));
    }
    fleet.ranking(FDR).unwrap()
}

#[test]
fn a_change_too_small_for_each_pair_is_found_in_the_fleet() {
    let grow = |program: Program| program.times_own(LIBRARY, 1.15);
    let ranking = rank_with_work(60, |_| 1.0, grow);
    // The change is not a cause of any single pair, and no other function is reported.
    assert_eq!((ranking.changed, ranking.shared.len()), (0, 0));
    let names: Vec<&str> = ranking.common.iter().map(|change| change.function.as_str()).collect();
    assert_eq!(names, [LIBRARY]);
    let change = &ranking.common[0];
    assert!(change.pairs == 60 && change.q < 0.01, "{change:?}");
    let grown = change.delta / change.base;
    assert!((0.1..0.2).contains(&grown) && change.delta == change.new - change.base, "{change:?}");
    assert!((change.share - change.delta / ranking.summary.total.base as f64).abs() < 1e-12);
    // Ten pairs are too few. With a larger change, most pairs report the function as their own cause.
    assert!(rank_with_work(10, |_| 1.0, grow).common.is_empty());
    let much = rank_with_work(60, |_| 1.0, |program| program.times_own(LIBRARY, 3.0));
    assert!(much.shared[0].pairs > 50 && much.common.iter().all(|change| change.pairs < 10), "{:?}", much.common);
    // A decrease has a negative delta.
    let less = rank_with_work(60, |_| 1.0, |program| program.times_own(LIBRARY, 0.85));
    assert!(less.common.len() == 1 && less.common[0].delta < 0.0, "{:?}", less.common);
}

#[test]
fn more_work_is_not_a_change_of_a_function() {
    // All new sides did 10% more work, or each did a different amount.
    for work in [|_: usize| 1.1, |number: usize| 0.6 + 0.05 * (number % 17) as f64] {
        let ranking = rank_with_work(60, work, |program| program);
        assert!(ranking.common.is_empty(), "{:?}", ranking.common);
        let grown = rank_with_work(60, work, |program| program.times_own(LIBRARY, 1.2));
        let names: Vec<&str> = grown.common.iter().map(|change| change.function.as_str()).collect();
        assert_eq!(names, [LIBRARY]);
    }
}

#[test]
fn a_stricter_false_discovery_rate_reports_fewer_pairs() {
    // Changes of many sizes, some within chance.
    let change = |number: usize, program: Program| program.times_own("shop/part1.Work2", 1.0 + 0.05 * number as f64);
    let changed = |fdr: f64| rank_services(40, fdr, change).changed;
    let (strict, usual) = (changed(1e-9), changed(FDR));
    assert!(0 < strict && strict < usual && usual < 40, "{strict} {usual}");
}

#[test]
fn a_pair_among_many_needs_more_evidence_than_a_single_pair() {
    let base = [service(0, 6.0).sampled(4000.0, 1.0, 1)];
    let explain_change = |step: i32| {
        let grown = service(0, 6.0).times_own("shop/part1.Work2", 1.2 + 0.005 * f64::from(step));
        explain_pair(&base, &[grown.sampled(4000.0, 1.0, 2)]).unwrap()
    };
    let rank = |pairs: Vec<PairCauses>| {
        let mut fleet = Fleet::default();
        pairs.into_iter().for_each(|pair| fleet.push("pair", Ok(pair)));
        fleet.ranking(FDR).unwrap()
    };
    // By chance, one in about a thousand pairs has such a cause. This is significant for a single pair, but not among a
    // hundred pairs.
    let hardly =
        (0..300).map(explain_change).find(|pair| (0.0006..0.002).contains(&rank(vec![pair.clone()]).pairs[0].q));
    let hardly = hardly.expect("some change is just a cause");
    let q = rank(vec![hardly.clone()]).pairs[0].q;
    assert_eq!(rank(vec![hardly.clone()]).changed, 1);
    let equal = explain_pair(&base, &base).unwrap();
    let many = rank(std::iter::repeat_n(equal, 99).chain([hardly]).collect());
    let least = many.pairs.iter().map(|pair| pair.q).fold(1.0, f64::min);
    assert_eq!((many.changed, (1e9 * least).round()), (0, (1e9 * 100.0 * q).round()));
}

#[test]
fn accounts_are_kept_for_the_largest_changes() {
    // Seven kinds of changes with a hundred pairs each, interleaved, followed by many pairs with the largest change.
    let base = [service(0, 6.0).sampled(4000.0, 1.0, 1)];
    let causes_of_change = |step: i32| {
        let grown = [service(0, 6.0).times_own("shop/part1.Work2", 3.0 + f64::from(step)).sampled(4000.0, 1.0, 2)];
        let diff = Diff::new(&base, &grown).unwrap();
        let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
        PairCauses::from_explanation(&diff, &e, |_| String::new(), String::new(), || Some(step.to_string())).unwrap()
    };
    let kinds: Vec<PairCauses> = [3, 6, 0, 5, 1, 4, 2].map(causes_of_change).into();
    let mut fleet = Fleet::default();
    (0..700).for_each(|number| fleet.push(&number.to_string(), Ok(kinds[number % 7].clone())));
    // Among equal changes, the first pairs are kept.
    (0..700).for_each(|number| fleet.push(&format!("equal{number}"), Ok(kinds[1].clone())));
    let ranking = fleet.ranking(FDR).unwrap();
    let accounts: Vec<&str> = ranking.pairs.iter().filter_map(|pair| pair.account.as_deref()).collect();
    assert_eq!((ranking.changed, accounts.len()), (1400, 300));
    assert!(accounts.iter().all(|account| *account == "6"), "{accounts:?}");
    let kept = ranking.pairs.iter().filter(|pair| pair.account.is_some());
    assert_eq!(kept.filter(|pair| pair.pair.starts_with("equal")).count(), 200);
}

#[test]
fn pairs_that_cannot_be_compared_are_reported() {
    let cpu = |n: i64| [profile(&stacks(&[("cpu", "nanoseconds")], &[(vec!["main", "work"], vec![n])]))];
    let heap = [profile(&stacks(&[("alloc_space", "bytes")], &[(vec!["main", "work"], vec![1 << 20])]))];
    let mut fleet = Fleet::default();
    fleet.push("gone", Err(Error::query("gone: no such file")));
    assert!(fleet.clone().ranking(FDR).unwrap_err().to_string().contains("no pair could be compared"));
    fleet.push("api", explain_pair(&cpu(1000), &cpu(1000)));
    fleet.push("heap", explain_pair(&heap, &heap));
    assert_eq!((fleet.len(), fleet.failed(), fleet.is_empty()), (3, 1, false));
    assert!(fleet.clone().ranking(0.0).unwrap_err().to_string().contains("between 0 and 1"));
    let ranking = fleet.ranking(FDR).unwrap();
    let failed: Vec<&str> = ranking.failed.iter().map(|failed| failed.pair.as_str()).collect();
    assert_eq!((failed, ranking.pairs.len()), (vec!["gone", "heap"], 1));
    assert!(
        ranking.failed[1].error.contains("heap: it lacks the sample type cpu; it has alloc_space"),
        "{:?}",
        ranking.failed
    );
}

/// A pair that fails when it is measured again does not change the number of pairs with the default type, nor the
/// positions of the others.
#[test]
fn a_pair_that_fails_when_measured_again_is_counted_as_measured_in_another_type() {
    let types = [("cpu", "nanoseconds"), ("alloc_space", "bytes")];
    let side = [profile(&stacks(&types, &[(vec!["main", "work"], vec![1000, 1 << 20])]))];
    let measured = |sample_type: &str| {
        let (diff, query) = (Diff::new(&side, &side).unwrap(), Query::default().with_sample_type(sample_type));
        let e = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
        PairCauses::from_explanation(&diff, &e, |_| String::new(), String::new(), || None)
    };
    let mut fleet = Fleet::default();
    let kinds = ["alloc_space", "cpu", "cpu", "cpu", "alloc_space"];
    kinds.into_iter().zip(["a", "b", "c", "d", "e"]).for_each(|(kind, name)| fleet.push(name, measured(kind)));
    assert_eq!(fleet.to_measure_again(), [0, 4]);
    fleet.replace(0, measured("cpu"));
    assert_eq!(fleet.to_measure_again(), [4]);
    fleet.replace(4, Err(Error::query("e: no such file")));
    assert_eq!((fleet.to_measure_again(), fleet.len()), (vec![], 5));
    let ranking = fleet.ranking(FDR).unwrap();
    let choice = "the sample type is cpu, the default of 3 of 5 pairs; all pairs have it";
    assert_eq!((&ranking.summary.warnings[..], ranking.failed.len()), (&[choice.to_owned()][..], 1));
}
