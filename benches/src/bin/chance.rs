//! Measures the rate of failed checks of equal builds, and the detection of true changes by checks and by explain. The
//! input is a set of profiles of one binary, recorded by `benches/chance/record`.
//!
//! `cargo run --release -p pprofdiff-benches --bin chance [DIRECTORY [fleet]]` prints the numbers that
//! docs/statistics.md summarizes, or only the numbers of fleets.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pprofdiff::check::{CheckPolicy, Outcome, Rules};
use pprofdiff::proto::Profile as Message;
use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort, WriteOptions};
use pprofdiff_benches::Random;
use pprofdiff_explain::{Cause, ExplainOptions};
use prost::Message as _;
use rayon::prelude::*;

/// The number of comparisons of equal builds for each rule and number of runs.
const TRIES: u64 = 1000;
/// The number of comparisons with a true change for each growth, tau and number of runs.
const TRIES_OF_POWER: u64 = 100;
/// The number of samples of a generated run.
const SAMPLES: f64 = 5000.0;
/// The share of the frame that becomes more expensive.
const SHARE: f64 = 0.1;
/// The same share in a fleet with one run per machine.
const SHARE_OF_FLEET: f64 = 0.01;
/// The number of comparisons of fleets for each growth and number of machines.
const TRIES_OF_FLEET: u64 = 20;
/// The minimum effect of a cause in a fleet. The default of explain is 0.002.
const LEAST_OF_FLEET: f64 = 0.0002;

/// Deterministic random numbers between 0 and 1.
struct RunRandom(Random);

impl RunRandom {
    fn of(seed: u64) -> RunRandom {
        RunRandom(Random(seed))
    }

    fn next(&mut self) -> f64 {
        ((self.0.bits() >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.next().ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }

    fn poisson(&mut self, mean: f64) -> i64 {
        let (mut p, limit, mut n) = (self.next(), (-mean.min(500.0)).exp(), 0);
        while p > limit {
            p *= self.next();
            n += 1;
        }
        n
    }

    /// Returns `n` random elements of a list.
    fn choose<T: Clone>(&mut self, all: &[T], n: usize) -> Vec<T> {
        let mut all = all.to_vec();
        for i in 0..n {
            let j = i + (self.next() * (all.len() - i) as f64) as usize;
            all.swap(i, j);
        }
        all.truncate(n);
        all
    }
}

/// Formats a rate in percent with its 95 % interval (Wilson 1927).
fn rate(n: usize, trials: usize) -> String {
    let (n, trials, z) = (n as f64, trials as f64, 1.96);
    let p = n / trials;
    let middle = (p + z * z / (2.0 * trials)) / (1.0 + z * z / trials);
    let half = z * (p * (1.0 - p) / trials + z * z / (4.0 * trials * trials)).sqrt() / (1.0 + z * z / trials);
    format!("{:.1} ({:.1} to {:.1})", 100.0 * p, 100.0 * (middle - half).max(0.0), 100.0 * (middle + half))
}

fn check(rule: &str, strict: bool, base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Outcome {
    let mut rules = Rules::default();
    rules.fail_on(rule).expect("a rule");
    rules.policy = CheckPolicy::default().with_strict(strict);
    let diff = Diff::new(base, new).expect("profiles of one program");
    pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default()).expect("a check").verdict
}

fn false_failures(title: &str, all: &[Arc<Profile>], rules: &[&str]) {
    println!(
        "\nEqual builds, {title}: failures in percent (95 % interval), inconclusive, and failures by limits alone\n"
    );
    println!("| rule | runs a side | fails | inconclusive | `--strict` fails |\n|---|---:|---:|---:|---:|");
    for rule in rules {
        for m in [1, 2, 3, 5, 8] {
            let outcomes: Vec<(Outcome, Outcome)> = (0..TRIES)
                .into_par_iter()
                .map(|i| {
                    let chosen = RunRandom::of(i * 7919 + m as u64).choose(all, 2 * m);
                    let (base, new) = chosen.split_at(m);
                    (check(rule, false, base, new), check(rule, true, base, new))
                })
                .collect();
            let count = |outcome: Outcome| outcomes.iter().filter(|(o, _)| *o == outcome).count();
            let strict = outcomes.iter().filter(|(_, o)| *o == Outcome::Fail).count();
            let n = outcomes.len();
            let (fails, unsure) = (rate(count(Outcome::Fail), n), 100 * count(Outcome::Inconclusive) / n);
            println!("| `{rule}` | {m} | {fails} | {unsure} | {} |", 100 * strict / n);
        }
    }
}

/// Prints the number of rows in significance-filtered tables of equal builds, and how often a table has any row.
fn false_rows(all: &[Arc<Profile>]) {
    println!("\nEqual builds, CPU: tables with significant rows in percent (95 % interval), and rows of a table\n");
    println!("| rows by | runs a side | tables | rows |\n|---|---:|---:|---:|");
    for (name, sort) in [("flat", Sort::Flat), ("cum", Sort::Cum)] {
        for m in [1, 2, 3, 5, 8] {
            let row_counts: Vec<usize> = (0..TRIES)
                .into_par_iter()
                .map(|i| {
                    let chosen = RunRandom::of(i * 7919 + m as u64).choose(all, 2 * m);
                    let (base, new) = chosen.split_at(m);
                    let diff = Diff::new(base, new).expect("profiles of one program");
                    let measure = diff.measure(&Query::default()).expect("a measure");
                    let mut top = measure.top_of_runs(sort).expect("two sides");
                    top.retain_significant();
                    top.rows.len()
                })
                .collect();
            let any = row_counts.iter().filter(|rows| **rows > 0).count();
            let rows = row_counts.iter().sum::<usize>() as f64 / row_counts.len() as f64;
            println!("| {name} | {m} | {} | {rows:.2} |", rate(any, row_counts.len()));
        }
    }
}

/// The merged profile of all recordings. Simulated runs are drawn from its samples.
struct RecordedModel {
    message: Message,
    column: usize,
    total: f64,
    /// The leaf function of each sample.
    leaf: Vec<u64>,
    /// True for each sample with the frame that becomes more expensive.
    is_dearer: Vec<bool>,
    share: f64,
    name: String,
}

impl RecordedModel {
    /// Creates the model. The frame closest to `target_share` becomes more expensive.
    fn new(all: &[Arc<Profile>], target_share: f64) -> RecordedModel {
        let merged = pprofdiff::merge(&all.iter().map(|p| &**p).collect::<Vec<_>>()).expect("one program");
        let bytes = merged.to_bytes(&WriteOptions::default().with_compression(pprofdiff::Compression::None));
        let message = Message::decode(&bytes.expect("bytes")[..]).expect("a profile");
        let column = 0;
        let total: i64 = message.sample.iter().map(|s| s.value[column]).sum();
        let functions: HashMap<u64, Vec<u64>> =
            message.location.iter().map(|l| (l.id, l.line.iter().map(|line| line.function_id).collect())).collect();
        let stack = |i: usize| message.sample[i].location_id.iter().flat_map(|l| &functions[l]).copied();
        let mut cum: HashMap<u64, i64> = HashMap::new();
        for (i, sample) in message.sample.iter().enumerate() {
            let mut seen: Vec<u64> = stack(i).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.into_iter().for_each(|f| *cum.entry(f).or_default() += sample.value[column]);
        }
        let far = |v: i64| (v as f64 / total as f64 - target_share).abs();
        let names: HashMap<u64, String> = message
            .function
            .iter()
            .map(|f| (f.id, String::from_utf8_lossy(&message.string_table[f.name as usize]).into_owned()))
            .collect();
        // The runtime's own functions are no causes.
        cum.retain(|function, _| !names[function].starts_with("runtime."));
        let (&chosen, &value) =
            cum.iter().min_by(|a, b| far(*a.1).total_cmp(&far(*b.1)).then(a.0.cmp(b.0))).expect("a frame");
        let is_dearer = (0..message.sample.len()).map(|i| stack(i).any(|f| f == chosen)).collect();
        let leaf = (0..message.sample.len()).map(|i| stack(i).next().unwrap_or(0)).collect();
        let share = value as f64 / total as f64;
        let name = names[&chosen].clone();
        RecordedModel { message, column, total: total as f64, leaf, is_dearer, share, name }
    }

    /// Draws a run. Functions vary by tau, and one frame costs more by `growth`.
    fn run(&self, chance: &mut RunRandom, tau: f64, growth: f64) -> Arc<Profile> {
        let mut message = self.message.clone();
        let mut noise: HashMap<u64, f64> = HashMap::new();
        for (i, sample) in message.sample.iter_mut().enumerate() {
            let factor = *noise.entry(self.leaf[i]).or_insert_with(|| (tau * chance.normal()).exp());
            let grown = if self.is_dearer[i] { 1.0 + growth } else { 1.0 };
            let mean = sample.value[self.column] as f64 / self.total * SAMPLES * factor * grown;
            let n = chance.poisson(mean);
            sample.value = vec![n, n * 10_000_000];
        }
        message.sample.retain(|s| s.value[0] > 0);
        Arc::new(pprofdiff::from_bytes("run", &message.encode_to_vec(), &LoadOptions::default()).expect("a profile"))
    }
}

fn power(model: &RecordedModel) {
    println!("\nA frame of {:.0} % of 5,000 samples grew: found by `cum:any>+20%`, in percent\n", 100.0 * model.share);
    println!(
        "| tau | runs a side | +0 % | +25 % | +30 % | +40 % | +60 % | +100 % |\n|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for tau in [0.02, 0.05, 0.1] {
        for m in [1, 2, 3, 5, 8] {
            let mut line = format!("| {tau} | {m} |");
            for growth in [0.0, 0.25, 0.3, 0.4, 0.6, 1.0] {
                let detections = (0..TRIES_OF_POWER).into_par_iter().filter(|&i| {
                    let mut chance = RunRandom::of(i * 104_729 + m as u64);
                    let base: Vec<_> = (0..m).map(|_| model.run(&mut chance, tau, 0.0)).collect();
                    let new: Vec<_> = (0..m).map(|_| model.run(&mut chance, tau, growth)).collect();
                    check("cum:any>+20%", false, &base, &new) == Outcome::Fail
                });
                line += &format!(" {} |", 100 * detections.count() as u64 / TRIES_OF_POWER);
            }
            println!("{line}");
        }
    }
}

/// Prints the causes that explain detects in a fleet with one profile per machine, whose functions vary by tau.
fn fleet(model: &RecordedModel) {
    println!(
        "\n`{}`, {:.1} % of all, becomes more expensive by a part of the whole, on this number of machines a side (5,000 \
         samples and tau 0.05 each): named by explain --min-effect {LEAST_OF_FLEET}, in percent; in brackets, tries in \
         which it named another\n",
        model.name,
        100.0 * model.share
    );
    println!("| of the whole | 1 | 10 | 100 | 1,000 |\n|---:|---:|---:|---:|---:|");
    for part in [0.0, 0.0005, 0.001, 0.002, 0.005, 0.01] {
        let mut line = format!("| +{:.2} % |", 100.0 * part);
        for m in [1, 10, 100, 1000] {
            let tries = (0..TRIES_OF_FLEET).into_par_iter().map(|i| {
                let mut chance = RunRandom::of(i * 15_485_863 + m as u64);
                let mut side = |growth| (0..m).map(|_| model.run(&mut chance, 0.05, growth)).collect::<Vec<_>>();
                let (base, new) = (side(0.0), side(part / model.share));
                let diff = Diff::new(&base, &new).expect("profiles of one program");
                let options = ExplainOptions::default().with_min_effect(LEAST_OF_FLEET);
                let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &options).expect("an explanation");
                let is_expected = |cause: &&Cause| cause.evidence.functions.contains(&model.name) && cause.delta > 0.0;
                let expected = e.causes.iter().filter(is_expected).count();
                (expected > 0, e.causes.len() > expected)
            });
            let tries: Vec<(bool, bool)> = tries.collect();
            let percent = |n: usize| 100 * n / tries.len();
            let (n_found, others) = (tries.iter().filter(|t| t.0).count(), tries.iter().filter(|t| t.1).count());
            line += &format!(" {} ({}) |", percent(n_found), percent(others));
        }
        println!("{line}");
    }
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "target/chance".to_owned());
    let load = |kind: &str| -> Vec<Arc<Profile>> {
        let path = |i: usize| Path::new(&directory).join(format!("{i}.{kind}.pb.gz"));
        let all = (1..).map(path).take_while(|path| path.exists());
        all.map(|path| Arc::new(pprofdiff::open(path, &LoadOptions::default()).expect("a profile"))).collect()
    };
    let (cpu, heap) = (load("cpu"), load("heap"));
    assert!(cpu.len() >= 16, "benches/chance/record takes the profiles");
    println!("{} profiles; {} samples in the first", cpu.len(), cpu[0].n_samples());
    if std::env::args().nth(2).as_deref() == Some("fleet") {
        return fleet(&RecordedModel::new(&cpu, SHARE_OF_FLEET));
    }
    false_rows(&cpu);
    false_failures("CPU", &cpu, &["cum:any>+20%", "flat:any>+20%", "total>+10%", "total>+0%"]);
    false_failures("heap", &heap, &["alloc_space:cum:any>+20%", "alloc_space:total>+1%"]);
    power(&RecordedModel::new(&cpu, SHARE));
    fleet(&RecordedModel::new(&cpu, SHARE_OF_FLEET));
}
