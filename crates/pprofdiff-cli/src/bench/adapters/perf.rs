//! `perf record` of any program; `perf script` makes of it what can be read.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Adapter, Plan, Taken, path, program, unfixed, written};
use crate::{Failure, Result};

pub const ADAPTER: Adapter = Adapter { name: "perf record", is_of, command, taken, fixed: unfixed, advice };

/// Lines of large programs may take perf minutes.
const PATIENCE: Duration = Duration::from_secs(20);

fn is_of(command: &[String]) -> bool {
    program(command) == "perf" && command.get(1).is_some_and(|word| word == "record")
}

fn command(plan: &Plan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend(["-o".to_owned(), path(&plan.dir.join("perf.data"))]);
    words.extend(plan.command[2..].iter().cloned());
    words
}

/// With lines, so that sources can be shown, unless that takes too long or perf can't.
fn taken(plan: &Plan<'_>, _: &str) -> Result<Taken> {
    let data = plan.dir.join("perf.data");
    written(data.clone(), plan.command)?;
    let script = plan.dir.join("perf.txt");
    for more in [&["-F", "+srcline", "--full-source-path"][..], &[]] {
        let out = std::fs::File::create(&script)?;
        let mut command = Command::new(&plan.command[0]);
        command.args(["script", "-i"]).arg(&data).args(more);
        let mut child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn()?;
        let begun = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status.success(),
                None if !more.is_empty() && begun.elapsed() > PATIENCE => {
                    let _ = (child.kill(), child.wait());
                    break false;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if status {
            return written(script, plan.command);
        }
    }
    Err(Failure::Message(format!("perf script can't read {}", data.display())))
}

fn advice(line: &str) -> Option<&'static str> {
    line.contains("Access to performance monitoring").then_some("sysctl kernel.perf_event_paranoid=1 allows it")
}
