//! The adapter for `perf record` with any program. `perf script` converts the recording to text.

use std::path::Path;
use std::time::Duration;

use pprofdiff_shell::{Failure, Result};

use super::{Adapter, RunPlan, Taken, path, program, unfixed, written};
use crate::process::{CommandJob, Ended, OutputKind, Runner};

pub const ADAPTER: Adapter = Adapter { name: "perf record", handles, command, taken, fixed: unfixed, advice };

/// The time limit for `perf script` with source lines, which can take minutes for large programs.
const PATIENCE: Duration = Duration::from_secs(20);

fn handles(command: &[String]) -> bool {
    program(command) == "perf" && command.get(1).is_some_and(|word| word == "record")
}

fn command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend(["-o".to_owned(), path(&plan.dir.join("perf.data"))]);
    words.extend(plan.command[2..].iter().cloned());
    words
}

/// Converts the recording, with source lines if possible. Converts it without source lines if perf does not support
/// them or takes longer than `PATIENCE`.
fn taken(plan: &RunPlan<'_>, _: &Ended, runner: &Runner<'_>) -> Result<Taken> {
    let data = plan.dir.join("perf.data");
    written(data.clone(), plan.command)?;
    let script = plan.dir.join("perf.txt");
    for line_options in [&["-F", "+srcline", "--full-source-path"][..], &[]] {
        let mut command = vec![plan.command[0].clone(), "script".to_owned(), "-i".to_owned(), path(&data)];
        command.extend(line_options.iter().map(|&word| word.to_owned()));
        let patience = (!line_options.is_empty()).then_some(PATIENCE);
        let (output, kind) = (script.as_path(), OutputKind::Data);
        let job = CommandJob { command: &command, dir: Path::new("."), variables: &[], output, kind, patience };
        match runner.run(&job) {
            Ok(ended) if ended.status.success() => return written(script, plan.command),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(e) if line_options.is_empty() => return Err(e),
            _ => {}
        }
    }
    Err(Failure::Message(format!("perf script can't read {}", data.display())))
}

fn advice(line: &str) -> Option<&'static str> {
    line.contains("Access to performance monitoring").then_some("sysctl kernel.perf_event_paranoid=1 allows it")
}
