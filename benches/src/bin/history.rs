//! Measures how well a series detects lasting changes, on generated histories of 200 builds of a program with 2,000
//! functions. The histories contain steps, spikes, temporary changes, drifts, a renamed function and missing builds.
//!
//! `cargo run --release -p pprofdiff-benches --bin history` prints the table that benches/README.md and
//! docs/statistics.md summarize (lasting changes).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use pprofdiff::input::Source;
use pprofdiff::proto::{Function, Line, Location, Profile as Message, Sample, ValueType};
use pprofdiff::{Query, Sort};
use pprofdiff_benches::Random;
use pprofdiff_series::{Series, SeriesOptions, ShiftKind};
use prost::Message as _;
use rayon::prelude::*;

const BUILDS: usize = 200;
const FUNCTIONS: usize = 2_000;
const HISTORIES: u64 = 40;
/// The number of samples per build.
const SAMPLES: f64 = 20_000.0;

struct HistoryRandom(Random);

impl HistoryRandom {
    fn uniform(&mut self) -> f64 {
        ((self.0.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn poisson(&mut self, mean: f64) -> i64 {
        if mean > 50.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as i64;
        }
        let (mut p, limit, mut n) = (self.uniform(), (-mean).exp(), 0);
        while p > limit {
            p *= self.uniform();
            n += 1;
        }
        n
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }
}

/// A change that is planted into a function.
#[derive(Clone, Copy, PartialEq)]
enum Plant {
    Step(usize, f64),
    Passed(usize, usize, f64),
    /// A drift that starts at a build and reaches the factor at the last build.
    Drift(usize, f64),
    Spike(usize, f64),
}

impl Plant {
    fn factor(self, build: usize) -> f64 {
        match self {
            Plant::Step(start, factor) if build >= start => factor,
            Plant::Passed(start, until, factor) if (start..until).contains(&build) => factor,
            Plant::Drift(from, factor) => {
                1.0 + (factor - 1.0) * build.saturating_sub(from) as f64 / (BUILDS - 1 - from) as f64
            }
            Plant::Spike(start, factor) if build == start => factor,
            _ => 1.0,
        }
    }
}

fn name(function: usize) -> String {
    format!("part{}.f{function}", function % 37)
}

/// Returns the profiles of a history, and the planted changes by function name. Build numbers have gaps, because some
/// builds are missing.
fn history(seed: u64, tau: f64) -> (Vec<(String, Source)>, HashMap<String, Plant>) {
    let mut chance = HistoryRandom(Random(seed));
    let mut costs: Vec<f64> = (0..FUNCTIONS).map(|i| 1.0 / (1.0 + i as f64).powf(0.8)).collect();
    let all: f64 = costs.iter().sum();
    costs.iter_mut().for_each(|cost| *cost *= SAMPLES / all);
    let mut plants: HashMap<usize, Plant> = HashMap::new();
    let plant = |chance: &mut HistoryRandom,
                 plants: &mut HashMap<usize, Plant>,
                 make: &dyn Fn(&mut HistoryRandom) -> Plant| loop {
        let function = 3 + chance.below(300);
        if let Entry::Vacant(entry) = plants.entry(function) {
            entry.insert(make(chance));
            return function;
        }
    };
    let factor = |chance: &mut HistoryRandom| {
        let factor = 1.15 + chance.uniform() * 1.35;
        if chance.below(3) == 0 { 1.0 / factor } else { factor }
    };
    for _ in 0..4 {
        plant(&mut chance, &mut plants, &|c| Plant::Step(10 + c.below(BUILDS - 20), factor(c)));
    }
    for _ in 0..2 {
        plant(&mut chance, &mut plants, &|c| {
            let start = 10 + c.below(BUILDS - 60);
            Plant::Passed(start, start + 6 + c.below(30), factor(c))
        });
    }
    plant(&mut chance, &mut plants, &|c| Plant::Drift(0, 1.5 + c.uniform()));
    plant(&mut chance, &mut plants, &|c| Plant::Drift(20 + c.below(BUILDS - 60), 1.5 + c.uniform()));
    for _ in 0..5 {
        plant(&mut chance, &mut plants, &|c| Plant::Spike(c.below(BUILDS), 2.0 + 4.0 * c.uniform()));
    }
    // A function that changes its name at some build.
    let renamed = plant(&mut chance, &mut plants, &|c| Plant::Step(20 + c.below(BUILDS - 40), 0.0));
    let start = match plants[&renamed] {
        Plant::Step(start, _) => start,
        _ => 0,
    };
    let missing = [chance.below(BUILDS), chance.below(BUILDS)];
    let mut builds = Vec::new();
    for build in (0..BUILDS).filter(|build| !missing.contains(build)) {
        let length = (0.01 * chance.normal()).exp();
        let mut message =
            Message { string_table: vec![b"".to_vec(), b"samples".to_vec(), b"count".to_vec()], ..Message::default() };
        message.sample_type.push(ValueType { r#type: 1, unit: 2 });
        for (function, cost) in costs.iter().enumerate() {
            let planted = plants.get(&function).filter(|_| function != renamed).map_or(1.0, |p| p.factor(build));
            let differs = (tau * chance.normal()).exp();
            let n = chance.poisson(cost * planted * length * differs);
            if n == 0 {
                continue;
            }
            let id = function as u64 + 1;
            let recorded_name =
                if function == renamed && build >= start { format!("{}New", name(function)) } else { name(function) };
            message.string_table.push(recorded_name.into_bytes());
            message.function.push(Function { id, name: message.string_table.len() as i64 - 1, ..Function::default() });
            message.location.push(Location {
                id,
                line: vec![Line { function_id: id, ..Line::default() }],
                ..Location::default()
            });
            message.sample.push(Sample { location_id: vec![id], value: vec![n], ..Sample::default() });
        }
        let key = format!("{build:03}");
        builds.push((key.clone(), Source::Bytes(key, message.encode_to_vec())));
    }
    let mut by_name: HashMap<String, Plant> = plants.iter().map(|(f, p)| (name(*f), *p)).collect();
    by_name.insert(format!("{}New", name(renamed)), Plant::Step(start, f64::INFINITY));
    (builds, by_name)
}

/// Counts over histories.
#[derive(Default)]
struct Score {
    rows: usize,
    right: usize,
    of_kind: usize,
    planted: [usize; 3],
    found: [usize; 3],
    late: Vec<usize>,
    /// Drifts through all builds, and drifts that start later: planted and found.
    drifts: [[usize; 2]; 2],
    passed: [usize; 2],
    loading: f64,
    finding: f64,
}

/// Returns the logarithm of a step's factor, divided by the standard error of the difference between the means before
/// and after the step.
fn clearness(function: usize, start: usize, factor: f64, tau: f64) -> f64 {
    let all: f64 = (0..FUNCTIONS).map(|i| 1.0 / (1.0 + i as f64).powf(0.8)).sum();
    let cost = SAMPLES / all / (1.0 + function as f64).powf(0.8);
    let variance = |cost: f64| 1.0 / cost.max(0.5) + tau * tau;
    let (before, after) = (start as f64, (BUILDS - start) as f64);
    factor.ln().abs() / (variance(cost) / before + variance(cost * factor) / after).sqrt()
}

fn score(seed: u64, tau: f64) -> Score {
    let (builds, plants) = history(seed, tau);
    let begin = Instant::now();
    let series = Series::load(builds, &Query::default(), &SeriesOptions::default()).expect("a series");
    let loading = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let shifts = series.shifts(Sort::Flat);
    let mut score = Score { loading, finding: begin.elapsed().as_secs_f64(), ..Score::default() };
    let number = |build: usize| series.builds.all[build].key.parse::<usize>().expect("a number");
    let near = |a: usize, b: usize| a.abs_diff(b);
    for row in &shifts.rows {
        score.rows += 1;
        let Some(plant) = plants.get(&series.frames.name(row.frame)) else { continue };
        let (build, between) = (number(row.build), row.between.map(number));
        let is_near =
            |planted: usize| near(build, planted) <= 2 || (between[0] <= planted && planted <= between[1] + 1);
        let (is_right, is_of_kind) = match *plant {
            Plant::Step(planted, _) => (is_near(planted), row.kind == ShiftKind::Step),
            Plant::Passed(from, to, _) => (is_near(from) || is_near(to), row.kind == ShiftKind::Passed),
            Plant::Drift(..) => (true, row.kind == ShiftKind::Drift),
            Plant::Spike(..) => (false, false),
        };
        score.right += usize::from(is_right);
        score.of_kind += usize::from(is_right && is_of_kind);
    }
    for (name, plant) in &plants {
        let rows: Vec<_> = shifts.rows.iter().filter(|row| series.frames.name(row.frame) == *name).collect();
        match *plant {
            Plant::Step(start, factor) if factor.is_finite() && factor > 0.0 => {
                let function: usize = name.rsplit_once(".f").and_then(|(_, n)| n.parse().ok()).expect("a name");
                let clear = clearness(function, start, factor, tau);
                let class = if clear > 8.0 { 2 } else { usize::from(clear > 5.0) };
                score.planted[class] += 1;
                let nearest = rows.iter().map(|row| near(number(row.build), start)).min();
                if let Some(late) = nearest.filter(|late| *late <= 10) {
                    score.found[class] += 1;
                    score.late.push(late);
                }
            }
            Plant::Drift(from, _) => {
                let [planted, n_found] = &mut score.drifts[usize::from(from > 0)];
                *planted += 1;
                *n_found += usize::from(rows.iter().any(|row| row.kind == ShiftKind::Drift));
            }
            Plant::Passed(from, ..) => {
                score.passed[0] += 1;
                let is_found = |row: &&&pprofdiff_series::Shift| {
                    row.kind == ShiftKind::Passed && near(number(row.build), from) <= 3
                };
                score.passed[1] += usize::from(rows.iter().any(|row| is_found(&row)));
            }
            _ => {}
        }
    }
    score
}

fn main() {
    println!(
        "| tau | rows | right | right, and of its kind | steps found: clear by 8 sigma | 5 to 8 | less | date: exact, within 2 | drifts | that begin later | passed | loading, ms | finding, ms |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for tau in [0.02, 0.05, 0.1] {
        let scores: Vec<Score> = (0..HISTORIES).into_par_iter().map(|i| score(i * 7919 + 1, tau)).collect();
        let sum = |f: &dyn Fn(&Score) -> usize| scores.iter().map(f).sum::<usize>();
        let ratio = |n: usize, all: usize| format!("{n} of {all}");
        let rows = sum(&|s| s.rows);
        let late: Vec<usize> = scores.iter().flat_map(|s| s.late.iter().copied()).collect();
        let within =
            |max_distance: usize| 100 * late.iter().filter(|l| **l <= max_distance).count() / late.len().max(1);
        let found_ratio = |class: usize| ratio(sum(&|s| s.found[class]), sum(&|s| s.planted[class]));
        let mean = |f: fn(&Score) -> f64| 1e3 * scores.iter().map(f).sum::<f64>() / scores.len() as f64;
        println!(
            "| {tau} | {rows} | {:.1} % | {:.1} % | {} | {} | {} | {} %, {} % | {} | {} | {} | {:.0} | {:.0} |",
            100.0 * sum(&|s| s.right) as f64 / rows.max(1) as f64,
            100.0 * sum(&|s| s.of_kind) as f64 / rows.max(1) as f64,
            found_ratio(2),
            found_ratio(1),
            found_ratio(0),
            within(0),
            within(2),
            ratio(sum(&|s| s.drifts[0][1]), sum(&|s| s.drifts[0][0])),
            ratio(sum(&|s| s.drifts[1][1]), sum(&|s| s.drifts[1][0])),
            ratio(sum(&|s| s.passed[1]), sum(&|s| s.passed[0])),
            mean(|s| s.loading),
            mean(|s| s.finding),
        );
    }
}
