//! Child processes that are never left behind: each has a group of its own, which ends with it, at Ctrl-C, and at `kill`.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use pprofdiff::Work;

use crate::{Failure, Result};

/// How often we look whether a child has ended, and how long it may take to end when it is told to.
const TICK: Duration = Duration::from_millis(5);
const GRACE_TICKS: usize = 200;

/// A command to run, with all that it writes going to a file.
pub struct Job<'a> {
    pub command: &'a [String],
    pub dir: &'a Path,
    pub variables: &'a [(String, String)],
    pub output: &'a Path,
}

/// Runs a command to its end.
///
/// # Errors
/// It can't be started, or we were interrupted, which ends it.
pub fn run(job: &Job<'_>, work: &Work) -> Result<ExitStatus> {
    let [program, args @ ..] = job.command else { return Err(Failure::Message("no command is given".to_owned())) };
    let file = || File::create(job.output).map_err(|e| Failure::Message(format!("{}: {e}", job.output.display())));
    let out = file()?;
    let err = out.try_clone()?;
    let mut command = Command::new(program);
    command.args(args).current_dir(job.dir).stdin(Stdio::null()).stdout(out).stderr(err);
    command.envs(job.variables.iter().map(|(name, value)| (name, OsStr::new(value))));
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(|e| Failure::Message(format!("{program} can't be started: {e}")))?;
    let mut group = Group(child);
    loop {
        if let Some(status) = group.0.try_wait()? {
            return Ok(status);
        }
        if work.is_stopped() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(TICK);
    }
}

/// A child with what it started.
struct Group(Child);

impl Group {
    #[cfg(unix)]
    fn signal(&self, signal: nix::sys::signal::Signal) {
        if let Ok(id) = i32::try_from(self.0.id()) {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use nix::sys::signal::Signal;
            // Those that ended take nothing, and what they left running does.
            self.signal(Signal::SIGTERM);
            for _ in 0..GRACE_TICKS {
                if !matches!(self.0.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(TICK);
            }
            self.signal(Signal::SIGKILL);
        }
        #[cfg(not(unix))]
        let _ = (self.0.kill(), GRACE_TICKS);
        let _ = self.0.wait();
    }
}
