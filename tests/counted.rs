//! Explanations of counts: profiles that count every instruction and every call, such as callgrind's. One run per side is
//! enough, no sentence has a p-value, and each number of a sentence is in the plain table.

use std::sync::Arc;

use pprofdiff::{Diff, Normalize, Profile, Query, Sort};
use pprofdiff_explain::{Cause, CauseKind, ExplainOptions, Explanation, ScaleRule, Verdict, explain};

use crate::synthetic::{profile, says, stacks, words};

/// A function below its callers: its own instructions, and its calls from there.
type Row<'a> = (&'a str, i64, i64);

fn counts(rows: &[Row<'_>]) -> Arc<Profile> {
    let rows: Vec<(Vec<&str>, Vec<i64>)> =
        rows.iter().map(|(stack, ir, calls)| (stack.split(';').collect(), vec![*ir, *calls])).collect();
    let types = [("calls", "count"), ("Ir", "count")];
    let rows: Vec<_> = rows.into_iter().map(|(stack, values)| (stack, vec![values[1], values[0]])).collect();
    profile(&stacks(&types, &rows))
}

fn explained(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Explanation {
    explain(&Diff::new(base, new).unwrap(), &Query::default(), &[], &ExplainOptions::default()).unwrap()
}

/// The queries of a request to a database: each loads documents, and each document is read by `read`.
fn database(loads: i64, instructions_of_read: i64) -> Vec<Row<'static>> {
    vec![
        ("main", 50_000, 1),
        ("main;parse", 9_000_000, 40_000),
        ("main;plan", 4_000_000, 40_000),
        ("main;query", 2_000_000, 40_000),
        ("main;query;load", 100 * loads, loads),
        ("main;query;load;read", instructions_of_read * loads, loads),
        ("main;query;sort", 3_000_000, 40_000),
        ("main;write", 5_000_000, 40_000),
    ]
}

fn side(rows: &[Row<'_>]) -> [Arc<Profile>; 1] {
    [counts(rows)]
}

/// Returns the calls, and the cost with or without callees, that a plain table shows for a cause's function on both sides.
fn table(diff: &Diff, cause: &Cause) -> [[f64; 2]; 2] {
    let function = cause.function.as_deref().unwrap();
    let of_cause = if cause.kind == CauseKind::Own { Sort::Flat } else { Sort::Cum };
    let cost = |kind: &str, sort: Sort| {
        let query = Query::default().with_sample_type(kind).with_normalize(Normalize::None);
        let top = diff.measure(&query).unwrap().top(sort);
        let row = top.rows.iter().find(|row| top.frames.name(row.frame) == function).copied();
        let pair = row.map(|row| if sort == Sort::Flat { row.flat } else { row.cum }).unwrap_or_default();
        [pair.base as f64, pair.new as f64]
    };
    [cost("calls", Sort::Flat), cost("Ir", of_cause)]
}

#[test]
fn calls_that_are_counted_split_a_cause_from_one_run_per_side() {
    let (base, new) = (side(&database(30_000, 400)), side(&database(150_000, 385)));
    let e = explained(&base, &new);
    assert_eq!((e.verdict, e.account.p, e.noise.runs), (Verdict::Change, None, (1, 1)));
    let cause @ Cause { calls: Some(calls), .. } = &e.causes[0] else { panic!("{:?}", e.causes) };
    let [table_calls, table_cost] = table(&Diff::new(&base, &new).unwrap(), cause);
    assert_eq!([calls.base, calls.new], table_calls);
    let each = (table_cost[1] / table_calls[1]) / (table_cost[0] / table_calls[0]);
    assert!((calls.unit_factor.unwrap() - each).abs() < 1e-6 && calls.count_factor == Some(5.0), "{calls:?}");
    // (100 + 385) / (100 + 400) instructions per load.
    says(&e, "Called 5.00 times as often (30000 -> 150000), each 3.0% cheaper");
    let text = words(&e);
    assert!(!text.contains("p =") && !text.contains("called more, or slower") && !text.contains("chance"), "{text}");
}

#[test]
fn a_call_that_costs_more_is_not_called_more() {
    let e = explained(&side(&database(30_000, 400)), &side(&database(30_000, 500)));
    says(&e, "Called as often (30000 times), each 25% more expensive");
    assert_eq!(e.causes.len(), 1, "{}", words(&e));
    assert_eq!(e.causes[0].function.as_deref(), Some("read"));
}

#[test]
fn a_function_of_a_tenth_that_grows_by_half_a_percent_is_a_cause() {
    let total: i64 = database(30_000, 400).iter().map(|row| row.1).sum();
    let rows = |own: i64| {
        let mut rows = database(30_000, 400);
        rows.push(("main;tenth", own, 1_000));
        rows
    };
    let tenth = total / 9;
    let grown = tenth + tenth / 200;
    let diff = Diff::new(&side(&rows(tenth)), &side(&rows(grown))).unwrap();
    let explained = |floor: f64| {
        let options = ExplainOptions::default().with_min_effect(floor);
        explain(&diff, &Query::default(), &[], &options).unwrap()
    };
    let e = explained(0.0002);
    assert_eq!(e.causes.iter().map(|cause| cause.function.as_deref()).collect::<Vec<_>>(), [Some("tenth")]);
    says(&e, "Called as often (1000 times), each 0.5% more expensive");
    // The floor is the smallest effect that was asked for: half a percent of a tenth is below 0.2 % of the total.
    let e = explained(0.002);
    assert_eq!((e.verdict, e.causes.len()), (Verdict::None, 0), "{}", words(&e));
    says(&e, "No function changed by more than 0.2% of the total");
}

#[test]
fn a_single_call_more_is_a_cause() {
    let rows = |calls: i64| [("main", 10, 1), ("main;f", 30 * calls, calls), ("main;g", 40, 1), ("main;h", 50, 2)];
    let e = explained(&side(&rows(2)), &side(&rows(3)));
    says(&e, "Called 50% more often (2 -> 3), each at the same cost");
}

#[test]
fn equal_counts_are_no_change_and_new_calls_are_counted() {
    let rows = database(30_000, 400);
    let e = explained(&side(&rows), &side(&rows));
    says(&e, "The totals are equal, and no function changed");
    let mut grown = rows.clone();
    grown.push(("main;query;audit", 600_000, 12));
    let e = explained(&side(&rows), &side(&grown));
    says(&e, "query now calls audit");
    says(&e, "Called 12 times");
    says(&explained(&side(&grown), &side(&rows)), "It was called 12 times");
}

#[test]
fn the_variation_between_runs_is_the_noise_of_several_runs() {
    // A function whose cost depends on the seed of a hash varies by 10 % between runs, and another is repeated exactly. The
    // means of the first differ by 0.8 % of the total, which is a cause without its noise.
    let run = |seeded: i64, exact: i64| {
        let mut rows = database(30_000, 400);
        rows.extend([("main;seeded", seeded, 50), ("main;exact", exact, 50)]);
        counts(&rows)
    };
    let (low, high) = (10_000_000, 11_000_000);
    let base = [run(low, 2_000_000), run(high, 2_000_000), run(low, 2_000_000)];
    let new = [run(high, 2_160_000), run(low, 2_160_000), run(high, 2_160_000)];
    let e = explained(&base, &new);
    let causes: Vec<_> = e.causes.iter().map(|cause| cause.function.as_deref().unwrap()).collect();
    assert_eq!(causes, ["exact"], "{}", words(&e));
    says(&e, "each 8.0% more expensive");
    says(&e, "Noise is measured between the 3 + 3 runs");
}

#[test]
fn only_the_calls_by_the_caller_of_a_cause_are_counted() {
    let rows = |loads: i64| {
        let mut rows = database(loads, 400);
        rows.extend([("main;report", 1_000_000, 1), ("main;report;load", 700_000, 7_000)]);
        rows.extend([("main;report;load;read", 2_800_000, 7_000)]);
        side(&rows)
    };
    let e = explained(&rows(30_000), &rows(150_000));
    says(&e, "query spends more in load");
    says(&e, "Called 5.00 times as often (30000 -> 150000), each at the same cost");
}

#[test]
fn calls_of_noise_runs_are_not_counted() {
    let [base, new] = [30_000, 150_000].map(|loads| counts(&database(loads, 400)));
    let noise = [30_000; 2].map(|loads| counts(&database(loads, 400)));
    let diff = Diff::new(&[&[base][..], &noise].concat(), &[new]).unwrap();
    let options = ExplainOptions::default().with_noise_runs(2).with_ops(1.0, 1.0);
    let e = explain(&diff, &Query::default(), &[], &options).unwrap();
    assert_eq!((e.noise.learned, e.noise.runs), (2, (1, 1)));
    says(&e, "Called 5.00 times as often (30000 -> 150000)");
}

#[test]
fn ten_answers_agree_with_the_plain_table() {
    for (loads, read) in [(30_000, 400), (30_001, 400), (60_000, 200), (15_000, 900), (90_000, 401), (29_000, 400)] {
        for base_read in [400, 380] {
            let (base, new) = (side(&database(30_000, base_read)), side(&database(loads, read)));
            let diff = Diff::new(&base, &new).unwrap();
            let e = explained(&base, &new);
            for cause in &e.causes {
                let Some(calls) = &cause.calls else { continue };
                let [table_calls, table_cost] = table(&diff, cause);
                assert_eq!([calls.base, calls.new], table_calls, "{}", words(&e));
                let Some(unit) = calls.unit_factor else { continue };
                let factor = table_calls[1] / table_calls[0] * unit;
                assert!((factor - table_cost[1] / table_cost[0]).abs() < 1e-3, "{} {factor}", words(&e));
            }
        }
    }
}

/// A time with the calls, as cProfile writes them.
fn timed(rows: &[Row<'_>]) -> Arc<Profile> {
    let rows: Vec<(Vec<&str>, Vec<i64>)> =
        rows.iter().map(|(stack, time, calls)| (stack.split(';').collect(), vec![*time, *calls])).collect();
    profile(&stacks(&[("time", "nanoseconds"), ("calls", "count")], &rows))
}

fn explained_time(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Explanation {
    let query = Query::default().with_sample_type("time");
    explain(&Diff::new(base, new).unwrap(), &query, &[], &ExplainOptions::default()).unwrap()
}

/// The entry function is called once per request. `parse` may become slower or be called more often by `handle`.
fn requests(n: i64, words: i64, time_of_word: i64) -> Vec<Row<'static>> {
    vec![
        ("main", 50_000, 1),
        ("main;handle", 1000 * n, n),
        ("main;handle;parse", 700 * n, n),
        ("main;handle;parse;word", time_of_word * words * n, words * n),
        ("main;handle;render", 20_000 * n, n),
        ("main;load", 9000, 3),
    ]
}

#[test]
fn equal_calls_of_the_entry_function_are_equal_work() {
    let side = |rows: &[Row<'_>]| [timed(rows)];
    for (new, more) in [(requests(300, 40, 3000), "slower"), (requests(300, 160, 700), "more words")] {
        let e = explained_time(&side(&requests(300, 40, 700)), &side(&new));
        assert_eq!((e.scale.rule, e.scale.factor), (ScaleRule::Counted, 1.0), "{more}");
        says(&e, "Both sides did the same amount of work: handle was called 300 times.");
        let text = words(&e);
        assert!(!text.contains("times as much work") && !text.contains("--ops"), "{text}");
    }
}

/// More requests and a loop that makes the same call twice count the same calls, so the answer must not decide.
#[test]
fn more_calls_of_the_entry_function_do_not_show_more_work() {
    let e = explained_time(&[timed(&requests(300, 40, 700))], &[timed(&requests(900, 40, 700))]);
    assert_ne!(e.scale.rule, ScaleRule::Counted, "{e:?}");
    let build = |times: i64| {
        let mut rows = requests(2, 40, 700);
        rows.push(("main;build", 600_000 * times, times));
        [timed(&rows)]
    };
    let e = explained_time(&build(1), &build(2));
    assert_eq!(e.scale.calls, None, "{e:?}");
    // Entry functions that disagree do not show the amount of work either.
    let with_jobs = |jobs: i64| {
        let mut rows = requests(300, 40, 700);
        rows.push(("main;job", 50_000 * jobs, jobs));
        [timed(&rows)]
    };
    let e = explained_time(&with_jobs(300), &with_jobs(900));
    assert_eq!(e.scale.calls, None, "{e:?}");
}
