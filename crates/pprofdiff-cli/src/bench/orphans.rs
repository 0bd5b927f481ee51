//! Processes that a command leaves behind when it ends. On Linux this process adopts the orphans among its descendants
//! (`PR_SET_CHILD_SUBREAPER`). That finds daemons, which have a session of their own. Other systems lack such a call, and
//! only the command's process group ends there.

use std::fmt;

/// A process that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct Process {
    id: i32,
    /// The start time tells processes apart that had the same id.
    start: u64,
    name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// Finds the descendants of this process that belong to its commands.
pub struct Orphans {
    /// Descendants that are older than the benchmark, such as jobs of a shell that became this command by `exec`.
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
        /// Starts to adopt orphans, and remembers the descendants that exist already.
        pub fn adopt() -> Orphans {
            let others = descendants(&[]);
            // Linux before 3.4 refuses this, and init adopts the orphans.
            let _ = nix::sys::prctl::set_child_subreaper(true);
            Orphans { others }
        }

        /// Signals all running processes of commands.
        pub fn signal(&self, signal: Signal) {
            for process in self.left() {
                let _ = kill(Pid::from_raw(process.id), signal);
            }
        }

        /// Reaps orphans that ended. The command itself is left to its owner, who needs its status.
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

    /// Reads a process: its parent, the process, and whether it runs. A zombie does not run.
    fn read(id: i32) -> Option<(i32, Process, bool)> {
        let text = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // A name may have blanks and parentheses.
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let mut fields = text.get(close + 1..)?.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
        // The start is the 22nd field of all.
        let start = fields.nth(17)?.parse().ok()?;
        let name = text.get(open + 1..close)?.to_owned();
        Some((parent, Process { id, start, name }, !matches!(state, "Z" | "X")))
    }
}
