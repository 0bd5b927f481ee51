//! Runs the commands of a benchmark. On Unix, each command has its own process group. The group is stopped when the
//! command ends, on Ctrl-C, on `kill`, and when `--max-time` is over. On Linux this includes processes that left the
//! group (`orphans`).

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pprofdiff::Cancellation;
use pprofdiff_shell::git::leave_repository;
use pprofdiff_shell::{Failure, Result};

use super::orphans::Orphans;

/// The polling interval, and the number of intervals to wait after each of SIGTERM and SIGKILL.
const TICK: Duration = Duration::from_millis(5);
const GRACE_TICKS: usize = 200;
/// The maximum size of a running command's log, and the number of bytes at its end that remain after a cut.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
const KEPT_OUTPUT_BYTES: u64 = 1 << 20;
/// The first line of a log that was cut.
const CUT: &str = "[pprofdiff: earlier output was dropped]";
/// The maximum length of a line that `lines` returns. The rest of a longer line is dropped.
const MAX_LINE_BYTES: u64 = 4096;

/// A command to run.
pub struct CommandJob<'a> {
    pub command: &'a [String],
    pub dir: &'a Path,
    pub variables: &'a [(String, String)],
    /// The file that receives the output.
    pub output: &'a Path,
    pub kind: OutputKind,
    /// A time limit for this command alone.
    pub patience: Option<Duration>,
}

/// The purpose of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// A log: standard output and standard error. Only the end of a large log is kept.
    Log,
    /// A profile: all of standard output. Standard error is dropped.
    Data,
}

/// A command that ended.
pub struct Ended {
    pub status: ExitStatus,
    pub elapsed: Duration,
    pub output: PathBuf,
    /// True if the start of the output was dropped.
    pub is_cut: bool,
}

/// A runner of commands that stops when the work is cancelled or `max_time` is over.
pub struct Runner<'a> {
    pub work: &'a Cancellation,
    begun: Instant,
    max_time: Option<Duration>,
    orphans: Orphans,
}

impl<'a> Runner<'a> {
    pub fn new(work: &'a Cancellation, max_time: Option<Duration>) -> Runner<'a> {
        Runner { work, begun: Instant::now(), max_time, orphans: Orphans::adopt() }
    }

    /// Returns the time since the runner was created.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns true if `max_time` is over, so no command may run.
    pub fn is_over(&self) -> bool {
        self.max_time.is_some_and(|time| self.elapsed() >= time)
    }

    /// Runs a command to its end, and then stops the processes that it left behind, also after an error. The exit
    /// status is part of the result, so an unsuccessful status is not an error.
    ///
    /// # Errors
    /// Fails if the command can't be started, takes longer than its `patience`, is cancelled, or is still running when
    /// the runner's `max_time` is over.
    pub fn run(&self, job: &CommandJob<'_>) -> Result<Ended> {
        let [program, args @ ..] = job.command else { return Err(Failure::Message("no command is given".to_owned())) };
        self.check(program)?;
        let wrong = |e: std::io::Error| Failure::Message(format!("{}: {e}", job.output.display()));
        let mut open = OpenOptions::new();
        let mut output = open.read(true).write(true).create(true).truncate(true).open(job.output).map_err(wrong)?;
        // The command appends, so the file can be cut while the command writes to it.
        let mut appended = OpenOptions::new().append(true).open(job.output).map_err(wrong)?;
        let stderr = match job.kind {
            OutputKind::Log => Stdio::from(appended.try_clone().map_err(wrong)?),
            OutputKind::Data => Stdio::null(),
        };
        let mut command = Command::new(program);
        command.args(args).current_dir(job.dir).stdin(Stdio::null());
        command.stdout(appended.try_clone().map_err(wrong)?).stderr(stderr);
        leave_repository(&mut command);
        command.envs(job.variables.iter().map(|(name, value)| (name, OsStr::new(value))));
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let begun = Instant::now();
        let child = command.spawn().map_err(|e| Failure::Message(format!("{program} can't be started: {e}")))?;
        let mut group = ProcessGroup { child, orphans: &self.orphans };
        let mut is_cut = false;
        loop {
            self.orphans.reap(&group.child);
            if let Some(status) = group.child.try_wait()? {
                let (elapsed, output) = (begun.elapsed(), job.output.to_owned());
                return Ok(Ended { status, elapsed, output, is_cut });
            }
            self.check(program)?;
            if job.patience.is_some_and(|patience| begun.elapsed() > patience) {
                return Err(Failure::Message(format!("{program} took too long")));
            }
            if job.kind == OutputKind::Log {
                is_cut |= cut(&mut output, &mut appended).map_err(wrong)?;
            }
            std::thread::sleep(TICK);
        }
    }

    fn check(&self, program: &str) -> Result<()> {
        match self.max_time {
            _ if self.work.is_stopped() => Err(Failure::Interrupted),
            Some(time) if self.is_over() => Err(Failure::Message(format!(
                "{program} was stopped because --max-time ({} s) is over",
                (1000.0 * time.as_secs_f64()).round() / 1000.0
            ))),
            _ => Ok(()),
        }
    }
}

/// Cuts a log that is too large down to its end, because a benchmark could fill the disk. Returns true if it cut the
/// log.
fn cut(output: &mut File, appended: &mut File) -> std::io::Result<bool> {
    let len = output.metadata()?.len();
    if len <= MAX_OUTPUT_BYTES {
        return Ok(false);
    }
    let mut end = Vec::new();
    output.seek(SeekFrom::Start(len - KEPT_OUTPUT_BYTES))?;
    (&*output).take(KEPT_OUTPUT_BYTES).read_to_end(&mut end)?;
    output.set_len(0)?;
    // The command can write a line between these two calls, and that line then comes first.
    appended.write_all(format!("{CUT}\n").as_bytes())?;
    appended.write_all(&end)?;
    Ok(true)
}

/// Reads the lines of a command's output one at a time, so that memory holds only one line.
pub fn lines(output: &Path) -> impl Iterator<Item = String> + use<> {
    let mut reader = File::open(output).ok().map(BufReader::new);
    std::iter::from_fn(move || {
        let reader = reader.as_mut()?;
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        if read == 0 {
            return None;
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            reader.skip_until(b'\n').ok()?;
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    })
}

/// Reads the last [`KEPT_OUTPUT_BYTES`] of a command's output.
pub fn tail(output: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(output)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(KEPT_OUTPUT_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(KEPT_OUTPUT_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// A child process, with all processes that it started.
struct ProcessGroup<'a> {
    child: Child,
    orphans: &'a Orphans,
}

impl ProcessGroup<'_> {
    #[cfg(unix)]
    fn signal(&self, signal: nix::sys::signal::Signal) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), signal);
        }
        self.orphans.signal(signal);
    }

    fn is_ended(&mut self) -> bool {
        let is_child_ended = !matches!(self.child.try_wait(), Ok(None));
        let is_empty = self.orphans.left().is_empty();
        // `left` ignores zombies, so reap them after it. Otherwise, the orphans of the last command would stay zombies
        // until this process ends.
        self.orphans.reap(&self.child);
        is_child_ended && is_empty
    }

    /// Waits up to `GRACE_TICKS` intervals for all processes to end, and calls `tick` at each interval. Returns false
    /// if some processes are left.
    fn wait(&mut self, tick: impl Fn(&Self)) -> bool {
        for _ in 0..GRACE_TICKS {
            if self.is_ended() {
                return true;
            }
            tick(self);
            std::thread::sleep(TICK);
        }
        false
    }
}

impl Drop for ProcessGroup<'_> {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use nix::sys::signal::Signal;
            // Even if the command has ended, it may have left processes behind.
            self.signal(Signal::SIGTERM);
            self.wait(|_| ());
            // Signals the group even if it seems to have ended: only Linux can list the members of the group.
            self.signal(Signal::SIGKILL);
            // A process that forks can escape one round of signals, because the list of processes is read before they
            // are sent.
            if !self.wait(|group| group.orphans.signal(Signal::SIGKILL)) {
                let left = self.orphans.left();
                if !left.is_empty() {
                    let left: Vec<String> = left.iter().map(|process| process.to_string()).collect();
                    pprofdiff_shell::say(&format!("note: these processes could not be stopped: {}", left.join(", ")));
                }
            }
        }
        #[cfg(not(unix))]
        let _ = (self.child.kill(), self.wait(|_| ()));
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_log_beyond_the_limit_keeps_its_end_below_a_line_that_reports_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.txt");
        let mut appended = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut output = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        output.set_len(MAX_OUTPUT_BYTES - 4).unwrap();
        assert!(!cut(&mut output, &mut appended).unwrap());
        appended.write_all(b"\nError: the end\n").unwrap();
        assert!(cut(&mut output, &mut appended).unwrap());
        assert_eq!(lines(&path).next().as_deref(), Some(CUT));
        assert!(tail(&path).ends_with("\nError: the end\n"));
        assert!(std::fs::metadata(&path).unwrap().len() < 2 * KEPT_OUTPUT_BYTES);
    }

    #[test]
    fn lines_are_truncated_at_the_maximum_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.txt");
        std::fs::write(&path, format!("a\n{}\n\nb", "x".repeat(1 << 20))).unwrap();
        let read: Vec<usize> = lines(&path).map(|line| line.len()).collect();
        assert_eq!(read, [1, MAX_LINE_BYTES as usize, 0, 1]);
    }
}
