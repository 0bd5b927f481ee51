//! Tests of lasting changes along a history. Planted steps, temporary changes and drifts are found at their builds,
//! spikes and noise are not reported, and the reported values match the data.

use std::collections::BTreeMap;

use pprofdiff::{LoadOptions, Pair, Query, Sort, Source};
use pprofdiff_report::{Cell, Registry, Report, Request, Table, View};
use pprofdiff_series::{Against, Series, SeriesOptions, Shift, ShiftKind};
use prost::Message as _;

use crate::generated_series::Random;
use crate::synthetic::stacks;

const BUILDS: usize = 60;

/// Builds a history of 80 functions with roughly Poisson noise. `factor` multiplies the cost of a function in a build.
fn history(seed: u64, builds: usize, factor: impl Fn(usize, usize) -> f64) -> Vec<(String, Source)> {
    let mut random = Random(seed);
    let names: Vec<String> = (0..80).map(|i| format!("work.f{i:02}")).collect();
    let mut build = |build: usize| {
        let mut cost_of = |i: usize| {
            let mean = 800.0 / (1.0 + i as f64 / 8.0) * factor(i, build);
            let normal: f64 = (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
            (mean + normal * mean.sqrt()).round().max(0.0) as i64
        };
        let all: Vec<(Vec<&str>, Vec<i64>)> =
            names.iter().enumerate().map(|(i, name)| (vec!["main", name.as_str()], vec![cost_of(i)])).collect();
        let kept: Vec<_> = all.into_iter().filter(|(_, values)| values[0] != 0).collect();
        let key = format!("b{build:02}");
        (key.clone(), Source::Bytes(key, stacks(&[("samples", "count")], &kept).encode_to_vec()))
    };
    (0..builds).map(&mut build).collect()
}

fn series(builds: Vec<(String, Source)>, against: Against) -> Series {
    Series::load(builds, &Query::default(), &SeriesOptions::default().with_against(against)).unwrap()
}

fn shifts_by_name(series: &Series) -> BTreeMap<String, Vec<Shift>> {
    let mut shifts_by_name: BTreeMap<String, Vec<Shift>> = BTreeMap::new();
    for row in series.shifts(Sort::Flat).rows {
        shifts_by_name.entry(series.frames.name(row.frame)).or_default().push(row);
    }
    shifts_by_name
}

/// The planted changes: a step up, a step down, a temporary change, a drift, spikes at three builds, and a new
/// function.
fn planted_factor(function: usize, build: usize) -> f64 {
    match (function, build) {
        (3, 25..) => 1.4,
        (9, 40..) => 0.6,
        (14, 20..32) => 1.6,
        (20, _) => 1.0 + build as f64 / (BUILDS - 1) as f64,
        (5, 17) | (6, 0) | (7, 59) => 5.0,
        (30, ..35) => 0.0,
        _ => 1.0,
    }
}

#[test]
fn lasting_changes_are_found_where_they_began() {
    for seed in [1, 2, 3] {
        let series = series(history(seed, BUILDS, planted_factor), Against::Previous);
        let shifts_by_name = shifts_by_name(&series);
        let names: Vec<&str> = shifts_by_name.keys().map(String::as_str).collect();
        let expected = ["work.f03", "work.f09", "work.f14", "work.f20", "work.f30"];
        assert_eq!(names.iter().filter(|name| expected.contains(name)).count(), expected.len(), "{seed}: {names:?}");
        // The false discovery rate is 5%: one reported change in twenty may be noise.
        assert!(names.len() <= expected.len() + 1, "{seed}: {names:?}");
        let one = |name: &str| match &shifts_by_name[name][..] {
            [one] => *one,
            rows => panic!("{seed} {name}: {rows:?}"),
        };
        for (name, kind, build, until, ratio) in [
            ("work.f03", ShiftKind::Step, 25, None, 1.4),
            ("work.f09", ShiftKind::Step, 40, None, 0.6),
            ("work.f14", ShiftKind::Passed, 20, Some(32), 1.6),
            ("work.f20", ShiftKind::Drift, 0, Some(59), 2.0),
        ] {
            let shift = one(name);
            assert_eq!(shift.kind, kind, "{seed} {name}: {shift:?}");
            assert!(shift.build.abs_diff(build) <= 1, "{seed} {name}: {shift:?}");
            assert!(shift.between[0] <= build && build <= shift.between[1], "{seed} {name}: {shift:?}");
            match (shift.until, until) {
                (Some(a), Some(b)) => assert!(a.abs_diff(b) <= 1, "{seed} {name}: {shift:?}"),
                (a, b) => assert_eq!(a, b, "{seed} {name}"),
            }
            let Pair { base, new } = shift.value;
            let grown = new as f64 / base as f64;
            assert!((grown / ratio).ln().abs() < 0.1, "{seed} {name}: {grown} and not {ratio}");
            let delta = shift.value.delta() as f64;
            assert!(shift.interval[0] < delta && delta < shift.interval[1] && shift.q <= 0.05, "{shift:?}");
            // The interval excludes zero: its end nearer to zero shows how clear the change is.
            assert!(shift.interval[0].signum() == shift.interval[1].signum(), "{shift:?}");
        }
        let new = one("work.f30");
        assert_eq!((new.kind, new.build, new.value.base), (ShiftKind::Step, 35, 0));
        // Rows are sorted by the size of the change, also in the table.
        let rows = series.shifts(Sort::Flat);
        assert!(rows.rows.is_sorted_by_key(|s| std::cmp::Reverse(s.value.delta().unsigned_abs())));
        let table = Table::shifts(&rows, usize::MAX, &[]);
        assert_eq!(table.values("before")[0], rows.rows[0].value.base);
        let mut text = Vec::new();
        table.write_text(&mut text, Default::default()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(" passed ") && text.contains(" drift "), "{text}");
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn equal_builds_have_no_lasting_changes() {
    // With no planted change, one history in twenty may have a row, with many samples as with few.
    for few in [1.0, 0.1] {
        let with_rows = (100..200)
            .filter(|&seed| !shifts_by_name(&series(history(seed, 40, |_, _| few), Against::Previous)).is_empty());
        let with_rows = with_rows.count();
        assert!(with_rows <= 5, "{with_rows} of a hundred, at {few}");
    }
}

/// A kind of noise for one function. Its standard deviation is about 1.
#[derive(Clone, Copy, Debug)]
enum NoiseKind {
    /// Independent for each build.
    Free,
    /// A first-order autoregression with coefficient 0.7.
    Lasting,
    /// A daily cycle.
    Wave,
    /// Student's t with two degrees of freedom.
    Heavy,
}

impl NoiseKind {
    fn course(self, random: &mut Random, builds: usize) -> Vec<f64> {
        let normal = |random: &mut Random| (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
        let phase = random.below(628) as f64 / 100.0;
        let period = [8.0, 12.0, 24.0][random.below(3) as usize];
        let mut last = normal(random) / 0.51f64.sqrt();
        let one = |build: usize| match self {
            NoiseKind::Free => normal(random),
            NoiseKind::Lasting => {
                last = 0.7 * last + normal(random);
                last
            }
            NoiseKind::Wave => {
                1.4 * (phase + std::f64::consts::TAU * build as f64 / period).sin() + 0.3 * normal(random)
            }
            NoiseKind::Heavy => {
                let wide = (normal(random).powi(2) + normal(random).powi(2)) / 2.0;
                (normal(random) / wide.sqrt().max(1e-3)).clamp(-60.0, 60.0)
            }
        };
        (0..builds).map(one).collect()
    }
}

/// Builds a history of 40 builds and 20 functions with many samples. Each function varies by 5% on its own, and by the
/// noise that all have in common. `factor` works as in [`history`].
fn wandering(
    seed: u64,
    own_kind: NoiseKind,
    common: Option<NoiseKind>,
    factor: impl Fn(usize, usize) -> f64,
) -> Series {
    const BUILDS: usize = 40;
    let mut random = Random(seed);
    let costs: Vec<f64> = (0..20).map(|_| 10f64.powf(6.5 + 2.5 * random.below(1000) as f64 / 1e3)).collect();
    let courses: Vec<Vec<f64>> = (0..20).map(|_| own_kind.course(&mut random, BUILDS)).collect();
    let common = common.map_or(vec![0.0; BUILDS], |common| common.course(&mut random, BUILDS));
    let build = |build: usize| {
        let value = |i: usize| {
            let noise = 0.05 * (courses[i][build] + common[build]);
            (costs[i] * noise.exp() * factor(i, build)).max(1.0) as i64
        };
        let text: String = (0..20).map(|i| format!("main;g{};f{i} {}\n", i % 4, value(i))).collect();
        (format!("{build:02}"), Source::Bytes(format!("{build:02}.folded"), text.into_bytes()))
    };
    series((0..BUILDS).map(build).collect(), Against::Previous)
}

/// A machine that is slower for some builds, and noise with wide tails, are not lasting changes: one history in twenty
/// may have a row. `PPROFDIFF_SEED` selects other histories.
#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn wandering_and_heavy_tailed_noise_is_not_a_lasting_change() {
    let begin: u64 = std::env::var("PPROFDIFF_SEED").map_or(1000, |seed| seed.parse().unwrap());
    for (own_kind, common) in [
        (NoiseKind::Free, Some(NoiseKind::Lasting)),
        (NoiseKind::Free, Some(NoiseKind::Wave)),
        (NoiseKind::Lasting, None),
        (NoiseKind::Wave, None),
        (NoiseKind::Heavy, None),
    ] {
        let is_false = |seed: &u64| !wandering(*seed, own_kind, common, |_, _| 1.0).shifts(Sort::Cum).rows.is_empty();
        let with_rows = (begin..begin + 100).filter(is_false).count();
        println!("{own_kind:?}, in common {common:?}: {with_rows} of a hundred");
        assert!(with_rows <= 5, "{own_kind:?}, in common {common:?}: {with_rows} of a hundred");
    }
}

/// Steps are found despite such noise: a step of one function on a machine that varies, and a step of all functions.
#[test]
fn steps_are_found_despite_wandering_noise() {
    for (common, factor, functions, min_found) in
        [(None, 1.15, 3..4, 16), (Some(NoiseKind::Lasting), 1.2, 3..4, 16), (Some(NoiseKind::Free), 1.3, 0..20, 16)]
    {
        let step = |i: usize, build: usize| if functions.contains(&i) && build >= 18 { factor } else { 1.0 };
        let is_found = |seed: &u64| {
            let series = wandering(*seed, NoiseKind::Free, common, step);
            let rows = series.shifts(Sort::Cum).rows;
            // A step of all functions is reported for the total.
            let expected_name = if functions.len() > 1 { "main" } else { "f3" };
            rows.iter().any(|row| series.frames.name(row.frame) == expected_name && row.build.abs_diff(18) <= 3)
        };
        let shifts_by_name = (1..=20).filter(is_found).count();
        assert!(shifts_by_name >= min_found, "{common:?} {factor}: {shifts_by_name} of 20");
    }
}

/// A step that is spread over many small functions changes no own cost lastingly, but the default answer states it. The
/// same history without the step has no such warning.
#[test]
fn a_step_of_the_total_is_stated_if_no_frame_shows_it() {
    let many = |factor: f64| {
        let mut random = Random(31);
        let build = move |build: usize| {
            let mut all: Vec<(Vec<String>, Vec<i64>)> = Vec::new();
            for i in 0..300 {
                let mean = 3.0 * if build >= 18 && i < 200 { factor } else { 1.0 };
                let value = (0..12).map(|_| random.below(1000) as f64 / 1000.0).sum::<f64>() - 6.0;
                let value = (mean + value * mean.sqrt()).round().max(0.0) as i64;
                let callers: &[&str] = match i {
                    0..200 => &["main", "router", "serve"],
                    200..220 => &["main", "router"],
                    _ => &["main", "idle"],
                };
                let stack = callers.iter().map(|name| (*name).to_owned()).chain([format!("f{i:03}")]).collect();
                all.push((stack, vec![value]));
            }
            let all: Vec<(Vec<&str>, Vec<i64>)> = all
                .iter()
                .filter(|(_, values)| values[0] > 0)
                .map(|(stack, values)| (stack.iter().map(String::as_str).collect(), values.clone()))
                .collect();
            let key = format!("b{build:02}");
            (key.clone(), Source::Bytes(key, stacks(&[("samples", "count")], &all).encode_to_vec()))
        };
        series((0..36).map(build).collect(), Against::Previous)
    };
    let stepped = many(1.25);
    let shifts = stepped.shifts(Sort::Flat);
    let warnings = shifts.summary.warnings.join("\n");
    assert!(shifts.rows.is_empty(), "{:?}", shifts.rows);
    assert!(warnings.contains("the total changed lastingly since b18"), "{warnings}");
    assert!(warnings.contains("by cum, serve changed lastingly since b18"), "{warnings}");
    // The callers changed, too.
    assert!(warnings.contains(", and 2 other frames; sort by cum"), "{warnings}");
    // By cum, the rows show it.
    assert_eq!(stepped.shifts(Sort::Cum).summary.warnings, [] as [&str; 0]);
    let warnings = &many(1.0).shifts(Sort::Flat).summary.warnings;
    assert_eq!(warnings, &[] as &[&str]);
    // The rows explain the change of the total here.
    let one = |i: usize, build: usize| if i == 3 && build >= 18 { 1.6 } else { 1.0 };
    let shifts = series(history(2, 36, one), Against::Previous).shifts(Sort::Flat);
    assert!(!shifts.rows.is_empty() && shifts.summary.warnings.is_empty(), "{:?}", shifts.summary.warnings);
}

/// Text has both ends of the interval of each change.
#[test]
fn text_shows_both_ends_of_an_interval() {
    let one = |i: usize, build: usize| if i == 3 && build >= 18 { 1.6 } else { 1.0 };
    let shifts = series(history(2, 36, one), Against::Previous).shifts(Sort::Flat);
    let mut text = Vec::new();
    Table::shifts(&shifts, usize::MAX, &[]).write_text(&mut text, Default::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    for shift in &shifts.rows {
        let [low, high] = shift.interval.map(|end| end.round() as i64);
        assert!(low < shift.value.delta() && shift.value.delta() < high, "{shift:?}");
        assert!(text.contains(&format!("  {low:+}..{high:+}  ")), "{low} {high}: {text}");
    }
    assert!(!shifts.rows.is_empty());
}

/// The interval of a step has the model of its q-value. For a function that varies by much between builds, the interval
/// therefore excludes 0 as well, although the standard error of the last three builds is as large as the step.
#[test]
fn intervals_of_clear_steps_exclude_zero() {
    let mut n_steps = 0;
    for seed in 0..20 {
        let mut random = Random(seed);
        let build = |build: usize| {
            let mut cost = |mean: f64, deviation: f64| {
                let normal = (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
                (mean * (deviation * normal).exp()).round() as i64
            };
            let wild = cost(if build < 57 { 200.0 } else { 8000.0 }, 1.0);
            let all = [(vec!["main", "wild"], vec![wild]), (vec!["main", "calm"], vec![cost(5000.0, 0.02)])];
            let key = format!("b{build:02}");
            (key.clone(), Source::Bytes(key, stacks(&[("samples", "count")], &all).encode_to_vec()))
        };
        let series = series((0..BUILDS).map(build).collect(), Against::Previous);
        for shift in series.shifts(Sort::Flat).rows.iter().filter(|shift| shift.kind != ShiftKind::Drift) {
            let [low, high] = shift.interval;
            let delta = shift.value.delta() as f64;
            assert!(low <= delta + 1.0 && delta - 1.0 <= high, "{seed}: {shift:?}");
            assert!(shift.q > 1e-3 || low.signum() == high.signum(), "{seed}: {shift:?}");
            n_steps += 1;
        }
    }
    assert!(n_steps >= 10, "{n_steps}");
}

#[test]
fn failed_builds_are_skipped() {
    let mut builds = history(4, BUILDS, planted_factor);
    builds[24].1 = Source::Bytes("broken".to_owned(), b"\x1f\x8b broken".to_vec());
    let series = series(builds, Against::Previous);
    assert_eq!(series.errors().len(), 1);
    let shift = shifts_by_name(&series)["work.f03"][0];
    assert!(shift.build == 25 && series.builds.all[shift.build].key == "b25", "{shift:?}");
    // The change may have come with the failed build.
    assert!(shift.between[0] <= 24, "{shift:?}");
}

#[test]
fn too_few_builds_or_a_fixed_base_report_no_shift() {
    let step = |_: usize, build: usize| if build > 2 { 3.0 } else { 1.0 };
    assert!(shifts_by_name(&series(history(5, 5, step), Against::Previous)).is_empty());
    assert!(shifts_by_name(&series(history(5, 30, step), Against::First)).is_empty());
    // With three builds on each side, a large change is reported.
    let small = shifts_by_name(&series(history(5, 6, step), Against::Previous));
    assert!(small["work.f00"].len() == 1 && small["work.f00"][0].build == 3, "{small:?}");
}

/// Heap snapshots: a leak grows by about the same amount in each snapshot, a cache is filled once.
#[test]
fn a_leak_is_a_drift_and_a_cache_a_step() {
    let mut random = Random(8);
    let mut snapshot = |i: i64| {
        let mut near = |bytes: i64| bytes + (random.below(60_000) as i64 - 30_000);
        let all = [
            (vec!["main", "main.leakSession"], vec![near(1_000_000 + 970_000 * i)]),
            (vec!["main", "main.fillCache"], vec![near(if i < 6 { 2_000_000 } else { 9_000_000 })]),
            (vec!["main", "main.buffers"], vec![near(5_000_000)]),
        ];
        let key = format!("{i:02}");
        (key.clone(), Source::Bytes(key, stacks(&[("inuse_space", "bytes")], &all).encode_to_vec()))
    };
    let series = series((0..12).map(&mut snapshot).collect(), Against::Previous);
    let shifts_by_name = shifts_by_name(&series);
    assert_eq!(shifts_by_name.keys().map(String::as_str).collect::<Vec<_>>(), ["main.fillCache", "main.leakSession"]);
    let (leak, cache) = (shifts_by_name["main.leakSession"][0], shifts_by_name["main.fillCache"][0]);
    assert_eq!((leak.kind, cache.kind, cache.build), (ShiftKind::Drift, ShiftKind::Step, 6));
    // Eleven steps of 0.97 MB.
    assert!((leak.value.delta() - 11 * 970_000).abs() < 150_000, "{leak:?}");
    assert!(leak.interval[0] < 10_670_000.0 && 10_670_000.0 < leak.interval[1], "{leak:?}");
    assert!(leak.interval[1] - leak.interval[0] < 400_000.0, "{leak:?}");
}

/// A function that grows by exactly the same amount in each build has no spikes at the ends, and no step.
#[test]
fn exactly_linear_growth_is_one_drift() {
    for [first, step] in [[1000, 1000], [0, 1000], [100, 1000], [20_000, -1600]] {
        let build = |i: i64| {
            let text = format!("main;leak {}\nmain;rest 5000\n", first + step * i);
            (i.to_string(), Source::Bytes(format!("{i}.folded"), text.into_bytes()))
        };
        let series = series((0..10).map(build).collect(), Against::Previous);
        let shifts_by_name = shifts_by_name(&series);
        let [one] = shifts_by_name["leak"][..] else { panic!("{first} {step}: {shifts_by_name:?}") };
        assert_eq!((one.kind, one.build, one.until), (ShiftKind::Drift, 0, Some(9)), "{one:?}");
        let near = |a: i64, b: i64| assert!((a - b).abs() <= 1, "{one:?}");
        near(one.value.base, first);
        near(one.value.new, first + step * 9);
        assert!(one.interval[0] < one.interval[1] - 1.0, "{one:?}");
    }
}

/// Goroutines of a server that leaks and restarts: the fall is at the first build after the restart, and its share refers
/// to the totals before the fall.
#[test]
fn a_sawtooth_falls_at_its_first_low_build() {
    for first in [7, 8, 9, 11] {
        let build = |i: i64| {
            let waiting = 3 * (1 + if i < first { i } else { i - first });
            let all = [(vec!["main", "park"], vec![waiting]), (vec!["main", "serve"], vec![1])];
            let key = format!("{i:02}");
            (key.clone(), Source::Bytes(key, stacks(&[("goroutine", "count")], &all).encode_to_vec()))
        };
        let series = series((0..first + 3).map(build).collect(), Against::Previous);
        let shifts_by_name = shifts_by_name(&series);
        // A growth that disappears again ends with the fall.
        let fall = |shift: &Shift| match shift.kind {
            ShiftKind::Passed => shift.until,
            _ => (shift.value.delta() < 0).then_some(shift.build),
        };
        let rows = &shifts_by_name["park"];
        assert_eq!(rows.iter().filter_map(fall).collect::<Vec<_>>(), [first as usize], "{rows:?}");
        for shift in rows {
            assert!((shift.total_before - shift.value.base - 1).abs() <= 1, "{shift:?}");
            if shift.kind == ShiftKind::Step && shift.value.delta() < 0 {
                assert_eq!((shift.between, shift.value.new), ([first as usize; 2], 6), "{shift:?}");
            }
        }
    }
}

/// A leak that starts at a build: constant before it, growing in each build after it.
#[test]
fn a_drift_may_begin_in_the_middle() {
    for (seed, begin) in [(1, 20), (2, 35), (3, 45)] {
        let factor =
            |i: usize, build: usize| if i == 4 { 1.0 + 0.08 * build.saturating_sub(begin) as f64 } else { 1.0 };
        let series = series(history(seed, BUILDS, factor), Against::Previous);
        let shifts_by_name = shifts_by_name(&series);
        let one = match &shifts_by_name["work.f04"][..] {
            [one] => *one,
            rows => panic!("{seed}: {rows:?}"),
        };
        assert_eq!((one.kind, one.until), (ShiftKind::Drift, Some(BUILDS - 1)), "{seed}: {one:?}");
        assert!(one.build.abs_diff(begin + 1) <= 3, "{seed}: {one:?}");
        assert!(one.between[0] <= begin + 1 && begin < one.between[1] + 1, "{seed}: {one:?}");
        let mean = 800.0 / (1.0 + 4.0 / 8.0);
        let grown = 0.08 * (BUILDS - 1 - begin) as f64 * mean;
        assert!((one.value.base as f64 / mean - 1.0).abs() < 0.05, "{seed}: {one:?}");
        assert!((one.value.delta() as f64 / grown - 1.0).abs() < 0.1, "{seed}: {one:?}");
        assert!(one.interval[0] < grown && grown < one.interval[1], "{seed}: {one:?} {grown}");
    }
}

/// Users look at the newest builds most. A step at the last two builds has its full size, also if it follows a build
/// that failed to measure anything.
#[test]
fn steps_at_the_end_have_their_size() {
    let late = series(history(6, BUILDS, |i, build| if i == 2 && build >= 58 { 3.0 } else { 1.0 }), Against::Previous);
    let shift = shifts_by_name(&late)["work.f02"][0];
    assert_eq!(shift.build, 58);
    let grown = shift.value.new as f64 / shift.value.base as f64;
    assert!((grown / 3.0 - 1.0).abs() < 0.1, "{shift:?}");
    let dropped = |i: usize, build: usize| match (i, build) {
        (2, 29) => 0.0,
        (2, 30..) => 3.0,
        _ => 1.0,
    };
    let dropped = series(history(7, BUILDS, dropped), Against::Previous);
    let rows = &shifts_by_name(&dropped)["work.f02"];
    assert!(rows.len() == 1 && rows[0].build.abs_diff(30) <= 1, "{rows:?}");
}

/// Two simultaneous steps, a temporary change that began just before them, and a drift.
fn simultaneous_factor(function: usize, build: usize) -> f64 {
    match (function, build) {
        (3 | 9, 25..) => 1.6,
        (14, 15..32) => 1.8,
        (20, _) => 1.0 + build as f64 / (BUILDS - 1) as f64,
        _ => 1.0,
    }
}

#[test]
fn simultaneous_changes_share_one_change_point() {
    let series = series(history(7, BUILDS, simultaneous_factor), Against::Previous);
    let shifts = series.shifts(Sort::Flat);
    let points = series.change_points(&shifts, 100);
    let names = |rows: &[usize]| {
        let mut names: Vec<String> = rows.iter().map(|&row| shifts.frames.name(shifts.rows[row].frame)).collect();
        names.sort();
        names
    };
    let point_at = |build: usize| points.iter().find(|point| point.build == build).unwrap();
    assert_eq!(names(&point_at(25).rows), ["work.f03", "work.f09"]);
    assert_eq!(names(&point_at(15).rows), ["work.f14"]);
    // No side contains another change, in either direction. The end of a temporary change counts as a change.
    assert_eq!(point_at(15).sides, [(0..15).collect::<Vec<_>>(), (15..25).collect()]);
    assert_eq!(point_at(25).sides, [(15..25).collect::<Vec<_>>(), (25..32).collect()]);
    // A drift compares its first builds with its last builds.
    assert_eq!(names(&point_at(59).rows), ["work.f20"]);
    assert_eq!(point_at(59).sides, [(0..30).collect::<Vec<_>>(), (30..60).collect()]);
    // With a smaller limit, the nearest runs are used.
    let points = series.change_points(&shifts, 4);
    let near = points.iter().find(|point| point.build == 25).unwrap();
    assert_eq!(near.sides, [vec![21, 22, 23, 24], vec![25, 26, 27, 28]]);
    // The largest change belongs to the first row.
    let largest = series.largest_change(Sort::Flat, 4).unwrap();
    assert!(largest.rows.contains(&0) && points.contains(&largest), "{largest:?}");
}

#[test]
fn each_lasting_change_has_its_own_cause() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-shifts-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut paths = Vec::new();
    for (i, (key, source)) in history(7, BUILDS, simultaneous_factor).into_iter().enumerate() {
        let Source::Bytes(_, mut bytes) = source else { panic!("{key} has no bytes") };
        // A function is renamed from some build onwards.
        let offset = bytes.windows(8).position(|name| name == b"work.f01").unwrap();
        bytes[offset..offset + 8].copy_from_slice(if i < 45 { b"work.f01" } else { b"work.fXX" });
        let path = dir.join(format!("{key}.pb"));
        std::fs::write(&path, bytes).unwrap();
        paths.push((key, Source::Path(path)));
    }
    let series = series(paths, Against::Previous);
    let view = |explain| View::Shifts { sort: Sort::Flat, limit: Some(6), explain };
    let table = |view| match Request::default().asking(view).answer_series(&series, &LoadOptions::default()).unwrap() {
        Report::Table(table) => table,
        _ => panic!("no table"),
    };
    let causes = table(view(Some(Default::default())));
    assert_eq!(causes.len(), 6);
    let text = |table: &Table, column: &str, row: usize| match table.column(column).unwrap().cell(row) {
        Cell::Text(text) => Some(text.to_owned()),
        _ => None,
    };
    for row in 0..causes.len() {
        let (name, cause) = (text(&causes, "name", row).unwrap(), text(&causes, "cause", row).unwrap());
        assert!(cause.contains(&name), "{name}: {cause}");
        let moved = ["work.f01", "work.fXX"];
        assert_eq!(moved.iter().all(|name| cause.contains(name)), moved.contains(&name.as_str()), "{name}: {cause}");
    }
    // Text output shows the explanation of each build with changes once.
    let mut out = Vec::new();
    causes.write_text(&mut out, Default::default()).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.matches("\nexplain: b").count(), 4, "{out}");
    assert!(out.contains("\n1. work.f03 ") && out.contains("\nwork.fXX replaces work.f01 inside main: "), "{out}");
    let without = table(view(None));
    assert!((0..6).all(|row| text(&without, "cause", row).is_none()));
    // The page has the graphs of each change point. Its text for a build equals the table's.
    let registry = Registry::standard().with(&pprofdiff_page::ALL);
    let html = registry.format("html").unwrap();
    let request = Request::default().asking(View::Shifts { sort: Sort::Flat, limit: None, explain: None });
    let report = request.for_format(html, &registry).unwrap().answer_series(&series, &LoadOptions::default()).unwrap();
    let mut page = Vec::new();
    html.write(&report, &mut page, Default::default()).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(["b15", "b25", "b59"].iter().all(|key| page.contains(&format!("{key} #"))), "points are missing");
    std::fs::remove_dir_all(&dir).unwrap();
    let error = series.diff(&series.ends(2).unwrap(), &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("b00.pb"), "{error}");
}

/// A function that merely runs near the change does not share its cause. A function below the changed call does.
#[test]
fn the_cause_of_a_row_lies_on_its_own_stacks() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-below-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let build = |i: usize| {
        let (calls, other) = if i < 20 { (500, 300) } else { (1500, 340) };
        let noise = |k: usize| (i * 7 + k * 5) % 9;
        let mut text = format!("main;call;leaf {}\nmain;call {}\n", 2 * calls + noise(1), calls + noise(2));
        text.push_str(&format!("main;unrelated {}\n", other + noise(3)));
        (0..30).for_each(|k| text.push_str(&format!("main;f{k} {}\n", 900 + noise(k))));
        let path = dir.join(format!("{i:02}.folded"));
        std::fs::write(&path, text).unwrap();
        (i.to_string(), Source::Path(path))
    };
    let series = series((0..40).map(build).collect(), Against::Previous);
    let view = View::Shifts { sort: Sort::Flat, limit: None, explain: Some(Default::default()) };
    let report = Request::default().asking(view).answer_series(&series, &LoadOptions::default()).unwrap();
    let Report::Table(table) = report else { panic!("no table") };
    let text = |column: &str, row: usize| match table.column(column).unwrap().cell(row) {
        Cell::Text(text) => text.to_owned(),
        _ => String::new(),
    };
    let causes: BTreeMap<String, String> =
        (0..table.len()).map(|row| (text("name", row), text("cause", row))).collect();
    assert!(causes["leaf"].contains("call"), "{causes:?}");
    assert!(!causes["unrelated"].contains("main calls call"), "{causes:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_dense_table_has_each_build_with_each_frame() {
    let mut builds = history(4, 8, |function, build| f64::from(function != 3 || build > 4));
    builds[2].1 = Source::Bytes("broken".to_owned(), b"\x1f\x8b broken".to_vec());
    let series = series(builds, Against::Previous);
    let (sparse, dense) = (Table::values_of(&series), Table::dense_values_of(&series).unwrap());
    assert_eq!(dense.len(), 7 * series.frames.len());
    let rows = |table: &Table| -> BTreeMap<(i128, String), [i64; 2]> {
        let cell = |column: &str, row: usize| match table.column(column).unwrap().cell(row) {
            Cell::Int(number) => (number, String::new()),
            Cell::Text(text) => (0, text.to_owned()),
            _ => (0, String::new()),
        };
        let row = |row: usize| {
            let key = (cell("build_number", row).0, cell("name", row).1);
            assert_eq!(cell("build", row).1, format!("b{:02}", key.0));
            (key, [table.values("flat")[row], table.values("cum")[row]])
        };
        (0..table.len()).map(row).collect()
    };
    let (sparse, mut dense) = (rows(&sparse), rows(&dense));
    assert_eq!(dense.len(), 7 * series.frames.len());
    assert_eq!(dense[&(1, "work.f03".to_owned())], [0, 0]);
    dense.retain(|key, values| sparse.contains_key(key) || *values != [0, 0]);
    assert_eq!(dense, sparse);
}
