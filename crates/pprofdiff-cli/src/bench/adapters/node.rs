//! `node`: its own profiler of time.

use super::{Adapter, Plan, Taken, no_advice, path, program, unfixed};
use crate::bench::process::{Ended, Runner};
use crate::{Failure, Result};

pub const ADAPTER: Adapter = Adapter { name: "node", is_of, command, taken, fixed: unfixed, advice: no_advice };

fn is_of(command: &[String]) -> bool {
    program(command) == "node"
}

fn command(plan: &Plan<'_>) -> Vec<String> {
    let mut words = plan.command[..1].to_vec();
    words.extend(["--cpu-prof".to_owned(), format!("--cpu-prof-dir={}", path(plan.dir))]);
    words.extend(plan.command[1..].iter().cloned());
    words
}

/// The largest profile: workers have their own.
fn taken(plan: &Plan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(plan.dir)?.flatten() {
        let file = entry.path();
        if file.extension().is_some_and(|ending| ending == "cpuprofile") {
            found.push((entry.metadata()?.len(), file));
        }
    }
    found.sort();
    match found.pop() {
        Some((_, file)) => Ok(Taken { profiles: vec![file], operations: None }),
        None => Err(Failure::Message(format!("node wrote no profile to {}", plan.dir.display()))),
    }
}
