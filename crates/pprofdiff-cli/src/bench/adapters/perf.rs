//! `perf record` of any program; `perf script` makes of it what can be read.

use std::process::{Command, Stdio};

use super::{Adapter, Plan, Taken, path, program, unfixed, written};
use crate::{Failure, Result};

pub const ADAPTER: Adapter = Adapter { name: "perf record", is_of, command, taken, fixed: unfixed };

fn is_of(command: &[String]) -> bool {
    program(command) == "perf" && command.get(1).is_some_and(|word| word == "record")
}

fn command(plan: &Plan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend(["-o".to_owned(), path(&plan.dir.join("perf.data"))]);
    words.extend(plan.command[2..].iter().cloned());
    words
}

fn taken(plan: &Plan<'_>, _: &str) -> Result<Taken> {
    let data = plan.dir.join("perf.data");
    written(data.clone(), plan.command)?;
    let script = plan.dir.join("perf.txt");
    let out = std::fs::File::create(&script)?;
    let mut command = Command::new(&plan.command[0]);
    command.args(["script", "-i"]).arg(&data).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => written(script, plan.command),
        _ => Err(Failure::Message(format!("perf script can't read {}", data.display()))),
    }
}
