//! The adapter for `py-spy record`.

use pprofdiff_shell::Result;

use super::{Adapter, RunPlan, Taken, path, program, unfixed, written};
use crate::process::{Ended, Runner};

pub const ADAPTER: Adapter = Adapter { name: "py-spy record", handles, command, taken, fixed: unfixed, advice };

fn handles(command: &[String]) -> bool {
    program(command) == "py-spy" && command.get(1).is_some_and(|word| word == "record")
}

fn command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend(["--format", "speedscope", "--output"].map(str::to_owned));
    words.push(path(&plan.dir.join("profile.speedscope.json")));
    words.extend(plan.command[2..].iter().cloned());
    words
}

fn taken(plan: &RunPlan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    written(plan.dir.join("profile.speedscope.json"), plan.command)
}

fn advice(line: &str) -> Option<&'static str> {
    let is_late = line.contains("Failed to get process executable name") || line.contains("No stack counts found");
    is_late.then_some("the program ended before py-spy could sample it; let it run for a second or more")
}
