//! Tests of extreme numbers: sums and products beyond int64, invalid factors, totals of zero, negative values. Each
//! gives an error or an exact answer, in every view and every format.

#![allow(clippy::unwrap_used)]

use std::slice::from_ref;
use std::sync::Arc;

use pprofdiff::check::{CheckPolicy, Outcome, Rules};
use pprofdiff::delta::{DeltaOptions, delta};
use pprofdiff::flame::FlameOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::proto::{self, Function, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, Normalize, Profile, Query, Result, Sort, WriteOptions};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_page::PageOptions;
use pprofdiff_report::{self as report, CsvOptions, Table, TextOptions, dot, svg};

/// A profile with one sample type. Function 1 calls function `i`, which has the value `values[i]`.
fn profile(values: &[i64]) -> proto::Profile {
    let n = values.len() as u64;
    let strings = ["", "cpu", "nanoseconds"].map(str::to_owned).into_iter();
    proto::Profile {
        string_table: strings.chain((0..n).map(|i| format!("f{i}"))).map(String::into_bytes).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=n).map(|id| Function { id, name: 2 + id as i64, ..Default::default() }).collect(),
        location: (1..=n)
            .map(|id| Location {
                id,
                line: vec![Line { function_id: id, line: id as i64, column: 0 }],
                ..Default::default()
            })
            .collect(),
        sample: values
            .iter()
            .zip(1..)
            .map(|(&v, id)| Sample { location_id: vec![id, 1], value: vec![v], label: vec![] })
            .collect(),
        ..Default::default()
    }
}

fn load(values: &[i64]) -> Result<Arc<Profile>> {
    profile(values).load("p").map(Arc::new)
}

fn diff(base: &[i64], new: &[i64]) -> Diff {
    Diff::new(&[load(base).unwrap()], &[load(new).unwrap()]).unwrap()
}

fn normalized(diff: &Diff, normalize: Normalize) -> Result<pprofdiff::Measure> {
    diff.measure(&Query::default().with_normalize(normalize))
}

fn error_text<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

/// Returns everything that is written about a diff, as text.
fn everything(diff: &Diff, query: &Query) -> String {
    let view = diff.measure(query).unwrap();
    let mut out = Vec::new();
    let stacks = view.stacks(true);
    let tables: [Table; 4] = [
        Table::top(&view.top(Sort::Flat), usize::MAX),
        Table::tree(&view.edges(None, Sort::Cum).unwrap()),
        Table::stacks(&stacks, usize::MAX),
        Table::labels(&view.labels()),
    ];
    for table in tables {
        table.write_text(&mut out, TextOptions::default()).unwrap();
        table.write_json(&mut out).unwrap();
        table.write_csv(&mut out, CsvOptions::default()).unwrap();
        table.write_markdown(&mut out).unwrap();
        out.extend(table.to_html(20).bytes());
    }
    report::folded(&stacks, &mut out).unwrap();
    report::speedscope(&stacks, &mut out).unwrap();
    let graph = view.graph(&GraphOptions::default()).unwrap();
    dot(&graph, &mut out).unwrap();
    out.extend(svg(&graph).unwrap().bytes());
    out.extend(
        pprofdiff_page::page(diff, query, &PageOptions::default(), None)
            .unwrap()
            .html
            .split("<script")
            .nth(1)
            .unwrap()
            .bytes(),
    );
    report::info(diff, &mut out).unwrap();
    let flame = view.flame(&FlameOptions::default());
    assert!(flame.nodes.iter().all(|n| n.width.max >= 0 && n.width.max <= flame.nodes[0].width.max));
    diff.to_bytes(query, &WriteOptions::default()).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn sums_beyond_int64_are_refused_everywhere() {
    const HALF: i64 = i64::MAX / 2;
    // The limit is on the sum of magnitudes, so that no subset of the samples can overflow.
    assert!(load(&[HALF, HALF, 1]).is_ok());
    for values in [&[HALF, HALF, 2][..], &[i64::MAX, -1], &[-HALF, -HALF, -2], &[i64::MIN], &[i64::MIN, i64::MIN]] {
        assert!(error_text(load(values)).contains("add up to more than an int64 holds"), "{values:?}");
    }
    let [half, more] = [&[HALF][..], &[HALF + 2]].map(|values| load(values).unwrap());
    let pair = |base: &Arc<Profile>, new: &Arc<Profile>| Diff::new(from_ref(base), from_ref(new));
    assert!(pair(&half, &half).is_ok());
    assert!(error_text(pair(&half, &more)).contains("int64"));
    assert!(error_text(Diff::new(&[half.clone(), more.clone()], &[load(&[1]).unwrap()])).contains("int64"));
    assert!(error_text(pprofdiff::merge(&[&half, &more])).contains("int64"));
    // The difference of two counters may exceed int64.
    let policy = DeltaOptions::default().with_cumulative(vec!["cpu".to_owned()]);
    let ends = [-i64::MAX, i64::MAX].map(|v| load(&[v]).unwrap());
    assert!(error_text(delta(&ends[0], &ends[1], &policy)).contains("int64"));
    assert!(error_text(delta(&ends[1], &ends[0], &policy)).contains("went down"));
    let below = [load(&[-HALF]).unwrap(), load(&[HALF]).unwrap()];
    assert_eq!(delta(&below[0], &below[1], &policy).unwrap().to_profile("d").unwrap().total(0), Some(2 * HALF));
}

#[test]
fn values_near_the_int64_limits_are_exact_in_every_format() {
    const LARGE: i64 = 1 << 62;
    let diff = diff(&[0, -LARGE + 1], &[0, LARGE]);
    let row = diff.measure(&Query::default()).unwrap().top(Sort::Flat).rows[0];
    assert_eq!((row.flat.base, row.flat.new, row.flat.delta()), (1 - LARGE, LARGE, i64::MAX));
    let text = everything(&diff, &Query::default());
    for number in ["-4611686018427387903", "4611686018427387904", "9223372036854775807"] {
        assert!(text.contains(number), "{number} is not written");
    }
    for none in ["NaN", "inf"] {
        let around =
            text.find(none).map(|position| &text[position.saturating_sub(80)..(position + 20).min(text.len())]);
        assert_eq!(around, None, "no number is written");
    }
}

#[test]
fn factors_are_positive_numbers() {
    let diff = diff(&[1, 2], &[3, 4]);
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1.0] {
        let error = error_text(normalized(&diff, Normalize::Factor(factor)));
        assert!(error.contains("must be a positive number"), "{factor}: {error}");
    }
    for text in ["nan", "inf", "1/0", "0/0", "-1/3", "1e999"] {
        let factor: Normalize = text.parse().unwrap();
        assert!(error_text(normalized(&diff, factor)).contains("must be a positive number"), "{text}");
    }
    assert!("one half".parse::<Normalize>().is_err());
    // The limit applies to the total; every row is a part of it.
    assert!(error_text(normalized(&diff, Normalize::Factor(1e300))).contains("no longer fits an int64"));
    assert!(error_text(normalized(&diff, Normalize::Factor(1.4e18))).contains("no longer fits an int64"));
    let large = normalized(&diff, Normalize::Factor(1.2e18)).unwrap();
    assert_eq!(large.summary().total.new, 8_400_000_000_000_000_000);
    let nothing = normalized(&diff, Normalize::Factor(5e-324)).unwrap();
    assert!(nothing.top(Sort::Cum).rows.iter().all(|r| (r.flat.new, r.cum.new) == (0, 0)));
    assert_eq!(nothing.summary().factor, 5e-324);
    assert!(!everything(&diff, &Query::default().with_normalize(Normalize::Factor(5e-324))).contains("NaN"));
}

#[test]
fn very_different_durations_suggest_to_compare_rates() {
    let lasting = |kind: &str, seconds: i64| {
        let mut profile = proto::Profile { duration_nanos: seconds * 1_000_000_000, ..profile(&[1]) };
        profile.string_table[1] = kind.into();
        Arc::new(profile.load("p").unwrap())
    };
    let warnings = |kind: &str, [base, new]: [&[i64]; 2], normalize: Normalize| {
        let [base, new] = [base, new].map(|all| all.iter().map(|s| lasting(kind, *s)).collect::<Vec<_>>());
        normalized(&Diff::new(&base, &new).unwrap(), normalize).unwrap().summary().warnings.clone()
    };
    let expected = "the profiles differ in duration (10s and 30s); normalize=duration compares rates";
    assert_eq!(warnings("cpu", [&[10], &[30]], Normalize::None), [expected]);
    // Runs are compared by their means.
    assert!(warnings("cpu", [&[10, 10, 10], &[11]], Normalize::None).iter().all(|w| !w.contains("duration")));
    assert!(warnings("cpu", [&[10], &[19]], Normalize::None).is_empty());
    assert!(warnings("cpu", [&[0], &[30]], Normalize::None).is_empty());
    assert!(warnings("cpu", [&[10], &[30]], Normalize::Duration).is_empty());
    // Memory in use does not grow with the time.
    assert!(warnings("inuse_space", [&[10], &[30]], Normalize::None).is_empty());
}

#[test]
fn normalizing_by_zero_is_an_error() {
    let nothing = diff(&[0, 0], &[3, 4]);
    assert!(error_text(normalized(&nothing, Normalize::Total)).contains(" of the base is zero"));
    assert!(error_text(normalized(&diff(&[3, 4], &[0, 0]), Normalize::Total)).contains(" of the new side is zero"));
    // Values that sum to zero are refused, too.
    assert!(error_text(normalized(&diff(&[3, -3], &[3, 4]), Normalize::Total)).contains(" of the base is zero"));
    assert!(error_text(normalized(&diff(&[3, 4], &[-3, -4]), Normalize::Total)).contains("opposite signs"));
    assert!(error_text(normalized(&nothing, Normalize::Duration)).contains(" of the base is zero"));
    let lasting = |nanos: i64| Arc::new(proto::Profile { duration_nanos: nanos, ..profile(&[1]) }.load("p").unwrap());
    let opposite = Diff::new(&[lasting(5)], &[lasting(-5)]).unwrap();
    assert!(error_text(normalized(&opposite, Normalize::Duration)).contains("opposite signs"));
    let long = Diff::new(&[lasting(i64::MAX), lasting(i64::MAX)], &[lasting(i64::MAX)]).unwrap().summed();
    let long = normalized(&long, Normalize::Duration).unwrap();
    assert_eq!((long.summary().factor, long.summary().base.as_ref().unwrap().duration_nanos), (1.0, i64::MAX));
    // With a base of zero everything is new, and shares are undefined.
    let text = everything(&nothing, &Query::default());
    assert!(text.contains("): 0 -> 7ns  +7ns  new\n"), "nothing is said of the growth");
    assert!(text.contains("  +4ns     new         -  "), "nothing is said of the share");
    for word in ["NaN", "inf%", "Infinity"] {
        assert!(!text.contains(word), "{word} is written");
    }
    for both in [diff(&[0], &[0]), diff(&[5, -5], &[-5, 5])] {
        let text = everything(&both, &Query::default());
        assert!(!text.contains("NaN") && !text.contains("inf%"));
    }
}

#[test]
fn negative_values_keep_their_sign() {
    let diff = diff(&[0, -100, 50], &[0, -40, 80]);
    let view = diff.measure(&Query::default()).unwrap();
    // Percentages refer to the sum of magnitudes. They are negative for negative rows, and never exceed 100%.
    assert_eq!((view.summary().total.base, view.summary().total.new), (150, 120));
    let top = view.top(Sort::Flat);
    let flats: Vec<_> = top.rows.iter().map(|r| (top.frames.name(r.frame), r.flat.base, r.flat.new)).collect();
    assert!(flats.starts_with(&[("f1".to_owned(), -100, -40), ("f2".to_owned(), 50, 80)]), "{flats:?}");
    let mut text = Vec::new();
    Table::top(&top, usize::MAX).write_text(&mut text, TextOptions::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("+40.00%") && text.contains("+20.00%"), "{text}");
    // Scaled values round half away from zero, for both signs.
    let half = normalized(&diff, Normalize::Factor(0.4875)).unwrap().top(Sort::Flat);
    let new = |name: &str| half.rows.iter().find(|r| half.frames.name(r.frame) == name).unwrap().flat.new;
    assert_eq!((new("f1"), new("f2")), (-20, 39));
}

#[test]
fn percentage_rules_fail_on_growth_from_zero() {
    let verdict = |base: &[i64], new: &[i64], rule: &str| {
        let mut rules = Rules::default();
        rules.fail_on(rule).unwrap();
        rules.policy = CheckPolicy::default().with_strict(true);
        let check =
            pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff(base, new), &Query::default()).unwrap();
        assert!(check.rules.iter().flat_map(|r| &r.findings).all(|f| f.percent.is_none_or(f64::is_finite)));
        check.verdict
    };
    // Any growth from zero exceeds any percentage.
    assert_eq!(verdict(&[0], &[1], "total>+1000%"), Outcome::Fail);
    // A new side of zero is an error, because nothing was measured.
    let mut rules = Rules::default();
    rules.fail_on("total>+0%").unwrap();
    rules.policy = CheckPolicy::default().with_strict(true);
    assert!(
        pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff(&[0], &[0]), &Query::default())
            .unwrap_err()
            .detail()
            .contains("there is nothing to check")
    );
    assert_eq!(verdict(&[i64::MAX / 2], &[i64::MAX / 2], "total>+0%"), Outcome::Pass);
    assert_eq!(verdict(&[1 << 61], &[1 << 62], "total>+99%"), Outcome::Fail);
}
