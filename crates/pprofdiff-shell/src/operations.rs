//! Reads the number of operations of benchmarks from their output: `go test -bench`, criterion's `sample.json`, or the
//! JSON of pytest-benchmark.

use std::path::Path;

use serde::Deserialize;

use crate::{Failure, Result};

/// The factor by which the growth of operations may differ between the benchmarks of one profile.
const ALIKE: f64 = 1.1;

/// Benchmarks with their operations per run, averaged over repeated runs.
type Counts = Vec<(String, f64)>;

/// Returns the number of operations per run on both sides, added up over the benchmarks that both sides have.
///
/// # Errors
/// Fails if a file can't be read or has no benchmark, if the sides share no benchmark, or if the operations of the
/// benchmarks grew by different factors, because a single number would then be wrong.
pub fn from_files(base: &Path, new: &Path) -> Result<(f64, f64)> {
    let [base_counts, new_counts] = [counts(base)?, counts(new)?];
    let both: Vec<(f64, f64)> =
        base_counts.iter().filter_map(|(name, base)| Some((*base, find_count(&new_counts, name)?))).collect();
    let ratios = || both.iter().map(|(base, new)| new / base);
    let (smallest, largest) =
        ratios().fold((f64::INFINITY, 0.0f64), |(smallest, largest), r| (smallest.min(r), largest.max(r)));
    let files = format!("{} and {}", base.display(), new.display());
    match both.first() {
        None => Err(Failure::Message(format!("{files} have no benchmark in common; give --ops"))),
        Some(_) if largest > ALIKE * smallest => Err(Failure::Message(format!(
            "the operations of the benchmarks in {files} grew by different factors, {smallest:.2} to {largest:.2}; \
             profile one benchmark"
        ))),
        Some(_) => {
            Ok(both.into_iter().fold((0.0, 0.0), |(base, new), (of_base, of_new)| (base + of_base, new + of_new)))
        }
    }
}

fn find_count(counts: &Counts, name: &str) -> Option<f64> {
    counts.iter().find(|(benchmark, _)| benchmark == name).map(|(_, count)| *count)
}

/// Adds a run to the runs of its benchmark.
fn push(all: &mut Vec<(String, Vec<f64>)>, name: &str, count: f64) {
    match all.iter_mut().find(|(benchmark, _)| benchmark == name) {
        Some((_, runs)) => runs.push(count),
        None => all.push((name.to_owned(), vec![count])),
    }
}

fn counts(path: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::Message(format!("{}: {e}", path.display())))?;
    let counts = match text.trim_start().starts_with('{') {
        true => from_json(&text).map_err(|e| Failure::Message(format!("{}: {e}", path.display())))?,
        false => from_go(text.lines()),
    };
    if counts.is_empty() {
        let formats = "the output of `go test -bench`, criterion's sample.json, or pytest-benchmark's JSON";
        return Err(Failure::Message(format!("{}: no benchmark found; expected {formats}", path.display())));
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
pub fn from_go_output(lines: impl Iterator<Item = String>) -> Vec<(String, f64)> {
    from_go(lines)
}

/// Parses lines such as `BenchmarkRead-8 1234 56 ns/op`, and ignores other lines. A repeated benchmark has several
/// lines. Removes the number of processors, which depends on the machine. `go test` omits it on one processor, so a
/// number is part of the name (`BenchmarkRead/size-4`) unless all names end in the same number.
fn from_go<L: AsRef<str>>(lines: impl Iterator<Item = L>) -> Counts {
    let mut runs: Vec<(String, f64)> = Vec::new();
    for line in lines {
        let line = line.as_ref();
        let mut words = line.split_whitespace();
        let (Some(name), Some(count)) = (words.next(), words.next()) else { continue };
        if let (true, Ok(count), true) = (name.starts_with("Benchmark"), count.parse(), line.contains("/op")) {
            runs.push((name.to_owned(), count));
        }
    }
    let number = |name: &str| name.rfind('-').map(|i| name[i..].to_owned()).filter(|n| n[1..].parse::<u32>().is_ok());
    let processors = runs.first().and_then(|(name, _)| number(name)).unwrap_or_default();
    let processors = if runs.iter().all(|(name, _)| name.ends_with(&processors)) { processors } else { String::new() };
    let mut all = Vec::new();
    for (name, count) in &runs {
        push(&mut all, name.strip_suffix(&processors).unwrap_or(name), *count);
    }
    mean(all)
}

/// The fields that we read from criterion's `sample.json` and from pytest-benchmark's JSON. A duplicate key is an
/// error.
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

/// Parses criterion's `iters`, or the rounds and iterations of pytest-benchmark.
fn from_json(text: &str) -> serde_json::Result<Counts> {
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
    use super::{Counts, from_go, from_json};

    #[test]
    fn operations_are_read_from_the_output_of_benchmarks() {
        let go = "goos: linux\nBenchmarkRead-8 \t 100\t 5.0 ns/op\t 3 B/op\nBenchmarkRead-8 300 6 ns/op\n\
                  BenchmarkWrite/small-size-8 7 6 ns/op\nBenchmarkNone\nPASS\n";
        let expected = [("BenchmarkRead".to_owned(), 200.0), ("BenchmarkWrite/small-size".to_owned(), 7.0)];
        assert_eq!(from_go(go.lines()), Counts::from(expected));
        // One processor: the numbers belong to the names.
        let one = "BenchmarkRead/size-4 100 5 ns/op\nBenchmarkRead/size-16 25 20 ns/op\n";
        let expected = [("BenchmarkRead/size-4".to_owned(), 100.0), ("BenchmarkRead/size-16".to_owned(), 25.0)];
        assert_eq!(from_go(one.lines()), Counts::from(expected));
        let json = |text: &str| from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(
            json(r#"{"sampling_mode":"Linear","iters":[1.0,2.0,4.0],"times":[3.0,5.0,9.0]}"#),
            [(String::new(), 7.0)]
        );
        let pytest =
            r#"{"benchmarks":[{"name":"a","fullname":"t.py::a","stats":{"rounds":5,"iterations":20}},{"name":"b"}]}"#;
        assert_eq!(json(pytest), Counts::from([("t.py::a".to_owned(), 100.0)]));
        assert!(json("{}").is_empty() && from_go("".lines()).is_empty());
        let twice = from_json(r#"{"iters":[1.0],"iters":[9.0]}"#).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(twice.contains("duplicate field `iters`"), "{twice}");
    }
}
