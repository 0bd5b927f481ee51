//! How many operations benchmarks did, from what they wrote: the output of `go test -bench`, `sample.json` of criterion, or
//! the JSON of pytest-benchmark.

use std::path::Path;

use serde::Deserialize;

use crate::{Failure, Result};

/// Of benchmarks in one profile, ratios may differ by this factor to be one.
const ALIKE: f64 = 1.1;

/// By benchmark: the operations of a run, the mean of several.
type Counts = Vec<(String, f64)>;

/// The operations of a run of either side.
///
/// # Errors
/// Files that can't be read or have no benchmark, sides that share none, and benchmarks whose numbers grew by different
/// factors: then no one number is right.
pub fn of_files(base: &Path, new: &Path) -> Result<(f64, f64)> {
    let [base_counts, new_counts] = [counts(base)?, counts(new)?];
    let both: Vec<(f64, f64)> =
        base_counts.iter().filter_map(|(name, base)| Some((*base, find_count(&new_counts, name)?))).collect();
    let ratios = || both.iter().map(|(base, new)| new / base);
    let (least, most) = ratios().fold((f64::INFINITY, 0.0f64), |(least, most), r| (least.min(r), most.max(r)));
    let files = format!("{} and {}", base.display(), new.display());
    match both.first() {
        None => Err(Failure::Message(format!("{files} have no benchmark in common; give --ops"))),
        Some(_) if most > ALIKE * least => Err(Failure::Message(format!(
            "the benchmarks of {files} ran {least:.2} to {most:.2} times as often, so no one number is right; profile one"
        ))),
        Some(_) => {
            Ok(both.into_iter().fold((0.0, 0.0), |(base, new), (of_base, of_new)| (base + of_base, new + of_new)))
        }
    }
}

fn find_count(counts: &Counts, name: &str) -> Option<f64> {
    counts.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
}

/// Adds a run of a benchmark to those that are known.
fn push(all: &mut Vec<(String, Vec<f64>)>, name: &str, count: f64) {
    match all.iter_mut().find(|(known, _)| known == name) {
        Some((_, runs)) => runs.push(count),
        None => all.push((name.to_owned(), vec![count])),
    }
}

fn counts(path: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::Message(format!("{}: {e}", path.display())))?;
    let counts = match text.trim_start().starts_with('{') {
        true => of_json(&text).map_err(|e| Failure::Message(format!("{}: {e}", path.display())))?,
        false => of_go(text.lines()),
    };
    if counts.is_empty() {
        let what = "`go test -bench` writes, criterion's sample.json, or pytest-benchmark's JSON";
        return Err(Failure::Message(format!("{}: no benchmark in it; wanted is what {what}", path.display())));
    }
    Ok(counts)
}

fn mean(all: Vec<(String, Vec<f64>)>) -> Counts {
    let mean = |(name, runs): (String, Vec<f64>)| {
        let count = runs.len() as f64;
        (name, runs.into_iter().sum::<f64>() / count)
    };
    all.into_iter().map(mean).filter(|(_, count)| *count > 0.0).collect()
}

/// Returns the operations of each benchmark in the output of `go test -bench`.
pub fn of_go_output(lines: impl Iterator<Item = String>) -> Vec<(String, f64)> {
    of_go(lines)
}

/// Lines such as `BenchmarkRead-8   1234   56 ns/op`; a benchmark that ran several times has several.
fn of_go<L: AsRef<str>>(lines: impl Iterator<Item = L>) -> Counts {
    let mut all = Vec::new();
    for line in lines {
        let line = line.as_ref();
        let mut words = line.split_whitespace();
        let (Some(name), Some(count)) = (words.next(), words.next()) else { continue };
        // The number of processors belongs to the machine.
        let name =
            name.rsplit_once('-').filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit())).map_or(name, |(n, _)| n);
        if let (true, Ok(count), true) = (name.starts_with("Benchmark"), count.parse(), line.contains("/op")) {
            push(&mut all, name, count);
        }
    }
    mean(all)
}

/// The fields that we read from criterion's `sample.json` and from pytest-benchmark's JSON. A duplicate key is an error.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    iters: Option<Vec<f64>>,
    benchmarks: Vec<WrittenBenchmark>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenBenchmark {
    name: Option<String>,
    fullname: Option<String>,
    stats: WrittenStats,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenStats {
    rounds: Option<f64>,
    iterations: Option<f64>,
}

/// Criterion's `iters`, or pytest-benchmark's rounds of several iterations.
fn of_json(text: &str) -> serde_json::Result<Counts> {
    let written: Written = serde_json::from_str(text)?;
    if let Some(iters) = written.iters {
        return Ok(mean(vec![(String::new(), vec![iters.into_iter().sum()])]));
    }
    let mut all = Vec::new();
    for WrittenBenchmark { name, fullname, stats } in written.benchmarks {
        let count = stats.rounds.zip(stats.iterations).map(|(rounds, each)| rounds * each);
        if let (Some(name), Some(count)) = (fullname.or(name), count) {
            push(&mut all, &name, count);
        }
    }
    Ok(mean(all))
}

#[cfg(test)]
mod tests {
    use super::{Counts, of_go, of_json};

    #[test]
    fn what_benchmarks_write_says_how_often_they_ran() {
        let go = "goos: linux\nBenchmarkRead-8 \t 100\t 5.0 ns/op\t 3 B/op\nBenchmarkRead-8 300 6 ns/op\n\
                  BenchmarkWrite/small-size-4 7 6 ns/op\nBenchmarkNone\nPASS\n";
        let wanted = [("BenchmarkRead".to_owned(), 200.0), ("BenchmarkWrite/small-size".to_owned(), 7.0)];
        assert_eq!(of_go(go.lines()), Counts::from(wanted));
        let json = |text: &str| of_json(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(
            json(r#"{"sampling_mode":"Linear","iters":[1.0,2.0,4.0],"times":[3.0,5.0,9.0]}"#),
            [(String::new(), 7.0)]
        );
        let pytest =
            r#"{"benchmarks":[{"name":"a","fullname":"t.py::a","stats":{"rounds":5,"iterations":20}},{"name":"b"}]}"#;
        assert_eq!(json(pytest), Counts::from([("t.py::a".to_owned(), 100.0)]));
        assert!(json("{}").is_empty() && of_go("".lines()).is_empty());
        let twice = of_json(r#"{"iters":[1.0],"iters":[9.0]}"#).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(twice.contains("duplicate field `iters`"), "{twice}");
    }
}
