//! Processes that a command leaves behind when it ends. On Linux this process adopts the orphans among its descendants
//! (`PR_SET_CHILD_SUBREAPER`). This also finds daemons that have their own session. Other systems have no such call, so
//! only the command's process group is stopped there.

use std::fmt;

/// A running process that a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct Process {
    id: i32,
    /// The start time, which distinguishes processes that had the same id.
    start: u64,
    name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// The set of descendants of this process that belong to its commands.
pub struct Orphans {
    /// Descendants that are older than the benchmark, such as background jobs of a shell that started pprofdiff with `exec`.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    others: Vec<Process>,
}

#[cfg(not(target_os = "linux"))]
impl Orphans {
    pub fn adopt() -> Orphans {
        Orphans { others: Vec::new() }
    }

    #[cfg(unix)]
    pub fn signal(&self, _: nix::sys::signal::Signal) {}

    pub fn reap(&self, _: &std::process::Child) {}

    pub fn left(&self) -> Vec<Process> {
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::Child;

    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
    use nix::unistd::Pid;

    use super::{Orphans, Process};

    impl Orphans {
        /// Starts to adopt orphans and records the descendants that already exist.
        pub fn adopt() -> Orphans {
            let others = descendants(&[]);
            // Linux before 3.4 refuses this call. There, init adopts the orphans.
            let _ = nix::sys::prctl::set_child_subreaper(true);
            Orphans { others }
        }

        /// Sends `signal` to all running processes of commands.
        pub fn signal(&self, signal: Signal) {
            for process in self.left() {
                let _ = kill(Pid::from_raw(process.id), signal);
            }
        }

        /// Reaps orphans that ended. It skips the command itself, because the caller needs its exit status.
        pub fn reap(&self, command: &Child) {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            while let Ok(WaitStatus::Exited(id, _) | WaitStatus::Signaled(id, ..)) = waitid(Id::All, flags) {
                if u32::try_from(id.as_raw()) == Ok(command.id()) || waitpid(id, Some(WaitPidFlag::WNOHANG)).is_err() {
                    break;
                }
            }
        }

        /// Returns the running processes that belong to commands.
        pub fn left(&self) -> Vec<Process> {
            descendants(&self.others)
        }
    }

    /// Returns the running descendants of this process, except for `others` and their descendants.
    fn descendants(others: &[Process]) -> Vec<Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let all: Vec<(i32, Process, bool)> =
            entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect();
        let mut found = Vec::new();
        let mut parents = vec![i32::try_from(std::process::id()).unwrap_or_default()];
        while let Some(parent) = parents.pop() {
            for (_, process, is_running) in all.iter().filter(|(id, ..)| *id == parent) {
                if others.iter().any(|other| (other.id, other.start) == (process.id, process.start)) {
                    continue;
                }
                parents.push(process.id);
                found.extend(is_running.then(|| process.clone()));
            }
        }
        found
    }

    /// Reads a process from `/proc`. Returns its parent, the process, and whether it is running. A zombie is not running.
    fn read(id: i32) -> Option<(i32, Process, bool)> {
        let text = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name is in parentheses, and can itself contain blanks and parentheses.
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let mut fields = text.get(close + 1..)?.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
        // The start time is field 22 of the line.
        let start = fields.nth(17)?.parse().ok()?;
        let name = text.get(open + 1..close)?.to_owned();
        Some((parent, Process { id, start, name }, !matches!(state, "Z" | "X")))
    }
}
