//! `py-spy record`, also as `python -m py_spy record`.

use super::{Adapter, Plan, Taken, path, program, unfixed, written};
use crate::Result;

pub const ADAPTER: Adapter = Adapter { name: "py-spy record", is_of, command, taken, fixed: unfixed };

/// Where `record` stands.
fn record(command: &[String]) -> Option<usize> {
    let is_module = command.len() > 3 && command[1] == "-m" && ["py_spy", "py-spy"].contains(&command[2].as_str());
    let at = if is_module { 3 } else { 1 };
    (is_module || program(command) == "py-spy")
        .then_some(at)
        .filter(|at| command.get(*at).is_some_and(|w| w == "record"))
}

fn is_of(command: &[String]) -> bool {
    record(command).is_some()
}

fn command(plan: &Plan<'_>) -> Vec<String> {
    let at = record(plan.command).map_or(plan.command.len(), |at| at + 1);
    let mut words = plan.command[..at].to_vec();
    words.extend(["--format".to_owned(), "speedscope".to_owned(), "--output".to_owned()]);
    words.push(path(&plan.dir.join("profile.speedscope.json")));
    words.extend(plan.command[at..].iter().cloned());
    words
}

fn taken(plan: &Plan<'_>, _: &str) -> Result<Taken> {
    written(plan.dir.join("profile.speedscope.json"), plan.command)
}
