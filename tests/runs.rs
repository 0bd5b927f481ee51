//! Tests of several runs per side: every view shows the means of the runs, rounded once, and significance is computed
//! from the runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pprofdiff::check::Rules;
use pprofdiff::flame::FlameOptions;
use pprofdiff::top::SIGNIFICANT;
use pprofdiff::{Diff, Filters, Granularity, LoadOptions, Measure, Normalize, Pair, Profile, Query, Sort, Source};
use pprofdiff_explain::{ExplainOptions, explain};
use pprofdiff_report::{Cell, Table};

use crate::generated_series::Random;
use crate::synthetic::{profile, stacks};

/// Rows by key, with the values of all columns that have a given ending.
type Rows = BTreeMap<String, Vec<i64>>;

fn rows(table: &Table, ending: &str) -> Rows {
    let text = |cell: Cell<'_>| match cell {
        Cell::Text(text) => text.to_owned(),
        Cell::List(list, row) => list.get(row).collect::<Vec<_>>().join(";"),
        _ => String::new(),
    };
    let keys = ["name", "node", "other", "relation", "frames", "key", "value"];
    let row = |row: usize| {
        let key: Vec<String> = keys.iter().filter_map(|k| Some(text(table.column(k)?.cell(row)))).collect();
        let values = table.columns.iter().filter(|c| c.name.ends_with(ending));
        (key.join(" "), values.map(|c| table.values(&c.name)[row]).collect())
    };
    (0..table.len()).map(row).collect()
}

/// Returns the tables, and the boxes of the flame graph.
fn views(measure: &Measure, ending: &str) -> Vec<Rows> {
    let tables = [
        Table::top(&measure.top(Sort::Flat), usize::MAX),
        Table::tree(&measure.edges(None, Sort::Cum).unwrap()),
        Table::stacks(&measure.stacks(false), usize::MAX),
        Table::labels(&measure.labels()),
    ];
    let flame = measure.flame(&FlameOptions::default());
    let mut path: Vec<String> = Vec::new();
    let mut boxes = Rows::new();
    for node in &flame.nodes {
        path.truncate(node.depth as usize);
        path.push(format!("{:?}", node.frame));
        let value_of = |pair: Pair| if ending == "base" { pair.base } else { pair.new };
        boxes.insert(path.join(";"), vec![value_of(node.cum), value_of(node.flat)]);
    }
    tables.iter().map(|table| rows(table, ending)).chain([boxes]).collect()
}

/// A random run of a program with these stacks.
fn run(random: &mut Random, tenths: u64) -> Arc<Profile> {
    let all: Vec<(Vec<&str>, Vec<i64>)> = [
        vec!["main", "parse"],
        vec!["main", "parse", "alloc"],
        vec!["main", "sort", "alloc"],
        vec!["main", "sort", "sort"],
        vec!["main", "write"],
    ]
    .into_iter()
    .map(|stack| (stack, vec![(random.below(1000) * tenths / 10) as i64]))
    .collect();
    profile(&stacks(&[("cpu", "nanoseconds")], &all))
}

/// Returns the mean per run, rounding halves away from zero.
fn mean(sum: i128, runs: i128) -> i64 {
    ((2 * sum.abs() + runs) / (2 * runs) * sum.signum()) as i64
}

#[test]
fn values_are_means_of_runs_in_every_view_rounded_once() {
    let mut random = Random(5);
    for (m, n) in [(3, 2), (1, 3), (7, 1), (2, 2)] {
        let base: Vec<_> = (0..m).map(|_| run(&mut random, 10)).collect();
        let new: Vec<_> = (0..n).map(|_| run(&mut random, 12)).collect();
        let diff = Diff::new(&base, &new).unwrap();
        let measure = |diff: &Diff, query: &Query| diff.measure(query).unwrap();
        let of_runs = measure(&diff, &Query::default());
        let summed = measure(&diff.clone().summed(), &Query::default());
        assert!(!of_runs.summary().sum && summed.summary().sum);
        let total =
            |profiles: &[Arc<Profile>]| -> i128 { profiles.iter().map(|p| i128::from(p.totals()[0].sum)).sum() };
        let totals = [total(&base), total(&new)];
        let sums = summed.summary().total;
        assert_eq!([sums.base, sums.new].map(i128::from), totals);
        let means = of_runs.summary().total;
        assert_eq!([means.base, means.new], [mean(totals[0], m), mean(totals[1], n)]);
        // The means in each view are the sums divided by the number of runs. The sums are computed from the runs alone.
        for (side, profiles, runs) in [("base", &base, m), ("new", &new, n)] {
            let mut by_hand = vec![BTreeMap::<String, Vec<i128>>::new(); 5];
            for one in profiles.iter() {
                // Uses the same run on both sides, so that all values are in one table.
                let alone = Diff::new(std::slice::from_ref(one), std::slice::from_ref(one)).unwrap();
                for (sums, view) in by_hand.iter_mut().zip(views(&measure(&alone, &Query::default()), side)).take(4) {
                    for (key, values) in view {
                        let row = sums.entry(key).or_insert_with(|| vec![0; values.len()]);
                        row.iter_mut().zip(values).for_each(|(sum, value)| *sum += i128::from(value));
                    }
                }
            }
            let divided = |sums: &BTreeMap<String, Vec<i128>>| -> Rows {
                sums.iter().map(|(key, row)| (key.clone(), row.iter().map(|&sum| mean(sum, runs)).collect())).collect()
            };
            let shown = |rows: &Rows| -> Rows {
                rows.iter().filter(|(_, v)| v.iter().any(|&v| v != 0)).map(|(k, v)| (k.clone(), v.clone())).collect()
            };
            let (means, sums) = (views(&of_runs, side), views(&summed, side));
            for i in 0..4 {
                assert_eq!(shown(&means[i]), shown(&divided(&by_hand[i])), "{side} {m} {n} view {i}");
            }
            // Each diff numbers the frames of a flame graph differently, so its boxes are compared with those of the
            // sums.
            for (path, values) in &means[4] {
                let expected: Vec<i64> = sums[4][path].iter().map(|&sum| mean(sum.into(), runs)).collect();
                assert_eq!(values, &expected, "{side} {m} {n} {path}");
            }
        }
        // A written diff has the means of its stacks. Their fractions add up to the fraction of the total.
        let written = Diff::of_profile(&Arc::new(diff.to_profile(&Query::default()).unwrap())).unwrap();
        assert_eq!(measure(&written, &Query::default()).summary().total, of_runs.summary().total);
        let stacks_of = |diff: &Diff, side: &str| {
            rows(&Table::stacks(&measure(diff, &Query::default()).stacks(false), usize::MAX), side)
        };
        for side in ["base", "new"] {
            let (written, shown) = (stacks_of(&written, side), stacks_of(&diff, side));
            for (stack, values) in &shown {
                let written = written.get(stack).map_or(0, |values| values[0]);
                assert!(written.abs_diff(values[0]) <= 1, "{side} {stack}: {written} and {values:?}");
            }
        }
    }
}

#[test]
fn means_are_normalized_to_the_base() {
    let mut random = Random(6);
    let base: Vec<_> = (0..3).map(|_| run(&mut random, 10)).collect();
    let new: Vec<_> = (0..4).map(|_| run(&mut random, 15)).collect();
    let diff = Diff::new(&base, &new).unwrap();
    let view = |normalize| {
        let measure = diff.measure(&Query::default().with_normalize(normalize)).unwrap();
        (measure.summary().clone(), Table::top(&measure.top(Sort::Cum), usize::MAX))
    };
    let (plain, sums) = (
        view(Normalize::None),
        Table::top(&diff.clone().summed().measure(&Query::default()).unwrap().top(Sort::Cum), usize::MAX),
    );
    let (summary, table) = view(Normalize::Total);
    assert_eq!(summary.total.new, summary.total.base);
    let factor = plain.0.total.base as f64 / plain.0.total.new as f64;
    assert!((summary.factor / factor - 1.0).abs() < 0.01, "{} {factor}", summary.factor);
    let totals = |profiles: &[Arc<Profile>]| -> i128 { profiles.iter().map(|p| i128::from(p.totals()[0].sum)).sum() };
    let (b, n) = (totals(&base), totals(&new));
    let scaled: Rows = rows(&sums, "new")
        .into_iter()
        .map(|(k, v)| (k, v.iter().map(|&v| mean(i128::from(v) * b, 3 * n)).collect()))
        .collect();
    assert_eq!(rows(&table, "new"), scaled);
    let (summary, _) = view(Normalize::Factor(0.5));
    assert_eq!((summary.factor, summary.total.new), (0.5, mean(n, 8)));
}

/// Builds a noisy run of a program of a hundred functions, in samples. The cost of the first is multiplied by `factor`.
fn noisy(random: &mut Random, factor: f64) -> Arc<Profile> {
    let names: Vec<String> = (0..100).map(|i| format!("f{i:02}")).collect();
    let length = 1.0 + (random.below(1000) as f64 / 1000.0 - 0.5) / 10.0;
    let draw = |i: usize, random: &mut Random| {
        let mean = 400.0 / (1.0 + i as f64 / 10.0) * length * if i == 0 { factor } else { 1.0 };
        // About Poisson: the sum of twelve uniform numbers is about normal.
        let normal: f64 = (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
        (mean + normal * mean.sqrt()).round().max(0.0) as i64
    };
    let all: Vec<_> =
        names.iter().enumerate().map(|(i, name)| (vec!["main", name.as_str()], vec![draw(i, random)])).collect();
    profile(&stacks(&[("samples", "count")], &all))
}

#[test]
fn significant_rows_are_separated_from_noise() {
    let mut random = Random(11);
    let (mut n_found, mut noise) = (0, 0);
    for _ in 0..20 {
        let side = |random: &mut Random, factor| (0..5).map(|_| noisy(random, factor)).collect::<Vec<_>>();
        let diff = Diff::new(&side(&mut random, 1.0), &side(&mut random, 1.3)).unwrap();
        let mut top = diff.measure(&Query::default()).unwrap().top_of_runs(Sort::Flat).unwrap();
        let chances = top.chances.clone().unwrap();
        for row in &top.rows {
            let chance = chances[row.frame as usize];
            assert!(chance.p.zip(chance.q).is_none_or(|(p, q)| p <= q + 1e-9), "{chance:?}");
        }
        top.retain_significant();
        let names: Vec<String> = top.rows.iter().map(|row| top.frames.name(row.frame)).collect();
        n_found += usize::from(names.iter().any(|name| name == "f00"));
        noise += names.iter().filter(|name| *name != "f00").count();
        assert_eq!(top.rows_total, 101);
    }
    assert!(n_found >= 19, "{n_found} of 20 found");
    // With a false discovery rate of 5%, about one row in all is noise.
    assert!(noise <= 4, "{noise} rows of noise, at {SIGNIFICANT}");
}

/// The same total of the same runs has one p-value, in every table, explanation and check.
#[test]
fn the_p_value_of_a_total_depends_on_no_option() {
    for (seed, runs, factor) in [(21, 3, 2.5), (22, 2, 1.5), (23, 5, 1.5), (24, 1, 2.5)] {
        let mut random = Random(seed);
        let side = |random: &mut Random, factor| (0..runs).map(|_| noisy(random, factor)).collect::<Vec<_>>();
        let diff = Diff::new(&side(&mut random, 1.0), &side(&mut random, factor)).unwrap();
        let p_of = |query: &Query, sort: Sort| {
            let top = diff.measure(query).unwrap().top_of_runs(sort).unwrap();
            top.summary.chance.unwrap().p.unwrap()
        };
        let p = p_of(&Query::default(), Sort::Flat);
        assert!(p > 0.0 && p < 1.0, "{p}");
        let focused = Filters::default().with("focus", "f0").unwrap();
        for (query, sort) in [
            (Query::default(), Sort::Cum),
            (Query::default().with_granularity(Granularity::Lines), Sort::Flat),
            (Query::default().with_granularity(Granularity::Files), Sort::Cum),
            (Query::default().with_filters(focused), Sort::Flat),
        ] {
            assert_eq!(p_of(&query, sort), p, "{runs} {query:?}");
        }
        let explained = explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
        let explained = explained.account.p.unwrap();
        assert!((explained - p).abs() <= 1e-5 * p, "{runs}: {explained} and {p}");
        // The question of a check is growth, so it has half of the two-sided p-value, or the rest of 1 after a fall.
        let mut rules = Rules::default();
        rules.fail_on("total>+1%").unwrap();
        let check = pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default()).unwrap();
        let of_check = check.rules[0].findings[0].p.unwrap();
        assert!((2.0 * of_check.min(1.0 - of_check) - p).abs() <= 1e-9 * p, "{runs}: {of_check} and {p}");
    }
}

#[test]
fn significance_requires_runs_on_two_sides() {
    let mut random = Random(3);
    let (a, b) = (noisy(&mut random, 1.0), noisy(&mut random, 1.0));
    let measure = |diff: Diff| diff.measure(&Query::default()).unwrap();
    let error = |diff: Diff| measure(diff).top_of_runs(Sort::Flat).unwrap_err().to_string();
    assert!(error(Diff::of_profile(&a).unwrap()).contains("there is only one profile"));
    assert!(
        error(Diff::new(std::slice::from_ref(&a), &[b.clone(), a.clone()]).unwrap().summed()).contains("are not runs")
    );
    // With one run per side, p-values come from the noise of other programs. There is no spread to show.
    let top = measure(Diff::new(&[a], &[b]).unwrap()).top_of_runs(Sort::Flat).unwrap();
    let chance = top.chances.unwrap()[top.rows[0].frame as usize];
    assert!(chance.p.is_some() && chance.base_sd.is_none() && top.summary.chance.unwrap().rank_p.is_none());
}

/// Encodes a profile that records a time, unless `time_nanos` is zero.
fn bytes(value: i64, time_nanos: i64) -> Vec<u8> {
    let mut message = stacks(&[("cpu", "nanoseconds")], &[(vec!["main", "work"], vec![value])]);
    message.time_nanos = time_nanos;
    prost::Message::encode_to_vec(&message)
}

#[test]
fn a_repeated_run_counts_once() {
    let folder = std::env::temp_dir().join(format!("pprofdiff-repeats-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        Source::Path(path)
    };
    let timed = [file("a", &bytes(10, 5)), file("copy", &bytes(10, 5)), file("b", &bytes(10, 6))];
    let untimed = [file("c", &bytes(10, 0)), file("other", &bytes(10, 0)), file("d", &bytes(20, 0))];
    let _ = std::fs::hard_link(folder.join("c"), folder.join("link"));
    let link = Source::Path(folder.join("link"));
    let dotted = Source::Path(folder.join(".").join("c"));
    let loaded = untimed[0].load(&LoadOptions::default()).unwrap();
    let again = [Source::Profile(loaded.clone()), Source::Profile(loaded)];
    let as_bytes = |time| Source::Bytes("<bytes>".to_owned(), bytes(10, time));
    let all = |sources: &[&Source]| sources.iter().map(|&source| source.clone()).collect::<Vec<_>>();
    let (once, copies) = ("it counts once", "the same content as");
    for (side, runs, message) in [
        (all(&[&timed[0]; 5]), 1, Some(once)),
        (all(&[&timed[0], &timed[1], &timed[2], &timed[1]]), 2, Some(once)),
        (all(&[&untimed[0], &dotted, &untimed[2], &link]), 2, Some(once)),
        (again.to_vec(), 1, Some(once)),
        (vec![as_bytes(7), as_bytes(7)], 1, Some(once)),
        // Two runs may do exactly the same work.
        (all(&[&untimed[0], &untimed[1], &untimed[2]]), 3, Some(copies)),
        (vec![as_bytes(0), as_bytes(0)], 2, Some(copies)),
        (all(&[&timed[0], &timed[2]]), 2, None),
    ] {
        for is_base in [true, false] {
            let other = all(&[&untimed[2]]);
            let (base, new) = if is_base { (&side, &other) } else { (&other, &side) };
            let diff = Diff::load(base, new, &LoadOptions::default()).unwrap();
            let n_distinct = if is_base { diff.base().count() } else { diff.new_side().count() };
            assert_eq!((n_distinct, diff.given(is_base).count()), (runs, side.len()), "{side:?}");
            let top = diff.measure(&Query::default()).unwrap().top(Sort::Flat);
            let warnings = &top.summary.warnings;
            assert_eq!(warnings.len(), usize::from(message.is_some()), "{warnings:?}");
            assert!(warnings.iter().zip(message).all(|(warning, message)| warning.contains(message)), "{warnings:?}");
            // Summed sides count a run each time it is listed.
            let sum = diff.clone().summed().measure(&Query::default()).unwrap().top(Sort::Flat);
            let total = if is_base { sum.summary.total.base } else { sum.summary.total.new };
            let profiles = side.iter().map(|source| source.load(&LoadOptions::default()).unwrap().total(0).unwrap());
            assert_eq!((total, sum.summary.warnings.len()), (profiles.sum(), 0));
        }
    }
    // The same file on both sides is a comparison of equal sides.
    let equal = Diff::load(&timed[..1], &timed[..1], &LoadOptions::default()).unwrap();
    let top = equal.measure(&Query::default()).unwrap().top(Sort::Flat);
    assert_eq!((top.summary.total.delta(), top.summary.warnings.len()), (0, 0));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs of one program repeat their counts, but not their times.
#[test]
fn copies_of_counts_are_runs_and_copies_of_times_are_suspicious() {
    let callgrind = b"events: Ir I1mr\nevent: Est = Ir + 10 I1mr\nfn=f\n1 100 3\n".to_vec();
    // A few milliseconds of system calls, or none, may repeat.
    let time = b"events: Ir sysCount sysTime\nfn=f\n1 100 3 0\n".to_vec();
    let cprofile = std::fs::read(crate::oracle::corpus().join("inputs/callers.base.prof")).unwrap();
    for (bytes, is_suspicious) in [(callgrind, false), (time, false), (cprofile, true)] {
        let run = || Source::Bytes("a".to_owned(), bytes.clone());
        let diff = Diff::load(&[run(), run()], &[run()], &LoadOptions::default()).unwrap();
        let top = diff.measure(&Query::default()).unwrap().top(Sort::Flat);
        let warnings = &top.summary.warnings;
        let is_said = warnings.iter().any(|warning| warning.contains("the same content as 1 other run of the base"));
        assert_eq!((diff.base().count(), is_said), (2, is_suspicious), "{warnings:?}");
    }
}

#[test]
fn a_repeated_run_does_not_count_as_a_noise_run() {
    let mut random = Random(5);
    let [a, b, c, d] = std::array::from_fn(|_| noisy(&mut random, 1.0));
    let explain = |base: &[&Arc<Profile>], noise_runs: usize| {
        let base: Vec<Arc<Profile>> = base.iter().map(|&run| run.clone()).collect();
        let diff = Diff::new(&base, std::slice::from_ref(&d)).unwrap();
        let options = ExplainOptions::default().with_noise_runs(noise_runs);
        explain(&diff, &Query::default(), &[], &options).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(explain(&[&a, &b, &c], 2), Ok(()));
    for base in [[&a, &b, &b], [&a, &a, &b]] {
        let error = explain(&base, 2).unwrap_err();
        assert!(error.contains("estimating noise needs two or more runs"), "{error}");
    }
}

/// The totals of real benchmarks, with one profile per run: the p-values of the rank test equal those of benchstat, and
/// the model gives the same verdict. `tests/benchstat/record` records the files.
#[test]
fn rank_tests_of_totals_equal_benchstats() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/benchstat");
    let read = |name: String| std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut compared = 0;
    for recorded in ["few", "many"] {
        let side = |side: &str, benchmark: &str| -> Vec<Arc<Profile>> {
            let text = read(format!("{recorded}.{side}.txt"));
            let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let matching_lines = lines.filter(|words| words[0].strip_prefix("Benchmark") == Some(benchmark));
            matching_lines
                .map(|w| profile(&stacks(&[("time", "nanoseconds")], &[(vec!["all"], vec![w[2].parse().unwrap()])])))
                .collect()
        };
        for line in read(format!("{recorded}.benchstat.csv")).lines() {
            let fields: Vec<&str> = line.split(',').collect();
            let Some(p) = fields.last().and_then(|field| field.strip_prefix("p=")?.split_whitespace().next()) else {
                continue;
            };
            let diff = Diff::new(&side("base", fields[0]), &side("new", fields[0])).unwrap();
            let top = diff.measure(&Query::default()).unwrap().top_of_runs(Sort::Flat).unwrap();
            let chance = top.summary.chance.unwrap();
            assert_eq!(format!("{:.3}", chance.rank_p.unwrap()), p, "{recorded} {line}");
            println!("{recorded} {}: ranks {p}, the model {:.3}", fields[0], chance.p.unwrap());
            compared += 1;
        }
    }
    assert_eq!(compared, 6);
}

/// With many runs, each stack has a fraction of a sample. The sum over all stacks must be kept.
#[test]
fn a_diff_written_from_many_runs_keeps_its_sums() {
    let mut random = Random(4);
    let mut sparse = |_: usize| {
        let all: Vec<(String, i64)> =
            (0..60).map(|i| (format!("f{i}"), i64::from(random.below(8) == 0))).filter(|(_, v)| *v > 0).collect();
        let all: Vec<(Vec<&str>, Vec<i64>)> =
            all.iter().map(|(name, v)| (vec!["main", name.as_str()], vec![*v])).collect();
        profile(&stacks(&[("samples", "count")], &all))
    };
    let (base, new): (Vec<_>, Vec<_>) = ((0..9).map(&mut sparse).collect(), (0..8).map(&mut sparse).collect());
    let diff = Diff::new(&base, &new).unwrap();
    let written = Diff::of_profile(&Arc::new(diff.to_profile(&Query::default()).unwrap())).unwrap();
    let total = |diff: &Diff| diff.measure(&Query::default()).unwrap().summary().total;
    assert!(total(&diff).base > 4);
    assert_eq!(total(&written), total(&diff));
}
