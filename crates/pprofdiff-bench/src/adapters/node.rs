//! The adapter for `node`, which has a built-in CPU profiler.

use pprofdiff_shell::{Failure, Result};

use super::{Adapter, RunPlan, Taken, no_advice, path, program, unfixed};
use crate::process::{Ended, Runner};

pub const ADAPTER: Adapter = Adapter { name: "node", handles, command, taken, fixed: unfixed, advice: no_advice };

fn handles(command: &[String]) -> bool {
    program(command) == "node"
}

fn command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command[..1].to_vec();
    words.extend(["--cpu-prof".to_owned(), format!("--cpu-prof-dir={}", path(plan.dir))]);
    words.extend(plan.command[1..].iter().cloned());
    words
}

/// Returns the largest profile and ignores the others. Node writes one profile per thread, and the thread that did the
/// work most likely wrote the largest.
fn taken(plan: &RunPlan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    let mut candidates = Vec::new();
    for entry in std::fs::read_dir(plan.dir)?.flatten() {
        let file = entry.path();
        if file.extension().is_some_and(|ending| ending == "cpuprofile") {
            candidates.push((entry.metadata()?.len(), file));
        }
    }
    candidates.sort();
    match candidates.pop() {
        Some((_, file)) => Ok(Taken { profiles: vec![file], operations: None }),
        None => Err(Failure::Message(format!(
            "node wrote no profile to {}; it writes the profile on exit, so the program must not be killed",
            plan.dir.display()
        ))),
    }
}
