//! Measures, by producer, the rate of failed checks of equal builds, and the detection of an injected change by
//! `explain`. The input is the set of recordings by `benches/producers/record`.
//!
//! `cargo run --release -p pprofdiff-benches --bin producers [DIRECTORY]` prints the figures of "By producer" in
//! docs/statistics.md.
//!
//! The samples of perf, and generated samples, are written in the formats of several producers. The rows of these
//! formats should be equal.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::check::{Outcome, Rules};
use pprofdiff::{Diff, LoadOptions, Profile, Query};
use pprofdiff_benches::Random;
use pprofdiff_explain::{ExplainOptions, Verdict};
use rayon::prelude::*;

const RULES: [&str; 2] = ["flat:any>+20%", "cum:any>+20%"];
/// The number of pairs of generated runs.
const TRIES: u64 = 100;
/// The mean number of samples per run.
const SAMPLES: f64 = 1_000.0;
/// The number of functions of the generated program, without the function whose cost doubles.
const FUNCTIONS: usize = 30;
/// The share of the function whose cost doubles.
const SHARE: f64 = 0.1;
const CHANGED: &str = "shop.changed";
/// Nanoseconds between two samples of `perf record -F 99`, as perf rounds it.
const PERIOD: i64 = 10_101_010;

/// Stacks, root first, with their numbers of samples.
type StackSamples = Vec<(Vec<String>, u64)>;

/// A producer: its name, and a function that writes samples in its format.
type ProducerFormat = (&'static str, fn(&StackSamples) -> Arc<Profile>);

const FORMATS: [ProducerFormat; 8] = [
    ("counts, folded", |samples| load("counts.folded", &folded(samples, 1))),
    ("inferno's folds of periods", |samples| load("periods.folded", &folded(samples, PERIOD as u64))),
    ("perf script", |samples| load("perf.txt", &perf_script(samples))),
    ("speedscope", |samples| load("a.speedscope.json", &speedscope(samples))),
    ("V8 cpuprofile", |samples| load("a.cpuprofile", &cpuprofile(samples))),
    ("pprof, period (Go)", |samples| pprof(samples, &[("samples", 1), ("cpu", PERIOD)], PERIOD)),
    ("pprof, no period", |samples| pprof(samples, &[("cpu", PERIOD)], 0)),
    ("pprof, cpu-samples and cpu-time (Datadog)", |samples| {
        pprof(samples, &[("cpu-samples", 1), ("cpu-time", PERIOD)], 0)
    }),
];

fn load(name: &str, text: &str) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes(name, text.as_bytes(), &LoadOptions::default()).expect("a profile"))
}

fn folded(samples: &StackSamples, each: u64) -> String {
    samples.iter().fold(String::new(), |mut text, (stack, n)| {
        writeln!(text, "{} {}", stack.join(";"), n * each).expect("a string");
        text
    })
}

fn perf_script(samples: &StackSamples) -> String {
    let (mut text, mut time) = (String::new(), 0);
    for (stack, n) in samples {
        for _ in 0..*n {
            time += PERIOD / 1_000;
            let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
            writeln!(text, "shop  42 {seconds}.{micros:06}:   {PERIOD} cpu-clock: ").expect("a string");
            for (address, frame) in stack.iter().enumerate().rev() {
                writeln!(text, "\t{:x} {frame}+0x10 (/bin/shop)", 0x40_1000 + 16 * address).expect("a string");
            }
            text.push('\n');
        }
    }
    text
}

/// Returns the distinct names, and each stack as indices into them.
fn numbered(samples: &StackSamples) -> (Vec<&str>, Vec<(Vec<usize>, u64)>) {
    let mut names: Vec<&str> = Vec::new();
    let mut stacks = Vec::new();
    for (stack, n) in samples {
        let mut numbers = Vec::new();
        for name in stack {
            let index = names.iter().position(|other| other == name);
            numbers.push(index.unwrap_or(names.len()));
            names.extend(index.is_none().then_some(name.as_str()));
        }
        stacks.push((numbers, *n));
    }
    (names, stacks)
}

fn speedscope(samples: &StackSamples) -> String {
    let (names, stacks) = numbered(samples);
    let frames: Vec<_> = names.iter().map(|name| serde_json::json!({"name": name})).collect();
    let each: Vec<&Vec<usize>> = stacks.iter().flat_map(|(stack, n)| (0..*n).map(move |_| stack)).collect();
    let seconds = PERIOD as f64 / 1e9;
    serde_json::json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": frames},
        "profiles": [{
            "type": "sampled", "name": "shop", "unit": "seconds", "startValue": 0, "endValue": seconds * each.len() as f64,
            "samples": each, "weights": vec![seconds; each.len()],
        }],
    })
    .to_string()
}

fn cpuprofile(samples: &StackSamples) -> String {
    // Each stack has its own nodes. V8 would share them, but a reader adds them up by stack.
    let frame = |name: &str| serde_json::json!({"functionName": name, "url": "", "scriptId": "0", "lineNumber": -1, "columnNumber": -1});
    let (mut nodes, mut ids, mut top) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 2;
    for (stack, n) in samples {
        top.push(next);
        for (depth, name) in stack.iter().enumerate() {
            let children = if depth + 1 < stack.len() { vec![next + 1] } else { Vec::new() };
            nodes.push(serde_json::json!({"id": next, "callFrame": frame(name), "hitCount": 0, "children": children}));
            next += 1;
        }
        ids.extend((0..*n).map(|_| next - 1));
    }
    nodes.insert(0, serde_json::json!({"id": 1, "callFrame": frame("(root)"), "hitCount": 0, "children": top}));
    let micros = PERIOD / 1_000;
    serde_json::json!({
        "nodes": nodes, "startTime": 0, "endTime": micros * (ids.len() as i64 + 1), "samples": ids,
        "timeDeltas": vec![micros; ids.len()],
    })
    .to_string()
}

/// Encodes samples in pprof's format, with columns of counts (1) and of nanoseconds.
fn pprof(samples: &StackSamples, columns: &[(&str, i64)], period: i64) -> Arc<Profile> {
    let mut builder = ProfileBuilder::new();
    columns.iter().for_each(|(kind, each)| builder.sample_type(kind, if *each == 1 { "count" } else { "nanoseconds" }));
    if period > 0 {
        builder.period("cpu", "nanoseconds", period);
    }
    for (stack, n) in samples.iter().filter(|(_, n)| *n > 0) {
        let location = |name: &String| {
            let function = builder.function(name, "", 0);
            let line = builder.line(function, 0);
            builder.location(None, 0, &[line]).expect("a location")
        };
        let locations: Vec<_> = stack.iter().rev().map(location).collect();
        let values: Vec<i64> = columns.iter().map(|(_, each)| each * *n as i64).collect();
        builder.sample(&locations, &values, &[]).expect("a sample");
    }
    Arc::new(builder.build("shop.pb.gz").expect("a profile"))
}

/// Random numbers between 0 and 1, and Poisson counts.
struct SampleRandom(Random);

impl SampleRandom {
    fn uniform(&mut self) -> f64 {
        ((self.0.bits() >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    /// Returns a Poisson count by Knuth's method.
    fn poisson(&mut self, mean: f64) -> u64 {
        let (mut p, limit, mut n) = (self.uniform(), (-mean).exp(), 0);
        while p > limit {
            p *= self.uniform();
            n += 1;
        }
        n
    }
}

/// Draws a run of a generated program. The shares of its functions decrease as 1, 1/2, 1/3, and one more function has a
/// tenth of the total.
fn drawn(chance: &mut SampleRandom, factor: f64) -> StackSamples {
    let weights: Vec<f64> = (1..=FUNCTIONS).map(|rank| 1.0 / rank as f64).collect();
    let sum: f64 = weights.iter().sum();
    let frames =
        |caller: usize, leaf: &str| ["shop.main", &format!("shop.handle{}", caller % 5), leaf].map(str::to_owned);
    let mut samples: StackSamples = Vec::new();
    for (i, weight) in weights.iter().enumerate() {
        let n = chance.poisson(SAMPLES * (1.0 - SHARE) * weight / sum);
        samples.push((frames(i, &format!("shop.work{i}")).to_vec(), n));
    }
    samples.push((frames(2, CHANGED).to_vec(), chance.poisson(SAMPLES * SHARE * factor)));
    samples.retain(|(_, n)| *n > 0);
    samples
}

fn failures(pairs: &[[Arc<Profile>; 2]], rule: &str) -> (usize, usize) {
    let outcome = |[base, new]: &[Arc<Profile>; 2]| {
        let mut rules = Rules::default();
        rules.fail_on(rule).expect("a rule");
        let diff = Diff::between(base.clone(), new.clone()).expect("profiles of one program");
        pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default()).expect("a check").verdict
    };
    let outcomes: Vec<Outcome> = pairs.par_iter().map(outcome).collect();
    (outcomes.iter().filter(|o| **o == Outcome::Fail).count(), outcomes.len())
}

/// Returns the number of pairs in which `explain` reports a change.
fn alarms(pairs: &[[Arc<Profile>; 2]]) -> usize {
    let has_cause = |[base, new]: &[Arc<Profile>; 2]| {
        let diff = Diff::between(base.clone(), new.clone()).expect("profiles of one program");
        let explanation = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default())
            .expect("an explanation");
        explanation.verdict == Verdict::Change
    };
    pairs.par_iter().filter(|pair| has_cause(pair)).count()
}

fn all_pairs(profiles: &[Arc<Profile>]) -> Vec<[Arc<Profile>; 2]> {
    let pair =
        |(i, a): (usize, &Arc<Profile>)| profiles[i + 1..].iter().map(|b| [a.clone(), b.clone()]).collect::<Vec<_>>();
    profiles.iter().enumerate().flat_map(pair).collect()
}

/// Parses the samples of a `perf script` text by stack, independently of the engine's reader.
fn read_perf_script(text: &str) -> StackSamples {
    let mut samples: Vec<(Vec<String>, u64)> = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let frame = |line: &str| {
            let symbol = line.trim().split_once(' ').map_or("", |(_, rest)| rest);
            symbol.rsplit_once(" (").map_or(symbol, |(name, _)| name).split("+0x").next().unwrap_or("").to_owned()
        };
        let mut stack: Vec<String> = block.trim_start().lines().skip(1).map(frame).collect();
        stack.reverse();
        match samples.iter_mut().find(|(existing, _)| *existing == stack) {
            Some((_, n)) => *n += 1,
            None => samples.push((stack, 1)),
        }
    }
    samples
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "target/producers".to_owned());
    println!("Equal builds, one run a side: failures of checks, and explanations that name a change\n");
    println!(
        "| producer | runs | pairs | `{}` | `{}` | `explain` |\n|---|---:|---:|---:|---:|---:|",
        RULES[0], RULES[1]
    );
    let row = |name: &str, profiles: &[Arc<Profile>]| {
        let pairs = all_pairs(profiles);
        let [flat, cum] = RULES.map(|rule| failures(&pairs, rule).0);
        println!("| {name} | {} | {} | {flat} | {cum} | {} |", profiles.len(), pairs.len(), alarms(&pairs));
    };
    let recorded = |ending: &str| -> Vec<Arc<Profile>> {
        let path = |i: usize| Path::new(&directory).join(format!("{i}.{ending}"));
        let open = |path| pprofdiff::open(path, &LoadOptions::default()).ok().map(Arc::new);
        (1..).map(path).take_while(|path| path.exists()).filter_map(open).collect()
    };
    for (name, ending) in [
        ("perf.data", "perf.data"),
        ("perf script", "perf.txt"),
        ("V8 cpuprofile", "cpuprofile"),
        ("V8 heapprofile", "heapprofile"),
        ("JFR", "jfr"),
        ("py-spy, speedscope", "speedscope.json"),
        ("py-spy, raw", "raw.folded"),
    ] {
        row(name, &recorded(ending));
    }
    let texts = (1..).map(|i| std::fs::read_to_string(Path::new(&directory).join(format!("{i}.perf.txt"))));
    let runs: Vec<StackSamples> =
        texts.take_while(Result::is_ok).flatten().map(|text| read_perf_script(&text)).collect();
    for (name, format) in FORMATS {
        row(&format!("the samples of perf as {name}"), &runs.iter().map(format).collect::<Vec<_>>());
    }

    println!(
        "\nA function with a tenth of {SAMPLES} samples became twice as slow: found by `explain`, in {TRIES} pairs\n"
    );
    println!("| format | found | something else named |\n|---|---:|---:|");
    for (name, format) in FORMATS {
        let outcomes: Vec<[bool; 2]> = (0..TRIES)
            .into_par_iter()
            .map(|seed| {
                let mut chance = SampleRandom(Random(seed));
                let [base, new] = [1.0, 2.0].map(|factor| format(&drawn(&mut chance, factor)));
                let diff = Diff::between(base, new).expect("profiles of one program");
                let explanation = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default())
                    .expect("an explanation");
                let names = |cause: &pprofdiff_explain::Cause| cause.function.as_deref() == Some(CHANGED);
                [explanation.causes.iter().any(names), explanation.causes.iter().any(|cause| !names(cause))]
            })
            .collect();
        let count = |i: usize| outcomes.iter().filter(|row| row[i]).count();
        println!("| {name} | {} | {} |", count(0), count(1));
    }
}
