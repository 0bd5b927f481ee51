//! The adapter for `go test -bench`. It adds CPU and memory profiles and keeps the test binary. After the base's first
//! run it fixes the number of iterations, so both sides do the same work. If there are several benchmarks, each does
//! the smallest number of iterations that a benchmark completed in that run.

use pprofdiff_shell::{Failure, Result, operations};

use super::{Adapter, RunPlan, Taken, no_advice, path, program, unfixed, written};
use crate::process::{Ended, Runner, lines};

pub const ADAPTER: Adapter = Adapter { name: "go test -bench", handles, command, taken, fixed, advice: no_advice };

pub fn handles(command: &[String]) -> bool {
    let has_bench = command.iter().any(|word| {
        let word = word.trim_start_matches('-');
        word == "bench" || word.starts_with("bench=")
    });
    program(command) == "go" && command.get(1).is_some_and(|word| word == "test") && has_bench
}

/// Returns true if the command has the option, as `-name value` or `-name=value`.
pub fn has(command: &[String], name: &str) -> bool {
    command.iter().any(|word| {
        let word = word.trim_start_matches('-');
        word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

fn command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend(["-o".to_owned(), path(plan.binary)]);
    for (option, file) in [("-cpuprofile", "cpu.pb.gz"), ("-memprofile", "mem.pb.gz")] {
        words.extend([option.to_owned(), path(&plan.dir.join(file))]);
    }
    // Tests would add their own time, and a cached result would measure nothing.
    if !has(plan.command, "run") {
        words.push("-run=^$".to_owned());
    }
    if !has(plan.command, "count") {
        words.push("-count=1".to_owned());
    }
    words.extend(plan.command[2..].iter().cloned());
    if let Some(operations) = plan.operations {
        // The last -benchtime wins. Arguments after -args belong to the benchmark.
        let end = words.iter().position(|word| word.trim_start_matches('-') == "args").unwrap_or(words.len());
        words.insert(end, format!("-benchtime={operations}x"));
    }
    words
}

fn taken(plan: &RunPlan<'_>, ended: &Ended, _: &Runner<'_>) -> Result<Taken> {
    if ended.is_cut {
        let message = "go test printed too much, so its operation counts were dropped; make the benchmark print less";
        return Err(Failure::Message(message.to_owned()));
    }
    let mut taken = written(plan.dir.join("cpu.pb.gz"), plan.command)?;
    taken.profiles.extend(Some(plan.dir.join("mem.pb.gz")).filter(|file| file.exists()));
    taken.operations = Some(operations::from_go_output(lines(&ended.output)).iter().map(|(_, count)| count).sum())
        .filter(|n| *n > 0.0);
    Ok(taken)
}

pub fn fixed(command: &[String], ended: &Ended) -> Option<u64> {
    let counts = operations::from_go_output(lines(&ended.output));
    let fewest = counts.iter().map(|(_, count)| *count).fold(f64::INFINITY, f64::min);
    if !fewest.is_finite() { unfixed(command, ended) } else { Some((fewest as u64).max(1)) }
}
